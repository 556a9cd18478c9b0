"""Adapters (LoRA) by name over one base model.

A folder holds peft's `adapter_config.json` and `adapter_model.safetensors`,
and our `card.json`, which names the base weights by their hash: an adapter
trained on one file is refused on another, however alike their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_repro.digest import write_whole
from rag_repro.lm import hub
from rag_repro.lm.weights import Weights, loading
from rag_repro.plain import PlainError, fits, from_json, text_of
from rag_repro.schema.errors import CallError, WeightsError
from rag_repro.words import nearest

CARD = "card.json"
CURVE = "curve.jsonl"


def write_card(
    folder: str | Path, weights: Weights, facts: Mapping[str, Any] | None = None
) -> None:
    """Name an adapter's base weights beside it, with how it was trained (`facts`, plain data)."""
    card = {
        "base": {"name": weights.name, "sha256": weights.sha256, "note": weights.note},
        **(facts or {}),
    }
    text = json.dumps(card, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    write_whole(Path(folder) / CARD, text)


def card_of(folder: str | Path) -> dict[str, Any]:
    """An adapter's card, which names its base. WeightsError: none, or damaged."""
    path = Path(folder) / CARD
    try:
        card = from_json(text_of(path))
    except FileNotFoundError:
        raise WeightsError(
            f"{path}: no card, so nobody knows the adapter's base; write one with write_card"
        ) from None
    except (PlainError, OSError) as error:
        raise WeightsError(f"{path}: not an adapter's card ({error})") from None
    base = card.get("base") if isinstance(card, dict) else None
    if not fits(base, dict[str, Any]) or not all(
        isinstance(base.get(key), str) for key in ("name", "sha256")
    ):
        raise WeightsError(f"{path}: not an adapter's card (it names no base with its sha256)")
    return card


def check_base(card: Mapping[str, Any], weights: Weights, folder: str | Path) -> None:
    """WeightsError where the adapter with this card was made for another base."""
    base = card["base"]["sha256"]
    if base != weights.sha256:
        raise WeightsError(
            f"{folder}: made for base {card['base']['name']} ({base[:12]}), "
            f"not for {weights.name} ({weights.sha256[:12]}); train it on this base"
        )


def task_of(folder: str | Path) -> str | None:
    """What an adapter was trained for, by its card's recipe ("reader", "pairs" ...); None: untold.

    WeightsError: no card, or a damaged one.
    """
    recipe = card_of(folder).get("recipe")
    task = recipe.get("task") if isinstance(recipe, dict) else None
    return task if isinstance(task, str) else None


class Adapters:
    """The adapters of one model, of which at most one is active."""

    def __init__(self, model, weights: Weights):
        self._model = model
        self._weights = weights
        self._digests: dict[str, str] = {}

    def add(self, name: str, folder: str | Path) -> None:
        """Load an adapter from its folder under a name that is still free."""
        if name in self._digests:
            raise WeightsError(f"an adapter named {name!r} is loaded already")
        check_base(card_of(folder), self._weights, folder)
        weights = Path(folder) / "adapter_model.safetensors"
        if not weights.is_file():
            raise WeightsError(f"{weights}: no such file (pickled adapters are never read)")
        digest = hub.digest_of(Path(folder))
        with loading(Path(folder)):
            self._model.load_adapter(str(folder), adapter_name=name, is_trainable=False)
        self._model.disable_adapters()
        self._model.eval()
        self._digests[name] = digest

    def digest(self, name: str | None) -> str | None:
        """The hash of an adapter's weights. CallError: none of that name."""
        if name is None:
            return None
        if name not in self._digests:
            hint = nearest(name, self._digests)
            raise CallError(f"no adapter {name!r}{hint}; add it with reader.add_adapter")
        return self._digests[name]

    def digests(self) -> dict[str, str]:
        return dict(sorted(self._digests.items()))

    @contextmanager
    def active(self, name: str | None) -> Iterator[None]:
        """The model with one adapter, or with none, for this block."""
        if name is None:
            yield
            return
        self._model.enable_adapters()
        self._model.set_adapter(name)
        try:
            yield
        finally:
            self._model.disable_adapters()
