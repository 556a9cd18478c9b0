"""Pages that are generated before each build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rag_repro.publish.places import Places

NOT_RUN = "not run"

OPENING = """\
# Four RAG papers, re-tested

This book re-tests four papers on retrieval-augmented generation: DR-RAG {cite}`hei2024drrag`,
ERM4 {cite}`shi2024erm4`, DRAGIN {cite}`su2024dragin` and R²AG {cite}`ye2024r2ag`. Each statement
of a paper is written down so that measurements can refute it; the measurements are stored, one
record a question, and every number and verdict in these pages is computed from them.

Where a mechanism can be isolated, it is tested on invented encyclopedias of which every fact is
known (the *testbed*); where real questions are at hand, on these, with small open models
(*public*). The papers' own models and full data (*paper*) need a GPU and downloads; the book says
`not run` where nobody has run them.
"""


def write(places: Places) -> None:
    """Write every generated page; one whose text is the same is not touched."""
    for name, text in {"index.md": front_page(places)}.items():
        target = places.book / name
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def front_page(places: Places) -> str:
    """What was tested, and the verdicts so far."""
    from rag_repro.report import frontpage

    return frontpage.text(places.records, places.root)


def verdict_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The tally of the ledger's rows, a line a paper and tier in which something ran."""
    tally: dict[tuple[str, str], Counter] = {}
    for row in rows:
        tally.setdefault((row["paper"], row["tier"]), Counter())[row["verdict"]] += 1
    ran = {key: count for key, count in tally.items() if set(count) - {NOT_RUN}}
    waiting = [f"{paper}, {tier}" for paper, tier in tally if (paper, tier) not in ran]
    lines = ["## Verdicts so far", ""]
    if ran:
        words = sorted({word for count in ran.values() for word in count} - {NOT_RUN})
        words.append(NOT_RUN)
        lines += ["| " + " | ".join(["paper", "tier", *words]) + " |"]
        lines += ["| " + " | ".join(["---", "---", *("---:" for _ in words)]) + " |"]
        for (paper, tier), count in ran.items():
            cells = [paper, tier, *(str(count[word] or "") for word in words)]
            lines += ["| " + " | ".join(cells) + " |"]
        lines += ["", "Numbers of claims. What the words mean: {ref}`verdicts`.", ""]
    else:
        lines += ["No claim has records yet.", ""]
    if waiting:
        lines += [f"Not run at all: {'; '.join(waiting)}.", ""]
    return "\n".join(lines)
