"""How dynamic retrieval went, out of a record's line: alarms, and what each search found.

A line's `dynamic` is what `study.line_fields` keeps of the trace; answers of other
methods have none, and none of these metrics.
"""

from __future__ import annotations

from collections.abc import Callable

from .metric import Line, Metric, percent


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
    Metric(
        "drafts",
        "Drafts",
        "drafts",
        "line",
        None,
        counted("drafts"),
        "drafts that a timing rule judged (FS-RAG: sentences written)",
    ),
    Metric(
        "alarms",
        "Alarms",
        "alarms",
        "line",
        None,
        counted("alarms"),
        "drafts that were broken off for a search",
    ),
    Metric(
        "judged_words",
        "Judged",
        "words",
        "line",
        None,
        counted("judged"),
        "words that RIND judged; alarms by them are the rate that random timing has to match",
    ),
    percent(
        "alarm_rate",
        "Alarm rate",
        "line",
        alarm_rate,
        "alarms a word that RIND judged",
        higher=None,
    ),
    percent(
        "blank_alarms",
        "Blank alarms",
        "line",
        blank_alarms,
        "share of alarms at which no word above the threshold bears meaning",
        higher=False,
    ),
    Metric(
        "used_searches",
        "Searches read",
        "searches",
        "line",
        False,
        used_searches,
        "searches behind which a draft was written: without the last where no room was left; not "
        "told where passages serve one draft alone",
        # Elsewhere a search is read in a draft that nobody judges, and that no line counts.
        where={"documents": "until_replaced"},
    ),
    percent(
        "asked_again",
        "Asked once more",
        "line",
        asked_again,
        "no answer was said, and the reader was asked once more (DRAGIN, appendix B)",
        higher=False,
    ),
    percent(
        "query_recall",
        "Recall a query",
        "line",
        query_recall,
        "share of the gold passages that one search finds, mean of the answer's searches",
    ),
    percent(
        "alarm_recall",
        "Recall an alarm's query",
        "line",
        alarm_recall,
        "share of the gold passages that one search at an alarm finds, mean of the answer's alarms",
    ),
    percent(
        "found_gold",
        "Found",
        "line",
        found_gold,
        "share of the gold passages that some search of the answer finds",
    ),
    percent(
        "new_gold",
        "New gold",
        "line",
        new_gold,
        "share of the searches that find a gold passage none before them found",
    ),
)
