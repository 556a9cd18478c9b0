"""Plain data into dataclasses: unknown keys, missing ones and wrong kinds are refused by place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from rag_repro.plain import fits, hints, shortened
from rag_repro.words import nearest


@dataclasses.dataclass(frozen=True, slots=True)
class Strict:
    """What reads a room's files; whatever cannot be raises `error`, with the place."""

    error: type[ValueError]

    def build(self, cls: type, given: Any, where: str) -> Any:
        """cls(**given), where keys and the kinds of values are those of its fields.

        The error tells the place, the key and, for a misspelt one, the nearest; so does one that
        `cls` raises itself.
        """
        fields = {f.name: f for f in dataclasses.fields(cls)}
        needed = [
            name
            for name, f in fields.items()
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
        given = self.keys(given, where, fields, needed)
        for key, value in given.items():
            endless = isinstance(value, float) and not math.isfinite(value)
            if endless or not fits(value, hints(cls)[key]):
                raise self.error(
                    f"{where}: {key!r} cannot be {shortened(repr(value), 80)}; "
                    f"it is {fields[key].type}"
                )
        try:
            return cls(**given)
        except self.error as error:
            raise self.error(f"{where}: {error}") from error

    def keys(self, value: Any, where: str, known: Any, needed: Any = ()) -> dict[str, Any]:
        """`value`, a table with none but these keys, and with all that are needed."""
        given = self.table(value, where)
        for key in given:
            if key not in known:
                raise self.error(f"{where}: unknown key {key!r}{nearest(key, known)}")
        for key in needed:
            if key not in given:
                raise self.error(f"{where}: the key {key!r} is missing")
        return given

    def table(self, value: Any, where: str) -> dict[str, Any]:
        """`value`, which must be a table with names as keys; None counts as an empty one."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.error(f"{where}: a table is needed here, not {shortened(repr(value), 80)}")
        for key in value:
            if not isinstance(key, str):
                raise self.error(f"{where}: the key {key!r} is no name; put it in quotes")
        return dict(value)

    def listed(self, value: Any, where: str) -> list[Any]:
        """`value`, which must be a list; None counts as an empty one."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"{where}: a list is needed here, not {shortened(repr(value), 80)}")
        return value

    def tuples(self, value: Any, where: str) -> dict[str, Any]:
        """A table whose lists are tuples, so that frozen things are frozen."""
        given = self.table(value, where)
        return {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
