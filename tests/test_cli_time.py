"""`rag-repro time`: what it hands on, and what it refuses."""

from __future__ import annotations

from rag_repro import cli
from rag_repro.study import timed_runs


def test_it_times_the_cells_that_are_chosen_one_question_at_a_time(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(timed_runs, "with_bar", lambda *given, **named: seen.append((given, named)))
    words = ["time", "drrag.scale", "--method", "bm25", "--dataset", "world-B@1000"]
    words += ["--n", "2", "--repeats", "3", "--results", str(tmp_path), "--dtype", "bfloat16"]
    assert cli.main(words) == 0
    [((cells, workshop, results), named)] = seen
    assert [(c.keys["method"], c.keys["dataset"], c.timed) for c in cells] == [
        ("bm25", "world-B@1000", True)
    ]
    assert (workshop.batch_size, workshop.dtype, results) == (1, "bfloat16", tmp_path)
    assert named == {"n": 2, "repeats": 3}


def test_an_exhibit_without_times_is_refused_in_one_line(capsys):
    assert cli.main(["time", "drrag.table5"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "drrag.table5 holds no times: rag-repro run drrag.table5" in err


def test_little_is_timed_for_real(tmp_path):
    words = ["time", "drrag.scale", "--method", "bm25", "--dataset", "world-B@1000", "--n", "2"]
    assert cli.main([*words, "--results", str(tmp_path / "records")]) == 0
    assert len(list((tmp_path / "times" / "drrag.scale").rglob("*.jsonl"))) == 1
