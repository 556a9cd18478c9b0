"""Tables whose columns the user names: JSON Lines, a JSON array, Parquet, Arrow.

    question=question  answers=answers  id=id      of a row (id: its number, where there is none)
    passages=ctxs      title=title  text=text      the row's own passages, and their fields
    gold=FIELD                                     their titles or ids, or true and false a passage
                                                   (`external` says what it does if one is absent)

A dot leads into an object, as `answers.text`. Passages are objects, texts, or an object of
lists, as `datasets` writes them; a text may be a list of sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_repro.data.public.record import Doc, Record, Row, unique
from rag_repro.data.public.tables import rows
from rag_repro.plain import shortened

FIELDS = ("question", "answers", "id", "passages", "title", "text", "gold")
_CHECK = "check the field names that you gave"
_LACKS = object()


def read(
    paths: Sequence[Path], fields: Mapping[str, str], ids: frozenset[str] = frozenset()
) -> Iterator[Record]:
    """The questions of the rows of all files; ids: those of the corpus, which gold may name.

    Answers may be texts, numbers, or true and false ("yes" and "no").
    """
    for number, row in enumerate(_rows(paths, fields), start=1):
        given = row.fields
        answers = "answers" if "answers" in given or "answers" in fields else "answer"
        answers = fields.get("answers", answers)
        found = _at(row, answers) if "answers" in fields or answers in given else None
        docs, gold = tuple(_docs(row, fields)), _at(row, fields["gold"]) if "gold" in fields else ()
        marks = isinstance(gold, list) and bool(gold) and all(type(one) is bool for one in gold)
        if marks and len(gold) != len(docs):
            raise row.bad(
                f"field {fields['gold']!r} has {len(gold)} marks, for {len(docs)} passages"
            )
        if marks:
            docs = tuple(Doc(d.title, d.text, mark) for d, mark in zip(docs, gold, strict=True))
        named = () if marks else _texts(row, fields.get("gold", ""), gold)
        titles = tuple(name for name in named if name not in ids)
        yield Record(
            id=_id(row, fields, number),
            question=_text(row, fields.get("question", "question")),
            answers=_texts(row, answers, found),
            place=row.place,
            docs=tuple(Doc(d.title, d.text, d.gold or d.title in titles) for d in docs),
            gold_titles=titles,
            gold_ids=tuple(name for name in named if name in ids),
        )


def corpus(paths: Sequence[Path], fields: Mapping[str, str]) -> tuple[Doc, ...]:
    """One passage a row, under the ids of the rows (`id`, else `_id`, else their numbers)."""
    docs: list[Doc] = []
    seen: dict[str, str] = {}
    own = {key: value for key, value in fields.items() if key in ("title", "text")}
    for number, row in enumerate(_rows(paths, own, extra=("id", "_id")), start=1):
        ident = _id(row, {"id": "_id"} if "_id" in row.fields else {}, number)
        row.note(ident, seen)
        docs.append(Doc(*_passage(row, own), id=ident))
    return tuple(docs)


def holds_questions(path: Path, fields: Mapping[str, str]) -> bool:
    """Whether a table is of questions, not of passages: they are named, or its first row has one.

    Raises DataError where it could be neither.
    """
    row = next(rows(path), None)
    if row is None or "question" in fields or "question" in row.fields:
        return True
    if (text := fields.get("text", "text").partition(".")[0]) not in row.fields:
        held = shortened(", ".join(map(str, row.fields)) or "none")
        raise row.bad(
            f"no field 'question', and none {text!r} (it has {held})",
            "name the fields, as jsonl:PATH?question=q&answers=a",
        )
    return False


def _rows(
    paths: Iterable[Path], fields: Mapping[str, str], extra: Sequence[str] = ()
) -> Iterator[Row]:
    wanted = {*FIELDS, "answer", *extra, *fields.values()}
    wanted |= {name.partition(".")[0] for name in wanted}
    for path in paths:
        yield from rows(path, sorted(wanted))


def _id(row: Row, fields: Mapping[str, str], number: int) -> str:
    name = fields.get("id", "id")
    if "id" not in fields and name not in row.fields:
        return f"q{number}"
    value = _at(row, name)
    if type(value) is int:
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise row.bad(f"field {name!r} is neither text nor a whole number: {str(value)[:60]!r}")
    return value


def _at(row: Row, name: str) -> Any:
    """What a field holds; a dot leads into an object, and into each object of a list."""
    if name in row.fields:
        return row.fields[name]
    value: Any = row.fields
    for key in name.split("."):
        if isinstance(value, list):
            value = [one.get(key, _LACKS) if isinstance(one, Mapping) else _LACKS for one in value]
        else:
            value = value.get(key, _LACKS) if isinstance(value, Mapping) else _LACKS
        if value is _LACKS or (isinstance(value, list) and _LACKS in value):
            held = shortened(", ".join(map(str, row.fields)) or "none")
            raise row.bad(f"no field {name!r} (it has {held})", _CHECK)
    return value


def _text(row: Row, name: str) -> str:
    """A text; a list of sentences is joined."""
    value = _at(row, name)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(one.strip() for one in value if one.strip())
    if not isinstance(value, str):
        raise row.bad(f"field {name!r} is not text: {str(value)[:60]!r}", _CHECK)
    return value.strip()


def _texts(row: Row, name: str, value: Any) -> tuple[str, ...]:
    """One or several texts, numbers and truths as texts; null: none."""
    if isinstance(value, Mapping):
        inner = " or ".join(f"{name}.{key}" for key in value)
        raise row.bad(f"field {name!r} is an object", f"name a field in it: {inner}"[:300])
    found = []
    for one in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(one, str | int | float | None):
            raise row.bad(
                f"field {name!r} is not text or a list of texts: {str(one)[:60]!r}", _CHECK
            )
        if one is not None:
            found.append(("no", "yes")[one] if isinstance(one, bool) else str(one))
    return unique(found)


def _docs(row: Row, fields: Mapping[str, str]) -> Iterator[Doc]:
    if "passages" not in fields:
        return
    name = fields["passages"]
    value = _at(row, name)
    if isinstance(value, Mapping):
        columns = {key: cell for key, cell in value.items() if isinstance(cell, list)}
        if len({len(cell) for cell in columns.values()}) > 1:
            raise row.bad(f"field {name!r} has lists of unequal length", _CHECK)
        value = [
            dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)
        ]
    if not isinstance(value, list):
        raise row.bad(f"field {name!r} is not a list of passages: {str(value)[:60]!r}", _CHECK)
    for i, one in enumerate(value):
        if isinstance(one, str):
            yield Doc("", one.strip())
        else:
            yield Doc(*_passage(row.inner(one, f"passage {i}"), fields))


def _passage(row: Row, fields: Mapping[str, str]) -> tuple[str, str]:
    """Title, which need not be there unless it was named, and text."""
    title = fields.get("title", "title")
    named = "title" in fields or row.fields.get(title) is not None
    return _text(row, title) if named else "", _text(row, fields.get("text", "text"))
