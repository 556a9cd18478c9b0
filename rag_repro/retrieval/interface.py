"""What every retriever promises, and the parts that they share.

The promise (`Retriever.search`): for each query the k best passages, best
first. Passages of equal score stand in the order of their ids, also where
the cut at k falls among them, so that neither the order of the corpus nor
the library underneath decides. Always min(k, passages to choose from) hits
come back: what shares no term with the query has score 0 and fills up, by
id, as in a full ranking; whoever wants only matches looks at `Hit.score`.

Indexes lie on disk as a folder of files beside a card, written whole or not at all:

    folder/card.json     what the index is, and size and SHA-256 of its files
    folder/...           the files of the index; never the passages

A stored index is used only over the corpus, settings and package versions
that it was made with. Everything else is refused with the field that
differs, since a wrong index gives wrong numbers and no error.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable
from urllib.parse import urlsplit

import numpy as np

from rag_repro.digest import sha256
from rag_repro.plain import PlainError, from_json, shortened, text_of
from rag_repro.schema import Hit, Passage
from rag_repro.schema.dataset import Corpus

Within = Sequence[Sequence[str] | None] | None


SCHEMES = ("http://", "https://")


class RetrievalError(ValueError):
    """A retriever was asked, built or loaded in a way that cannot be right."""


@runtime_checkable
class Retriever(Protocol):
    """Finds passages of a corpus.

    fingerprint: changes when, and only when, the results can change.
    card: what a reader must know of the index, as plain data.
    """

    corpus: Corpus

    @property
    def fingerprint(self) -> str: ...

    @property
    def card(self) -> Mapping[str, Any]: ...

    def search(self, queries: Sequence[str], k: int, within: Within = None) -> list[list[Hit]]: ...


class Encoder(Protocol):
    """Turns texts into float32 vectors (texts, d) of length 1."""

    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> np.ndarray: ...


def check_corpus(corpus: Corpus) -> Corpus:
    """The corpus, if there is something in it to find."""
    if not len(corpus):
        raise RetrievalError(f"corpus {corpus.name!r} holds no passage; nothing can be found")
    return corpus


def check_fields(fields: Sequence[str]) -> tuple[str, ...]:
    """Fields of a passage to search in; a field named twice counts twice."""
    if isinstance(fields, str) or not fields or set(fields) - {"title", "text"}:
        raise RetrievalError(
            f"fields {fields!r}: give a tuple of 'title' and 'text', as ('title', 'text')"
        )
    return tuple(fields)


def passage_text(passage: Passage, fields: Sequence[str]) -> str:
    """The searched text of a passage: its fields joined by a space."""
    return " ".join(getattr(passage, field) for field in fields)


def best(scores: np.ndarray, id_ranks: np.ndarray, k: int) -> np.ndarray:
    """Places of the k highest of `scores` (n,), best first, ties by `id_ranks` (n,)."""
    if k < len(scores):
        # Most passages share the lowest score (0: no common term), and numpy's
        # partition is slow among many equals; so it is kept to the others.
        places = np.flatnonzero(scores > scores.min())
        if k <= len(places):
            others = scores[places]
            cut = np.partition(others, len(places) - k)[len(places) - k]
            above, tied = places[others > cut], places[others == cut]
        else:
            above, tied = places, np.flatnonzero(scores == scores.min())
        room = k - len(above)
        if room < len(tied):
            tied = tied[np.argpartition(id_ranks[tied], room - 1)[:room]]
        places = np.concatenate([above, tied])
    else:
        places = np.arange(len(scores))
    return places[np.lexsort((id_ranks[places], -scores[places]))]


class Index(ABC):
    """The shared half of the retrievers: card, checks, hits.

    A retriever adds `_found`, and says what it is in `kind`, `version`
    (raised when its results can change, and only then), `settings` and
    `versions`.
    """

    kind: ClassVar[str]
    version: ClassVar[int]
    corpus: Corpus

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Everything besides the corpus that can change results, as plain data."""

    @property
    @abstractmethod
    def versions(self) -> dict[str, str]:
        """The packages whose change can make a stored index wrong."""

    @abstractmethod
    def _found(
        self, queries: Sequence[str], k: int, pools: Sequence[np.ndarray | None]
    ) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """For each query the places in the corpus and the scores of its hits, best first.

        pools: sorted places to choose from, None for the whole corpus.
        """

    @property
    def card(self) -> dict[str, Any]:
        return card_of(self, self.settings, self.versions)

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits of the card without what cannot change results.

        The versions of packages stay outside: they are checked when an index is
        loaded, and a record's manifest names them.
        """
        kept = {"kind": self.kind, "version": self.version, "settings": dict(self.settings)}
        kept["corpus"] = self.corpus.sha256
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]

    def search(self, queries: Sequence[str], k: int, within: Within = None) -> list[list[Hit]]:
        """The k best passages for each query, best first, ties by passage id.

        within: for each query the ids to choose from, or None for the whole
        corpus. Statistics (document frequencies, lengths) stay the corpus's,
        so a passage's score is the same with and without it. Fewer than k
        hits come back only where there are fewer passages to choose from.

        Raises RetrievalError for a k below 1, a blank query, an unknown id,
        or lists of different length.
        """
        check_search(queries, k, within)
        pools = [None] * len(queries) if within is None else [self._places(ids) for ids in within]
        passages = self.corpus.passages
        return [
            [
                Hit(passages[place], score, rank)
                for rank, (place, score) in enumerate(
                    zip(places.tolist(), scores.tolist(), strict=True), start=1
                )
            ]
            for places, scores in self._found(queries, int(k), pools)
        ]

    @cached_property
    def _id_ranks(self) -> np.ndarray:
        """(passages,) the place of each passage in the sorted order of ids."""
        ids = [p.id for p in self.corpus.passages]
        ranks = np.empty(len(ids), dtype=np.int64)
        ranks[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
        return ranks

    @cached_property
    def _place_of(self) -> dict[str, int]:
        return {p.id: i for i, p in enumerate(self.corpus.passages)}

    def _places(self, ids: Sequence[str] | None) -> np.ndarray | None:
        """Sorted places of the named passages, each once."""
        if ids is None:
            return None
        if isinstance(ids, str):
            raise RetrievalError("within holds a string where a list of passage ids is meant")
        unknown = next((i for i in ids if i not in self._place_of), None)
        if unknown is not None:
            raise RetrievalError(
                f"within names passage {unknown!r}, which is not in corpus {self.corpus.name!r}; "
                "are the question and the retriever of the same data set?"
            )
        return np.array(sorted({self._place_of[i] for i in ids}), dtype=np.int64)


def check_search(queries: Sequence[str], k: int, within: Within) -> None:
    """RetrievalError for what no retriever can be asked."""
    if isinstance(queries, str):
        raise RetrievalError("queries is one string; give a list: search([query], k)")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise RetrievalError(f"k is {k!r}; it must be a whole number from 1")
    for place, query in enumerate(queries):
        if not isinstance(query, str) or not query.strip():
            raise RetrievalError(
                f"query {place} of {len(queries)} is {query!r}; a query needs some text "
                "(a method whose query comes out empty must decide what to ask instead)"
            )
    if within is not None and (isinstance(within, str) or len(within) != len(queries)):
        raise RetrievalError(
            f"within has {len(within)} entries for {len(queries)} queries; give one list of ids "
            "for each query, None where the whole corpus is meant"
        )


def check_address(address: str, what: str, example: str, variable: str) -> str:
    """A service's address without a slash at its end; nothing that could be a secret is in it.

    Raises RetrievalError, which does not show the address, for one that cannot be used.
    """
    try:
        parts = urlsplit(address)
        right = address.startswith(SCHEMES) and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none
        right = False
    plain = address.isascii() and address.isprintable() and not set(address) & set(" @?#\\")
    if not right or not plain:
        raise RetrievalError(
            f"this is no address of {what}; write as {example}, without name, password or query: "
            f"a key belongs into the environment variable {variable}"
        )
    return address.rstrip("/")


def card_of(
    retriever: Any, settings: Mapping[str, Any], versions: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a retriever says of itself: kind, version, corpus, settings, versions of libraries."""
    corpus = retriever.corpus
    return {
        "kind": retriever.kind,
        "version": retriever.version,
        "corpus": {"name": corpus.name, "sha256": corpus.sha256, "passages": len(corpus)},
        "settings": dict(settings),
        "versions": dict(versions or {}),
    }


class Chance(Index):
    """Ranking by chance, which any retriever must beat: scores drawn evenly from [0, 1).

    A query is only a seed: the same text gives the same ranking of the corpus, at any batch, and
    with `within` that ranking with the other passages left out.

    Raises RetrievalError for a corpus without passages.
    """

    kind: ClassVar[str] = "random"
    version: ClassVar[int] = 1

    def __init__(self, corpus: Corpus):
        self.corpus = check_corpus(corpus)

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    @property
    def versions(self) -> dict[str, str]:
        return {"numpy": metadata.version("numpy")}

    def _found(
        self, queries: Sequence[str], k: int, pools: Sequence[np.ndarray | None]
    ) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        for query, pool in zip(queries, pools, strict=True):
            seed = int.from_bytes(hashlib.sha256(query.encode()).digest())
            # Dealt out by id, so that the order of the corpus does not decide.
            scores = np.random.default_rng(seed).random(len(self.corpus))[self._id_ranks]
            pool = np.arange(len(scores)) if pool is None else pool
            places = pool[best(scores[pool], self._id_ranks[pool], k)]
            yield places, scores[places]


CARD = "card.json"


class StoreError(RetrievalError):
    """A stored index cannot be used or written here."""


class Stored(Index):
    """A retriever whose index can be written to a folder, by `_write`.

    StoreError where corpus, settings, versions or files differ from the card in the folder: which
    field, what was expected, what was found.
    """

    def save(self, folder: str | Path) -> Path:
        """Write the index and its card to `folder`, which must be new or the same index.

        Raises StoreError where `folder` holds anything else.
        """
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Written beside its place and renamed, so that a killed run leaves no
        # half index under the name that a later run will trust.
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as beside:
            part = Path(beside, "index")
            part.mkdir()
            self._write(part)
            card = {**self.card, "files": _files_in(part)}
            text = json.dumps(card, indent=1, ensure_ascii=False)
            (part / CARD).write_text(text + "\n", encoding="utf-8")
            try:
                os.rename(part, folder)
            except OSError:
                if not folder.exists():
                    raise
                self._check(folder)  # it was saved before, perhaps by another process meanwhile
        return folder

    def _check(self, folder: Path) -> None:
        """Refuse a folder that holds anything but just this index, with its files byte for byte."""
        try:
            card = from_json(text_of(folder / CARD))
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(
                f"{folder} holds no index ({CARD} is missing); choose another folder, or build "
                "one and save it there"
            ) from None
        except PlainError as error:
            card, why = None, f" ({error})"
        else:
            why = ""
        if lines := differences({**self.card, "files": _files_in(folder)}, card):
            raise StoreError(
                f"{folder / CARD}{why} tells of another index than was asked for and lies there:\n"
                + "\n".join(lines)
                + "\nHand in what the index was made with, save to another folder, or delete this "
                "one and build the index again"
            )

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the files of the index into an empty folder."""


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, list(value) if isinstance(value, tuple) else value


def differences(expected: Mapping[str, Any], found: Any, apart: Collection[str] = ()) -> list[str]:
    """One line a field in which two cards differ, the first ones; the corpus's name may, and the
    parts `apart`."""
    want, have = dict(_flat(expected)), dict(_flat(found))
    names = [n for n in dict.fromkeys([*want, *have]) if n.split(".")[0] not in apart]
    differ = [n for n in names if n != "corpus.name" and want.get(n) != have.get(n)]
    told = {n: shortened(repr(have.get(n)), 200) for n in differ[:8]}
    lines = [f"  {n}: expected {want.get(n)!r}, found {one}" for n, one in told.items()]
    return [*lines, f"  and {len(differ) - 8} more"] if len(differ) > 8 else lines


def _files_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of each file of the index; hidden ones are an editor's or the system's."""
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".") and path != folder / CARD
    }
