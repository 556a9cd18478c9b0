"""Committed records and times are added to only where that is asked for."""

from __future__ import annotations

import pytest

from rag_repro import book_folders, cli
from rag_repro.study import campaign, growth, runner, timed_runs


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty checkout, in whose folder the command is given."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_toc.yml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


RUN = ["run", "drrag.table5", "--dataset", "world-B", "--method", "bm25"]
TIME = ["time", "drrag.scale", "--method", "bm25", "--dataset", "world-B@1000"]
GROWTH = ["growth", "bm25", "--sizes", "1000"]


@pytest.mark.parametrize(
    ("words", "asks", "own", "committed"),
    [
        (RUN, "--record", "results/local/records", "results/records"),
        (TIME, "--continue", "results/local/records", "results/records"),
        (GROWTH, "--continue", "results/local/growth", "results/growth"),
    ],
)
def test_a_run_writes_to_the_users_own_folder_unless_it_is_asked(
    checkout, monkeypatch, words, asks, own, committed
):
    seen = []
    monkeypatch.setattr(campaign, "run", lambda cells, workshop, results, **_: seen.append(results))
    monkeypatch.setattr(
        timed_runs, "with_bar", lambda cells, shop, results, **_: seen.append(results)
    )

    def grow(retriever, sizes, folder, **_):
        seen.append(folder)
        return growth.Growth(retriever, "world-B", "", 1, 1, {}, {})

    monkeypatch.setattr(growth, "run", grow)
    for more in ([], [asks], ["--results", str(checkout / "named" / "records")]):
        assert cli.main([*words, *more]) == 0
    named = "named/growth" if words is GROWTH else "named/records"
    assert seen == [checkout / own, checkout / committed, checkout / named]


@pytest.mark.parametrize(("words", "asks"), [(RUN, "--record"), (TIME, "--continue")])
def test_a_folder_of_ones_own_and_the_committed_one_exclude_each_other(capsys, words, asks):
    assert cli.main([*words, asks, "--results", "elsewhere"]) == 2
    assert "leave them or --results out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "blocked"),
    [
        (RUN, "results/local/records/world-B"),
        ([*RUN, "--record"], "results/records/world-B"),
        (TIME, "results/local/times"),
        (GROWTH, "results/local/growth"),
        ([*GROWTH, "--continue"], "results/growth"),
    ],
)
def test_results_that_cannot_be_written_are_refused_before_the_work(
    checkout, capsys, monkeypatch, words, blocked
):
    def never(*given, **named):
        raise AssertionError("the work began")

    for module, name in ((runner, "run"), (timed_runs, "with_bar"), (growth, "run")):
        monkeypatch.setattr(module, name, never)
    (checkout / blocked).parent.mkdir(parents=True)
    (checkout / blocked).touch()  # a file, where a folder must be
    assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert f"{checkout / blocked} is a file, so nothing can be below it" in told
    assert told.count("\n") == 1


def test_what_is_committed_is_not_asked_again_and_is_read_with_ones_own(
    checkout, capsys, caplog, monkeypatch
):
    caplog.set_level("INFO")
    assert cli.main([*RUN, "--n", "2", "--record"]) == 0
    committed = {p: p.read_bytes() for p in (checkout / "results").rglob("*") if p.is_file()}
    run, own = runner.run, checkout / "results" / "local" / "records"

    def never(*given, **named):
        raise AssertionError("a recorded question was asked")

    monkeypatch.setattr(runner, "run", never)
    assert cli.main([*RUN, "--n", "2"]) == 0
    assert f"already recorded in {book_folders.here().records}; 0 to ask" in caplog.text
    assert not own.exists()
    monkeypatch.setattr(runner, "run", run)
    assert cli.main([*RUN, "--n", "3"]) == 0
    assert "1 questions answered" in caplog.text
    assert all(path.read_bytes() == content for path, content in committed.items())
    # It begins with what is committed, so it is whole by itself.
    assert [len(lines_of(path)) for path in own.rglob("*.jsonl")] == [3, 3, 3]
    caplog.clear()
    capsys.readouterr()
    assert cli.main(["status"]) == 0
    assert f"--results {own}" in caplog.text
    assert answers(capsys) == 6
    assert cli.main(["status", "--results", "results/local/records"]) == 0
    assert answers(capsys) == 9
    for path in own.rglob("*.jsonl"):
        path.unlink()
    assert cli.main(["status", "--results", "results/local/records"]) == 0
    assert answers(capsys) == 6


def lines_of(path):
    from rag_repro.study import records

    return records.form.read(path).lines


def answers(capsys):
    """Of drrag.table5 on the testbed, as `status` counts them."""
    lines = (line.split() for line in capsys.readouterr().out.splitlines())
    return next(int(x[5]) for x in lines if x[:2] == ["drrag.table5", "testbed"])
