"""A grid for real: two workers, a job that is killed, and a rerun of what is missing.

Where Snakemake is: RAG_REPRO_SNAKEMAKE names it, or `make grid` made its environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_repro import cli, workflow
from rag_repro.book_folders import here
from rag_repro.study import papers, records
from tests import gates

pytestmark = pytest.mark.slow

N = 8  # questions of each condition; of two shards the first has 0, 2, 4, 6
HELD = 6  # behind the first three, which are in flight together
PATIENCE = 600  # seconds after which a test gives up on a machine that is busy


@pytest.fixture(scope="module")
def snakemake() -> Path:
    try:
        return workflow.snakemake(here())
    except workflow.GridError as error:
        pytest.skip(str(error))


@pytest.fixture
def gate(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = gates.Gate(HELD).started()
    yield server
    server.let()
    server.stop()


@pytest.fixture
def grid(tmp_path, gate, snakemake, monkeypatch):
    """The grid's command, to be started with further options."""
    monkeypatch.setenv(papers.ENVIRONMENT, str(gates.paper(tmp_path / "papers", gate.url, N)))
    monkeypatch.setattr(papers, "load", papers.load.__wrapped__)
    monkeypatch.setenv(workflow.SNAKEMAKE, str(snakemake))
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "config.yaml").write_text("jobs: 2\nretries: 0\nkeep-going: true\n")
    words = ["grid", "gates.found", "--results", str(tmp_path / "results"), "--shards", "2"]
    words += ["--batch-size", "1", "--profile", f"{profile}/"]
    return Started(words, tmp_path)


class Started:
    """One command at a time, in a session of its own, whose output is kept."""

    def __init__(self, words, folder):
        self.words, self.folder = words, folder

    def start(self, *more):
        log = (self.folder / "out.txt").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rag_repro.cli", *self.words, *more],
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        return self

    def ended(self) -> tuple[int, str]:
        """-> exit status and all that was printed."""
        try:
            status = self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
        return status, (self.folder / "out.txt").read_text()


def ran(printed: str) -> list[str]:
    """The jobs that Snakemake started, by their rows, as "answers/bm25.shard-1-of-2"."""
    begins = r"^(?:local)?rule \w+:\n(?: +input: .*\n)? +output: done/\w+/(\S+)"
    names = re.findall(begins, printed, flags=re.M)
    return sorted(re.sub(r"[^/]+/single_step-([a-z]+\d*)[^/]*?-k2-\w+", r"\1", n) for n in names)


def until(true, process):
    """Wait for it; fails where the command ends before, or nothing comes of it."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert process.poll() is None, "the command ended before that"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def of_shard(part: Path) -> int:
    """The process that writes this part, as "...-HASH.shard-1-of-2.jsonl"."""
    condition, i, n = re.search(r"-(\w+)\.shard-(\d+)-of-(\d+)\.", part.name).groups()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if (
            words[1:4] == ["-m", "rag_repro.cli", "run"]
            and str(part.parents[1]) in words
            and {condition, f"{i}/{n}"} <= set(words)
        ):
            return int(entry.parent.name)
    raise AssertionError("no such process")


def same_as_without(tmp_path: Path) -> bool:
    """Whether the records are, byte for byte, those of a run without the workflow."""
    words = ["run", "gates.found", "--results", str(tmp_path / "alone")]
    assert cli.main(words) == 0
    found = [
        {path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*.jsonl"))}
        for root in (tmp_path / "results", tmp_path / "alone")
    ]
    assert len(found[1]) == 2
    return found[0] == found[1]


SHARDS = [f"answers/{row}.shard-{i}-of-2" for row in ("bm25", "web") for i in (1, 2)]


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_a_killed_job_is_the_only_one_that_runs_again(grid, gate, tmp_path):
    results = tmp_path / "results"
    first = grid.start("--method", "web", "--method", "bm25")
    # The shard with questions 0, 2, 4, 6 has recorded three and waits behind the gate.
    until(gate.waiting.is_set, first.process)
    [part] = results.rglob("*web*.shard-1-of-2.jsonl")
    assert len(records.form.read(part)) == 3
    os.kill(of_shard(part), signal.SIGKILL)
    status, printed = first.ended()
    assert status == 2
    assert "not all jobs ended well" in printed
    logs = Path(re.search(r"logs are in (\S+)/log;", printed)[1])
    assert [path.name for path in logs.glob("log/answers/*/*web*1-of-2.log")]
    shutil.rmtree(logs)  # they lie in this checkout
    assert ran(printed) == sorted([*SHARDS, "join/bm25"])

    gate.let()
    status, printed = grid.start().ended()
    assert status == 0
    assert ran(printed) == ["answers/web.shard-1-of-2", "join/web"]
    assert "1 of 16 answers to make" in printed
    assert same_as_without(tmp_path)
    # What was recorded before the kill was not asked again. (The count of a run that was killed,
    # which has no end, may lag behind.)
    for path in results.rglob("*.manifest.json"):
        told = json.loads(path.read_text())
        asked = sum(entry["questions"] for entry in told if "end" in entry)
        assert asked == N - (3 if "web" in path.name else 0)
    status, printed = grid.start().ended()
    assert (status, ran(printed)) == (0, [])
    assert "2 complete; 0 of 16 answers to make" in printed


def test_a_profile_with_retries_mends_it_by_itself(grid, gate, tmp_path):
    results = tmp_path / "results"
    config = tmp_path / "profile" / "config.yaml"
    config.write_text(config.read_text().replace("retries: 0", "retries: 1"))
    started = grid.start("--method", "web")
    until(gate.waiting.is_set, started.process)
    [part] = results.rglob("*web*.shard-1-of-2.jsonl")
    os.kill(of_shard(part), signal.SIGKILL)
    gate.let()
    status, printed = started.ended()
    assert status == 0, printed
    assert ran(printed).count("answers/web.shard-1-of-2") == 2
    assert ran(printed).count("answers/web.shard-2-of-2") == 1
    [record] = [records.form.read(path) for path in results.rglob("*.jsonl")]
    assert len(record) == N


def test_by_hand_with_another_program_and_never_more_notebooks_than_allowed(
    grid, snakemake, tmp_path
):
    """A plan that was written, through Snakemake alone; chapters take turns."""
    folder, log = tmp_path / "plan", tmp_path / "seen.txt"
    program = tmp_path / "program"
    program.write_text(
        f'#!/bin/sh\necho "begins $1 $2" >> {log}\nsleep 0.3\necho "ends $1 $2" >> {log}\n'
    )
    program.chmod(0o755)
    words = [word for word in grid.words if word not in ("--results", str(tmp_path / "results"))]
    chapters = ["11_drrag_recall", "12_drrag_selection", "15_drrag_redundancy"]
    asked = ["--record", *(word for name in chapters for word in ("--chapter", name))]
    assert cli.main([*words, *asked, "--dry-run", "--no-trial", "--folder", str(folder)]) == 0
    profile = here().root / "workflow" / "profiles" / "machine"
    done = subprocess.run(
        [
            *(snakemake, "--snakefile", folder / "Snakefile", "--directory", folder),
            *("--profile", profile, "--jobs", "4", "--config", f"program={program}"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = log.read_text().splitlines()
    assert len(seen) == 2 * (6 + 3)
    last = [line.split()[1:] for line in seen[-6:]]
    assert {name for _, name in last} == set(chapters)  # behind all records, two lines each
    assert [line.split()[0] for line in seen[-6:]] == ["begins", "ends"] * 3


def test_without_a_plan_the_snakefile_says_how_to_make_one(snakemake, tmp_path):
    snakefile = here().root / "workflow" / "Snakefile"
    done = subprocess.run(
        [snakemake, "--snakefile", snakefile, "--directory", tmp_path, "--cores", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert f"no plan.json in {tmp_path}" in done.stderr
    assert "--dry-run --folder DIR" in done.stderr


@pytest.mark.parametrize("name", ["slurm", "kubernetes"])
def test_a_profile_is_one_that_snakemake_understands(grid, snakemake, tmp_path, name):
    plugin = subprocess.run(
        [snakemake.parent / "python", "-c", f"import snakemake_executor_plugin_{name}"],
        capture_output=True, check=False,
    )  # fmt: skip
    if plugin.returncode:
        pytest.skip(f"snakemake-executor-plugin-{name} is not installed beside Snakemake")
    folder = tmp_path / "plan"
    assert cli.main([*grid.words, "--dry-run", "--no-trial", "--folder", str(folder)]) == 0
    done = subprocess.run(
        [
            *(snakemake, "--snakefile", folder / "Snakefile", "--directory", folder, "--dry-run"),
            *("--profile", here().root / "workflow" / "profiles" / name),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = re.findall(r"^rule answers:(?:\n +.*)+", done.stdout + done.stderr, flags=re.M)
    assert len(answers) == 4
    assert all("gpu=1" in told for told in answers)
