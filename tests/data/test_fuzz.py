"""Data files, split files and cards that somebody spoilt: used, or refused by name."""

from __future__ import annotations

import gzip
import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_repro.data import public
from rag_repro.lm import hub
from rag_repro.lm.hub import Weights
from rag_repro.retrieval import BM25, Dense, RetrievalError
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.schema.errors import WeightsError
from tests.data.test_public_errors import row
from tests.data.test_public_formats import OFFICIAL
from tests.fuzzing import changed, modest, refused_by_name, spoilt, text_of

FILES = {
    "hotpotqa": "hotpot_dev_distractor_v1.json",
    "2wikimultihopqa": "2wikimultihopqa/dev.json",
    "musique": "musique_ans_v1.0_dev.jsonl",
    "nq": "nq-open-oracle.jsonl",
    "popqa": "popQA.tsv",
    "ambignq": "dev_light.json",
    "strategyqa": "strategyqa_train.json",
    "iirc": "iirc/dev.json",
    "dureader": "dureader.jsonl",
}
BESIDE = {
    "2wikimultihopqa": "2wikimultihopqa/id_aliases.json",
    "strategyqa": "strategyqa_train_paragraphs.json",
    "iirc": "iirc/context_articles.json",
}
CASES = [*FILES.items(), *BESIDE.items()]


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL)


def plain(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def rewritten(draw, data: bytes) -> bytes:
    """The same JSON (Lines) with some values changed, then perhaps its bytes."""
    try:
        whole = [json.loads(data)]
    except ValueError:
        try:
            whole = [json.loads(line) for line in data.splitlines()]
        except ValueError:  # a table
            return draw(spoilt(data))
    made = draw(changed(whole))
    data = "\n".join(map(text_of, made if isinstance(made, list) else [made])).encode()
    return draw(spoilt(data) | st.just(data))


@modest
@given(st.data())
@pytest.mark.parametrize(("name", "file"), CASES)
def test_official_files(tmp_path_factory, name, file, data):
    folder = tmp_path_factory.mktemp("d")
    for other in (FILES[name], BESIDE.get(name)):
        if other:
            (folder / other).parent.mkdir(exist_ok=True)
            shutil.copy(OFFICIAL / other, folder / other)
    path = folder / file
    content = rewritten(data.draw, plain(path))
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
        content = data.draw(spoilt(content) | st.just(content))
    path.write_bytes(content)

    def load():
        made = public.load(name, folder)
        assert made.questions_sha256
        assert made.corpus.sha256

    refused_by_name(load, public.DataError, folder)
    assert path.read_bytes() == content
    shutil.rmtree(folder)


CORPUS = [{"id": "p1", "title": "Quay 1", "text": "Quay 1 is at Orvane."}]
META = {
    "gold_titles": ["Orvane"],
    "evidences": [["Quay", "at", "Orvane"]],
    "annotations": [{"type": "multipleQAs", "qaPairs": [{"question": "Q?", "answer": ["a"]}]}],
    "question_decomposition": [{"question": "Q #1?", "answer": "a", "paragraph_support_idx": 0}],
}


@modest
@given(st.data())
@pytest.mark.parametrize("file", ["musique.jsonl.gz", "iirc.jsonl.gz", "popqa.corpus.jsonl.gz"])
def test_files_of_the_project(tmp_path_factory, file, data):
    folder, name = tmp_path_factory.mktemp("d"), file.split(".")[0]
    rows = {file: [row(1, meta=META), row(2)]}
    corpus = public.source(name).corpus
    if corpus:
        rows = {f"{name}.jsonl.gz": [row(1), row(2)], corpus: CORPUS}
    for one, values in rows.items():
        content = "".join(json.dumps(value) + "\n" for value in values).encode()
        if one == file or corpus:
            content = rewritten(data.draw, content)
        content = gzip.compress(content, mtime=0)
        (folder / one).write_bytes(data.draw(spoilt(content) | st.just(content)))
    refused_by_name(
        lambda: public.load(name, folder), public.DataError, *(folder / f for f in rows)
    )
    shutil.rmtree(folder)


class Letters:
    fingerprint = "letters-1"

    def encode(self, texts):
        return np.ones((len(texts), 2), dtype=np.float32) / np.float32(2) ** 0.5


SMALL = Corpus("small", (Passage("p0", "", "a harbour"), Passage("p1", "", "a quay")))


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("indexes")
    return [BM25(SMALL).save(folder / "bm25"), Dense(SMALL, Letters()).save(folder / "dense")]


@modest
@given(st.data())
@pytest.mark.parametrize("which", [0, 1])
def test_stored_indexes(indexes, tmp_path_factory, which, data):
    folder = tmp_path_factory.mktemp("i") / "index"
    shutil.copytree(indexes[which], folder)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    path = data.draw(st.sampled_from([folder / "card.json", *files]))
    content = path.read_bytes()
    if path.name == "card.json" and data.draw(st.booleans()):
        content = text_of(data.draw(changed(json.loads(content)))).encode()
    else:
        content = data.draw(spoilt(content))
    path.write_bytes(content)
    read = (lambda: BM25(SMALL).save(folder), lambda: Dense(SMALL, Letters(), folder=folder))
    refused = refused_by_name(read[which], RetrievalError, folder, "retriever")
    if path.name != "card.json" and content != (indexes[which] / path.name).read_bytes():
        assert refused
    shutil.rmtree(folder)


@modest
@given(st.data())
def test_adapter_cards(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("a")
    weights = Weights("base", folder, "safetensors", "ab" * 32, "here", "none", "a note")
    hub.write_card(folder, weights, {"steps": 3})
    path = folder / hub.CARD
    content = text_of(data.draw(changed(json.loads(path.read_text())))).encode()
    path.write_bytes(data.draw(spoilt(content) | st.just(content)))
    refused_by_name(
        lambda: hub.check_base(hub.card_of(folder), weights, folder), WeightsError, folder
    )
    shutil.rmtree(folder)
