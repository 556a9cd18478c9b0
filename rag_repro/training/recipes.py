"""Recipes: what is trained, on what, and how long; read strictly from `recipes.yaml`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

from ..plain import PlainError, from_yaml, text_of
from ..study.strict import strict, table
from ..words import nearest

RECIPES = Path(__file__).parent / "recipes.yaml"
TASKS = ("reader", "pairs", "complexity", "similarities")


class RecipeError(ValueError):
    """A recipe that does not exist, or is written wrongly."""


@dataclass(frozen=True)
class Lora:
    """Low-rank adaptation. targets: "all-linear", or names of modules."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    targets: str | tuple[str, ...] = "all-linear"


@dataclass(frozen=True)
class Optimiser:
    """AdamW with a linear warm-up and a cosine to nothing.

    batch_tokens: padded tokens of one step. batch_rows: and at most so many examples; facts
    are learned by heart in many small steps, which tokens alone do not make of short lessons.
    piece_tokens: how many of them are computed at
    once (a small piece stays in the processor's cache; a GPU wants them all). epochs: passes
    over all lessons.
    autocast: compute in bfloat16 (BigBird's sparse attention cannot).
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


@dataclass(frozen=True)
class Recipe:
    """An adapter to be trained.

    task: one of `training.run.TASKS`. lessons: for a reader parts in the form of
    `training.lessons.KINDS`, for pairs and similarities what `training.pairs.pairs` is told, for
    complexity parts in the form of `training.complexity.KINDS`; mixed into one shuffled
    stream. seeds: one adapter each; the first is the headline one. local: none of them is
    committed. base: a name that `lm.hub` knows; without its commit a hub's needs `on`.
    """

    name: str
    about: str
    task: str
    base: str
    lessons: tuple[Mapping[str, Any], ...]
    lora: Lora = field(default_factory=Lora)
    optimiser: Optimiser = field(default_factory=Optimiser)
    seeds: tuple[int, ...] = (0,)
    local: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """All that makes the adapter, as plain data; where it is kept is no part of it."""
        made = json.loads(json.dumps(asdict(self)))
        del made["local"]
        if self.optimiser.batch_rows is None:  # as cards have it from before there was one
            del made["optimiser"]["batch_rows"]
        return made

    def on(self, base: str | None) -> Recipe:
        """The recipe over another base; None: its own. RecipeError: a hub's without a commit.

        What is made over another base is local: the committed adapter is the recipe's own.
        """
        local = self.local or base not in (None, self.base)
        base = base or self.base
        if base.startswith("hub:") and "@" not in base:
            raise RecipeError(
                f"the base of {self.name} is not pinned, since nobody has run it yet; name its "
                f"commit: rag-repro train {self.name} --base {base}@COMMIT"
            )
        return replace(self, base=base, local=local)


def recipes() -> dict[str, Recipe]:
    """All recipes by name. ValueError: a key or value that cannot be, named with its place."""
    try:
        given = table(from_yaml(text_of(RECIPES)), RECIPES.name)
    except PlainError as error:
        raise RecipeError(f"{RECIPES.name}: {error}") from error
    return {name: _recipe(name, one) for name, one in given.items()}


def recipe(name: str) -> Recipe:
    """The recipe of that name; an unknown name is refused with the nearest one."""
    known = recipes()
    if name not in known:
        raise RecipeError(
            f"there is no recipe {name!r}{nearest(name, known)}; there are: {', '.join(known)}"
        )
    return known[name]


def called(function: Callable[..., Any], what: str, part: Mapping[str, Any], **ours: Any) -> Any:
    """function(**part, **ours): what a part of a recipe asks for, and what it may not set.

    RecipeError: a key too many or too few. An error inside the function is no recipe's
    fault, and stays what it is.
    """
    for name in part:
        if name in ours:
            raise RecipeError(f"{what}: {name} is not the recipe's to set; leave it out")
    try:
        signature(function).bind(**part, **ours)
    except TypeError as error:
        raise RecipeError(f"{what}: {error}") from None
    return function(**part, **ours)


def _recipe(name: str, given: Any) -> Recipe:
    where = f"{RECIPES.name}: {name}"
    given = table(given, where)
    parts = {key: table(given.pop(key, None), f"{where}: {key}") for key in ("lora", "optimiser")}
    lists = {key: tuple(given[key]) for key in ("lessons", "seeds") if key in given}
    made = {
        "lora": strict(Lora, parts["lora"], f"{where}: lora"),
        "optimiser": strict(Optimiser, parts["optimiser"], f"{where}: optimiser"),
    }
    recipe = strict(Recipe, {"name": name, **given, **lists, **made}, where)
    if recipe.task not in TASKS:
        raise RecipeError(
            f"{where}: no task {recipe.task!r}{nearest(recipe.task, TASKS)}; "
            f"there are: {', '.join(TASKS)}"
        )
    return recipe
