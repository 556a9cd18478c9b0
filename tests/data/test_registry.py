"""registry.yaml is read strictly: what is misspelt, missing or of the wrong kind has its place."""

import pytest

from rag_repro.data.public.registry import Official, RegistryError, parse
from rag_repro.plain import PlainError, from_yaml

ONE = """
shared:
  - &set {title: T, paper: P, source: S, licence: L, split: dev}
sets:
  a: {<<: *set, full_size: 3, caveats: [small], official: [{file: a.json, format: nq}]}
  b: {<<: *set, over: a}
"""


def test_a_set_by_its_keys():
    made = parse(ONE, "here")
    assert list(made) == ["a", "b"]
    assert made["a"].full_size == 3
    assert made["a"].caveats == ("small",)
    assert made["a"].official == (Official("a.json", "nq"),)
    assert made["b"].project_file == "b.jsonl.gz"
    assert made["b"].full_size is None
    with pytest.raises(TypeError):
        made["c"] = made["a"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("full_size: 3", "full_sise: 3", "unknown key 'full_sise', did you mean 'full_size'?"),
        ("full_size: 3", "full_size: many", "'full_size' cannot be 'many'"),
        ("caveats: [small]", "caveats: small", "'caveats' cannot be 'small'"),
        ("caveats: [small]", "caveats: [1]", "'caveats' cannot be"),
        ("split: dev", "slit: dev", "unknown key 'slit'"),
        (", split: dev", "", "the key 'split' is missing"),
        ("format: nq", "kind: nq", "here, a, official: unknown key 'kind'"),
        (
            "official: [{file: a.json, format: nq}]",
            "official: a.json",
            "here, a, official: a list is needed",
        ),
        ("{file: a.json, format: nq}", "a.json", "here, a, official: a table is needed"),
        ("over: a", "over: z", "no data set 'z' to search in"),
        ("b: {<<: *set, over: a}", "b: x", "here, b: a table is needed"),
        ("sets:", "set:", "unknown key 'set', did you mean 'sets'?"),
        ("shared:", "common:", "unknown key 'common'"),
        ("  b:", "  a:", "given twice"),
        ("  b:", "  7:", "the key 7 is no name"),
        ("{title", "[title", "not valid YAML"),
    ],
)
def test_what_is_wrong_has_its_place(old, new, words):
    assert old in ONE
    with pytest.raises(RegistryError, match="here") as refused:
        parse(ONE.replace(old, new, 1), "here")
    assert words in str(refused.value)


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
