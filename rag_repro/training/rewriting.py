"""The lessons of ERM4's Query Rewriter+: a question, what is meant by it, and what to look for.

The testbed knows all three: which of its readings an ambiguous question is asked in, the facts
behind a question, and the words in which passages speak. So the rewriting is the reading that
is meant, or the question in the passages' words, and there is a query for each fact:

    s      "Who is the father of the director of F?"
    q_i    "Who directed F?"   "Who is the father of the director of F?"

The paper's instances are kept only where the answer to s hits and the answer to the question
itself does not as well (section 3.1). `check` does that with a reader; how many were kept
stands in the source of the lessons, and so in the adapter's card. It chooses by the outcome,
and may teach what that reader happens to like (c26): lessons without it are the other case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path

from rag_repro import data, engine
from rag_repro.data import synthworld
from rag_repro.data.synthworld import World
from rag_repro.data.synthworld.asking import Asker
from rag_repro.data.synthworld.reasoning import facts_of
from rag_repro.data.synthworld.world import Fact
from rag_repro.evaluation.answer_metrics import accuracy
from rag_repro.methods.erm4.erm4_settings import ERM4Settings
from rag_repro.methods.erm4.rewriter import SEPARATOR, rewriting_prompt, written
from rag_repro.methods.erm4.trigger import gather
from rag_repro.methods.stages import read
from rag_repro.schema import Answer, Question
from rag_repro.schema.dataset import Dataset
from rag_repro.study.services import Workshop
from rag_repro.training.examples import Example
from rag_repro.training.recipes import RecipeError

WORLD = "world-A"
QUERIES = 3
TASKS = ("plus", "query", "rewriting", "queries")
"""All that the method can ask of a rewriter; a recipe teaches those that its rows ask for."""


@dataclass(frozen=True)
class Rewritten:
    """A question as it is asked, as it is meant, and what to search for."""

    asked: Question
    meant: str
    queries: tuple[str, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        """The accepted ones; of an ambiguous question those of the reading that is meant."""
        place = self.asked.meta.get("intent")
        return self.asked.answers if place is None else self.asked.interpretations[place].answers


def rewriting(
    dataset: str,
    seed: int,
    questions: int | None = None,
    tasks: Sequence[str] = TASKS,
    check: str | None = None,
    data_dir: Path | None = None,
) -> Iterator[Example]:
    """The first training questions of world A (or a part of it, as its ambiguous ones).

    tasks: of `TASKS`; the one query of "query" is the rewritten question itself.
    check: the reader that must do better with the rewriting: with it and its queries it hits
    the answer, with the question alone it does not. None: all are taught.
    seed changes nothing: nothing is drawn.
    """
    asked = data.load(dataset, data_dir=data_dir, split="train").first(questions)
    world = synthworld.world(WORLD[-1])
    made = [one for q in asked.questions if (one := rewritten(world, q)) is not None]
    source = f"rewriting:{dataset}"
    if check is not None:
        kept = checked(made, asked, Workshop(data_dir), check)
        source += f", {len(kept)} of {len(made)} that {check} does better with"
        made = kept
    for one, task in product(made, tasks):
        queries = (one.meant,) if task == "query" else one.queries
        target = written(one.meant, queries, task)
        yield Example(rewriting_prompt(task, one.asked, False), target, source, one.asked.id)


def rewritten(world: World, question: Question) -> Rewritten | None:
    """What a question means; None where an ambiguous one's intent is not known."""
    facts, asker = facts_of(world, question), Asker(world)
    if question.interpretations:
        place = question.meta.get("intent")
        if place is None:
            return None
        meant, facts = question.interpretations[place].question, facts[place : place + 1]
    elif all(a.object == b.subject for a, b in pairwise(facts)):
        meant = _asking(world, asker, facts, facts[-1])
    else:
        meant = question.text
    queries = dict.fromkeys(_asking(world, asker, facts, fact) for fact in facts)
    if any(SEPARATOR in said for said in (meant, *queries)):
        return None
    return Rewritten(question, meant, tuple(queries)[:QUERIES])


def _asking(world: World, asker: Asker, facts: Sequence[Fact], fact: Fact) -> str:
    """A question for one fact, in the words of passages."""
    return asker.ask(fact.relation, _subject(world, asker, facts, fact), _first)


def _subject(world: World, asker: Asker, facts: Sequence[Fact], fact: Fact) -> str:
    """The fact's subject: by its title, or by the fact that leads to it."""
    before = next((other for other in facts if other.object == fact.subject), None)
    if before is None:
        return world.entity[fact.subject].title
    return asker.phrase(before.relation, _subject(world, asker, facts, before), _first)


def _first() -> float:
    """In place of a draw: the passages' own words, and the first of their wordings."""
    return 0.0


def checked(
    made: Sequence[Rewritten],
    asked: Dataset,
    workshop: Workshop,
    reader: str,
) -> list[Rewritten]:
    """Those with which the reader hits the answer where it does not with the question itself."""
    of = {one.asked.id: one for one in made}
    kept: set[str] = set()
    settings = ERM4Settings(rewrite="none", per_query=6, k=6, prompt="cot")

    def twice(question: Question, settings: ERM4Settings) -> engine.Flow:
        one, hits = of[question.id], []
        for text, queries in ((question.text, (question.text,)), (one.meant, one.queries)):
            gathered = yield from gather(question, queries, settings)
            shown = gathered.in_order(settings.order, settings.k)
            answer = yield from read(replace(question, text=text), shown, settings)
            hits.append(accuracy(answer.prediction, one.answers, whole_words=True))
        if hits[1] > hits[0]:
            kept.add(question.id)
        return Answer()

    services = {
        "retriever": workshop.retriever("bm25", asked.corpus),
        "reader": workshop.reader(reader),
    }
    tasks = (engine.Task(one.asked, twice, settings) for one in made)
    for task, answer in engine.run(tasks, services, batch_size=workshop.batch_size):
        if answer.error:
            raise RecipeError(f"{asked.name}: question {task.question.id}: {answer.error}")
    return [one for one in made if one.asked.id in kept]
