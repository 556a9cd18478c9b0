"""Text of data sets, models and papers on its way to a reader: it stays text.

One function for each place where text is put: a page's HTML, a MyST page, and
text that is read as it is (a terminal, CSV, a Markdown table in plain text). What
cannot be shown is replaced by what can be seen: a control character by its
picture (U+2400 and on), half a character by U+FFFD. Marks that set the
direction of writing are kept: each cell of a table stands for itself. HTML is made by the templates
of this folder, which escape what is filled in, unless it is HTML.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Any

from markupsafe import Markup

# A page's scripts look for formulas in what a notebook shows, except below these.
NO_FORMULAS = "tex2jax_ignore mathjax_ignore"

# What Markdown, MyST and their extensions give a meaning to inside a line, and what at its start.
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#|~$^&!@:])")
_START = re.compile(r"^(\d{1,9}(?=\.(?:\s|$))|(?=[-+=](?:[-+=\s]|$))|(?=%))")
_UNSEEN = {
    **{c: 0x2400 + c for c in range(32) if chr(c) not in "\t\n\r"},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), 0xFFFD),
    0x85: 0x0A,  # the one of these that ends a line
}


def seen(text: Any) -> str:
    """Text in which every character can be written to a file and shown."""
    return str(text).translate(_UNSEEN)


def as_html(text: Any) -> str:
    """Text for an element or a quoted attribute of HTML."""
    return escape(seen(text), quote=True)


def escaped(value: Any) -> Markup:
    """A value as HTML: by its own `__html__`, else its text."""
    return Markup(value.__html__() if hasattr(value, "__html__") else as_html(value))


def html(template: str, **values: Any) -> str:
    """What a template makes of these; an unknown name in it is an error."""
    return _templates().get_template(f"{template}.jinja").render(values)


@cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from jinja2.ext import Extension

    class Unbroken(Extension):
        """Line breaks and indents of a template are no part of the HTML that it makes."""

        def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
            return "".join(map(str.strip, source.splitlines()))

    made = Environment(
        loader=PackageLoader("rag_repro", "show/templates"),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=escaped,
        extensions=[Unbroken],
    )
    made.globals["no_formulas"] = NO_FORMULAS
    made.filters["e"] = escaped
    return made


def as_myst(text: Any) -> str:
    """Text for a sentence or a cell of a MyST page, in one line: no mark keeps its meaning."""
    return _START.sub(r"\1\\", _MARKS.sub(r"\\\1", one_line(text)))


def as_cell(text: Any) -> str:
    """Text for a cell of a Markdown table that is read as it is: on a terminal."""
    return one_line(text).replace("|", "\\|")


def one_line(text: Any) -> str:
    """Text with each run of white space as one space."""
    return " ".join(seen(text).split())


def as_code(text: Any) -> str:
    """Text as a code span in a sentence of a MyST page."""
    line = one_line(text)
    fence = _fence(line, 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def listing(code: str, language: str = "") -> str:
    """Code as a block of a MyST page, whatever runs of backticks it holds."""
    fence = _fence(code, 3)
    return f"{fence}{language}\n{seen(code)}\n{fence}"


def _fence(code: str, least: int) -> str:
    """More backticks than stand together in the code."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", code)), default=0))
