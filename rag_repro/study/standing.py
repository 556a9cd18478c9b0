"""What the records of a registered test say: whether they count, and the verdict with its state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_repro.data.splits import CHOSEN_ON
from rag_repro.evaluation import verdicts
from rag_repro.study import manifests, papers, records, registration
from rag_repro.study.exhibits import Cell
from rag_repro.study.judge import Judged, judge
from rag_repro.study.papers import Paper
from rag_repro.study.registration import Registration
from rag_repro.study.scores import Results

NOT_RECORDED = "not recorded"


class Registered(Results):
    """The records that count for one test; what was recorded to tune lies with all others."""

    def __init__(self, root: Path, test: Registration):
        super().__init__(root / registration.FOLDER / "records")
        self._root, self._test, self._others = root, test, Results(root / "records")

    def lines(self, cell: Cell) -> tuple[Mapping[str, Any], ...] | None:
        if cell.condition.split in CHOSEN_ON:
            lines = self._others.lines(cell)
            known = self._test.proofs.get(cell.condition.path)
            return lines if lines and registration.answers_hash(lines) == known else None
        return None if fault(self._root, self._test, cell) else super().lines(cell)


def fault(root: Path, test: Registration, cell: Cell) -> str | None:
    """Why the cell's record does not count for the test, in words; None: it does."""
    folder, split = registration.folder_of(root, cell), cell.condition.split
    try:
        record = records.load(folder, cell.condition)
        entries = manifests.read(folder, cell.condition)
    except records.RecordError as error:
        return str(error)
    if record is None or not entries:
        return NOT_RECORDED
    for entry in entries:
        if entry.get("tests", {}).get(test.key) != test.sha256:
            return "made for another test"
        if entry.get("package") != test.package:
            return "made with another state of rag_repro"
        name = f"{cell.condition.hash} {entry['start']}"
        if not manifests.is_clean(entry) or name in unclean(root):
            return "made from a tree with changes"
        if datetime.fromisoformat(entry["start"]) < datetime.fromisoformat(test.since):
            return "older than its registration"
        if not _is_committed(root / registration.FILE, test.sha256, entry["commit"]):
            return "made before its registration was committed"
    if failed := sum("error" in line for line in record.lines[: cell.asked]):
        return f"{failed} questions failed; ask them again: rag-repro run --missing --failed"
    ids = [line["id"] for line in record.lines[: cell.asked]]
    same = test.questions.get(registration.place_of(cell)) == registration.sha256("\n".join(ids))
    if same or (split == registration.FRESH_SPLIT and len(ids) == cell.asked):
        return None
    return f"{len(ids)} answers, and not those to the first {cell.asked}"


@lru_cache(maxsize=256)
def _is_committed(file: Path, sha256: str, commit: str) -> bool:
    """Whether the file had the test at that commit; also where a shallow clone cannot tell."""
    return manifests.package(commit) is None or sha256 in (manifests.committed(file, commit) or "")


def unclean(root: Path) -> frozenset[str]:
    """The frozen list of runs whose code nobody can tell for certain: hash and start of each."""
    path = root / registration.UNCLEAN
    return frozenset(path.read_text("utf-8").split("\n")) if path.is_file() else frozenset()


def standing(root: Path, test: Registration) -> Judged | str:
    """The test's verdict with its state, or why it has none."""
    own = registration.moved(test)
    if registration.sha256(registration.canonical(registration.text(test, own))) != test.sha256:
        return "changed since, so it decides nothing"
    asked = registration.deciding(test)
    faults = [(c, why) for c in asked if (why := fault(root, test, c))]
    if all(why == NOT_RECORDED for _, why in faults) and len(faults) == len(asked):
        return "no record yet"
    if faults:
        cell, why = faults[0]
        told = f"{len(faults)} of {len(asked)} conditions, as {cell.condition.path}: {why}"
    elif _answers_differ(root, asked):
        told = "its conditions answer different questions"
    else:
        [judged] = judge(own, test.tier, Registered(root, test), [test.claim])
        fresh = _is_fresh(asked) and test.key not in {
            t.key for t in registration.read(root, "withdrawn") if t.recorded
        }
        return replace(judged, state=registration.CONFIRMED if fresh else registration.REGISTERED)
    claim = papers.load(own.name).claim(test.claim)
    return Judged(claim, test.tier, verdicts.not_run(told), (), state=registration.REGISTERED)


def _answers_differ(root: Path, asked: Sequence[Cell]) -> bool:
    """Whether conditions of the same questions have others, which only `confirm` can hide."""
    ids: dict[str, set[tuple[str, ...]]] = {}
    for cell in asked:
        lines = records.load(registration.folder_of(root, cell), cell.condition).lines[: cell.asked]
        ids.setdefault(registration.place_of(cell), set()).add(tuple(line["id"] for line in lines))
    return any(len(orders) > 1 for orders in ids.values())


def _is_fresh(asked: Sequence[Cell]) -> bool:
    """Whether nothing was chosen on the questions: fresh worlds as they are, or `confirm`."""
    conditions = [c.condition for c in asked if c.condition.split != registration.FRESH_SPLIT]
    worlds = [c.label for c in conditions]
    return all(w[:7] in registration.FRESH_WORLDS and "~" not in w for w in worlds)


def judged(paper: Paper, tier: str, results: Results, cut: bool = False) -> list[Judged]:
    """As `judge.judge`, each verdict with its state and what became of its test.

    That of a registered test takes the place of the exploratory one from its first record on: it is
    *not run* until all are there. results: whose folder lies beside the registration; elsewhere all
    is exploratory.
    """
    root, made = results.folder.parent, []
    tests = {test.claim: test for test in registration.read(root) if test.tier == tier}
    gone = {test.key: [] for test in tests.values()}
    for test in registration.read(root, "withdrawn"):
        gone.get(test.key, []).append(test)
    for one in judge(paper, tier, results, cut=cut):
        changed, test = " ".join(one.claim.changed), tests.get(one.claim.id)
        history = [f"test changed after records were seen: {changed}"] if changed else []
        if test is not None:
            found = standing(root, test)
            one = one if isinstance(found, str) else found
            told = found if isinstance(found, str) else f"at commit {test.commit}"
            told = told if isinstance(found, str) or found.parts else found.verdict.reason
            days = dict.fromkeys(t.since[:10] for t in gone[test.key])
            history += [f"another test was registered on {', '.join(days)}"] if days else []
            history.append(f"registered on {test.since[:10]}: {told}")
        made.append(replace(one, history=tuple(history)))
    return made


def missing(root: Path) -> Iterator[Cell]:
    """The conditions whose record does not count for one of their tests; some several times."""
    for test in registration.read(root):
        yield from (cell for cell in registration.deciding(test) if fault(root, test, cell))
