"""Recorded answers question by question: who was right, and what each method did.

A question is right where the exhibit's first metric of answers is full (em 1); in an
exhibit that has none, its first other metric in percent (recall: all gold is found).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_repro.evaluation import metrics
from rag_repro.schema import Cost, Passage, Question
from rag_repro.schema.dataset import Dataset
from rag_repro.show import traces
from rag_repro.show.escape import html, one_line
from rag_repro.show.table import Table
from rag_repro.study import again, campaign
from rag_repro.study.papers import Cell, Exhibit, StudyError
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop
from rag_repro.words import nearest

Line = Mapping[str, Any]


@dataclass(frozen=True)
class RecordedExhibit:
    """What one folder holds of an exhibit; only records of the wanted cells are read.

    tier, datasets, rows: those that are wanted; None: all. rows are the exhibit's names of
    methods. Raises StudyError for a name that it lacks.
    """

    exhibit: Exhibit
    results: Path
    data_dir: Path | None = None
    tier: str | None = None
    datasets: Sequence[str] | None = None
    rows: Sequence[str] | None = None

    @cached_property
    def workshop(self) -> Workshop:
        return Workshop(data_dir=self.data_dir)

    @cached_property
    def records(self) -> Results:
        return Results(self.results)

    @cached_property
    def cells(self) -> list[Cell]:
        every = campaign.only(self.exhibit.cells(self.tier), "dataset", self.datasets)
        return campaign.only(every, "method", self.rows)

    @cached_property
    def questions(self) -> dict[tuple[str, str], list[tuple[Cell, Line]]]:
        """(data set, id) -> the recorded answers, in the order of the exhibit."""
        made: dict[tuple[str, str], list[tuple[Cell, Line]]] = {}
        for cell in self.cells:
            for line in self.records.lines(cell) or ():
                made.setdefault((cell.condition.dataset, line["id"]), []).append((cell, line))
        return made

    @cached_property
    def metric(self) -> str | None:
        """What tells right from wrong; None: nothing of this exhibit does."""
        known = [metrics.get(name) for name in self.exhibit.metrics]
        rest = [m for m in known if m.unit == "percent" and m.higher_is_better]
        return next((m.name for m in (*(m for m in rest if m.of_answers), *rest)), None)

    def right(self, line: Line) -> bool | None:
        """Whether the answer is; None: nobody can tell."""
        value = self.metric and metrics.of_line(self.metric, line)
        return None if value is None else value == 1

    def dataset(self, name: str) -> Dataset | str:
        """The data set, or why its texts are not at hand."""
        try:
            return self.workshop.dataset(name, None)
        except (ValueError, OSError) as error:
            return str(error)


# ------------------------------------------------------------------ many questions


def listing(recorded: RecordedExhibit, where: str | None = None) -> list[Table]:
    """A line a question: id, data set, kind, text where it is at hand, and who was right.

    where: as "dragin right, sr wrong": a row is right where all of its recorded answers
    to the question are, wrong where none is. Raises StudyError for a row that is not there,
    or where the exhibit has no metric that tells.
    """
    wanted = {} if where is None else _wanted(recorded, where)
    if recorded.rows is not None:
        recorded = replace(recorded, rows=(*recorded.rows, *wanted))
    known = {cell.keys["method"] for cell in recorded.cells}
    wanted = {
        row: side
        for name, side in wanted.items()
        for row in campaign.matches("method", name, known)
    }
    sets = {name: recorded.dataset(name) for name, _ in recorded.questions}
    body = []
    for (name, number), answers in recorded.questions.items():
        told: dict[str, list[bool]] = {}
        for cell, line in answers:
            if (right := recorded.right(line)) is not None:
                told.setdefault(cell.keys["method"], []).append(right)
        if any(set(told.get(row, ())) != {value} for row, value in wanted.items()):
            continue
        asked = sets[name].by_id.get(number) if isinstance(sets[name], Dataset) else None
        text = asked.text if asked else "–"
        sides = [
            ", ".join(_row(row, values) for row, values in told.items() if any(values) == side)
            or "none"
            for side in (True, False)
        ]
        body.append([number, answers[0][0].keys["dataset"], answers[0][1].get("kind") or ""])
        body[-1] += [text, *(sides if recorded.metric else ())]
    caption = f"{recorded.exhibit.name}: {len(body)} of {len(recorded.questions)} questions"
    caption += f" ({where})" if where else ""
    caption += f"; right: {recorded.metric} is full" if recorded.metric else ""
    if away := [name for name, texts in sets.items() if isinstance(texts, str)]:
        caption += f"; texts of {', '.join(away)} are not at hand: `rag-repro data card NAME`"
    head = ["id", "data set", "kind", "question", "right", "wrong"]
    return [Table(head if recorded.metric else head[:4], body, caption)]


def _row(row: str, values: Sequence[bool]) -> str:
    mixed = len(set(values)) > 1
    return f"{row} ({sum(values)} of {len(values)})" if mixed else row


def _wanted(recorded: RecordedExhibit, where: str) -> dict[str, bool]:
    """Row -> whether it shall be right."""
    if recorded.metric is None:
        raise StudyError(
            f"{recorded.exhibit.name} has no metric that tells right from wrong; leave --where out"
        )
    made = {}
    for part in where.split(","):
        match part.split():
            case [row, "right" | "wrong" as side]:
                made[row] = side == "right"
            case _:
                raise StudyError(
                    f"--where has {part.strip()!r}; write ROW right or ROW wrong, with commas "
                    "between them, as 'dragin right, sr wrong'"
                )
    return made


# ------------------------------------------------------------------ one question


def question(recorded: RecordedExhibit, question_id: str, *, anew: bool = False) -> list[Table]:
    """The question with its gold passages, then what each method of the exhibit did with it.

    anew: ask again, and show all that the methods decide. Where several data sets hold the id
    (worlds number their questions alike), it is the first of them. Raises StudyError where no
    record of the exhibit holds the question, or the records are of another corpus than the data
    at hand; with `anew` the data's own error where it is not at hand.
    """
    name = next((name for name, number in recorded.questions if number == question_id), None)
    listed = f"rag-repro show {recorded.exhibit.name} --list"
    if name is None:
        known = [number for _, number in recorded.questions]
        raise StudyError(
            f"no record of {recorded.exhibit.name} holds the question {question_id!r}"
            f"{nearest(question_id, known)}; `{listed}` names those that it has"
        )
    answers = recorded.questions[name, question_id]
    dataset = recorded.workshop.dataset(name, None) if anew else recorded.dataset(name)
    passages: Mapping[str, Passage] = {}
    asked = Question(question_id, "", (), kind=answers[0][1].get("kind") or "")
    if isinstance(dataset, str):
        first = [("texts", f"not at hand: {dataset}")]
    else:
        passages = dataset.corpus.by_id
        strange = [n for _, line in answers for n in line["hits"] if n not in passages]
        if question_id not in dataset.by_id or strange:
            raise StudyError(
                f"the records of {question_id!r} were made from other data than the {name} "
                f"at hand, which lacks {strange[0] if strange else question_id!r}; take the data "
                "set that the records were made from"
            )
        asked = dataset.by_id[question_id]
        first = [("question", asked.text), ("answers", " | ".join(asked.answers))]
        for g in asked.gold:
            passage = passages[g.passage_id]
            first.append(
                ("gold", f"[{g.role or '?'}] {passage.id} {passage.title}: {passage.text}")
            )
    made = [_part(f"{asked.id} ({answers[0][0].keys['dataset']}, {asked.kind})", first)]
    for cell, line in answers:
        told = list(_answer(recorded, cell, line, asked, passages))
        if anew:
            told += _again(recorded, cell, asked, dataset)
        else:
            told += traces.evidence(_events(cell, line, asked))
            flags = shlex.join(["--method", cell.keys["method"], "--again"])
            told.append(("no record", f"of other decisions; this command with {flags} shows them"))
        settings = ", ".join(f"{k} {v}" for k, v in cell.keys.items() if k != "dataset")
        made.append(_part(settings, told))
    return made


def _part(caption: str, told: Iterable[tuple[str, str]]) -> Table:
    return Table(["what", "text"], list(map(list, told)), caption)


def _answer(
    recorded: RecordedExhibit,
    cell: Cell,
    line: Line,
    asked: Question,
    passages: Mapping[str, Passage],
) -> Iterator[tuple[str, str]]:
    """What of a recorded answer needs no trace."""
    yield "row", recorded.exhibit.methods[cell.keys["method"]].label
    given = {k: v for k, v in cell.condition.settings.items() if k not in cell.keys}
    if given:
        yield "settings", ", ".join(f"{k} {v}" for k, v in given.items())
    if "judged" in line or "judged" in line.get("dynamic", ()):
        yield "threshold", f"{cell.condition.configured.threshold:g}"
    # Without the data its gold is known by rank, if it was found.
    gold = {line["hits"][rank - 1] for _, _, rank in line.get("gold", ()) if rank}
    gold |= set(asked.gold_ids)
    for rank, name in enumerate(line["hits"], start=1):
        title = passages[name].title if name in passages else ""
        yield f"hit {rank}", f"{name} {title}{' (gold)' if name in gold else ''}"
    if "text" in line:
        yield "says", f"{line['text']!r}, taken as {line['prediction']!r}"
    if "error" in line:
        yield "failed", line["error"]
    if (right := recorded.right(line)) is not None:
        yield "verdict", f"{'right' if right else 'wrong'}, by {recorded.metric}"
    yield "scores", ", ".join(_scores(recorded.exhibit, line)) or "none of this exhibit"
    if "cost" in line:
        yield "cost", traces.cost(Cost(**line["cost"]))


def _scores(exhibit: Exhibit, line: Line) -> Iterator[str]:
    """The exhibit's own metrics; a line holds thirty."""
    for metric in map(metrics.get, exhibit.metrics):
        if (value := metrics.of_line(metric.name, line)) is not None:
            unit = "%" if metric.unit == "percent" else ""
            yield f"{metric.name} {round(value * metric.scale, 2):g}{unit}"


def _events(cell: Cell, line: Line, asked: Question) -> Iterator[traces.Event]:
    """What the record keeps of the trace, as the events of a trace."""
    settings = cell.condition.configured
    for d, e, p, _ in line.get("judged", ()):
        t = getattr(settings, "threshold", None)
        # Rounded as recorded, a probability can look as if it were the threshold.
        positive = None if t is None or p == round(t, 4) else p > t
        by = "oracle" if getattr(settings, "judge", "") == "oracle" else "classifier"
        told = {"pair": [d, e], "probability": p, "positive": positive, "by": by}
        yield {"stage": "judge", **told}
    for name, label, p, kind, _ in line.get("filter", ()):
        yield {"stage": "filter", "passage": name, "label": label, "probability": p, "kind": kind}
    for alike, searched, found, recalled, both, _ in line.get("trigger", ()):
        told = {"titles alike": str(alike), "searched for": "yes" if searched else "no"}
        told |= {"found": found, "recalled": recalled, "found by both": both}
        yield {"stage": "memory", **told}
    if counts := line.get("counts"):
        yield {"stage": "counts", **counts}
    if "decided" in line:
        yield {"stage": "decided", "by": line["decided"][0], "searched": line["decided"][1]}
    for name, p, _ in line.get("critique", ()):
        yield {"stage": "critique", "passage": name, "relevant": p}
    if dynamic := line.get("dynamic"):
        taken = iter(dynamic.get("taken", ()))
        told = {"drafts": dynamic["drafts"], "alarms": dynamic["alarms"]}
        told |= {"words judged": dynamic.get("judged"), "asked again": dynamic["again"]}
        yield {"stage": "timing", **told}
        behind = len(dynamic["found"]) - len(dynamic.get("taken", ()))
        for number, found in enumerate(dynamic["found"]):
            names = [asked.gold_ids[i] if asked.gold else f"no. {i + 1}" for i in found]
            told = {"gold found": ", ".join(names) or "none"}
            if number >= behind and (of := next(taken, None)):
                told["words taken"] = f"{of[0]} of {of[1]}"
            yield {"stage": f"search {number + 1}", **told}


def _again(
    recorded: RecordedExhibit, cell: Cell, asked: Question, dataset: Dataset
) -> Iterator[tuple[str, str]]:
    """The answer of now with all that its method decides, or why it cannot be asked here."""
    # A memory holds what the questions before it brought: their lines are needed, too.
    lines = {line["id"]: line for line in recorded.records.lines(cell) or ()}
    one = again.Recorded(cell.condition, lines, [asked.id])
    try:
        [(_, answer)] = again.in_their_turn(one, recorded.workshop, dataset, [asked])
    except (ValueError, OSError) as error:  # the next method's reader may be at hand
        yield "again", f"not asked: {error}"
        return
    kept = "as recorded" if again.same(one, asked, answer, dataset) else "not as recorded"
    yield "again", f"{kept}: {answer.prediction!r}"
    if answer.error is not None:
        yield "failed", answer.error
    yield from traces.evidence(answer.trace)


# ------------------------------------------------------------------ as text, as a page


def text(tables: Sequence[Table]) -> str:
    """As a terminal shows it: a list as a table, all else as labelled lines."""
    parts = []
    for table in tables:
        if len(table.head) > 2:
            parts.append(f"{one_line(table.caption)}\n\n{table!r}")
        else:
            parts.append("\n".join([one_line(table.caption), *traces.block(table.body)]))
    return "\n\n".join(parts)


def page(title: str, tables: Sequence[Table]) -> str:
    """As an HTML page that needs no other file."""
    return html("answers", title=title, tables=tables)
