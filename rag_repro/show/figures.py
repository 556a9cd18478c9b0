"""What all figures of the book share: palette, markers, widths, error bars, legends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rag_repro.evaluation.statistics import Interval
from rag_repro.show.picture import SLIM

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 8.0  # inches; a page shows them at about 90 points an inch
# Methods differ by colour and by marker, metrics by line style: no colour tells anything alone.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p")
STYLES = ("-", "--", ":", "-.")


def plots():
    """pyplot and the palette, styled once here: colour-blind safe, light grid."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    sns.set_theme(context="notebook", style="whitegrid", palette="colorblind", font_scale=0.85)
    plt.rcParams["text.parse_math"] = False  # a "$" in a name is a "$"
    colours = list(sns.color_palette("colorblind"))
    # A dark one comes fourth: seaborn's own fourth is near its second to a deuteranope's eye. Its
    # pink and its yellow come last: they are hardly seen on white.
    *first, pink, grey, yellow, blue = colours
    return plt, [*first[:3], (0.13, 0.13, 0.13), *first[3:], grey, blue, pink, yellow]


def across(panels: int = 1) -> float:
    """Inches of so many panels side by side; one alone fits a phone."""
    return SLIM if panels == 1 else WIDTH


def bars(intervals: Iterable[Interval]) -> list[list[float]]:
    """The lengths of error bars: down from each estimate, and up."""
    intervals = list(intervals)
    return [[i.estimate - i.lo for i in intervals], [i.hi - i.estimate for i in intervals]]


def legend(
    figure: Figure,
    looks: Iterable[tuple[Any, str]],
    words: Iterable[str],
    styles: Iterable[str] = (),
    **line: Any,
) -> None:
    """Below the figure: a colour and marker for each of the words, then line styles alone.

    styles: words for the first of `STYLES`. line: how all the former are drawn, as ls="".
    """
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, label=said, **line)
        for (colour, marker), said in zip(looks, words, strict=False)
    ]
    handles += [
        Line2D([], [], color="0.3", ls=style, label=said)
        for style, said in zip(STYLES, styles, strict=False)
    ]
    _below(figure, handles)


def legend_of_labels(figure: Figure) -> None:
    """Below the figure: what its axes have labelled, each label once."""
    found = [axis.get_legend_handles_labels() for axis in figure.axes]
    by_label = {
        label: h for handles, labels in found for h, label in zip(handles, labels, strict=True)
    }
    _below(figure, [*by_label.values()], [*by_label])


def _below(figure: Figure, handles: Sequence[Any], labels: Sequence[str] | None = None) -> None:
    """In as many columns as fit the figure's width: a wider legend would shrink all else."""
    labels = [h.get_label() for h in handles] if labels is None else labels
    letters = int(11 * figure.get_size_inches()[0])
    fitting = max(1, letters // (max(map(len, labels)) + 6))
    columns = min(4, len(handles), fitting)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
