"""The Knowledge Filter: what is asked of a passage, what its label is, what stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro.methods.erm4.knowledge_filter import at_random, read_label, scored
from rag_repro.schema import Generation, Read
from tests.lm.scripted_reader import Said, ScriptedReader
from tests.methods.erm4.desk import QUESTION, Desk, asked, counts, events, run
from tests.methods.scripted import ids

ONE = {"rewrite": "none", "per_query": 4}  # finds a, b, c, d


def said(text, finish="stop"):
    return Generation(text, (1,), (0,), finish, 1, 1)


def passes(*odds):
    """What a reader makes of each label: the probabilities of its tokens."""
    texts = [" ".join([f"x{i}"] * len(p)) for i, p in enumerate(odds)]
    reader = ScriptedReader(
        reads=lambda prompt, text: Said(text, probability=odds[texts.index(text)])
    )
    return [reader.read([Read(None, text)])[0] for text in texts]


def test_a_label_is_as_probable_as_all_of_its_tokens():
    one = scored("nli", passes([0.5], [0.9, 0.5, 0.2], [0.5, 0.5, 0.9, 0.8]))
    # 0.5, 0.09 and 0.18, of 0.77 in all.
    assert one.label == "entailment"
    assert one.probability == pytest.approx(0.5 / 0.77)
    assert scored("nli", passes([0.1], [0.2, 0.9], [0.9, 0.9, 0.9, 0.9])).label == "neutral"
    assert scored("nli", passes([0.1], [0.2, 0.9], [0.1, 0.1, 0.1, 0.1])).label == "contradiction"
    assert scored("ask", passes([0.3], [0.9, 0.1])).probability == pytest.approx(0.3 / 0.39)
    one = scored("ask", passes([0.3], [0.3, 1.0]))
    assert (one.label, one.probability) == ("yes", 0.5)  # of equal ones the first


def test_a_judge_without_probabilities_or_with_none_is_refused():
    with pytest.raises(ValueError, match="label: written"):
        scored("ask", [said("yes"), said("no")])
    with pytest.raises(ValueError, match="probability of 0"):
        scored("ask", passes([0.0], [0.0, 0.5]))
    assert scored("ask", passes([0.0], [0.1, 0.5])).probability == 0


@pytest.mark.parametrize(
    ("text", "explain", "label", "fault"),
    [
        (" entailment", False, "entailment", ""),
        (" Contradiction.", False, "contradiction", ""),
        (" entailment, since", False, "neutral", "no label"),
        (" not entailment", False, "neutral", "no label"),
        (" neural", False, "neutral", "no label"),
        ("", False, "neutral", "no label"),
        (" so it is**entailment", True, "entailment", ""),
        (" so it is ** Entailment. ", True, "entailment", ""),
        (" so it is. entailment", True, "neutral", "not an explanation and a label"),
        ("**entailment", True, "neutral", "not an explanation and a label"),
        (" so**it**entailment", True, "neutral", "not an explanation and a label"),
        (" so**yes", True, "neutral", "no label"),
    ],
)
def test_a_written_label_is_taken_strictly(text, explain, label, fault):
    one = read_label("nli", said(text), explain)
    assert (one.label, one.fault, one.probability) == (label, fault, None)
    if explain and not fault:
        assert one.explanation == "so it is"


def test_a_written_yes_or_no():
    assert read_label("ask", said(" Yes."), False).label == "yes"
    assert read_label("ask", said(" maybe"), False).label == "no"
    assert read_label("ask", said(" maybe"), False).fault == "no label"


def test_entailed_passages_stay_in_their_order():
    answer, reader, _ = run({**ONE, "filter": "nli"}, reader=Desk(entailed="db"))
    assert ids(answer.hits) == ["b", "d"]
    judged = [(e["passage"], e["label"], e["probability"]) for e in events(answer, "filter")]
    yes, no = pytest.approx(0.8 / 0.95), pytest.approx(0.2 / 0.85)
    assert judged == [("a", "neutral", no), ("b", "entailment", yes),
                      ("c", "neutral", no), ("d", "entailment", yes)]  # fmt: skip
    [select] = events(answer, "select")
    assert (select["kept"], select["left_out"]) == (["b", "d"], ["a", "c"])
    assert (select["by"], select["backed_off"]) == ("nli", False)
    names = ("judged", "irrelevant", "unlabelled", "backed_off", "shown")
    assert counts(answer, *names) == (4, 2, 0, 0, 2)
    # A pass over each label of each passage in turn, each with the blank that its prompt lacks.
    assert [c.text for c in reader.calls] == [
        " entailment", " contradiction", " neutral"
    ] * 4  # fmt: skip
    assert asked(reader)[0] == "Question: who made it?\nPassage: (Title a) aa\nLabel:"
    assert (answer.cost.reads, answer.cost.reader_calls) == (12, 0)


def test_what_is_judged_for_is_the_question_that_is_answered():
    for setting, text in ((None, "Who made the thing?"), ("original", "who made it?")):
        _, reader, _ = run({"filter": "nli", "asked": setting})
        assert asked(reader)[1].startswith(f"Question: {text}\nPassage: (Title a) aa")


def test_hypotheses_differ_in_what_is_asked_and_shown():
    given = {**ONE, "filter": "nli"}
    prompts = {h: run({**given, "hypothesis": h})[1].prompts[0] for h in ("strong", "weak")}
    assert "holds a clear and reliable answer" in prompts["strong"]
    assert "holds something that helps" in prompts["weak"]
    # Half of a chain is entailed by the weak one alone.
    film = "Harbour of Glass is a drama film directed by Ilvo Brannek.\nLabel: "
    assert f"{film}neutral" in prompts["strong"]
    assert f"{film}entailment" in prompts["weak"]
    for hops, hypothesis in ((1, "strong"), (None, "strong"), (2, "weak"), (4, "weak")):
        question = replace(QUESTION, hops=hops)
        _, reader, _ = run({**given, "hypothesis": "by_hops"}, question=question)
        assert reader.prompts[0] == prompts[hypothesis]


def test_asking_directly():
    answer, reader, _ = run({**ONE, "filter": "ask"}, reader=Desk(entailed="c"))
    assert ids(answer.hits) == ["c"]
    assert [c.text for c in reader.calls] == [" yes", " no"] * 4
    assert asked(reader)[0].endswith("aa\nAnswer:")
    assert "entail" not in reader.prompts[0]
    assert reader.prompts[0].startswith("Does the passage hold a clear")
    assert [e["label"] for e in events(answer, "filter")] == ["no", "no", "yes", "no"]
    weak = run({**ONE, "filter": "ask", "hypothesis": "weak"})[1].prompts[0]
    assert weak.startswith("Does the passage hold something that helps")
    assert weak.count("Answer: yes") == 4


def test_an_explanation_before_a_scored_label():
    writes = {"a": " It does.**no matter", "b": " ", "c": " On and on", "d": " So.\n"}
    answer, reader, _ = run(
        {**ONE, "filter": "nli", "explain": True, "explanation_tokens": 3},
        reader=Desk(entailed="ac", writes=writes),
    )
    wrote = [(c.stop, c.max_new_tokens) for c in reader.calls[:4]]
    assert wrote == [(("**", "\n"), 3)] * 4
    assert [c.text for c in reader.calls[4:]] == [
        "entailment", "contradiction", "neutral"
    ] * 4  # fmt: skip
    assert asked(reader)[4].endswith("aa\nExplanation and label: It does.**")
    told = events(answer, "filter")
    assert [e["explanation"] for e in told] == ["It does.", "", "On and on", "So."]
    assert [e["fault"] for e in told] == ["", "no explanation", "", ""]
    assert [e["label"] for e in told] == ["entailment", "neutral", "entailment", "neutral"]
    assert counts(answer, "unlabelled") == (1,)
    answer, _, _ = run(
        {**ONE, "filter": "nli", "explain": True, "explanation_tokens": 2},
        reader=Desk(writes=dict.fromkeys("abcd", " On and on")),
    )
    assert [e["fault"] for e in events(answer, "filter")] == ["cut short"] * 4
    assert len(answer.hits) == 4


def test_written_labels_with_and_without_explanation():
    writes = {"a": " entailment", "b": " neutral", "c": " entailed", "d": " Entailment.\nmore"}
    answer, reader, _ = run(
        {**ONE, "filter": "nli", "label": "written"}, reader=Desk(writes=writes)
    )
    assert ids(answer.hits) == ["a", "d"]
    assert counts(answer, "judged", "irrelevant", "unlabelled") == (4, 2, 1)
    assert [(c.stop, c.max_new_tokens) for c in reader.calls] == [(("\n",), 8)] * 4
    assert [e["probability"] for e in events(answer, "filter")] == [None] * 4
    writes = {"a": " It does.**entailment", "b": " No.**neutral", "c": " x", "d": " y**yes"}
    answer, reader, _ = run(
        {**ONE, "filter": "nli", "label": "written", "explain": True}, reader=Desk(writes=writes)
    )
    assert ids(answer.hits) == ["a"]
    assert counts(answer, "unlabelled") == (2,)
    assert reader.calls[0].max_new_tokens == 68
    assert "**entailment\n" in reader.prompts[0]


def test_exemplars_are_in_the_format_that_is_asked_for():
    for filter_, lead in (("nli", "label"), ("ask", "answer")):
        given = {**ONE, "filter": filter_, "label": "written", "explain": True}
        _, reader, _ = run(given)
        lines = [
            line.removeprefix(f"Explanation and {lead}:")
            for line in reader.prompts[0].split("\n")
            if line.startswith(f"Explanation and {lead}: ")
        ]
        assert len(lines) == 6
        assert {read_label(filter_, said(line), True).fault for line in lines} == {""}


def test_a_passage_is_judged_with_its_title_or_without():
    _, reader, _ = run({**ONE, "filter": "nli", "titled": False})
    assert asked(reader)[0] == "Question: who made it?\nPassage: aa\nLabel:"
    assert "Passage: (" not in reader.prompts[0]


def test_a_named_judge_is_asked_without_exemplars():
    _, reader, _ = run({**ONE, "filter": "nli", "judge": "taught"})
    assert {c.service for c in reader.calls} == {"taught"}
    assert reader.prompts[0].count("Question:") == 1
    _, reader, _ = run({**ONE, "filter": "nli"})
    assert {c.service for c in reader.calls} == {"reader"}
    assert reader.prompts[0].count("Question:") == 7


@pytest.mark.parametrize(
    ("back_off", "shown"), [("nothing", []), ("all", list("abcd")), ("top", ["a"])]
)
def test_where_nothing_is_entailed(back_off, shown):
    given = {**ONE, "filter": "nli", "back_off": back_off, "prompt": "short"}
    answer, reader, _ = run(given, reader=Desk(entailed=""))
    assert ids(answer.hits) == shown
    assert counts(answer, "backed_off", "irrelevant", "shown") == (1, 4 - len(shown), len(shown))
    assert asked(reader)[-1].count("Passage: ") == len(shown)
    # Only then.
    answer, _, _ = run(given, reader=Desk(entailed="b"))
    assert ids(answer.hits) == ["b"]
    assert counts(answer, "backed_off") == (0,)


def test_at_random_keeps_as_many_and_draws_by_question_and_seed():
    fits = [True, True] + [False] * 6
    drawn = [tuple(at_random(fits, f"filter 0 {n}")) for n in range(50)]
    assert {sum(one) for one in drawn} == {2}
    assert all(any(one[i] for one in drawn) for i in range(8))
    given = {**ONE, "filter": "nli", "keep": "random"}
    kept = {}
    for seed in range(20):
        answer, _, _ = run({**given, "seed": seed}, reader=Desk(entailed="ab"))
        kept[seed] = tuple(ids(answer.hits))
        assert len(kept[seed]) == 2
        assert kept[seed] == tuple(sorted(kept[seed]))
        assert counts(answer, "judged", "irrelevant") == (4, 2)
        [select] = events(answer, "select")
        assert select["by"] == "random"
    assert len(set(kept.values())) > 2
    other = run(
        {**given, "seed": 0}, question=replace(QUESTION, id="r"), reader=Desk(entailed="ab")
    )
    again = run({**given, "seed": 0}, reader=Desk(entailed="ab"))
    assert tuple(ids(again[0].hits)) == kept[0]
    others = [
        tuple(ids(run({**given}, question=replace(QUESTION, id=f"r{n}"),
                      reader=Desk(entailed="ab"))[0].hits))
        for n in range(9)
    ]  # fmt: skip
    assert len({tuple(ids(other[0].hits)), *others}) > 1
    assert run({**given}, reader=Desk(entailed=""))[0].hits == ()


def test_gold_stays_where_labels_decide():
    answer, reader, _ = run({**ONE, "filter": "gold"})
    assert (ids(answer.hits), reader.calls) == (["a", "d"], [])
    assert counts(answer, "judged", "irrelevant") == (0, 2)
    with pytest.raises(AssertionError, match="names no gold passages"):
        run({**ONE, "filter": "gold"}, question=replace(QUESTION, gold=()))


def test_without_hits_nothing_is_judged():
    answer, reader, _ = run({"rewrite": "none", "filter": "nli"}, rankings={"who made it?": ""})
    assert (answer.hits, reader.calls) == ((), [])
    assert counts(answer, "judged", "backed_off") == (0, 0)
