"""Public data sets: real questions and passages, from the project's files or the official ones."""

from .errors import DataError, MissingFile, UnknownName
from .loading import FORMATS, load
from .registry import Source, registry, source

__all__ = [
    "FORMATS",
    "DataError",
    "MissingFile",
    "Source",
    "UnknownName",
    "load",
    "registry",
    "source",
]
