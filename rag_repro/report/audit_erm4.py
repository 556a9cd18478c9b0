"""ERM4's printed values against its sentences."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from .audit import (
    AGREES,
    DIFFERS,
    IN_PART,
    OPEN,
    Finding,
    Printed,
    Reading,
    data_set,
    many,
    mean,
    outcome,
    say,
)

SETS = ("cambignq", "nq", "popqa", "ambignq", "hotpotqa", "2wikimultihopqa")
ABLATED = ("cambignq", "popqa")
LADDER = ("direct", "rrr", "plus", "full")
TAUS = ("0.2", "0.4", "0.6", "0.8", "1.0")
ASKED = 200  # questions of table 2 (section 6)

READINGS = (
    Reading(
        "section 4.2",
        "names three data sets without and two with reasoning",
        "table 1",
        "has six; CAmbigNQ is the one that section 4.2 does not name",
        ("erm4.c38",),
    ),
    Reading(
        "figure 3",
        "is captioned as PS3",
        "section 2",
        "discusses it as PS4; PS3 is read off figure 2",
    ),
    Reading(
        "section 4.2",
        "cites 2WikiMQA to the paper of Welbl et al. (2018)",
        "reference 30",
        "is the paper on multi-hop reading across documents (WikiHop), not on 2WikiMultihopQA",
    ),
    Reading(
        "section 4.1",
        "takes the first 10 items of each query, and shows up to 30 of them",
        "section 6",
        "takes 5 for table 2, where whole pages are cut by BM25 in place of snippets",
        ("erm4.c34",),
    ),
)


def findings(printed: Printed) -> list[Finding]:
    return [
        _tables_1_and_3(printed),
        _time(printed),
        _order_of_times(printed),
        _quality(printed),
        _external(printed),
        _one_query(printed),
        _gains(printed),
        _each_module(printed),
        _ladder(printed),
        _several_queries(printed),
        _unfiltered(printed),
    ]


def _hit(printed: Printed, key: str, dataset: str, method: str, metric: str = "hit") -> Decimal:
    return printed.one(key, dataset=dataset, method=method, metric=metric)


def _at(printed: Printed, tau: str, metric: str) -> Decimal:
    return printed.one("table2", tau=tau, metric=metric)


def _tables_1_and_3(printed: Printed) -> Finding:
    rows = [row for row in printed.rows("table3") if row["method"] in LADDER]
    odd = []
    for row in rows:
        first = _hit(printed, "table1", row["dataset"], row["method"], row["metric"])
        if first != Decimal(row["value"]):
            odd.append(f"{data_set(row['dataset'])}, {row['method']}, {row['metric']}: {first} in ")
            odd[-1] += f"table 1, {row['value']} in table 3"
    return Finding(
        "tables 1 and 3",
        "both print the same runs of CAmbigNQ and PopQA; the text uses 58",
        f"The same in {len(rows) - len(odd)} of {len(rows)} cells. {'; '.join(odd)}.",
        outcome(len(rows) - len(odd), len(rows)),
        ("erm4.c11", "erm4.c17"),
        "the count of hits of that row",
    )


def _saved(printed: Printed, tau: str) -> Decimal:
    return 100 - 100 * _at(printed, tau, "seconds") / _at(printed, "1.0", "seconds")


def _time(printed: Printed) -> Finding:
    saved = {tau: _saved(printed, tau) for tau in TAUS[:-1]}
    fits = [tau for tau, value in saved.items() if 46 <= value < 47]
    return Finding(
        "abstract; section 6",
        "the memory cuts time by 46 %",
        "Against τ = 1.0: "
        + ", ".join(f"{say(value, 1)} % at τ = {tau}" for tau, value in saved.items())
        + ". The figure rests on one of them.",
        AGREES if len(fits) == len(saved) else IN_PART if fits else DIFFERS,
        ("erm4.c30",),
        "more than one timed run, and waiting for the network told apart",
    )


def _order_of_times(printed: Printed) -> Finding:
    seconds = {tau: _at(printed, tau, "seconds") for tau in TAUS}
    fetched = {tau: _at(printed, tau, "fetched") for tau in TAUS}
    odd = [
        f"τ = {b} is quicker than τ = {a} though it fetches {fetched[b] - fetched[a]} more items"
        for a, b in pairwise(TAUS)
        if seconds[b] < seconds[a] and fetched[b] >= fetched[a]
    ]
    return Finding(
        "section 6, table 2",
        "time is least at τ = 0.6, since memory stands in for searches",
        f"Seconds by τ: {many(seconds.values(), sign=False)}; items fetched: "
        f"{many(fetched.values(), sign=False)}. {'; '.join(odd) or 'Both rise together'}.",
        OPEN if odd else AGREES,
        ("erm4.c29", "erm4.c33"),
        "the times of the steps for each τ",
    )


def _quality(printed: Printed) -> Finding:
    at = {tau: _at(printed, tau, "hit") for tau in TAUS}
    apart = at["0.6"] - at["1.0"]
    over = at["0.8"] - at["1.0"]
    return Finding(
        "abstract; section 6",
        "without loss of quality; τ = 0.8 is even better",
        f"Hits at τ = 0.6 less those at 1.0: {say(apart, 1, True)} points, "
        f"{say(apart * ASKED / 100, 0, True)} of {ASKED} questions; τ = 0.8 "
        f"{say(over, 1, True)}, {say(over * ASKED / 100, 0, True)} questions.",
        AGREES if apart > -1 and over > 0 else IN_PART if over > 0 else DIFFERS,
        ("erm4.c31", "erm4.c32"),
        "more questions: these cannot exclude a loss of several points",
    )


def _external(printed: Printed) -> Finding:
    fetched = _at(printed, "1.0", "fetched")
    return Finding(
        "section 6, table 2",
        "5 items of each query; how many queries a question has is not stated",
        f"At τ = 1.0 the mean of what is fetched is {fetched}, {fetched / 5:g} times 5: a whole "
        "number of queries if each brings 5, as if all questions had as many.",
        OPEN if fetched % 5 == 0 else AGREES,
        ("erm4.c33",),
        "the number of queries of each question",
    )


def _one_query(printed: Printed) -> Finding:
    fetched, memory = (_at(printed, "0.6", m) for m in ("fetched", "memory_items"))
    return Finding(
        "section 6",
        "at τ = 0.6 external knowledge is about one query's",
        f"{fetched} items of 5; memory brings {memory} more.",
        AGREES if 4 <= fetched <= 6 else DIFFERS,
        ("erm4.c34",),
    )


def _gains(printed: Printed) -> Finding:
    direct = [_hit(printed, "table1", d, "direct") for d in SETS]
    gains = [
        _hit(printed, "table1", d, "full") - base for d, base in zip(SETS, direct, strict=True)
    ]
    relative = [100 * g / base for g, base in zip(gains, direct, strict=True)]
    return Finding(
        "contributions",
        "5 to 10 % more hits than asking directly",
        f"In points: {many(gains)}; relative to Direct: {many(relative, 1)} %.",
        outcome(sum(5 <= g <= 10 for g in gains), len(gains)),
        ("erm4.c21",),
    )


def _each_module(printed: Printed) -> Finding:
    def gain(more: str, less: str) -> Decimal:
        return _hit(printed, "table3", "cambignq", more) - _hit(printed, "table3", "cambignq", less)

    alone = {
        "rewriting over Direct": gain("rewritten_none", "direct"),
        "filtered knowledge over Direct": gain("original_filtered", "direct"),
        "rewriting over all knowledge": gain("plus", "original_all"),
        "filtering all knowledge": gain("original_filtered", "original_all"),
    }
    both = {
        "both over Direct": gain("full", "direct"),
        "both over rewriting alone": gain("full", "rewritten_none"),
        "both over all knowledge": gain("full", "original_all"),
    }
    low, seven = max(alone.values()) <= 2, any(6.5 <= b < 7.5 for b in both.values())
    return Finding(
        "section 5",
        "on CAmbigNQ each module alone adds at most 2 %, both together 7 %",
        "; ".join(f"{name} {say(v, 2, True)}" for name, v in (alone | both).items()) + ".",
        AGREES if low and seven else IN_PART if low or seven else DIFFERS,
        ("erm4.c19", "erm4.c20"),
    )


def _ladder(printed: Printed) -> Finding:
    steps = [
        _hit(printed, "table1", d, more, m) - _hit(printed, "table1", d, less, m)
        for d in SETS
        for m in ("hit", "f1_chars")
        for less, more in pairwise(LADDER)
    ]
    up = sum(step > 0 for step in steps)
    return Finding(
        "section 4.4, table 1",
        "each module adds to the one before on all six data sets",
        f"{up} of {len(steps)} steps go up, by {say(min(steps))} to {say(max(steps))} points, "
        f"{say(mean(steps))} in the mean.",
        outcome(up, len(steps)),
        ("erm4.c11", "erm4.c14", "erm4.c15", "erm4.c22"),
    )


def _several_queries(printed: Printed) -> Finding:
    gains = {
        d: _hit(printed, "table3", d, "original_all") - _hit(printed, "table1", d, "rrr")
        for d in ABLATED
    }
    return Finding(
        "section 4.4",
        "several queries and a clarified question are better than one query",
        "With the question held fixed, all knowledge of several queries less that of one: "
        + ", ".join(f"{data_set(d)} {say(g, 2, True)}" for d, g in gains.items())
        + " hits.",
        outcome(sum(g > 0 for g in gains.values()), len(gains)),
        ("erm4.c12",),
    )


def _unfiltered(printed: Printed) -> Finding:
    gains = {
        (d, m): _hit(printed, "table1", d, m) - _hit(printed, "table1", d, "direct")
        for d in ("hotpotqa", "2wikimultihopqa")
        for m in ("rrr", "plus")
    }
    return Finding(
        "section 4.4",
        "external knowledge as it is can hurt, especially on multi-hop questions",
        f"On HotpotQA and 2WikiMultihopQA, R-R-R and R+ less Direct: {many(gains.values())} hits.",
        outcome(sum(g < 0 for g in gains.values()), len(gains)),
        ("erm4.c16",),
    )
