"""A list of passages as R²AG's former is told of it."""

from __future__ import annotations

from rag_repro.analysis.gold_signals import SYMBOLS, RankedList, head_relevance
from rag_repro.show import missing
from rag_repro.show.table import Table
from rag_repro.show.traces import roles_of
from rag_repro.study.names import train_command


def passage_list(ranked: RankedList, former: str, name: str = "") -> Table:
    """A line a passage, as ranked: its features, whether it is gold, the head's probability of it.

    former: whose head (equation 7); a column without numbers says how to train it.
    """
    roles, head = roles_of(ranked.question), head_relevance(former, [ranked])
    body = [
        [
            i + 1,
            hit.passage.title,
            roles.get(hit.passage.id, ""),
            *(f"{x:.3f}" for x in ranked.rows[i]),
            f"{100 * head[0][i]:.0f}" if head else "",
        ]
        for i, hit in enumerate(ranked.hits)
    ]
    if not head:
        train = train_command(former, ("r2ag",))
        body[0][-1] = missing.Missing((train,) if train else (), "not at hand")
    columns = ["place", "passage", "gold", *SYMBOLS.values(), "head: gold, %"]
    return Table(columns, body, f"“{ranked.question.text}”, and its candidates", name)
