"""Public data sets: real questions and passages, from the project's files or the official ones."""

from rag_repro.data.public.loading import FORMATS, load
from rag_repro.data.public.record import DataError, MissingFile, UnknownName
from rag_repro.data.public.registry import Source, registry, source

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
