"""One question, step by step: what a method asked for, and what it got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro.schema import Answer, Hit, Question
from rag_repro.schema.dataset import Dataset
from rag_repro.show.table import Table
from rag_repro.study import again, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.services import Workshop

SHOWN = 160  # characters of a query or passage; the rest is an ellipsis


class Spy:
    """A retriever that notes each search, and is otherwise the one inside."""

    def __init__(self, retriever: Any):
        self.retriever = retriever
        self.searches: list[tuple[str, list[Hit]]] = []

    def search(self, queries: Sequence[str], k: int, within=None) -> list[list[Hit]]:
        found = self.retriever.search(queries, k, within)
        self.searches += zip(queries, found, strict=True)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.retriever, name)


@dataclass(frozen=True)
class Example:
    """One question under two conditions, and how often they part.

    gained: questions whose dynamic-relevant passages only `after` all finds;
    lost: only `before`; of: questions with such a passage that were asked.
    """

    question: Question
    dataset: Dataset
    before: Answer
    after: Answer
    searches: tuple[tuple[str, Sequence[Hit]], ...]
    gained: int
    lost: int
    of: int

    @property
    def counts(self) -> Table:
        both_or_neither = self.of - self.gained - self.lost
        return Table(
            ["only by two searches", "only by one", "by both or neither", "questions"],
            [[self.gained, self.lost, both_or_neither, self.of]],
            "Questions whose dynamic-relevant passages are all found, by what",
        )


def example(
    before: Condition, after: Condition, workshop: Workshop, *, kind: str, n: int = 200
) -> Example:
    """Ask both conditions their first n questions live, and take the first that `after` gains.

    That question is an illustration, chosen because it shows the mechanism (of
    the given kind where there is one); the counts are over all n.
    """
    dataset = workshop.dataset(before.dataset, before.split)
    asked = [q for q in dataset.questions if "dynamic" in {g.role for g in q.gold}][:n]
    if not asked:
        raise ValueError(f"{dataset.name}: no question needs a dynamic-relevant passage")
    both = again.answered(
        [(c, q) for c in (before, after) for q in asked], workshop, 2 * len(asked)
    )
    answers = {
        name: {q.id: a for q, a in zip(asked, part, strict=True)}
        for name, part in (("before", both[: len(asked)]), ("after", both[len(asked) :]))
    }
    found = {q.id: [_finds(answers[side][q.id], q) for side in ("before", "after")] for q in asked}
    gained = [q for q in asked if found[q.id] == [False, True]]
    lost = sum(found[q.id] == [True, False] for q in asked)
    shown = next((q for q in gained if q.kind == kind), (gained or asked)[0])
    answer, searches = walk(after, shown, workshop)
    return Example(
        shown,
        dataset,
        answers["before"][shown.id],
        answer,
        tuple(searches),
        len(gained),
        lost,
        len(asked),
    )


def _finds(answer: Answer, question: Question) -> bool:
    """Whether all dynamic-relevant passages are among the hits."""
    hits = {hit.passage.id for hit in answer.hits}
    return all(g.passage_id in hits for g in question.gold if g.role == "dynamic")


def walk(
    condition: Condition, question: Question, workshop: Workshop
) -> tuple[Answer, list[tuple[str, list[Hit]]]]:
    """Answer one question live -> its answer, and every search with its hits."""
    services = workshop.services(condition)
    spy = Spy(services["retriever"])
    [(_, answer)] = runner.answers(condition, [question], {**services, "retriever": spy}, 1)
    return answer, spy.searches


def question_table(question: Question, dataset: Dataset) -> Table:
    """The question, its accepted answers and its gold passages with their roles."""
    passages = dataset.corpus.by_id
    body = [["question", question.text], ["answer", " | ".join(question.answers)]]
    for gold in question.gold:
        passage = passages[gold.passage_id]
        text = f"{passage.title}: {passage.text}"
        body.append([f"gold, {gold.role}, hop {gold.hop}", text])
    return Table(["part", "text"], body, "The question, its answers and its gold passages")


def roles_of(question: Question) -> dict[str, str]:
    """Gold passage -> its role, "yes" where nobody knows it."""
    return {gold.passage_id: gold.role or "yes" for gold in question.gold}


def search_table(searches: Sequence[tuple[str, Sequence[Hit]]], question: Question) -> Table:
    """One line a hit, the query at its first: what each search found, and what of it is gold."""
    roles = roles_of(question)
    body = []
    for query, hits in searches:
        for hit in hits:
            said = short(query) if hit.rank == 1 else ""
            gold = roles.get(hit.passage.id, "")
            body.append([said, hit.rank, f"{hit.score:.2f}", hit.passage.title, gold])
    head = ["query", "rank", "score", "passage", "gold"]
    return Table(head, body, "Every search with what it found")


def context_table(answer: Answer, question: Question, caption: str = "") -> Table:
    """The passages that the method hands on, in their order."""
    roles = roles_of(question)
    body = [
        [place, hit.passage.title, short(hit.passage.text), roles.get(hit.passage.id, "")]
        for place, hit in enumerate(answer.hits, start=1)
    ]
    head = ["place", "passage", "text", "gold"]
    return Table(head, body, caption or "The passages that the method hands on")


def short(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
