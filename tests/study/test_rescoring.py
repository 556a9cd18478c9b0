"""Scores computed again: those of our own records, and of a record that somebody changed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rag_repro import cli, data
from rag_repro.evaluation.metrics import METRICS
from rag_repro.schema import Answer, Cost, Hit
from rag_repro.study import rescoring, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.records import open_record

RESULTS = Path(__file__).resolve().parents[2] / "results"
CONDITION = Condition(
    "world-C@1000", "single_step", {"prompt": "short"}, retriever="bm25", reader="testbed-reader"
)


@pytest.fixture(scope="module")
def dataset():
    return data.load(CONDITION.dataset, split=CONDITION.split)


@pytest.fixture
def record(tmp_path, dataset):
    """A record of three answers: right, wrong, and without a prediction."""
    made_with = {"corpus": dataset.corpus.sha256, "questions": dataset.questions_sha256}
    with open_record(tmp_path, CONDITION, made_with) as record:
        for question, said in zip(dataset.questions, (None, "nobody", ""), strict=False):
            said = question.answers[0] if said is None else said
            found = [question.gold_ids[0], dataset.corpus.passages[0].id]
            hits = [Hit(dataset.corpus.by_id[name], 1.0, i) for i, name in enumerate(found, 1)]
            answer = Answer(said, said or None, tuple(hits), cost=Cost(reader_calls=1))
            record.append(runner.line_of(question, answer, dataset, CONDITION))
    [path] = tmp_path.rglob("*.jsonl")
    return path


def audited(record):
    return rescoring.audit(rescoring.recorded(record.parents[1]))


def change(path, number, edit):
    """Change one line of a record in place; number: in the file, where the header is 1."""
    lines = path.read_bytes().splitlines()
    line = json.loads(lines[number - 1])
    edit(line)
    lines[number - 1] = json.dumps(line).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")


def test_a_record_as_it_was_made_has_the_scores_that_it_says(record):
    made = audited(record)
    assert (made.records, made.answers, made.faults, made.missing) == (1, 3, [], {})
    assert made.scores[CONDITION.dataset]["em"] == 3


@pytest.mark.parametrize(
    ("edit", "names"),
    [
        (lambda x: x["scores"].update(f1=0.5), "f1 0.5, but gives 1.0"),
        (lambda x: x["scores"].pop("em"), "em None, but gives 1.0"),
        (lambda x: x.update(prediction="nobody"), "em 1.0, but gives 0.0"),
        (lambda x: x["hits"].reverse(), "map 0.5, but gives 0.25"),
        (lambda x: x["gold"].clear(), r"gold \[\], but gives \[\["),
        (lambda x: x["hits"].append("elsewhere"), "a hit of it is not in world-C@1000"),
        (lambda x: x.update(id="elsewhere"), "'elsewhere' or a hit of it is not in world-C@1000"),
    ],
)
def test_a_changed_line_is_found_by_file_and_line(record, capsys, edit, names):
    change(record, 2, edit)
    assert cli.main(["audit", "--results", str(record.parents[1])]) == 1
    printed = capsys.readouterr().out
    assert "3 answers" in printed.splitlines()[0]
    assert {line.split(": ")[0] for line in printed.splitlines()[1:]} == {f"{record}, line 2"}
    assert re.search(names, printed)


def test_a_metric_that_is_younger_than_a_record_may_be_absent_and_never_wrong(record):
    change(record, 2, lambda x: x["scores"].pop("shown_words"))
    assert audited(record).faults == []
    change(record, 3, lambda x: x["scores"].update(shown_words=1.0))
    [fault] = audited(record).faults
    assert "line 3" in fault


def test_scores_of_texts_are_left_out_where_a_service_showed_them(record):
    """It shows what it likes, and no record keeps its words."""
    change(record, 1, lambda x: x["identity"].update(retriever="web-bm25-pages"))
    change(record, 2, lambda x: x["scores"].update(shown_words=1.0))
    assert audited(record).faults == []
    change(record, 2, lambda x: x["scores"].update(map=0.25))
    assert len(audited(record).faults) == 1


def test_a_record_of_other_data_is_left_out_and_counted(record, capsys):
    change(record, 1, lambda x: x["fingerprint"].update(questions="others"))
    assert cli.main(["audit", "--results", str(record.parents[1])]) == 0
    printed = capsys.readouterr().out
    assert f"{CONDITION.dataset}: 1 records left out" in printed
    assert "0 answers" in printed


def test_a_record_of_a_folder_of_one_s_own_is_left_out_and_the_others_are_audited(record, capsys):
    own = record.parents[1] / "folder-town@13a1984d" / record.name
    own.parent.mkdir()
    own.write_bytes(record.read_bytes())
    change(own, 1, lambda x: x["identity"].update(dataset="folder-town@13a1984d"))
    assert cli.main(["audit", "--results", str(record.parents[1])]) == 0
    first, left_out, told = capsys.readouterr().out.splitlines()
    assert first.startswith("1 records, 3 answers")
    assert left_out.startswith("folder-town@13a1984d: 1 records left out")
    assert told == "no difference"


def committed(made_here):
    """The committed records of worlds, or those of public data."""
    every = rescoring.recorded(RESULTS / "records")
    return [one for one in every if data.is_made_here(one[1].partition("/")[0]) == made_here]


def assert_sound(made, paths):
    """No difference, and every record, data set and metric among what was computed."""
    assert made.faults == []
    assert made.missing == {}
    assert made.records == len(paths)
    assert set(made.scores) == {path.partition("/")[0] for _, path in paths}
    metrics = {name for counts in made.scores.values() for name in counts}
    assert metrics >= {m.name for m in METRICS.values() if m.needs != "line"} - {"intent_hit"}


@pytest.mark.slow
def test_the_records_of_worlds_have_the_scores_that_they_say():
    paths = committed(made_here=True)
    made = rescoring.audit(paths)
    assert_sound(made, paths)
    assert "intent_hit" in made.scores["world-B-meant"]
    assert made.answers > 140_000


@pytest.mark.slow
def test_the_records_of_public_data_have_the_scores_that_they_say(data_dir):
    paths = committed(made_here=False)
    assert_sound(rescoring.audit(paths, data_dir), paths)
