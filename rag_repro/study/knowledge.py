"""What a record keeps of ERM4's trace: counts, labels, the trigger's numbers, answers by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..evaluation.answer_metrics import CLOSED
from ..evaluation.knowledge_metrics import GOLD
from ..evaluation.metric import accepted, readings
from ..evaluation.normalise import answer as normalise_answer
from ..evaluation.retrieval_metrics import has_answer, tells_answer
from ..plain import shortened
from ..schema import Answer, Passage, Question

LABELS = ("entailment", "contradiction", "neutral", "yes", "no")
KINDS = (*GOLD, "answer", "other")


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


def fault(line: dict[str, Any]) -> str:
    """What of these fields is not as it must be; "" where all is, or they are not there."""
    for name, value in line.get("counts", {}).items():
        if not _is_count(value):
            return f"the count {shortened(repr(name), 60)} is {shortened(repr(value), 60)}"
    for entry in line.get("filter", ()):
        if not _is_judged(entry):
            return f"a judged passage is {shortened(repr(entry), 60)}"
    for entry in line.get("trigger", ()):
        if not _is_triggered(entry):
            return f"a query's trigger is {shortened(repr(entry), 60)}"
    held = line.get("held")
    if held is not None and not (held and all(_is_ranks(r, len(line["hits"])) for r in held)):
        return f"the places of its answers are {shortened(repr(held), 60)}"
    return ""


def _is_judged(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 5:
        return False
    name, label, probability, kind, holds = entry
    known = probability is None or (type(probability) in (int, float) and 0 <= probability <= 1)
    return (
        isinstance(name, str)
        and label in LABELS
        and known
        and (kind is None or kind in KINDS)
        and (holds is None or (type(holds) is int and holds in (0, 1)))
    )


def _is_triggered(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 6:
        return False
    *counts, gold = entry
    return all(map(_is_count, counts)) and entry[1] in (0, 1) and (gold is None or _is_count(gold))


def _is_ranks(entry: Any, hits: int) -> bool:
    return isinstance(entry, list) and all(type(r) is int and 1 <= r <= hits for r in entry)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
