"""What an answer took, out of its record's line: counts, and seconds where it was timed.

A timed line holds `turns`, one for each time that the question was asked:
{"seconds": from question to answer, "clock": [[kind, seconds, items], ...]}, the
clock in the order of the calls. Kinds are services ("reader", "retriever",
"encoder", "scorer", "reservoir") and "retriever.encoder": the part of a search in
which its queries are encoded, told before the search that it is a part of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .metric import Line, Metric

Turn = Mapping[str, Any]

PART = "retriever.encoder"


def count(field: str, line: Line) -> float | None:
    """A field of the line's cost; None for a line without costs."""
    return float(line["cost"].get(field, 0)) if "cost" in line else None


def passes(line: Line) -> float | None:
    """Calls of readers: those in which one writes, and those in which one judges."""
    return count("reader_calls", line) + count("reads", line) if "cost" in line else None


def prefilled(line: Line) -> float | None:
    """Prompt tokens computed; None unless timed: in a batch it depends on the others there."""
    return count("prefilled_tokens", line) if "turns" in line else None


def over_turns(of: Callable[[Turn], float | None], line: Line) -> float | None:
    """The mean over the turns; None for a line without any, or where one has no value.

    None, too, for a question that failed: it was done at once, and would count as a fast answer.
    """
    if "error" in line:
        return None
    values = [of(turn) for turn in line.get("turns", ())]
    return None if not values or None in values else sum(values) / len(values)


def whole(turn: Turn) -> float:
    return turn["seconds"]


def in_milliseconds(turn: Turn) -> float:
    return 1000 * turn["seconds"]


def in_calls(turn: Turn, *kinds: str) -> float:
    """Seconds in the calls of these kinds; 0 where there was none."""
    return sum(seconds for kind, seconds, _ in turn["clock"] if kind in kinds)


def reading(turn: Turn) -> float:
    return in_calls(turn, "reader")


def searching(turn: Turn) -> float:
    return in_calls(turn, "retriever")


def looking_up(turn: Turn) -> float:
    """Searching, the encoding of the queries left out."""
    return searching(turn) - in_calls(turn, PART)


def encoding(turn: Turn) -> float:
    """Texts into vectors, for searches and otherwise."""
    return in_calls(turn, "encoder", PART)


def scoring(turn: Turn) -> float:
    return in_calls(turn, "scorer")


def remembering(turn: Turn) -> float:
    return in_calls(turn, "reservoir")


def elsewhere(turn: Turn) -> float:
    """What no service took: the method's own steps, the engine, the clock."""
    return turn["seconds"] - sum(s for kind, s, _ in turn["clock"] if kind != PART)


def first_search(turn: Turn) -> float | None:
    """The retriever's first call: the first stage of two; None without a search."""
    return next((seconds for kind, seconds, _ in turn["clock"] if kind == "retriever"), None)


def after_first_search(turn: Turn) -> float | None:
    """Further searches and the classifier: what selection adds before the reading."""
    first = first_search(turn)
    return None if first is None else searching(turn) + scoring(turn) - first


def a_scored_item(line: Line) -> float | None:
    """Milliseconds of the classifier for one of its items; None where it had none."""
    clock = [entry for turn in line.get("turns", ()) for entry in turn["clock"]]
    items = sum(n for kind, _, n in clock if kind == "scorer")
    return 1000 * sum(s for kind, s, _ in clock if kind == "scorer") / items if items else None


def _less(
    name: str, symbol: str, unit: str, fn: Callable[[Line], float | None], meaning: str
) -> Metric:
    return Metric(name, symbol, unit, "line", False, fn, meaning)


def _count(name: str, symbol: str, unit: str, meaning: str) -> Metric:
    return _less(name, symbol, unit, partial(count, name), meaning)


def _seconds(name: str, symbol: str, of: Callable[[Turn], float | None], meaning: str) -> Metric:
    return _less(name, symbol, "seconds", partial(over_turns, of), meaning)


TABLE = (
    _count("reader_calls", "Calls", "calls", "calls in which a reader writes (DR-RAG's Step)"),
    _less("passes", "Passes", "calls", passes, "calls of readers, to write or to judge"),
    _count(
        "prompt_tokens",
        "Prompt tokens",
        "tokens",
        "tokens of all prompts given to a reader, whether computed anew or not",
    ),
    _less(
        "prefilled_tokens",
        "Prefilled",
        "tokens",
        prefilled,
        "prompt tokens that a reader computed for a question alone",
    ),
    _count("new_tokens", "New tokens", "tokens", "tokens that a reader wrote"),
    _count("retrievals", "Searches", "searches", "queries put to a retriever"),
    _seconds("seconds", "Seconds", whole, "from question to answer at batch 1 (DR-RAG's Time)"),
    _seconds("seconds_reader", "Seconds (reader)", reading, "seconds in the reader"),
    _seconds(
        "seconds_retriever", "Seconds (search)", searching, "seconds in searches, encoding included"
    ),
    _seconds("seconds_lookup", "Seconds (lookup)", looking_up, "seconds in searches, encoded"),
    _seconds("seconds_encoder", "Seconds (encoder)", encoding, "seconds in encoding texts"),
    _seconds("seconds_scorer", "Seconds (classifier)", scoring, "seconds in classifiers"),
    _seconds("seconds_memory", "Seconds (memory)", remembering, "seconds in the reservoir"),
    _seconds("seconds_rest", "Seconds (rest)", elsewhere, "seconds in no service"),
    _seconds(
        "seconds_first", "Seconds (first search)", first_search, "seconds in the first search"
    ),
    _seconds(
        "seconds_later",
        "Seconds (selection)",
        after_first_search,
        "seconds in further searches and classifiers",
    ),
    _less(
        "ms",
        "Milliseconds",
        "milliseconds",
        partial(over_turns, in_milliseconds),
        "as `seconds`, for answers without a reading",
    ),
    _less(
        "ms_scored",
        "ms an item",
        "milliseconds",
        a_scored_item,
        "a classifier's milliseconds for one item",
    ),
)
