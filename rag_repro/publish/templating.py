"""Pages from the templates of this folder."""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from rag_repro.report.caveats import count, table
from rag_repro.report.escape import as_code, as_myst, listing

_TEMPLATES = Environment(
    loader=PackageLoader("rag_repro", "publish/templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.globals.update(table=table, listing=listing, as_code=as_code, as_myst=as_myst)
_TEMPLATES.globals.update(count=count)
_TEMPLATES.filters.update(myst=as_myst)


def render(name: str, **values: Any) -> str:
    """The page of a template, its parts one empty line apart; an unknown name in it is an error."""
    text = _TEMPLATES.get_template(f"{name}.jinja").render(values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
