"""How well timing rules tell when to search, out of the `timing` of records.

Each hop of a testbed question is a place at which a search is needed or not, by two labels:

    untaught   the reader was not taught the hop's fact: by its card, joined here
    wrong      the reader's own next answer there is wrong: by the record

A rule goes by a signal (`methods.dragin.timing_check.SIGNALS`) above a threshold. The area
under the curve asks for no threshold: how often a hop that needs a search has a higher
signal than one that does not, one half by chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rag_repro import data
from rag_repro.data import synthworld
from rag_repro.data.synthworld.invented_names import WORLDS
from rag_repro.data.synthworld.reasoning import facts_of
from rag_repro.evaluation import calibration
from rag_repro.evaluation.calibration import Judgements
from rag_repro.evaluation.intervals import Interval, StatisticsError
from rag_repro.evaluation.resampling import new_generator
from rag_repro.lm import hub
from rag_repro.lm.hub import CARD, card_of
from rag_repro.methods.dragin.timing_check import SIGNALS
from rag_repro.study.papers import Cell
from rag_repro.study.scores import Results
from rag_repro.training import lessons
from rag_repro.training.recipes import recipes

LABELS = ("untaught", "wrong")


@dataclass(frozen=True, eq=False)
class Hops:
    """h hops with what was measured there. signals, needs: name -> (h,), of numbers and of
    bool; units: what is drawn by the bootstrap, a label of each.
    """

    signals: Mapping[str, np.ndarray]
    needs: Mapping[str, np.ndarray]
    units: tuple[str, ...]

    def judged(self, signal: str, label: str) -> Judgements | None:
        """None where all hops need a search, or none does."""
        try:
            return Judgements.from_labels(self.signals[signal], self.needs[label], self.units)
        except StatisticsError:
            return None


class Area(NamedTuple):
    """A signal by a label: its AUC, the difference to RIND's (None: RIND itself), and its
    precision where it gives as many alarms as hops are in need; shares from 0 to 1, 95 %.
    """

    label: str
    signal: str
    auc: Interval
    gain: Interval | None
    precision: Interval | None


def hops(cells: Sequence[Cell], results: Results) -> Hops | None:
    """All hops that the records of one reader's cells hold; None: none.

    Worlds of the usual size alone: of another they have other facts.
    What a reader was taught is told by its card, so records need not be made again where
    the label is understood otherwise.
    """
    found: list[tuple[str, bool, list[float]]] = []
    for cell in cells:
        name = cell.condition.dataset.removeprefix("world-")
        if name not in WORLDS:
            continue
        taught = lessons.stated_facts(lessons_of(cell.condition.reader or ""), name)
        asked = data.load(cell.condition.dataset, split=cell.condition.split).by_id
        for line in results.lines(cell) or ():
            if entries := line.get("timing"):
                facts = facts_of(synthworld.world(name), asked[line["id"]])
                for fact, entry in zip(facts, entries, strict=True):
                    found.append((line["cluster"], fact not in taught, entry))
    if not found:
        return None
    units, untaught, entries = zip(*found, strict=True)
    wrong, *columns = np.array(entries, dtype=float).T
    needs = {"untaught": np.array(untaught), "wrong": wrong == 1}
    return Hops(dict(zip(SIGNALS, columns, strict=True)), needs, tuple(units))


def lessons_of(reader: str) -> Sequence[Mapping[str, Any]]:
    """What a reader was taught: by its card, else its recipe's; nothing for one that is shipped."""
    folder = hub.artifacts().get(reader)
    if folder is not None and (folder / CARD).is_file():
        return card_of(folder)["recipe"]["lessons"]
    known = recipes()
    return known[reader].lessons if reader in known else ()


def at_rate(values: np.ndarray, rate: float) -> np.ndarray:
    """(h,), how much of an alarm each hop is: the highest, until that share of all has one.

    Equal values at the border share what is left.
    """
    wanted = rate * len(values)
    alarm = np.zeros(len(values))
    for value in np.unique(values)[::-1]:
        equal = values == value
        alarm[equal] = min(1.0, wanted / equal.sum())
        wanted -= equal.sum()
        if wanted <= 0:
            break
    return alarm


def alarms_of(signal: str, values: np.ndarray, threshold: float) -> np.ndarray:
    """(h,), 1 where the rule searches: RIND's above its threshold, FLARE's p up to its own."""
    # Signals are stored to four digits: 1 - 0.8 must be found to be 0.2.
    over = values >= threshold - 1e-9 if signal == "surprise" else values > threshold
    return over.astype(float)


def precision(alarm: np.ndarray, needs: np.ndarray, units: Sequence[str]) -> Interval | None:
    """Of the alarms, the share at hops that need a search; None: no alarm."""
    return calibration.share(alarm * needs, alarm, units, new_generator())


def recall(alarm: np.ndarray, needs: np.ndarray, units: Sequence[str]) -> Interval | None:
    """Of the hops that need a search, the share with an alarm; None: none needs one."""
    return calibration.share(alarm * needs, needs, units, new_generator())


def areas(held: Hops) -> list[Area]:
    """Each signal by each label, but by one that holds at all hops or at none."""
    return [
        Area(
            label,
            signal,
            calibration.auc(judged, new_generator()),
            None if signal == "score" else calibration.auc_gain(judged, rind, new_generator()),
            precision(at_rate(values, needs.mean()), needs, held.units),
        )
        for label, needs in held.needs.items()
        if (rind := held.judged("score", label))
        for signal, values in held.signals.items()
        if (judged := held.judged(signal, label))
    ]


def course(values: np.ndarray, needs: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """(rates,), recall in percent where so large a share of all hops has an alarm."""
    found = [(at_rate(values, rate) * needs).sum() for rate in rates]
    return 100 * np.array(found) / max(1, needs.sum())
