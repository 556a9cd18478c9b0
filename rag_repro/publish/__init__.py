"""Chapters: pair, execute, check, and build the book.

`chapter` and `number` are what a notebook calls; the rest is for the command line:
`pairs.pair`, `execute.execute`, `check.check`, `build.build_book`.
"""

from rag_repro.publish.numbers import number
from rag_repro.publish.parameters import ParameterError, chapter

__all__ = ["ParameterError", "chapter", "number"]
