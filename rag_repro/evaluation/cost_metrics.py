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

from rag_repro.evaluation.metric import Line, described

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


TABLE = (
    described("reader_calls", partial(count, "reader_calls")),
    described("passes", passes),
    described("prompt_tokens", partial(count, "prompt_tokens")),
    described("prefilled_tokens", prefilled),
    described("new_tokens", partial(count, "new_tokens")),
    described("retrievals", partial(count, "retrievals")),
    described("seconds", partial(over_turns, whole)),
    described("seconds_reader", partial(over_turns, reading)),
    described("seconds_retriever", partial(over_turns, searching)),
    described("seconds_lookup", partial(over_turns, looking_up)),
    described("seconds_encoder", partial(over_turns, encoding)),
    described("seconds_scorer", partial(over_turns, scoring)),
    described("seconds_memory", partial(over_turns, remembering)),
    described("seconds_rest", partial(over_turns, elsewhere)),
    described("seconds_first", partial(over_turns, first_search)),
    described("seconds_later", partial(over_turns, after_first_search)),
    described("ms", partial(over_turns, in_milliseconds)),
    described("ms_scored", a_scored_item),
)
