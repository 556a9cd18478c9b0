"""Records in, `Dataset` out: the one way from any file to questions over a corpus.

The corpus is the pool of the *whole* file, whatever questions are used later:
first the passages of a corpus file, if any, with its ids; then every passage
of every question, in file order. Passages are one where title and text are
equal, character for character. An id made here is the title's slug and the
first 8 hex digits of the SHA-256 of title and text, so it neither depends on
other passages nor on which file the passage is in.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rag_repro.data.public.record import DataError, Doc, Record
from rag_repro.data.public.registry import Source
from rag_repro.data.public.roles import DYNAMIC, STATIC, role
from rag_repro.plain import UNSEEN
from rag_repro.schema import Gold, Passage, Question, Step
from rag_repro.schema.dataset import Corpus, Dataset

log = logging.getLogger(__name__)

CARD_FIELDS = ("name", "title", "paper", "source", "licence", "split", "full_size", "caveats")
"""What a card takes from the registry."""
_SLUG_LENGTH = 48
_PLAIN_ID = "take it out of the id"


def passage_id(title: str, text: str) -> str:
    """Stable and readable: "jonny-craig.1f0c9a2b"."""
    slug = re.sub(r"[\W_]+", "-", title.casefold()).strip("-")[:_SLUG_LENGTH].rstrip("-")
    digest = hashlib.sha256(f"{title}\x1f{text}".encode()).hexdigest()[:8]
    return f"{slug or 'untitled'}.{digest}"


class Pool:
    """Passages without duplicates, by (title, text), in order of arrival."""

    def __init__(self):
        self.passages: list[Passage] = []
        self._by_content: dict[tuple[str, str], str] = {}
        self.by_title: dict[str, list[str]] = {}
        """Ids of the passages with exactly this title."""
        self.by_id: dict[str, tuple[str, str]] = {}
        """Id and title of the passage that came with this id; of equal ones the first's id."""

    def add(self, doc: Doc) -> str:
        """The id of the passage, which is new or was there already."""
        key = (doc.title, doc.text)
        if key not in self._by_content:
            made = doc.id or passage_id(*key)
            self._by_content[key] = made
            self.by_title.setdefault(doc.title, []).append(made)
            self.passages.append(Passage(made, doc.title, doc.text))
        if doc.id:
            self.by_id[doc.id] = self._by_content[key], doc.title
        return self._by_content[key]


def build(
    source: Source, records: Iterable[Record], path: Path, corpus: Sequence[Doc] = ()
) -> Dataset:
    """The data set of `records`, read from `path`, over their pool and `corpus`.

    Raises a DataError with the record's place on a duplicate question id, a
    question without answers, or an empty or missing gold passage.
    """
    records = list(records)
    if not records:
        raise DataError(path, "", "no question in it", "copy or download the file again")
    pool = Pool()
    for doc in corpus:
        if UNSEEN.search(doc.id or ""):
            raise DataError(path, "", f"passage id {doc.id!r} holds a control character", _PLAIN_ID)
        if doc.text.strip():
            pool.add(doc)
    _check(source, records, path)
    # Gold may be known by title alone, so all passages come before all questions.
    ids = [[pool.add(doc) if doc.text.strip() else None for doc in r.docs] for r in records]
    questions = tuple(
        _question(source, r, own, pool, path) for r, own in zip(records, ids, strict=True)
    )
    dropped = sum(i is None for own in ids for i in own)
    if dropped:
        log.warning("%s: %d passages without text left out", path, dropped)
    made = Corpus(source.name, tuple(pool.passages))
    return Dataset(source.name, questions, made, _card(source, questions, made, dropped))


def _check(source: Source, records: Sequence[Record], path: Path) -> None:
    seen: dict[str, str] = {}

    def bad(record: Record, problem: str, remedy: str) -> DataError:
        return DataError(path, record.place, f"question {record.id!r} {problem}", remedy)

    for r in records:
        if r.id in seen:
            raise bad(r, f"was {seen[r.id]} already", "remove one of them")
        if UNSEEN.search(r.id):
            raise bad(r, "holds a control character in its id", _PLAIN_ID)
        seen[r.id] = r.place
        if not r.question.strip():
            raise bad(r, "has no text", "remove it")
        if not r.answers and not source.answers_optional:
            raise bad(r, "has no answer", "remove it or add one")
        for doc in r.docs:
            if doc.gold and not doc.text.strip():
                problem = f"has a gold passage {doc.title!r} that has no text"
                raise bad(r, problem, "put its text in, or remove the question")
        marked = r.gold_titles or r.gold_ids or any(d.gold for d in r.docs)
        if not source.gold_optional and not marked:
            raise bad(r, "has no gold passage", "mark its gold passages, or remove the question")


def _question(
    source: Source, r: Record, ids: Sequence[str | None], pool: Pool, path: Path
) -> Question:
    gold: dict[str, str] = {i: d.title for i, d in zip(ids, r.docs, strict=True) if i and d.gold}
    absent = []
    for ident in r.gold_ids:
        if (known := pool.by_id.get(ident)) is None:
            absent.append(ident)
        else:
            gold |= [known]
    for title in r.gold_titles:
        if any(known == title for known in gold.values()):
            continue
        found = pool.by_title.get(title, [])
        gold |= dict.fromkeys(found, title)
        if not found:
            absent.append(title)
    if absent and not source.gold_optional:
        raise DataError(
            path,
            r.place,
            f"gold passage {absent[0]!r} of question {r.id!r} is not in the corpus",
            "use the corpus that belongs to the questions, or remove the question",
        )
    of_title = {title: i for i, title in gold.items()}
    supported = [ids[s.doc] if s.doc is not None else of_title.get(s.title) for s in r.steps]
    hop: dict[str, int] = {}
    for step, i in zip(r.steps, supported, strict=True):
        if i is not None:
            hop[i] = min(step.hop, hop.get(i, step.hop))
    meta = dict(r.meta)
    if absent:
        meta["gold_not_in_corpus"] = tuple(absent)
    golds = (
        Gold(i, role(title, r.question) if source.multi_hop else None, hop.get(i))
        for i, title in gold.items()
    )
    return Question(
        id=r.id,
        text=r.question.strip(),
        answers=r.answers,
        kind=r.kind,
        hops=r.hops,
        gold=tuple(sorted(golds, key=lambda g: g.hop or len(r.steps) + 1)),
        candidates=tuple(dict.fromkeys(i for i in ids if i)),
        steps=tuple(Step(s.question, s.answer, i) for s, i in zip(r.steps, supported, strict=True)),
        interpretations=r.interpretations,
        meta=meta,
    )


def _card(
    source: Source, questions: Sequence[Question], corpus: Corpus, dropped: int
) -> Mapping[str, object]:
    """Source, licence, split and caveats, with the counts of this very file."""
    golds = [gold for question in questions for gold in question.gold]

    def roles(hop: str | None = None) -> dict[str, int]:
        of_hop = [g.role for g in golds if hop in (None, str(g.hop))]
        return {role: of_hop.count(role) for role in (STATIC, DYNAMIC)}

    card = {field: getattr(source, field) for field in CARD_FIELDS}
    card["counts"] = {
        "questions": len(questions),
        "passages": len(corpus),
        "kinds": _counts(q.kind for q in questions),
        "hops": _counts(q.hops for q in questions),
        "gold_per_question": _counts(len(q.gold) for q in questions),
        "candidates_per_question": _counts(len(q.candidates) for q in questions),
        "gold_not_in_corpus": sum(len(q.meta.get("gold_not_in_corpus", ())) for q in questions),
        "passages_without_text": dropped,
    }
    if source.multi_hop:
        rule = "heuristic: static where the page's name stands in the question"
        by_hop = {hop: roles(hop) for hop in _counts(gold.hop for gold in golds)}
        card["roles"] = {"rule": rule, **roles(), "by_hop": by_hop}
    return card


def _counts(values) -> dict[str, int]:
    """value -> how often, smallest or first in the alphabet first (None last)."""
    found = Counter(values)
    order = sorted(found, key=lambda v: (v is None, v if v is not None else 0))
    return {str(v): found[v] for v in order}
