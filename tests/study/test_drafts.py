"""What a record keeps of dynamic retrieval's trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro.methods.dragin.dynamic_settings import FACTORS, DynamicSettings
from rag_repro.methods.dragin.loop import ReleasedSettings
from rag_repro.schema import Answer, Gold
from rag_repro.study import line_fields, lines
from tests.methods.dragin.test_loop import answered, said
from tests.study.scripted import DATASET

QUESTION = replace(DATASET.questions[0], gold=(Gold("p0", "static", 1), Gold("p1", "dynamic", 2)))
GOOD = {"id": "a", "cluster": "a", "hits": [], "scores": {}}
FIELD = {"drafts": 2, "alarms": 1, "again": False, "found": [[0]]}


def judged(score, meaning=None, keep=1):
    """A draft of the words w0, w1 ..., of which the first `keep` stay."""
    meaning = [1.0] * len(score) if meaning is None else meaning
    words = [f"w{i}" for i in range(len(score))]
    kept = {"words": words, "keep": keep, "kept": " " + " ".join(words[:keep])}
    # As the released code: all words above the threshold that bear meaning.
    hits = [w for w, x, m in zip(words, score, meaning, strict=True) if x > 0.5 and m]
    return {
        "stage": "decide",
        "text": "t",
        **kept,
        "hits": hits,
        "score": score,
        "meaning": meaning,
    }


def found(*names):
    return {"stage": "retrieve", "query": "secret", "found": list(names)}


WRITE = {"stage": "write", "text": "secret"}


def of(*trace, threshold=0.5):
    return line_fields.of_drafts(QUESTION, Answer(trace=trace), threshold).get("dynamic")


def test_alarms_are_the_drafts_behind_which_a_search_stands():
    got = of(
        *(judged([0.1, 0.9, 0.2]), found("p2", "p0"), WRITE),
        *(judged([0.1, 0.2, 0.3, 0.4]), WRITE),
    )
    assert got == {
        "drafts": 2,
        "alarms": 1,
        "again": False,
        "found": [[0]],
        "judged": 2 + 4,  # up to the alarm, and all of the draft that stands
        "unmeant": 0,
    }


def test_what_is_composed_with_it_changes_no_count():
    """ERM4's, DR-RAG's and R²AG's events lie between a decision and its search."""
    below = (
        {"stage": "retrieve", "query": "q", "popularity": None, "found": ["p0"]},
        {"stage": "filter", "passage": "p0", "label": "entailment"},
        {"stage": "retrieve", "query": "q", "beside": "p0", "found": ["p1"]},
        {"stage": "features", "rows": []},
    )
    alone = of(judged([0.1, 0.9]), found("p0"), WRITE, judged([0.1]), WRITE)
    assert of(judged([0.1, 0.9]), *below, found("p0"), WRITE, judged([0.1]), WRITE) == alone
    assert (alone["alarms"], alone["found"]) == (1, [[0]])


def test_an_alarm_by_words_without_meaning_alone_is_unmeant():
    unmeant = judged([0.6, 0.4], meaning=[0.0, 1.0], keep=0)
    other = judged([0.6, 0.9], meaning=[0.0, 1.0])  # its second word bears meaning
    assert of(unmeant, found("p9"), other, found("p9"))["unmeant"] == 1
    assert of(unmeant, WRITE)["unmeant"] == 0  # settled words give no alarm


def test_settled_words_are_judged_and_give_no_alarm():
    """Behind a search the first word may be above the threshold, and stands."""
    settled = judged([0.9, 0.1, 0.8, 0.7], meaning=[1.0, 1.0, 0.0, 1.0], keep=2)
    got = of(judged([0.1, 0.9]), found("p0"), WRITE, settled, found("p1"), WRITE)
    assert (got["judged"], got["unmeant"]) == (2 + 3, 0)
    stands = judged([0.9, 0.1, 0.2, 0.3], keep=4)
    got = of(judged([0.1, 0.9]), found("p0"), WRITE, stands, WRITE)
    assert (got["judged"], got["alarms"]) == (2 + 4, 1)


def test_each_search_tells_which_gold_it_found_the_first_one_too():
    got = of(found("p1", "p0"), judged([0.9]), found("p5"), judged([0.1]), WRITE)
    assert got["found"] == [[0, 1], []]
    assert got["alarms"] == 1


def told_of(script, settings):
    answer, _, library = answered(script, settings)
    return line_fields.of_drafts(QUESTION, answer, settings.threshold)["dynamic"], library.queries


def test_the_equations_traces_are_read():
    """The case of appendix C: 4,250 gives the alarm, the next draft stands."""
    script = [
        said(" It is Bank Hall. It seats 4,250 men. So the answer is 4,250.", {"4,250": 3.0}),
        said(" 3,677 men. So the answer is 3,677."),
    ]
    got, queries = told_of(script, DynamicSettings(threshold=0.1))
    assert len(queries) == 1
    # Seven words up to the alarm, seven behind it; the library's first passage is p1.
    assert got == {
        **{"drafts": 2, "alarms": 1, "judged": 7 + 7, "unmeant": 0},
        **{"again": False, "found": [[1]], "taken": got["taken"]},
    }
    [[taken, among]] = got["taken"]
    assert 0 < taken < among


def test_an_empty_draft_is_none_and_leaves_no_gap():
    script = [said(" Bank Hall.", {"Bank": 3.0}), said("")]
    got, _ = told_of(script, DynamicSettings(threshold=0.1, ask_again="never"))
    assert (got["drafts"], got["alarms"], got["judged"], got["unmeant"]) == (1, 1, 1, 0)


def test_a_doubt_that_stays_is_judged_to_its_drafts_end():
    script = [said(" Bank Hall.", {"Bank": 3.0}), said(" Bank Hall so now.", {"Bank": 9.0})]
    got, queries = told_of(script, DynamicSettings(threshold=0.1, ask_again="never"))
    assert (got["alarms"], len(queries)) == (1, 1)
    assert got["judged"] == 1 + 4


def test_the_released_codes_traces_are_read():
    script = [
        said(" It is old. Bank is it. More", {"Bank": 9.0}),
        said(" Odd is it. And"),
        said(" So the answer is x."),
    ]
    got, queries = told_of(script, ReleasedSettings(threshold=1.2, query_tokens=None))
    assert (got["drafts"], got["alarms"], len(queries)) == (2, 1, 1)
    assert got["judged"] == 4 + 5


def test_fs_rag_searches_as_often_as_it_writes_sentences():
    script = [said(" A one. B two. C"), said(" B two. C"), said(" So the answer is x.")]
    got, queries = told_of(script, DynamicSettings(timing="sentence", query="last_sentence"))
    assert (got["drafts"], got["alarms"], len(queries)) == (3, 2, 3)
    assert len(got["found"]) == 3
    assert "judged" not in got


def test_rules_without_scores_have_no_rate():
    plain = {"stage": "decide", "text": "t", "keep": 3, "hits": ["a"]}
    got = of(plain, found("p0"), plain, WRITE, {"stage": "ask_again", "text": "x"})
    assert got == {"drafts": 2, "alarms": 1, "again": True, "found": [[0]]}
    assert "judged" not in of(judged([0.9]), found("p0"), threshold=None)


def test_adaptive_methods_decide_otherwise_and_neither_takes_the_others_trace():
    popular = {"stage": "decide", "by": "testbed", "value": 60.0, "retrieve": False}
    assert of(popular) is None
    assert of() is None
    dynamic = Answer(trace=(judged([0.9]), found("p0"), WRITE))
    assert line_fields.of_decisions(QUESTION, dynamic) == {}


def weighed(alarm, *signals):
    """A draft of as many words as there are signals, each a row of `FACTORS`."""
    columns = dict(zip(FACTORS, zip(*signals, strict=True), strict=True))
    score = [a * b * c for a, b, c, _ in signals]
    return {**judged(score), **columns, "alarm": alarm}


def test_signals_are_of_the_words_that_could_give_the_alarm():
    """Not behind it, where they are written anew, and not of a word that is settled."""
    one, two = [0.9, 0.5, 1.0, 0.2], [1.9, 0.5, 1.0, 0.6]
    three, four = [0.1, 0.1, 0.0, 0.0], [2.0, 0.9, 1.0, 0.5]
    trace = (
        *(found("p1"), weighed([1], one, two, three), found("p0"), WRITE),
        *(weighed([1], four, two, one), found("p0"), WRITE),
        *(weighed([], four, three), WRITE),
    )
    answer = Answer(trace=trace)
    told = line_fields.of_drafts(QUESTION, answer, 0.5, signals=True)["dynamic"]
    # The question's own search, before anything was written, settles no word.
    assert told["signals"] == [one, two, two, three]
    assert "signals" not in line_fields.of_drafts(QUESTION, answer, 0.5)["dynamic"]
    lines.line_bytes({**GOOD, "dynamic": told})
    plain = {"stage": "decide", "text": "t", "keep": 3, "hits": []}
    plain = Answer(trace=(plain, WRITE))
    assert "signals" not in line_fields.of_drafts(QUESTION, plain, 0.5, True)["dynamic"]


def test_words_that_qfs_took_are_counted():
    query = {**found("p0"), "context": ["secret"] * 4, "taken": [0, 2, 3]}
    told = of(judged([0.9]), query, WRITE, judged([0.9]), {**query, "taken": []}, WRITE)
    assert told["taken"] == [[3, 4], [0, 4]]
    assert "secret" not in str(told)


def test_no_text_is_kept():
    assert "secret" not in str(of(judged([0.9]), found("p0"), WRITE))


@pytest.mark.parametrize(
    "changes",
    [
        {"drafts": -1},
        {"alarms": True},
        {"alarms": 1.5},
        {"again": 1},
        {"found": [0]},
        {"found": [[-1]]},
        {"found": [["p0"]]},
        {"judged": "3"},
        {"text": "secret"},
        {"taken": [[1]]},
        {"taken": [["a", 2]]},
        {"taken": 3},
        {"signals": [[1.0, 1.0, 1.0]]},
        {"signals": [[1.0, 1.0, 1.0, -1.0]]},
        {"signals": {}},
    ],
)
def test_a_line_with_another_field_is_refused(changes):
    with pytest.raises(lines.RecordError, match="dynamic"):
        lines.line_bytes({**GOOD, "dynamic": {**FIELD, **changes}})


def test_a_line_lacks_no_count():
    lines.line_bytes({**GOOD, "dynamic": FIELD})
    lines.line_bytes({**GOOD, "dynamic": {**FIELD, "judged": 3, "unmeant": 0}})
    for name in FIELD:
        held = {key: value for key, value in FIELD.items() if key != name}
        with pytest.raises(lines.RecordError, match="dynamic"):
            lines.line_bytes({**GOOD, "dynamic": held})
    lines.line_bytes(GOOD)  # as old records have it
