"""What tests of claims ask of any paper: its exhibits, and which contrasts can be judged."""

from __future__ import annotations

from rag_repro.study.judge import pair_cells

TIERS = ("testbed", "public", "paper")


class Known(dict):
    """How far trainings lie apart, of every metric: nothing. For records of one training each."""

    def __contains__(self, asked):
        return True

    def __missing__(self, asked):
        return 0.0


def exhibit_of(paper, claim, contrast):
    return paper.exhibit(claim.exhibit_of(contrast).split(".", 1)[1])


def sides_of(contrast):
    return (contrast.more, contrast.less or {}, *(contrast.minus or {}).values())


def waits(exhibit, contrast):
    rows = (exhibit.methods.get(side.get("method", "")) for side in sides_of(contrast))
    return any(row.waits for row in rows if row)


def decided(paper):
    """Claim, number of the contrast, tier: wherever cells are there to be compared."""
    for claim in paper.claims:
        for number, contrast in enumerate(claim.contrasts):
            for tier in TIERS:
                exhibit = exhibit_of(paper, claim, contrast)
                if not waits(exhibit, contrast) and any(pair_cells(exhibit, contrast, tier)):
                    yield claim.id, number, tier
