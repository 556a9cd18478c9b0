"""Which contrasts decide a claim, and which are corrected together."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from rag_repro.study import papers
from rag_repro.study.conditions import TIERS
from rag_repro.study.judge import judge
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results
from tests.study import mini
from tests.study.mini import rewrite

GAIN = "- {metric: recall, more: {method: qdc}, less: {method: sm}, delta: 2.0}"
LOSS = "- {metric: recall, more: {method: sm}, less: {method: qdc}, delta: 2.0}"


def judged(tmp_path, contrasts, recall, tier="public"):
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    paper = mini.paper(folder, contrasts)
    mini.fill(folder / "records", paper, recall, tier=tier)
    return judge(paper, tier, Results(folder / "records"))


def shares(sm, qdc):
    return lambda method, dataset, k, rng: mini.coin({"sm": sm, "qdc": qdc}[method], 100, rng)


def test_where_there_are_primary_contrasts_they_alone_decide(tmp_path):
    aside = LOSS.replace("delta: 2.0", "delta: 2.0, role: secondary")
    [claim] = judged(tmp_path, f"{aside}\n{GAIN}", shares(0.5, 0.7))
    assert claim.verdict.word == "reproduced"
    assert [part.verdict.word for part in claim.parts] == ["not reproduced", "reproduced"]
    assert claim.headline.contrast.role == "primary"


def test_several_primary_contrasts_must_all_hold(tmp_path):
    contrasts = f"{GAIN}\n{LOSS.replace('delta: 2.0', 'delta: 2.0, label: the other way')}"
    [claim] = judged(tmp_path, contrasts, shares(0.5, 0.7))
    assert claim.verdict.word == "not reproduced"
    assert claim.verdict.reason == "fails: the other way (of 2 parts)"
    assert claim.headline.interval.estimate == pytest.approx(-20)


def test_no_loss_holds_for_any_gain_where_a_margin_does_not(tmp_path):
    same = GAIN.replace("delta: 2.0", "margin: 5.0")
    [claim] = judged(tmp_path, same, shares(0.5, 0.8))
    assert claim.verdict.word == "not reproduced"
    no_loss = GAIN.replace("delta: 2.0", "margin: 5.0, no_loss: true")
    [claim] = judged(tmp_path, no_loss, shares(0.5, 0.8))
    assert claim.verdict.word == "reproduced"


def test_no_loss_fails_where_the_loss_is_beyond_the_margin(tmp_path):
    no_loss = GAIN.replace("delta: 2.0", "margin: 5.0, no_loss: true")
    [claim] = judged(tmp_path, no_loss, shares(0.8, 0.5))
    assert claim.verdict.word == "not reproduced"


def test_secondary_contrasts_of_all_claims_of_an_exhibit_are_corrected_together(tmp_path):
    secondary = GAIN.replace("delta: 2.0", "delta: 2.0, role: secondary")
    paper = mini.paper(tmp_path, secondary)
    mini.fill(tmp_path / "records", paper, shares(0.5, 0.6))
    [alone] = judge(paper, "public", Results(tmp_path / "records"))
    claims = tmp_path / "mini" / "claims.yaml"
    text = claims.read_text()
    claims.write_text(text + text.replace("mini.c01", "mini.c02"))
    both = judge(papers.read(tmp_path / "mini"), "public", Results(tmp_path / "records"))
    assert len(both) == 2
    # Holm: the smaller p is tested at 5 % / 2, the larger at 5 %.
    assert alone.parts[0].interval.level == 0.95
    assert sorted(claim.parts[0].interval.level for claim in both) == [0.95, 0.975]
    assert max(c.parts[0].interval.width for c in both) > alone.parts[0].interval.width


def test_what_is_missing_is_named_whichever_side_it_is(tmp_path):
    paper = mini.paper(tmp_path, GAIN)
    mini.fill(tmp_path / "records", paper, shares(0.5, 0.6))
    for cell in paper.exhibits["table1"].cells("public"):
        if cell.keys["method"] == "sm" and cell.keys["dataset"] == "musique":
            next(tmp_path.glob(f"records/{cell.condition.path}.jsonl")).unlink()
    [claim] = judge(paper, "public", Results(tmp_path / "records"))
    assert claim.verdict.reason == "no records of MuSiQue, Similarity, k = 3"


def test_kinds_that_no_question_has_are_told_from_a_missing_record(tmp_path):
    only = GAIN.replace("delta: 2.0", "delta: 2.0, kinds: [inference]")
    [claim] = judged(tmp_path, only, shares(0.5, 0.7))
    assert claim.verdict.word == "not judged"
    assert claim.verdict.reason == "no question is of the kinds inference"


def test_a_data_set_without_questions_of_the_kinds_has_no_say(tmp_path):
    only = GAIN.replace("delta: 2.0", "delta: 2.0, kinds: [inference]")
    paper = mini.paper(tmp_path, only)
    mini.fill(tmp_path / "records", paper, shares(0.5, 0.7))
    for cell in paper.exhibits["table1"].cells("public"):
        if cell.keys["dataset"] == "musique":
            rewrite(tmp_path / "records", cell.condition, lambda line: line | {"kind": "inference"})
    [claim] = judge(paper, "public", Results(tmp_path / "records"))
    assert claim.verdict.word == "reproduced"
    assert claim.headline.interval.n == 100


def test_a_target_with_a_delta_claims_to_fall_short_of_it(tmp_path):
    short = "- {metric: recall, more: {method: sm}, target: 90.0, delta: 10.0}"
    [claim] = judged(tmp_path, short, shares(0.5, 0.7))
    assert claim.verdict.word == "reproduced"
    assert claim.headline.interval.estimate == pytest.approx(90 - 50)
    [claim] = judged(tmp_path, short.replace("90.0", "20.0"), shares(0.5, 0.7))
    assert claim.verdict.word == "not reproduced"


def test_above_a_target_it_claims_to_exceed_it(tmp_path):
    over = "- {metric: recall, more: {method: sm}, target: 50.0, delta: 10.0, above: true}"
    [claim] = judged(tmp_path, over, shares(0.8, 0.5))
    assert claim.verdict.word == "reproduced"
    assert claim.headline.interval.estimate == pytest.approx(30)
    [claim] = judged(tmp_path, over, shares(0.3, 0.5))
    assert claim.verdict.word == "not reproduced"


def test_only_questions_where_both_sides_found_something(tmp_path):
    found = GAIN.replace("delta: 2.0", "delta: 2.0, among: {passages: found}")
    paper = mini.paper(tmp_path, found)
    records = tmp_path / "records"
    mini.fill(records, paper, shares(0.5, 0.7))
    for cell in paper.exhibits["table1"].cells("public"):
        # Nothing on the first 30 by SM, on the last 20 by QDC; the next one tells nothing of it.
        none = range(30) if cell.keys["method"] == "sm" else range(80, 100)

        def change(line, none=none):
            number = mini.number(line)
            line["scores"] = line["scores"] | {"passages": float(number not in none)}
            if number == 30:
                del line["scores"]["passages"]
            return line

        rewrite(records, cell.condition, change)
    [claim] = judge(paper, "public", Results(records))
    assert claim.headline.interval.n == 2 * 49


def test_a_data_set_with_a_handful_of_such_questions_has_no_say(tmp_path):
    higher = GAIN.replace("delta: 2.0", "delta: 2.0, among: {passages: higher}")
    paper = mini.paper(tmp_path, higher)

    def judged(numbers):
        """numbers: data set -> how many of its first questions have more passages by QDC."""
        records = tmp_path / f"records-{numbers}"
        mini.fill(records, paper, shares(0.5, 0.7))
        for cell in paper.exhibits["table1"].cells("public"):
            more = numbers[cell.keys["dataset"]] if cell.keys["method"] == "qdc" else 0

            def change(line, more=more):
                passages = float(mini.number(line) < more)
                line["scores"] = line["scores"] | {"passages": passages}
                return line

            rewrite(records, cell.condition, change)
        return judge(paper, "public", Results(records))[0].headline.interval.n

    assert judged({"hotpotqa": 60, "musique": 10}) == 70
    assert judged({"hotpotqa": 60, "musique": 9}) == 60
    assert judged({"hotpotqa": 8, "musique": 9}) == 17  # else nothing is left


SECOND = """  table2:
    title: Recall again
    place: table 2
    metrics: [recall]
    methods:
      one: {label: One, run: single_step, retriever: minilm, settings: {prompt: short}}
      two: {label: Two, run: qdc, retriever: minilm}
    grids:
      - {tier: public, datasets: [hotpotqa], methods: [one, two], settings: {k: [3]}}
"""
ELSEWHERE = (
    "- {exhibit: mini.table2, metric: recall, more: {method: two}, less: {method: one}, delta: 2.0}"
)


def test_a_contrast_may_compare_cells_of_another_exhibit(tmp_path, monkeypatch):
    monkeypatch.setattr(mini, "PAPER", mini.PAPER + SECOND)
    paper = mini.paper(tmp_path, f"{LOSS}\n{ELSEWHERE}")
    results = Results(tmp_path / "records")
    mini.fill(tmp_path / "records", paper, shares(0.5, 0.7))
    [waits] = judge(paper, "public", results)
    assert waits.parts[1].verdict.reason == "no records of HotpotQA, One, k = 3"
    # Its second row is a condition of the first exhibit; the other is its own.
    [own] = [c for c in paper.exhibits["table2"].cells() if c.keys["method"] == "one"]
    with open_record(tmp_path / "records", own.condition, {}) as record:
        for i in range(100):
            scores = {"recall": float(i < 40)}
            name = f"q{i}-{own.keys['dataset']}"  # as `mini.fill` has it
            record.append({"id": name, "cluster": name, "hits": [], "scores": scores})
    [claim] = judge(paper, "public", Results(tmp_path / "records"))
    assert [part.verdict.word for part in claim.parts] == ["not reproduced", "reproduced"]
    assert claim.parts[1].interval.estimate == pytest.approx(30)


def test_secondary_contrasts_are_corrected_with_those_of_the_exhibit_that_they_compare(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(
        mini, "PAPER", mini.PAPER + SECOND.replace(", settings: {prompt: short}", "")
    )
    both = f"{GAIN}\n{ELSEWHERE}".replace("delta: 2.0", "delta: 2.0, role: secondary")
    paper = mini.paper(tmp_path, both)
    mini.fill(tmp_path / "records", paper, shares(0.5, 0.7))
    [claim] = judge(paper, "public", Results(tmp_path / "records"))
    assert [part.interval.level for part in claim.parts] == [0.95, 0.95]


def test_an_exhibit_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(
        papers.StudyError, match=r"claim mini.c01: exhibit 'mini.table2' is unknown"
    ):
        mini.paper(tmp_path, ELSEWHERE)


def test_a_verdict_is_of_its_own_tier(tmp_path):
    paper = mini.paper(tmp_path, GAIN)
    mini.fill(tmp_path / "records", paper, shares(0.5, 0.7), tier="testbed")
    words = [judge(paper, t, Results(tmp_path / "records"))[0].verdict.word for t in TIERS]
    assert words == ["mechanism holds", "not run", "not judged"]


INTERACTION = (
    "- {metric: recall, more: {method: qdc, k: 4}, less: {method: sm, k: 4}, "
    "minus: {more: {method: qdc, k: 3}, less: {method: sm, k: 3}}, delta: 2.0}"
)


def four(sm3, qdc3, sm4, qdc4):
    levels = {("sm", 3): sm3, ("qdc", 3): qdc3, ("sm", 4): sm4, ("qdc", 4): qdc4}
    return lambda method, dataset, k, rng: mini.coin(levels[method, k], 100, rng)


def test_an_interaction_subtracts_one_difference_from_another(tmp_path):
    [claim] = judged(tmp_path, INTERACTION, four(0.2, 0.3, 0.4, 0.9))
    assert claim.headline.interval.estimate == pytest.approx(50 - 10)
    assert claim.verdict.word == "reproduced"
    # Two gains that add up and no more.
    [claim] = judged(tmp_path, INTERACTION, four(0.2, 0.6, 0.4, 0.8))
    assert claim.headline.interval.estimate == pytest.approx(0, abs=1e-9)
    # The first side lower, the last two sides decide: each sign counts.
    [claim] = judged(tmp_path, INTERACTION, four(0.1, 0.9, 0.4, 0.5))
    assert claim.headline.interval.estimate == pytest.approx(10 - 80)
    assert claim.verdict.word == "not reproduced"


def test_the_order_in_which_minus_is_written_does_not_count(tmp_path):
    turned = INTERACTION.replace(
        "{more: {method: qdc, k: 3}, less: {method: sm, k: 3}}",
        "{less: {method: sm, k: 3}, more: {method: qdc, k: 3}}",
    )
    [claim] = judged(tmp_path, turned, four(0.2, 0.3, 0.4, 0.9))
    assert claim.headline.interval.estimate == pytest.approx(40)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("less: {method: sm, k: 4}, minus", "target: 3, minus"), "minus needs"),
        (("minus: {more", "minus: {most"), "minus needs"),
        (("delta: 2.0", "margin: 2.0"), "minus needs"),
        (("delta: 2.0", "delta: 2.0, among: {recall: higher}"), "minus goes with no"),
        (("less: {method: sm, k: 3}", "less: {method: sn, k: 3}"), "method 'sn' is unknown"),
    ],
)
def test_an_interaction_that_cannot_be_is_refused(tmp_path, changed, message):
    assert changed[0] in INTERACTION
    with pytest.raises(papers.StudyError, match=message):
        mini.paper(tmp_path, INTERACTION.replace(*changed))
