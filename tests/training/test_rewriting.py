"""What ERM4's Query Rewriter+ is taught, and the check that keeps some of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro import data
from rag_repro.data import synthworld
from rag_repro.data.synthworld.reasoning import facts_of
from rag_repro.lm.prompts import prompt_text
from rag_repro.methods.erm4.rewriter import parse, rewriting_prompt
from rag_repro.schema import Generation, Hit
from rag_repro.training import recipes
from rag_repro.training import rewriting as room
from rag_repro.training.lessons import lessons
from rag_repro.training.recipes import RecipeError
from rag_repro.training.rewriting import Rewritten, rewriting, rewritten
from tests.lm.scripted_reader import ScriptedReader

N = 40


@pytest.fixture(scope="module")
def world():
    return synthworld.world("A")


@pytest.fixture(scope="module")
def asked():
    return data.load("world-A", split="train").first(N).questions


def title_of(world, fact):
    return world.entity[fact.subject].title


def test_a_chain_is_asked_for_step_by_step_from_what_is_named(world, asked):
    chains = [q for q in asked if q.meta["maker"] == "compositional3"]
    assert chains
    for question in chains:
        facts = facts_of(world, question)
        one = rewritten(world, question)
        assert len(one.queries) == 3
        assert one.meant == one.queries[-1]
        for query in one.queries:
            # Each names where the chain begins, and gives no step's answer away.
            assert title_of(world, facts[0]) in query
            assert not any(title_of(world, fact) in query for fact in facts[1:])


def test_two_roots_have_a_query_each_and_the_question_stays(world, asked):
    pairs = [q for q in asked if q.kind == "comparison"]
    assert pairs
    for question in pairs:
        one = rewritten(world, question)
        assert one.meant == question.text
        titles = [title_of(world, fact) for fact in facts_of(world, question)]
        assert [t in q for t, q in zip(titles, one.queries, strict=True)] == [True, True]


def test_no_answer_stands_in_a_rewriting_that_is_not_in_the_question(world, asked):
    for question in asked:
        one = rewritten(world, question)
        for answer in question.answers if one else ():
            if answer not in question.text and len(answer) > 3:
                assert not any(answer in said for said in (one.meant, *one.queries))


def test_an_ambiguous_question_is_taken_as_it_is_meant(world):
    for question in data.load("world-A-ambiguous", split="train").first(20).questions:
        place = question.meta["intent"]
        one = rewritten(world, question)
        assert one.meant == question.interpretations[place].question
        assert one.answers == question.interpretations[place].answers
        [query] = one.queries
        meant, *others = [title_of(world, f) for f in facts_of(world, question)[place:]]
        assert meant in query
        assert not any(other in query for other in others)
        without = replace(question, meta={k: v for k, v in question.meta.items() if k != "intent"})
        assert rewritten(world, without) is None


def test_lessons_are_asked_and_answered_as_the_method_has_it(asked):
    by_id = {q.id: q for q in asked}
    made = list(rewriting("world-A", 0, questions=N, tasks=["plus"]))
    assert len({lesson.question for lesson in made}) == len(made) > N - 5
    for lesson in made:
        question = by_id[lesson.question]
        assert lesson.prompt == rewriting_prompt("plus", question, False)
        parts, fault = parse(Generation(lesson.target, (1,), (0,), "eos", 1, 1), "plus")
        assert fault == ""
        assert 2 <= len(parts) <= 4
        assert len(set(parts[1:])) == len(parts[1:])
        assert lesson.source == "rewriting:world-A"
    part = {"kind": "rewriting", "dataset": "world-A", "questions": N, "tasks": ["plus"]}
    assert list(lessons([part], 5)) == made


def test_one_adapter_is_taught_all_that_a_rewriter_is_asked(asked):
    made = list(rewriting("world-A", 0, questions=3))
    plus, query, meant, queries = made[8:12]
    assert len({lesson.question for lesson in (plus, query, meant, queries)}) == 1
    assert len(made) == 12
    for lesson, task in zip(made[8:12], room.TASKS, strict=True):
        assert lesson.prompt == rewriting_prompt(task, asked[2], False)
    rewriting_, *searches = plus.target.split("**")
    assert query.target == meant.target == rewriting_
    assert queries.target == f" {'**'.join(searches)}"
    assert len(searches) > 1


def says(answer):
    return f" It is told. So the answer is {answer}."


class Shop:
    """A workshop: every search finds the first passages; the reader knows some prompts' answer."""

    def __init__(self, script, asked):
        self.reads, self.passages = ScriptedReader(script), asked.corpus.passages
        self.batch_size, self.searched, self.named = 4, [], []

    def retriever(self, name, corpus):
        self.named.append(name)
        return self

    def search(self, queries, k, within=None):
        self.searched += queries
        return [[Hit(p, 1.0, i) for i, p in enumerate(self.passages[:k], 1)] for _ in queries]

    def reader(self, name):
        self.named.append(name)
        return self.reads


def test_a_rewriting_is_kept_only_where_the_reader_does_better_with_it(world, monkeypatch):
    asked = data.load("world-A", split="train").first(12)
    made = [one for q in asked.questions if (one := rewritten(world, q)) and one.meant != q.text]
    better, worse, both, neither = (one.asked.id for one in made[:4])
    knows = {better: (0, 1), worse: (1, 0), both: (1, 1), neither: (0, 0)}

    def script(prompt):
        for one in made[:4]:
            for text, right in zip((one.asked.text, one.meant), knows[one.asked.id], strict=True):
                if prompt.endswith(f"Question: {text}\nAnswer:"):
                    return says(one.answers[0] if right else "unknown")
        return says("unknown")

    shop = Shop(script, asked)
    monkeypatch.setattr(room, "Workshop", lambda data_dir: shop)
    got = list(rewriting("world-A", 0, questions=12, check="some-reader", tasks=["query"]))
    assert [lesson.question for lesson in got] == [better]
    n = len(list(rewriting("world-A", 0, questions=12, tasks=["query"])))
    assert got[0].source == f"rewriting:world-A, 1 of {n} that some-reader does better with"
    assert shop.named == ["bm25", "some-reader"]
    # Each question by itself, and each rewriting by its queries.
    one = next(one for one in made if one.asked.id == better)
    assert {one.asked.text, *one.queries} <= set(shop.searched)
    prompts = [prompt_text(call.prompt) for call in shop.reads.calls]
    assert len(prompts) == 2 * n
    assert all(p.text in prompts[0] for p in shop.passages[:2])


def test_what_is_meant_counts_where_readings_differ(world, monkeypatch):
    asked = data.load("world-A-ambiguous", split="train").first(2)
    first, second = (rewritten(world, q) for q in asked.questions)
    other = next(i.answers[0] for i in second.asked.interpretations if i.answers != second.answers)

    def script(prompt):
        if prompt.endswith(f"Question: {first.meant}\nAnswer:"):
            return says(first.answers[0])
        return says(other if prompt.endswith(f"{second.meant}\nAnswer:") else "unknown")

    monkeypatch.setattr(room, "Workshop", lambda data_dir: Shop(script, asked))
    got = list(rewriting("world-A-ambiguous", 0, questions=2, tasks=["plus"], check="r"))
    assert [lesson.question for lesson in got] == [first.asked.id]


def test_a_question_that_cannot_be_asked_stops_the_lessons(monkeypatch):
    asked = data.load("world-A", split="train").first(1)
    shop = Shop(lambda prompt: ValueError("no room"), asked)
    monkeypatch.setattr(room, "Workshop", lambda data_dir: shop)
    with pytest.raises(RecipeError, match="no room"):
        list(rewriting("world-A", 0, questions=1, check="r"))


def test_the_answers_of_a_plain_question_are_its_own(asked):
    assert Rewritten(asked[0], "", ()).answers == asked[0].answers


@pytest.mark.parametrize(
    ("name", "check"),
    [("erm4-rewriter-testbed", None), ("erm4-rewriter-testbed-checked", "testbed-reader")],
)
def test_the_rewriters_recipes(name, check):
    recipe = recipes.recipe(name)
    assert (recipe.task, recipe.lora.rank, recipe.lora.alpha) == ("reader", 8, 16)
    assert {(part["kind"], part.get("check")) for part in recipe.lessons} == {("rewriting", check)}
    taught = {"world-A", "world-A-several", "world-A-ambiguous"}
    assert {part["dataset"] for part in recipe.lessons} == taught
    # What rows ask of it: the one query, and the question with its queries.
    assert all(part["tasks"] == ["plus", "query"] for part in recipe.lessons)
