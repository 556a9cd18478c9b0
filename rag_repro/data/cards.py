"""Data sets in words: what there is, where from, and what to beware of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def listing(data_dir: Path | str | None = None) -> str:
    """One line a data set: name, what it is, and whether it is at hand."""
    from . import ENVIRONMENT
    from .public import SOURCES
    from .synthworld.world import SEEDS

    folder = data_dir or os.environ.get(ENVIRONMENT)
    rows = [(f"world-{letter}", "generated testbed", "made on demand") for letter in sorted(SEEDS)]
    for source in SOURCES.values():
        files = [source.project_file, *(official.file for official in source.official)]
        held = [name for name in files if folder and (Path(folder) / name).exists()]
        rows.append((source.name, f"{source.title}, {source.split}", held[0] if held else "-"))
    width = [max(len(row[i]) for row in rows) for i in (0, 1)]
    lines = [f"{name:{width[0]}}  {what:{width[1]}}  {where}" for name, what, where in rows]
    if not folder:
        lines.append(f"{ENVIRONMENT} names no folder: public data sets cannot be found")
    return "\n".join(lines)


def describe(name: str, data_dir: Path | str | None = None) -> str:
    """The data set's card, one fact a line; it is loaded for its counts and hashes."""
    from . import load

    made = load(name, data_dir=data_dir)
    card = {
        "name": made.name,
        **made.card,
        "questions": len(made.questions),
        "passages": len(made.corpus),
        "corpus sha256": made.corpus.sha256,
    }
    return "\n".join(_lines(card))


def _lines(card: Mapping[str, Any], indent: str = "") -> list[str]:
    lines = []
    for key, value in card.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{key}:", *_lines(value, indent + "  ")]
        elif isinstance(value, list | tuple):
            lines += [f"{indent}{key}:", *(f"{indent}  - {item}" for item in value)]
        elif value is not None:
            lines.append(f"{indent}{key}: {value}")
    return lines
