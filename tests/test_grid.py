"""`rag-repro grid`: what it shows, what it hands to Snakemake, and what it refuses."""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from types import SimpleNamespace

import pytest
import yaml

from rag_repro import cli, workflow
from rag_repro.book_folders import BookFolders, here
from rag_repro.lm import hub
from rag_repro.study import campaign, papers, runner
from rag_repro.study.services import Workshop
from tests import gates

PROFILES = sorted((here().root / "workflow" / "profiles").glob("*/config.yaml"))


@pytest.fixture(scope="module", autouse=True)
def _paper(tmp_path_factory):
    """`gates.found` beside the other exhibits; it searches at an address of nobody."""
    folder = gates.paper(tmp_path_factory.mktemp("papers"), "http://x:1")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(papers.ENVIRONMENT, str(folder))
        monkeypatch.setattr(papers, "load", lru_cache(papers.load.__wrapped__))
        yield


@pytest.fixture
def words(tmp_path, monkeypatch):
    """The command up to what a test adds."""
    monkeypatch.delenv(workflow.SNAKEMAKE, raising=False)
    return ["grid", "gates.found", "--tier", "testbed", "--results", str(tmp_path / "results")]


def told(capsys, *words):
    """What the command prints, line by line; it must end well."""
    assert cli.main(list(words)) == 0
    return capsys.readouterr().out.splitlines()


# ------------------------------------------------------------------------------- what it shows


def test_a_dry_run_shows_what_is_missing_and_there_and_what_it_costs(
    words, tmp_path, capsys, monkeypatch
):
    run = ["run", *words[1:], "--method", "bm25"]
    assert cli.main([*run, "--shard", "1/2"]) == 0
    cost = SimpleNamespace(seconds=100.0, trial=4, cost_a_question={"retrievals": 1.0})
    asked = []
    monkeypatch.setattr(runner, "estimate", lambda c, w, missing: asked.append(missing) or cost)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    web, bm25, total = told(capsys, *words, "--shards", "2", "--dry-run")
    assert web.startswith("world-B@1000/single_step-web-k2-")
    assert web.endswith(
        "6 questions, about 1.7 min (4 tried; a question: 1.0 retrievals), in 2 shards"
    )
    assert "3 questions, about 1.7 min" in bm25
    assert "shards" not in bm25  # the other one is there
    assert asked == [6, 3]
    assert total.startswith(
        "2 conditions, 0 complete; 9 of 12 answers to make; jobs: 3 answers, 2 join; "
        "about 3.3 min of work on this machine"
    )
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_grid_that_is_complete_needs_no_snakemake(words, capsys, monkeypatch):
    assert cli.main(["run", *words[1:], "--method", "bm25", "--shard", "1/1"]) == 0
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(workflow, "OWN", "nowhere")
    line, total = told(capsys, *words, "--method", "bm25")
    assert line.endswith(": complete")
    assert "1 complete; 0 of 6 answers to make; jobs: none" in total


def test_without_a_trial_nothing_is_asked_and_no_time_told(words, capsys, monkeypatch):
    monkeypatch.setattr(runner, "estimate", None)
    monkeypatch.setattr(Workshop, "services", None)
    *_, total = told(capsys, *words, "--dry-run", "--no-trial")
    assert total.endswith("12 of 12 answers to make; jobs: 2 answers")


def test_what_cannot_be_tried_here_says_why_and_the_sum_says_at_least(words, capsys, monkeypatch):
    real = runner.estimate

    def estimate(condition, workshop, *, missing):
        if condition.retriever != "bm25":
            raise ValueError("nobody serves there")
        return real(condition, workshop, missing=missing)

    monkeypatch.setattr(runner, "estimate", estimate)
    web, bm25, total = told(capsys, *words, "--dry-run")
    assert web.endswith("6 questions, not tried: nobody serves there")
    assert "6 questions, about" in bm25
    assert "; at least " in total


def test_conditions_whose_data_is_not_at_hand_are_left_out_and_counted(capsys, monkeypatch):
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    words = ("grid", "drrag.table5", "--method", "sm", "--dry-run", "--no-trial")
    *lines, total = told(capsys, *words)
    assert any("conditions left out: musique: no folder of real data is named" in x for x in lines)
    assert any(line.startswith("world-B/") for line in lines)
    assert int(total.split()[0]) == sum(line.startswith("world-") for line in lines)
    assert cli.main([*words, "--dataset", "musique"]) == 2
    assert "set RAG_REPRO_DATA" in capsys.readouterr().err


def test_what_is_not_trained_is_a_job_with_its_cost_and_holds_up_the_trial(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr(hub, "artifacts", dict)
    cell = campaign.select(["r2ag.table1"], tier="testbed", methods=["r2ag"], seeds=(1,))[0]
    settings = workflow.GridSettings(("r2ag.table1",), tmp_path)
    work = workflow.Work(cell, 5, 5, {(1, 1): 5}, joins=False, lacks=("r2ag-mixed-1",))
    command = "rag-repro train r2ag-mixed --seed 1"
    plan = workflow.GridPlan(
        (work,), {"r2ag-mixed-1": command}, {"train/x": None, "answers/y": None}
    )
    seeds = []

    def prepare(recipe, seed, *folders):
        seeds.append((recipe.name, seed))
        return SimpleNamespace(seconds=7200.0)

    monkeypatch.setattr("rag_repro.training.run.prepare", prepare)
    train, answers, total = workflow.describe_plan(plan, None, settings).splitlines()
    assert seeds == [("r2ag-mixed", 1)]
    assert train == "r2ag-mixed-1: to train, about 2.0 h"
    assert answers.endswith("5 questions, not tried: it waits for r2ag-mixed-1")
    assert "jobs: 1 train, 1 answers; at least 2.0 h of work" in total


def test_a_grid_without_names_is_of_every_exhibit(tmp_path, capsys):
    words = ["grid", "--dry-run", "--no-trial", "--tier", "testbed", "--n", "1", "--method", "qdc"]
    assert cli.main([*words, "--dataset", "world-B", "--results", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    one = ["grid", "drrag.table5", *words[1:], "--dataset", "world-B", "--results", str(tmp_path)]
    assert cli.main(one) == 0
    [*conditions, total] = capsys.readouterr().out.splitlines()
    assert set(conditions) < set(listed.splitlines())
    assert total not in listed


def test_a_run_without_names_or_a_condition_is_refused(capsys):
    assert cli.main(["run", "--tier", "testbed"]) == 2
    assert "name an exhibit, as drrag.table5" in capsys.readouterr().err


# ---------------------------------------------------------------------------- what it hands on

FAKE = """#!{python}
import json, os, sys
words = sys.argv[1:]
folder = words[words.index("--directory") + 1]
found = {{"words": words, "folder": folder, "there": sorted(os.listdir(folder))}}
found["plan"] = json.load(open(os.path.join(folder, "plan.json")))
json.dump(found, open("{heard}", "w"))
sys.exit({status})
"""


@pytest.fixture
def snakemake(tmp_path, monkeypatch):
    """A program in Snakemake's place: what it is told can be read; it ends with this status."""

    def made(status=0):
        program = tmp_path / "snakemake"
        heard = tmp_path / "heard.json"
        program.write_text(FAKE.format(python=sys.executable, heard=heard, status=status))
        program.chmod(0o755)
        monkeypatch.setenv(workflow.SNAKEMAKE, str(program))
        return lambda: json.loads(heard.read_text())

    return made


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A checkout of the test's own, with this one's workflow."""
    root = tmp_path / "checkout"
    (root / "workflow").mkdir(parents=True)
    for name in ("Snakefile", "profiles"):
        (root / "workflow" / name).symlink_to(here().root / "workflow" / name)
    found = BookFolders(root)
    monkeypatch.setattr("rag_repro.book_folders.here", lambda: found)
    return found


def test_snakemake_is_told_the_plan_its_profile_and_how_many(words, places, snakemake, capsys):
    heard = snakemake()
    assert cli.main([*words, "--shards", "2", "--workers", "3"]) == 0
    given = heard()
    folder = given["folder"]
    assert given["words"] == [
        *("--snakefile", f"{folder}/Snakefile", "--directory", folder),
        *("--profile", str(places.root / "workflow" / "profiles" / "machine"), "--jobs", "3"),
    ]
    assert given["there"] == ["Snakefile", "plan.json"]
    assert len(given["plan"]["jobs"]) == 6
    assert "12 of 12 answers" in capsys.readouterr().out
    # All went well: what Snakemake kept is of no use any more.
    assert list((places.root / "results" / "local" / "grid").iterdir()) == []


def test_a_failure_keeps_the_logs_and_says_where(words, places, snakemake, capsys):
    heard = snakemake(status=1)
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert "not all jobs ended well (Snakemake's status is 1)" in error
    assert f"{heard()['folder']}/log" in error
    assert [str(path) for path in (places.root / "results/local/grid").iterdir()] == [
        heard()["folder"]
    ]


def test_a_dry_run_writes_the_plan_where_it_is_told_under_a_name_of_its_own(
    words, places, tmp_path
):
    made = []
    for _ in range(2):
        folder = tmp_path / "elsewhere"
        assert cli.main([*words, "--dry-run", "--no-trial", "--folder", str(folder)]) == 0
        assert sorted(path.name for path in folder.iterdir()) == ["Snakefile", "plan.json"]
        made.append(json.loads((folder / "plan.json").read_text()))
    assert made[0]["program"] == [sys.executable, "-m", "rag_repro.cli"]
    assert all(job["command"][0] == "run" for job in made[0]["jobs"].values())
    # Else marks of the one would pass for jobs of the other.
    assert made[0].pop("start") != made[1].pop("start")
    assert made[0] == made[1]


def test_chapters_come_last(words, places, tmp_path):
    (places.root / "notebooks").symlink_to(here().root / "notebooks")
    command = [*words[:-2], "--record"]
    command += ["--chapter", "11_drrag_recall", "--dry-run", "--no-trial"]
    assert cli.main([*command, "--folder", str(tmp_path / "plan")]) == 0
    jobs = json.loads((tmp_path / "plan" / "plan.json").read_text())["jobs"]
    assert list(jobs)[-1] == "chapter/11_drrag_recall"
    assert jobs["chapter/11_drrag_recall"]["command"] == ["chapter", "11_drrag_recall", "--update"]
    assert jobs["chapter/11_drrag_recall"]["after"] == list(jobs)[:-1]


# ------------------------------------------------------------------------------ what it refuses


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--chapter", "11_drrag_recall"], "add --record, or leave --chapter out"),
        (["--no-trial"], "--no-trial and --folder go with: rag-repro grid ... --dry-run"),
        (["--seeds", "1"], "gates.found: no row is trained with seeds"),
        (["--dataset", "world-C"], "no condition has the dataset 'world-C'"),
        (["--profile", "slrm"], "there is no profile 'slrm', did you mean 'slurm'?"),
    ],
)
def test_what_a_user_can_mend_is_one_line(words, snakemake, capsys, more, message):
    snakemake()
    assert cli.main([*words, *more]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["grid", "drrag.tabel5"], "no exhibit 'drrag.tabel5', did you mean 'drrag.table5'?"),
        (["grid", "drrag.fig3"], "drrag.fig3 is timed: rag-repro time drrag.fig3"),
        (["grid", "drrag.table5", "--tier", "paper"], "none at this tier"),
        (["grid", "drrag.table5", "--chapter", "11_drag"], "no chapter '11_drag'"),
        (["run", "drrag.table5", "--join", "--estimate"], "leave --shard and --estimate out"),
        (["run", "drrag.table5", "--join", "--shard", "1/2"], "leave --shard and --estimate out"),
        (["run", "drrag.table5", "--condition", "x"], "no condition has the hash 'x'"),
    ],
)
def test_unknown_names_and_senseless_wishes_are_one_line(capsys, given, message):
    assert cli.main(given) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--shards", "0"], "'0' is not a positive whole number"),
        (["--shards", "two"], "'two' is not a positive whole number"),
        (["--workers", "0"], "'0' is not a positive whole number"),
        (["--seeds", "-1"], "SEED"),
        (["--seeds", "x"], "'x' is no seed"),
        (["--tier", "tesbed"], "did you mean 'testbed'?"),
    ],
)
def test_wrong_options_are_refused(capsys, more, message):
    with pytest.raises(SystemExit) as end:
        cli.main(["grid", "drrag.table5", *more])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_a_damaged_record_is_named(words, tmp_path, capsys):
    assert cli.main(["run", *words[1:], "--method", "bm25"]) == 0
    [path] = (tmp_path / "results").rglob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"cluster"', b'"cluster', 1))
    capsys.readouterr()
    assert cli.main([*words, "--dry-run", "--no-trial"]) == 2
    error = capsys.readouterr().err
    assert f"{path}, line 2: not JSON" in error
    assert "restore the file from version control, or delete it" in error


def test_without_snakemake_it_says_how_to_install_it(words, places, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert cli.main(words) == 2
    assert "Snakemake is not installed: `make grid` puts it into" in capsys.readouterr().err
    own = places.root / workflow.OWN
    own.parent.mkdir(parents=True)
    own.touch()
    assert workflow.snakemake(places) == own


def test_a_program_that_is_none_is_refused(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(workflow.SNAKEMAKE, str(tmp_path / "nothing"))
    assert cli.main(words) == 2
    assert "nothing, which is no program" in capsys.readouterr().err


def test_a_profile_may_be_any_folder_with_a_config(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(workflow.GridError, match="there is no profile"):
        workflow.profile(f"{tmp_path}/mine", here())
    (tmp_path / "mine" / "config.yaml").touch()
    assert workflow.profile(f"{tmp_path}/mine", here()) == tmp_path / "mine"


# ------------------------------------------------------------------------------------ profiles


def test_there_is_a_profile_for_each_place():
    assert [path.parent.name for path in PROFILES] == ["kubernetes", "machine", "slurm"]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.parent.name)
def test_a_profile_tries_again_goes_on_and_caps_the_notebooks(path):
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert given["retries"] >= 1
    assert given["keep-going"] is True
    assert given["resources"]["notebooks"] >= 1
    assert given["jobs"] >= 1
    rules = {"train", "answers", "join", "chapter"}
    assert set(given.get("set-resources", {})) <= rules
    if path.parent.name != "machine":
        assert given["executor"] == path.parent.name
        assert given["set-resources"]["answers"]["gpu"] == 1
        assert given["set-resources"]["train"]["gpu"] == 1
        assert "gpu" not in given["set-resources"].get("join", {})
