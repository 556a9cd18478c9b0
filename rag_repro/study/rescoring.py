"""Recorded scores computed again: what `rag-repro audit` does.

A line holds the prediction and the ids of the hits, the data set the gold: the function that wrote
the line (`runner.line_of`) must give every recorded score again, to the last digit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from rag_repro import data
from rag_repro.data.public.record import MissingFile, UnknownName
from rag_repro.evaluation.metrics import METRICS
from rag_repro.schema import Answer, Cost, Hit, Passage
from rag_repro.schema.dataset import Dataset
from rag_repro.study import lines as form
from rag_repro.study import records, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.names import is_outside

COMPARED = ("kind", "hops", "cluster", "gold")  # what else follows from question and hits
OF_TEXTS = {metric.name for metric in METRICS.values() if metric.needs == "texts"}
YOUNGER = {"shown_words", "distinct", "distracted", "set_f1", "set_precision", "set_recall_tokens"}
"""Metrics that some records are older than: these alone may be absent where they have a value."""


@dataclass
class Audit:
    """What was computed again.

    scores: data set -> metric -> how many. faults: one sentence for each difference. missing:
    data set -> records that were not looked at: by that name there is no data, or other data.
    """

    records: int = 0
    answers: int = 0
    scores: dict[str, Counter[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)


def audit(
    found: Iterable[tuple[Path, str]],
    data_dir: Path | None = None,
    *,
    report: Callable[[], object] = lambda: None,
) -> Audit:
    """Compute the scores of these records again, each a folder and a path in it (`recorded`).

    report: called after each record.
    """
    made = Audit()
    headers = sorted(((*one, records.at(*one).header) for one in sorted(found)), key=_data)
    for (name, split), group in groupby(headers, _data):
        try:
            dataset = data.load(name, data_dir=data_dir, split=split)
            here = {"corpus": dataset.corpus.sha256, "questions": dataset.questions_sha256}
        except (MissingFile, UnknownName):  # a folder of one's own has no name to load it by
            here = {}
        for root, path, header in group:
            if here and header["fingerprint"].items() >= here.items():
                condition = condition_of(header["identity"])
                _audit_record(root, path, condition, dataset, made)
            else:
                made.missing[name] += 1
            report()
    return made


def recorded(folder: Path) -> list[tuple[Path, str]]:
    """The finished records of a folder and the timed answers beside it, as `audit` takes them."""
    times = sorted(path for path in (folder.parent / "times").glob("*") if path.is_dir())
    return [
        (root, path)
        for root in (folder, *times)
        for path in records.paths(root)
        if form.SHARD not in path
    ]


def _data(one: tuple[Path, str, Mapping[str, Any]]) -> tuple[str, str]:
    identity = one[2]["identity"]
    return identity["dataset"], identity["split"]


def condition_of(identity: Mapping[str, Any]) -> Condition:
    """The condition that a record's header spells out."""
    given = {field.name: identity[field.name] for field in fields(Condition)}
    given["settings"] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in given["settings"].items()
    }
    return Condition(**given)


def _audit_record(
    root: Path, path: str, condition: Condition, dataset: Dataset, made: Audit
) -> None:
    questions, passages = {q.id: q for q in dataset.questions}, dataset.corpus.by_id
    outside = condition.retriever is not None and is_outside(condition.retriever)
    left_out = OF_TEXTS if outside else set()  # no record keeps what a service showed
    counts = made.scores.setdefault(condition.dataset, Counter())
    made.records += 1
    file = root / (path + form.ENDING)  # the name that it has, or had before it was sealed
    for number, line in enumerate(records.at(root, path).lines, start=2):
        place = f"{file}, line {number}: question {line['id']!r}"
        made.answers += 1
        counts.update(line["scores"].keys() - left_out)
        if line["id"] not in questions or not (outside or passages.keys() >= {*line["hits"]}):
            made.faults.append(f"{place} or a hit of it is not in {condition.dataset}")
            continue
        answer = _answer(line, dataset, condition)
        now = runner.line_of(questions[line["id"]], answer, dataset, condition)
        pairs = {name: (line[name], now[name]) for name in COMPARED}
        for metric in sorted({*line["scores"], *now["scores"]} - left_out):
            pairs[metric] = line["scores"].get(metric), now["scores"].get(metric)
        made.faults += [
            f"{place} records {what} {one}, but gives {other}"
            for what, (one, other) in pairs.items()
            if one != other and not (one is None and what in YOUNGER)
        ]


def _answer(line: Mapping[str, Any], dataset: Dataset, condition: Condition) -> Answer:
    """The answer that the line tells of, as far as its scores depend on it.

    A line without a text has no prediction: a reader wrote nothing (None), or a guess is empty.
    """
    guessed = condition.reader is None and condition.retriever is None
    found = (dataset.corpus.by_id.get(name, Passage(name, "", "")) for name in line["hits"])
    return Answer(
        text=line.get("text", ""),
        prediction=line.get("prediction", "" if guessed else None),
        hits=tuple(Hit(passage, 0.0, rank) for rank, passage in enumerate(found, start=1)),
        cost=Cost(**line.get("cost", {})),
        error=line.get("error"),
    )
