"""How papers' files are read: strictly, and every error is a `StudyError`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..plain import PlainError, from_yaml, shortened, text_of
from ..strict import Strict


class StudyError(ValueError):
    """Something in a paper's files that cannot be; the message says where."""

    def __init__(self, message: str):
        super().__init__(shortened(message, 1500))


_STRICT = Strict(StudyError)
strict, table, listed, tuples = _STRICT.made, _STRICT.table, _STRICT.listed, _STRICT.tuples


def content(path: Path) -> Any:
    """What a file of YAML holds."""
    try:
        return from_yaml(text_of(path))
    except (PlainError, OSError) as error:
        raise StudyError(f"{path}: {error}; mend it, or restore it from version control") from error
