"""Times by a clock that only services move: who takes turns, what is noted, what is forgotten."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro.cache import CachedEncoder, CachedReader, CachedScorer, Store
from rag_repro.evaluation import metrics
from rag_repro.methods.base import MethodSpec, Settings
from rag_repro.schema import Answer, Generate, Prompt, Retrieve, Score
from rag_repro.study import manifests, papers, records, registering, timed_runs
from rag_repro.study.clock import Clocked, clocked
from rag_repro.study.exhibits import Cell
from rag_repro.study.records import RecordError
from rag_repro.study.runner import RunError
from rag_repro.study.scores import Results
from tests.study import scripted
from tests.study.scripted import DATASET, condition, use_methods

EXHIBIT = "mini.fig"


class Hands:
    """A clock that stands still but for what `pass_` adds."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += seconds


class Encoder:
    """Takes 0.125 s a query."""

    fingerprint = "encoder-1"

    def __init__(self, hands):
        self.hands = hands

    def encode(self, texts):
        self.hands.pass_(0.125 * len(texts))
        return list(texts)


class Vectors(Encoder):
    """As the encoder, with vectors that can be kept."""

    def encode(self, texts):
        return np.ones((len(super().encode(texts)), 2), np.float32)


class Tables(scripted.Tables):
    """Takes 0.25 s a query beside the encoding."""

    def __init__(self, hands, stop=None):
        super().__init__(stop)
        self.hands, self.encoder = hands, Encoder(hands)

    def search(self, queries, k, within=None):
        self.encoder.encode(queries)
        self.hands.pass_(0.25 * len(queries))
        return super().search(queries, k, within)


class Echo(scripted.Echo):
    """Takes 4 s for a prompt that it has not kept, else 1 s."""

    def __init__(self, hands):
        self.hands, self.kept, self.asked = hands, set(), []

    def key(self, call):
        return call.prompt.segments[0].encode().hex()

    def forget(self):
        self.kept.clear()

    def generate(self, calls):
        for call in calls:
            text = call.prompt.segments[0]
            self.asked.append(text)
            self.hands.pass_(1.0 if text in self.kept else 4.0)
            self.kept.add(text)
        return super().generate(calls)


class Judge:
    """Takes half a second an item."""

    fingerprint = "judge-1"

    def __init__(self, hands):
        self.hands = hands

    def score(self, items):
        self.hands.pass_(0.5 * len(items))
        return [0.5] * len(items)


def plain(question, settings):
    """One search, one reading."""
    hits = yield Retrieve(question.text, k=settings.k)
    out = yield Generate(Prompt.from_segments(question.text), max_new_tokens=4)
    return Answer(text=out.text, prediction=out.text, hits=hits)


def staged(question, settings):
    """A search, two at once, three items judged, the same prompt read twice."""
    hits = yield Retrieve(question.text, k=1)
    yield [Retrieve(question.text, k=settings.k), Retrieve(question.text, k=settings.k)]
    yield Score((("a",), ("b",), ("c",)))
    yield Generate(Prompt.from_segments(question.text), max_new_tokens=4)
    out = yield Generate(Prompt.from_segments(question.text), max_new_tokens=4)
    return Answer(text=out.text, prediction=out.text, hits=hits)


NEW = {m.__name__: MethodSpec(m.__name__, 1, m, Settings, "") for m in (plain, staged)}


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.setattr(scripted, "METHODS", scripted.METHODS | NEW)
    use_methods(monkeypatch)
    monkeypatch.setattr(timed_runs, "surroundings", lambda: {"machine": "here"})
    monkeypatch.setattr(timed_runs, "load", lambda: 0.0)


class Shop:
    """Stands in for the workshop; its reader and scorer come with the call cache."""

    def __init__(self, tmp_path, *, stop=None, reservoir=False):
        self.hands = Hands()
        self.retriever = Tables(self.hands, stop)
        self.reader, self.scorer = Echo(self.hands), Judge(self.hands)
        self.store = Store(tmp_path / "calls.sqlite")
        self.reservoir = {"reservoir": scripted.Reservoir()} if reservoir else {}

    def dataset(self, name, split):
        return DATASET

    def services(self, condition):
        return {
            "retriever": self.retriever,
            "reader": CachedReader(self.reader, self.store),
            "scorer": CachedScorer(self.scorer, self.store),
            **self.reservoir,
        }

    def fingerprint(self, condition):
        return {"corpus": "c1"}


def cell(method, exhibit=EXHIBIT, n=None):
    keys = {"dataset": "little", "method": method}
    return Cell(exhibit, "testbed", "primary", keys, condition(method), n, timed=True)


def both():
    return [cell("plain"), cell("staged")]


def run(tmp_path, shop=None, cells=None, **given):
    shop = shop or Shop(tmp_path)
    return timed_runs.run(
        cells or both(), shop, tmp_path / "records", **{"clock": shop.hands, **given}
    )


def record(tmp_path, method, exhibit=EXHIBIT):
    folder = records.times_beside(tmp_path / "records", exhibit)
    return records.load(folder, condition(method))


def test_each_call_is_noted_under_its_service_in_its_order(tmp_path):
    assert run(tmp_path, n=2) == 4
    [turn] = record(tmp_path, "staged").by_question["q1"]["turns"]
    assert turn == {
        # 3 searches of 0.375, 3 items of 0.5, 4 to read and 1 to read again
        "seconds": 7.625,
        "clock": [
            ["retriever.encoder", 0.125, 1],
            ["retriever", 0.375, 1],
            ["retriever.encoder", 0.25, 2],
            ["retriever", 0.75, 2],
            ["scorer", 1.5, 3],
            ["reader", 4.0, 1],
            ["reader", 1.0, 1],
        ],
    }


def test_a_line_is_that_of_any_record_with_its_turns(tmp_path):
    run(tmp_path, n=2)
    line = record(tmp_path, "plain").by_question["q0"]
    assert (line["hits"], line["prediction"], line["scores"]["em"]) == (["p0", "p1"], "says 0", 1.0)
    assert line["cost"]["reader_calls"] == 1
    # Alone in its batch, it tells what was computed for it; other records do not.
    assert metrics.of_line("prefilled_tokens", line) == line["cost"]["prompt_tokens"] > 0
    got = {n: metrics.of_line(n, line) for n in ("seconds", "seconds_reader", "seconds_retriever")}
    assert got == {"seconds": 4.375, "seconds_reader": 4.0, "seconds_retriever": 0.375}


def test_no_method_warms_up_another(tmp_path):
    run(tmp_path, n=3)  # both put the same prompts to one reader
    for line in record(tmp_path, "plain").lines:
        assert line["turns"][0]["clock"][-1] == ["reader", 4.0, 1]


def test_no_call_cache_answers_or_is_filled(tmp_path):
    shop = Shop(tmp_path)
    reader = shop.services(None)["reader"]
    reader.generate([Generate(Prompt.from_segments("query 0"), max_new_tokens=4)])
    run(tmp_path, shop, n=2)
    assert record(tmp_path, "plain").by_question["q0"]["turns"][0]["seconds"] == 4.375
    with contextlib.closing(sqlite3.connect(shop.store.path)) as db:
        [[kept]] = db.execute("SELECT count(*) FROM calls")
    assert kept == 1


@pytest.fixture
def turns(monkeypatch):
    """(question, method) of every answer, in the order asked."""
    seen, ask = [], timed_runs.Seat.ask

    def spied(seat, question):
        seen.append((question.id, seat.condition.method))
        return ask(seat, question)

    monkeypatch.setattr(timed_runs.Seat, "ask", spied)
    return seen


def test_methods_take_turns_in_an_order_drawn_for_each_question(tmp_path, turns):
    run(tmp_path / "a")
    first = turns[2:]  # after the warm-up
    assert [name for name, _ in first[::2]] == [name for name, _ in first[1::2]]
    assert [name for name, _ in first[::2]] == [f"q{i}" for i in range(6)]
    assert {method for _, method in first[::2]} == {"plain", "staged"}
    turns.clear()
    run(tmp_path / "b")
    assert turns[2:] == first
    turns.clear()
    run(tmp_path / "c", n=3, repeats=2)  # all of one round before the next
    assert sorted(turns[2:4]) == sorted(turns[4:6]) == [("q0", "plain"), ("q0", "staged")]


def test_one_question_warms_up_and_does_not_count(tmp_path):
    shop = Shop(tmp_path)
    assert run(tmp_path, shop, n=2) == 4
    assert shop.reader.asked[:3] == ["query 2"] * 3
    assert [line["id"] for line in record(tmp_path, "plain").lines] == ["q0", "q1"]


def test_a_warm_up_that_fails_stops_before_anything_is_timed(tmp_path):
    with pytest.raises(RunError, match=r"fails the question 'q2'.*no way on.*nothing is timed"):
        run(tmp_path, cells=[cell("stumble"), cell("plain")], n=2)
    assert record(tmp_path, "plain") is None


def test_a_failed_answer_is_recorded_with_its_time(tmp_path):
    run(tmp_path, cells=[cell("stumble")], n=4)
    line = record(tmp_path, "stumble").by_question["q2"]
    assert line["error"] == "MethodError: no way on"
    assert line["turns"] == [{"seconds": 0.0, "clock": []}]


def test_repeats_are_turns_of_their_own(tmp_path):
    run(tmp_path, n=1, repeats=3)
    line = record(tmp_path, "staged").lines[0]
    assert [turn["seconds"] for turn in line["turns"]] == [7.625] * 3
    assert record(tmp_path, "staged").header["fingerprint"]["repeats"] == 3


def test_a_registered_test_is_timed_as_often_as_it_says(tmp_path, monkeypatch):
    stamp = {"tests": {"r2ag.c33/testbed": "5eed"}, "package": "p1"}
    monkeypatch.setattr(registering, "stamp", lambda *given: stamp)
    four = SimpleNamespace(ground=papers.Ground(repeats=4))
    monkeypatch.setattr(papers, "load", lambda name: four)
    run(tmp_path, n=1)
    [line] = record(tmp_path, "plain").lines
    assert len(line["turns"]) == 4


def test_an_interrupted_sitting_goes_on_and_times_nothing_twice(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Shop(tmp_path, stop=16))
    kept = [len(record(tmp_path, m).lines) for m in ("plain", "staged")]
    assert kept[0] == kept[1] in range(1, 5)
    seen = []
    assert run(tmp_path, report=seen.append) == 2 * (6 - kept[0])
    assert [(p.done, p.total) for p in seen] == [(i, 6) for i in range(kept[0] + 1, 7)]
    for method in ("plain", "staged"):
        assert [line["id"] for line in record(tmp_path, method).lines] == [
            f"q{i}" for i in range(6)
        ]
    assert run(tmp_path) == 0


def test_a_torn_line_is_timed_again(tmp_path):
    run(tmp_path, n=2)
    folder = records.times_beside(tmp_path / "records", EXHIBIT)
    path = records.find(folder, condition("plain"))
    path.write_bytes(path.read_bytes()[:-40])
    assert run(tmp_path, n=2) == 1
    assert [line["id"] for line in record(tmp_path, "plain").lines] == ["q0", "q1"]


def test_a_foreign_file_in_its_place_is_refused(tmp_path):
    run(tmp_path, n=1)
    folder = records.times_beside(tmp_path / "records", EXHIBIT)
    records.find(folder, condition("plain")).write_text('{"format": 7}\n')
    with pytest.raises(RecordError, match=r"is no record file of format 1"):
        run(tmp_path, n=1)


def test_another_machine_or_company_is_refused_or_set_aside(tmp_path, monkeypatch):
    run(tmp_path, n=1)
    with pytest.raises(RecordError, match=r"beside: stored .* move it away"):
        run(tmp_path, cells=both()[:1], n=2)
    with pytest.raises(RecordError, match=r"repeats: stored 1, now 2"):
        run(tmp_path, n=1, repeats=2)
    monkeypatch.setattr(timed_runs, "surroundings", lambda: {"machine": "there"})
    with pytest.raises(RecordError, match=r"machine: stored 'here', now 'there'"):
        run(tmp_path, n=2)
    assert run(tmp_path, n=2, renew=True) == 4
    folder = records.times_beside(tmp_path / "records", EXHIBIT)
    assert len(list(folder.rglob("*.stale"))) == 2


def test_each_exhibit_has_its_own_times(tmp_path):
    assert run(tmp_path, n=1) == 2
    assert run(tmp_path, cells=[cell("plain", "mini.other")], n=1) == 1
    assert len(record(tmp_path, "plain", "mini.other").lines) == 1


def test_the_smallest_n_counts_for_all_that_take_turns(tmp_path):
    assert run(tmp_path, cells=[cell("plain", n=3), cell("staged", n=2)]) == 4
    assert run(tmp_path, cells=[cell("plain", n=3), cell("staged", n=2)], n=1) == 0


def test_a_service_with_a_memory_is_refused(tmp_path):
    with pytest.raises(RunError, match="'reservoir' keeps state"):
        run(tmp_path, Shop(tmp_path, reservoir=True), n=1)


def test_times_are_taken_also_where_nobody_looks_on(tmp_path, monkeypatch):
    """A bar that is switched off knows no description."""
    monkeypatch.setenv("TQDM_DISABLE", "1")
    shop = Shop(tmp_path)
    assert timed_runs.with_bar(both(), shop, tmp_path / "records", n=1, clock=shop.hands)


def test_the_manifest_tells_the_load_and_a_busy_machine_is_told(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(timed_runs, "load", lambda: 3.14159)
    shop = Shop(tmp_path)
    timed_runs.with_bar(both(), shop, tmp_path / "records", n=1, clock=shop.hands)
    folder = records.times_beside(tmp_path / "records", EXHIBIT)
    [entry] = manifests.read(folder, condition("plain"))
    assert (entry["load"], entry["batch_size"], entry["questions"]) == (3.14, 1, 1)
    assert "other programs are at work here (load 3.1)" in caplog.text


def test_surroundings_are_plain_and_the_same_each_time(monkeypatch):
    monkeypatch.undo()
    told = timed_runs.surroundings()
    assert told == timed_runs.surroundings() == json.loads(json.dumps(told))
    assert told["threads"] >= 1
    assert {"python", "numpy"} <= set(told["versions"])


# ------------------------------------------------------------------------------ the clock


def test_a_call_that_fails_is_noted_and_its_error_goes_on():
    hands, notes = Hands(), []

    def search(queries, k):
        hands.pass_(2.0)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        Clocked(SimpleNamespace(search=search), hands, notes).search(["a", "b"], 3)
    assert notes == [("retriever", 2.0, 2)]


def test_what_is_no_call_goes_through_and_a_single_text_is_one_item():
    notes = []
    service = SimpleNamespace(fingerprint="x", recall=lambda query, k: [query] * k)
    watched = Clocked(service, Hands(), notes)
    assert watched.fingerprint == "x"
    assert watched.recall("query", 2) == ["query", "query"]
    assert notes == [("reservoir", 0.0, 1)]
    assert not hasattr(watched, "search")


def test_the_workshops_own_services_stay_as_they_were(tmp_path):
    shop, notes = Shop(tmp_path), []
    inner = shop.retriever.encoder
    made = clocked(shop.services(None), shop.hands, notes)
    made["retriever"].search(["query 1"], 1)
    assert shop.retriever.encoder is inner
    assert [kind for kind, *_ in notes] == ["retriever.encoder", "retriever"]
    notes.clear()
    shop.retriever.search(["query 1"], 1)
    assert notes == []


def test_a_kept_vector_is_not_taken_for_an_encoded_query(tmp_path):
    shop, notes = Shop(tmp_path), []
    shop.retriever.encoder = CachedEncoder(Vectors(shop.hands), shop.store)
    shop.retriever.encoder.encode(["query 1"])
    clocked(shop.services(None), shop.hands, notes)["retriever"].search(["query 1"], 1)
    assert notes == [("retriever.encoder", 0.125, 1), ("retriever", 0.375, 1)]


class Comparing(Judge):
    """Encodes what it judges, by an encoder of its own."""

    def __init__(self, hands, encoder):
        super().__init__(hands)
        self.encoder = encoder

    def score(self, items):
        self.encoder.encode([text for item in items for text in item])
        return super().score(items)


def test_nor_are_those_that_a_classifier_keeps_taken_for_nothing(tmp_path):
    shop, notes = Shop(tmp_path), []
    kept = CachedEncoder(Vectors(shop.hands), shop.store)
    kept.encode(["a", "b"])
    judge = Comparing(shop.hands, kept)
    made = clocked({"scorer": CachedScorer(judge, shop.store)}, shop.hands, notes)
    made["scorer"].score((("a",), ("b",)))
    assert notes == [("scorer", 1.25, 2)]
    assert judge.encoder is kept


def test_a_timed_cell_is_read_from_the_times(tmp_path):
    run(tmp_path, n=2)
    results = Results(tmp_path / "records")
    assert results.scores(cell("plain"), "seconds").values.tolist() == [4.375, 4.375]
    assert results.lines(replace(cell("plain"), timed=False)) is None


@pytest.mark.parametrize(
    "turn",
    [
        None,
        {"seconds": 1.0},
        {"seconds": -1.0, "clock": []},
        {"seconds": True, "clock": []},
        {"seconds": 1e301, "clock": []},
        {"seconds": 1.0, "clock": {}},
        {"seconds": 1.0, "clock": [["reader", 1.0]]},
        {"seconds": 1.0, "clock": [[1, 1.0, 1]]},
        {"seconds": 1.0, "clock": [["reader", "1", 1]]},
        {"seconds": 1.0, "clock": [["reader", 1.0, 1.5]]},
        {"seconds": 1.0, "clock": [["reader", 1.0, -1]]},
        {"seconds": 1.0, "clock": [], "more": 1},
    ],
)
def test_a_line_whose_turns_are_no_turns_is_refused(tmp_path, turn):
    line = {"id": "q0", "cluster": "q0", "hits": [], "scores": {}}
    with records.open_record(tmp_path, condition("plain"), {}) as record:
        with pytest.raises(RecordError, match="turns"):
            record.append(line | {"turns": [turn]})
        record.append(line | {"turns": [{"seconds": 0, "clock": [["reader", 0.5, 1]]}]})
