"""A user's index of FAISS or bm25s, with the texts at its places, as a retriever."""

from __future__ import annotations

import functools
import hashlib
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rag_repro.retrieval.base import RetrievalError
from rag_repro.retrieval.custom import Custom, OddError, code_of, described, parts, short_hash
from rag_repro.schema.dataset import Corpus

_KNOWN = 0.75  # of its texts' words an index of bm25s must know, or it was made otherwise


class Indexed(Custom):
    """A library's index, which finds places, with the texts at these places."""

    library: str

    def __init__(self, index: Any, texts: Any, encoder: Any, name: str | None):
        super().__init__(self.library, name)
        texts = texts.passages if isinstance(texts, Corpus) else texts
        if texts is not None and (
            isinstance(texts, str) or not isinstance(texts, Sequence | Mapping | np.ndarray)
        ):
            raise RetrievalError(
                f"texts cannot be {described(texts)}; give a list of (title, text)"
            )
        self._index, self._texts, self._encoder = index, texts, encoder
        self._unbound: Indexed | None = None
        if texts is not None:
            self._check()

    @property
    @abstractmethod
    def size(self) -> int:
        """Entries of the index."""

    @abstractmethod
    def _content(self) -> Iterator[Any]:
        """Bytes and words of all that the index holds."""

    def _check(self) -> None:
        """Raise RetrievalError where index and texts do not belong together."""
        if self.size != len(self._texts) and not isinstance(self._texts, Mapping):
            raise RetrievalError(
                f"the {self.library} index holds {self.size} entries, and there are "
                f"{len(self._texts)} texts: give each entry's text, in the index's order"
            )

    @functools.cached_property
    def code(self) -> str | None:
        if self._unbound is not None:
            return self._unbound.code
        digest, encoder = hashlib.sha256(), self._encoder
        asked = encoder if encoder is None or isinstance(encoder, str) else code_of(encoder)
        if asked is None and encoder is not None:
            return None
        try:
            for part in self._content():
                digest.update(part if isinstance(part, bytes) else repr(part).encode())
        except RuntimeError:  # FAISS cannot write some indexes, as those on a GPU
            return None
        texts = self._texts if self._texts is not None else ()
        for item in texts.items() if isinstance(texts, Mapping) else texts:
            digest.update(repr(item).encode())
        return short_hash(digest.hexdigest(), asked)

    @property
    def fingerprint(self) -> str:
        """Changes also with the weights of an encoder that was named."""
        return short_hash(super().fingerprint, getattr(self._encoder, "fingerprint", None))

    def over(self, corpus: Corpus, encoder: Callable[[str], Any]) -> Any:
        """As of its base. Raises RetrievalError where index, texts and encoder do not agree."""
        other = super().over(corpus, encoder)
        other._unbound = self
        if self._texts is None:
            if not len(corpus):
                raise RetrievalError(
                    f"a {self.library} index holds no texts: give (index, texts, encoder), or a "
                    "corpus whose passages it was made of"
                )
            other._texts = corpus.passages
            other._check()
        if isinstance(self._encoder, str):
            other._encoder = encoder(self._encoder)
        return other

    def _at(self, places: Any, scores: Any) -> list[Any] | RetrievalError:
        """The texts at these places with their scores; FAISS has -1 where it found none."""
        pairs = [(int(p), float(s)) for p, s in zip(places, scores, strict=True) if p >= 0]
        try:
            return [(*parts(self._texts[place])[:2], score) for place, score in pairs]
        except (LookupError, OddError) as error:
            return RetrievalError(f"the texts of the {self.library} index: {error}")


class Faiss(Indexed):
    library = "faiss"

    def __init__(self, index: Any, texts: Any, encoder: Any, name: str | None):
        super().__init__(index, texts, encoder, name)
        if not (isinstance(encoder, str) or callable(getattr(encoder, "encode", encoder))):
            raise RetrievalError(
                "a FAISS index needs what its queries are encoded with: give (index, texts, "
                "'minilm'), an object with `encode`, or a function texts -> vectors"
            )

    @property
    def size(self) -> int:
        return self._index.ntotal

    def _content(self) -> Iterator[Any]:
        import faiss

        digest = hashlib.sha256()
        faiss.write_index(self._index, faiss.PyCallbackIOWriter(digest.update))
        yield digest.digest()

    def _replies(self, queries: Sequence[str], k: int) -> Iterator[Any]:
        import faiss

        encode = getattr(self._encoder, "encode", self._encoder)
        vectors = np.ascontiguousarray(encode(list(queries)), dtype=np.float32)
        if vectors.shape != (shape := (len(queries), self._index.d)):
            raise RetrievalError(
                f"the encoder gave vectors of shape {vectors.shape} where the FAISS index takes "
                f"{shape}: it must be the encoder that the index was made with"
            )
        scores, places = self._index.search(vectors, min(k, self.size))
        is_distance = self._index.metric_type != faiss.METRIC_INNER_PRODUCT
        return map(self._at, places, 0 - scores if is_distance else scores)


class BM25S(Indexed):
    library = "bm25s"

    def __init__(self, index: Any, texts: Any, encoder: Any, name: str | None):
        if not hasattr(index, "scores"):
            raise RetrievalError("the bm25s index is empty: call its `index`, or load it, before")
        super().__init__(index, index.corpus if texts is None else texts, encoder, name)

    @property
    def size(self) -> int:
        return self._index.scores["num_docs"]

    def _check(self) -> None:
        super()._check()
        sample = [" ".join(parts(item)[:2]) for item in _first(self._texts, 20)]
        words = {word for terms in self._terms(sample) for word in terms}
        share = sum(word in self._index.vocab_dict for word in words) / max(1, len(words))
        if share < _KNOWN:
            raise RetrievalError(
                f"the bm25s index knows {share:.0%} of the words of its texts: give (index, texts, "
                "tokenizer) with the texts and the tokenizer that it was made with"
            )

    def _content(self) -> Iterator[Any]:
        scores = self._index.scores
        yield from (scores[key].tobytes() for key in ("data", "indices", "indptr"))
        yield sorted(self._index.vocab_dict.items(), key=lambda pair: pair[1])
        if self._index.nonoccurrence_array is not None:
            yield self._index.nonoccurrence_array.tobytes()

    def _terms(self, texts: Sequence[str]) -> list[list[str]]:
        """The terms of each text, as bm25s's or the user's tokenizer gives them."""
        import bm25s

        tokenizer = self._encoder
        if tokenizer is None:
            return bm25s.tokenize(list(texts), return_ids=False, show_progress=False)
        if hasattr(tokenizer, "tokenize"):
            how = {"update_vocab": False, "return_as": "string", "show_progress": False}
            return tokenizer.tokenize(list(texts), **how)
        terms = tokenizer(list(texts))
        if hasattr(terms, "vocab"):  # bm25s's Tokenized: ids, and the words behind them
            names = {i: word for word, i in terms.vocab.items()}
            return [[names[i] for i in ids] for ids in terms.ids]
        return terms

    def _replies(self, queries: Sequence[str], k: int) -> Iterator[Any]:
        found = self._index.retrieve(
            self._terms(queries),
            corpus=np.arange(self.size),  # places, also where the index holds texts
            k=min(k, self.size),
            show_progress=False,
        )
        return map(self._at, found.documents, found.scores)


def _first(texts: Any, count: int) -> list[Any]:
    return list(itertools.islice(texts.values() if isinstance(texts, Mapping) else texts, count))


KINDS = {cls.library: cls for cls in (Faiss, BM25S)}
