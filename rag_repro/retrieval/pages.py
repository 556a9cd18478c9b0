"""A page read for a query: its best sentences by BM25, in the order of the page.

ERM4 reads the pages that a search finds and leaves out "irrelevant information using the BM25
algorithm" (section 6), without saying how. Here a page is cut into sentences, BM25 over them
(statistics of the page) ranks them, and the best few stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from rag_repro.schema.dataset import Corpus

from ..schema import Passage
from .analyzer import Analyzer
from .base import RetrievalError
from .bm25 import BM25


def best_sentences(text: str, query: str, n: int, analyzer: Analyzer | None = None) -> str:
    """The n best sentences for the query, joined by blanks; all of a page that has no more.

    Of equal ones the first of the page, so that a page without any word of the query gives
    how it begins. analyzer: of the corpus that the page is from; None: as suits the page.
    """
    sentences = [" ".join(s.split()) for s in _splitter()(text) if s.strip()]
    if len(sentences) <= n:
        return " ".join(sentences)
    # Ids sort as the page is read: ties go to what stands first.
    parts = tuple(Passage(f"{i:06}", "", s) for i, s in enumerate(sentences))
    try:
        ranked = BM25(Corpus("page", parts), analyzer=analyzer, fields=("text",))
    except RetrievalError:  # a page of dots and dashes has no term
        return " ".join(sentences[:n])
    ranked.warns = False
    [hits] = ranked.search([query], n)
    return " ".join(sentences[i] for i in sorted(int(hit.passage.id) for hit in hits))


@cache
def _splitter() -> Callable[[str], Iterable[str]]:
    from rag_repro.splitter import english

    return english()
