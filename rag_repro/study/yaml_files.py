"""How papers' files are read: strictly, and every error is a `StudyError`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from rag_repro.plain import PlainError, from_yaml, hints, shortened, text_of
from rag_repro.strict import Strict


class StudyError(ValueError):
    """Something in a paper's files that cannot be; the message says where."""

    def __init__(self, message: str):
        super().__init__(shortened(message, 1500))


_STRICT = Strict(StudyError)
strict, table, listed, tuples = _STRICT.build, _STRICT.table, _STRICT.listed, _STRICT.tuples
_T = TypeVar("_T")


def build(cls: type[_T], given: Any, where: str) -> _T:
    """`given` as the dataclass, with the dataclasses that its fields hold, alone or several.

    Its lists become tuples, and those in tables of tuples. Several that are left out are none.
    Errors name the place, as "drrag/paper.yaml, exhibit table5, grid 1".
    """
    if isinstance(given, cls):
        return given
    raw = table(given, where)
    made = tuples(raw, where)
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
            made[key] = tuples(raw[key], place)
    return strict(cls, made, where)


def _takes_tuples(hint: Any) -> bool:
    return get_origin(hint) is tuple or tuple in get_args(hint)


def content(path: Path) -> Any:
    """What a file of YAML holds."""
    try:
        return from_yaml(text_of(path))
    except (PlainError, OSError) as error:
        raise StudyError(f"{path}: {error}; mend it, or restore it from version control") from error
