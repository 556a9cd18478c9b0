"""An exhibit's questions with who was right, and what each method decided on one of them."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rag_repro import cli, engine
from rag_repro.methods import base
from rag_repro.schema import Answer
from rag_repro.show import recorded_answers as show
from rag_repro.show import traces
from rag_repro.study import again, papers
from rag_repro.study.papers import StudyError
from tests.methods import golden

RECORDS = Path(__file__).resolve().parents[2] / "results/records"


def printed(capsys, *words: str) -> str:
    assert cli.main(["show", *words, "--results", str(RECORDS)]) == 0
    return capsys.readouterr().out


# ------------------------------------------------------------------ what a trace tells


def traced(method: str, **given) -> Answer:
    """An answer of the golden traces' made-up world."""
    spec = base.get(method)
    settings = spec.configure(given)
    services = dict.fromkeys(("retriever", "reader", *settings.needs), golden.World())
    task = engine.Task(golden.QUESTIONS[0], spec.run, settings)
    [(_, answer)] = engine.run([task], services)
    assert answer.error is None
    return answer


def words_of(answer: Answer) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    for what, said in traces.evidence(answer.trace):
        made.setdefault(what, []).append(said)
    return made


def test_dragins_alarms_are_told_with_scores_and_queries():
    answer = traced("dynamic", prompt="cot", threshold=0.02, max_new_tokens=32)
    told = words_of(answer)
    judged = [e for e in answer.trace if e["stage"] == "decide"]
    alarms = [e for e in judged if e["alarm"]]
    assert alarms
    first = alarms[0]
    at = first["alarm"][0]
    assert told["alarm"][0].startswith(
        f"at {first['words'][at].strip()!r}: score {first['score'][at]:.2f} (entropy "
    )
    assert told["query"] == [repr(e["query"]) for e in answer.trace if e["stage"] == "retrieve"]
    assert len(told["finds"]) == len(told["query"])


def test_a_draft_without_an_alarm_tells_how_near_it_was():
    told = words_of(traced("dynamic", prompt="cot", threshold=99.0))
    assert "alarm" not in told
    assert told["no alarm"][0].startswith("the nearest is at ")
    told = words_of(traced("dynamic", prompt="cot", timing="flare", query="sure_sentence"))
    assert ": probability 0." in [*told.get("alarm", ()), *told.get("no alarm", ())][0]


def test_drrags_pairs_are_told_with_cs_decisions():
    answer = traced("cfs", k=4)
    pairs = [e for e in answer.trace if e["stage"] == "judge"]
    assert {e["positive"] for e in pairs} == {True, False}
    assert words_of(answer)["pair"] == [
        f"{e['pair'][0]} + {e['pair'][1]}: {'' if e['positive'] else 'not '}both needed, "
        f"classifier {e['probability']:.4f}"
        for e in pairs
    ]


def test_r2ags_features_are_a_line_a_passage():
    answer = traced("r2ag", k=3, prompt="r2ag")
    told = words_of(answer)["features"]
    assert len(told) == len(answer.hits) == 3
    for hit, said in zip(answer.hits, told, strict=True):
        number = r"-?\d\.\d{4}"
        parts = f"relevance {number}, precedent {number}, neighbour {number}"
        assert re.fullmatch(f"{re.escape(hit.passage.id)}: {parts}", said)


def test_erm4s_queries_filter_and_memory_are_told():
    answer = traced(
        "erm4", prompt="drrag", rewriter="r", filter="nli", judge="j", memory="online", tau=0.1
    )
    told = words_of(answer)
    [rewritten] = [e for e in answer.trace if e["stage"] == "rewrite"]
    assert told["uses"] == [repr(part) for part in rewritten["parts"]]
    assert told["query"] == [repr(part) for part in rewritten["parts"][1:]]
    assert len(told["memory"]) == len(told["query"])
    assert re.match(r"\d+ titles alike, so (not )?searched for; it gives ", told["memory"][0])
    judged = [e for e in answer.trace if e["stage"] == "filter"]
    assert len(told["filter"]) == len(judged) > 0
    assert told["filter"][0].startswith(f"{judged[0]['passage']}: {judged[0]['label']}")


@pytest.mark.parametrize("method", [*base.METHODS])
def test_no_event_of_any_method_is_dropped(method):
    """An event that has no words of its own is told by its fields."""
    given = next(iter(golden.MORE.get(method, ({"k": 2},))))
    spec = base.get(method)
    settings = spec.configure(given)
    services = dict.fromkeys(("retriever", "reader", *settings.needs), golden.World())
    questions = golden._asked(method)
    for _, answer in engine.run([engine.Task(q, spec.run, settings) for q in questions], services):
        for event in answer.trace:
            rows = traces.evidence([event])
            assert rows or event["stage"] == "features"
            assert all(what and said for what, said in rows)


def test_an_event_of_a_method_of_ones_own_is_told_by_its_fields():
    event = {"first answer": "Sarrow", "tries": 2, "nothing": None}
    assert traces.evidence([event]) == [("decision", "first answer Sarrow, tries 2")]


def test_asks_trace_tells_decisions_in_lines_that_fit():
    answer = traced("cfs", k=4)
    [_, told] = traces.text((), golden.QUESTIONS[0], answer).split("\ndecisions:\n")
    lines = told.split("\ncost: ")[0].splitlines()
    assert sum(line.startswith("  pair ") for line in lines) == len(
        [e for e in answer.trace if e["stage"] == "judge"]
    )
    assert max(map(len, lines)) <= traces.WIDE
    page = traces.table((), golden.QUESTIONS[0], answer)._repr_html_()
    assert "both needed, classifier 0." in page


# ------------------------------------------------------------------ many questions


@pytest.fixture(scope="module")
def table2():
    exhibit = papers.exhibit("dragin.table2")[1]
    return show.RecordedExhibit(exhibit, RECORDS, tier="testbed", rows=("dragin", "sr"))


def test_where_keeps_the_questions_of_which_both_hold(table2):
    [every] = show.listing(table2)
    [some] = show.listing(table2, "dragin right, sr wrong")
    assert len(every.body) == 200
    assert [row for row in every.body if row[-2:] == ["dragin", "sr"]] == some.body
    assert 0 < len(some.body) < 200
    alone = dataclasses.replace(table2, rows=("dragin",))
    assert show.listing(alone, "sr wrong, dragin right")[0].body == some.body
    number, dataset, kind, text, *_ = some.body[0]
    assert (dataset, bool(kind)) == ("world-B", True)
    assert text == table2.dataset("world-B").by_id[number].text
    for (_, number), answers in table2.questions.items():
        em = {cell.keys["method"]: line["scores"]["em"] for cell, line in answers}
        wanted = em == {"dragin": 1.0, "sr": 0.0}
        assert wanted == (number in {row[0] for row in some.body})


def test_a_row_of_several_answers_is_right_where_all_are():
    exhibit = papers.exhibit("r2ag.table1")[1]  # of several trainings
    recorded = show.RecordedExhibit(exhibit, RECORDS, datasets=("world-B-10",), rows=("r2ag",))
    [table] = show.listing(recorded)
    assert "r2ag" in {row[-2] for row in table.body}
    mixed = next(row for row in table.body if row[-2].startswith("r2ag ("))
    for where in ("r2ag right", "r2ag wrong"):
        assert mixed[0] not in {row[0] for row in show.listing(recorded, where)[0].body}


def test_right_is_by_the_first_metric_of_answers_or_else_of_hits():
    def by(name):
        return show.RecordedExhibit(papers.exhibit(name)[1], RECORDS).metric

    names = ("dragin.table2", "r2ag.table1", "erm4.table2", "drrag.table5")
    assert [by(name) for name in names] == ["em", "acc_line", "hit", "recall"]


def test_an_exhibit_without_such_a_metric_is_listed_and_shown_all_the_same(capsys):
    assert "| id | data set | kind | question |\n" in printed(capsys, "dragin.replayed", "--list")
    recorded = show.RecordedExhibit(papers.exhibit("dragin.replayed")[1], RECORDS)
    with pytest.raises(StudyError, match=r"dragin\.replayed has no metric that tells"):
        show.listing(recorded, "replay right")
    (_, number), *_ = recorded.questions
    told = show.text(show.question(recorded, number))
    assert "verdict" not in told
    assert "  scores    none of this exhibit" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--where", "dragn right"], "method 'dragn', did you mean 'dragin'?"),
        (["--where", ""], "'dragin right, sr wrong'"),
        (["--where", "dragin fine"], "'dragin fine'; write ROW right or ROW wrong"),
        (["--method", "dragn", "--list"], "method 'dragn', did you mean 'dragin'?"),
        (["--question", "B-q-comparison-000"], "did you mean 'B-q-comparison-0"),
        (["--question", "B-q-comparison-000"], "show dragin.table2 --list` names those"),
        ([], "rag-repro show dragin.table2 --list"),
        (["--list", "--question", "q"], "one of both"),
        (["--list", "--again"], "--again goes with"),
    ],
)
def test_what_cannot_be_shown_is_one_line(capsys, words, message):
    tier = ["--tier", "testbed", "--results", str(RECORDS)]
    assert cli.main(["show", "dragin.table2", *words, *tier]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


# ------------------------------------------------------------------ one question


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (
            ["dragin.table2", "--question", "B-q-comparison-0000", "--method", "dragin"],
            [
                "  verdict   right, by em",
                "  threshold 0.02",
                "  timing    drafts 5, alarms 4, words judged 57",
                "  search 2  gold found B-p000083, words taken 19 of 21",
                "  no record of other decisions;",
                "--method dragin",
            ],
        ),
        (
            ["drrag.table3", "--question", "B-q-compositional2-0000", "--method", "cfs"],
            [
                "  threshold 0.5",
                "  pair      B-p000219 + B-p003360: both needed, classifier 0.8950",
            ],
        ),
        (
            ["erm4.table2", "--question", "B-q-paraphrase-0013", "--method", "memory"],
            [
                "  filter    B-p001882a: entailment, 0.8831, static",
                "  memory    titles alike 108, searched for no, recalled 10",
            ],
        ),
        (
            ["r2ag.table1", "--question", "B-q-comparison-0000", "--method", "r2ag"],
            ["  no record of other decisions;", "  hit 10    B-p000180 "],
        ),
    ],
)
def test_a_committed_record_tells_what_it_keeps_and_how_to_see_the_rest(capsys, words, lines):
    told = printed(capsys, *words)
    for line in lines:
        assert line in told
    assert max(map(len, told.splitlines())) <= traces.WIDE
    assert "distinct 1" not in told  # of the thirty scores only the exhibit's own


def test_two_methods_and_no_other_are_shown(capsys):
    words = ["dragin.table2", "--question", "B-q-comparison-0000"]
    told = printed(capsys, *words, "--method", "sr", "--method", "fl")
    assert re.findall(r"^method (\w+),", told, re.M) == ["sr", "fl"]


def test_without_the_data_the_record_alone_is_shown(capsys, monkeypatch):
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    words = ["drrag.table3", "--question", "2hop__29873_679424", "--method", "cfs"]
    told = printed(capsys, *words)
    assert "  texts     not at hand: musique: no folder" in told
    assert "  hit 1     serbo-croatian.1691c485 (gold)" in told
    assert "both needed, classifier 0.8704" in " ".join(told.split())


def test_a_list_without_the_data_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    words = ["drrag.table3", "--list", "--dataset", "musique", "--method", "cfs"]
    first, _, _, _, row, *_ = printed(capsys, *words).splitlines()
    assert first.endswith("texts of musique are not at hand: `rag-repro data card NAME`")
    assert re.fullmatch(
        r"\| \dhop__\d+_\d+ \| musique \| \dhop \| – \| (none \| cfs|cfs \| none) \|", row
    )


def test_asked_again_the_whole_trace_is_shown(capsys, monkeypatch):
    answer = dataclasses.replace(traced("cfs", k=4), hits=(), prediction="made up")
    before = []

    def asked_again(one, *given):
        before.extend(one.lines)  # a memory is made from these
        return [(None, answer)]

    monkeypatch.setattr(again, "in_their_turn", asked_again)
    words = ["drrag.table3", "--question", "B-q-compositional2-0000", "--method", "cfs"]
    told = printed(capsys, *words, "--again", "--tier", "testbed")
    assert "  again     not as recorded: 'made up'" in told
    assert f"  query     {golden.QUESTIONS[0].text!r}"[:60] in told
    assert "no record" not in told
    assert len(before) == 500


def test_a_reader_that_is_not_here_hides_no_other_answer(capsys):
    words = ["r2ag.table1", "--question", "B-q-comparison-0000", "--method", "r2ag_raft", "--again"]
    told = printed(capsys, *words, "--tier", "testbed", "--dataset", "world-B-10")
    assert "again     not asked: " in told
    assert "  verdict   " in told


class Outline(HTMLParser):
    """Which elements a page has, those that are open at its end, and its addresses."""

    def __init__(self, page: str):
        super().__init__()
        self.open, self.tags, self.given = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.given += [(tag, *pair) for pair in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("what", [["--question", "B-q-comparison-0000"], ["--list"]])
def test_a_page_stands_alone_and_is_accessible(capsys, tmp_path, what):
    words = ["dragin.table2", *what, "--tier", "testbed", "--method", "dragin", "--html"]
    page = printed(capsys, *words)
    assert printed(capsys, *words, str(tmp_path / "page.html")) == ""
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    made = Outline(page)
    assert made.open == []
    assert page.startswith("<!doctype html>")
    assert ("html", "lang", "en") in made.given
    assert ("th", "scope", "col") in made.given
    assert [made.tags.count(tag) for tag in ("title", "main", "h1")] == [1, 1, 1]
    assert made.tags.count("caption") == made.tags.count("table") > 0
    assert not {"link", "script", "img"} & set(made.tags)
    assert not {"src", "href"} & {name for _, name, _ in made.given}
