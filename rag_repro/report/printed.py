"""A paper's printed numbers by their keys."""

from __future__ import annotations

from typing import Any

from ..study.papers import Paper, StudyError
from .arithmetic import pick


def values(paper: Paper, key: str, **wanted: Any) -> dict[tuple[str, ...], float]:
    """The printed numbers of an exhibit that have the wanted keys, by their other keys.

    wanted: one value or a list of them, as method="cfs", k=[4, 6]. Raises
    StudyError where there is none.
    """
    asked = {
        name: [str(one) for one in (value if isinstance(value, list) else [value])]
        for name, value in wanted.items()
    }
    found = {
        tuple(v for k, v in entry.items() if k not in ("value", "note")): float(entry["value"])
        for entry in pick(paper.printed(key), **asked)
    }
    if not found:
        raise StudyError(f"{paper.name}.{key} prints nothing with {wanted}")
    return found
