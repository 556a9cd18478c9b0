"""Every chapter: its committed run with the defaults, and a run with other parameters.

`make book` executes the defaults wherever anything changed that a chapter reads, and publishes
only what `check` finds no fault with; here the committed copy is checked. What is hard-coded
survives that and fails in the second run, which chapters.yaml states, with what its page must show.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
import yaml

from rag_repro.book_folders import BookFolders
from rag_repro.publish.build import execute
from rag_repro.publish.check import check
from rag_repro.publish.notebook_pairs import run_of
from rag_repro.publish.parameters import parameters

ROOT = Path(__file__).resolve().parents[2]
PLACES = BookFolders(ROOT)
SECOND = yaml.safe_load(Path(__file__).with_name("chapters.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def places(tmp_path):
    """This checkout's chapters over its stored records, where no run leaves anything behind:
    records of other parameters go to a folder of the test's own."""
    for name in ("_toc.yml", "CITATION.cff", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("notebooks", "book/chapters"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "results").mkdir()
    stored = [p.relative_to(ROOT) for p in (ROOT / "results").iterdir() if p.name != "local"]
    for name in (*stored, Path("artifacts")):
        (tmp_path / name).symlink_to(ROOT / name)
    return BookFolders(tmp_path)


def test_every_chapter_has_a_second_run_that_changes_a_parameter():
    assert sorted(SECOND) == PLACES.names()
    for name, run in SECOND.items():
        assert set(run) == {"parameters", "shows"}, name
        declared = parameters(name, PLACES)
        assert run["parameters"], name
        for key, value in run["parameters"].items():
            assert value != declared[key].default, f"{name}: {key} is not changed"


@pytest.mark.parametrize("name", PLACES.names())
def test_the_committed_run_of_a_chapter_has_its_defaults_and_no_fault(name):
    assert run_of(PLACES.executed(name))["parameters"] == {}
    faults = check(PLACES.executed(name), PLACES)
    # `make book` executes it anew where its source changed.
    assert [fault for fault in faults if "is stale: its source changed" not in fault] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES.names())
def test_a_chapter_runs_with_other_parameters_and_shows_them(name, places, monkeypatch):
    run = SECOND[name]
    monkeypatch.chdir(places.root)
    out = execute(name, run["parameters"], places=places)
    assert check(out, places) == []
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
