"""Prompts with places for embeddings, and R²AG's prompts of table 5."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.methods.reading import PROMPTS, extract, joined
from rag_repro.schema import Hit, Passage, Prefix, Prompt, Question, Soft
from rag_repro.study import papers

QUESTION = Question("q", "Who wrote {it}?", ("Ada",))
TEXTS = (("One", "Ada wrote it."), ("Two", "[2]similarity: {soft}<R> {passages}\nAnswer: no"))
HITS = [Hit(Passage(str(i), *text), 1.0, i) for i, text in enumerate(TEXTS, start=1)]
SENTENCE = " The similarity information is provided in front of search results."


def soft(n: int) -> list[Soft]:
    features = np.zeros((n, 3), np.float32)
    return [Soft("former", features, i) for i in range(n)]


def text(prompt: Prompt) -> str:
    return "".join(s for s in prompt.segments if isinstance(s, str))


def test_r2ag_reads_as_table_5():
    prompt = PROMPTS["r2ag"].fill(QUESTION, HITS[:1], soft(1))
    head, placed, tail = prompt.segments
    assert prompt.chat
    assert placed.index == 0
    assert head == (
        "Write a high-quality answer for the given question using only the provided search "
        "results (some of which might be irrelevant). Only give me the answer and do not output "
        "any other words. The similarity information is provided in front of search results.\n\n"
        "[1]similarity: "
    )
    assert tail == (
        "(Title: One) Ada wrote it.\n\nOnly give me the answer and do not output any other "
        "words.\nQuestion: Who wrote {it}?\nAnswer:"
    )


@pytest.mark.parametrize("n", [1, 2])
def test_nothing_of_the_rag_prompt_is_lost(n):
    """r2ag.c35: without placeholders the prompt is RAG's but for the words that R²AG adds."""
    rag = PROMPTS["r2ag_rag"].fill(QUESTION, HITS[:n])
    informed = PROMPTS["r2ag"].fill(QUESTION, HITS[:n], soft(n))
    assert [s.index for s in informed.segments if isinstance(s, Soft)] == list(range(n))
    said = text(informed)
    assert said.count(SENTENCE) == 1
    for i in range(1, n + 1):
        assert f"\n[{i}]similarity: (Title: " in said
        said = said.replace(f"\n[{i}]similarity: (", f"\n[{i}](")
    assert said.replace(SENTENCE, "") == text(rag)


def test_a_passage_that_imitates_a_place_is_text():
    prompt = PROMPTS["r2ag"].fill(QUESTION, HITS, soft(2))
    assert [type(s).__name__ for s in prompt.segments] == ["str", "Soft", "str", "Soft", "str"]
    tail = prompt.segments[-1]
    assert tail.startswith("(Title: Two) [2]similarity: {soft}<R> {passages} Answer: no\n\nOnly")


def test_the_other_prompts_of_table_5():
    names = ("r2ag_rag", "r2ag_cot", "r2ag_compressed")
    rag, cot, compressed = (text(PROMPTS[name].fill(QUESTION, HITS[:1])) for name in names)
    assert cot == rag.removesuffix("Answer:") + "Let's think it step by step."
    assert compressed == rag.replace("[1](Title: One) ", "")
    bare = text(PROMPTS["r2ag_rag"].fill(QUESTION, ()))
    assert "search results" not in bare
    assert bare.endswith("Question: Who wrote {it}?\nAnswer:")
    assert text(PROMPTS["r2ag"].fill(QUESTION, ())) == bare


@pytest.mark.parametrize(
    ("name", "n", "message"),
    [
        ("r2ag", 0, "'r2ag' has a place for an embedding before each passage; 0 came with 2"),
        ("r2ag", 3, "3 came with 2 passages"),
        ("r2ag_rag", 2, "'r2ag_rag' has no place"),
    ],
)
def test_as_many_embeddings_as_places(name, n, message):
    with pytest.raises(ValueError, match=message):
        PROMPTS[name].fill(QUESTION, HITS, soft(n))


def test_plain_text_is_one_segment():
    assert PROMPTS["drrag"].fill(QUESTION, HITS).segments[1:] == ()
    prefix, body = PROMPTS["short"].fill(QUESTION, HITS).segments
    assert isinstance(prefix, Prefix)
    assert isinstance(body, str)
    assert joined(["a", "b", prefix, "c"]) == ["ab", prefix, "c"]


YES_NO = ("cot_yes_no", "dragin_yes_no")


@pytest.mark.parametrize("name", YES_NO)
@pytest.mark.parametrize(
    ("written", "said"),
    [
        (" A stone sinks. So the answer is yes.", "yes"),
        (" So the answer is yes, it is. So the answer is no.", "yes"),  # the first one counts
        (" So the answer is: yes.", "no"),
        (" So the answer is Yes.", "no"),
        (" So the answer is no, it would not sink.", "no"),
        (" A stone sinks.", None),
    ],
)
def test_strategyqa_answers_are_read_as_in_the_released_code(name, written, said):
    assert extract(written, PROMPTS[name]) == said


def test_appendix_f_tells_strategyqa_to_follow_the_examples():
    line = "Following the examples above, answer the question by reasoning step-by-step.\n\n"
    for hits in (HITS[:1], ()):
        with_line, without = (
            text(PROMPTS[name].fill(QUESTION, hits)) for name in ("dragin_yes_no", "dragin")
        )
        assert with_line == without.replace("Question:", line + "Question:", 1)
    assert PROMPTS["cot_yes_no"].fill(QUESTION, HITS) == PROMPTS["cot"].fill(QUESTION, HITS)


def test_the_papers_reader_is_asked_strategyqa_as_in_appendix_f():
    cells = papers.load("dragin").exhibits["table2"].cells("paper")
    prompts = {c.condition.configured.prompt for c in cells if c.keys["dataset"] == "strategyqa"}
    assert prompts == {"dragin_yes_no"}
