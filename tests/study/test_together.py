"""The four papers combined: each alone is what its own row is, in settings and by its record."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from rag_repro.methods.composed import COMMON, PARTS
from rag_repro.study import again, papers, records, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.services import Workshop

PAPER = papers.load("together")
RECORDS = Path(__file__).parents[2] / "results" / "records"
SAME = ("hits", "prediction", "error", "cost")
# Of tokens that a reader keeps from prompt to prompt there are as many as stand beside.
BATCHED = ("prefilled_tokens",)


def rows(exhibit):
    cells = PAPER.exhibit(exhibit).cells("testbed")
    return {cell.keys["method"]: cell.condition for cell in cells}


HEAD, COMPOSED = rows("head"), rows("composition")
# DRAGIN is combined with an earlier threshold than the one that chapter 50 has.
ALONE = {**HEAD, "dragin": HEAD["dragin_combined"]}


@pytest.mark.parametrize("name", [name for name in COMPOSED if name != "none"])
def test_each_part_is_set_as_its_own_row_is(name):
    made = COMPOSED[name]
    parts = made.configured.parts
    assert set(parts) == {part for part in PARTS if part in name.split("_")}
    for part, settings in parts.items():
        own = ALONE[part]
        # Where the former takes part the prompt has places for its embeddings, for all of them.
        assert replace(settings, prompt=own.configured.prompt) == own.configured
        assert (made.dataset, made.retriever) == (own.dataset, own.retriever)
        assert (made.reader, made.seed) == ((own if part == "r2ag" else made).reader, own.seed)


def test_dragin_and_flare_are_set_as_in_their_registered_tests():
    dragin = papers.load("dragin")
    places = {"world-B": dragin.ground, "hotpotqa": dragin.public["hotpotqa"]}
    asked = {
        (c.keys["dataset"], c.keys["method"]): c.condition.configured
        for c in PAPER.exhibit("head").cells()
    }
    for dataset, ground in places.items():
        for method in ("dragin", "flare"):
            own = ground.settings[method]
            assert own.items() <= asdict(asked[dataset, method]).items()
    for cell in dragin.exhibit("table2").cells():
        place, own = (cell.keys["dataset"], cell.keys["method"]), cell.condition.configured
        if place in asked and cell.tier != "paper" and place[1] in ("dragin", "flare"):
            here = asked[place]
            assert (here.query, here.top_n, here.first) == (own.query, own.top_n, own.first)


def test_dragin_and_flare_were_timed_as_chapter_50_says():
    timed = rows("time")
    assert timed["dragin"].configured.threshold == 0.1
    assert (timed["flare"].configured.doubt, timed["flare"].configured.query) == (
        *(0.3, "sure_sentence"),
    )


def test_with_none_of_them_it_is_one_search():
    assert COMPOSED["none"].hash == HEAD["single"].hash


@pytest.fixture(scope="module")
def workshop():
    return Workshop()


@pytest.mark.parametrize("part", PARTS)
def test_each_alone_answers_as_its_own_record(workshop, part):
    own = HEAD[part]
    settings = asdict(own.configured)
    common = {name: settings.pop(name) for name in COMMON}
    alone = Condition(
        own.dataset,
        "composed",
        {**common, part: settings},
        retriever=own.retriever,
        reader=own.reader,
        seed=own.seed,
    )
    held = records.load(RECORDS, own).by_question
    dataset = workshop.dataset(own.dataset, own.split)
    # One of a chain, for which a dynamic reader searches more than once.
    asked = dataset.only([next(name for name, line in held.items() if line["hops"] == 2)])
    answers = again.answered([(alone, question) for question in asked.questions], workshop)
    for question, answer in zip(asked.questions, answers, strict=True):
        now, then = runner.line_of(question, answer, dataset, alone), held[question.id]
        for line in (now, then):
            line["cost"] = {k: v for k, v in line["cost"].items() if k not in BATCHED}
        assert {key: now.get(key) for key in SAME} == {key: then.get(key) for key in SAME}
