"""The workshop: data sets, indexes and readers by name, each made once and shared."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rag_repro import data, retrieval
from rag_repro.bars import waiting
from rag_repro.cache import LIBRARIES, CachedEncoder, CachedReader, CachedScorer, Store
from rag_repro.lm import endpoint, hub
from rag_repro.lm.hub import cache_folder, is_remote, lacking
from rag_repro.methods.base import MethodSpec, Settings
from rag_repro.retrieval import web
from rag_repro.retrieval.dense import LatentSemantics
from rag_repro.retrieval.interface import SCHEMES
from rag_repro.schema import Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.study import names
from rag_repro.study.conditions import Condition
from rag_repro.study.names import FITTED, SCORERS, UnknownService, Untrained

log = logging.getLogger(__name__)


@dataclass
class Workshop:
    """Makes what conditions name, and keeps it.

    data_dir: folder of real data; None: the one that RAG_REPRO_DATA names.
    device, dtype: where and how readers compute. in_flight: requests at once at each server of
    a reader at an endpoint. retrievers: further ones by name, in the form of retrievers.yaml.
    """

    data_dir: Path | None = None
    device: str = "cpu"
    dtype: str = "float32"
    batch_size: int = 16
    in_flight: int = 4
    retrievers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _made: dict[tuple, Any] = field(default_factory=dict, repr=False)

    def dataset(self, name: str, split: str | None) -> Dataset:
        """The split's questions (None or "all": every one) over the whole corpus."""
        split = None if split == "all" else split
        return self._once(
            ("dataset", name, split), lambda: data.load(name, data_dir=self.data_dir, split=split)
        )

    def named(self, retriever: Any) -> str | None:
        """The name by which conditions know a retriever: a name as it is; for a user's own (what
        `retrieval.adapt` takes) one that this workshop knows from now on.

        Raises RetrievalError for what cannot be a retriever, or has no name by itself.
        """
        if retriever is None or isinstance(retriever, str):
            return retriever
        own = retrieval.adapt(retriever)
        name = names.OWN + own.name
        self.retrievers = {**self.retrievers, name: {"kind": "own", "own": own}}
        for key in [key for key in self._made if key[:2] == ("retriever", name)]:
            del self._made[key]  # what had the name before
        return name

    def retriever(self, name: Any, corpus: Corpus) -> Any:
        """A retriever over the corpus, by the name that conditions use, or a user's own.

        `dense:NAME` searches with any encoder that `lm.hub` resolves: a local
        folder, or a hub id with its revision. An address, as http://127.0.0.1:8765, is that
        of a search service (`retrieval.web.parsed`), `milvus:ADDRESS` that of a Milvus
        (`names.in_milvus`), which must hold the corpus; the embedded one is filled here.
        """
        if not isinstance(name, str):
            return self._build(corpus, "own", own=retrieval.adapt(name))
        settings, key = self.settings_of(name), ("retriever", name, corpus.sha256)
        if settings["kind"] == "milvus":
            from rag_repro.study import corpora

            return self._once(key, lambda: corpora.filled(name, corpus, self))
        return self._once(key, lambda: self._build(corpus, **settings))

    def settings_of(self, name: str) -> dict[str, Any]:
        """Kind and settings of a retriever by name."""
        known = {**names.known_retrievers(), **self.retrievers}
        names.check_retriever(name, known)
        if name.startswith(names.DENSE):
            return {"kind": "dense", "encoder": name.removeprefix(names.DENSE)}
        if name.startswith(SCHEMES):
            return {"kind": "web", **web.parsed(name)}
        if name.startswith(names.MILVUS):
            return names.in_milvus(name)
        return dict(known[name])

    def _build(self, corpus: Corpus, kind: str, **settings: Any) -> Any:
        if kind == "own":
            return settings["own"].over(corpus, lambda name: self.encoder_over(name, corpus))
        if kind == "served":
            return web.Served(self.retriever(settings.pop("of"), corpus), **settings)
        if kind == "web":
            return web.WebSearch(corpus=corpus, **settings)
        if "encoder" not in settings:
            return retrieval.build(kind, corpus, **settings)
        given = {**settings, "encoder": self.encoder_over(settings["encoder"], corpus)}
        if settings["encoder"] in FITTED:
            # Its axes may turn with the last digits; vectors kept on disk would not turn along.
            return retrieval.Dense(corpus, **given)
        folder = self._folder(corpus, kind, **settings)
        try:
            return retrieval.Dense(corpus, folder=folder, **given)
        except retrieval.StoreError as error:
            log.warning("%s: it is done now", error)
            shutil.rmtree(folder)
            return retrieval.Dense(corpus, folder=folder, **given)

    def _folder(self, corpus: Corpus, kind: str, encoder: str, **settings: Any) -> Path:
        """Where an index is kept on disk, since encoding a corpus takes minutes."""
        made = [self.encoder(encoder).fingerprint, metadata.version("faiss-cpu")]
        key = json.dumps([kind, settings, made, corpus.sha256], sort_keys=True)
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        return self._indexes / f"{corpus.name}-{kind}-{name}"

    @property
    def _indexes(self) -> Path:
        return cache_folder() / "indexes"

    def lacks(self, condition: Condition, *, small: int = 0) -> str | None:
        """What keeps the condition from being asked at once, in words; None: nothing does.

        Weights that are trained or downloaded first, a package of them, a memory that is filled
        first, or an index over a corpus, which takes minutes to encode.
        small: an index over at most as many passages does not count.
        """
        needs = condition.configured.needs
        if names.untrained(condition.reader, needs):
            return "trained weights"
        retrieving = condition.retriever is not None
        settings = self.settings_of(condition.retriever) if retrieving else {}
        weights = (condition.reader, *needs, settings.get("encoder"))
        if any(lacking(name) for name in weights):
            return "a package of weights"
        if any(name and is_remote(name) for name in weights):
            return "weights to download"
        if not retrieving:
            return None
        if "reservoir" in needs.values() and condition.configured.memory == "filled":
            from rag_repro.study import reservoirs

            if not reservoirs.is_filled(condition, self):
                return "a filled memory"
        return None if self._indexed(condition, settings, small) else "an index"

    def _indexed(self, condition: Condition, settings: Mapping[str, Any], small: int) -> bool:
        """Whether its retriever's index is kept, or takes little time."""
        kind, encoder = settings["kind"], settings.get("encoder")
        if kind != "milvus" and encoder in (None, *FITTED):
            return True
        if kind != "milvus" and not (small or self._indexes.is_dir()):
            return False  # a new machine has none: its corpora need not be made to know that
        corpus = self.dataset(condition.dataset, condition.split).corpus
        if kind != "milvus" and len(corpus) <= small:
            return True
        if kind == "milvus":
            from rag_repro.study import corpora

            return corpora.is_filled(condition.retriever, corpus, self)
        return self._folder(corpus, **settings).is_dir()

    def encoder(self, name: str) -> Any:
        """A sentence encoder by the name that `lm.hub` knows (of no corpus: `encoder_over`)."""
        from rag_repro.lm import load

        return self._once(
            ("encoder", name),
            lambda: CachedEncoder(
                load.SentenceEncoder(hub.resolve(name), device=self.device), self.store
            ),
        )

    def encoder_over(self, name: str, corpus: Corpus) -> Any:
        """The encoder for texts about this corpus: fitted on it where it is one of `FITTED`."""
        if name not in FITTED:
            return self.encoder(name)
        return self._once(("encoder", name, corpus.sha256), lambda: LatentSemantics(corpus))

    def reader(self, name: str) -> Any:
        """A reader by the name that `lm.hub` knows, or at an endpoint: `api:MODEL@URL,URL`.

        An endpoint's key comes from RAG_REPRO_API_KEY, where it is set; all its servers get it.
        """
        libraries = () if name.startswith(endpoint.PREFIX) else LIBRARIES
        return self._once(
            ("reader", name), lambda: CachedReader(self._reader(name), self.store, libraries)
        )

    def _reader(self, name: str) -> Any:
        if name.startswith(endpoint.PREFIX):
            from rag_repro.lm.api import ApiReader

            model, urls = endpoint.parse(name)
            key = endpoint.KEY_VARIABLE
            return ApiReader(
                ",".join(urls),
                model,
                key=key if os.environ.get(key) else None,
                in_flight=self.in_flight,
            )
        from rag_repro.lm import local

        if (command := names.train_command(name)) and name not in hub.artifacts():
            raise Untrained(f"the reader {name!r} is not trained on this machine: {command}")
        return local.LocalReader(
            hub.resolve(name), device=self.device, dtype=self.dtype, batch_size=self.batch_size
        )

    def scorer(self, name: str) -> Any:
        """A trained classifier by the name of its recipe (NAME-SEED: of another seed), or its
        folder; a cross-encoder's NAME@256 gives each pair room for 256 tokens.
        """
        return self._once(("scorer", name), lambda: CachedScorer(self._scorer(name), self.store))

    def _scorer(self, name: str) -> Any:
        from rag_repro.lm import pair_scorers

        name, room = names.scorer_name(name)
        if (command := names.train_command(name, SCORERS)) and name not in hub.artifacts():
            raise Untrained(f"the classifier {name!r} is not trained on this machine: {command}")
        weights = hub.resolve(name)
        task = hub.task_of(weights.path) if weights.base else SCORERS[0]
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
            return pair_scorers.SimilarityClassifier(weights, self.encoder(weights.base.name))
        made = {
            "pairs": pair_scorers.PairClassifier,
            "relevance": pair_scorers.RelevanceClassifier,
            "complexity": pair_scorers.ComplexityClassifier,
        }
        return made[task](weights, device=self.device, room=room)

    def reservoir(self, condition: Condition) -> Any:
        """The memory of the condition: filled now where it is not yet, or a new one for each run.

        Raises reservoirs.ReservoirError where it cannot be filled.
        """
        from rag_repro.study import reservoirs

        key = reservoirs.key(condition)
        if key is None:
            return reservoirs.build_reservoir(condition, self)
        corpus = self.dataset(condition.dataset, condition.split).corpus.sha256
        return self._once(
            ("reservoir", corpus, *key), lambda: reservoirs.build_reservoir(condition, self)
        )

    @property
    def store(self) -> Store:
        """The call cache, beside the weights."""
        return self._once(("store",), lambda: Store(cache_folder() / "answers.sqlite"))

    def services(self, condition: Condition) -> dict[str, Any]:
        """What the engine needs to answer the condition's questions."""
        dataset = self.dataset(condition.dataset, condition.split)
        corpus = dataset.corpus
        if condition.retriever is not None and names.is_outside(condition.retriever):
            outside = self.retriever(condition.retriever, corpus)
            refuse_limits(outside, condition.spec, condition.configured, dataset.questions[:1])
        # A method without a retriever may need others: a rewriter, where nothing is searched.
        services = {
            name: self.reservoir(condition)
            if kind == "reservoir"
            else self.over_corpus(kind, name, corpus)
            for name, kind in condition.configured.needs.items()
        }
        if condition.retriever is not None:
            services["retriever"] = self.retriever(condition.retriever, corpus)
        if condition.reader is not None:
            services["reader"] = self.reader(condition.reader)
        return services

    def over_corpus(self, kind: str, name: str, corpus: Corpus) -> Any:
        """What a method needs over a corpus: `kind` as its settings' `needs` have it, but for a
        memory, which is a condition's (`reservoir`)."""
        return {
            "scorer": self.scorer,
            "encoder": lambda name: self.encoder_over(name, corpus),
            "reader": self.reader,
            "retriever": lambda name: self.retriever(name, corpus),
        }[kind](name)

    def fingerprint(self, condition: Condition) -> dict[str, Any]:
        """What can change the condition's results besides its own words."""
        dataset = self.dataset(condition.dataset, condition.split)
        made = {
            endpoint.label(name): service.fingerprint
            for name, service in sorted(self.services(condition).items())
        }
        return {
            "corpus": dataset.corpus.sha256,
            "passages": len(dataset.corpus),
            "questions": dataset.questions_sha256,
            **made,
        }

    def _once(self, key: tuple, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            with waiting(f"{key[0]} {key[1]}" if len(key) > 1 else key[0]):
                self._made[key] = make()
        return self._made[key]


def refuse_limits(
    retriever: Any, spec: MethodSpec, configured: Settings, questions: Sequence[Question]
) -> None:
    """Raise UnknownService where the method searches given passages alone, which this retriever
    cannot: by its settings, or by what it asks first of the questions. Nothing is searched.
    """
    if getattr(retriever, "takes_within", True):
        return
    limited = configured.own_candidates
    for question in questions:
        flow = spec.run(question, configured)
        try:
            first = next(flow)
        except Exception:  # a question that fails does so when it is asked, with its reason
            continue
        flow.close()
        calls = first if isinstance(first, list) else [first]
        limited |= any(getattr(call, "within", None) is not None for call in calls)
    if limited:
        raise UnknownService(
            f"the method {spec.name!r} with these settings searches given passages alone "
            "(own_candidates, or gold ones), which neither a retriever of your own nor a search "
            "service can; take another method or setting, or a retriever as 'bm25'"
        )
