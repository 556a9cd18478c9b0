"""Data sets by the address of a file or folder: `FORMAT:PATH?option=value&option=value`.

    hotpotqa:FILE          an official file, whole; so are 2wikimultihopqa:, musique:, nq:, popqa:,
                           ambignq:, strategyqa:, iirc:, dureader: and project:
    beir:FOLDER            corpus.jsonl, queries.jsonl, qrels/*.tsv         ?split=dev
    jsonl:FILE             JSON Lines or an array; fields by name (readers.fields), and passages
                           of all questions from another file: ?question=q&answers=a&corpus=FILE
    parquet:FILE           as jsonl:
    hf:FOLDER              what `datasets` saved, or the Hub's Parquet files; as jsonl:, and
                           ?split=validation&config=distractor

`words=100` cuts passages of more than 100 words where sentences end (`splitter.by_sentences`);
the default, `words=all`, cuts none. In a path and a value % stands as %25, & as %26, ? as %3F.
Gold passages that are not in the corpus are refused in jsonl: and parquet:; of releases, which
may judge more than they hold, they are left out with a warning. Files may be gzipped. All
questions are test questions. The data set is named after its file and a hash of all that is
read, so that no path enters a record.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, unquote

from rag_repro import digest
from rag_repro.arguments import path as as_path
from rag_repro.bars import Bar
from rag_repro.data.public import registry
from rag_repro.data.public.assembling import Pool, build
from rag_repro.data.public.loading import FORMATS
from rag_repro.data.public.readers import beir, fields
from rag_repro.data.public.record import DataError, Doc, MissingFile, Record, UnknownName
from rag_repro.data.public.registry import Source
from rag_repro.data.public.tables import PARQUET, shards
from rag_repro.data.splits import SplitError, check_split
from rag_repro.plain import shortened
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.splitter import by_sentences
from rag_repro.words import nearest

log = logging.getLogger(__name__)

_TABLE = (*fields.FIELDS, "corpus", "words")
_OWN = ("jsonl", "parquet")  # tables that a user writes; the others are releases
OPTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(FORMATS, ("words",)),
    "beir": ("split", "words"),
    "jsonl": _TABLE,
    "parquet": _TABLE,
    "hf": (*_TABLE, "split", "config"),
}
"""Format -> the options that its address may have."""

_PREFIX = re.compile(r"([\w-]{2,}):")
_QUERY = re.compile(r"(.*?)(?:\?([^?]*))?", re.DOTALL)
_LONGEST = 60  # of the file's name in a record's, which a disk cuts off at 255 bytes


@dataclass(frozen=True)
class Address:
    """A format, a path, and the options, in a fixed order and without defaults."""

    format: str
    path: Path
    options: tuple[tuple[str, str], ...] = ()

    def get(self, option: str) -> str | None:
        return dict(self.options).get(option)

    @property
    def max_words(self) -> int | None:
        """Of a passage at most; None: passages are not cut."""
        return int(self.get("words")) if self.get("words") else None

    @property
    def fields(self) -> dict[str, str]:
        return {key: value for key, value in self.options if key in fields.FIELDS}

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are read, the first one that of the questions. Raises DataError."""
        if self.format == "beir":
            passages, questions, judged = beir.files(self.path, self.get("split"))
            return questions, judged, passages
        if self.format == "hf":
            return (*shards(self.path, self.get("split"), self.get("config")), *self.corpus)
        _check_file(self.path)
        if self.format in FORMATS:
            return (self.path, *FORMATS[self.format].companion_files(self.path))
        if self.format == "parquet" and self.path.suffix.lower() != PARQUET:
            raise DataError(self.path, "", f"not named *{PARQUET}", "for JSON write jsonl:PATH")
        return (self.path, *self.corpus)

    @property
    def corpus(self) -> tuple[Path, ...]:
        """The file with passages of all questions, if one is named."""
        if not self.get("corpus"):
            return ()
        _check_file(path := as_path(self.get("corpus")))
        return (path,)

    def __str__(self) -> str:
        """The name again, with whole paths."""
        own = [(k, str(as_path(v).absolute()) if k == "corpus" else v) for k, v in self.options]
        query = "&".join(f"{key}={quote(value, safe='/.,:')}" for key, value in own)
        path = re.sub("[%?&]", lambda one: quote(one[0]), str(self.path.absolute()))
        return f"{self.format}:{path}" + (f"?{query}" if query else "")


def _check_file(path: Path) -> None:
    if path.is_dir():
        problem = "it is a folder, and this format is that of a file"
        raise MissingFile(path, "", problem, "name the file in it, or write beir: or hf:")
    if not path.is_file():
        known = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        problem = f"there is no such file{nearest(path.name, known)}"
        raise MissingFile(path, "", problem, "give the path of the file")


def options_of(text: str, known: Sequence[str], name: str) -> tuple[str, dict[str, str]]:
    """Path and options of what follows the format. Raises UnknownName for an unknown option."""
    path, query = _QUERY.fullmatch(text).groups()
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        if key not in known:
            hint = f"{nearest(key, known)}; there are: {', '.join(known)}"
            raise UnknownName(f"{shortened(name)}: no option {key!r}{hint}")
        if not value or key in options:
            why = "is given twice" if key in options else f"has no value; write {key}=..."
            raise UnknownName(f"{shortened(name)}: the option {key!r} {why}")
        options[key] = unquote(value)
    words = options.get("words", "all")
    if words != "all" and not (words.isdecimal() and len(words) < 8 and int(words)):
        raise UnknownName(
            f"{shortened(name)}: words={words} is neither a whole number above 0 nor 'all'"
        )
    return unquote(path), options


def parse(name: str) -> Address | None:
    """The address that a name is; None where it begins with no format.

    Raises UnknownName for an option that is unknown or has no value; no file is looked at.
    """
    found = _PREFIX.match(name)
    if found is None or found[1] not in OPTIONS:
        return None
    path, options = options_of(name[found.end() :], OPTIONS[found[1]], name)
    if options.get("words") == "all":
        del options["words"]
    return Address(found[1], as_path(path), tuple(sorted(options.items())))


def label(address: Address) -> str:
    """As "hotpotqa-dev@3f2a91bc": the file's name and a hash of what is read, and how."""
    made = sha256()
    for path in address.files:
        made.update(f"{_hash(path)}\x1e".encode())
    for key, value in address.options:
        # Of another file the content counts, and not where it lies.
        made.update(f"{key}\x1f{'' if key == 'corpus' else value}\x1e".encode())
    stem = address.path.absolute().name.partition(".")[0]
    slug = re.sub(r"[^\w-]+", "-", stem)[:_LONGEST].strip("-") or "root"
    return f"{address.format}-{slug}@{made.hexdigest()[:8]}"


def _hash(path: Path) -> str:
    seen = path.stat()
    return _hash_of(path, seen.st_size, seen.st_mtime_ns)


@lru_cache(maxsize=1024)
def _hash_of(path: Path, size: int, changed: int) -> str:
    return digest.sha256(path)


def load(address: Address, split: str | None = None) -> Dataset:
    """All questions of the file over the passages of all its questions, and of its corpus.

    Raises DataError with file, line and remedy, SplitError for train and tune questions.
    """
    name = label(address)
    if split is not None:
        check_split(split)
        if split != "test":
            raise SplitError(
                f"{name} has no {split} questions: those of a file are test questions, all of them"
            )
    made = _loaded(address, name)
    if split is not None and not made.questions:
        raise DataError(address.path, "", "it has passages and no question", "add question=FIELD")
    return made


@lru_cache(maxsize=2)  # `ask` loads it for each question
def _loaded(address: Address, name: str) -> Dataset:
    read = address.files
    records, docs = _contents(address, read)
    size = sum(path.stat().st_size for path in read)
    records = list(Bar(records, desc=f"reading {read[0].name}", unit="q"))
    source = _source(address, name)
    if address.max_words:
        records, docs = _cut(records, docs, address.max_words)
    if records or not docs:
        made = build(source, records, read[0], docs)
        _check_gold(address, records, made)
    else:
        pool = Pool()
        for doc in docs:
            if doc.text:
                pool.add(doc)
        made = Dataset(name, (), Corpus(name, tuple(pool.passages)))
    cut = (
        f"at most {address.max_words}, whole sentences"
        if address.max_words
        else "as in the file, uncut"
    )
    log.info(
        "%s: %d questions over %d passages, from %d bytes",
        *(name, len(made.questions), len(made.corpus), size),
    )
    card = {
        **{key: value for key, value in made.card.items() if value != ""},
        "format": address.format,
        "words a passage": cut,
        "with answers": sum(bool(q.answers) for q in made.questions),
        "with gold": sum(bool(q.gold) for q in made.questions),
        "splits": {"test": len(made.questions)},
        "files": {path.name: f"{_hash(path)} ({path.stat().st_size:,} bytes)" for path in read},
    }
    return replace(made, card=card)


def _check_gold(address: Address, records: Sequence[Record], made: Dataset) -> None:
    """Warn of gold passages that are not in the corpus. DataError: one's own table has some."""
    lacking = [
        (record, absent)
        for record, question in zip(records, made.questions, strict=True)
        if (absent := question.meta.get("gold_not_in_corpus"))
    ]
    if not lacking:
        return
    if address.format in _OWN:
        record, absent = lacking[0]
        shown = ", ".join(map(repr, absent[:4])) + (", ..." if len(absent) > 4 else "")
        raise DataError(
            address.path,
            record.place,
            f"gold of question {record.id!r} that is not in the corpus, or has no text: {shown}"
            f" (questions with such gold: {len(lacking)})",
            "name passages by id or title, or add them",
        )
    left_out = sum(len(absent) for _, absent in lacking)
    log.warning(
        "%s: %d of %d gold passages are not in the corpus and left out; recall is of the rest",
        *(made.name, left_out, left_out + sum(len(q.gold) for q in made.questions)),
    )


def _contents(
    address: Address, files: Sequence[Path]
) -> tuple[Iterable[Record], tuple[Doc, ...] | Sequence[Doc]]:
    """The questions, and the passages that belong to none of them."""
    if address.format in FORMATS:
        reader = FORMATS[address.format]
        return reader.read(address.path), reader.corpus(address.path)
    if address.format == "beir":
        questions, judged, passages = files
        docs = beir.corpus(passages)
        return beir.read(questions, judged, frozenset(doc.id for doc in docs)), docs
    own = files[: len(files) - len(address.corpus)]
    if not fields.holds_questions(own[0], address.fields):
        return (), fields.corpus(own, address.fields)
    docs = fields.corpus(address.corpus, address.fields)
    return fields.read(own, address.fields, frozenset(doc.id for doc in docs)), docs


def _source(address: Address, name: str) -> Source:
    """What is known of the file: its form; neither its origin nor its licence."""
    known = registry().get(address.format)
    title = f"a file in the form of {known.title}" if known else f"in the form {address.format}"
    return Source(
        name=name,
        title=title,
        paper=known.paper if known else "",
        source="a file of one's own",
        licence="its owner's",
        split="as the file is, whole",
        gold_optional=True,
        answers_optional=True,
        multi_hop=known.multi_hop if known else False,
    )


# ------------------------------------------------------------------ cut passages


def _cut(
    records: Sequence[Record], docs: Sequence[Doc], words: int
) -> tuple[list[Record], list[Doc]]:
    """Each passage as blocks of whole sentences; of a gold passage all blocks are gold."""
    pieces = {doc.id: [*_pieces(doc, words)] for doc in docs}
    names = {ident: [doc.id for doc in own] for ident, own in pieces.items()}
    cut = []
    for record in records:
        parts = [[*_pieces(doc, words)] for doc in record.docs]
        first = [sum(map(len, parts[:i])) for i in range(len(parts))]
        cut.append(
            replace(
                record,
                docs=tuple(doc for own in parts for doc in own),
                gold_ids=tuple(name for i in record.gold_ids for name in names.get(i, [i])),
                steps=tuple(
                    step if step.doc is None else replace(step, doc=first[step.doc])
                    for step in record.steps
                ),
            )
        )
    return cut, [doc for own in pieces.values() for doc in own]


def _pieces(doc: Doc, words: int) -> Iterator[Doc]:
    blocks = [*by_sentences(doc.text, words)]
    if len(blocks) < 2:
        yield doc
        return
    for number, block in enumerate(blocks, start=1):
        yield replace(doc, text=block, id=doc.id and f"{doc.id}#{number}")
