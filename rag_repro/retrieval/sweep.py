"""How much of the gold each retriever finds: rows for tables and figures.

Which BM25 was meant (variant, k1, b, stemming, stop words, title) moves
recall by more than many a published gain; `bm25_settings` spells the
choices out, and `sweep` runs them all over one data set.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.dataset import Corpus, Dataset
from ..schema import Question
from .analyzer import DEFAULT
from .base import RetrievalError, Retriever
from .bm25 import BM25

# (ids of the hits, best first; ids of the gold passages) -> a number
Metric = Callable[[Sequence[str], Sequence[str]], float]
Make = Callable[[Corpus], Retriever]

_OF_ANALYZER = ("lowercase", "fold", "pattern", "stop_words", "stemmer")


def share_found(hits: Sequence[str], gold: Sequence[str]) -> float:
    """Share of the gold passages among the hits."""
    return len(set(gold) & set(hits)) / len(set(gold))


def all_found(hits: Sequence[str], gold: Sequence[str]) -> float:
    """1 where every gold passage is among the hits, else 0."""
    return float(set(gold) <= set(hits))


METRICS: Mapping[str, Metric] = {"recall": share_found, "all_found": all_found}


def bm25_settings(**choices: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Every combination of the given choices, by a label of what varies.

    Names are those of `BM25` (variant, k1, b, fields) and of `Analyzer`
    (lowercase, fold, pattern, stop_words, stemmer); the rest stays at its
    default. `BM25(corpus, **setting)` makes the retriever of a setting.

    >>> list(bm25_settings(variant=["lucene", "atire"], stemmer=[None, "english"]))[1]
    'variant=lucene stemmer=english'
    """
    settings = {}
    for values in itertools.product(*map(list, choices.values())):
        chosen = dict(zip(choices, values, strict=True))
        label = " ".join(f"{name}={_shown(value)}" for name, value in chosen.items())
        terms = {name: chosen.pop(name) for name in _OF_ANALYZER if name in chosen}
        settings[label or "default"] = {**chosen, "analyzer": replace(DEFAULT, **terms)}
    return settings


def _shown(value: Any) -> str:
    return "+".join(value) if isinstance(value, tuple) else str(value)


def per_question(
    dataset: Dataset,
    retriever: Retriever,
    ks: Sequence[int],
    *,
    candidates: bool = False,
    metrics: Mapping[str, Metric] = METRICS,
) -> dict[str, dict[int, np.ndarray]]:
    """metric -> k -> (questions,) values, in the order of `with_gold(dataset)`.

    candidates: choose only from the passages handed out with each question;
    statistics stay those of the whole corpus. One search serves every k.
    """
    questions = with_gold(dataset, candidates)
    hits = retriever.search(
        [q.text for q in questions],
        max(ks),
        within=[q.candidates for q in questions] if candidates else None,
    )
    ids = [[hit.passage.id for hit in found] for found in hits]
    return {
        name: {
            k: np.array(
                [metric(found[:k], q.gold_ids) for found, q in zip(ids, questions, strict=True)]
            )
            for k in ks
        }
        for name, metric in metrics.items()
    }


def with_gold(dataset: Dataset, candidates: bool = False) -> tuple[Question, ...]:
    """The questions that can be scored: those with gold passages (and candidates)."""
    kept = tuple(q for q in dataset.questions if q.gold and (q.candidates or not candidates))
    if not kept:
        raise RetrievalError(
            f"data set {dataset.name!r} has no question with gold passages"
            + (" and candidates" if candidates else "")
            + "; recall is not defined on it"
        )
    return kept


def sweep(
    dataset: Dataset,
    retrievers: Mapping[str, Retriever | Make | Mapping[str, Any]],
    ks: Sequence[int] = (3, 4, 6),
    *,
    candidates: bool = False,
    metrics: Mapping[str, Metric] = METRICS,
) -> list[dict[str, Any]]:
    """One row a retriever and k: dataset, setting, pool, k, n, and the mean of each metric.

    retrievers: by label a retriever, a function that makes one from the
    corpus, or the arguments of `BM25`; the latter two are made one after the
    other and dropped again, so that a long sweep needs the memory of one.
    """
    rows = []
    for label, source in retrievers.items():
        values = per_question(
            dataset, _made(source, dataset.corpus), ks, candidates=candidates, metrics=metrics
        )
        rows += [
            {
                "dataset": dataset.name,
                "setting": label,
                "pool": "candidates" if candidates else "corpus",
                "k": k,
                "n": len(with_gold(dataset, candidates)),
                **{name: float(by_k[k].mean()) for name, by_k in values.items()},
            }
            for k in ks
        ]
    return rows


def _made(source: Retriever | Make | Mapping[str, Any], corpus: Corpus) -> Retriever:
    if isinstance(source, Mapping):
        return BM25(corpus, **source)
    retriever = source(corpus) if callable(source) else source
    if retriever.corpus.sha256 != corpus.sha256:
        raise RetrievalError(
            f"a retriever over corpus {retriever.corpus.name!r} was given for {corpus.name!r}; "
            "hand in one that was made over the data set's own corpus"
        )
    return retriever
