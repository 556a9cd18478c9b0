"""R²AG's training: its lists and losses by hand, what learns and what does not, to a reader."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch

from rag_repro import data, engine
from rag_repro.data import synthworld
from rag_repro.data.synthworld.reasoning import facts_of
from rag_repro.lm import former as formers
from rag_repro.lm import hub
from rag_repro.lm.local import LocalReader
from rag_repro.methods import base as methods
from rag_repro.methods.r2ag.features import features
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Generate, Gold, Passage, Prompt, Question, Soft
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.study.services import Workshop
from rag_repro.training import fit as fit_module
from rag_repro.training import r2ag, recipes, run
from rag_repro.training.r2ag import FormerOutput, Joint, check, matching, objective
from rag_repro.training.recipes import Former, Lora, Optimiser, Recipe, RecipeError
from tests.lm import tiny

PASSAGES = tuple(
    Passage(f"p{i}", f"Title {i}", text)
    for i, text in enumerate(
        (
            "Ada wrote the film in Rome and Paris and was born there in 1960",
            "The film of Rome is a city of the question",
            "Zürich is the capital of the answer and was directed by Ada",
            "The film Rome was born in Paris",
            "A passage of the title is a film of Rome in 1960",
            "Nothing is here",
        )
    )
)
QUESTIONS = tuple(
    Question(f"q{i}", f"Who wrote film {i} of Rome?", ("Ada", "Zürich"), gold=(Gold(gold),))
    for i, gold in enumerate(("p0", "p2", "p0", "p2", "p0", "p2"))
)


class Drawn:
    """An encoder whose vectors every letter of a text decides; gold passages are near."""

    fingerprint = "drawn"

    def encode(self, texts):
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text):
        seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        drawn = np.random.default_rng(seed).normal(size=8)
        return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def dataset(self, name, split):
    """Four questions to train on, two to tune on, over six passages."""
    asked = QUESTIONS[:4] if split == "train" else QUESTIONS[4:]
    return Dataset(name, asked, Corpus("six", PASSAGES))


RECIPE = Recipe(
    name="tiny-r2ag",
    about="for this test",
    task="r2ag",
    base="set by the fixture",
    lessons=({"dataset": "tiny", "lengths": {3: 1}, "mined": True},),
    lora=None,
    optimiser=Optimiser(learning_rate=1e-2, batch_rows=2, epochs=2, autocast=False),
    former=Former(places=5),
)


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """The recipe over a tiny model in a folder, with an empty folder of artifacts."""
    folder = tmp_path / "base"
    made = tiny.loaded("llama", max_position_embeddings=2048)
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Workshop, "encoder", lambda self, name: Drawn())
    monkeypatch.setattr(Workshop, "dataset", dataset)
    return replace(RECIPE, base=str(folder))


def told(recipe, **former):
    return replace(recipe, former=replace(recipe.former, **former))


# ----------------------------------------------------------------- the lists


def lists_of(recipe, split="train", **part):
    part = {**recipe.lessons[0], **part}
    return list(
        r2ag.load_lists(split=split, seed=0, workshop=Workshop(), former=recipe.former, **part)
    )


def test_a_list_is_the_gold_and_the_nearest_without_an_answer(recipe):
    made = lists_of(recipe)
    assert [q.id for q, _, _ in made] == ["q0", "q1", "q2", "q3"]
    for question, hits, rows in made:
        ids = [h.passage.id for h in hits]
        assert len(ids) == 3
        # p0 and p2 hold answers, so neither is a distractor; p5 shares no word.
        assert {"p0", "p2"} & set(ids) == set(question.gold_ids)
        assert "p5" not in ids
        scores = [h.score for h in hits]
        assert scores == sorted(scores, reverse=True)
        # The relevance is the score by which the dense retriever ranks.
        assert rows[:, 0] == pytest.approx(scores, abs=1e-6)
    assert [q.id for q, _, _ in lists_of(recipe, questions=2)] == ["q0", "q1"]
    assert [q.id for q, _, _ in lists_of(recipe, "tune", held_out=1, questions=0)] == ["q4"]


LENGTHS = {"dataset": "tiny", "lengths": {1: 1, 2: 1, 4: 2}, "mined": True}


def test_lists_of_drawn_lengths_keep_gold_and_the_best_others(recipe):
    whole = {q.id: hits for q, hits, _ in lists_of(recipe, lengths={4: 1})}
    seen, mixed = set(), 0
    for seed in range(8):
        ours = {"split": "train", "seed": seed, "workshop": Workshop()}
        made = list(r2ag.load_lists(former=recipe.former, **ours, **LENGTHS))
        # A control draws the same, be it told of features or of nothing.
        free = r2ag.load_lists(former=Former(inputs="free", qdm=0), **ours, **LENGTHS)
        raft = r2ag.load_lists(former=None, **ours, **LENGTHS)
        for one, *others in zip(made, free, raft, strict=True):
            assert all(other[:2] == one[:2] for other in others)
            question, hits, rows = one
            every = whole[question.id]
            rest = [h for h in every if h.passage.id not in question.gold_ids]
            gold = [h for h in every if h.passage.id in question.gold_ids]
            wanted = [*gold, *rest[: len(hits) - len(gold)]]
            assert hits == sorted(wanted, key=lambda h: -h.score)
            # What is near to what is told of the list as it is shown, not of a longer one.
            vectors = Drawn().encode(
                [question.text, *(f"{p.title} {p.text}" for p in passages(hits))]
            )
            np.testing.assert_allclose(rows, features(vectors[0], vectors[1:]), atol=1e-6)
            seen.add(len(hits))
        mixed += len({len(hits) for _, hits, _ in made}) > 1
    assert seen == {1, 2, 4}
    assert mixed > 4  # drawn by question, not one length for a whole run


def passages(hits):
    return [hit.passage for hit in hits]


def test_lengths_are_as_often_as_they_weigh(recipe):
    lengths = {1: 1, 2: 0, 3: 3}
    counts = Counter(
        len(hits)
        for seed in range(60)
        for _, hits, _ in r2ag.load_lists(
            "tiny", "train", seed, Workshop(), None, lengths=lengths, mined=True
        )
    )
    assert set(counts) == {1, 3}
    assert 1.8 < counts[3] / counts[1] < 5


def test_a_stretch_of_a_gold_passage_holds_an_answer(recipe):
    whole = {p.id: p.text for p in PASSAGES}
    firsts = set()
    for seed in range(6):
        part = {**recipe.lessons[0], "words": 4}
        made = r2ag.load_lists(
            split="train", seed=seed, workshop=Workshop(), former=recipe.former, **part
        )
        for (question, hits, rows), (_, _, before) in zip(made, lists_of(recipe), strict=True):
            np.testing.assert_array_equal(rows, before)  # the encoder sees them whole
            for hit in hits:
                said = hit.passage.text
                assert said in whole[hit.passage.id]
                assert len(said.split()) == 4
                if hit.passage.id in question.gold_ids:
                    assert "Ada" in said or "Zürich" in said
                firsts.add((hit.passage.id, said))
    assert len(firsts) > 5


def test_a_list_that_cannot_be_made_names_its_question(recipe):
    bare = tuple(replace(q, gold=()) for q in QUESTIONS)
    workshop = Workshop()
    workshop.dataset = lambda name, split: Dataset(name, bare, Corpus("six", PASSAGES))
    made = r2ag.load_lists("tiny", "train", 0, workshop, Former(inputs="gold"), lengths={3: 1})
    with pytest.raises(RecipeError, match=r"tiny: question q0: .*names no gold"):
        list(made)


def test_gold_is_in_a_list_wherever_it_ranks(recipe):
    own = tuple(replace(q, candidates=tuple(p.id for p in PASSAGES)) for q in QUESTIONS)
    workshop = Workshop()
    workshop.dataset = lambda name, split: Dataset(name, own, Corpus("six", PASSAGES))
    made = list(r2ag.load_lists("tiny", "train", 0, workshop, recipe.former, lengths={1: 1}))
    assert [[hit.passage.id for hit in hits] for _, hits, _ in made] == [
        list(question.gold_ids) for question in own
    ]


def test_a_search_that_misses_gold_makes_no_list(recipe):
    with pytest.raises(RecipeError, match=r"question q\d: .* gold passage p\d; say mined: true"):
        lists_of(recipe, lengths={1: 1}, mined=False)


@pytest.mark.parametrize("given", [{"split": "test"}, {"seed": 7}, {"dataste": "x"}])
def test_a_recipe_cannot_choose_split_or_seed(recipe, given):
    with pytest.raises(TypeError, match=next(iter(given))):
        run.prepare(replace(recipe, lessons=({**recipe.lessons[0], **given},)), 0)


# --------------------------------------------------------------- the lessons


def test_a_lesson_is_the_methods_prompt_and_one_answer(recipe):
    prepared = run.prepare(recipe, 0)
    assert (len(prepared.plan.examples), len(prepared.held_out)) == (4, 2)
    codec = LocalReader(hub.resolve(recipe.base)).codec
    for (question, hits, rows), one in zip(lists_of(recipe), prepared.plan.examples, strict=True):
        soft = [Soft("r2ag", rows, i) for i in range(3)]
        encoded = codec.encode(PROMPTS["r2ag"].fill(question, hits, soft))
        n = len(encoded)
        assert one.tokens[:n] == encoded.tokens
        assert one.places == tuple(at for at, _ in encoded.soft)
        assert one.tokens[-1] == 2  # the end of the reader's turn
        assert codec.text(one.tokens[n:-1]) in question.answers
        assert len(one.tokens) - n == one.n_target
        assert one.labels == tuple(int(h.passage.id in question.gold_ids) for h in hits)
        np.testing.assert_array_equal(np.array(one.features, np.float32), rows)
    drawn = {seed: run.prepare(recipe, seed).plan.examples for seed in range(4)}
    assert len({tuple(e.tokens[-e.n_target :] for e in d) for d in drawn.values()}) > 1


def test_where_the_prompt_asks_for_reasons_they_stand_before_the_answer(recipe, monkeypatch):
    monkeypatch.setattr(r2ag, "public_thoughts", lambda q, gold: f"{gold[0].id} tells.")
    reasoning = told(recipe, prompt="drrag_informed")
    codec = LocalReader(hub.resolve(recipe.base)).codec
    examples = run.prepare(reasoning, 0).plan.examples
    for (question, hits, rows), one in zip(lists_of(reasoning), examples, strict=True):
        soft = [Soft("r2ag", rows, i) for i in range(3)]
        prompt = codec.encode(PROMPTS["drrag_informed"].fill(question, hits, soft))
        assert one.tokens[: len(prompt)] == prompt.tokens
        said = codec.text(one.tokens[len(prompt) : -1])
        assert said.strip() == f"{question.gold_ids[0]} tells. Answer: Ada."
    assert run.prepare(reasoning, 0).plan.key != run.prepare(recipe, 0).plan.key


def test_reasons_of_a_world_s_question_are_its_facts_in_order():
    world = data.load("world-A-10", split="train")
    question = next(q for q in world.questions if len(q.meta["subjects"]) == 2)
    form = PROMPTS["drrag_informed"]
    said = r2ag.target(question, (), form, "world-A-10", Random(0))
    facts = facts_of(synthworld.world("A"), question)
    places = [said.index(fact.value) for fact in facts]
    assert places == sorted(places)
    assert said.endswith(f"Answer: {question.answers[0]}.")
    assert said[0] != " ", "the answer opens a turn"
    # Elsewhere it follows "Answer:".
    spoken = r2ag.target(question, (), PROMPTS["cot"], "world-A-10", Random(0))
    assert spoken.startswith(" ")
    assert spoken.endswith(f"So the answer is {question.answers[0]}.")
    # So do answers alone.
    for name, before in (("r2ag", ""), ("r2ag_plain", " ")):
        said = r2ag.target(question, (), PROMPTS[name], "world-A-10", Random(0))
        assert said.removeprefix(before) in question.answers


def test_a_question_without_known_reasons_is_named(recipe):
    with pytest.raises(RecipeError, match="tiny: question q0: nothing that came with it leads"):
        r2ag.target(QUESTIONS[0], (), PROMPTS["drrag_informed"], "tiny", Random(0))


def test_the_prompt_that_all_formers_had_is_not_in_their_cards(recipe):
    assert "prompt" not in recipe.facts["former"]
    assert told(recipe, prompt="drrag_informed").facts["former"]["prompt"] == "drrag_informed"


INPUTS = ("features", "shuffled", "constant", "gold", "free")


def test_controls_differ_in_features_alone(recipe):
    made = {}
    for inputs in INPUTS:
        made[inputs] = run.prepare(told(recipe, inputs=inputs, qdm=float(inputs != "free")), 3)
    for prepared in made.values():
        assert prepared.plan.steps() == made["features"].plan.steps()
        for a, b in zip(prepared.plan.examples, made["features"].plan.examples, strict=True):
            assert replace(a, features=()) == replace(b, features=())
    assert len({p.digest for p in made.values()}) == 4  # constant and free are told the same
    assert len({p.plan.key for p in made.values()}) == 5
    counts = {
        inputs: formers.count(formers.build_module(kind, 0, **sizes))
        for inputs in INPUTS
        for kind, sizes in [r2ag.sizes_of(Former(inputs=inputs, qdm=0), 48)]
    }
    assert len({counts[i] for i in INPUTS if i != "free"}) == 1
    assert counts["free"] == 20 * 256 + 48 * 257


# ---------------------------------------------------------------- the losses


def joint(recipe, seed: int = 0, **former) -> Joint:
    kind, sizes = r2ag.sizes_of(replace(recipe.former, **former), 48)
    module = formers.build_module(kind, seed, **sizes)
    return Joint(hub_model(recipe), module).eval()


def hub_model(recipe):
    from rag_repro.lm.load import load

    return load(hub.resolve(recipe.base)).model


def test_the_answers_loss_is_that_of_the_reader_itself(recipe):
    """By the path of inference: the reader's own embeddings of the prompt, the whole pass."""
    prepared = run.prepare(recipe, 0)
    model = joint(recipe)
    reader = LocalReader(hub.resolve(recipe.base))
    reader.add_soft("r2ag", model.former)
    wanted = []
    for (question, hits, rows), one in zip(lists_of(recipe), prepared.plan.examples, strict=True):
        soft = [Soft("r2ag", rows, i) for i in range(3)]
        encoded = reader.codec.encode(PROMPTS["r2ag"].fill(question, hits, soft))
        table = reader.model.get_input_embeddings()
        prompt = table(torch.tensor(encoded.tokens))[None].detach()
        for (at, _), row in zip(encoded.soft, reader._soft.rows(soft), strict=True):
            prompt[0, at] = row
        answer = torch.tensor(one.tokens[-one.n_target :])
        embeds = torch.cat([prompt, table(answer)[None]], dim=1)
        with torch.no_grad():
            logits = reader.model(inputs_embeds=embeds).logits[0, -one.n_target - 1 : -1]
        wanted.append(float(torch.nn.functional.cross_entropy(logits, answer)))
    batch = prepared.plan.examples
    with torch.no_grad():
        together = model.answering(batch, model.tell(batch))
        assert together.tolist() == pytest.approx(wanted, rel=1e-4)
        total, n = objective(Former(qdm=0.0))(model, batch)
    assert (float(total), n) == (pytest.approx(sum(wanted), rel=1e-4), 4)


def test_lists_of_unequal_length_do_not_meet(recipe):
    one, other = run.prepare(recipe, 0).plan.examples[:2]
    at = other.places[1]
    short = replace(
        other, places=other.places[:1] + other.places[2:],
        tokens=other.tokens[:at] + other.tokens[at + 1 :],
        features=other.features[:1] + other.features[2:], labels=(0, 1),
    )  # fmt: skip
    short = replace(short, places=(short.places[0], short.places[1] - 1))
    model = joint(recipe)
    with torch.no_grad():
        for part in (model.answering, lambda batch, told: matching(told)):
            apart = [float(part([e], model.tell([e]))) for e in (one, short)]
            assert part([one, short], model.tell([one, short])).tolist() == pytest.approx(
                apart, rel=1e-4
            )


def test_matching_by_hand():
    logits = torch.tensor([[0.0, 2.0, -1.0], [3.0, 9.0, 9.0]])
    labels = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    mask = torch.tensor([[True] * 3, [True, False, False]])
    made = FormerOutput(torch.zeros(4, 1), mask, labels, logits)
    sums = [-np.log(0.5) + np.log1p(np.exp(2)) + np.log1p(np.exp(-1)), np.log1p(np.exp(3))]
    assert matching(made, "sum").tolist() == pytest.approx(sums, rel=1e-5)
    assert matching(made).tolist() == pytest.approx([sums[0] / 3, sums[1]], rel=1e-5)


def test_the_loss_is_both_terms(recipe):
    batch = run.prepare(recipe, 0).plan.examples
    model = joint(recipe)
    with torch.no_grad():
        of = {
            key: float(objective(Former(**given), **terms)(model, batch)[0])
            for key, given, terms in (
                ("answers", {}, {"matches": False}),
                ("matching", {}, {"answers": False}),
                ("both", {}, {}),
                ("heavy", {"qdm": 3.0}, {}),
                ("sum", {"reduction": "sum"}, {"answers": False}),
            )
        }
    assert of["both"] == pytest.approx(of["answers"] + of["matching"], rel=1e-5)
    assert of["heavy"] == pytest.approx(of["answers"] + 3 * of["matching"], rel=1e-5)
    assert of["sum"] == pytest.approx(3 * of["matching"], rel=1e-5)


def test_what_is_watched(recipe):
    lessons = run.prepare(recipe, 0).plan.examples
    model = joint(recipe)
    with torch.no_grad():
        found = check(4096, True)(model, lessons)
        answers = model.answering(lessons, model.tell(lessons))
        made = model.tell(lessons)
        assert check(4096, False)(model, lessons) == {"answer": found["answer"]}
    assert found["answer"] == pytest.approx(float(answers.mean()), abs=1e-4)
    gold = made.logits[made.labels == 1]
    others = made.logits[made.labels == 0]
    assert found["auc"] == pytest.approx(float((gold[:, None] > others).float().mean()), abs=1e-4)
    assert found["matching"] == pytest.approx(float(matching(made).mean()), abs=1e-4)


# ------------------------------------------------------------ what is learned


def trained(recipe, folder, seed=0, plan=None):
    prepared = run.prepare(recipe, seed)
    before = {n: p.clone() for n, p in prepared.model.named_parameters()}
    r2ag.train(prepared.model, plan or prepared.plan, recipe.former, prepared.held_out, folder)
    return prepared, before


def weights(folder, name=hub.FORMER):
    from safetensors.torch import load_file

    return load_file(folder / name)


def same(a, b):
    assert a.keys() == b.keys()
    return all(torch.equal(a[name], b[name]) for name in a)


def test_the_reader_stays_as_it_is_and_the_former_learns(recipe, tmp_path):
    prepared, before = trained(recipe, tmp_path / "a")
    after = dict(prepared.model.named_parameters())
    assert all(torch.equal(after[n], before[n]) for n in before)
    assert all(p.grad is None for p in after.values())
    fresh = formers.build_module(*[r2ag.sizes_of(recipe.former, 48)[0], 0],
                         **r2ag.sizes_of(recipe.former, 48)[1]).state_dict()  # fmt: skip
    learned = weights(tmp_path / "a")
    for name in ("lift.weight", "projection.weight", "head.weight", "positions"):
        assert not torch.equal(learned[name], fresh[name].half()), name
    assert not (tmp_path / "a" / hub.ADAPTER).exists()


def test_other_labels_or_features_make_another_former(recipe, tmp_path):
    prepared, _ = trained(recipe, tmp_path / "a")
    trained(recipe, tmp_path / "again")
    assert same(weights(tmp_path / "a"), weights(tmp_path / "again"))
    turned = [replace(e, labels=e.labels[::-1]) for e in prepared.plan.examples]
    trained(recipe, tmp_path / "turned", plan=replace(prepared.plan, examples=turned))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "turned"))
    # Without matching nobody looks at a label.
    bare = told(recipe, qdm=0.0)
    for name, plan in (("b", prepared.plan), ("c", replace(prepared.plan, examples=turned))):
        trained(bare, tmp_path / name, plan=plan)
    assert same(weights(tmp_path / "b"), weights(tmp_path / "c"))
    trained(told(recipe, inputs="constant"), tmp_path / "constant")
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "constant"))


def test_stages_apart_learn_matching_then_answers(recipe, tmp_path):
    apart = told(recipe, stages="separate")
    trained(apart, tmp_path / "apart")
    trained(recipe, tmp_path / "joint")
    trained(told(recipe, qdm=0.0), tmp_path / "answers")
    curves = [run.read_curve(tmp_path / name) for name in ("apart", "joint", "answers")]
    assert len({len(curve) for curve in curves}) == 1
    made = [weights(tmp_path / name) for name in ("apart", "joint", "answers")]
    assert not any(same(made[i], made[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    # The head of the first stage stays; without matching it is what it was drawn as.
    assert not torch.equal(made[0]["head.weight"], made[2]["head.weight"])
    assert "auc" in curves[0][-1]["held_out"]
    assert list(curves[2][-1]["held_out"]) == ["answer"]


def test_a_head_start_matches_lists_and_reads_nothing(recipe, tmp_path, monkeypatch):
    """It knows the gold before its first answer, in the very steps that answers take without.

    A patience is of the answers: what is matched before them is not watched.
    """
    read = []
    real = Joint.answering
    monkeypatch.setattr(
        Joint,
        "answering",
        lambda self, batch, told: (read.append(len(batch)), real(self, batch, told))[1],
    )
    optimiser = replace(recipe.optimiser, learning_rate=3e-3, epochs=1, patience=99)
    known = told(replace(recipe, optimiser=optimiser), inputs="gold", dropout=0.0)
    curves, counts = [], []
    for head_start in (0, 60):
        read.clear()
        trained(told(known, head_start=head_start), tmp_path / str(head_start))
        curves.append(run.read_curve(tmp_path / str(head_start)))
        counts.append(list(read))
    assert counts[0] == counts[1]
    assert [row["tokens"] for row in curves[0]] == [row["tokens"] for row in curves[1]]
    assert curves[1][0]["held_out"]["matching"] < 0.2 < curves[0][0]["held_out"]["matching"]
    assert not (tmp_path / "60" / "matching").exists()


def test_learnable_tokens_learn_at_a_formers_pace(recipe, tmp_path):
    """Else what R²AG has before them would be a larger step, and no feature."""
    steps = replace(recipe.optimiser, learning_rate=2e-4, epochs=8)
    recipe = replace(recipe, optimiser=steps, former=replace(recipe.former, dropout=0.0))
    moved = {}
    for inputs in ("constant", "free"):
        one = told(recipe, inputs=inputs, qdm=0.0)
        prepared, _ = trained(one, tmp_path / inputs)
        kind, sizes = r2ag.sizes_of(one.former, 48)
        begun, ended = (formers.build_module(kind, 0, **sizes).eval() for _ in range(2))
        begun.start_as(hub_model(recipe).get_input_embeddings().weight)
        ended.load_state_dict({n: t.float() for n, t in weights(tmp_path / inputs).items()})
        rows = torch.tensor(prepared.plan.examples[0].features)
        with torch.no_grad():
            before, after = begun(rows), ended(rows)
        moved[inputs] = float((after - before).norm() / before.norm())
    # In the reader's own width, without a projection, it would be a two-hundredth.
    assert 0.1 < moved["free"] / moved["constant"] < 10
    assert moved["free"] > 0.02


def test_it_learns_to_tell_gold(recipe, tmp_path):
    """From labels as inputs, in some twenty steps."""
    known = told(recipe, inputs="gold", dropout=0.0)
    known = replace(known, optimiser=replace(known.optimiser, epochs=10, learning_rate=3e-3))
    trained(known, tmp_path / "a")
    curve = run.read_curve(tmp_path / "a")
    assert curve[-1]["held_out"]["auc"] == 1.0
    assert curve[-1]["held_out"]["matching"] < 0.2
    assert curve[-1]["loss"] < curve[0]["loss"] * 0.9
    kept = [row for row in curve if "kept" in row]
    lowest = min(row["held_out"]["answer"] for row in curve if "held_out" in row)
    assert kept[-1]["held_out"]["answer"] == lowest


# ------------------------------------------------------ from recipe to reader


def ask(reader, **given):
    settings = methods.get("r2ag").configure({"k": 3, "max_new_tokens": 6, **given})
    workshop = Workshop()
    corpus = Corpus("six", PASSAGES)
    services = {"reader": reader, "retriever": workshop.retriever("minilm", corpus)}
    services |= {name: Drawn() for name in settings.needs}
    task = engine.Task(QUESTIONS[4], methods.get("r2ag").run, settings)
    [(_, answer)] = engine.run([task], services)
    assert answer.error is None, answer.error
    return answer


LORA = Lora(rank=2, targets=("q_proj", "v_proj"))


@pytest.mark.parametrize(
    ("lora", "former", "fast"),
    [(None, Former(places=5), True), (None, Former(places=5, inputs="free", qdm=0), False),
     (LORA, Former(places=5), False), (LORA, None, True)],
)  # fmt: skip
def test_from_recipe_to_answer(recipe, lora, former, fast, tmp_path, monkeypatch):
    """On processors that are fast in bfloat16, and on others."""
    monkeypatch.setattr("rag_repro.training.fit.fast_bfloat16", lambda device: fast)
    optimiser = replace(recipe.optimiser, autocast=True)  # as shipped recipes compute
    recipe = replace(recipe, lora=lora, former=former, optimiser=optimiser)
    prepared = run.prepare(recipe, 0)
    assert "tiny-r2ag, seed 0: 4 steps" in prepared.cost()
    assert "train:tiny: 4 lessons" in prepared.cost()
    assert ("in float32, for bfloat16 is slow on this cpu" in prepared.cost()) != fast
    folder = run.folder_of(recipe, 0)
    assert not run.is_made(prepared, folder)
    run.train(prepared, folder)
    # A model that learned is another: prepare anew, as another process would.
    assert run.is_made(run.prepare(recipe, 0), folder)
    assert not run.is_made(run.prepare(recipe, 1), folder)
    assert not (folder / "state").exists()
    card = json.loads((folder / "card.json").read_text())
    assert card["held_out_loss"]["answer"] > 0
    assert card["steps"] == 4
    assert card["computed_in"] == ("bfloat16" if fast else "float32")
    assert 1 <= card["kept_after_step"] <= 4
    assert (folder / hub.ADAPTER).exists() == (lora is not None)
    assert (folder / hub.FORMER).exists() == (former is not None)
    reader = LocalReader(hub.resolve("tiny-r2ag"))
    plain = LocalReader(hub.resolve(recipe.base))
    assert reader.fingerprint != plain.fingerprint
    if former is None:
        prompt = Prompt.from_segments("Question: who?\nAnswer:")
        [made] = reader.generate([Generate(prompt, 4)])
        assert made.tokens
        return
    assert card["former"]["soft"] == "r2ag"
    assert card["former"]["parameters"] > 0
    answer = ask(reader, inputs=former.inputs)
    assert answer.calls[-1] == "Generate"
    assert len(answer.hits) == 3
    # The fingerprint covers the former's weights.
    state = weights(folder)
    name = next(iter(state))
    state[name] = state[name] + 1
    from safetensors.torch import save_file

    save_file(state, folder / hub.FORMER)
    assert LocalReader(hub.resolve("tiny-r2ag")).fingerprint != reader.fingerprint


def test_a_former_before_a_reader_that_was_trained_itself(recipe):
    raft = replace(recipe, name="tiny-raft", lora=LORA, former=None)
    run.train(run.prepare(raft, 0), run.folder_of(raft, 0))
    over = replace(recipe, base="tiny-raft")
    run.train(run.prepare(over, 0), run.folder_of(over, 0))
    weights_of = hub.resolve("tiny-r2ag")
    assert weights_of.base.name == "tiny-raft"
    reader, plain = LocalReader(weights_of), LocalReader(hub.resolve("tiny-raft"))
    # The reader below is the trained one, and its tokenizer that of the base below it.
    prompt = Prompt.from_segments("Question: who?\nAnswer:")
    [ours], [theirs] = (one.generate([Generate(prompt, 4)]) for one in (reader, plain))
    assert ours.tokens == theirs.tokens
    state = dict(reader.model.named_parameters())
    assert all(torch.equal(state[n], p) for n, p in plain.model.named_parameters())
    assert ask(reader).hits


def test_a_former_of_other_columns_says_so(recipe, tmp_path):
    narrow = told(recipe, columns=["relevance"])
    run.train(run.prepare(narrow, 0), run.folder_of(narrow, 0))
    reader = LocalReader(hub.resolve("tiny-r2ag"))
    assert ask(reader, columns=["relevance"]).error is None
    with pytest.raises(AssertionError, match="a former of 1 columns was given 3"):
        ask(reader)


@pytest.mark.parametrize("lora", [None, LORA])
def test_a_cut_run_ends_where_an_uncut_one_does(recipe, lora, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_module, "SAVE_EVERY", 0.0)
    recipe = replace(recipe, lora=lora, optimiser=replace(recipe.optimiser, epochs=4))
    whole = run.train(run.prepare(recipe, 0), tmp_path / "whole")

    class Cut(Exception):
        pass

    real, steps = Joint.answering, iter(range(99))

    def until_the_sixth(self, batch, told):
        if self.training and next(steps) == 5:
            raise Cut
        return real(self, batch, told)

    monkeypatch.setattr(Joint, "answering", until_the_sixth)
    with pytest.raises(Cut):
        run.train(run.prepare(recipe, 0), tmp_path / "cut")
    assert not (tmp_path / "cut" / "card.json").exists()
    monkeypatch.setattr(Joint, "answering", real)
    cut = run.train(run.prepare(recipe, 0), tmp_path / "cut")
    for file in [f.name for f in whole.glob("*.safetensors")]:
        assert same(weights(whole, file), weights(cut, file))
    kept = [
        [(row["loss"], row.get("held_out"), row.get("kept")) for row in run.read_curve(folder)]
        for folder in (whole, cut)
    ]
    assert kept[0] == kept[1]


# --------------------------------------------------------------- the recipes


def test_shipped_controls_share_lists_steps_and_base():
    known = recipes.recipes()
    head = known["r2ag-mixed"]
    assert head.lora is None
    # Every place that a test fills is one that a training list fills.
    assert {max(lesson["lengths"]) for lesson in head.lessons} == {head.former.places}
    apart = (
        *OTHERS,
        "loud",
        "joint",
        "again",
        "long",
        *TWENTY,
        "gemma3",
        "reasoning",
        "reasoning-free",
        *LLAMA,
    )
    mine = [
        r
        for n, r in known.items()
        if r.task == "r2ag" and not n.endswith(apart) and not n.startswith("r2ag-llama")
        if n not in FIVES
    ]
    assert len(mine) == 13
    for one in mine:
        assert (one.lessons, one.optimiser, one.base, one.seeds) == (
            head.lessons,
            head.optimiser,
            head.base,
            head.seeds,
        )
        assert one.local == (one.name not in COMMITTED)
        assert (one.lora is None) == ("raft" not in one.name)
        assert (one.former is None) == one.name.startswith("raft")
        # What matches as the headline does begins as it does.
        if one.former and one.former.qdm and one.former.stages == "joint":
            assert one.former.head_start == head.former.head_start > 0
    assert "former" not in known["testbed-reader"].facts


FIVES = (
    *(f"r2ag-five{control}" for control in ("", "-free", "-gold", "-constant")),
    *("raft-five", "r2ag-raft-five"),
)


def test_arms_on_lists_of_five_are_taught_alike_and_stop_by_one_rule():
    """At least 2,000 lists, and 100 held out of the four sets together."""
    known = recipes.recipes()
    head = known["r2ag-five"]
    assert sum(lesson["questions"] for lesson in head.lessons) >= 2000
    assert sum(lesson["held_out"] for lesson in head.lessons) >= 100
    assert {max(lesson["lengths"]) for lesson in head.lessons} == {head.former.places}
    assert head.optimiser.patience is not None
    for name in FIVES:
        one = known[name]
        assert (one.lessons, one.optimiser, one.base) == (head.lessons, head.optimiser, head.base)
        assert one.former is None or one.former.places == head.former.places


TWENTY = ("r2ag-mixed-twenty", "r2ag-mixed-twenty-free")


def test_no_weights_of_another_run_stay_beside(recipe, tmp_path):
    """As low-rank matrices beside a former that was learned without any."""
    folder = tmp_path / "out"
    run.train(run.prepare(replace(recipe, lora=LORA, former=None), 0), folder)
    assert (folder / hub.ADAPTER).exists()
    prepared = run.prepare(recipe, 0)
    run.train(prepared, folder)
    assert hub.trained_files(folder) == [folder / hub.FORMER]
    assert run.is_made(prepared, folder)


def test_trainings_for_twenty_passages_share_their_lists():
    one, free = map(recipes.recipe, TWENTY)
    assert {max(lesson["lengths"]) for lesson in one.lessons} == {one.former.places} == {20}
    assert (free.lessons, free.former.places) == (one.lessons, 20)
    assert (one.former.inputs, free.former.inputs) == ("features", "free")
    assert one.former == replace(recipes.recipe("r2ag-mixed").former, places=20)


# Over the paper's own reader, with lists and steps of their own, which all three share.
LLAMA = ("r2ag-llama2-7b", "r2ag-llama2-7b-free", "raft-llama2-7b")


def test_trainings_over_the_papers_reader_share_lists_and_steps():
    head, *others = (recipes.recipe(name) for name in LLAMA)
    assert max(max(lesson["lengths"]) for lesson in head.lessons) == head.former.places
    for one in others:
        assert (one.lessons, one.optimiser, one.base) == (head.lessons, head.optimiser, head.base)
    with pytest.raises(
        recipes.RecipeError, match="--base hub:meta-llama/Llama-2-7b-chat-hf@COMMIT"
    ):
        head.on(None)


# The headline and the control that most of its claims are held against.
COMMITTED = ("r2ag-mixed", "r2ag-mixed-free")
FREE = {"inputs": "free", "qdm": 0, "head_start": 0}
OTHERS = {
    "half": ({"questions": 90}, {}),
    "eighth": ({"questions": 22}, {}),
    "minilm-l3": ({"retriever": "minilm-l3"}, {"encoder": "minilm-l3"}),
    "lsa": ({"retriever": "lsa"}, {"encoder": "lsa"}),
    "bm25": ({"retriever": "bm25"}, {"inputs": "scores", "columns": ("relevance",)}),
    "bm25-free": ({"retriever": "bm25"}, FREE),
}


def test_positions_start_small_but_where_that_is_tried():
    known = recipes.recipes()
    head, one = known["r2ag-mixed"], known["r2ag-mixed-loud"]
    told = {"name": one.name, "about": one.about, "seeds": (0,), "local": True}
    assert one == replace(head, **told, former=replace(head.former, position_start=1.0))


def test_joint_and_separate_match_the_lists_as_often():
    known = recipes.recipes()
    joint, apart = known["r2ag-mixed"], known["r2ag-mixed-separate"]
    assert apart.former.head_start == joint.former.head_start + joint.optimiser.epochs


@pytest.mark.parametrize("name", OTHERS)
def test_recipes_of_other_lists_differ_in_nothing_else(name):
    known = recipes.recipes()
    head, one = known["r2ag-mixed"], known[f"r2ag-mixed-{name}"]
    lists, former = OTHERS[name]
    wanted = replace(
        head,
        name=one.name,
        about=one.about,
        lessons=tuple({**lesson, **lists} for lesson in head.lessons),
        former=replace(head.former, **former),
        seeds=(0,),
        local=True,
    )
    assert one == wanted
    assert all(lists.get("questions", 0) < lesson["questions"] for lesson in head.lessons)


def test_a_larger_reader_differs_in_nothing_else():
    known = recipes.recipes()
    head, one = known["r2ag-mixed"], known["r2ag-mixed-gemma3"]
    kept = {"name": one.name, "about": one.about, "base": one.base, "seeds": (0,), "local": True}
    # It has no chat template: the same words without a chat's turns.
    plain = replace(head.former, prompt="r2ag_plain")
    assert one == replace(head, former=plain, **kept)
    assert one.base == "gemma3-270m"


def test_longer_trainings_share_lists_and_steps():
    known = recipes.recipes()
    head, one = known["r2ag-mixed"], known["r2ag-mixed-long"]
    assert one.former == head.former
    for control in ("free", "shuffled"):
        long = known[f"r2ag-mixed-{control}-long"]
        assert long.former == known[f"r2ag-mixed-{control}"].former
        assert (one.lessons, one.optimiser) == (long.lessons, long.optimiser)
    assert one.optimiser == replace(head.optimiser, epochs=2)
    assert sum(lesson["questions"] for lesson in one.lessons) == 600


def test_before_the_reader_that_reasons_only_the_features_are_the_control_s():
    known = recipes.recipes()
    head, free = known["r2ag-reasoning"], known["r2ag-reasoning-free"]
    assert head.base == "testbed-reader"
    assert head.former == replace(known["r2ag-mixed"].former, prompt="drrag_informed")
    kept = {"name": free.name, "about": free.about, "former": free.former, "local": True}
    assert free == replace(head, **kept)
    assert free.former == replace(known["r2ag-mixed-free"].former, prompt="drrag_informed")


def test_lists_by_bm25_and_its_scores(recipe):
    """What the former is told is by the retriever that ranks, without an encoder."""
    scored = told(recipe, inputs="scores", columns=("relevance",))
    workshop = Workshop()
    bm25 = workshop.retriever("bm25", Corpus("six", PASSAGES))
    for question, hits, rows in lists_of(scored, retriever="bm25"):
        ids = [h.passage.id for h in hits]
        [found] = bm25.search([question.text], 3, within=[ids])
        assert [h.passage.id for h in found] == ids
        scores = np.array([[h.score] for h in found], dtype=np.float32)
        np.testing.assert_allclose(rows, scores / scores[0], rtol=1e-6)
    assert r2ag.sizes_of(scored.former, 48)[1]["n_features"] == 1


def test_features_by_an_encoder_of_the_corpus(recipe):
    lsa = told(recipe, encoder="lsa")
    workshop = Workshop()
    encoder = workshop.encoder_over("lsa", Corpus("six", PASSAGES))
    for question, hits, rows in lists_of(lsa, retriever="lsa"):
        texts = [question.text, *(f"{p.title} {p.text}" for p in passages(hits))]
        vectors = encoder.encode(texts)
        np.testing.assert_allclose(rows, features(vectors[0], vectors[1:]), atol=1e-6)
        assert rows[:, 0] == pytest.approx([h.score for h in hits], abs=1e-5)
