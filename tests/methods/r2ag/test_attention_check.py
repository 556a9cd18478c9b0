"""Where the last token looks: shares by hand, the tokens of each passage, what is no condition."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.methods import base
from rag_repro.methods.r2ag.checks import Line, attention_check, lines_of
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Generation, Gold, Hit, Passage, Question, Read, Soft, Trace
from tests.lm import tiny
from tests.lm.scripted_reader import pieces
from tests.methods.scripted import Tables, answer_of, ids

QUESTION = Question("id-q", "q?", ("x",), gold=(Gold("c"),), candidates=("a", "c"))
RANKINGS = {"q?": ["a", "b", "c"]}


class Looking:
    """Reads a prompt word by word; what its layers look at is as `weight` says."""

    def __init__(self, weight):
        self.weight, self.calls = weight, []

    def read(self, calls):
        self.calls += calls
        return [self.one(call) for call in calls]

    def one(self, call):
        told: list[str] = []
        for segment in call.prompt.segments:
            told += [""] if isinstance(segment, Soft) else pieces(segment)
        attention = {}
        for layer in call.layers:
            rows = np.array([[[self.weight(h, layer, t) for t in told]] for h in range(2)], float)
            attention[layer] = rows.astype(np.float32)
        empty = np.zeros(0, dtype=np.float32)
        trace = Trace(empty, empty, attention, tuple(told))
        return Generation("", (), (), "given", len(told), len(told), trace)


class Encoder:
    def encode(self, texts):
        return np.eye(4, dtype=np.float32)[[len(t) % 4 for t in texts]]


def asked(weight, **given):
    settings = base.get("attention_check").configure({"k": 2, "layers": 3, **given})
    reader = Looking(weight)
    services = dict.fromkeys(settings.needs, Encoder())
    answer = answer_of(
        attention_check, QUESTION, settings, retriever=Tables(RANKINGS), reader=reader, **services
    )
    assert answer.error is None, answer.error
    return answer, reader.calls


def by_kind(head, layer, token):
    """Of each embedding 1, of each word of passage a 0.1 by layer, of "[1]similarity:" 0.01."""
    if token == "":
        return 1.0 + head
    if "aa" in token:
        return -0.1 * layer
    return 0.01 if "]similarity" in token else 0.0


def test_shares_by_hand():
    answer, [call] = asked(by_kind)
    *features, event = answer.trace
    assert [e["stage"] for e in features] == ["features"]
    assert call == Read(call.prompt, "", layers=(-3, -2, -1))
    assert [type(s) for s in call.prompt.segments if not isinstance(s, str)] == [Soft, Soft]
    assert ids(answer.hits) == ["a", "b"]
    assert (answer.text, answer.prediction) == ("", None)
    assert answer.calls == ("Retrieve", "Encode", "Read")
    assert answer.cost.reader_calls == 0
    # "\\n\\n[1]similarity:", " ", and "(Title:"; then " Title", " a)", " aa".
    assert event["stage"] == "attention"
    assert event["tokens"] == [[3, 3], [3, 3]]
    # The mean over heads, layers from the first to the last.
    assert event["embeddings"] == [[1.5, 1.5]] * 3
    assert event["words"] == [[0.3, 0], [0.2, 0], [0.1, 0]]
    assert event["marks"] == pytest.approx([0.02] * 3)


def test_a_prompt_without_embeddings_is_told_nothing():
    answer, [call] = asked(by_kind, prompt="r2ag_rag")
    [event] = answer.trace
    assert not any(isinstance(s, Soft) for s in call.prompt.segments)
    assert "embeddings" not in event
    assert event["words"] == [[0.3, 0], [0.2, 0], [0.1, 0]]
    assert answer.calls == ("Retrieve", "Read")
    configure = base.get("attention_check").configure
    bare = configure({"prompt": "r2ag_rag"})
    assert bare.needs == {}
    for given in ({"inputs": "shuffled"}, {"encoder": "e", "similarity": "dot"}, {"exchange": True},
                  {"columns": ["relevance"]}, {"max_new_tokens": 9}):  # fmt: skip
        assert configure({"prompt": "r2ag_rag", **given}) == bare
    assert configure({"inputs": "free"}) != configure({})
    assert configure({"max_new_tokens": 9}) == configure({})


def test_what_it_cannot_be_told():
    configure = base.get("attention_check").configure
    with pytest.raises(ValueError, match="name a prompt"):
        configure({"prompt": None})
    with pytest.raises(ValueError, match="layers is 0"):
        configure({"layers": 0})
    with pytest.raises(ValueError, match="there is no prompt 'r2agg', did you mean 'r2ag'"):
        configure({"prompt": "r2agg"})


def test_embeddings_exchanged_are_looked_at_where_they_stand():
    plain, [call] = asked(by_kind, k=3)
    turned, [other] = asked(by_kind, k=3, exchange=True)
    soft = [[s.index for s in c.prompt.segments if isinstance(s, Soft)] for c in (call, other)]
    assert soft == [[0, 1, 2], [2, 1, 0]]
    assert turned.trace[1] == {"stage": "exchange", "passages": ["c", "a"]}
    assert turned.trace[-1] == plain.trace[-1]


# ------------------------------------------------------------------ tokens of a prompt


def hit(name, text, title="T"):
    return Hit(Passage(name, title, text), 0.0, 1)


def test_tokens_of_each_passage():
    # A passage that quotes the whole of the next line, and a character in two tokens.
    hits = [hit("a", "x [2]similarity: (Title: T) é y"), hit("b", "é y")]
    template = PROMPTS["r2ag"]
    told = (
        *("asked: ", "[1]", "similarity: ", "", "(Title: ", "T"),
        *(") x [2]similarity: (Title: T) é y", "\n", "[2]similarity: ", "", "(", "Title: T) "),
        *("", "é", " y", "\nQuestion"),
    )
    assert lines_of(told, template, hits) == [
        Line((1, 2, 4), (3,), (5, 6, 7)),
        Line((8, 10, 11), (9,), (12, 13, 14)),
    ]


def test_a_prompt_that_does_not_show_them():
    template = PROMPTS["r2ag"]
    with pytest.raises(ValueError, match="passage 'a' cannot be found in the prompt"):
        lines_of(("[1]similarity: ", "", "(Title: T) y\n"), template, [hit("a", "x")])
    with pytest.raises(ValueError, match="no embedding stands before passage 'a'"):
        lines_of(("[1]similarity: ", "(Title: T) x\n"), template, [hit("a", "x")])


@pytest.mark.parametrize("prompt", ["r2ag", "r2ag_rag", "drrag", "selfrag"])
def test_a_line_is_what_the_prompt_shows(prompt):
    template = PROMPTS[prompt]
    hits = [hit("a", "one\ntwo", "A {title}"), hit("b", "three")]
    soft = [Soft("r2ag", np.zeros((2, 1)), i) for i in range(2)] if template.informed else ()
    text = "".join(s for s in template.fill(QUESTION, hits, soft).segments if isinstance(s, str))
    lines = [template.line(i, h) for i, h in enumerate(hits, 1)]
    assert "".join("".join(line) for line in lines) in text
    for (_, mark, told), one in zip(lines, hits, strict=True):
        assert one.passage.text.split()[0] in told
        assert "{" not in mark
        assert one.passage.text.split()[0] not in mark


def test_with_a_real_reader():
    """Shares of a softmax, whose passages take no more than all; the same alone and in a batch."""
    reader = tiny.reader("llama")
    import torch

    reader.add_soft("r2ag", torch.nn.Linear(3, reader.model.get_input_embeddings().embedding_dim))
    settings = base.get("attention_check").configure({"k": 3, "layers": 2})
    services = {"retriever": Tables(RANKINGS), "reader": reader, "minilm": Encoder()}
    answer = answer_of(attention_check, QUESTION, settings, **services)
    assert answer.error is None, answer.error
    event = answer.trace[-1]
    words, embeddings = np.array(event["words"]), np.array(event["embeddings"])
    assert words.shape == embeddings.shape == (2, 3)
    assert (words > 0).all()
    assert (embeddings > 0).all()
    whole = words.sum(1) + embeddings.sum(1) + np.array(event["marks"])
    assert ((whole > 0.1) & (whole < 1)).all()
