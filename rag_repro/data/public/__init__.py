"""Public data sets: real questions and passages, from the project's files or the official ones."""

from .errors import (
    BadLine,
    CorruptFile,
    DataError,
    DuplicateId,
    EmptyGold,
    MissingFile,
    UnknownName,
)
from .loading import FORMATS, load
from .registry import Source, registry, source

__all__ = [
    "FORMATS",
    "BadLine",
    "CorruptFile",
    "DataError",
    "DuplicateId",
    "EmptyGold",
    "MissingFile",
    "Source",
    "UnknownName",
    "load",
    "registry",
    "source",
]
