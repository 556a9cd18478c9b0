"""A figure as the book shows it (an SVG with alt text, the same bytes each time), or a note.

And what all figures share: palette, markers, widths, error bars, legends.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_repro.evaluation.intervals import Interval
from rag_repro.show.escape import as_html, seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SLIM = 5.4  # inches, up to which a figure is whole on a phone; wider ones scroll there


@dataclass(frozen=True)
class Download:
    """A small file that a page holds itself, so that it can be had without a network."""

    name: str
    text: str

    @classmethod
    def from_rows(
        cls, name: str, head: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> Download | None:
        """The rows as NAME.csv; None without a name or a row."""
        return cls(f"{name}.csv", csv_text(head, rows)) if name and rows else None

    def _repr_html_(self) -> str:
        data = base64.b64encode(seen(self.text).encode()).decode()
        name = as_html(self.name)
        return (
            f'<p class="rr-data"><a download="{name}" '
            f'href="data:text/csv;charset=utf-8;base64,{data}">{name}</a></p>'
        )


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Head and rows as CSV, None as an empty cell."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    return out.getvalue()


class Picture:
    """A matplotlib figure with a caption, and words for who cannot see it.

    name: by which `{numref}` finds it, if it has a caption. data: what is drawn.
    """

    def __init__(
        self,
        figure: Figure,
        alt: str,
        caption: str = "",
        name: str = "",
        data: Download | None = None,
    ):
        import matplotlib.pyplot as plt

        self.alt, self.caption, self.name, self.data = alt, caption, name, data
        with plt.rc_context({"svg.hashsalt": "rag-repro"}):
            out = io.BytesIO()
            figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
        self.slim = figure.get_size_inches()[0] <= SLIM
        plt.close(figure)
        # XML has no place for control characters, which a label may hold.
        self.svg = re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", b"", out.getvalue())

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg).decode()
        caption = f"<figcaption>{as_html(self.caption)}</figcaption>" if self.caption else ""
        # dark-light: the page's theme is not to dim it; its ground is white in both modes
        kinds = "rr-figure rr-slim" if self.slim else "rr-figure"
        name = f' id="{as_html(self.name)}"' if self.name else ""
        return (
            f'<figure class="{kinds}"{name}><img class="dark-light" '
            f'alt="{as_html(self.alt)}" '
            f'src="data:image/svg+xml;base64,{data}">{caption}</figure>'
        ) + (self.data._repr_html_() if self.data else "")

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"


class Note:
    """A sentence that a page shows."""

    def __init__(self, text: str):
        self.text = text

    def _repr_markdown_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


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


def whiskers(intervals: Iterable[Interval]) -> list[list[float]]:
    """The lengths of error bars: down from each estimate, and up."""
    intervals = list(intervals)
    return [[i.estimate - i.lo for i in intervals], [i.hi - i.estimate for i in intervals]]


def legend(
    figure: Figure,
    marks: Iterable[tuple[Any, str]],
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
        for (colour, marker), said in zip(marks, words, strict=False)
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
