"""Pooling, ids, roles and chains, and the front door."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from rag_repro import data
from rag_repro.data import public
from rag_repro.data.public.assembling import passage_id
from rag_repro.data.public.record import Row
from rag_repro.data.public.roles import evidence_steps, named_in, page_name, split_words


def test_passage_id_is_readable_and_only_of_the_content():
    digest = hashlib.sha256(b"Fences (film)\x1fA film.").hexdigest()[:8]
    assert passage_id("Fences (film)", "A film.") == f"fences-film.{digest}"
    assert passage_id("Fences (film)", "A film!") != passage_id("Fences (film)", "A film.")
    assert passage_id("!!", "x").startswith("untitled.")
    assert passage_id("码头", "x").startswith("码头.")
    assert len(passage_id("a" * 200, "x")) == 48 + 1 + 8


@pytest.mark.parametrize(
    ("title", "question", "static"),
    [
        ("Low Tide (1951 film)", "Who directed the film Low Tide?", True),
        ("Low Tide", "Who directed Low Tides?", False),
        ("Tide", "Who directed Lowtide?", False),
        ("The Salt Oratorio", "who wrote salt oratorio", True),
        ("J. K. Orvane", "When was J.K. Orvane born?", True),
        ("Élan", "What is the Elan?", True),
        ("Orvane", "Where was Orvane's mayor born?", True),
        ("Orvane, Northway", "Where is Orvane?", False),
        ("The The (band)", "Who sang for The The?", True),
        ("The The", "Who sang for the band?", False),
        ("(?)", "What is it?", False),
    ],
)
def test_role_heuristic(title, question, static):
    assert named_in(title, question) is static


def test_page_name_and_words():
    assert page_name("Fences (play) (1985)") == "Fences (play)"
    assert page_name("(film)") == "(film)"
    assert split_words("The Beauté-Shop, a film!") == ("beaute", "shop", "film")


def chain(*triples, titles=()):
    return evidence_steps(Row(Path("f"), "line 1", {"evidences": list(map(list, triples))}), titles)


def test_hops_are_depths_in_the_evidence_graph():
    steps = chain(
        ("A", "father", "B"), ("B", "mother", "C"), ("C", "born", "1900"), titles=["A", "B"]
    )
    assert [s.hop for s in steps] == [1, 2, 3]
    assert [s.title for s in steps] == ["A", "B", None]
    assert [s.hop for s in chain(("A", "spouse", "B"), ("B", "spouse", "A"))] == [2, 2]
    assert [s.hop for s in chain(("A", "x", "A"))] == [1]
    circle = chain(("A", "spouse", "B"), ("B", "spouse", "A"), ("A", "born", "1900"))
    assert circle[2].hop == 3  # B's spouse is A, and A's is B: there the walk ends


def test_two_subjects_left_over_are_not_guessed():
    steps = chain(("A1", "x", "y"), ("B1", "x", "z"), titles=["A", "B"])
    assert [s.title for s in steps] == [None, None]


def project_file(folder, name, rows):
    (folder / f"{name}.jsonl.gz").write_text("".join(json.dumps(r) + "\n" for r in rows))


def question(n, *docs):
    return {
        "id": f"q{n}",
        "question": f"Q{n}?",
        "answers": ["a"],
        "docs": [{"title": t, "text": x, "gold": g} for t, x, g in docs],
        "meta": {},
    }


def test_the_pool_is_of_the_whole_file_whatever_is_asked(tmp_path):
    shared = ("Shared", "One text.", False)
    rows = [
        question(1, ("A", "Gold.", True), shared),
        question(2, shared, ("Shared", "Another text.", True)),
    ]
    project_file(tmp_path, "hotpotqa", rows)
    both = data.load("hotpotqa", data_dir=tmp_path)
    assert [p.title for p in both.corpus.passages] == ["A", "Shared", "Shared"]
    assert both.first(1).corpus is both.corpus
    project_file(tmp_path, "hotpotqa", rows[1:])
    alone = data.load("hotpotqa", data_dir=tmp_path)
    # Ids do not depend on what else is in the file.
    assert alone.questions[0].candidates == both.questions[1].candidates
    assert alone.questions[0].gold_ids == both.questions[1].gold_ids


def test_a_namesake_of_a_gold_passage_elsewhere_in_the_pool_is_not_gold(tmp_path):
    own = question(1, ("Mercury", "A planet.", True)) | {"meta": {"gold_titles": ["Mercury"]}}
    other = question(2, ("Mercury", "A metal.", False), ("Tin", "A metal too.", True))
    project_file(tmp_path, "hotpotqa_fullwiki", [own, other])
    d = data.load("hotpotqa_fullwiki", data_dir=tmp_path)
    assert d.questions[0].gold_ids == (passage_id("Mercury", "A planet."),)


def test_nq_joins_its_distractors_and_keeps_their_ids(tmp_path):
    project_file(
        tmp_path, "nq", [question(1, ("A", "Gold.", True)), question(2, ("B", "In.", True))]
    )
    extra = [
        {"id": "wiki-1", "title": "C", "text": "More."},
        {"id": "wiki-2", "title": "B", "text": "In."},
    ]
    project_file(tmp_path, "nq.corpus", extra)
    d = data.load("nq", data_dir=tmp_path)
    assert [p.id for p in d.corpus.passages] == ["wiki-1", "wiki-2", passage_id("A", "Gold.")]
    assert d.questions[1].gold_ids == ("wiki-2",)
    assert d.questions[1].candidates == ("wiki-2",)


def test_nq10_is_the_first_ten_of_nq20(tmp_path):
    docs = [("G", "Gold.", True), *(("D", f"Text {i}.", False) for i in range(19))]
    project_file(tmp_path, "nq20", [question(1, *docs)])
    ten, twenty = (data.load(n, data_dir=tmp_path) for n in ("nq10", "nq20"))
    assert twenty.questions[0].candidates[:10] == ten.questions[0].candidates
    assert (len(ten.corpus), len(twenty.corpus)) == (10, 20)


def test_front_door_reads_the_environment(tmp_path, monkeypatch):
    project_file(tmp_path, "hotpotqa", [question(1, ("A", "Gold.", True))])
    monkeypatch.setenv("RAG_REPRO_DATA", str(tmp_path))
    assert data.load("hotpotqa").name == "hotpotqa"
    monkeypatch.setenv("RAG_REPRO_DATA", "")
    with pytest.raises(public.MissingFile, match="set RAG_REPRO_DATA"):
        data.load("hotpotqa")


def test_front_door_refuses_a_world_that_is_none():
    with pytest.raises(ValueError, match="world-B@20000"):
        data.load("world-b")


# ------------------------------------------------------------------ on real data

ROLES = {  # name -> (static, dynamic), counted once and kept
    "hotpotqa": (268, 236),
    "hotpotqa_train": (434, 394),
    "2wikimultihopqa": (592, 390),
    "2wikimultihopqa_train": (465, 253),
    "2wikimultihopqa_open": (402, 274),
    "musique": (205, 400),
}
COUNTS = {  # name -> (questions, passages)
    "hotpotqa": (252, 2507),
    "2wikimultihopqa": (393, 2681),
    "2wikimultihopqa_open": (280, 6119),
    "musique": (240, 3809),
    "nq": (1595, 9151),
    "nq20": (269, 5360),
    "popqa": (599, 5215),
    "ambignq": (1166, 0),
    "ambignq_nq": (680, 9151),
    "ambignq_asked": (100, 9151),
    "ambignq_again": (200, 9151),
    "strategyqa": (267, 1879),
    "dureader": (121, 563),
}


@pytest.mark.parametrize("name", [n for n in public.registry() if n != "nq30"])
def test_real_data(name, data_dir):
    d = data.load(name, data_dir=data_dir)
    if name in COUNTS:
        assert (len(d.questions), len(d.corpus)) == COUNTS[name]
    if name in ROLES:
        assert (d.card["roles"]["static"], d.card["roles"]["dynamic"]) == ROLES[name]
    for q in d.questions:
        assert set(q.gold_ids) <= set(d.corpus.by_id)
        assert set(q.candidates) <= set(d.corpus.by_id)
        assert len(set(q.candidates)) == len(q.candidates)
    assert d.card["source"]
    assert d.card["licence"]


def test_real_hops_and_roles_agree_on_2wiki(data_dir):
    """The heuristic against annotated depth: first hops are named, second hops are not."""
    by_hop = data.load("2wikimultihopqa", data_dir=data_dir).card["roles"]["by_hop"]
    assert by_hop["1"]["static"] / sum(by_hop["1"].values()) > 0.9
    assert by_hop["2"]["dynamic"] / sum(by_hop["2"].values()) > 0.95
