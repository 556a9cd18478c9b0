"""From sources to the HTML of the book: only what changed runs again."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rag_repro import logs
from rag_repro.places import Places, here
from rag_repro.publish import check, inputs, pages, status
from rag_repro.publish.execute import execute
from rag_repro.publish.pairs import pair, run_of, source_hash

log = logging.getLogger(__name__)


class BuildError(ValueError):
    """jupyter-book did not build the pages; the text is what it said."""


def stale(name: str, places: Places | None = None) -> list[str]:
    """Why chapter `name` must run again; empty where its executed copy stands."""
    places = places or here()
    executed = places.executed(name)
    if not executed.is_file():
        return ["never executed"]
    told = run_of(executed)
    if told is None:
        return ["not executed by rag-repro, or cut off"]
    if told["parameters"]:
        return ["executed with other parameters"]
    if told["source"] != source_hash(places.source(name)):
        return ["its source changed"]
    return inputs.changed(places.root.resolve(), told["inputs"], executed.resolve())


def build_book(
    places: Places | None = None, *, only: Sequence[str] = (), force: bool = False, jobs: int = 1
) -> Path:
    """Execute what changed, check everything, build; returns the front page's path.

    `only` limits the execution to some chapters; `force` executes them although
    nothing changed; `jobs` of them at once, of which each may hold 6 GB. Raises
    ChapterError, CheckError or BuildError.
    """
    places = places or here()
    pair(places)
    for name in only:
        places.source(name)
    done = _together(_due(places, only, force), places, jobs) if jobs > 1 else []
    for name in _due(places, only, force):
        # One that reads what others wrote may be stale once more.
        if name not in done or stale(name, places):
            execute(name, update=True, places=places)
    pages.write(places)
    check.check_all(places)
    return to_html(places)


def _due(places: Places, only: Sequence[str], force: bool) -> Iterator[str]:
    """The chapters that must run, each looked at when its turn comes; the log says why."""
    for name in places.names():
        reasons = stale(name, places)
        if (reasons or force) and (not only or name in only):
            log.info("%s: %s", name, _short(reasons or ["asked for"]))
            yield name


def _together(names: Iterable[str], places: Places, jobs: int) -> list[str]:
    """Execute several at once, but for the one that tells of the others -> their names."""
    names = [name for name in names if name != status.OWN]
    threads = max(1, (os.cpu_count() or 1) // jobs)
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_share,
        initargs=(threads,),
    )
    with pool:
        waiting = [pool.submit(execute, name, update=True, places=places) for name in names]
        try:
            for one in waiting:
                one.result()
        finally:  # what has not begun would only keep an error waiting
            pool.shutdown(cancel_futures=True)
    return names


def _share(threads: int) -> None:
    """What a process of several is told: its share of the cores, for its kernel as well."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    os.environ["TQDM_DISABLE"] = "1"  # bars of several would draw over each other
    logs.to_stderr()


def _short(reasons: list[str]) -> str:
    more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    return ", ".join(reasons[:3]) + more


def to_html(places: Places) -> Path:
    """Run jupyter-book, nit-picky and with warnings as errors; BuildError else."""
    start = "from jupyter_book.cli.main import main; main()"  # it has no __main__
    command = [sys.executable, "-c", start, "build", str(places.book)]
    command += ["--config", str(places.root / "_config.yml")]
    command += ["--toc", str(places.root / "_toc.yml")]
    command += ["--path-output", str(places.book), "-n", "-W", "--keep-going", "-q"]
    done = subprocess.run(command, cwd=places.root, capture_output=True, text=True, check=False)
    if done.returncode:
        # Sphinx warns of a page only when it reads it: were its cache kept, the
        # next build would be green although nothing was mended.
        shutil.rmtree(places.book / "_build" / ".doctrees", ignore_errors=True)
        raise BuildError(f"jupyter-book failed:\n{_complaints(done.stderr, places)}")
    return places.html / "index.html"


def _complaints(printed: str, places: Places) -> str:
    """The warnings and errors of a build, without colours and the trace of its own code."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", printed).replace(f"{places.root}/", "")
    plain = plain.split("Traceback (most recent call last)")[0]
    lines = [line for line in plain.splitlines() if line.strip()]
    return "\n".join(lines) or printed
