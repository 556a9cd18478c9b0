"""Multi-step on a chain, rankings and stops written by hand."""

from __future__ import annotations

import re

import pytest

from rag_repro import engine
from rag_repro.lm.prompts import prompt_text
from rag_repro.methods import base
from rag_repro.methods.baselines.ircot import (
    IRCoTSettings,
    collect,
    conclusion,
    ircot,
    last_fact,
    without_question_words,
)
from rag_repro.methods.reading import PROMPTS
from rag_repro.methods.sentences import Sentences
from rag_repro.schema import Hit, Passage, Question, Reply
from tests.lm.scripted_reader import ScriptedReader
from tests.methods.golden import World
from tests.methods.scripted import Tables, answer_of, ids, passage

QUESTION = Question("q", "Who is q?", ("y",), candidates=("a", "c", "e"))
# The question loses its question words; so does the second query.
RANKINGS = {
    "q?": ["a", "b", "c", "d"],
    "A made which thing.": ["b", "c", "d", "e"],
    "A made thing.": ["b", "c", "d", "e"],
    "It was D.": ["d", "a", "f", "g"],
}
CHAIN = (
    " A made which thing. It",
    " So it was D. And",
    " It was D. More",
    " So the answer is: y. z",
)
DOTS = Sentences("dots", lambda text: re.findall(r"[^.]*\.|[^.]+$", text))


def answer(script=(*CHAIN, "read"), question=QUESTION, sentences=DOTS, **settings):
    settings = {"k": 5, "per_step": 2, "prompt": "short", **settings}
    retriever, reader = Tables(RANKINGS), ScriptedReader(list(script))
    got = answer_of(
        lambda q, s: ircot(q, s, sentences),
        question,
        base.get("ircot").configure(settings),
        retriever=retriever,
        reader=reader,
    )
    return got, retriever, reader


def test_sentence_by_sentence_it_retrieves_and_reads_what_it_collected():
    got, retriever, reader = answer()
    queries = [query for (query,), k, within in retriever.asked]
    # "So it was D." concludes: the sentence before it asks again.
    assert queries == ["q?", "A made thing.", "A made thing.", "It was D."]
    assert {k for _, k, _ in retriever.asked} == {2}
    assert ids(got.hits) == ["a", "b", "c", "d"]
    assert (got.text, got.prediction) == ("read", "read")
    assert got.calls == ("Retrieve", "Generate") * 4 + ("Generate",)
    assert (got.cost.retrievals, got.cost.reader_calls) == (4, 5)
    seen = [prompt_text(call.prompt) for call in reader.calls]
    form = PROMPTS["cot"]

    def chained(found, said):
        hits = [Hit(passage(name), 1.0, 1) for name in found]
        return prompt_text(form.fill(QUESTION, hits)) + said

    assert seen[:4] == [
        chained("ab", ""),
        chained("abc", " A made which thing."),
        chained("abc", " A made which thing. So it was D."),
        chained("abcd", " A made which thing. So it was D. It was D."),
    ]
    assert seen[4] == prompt_text(PROMPTS["short"].fill(QUESTION, got.hits))
    assert [c.max_new_tokens for c in reader.calls] == [200] * 4 + [64]
    for call in reader.calls[:4]:
        assert [getattr(s, "name", s) for s in call.stop] == ["\n", "first sentence by dots"]
    assert isinstance(reader.calls[1].prompt.segments[-1], Reply)


def test_the_trace_tells_each_search_each_sentence_and_why_it_stopped():
    assert list(answer()[0].trace) == [
        {"stage": "retrieve", "query": "q?", "found": ["a", "b"], "added": ["a", "b"]},
        {"stage": "think", "sentence": "A made which thing."},
        {"stage": "retrieve", "query": "A made thing.", "found": ["b", "c"], "added": ["c"]},
        {"stage": "think", "sentence": "So it was D."},
        {"stage": "retrieve", "query": "A made thing.", "found": ["b", "c"], "added": []},
        {"stage": "think", "sentence": "It was D."},
        {"stage": "retrieve", "query": "It was D.", "found": ["d", "a"], "added": ["d"]},
        {"stage": "think", "sentence": "So the answer is: y."},
        {"stage": "stop", "why": "answer"},
    ]


def test_the_chain_may_answer_without_a_further_call():
    got, _, reader = answer(script=CHAIN, answer="chain")
    assert got.prediction == "y"
    assert got.text == "A made which thing. So it was D. It was D. So the answer is: y."
    assert got.cost.reader_calls == len(reader.calls) == 4
    assert got.trace[-1] == {"stage": "stop", "why": "answer"}
    # A chain that came to no conclusion kept no form.
    assert answer(script=CHAIN, answer="chain", max_sentences=3)[0].prediction is None
    assert answer(script=[" . "], answer="chain")[0].text == ""
    got = answer(script=[" The answer is: . z"], answer="chain")[0]
    assert (got.prediction, got.trace[-1]["why"]) == (None, "answer")


def test_it_stops_at_the_most_sentences():
    got, retriever, reader = answer(script=(*CHAIN[:2], "read"), max_sentences=2)
    assert (len(retriever.asked), len(reader.calls)) == (2, 3)
    assert got.trace[-1] == {"stage": "stop", "why": "sentences"}
    assert got.prediction == "read"


@pytest.mark.parametrize("nothing", ["", "  ", "\nA made which thing.", " ... "])
def test_it_stops_where_the_reader_says_nothing(nothing):
    got, _, reader = answer(script=(CHAIN[0], nothing, "read"))
    assert len(reader.calls) == 3
    assert got.trace[-1] == {"stage": "stop", "why": "empty"}
    assert [e["sentence"] for e in got.trace if e["stage"] == "think"] == ["A made which thing."]
    assert ids(got.hits) == ["a", "b", "c"]


def test_a_query_of_question_words_alone_is_not_asked():
    got, retriever, _ = answer(script=(" which is", CHAIN[3], "read"))
    assert [query for (query,), _, _ in retriever.asked] == ["q?"]
    assert got.calls == ("Retrieve", "Generate", "Generate", "Generate")
    assert got.trace[2] == {"stage": "retrieve", "query": "", "found": [], "added": []}


def test_k_is_the_most_and_own_candidates_limit_each_search():
    assert ids(answer(k=3)[0].hits) == ["a", "b", "c"]
    got, retriever, _ = answer(own_candidates=True)
    assert ids(got.hits) == ["a", "c", "e"]
    assert len(retriever.asked) == 4
    assert all(within == [("a", "c", "e")] for _, _, within in retriever.asked)


def test_without_prompt_only_the_first_search_is_made():
    got, retriever, reader = answer(prompt=None)
    assert retriever.asked == [(("q?",), 2, None)]
    assert not reader.calls
    assert (ids(got.hits), got.prediction) == (["a", "b"], None)


def test_the_share_of_a_search_is_the_originals():
    assert [IRCoTSettings(k=k).per_step for k in (1, 2, 3, 4, 6, 15)] == [1, 1, 1, 2, 2, 6]


def hit(name, title="", text="x"):
    return Hit(Passage(name, title, text), 1.0, 1)


def test_passages_are_collected_once_and_not_overlong():
    held = (hit("a", "T", "one"),)
    found = [
        hit("a", "T", "one"),
        hit("b", "T", "one"),
        hit("c", "U", "one"),
        hit("d", "T", "w " * 3 + "w"),
        hit("e", "T", "w w w"),
        hit("f", "T", "two"),
    ]
    assert ids(collect(held, found, IRCoTSettings(k=9, longest=3))) == ["a", "c", "e", "f"]
    assert ids(collect(held, found, IRCoTSettings(k=3, longest=4))) == ["a", "c", "d"]


def test_the_chain_is_shown_the_beginnings_of_long_passages():
    long = Hit(Passage("l", "T", "one two three"), 1.0, 1)

    class Finds:
        def search(self, queries, k, within=None):
            return [[long] for _ in queries]

    reader = ScriptedReader([" The answer is y. z", "read"])
    settings = IRCoTSettings(prompt="short", shown=2)
    got = answer_of(
        lambda q, s: ircot(q, s, DOTS), QUESTION, settings, retriever=Finds(), reader=reader
    )
    first, last = (prompt_text(call.prompt) for call in reader.calls)
    assert "[1] one two\n" in first
    assert "one two three" in last
    assert got.hits[0].passage.text == "one two three"


@pytest.mark.parametrize(
    ("sentence", "fact"),
    [
        ("The film came out.", True),
        ("Some of it.", True),
        ("So it did.", False),
        ("so, it did.", False),
        ("Thus it did.", False),
        ("That is, it did.", False),
        ("Therefore it did.", False),
        ("Hence it did.", False),
        ("Its age is 1,961 - 1,907 = 54 years.", False),
        ("It is 3.5 + 2 = 5.5.", False),
        ("From 1961 - 1907.", True),
    ],
)
def test_conclusions_and_sums_are_no_queries(sentence, fact):
    assert last_fact(["before", sentence]) == (sentence if fact else "before")
    assert last_fact([sentence]) == (sentence if fact else "")


def test_question_words_are_dropped_whatever_their_case():
    words = "Who what When where why which how Does is"
    assert without_question_words(f"{words} it, isn't it? who?") == "it, isn't it? who?"


@pytest.mark.parametrize(
    ("sentence", "form", "said"),
    [
        ("So the answer is: Sarrow.", "short", "Sarrow"),
        ("The answer is J. Orr", "short", "J. Orr"),
        ("The answer is ", "short", ""),
        ("She answered.", "short", None),
        ("Answer: <Sarrow>; so", "drrag", "Sarrow"),
        ("Answer: Sarrow", "short", None),
    ],
)
def test_what_a_sentence_gives_as_the_answer(sentence, form, said):
    assert conclusion(sentence, PROMPTS[form]) == said


def test_spacy_ends_the_sentences_of_a_run():
    script = [" A made which thing for Dr. Orr. It was", " The answer is y. z", "read"]
    rankings = {"q?": ["a"], "A made thing for Dr. Orr.": ["d"]}
    got = answer_of(
        ircot, QUESTION, IRCoTSettings(prompt="short"),
        retriever=Tables(rankings), reader=ScriptedReader(script),
    )  # fmt: skip
    assert ids(got.hits) == ["a", "d"]
    assert got.trace[1]["sentence"] == "A made which thing for Dr. Orr."


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 3, "per_step": 4}, "per_step is 4; it must lie between 1 and k = 3"),
        ({"per_step": 0}, "per_step is 0"),
        ({"max_sentences": 0}, "max_sentences is 0"),
        ({"max_sentences": 100}, "max_sentences is 100; it must lie between 1 and 99"),
        ({"sentence_tokens": 0}, "sentence_tokens is 0"),
        ({"longest": 0}, "longest is 0"),
        ({"shown": 0}, "shown is 0"),
        ({"chain": "cott"}, r"chain is 'cott', did you mean 'cot'\?"),
        ({"answer": "last"}, "answer is 'last'; it is one of: reader, chain"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        base.get("ircot").configure(settings)


def test_the_longest_chain_stays_within_a_questions_calls():
    class Endless(ScriptedReader):
        def __init__(self):
            super().__init__(lambda prompt: " It was D. It")

    settings = IRCoTSettings(prompt="short", max_sentences=99, k=1)
    got = answer_of(
        lambda q, s: ircot(q, s, DOTS), QUESTION, settings,
        retriever=Tables(RANKINGS), reader=Endless(),
    )  # fmt: skip
    assert len(got.calls) == 199


def test_results_are_equal_at_any_batch_size():
    def script(prompt):
        """Each question has a chain of a length of its own."""
        veries = prompt.rpartition("Question: ")[2].count("very")
        said = prompt.rpartition("Answer:")[2].count(".")
        if "Passage:" in prompt:
            return str(len(prompt))
        return f" Ilvo Brannek {said}. So" if said < veries else " The answer is y. z"

    tasks = [
        engine.Task(
            Question(f"q{n}", "Who made" + " very" * (n % 5) + " Glass Harbour?", ()),
            ircot,
            IRCoTSettings(prompt="short", k=4),
        )
        for n in range(20)
    ]

    def answers(batch_size):
        services = {"retriever": World(), "reader": ScriptedReader(script)}
        done = engine.run(tasks, services, batch_size=batch_size)
        return {task.question.id: got for task, got in done}

    one = answers(1)
    assert answers(5) == answers(16) == one
    assert all(got.error is None for got in one.values())
    assert [one[f"q{n}"].cost.reader_calls for n in range(5)] == [2, 3, 4, 5, 6]
