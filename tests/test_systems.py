"""The methods by their papers' names: what each name comes to, and comparisons of several."""

from __future__ import annotations

import dataclasses

import pytest

from rag_repro import cli, comparison, quick
from rag_repro.methods import base, systems
from rag_repro.schema import Passage, Retrieve
from rag_repro.schema.dataset import Corpus
from rag_repro.schema.errors import ReaderError
from rag_repro.study import campaign, papers
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.papers import StudyError
from rag_repro.study.services import Workshop
from rag_repro.study.setups import CannotServe, listing, setup
from tests.lm.scripted_reader import ScriptedReader

NAMES = [
    "drrag",
    "drrag-cis",
    "drrag-qdc",
    "erm4",
    "dragin",
    "dragin-released",
    "r2ag",
    "bm25-rag",
    "flare",
    "ircot",
    "self-rag",
    "adaptive-rag",
    "crag",
    "recomp",
    "longllmlingua",
    "fl-rag",
    "fs-rag",
    "no-retrieval",
]
FOUR = ("drrag", "erm4", "dragin", "r2ag")
API = "api:model@http://127.0.0.1:1/v1"


class Bench(Workshop):
    """A workshop whose readers follow a script."""

    def __init__(self, script=lambda prompt: "Tobias Fenn"):
        super().__init__()
        self.scripted = ScriptedReader(script)

    def reader(self, name):
        if name == "broken":
            raise ValueError("the reader is broken")
        return self.scripted


# ------------------------------------------------------------------ names


@pytest.mark.parametrize("name", NAMES)
def test_every_common_name_is_a_method_with_settings_that_it_takes(name):
    made = setup(name, {})
    assert made.configured.prompt
    assert made.system.does.endswith(".")
    assert made.system.paper
    assert made.system.costs
    assert set(made.system.settings) <= {f.name for f in dataclasses.fields(made.configured)}


@pytest.mark.parametrize("spelt", ["BM25-RAG", "bm25_rag", "bm25 rag"])
def test_a_name_may_be_spelt_otherwise(spelt):
    assert systems.get(spelt) is systems.get("bm25-rag")


def test_a_method_s_own_name_stays_one_without_settings():
    assert systems.get("dynamic").settings == {}
    assert systems.get("dynamic").needs == "attention"
    # Self-RAG has one name only, however it is spelt.
    assert systems.get("self_rag") is systems.get("self-rag")


def test_a_method_of_one_s_own_hides_a_system_of_its_name(monkeypatch):
    monkeypatch.setattr(base, "_OWN", {})

    @base.method("drrag")
    def drrag(question, settings):
        yield Retrieve(question.text, k=1)

    assert systems.get("drrag").method == "drrag"
    assert systems.get("drrag").settings == {}


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"no method 'dragn', did you mean 'dragin'\?.*rag-repro"):
        systems.get("dragn")


def test_defaults_are_those_of_the_book_s_main_results():
    """Settings of a name are those of rows of our exhibits, where these run the same method."""
    dragin = setup("dragin", {}).configured
    rows = [
        cell.condition.configured
        for cell in papers.exhibit("dragin.table2")[1].cells("public")
        if cell.keys["method"] == "dragin" and cell.keys["dataset"] == "hotpotqa"
    ]
    assert {row.threshold for row in rows} == {dragin.threshold}
    drrag = setup("drrag", {})
    [row, *_] = [
        cell.condition
        for cell in papers.exhibit("drrag.table2")[1].cells("public")
        if cell.keys["method"] == "dr_rag"
    ]
    assert drrag.system.method == row.method
    assert drrag.retriever == row.retriever
    for name in ("classifier", "threshold", "k", "k1", "first"):
        assert getattr(drrag.configured, name) == getattr(row.configured, name)


def test_a_yaml_names_a_system_and_a_shared_name_stays_the_method():
    """`r2ag` is both: in a YAML it is the method, as records are named."""
    rows = {
        "a": ExhibitMethod("a", run="dragin", retriever="bm25", settings={"threshold": 0.7}),
        "b": ExhibitMethod("b", run="r2ag", retriever="minilm"),
    }
    grid = Grid("public", ("world-B",), ("a", "b"), reader="r2ag-mixed")
    first, second = Exhibit("x.y", "", "", (), rows, (grid,)).cells()
    assert first.condition.method == "dynamic"
    assert first.condition.settings == {**systems.get("dragin").settings, "threshold": 0.7}
    assert second.condition.settings == {}


# ------------------------------------------------------------------ readers that serve


def test_trained_readers_are_chosen_by_what_they_were_trained_over():
    assert setup("r2ag", {}).reader == "r2ag-mixed"
    assert setup("r2ag", {}, reader="testbed-reader").reader == "r2ag-reasoning"
    assert setup("r2ag", {}, reader="r2ag-mixed-free").reader == "r2ag-mixed-free"
    assert setup("self-rag", {}).reader == "selfrag-reader"
    assert setup("dragin", {}, reader="public-reader").reader == "public-reader"


@pytest.mark.parametrize("name", [n for n in NAMES if systems.get(n).needs])
def test_an_endpoint_is_refused_where_a_method_looks_into_the_reader(name):
    with pytest.raises(CannotServe, match=r"no endpoint gives; name a reader on this machine"):
        quick.ask("Who?", Corpus("c", (Passage("a", "", "b"),)), method=name, reader=API)


@pytest.mark.parametrize("name", [n for n in NAMES if not systems.get(n).needs])
def test_an_endpoint_serves_the_others(name):
    assert setup(name, {}, reader=API).reader == API


def test_a_reader_that_was_not_trained_for_it_is_refused():
    with pytest.raises(CannotServe, match=r"for which public-reader was not trained; .*r2ag-mixed"):
        setup("r2ag", {}, reader="public-reader")
    with pytest.raises(CannotServe, match="spelling='released'"):
        setup("self-rag", {}, reader="qwen2.5-0.5b")
    assert setup("self-rag", {"spelling": "released"}, reader="hub:a/b@c").reader == "hub:a/b@c"


def test_what_searches_while_it_writes_needs_a_reader():
    with pytest.raises(CannotServe, match="dragin needs a reader"):
        setup("dragin", {}, reader=None)
    assert setup("drrag", {}, reader=None).configured.prompt is None


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUR)
def test_the_four_answer_by_their_names_with_what_is_shipped(name, monkeypatch):
    monkeypatch.chdir(quick.__file__.rpartition("rag_repro")[0])
    asked = quick.ask(
        "Where was the founder of the storm bell born?",
        "folder:notebooks/your_own/town",
        method=name,
        max_new_tokens=32,
    )
    assert asked.prediction
    assert asked.answer.cost.retrievals >= 1
    assert "<|im" not in repr(asked)


# ------------------------------------------------------------------ listing


def test_the_listing_has_every_name_with_all_its_settings(capsys):
    assert [one["name"] for one in listing()] == list(systems.known())
    assert cli.main(["methods", "dragin", "R2AG"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "threshold=0.2" in printed
    assert "reader r2ag-mixed; encoder minilm" in printed
    assert "drrag-classifier" not in printed
    assert cli.main(["methods", "draggin"]) == 2
    assert "did you mean 'dragin'" in capsys.readouterr().err


# ------------------------------------------------------------------ comparisons


def test_settings_per_method_and_sweeps_are_rows(tmp_path, town):
    made = comparison.compare(
        {"no-retrieval": None, "bm25-rag": {"k": [1, 2], "prompt": "short"}, "drrag-qdc": {"k": 3}},
        town,
        tmp_path,
        n=2,
        services=Bench(),
        max_new_tokens=8,
    )
    assert list(made.cells) == ["no-retrieval", "bm25-rag (k 1)", "bm25-rag (k 2)", "drrag-qdc"]
    settings = [cell.condition.configured for cell in made.cells.values()]
    assert [one.k for one in settings][1:] == [1, 2, 3]
    assert {one.max_new_tokens for one in settings} == {8}
    assert [one.prompt for one in settings] == ["chat", "short", "short", "chat"]
    # Only the methods differ, if nothing else was asked for.
    assert {cell.condition.retriever for cell in made.cells.values()} == {"bm25"}
    assert (
        "rows differ in prompt (chat of no-retrieval, drrag-qdc; short of bm25-rag (k 1), "
        in repr(made)
    )


def test_a_list_that_is_one_value_is_no_sweep(tmp_path, town):
    rows = comparison._rows({"dragin": {"factors": ["entropy", "meaning"]}}, {})
    assert [label for label, _, _ in rows] == ["dragin"]
    with pytest.raises(ValueError, match="threshold \\[\\] names no value"):
        comparison.compare({"dragin": {"threshold": []}}, town, tmp_path, services=Bench())


def test_several_retrievers_are_rows_and_the_caption_says_so(tmp_path, town):
    made = comparison.compare(
        {"bm25-rag": {"retriever": ["bm25", "random"]}}, town, tmp_path, n=2, services=Bench()
    )
    assert list(made.cells) == ["bm25-rag (retriever bm25)", "bm25-rag (retriever random)"]
    assert "rows differ in retriever" in repr(made)
    assert made.difference("bm25-rag (retriever random)", "recall") is not None


def test_a_method_that_cannot_run_is_a_row_that_says_why(tmp_path, town):
    made = comparison.compare(
        {"dragin": {"reader": API}, "no-retrieval": {}, "bm25-rag": {"reader": "broken"}},
        town,
        tmp_path,
        n=2,
        services=Bench(),
    )
    assert set(made.failures) == {"dragin", "bm25-rag"}
    rows = {row[0]: row for row in made.table.body}
    assert "not run: dragin looks at the reader's attention" in rows["dragin"][1]
    assert "not run: the reader is broken" in rows["bm25-rag"][1]
    assert len(made.lines("no-retrieval")) == 2
    assert rows["no-retrieval"][3].startswith("50.00")
    assert made.lines("dragin") == ()


def test_questions_that_failed_are_told_and_asked_again_where_that_is_wished(tmp_path, town):
    down = {"server": True}

    def script(prompt):
        if down["server"] and "storm bell" in prompt:
            return ReaderError("the server is down")
        return "Tobias Fenn"

    def compared(**given):
        return comparison.compare(
            ["no-retrieval"], town, tmp_path, metrics=["acc"], services=Bench(script), **given
        )

    before = repr(compared())
    assert "of no-retrieval failed and count as wrong; failed=True asks them again" in before
    down["server"] = False
    assert repr(compared()) == before
    again = compared(failed=True)
    assert "failed" not in repr(again)
    assert again.to_frame().error.isna().all()


def test_a_comparison_as_a_frame_and_as_a_picture(tmp_path, town):
    made = comparison.compare(["no-retrieval", "bm25-rag"], town, tmp_path, n=3, services=Bench())
    frame = made.to_frame()
    assert list(frame.groupby("method", sort=False).size()) == [3, 3]
    means = frame.groupby("method").acc.mean()
    assert means["bm25-rag"] == pytest.approx(100 / 3)
    assert set(frame[frame.method == "bm25-rag"].retrievals) == {1.0}
    picture = made.plot("acc", "retrievals")
    assert "bm25-rag: 33 at 1.0" in picture.alt
    with pytest.raises(ValueError, match="nothing to plot"):
        made.plot("acc", "seconds")


def test_a_file_compares_as_the_function_does(tmp_path, town, capsys, monkeypatch):
    monkeypatch.setattr("rag_repro.study.services.Workshop", lambda **given: Bench())
    file = tmp_path / "ours.yaml"
    file.write_text(
        f"methods: {{no-retrieval: , bm25-rag: {{k: [1, 2]}}}}\ndataset: {town}\nn: 2\n"
        f"results: {tmp_path / 'kept'}\nmetrics: [acc]\n"
    )
    assert cli.main(["compare-methods", str(file)]) == 0
    assert "| bm25-rag (k 2) | 50.00 [" in capsys.readouterr().out
    assert cli.main(["compare-methods", str(file), "--format", "csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 1 + 3 * 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("methods: [drrag]", "name methods and a dataset"),
        ("methods: [drrag]\ndataset: world-B\nn: many", "n cannot be 'many'"),
        ("methods: [drrag]\ndataset: world-B\nservices: x", "'services' cannot be given"),
        ("methods: [drrag]\ndataset: world-B\nthreshhold: 1", "no setting 'threshhold'"),
        ("- 1", "name methods and a dataset"),
    ],
)
def test_a_file_that_cannot_be_is_refused(tmp_path, capsys, text, told):
    file = tmp_path / "ours.yaml"
    file.write_text(text)
    assert cli.main(["compare-methods", str(file)]) == 2
    assert told in capsys.readouterr().err


@pytest.fixture
def town():
    return f"folder:{quick.__file__.rpartition('rag_repro')[0]}notebooks/your_own/town"


def _runs() -> dict[str, set[str]]:
    """Row of any paper's exhibit -> the methods that it runs there."""
    runs: dict[str, set[str]] = {}
    for paper in FOUR:
        for exhibit in papers.load(paper).exhibits.values():
            for name, row in exhibit.methods.items():
                runs.setdefault(name, set()).add(row.run)
    return runs


@pytest.mark.parametrize("name", sorted(systems.known()))
def test_what_exhibits_call_a_method_runs_it(name):
    system = systems.known()[name]
    runs = _runs()
    rows = [row for row in systems.rows(name) if row in runs]
    assert rows
    for row in rows:
        assert system.method in runs[row], row
    assert set(system.rows) <= set(runs)


def test_commands_find_a_method_of_an_exhibit_by_its_papers_name(capsys):
    chosen = [
        ("drrag.table5", "drrag", {"cfs"}),
        ("drrag.table2", "DRRAG", {"dr_rag"}),
        ("dragin.table2", "sr-rag", {"sr"}),
        ("erm4.table1", "erm4", {"full"}),
    ]
    for exhibit, name, rows in chosen:
        cells = campaign.select([exhibit], methods=[name])
        assert {cell.keys["method"] for cell in cells} == rows
    shown = ["show", "dragin.table2", "--list", "--where", "dragin right, sr-rag wrong"]
    assert cli.main(shown) == 0
    assert "(dragin right, sr-rag wrong)" in capsys.readouterr().out
    with pytest.raises(StudyError, match="no condition has the method 'crag'"):
        campaign.select(["drrag.table5"], methods=["crag"])
