"""Sphinx extension: what a cell shows becomes a numbered table or figure of the book.

Chapters show tables and figures as HTML (`show.table.Table`,
`show.picture.Picture`, `show.heat_map.HeatMap`), which JupyterLab shows as it is. In the
book each that has a caption becomes a node of its own, so that Sphinx numbers it and lets
it scroll. Numbers go by chapter, and a chapter's number is that of its file: table
11.3 is the third of 11_drrag_recall. `{numref}` finds it by its name and that
number, as `tab-verdicts-11`.
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

CHAPTER = re.compile(r"chapters/(\d+)_")
TABLE = re.compile(
    r'^<div class="rr-table(?P<kinds>[^"]*)"(?: id="(?P<id>[^"]+)")?><table>'
    r"<caption>(?P<caption>.*?)</caption>"
    r"(?P<inner>.*?)</table></div>(?P<after>.*)$",
    re.S,
)
FIGURE = re.compile(
    r'^<figure class="rr-figure(?P<kinds>[^"]*)"(?: id="(?P<id>[^"]+)")?>'
    r'(?P<inner><(?:img|div class="rr-heat) .*?>)'
    r"<figcaption>(?P<caption>.*?)</figcaption></figure>(?P<after>.*)$",
    re.S,
)


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_transform(Exhibits)
    # After Sphinx has counted (500), since it would count through all chapters.
    app.connect("env-get-updated", number_by_chapter, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class Exhibits(SphinxTransform):
    """Captioned HTML of cells to tables and figures, before Sphinx collects labels."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        found = [n for n in self.document.findall(nodes.container) if _is_bundle(n)]
        for bundle in found:
            shown = next((c for c in bundle.children if c["mime_type"] == "text/html"), None)
            made = _made(shown.astext()) if shown is not None else None
            if made is not None:
                self._name(made[0], CHAPTER.match(self.env.docname))
                bundle.replace_self(made)

    def _name(self, node: nodes.Element, chapter: re.Match | None) -> None:
        """An id for the number, and the name by which `{numref}` finds it."""
        if chapter:
            node["names"] = [f"{name}-{int(chapter[1])}" for name in node["names"]]
        if node["names"] and node["names"][0] not in self.document.nameids:
            self.document.note_explicit_target(node)
        else:  # shown twice on a page, or without a name: a number of its own, no label
            node["names"] = []
            self.document.set_id(node)


def _is_bundle(node: nodes.Element) -> bool:
    return node.get("nb_element") == "mime_bundle"


def _made(text: str) -> list[nodes.Element] | None:
    """The node, and what follows it; None where this is no captioned table or figure."""
    for pattern, make in ((TABLE, _table), (FIGURE, _figure)):
        found = pattern.match(text.strip())
        if found:
            caption = html.unescape(found["caption"])
            node = make(caption, found["inner"])
            node["classes"] += ["rr-exhibit", *(found.groupdict().get("kinds") or "").split()]
            if found["id"]:
                node["names"] = [nodes.fully_normalize_name(html.unescape(found["id"]))]
            return [node, *([_raw(found["after"])] if found["after"].strip() else [])]
    return None


def _table(caption: str, inner: str) -> nodes.table:
    # The writer adds <table>, caption and number; rows pass as they are.
    return nodes.table("", nodes.title(caption, caption), _raw(inner))


def _figure(caption: str, inner: str) -> nodes.figure:
    return nodes.figure("", _raw(inner), nodes.caption(caption, caption))


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def number_by_chapter(app: Any, env: Any) -> list[str]:
    """Number tables, figures and equations anew: by chapter, and by page elsewhere.

    The chapters' own numbers go to their titles and the side bar. Returns the
    pages that must be written again.
    """
    changed = []
    for name in env.found_docs:
        found = CHAPTER.match(name)
        if found:
            _number_chapter(env, name, int(found[1]))
    counts: dict[str, int] = {}
    for name, kinds in env.toc_fignumbers.items():
        found = CHAPTER.match(name)
        for kind, numbers in kinds.items():
            first = 1 if found else counts.get(kind, 0) + 1
            for place, key in enumerate(numbers, start=first):
                numbers[key] = (int(found[1]), place) if found else (place,)
                counts[kind] = counts.get(kind, 0) if found else place
        changed.append(name)
    return changed


def _number_chapter(env: Any, name: str, number: int) -> None:
    title, *others = env.tocs[name].findall(nodes.reference)
    title["secnumber"] = (number,)
    env.titles[name]["secnumber"] = (number,)
    # None: sections below have no number, nor do they inherit the chapter's.
    env.toc_secnumbers[name] = {"": (number,)} | {o["anchorname"]: None for o in others}
