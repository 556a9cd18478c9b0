"""The workshop: what conditions name is made once, and its fingerprint tells it apart."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import yaml

from rag_repro import data
from rag_repro.lm.hub import PACKAGES
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.study import names, papers
from rag_repro.study.conditions import Condition
from rag_repro.study.services import UnknownService, Workshop
from tests.study.scripted import DATASET

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


def test_a_rewriter_is_served_where_nothing_is_searched(asked, monkeypatch):
    monkeypatch.setattr(Workshop, "reader", lambda self, name: name)
    settings = {"search": False, "rewriter": "erm4-rewriter-testbed"}
    made = Condition("little", "erm4", settings, reader="testbed-reader")
    assert Workshop().services(made) == {
        "reader": "testbed-reader",
        "erm4-rewriter-testbed": "erm4-rewriter-testbed",
    }


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
        ("bm52", r"no retriever 'bm52', did you mean 'bm25'\?; there are 28, as bm25, "),
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
    known = yaml.safe_load(names.RETRIEVERS.read_text(encoding="utf-8"))
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
    from rag_repro.lm.pair_scorers import PairClassifier
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


def _shelved(tmp_path, monkeypatch, task):
    """A tiny trained complexity classifier whose card tells this task, by the name "c"."""
    from rag_repro.lm import hub
    from tests.lm.test_complexity import trained

    trained(tmp_path, task)
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "c").rename(tmp_path / "artifacts" / "c")
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    monkeypatch.setenv(hub.CACHE_VARIABLE, str(tmp_path / "cache"))


def test_a_scorer_is_of_the_kind_that_its_card_tells(tmp_path, monkeypatch):
    from rag_repro.lm.pair_scorers import ComplexityClassifier

    _shelved(tmp_path, monkeypatch, "complexity")
    settings = {"k": 3, "classifier": "c", "prompt": "cot"}
    condition = Condition("world-B@1000", "adaptive_rag", settings, retriever="bm25")
    scorer = Workshop().services(condition)["c"]
    assert isinstance(scorer.scorer, ComplexityClassifier)
    three = [("who?", letter) for letter in "ABC"]
    assert scorer.score(three).sum() == pytest.approx(1, abs=1e-5)


def test_a_scorer_of_an_unknown_kind_is_refused(tmp_path, monkeypatch):
    _shelved(tmp_path, monkeypatch, "reader")
    with pytest.raises(UnknownService, match=r"for 'reader'.*'pairs' or 'complexity'"):
        Workshop().scorer("c")


def test_a_classifier_that_is_not_trained_yet_is_named_with_its_command(tmp_path, monkeypatch):
    from rag_repro.lm import hub

    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    with pytest.raises(UnknownService, match="rag-repro train complexity-testbed"):
        Workshop().scorer("complexity-testbed")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("drrag-classifier", "rag-repro train drrag-classifier"),
        ("drrag-classifier-2", "rag-repro train drrag-classifier --seed 2"),
        ("drrag-classifier-noise20", "rag-repro train drrag-classifier-noise20"),
        ("drrag-classifier-noise20-1", "rag-repro train drrag-classifier-noise20 --seed 1"),
        ("drrag-classifier@256", "rag-repro train drrag-classifier"),
        ("drrag-classifier-1@256", "rag-repro train drrag-classifier --seed 1"),
    ],
)
def test_another_seed_or_variant_is_named_with_its_command(name, command, tmp_path, monkeypatch):
    from rag_repro.lm import hub

    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    with pytest.raises(UnknownService, match=rf"{command}$"):
        Workshop().scorer(name)


def test_the_headline_seed_has_no_number():
    assert names.train_command("drrag-classifier-0", names.SCORERS) is None
    assert names.train_command("drrag-clasifier", names.SCORERS) is None
    assert names.train_command("drrag-classifier-1") is None  # it is no reader
    assert names.train_command("testbed-reader-1") == "rag-repro train testbed-reader --seed 1"
    names.check_reader("testbed-reader-1")


def test_a_classifier_may_be_given_less_room_which_makes_another_service(tmp_path, monkeypatch):
    from rag_repro.lm import hub
    from rag_repro.schema.errors import ReaderError
    from tests.lm.test_pairs import trained

    trained("bert", tmp_path)
    local = tmp_path / "results" / "local" / "artifacts"
    local.mkdir(parents=True)
    (tmp_path / "c").rename(local / "drrag-classifier-1")
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    monkeypatch.setenv(hub.CACHE_VARIABLE, str(tmp_path / "cache"))
    workshop = Workshop()
    whole, tight = (workshop.scorer(f"drrag-classifier-1{room}").scorer for room in ("", "@24"))
    assert whole.fingerprint != tight.fingerprint
    long = [("who?", "film " * 20, "Ada")]
    assert whole.score(long) != tight.score(long)
    with pytest.raises(ReaderError, match="from 16 to 128"):
        workshop.scorer("drrag-classifier-1@1024")


def test_a_condition_may_name_a_reader_before_it_is_trained(tmp_path, monkeypatch, asked):
    from rag_repro.lm import hub

    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    names.check_reader("testbed-reader")
    with pytest.raises(ValueError, match="testbed-raeder"):
        names.check_reader("testbed-raeder")
    condition = dataclasses.replace(CONDITION, settings={"k": 2, "prompt": "drrag"})
    assert not Workshop().lacks(condition)
    untaught = dataclasses.replace(condition, reader="testbed-reader")
    assert Workshop().lacks(untaught) == "trained weights"
    judged = Condition("little", "cfs", {"k": 4}, retriever="bm25")
    assert Workshop().lacks(judged) == "trained weights"
    with pytest.raises(UnknownService, match="rag-repro train testbed-reader"):
        Workshop().reader("testbed-reader")


def test_an_adapter_that_is_here_is_told_by_its_card(tmp_path, monkeypatch):
    import json

    from rag_repro.lm import hub

    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    cards = {"judge": {"task": "pairs"}, "book": {"task": "reader"}, "gift": None}
    for name, recipe in cards.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / hub.ADAPTER).write_bytes(b"")
        card = {"base": {"name": "b", "sha256": "0"}} | ({"recipe": recipe} if recipe else {})
        (tmp_path / name / "card.json").write_text(json.dumps(card))
    names.check_scorer("judge")
    names.check_scorer("judge@64")
    names.check_reader("book")
    names.check_reader("gift")
    with pytest.raises(UnknownService, match=r"judge cannot be a reader: .*'pairs'"):
        names.check_reader("judge")
    with pytest.raises(UnknownService, match=r"book cannot be a classifier: .*'reader'"):
        names.check_scorer("book")
    with pytest.raises(UnknownService, match="no classifier 'gift'; there are"):
        names.check_scorer("gift")
    with pytest.raises(UnknownService, match=r"no classifier 'jugde', did you mean 'judge'\?"):
        names.check_scorer("jugde")


def test_an_evaluator_judges_single_passages_and_serves_its_method(asked, tmp_path, monkeypatch):
    from rag_repro.lm import hub
    from rag_repro.lm.pair_scorers import RelevanceClassifier
    from tests.lm.test_pairs import trained

    trained("bert", tmp_path, "relevance")
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "c").rename(tmp_path / "artifacts" / "judge")
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    monkeypatch.setenv(hub.CACHE_VARIABLE, str(tmp_path / "cache"))
    condition = Condition("little", "crag", {"evaluator": "judge"}, retriever="bm25")
    scorer = Workshop().services(condition)["judge"]
    assert isinstance(scorer.scorer, RelevanceClassifier)
    assert 0 < scorer.score([("who?", "a film")])[0] < 1
    assert scorer.score([]).shape == (0,)
    for name in ("judge", "crag-evaluator", "crag-evaluator-testbed-1"):
        names.check_scorer(name)
    with pytest.raises(UnknownService, match="judge cannot be a reader"):
        names.check_reader("judge")


def test_a_compressor_is_a_reader_beside_the_reader(asked, tmp_path, monkeypatch):
    from rag_repro.lm import hub

    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    made = []
    monkeypatch.setattr(Workshop, "reader", lambda self, name: made.append(name) or name)
    settings = {"kind": "abstractive", "compressor": "recomp-abstractive-testbed-2"}
    condition = Condition("little", "recomp", settings, retriever="bm25", reader="smollm2-135m")
    got = Workshop().services(condition)
    assert got["recomp-abstractive-testbed-2"] == "recomp-abstractive-testbed-2"
    assert got["reader"] == "smollm2-135m"
    names.check_reader("recomp-abstractive-testbed-2")
    # It is to be trained first, and so the condition cannot be asked at once.
    assert Workshop().lacks(condition) == "trained weights"
    plain = dataclasses.replace(condition, method="long_llmlingua", settings={})
    assert not Workshop().lacks(plain)
    assert set(Workshop().services(plain)) == {"retriever", "reader", "smollm2-135m"}


def test_r2ag_gets_its_encoder_and_names_readers_before_they_are_trained(
    asked, tmp_path, monkeypatch
):
    from rag_repro.lm import hub

    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    monkeypatch.setattr(Workshop, "encoder", lambda self, name: f"encoder {name}")
    condition = Condition("little", "r2ag", {"k": 2}, retriever="bm25")
    assert Workshop().services(condition)["minilm"] == "encoder minilm"
    assert "minilm" not in Workshop().services(dataclasses.replace(condition, settings=FREE))
    for name in ("r2ag-mixed", "r2ag-mixed-free-1", "raft-mixed"):
        names.check_reader(name)
        trained = dataclasses.replace(condition, reader=name)
        assert Workshop().lacks(trained) == "trained weights"
    with pytest.raises(UnknownService, match="rag-repro train r2ag-mixed-free --seed 1"):
        Workshop().reader("r2ag-mixed-free-1")
    with pytest.raises(UnknownService, match="r2ag-mixed cannot be a classifier"):
        names.check_scorer("r2ag-mixed")


def test_what_needs_a_package_that_is_not_installed_is_not_asked_at_once(asked, monkeypatch):
    """CI has none of the optional encoders and readers, and pages ask recorded questions there."""
    weights = dataclasses.replace(PACKAGES["minilm-l3"], module="no_such_package_here")
    monkeypatch.setitem(PACKAGES, "minilm-l3", weights)
    plain = dataclasses.replace(CONDITION, settings={"k": 2, "prompt": "drrag"})
    formed = Condition("little", "r2ag", FREE, retriever="bm25")
    assert not Workshop().lacks(plain)
    assert not Workshop().lacks(formed)
    for lacking in (
        dataclasses.replace(plain, retriever="minilm-l3"),
        dataclasses.replace(plain, reader="minilm-l3"),
        dataclasses.replace(formed, settings={"k": 2, "encoder": "minilm-l3"}),
    ):
        assert Workshop().lacks(lacking) == "a package of weights"


FREE = {"k": 2, "inputs": "free"}


def test_an_encoder_is_fitted_on_the_corpus_that_is_asked(asked, tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    settings = {"k": 2, "encoder": "lsa"}
    condition = Condition("little", "r2ag", settings, retriever="lsa")
    workshop = Workshop()
    assert not workshop.lacks(condition)  # fitting takes seconds, and is not waited for
    served = workshop.services(condition)
    assert served["lsa"] is served["retriever"].encoder
    assert served["lsa"].corpus is DATASET.corpus
    assert served["retriever"].search(["secret 3"], 1)[0][0].passage.id == "p3"
    assert list(tmp_path.rglob("*.npy")) == []  # nothing of it is kept for another run
    told = workshop.fingerprint(condition)
    other = Corpus("other", (Passage("a", "", "one text"), Passage("b", "", "another")))
    assert workshop.encoder_over("lsa", other).fingerprint != told["lsa"]
    assert workshop.encoder_over("lsa", DATASET.corpus) is served["lsa"]
    # Of what is shipped there is one for every corpus.
    monkeypatch.setattr(Workshop, "encoder", lambda self, name: f"encoder {name}")
    assert workshop.encoder_over("minilm", other) == "encoder minilm"


def test_encoders_are_known_by_name():
    for name in ("minilm", "minilm-l3", "lsa"):
        names.check_encoder(name)
        names.check_retriever(name)
    with pytest.raises(ValueError, match="did you mean 'minilm-l3'"):
        names.check_encoder("minilm-l4")


def test_where_no_index_is_kept_no_corpus_is_made_to_know_it(asked, tmp_path, monkeypatch):
    class Encoder:
        fingerprint = "encoder-1"

    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    monkeypatch.setattr("rag_repro.study.services.lacking", lambda name: None)
    monkeypatch.setattr(Workshop, "encoder", lambda self, name: Encoder())
    dense = dataclasses.replace(CONDITION, retriever="minilm")
    assert Workshop().lacks(dense) == "an index"
    assert asked == []
    (tmp_path / "indexes").mkdir()
    assert Workshop().lacks(dense) == "an index"
    assert len(asked) == 1
    # An estimate builds small ones itself, or a fresh machine would know no world's minutes.
    held = len(DATASET.corpus)
    assert Workshop().lacks(dense, small=held - 1) == "an index"
    assert Workshop().lacks(dense, small=held) is None
    Workshop()._folder(DATASET.corpus, **Workshop().settings_of("minilm")).mkdir()
    assert Workshop().lacks(dense) is None


def test_an_index_of_ours_that_is_damaged_is_built_anew(tmp_path, monkeypatch, caplog):
    class Encoder:
        fingerprint = "encoder-1"

        def __init__(self):
            self.asked = 0

        def encode(self, texts):
            self.asked += 1
            return np.tile(np.float32([0.6, 0.8]), (len(texts), 1))

    encoder = Encoder()
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    monkeypatch.setattr(Workshop, "encoder", lambda self, name: encoder)
    for _ in range(2):
        Workshop().retriever("minilm", DATASET.corpus)
    assert encoder.asked == 1
    [vectors] = tmp_path.rglob("*.npy")
    whole = vectors.read_bytes()
    vectors.write_bytes(whole[:-4])
    Workshop().retriever("minilm", DATASET.corpus)
    assert encoder.asked == 2
    assert vectors.read_bytes() == whole
    assert "files.vectors.npy.sha256: expected" in caplog.text
