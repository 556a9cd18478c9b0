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
from rag_repro.data.public.record import Doc, MissingFile, Record, UnknownName
from rag_repro.data.public.registry import Source, source
from rag_repro.digest import sha256
from rag_repro.plain import shortened
from rag_repro.schema.dataset import Dataset
from rag_repro.words import nearest

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


def load(
    name: str,
    data_dir: Path | str | None = None,
    *,
    path: Path | str | None = None,
    format: str | None = None,
) -> Dataset:
    """The public data set `name`, whole, with its card.

    Looks in `data_dir` for `<name>.jsonl.gz` (the project's layout), then for
    the official file names of the registry. `path` names the file instead, and
    `format` what it is written in (by default the data set's official format,
    or the project's for a file that begins like one).

    Raises UnknownName for a name or format, MissingFile, and the other
    DataErrors with file, line and remedy.
    """
    entry = source(name)
    if format is not None and format not in FORMATS:
        raise UnknownName(
            f"no format {format!r}{nearest(format, FORMATS)}; there are: {', '.join(FORMATS)}"
        )
    if path is not None:
        found, chosen = Path(path), format or _format_of(entry, Path(path))
    else:
        found, chosen = find(entry, data_dir, format)
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


def find(entry: Source, folder: Path | str | None, format: str | None = None) -> tuple[Path, str]:
    """The data set's file in the folder, and what it is written in. Raises MissingFile."""
    names = [(entry.project_file, PROJECT)] + [(o.file, o.format) for o in entry.official]
    names = [(file, kind) for file, kind in names if format in (None, kind)]
    wanted = " or ".join(file for file, _ in names) or f"a file in format {format!r} by its path"
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
        f"put {wanted} there, or give path= and format=",
    )


def _format_of(entry: Source, path: Path) -> str:
    """The format of a file that was named without one."""
    if not path.is_file():
        raise MissingFile(path, "", "there is no such file", "give the path of the file")
    by_name = {Path(o.file).name: o.format for o in entry.official}
    if path.name in by_name:
        return by_name[path.name]
    if path.name == entry.project_file or not entry.official:
        return PROJECT
    raise UnknownName(
        f"{path}: the file's name does not say its format; "
        f"give format= as one of {', '.join(FORMATS)}"
    )
