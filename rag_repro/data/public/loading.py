"""Name -> file -> reader -> data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rag_repro.arguments import path as as_path
from rag_repro.data.public.assembling import build
from rag_repro.data.public.over import over
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
from rag_repro.plain import shortened
from rag_repro.schema.dataset import Dataset

PROJECT = "project"


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
    try:
        for file, kind in names:
            if (folder / file).is_file():
                return folder / file, kind
    except OSError as error:  # also of a name that is too long for the disk
        problem = f"cannot be read ({error.strerror})"
        raise MissingFile(shortened(folder), "", problem, "give another folder") from error
    raise MissingFile(
        folder,
        "",
        f"no file of the data set {entry.name!r}"
        + ("" if folder.is_dir() else " (no such folder)"),
        f"put {wanted} there, or name a file of yours by its form, as hotpotqa:PATH",
    )
