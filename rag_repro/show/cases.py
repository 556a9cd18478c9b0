"""Questions on which one method does better than another, both ways round.

A worked case is chosen because it shows what is claimed, so it proves nothing:
beside it stands how often the reverse happens (McNemar's test). Texts are shown
of the testbed alone, for those of real data are not ours to print.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro.data.titles import word
from rag_repro.evaluation import metrics
from rag_repro.evaluation.heuristics import GUESSED
from rag_repro.evaluation.significance import mcnemar
from rag_repro.schema import Answer, Hit
from rag_repro.schema.dataset import Dataset
from rag_repro.show import missing, traces
from rag_repro.show.exhibit_rows import sibling_cell
from rag_repro.show.picture import Note
from rag_repro.show.table import Table
from rag_repro.show.values import p_value
from rag_repro.study.papers import Cell, Exhibit
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop

Line = Mapping[str, Any]
Pair = tuple[Line, Line]
Told = Callable[[Line, Line], bool | None]
"""Of the lines (before, after) of one question; None where nobody can tell."""


@dataclass(frozen=True)
class Versus:
    """Two cells on the questions that both have answered.

    gained: lines (before, after) of the questions of which `after` is the better, in
    the record's order; lost: of those of which `before` is. of: all that can be told.
    """

    before: Cell
    after: Cell
    gained: tuple[Pair, ...]
    lost: tuple[Pair, ...]
    of: int

    @property
    def p(self) -> float:
        """McNemar's exact p: whether so many against so many may be chance."""
        won, lost = len(self.gained), len(self.lost)
        rest = [0] * (self.of - won - lost)
        return mcnemar([1] * won + [0] * lost + rest, [0] * won + [1] * lost + rest).p


def higher(metric: str) -> Told:
    """Whether `after` has the higher value."""

    def better(before: Line, after: Line) -> bool | None:
        was, now = (metrics.of_line(metric, line) for line in (before, after))
        return None if None in (was, now) else now > was

    return better


def of_kind(*kinds: str) -> Told:
    """Whether the question is of one of these kinds."""
    return lambda before, after: before["kind"] in kinds


def each(*told: Told) -> Told:
    """Whether all of these say so."""
    return lambda before, after: all(one(before, after) for one in told)


ANSWERED = higher("acc")


def hard_to_guess(before: Line, after: Line) -> bool:
    """Whether more than two answers would do: a case of which the passages decide.

    An answer that is one of two is right half of the time, whatever is read.
    """
    return after["kind"] not in GUESSED


def versus(
    results: Results, before: Cell, after: Cell, better: Told = ANSWERED, worse: Told | None = None
) -> Versus | None:
    """The two cells head to head; None where either has no record, or none in common.

    worse: what counts as the reverse; None: `better` with the sides exchanged.
    """
    lines = results.lines(before), results.lines(after)
    if None in lines:
        return None
    ours = {line["id"]: line for line in lines[1]}
    both = [(line, ours[line["id"]]) for line in lines[0] if line["id"] in ours]
    told = [(pair, said) for pair in both if (said := better(*pair)) is not None]
    if not told:
        return None
    reverse = worse or (lambda first, second: better(second, first))
    gained = tuple(pair for pair, said in told if said)
    lost = tuple(pair for pair, _ in told if reverse(*pair))
    return Versus(before, after, gained, lost, len(told))


def _sides(
    exhibit: Exhibit, before: Mapping, after: Mapping, tier: str | None = None
) -> list[tuple[Cell, Cell]]:
    """Every cell with the keys of `before`, with the one that differs by those of `after`."""
    found = ((c, sibling_cell(exhibit, c, after)) for c in exhibit.cells(tier) if c.matches(before))
    return [(cell, other) for cell, other in found if other]


def counts(
    exhibit: Exhibit,
    results: Results,
    before: Mapping,
    after: Mapping,
    better: Told = ANSWERED,
) -> Table | Note:
    """One line a data set and reader: repaired, spoilt, and whether that may be chance.

    before, after: keys that pick the two cells; all others must agree.
    """
    sides = _sides(exhibit, before, after)
    body = []
    for pair in sides:
        if found := versus(results, *pair, better):
            place = [word(pair[0].keys["dataset"]), word(pair[0].keys.get("reader", ""))]
            gained, lost = len(found.gained), len(found.lost)
            body.append([*place, gained, lost, found.of, p_value(found.p)])
    if not body:
        return missing.note([cell for pair in sides for cell in pair], results)
    head = ["data set", "reader", "repaired", "spoilt", "questions", "McNemar's p"]
    names = [exhibit.methods[side["method"]].label for side in (before, after)]
    caption = (
        f"Questions wrong by “{names[0]}” and right by “{names[1]}” (repaired), and the reverse"
    )
    return Table(head, body, caption)


def case(
    exhibit: Exhibit,
    results: Results,
    workshop: Workshop,
    before: Mapping,
    after: Mapping,
    better: Told = ANSWERED,
    worse: Told | None = None,
    *,
    fine: Told | None = None,
    names: Sequence[str] = (),
    counted: Sequence[str] = (),
    walked: bool = False,
) -> list[Table | Note]:
    """The first testbed question of which `after` is the better: what each handed on and said.

    Pages to be shown one by one; the last counts how often it happens, and how often the
    reverse; with McNemar's p where these are the two sides exchanged, and not where
    `worse` is something else, which is no second method's outcome.
    before, after: as `counts` has them. fine: asked beside `better` of the question
    that is shown, where there is such a one; it does not count. names: of the two in words;
    counted: of what happens and of its reverse. walked: with every step of `after`, taken now
    where nothing that it needs is lacking.
    """
    sides = _sides(exhibit, before, after, "testbed")
    held = (versus(results, *pair, better, worse) for pair in sides)
    found = next((one for one in held if one), None)
    if found is None and not sides and _sides(exhibit, before, after):
        return [Note("Texts of public data sets are not shown here.")]
    if found is None:
        return [missing.note([cell for pair in sides for cell in pair], results)]
    names = names or [exhibit.methods[c.keys["method"]].label for c in (found.before, found.after)]
    counted = counted or [f"{names[1]} alone", f"{names[0]} alone"]
    if not found.gained:
        reverse = f"; the reverse is true of {len(found.lost)}" if found.lost else ""
        why = f"none of the {found.of} recorded questions is one{reverse}"
        return [Note(f"No case is shown: {why}.")]
    shown = next((pair for pair in found.gained if fine is None or fine(*pair)), None)
    said = (
        []
        if shown
        else [Note("No such question is of the kind looked for; here is the first case.")]
    )
    dataset = workshop.dataset(found.after.condition.dataset, found.after.condition.split)
    pair = shown or found.gained[0]
    pages = _pages(pair, dataset, found, names)
    if walked and workshop.lacks(found.after.condition) is None:
        question, caption = dataset.by_id[pair[0]["id"]], f"Every step of {names[1]}, taken now"
        pages.insert(1, traces.walk(found.after.condition, question, workshop, caption))
    return [*said, *pages, _count_table(found, counted, tested=worse is None)]


def _pages(
    shown: Pair, dataset: Dataset, found: Versus, names: Sequence[str]
) -> list[Table | Note]:
    question = dataset.by_id[shown[0]["id"]]
    pages = [traces.question_table(question, dataset)]
    ends = [f", k = {c.keys['k']}" if "k" in c.keys else "" for c in (found.before, found.after)]
    handed = [(name + end, line) for name, end, line in zip(names, ends, shown, strict=True)]
    if shown[0]["hits"] == shown[1]["hits"]:  # they differ in how they read: told once
        handed = [(f"both{ends[0] if ends[0] == ends[1] else ''}", shown[0])]
    for by, line in handed:
        caption = f"Handed on by {by}"
        if not line["hits"]:
            pages.append(Note(f"{caption}: no passage."))
            continue
        pages.append(traces.context_table(_handed_on(line, dataset), question, caption))
    if any("text" in line for line in shown):
        said = [[name, line.get("text", "")] for name, line in zip(names, shown, strict=True)]
        pages.append(Table(["method", "answer"], said, "What the reader makes of it"))
    if "judged" in shown[1]:
        pages.append(_judged_table(shown[1], dataset))
    return pages


def _judged_table(line: Line, dataset: Dataset) -> Table:
    """Every pair that the classifier was asked about, in order."""
    by_id, body = dataset.corpus.by_id, []
    for d, e, p, gold in line["judged"]:
        said = "" if gold is None else gold, "yes" if e in line["hits"] else "no"
        body.append([by_id[d].title, by_id[e].title, f"{p:.2f}", *said])
    head = ["d", "d'", "probability", "gold of the two", "d' handed on"]
    return Table(head, body, "What the classifier was asked, in order")


def _handed_on(line: Line, dataset: Dataset) -> Answer:
    """The line's passages, from the corpus, as an answer's hits."""
    passages = dataset.corpus.by_id
    ranked = enumerate(line["hits"], start=1)
    return Answer(hits=tuple(Hit(passages[name], 0.0, rank) for rank, name in ranked))


def _count_table(found: Versus, counted: Sequence[str], tested: bool) -> Table:
    """How often the shown thing happens, and how often its reverse."""
    gained, lost = len(found.gained), len(found.lost)
    head = [*counted, "both or neither", "questions"]
    body = [gained, lost, found.of - gained - lost, found.of]
    if tested:
        head, body = [*head, "McNemar's p"], [*body, p_value(found.p)]
    return Table(head, [body])
