"""What a record keeps of ERM4's trace: counts, labels, the trigger's numbers, answers by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from typing_extensions import TypedDict

from ..evaluation.answer_metrics import CLOSED
from ..evaluation.knowledge_metrics import GOLD
from ..evaluation.metric import accepted, readings
from ..evaluation.normalise import answer as normalise_answer
from ..evaluation.retrieval_metrics import has_answer, tells_answer
from ..schema import Answer, Passage, Question
from .shapes import Count, Mark, Rank, Share, Text

Label = Literal["entailment", "contradiction", "neutral", "yes", "no"]
Kind = Literal[(*GOLD, "answer", "other")]


class KnowledgeFields(TypedDict, total=False):
    """What `of` gives."""

    counts: dict[Text, Count]
    filter: list[tuple[Text, Label, Share | None, Kind | None, Mark | None]]
    trigger: list[tuple[Count, Mark, Count, Count, Count, Count | None]]
    held: Annotated[list[list[Rank]], MinLen(1)]


def of(question: Question, answer: Answer, passages: Mapping[str, Passage]) -> dict[str, Any]:
    """Fields of the question's line, where the trace has ERM4's counts; no text of the data.

    counts: the trace's, noughts left out. filter: of each judged passage [id, label,
    probability of entailment or None, kind, 1 where it holds the answer]; kind is
    its role or "gold", else "answer" (in which an accepted answer stands) or "other", and None
    where the question names no gold. A gold passage holds the answer as lessons have it
    (`retrieval_metrics.tells_answer`): the title of a compared film in its own passage, which
    accepted answers name, is no answer. Of any other its words decide. trigger: where there is
    a memory, of each query [popularity, 1 where it was searched for, how many were found, how
    many recalled, how many both, how many of the recalled are gold; None where none is known].
    held: of each reading of the question the ranks of the hits in which an answer to it stands.
    Where no answer is known, or the answers are yes and no, the marks for answers are None and
    `held` is not there.
    """
    events = [e for e in answer.trace if e.get("stage") in ("counts", "filter", "retrieve")]
    told = [e for e in events if e["stage"] == "counts"]
    if not told:
        return {}
    made: dict[str, Any] = {
        "counts": {name: n for name, n in told[-1].items() if name != "stage" and n}
    }
    wanted = accepted(question)
    plain = bool(wanted) and not all(normalise_answer(a) in CLOSED for a in wanted)
    if rows := [_judged(e, question, passages, plain) for e in events if e["stage"] == "filter"]:
        made["filter"] = rows
    asked = [e for e in events if e["stage"] == "retrieve" and e.get("popularity") is not None]
    if asked:
        made["trigger"] = [_triggered(e, question) for e in asked]
    if plain:
        hits = [hit.passage for hit in answer.hits]
        made["held"] = [
            [rank for rank, passage in enumerate(hits, start=1) if has_answer(passage, answers)]
            for answers in readings(question)
        ]
    return made


def _judged(
    event: Mapping[str, Any], question: Question, passages: Mapping[str, Passage], plain: bool
) -> list[Any]:
    name, probability = event["passage"], event["probability"]
    there = plain and name in passages  # a page of an engine outside is kept by nobody
    holds = int(has_answer(passages[name], accepted(question))) if there else None
    gold = {g.passage_id: g.role or "gold" for g in question.gold}
    kind = gold.get(name, "answer" if holds else "other") if gold else None
    if name in gold and name in passages and (plain or question.steps):
        holds = int(tells_answer(question, passages[name]))
    rounded = None if probability is None else round(probability, 4)
    return [name, event["label"], rounded, kind, holds]


def _triggered(event: Mapping[str, Any], question: Question) -> list[Any]:
    found, recalled, gold = (
        set(ids) for ids in (event["found"], event["recalled"], question.gold_ids)
    )
    counts = [len(event["found"]), len(event["recalled"]), len(found & recalled)]
    known = len(gold & recalled) if gold else None
    return [event["popularity"], int(event["searched"]), *counts, known]
