"""Questions that were asked before, and questions like them that are asked again.

What a memory can save is measured on these. `world-B-asked`: one wording of each of a
hundred questions; `world-B-again`: three other wordings of each, the second of every group
before the third of any, so that the first hundred are one a group. `ambignq_asked` and
`ambignq_again` follow ERM4's protocol (section 6): a hundred questions drawn at random, and the
two hundred others that are most like one of them, by the cosine of their embeddings. These
ids are frozen in `recurring.json`, made once (`tests/data/test_recurring.py` has how), so that
loading needs no encoder.

A world's titles are all different, and then "the newest replaces an older one of the same
title" (ERM4, section 3.3) replaces nothing. Here each passage is cut in two at the end of a
sentence, as an article is cut into paragraphs, and both halves keep its title.
`world-B-asked-halves`: a question in one wording, and another about the same thing whose
answer stands in the other half; which of the two is asked first takes turns, so that what is
needed later is the older of the two as often as the newer. `world-B-again-halves`: three other
wordings of the former. A memory that keeps one passage a title can hold half of what it saw.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from random import Random
from typing import TYPE_CHECKING

from rag_repro.schema import Gold, Passage, Question, Step
from rag_repro.schema.dataset import Corpus, Dataset

if TYPE_CHECKING:
    from rag_repro.data.synthworld import Fact, World

ASKED, AGAIN = "asked", "again"
GROUPS = 100
_END = re.compile(r"(?<=\.) (?=[A-Z])")


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
    """The frozen questions of a public data set, in the frozen order. Raises ValueError."""
    wanted = frozen()[made.name]
    absent = [i for i in wanted if i not in made.by_id]
    if absent:
        raise ValueError(
            f"{made.name}: {len(absent)} of {len(wanted)} recurring questions, as {absent[0]!r}, "
            "are not in this file; take the file that recurring.json was made from"
        )
    return made.only(wanted)


@cache
def frozen() -> Mapping[str, Sequence[str]]:
    """data set -> ids, all of them test questions."""
    return json.loads(resources.files(__package__).joinpath("recurring.json").read_text("utf-8"))


def of_halves(made: Dataset, world: World, part: str) -> Dataset:
    """The asked or the again questions of a world's paraphrases, over its halved passages.

    made: a world's paraphrases, four a group. part: "asked" or "again".
    """
    pairs = {p.id: cut(p) for p in made.corpus.passages}
    corpus = Corpus(f"{made.corpus.name}/halves", tuple(h for pair in pairs.values() for h in pair))
    first = of_world(made, ASKED)
    beside = {q.meta["group"]: _beside(q, world, pairs) for q in first.questions}
    known = {group for group, other in beside.items() if other is not None}
    chosen = of_world(made, part)
    kept = [_halved(q, world, pairs) for q in chosen.questions if q.meta["group"] in known]
    if part == ASKED:
        two = [(q, beside[q.meta["group"]]) for q in kept]
        kept = [q for i, pair in enumerate(two) for q in (pair if i % 2 else pair[::-1])]
    head, at, size = chosen.name.partition("@")
    card = {**chosen.card, "corpus": "each passage cut in two halves under one title"}
    name = f"{head}-halves{at}{size}"
    return replace(chosen, name=name, questions=tuple(kept), corpus=corpus, card=card)


def cut(passage: Passage) -> tuple[Passage, Passage]:
    """Both halves, at the sentence's end that is nearest to the middle."""
    text = passage.text
    ends = [m.start() for m in _END.finditer(text)]
    at = min(ends, key=lambda end: abs(2 * end - len(text)))
    return tuple(
        replace(passage, id=f"{passage.id}{half}", text=said)
        for half, said in (("a", text[:at]), ("b", text[at + 1 :]))
    )


def _half(fact: Fact, pairs: Mapping[str, tuple[Passage, Passage]]) -> Passage:
    """The half that states a fact: the first that has its value."""
    one, other = pairs[fact.passage_id]
    return one if fact.value in one.text else other


def _halved(q: Question, world: World, pairs: Mapping[str, tuple[Passage, Passage]]) -> Question:
    from rag_repro.data.synthworld.reasoning import facts_of

    halves = [_half(fact, pairs).id for fact in facts_of(world, q)]
    gold = tuple(replace(g, passage_id=half) for g, half in zip(q.gold, halves, strict=True))
    steps = tuple(replace(s, passage_id=half) for s, half in zip(q.steps, halves, strict=True))
    return replace(q, gold=gold, steps=steps)


def _beside(
    q: Question, world: World, pairs: Mapping[str, tuple[Passage, Passage]]
) -> Question | None:
    """A question about the thing that q names, answered in the other half; None: there is none."""
    from rag_repro.data.synthworld.asking import Asker, answers_of
    from rag_repro.data.synthworld.reasoning import facts_of

    asked = facts_of(world, q)[0]
    thing, mine = world.entity[asked.subject], _half(asked, pairs)
    facts = world.facts_of[thing.id].values()
    others = [f for f in facts if _half(f, pairs) != mine and f.value not in thing.title]
    if not others:
        return None
    draw = Random(f"halves {q.meta['group']}")
    fact = draw.choice(others)
    text = Asker(world).ask(fact.relation, thing.title, draw.random)
    half, answers = _half(fact, pairs).id, answers_of(world, fact)
    told = {"relations": (fact.relation,), "subjects": (thing.id,), "taught": (fact.taught,)}
    return Question(
        f"{q.id}-beside",
        text,
        answers,
        kind="single_hop",
        hops=1,
        gold=(Gold(half, "static", 1),),
        steps=(Step(text, answers[0], half),),
        cluster=q.cluster,
        meta={**q.meta, **told, "maker": "single_hop"},
    )
