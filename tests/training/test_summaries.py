"""What RECOMP's abstractive compressor is taught to write."""

from __future__ import annotations

from collections import Counter

import pytest

from rag_repro import data
from rag_repro.lm import hub
from rag_repro.lm.prompts import prompt_text
from rag_repro.methods.baselines.compressing import summary_prompt
from rag_repro.schema import Gold, Hit, Passage, Question, Step
from rag_repro.training import recipes, run
from rag_repro.training.filtering import named, summaries, supporting
from rag_repro.training.recipes import Lora, Optimiser, Recipe
from tests.lm import tiny

FILM = Passage("f", "Glass (1950 film)", "Glass is a film. It was directed by Ilvo Brannek. Long.")
MAN = Passage("m", "Ilvo Brannek", "Ilvo Brannek was a man.\nHe was born in\nSarrow.")
GOLD = (Gold("f"), Gold("m"))
HEADED = ["Glass: It was directed by Ilvo Brannek.", "Ilvo Brannek: He was born in Sarrow."]


def asked(answers=("Sarrow",), steps=(), **meta):
    return Question("q", "Where?", answers, gold=GOLD, steps=steps, meta=meta)


def test_the_sentences_of_each_step_in_the_order_of_the_reasoning():
    steps = (Step("Who?", "Ilvo Brannek", "f"), Step("Where?", "Sarrow", "m"))
    assert supporting(asked(steps=steps), (FILM, MAN)) == HEADED
    assert supporting(asked(steps=steps[::-1]), (FILM, MAN)) == HEADED[::-1]
    # A step whose passage says nothing of it, or is not there, gives no sentence.
    lost = (Step("Who?", "nobody", "f"), Step("Who?", "x", "z"), Step("Where?", "Sarrow"), steps[1])
    assert supporting(asked(steps=lost), (FILM, MAN)) == HEADED[1:]
    assert supporting(asked(steps=(steps[1], steps[1])), (FILM, MAN)) == HEADED[1:]


def test_annotators_marks_come_first_and_the_answer_last():
    steps = (Step("Who?", "Ilvo Brannek", "f"),)
    marks = [("Ilvo Brannek", 0), ("Glass (1950 film)", 9), ("Nobody", 0)]
    got = supporting(asked(steps=steps, supporting_facts=marks), (FILM, MAN))
    assert got == ["Ilvo Brannek was a man.", "Glass: Long."]
    assert supporting(asked(), (FILM, MAN)) == HEADED[1:]
    assert supporting(asked(answers=("nowhere",)), (FILM, MAN)) == []


def test_a_name_that_the_passage_does_not_say_heads_nothing():
    nameless = Passage("n", "Nobody (actor)", "He was born in Sarrow.")
    assert named(nameless, nameless.text) == "He was born in Sarrow."
    assert named(FILM, "Glass is a film.") == "Glass is a film."


def lessons(**given):
    return list(summaries("world-A-10", **{"seed": 0, "passages": {4: 1, 10: 1}, **given}))


def test_lessons_are_asked_as_the_method_asks():
    dataset = data.load("world-A-10", split="train").first(60)
    question = {q.id: q for q in dataset.questions}
    text = {p.text: p for p in dataset.corpus.passages}
    made = lessons(questions=60)
    counts = Counter(e.source for e in made)
    assert set(counts) == {"summary:world-A-10", "summary:world-A-10, of nothing"}
    assert 0.1 < counts["summary:world-A-10, of nothing"] / len(made) < 0.35
    sizes = Counter()
    for lesson in made:
        q = question[lesson.question]
        said = prompt_text(lesson.prompt)
        body = said.partition("\n Document: ")[2].removesuffix("\n Summary:")
        shown = [text[line] for line in body.split("\n")]
        hits = [Hit(p, 0.0, i) for i, p in enumerate(shown, start=1)]
        assert said == prompt_text(summary_prompt(q, hits))
        sizes[len(shown)] += 1
        ids = {p.id for p in shown}
        assert ids <= set(q.candidates)
        if lesson.source.endswith("nothing"):
            assert lesson.target == ""
            assert not ids & set(q.gold_ids)
        else:
            assert set(q.gold_ids) <= ids
            assert len(shown) in (4, 10)
            gold = [dataset.corpus.by_id[i] for i in q.gold_ids]
            assert lesson.target == " " + " ".join(supporting(q, gold))
    assert sizes[10] > 5
    assert sizes[4] > 5


def test_lessons_depend_on_the_seed_alone():
    one, same, other = (lessons(questions=10, seed=s) for s in (0, 0, 1))
    assert one == same != other


def test_the_order_of_passages_gives_no_gold_away():
    first = Counter()
    dataset = data.load("world-A-10", split="train").first(60)
    gold = {p.text for q in dataset.questions for p in map(dataset.corpus.by_id.get, q.gold_ids)}
    for lesson in lessons(questions=60):
        body = prompt_text(lesson.prompt).partition("\n Document: ")[2]
        first[body.split("\n")[0] in gold] += 1
    assert first[False] > 10


def test_a_recipe_of_summaries_makes_a_compressor(tmp_path, monkeypatch):
    made = tiny.loaded("llama", max_position_embeddings=4096)
    made.model.save_pretrained(tmp_path / "base")
    made.tokenizer.save_pretrained(tmp_path / "base")
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    part = {"kind": "summary", "dataset": "world-A-10", "questions": 3, "passages": {4: 1}}
    recipe = Recipe(
        name="tiny-compressor",
        about="for this test",
        task="reader",
        base=str(tmp_path / "base"),
        lessons=(part,),
        lora=Lora(rank=2),
        optimiser=Optimiser(batch_tokens=8192, batch_rows=2),
    )
    run.train(run.prepare(recipe, 0), run.folder_of(recipe, 0))
    assert hub.resolve("tiny-compressor").kind == "adapter"


@pytest.mark.parametrize("name", ["recomp-abstractive", "recomp-abstractive-testbed"])
def test_the_compressors_recipes(name):
    recipe = recipes.recipe(name)
    assert recipe.task == "reader"
    assert {part["kind"] for part in recipe.lessons} == {"summary"}
