"""Chains of thought to be taught: from a world's facts, or from what comes with a real question.

On the testbed each step says one fact in the words that passages use; sums are
spelt out. So a target holds nothing that the passages (or, without passages,
the taught statements) do not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..data.splitter import english
from ..data.synthworld import World
from ..data.synthworld.wordings import wording_set, wordings
from ..data.synthworld.world import Fact
from ..evaluation.normalise import holds
from ..schema import Passage, Question


def statement(world: World, fact: Fact, random: Random) -> str:
    """A fact as one sentence: its subject's title, and one of the passages' wordings."""
    says = wordings(wording_set(world.name))[fact.relation].says
    before, after = random.choice(says)
    return f"{world.entity[fact.subject].title} {before}{fact.value}{after}."


def statements(world: World, fact: Fact) -> tuple[str, ...]:
    """All ways in which passages of this world may say a fact."""
    title = world.entity[fact.subject].title
    says = wordings(wording_set(world.name))[fact.relation].says
    return tuple(f"{title} {before}{fact.value}{after}." for before, after in says)


def facts_of(world: World, question: Question) -> tuple[Fact, ...]:
    """The facts that a question rests on, in the order of its reasoning."""
    pairs = zip(question.meta["subjects"], question.meta["relations"], strict=True)
    return tuple(world.facts_of[subject][relation] for subject, relation in pairs)


def thoughts(world: World, question: Question, random: Random) -> str:
    """The reasoning before the answer: a sentence a fact, and the sum where there is one."""
    facts = facts_of(world, question)
    said = [statement(world, fact, random) for fact in facts]
    if question.kind == "numeric_difference":
        low, high = sorted(_number(fact) for fact in facts)
        # Years are written without a comma, counts with one.
        form = "," if any("," in fact.value for fact in facts) else ""
        said.append(f"{high:{form}} - {low:{form}} = {high - low:{form}}.")
    return " ".join(said)


def _number(fact: Fact) -> int:
    """The number to subtract: a date counts by its year."""
    return fact.key // 10_000 if fact.relation.endswith("_date") else fact.key


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
        return " ".join(_marked(meta["supporting_facts"], gold))
    for passage in gold:
        for sentence in english()(passage.text):
            if any(holds(sentence, answer) for answer in question.answers):
                return sentence.strip()
    return ""


def _marked(marks: Sequence[tuple[str, int]], gold: Sequence[Passage]) -> list[str]:
    """Sentences by title and number; borders are ours, so a number may lie beyond the last."""
    by_title = {p.title: [s.strip() for s in english()(p.text)] for p in gold}
    found = [(by_title[title], n) for title, n in marks if by_title.get(title)]
    return [sentences[min(n, len(sentences) - 1)] for sentences, n in found]
