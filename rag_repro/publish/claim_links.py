"""Sphinx extension: a claim that a page names, as r2ag.c04, leads to its row of the ledger.

In sentences and in what cells show; the ledger itself, headings, listings and links stay.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

CLAIM = re.compile(r"\b(?:drrag|erm4|dragin|r2ag)\.[cs]\d\d\b")
LEDGER = "chapters/90_claims"

_STAYS = nodes.reference | nodes.title | nodes.literal_block | nodes.caption
_PIECES = re.compile(r"(<(a|script|style|svg|pre)\b.*?</\2>|<[^>]*>)", re.DOTALL | re.IGNORECASE)


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def link(app: Any, doctree: nodes.document, page: str) -> None:
    """Put a reference around each name of a claim."""
    if page == LEDGER or LEDGER not in app.env.found_docs:
        return
    ledger = app.builder.get_relative_uri(page, LEDGER)
    for text in list(doctree.findall(nodes.Text)):
        if CLAIM.search(text) and not _inside(text):
            text.parent.replace(text, _linked(text, ledger))
    for raw in list(doctree.findall(nodes.raw)):
        if "html" in raw.get("format", "").split():
            raw.children = [nodes.Text(in_html(raw.astext(), ledger))]


def _inside(text: nodes.Text) -> bool:
    """Whether the text is of what stays as it is."""
    above = text.parent
    while above is not None and not isinstance(above, _STAYS | nodes.raw):
        above = above.parent
    return above is not None


def _linked(text: nodes.Text, ledger: str) -> list[nodes.Node]:
    made: list[nodes.Node] = []
    end = 0
    for found in CLAIM.finditer(text):
        target = f"{ledger}#{found[0]}"
        made += [nodes.Text(text[end : found.start()])] if found.start() > end else []
        made.append(nodes.reference("", found[0], refuri=target, internal=True))
        end = found.end()
    return [*made, nodes.Text(text[end:])] if end < len(text) else made


def in_html(html: str, ledger: str) -> str:
    """The same in HTML that a cell shows: between its tags, and in no link or listing."""
    if not CLAIM.search(html):
        return html
    made, end = [], 0
    for found in _PIECES.finditer(html):
        made += [_anchored(html[end : found.start()], ledger), found[0]]
        end = found.end()
    return "".join([*made, _anchored(html[end:], ledger)])


def _anchored(text: str, ledger: str) -> str:
    return CLAIM.sub(rf'<a href="{ledger}#\g<0>">\g<0></a>', text)
