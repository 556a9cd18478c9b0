"""Retrievers: a query in, the k best passages of a corpus out.

All keep one promise (`interface.Retriever`): ties are broken by passage id,
`within` limits a search to some passages while statistics stay the
corpus's, and `fingerprint` changes when results can. bm25s, rank_bm25, FAISS
and pymilvus are imported when an index is built or loaded, not here.

    retriever = BM25(dataset.corpus, variant="robertson")
    hits = retriever.search(["Where was the director of Ran born?"], k=3)[0]

`adapt` makes a retriever of what is not ours: a function, an object, an index, LangChain's.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rag_repro.retrieval.analyzer import Analyzer, suited
from rag_repro.retrieval.bm25 import BM25, RankBM25
from rag_repro.retrieval.custom import NO_CORPUS, Custom, adapt
from rag_repro.retrieval.dense import Dense
from rag_repro.retrieval.interface import (
    Chance,
    Encoder,
    RetrievalError,
    Retriever,
    Stored,
    StoreError,
)
from rag_repro.retrieval.milvus import Milvus
from rag_repro.retrieval.reservoir import QueryCache, Reservoir
from rag_repro.schema.dataset import Corpus
from rag_repro.words import choices

KINDS: Mapping[str, type] = {cls.kind: cls for cls in (BM25, RankBM25, Dense, Chance, Milvus)}

__all__ = [
    "BM25",
    "KINDS",
    "NO_CORPUS",
    "Analyzer",
    "Chance",
    "Custom",
    "Dense",
    "Encoder",
    "Milvus",
    "QueryCache",
    "RankBM25",
    "Reservoir",
    "RetrievalError",
    "Retriever",
    "StoreError",
    "Stored",
    "adapt",
    "build",
]


def build(kind: str, corpus: Corpus, **settings: Any) -> Retriever:
    """A retriever of the named kind ("bm25", "rank_bm25", "dense", "random", "milvus") from plain
    settings.

    `analyzer` may be given as a mapping of its fields, as in a YAML file; those that are not
    named suit the corpus.

    Raises RetrievalError for a kind or setting that is not known.
    """
    if kind not in KINDS:
        raise RetrievalError(f"no retriever of kind {kind!r}" + choices(kind, KINDS))
    if isinstance(settings.get("analyzer"), Mapping):
        settings["analyzer"] = _called(Analyzer, {**suited(corpus), **settings["analyzer"]})
    return _called(KINDS[kind], settings, corpus)


def _called(cls: type, settings: Mapping[str, Any], *args: Any) -> Any:
    names = [n for n in inspect.signature(cls).parameters if n not in ("corpus", "folder")]
    unknown = next((name for name in settings if name not in names), None)
    if unknown is not None:
        raise RetrievalError(f"{cls.__name__} has no setting {unknown!r}" + choices(unknown, names))
    return cls(*args, **settings)
