"""Training pairs by equation 2, and that a classifier learns from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

from rag_repro import data
from rag_repro.lm import hub
from rag_repro.lm.hub import card_of, write_card
from rag_repro.lm.pair_scorers import PairClassifier, RelevanceClassifier, sequence_classifier
from rag_repro.methods.drrag.concatenation import concat
from rag_repro.retrieval.bm25 import BM25
from rag_repro.training import recipes, run
from rag_repro.training.examples import EncodedText
from rag_repro.training.fit import Plan, fit, wrap
from rag_repro.training.pair_training import Pair, check, encode, objective, pairs, relevance
from rag_repro.training.recipes import Lora, Optimiser, Recipe
from tests.lm import encoders


def test_labels_follow_equation_2():
    dataset = data.load("world-A", split="train")
    asked = dataset.questions[:60]
    text = {p.text: p.id for p in dataset.corpus.passages}
    gold = {q.text: set(q.gold_ids) for q in asked}
    made = list(pairs("world-A", "train", seed=0, questions=60))
    counts = Counter(p.source for p in made)
    assert counts["positive:world-A"] == sum(
        len(q.gold_ids) * (len(q.gold_ids) - 1) // 2 for q in asked
    )
    assert counts["positive:world-A"] * 2 == len(made)
    assert 0.35 < counts["hard:world-A"] / counts["positive:world-A"] < 0.65
    for pair in made:
        held = {text[pair.a], text[pair.b]}
        assert len(held) == 2
        wanted = {"positive": 2, "hard": 1, "random": 0}[pair.source.split(":")[0]]
        assert len(held & gold[pair.question]) == wanted
        assert pair.label == (wanted == 2)


def test_pairs_depend_on_the_seed_alone():
    made = [list(pairs("world-A", "tune", seed=s, questions=20)) for s in (0, 0, 1)]
    assert made[0] == made[1] != made[2]


def test_noise_turns_labels_and_changes_nothing_else():
    clean = list(pairs("world-A", "train", seed=0, questions=150))
    noisy = list(pairs("world-A", "train", seed=0, questions=150, noise=0.4))
    turned = [a.label != b.label for a, b in zip(clean, noisy, strict=True)]
    assert 0.33 < sum(turned) / len(turned) < 0.47
    assert [replace(pair, label=0) for pair in clean] == [replace(pair, label=0) for pair in noisy]
    held_out = [list(pairs("world-A", "tune", seed=0, questions=20, noise=n)) for n in (0.0, 0.4)]
    assert held_out[0] == held_out[1]


def test_negatives_of_a_retriever_are_what_its_second_queries_bring():
    dataset = data.load("world-A", split="train").first(12)
    search, passage = BM25(dataset.corpus), {p.text: p for p in dataset.corpus.passages}
    asked = {q.text: q for q in dataset.questions}
    stages = {"questions": 12, "retriever": "bm25", "exposures": 3}
    made = list(pairs("world-A", "train", seed=0, **stages))
    counts = Counter(p.source.split(":")[0] for p in made)
    n = sum(len(q.gold_ids) * (len(q.gold_ids) - 1) // 2 for q in dataset.questions)
    assert counts["positive"] == 3 * n == counts["hard"] + counts["near"] + counts["random"]
    assert min(counts.values()) > n / 4
    for pair in made:
        gold = set(asked[pair.question].gold_ids)
        two = {passage[pair.a].id, passage[pair.b].id}
        kind = pair.source.split(":")[0]
        assert len(two & gold) == {"positive": 2, "hard": 1, "near": 0, "random": 0}[kind]
        assert pair.ordered
        assert pair.label == (kind == "positive")
        if kind != "positive":
            assert len(two) == 2
            [first] = search.search([pair.question], 2)
            found = [
                {hit.passage.id, other.passage.id}
                for hit in first
                for other in search.search([concat(pair.question, hit.passage)], 12)[0]
            ]
            if kind == "random":
                assert any(two & both for both in found)
                continue
            assert two in found
            assert two != {hit.passage.id for hit in first}
    negatives = [(p.question, frozenset((p.a, p.b))) for p in made if not p.label]
    assert len(set(negatives)) > 0.8 * len(negatives)
    assert made == list(pairs("world-A", "train", seed=0, **stages))
    # Held out, each positive comes once.
    tune = list(pairs("world-A", "tune", seed=0, **stages))
    assert len({(p.question, frozenset((p.a, p.b))) for p in tune if p.label}) == len(tune) / 2
    few = list(pairs("world-A", "tune", seed=0, **stages, held_out=5))
    assert 0 < len({p.question for p in few}) <= 5 < len({p.question for p in tune})


def test_a_pair_is_judged_in_both_orders_unless_its_order_was_drawn():
    def cutter(*texts):
        return texts

    pair = Pair("q", "a", "b", 1, "positive:x")
    assert [e.tokens for e in encode([pair], cutter)] == [("q", "a", "b"), ("q", "b", "a")]
    assert [e.tokens for e in encode([replace(pair, ordered=True)], cutter)] == [("q", "a", "b")]


def test_what_is_watched_is_how_often_a_negative_comes_first(monkeypatch):
    logits = {1: 2.0, 2: 0.5, 3: 1.0, 4: -1.0, 5: 0.0}
    monkeypatch.setattr(
        "rag_repro.training.pair_training.outputs_of",
        lambda model, rows, pad: torch.tensor([[logits[row[0]]] for row in rows]),
    )
    kinds = {1: "positive", 2: "positive", 3: "hard", 4: "near", 5: "near"}
    held_out = [EncodedText((n,), int(k == "positive"), f"{k}:x") for n, k in kinds.items()]
    watched = check(0, 2)(None, held_out)
    # Of two positives and three negatives one pair of the six is the wrong way round.
    assert watched["swapped"] == pytest.approx(1 / 6, abs=1e-4)
    assert watched["swapped_hard"] == 0.5
    assert check(0, 2)(None, held_out[:2])["swapped_hard"] == 0.5


def test_a_trained_classifier_is_the_one_that_told_held_out_pairs_apart_best(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    looks = iter([0.3, 0.1, *[0.2] * 20])
    monkeypatch.setattr(
        "rag_repro.training.pair_training.check",
        lambda pad, budget: lambda model, examples: {"swapped_hard": next(looks)},
    )
    recipe = Recipe(
        name="tiny-classifier",
        about="for this test",
        task="pairs",
        base=encoders.save("bert", tmp_path / "base"),
        lessons=({"dataset": "world-A", "questions": 6, "retriever": "bm25"},),
        lora=Lora(rank=2),
        optimiser=Optimiser(batch_tokens=512),
    )
    folder = run.train(run.prepare(recipe, 0), run.folder_of(recipe, 0))
    kept = [row for row in run.read_curve(folder) if "kept" in row]
    assert [row["held_out"]["swapped_hard"] for row in kept] == [0.3, 0.1]
    assert card_of(folder)["kept_after_step"] == kept[-1]["step"]


def test_public_pairs_come_from_the_questions_own_passages(data_dir):
    dataset = data.load("hotpotqa_train", data_dir=data_dir, split="tune")
    own = {q.text: set(q.candidates) for q in dataset.questions}
    text = {p.text: p.id for p in dataset.corpus.passages}
    made = list(pairs("hotpotqa_train", "tune", seed=0, data_dir=data_dir))
    hard = [p for p in made if p.source.startswith("hard")]
    assert len(hard) > 10
    assert all({text[p.a], text[p.b]} <= own[p.question] for p in hard)


def test_a_classifier_learns_what_tells_pairs_apart(tmp_path):
    base = hub.resolve(encoders.save("bert", tmp_path / "base"))
    model, tokenizer = sequence_classifier(base)
    # Token 50 in the second passage makes a pair positive.
    rows = [(1, 9, 2, 20 + i, 2, 50 if i % 2 else 60 + i, 2) for i in range(16)]
    examples = [EncodedText(row, i % 2, "x") for i, row in enumerate(rows)]
    plan = Plan(examples, Lora(rank=8), Optimiser(learning_rate=1e-2, epochs=40), 0, "k")
    wrapped = wrap(model, plan.lora, 0, "SEQ_CLS")
    goal = objective(tokenizer.pad_token_id)
    folder = fit(wrapped, plan, tmp_path / "c", objective=goal, held_out=examples)
    curve = run.read_curve(folder)
    assert curve[-1]["held_out"]["x"] < 0.1 < 0.5 < curve[0]["loss"]
    write_card(folder, base)
    judge = PairClassifier(hub.adapted("c", folder))
    said = judge.logits(rows).numpy() > 0
    assert said.tolist() == [bool(e.label) for e in examples]


@pytest.mark.parametrize("kind", ["big_bird", "longformer"])
def test_the_papers_encoders_train_by_the_same_code(kind, tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    recipe = Recipe(
        name="tiny-classifier",
        about="for this test",
        task="pairs",
        base=encoders.save(kind, tmp_path / "base"),
        lessons=({"dataset": "world-A", "questions": 3},),
        lora=Lora(rank=2),
        optimiser=Optimiser(autocast=kind != "big_bird"),
    )
    run.train(run.prepare(recipe, 0), run.folder_of(recipe, 0))
    scores = PairClassifier(hub.resolve("tiny-classifier")).score([("who", "a film", "a lake")])
    assert 0 < scores[0] < 1


def test_seeds_and_local_recipes_lie_beside_the_committed_ones(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    local = tmp_path / "results" / "local" / "artifacts"
    recipe = recipes.recipe("drrag-classifier")
    assert run.folder_of(recipe, 0) == tmp_path / "artifacts" / "drrag-classifier"
    assert run.folder_of(recipe, 2) == local / "drrag-classifier-2"
    noisy = recipes.recipe("drrag-classifier-noise20")
    assert run.folder_of(noisy, 0) == local / "drrag-classifier-noise20"
    # Where it is kept makes no other adapter.
    assert replace(recipe, local=True).facts == recipe.facts
    assert noisy.facts != recipe.facts
    for folder in (local / "drrag-classifier-2", tmp_path / "artifacts" / "x", local / "x"):
        folder.mkdir(parents=True)
        (folder / hub.ADAPTER).touch()
    assert hub.artifacts() == {
        "drrag-classifier-2": local / "drrag-classifier-2",
        "x": tmp_path / "artifacts" / "x",
    }


@pytest.mark.parametrize("name", ["bigbird-base", "bigbird-large", "longformer"])
def test_the_papers_encoders_want_a_commit(name):
    recipe = recipes.recipe(f"drrag-classifier-{name}")
    with pytest.raises(recipes.RecipeError, match=rf"--base {recipe.base}@COMMIT"):
        recipe.on(None)
    pinned = f"{recipe.base}@{'0' * 40}"
    assert recipe.on(pinned).base == pinned
    assert recipe.on(pinned).facts["base"] == pinned
    assert recipe.on(pinned).name == recipe.name


def test_over_another_base_the_committed_adapter_stays_what_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    own = recipes.recipe("drrag-classifier")
    assert own.on(None) == own
    assert own.on(own.base) == own
    other = own.on("smollm2-135m")
    name = "drrag-classifier-over-smollm2-135m"
    assert run.folder_of(other, 0) == tmp_path / "results" / "local" / "artifacts" / name
    assert other.facts == {**own.facts, "name": name, "base": "smollm2-135m"}
    hub_base = own.on(f"hub:Some/Model@{'0' * 40}")
    assert hub_base.name == "drrag-classifier-over-model"


@pytest.mark.parametrize("given", [{"split": "test"}, {"seed": 7}, {"dataset": "x", "noize": 0.1}])
def test_a_recipe_cannot_choose_the_split_or_seed_of_its_pairs(given, tmp_path):
    base = encoders.save("bert", tmp_path / "base")
    recipe = Recipe("x", "for this test", "pairs", base, ({"dataset": "world-A", **given},))
    with pytest.raises(TypeError, match=list(given)[-1]):
        run.prepare(recipe, 0)


def test_each_gold_passage_is_relevant_and_as_many_others_are_not():
    dataset = data.load("world-A-10", split="train").first(40)
    text = {p.text: p.id for p in dataset.corpus.passages}
    asked = {q.text: q for q in dataset.questions}
    made = list(relevance("world-A-10", "train", seed=0, questions=40))
    counts = Counter(p.source.split(":")[0] for p in made)
    assert counts["positive"] == sum(len(q.gold_ids) for q in asked.values())
    assert counts["positive"] * 2 == len(made)
    assert 0.65 < counts["hard"] / counts["positive"] < 0.95
    for pair in made:
        question, name = asked[pair.question], text[pair.a]
        kind = pair.source.split(":")[0]
        assert pair.b is None
        assert pair.label == (kind == "positive") == (name in question.gold_ids)
        assert kind != "hard" or name in question.candidates
    sides = [list(relevance("world-A-10", "tune", seed=s, questions=20)) for s in (0, 0, 1)]
    assert sides[0] == sides[1] != sides[2]


def test_distractors_that_a_data_set_lacks_are_mined_and_hold_no_answer():
    dataset = data.load("world-A", split="train").first(15)
    asked = {q.text: q for q in dataset.questions}
    made = list(relevance("world-A", "train", seed=0, questions=15, mined=True))
    hard = [p for p in made if p.source.startswith("hard")]
    assert len(hard) > len(made) / 4
    for pair in hard:
        question = asked[pair.question]
        if question.answers[0] not in ("yes", "no"):
            assert not any(answer in pair.a for answer in question.answers)
    with pytest.raises(ValueError, match=r"world-A hands out no passages.*mined: true"):
        list(relevance("world-A", "train", seed=0, questions=3))


def test_a_relevance_recipe_makes_an_evaluator(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    recipe = Recipe(
        name="tiny-evaluator",
        about="for this test",
        task="relevance",
        base=encoders.save("bert", tmp_path / "base"),
        lessons=({"dataset": "world-A-10", "questions": 3},),
        lora=Lora(rank=2),
    )
    prepared = run.prepare(recipe, 0)
    # One order of a single passage, not two.
    assert len(prepared.plan.examples) == len(
        list(relevance("world-A-10", "train", seed=0, questions=3))
    )
    run.train(prepared, run.folder_of(recipe, 0))
    judge = RelevanceClassifier(hub.resolve("tiny-evaluator"))
    assert 0 < judge.score([("who", "a film")])[0] < 1


@pytest.mark.parametrize("given", [{"split": "test"}, {"mind": True}])
def test_a_recipe_cannot_choose_the_split_of_its_passages(given, tmp_path):
    base = encoders.save("bert", tmp_path / "base")
    lessons = ({"dataset": "world-A-10", **given},)
    recipe = Recipe("x", "for this test", "relevance", base, lessons)
    with pytest.raises(TypeError, match=next(iter(given))):
        run.prepare(recipe, 0)


@pytest.mark.parametrize("name", ["crag-evaluator", "crag-evaluator-testbed"])
def test_the_evaluators_recipes(name):
    recipe = recipes.recipe(name)
    assert (recipe.task, recipe.base) == ("relevance", "minilm")
    assert {part["dataset"] for part in recipe.lessons} <= {
        "world-A-10", "hotpotqa_train", "2wikimultihopqa_train", "nq"
    }  # fmt: skip
