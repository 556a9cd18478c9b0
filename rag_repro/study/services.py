"""The workshop: data sets, indexes and readers by name, each made once and shared."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from .. import data
from ..cache import CachedEncoder, CachedReader, CachedScorer, Store
from ..data.dataset import Corpus, Dataset
from ..lm.hub import cache_folder
from ..retrieval import web
from ..words import nearest
from .conditions import Condition

RETRIEVERS = Path(__file__).parent / "retrievers.yaml"
RECIPES = Path(__file__).parents[1] / "training" / "recipes.yaml"


DENSE = "dense:"
FITTED = ("lsa",)
"""Encoders that are fitted on the corpus whose passages they encode; nothing is shipped of them."""
READERS = ("reader", "r2ag")
SCORERS = ("pairs", "complexity", "similarities", "relevance")
"""What a reader and a scorer can have been trained for (a recipe's task)."""


class UnknownService(ValueError):
    """A retriever or reader name that nobody knows."""


@cache
def _retrievers() -> Mapping[str, Mapping[str, Any]]:
    return yaml.safe_load(RETRIEVERS.read_text(encoding="utf-8"))


@cache
def _to_be_trained(tasks: tuple[str, ...] = READERS) -> Mapping[str, int]:
    """Readers (or others) that a recipe makes, with the seed that bears the bare name."""
    recipes = yaml.safe_load(RECIPES.read_text(encoding="utf-8"))
    return {
        name: recipe.get("seeds", (0,))[0]
        for name, recipe in recipes.items()
        if recipe["task"] in tasks
    }


def train_command(name: str, tasks: tuple[str, ...] = READERS) -> str | None:
    """What makes it, be it a recipe's name or NAME-SEED: conditions may name it untrained.

    None: no recipe of these tasks makes it.
    """
    known = _to_be_trained(tasks)
    if name in known:
        return f"rag-repro train {name}"
    recipe, _, seed = name.rpartition("-")
    if recipe in known and seed.isdecimal() and seed != str(known[recipe]):
        return f"rag-repro train {recipe} --seed {seed}"
    return None


def scorer_name(name: str) -> tuple[str, int | None]:
    """As drrag-classifier-joint@256 -> the classifier, and its room in tokens, if given."""
    bare, at, room = name.rpartition("@")
    return (bare, int(room)) if at and room.isdecimal() else (name, None)


def check_retriever(name: str, known: Iterable[str] | None = None) -> None:
    """Raise UnknownService, with the nearest name, for no retriever's name; nothing is built."""
    known = _retrievers() if known is None else known
    if name.startswith(web.SCHEMES):
        web.parsed(name)
    elif name not in known and not name.startswith(DENSE):
        raise UnknownService(
            f"there is no retriever {name!r}{nearest(name, known)}; "
            f"there are: {', '.join(sorted(known))}"
        )


def is_outside(name: str) -> bool:
    """Whether a retriever of that name asks a service, which may say what is in no corpus."""
    return name.startswith(web.SCHEMES) or _retrievers().get(name, {}).get("kind") == "served"


def check_reader(name: str) -> None:
    """Raise a ValueError, with the nearest name, for no reader's name; nothing is loaded.

    What looks like a folder is taken at its word, since it may lie elsewhere.
    """
    from ..lm import endpoint, hub

    if name.startswith(endpoint.PREFIX):
        endpoint.parse(name)
    elif "/" not in name and train_command(name) is None:
        if (task := _trained_for(name)) in SCORERS:
            raise UnknownService(f"{name} cannot be a reader: it is trained for {task!r}")
        hub.check_name(name)


def check_encoder(name: str) -> None:
    """Raise a ValueError, with the nearest name, for no encoder's name; nothing is loaded."""
    from ..lm import hub

    if name not in FITTED:
        hub.check_name(name)


def check_scorer(name: str) -> None:
    """Raise UnknownService, with the nearest name, for no classifier's name; nothing is loaded.

    A recipe's name, NAME-SEED, or an adapter's that is here, each with its room or without. What
    looks like a folder is taken at its word.
    """
    from ..lm import hub

    bare, _ = scorer_name(name)
    task = _trained_for(bare)
    if "/" in bare or task in SCORERS:
        return
    if task is not None:
        raise UnknownService(f"{bare} cannot be a classifier: it is trained for {task!r}")
    recipes = _to_be_trained(SCORERS)
    known = [*recipes, *(other for other in hub.artifacts() if other != bare)]
    raise UnknownService(
        f"there is no classifier {bare!r}{nearest(bare, known)}; there are: "
        f"{', '.join(recipes)}, and any folder that `rag-repro train` made"
    )


def _trained_for(name: str) -> str | None:
    """The task of what a recipe makes, or of an adapter that is here; None: neither, or untold."""
    from ..lm import adapters, hub

    for task in (*READERS, *SCORERS):
        if train_command(name, (task,)):
            return task
    folder = hub.artifacts().get(name)
    return None if folder is None else adapters.task_of(folder)


@dataclass
class Workshop:
    """Makes what conditions name, and keeps it.

    data_dir: folder of real data; None: the one that RAG_REPRO_DATA names.
    device, dtype: where and how readers compute. retrievers: further ones by
    name, in the form of retrievers.yaml.
    """

    data_dir: Path | None = None
    device: str = "cpu"
    dtype: str = "float32"
    batch_size: int = 16
    retrievers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _made: dict[tuple, Any] = field(default_factory=dict, repr=False)

    def dataset(self, name: str, split: str | None) -> Dataset:
        """The split's questions (None or "all": every one) over the whole corpus."""
        split = None if split == "all" else split
        return self._once(
            ("dataset", name, split), lambda: data.load(name, data_dir=self.data_dir, split=split)
        )

    def retriever(self, name: str, corpus: Corpus) -> Any:
        """A retriever over the corpus, by the name that conditions use.

        `dense:NAME` searches with any encoder that `lm.hub` resolves: a local
        folder, or a hub id with its revision. An address, as http://127.0.0.1:8765, is that
        of a search service (`retrieval.web.parsed`).
        """
        settings = self._settings(name)
        return self._once(
            ("retriever", name, corpus.sha256), lambda: self._build(corpus, **settings)
        )

    def _settings(self, name: str) -> dict[str, Any]:
        """Kind and settings of a retriever by name."""
        known = {**_retrievers(), **self.retrievers}
        check_retriever(name, known)
        if name.startswith(DENSE):
            return {"kind": "dense", "encoder": name.removeprefix(DENSE)}
        if name.startswith(web.SCHEMES):
            return {"kind": "web", **web.parsed(name)}
        return dict(known[name])

    def _build(self, corpus: Corpus, kind: str, **settings: Any) -> Any:
        from .. import retrieval

        if kind == "served":
            return web.Served(self.retriever(settings.pop("of"), corpus), **settings)
        if kind == "web":
            return web.WebSearch(corpus=corpus, **settings)
        if "encoder" not in settings:
            return retrieval.build(kind, corpus, **settings)
        encoder = self.encoder_over(settings["encoder"], corpus)
        if settings["encoder"] in FITTED:
            # Its axes may turn with the last digits; vectors kept on disk would not turn along.
            return retrieval.Dense(corpus, **{**settings, "encoder": encoder})
        folder = self._folder(corpus, kind, **settings)
        return retrieval.Dense.at(folder, corpus, **{**settings, "encoder": encoder})

    def _folder(self, corpus: Corpus, kind: str, encoder: str, **settings: Any) -> Path:
        """Where an index is kept on disk, since encoding a corpus takes minutes."""
        made = [self.encoder(encoder).fingerprint, metadata.version("faiss-cpu")]
        key = json.dumps([kind, settings, made, corpus.sha256], sort_keys=True)
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        return cache_folder() / "indexes" / f"{corpus.name}-{kind}-{name}"

    def ready(self, condition: Condition) -> bool:
        """Whether the condition can be asked at once: nothing to train, no corpus to encode."""
        from ..lm import hub

        trained = hub.artifacts()
        needs = condition.configured.needs.items()
        scorers = [scorer_name(name)[0] for name, kind in needs if kind == "scorer"]
        named = [condition.reader, *(name for name, kind in needs if kind == "reader")]
        readers = [name for name in named if name and train_command(name)]
        if any(name not in trained and "/" not in name for name in [*scorers, *readers]):
            return False
        if condition.retriever is None:
            return True
        if "reservoir" in condition.configured.needs.values() and not self._filled(condition):
            return False
        settings = self._settings(condition.retriever)
        if settings.get("encoder") in (None, *FITTED):
            return True
        corpus = self.dataset(condition.dataset, condition.split).corpus
        return self._folder(corpus, **settings).is_dir()

    def _filled(self, condition: Condition) -> bool:
        """Whether its memory is there, or begins empty."""
        from . import reservoirs

        return condition.configured.memory != "filled" or reservoirs.is_filled(condition, self)

    def encoder(self, name: str) -> Any:
        """A sentence encoder by the name that `lm.hub` knows (of no corpus: `encoder_over`)."""
        from ..lm import encoder, hub

        return self._once(
            ("encoder", name),
            lambda: CachedEncoder(
                encoder.SentenceEncoder(hub.resolve(name), device=self.device), self.store
            ),
        )

    def encoder_over(self, name: str, corpus: Corpus) -> Any:
        """The encoder for texts about this corpus: fitted on it where it is one of `FITTED`."""
        if name not in FITTED:
            return self.encoder(name)
        from ..retrieval.latent import LatentSemantics

        return self._once(("encoder", name, corpus.sha256), lambda: LatentSemantics(corpus))

    def reader(self, name: str) -> Any:
        """A reader by the name that `lm.hub` knows, or at an endpoint: `api:MODEL@URL`.

        An endpoint's key comes from RAG_REPRO_API_KEY, where it is set.
        """
        return self._once(("reader", name), lambda: CachedReader(self._reader(name), self.store))

    def _reader(self, name: str) -> Any:
        from ..lm import endpoint

        if name.startswith(endpoint.PREFIX):
            from ..lm.api import ApiReader

            model, url = endpoint.parse(name)
            key = endpoint.KEY_VARIABLE
            return ApiReader(url, model, key=key if os.environ.get(key) else None)
        from ..lm import hub, local

        if (command := train_command(name)) and name not in hub.artifacts():
            raise UnknownService(f"the reader {name!r} is not trained on this machine: {command}")
        return local.LocalReader(
            hub.resolve(name), device=self.device, dtype=self.dtype, batch_size=self.batch_size
        )

    def scorer(self, name: str) -> Any:
        """A trained classifier by the name of its recipe (NAME-SEED: of another seed), or its
        folder; a cross-encoder's NAME@256 gives each pair room for 256 tokens.
        """
        return self._once(("scorer", name), lambda: CachedScorer(self._scorer(name), self.store))

    def _scorer(self, name: str) -> Any:
        from ..lm import adapters, complexity, hub, pairs
        from ..lm.similarities import SimilarityClassifier

        name, room = scorer_name(name)
        if (command := train_command(name, SCORERS)) and name not in hub.artifacts():
            raise UnknownService(
                f"the classifier {name!r} is not trained on this machine: {command}"
            )
        weights = hub.resolve(name)
        task = adapters.task_of(weights.path) if weights.base else SCORERS[0]
        if task not in SCORERS:
            raise UnknownService(
                f"{name} cannot be a scorer: its card says that it was trained for {task!r}, "
                f"and scorers are trained for {' or '.join(map(repr, SCORERS))}"
            )
        if task == "similarities":
            if room is not None:
                raise UnknownService(
                    f"{name}@{room}: it compares single texts and has no room to give; "
                    f"leave @{room} out"
                )
            return SimilarityClassifier(weights, self.encoder(weights.base.name))
        made = {
            "pairs": pairs.PairClassifier,
            "relevance": pairs.RelevanceClassifier,
            "complexity": complexity.ComplexityClassifier,
        }
        return made[task](weights, device=self.device, room=room)

    def reservoir(self, condition: Condition) -> Any:
        """The memory of the condition: filled now where it is not yet, or a new one for each run.

        Raises reservoir_file.ReservoirFileError where it cannot be filled.
        """
        from . import reservoirs

        key = reservoirs.key(condition)
        if key is None:
            return reservoirs.made(condition, self)
        corpus = self.dataset(condition.dataset, condition.split).corpus.sha256
        return self._once(("reservoir", corpus, *key), lambda: reservoirs.made(condition, self))

    @property
    def store(self) -> Store:
        """The call cache, beside the weights."""
        return self._once(("store",), lambda: Store(cache_folder() / "calls.sqlite"))

    def services(self, condition: Condition) -> dict[str, Any]:
        """What the engine needs to answer the condition's questions."""
        services: dict[str, Any] = {}
        if condition.retriever is not None:
            corpus = self.dataset(condition.dataset, condition.split).corpus
            services["retriever"] = self.retriever(condition.retriever, corpus)
            by_name = {
                "scorer": self.scorer,
                "encoder": lambda name: self.encoder_over(name, corpus),
                "reader": self.reader,
                "reservoir": lambda name: self.reservoir(condition),
            }
            for name, kind in condition.configured.needs.items():
                services[name] = (
                    by_name[kind](name) if kind in by_name else self.retriever(name, corpus)
                )
        if condition.reader is not None:
            services["reader"] = self.reader(condition.reader)
        return services

    def fingerprint(self, condition: Condition) -> dict[str, Any]:
        """What can change the condition's results besides its own words."""
        dataset = self.dataset(condition.dataset, condition.split)
        made = {
            name: service.fingerprint for name, service in sorted(self.services(condition).items())
        }
        return {
            "corpus": dataset.corpus.sha256,
            "passages": len(dataset.corpus),
            "questions": dataset.questions_sha256,
            **made,
        }

    def _once(self, key: tuple, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
