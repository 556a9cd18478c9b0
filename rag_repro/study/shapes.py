"""Types of what a record's line holds; pydantic checks them, parts of a line are made of them."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge, Le
from pydantic import AfterValidator, ConfigDict, PlainValidator, Strict

from rag_repro.plain import UNSEEN

LARGEST = 1e300  # beyond any number of ours; Python holds such as no float can
MOST = 10**15  # of a whole number, likewise
EXACT = ConfigDict(extra="forbid")
"""Of a part that may have no field but its own."""


def _one_line(text: str) -> str:
    if not text.isprintable() and UNSEEN.search(text):
        raise ValueError("it does not stand in one line")
    return text


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it is no text")
    return value


Text = Annotated[Any, PlainValidator(_text)]
"""Half a character too, which an odd reader can write and which pydantic's own texts refuse."""
Name = Annotated[str, Strict(), AfterValidator(_one_line)]
"""A text that stands in one line of a terminal or table: an id, a kind, a cluster."""
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict(), Ge(-LARGEST), Le(LARGEST)]
Amount = Annotated[float, Strict(), Ge(0), Le(LARGEST)]
Share = Annotated[float, Strict(), Ge(0), Le(1)]
Count = Annotated[int, Strict(), Ge(0), Le(MOST)]
Rank = Annotated[int, Strict(), Ge(1), Le(MOST)]
Mark = Annotated[int, Strict(), Ge(0), Le(1)]
