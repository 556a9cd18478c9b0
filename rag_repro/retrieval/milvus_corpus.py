"""A corpus as a collection of Milvus: its name, its card, and how it gets there whole.

The card is written before the first passage and finished after the last one was counted, so
that a load that was killed is told from a whole one, and goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from ..plain import shortened
from ..schema import Passage
from .analyzer import Analyzer
from .base import Encoder, Index, passage_text
from .dense import encoded
from .milvus_server import LARGEST, LONGEST_ID, MilvusError, Server, versions
from .store import StoreError, differences

log = logging.getLogger(__name__)

BATCH = 1_000
"""Passages that are put in at once."""
# What a card tells besides what must fit.
_TOLD = ("versions", "encoder", "fingerprint", "started", "finished")


class InMilvus(Index):
    """The half of `Milvus` that keeps the collection; the other one searches it."""

    server: Server
    mode: str
    encoder: Encoder | None
    fields: tuple[str, ...]
    k1: float
    b: float
    analyzer: Analyzer
    index: str
    depth: int
    constant: int
    _complete: bool

    # -------------------------------------------------------------- identity

    @property
    def settings(self) -> dict[str, Any]:
        made: dict[str, Any] = {"mode": self.mode, "fields": list(self.fields)}
        # Segments of their own statistics: the embedded Milvus may rank otherwise.
        made["embedded"] = self.server.embedded
        if self.mode != "dense":
            made |= {"k1": self.k1, "b": self.b, "analyzer": self.analyzer.card}
        if self.encoder is not None:
            made |= {"encoder": self.encoder.fingerprint, "index": self.index}
        if self.mode == "hybrid":
            made |= {"depth": self.depth, "constant": self.constant}
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
        versions = card.get("versions")
        then = versions.get("milvus") if isinstance(versions, dict) else None
        if then != self.server.version:
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
        """Forget the collection and its card."""
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
                there = self.server.held(self.name, [p.id for p in part])
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
            index=self.index,
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

    def held(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Those of the passages that Milvus holds, as it gives them back."""
        rows = self.server.held(self.name, ids, ("title", "text"))
        return {i: Passage(i, row["title"], row["text"]) for i, row in rows.items()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
