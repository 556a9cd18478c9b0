"""Manifests: which machine, versions and commit made a record, one entry a run."""

from __future__ import annotations

import json
import logging
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_repro.digest import installed, write_whole
from rag_repro.plain import UNSEEN, PlainError, from_json, text_of
from rag_repro.study import sealed
from rag_repro.study.conditions import Condition
from rag_repro.study.files import trouble
from rag_repro.study.line_fields import MOST
from rag_repro.study.lines import AGAIN, ENDING, MANIFEST, READ, SHARD, RecordError

log = logging.getLogger(__name__)

# The packages whose version can move a result.
PACKAGES = (
    "torch",
    "transformers",
    "sentence-transformers",
    "faiss-cpu",
    "bm25s",
    "rank-bm25",
    "numpy",
    "peft",
)


OFTEN = 20  # seconds after which the entry of a run that goes on is written again
CHECKOUT = Path(__file__).parents[2]
SOURCES = ("rag_repro", "artifacts", "requirements.lock")
"""What makes an answer: where one of them is changed, a commit does not name it."""


def read(results: Path, condition: Condition) -> list[dict[str, Any]]:
    """The entries of a condition's record, oldest first; none where nobody has run it.

    The entry of a run that was killed has no `end`, and its `questions` may lag
    behind by those of the last seconds. Raises RecordError for a damaged file.
    """
    return at(results, condition.path)


def at(results: Path, path: str) -> list[dict[str, Any]]:
    """As `read`, of the record with this path below `results`."""
    sys.audit(READ, str(results / path))
    return _entries(results / (path + MANIFEST), sealed.manifest(results, path))


class Entry:
    """What a manifest tells of the run under way; written at its first answer, then now and then.

    So that also a run that is killed has told which machine gave its answers.
    """

    def __init__(self, file: Path, facts: Mapping[str, Any], earlier: list[dict[str, Any]]):
        self._file = file
        self._before = _entries(file, earlier)  # a damaged one is told before the run, not after it
        self._saved: float | None = None
        self.facts = {"start": now(), "questions": 0, **environment(), **facts}

    def answered(self) -> None:
        """One more question is recorded."""
        self.facts["questions"] += 1
        if self._saved is None or time.monotonic() - self._saved > OFTEN:
            self._save()

    def end(self) -> None:
        """The run is over; without an answer it leaves no entry."""
        if self.facts["questions"]:
            self.facts["end"] = now()
            self._save()

    def _save(self) -> None:
        _write(self._file, [*self._before, self.facts])
        self._saved = time.monotonic()


@contextmanager
def written(results: Path, condition: Condition, shard: str = "", **facts: Any) -> Iterator[Entry]:
    """An entry for the run inside the block, which holds the record open.

    A shard's entry waits in a file of its own, since shards may run at once; another run joins
    those that wait.
    """
    part = {"shard": shard} if shard else {}
    if not shard:
        absorb(results, condition)
    earlier = [] if shard else sealed.manifest(results, condition.path)
    entry = Entry(_file(results, condition, shard), {**facts, **part}, earlier)
    try:
        yield entry
    except BaseException:
        # What stopped the run must be told, not that its manifest was not written.
        try:
            entry.end()
        except RecordError as error:
            log.warning("%s", error)
        raise
    entry.end()


def absorb(results: Path, condition: Condition) -> None:
    """Join the entries of shards that are joined into the condition's manifest.

    For those who hold the record open: nobody else may write it meanwhile.
    """
    whole = _file(results, condition)
    name = Path(condition.path).name
    for file in sorted(whole.parent.glob(f"{name}{SHARD}*{MANIFEST}")):
        shard = file.name.removesuffix(MANIFEST)
        if file.with_name(shard + ENDING).exists():
            continue  # still at work, or waiting to be joined
        earlier = _entries(whole, sealed.manifest(results, condition.path))
        # Those of a join that was killed before its end are there already.
        _write(whole, [*earlier, *(e for e in _entries(file) if e not in earlier)])
        file.unlink()


def _file(results: Path, condition: Condition, shard: str = "") -> Path:
    return results / (condition.path + (SHARD + shard if shard else "") + MANIFEST)


def _entries(file: Path, otherwise: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """otherwise: those of a record that was sealed, which a file of its own begins with."""
    try:
        entries = from_json(text_of(file))
    except FileNotFoundError:
        return list(otherwise or ())
    except (PlainError, OSError) as error:
        raise _damaged(file, str(error)) from error
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        raise _damaged(file, "not a list of entries, each with start, questions and machine")
    return entries


def _is_entry(entry: Any) -> bool:
    """Whether it tells when a run was, of how many questions, and on which machine."""
    try:
        times = [datetime.fromisoformat(entry[key]) for key in ("start", "end") if key in entry]
        fits = type(entry["questions"]) is int and 0 <= entry["questions"] <= MOST
        fits = fits and isinstance(entry["machine"], str) and not UNSEEN.search(entry["machine"])
        return fits and "start" in entry and all(one.tzinfo for one in times)
    except (KeyError, TypeError, ValueError):
        return False


def _damaged(file: Path, why: str) -> RecordError:
    return RecordError(
        f"{file} is no manifest ({why}); restore it from version control, or delete it: the "
        "answers beside it stay, and only who made them is forgotten"
    )


def _write(file: Path, entries: list[dict[str, Any]]) -> None:
    text = json.dumps(entries, indent=1, sort_keys=True) + "\n"
    try:
        write_whole(file, text.encode())
    except OSError as error:
        raise RecordError(
            f"{file} cannot be written ({trouble(error)}, {AGAIN}); finished answers are saved"
        ) from error


def environment() -> dict[str, Any]:
    """The machine in words, versions of what can move a result, and the commit."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "packages": installed(PACKAGES),
        "commit": commit(),
    }


def machine() -> str:
    """As "x86_64, 2 cores, Linux"; the GPU's name where torch was loaded and has one."""
    parts = [platform.machine(), f"{os.cpu_count()} cores", platform.system()]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def platform_of(entry: Mapping[str, Any]) -> str:
    """What kind of device a run was on and its torch, as "CPU, torch 2.13.0+cpu"."""
    device = entry["machine"].split(", ")[3:] or ["CPU"]
    return f"{', '.join(device)}, torch {entry.get('packages', {}).get('torch', 'not known')}"


def processor() -> str:
    """The processor's name, as "Intel(R) Xeon(R) ..."."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The checkout's commit, "+" behind it where one of `SOURCES` differs; None outside one."""
    head = _git("rev-parse", "--short=12", "HEAD")
    return head and head + ("+" if changes() else "")


def changes() -> list[str] | None:
    """The files of `SOURCES` that differ from the commit, new ones too; None outside a checkout."""
    told = _git("status", "--porcelain", "--", *SOURCES)
    return None if told is None else [line.split()[-1] for line in told.splitlines()]


def is_clean(entry: Mapping[str, Any]) -> bool:
    """Whether an entry names a commit that was all that its run was made of."""
    return not (entry.get("commit") or "+").endswith("+")


def package(commit: str = "HEAD") -> str | None:
    """Git's hash of the folder rag_repro/ at a commit, which a shallow clone has of its own; None
    of a commit that is not there."""
    return _git("rev-parse", "--verify", "--quiet", f"{commit}:./rag_repro")


def committed(file: Path, commit: str = "HEAD") -> str | None:
    """What a file holds at a commit; None where there is no such file, commit or checkout."""
    return _git("-C", str(file.parent), "show", f"{commit}:./{file.name}")


def history(file: Path) -> str:
    """Every change of a file that the checkout knows, as a patch; "" without one."""
    return _git("-C", str(file.parent), "log", "-p", "--format=", "--", file.name) or ""


def _git(*words: str) -> str | None:
    """What git says of the checkout; None where there is none, or it knows no such thing."""
    command = ["git", "-C", str(CHECKOUT), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip()
    except (OSError, subprocess.CalledProcessError):
        return None


def now() -> str:
    """The time in UTC, to the second, as manifests have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
