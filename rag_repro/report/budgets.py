"""What dynamic retrieval's rules are, and what they reach for how many searches."""

from __future__ import annotations

from collections.abc import Sequence

from ..methods.dragin.settings import DynamicSettings
from ..study.papers import Exhibit
from . import scatter
from .exhibits import Row
from .picture import Note, Picture
from .table import Table

TIMINGS = {
    "never": "not while it writes",
    "window": "every {window} tokens",
    "sentence": "every sentence",
    "flare": "a token's probability at or below {doubt:g}",
    "rind": "a {unit}'s {score} above {threshold:g}",
    "random": "a token, by chance, at a rate of {rate:g}",
}
QUERIES = {
    "qfs": "the words of the {top_n} tokens that the token looks at most (QFS)",
    "question": "the question",
    "last_sentence": "the last whole sentence",
    "last_tokens": "the last {window} tokens",
    "sure_sentence": "the sentence without tokens at or below {mask:g}, nor the blanks before them",
    "masked_sentence": "the sentence, tokens at or below {mask:g} blank",
    "sentence": "the whole sentence",
    "full_context": "the question and all that is written",
    "first_words": "as many words as QFS, the first of question and text",
    "random_words": "as many words of question and text as QFS, by chance",
}


def rules(exhibit: Exhibit, caption: str = "", name: str = "") -> Table:
    """The paper's table 1, out of the settings of an exhibit's rows (their first condition)."""
    body = []
    for method, row in exhibit.methods.items():
        cell = next((c for c in exhibit.cells() if c.keys["method"] == method), None)
        if cell is not None:
            body.append([row.label, *told(cell.condition.configured)])
    return Table(["method", "searches", "with"], body, caption, name)


def told(settings: DynamicSettings) -> tuple[str, str]:
    """When a method searches, and with which words."""
    whole = settings.factors == DynamicSettings.factors
    score = "RIND score" if whole else " times ".join(settings.factors)
    values = {**vars(settings), "score": score}
    timing = TIMINGS[settings.timing].format(**values)
    if settings.timing == "flare" and settings.doubt_of == "sentence":
        timing = f"a sentence's mean probability at or below {settings.doubt:g}"
    query = QUERIES[settings.query].format(**values)
    if settings.timing == "never":
        when = "before it writes" if settings.asks_first else "never"
        return when, "the question" if settings.asks_first else "nothing"
    if settings.asks_first:
        return f"before it writes, and {timing}", f"the question; then {query}"
    return timing, query


def quality_against_searches(
    exhibit: Exhibit, rows: Sequence[Row], quality: str = "em", caption: str = "", name: str = ""
) -> Picture | Note:
    """A panel a data set, a point a method: its quality by how often it searches.

    rows: of `quality` and of "retrievals"; methods and data sets in their order. Bars: 95 %.
    """
    order = list(exhibit.methods)  # so that a method looks alike in all figures
    rows = sorted(rows, key=lambda row: order.index(row.keys["method"]))
    return scatter.against(
        rows,
        "retrievals",
        quality,
        xlabel="searches for one answer",
        ylabel=f"{quality.upper()}, %",
        named=lambda row: exhibit.methods[row.keys["method"]].label,
        told="{y:.0f} at {x:.1f} searches",
        alt=f"{quality.upper()} against searches.",
        caption=caption,
        name=name,
    )
