"""How dynamic retrieval went, out of a record's line: alarms, and what each search found.

A line's `dynamic` is what `study.line_fields` keeps of the trace; answers of other
methods have none, and none of these metrics.
"""

from __future__ import annotations

from collections.abc import Callable

from .metric import Line, described


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


def asked_again(line: Line) -> float | None:
    return float(line["dynamic"]["again"]) if "dynamic" in line else None


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


TABLE = (
    described("drafts", counted("drafts")),
    described("alarms", counted("alarms")),
    described("judged_words", counted("judged")),
    described("alarm_rate", alarm_rate),
    described("blank_alarms", blank_alarms),
    described("used_searches", used_searches),
    described("asked_again", asked_again),
    described("query_recall", query_recall),
    described("alarm_recall", alarm_recall),
    described("found_gold", found_gold),
    described("new_gold", new_gold),
)
