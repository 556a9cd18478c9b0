"""What was trained on this machine, readers and classifiers alike: its folders and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..lm import hub
from ..lm.adapters import CARD
from ..plain import from_json, text_of

CURVE = "curve.jsonl"


def folders(names: Sequence[str]) -> dict[str, Path]:
    """Where each of these lies, of those that are trained and have a card."""
    held = hub.artifacts()
    return {name: held[name] for name in names if name in held and (held[name] / CARD).is_file()}


def curve(folder: Path) -> list[Mapping[str, Any]]:
    """A line a step: step, tokens, loss, and `held_out` by source at some; [] without a file."""
    path = folder / CURVE
    return [from_json(line) for line in text_of(path).splitlines()] if path.is_file() else []
