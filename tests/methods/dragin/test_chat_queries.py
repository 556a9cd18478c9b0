"""Through any chat template a query has the question's and the answer's words, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.lm.local import LocalReader
from rag_repro.lm.prompts import Codec
from rag_repro.methods import base
from rag_repro.methods.dragin.draft_arrays import Draft
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings
from rag_repro.methods.dragin.loop import dynamic
from rag_repro.methods.dragin.queries import (
    Situation,
    choice,
    context_of,
    plain_query,
    qfs,
    query_of,
    taken,
)
from rag_repro.methods.dragin.timing import Moment
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Hit, Passage, Question
from tests.lm import templates, tiny
from tests.methods.dragin.language import SMALL
from tests.methods.dragin.test_loop import Library
from tests.methods.scripted import answer_of

ASKED = "Was the user of the system an assistant?"
HITS = (Hit(Passage("p", "Rome", "The user was born in Rome."), 1.0, 1),)
WRITTEN = ("The", " user", " of", " it", " was", " Braga")


def situation(shape: str, prompt: str = "chat") -> Situation:
    """A draft behind this template, whose last token looks at the template above all."""
    codec = Codec(templates.tokenizer(shape))
    before = codec.encode(PROMPTS[prompt].fill(Question("q", ASKED, ()), HITS))
    m, n = len(before), len(WRITTEN)
    looks = np.linspace(1, 2, m + n)
    for first, last in before.template:
        looks[first:last] = 9
    attention = np.tile(looks, (1, n, 1))
    sure = np.ones(n)
    draft = Draft(WRITTEN, sure, sure, attention, before.pieces, before.template)
    return Situation(ASKED, "", draft, Moment(n - 1, ((n - 1, n),), (0, n)))


@pytest.mark.parametrize("shape", templates.SHAPES)
def test_no_word_of_a_template_is_searched_for(shape: str):
    now = situation(shape)
    whole = f"{ASKED} The user of it was"
    settings = DynamicSettings(prompt="chat", top_n=99)
    context, hits = context_of(now, settings)
    words = taken(context, hits, settings, SMALL)
    assert query_of(context, words) == whole
    told = choice(context, words, hits)
    assert told["context"] == [*whole.split(), "Braga"]
    assert told["taken"] == list(range(len(whole.split())))
    last = DynamicSettings(prompt="chat", query="last_tokens", window=99)
    assert plain_query(now, last, SMALL).split() == whole.split()


@pytest.mark.parametrize("shape", templates.SHAPES)
def test_it_takes_no_place_among_the_words_that_are_looked_at(shape: str):
    now = situation(shape)
    settings = DynamicSettings(prompt="chat", top_n=2)
    assert qfs(*context_of(now, settings), settings, SMALL) == "it was"
    content = DynamicSettings(prompt="chat", top_n=99, candidates="content", context="prompt")
    said = qfs(*context_of(now, content), content, SMALL).split()
    told = f"{HITS[0].passage.text} Answer with a few words: {ASKED} The user of it was"
    assert said
    assert not set(said) - set(told.split())


def test_with_prompts_that_records_have_the_template_is_left_out_where_that_is_asked_for():
    """Their records' queries had it; `context` "said" has not."""
    now = situation("qwen", "drrag")
    old = DynamicSettings(prompt="drrag", top_n=99)
    assert "<|im_start|>assistant" in qfs(*context_of(now, old), old, SMALL)
    new = DynamicSettings(prompt="drrag", top_n=99, context="said")
    assert qfs(*context_of(now, new), new, SMALL) == f"{ASKED} The user of it was"
    assert [base.get("dynamic").version_of(s) for s in (old, new)] == [2, 4]


@pytest.mark.parametrize(
    ("timing", "query"),
    [("rind", "qfs"), ("window", "last_tokens"), ("flare", "qfs"), ("sentence", "full_context")],
)
def test_every_rule_asks_with_words_of_the_question_and_the_answer(timing: str, query: str):
    reader, library = LocalReader(tiny.loaded()), Library()
    reader.codec.tokenizer.chat_template = templates.SHAPES["smollm"][0]
    settings = DynamicSettings(
        **{
            "prompt": "chat",
            "timing": timing,
            "query": query,
            "threshold": 0,
            "rate": 1,
            "doubt": 1,
        },
        **{"max_new_tokens": 12, "window": 4, "top_n": 99},
    )
    question = Question("q", ASKED, ())
    answer = answer_of(dynamic, question, settings, reader=reader, retriever=library)
    assert library.queries
    # What was written and dropped again, too.
    written = "".join(e["text"] for e in answer.trace if e["stage"] == "decide")
    for asked in library.queries:
        assert "<|im" not in asked.replace(written, "")
        assert not set("".join(asked.split())) - set(f"{ASKED}{written}")
