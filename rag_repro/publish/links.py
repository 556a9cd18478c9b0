"""Sphinx extension: names of our code become links to the reference.

Chapters and pages write `rag_repro.engine.run`, or `two_stages(...)` in a table of
symbols, as plain code, which reads well everywhere. In the book such a
name leads to its docstring, where it is told apart from all others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from docutils import nodes
from sphinx.util.nodes import make_refnode

FULL = re.compile(r"rag_repro(?:\.\w+)+")
CALL = re.compile(r"([A-Za-z_][\w.]*)\(.*\)")


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def link(app: Any, doctree: nodes.document, page: str) -> None:
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
