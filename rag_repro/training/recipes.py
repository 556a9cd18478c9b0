"""Recipes: what is trained, on what, and how long; read from `recipes.yaml`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_repro.plain import from_yaml, text_of
from rag_repro.study.yaml_files import build
from rag_repro.words import choices

RECIPES = Path(__file__).parent / "recipes.yaml"


class RecipeError(ValueError):
    """A recipe that does not exist, or asks for what cannot be had."""


@dataclass(frozen=True)
class Lora:
    """Low-rank adaptation. targets: "all-linear", or names of modules.

    whole: names of modules that are learned in full instead, and stored so.
    """

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    targets: str | Sequence[str] = "all-linear"
    whole: Sequence[str] = ()


@dataclass(frozen=True)
class Optimiser:
    """AdamW with a linear warm-up and a cosine to nothing.

    batch_tokens: padded tokens of one step. batch_rows: and at most so many examples; facts
    are learned by heart in many small steps, which tokens alone do not make of short lessons.
    piece_tokens: how many of them are computed at
    once (a small piece stays in the processor's cache; a GPU wants them all). epochs: passes
    over all lessons, at most. checks: looks at held-out examples, evenly over all steps; None:
    the task's own number. patience: the run stops after so many looks without a new lowest
    held-out loss; None: it takes all steps. The weights of the lowest are kept either way.
    autocast: compute in bfloat16 where the device is fast in it (never for BigBird, which cannot).
    """

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    warmup: float = 0.03
    clip: float = 1.0
    batch_tokens: int = 4096
    batch_rows: int | None = None
    piece_tokens: int = 2048
    epochs: int = 1
    autocast: bool = True
    checks: int | None = None
    patience: int | None = None


@dataclass(frozen=True)
class Former:
    """What stands between retriever and reader (task r2ag), learned with or without the reader.

    encoder, inputs, columns, similarity: as `methods.r2ag` has them: what the former is told.
    qdm: the weight of the query-document matching in the loss; 0: none. reduction: a list's
    matching loss is the mean over its passages (the authors' code), or their sum (equation 8).
    stages: "joint": matching and answers at once; "separate": all of the one, then the other
    alone. head_start: how often the lists are matched before the reader is asked for the first
    time (once at least where stages are separate). It costs seconds, for no token is read;
    without it a former of few steps knows the places of a list and little of its features.
    places: the longest list. position_start: as `lm.former.R2Former` has it. prompt: the
    reading prompt with places that its lists are read in.
    """

    encoder: str = "minilm"
    inputs: str = "features"
    columns: Sequence[str] = ("relevance", "precedent", "neighbour")
    similarity: str = "cosine"
    qdm: float = 1.0
    reduction: str = "mean"
    stages: str = "joint"
    head_start: int = 0
    dropout: float = 0.1
    places: int = 20
    position_start: float = 0.02
    prompt: str = "r2ag"


@dataclass(frozen=True)
class Recipe:
    """What is to be trained, as an adapter.

    task: one of `training.run.TASKS`. lessons: for a reader parts in the form of
    `training.lessons.KINDS`, for pairs and similarities what `training.pair_training.pairs` is
    told, for relevance what `training.pair_training.relevance` is told, for complexity parts in
    the form of `training.complexity.KINDS`, for r2ag what `training.r2ag.load_lists` is told; mixed
    into one shuffled stream. lora None, and former: for
    r2ag only, where the reader may stay as it is and something before it learns. seeds: one
    adapter each; the first is the headline one. local: none of them is committed. base: a
    name that `lm.hub` knows; without its commit a hub's needs `on`. dtype: how a reader's base
    is held while low-rank matrices are learned over it, "nf4" being four bits (the extra `gpu`).
    """

    name: str
    about: str
    task: str
    base: str
    lessons: tuple[Mapping[str, Any], ...]
    lora: Lora | None = field(default_factory=Lora)
    optimiser: Optimiser = field(default_factory=Optimiser)
    seeds: tuple[int, ...] = (0,)
    local: bool = False
    former: Former | None = None
    dtype: str = "float32"

    @property
    def facts(self) -> dict[str, Any]:
        """All that makes the adapter, as plain data; where it is kept is no part of it."""
        made = json.loads(json.dumps(asdict(self)))
        del made["local"]
        # As cards have it from before there was one.
        if self.dtype == "float32":
            del made["dtype"]
        if self.former is None:
            del made["former"]
        elif self.former.prompt == "r2ag":
            del made["former"]["prompt"]
        if self.lora is not None and not self.lora.whole:
            del made["lora"]["whole"]
        for name in ("batch_rows", "checks", "patience"):  # as cards have it from before
            if made["optimiser"][name] is None:
                del made["optimiser"][name]
        return made

    @property
    def makes(self) -> dict[str, Any]:
        """The facts without those that change no weight: what it is about, and further seeds."""
        return making(self.facts)

    def on(self, base: str | None) -> Recipe:
        """The recipe over another base; None: its own. RecipeError: a hub's without a commit.

        What is made over another base is local and has a name of its own, "NAME-over-BASE": the
        recipe's own adapter and card stay. But a hub's base that was only wanting its commit is
        the recipe's own.
        """
        base = base or self.base
        own = self.base in (base, base.partition("@")[0])
        name = self.name if own else f"{self.name}-over-{_slug(base)}"
        local = self.local or base != self.base
        if base.startswith("hub:") and "@" not in base:
            raise RecipeError(
                f"the base of {self.name} is not pinned, since nobody has run it yet; name its "
                f"commit: rag-repro train {self.name} --base {base}@COMMIT"
            )
        return replace(self, name=name, base=base, local=local)


def making(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Of a recipe's facts, as its card has them, those that the weights depend on."""
    return {name: value for name, value in facts.items() if name not in ("about", "seeds")}


def _slug(base: str) -> str:
    """A base as part of a folder's name: its last part, without the commit."""
    return re.sub(r"[^\w.-]+", "-", Path(base.partition("@")[0]).name).lower()


def recipes() -> dict[str, Recipe]:
    """All recipes by name."""
    given = from_yaml(text_of(RECIPES))
    return {name: build(Recipe, {"name": name, **one}, name) for name, one in given.items()}


def recipe(name: str) -> Recipe:
    """The recipe of that name; an unknown name is refused with the nearest one."""
    known = recipes()
    if name not in known:
        raise RecipeError(f"there is no recipe {name!r}{choices(name, known)}")
    return known[name]
