"""ERM4's memory: filled once from other questions and frozen, or online from run to run."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from rag_repro import data
from rag_repro.cache import CachedEncoder, Store
from rag_repro.lm import hub
from rag_repro.retrieval import Reservoir
from rag_repro.schema import Hit, Passage, Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.study import again, records, reservoirs, runner
from rag_repro.study.clock import clocked
from rag_repro.study.conditions import Condition
from rag_repro.study.reservoirs import Brought, ReservoirError
from rag_repro.study.services import Workshop
from tests.lm.scripted_reader import ScriptedReader

# Titles p0 and p1 are the same, so that the newer replaces the older.
PASSAGES = tuple(Passage(f"p{i}", f"Title {max(i, 1)}", f"text {i}") for i in range(8))
CORPUS = Corpus("little", PASSAGES)
TUNE = tuple(Question(f"t{i}", f"ask {i}", ("x",)) for i in (2, 0, 1))
TEST = tuple(Question(f"q{i}", f"ask {i}", ("x",)) for i in range(4))
# Query "ask i" finds p<i> and p<i+1>.


class Tables:
    """Finds p<i>, p<i+1> .. for "ask i"; is interrupted at search number `stop`."""

    def __init__(self, fingerprint="tables-1", stop=None):
        self.fingerprint, self.stop, self.asked = fingerprint, stop, []

    def search(self, queries, k, within=None):
        found = []
        for query in queries:
            self.asked.append(query)
            if len(self.asked) == self.stop:
                raise KeyboardInterrupt
            first = int(query.split()[-1])
            found.append([Hit(PASSAGES[first + j], 1.0, j + 1) for j in range(k)])
        return found


class Numbers:
    """Encoder: "Title i" and "ask i" are alike, and unlike all others."""

    fingerprint = "numbers-1"

    def encode(self, texts):
        return np.array([np.eye(9)[int(t.split()[-1])] for t in texts], dtype=np.float32)


class Shop(Workshop):
    """A workshop whose parts are scripted."""

    def __init__(self, tables=None, batch_size=16, corpus=CORPUS, **questions):
        super().__init__(batch_size=batch_size)
        self.tables, self.corpus, self.reads = tables or Tables(), corpus, ScriptedReader(says)
        self.questions = {"tune": TUNE, "test": TEST, **questions}

    def dataset(self, name, split):
        corpus = self.corpus if name == "world-B" else CORPUS
        return Dataset(name, self.questions[split], corpus)

    def retriever(self, name, corpus):
        return self.tables

    def encoder_over(self, name, corpus):
        return Numbers()

    def reader(self, name):
        return self.reads


def says(prompt):
    return " y" if "Answer the" in prompt else " entailment"


SETTINGS = {"rewrite": "none", "per_query": 2, "order": "sequential", "theta": 1, "fill_n": 3}


def condition(**settings):
    given = {**SETTINGS, "memory": "filled", **settings}
    given = {name: value for name, value in given.items() if value is not None}
    return Condition("world-B", "erm4", given, retriever="bm25")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def held(shop, made):
    return [p.id for p in shop.services(made)["reservoir"].passages]


# --------------------------------------------------------------------------------- filling


def test_a_memory_is_filled_in_the_order_of_the_questions(cache):
    shop = Shop()
    reservoir = shop.services(condition())["reservoir"]
    # ask 2: p2 p3; ask 0: p0 p1, of which p0 is better and has the same title; ask 1: p1 p2.
    # The best are remembered last: p3 p2 | p1 p0 | p2 p1.
    assert [p.id for p in reservoir.passages] == ["p3", "p2", "p1"]
    assert reservoir.ordered is False
    assert sorted(shop.tables.asked) == ["ask 0", "ask 1", "ask 2"]
    _, brought, _ = reservoirs.filled(condition(), Shop())
    assert brought == Brought((PASSAGES[1], PASSAGES[0]), (("ask 0", ("p0", "p1")),))


def test_batches_leave_the_same_memory(cache):
    one = Shop(batch_size=1).services(condition())["reservoir"].fingerprint
    (cache / "answers.sqlite").unlink()
    assert Shop(batch_size=16).services(condition())["reservoir"].fingerprint == one


def test_a_filled_memory_is_not_filled_again():
    shop = Shop()
    first = shop.services(condition())["reservoir"]
    assert shop.services(condition())["reservoir"] is first
    # Another trigger and another reading need no other filling.
    assert held(shop, condition(tau=0.2, prompt="short", k=5)) == ["p3", "p2", "p1"]
    assert len(shop.tables.asked) == 3
    again = Shop()
    assert again.services(condition())["reservoir"].fingerprint == first.fingerprint
    assert again.tables.asked == []
    # Another width does.
    assert held(again, condition(per_query=1)) == ["p2", "p1"]
    assert len(again.tables.asked) == 3


def test_a_killed_filling_goes_on_where_it_stopped(cache):
    whole = Shop().services(condition())["reservoir"].fingerprint
    (cache / "answers.sqlite").unlink()
    with pytest.raises(KeyboardInterrupt):
        Shop(Tables(stop=3), batch_size=1).services(condition())
    assert not reservoirs.is_filled(condition(), Shop())
    shop = Shop()
    assert shop.services(condition())["reservoir"].fingerprint == whole
    assert shop.tables.asked == ["ask 1"]
    assert reservoirs.is_filled(condition(), Shop())


def test_other_weights_fill_anew():
    Shop().services(condition())
    shop = Shop(Tables("tables-2"))
    shop.services(condition())
    assert len(shop.tables.asked) == 3


def test_filtered_content_is_what_the_filter_kept():
    shop = Shop()
    shop.reads = ScriptedReader(
        lambda prompt: (
            " entailment" if prompt.rpartition("\n\n")[2].count("text 1\n") else " neutral"
        )
    )
    made = condition(content="filtered", filter="nli", label="written")
    made = dataclasses.replace(made, reader="r")
    assert held(shop, made) == ["p1"]
    # Raw content is filled without asking the judge.
    asked = len(shop.reads.calls)
    raw = condition(content="raw", filter="nli", label="written")
    assert held(shop, dataclasses.replace(raw, reader="r")) == ["p3", "p2", "p1"]
    assert len(shop.reads.calls) == asked


def test_same_capacity_and_trigger_make_of_one_filling_what_they_want():
    shop = Shop()
    assert held(shop, condition(same="passage")) == ["p3", "p0", "p2", "p1"]
    assert held(shop, condition(capacity=2)) == ["p2", "p1"]
    exact = shop.services(condition(trigger="exact", theta=None))["reservoir"]
    assert [h.passage.id for h in exact.recall("ask 0", 2)] == ["p0", "p1"]
    assert exact.recall("ask 3", 2) == []
    assert len(shop.tables.asked) == 3


def test_a_whole_data_set_can_fill_a_memory(monkeypatch):
    asked = []

    def load(name, *, data_dir=None, split=None):
        asked.append((name, split))
        return Dataset(name, TUNE if name == "world-C" else TEST, CORPUS)

    monkeypatch.setattr(data, "load", load)
    monkeypatch.setattr(Shop, "dataset", Workshop.dataset)
    assert held(Shop(), condition(fill="world-C", fill_split="all")) == ["p3", "p2", "p1"]
    assert set(asked) == {("world-B", "test"), ("world-C", None)}


def test_what_cannot_fill_a_memory_is_refused():
    for given, shop, wrong in (
        ({"fill_n": 4}, Shop(), "has 3 questions, and 4 are to fill .* fill_n: 3"),
        ({"fill_split": "test"}, Shop(), "question 'q0' fills the memory and is asked of it too"),
        ({"fill": "nq", "fill_split": "tune"}, Shop(corpus=Corpus("o", PASSAGES[:5])), "another"),
        ({"own_candidates": True}, Shop(), "'t2', which is to fill the memory, failed: ValueError"),
    ):
        with pytest.raises(ReservoirError, match=wrong):
            shop.services(condition(**given))


# ------------------------------------------------------------------------------ runs with it


def test_a_filled_memory_stands_in_the_records_fingerprint(tmp_path):
    shop = Shop()
    made = condition()
    runner.run(made, shop, tmp_path / "results")
    stored = records.load(tmp_path / "results", made)
    assert stored.header["fingerprint"]["reservoir"] == shop.services(made)["reservoir"].fingerprint
    # p1, p2 and p3 are held: "ask 0" has no title alike, and is searched for.
    lines = {line["id"]: (line["hits"], line["counts"].get("searches", 0)) for line in stored.lines}
    assert lines == {"q0": (["p0", "p1"], 1), "q1": (["p1"], 0), "q2": (["p2"], 0),
                     "q3": (["p3"], 0)}  # fmt: skip
    other = Shop(tune=TUNE[::-1])
    with pytest.raises(records.RecordError, match="reservoir"):
        runner.run(made, other, tmp_path / "results")


def test_a_prompt_that_is_missing_scores_no_answer(tmp_path):
    made = dataclasses.replace(condition(filter="ask", label="written"), reader="r")
    runner.run(made, Shop(), tmp_path / "results")
    for line in records.load(tmp_path / "results", made).lines:
        assert line["cost"]["reader_calls"]
        assert "em" not in line["scores"]
    read = dataclasses.replace(made, settings={**made.settings, "prompt": "short"})
    runner.run(read, Shop(), tmp_path / "results")
    assert all("em" in line["scores"] for line in records.load(tmp_path / "results", read).lines)


ONLINE = {"memory": "online", "fill_n": None}


def test_an_online_memory_grows_and_is_each_runs_own(tmp_path):
    shop, made = Shop(), condition(**ONLINE)
    runner.run(made, shop, tmp_path / "results")
    lines = records.load(tmp_path / "results", made).lines
    # ask 0 brings p1 then p0, of one title; ask 1 finds that title held, and so on.
    assert [line.get("remembered") for line in lines] == [["p1", "p0"], None, ["p3", "p2"], None]
    assert [line["hits"] for line in lines] == [["p0", "p1"], ["p0"], ["p2", "p3"], ["p3"]]
    again = shop.services(made)["reservoir"]
    assert (again.ordered, len(again)) == (True, 0)
    assert again is not shop.services(made)["reservoir"]


def test_a_killed_online_run_goes_on_with_what_was_remembered(tmp_path):
    made = condition(**ONLINE)
    runner.run(made, Shop(), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        runner.run(made, Shop(Tables(stop=2)), tmp_path / "parts")
    assert runner.run(made, Shop(), tmp_path / "parts") == 2
    whole, parts = (records.find(tmp_path / n, made).read_bytes() for n in ("whole", "parts"))
    assert whole == parts


def test_a_live_check_finds_each_online_question_as_it_was(tmp_path):
    made = condition(**ONLINE)
    runner.run(made, Shop(), tmp_path)
    stored = records.load(tmp_path, made).by_question
    asked = again.Recorded(made, stored, ["q3", "q1", "q2"])
    assert again.live_check([asked], Shop()) == [dict.fromkeys(("q1", "q2", "q3"), True)]
    changed = {name: json.loads(json.dumps(line)) for name, line in stored.items()}
    changed["q0"]["remembered"] = []
    asked = again.Recorded(made, changed, ["q1", "q3"])
    assert again.live_check([asked], Shop()) == [{"q1": False, "q3": True}]


def test_an_online_memory_over_a_service_outside_is_refused():
    made = dataclasses.replace(condition(**ONLINE), retriever="http://127.0.0.1:1")
    with pytest.raises(ReservoirError, match="take memory: filled"):
        Shop().services(made)


def test_recalling_is_timed_with_its_encoding(tmp_path):
    class Counting(Numbers):
        asked = 0

        def encode(self, texts):
            self.asked += 1
            return super().encode(texts)

    encoder, notes = Counting(), []
    made = Reservoir(CachedEncoder(encoder, Store(tmp_path / "calls.sqlite")))
    made.remember(PASSAGES)
    made.freeze()
    timed = clocked({"reservoir": made}, iter(range(9)).__next__, notes)["reservoir"]
    before = encoder.asked
    for _ in range(2):
        assert timed.recall("ask 3", 1)[0].passage.id == "p3"
        made.recall("ask 3", 1)
    # Twice for the clock, which has no cache, and once for the other.
    assert encoder.asked - before == 3
    assert notes == [("reservoir", 1, 1), ("reservoir", 1, 1)]


def test_a_memory_that_is_not_filled_is_lacking():
    shop = Shop()
    assert shop.lacks(condition()) == "a filled memory"
    assert not shop.lacks(condition(**ONLINE))
    shop.services(condition())
    assert not Shop().lacks(condition())
    assert shop.tables.asked
