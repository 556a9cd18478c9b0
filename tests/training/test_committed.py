"""What stands in `artifacts/` is what its cards say, and small enough to be cloned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_repro.lm.hub import sha256_of_folder
from rag_repro.training import recipes

ARTIFACTS = Path(__file__).parents[2] / "artifacts"
CARDS = sorted(ARTIFACTS.glob("*/card.json"))


def test_there_are_artifacts():
    assert CARDS


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_weights_are_those_of_the_card(card):
    told = json.loads(card.read_text("utf-8"))

    seed = f"-{told['seed']}" if told["seed"] else ""  # the first training bears the bare name
    assert told["name"] + seed == card.parent.name
    assert sha256_of_folder(card.parent) == told["weights_sha256"]


@pytest.mark.parametrize(
    "card",
    [card for card in CARDS if (card.parent / "adapter_config.json").exists()],
    ids=lambda card: card.parent.name,
)
def test_an_adapter_is_scaled_as_its_recipe_says(card):
    """A reader's fingerprint is of its weights alone, and peft multiplies them by alpha / r."""
    lora = json.loads(card.read_text("utf-8"))["recipe"]["lora"]
    config = json.loads((card.parent / "adapter_config.json").read_text("utf-8"))

    assert (config["r"], config["lora_alpha"]) == (lora["rank"], lora["alpha"])
    assert not any(config[name] for name in ("use_rslora", "alpha_pattern", "rank_pattern"))


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.parent.name)
def test_the_recipe_is_still_the_one_it_was_trained_by(card):
    told = json.loads(card.read_text("utf-8"))["recipe"]
    known = recipes.recipe(told["name"]).facts
    if told.get("former", {}).get("inputs") == "free":  # which has no positions to begin with
        told["former"].setdefault("position_start", known["former"]["position_start"])

    assert known == told


def test_all_artifacts_are_under_96_megabytes():
    assert sum(f.stat().st_size for f in ARTIFACTS.rglob("*") if f.is_file()) < 96e6
