"""Sealed records: they give back what was sealed, and a run goes on from them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from rag_repro.evaluation import metrics
from rag_repro.study import files, frame, manifests, records, runner, sealed
from rag_repro.study import lines as form
from rag_repro.study.records import RecordError, open_record
from rag_repro.study.scores import Only, Results, everything
from tests.study import mini
from tests.study.scripted import Shop, condition, use_methods
from tests.study.test_record_faults import KILLED, at_call, in_child, killed

COMMITTED = Path(__file__).parents[2] / "results" / "records"
PRINT = {"corpus": "c0ffee"}


@pytest.fixture(autouse=True)
def _methods(monkeypatch):
    use_methods(monkeypatch)
    monkeypatch.setattr(manifests, "commit", lambda: None)  # asks git, which takes its time


def run(root, shop=None, **options):
    return runner.run(condition(), shop or Shop(), root, **options)


def names(root) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


SEALED = ["conditions.parquet", "little/walk.parquet"]


def test_sealing_gives_back_header_lines_and_manifest(tmp_path):
    run(tmp_path)
    before = records.load(tmp_path, condition())
    entries = manifests.read(tmp_path, condition())
    assert sealed.seal(tmp_path) == 1
    assert names(tmp_path) == SEALED
    after = records.load(tmp_path, condition())
    assert (after.header, list(after.lines)) == (before.header, list(before.lines))
    assert list(map(form.line_bytes, after.lines)) == list(map(form.line_bytes, before.lines))
    assert manifests.read(tmp_path, condition()) == entries
    assert len(records.load(tmp_path, condition())) == 6
    assert records.paths(tmp_path) == [condition().path]


def test_sealing_again_writes_nothing_and_the_order_of_sealing_is_all_one(tmp_path):
    for settings in ({"k": 1}, {"k": 2}, {"k": 3}):
        runner.run(condition(settings=settings), Shop(), tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "apart")
    sealed.seal(tmp_path / "once")
    last = list((tmp_path / "apart").rglob("*-k1-*"))
    for path in last:
        path.rename(tmp_path / path.name)
    sealed.seal(tmp_path / "apart")
    for path in last:
        (tmp_path / path.name).rename(path)
    assert sealed.seal(tmp_path / "apart") == 1
    for name in SEALED:
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "apart" / name).read_bytes()
    before = {name: (tmp_path / "once" / name).stat().st_mtime_ns for name in SEALED}
    assert sealed.seal(tmp_path / "once") == 0
    assert before == {n: (tmp_path / "once" / n).stat().st_mtime_ns for n in SEALED}


def test_a_run_goes_on_from_a_sealed_record_and_is_sealed_anew(tmp_path):
    run(tmp_path / "whole")
    run(tmp_path / "parts", n=2)
    sealed.seal(tmp_path / "parts")
    assert run(tmp_path / "parts") == 4
    whole, parts = (records.find(tmp_path / name, condition()) for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()
    assert [e["questions"] for e in manifests.read(tmp_path / "parts", condition())] == [2, 4]
    sealed.seal(tmp_path / "parts")
    assert names(tmp_path / "parts") == SEALED
    assert len(records.load(tmp_path / "parts", condition())) == 6
    assert [e["questions"] for e in manifests.read(tmp_path / "parts", condition())] == [2, 4]


def test_a_complete_sealed_record_is_not_opened_by_a_run(tmp_path):
    run(tmp_path)
    sealed.seal(tmp_path)
    assert run(tmp_path) == 0
    assert names(tmp_path) == SEALED


def test_a_sealed_record_of_other_data_is_refused(tmp_path):
    run(tmp_path, n=2)
    sealed.seal(tmp_path)
    with pytest.raises(RecordError, match="corpus: stored 'c1', now 'c2'"):
        run(tmp_path, Shop(corpus="c2"))
    assert names(tmp_path) == SEALED


def test_what_a_run_is_at_work_on_is_left_to_the_next_time(tmp_path):
    run(tmp_path)
    with files.alone(tmp_path / (condition().path + ".lock")):
        assert sealed.seal(tmp_path) == 0
    assert sealed.seal(tmp_path) == 1


def test_a_kill_at_any_file_operation_of_sealing_loses_nothing(tmp_path):
    run(tmp_path / "whole")
    whole = list(records.load(tmp_path / "whole", condition()).lines)
    number = 0
    while True:
        number += 1
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", root)

        def work(number=number, root=root):
            at_call(number, killed)
            sealed.seal(root)

        status = in_child(work)
        assert list(records.load(root, condition()).lines) == whole
        assert len(manifests.read(root, condition())) == 1
        sealed.seal(root)
        assert list(records.load(root, condition()).lines) == whole
        assert len(manifests.read(root, condition())) == 1
        if status == 0:
            break
        assert status == KILLED
    assert number > 6


def test_failed_questions_are_taken_out_of_a_sealed_record(tmp_path):
    made = condition("stumble")
    runner.run(made, Shop(), tmp_path)
    sealed.seal(tmp_path)
    assert sealed.failed(records.load(tmp_path, made).lines) == 1
    assert records.forget_failed(tmp_path, made) == 1
    assert "q2" not in records.load(tmp_path, made).by_question
    assert records.forget_failed(tmp_path, made) == 0


def test_a_sealed_record_is_set_aside_whole(tmp_path):
    run(tmp_path)
    sealed.seal(tmp_path)
    aside = records.set_aside(tmp_path, condition(), PRINT)
    assert aside.name.endswith(".jsonl.stale")
    assert records.load(tmp_path, condition()) is None
    run(tmp_path)
    assert len(records.load(tmp_path, condition())) == 6


def test_a_damaged_file_is_named_with_what_to_do(tmp_path):
    run(tmp_path)
    sealed.seal(tmp_path)
    told = 0
    for name in SEALED:
        path = tmp_path / name
        good = path.read_bytes()
        for place in range(0, len(good), 97):
            path.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
            os.utime(path, ns=(place, place))
            fault = fault_of(tmp_path)
            told += bool(fault)
            assert not fault or (str(path) in fault and "version control" in fault)
            assert "\n" not in fault
        path.write_bytes(good)
    assert told > 20
    (tmp_path / SEALED[1]).unlink()
    with pytest.raises(RecordError, match=r"walk\.parquet lacks walk-tables.* restore both files"):
        records.load(tmp_path, condition())


def fault_of(root) -> str:
    """What reading the record says; "" where its lines are there, or its name is not."""
    try:
        record = records.load(root, condition())
        assert record is None or len(list(record.lines)) == 6
    except RecordError as error:
        return str(error)
    return ""


def test_odd_texts_come_back(tmp_path):
    odd = "né 漢字 \U0001f642 \ud83d \x00 \n"
    good = {"cluster": "c", "hits": [], "scores": {}}
    with open_record(tmp_path, condition(), PRINT) as record:
        record.append({"id": "a", **good, "text": odd, "prediction": None})
        record.append({"id": "b", **good, "kind": None, "cost": {"reads": 3}})
    before = list(records.load(tmp_path, condition()).lines)
    sealed.seal(tmp_path)
    assert list(records.load(tmp_path, condition()).lines) == before


# ------------------------------------------------------------------ scores and the frame


@pytest.fixture
def cells(tmp_path, monkeypatch):
    monkeypatch.undo()  # methods of the package
    paper = mini.paper(tmp_path, "")
    kinds = ("bridge", "comparison")
    values = np.round(np.random.default_rng(0).random(100), 6)
    mini.fill(tmp_path / "r", paper, lambda *given: values, kinds=kinds, more=_more)
    shutil.copytree(tmp_path / "r", tmp_path / "s")
    sealed.seal(tmp_path / "s")
    return tmp_path, paper.exhibits["table1"].cells("public")


def _more(i):
    cost = {"retriever_calls": i % 3} if i % 5 else {}
    return {"cost": cost, "hops": 2, **({"error": "no way"} if i == 7 else {})}


def test_scores_of_sealed_records_are_those_of_their_lines(cells):
    root, cells = cells
    plain, stored = Results(root / "r"), Results(root / "s")
    few = frozenset(f"q{i}-musique" for i in range(30))
    keeps = [
        everything,
        lambda line: line["kind"] == "bridge",
        Only(lambda kind: kind == "bridge"),
        Only(None, few),
        Only(lambda kind: kind == "comparison", few),
        Only(None, frozenset()),
    ]
    compared = 0
    for cell in cells:
        assert list(stored.lines(cell)) == list(plain.lines(cell))
        assert sealed.failed(stored.lines(cell)) == sealed.failed(plain.lines(cell)) == 1
        for metric in metrics.METRICS:
            assert stored.values(cell, metric) == plain.values(cell, metric)
            for keep in keeps:
                ours, theirs = (r.scores(cell, metric, keep) for r in (stored, plain))
                assert (ours is None) == (theirs is None)
                if ours is not None:
                    compared += 1
                    assert (ours.ids, ours.clusters) == (theirs.ids, theirs.clusters)
                    assert ours.values.tolist() == theirs.values.tolist()
    assert compared > 30


def test_a_metric_that_is_newer_than_the_file_is_computed_from_lines(cells, monkeypatch):
    root, cells = cells
    newer = metrics.Metric(
        "newer", "N", lambda line: float(len(line["id"])), "length of the id", "words", "line", None
    )
    monkeypatch.setitem(metrics.METRICS, "newer", newer)
    made = Results(root / "s").scores(cells[0], "newer")
    assert made.values.tolist() == [float(len(name)) for name in made.ids]
    sealed.rewrite(root / "s", root / "s" / "musique" / "qdc.parquet", {}, {})
    file = sealed.opened(root / "s" / "musique" / "qdc.parquet")
    assert set(file.metric("newer")) == {10.0, 11.0}  # q7-musique, q10-musique
    monkeypatch.setattr(sealed.SealedFile, "decoded", None)  # nor is any for one without a value
    assert np.isnan(file.metric("pair_auc")).all()


def test_the_frame_has_a_row_per_condition_and_question(cells):
    root, cells = cells
    every = [*metrics.METRICS]
    plain, stored = frame.results(root / "r", every), frame.results(root / "s", every)
    order = ["condition", "id"]
    one, other = (f.sort_values(order).reset_index(drop=True) for f in (plain, stored))
    assert sorted(one.columns) == sorted(other.columns)
    for name in one.columns:
        assert one[name].astype(object).fillna("-").tolist() == (
            other[name].astype(object).fillna("-").tolist()
        )
    cell = cells[0]
    of_cell = stored[stored.condition == cell.condition.hash]
    assert of_cell.dataset.unique().tolist() == [cell.condition.dataset]
    assert of_cell.recall.tolist() == Results(root / "s").scores(cell, "recall").values.tolist()
    assert set(stored.kind) == {"bridge", "comparison"}
    assert set(stored.hops) == {2}
    assert stored.em.isna().all()
    others = set(metrics.METRICS) - set(frame.STORED)
    assert not others & set(frame.results(root / "s"))
    assert len(stored) == 100 * len(records.paths(root / "s"))


def test_the_frame_reads_json_lines_in_place_of_what_was_sealed(cells):
    root, cells = cells
    made = cells[0].condition
    record = records.load(root / "s", made)
    with open_record(root / "s", made, record.header["fingerprint"]) as writer:
        writer.append({**record.lines[0], "id": "one more"})
    rows = frame.results(root / "s").query("condition == @made.hash")
    assert len(rows) == 101
    assert "one more" in set(rows.id)


def test_a_folder_without_records_has_an_empty_frame_with_all_columns(cells, tmp_path):
    root, _ = cells
    (tmp_path / "none").mkdir()
    empty = frame.results(tmp_path / "none")
    assert empty.empty
    assert list(empty) == list(frame.results(root / "s"))


def test_a_folder_may_be_a_text_and_must_be_there(cells):
    root, _ = cells
    assert len(frame.results(str(root / "s"))) == len(frame.results(root / "s"))
    for missing in (root / "elsewhere", str(root / "elsewhere")):
        with pytest.raises(RecordError, match=r"there is no folder .*elsewhere; name one"):
            frame.results(missing)


def test_numbers_of_a_condition_are_numbers(cells):
    root, cells = cells
    scores = frame.results(root / "s")
    above = sum(cell.condition.settings["k"] > 3 for cell in cells)
    assert 0 < above < len(cells)
    assert len(scores[scores.k > 3]) == len(scores.query("k >= 4")) == 100 * above
    assert scores.k.mean() == np.mean([cell.condition.settings["k"] for cell in cells])
    assert scores.seed.max() == 0


def test_a_condition_without_a_number_has_none_in_the_frame(cells):
    root, cells = cells
    plain = records.find(root / "r", cells[0].condition)
    header, _, lines = plain.read_text().partition("\n")
    made = json.loads(header)
    del made["identity"]["settings"]["k"]
    plain.write_text(f"{json.dumps(made)}\n{lines}")
    scores = frame.results(root / "r")
    assert scores.k.isna().sum() == 100
    assert not scores[scores.condition == cells[0].condition.hash].k.notna().any()
    assert len(scores[scores.k > 0]) == len(scores) - 100


@pytest.mark.parametrize("form", ["r", "s"])  # JSON lines, and sealed
def test_the_frame_tells_which_questions_failed(cells, form):
    root, cells = cells
    scores = frame.results(root / form)
    assert scores.failed.dtype == bool
    for name, of_cell in scores.groupby("condition", observed=True):
        [made] = [cell.condition for cell in cells if cell.condition.hash == name]
        lines = records.load(root / form, made).lines
        failed = {line["id"] for line in lines if "error" in line}
        assert set(of_cell[of_cell.failed].id) == failed
    assert 0 < scores.failed.sum() < len(scores)


def test_the_frame_of_records_without_failures_says_so(tmp_path):
    with open_record(tmp_path, condition(), PRINT) as writer:
        writer.append({"id": "a", "cluster": "a", "hits": [], "kind": "x", "hops": 1, "scores": {}})
    assert frame.results(tmp_path).failed.tolist() == [False]


# ------------------------------------------------------------------ all committed records


@pytest.mark.slow
def test_all_committed_lines_are_as_their_types_say_and_their_metrics_as_computed_now():
    checked = 0
    for path in records.paths(COMMITTED):
        lines = records.at(COMMITTED, path).lines
        for line in lines:
            assert not form._fault(line), (path, line["id"])
        if isinstance(lines, sealed.Lines):
            tenth = lines[::10]
            for name, values in sealed.computed(list(tenth)).items():
                stored = tenth.metric(name)
                assert np.array_equal(stored, np.array(values, float), equal_nan=True), (path, name)
                checked += 1
    assert checked > 10_000 or not (COMMITTED / sealed.CONDITIONS).is_file()


def test_results_of_the_checkout_are_a_frame():
    import rag_repro

    assert rag_repro.results is frame.results
    assert json.loads(json.dumps(frame.KEYS))[0] == "dataset"
