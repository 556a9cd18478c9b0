"""The kinds of questions: about one named entity (chains of facts, inference, paraphrases,
namesakes), and about two (comparisons, differences, two things at once)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_repro.data.synthworld.asking import (
    Draft,
    Workbench,
    answers_of,
    is_clean,
    is_held_out,
    may_ask,
    needs_all,
    pick,
    walk,
)
from rag_repro.data.synthworld.wordings import answer_type, options
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


# --------------------------------------------------------------- two named entities


def _pair(
    desk: Workbench,
    text: str,
    roots: Sequence[Entity],
    facts: Sequence[Fact],
    answers: tuple[str, ...],
    answer_type: str,
    **more: Any,
) -> Draft | None:
    """A question about two named entities; facts beyond the second are a hop further."""
    x, y = roots
    if x.name in y.name or y.name in x.name or not is_clean(desk.world, text, facts[:2], facts[2:]):
        return None
    gold = tuple(
        Gold(f.passage_id, "static" if i < 2 else "dynamic", 1 if i < 2 else 2)
        for i, f in enumerate(facts)
    )
    steps = tuple(desk.step(f) for f in facts)
    hops = len(facts)
    return Draft(
        (text,), answers, hops, gold, steps, tuple(roots), tuple(facts), answer_type, **more
    )


def _both(desk: Workbench, root: Entity, table: Mapping) -> tuple[Entity, Fact, Fact] | None:
    """A partner and a relation of the table that both have."""
    other = desk.partner(root)
    ours, theirs = desk.world.facts_of[root.id], desk.world.facts_of[other.id]
    shared = [r for r in ours if r in theirs and r in table]
    if other is root or not shared:
        return None
    relation = pick(shared, desk.draw)
    return other, ours[relation], theirs[relation]


def comparison(desk: Workbench, root: Entity) -> Draft | None:
    """Which of two is older, newer, larger …; both are named."""
    found = _both(desk, root, desk.asker.table["compare"])
    if found is None or found[1].key == found[2].key:
        return None
    other, a, b = found
    way = "up" if desk.draw() < 0.5 else "down"
    text = desk.asker.comparison(a.relation, way, desk.draw, x=root.title, y=other.title)
    winner = root if (a.key > b.key) == (way == "up") else other
    return _pair(desk, text, (root, other), (a, b), winner.names, "choice")


def yes_no(desk: Workbench, root: Entity) -> Draft | None:
    """Do two named entities share the object of a relation? Yes half of the time."""
    table, world = desk.asker.table["same"], desk.world
    ours = [r for r in world.facts_of[root.id] if r in table]
    if not ours:
        return None
    a = world.facts_of[root.id][pick(ours, desk.draw)]
    wanted = desk.lot < 0.5
    partners = [
        e
        for e in desk.block[root.kind]
        if e is not root
        and a.relation in world.facts_of[e.id]
        and (world.facts_of[e.id][a.relation].value == a.value) == wanted
    ]
    if not partners:
        return None
    other = pick(partners, desk.draw)
    b = world.facts_of[other.id][a.relation]
    text = desk.asker.form("same", a.relation, desk.draw, x=root.title, y=other.title)
    return _pair(desk, text, (root, other), (a, b), ("yes" if wanted else "no",), "yes_no")


def numeric_difference(desk: Workbench, root: Entity) -> Draft | None:
    """How far apart two named entities are, in years or in numbers."""
    found = _both(desk, root, desk.asker.table["differ"])
    if found is None:
        return None
    other, a, b = found
    scale = 10000 if answer_type(a.relation) == "date" else 1
    gap = abs(a.key // scale - b.key // scale)
    if gap == 0:
        return None
    text = desk.asker.form("differ", a.relation, desk.draw, x=root.title, y=other.title)
    answers = tuple(dict.fromkeys((f"{gap:,}", str(gap))))
    return _pair(desk, text, (root, other), (a, b), answers, "number")


def bridge_comparison(desk: Workbench, root: Entity) -> Draft | None:
    """Which of two named works has the older director …: four passages."""
    world, asker = desk.world, desk.asker
    found = _both(desk, root, asker.table["roles"])
    if found is None or found[1].object == found[2].object:
        return None
    other, a, b = found
    ours, theirs = world.facts_of[a.object], world.facts_of[b.object]
    fits = [
        r
        for r in ours
        if r in theirs
        and "of_up" in asker.table["compare"].get(r, ())
        and ours[r].key != theirs[r].key
        and may_ask(world, (a.relation, r))
    ]
    if not fits:
        return None
    relation = pick(fits, desk.draw)
    c, d = ours[relation], theirs[relation]
    way = "up" if desk.draw() < 0.5 else "down"
    role = asker.form("roles", a.relation, desk.draw)
    text = asker.form(
        "bridges",
        None,
        desk.draw,
        k=root.kind,
        r=role,
        c=asker.comparison(relation, "of_" + way, desk.draw),
        x=root.title,
        y=other.title,
    )
    winner = root if (c.key > d.key) == (way == "up") else other
    held_out = is_held_out((a.relation, relation))
    facts = (a, b, c, d)
    return _pair(desk, text, (root, other), facts, winner.names, "choice", held_out=held_out)


def bridge_free(desk: Workbench, root: Entity) -> Draft | None:
    """Two independent facts asked together: two passages, neither names the other.

    The control of claims about links between passages: what a first passage
    says cannot help to find the second.
    """
    world = desk.world
    other = pick(desk.block[pick(list(desk.block), desk.draw)], desk.draw)
    one = walk(world, root, desk.draw, hops=1)
    two = walk(world, other, desk.draw, hops=1)
    if other is root or one is None or two is None:
        return None
    texts = [world.passage[e.passage_id].text for e in (root, other)]
    if root.name in texts[1] or other.name in texts[0]:
        return None
    parts = [answers_of(world, chain[0]) for chain in (one, two)]
    a, b = parts[0][0], parts[1][0]
    mentions = [desk.asker.mention(e, desk.draw) for e in (root, other)]
    asked = [
        desk.asker.ask(chain[0].relation, mention, desk.draw)
        for chain, mention in zip((one, two), mentions, strict=True)
    ]
    text = desk.asker.form("together", None, desk.draw, p=asked[0], q=asked[1])
    if a in text or b in text or a == b or a in texts[1] or b in texts[0]:
        return None
    forms = options(desk.asker.table["parts"])
    answers = tuple(form.format(a=a, b=b) for form in forms)
    extra = {"parts": parts}
    return _pair(desk, text, (root, other), (one[0], two[0]), answers, "list", extra=extra)
