"""bm25s against rank_bm25 on the testbed: queries a second, and whether they rank alike.

Both answer the same questions through `search`: text to terms, scores, the best
ten. rank_bm25 goes through all passages in Python, so the questions are few; so
that a turn of bm25s is more than a blink, it asks them ROUNDS times over. Times
are shown for a thousand queries.

Compared is what a test holds equal: bm25s' Robertson variant and rank_bm25
without its floor, the first ten passages in order. Passages of equal score
stand by id in both, also where the cut at ten falls among them, as it did for
`ties_at_10` of the questions. `equal_with_floor` is the share of questions whose
first ten are the same where rank_bm25 keeps its floor, which it gives to terms
of more than half of the passages: the testbed's sentences have a few of them.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

from benchmarks import timing
from rag_repro import data
from rag_repro.retrieval import BM25, RankBM25

GOAL = 50
ROUNDS = 20
REFERENCE, DEFAULT, EQUAL = "rank_bm25", "bm25s", "bm25s robertson"
PER = 1000  # queries, for which times are shown


def main(argv: Sequence[str] | None = None) -> None:
    parser = timing.parser(__doc__.splitlines()[0], questions=20, repeats=3, reads=False)
    parser.add_argument(
        "--passages", type=int, nargs="+", default=[10_000, 100_000], help="default: %(default)s"
    )
    given = parser.parse_args(argv)
    sizes, rows = {}, {}
    for size in sorted(given.passages):
        sizes[size], times = measure(size, given.questions, given.repeats)
        rows |= {f"{size:,} {name}": side for name, side in times.items()}
    largest = sizes[max(sizes)]
    facts = {
        "benchmark": "bm25",
        **largest["ratios"][DEFAULT],  # of the largest corpus
        "equal_top10": all(one["equal_top10"] for one in sizes.values()),
        "questions": given.questions,
        "repeats": given.repeats,
        "rounds": ROUNDS,
        "threads": 1,  # neither side uses more
        "passages": sorted(sizes),
        "sizes": {str(size): one for size, one in sizes.items()},
        **timing.machine("bm25s", "rank-bm25", "numpy", "pystemmer"),
    }
    title = f"seconds for {PER:,} queries, from {given.questions} questions of the testbed"
    goals = [line for size, one in sizes.items() for line in told(size, one)]
    goals.append(f"goal: {GOAL} times the queries a second at 100,000 passages")
    timing.show(title, facts, rows, as_json=given.json, goals=goals)


def measure(
    size: int, n_questions: int, repeats: int
) -> tuple[dict[str, Any], dict[str, timing.Times]]:
    """Facts of one corpus, and each side's seconds for PER queries."""
    dataset = data.load(f"world-B@{size}")
    queries = [question.text for question in timing.first(dataset, n_questions)]
    build: dict[str, Callable[[], Any]] = {
        REFERENCE: partial(RankBM25, dataset.corpus, epsilon=0),
        DEFAULT: partial(BM25, dataset.corpus),
        EQUAL: partial(BM25, dataset.corpus, variant="robertson"),
    }
    built, made = timing.interleave(build, 1, warm=0)
    rounds = {name: 1 if name == REFERENCE else ROUNDS for name in made}
    # One more than ten are asked for, to see where the cut falls.
    asked = {
        name: partial(retriever.search, queries * rounds[name], 11)
        for name, retriever in made.items()
    }
    taken, _ = timing.interleave(asked, repeats)
    times = {name: scaled(side, PER / len(queries) / rounds[name]) for name, side in taken.items()}
    hits = {name: made[name].search(queries, 11) for name in (REFERENCE, EQUAL)}
    floored = RankBM25(dataset.corpus).search(queries, 10)
    first = {name: [ids(found) for found in all_found] for name, all_found in hits.items()}
    same = [ids(found) == ours for found, ours in zip(floored, first[EQUAL], strict=True)]
    return {
        "ratios": {name: timing.ratio(times[REFERENCE], times[name]) for name in (DEFAULT, EQUAL)},
        "queries_per_second": {
            name: round(PER / median(side.wall), 2) for name, side in times.items()
        },
        "equal_top10": first[REFERENCE] == first[EQUAL],
        "equal_with_floor": round(sum(same) / len(same), 3),
        "ties_at_10": sum(found[9].score == found[10].score for found in hits[EQUAL]),
        "index_seconds": {name: round(side.wall[0], 2) for name, side in built.items()},
        "index_cpu_seconds": {name: round(side.cpu[0], 2) for name, side in built.items()},
        "index_mb": {name: megabytes(make) for name, make in build.items()},
    }, times


def ids(hits: Sequence[Any]) -> list[str]:
    return [hit.passage.id for hit in hits[:10]]


def scaled(times: timing.Times, by: float) -> timing.Times:
    return timing.Times(tuple(t * by for t in times.wall), tuple(t * by for t in times.cpu))


def megabytes(make: Callable[[], Any]) -> float:
    """What an index holds: built once more, since counting slows the building down."""
    gc.collect()
    tracemalloc.start()
    held = make()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del held
    return round(size / 2**20, 1)


def told(size: int, one: dict[str, Any]) -> list[str]:
    """One corpus in words."""
    ratio = one["ratios"][DEFAULT]["ratio"]
    seconds = ", ".join(f"{name} {value:g} s" for name, value in one["index_seconds"].items())
    memory = ", ".join(f"{name} {value:g} MB" for name, value in one["index_mb"].items())
    return [
        f"{size:,} passages: {ratio:.0f} times the queries a second of rank_bm25",
        f"  the same first ten: {one['equal_top10']} ({one['ties_at_10']} cut among equals; "
        f"with rank_bm25's floor {100 * one['equal_with_floor']:.0f} % the same)",
        f"  index: {seconds}",
        f"  holds: {memory}",
    ]


if __name__ == "__main__":
    main()
