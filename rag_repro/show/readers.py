"""Readers that can read: whether they may judge answers; and what was trained on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_repro.data.titles import word
from rag_repro.evaluation import metrics
from rag_repro.evaluation.verdicts import NO_GATE, READER_TOO_WEAK
from rag_repro.lm import hub
from rag_repro.lm.hub import CARD, CURVE
from rag_repro.plain import from_json, text_of
from rag_repro.show.exhibit_rows import Row
from rag_repro.show.table import Table
from rag_repro.show.values import within
from rag_repro.study.gate import sides, tried
from rag_repro.study.papers import Exhibit, Gate, Paper
from rag_repro.study.scores import Results, Scores, paired, resampled


def gate(paper: Paper, results: Results, tiers: Sequence[str]) -> Table:
    """One line a data set and reader: accuracy alone, with gold passages, and what follows; of the
    questions of the gate.
    """
    wanted, exhibit = paper.gate, paper.exhibits[paper.gate.exhibit]
    body = []
    for cell in (c for tier in tiers for c in exhibit.cells(tier)):
        place = [cell.tier, word(cell.keys["dataset"]), word(cell.condition.reader)]
        if cell.keys["dataset"] in wanted.without:
            if cell.matches(wanted.bare):
                level = _level(results.scores(cell, wanted.metric), wanted)
                body.append([*place, level, "", "", NO_GATE])
        elif cell.matches(wanted.given):
            _, given, bare = sides(paper, cell, results) or (None, None, None)
            gain = given and bare and paired([(given, bare)], wanted.metric)
            verdict = tried(paper, cell, results)
            said = "counts" if verdict is None else verdict.word
            levels = [_level(scores, wanted) for scores in (bare, given)]
            body.append([*place, *levels, within(gain and gain.interval(), 1, "+"), said])
    head = ["tier", "data set", "reader", "no passage", "gold passages", "gain", "its answers"]
    caption = "Accuracy of each reader without passages and with the gold ones, and what follows"
    return Table(head, body, caption, "tab-gate", stacked=True)


def weak(paper: Paper, exhibit: Exhibit, rows: Sequence[Row], results: Results) -> list[str]:
    """Where the reader is too weak for verdicts on these rows' answers: data sets in words, each
    with the readers meant where others of the rows can read it.
    """
    if paper.gate is None:
        return []
    gates = paper.exhibits[paper.gate.exhibit]
    if exhibit.name == gates.name:
        return []
    told: dict[tuple[str, str], bool] = {}  # (data set, reader)
    for row in rows:
        if row.ours is None or not metrics.get(row.metric).of_answers:
            continue
        cell = next((c for c in exhibit.cells(row.tier) if c.matches(row.keys)), None)
        if cell is None or cell.condition.reader is None:
            continue
        place = row.keys["dataset"], cell.keys.get("reader", cell.condition.reader)
        if place not in told:
            verdict = tried(paper, cell, results)
            told[place] = verdict is not None and verdict.word == READER_TOO_WEAK
    said = []
    for dataset in dict.fromkeys(name for name, _ in told):
        every = {reader: held for (name, reader), held in told.items() if name == dataset}
        if all(every.values()):
            said.append(word(dataset))
        elif any(every.values()):
            of = ", ".join(word(reader) for reader, held in every.items() if held)
            said.append(f"{word(dataset)} ({of})")
    return said


def _level(scores: Scores | None, gate: Gate) -> str:
    return within(resampled(scores, gate.metric).interval(), 1, n=True) if scores else ""


def trained_folders(names: Sequence[str]) -> dict[str, Path]:
    """Where the card of each of these lies: beside its weights, or kept without them.

    Of what was never trained, or has no card, there is none.
    """
    held, kept = hub.artifacts(), hub.cards_folder()
    places = {name: held.get(name, kept / name) for name in names}
    return {name: folder for name, folder in places.items() if (folder / CARD).is_file()}


def training_curve(folder: Path) -> list[Mapping[str, Any]]:
    """A line a step: step, tokens, loss, and `held_out` by source at some; [] without a file."""
    path = folder / CURVE
    return [from_json(line) for line in text_of(path).splitlines()] if path.is_file() else []
