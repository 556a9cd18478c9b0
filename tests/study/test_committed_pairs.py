"""Records of this checkout: two cells that a claim compares share as many questions as they can.

A record's first n lines are the first n questions where all of these were asked. One shard of it
alone has every other question, and beside a record of the first n only half of them count.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_repro.study import papers
from rag_repro.study.judge import pair_cells
from rag_repro.study.scores import Results

RESULTS = Results(Path(__file__).parents[2] / "results" / "records")


def pairs(paper):
    for claim in paper.claims:
        for contrast in claim.contrasts:
            exhibit = paper.exhibits[claim.exhibit_of(contrast).split(".", 1)[1]]
            for tier in ("testbed", "public"):
                for more, less in pair_cells(exhibit, contrast, tier):
                    if less is not None and not (more.timed or less.timed):
                        yield claim.id, more, less


@pytest.mark.parametrize("name", ["drrag", "erm4", "dragin", "r2ag", "together"])
def test_no_pair_loses_questions_to_a_shard(name):
    for claim, more, less in pairs(papers.load(name)):
        sides = [RESULTS.lines(cell) for cell in (more, less)]
        if None not in sides:
            one, other = ({line["id"] for line in side} for side in sides)
            lost = min(len(one), len(other)) - len(one & other)
            assert not lost, f"{claim}: {more.keys} and {less.keys} lack {lost} questions together"
