"""Tests that are fixed before their records: what confirms a verdict, and what drops its state."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from rag_repro import book_folders
from rag_repro.cli import main
from rag_repro.data import ENVIRONMENT
from rag_repro.data.public.record import MissingFile
from rag_repro.evaluation import verdicts
from rag_repro.schema import Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.study import (
    campaign,
    gate,
    manifests,
    papers,
    records,
    registering,
    registration,
    runner,
    standing,
)
from rag_repro.study.conditions import Condition
from rag_repro.study.exhibits import Cell, Grid
from rag_repro.study.registration import Registration, RegistrationError
from rag_repro.study.scores import Results
from rag_repro.study.yaml_files import StudyError
from tests.study import mini

ROOT = Path(__file__).parents[2]
MAIN = (
    "drrag.c05 drrag.c20 drrag.c29 erm4.c11 erm4.c15 erm4.c30 dragin.c01 dragin.c17 dragin.c21 "
    "r2ag.c04 r2ag.c23 r2ag.c33"
)
N = 60
CONTRAST = "- {metric: recall, more: {method: qdc}, less: {method: sm}, where: WHERE, delta: 2.0}"
WHERE = "{dataset: world-B, k: 3}"
TRIED = Condition("world-Z", "qdc", {"k": 3}, retriever="bm25", split="tune")
HERE = {
    "package": "p1",
    "changes": [],
    "commit": "c0ffee000000",
    "now": "2026-11-28T10:00:00+00:00",
}


class Shop:
    """A workshop whose data sets have questions q0, q1, ... and nothing else."""

    def dataset(self, name, split):
        questions = tuple(Question(f"q{i}-{name}", "?", ("a",)) for i in range(N + 20))
        return Dataset(name, questions, Corpus(name, ()))


def write_paper(folder, delta="2.0", extra="", where=WHERE):
    contrast = CONTRAST.replace("2.0", delta).replace("WHERE", where)
    mini.paper(folder, contrast)
    text = (folder / "mini" / "paper.yaml").read_text()
    rows = "        methods: [sm, qdc]\n"
    (folder / "mini" / "paper.yaml").write_text(text.replace(rows, f"{rows}        n: {N}\n"))
    claims = folder / "mini" / "claims.yaml"
    claims.write_text(claims.read_text().replace("  place:", f"{extra}  place:"))
    papers.load.cache_clear()


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder `results`; the paper in miniature is at hand, and the tree is clean."""
    monkeypatch.setenv(papers.ENVIRONMENT, str(tmp_path))
    write_paper(tmp_path)
    for name, value in HERE.items():
        monkeypatch.setattr(manifests, name, lambda *words, value=value: value)
    monkeypatch.setattr(manifests, "machine", lambda: "x86_64, 2 cores, Linux")
    written = lambda file, *_: file.read_text() if file.is_file() else None  # noqa: E731
    monkeypatch.setattr(manifests, "committed", written)
    # All papers take seconds to check.
    monkeypatch.setattr(registering, "headline", lambda: ["mini.c01"])
    (tmp_path / "results").mkdir()
    yield tmp_path / "results"
    papers.load.cache_clear()


def register(root):
    standing._is_committed.cache_clear()
    registering.write(root, Shop(), [Registration("mini.c01", "testbed")])
    return registration.read(root)[0]


def record(root, test, *, n=N, more=None, start="2026-11-28T11:00:00+00:00", skip=0):
    """Records of the test's conditions, as a run makes them; `qdc` finds 10 points more."""
    folder = root / registration.FOLDER / "records"
    rng = np.random.default_rng(1)
    for cell in registration.deciding(test):
        stamp = registering.stamp(folder, cell.condition, Shop())
        gain = 0.1 if cell.keys["method"] == "qdc" else 0.0
        with (
            records.open_record(folder, cell.condition, {}) as writer,
            manifests.written(folder, cell.condition, **stamp) as entry,
        ):
            entry.facts |= {"start": start, **(more or {})}
            for i in range(skip, n):
                found = {"recall": 0.5 + gain + rng.uniform(0, 0.02)}
                name = f"q{i}-{cell.keys['dataset']}"
                writer.append({"id": name, "cluster": name, "hits": [], "scores": found})
                entry.answered()


def problems(root):
    """All that `--check` would say."""
    every = (registering.problems_of(t, Shop(), root) for t in registration.read(root))
    return [*registering.problems(root), *(told for each in every for told in each)]


def verdict(root):
    [judged] = standing.judged(papers.load("mini"), "testbed", Results(root / "records"))
    return judged


def test_without_a_registration_every_verdict_is_exploratory(root):
    assert registration.read(root) == []
    assert verdict(root).state == "exploratory"
    assert problems(root) == []


@pytest.mark.parametrize(
    ("worlds", "state"),
    [
        (["world-E", "world-F"], "confirmed"),
        (["world-E~ties=0", "world-F"], "registered"),  # dials can be chosen
        (["world-B"], "registered"),
    ],
)
def test_a_registered_test_decides_by_its_own_records(root, monkeypatch, worlds, state):
    monkeypatch.setitem(registration.FRESH, "world-B", worlds)
    test = register(root)
    assert (verdict(root).state, verdict(root).verdict.word) == ("exploratory", verdicts.NOT_RUN)
    record(root, test)
    judged = verdict(root)
    assert (judged.state, judged.verdict.word) == (state, verdicts.HOLDS)
    assert judged.headline.interval.n == N * len(worlds)
    assert judged.history == ("registered on 2026-11-28: at commit c0ffee000000",)
    assert problems(root) == []
    assert list(standing.missing(root)) == []


def test_several_worlds_are_one_test(root):
    test = register(root)
    sets = [cell.keys["dataset"] for cell in registration.deciding(test)]
    assert sorted(sets) == ["world-E", "world-E", "world-F", "world-F"]
    record(root, test)
    assert verdict(root).state == "confirmed"


def test_it_uses_exactly_its_first_questions(root):
    test = register(root)
    record(root, test, n=N + 15)
    assert verdict(root).headline.interval.n == 2 * N


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"n": N - 1}, f"{N - 1} answers, and not those to the first {N}"),
        ({"n": N + 1, "skip": 1}, f"{N} answers, and not those to the first {N}"),
        ({"start": "2026-11-28T09:59:59+00:00"}, "older than its registration"),
        ({"more": {"commit": "c0ffee000000+"}}, "made from a tree with changes"),
        ({"more": {"package": "p2"}}, "made with another state of rag_repro"),
        ({"more": {"tests": {"mini.c01/testbed": "other"}}}, "made for another test"),
        ({"more": {"tests": {}}}, "made for another test"),
    ],
)
def test_a_record_that_does_not_count_drops_the_state(root, made, why):
    record(root, register(root), **made)
    judged = verdict(root)
    assert (judged.state, judged.verdict.word) == ("registered", verdicts.NOT_RUN)
    assert judged.history[0].endswith(why)
    assert len(list(standing.missing(root))) == 4


def test_a_record_on_the_frozen_list_never_confirms(root):
    test = register(root)
    record(root, test)
    cell = registration.deciding(test)[0]
    (root / "unclean.txt").write_text(f"{cell.condition.hash} 2026-11-28T11:00:00+00:00\n")
    assert (verdict(root).state, verdict(root).verdict.word) == ("registered", verdicts.NOT_RUN)


def test_a_record_of_world_b_confirms_nothing_on_world_e(root):
    test = register(root)
    record(root, test)
    folder = root / "registered" / "records"
    here = registration.deciding(test)[0].condition
    there = replace(here, dataset="world-B")
    with records.open_record(folder, there, {}) as writer:
        for i in range(N):
            writer.append(
                {"id": f"q{i}-world-E", "cluster": "c", "hits": [], "scores": {"recall": 1}}
            )
    records.find(folder, there).replace(records.find(folder, here))
    assert verdict(root).verdict.word == verdicts.NOT_RUN
    assert "made under another condition than its name says" in verdict(root).history[0]


def test_a_changed_test_drops_the_state(root, tmp_path):
    test = register(root)
    record(root, test)
    for change in ({"delta": "1.0"}, {"where": "{dataset: world-B, k: 4}"}):
        write_paper(tmp_path, **change)
        assert verdict(root).state == "exploratory"
        assert verdict(root).history[-1].endswith("changed since, so it decides nothing")
        first, *_ = problems(root)
        assert first == "mini.c01/testbed is another test than was registered"
    # What is only said of it is no part of the test.
    write_paper(tmp_path, extra="  changed: The margin was 1 until a review.\n")
    assert verdict(root).state == "confirmed"
    assert verdict(root).history[0].startswith("test changed after records were seen: The margin")


def test_a_test_with_records_is_changed_only_with_a_reason(root, tmp_path, monkeypatch):
    test = register(root)
    monkeypatch.setattr(manifests, "package", lambda *commit: "p2")
    registering.write(root, Shop())  # nothing is recorded yet
    assert registration.read(root)[0].package == "p2"
    record(root, registration.read(root)[0])
    monkeypatch.setattr(manifests, "package", lambda *commit: "p3")
    assert registering.write(root, Shop()) == []
    assert registration.read(root)[0].package == "p2"
    write_paper(tmp_path, delta="1.0")
    with pytest.raises(RegistrationError, match="say in claims"):
        register(root)
    write_paper(tmp_path, delta="1.0", extra="  changed: Half as small.\n")
    new = register(root)
    assert new.sha256 != test.sha256
    assert (verdict(root).state, verdict(root).verdict.word) == ("registered", verdicts.NOT_RUN)
    # Looked at once more, on the same questions: they confirm nothing now.
    shutil.rmtree(root / "registered")
    record(root, new)
    judged = verdict(root)
    assert (judged.state, judged.verdict.word) == ("registered", verdicts.HOLDS)
    assert "another test was registered on 2026-11-28" in judged.history
    assert [t.sha256 for t in registration.read(root, "withdrawn")] == [test.sha256]
    # The reason given then explains no further change.
    write_paper(tmp_path, delta="0.5", extra="  changed: Half as small.\n")
    with pytest.raises(RegistrationError, match="say in claims"):
        register(root)


def test_a_test_that_vanishes_from_the_file_is_seen(root, tmp_path, monkeypatch):
    old = register(root)
    patch = "+tests:\n+- claim: mini.c01\n+  sha256: " + old.sha256
    monkeypatch.setattr(manifests, "history", lambda file: patch)
    assert problems(root) == []
    (root / registration.FILE).unlink()
    write_paper(tmp_path, delta="1.0")
    register(root)
    [problem] = problems(root)
    assert problem.startswith(f"the test {old.sha256[:12]} was registered and is in")


def test_a_record_before_the_commit_of_its_test_does_not_count(root, monkeypatch):
    test = register(root)
    monkeypatch.setattr(manifests, "committed", lambda file, *_: None)
    with pytest.raises(RegistrationError, match="is registered, but not committed"):
        attempt(root, test)
    at = {"c0ffee000000": "sha256: other"}
    text = (root / registration.FILE).read_text()
    monkeypatch.setattr(manifests, "committed", lambda file, commit="HEAD": at.get(commit, text))
    record(root, test)
    assert verdict(root).history[0].endswith("made before its registration was committed")
    # A shallow clone does not know that commit, and shows what was found all the same.
    standing._is_committed.cache_clear()
    monkeypatch.setattr(manifests, "package", lambda *commit: None)
    assert verdict(root).state == "confirmed"


def test_rows_that_trade_places_are_another_test(root, tmp_path):
    test = register(root)
    file = tmp_path / "mini" / "paper.yaml"
    sm, qdc = re.findall(r"(?m)^ +(?:sm|qdc): (\{.*\})$", file.read_text())
    text = file.read_text().replace(qdc, "HERE").replace(sm, qdc).replace("HERE", sm)
    file.write_text(text.replace(", baseline: sm", ""))
    papers.load.cache_clear()
    assert registration.fixed(test, Shop(), root).sha256 != test.sha256


@pytest.mark.parametrize(
    ("split", "skip", "why"), [("test", 0, "failed"), ("confirm", 20, "different")]
)
def test_arms_with_other_questions_decide_nothing(root, split, skip, why):
    registering.write(root, Shop(), [Registration("mini.c01", "testbed", split)])
    [test] = registration.read(root)
    folder = root / registration.FOLDER / "records"
    for cell in registration.deciding(test):
        stamp = registering.stamp(folder, cell.condition, Shop())
        ours = cell.keys["method"] == "qdc"
        with (
            records.open_record(folder, cell.condition, {}) as writer,
            manifests.written(folder, cell.condition, **stamp) as entry,
        ):
            entry.facts |= {"start": "2026-11-28T11:00:00+00:00"}
            for i in range(skip * ours, skip * ours + N):
                name = f"q{i}-{cell.keys['dataset']}"
                line = {"id": name, "cluster": name, "hits": [], "scores": {"recall": 0.5}}
                if ours and i % 2 and not skip:  # what is hard fails
                    line |= {"scores": {}, "error": "cut off"}
                writer.append(line)
                entry.answered()
    assert verdict(root).verdict.word == verdicts.NOT_RUN
    assert why in verdict(root).history[0]


def test_the_hash_is_of_content_not_of_form():
    assert registration.canonical({"b": 1.0, "a": (0.5, None, "é")}) == (
        r'{"a":[0.5,null,"\u00e9"],"b":1}'
    )
    assert registration.canonical({"a": 2.5}) != registration.canonical({"a": 2})
    with pytest.raises(ValueError, match="JSON"):
        registration.canonical({"a": float("nan")})


def test_gate_and_trained_parts_are_in_the_test():
    test = Registration("drrag.c20", "testbed")
    cells = registration.deciding(test)
    assert {cell.exhibit for cell in cells} == {"drrag.table3", "drrag.readers"}
    assert {cell.keys["dataset"] for cell in cells} == {"world-E", "world-F"}
    kinds = ("compositional", "inference")
    assert {(c.n, c.kinds) for c in cells if c.exhibit == "drrag.table3"} == {(200, kinds)}
    assert {(c.n, c.kinds) for c in cells if c.exhibit == "drrag.readers"} == {(150, kinds)}
    assert {cell.condition.reader for cell in cells} == {"testbed-reader-2"}
    whole = registration.text(test, registration.moved(test))
    identity = next(iter(whole["conditions"].values()))
    assert {"settings", "version", "seed", "split"} <= identity.keys()
    assert "testbed-reader-2" in registration.canonical(whole)


def test_a_registered_former_must_be_helped_by_labels_more_than_tokens_that_are_told_nothing():
    """On lists of a world that neither taught nor chose it; on the best five of ten it fails."""
    paper, test = papers.load("r2ag"), Registration("r2ag.c23", "testbed")
    own = registration.moved(test)
    [proof] = own.proofs[len(paper.proofs) :]
    assert (proof.more, proof.less) == ({"method": "gold"}, {"method": "free"})
    assert proof.serves["world-Z-5"] == ["world-E-5", "world-F-5"]
    tried = [c for c in own.exhibits["proof"].cells("testbed") if c.keys["dataset"] == "world-Z-5"]
    assert {(c.n, c.condition.split) for c in tried} == {(300, "tune")}
    tuned = [c for c in registration.cells(own, "testbed") if c.condition.split == "tune"]
    assert {c.keys["dataset"] for c in tuned} == {"world-Z-5"}  # others serve no world of the test
    cell = next(c for c in registration.deciding(test) if c.condition.reader == "r2ag-five-1")
    contrast, results = own.claims[0].contrasts[0], Results(ROOT / "results" / "records")
    other = replace(proof, serves={"world-A-10": [cell.keys["dataset"]]})
    refused = gate.proven(own, other, contrast, cell, results)
    assert refused.word == "not judged"
    told = "r2ag-five-1 is not seen to do its work: r2ag.proof, world-A-10, log_likelihood of "
    assert refused.reason.startswith(f"{told}R²AG, labels as features above learnable tokens: -0.3")


def test_a_claim_keeps_contrasts_for_its_registered_test():
    claim, test = papers.load("r2ag").claim("r2ag.c23"), Registration("r2ag.c23", "testbed")
    [own] = registration.moved(test).claims
    assert [c.label for c in own.contrasts] == [c.label for c in claim.registered]
    decide = {(c.exhibit, c.metric) for c in own.contrasts if c.role == "primary"}
    assert decide == {("r2ag.fives", "acc_line"), ("r2ag.fives", "f1_line")}
    presumed = {(c.more["method"], c.less["method"]) for c in own.contrasts if c.premise}
    assert presumed == {("gold", "free")}  # where labels tell nothing, features could not either
    cells = registration.deciding(test)
    assert {cell.keys["dataset"] for cell in cells} == {"world-E-5", "world-F-5"}
    readers = {c.condition.reader for c in cells if c.keys["method"] in ("r2ag", "free")}
    parts = {f"r2ag-five{free}" for free in ("", "-free")}
    assert readers == {f"{part}{seed}" for part in parts for seed in ("", "-1", "-2")}
    assert not any(contrast.exhibit == "r2ag.fives" for contrast in claim.contrasts)


def test_a_name_that_nothing_bears_is_found_in_those_contrasts_too(root, tmp_path):
    claims = tmp_path / "mini" / "claims.yaml"
    own = CONTRAST.replace("WHERE", WHERE).replace("method: qdc", "method: qdx")
    claims.write_text(f"{claims.read_text()}  registered:\n    {own}\n")
    with pytest.raises(StudyError, match="method 'qdx' is unknown"):
        papers.read(tmp_path / "mini")


def test_controls_are_recorded():
    test = Registration("dragin.c01", "testbed")
    contrasts = registration.moved(test).claims[0].contrasts
    sides = {
        kind: {(c.more["method"], c.less["method"]) for c in contrasts if getattr(c, kind)}
        for kind in ("control", "shown")
    }
    less = ("random", "random_early", "random_first", "fl_matched")
    assert sides["control"] == {("dragin", row) for row in less}
    behind = {("dragin_first", less) for less in ("sr", "fs", "flare")}
    assert sides["shown"] == behind | sides["control"] | {("first_matched", "random_first")}
    rows = {cell.keys["method"] for cell in registration.deciding(test)}
    assert {"random", "dragin_first", "dragin", "sr"} <= rows
    assert "matched" not in rows


def test_times_ask_for_no_gate_and_no_proof():
    cells = registration.deciding(Registration("erm4.c30", "testbed"))
    asked = {("erm4.times", 50), ("erm4.latency", 50), ("erm4.table2", 200), ("erm4.trigger", 210)}
    assert {(cell.exhibit, cell.n) for cell in cells} == asked


def test_proofs_are_made_before_a_test_is_registered_and_stay(root, tmp_path, monkeypatch):
    whole = registration.cells
    part = Cell("mini.tried", "testbed", "primary", {}, TRIED, 2)
    monkeypatch.setattr(registration, "cells", lambda *given: [*whole(*given), part])
    with pytest.raises(RegistrationError, match="is tried before it is registered: rag-repro run"):
        register(root)
    (root / "records").mkdir()

    def tried(*scores):
        with records.open_record(root / "records", TRIED, {}) as writer:
            for i, score in enumerate(scores):
                writer.append(
                    {"id": f"q{i}", "cluster": "c", "hits": [], "scores": {"recall": score}}
                )

    tried(0.5, 0.75)
    test = register(root)
    assert list(test.proofs) == [TRIED.path]
    assert standing.Registered(root, test).lines(part) is not None
    assert registration.answers_hash([{"id": "q", "scores": {}, "judged": [1]}]) != (
        registration.answers_hash([{"id": "q", "scores": {}, "judged": [2]}])
    )
    shutil.rmtree(root / "records")
    tried(0.75, 0.75)
    assert standing.Registered(root, test).lines(part) is None
    assert registration.fixed(test, Shop(), root).sha256 != test.sha256


def test_what_no_record_could_decide_is_refused_with_the_reason(root, monkeypatch):
    """One that was registered before is withdrawn; with the proof it is registered again."""
    test = register(root)
    whole, told = registering.judge, verdicts.not_judged("a filter that keeps all")

    def failing(*given):
        return [replace(one, verdict=told) for one in whole(*given)]

    monkeypatch.setattr(registering, "judge", failing)
    assert registering.write(root, Shop(), [Registration("mini.c01", "testbed")]) == []
    assert registration.read(root) == []
    assert registration.refusals(root) == {"mini.c01/testbed": "a filter that keeps all"}
    assert [one.sha256 for one in registration.read(root, "withdrawn")] == [test.sha256]
    monkeypatch.setattr(registering, "judge", whole)
    fixed, untried = registration.fixed, RegistrationError("learned is not trained")
    monkeypatch.setattr(registering, "fixed", mock.Mock(side_effect=untried))
    assert registering.write(root, Shop()) == []
    assert registration.refusals(root) == {"mini.c01/testbed": "learned is not trained"}
    monkeypatch.setattr(registering, "fixed", fixed)
    assert registering.write(root, Shop()) == ["mini.c01/testbed"]  # it is tried each time
    assert [one.sha256 for one in registration.read(root)] == [test.sha256]
    assert registration.refusals(root) == {}


def test_a_test_with_records_is_not_refused_by_a_later_proof(root, monkeypatch):
    test = register(root)
    record(root, test)
    whole, told = registering.judge, verdicts.not_judged("a filter that keeps all")
    failing = lambda *given: [replace(one, verdict=told) for one in whole(*given)]  # noqa: E731
    monkeypatch.setattr(registering, "judge", failing)
    registering.write(root, Shop(), [Registration("mini.c01", "testbed")])
    assert [one.sha256 for one in registration.read(root)] == [test.sha256]
    assert registration.refusals(root) == {}


def test_words_about_the_code_that_judges_are_no_part_of_it():
    code = 'def f(x):\n    """Twice."""\n    return 2 * x  # always\n'
    assert registration._code(code) == registration._code("def f(x):\n\n    return (2 * x)\n")
    assert registration._code(code) != registration._code(code.replace("2", "3"))


def test_a_memory_is_filled_with_the_world_that_is_asked():
    cells = registration.deciding(Registration("erm4.c30", "testbed"))
    filled = {(c.keys["dataset"], getattr(c.condition.configured, "fill", None)) for c in cells}
    filled = {dataset: fill for dataset, fill in filled if fill}
    assert filled == {f"world-{w}-again-halves": f"world-{w}-asked-halves" for w in "EF"}


def test_chosen_settings_take_the_place_of_a_grid_s_own_but_not_of_what_it_varies():
    fixed = {"threshold": 0.2, "k": 3}
    grid = Grid("testbed", ("world-B",), ("x", "y"), fixed=fixed, reader="r")
    chosen = {"x": {"threshold": 0.5}}
    ground = papers.Ground(n=7, timed=9, kinds=("inference",), settings=chosen)
    [put, other] = ground.put(grid)
    assert put == replace(
        grid, methods=("x",), n=7, kinds=("inference",), fixed={"threshold": 0.5, "k": 3}
    )
    assert (other.methods, other.fixed) == (("y",), grid.fixed)
    assert ground.put(grid, gate=150)[0] == replace(put, n=150)
    assert ground.put(grid, timed=True)[0] == replace(put, n=9)
    varied = replace(grid, methods=("x",), reader=None, settings={"threshold": (1, 2)}, fixed={})
    assert ground.put(varied) == [varied]


@pytest.mark.parametrize("name", ["study/judge.py", "evaluation/verdicts.py"])
def test_other_judging_code_drops_the_state(root, tmp_path, monkeypatch, name):
    test = register(root)
    record(root, test)
    assert verdict(root).state == "confirmed"
    package = tmp_path / "package"
    shutil.copytree(
        Path(registration.__file__).parents[1],
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    assert registration.judging(package) == registration.judging()
    source = package / name
    source.write_text(source.read_text() + "FEWEST = 1\n")
    other = registration.judging(package)
    monkeypatch.setattr(registration, "judging", lambda: other)
    assert verdict(root).state == "exploratory"
    assert "mini.c01/testbed is another test than was registered" in [*problems(root)]


def test_all_that_judges_is_in_the_hash():
    """What judge and gate take from their own rooms, but for what reads papers and records."""
    listed = {
        f"{room}.{one}" for room, held in registration._JUDGING.items() for one in held.split()
    }
    readers = (
        "cell_names conditions exhibits manifests names paper papers records registration sealed"
    )
    known = listed | {f"study.{name}" for name in readers.split()}
    known |= {f"evaluation.{name}" for name in ("metric", "metrics")}
    for name in listed:
        module = importlib.import_module(f"rag_repro.{name}")
        imported = {
            value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
            for value in vars(module).values()
        }
        own = {one.removeprefix("rag_repro.") for one in imported if one.startswith("rag_repro.")}
        assert {one for one in own if one.split(".")[0] in registration._JUDGING} <= known, name


def test_the_headline_claims_are_these_twelve():
    assert sorted(registering.headline()) == sorted(MAIN.split())


def test_the_registration_of_this_checkout_is_as_written(capsys):
    assert main(["registration", "--check"]) == 0
    printed = capsys.readouterr().out
    assert "are as written" in printed
    assert not (os.environ.get(ENVIRONMENT) and "not checked" in printed)


@pytest.fixture
def checked(root, monkeypatch, capsys):
    """Checks these words; a test of each tier is registered, the public one's data is not here."""
    testbed = register(root)
    public = replace(testbed, tier="public")
    monkeypatch.setattr(registration, "read", lambda *_: [testbed, public])
    fixed = registration.fixed

    def lacking(test, workshop, root):
        if test.tier == "public":
            raise MissingFile("hotpotqa", "", "no folder of real data is named", "name it")
        return fixed(test, Shop(), root)

    monkeypatch.setattr(registering, "fixed", lacking)
    monkeypatch.setattr(book_folders, "here", lambda: SimpleNamespace(records=root / "records"))

    def check(*words):
        status = main(["registration", *words])
        told = capsys.readouterr()
        return status, told.out + told.err

    return check


@pytest.mark.parametrize("words", [["--check"], [], ["--check", "mini.c01"], ["main"]])
def test_a_test_whose_questions_are_not_here_is_named_and_the_others_are_checked(checked, words):
    status, told = checked(*words)
    assert status == 0
    first, unchecked = told.splitlines()
    assert first.startswith("1 registered tests are as written")
    assert unchecked.startswith("not checked, since their questions are not here")
    assert ENVIRONMENT in unchecked
    assert unchecked.endswith(": mini.c01/public")


def test_a_check_is_of_the_tier_and_the_claims_that_are_named(checked, monkeypatch):
    status, told = checked("--check", "--tier", "testbed")
    assert (status, told.count("\n")) == (0, 1)
    status, told = checked("--check", "mini.c02")
    assert status == 2
    assert "no registered test of a claim 'mini.c02', did you mean 'mini.c01'?" in told
    monkeypatch.setattr(registration, "judging", lambda: "other")
    assert checked("--check", "--tier", "testbed")[0] == 1
    assert checked("--check", "--tier", "public")[0] == 0


# ------------------------------------------------------------- making such a record


def attempt(root, test):
    folder = root / registration.FOLDER / "records"
    return registering.stamp(folder, registration.deciding(test)[0].condition, Shop())


def test_a_run_elsewhere_bears_no_stamp(root):
    test = register(root)
    condition = registration.deciding(test)[0].condition
    tests, own = registration.tests_of(root), root / "records"
    assert registration.destination(own, condition, tests) == root / "registered" / "records"
    other = replace(condition, dataset="world-F-10")
    with pytest.raises(RegistrationError, match="is kept for registered tests"):
        registering.stamp(root / "records", other, Shop())
    assert registering.stamp(root / "local/records", other, Shop()) == {}
    other = replace(condition, dataset="world-B")
    assert registering.stamp(root / "records", other, Shop()) == {}
    assert registration.destination(own, other, tests) == own
    with pytest.raises(RegistrationError, match="is not registered with the test"):
        registering.stamp(root / "registered" / "records", other, Shop())


@pytest.mark.parametrize(
    ("what", "value", "message"),
    [
        ("changes", ["rag_repro/lm/local.py"], "rag_repro/lm/local.py is changed, and only"),
        ("changes", None, "there is no git checkout here"),
        ("package", "p2", "mini.c01/testbed is not registered with the test, package"),
    ],
)
def test_other_code_than_was_registered_makes_no_record(root, monkeypatch, what, value, message):
    test = register(root)
    assert attempt(root, test) == {"tests": {test.key: test.sha256}, "package": "p1"}
    monkeypatch.setattr(manifests, what, lambda *words: value)
    with pytest.raises(RegistrationError, match=message):
        attempt(root, test)


def test_the_runner_refuses_before_any_work(root, monkeypatch):
    test = register(root)
    monkeypatch.setattr(manifests, "changes", lambda: ["artifacts/testbed-reader/card.json"])
    with pytest.raises(RegistrationError, match="commit it"):
        runner.run(
            registration.deciding(test)[0].condition, Shop(), root / "registered" / "records"
        )
    assert not (root / "registered").exists()


def test_other_data_than_was_registered_makes_no_record(root, monkeypatch):
    test = register(root)
    first = Shop().dataset("world-E", "test")
    turned = replace(first, questions=first.questions[::-1])
    monkeypatch.setattr(Shop, "dataset", lambda self, name, split: turned)
    with pytest.raises(RegistrationError, match="data and weights that are here"):
        attempt(root, test)


def test_an_old_file_is_not_continued(root):
    test = register(root)
    folder, condition = root / "registered" / "records", registration.deciding(test)[0].condition
    with records.open_record(folder, condition, {}) as writer:
        writer.append({"id": "q0-world-E", "cluster": "c", "hits": [], "scores": {}})
    with pytest.raises(RegistrationError, match="neither continued nor compared; move it away"):
        attempt(root, test)
    with manifests.written(folder, condition) as entry:
        entry.answered()
    with pytest.raises(RegistrationError, match="move it away"):
        attempt(root, test)


def test_a_contrast_is_made_on_one_device(root, monkeypatch):
    test = register(root)
    record(root, test)
    monkeypatch.setattr(manifests, "machine", lambda: "x86_64, 16 cores, Linux, NVIDIA H100")
    with pytest.raises(RegistrationError, match="or on another device"):
        attempt(root, test)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of git with a package, an artifact and a lock."""
    for name in ("rag_repro/lm/local.py", "rag_repro/a.py", "artifacts/r/card.json", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    (tmp_path / "requirements.lock").write_text("a==1\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    monkeypatch.setattr(manifests, "CHECKOUT", tmp_path)
    return tmp_path


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def commit(folder):
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "all")


@pytest.mark.parametrize(
    "name",
    ["rag_repro/lm/local.py", "rag_repro/new.py", "artifacts/r/card.json", "requirements.lock"],
)
def test_a_change_of_code_weights_or_lock_is_not_clean(checkout, name):
    assert manifests.changes() == []
    clean = manifests.commit()
    assert manifests.is_clean({"commit": clean})
    (checkout / "README.md").write_text("2\n")
    assert manifests.changes() == []
    (checkout / name).write_text("2\n")
    assert manifests.changes() == [name]
    assert manifests.commit() == f"{clean}+"
    assert not manifests.is_clean({"commit": manifests.commit()})
    assert not manifests.is_clean({"commit": None})


def test_the_packages_hash_is_known_in_a_shallow_clone(checkout, tmp_path, monkeypatch):
    first, before = manifests.package(), manifests.commit()
    (checkout / "rag_repro/lm/local.py").write_text("2\n")
    commit(checkout)
    now = manifests.package()
    assert now != first == manifests.package(before)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{checkout}", str(shallow))
    monkeypatch.setattr(manifests, "CHECKOUT", shallow)
    assert manifests.package() == now
    assert manifests.package(before) is None
    monkeypatch.setattr(manifests, "CHECKOUT", tmp_path.parent)
    assert (manifests.package(), manifests.changes(), manifests.commit()) == (None, None, None)


def test_a_forged_hash_of_the_package_is_seen(root, monkeypatch):
    register(root)
    monkeypatch.setattr(manifests, "package", lambda *commit: "another")
    [problem] = problems(root)
    assert problem == "mini.c01/testbed: at commit c0ffee000000 rag_repro/ has the hash another"


def test_a_forged_hash_in_a_manifest_is_seen(root, monkeypatch):
    record(root, register(root), more={"commit": "badbad000000"})
    known = {"c0ffee000000": "p1", "badbad000000": "p2"}
    monkeypatch.setattr(manifests, "package", known.get)
    [problem] = problems(root)
    assert problem == "mini.c01/testbed: at commit badbad000000 rag_repro/ has the hash p2"


def test_other_headline_claims_are_seen(root, monkeypatch):
    register(root)
    monkeypatch.setattr(registering, "headline", lambda: ["mini.c01", "mini.c02"])
    [problem] = problems(root)
    assert "other headline claims" in problem


def test_a_grid_without_a_fixed_number_is_not_registered(root, tmp_path):
    text = (tmp_path / "mini" / "paper.yaml").read_text()
    (tmp_path / "mini" / "paper.yaml").write_text(text.replace(f"        n: {N}\n", ""))
    papers.load.cache_clear()
    with pytest.raises(RegistrationError, match="asks no fixed number of questions of world-E"):
        register(root)


def test_where_fewer_questions_are_than_are_named_all_are_registered(root, tmp_path):
    text = (tmp_path / "mini" / "paper.yaml").read_text()
    (tmp_path / "mini" / "paper.yaml").write_text(text.replace(f"n: {N}", "n: 81"))
    papers.load.cache_clear()
    test = register(root)
    record(root, test, n=N)
    assert "60 answers, and not those to the first 81" in verdict(root).history[-1]
    shutil.rmtree(root / "registered")
    record(root, test, n=80)
    assert verdict(root).state == "confirmed"


def test_what_is_not_trained_is_not_registered(monkeypatch):
    monkeypatch.setattr(registration.hub, "artifacts", dict)
    test = Registration("r2ag.c15", "public")
    with pytest.raises(RegistrationError, match="is not trained on this machine: rag-repro train"):
        registration.fixed(test, Shop(), ROOT / "results")


def test_the_runs_to_come_are_listed_with_what_they_decide(root, monkeypatch):
    test = register(root)
    cells = campaign.once(standing.missing(root))
    assert [cell.n for cell in cells] == [N] * 4
    monkeypatch.setattr(campaign, "lacking", lambda condition, workshop: "an index first")
    *lines, total = campaign.estimate(cells, Shop(), root / "records", n=None)
    assert [line.split(": ")[0] for line in lines] == [cell.condition.path for cell in cells]
    assert all(line.endswith(f"not tried: an index first; decides {test.key}") for line in lines)
    assert total.startswith("4 conditions, 4 of them not tried")
    record(root, test)
    assert campaign.once(standing.missing(root)) == []


def test_a_run_sends_a_registered_condition_to_its_folder(root, monkeypatch):
    cells = registration.deciding(register(root))
    others = [replace(c, condition=replace(c.condition, dataset="world-B")) for c in cells]
    gone = []
    monkeypatch.setattr(runner, "run", lambda _, __, folder, **more: gone.append(folder) or 1)
    for some in (cells, others):
        campaign.run(some, Shop(), root / "records")
    assert gone == [root / "registered" / "records"] * 4 + [root / "records"] * 4


# ---------------------------------------------------------------- the frozen list

FROZEN, FROZEN_ON = 494, "2026-11-28T10:00:00+00:00"


def test_the_list_of_unclean_runs_is_whole_and_only_shrinks():
    listed = (ROOT / "results" / "unclean.txt").read_text().split()
    held = {f"{a} {b}" for a, b in zip(listed[::2], listed[1::2], strict=True)}
    assert len(held) == len(listed) / 2 <= FROZEN
    assert all(name[13:] < FROZEN_ON for name in held)
    runs = {}
    for folder in (ROOT / "results/records", *(ROOT / "results/times").iterdir()):
        for path in records.paths(folder):
            entries = manifests.at(folder, path)
            runs |= {f"{path[-12:]} {entry['start']}": entry for entry in entries}
    assert held <= runs.keys()
    dirty = {name for name, entry in runs.items() if not manifests.is_clean(entry)}
    assert dirty - held == set()
    # A shallow clone cannot tell which commits there are.
    if manifests._git("rev-parse", "--is-shallow-repository") == "false":
        # A commit of a branch that nobody merged is lost with the checkout that it was made in.
        merged = {one[:12] for one in manifests._git("rev-list", "HEAD").split()}
        assert {n for n, e in runs.items() if n not in dirty and e["commit"] not in merged} <= held
