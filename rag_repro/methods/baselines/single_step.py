"""The plainest ways to answer: without passages, with one search, with gold.

`no_retrieval` and `gold_passages` frame every other result: what the reader
knows by itself, and what it could do if retrieval were perfect.
"""

from __future__ import annotations

from ...engine import Flow
from ...schema import Question, Retrieve
from ..base import MethodSpec, Settings
from ..stages import read, retrieve


def no_retrieval(question: Question, settings: Settings) -> Flow:
    """The reader alone."""
    return (yield from read(question, (), settings))


def single_step(question: Question, settings: Settings) -> Flow:
    """Retrieve the k best passages for the question itself, then read them."""
    hits = yield from retrieve(question, settings)
    return (yield from read(question, hits, settings))


def gold_passages(question: Question, settings: Settings) -> Flow:
    """Read the question's gold passages: the ceiling of any retrieval."""
    hits = yield Retrieve(question.text, k=len(question.gold), within=question.gold_ids)
    return (yield from read(question, hits, settings))


NO_RETRIEVAL = MethodSpec("no_retrieval", 2, no_retrieval, Settings, "no passages")
SINGLE_STEP = MethodSpec("single_step", 1, single_step, Settings, "retrieve once, then read")
GOLD_PASSAGES = MethodSpec("gold_passages", 1, gold_passages, Settings, "read the gold passages")
