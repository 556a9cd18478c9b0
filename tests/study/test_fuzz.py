"""Spoilt records, manifests, papers, conditions, chapters: used, or refused by name."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rag_repro.book_folders import BookFolders
from rag_repro.publish import notebook_pairs, parameters
from rag_repro.study import lines as form
from rag_repro.study import manifests, papers, records
from rag_repro.study.conditions import Condition
from rag_repro.study.papers import StudyError
from rag_repro.study.records import RecordError, open_record
from tests import fuzzing
from tests.fuzzing import BOMBS, changed, modest, refused_by_name, spoilt, text_of
from tests.publish.conftest import CHAPTER
from tests.study import mini

CONDITION = Condition("world-B", "qdc", {"k": 4}, retriever="minilm")
LINE = {
    **{"id": "q1", "kind": "bridge", "hops": 2, "cluster": "c", "hits": ["p1", "p2"]},
    **{"gold": [["static", 1, 1], [None, None, None]], "scores": {"em": 0.0, "recall": 0.5}},
    **{"cost": {"reader_calls": 1}, "text": "né", "prediction": None},
}


@pytest.fixture(scope="module")
def record(tmp_path_factory) -> list:
    """A record's header and lines."""
    root = tmp_path_factory.mktemp("record")
    with open_record(root, CONDITION, {"corpus": "c0ffee"}) as writer:
        for name in ("q1", "q2", "q3"):
            writer.append({**LINE, "id": name})
    content = records.find(root, CONDITION).read_bytes()
    return [json.loads(line) for line in content.splitlines()]


def used(root, path):
    """What the package does with a record: read it, and go on with it."""
    held = path.read_bytes()
    refused = refused_by_name(lambda: records.load(root, CONDITION), RecordError, path)
    if not refused:
        record = records.load(root, CONDITION)
        assert record is None or all(line["cluster"] for line in record.lines if line["cluster"])
    again = refused_by_name(lambda: _continued(root), RecordError, path)
    if again:
        assert path.read_bytes() == held  # not touched
    assert again or not refused
    return not again


def _continued(root):
    with open_record(root, CONDITION, {"corpus": "c0ffee"}) as writer:
        writer.append({**LINE, "id": "one more"})


@modest
@given(st.data())
def test_records(tmp_path_factory, record, data):
    root = tmp_path_factory.mktemp("r")
    path = root / (CONDITION.path + form.ENDING)
    path.parent.mkdir(parents=True)
    rows = data.draw(changed(record) | st.just(record))
    content = "".join(text_of(row) + "\n" for row in rows if rows).encode() if rows else b""
    content = data.draw(spoilt(content) | st.just(content))
    path.write_bytes(content)
    if used(root, path):
        assert "one more" in records.load(root, CONDITION).by_question
    assert not list(root.rglob("*.part"))
    shutil.rmtree(root)


@modest
@given(st.data())
def test_manifests(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("m")
    path = root / (CONDITION.path + form.MANIFEST)
    path.parent.mkdir()
    entries = [{"start": "2026", "questions": 3, "packages": {"numpy": "2"}, "end": "2026"}]
    content = text_of(data.draw(changed(entries))).encode()
    content = data.draw(spoilt(content) | st.just(content))
    path.write_bytes(content)
    refused = refused_by_name(lambda: manifests.read(root, CONDITION), RecordError, path)

    def run():
        with manifests.written(root, CONDITION) as entry:
            entry.answered()

    assert refused_by_name(run, RecordError, path) == refused
    if refused:
        assert path.read_bytes() == content
    else:
        assert manifests.read(root, CONDITION)[-1]["questions"] == 1
    shutil.rmtree(root)


CONTRAST = """
- {metric: recall, more: {method: qdc}, less: {method: sm}, where: {k: [3, 4]}, delta: 2.0}
"""


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    mini.paper(folder, CONTRAST)
    return folder / "mini"


def read_paper(folder):
    made = papers.read(folder)
    for key, exhibit in made.exhibits.items():
        exhibit.cells()
        made.printed(key)
    return made


def copied(paper, tmp_path_factory, name, content):
    folder = tmp_path_factory.mktemp("p") / "mini"
    shutil.copytree(paper, folder)
    (folder / name).write_bytes(content)
    return folder


@modest
@given(st.data())
@pytest.mark.parametrize("name", ["paper.yaml", "claims.yaml", "table1.csv"])
def test_papers(tmp_path_factory, paper, name, data):
    content = (paper / name).read_bytes()
    if name.endswith("yaml") and data.draw(st.booleans()):
        text = yaml.safe_dump(data.draw(changed(yaml.safe_load(content))), allow_unicode=True)
        content = text.encode("utf-8", "surrogatepass")
    else:
        content = data.draw(spoilt(content))
    folder = copied(paper, tmp_path_factory, name, content)
    refused_by_name(lambda: read_paper(folder), StudyError, name, "mini/claims.yaml")
    assert (folder / name).read_bytes() == content
    shutil.rmtree(folder.parent)


@pytest.mark.parametrize("text", BOMBS)
@pytest.mark.parametrize("name", ["paper.yaml", "claims.yaml"])
def test_yaml_bombs_are_refused_by_name_and_soon(tmp_path_factory, paper, name, text):
    folder = copied(paper, tmp_path_factory, name, text.encode())
    assert refused_by_name(lambda: read_paper(folder), StudyError, name)


@pytest.mark.parametrize("name", ["paper.yaml", "claims.yaml"])
def test_a_key_given_twice_is_refused(tmp_path_factory, paper, name):
    text = (paper / name).read_text()
    place = text.index("place:")
    end = text.index("\n", place) + 1
    start = text.rindex("\n", 0, place) + 1
    folder = copied(
        paper, tmp_path_factory, name, (text[:end] + text[start:end] + text[end:]).encode()
    )
    with pytest.raises(StudyError, match=rf"{name}: .*the key 'place' is given twice, line \d+"):
        read_paper(folder)


@modest
@given(st.data())
def test_conditions(data):
    plain = {
        **{"dataset": "world-B", "method": "qdc", "settings": {"k": 4, "prompt": "short"}},
        **{"retriever": "bm25", "reader": "smollm2-135m", "split": "test", "seed": 0},
    }
    wanted = data.draw(changed(plain))
    if not isinstance(wanted, dict) or not set(wanted) <= set(plain) or not wanted.get("dataset"):
        return
    if "method" not in wanted:
        return

    def make():
        condition = Condition(**wanted)
        assert condition.hash in condition.path

    refused_by_name(make, ValueError, "")


@modest
@given(st.data())
def test_chapters(tmp_path_factory, data):
    places = BookFolders(tmp_path_factory.mktemp("book"))
    places.notebooks.mkdir()
    path = places.notebooks / "05_small.py"
    path.write_bytes(data.draw(spoilt(CHAPTER.encode())))
    refused_by_name(lambda: notebook_pairs.read_source(path), ValueError, path.name)
    refused_by_name(lambda: parameters.parameters("05_small", places), ValueError, path.name)
    shutil.rmtree(places.root)


def test_the_number_of_examples_can_be_raised():
    assert fuzzing.modest.max_examples >= 50
