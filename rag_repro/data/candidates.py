"""A world's questions with candidates of their own, as R²AG's data sets have them.

`world-B-10`: ten passages a question, namely its gold passages and the nearest to it, by
BM25 over the whole world, that hold none of its accepted answers: what "Lost in the Middle"
does to NQ. `world-B-gold`: its gold passages alone. Corpus and questions are the world's, so
that answers with and without candidates can be paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_repro.schema import Passage, Question

if TYPE_CHECKING:
    from rag_repro.retrieval import Retriever
    from rag_repro.schema.dataset import Dataset

ONLY_GOLD = "gold"
FEWEST, MOST = 5, 100
"""Candidates a question: below, a bridge of four hops would have no distractor at all."""

# So many times what is wanted is looked at first; whom that does not suffice gets all.
_DEEP = 3


def check(name: str, wanted: str) -> None:
    """ValueError where `wanted` is neither "gold" nor a number that can be had."""
    if wanted != ONLY_GOLD and not FEWEST <= int(wanted) <= MOST:
        raise ValueError(
            f"{name}: {wanted} candidates a question cannot be had; "
            f"ask for {FEWEST} to {MOST}, or for {ONLY_GOLD!r} alone"
        )


def given(world: Dataset, wanted: str) -> Dataset:
    """The same questions over the same corpus, each with candidates, best by BM25 first.

    wanted: how many, or "gold". Those of a smaller number are among those of a larger one.
    A thousand questions over 4,000 passages take about two seconds.
    """
    questions = world.questions
    if wanted == ONLY_GOLD:
        pools = [q.gold_ids for q in questions]
    else:
        # Here, since a world without candidates needs neither.
        from rag_repro.retrieval import BM25

        search = BM25(world.corpus)
        pools = _ordered(search, questions, _pools(search, questions, int(wanted)))
    made = (replace(q, candidates=tuple(p)) for q, p in zip(questions, pools, strict=True))
    counts = "gold passages alone" if wanted == ONLY_GOLD else f"{wanted} passages a question"
    card = {**world.card, "candidates": counts}
    head, at, size = world.name.partition("@")
    name = f"{head}-{wanted}{at}{size}"
    return replace(world, name=name, questions=tuple(made), card=card)


def _pools(search: Retriever, questions: Sequence[Question], n: int) -> list[tuple[str, ...]]:
    texts = [q.text for q in questions]
    found = search.search(texts, k=min(_DEEP * n, len(search.corpus)))
    pools = []
    for q, hits in zip(questions, found, strict=True):
        chosen = _chosen(q, [h.passage for h in hits], n)
        if len(chosen) < n:
            [every] = search.search([q.text], k=len(search.corpus))
            chosen = _chosen(q, [h.passage for h in every], n)
        pools.append(chosen)
    return pools


def _chosen(q: Question, ranked: Sequence[Passage], n: int) -> tuple[str, ...]:
    """Gold, then the first that are not and do not give the answer away."""
    from rag_repro.evaluation.metric import Scored, accepted
    from rag_repro.evaluation.retrieval_metrics import has_answer

    answers = accepted(q)
    # Yes and no stand in many passages and give nothing away.
    told = () if Scored(q, answers, None, (), ()).closed else answers
    chosen = list(q.gold_ids)
    for passage in ranked:
        if len(chosen) >= n:
            break
        if passage.id not in q.gold_ids and not has_answer(passage, told):
            chosen.append(passage.id)
    return tuple(chosen)


def _ordered(
    search: Retriever, questions: Sequence[Question], pools: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Each pool in the order of the search, so that its place gives no gold passage away."""
    deepest = max(map(len, pools), default=1)
    found = search.search([q.text for q in questions], k=deepest, within=pools)
    return [tuple(h.passage.id for h in hits) for hits in found]
