"""Small corpora whose scores can be worked out by hand, and the real pooled ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rag_repro.schema import Gold, Passage, Question
from rag_repro.schema.dataset import Corpus, Dataset


def corpus_of(*texts: str, ids: list[str] | None = None, name: str = "small") -> Corpus:
    """Untitled passages p0, p1, ... of the given texts."""
    ids = ids or [f"p{i}" for i in range(len(texts))]
    return Corpus(name, tuple(Passage(i, "", t) for i, t in zip(ids, texts, strict=True)))


def ids_of(hits) -> list[str]:
    return [hit.passage.id for hit in hits]


class Letters:
    """A tiny encoder: counts of a, b and c, normalised; exact in float32 where they are 0/1."""

    fingerprint = "letters-1"

    def __init__(self):
        self.asked: list[list[str]] = []

    def encode(self, texts):
        self.asked.append(list(texts))
        counts = np.array([[t.count(c) for c in "abc"] for t in texts], dtype=np.float32)
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def letters() -> Letters:
    return Letters()


@pytest.fixture(scope="session")
def pooled(data_dir: Path) -> Callable[[str], Dataset]:
    """Reads a file of questions with documents; the corpus pools all documents of the file."""

    def read(name: str) -> Dataset:
        path = data_dir / f"{name}.jsonl.gz"
        if not path.exists():
            pytest.skip(f"{path.name} is not in RAG_REPRO_DATA")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        ids: dict[tuple[str, str], str] = {}
        for row in rows:
            for doc in row["docs"]:
                ids.setdefault((doc["title"], doc["text"]), f"{name}-{len(ids):05}")
        corpus = Corpus(name, tuple(Passage(i, *key) for key, i in ids.items()))
        questions = []
        for row in rows:
            gold = {ids[doc["title"], doc["text"]]: None for doc in row["docs"] if doc["gold"]}
            questions.append(
                Question(
                    row["id"],
                    row["question"],
                    tuple(row["answers"]),
                    gold=tuple(map(Gold, gold)),
                    candidates=tuple(ids[doc["title"], doc["text"]] for doc in row["docs"]),
                )
            )
        return Dataset(name, tuple(questions), corpus)

    return read
