"""From sources to the HTML of the book: chapters are executed where something changed.

Papermill executes one; nothing that differs between two equal runs stays in the file, but for one
block, `metadata.rag_repro`, which says what ran, on what, and how long.
"""

from __future__ import annotations

import builtins
import json
import logging
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rag_repro import logs
from rag_repro.arguments import path as as_path
from rag_repro.bars import waiting
from rag_repro.book_folders import BookFolders, here
from rag_repro.digest import write_whole
from rag_repro.plain import shortened
from rag_repro.publish import check, inputs, pages, probe, status
from rag_repro.publish.check import BuildError
from rag_repro.publish.notebook_pairs import pair, read_source, run_of, source_hash, to_text
from rag_repro.publish.parameters import override
from rag_repro.study.files import check_output

log = logging.getLogger(__name__)

# What would leave debris in the outputs: progress bars, tqdm's advice to install
# widgets, which other packages trigger, and the tokenizers' warning of forks.
ENVIRONMENT = {
    "TQDM_DISABLE": "1",
    "PYTHONWARNINGS": "ignore:IProgress not found",
    "TOKENIZERS_PARALLELISM": "false",
}
FOLDERS = ("RAG_REPRO_DATA", "RAG_REPRO_CACHE", "RAG_REPRO_ARTIFACTS", "RAG_REPRO_PAPERS")


class ChapterError(ValueError):
    """A chapter that did not run to its end."""


def execute(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    kernel: str | None = None,
    out: Path | None = None,
    update: bool = False,
    places: BookFolders | None = None,
) -> Path:
    """Run chapter `name` and write its executed copy; returns the copy's path.

    `parameters` replace defaults; `kernel` names an installed kernel (default:
    this environment's own Python). Without `out` the copy goes to
    results/local/chapters/; `update` puts that of a default run into the book,
    book/chapters/. Raises ParameterError on a name or value that the chapter does
    not know, ValueError where `out` or the records that it makes cannot be
    written, both before a kernel starts, and ChapterError with the failing cell
    where it does not run through.
    """
    places = places or here()
    source = places.source(name)
    given = override(name, parameters or {}, places)
    if update and (given or kernel or out):
        raise ChapterError(
            f"{name}: the book holds default runs alone; leave --update, or -p, --kernel and --out"
        )
    if out is None:
        out = (places.chapters if update else places.runs) / f"{name}.ipynb"
    check_output(out, "a notebook")
    if given:  # what it asks is recorded there
        check_output(places.own_records / "world-B" / "a-record")
    if out.is_file() and out.suffix != ".ipynb":
        raise ChapterError(f"{out} is there and no notebook (.ipynb); name another file")
    own = places.executed(name).resolve()
    book = read_source(source)
    book.cells = [_probe(probe.FIRST, "first"), *book.cells, _probe(probe.LAST, "last")]
    started = datetime.now(UTC).replace(microsecond=0).isoformat()
    book = _run(book, given, kernel, places, name)
    heard = _take_probe(book, name)
    tidy(book)
    book.metadata["rag_repro"] = {
        "chapter": name,
        "source": source_hash(source),
        "parameters": given,
        "inputs": inputs.gather(places.root.resolve(), heard, own),
        "started": started,
        **{key: heard[key] for key in ("seconds", "memory_mb", "python", "versions", "machine")},
        "data": heard["data"],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, to_text(book))
    return out


def _probe(text: str, place: str) -> Any:
    from nbformat.v4 import new_code_cell

    return new_code_cell(text, id=f"probe-{place}", metadata={"tags": [probe.TAG]})


def _run(book: Any, given: dict, kernel: str | None, places: BookFolders, name: str) -> Any:
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel, get_kernel_spec
    from papermill.exceptions import PapermillExecutionError

    log.info("executing %s", name)
    wanted = dict(ENVIRONMENT)
    for one in FOLDERS:  # the kernel works in notebooks/, where a relative path would lead astray
        if os.environ.get(one):
            wanted[one] = str(as_path(os.environ[one]).resolve())
    with waiting(f"executing {name}"), patch.dict(os.environ, wanted):  # the kernel inherits it
        try:
            # ipykernel's own notices stay off the terminal; errors of cells still reach us.
            spec = get_kernel_spec(kernel or book.metadata.kernelspec.name)
            quiet = any("ipykernel" in part for part in spec.argv)
            return papermill.execute_notebook(
                book,
                None,
                parameters=given,
                kernel_name=kernel,
                progress_bar=False,
                log_output=False,
                cwd=str(places.notebooks),
                extra_arguments=["--IPKernelApp.log_level=50"] if quiet else [],
                coalesce_streams=True,  # how one was cut into pieces is chance
            )
        except PapermillExecutionError as error:
            first = next((line for line in error.source.splitlines() if line.strip()), "")
            told = f"{name}: the code cell that begins {first!r} raised "
            told += f"{error.ename}: {error.evalue}"
            if not given or hasattr(builtins, error.ename):
                told += re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(["", *(error.traceback or [])]))
            # Else an error with a name of its own says what is wrong with a parameter.
            raise ChapterError(told) from None
        except NoSuchKernel as error:
            raise ChapterError(
                f"{name}: no kernel {error.name!r} is installed; `jupyter kernelspec list` "
                "shows those that are"
            ) from None


def _take_probe(book: Any, name: str) -> dict:
    """Remove the two cells, and return what the last one told."""
    told = None
    for cell in book.cells:
        for output in cell.get("outputs", []):
            told = output.get("data", {}).get(probe.MIME, told)
    book.cells = [c for c in book.cells if probe.TAG not in c.metadata.get("tags", [])]
    if told is None:
        raise ChapterError(f"{name}: the kernel did not report; is rag_repro installed in it?")
    return json.loads(told)


def tidy(book: Any) -> None:
    """Take out of an executed notebook what differs between equal runs."""
    # An executed copy is no pair: opened in JupyterLab it must not write a script.
    for key in ("papermill", "jupytext"):
        book.metadata.pop(key, None)
    count = 0
    for cell in book.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata = type(cell.metadata)({"tags": tags} if tags else {})
        if "injected-parameters" in tags:
            cell.id = "injected-parameters"
            cell.metadata["tags"] = [*tags, "remove-cell"]
        if cell.cell_type != "code" or cell.execution_count is None:
            continue
        count += 1
        cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = count
            data = output.get("data", {})
            # An object's address in words, where there is something to show in its place.
            if "text/html" in data and " at 0x" in data.get("text/plain", ""):
                del data["text/plain"]


def stale(name: str, places: BookFolders) -> list[str]:
    """Why chapter `name` must run again; empty where its executed copy stands."""
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
    places: BookFolders | None = None,
    *,
    only: Sequence[str] = (),
    force: bool = False,
    jobs: int = 1,
) -> Path:
    """Execute what changed, check everything, build; returns the front page's path.

    `only` limits the execution to some chapters; `force` executes them although
    nothing changed; `jobs` of them at once, of which each may hold 6 GB. Raises
    ChapterError or BuildError.
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


def _due(places: BookFolders, only: Sequence[str], force: bool) -> Iterator[str]:
    """The chapters that must run, each looked at when its turn comes; the log says why.

    The one that tells of the others comes last.
    """
    for name in sorted(places.names(), key=lambda name: name == status.OWN):
        reasons = stale(name, places)
        if (reasons or force) and (not only or name in only):
            log.info("%s: %s", name, shortened(", ".join(reasons or ["asked for"])))
            yield name


def _together(names: Iterable[str], places: BookFolders, jobs: int) -> list[str]:
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


def to_html(places: BookFolders) -> Path:
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


def _complaints(printed: str, places: BookFolders) -> str:
    """The warnings and errors of a build, without colours and the trace of its own code."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", printed).replace(f"{places.root}/", "")
    plain = plain.split("Traceback (most recent call last)")[0]
    lines = [line for line in plain.splitlines() if line.strip()]
    return "\n".join(lines) or printed
