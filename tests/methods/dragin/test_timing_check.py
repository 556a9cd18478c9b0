"""Timing rules where there is a right answer: signals at each hop's value, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from rag_repro.data import synthworld
from rag_repro.data.synthworld.reasoning import facts_of
from rag_repro.engine import Task, run
from rag_repro.lm.prompts import prompt_text
from rag_repro.methods.dragin.timing_check import SIGNALS, TimingCheckSettings, timing_check
from rag_repro.methods.sentences import ENGLISH as RULES
from rag_repro.schema import Generate, Kept, Question, Read
from tests.lm import tiny
from tests.lm.scripted_reader import Said, ScriptedReader, pieces
from tests.methods.dragin.language import SMALL

WORLD = synthworld.world("B")
ASKED = synthworld.build("B").questions


def first(maker: str) -> Question:
    return next(q for q in ASKED if q.meta["maker"] == maker)


TWO_HOPS = first("compositional2")


def answered(question, reader, settings=TimingCheckSettings(), language=SMALL):  # noqa: B008
    method = partial(timing_check, language=language)
    [(_, answer)] = run([Task(question, method, settings)], {"reader": reader})
    return answer


def hops(question, script=" x.", reads=None, settings=TimingCheckSettings()):  # noqa: B008
    reader = ScriptedReader(script if callable(script) else lambda prompt: script, reads=reads)
    answer = answered(question, reader, settings)
    assert answer.error is None, answer.error
    return answer.trace, reader


def chain_of(reader) -> str:
    return reader.calls[0].text


def test_the_gold_chain_is_read_behind_the_question_alone():
    trace, reader = hops(TWO_HOPS)
    read, alone, *own = reader.calls
    assert isinstance(read, Read)
    assert prompt_text(read.prompt) == f"Question: {TWO_HOPS.text}\nAnswer:"
    assert read.layers == (-1,)
    facts = facts_of(WORLD, TWO_HOPS)
    titles = [WORLD.entity[fact.subject].title for fact in facts]
    for title, fact in zip(titles, facts, strict=True):
        sentence = next(s for s in read.text.split(". ") if s.strip().startswith(title))
        assert fact.value in sentence
    assert read.text.startswith(f" {titles[0]} ")
    assert read.text.endswith(f" So the answer is {TWO_HOPS.answers[0]}.")
    assert [event["value"] for event in trace] == [fact.value for fact in facts]
    # The same tokens once more with nothing before them, for the released code's attention.
    assert alone.prompt is None
    assert isinstance(alone.text, Kept)
    assert alone.text.n_tokens == len(pieces(read.text))
    # And the reader's own continuation of each hop, all in one gather.
    assert [type(call) for call in own] == [Generate, Generate]
    # Each ends with its sentence, which is all that is compared.
    assert [getattr(rule, "name", rule) for rule in own[0].stop] == ["\n", RULES.until_first().name]
    assert reader.batches == [1, 1, 2]


def test_the_reader_goes_on_right_before_each_value():
    trace, reader = hops(TWO_HOPS)
    chain = chain_of(reader)
    for call, event in zip(reader.calls[2:], trace, strict=True):
        shown = prompt_text(call.prompt).removeprefix(f"Question: {TWO_HOPS.text}\nAnswer:")
        assert chain.startswith(shown)
        assert chain[len(shown) :].startswith(f" {event['value']}")


def ends(question, ending):
    """What is wrong where the reader ends each sentence so: from chain and value."""

    def script(prompt):
        chain = chain_of(reader)
        shown = prompt.partition("Answer:")[2]
        rest = chain[len(shown) :]
        return ending(rest, rest.partition(".")[0] + ".")

    reader = ScriptedReader(script)
    answer = answered(question, reader)
    assert answer.error is None, answer.error
    return [event["wrong"] for event in answer.trace]


def test_a_next_answer_is_wrong_where_its_sentence_is_not_the_facts():
    assert ends(TWO_HOPS, lambda rest, own: rest) == [False, False]
    assert ends(TWO_HOPS, lambda rest, own: own.upper()) == [False, False]
    assert ends(TWO_HOPS, lambda rest, own: f"{own} And more. Much more.") == [False, False]
    assert ends(TWO_HOPS, lambda rest, own: " Nowhere.") == [True, True]
    assert ends(TWO_HOPS, lambda rest, own: f"{own[:-1]} Bay.") == [True, True]  # begins alike
    assert ends(TWO_HOPS, lambda rest, own: "") == [True, True]
    assert ends(TWO_HOPS, lambda rest, own: " no one." + rest) == [True, True]


def test_a_value_may_have_its_short_name():
    namesake = next(
        q
        for q in ASKED
        if q.meta["maker"] != "ambiguous" and any(" (" in f.value for f in facts_of(WORLD, q))
    )
    values = [fact.value for fact in facts_of(WORLD, namesake)]

    def short(rest, own):
        return own.partition(" (")[0] + own.partition(")")[2] if " (" in own else own

    assert ends(namesake, short) == [False] * len(values)


def test_another_wording_of_the_passages_is_right():
    """World A's passages say "was born in" and "was born in the city of"."""
    here = synthworld.world("A")
    asked = synthworld.build("A").questions
    born = next(q for q in asked if q.meta["relations"] == ("birth_place",))
    [town] = [fact.value for fact in facts_of(here, born)]
    lots = (replace(born, id=f"q{i}") for i in range(50))
    born = next(q for q in lots if f" was born in {town}." in chain_of(hops(q)[1]))
    [event] = hops(born, f" the city of {town}. So")[0]
    assert (event["said"], event["wrong"]) == (f"the city of {town}.", False)
    assert hops(born, f" the land of {town}. So")[0][0]["wrong"]
    assert hops(born, " the city of Rome. So")[0][0]["wrong"]


# ----------------------------------------------------------------------- signals


class Numbers:
    """Reads every text with hand-made numbers at the words of one value."""

    def __init__(self, word, entropy, p, column, heads=2):
        self.word, self.entropy, self.p, self.column, self.heads = word, entropy, p, column, heads

    def __call__(self, before, text):
        words, m = pieces(text), len(pieces(before))
        n = len(words)
        at = next(i for i, w in enumerate(words) if self.word in w)
        attention = np.zeros((self.heads, n, m + n))
        # A later token looks at the value, with less where nothing stands before.
        attention[0, at + 1, m + at] = self.column if m else self.column / 2
        attention[1, at + 1, m + at] = 0.1
        attention[:, at, m + at] = 0.9  # its look at itself, which equation 3 leaves out
        return Said(
            text,
            probability=[self.p if i == at else 0.99 for i in range(n)],
            entropy=[self.entropy if i == at else 0.01 for i in range(n)],
            attention=attention,
        )


def single():
    """A question of one hop whose value is one word."""
    asked = (q for q in ASKED if q.meta["maker"] == "single_hop")
    return next(q for q in asked if " " not in facts_of(WORLD, q)[0].value)


def test_signals_are_those_of_the_values_tokens():
    question = single()
    value = facts_of(WORLD, question)[0].value
    # What it says itself: "No", sure; "one.", doubtful; what follows the sentence counts no more.
    says = Said(" No one. Nobody.", probability=[0.9, 0.4, 0.1])
    trace, _ = hops(question, lambda prompt: says, Numbers(value, 2.0, 0.25, 0.5))
    [event] = trace
    made = event["signals"]
    assert list(made) == list(SIGNALS)
    a_max = (0.5 + 0.1) / 2  # the mean of the heads before the maximum
    wanted = {
        "entropy": 2.0,
        "surprise": 0.6,  # not 0.75 of the gold value, which would tell the answer
        "attention": a_max,
        "score": 2.0 * a_max,  # a number is no stop word
        "entropy_attention": 2.0 * a_max,
        "entropy_meaning": 2.0,
        "attention_meaning": a_max,
    }
    for name, wants in wanted.items():
        assert made[name] == pytest.approx(wants, abs=1e-4), name


def test_the_released_signal_is_by_attention_with_nothing_before_it():
    question = single()
    value = facts_of(WORLD, question)[0].value
    trace, reader = hops(question, reads=Numbers(value, 2.0, 0.25, 0.5))
    text = chain_of(reader)
    # mean over heads of the maximum, own row included: 0.9; a word's share of its sentence
    # times its words. All else is 0 in the value's sentence, so the share is 1.
    n_words = len(pieces(text.partition(" So the answer")[0]))
    assert trace[0]["signals"]["released"] == pytest.approx(2.0 * n_words, abs=1e-3)


def test_meaning_counts_where_the_value_is_a_stop_word():
    question = single()
    value = facts_of(WORLD, question)[0].value
    language = replace(SMALL, stops=SMALL.stops | {value.lower()})
    reader = ScriptedReader(lambda p: " x.", reads=Numbers(value, 2.0, 0.25, 0.5))
    made = answered(question, reader, language=language).trace[0]["signals"]
    assert (made["score"], made["entropy_meaning"], made["attention_meaning"]) == (0, 0, 0)
    assert made["entropy_attention"] == pytest.approx(0.6, abs=1e-4)


def test_a_sentence_counts_up_to_its_value():
    """The word before the value is the doubtful one: seen in the sentence, not at the value."""
    question = single()
    value = facts_of(WORLD, question)[0].value
    title = WORLD.entity[facts_of(WORLD, question)[0].subject].title.split()[0]
    reads = Numbers(title, 3.0, 0.5, 0.5)
    at_value, _ = hops(question, reads=reads)
    assert at_value[0]["signals"]["entropy"] == pytest.approx(0.01, abs=1e-4)
    whole, _ = hops(question, reads=reads, settings=TimingCheckSettings(where="sentence"))
    assert whole[0]["signals"]["entropy"] == pytest.approx(3.0)
    assert whole[0]["signals"]["surprise"] == pytest.approx(0.5)
    # What stands behind the value counts in neither.
    behind = Numbers("answer", 3.0, 0.5, 0.5)
    for where in ("value", "sentence"):
        trace, _ = hops(question, reads=behind, settings=TimingCheckSettings(where=where))
        assert trace[0]["signals"]["entropy"] == pytest.approx(0.01, abs=1e-4)
    assert trace[0]["value"] == value


def test_a_reader_that_says_nothing_is_sure():
    [event] = hops(single(), "")[0]
    assert (event["said"], event["signals"]["surprise"]) == ("", 0.0)


def test_alone_is_rinds_setting_too():
    question = single()
    value = facts_of(WORLD, question)[0].value
    reads = Numbers(value, 2.0, 0.25, 0.5)
    alone, _ = hops(question, reads=reads, settings=TimingCheckSettings(alone=True))
    assert alone[0]["signals"]["attention"] == pytest.approx((0.25 + 0.1) / 2, abs=1e-4)


# -------------------------------------------------------------------------- edges


def test_every_kind_with_a_chain_is_asked_at_every_hop():
    for maker in synthworld.KINDS:
        question = first(maker)
        trace, reader = hops(question)
        wanted = 0 if maker == "ambiguous" else len(question.meta["relations"])
        assert len(trace) == wanted, maker
        assert len(reader.calls) == (2 + wanted if wanted else 0), maker


def test_the_same_question_has_the_same_chain_and_others_other_wordings():
    assert chain_of(hops(TWO_HOPS)[1]) == chain_of(hops(TWO_HOPS)[1])
    renamed = replace(TWO_HOPS, id="another")
    texts = {chain_of(hops(replace(renamed, id=f"q{i}"))[1]) for i in range(8)}
    assert len(texts) > 1


def test_a_chat_form_opens_the_readers_turn_with_the_chain():
    trace, reader = hops(TWO_HOPS, settings=TimingCheckSettings(prompt="drrag"))
    assert reader.calls[0].prompt.chat
    assert not chain_of(reader)[0].isspace()
    assert f" Answer: {TWO_HOPS.answers[0]}." in chain_of(reader)
    assert all(call.prompt.chat for call in reader.calls[2:])
    assert [event["value"] for event in trace] == [f.value for f in facts_of(WORLD, TWO_HOPS)]


def test_a_question_whose_facts_are_not_known_is_refused():
    for question, words in (
        (Question("x", "Who?", ("a",)), "question 'x' is not the testbed's"),
        (replace(TWO_HOPS, gold=()), "of another world B than the usual one"),
        (
            replace(TWO_HOPS, meta={**TWO_HOPS.meta, "subjects": ("B-e9", "B-e999999")}),
            "of another world B than the usual one",
        ),
    ):
        error = answered(question, ScriptedReader(lambda p: " x.")).error
        assert words in error, error


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"where": "values"}, "where is 'values'.*'value'"),
        ({"prompt": None}, "name a prompt"),
        ({"heads": "men"}, "heads is 'men'"),
        ({"threshold": -1.0}, "threshold is -1.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        TimingCheckSettings(**given)


def test_what_would_be_found_makes_no_other_condition():
    assert TimingCheckSettings(k=7, own_candidates=True) == TimingCheckSettings()


def test_a_local_reader_can_be_checked_and_batches_do_not_matter():
    asked = [first(maker) for maker in ("compositional2", "comparison", "single_hop")]
    settings = TimingCheckSettings(max_new_tokens=6)
    made = []
    for size in (1, 8):
        tasks = [Task(q, partial(timing_check, language=SMALL), settings) for q in asked]
        reader = tiny.reader(batch_size=size)
        done = {t.question.id: a for t, a in run(tasks, {"reader": reader}, batch_size=size)}
        assert [a.error for a in done.values()] == [None] * 3
        made.append([done[q.id].trace for q in asked])
    for one, other in zip(*made, strict=True):
        for a, b in zip(one, other, strict=True):
            assert (a["value"], a["said"], a["wrong"]) == (b["value"], b["said"], b["wrong"])
            assert a["signals"] == pytest.approx(b["signals"], abs=2e-4)
            assert all(np.isfinite(list(a["signals"].values())))
            assert a["signals"]["entropy"] > 0
