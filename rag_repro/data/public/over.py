"""A data set without passages, over the corpus of another: AmbigNQ's questions over NQ's pool.

The pool was gathered for other questions, so most questions of the first have no answer in
it. Only those are kept of which it holds an answer string at all; that is necessary for an
answer from passages and far from sufficient, since the string may stand there by chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rag_repro.schema.dataset import Dataset

from ...schema import Passage, Question

SHORTEST = 4
"""Characters of an answer, normalised: shorter ones, as "3" or "no", stand anywhere."""


def over(made: Dataset, other: Dataset) -> Dataset:
    """The questions of `made` that have an answer string in `other`'s corpus, over that corpus.

    The corpus is `other`'s own, so that its indexes serve both.
    """
    there = _Strings(other.corpus.passages)
    kept = tuple(q for q in made.questions if _answered(q, there))
    counts = {
        **made.card["counts"],
        "questions": len(kept),
        "passages": len(other.corpus),
        "questions_before": len(made.questions),
    }
    rule = (
        f"kept: questions with an accepted answer of {SHORTEST} characters or more, in whole "
        f"words, in a passage of {other.name}: {len(kept)} of {len(made.questions)}"
    )
    card = {**made.card, "counts": counts, "corpus of": other.name, "kept": rule}
    return replace(made, questions=kept, corpus=other.corpus, card=card)


def _answered(question: Question, there: _Strings) -> bool:
    from ...evaluation.metric import accepted

    return any(there.hold(answer) for answer in accepted(question))


class _Strings:
    """Which strings stand in some passages: by words, since there are thousands of both."""

    def __init__(self, passages: Iterable[Passage]):
        from ...evaluation.normalise import squad

        self._texts: list[str] = []
        self._places: dict[str, set[int]] = defaultdict(set)
        for passage in passages:
            for part in (passage.title, passage.text):
                words = squad(part).split()
                for word in words:
                    self._places[word].add(len(self._texts))
                self._texts.append(_bounded(words))

    def hold(self, answer: str) -> bool:
        """Whether the answer stands in a text or title, in whole words, and is long enough."""
        from ...evaluation.normalise import squad

        wanted = squad(answer)
        if len(wanted) < SHORTEST:
            return False
        places = set.intersection(*(self._places.get(w, set()) for w in wanted.split()))
        return any(_bounded(wanted.split()) in self._texts[i] for i in places)


def _bounded(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "
