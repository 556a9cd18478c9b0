"""Chains of thought to be taught for real questions, from what comes with them.

The testbed's are made of its facts: `data.synthworld.reasoning`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_repro.splitter import english

from ..evaluation.normalise import holds
from ..schema import Passage, Question


def public_thoughts(question: Question, gold: Sequence[Passage]) -> str:
    """The reasoning for a real question; "" where nothing that came with it leads to the answer.

    By what there is: a chain written by hand (IRCoT's demonstrations), evidence
    triples (2WikiMultihopQA), the sentences that annotators marked (HotpotQA), or
    the gold passage's first sentence that holds the answer (NQ).
    """
    meta = question.meta
    if "cot" in meta:
        return meta["cot"].partition("So the answer is")[0].strip()
    if meta.get("evidences"):
        return " ".join(f"The {relation} of {a} is {b}." for a, relation, b in meta["evidences"])
    if meta.get("supporting_facts"):
        return " ".join(sentence for _, sentence in marked(meta["supporting_facts"], gold))
    return next(filter(None, (first_with(question.answers, passage) for passage in gold)), "")


def first_with(answers: Sequence[str], passage: Passage) -> str:
    """The passage's first sentence that holds one of the answers; "" without any."""
    for sentence in english()(passage.text):
        if any(holds(sentence, answer) for answer in answers):
            return sentence.strip()
    return ""


def marked(marks: Sequence[tuple[str, int]], gold: Sequence[Passage]) -> list[tuple[Passage, str]]:
    """Sentences by title and number; borders are ours, so a number may lie beyond the last."""
    by_title = {p.title: (p, [s.strip() for s in english()(p.text)]) for p in gold}
    found = [(*by_title[title], n) for title, n in marks if title in by_title]
    return [(p, said[min(n, len(said) - 1)]) for p, said, n in found if said]
