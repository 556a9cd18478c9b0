"""Which conditions are run, in which order, and what is left of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro.bars import Bar
from rag_repro.study import campaign, papers, records, runner
from rag_repro.study.campaign import least, once, select
from rag_repro.study.names import Untrained
from rag_repro.study.papers import Cell, StudyError
from rag_repro.study.scores import Results
from rag_repro.words import duration
from tests.study.scripted import DATASET, Shop, condition, use_methods


def cell(method="walk", role="primary", n=None, exhibit="mini.table1"):
    keys = {"dataset": "little", "method": method}
    return Cell(exhibit, "public", role, keys, condition(method), n)


@pytest.fixture
def methods(monkeypatch):
    use_methods(monkeypatch)


def test_primary_conditions_come_first():
    cells = select(["drrag.split", "drrag.table5"], tier="public")
    roles = [c.role for c in cells]
    assert roles == sorted(roles)
    assert set(roles) == {"primary", "secondary"}


def test_each_condition_is_taken_once():
    alone = select(["drrag.table5"])
    together = select(["drrag.table5", "drrag.roles", "drrag.kinds"])
    # Not in the same order: what is secondary in one may be primary in another.
    assert {c.condition.hash for c in together} == {c.condition.hash for c in alone}
    assert len(together) == len({c.condition.hash for c in alone}) == len(alone)


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(50, 200, 200), (200, 50, 200), (50, None, None)]
)
@pytest.mark.usefixtures("methods")
def test_a_condition_of_two_exhibits_gets_the_larger_n(first, second, kept):
    [merged] = once([cell(role="secondary", n=second), cell(n=first)])
    assert (merged.role, merged.n) == ("primary", kept)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (("a",), ("a",), (("a",), 3)),
        (("a",), (), ((), None)),
        (("a",), ("b",), (("a", "b"), None)),
    ],
)
@pytest.mark.usefixtures("methods")
def test_a_condition_asked_with_different_kinds_is_asked_them_all(first, second, kept):
    cells = [replace(cell(n=3), kinds=kinds) for kinds in (first, second)]
    [merged] = once(cells)
    assert (merged.kinds, merged.n) == kept


@pytest.mark.usefixtures("methods")
def test_only_questions_of_a_cells_kinds_are_asked_and_read(tmp_path, monkeypatch):
    made = DATASET.questions
    odd = tuple(replace(q, kind="yes_no") if i % 2 else q for i, q in enumerate(made))
    monkeypatch.setattr(Shop, "dataset", lambda *_: replace(DATASET, questions=odd))
    whole, few = cell(), replace(cell(n=2), kinds=("yes_no",))
    assert campaign.wanted(few, Shop(), None) == {"q1", "q3"}
    assert campaign.run([few], Shop(), tmp_path) == 2
    assert [line["id"] for line in Results(tmp_path).lines(few)] == ["q1", "q3"]
    assert campaign.run([whole], Shop(), tmp_path) == 4
    assert len(Results(tmp_path).lines(whole)) == 6
    assert [line["id"] for line in Results(tmp_path).lines(few)] == ["q1", "q3"]


def test_tier_role_data_set_and_method_narrow_the_choice():
    cells = select(
        ["drrag.table5"],
        tier="public",
        role="secondary",
        datasets=["musique"],
        methods=["sm", "qdc"],
    )
    assert len(cells) == 2 * 3
    assert {(c.tier, c.role, c.keys["dataset"]) for c in cells} == {
        ("public", "secondary", "musique")
    }
    assert {c.keys["method"] for c in cells} == {"sm", "qdc"}


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"datasets": ["musiqe"]}, r"dataset 'musiqe', did you mean 'musique'\?; there are: 2wiki"),
        ({"methods": ["qcd"]}, r"method 'qcd', did you mean 'qdc'"),
        ({"tier": "paper"}, "these exhibits have none at this tier"),
    ],
)
def test_what_no_condition_has_is_refused(wish, message):
    with pytest.raises(StudyError, match=message):
        select(["drrag.table5"], **wish)


def test_unknown_exhibits_are_refused():
    with pytest.raises(StudyError, match=r"did you mean 'drrag.table5'"):
        select(["drrag.table55"])


@pytest.mark.usefixtures("methods")
def test_questions_are_wanted_up_to_both_limits():
    shop = Shop()
    assert len(campaign.wanted(cell(), shop, None)) == 6
    assert campaign.wanted(cell(n=4), shop, 5) == {"q0", "q1", "q2", "q3"}
    assert campaign.wanted(cell(n=4), shop, 2) == {"q0", "q1"}


@pytest.mark.usefixtures("methods")
def test_the_bar_counts_every_answer_of_a_burst(tmp_path, monkeypatch):
    seen = []
    close = Bar.close
    monkeypatch.setattr(Bar, "close", lambda bar: seen.append((bar.n, bar.total)) or close(bar))
    campaign.run([cell()], Shop(), tmp_path, n=4)
    assert (4, 4) in seen


@pytest.mark.usefixtures("methods")
def test_run_goes_through_all_cells_up_to_their_n(tmp_path):
    cells = [cell(n=2), cell("stumble", n=5)]
    assert campaign.run(cells, Shop(), tmp_path, n=4) == 2 + 4
    assert campaign.run(cells, Shop(), tmp_path, n=4) == 0
    assert len(records.load(tmp_path, cells[1].condition)) == 4


@pytest.mark.usefixtures("methods")
def test_what_is_not_trained_holds_up_nothing_else(tmp_path):
    class Untaught(Shop):
        def services(self, condition):
            if condition.method == "walk":
                raise Untrained("'walker' is not trained on this machine: rag-repro train walker")
            return super().services(condition)

    cells = [cell(), cell("stumble", n=5)]
    with pytest.raises(StudyError, match=r"1 of 2 conditions were passed over.*train walker"):
        campaign.run(cells, Untaught(), tmp_path)
    assert len(records.load(tmp_path, cells[1].condition)) == 5
    assert campaign.run(cells[1:], Untaught(), tmp_path) == 0


@pytest.mark.usefixtures("methods")
@pytest.mark.parametrize(
    ("error", "shown"), [(ValueError("no such index"), False), (KeyError("rewriter"), True)]
)
def test_an_error_in_one_condition_holds_up_none_behind_it(tmp_path, caplog, error, shown):
    class Broken(Shop):
        def services(self, condition):
            if condition.method == "walk":
                raise error
            return super().services(condition)

    cells = [cell(), cell("stumble", n=5)]
    with pytest.raises(StudyError, match=rf"1 of 2 conditions were stopped.*{error.args[0]}"):
        campaign.run(cells, Broken(), tmp_path)
    assert len(records.load(tmp_path, cells[1].condition)) == 5
    # Where the error came from is told of those that are nobody's fault but ours.
    [told] = [record for record in caplog.records if "stopped" in record.message]
    assert bool(told.exc_info) is shown
    with pytest.raises(type(error)):
        campaign.run(cells[:1], Broken(), tmp_path)


@pytest.mark.usefixtures("methods")
def test_a_full_disk_stops_the_whole_campaign(tmp_path):
    class Full(Shop):
        def services(self, condition):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        campaign.run([cell(), cell("stumble")], Full(), tmp_path)


@pytest.mark.usefixtures("methods")
def test_shards_reach_every_cell(tmp_path):
    assert campaign.run([cell(), cell("stumble")], Shop(), tmp_path, shard=(1, 2)) == 6


@pytest.mark.usefixtures("methods")
def test_failures_of_finished_shards_are_asked_again_too(tmp_path):
    of = cell("stumble")
    for i in (1, 2):
        campaign.run([of], Shop(), tmp_path, shard=(i, 2))
    assert records.find(tmp_path, of.condition) is None  # none has joined them yet
    assert campaign.run([of], Shop(), tmp_path, failed=True) == 1
    assert campaign.run([of], Shop(), tmp_path) == 0


@pytest.mark.usefixtures("methods")
def test_an_estimate_has_a_line_a_condition_and_their_sum(tmp_path, monkeypatch):
    asked = []

    def trial(condition, workshop, missing, **_):
        asked.append(missing)
        return runner.Estimate(missing, 4, 20.0, {"retrievals": 2.25})

    monkeypatch.setattr(runner, "estimate", trial)
    campaign.run([cell("stumble")], Shop(), tmp_path)
    alike = cell(n=4)
    alike = replace(alike, condition=condition("walk", settings={"k": 3}))
    cells = [cell(), cell("stumble"), cell("fall", n=3), alike]
    one, two, three, four, total = campaign.estimate(cells, Shop(), tmp_path, n=5)
    assert asked == [5, 3]  # one trial per method, whatever its settings
    assert "5 questions, about 1.7 min (4 tried; a question: 2.2 retrievals)" in one
    assert two.endswith("complete")
    assert three.startswith(cell("fall").condition.path)
    assert "4 questions, about 80 s" in four
    assert four.endswith(f", as {cell().condition.hash}")
    assert total.startswith("4 conditions, about 4.0 min on this machine")


@pytest.mark.usefixtures("methods")
def test_an_estimate_tells_what_cannot_be_tried_and_goes_on(tmp_path, monkeypatch):
    def estimate(condition, workshop, missing, **_):
        if condition == cell("stumble").condition:
            raise Untrained("first: rag-repro train it")
        return runner.Estimate(5, 4, 20.0, {})

    monkeypatch.setattr(runner, "estimate", estimate)
    first, *_, total = campaign.estimate([cell("stumble"), cell("fall")], Shop(), tmp_path, n=5)
    assert first.endswith("5 questions, not tried: first: rag-repro train it")
    assert total.startswith("2 conditions, 1 of them not tried; at least 1.7 min")
    with pytest.raises(Untrained):
        list(campaign.estimate([cell("stumble")], Shop(), tmp_path, n=5))


@pytest.mark.usefixtures("methods")
def test_an_estimate_names_what_is_not_here_and_does_not_make_it(tmp_path, monkeypatch):
    def never(*given, **named):
        raise AssertionError("something was made for an estimate")

    monkeypatch.setattr(campaign.runner, "estimate", never)
    monkeypatch.setattr(Shop, "lacks", lambda shop, condition, small: "an index")
    one, total = campaign.estimate([cell()], Shop(), tmp_path, n=5)
    assert one.endswith("5 questions, not tried: it needs an index first")
    assert total.startswith("1 conditions, 1 of them not tried; at least 0 s")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (90, "1.5 min"), (5399, "90.0 min"), (5400, "1.5 h")],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


def test_least_ignores_what_is_not_set():
    assert (least(None, None), least(None, 3), least(5, 3)) == (None, 3, 3)


def test_a_paper_asked_for_in_part_leaves_the_loaded_one_alone():
    before = papers.load("drrag")
    select(["drrag.table5"], datasets=["musique"])
    assert replace(before) == papers.load("drrag")


# --------------------------------------------------------------------------- timed exhibits


def test_each_command_refuses_the_others_exhibits():
    with pytest.raises(StudyError, match=r"drrag\.fig3 is timed: rag-repro time drrag\.fig3"):
        select(["drrag.table5", "drrag.fig3"])
    with pytest.raises(StudyError, match=r"table5 holds no times: rag-repro run drrag\.table5"):
        select(["drrag.table5"], timed=True)
    assert all(c.timed for c in select(["drrag.fig3"], timed=True))


@pytest.mark.usefixtures("methods")
def test_a_timed_condition_stands_beside_the_same_that_is_not():
    plain = cell()
    fig, other = (replace(plain, exhibit=n, timed=True) for n in ("mini.fig", "mini.o"))
    assert once([plain, fig, other, fig]) == [plain, fig, other]
