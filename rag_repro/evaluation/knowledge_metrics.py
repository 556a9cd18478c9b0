"""What ERM4's modules did, out of a record's line: queries, filter, memory, and answers by rank.

A line's `counts`, `filter`, `trigger` and `held` are what `study.line_fields` keeps of the trace;
answers of other methods have none, and none of these metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rag_repro.evaluation.metric import Line, Metric, counted, described

DEPTHS = (1, 3, 5, 10, 15, 20, 25, 30)
BLOCK = 5
"""Ranks of figure 2 at which recall and precision are told, and the step of its slopes."""

ENTAILED = ("entailment", "yes")
GOLD = ("static", "dynamic", "gold")
"""What a judged passage can be; others are "answer" (holds an accepted answer) and "other"."""


# ----------------------------------------------------------------- answers by rank


def answer_recall_at(n: int, line: Line) -> float | None:
    """Share of the answer items that stand in the first n passages (ERM4, section 2)."""
    held = line.get("held")
    return None if held is None else sum(any(r <= n for r in ranks) for ranks in held) / len(held)


def snippet_precision_at(n: int, line: Line) -> float | None:
    """Share of the first n passages in which an answer stands; None without any passage."""
    held, there = line.get("held"), min(n, len(line["hits"]))
    if held is None or not there:
        return None
    return len({r for ranks in held for r in ranks if r <= n}) / there


def answer_gain(last: int, line: Line) -> float | None:
    """What the BLOCK ranks up to `last` add to the answer recall."""
    before, after = (answer_recall_at(n, line) for n in (last - BLOCK, last))
    return None if after is None else after - before


# ------------------------------------------------------------------------- counts


def share(name: str, of: str, line: Line) -> float | None:
    """One count as a share of another; None where that is nought."""
    whole = counted("counts", of, line)
    return counted("counts", name, line) / whole if whole else None


# ------------------------------------------------------------------------- filter


def entailed(line: Line, kinds: Sequence[str]) -> float | None:
    """Share of the judged passages of these kinds that the judge takes for entailed.

    None where none of them was judged, or the question names no gold passage.
    """
    return _mean([entry[1] in ENTAILED for entry in line.get("filter", ()) if entry[3] in kinds])


def hypothesis_of(setting: str | None, hops: int | None) -> str | None:
    """ "strong" or "weak": by a question's number of hops, where the setting leaves it to that."""
    if setting != "by_hops":
        return setting
    return "strong" if hops in (None, 1) else "weak"


def right(line: Line, hypothesis: str) -> float | None:
    """Share of the judged passages of which this hypothesis is true and entailed, or neither.

    "weak": it is gold. "strong": it is gold and holds the answer itself, so that the first
    step of a chain is none. "by_hops": strong where the question has one step, or none is
    known. A cell is judged by its own hypothesis: by the weak one a strong filter is wrong
    wherever it does what it was asked.
    """
    return _mean([(label in ENTAILED) == true for label, true in _true(line, hypothesis)])


def all_right(line: Line, hypothesis: str) -> float | None:
    """Share of the judged of which the hypothesis is true: how often entailing all is right."""
    return _mean([true for _, true in _true(line, hypothesis)])


def balanced(line: Line, hypothesis: str) -> float | None:
    """The mean of the share right where the hypothesis is true, and where it is not.

    50 for a filter that entails everything, or nothing, whatever share is gold; None where
    the judged are all of one sort.
    """
    told = _true(line, hypothesis)
    sides = [_mean([(label in ENTAILED) == t for label, t in told if t == true]) for true in (1, 0)]
    return None if None in sides else sum(sides) / 2


def _true(line: Line, hypothesis: str) -> list[tuple[str, bool]]:
    """(label, whether the hypothesis is true) of each judged passage, where gold is named."""
    hypothesis = hypothesis_of(hypothesis, line.get("hops"))
    return [
        (entry[1], entry[3] in GOLD and (hypothesis == "weak" or bool(entry[4])))
        for entry in line.get("filter", ())
        if entry[3] is not None
    ]


def agrees(line: Line) -> float | None:
    """Share of the judged passages whose label goes with an answer string being in them.

    Also where nobody knows what is gold. A gold passage without the answer, as the first of a
    chain, is none that agrees when it is entailed.
    """
    told = [(entry[1], entry[4]) for entry in line.get("filter", ()) if entry[4] is not None]
    return _mean([(label in ENTAILED) == bool(holds) for label, holds in told])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


# ------------------------------------------------------------------------- memory


def within(line: Line) -> float | None:
    """Share of the queries that the trigger finds within the knowledge."""
    return _mean([not searched for _, searched, *_ in line.get("trigger", ())])


def popularity(line: Line) -> float | None:
    """Similar titles in memory, the mean over the queries."""
    return _mean([popular for popular, *_ in line.get("trigger", ())])


def fetched_again(line: Line) -> float | None:
    """Share of what the searches found that memory brings as well; None without a search."""
    rows = line.get("trigger", ())
    found = sum(row[2] for row in rows)
    return sum(row[4] for row in rows) / found if found else None


def memory_holds_gold(line: Line) -> float | None:
    """1 where memory brings a gold passage; None where the question names none."""
    told = [row[5] for row in line.get("trigger", ()) if row[5] is not None]
    return float(any(told)) if told else None


# -------------------------------------------------------------------------- table


def _at(name: str, symbol: str, fn: Callable, meaning: str) -> list[Metric]:
    return [
        Metric(f"{name}_{n}", f"{symbol}@{n}", partial(fn, n), meaning.format(n=n)) for n in DEPTHS
    ]


COUNTS = ("queries", "searches", "fetched", "irrelevant", "shown", "backed_off")

TABLE = (
    *_at("answer_recall", "Answer recall", answer_recall_at, "as answer recall, of the first {n}"),
    *_at("snippet_precision", "Precision", snippet_precision_at, "as that, of the first {n}"),
    *(
        Metric(
            f"answer_gain_{last}",
            f"Gain {last - BLOCK + 1}-{last}",
            partial(answer_gain, last),
            f"answer recall that the passages {last - BLOCK + 1} to {last} add",
        )
        for last in range(BLOCK, max(DEPTHS) + 1, BLOCK)
    ),
    *(described(name, partial(counted, "counts", name)) for name in COUNTS),
    described("memory_items", partial(counted, "counts", "memory")),
    described("unfollowed", partial(share, "unfollowed", "outputs")),
    described("unlabelled", partial(share, "unlabelled", "judged")),
    described("irrelevant_share", partial(share, "irrelevant", "judged")),
    described("entailed_gold", partial(entailed, kinds=GOLD)),
    described("entailed_static", partial(entailed, kinds=("static",))),
    described("entailed_dynamic", partial(entailed, kinds=("dynamic",))),
    described("entailed_other", partial(entailed, kinds=("answer", "other"))),
    *(
        described(f"{name}{end}", partial(fn, hypothesis=hypothesis))
        for name, fn in (
            ("filter_right", right),
            ("filter_balanced", balanced),
            ("filter_all", all_right),
        )
        for end, hypothesis in (("", "weak"), ("_strong", "strong"))
    ),
    described("filter_agrees", agrees),
    described("within", within),
    described("popularity", popularity),
    described("fetched_again", fetched_again),
    described("memory_holds_gold", memory_holds_gold),
)
