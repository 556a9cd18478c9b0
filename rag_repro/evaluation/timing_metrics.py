"""How well timing rules tell a question's own hops apart, out of its record's line.

A line's `timing` holds, of each hop at which rules were checked, [1 where the reader's own
next answer is wrong, then its signals]: entropy, 1 - p, attention, RIND's score, its parts,
and the released code's score. These are scores of one question, which a mean and its
interval can be taken of; what needs the hops of all questions at once is in
`analysis.hop_timing`.
"""

from __future__ import annotations

from functools import partial

from .metric import Line, described, percent
from .pair_metrics import auc

WRONG, ENTROPY, SURPRISE, ATTENTION, SCORE, RELEASED = 0, 1, 2, 3, 4, 8
"""Places in a hop's entry."""


def wrong_hops(line: Line) -> float | None:
    """Share of the hops at which the reader's own next answer is wrong; None: none was checked."""
    hops = line.get("timing")
    return sum(hop[WRONG] for hop in hops) / len(hops) if hops else None


def told_apart(signal: int, line: Line) -> float | None:
    """How often a hop with a wrong answer has the higher signal; None without both kinds."""
    hops = line.get("timing", ())
    wrong, right = ([hop[signal] for hop in hops if hop[WRONG] == kind] for kind in (1, 0))
    return auc(wrong, right)


TABLE = (
    described("wrong_hops", wrong_hops),
    *(
        percent(
            f"hop_auc{name}",
            f"AUC of hops ({words})",
            "line",
            partial(told_apart, place),
            f"how often {words} is higher at a hop with a wrong answer than at a right one of "
            "the same question",
        )
        for name, words, place in (
            ("", "RIND", SCORE),
            ("_entropy", "entropy", ENTROPY),
            ("_surprise", "1 - p", SURPRISE),
            ("_attention", "attention", ATTENTION),
            ("_released", "RIND as released", RELEASED),
        )
    ),
)
