"""The loop of section 3.3 and its baselines, on traces worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from rag_repro.lm.prompts import prompt_text
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings, ReleasedSettings
from rag_repro.methods.dragin.loop import dynamic
from rag_repro.schema import Generate, Hit, Passage, Question, Read
from tests.lm.scripted_reader import ScriptedReader
from tests.methods.dragin.language import SMALL
from tests.methods.scripted import answer_of, said

QUESTION = Question(id="q", text="How many people can the arena seat?", answers=("3,677",))


class Library:
    """A retriever that finds one passage, named after the query's number."""

    def __init__(self):
        self.queries = []

    def search(self, queries, k, within=None):
        found = []
        for query in queries:
            self.queries.append(query)
            n = len(self.queries)
            found.append([Hit(Passage(f"p{n}", f"Title {n}", f"Passage {n}."), 1.0, 1)])
        return found


def answered(script, settings, question=QUESTION):
    reader, library = ScriptedReader(script), Library()
    method = partial(dynamic, language=SMALL)
    answer = answer_of(method, question, settings, reader=reader, retriever=library)
    return answer, reader, library


def prompts(reader) -> list[str]:
    return [prompt_text(call.prompt) for call in reader.calls]


def stages(answer) -> list[str]:
    return [event["stage"] for event in answer.trace]


BARE = "Question: How many people can the arena seat?\nAnswer:"


def with_passage(n: int) -> str:
    return (
        "Below are the external knowledge references:\n"
        f"[1] Passage {n}.\n"
        f"Please answer the question based on the external knowledge:\n{BARE}"
    )


def test_dragin_cuts_at_the_token_searches_and_goes_on_from_there():
    """The case of appendix C: 4,250 is doubted, its sentence's beginning stays."""
    script = [
        said(" It is Bank Hall. It seats 4,250 men. So the answer is 4,250.", {"4,250": 3.0}),
        said(" 3,677 men. So the answer is 3,677.", {"3,677": 9.0}),
    ]
    answer, reader, library = answered(script, DynamicSettings(threshold=0.1, top_n=5))
    assert answer.prediction == "3,677"
    assert answer.text == " It is Bank Hall. It seats 3,677 men. So the answer is 3,677."
    assert prompts(reader) == [BARE, with_passage(1) + " It is Bank Hall. It seats"]
    # Everything is looked at alike, so it is the first five of question and text.
    assert library.queries == ["How many people can the"]
    assert [hit.passage.id for hit in answer.hits] == ["p1"]
    assert stages(answer) == ["decide", "retrieve", "write", "decide", "write"]
    assert answer.trace[0]["hits"] == ["4,250"]
    assert (answer.cost.reader_calls, answer.cost.retrievals, answer.cost.reads) == (2, 1, 0)


def test_a_question_of_two_lines_is_found_in_its_prompt_all_the_same():
    """Prompts put it on one line; not found there, the instructions would be looked back at."""
    broken = replace(QUESTION, text=QUESTION.text.replace(" can", "\ncan"))
    script = [
        said(" It is Bank. It seats 4,250 men. So the answer is 4,250.", {"4,250": 90.0}),
        said(" 3,677 men. So the answer is 3,677."),
    ]
    settings = DynamicSettings(threshold=0.1, top_n=5, first=True)
    _, _, library = answered(script, settings, question=broken)
    assert library.queries[1] == "How many people can the"


def test_a_later_alarm_replaces_the_passages():
    script = [
        said(" It is Bank Hall.", {"Bank": 3.0}),
        said(" Odd Hall in Rome.", {"Odd": 9.0, "Rome.": 0.0, "in": 9.0, "Hall": 8.0}),
        said(" House. So the answer is x.", {"House.": 9.0}),
    ]
    answer, reader, library = answered(script, DynamicSettings(threshold=0.1))
    assert prompts(reader)[1:] == [
        with_passage(1) + " It is",
        with_passage(2) + " It is Odd",
    ]
    assert answer.text == " It is Odd House. So the answer is x."
    assert len(library.queries) == 2


def test_the_token_behind_a_search_gives_no_alarm_again():
    """Else a reader that stays in doubt would search for ever."""
    script = [said(" Bank.", {"Bank.": 3.0})] + [said(" Bank so.", {"Bank": 9.0})] * 5
    answer, _, library = answered(script, DynamicSettings(threshold=0.1, ask_again="never"))
    # The last token is looked at by none, so the first draft stands; likewise later.
    assert library.queries == []
    script = [said(" Bank Hall.", {"Bank": 3.0}), said(" Bank Hall so.", {"Bank": 9.0})]
    answer, _, library = answered(script, DynamicSettings(threshold=0.1, ask_again="never"))
    assert len(library.queries) == 1
    assert answer.text == " Bank Hall so."
    assert answer.prediction is None


def test_only_the_first_token_is_spared_also_where_it_begins_a_sentence():
    script = [
        said(" It was. Bank is it.", {"Bank": 9.0}),
        said(" Odd Hall is it.", {"Odd": 9.0, "Hall": 9.0}),
        said(" House. So the answer is x."),
    ]
    answer, _, library = answered(script, DynamicSettings(threshold=0.1))
    assert len(library.queries) == 2
    assert answer.text == " It was. Odd House. So the answer is x."


@pytest.mark.parametrize("length", ["Odd it is.", "Odd it is, and old."])
def test_a_sentence_written_again_is_spared_whatever_its_length(length):
    doubts = {"Odd": 9.0, "old.": 9.0, "New": 9.0}
    script = [
        said(" Bank is it.", doubts | {"Bank": 9.0}),
        said(f" {length} New is it.", doubts),
        said(" So the answer is x."),
    ]
    settings = DynamicSettings(threshold=0.1, cut="sentence")
    answer, _, library = answered(script, settings)
    assert len(library.queries) == 2
    assert answer.text == f" {length} So the answer is x."


def test_where_no_answer_was_said_it_is_asked_for_once_more():
    script = [said(" It is Bank Hall.", {"Bank": 3.0}), said(" Odd."), said(" Odd Hall.")]
    answer, reader, _ = answered(script, DynamicSettings(threshold=0.1))
    assert prompts(reader)[2] == with_passage(1) + " It is Odd. So the answer is"
    assert answer.prediction == "Odd Hall"
    assert answer.cost.reader_calls == 3
    bare = DynamicSettings(threshold=0.1, ask_again="bare")
    _, reader, _ = answered(script, bare)
    assert prompts(reader)[2] == BARE + " It is Odd. So the answer is"
    never = DynamicSettings(threshold=0.1, ask_again="never")
    answer, reader, _ = answered(script, never)
    assert (answer.prediction, len(reader.calls)) == (None, 2)


def test_the_answer_is_no_longer_than_it_may_be():
    script = [said(" a b c d e f g h", {"d": 9.0}), said(" i j k l m n o p q"), said(" x")]
    answer, reader, _ = answered(script, DynamicSettings(threshold=0.1, max_new_tokens=6))
    assert [call.max_new_tokens for call in reader.calls] == [6, 3, 20]
    assert answer.text == " a b c i j k So the answer is x"


def test_fs_rag_searches_with_every_sentence():
    """Its searches are its sentences and one before them (claim c14)."""
    script = [said(" A one. B two. C"), said(" B two. C"), said(" So the answer is x.")]
    settings = DynamicSettings(timing="sentence", query="last_sentence")
    answer, reader, library = answered(script, settings)
    assert library.queries == [QUESTION.text, "A one.", "B two."]
    assert prompts(reader) == [
        with_passage(1),
        with_passage(2) + " A one.",
        with_passage(3) + " A one. B two.",
    ]
    assert answer.text == " A one. B two. So the answer is x."


def test_fl_rag_searches_after_every_window():
    script = [said(" a b c d e f"), said(" d e f g"), said(" So the answer is x.")]
    script.append(said(" is x."))
    settings = DynamicSettings(timing="window", query="last_tokens", window=3, max_new_tokens=20)
    answer, reader, library = answered(script, settings)
    assert [call.max_new_tokens for call in reader.calls[:3]] == [3, 3, 3]
    assert library.queries == [QUESTION.text, "a b c", "d e f", "So the answer"]
    assert prompts(reader)[1] == with_passage(2) + " a b c"
    assert answer.text == " a b c d e f So the answer is x."


def test_flare_writes_a_doubtful_sentence_again_with_its_sure_words():
    script = [
        said(" The hall is Bank Hall. Then", p={"Bank": 0.3, "Hall.": 0.7}),
        said(" The hall is Odd Hall. Then", p={"Odd": 0.3}),
        said(" So the answer is x."),
    ]
    settings = DynamicSettings(timing="flare", query="sure_sentence")
    answer, reader, library = answered(script, settings)
    assert library.queries == [QUESTION.text, "The hall is Hall."]
    # Written again behind the new passages, it is not judged a second time.
    assert prompts(reader) == [
        with_passage(1),
        with_passage(2),
        with_passage(2) + " The hall is Odd Hall.",
    ]
    assert answer.text == " The hall is Odd Hall. So the answer is x."


def test_flare_takes_a_sentence_written_again_as_it_is():
    script = [
        said(" It is Bank.", p={"Bank.": 0.3}),
        said(" It is the Odd Hall of Rome.", p={"Rome.": 0.3}),
    ]
    settings = DynamicSettings(timing="flare", query="sure_sentence", ask_again="never")
    answer, _, library = answered(script, settings)
    assert len(library.queries) == 2  # the question, the first sentence
    assert answer.text == " It is the Odd Hall of Rome."


def test_flare_has_two_thresholds():
    draft = said(" It is Bank Hall. Then", p={"Bank": 0.6})
    rest = [said(" So the answer is x.")] * 2
    unmasked = DynamicSettings(timing="flare", query="sure_sentence")
    assert answered([draft, *rest], unmasked)[2].queries == [QUESTION.text, "It is Bank Hall."]
    sure = DynamicSettings(timing="flare", query="sure_sentence", doubt=0.5)
    assert answered([draft, *rest], sure)[2].queries == [QUESTION.text]
    mean = DynamicSettings(timing="flare", query="sure_sentence", doubt_of="sentence", doubt=0.8)
    assert answered([draft, *rest], mean)[2].queries == [QUESTION.text]  # the mean is 0.8625
    mean = DynamicSettings(timing="flare", query="sure_sentence", doubt_of="sentence", doubt=0.9)
    assert len(answered([draft, *rest], mean)[2].queries) == 2


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("question", QUESTION.text),
        ("full_context", f"{QUESTION.text}  One was. It seats"),
        ("sentence", "It seats 9 men."),
        ("last_sentence", "One was."),
        ("last_tokens", "was. It seats"),
        ("sure_sentence", "It 9 men."),
        ("first_words", "How many people"),
    ],
)
def test_query_rules_under_one_timing(query, expected):
    script = [
        said(" One was. It seats 9 men.", {"9": 9.0}, {"seats": 0.2}),
        said(" So the answer is x."),
    ]
    settings = DynamicSettings(threshold=0.1, query=query, window=3, top_n=3)
    assert answered(script, settings)[2].queries == [expected]


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("output", "It seats 3,677 or"),
        ("text", f"{QUESTION.text} Answer: It seats 3,677 or"),
        ("prompt", f"{' '.join(with_passage(1).split())} It seats 3,677 or"),
    ],
)
def test_how_far_back_a_query_may_look(context, expected):
    script = [
        said(" It seats 4,250 men.", {"4,250": 3.0}),
        said(" 3,677 or so of them.", {"so": 9.0}),
        said(" more. So the answer is x."),
    ]
    settings = DynamicSettings(threshold=0.1, top_n=99, context=context)
    assert answered(script, settings)[2].queries[1:] == [expected]


def test_nobody_reads_a_draft_alone_but_rind():
    draft = said(" It is Bank Hall. Then", p={"Bank": 0.3})
    script = [draft, said(" So the answer is x."), said(" So the answer is x.")]
    for timing in ("flare", "random"):
        settings = DynamicSettings(timing=timing, query="question", alone=True)
        answer, reader, _ = answered(script, settings)
        assert answer.cost.reads == 0
        assert not any(call.attention for call in reader.calls if getattr(call, "trace", False))


def test_nobody_reads_the_attention_of_what_passages_serve():
    script = [
        said(" It is Bank Hall.", {"Bank": 9.0}),
        said(" Odd is it. And"),
        said(" So the answer is x."),
    ]
    settings = DynamicSettings(threshold=0.1, documents="one_sentence")
    _, reader, _ = answered(script, settings)
    assert [call.attention for call in reader.calls] == [True, False, True]


def seeds(settings, question=QUESTION) -> list[int]:
    script = [said(" a b c d e f g h", {"d": 9.0}), said(" i j k l."), said(" x")]
    _, reader, _ = answered(script, settings, question)
    drawn = [call for call in reader.calls if isinstance(call, Generate) and call.sampling]
    assert {(call.sampling.temperature, call.sampling.top_p) for call in drawn} == {(0.7, 0.8)}
    return [call.sampling.seed for call in drawn]


def test_tokens_are_drawn_by_the_seed_the_question_and_the_draft():
    settings = DynamicSettings(threshold=0.1, sampled=True, temperature=0.7, top_p=0.8)
    first = seeds(settings)
    assert first == seeds(settings)
    others = seeds(replace(settings, seed=1)), seeds(settings, replace(QUESTION, id="other"))
    every = [*first, *others[0], *others[1]]
    assert len(set(every)) == len(every) == 3 * 3  # two drafts, and the answer asked for
    assert all(0 <= seed < 2**31 for seed in every)  # servers take no larger ones
    _, reader, _ = answered([said(" So the answer is x.")], DynamicSettings())
    assert reader.calls[0].sampling is None


def test_chance_is_the_same_for_the_same_question_alone():
    script = [said(" a b c d e f g h i j")] + [said(" k l m n.")] * 9
    settings = DynamicSettings(timing="random", rate=0.2, query="random_words", top_n=4, seed=3)
    first, again = (answered(script, settings)[2].queries for _ in range(2))
    assert first == again != []
    other = Question(id="other", text=QUESTION.text, answers=("x",))
    assert answered(script, settings, other)[2].queries != first
    never = DynamicSettings(timing="random", rate=0.0)
    assert answered([said(" So the answer is x.")], never)[2].queries == []


def test_early_chance_searches_in_the_first_sentence_and_by_its_rate_alone_from_then_on():
    script = [said(" a b c. d e f g h."), said(" p q r. s t."), said(" u v. w.")]
    early = {"timing": "random_early", "query": "question", "ask_again": "never"}
    kept = set()
    for n in range(40):
        asked = Question(id=str(n), text=QUESTION.text, answers=("x",))
        answer, _, library = answered(script, DynamicSettings(**early, rate=0.0), asked)
        assert library.queries == [QUESTION.text]  # once, and the next draft stands
        kept.add(answer.trace[0]["keep"])
        # With passages from the start, or words of its own behind a search, chance alone decides.
        told = answered(script, DynamicSettings(**early, first=True, rate=0.0), asked)
        assert told[2].queries == [QUESTION.text]
        assert told[0].trace[1]["keep"] == len(told[0].trace[1]["words"])
    assert kept == {0, 1, 2}  # of the sentence's three words, each
    # What the rate draws earlier stays: at a rate of one the first token.
    answer, _, _ = answered(script, DynamicSettings(**early, rate=1.0, max_new_tokens=2))
    assert answer.trace[0]["keep"] == 0


def test_as_released_passages_serve_one_sentence_and_the_sentence_goes():
    script = [
        said(" It is old. Bank is it. More", {"Bank": 9.0}),
        said(" Odd is it. And"),
        said(" So the answer is x."),
    ]
    settings = ReleasedSettings(threshold=1.2, query_tokens=None)
    answer, reader, _ = answered(script, settings)
    generated = [
        p for p, c in zip(prompts(reader), reader.calls, strict=True) if not isinstance(c, Read)
    ]
    assert generated == [
        BARE,
        with_passage(1) + " It is old.",
        BARE + " It is old. Odd is it.",
    ]
    assert answer.text == " It is old. Odd is it. So the answer is x."
    reads = [c for c in reader.calls if isinstance(c, Read)]
    # Attention of each whole draft, and one second reading for the query.
    assert [c.prompt for c in reads] == [None] * 3
    assert reads[1].text == f"{QUESTION.text}  It is old. Bank is it."
    assert answer.cost.reads == 3


def test_a_query_keeps_its_last_tokens():
    script = [said(" One was. It seats 9 men.", {"9": 9.0}), said(" So the answer is x.")]
    settings = DynamicSettings(threshold=0.1, query="question", query_tokens=3)
    assert answered(script, settings)[2].queries == [" the arena seat?"]


def test_a_blank_ends_the_prompt_while_nothing_is_written():
    script = [said(" A one. B"), said(" So the answer is x.")]
    settings = DynamicSettings(timing="sentence", query="last_sentence", space=True)
    _, reader, _ = answered(script, settings)
    assert prompts(reader) == [with_passage(1) + " ", with_passage(2) + " A one."]


def test_no_prompt_no_dynamic_retrieval():
    with pytest.raises(ValueError, match="name a prompt"):
        DynamicSettings(prompt=None)
    with pytest.raises(ValueError, match="did you mean 'flare'"):
        DynamicSettings(timing="flair")


def test_only_the_sentence_that_is_written_again_is_spared():
    """The next one is in doubt anew, and FLARE searches for it."""
    script = [
        said(" It is Bank. Then", p={"Bank.": 0.3}),
        said(" It is Odd. Then", p={"Odd.": 0.3}),
        said(" It seats 90. So", p={"90.": 0.3}),
        said(" It seats 80. So"),
        said(" So the answer is x."),
    ]
    settings = DynamicSettings(timing="flare", query="question")
    answer, _, library = answered(script, settings)
    assert len(library.queries) == 1 + 2
    assert answer.text == " It is Odd. It seats 80. So the answer is x."


def test_the_first_draft_has_the_first_searchs_passages_however_long_others_serve():
    script = [
        said(" It is old. Bank is it. More", {"Bank": 9.0}),
        said(" Odd is it. And"),
        said(" So the answer is x."),
    ]
    settings = DynamicSettings(threshold=0.1, first=True, documents="one_sentence")
    _, reader, _ = answered(script, settings)
    shown = prompts(reader)
    assert shown[0] == with_passage(1)
    assert shown[2].startswith(BARE)


def test_where_passages_serve_a_whole_draft_all_of_it_is_written_and_kept():
    """FLARE as DRAGIN's code has it (D17): no sentence at a time, and nothing judged again."""
    script = [
        said(" It is old. Bank is it. More", p={"Bank": 0.3}),
        said(" Odd is it. It is odd. So the answer is x.", p={"odd.": 0.3}),
    ]
    settings = DynamicSettings(
        timing="flare", query="sentence", first=False, documents="one_draft", doubt=0.4
    )
    answer, reader, library = answered(script, settings)
    assert answer.trace[0]["text"] == " It is old. Bank is it. More"
    assert library.queries == ["Bank is it."]
    assert answer.text == " It is old. Odd is it. It is odd. So the answer is x."
    assert len(reader.calls) == 2


def test_an_empty_query_is_searched_for_by_nobody():
    """Nothing of the answer is written yet, and nothing else may be looked back at."""
    script = [said(" Bank Hall.", {"Bank": 3.0}), said(" So the answer is x.")]
    settings = DynamicSettings(threshold=0.1, context="output")
    answer, reader, library = answered(script, settings)
    assert library.queries == []
    assert answer.trace[1] == {
        **{"stage": "retrieve", "query": "", "found": []},
        **{"context": ["Bank"], "taken": []},
    }
    assert prompts(reader) == [BARE, BARE]
    assert answer.prediction == "x"


def test_behind_an_empty_query_the_passages_of_before_are_gone():
    script = [said(" Bank Hall.", {"Bank": 3.0}), said(" So the answer is x.")]
    settings = DynamicSettings(threshold=0.1, context="output", first=True)
    answer, reader, library = answered(script, settings)
    assert library.queries == [QUESTION.text]
    assert prompts(reader) == [with_passage(1), BARE]
    assert answer.hits == ()


def test_passages_behind_which_nothing_is_written_end_the_answer():
    """Else the same draft would give the same alarm for ever."""
    script = [said(" It is old. Bank is it.", {"Bank": 9.0}), said("")]
    settings = DynamicSettings(threshold=0.1, documents="one_sentence", ask_again="never")
    answer, reader, _ = answered(script, settings)
    assert len(reader.calls) == 2
    assert answer.text == " It is old."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threshold": float("nan")}, "threshold is nan; it must not be below 0"),
        ({"factors": ()}, "factors are .*; name one to three"),
        ({"factors": ("entropy", "entropy")}, "factors are .*each once"),
        ({"sampled": True, "temperature": 0.0}, "temperature is 0.0"),
        ({"sampled": True, "top_p": 0.0}, "top_p 0.0"),
    ],
)
def test_settings_by_which_nothing_could_be_told_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        DynamicSettings(**given)
