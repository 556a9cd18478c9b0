"""What a reader knows by heart, beside the commonest value, on records worked by hand."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from rag_repro import data
from rag_repro.data import synthworld
from rag_repro.data.synthworld.world import Fact
from rag_repro.lm import hub
from rag_repro.report import closed_book
from rag_repro.report.picture import Note
from rag_repro.study.papers import Exhibit, ExhibitMethod, Gate, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results
from rag_repro.training import lessons

ROWS = {"closed": ExhibitMethod("no passage", "no_retrieval", None, {"prompt": "drrag"})}
TIERS = ["public", "testbed"]


def paper(*worlds, reader="testbed-reader"):
    grid = Grid(tier="testbed", datasets=worlds, methods=("closed",), reader=reader)
    exhibit = Exhibit("x.readers", "t", "p", ("acc",), ROWS, (grid,), own=True)
    gate = Gate("readers", {"method": "gold"}, {"method": "closed"})
    return SimpleNamespace(gate=gate, exhibits={"readers": exhibit})


def fill(folder, made, world, right):
    """Records of the first 60 questions; right: question -> whether the reader is."""
    [cell] = [c for c in made.exhibits["readers"].cells() if c.keys["dataset"] == world]
    asked = data.load(world, split="test").questions[:60]
    with open_record(folder, cell.condition, {}) as record:
        for question in asked:
            scores = {"acc": float(right(question))}
            record.append({"id": question.id, "cluster": question.id, "hits": [], "scores": scores})
    return Results(folder), asked


def fact(subject, relation, value, taught=True):
    return Fact(subject, relation, None, value, None, "p", taught)


def test_the_commonest_value_is_counted_on_other_facts():
    asked = {fact("a", "genre", "opera"), fact("b", "genre", "opera")}
    other = [fact("c", "genre", "waltz"), fact("d", "genre", "waltz"), fact("e", "genre", "opera")]
    even = [fact("f", "land", "Vel"), fact("g", "land", "Arn")]
    world = SimpleNamespace(facts=[*asked, *other, *even])
    assert closed_book.commonest(world, asked) == {"genre": "waltz", "land": "Arn"}
    assert closed_book.commonest(world, set())["genre"] == "opera"


def test_only_questions_for_a_relations_value_count():
    here = synthworld.world("B")
    asked = data.load("world-B", split="test").questions[:300]
    told = {q.meta["maker"]: closed_book.asked_fact(here, q) for q in asked}
    valued = {maker for maker, one in told.items() if one is not None}
    assert valued == {
        *("single_hop", "compositional2", "compositional3", "compositional4"),
        *("inference", "paraphrase"),
    }
    assert len(told) == len(synthworld.KINDS)


def test_groups_and_differences_are_those_of_the_questions(tmp_path, monkeypatch):
    made, here = paper("world-B"), synthworld.world("B")
    asked = data.load("world-B", split="test").questions[:60]
    values = {q.id: closed_book.asked_fact(here, q) for q in asked}
    valued = [q for q in asked if values[q.id]]
    facts = {q.id: closed_book._facts(here, q) for q in valued}
    several = next(q for q in valued if len(facts[q.id]) > 1)
    stated = {*facts[valued[0].id], facts[several.id][0]}
    monkeypatch.setattr(lessons, "stated_facts", lambda parts, world: frozenset(stated))
    # The commonest value is right for the answer of one question alone.
    said = {values[valued[0].id].relation: values[valued[0].id].value}
    monkeypatch.setattr(closed_book, "commonest", lambda world, without: said)
    results, _ = fill(
        tmp_path, made, "world-B", lambda q: stated.issuperset(facts.get(q.id, ("x",)))
    )
    shown = closed_book.table(made, results, "testbed-reader", TIERS)
    rows = {row[1]: row for row in shown.body}
    held = Counter(
        "all" if stated.issuperset(f) else "some" if stated.intersection(f) else "none"
        for f in facts.values()
    )
    assert {group.split()[0]: row[5] for group, row in rows.items()} == held
    [cell] = made.exhibits["readers"].cells()
    by = {one.group: one for one in closed_book.of_cell(cell, results, "testbed-reader")}
    taught = by["all taught"]
    assert taught.reader.estimate == 100
    right = sum(
        values[q.id].value == said.get(values[q.id].relation)
        for q in valued
        if stated.issuperset(facts[q.id])
    )
    assert right >= 1
    assert taught.always.estimate == pytest.approx(100 * right / taught.always.n)
    assert taught.gain.estimate == pytest.approx(100 - taught.always.estimate)
    assert by["none taught"].reader.estimate == 0
    told = [
        repr(closed_book.against_aim(made, results, "testbed-reader", TIERS, aim))
        for aim in (100.0, 100.1)
    ]
    assert "world-B reaches it with 100.0 [" in told[0]
    assert f"], n {held['all']}." in told[0]
    assert "world-B misses it with 100.0" in told[1]
    assert by["none taught"].gain.estimate == pytest.approx(-by["none taught"].always.estimate)


def test_a_world_without_records_says_what_makes_them(tmp_path):
    made = paper("world-B", "world-C", "world-B@1000")
    none = closed_book.table(made, Results(tmp_path), "testbed-reader", TIERS)
    assert isinstance(none, Note)
    assert "rag-repro run x.readers --tier testbed" in repr(none)
    silent = closed_book.against_aim(made, Results(tmp_path), "testbed-reader", TIERS, 60)
    assert repr(silent).startswith("Whether testbed-reader reaches 60 % is not told")
    results, _ = fill(tmp_path, made, "world-B", lambda q: False)
    shown = closed_book.table(made, results, "testbed-reader", TIERS)
    assert {row[0] for row in shown.body} == {"world-B", "world-C"}
    [missing] = [row for row in shown.body if row[0] == "world-C"]
    assert "rag-repro run x.readers --tier testbed" in str(missing[1])


def test_what_was_taught_is_told_by_the_card_else_the_recipe(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    assert closed_book.lessons_of("smollm2-135m") == ()
    assert closed_book.lessons_of("testbed-reader")[0]["world"] == "B"
    folder = tmp_path / "testbed-reader"
    folder.mkdir()
    (folder / hub.ADAPTER).write_bytes(b"")
    parts = [{"kind": "statements", "world": "C", "questions": 5, "exposures": 1}]
    card = {"base": {"name": "b", "sha256": "0"}, "recipe": {"lessons": parts}}
    (folder / "card.json").write_text(json.dumps(card))
    assert closed_book.lessons_of("testbed-reader") == parts


def test_a_reader_that_was_taught_nothing_has_one_group(tmp_path):
    made = paper("world-B", reader="smollm2-135m")
    results, _ = fill(tmp_path, made, "world-B", lambda q: False)
    shown = closed_book.table(made, results, "smollm2-135m", TIERS)
    assert [row[1] for row in shown.body] == ["none taught"]
