"""Plain data into dataclasses: unknown keys, missing ones and wrong kinds are refused by place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..plain import PlainError, fits, from_yaml, hints, shortened, text_of
from ..words import nearest


class StudyError(ValueError):
    """Something in a paper's files that cannot be; the message says where."""

    def __init__(self, message: str):
        super().__init__(shortened(message, 1500))


def strict(cls: type, given: Mapping[str, Any], where: str) -> Any:
    """cls(**given), where keys and the kinds of values are those of its fields.

    Raises StudyError with the place, the key and, for a misspelt one, the nearest.
    """
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key in table(given, where):
        if key not in fields:
            raise StudyError(f"{where}: unknown key {key!r}{nearest(key, fields)}")
    for name, f in fields.items():
        needed = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if needed and name not in given:
            raise StudyError(f"{where}: the key {name!r} is missing")
    for key, value in given.items():
        endless = isinstance(value, float) and not math.isfinite(value)
        if endless or not fits(value, hints(cls)[key]):
            raise StudyError(
                f"{where}: {key!r} cannot be {shortened(repr(value), 80)}; it is {fields[key].type}"
            )
    try:
        return cls(**given)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from error


def table(value: Any, where: str) -> dict[str, Any]:
    """`value`, which must be a table with names as keys; None counts as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise StudyError(f"{where}: a table is needed here, not {shortened(repr(value), 80)}")
    for key in value:
        if not isinstance(key, str):
            raise StudyError(f"{where}: the key {key!r} is no name; put it in quotes")
    return dict(value)


def listed(value: Any, where: str) -> list[Any]:
    """`value`, which must be a list; None counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise StudyError(f"{where}: a list is needed here, not {shortened(repr(value), 80)}")
    return value


def tuples(value: Any, where: str) -> dict[str, Any]:
    """A table whose lists are tuples, so that frozen things are frozen."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in table(value, where).items()}


def content(path: Path) -> Any:
    """What a file of YAML holds."""
    try:
        return from_yaml(text_of(path))
    except (PlainError, OSError) as error:
        raise StudyError(f"{path}: {error}; mend it, or restore it from version control") from error
