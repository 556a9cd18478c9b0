"""What is not run says so in one way, with the commands that make it in their order."""

from __future__ import annotations

import pytest

from rag_repro.lm import hub
from rag_repro.show import missing
from rag_repro.show.exhibit_rows import Row
from rag_repro.show.table import Table
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

METHODS = {
    "cfs": ExhibitMethod("CFS", "cfs", "bm25", {"classifier": "drrag-classifier-testbed-1"}),
    "joint": ExhibitMethod("Joint", "cfs", "bm25", {"classifier": "drrag-classifier-joint@256"}),
    "sm": ExhibitMethod("SM", "single_step", "bm25"),
    "recomp": ExhibitMethod("RECOMP", "recomp", "bm25", {"kind": "abstractive"}),
}
RUN = "rag-repro run mini.answers --tier testbed"


@pytest.fixture(autouse=True)
def artifacts(tmp_path, monkeypatch):
    folder = tmp_path / "artifacts"
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(folder))
    return folder


def cells(*methods, reader=None, timed=False, tier="testbed"):
    grid = Grid(tier, ("world-B",), methods, {"k": (4,)}, reader=reader)
    return Exhibit("mini.answers", "", "", ("acc",), METHODS, (grid,), timed=timed).cells()


def test_what_must_be_trained_comes_first_and_each_command_once():
    made = missing.of_cells(cells("cfs", "sm", "joint", reader="testbed-reader"))
    assert made.commands == (
        "rag-repro train testbed-reader",
        "rag-repro train drrag-classifier-testbed --seed 1",
        "rag-repro train drrag-classifier-joint",
        RUN,
    )
    assert str(made) == "not run: " + ", then ".join(f"`{command}`" for command in made.commands)


def test_a_compressor_is_trained_like_a_reader():
    made = missing.of_cells(cells("recomp", reader="smollm2-135m"))
    assert made.commands == ("rag-repro train recomp-abstractive-testbed", RUN)


def test_what_is_trained_and_what_nobody_trains_is_not_asked_for(artifacts):
    (artifacts / "testbed-reader").mkdir(parents=True)
    (artifacts / "testbed-reader" / hub.ADAPTER).write_bytes(b"")
    assert missing.of_cells(cells("sm", reader="testbed-reader")).commands == (RUN,)
    assert missing.of_cells(cells("sm", reader="smollm2-135m")).commands == (RUN,)


def test_timed_cells_are_timed_by_data_set():
    made = missing.of_cells(cells("sm", timed=True))
    assert made.commands == ("rag-repro time mini.answers --dataset world-B",)


def test_a_note_asks_for_the_cells_that_lack_records_alone(tmp_path):
    [held] = cells("sm")
    results = Results(tmp_path / "records")
    assert missing.note([held], results).text == f"Not run: `{RUN}`."
    with open_record(tmp_path / "records", held.condition, {}) as record:
        record.append({"id": "q", "cluster": "q", "hits": [], "scores": {}})
    results = Results(tmp_path / "records")
    [other] = cells("cfs", tier="public")
    told = missing.note([held, other], results).text
    assert told.endswith("`rag-repro run mini.answers --tier public`.")
    assert RUN not in told
    assert missing.note([held], results).text == (
        "The records of this exhibit hold nothing of this kind."
    )
    assert missing.note([], results, "A *caption*").text == (
        "A \\*caption\\*: this exhibit has no such condition at this tier."
    )


def row(note, value=None, tier="public"):
    return Row("mini.x", tier, "primary", {"dataset": "d", "method": "m"}, "acc", note=note)


def test_rows_that_wait_for_a_method_are_not_to_be_run():
    made = missing.note_of_rows([row("not run; as printed"), row("for its method", tier="testbed")])
    assert made.text == "Not run: `rag-repro run mini.x --tier public`."
    assert "no such condition" in missing.note_of_rows([row("for its method")]).text


def test_a_cell_of_a_table_shows_commands_as_code_and_stays_text():
    table = Table(["a"], [[missing.Missing(("rag-repro run <b>", "two"))], ["`x`"]])
    html = table._repr_html_()
    assert "not run: <code>rag-repro run &lt;b&gt;</code>, then <code>two</code>" in html
    assert "`x`" in html
    assert "| not run: `rag-repro run <b>`, then `two` |" in repr(table)
    assert str(missing.Missing()) == "not run"
