"""What ERM4's memory saves and costs, out of records: searches, items, answers, popularity.

A record's `trigger` has of each query [popularity, whether it was searched for, found, recalled,
both, gold among the recalled]; its `counts` what was searched for and fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..data.titles import word
from ..evaluation import calibration, metrics
from ..evaluation.resampling import fresh
from ..evaluation.statistics import Resampled, StatisticsError
from ..study.papers import Cell, Exhibit
from ..study.scores import Results, resampled
from . import missing
from .figures import MARKERS, WIDTH, bars, legend_of_labels, plots
from .picture import Download, Note, Picture
from .table import Table
from .values import number, share_text, within

OUTSIDE = "outside"
"""The row without memory, to which all others of an exhibit are compared."""
ITEMS = {"fetched": "external", "memory_items": "memory", "irrelevant": "irrelevant"}


def outside(cells: Iterable[Cell], cell: Cell) -> Cell | None:
    """The same questions without memory, whatever the trigger's thresholds are."""
    keys = {k: v for k, v in cell.keys.items() if k not in ("tau", "theta")}
    wanted = {**keys, "method": OUTSIDE}
    return next((c for c in cells if c.tier == cell.tier and dict(c.keys) == wanted), None)


def row_named(exhibit: Exhibit, cell: Cell) -> str:
    """As "memory and trigger, τ 0.6, θ 3"."""
    said = [exhibit.methods[cell.keys["method"]].label]
    said += [
        f"{s} {cell.keys[key]:g}" for key, s in (("tau", "τ"), ("theta", "θ")) if key in cell.keys
    ]
    return ", ".join(said)


# --------------------------------------------------------------- what it saves, and costs


def saved(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a cell: searches a question, how many fewer, items, and what answers it costs.

    metric: of answers, or of what is found. Searches and that metric are paired with the row
    without memory on the same questions, 95 %.
    """
    body = []
    for cell in cells:
        searches, answers = (results.scores(cell, m) for m in ("searches", metric))
        if searches is None:
            continue
        fewer, lost = _against(exhibit, cell, results, metric)
        items = [results.scores(cell, m) for m in ITEMS]
        body.append(
            [
                word(cell.keys["dataset"]),
                row_named(exhibit, cell),
                within(resampled(searches, "searches").interval(), 2, n=True),
                within(fewer and fewer.interval().flipped().shifted(100), 1),
                *("" if i is None else number(float(i.values.mean())) for i in items),
                within(answers and resampled(answers, metric).interval(), 1),
                within(lost and lost.interval(), 1, "+"),
            ]
        )
    if not body:
        return missing.note(cells, results, caption)
    symbol = metrics.get(metric).symbol
    head = ["data set", "row", "searches a question [95 %], n", "saved, %", *ITEMS.values()]
    head += [f"{symbol}, %", "against no memory, points"]
    return Table(head, body, caption, name, Download.of(name, head, body))


def by_tau(
    cells: Sequence[Cell],
    results: Results,
    printed: Mapping[tuple[str, ...], float],
    metric: str = "acc_words",
    theirs: str = "hit",
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """Items a question and answers along τ, a panel a data set; hollow and dashed: the paper's.

    cells: of the row with memory. printed: as `printed.values` gives table 2. metric: ours in
    percent; theirs: the paper's beside it.
    """
    rows = [
        (cell.keys["dataset"], cell.keys["tau"], m, resampled(scores, m).interval())
        for cell in cells
        for m in (*ITEMS, metric)
        if (scores := results.scores(cell, m)) is not None
    ]
    if not rows:
        return missing.note(cells, results, caption)
    plt, colours = plots()
    datasets = list(dict.fromkeys(row[0] for row in rows))
    figure, axes = plt.subplots(
        2, len(datasets), figsize=(WIDTH, 5.2), sharex=True, sharey="row", squeeze=False,
        layout="constrained",
    )  # fmt: skip
    paper = {(float(tau), m): value for (_, _, tau, m), value in printed.items()}
    words = {**ITEMS, metric: "answers"}
    spoken = []
    for column, dataset in enumerate(datasets):
        for i, (m, label) in enumerate(words.items()):
            axis = axes[int(m == metric)][column]
            look = {"color": colours[i], "marker": MARKERS[i], "ms": 5}
            held = sorted((tau, span) for d, tau, one, span in rows if (d, one) == (dataset, m))
            if held:
                x, spans = zip(*held, strict=True)
                y = [span.estimate for span in spans]
                axis.errorbar(x, y, yerr=bars(spans), capsize=2, label=label, **look)
                told = ", ".join(f"{v:.1f} at {t:g}" for t, v in zip(x, y, strict=True))
                spoken.append(f"{word(dataset)}, {label}: {told}")
            points = sorted(
                (tau, v) for (tau, one), v in paper.items() if one == (theirs if m == metric else m)
            )
            if points:
                axis.plot(*zip(*points, strict=True), ls="--", mfc="none", **look)
        axes[0][column].set_title(word(dataset))
        axes[1][column].set_xlabel("τ")
    axes[0][0].set_ylabel("items a question")
    axes[1][0].set_ylabel("answers, %")
    legend_of_labels(figure)
    return Picture(figure, "Line chart. " + "; ".join(spoken) + ".", caption, name)


# ---------------------------------------------------------------------- both thresholds


def grid(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set and τ, a column a θ: searches saved in %, and the change of a metric.

    Against the row without memory, on the same questions; the change in points.
    """
    told: dict[tuple[str, float], dict[int, str]] = {}
    for cell in cells:
        fewer, change = _against(exhibit, cell, results, metric)
        if fewer is None:
            continue
        text = f"{100 - fewer.estimate:.0f} %"
        text += "" if change is None else f" ({change.estimate:+.1f})"
        told.setdefault((cell.keys["dataset"], cell.keys["tau"]), {})[cell.keys["theta"]] = text
    if not told:
        return missing.note(cells, results, caption)
    thetas = sorted({theta for by in told.values() for theta in by})
    body = [
        [word(dataset), f"{tau:g}", *(by.get(theta, "") for theta in thetas)]
        for (dataset, tau), by in told.items()
    ]
    head = ["data set", "τ", *(f"θ {theta}" for theta in thetas)]
    return Table(head, body, caption, name, Download.of(name, head, body))


def calibrated(
    exhibit: Exhibit,
    tune: Sequence[Cell],
    test: Sequence[Cell],
    results: Results,
    metric: str,
    most: float,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """The thresholds that one set of questions chooses, and what they do on others.

    Chosen: of the pairs (τ, θ) that lose at most `most` points of the metric on `tune` the one
    that saves most searches; of equal ones the strictest. None may lose so little: then the
    table says so. Then one line a data set of `test` with that pair, 95 %.
    """
    told = {(c.keys["tau"], c.keys["theta"]): _against(exhibit, c, results, metric) for c in tune}
    told = {pair: sides for pair, sides in told.items() if None not in sides}
    if not told:
        return missing.note([*tune, *test], results, caption)
    fits = [pair for pair, (_, change) in told.items() if change.estimate >= -most]
    if not fits:
        return Table(["chosen"], [[f"none: each loses more than {most:g} points"]], caption, name)
    tau, theta = max(fits, key=lambda pair: (-told[pair][0].estimate, pair))
    body = []
    for cell in [*tune, *test]:
        if (cell.keys["tau"], cell.keys["theta"]) != (tau, theta):
            continue
        kept, change = _against(exhibit, cell, results, metric)
        if kept is not None and change is not None:
            saved_ = within(kept.interval().flipped().shifted(100), 1)
            body.append([word(cell.keys["dataset"]), saved_, within(change.interval(), 1, "+")])
    head = [f"data set, at τ {tau:g} and θ {theta}", "searches saved, % [95 %]"]
    head.append(f"{metrics.get(metric).symbol}, points")
    return Table(head, body, caption, name, Download.of(name, head, body))


def _against(
    exhibit: Exhibit, cell: Cell, results: Results, metric: str
) -> tuple[Resampled | None, Resampled | None]:
    """Searches in % of those without memory, and the change of the metric; None: not told.

    The row without memory stands beside nothing.
    """
    base = outside(exhibit.cells(), cell)
    base = None if base == cell else base
    return results.percent(cell, base, "searches"), results.gain(cell, base, metric)


def areas(
    cells: Sequence[Cell], everything: Sequence[Cell], results: Results, caption="", name=""
) -> Table | Note:
    """One line a data set and τ: does popularity at τ tell whether memory holds a gold passage?

    cells: of the row with memory, of one θ (popularity does not depend on it). everything: of
    the row that recalls all of memory. Last: the largest similarity, to the steps of τ, since it
    reaches τ just where the popularity at τ is 1 or more. AUC in percent, 95 %.
    """
    body = []
    for dataset in dict.fromkeys(cell.keys["dataset"] for cell in cells):
        whole = next((c for c in everything if c.keys["dataset"] == dataset), None)
        lines = results.lines(whole) if whole else None
        holds = {x["id"]: kept for x in lines or () if (kept := _holds(x)) is not None}
        swept = {c.keys["tau"]: c for c in cells if c.keys["dataset"] == dataset}
        told = {tau: _popular(results.lines(swept[tau]) or ()) for tau in sorted(swept)}
        told = {tau: by for tau, by in told.items() if by}
        ids = [q for q in holds if all(q in by for by in told.values())]
        if not ids or not told:
            continue
        truth = [holds[q] for q in ids]
        share = number(100 * float(np.mean(truth)), 1)
        units = {x["id"]: x["cluster"] for x in lines}
        columns = {f"popularity, τ {tau:g}": [by[q] for q in ids] for tau, by in told.items()}
        columns["largest similarity"] = [
            max([0.0, *(tau for tau, by in told.items() if by[q] >= 1)]) for q in ids
        ]
        for said_, column in columns.items():
            try:
                judged = calibration.Judgements.of(column, truth, [units[q] for q in ids])
            except StatisticsError:
                area = "all alike"
            else:
                area = share_text(calibration.auc(judged, fresh()))
            body.append([word(dataset), said_, area, share, len(ids)])
    if not body:
        return missing.note([*cells, *everything], results, caption)
    head = ["data set", "told by", "AUC, %", "memory holds gold, % of questions", "questions"]
    return Table(head, body, caption, name, Download.of(name, head, body))


def _holds(line: Mapping[str, Any]) -> bool | None:
    """Whether all of memory holds a gold passage; None where nobody knows."""
    told = [row[5] for row in line.get("trigger", ()) if row[5] is not None]
    return any(told) if told else None


def _popular(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Question -> popularity, the mean over its queries."""
    held = {line["id"]: [row[0] for row in line.get("trigger", ())] for line in lines}
    return {name: sum(told) / len(told) for name, told in held.items() if told}


# ---------------------------------------------------------------------- equal titles


def nearest(
    question: Any, reservoir: Any, taus: Sequence[float], most: int = 10, name: str = ""
) -> list[Table]:
    """A query beside the titles that memory holds, the most similar first; and its popularity."""
    hits = reservoir.recall(question.text, k=max(most, len(reservoir)))
    gold = set(question.gold_ids)
    body = [
        [hit.rank, hit.passage.title, f"{hit.score:.3f}", "yes" if hit.passage.id in gold else ""]
        for hit in hits[:most]
    ]
    head = ["place", "title in memory", "cosine", "gold"]
    counts = [sum(hit.score >= tau for hit in hits) for tau in taus]
    return [
        Table(head, body, f"“{question.text}”, and what memory has", name),
        Table([f"τ {tau:g}" for tau in taus], [counts], "Popularity, by τ"),
    ]
