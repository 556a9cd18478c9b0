"""Every chapter, executed twice: with its defaults, and with other parameters.

What is hard-coded survives the first run and fails in the second. A chapter
states its second run in chapters.yaml, and what its page must show of it.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import yaml

from rag_repro.publish.check import check
from rag_repro.publish.execute import execute
from rag_repro.publish.parameters import parameters
from rag_repro.publish.places import Places

PLACES = Places(Path(__file__).resolve().parents[2])
SECOND = yaml.safe_load(Path(__file__).with_name("chapters.yaml").read_text(encoding="utf-8"))


def test_every_chapter_has_a_second_run_that_changes_a_parameter():
    assert sorted(SECOND) == PLACES.names()
    for name, run in SECOND.items():
        assert set(run) == {"parameters", "shows"}, name
        declared = parameters(name, PLACES)
        assert run["parameters"], name
        for key, value in run["parameters"].items():
            assert value != declared[key].default, f"{name}: {key} is not changed"


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES.names())
def test_a_chapter_runs_with_its_defaults(name, tmp_path):
    out = execute(name, places=PLACES, out=tmp_path / f"{name}.ipynb")
    assert check(out, PLACES) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES.names())
def test_a_chapter_runs_with_other_parameters_and_shows_them(name, tmp_path):
    run = SECOND[name]
    out = execute(name, run["parameters"], places=PLACES, out=tmp_path / f"{name}.ipynb")
    assert check(out, PLACES) == []
    shown = _shown(out)
    for text in run["shows"]:
        assert text in shown, f"{name} does not show {text!r}"


def _shown(path: Path) -> str:
    outputs = (o for c in nbformat.read(path, as_version=4).cells for o in c.get("outputs", []))
    texts = []
    for output in outputs:
        texts.append(output.get("text", ""))
        texts += [v for v in output.get("data", {}).values() if isinstance(v, str)]
    return "\n".join(texts)
