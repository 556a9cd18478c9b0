"""How dynamic retrieval went, out of a record's line; `study.line_fields` says what is kept.

Answers of other methods have none of these fields, and none of these metrics. `dynamic`: alarms,
and what each search found. Of checks that methods of `methods.dragin` made:

- `queries`: of each moment [words that QFS takes, of how many, in which sentence, then each
  rule's gold passages].
- `timing`: of each hop at which rules were checked, [1 where the reader's own next answer is
  wrong, then its signals]: entropy, 1 - p, attention, RIND's score, its parts, and the released
  code's score. What needs the hops of all questions at once is in `analysis.hop_timing`.
- `influence`: of each pair of words [a_max of the one with more, a_max of the other, how far the
  same tokens behind both moved without the one, without the other, in nats a token, 1 where the
  one with more stands first].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from rag_repro.evaluation.metric import Line, Metric, catalogue, described
from rag_repro.evaluation.pair_metrics import auc


def counted(name: str) -> Callable[[Line], float | None]:
    """A count of the field; None for a line without it."""

    def count(line: Line) -> float | None:
        n = line.get("dynamic", {}).get(name)
        return None if n is None else float(n)

    return count


def alarm_rate(line: Line) -> float | None:
    """Alarms a word that RIND judged."""
    told = line.get("dynamic", {})
    return told["alarms"] / told["judged"] if told.get("judged") else None


def blank_alarms(line: Line) -> float | None:
    """Share of the alarms given by words without meaning alone; None where there was no alarm."""
    told = line.get("dynamic", {})
    return told["unmeant"] / told["alarms"] if "unmeant" in told and told["alarms"] else None


def used_searches(line: Line) -> float | None:
    """Searches behind which something was written: not the last where no room was left.

    Each alarm makes a search, and one more draft than alarms says that the last was read.
    """
    told = line.get("dynamic")
    if told is None:
        return None
    return float(len(told["found"]) - (told["alarms"] > 0 and told["drafts"] == told["alarms"]))


def query_recall(line: Line) -> float | None:
    """Share of the gold passages that one search finds, its mean; None without search or gold."""
    return _mean_share(_found(line), line)


def alarm_recall(line: Line) -> float | None:
    """As `query_recall`, of the searches that an alarm called for.

    The others come first: the question's own, which is the same whatever the query rule.
    """
    found = _found(line)
    return _mean_share(found[len(found) - line["dynamic"]["alarms"] :] if found else [], line)


def found_gold(line: Line) -> float | None:
    """Share of the gold passages that some search finds: the last passages alone are `hits`.

    0 where nothing was searched for; None where the question names no gold.
    """
    if "dynamic" not in line or not line.get("gold"):
        return None
    return len(set().union(*_found(line))) / len(line["gold"])


def new_gold(line: Line) -> float | None:
    """Share of the searches that find a gold passage which none before them found."""
    found = _found(line)
    seen: set[int] = set()
    new = 0
    for places in found:
        new += not seen.issuperset(places)
        seen.update(places)
    return new / len(found) if found else None


def _mean_share(found: list[list[int]], line: Line) -> float | None:
    return sum(map(len, found)) / len(found) / len(line["gold"]) if found else None


def _found(line: Line) -> list[list[int]]:
    return line["dynamic"]["found"] if "dynamic" in line and line.get("gold") else []


# --------------------------------------------------- what each query rule finds at the same moments

FAMILIES = catalogue()["query_rules"]
RULES: Mapping[str, str] = FAMILIES["rules"]
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


def _by_rule(name: str, rules: Iterable[str], value: Callable) -> Iterator[Metric]:
    """A metric of each of these rules, whose `value` is by its place in a moment's entry."""
    symbol, meaning = FAMILIES[name].values()
    for place, (rule, words) in enumerate(RULES.items(), start=FIRST_RULE):
        if rule in rules:
            fn = partial(value, place)
            yield Metric(f"{name}_{rule}", f"{symbol} {words}", fn, f"{meaning}: {words}")


# ------------------------------------------------------------ how well timing rules tell hops apart

WRONG, ENTROPY, SURPRISE, ATTENTION, SCORE, RELEASED = 0, 1, 2, 3, 4, 8
"""Places in a hop's entry."""


def told_apart(signal: int, line: Line) -> float | None:
    """How often a hop with a wrong answer has the higher signal; None without both kinds."""
    hops = line.get("timing", ())
    wrong, right = ([hop[signal] for hop in hops if hop[WRONG] == kind] for kind in (1, 0))
    return auc(wrong, right)


# ------------------------------------------ how far words that are looked at more move what follows

HIGH, LOW, MOVED_HIGH, MOVED_LOW, FIRST = range(5)
"""Places in a pair's entry."""


def mean_of(place: int, line: Line, of: str = "influence") -> float | None:
    """Mean of the pairs (or hops) at a place of their entries; None without one."""
    entries = line.get(of)
    return sum(entry[place] for entry in entries) / len(entries) if entries else None


def further(line: Line) -> float | None:
    """How often the word with the higher a_max moves more, of either order alike, ties by half."""
    return _balanced(
        line, lambda p: (p[MOVED_HIGH] > p[MOVED_LOW]) + (p[MOVED_HIGH] == p[MOVED_LOW]) / 2
    )


def more(line: Line) -> float | None:
    """How much further the word with the higher a_max moves, of either order alike."""
    return _balanced(line, lambda p: p[MOVED_HIGH] - p[MOVED_LOW])


def _balanced(line: Line, of_pair: Callable[[Sequence[float]], float]) -> float | None:
    """Mean of the pairs' two orders, each the mean of its own; None where one has no pair.

    A word moves most what is near it, and the nearer one of a pair has the higher a_max more
    often: were all pairs counted alike, being near would pass for being looked at.
    """
    orders: dict[int, list[float]] = {0: [], 1: []}
    for pair in line.get("influence") or ():
        orders[pair[FIRST]].append(of_pair(pair))
    if not all(orders.values()):
        return None
    return sum(sum(told) / len(told) for told in orders.values()) / len(orders)


TABLE = (
    described("drafts", counted("drafts")),
    described("alarms", counted("alarms")),
    described("judged_words", counted("judged")),
    described("alarm_rate", alarm_rate),
    described("blank_alarms", blank_alarms),
    described("used_searches", used_searches),
    described("asked_again", counted("again")),
    described("query_recall", query_recall),
    described("alarm_recall", alarm_recall),
    described("found_gold", found_gold),
    described("new_gold", new_gold),
    *_by_rule("finds", RULES, found_by),
    *_by_rule("finds_later", LATER, found_later),
    *_by_rule("finds_next", NEXT, finds_next),
    *_by_rule("finds_needed", LATER, finds_needed),
    described("words_taken", share_taken),
)

CHECKS = (
    described("wrong_hops", partial(mean_of, WRONG, of="timing")),
    described("hop_auc", partial(told_apart, SCORE)),
    described("hop_auc_entropy", partial(told_apart, ENTROPY)),
    described("hop_auc_surprise", partial(told_apart, SURPRISE)),
    described("hop_auc_attention", partial(told_apart, ATTENTION)),
    described("hop_auc_released", partial(told_apart, RELEASED)),
    described("moved_high", partial(mean_of, MOVED_HIGH)),
    described("moved_low", partial(mean_of, MOVED_LOW)),
    described("moved_more", more),
    described("moved_further", further),
    described("high_a_max", partial(mean_of, HIGH)),
    described("low_a_max", partial(mean_of, LOW)),
    described("high_first", partial(mean_of, FIRST)),
)
"""Metrics of the checks of timing and influence."""
