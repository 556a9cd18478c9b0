"""Sphinx extension of the book: numbers, links to claims and to the reference, buttons, MathJax.

What a cell shows as HTML with a caption (`show.table.Table`, `show.picture.Picture`,
`show.heat_map.HeatMap`) becomes a node of its own, so that Sphinx numbers it and lets it scroll.
Numbers go by chapter, and a chapter's number is that of its file: table 11.3 is the third of
11_drrag_recall. `{numref}` finds it by its name and that number, as `tab-verdicts-11`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util.fileutil import copy_asset
from sphinx.util.nodes import make_refnode

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
    app.connect("html-page-context", link_claims)
    app.connect("doctree-resolved", link_code)
    app.connect("config-inited", switch)
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", copy_mathjax)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class Exhibits(SphinxTransform):
    """Captioned HTML of cells to tables and figures, before Sphinx collects labels."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        for bundle in list(self.document.findall(nodes.container)):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            shown = next((c for c in bundle.children if c["mime_type"] == "text/html"), None)
            if shown is not None and (made := _made(shown.astext())):
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


def _made(text: str) -> list[nodes.Element]:
    """The node, and what follows it; [] where this is no captioned table or figure."""
    found = TABLE.match(text.strip()) or FIGURE.match(text.strip())
    if found is None:
        return []
    caption, inner = html.unescape(found["caption"]), _raw(found["inner"])
    if found.re is TABLE:  # the writer adds <table>, caption and number; rows pass as they are
        node = nodes.table("", nodes.title(caption, caption), inner)
    else:
        node = nodes.figure("", inner, nodes.caption(caption, caption))
    node["classes"] += ["rr-exhibit", *found["kinds"].split()]
    if found["id"]:
        node["names"] = [nodes.fully_normalize_name(html.unescape(found["id"]))]
    return [node, *([_raw(found["after"])] if found["after"].strip() else [])]


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def number_by_chapter(app: Any, env: Any) -> list[str]:
    """Number tables, figures and equations anew: by chapter, and by page elsewhere.

    The chapters' own numbers go to their titles and the side bar. Returns the
    pages that must be written again.
    """
    changed = []
    for name in env.found_docs:
        if found := CHAPTER.match(name):
            number = (int(found[1]),)
            title, *others = env.tocs[name].findall(nodes.reference)
            title["secnumber"] = env.titles[name]["secnumber"] = number
            # None: sections below have no number, nor do they inherit the chapter's.
            env.toc_secnumbers[name] = {"": number} | {o["anchorname"]: None for o in others}
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


CLAIM = re.compile(r"\b(?:drrag|erm4|dragin|r2ag)\.[cs]\d\d\b")
LEDGER = "chapters/90_claims"

# What stays as it is: links, headings, captions, code in blocks, and every tag itself.
_STAYS = "a|script|style|svg|pre|h[1-6]|caption|figcaption"
_TAGS = rf"(?is:<(?P<tag>{_STAYS})\b.*?</(?P=tag)>|<[^>]*>)"


def link_claims(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Put a link around each name of a claim that a page shows."""
    if doctree is not None and page != LEDGER and LEDGER in app.env.found_docs:
        context["body"] = in_html(context["body"], app.builder.get_relative_uri(page, LEDGER))


def in_html(html: str, ledger: str) -> str:
    """The HTML with each name of a claim as a link to its row of the ledger."""

    def linked(found: re.Match) -> str:
        name = found["claim"]
        return f'<a href="{ledger}#{name}">{name}</a>' if name else found[0]

    return re.sub(rf"{_TAGS}|(?P<claim>{CLAIM.pattern})", linked, html)


FULL = re.compile(r"rag_repro(?:\.\w+)+")
CALL = re.compile(r"([A-Za-z_][\w.]*)\(.*\)")


def link_code(app: Any, doctree: nodes.document, page: str) -> None:
    """Put a reference around each piece of code that names one documented object."""
    objects = app.env.get_domain("py").objects
    for code in list(doctree.findall(nodes.literal)):
        name = target(code.astext(), objects)
        inside = isinstance(code.parent, nodes.reference | nodes.title)
        if name is None or inside or objects[name].docname == page:
            continue
        found = objects[name]
        reference = make_refnode(
            app.builder, page, found.docname, found.node_id, code.deepcopy(), name
        )
        code.replace_self(reference)


def target(text: str, objects: Mapping[str, Any]) -> str | None:
    """The documented name that `text` means; None where it is none, or could be several."""
    if FULL.fullmatch(text):
        return text if text in objects else None
    call = CALL.fullmatch(text)
    if not call:
        return None
    found = [name for name in objects if name.endswith(f".{call[1]}")]
    return found[0] if len(found) == 1 else None


SOURCE = ("use_repository_button", "use_issues_button")
LAUNCH = ("binderhub_url", "colab_url", "jupyterhub_url", "deepnote_url", "jupyterlite_url")


def switch(app: Any, config: Any) -> None:
    """All buttons on, or all off."""
    options = config.html_theme_options
    address = options.get("repository_url") or ""
    options |= dict.fromkeys(SOURCE, bool(address))
    if not address:
        # An empty address would be taken for one, and its parts be looked for.
        options.pop("repository_url", None)
    # Colab knows GitHub alone, and the theme warns of every page elsewhere.
    off = LAUNCH if not address else () if "github.com" in address else ("colab_url",)
    launch = options.get("launch_buttons", {})
    options["launch_buttons"] = {k: v for k, v in launch.items() if k not in off}


NEEDED = ("tex-chtml.js", "a11y", "input/tex", "output/chtml/fonts/woff-v2")


def copy_mathjax(app: Any, error: Exception | None) -> None:
    """What formulas need of the package sphinx-mathjax-offline, which would copy ten times more."""
    if error is None and app.builder.format == "html":
        source = files("sphinx-mathjax-offline") / "static" / "mathjax"
        target = Path(app.outdir) / "_static" / "mathjax"
        for name in NEEDED:
            folder = target / name if (source / name).is_dir() else target
            copy_asset(str(source / name), str(folder))
