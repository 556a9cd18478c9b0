"""Name -> file -> reader -> data set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rag_repro.arguments import path as as_path
from rag_repro.data.public.assembling import build
from rag_repro.data.public.readers import (
    ambignq,
    dureader,
    hotpotqa,
    iirc,
    musique,
    nq,
    popqa,
    project,
    strategyqa,
    twowiki,
)
from rag_repro.data.public.record import Doc, MissingFile, Record
from rag_repro.data.public.registry import Source, source
from rag_repro.digest import sha256
from rag_repro.schema.dataset import Dataset

PROJECT = "project"
SHORTEST = 4
"""Characters of an answer, normalised: shorter ones, as "3" or "no", stand anywhere."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a file is read: its questions and, where the format has one, its corpus.

    companion_files: further files that are read with it, for the card.
    """

    read: Callable[[Path], Iterable[Record]]
    corpus: Callable[[Path], Sequence[Doc]] = lambda path: ()
    companion_files: Callable[[Path], Sequence[Path]] = lambda path: ()


FORMATS: Mapping[str, Format] = {
    PROJECT: Format(project.read),
    "hotpotqa": Format(hotpotqa.read),
    "2wikimultihopqa": Format(twowiki.read, companion_files=twowiki.companion_files),
    "musique": Format(musique.read),
    "nq": Format(nq.read),
    "popqa": Format(popqa.read),
    "ambignq": Format(ambignq.read),
    "strategyqa": Format(strategyqa.read, strategyqa.corpus, strategyqa.companion_files),
    "iirc": Format(iirc.read, companion_files=iirc.companion_files),
    "dureader": Format(dureader.read),
}


def load(name: str, data_dir: Path | str | None = None) -> Dataset:
    """The public data set `name`, whole, with its card.

    Looks in `data_dir` for `<name>.jsonl.gz` (the project's layout), then for
    the official file names of the registry.

    Raises UnknownName for a name, MissingFile, and the other DataErrors with file, line and remedy.
    """
    entry = source(name)
    found, chosen = find(entry, data_dir)
    reader = FORMATS[chosen]
    records = reader.read(found)
    used = [found, *reader.companion_files(found)]
    if chosen == PROJECT and entry.corpus:
        pool = found.with_name(entry.corpus)
        corpus = project.read_corpus(pool)
        used.append(pool)
    else:
        corpus = reader.corpus(found)
    if entry.first_docs:
        records = (replace(r, docs=r.docs[: entry.first_docs]) for r in records)
    made = build(entry, records, found, corpus)
    if entry.over:
        made = over(made, load(entry.over, found.parent))
        used += [found.with_name(source(entry.over).project_file)]
    if entry.recurring:
        from rag_repro.data import recurring

        made = recurring.of_public(made)
    card = {**made.card, "format": chosen, "files": {p.name: sha256(p) for p in used}}
    return replace(made, card=card)


def find(entry: Source, folder: Path | str | None) -> tuple[Path, str]:
    """The data set's file in the folder, and what it is written in. Raises MissingFile."""
    names = [(entry.project_file, PROJECT)] + [(o.file, o.format) for o in entry.official]
    wanted = " or ".join(file for file, _ in names)
    if folder is None:
        raise MissingFile(
            entry.name,
            "",
            "no folder of real data is named",
            f"set RAG_REPRO_DATA to the folder that holds {wanted}",
        )
    folder = as_path(folder)
    for file, kind in names:
        if (folder / file).is_file():
            return folder / file, kind
    raise MissingFile(
        folder,
        "",
        f"no file of the data set {entry.name!r}"
        + ("" if folder.is_dir() else " (no such folder)"),
        f"put {wanted} there, or name a file of yours by its form, as hotpotqa:PATH",
    )


def over(made: Dataset, other: Dataset) -> Dataset:
    """A data set without passages, over the corpus of another: AmbigNQ's questions over NQ's pool.

    The pool was gathered for other questions, so most questions of the first have no answer in
    it. Only those are kept of which it holds an answer string at all; that is necessary for an
    answer from passages and far from sufficient, since the string may stand there by chance.
    The corpus is `other`'s own, so that its indexes serve both.
    """
    from rag_repro.evaluation.metric import accepted
    from rag_repro.evaluation.normalise import squad

    parts = (part for p in other.corpus.passages for part in (p.title, p.text))
    texts = [f" {squad(part)} " for part in parts]
    places: dict[str, set[int]] = defaultdict(set)  # of words: there are thousands of both
    for place, text in enumerate(texts):
        for word in text.split():
            places[word].add(place)

    def stands(answer: str) -> bool:
        """Whether it stands in a text or title, in whole words, and is long enough."""
        wanted = squad(answer)
        if len(wanted) < SHORTEST:
            return False
        shared = set.intersection(*(places.get(word, set()) for word in wanted.split()))
        return any(f" {wanted} " in texts[place] for place in shared)

    kept = tuple(q for q in made.questions if any(map(stands, accepted(q))))
    counts = {
        **made.card["counts"],
        "questions": len(kept),
        "passages": len(other.corpus),
        "questions_before": len(made.questions),
    }
    rule = (
        f"kept: questions with an accepted answer of {SHORTEST} characters or more, in whole "
        f"words, in a passage of {other.name}: {len(kept)} of {len(made.questions)}"
    )
    card = {**made.card, "counts": counts, "corpus of": other.name, "kept": rule}
    return replace(made, questions=kept, corpus=other.corpus, card=card)
