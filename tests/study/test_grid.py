"""Which jobs a grid has: those that the records lack, in the order that they need."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rag_repro import cli, workflow
from rag_repro.lm import hub
from rag_repro.study import campaign, names, records, reservoirs, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.papers import Cell, StudyError
from rag_repro.study.records import RecordError
from rag_repro.study.services import Workshop
from tests.study.scripted import Shop, condition, use_methods
from tests.study.test_parts import killed


def cell(method="walk", n=None, **changes):
    keys = {"dataset": "little", "method": method}
    return Cell("mini.table1", "public", "primary", keys, condition(method, **changes), n)


@pytest.fixture
def planned(monkeypatch):
    """Plans for the scripted methods, which then stand in place of the real ones."""
    use_methods(monkeypatch)

    def plan(root, *cells, shards=1, n=None, chapters=(), **settings):
        given = workflow.GridSettings(("mini.table1", "mini.table2"), root, **settings)
        return workflow.plan(
            cells or [cell()], Shop(), given, n=n, shards=shards, chapters=chapters
        )

    return plan


def kinds(plan):
    """The jobs' names without the condition's."""
    return [name.replace(condition().path, "it") for name in plan.jobs]


# ------------------------------------------------------------------------------ what is missing


def test_a_condition_in_one_shard_is_one_job_that_asks_and_joins(planned, tmp_path):
    plan = planned(tmp_path)
    assert kinds(plan) == ["answers/it"]
    [work] = plan.works
    assert (work.total, work.missing, work.shards, work.joins) == (6, 6, {(1, 1): 6}, False)
    assert not work.is_complete


def test_shards_are_jobs_of_their_own_and_a_join_waits_for_all_of_them(planned, tmp_path):
    plan = planned(tmp_path, shards=3)
    asks = [f"answers/it.shard-{i}-of-3" for i in (1, 2, 3)]
    assert kinds(plan) == [*asks, "join/it"]
    *_, join = plan.jobs.values()
    assert list(join.after) == list(plan.jobs)[:3]


def test_no_more_shards_than_questions(planned, tmp_path):
    assert len(planned(tmp_path, shards=50, n=2).jobs) == 3
    assert len(planned(tmp_path, cell(n=1), shards=50).jobs) == 1


def test_what_is_recorded_is_in_no_job(planned, tmp_path):
    runner.run(condition(), Shop(), tmp_path, shard=(2, 3))
    plan = planned(tmp_path, shards=3)
    assert kinds(plan) == ["answers/it.shard-1-of-3", "answers/it.shard-3-of-3", "join/it"]
    assert plan.works[0].missing == 4
    for i in (1, 3):
        runner.run(condition(), Shop(), tmp_path, shard=(i, 3))
    plan = planned(tmp_path, shards=3)
    assert kinds(plan) == kinds(planned(tmp_path)) == ["join/it"]
    assert plan.works[0].missing == 0
    campaign.join([cell()], Shop(), tmp_path)
    plan = planned(tmp_path, shards=3)
    assert (plan.jobs, plan.works[0].is_complete) == ({}, True)


def test_a_larger_n_asks_only_what_it_adds(planned, tmp_path):
    runner.run(condition(), Shop(), tmp_path, n=4)
    assert planned(tmp_path, n=4).jobs == {}
    assert kinds(planned(tmp_path, shards=2)) == [
        "answers/it.shard-1-of-2",  # q4
        "answers/it.shard-2-of-2",  # q5
        "join/it",
    ]
    assert planned(tmp_path, shards=2).works[0].shards == {(1, 2): 1, (2, 2): 1}


def test_a_killed_shard_is_the_only_one_asked_again_and_only_what_it_lacks(planned, tmp_path):
    killed(tmp_path, (1, 2), n=1)
    runner.run(condition(), Shop(), tmp_path, shard=(2, 2))
    plan = planned(tmp_path, shards=2)
    assert kinds(plan) == ["answers/it.shard-1-of-2", "join/it"]
    assert plan.works[0].shards == {(1, 2): 2}


def test_a_killed_part_of_other_shards_is_joined_and_not_asked_again(planned, tmp_path):
    killed(tmp_path, (1, 2), n=1)
    plan = planned(tmp_path, shards=3)
    asks = [f"answers/it.shard-{i}-of-3" for i in (1, 2, 3)]
    assert (kinds(plan), plan.works[0].missing) == ([*asks, "join/it"], 5)


def test_a_shard_killed_before_it_was_sealed_is_never_complete_and_joined(planned, tmp_path):
    killed(tmp_path, (1, 2), n=6)
    runner.run(condition(), Shop(), tmp_path, shard=(2, 2))
    for shards in (1, 2, 3):
        plan = planned(tmp_path, shards=shards)
        assert (kinds(plan), plan.works[0].is_complete) == (["join/it"], False)
    assert campaign.join([cell()], Shop(), tmp_path) == 6
    assert planned(tmp_path, shards=2).works[0].is_complete


def test_a_part_that_is_being_written_is_not_complete(planned, tmp_path):
    runner.run(condition(), Shop(), tmp_path)
    with records.open_record(tmp_path, condition(), {"corpus": "c1"}, "1-of-2"):
        assert not planned(tmp_path).works[0].is_complete


def test_questions_that_draw_on_each_other_run_in_one_job(planned, tmp_path, monkeypatch):
    monkeypatch.setattr(reservoirs, "is_ordered", lambda condition: True)
    assert kinds(planned(tmp_path, shards=4)) == ["answers/it"]


def test_an_online_memory_is_what_makes_questions_draw_on_each_other():
    from tests.study.test_reservoirs import ONLINE
    from tests.study.test_reservoirs import condition as remembering

    assert reservoirs.is_ordered(remembering(**ONLINE))
    assert not reservoirs.is_ordered(remembering())
    assert not reservoirs.is_ordered(Condition("world-B", "single_step", retriever="bm25"))


@pytest.mark.parametrize("where", ["", ".shard-1-of-2"])
def test_a_record_that_cannot_be_used_is_refused_by_name(planned, tmp_path, where):
    runner.run(condition(), Shop(), tmp_path, shard=(1, 2) if where else (1, 1))
    [path] = tmp_path.rglob(f"*{where}.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"cluster"', b'"cluster', 1))
    with pytest.raises(RecordError, match="line 2: not JSON") as caught:
        planned(tmp_path, shards=2)
    assert str(path) in str(caught.value)


# --------------------------------------------------------------------------------- its commands


def words(job):
    return cli.parser().parse_args(job.command)


def test_every_job_is_a_command_that_the_program_understands(planned, tmp_path):
    plan = planned(
        tmp_path, cell(n=4), shards=2, n=3, data=tmp_path / "data", seeds=(0, 2), device="cuda",
        dtype="bfloat16", batch_size=5, in_flight=9, chapters=["11_drrag_recall"],
    )  # fmt: skip
    one, two, join, chapter = (words(job) for job in plan.jobs.values())
    for given in (one, two, join):
        assert given.exhibits == ["mini.table1", "mini.table2"]
        assert given.condition == [condition().hash]
        assert given.seeds == [0, 2]
        assert (given.results, given.data) == (tmp_path, tmp_path / "data")
    assert (one.shard, two.shard, join.shard) == ((1, 2), (2, 2), (1, 1))
    assert (one.join, two.join, join.join) == (False, False, True)
    assert (one.n, one.device, one.dtype) == (3, "cuda", "bfloat16")
    assert (one.batch_size, one.in_flight) == (5, 9)
    assert (chapter.name, set(list(plan.jobs.values())[-1].after)) == (
        "11_drrag_recall",
        set(list(plan.jobs)[:3]),
    )


def test_folders_are_named_in_full_since_jobs_run_elsewhere(planned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = planned(Path("here"), data=Path("there"))
    given = words(plan.jobs[f"answers/{condition().path}"])
    assert (given.results, given.data) == (tmp_path / "here", tmp_path / "there")


def test_a_job_selects_just_its_condition_and_its_questions(tmp_path):
    """Also of a condition that a tier or role was chosen for, and that exhibits ask in part."""
    exhibits = ("drrag.table5", "drrag.kinds")
    chosen = campaign.select(exhibits, tier="testbed", role="secondary", methods=["random"])
    plan = workflow.plan(chosen, Workshop(), workflow.GridSettings(exhibits, tmp_path), n=7)
    assert chosen
    for one in chosen:
        given = words(plan.jobs[f"answers/{one.condition.path}"])
        [again] = campaign.select(given.exhibits, conditions=given.condition)
        assert again.condition == one.condition
        assert campaign.least(given.n, again.n) == 7


def test_the_plan_is_plain_data(planned, tmp_path):
    made = json.loads(planned(tmp_path, shards=2).as_json("monday"))
    assert made["format"] == 1
    assert set(made) == {"format", "start", "program", "folder", "jobs"}
    assert made["start"] == "monday"
    for job in made["jobs"].values():
        assert set(job) == {"command", "after"}
        assert set(job["after"]) <= set(made["jobs"])
        assert shlex.split(shlex.join(job["command"])) == job["command"]


# ------------------------------------------------------------------------------- what is trained


@pytest.fixture
def untrained(monkeypatch):
    monkeypatch.setattr(hub, "artifacts", dict)


@pytest.mark.usefixtures("untrained")
def test_what_is_not_trained_is_trained_first(planned, tmp_path):
    plan = planned(tmp_path, cell(reader="r2ag-mixed-2"), shards=2, device="cuda")
    train, *asks, _ = plan.jobs
    assert train == "train/r2ag-mixed-2"
    given = words(plan.jobs[train])
    assert (given.name, given.seed, given.device) == ("r2ag-mixed", 2, "cuda")
    assert {plan.jobs[name].after for name in asks} == {(train,)}
    assert plan.works[0].lacks == ("r2ag-mixed-2",)
    assert plan.training == {"r2ag-mixed-2": "rag-repro train r2ag-mixed --seed 2"}


@pytest.mark.usefixtures("untrained")
def test_what_a_training_begins_with_is_trained_before_it(planned, tmp_path):
    """A rewriter whose lessons the testbed's reader checks."""
    plan = planned(tmp_path, cell(reader="erm4-rewriter-testbed-checked"))
    job = plan.jobs["train/erm4-rewriter-testbed-checked"]
    assert job.after == ("train/testbed-reader",)
    assert plan.jobs["train/testbed-reader"].after == ()


def test_what_is_there_is_not_trained_again(planned, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "artifacts", lambda: {"testbed-reader": tmp_path})
    plan = planned(tmp_path, cell(reader="erm4-rewriter-testbed-checked"))
    assert plan.jobs["train/erm4-rewriter-testbed-checked"].after == ()
    assert planned(tmp_path, cell(reader="testbed-reader")).training == {}


@pytest.mark.usefixtures("untrained")
def test_a_complete_condition_needs_no_training(planned, tmp_path):
    trained = cell(reader="testbed-reader")
    runner.run(trained.condition, Shop(), tmp_path)
    assert planned(tmp_path, trained).jobs == {}


@pytest.mark.usefixtures("untrained")
def test_classifiers_and_other_readers_that_a_method_needs_count_too():
    needs = {
        "drrag-classifier@256": "scorer",
        "recomp-abstractive": "reader",
        "minilm": "encoder",
        "reservoir": "reservoir",
    }
    assert names.untrained("smollm2-135m", needs) == {
        "drrag-classifier": "rag-repro train drrag-classifier",
        "recomp-abstractive": "rag-repro train recomp-abstractive",
    }
    assert names.untrained(None, {}) == {}


# -------------------------------------------------------------------------- what can be chosen


def test_a_condition_is_chosen_by_its_hash():
    every = campaign.select(["drrag.table5"])
    wanted = every[3].condition.hash
    assert [c.condition.hash for c in campaign.select(["drrag.table5"], conditions=[wanted])] == [
        wanted
    ]
    with pytest.raises(StudyError, match="no condition has the hash 'abc'; it is what a record's"):
        campaign.select(["drrag.table5"], conditions=["abc"])


def test_seeds_stand_in_place_of_those_that_the_exhibit_names():
    def trained(**wanted):
        cells = campaign.select(["r2ag.table1"], tier="testbed", methods=["shuffled"], **wanted)
        return {(c.keys["seed"], c.condition.reader) for c in cells}

    named = {0: "r2ag-mixed-shuffled", 1: "r2ag-mixed-shuffled-1", 2: "r2ag-mixed-shuffled-2"}
    assert trained() == set(named.items())
    assert trained(seeds=(0, 2, 2)) == {(0, named[0]), (2, named[2])}
    assert trained() == set(named.items())  # the exhibit itself is as it was


def test_rows_without_seeds_are_left_as_they_are():
    def others(**wanted):
        cells = campaign.select(["r2ag.table1"], tier="testbed", **wanted)
        return {c.condition.hash for c in cells if "seed" not in c.keys}

    assert others(seeds=(1,)) == others() != set()
    with pytest.raises(StudyError, match=r"drrag\.table5: no row is trained with seeds; leave"):
        campaign.select(["drrag.table5"], seeds=(1,))
