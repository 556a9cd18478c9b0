"""A data set in memory: questions over a corpus, with a card."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from rag_repro.schema import Passage, Question


@dataclass(frozen=True)
class Corpus:
    """Passages with unique ids, in a fixed order.

    `sha256` is of ids, titles and texts in order, and enters every record
    and index made over the corpus.
    """

    name: str
    passages: tuple[Passage, ...]

    def __post_init__(self):
        if len(self.by_id) != len(self.passages):
            seen: set[str] = set()
            twice = next(p.id for p in self.passages if p.id in seen or seen.add(p.id))
            raise ValueError(
                f"corpus {self.name!r}: passage id {twice!r} occurs twice; "
                "give each passage an id of its own"
            )

    def __len__(self) -> int:
        return len(self.passages)

    @cached_property
    def by_id(self) -> Mapping[str, Passage]:
        return {p.id: p for p in self.passages}

    def match(self, title: str, text: str, passage_id: str | None = None) -> Passage | None:
        """The passage that a title and a text from elsewhere are of; None: none of these.

        Of equal text (case and spaces aside), with its title or with none: the passage itself.
        Of its title, where one text begins the other or the id is the passage's: its id, with
        the title and text that were given.
        """
        name, full = _folded(title), _folded(text)
        for known in self._by_ends.get(_ends(text), ()):
            if (not name or _folded(known.title) == name) and _folded(known.text) == full:
                return known
        bare = full.removeprefix(name).lstrip(" .:-")  # some put the title before the text
        for known in self._by_title.get(name, ()) if name else ():
            ours = _folded(known.text)
            begins = any(t.startswith(ours) or ours.startswith(t) for t in (full, bare) if t)
            if known.id == passage_id or (ours and begins):
                return Passage(known.id, title, text)
        return None

    @cached_property
    def _by_ends(self) -> Mapping[str, list[Passage]]:
        return _grouped((_ends(p.text), p) for p in self.passages)

    @cached_property
    def _by_title(self) -> Mapping[str, list[Passage]]:
        return _grouped((_folded(p.title), p) for p in self.passages)

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for p in self.passages:
            digest.update(f"{p.id}\x1f{p.title}\x1f{p.text}\x1e".encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Dataset:
    """Questions over a corpus.

    card: what a reader must know: source, licence, split, counts, caveats.
    """

    name: str
    questions: tuple[Question, ...]
    corpus: Corpus
    card: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def by_id(self) -> Mapping[str, Question]:
        return {q.id: q for q in self.questions}

    @cached_property
    def questions_sha256(self) -> str:
        """Of all that answering or scoring a question can look at, in order."""
        digest = hashlib.sha256()
        for q in self.questions:
            gold = [[g.passage_id, g.role, g.hop] for g in q.gold]
            readings = [[i.question, i.answers] for i in q.interpretations]
            seen = [
                q.id,
                q.text,
                q.answers,
                q.kind,
                q.hops,
                gold,
                q.candidates,
                readings,
                q.cluster,
            ]
            # What was meant, where a data set says so: `intent_hit` looks at it.
            seen += [q.meta["intent"]] if "intent" in q.meta else []
            digest.update(json.dumps(seen, ensure_ascii=True).encode() + b"\x1e")
        return digest.hexdigest()

    def only(self, ids: Iterable[str]) -> Dataset:
        """The same corpus with only the named questions, in the given order."""
        return replace(self, questions=tuple(self.by_id[i] for i in ids))

    def first(self, n: int | None, kinds: Collection[str] = ()) -> Dataset:
        """The first n questions (all where n is None) of these kinds, or of any."""
        asked = [q for q in self.questions if q.kind in kinds] if kinds else self.questions
        return replace(self, questions=tuple(asked[:n]))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _ends(text: str) -> str:
    """Its first and last words, folded: ten times quicker than all, and nearly as telling."""
    return " ".join([*text.split(None, 6)[:6], *text.rsplit(None, 6)[-6:]]).casefold()


def _grouped(pairs: Iterable[tuple[str, Passage]]) -> Mapping[str, list[Passage]]:
    groups: dict[str, list[Passage]] = {}
    for key, passage in pairs:
        groups.setdefault(key, []).append(passage)
    return groups
