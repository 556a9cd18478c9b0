"""DuReader (He et al. 2018) in LongBench's form (Bai et al. 2024): JSON Lines.

{input, context, answers, _id, ...}; context is one text in which each web page
begins with a line "文章1" and a line "标题：...". Which page has the answer is not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.opened_files import lines
from rag_repro.data.public.record import Doc, Record, Row

_HEAD = re.compile(r"^(?:文章[:：])?\s*文章\s*\d+\s*[:：]?[ \t]*$", re.MULTILINE)
_TITLE = re.compile(r"^标题[:：](.*)$")
_BODY = re.compile(r"^(?:内容|正文)[:：]")


def read(path: Path) -> Iterator[Record]:
    """Questions without gold passages; the candidates are the pages of the context."""
    for row in lines(path):
        yield Record(
            id=row.take("_id", str),
            question=row.take("input", str),
            answers=row.strings("answers"),
            place=row.place,
            docs=tuple(_docs(row)),
        )


def _docs(row: Row) -> Iterator[Doc]:
    before, *pages = _HEAD.split(row.take("context", str))
    if before.strip() or not pages:
        raise row.bad("the context does not begin with a line '文章1'")
    for page in pages:
        head, _, body = page.strip().partition("\n")
        title = _TITLE.match(head)
        text = body if title else page
        yield Doc(title[1].strip() if title else "", _BODY.sub("", text.strip()).strip())
