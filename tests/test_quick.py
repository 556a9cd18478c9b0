"""The library's front door: one question with its trace, and methods compared."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rag_repro
from rag_repro import comparison, quick
from rag_repro.methods import base
from rag_repro.schema import Answer, Generate, Passage, Prompt, Question, Retrieve
from rag_repro.schema.dataset import Corpus
from rag_repro.schema.errors import CallError
from rag_repro.show import traces
from rag_repro.show.table import Table
from rag_repro.study.services import Workshop
from tests.lm.scripted_reader import ScriptedReader

ROOT = Path(__file__).resolve().parents[1]
TOWN = f"folder:{ROOT / 'notebooks/your_own/town'}"
PASSAGES = Corpus(
    "small",
    (
        Passage("mill", "The mill", "The mill was built by Jo Penn."),
        Passage("weir", "The weir", "The weir was drawn by Ash Kole. " + "It is long. " * 20),
    ),
)


def answering(prompt: str) -> str:
    return "Jo Penn" if "mill was built" in prompt else "nobody <b>\nknows"


class Bench(Workshop):
    """A workshop whose reader follows a script."""

    def __init__(self, script=answering):
        super().__init__()
        self.scripted = ScriptedReader(script)

    def reader(self, name):
        return self.scripted


def test_importing_the_package_stays_light():
    code = (
        "import sys, rag_repro; dir(rag_repro)\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('torch', 'numpy', 'yaml')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_names_what_it_offers():
    for name in rag_repro.__all__:
        assert getattr(rag_repro, name)
        assert name in dir(rag_repro)
    with pytest.raises(AttributeError, match="has no attribute 'aks'"):
        rag_repro.aks  # noqa: B018


# ------------------------------------------------------------------ one question


def test_ask_keeps_every_step_in_order():
    asked = quick.ask(" Who built the mill? ", PASSAGES, k=1, services=Bench())
    assert asked.prediction == "Jo Penn"
    search, reading = asked.steps
    assert isinstance(search.call, Retrieve)
    assert [hit.passage.id for hit in search.result] == ["mill"]
    assert isinstance(reading.call, Generate)
    assert reading.result.text == "Jo Penn"
    lines = str(asked).splitlines()
    assert lines[0] == "question: Who built the mill?"
    assert lines[1] == "1. search: Who built the mill?"
    assert re.fullmatch(r"   1\. \d\.\d\d mill: The mill was built by Jo Penn\.", lines[2])
    assert lines[3].startswith("2. read: ")
    assert lines[4] == "   Jo Penn"
    assert lines[5].startswith("cost: searches 1, reader calls 1, tokens read ")
    assert lines[6] == "answer: Jo Penn"


def test_the_trace_is_text_on_a_page_and_marks_what_is_needed():
    from rag_repro.schema import Gold

    question = Question("q", "Who drew the weir?", ("Ash Kole",), gold=(Gold("weir"),))
    asked = quick.ask(question, PASSAGES, k=2, services=Bench(lambda p: "nobody <b>"))
    shown = asked._repr_html_()
    assert "nobody &lt;b&gt;" in shown
    assert shown.count("<td>yes</td>") == 1
    assert "…" in shown  # a long passage is cut
    assert "<td>yes</td>" not in quick.ask("Who?", PASSAGES, services=Bench())._repr_html_()


def test_a_gather_is_told_call_by_call():
    asked = quick.ask("Who built the mill?", PASSAGES, method="qdc", k=2, services=Bench())
    assert [type(step.call) for step in asked.steps] == [Retrieve, Retrieve, Generate]
    assert asked.answer.calls == ("Retrieve", "Retrieve", "Generate")


def test_places_to_look(tmp_path):
    (tmp_path / "passages").mkdir()
    (tmp_path / "passages/mill.txt").write_text("The mill was built by Jo Penn.")
    for place in (tmp_path, f"folder:{tmp_path}"):
        asked = quick.ask("Who built the mill?", place, services=Bench())
        assert asked.answer.hits[0].passage.id == "mill#1"
    world = quick.ask("Who?", "world-B@1000", reader=None, k=2, services=Bench())
    assert [type(step.call) for step in world.steps] == [Retrieve]
    assert world.prediction is None
    assert "answer: (none)" in str(world)
    dataset = rag_repro.load("world-B@1000")
    first = quick.ask(dataset.questions[0], dataset, reader=None, k=2, services=Bench())
    assert len(first.answer.hits) == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"method": "single_stp"}, "did you mean 'single_step'"),
        ({"kk": 2}, "no setting 'kk', did you mean 'k'"),
        ({"retriever": "bm52"}, "no retriever 'bm52', did you mean 'bm25'"),
        ({"question": " "}, "the question is empty"),
        ({"question": None}, "the question None is no text"),
        ({"question": 5}, "the question 5 is no text"),
        ({"corpus": "world-Q"}, "world"),
        ({"own_candidates": True}, "came without candidates of its own"),
    ],
)
def test_what_cannot_be_asked_is_told(given, told):
    given = {"question": "Who?", "corpus": PASSAGES, "services": Bench(), **given}
    with pytest.raises(ValueError, match=told):
        quick.ask(**given)


def test_what_a_method_needs_besides_is_served():
    """A second reader, as a rewriter is; but no memory, which one question cannot have."""
    bench = Bench()
    plain = {"method": "erm4", "rewriter": "smollm2-135m", "filter": "none", "judge": None}
    plain["hypothesis"] = None
    asked = quick.ask("Who?", PASSAGES, **plain, services=bench)
    assert asked.answer.cost.reader_calls == 2
    with pytest.raises(quick.AskError, match="remembers earlier questions"):
        quick.ask("Who?", PASSAGES, method="erm4", memory="filled", services=bench)


def test_a_refused_call_reaches_the_method_through_the_listener():
    """The method may deal with a refusal; what it was refused is no step."""

    def stubborn(question, settings):
        try:
            yield Generate(Prompt.from_segments("first"), 5)
        except CallError as error:
            out = yield Generate(Prompt.from_segments(f"again {error}"), 5)
        return Answer(prediction=out.text)

    from rag_repro import engine

    reader = ScriptedReader([CallError("too long"), "fine"])
    heard: list = []
    task = engine.Task(Question("q", "?", ()), traces.listen(stubborn, heard))
    [(_, answer)] = engine.run([task], {"reader": reader})
    assert answer.prediction == "fine"
    assert [step.result.text for step in heard] == ["fine"]


def test_listening_changes_nothing():
    question = Question("q", "Who drew the weir of the mill?", ())
    spec = base.get("qdc")
    given = spec.configure({"k": 2, "prompt": "short"})
    services = {"retriever": Bench().retriever("bm25", PASSAGES), "reader": Bench().scripted}
    from rag_repro import engine

    [(_, plain)] = engine.run([engine.Task(question, spec.run, given)], services)
    [(_, heard)] = engine.run([engine.Task(question, traces.listen(spec.run, []), given)], services)
    assert plain == heard


# ------------------------------------------------------------------ many questions


def test_methods_are_compared_on_the_same_questions(tmp_path):
    bench = Bench(lambda p: "Tobias Fenn" if "Tobias" in p else "who knows")
    made = comparison.compare(
        ["no_retrieval", "single_step"], TOWN, tmp_path, n=4, k=2, services=bench, prompt="short"
    )
    assert [q.id for q in made.dataset.questions] == ["q1", "q2", "q3", "q4"]
    said = {m: [line["prediction"] for line in made.lines(m)] for m in made.cells}
    assert said["no_retrieval"] == ["who knows"] * 4
    # The first two questions are about the lighthouse, whose passage names its builder.
    assert said["single_step"][:2] == ["Tobias Fenn"] * 2
    difference = made.difference("single_step", "acc")
    assert difference.estimate == 25.0
    assert difference.n == 4
    assert made.difference("no_retrieval", "acc") is None
    assert "+25.00 [" in repr(made)
    assert "no question has this metric" not in repr(made)
    assert [row[0] for row in made.answers().body] == [q.text for q in made.dataset.questions]
    held = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.jsonl"))
    assert len(held) == 2
    assert all(name.startswith("folder-town@") for name in held)
    assert str(ROOT) not in (tmp_path / held[0]).read_text()


def test_what_is_recorded_is_not_asked_again(tmp_path):
    first, again = Bench(), Bench()
    comparison.compare(["single_step"], TOWN, tmp_path, n=3, services=first)
    made = comparison.compare(["single_step"], TOWN, tmp_path, n=3, services=again)
    assert len(first.scripted.calls) == 3
    assert len(made.lines("single_step")) == 3
    assert again.scripted.calls == []


def test_a_record_of_other_weights_is_set_aside(tmp_path):
    comparison.compare(["single_step"], TOWN, tmp_path, n=2, services=Bench())
    other = Bench()
    other.scripted.fingerprint = "other weights"
    comparison.compare(["single_step"], TOWN, tmp_path, n=2, services=other)
    assert len(other.scripted.calls) == 2
    assert len(list(tmp_path.rglob("*.stale"))) == 1


def test_without_answers_nothing_is_scored_but_all_is_shown(tmp_path):
    club = f"folder:{ROOT / 'notebooks/your_own/club'}"
    made = comparison.compare(["single_step"], club, tmp_path, services=Bench(lambda p: "Tuesday"))
    assert repr(made.table).count("| – |") == 3
    assert made.table.caption.endswith("no question names what this is measured by")
    assert [row[-1] for row in made.answers().body] == ["Tuesday"] * 3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"methods": []}, "name at least one"),
        ({"methods": ["single_step", "single_step"]}, "none twice"),
        ({"methods": ["singl_step"]}, "did you mean 'single_step'"),
        ({"max_tokens": 3}, "has no setting 'max_tokens'"),
        ({"n": "3"}, "n '3' is no number of questions"),
        ({"n": 1.5}, r"n 1\.5 is no number of questions"),
        ({"n": -1}, "n -1 is no number of questions"),
    ],
)
def test_comparisons_that_cannot_be(tmp_path, given, told):
    given = {"methods": ["single_step"], "dataset": TOWN, "results": tmp_path, **given}
    with pytest.raises(ValueError, match=told):
        comparison.compare(**given, services=Bench())
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_metric_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'recall'"):
        comparison.compare(["single_step"], TOWN, tmp_path, metrics=["recal"], services=Bench())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_what_is_asked_prints_on_any_terminal(monkeypatch, encoding):
    kept = quick.ask("灯台 of the mill?", PASSAGES, services=Bench())
    terminal = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", terminal)
    print(kept)
    print(Table(["a"], [["灯台"]]))
    terminal.flush()
    assert terminal.buffer.getvalue().count(b"\\u706f\\u53f0") >= 2
