"""All verdicts at a glance: a bar a paper and tier, in claims; those without records apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rag_repro.evaluation import verdicts
from rag_repro.show.figures import legend_of_labels, plots
from rag_repro.show.picture import SLIM, Picture
from rag_repro.study.conditions import TIERS

# Group -> its verdicts and its look: place in the palette, hatch. Hatches tell groups apart
# without colours; what has no records has neither.
GROUPS: Mapping[str, tuple[tuple[str, ...], int | None, str]] = {
    "holds": ((verdicts.REPRODUCED, verdicts.HOLDS), 0, ""),
    "holds in direction only": ((verdicts.DIRECTION_ONLY,), 8, "//"),
    "inconclusive": ((verdicts.INCONCLUSIVE,), 7, ".."),
    "undecidable here": ((verdicts.UNDECIDABLE,), 6, "oo"),
    "does not hold": ((verdicts.NOT_REPRODUCED, verdicts.FAILS), 1, "\\\\"),
    "reader too weak": ((verdicts.READER_TOO_WEAK,), 5, "xx"),
    "not run": ((verdicts.NOT_RUN,), None, ""),
    "not judged": ((verdicts.NOT_JUDGED,), None, "--"),
    "mixed devices": ((verdicts.MIXED,), None, "++"),
}
_OF = {word: name for name, (words, *_) in GROUPS.items() for word in words}


def group(word: str) -> str:
    """Which of GROUPS a verdict's word belongs to."""
    return _OF[word]


def counts(claims: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Counter]:
    """(paper, tier) -> how many claims are in which group; claims: rows of the ledger."""
    held: dict[tuple[str, str], Counter] = {}
    for row in claims:
        held.setdefault((row["paper"], row["tier"]), Counter())[group(row["verdict"])] += 1
    return held


def figure(claims: Sequence[Mapping[str, Any]], name: str = "fig-verdicts") -> Picture:
    """The figure of these rows of the ledger."""
    plt, colours = plots()
    held = counts(claims)
    papers = list(dict.fromkeys(paper for paper, _ in held))
    drawn, axis = plt.subplots(figsize=(SLIM, 1.2 + 0.42 * len(held)), layout="constrained")
    places, labels = [], []
    for i, (paper, tier) in enumerate((p, t) for p in papers for t in TIERS if (p, t) in held):
        # Papers stand apart by half a bar.
        places.append(-(i + 0.6 * papers.index(paper)))
        labels.append(f"{paper}, {tier}")
        left = 0
        for said, (_, colour, hatch) in GROUPS.items():
            number = held[paper, tier][said]
            look = {"facecolor": "white", "edgecolor": "0.6", "ls": ":"}
            if colour is not None:
                look = {"color": colours[colour % len(colours)], "edgecolor": "white"}
            label = said if said not in axis.get_legend_handles_labels()[1] else None
            axis.barh(places[-1], number, left=left, hatch=hatch, height=0.8, label=label, **look)
            if number:
                # As narrow as the bar: else the numbers of two neighbours read as one.
                pad = 1.0 if number > 2 else 0.0
                ground = {"facecolor": "white", "edgecolor": "none", "pad": pad}
                middle = left + number / 2
                axis.text(middle, places[-1], number, ha="center", va="center", size=8, bbox=ground)
            left += number
    axis.set_yticks(places, labels)
    axis.set_xlabel("claims")
    axis.grid(axis="y", visible=False)
    legend_of_labels(drawn)
    return Picture(drawn, f"Claims by verdict. {spoken(held)}", CAPTION, name)


CAPTION = (
    "Every claim of the papers by its verdict at each tier. A dotted outline says nothing for or "
    "against: not run, or of a kind that no record could judge at this tier"
)


def spoken(held: Mapping[tuple[str, str], Counter]) -> str:
    """The figure in words."""
    return " ".join(
        f"{paper}, {tier}: "
        + ", ".join(f"{n} {said}" for said in GROUPS if (n := found[said]))
        + "."
        for (paper, tier), found in held.items()
    )
