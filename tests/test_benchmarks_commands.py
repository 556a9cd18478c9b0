"""The benchmark of commands, on one that is quick: what it says is whole; never how fast."""

from __future__ import annotations

import pytest

from benchmarks import commands


def test_each_side_is_measured_in_a_process_of_its_own():
    told = commands.measure({"now": commands.HERE}, {"version": ("--version",)}, 1)
    measured = told["version"]["now"]
    assert set(measured) == set(commands.MEASURED)
    assert measured["cpu"] > 0
    assert measured["mb"] > 10


def test_a_command_that_fails_is_no_measurement():
    with pytest.raises(RuntimeError, match="rag-repro exhibit no-such failed in"):
        commands.once(commands.HERE, ("exhibit", "no-such"))
