"""The engine on scripted services; every number here is worked out by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rag_repro.engine import MethodError, ServiceError, Task, run
from rag_repro.schema import (
    Answer,
    Encode,
    Generate,
    Generation,
    Hit,
    Passage,
    Prompt,
    Question,
    Recall,
    Remember,
    Retrieve,
    Score,
)


def question(name: str) -> Question:
    return Question(id=name, text=f"what of {name}?", answers=("x",))


class Reader:
    """Answers a prompt by its own text in capitals; 3 prompt and 2 new tokens each."""

    def __init__(self):
        self.batches = []

    def generate(self, calls):
        self.batches.append(len(calls))
        return [
            Generation(c.prompt.segments[0].upper(), (1, 2), (0, 1), "eos", 3, 2) for c in calls
        ]


class Searcher:
    def __init__(self):
        self.batches = []

    def search(self, queries, k, within=None):
        self.batches.append((tuple(queries), k, within))
        return [
            [Hit(Passage(f"{q}-{i}", "t", "x"), 1.0 / (i + 1), i + 1) for i in range(k)]
            for q in queries
        ]


def answers(tasks, services, **options):
    return {task.question.id: answer for task, answer in run(tasks, services, **options)}


def two_reads(question, settings):
    """Retrieve, then read `settings` times, each time what was said before."""
    hits = yield Retrieve(question.id, k=2)
    said = question.id
    for _ in range(settings):
        out = yield Generate(Prompt.from_segments(said + "!"), max_new_tokens=5)
        said = out.text
    return Answer(text=said, prediction=said, hits=hits)


def test_order_results_and_cost_of_calls():
    services = {"reader": Reader(), "retriever": Searcher()}
    answer = answers([Task(question("a"), two_reads, 2)], services)["a"]
    assert answer.text == "A!!"
    assert answer.calls == ("Retrieve", "Generate", "Generate")
    assert [h.passage.id for h in answer.hits] == ["a-0", "a-1"]
    cost = answer.cost
    assert (cost.retrievals, cost.reader_calls, cost.prompt_tokens) == (1, 2, 6)
    assert (cost.prefilled_tokens, cost.new_tokens, cost.reads) == (4, 4, 0)


def test_calls_of_many_questions_reach_a_service_together():
    services = {"reader": Reader(), "retriever": Searcher()}
    tasks = [Task(question(n), two_reads, 2) for n in "abcde"]
    answers(tasks, services, batch_size=3)
    # a, b, c search together; then read twice in threes; d, e come in as they leave.
    assert [b[0] for b in services["retriever"].batches] == [("a", "b", "c"), ("d", "e")]
    assert services["reader"].batches == [3, 3, 2, 2]


def test_room_is_made_as_soon_as_one_task_finishes():
    """Lengths 1, 3, 1 at batch 2: the third starts when the first is done."""
    services = {"reader": Reader(), "retriever": Searcher()}
    tasks = [Task(question(n), two_reads, k) for n, k in (("a", 1), ("b", 3), ("c", 1))]
    order = [task.question.id for task, _ in run(tasks, services, batch_size=2)]
    assert order == ["a", "c", "b"]
    # c's search is served before the reader is called again, so b and c read together.
    assert services["reader"].batches == [2, 2, 1]


def test_gather_is_one_batch_and_keeps_its_order():
    def method(question, settings):
        left, right, far = yield [
            Retrieve("l", k=1),
            Retrieve("r", k=3),
            Retrieve("f", k=1, within=("f-0",)),
        ]
        return Answer(text=" ".join(str(len(h)) for h in (left, right, far)), hits=far)

    searcher = Searcher()
    answer = answers([Task(question("a"), method)], {"retriever": searcher})["a"]
    assert answer.text == "1 3 1"
    assert answer.cost.retrievals == 3
    assert searcher.batches == [(("l", "f"), 1, [None, ("f-0",)]), (("r",), 3, None)]


def test_gather_over_different_services_waits_for_all():
    def method(question, settings):
        out, hits = yield [Generate(Prompt.from_segments("hi"), 1), Retrieve("q", k=1)]
        return Answer(text=out.text + hits[0].passage.id)

    services = {"reader": Reader(), "retriever": Searcher()}
    answer = answers([Task(question("a"), method)], services)["a"]
    assert answer.text == "HIq-0"
    assert answer.calls == ("Generate", "Retrieve")


def test_encode_and_score_are_cut_back_into_each_calls_part():
    class Lengths:
        def encode(self, texts):
            return np.array([[len(t)] for t in texts], dtype=np.float32)

        def score(self, items):
            return np.array([len(item[0]) / 10 for item in items], dtype=np.float32)

    def method(question, settings):
        vectors = yield Encode(("a" * settings, "b"))
        scores = yield Score((("c" * settings,),))
        return Answer(text=f"{vectors[:, 0].tolist()} {scores[0]:.1f}")

    service = Lengths()
    got = answers(
        [Task(question(str(n)), method, n) for n in (3, 5)],
        {"encoder": service, "scorer": service},
    )
    assert got["3"].text == "[3.0, 1.0] 0.3"
    assert got["5"].text == "[5.0, 1.0] 0.5"
    assert (got["3"].cost.encoded, got["3"].cost.scored) == (2, 1)


def test_a_method_that_never_calls():
    def silent(question, settings):
        return Answer(text="nothing asked")
        yield

    answer = answers([Task(question("a"), silent)], {})["a"]
    assert (answer.text, answer.calls, answer.cost.reader_calls) == ("nothing asked", (), 0)


def test_a_failing_question_fails_alone_and_keeps_its_cost():
    def fails(question, settings):
        yield Generate(Prompt.from_segments("x"), 1)
        raise KeyError("half-way")

    tasks = [Task(question("bad"), fails), Task(question("good"), two_reads, 1)]
    got = answers(tasks, {"reader": Reader(), "retriever": Searcher()})
    assert got["bad"].error == "KeyError: 'half-way'"
    assert got["bad"].cost.reader_calls == 1
    assert got["bad"].prediction is None
    assert got["good"].error is None


@pytest.mark.parametrize("wish", [[Retrieve("q", k=1)], []])
def test_an_endless_method_is_refused_at_max_calls(wish):
    def endless(question, settings):
        while True:
            yield wish

    answer = answers([Task(question("a"), endless)], {"retriever": Searcher()}, max_calls=7)["a"]
    assert "more than 7 calls" in answer.error
    assert answer.cost.retrievals == (7 if wish else 0)


def test_a_refused_call_is_raised_inside_the_method_that_made_it():
    class Picky(Reader):
        def generate(self, calls):
            done = super().generate(calls)
            return [
                ValueError("too long") if len(c.prompt.segments[0]) > 3 else r
                for c, r in zip(calls, done, strict=True)
            ]

    def shortens(question, settings):
        try:
            out = yield Generate(Prompt.from_segments(question.id), 1)
        except ValueError:
            out = yield Generate(Prompt.from_segments(question.id[:3]), 1)
        return Answer(text=out.text)

    tasks = [Task(question("abcdef"), shortens), Task(question("ab"), shortens)]
    got = answers(tasks, {"reader": Picky()})
    assert (got["abcdef"].text, got["ab"].text) == ("ABC", "AB")
    assert got["abcdef"].cost.reader_calls == 1  # the refused call wrote nothing


def test_a_missing_service_stops_the_run_and_says_what_there_is():
    with pytest.raises(ServiceError, match=r"'retriever'.*has: reader"):
        answers([Task(question("a"), two_reads, 1)], {"reader": Reader()})


def test_a_service_that_loses_results_stops_the_run():
    class Loses(Reader):
        def generate(self, calls):
            return super().generate(calls)[1:]

    with pytest.raises(ServiceError, match="0 results for 1 calls"):
        answers([Task(question("a"), two_reads, 1)], {"reader": Loses(), "retriever": Searcher()})


def test_what_is_no_call_and_no_answer_is_named():
    def wrong_call(question, settings):
        yield "search, please"

    def wrong_answer(question, settings):
        yield Retrieve("q", k=1)
        return "42"

    got = answers(
        [Task(question("a"), wrong_call), Task(question("b"), wrong_answer)],
        {"retriever": Searcher()},
    )
    assert "yielded str" in got["a"].error
    assert "'42'" in got["b"].error
    assert MethodError.__name__ in got["a"].error


class Reservoir:
    """Keeps passages from question to question: order matters."""

    ordered = True

    def __init__(self):
        self.kept = []

    def recall(self, query, k):
        return [Hit(p, 1.0, i + 1) for i, p in enumerate(self.kept[-k:])]

    def remember(self, passages):
        self.kept.extend(passages)


def remembers(question, settings):
    known = yield Recall(question.text, k=9)
    yield Remember((Passage(question.id, question.id, question.text),))
    return Answer(text=",".join(h.passage.id for h in known))


def test_an_ordered_service_runs_one_question_after_another():
    tasks = [Task(question(n), remembers) for n in "abc"]
    got = answers(tasks, {"reservoir": Reservoir()}, batch_size=16)
    assert [got[n].text for n in "abc"] == ["", "a", "a,b"]
    assert [p.id for p in got["c"].remembered] == ["c"]


def test_interrupted_ordered_run_continues_from_what_was_remembered():
    tasks = [Task(question(n), remembers) for n in "abcd"]
    whole = answers(tasks, {"reservoir": Reservoir()})

    done = {}
    for task, answer in run(tasks, {"reservoir": Reservoir()}):
        done[task.question.id] = answer
        if len(done) == 2:
            break  # the interrupt: the generator is closed, two answers are at hand

    fresh = Reservoir()
    for answer in done.values():
        fresh.remember(answer.remembered)
    rest = answers([t for t in tasks if t.question.id not in done], {"reservoir": fresh})
    assert {**done, **rest} == whole


def test_leaving_early_closes_the_methods_that_are_under_way():
    closed = []

    def tidy(question, settings):
        try:
            while True:
                yield Retrieve("q", k=1)
                if question.id == "first":
                    return Answer()
        finally:
            closed.append(question.id)

    tasks = [Task(question(n), tidy) for n in ("first", "second")]
    outcomes = run(tasks, {"retriever": Searcher()})
    next(outcomes)
    outcomes.close()
    assert closed == ["first", "second"]


def test_answers_do_not_depend_on_batch_size_or_order():
    tasks = [Task(question(f"q{i}"), two_reads, i % 4) for i in range(13)]
    whole = None
    for batch_size in (1, 5, 16):
        shuffled = random.Random(batch_size).sample(tasks, len(tasks))
        got = answers(
            shuffled, {"reader": Reader(), "retriever": Searcher()}, batch_size=batch_size
        )
        whole = whole or got
        assert got == whole


def test_batch_size_must_be_positive():
    with pytest.raises(ValueError, match="at least 1"):
        list(run([], {}, batch_size=0))


def test_a_blank_search_fails_its_own_question_alone():
    def asks(question, settings):
        hits = yield Retrieve("  " if question.id == "b" else question.text, k=2)
        return Answer(prediction=hits[0].passage.id if hits else None)

    tasks = [Task(question(name), asks) for name in "abc"]
    got = {task.question.id: answer for task, answer in run(tasks, {"retriever": Searcher()})}
    assert [bool(got[name].error) for name in "abc"] == [False, True, False]
    assert "blank query" in got["b"].error
    assert got["b"].cost.retrievals == 0


@pytest.mark.parametrize("wish", [Retrieve("q", k=1), Score(("x", "y"))])
def test_a_service_that_falls_short_is_named(wish):
    class Short:
        def search(self, queries, k, within=None):
            return []

        def score(self, items):
            return [0.5]

    def asks(question, settings):
        yield wish
        return Answer()

    with pytest.raises(ServiceError, match=rf"the service '{wish.service}': gave \d results for"):
        list(run([Task(question("a"), asks)], {wish.service: Short()}))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(prediction=1822), "prediction 1822, not a str or None"),
        (Answer(text=None), "text None, not a str"),
        (Answer(hits=("a",)), "'a' among its hits, not a Hit"),
        ("x", "'x', not an Answer"),
    ],
)
def test_what_is_no_answer_fails_its_question_alone(answer, told):
    def method(question, settings):
        yield Retrieve("q", k=1)
        return answer if question.id == "odd" else Answer(text="x", prediction="x")

    tasks = [Task(question(name), method, None) for name in ("odd", "even")]
    got = answers(tasks, {"retriever": Searcher()})
    assert got["odd"].error == f"MethodError: the method returned {told}"
    assert got["even"].error is None
