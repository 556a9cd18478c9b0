"""What a record keeps of where a reader looks."""

from __future__ import annotations

import pytest

from rag_repro.schema import Answer, Cost, Hit
from rag_repro.study import line_fields, lines, runner
from rag_repro.study.conditions import Condition
from tests.study.scripted import DATASET

EVENT = {
    "stage": "attention",
    "tokens": [[3, 20], [3, 41]],
    "marks": [0.01234, 0.5],
    "words": [[0.25, 0.00004], [0.1, 0.20006]],
    "embeddings": [[0.0301, 0.0], [0.01, 0.02]],
}
FIELD = {
    "tokens": [[3, 20], [3, 41]],
    "marks": [123, 5000],
    "words": [[2500, 0], [1000, 2001]],
    "embeddings": [[301, 0], [100, 200]],
}
GOOD = {"id": "a", "cluster": "a", "hits": ["p", "q"], "scores": {}, "attention": FIELD}


def test_shares_become_ten_thousandths():
    answer = Answer(trace=({"stage": "features"}, EVENT))
    assert line_fields.of_attention(answer) == {"attention": FIELD}
    bare = {k: v for k, v in EVENT.items() if k != "embeddings"}
    kept = line_fields.of_attention(Answer(trace=(bare,)))["attention"]
    assert kept == {k: v for k, v in FIELD.items() if k != "embeddings"}
    assert line_fields.of_attention(Answer(trace=({"stage": "features"},))) == {}


def test_a_line_has_it_and_no_score_of_an_answer():
    question = DATASET.questions[0]
    hits = tuple(Hit(p, 1.0, i) for i, p in enumerate(DATASET.corpus.passages[:2], start=1))
    answer = Answer(hits=hits, trace=(EVENT,), cost=Cost(reads=1))
    settings = {"k": 2, "prompt": "r2ag_rag", "layers": 2}
    condition = Condition("little", "attention_check", settings, retriever="bm25", reader="x")
    line = runner.line_of(question, answer, DATASET, condition)
    assert line["attention"] == FIELD
    assert {"text", "prediction", "entropy"}.isdisjoint(line)
    assert "acc" not in line["scores"]
    assert lines.line_bytes(line)


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": [[3, 20], [3]]},
        {"tokens": [[3, 20], [3, -1]]},
        {"marks": []},
        {"marks": [123, 0.5]},
        {"marks": [123, 10001]},
        {"words": [[2500, 0], [1000, True]]},
        {"words": "many"},
        {"embeddings": [[301, 0], 100]},
        {"embeddings": None},
        {"more": []},
        {"marks": [], "words": [], "embeddings": []},
    ],
)
def test_what_cannot_be_read_back_is_refused(changes):
    assert lines.line_bytes(GOOD)
    with pytest.raises(lines.RecordError, match="'attention"):
        lines.line_bytes({**GOOD, "attention": {**FIELD, **changes}})


@pytest.mark.parametrize("lost", ["tokens", "marks", "words"])
def test_what_is_missing_is_refused(lost):
    less = {k: v for k, v in FIELD.items() if k != lost}
    with pytest.raises(lines.RecordError, match="'attention"):
        lines.line_bytes({**GOOD, "attention": less})
