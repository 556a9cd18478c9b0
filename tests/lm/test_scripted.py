"""The scripted reader keeps the promises of a real one."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.lm.prompts import prompt_text
from rag_repro.schema import Generate, Kept, Prefix, Prompt, Read, Reply, Soft, Until
from rag_repro.schema.errors import ReaderError
from tests.lm.scripted_reader import Said, ScriptedReader, pieces


def ask(reader: ScriptedReader, *segments, **settings):
    settings = {"max_new_tokens": 99} | settings
    return reader.generate([Generate(Prompt.from_segments(*segments), **settings)])[0]


def test_a_list_is_used_up_in_order():
    reader = ScriptedReader(["one", "two"])
    made = reader.generate(
        [Generate(Prompt.from_segments("a"), 9), Generate(Prompt.from_segments("b"), 9)]
    )
    assert [m.text for m in made] == ["one", "two"]
    assert [c.prompt.segments for c in reader.calls] == [("a",), ("b",)]
    assert reader.batches == [2]
    with pytest.raises(ReaderError, match="only 2 answers"):
        ask(reader, "c")


def test_a_function_sees_the_prompts_text():
    reader = ScriptedReader(lambda text: text.upper())
    features = np.zeros((2, 1))
    assert ask(reader, Prefix("pre "), "mid ", Soft("r2", features, 1), Reply(" re")).text == (
        "PRE MID [R2:1] RE"
    )


def test_tokens_are_words():
    made = ask(ScriptedReader(["It is  Rome. "]), "Where is it?")
    assert pieces("It is  Rome. ") == ["It", " is", "  Rome.", " "]
    assert made.offsets == (0, 2, 5, 12)
    assert (made.finish, made.prompt_tokens, made.prefilled) == ("eos", 3, 3)
    assert len(set(made.tokens)) == 4


def test_ends():
    rule = Until("sentence", lambda text: text.endswith("."))
    said = "It is Rome. It is Paris."
    assert ask(ScriptedReader([said]), "a", max_new_tokens=2).text == "It is"
    assert ask(ScriptedReader([said]), "a", max_new_tokens=2).finish == "length"
    made = ask(ScriptedReader([said]), "a", stop=(rule,))
    assert (made.text, made.finish) == ("It is Rome.", "stop")
    made = ask(ScriptedReader([said]), "a", stop=("me",))
    assert (made.text, made.finish, made.offsets) == ("It is Ro", "stop", (0, 2, 5))
    assert ask(ScriptedReader(["one two"]), "a", max_new_tokens=2).finish == "eos"


def test_hand_made_traces():
    attention = np.arange(12, dtype=float).reshape(1, 2, 6)[:, :, :4]
    said = Said("so it", [0.5, 0.25], [1.0, 2.0], attention, np.array([[0.1], [0.2]]))
    made = ask(ScriptedReader([said]), "a b", trace=True, watch=("x",))
    assert made.trace.entropy.tolist() == [1.0, 2.0]
    assert made.trace.probability.tolist() == [0.5, 0.25]
    assert made.trace.attention[-1].shape == (1, 2, 4)
    assert made.watched.shape == (2, 1)
    assert ask(ScriptedReader(["so it"]), "a b").trace is None
    cut = ask(ScriptedReader([said]), "a b", trace=True, max_new_tokens=1)
    assert cut.trace.attention[-1].shape == (1, 1, 3)


def test_attention_that_nobody_scripted_is_even_and_causal():
    made = ask(ScriptedReader(["so it"]), "a", trace=True)
    np.testing.assert_allclose(made.trace.attention[-1][0], [[1 / 2, 1 / 2, 0], [1 / 3] * 3])


def test_a_prompt_alone_is_looked_at_by_its_last_token():
    features = np.zeros((2, 1))
    prompt = Prompt.from_segments("a b", Soft("r2", features, 0), "(c d")
    [made] = ScriptedReader().read([Read(prompt, "", layers=(-1, -2))])
    # A soft token says nothing, and parts the words beside it.
    assert made.trace.prompt == ("a", " b", "", "(c", " d")
    np.testing.assert_allclose(made.trace.attention[-2], np.full((1, 1, 5), 0.2))
    assert made.trace.probability.shape == (0,)
    rows = np.arange(10.0).reshape(2, 1, 5)
    reader = ScriptedReader(reads=lambda prompt, text: Said(text, attention=rows))
    [made] = reader.read([Read(prompt, "", layers=(-1,))])
    np.testing.assert_array_equal(made.trace.attention[-1], rows)


def test_kept_words_are_part_of_the_prompt():
    made = ask(ScriptedReader(["It is Rome."]), "a")
    assert prompt_text(Prompt.from_segments("Q ", Kept(made, 2))) == "Q It is"
    assert prompt_text(Prompt.from_segments("Q ", Kept(made, 3))) == "Q It is Rome."


def test_failures_stand_in_the_list():
    made = ScriptedReader([ValueError("no"), "yes"]).generate(
        [Generate(Prompt.from_segments("a"), 9)] * 2
    )
    assert isinstance(made[0], ValueError)
    assert made[1].text == "yes"


def test_reading():
    reader = ScriptedReader(reads=lambda prompt, text: Said(text, entropy=[len(prompt)] * 2))
    made = reader.read([Read(Prompt.from_segments("abc"), "two words", layers=(-1, -2))])[0]
    assert made.trace.entropy.tolist() == [3, 3]
    assert set(made.trace.attention) == {-1, -2}
    assert made.finish == "given"
    assert ScriptedReader().read([Read(Prompt.from_segments("a"), "b")])[0].trace.attention == {}


def test_scripts_that_do_not_fit():
    with pytest.raises(ReaderError, match="3 values of entropy for 2 tokens"):
        ask(ScriptedReader([Said("two words", entropy=[1, 2, 3])]), "a")
    with pytest.raises(ReaderError, match="watched"):
        ask(ScriptedReader(["a"]), "a", watch=("x",))
    reader = ScriptedReader(reads=lambda prompt, text: "other")
    with pytest.raises(ReaderError, match="other"):
        reader.read([Read(Prompt.from_segments("a"), "text")])
