"""Tests are registered, their records stamped, and the file checked against what is here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rag_repro.digest import write_whole
from rag_repro.evaluation.verdicts import NOT_JUDGED
from rag_repro.study import manifests, papers, records
from rag_repro.study.conditions import Condition
from rag_repro.study.judge import judge
from rag_repro.study.registration import (
    FILE,
    FOLDER,
    FRESH_WORLDS,
    Registration,
    RegistrationError,
    deciding,
    fixed,
    folder_of,
    moved,
    read,
    refusals,
    tests_of,
)
from rag_repro.study.scores import Results
from rag_repro.study.yaml_files import content

if TYPE_CHECKING:
    from rag_repro.study.services import Workshop

_HEAD = """\
# Written by `rag-repro registration write`, recomputed by `rag-repro registration --check`.
# sha256: of the test (`text` in rag_repro/study/registration.py) as JSON with sorted keys, without
# spaces, in ASCII, a whole number without a point. package: git's hash of rag_repro/. questions:
# SHA-256 of the first n ids, a line each. trained: of the weights' files. withdrawn: those that
# another took the place of; git's history of this file has them whole.
"""
# What is kept of one that is withdrawn.
_KEPT = ("claim", "tier", "sha256", "commit", "since", "until", "recorded")


def headline() -> list[str]:
    """The ids of all claims that are marked `main: true`."""
    return [c.id for name in papers.names() for c in papers.load(name).claims if c.main]


def stamp(folder: Path, condition: Condition, workshop: Workshop) -> dict[str, Any]:
    """What the manifest of a registered record holds besides; {} of records elsewhere.

    Raises RegistrationError, before any work, where the record could not count.
    """
    root = next((p.parent for p in (folder, *folder.parents) if p.name == FOLDER), None)
    if root is None and (folder.parent / FILE).is_file() and condition.label[:7] in FRESH_WORLDS:
        raise RegistrationError(
            f"{condition.path} is kept for registered tests, and none asks it; register one with: "
            "rag-repro registration write. Whoever looks at it before chooses by it"
        )
    if root is None or not (root / FILE).is_file():
        return {}
    package, tests = _clean_package(), tests_of(root)[condition.hash]
    stale = [
        t.key for t in tests if t.package != package or fixed(t, workshop, root).sha256 != t.sha256
    ]
    if open_ := [t for t in tests if t.sha256 not in (manifests.committed(root / FILE) or "")]:
        raise RegistrationError(f"{open_[0].key} is registered, but not committed; commit {FILE}")
    if stale or not tests:
        raise RegistrationError(
            f"{(*stale, condition.path)[0]} is not registered with the test, package, data and "
            "weights that are here; register it with: rag-repro registration write"
        )
    made = {"tests": {test.key: test.sha256 for test in tests}, "package": package}
    here = manifests.platform_of(manifests.environment())
    for cell in (cell for test in tests for cell in deciding(test)):
        folder, own = folder_of(root, cell), cell.condition.hash == condition.hash
        entries = manifests.read(folder, cell.condition)
        other = any(manifests.platform_of(e) != here for e in entries)
        other |= own and any(made != {k: e.get(k) for k in made} for e in entries)
        if other or (own and not entries and records.find(folder, condition)):
            raise RegistrationError(
                f"{cell.condition.path} was made for another test, by other code or on another "
                "device, so it is neither continued nor compared; move it away"
            )
    return made


def repeats(stamped: Mapping[str, Any]) -> int:
    """How often each question is timed for the tests that a record's stamp names."""
    return max(papers.load(key.split(".")[0]).ground.repeats for key in stamped["tests"])


def _clean_package() -> str:
    """Git's hash of rag_repro/. RegistrationError where the tree has changes, or is no checkout."""
    found = manifests.changes()
    if found is None or found:
        what = f"{found[0]} is changed" if found else "there is no git checkout here"
        raise RegistrationError(
            f"{what}, and only committed code makes registrations and registered records; commit it"
        )
    return manifests.package()


def write(root: Path, workshop: Workshop, tests: Iterable[Registration] = ()) -> list[str]:
    """Register these tests, and anew those without a record -> keys of what was registered.

    One that no record could decide, since a proof of training fails, is refused: the file says why,
    and it is tried again each time; it stays refused while it asks what is not trained or tried.
    One that is committed and changes goes to `withdrawn`. RegistrationError: uncommitted changes,
    or a test that has records is changed and its claim says nothing new of it (`changed:`).
    """
    stamps = {"package": _clean_package(), "commit": manifests.commit(), "since": manifests.now()}
    old, made = {test.key: test for test in read(root)}, {}
    entries = {key: _entries(root, test) for key, test in old.items()}
    used = {(key, e.get("tests", {}).get(key)) for key, held in entries.items() for e in held}
    kept = {key: test.sha256 for key, test in old.items() if (key, test.sha256) in used}
    refused = dict(refusals(root))
    again = [Registration(*key.split("/")) for key in refused]
    for test in (*(test for key, test in old.items() if key not in kept), *again, *tests):
        own = moved(test)
        [judged] = judge(own, test.tier, Results(root / "records"), {test.claim})
        if judged.verdict.word == NOT_JUDGED and test.key not in kept:
            refused[test.key] = judged.verdict.reason
            continue
        note = " ".join(own.claims[0].changed)
        try:
            new = replace(fixed(test, workshop, root), **stamps, changed=note)
        except RegistrationError as error:
            if test not in again:
                raise
            refused[test.key] = str(error)
            continue
        refused.pop(test.key, None)
        is_new = note not in ("", old[test.key].changed) if test.key in old else True
        if kept.get(test.key, new.sha256) != new.sha256 and not is_new:
            raise RegistrationError(
                f"{test.key} has records and its test is another now; say in claims.yaml, "
                "`changed:`, what was changed and why"
            )
        if kept.get(test.key) != new.sha256:
            made[test.key] = new
    held = {key: test for key, test in {**old, **made}.items() if key not in refused}
    every = [asdict(test) for _, test in sorted(held.items())]
    before = manifests.committed(root / FILE) or ""
    changed = [t for key, t in old.items() if key not in held or held[key].sha256 != t.sha256]
    gone = [
        replace(t, until=stamps["since"], recorded=(t.key, t.sha256) in used)
        for t in changed
        if t.sha256 in before
    ]
    withdrawn = [
        {name: getattr(t, name) for name in _KEPT} for t in (*read(root, "withdrawn"), *gone)
    ]
    told = {
        "main": headline(),
        "refused": dict(sorted(refused.items())),
        "tests": every,
        "withdrawn": withdrawn,
    }
    plain = json.loads(json.dumps(told))
    write_whole(root / FILE, _HEAD + yaml.safe_dump(plain, sort_keys=False, width=98))
    return list(made)


def _entries(root: Path, test: Registration) -> list[dict[str, Any]]:
    """All runs that a test's records tell of."""
    every = (manifests.read(folder_of(root, c), c.condition) for c in deciding(test))
    return [entry for held in every for entry in held]


def problems(root: Path) -> Iterator[str]:
    """What of the file is not so: the headline claims, and a test that is gone from it."""
    if (root / FILE).is_file() and content(root / FILE).get("main") != headline():
        yield f"{FILE} has other headline claims than claims.yaml; write it again"
    known = {t.sha256 for part in ("tests", "withdrawn") for t in read(root, part)}
    for sha256 in re.findall(r"^\+ *sha256: (\w+)", manifests.history(root / FILE), re.M):
        if sha256 not in known:
            yield f"the test {sha256[:12]} was registered and is in {FILE} no more; list it there"


def problems_of(test: Registration, workshop: Workshop, root: Path) -> Iterator[str]:
    """Hashes of a test and of the package that are others here. MissingFile: no questions here."""
    if fixed(test, workshop, root).sha256 != test.sha256:
        yield f"{test.key} is another test than was registered"
    made = {(e["commit"], e.get("package")) for e in _entries(root, test)}
    for commit, package in sorted({(test.commit, test.package), *made}):
        if (found := manifests.package(commit)) not in (None, package):
            yield f"{test.key}: at commit {commit} rag_repro/ has the hash {found}"
