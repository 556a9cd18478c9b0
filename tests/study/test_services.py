"""The workshop: what conditions name is made once, and its fingerprint tells it apart."""

from __future__ import annotations

import dataclasses

import pytest
import yaml

from rag_repro import data
from rag_repro.data.dataset import Corpus
from rag_repro.schema import Passage
from rag_repro.study import papers, services
from rag_repro.study.conditions import Condition
from rag_repro.study.services import UnknownService, Workshop

from .scripted import DATASET

CONDITION = Condition("little", "single_step", {"k": 2}, retriever="bm25")


@pytest.fixture
def asked(monkeypatch):
    """Data sets come from here; what was asked for is listed."""
    asked = []

    def load(name, *, data_dir=None, split=None):
        asked.append((name, data_dir, split))
        return DATASET

    monkeypatch.setattr(data, "load", load)
    return asked


def test_each_thing_is_made_once_and_shared(asked, tmp_path):
    workshop = Workshop(data_dir=tmp_path)
    first = workshop.services(CONDITION)
    assert first.keys() == {"retriever"}
    again = workshop.services(dataclasses.replace(CONDITION, method="qdc"))
    assert again["retriever"] is first["retriever"]
    assert asked == [("little", tmp_path, "test")]
    assert workshop.dataset("little", "test") is DATASET
    assert Workshop().services(CONDITION)["retriever"] is not first["retriever"]


def test_splits_of_a_data_set_share_the_index(asked):
    workshop = Workshop()
    tune = workshop.services(dataclasses.replace(CONDITION, split="tune"))
    assert tune["retriever"] is workshop.services(CONDITION)["retriever"]
    assert [split for _, _, split in asked] == ["tune", "test"]


def test_the_retriever_searches_the_conditions_corpus(asked):
    [hits] = Workshop().services(CONDITION)["retriever"].search(["secret 3"], 2)
    assert hits[0].passage.id == "p3"


def test_what_a_method_needs_besides_is_served_and_enters_the_fingerprint(asked):
    control = dataclasses.replace(CONDITION, method="two_stage", settings={"second": "random"})
    services = Workshop().services(control)
    assert services.keys() == {"retriever", "random"}
    assert services["random"].search(["q"], 1)[0][0].passage in DATASET.corpus.passages
    assert "random" in Workshop().fingerprint(control)
    without = dataclasses.replace(control, settings={})
    assert Workshop().services(without).keys() == {"retriever"}


def test_without_a_retriever_or_reader_there_is_no_service(asked):
    assert Workshop().services(dataclasses.replace(CONDITION, retriever=None)) == {}


def test_the_reader_is_made_once_and_named_in_the_fingerprint(asked, monkeypatch):
    class Reader:
        fingerprint = "reader-1"

    made = []
    monkeypatch.setattr(Workshop, "reader", lambda self, name: made.append(name) or Reader())
    read = dataclasses.replace(CONDITION, reader="tiny")
    assert Workshop().services(read).keys() == {"retriever", "reader"}
    assert Workshop().fingerprint(read)["reader"] == "reader-1"
    assert set(made) == {"tiny"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm52", r"no retriever 'bm52', did you mean 'bm25'\?; there are: .*minilm"),
        ("x", "there are"),
    ],
)
def test_an_unknown_retriever_is_refused_with_the_nearest(asked, name, message):
    with pytest.raises(UnknownService, match=message):
        Workshop().services(dataclasses.replace(CONDITION, retriever=name))


def test_further_retrievers_can_be_named(asked):
    workshop = Workshop(retrievers={"mine": {"kind": "bm25", "k1": 0.9}})
    mine = workshop.services(dataclasses.replace(CONDITION, retriever="mine"))["retriever"]
    assert mine.fingerprint != workshop.services(CONDITION)["retriever"].fingerprint


def test_the_fingerprint_tells_corpora_and_settings_apart(asked, monkeypatch):
    told = Workshop().fingerprint(CONDITION)
    assert (told["corpus"], told["passages"]) == (DATASET.corpus.sha256, 6)
    assert told == Workshop().fingerprint(CONDITION)
    robertson = dataclasses.replace(CONDITION, retriever="bm25-robertson")
    assert Workshop().fingerprint(robertson)["retriever"] != told["retriever"]

    first = dataclasses.replace(DATASET.corpus.passages[0], text="secret text zero")
    corpus = Corpus("little", (first, *DATASET.corpus.passages[1:]))
    changed = dataclasses.replace(DATASET, corpus=corpus)
    monkeypatch.setattr(data, "load", lambda name, *, data_dir, split: changed)
    other = Workshop().fingerprint(CONDITION)
    assert other["corpus"] != told["corpus"]
    assert other["retriever"] != told["retriever"]


def test_two_corpora_have_two_indexes():
    workshop = Workshop()
    other = Corpus("other", (Passage("z", "Z", "another text"),))
    retrievers = [workshop.retriever("bm25", c) for c in (DATASET.corpus, other, DATASET.corpus)]
    assert retrievers[0] is retrievers[2]
    assert retrievers[1].search(["text"], 1)[0][0].passage.id == "z"


def test_every_retriever_that_a_paper_names_is_known():
    known = yaml.safe_load(services.RETRIEVERS.read_text(encoding="utf-8"))
    named = {
        row.retriever
        for name in papers.names()
        for exhibit in papers.load(name).exhibits.values()
        for row in exhibit.methods.values()
        if row.retriever
    }
    assert named <= set(known)


@pytest.mark.parametrize("name", ["bm25-stemmed", "bm25-text-only", "rank-bm25", "bm25-all-words"])
def test_listed_retrievers_can_be_built(name):
    [hits] = Workshop().retriever(name, DATASET.corpus).search(["secret 3"], 1)
    assert len(hits) == 1


def test_other_gold_or_answers_over_the_same_corpus_change_the_fingerprint():
    from dataclasses import replace

    from rag_repro import data

    plain = data.load("world-B@1000", split="test").first(3)
    first, *rest = plain.questions
    for change in ({"answers": ("x",)}, {"gold": first.gold[:1]}, {"cluster": "y"}, {"kind": "z"}):
        other = replace(plain, questions=(replace(first, **change), *rest))
        if other.questions != plain.questions:
            assert other.questions_sha256 != plain.questions_sha256, change
    assert replace(plain).questions_sha256 == plain.questions_sha256


def test_a_method_that_needs_a_classifier_gets_the_trained_one(tmp_path, monkeypatch):
    from rag_repro.lm import hub
    from rag_repro.lm.pairs import PairClassifier
    from rag_repro.study.conditions import Condition
    from tests.lm.test_pairs import trained

    trained("bert", tmp_path)
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "c").rename(tmp_path / "artifacts" / "drrag-classifier")
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    monkeypatch.setenv(hub.CACHE_VARIABLE, str(tmp_path / "cache"))
    condition = Condition("world-B@1000", "cfs", {"k": 3}, retriever="bm25")
    workshop = Workshop()
    scorer = workshop.services(condition)["drrag-classifier"]
    assert isinstance(scorer.scorer, PairClassifier)
    assert workshop.fingerprint(condition)["drrag-classifier"] == scorer.fingerprint
