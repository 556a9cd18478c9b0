"""What each query rule finds at the same moments, out of a record's line.

A line's `queries` is what `study.queries` keeps of a check of query rules: of each moment
[words that QFS takes, of how many, then each rule's gold passages].
"""

from __future__ import annotations

from functools import partial

from .metric import Line, percent

RULES = {
    "qfs": "QFS",
    "question": "the question",
    "last_sentence": "the last sentence",
    "last_tokens": "the last tokens",
    "sure_sentence": "FLARE's query",
    "sentence": "the whole sentence",
    "full_context": "the full context",
    "random_words": "as many words as QFS takes, by chance",
    "first_words": "as many words as QFS takes, the first",
    "qfs_few": "QFS of few words",
    "random_few": "as few words by chance",
    "first_few": "as few words, the first",
}
"""Rules in the order of `methods.dragin.query_check.RULES`, in words."""
TAKEN, AMONG, FIRST_RULE = 0, 1, 2
"""Places in a moment's entry."""


def found_by(place: int, line: Line) -> float | None:
    """Share of the gold passages that one search finds, mean of the moments.

    None without a moment, or where the question names no gold.
    """
    moments, gold = line.get("queries"), line.get("gold")
    if not moments or not gold:
        return None
    return sum(len(moment[place]) for moment in moments) / len(moments) / len(gold)


def share_taken(line: Line) -> float | None:
    """Share of the words that it could take which QFS takes, mean of the moments."""
    moments = line.get("queries")
    if not moments:
        return None
    return sum(m[TAKEN] / max(1, m[AMONG]) for m in moments) / len(moments)


TABLE = (
    *(
        percent(
            f"finds_{rule}",
            f"Found by {words}",
            "line",
            partial(found_by, place),
            f"share of the gold passages that a search finds, at the same moments: {words}",
        )
        for place, (rule, words) in enumerate(RULES.items(), start=FIRST_RULE)
    ),
    percent(
        "words_taken",
        "Words taken",
        "line",
        share_taken,
        "share of question and text up to the alarm that QFS takes for its query",
        higher=None,
    ),
)
