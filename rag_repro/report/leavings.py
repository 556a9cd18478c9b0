"""What a compressor leaves of one question's passages, tried live on the testbed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..study import compressions, runner
from ..study.conditions import Condition
from ..study.services import Workshop
from . import traces
from .picture import Note
from .table import Table
from .traces import roles_of, short

LONG = 900  # characters of what is left that a page shows


def case(
    dataset: str,
    workshop: Workshop,
    *,
    method: str = "recomp",
    settings: Mapping[str, Any] | None = None,
    tried: int = 20,
) -> list[Table | Note]:
    """The first of `tried` questions whose answer stood in a passage and is gone; else the first.

    No reader is asked. Passages stand as BM25 ranks them, which needs no index. The last page
    counts how often that happens. For worlds alone: texts of other data are not ours to print.
    """
    condition = Condition(
        dataset=dataset,
        method=method,
        settings={"k": 10, "own_candidates": True, **(settings or {}), "prompt": None},
        retriever="bm25",
    )
    of = workshop.dataset(dataset, "test")
    asked = of.first(tried).questions
    services = workshop.services(condition)
    answers = {q.id: a for q, a in runner.answers(condition, asked, services, len(asked))}
    if error := next((a.error for a in answers.values() if a.error), None):
        raise ValueError(f"{dataset}, {method}: {error}")
    kept = {
        q.id: compressions.of(q, answers[q.id]).get("compressed", {}).get("answer") for q in asked
    }
    lost = [q for q in asked if kept[q.id] == [True, False]]
    question = (lost or asked)[0]
    answer = answers[question.id]
    event = next(e for e in answer.trace if e["stage"] == "compress")
    roles = roles_of(question)
    body = [
        [
            rank,
            hit.passage.title,
            roles.get(hit.passage.id, ""),
            event["before"][hit.passage.id],
            "" if event["kept"] is None else event["kept"].get(hit.passage.id, 0),
        ]
        for rank, hit in enumerate(answer.hits, start=1)
    ]
    head = ["place", "passage", "gold", "characters", "of them left"]
    given = sum(told is not None and told[0] for told in kept.values())
    return [
        traces.question_table(question, of),
        Table(head, body, "Passages before and behind the compressor"),
        Table(["what is left"], [[short(text, LONG)] for text in event["texts"]], "What is left"),
        _counts(len(lost), given, len(asked)),
    ]


def _counts(lost: int, given: int, asked: int) -> Table:
    head = ["answer given and gone", "given and still there", "not in one passage", "questions"]
    return Table(head, [[lost, given - lost, asked - given, asked]])
