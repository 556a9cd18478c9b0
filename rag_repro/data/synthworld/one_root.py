"""Questions about one named entity: chains of facts, inference, paraphrases, namesakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rag_repro.data.synthworld.asking import pick
from rag_repro.data.synthworld.chains import (
    Draft,
    Workbench,
    answers_of,
    is_clean,
    is_held_out,
    needs_all,
    walk,
)
from rag_repro.data.synthworld.wordings import answer_type
from rag_repro.data.synthworld.world import Entity, Fact
from rag_repro.schema import Gold, Interpretation


def _chain_draft(desk: Workbench, root: Entity, chain: Sequence[Fact], text: str) -> Draft | None:
    world = desk.world
    if not is_clean(world, text, chain[:1], chain[1:]) or not needs_all(world, chain, text):
        return None
    gold = tuple(
        Gold(f.passage_id, "static" if i == 0 else "dynamic", i + 1) for i, f in enumerate(chain)
    )
    return Draft(
        (text,),
        answers_of(world, chain[-1]),
        len(chain),
        gold,
        tuple(desk.step(f) for f in chain),
        (root,),
        tuple(chain),
        answer_type(chain[-1].relation),
        held_out=is_held_out([f.relation for f in chain]),
    )


def chain_of(hops: int) -> Callable[[Workbench, Entity], Draft | None]:
    """single_hop (one hop) and compositional (two to four) questions."""

    def make(desk: Workbench, root: Entity) -> Draft | None:
        chain = walk(desk.world, root, desk.draw, hops=hops)
        if chain is None:
            return None
        mention = desk.asker.mention(root, desk.draw)
        text = desk.asker.nested([f.relation for f in chain], mention, desk.draw)
        return _chain_draft(desk, root, chain, text)

    return make


def inference(desk: Workbench, root: Entity) -> Draft | None:
    """A relation that no passage states: "paternal grandfather" by father, father."""
    if root.kind != "person":
        return None
    table = desk.asker.table["inference"]
    name = pick(list(table), desk.draw)
    chain = walk(desk.world, root, desk.draw, relations=table[name]["via"])
    if chain is None:
        return None
    text = desk.asker.form("inference", name, desk.draw, x=root.title)
    return _chain_draft(desk, root, chain, text)


def paraphrase(desk: Workbench, root: Entity) -> Draft | None:
    """One question of one or two hops in four wordings."""
    chain = walk(desk.world, root, desk.draw, hops=1 if desk.draw() < 0.4 else 2)
    if chain is None:
        return None
    ways = list(desk.asker.wordings_of([f.relation for f in chain], root))
    texts = []
    while len(texts) < 4:
        texts.append(ways.pop(int(desk.draw() * len(ways))))
    drafts = [_chain_draft(desk, root, chain, text) for text in texts]
    if None in drafts:
        return None
    return replace(drafts[0], texts=tuple(texts))


def ambiguous(desk: Workbench, root: Entity) -> Draft | None:
    """A name that two entities bear: one reading each, and all answers count."""
    bearers, world = desk.world.by_name[root.name], desk.world
    if len(bearers) < 2:
        return None
    tables = [world.facts_of[e.id] for e in bearers]
    shared = [
        r
        for r in tables[0]
        if all(r in t for t in tables) and len({t[r].value for t in tables}) == len(tables)
    ]
    if not shared:
        return None
    relation = pick(shared, desk.draw)
    facts = tuple(t[relation] for t in tables)
    text = desk.asker.ask(relation, root.name, desk.draw)
    readings, answers = [], []
    for entity, fact in zip(bearers, facts, strict=True):
        # "Name (1984 film)" is read as "the 1984 film Name".
        which = entity.title[len(entity.name) + 2 : -1]
        reading = desk.asker.ask(relation, f"the {which} {entity.name}", desk.draw)
        if any(answer in reading for answer in answers_of(world, fact)):
            return None
        readings.append(Interpretation(reading, answers_of(world, fact)))
        answers += answers_of(world, fact)
    gold = tuple(Gold(f.passage_id, "static", 1) for f in facts)
    return Draft(
        (text,),
        tuple(dict.fromkeys(answers)),
        1,
        gold,
        tuple(desk.step(f) for f in facts),
        tuple(bearers),
        facts,
        "list",
        interpretations=tuple(readings),
    )
