"""What was trained on this machine, readers and classifiers alike: its folders and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_repro.lm import hub
from rag_repro.lm.hub import CARD, CURVE
from rag_repro.plain import from_json, text_of


def folders(names: Sequence[str]) -> dict[str, Path]:
    """Where the card of each of these lies: beside its weights, or kept without them.

    Of what was never trained, or has no card, there is none.
    """
    held, kept = hub.artifacts(), hub.cards_folder()
    places = {name: held.get(name, kept / name) for name in names}
    return {name: folder for name, folder in places.items() if (folder / CARD).is_file()}


def curve(folder: Path) -> list[Mapping[str, Any]]:
    """A line a step: step, tokens, loss, and `held_out` by source at some; [] without a file."""
    path = folder / CURVE
    return [from_json(line) for line in text_of(path).splitlines()] if path.is_file() else []
