"""Questions asked again: those of several conditions at once, compared with their records."""

from __future__ import annotations

import pytest

from rag_repro.study import again, records
from rag_repro.study.runner import run
from tests.study.scripted import QUESTIONS, Echo, Shop, Tables, condition, use_methods


@pytest.fixture(autouse=True)
def _methods(monkeypatch):
    use_methods(monkeypatch)


class Counting(Echo):
    """Notes how many calls it is handed at once."""

    def __init__(self):
        self.handed = []

    def generate(self, calls):
        self.handed.append(len(calls))
        return super().generate(calls)


class TwoReaders(Shop):
    """The second retriever's conditions have services of their own."""

    def __init__(self):
        super().__init__()
        self.reader, self.other = Counting(), Counting()

    def services(self, condition):
        mine = condition.retriever == "tables"
        return {
            "retriever": self.retriever if mine else Tables(shift=1),
            "reader": self.reader if mine else self.other,
        }


def test_conditions_of_the_same_services_are_answered_as_one_batch():
    # However often each searches first, the reader reads for all at once.
    shop = TwoReaders()
    here, wide, there = condition(), condition(settings={"k": 3}), condition(retriever="far")
    asked = [
        (here, QUESTIONS[0]),
        (there, QUESTIONS[0]),
        (wide, QUESTIONS[3]),
        (here, QUESTIONS[1]),
    ]
    answers = again.answered(asked, shop)
    assert [a.prediction for a in answers] == ["says 0", "says 0", "says 3", "says 1"]
    found = [[hit.passage.id for hit in answer.hits] for answer in answers]
    assert found == [["p0", "p1"], ["p1", "p2"], ["p3", "p4", "p5"], ["p1", "p2"]]
    assert (shop.reader.handed, shop.other.handed) == ([3], [1])


def test_one_question_asked_twice_alike_has_two_answers():
    answers = again.answered([(condition(), QUESTIONS[1])] * 2, Shop())
    assert [a.prediction for a in answers] == ["says 1", "says 1"]
    assert again.answered([], Shop()) == []


def test_a_live_check_finds_the_changed_answer(tmp_path):
    held = {}
    for method in ("walk", "stumble"):
        run(condition(method), Shop(), tmp_path)
        lines = records.load(tmp_path, condition(method)).by_question
        held[method] = {name: dict(line) for name, line in lines.items()}
    wanted = ["q1", "q2", "q3", "q4"]

    def same():
        asked = [again.Recorded(condition(name), lines, wanted) for name, lines in held.items()]
        rows = again.live_check(asked, Shop())
        assert [sorted(row) for row in rows] == [wanted, wanted]
        return [{name for name, equal in row.items() if equal} for row in rows]

    # What failed then fails now.
    assert same() == [set(wanted), set(wanted)]
    held["walk"]["q2"]["hits"] = ["p3", "p2"]
    held["walk"]["q3"]["prediction"] = "says 4"
    held["walk"]["q4"]["error"] = "MethodError: no way on"
    held["stumble"]["q2"]["error"] = None
    assert same() == [{"q1"}, {"q1", "q3", "q4"}]


def test_conditions_with_and_without_a_memory_are_asked_each_in_its_way(tmp_path):
    class Either(Shop):
        def services(self, condition):
            made = Shop(reservoir=condition.method == "gather").made
            return made if condition.method == "gather" else self.made

    held = []
    for method in ("gather", "walk"):
        run(condition(method), Either(), tmp_path)
        lines = records.load(tmp_path, condition(method)).by_question
        held.append(again.Recorded(condition(method), lines, ["q2", "q4"]))
    # Question 4 finds in the memory what questions 0 to 3 left there.
    assert len(held[0].lines["q4"]["hits"]) == 5
    assert again.live_check(held, Either()) == [dict.fromkeys(("q2", "q4"), True)] * 2


def test_spread_takes_in_turn_up_to_the_budget():
    assert again.spread([[1, 2, 3], [4], [5, 6]], 4) == [1, 4, 5, 2]
    assert again.spread([[1, 2, 3], [4], [5, 6]], 99) == [1, 4, 5, 2, 6, 3]
    assert again.spread([], 3) == []
    assert again.spread([[1]], 0) == []
