"""Names of retrievers, readers, encoders and classifiers: which there are, and what trains them.

Nothing is built or loaded here: a paper's YAML is checked by these before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rag_repro.lm import endpoint, hub
from rag_repro.retrieval import milvus, web
from rag_repro.retrieval.interface import SCHEMES, check_address
from rag_repro.retrieval.milvus_server import HOW
from rag_repro.words import choices, nearest

RETRIEVERS = Path(__file__).parent / "retrievers.yaml"
RECIPES = Path(__file__).parents[1] / "training" / "recipes.yaml"


DENSE = "dense:"
MILVUS = "milvus:"
OWN = "own:"
"""What begins the name of a user's retriever, which the workshop of its session alone has."""
FITTED = ("lsa",)
"""Encoders that are fitted on the corpus whose passages they encode; nothing is shipped of them."""
READERS = ("reader", "r2ag")
SCORERS = ("pairs", "complexity", "similarities", "relevance")
"""What a reader and a scorer can have been trained for (a recipe's task)."""


class UnknownService(ValueError):
    """A retriever or reader name that nobody knows."""


class Untrained(UnknownService):
    """A reader or classifier that a recipe makes, and nobody has made here."""


@cache
def known_retrievers() -> Mapping[str, Mapping[str, Any]]:
    return yaml.safe_load(RETRIEVERS.read_text(encoding="utf-8"))


@cache
def _recipes() -> Mapping[str, Mapping[str, Any]]:
    return yaml.safe_load(RECIPES.read_text(encoding="utf-8"))


def _made_by(name: str) -> tuple[str, str] | None:
    """The recipe that makes it, and the seed in NAME-SEED ("": that of the bare name), if any."""
    if name in _recipes():
        return name, ""
    recipe, _, seed = name.rpartition("-")
    if recipe in _recipes() and seed.isdecimal():
        bare = _recipes()[recipe].get("seeds", (0,))[0]
        return (recipe, seed) if seed != str(bare) else None
    return None


def train_command(name: str, tasks: tuple[str, ...] = READERS) -> str | None:
    """What makes it, be it a recipe's name or NAME-SEED: conditions may name it untrained.

    None: no recipe of these tasks makes it.
    """
    recipe, seed = _made_by(name) or ("", "")
    if not recipe or _recipes()[recipe]["task"] not in tasks:
        return None
    return f"rag-repro train {recipe} --seed {seed}" if seed else f"rag-repro train {recipe}"


def base_of(name: str) -> str:
    """The weights that a reader's trainings begin with; of what no recipe makes, its own name.

    A reader can be trained over one that was trained itself.
    """
    while train_command(name) is not None:
        name = trained_over(name)
    return name


def trained_over(name: str) -> str | None:
    """The reader that the training of this name began with; None: no recipe makes it."""
    made = _made_by(name)
    return made and _recipes()[made[0]]["base"]


def untrained(reader: str | None, needs: Mapping[str, str]) -> dict[str, str]:
    """What a condition with this reader and these needs lacks here -> what trains each.

    needs: name -> kind, as the method's settings have them.
    """
    of_kind = {"reader": READERS, "scorer": SCORERS}
    named = [(reader, "reader")] if reader else []
    commands = {}
    for name, kind in [*named, *needs.items()]:
        bare = scorer_name(name)[0] if kind == "scorer" else name
        if kind in of_kind and (command := train_command(bare, of_kind[kind])):
            commands[bare] = command
    return {name: command for name, command in commands.items() if name not in hub.artifacts()}


def ingredients(name: str) -> list[str]:
    """What is trained itself and goes into what is trained under this name, and is not here.

    A reader that a recipe begins with, or that checks its lessons.
    """
    recipe, _ = _made_by(name)
    words = _words(_recipes()[recipe])
    return [
        word
        for word in dict.fromkeys(words)
        if word != recipe and _made_by(word) and word not in hub.artifacts()
    ]


def _words(value: Any) -> Iterator[str]:
    """Every text in a recipe."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _words(part)


def scorer_name(name: str) -> tuple[str, int | None]:
    """As drrag-classifier-joint@256 -> the classifier, and its room in tokens, if given."""
    bare, at, room = name.rpartition("@")
    return (bare, int(room)) if at and room.isdecimal() else (name, None)


def check_retriever(name: str, known: Iterable[str] | None = None) -> None:
    """Raise UnknownService, with the nearest name, for no retriever's name; nothing is built."""
    known = known_retrievers() if known is None else known
    if name in known or name.startswith(DENSE):
        return
    if name.startswith(MILVUS):
        in_milvus(name)
    elif name.startswith(OWN):
        raise UnknownService(
            f"the retriever {name!r} is not in this session: give its function or object again"
        )
    elif set("/@?") & set(name):  # an address, or meant as one: it may hold a password
        web.parsed(name)
    else:
        raise UnknownService(f"there is no retriever {name!r}{choices(name, sorted(known))}")


def in_milvus(name: str) -> dict[str, Any]:
    """A retriever's name that begins with "milvus:" -> its settings.

    As "milvus:http://127.0.0.1:19530" (full text), the same with "#dense" or "#hybrid" behind
    it (MiniLM's vectors), or with "#dense=ENCODER". Raises UnknownService, MilvusError.
    """
    address, _, wish = name.removeprefix(MILVUS).partition("#")
    mode, _, encoder = wish.partition("=")
    made = {"kind": "milvus", "mode": mode or "bm25", "where": check_address(address, *HOW)}
    if made["mode"] not in milvus.MODES or (encoder and made["mode"] == "bm25"):
        raise UnknownService(
            f"behind the address stands #{', #'.join(milvus.MODES)}, or as "
            f"#dense=ENCODER{nearest(mode, milvus.MODES)}"
        )
    return made if made["mode"] == "bm25" else made | {"encoder": encoder or "minilm"}


def label(name: str | None) -> str | None:
    """A retriever's name as records hold it: of one at an address what it does, and not where.

    What was searched there stands in the record's fingerprint. Raises as `check_retriever`.
    """
    if name is None or not name.startswith((*SCHEMES, MILVUS)):
        return name
    check_retriever(name)
    _, hash, wish = name.partition("#")
    return ("milvus" if name.startswith(MILVUS) else "web") + hash + wish


def is_outside(name: str) -> bool:
    """Whether a retriever of that name is a service or a user's own: what it finds may be in no
    corpus."""
    served = known_retrievers().get(name, {}).get("kind") == "served"
    return served or name.startswith((*SCHEMES, OWN))


def check_reader(name: str) -> None:
    """Raise a ValueError, with the nearest name, for no reader's name; nothing is loaded.

    What looks like a folder is taken at its word, since it may lie elsewhere.
    """
    if name.startswith(endpoint.PREFIX):
        endpoint.parse(name)
    elif "/" not in name and train_command(name) is None:
        if (task := trained_for(name)) in SCORERS:
            raise UnknownService(f"{name} cannot be a reader: it is trained for {task!r}")
        hub.check_name(name)


def check_encoder(name: str) -> None:
    """Raise a ValueError, with the nearest name, for no encoder's name; nothing is loaded."""
    if name not in FITTED:
        hub.check_name(name)


def check_scorer(name: str) -> None:
    """Raise UnknownService, with the nearest name, for no classifier's name; nothing is loaded.

    A recipe's name, NAME-SEED, or an adapter's that is here, each with its room or without. What
    looks like a folder is taken at its word.
    """
    bare, _ = scorer_name(name)
    task = trained_for(bare)
    if "/" in bare or task in SCORERS:
        return
    if task is not None:
        raise UnknownService(f"{bare} cannot be a classifier: it is trained for {task!r}")
    recipes = [recipe for recipe, known in _recipes().items() if known["task"] in SCORERS]
    known = [*recipes, *(other for other in hub.artifacts() if other != bare)]
    raise UnknownService(
        f"there is no classifier {bare!r}{nearest(bare, known)}; there are: "
        f"{', '.join(recipes)}, and any folder that `rag-repro train` made"
    )


def trained_for(name: str) -> str | None:
    """The task of what a recipe makes, or of an adapter that is here; None: neither, or untold."""
    if made := _made_by(name):
        return _recipes()[made[0]]["task"]
    folder = hub.artifacts().get(name)
    return None if folder is None else hub.task_of(folder)
