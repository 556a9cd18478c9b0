"""Pages from the templates of this folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from rag_repro.show.escape import as_code, as_html, as_myst, listing
from rag_repro.show.table import is_numeric


def table(
    head: Sequence[str],
    body: Sequence[Sequence[Any]],
    caption: str = "",
    name: str = "",
    form: str = "rr-short",
) -> str:
    """A MyST table; with a caption it has a number, and `{numref}` finds it by its name.

    A cell that is a tuple holds lines. form: the class that says how it is laid out, "rr-short"
    (no cell wraps) or "rr-claims" (the first column holds sentences).
    """
    columns = zip(*body, strict=True)
    sides = ["---:" if is_numeric(column) else "---" for column in columns] or ["---"] * len(head)
    lines = [list(map(as_myst, head)), sides]
    lines += [[_cell(value) for value in row] for row in body]
    made = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    if not caption:
        return made
    return f"```{{table}} {caption}\n:name: {name}\n:class: {form}\n\n{made}\n```"


def _cell(value: Any) -> str:
    return "<br>".join(map(as_myst, value)) if isinstance(value, tuple) else as_myst(value)


def count(number: int, thing: str) -> str:
    """As "1 claim" or "1,200 claims"."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


TEMPLATES = Environment(
    loader=PackageLoader("rag_repro", "publish/templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.globals |= {"table": table, "count": count, "listing": listing}
TEMPLATES.globals |= {"as_code": as_code, "as_html": as_html, "as_myst": as_myst}
TEMPLATES.filters["myst"] = as_myst


def render(name: str, **values: Any) -> str:
    """The page of a template, its parts one empty line apart; an unknown name in it is an error."""
    text = TEMPLATES.get_template(f"{name}.jinja").render(values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
