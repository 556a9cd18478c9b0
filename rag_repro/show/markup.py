"""HTML from the templates of this folder: what is filled in is escaped, unless it is HTML."""

from __future__ import annotations

from functools import cache
from typing import Any

from markupsafe import Markup

from rag_repro.show.escape import NO_FORMULAS, as_html


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
