"""A pair classifier's judgements as tables and figures, out of the `judged` of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.titles import word
from ..evaluation import calibration
from ..evaluation.calibration import Judgements
from ..evaluation.pair_metrics import BOTH, HARD, RANDOM
from ..evaluation.resampling import fresh
from ..evaluation.statistics import Interval
from ..study.papers import Cell
from ..study.scores import Results
from ..study.services import Workshop
from . import missing
from .exhibits import Row
from .figures import MARKERS, STYLES, WIDTH, bars, legend_of_labels, plots
from .picture import Download, Note, Picture
from .table import Table
from .traces import short
from .values import within


def judgements(lines: Sequence[Mapping[str, Any]], against: Sequence[int] = BOTH):
    """The judged pairs of recorded answers, positives and the negatives wanted; None: not both."""
    found = [
        (p, gold == 2, line["cluster"])
        for line in lines
        for _, _, p, gold in line.get("judged", ())
        if gold == 2 or gold in against
    ]
    if len({positive for _, positive, _ in found}) < 2:
        return None
    return Judgements.of(*zip(*found, strict=True))


def summary(cells: Sequence[Cell], results: Results, caption: str = "", name: str = "") -> Table:
    """One line a condition: AUC over all questions' pairs, accuracy, calibration.

    Intervals: 95 %, questions drawn. A condition without records says so.
    """
    head = ["data set", "classifier", "questions", "pairs", "AUC", "AUC, hard", "AUC, random"]
    head += ["accuracy", "Brier score", "calibration error"]
    body = []
    for cell in cells:
        lines = results.lines(cell) or ()
        judged = {kinds: judgements(lines, kinds) for kinds in (BOTH, (HARD,), (RANDOM,))}
        first = [word(cell.condition.label), cell.condition.configured.classifier]
        if None in judged.values():
            told = "no such pairs" if lines else missing.of_cells([cell])
            body.append([*first, told, *[""] * (len(head) - 3)])
            continue
        whole = judged[BOTH]
        of_each = [(calibration.auc, judged[kinds], 100) for kinds in judged]
        of_each += [(calibration.accuracy, whole, 100), (calibration.brier, whole, 1)]
        of_each += [(calibration.ece, whole, 1)]
        values = [said(f(j, fresh()), scale) for f, j, scale in of_each]
        asked = sum("judged" in line for line in lines)
        body.append([*first, asked, len(whole.p), *values])
    return Table(head, body, caption, name, Download.of(name, head, body))


def said(interval: Interval, scale: float) -> str:
    """As 91.2 [90.1, 92.3], or in three digits where it is no percentage."""
    return within(interval.cut(0, 1).scaled(scale), 1 if scale == 100 else 3)


def reliability(
    cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Picture | Note:
    """Share of positives against probability, one panel a data set; the bins' counts below it."""
    held = [(cell, judgements(results.lines(cell) or ())) for cell in cells]
    held = [(cell, calibration.bins(judged)) for cell, judged in held if judged is not None]
    if not held:
        return missing.note(cells, results, caption)
    plt, colours = plots()
    figure, axes = plt.subplots(
        2,
        len(held),
        figsize=(WIDTH, 4.2),
        squeeze=False,
        sharex=True,
        sharey="row",
        height_ratios=[3, 1],
        layout="constrained",
    )
    for column, (cell, bins) in enumerate(held):
        above, below = axes[0][column], axes[1][column]
        above.plot([0, 1], [0, 1], color="0.5", lw=1, ls="--")
        above.plot([b.p for b in bins], [b.share for b in bins], color=colours[0], marker="o")
        places = [min(int(b.p * calibration.BINS), calibration.BINS - 1) for b in bins]
        width = 1 / calibration.BINS
        below.bar(
            [(i + 0.5) * width for i in places],
            [b.n for b in bins],
            width=width * 0.9,
            color=colours[0],
        )
        above.set_title(word(cell.condition.label))
        below.set_xlabel("probability")
        below.set_xticks([0, 0.5, 1])
    axes[0][0].set_ylabel("share of gold pairs")
    axes[1][0].set_ylabel("pairs")
    rows = [
        [cell.condition.label, f"{b.p:.3f}", f"{b.share:.3f}", b.n] for cell, bs in held for b in bs
    ]
    alt = "Reliability diagram. " + "; ".join(
        f"{word(row[0])}, probability {float(row[1]):.2f}: share {float(row[2]):.2f} of {row[3]}"
        for row in rows
    )
    data = Download.of(name, ["dataset", "probability", "share", "pairs"], rows)
    return Picture(figure, f"{alt}.", caption, name, data)


def worked(cell: Cell, results: Results, workshop: Workshop, name: str = "") -> Table | Note:
    """One recorded question with its pairs: of those with a pair rightly accepted and a hard one
    rightly refused the first, as the paper's table 10 shows three of each.
    """
    lines = results.lines(cell) or ()

    def shows(line: Mapping[str, Any]) -> bool:
        judged = line.get("judged", ())
        return any(g == 2 and p >= 0.5 for *_, p, g in judged) and any(
            g == HARD and p < 0.5 for *_, p, g in judged
        )

    line = next(filter(shows, lines), None)
    if line is None:
        return missing.note([cell], results)
    dataset = workshop.dataset(cell.condition.dataset, cell.condition.split)
    passage = dataset.corpus.by_id
    body = [
        [
            short(passage[d].text),
            short(passage[e].text),
            {2: "both", HARD: "one", RANDOM: "none"}[gold],
            f"{p:.2f}",
            "accepted" if p >= 0.5 else "refused",
        ]
        for d, e, p, gold in line["judged"]
    ]
    question = dataset.by_id[line["id"]]
    head = ["one passage", "the other", "gold", "probability", "so it is"]
    return Table(head, body, f"Pairs judged for: {question.text}", name)


def against_auc(
    chosen: Sequence[Row],
    checked: Sequence[Row],
    metrics: Mapping[str, str],
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """What a selection hands on, by how well its classifier tells pairs apart: a panel a metric.

    chosen: rows of selections by `classifier`; checked: rows of the same classifiers'
    pair_auc. metrics: name -> words for the axis.
    """
    auc = {
        (row.keys["dataset"], row.keys["classifier"]): row.ours.estimate
        for row in checked
        if row.ours and row.metric == "pair_auc"
    }
    wanted = [row for row in chosen if row.metric in metrics]
    held = [
        (auc[place], row)
        for row in wanted
        if row.ours and (place := (row.keys["dataset"], row.keys["classifier"])) in auc
    ]
    if not held:
        return missing.note_of_rows([*wanted, *checked])
    plt, colours = plots()
    figure, axes = plt.subplots(
        1, len(metrics), figsize=(WIDTH, 3.2), squeeze=False, layout="constrained"
    )
    series = list(dict.fromkeys((r.keys["dataset"], r.keys["method"]) for _, r in held))
    for axis, (metric, words) in zip(axes[0], metrics.items(), strict=True):
        for i, (dataset, method) in enumerate(series):
            mine = sorted(
                (
                    (x, r)
                    for x, r in held
                    if (r.keys["dataset"], r.keys["method"], r.metric) == (dataset, method, metric)
                ),
                key=lambda pair: pair[0],
            )
            axis.errorbar(
                [x for x, _ in mine],
                [r.ours.estimate for _, r in mine],
                yerr=bars(r.ours for _, r in mine),
                color=colours[i],
                marker=MARKERS[i],
                ls=STYLES[i % len(STYLES)],
                ms=5,
                capsize=2,
                label=f"{word(dataset)}, {method.upper()}",
            )
        axis.set_xlabel("AUC of the pairs, %")
        axis.set_ylabel(words)
    legend_of_labels(figure)
    head = ["dataset", "method", "classifier", "metric", "auc", "value"]
    rows = [
        [
            r.keys["dataset"],
            r.keys["method"],
            r.keys["classifier"],
            r.metric,
            f"{x:.2f}",
            f"{r.ours.estimate:.2f}",
        ]
        for x, r in held
    ]
    alt = "Line chart. " + "; ".join(
        f"{word(d)}, {m}, {c}, AUC {float(x):.0f}: {metric} {float(v):.1f}"
        for d, m, c, metric, x, v in rows
    )
    return Picture(figure, f"{alt}.", caption, name, Download.of(name, head, rows))
