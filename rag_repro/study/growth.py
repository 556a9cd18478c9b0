"""How an index grows with its corpus: size, memory, time to build and to search, by passages.

Each size of a world of the testbed is measured in a process of its own, so that its most of
memory is its own, and under a limit of memory and of processor time; the first size that goes
beyond one is written down as that, and larger ones are not tried. Beside the seconds of the
clock stand those of the processor, which other programs on the machine disturb less.

The record, DIR/RETRIEVER.json, is written anew after each size and continued by the next run,
on the same machine only.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ..bars import waiting
from ..digest import write_whole
from ..plain import PlainError, from_json, text_of
from ..retrieval.milvus_server import versions
from . import timing
from .files import alone
from .names import check_retriever, label
from .strict import build

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


def beside(records: Path) -> Path:
    """Where records of growth lie: beside the folder of answers."""
    return records.parent / "growth"


def file_of(folder: Path, retriever: str) -> Path:
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
    measured: Callable[..., Size] | None = None,
) -> Growth:
    """Measure the sizes that the record does not have, in order, until one is beyond a limit.

    measured: what measures one, in place of `growth_size.apart`. Raises GrowthError
    where the record is of another machine, versions or limits.
    """
    check_retriever(retriever)
    if measured is None:
        from .growth_size import apart as measured
    path = file_of(folder, retriever)
    folder.mkdir(parents=True, exist_ok=True)
    limits = {"minutes": minutes, "gigabytes": gigabytes}
    facts = timing.surroundings()
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
                size = measured(retriever, n, queries=queries, minutes=minutes, gigabytes=gigabytes)
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
