"""A data set without passages, over the corpus of another: AmbigNQ's questions over NQ's pool.

The pool was gathered for other questions, so most questions of the first have no answer in
it. Only those are kept of which it holds an answer string at all; that is necessary for an
answer from passages and far from sufficient, since the string may stand there by chance.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from rag_repro.schema.dataset import Dataset

SHORTEST = 4
"""Characters of an answer, normalised: shorter ones, as "3" or "no", stand anywhere."""


def over(made: Dataset, other: Dataset) -> Dataset:
    """The questions of `made` that have an answer string in `other`'s corpus, over that corpus.

    The corpus is `other`'s own, so that its indexes serve both.
    """
    from rag_repro.evaluation.metric import accepted
    from rag_repro.evaluation.normalise import squad

    parts = (part for p in other.corpus.passages for part in (p.title, p.text))
    texts = [f" {squad(part)} " for part in parts]
    places: dict[str, set[int]] = defaultdict(set)  # of words: there are thousands of both
    for place, text in enumerate(texts):
        for word in text.split():
            places[word].add(place)

    def stands(answer: str) -> bool:
        """Whether it stands in a text or title, in whole words, and is long enough."""
        wanted = squad(answer)
        if len(wanted) < SHORTEST:
            return False
        shared = set.intersection(*(places.get(word, set()) for word in wanted.split()))
        return any(f" {wanted} " in texts[place] for place in shared)

    kept = tuple(q for q in made.questions if any(map(stands, accepted(q))))
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
