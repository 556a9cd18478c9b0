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
from typing import Any

import numpy as np

from ..data import synthworld
from ..data.synthworld.names import WORLDS
from ..data.synthworld.reasoning import facts_of
from ..evaluation import calibration
from ..evaluation.calibration import Judgements
from ..evaluation.resampling import fresh
from ..evaluation.statistics import Interval, StatisticsError
from ..lm import hub
from ..lm.adapters import CARD, card_of
from ..methods.dragin.settings import DynamicSettings
from ..methods.dragin.timing_check import SIGNALS
from ..study.papers import Cell
from ..study.scores import Results
from . import missing
from .figures import MARKERS, STYLES, WIDTH, legend_of_labels, plots
from .picture import Download, Note, Picture
from .table import Table
from .values import in_points, number, share_text

LABELS = {
    "untaught": "the reader was not taught the fact",
    "wrong": "its own next answer is wrong",
}
THRESHOLDS = {
    "score": DynamicSettings.threshold,
    "released": DynamicSettings.threshold,
    "surprise": 1 - DynamicSettings.doubt,
}
"""Where the rules of the loop search, unless told otherwise: above the first two, from the last."""
DRAWN = ("score", "entropy", "surprise", "attention", "released")
EVERY = "every sentence (FS-RAG)"


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
            return Judgements.of(self.signals[signal], self.needs[label], self.units)
        except StatisticsError:
            return None


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
        here, stated = synthworld.world(name), _stated(cell.condition.reader, name)
        asked = _questions(cell)
        for line in results.lines(cell) or ():
            if entries := line.get("timing"):
                facts = facts_of(here, asked[line["id"]])
                for fact, entry in zip(facts, entries, strict=True):
                    found.append((line["cluster"], fact not in stated, entry))
    if not found:
        return None
    units, untaught, entries = zip(*found, strict=True)
    wrong, *columns = np.array(entries, dtype=float).T
    needs = {"untaught": np.array(untaught), "wrong": wrong == 1}
    return Hops(dict(zip(SIGNALS, columns, strict=True)), needs, tuple(units))


def lessons_of(reader: str) -> Sequence[Mapping[str, Any]]:
    """What a reader was taught: by its card, else its recipe's; nothing for one that is shipped."""
    from ..training.recipes import recipes

    folder = hub.artifacts().get(reader)
    if folder is not None and (folder / CARD).is_file():
        return card_of(folder)["recipe"]["lessons"]
    known = recipes()
    return known[reader].lessons if reader in known else ()


def _stated(reader: str | None, world: str):
    from ..training import lessons

    return lessons.stated_facts(lessons_of(reader or ""), world)


def _questions(cell: Cell):
    from .. import data

    return data.load(cell.condition.dataset, split=cell.condition.split).by_id


# ------------------------------------------------------------------------ numbers


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
    return calibration.share(alarm * needs, alarm, units, fresh())


def recall(alarm: np.ndarray, needs: np.ndarray, units: Sequence[str]) -> Interval | None:
    """Of the hops that need a search, the share with an alarm; None: none needs one."""
    return calibration.share(alarm * needs, needs, units, fresh())


# ------------------------------------------------------------------------- tables


def areas(
    cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a label and signal: AUC, its difference to RIND's, precision at equal rate.

    The equal rate is as many alarms as there are hops that need one, so that each missed
    hop is a false alarm elsewhere: recall equals precision there. In percent and points,
    95 %, questions drawn (the testbed's clusters of them).
    """
    held = hops(cells, results)
    if held is None:
        return missing.note(cells, results, caption)
    body = []
    for label, words in LABELS.items():
        needs = held.needs[label]
        rind = held.judged("score", label)
        if rind is None:
            body.append([words, f"so at {'all' if needs.all() else 'none'} of the hops", *[""] * 4])
            continue
        for signal, shown in SIGNALS.items():
            judged = held.judged(signal, label)
            area = calibration.auc(judged, fresh())
            gain = None
            if signal != "score":
                gain = calibration.auc_gain(judged, rind, fresh())
            alarm = at_rate(held.signals[signal], needs.mean())
            right = precision(alarm, needs, held.units)
            against = in_points(gain, "+")
            shares = share_text(area), against, share_text(right)
            body.append([words, shown, *shares, len(needs)])
    head = ["a search is needed where", "signal", "AUC, %", "against RIND, points"]
    head += ["precision at equal rate, %", "hops"]
    return Table(head, body, caption, name, Download.of(name, head, body))


def rules(
    cells: Sequence[Cell],
    results: Results,
    thresholds: Mapping[str, float] = THRESHOLDS,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a label and rule at its own threshold: alarms, precision, recall, in percent."""
    held = hops(cells, results)
    if held is None:
        return missing.note(cells, results, caption)
    alarms = {
        rule_named(signal, least): alarms_of(signal, held.signals[signal], least)
        for signal, least in thresholds.items()
    }
    alarms[EVERY] = np.ones(len(held.units))
    body = []
    for label, words in LABELS.items():
        needs = held.needs[label]
        for rule, alarm in alarms.items():
            shares = [f(alarm, needs, held.units) for f in (precision, recall)]
            told = ["" if share is None else share_text(share) for share in shares]
            body.append([words, rule, number(100 * alarm.mean(), 1), *told, len(needs)])
    head = ["a search is needed where", "rule", "alarms, % of hops", "precision, %", "recall, %"]
    head += ["hops"]
    return Table(head, body, caption, name, Download.of(name, head, body))


def rule_named(signal: str, threshold: float) -> str:
    """A rule in words: what it goes by, and from where on."""
    least = f"p up to {1 - threshold:g}" if signal == "surprise" else f"above {threshold:g}"
    return f"{SIGNALS[signal]}, {least}"


# ------------------------------------------------------------------------- figure


def curves(
    cells: Sequence[Cell],
    results: Results,
    signals: Sequence[str] = DRAWN,
    thresholds: Mapping[str, float] = THRESHOLDS,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """Recall against the share of hops with an alarm, a panel a label: rules at every equal rate.

    Large and hollow: where the rules' own thresholds are. Dashed: alarms by chance.
    """
    held = hops(cells, results)
    if held is None:
        return missing.note(cells, results, caption)
    plt, colours = plots()
    figure, axes = plt.subplots(
        1, len(LABELS), figsize=(WIDTH, 4.0), sharey=True, squeeze=False, layout="constrained"
    )
    rates = np.linspace(0, 1, 21)
    rows = []
    for axis, (label, words) in zip(axes[0], LABELS.items(), strict=True):
        needs = held.needs[label]
        axis.plot([0, 100], [0, 100], color="0.5", lw=1, ls="--", label="by chance")
        for i, signal in enumerate(signals):
            values = held.signals[signal]
            found = [_found(at_rate(values, rate), needs) for rate in rates]
            look = {"color": colours[i], "marker": MARKERS[i]}
            style = {"ls": STYLES[i % len(STYLES)], "lw": 1.6, "ms": 4, "markevery": (2 + i, 5)}
            axis.plot(100 * rates, found, label=SIGNALS[signal], **look, **style)
            if signal in thresholds:
                alarm = alarms_of(signal, values, thresholds[signal])
                ring = {"ms": 11, "mfc": "none", "mew": 1.6}
                axis.plot(100 * alarm.mean(), _found(alarm, needs), **look, **ring)
            rows += [
                [words, SIGNALS[signal], f"{100 * rate:.0f}", f"{share:.1f}"]
                for rate, share in zip(rates, found, strict=True)
            ]
        axis.set_title(words)
        axis.set_xlabel("hops with an alarm, %")
        axis.set_xlim(0, 100)
        axis.set_ylim(0, 102)
    axes[0][0].set_ylabel("hops that need a search, % found")
    legend_of_labels(figure)
    alt = "Line chart. " + "; ".join(
        f"{words}, {signal}, alarms at {rate} %: {float(share):.0f} % found"
        for words, signal, rate, share in rows
        if rate in ("25", "50")
    )
    head = ["needed_where", "signal", "alarms", "found"]
    return Picture(figure, f"{alt}.", caption, name, Download.of(name, head, rows))


def _found(alarm: np.ndarray, needs: np.ndarray) -> float:
    """Recall in percent; 0 where nothing needs a search."""
    return 100 * float((alarm * needs).sum() / max(1, needs.sum()))
