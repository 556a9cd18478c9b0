"""YAML that would fill the memory, as whoever sends a registry could write it."""

import pytest

from rag_repro.plain import PlainError, from_yaml


def test_aliases_that_would_fill_the_memory():
    """Ten times ten times ...: a few lines that stand for 10^9 values."""
    lines = ["a0: &a0 {x: 1, y: 2}"]
    for n in range(1, 10):
        lines.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]")
    with pytest.raises(PlainError, match="aliases written out"):
        from_yaml("\n".join(lines))
