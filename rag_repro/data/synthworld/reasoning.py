"""What leads to a question's answer, said sentence by sentence in the words that passages use.

Each step says one fact; sums are spelt out. So a chain of thought holds nothing that
the passages (or, without passages, taught statements) do not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from rag_repro.data.synthworld.asking import Asker, answers_of
from rag_repro.data.synthworld.dials import PRESETS
from rag_repro.data.synthworld.wordings import wordings
from rag_repro.data.synthworld.world import Fact, World
from rag_repro.schema import Question


@dataclass(frozen=True, slots=True)
class Saying:
    """A fact as one sentence, in which its value is the characters first..last-1."""

    fact: Fact
    text: str
    first: int
    last: int


def facts_of(world: World, question: Question) -> tuple[Fact, ...]:
    """The facts that a question rests on, in the order of its reasoning."""
    pairs = zip(question.meta["subjects"], question.meta["relations"], strict=True)
    return tuple(world.facts_of[subject][relation] for subject, relation in pairs)


def saying(world: World, fact: Fact, random: Random) -> Saying:
    """A fact as one sentence: its subject's title, and one of the passages' wordings."""
    before, after = random.choice(_says(world, fact))
    lead = f"{world.entity[fact.subject].title} {before}"
    return Saying(fact, f"{lead}{fact.value}{after}.", len(lead), len(lead) + len(fact.value))


def statements(world: World, fact: Fact, value: str | None = None) -> tuple[str, ...]:
    """All ways in which passages of this world may say a fact; value: another name for its own."""
    title = world.entity[fact.subject].title
    named = fact.value if value is None else value
    return tuple(f"{title} {before}{named}{after}." for before, after in _says(world, fact))


def sayings(world: World, question: Question, random: Random) -> tuple[Saying, ...]:
    """The facts that a question rests on, each as one sentence: how `thoughts` begin."""
    return tuple(saying(world, fact, random) for fact in facts_of(world, question))


def thoughts(world: World, question: Question, random: Random) -> str:
    """The reasoning before the answer: a sentence a fact, and the sum where there is one."""
    return reasoned(question, sayings(world, question, random))


def reasoned(question: Question, said: Sequence[Saying]) -> str:
    """The same of facts that are said already: single blanks stand between sentences."""
    parts = [one.text for one in said]
    if question.kind == "numeric_difference":
        low, high = sorted(_number(one.fact) for one in said)
        # Years are written without a comma, counts with one.
        form = "," if any("," in one.fact.value for one in said) else ""
        parts.append(f"{high:{form}} - {low:{form}} = {high - low:{form}}.")
    return " ".join(parts)


def question_of(world: World, fact: Fact, asker: Asker, random: Random) -> Question:
    """One hop: a question whose answer this fact is, in one of the asker's wordings."""
    subject = world.entity[fact.subject]
    text = asker.ask(fact.relation, asker.mention(subject, random.random), random.random)
    name = f"{fact.subject}-{fact.relation}"
    return Question(name, text, answers_of(world, fact), kind="single_hop", hops=1)


def _says(world: World, fact: Fact) -> tuple[tuple[str, str], ...]:
    return wordings(PRESETS[world.name].wording)[fact.relation].says


def _number(fact: Fact) -> int:
    """The number to subtract: a date counts by its year."""
    return fact.key // 10_000 if fact.relation.endswith("_date") else fact.key
