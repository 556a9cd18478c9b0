"""R²AG on hand-worked traces: what it asks, what it places before each passage, its controls."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.methods import base
from rag_repro.methods.r2ag.features import features
from rag_repro.methods.r2ag.method import r2ag, shares
from rag_repro.schema import Encode, Generation, Gold, Hit, Passage, Question, Soft
from tests.methods.scripted import Tables, answer_of, ids

QUESTION = Question(
    "id-q", "q?", ("x",), gold=(Gold("c"), Gold("d")), candidates=("a", "b", "c", "d", "e")
)
RANKINGS = {"q?": ["a", "b", "c", "z", "d", "e"]}
ANGLES = {"q?": 0, "Title a aa": 10, "Title b bb": 40, "Title c cc": 20, "Title d dd": 90,
          "Title e ee": 60, "Title z zz": 80}  # fmt: skip


class Plane:
    """An encoder of these texts alone, as directions in a plane."""

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked.append(list(texts))
        angles = np.radians([ANGLES[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


class Reader:
    def __init__(self):
        self.calls = []

    def generate(self, calls):
        self.calls += calls
        return [Generation("Ada", (1,), (0,), "eos", 10, 10) for _ in calls]


def asked(question=QUESTION, **given):
    settings = base.get("r2ag").configure({"k": 3, **given})
    plane, reader = Plane(), Reader()
    services = dict.fromkeys(settings.needs, plane)
    got = answer_of(r2ag, question, settings, retriever=Tables(RANKINGS), reader=reader, **services)
    placed = [s for call in reader.calls for s in call.prompt.segments if isinstance(s, Soft)]
    return got, placed, plane


def rows(placed):
    return np.array([s.features[s.index] for s in placed])


def unit(*texts):
    return Plane().encode(texts)


WANTED = features(unit("q?")[0], unit("Title a aa", "Title b bb", "Title c cc"))


def test_a_passages_features_stand_before_it():
    got, placed, plane = asked()
    # One call; each passage as the dense retriever reads it, in the retriever's order.
    assert plane.asked == [["q?", "Title a aa", "Title b bb", "Title c cc"]]
    assert [s.name for s in placed] == ["r2ag"] * 3
    assert [s.index for s in placed] == [0, 1, 2]
    assert len({id(s.features) for s in placed}) == 1  # one run of the former
    np.testing.assert_array_equal(rows(placed), WANTED)
    assert rows(placed)[:, 0] == pytest.approx(np.cos(np.radians([10, 40, 20])), abs=1e-6)
    assert ids(got.hits) == ["a", "b", "c"]
    assert (got.prediction, got.calls) == ("Ada", ("Retrieve", "Encode", "Generate"))
    [event] = got.trace
    assert event["passages"] == ["a", "b", "c"]
    assert event["columns"] == ["relevance", "precedent", "neighbour"]
    assert np.array(event["rows"]) == pytest.approx(WANTED, abs=1e-6)


def test_own_candidates_and_order_are_the_retrievers():
    got, placed, plane = asked(k=5, own_candidates=True)
    assert ids(got.hits) == ["a", "b", "c", "d", "e"]
    assert plane.asked[0][-2:] == ["Title d dd", "Title e ee"]
    assert len(placed) == 5


@pytest.mark.parametrize("columns", [["relevance"], ["neighbour", "precedent"]])
def test_a_column_is_dropped_not_zeroed(columns):
    _, placed, _ = asked(columns=columns)
    names = ["relevance", "precedent", "neighbour"]
    np.testing.assert_array_equal(rows(placed), WANTED[:, [names.index(c) for c in columns]])


def test_shuffled_features_are_other_passages_at_every_run_the_same():
    got, placed, _ = asked(inputs="shuffled", k=5, own_candidates=True)
    true = rows(asked(k=5, own_candidates=True)[1])
    mine = rows(placed)
    assert sorted(map(tuple, mine)) == sorted(map(tuple, true))
    assert (mine != true).any()
    np.testing.assert_array_equal(mine, rows(asked(inputs="shuffled", k=5, own_candidates=True)[1]))
    assert ids(got.hits) == ["a", "b", "c", "d", "e"]  # the passages stay
    orders = set()
    for i in range(8):
        other = Question(f"q{i}", "q?", ("x",), candidates=QUESTION.candidates)
        drawn = rows(asked(other, inputs="shuffled", k=5, own_candidates=True)[1])
        orders.add(tuple(drawn[:, 0].tolist()))
    assert len(orders) > 1


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [("constant", [1, 1, 1]), ("free", [1, 1, 1]), ("gold", [0, 0, 1])],
)
def test_controls_ask_no_encoder(inputs, wanted):
    got, placed, plane = asked(inputs=inputs)
    assert plane.asked == []
    assert rows(placed).tolist() == [[x] * 3 for x in wanted]
    assert rows(placed).dtype == np.float32
    assert not any(call == Encode.__name__ for call in got.calls)
    assert got.trace[0]["inputs"] == inputs


SCORED = {"inputs": "scores", "columns": ["relevance"]}


def test_scores_of_the_retriever_are_the_only_input():
    got, placed, plane = asked(**SCORED)
    assert plane.asked == []
    scores = [hit.score for hit in got.hits]
    assert len(set(scores)) == 3
    assert rows(placed).tolist() == [[pytest.approx(s / scores[0])] for s in scores]
    assert rows(placed).dtype == np.float32
    assert got.trace[0]["columns"] == ["relevance"]
    assert got.trace[0]["inputs"] == "scores"


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [([8.0, 2.0, 0.0], [1, 0.25, 0]), ([0.0, 0.0], [0, 0]), ([-1.0, -2.0], [0, 0]), ([], [])],
)
def test_shares_of_the_best_score(scores, wanted):
    hits = [Hit(Passage(f"p{i}", "", ""), score, i) for i, score in enumerate(scores, 1)]
    made = shares(hits)
    assert made.shape == (len(scores), 1)
    assert made.dtype == np.float32
    assert made[:, 0].tolist() == wanted


def test_exchange_puts_the_best_golds_embedding_before_the_best_other():
    got, placed, _ = asked(exchange=True, k=5, own_candidates=True)
    # a is the best passage, c (third) the best gold one.
    assert [s.index for s in placed] == [2, 1, 0, 3, 4]
    np.testing.assert_array_equal(placed[0].features, rows(asked(k=5, own_candidates=True)[1]))
    assert got.trace[1] == {"stage": "exchange", "passages": ["c", "a"]}
    assert ids(got.hits) == ["a", "b", "c", "d", "e"]


def test_nothing_to_exchange():
    got, placed, _ = asked(exchange=True, k=2)
    assert [s.index for s in placed] == [0, 1]
    assert got.trace[1] == {"stage": "exchange", "passages": []}


def test_labels_need_gold_and_no_passage_needs_nothing():
    bare = Question("b", "q?", ("x",))
    with pytest.raises(AssertionError, match="names no gold passages"):
        asked(bare, inputs="gold")
    nothing = Question("n", "q?", ("x",), gold=(Gold("c"),), candidates=("none",))
    got, placed, plane = asked(nothing, own_candidates=True)
    assert (placed, plane.asked, got.hits) == ([], [], ())
    assert got.trace[0]["rows"] == []


def test_without_a_prompt_the_features_are_the_answer():
    got, placed, _ = asked(prompt=None)
    assert (placed, got.text, len(got.trace[0]["rows"])) == ([], "", 3)


def test_what_it_needs_and_what_makes_no_other_condition():
    configure = base.get("r2ag").configure
    assert configure({}).needs == {"minilm": "encoder"}
    assert configure({"encoder": "dense", "inputs": "shuffled"}).needs == {"dense": "encoder"}
    assert configure({"inputs": "free"}).needs == {}
    assert configure({"inputs": "gold", "encoder": "dense"}) == configure({"inputs": "gold"})
    assert configure(SCORED).needs == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inputs": "shufled"}, "inputs is 'shufled', did you mean 'shuffled'"),
        ({"similarity": "cos"}, "similarity is 'cos'"),
        ({"columns": ["relevence"]}, "a column is 'relevence', did you mean 'relevance'"),
        ({"columns": []}, r"columns are \[\]"),
        ({"columns": ["relevance", "relevance"]}, "each once"),
        ({"prompt": "r2ag_rag"}, "'r2ag_rag' has no place .* there are: drrag_informed, r2ag"),
        ({"inputs": "gold", "similarity": "dot"}, "would do nothing with inputs 'gold'"),
        ({"encoder": None}, "need an encoder's name"),
        ({"inputs": "scores"}, r"say columns: \[relevance\]"),
        ({"inputs": "scores", "columns": ["neighbour"]}, "relevance alone"),
    ],
)
def test_settings_that_cannot_be(given, message):
    with pytest.raises(ValueError, match=message):
        base.get("r2ag").configure(given)
