"""Retrievers of a user's own: a function, an object, an index with its texts, LangChain's.

`adapt` takes any of them, and methods search with what it returns as with a retriever of ours.
Their passages need not be in a corpus: one whose text is in the corpus has its id there, so that
gold passages are recognised (`Corpus.match`), and any other has an id made of its title and text.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import json
import logging
import math
import numbers
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rag_repro.plain import shortened
from rag_repro.retrieval.interface import RetrievalError, Within, card_of, check_search
from rag_repro.schema import Hit, Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.words import whole

log = logging.getLogger(__name__)

NO_CORPUS = Corpus("none", ())
"""Where questions are asked of a retriever alone."""
FORM = "a list of (title, text) or (title, text, score), best first"
_MANY = 50  # passages found, none of them in the corpus: this is no chance
_KNOWN = 0.75  # of its texts' words an index of bm25s must know, or it was made otherwise
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,59}", re.ASCII)


def adapt(given: Any, texts: Any = None, encoder: Any = None, *, name: str | None = None) -> Custom:
    """A retriever of one's own as methods ask it; `ask` and `compare` do this by themselves.

    given: one of
        a function (query, k) -> `FORM`, or an object with such a method `search`;
        LangChain's retriever (`invoke`) or vector store (`as_retriever`);
        a FAISS index or a bm25s.BM25, with `texts` and `encoder`;
        a retriever of `rag_repro.retrieval`;
        a tuple of these arguments, as (index, texts, "minilm").
    texts: of an index, what each place holds: (title, text) or a text, in its order. None: the
        passages of the corpus that is asked, in their order.
    encoder: turns queries into what an index takes. FAISS: an encoder's name, as "minilm", an
        object with `encode`, or a function texts -> vectors (texts, d). bm25s: a `Tokenizer`;
        None: `bm25s.tokenize` with its defaults.
    name: what records call it. A function is called by its name and a hash of its source, an
        index by a hash of all that it holds; what has no such content needs a name of yours.
        Change the name when something changes that is in no hash, as what a function reads.

    Raises RetrievalError for what cannot be a retriever.
    """
    if isinstance(given, tuple) and 1 <= len(given) <= 3:
        return adapt(*given, name=name)
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise RetrievalError(f"a retriever's name cannot be {name!r}: write it as my-search")
    if isinstance(given, Custom):
        return given if name is None else given.named(name)
    if inspect.isclass(given):
        raise RetrievalError(f"{given.__name__} is a class; give an object of it as the retriever")
    for library, cls in (("faiss", "Index"), ("bm25s", "BM25")):
        module = sys.modules.get(library)  # one that nobody imported made nothing
        if module is not None and isinstance(given, getattr(module, cls)):
            return INDEXES[library](given, texts, encoder, name)
    if texts is not None or encoder is not None:
        raise RetrievalError(
            f"{described(given)} as a retriever takes neither texts nor an encoder: only an index "
            "of FAISS or bm25s does"
        )
    if isinstance(getattr(given, "corpus", None), Corpus) and hasattr(type(given), "fingerprint"):
        return _Ours(given, name)
    return _Asked(*_question(given), name)


def described(given: Any) -> str:
    """As "a list", "an int" or "None": what stands where something else is wanted."""
    if given is None:
        return "None"
    name = type(given).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _question(given: Any) -> tuple[Callable[[str, int], Any], str, str | None]:
    """What asks it, what it is called, and the hash of its source (None: that does not tell)."""
    if hasattr(given, "as_retriever"):  # LangChain's vector stores, whose `search` is another
        given = given.as_retriever()
    label, code = type(given).__name__, None
    if callable(getattr(given, "invoke", None)):
        asking = functools.partial(_invoked, given)
    elif callable(asking := getattr(given, "search", given)):
        if asking is given:
            label, code = getattr(given, "__qualname__", label), code_of(given)
    else:
        raise RetrievalError(
            f"{described(given)} cannot be a retriever: give a name as 'bm25', an address, a "
            "function (query, k) -> [(title, text)], an object with `search` (query, k), "
            "LangChain's retriever, or (index, texts, encoder) of FAISS or bm25s"
        )
    label = re.sub(r"[^\w.]", "", label.rpartition("<locals>.")[2])[-40:]
    return asking, label, code


def _invoked(given: Any, query: str, k: int) -> Any:
    """LangChain's documents. Of its retrievers some have k as a field, and others take it in a
    call; its chains do not."""
    if not hasattr(given, "_get_relevant_documents"):
        return given.invoke(query)
    if "k" in getattr(type(given), "model_fields", ()):
        given = given.model_copy(update={"k": k})
    return given.invoke(query, k=k)


def code_of(function: Any) -> str | None:
    """A hash of a function's source and of the plain values that it holds.

    None: what it does is not in its source (a lambda, which has no name of its own; a method of
    an object; values that are no plain data).
    """
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        return None
    try:
        held = [inspect.getclosurevars(function).nonlocals, function.__defaults__]
        facts = [inspect.getsource(function), *held, function.__kwdefaults__]
        return short_hash(json.dumps(facts, sort_keys=True))
    except (OSError, TypeError, ValueError):
        return None


def short_hash(*facts: Any) -> str:
    return hashlib.sha256("\x1f".join(map(str, facts)).encode("utf-8", "replace")).hexdigest()[:12]


class Custom(ABC):
    """What `adapt` returns: a `interface.Retriever`, but for `within`, which it refuses.

    A query that is not answered as it must be has a RetrievalError in its place, so that its
    question fails alone. More than k passages are cut, equal ones come once, and fewer are fewer.
    """

    kind = "own"
    version = 1
    takes_within = False
    code: str | None
    """A hash of all that decides what is found; None where it cannot be known."""

    def __init__(self, label: str, name: str | None):
        self.label, self._name = name or label, name
        self.corpus = NO_CORPUS
        self._found = self._known = 0  # passages, and those of them that the corpus holds

    def __repr__(self) -> str:
        return f"Custom({self.label})"

    @abstractmethod
    def _replies(self, queries: Sequence[str], k: int) -> Iterator[Any]:
        """For each query an iterable of items, or a RetrievalError."""

    # -------------------------------------------------------------- identity

    @property
    def name(self) -> str:
        """What records call it: the same name, the same passages. Raises RetrievalError."""
        if self._name is not None:
            return self._name
        if self.code is None:
            raise RetrievalError(
                f"records cannot tell what the retriever {self.label} finds, since its source does "
                "not tell: name it, as retriever=adapt(..., name='my-search') with adapt from "
                "rag_repro.retrieval, and change the name when it changes"
            )
        return f"{self.label}-{self.code}"

    def named(self, name: str) -> Custom:
        """The same with a name of the user's."""
        other = copy.copy(self)
        other.label = other._name = name
        return other

    @property
    def fingerprint(self) -> str:
        """Changes with name, content and corpus."""
        return short_hash(self.kind, self.version, self.name, self.code, self.corpus.sha256)

    @property
    def card(self) -> dict[str, Any]:
        return card_of(self, {"name": self.name, "code": self.code})

    def over(self, corpus: Corpus, encoder: Callable[[str], Any]) -> Any:
        """The same for questions of this corpus. encoder: name -> encoder."""
        other = copy.copy(self)
        other.corpus, other._found, other._known = corpus, 0, 0
        return other

    # ---------------------------------------------------------------- search

    def search(
        self, queries: Sequence[str], k: int, within: Within = None
    ) -> list[list[Hit] | RetrievalError]:
        """At most k hits for each query in the order in which they came, or what was wrong.

        Raises RetrievalError as all retrievers do, and for `within`.
        """
        check_search(queries, k, within)
        if within is not None and any(pool is not None for pool in within):
            raise RetrievalError(f"retriever {self.label} cannot be limited to some passages")
        asked = list(dict.fromkeys(queries))
        replies = zip(asked, self._replies(asked, int(k)), strict=True)
        found = {query: self._hits(query, reply, int(k)) for query, reply in replies}
        return [found[query] for query in queries]

    def _hits(self, query: str, reply: Any, k: int) -> list[Hit] | RetrievalError:
        if isinstance(reply, RetrievalError):
            return reply
        hits: dict[str, Hit] = {}
        try:
            for item in reply:
                if len(hits) == k:
                    break
                passage, score = self._passage(item)
                score = 1 / (len(hits) + 1) if score is None else score
                hits.setdefault(passage.id, Hit(passage, score, len(hits) + 1))
        except OddError as odd:
            return self._wrong(query, f"returned {odd}")
        except Exception as error:  # a generator of the user's may raise anything
            return self._wrong(query, f"raised {type(error).__name__}: {error}", error)
        before, self._found = self._found, self._found + len(hits)
        self._known += sum(name in self.corpus.by_id for name in hits)
        if len(self.corpus) and not self._known and before < _MANY <= self._found:
            log.warning(
                "retriever %s found %d passages, none of which is in the corpus %s by its text: "
                "recall and the like count no gold passage as found",
                *(self.label, self._found, self.corpus.name),
            )
        return list(hits.values())

    def _wrong(self, query: str, what: str, cause: Exception | None = None) -> RetrievalError:
        remedy = "" if cause else f"; it must return {FORM}"
        error = RetrievalError(
            f"retriever {self.label}, asked {shortened(query)!r}, {what}{remedy}"
        )
        error.__cause__ = cause
        return error

    def _passage(self, item: Any) -> tuple[Passage, float | None]:
        """The passage that an item tells of, and its score. Raises OddError."""
        title, text, score, given = parts(item)
        if not (isinstance(title, str) and isinstance(text, str) and (title + text).strip()):
            raise OddError(f"{shortened(repr(item))}, which has no text")
        number = isinstance(score, numbers.Real) and not isinstance(score, bool)
        if score is not None and not (number and math.isfinite(score)):
            raise OddError(f"the score {shortened(repr(score))}, which is no finite number")
        title, text = whole(title), whole(text)
        known = self.corpus.match(title, text, given if isinstance(given, str) else None)
        if known is None:
            slug = re.sub(r"\W+", "_", title).strip("_")[:40] or "passage"
            known = Passage(f"{slug}-{short_hash(title, text)}", title, text)
        return known, None if score is None else float(score)


class OddError(ValueError):
    """What stands where a passage should, in a few words."""


def parts(item: Any) -> tuple[Any, Any, Any, Any]:
    """Title, text, score and id of an item; of score and id None where it has none."""
    if isinstance(item, Hit):
        return item.passage.title, item.passage.text, item.score, item.passage.id
    if isinstance(item, Passage):
        return item.title, item.text, None, item.id
    if isinstance(item, str):
        return "", item, None, None
    if isinstance(item, Mapping) and "text" in item:
        return item.get("title") or "", item["text"], item.get("score"), item.get("id")
    if hasattr(item, "page_content"):  # LangChain's Document
        about = getattr(item, "metadata", None) or {}
        return about.get("title") or "", item.page_content, None, getattr(item, "id", None)
    if isinstance(item, tuple | list) and len(item) == 2 and hasattr(item[0], "page_content"):
        title, text, _, given = parts(item[0])
        return title, text, item[1], given
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return item[0], item[1], item[2] if len(item) == 3 else None, None
    raise OddError(f"{shortened(repr(item))} in place of a passage")


class _Asked(Custom):
    """One call for each query, one after another: a user's code may not bear threads."""

    def __init__(self, asking: Callable, label: str, code: str | None, name: str | None):
        super().__init__(label, name)
        self._asking, self.code = asking, code

    def _replies(self, queries: Sequence[str], k: int) -> Iterator[Any]:
        for query in queries:
            try:
                reply = self._asking(query, k)
            except Exception as error:  # a user's code may raise anything
                yield self._wrong(query, f"raised {type(error).__name__}: {error}", error)
                continue
            if inspect.iscoroutine(reply):
                reply.close()
            if isinstance(reply, list | tuple | Iterator):
                yield reply
            else:
                yield self._wrong(query, f"returned {described(reply)}")


class _Ours(Custom):
    """A retriever of this package, which can do more than others: `over` returns it as it is."""

    def __init__(self, given: Any, name: str | None):
        super().__init__(type(given).__name__.lower(), name)
        self._given = given

    @property
    def code(self) -> str:
        return self._given.fingerprint

    def _replies(self, queries: Sequence[str], k: int) -> Iterator[Any]:
        return iter(self._given.search(queries, k))

    def over(self, corpus: Corpus, encoder: Callable[[str], Any]) -> Any:
        """The retriever itself. Raises RetrievalError over another corpus."""
        if len(corpus) and corpus.sha256 != self._given.corpus.sha256:
            raise RetrievalError(
                f"the retriever searches the corpus {self._given.corpus.name!r}, and the questions "
                f"are of {corpus.name!r}: build it over that one"
            )
        return self._given


class Indexed(Custom):
    """A library's index, which finds places, with the texts at these places."""

    library: str
    size: int
    """Entries of the index."""

    def __init__(self, index: Any, texts: Any, encoder: Any, name: str | None):
        super().__init__(self.library, name)
        texts = texts.passages if isinstance(texts, Corpus) else texts
        if isinstance(texts, str) or not isinstance(texts, Sequence | np.ndarray | None):
            raise RetrievalError(
                f"texts cannot be {described(texts)}; give a list of (title, text)"
            )
        self._index, self._texts, self._encoder = index, texts, encoder
        if texts is not None:
            self._check()

    @abstractmethod
    def _content(self) -> Iterator[Any]:
        """Bytes and words of all that the index holds."""

    def _check(self) -> None:
        """Raise RetrievalError where index and texts do not belong together."""
        if self.size != len(self._texts):
            raise RetrievalError(
                f"the {self.library} index holds {self.size} entries, and there are "
                f"{len(self._texts)} texts: give each entry's text, in the index's order"
            )

    @functools.cached_property
    def code(self) -> str | None:
        digest, encoder = hashlib.sha256(), self._encoder
        asked = encoder if encoder is None or isinstance(encoder, str) else code_of(encoder)
        if asked is None and encoder is not None:
            return None
        try:
            for part in self._content():
                digest.update(part if isinstance(part, bytes) else repr(part).encode())
        except RuntimeError:  # FAISS cannot write some indexes, as those on a GPU
            return None
        for item in () if self._texts is None else self._texts:
            digest.update(repr(item).encode())
        return short_hash(digest.hexdigest(), asked)

    @property
    def fingerprint(self) -> str:
        """Changes also with the weights of an encoder that was named."""
        return short_hash(super().fingerprint, getattr(self._encoder, "fingerprint", None))

    def over(self, corpus: Corpus, encoder: Callable[[str], Any]) -> Any:
        """As of its base. Raises RetrievalError where index, texts and encoder do not agree."""
        self.code  # noqa: B018 - of the index as it was given, and kept by what comes of it
        other = super().over(corpus, encoder)
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
        self.size = index.ntotal
        super().__init__(index, texts, encoder, name)
        if not (isinstance(encoder, str) or callable(getattr(encoder, "encode", encoder))):
            raise RetrievalError(
                "a FAISS index needs what its queries are encoded with: give (index, texts, "
                "'minilm'), an object with `encode`, or a function texts -> vectors"
            )

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
        if encoder is not None and not hasattr(encoder, "tokenize"):
            raise RetrievalError(
                f"{described(encoder)} is no tokenizer; give a Tokenizer of bm25s, or none"
            )
        self.size = index.scores["num_docs"]
        super().__init__(index, index.corpus if texts is None else texts, encoder, name)

    def _check(self) -> None:
        super()._check()
        sample = [" ".join(parts(item)[:2]) for item in self._texts[:20]]
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

        if self._encoder is None:
            return bm25s.tokenize(list(texts), return_ids=False, show_progress=False)
        how = {"update_vocab": False, "return_as": "string", "show_progress": False}
        return self._encoder.tokenize(list(texts), **how)

    def _replies(self, queries: Sequence[str], k: int) -> Iterator[Any]:
        found = self._index.retrieve(
            self._terms(queries),
            corpus=np.arange(self.size),  # places, also where the index holds texts
            k=min(k, self.size),
            show_progress=False,
        )
        return map(self._at, found.documents, found.scores)


INDEXES = {cls.library: cls for cls in (Faiss, BM25S)}
