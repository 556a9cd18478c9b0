"""Does the reader's own attention tell gold passages apart, and do features know more? (r2ag.c01)

The paper's premise is a gap: a reader cannot recover from the passages' text what the retriever
knows. So both are asked for the same passages: the features r, γ and ζ on one side, on the other
where the prompt's last token looks under plain RAG, layer by layer. Each side is fitted to other
questions (`feature_areas.fitted`); what one adds to the other is what the other lacks. Both know a
passage's place and length, for attention goes by these whatever a passage says, and of some data
sets the gold passages are longer.

Attention is what reaches the answer's first word, and not all that hidden states may hold: a gap
that shows here is one in what is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.titles import word
from ..evaluation import calibration
from ..evaluation.calibration import Judgements
from ..evaluation.resampling import fresh
from ..evaluation.statistics import Interval
from .feature_areas import FOLDS, fitted, kinds, ranked
from .lists import Listed
from .picture import Note
from .table import Table
from .values import in_points

Line = Mapping[str, Any]
Seen = Sequence[tuple[Listed, Line]]

BARE = "rank and length, fitted"
RETRIEVER = "r, γ, ζ, rank and length, fitted"
READER = "attention, rank and length, fitted"
BOTH = "r, γ, ζ, attention, rank and length, fitted"


def seen(lists: Sequence[Listed], lines: Sequence[Line]) -> list[tuple[Listed, Line]]:
    """Each list whose record tells of attention, with its record's line, passages alike.

    ValueError: a record's passages are others, or stand in another order.
    """
    held = {line["id"]: line for line in lines if line.get("attention")}
    made = [(one, held[one.question.id]) for one in lists if one.question.id in held]
    for one, line in made:
        if list(line["hits"]) != [hit.passage.id for hit in one.hits]:
            raise ValueError(
                f"question {one.question.id!r}: its record has other passages than are ranked "
                "now, so that its attention is not theirs; ask it again"
            )
    return made


def looks(line: Line) -> np.ndarray:
    """(passages, layers) the logarithm of each passage's attention, less its list's mean.

    Passages of a list compete for a layer's attention, whose size the rest of a prompt decides.
    """
    logs = np.log1p(np.array(line["attention"]["words"], dtype=float)).T
    return logs - logs.mean(axis=0)


def signals(held: Seen) -> dict[str, np.ndarray]:
    """Signal -> a value for each passage of all lists, in their order; higher: rather gold."""
    lists = [one for one, _ in held]
    rows = np.concatenate([one.rows for one in lists])
    ranks = np.concatenate([np.arange(len(one.rows)) for one in lists])[:, None]
    # Of the words alone: marks are as long before every passage.
    lengths = np.log([[words] for _, line in held for _, words in line["attention"]["tokens"]])
    attention = np.concatenate([looks(line) for _, line in held])
    bare, told = np.hstack([ranks, lengths]), np.hstack([rows, ranks, lengths])
    made = {
        "r": rows[:, 0],
        "rank": -ranks[:, 0],
        BARE: fitted(bare, lists),
        RETRIEVER: fitted(told, lists),
        READER: fitted(bare, lists, beside=attention),
        BOTH: fitted(told, lists, beside=attention),
    }
    return {said: ranked(values) for said, values in made.items()}


@dataclass(frozen=True)
class Fit:
    """What each signal says of one data set's passages, and over how many lists."""

    judged: Mapping[str, Judgements]
    n: int

    def gain(self, ours: str, theirs: str) -> Interval:
        """What one signal's area has over another's, paired by lists."""
        return calibration.auc_gain(self.judged[ours], self.judged[theirs], fresh())


def fits(held: Mapping[str, Seen]) -> dict[str, Fit]:
    """Of each data set with as many clusters of questions as there are folds."""
    made = {}
    for dataset, one in held.items():
        lists = [listed for listed, _ in one]
        if len(set(kinds(lists)[1])) >= FOLDS:
            judged = {said: Judgements.of(v, *kinds(lists)) for said, v in signals(one).items()}
            made[dataset] = Fit(judged, len(lists))
    return made


def table(fits: Mapping[str, Fit], caption: str = "", name: str = "") -> Table | Note:
    """One line a data set and signal: its area, and what it has over that of rank and length."""
    body = []
    for dataset, one in fits.items():
        for said, of in one.judged.items():
            more = "" if said == BARE else in_points(one.gain(said, BARE), "+")
            body.append([word(dataset), said, in_points(calibration.auc(of, fresh())), more, one.n])
    if not body:
        return Note(f"{caption}: not shown, since its records or its data are not here.")
    head = ["data set", "signal", "AUC, % [95 %]", "more than rank and length, points", "lists"]
    return Table(head, body, caption, name)


def outcome(fits: Mapping[str, Fit]) -> Note | None:
    """In a sentence a data set: what features add to the reader's attention, and it to them."""
    told = []
    for dataset, one in fits.items():
        features, attention = one.gain(BOTH, READER), one.gain(BOTH, RETRIEVER)
        told.append(
            f"{word(dataset)}: the features add {in_points(features, '+')} points to attention, "
            f"{_says(features)}; "
            f"attention adds {in_points(attention, '+')} to the features, {_says(attention)}"
        )
    return Note("\n".join(f"- {line}." for line in told)) if told else None


def _says(gain: Interval) -> str:
    if gain.lo > 0:
        return "which shows"
    return "which is a loss" if gain.hi < 0 else "in which nothing shows"
