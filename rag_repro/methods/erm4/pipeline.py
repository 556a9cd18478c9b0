"""ERM4's pipelines (section 4.3): formulate, retrieve or recall, filter, read, remember.

    s, q_1 ..    = G(p)                              Query Rewriter+           (3.1)
    k_i          = search(q_i), or memory            Retrieval Trigger         (3.4)
    kept         = {k : F(s, k) = entailment}        Knowledge Filter          (3.2)
    answer       = Reader(s, kept)
    memory       = memory + what was fetched         Memory Knowledge Reservoir (3.3)

Each module is a stage of its own, in its own file; the settings say which are used.
What the paper leaves open, and what we take: the passages are put in order and cut to k
before the filter, so that a filter takes away from what the reader would have got and adds
nothing; the filter judges for the question that the reader answers; a passage found twice
counts once; of one question's passages the best are remembered last, so that they replace
others of the same title and stay longest.

The trace holds the stages' events (see their modules) and, last,

    {"stage": "counts", "queries", "outputs" of the rewriter, "unfollowed" of them,
     "searches", "fetched" (hits from outside, each as often as it was found), "external"
     (passages of them), "memory" (passages that only memory has), "judged", "irrelevant",
     "unlabelled", "backed_off", "shown" (passages that are read)}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rag_repro.engine import Flow
from rag_repro.methods.base import builtin
from rag_repro.methods.baselines.controls import in_any_order, near
from rag_repro.methods.erm4.erm4_settings import RESERVOIR, ERM4Settings
from rag_repro.methods.erm4.knowledge_filter import Filtered, filtered
from rag_repro.methods.erm4.rewriter import Formulated, formulate
from rag_repro.methods.erm4.trigger import Find, Gathered, gather
from rag_repro.methods.stages import read
from rag_repro.schema import Hit, Question, Remember, Retrieve


@builtin("erm4", 1, ERM4Settings, "Shi et al. 2024, sections 3 and 4.3")
def erm4(question: Question, settings: ERM4Settings) -> Flow:
    """All stages that the settings name."""
    made, gathered, chosen = yield from knowledge(question, settings)
    answer = yield from read(made.asked, chosen.kept, settings)
    if settings.memory == "online" and gathered.external:
        new = fetched(gathered, chosen, settings.content, settings.order)
        yield Remember(tuple(hit.passage for hit in new), service=RESERVOIR)
    events = (*made.events, *gathered.events, *chosen.events, counts(made, gathered, chosen))
    return replace(answer, trace=(*events, *answer.trace))


def knowledge(question: Question, settings: ERM4Settings, find: Find | None = None):
    """All stages before the reading -> Formulated, Gathered, Filtered.

    find: what searches for a query in place of one plain search.
    """
    made = yield from formulate(question, settings)
    if not settings.search:
        return made, Gathered(), Filtered(())
    if settings.noise is not None:
        pool = yield from noisy(question, settings)
        return made, Gathered(), (yield from filtered(made.asked, pool, settings))
    gathered = yield from gather(question, made.queries, settings, find)
    pool = gathered.in_order(settings.order, settings.k)
    spared = () if settings.filter_memory else gathered.from_memory
    chosen = yield from filtered(made.asked, pool, settings, spared)
    return made, gathered, chosen


def noisy(question: Question, settings: ERM4Settings):
    """The gold passages and `noise` others, as they are read or judged.

    More noise is that of before and further passages. ValueError: no gold passage is named.
    """
    if not question.gold:
        raise ValueError(f"question {question.id!r} names no gold passages; take noise away")
    gold = question.gold_ids
    hits = list((yield Retrieve(question.text, k=len(gold), within=tuple(gold))))
    if settings.noise:
        hits += yield from near(question, settings.noise, settings)
    in_any_order(question, hits)
    return tuple(hits)


def fetched(gathered: Gathered, chosen: Filtered, content: str, order: str) -> tuple[Hit, ...]:
    """What came from outside and is to be remembered, the best last.

    content: "raw", all of it; "filtered", what was kept.
    """
    whole = chosen.kept if content == "filtered" else gathered.in_order(order)
    return tuple(hit for hit in reversed(whole) if hit.passage.id in gathered.external)


def counts(made: Formulated, gathered: Gathered, chosen: Filtered) -> dict[str, Any]:
    """The trace's last event."""
    return {
        "stage": "counts",
        "queries": len(gathered.events),
        "outputs": made.outputs,
        "unfollowed": made.unfollowed,
        "searches": gathered.searches,
        "fetched": sum(map(len, gathered.found)),
        "external": len(gathered.external),
        "memory": len(gathered.from_memory),
        **chosen.counts,
        "shown": len(chosen.kept),
    }
