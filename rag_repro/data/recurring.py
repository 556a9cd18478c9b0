"""Questions that were asked before, and questions like them that are asked again.

What a memory can save is measured on these. `world-B-asked`: one wording of each of a
hundred questions; `world-B-again`: three other wordings of each, the second of every group
before the third of any, so that the first hundred are one a group. `ambignq_asked` and
`ambignq_again` follow ERM4's protocol (section 6): a hundred questions drawn at random, and the
two hundred others that are most like one of them, by the cosine of their embeddings. These
ids are frozen in `recurring.json`, made once (`tests/data/test_recurring.py` has how), so that
loading needs no encoder.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources

from rag_repro.schema import Question
from rag_repro.schema.dataset import Dataset

ASKED, AGAIN = "asked", "again"
GROUPS = 100


class RecurringError(ValueError):
    """The frozen recurring questions are of other data."""


def of_world(made: Dataset, part: str) -> Dataset:
    """The first wordings of a world's first GROUPS paraphrases, or the other three of each."""
    groups: dict[str, list[Question]] = defaultdict(list)
    for q in made.questions:
        groups[q.meta["group"]].append(q)
    by_wording = list(zip(*list(groups.values())[:GROUPS], strict=True))
    chosen = by_wording[:1] if part == ASKED else by_wording[1:]
    head, at, size = made.name.partition("@")
    counts = f"{'one wording' if part == ASKED else 'three other wordings'} of {GROUPS} questions"
    return replace(
        made,
        name=f"{head}-{part}{at}{size}",
        questions=tuple(q for row in chosen for q in row),
        card={**made.card, "recurring": counts},
    )


def of_public(made: Dataset) -> Dataset:
    """The frozen questions of a public data set, in the frozen order. Raises RecurringError."""
    wanted = frozen()[made.name]
    absent = [i for i in wanted if i not in made.by_id]
    if absent:
        raise RecurringError(
            f"{made.name}: {len(absent)} of {len(wanted)} recurring questions, as {absent[0]!r}, "
            "are not in this file; take the file that recurring.json was made from"
        )
    return made.only(wanted)


@cache
def frozen() -> Mapping[str, Sequence[str]]:
    """data set -> ids, all of them test questions."""
    return json.loads(resources.files(__package__).joinpath("recurring.json").read_text("utf-8"))
