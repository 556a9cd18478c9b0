"""A figure as the book shows it (an SVG with alt text, the same bytes each time), or a note."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture:
    """A matplotlib figure with a caption, and words for who cannot see it."""

    def __init__(self, figure: Figure, alt: str, caption: str = ""):
        import matplotlib.pyplot as plt

        self.alt, self.caption = alt, caption
        with plt.rc_context({"svg.hashsalt": "rag-repro"}):
            out = io.BytesIO()
            figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        self.svg = out.getvalue()

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg).decode()
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return (
            f'<figure class="rr-figure"><img alt="{html.escape(self.alt, quote=True)}" '
            f'src="data:image/svg+xml;base64,{data}">{caption}</figure>'
        )

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
