"""Retrieval from Milvus: full text (BM25), vectors, or both, over corpora that outgrow memory.

The index lies in Milvus, embedded in a folder or at an address; the corpus beside it tells
what the ids that come back are. Three modes:

    bm25     Milvus analyses and weighs the words itself. Its weight of a term is Lucene's, as
             `bm25.BM25`'s "lucene", times k1 + 1, which ranks alike; the embedded Milvus counts
             over each segment of its files, which differs a little where there are several
    dense    vectors of an encoder, by inner product
    hybrid   the DEPTH best of each, fused by Milvus's ranker: sum of 1 / (CONSTANT + rank);
             with `within`, ranks are those among the passages to choose from

Milvus's standard tokenizer splits at punctuation and spaces, much as the pattern of our
analyzer does; where grams suit the corpus it is given our terms. Scores come in float32;
rounded, ties stand by id as elsewhere.

The collection's card is written before the first passage and finished after the last one was
counted, so that a load that was killed is told from a whole one, and goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self
from unicodedata import normalize

import numpy as np

from rag_repro.plain import shortened
from rag_repro.retrieval.analyzer import Analyzer, suited
from rag_repro.retrieval.dense import encoded
from rag_repro.retrieval.interface import (
    Encoder,
    Index,
    RetrievalError,
    StoreError,
    best,
    check_corpus,
    differences,
    passage_text,
)
from rag_repro.retrieval.milvus_server import (
    CONSTANT,
    LARGEST,
    LONGEST_ID,
    MOST,
    MilvusError,
    Server,
    versions,
)
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.words import choices

log = logging.getLogger(__name__)

MODES = ("bm25", "dense", "hybrid")
INDEX = "FLAT"
"""Of vectors: each is compared with."""
DEPTH = 100
"""Of the fusion."""
BATCH = 1_000
"""Passages that are put in at once."""
_DECIMALS = {"bm25": 4, "dense": 5, "hybrid": 7}  # float32, of some 10, of 1, and of 1/60
_QUERIES = 500  # in one request
_SLACK = 8
# What a card tells besides what must fit.
_TOLD = ("versions", "encoder", "fingerprint", "started", "finished")


class Milvus(Index):
    """A corpus in Milvus.

    where: an address, or a path that ends in .db (`milvus_server.Server`). Nothing is put in
    before `load`, which goes on where an earlier one stopped; nothing is found before all is.
    mode: "bm25", "dense" or "hybrid"; the last two need an encoder. k1, b: as `BM25` has them.

    Raises RetrievalError for a setting that cannot be, and MilvusError as `Server`.
    """

    kind: ClassVar[str] = "milvus"
    version: ClassVar[int] = 1

    def __init__(
        self,
        corpus: Corpus,
        where: str | Path,
        *,
        mode: str = "bm25",
        encoder: Encoder | None = None,
        k1: float = 1.5,
        b: float = 0.75,
    ):
        if mode not in MODES:
            raise RetrievalError(f"Milvus has no mode {mode!r}" + choices(mode, MODES))
        if (encoder is None) != (mode == "bm25"):
            raise RetrievalError(
                f"mode {mode!r}: 'dense' and 'hybrid' need an encoder, 'bm25' takes none"
            )
        if not (k1 > 0 and 0 <= b <= 1):
            raise RetrievalError(f"k1 {k1}, b {b}: k1 is above 0, b in [0, 1]")
        self.corpus = check_corpus(corpus)
        self.mode, self.encoder, self.fields = mode, encoder, ("title", "text")
        self.k1, self.b = float(k1), float(b)
        self.analyzer = Analyzer(**suited(corpus))
        self.server = Server(where)
        self._complete = False

    # -------------------------------------------------------------- identity

    @property
    def settings(self) -> dict[str, Any]:
        made: dict[str, Any] = {"mode": self.mode, "fields": list(self.fields)}
        # Segments of their own statistics: the embedded Milvus may rank otherwise.
        made["embedded"] = self.server.embedded
        if self.mode != "dense":
            made |= {"k1": self.k1, "b": self.b, "analyzer": self.analyzer.card}
        if self.encoder is not None:
            made |= {"encoder": self.encoder.fingerprint, "index": INDEX}
        if self.mode == "hybrid":
            made |= {"depth": DEPTH, "constant": CONSTANT}
        return made

    @property
    def versions(self) -> dict[str, str]:
        return {"milvus": self.server.version, **versions()}

    @property
    def name(self) -> str:
        """Of the collection: the corpus's name, and a hash of the settings beside it."""
        settings = json.dumps([self.corpus.name, self.settings], sort_keys=True)
        word = re.sub(r"\W+", "_", self.corpus.name, flags=re.ASCII)[:100]
        return f"rag_{word}_{self.mode}_{hashlib.sha256(settings.encode()).hexdigest()[:8]}"

    @property
    def stored_card(self) -> dict[str, Any] | None:
        """What the collection's card tells, whether it fits or not; None where there is none."""
        return self.server.card(self.name)

    @property
    def finished(self) -> bool:
        """Whether all was put in and counted. Raises StoreError where something else was."""
        return "finished" in (self._fitting_card() or {})

    def _fitting_card(self) -> dict[str, Any] | None:
        card = self.stored_card
        if card is None:
            if self.server.has(self.name):
                raise StoreError(
                    f"{self._place} has no card, so that nobody knows what is in it; "
                    f"{self._command} --anew drops it and begins again"
                )
            return None
        if lines := differences(self.card, card, apart=_TOLD):
            raise StoreError(
                f"{self._place} was made otherwise than asked for:\n"
                + "\n".join(lines)
                + f"\nHand in what it was made with; {self._command} --anew drops it and "
                "loads this corpus in its place"
            )
        if (then := card["versions"]["milvus"]) != self.server.version:
            log.warning(
                "%s was loaded by %s, and %s serves it; where rankings differ, load it anew",
                *(self._place, then, self.server.version),
            )
        return card

    @property
    def _place(self) -> str:
        return f"the collection {self.name} at {self.server.where}"

    @property
    def _command(self) -> str:
        return f"`rag-repro corpus build {self.corpus.name}`"

    # --------------------------------------------------------------- loading

    def count(self) -> int:
        """Passages that Milvus holds, counted by it; 0 where nothing was begun."""
        return self.server.count(self.name) if self.server.has(self.name) else 0

    def drop(self) -> None:
        self.server.drop(self.name)
        self._complete = False

    def load(self, batch: int = BATCH, report: Callable[[int], None] = lambda done: None) -> int:
        """Put in what is not there yet -> so many passages; a whole collection costs a count.

        report: told after each batch how many of the corpus are in. Raises MilvusError where
        Milvus counts another number in the end than the corpus has, and, before anything is
        put in, for a passage that is too long for Milvus; StoreError as `open`.
        """
        card = self._fitting_card() or self._begun()
        if "finished" in card:
            self.open()
            return 0
        held = self.server.count(self.name) if self._made() else 0
        passages, put = self.corpus.passages, 0
        for start in range(0, len(passages), batch):
            part = passages[start : start + batch]
            if held:  # an earlier load may have stopped anywhere
                there = self.server.stored_fields(self.name, [p.id for p in part])
                part = [p for p in part if p.id not in there]
            if part:
                self.server.put(self.name, self._rows(part))
            put += len(part)
            report(min(start + batch, len(passages)))
        self.server.settle(self.name)
        self._check_count()
        self.server.write_card(self.name, card | {"finished": _now()})
        self._complete = True
        return put

    def open(self) -> Self:
        """Itself, ready for searches.

        Raises MilvusError where the corpus is not all in, StoreError where the collection was
        made from another one, or with other settings.
        """
        card = self._fitting_card()
        if card is None:
            raise MilvusError(
                f"{self._place} is not there; {self._command} loads it, with --retriever and "
                "--address as here"
            )
        if "finished" not in card:
            raise MilvusError(
                f"{self._place} holds {self.count():,} of {len(self.corpus):,} passages: its load "
                f"was interrupted; {self._command} goes on with it"
            )
        if self.server.has(self.name):  # else none are held, which is told
            self.server.open(self.name)
        self._check_count()
        self._complete = True
        return self

    def _begun(self) -> dict[str, Any]:
        """The card of a new collection, written before the collection is there."""
        for passage in self.corpus.passages:
            self._check_passage(passage)
        told = {"fingerprint": self.fingerprint, "started": _now()}
        if self.encoder is not None:
            name = getattr(self.encoder, "name", "")  # its weights' hash is among the settings
            told["encoder"] = {"name": name, "revision": self.encoder.fingerprint}
        card = {**self.card, **told}
        self.server.write_card(self.name, card)
        return card

    def _made(self) -> bool:
        """Whether the collection was there; it is now."""
        if self.server.has(self.name):
            self.server.open(self.name)
            return True
        words = {"k1": self.k1, "b": self.b, "stop_words": self.analyzer.left_out}
        self.server.create(
            self.name,
            words=None if self.mode == "dense" else words,
            width=None if self.encoder is None else encoded(self.encoder, ["width"]).shape[1],
        )
        return False

    def _rows(self, passages: Sequence[Passage]) -> list[dict[str, Any]]:
        texts = [passage_text(p, self.fields) for p in passages]
        rows = [{"id": p.id, "title": p.title, "text": p.text} for p in passages]
        if self.mode != "dense":
            searched = map(self._searched, texts)
            rows = [row | {"searched": text} for row, text in zip(rows, searched, strict=True)]
        if self.encoder is not None:
            vectors = encoded(self.encoder, texts)
            rows = [row | {"vector": v} for row, v in zip(rows, vectors.tolist(), strict=True)]
        return rows

    def _searched(self, text: str) -> str:
        """A text as Milvus is to read it: our terms where grams suit the corpus.

        Bytes stand for the letters of other scripts, so that no tokenizer cuts a term.
        """
        if not self.analyzer.grams:
            return text
        return " ".join(t if t.isascii() else t.encode().hex() for t in self.analyzer(text))

    def _check_passage(self, passage: Passage) -> None:
        texts = {"title": passage.title, "text": passage.text}
        texts["searched text"] = self._searched(passage_text(passage, self.fields))
        sizes = {what: (len(text.encode()), LARGEST) for what, text in texts.items()}
        for what, (size, most) in {"id": (len(passage.id.encode()), LONGEST_ID), **sizes}.items():
            if size > most:
                raise MilvusError(
                    f"passage {shortened(repr(passage.id), 80)}: its {what} has {size:,} bytes, "
                    f"and Milvus holds {most:,}; shorten it, or split it into several"
                )

    def _check_count(self) -> None:
        held, wanted = self.count(), len(self.corpus)
        if held != wanted:
            raise MilvusError(
                f"{self._place} holds {held:,} passages where the corpus has {wanted:,}; "
                f"{self._command} --anew drops it and loads all again"
            )

    def stored_passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Those of the passages that Milvus holds, as it gives them back."""
        rows = self.server.stored_fields(self.name, ids, ("title", "text"))
        return {i: Passage(i, row["title"], row["text"]) for i, row in rows.items()}

    # -------------------------------------------------------------- searching

    def _found(
        self, queries: Sequence[str], k: int, pools: Sequence[np.ndarray | None]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if not self._complete:
            self.open()
        if k > MOST:
            raise RetrievalError(f"k is {k}; Milvus gives {MOST:,} hits at most")
        vectors = encoded(self.encoder, queries) if self.encoder and len(queries) else None
        made: list[Any] = [None] * len(queries)
        open_ = [i for i, pool in enumerate(pools) if pool is None]
        parts = [open_[at : at + _QUERIES] for at in range(0, len(open_), _QUERIES)]
        parts += [[i] for i, pool in enumerate(pools) if pool is not None]
        for part in parts:
            asked: dict[str, list[Any]] = {}
            if self.mode != "dense":
                asked["words"] = [self._searched(normalize("NFC", queries[i])) for i in part]
            if vectors is not None:
                asked["vector"] = vectors[part].tolist()
            for i, ranked in zip(part, self._ranked(asked, k, pools[part[0]]), strict=True):
                made[i] = ranked
        yield from made

    def _ranked(
        self, asked: Mapping[str, Sequence[Any]], k: int, pool: np.ndarray | None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Places and scores of the k best for each query, ties and the rest by id."""
        n = len(self.corpus) if pool is None else len(pool)
        count = len(next(iter(asked.values())))
        if not n:
            return [(np.empty(0, np.int64), np.empty(0))] * count
        ids = None if pool is None else [self.corpus.passages[place].id for place in pool]
        found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        waiting, size = list(range(count)), min(n, MOST, 2 * k + _SLACK)
        while waiting:
            part = {field: [data[i] for i in waiting] for field, data in asked.items()}
            # The depth not by `size`: more hits must not move the first ones.
            answers = self.server.search(self.name, part, size, ids, max(DEPTH, k))
            for i, hits in zip(list(waiting), answers, strict=True):
                places = np.array([self._placed(name) for name, _ in hits], dtype=np.int64)
                scores = np.round([score for _, score in hits], _DECIMALS[self.mode])
                # Whole once the last one found is worse than the k-th, or there are no more.
                if len(hits) < size or size in (n, MOST) or scores[-1] < scores[k - 1]:
                    found[i] = self._filled(places, scores, k, pool)
                    waiting.remove(i)
            size = min(n, MOST, 4 * size)
        return [found[i] for i in range(count)]

    def _placed(self, name: str) -> int:
        if name not in self._place_of:
            raise MilvusError(
                f"{self._place} holds {name!r}, which is not in the corpus; {self._command} --anew "
                "drops it and loads all again"
            )
        return self._place_of[name]

    def _filled(
        self, places: np.ndarray, scores: np.ndarray, k: int, pool: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best; where fewer were found, the others follow by id: they share no word."""
        top = best(scores, self._id_ranks[places], k)
        places, scores = places[top], scores[top]
        if len(places) < k:
            every = np.arange(len(self.corpus)) if pool is None else pool
            rest = np.setdiff1d(every, places)
            rest = rest[np.argsort(self._id_ranks[rest])][: k - len(places)]
            places = np.concatenate([places, rest])
            scores = np.concatenate([scores, np.zeros(len(rest))])
        return places, scores


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
