"""How an index grows with its corpus: size, memory, time to build and to search, by passages.

Each size of a world is measured in a process of its own, under a limit of memory and of processor
time; the first that goes beyond one is written down as that, and larger ones are not tried. The
record, DIR/RETRIEVER.json, is written anew after each size and continued on the same machine only.
"""

from __future__ import annotations

import errno
import json
import logging
import multiprocessing
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from rag_repro import data, retrieval
from rag_repro.bars import waiting
from rag_repro.digest import write_whole
from rag_repro.plain import PlainError, from_json, text_of
from rag_repro.retrieval import Milvus, RetrievalError, Retriever
from rag_repro.retrieval.milvus_server import versions
from rag_repro.study import corpora, manifests, timed_runs
from rag_repro.study.clock import Clocked, Notes, uncached
from rag_repro.study.files import alone
from rag_repro.study.names import FITTED, check_retriever, label
from rag_repro.study.services import Workshop
from rag_repro.study.yaml_files import build

log = logging.getLogger(__name__)

WORLD = "world-B"
MEMORY, PROCESSOR = "memory", "processor time"
"""The limits that a size can go beyond."""


class GrowthError(ValueError):
    """A record of growth that cannot be read, or not continued here."""


@dataclass(frozen=True)
class Size:
    """One corpus, measured; `stopped` says which limit it went beyond, if any.

    text: bytes of titles and texts. build: seconds until it can be searched; encoding: those in
    the encoder. index: bytes on the disk. memory: most bytes of the process; corpus: up to the
    loaded corpus; empty: before it. search: milliseconds a query, at the median and at 95 of
    100; lookup: without the encoder. `_cpu`: of the processor (of searches the mean), else by
    the clock. held: passages
    that Milvus counts; overlap: at 10, with what searches in memory.
    """

    passages: int
    stopped: str | None = None
    text: int | None = None
    build: float | None = None
    build_cpu: float | None = None
    encoding_cpu: float | None = None
    index: int | None = None
    memory: int | None = None
    corpus: int | None = None
    empty: int | None = None
    queries: int | None = None
    search: float | None = None
    search_95: float | None = None
    search_cpu: float | None = None
    lookup_cpu: float | None = None
    held: int | None = None
    overlap: Mapping[str, float] = field(default_factory=dict)
    when: str = ""
    commit: str | None = None
    load: float | None = None


@dataclass(frozen=True)
class Growth:
    """A retriever's record.

    machine, cores, threads, versions: as `timing.surroundings` tells them. limits: processor
    minutes and gigabytes that a size may take.
    """

    retriever: str
    world: str
    machine: str
    cores: int | None
    threads: int
    versions: Mapping[str, str]
    limits: Mapping[str, int]
    sizes: tuple[Size, ...] = ()

    @property
    def measured(self) -> tuple[Size, ...]:
        return tuple(size for size in self.sizes if size.stopped is None)


def file_of(folder: Path, retriever: str) -> Path:
    """A retriever's record in the folder of records of growth."""
    return folder / (re.sub(r"[^\w.@-]+", "_", label(retriever)) + ".json")


def load(path: Path) -> Growth:
    """The record in a file. Raises GrowthError for what is none, FileNotFoundError for no file."""
    try:
        return build(Growth, from_json(text_of(path)), str(path))
    except FileNotFoundError:
        raise
    except (PlainError, OSError, ValueError, TypeError) as error:
        raise GrowthError(
            f"{path} is no record of growth ({error}); restore it from version control, or delete "
            "it and measure again"
        ) from error


def load_all(folder: Path) -> list[Growth]:
    """Every record in the folder, by name; none where there is no folder."""
    return [load(path) for path in sorted(folder.glob("*.json"))]


def run(
    retriever: str,
    sizes: Sequence[int],
    folder: Path,
    *,
    queries: int = 100,
    minutes: int = 10,
    gigabytes: int = 6,
) -> Growth:
    """Measure the sizes that the record does not have, in order, until one is beyond a limit.

    Raises GrowthError where the record is of another machine, versions or limits.
    """
    check_retriever(retriever)
    path = file_of(folder, retriever)
    folder.mkdir(parents=True, exist_ok=True)
    limits = {"minutes": minutes, "gigabytes": gigabytes}
    facts = timed_runs.surroundings()
    facts["versions"] |= versions() if "milvus" in retriever else {}
    here = Growth(retriever, WORLD, limits=limits, **facts)
    with alone(path.with_suffix(".lock")):
        growth = _continued(path, here)
        for n in sorted(set(sizes)):
            stop = next((one for one in growth.sizes if one.stopped and one.passages <= n), None)
            if stop is not None:
                log.info("%s: beyond its %s at %d passages", retriever, stop.stopped, stop.passages)
                break
            if any(size.passages == n for size in growth.sizes):
                continue
            with waiting(f"{retriever}, {n} passages"):
                size = measure_in_subprocess(
                    retriever, n, queries=queries, minutes=minutes, gigabytes=gigabytes
                )
            held = sorted([*growth.sizes, size], key=lambda one: one.passages)
            growth = replace(growth, sizes=tuple(held))
            _write(path, growth)
            log.info("%s, %d passages: %s", retriever, n, size.stopped or "measured")
    return growth


def describe(size: Size) -> str:
    """What was measured of a size, in a line: seconds, megabytes, milliseconds."""
    if size.stopped:
        return f"{size.passages:,} passages: beyond the limit of {size.stopped}"
    told = (
        ("built in", size.build, "s", 1),
        ("index", size.index, "MB on the disk", 1e6),
        ("memory", size.memory, "MB", 1e6),
        ("a search", size.search, "ms", 1),
    )
    found = [f"{name} {v / by:,.1f} {unit}" for name, v, unit, by in told if v is not None]
    return f"{size.passages:,} passages: {', '.join(found)}"


def _continued(path: Path, here: Growth) -> Growth:
    try:
        there = load(path)
    except FileNotFoundError:
        return here
    told, ours = asdict(replace(there, sizes=())), asdict(here)
    differ = [name for name in ours if told[name] != ours[name]]
    if differ:
        raise GrowthError(
            f"{path} was measured with other {', '.join(differ)} than here, and sizes compare only "
            "where all is the same; move it away to measure anew"
        )
    return there


def _write(path: Path, growth: Growth) -> None:
    sizes = [{k: v for k, v in asdict(s).items() if v not in (None, {})} for s in growth.sizes]
    text = json.dumps({**asdict(growth), "sizes": sizes}, indent=1, sort_keys=True)
    write_whole(path, (text + "\n").encode())


K = 10
WARM = 3
"""Searches before those that count."""
LONG, MOST = 0.5, 20
"""Queries are asked again until that many processor seconds, or rounds, are over."""
LIBRARIES = {
    "bm25": ("bm25s",),
    "dense": ("faiss",),
    "milvus": ("pymilvus", "milvus_lite.server_manager"),
}
"""By kind: imported before anything is counted, since a library does not grow."""
_GB = 1_000_000_000
# By our limit; by the system, or of its own, for want of memory.
_KILLED = {
    -signal.SIGXCPU: PROCESSOR,
    -signal.SIGKILL: MEMORY,
    -signal.SIGABRT: MEMORY,
}


def measure_in_subprocess(
    retriever: str, n: int, *, queries: int, minutes: int, gigabytes: int
) -> Size:
    """One size, measured in a process of its own under the limits."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    # A process that is killed leaves its index behind: the folder is ours to remove.
    with ours, tempfile.TemporaryDirectory(prefix="growth-") as scratch:
        given = (theirs, retriever, n, queries, minutes, gigabytes, scratch)
        child = context.Process(target=_child, args=given)
        child.start()
        theirs.close()
        try:
            told = ours.recv()
        except EOFError:  # it ended without a word
            told = None
        child.join()
    if told is None and child.exitcode not in _KILLED:
        raise GrowthError(
            f"measuring {n:,} passages with {retriever} ended with status {child.exitcode}; "
            "what went wrong stands above, and the sizes before it are kept"
        )
    if isinstance(told, Exception):
        raise told
    if not isinstance(told, Size):
        told = Size(n, stopped=told or _KILLED[child.exitcode])
    load = round(timed_runs.load(), 2)
    return replace(told, when=manifests.now(), commit=manifests.commit(), load=load)


def _child(
    pipe: Any, retriever: str, n: int, queries: int, minutes: int, gigabytes: int, scratch: str
) -> None:
    """Send the size, the limit that it went beyond, or what keeps it from being measured."""
    try:
        # Private memory: what is mapped from files does not count.
        resource.setrlimit(resource.RLIMIT_DATA, (gigabytes * _GB, gigabytes * _GB))
        pipe.send(measure(retriever, n, queries=queries, minutes=minutes, scratch=scratch))
    except MemoryError:
        pipe.send(MEMORY)
    except RuntimeError as error:  # as torch and FAISS say it
        if "alloc" not in str(error):
            raise
        pipe.send(MEMORY)
    except (ValueError, OSError) as error:
        pipe.send(MEMORY if getattr(error, "errno", None) == errno.ENOMEM else error)
    finally:
        pipe.close()


def measure(
    retriever: str,
    n: int,
    *,
    queries: int,
    minutes: int | None = None,
    scratch: str | None = None,
) -> Size:
    """One size, measured here; minutes: of processor time from the loaded corpus on.

    scratch: the folder in which the index gets one for a while; None: the system's.
    Raises RetrievalError for a retriever whose index has no files here.
    """
    encoding: Notes = []
    kind, settings = _parts(retriever, encoding)
    empty = _most_memory()
    dataset = data.load(f"{WORLD}@{n}")
    corpus = dataset.corpus
    asked = [q.text for q in dataset.questions[: queries + WARM]]
    text = sum(len((p.title + p.text).encode()) for p in corpus.passages)
    alone = _most_memory()
    if minutes is not None:
        spent = int(time.process_time()) + 60 * minutes
        resource.setrlimit(resource.RLIMIT_CPU, (spent, spent + 60))
    with tempfile.TemporaryDirectory(prefix="growth-", dir=scratch) as parent:
        folder = Path(parent) / "index.db"
        clock, cpu = time.perf_counter(), time.process_time()
        if in_milvus := kind == Milvus.kind:
            made = Milvus(corpus, folder, **settings)
            made.load()
        else:
            made = retrieval.build(kind, corpus, **settings)
        size = Size(
            n,
            text=text,
            empty=empty,
            corpus=alone,
            build=round(time.perf_counter() - clock, 3),
            build_cpu=round(time.process_time() - cpu, 3),
            encoding_cpu=round(_seconds(encoding), 3) if "encoder" in settings else None,
        )
        if not in_milvus:
            made.save(folder)
        size = replace(
            size,
            index=sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()),
            **_searches(made, asked, encoding),
            memory=_most_memory(),
        )
        if not in_milvus:
            return size
        # After the memory was read: what it is compared with takes memory, too.
        overlap = {
            name: round(corpora.overlap(made, other, asked).mean, 4)
            for name, other in corpora.references(made).items()
        }
        return replace(size, held=made.count(), overlap=overlap)


def _parts(name: str, encoding: Notes) -> tuple[str, dict[str, Any]]:
    """Kind and settings of a retriever: nothing remembered is taken, and encoding is noted."""
    workshop = Workshop()
    settings = workshop.settings_of(name)
    kind = settings.pop("kind")
    for library in LIBRARIES.get(kind, ()):
        with suppress(ImportError):  # who needs it says so
            import_module(library)
    kept = kind == Milvus.kind or issubclass(retrieval.KINDS.get(kind, object), retrieval.Stored)
    if not kept or "where" in settings or settings.get("encoder") in FITTED:
        raise RetrievalError(
            f"the growth of {name!r} cannot be measured: its index has no files here; "
            "bm25, minilm, milvus-bm25 and their like have"
        )
    if "encoder" in settings:
        encoder = uncached(workshop.encoder(settings["encoder"]))
        encoder.encode(["warm"])
        settings["encoder"] = Clocked(encoder, time.process_time, encoding)
    return kind, settings


def _seconds(notes: Notes) -> float:
    return sum(seconds for _, seconds, _ in notes)


def _searches(made: Retriever, asked: Sequence[str], encoding: Notes) -> dict[str, Any]:
    """Milliseconds of one query at a time; those of the processor are a mean over all.

    Many a system counts the processor's time in steps longer than a search.
    """
    for query in asked[:WARM]:
        made.search([query], K)
    queries, clock = asked[WARM:], []
    encoding.clear()
    spent = time.process_time()
    while time.process_time() - spent < LONG and len(clock) < MOST * len(queries):
        for query in queries:
            begun = time.perf_counter()
            made.search([query], K)
            clock.append(1000 * (time.perf_counter() - begun))
    used = time.process_time() - spent
    return {
        "queries": len(queries),
        "search": round(median(clock), 3),
        "search_95": round(float(np.quantile(clock, 0.95)), 3),
        "search_cpu": round(1000 * used / len(clock), 3),
        "lookup_cpu": round(1000 * (used - _seconds(encoding)) / len(clock), 3),
    }


def _most_memory() -> int:
    """Bytes that this process held at most so far."""
    told = Path("/proc/self/status")
    if told.is_file():  # the other way counts what our parent held when it began us
        [line] = [t for t in told.read_text().splitlines() if t.startswith("VmHWM:")]
        return 1024 * int(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
