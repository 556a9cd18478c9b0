"""The command line: complete help, light imports, words that say what to do."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys

import pytest

from rag_repro import __version__, cli, data
from rag_repro.schema import Gold, Passage, Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.study import papers, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.records import open_record
from rag_repro.study.services import Workshop

COMMANDS = (
    *(
        "run",
        "exhibit",
        "claims",
        "show",
        "status",
        "compare",
        "chapter",
        "book",
        "data",
        "corpus",
        "growth",
    ),
)


def commands():
    [action] = [a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return action.choices


def loaded_by(*lines):
    """Other people's packages that a fresh Python imports to run the lines."""
    code = [
        "import contextlib, io, sys",
        "start = set(sys.modules)",
        *lines,
        "names = {name.split('.')[0] for name in set(sys.modules) - start}",
        "print(*sorted(names - sys.stdlib_module_names - {'rag_repro'}), file=sys.stderr)",
    ]
    run = [sys.executable, "-c", "\n".join(code)]
    return subprocess.run(run, capture_output=True, text=True, check=True).stderr.split()


# What makes the start quick is held here, not the seconds, which depend on the machine.


def test_the_package_imports_no_library():
    assert loaded_by("import rag_repro") == []
    assert "yaml" in loaded_by("import yaml")  # it would be seen


def test_no_help_imports_a_library_but_numpy_and_yaml():
    asked = [["--help"], *([name, "--help"] for name in commands())]
    loaded = loaded_by(
        "from rag_repro import cli",
        f"for words in {asked}:",
        "    with contextlib.suppress(SystemExit):",
        "        cli.main(words)",
    )
    # PyYAML's reader in C brings modules of Cython.
    assert {name for name in loaded if "cython" not in name} == {"numpy", "yaml"}


def test_every_command_is_there_and_explains_itself(capsys):
    assert set(COMMANDS) <= set(commands())
    for name, command in commands().items():
        assert command.description, name
        assert command.epilog, name
        for action in command._actions:
            assert action.help, f"{name} {action.dest}"
        with pytest.raises(SystemExit) as end:
            cli.main([name, "--help"])
        assert end.value.code == 0
        text = capsys.readouterr().out
        for action in command._actions:
            for option in action.option_strings:
                assert option in text


def test_the_top_lists_every_command_and_the_version(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert all(name in text for name in commands())
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out.strip() == __version__


# ------------------------------------------------------------------------------ wrong words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["exhibit", "drrag.tabel5"], "no exhibit 'drrag.tabel5', did you mean 'drrag.table5'?"),
        (["run", "drrag.table55"], "no exhibit 'drrag.table55', did you mean 'drrag.table5'?"),
        (["run", "drrag.table5", "--dataset", "musiqe"], "did you mean 'musique'?"),
        (["run", "drrag.table5", "--method", "qcd"], "did you mean 'qdc'?"),
        (["run", "drrag.table5", "--tier", "paper"], "none at this tier"),
        (["claims", "--paper", "drag"], "no paper 'drag', did you mean 'drrag'?"),
        (["show", "drrag.table5", "--question", "x"], "holds the question 'x'"),
        (["data", "card"], "name a data set: rag-repro data card NAME"),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_status_2(tmp_path, capsys, words, message):
    folders = [] if words[0] == "data" else ["--results", str(tmp_path)]
    assert cli.main([*words, *folders]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rag-repro: ")
    assert message in err
    assert err.count("\n") == 1


def test_folders_that_are_not_there_are_named(tmp_path, capsys):
    assert cli.main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert f"there is no folder {tmp_path / 'a'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "drrag.table5", "--shard", "0/4"], "'0/4' is no shard; write I/N, as 2/8"),
        (["run", "drrag.table5", "--shard", "5/4"], "'5/4' is no shard"),
        (["run", "drrag.table5", "--shard", "2"], "'2' is no shard"),
        (["run", "drrag.table5", "--shard", "a/b"], "'a/b' is no shard"),
        (["run", "drrag.table5", "--n", "0"], "'0' is not a positive whole number"),
        (["run", "drrag.table5", "--n", "x"], "'x' is not a positive whole number"),
        (["run", "drrag.table5", "--batch-size", "-1"], "'-1' is not a positive"),
        (["run", "drrag.table5", "--in-flight", "0"], "'0' is not a positive"),
        (["run", "drrag.table5", "--tier", "publik"], "invalid choice: 'publik'"),
        (["exhibit", "drrag.table5", "--format", "xml"], "invalid choice: 'xml'"),
        (["run", "drrag.table5", "--n", "9" * 30], "is not a positive whole number below"),
        (["run", "drrag.table5", "--seeds", "9" * 30], "is no seed"),
        (["run", "drrag.table5", "--shard", "1/" + "9" * 6000], "is no shard"),
        (["growth", "bm25", "--sizes", "1000", "--minutes", "9" * 20], "is not a positive"),
        (["serve-search", "world-B", "--port", "9" * 6000], "is no port"),
        (["status", "--results", ""], "no path is given; write . for this folder"),
        (["compare", "", "x"], "no path is given"),
        (["chapter", "91_status", "--out", ""], "no path is given"),
        (["runn"], "invalid choice: 'runn'"),
        ([], "COMMAND"),
    ],
)
def test_wrong_options_are_refused(capsys, words, message):
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_a_good_shard_is_a_pair_of_numbers():
    given = cli.parser().parse_args(["run", "drrag.table5", "--shard", "2/8"])
    assert given.shard == (2, 8)


# ------------------------------------------------------------------------ a book with records

CELLS = {"sm": ["p1", "p3"], "qdc": ["p1", "p2"]}
PASSAGES = tuple(Passage(f"p{i}", f"Title {i}", f"text {i}") for i in range(4))
ASKED = Question("q1", "Who?", ("Her",), kind="bridge", gold=(Gold("p1"), Gold("p2")))


@pytest.fixture
def folder(tmp_path):
    """One question of HotpotQA recorded for two rows of table 5 at k = 3."""
    _, exhibit = papers.exhibit("drrag.table5")
    for cell in exhibit.cells("public", "primary"):
        keys = cell.keys
        if (keys["dataset"], keys["k"]) == ("hotpotqa", 3) and keys["method"] in CELLS:
            hits = CELLS[keys["method"]]
            with open_record(tmp_path, cell.condition, {}) as record:
                for i in range(1, 5):
                    recall = len({"p1", "p2"} & set(hits)) / 2
                    scores = {"recall": recall, "passages": 2.0}
                    line = {"id": f"q{i}", "kind": "bridge", "cluster": f"q{i}", "hits": hits}
                    record.append(line | {"scores": scores})
    return tmp_path


def test_exhibit_prints_the_papers_beside_ours(folder, capsys):
    words = ["exhibit", "drrag.table5", "--results", str(folder), "--format"]
    assert cli.main([*words, "csv"]) == 0
    told = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    [qdc] = [
        t
        for t in told
        if (t["dataset"], t["method"], t["k"], t["metric"], t["own_candidates"])
        == ("hotpotqa", "qdc", "3", "recall", "false")
    ]
    assert (qdc["paper"], qdc["ours"], qdc["n"]) == ("86.12", "100.00", "4")
    assert (qdc["baseline"], qdc["diff"]) == ("sm", "50.00")
    assert {t["tier"] for t in told} == {"public", "testbed"}
    assert cli.main([*words, "json", "--tier", "testbed"]) == 0
    assert {t["tier"] for t in json.loads(capsys.readouterr().out)} == {"testbed"}
    assert cli.main([*words, "md"]) == 0
    assert "| 86.12 |" in capsys.readouterr().out
    assert cli.main([*words, "md", "--tier", "paper"]) == 2
    told = capsys.readouterr()
    assert "has no condition at the tier paper; it has some at: public, testbed" in told.err
    assert told.out == ""


def test_claims_status_and_compare(folder, capsys):
    results = ["--results", str(folder)]
    assert (
        cli.main(["claims", *results, "--paper", "drrag", "--tier", "public", "--format", "csv"])
        == 0
    )
    told = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {t["tier"] for t in told} == {"public"}
    assert len(told) == len(papers.load("drrag").claims)
    # What the paper tier lacks is not printed unless it is asked for.
    words = ["claims", *results, "--paper", "drrag", "--format", "csv"]
    assert cli.main(words) == 0
    every = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {t["tier"] for t in every} == {"public", "testbed"}
    assert cli.main([*words, "--tier", "paper"]) == 0
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == len(told)
    assert cli.main(["status", *results]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["exhibit", "tier", "conditions", "run", "complete", "answers", "failed"]
    [line] = [line for line in lines if line[:2] == ["drrag.table5", "public"]]
    assert line[3:] == ["2", "0", "8", "0"]
    assert cli.main(["compare", str(folder), str(folder)]) == 0
    assert capsys.readouterr().out.count("100.0% of the answers are the same") == 2


def test_show_joins_a_record_with_the_data(folder, capsys, monkeypatch):
    dataset = Dataset("hotpotqa", (ASKED,), Corpus("h", PASSAGES))
    asked = []
    monkeypatch.setattr(
        data, "load", lambda name, *, data_dir, split: asked.append(data_dir) or dataset
    )
    words = ["show", "drrag.table5", "--question", "q1", "--results", str(folder)]
    assert cli.main([*words, "--data", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "  question  Who?" in text
    assert "method qdc, k 3" in text
    assert "  hit 2     p2 Title 2 (gold)" in text
    assert asked == [folder]


# ---------------------------------------------------------------------------------- running


@pytest.fixture
def little(monkeypatch):
    """Every data set is one little one, and every retriever lexical."""
    dataset = Dataset("little", (ASKED,), Corpus("h", PASSAGES))
    monkeypatch.setattr(data, "load", lambda name, *, data_dir, split: dataset)
    real = Workshop.retriever
    monkeypatch.setattr(Workshop, "retriever", lambda self, name, c: real(self, "bm25", c))


@pytest.mark.usefixtures("little")
def test_run_records_what_was_chosen_and_the_estimate_nothing(tmp_path, capsys):
    words = ["run", "drrag.table5", "--dataset", "musique", "--method", "bm25", "--tier", "public"]
    words += ["--role", "primary", "--results", str(tmp_path)]
    assert cli.main([*words, "--estimate"]) == 0
    text = capsys.readouterr().out
    assert "3 conditions, about" in text
    assert not list(tmp_path.iterdir())
    assert cli.main(words) == 0
    assert len(list(tmp_path.rglob("*.jsonl"))) == 3
    assert {p.parent.name for p in tmp_path.rglob("*.jsonl")} == {"musique"}
    assert cli.main([*words, "--estimate"]) == 0
    assert capsys.readouterr().out.count("complete") == 3


@pytest.mark.usefixtures("little")
def test_an_interrupt_is_no_traceback(tmp_path, capsys, monkeypatch):
    def stopped(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run", stopped)
    assert cli.main(["run", "drrag.table5", "--results", str(tmp_path)]) == 130
    assert "what was finished is recorded" in capsys.readouterr().err


@pytest.mark.usefixtures("little")
def test_a_run_that_makes_no_sense_is_one_line(tmp_path, capsys, monkeypatch):
    def senseless(condition: Condition, *given, **named):
        raise runner.RunError("the first 8 questions all failed")

    monkeypatch.setattr(runner, "run", senseless)
    assert cli.main(["run", "drrag.table5", "--results", str(tmp_path)]) == 2
    assert "all failed" in capsys.readouterr().err


def test_a_fault_of_ours_keeps_its_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr(papers, "exhibit", lambda name: {}["nothing"])
    with pytest.raises(KeyError):
        cli.main(["exhibit", "drrag.table5", "--results", str(tmp_path)])


@pytest.mark.parametrize(
    "words",
    [
        ["exhibit", "drrag.table5"],
        ["claims"],
        ["status"],
        ["show", "drrag.table5", "--question", "q1"],
        ["tune", "drrag.outcomes", "--dataset", "world-A"],
    ],
)
def test_a_mistyped_folder_of_records_is_not_read_as_nothing_run(words, tmp_path, capsys):
    assert cli.main([*words, "--results", str(tmp_path / "recrods")]) == 2
    assert "there is no folder" in capsys.readouterr().err


# ------------------------------------------------------------------------ where it is printed


def printed(*words, into=subprocess.PIPE, **variables):
    """`rag-repro WORDS` in a process of its own -> status, output, errors."""
    run = [sys.executable, "-m", "rag_repro.cli", *words]
    env = {**os.environ, "PYTHONUNBUFFERED": "", **variables}  # it is usual to keep lines back
    done = subprocess.run(run, stdout=into, stderr=subprocess.PIPE, env=env, check=False)
    return done.returncode, done.stdout, done.stderr.decode("latin-1")


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "cp1252"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_terminal_that_lacks_a_character_gets_its_number(tmp_path, variables):
    mine = tmp_path / "öst-文"
    words = ["compare", str(mine), str(mine)]
    status, _, told = printed(*words, **variables)
    assert status == 2
    assert "there is no folder" in told
    (mine / "passages").mkdir(parents=True)
    (mine / "passages" / "文.txt").write_text("A lighthouse.", encoding="utf-8")
    (mine / "questions.txt").write_text("Who?", encoding="utf-8")
    status, shown, told = printed("data", "card", f"folder:{mine}", "--json", **variables)
    if "LC_ALL" in variables:  # here such a name cannot even be read
        assert status == 2
        assert "is not UTF-8" in told
        assert "Traceback" not in told
    else:
        assert (status, told) == (0, "")
        assert b"\\u6587" in shown


def test_a_reader_of_the_output_that_has_had_enough_ends_it_in_silence():
    for words in (["--help"], ["data", "list"]):
        end, start = os.pipe()
        os.close(end)  # as `head` does
        try:
            assert printed(*words, into=start)[::2] == (0, "")
        finally:
            os.close(start)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_an_output_that_takes_no_more_is_one_line():
    with open("/dev/full", "w") as full:
        status, _, told = printed("data", "list", into=full)
    said = "rag-repro: No space left on device; make room on the disk\n"
    assert (status, told) == (2, said)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["run", "drrag.table5"], "--results"),
        (["time", "drrag.fig3"], "--results"),
        (["grid", "drrag.table5"], "--results"),
        (["grid", "drrag.table5", "--dry-run"], "--folder"),
        (["growth", "bm25", "--sizes", "1000"], "--results"),
        (["train", "testbed-reader"], "--out"),
    ],
)
def test_a_folder_that_cannot_be_is_told_before_the_work(tmp_path, capsys, words, option):
    (tmp_path / "file").touch()
    assert cli.main([*words, option, str(tmp_path / "file" / "below")]) == 2
    told = f"rag-repro: {tmp_path}/file is a file, so nothing can be below it; name another folder"
    assert capsys.readouterr().err == told + "\n"


def test_only_what_keeps_its_work_says_that_it_is_kept(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))  # where no exhibit's text is kept yet

    def stopped(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(papers, "exhibit", stopped)
    assert cli.main(["exhibit", "drrag.table5"]) == 130
    assert capsys.readouterr().err == "rag-repro: interrupted\n"
