"""R²AG's claims: each is decided by its records, and turns when they do; rows ask what they say."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import pytest
import yaml

from rag_repro.evaluation import metrics
from rag_repro.study import gate, names, papers
from rag_repro.study.judge import judge, pair_cells
from rag_repro.study.scores import Results
from tests.study.claims import Known, decided, exhibit_of, sides_of

N = 400
FORMERS = ("r2ag", "r2ag_raft")


@cache
def paper():
    return papers.load("r2ag")


# ------------------------------------------------------------------- claims


def test_all_claims_are_there_with_a_contrast_or_a_reason():
    claims = paper().claims
    assert [c.id for c in claims] == [f"r2ag.c{i:02}" for i in range(1, 44)]
    for claim in claims:
        assert bool(claim.contrasts) != bool(claim.no_contrast), claim.id
    support = [c.support for c in claims]
    assert [support.count(w) for w in ("yes", "partly", "no", "none")] == [9, 12, 2, 20]
    scale = [c.scale.split()[0] for c in claims]
    words = ("yes", "likely", "maybe", "unlikely", "na")
    assert [scale.count(w) for w in words] == [16, 8, 15, 3, 1]


def test_no_mean_is_over_two_readers():
    """What is frozen stays the same on each side; the key names it for trained rows too."""
    for claim, number, tier in decided(paper()):
        contrast = paper().claim(claim).contrasts[number]
        pairs = list(
            pair_cells(exhibit_of(paper(), paper().claim(claim), contrast), contrast, tier)
        )
        for side in zip(*pairs, strict=True):
            assert len({c.keys.get("reader") for c in side if c}) <= 1, (claim, contrast.label)


def test_a_claim_is_about_all_trainings_of_a_row():
    """Of what is compared no cell is one training, and no contrast asks for one."""
    for claim, number, tier in decided(paper()):
        contrast = paper().claim(claim).contrasts[number]
        assert not any("seed" in side for side in sides_of(contrast)), (claim, contrast.label)
        for pair in pair_cells(exhibit_of(paper(), paper().claim(claim), contrast), contrast, tier):
            assert not any(cell and "seed" in cell.keys for cell in pair)


# ------------------------------------------------ verdicts turn with what is recorded


def levels(contrast):
    """The metric's mean on both sides, where the claim holds, and where it does not."""
    unit = 1.0 if metrics.get(contrast.metric).unit == "percent" else 30.0
    if contrast.above:
        return (3 * contrast.target / 100, 1.0), (contrast.target / 200, 1.0)
    if contrast.ratio:
        at = contrast.target if contrast.margin is not None else contrast.target / 2
        return (at / 100, 1.0), (2 * contrast.target / 100, 1.0)
    if contrast.target is not None:
        return (0.3, None), (1.0, None)
    if contrast.margin is not None:
        return (unit / 2, unit / 2), (unit / 10, unit / 2)
    return (0.9 * unit, 0.1 * unit), (0.1 * unit, 0.9 * unit)


def line(number, kind, values):
    """A record's line with these metrics' values."""
    name = f"q{number:03}"
    made = {"id": name, "kind": kind, "cluster": name, "hits": [], "scores": {}, "cost": {}}
    for metric, value in values.items():
        match metric:
            case "seconds" | "seconds_reader":
                made["turns"] = [{"seconds": value, "clock": [["reader", value, 1]]}]
            case "prefilled_tokens":
                made["turns"] = [{"seconds": 1.0, "clock": []}]
                made["cost"]["prefilled_tokens"] = 1000 * value
            case "prompt_tokens":
                made["cost"]["prompt_tokens"] = 1000 * value
            case "new_tokens":
                made["cost"]["new_tokens"] = value
            case "answer_kept":
                made["compressed"] = {"answer": [True, number < value * N]}
            case "gold_kept_static" | "gold_kept_dynamic":
                first = metric == "gold_kept_static"
                made["gold"] = [["static", 1, 1], ["dynamic", 2, 2]]
                pairs = made.setdefault("compressed", {"gold": [None, None]})["gold"]
                pairs[0 if first else 1] = [100, 100 * value]
            case "log_likelihood":
                made["likelihood"] = [value - 50]
            case "length":
                made["scores"][metric] = value
            case str() if metric.startswith("attention_"):
                look(made, metric.removeprefix("attention_"), value)
            case _:
                made["scores"][metric] = float(number < value * N)
    return made


def look(line, name, value):
    """Two passages of ten words and ten marks each, the first of them gold, in eight layers."""
    line |= {"hits": ["a", "b"], "gold": [["static", 1, 1]]}
    none = {"tokens": [[10, 10]] * 2, "marks": [0] * 8, "words": [[0, 0] for _ in range(8)]}
    told = line.setdefault("attention", none)
    match name.removesuffix("_deep"):
        case "embedding":
            told["embeddings"] = [[1000 * value] * 2] * 8
        case "word":
            told["words"] = [[10 * 1000 * value] * 2] * 8
        case "mark":
            told["marks"] = [20 * 1000 * value] * 8
        case "gold" | "gold_words":
            told["words"] = [[1000 * value, 1000 * (1 - value)]] * 8
        case "gold_early" | "other_early" | "gold_near" | "other_near":
            for row in told["words"]:
                row[name.startswith("other")] = 1000 * value


class Made(Results):
    """Records that are not on a disk: what each cell scores."""

    def __init__(self, table, kind):
        self.table, self.kind = table, kind

    training_spreads = Known()

    def platforms(self, cell):
        return [frozenset()]

    def lines(self, cell):
        if cell.exhibit == "r2ag.readers":
            able = {"gold": 0.8, "closed": 0.1}
            values = {"acc_line": able[cell.keys["method"]]}
        else:
            values = self.table.get((cell.exhibit, cell.condition.hash))
        if values is None:
            return None
        kind = "compositional" if cell.exhibit == "r2ag.readers" else self.kind
        return tuple(line(i, kind, values) for i in range(N))


def verdict(claim, number, tier, which):
    """which: 0, records as the claim would have them; 1, as it would not."""
    contrast = claim.contrasts[number]
    table = {}
    for pair in pair_cells(exhibit_of(paper(), claim, contrast), contrast, tier):
        sides = (contrast.more, contrast.less)
        for cell, side, value in zip(pair, sides, levels(contrast)[which], strict=True):
            if cell is not None:
                values = table.setdefault((cell.exhibit, cell.condition.hash), {})
                values[side.get("metric", contrast.metric)] = value
        for side in (contrast.minus or {}).values():  # what is subtracted is nothing
            keys = {k: v for k, v in side.items() if k != "metric"}
            [cell] = (
                c for c in exhibit_of(paper(), claim, contrast).whole.cells(tier)
                if c.matches({**pair[0].keys, **keys})
            )  # fmt: skip
            values = table.setdefault((cell.exhibit, cell.condition.hash), {})
            values[side.get("metric", contrast.metric)] = 0.5
    alone = replace(claim, contrasts=(replace(contrast, premise=False),))
    one = replace(paper(), claims=(alone,))
    [judged] = judge(one, tier, Made(table, next(iter(contrast.kinds), "compositional")))
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


def test_rows_that_wait_say_what_for():
    table2 = paper().claim("r2ag.c06")
    [judged] = judge(replace(paper(), claims=(table2,)), "public", Made({}, None))
    assert judged.verdict.word == "not run"
    assert "needs a GPU" in judged.verdict.reason


# --------------------------------------------------------------- rows and trainings


@cache
def recipes():
    return yaml.safe_load(names.RECIPES.read_text(encoding="utf-8"))


def trained_cells():
    for exhibit in paper().exhibits.values():
        for cell in exhibit.cells():
            name = cell.condition.reader or ""
            bare, _, seed = name.rpartition("-")
            recipe = bare if seed.isdecimal() and bare in recipes() else name
            if recipes().get(recipe, {}).get("former"):
                yield cell, recipes()[recipe]["former"]


def test_rows_tell_a_former_what_it_was_trained_with():
    """Else a row without a feature would be asked of a former that learned from it."""
    seen = set()
    for cell, former in trained_cells():
        settings = cell.condition.configured
        row = cell.keys["method"]
        # Asked otherwise than it was taught on purpose; a time does not depend on weights.
        otherwise = {"shuffled_test": "shuffled", "constant_first": "constant"}
        if row in otherwise:
            assert (settings.inputs, former["inputs"]) == (otherwise[row], "features")
            continue
        assert settings.inputs == former.get("inputs", "features"), (cell.exhibit, row)
        if settings.encoder is not None:
            encoder = former.get("encoder", "minilm")
            assert settings.encoder == encoder == cell.condition.retriever, (cell.exhibit, row)
        columns = former.get("columns", ["relevance", "precedent", "neighbour"])
        assert list(settings.columns) == columns, (cell.exhibit, row)
        seen.add(row)
    assert {"r2ag", "free", "shuffled", "constant", "gold", "no_relevance"} <= seen
    assert {"r2ag_l3", "r2ag_lsa", "r2ag_bm25", "free_bm25", "r2ag_180", "r2ag_44"} <= seen


def test_a_former_learned_from_lists_of_the_retriever_that_ranks():
    seen = set()
    for cell, _ in trained_cells():
        name = cell.condition.reader.rstrip("-0123456789") + "-"
        recipe = recipes().get(cell.condition.reader) or recipes()[name.rstrip("-")]
        for lesson in recipe["lessons"]:
            assert lesson.get("retriever", "minilm") == cell.condition.retriever
        seen.add(cell.condition.retriever)
    assert seen == {"minilm", "minilm-l3", "lsa", "bm25"}


def test_r2ag_rows_have_a_trained_reader_and_plain_ones_have_none():
    """A former is a part of the reader; RAFT alone is trained and read by a plain method."""
    formers = {cell.condition.hash for cell, _ in trained_cells()}
    for exhibit in paper().exhibits.values():
        for cell in exhibit.cells():
            prompt = cell.condition.settings.get("prompt")
            informed = prompt in ("r2ag", "r2ag_plain", None) and (
                cell.condition.method in ("r2ag", "attention_check", "likelihood_check")
            )
            assert informed == (cell.condition.hash in formers), (exhibit.name, cell.keys)
            if cell.keys["method"] == "raft":
                assert cell.condition.reader.startswith("raft-")


TRAIN_FILES = ("hotpotqa_train", "2wikimultihopqa_train")


def test_nothing_is_trained_on_what_is_tested():
    learned = {
        lesson["dataset"]
        for name, recipe in recipes().items()
        if name.startswith(("r2ag-", "raft-"))
        for lesson in recipe["lessons"]
    }
    tested = {
        (c.condition.dataset, c.condition.split)
        for e in paper().exhibits.values()
        for c in e.cells()
    }
    # NQ's split file keeps its training questions from these (tests/data).
    tuned = {d for d, split in tested if split != "test"}
    worlds = {"world-A-10", "world-A-5", "world-Z-5"}
    assert tuned == {*worlds, "hotpotqa_train", "2wikimultihopqa_train", "nq"}
    assert (tuned - {"nq"}).isdisjoint(d for d, split in tested if split == "test")
    assert {d.split("-")[1] for d, s in tested if d.startswith("world") and s == "test"} == set(
        "BCD"
    )
    assert all(d.startswith("world-A") or d in ("nq", *TRAIN_FILES) for d in learned)


def test_everybody_reads_the_same_ten_passages():
    for exhibit in paper().exhibits.values():
        for cell in exhibit.cells():
            settings = cell.condition.configured
            if cell.condition.method in ("no_retrieval", "given_passages"):
                continue
            if exhibit.name == "r2ag.proof":  # lists as they were learned
                continue
            assert settings.own_candidates, (exhibit.name, cell.keys)
            if exhibit.name not in ("r2ag.fig4", "r2ag.table2"):
                assert cell.condition.retriever == "minilm"


def test_conditions_that_are_one_share_their_records():
    def hashes(key, tier, **keys):
        cells = [c for c in paper().exhibit(key).cells(tier) if c.matches(keys)]
        assert cells, (key, tier, keys)
        return {c.condition.hash for c in cells}

    grounds = {"testbed": "world-B-10", "public": "nq10"}
    for (tier, dataset), row in itertools.product(
        grounds.items(), ("rag", "r2ag", "free", "shuffled")
    ):
        main = hashes("table1", tier, method=row, dataset=dataset, reader="smollm2-135m")
        assert main == hashes("controls", tier, method=row, dataset=dataset)
    assert hashes("table3", "testbed", method="r2ag") == hashes("table1", "testbed", method="r2ag")
    for row in ("crag", "recomp_extractive", "recomp_abstractive", "long_llmlingua"):
        assert hashes("kept", "testbed", method=row) == hashes("table1", "testbed", method=row)


def test_no_more_passages_are_asked_for_than_a_question_has():
    most = {"nq10": 10, "nq20": 20, "nq30": 30, "hotpotqa": 10, "2wikimultihopqa": 10}
    places = {cell.condition.hash: former["places"] for cell, former in trained_cells()}
    most |= {"musique": 20, "dureader": 20, "world-B-20": 20, "hotpotqa_fullwiki": 10}
    for exhibit in paper().exhibits.values():
        for cell in exhibit.cells():
            if (room := places.get(cell.condition.hash)) is not None:
                assert cell.condition.configured.k <= room, (exhibit.name, cell.keys)
            if "k" in cell.keys and not cell.keys["dataset"].endswith(("gold", "nq")):
                assert cell.keys["k"] <= most.get(cell.keys["dataset"], 10), (exhibit.name, cell)
