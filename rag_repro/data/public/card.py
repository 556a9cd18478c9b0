"""The data card: what was counted, beside what the registry knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rag_repro.schema.dataset import Corpus

from ...schema import Question
from .registry import Source


def make(
    source: Source, questions: Sequence[Question], corpus: Corpus, dropped: int
) -> Mapping[str, object]:
    """Source, licence, split and caveats, with the counts of this very file."""
    roles = Counter((q.kind, g.role) for q in questions for g in q.gold if g.role)
    at_hop = Counter((g.hop, g.role) for q in questions for g in q.gold if g.role)
    return {
        "name": source.name,
        "title": source.title,
        "paper": source.paper,
        "source": source.source,
        "licence": source.licence,
        "split": source.split,
        "full_size": source.full_size,
        "caveats": source.caveats,
        "counts": {
            "questions": len(questions),
            "passages": len(corpus),
            "kinds": _counts(q.kind for q in questions),
            "hops": _counts(q.hops for q in questions),
            "gold_per_question": _counts(len(q.gold) for q in questions),
            "candidates_per_question": _counts(len(q.candidates) for q in questions),
            "gold_not_in_corpus": sum(len(q.meta.get("gold_not_in_corpus", ())) for q in questions),
            "gold_without_hop": sum(g.hop is None for q in questions for g in q.gold),
            "steps_without_passage": sum(s.passage_id is None for q in questions for s in q.steps),
            "passages_without_text": dropped,
        },
        "roles": {
            "rule": "heuristic: static where the page's name stands in the question",
            "static": sum(n for (_, role), n in roles.items() if role == "static"),
            "dynamic": sum(n for (_, role), n in roles.items() if role == "dynamic"),
            "by_kind": _table(roles),
            "by_hop": _table(at_hop),
        }
        if source.multi_hop
        else None,
    }


def _table(counts: Counter) -> dict[str, dict[str, int]]:
    """(row, role) -> n, as row -> role -> n."""
    rows = sorted({row for row, _ in counts}, key=lambda v: (v is None, v if v is not None else 0))
    return {str(row): {r: counts[row, r] for r in ("static", "dynamic")} for row in rows}


def _counts(values) -> dict[str, int]:
    """value -> how often, smallest or first in the alphabet first (None last)."""
    found = Counter(values)
    order = sorted(found, key=lambda v: (v is None, v if v is not None else 0))
    return {str(v): found[v] for v in order}
