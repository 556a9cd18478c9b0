"""A small chapter really executed: by our wrapper, and by plain papermill."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from rag_repro.publish import build as module
from rag_repro.publish.build import ChapterError, execute, stale
from rag_repro.publish.check import check
from rag_repro.publish.parameters import ParameterError

pytestmark = pytest.mark.slow


def printed(path):
    book = nbformat.read(path, as_version=4)
    return "".join(o.text for c in book.cells for o in c.get("outputs", []) if "text" in o)


def told(path):
    return json.loads(path.read_text())["metadata"]["rag_repro"]


def test_a_default_run_is_sound_and_says_what_it_read(places, monkeypatch):
    (places.notebooks / "told.txt").write_text("something")
    source = places.source("05_small")
    source.write_text(
        source.read_text().replace("import Path\n", "import Path\nimport os\nimport tqdm.auto\n")
        + '\n# %%\nprint(os.environ["TQDM_DISABLE"], Path(os.environ["RAG_REPRO_DATA"]).is_dir())\n'
    )
    monkeypatch.setenv("RAG_REPRO_DATA", "notebooks")
    before = os.environ.get("TQDM_DISABLE")
    out = execute("05_small", update=True, places=places)
    assert out == places.executed("05_small")
    assert check(out, places) == []
    assert printed(out) == "testbed 3 (3, 4) () something\n1 True\n"
    assert os.environ.get("TQDM_DISABLE") == before
    assert os.environ["RAG_REPRO_DATA"] == "notebooks"
    block = told(out)
    assert block["parameters"] == {}
    assert {"notebooks/told.txt", "notebooks/05_small.py"} <= set(block["inputs"])
    assert "numpy" in block["versions"]
    assert block["machine"]["cores"] >= 1
    assert block["memory_mb"] > 10
    # What was around the chapter's own cells is gone again.
    book = nbformat.read(out, as_version=4)
    assert [c.execution_count for c in book.cells if c.cell_type == "code"] == [1, 2, 3, 4]
    assert "probe" not in out.read_text().replace(".probe", "")
    assert "jupytext" not in book.metadata


def test_a_default_run_leaves_the_book_as_it_is_unless_it_is_asked(places, monkeypatch):
    assert execute("05_small", places=places) == places.runs / "05_small.ipynb"
    assert not places.executed("05_small").exists()

    def never(*given):
        raise AssertionError("a kernel was started")

    monkeypatch.setattr(module, "_run", never)
    with pytest.raises(ChapterError, match="the book holds default runs alone"):
        execute("05_small", {"n_questions": 5}, update=True, places=places)
    places.own_records.parent.mkdir(parents=True, exist_ok=True)
    places.own_records.touch()
    with pytest.raises(ValueError, match="is a file, so nothing can be below it"):
        execute("05_small", {"n_questions": 5}, places=places)


def test_two_equal_runs_differ_in_nothing_but_the_note_of_the_run(places):
    first = nbformat.read(execute("05_small", places=places), as_version=4)
    second = nbformat.read(execute("05_small", places=places), as_version=4)
    assert first.cells == second.cells
    for book in (first, second):
        for key in ("started", "seconds", "memory_mb"):
            del book.metadata["rag_repro"][key]
    assert first.metadata == second.metadata


def test_a_copy_is_stale_when_what_it_read_has_changed(places):
    read, unread = places.notebooks / "told.txt", places.notebooks / "unread.txt"
    read.write_text("one")
    unread.write_text("one")
    folder = places.records / "world-B"
    folder.mkdir(parents=True)
    assert stale("05_small", places) == ["never executed"]
    execute("05_small", update=True, places=places)
    assert stale("05_small", places) == []
    unread.write_text("two")
    assert stale("05_small", places) == []
    read.write_text("two")
    assert stale("05_small", places) == ["notebooks/told.txt"]
    read.write_text("one")
    (folder / "a-record-of-others.jsonl").write_text("")
    assert stale("05_small", places) == []
    source = places.source("05_small")
    source.write_text(source.read_text().replace("# Small", "# Smaller"))
    assert stale("05_small", places) == ["its source changed"]


def test_a_run_with_other_parameters_lies_apart_and_hides_the_injected_cell(places):
    out = execute("05_small", {"n_questions": 5, "ks": [6]}, kernel="python3", places=places)
    assert out == places.runs / "05_small.ipynb"
    assert printed(out) == "testbed 5 (6,) ('n_questions', 'ks') nothing\n"
    assert told(out)["parameters"] == {"n_questions": 5, "ks": [6]}
    assert check(out, places) == []
    (injected,) = [
        c
        for c in nbformat.read(out, as_version=4).cells
        if "injected-parameters" in c.metadata.get("tags", [])
    ]
    assert "remove-cell" in injected.metadata["tags"]


def test_a_misspelt_parameter_and_a_wrong_value_are_refused(places):
    with pytest.raises(ParameterError, match="did you mean 'n_questions'"):
        execute("05_small", {"n_question": 5}, places=places)
    with pytest.raises(ParameterError, match="must be a whole number from 1"):
        execute("05_small", {"n_questions": 0}, places=places)
    with pytest.raises(ChapterError, match="no kernel 'julia-0' is installed"):
        execute("05_small", kernel="julia-0", places=places)
    assert not places.executed("05_small").exists()


def test_a_chapter_that_fails_is_told_with_its_cell_and_leaves_no_copy(places):
    source = places.source("05_small")
    source.write_text(source.read_text() + "\n# %%\n1 / 0\n")
    with pytest.raises(ChapterError, match="'1 / 0' raised ZeroDivisionError"):
        execute("05_small", places=places)
    assert not places.executed("05_small").exists()


def test_plain_papermill_runs_a_chapter_with_a_parameter(places):
    command = [sys.executable, "-m", "papermill", "notebooks/05_small.ipynb", "out.ipynb"]
    command += ["-p", "n_questions", "5", "-y", "{ks: [6]}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert printed(places.root / "out.ipynb").startswith("testbed 5 (6,) ('n_questions', 'ks')")


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"n_question": 5}, "unknown parameter 'n_question', did you mean 'n_questions'?"),
        ({"tier": "publik"}, "did you mean 'public'?"),
    ],
)
def test_plain_papermill_is_stopped_by_the_chapter_itself(places, parameters, complaint):
    from papermill import PapermillExecutionError, execute_notebook

    with pytest.raises(PapermillExecutionError, match=re.escape(complaint)):
        execute_notebook("notebooks/05_small.ipynb", "out.ipynb", parameters, progress_bar=False)


def test_an_output_that_cannot_be_is_told_before_the_chapter_runs(places, monkeypatch):
    monkeypatch.setattr("papermill.execute_notebook", None)
    (places.root / "notes.md").touch()
    for out, complaint in [
        (".", "is a folder; name a notebook in it"),
        ("notes.md", "is there and no notebook"),
        ("notes.md/x.ipynb", "notes.md is a file, so nothing can be below it"),
        ("/dev/null", "is no plain file"),
        ("/sys/x/y.ipynb", "cannot be written"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            execute("05_small", places=places, out=Path(out))


def test_an_error_that_names_a_wrong_parameter_comes_without_a_traceback(places):
    source = places.source("05_small")
    bad = "\n# %%\nclass Wrong(ValueError): ...\nif run.changed: raise Wrong('no such thing')\n"
    source.write_text(source.read_text() + bad)
    with pytest.raises(ChapterError, match="raised Wrong: no such thing") as told:
        execute("05_small", {"n_questions": 4}, places=places)
    assert "\n" not in str(told.value)
