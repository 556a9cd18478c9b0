"""What a data set with candidates is like: R²AG's table 4, computed for ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import Any

from .. import retrieval
from ..data.dataset import Dataset
from ..data.titles import word
from ..evaluation.retrieval_metrics import average_precision
from ..retrieval import Retriever
from ..schema import Question
from ..study.papers import Cell, Exhibit, Paper
from ..study.scores import Results
from ..study.services import Workshop
from .desk import at_hand
from .table import Table
from .values import number

Ranked = Mapping[str, Sequence[str]]
"""Question id -> the ids of all its candidates, best first."""


@dataclass(frozen=True)
class Statistics:
    """One data set, in the words of the paper's table.

    questions: of the split. tokens: a question with all its candidates, on average. gold,
    passages: of a question, on average. map: mean average precision in percent over the `ranked`
    questions that name gold passages; None where none is ranked. asked: questions that have been
    answered.
    """

    dataset: str
    questions: int
    tokens: float
    gold: float
    passages: float
    map: float | None = None
    ranked: int = 0
    asked: int | None = None


def statistics(
    dataset: Dataset,
    *,
    count_tokens: Callable[[str], int],
    ranked: Ranked | None = None,
    name: str | None = None,
) -> Statistics:
    """The data set's row. count_tokens: a reader's, of one text. name: else the data set's own.

    Raises ValueError for a data set without questions, and as `mean_average_precision`.
    """
    asked = dataset.questions
    if not asked:
        raise ValueError(f"{dataset.name} has no questions: there is nothing to count")
    # Most passages stand beside several questions.
    size = {i: _tokens(dataset, i, count_tokens) for i in {i for q in asked for i in q.candidates}}
    found = mean_average_precision(asked, ranked) if ranked else (None, 0)
    return Statistics(
        name or dataset.name,
        len(asked),
        fmean(count_tokens(q.text) + sum(size[i] for i in q.candidates) for q in asked),
        fmean(len(set(q.gold_ids)) for q in asked),
        fmean(len(q.candidates) for q in asked),
        *found,
    )


def _tokens(dataset: Dataset, name: str, count_tokens: Callable[[str], int]) -> int:
    passage = dataset.corpus.by_id[name]
    return count_tokens(passage.title) + count_tokens(passage.text)


def mean_average_precision(
    questions: Iterable[Question], ranked: Ranked
) -> tuple[float | None, int]:
    """In percent, and over how many questions: those that are ranked and name gold passages.

    Raises ValueError for a ranking that leaves candidates out: a gold passage that is not
    there would count as never found.
    """
    scores = []
    for q in questions:
        if q.id not in ranked or not q.gold:
            continue
        if absent := set(q.candidates) - set(ranked[q.id]):
            raise ValueError(
                f"question {q.id!r}: {len(absent)} of its {len(q.candidates)} candidates are not "
                "ranked; take a record whose k is their number"
            )
        scores.append(average_precision(ranked[q.id], q.gold_ids))
    return (100 * fmean(scores) if scores else None), len(scores)


def ranked_by(retriever: Retriever, questions: Sequence[Question]) -> dict[str, tuple[str, ...]]:
    """How a retriever ranks each question's candidates; questions without any are left out."""
    asked = [q for q in questions if q.candidates]
    if not asked:
        return {}
    deepest = max(len(q.candidates) for q in asked)
    found = retriever.search(
        [q.text for q in asked], k=deepest, within=[q.candidates for q in asked]
    )
    return {q.id: tuple(h.passage.id for h in hits) for q, hits in zip(asked, found, strict=True)}


def ranked_in(lines: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The rankings that a record's lines hold, as of plain RAG over all candidates."""
    return {line["id"]: tuple(line["hits"]) for line in lines if "error" not in line}


def of_cells(
    exhibit: Exhibit, results: Results, workshop: Workshop, tiers: Sequence[str], **wanted: Any
) -> list[Statistics]:
    """One row a data set of the wanted cells whose data is here: of the questions they ask.

    Tokens are of the cell's reader. All but `questions` is of those that the cell asks. Rankings
    are the records' where the passages read are all that there are, else MiniLM's, made now.
    """
    cells: dict[str, Cell] = {}
    for cell in (c for tier in tiers for c in exhibit.cells(tier) if c.matches(wanted)):
        if at_hand(cell):
            cells.setdefault(cell.keys["dataset"], cell)
    made = []
    for name, cell in cells.items():
        split = workshop.dataset(cell.condition.dataset, cell.condition.split)
        asked = split.first(cell.n, cell.kinds)
        lines = results.lines(cell) or ()
        ranked = ranked_in(lines)
        if not ranked or _longest(asked) > cell.condition.configured.k:
            minilm = retrieval.build("dense", asked.corpus, encoder=workshop.encoder("minilm"))
            ranked = ranked_by(minilm, asked.questions)
        count = counter(cell.condition.reader)
        one = statistics(asked, count_tokens=count, ranked=ranked, name=name)
        made.append(replace(one, questions=len(split.questions), asked=len(lines)))
    return made


def _longest(dataset: Dataset) -> int:
    return max(len(question.candidates) for question in dataset.questions)


@cache
def counter(reader: str) -> Callable[[str], int]:
    """How many tokens a text is to a reader, whose weights are not loaded for it."""
    from ..lm import hub
    from ..lm.load import tokenizer_of
    from ..lm.plain import Plain

    plain = Plain(tokenizer_of(hub.resolve(reader)))
    return lambda text: len(plain.tokens(text)[0])


SHOWN = {
    "questions: paper": ("questions", None),
    "to train on: paper": ("train", None),
    "to test on": ("test", "questions"),
    "asked: ours": (None, "asked"),
    "tokens": ("tokens", "tokens"),
    "gold": ("gold", "gold"),
    "passages": ("passages", "passages"),
    "MAP, %": ("map", "map"),
}
"""Column of `table`, or of two -> the printed figure, and the field of ours; None: one of them."""


def table(paper: Paper, key: str, ours: Sequence[Statistics], name: str = "") -> Table:
    """One line a data set: of each figure what the paper prints, and ours; empty: one has none.

    A data set in another language than English has it behind its name.
    """
    entries = paper.printed(key)
    printed = {(e["dataset"], e["metric"]): float(e["value"]) for e in entries}
    languages = {e["dataset"]: e["language"] for e in entries}
    told = {row.dataset: row for row in ours}
    body = []
    for dataset in dict.fromkeys([*(place for place, _ in printed), *told]):
        language = languages.get(dataset, "English")
        row: list[Any] = [word(dataset) + ("" if language == "English" else f" ({language})")]
        for of_paper, of_ours in SHOWN.values():
            values = [printed.get((dataset, of_paper))] if of_paper else []
            values += [getattr(told.get(dataset), of_ours, None)] if of_ours else []
            row += [number(value).removesuffix(".00") for value in values]
        body.append(row)
    head = ["data set"]
    for said, (of_paper, of_ours) in SHOWN.items():
        head += [f"{said}: paper", f"{said}: ours"] if of_paper and of_ours else [said]
    caption = f"{paper.exhibit(key).title}: the paper's and ours"
    return Table(head, body, caption, name)
