"""What a running chapter reads and costs: two hidden cells around its own.

They are added to the copy that is executed and taken out again afterwards.
The first listens to what is opened (an audit hook, which sees every `open`
and every listing of a folder that Python makes), the second tells it: files
of the checkout, modules of this package, versions, machine, time and memory.
So a chapter runs again when something changed that it really read.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import resource
import sys
import time
from pathlib import Path

from rag_repro.digest import installed
from rag_repro.study.records import READ

TAG = "rag-repro-probe"
MIME = "application/vnd.rag-repro.probe+json"
FIRST = "from rag_repro.publish import probe as _probe\n_probe.begin()"
LAST = "from rag_repro.publish import probe as _probe\n_probe.end()"

# Packages whose version can change a number or a picture.
TOLD = (
    "bm25s", "faiss-cpu", "matplotlib", "numpy", "pandas", "peft", "PyStemmer", "rank-bm25",
    "safetensors", "scikit-learn", "scipy", "seaborn", "sentence-transformers", "spacy",
    "tokenizers", "torch", "transformers",
)  # fmt: skip

_opened: set[str] = set()
_records: set[str] = set()
_began: list[float] = []


def begin() -> None:
    """Start the clock and listen; listens once a process.

    A chapter's methods write queries of their own, as "So": that no term of one is in an index is
    no news there, and its page would show the warning.
    """
    logging.getLogger("rag_repro.retrieval.bm25").setLevel(logging.ERROR)
    if not _began:
        sys.addaudithook(_hear)
    _began.append(time.perf_counter())
    _opened.clear()
    _records.clear()


def _hear(event: str, arguments: tuple) -> None:
    if event == READ:
        _records.add(os.path.abspath(arguments[0]) + "/" * arguments[0].endswith("/"))
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str | Path):
        _opened.add(os.path.abspath(arguments[0]))


def end() -> None:
    """Show what was heard, as an output that `execute` takes out."""
    from IPython.display import display

    told = {
        "opened": sorted(_opened),
        "records": sorted(_records),
        "modules": sorted(
            module.__file__
            for name, module in list(sys.modules.items())
            if name.split(".")[0] == "rag_repro" and getattr(module, "__file__", None)
        ),
        "seconds": round(time.perf_counter() - _began[-1], 1),
        "memory_mb": _memory_mb(),
        "python": platform.python_version(),
        "versions": installed(TOLD),
        "machine": machine(),
        "data": bool(os.environ.get("RAG_REPRO_DATA")),
    }
    display({MIME: json.dumps(told), "text/plain": ""}, raw=True)


def machine() -> dict[str, str | int]:
    """Processor, cores that may be used, memory, GPU; no name of a host or user."""
    # Only here, at the end: the chapter itself may do without.
    from rag_repro.study.manifests import processor

    told: dict[str, str | int] = {
        "system": platform.system(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
    }
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        told["gpu"] = torch.cuda.get_device_name(0)
    return told


def _memory_mb() -> int:
    """Most memory that the process held at once."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (2**20 if sys.platform == "darwin" else 2**10))
