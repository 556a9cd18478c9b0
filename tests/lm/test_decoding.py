"""Ends, offsets, watched tokens, sampling, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rag_repro.lm.decode import choose, distribution, entropy
from rag_repro.schema import Generate, Kept, Prompt, Read, Reply, Sampling, Until
from rag_repro.schema.errors import CallError, PromptTooLong
from tests.lm import tiny


def forced(tokens: list[int], **settings):
    """A reader whose model writes given tokens whatever it is asked, then its end."""
    reader = tiny.reader(**settings)
    steps = [*tokens, 2]

    class Lead(torch.nn.Module):
        """In place of the head: the token that follows at this place gets all the weight."""

        def forward(self, hidden):
            return torch.nn.functional.one_hot(
                torch.tensor([[steps.pop(0)] * hidden.shape[1]]), 400
            ).float()

    reader.model.lm_head = Lead()
    return reader


def spell(text: str) -> list[int]:
    return list(tiny.tokenizer()(text, add_special_tokens=False).input_ids)


# ------------------------------------------------------------------------ ends


def test_a_stop_string_is_cut_with_the_tokens_that_begin_after_it():
    text = " Paris.\n\nQuestion"
    reader = forced(spell(text))
    made = reader.generate([Generate(Prompt.from_segments("a"), 50, stop=("\n\n",), trace=True)])[0]
    assert (made.text, made.finish) == (" Paris.", "stop")
    assert reader.codec.text(made.tokens) == " Paris."
    assert len(made.offsets) == len(made.tokens) == len(made.trace.entropy)
    assert made.trace.attention[-1].shape[1] == len(made.tokens)


@pytest.mark.parametrize("stop", [("\n",), ("\n\n", "\n"), (" ", "\n")])
def test_the_blanks_that_a_reply_begins_with_end_nothing(stop):
    made = forced(spell("\n\nParis.\n\nQuestion")).generate(
        [Generate(Prompt.from_segments("a"), 50, stop=stop, trace=True)]
    )[0]
    assert (made.text, made.finish) == ("\n\nParis.", "stop")
    assert len(made.offsets) == len(made.tokens) == len(made.trace.entropy)
    [made] = forced(spell("\n\nQuestion: b")).generate(
        [Generate(Prompt.from_segments("a"), 50, stop=("\nQuestion:",))]
    )
    assert made.text == "\n"  # a stop of words is one wherever it stands


def test_a_reply_that_the_prompt_begins_may_end_with_its_line():
    prompt = Prompt.from_segments("a", Reply(" It is Paris."))
    [made] = forced(spell("\nQuestion")).generate([Generate(prompt, 50, stop=("\n",))])
    assert (made.text, made.finish) == ("", "stop")


def test_only_calls_whose_result_it_may_change_have_another_name():
    reader = tiny.reader()
    names = {
        reader.key(Generate(Prompt.from_segments(*parts), 9, stop=stop))
        for parts in (("a b",), ("a", Reply(" b")))
        for stop in (("\n",), ("x",))
    }
    assert len(names) == 3  # " b" as a reply's beginning or as the prompt's end are the same tokens


def test_a_token_astride_the_cut_is_kept_whole():
    """Every character of the text has its token; the last may reach beyond the text."""
    tokens = spell(" the capital")
    pieces = [tiny.tokenizer().decode([t]) for t in tokens]
    assert pieces[0] == " the"
    made = forced(tokens).generate([Generate(Prompt.from_segments("a"), 50, stop=("he",))])[0]
    assert (made.text, made.tokens, made.offsets) == (" t", tuple(tokens[:1]), (0,))


def test_the_earliest_of_two_stop_strings_cuts():
    made = forced(spell("one two")).generate(
        [Generate(Prompt.from_segments("a"), 50, stop=("two", "e t", "zzz"))]
    )[0]
    assert made.text == "on"


def test_two_stop_strings_in_one_token():
    made = forced(spell(" the")).generate(
        [Generate(Prompt.from_segments("a"), 9, stop=("he", "t"))]
    )[0]
    assert made.text == " "


def test_a_stop_string_at_the_start_leaves_nothing():
    made = forced(spell("Paris")).generate(
        [Generate(Prompt.from_segments("a"), 9, stop=("P",), trace=True)]
    )[0]
    assert (made.text, made.tokens, made.finish) == ("", (), "stop")
    assert made.trace.attention[-1].shape[1] == 0


def test_a_rule_ends_the_text_and_keeps_it():
    rule = Until("first sentence", lambda text: text.rstrip().endswith("."))
    made = forced(spell("It is Rome. It is")).generate(
        [Generate(Prompt.from_segments("a"), 50, stop=(rule,))]
    )[0]
    assert (made.text, made.finish) == ("It is Rome.", "stop")


def test_the_end_token_is_not_part_of_the_answer():
    made = forced(spell("Rome")).generate([Generate(Prompt.from_segments("a"), 50, trace=True)])[0]
    assert (made.text, made.finish) == ("Rome", "eos")
    assert made.tokens == tuple(spell("Rome"))


def test_at_most_the_tokens_asked_for():
    made = forced(spell("The capital of France")).generate(
        [Generate(Prompt.from_segments("a"), 2)]
    )[0]
    assert (len(made.tokens), made.finish) == (2, "length")


# --------------------------------------------------------------------- offsets


@pytest.mark.parametrize("text", ["Łódź is a city", "日本 and 東京 😀!", "a\u0301bc"])
def test_offsets_say_where_each_token_begins(text: str):
    """Also where a character takes several tokens: each of them begins with it."""
    codec = tiny.reader().codec
    tokens = codec.ids(text)
    starts = codec.offsets(tokens, codec.text(tokens))
    ends = [*starts[1:], len(text)]
    assert codec.text(tokens) == text
    assert list(starts) == sorted(starts)
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start < end:  # the token that completes it: all bytes of text[start:end]
            group = [t for t, s in zip(tokens, starts, strict=True) if s == start]
            assert codec.text(group) == text[start:end], i


def test_offsets_by_hand():
    codec = tiny.reader().codec
    tokens = codec.ids("Rome😀!")
    assert codec.text(tokens[:1]) != "Rome😀!"
    smile = [codec.text([t]) for t in tokens].index("\ufffd")
    starts = codec.offsets(tokens, "Rome😀!")
    assert starts[smile : smile + 4] == (4, 4, 4, 4)
    assert starts[-1] == 5


def test_reading_has_offsets_too():
    made = tiny.reader().read([Read(Prompt.from_segments("a"), "Łódź is")])[0]
    assert made.offsets[0] == 0
    assert made.offsets[-1] < len("Łódź is")
    assert len(made.offsets) == len(made.tokens)


# -------------------------------------------------------------- distributions


def test_entropy_and_probability_by_hand():
    """Two tokens at one half, the rest impossible: ln 2, and 0 ln 0 is 0."""
    logits = torch.full((1, 4), -torch.inf)
    logits[0, :2] = 0.0
    made = choose(logits, [True], [(0, 1, 3)], [None], [None])[0]
    assert made.token == 0
    assert made.gap == 0
    assert made.probability == pytest.approx(0.5)
    assert made.entropy == pytest.approx(np.log(2))
    assert made.watched == pytest.approx((0.5, 0.5, 0.0))
    assert entropy(torch.full((8,), 1 / 8).log()).item() == pytest.approx(np.log(8))


def test_sampling_by_hand():
    """p = 0.5, 0.3, 0.2: top 0.6 keeps two, 0.5 the first alone; hot logits move together."""
    logits = torch.tensor([0.5, 0.3, 0.2]).log()
    two = distribution(logits, Sampling(0, top_p=0.6)).tolist()
    assert two == pytest.approx([0.625, 0.375, 0.0])
    assert distribution(logits, Sampling(0, top_p=0.5)).tolist() == pytest.approx([1, 0, 0])
    squares = [0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38]
    cold = distribution(logits, Sampling(0, temperature=0.5)).tolist()
    assert cold == pytest.approx(squares)


def test_draws_follow_their_distribution_and_their_own_seed():
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log().repeat(2000, 1)
    rule = Sampling(0)
    makers = [torch.Generator().manual_seed(i) for i in range(2000)]
    n = len(makers)
    made = choose(logits, [True] * n, [()] * n, [rule] * n, makers)
    counts = np.bincount([c.token for c in made], minlength=3) / n
    np.testing.assert_allclose(counts, [0.5, 0.3, 0.2], atol=0.04)
    for one in made:
        assert one.probability == pytest.approx([0.5, 0.3, 0.2][one.token])
        assert one.entropy == pytest.approx(1.0297, abs=1e-4)
    again = choose(logits[:1], [False], [()], [rule], [torch.Generator().manual_seed(7)])
    assert again[0].token == made[7].token


def test_watched_tokens_are_the_models_own_also_when_sampling():
    reader = tiny.reader()
    call = {
        "prompt": Prompt.from_segments("The capital"),
        "max_new_tokens": 3,
        "watch": (" of", " the"),
    }
    greedy, drawn = reader.generate(
        [Generate(**call), Generate(**call, sampling=Sampling(5, temperature=3.0))]
    )
    ids = list(reader.codec.encode(call["prompt"]).tokens)
    watched = [reader.codec.watched(t) for t in call["watch"]]
    for made in (greedy, drawn):
        assert made.watched.shape == (len(made.tokens), 2)
        logits, _ = tiny.plain_pass(reader.model, ids + list(made.tokens))
        p = torch.tensor(logits).softmax(-1).numpy()[len(ids) - 1 : -1, watched]
        np.testing.assert_allclose(made.watched, p, atol=1e-5)


def test_a_seed_repeats_itself_and_another_does_not():
    reader = tiny.reader()

    def draw(seed: int):
        call = Generate(Prompt.from_segments("Who?"), 12, sampling=Sampling(seed))
        return reader.generate([call])[0].tokens

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


# -------------------------------------------------------------------- refusals


def test_one_bad_call_does_not_spoil_its_neighbours():
    reader = tiny.reader()
    good = Generate(Prompt.from_segments("Who?"), 3)
    long = Generate(Prompt.from_segments("born " * 600), 3)
    made = reader.generate([good, long, good])
    assert isinstance(made[1], PromptTooLong)
    assert (made[1].tokens, made[1].context) == (len(reader.codec.encode(long.prompt)), 512)
    assert "512" in str(made[1])
    assert made[0].tokens == made[2].tokens != ()


def test_new_tokens_end_where_the_context_does():
    reader = tiny.reader()
    room = Prompt.from_segments("é" * 254)
    assert len(reader.codec.encode(room)) == 508
    made = reader.generate([Generate(room, 50)])[0]
    assert (len(made.tokens), made.finish) == (4, "length")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (Generate(Prompt.from_segments("a"), 0), "max_new_tokens"),
        (Generate(Prompt.from_segments(""), 3), "empty"),
        (Generate(Prompt.from_segments("a"), 3, stop=("",)), "empty stop"),
        (Generate(Prompt.from_segments("a"), 3, watch=("two words here",)), "watch"),
        (
            Generate(Prompt.from_segments("a"), 3, sampling=Sampling(0, temperature=0)),
            "temperature",
        ),
        (Generate(Prompt.from_segments("a"), 3, sampling=Sampling(0, top_p=1.5)), "top_p"),
    ],
)
def test_calls_that_make_no_sense_are_refused_by_name(call: Generate, why: str):
    made = tiny.reader().generate([call])[0]
    assert isinstance(made, CallError)
    assert why in str(made)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (Read(Prompt.from_segments("a"), ""), "empty"),
        (Read(Prompt.from_segments("a"), "b", layers=(0,)), "layers"),
        (Read(Prompt.from_segments("a"), "b", layers=(-4,)), "-3"),
        (Read(Prompt.from_segments("a"), "born " * 600), "context"),
    ],
)
def test_readings_that_make_no_sense_are_refused_by_name(call: Read, why: str):
    made = tiny.reader().read([call])[0]
    assert isinstance(made, CallError)
    assert why in str(made)


def test_keeping_more_than_there_is():
    reader = tiny.reader()
    made = reader.generate([Generate(Prompt.from_segments("a"), 2)])[0]
    refused = reader.generate([Generate(Prompt.from_segments("a", Kept(made, 3)), 2)])[0]
    assert isinstance(refused, CallError)


def test_no_calls_no_results():
    assert tiny.reader().generate([]) == []
    assert tiny.reader().read([]) == []
