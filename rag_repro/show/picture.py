"""A figure as the book shows it (an SVG with alt text, the same bytes each time), or a note."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rag_repro.show.escape import as_html, seen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLIM = 5.4  # inches, up to which a figure is whole on a phone; wider ones scroll there


class Download:
    """A small file that a page holds itself, so that it can be had without a network."""

    def __init__(self, name: str, text: str):
        self.name, self.text = name, text

    @classmethod
    def of(cls, name: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> Download | None:
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
        return (
            f'<figure class="{kinds}"{id_of(self.name)}><img class="dark-light" '
            f'alt="{as_html(self.alt)}" '
            f'src="data:image/svg+xml;base64,{data}">{caption}</figure>'
        ) + (self.data._repr_html_() if self.data else "")

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"


def id_of(name: str) -> str:
    """The attribute that gives an element its name; nothing where it has none."""
    return f' id="{as_html(name)}"' if name else ""


class Note:
    """A sentence that a page shows."""

    def __init__(self, text: str):
        self.text = text

    def _repr_markdown_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text
