"""Sentences of ERM4's chapters that state a result."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from rag_repro.evaluation.intervals import Interval
from rag_repro.methods.erm4.knowledge_filter import CONTRADICTION, ENTAILMENT, NEUTRAL
from rag_repro.study import papers
from rag_repro.study.papers import Cell
from tests.prose.told import RESULTS, ROOT, Said, Told, card, cells, holds_zero

PAPER = papers.load("erm4")
TWO_THINGS = ("world-B-several", "world-C-several")
SEVERAL = ("world-B-several", "hotpotqa", "2wikimultihopqa")
STREAMS = {"testbed": "world-B-again-halves", "public": "ambignq_again"}
"""Questions like earlier ones, on which memory is tried, by tier."""
KEPT = re.compile(r"rewriting:[^,]+, (?P<kept>\d+) of (?P<made>\d+) that \S+")
LABEL = re.compile(r"filter:\S+ \w+, (?P<label>\w+)")
"""Sources of lessons, as cards name them: how many a check kept, and what a filter is to say."""


# ------------------------------------------------------------------------- reading records


def _cells(exhibit: str, **keys: Any) -> list[Cell]:
    return cells(f"erm4.{exhibit}", **keys)


def _lines(exhibit: str, **keys: Any) -> tuple[Mapping[str, Any], ...]:
    (cell,) = _cells(exhibit, **keys)
    return RESULTS.lines(cell)


def _keys(exhibit: str, **keys: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(cell.tier, dict(cell.keys)) for cell in _cells(exhibit, **keys)]


def _gain_on(
    told: Told, ids: Collection[str], exhibit: str, metric: str, more: str, less: str, **keys: Any
) -> Interval:
    """The paired difference of two rows on these questions alone."""
    sides = [_cells(exhibit, method=method, **keys) for method in (more, less)]
    (above,), (below,) = sides
    drawn = RESULTS.gain(above, below, metric, lambda line: line["id"] in ids)
    return told.between(drawn.interval())


def _several(exhibit: str, method: str = "plus", **keys: Any) -> set[str]:
    """The questions for which R+ wrote several queries."""
    lines = _lines(exhibit, method=method, **keys)
    return {line["id"] for line in lines if line["counts"]["queries"] > 1}


def _one_query(told: Told, exhibit: str, **keys: Any) -> float:
    """The share of the questions for which R+ wrote one query."""
    return told.of(1 - len(_several(exhibit, **keys)) / len(_lines(exhibit, method="plus", **keys)))


def _lessons(told: Told, name: str, *labels: str) -> float:
    """How many lessons a filter had, of these labels or of all."""
    found = ((LABEL.match(s), n) for s, n in card(name)["lessons"].items())
    return told.of(sum(n for of, n in found if not labels or of["label"] in labels))


def _minutes(told: Told, name: str) -> float:
    return told.of(card(name)["seconds"] / 60)


# ------------------------------------------------------------------------------ chapter 20


def _too_weak(told: Told) -> bool:
    """Gold passages help it by less than the 15 points that the chapter asks for."""
    gain = told.gain("erm4.readers", "acc_words", dataset="world-B-several", method="gold")
    return gain.estimate < 15


def _guesses(told: Told) -> bool:
    """Without a passage about every second comparison is right, and with passages no more."""
    kind = {"dataset": "world-B-several", "kind": "comparison"}
    bare = told.ours("erm4.kinds", "acc_words", method="direct", **kind)
    helped = told.gain("erm4.kinds", "acc_words", method="rrr", **kind)
    return 35 <= bare <= 65 and helped.lo <= 0


def _wording_alone(told: Told) -> bool:
    """Wherever R+ loses against its passages with the original question, these are the same."""

    def apart(metric: str, tier: str, dataset: str) -> float:
        plus, original = (
            told.ours("erm4.table1", metric, tier, dataset=dataset, method=method)
            for method in ("plus", "original_all")
        )
        return plus - original

    sets = [(tier, keys["dataset"]) for tier, keys in _keys("table1", method="original_all")]
    loses = [one for one in sets if apart("acc_words", *one) < 0]
    return bool(loses) and all(apart("answer_recall", *one) == 0 for one in loses)


def _new_relation(told: Told) -> bool:
    lines = _lines("table1", dataset="popqa", method="plus")
    gains = {
        kind: _gain_on(
            told,
            {line["id"] for line in lines if line["kind"] == kind},
            *("table1", "acc_words", "plus", "original_all"),
            dataset="popqa",
        )
        for kind in ("occupation", "place of birth")
    }
    return gains["occupation"].hi < 0 <= gains["place of birth"].estimate


def _hardly_several(told: Told) -> bool:
    """On PopQA one query of R+'s does as R+, and the original question does not."""
    plus, one, original = (
        told.ours("erm4.table1", "acc_words", "public", dataset="popqa", method=method)
        for method in ("plus", "one_rewritten", "original_all")
    )
    return abs(plus - one) < 2 < abs(plus - original)


def _first_finds_less(told: Told) -> bool:
    """Gold passages, on sets whose questions name two things, where several were written."""
    return all(
        _gain_on(
            told,
            _several("table1", dataset=dataset),
            *("table1", "recall", "one_original", "rrr"),
            dataset=dataset,
        ).hi
        < 0
        for dataset in SEVERAL
    )


CHAPTER_20 = [
    Said("20_erm4", "this reader is too weak on such questions", _too_weak),
    Said("20_erm4", "Where R+ loses against that row, the wording alone does it.", _wording_alone),
    Said("20_erm4", "On public questions this is seen where a relation is new", _new_relation),
    Said("20_erm4", "On the testbed's questions about two things they do not", _too_weak),
    Said("20_erm4", "(the reader guesses comparisons)", _guesses),
    Said(
        "20_erm4",
        "Nearly all of the testbed's ambiguous questions and of PopQA's",
        lambda told: (
            0.9 <= _one_query(told, "table1", dataset="world-B-ambiguous") <= 1
            and 0.9 <= _one_query(told, "table1", dataset="popqa") <= 1
        ),
    ),
    Said(
        "20_erm4",
        "its rows differ by the rewritten question and hardly by several queries",
        _hardly_several,
    ),
    Said(
        "20_erm4",
        "The first of several queries names one of two things, so that it must find less",
        _first_finds_less,
    ),
    Said(
        "20_erm4",
        "| 60 over the same passages |",
        lambda told: all(
            told.of(told.row("erm4.table1", "acc_words", dataset="nq", method=method).ours.n) == 60
            for method in ("direct", "search", "rrr", "plus", "full")
        ),
    ),
]


# ------------------------------------------------------------------------------ chapter 21


def _no_item(told: Told) -> bool:
    """Fewer questions have an answer recall, wherever some are answered by yes or no."""

    def n(metric: str, dataset: str) -> float:
        row = told.row("erm4.fig2", metric, dataset=dataset, method="question")
        return told.of(row.ours.n)

    return all(
        n("answer_recall_30", dataset) < n("recall", dataset) for dataset in {*TWO_THINGS, *SEVERAL}
    )


def _missed_in_every_row(told: Told) -> bool:
    cells = [c for name in TWO_THINGS for c in _cells("fig2", dataset=name)]
    found = [
        RESULTS.scores(cell, "answer_recall_30", lambda line: line["kind"] == "bridge_free")
        for cell in cells
    ]
    return bool(found) and all(told.of(value) == 0 for one in found for value in one.values)


def _below_all(told: Told) -> bool:
    return all(
        told.ours("erm4.fig2", "answer_recall_30", tier, **keys) < 100
        for name in TWO_THINGS
        for tier, keys in _keys("fig2", dataset=name)
    )


def _names_tell_all(told: Told) -> bool:
    """BM25 finds all gold passages with the question itself, and with several queries no more."""
    return all(
        told.ours("erm4.fig2", "recall", dataset=name, method="question_lexical") == 100
        and told.gain("erm4.fig2", "recall", dataset=name, method="sequential_lexical").estimate
        <= 0
        for name in TWO_THINGS
    )


def _first_ten_find_less(told: Told) -> bool:
    """Of questions with several queries, on the testbed and 2WikiMultihopQA alone."""
    surely = set()
    for name in {cell.condition.dataset for cell in _cells("fig2", method="one")}:
        if ids := _several("fig2", "sequential", dataset=name):
            place = "fig2", "answer_recall_10", "sequential", "one"
            surely |= {name} if _gain_on(told, ids, *place, dataset=name).hi < 0 else set()
    return surely == {*TWO_THINGS, "2wikimultihopqa"}


def _catching_up(told: Told) -> bool:
    """There is a rise, after which several queries are not above one."""
    return all(
        told.contrast("erm4.c03", tier, "11 to 15, several over one query").lo > 0
        and told.contrast(
            "erm4.c03", tier, "several over one query at 15, where several were written"
        ).lo
        <= 0
        for tier in STREAMS
    )


def _low_and_falling(told: Told) -> bool:
    """Of one query and of the question itself, by MiniLM and by BM25."""

    def precision(n: int, dataset: str, method: str) -> float:
        return told.ours("erm4.fig2", f"snippet_precision_{n}", dataset=dataset, method=method)

    rows = [(d, m) for d in TWO_THINGS for m in ("one", "question", "question_lexical")]
    return all(50 > precision(5, *row) > precision(10, *row) > precision(30, *row) for row in rows)


def _more_passages(told: Told) -> bool:
    def passages(tier: str, dataset: str, method: str) -> float:
        return told.ours("erm4.fig2", "passages", tier, dataset=dataset, method=method)

    sets = [(tier, keys["dataset"]) for tier, keys in _keys("fig2", method="sequential")]
    return all(
        passages(*one, method) > passages(*one, several)
        for one in sets
        for method in ("one", "question")
        for several in ("sequential", "mixed")
    )


FIGURE_3 = ("em", "set_precision", "set_recall_tokens", "set_f1")


def _loss_and_no_gain(told: Told) -> bool:
    gains = [
        told.gain("erm4.fig3", metric, dataset="world-B-ambiguous", method="plus")
        for metric in FIGURE_3
    ]
    return all(gain.estimate <= 0 for gain in gains) and any(gain.hi < 0 for gain in gains)


def _nobody_knows(told: Told) -> bool:
    """Without passages hardly an answer is right, by either question."""
    ground = {"dataset": "world-B-ambiguous"}
    return all(
        told.ours("erm4.fig3", "em", method=method, **ground) < 5
        for method in ("direct", "rewritten_none")
    ) and all(
        holds_zero(told.gain("erm4.fig3", metric, method="rewritten_none", **ground))
        for metric in FIGURE_3
    )


CHAPTER_21 = [
    Said("21_erm4_premises", "so that n is smaller than that of *recall*", _no_item),
    Said(
        "21_erm4_premises",
        "no passage holds that, so that it counts as missed in every row",
        _missed_in_every_row,
    ),
    Said("21_erm4_premises", "answer recall cannot reach 100 on `-several`", _below_all),
    Said(
        "21_erm4_premises",
        "Words find whatever a question names, so BM25 needs no second query for that",
        _names_tell_all,
    ),
    Said(
        "21_erm4_premises",
        "so that its ten passages find less than one query's; elsewhere that does not show",
        _first_ten_find_less,
    ),
    Said(
        "21_erm4_premises",
        "a rise behind them (erm4.c03) may be no more than catching up",
        _catching_up,
    ),
    Said(
        "21_erm4_premises",
        "at thirty *one query* and *the question* have more passages than the several queries",
        _more_passages,
    ),
    Said(
        "21_erm4_premises",
        "few of 4,000 passages hold an answer, so that precision must be low and fall",
        _low_and_falling,
    ),
    Said(
        "21_erm4_premises",
        "MiniLM on the testbed, where words find whatever is named",
        _names_tell_all,
    ),
    Said("21_erm4_premises", "So the testbed allows a loss and no gain", _loss_and_no_gain),
    Said(
        "21_erm4_premises",
        "Nor does anybody know invented facts: its two bars without retrieval compare nothing.",
        _nobody_knows,
    ),
    Said(
        "21_erm4_premises",
        "A reader that gives one answer to whatever it is asked",
        lambda told: all(
            0.9 < told.ours("erm4.fig3", "distinct", tier, **keys) < 1.1
            for tier, keys in _keys("fig3")
        ),
    ),
]


# ------------------------------------------------------------------------------ chapter 22


def _kept_by_check(told: Told) -> tuple[float, float]:
    """Rewrites that the reader's check kept, and all that it saw."""
    found = [KEPT.match(s) for s in card("erm4-rewriter-testbed-checked")["lessons"]]
    kept, made = (sum(int(one[part]) for one in found) for part in ("kept", "made"))
    return told.of(kept), told.of(made)


def _few_kept(told: Told) -> bool:
    kept, made = _kept_by_check(told)
    return 0 < kept < 0.2 * made


def _finds_what_the_question_finds(told: Told) -> bool:
    """To the last digit, though the tuned one's queries find something else."""

    def found(metric: str, dataset: str, method: str) -> float:
        return told.ours("erm4.rewriters", metric, dataset=dataset, method=method)

    places = [(m, d) for m in ("recall", "answer_recall") for d in TWO_THINGS]
    return all(found(*one, "checked") == found(*one, "question") for one in places) and any(
        found(*one, "plus") != found(*one, "question") for one in places
    )


def _unfollowed(told: Told, method: str, dataset: str) -> float:
    return told.ours("erm4.rewriters", "unfollowed", dataset=dataset, method=method)


def _leaves_one_out(told: Told) -> bool:
    """In form, one query written: it finds fewer gold passages than the question itself."""

    def one(dataset: str) -> set[str]:
        lines = _lines("rewriters", method="plus", dataset=dataset)
        counts = {line["id"]: line["counts"] for line in lines}
        return {q for q, c in counts.items() if c["queries"] == 1 and not c.get("unfollowed")}

    return all(
        _gain_on(told, one(name), "rewriters", "recall", "plus", "question", dataset=name).hi < 0
        for name in TWO_THINGS
    )


def _few_contradictions(told: Told) -> bool:
    return all(
        0 < _lessons(told, name, CONTRADICTION) < 0.03 * _lessons(told, name)
        for name in ("erm4-filter-testbed", "erm4-filter-testbed-label", "erm4-filter")
    )


def _as_many_refused(told: Told) -> bool:
    """To one in twenty."""
    name = "erm4-filter-testbed-label"
    taken, refused = _lessons(told, name, ENTAILMENT), _lessons(told, name, NEUTRAL, CONTRADICTION)
    return 0.95 * taken < refused < 1.05 * taken


def _two_labels(told: Told) -> bool:
    """Of all that tuned filters judged less than one in a hundred is called a contradiction."""
    given: list[str] = []
    for method in ("strong", "weak", "explained", "weak_written", "explained_written"):
        for cell in _cells("filters", method=method):
            for line in RESULTS.lines(cell):
                given += [label for _, label, _, kind, _ in line.get("filter", ()) if kind]
    return told.of(100 * given.count(CONTRADICTION) / len(given)) < 1


def _goes_by_names(told: Told) -> bool:
    """On the testbed: first steps are kept, and the last one no more than any other passage."""
    kept = {
        metric: told.ours("erm4.filters", metric, dataset="world-B", method="weak")
        for metric in ("entailed_static", "entailed_dynamic")
    }
    last = told.contrast("erm4.c40", "testbed", "the last step over others")
    return kept["entailed_static"] > 90 and kept["entailed_dynamic"] < 25 and last.lo <= 0


def _no_second_steps(told: Told) -> bool:
    """World Z's tuning questions, where a search finds nearly 100 of them."""
    held = []
    for method in ("strong", "weak"):
        gold, dynamic, other = (
            told.between(told.row("erm4.taken", name, dataset="world-Z", method=method).ours)
            for name in ("entailed_gold", "entailed_dynamic", "entailed_other")
        )
        held += [gold.lo > other.hi, dynamic.hi < 15, dynamic.estimate < other.estimate]
    return all(held) and told.verdict("erm4.c15", "testbed") == "not judged"


def _few_public(told: Told) -> bool:
    """Questions of kinds that cannot be guessed with a gold passage among those that are judged."""
    kinds, gold = {"bridge", "compositional", "inference"}, {"static", "dynamic", "gold"}
    lines = [
        line
        for name in ("hotpotqa_train", "2wikimultihopqa_train")
        for cell in _cells("taken", dataset=name, method="strong")
        for line in RESULTS.lines(cell)
    ]
    asked = [line for line in lines if line["kind"] in kinds]
    return told.of(sum(any(one[3] in gold for one in line["filter"]) for line in asked)) < 100


def _judged(told: Told, tier: str) -> dict[str, set[float]]:
    """How many questions each filter judged, by data set; none is -1."""
    rows = [(k["method"], k["dataset"]) for t, k in _keys("filters") if t == tier]
    n = {
        row: told.of(
            told.row("erm4.filters", "irrelevant_share", tier, method=row[0], dataset=row[1]).ours.n
        )
        for row in rows
    }
    sets = {dataset for _, dataset in rows}
    return {d: {n.get((method, d), -1.0) for method, _ in rows} for d in sets}


def _fewer_judged(told: Told) -> bool:
    return len(_judged(told, "testbed")["world-B"]) > 1


def _not_every_one(told: Told) -> bool:
    by_set = _judged(told, "public")
    return any(-1.0 in counts and max(counts) > 0 for counts in by_set.values())


def _learns(told: Told) -> bool:
    """The loss on lessons that were held out ends below where it began."""
    curve = (ROOT / "results/cards/erm4-rewriter-nf4/curve.jsonl").read_text("utf-8")
    rows = [json.loads(line)["held_out"] for line in curve.splitlines()]
    first, last = (told.of(np.mean([*row.values()])) for row in (rows[0], rows[-1]))
    return last < first


CHAPTER_22 = [
    Said("22_erm4_modules", "that its loss on held-out lessons falls", _learns),
    Said(
        "22_erm4_modules",
        "makes a set of a few hundred questions smaller still",
        lambda told: 200 <= _kept_by_check(told)[1] <= 500 and _few_kept(told),
    ),
    Said("22_erm4_modules", "the check left it few", _few_kept),
    Said(
        "22_erm4_modules",
        "too few to learn the format",
        lambda told: all(90 < _unfollowed(told, "checked", name) <= 100 for name in TWO_THINGS),
    ),
    Said(
        "22_erm4_modules",
        "what it finds is what the question finds",
        _finds_what_the_question_finds,
    ),
    Said(
        "22_erm4_modules",
        "Where the tuned one writes one query about two things it leaves one of them out",
        _leaves_one_out,
    ),
    Said(
        "22_erm4_modules",
        "a filter that goes by names keeps the former and drops the latter",
        _goes_by_names,
    ),
    Said(
        "22_erm4_modules",
        "but next to no second steps, and these no more often than other passages",
        _no_second_steps,
    ),
    Said(
        "22_erm4_modules",
        "Fewer than 100 questions of HotpotQA and 2WikiMultihopQA",
        _few_public,
    ),
    Said("22_erm4_modules", "some filters judged fewer", _fewer_judged),
    Said(
        "22_erm4_modules",
        "on public data not every one judged every data set",
        _not_every_one,
    ),
    Said(
        "22_erm4_modules",
        "is no test of erm4.c23, which then is not judged",
        lambda told: all(told.verdict("erm4.c23", tier) == "not judged" for tier in STREAMS),
    ),
    Said("22_erm4_modules", "Lessons of contradiction are few", _few_contradictions),
    Said("22_erm4_modules", "in effect a tuned filter has two labels", _two_labels),
    Said(
        "22_erm4_modules",
        "taught as many passages taken as refused",
        _as_many_refused,
    ),
    Said(
        "22_erm4_modules",
        "half an hour (rewriter) and an hour (filter) on two cores",
        lambda told: (
            25 <= _minutes(told, "erm4-rewriter-testbed") <= 35
            and all(
                50 <= _minutes(told, name) <= 70
                for name in ("erm4-filter-testbed", "erm4-filter-testbed-label", "erm4-filter")
            )
        ),
    ),
]


# ------------------------------------------------------------------------------ chapter 23


def _nothing_saved(told: Told) -> bool:
    """The question being the query, on the testbed."""
    return all(
        told.gain("erm4.trigger", "searches", "testbed", dataset=name, method="exact").estimate
        == told.ours("erm4.trigger", "within", "testbed", dataset=name, method="exact")
        == 0
        for name in ("world-B-again", "world-B-again-halves")
    )


def _next_to_nothing(told: Told) -> bool:
    """Fewer than one question in twenty."""
    rows = [("erm4.table2", "outside"), ("erm4.readers", "found"), ("erm4.together", "rrr")]
    return all(
        0 <= told.ours(name, "acc_words", "public", dataset="ambignq_again", method=method) < 5
        for name, method in rows
    )


def _chosen(told: Told) -> bool:
    """Of the pairs that lose three points or less on world A the one that saves most."""
    pairs = {}
    for tier, keys in _keys("trigger", method="memory", split="tune"):
        lost = told.gain("erm4.trigger", "answer_recall", tier, **keys).estimate
        if lost >= -3:
            searches = told.gain("erm4.trigger", "searches", tier, **keys).estimate
            pairs[keys["tau"], keys["theta"]] = searches
    return bool(pairs) and max(pairs, key=lambda pair: (-pairs[pair], pair)) == (0.6, 2)


def _little_but_reader(told: Told) -> bool:
    whole, reader, search = (
        told.ours("erm4.latency", metric, method="outside_0")
        for metric in ("seconds", "seconds_reader", "seconds_retriever")
    )
    return 0 <= whole - reader - search < 0.05 * whole


def _reads_most(told: Told) -> bool:
    def shown(tier: str, method: str) -> float:
        return told.ours("erm4.together", "shown", tier, method=method)

    rows = {keys["method"] for _, keys in _keys("together")}
    return all(
        shown(tier, "rrr_more") > max(shown(tier, row) for row in rows - {"rrr_more"})
        for tier in STREAMS
    )


def _few_within(told: Told) -> bool:
    """At the printed thresholds, of the rewriter's queries and of the question as query."""
    return all(
        told.ours(exhibit, "within", tier, dataset=name, method="memory", tau=0.6, **theta) < 20
        for exhibit, theta in (("erm4.table2", {}), ("erm4.trigger", {"theta": 3}))
        for tier, name in STREAMS.items()
    )


def _some_saves(told: Told) -> bool:
    """On either stream some pair of thresholds saves half of the searches or more."""
    return all(
        any(
            told.gain("erm4.trigger", "searches", tier, **keys).hi < -0.5
            for tier, keys in _keys("trigger", dataset=name, method="memory")
        )
        for name in STREAMS.values()
    )


def _only_by_rewriter(told: Told) -> bool:
    saved = told.gain("erm4.table2", "searches", "testbed", method="exact")
    return saved.hi < 0 and _nothing_saved(told)


def _search_alike(told: Told) -> bool:
    more = [told.gain("erm4.times", "searches", tier, method="memory", tau=1.0) for tier in STREAMS]
    return all(gain.lo == gain.hi == 0 for gain in more)


CHAPTER_23 = [
    Said(
        "23_erm4_memory",
        "a plain cache can save only where a rewriter writes the same query twice",
        _only_by_rewriter,
    ),
    Said("23_erm4_memory", "The row without memory and τ 1 search alike", _search_alike),
    Said(
        "23_erm4_memory",
        "On AmbigNQ the reader answers next to nothing even after a search",
        _next_to_nothing,
    ),
    Said("23_erm4_memory", "a plain cache saves nothing there by construction", _nothing_saved),
    Said(
        "23_erm4_memory",
        "our own is so fast that no memory could save any",
        lambda told: all(
            told.ours("erm4.times", "seconds_retriever", tier, method="outside")
            < 0.02 * told.ours("erm4.times", "seconds", tier, method="outside")
            for tier in ("testbed", "public")
        ),
    ),
    Said(
        "23_erm4_memory",
        "so that little but the reader takes time beside the search",
        _little_but_reader,
    ),
    Said(
        "23_erm4_memory",
        "R+ writes one query for most questions here",
        lambda told: all(
            0.5 < _one_query(told, "together", dataset=name) <= 1 for name in STREAMS.values()
        ),
    ),
    Said("23_erm4_memory", "this rival reads more than any other row", _reads_most),
    Said("23_erm4_memory", "With MiniLM memory answers few queries at it.", _few_within),
    Said("23_erm4_memory", "not that no threshold saves", _some_saves),
    Said("23_erm4_memory", "θ 2, chosen on world A's questions", _chosen),
]

SAID = [*CHAPTER_20, *CHAPTER_21, *CHAPTER_22, *CHAPTER_23]
