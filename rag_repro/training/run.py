"""From a recipe to an adapter with its card: what `rag-repro train NAME` does."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..lm import hub
from ..lm.adapters import CARD, write_card
from ..lm.hub import sha256
from ..lm.load import Loaded, load
from ..lm.prompts import Codec
from ..study.manifests import environment
from .examples import Encoded, encode
from .fit import Plan, fit
from .lessons import lessons
from .recipes import Recipe

log = logging.getLogger(__name__)

HELD_OUT = 50
"""Of how many lessons one is kept out to watch the loss (never a fact: those must be learned)."""


@dataclass(frozen=True)
class Prepared:
    """A recipe's lessons as tokens, and the run over them."""

    recipe: Recipe
    seed: int
    loaded: Loaded
    plan: Plan
    held_out: tuple[Encoded, ...]
    digest: str

    def cost(self) -> str:
        """What the run will take, in tokens, by source of lessons."""
        counts = Counter(e.source for e in self.plan.examples)
        tokens = Counter()
        for e in self.plan.examples:
            tokens[e.source] += len(e.tokens)
        lines = [f"  {s}: {counts[s]:,} lessons, {tokens[s]:,} tokens" for s in sorted(counts)]
        total = sum(tokens.values()) * self.recipe.optimiser.epochs
        steps = len(self.plan.steps())
        head = f"{self.recipe.name}, seed {self.seed}: {steps:,} steps, {total:,} tokens"
        # Measured with SmolLM2-135M: 450 a second on two cores that do nothing else.
        return "\n".join([f"{head}, about {total / 450 / 60:.0f} minutes on two cores", *lines])


def prepare(recipe: Recipe, seed: int, base: Loaded | None = None) -> Prepared:
    """Write a recipe's lessons and put them into tokens (seconds to a minute).

    base: the loaded base where it is at hand; None: load the recipe's.
    """
    loaded = base or load(hub.resolve(recipe.base))
    codec = Codec(loaded.tokenizer)
    end = loaded.tokenizer.eos_token_id
    encoded = [encode(e, codec, end) for e in lessons(recipe.lessons, seed)]
    # Every lesson that is no fact takes part in the count, so each kind is watched.
    skills = [i for i, e in enumerate(encoded) if not e.source.startswith("statements")]
    kept = set(skills[::HELD_OUT])
    held_out = tuple(encoded[i] for i in sorted(kept))
    learned = [e for i, e in enumerate(encoded) if i not in kept]
    digest = _digest(learned)
    facts = [dataclasses.asdict(recipe), seed, loaded.weights.sha256, digest]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    plan = Plan(learned, recipe.lora, recipe.optimiser, seed, key)
    return Prepared(recipe, seed, loaded, plan, held_out, digest)


def train(prepared: Prepared, folder: Path) -> Path:
    """Train, or go on with, an adapter; -> its folder, with card and curve."""
    began = time.time()
    log.info(prepared.cost())
    fit(prepared.loaded, prepared.plan, folder, held_out=prepared.held_out)
    write_card(folder, prepared.loaded.weights, card(prepared, folder, time.time() - began))
    return folder


def card(prepared: Prepared, folder: Path, seconds: float) -> dict[str, Any]:
    """How an adapter came to be, as plain data. seconds: of the last sitting."""
    recipe, curve = prepared.recipe, read_curve(folder)
    checked = [row["held_out"] for row in curve if "held_out" in row]
    return {
        "name": recipe.name,
        "about": recipe.about,
        "recipe": json.loads(json.dumps(dataclasses.asdict(recipe))),
        "seed": prepared.seed,
        "lessons": dict(sorted(Counter(e.source for e in prepared.plan.examples).items())),
        "lessons_sha256": prepared.digest,
        "steps": len(curve),
        "tokens": sum(row["tokens"] for row in curve),
        "seconds": round(sum(row["seconds"] for row in curve)),
        "last_sitting_seconds": round(seconds),
        "held_out_loss": checked[-1] if checked else {},
        "weights_sha256": sha256(folder / "adapter_model.safetensors"),
        "made_on": environment(),
    }


def read_curve(folder: Path) -> list[dict[str, Any]]:
    """The learning curve beside an adapter."""
    text = (folder / "curve.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def folder_of(recipe: Recipe, seed: int) -> Path:
    """Where an adapter is kept: committed for the headline seed, local for the others."""
    if seed == recipe.seeds[0]:
        return hub.artifacts_folder() / recipe.name
    return (
        hub.artifacts_folder().parent / "results" / "local" / "artifacts" / f"{recipe.name}-{seed}"
    )


def is_made(prepared: Prepared, folder: Path) -> bool:
    """Whether the folder holds the adapter of just this recipe, seed, base and lessons."""
    path = folder / CARD
    if not path.is_file():
        return False
    have = json.loads(path.read_text(encoding="utf-8"))
    recipe = json.loads(json.dumps(dataclasses.asdict(prepared.recipe)))
    wanted = (recipe, prepared.seed, prepared.digest, prepared.loaded.weights.sha256)
    found = (have.get("recipe"), have.get("seed"), have.get("lessons_sha256"))
    return (*found, have["base"]["sha256"]) == wanted


def _digest(encoded: Sequence[Encoded]) -> str:
    """One hash of all lessons, in order."""
    digest = hashlib.sha256()
    for e in encoded:
        digest.update(repr((e.tokens, e.n_target)).encode())
    return digest.hexdigest()
