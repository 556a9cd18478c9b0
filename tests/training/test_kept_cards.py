"""Cards of trainings whose weights are not committed: they say what was trained all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_repro.report import formers, trained
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


def test_pages_show_what_was_trained_without_its_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_ARTIFACTS", str(tmp_path / "artifacts"))
    kept = tmp_path / "results" / "cards" / CARDS[0].parent.name
    kept.mkdir(parents=True)
    (kept / "card.json").write_bytes(CARDS[0].read_bytes())
    card = json.loads(CARDS[0].read_text("utf-8"))

    [row, other] = formers.cards([kept.name, "no-such"]).body

    assert f"{card['numbers']:,}" in row
    assert str(other[1]).startswith("not at hand")
    assert trained.weights(kept.name) is None
