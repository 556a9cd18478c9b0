"""Scores of the passages that a method used: pure functions.

Hits are ids, best first; an id that comes twice counts once, at its first
place. Every share lies in [0, 1]. A function is only called where its score is
defined: none has a value for a question without gold passages (`metrics.score`).
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_repro.evaluation import normalise
from rag_repro.schema import Passage, Question


def recall(hit_ids: Sequence[str], gold_ids: Sequence[str]) -> float:
    """Share of the gold passages among the hits: DR-RAG's recall rate.

    Table 5 can mean nothing else: a quarter of 2Wiki's questions have four
    gold passages, so that all of them found cannot reach the printed 87.81 %
    at k = 3.
    """
    gold = set(gold_ids)
    return len(gold & set(hit_ids)) / len(gold)


def all_found(hit_ids: Sequence[str], gold_ids: Sequence[str]) -> float:
    """1 where every gold passage is among the hits."""
    return float(set(gold_ids) <= set(hit_ids))


def any_found(hit_ids: Sequence[str], gold_ids: Sequence[str]) -> float:
    """1 where a gold passage is among the hits: the hit of single-gold sets (NQ)."""
    return float(not set(gold_ids).isdisjoint(hit_ids))


def precision(hit_ids: Sequence[str], gold_ids: Sequence[str]) -> float:
    """Share of the hits that are gold (DR-RAG's redundancy is 1 minus this)."""
    gold, hits = set(gold_ids), set(hit_ids)
    return len(gold & hits) / len(hits)


def average_precision(hit_ids: Sequence[str], gold_ids: Sequence[str]) -> float:
    """Mean over the gold passages of the precision at each one's rank.

    A gold passage that is not among the hits adds 0. Its mean over questions
    is R²AG's MAP (table 4), where the hits are *all* candidates in order.
    """
    gold, found, total = set(gold_ids), 0, 0.0
    for rank, passage_id in enumerate(dict.fromkeys(hit_ids), start=1):
        if passage_id in gold:
            found += 1
            total += found / rank
    return total / len(gold)


def has_answer(passage: Passage, answers: Sequence[str]) -> bool:
    """Whether an answer occurs, in whole words, in the passage's text or title."""
    return any(normalise.holds(part, a) for part in (passage.text, passage.title) for a in answers)


def tells_answer(question: Question, passage: Passage) -> bool:
    """Whether a gold passage holds the answer itself: by the steps of its chain, or its words."""
    if question.steps:
        told = [step for step in question.steps if step.passage_id == passage.id]
        whole = len(told) == len(question.steps)
        return whole or any(step.answer in question.answers for step in told)
    return any(normalise.holds(passage.text, answer) for answer in question.answers)


def answer_recall(passages: Sequence[Passage], readings: Sequence[Sequence[str]]) -> float:
    """Share of the answer items that occur in the passages (ERM4, section 2).

    An item is one reading of the question with its aliases, so that an
    unambiguous question scores 0 or 1: the answer occurs, or not.
    """
    found = [any(has_answer(p, answers) for p in passages) for answers in readings]
    return sum(found) / len(found)


def snippet_precision(passages: Sequence[Passage], answers: Sequence[str]) -> float:
    """Share of the passages in which any answer occurs (ERM4, section 2)."""
    return sum(has_answer(p, answers) for p in passages) / len(passages)
