"""Which questions a contrast is about: of some kinds, or where another metric moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from ..evaluation import metrics
from ..evaluation.heuristics import GUESSED
from .papers import Cell, Contrast, Paper
from .scores import Keep, Only, Results

OfKind = Callable[[str | None], bool]


def deciding(paper: Paper, dataset: str, contrast: Contrast | None = None) -> OfKind:
    """Whether questions of a kind decide: of one that the paper's data have, and where answers
    are compared of none that can be guessed from the question.

    contrast: its own `kinds` stand in place of the paper's; but no primary contrast of answers is
    decided by guesses. None: those of the gate, which is about answers.
    """
    own = contrast.kinds if contrast else ()
    named = own or next((k for name, k in paper.kinds.items() if fnmatchcase(dataset, name)), ())
    aside = own and contrast.role == "secondary"
    out = GUESSED if not aside and (contrast is None or of_answers(contrast)) else ()
    return lambda kind: (not named or kind in named) and kind not in out


def of_answers(contrast: Contrast) -> bool:
    """Whether one of its metrics tells of answers."""
    sides = (contrast.more, contrast.less or {})
    return any(metrics.get(side.get("metric", contrast.metric)).of_answers for side in sides)


def keep(
    contrast: Contrast,
    more: Cell,
    less: Cell | None,
    results: Results,
    of_kind: OfKind = lambda kind: True,
) -> Keep:
    """A filter of the two cells' lines, by kind (`deciding`) and `among`."""
    moved = _moved(contrast.among, more, less, results) if contrast.among and less else None
    return Only(of_kind, moved)


def words(contrast: Contrast) -> str:
    """What the questions must be, as "of the kinds comparison, with recall higher"."""
    parts = [f"of the kinds {', '.join(contrast.kinds)}"] if contrast.kinds else []
    changes = [f"{metric} {change}" for metric, change in contrast.among.items()]
    return ", ".join(parts + ([f"with {' and '.join(changes)}"] if changes else []))


def _moved(wanted: Mapping[str, str], more: Cell, less: Cell, results: Results) -> frozenset[str]:
    """Ids of the questions whose metrics stand to each other as wanted."""
    held = []
    for metric, change in wanted.items():
        ours, theirs = (results.values(cell, metric) for cell in (more, less))
        common = ours.keys() & theirs.keys()
        held.append({name for name in common if _holds(change, ours[name], theirs[name])})
    return frozenset.intersection(*map(frozenset, held))


def _holds(change: str, ours: float, theirs: float) -> bool:
    if change == "found":
        return ours > 0 and theirs > 0
    return change == ("higher" if ours > theirs else "lower" if ours < theirs else "same")
