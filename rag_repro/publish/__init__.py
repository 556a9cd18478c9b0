"""Chapters: pair, execute, check, and build the book.

`chapter` is what a notebook calls; the rest is for the command line:
`pairs.pair`, `build.execute`, `check.check`, `build.build_book`.
"""

from rag_repro.publish.parameters import ParameterError, chapter

__all__ = ["ParameterError", "chapter"]
