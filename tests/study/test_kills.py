"""A real run with a real reader is killed, again and again, and goes on."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_repro.lm import hub

READER = "smollm2-135m"
PAPER = f"""
title: Short answers, to be interrupted
short: Kills
cite: ""
exhibits:
  answers:
    title: Short answers
    place: none
    own: true
    metrics: [em]
    methods:
      closed: {{label: Closed book, run: no_retrieval, settings: {{prompt: cot}}}}
      bm25: {{label: BM25, run: single_step, retriever: bm25, settings: {{prompt: cot}}}}
    grids:
      - tier: testbed
        datasets: [world-B@1000]
        methods: [closed]
        reader: {READER}
        settings: {{max_new_tokens: [1, 2, 3, 4]}}
      - tier: testbed
        datasets: [world-B@1000]
        methods: [bm25]
        reader: {READER}
        settings: {{k: [1], max_new_tokens: [2]}}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two caches with the same weights and no remembered calls, and a paper of the test's own."""
    weights = hub.resolve(READER).path.parent
    root = tmp_path_factory.mktemp("kills")
    for name in ("disturbed", "undisturbed"):
        (root / name).mkdir()
        (root / name / READER).symlink_to(weights)
    (root / "papers" / "kills").mkdir(parents=True)
    (root / "papers" / "kills" / "paper.yaml").write_text(PAPER)
    (root / "papers" / "kills" / "claims.yaml").write_text("[]\n")
    return root


def environment(home: Path, cache: str) -> dict[str, str]:
    own = {"RAG_REPRO_PAPERS": home / "papers", "RAG_REPRO_CACHE": home / cache}
    quiet = {"TQDM_DISABLE": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **{k: str(v) for k, v in own.items()}, **quiet}


def command(results: Path, n: int, *more: str) -> list[str]:
    limits = ["--n", str(n), "--batch-size", "16"]
    return ["run", "kills.answers", "--results", str(results), *limits, *more]


def undisturbed(home: Path, results: Path, n: int, *more: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "rag_repro.cli", *command(results, n, *more)],
        env=environment(home, "undisturbed"),
        check=True,
        capture_output=True,
    )


class Warm:
    """Starts commands, one at a time; see `warm`."""

    def __init__(self, home: Path):
        self.errors = (home / "errors.txt").open("w+")
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.study.warm", READER],
            env=environment(home, "disturbed"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        assert self._number() > 0  # it is ready

    def _number(self) -> int:
        line = self._server.stdout.readline()
        assert line, self.errors.seek(0) or self.errors.read()
        return int(line)

    def start(self, arguments: list[str]) -> int:
        self._server.stdin.write(json.dumps(arguments) + "\n")
        self._server.stdin.flush()
        return self._number()

    wait = _number

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait()
        self.errors.close()


@pytest.fixture
def warm(home):
    made = Warm(home)
    yield made
    made.close()


def stored(results: Path) -> dict[str, list[bytes]]:
    """Condition -> whole lines of its record, header first."""
    found: dict[str, list[bytes]] = {}
    for path in sorted(results.rglob("*.jsonl")):
        data = path.read_bytes()
        found[path.stem] = data[: data.rfind(b"\n") + 1].splitlines()
    return found


def answers(results: Path) -> dict[str, list[dict]]:
    """Condition -> its header and its lines."""
    return {name: [json.loads(line) for line in lines] for name, lines in stored(results).items()}


def size(results: Path) -> int:
    """Bytes of the records: grow with each answer."""
    total = 0
    for entry in listed(results):
        if entry.name.endswith(".jsonl"):
            try:
                total += entry.stat().st_size
            except FileNotFoundError:  # removed since it was listed
                continue
    return total


def listed(results: Path) -> list[os.DirEntry]:
    """The files of the one data set's records."""
    try:
        return list(os.scandir(results / "world-B@1000"))
    except FileNotFoundError:
        return []


def wait_for(moment: str, results: Path, rng: random.Random, alive) -> None:
    """Return at a random moment of this kind, or when the command has ended."""
    pause = 0.0
    if moment == "starting":
        pause = rng.uniform(0, 1.5)
    elif moment == "asking":
        before, pause = size(results), rng.uniform(0, 0.5)
        while alive() and size(results) <= before:
            time.sleep(0.005)
    elif moment == "writing":
        target = size(results) + rng.randint(1, 6000)
        while alive() and size(results) < target:
            time.sleep(0.0005)
    else:
        part = re.compile(r"\.manifest\.json\.\d+\.part$")
        while alive() and not any(part.search(entry.name) for entry in listed(results)):
            time.sleep(0.0002)
        pause = rng.uniform(0, 0.002)
    time.sleep(pause)


def lives(process: int) -> bool:
    """Whether a process runs: one that has ended and nobody waited for yet does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def check_nothing_is_lost(before: dict[str, list[bytes]], results: Path) -> None:
    now = stored(results)
    for name, lines in before.items():
        missing = set(lines) - set(now[name])
        assert not missing, (name, missing)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_eight_kills_leave_what_an_undisturbed_run_leaves(home, warm, tmp_path):
    rng = random.Random(7)
    moments = ["starting"] + ["asking"] * 2 + ["writing"] * 3 + ["sealing"] * 2
    rng.shuffle(moments)
    results, n, kills, before = tmp_path / "disturbed", 16, 0, {}
    while kills < len(moments):
        process = warm.start(command(results, n))
        wait_for(moments[kills], results, rng, lambda process=process: lives(process))
        if lives(process):
            os.kill(process, signal.SIGKILL)
        status = warm.wait()
        assert status in (0, -signal.SIGKILL)
        kills += status != 0
        n += 8 * (status == 0)  # it was quicker than the kill: a longer run goes on from it
        check_nothing_is_lost(before, results)
        before = stored(results)
    warm.start(command(results, n))
    assert warm.wait() == 0
    check_nothing_is_lost(before, results)

    undisturbed(home, tmp_path / "undisturbed", n)
    assert answers(results) == answers(tmp_path / "undisturbed")
    assert all(len(lines) == n + 1 for lines in stored(results).values())
    # One record and one manifest a condition, and nothing that a kill left behind.
    names = {p.name.split(".", 1)[1] for p in results.rglob("*") if p.is_file()}
    assert names == {"jsonl", "manifest.json"}
    for manifest in results.rglob("*.manifest.json"):
        entries = json.loads(manifest.read_text())
        assert sum(entry["questions"] for entry in entries) <= n
        assert {entry["batch_size"] for entry in entries} == {16}


@pytest.fixture(scope="module")
def expected(home, tmp_path_factory):
    """What the next test's command leaves when nothing kills it."""
    results = tmp_path_factory.mktemp("undisturbed")
    undisturbed(home, results, 24, "--method", "bm25")
    return answers(results)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["starting", "writing", "sealing"])
def test_a_command_that_is_killed_once_goes_on(home, expected, tmp_path, moment):
    rng = random.Random(moment)
    results, more = tmp_path / "disturbed", ("--method", "bm25")
    arguments = [sys.executable, "-m", "rag_repro.cli", *command(results, 24, *more)]
    given = {"env": environment(home, "disturbed"), "stderr": subprocess.DEVNULL}
    with subprocess.Popen(arguments, **given) as process:
        wait_for(moment, results, rng, lambda: process.poll() is None)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    before = stored(results)
    assert bool(before) == (moment != "starting")
    subprocess.run(arguments, check=True, **given)
    check_nothing_is_lost(before, results)
    assert answers(results) == expected
