"""What each query rule finds at the same moments, out of a record's line.

A line's `queries` is what `study.line_fields` keeps of a check of query rules: of each moment
[words that QFS takes, of how many, in which sentence, then each rule's gold passages].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from .metric import Line, Metric, described, percent

RULES = {
    "qfs": "QFS",
    "question": "the question",
    "last_sentence": "the last sentence",
    "last_tokens": "the last tokens",
    "sure_sentence": "the sentence without its doubtful tokens, words glued",
    "sentence": "the whole sentence",
    "full_context": "the full context",
    "random_words": "as many words as QFS takes, by chance",
    "first_words": "as many words as QFS takes, the first",
    "qfs_few": "QFS of few words",
    "random_few": "as few words by chance",
    "first_few": "as few words, the first",
    "masked_sentence": "FLARE's query",
    "qfs_said": "QFS without the prompt's words",
}
"""Rules in the order of `methods.dragin.draft_checks.RULES`, in words."""
LATER = ("qfs", "masked_sentence", "full_context", "last_sentence", "last_tokens", "question")
"""Rules of which is told what they find behind the first sentence."""
NEXT = ("qfs", "masked_sentence", "full_context", "last_sentence", "question", "random_words")
"""Rules of which is told, too, whether they find what the sentence is about to say."""
TAKEN, AMONG, SENTENCE, FIRST_RULE = 0, 1, 2, 3
"""Places in a moment's entry."""


def found_by(place: int, line: Line) -> float | None:
    """Share of the gold passages that one search finds, mean of the moments.

    None without a moment, or where the question names no gold.
    """
    moments, gold = line.get("queries"), line.get("gold")
    if not moments or not gold:
        return None
    return sum(len(moment[place]) for moment in moments) / len(moments) / len(gold)


def found_later(place: int, line: Line) -> float | None:
    """As `found_by`, of the moments behind the first sentence.

    In the first there is no last sentence, and the rule takes the question in its place.
    """
    later = [moment for moment in line.get("queries", ()) if moment[SENTENCE] > 1]
    return found_by(place, {**line, "queries": later})


def finds_next(place: int, line: Line) -> float | None:
    """Share of the moments behind the first sentence whose search finds their own step's passage.

    A taught answer says a step a sentence, so that the second sentence needs the gold passage of
    hop 2. In the first there is no last sentence, and that rule asks the question. None where
    nobody knows the order of the gold passages, or no moment has a step.
    """
    moments, gold = line.get("queries"), line.get("gold") or ()
    step = {hop: number for number, (_, hop, _) in enumerate(gold) if hop is not None}
    if not moments or len(step) < len(gold):
        return None
    asked = [m for m in moments if m[SENTENCE] > 1 and m[SENTENCE] in step]
    if not asked:
        return None
    return sum(step[m[SENTENCE]] in m[place] for m in asked) / len(asked)


def finds_needed(place: int, line: Line) -> float | None:
    """As `finds_next` where gold passages have an order at all, else as `found_later`."""
    ordered = any(hop is not None for _, hop, _ in line.get("gold") or ())
    return finds_next(place, line) if ordered else found_later(place, line)


def share_taken(line: Line) -> float | None:
    """Share of the words that it could take which QFS takes, mean of the moments."""
    moments = line.get("queries")
    if not moments:
        return None
    return sum(m[TAKEN] / max(1, m[AMONG]) for m in moments) / len(moments)


def _by_rule(
    name: str, said: str, rules: Iterable[str], value: Callable, meaning: str
) -> Iterator[Metric]:
    """A metric of each of these rules, whose `value` is by its place in a moment's entry."""
    places = list(RULES)
    for rule in rules:
        of_rule = partial(value, FIRST_RULE + places.index(rule))
        words = RULES[rule]
        yield percent(f"{name}_{rule}", f"{said} {words}", "line", of_rule, f"{meaning}: {words}")


TABLE = (
    *_by_rule(
        "finds",
        "Found by",
        RULES,
        found_by,
        "share of the gold passages that a search finds, at the same moments",
    ),
    *_by_rule(
        "finds_later",
        "Found later by",
        LATER,
        found_later,
        "share of the gold passages that a search finds, at moments behind the first sentence",
    ),
    *_by_rule(
        "finds_next",
        "Next by",
        NEXT,
        finds_next,
        "share of moments behind the first sentence at which a search finds the gold passage "
        "that the sentence in hand needs",
    ),
    *_by_rule(
        "finds_needed",
        "Needed by",
        LATER,
        finds_needed,
        "at moments behind the first sentence: share at which a search finds the gold passage "
        "that the sentence in hand needs, where that is known; else share of all gold passages "
        "that it finds",
    ),
    described("words_taken", share_taken),
)
