"""The benchmark of the bootstrap, run tiny: both sides draw alike; never how fast."""

from __future__ import annotations

import json

import numpy as np

from benchmarks import bootstrap

FEW = ["--questions", "30", "--means", "4", "--repeats", "1"]


def test_it_ends_in_one_line_of_json_and_draws_alike(capsys):
    bootstrap.main([*FEW, "--json"])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["equal_draws"] is True
    assert (told["questions"], told["means"], told["repeats"]) == (30, 4, 1)
    assert set(told["sides"]) == {bootstrap.KEPT, bootstrap.ANEW}
    assert told["ratio"] > 0


def test_a_side_that_draws_otherwise_is_told(capsys, monkeypatch):
    plain = bootstrap._plain
    monkeypatch.setattr(bootstrap, "_plain", lambda row: plain(row) + 1e-6)
    bootstrap.main([*FEW, "--json"])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["equal_draws"] is False


def test_scores_are_of_both_kinds():
    whole, between = bootstrap.drawn_scores(2, 50)
    assert set(np.unique(whole)) == {0.0, 1.0}
    assert len(np.unique(between)) == 50
