"""Questions and passages of one's own: `load("folder:PATH")`.

    PATH/passages/*.txt, *.md      the texts; folders inside are read as well
    PATH/questions.jsonl           or questions.csv, or questions.txt (own_files)

A text's title is its first heading (`# Title`, or a line that is underlined with
=== or ---) or its file's name. Texts are read as Unicode's form NFC. Links among
them are not followed; the card tells of them. Texts of more than 100 words are cut
where sentences end (`splitter.by_sentences`), and passage 3 of passages/harbour.md
has the id `harbour#3`; `folder:PATH?words=50` cuts at 50 words, and `?words=all`
cuts none. The data set is named after its folder and a hash of its files, so that
no path enters a record and an edited folder is another data set.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rag_repro.arguments import path as as_path
from rag_repro.data.external import options_of
from rag_repro.data.own_files import (
    QUESTIONS,
    TEXTS,
    Entry,
    Findings,
    FolderError,
    existing,
    nfc,
    question_files,
    read,
    read_questions,
    unreadable,
    visible,
)
from rag_repro.data.public.roles import role
from rag_repro.data.splits import SPLITS, SplitError, check_split
from rag_repro.schema import Gold, Passage, Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.splitter import SIZE, by_sentences, headings
from rag_repro.words import nearest

log = logging.getLogger(__name__)

__all__ = ["FolderError", "corpus", "label", "load"]


def load(folder: Path | str, split: str | None = None) -> Dataset:
    """The folder's questions over its passages; the card has counts and warnings.

    A question is of the split "test" unless its field `split` says otherwise.
    Raises FolderError with every problem of every file, SplitError for a split
    without questions.
    """
    if split is not None:
        check_split(split)
    place, (folder, words) = folder, _words_of(folder)
    found = Findings()
    passages = _passages(folder, found, words)
    entries = _entries(folder, found)
    questions = tuple(_question(entry, passages, found) for entry in entries)
    _check_answers(entries, passages, found)
    if found.problems:
        raise FolderError(folder, found.problems)
    for warning in found.warnings:
        log.warning("%s: %s", folder, warning)
    name = label(place)
    splits = Counter(entry.split for entry in entries)
    card = {
        "source": "a folder of one's own",
        "licence": "its owner's",
        "texts": len({p.id.rpartition("#")[0] for p in passages}),
        "words a passage": f"at most {words}, whole sentences" if words else "uncut",
        "with answers": sum(bool(q.answers) for q in questions),
        "with gold": sum(bool(q.gold) for q in questions),
        "splits": {name: splits[name] for name in SPLITS if splits[name]},
        "warnings": tuple(found.warnings) or None,
    }
    made = Dataset(name, questions, Corpus(name, passages), card)
    if split is None:
        return made
    wanted = [entry.id for entry in entries if entry.split == split]
    if not wanted:
        raise SplitError(f"{folder} has no {split} questions; it has {', '.join(card['splits'])}")
    made = made.only(wanted)
    return Dataset(made.name, made.questions, made.corpus, {**card, "split": split})


def corpus(folder: Path | str) -> Corpus:
    """The folder's passages alone; no file of questions is needed. Raises FolderError."""
    place, (folder, words) = folder, _words_of(folder)
    found = Findings()
    passages = _passages(folder, found, words)
    if found.problems:
        raise FolderError(folder, found.problems)
    return Corpus(label(place), passages)


def label(folder: Path | str) -> str:
    """As "folder-town@3f2a91bc": the folder's name and a hash of the files that are read.

    Raises FolderError where there is no such folder.
    """
    folder, words = _words_of(folder)
    folder = existing(folder)
    digest = hashlib.sha256(b"" if words == SIZE else f"words={words}\x1e".encode())
    texts = [path for path in visible(folder, Findings()) if path.suffix.lower() in TEXTS]
    for path in [*texts, *question_files(folder)]:
        place = nfc(path.relative_to(folder).as_posix())
        try:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise FolderError(folder, [f"{place}: {unreadable(error)}"]) from error
        digest.update(f"{place}\x1f{content}\x1e".encode())
    slug = re.sub(r"[^\w.-]+", "-", nfc(folder.resolve().name))[:_LONGEST].strip("-.") or "root"
    return f"folder-{slug}@{digest.hexdigest()[:8]}"


def _words_of(folder: Path | str) -> tuple[Path, int | None]:
    """The folder, and the words of a passage at most; None: texts are not cut."""
    path = as_path(folder)
    if "?" not in str(folder) or path.is_dir():
        return path, SIZE
    text, options = options_of(str(folder), ("words",), f"folder:{folder}")
    words = options.get("words", str(SIZE))
    return as_path(text), None if words == "all" else int(words)


_LONGEST = 60  # of the folder's name in a record's, which a disk cuts off at 255 bytes

# --------------------------------------------------------------------- passages


def _passages(folder: Path, found: Findings, words: int | None) -> tuple[Passage, ...]:
    root = existing(folder) / "passages"
    if not root.is_dir():
        found.tell("passages", "no such folder; make it, and put .txt and .md files into it")
        return ()
    names: dict[str, str] = {}
    blocks: dict[str, str] = {}
    made: list[Passage] = []
    for path in visible(folder, found):
        place = path.relative_to(folder).as_posix()
        if path.suffix.lower() not in TEXTS:
            found.warn(place, "not read; only .txt and .md files are")
            continue
        text = read(path, place, found)
        name = nfc(path.relative_to(root).with_suffix("").as_posix())
        if text is None:
            found.unread.add(name)
            continue
        if name in names:
            found.tell(place, f"its passages would have the ids of {names[name]}'s; rename one")
            continue
        names[name] = place
        title, body = _titled(text, nfc(path.stem))
        whole = [" ".join(body.split())] if body.strip() else []
        pieces = whole if words is None else list(by_sentences(body, words))
        if not pieces:
            found.tell(place, "a heading without text; put its text in, or remove it")
        if words and len(pieces) == 1 and len(pieces[0]) > 20 * words:
            found.warn(place, "not cut, though long: a word in it has no end")
        for number, piece in enumerate(pieces, start=1):
            if piece in blocks:
                found.warn(place, f"passage {number} has the text of {blocks[piece]}")
            blocks.setdefault(piece, f"{name}#{number}")
            made.append(Passage(f"{name}#{number}", title, piece))
    if not names and not found.problems:
        found.tell("passages", "no .txt or .md file in it; put your texts there")
        found.problems += found.warnings  # what was left out, and why
    return tuple(made)


def _titled(text: str, stem: str) -> tuple[str, str]:
    """Title and text: the first heading, which leaves the text where it begins it."""
    for start, end, words in headings(text):
        return words, text if text[:start].strip() else text[end:]
    return " ".join(re.split(r"[-_\s]+", stem)).strip(), text


# -------------------------------------------------------------------- questions


def _entries(folder: Path, found: Findings) -> list[Entry]:
    files = question_files(folder)
    if not files:
        held = [p.name for p in folder.iterdir() if p.is_file() and p.name.startswith("question")]
        hint = f" ({held[0]} is there)" if held else ""
        found.tell("questions", f"none; write one of {', '.join(QUESTIONS)}{hint}")
        return []
    if len(files) > 1:
        both = " and ".join(path.name for path in files)
        found.tell("questions", f"{both} are both there; keep one")
        return []
    before = len(found.problems)
    text = read(files[0], files[0].name, found)
    entries = [] if text is None else read_questions(files[0].name, text, found)
    if not entries and len(found.problems) == before:
        found.tell(files[0].name, "no question in it; write one a line")
    return entries


def _question(entry: Entry, passages: Sequence[Passage], found: Findings) -> Question:
    """The question with its gold passages; roles by DR-RAG's idea where it needs several."""
    of = {p.id: p for p in passages}
    ids = dict.fromkeys(i for said in entry.gold for i in _gold(said, entry, passages, found))
    gold = [Gold(i, role(of[i].title, entry.question) if len(ids) > 1 else None) for i in ids]
    return Question(
        id=entry.id,
        text=entry.question,
        answers=entry.answers,
        kind=entry.kind,
        gold=tuple(gold),
    )


def _gold(said: str, entry: Entry, passages: Sequence[Passage], found: Findings) -> list[str]:
    """The passages that are meant: by id, by their file's name, or by some of their words."""
    ids = [p.id for p in passages]
    files: dict[str, list[str]] = {}
    for i in ids:
        files.setdefault(i.rpartition("#")[0], []).append(i)
    if said in ids:
        return [said]
    name = re.sub(r"\.(txt|md)$", "", said.removeprefix("passages/"))
    if name in found.unread:
        return []
    if name in files:
        if len(files[name]) > 1:
            n = len(files[name])
            told = f"gold {said!r} means all {n} passages of that text"
            found.warn(entry.place, f"{told}; name those that are needed, as {name}#2")
        return files[name]
    quote = " ".join(said.split())
    # One word alone is a name, and a misspelt one must not pass for a part of another word.
    holding = [p.id for p in passages if " " in quote and quote in p.text]
    if len(holding) == 1:
        return holding
    if holding:
        shown = ", ".join(holding[:4])
        found.tell(
            entry.place, f"gold {said!r} stands in {len(holding)} passages ({shown}); quote more"
        )
    elif " " in quote:
        found.tell(
            entry.place,
            f"gold {said!r} stands in no passage; quote it letter by letter, "
            "within one passage, or name its file",
        )
    else:
        hint = nearest(said, [*files, *ids])
        found.tell(entry.place, f"gold {said!r} is no file in passages, and no passage{hint}")
    return []


def _check_answers(entries: Sequence[Entry], passages: Sequence[Passage], found: Findings) -> None:
    """Warn where no passage holds any of a question's answers; yes and no need not be there."""
    texts = [f"{p.title} {p.text}".casefold() for p in passages]
    for entry in entries:
        said = [" ".join(a.casefold().split()) for a in entry.answers]
        if said and not {"yes", "no"} & set(said) and not any(a in t for a in said for t in texts):
            found.warn(entry.place, f"no passage holds the answer {entry.answers[0]!r}")
