"""What a record's own line tells beyond its stored scores: pure functions of the line.

Computed when records are read, so that old records have them too. A line's
`gold` holds [role, hop, rank among the hits or None] of each gold passage;
`judged` holds [d, e, probability, how many of the two are gold] of each pair
that a selection asked for, where it asked for any.
"""

from __future__ import annotations

from functools import partial

from rag_repro.evaluation.metric import Line, counted, described


def useless(line: Line) -> float | None:
    """Share of the passages handed on that are not gold; None without hits or gold."""
    hits = set(line["hits"])
    if not hits or not line.get("gold"):
        return None
    return 1 - len(_gold_hits(line)) / len(hits)


def log_likelihood(line: Line) -> float | None:
    """log p of the likeliest accepted answer, where answers were put behind the prompt."""
    return max(line["likelihood"]) if "likelihood" in line else None


def removed(line: Line) -> list[str] | None:
    """Passages that were judged and not handed on, in the order asked; None: none was judged."""
    if "judged" not in line:
        return None
    kept = set(line["hits"])
    seen = dict.fromkeys(name for d, e, *_ in line["judged"] for name in (d, e))
    return [name for name in seen if name not in kept]


def number_removed(line: Line) -> float | None:
    gone = removed(line)
    return None if gone is None else float(len(gone))


def removed_gold(line: Line) -> float | None:
    """Share of gold among the passages removed; None where none was, or nobody knows."""
    known = gold_of_judged(line)
    gone = [known[name] for name in removed(line) or () if name in known]
    return sum(gone) / len(gone) if gone else None


def lost_gold(line: Line) -> float | None:
    """1 where a gold passage was judged and not handed on."""
    known = gold_of_judged(line)
    return float(any(known.get(name) for name in removed(line))) if known else None


def gold_of_judged(line: Line) -> dict[str, bool]:
    """Which judged passages are gold, {} where the question names none.

    A pair of one gold and one other passage does not say which is which; a
    passage handed on says it by its rank, and one of the two gives the other.
    """
    judged = [(d, e, gold) for d, e, _, gold in line.get("judged", ()) if gold is not None]
    found = _gold_hits(line)
    known = {n: n in found for d, e, _ in judged for n in (d, e) if n in set(line["hits"])}
    for d, e, gold in judged:
        if gold != 1:
            known |= {d: gold == 2, e: gold == 2}
    told = -1
    while told < len(known):
        told = len(known)
        for d, e, gold in judged:
            for one, other in ((d, e), (e, d)):
                if one in known:
                    known[other] = gold - known[one] == 1
    return known


def static_first(line: Line) -> float | None:
    """1 where a static-relevant passage is in the first half of those handed on.

    Where k passages are, that is what DR-RAG's first stage finds (k1 = k / 2, rounded up),
    and the same of one search. None where the question names no static-relevant one.
    """
    ranks = [rank for role, _, rank in line.get("gold", ()) if role == "static"]
    first = (len(line["hits"]) + 1) // 2
    return float(any(rank is not None and rank <= first for rank in ranks)) if ranks else None


def searched(line: Line) -> float | None:
    """1 where an adaptive method decided to fetch passages; None where none decided."""
    decided = line.get("decided")
    return None if decided is None else float(decided[1])


def _gold_hits(line: Line) -> set[str]:
    ranks = {rank for *_, rank in line.get("gold", ()) if rank is not None}
    return {name for place, name in enumerate(line["hits"], start=1) if place in ranks}


TABLE = (
    described("entropy", lambda line: line.get("entropy")),
    described("log_likelihood", log_likelihood),
    described("useless", useless),
    described("pairs", partial(counted, "cost", "scored")),
    described("removed", number_removed),
    described("removed_gold", removed_gold),
    described("lost_gold", lost_gold),
    described("static_first", static_first),
    described("searched", searched),
)
