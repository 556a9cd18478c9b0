"""Sentences of DRAGIN's chapters that state a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from rag_repro.analysis import hop_timing
from rag_repro.data import splits
from rag_repro.evaluation import calibration
from rag_repro.evaluation.intervals import Interval
from rag_repro.evaluation.resampling import new_generator
from rag_repro.methods.dragin import draft_checks
from rag_repro.show.exhibit_rows import Row
from rag_repro.study import papers
from rag_repro.study.papers import Cell
from rag_repro.study.scores import Only
from tests.prose.told import RESULTS, Said, Told, cells

PAPER = papers.load("dragin")
PUBLIC = ("hotpotqa", "2wikimultihopqa", "strategyqa")
TAUGHT = {"world-B": "testbed-reader", "world-A": "testbed-reader", "world-Z": "testbed-reader-2"}
ASKED = (*PUBLIC, "musique", "iirc", "hotpotqa_train", "2wikimultihopqa_train")
READERS = TAUGHT | dict.fromkeys(ASKED, "public-reader")
SEARCHES_ON_Z = "tuning", "retrievals", "world-Z"
MATCHED = (
    ("world-Z", 0.5, 0.035),
    ("2wikimultihopqa_train", 0.8, 0.07),
    ("hotpotqa_train", 0.6, 0.07),
)
"""FLARE's doubt and RIND's threshold at the paper's number of searches, as `tune` prints them."""
CHANCE = {"world-Z": 0.053, "2wikimultihopqa_train": 0.06, "hotpotqa_train": 0.06}
"""Random timing's rate there, of the data sets in the same order."""
MAIN = ("world-B", *PUBLIC)
READ = ("world-B", "hotpotqa")
"""The data sets of the main table; and those of them whose reader is not too weak."""


def _row(told: Told, exhibit: str, metric: str, dataset: str, **keys: Any) -> Row:
    keys = {"reader": READERS[dataset]} | keys
    return told.row(f"dragin.{exhibit}", metric, dataset=dataset, **keys)


def _ours(told: Told, *place: str, **keys: Any) -> float:
    """place: exhibit, metric, data set."""
    return told.of(_row(told, *place, **keys).ours.estimate)


def _level(told: Told, *place: str, **keys: Any) -> Interval:
    return told.between(_row(told, *place, **keys).ours)


def _gain(told: Told, *place: str, **keys: Any) -> Interval:
    return told.between(_row(told, *place, **keys).diff)


def _asked(told: Told, *place: str, **keys: Any) -> float:
    """Of how many questions a row is."""
    return told.of(_row(told, *place, **keys).ours.n)


def _cells(exhibit: str, **keys: Any) -> list[Cell]:
    return cells(f"dragin.{exhibit}", **keys)


def _lines(exhibit: str, **keys: Any) -> Sequence[Mapping[str, Any]]:
    (cell,) = _cells(exhibit, **keys)
    return RESULTS.lines(cell)


def _zero(interval: Interval) -> bool:
    return interval.lo <= 0 <= interval.hi


def _apart(interval: Interval) -> bool:
    return not _zero(interval)


# --------------------------------------------------------------------- 30, answers


def _alarms_without_parts(told: Told) -> bool:
    surely = {
        (cell.condition.dataset, method): _gain(
            told, "table3", "alarms", cell.condition.dataset, method=method
        ).lo
        for method in ("no_entropy", "no_attention", "no_meaning")
        for cell in _cells("table3", method=method)
    }
    return [where for where, lo in surely.items() if lo > 0] == [("world-B", "no_entropy")]


def _thresholds_fit(told: Told) -> bool:
    """At the paper's thresholds its code searches, and the equations next to never."""
    return all(
        _ours(told, "differences", "retrievals", dataset, method="released") > 1
        and _ours(told, "table5", "retrievals", dataset, method="dragin", threshold=0.8) < 0.5
        for dataset in READ
    )


def _one_run(told: Told) -> bool:
    def alike(dataset: str) -> bool:
        return all(
            _ours(told, "table2", metric, dataset, method="dragin")
            == _ours(told, "table2", metric, dataset, method="matched")
            for metric in ("em", "f1", "retrievals", "found_gold")
        )

    return alike("hotpotqa") and not alike("world-B")


def _alarm_costs(told: Told) -> bool:
    """More calls than searches beyond SR-RAG's, and more tokens, everywhere."""
    return all(
        _gain(told, "table3", "reader_calls", dataset, method="dragin").estimate
        > _gain(told, "table3", "retrievals", dataset, method="dragin").estimate
        and _gain(told, "table3", "new_tokens", dataset, method="dragin").lo > 0
        for dataset in MAIN
    )


def _unread(told: Told, dataset: str, method: str) -> float:
    """Searches with which nothing is written."""
    made, used = (
        _ours(told, "table3", metric, dataset, method=method)
        for metric in ("retrievals", "used_searches")
    )
    return made - used


def _alarms_hold_unread(told: Told) -> bool:
    """Alarms are all searches but the first, those with which nothing is written among them."""
    return all(
        _unread(told, dataset, method) > 0
        and np.isclose(
            _ours(told, "table3", "alarms", dataset, method=method) + 1,
            _ours(told, "table3", "retrievals", dataset, method=method),
        )
        for dataset in MAIN
        for method in ("fs", "fl")
    )


def _fewer_find_less(told: Told) -> bool:
    """Of DRAGIN at several thresholds, on the same questions."""
    return all(_falls(told, metric, d) for metric in ("retrievals", "found_gold") for d in READ)


def _falls(told: Told, metric: str, dataset: str) -> bool:
    """Table 5, from 0.05 to 0.2, which is table 2's on public data and that of its controls."""
    means = (
        _ours(told, "table5", metric, dataset, method="dragin", threshold=theta)
        for theta in (0.05, 0.1, 0.2)
    )
    return all(more > less for more, less in pairwise(means))


# ---------------------------------------------------------------------- 31, timing


@cache
def _hops() -> hop_timing.Hops:
    return hop_timing.hops(_cells("hops", method="check"), RESULTS)


@cache
def _pooled_areas() -> tuple[float, ...]:
    """RIND's, in percent, by either label."""
    judged = (_hops().judged("score", label) for label in hop_timing.LABELS)
    return tuple(100 * calibration.auc(one, new_generator()).estimate for one in judged)


def _little_selective(told: Told) -> bool:
    """RIND gives the alarm at nearly all hops, of which few more are in need than of all."""
    (cell,) = _cells("table2", dataset="world-B", method="dragin")
    held = _hops()
    alarm = hop_timing.alarms_of(
        "score", held.signals["score"], cell.condition.configured.threshold
    )
    more = [needs[alarm == 1].mean() - needs.mean() for needs in held.needs.values()]
    return 90 < told.of(100 * alarm.mean()) < 100 and all(0 < told.of(100 * x) < 5 for x in more)


def _fewer_and_other(told: Told) -> bool:
    """Within questions: of fewer of them, and another area than either pooled one."""
    area = told.contrast("dragin.c29", "testbed", "its score tells hops apart")
    asked = sum(len(RESULTS.lines(cell)) for cell in _cells("hops", method="check"))
    within = told.of(50) + area.estimate
    return told.of(area.n) < told.of(asked) and all(
        abs(within - told.of(pooled)) > 1 for pooled in _pooled_areas()
    )


def _not_matched(told: Told) -> bool:
    """With the last sentence as query each other rule searches more or less often than RIND."""
    return all(
        _apart(_gain(told, "grid", "retrievals", dataset, method=method))
        for dataset, methods in {
            "world-B": ("sentence_last", "flare_last", "window_last"),
            "hotpotqa": ("sentence_last",),
        }.items()
        for method in methods
    )


def _as_often_as_random(told: Told) -> bool:
    gains = [
        _gain(told, "grid", "retrievals", "world-B", method=f"random_{query}")
        for query in ("qfs", "last", "question")
    ]
    return all(_zero(gain) and abs(gain.estimate) < 0.3 for gain in gains)


def _search_is_not_all(told: Told) -> bool:
    """Of the time that later searches add, searching is next to nothing."""
    for method in ("fs", "fl", "flare"):
        all_of_it = _gain(told, "time", "seconds", "world-B", method=method)
        searching = _gain(told, "time", "seconds_retriever", "world-B", method=method)
        if not (all_of_it.lo > 0 and searching.hi < all_of_it.lo / 10):
            return False
    return True


# ------------------------------------------------------------------- 32, threshold

TUNE = ("world-A", "hotpotqa_train")


def _two_were_equal(told: Told) -> bool:
    """The two best on the 40 questions of HotpotQA that were asked when it was chosen; of them the
    higher, which was taken, searches less."""
    asked = frozenset(splits.ids("hotpotqa_train", "tune")[:40])
    scores, searches = {}, {}
    for value in (0.05, 0.1, 0.2, 0.4):
        (cell,) = _cells("tuning", dataset="hotpotqa_train", method="dragin", threshold=value)
        for metric, found in (("em", scores), ("retrievals", searches)):
            kept = RESULTS.scores(cell, metric, Only(ids=asked))
            found[value] = told.of(float(kept.values.mean()))
    best = [value for value, score in scores.items() if score == max(scores.values())]
    (cell,) = _cells("table2", dataset="hotpotqa", method="dragin", reader="public-reader")
    return len(best) == 2 and cell.condition.configured.threshold == min(best, key=searches.get)


EARLY = {"world-Z": 0.037, "hotpotqa_train": 0.045, "2wikimultihopqa_train": 0.053}
FIRST = {"hotpotqa_train": 0.037, "2wikimultihopqa_train": 0.045}
"""The rates of random timing that is early for certain, and behind a first search."""


def _over_rind(told: Told, row: str, rates: Mapping[str, float]) -> dict[str, float]:
    """EM of a kind of random timing above RIND's at as many searches, by data set."""
    return {
        dataset: round(
            _ours(told, "tuning", "em", dataset, method=row, rate=rates[dataset])
            - _ours(told, "tuning", "em", dataset, method="dragin", threshold=threshold),
            6,
        )
        for dataset, _, threshold in MATCHED
        if dataset in rates
    }


def _chance_by_coverage(told: Told) -> bool:
    """Against RIND at as many searches, plain chance and chance that is early for certain."""
    plain, early = _over_rind(told, "random", CHANCE), _over_rind(told, "random_early", EARLY)
    return (
        max(plain.values()) < 0 == early["world-Z"]
        and early["hotpotqa_train"] > 0 > early["2wikimultihopqa_train"]
    )


def _chance_behind_a_search(told: Told) -> bool:
    """Against RIND without such a search, and against RIND behind one."""
    early, first = _over_rind(told, "random_early", EARLY), _over_rind(told, "random_first", FIRST)
    hotpotqa, wiki = (
        _ours(told, "tuning", "em", dataset, method="random_first", rate=rate)
        - _ours(told, "tuning", "em", dataset, method="dragin_first", threshold=0.08)
        for dataset, rate in FIRST.items()
    )
    return (
        first["hotpotqa_train"] > early["hotpotqa_train"]
        and first["2wikimultihopqa_train"] < early["2wikimultihopqa_train"]
        and hotpotqa > 0 > wiki
    )


def _searched(told: Told, dataset: str, **keys: Any) -> float:
    """The share of questions that are searched for at all, in percent."""
    (cell,) = _cells("tuning", dataset=dataset, **keys)
    return told.of(100 * float((RESULTS.scores(cell, "retrievals").values > 0).mean()))


def _nearly_all_are_searched_for(told: Told) -> bool:
    by_rind = [_searched(told, d, method="dragin", threshold=theta) for d, _, theta in MATCHED]
    by_chance = [
        _searched(told, dataset, method="random", rate=rate) for dataset, rate in CHANCE.items()
    ]
    return min(by_rind) > 95 and all(
        chance < rind - 5 for chance, rind in zip(by_chance, by_rind, strict=True)
    )


def _random_as_often(told: Told) -> bool:
    gain = _gain(told, "table3", "retrievals", "world-B", method="random")
    return _zero(gain) and abs(gain.estimate) < 0.1


# ----------------------------------------------------------------------- 33, query


def _moments(dataset: str) -> list[tuple[int, list[list[int]], Mapping[str, Any]]]:
    """Of each of RIND's: its sentence, what each rule finds of the gold passages, its line."""
    return [
        (sentence, found, line)
        for line in _lines("queries", dataset=dataset, method="check")
        for _, _, sentence, *found in line.get("queries", ())
    ]


def _first_sentence(told: Told, dataset: str) -> float:
    """Percent of the moments that are in it."""
    return told.of(100 * np.mean([sentence == 1 for sentence, *_ in _moments(dataset)]))


def _first_step_again(told: Told) -> bool:
    """Behind the first sentence what holds the question finds the first step's passage again."""
    again: dict[str, list[bool]] = {}
    for sentence, found, line in _moments("world-B"):
        steps = [step for _, step, _ in line["gold"]]
        if sentence > 1 and len(set(steps)) > 1:
            for rule, places in zip(draft_checks.RULES, found, strict=True):
                again.setdefault(rule, []).append(any(steps[i] == 1 for i in places))
    shares = {rule: told.of(100 * np.mean(held)) for rule, held in again.items()}
    holding = shares["question"], shares["full_context"]
    return min(holding) > 85 and min(holding) > shares["last_sentence"]


def _told_apart_later(told: Told) -> bool:
    """QFS and the last sentence: surely behind the first one, by little over all moments."""
    label = "of all gold passages, QFS over the last sentence"
    return all(
        told.contrast("dragin.c32", tier, label).lo > 0
        and told.contrast("dragin.c32", tier, label).estimate
        > _ours(told, "queries", "finds_qfs", dataset, method="check")
        - _ours(told, "queries", "finds_last_sentence", dataset, method="check")
        for tier, dataset in (("testbed", "world-B"), ("public", "hotpotqa"))
    )


def _few_later(told: Told) -> bool:
    """So few questions that no claim which goes by them is decided."""
    asked = _asked(told, "queries", "finds_next_qfs", "world-B", method="check")
    return asked < told.of(len(_lines("queries", dataset="world-B", method="check"))) / 4 and all(
        told.verdict(f"dragin.{claim}", "testbed") == "inconclusive"
        for claim in ("c10", "c20", "c23", "c24", "c32")
    )


def _hundred_are_all(told: Told) -> bool:
    """With 100 words QFS is the full context in all that is measured; with 25 it is not."""

    def alike(number: int) -> bool:
        return all(
            _ours(told, "words", metric, "world-B", top_n=number)
            == _ours(told, "table6", metric, "world-B", method="full_context")
            for metric in ("query_recall", "found_gold", "em", "f1")
        )

    return alike(100) and not alike(25)


GRID = {
    "qfs": "qfs",
    "full_context": "full",
    "last_sentence": "last",
    "last_tokens": "tokens",
    "question": "question",
}
"""A query rule's name in table 6, and behind "rind_" in the grid."""


def _rows_differ(told: Told) -> bool:
    """With each query, FLARE's aside, the grid's searches find more than table 6's."""
    return all(
        _level(told, "grid", "found_gold", "world-B", method=f"rind_{there}").lo
        > _level(told, "table6", "found_gold", "world-B", method=here).hi
        for here, there in GRID.items()
    )


# ------------------------------------------------------------------- 34, retriever


def _sr_and_fs(told: Told) -> bool:
    def rivals(dataset: str) -> set[str]:
        return {cell.keys["method"] for cell in _cells("dense", dataset=dataset)} - {"dragin"}

    return all(rivals(d) == {"sr", "fs"} and told.of(len(rivals(d))) == 2 for d in READ)


# ------------------------------------------------------------------- 35, equations


def _more_questions(told: Told) -> bool:
    """D1, D8 and D13 of more than any other of the differences that are run whole."""
    names = {cell.keys["method"] for cell in _cells("differences", reader="testbed-reader")}
    asked = {
        name: _asked(told, "differences", "em", "world-B", method=name)
        for name in names - {"released", "equations"}
    }
    more = {"normalise", "cut", "documents"}
    return min(asked[m] for m in more) > max(n for m, n in asked.items() if m not in more)


def _as_the_code_decides(told: Told) -> list[float]:
    """Of each difference, percent of all drafts with the released code's alarm and cut."""
    drafts = [line["variants"] for c in _cells("replayed") for line in RESULTS.lines(c)]
    return [
        told.of(100 * np.mean([held[place][:2] == held[0][:2] for held in drafts]))
        for place in range(1, len(drafts[0]) - 1)
    ]


def _some_decide(told: Told) -> bool:
    return min(_as_the_code_decides(told)) < 90 and max(_as_the_code_decides(told)) == 100


def _ways(told: Told) -> bool:
    return {told.of(len(line["variants"])) for line in _lines("replayed", dataset="world-B")} == {
        14
    }


def _nothing_to_choose(told: Told) -> bool:
    """Of the first drafts with an alarm fewer than a tenth fill the query; D10 moves none."""
    for cell in _cells("differences", method="released"):
        taken = [line["dynamic"].get("taken") for line in RESULTS.lines(cell)]
        full = [words[0][0] >= cell.condition.configured.top_n for words in taken if words]
        if not told.of(100 * np.mean(full)) < 10:
            return False
    at = draft_checks.VARIANTS.index("D10")
    drafts = [line["variants"] for cell in _cells("replayed") for line in RESULTS.lines(cell)]
    return all(held[at] == held[0] for held in drafts)


def _near_moves_most(told: Told) -> bool:
    """Of a pair the word next to the tokens that are looked at moves them further."""
    for cell in _cells("influence"):
        pairs = [pair for line in RESULTS.lines(cell) for pair in line.get("influence", ())]
        moved = [(low, high) if first else (high, low) for _, _, high, low, first in pairs]
        near, far = np.mean(moved, axis=0)
        if not told.of(near) > told.of(far):
            return False
    return True


def _none_blank(told: Told) -> bool:
    return _ours(told, "differences", "blank_alarms", "world-B", method="equations") == 0 and all(
        _level(told, "differences", "blank_alarms", dataset, method="released").lo > 0
        for dataset in READ
    )


def _at_every_sentence(told: Told) -> bool:
    """HotpotQA: nearly all drafts give an alarm, and most do for sure at the first word."""
    drafts = [
        line["dynamic"] for line in _lines("differences", dataset="hotpotqa", method="released")
    ]
    alarms, written = (sum(one[name] for one in drafts) for name in ("alarms", "drafts"))
    at_first = sum(one["drafts"] for one in drafts if one["judged"] == one["drafts"])
    return (
        told.of(100 * alarms / written) > 95
        and told.of(100 * at_first / written) > 85
        and _ours(told, "differences", "alarm_rate", "hotpotqa", method="released") > 90
    )


def _hardly_searches(told: Told) -> bool:
    place = "decoding", "retrievals", "world-B"
    return all(
        _ours(told, *place, method="dragin_sampled", seed=seed) < 0.5
        and _gain(told, *place, method="dragin_sampled", seed=seed).hi < 0
        for seed in range(5)
    )


SAID = [
    # ------------------------------------------------------------------ 30, answers
    Said(
        "30_dragin",
        "0.6 to 1.5, are of the size of what its released code computes, and not of these",
        _thresholds_fit,
    ),
    Said("30_dragin", "equation 5's scores are of another size", _thresholds_fit),
    Said(
        "30_dragin",
        "*DRAGIN (equations)* is there one run with the row that searches as often as its controls",
        _one_run,
    ),
    Said(
        "30_dragin",
        "A search after an alarm also costs a call of the reader, and what was written behind the "
        "cut is lost",
        _alarm_costs,
    ),
    Said(
        "30_dragin",
        "FS-RAG and FL-RAG search once more and write nothing with it",
        lambda told: all(_unread(told, d, m) > 0 for d in MAIN for m in ("fs", "fl")),
    ),
    Said(
        "30_dragin",
        "dragin.c12 goes by alarms, among which they still are, against FS-RAG and FL-RAG",
        _alarms_hold_unread,
    ),
    Said("30_dragin", "DRAGIN has less to read with where it searches less", _fewer_find_less),
    Said(
        "30_dragin",
        "IIRC's ten decide nothing",
        lambda told: _asked(told, "table2", "em", "iirc", method="dragin") == 10,
    ),
    # ------------------------------------------------------------------- 31, timing
    Said(
        "31_dragin_timing",
        "at its threshold in table 2 RIND is little more so on the testbed than a search at every "
        "sentence",
        _little_selective,
    ),
    Said(
        "31_dragin_timing",
        "hence fewer questions, and other values than the pooled areas above",
        _fewer_and_other,
    ),
    Said(
        "31_dragin_timing",
        "how often it searches, which is not matched",
        _not_matched,
    ),
    Said("31_dragin_timing", "*RIND as often as random*", _as_often_as_random),
    Said(
        "31_dragin_timing",
        "RIND without entropy gives more alarms an answer on the testbed, and no other row surely "
        "differs",
        _alarms_without_parts,
    ),
    Said("31_dragin_timing", "a search is not all that an alarm costs", _search_is_not_all),
    Said(
        "31_dragin_timing",
        "at table 2's own it searches more often",
        lambda told: (
            _level(told, "table3", "retrievals", "world-B", method="dragin").lo
            > _level(told, "table3", "retrievals", "world-B", method="matched").hi
        ),
    ),
    Said(
        "31_dragin_timing",
        "The paper has IIRC, of which ten questions are at hand",
        lambda told: _asked(told, "table4", "em", "iirc", method="fs") == 10,
    ),
    # ---------------------------------------------------------------- 32, threshold
    Said(
        "32_dragin_threshold",
        "On HotpotQA two values were equal, and the rule took the one that searches less",
        _two_were_equal,
    ),
    Said(
        "32_dragin_threshold",
        "A lower $\\theta$ makes dragin.c13 (few searches) harder and dragin.c01 to c03 (answers) "
        "easier",
        lambda told: all(_falls(told, m, d) for m in ("retrievals", "em") for d in READ),
    ),
    Said(
        "32_dragin_threshold",
        "which is not as many alarms an answer",
        lambda told: _apart(_gain(told, "table3", "alarms", "world-B", method="no_entropy")),
    ),
    Said(
        "32_dragin_threshold",
        "So is random timing's rate on the testbed, where that gives as many searches",
        _random_as_often,
    ),
    Said(
        "32_dragin_threshold",
        "with it RIND searches less at the same $\\theta$ of world Z than with QFS",
        lambda told: all(
            _ours(told, *SEARCHES_ON_Z, method="rind_last", threshold=value)
            < _ours(told, *SEARCHES_ON_Z, method="dragin", threshold=value)
            for value in (0.025, 0.035, 0.05, 0.07)
        ),
    ),
    Said(
        "32_dragin_threshold",
        "Random timing's is below RIND's on all three; where it searches in the first sentence for "
        "certain, it is level with RIND's on world Z, above it on HotpotQA and below it on "
        "2WikiMultihopQA",
        _chance_by_coverage,
    ),
    Said(
        "32_dragin_threshold",
        "Behind a search for the question itself, chance is further above RIND on HotpotQA, and "
        "further below it on 2WikiMultihopQA. Where RIND has that search, too, chance is again "
        "above it on HotpotQA and below it on 2WikiMultihopQA",
        _chance_behind_a_search,
    ),
    Said(
        "32_dragin_threshold",
        "it searches for nearly every question, which chance alone does not",
        _nearly_all_are_searched_for,
    ),
    Said(
        "32_dragin_threshold",
        "FLARE's EM is above RIND's on world Z and 2WikiMultihopQA, and below it on HotpotQA",
        lambda told: (
            [
                _ours(told, "tuning", "em", dataset, method="flare", doubt=doubt)
                > _ours(told, "tuning", "em", dataset, method="dragin", threshold=threshold)
                for dataset, doubt, threshold in MATCHED
            ]
            == [True, True, False]
        ),
    ),
    Said("32_dragin_threshold", "the two scores differ in size", _thresholds_fit),
    Said(
        "32_dragin_threshold",
        "DRAGIN searched about half as often as FL-RAG and FS-RAG",
        lambda told: all(
            0.4
            < _ours(told, "table3", "retrievals", "hotpotqa", method="dragin")
            / max(1e-9, _ours(told, "table3", "retrievals", "hotpotqa", method=rival))
            < 0.65
            for rival in ("fl", "fs")
        ),
    ),
    # -------------------------------------------------------------------- 33, query
    Said(
        "33_dragin_query",
        "that rule asks the question: many moments are such",
        lambda told: all(_first_sentence(told, dataset) > 100 / 3 for dataset in READ),
    ),
    Said(
        "33_dragin_query",
        "Those behind the first sentence tell the rules apart",
        _told_apart_later,
    ),
    Said(
        "33_dragin_query",
        "one that holds the question finds the first step's passage again",
        _first_step_again,
    ),
    Said(
        "33_dragin_query",
        "few answers have such a moment, so that little can be told",
        _few_later,
    ),
    Said(
        "33_dragin_query",
        "which of a short answer are most of the words there are",
        lambda told: all(
            _level(told, "queries", "words_taken", dataset, method="check").lo > 50
            for dataset in READ
        ),
    ),
    Said("33_dragin_query", "With 100 it is the whole context.", _hundred_are_all),
    Said("33_dragin_query", "so that rows of one name differ", _rows_differ),
    # ---------------------------------------------------------------- 34, retriever
    Said(
        "34_dragin_retriever",
        "DRAGIN is compared with SR-RAG and FS-RAG alone",
        _sr_and_fs,
    ),
    # ---------------------------------------------------------------- 35, equations
    Said("35_dragin_equations", "the paper's thresholds fit it", _thresholds_fit),
    Said(
        "35_dragin_equations",
        "Some of this is engineering, some changes what is decided.",
        _some_decide,
    ),
    Said("35_dragin_equations", "D1, D8 and D13 on more questions", _more_questions),
    Said("35_dragin_equations", "The same drafts, decided fourteen ways", _ways),
    Said(
        "35_dragin_equations",
        "a first draft seldom has more of them than may be taken, so that nothing is chosen",
        _nothing_to_choose,
    ),
    Said("35_dragin_equations", "A word moves most what is near it", _near_moves_most),
    Said(
        "35_dragin_equations",
        "by equation 4 there are none, while the released code looks at meaning behind the alarm",
        _none_blank,
    ),
    Said(
        "35_dragin_equations",
        "the first word of almost every draft gives one, and the released code searches at every "
        "sentence",
        _at_every_sentence,
    ),
    Said(
        "35_dragin_equations",
        "At that θ sampled DRAGIN hardly searches at all: its rows compare retrieval with next to "
        "none",
        _hardly_searches,
    ),
]
