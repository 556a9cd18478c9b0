"""A chapter's desk: committed records by default, a run of one's own where it is moved."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro.show import exhibit_rows
from rag_repro.show.chapter import Chapter, Listing
from rag_repro.show.picture import Note
from rag_repro.study import campaign, papers, records, runner
from rag_repro.study.papers import StudyError
from rag_repro.study.services import Workshop
from tests.study import mini

WORLD = "world-B@1000"
GAIN = "- {metric: recall, more: {method: qdc}, less: {method: sm}, delta: 2.0}"
DEFAULTS = {
    "tier": "all", "dataset": "", "retriever": "", "n_questions": None, "live_calls": 8,
    "seed": 0, "device": "cpu", "batch_size": 4,
}  # fmt: skip


def parameters(**given):
    changed = tuple(name for name in DEFAULTS if name in given)
    return SimpleNamespace(**DEFAULTS | given, changed=changed)


class Home(SimpleNamespace):
    """The project's folder: its committed records and those of this machine."""

    @property
    def committed(self):
        return self.root / "results" / "records"

    @property
    def local(self):
        return self.root / "results" / "local" / "records"

    def desk(self, **given):
        return Chapter("mini", parameters(**given), self.root, exhibits=("table1",))

    def cell(self, **wanted):
        [found] = [c for c in self.paper.exhibits["table1"].cells() if c.matches(wanted)]
        return found

    def fill(self):
        """Made-up records of every cell: the baseline finds 62 of 100, the other 78."""
        shares = {"sm": 0.62, "qdc": 0.78}
        for tier in ("public", "testbed"):
            mini.fill(
                self.committed,
                self.paper,
                lambda m, d, k, rng: mini.coin(shares[m], 100, rng),
                tier=tier,
            )


@pytest.fixture
def home(tmp_path, monkeypatch):
    """One paper with a little world; its first method is BM25's, the second is dense."""
    text = mini.PAPER.replace("[world-B]", f"[{WORLD}]").replace("[sm, qdc, cfs]", "[sm, qdc]")
    text = text.replace("run: single_step, retriever: minilm", "run: single_step, retriever: bm25")
    monkeypatch.setattr(mini, "PAPER", text)
    paper = mini.paper(tmp_path, GAIN)
    monkeypatch.setattr(papers, "PAPERS", tmp_path)
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "cache"))
    papers.load.cache_clear()
    yield Home(paper=paper, root=tmp_path)
    papers.load.cache_clear()


@pytest.fixture
def still(monkeypatch):
    """Nothing may be run or loaded."""

    def refuse(*args, **kwargs):
        pytest.fail("the desk ran something")

    monkeypatch.setattr(campaign, "run", refuse)
    monkeypatch.setattr(Workshop, "services", refuse)


@pytest.fixture
def asked(monkeypatch):
    """How many questions each run of the desk has asked."""
    counts = []
    run = campaign.run

    def counted(*args, **kwargs):
        counts.append(run(*args, **kwargs))
        return counts[-1]

    monkeypatch.setattr(campaign, "run", counted)
    return counts


# ----------------------------------------------------------- committed records


def test_by_default_the_committed_records_are_shown_and_nothing_runs(home, still):
    home.fill()
    desk = home.desk()
    [row] = desk.rows("table1", dataset="musique", method="qdc", k=3, metric="recall")
    assert (row.ours.estimate, row.ours.n) == (pytest.approx(78), 100)
    assert row.diff.estimate == pytest.approx(16)
    assert desk.tiers() == ["public", "testbed"]
    # three data sets, two methods, k = 3 and 4, a hundred questions each
    assert repr(desk.source_note) == "Shown are committed records: 1,200 answers."
    assert not home.local.exists()


def test_rows_are_picked_by_key_list_metric_and_tier(home, still):
    home.fill()
    desk = home.desk()
    assert len(desk.rows("table1", "testbed")) == 8
    assert len(desk.rows("table1", "testbed", k=[3, 4], metric="recall", method="sm")) == 2
    assert desk.rows("table1", role="secondary") == []
    only = home.desk(tier="testbed")
    assert only.tiers() == ["testbed"]
    assert {row.tier for row in only.rows("table1")} == {"testbed"}


def test_an_exhibits_rows_are_made_once_a_tier_whatever_is_picked(home, still, monkeypatch):
    home.fill()
    desk = home.desk()
    made = []
    real = exhibit_rows.rows
    monkeypatch.setattr(exhibit_rows, "rows", lambda *given: made.append(given[3]) or real(*given))
    for wanted in ({}, {"k": 3}, {"method": "qdc"}):
        for tier in (None, "public"):
            rows = real(desk.paper, home.paper.exhibits["table1"], desk.results, tier)
            keep = [r for r in rows if all(r.keys.get(k) == v for k, v in wanted.items())]
            assert desk.rows("table1", tier, **wanted) == keep
    assert made == [None, "public"]


def test_of_fewer_questions_the_first_are_shown(home, still):
    home.fill()
    desk = home.desk(n_questions=7)
    cell = home.cell(dataset="hotpotqa", method="qdc", k=3)
    lines = records.load(home.committed, cell.condition).lines
    first = [line["scores"]["recall"] for line in lines][:7]
    assert np.mean(first) != np.mean([line["scores"]["recall"] for line in lines])
    [row] = desk.rows("table1", metric="recall", dataset="hotpotqa", method="qdc", k=3)
    assert (row.ours.n, row.ours.estimate) == (7, pytest.approx(100 * np.mean(first)))
    assert repr(desk.source_note) == (
        "Shown are committed records: 84 answers, the first 7 of each data set."
    )


def test_claims_and_statements(home, still):
    home.fill()
    desk = home.desk()
    [public, testbed] = desk.claims(["mini.c01"]).body
    assert public[:3] == ["mini.c01: Concatenation finds more.", "public", "reproduced"]
    assert public[3] == "exploratory"
    assert public[4].startswith("+16.00 [")
    assert public[4].endswith("] points, clear in 4 of 4 cells, n 200")
    assert testbed[1:3] == ["testbed", "mechanism holds"]
    [line] = desk.statements(["mini.c01"]).body
    assert line == ["mini.c01 (abstract): Concatenation finds more.", "+4", "yes"]


def test_claims_that_were_changed_after_records_were_seen_say_so(home, still):
    assert "No test of these claims was changed" in repr(home.desk().changed(["mini.c01"]))
    claims = home.root / "mini" / "claims.yaml"
    one = claims.read_text().replace(
        "  scale:", "  changed: &why it asked something else\n  scale:"
    )
    two = one.replace("mini.c01", "mini.c02").replace("&why it asked something else", "[of, *why]")
    claims.write_text(one + two)
    papers.load.cache_clear()
    told = home.desk().changed(["mini.c01", "mini.c02"])
    assert told.body == [["mini.c01, mini.c02", "it asked something else"], ["mini.c02", "of"]]


def test_secondary_contrasts_stand_apart(home, still):
    aside = GAIN.replace("}, delta: 2.0}", "}, delta: 2.0, role: secondary, label: again}")
    mini.paper(home.root, f"{GAIN}\n{aside}")
    papers.load.cache_clear()
    assert isinstance(home.desk().asides(["mini.c01"]), Note)
    home.fill()
    desk = home.desk()
    [public, testbed] = desk.asides(["mini.c01"]).body
    assert public[:4] == ["mini.c01", "public", "again", "reproduced"]
    assert public[4].startswith("+16.00 [")
    assert testbed[1:4] == ["testbed", "again", "mechanism holds"]
    with pytest.raises(StudyError, match=r"no claim 'mini.c02', did you mean 'mini.c01'"):
        desk.asides(["mini.c02"])


def test_the_table_has_the_rows_labels(home, still):
    home.fill()
    desk = home.desk()
    text = repr(desk.table("table1", desk.rows("table1", "testbed", k=3, metric="recall")))
    assert "Concatenation" in text
    assert "78.00" in text


def test_a_condition_to_show_live_is_the_testbeds(home, still):
    desk = home.desk()
    assert desk.condition("table1", method="qdc", k=3).dataset == WORLD
    assert desk.condition("table1", method="qdc", k=3, dataset="musique").dataset == "musique"
    with pytest.raises(StudyError, match=r"mini\.table1 has no cell with .*'k': 5"):
        desk.condition("table1", k=5)


# ------------------------------------------------------------- a run of its own


def test_a_moved_chapter_runs_what_is_missing_and_shows_that(home, asked):
    home.fill()
    moved = {"dataset": WORLD, "retriever": "bm25", "n_questions": 4}
    desk = home.desk(**moved)
    assert asked == [16]  # two methods, k = 3 and 4
    made = desk.rows("table1")
    assert {(row.tier, row.keys["dataset"], row.ours.n) for row in made} == {("testbed", WORLD, 4)}
    assert len(made) == 8
    assert {c.condition.retriever for c in desk.paper.exhibits["table1"].cells()} == {"bm25"}
    cell = desk.paper.exhibits["table1"].cells()[0]
    assert len(records.load(home.local, cell.condition)) == 4
    assert repr(desk.source_note) == (
        f"Run for this page, with `dataset = '{WORLD}'`, `retriever = 'bm25'`, "
        "but for what is committed already."
    )
    before = sorted(home.committed.rglob("*"))
    assert home.desk(**moved).rows("table1") == made
    assert asked == [16, 0]
    assert sorted(home.committed.rglob("*")) == before


def test_data_sets_of_the_exhibit_that_are_missing_are_left_out(home, asked):
    desk = home.desk(retriever="bm25", n_questions=2)
    assert asked == [8]  # the world's four conditions; no real data is named
    held = [row for row in desk.rows("table1") if row.ours]
    assert {row.keys["dataset"] for row in held} == {WORLD}


def test_data_that_was_asked_for_and_is_missing_stops_the_run(home):
    with pytest.raises(ValueError, match="RAG_REPRO_DATA"):
        home.desk(dataset="musique", retriever="bm25", n_questions=2)


@pytest.fixture
def goldless(monkeypatch):
    """The k of conditions that are stopped, as those that need gold where none is named."""
    stopped, run = [], runner.run

    def refusing(condition, *args, **kwargs):
        if condition.settings["k"] in stopped:
            raise ValueError("question 'q1' names no gold passages")
        return run(condition, *args, **kwargs)

    monkeypatch.setattr(runner, "run", refusing)
    return stopped


def test_conditions_that_an_error_stops_are_told_beside_the_others(home, goldless):
    goldless.append(4)
    desk = home.desk(dataset=WORLD, retriever="bm25", n_questions=2)
    assert {row.keys["k"] for row in desk.rows("table1") if row.ours} == {3}
    said = repr(desk.source_note)
    assert "2 of 4 conditions were stopped" in said
    assert "question 'q1' names no gold passages" in said


def test_where_an_error_stops_all_of_them_the_chapter_stops(home, goldless):
    goldless += [3, 4]
    with pytest.raises(StudyError, match="4 of 4 conditions were stopped"):
        home.desk(dataset=WORLD, retriever="bm25", n_questions=2)


def test_a_local_record_of_other_data_is_set_aside(home, asked):
    cell = home.cell(dataset=WORLD, method="sm", k=3)
    with records.open_record(home.local, cell.condition, {"corpus": "another"}) as record:
        record.append({"id": "old", "cluster": "old", "hits": [], "scores": {"recall": 1.0}})
    desk = home.desk(dataset=WORLD, retriever="bm25", n_questions=2)
    [stale] = home.local.rglob("*.stale")
    assert stale.name.startswith(cell.condition.path.rsplit("/", 1)[1])
    assert b"another" in stale.read_bytes()
    [row] = desk.rows("table1", method="sm", k=3, metric="recall")
    assert row.ours.n == 2


# ------------------------------------------------------------------- asked again


@pytest.fixture
def recorded(home):
    """True records of the two conditions of BM25 on the world, five questions each."""
    cells = [home.cell(dataset=WORLD, method="sm", k=k) for k in (3, 4)]
    campaign.run(cells, Workshop(), home.committed, n=5)
    return cells


def test_recorded_questions_come_out_the_same(home, recorded):
    note = home.desk().live("table1")
    assert isinstance(note, Note)
    assert note.text == "8 of 8 recorded answers came out the same on this machine, just now."


def backwards(line):
    return line | {"hits": line["hits"][::-1]}


def test_a_key_that_only_some_cells_have_is_empty_in_the_others(home, recorded, monkeypatch):
    """As the seed of what was trained."""
    for cell in recorded:
        mini.rewrite(home.committed, cell.condition, backwards)
    desk = home.desk()
    cells = desk._cells(desk.paper.exhibit("table1"))
    later = [replace(c, keys={**c.keys, "seed": 1}) if c.keys["k"] == 4 else c for c in cells]
    monkeypatch.setattr(desk, "_cells", lambda exhibit: later)
    table = desk.live("table1")
    assert table.head == ["dataset", "method", "k", "seed", "asked again", "the same"]
    assert table.body == [
        [WORLD, "Similarity", "3", "", 4, 0],
        [WORLD, "Similarity", "4", "1", 4, 0],
    ]
    assert "seed" in table._repr_html_()


def test_an_altered_record_is_not_the_same_and_has_a_row(home, recorded):
    mini.rewrite(home.committed, recorded[1].condition, backwards)
    table = home.desk(live_calls=4).live("table1")
    assert table.head == ["dataset", "method", "k", "asked again", "the same"]
    assert table.body == [[WORLD, "Similarity", "4", 2, 0]]
    assert table.caption.startswith("2 of 4 recorded answers")


def test_where_every_condition_is_secondary_these_are_asked_again(home, asked, monkeypatch):
    world = "      - tier: testbed\n"
    text = mini.PAPER.replace(world, f"{world}        role: secondary\n")
    text = text.replace("      - tier: public\n", "      - tier: public\n        role: secondary\n")
    monkeypatch.setattr(mini, "PAPER", text)
    mini.paper(home.root, GAIN)
    papers.load.cache_clear()
    cell = home.cell(dataset=WORLD, method="sm", k=3)
    campaign.run([cell], Workshop(), home.committed, n=5)
    assert home.desk().live("table1").text.startswith("5 of 5 recorded answers")


def test_beside_a_primary_condition_no_secondary_one_is_asked_again(home, recorded, monkeypatch):
    # The world's records, and a condition of real data without any that is primary.
    world = "      - tier: testbed\n"
    text = mini.PAPER.replace(world, f"{world}        role: secondary\n")
    monkeypatch.setattr(mini, "PAPER", text)
    mini.paper(home.root, GAIN)
    papers.load.cache_clear()
    assert isinstance(home.desk().live("table1"), Note)


def test_no_more_is_asked_than_there_is_and_nothing_where_none_is_wanted(home, recorded):
    assert home.desk(live_calls=99).live("table1").text.startswith("10 of 10")
    note = home.desk(live_calls=0).live("table1")
    assert isinstance(note, Note)
    assert repr(note) == "No recorded question was asked again here."


def test_conditions_without_an_index_at_hand_are_left_out_and_counted(home, recorded, monkeypatch):
    class Encoder:
        fingerprint = "encoder-1"

        def encode(self, texts):
            pytest.fail("a corpus was encoded")

    monkeypatch.setattr(Workshop, "encoder", lambda self, name: Encoder())
    with records.open_record(
        home.committed, home.cell(dataset=WORLD, method="qdc", k=3).condition, {}
    ) as record:
        record.append({"id": "q", "cluster": "q", "hits": [], "scores": {}})
    said = home.desk().live("table1").text
    assert said.startswith("8 of 8 ")
    assert said.endswith("; 1 condition left out, for want of an index.")


def test_it_says_what_conditions_that_are_left_out_lack(home, recorded, monkeypatch):
    wants = {3: "trained weights", 4: "an index"}
    monkeypatch.setattr(Workshop, "lacks", lambda self, c: wants.get(c.settings["k"]))
    assert home.desk().live("table1").text == (
        "No recorded question was asked again here; "
        "2 conditions left out, for want of trained weights (1), an index (1)."
    )


def test_real_data_that_is_not_at_hand_is_not_asked_again(home, still):
    home.fill()
    assert isinstance(home.desk(tier="public").live("table1"), Note)


def test_a_listing_is_the_packages_own_source():
    shown = Listing(campaign.least, campaign.duration)
    assert shown._repr_markdown_().startswith("```python\ndef least(")
    assert "\n\ndef duration(" in repr(shown)
