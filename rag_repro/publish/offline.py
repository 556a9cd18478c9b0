"""Sphinx extension: formulas are set by a copy of MathJax beside the pages.

The package sphinx-mathjax-offline carries the files. Its own extension copies
all of them, 24 MB; the pages need the fonts, one script and what it may load.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NEEDED = ("tex-chtml.js", "a11y", "input/tex", "output/chtml/fonts/woff-v2")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _copy(app: Any, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("no package sphinx-mathjax-offline; `make book` installs it")
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for name in NEEDED:
        if (target / name).exists():
            continue
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)
