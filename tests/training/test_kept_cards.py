"""Cards of trainings whose weights are not committed: they say what was trained all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_repro.training import recipes

CARDS = sorted((Path(__file__).parents[2] / "results" / "cards").glob("*/card.json"))


def test_there_are_some():
    assert CARDS


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.parent.name)
def test_a_card_names_its_recipe_as_it_stands(path):
    card = json.loads(path.read_text("utf-8"))
    named = card["name"] if card["seed"] == recipes.recipe(card["name"]).seeds[0] else None

    assert path.parent.name in (named, f"{card['name']}-{card['seed']}")
    assert card["recipe"] == recipes.recipe(card["name"]).facts
