"""IRCoT asks the taught readers for what they were taught: prompts, sentences, stop, answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rag_repro.data import synthworld
from rag_repro.lm.prompts import Codec, prompt_text
from rag_repro.methods import base
from rag_repro.methods.baselines.ircot import IRCoTSettings, chain_prompt, ircot
from rag_repro.methods.reading import PROMPTS
from rag_repro.methods.sentences import ENGLISH
from rag_repro.schema import Hit, Passage, Question
from rag_repro.training.examples import Example, encode
from rag_repro.training.lessons import lesson, reading
from tests.lm import tiny
from tests.lm.scripted_reader import ScriptedReader
from tests.methods.scripted import answer_of

SETTINGS = IRCoTSettings(prompt="drrag")


@pytest.fixture(scope="module")
def made() -> list[tuple[Question, Example]]:
    dataset = synthworld.build("A", n_questions=1_000, split="train")
    asked = {q.id: q for q in dataset.questions}
    got = reading("A", 60, ["cot"], {3: 1, 6: 1}, seed=0, split="train")
    return [(asked[e.question], e) for e in got]


class Everything:
    """A retriever that finds the same passages for any query."""

    def __init__(self, passages: Sequence[Passage]):
        self.hits = [Hit(p, 1.0, i) for i, p in enumerate(passages, 1)]
        self.asked: list[str] = []

    def search(self, queries, k, within=None):
        self.asked += queries
        return [self.hits[:k] for _ in queries]


def sentences(target: str) -> list[str]:
    """The target cut where the method would cut it, white space and all."""
    cut = []
    while target.strip():
        _, end = ENGLISH.first(target)
        cut.append(target[:end])
        target = target[end:]
    return cut


def test_a_chain_so_far_stands_in_the_prompt_token_by_token_as_in_the_lesson(made):
    codec = Codec(tiny.tokenizer())
    passages = [Passage(f"p{i}", f"T{i}", f"the film {i} was made.") for i in range(3)]
    hits = [Hit(p, 1.0, i) for i, p in enumerate(passages, 1)]
    longest = 0
    for question, example in made:
        said = example.target.removeprefix(" ").rsplit(" So the answer is", 1)[0]
        taught = encode(lesson(PROMPTS["cot"], question, passages, said, "x"), codec, 2).tokens
        parts = sentences(example.target)
        longest = max(longest, len(parts))
        for n in range(len(parts)):
            prompt = chain_prompt(question, hits, "".join(parts[:n]), SETTINGS)
            met = codec.encode(prompt).tokens
            assert met == taught[: len(met)]
    assert longest == 5


def test_a_reader_that_writes_what_it_was_taught_stops_at_its_answer(made):
    for question, example in made:
        parts = sentences(example.target)
        # It goes on after the sentence, as a reader does until the rule stops it.
        script = [part + after[:4] for part, after in zip(parts, [*parts[1:], ""], strict=True)]
        found = Everything([Passage("p", "T", "the film was made.")])
        settings = base.get("ircot").configure({"k": 4, "prompt": "drrag", "answer": "chain"})
        got = answer_of(ircot, question, settings, retriever=found, reader=ScriptedReader(script))
        assert got.prediction == question.answers[0]
        assert got.trace[-1] == {"stage": "stop", "why": "answer"}
        assert len(found.asked) == len(parts)
        # Each search is for what was just found out, never for a sum.
        for query, part in zip(found.asked[1:], parts, strict=False):
            assert " = " not in query
            assert query.split()[-1] == part.split()[-1] or " = " in part


def test_the_last_reading_is_in_the_form_that_was_taught(made):
    question, _ = made[0]
    passages = [Passage("p", "T", "the film was made.")]
    script = [" So the answer is: x. And", "It was made. Answer: Ada."]
    reader = ScriptedReader(script)
    settings = base.get("ircot").configure({"k": 4, "prompt": "drrag"})
    got = answer_of(ircot, question, settings, retriever=Everything(passages), reader=reader)
    taught = lesson(PROMPTS["drrag"], question, passages, "It was made.", "x")
    assert prompt_text(reader.calls[-1].prompt) == prompt_text(taught.prompt)
    assert reader.calls[-1].prompt.chat
    assert got.prediction == "Ada"
