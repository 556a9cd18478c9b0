"""From a world to a data set: which questions, in which order, over which corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from random import Random
from typing import Any

from rag_repro.data.synthworld.asking import Asker, Draft, Workbench, pick
from rag_repro.data.synthworld.dials import PRESETS, Dials, WorldError
from rag_repro.data.synthworld.draft import BLOCK
from rag_repro.data.synthworld.question_kinds import (
    ambiguous,
    bridge_comparison,
    bridge_free,
    chain_of,
    comparison,
    inference,
    numeric_difference,
    paraphrase,
    yes_no,
)
from rag_repro.data.synthworld.world import Entity, World, world
from rag_repro.schema import Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.words import nearest

KINDS: Mapping[str, tuple[Callable[[Workbench, Entity], Draft | None], int]] = {
    "single_hop": (chain_of(1), 12),
    "compositional2": (chain_of(2), 20),
    "compositional3": (chain_of(3), 10),
    "compositional4": (chain_of(4), 6),
    "inference": (inference, 7),
    "comparison": (comparison, 11),
    "bridge_comparison": (bridge_comparison, 11),
    "yes_no": (yes_no, 6),
    "numeric_difference": (numeric_difference, 5),
    "ambiguous": (ambiguous, 4),
    "paraphrase": (paraphrase, 4),
    "bridge_free": (bridge_free, 4),
}
"""Maker of each kind (given a `Workbench` and an entity to begin with, what a question is made of,
or None where this entity does not lead to one), and how often the kind is asked, relative to the
others: the multi-hop kinds roughly as in 2WikiMultihopQA, with more long chains."""

COMPOSITIONAL = ("compositional2", "compositional3", "compositional4")
# Kinds that multi-hop data sets have: what recall is calibrated on.
MULTI_HOP = (*COMPOSITIONAL, "inference", "comparison", "bridge_comparison")
# Share of compositional questions that begin with a work, as most of the public ones.
WORK_ROOTS = 0.7
_TRIES = 80


def build(
    name: str,
    n_passages: int = 4_000,
    *,
    dials: Dials | None = None,
    n_questions: int = 1_000,
    kinds: Sequence[str] | None = None,
    split: str | None = None,
) -> Dataset:
    """A world's questions over its passages.

    With 1,000 questions it takes about 0.3 s at 1,000, 0.5 s at 4,000 and 2 s
    at 20,000 passages on one core, and about 2 KB of memory a passage.

    kinds: names of KINDS, None for all, mixed so that any first n have about their shares.
    split: "train" or "tune" of worlds A and Z (no shared entity, hence no shared gold
    passage), "test" of the others; None: all. Ids name the split. The corpus is that of the whole
    world. A kind that has no more to ask gives fewer: see the card's "counts".
    Raises WorldError for an unknown world, size, kind or split.
    """
    chosen = _chosen(kinds)
    if n_questions < 1:
        raise WorldError(f"n_questions is {n_questions}; ask for 1 or more")
    dials = world(name, n_passages, dials=dials).dials
    return _build(name, n_passages, dials, n_questions, chosen, split)


@lru_cache(maxsize=8)
def _build(name, n_passages, dials, n_questions, chosen, split) -> Dataset:
    here = world(name, n_passages, dials=dials)
    blocks = here.blocks(split)
    part = split if split in ("train", "tune") else None
    corpus_name = f"world-{name}@{n_passages}{dials.mark(PRESETS[name].dials)}"
    questions = tuple(_mixed(here, blocks, chosen, n_questions, part))
    label = corpus_name if part is None else f"{corpus_name}/{part}"
    card = {
        "source": "synthworld: generated, nothing in it is real",
        "licence": "MIT",
        "world": name,
        "seed": here.seed,
        "split": split or "all",
        "dials": asdict(dials),
        "passages": n_passages,
        "questions": len(questions),
        "counts": dict(Counter(q.meta["maker"] for q in questions)),
        "caveats": "Invented facts in template sentences: a place for mechanisms, not for scores.",
    }
    return Dataset(label, questions, Corpus(corpus_name, here.passages), card)


def _chosen(kinds: Sequence[str] | None) -> tuple[str, ...]:
    unknown = next((kind for kind in kinds or () if kind not in KINDS), None)
    if unknown is not None:
        raise WorldError(
            f"there is no kind of question {unknown!r}{nearest(unknown, KINDS)}; "
            f"there are: {', '.join(KINDS)}"
        )
    return tuple(KINDS if kinds is None else dict.fromkeys(kinds))


def _mixed(
    here: World, blocks: Sequence[int], chosen: Sequence[str], n: int, part: str | None
) -> Iterator[Question]:
    """n questions; the kind that lags most behind its share comes next."""
    streams = {kind: _questions(here, blocks, kind, part) for kind in chosen}
    given = dict.fromkeys(chosen, 0)
    while n and streams:
        kind = min(streams, key=lambda k: ((given[k] + 0.5) / KINDS[k][1], k))
        question = next(streams[kind], None)
        if question is None:
            del streams[kind]
            continue
        given[kind] += 1
        n -= 1
        yield question


def _questions(
    here: World, blocks: Sequence[int], kind: str, part: str | None
) -> Iterator[Question]:
    """All questions of one kind, taking blocks in turn, until nothing new is found."""
    asker = Asker(here)
    place = here.name if part is None else f"{here.name}-{part}"
    tables = [_by_kind(here, b) for b in blocks]
    asked: set[tuple] = set()
    number = misses = turn = 0
    while misses < 3 * len(blocks):
        draw = Random(f"{here.seed}/{here.name}/{part}/{kind}/{turn}").random
        table = tables[turn % len(blocks)]
        turn += 1
        draft = _draft(Workbench(here, asker, table, draw, draw()), kind, asked)
        if draft is None:
            misses += 1
            continue
        misses = 0
        group = f"{place}-g-{kind}-{number:04d}" if len(draft.texts) > 1 else None
        for text in draft.texts:
            yield _question(f"{place}-q-{kind}-{number:04d}", here, kind, text, draft, group)
            number += 1


def _by_kind(here: World, block: int) -> dict[str, list]:
    table: dict[str, list] = {}
    for entity in here.entities[block * BLOCK : (block + 1) * BLOCK]:
        table.setdefault(entity.kind, []).append(entity)
    return table


def _draft(desk: Workbench, kind: str, asked: set[tuple]) -> Draft | None:
    everyone = [e for entities in desk.block.values() for e in entities]
    if kind in COMPOSITIONAL and desk.draw() < WORK_ROOTS:
        everyone = [e for e in everyone if e.kind in ("film", "song", "album", "book")]
    if kind == "ambiguous":
        everyone = [e for e in everyone if len(desk.world.by_name[e.name]) > 1]
    for _ in range(_TRIES):
        if not everyone:
            return None
        draft = KINDS[kind][0](desk, pick(everyone, desk.draw))
        if draft is None:
            continue
        key = (frozenset(e.id for e in draft.roots), tuple(f.relation for f in draft.facts))
        if key not in asked:
            asked.add(key)
            return draft
    return None


def _question(
    name: str, here: World, kind: str, text: str, draft: Draft, group: str | None
) -> Question:
    label = "compositional" if kind in COMPOSITIONAL else kind
    meta: dict[str, Any] = {
        "maker": kind,
        "world": here.name,
        "answer_type": draft.answer_type,
        "relations": tuple(f.relation for f in draft.facts),
        "subjects": tuple(f.subject for f in draft.facts),
        "taught": tuple(f.taught for f in draft.facts),
        "held_out": draft.held_out,
        "popularity": min(e.popularity for e in draft.roots),
        **draft.extra,
    }
    if group is not None:
        meta["group"] = group
    # Questions with the same named entities share passages: they are drawn together.
    cluster = f"{here.name}:" + "+".join(sorted(e.id for e in draft.roots))
    return Question(
        name,
        text,
        draft.answers,
        kind=label,
        hops=draft.hops,
        gold=draft.gold,
        steps=draft.steps,
        interpretations=draft.interpretations,
        cluster=cluster,
        meta=meta,
    )
