"""YAML that would fill the memory, as whoever sends a registry could write it."""

import pytest

from rag_repro.plain import PlainError, from_yaml


def test_merge_keys_that_would_fill_the_memory():
    """Ten merges of ten merges of ...: a few lines that stand for 10^9 values."""
    lines = ["a0: &a0 {x: 1, y: 2}"]
    for n in range(1, 10):
        lines.append(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}")
    with pytest.raises(PlainError, match="more than 200,000 values by merge keys"):
        from_yaml("\n".join(lines))
    assert from_yaml("\n".join(lines[:3]))["a2"] == {"x": 1, "y": 2}
    lists = [lines[0], *(line.replace("{<<: ", "").replace("}", "") for line in lines[1:])]
    with pytest.raises(PlainError, match="aliases written out"):
        from_yaml("\n".join(lists))
    with pytest.raises(PlainError, match="nested too deeply"):
        from_yaml("a: &a {<<: *a, b: 1}")


def test_a_long_file_of_yaml():
    with pytest.raises(PlainError, match="more than 4,000,000 characters"):
        from_yaml("a: " + "b" * 4_000_000)
