"""The loop of section 3.3 and its baselines, on traces worked out by hand."""

from __future__ import annotations

import pytest

from rag_repro.engine import Task, run
from rag_repro.lm.scripted import Said, ScriptedReader, pieces, prompt_text
from rag_repro.methods.dragin.loop import ReleasedSettings, dynamic
from rag_repro.methods.dragin.settings import DynamicSettings
from rag_repro.schema import Hit, Passage, Question, Read

from .language import SMALL

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


def said(text: str, entropy: dict[str, float] | None = None, p: dict[str, float] | None = None):
    """A text whose named words are uncertain; every token is looked at alike by later ones."""
    words = [w.strip() for w in pieces(text)]
    return Said(
        text,
        probability=[(p or {}).get(w, 0.95) for w in words],
        entropy=[(entropy or {}).get(w, 0.0) for w in words],
    )


def answered(script, settings, question=QUESTION):
    reader, library = ScriptedReader(script), Library()

    def method(question, settings):
        return dynamic(question, settings, SMALL)

    [(_, answer)] = run(
        [Task(question, method, settings)], {"reader": reader, "retriever": library}
    )
    assert answer.error is None, answer.error
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


def test_chance_is_the_same_for_the_same_question_alone():
    script = [said(" a b c d e f g h i j")] + [said(" k l m n.")] * 9
    settings = DynamicSettings(timing="random", rate=0.2, query="random_words", top_n=4, seed=3)
    first, again = (answered(script, settings)[2].queries for _ in range(2))
    assert first == again != []
    other = Question(id="other", text=QUESTION.text, answers=("x",))
    assert answered(script, settings, other)[2].queries != first
    never = DynamicSettings(timing="random", rate=0.0)
    assert answered([said(" So the answer is x.")], never)[2].queries == []


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
