"""What the claims of each paper that is judged contrast by contrast have to keep to."""

from __future__ import annotations

import pytest

from rag_repro.study import papers
from tests.study.claims import decided, exhibit_of, waits


@pytest.fixture(scope="module", params=["erm4", "r2ag"])
def paper(request):
    return papers.load(request.param)


def test_every_contrast_has_cells_or_waits_with_a_reason(paper):
    there = {(claim, number) for claim, number, _ in decided(paper)}
    for claim in paper.claims:
        for number, contrast in enumerate(claim.contrasts):
            exhibit = exhibit_of(paper, claim, contrast)
            assert (claim.id, number) in there or waits(exhibit, contrast), claim.id


def test_every_claim_with_contrasts_has_a_primary_one_and_labels_of_its_own(paper):
    for claim in paper.claims:
        if claim.contrasts:
            assert any(c.role == "primary" for c in claim.contrasts), claim.id
            labels = [c.label for c in claim.contrasts]
            assert all(labels), claim.id
            assert len(set(labels)) == len(labels), claim.id


@pytest.mark.parametrize("name", papers.names())
def test_a_control_is_judged_by_the_rule_of_its_claim(name):
    """A claim that must hold everywhere has controls that hold everywhere, not on average."""
    for claim in papers.load(name).claims:
        rules = {c.rule for c in claim.contrasts if c.role == "primary"}
        assert {c.rule for c in claim.contrasts if c.control} <= rules, claim.id
