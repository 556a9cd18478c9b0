"""BEIR's folders (Thakur et al. 2021): questions, passages, and which passages are relevant.

    corpus.jsonl     {_id, title, text}         also .jsonl.gz
    queries.jsonl    {_id, text}                also .jsonl.gz
    qrels/test.tsv   query-id, corpus-id, score (a header line); also train and dev

Only questions that the split judges are asked; relevant are passages with a score above 0.
Of those that the corpus lacks `external` warns; recall is of the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.opened_files import lines, read_text
from rag_repro.data.public.readers import fields
from rag_repro.data.public.record import DataError, Doc, MissingFile, Record
from rag_repro.words import nearest

HEAD = ("query-id", "corpus-id", "score")
_ORDER = ("test", "dev", "train")


def files(folder: Path, split: str | None) -> tuple[Path, Path, Path]:
    """Corpus, questions and judgements; of several splits the first of test, dev, train."""
    if not folder.is_dir():
        raise MissingFile(folder, "", "there is no such folder", "give the path of the folder")
    known = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    if not known:
        problem = "no qrels/*.tsv, so it is no folder of BEIR"
        raise MissingFile(folder, "", problem, "put the file with the judgements there")
    if split is not None and split not in known:
        problem = f"no split {split!r}{nearest(split, known)}"
        raise DataError(folder / "qrels", "", problem, f"there are: {', '.join(known)}")
    chosen = split or next(one for one in (*_ORDER, *known) if one in known)
    return _one(folder, "corpus"), _one(folder, "queries"), known[chosen]


def _one(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.jsonl", folder / f"{name}.jsonl.gz"):
        if path.is_file():
            return path
    raise MissingFile(folder, "", f"no {name}.jsonl, so it is no folder of BEIR", "put it there")


def read(queries: Path, judgements: Path, ids: frozenset[str]) -> Iterator[Record]:
    """The judged questions, in the order of their file; there are no answers."""
    relevant = _judged(judgements)
    judged = {name for names in relevant.values() for name in names}
    if judged and not judged & ids:
        problem = f"no passage that it judges is in the corpus, as {min(judged)!r}"
        raise DataError(judgements, "", problem, "take the files of one release")
    for row in lines(queries):
        if (ident := row.take("_id", str)) in relevant:
            gold = tuple(relevant[ident])
            yield Record(ident, row.take("text", str), (), row.place, gold_ids=gold)


def corpus(path: Path) -> tuple[Doc, ...]:
    return fields.corpus([path], {})


def _judged(path: Path) -> dict[str, list[str]]:
    """Question -> relevant passages, in the order of the file; those without any are in it."""
    found: dict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        cells = line.split("\t")
        if not line.strip() or (number == 1 and cells[0].strip() == HEAD[0]):
            continue
        try:
            query, passage, score = cells
            relevant = float(score) > 0
        except ValueError:
            problem = f"not three cells, the last a number: {line!r}"
            remedy = f"write {', '.join(HEAD)}, with tabs between them"
            raise DataError(path, f"line {number}", problem, remedy) from None
        own = found[query]
        if relevant:
            own.append(passage)
    return found
