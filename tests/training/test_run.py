"""A recipe on a tiny base: cost, training, card, and the adapter as a reader by name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from rag_repro import cli
from rag_repro.lm import hub, load
from rag_repro.lm.local import LocalReader
from rag_repro.schema import Generate, Prompt
from rag_repro.schema.errors import ReaderError, WeightsError
from rag_repro.training import recipes, run
from rag_repro.training.recipes import Lora, Optimiser, Recipe
from tests.lm import tiny

RECIPE = Recipe(
    name="tiny-reader",
    about="for this test",
    task="reader",
    base="set by the fixture",
    lessons=(
        {"kind": "statements", "world": "B", "questions": 3, "exposures": 4},
        {"kind": "closed_book", "world": "A", "split": "train", "questions": 60,
         "forms": ["cot"], "exposures": 3},
    ),
    lora=Lora(rank=2),
    optimiser=Optimiser(batch_tokens=2048),
)  # fmt: skip


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A tiny model in a folder, and an empty folder of artifacts."""
    folder = tmp_path / "base"
    made = tiny.loaded("llama", max_position_embeddings=2048)
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    return str(folder)


def test_from_recipe_to_reader_by_name(base, tmp_path):
    prepared = run.prepare(replace(RECIPE, base=base), seed=5)
    assert "statements:B" in prepared.cost()
    assert prepared.held_out
    assert all(not e.source.startswith("statements") for e in prepared.held_out)
    # Three exposures of each question: kept out together, or the loss would be of what is known.
    learned = {e.tokens[: -e.n_target] for e in prepared.plan.examples}
    assert len(prepared.held_out) % 3 == 0
    assert not learned & {e.tokens[: -e.n_target] for e in prepared.held_out}
    folder = run.folder_of(prepared.recipe, 0)
    assert not run.is_made(prepared, folder)
    run.train(prepared, folder)
    assert run.is_made(prepared, folder)
    again = run.prepare(replace(RECIPE, base=base), seed=6)
    assert not run.is_made(again, folder)
    card = json.loads((folder / "card.json").read_text())
    assert (card["seed"], card["device"]) == (5, "cpu")
    assert card["lessons"]["statements:B"] == sum(
        e.source == "statements:B" for e in prepared.plan.examples
    )
    assert card["steps"] == len(prepared.plan.steps())

    weights = hub.resolve("tiny-reader")
    assert weights.kind == "adapter"
    reader = LocalReader(weights)
    plain = LocalReader(hub.resolve(base))
    plain.model.load_adapter(str(folder), adapter_name="x")
    ask = Prompt.from_segments("Question: who?\nAnswer:")
    merged = reader.generate([Generate(ask, 6)])[0]
    beside = plain.generate([Generate(ask, 6)])[0]
    assert merged.tokens == beside.tokens
    assert reader.fingerprint != LocalReader(hub.resolve(base)).fingerprint


def test_a_run_that_was_cut_before_its_card_goes_on_from_its_state(base, monkeypatch):
    monkeypatch.setattr("rag_repro.training.fit.SAVE_EVERY", 0.0)
    recipe = replace(RECIPE, base=base)
    prepared = run.prepare(recipe, 0)
    folder = run.folder_of(recipe, 0)

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_card", _full)
        with pytest.raises(OSError, match="No space"):
            run.train(prepared, folder)
    assert not run.is_made(prepared, folder)

    def learn(*given):
        raise AssertionError("nothing was left to learn")

    again = run.prepare(recipe, 0)
    run.train(replace(again, objective=learn), folder)
    assert run.is_made(again, folder)
    assert not (folder / "state").exists()


def test_a_recipes_words_and_further_seeds_make_no_other_weights(base, monkeypatch):
    """Neither a finished training nor one that was cut is thrown away for them."""
    monkeypatch.setattr("rag_repro.training.fit.SAVE_EVERY", 0.0)
    recipe = replace(RECIPE, base=base)
    folder = run.folder_of(recipe, 0)
    with monkeypatch.context() as patch:
        patch.setattr(run, "write_card", _full)
        with pytest.raises(OSError, match="No space"):
            run.train(run.prepare(recipe, 0), folder)
    mended = run.prepare(replace(recipe, about="without the misprint", seeds=(0, 1, 2, 3)), 0)
    run.train(mended, folder)
    assert run.is_made(run.prepare(recipe, 0), folder)
    card = json.loads((folder / "card.json").read_text())
    assert card["recipe"]["about"] == "without the misprint"
    other = run.prepare(replace(recipe, lora=Lora(rank=4)), 0)
    assert not run.is_made(other, folder)


def _full(*given):
    raise OSError("No space left on device")


def test_a_card_names_the_code_that_its_run_began_with(base, monkeypatch):
    now, fit = {"commit": "before"}, run.fit

    def commit_meanwhile(*given, **options):
        fit(*given, **options)
        now["commit"] = "after"

    monkeypatch.setattr(run, "environment", lambda: dict(now))
    monkeypatch.setattr(run, "fit", commit_meanwhile)
    recipe = replace(RECIPE, base=base)
    folder = run.train(run.prepare(recipe, 0), run.folder_of(recipe, 0))
    assert json.loads((folder / "card.json").read_text())["made_on"]["commit"] == "before"


def test_an_adapter_of_another_base_is_refused(base, tmp_path):
    prepared = run.prepare(replace(RECIPE, base=base), seed=0)
    folder = run.train(prepared, run.folder_of(prepared.recipe, 0))
    card = json.loads((folder / "card.json").read_text())
    card["base"]["sha256"] = "0" * 64
    (folder / "card.json").write_text(json.dumps(card))
    with pytest.raises(WeightsError, match="made for base"):
        hub.resolve("tiny-reader")
    (folder / "card.json").write_text(json.dumps({"base": {"sha256": "0"}}))
    with pytest.raises(WeightsError, match=r"card\.json"):
        hub.resolve("tiny-reader")


def test_four_bits_and_a_merged_adapter_exclude_each_other(base):
    prepared = run.prepare(replace(RECIPE, base=base), seed=0)
    run.train(prepared, run.folder_of(prepared.recipe, 0))
    with pytest.raises(ReaderError, match="four-bit"):
        load.load(hub.resolve("tiny-reader"), dtype="nf4")


def test_a_base_of_four_bits_learns_after_it_was_looked_at(base):
    """bitsandbytes packs weights at the first reading, and no gradient passed them then."""
    pytest.importorskip("bitsandbytes", reason="four bits need the extra gpu")
    recipe = replace(RECIPE, base=base, dtype="nf4")
    prepared = run.prepare(recipe, seed=0)
    folder = run.train(prepared, run.folder_of(recipe, 0))
    looked = [row["held_out"] for row in run.read_curve(folder) if "held_out" in row]
    assert len(looked) > 2
    assert looked[0] != looked[1] != looked[2]
    assert json.loads((folder / "card.json").read_text())["recipe"]["dtype"] == "nf4"


def test_cards_from_before_there_were_dtypes_hold_still():
    assert "dtype" not in RECIPE.facts


@pytest.mark.parametrize(("seed", "kept"), [(0, False), (1, True)])
def test_card_and_curve_are_kept_where_weights_are_not_committed(seed, kept, base):
    prepared = run.prepare(replace(RECIPE, base=base, lessons=RECIPE.lessons[:1]), seed=seed)
    folder = run.train(prepared, run.folder_of(prepared.recipe, seed))

    beside = hub.cards_folder() / folder.name
    assert sorted(f.name for f in beside.glob("*")) == (
        ["card.json", "curve.jsonl"] if kept else []
    )
    assert all((folder / f.name).read_bytes() == f.read_bytes() for f in beside.glob("*"))


def test_a_misspelt_artifact_or_recipe_is_named(base, capsys):
    prepared = run.prepare(replace(RECIPE, base=base), seed=0)
    run.train(prepared, run.folder_of(prepared.recipe, 0))
    with pytest.raises(WeightsError, match="tiny-reader"):
        hub.resolve("tiny-raeder")
    assert cli.main(["train", "testbed-raeder"]) == 2
    assert "testbed-reader" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cdua", r"no device 'cdua', did you mean 'cuda'\?; there are: auto, cpu, cuda, mps"),
        ("meta", "no device 'meta'; there are"),
        ("cuda:x", "no device 'cuda:x'"),
        ("cpu:1", "no device 'cpu:1'"),
        ("", "no device ''"),
        ("cuda", "sees no CUDA device"),
        ("cuda:1", "sees no CUDA device"),
        ("mps", "sees no Apple GPU"),
    ],
)
def test_a_device_that_is_not_here_is_refused_before_anything_is_made(
    device, message, base, capsys, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(run, "lessons", lambda *_: pytest.fail("lessons were made first"))
    with pytest.raises(ReaderError, match=message):
        run.prepare(replace(RECIPE, base=base), seed=0, device=device)
    assert cli.main(["train", "testbed-reader", "--device", device, "--estimate"]) == 2
    assert "device" in capsys.readouterr().err


def test_a_gpu_beyond_the_last_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    load.device_of("cuda:1")
    with pytest.raises(ReaderError, match=r"'cuda:2' wanted.* last of the 2 .* cuda:1"):
        load.device_of("cuda:2")


@pytest.mark.parametrize(
    ("cuda", "mps", "found"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_is_the_best_device_here(cuda, mps, found, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert load.device_of("auto") == found


@pytest.mark.parametrize("task", ["reader", "pairs", "relevance", "complexity", "similarities"])
def test_every_task_computes_where_it_is_told(task, base, monkeypatch):
    """What loads a model is told the device; nothing is computed."""

    class Told(Exception):
        pass

    def told(weights=None, device="cpu", *_, **__):
        raise Told(device)

    monkeypatch.setattr(run, "device_of", lambda name: name)
    for name in ("load", "sequence_classifier"):
        monkeypatch.setattr(run, name, told)
    monkeypatch.setattr(run, "Workshop", told)
    recipe = replace(recipes.recipe("drrag-classifier-testbed"), task=task, lessons=())
    with pytest.raises(Told, match="cuda:1"):
        run.prepare(recipe, 0, device="cuda:1")
