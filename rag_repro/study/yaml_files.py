"""How papers' files are read: strictly, and every error is a `StudyError`.

Unknown keys, missing ones and wrong kinds are refused by their place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from rag_repro.plain import PlainError, fits, from_yaml, hints, shortened, text_of
from rag_repro.words import choices, nearest


class StudyError(ValueError):
    """Something in a paper's files that cannot be; the message says where."""

    def __init__(self, message: str):
        super().__init__(shortened(message, 1500))


_T = TypeVar("_T")


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


def _tuples(value: Any, where: str) -> dict[str, Any]:
    """A table whose lists are tuples, so that frozen things are frozen."""
    given = table(value, where)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}


def build(cls: type[_T], given: Any, where: str) -> _T:
    """`given` as the dataclass, with the dataclasses that its fields hold, alone or several.

    Its lists become tuples, and those in tables of tuples. Several that are left out are none.
    Errors name the place, as "drrag/paper.yaml, exhibit table5, grid 1".
    """
    if isinstance(given, cls):
        return given
    raw = table(given, where)
    made = _tuples(raw, where)
    for key, hint in hints(cls).items():
        origin, inner, place = get_origin(hint), get_args(hint), f"{where}, {key}"
        part = next((one for one in (hint, *inner) if is_dataclass(one)), None)
        one_of = f"{where}, {key.removesuffix('s')}"
        if part and origin is Mapping:
            several = table(raw.get(key), place).items()
            made[key] = {name: build(part, one, f"{one_of} {name}") for name, one in several}
        elif part and origin is tuple:
            several = enumerate(listed(raw.get(key), place), start=1)
            made[key] = tuple(build(part, one, f"{one_of} {number}") for number, one in several)
        elif part and raw.get(key) is not None:
            made[key] = build(part, raw[key], place)
        elif origin is Mapping and key in raw and _takes_tuples(inner[1]):
            made[key] = _tuples(raw[key], place)
    return _strict(cls, made, where)


def _strict(cls: type[_T], given: dict[str, Any], where: str) -> _T:
    """cls(**given), where keys and the kinds of values are those of its fields.

    The error tells the place, the key and, for a misspelt one, the nearest; so does one that
    `cls` raises itself.
    """
    known = {field.name: field for field in fields(cls)}
    for key in given:
        if key not in known:
            raise StudyError(f"{where}: unknown key {key!r}{nearest(key, known)}")
    for key, field in known.items():
        if key not in given and field.default is MISSING and field.default_factory is MISSING:
            raise StudyError(f"{where}: the key {key!r} is missing")
    for key, value in given.items():
        endless = isinstance(value, float) and not math.isfinite(value)
        if endless or not fits(value, hints(cls)[key]):
            hint = hints(cls)[key]
            named = get_args(hint) if get_origin(hint) is Literal else ()
            wanted = choices(value, named) if named else f"; it is {known[key].type}"
            raise StudyError(f"{where}: {key!r} cannot be {shortened(repr(value), 80)}{wanted}")
    try:
        return cls(**given)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from error


def _takes_tuples(hint: Any) -> bool:
    return get_origin(hint) is tuple or tuple in get_args(hint)


def content(path: Path) -> Any:
    """What a file of YAML holds."""
    try:
        return from_yaml(text_of(path))
    except (PlainError, OSError) as error:
        raise StudyError(f"{path}: {error}; mend it, or restore it from version control") from error
