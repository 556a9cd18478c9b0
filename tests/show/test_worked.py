"""What is computed of a paper's own tables, against sums done by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from rag_repro.show import arithmetic
from rag_repro.study import papers
from rag_repro.study.papers import StudyError
from rag_repro.study.printed import LEVEL, NOT_ALWAYS, Compared
from rag_repro.study.yaml_files import build

DRAGIN = papers.load("dragin")
WIKI = {"dataset": "2wikimultihopqa", "metric": "em"}


def said(**given):
    claim = replace(DRAGIN.claim("dragin.c01"), printed=(Compared(**given),))
    return arithmetic.workings(DRAGIN, claim)[0]


def test_every_pair_of_a_place_is_a_difference():
    # Table 2, EM on 2WikiMultihopQA: DRAGIN 30.4, 22.0, 25.2; SR-RAG 24.5, 16.9, 17.0.
    compared = Compared(
        exhibit="table2", where=WIKI, more={"method": "dragin"}, less={"method": "sr"}
    )
    made = {dict(place)["reader"]: value for place, value in compared.values(DRAGIN).items()}
    assert made == {
        "llama2-13b-chat": Decimal("5.9"),
        "llama2-7b-chat": Decimal("5.1"),
        "vicuna-13b-v1.5": Decimal("8.2"),
    }
    assert compared.holds(compared.values(DRAGIN))
    turned = replace(compared, more=compared.less, less=compared.more)
    assert set(turned.values(DRAGIN).values()) == {-value for value in made.values()}
    assert not turned.holds(turned.values(DRAGIN))
    assert replace(turned, says=NOT_ALWAYS).holds(turned.values(DRAGIN))


def test_of_several_below_the_highest_counts_and_of_several_above_each():
    # With Llama2-13b: SR-RAG 24.5, FL-RAG 21.7, FS-RAG 27.0; DRAGIN 30.4.
    place = {"where": {**WIKI, "reader": "llama2-13b-chat"}, "exhibit": "table2"}
    best = Compared(**place, more={"method": "dragin"}, less={"method": ["fl", "sr", "fs"]})
    assert list(best.values(DRAGIN).values()) == [Decimal("3.4")]
    each = Compared(**place, more={"method": ["fl", "sr", "fs"]}, less={"method": "dragin"})
    assert len(each.values(DRAGIN)) == 3
    assert max(each.values(DRAGIN).values()) == Decimal("-3.4")


def test_sentences_name_table_sides_and_ends():
    told = said(exhibit="table2", where=WIKI, more={"method": "dragin"}, less={"method": "sr"})
    assert told == (
        "Table 2, 2WikiMultihopQA, EM, DRAGIN less SR-RAG: above in 3 of 3, mean +6.40, "
        "from +5.10 (llama2-7b-chat) to +8.20 (vicuna-13b-v1.5)."
    )
    one = {**WIKI, "reader": "llama2-13b-chat"}
    told = said(exhibit="table2", where=one, more={"method": "dragin"}, says=LEVEL)
    assert told.endswith("DRAGIN: 30.40.")


def test_what_is_not_printed_or_not_meant_is_refused():
    with pytest.raises(StudyError, match=r"dragin\.table2 prints nothing of"):
        Compared(exhibit="table2", more={"method": "sgpt"}, less={"method": "sr"}).values(DRAGIN)
    told = {"exhibit": "table2", "more": {}, "less": {}, "says": "abov"}
    with pytest.raises(StudyError, match="'says' cannot be 'abov', did you mean 'above'"):
        build(Compared, told, "here")
    with pytest.raises(StudyError, match="without `less`, and only then"):
        Compared(exhibit="table2", more={})


@pytest.mark.parametrize("name", ["drrag", "erm4", "dragin", "r2ag"])
def test_what_the_files_say_of_support_is_what_is_computed(name):
    """Of a "yes" the first comparison holds; of a "no" one fails."""
    paper = papers.load(name)
    tried = [claim for claim in paper.claims if claim.printed]
    assert tried
    for claim in tried:
        held = [compared.holds(compared.values(paper)) for compared in claim.printed]
        if claim.support == "yes":
            assert held[0], claim.id
        elif claim.support == "no":
            assert not all(held), claim.id
