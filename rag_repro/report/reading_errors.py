"""Errors of readers that have the gold passages, by how many passages and how many words.

Questions of more hops have more gold passages, so more words, and are harder whatever the
length: thirds are taken among questions of as many hops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..data.titles import word
from ..evaluation.statistics import combine
from ..study.exhibits import Cell, Exhibit
from ..study.scores import Results, Scores, resampled
from . import missing
from .picture import Note
from .table import Table
from .values import number, within

THIRDS = ("shortest third wrong, %", "middle third, %", "longest third, %")


def by_length(
    exhibit: Exhibit, cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a data set and row of the exhibit: answers that are wrong, by the words shown.

    Only questions of which every gold passage was shown. Last: the longest third minus the
    shortest, 95 % (each third drawn by itself).
    """
    body = []
    for cell in cells:
        words = results.scores(cell, "shown_words", shown_all)
        right = results.scores(cell, "acc", shown_all)
        if words is None or right is None:
            continue
        wrong = replace(right, values=100 - right.values)
        hops = {line["id"]: line.get("hops") for line in results.lines(cell)}
        place = thirds(words.by_id(), hops)
        parts = [_of(wrong, place, third) for third in range(3)]
        drawn = [None if part is None else resampled(part, "acc") for part in parts]
        more = combine([drawn[2], drawn[0]], [1, -1]) if all(drawn) else None
        body.append(
            [
                word(cell.keys["dataset"]),
                exhibit.methods[cell.keys["method"]].label,
                number(float(words.values.mean()), 0),
                *(within(d and d.interval(), 1, n=True) for d in drawn),
                within(more and more.interval(), 1, "+"),
            ]
        )
    if not body:
        return missing.note(cells, results, caption)
    head = ["data set", "passages", "words shown", *THIRDS, "longest minus shortest, points"]
    return Table(head, body, caption, name)


def shown_all(line: Mapping) -> bool:
    """Whether every gold passage was shown, of a question that has some."""
    return line["scores"].get("all_gold") == 1


def thirds(words: Mapping[str, float], alike: Mapping[str, object]) -> dict[str, int]:
    """Question -> 0, 1 or 2: its third by words, among those of which `alike` says the same."""
    found: dict[str, int] = {}
    for group in dict.fromkeys(alike[question] for question in words):
        mine = [question for question in words if alike[question] == group]
        mine.sort(key=lambda question: (words[question], question))
        found |= {question: 3 * rank // len(mine) for rank, question in enumerate(mine)}
    return found


def _of(scores: Scores, place: Mapping[str, int], third: int) -> Scores | None:
    """The scores of one third's questions; None where there is none."""
    mine = [question for question in scores.ids if place[question] == third]
    return scores.at(mine) if mine else None
