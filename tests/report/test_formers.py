"""Cards and curves of what was trained for R²AG, written by hand; sizes of the real module."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from rag_repro.lm import hub
from rag_repro.report import formers
from rag_repro.training.recipes import recipe
from tests.report.test_seeds import EXHIBIT

CARD = {
    "base": {"name": "smollm2-135m", "sha256": "0" * 64},
    "lessons": {"train:world-A-10": 400},
    "steps": 200,
    "seconds": 600,
    "numbers": 1_500_000,
    "held_out_loss": {"answer": 1.234, "matching": 0.3, "auc": 0.912},
    "former": {"soft": "r2ag", "kind": "r2", "settings": {}, "parameters": 1_500_000},
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))

    def make(name, curve=(), former=True, **card):
        folder = tmp_path / name
        folder.mkdir()
        if former:
            (folder / hub.FORMER).touch()
        facts = CARD | {"recipe": recipe(re.sub(r"-\d$", "", name)).facts} | card
        (folder / "card.json").write_text(json.dumps(facts))
        (folder / "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in curve))
        return folder

    return make


def test_a_card_says_what_learned_and_what_stayed_as_it_was(made):
    made("r2ag-mixed")
    table = formers.cards(["r2ag-mixed", "r2ag-mixed-free"])
    row = dict(zip(table.head, table.body[0], strict=True))
    assert row["told of a passage"] == "its features"
    assert row["reader"] == "smollm2-135m, frozen"
    assert (row["numbers trained"], row["lists"], row["minutes"]) == ("1,500,000", 400, 10)
    assert (row["held-out loss"], row["head's AUC"]) == ("1.234", "91.2")
    assert str(table.body[1][1]) == "not at hand: `rag-repro train r2ag-mixed-free`"


def test_an_early_card_without_weights_has_its_formers_numbers(made):
    kept = hub.cards_folder() / "r2ag-mixed-shuffled"
    kept.parent.mkdir(parents=True)
    card = json.loads((made("r2ag-mixed-shuffled").rename(kept) / "card.json").read_text())
    del card["numbers"]
    (kept / hub.FORMER).unlink()
    (kept / "card.json").write_text(json.dumps(card))
    table = formers.cards(["r2ag-mixed-shuffled"])
    assert table.body[0][table.head.index("numbers trained")] == "1,500,000"


def test_a_card_says_where_it_was_computed_in_float32(made):
    made("r2ag-mixed", computed_in="bfloat16")
    made("r2ag-mixed-1", computed_in="float32")
    made("r2ag-mixed-2", computed_in="bfloat16 and float32")
    table = formers.cards(["r2ag-mixed", "r2ag-mixed-1", "r2ag-mixed-2"])
    minutes = [row[table.head.index("minutes")] for row in table.body]
    assert [str(one) for one in minutes] == [
        "10",
        "10 (in float32)",
        "10 (in bfloat16 and float32)",
    ]


def test_low_rank_matrices_count_among_what_is_trained(made):
    from safetensors.numpy import save_file

    folder = made("raft-mixed", former=False, held_out_loss={"answer": 1.0})
    card = json.loads((folder / "card.json").read_text())
    del card["former"], card["numbers"]
    (folder / "card.json").write_text(json.dumps(card))
    save_file({"a": np.zeros((16, 10)), "b": np.zeros((3, 16))}, folder / hub.ADAPTER)
    row = dict(zip(*(lambda t: (t.head, t.body[0]))(formers.cards(["raft-mixed"])), strict=True))
    assert row["reader"] == "smollm2-135m, low-rank matrices"
    assert (row["told of a passage"], row["numbers trained"]) == ("no embedding", "208")
    assert (row["held-out loss"], row["head's AUC"]) == ("1.000", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("r2ag-mixed-free", "nothing (learnable tokens)"),
        ("r2ag-mixed-shuffled", "features of other passages"),
        ("r2ag-mixed-no-precedent", "its features, without γ"),
        ("r2ag-mixed-no-qdm", "its features, no matching loss"),
        ("r2ag-mixed-sum", "its features, matching loss summed"),
        ("r2ag-mixed-separate", "its features, matching first, then answers"),
        ("raft-mixed", "no embedding"),
    ],
)
def test_what_stands_before_a_passage_is_said_from_the_recipe(name, said):
    assert formers.told(recipe(name).facts.get("former")) == said


def test_curves_are_of_what_is_watched_of_held_out_lists(made):
    rows = [
        {"step": 1, "loss": 9.0, "tokens": 5},
        {"step": 2, "loss": 8.0, "tokens": 5, "held_out": {"answer": 3.0, "auc": 0.5}},
        {"step": 4, "loss": 7.0, "tokens": 5, "held_out": {"answer": 2.0, "auc": 0.8}},
    ]
    made("r2ag-mixed", rows)
    made("r2ag-mixed-free", [rows[0] | {"held_out": {"answer": 4.0}}])
    names = ["r2ag-mixed", "r2ag-mixed-free", "r2ag-mixed-gold"]
    said = formers.curves(names).alt
    assert "r2ag-mixed: 3.00 at first, 2.00 at the end" in said
    assert "r2ag-mixed-free: 4.00" in said
    assert "free" not in formers.curves(names, "auc").alt
    gone = formers.curves(["r2ag-mixed-gold"])
    assert repr(gone) == "Not at hand: `rag-repro train r2ag-mixed-gold`."


def test_names_are_those_of_trained_rows_once_each():
    assert formers.names(EXHIBIT.cells()) == [
        *("r2ag-mixed", "r2ag-mixed-1", "r2ag-mixed-2"),
        *("r2ag-mixed-free", "r2ag-mixed-free-1", "r2ag-mixed-free-2"),
    ]
    assert formers.names(EXHIBIT.cells(), seed=0) == ["r2ag-mixed", "r2ag-mixed-free"]


def test_a_former_has_the_parameters_of_its_parts():
    table = formers.sizes({"small": 576, "large": 4096})
    small, large = (dict(zip(table.head, row, strict=True)) for row in table.body)
    assert small["features to 256"] == "1,024"  # 3 x 256 and as many biases
    assert small["projection to the reader"] == f"{257 * 576:,}"
    assert large["projection to the reader"] == f"{257 * 4096:,}"
    assert small["matching head"] == "257"
    counts = [int(small[part].replace(",", "")) for part in table.head[2:]]
    assert sum(counts[:-1]) == counts[-1]
