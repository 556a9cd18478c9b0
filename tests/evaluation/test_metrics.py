import pytest

from rag_repro.evaluation import metrics
from rag_repro.evaluation.metric import accepted, readings
from rag_repro.schema import Gold, Interpretation, Passage, Question

PASSAGES = {
    "a": Passage("a", "France", "Its capital is Paris."),
    "b": Passage("b", "Paris", "A city of light."),
    "x": Passage("x", "Other", "Nothing of note."),
}
QUESTION = Question(
    "q", "Where?", ("Paris", "City of Light"), gold=(Gold("a", "static"), Gold("b", "dynamic"))
)


def test_every_metric_of_one_record_by_hand():
    got = metrics.score(QUESTION, "It is Paris.", ["x", "a"], passages=PASSAGES)
    wanted = {
        "em": 0,
        "f1": 0.5,  # it is paris / paris: P 1/3, R 1
        "precision": 1 / 3,
        "recall_tokens": 1,
        "acc": 1,
        "acc_words": 1,
        "acc_line": 1,
        "f1_line": 0.5,
        "hit": 1,
        "f1_chars": 12 / 27,
        "set_recall": 1,
        "set_f1": 0.5,  # as f1
        "set_precision": 1 / 3,
        "set_recall_tokens": 1,
        "distinct": 1,
        "rouge_l": 0.5,
        "unparsed": 0,
        "length": 3,
        "recall": 0.5,
        "recall_static": 1,
        "recall_dynamic": 0,
        "all_gold": 0,
        "any_gold": 1,
        "gold_precision": 0.5,
        "map": 0.25,  # gold at rank 2 of two gold: (1/2) / 2
        "passages": 2,
        "answer_recall": 1,
        "snippet_precision": 0.5,
        "shown_words": 3 + 4,
        "distracted": 0,
    }
    assert got == pytest.approx(wanted)
    of_line_or_intent = {n for n, m in metrics.METRICS.items() if m.needs == "line"}
    of_line_or_intent |= {"intent_hit"}
    assert set(got) == metrics.METRICS.keys() - of_line_or_intent


def test_unparsed_scores_zero_and_is_counted():
    got = metrics.score(QUESTION, None, ["a"])
    for name in ("em", "f1", "acc", "acc_line", "f1_line", "hit", "f1_chars", "rouge_l"):
        assert got[name] == 0
    assert got["unparsed"] == 1
    assert "length" not in got
    assert got["recall"] == 0.5


def test_no_reader_asked_leaves_only_the_hits():
    got = metrics.score(QUESTION, None, ["a"], answered=False)
    assert {metrics.METRICS[name].needs for name in got} == {"hits"}


@pytest.mark.parametrize(
    ("prediction", "wanted"),
    [
        ("Nothing of note", 1),  # wrong, and another passage's words
        ("note.\nParis", 1),  # the first line alone counts
        ("France", 0),  # wrong, and a gold passage's
        ("Paris", 0),  # right
        ("capital", 0),  # both passages' word
        ("Rome", 0),  # nobody's words
        ("no", 0),  # stands everywhere
        (None, None),
        ("", None),
    ],
)
def test_distracted_is_wrong_in_the_words_of_a_passage_that_is_not_gold(prediction, wanted):
    passages = {
        **PASSAGES,
        "x": Passage("x", "Other", "Nothing of note, no capital. Paris it is not."),
    }
    got = metrics.score(QUESTION, prediction, ["x", "a"], passages=passages)
    assert got.get("distracted") == wanted


def test_distracted_needs_gold_and_an_open_answer():
    bare = Question("q", "Where?", ("Paris",))
    assert "distracted" not in metrics.score(bare, "note", ["x"], passages=PASSAGES)
    closed = Question("q", "Is it?", ("yes",), gold=(Gold("a"),))
    assert "distracted" not in metrics.score(closed, "note", ["x"], passages=PASSAGES)
    assert metrics.score(QUESTION, "note", ["a"], passages=PASSAGES)["distracted"] == 0


def test_absent_where_not_defined():
    bare = Question("q", "Where?", ("Paris",))
    got = metrics.score(bare, "Paris", ["a"], passages=PASSAGES)
    assert not {"recall", "all_gold", "any_gold", "gold_precision", "map"} & set(got)
    assert "snippet_precision" in got
    none = metrics.score(QUESTION, "Paris", [], passages=PASSAGES)
    assert none["recall"] == 0
    assert none["answer_recall"] == 0
    assert none["passages"] == 0
    assert not {"gold_precision", "snippet_precision", "shown_words"} & set(none)
    closed = Question("q", "Is it?", ("yes",))
    assert not {"answer_recall", "snippet_precision"} & set(
        metrics.score(closed, "yes", ["a"], passages=PASSAGES)
    )
    unanswered = metrics.score(Question("q", "?", ()), "x", ["a"], passages=PASSAGES)
    assert set(unanswered) == {"passages", "shown_words"}
    static_only = Question("q", "?", ("x",), gold=(Gold("a", "static"),))
    assert "recall_dynamic" not in metrics.score(static_only, "x", ["a"])


def test_ambiguous_question_is_scored_over_all_interpretations():
    asked = Question(
        "q",
        "When did they win?",
        ("1998",),
        interpretations=(
            Interpretation("... the first time?", ("1998",)),
            Interpretation("... the second time?", ("2018", "July 2018")),
        ),
    )
    assert accepted(asked) == ("1998", "2018", "July 2018")
    assert readings(asked) == (("1998",), ("2018", "July 2018"))
    got = metrics.score(asked, "2018", ["a"], passages=PASSAGES)
    assert (got["em"], got["hit"], got["set_recall"]) == (1, 1, 0.5)
    both = metrics.score(asked, "1998\n2018", ["a"])
    assert (both["acc"], both["set_recall"]) == (1, 1)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="did you mean 'recall'"):
        metrics.get("recal")


def test_foreign_hit_is_refused():
    with pytest.raises(KeyError, match="'nowhere' is not among"):
        metrics.score(QUESTION, "Paris", ["nowhere"], passages=PASSAGES)


def test_registry_is_consistent():
    for name, metric in metrics.METRICS.items():
        assert metric.name == name
        assert (metric.scale, metric.span) == ((100, 1) if metric.unit == "percent" else (1, None))
        assert metric.meaning
    assert metrics.get("unparsed").higher_is_better is False
    assert metrics.get("passages").higher_is_better is None
