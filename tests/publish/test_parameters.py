"""Declared parameters, and the guard that holds a run to them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import yaml

from rag_repro.book_folders import BookFolders, here
from rag_repro.publish.parameters import (
    ParameterError,
    chapter,
    override,
    parameters,
    parse_value,
)

INJECTED = "# Parameters\n"


def namespace(**changes):
    return {"tier": "testbed", "n_questions": 3, "ks": [3, 4], "In": [""], **changes}


def test_the_declaration_is_read_from_the_source(places):
    declared = parameters("05_small", places)
    assert [(d.name, d.default, d.comment) for d in declared.values()] == [
        ("tier", "testbed", "where it runs"),
        ("n_questions", 3, "how many questions"),
        ("ks", [3, 4], "how many passages"),
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("n_questions = 3", "'n_questions' has no comment"),
        ("n_questions = 1 + len('x')  # why", "is not `name = literal`"),
        ("import os  # why", "is not `name = literal`"),
        ('tier = "x"  # again', "'tier' is declared twice"),
        ("changed = 3  # why", "cannot be the name"),
        ("_hidden = 3  # why", "cannot be the name"),
    ],
)
def test_a_parameters_cell_holds_commented_literals(places, line, complaint):
    source = places.notebooks / "05_small.py"
    source.write_text(source.read_text().replace("n_questions = 3  # how many questions", line))
    with pytest.raises(ParameterError, match=complaint):
        parameters("05_small", places)


def test_one_cell_is_the_parameters_cell(places):
    source = places.notebooks / "05_small.py"
    source.write_text(source.read_text() + '\n# %% tags=["parameters"]\nx = 1  # again\n')
    with pytest.raises(ParameterError, match="2 cells tagged"):
        parameters("05_small", places)


def test_defaults_give_a_frozen_object_in_which_nothing_changed(places):
    run = chapter("05_small", namespace())
    assert (run.tier, run.n_questions, run.ks, run.changed) == ("testbed", 3, (3, 4), ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.n_questions = 4


def test_changed_names_what_differs_from_the_source(places):
    run = chapter("05_small", namespace(n_questions=4, ks=[6]))
    assert run.changed == ("n_questions", "ks")
    assert run.ks == (6,)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"tier": "publik"}, r"must be one of .*did you mean 'public'"),
        ({"n_questions": 0}, "must be a whole number from 1"),
        ({"n_questions": True}, "must be a whole number"),
        ({"n_questions": "3"}, "must be a whole number"),
        ({"n_questions": None}, "must be a whole number"),
        ({"ks": 3}, "must be a list"),
        ({"ks": [3, "4"]}, "must be of type int"),
        ({"ks": [3, True]}, "must be of type int"),
    ],
)
def test_values_are_held_to_rules(places, changes, complaint):
    with pytest.raises(ParameterError, match=complaint):
        chapter("05_small", namespace(**changes))


def test_a_chapters_own_rules_add_to_the_houses(places):
    with pytest.raises(ParameterError, match="ks = 0 must be a whole number from 1 to 99"):
        chapter("05_small", namespace(ks=[3, 0]), ks=range(1, 100))
    with pytest.raises(ParameterError, match="unknown parameter 'teer', did you mean 'tier'"):
        chapter("05_small", namespace(), teer=("testbed", "public"))


def test_a_misspelt_injected_name_is_refused_with_the_nearest(places):
    history = ["", INJECTED + "n_question = 5\n", "run = chapter(...)"]
    with pytest.raises(ParameterError, match="'n_question', did you mean 'n_questions'"):
        chapter("05_small", namespace(In=history, n_question=5))


def test_cells_of_the_chapter_itself_are_no_parameters(places):
    history = ["", "width = 7\nheight = 3", "table = f(3)", "x ="]
    assert chapter("05_small", namespace(In=history)).changed == ()


def test_a_run_without_its_parameters_cell_is_refused(places):
    with pytest.raises(ParameterError, match="run the parameters cell first"):
        chapter("05_small", {"In": []})


def test_unknown_names_are_refused_before_a_kernel_starts(places):
    assert override("05_small", {"n_questions": 5}, places) == {"n_questions": 5}
    with pytest.raises(ParameterError, match="did you mean 'n_questions'"):
        override("05_small", {"nquestions": 5}, places)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("n_questions", "{1,2}", r"n_questions = \{1, 2\} cannot be passed on"),
        ("ks", "{3,4}", "cannot be passed on; give text, a finite number"),
        ("ks", "[{3}]", "cannot be passed on"),
        ("ks", "[[3]]", r"ks = \[3\] must be a whole number from 1 to 99"),
        ("ks", "[99, 100]", "ks = 100 must be a whole number from 1 to 99"),
        ("ks", "3", "must be a list"),
        ("n_questions", "b'3'", "cannot be passed on"),
        ("n_questions", "1j", "cannot be passed on"),
        ("n_questions", "nan", "must be a whole number from 1"),
        ("n_questions", "1" + "0" * 30, "must be a whole number from 1"),
        ("n_questions", "9" * 9000, r"9\.\.\. must be a whole number"),
        ("n_questions", "__import__('os')", "must be a whole number from 1"),
        ("n_questions", "{'a': {'b': [1]}}", "must be a whole number from 1"),
        ("price", "nan", "must be a finite number"),
        ("price", "1e999", "cannot be passed on"),
        ("price", "-1e999", "cannot be passed on"),
        ("price", "9" * 400, "must be a finite number"),
        ("price", "true", "must be a finite number"),
        ("whole", "9" * 30, "must be of type int"),
        ("names", "[1]", "names = 1 must be of type str"),
        ("dataset", "a\udc80", "cannot be passed on"),
        ("dataset", "world-Y", "no data set 'world-Y', did you mean"),
        ("dataset", "world-B@7", "world B cannot have 7 passages"),
        ("dataset", "world-B@" + "9" * 50, "no data set"),
        ("reader", "smolm2-135m", "did you mean 'smollm2-135m'"),
        ("retriever", "bm52", "did you mean 'bm25'"),
        ("device", "gpu", "must be text like"),
        ("device", "cuda:99", "device 'cuda:99' wanted"),
    ],
)
def test_values_that_no_run_can_take_are_refused_before_a_kernel_starts(
    places, name, text, complaint
):
    source = places.source("05_small")
    further = (
        'price = 0.5  # p\nnames = []  # n\nwhole = 7  # w\ndataset = ""  # d\n'
        'reader = ""  # r\nretriever = ""  # t\ndevice = "cpu"  # v\n'
    )
    source.write_text(source.read_text().replace("n_questions = 3 ", further + "n_questions = 3 "))
    with pytest.raises(ParameterError, match=complaint) as told:
        override("05_small", {name: parse_value(text)}, places)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 2000


def test_what_a_chapter_says_of_its_second_run_can_be_told():
    """The rules that are read from the source refuse no value that the kernel takes."""
    book = BookFolders(Path(__file__).resolve().parents[2])
    second = Path(__file__).with_name("chapters.yaml").read_text(encoding="utf-8")
    for name, run in yaml.safe_load(second).items():
        assert override(name, run["parameters"], book).keys() == run["parameters"].keys()


def test_the_table_of_parameters_escapes_what_it_shows(places):
    source = places.notebooks / "05_small.py"
    source.write_text(source.read_text().replace('"testbed"', '"<script>"'))
    shown = chapter("05_small", namespace(tier="<script>", n_questions=4))._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "<b>4</b>" in shown


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50", 50),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("[3, 4]", [3, 4]),
        ("true", True),
        ("None", None),
        ("bm25", "bm25"),
        ("a b", "a b"),
        ("'50'", "50"),
        ("{[]: 1}", "{[]: 1}"),
        ("-" * 5000, "-" * 5000),
    ],
)
def test_values_from_the_command_line(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


@pytest.mark.parametrize(
    ("chapter", "name", "value", "message"),
    [
        ("30_dragin", "dataset", "world-Y", "no data set 'world-Y'"),
        ("30_dragin", "dataset", "hotpotqa", "set RAG_REPRO_DATA to the folder"),
        ("30_dragin", "dataset", "folder:nowhere", "there is no such folder"),
        ("30_dragin", "reader", "smolm2-135m", "did you mean 'smollm2-135m'?"),
        ("30_dragin", "reader", "/no/where", "there is no such folder"),
        ("30_dragin", "retriever", "bm52", "did you mean 'bm25'?"),
        ("30_dragin", "tier", "publik", "did you mean 'public'?"),
        ("30_dragin", "device", "cdua", "must be text like"),
        ("30_dragin", "n_questions", "0", "must be a whole number from 1"),
        ("14_drrag_cost", "methods", "['qcd']", "did you mean 'qdc'?"),
        ("92_your_own", "folder", "nowhere", "there is no such folder"),
        ("92_your_own", "prompt", "chet", "did you mean 'chat'?"),
        ("90_claims", "paper", "drag", "did you mean 'drrag'?"),
        ("01_testbed", "n_passages", "1500", "in steps of 1000"),
    ],
)
def test_a_wrong_value_of_any_kind_is_refused_before_a_kernel_starts(
    monkeypatch, chapter, name, value, message
):
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    with pytest.raises(ParameterError) as refused:
        override(chapter, {name: parse_value(value)}, here())
    assert message in str(refused.value)


def test_a_relative_path_is_that_of_the_callers_folder(tmp_path, monkeypatch):
    book = here()
    (tmp_path / "texts" / "reader").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    root = Path.cwd()
    given = {"dataset": "folder:texts", "reader": "texts/reader"}
    assert override("30_dragin", given, book) == {
        "dataset": f"folder:{root}/texts",
        "reader": f"{root}/texts/reader",
    }
    assert override("92_your_own", {"folder": "texts"}, book) == {"folder": f"{root}/texts"}
    # What lies in the checkout is found from notebooks/, where a kernel starts, on any disk.
    monkeypatch.chdir(book.root)
    club = override("92_your_own", {"folder": "notebooks/your_own/club"}, book)
    assert club == {"folder": "../notebooks/your_own/club"}
    monkeypatch.chdir(tmp_path)
    same = {"dataset": "world-C", "reader": "smollm2-135m", "retriever": "minilm"}
    assert override("30_dragin", same, book) == same
