"""A paper's files: read whole, and refused with the place where something is wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from rag_repro.study import papers
from rag_repro.study.papers import Contrast, StudyError
from rag_repro.study.retarget import retarget
from tests.study import mini

GAIN = "- {metric: recall, more: {method: qdc}, less: {method: sm}, delta: 2.0}"


def changed(tmp_path, monkeypatch, old, new, contrasts=GAIN):
    assert old in mini.PAPER
    monkeypatch.setattr(mini, "PAPER", mini.PAPER.replace(old, new, 1))
    return mini.paper(tmp_path, contrasts)


@pytest.mark.parametrize("name", papers.names())
def test_every_committed_paper_loads_and_all_its_conditions_configure(name):
    paper = papers.load(name)
    assert len({claim.id for claim in paper.claims}) == len(paper.claims)
    for exhibit in paper.exhibits.values():
        for cell in exhibit.cells():
            if "k" in cell.keys:
                assert cell.condition.configured.k == cell.keys["k"]
            assert cell.condition.method == exhibit.methods[cell.keys["method"]].run
            assert cell.exhibit == exhibit.name


def test_table5_of_drrag_has_a_cell_for_each_data_set_method_and_k():
    _, exhibit = papers.exhibit("drrag.table5")
    primary = exhibit.cells("public", "primary")
    assert len(primary) == 3 * 6 * 3
    assert {c.keys["dataset"] for c in primary} == {"musique", "hotpotqa", "2wikimultihopqa"}
    assert {c.keys["k"] for c in primary} == {3, 4, 6}
    assert not any(c.condition.configured.own_candidates for c in primary)
    own = [c for c in exhibit.cells("public") if c.condition.configured.own_candidates]
    assert {c.role for c in own} == {"secondary"}
    assert {c.keys["method"] for c in own} == {"bm25", "sm", "qdc", "qdc_bm25", "cis", "cfs"}
    assert {c.condition.dataset[:5] for c in exhibit.cells("testbed")} == {"world"}
    # Each tier has the classifier that was trained for it; labels need none.
    asked = [c for c in exhibit.cells() if c.condition.method in ("cis", "cfs")]
    named = {
        (c.tier, c.condition.configured.judge == "oracle", *c.condition.configured.needs)
        for c in asked
    }
    assert named == {
        ("public", False, "drrag-classifier"),
        ("testbed", False, "drrag-classifier-testbed"),
        ("public", False, "drrag-classifier-joint"),
        ("testbed", False, "drrag-classifier-testbed-joint"),
        ("public", True),
        ("testbed", True),
    }


def test_cells_expand_data_sets_then_methods_then_settings(tmp_path):
    cells = mini.paper(tmp_path, GAIN).exhibits["table1"].cells("public")
    keys = [tuple(cell.keys.values()) for cell in cells]
    assert keys[:4] == [
        ("hotpotqa", "sm", 3),
        ("hotpotqa", "sm", 4),
        ("hotpotqa", "qdc", 3),
        ("hotpotqa", "qdc", 4),
    ]
    assert len(keys) == 8
    qdc = cells[3].condition
    assert (qdc.method, qdc.retriever, qdc.configured.k, qdc.configured.k1) == (
        "qdc",
        "minilm",
        4,
        2,
    )


def test_what_a_grid_fixes_is_set_and_no_key(tmp_path, monkeypatch):
    fixed = "settings: {k: [3, 4]}\n        fixed: {max_new_tokens: 7}"
    paper = changed(tmp_path, monkeypatch, "settings: {k: [3, 4]}", fixed)
    cells = paper.exhibits["table1"].cells()
    assert {(c.tier, c.condition.configured.max_new_tokens) for c in cells} == {
        ("public", 7),
        ("testbed", 64),
    }
    assert {tuple(c.keys) for c in cells} == {("dataset", "method", "k")}


def test_a_setting_may_be_a_list_in_a_row_and_where_it_is_fixed(tmp_path, monkeypatch):
    row = "run: dynamic, settings: {factors: [entropy]}, retr"
    fixed = "settings: {k: [3, 4]}\n        fixed: {factors: [entropy, meaning]}"
    monkeypatch.setattr(
        mini, "PAPER", mini.PAPER.replace("methods: [sm, qdc, cfs]", "methods: [qdc]")
    )
    paper = changed(tmp_path, monkeypatch, "run: qdc, retr", row, contrasts="")
    factors = {c.condition.configured.factors for c in paper.exhibits["table1"].cells("public")}
    assert factors == {("entropy",)}
    paper = changed(tmp_path, monkeypatch, "settings: {k: [3, 4]}", fixed, contrasts="")
    factors = {c.condition.configured.factors for c in paper.exhibits["table1"].cells("public")}
    assert factors == {("entropy", "meaning")}


def test_a_cell_matches_values_and_lists_of_them(tmp_path):
    cell = mini.paper(tmp_path, GAIN).exhibits["table1"].cells("public")[0]
    assert cell.matches({})
    assert cell.matches({"dataset": "hotpotqa", "k": [3, 4]})
    assert not cell.matches({"k": [4, 6]})
    assert not cell.matches({"reader": "x"})


def test_printed_values_are_text_as_the_paper_has_them(tmp_path):
    paper = mini.paper(tmp_path, GAIN)
    assert [entry["value"] for entry in paper.printed("table1")] == [
        "80.33",
        "86.12",
        "88.89",
        "3.00",
    ]


def test_printed_shares_stand_in_percent_to_the_same_digit(tmp_path, monkeypatch):
    table = "method,metric,value\nsm,recall,0.650\nqdc,recall,0.8612\nsm,passages,3.770\n"
    monkeypatch.setattr(
        mini,
        "PAPER",
        mini.PAPER.replace("values: table1.csv", "values: table1.csv\n    shares: true"),
    )
    paper = mini.paper(tmp_path, GAIN, table)
    assert [row["value"] for row in paper.printed("table1")] == ["65.0", "86.12", "3.770"]
    with pytest.raises(StudyError, match="the printed value 'n/a' is no number"):
        mini.paper(tmp_path, GAIN, table.replace("0.650", "n/a"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "title: Recall",
            "titel: Recall",
            r"exhibit table1: unknown key 'titel', did you mean 'title'",
        ),
        ("    place: table 1\n", "", "exhibit table1: the key 'place' is missing"),
        ("run: qdc", "runs: qdc", r"method qdc: unknown key 'runs', did you mean 'run'"),
        ("run: qdc", "run: qcd", r"exhibit table1: there is no method 'qcd', did you mean 'qdc'"),
        (
            "run: qdc, retr",
            "run: qdc, waits: x, retr",
            "method qdc: it has either `run`, or `waits`",
        ),
        (", waits: needs a classifier", "", "method cfs: it has either `run`, or `waits`"),
        ("baseline: sm", "baseline: smm", r"baseline 'smm' is unknown, did you mean 'sm'"),
        ("[sm, qdc, cfs]", "[sm, qdd]", r"exhibit table1: no method 'qdd', did you mean 'qdc'"),
        ("tier: public", "tier: publik", r"grid 1: tier 'publik', did you mean 'public'"),
        ("tier: testbed", "tier: testbed\n        role: first", "grid 2: role 'first'"),
        (
            "tier: testbed",
            "tier: testbed\n        sed: 1",
            r"grid 2: unknown key 'sed', did you mean 'seed'",
        ),
        ("settings: {k: [3, 4]}", "settings: {kk: [3, 4]}", "has no setting 'kk'"),
        ("settings: {k: [3, 4]}", "settings: {k: [0]}", "k is 0; it must be at least 1"),
        (
            "settings: {k: [3, 4]}",
            "settings: {k: [3, 4]}\n        fixed: {k: 5}",
            "setting 'k' is both varied and fixed",
        ),
        ("settings: {k: [3, 4]}", "fixed: {kk: 3}", "has no setting 'kk'"),
        (
            "metrics: [recall,",
            "metrics: [recal,",
            r"metric 'recal' is unknown, did you mean 'recall'",
        ),
        ("values: table1.csv", "values: table9.csv", "there is no file 'table9.csv'"),
        ("cite: mini2026", "quote: mini2026", ": unknown key 'quote'"),
        (
            "settings: {k: [3, 4]}",
            "settings: {k: [3, 4]}\n        reader: testbed-raeder",
            "grid 1: no weights named 'testbed-raeder'",
        ),
        (
            "settings: {k: [3, 4]}",
            "settings: {k: [3, 4]}\n        reader: drrag-classifier",
            "grid 1: drrag-classifier cannot be a reader: it is trained for 'similarities'",
        ),
        (
            "run: qdc, retr",
            "run: cfs, settings: {classifier: drrag-clasifier@256}, retr",
            r"table1: method qdc: there is no classifier 'drrag-clasifier', "
            r"did you mean 'drrag-classifier'\?",
        ),
        (
            "run: qdc, retr",
            "run: cfs, settings: {classifier: testbed-reader-1}, retr",
            "method qdc: testbed-reader-1 cannot be a classifier: it is trained for 'reader'",
        ),
        (
            "run: qdc, retr",
            "run: adaptive_rag, settings: {classifier: complexity-tesbed}, retr",
            r"method qdc: there is no classifier 'complexity-tesbed', "
            r"did you mean 'complexity-testbed'\?",
        ),
        (
            "run: qdc, retr",
            "run: recomp, settings: {kind: abstractive, compressor: recomp-abstractiv}, retr",
            "method qdc: no weights named 'recomp-abstractiv'",
        ),
        (
            "run: qdc, retr",
            "run: long_llmlingua, settings: {compressor: crag-evaluator}, retr",
            "method qdc: crag-evaluator cannot be a reader: it is trained for 'relevance'",
        ),
        (
            "run: qdc, retr",
            "run: recomp, settings: {encoder: minilmm}, retr",
            r"method qdc: no weights named 'minilmm', did you mean 'minilm'\?",
        ),
    ],
)
def test_what_is_wrong_in_a_paper_is_refused_with_its_place(
    tmp_path, monkeypatch, old, new, message
):
    with pytest.raises(StudyError, match=rf"^mini/paper.yaml.*{message}"):
        changed(tmp_path, monkeypatch, old, new)


@pytest.mark.parametrize(
    "name", ["drrag-classifier", "drrag-classifier-2", "drrag-classifier-joint@256", "mine/c"]
)
def test_a_classifier_may_be_a_recipes_another_seeds_with_less_room_or_a_folder(
    name, tmp_path, monkeypatch
):
    row = f"run: cfs, settings: {{classifier: {name}}}, retr"
    made = changed(tmp_path, monkeypatch, "run: qdc, retr", row)
    asked = [c for c in made.exhibits["table1"].cells() if c.condition.method == "cfs"]
    assert {c.condition.configured.classifier for c in asked} == {name}


@pytest.mark.parametrize(
    ("contrast", "message"),
    [
        ("more: {method: qcd}, less: {method: sm}", r"method 'qcd' is unknown, did you mean 'qdc'"),
        (
            "more: {method: qdc}, less: {metod: sm}",
            r"key 'metod' is unknown, did you mean 'method'",
        ),
        (
            "more: {method: qdc}, less: {method: sm}, where: {k: 5}",
            "no condition of mini.table1 has",
        ),
        ("more: {method: qdc, metric: rekall}, less: {method: sm}", r"metric 'rekall' is unknown"),
    ],
)
def test_a_contrast_of_cells_that_are_not_there_is_refused(tmp_path, contrast, message):
    with pytest.raises(StudyError, match=rf"^mini/claims.yaml, claim mini.c01: {message}"):
        mini.paper(tmp_path, f"- {{metric: recall, {contrast}, delta: 1}}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "exhibit: mini.table1",
            "exhibit: mini.tabel1",
            "exhibit 'mini.tabel1' is unknown, did you",
        ),
        ("exhibit: mini.table1", "exhibit: null", "needs the exhibit"),
        ("support_note", "supportnote", "unknown key 'supportnote', did you mean 'support_note'"),
        ("  scale:", "  chnaged: x\n  scale:", "unknown key 'chnaged', did you mean 'changed'"),
        ("  scale:", "  changed: ''\n  scale:", "`changed` says nothing"),
        ("  scale:", "  changed: [it asked else, ' ']\n  scale:", "`changed` says nothing"),
        ("  scale:", "  changed: [it asked else, 3]\n  scale:", "changed"),
    ],
)
def test_what_is_wrong_in_a_claim_is_refused(tmp_path, monkeypatch, old, new, message):
    monkeypatch.setattr(mini, "CLAIM", mini.CLAIM.replace(old, new))
    with pytest.raises(StudyError, match=rf"^mini/claims.yaml, claim mini.c01: .*{message}"):
        mini.paper(tmp_path, GAIN)


def test_a_claim_id_may_stand_only_once(tmp_path):
    mini.paper(tmp_path, GAIN)
    claims = tmp_path / "mini" / "claims.yaml"
    claims.write_text(claims.read_text() * 2)
    with pytest.raises(StudyError, match=r"claim mini.c01: its id occurs twice"):
        papers.read(tmp_path / "mini")


def test_a_file_that_is_no_yaml_is_named(tmp_path):
    mini.paper(tmp_path, GAIN)
    (tmp_path / "mini" / "claims.yaml").write_text("- {id: [")
    with pytest.raises(StudyError, match=r"claims.yaml: not valid YAML"):
        papers.read(tmp_path / "mini")


def test_unknown_papers_and_exhibits_are_refused_with_the_nearest():
    with pytest.raises(StudyError, match=r"no paper 'drag', did you mean 'drrag'"):
        papers.load("drag")
    with pytest.raises(StudyError, match=r"no exhibit 'drrag.tabel5', did you mean 'drrag.table5'"):
        papers.exhibit("drrag.tabel5")


def test_for_an_exhibit_only_its_own_paper_is_read(monkeypatch):
    asked = []
    known = papers.load
    monkeypatch.setattr(papers, "load", lambda name: asked.append(name) or known(name))
    papers.exhibit("dragin.table2")
    assert set(asked) == {"dragin"}


def test_a_margin_alone_allows_no_target_and_no_loss():
    with pytest.raises(StudyError, match="needs a margin"):
        Contrast("recall", {}, {}, delta=1.0, no_loss=True)


# -------------------------------------------------------------------------------- other ground


def conditions(paper, tier=None):
    return [cell.condition for cell in paper.exhibits["table1"].cells(tier)]


def test_retarget_without_wishes_changes_nothing(tmp_path):
    paper = mini.paper(tmp_path, GAIN)
    assert [c.hash for c in conditions(retarget(paper))] == [c.hash for c in conditions(paper)]


def test_retarget_to_a_world_makes_one_testbed_grid(tmp_path):
    moved = retarget(mini.paper(tmp_path, GAIN), datasets=["world-C@2000"])
    cells = moved.exhibits["table1"].cells()
    assert {(c.tier, c.keys["dataset"]) for c in cells} == {("testbed", "world-C@2000")}
    # sm and qdc at k = 3 and 4, each once in the two grids that differ in their methods
    assert len({c.condition.hash for c in cells}) == 4


def test_what_is_tuned_on_moves_to_no_other_data_set():
    """Worlds B to D have no tune questions; a chapter re-run on one must not ask for them."""
    here = papers.load("drrag")
    assert "tune" in {g.split for g in here.exhibits["threshold"].grids}
    moved = retarget(here, datasets=["world-C"]).exhibits["threshold"]
    assert {c.condition.split for c in moved.cells()} == {"test"}
    stays = retarget(here, n=5).exhibits["threshold"]
    assert {c.condition.split for c in stays.cells()} == {"test", "tune"}


def test_retarget_to_real_data_is_public_and_keeps_the_roles():
    moved = retarget(papers.load("drrag"), datasets=["nq"])
    cells = moved.exhibits["table5"].cells()
    assert {c.tier for c in cells} == {"public"}
    assert [len(moved.exhibits["table5"].cells(role=r)) for r in ("primary", "secondary")] == [
        6 * 3,
        # Four tuned selections and two controls at three k, eight controls and CFS over BM25 at
        # one, and own candidates; a cross-encoder's two selections and their control at one.
        6 * 3 + 8 + 1 + 6 * 3 + 3,
    ]


def test_on_a_world_no_question_has_own_candidates():
    moved = retarget(papers.load("drrag"), datasets=["world-C"])
    cells = moved.exhibits["table5"].cells()
    assert {c.keys["own_candidates"] for c in cells} == {False}
    assert len(cells) == len({(c.keys["method"], c.keys["k"]) for c in cells}) == 12 * 3 + 8 + 1 + 3


TOWN = f"folder:{Path(__file__).parents[2] / 'notebooks' / 'your_own' / 'town'}"


def test_rows_search_the_corpus_where_questions_come_without_candidates():
    def searched(dataset):
        cells = retarget(papers.load("r2ag"), datasets=[dataset]).exhibits["table1"].cells()
        return {c.condition.configured.own_candidates for c in cells}

    assert searched("world-C") == searched(TOWN) == {False}
    assert searched("world-C-10") == searched("nq10") == {True}


def test_the_papers_large_readers_do_not_move_to_other_data():
    paper = papers.load("r2ag")
    moved = retarget(paper, datasets=["world-C"]).exhibits
    for key in ("table1", "table2", "fig5"):
        readers = {cell.condition.reader for cell in moved[key].cells()}
        assert not [name for name in readers if name.startswith("hub:")]
    named = retarget(paper, datasets=["world-C"], reader="gemma3-270m").exhibits["table2"]
    assert {cell.condition.reader for cell in named.cells()} == {"gemma3-270m"}


def test_on_a_world_the_classifier_is_the_testbeds():
    for dataset, name in (("world-C", "drrag-classifier-testbed"), ("nq", "drrag-classifier")):
        moved = retarget(papers.load("drrag"), datasets=[dataset])
        cells = [c for c in moved.exhibits["table5"].cells() if c.condition.method == "cfs"]
        named = {c.condition.configured.classifier for c in cells}
        assert named == {name, f"{name}-joint", None}  # none where the labels judge


def test_another_retriever_leaves_chance_to_chance():
    moved = retarget(papers.load("drrag"), retriever="bm25")
    named = {c.keys["method"]: c.condition.retriever for c in moved.exhibits["table5"].cells()}
    assert named.pop("random") == "random"
    assert set(named.values()) == {"bm25"}


def test_retarget_moves_retriever_n_seed_and_settings(tmp_path):
    paper = mini.paper(tmp_path, GAIN)
    moved = retarget(paper, retriever="bm25", reader="tiny", n=7, seed=3, settings={"k": [5]})
    cells = moved.exhibits["table1"].cells()
    assert {(c.condition.retriever, c.condition.reader, c.n, c.condition.seed) for c in cells} == {
        ("bm25", "tiny", 7, 3)
    }
    assert {c.keys["k"] for c in cells} == {5}
    assert {c.tier for c in cells} == {"public", "testbed"}
    assert {c.condition.retriever for c in paper.exhibits["table1"].cells()} == {"minilm"}


def test_a_row_without_a_retriever_gets_none(tmp_path):
    paper = mini.paper(tmp_path, GAIN)
    exhibit = paper.exhibits["table1"]
    bare = {n: dataclasses.replace(row, retriever=None) for n, row in exhibit.methods.items()}
    exhibit = dataclasses.replace(exhibit, methods=bare)
    moved = retarget(dataclasses.replace(paper, exhibits={"table1": exhibit}), retriever="bm25")
    assert {c.retriever for c in conditions(moved)} == {None}


def test_a_row_is_labelled_with_what_searched_for_it():
    moved = retarget(papers.load("drrag"), retriever="bm25").exhibit("table5").methods
    assert moved["sm"].label == "SM, by bm25"
    own = papers.load("drrag").exhibit("table5").methods["bm25"]
    assert moved["bm25"] == own


def test_a_setting_that_a_chapter_moves_takes_the_place_of_what_grids_fix_and_vary():
    paper = papers.load("dragin")
    moved = retarget(paper, settings={"threshold": (0.3,)})
    for key, given in (("table2", "fixed"), ("table5", "settings")):
        grids = [getattr(grid, given).get("threshold") for grid in moved.exhibit(key).grids]
        assert {value for value in grids if value is not None} == (
            {0.3} if given == "fixed" else {(0.3,)}
        )
        cells = [c for c in moved.exhibit(key).cells() if c.keys["method"] == "dragin"]
        assert {c.condition.configured.threshold for c in cells} == {0.3}


def test_a_setting_of_rows_is_moved_but_for_those_that_it_tells_apart():
    def settings(paper, key, name, value):
        moved = retarget(papers.load(paper), settings={name: (value,)}).exhibit(key)
        return {
            c.keys["method"]: getattr(c.condition.configured, name, None) for c in moved.cells()
        }

    fed = settings("erm4", "table1", "k", 7)
    assert {fed[name] for name in ("rrr", "plus", "full")} == {7}
    sent = settings("erm4", "rewriters", "queries", 2)
    assert (sent["plus"], sent["first"], sent["question"]) == (2, 1, None)
    apart = settings("dragin", "readers", "k", 9)
    assert (apart["three"], apart["six"]) == (3, 6)
    assert settings("r2ag", "table1", "k", 5)["r2ag"] == 5
    assert settings("dragin", "tuning", "top_n", 12)["dragin"] == 12
    # What a method cannot take stays: ERM4's `noise` gives all passages itself, and of five no
    # six come from the first search.
    assert 7 not in settings("erm4", "noise", "k", 7).values()
    split = retarget(papers.load("drrag"), settings={"k": (5,)}).exhibit("split").cells()
    assert {c.keys["k"] for c in split} == {5, 6}
    assert (
        "top_n"
        not in retarget(papers.load("dragin"), settings={"top_n": (12,)})
        .exhibit("readers")
        .methods["gold"]
        .settings
    )


@pytest.mark.parametrize("name", papers.names())
def test_fewer_questions_move_no_condition(name):
    paper = papers.load(name)
    moved = retarget(paper, n=5)
    for key, exhibit in paper.exhibits.items():
        left = {cell.condition.hash for cell in moved.exhibits[key].cells()}
        assert left == {cell.condition.hash for cell in exhibit.cells()}, key
