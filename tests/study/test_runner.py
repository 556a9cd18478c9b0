"""Runs that stop and go on, in parts or at once, leave the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rag_repro.schema import Answer, Hit, Question
from rag_repro.study import manifests, records, runner
from rag_repro.study.records import RecordError
from rag_repro.study.runner import ALL_FAILED, RunError, line_of, run
from tests.study.scripted import DATASET, Echo, Shop, condition, use_methods


@pytest.fixture(autouse=True)
def _methods(monkeypatch):
    use_methods(monkeypatch)


def content(root, method="walk"):
    return records.find(root, condition(method)).read_bytes()


def ids(root, method="walk"):
    record = records.load(root, condition(method))
    return [line["id"] for line in record.lines] if record else []


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an undisturbed run leaves, one question at a time."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_methods(monkeypatch)
        root = tmp_path_factory.mktemp("whole")
        assert run(condition(), Shop(), root, batch_size=1) == 6
        return content(root)


def test_a_line_holds_ids_scores_and_costs_and_no_text_of_the_data(tmp_path):
    run(condition(), Shop(), tmp_path)
    line = records.load(tmp_path, condition()).lines[3]
    scores = line.pop("scores")
    # Question 3: three searches, one reading of 5 prompt tokens that gave 2.
    assert line == {
        "id": "q3",
        "kind": "bridge",
        "hops": None,
        "cluster": "q3",
        "hits": ["p3", "p4"],
        "gold": [["static", None, 1]],
        "cost": {
            "reader_calls": 1,
            "prompt_tokens": 5,
            "new_tokens": 2,
            "retrievals": 3,
        },
        "text": "says 3",
        "prediction": "says 3",
    }
    assert (scores["em"], scores["recall"], scores["recall_static"]) == (1.0, 1.0, 1.0)
    assert (scores["gold_precision"], scores["passages"]) == (0.5, 2.0)
    assert scores["answer_recall"] == 0.0  # looks into the passages: "says 3" is in none
    assert b"secret" not in json.dumps(dict(line)).encode()


def test_a_line_holds_the_pairs_that_a_selection_judged_and_how_many_of_each_are_gold():
    question = DATASET.questions[0]  # needs p0
    found = tuple(Hit(p, 1.0, i) for i, p in enumerate(DATASET.corpus.passages[:2], start=1))
    pairs = {("p0", "p1"): 0.123456, ("p0", "p0"): 1.0, ("p2", "p1"): 0.0}
    trace = [
        {"stage": "judge", "by": "classifier", "pair": [*pair], "probability": p, "positive": True}
        for pair, p in pairs.items()
    ]
    answer = Answer(hits=found, trace=({"stage": "retrieve"}, *trace, {"no": "stage"}))
    line = line_of(question, answer, DATASET, condition(reader=None))
    assert line["judged"] == [["p0", "p1", 0.1235, 1], ["p0", "p0", 1.0, 2], ["p2", "p1", 0.0, 0]]
    nameless = replace(question, gold=())
    line = line_of(nameless, answer, DATASET, condition(reader=None))
    assert [gold for *_, gold in line["judged"]] == [None, None, None]
    assert "judged" not in line_of(question, Answer(hits=found), DATASET, condition(reader=None))


@pytest.mark.parametrize("batch_size", [2, 16])
def test_batches_leave_the_same_bytes_although_quick_questions_end_first(
    tmp_path, whole, batch_size
):
    seen = []
    run(condition(), Shop(), tmp_path, batch_size=batch_size, report=seen.append)
    assert content(tmp_path) == whole
    assert [(p.done, p.total) for p in seen] == [(i, 6) for i in range(1, 7)]


def test_the_first_n_come_first_and_more_go_on_from_them(tmp_path, whole):
    assert run(condition(), Shop(), tmp_path, n=4) == 4
    assert ids(tmp_path) == ["q0", "q1", "q2", "q3"]
    shop = Shop()
    seen = []
    assert run(condition(), shop, tmp_path, report=seen.append) == 2
    assert [(p.done, p.total) for p in seen] == [(5, 6), (6, 6)]
    assert {q.split()[1] for q in shop.retriever.asked} == {"4", "5"}
    assert content(tmp_path) == whole


def test_a_finished_run_asks_nothing_and_changes_nothing(tmp_path, whole):
    run(condition(), Shop(), tmp_path)
    shop = Shop()
    assert run(condition(), shop, tmp_path) == 0
    assert shop.retriever.asked == []
    assert content(tmp_path) == whole
    assert len(manifests.read(tmp_path, condition())) == 1


def test_shards_joined_equal_the_undisturbed_run(tmp_path, whole):
    for i in (3, 1, 2):
        assert run(condition(), Shop(), tmp_path, shard=(i, 3)) == 2
    assert records.find(tmp_path, condition()) is None
    assert run(condition(), Shop(), tmp_path) == 0
    assert content(tmp_path) == whole
    entries = manifests.read(tmp_path, condition())
    assert sorted(e["shard"] for e in entries) == ["1-of-3", "2-of-3", "3-of-3"]
    assert not [p for p in tmp_path.rglob("*shard*") if p.is_file()]


def test_a_shard_asks_only_what_the_record_lacks(tmp_path, whole):
    run(condition(), Shop(), tmp_path, n=3)
    shop = Shop()
    assert run(condition(), shop, tmp_path, shard=(1, 2)) == 1  # q0, q2 are there: q4
    assert {q.split()[1] for q in shop.retriever.asked} == {"4"}
    run(condition(), Shop(), tmp_path)
    assert content(tmp_path) == whole


@pytest.mark.parametrize("stop", [1, 5, 8, 12])
@pytest.mark.parametrize("batch_size", [1, 16])
def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path, whole, stop, batch_size):
    with pytest.raises(KeyboardInterrupt):
        run(condition(), Shop(stop=stop), tmp_path, batch_size=batch_size)
    kept = len(ids(tmp_path))
    assert kept < 6
    assert run(condition(), Shop(), tmp_path, batch_size=batch_size) == 6 - kept
    runs = [entry["questions"] for entry in manifests.read(tmp_path, condition())]
    assert runs == [n for n in (kept, 6 - kept) if n]
    assert content(tmp_path) == whole


def test_other_data_under_the_same_name_is_refused(tmp_path):
    run(condition(), Shop(), tmp_path, n=2)
    with pytest.raises(RecordError, match="corpus: stored 'c1', now 'c2'"):
        run(condition(), Shop(corpus="c2"), tmp_path)


def test_a_failed_question_is_recorded_and_wrong(tmp_path):
    run(condition("stumble"), Shop(), tmp_path)
    lines = records.load(tmp_path, condition("stumble")).by_question
    failed = lines["q2"]
    assert failed["error"] == "MethodError: no way on"
    assert failed["hits"] == []
    # It never reached its reader, and counts in answer quality all the same.
    assert (failed["scores"]["em"], failed["scores"]["acc"]) == (0.0, 0.0)
    assert failed["scores"]["recall"] == 0.0
    assert failed["scores"]["unparsed"] == 1.0
    assert [name for name, line in lines.items() if "error" in line] == ["q2"]


def test_without_a_reader_a_failure_has_no_score_of_an_answer(tmp_path):
    bare = condition("stumble", reader=None)
    run(bare, Shop(), tmp_path, n=3)
    scores = records.load(tmp_path, bare).by_question["q2"]["scores"]
    assert scores["recall"] == 0.0
    assert "em" not in scores


def test_where_the_first_ones_all_fail_the_run_stops_and_records_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "ALL_FAILED", 6)
    with pytest.raises(RunError, match=r"the first 6 questions .* all failed.*nobody gets here"):
        run(condition("fall"), Shop(), tmp_path)
    assert records.load(tmp_path, condition("fall")) is None
    assert manifests.read(tmp_path, condition("fall")) == []
    assert ALL_FAILED > 1


def test_first_failures_before_an_answer_are_recorded_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "ALL_FAILED", 2)  # one failure, then an answer
    only = DATASET.only(["q2", "q3"])
    shop = Shop()
    shop.dataset = lambda name, split: only
    run(condition("stumble"), shop, tmp_path, batch_size=1)
    assert ids(tmp_path, "stumble") == ["q2", "q3"]


def test_the_manifest_tells_how_many_tokens_might_have_been_others(tmp_path):
    class Close(Echo):
        ties = 5  # of earlier conditions

        def generate(self, calls):
            self.ties += len(calls)
            return super().generate(calls)

    shop = Shop()
    shop.made["reader"] = Close()
    run(condition(), shop, tmp_path, n=4)
    assert [entry["ties"] for entry in manifests.read(tmp_path, condition())] == [4]
    run(condition(), Shop(), tmp_path)
    assert "ties" not in manifests.read(tmp_path, condition())[-1]  # that reader counts none


def came(*names: str, good: Sequence[str] = ()) -> list[tuple[Question, Answer]]:
    """Pairs in the order in which they came back; all but the good ones failed."""
    return [
        (Question(n, "?", ("x",)), Answer(error=None if n in good else "too long")) for n in names
    ]


def test_failures_that_overtake_the_first_questions_stop_no_run():
    late = [f"late{i}" for i in range(ALL_FAILED)]
    first = [f"first{i}" for i in range(ALL_FAILED)]
    pairs = came(*late, *first, good=first)
    of = condition("stumble")
    assert list(runner._once_one_works(pairs, of, [*first, *late], False)) == pairs
    # The same in which the first ones fail as well, whoever comes back before.
    pairs = came(*late[:3], *first, *late[3:], good=late[3:])
    with pytest.raises(RunError, match=f"the first {ALL_FAILED} questions"):
        list(runner._once_one_works(pairs, of, [*first, *late], False))


def test_a_stretch_of_failures_behind_answers_is_recorded():
    names = [f"q{i}" for i in range(ALL_FAILED + 4)]
    pairs = came(*names, good=names[ALL_FAILED:])
    of = condition("stumble")
    assert list(runner._once_one_works(pairs, of, names, True)) == pairs
    assert list(runner._once_one_works(pairs[:ALL_FAILED], of, names[:ALL_FAILED], True))


def test_many_failures_behind_answers_have_one_cause_as_well():
    names = [f"q{i}" for i in range(ALL_FAILED * runner.PATIENT + 1)]
    with pytest.raises(RunError, match="mend the cause and run again"):
        list(runner._once_one_works(came(*names), condition("stumble"), names, True))


def test_where_all_of_a_few_fail_nothing_is_recorded_either(tmp_path):
    with pytest.raises(RunError, match=r"the 3 questions asked of .* all failed"):
        run(condition("fall"), Shop(), tmp_path, n=3)
    assert records.load(tmp_path, condition("fall")) is None


def test_a_last_failure_behind_answers_of_an_earlier_run_is_recorded(tmp_path):
    run(condition("stumble"), Shop(), tmp_path, n=2)
    run(condition("stumble"), Shop(), tmp_path, n=3)
    assert ids(tmp_path, "stumble") == ["q0", "q1", "q2"]


def test_failed_questions_can_be_asked_again(tmp_path):
    of = condition("stumble")
    assert records.forget_failed(tmp_path, of) == 0
    run(of, Shop(), tmp_path)
    before = content(tmp_path, "stumble")
    assert records.forget_failed(tmp_path, of) == 1
    assert ids(tmp_path, "stumble") == ["q0", "q1", "q3", "q4", "q5"]
    assert records.forget_failed(tmp_path, of) == 0
    assert run(of, Shop(), tmp_path) == 1
    assert content(tmp_path, "stumble") == before


# ------------------------------------------------------------- state from question to question


def test_a_reservoir_is_rebuilt_from_the_record(tmp_path):
    plain = condition("gather", reader=None)
    run(plain, Shop(reservoir=True), tmp_path / "whole")
    last = records.load(tmp_path / "whole", plain).by_question["q5"]
    assert last["hits"] == ["p0", "p1", "p2", "p3", "p4", "p5"]
    assert last["remembered"] == ["p5"]

    with pytest.raises(KeyboardInterrupt):
        run(plain, Shop(reservoir=True, stop=4), tmp_path / "parts")
    assert run(plain, Shop(reservoir=True), tmp_path / "parts") == 3
    a, b = (records.find(tmp_path / name, plain).read_bytes() for name in ("whole", "parts"))
    assert a == b


def test_shards_of_a_reservoir_are_refused(tmp_path):
    with pytest.raises(RunError, match="without --shard"):
        run(condition("gather"), Shop(reservoir=True), tmp_path, shard=(1, 2))


# ---------------------------------------------------------------------- trials


def test_an_estimate_reckons_from_a_trial_and_records_nothing(tmp_path, monkeypatch):
    clock = iter([10.0, 16.0, 20.0, 21.0])
    monkeypatch.setattr(runner.time, "perf_counter", lambda: next(clock))
    cost = runner.estimate(condition(), Shop(), missing=50)
    assert (cost.trial, cost.seconds_a_question, cost.seconds) == (4, 1.5, 75.0)
    # 3 + 1 + 2 + 3 searches and 4 readings over four questions
    assert cost.cost_a_question["retrievals"] == 2.25
    assert cost.cost_a_question["reader_calls"] == 1.0
    # What is answered already lies in the cache, and would cost nothing.
    known = {q.id for q in DATASET.questions[:-1]}
    assert runner.estimate(condition(), Shop(), missing=1, done=known).trial == 1
    assert not list(tmp_path.iterdir())
