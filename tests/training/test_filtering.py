"""What ERM4's Knowledge Filter is taught of a passage."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from rag_repro import data
from rag_repro.evaluation.retrieval_metrics import tells_answer
from rag_repro.lm.prompts import prompt_text
from rag_repro.methods.erm4.erm4_settings import ERM4Settings
from rag_repro.methods.erm4.knowledge_filter import judging_prompt, read_label
from rag_repro.schema import Generation, Gold, Hit, Passage, Question, Step
from rag_repro.training import recipes
from rag_repro.training.filtering import filtering, judged, namesake
from rag_repro.training.lessons import lessons

FILM = Passage("f", "Glass (1950 film)", "Glass is a film. It was directed by Ilvo Brannek. Long.")
MAN = Passage("m", "Ilvo Brannek", "Ilvo Brannek was a man. He was born in Sarrow.")
SONG = Passage("s", "Glass (song)", "Glass is a song.")
PART = Passage("f2", "Glass (1950 film)", "It was shown in Sarrow.")
TOWN = Passage("t", "Perrin", "Perrin is a town.")
STEPS = (Step("Who?", "Ilvo Brannek", "f"), Step("Where?", "Sarrow", "m"))
QUESTION = Question("q", "Where?", ("Sarrow",), hops=2, gold=(Gold("f"), Gold("m")), steps=STEPS)
DIRECTED = "The passage says: Glass: It was directed by Ilvo Brannek."
BORN = "The passage says: Ilvo Brannek: He was born in Sarrow."


def told(passage, hypothesis, question=QUESTION):
    settings = ERM4Settings(filter="nli", hypothesis=hypothesis)
    return judged(question, passage, [FILM, MAN], settings)


def test_half_of_a_chain_is_entailed_under_the_weak_hypothesis_alone():
    assert told(FILM, "weak") == ("entailment", DIRECTED)
    assert told(FILM, "strong") == ("neutral", f"{DIRECTED} But the answer is not there.")
    assert told(FILM, "by_hops") == told(FILM, "weak")
    assert told(MAN, "weak") == told(MAN, "strong") == ("entailment", BORN)
    one = Question("q", "Who?", ("Ilvo Brannek",), hops=1, gold=(Gold("f"),), steps=STEPS[:1])
    assert told(FILM, "by_hops", one) == told(FILM, "strong", one) == ("entailment", DIRECTED)


def test_another_of_the_same_name_contradicts_and_the_rest_is_neutral():
    for hypothesis in ("strong", "weak"):
        assert told(SONG, hypothesis) == (
            "contradiction", "The passage is about Glass (song), which only bears the same name."
        )  # fmt: skip
        assert told(TOWN, hypothesis) == (
            "neutral", "The passage is about Perrin and tells nothing of what is asked."
        )  # fmt: skip
    assert namesake(SONG, [FILM])
    assert not namesake(PART, [FILM])
    assert not namesake(FILM, [FILM, MAN])


def test_what_holds_the_answer():
    assert [tells_answer(QUESTION, p) for p in (FILM, MAN)] == [False, True]
    # A comparison's answer is in neither passage, but all of it in one that tells both.
    steps = (Step("When?", "1950", "f"), Step("When?", "1940", "m"))
    compared = Question("q", "Which first?", ("Ilvo Brannek",), gold=QUESTION.gold, steps=steps)
    assert [tells_answer(compared, p) for p in (FILM, MAN)] == [False, False]
    both = Question("q", "?", ("x",), steps=(STEPS[0], Step("?", "1950", "f")))
    assert tells_answer(both, FILM)
    # Without steps by the words.
    bare = Question("q", "Where?", ("Sarrow",), gold=QUESTION.gold)
    assert [tells_answer(bare, p) for p in (FILM, MAN)] == [False, True]


def test_gold_of_which_no_sentence_tells_has_no_explanation():
    lost = Question("q", "Where?", ("nowhere",), gold=QUESTION.gold)
    assert told(FILM, "weak", lost) == ("entailment", "")
    assert told(FILM, "strong", lost) == ("neutral", "")


def made(**given):
    part = {"seed": 0, "hypothesis": "weak", "explain": True, "questions": 12, **given}
    return list(filtering("world-A-10", **part))


def test_parts_of_a_recipe_share_no_question():
    first, then = made(questions=5), made(questions=4, skip=5)
    whole = dict.fromkeys(lesson.question for lesson in made(questions=9))
    assert {e.question for e in first} | {e.question for e in then} == set(whole)
    assert not {e.question for e in first} & {e.question for e in then}
    assert len({e.question for e in made(questions=None, skip=0)}) > 100


def test_lessons_are_asked_and_answered_as_the_method_has_it():
    asked = data.load("world-A-10", split="train").first(12)
    by_id = asked.corpus.by_id
    for hypothesis in ("strong", "weak"):
        for explain in (True, False):
            got = made(hypothesis=hypothesis, explain=explain)
            # As the method asks a judge of that name.
            settings = ERM4Settings(
                filter="nli", judge="erm4-filter", hypothesis=hypothesis, explain=explain
            )
            prompts = {
                prompt_text(judging_prompt(q, Hit(by_id[name], 0.0, 1), settings)): (q, name)
                for q in asked.questions
                for name in q.candidates
            }
            for lesson in got:
                question, name = prompts[prompt_text(lesson.prompt)]
                assert lesson.question == question.id
                out = Generation(lesson.target, (1,), (0,), "eos", 1, 1)
                one = read_label("nli", out, explain)
                assert one.fault == ""
                assert lesson.source == f"filter:world-A-10 {hypothesis}, {one.label}"
                if name not in question.gold_ids:
                    assert one.label != "entailment"
                elif hypothesis == "weak":
                    assert one.label == "entailment"
            counts = Counter(lesson.source.rpartition(" ")[2] for lesson in got)
            # As many taken as refused, of either hypothesis.
            assert counts["entailment"] == counts["neutral"] + counts["contradiction"] > 4


def test_the_larger_part_is_a_sample_in_the_order_of_the_questions():
    strong = made(hypothesis="strong", explain=False, questions=40)
    order = [q.id for q in data.load("world-A-10", split="train").first(40).questions]
    places = [order.index(lesson.question) for lesson in strong]
    assert places == sorted(places)
    refused = [lesson for lesson in strong if not lesson.source.endswith("entailment")]
    assert len(refused) * 2 == len(strong)
    # Refusals are from all over, not the first that came.
    assert order.index(refused[-1].question) > 30


def test_a_filter_that_is_asked_directly_is_taught_yes_and_no():
    nli, ask = made(explain=False), made(explain=False, filter="ask")
    said = {"entailment": " yes", "neutral": " no", "contradiction": " no"}
    assert [said[e.target.strip()] for e in nli] == [e.target for e in ask]
    assert all(prompt_text(e.prompt).startswith("Does the passage") for e in ask)
    assert {read_label("ask", Generation(e.target, (1,), (0,), "eos", 1, 1), False).fault
            for e in ask} == {""}  # fmt: skip


def test_lessons_depend_on_the_seed_alone():
    one, same, other = (made(seed=seed) for seed in (0, 0, 1))
    assert one == same != other


def test_a_recipes_part_is_this_kind_of_lesson():
    part = {"kind": "filter", "dataset": "world-A-10", "hypothesis": "weak", "explain": True}
    assert list(lessons([{**part, "questions": 12}], 0)) == made()
    with pytest.raises(ValueError, match="did you mean 'weak'"):
        list(lessons([{**part, "hypothesis": "week"}], 0))


@pytest.mark.parametrize(
    ("name", "explain", "filter_"),
    [
        ("erm4-filter", False, "nli"),
        ("erm4-filter-testbed", True, "nli"),
        ("erm4-filter-testbed-label", False, "nli"),
        ("erm4-filter-testbed-ask", False, "ask"),
    ],
)
def test_the_filters_recipes(name, explain, filter_):
    recipe = recipes.recipe(name)
    assert (recipe.task, recipe.lora.rank, recipe.lora.alpha) == ("reader", 8, 16)
    # The testbed's three the same: what differs is what is taught. The public one has over twice
    # their lessons, and goes through them twice. No question under both hypotheses.
    epochs = 2 if name == "erm4-filter" else 3
    assert (recipe.optimiser.batch_rows, recipe.optimiser.epochs) == (8, epochs)
    assert recipe.optimiser.learning_rate == 1e-3
    taught = {}
    for part in recipe.lessons:
        first = part.get("skip", 0)
        taught.setdefault(part["dataset"], []).append((first, first + part["questions"]))
    for spans in taught.values():
        spans.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    told = {(part["kind"], part["explain"], part.get("filter", "nli")) for part in recipe.lessons}
    assert told == {("filter", explain, filter_)}
    assert {part["hypothesis"] for part in recipe.lessons} == {"strong", "weak"}
