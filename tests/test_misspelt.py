"""Whatever is misspelt, at the command line or in the library: the nearest right name is told."""

from __future__ import annotations

import re
import types

import pytest

from rag_repro import cli, data, retrieval
from rag_repro.book_folders import here
from rag_repro.data import splits
from rag_repro.evaluation import metrics
from rag_repro.lm import hub
from rag_repro.publish import parameters
from rag_repro.retrieval import Analyzer
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.show.chapter import Chapter
from rag_repro.study import papers
from rag_repro.study.conditions import Condition
from rag_repro.study.services import Workshop
from tests.study import mini

COMMANDS = [
    ("rum drrag.table5", "run"),
    ("run drrag.tabel5", "drrag.table5"),
    ("run drag.table5", "drrag.table5"),
    ("run drrag.table5 --tier tesbed", "testbed"),
    ("run drrag.table5 --role primry", "primary"),
    ("run drrag.table5 --datset musique", "--dataset"),
    ("run drrag.table5 --dataset musque", "musique"),
    ("run drrag.table5 --method qcd", "qdc"),
    ("run kills.answers --dtype flaot32", "float32"),
    ("exhibit drrag.tble5", "drrag.table5"),
    ("exhibit drrag.table5 --tier publik", "public"),
    ("exhibit drrag.table5 --format jsn", "json"),
    ("exhibit drrag.table5 --fromat json", "--format"),
    ("claims --paper drag", "drrag"),
    ("claims --tier papr", "paper"),
    ("show drrag.tabel5 --question x", "drrag.table5"),
    ("chapter 11_drag_recall", "11_drrag_recall"),
    ("chapter 11_drrag_recall -p n_question 3", "n_questions"),
    ("book --only 11_drag_recall", "11_drrag_recall"),
    ("data lst", "list"),
    ("data card hotpotqaa", "hotpotqa"),
    ("data card wrld-B", "world-B"),
    ("data card world-b", "world-B"),
    ("data card world-B~hoks=0", "hooks"),
    ("data fetch hotpotqaa", "hotpotqa"),
    ("train testbed-raeder", "testbed-reader"),
    ("corpus biuld world-B", "build"),
    ("corpus build wrld-B", "world-B"),
    ("corpus build world-B@1000 --retriever milvus-bm52", "milvus-bm25"),
    ("corpus build world-B --adress http://a", "--address"),
    ("growth bm52 --sizes 1000", "bm25"),
]


def test_an_option_of_another_command_is_not_recommended(capsys):
    with pytest.raises(SystemExit):
        cli.main(["run", "drrag.table5", "--dry-run"])
    said = capsys.readouterr().err
    assert "unrecognized arguments: --dry-run, which other commands have" in said


@pytest.mark.parametrize(("line", "meant"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_the_command_line(line, meant, capsys, tmp_path, monkeypatch):
    kills = tmp_path / "papers" / "kills"
    kills.mkdir(parents=True)
    (kills / "paper.yaml").write_text(READER)
    (kills / "claims.yaml").write_text("[]\n")
    monkeypatch.setenv(papers.ENVIRONMENT, str(kills.parent))
    monkeypatch.setattr(papers, "load", papers.load.__wrapped__)
    try:
        status = cli.main(line.split())
    except SystemExit as stop:  # argparse's own way
        status = stop.code
    told = capsys.readouterr().err
    assert status == 2
    assert f"did you mean {meant!r}?" in told
    assert "Traceback" not in told


READER = """
title: A reader
short: Reader
cite: ""
exhibits:
  answers:
    title: Answers
    place: none
    own: true
    metrics: [em]
    methods: {closed: {label: Closed book, run: no_retrieval, settings: {prompt: cot}}}
    grids: [{tier: testbed, datasets: [world-B@1000], methods: [closed], reader: smollm2-135m}]
"""

SMALL = Corpus("small", (Passage("p0", "", "a harbour"),))


def desk(**changes):
    run = {"n_questions": None, "device": "cpu", "batch_size": 1, "tier": "all", "changed": ()}
    return Chapter(
        "drrag", types.SimpleNamespace(**run, **changes), here().root, exhibits=["table5"]
    )


LIBRARY = {
    "data set": (lambda: data.load("hotpottqa"), "hotpotqa"),
    "world": (lambda: data.load("wolrd-B"), "world-B"),
    "world of no letter": (lambda: data.load("world-BB"), "world-B"),
    "dial": (lambda: data.load("world-B~tie=1"), "ties"),
    "split": (lambda: data.load("world-B", split="tset"), "test"),
    "split of a public set": (lambda: splits.ids("hotpottqa", "test"), "hotpotqa"),
    "method": (lambda: Condition("world-B", "singl_step"), "single_step"),
    "setting": (lambda: Condition("world-B", "qdc", {"k_1": 3}), "k1"),
    "prompt": (lambda: Condition("world-B", "qdc", {"prompt": "shrot"}), "short"),
    "retriever": (lambda: Workshop().retriever("bm25-robertsn", SMALL), "bm25-robertson"),
    "reader": (lambda: Workshop().reader("smolm2-135m"), "smollm2-135m"),
    "encoder": (lambda: Workshop().encoder("minlm"), "minilm"),
    "weights": (lambda: hub.resolve("smollm2-153m"), "smollm2-135m"),
    "kind of retriever": (lambda: retrieval.build("bm52", SMALL), "bm25"),
    "setting of a retriever": (lambda: retrieval.build("bm25", SMALL, varient="x"), "variant"),
    "variant": (lambda: retrieval.build("bm25", SMALL, variant="lucen"), "lucene"),
    "stemmer": (lambda: Analyzer(stemmer="englsh"), "english"),
    "stop words": (lambda: Analyzer(stop_words="english_pls"), "english_plus"),
    "metric": (lambda: metrics.get("recal"), "recall"),
    "paper": (lambda: papers.load("drag"), "drrag"),
    "exhibit": (lambda: papers.exhibit("drrag.tabel5"), "drrag.table5"),
    "exhibit of a chapter": (lambda: desk().rows("tabel5"), "table5"),
    "claim": (lambda: desk().claims(["drag.c01"]), "drrag.c01"),
    "statement": (lambda: desk().statements(["drag.c01"]), "drrag.c01"),
    "parameter": (lambda: parameters.override("11_drrag_recall", {"retreiver": 1}), "retriever"),
}


@pytest.mark.parametrize("what", LIBRARY)
def test_the_library(what):
    use, meant = LIBRARY[what]
    with pytest.raises(ValueError, match="did you mean") as caught:
        use()
    assert f"did you mean {meant!r}?" in str(caught.value)


YAML = [
    ("metrics: [recall,", "metrics: [recal,", "recall"),
    ("place: table 1", "palce: table 1", "place"),
    ("label: Similarity", "lable: Similarity", "label"),
    ("run: single_step", "run: singl_step", "single_step"),
    ("retriever: minilm", "retriever: minlm", "minilm"),
    ("baseline: sm", "baseline: smm", "sm"),
    ("tier: public", "tier: pubic", "public"),
    ("tier: testbed", "role: primry, tier: testbed", "primary"),
    ("datasets: [hotpotqa", "datasets: [hotpottqa", "hotpotqa"),
    ("datasets: [world-B]", "datasets: [wrld-B]", "world-B"),
    ("methods: [sm, qdc]", "methods: [sm, qcd]", "qdc"),
    ("settings: {k: [3, 4]}", "settings: {kk: [3, 4]}", "k"),
    ("settings: {k: [3, 4]}", "settings: {k: [3]}\n        reader: smolm2-135m", "smollm2-135m"),
]


@pytest.mark.parametrize(("right", "wrong", "meant"), YAML, ids=[wrong for _, wrong, _ in YAML])
def test_a_papers_file(tmp_path, monkeypatch, right, wrong, meant):
    if wrong.startswith("role"):
        right, wrong = "- tier: testbed", "- role: primry\n        tier: testbed"
    assert right in mini.PAPER
    monkeypatch.setattr(mini, "PAPER", mini.PAPER.replace(right, wrong, 1))
    with pytest.raises(papers.StudyError, match="did you mean") as caught:
        mini.paper(tmp_path, "")
    assert f"did you mean {meant!r}?" in str(caught.value)
    assert "mini/paper.yaml" in str(caught.value)


CONTRASTS = [
    ("{metric: recal, more: {method: qdc}, less: {method: sm}, delta: 1}", "recall"),
    ("{metric: recall, more: {method: qdd}, less: {method: sm}, delta: 1}", "qdc"),
    ("{metric: recall, more: {metod: qdc}, less: {method: sm}, delta: 1}", "method"),
    ("{metric: recall, mor: {method: qdc}, less: {method: sm}, delta: 1}", "more"),
    ("{metric: recall, more: {method: qdc}, less: {method: sm}, dleta: 1}", "delta"),
    ("{metric: recall, more: {method: qdc}, less: {method: sm}, delta: 1, rule: ech}", "each"),
]


@pytest.mark.parametrize(("contrast", "meant"), CONTRASTS)
def test_a_claims_contrast(tmp_path, contrast, meant):
    with pytest.raises(papers.StudyError, match="did you mean") as caught:
        mini.paper(tmp_path, f"- {contrast}")
    assert f"did you mean {meant!r}?" in str(caught.value)
    assert "mini/claims.yaml, claim mini.c01" in str(caught.value)


@pytest.mark.parametrize(
    "line", ["chapter 30 -p dataset world-Y", "run drrag.tabel5", "growth bm52 --sizes 1000"]
)
def test_of_many_names_a_message_gives_the_three_nearest(line, capsys):
    assert cli.main(line.split()) == 2
    told = capsys.readouterr().err
    assert "did you mean" in told
    [some] = re.findall(r"there are \d+, as (.*?)(?:;|$)", told.strip())
    assert len(some.split(", ")) == 3
