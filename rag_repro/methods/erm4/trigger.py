"""Where knowledge comes from: the Retrieval Trigger over the reservoir. ERM4, section 3.4.

    Pop(q) = |{k in K : S(q, title(k)) >= tau}|      S: cosine
    Pop(q) >= theta: q is within the knowledge, memory answers;   else it is searched for

The trace has one event a query, in the order of the queries:

    {"stage": "retrieve", "query": text, "popularity": number or None without memory,
     "searched": bool, "found": ids from outside, "recalled": ids from memory}
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rag_repro.methods.drrag.concatenation import Ranking, take_in_turns
from rag_repro.methods.erm4.erm4_settings import RESERVOIR, ERM4Settings
from rag_repro.methods.stages import search, side_by_side
from rag_repro.schema import Hit, Question, Recall

Find = Callable[[str], Generator[Any, Any, Ranking]]
"""How one query is searched for."""


@dataclass(frozen=True)
class Gathered:
    """What the queries brought: of each its hits from outside, and from memory."""

    found: tuple[Ranking, ...] = ()
    recalled: tuple[Ranking, ...] = ()
    searches: int = 0
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def external(self) -> dict[str, Hit]:
        """By passage id, in the order of the queries."""
        return {hit.passage.id: hit for hit in chain.from_iterable(self.found)}

    @property
    def from_memory(self) -> set[str]:
        """Ids of passages that no search found."""
        recalled = {hit.passage.id for hit in chain.from_iterable(self.recalled)}
        return recalled - self.external.keys()

    def in_order(self, order: str, most: int | None = None) -> tuple[Hit, ...]:
        """Every passage once, up to `most`; a query's own from outside before those of memory."""
        rankings = [(*f, *r) for f, r in zip(self.found, self.recalled, strict=True)]
        if order == "sequential":
            rankings = [list(chain.from_iterable(rankings))]
        size = sum(map(len, rankings))
        return take_in_turns((), rankings, size if most is None else min(most, size))


def gather(
    question: Question, queries: Sequence[str], settings: ERM4Settings, find: Find | None = None
):
    """Stage `retrieve` -> Gathered: each query by a search, or from memory.

    The hits come from the question as it was asked, where it has candidates of its own.
    find: what searches for a query in place of one plain search.
    """

    def plainly(query: str):
        return (yield search(query, settings.per_query, question, settings))

    similar: Sequence[Ranking | None] = [None] * len(queries)
    if settings.memory is not None:
        most = settings.capacity or settings.per_query
        known = yield [Recall(query, k=most, service=RESERVOIR) for query in queries]
        similar = [alike(hits, settings) for hits in known]
    within = [hits is not None and len(hits) >= (settings.theta or 1) for hits in similar]
    outside = [query for query, inside in zip(queries, within, strict=True) if not inside]
    searched = yield from side_by_side(map(find or plainly, outside))
    answers = iter(searched)
    found = tuple(() if inside else next(answers) for inside in within)
    searches = len(outside)
    if settings.matched:
        count = len(Gathered(found, ((),) * len(found)).in_order(settings.order))
        if count:
            alone = yield search(queries[0], count, question, settings)
            found, searches = (alone, *([()] * (len(found) - 1))), searches + 1
    recalled = tuple(
        tuple(hits[: settings.recalled]) if hits and (inside or settings.beside) else ()
        for hits, inside in zip(similar, within, strict=True)
    )
    events = [
        {
            "stage": "retrieve",
            "query": query,
            "popularity": None if hits is None else len(hits),
            "searched": not inside,
            "found": [hit.passage.id for hit in new],
            "recalled": [hit.passage.id for hit in old],
        }
        for query, hits, inside, new, old in zip(
            queries, similar, within, found, recalled, strict=True
        )
    ]
    return Gathered(found, recalled, searches, tuple(events))


def alike(hits: Ranking, settings: ERM4Settings) -> Ranking:
    """Those whose titles are as similar as tau; of an exact memory all that it has."""
    if settings.trigger == "exact":
        return hits
    return [hit for hit in hits if hit.score >= settings.tau]
