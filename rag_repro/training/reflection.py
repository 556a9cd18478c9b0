"""Self-RAG's lessons: what a reader says of a passage, of its answer, and of what it knows.

The tokens are spelt in words of the vocabulary (`methods.baselines.self_rag.WORDS`):

    question                                 ->  " known" answer " excellent"    all facts taught
                                             ->  " search"                       else
    question, " search", passage in tags     ->  " relevant" answer " fully" " excellent"
                                                 " relevant" answer " partly" " good"
                                                 " relevant" answer " hardly" " fair" or " useless"
                                                 " irrelevant" answer " fair" or " useless"

Relevant is gold. Fully: the passage tells all facts behind the question; partly: the one whose
value is the answer; hardly: neither. As in the original, nothing is said of support after an
irrelevant passage. In the original the true answer follows whatever the passage is. Here it does
only where the passage gives it, or the question offers it (yes or no, one of the names
that it compares); else "unknown" follows, for a small reader that is taught answers which
nothing gives learns to make them up. (Asai et al. 2024, section 3.2; the critic's judgements,
GPT-4's there, are the testbed's own knowledge here.)
"""

from __future__ import annotations

from collections.abc import Sequence

from ..data.synthworld.world import Fact
from ..evaluation.normalise import holds
from ..methods.baselines.self_rag import WORDS
from ..schema import Passage, Question

UNKNOWN = "unknown"


def alone(question: Question, known: bool) -> str:
    """What follows the bare question: an answer from memory, or the wish for passages."""
    if not known:
        return WORDS.texts["[Retrieval]"]
    return _said("[No Retrieval]", question.answers[0], "[Utility:5]")


def beside(question: Question, facts: Sequence[Fact], passage: Passage) -> str:
    """What follows the question and one passage; facts: all that the question rests on."""
    told = [fact for fact in facts if fact.passage_id == passage.id]
    guess = question.answers[0] if offered(question) else UNKNOWN
    worth = "[Utility:3]" if offered(question) else "[Utility:1]"
    if not told:
        return _said("[Irrelevant]", guess, worth)
    if len(told) == len(facts):
        return _said("[Relevant]", question.answers[0], "[Fully supported]", "[Utility:5]")
    if gives(question, facts, passage):
        return _said("[Relevant]", question.answers[0], "[Partially supported]", "[Utility:4]")
    return _said("[Relevant]", guess, "[No support / Contradictory]", worth)


def gives(question: Question, facts: Sequence[Fact], passage: Passage) -> bool:
    """Whether the passage tells the fact whose value is the answer, or all facts."""
    told = [fact for fact in facts if fact.passage_id == passage.id]
    return len(told) == len(facts) or any(fact.value in question.answers for fact in told)


def offered(question: Question) -> bool:
    """Whether the question itself offers its answer among others."""
    answer = question.answers[0]
    return answer in ("yes", "no") or holds(question.text, answer)


def _said(first: str, answer: str, *after: str) -> str:
    """Tokens and answer as the reader writes them: each word of the vocabulary brings its blank."""
    return "".join([WORDS.texts[first], f" {answer}", *(WORDS.texts[name] for name in after)])
