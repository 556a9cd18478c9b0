"""ERM4's claims: each is decided by its records, and turns when they do; rows ask what they say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from rag_repro.evaluation import metrics
from rag_repro.study import gate, papers
from rag_repro.study.judge import _subtracted, judge, pair_cells
from rag_repro.study.scores import Results
from tests.study.claims import decided, exhibit_of

N = 400


@cache
def paper():
    return papers.load("erm4")


# ------------------------------------------------------------------- claims


def test_all_claims_are_there_with_a_contrast_or_a_reason():
    claims = paper().claims
    assert [c.id for c in claims] == [f"erm4.c{i:02}" for i in range(1, 42)]
    for claim in claims:
        assert bool(claim.contrasts) != bool(claim.no_contrast), claim.id
    assert [c.id for c in claims if c.no_contrast] == ["erm4.c10", "erm4.c20", "erm4.c38"]
    support = [c.support for c in claims]
    assert [support.count(w) for w in ("yes", "partly", "no", "none")] == [12, 7, 3, 19]
    scale = [c.scale.split()[0] for c in claims]
    words = ("yes", "likely", "maybe", "unlikely", "na")
    assert [scale.count(w) for w in words] == [18, 10, 10, 1, 2]


def test_no_mean_is_over_two_readers():
    for claim, number, tier in decided(paper()):
        contrast = paper().claim(claim).contrasts[number]
        pairs = list(
            pair_cells(exhibit_of(paper(), paper().claim(claim), contrast), contrast, tier)
        )
        for side in zip(*pairs, strict=True):
            assert len({c.condition.reader for c in side if c}) <= 1, (claim, contrast.label)


# ------------------------------------------------ verdicts turn with what is recorded

COUNTS = {
    **{"searches": "searches", "fetched": "fetched", "memory_items": "memory"},
    **{"irrelevant": "irrelevant", "queries": "queries", "shown": "shown"},
}
FILTERED = {
    "filter_right",
    "filter_right_strong",
    "filter_balanced",
    "entailed_gold",
    "entailed_other",
    "entailed_static",
    "entailed_dynamic",
}
STORED = {"acc_words", "f1", "em", "set_f1", "set_precision", "set_recall", "intent_hit"}
STORED |= {"answer_recall", "recall"}
BY_RANK = ("answer_recall_", "answer_gain_", "snippet_precision_")


def levels(contrast):
    """What both sides score where the claim holds, and where it does not."""
    unit = 1.0 if metrics.get(contrast.metric).unit == "percent" else 40.0
    if contrast.ratio:
        return (0.4, 1.0), (1.5, 1.0)
    if contrast.above:
        return (1.0, None), (0.0, None)
    if contrast.target is not None and contrast.margin is not None:
        at = contrast.target / (100.0 if unit == 1.0 else 1.0)
        return (at, None), (at + 0.5 * unit, None)
    if contrast.target is not None:
        return (0.1, None), (0.9, None)
    if contrast.margin is not None:
        return (unit / 2, unit / 2), (unit / 10, 9 * unit / 10)
    return (0.9 * unit, 0.1 * unit), (0.1 * unit, 0.9 * unit)


def line(number, kind, values, among):
    """A record's line with these metrics' values; shares are of the questions."""
    name = f"q{number:03}"
    made = {"id": name, "kind": kind, "cluster": name, "hits": ["p"] * 30, "scores": {}, "cost": {}}
    made["counts"] = dict(among)
    on = {metric: number < value * N for metric, value in values.items()}
    made |= judged(on) | places(on)
    for metric, value in values.items():
        match metric:
            case "seconds":
                made["turns"] = [{"seconds": value, "clock": []}]
            case "reader_calls":
                made["cost"]["reader_calls"] = value
            case "distinct":
                made["scores"][metric] = value
            case "fetched_again":
                made["trigger"] = [[3, 1, 10, 10, 10 * on[metric], 0]]
            case "within":
                made["trigger"] = [[3, int(not on[metric]), 10, 10, 0, 0]]
            case "irrelevant_share":
                made["counts"] |= {"judged": 10, "irrelevant": 10 * on[metric]}
            case "unfollowed":
                made["counts"] |= {"outputs": 1, "unfollowed": int(on[metric])}
            case _ if metric in COUNTS:
                made["counts"][COUNTS[metric]] = value
            case _ if metric not in FILTERED and not metric.startswith(BY_RANK):
                assert metric in STORED, metric
                made["scores"][metric] = float(on[metric])
    return made


def judged(on):
    """Judged passages that make each of these metrics 1 or 0."""
    says = {True: "entailment", False: "neutral"}
    rows = []
    if "entailed_gold" in on:
        rows.append(["g", says[on["entailed_gold"]], 0.5, "gold", 1])
    for kind in ("static", "dynamic"):
        if f"entailed_{kind}" in on:
            rows.append([kind, says[on[f"entailed_{kind}"]], 0.5, kind, 1])
    if "entailed_other" in on:
        rows.append(["o", says[on["entailed_other"]], 0.5, "other", 0])
    if "filter_right" in on:
        rows.append(["x", says[on["filter_right"]], 0.5, "gold", 0])
    if "filter_right_strong" in on:  # a step on the way, which the strong one drops
        rows.append(["x", says[not on["filter_right_strong"]], 0.5, "gold", 0])
    if "filter_balanced" in on:
        rows.append(["x", says[on["filter_balanced"]], 0.5, "gold", 0])
        rows.append(["y", says[not on["filter_balanced"]], 0.5, "other", 0])
    return {"filter": rows} if rows else {}


def _depth(metric):
    last = metric.rsplit("_", 1)[-1]
    return int(last) if last.isdecimal() else 0


def places(on):
    """Ranks at which answers stand: a reading for each gain and recall, every rank for precision.

    Of two precisions the deeper one is that of the ranks between.
    """
    held, before = [], 0
    for metric in sorted(on, key=lambda name: _depth(name)):
        if metric.startswith(("answer_gain_", "answer_recall_")):
            held.append([int(metric.rsplit("_", 1)[1])] if on[metric] else [])
        elif metric.startswith("snippet_precision_"):
            held, last = held or [[]], int(metric.rsplit("_", 1)[1])
            held[0] += range(before + 1, last + 1) if on[metric] else []
            before = last
    return {"held": held} if held else {}


class Made(Results):
    """Records that are not on a disk: what each cell scores."""

    def __init__(self, table, contrast):
        self.table, self.contrast = table, contrast
        self.kind = next(iter(contrast.kinds), "compositional")

    def platforms(self, cell):
        return [frozenset()]

    def lines(self, cell):
        if cell.exhibit == "erm4.readers":
            values = {"acc_words": 0.1 if cell.keys["method"] == "closed" else 0.8}
        elif cell.exhibit == "erm4.taken":
            values = {"entailed_gold": 0.8, "entailed_other": 0.1}
        else:
            values = self.table.get((cell.exhibit, cell.condition.hash))
        if values is None:
            return None
        # What is `among` lower or higher on the first side is so there throughout.
        first = cell.matches({k: v for k, v in self.contrast.more.items() if k != "metric"})
        among = {
            COUNTS[metric]: int((change == "higher") == first)
            for metric, change in self.contrast.among.items()
        }
        kind = "compositional" if cell.exhibit == "erm4.readers" else self.kind
        return tuple(line(i, kind, values, among) for i in range(N))


def verdict(claim, number, tier, which):
    """which: 0, records as the claim would have them; 1, as it would not."""
    contrast = claim.contrasts[number]
    exhibit = exhibit_of(paper(), claim, contrast)
    table = {}

    def put(cell, side, value):
        values = table.setdefault((cell.exhibit, cell.condition.hash), {})
        values[side.get("metric", contrast.metric)] = value

    for pair in pair_cells(exhibit, contrast, tier):
        sides = (contrast.more, contrast.less)
        for cell, side, value in zip(pair, sides, levels(contrast)[which], strict=True):
            if cell is not None:
                put(cell, side, value)
        for cell, side in _subtracted(exhibit, contrast, pair[0]):
            put(cell, side, 0.5)  # nothing is gained there
    alone = replace(claim, contrasts=(replace(contrast, premise=False),))
    one = replace(paper(), claims=(alone,))
    [judged] = judge(one, tier, Made(table, contrast))
    return judged.verdict


@pytest.mark.parametrize(("name", "number", "tier"), list(decided(paper())))
def test_a_verdict_turns_with_its_records(monkeypatch, name, number, tier):
    monkeypatch.setattr(gate, "of_training", lambda *_: None)  # proofs are tested with the gate
    claim = paper().claim(name)
    holds, fails = (verdict(claim, number, tier, which) for which in (0, 1))
    wanted = ("mechanism holds", "mechanism fails")
    if tier != "testbed":
        wanted = ("reproduced", "not reproduced")
    assert (holds.word, fails.word) == wanted, (holds.reason, fails.reason)


def test_no_row_waits():
    assert not [row for e in paper().exhibits.values() for row in e.methods.values() if row.waits]


# --------------------------------------------------------------- rows and trainings


def every():
    return [cell for exhibit in paper().exhibits.values() for cell in exhibit.cells()]


def test_what_is_asked_is_what_the_row_says():
    for cell in every():
        settings, row = cell.condition.configured, cell.keys["method"]
        if cell.condition.method != "erm4":
            continue
        assert not settings.own_candidates
        if settings.prompt is None:
            assert cell.condition.reader is None, cell
        if row.startswith("original_"):
            assert settings.asked == "original"
        if "filter" in row or row.startswith("full"):
            assert settings.filter == "nli" or "prompted" in row or settings.memory is None


ONE_QUERY = {"rrr", "one", "rrr_filter", "rrr_memory", "rrr_filter_memory"}
PROMPTED = {"prompted", "prompted_one", "prompted_rrr", "prompted_plus", "prompted_full"}


def test_one_query_and_several_are_written_by_the_same_rewriter():
    """So that a difference between them is none between prompted and tuned."""
    for key in ("table1", "kinds", "fig2", "rewriters", "together"):
        rewriters = {}
        for cell in paper().exhibit(key).cells():
            settings, row = cell.condition.configured, cell.keys["method"]
            if getattr(settings, "rewrite", "none") == "none" or row in ("checked", "larger"):
                continue
            side = "prompted" if row in PROMPTED else "tuned"
            assert settings.rewrite == "query" or row not in ONE_QUERY, (key, row)
            place = cell.tier, cell.keys["dataset"], side
            rewriters.setdefault(place, set()).add((settings.rewriter, settings.rewriter_shots))
        wanted = {"tuned": {("erm4-rewriter-testbed", False)}}
        wanted["prompted"] = {("smollm2-135m", True)}
        wanted["paper"] = {("erm4-rewriter-gemma-2b", False)}
        for (tier, _, side), held in rewriters.items():
            assert held == wanted["paper" if tier == "paper" else side], key
        assert {side for *_, side in rewriters} >= {"tuned"}, key


def test_a_rewriter_is_tried_where_it_could_win():
    """Two things in a question and one vector of it; where names tell all, beside as a row."""
    for key in ("table1", "fig2", "rewriters", "table3", "kinds"):
        for cell in paper().exhibit(key).cells("testbed"):
            if cell.keys["method"] in ("direct", "rewritten_none"):
                assert cell.condition.retriever is None, cell
                continue
            lexical = cell.keys["method"].endswith("_lexical")
            assert cell.condition.retriever == ("bm25" if lexical else "minilm"), cell
            ends = cell.keys["dataset"].rpartition("-")[2]
            assert ends in ("several", "ambiguous"), cell
    [popqa] = [
        c for c in paper().exhibit("table1").cells("public")
        if c.matches({"dataset": "popqa", "method": "plus"})
    ]  # fmt: skip
    assert popqa.condition.retriever == "bm25"


def test_every_row_of_an_answer_is_given_as_many_passages():
    for key in ("table1", "table3", "fig3", "kinds", "back_off"):
        sizes = {c.condition.configured.k for c in paper().exhibit(key).cells()
                 if c.condition.method == "erm4" and c.condition.configured.search}  # fmt: skip
        assert sizes == {5}, key


def test_single_hop_sets_have_the_strong_hypothesis_and_multi_hop_sets_the_weak_one():
    several = ("hotpotqa", "2wikimultihopqa")
    for exhibit in ("table1", "table3", "table2", "together", "back_off"):
        for cell in paper().exhibit(exhibit).cells():
            hypothesis = getattr(cell.condition.configured, "hypothesis", None)
            if hypothesis is None:
                continue
            dataset = cell.condition.dataset
            wanted = "weak" if dataset in several else "strong"
            if dataset.startswith("world") and not dataset.endswith("ambiguous"):
                wanted = "by_hops"
            assert hypothesis == wanted, (exhibit, cell.keys)


def test_a_memory_is_filled_from_other_questions_over_the_same_corpus():
    pairs = {
        (c.condition.dataset, c.condition.configured.fill, c.condition.configured.fill_split)
        for c in every()
        if getattr(c.condition.configured, "memory", None) == "filled"
    }
    known = {
        ("world-B-again-halves", "world-B-asked-halves", "all"),
        ("world-B-again", "world-B-asked", "all"),
        ("world-B", "world-B-asked", "all"),
        ("ambignq_again", "ambignq_asked", "test"),
        ("world-A-again-halves", "world-A-asked-halves", "tune"),
    }
    assert pairs <= known
    assert len(pairs) > 2


def test_what_is_tuned_on_is_tested_nowhere():
    tuned = {(c.condition.dataset, c.condition.split) for c in every()}
    tuned = {name for name, split in tuned if split != "test"}
    taken = {"world-A", "world-A-ambiguous", "world-A-several", "world-Z", "hotpotqa_train"}
    # Of these two other questions are tested: a split's ids are in no other.
    reworded = {"popqa", "ambignq_nq", "2wikimultihopqa_train"}
    assert tuned == {"world-A-again-halves", *taken, *reworded}
    tested = {c.condition.dataset for c in every() if c.condition.split == "test"}
    assert not any(name.startswith("world-A") or name.endswith("_train") for name in tested)


def test_conditions_that_are_one_share_their_records():
    def hashes(key, tier, **keys):
        return {c.condition.hash for c in paper().exhibit(key).cells(tier) if c.matches(keys)}

    for dataset, tier in (("world-B-ambiguous", "testbed"), ("popqa", "public")):
        for row in ("direct", "plus", "full"):
            ours = hashes("table1", tier, dataset=dataset, method=row)
            assert ours == hashes("table3", tier, dataset=dataset, method=row)
    assert hashes("readers", "public", dataset="hotpotqa", method="closed") == hashes(
        "table1", "public", dataset="hotpotqa", method="direct"
    )


def test_every_data_set_whose_answers_count_is_tried_by_the_gate():
    tried = {c.keys["dataset"] for c in paper().exhibit("readers").cells()}
    asked = {
        c.keys["dataset"]
        for c in every()
        if c.condition.reader and not c.timed and c.exhibit != "erm4.readers"
        if c.condition.split == "test"
    }
    assert asked <= tried
