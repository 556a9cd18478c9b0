"""What a record keeps of a method's trace, as fields of the question's line: no text of the data.

Types of what a line holds stand here as well; pydantic checks them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Ge, Le, Len, MinLen
from pydantic import AfterValidator, ConfigDict, PlainValidator, Strict
from typing_extensions import TypedDict

from rag_repro.evaluation.answer_metrics import CLOSED
from rag_repro.evaluation.attention_metrics import UNIT
from rag_repro.evaluation.knowledge_metrics import GOLD
from rag_repro.evaluation.metric import accepted, readings
from rag_repro.evaluation.normalise import answer as normalise_answer
from rag_repro.evaluation.normalise import holds
from rag_repro.evaluation.retrieval_metrics import has_answer, tells_answer
from rag_repro.methods.dragin.draft_checks import RULES, VARIANTS
from rag_repro.methods.dragin.dynamic_settings import FACTORS
from rag_repro.methods.dragin.timing_check import SIGNALS
from rag_repro.plain import UNSEEN
from rag_repro.schema import Answer, Passage, Question

LARGEST = 1e300  # beyond any number of ours; Python holds such as no float can
MOST = 10**15  # of a whole number, likewise
EXACT = ConfigDict(extra="forbid")
"""Of a part that may have no field but its own."""


def _one_line(text: str) -> str:
    if not text.isprintable() and UNSEEN.search(text):
        raise ValueError("it does not stand in one line")
    return text


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it is no text")
    return value


Text = Annotated[Any, PlainValidator(_text)]
"""Half a character too, which an odd reader can write and which pydantic's own texts refuse."""
Name = Annotated[str, Strict(), AfterValidator(_one_line)]
"""A text that stands in one line of a terminal or table: an id, a kind, a cluster."""
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict(), Ge(-LARGEST), Le(LARGEST)]
Amount = Annotated[float, Strict(), Ge(0), Le(LARGEST)]
Share = Annotated[float, Strict(), Ge(0), Le(1)]
Count = Annotated[int, Strict(), Ge(0), Le(MOST)]
Rank = Annotated[int, Strict(), Ge(1), Le(MOST)]
Mark = Annotated[int, Strict(), Ge(0), Le(1)]
Part = Annotated[int, Strict(), Ge(0), Le(UNIT)]
PerLayer = Annotated[list[list[Part]], MinLen(1)]
Label = Literal["entailment", "contradiction", "neutral", "yes", "no"]
Kind = Literal[(*GOLD, "answer", "other")]
# Sphinx reads no star in an annotation.
_HOP = (Mark, *(Number,) * len(SIGNALS))
_MOMENT = (Count, Count, Count, *(list[Count],) * len(RULES))
_OWN = {"decide", "retrieve", "write", "ask_again"}
_OF_OTHERS = {"beside", "popularity"}  # in a search of DR-RAG's or ERM4's


class Dynamic(TypedDict):
    """As `of_drafts` says."""

    __pydantic_config__ = EXACT
    drafts: Count
    alarms: Count
    again: Flag
    found: list[list[Count]]
    judged: NotRequired[Count]
    blank: NotRequired[Count]
    unmeant: NotRequired[Count]
    taken: NotRequired[list[tuple[Amount, Amount]]]
    signals: NotRequired[list[tuple[(Amount,) * len(FACTORS)]]]


class Compressed(TypedDict):
    """As `of_compression` says."""

    __pydantic_config__ = EXACT
    before: Count
    after: Count
    gold: list[tuple[Count, Count] | None]
    answer: NotRequired[tuple[Flag, Flag]]
    decision: NotRequired[Literal["correct", "ambiguous", "incorrect"]]
    tokens: NotRequired[tuple[Count, Count]]


class Attention(TypedDict):
    """As `of_attention` says."""

    __pydantic_config__ = EXACT
    tokens: list[tuple[Count, Count]]
    marks: Annotated[list[Part], MinLen(1)]
    words: PerLayer
    embeddings: NotRequired[PerLayer]


class TraceFields(TypedDict, total=False):
    """All of them, in the order in which a line is written."""

    judged: list[tuple[Name, Name, Share, Annotated[int, Strict(), Ge(0), Le(2)] | None]]
    entropy: Amount
    decided: tuple[Number | Text | None, Flag]
    critique: list[tuple[Name, Share, Mark | None]]
    timing: list[tuple[_HOP]]
    influence: list[tuple[Amount, Amount, Amount, Amount, Mark]]
    likelihood: Annotated[list[Annotated[Number, Le(0)]], MinLen(1)]
    variants: Annotated[list[tuple[Mark, Count, Text]], Len(len(VARIANTS), len(VARIANTS))]
    dynamic: Dynamic
    queries: list[tuple[_MOMENT]]
    compressed: Compressed
    counts: dict[Text, Count]
    filter: list[tuple[Text, Label, Share | None, Kind | None, Mark | None]]
    trigger: list[tuple[Count, Mark, Count, Count, Count, Count | None]]
    held: Annotated[list[list[Rank]], MinLen(1)]
    attention: Attention


def trace_fields(
    question: Question,
    answer: Answer,
    passages: Mapping[str, Passage],
    threshold: float | None = None,
    signals: bool = False,
) -> dict[str, Any]:
    """The fields that the answer's trace fills; threshold, signals: as `of_drafts`."""
    return {
        **of_decisions(question, answer),
        **of_drafts(question, answer, threshold, signals),
        **of_queries(question, answer),
        **of_compression(question, answer),
        **of_knowledge(question, answer, passages),
        **of_attention(answer),
    }


def of_decisions(question: Question, answer: Answer) -> dict[str, Any]:
    """What the trace tells of decisions, judged passages and moments of search.

    judged: where a selection judged pairs, [d, e, probability, how many of the two are gold, None
    where the question names no gold] of each, in the order asked. entropy: the highest of the
    reader's tokens', in nats, where the method had them traced.
    decided: [what it went by, whether passages were fetched]: a popularity, the share of
    [Retrieval] (None: the reader ended at once, or was not asked), or a class's letter.
    critique: [passage, probability that it is relevant, 1 where it is gold, None where the
    question names no gold] of each passage that a reader, or CRAG's evaluator, judged, in the
    order of retrieval.
    timing: of each hop at which timing rules were checked, [1 where the reader's own next
    answer is wrong, then its signals, as `methods.dragin.timing_check.SIGNALS` has them].
    influence: of each pair of words that was masked [a_max of the one with more, of the other, how
    far what stands behind moved without each, 1 where the one with more stands first].
    likelihood: log p of each accepted answer that was put behind the prompt, in nats.
    variants: of each of `methods.dragin.draft_checks.VARIANTS` [1 where it triggered, tokens that
    stay, the first letters of its query's hash, "" without one], to be compared.
    """
    told: dict[str, Any] = {}
    gold = set(question.gold_ids)
    for event in answer.trace:
        match event.get("stage"):
            case "judge":
                both = sum(n in gold for n in event["pair"]) if gold else None
                row = [*event["pair"], round(event["probability"], 4), both]
                told.setdefault("judged", []).append(row)
            case "read":
                told["entropy"] = round(event["entropy"], 4)
            case "decide" if "retrieve" in event:  # one of a draft has no such decision
                went_by = event["value"] if "value" in event else event["probability"]
                told.setdefault("decided", [_rounded(went_by), event["retrieve"]])
            case "classify":
                told.setdefault("decided", [event["class"], event["class"] != "A"])
            case "segment" | "evaluate":
                name = event["passage"]
                told.setdefault("critique", []).append(
                    [name, round(event["relevant"], 4), int(name in gold) if gold else None]
                )
            case "hop":
                told.setdefault("timing", []).append(
                    [int(event["wrong"]), *(event["signals"][name] for name in SIGNALS)]
                )
            case "influence":
                told.setdefault("influence", []).append(
                    [*event["a_max"], *event["moved"], int(event["first"])]
                )
            case "likelihood":
                told["likelihood"] = [round(nats, 4) for nats in event["nats"]]
            case "variant":
                query = hashlib.sha256(event["query"].encode()).hexdigest()[:8]
                told.setdefault("variants", []).append(
                    [int(event["triggered"]), event["keep"], query if event["query"] else ""]
                )
    return told


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def of_drafts(
    question: Question, answer: Answer, threshold: float | None = None, signals: bool = False
) -> dict[str, Any]:
    """`dynamic`, where the trace judges drafts.

    drafts: how many the timing rule judged (none that is empty: the reader ended at once).
    alarms: of how many it made a search.
    judged: words (tokens, where these are the units) that RIND scored up to the one that
    gave the alarm, or to the draft's end. unmeant: alarms with no word above the threshold that
    bears meaning by RIND's own rule (older records have "blank": whose first such word bears
    none). Both only where RIND judged. signals: where asked for, of each
    word that could give an alarm, up to the one that did, what `FACTORS` says of it. again:
    whether the answer was asked for once more. found: for each search, in order, which
    of the line's `gold` (by place, from 0) its passages are. taken: of QFS's queries, in
    order, [words taken, words up to the alarm's with it].
    """
    # Of what is composed with it the events lie between a decision and its search.
    events = [e for e in answer.trace if e.get("stage") in _OWN and not _OF_OTHERS & e.keys()]
    # Adaptive methods decide as well, once and without a draft, which nothing is kept of.
    judged = [(i, e) for i, e in enumerate(events) if e["stage"] == "decide" and "keep" in e]
    if not judged:
        return {}
    stages = [e["stage"] for e in events]
    alarms = [e for i, e in judged if stages[i + 1 : i + 2] == ["retrieve"]]
    gold = [g.passage_id for g in question.gold]
    made: dict[str, Any] = {
        "drafts": sum(bool(e["text"]) for _, e in judged),
        "alarms": len(alarms),
        "again": "ask_again" in stages,
        "found": [
            [place for place, name in enumerate(gold) if name in e["found"]]
            for e in events
            if e["stage"] == "retrieve"
        ],
    }
    chosen = [[len(e["taken"]), len(e["context"])] for e in events if "taken" in e]
    if chosen:
        made["taken"] = chosen
    scores = [e["score"] for _, e in judged if "score" in e]
    if threshold is not None and scores:
        firsts = [(e, _first_over(e, threshold)) for e in alarms]
        unread = sum(len(e["score"]) - i - 1 for e, i in firsts if i is not None)
        made["judged"] = sum(map(len, scores)) - unread
        # Where meaning removes words behind the alarm, none may be left.
        made["unmeant"] = sum(not e["hits"] for e in alarms)
    if signals and scores:
        made["signals"] = [
            [e[name][i] for name in FACTORS]
            for place, e in judged
            if "score" in e
            for i in _could_alarm(e, stages[:place])
        ]
    return {"dynamic": made}


def _first_over(event: Any, threshold: float) -> int | None:
    """The word that gave a draft's alarm: the first above the threshold that was cut off.

    One that stays was settled: passages had just been fetched for it.
    """
    kept = _letters(event["kept"])
    ends = accumulate(map(_letters, event["words"]))
    over = [
        (end <= kept, i)
        for i, (score, end) in enumerate(zip(event["score"], ends, strict=True))
        if score > threshold
    ]
    return min(over)[1] if over else None


def _could_alarm(event: Any, before: list[str]) -> range:
    """A draft's words, by number, up to the alarm; without the first, which is settled, where an
    alarm had just fetched passages."""
    last = event["alarm"][0] + 1 if event["alarm"] else len(event["score"])
    told = [stage for stage in before if stage in ("decide", "retrieve")]
    return range(int(told[-2:] == ["decide", "retrieve"]), last)


def _letters(text: str) -> int:
    """How many characters of it are no white space, which a trace's words have lost."""
    return len("".join(text.split()))


def of_queries(question: Question, answer: Answer) -> dict[str, Any]:
    """`queries`, where the trace is of a check of query rules.

    Of each moment, in order: [words that QFS takes, of how many up to the alarm's with it, in
    which of the draft's sentences that is, then of each of `methods.dragin.draft_checks.RULES`
    which of the line's `gold` (by place, from 0) its search finds]. Not there without an alarm.
    """
    gold = [g.passage_id for g in question.gold]
    told = [
        [
            event["taken"],
            event["among"],
            event["sentence"],
            *([i for i, name in enumerate(gold) if name in event["found"][rule]] for rule in RULES),
        ]
        for event in answer.trace
        if event.get("stage") == "queries"
    ]
    return {"queries": told} if told else {}


def of_compression(question: Question, answer: Answer) -> dict[str, Any]:
    """`compressed`, where the trace has such an event.

    before, after: characters of the passages and of what is left, white space aside.
    gold: of each of the line's `gold`, in order, [before, after]; None where it was not
    among the passages, or nobody knows what is left of it (a summary).
    answer: [whether an accepted answer stands in a passage, whether it stands in what is
    left], in whole words; not there where no answer is known or the answers are yes and no.
    decision: CRAG's. tokens: [before, after] of the compressor's own, where it has any.
    """
    event = next((e for e in answer.trace if e.get("stage") == "compress"), None)
    if event is None:
        return {}
    given, kept = event["before"], event["kept"]
    made: dict[str, Any] = {
        "before": sum(given.values()),
        "after": event["after"],
        "gold": [
            [given[name], kept[name]] if kept is not None and name in given else None
            for name in question.gold_ids
        ],
    }
    wanted = accepted(question)
    if not all(normalise_answer(a) in CLOSED for a in wanted):
        passages = [hit.passage.text for hit in answer.hits]
        made["answer"] = [
            any(holds(text, a) for text in texts for a in wanted)
            for texts in (passages, event["texts"])
        ]
    return {"compressed": made | {k: event[k] for k in ("decision", "tokens") if k in event}}


def of_knowledge(
    question: Question, answer: Answer, passages: Mapping[str, Passage]
) -> dict[str, Any]:
    """What the trace tells of ERM4's knowledge, where it has its counts.

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
    return [name, event["label"], _rounded(probability), kind, holds]


def _triggered(event: Mapping[str, Any], question: Question) -> list[Any]:
    found, recalled, gold = (
        set(ids) for ids in (event["found"], event["recalled"], question.gold_ids)
    )
    counts = [len(event["found"]), len(event["recalled"]), len(found & recalled)]
    known = len(gold & recalled) if gold else None
    return [event["popularity"], int(event["searched"]), *counts, known]


def of_attention(answer: Answer) -> dict[str, Any]:
    """`attention`, where the trace has such an event.

    tokens: [marks, words] of each of the line's hits. marks: of each layer, from the first, what
    goes to the marks of all passages; words: of each layer what goes to each passage's title and
    text; embeddings: likewise to its embedding, where the prompt has them. All in
    ten-thousandths of the layer's attention.
    """
    event = next((e for e in answer.trace if e.get("stage") == "attention"), None)
    if event is None:
        return {}
    made = {name: _small(event[name]) for name in ("marks", "words", "embeddings") if name in event}
    return {"attention": {"tokens": event["tokens"], **made}}


def _small(value: Any) -> Any:
    return [_small(v) for v in value] if isinstance(value, list) else round(value * UNIT)
