"""Official formats, each from a small invented file, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_repro.data import public
from rag_repro.data.public.readers.iirc import paragraphs

OFFICIAL = Path(__file__).parent / "files" / "official"


def load(name, **kwargs):
    return public.load(name, OFFICIAL, **kwargs)


def titles(dataset, question):
    return [dataset.corpus.by_id[i].title for i in question.candidates]


def gold(dataset, question):
    return {(dataset.corpus.by_id[g.passage_id].title, g.role, g.hop) for g in question.gold}


def test_hotpotqa_distractor():
    d = load("hotpotqa")
    assert d.card["format"] == "hotpotqa"
    assert [q.id for q in d.questions] == ["h1", "h2"]
    bridge, comparison = d.questions
    assert bridge.answers == ("Vellmouth",)
    assert (bridge.kind, bridge.hops, comparison.kind) == ("bridge", 2, "comparison")
    assert titles(d, bridge) == ["Ida Brannock", "The Salt Oratorio", "Ida (river)"]
    assert gold(d, bridge) == {
        ("Ida Brannock", "dynamic", None),
        ("The Salt Oratorio", "static", None),
    }
    # Sentences are joined by one blank; the river is one passage of both questions.
    assert d.corpus.passages[0].text == "Ida Brannock wrote for choirs. She was born in Vellmouth."
    assert len(d.corpus) == 5
    assert bridge.candidates[2] == comparison.candidates[2]


def test_hotpotqa_fullwiki_finds_gold_by_title_in_the_pool_and_names_the_absent():
    d = load("hotpotqa_fullwiki")
    first, second = d.questions
    # Not among h1's own passages, but among h2's: in the pooled corpus it is gold.
    assert gold(d, first) == {("Ida Brannock", "dynamic", None), ("Vellmouth", "dynamic", None)}
    assert "Ida Brannock" not in titles(d, first)
    assert first.meta["gold_not_in_corpus"] == ("The Salt Oratorio",)
    assert gold(d, second) == {("Orvane", "static", None), ("Vellmouth", "static", None)}
    assert "gold_not_in_corpus" not in second.meta
    assert d.card["counts"]["gold_not_in_corpus"] == 1


def test_2wikimultihopqa_chain_hops_and_aliases():
    d = load("2wikimultihopqa")
    bridge, comparison = d.questions
    assert bridge.answers == ("Cold Anvil", "Kalter Amboss", "The Cold Anvil")
    assert bridge.hops == 4
    assert gold(d, bridge) == {
        ("Low Tide (film)", "static", 1),  # the question says "Low Tide": no parenthetical
        ("Cold Anvil", "static", 1),
        ("Per Ostrand", "dynamic", 2),
        ("Lena Dahlquist", "dynamic", 2),  # evidence says "Lena Maria Dahlquist": the one left over
    }
    assert [g.hop for g in bridge.gold] == [1, 1, 2, 2]
    assert [(s.question, s.answer) for s in bridge.steps][:2] == [
        ("Low Tide >> director", "Per Ostrand"),
        ("Cold Anvil >> director", "Lena Maria Dahlquist"),
    ]
    supports = [d.corpus.by_id[s.passage_id].title for s in bridge.steps]
    assert supports == ["Low Tide (film)", "Cold Anvil", "Per Ostrand", "Lena Dahlquist"]
    # "Tide Low" is handed out twice: one passage, one candidate.
    assert titles(d, bridge).count("Tide Low") == 1
    cold_anvil = next(p for p in d.corpus.passages if p.title == "Cold Anvil")
    assert cold_anvil.text == "Cold Anvil is a film by Lena Dahlquist. It was shot in winter."
    assert gold(d, comparison) == {("Orvane", "static", 1), ("Vellmouth", "static", 1)}
    assert set(d.card["files"]) == {"dev.json", "id_aliases.json"}
    assert d.card["roles"]["by_hop"] == {
        "1": {"static": 4, "dynamic": 0},
        "2": {"static": 0, "dynamic": 2},
    }


def test_musique_steps_are_filled_in_and_order_is_the_hop():
    d = load("musique")
    (q,) = d.questions  # the unanswerable one is left out
    assert (q.kind, q.hops, q.answers) == ("3hop2", 3, ("nine", "9"))
    assert gold(d, q) == {
        ("Ida Brannock", "static", 1),
        ("Orvane County", "static", 2),
        ("Northway", "dynamic", 3),
    }
    assert [g.hop for g in q.gold] == [1, 2, 3]
    assert q.steps[2].question == "How many spans has the bridge between Vellmouth and Orvane?"
    assert d.corpus.by_id[q.steps[2].passage_id].text.startswith("The Northway Bridge joins")
    # Two paragraphs of one page are two passages.
    assert titles(d, q).count("Northway") == 2
    assert len(set(q.candidates)) == 4


@pytest.mark.parametrize(("name", "n", "passages"), [("nq10", 10, 11), ("nq20", 20, 21)])
def test_nq_keeps_the_order_of_the_passages(name, n, passages):
    d = load(name)
    first, second = d.questions
    assert (first.id, second.id) == ("nq-oracle-0000", "nq-oracle-0001")
    assert first.answers == ("1633", "in 1633")
    assert len(first.candidates) == n
    assert first.candidates[0] == first.gold_ids[0]
    assert first.meta["gold_position"] == 0
    assert first.meta["nq_annotated_gold"]["title"] == "Orvane"
    assert d.corpus.by_id[first.candidates[3]].text == "Orvane has 3 quays."
    assert first.gold[0].role is None
    assert len(d.corpus) == passages  # the quays are shared
    assert any("gold passage is always the first" in c for c in d.card["caveats"])


def test_nq_oracle_has_the_same_ids_and_passage_ids():
    oracle, twenty = load("nq"), load("nq20")
    assert oracle.questions[0].id == twenty.questions[0].id
    assert oracle.questions[0].gold_ids == twenty.questions[0].gold_ids
    assert len(oracle.corpus) == 1


def test_popqa_popularity_and_answers():
    d = load("popqa")
    first, second = d.questions
    assert (first.id, first.kind, first.hops) == ("501", "occupation", 1)
    assert first.answers == ("composer", "tone poet")
    assert (first.meta["s_pop"], first.meta["o_pop"]) == (142, 25692)
    assert (second.meta["o_pop"], second.meta["o_wiki_title"]) == (901, "Orvane")
    assert isinstance(second.meta["o_pop"], int)
    assert len(d.corpus) == 0


def test_ambignq_readings_of_all_annotators():
    d = load("ambignq")
    ambiguous, single = d.questions
    assert ambiguous.kind == "multipleQAs"
    assert ambiguous.answers == ("1951", "in 1951", "1988", "May 1951")
    assert [(i.question, i.answers) for i in ambiguous.interpretations] == [
        ("When did the film Low Tide come out?", ("1951", "in 1951", "May 1951")),
        ("When did the song Low Tide come out?", ("1988",)),
    ]
    assert single.kind == "singleAnswer"
    assert single.answers == ("Jon Tamm", "Tamm")
    assert single.interpretations == ()


def test_strategyqa_answers_yes_and_no_over_all_paragraphs():
    d = load("strategyqa")
    first, second = d.questions
    assert (first.answers, second.answers) == (("yes",), ("no",))
    assert first.gold_ids == ("Ida Brannock-1", "Orvane-2")
    assert first.meta["missing_gold_ids"] == [
        "Orvane-3",
        "Orvane-10",
    ]  # not in the file; without text
    assert second.gold == ()
    assert [p.id for p in d.corpus.passages] == ["Ida Brannock-1", "Orvane-2", "Orvane-9"]
    assert first.hops == 3
    assert set(d.card["files"]) == {"strategyqa_train.json", "strategyqa_train_paragraphs.json"}


def test_iirc_gold_paragraphs_of_linked_articles():
    d = load("iirc")
    value, span, binary = d.questions  # the one without an answer is left out
    assert [q.id for q in d.questions] == ["q_1", "q_2", "iirc-1-3"]
    assert value.answers == ("67", "67 years")
    assert span.answers == ("green, white",)
    assert binary.answers == ("no",)
    texts = [d.corpus.by_id[i].text for i in value.gold_ids]
    assert texts[0].startswith("Per Ostrand moved")
    assert texts[1] == (
        "The lighthouse was built in 1633 & is still used by the fishing boats of the harbour."
    )
    # The other linked article gives its first paragraph; the one that is not there, nothing.
    assert titles(d, value) == ["Per Ostrand", "Orvane", "Vellmouth Rovers"]
    # "colours are green" is in the club's only paragraph.
    assert {d.corpus.by_id[i].title for i in span.gold_ids} == {"Per Ostrand", "Vellmouth Rovers"}


def test_iirc_paragraphs_are_lines_of_more_than_ten_words():
    ten, eleven = "w " * 10, "w " * 11
    assert paragraphs(f"{ten}\n<p>{eleven}</p>\n") == [eleven.strip()]


def test_dureader_pages_of_a_longbench_context():
    d = load("dureader")
    (q,) = d.questions
    assert (q.id, q.text, q.answers) == ("d0001", "灯塔什么时候建的", ("1633年", "建于1633年"))
    assert [(p.title, p.text) for p in d.corpus.passages] == [
        ("奥尔万的灯塔", "灯塔建于1633年。\n现在仍在使用。"),
        ("码头", "奥尔万有九个码头。"),
    ]
    assert q.gold == ()


def test_every_registered_format_is_read_here():
    used = {o.format for s in public.registry().values() for o in s.official} | {"project"}
    assert used == set(public.FORMATS)
