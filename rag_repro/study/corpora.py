"""Corpora in Milvus by the names of their retrievers: filled, looked up, and tried.

What `rag-repro corpus` does, and what the workshop opens where a condition names one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from rag_repro.lm.hub import cache_folder
from rag_repro.retrieval import BM25, Dense, Milvus, RetrievalError, Retriever
from rag_repro.retrieval.milvus_server import ENDING, MilvusError
from rag_repro.schema.dataset import Corpus
from rag_repro.study.names import FITTED, MILVUS, UnknownService, known_retrievers
from rag_repro.study.services import Workshop

log = logging.getLogger(__name__)

DEPTH = 10
"""Hits whose overlap is told."""


def place(name: str, corpus: Corpus, workshop: Workshop, address: str | None = None) -> Milvus:
    """The corpus's place in Milvus, filled or not; address: in place of the one `name` tells of.

    Raises UnknownService for a retriever that does not lie in Milvus, else as `Milvus`.
    """
    settings = workshop.settings_of(name)
    if settings.pop("kind") != "milvus":
        there = sorted(n for n, known in known_retrievers().items() if known["kind"] == "milvus")
        raise UnknownService(
            f"the retriever {name!r} does not lie in Milvus; there are: {', '.join(there)}, and "
            f"{MILVUS}ADDRESS"
        )
    where = address or settings.pop("where", None) or folder(name, corpus)
    if "encoder" in settings:
        if settings["encoder"] in FITTED:
            raise UnknownService(
                f"the encoder {settings['encoder']!r} is fitted anew each time, so that its "
                "vectors cannot be kept in Milvus; name another"
            )
        settings["encoder"] = workshop.encoder(settings["encoder"])
    return Milvus(corpus, **{**settings, "where": where})


def folder(name: str, corpus: Corpus) -> Path:
    """Where the embedded Milvus keeps it: apart, since one process at a time opens a folder."""
    words = re.sub(r"[^\w.@-]+", "_", f"{corpus.name}-{name}")
    return cache_folder() / "milvus" / (words + ENDING)


def filled(name: str, corpus: Corpus, workshop: Workshop) -> Milvus:
    """Open for searches. The embedded Milvus is filled where it is not yet.

    One at an address is others' as well: only `rag-repro corpus build` fills it.
    """
    made = place(name, corpus, workshop)
    if not made.server.embedded:
        return made.open()
    if not made.finished:
        log.info("loading %d passages of %s into %s", len(corpus), corpus.name, made.server.where)
    made.load()
    return made


def is_filled(name: str, corpus: Corpus, workshop: Workshop) -> bool:
    """Whether it can be searched at once; nothing is begun."""
    embedded = "where" not in workshop.settings_of(name)
    if embedded and not folder(name, corpus).exists():
        return False
    try:
        return place(name, corpus, workshop).finished
    except RetrievalError:
        return False


@dataclass(frozen=True)
class Overlap:
    """Shares of one retriever's best that are among another's, from 0 to 1, over the queries."""

    mean: float
    least: float
    same_order: float


def check(
    made: Milvus, queries: Sequence[str], sample: int = 200
) -> tuple[list[str], tuple[str, ...]]:
    """What a look at a loaded corpus finds, in lines, and the ids of passages that are not what
    the corpus has: a count, a sample of passages read back, and searches beside bm25s and FAISS.

    Raises MilvusError where not all is in.
    """
    made.open()
    corpus = made.corpus
    chosen = Random(0).sample(corpus.passages, min(sample, len(corpus)))
    there = made.stored_passages([p.id for p in chosen])
    differing = tuple(p.id for p in chosen if there.get(p.id) != p)
    lines = [
        f"passages: {made.count():,}, as the corpus has",
        f"read back: {len(chosen) - len(differing):,} of {len(chosen):,} equal",
    ]
    for name, other in references(made).items():
        one = overlap(made, other, queries)
        lines.append(
            f"overlap at {DEPTH} with {name}: {one.mean:.3f} (least {one.least:.1f}), in the "
            f"same order {one.same_order:.0%}, {len(queries):,} queries"
        )
    return lines, differing


def references(made: Milvus) -> dict[str, Retriever]:
    """The retrievers in memory that do what this one's modes do, of the same settings."""
    found: dict[str, Retriever] = {}
    if made.mode != "dense":
        words = {"k1": made.k1, "b": made.b, "analyzer": made.analyzer}
        found["bm25s"] = BM25(made.corpus, fields=made.fields, **words)
    if made.encoder is not None:
        found["FAISS"] = Dense(made.corpus, made.encoder, fields=made.fields)
    return found


def overlap(a: Retriever, b: Retriever, queries: Sequence[str], k: int = DEPTH) -> Overlap:
    """Of the k best of both for each query. Raises MilvusError without queries."""
    if not queries:
        raise MilvusError("no query to compare with: the data set has no question")
    pairs = [
        tuple([hit.passage.id for hit in hits] for hits in both)
        for both in zip(a.search(queries, k), b.search(queries, k), strict=True)
    ]
    shares = [len(set(x) & set(y)) / max(len(y), 1) for x, y in pairs]
    return Overlap(fmean(shares), min(shares), fmean(x == y for x, y in pairs))
