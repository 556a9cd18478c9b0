"""Whether the adaptive baselines do what they are for: their exposing checks, out of records.

A Self-RAG whose reader cannot tell gold passages apart, or an adaptive method
that always or never searches, would lose for want of training and not for want of the
idea; and one whose signal can be shuffled without a change does not use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.titles import word
from ..evaluation import calibration
from ..evaluation.resampling import fresh
from ..evaluation.statistics import Interval
from ..study.papers import Cell, Exhibit
from ..study.scores import Results, Scores, resampled
from . import missing
from .missing import Missing
from .pairs import said
from .picture import Note
from .table import Table
from .values import within

Line = Mapping[str, Any]
GOLD = ("all", "static", "dynamic")
CRITICS = ("self_rag",)  # methods whose answers say how relevant each passage is


@dataclass(frozen=True)
class Separation:
    """How well the probability of "relevant" tells a cell's gold passages from the others.

    role: which gold ("all", "static", "dynamic"). gold, others: how many passages were
    judged. area: AUC, from 0 to 1, n being questions; None where a kind is missing.
    """

    keys: Mapping[str, Any]
    role: str
    gold: int
    others: int
    area: Interval | None


def separations(cells: Iterable[Cell], results: Results) -> list[Separation]:
    """Of each cell whose records hold critiques; static and dynamic where gold has roles."""
    made = []
    for cell in cells:
        judged = list(judged_passages(results.lines(cell) or ()))
        for role in GOLD:
            kept = [one for one in judged if not one[1] or role in ("all", one[2])]
            kinds = [gold for _, gold, _, _ in kept]
            if not any(kinds):
                continue
            area = None
            if not all(kinds):
                judgements = calibration.Judgements.of(
                    [p for p, *_ in kept], kinds, [cluster for *_, cluster in kept]
                )
                area = calibration.auc(judgements, fresh())
            made.append(Separation(cell.keys, role, sum(kinds), len(kinds) - sum(kinds), area))
    return made


def judged_passages(lines: Sequence[Line]) -> Iterator[tuple[float, bool, str | None, str]]:
    """-> probability of "relevant", whether gold, its role, the question's cluster.

    Of passages of which nobody knows whether they are gold there is nothing.
    """
    for line in lines:
        roles = {line["hits"][rank - 1]: role for role, _, rank in line["gold"] if rank is not None}
        for name, relevant, gold in line.get("critique", ()):
            if gold is not None:
                yield relevant, bool(gold), roles.get(name), line["cluster"]


@dataclass(frozen=True)
class Shuffled:
    """A method beside its control with a shuffled signal, on the same questions.

    searched, control: share of questions for which each fetched passages, in points;
    changed: share of questions whose decision differs, in points. calls, em: the
    control's minus the method's, paired: searches a question, exact match in points.
    """

    keys: Mapping[str, Any]
    against: str
    searched: Interval
    control: Interval
    changed: Interval
    calls: Interval
    em: Interval | None


def shuffles(exhibit: Exhibit, cells: Sequence[Cell], results: Results) -> list[Shuffled]:
    """Of each of these cells that is a control (`controls`), where both have records."""
    made = []
    for cell, true in controls(exhibit, cells):
        if not (results.lines(cell) and results.lines(true)):
            continue
        rates = [results.scores(one, "searched") for one in (true, cell)]
        changed = _changed(results.lines(true), results.lines(cell))
        if None in (*rates, changed):
            continue
        gains = [results.gain(cell, true, metric) for metric in ("retrievals", "em")]
        made.append(
            Shuffled(
                cell.keys,
                true.keys["method"],
                *(resampled(rate, "searched").interval() for rate in rates),
                resampled(changed, "searched").interval(),
                *(gain and gain.interval() for gain in gains),
            )
        )
    return made


def _changed(true: Sequence[Line], control: Sequence[Line]) -> Scores | None:
    """100 for each question whose decision differs, else 0; None where none is in both."""
    decided = {line["id"]: _class(line["decided"]) for line in control if "decided" in line}
    common = [line for line in true if "decided" in line and line["id"] in decided]
    if not common:
        return None
    values = [100.0 * (_class(line["decided"]) != decided[line["id"]]) for line in common]
    ids, clusters = (tuple(line[key] for line in common) for key in ("id", "cluster"))
    return Scores(ids, clusters, np.array(values))


def controls(exhibit: Exhibit, cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Each control with what it is the control of: its row names that one as its baseline."""
    found = []
    for cell in cells:
        baseline = exhibit.methods[cell.keys["method"]].baseline
        true = baseline and _beside(cells, cell, baseline)
        if true:
            found.append((cell, true))
    return found


def _class(decided: Sequence[Any]) -> Any:
    """What was decided: a class's letter, else whether passages were fetched."""
    went_by, fetched = decided
    return went_by if isinstance(went_by, str) else fetched


def _beside(cells: Sequence[Cell], cell: Cell, method: str) -> Cell | None:
    wanted = {**cell.keys, "method": method}
    return next((c for c in cells if c.tier == cell.tier and c.keys == wanted), None)


# ------------------------------------------------------------------------ tables


def rate_table(
    exhibit: Exhibit, results: Results, tiers: Sequence[str], name: str = "tab-searched"
) -> Table | Note:
    """How often each method fetched passages; one that always or never does decides nothing."""
    caption = "How often the adaptive baselines search"
    cells = _at(exhibit, tiers)
    drawn = [control for control, _ in controls(exhibit, cells)]
    cells = [cell for cell in cells if cell not in drawn]
    body = []
    for cell in cells:
        label = [place(cell.keys), exhibit.methods[cell.keys["method"]].label]
        rate = results.scores(cell, "searched")
        if rate is None:
            body.append([*label, "", "", _why(cell, results)])
            continue
        share = resampled(rate, "searched").interval()
        told = {0.0: "never searches", 100.0: "always searches"}.get(share.estimate, "decides")
        body.append([*label, within(share, 1), share.n, told])
    head = ["data set", "method", "searched, % [95 %]", "n", "so it"]
    return _table(head, body, cells, results, caption, name)


def separation_table(
    exhibit: Exhibit, results: Results, tiers: Sequence[str], name: str = "tab-relevance"
) -> Table | Note:
    """Data set, which gold, how many passages, AUC with its interval."""
    caption = 'How "relevant" tells gold passages from others'
    cells = [c for c in _at(exhibit, tiers) if c.condition.method in CRITICS]
    body = [
        [
            place(s.keys),
            s.role,
            f"{s.gold} / {s.others}",
            said(s.area, 100) if s.area else "-",
            _n(s.area),
        ]
        for s in separations(cells, results)
    ]
    told = {row[0] for row in body}
    body += [
        [place(c.keys), "", "", _why(c, results), ""] for c in cells if place(c.keys) not in told
    ]
    head = ["data set", "gold", "gold / other passages", "AUC [95 %]", "questions"]
    return _table(head, body, cells, results, caption, name)


def shuffle_table(
    exhibit: Exhibit, results: Results, tiers: Sequence[str], name: str = "tab-shuffled"
) -> Table | Note:
    """Each method beside its control, on the same questions."""
    caption = "The same method with its signal shuffled"
    cells = _at(exhibit, tiers)
    labels = {key: row.label for key, row in exhibit.methods.items()}
    body = [
        [
            place(s.keys),
            labels[s.against],
            within(s.searched, 1),
            within(s.control, 1),
            within(s.changed, 1),
            _shown(s.calls, 2, "+"),
            _shown(s.em, 1, "+"),
            _n(s.searched),
        ]
        for s in shuffles(exhibit, cells, results)
    ]
    told = {(row[0], row[1]) for row in body}
    both = controls(exhibit, cells)
    for control, true in both:
        key = place(control.keys), labels[true.keys["method"]]
        if key not in told:
            body.append([*key, _why(true, results), _why(control, results), *[""] * 4])
    head = ["data set", "method", "searched, %", "shuffled", "decision changed, %"]
    head += ["searches a question (difference)", "EM (difference)", "n"]
    return _table(head, body, [c for pair in both for c in pair], results, caption, name)


def class_table(
    exhibit: Exhibit,
    results: Results,
    tiers: Sequence[str],
    method: str,
    others: Sequence[str],
    name: str = "tab-classes",
) -> Table | Note:
    """Questions of each class that `method`'s classifier gave, and who answers them right.

    EM in points on the same questions, of `method` and of the rows `others`. Where all are
    of one class, `method` is that class's way of answering by another name.
    """
    caption = f"What the classifier of {exhibit.methods[method].label} says"
    cells = _at(exhibit, tiers)
    own = [cell for cell in cells if cell.keys["method"] == method]
    body = []
    for cell in own:
        classes: dict[str, list[str]] = {}
        for line in results.lines(cell) or ():
            if "decided" in line:
                classes.setdefault(_class(line["decided"]), []).append(line["id"])
        beside = [cell, *(_beside(cells, cell, other) for other in others)]
        for said_of, ids in sorted(classes.items()):
            right = [_share_right(results, one, set(ids)) for one in beside]
            body.append([place(cell.keys), said_of, len(ids), *right])
    labels = [exhibit.methods[one].label for one in (method, *others)]
    head = ["data set", "class", "questions", *(f"EM, {label}" for label in labels)]
    return _table(head, body, own, results, caption, name)


def _share_right(results: Results, cell: Cell | None, ids: set[str]) -> str:
    """EM of a cell on these questions, in points; "-" where it has not all of them."""
    lines = (results.lines(cell) if cell else None) or ()
    values = [line["scores"]["em"] for line in lines if line["id"] in ids]
    return f"{100 * sum(values) / len(values):.1f}" if len(values) == len(ids) else "-"


def place(keys: Mapping[str, Any]) -> str:
    """The data set, with the split where it is not the one that is tested on."""
    return ", ".join([word(keys["dataset"]), *filter(None, [keys.get("split")])])


def _at(exhibit: Exhibit, tiers: Sequence[str]) -> list[Cell]:
    return [cell for tier in tiers for cell in exhibit.cells(tier)]


def _why(cell: Cell, results: Results) -> Missing | str:
    """In place of what a cell's records do not tell: the command, where there are none."""
    return "-" if results.lines(cell) else missing.of_cells([cell])


def _table(
    head: Sequence[str],
    body: Sequence[Sequence[Any]],
    cells: Sequence[Cell],
    results: Results,
    caption: str,
    name: str,
) -> Table | Note:
    """The table; where no cell has a record one sentence instead of rows without a number."""
    if any(results.lines(cell) for cell in cells):
        return Table(head, body, caption, name)
    return missing.note(cells, results, caption)


def _shown(interval: Interval | None, digits: int, sign: str = "") -> str:
    return within(interval, digits, sign) or "-"


def _n(interval: Interval | None) -> str:
    return str(interval.n) if interval else "-"
