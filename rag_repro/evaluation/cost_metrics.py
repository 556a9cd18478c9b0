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

from rag_repro.evaluation.metric import Line, counted, described

Turn = Mapping[str, Any]

PART = "retriever.encoder"


def passes(line: Line) -> float | None:
    """Calls of readers: those in which one writes, and those in which one judges."""
    calls = [counted("cost", field, line) for field in ("reader_calls", "reads")]
    return None if None in calls else sum(calls)


def prefilled(line: Line) -> float | None:
    """Prompt tokens computed; None unless timed: in a batch it depends on the others there."""
    return counted("cost", "prefilled_tokens", line) if "turns" in line else None


def over_turns(of: Callable[[Turn], float | None], line: Line) -> float | None:
    """The mean over the turns; None for a line without any, or where one has no value.

    None, too, for a question that failed: it was done at once, and would count as a fast answer.
    """
    if "error" in line:
        return None
    values = [of(turn) for turn in line.get("turns", ())]
    return None if not values or None in values else sum(values) / len(values)


def in_calls(*kinds: str) -> Callable[[Turn], float]:
    """Of a turn the seconds in the calls of these kinds; 0 where there was none."""
    return lambda turn: sum(seconds for kind, seconds, _ in turn["clock"] if kind in kinds)


searching, scoring, encoding_queries = map(in_calls, ("retriever", "scorer", PART))


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


COUNTS = ("reader_calls", "prompt_tokens", "new_tokens", "retrievals")
OF_TURNS = {
    "seconds": lambda turn: turn["seconds"],
    "seconds_reader": in_calls("reader"),
    "seconds_retriever": searching,
    # The encoding of the queries left out.
    "seconds_lookup": lambda turn: searching(turn) - encoding_queries(turn),
    # Texts into vectors, for searches and otherwise.
    "seconds_encoder": in_calls("encoder", PART),
    "seconds_scorer": scoring,
    "seconds_memory": in_calls("reservoir"),
    "seconds_rest": elsewhere,
    "seconds_first": first_search,
    "seconds_later": after_first_search,
    "ms": lambda turn: 1000 * turn["seconds"],
}

TABLE = (
    *(described(name, partial(counted, "cost", name)) for name in COUNTS),
    described("passes", passes),
    described("prefilled_tokens", prefilled),
    *(described(name, partial(over_turns, of)) for name, of in OF_TURNS.items()),
    described("ms_scored", a_scored_item),
)
