"""Sphinx extension of the book: numbers, links to claims and to the reference, buttons, MathJax.

What a cell shows as HTML with a caption (`show.table.Table`, `show.picture.Picture`,
`show.heat_map.HeatMap`) becomes a node of its own, so that Sphinx numbers it and lets it scroll.
Numbers go by chapter, and a chapter's number is that of its file: table 11.3 is the third of
11_drrag_recall. `{numref}` finds it by its name and that number, as `tab-verdicts-11`.
"""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
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
    app.connect("doctree-resolved", link_claims)
    app.connect("doctree-resolved", link_code)
    app.connect("config-inited", switch)
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", copy_mathjax)
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


CLAIM = re.compile(r"\b(?:drrag|erm4|dragin|r2ag)\.[cs]\d\d\b")
LEDGER = "chapters/90_claims"

_STAYS = nodes.reference | nodes.title | nodes.literal_block | nodes.caption
_TAGS = re.compile(r"(<(a|script|style|svg|pre)\b.*?</\2>|<[^>]*>)", re.DOTALL | re.IGNORECASE)


def link_claims(app: Any, doctree: nodes.document, page: str) -> None:
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
    for found in _TAGS.finditer(html):
        made += [_anchored(html[end : found.start()], ledger), found[0]]
        end = found.end()
    return "".join([*made, _anchored(html[end:], ledger)])


def _anchored(text: str, ledger: str) -> str:
    return CLAIM.sub(rf'<a href="{ledger}#\g<0>">\g<0></a>', text)


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
    known = bool(address)
    for key in SOURCE:
        options[key] = known
    if not known:
        # An empty address would be taken for one, and its parts be looked for.
        options.pop("repository_url", None)
    # Colab knows GitHub alone, and the theme warns of every page elsewhere.
    off = LAUNCH if not known else () if "github.com" in address else ("colab_url",)
    launch = options.get("launch_buttons", {})
    options["launch_buttons"] = {k: v for k, v in launch.items() if k not in off}


NEEDED = ("tex-chtml.js", "a11y", "input/tex", "output/chtml/fonts/woff-v2")


def copy_mathjax(app: Any, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("no package sphinx-mathjax-offline; `make book` installs it")
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for name in NEEDED:
        if (target / name).exists():
            continue
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)
