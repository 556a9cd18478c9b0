"""Bars in groups: rows of an exhibit side by side for each metric, as ERM4's figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..data.titles import word
from .exhibits import Row
from .figures import WIDTH, bars, legend_of_labels, plots
from .missing import note_of_rows
from .picture import Note, Picture
from .tables import data_of

HATCHES = ("", "//", "..", "xx", "\\\\", "++")
"""No colour tells anything alone."""


def figure(
    rows: Sequence[Row],
    methods: Mapping[str, str],
    metrics: Mapping[str, str],
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """A panel a data set, a group of bars a metric, a bar a row; whiskers are 95 %.

    methods: the exhibit's rows in the order of the bars, with their words; metrics likewise.
    Rows without records have no bar; without any a note says how to get them.
    """
    asked = [r for r in rows if r.keys["method"] in methods and r.metric in metrics]
    held = [row for row in asked if row.ours is not None]
    if not held:
        return note_of_rows(asked)
    plt, colours = plots()
    datasets = list(dict.fromkeys(row.keys["dataset"] for row in held))
    drawn, axes = plt.subplots(
        len(datasets), 1, figsize=(WIDTH, 2.4 * len(datasets) + 0.7), sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    breadth = 0.8 / len(methods)
    spoken = []
    for axis, dataset in zip(axes[:, 0], datasets, strict=True):
        for i, (method, said) in enumerate(methods.items()):
            mine = {
                r.metric: r.ours
                for r in held
                if (r.keys["dataset"], r.keys["method"]) == (dataset, method)
            }
            shown = [metric for metric in metrics if metric in mine]
            spans = [mine[metric] for metric in shown]
            places = [
                list(metrics).index(m) + (i - (len(methods) - 1) / 2) * breadth for m in shown
            ]
            axis.bar(
                places, [span.estimate for span in spans], breadth, yerr=bars(spans), capsize=2,
                color=colours[i], hatch=HATCHES[i % len(HATCHES)], edgecolor="white", label=said,
            )  # fmt: skip
            told = ", ".join(
                f"{metrics[m]} {span.estimate:.0f}" for m, span in zip(shown, spans, strict=True)
            )
            if told:
                spoken.append(f"{word(dataset)}, {said}: {told}")
        axis.set_title(word(dataset))
        axis.set_ylabel("%")
        axis.set_xticks(range(len(metrics)), list(metrics.values()))
    legend_of_labels(drawn)
    return Picture(drawn, "Bar chart. " + "; ".join(spoken) + ".", caption, name, data_of(held))
