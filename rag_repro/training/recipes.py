"""Recipes: what is trained, on what, and how long; read strictly from `recipes.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..plain import PlainError, from_yaml, text_of
from ..study.strict import strict, table
from ..words import nearest

RECIPES = Path(__file__).parent / "recipes.yaml"
TASKS = ("reader", "pairs")


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

    batch_tokens: padded tokens of one step. piece_tokens: how many of them are computed at
    once (a small piece stays in the processor's cache; a GPU wants them all). epochs: passes
    over all lessons.
    autocast: compute in bfloat16 (BigBird's sparse attention cannot).
    """

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    warmup: float = 0.03
    clip: float = 1.0
    batch_tokens: int = 4096
    piece_tokens: int = 2048
    epochs: int = 1
    autocast: bool = True


@dataclass(frozen=True)
class Recipe:
    """An adapter to be trained.

    task: "reader" or "pairs" (`training.run.TASKS`). lessons: for a reader parts in the form of
    `training.lessons.KINDS`, for pairs what `training.pairs.pairs` is told; mixed
    into one shuffled stream. seeds: one adapter each; the first is the headline one.
    """

    name: str
    about: str
    task: str
    base: str
    lessons: tuple[Mapping[str, Any], ...]
    lora: Lora = field(default_factory=Lora)
    optimiser: Optimiser = field(default_factory=Optimiser)
    seeds: tuple[int, ...] = (0,)


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
