"""Verdicts from records made to reach each of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from rag_repro.show import ledger
from rag_repro.study import records
from rag_repro.study.judge import judge, pair_cells
from rag_repro.study.papers import StudyError
from rag_repro.study.scores import Results
from tests.study import mini
from tests.study.mini import coin, fill, paper, rewrite

GAIN = "- {metric: recall, more: {method: qdc}, less: {method: sm}, delta: 2.0}"


def verdict(tmp_path, contrasts, recall, tier="public", **options):
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    made = paper(folder, contrasts)
    fill(folder / "records", made, recall, tier=tier, **options)
    [judged] = judge(made, tier, Results(folder / "records"))
    return judged


def shares(**by_method):
    return lambda method, dataset, k, rng: coin(by_method[method], 100, rng)


def by_k(three, four):
    """Concatenation finds these shares at k = 3 and 4, similarity half at both."""
    found = {3: three, 4: four}
    return lambda method, dataset, k, rng: coin(found[k] if method == "qdc" else 0.5, 100, rng)


def test_a_clear_gain_is_reproduced_with_its_mean(tmp_path):
    judged = verdict(tmp_path, GAIN, shares(sm=0.5, qdc=0.7))
    assert judged.verdict.word == "reproduced"
    # 50 and 70 of 100 questions in each of two data sets; the interval is of their mean.
    assert judged.headline.interval.estimate == pytest.approx(20)
    assert judged.headline.interval.n == 200


def test_the_other_way_round_is_not_reproduced(tmp_path):
    assert verdict(tmp_path, GAIN, shares(sm=0.7, qdc=0.5)).verdict.word == "not reproduced"


def test_a_certain_but_small_gain_is_direction_only(tmp_path):
    def recall(method, dataset, k, rng):
        return 0.5 + (0.01 if method == "qdc" else 0.0) * rng.uniform(0.8, 1.2, 100)

    assert verdict(tmp_path, GAIN, recall).verdict.word == "direction only"


def test_noise_around_zero_is_inconclusive_and_says_what_could_be_seen(tmp_path):
    judged = verdict(
        tmp_path,
        GAIN.replace("2.0", "8.0"),
        lambda m, d, k, rng: (
            rng.permutation(coin(0.5, 100, rng)) if m == "qdc" else coin(0.5, 100, rng)
        ),
    )
    assert judged.verdict.word == "inconclusive"
    assert judged.verdict.mde > 8.0


def test_the_testbed_speaks_of_mechanisms(tmp_path):
    judged = verdict(tmp_path, GAIN, shares(sm=0.5, qdc=0.7), tier="testbed")
    assert judged.verdict.word == "mechanism holds"
    judged = verdict(tmp_path, GAIN, shares(sm=0.7, qdc=0.5), tier="testbed")
    assert judged.verdict.word == "mechanism fails"


PREMISE = (
    "- {label: it is heeded, premise: true, metric: recall, more: {method: qdc, k: 3}, "
    "less: {method: sm, k: 3}, delta: 2.0}\n"
    "- {label: it helps, metric: recall, more: {method: qdc, k: 4}, less: {method: sm, k: 4}, "
    "delta: 2.0}"
)


@pytest.mark.parametrize(
    ("heeded", "helps", "word"),
    [
        (0.8, 0.8, "reproduced"),
        (0.8, 0.2, "not reproduced"),
        # Where the premise fails nothing is said, whatever the rest would say.
        (0.2, 0.8, "not judged"),
        (0.2, 0.2, "not judged"),
    ],
)
def test_where_a_premise_fails_the_claim_is_not_judged(tmp_path, heeded, helps, word):
    judged = verdict(tmp_path, PREMISE, by_k(heeded, helps))
    assert judged.verdict.word == word
    if word == "not judged":
        assert judged.verdict.reason == "its test presumes what is not so here: it is heeded"


CONTROL = (
    "- {label: it helps, metric: recall, more: {method: qdc, k: 4}, less: {method: sm, k: 4}, "
    "delta: 2.0}\n"
    "- {label: beside chance, role: secondary, control: true, metric: recall, "
    "more: {method: qdc, k: 3}, less: {method: sm, k: 3}, delta: 2.0}"
)


@pytest.mark.parametrize(
    ("helps", "control", "word"),
    [
        (0.8, 0.8, "reproduced"),
        # An effect that its control shows as well has another cause.
        (0.8, 0.5, "inconclusive"),
        (0.8, 0.2, "inconclusive"),
        # No control makes a claim fail, or saves one.
        (0.2, 0.8, "not reproduced"),
        (0.2, 0.2, "not reproduced"),
        (0.5, 0.2, "inconclusive"),
    ],
)
def test_a_claim_holds_only_where_its_controls_do(tmp_path, helps, control, word):
    judged = verdict(tmp_path, CONTROL, by_k(control, helps))
    assert judged.verdict.word == word
    lacking = "but not its controls: beside chance (" in judged.verdict.reason
    assert lacking == (helps == 0.8 and control < 0.8)


def test_a_control_that_no_record_could_decide_is_named_and_keeps_nothing_back(tmp_path):
    absent = CONTROL.replace("{method: qdc, k: 3}", "{method: qdc, k: 3, dataset: world-B}")
    judged = verdict(tmp_path, absent, shares(sm=0.5, qdc=0.8))
    assert judged.verdict.word == "reproduced"
    told = ", without a control that can be tried here: beside chance (not judged)"
    assert judged.verdict.reason.endswith(told)


def test_controls_are_not_widened_for_their_number(tmp_path):
    """All of them must hold, which needs no correction."""
    several = CONTROL + "".join(
        f"\n- {{label: aside {i}, role: secondary, metric: recall, more: {{method: qdc, k: 3}}, "
        f"less: {{method: sm, k: 3}}, delta: {i + 3}.0}}"
        for i in range(4)
    )
    alone, beside = (verdict(tmp_path, c, shares(sm=0.5, qdc=0.6)) for c in (CONTROL, several))
    levels = [part.interval.level for part in beside.parts]
    assert levels[1] == alone.parts[1].interval.level == 0.95
    assert max(levels[2:]) > 0.95


def test_without_records_nothing_is_said(tmp_path):
    made = paper(tmp_path, GAIN)
    [judged] = judge(made, "public", Results(tmp_path / "records"))
    assert (judged.verdict.word, judged.headline.interval) == ("not run", None)
    assert "no records of HotpotQA, Concatenation, k = 3" in judged.verdict.reason


def test_a_row_that_waits_gives_its_reason(tmp_path):
    contrast = "- {metric: recall, more: {method: cfs}, less: {method: qdc}, delta: 2.0}"
    judged = verdict(tmp_path, contrast, shares(sm=0.5, qdc=0.7))
    assert judged.verdict.reason == "needs a classifier"


def test_a_claim_without_contrast_is_not_judged(tmp_path):
    assert verdict(tmp_path, "", shares(sm=0.5, qdc=0.7)).verdict.word == "not judged"


def test_each_fails_where_one_cell_fails(tmp_path):
    each = GAIN.replace("delta: 2.0", "delta: 2.0, rule: each")

    def recall(method, dataset, k, rng):
        worse = (dataset, k) == ("musique", 4)
        return coin({"sm": 0.5, "qdc": 0.3 if worse else 0.8}[method], 100, rng)

    judged = verdict(tmp_path, each, recall)
    assert judged.verdict.word == "not reproduced"
    assert judged.verdict.reason == "fails: MuSiQue, k = 4 (of 4 parts)"
    assert verdict(tmp_path, GAIN, recall).verdict.word == "reproduced"  # the mean hides it


def test_some_holds_where_one_cell_does_and_shows_its_numbers(tmp_path):
    some = GAIN.replace("delta: 2.0", "delta: 2.0, rule: some")

    def recall(good):
        def made(method, dataset, k, rng):
            share = {"sm": 0.5, "qdc": 0.8 if (dataset, k) in good else 0.3}[method]
            return coin(share, 100, rng)

        return made

    judged = verdict(tmp_path, some, recall({("musique", 4)}))
    assert judged.verdict.word == "reproduced"
    assert judged.verdict.reason == "holds: MuSiQue, k = 4 (of 4)"
    assert judged.headline.interval.estimate == pytest.approx(-7.5)  # pooled, one of four clear
    assert judged.headline.verdict.clear == (1, 4)
    assert verdict(tmp_path, some, recall(set())).verdict.word == "not reproduced"


def test_each_fails_where_one_cell_fails_though_others_lack_records(tmp_path):
    """Everywhere is refuted by one data set; it holds when all have been run."""
    each = GAIN.replace("delta: 2.0", "delta: 2.0, rule: each")
    made = paper(tmp_path, each)

    def judged(qdc, wanted):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        fill(folder, made, shares(sm=0.5, qdc=qdc))
        for file in folder.rglob("*"):
            if file.is_file() and not file.relative_to(folder).as_posix().startswith(wanted):
                file.unlink()
        return judge(made, "public", Results(folder))[0].verdict

    assert judged(0.2, "musique").word == "not reproduced"
    assert judged(0.8, "musique").word == "not run"
    assert "no records of HotpotQA" in judged(0.8, "musique").reason
    assert judged(0.8, "").word == "reproduced"
    # A mean over some of its data sets is another mean.
    mean = paper(Path(tempfile.mkdtemp(dir=tmp_path)), GAIN)
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    fill(folder, mean, shares(sm=0.5, qdc=0.2))
    for file in (folder / "hotpotqa").iterdir():
        file.unlink()
    assert judge(mean, "public", Results(folder))[0].verdict.word == "not run"


def test_a_margin_claims_no_difference(tmp_path):
    same = "- {metric: recall, more: {method: qdc}, less: {method: sm}, margin: 6.0}"

    def near(method, dataset, k, rng):
        return 0.5 + 0.02 * rng.standard_normal(100).clip(-2, 2)

    assert verdict(tmp_path, same, near).verdict.word == "reproduced"
    assert verdict(tmp_path, same, shares(sm=0.5, qdc=0.9)).verdict.word == "not reproduced"


def test_a_level_is_judged_around_its_target(tmp_path):
    level = "- {metric: recall, more: {method: sm}, target: 50.0, margin: 8.0}"

    def near(method, dataset, k, rng):
        return (0.5 + 0.02 * rng.standard_normal(100)).clip(0, 1)

    judged = verdict(tmp_path, level, near)
    assert judged.verdict.word == "reproduced"
    assert judged.headline.interval.estimate == pytest.approx(50, abs=1)
    far = level.replace("50.0", "80.0")
    assert verdict(tmp_path, far, near).verdict.word == "not reproduced"


def test_a_level_may_be_claimed_to_fall_short(tmp_path):
    short = "- {metric: recall, more: {method: sm}, target: 100.0, delta: 20.0}"
    judged = verdict(tmp_path, short, shares(sm=0.5, qdc=0.5))
    assert judged.verdict.word == "reproduced"
    assert judged.headline.interval.estimate == pytest.approx(50)  # half is missing
    full = verdict(tmp_path, short, shares(sm=1.0, qdc=0.5))
    assert full.verdict.word == "not reproduced"


def test_kinds_limit_the_questions(tmp_path):
    only = GAIN.replace("delta: 2.0", "delta: 2.0, kinds: [comparison]")

    def recall(method, dataset, k, rng):
        # every second question is a comparison: qdc gains there and loses elsewhere
        return [0.0 if (i % 2 == 0) == (method == "qdc") else 1.0 for i in range(100)]

    judged = verdict(tmp_path, only, recall, kinds=("bridge", "comparison"))
    assert judged.headline.interval.estimate == pytest.approx(100)
    assert judged.headline.interval.n == 100


def test_a_data_set_without_questions_of_the_kind_has_no_say(tmp_path):
    only = GAIN.replace("delta: 2.0", "delta: 2.0, kinds: [comparison]")
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    made = paper(folder, only)
    fill(folder / "records", made, shares(sm=0.5, qdc=0.7), kinds=("comparison",))
    for cell in made.exhibits["table1"].cells("public"):
        if cell.keys["dataset"] == "musique":
            records.find(folder / "records", cell.condition).unlink()
            with records.open_record(folder / "records", cell.condition, {}) as writer:
                line = {"id": "m", "kind": "2hop", "cluster": "m", "hits": [], "gold": []}
                writer.append({**line, "scores": {"recall": 1.0}})
    [judged] = judge(made, "public", Results(folder / "records"))
    assert judged.headline.interval.n == 100  # hotpotqa alone
    nobody = paper(folder, only.replace("comparison", "riddle"))
    [judged] = judge(nobody, "public", Results(folder / "records"))
    assert judged.verdict.reason == "no question is of the kinds riddle"


def test_sides_may_read_different_metrics(tmp_path):
    contrast = (
        "- {metric: recall, more: {method: sm, metric: passages}, "
        "less: {method: sm, metric: recall}, where: {k: 3}, delta: 1.0}"
    )
    made = paper(tmp_path, contrast)
    fill(tmp_path / "records", made, lambda *a: 0.01)
    [judged] = judge(made, "public", Results(tmp_path / "records"))
    assert judged.headline.interval.estimate == pytest.approx(2.0)  # 3 passages, 1 point


def test_secondary_contrasts_are_widened_together(tmp_path):
    one = GAIN.replace("delta: 2.0", "delta: 2.0, role: secondary")
    few = verdict(tmp_path, one, shares(sm=0.5, qdc=0.6))
    back = "- {metric: recall, more: {method: sm}, less: {method: qdc}, delta: 2, role: secondary}"
    many = verdict(tmp_path, "\n".join([one, back]), shares(sm=0.5, qdc=0.6))
    assert many.parts[0].interval.width > few.parts[0].interval.width
    assert few.headline is None


def test_only_common_questions_count(tmp_path):
    made = paper(tmp_path, GAIN)
    root = tmp_path / "records"
    fill(root, made, shares(sm=0.5, qdc=0.7))
    cell = next(c for c in made.exhibits["table1"].cells("public") if c.keys["method"] == "qdc")
    path = records.find(root, cell.condition)
    record = records.load(root, cell.condition)
    path.unlink()
    with records.open_record(root, cell.condition, {}) as writer:
        for line in record.lines[:40]:
            writer.append(line)
    [judged] = judge(made, "public", Results(root))
    assert judged.headline.interval.n == 140  # 40 of hotpotqa, 100 of musique


def test_pairs_are_alike_in_all_that_is_not_compared(tmp_path):
    made = paper(tmp_path, GAIN)
    [claim] = made.claims
    pairs = list(pair_cells(made.exhibits["table1"], claim.contrasts[0], "public"))
    assert len(pairs) == 4
    for more, less in pairs:
        assert (more.keys["method"], less.keys["method"]) == ("qdc", "sm")
        assert {k: more.keys[k] for k in ("dataset", "k")} == {
            k: less.keys[k] for k in ("dataset", "k")
        }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("- {metric: recall, more: {}, less: {}}", "either a delta or a margin"),
        ("- {metric: recall, more: {}, less: {}, delta: 1, margin: 1}", "either a delta"),
        ("- {metric: recall, more: {}, less: {}, delta: 1, no_loss: true}", "no_loss needs"),
        ("- {metric: recall, more: {}, delta: 1}", "a side `less`, or a target"),
        ("- {metric: recall, more: {}, target: 1, margin: 1, above: true}", "above needs a target"),
        ("- {metric: recall, more: {}, less: {}, delta: 1, above: true}", "above needs a target"),
        (
            "- {metric: recall, more: {}, less: {}, delta: 1, rule: all}",
            "'rule' cannot be 'all'; there are: mean, each, some",
        ),
        ("- {metric: recall, mor: {}, less: {}, delta: 1}", "'mor', did you mean 'more'"),
        ("- {metric: recall, less: {}, delta: 1}", "'more' is missing"),
    ],
)
def test_wrong_contrasts_are_refused_with_their_place(tmp_path, wrong, message):
    with pytest.raises(StudyError, match=rf"mini/claims.yaml, claim mini.c01: .*{message}"):
        paper(tmp_path, wrong)


def test_a_premise_decides_nothing_alone(tmp_path):
    with pytest.raises(StudyError, match="premises alone decide nothing"):
        paper(tmp_path, PREMISE.splitlines()[0])
    with pytest.raises(StudyError, match="a premise is primary"):
        paper(tmp_path, PREMISE.replace("premise: true", "premise: true, role: secondary"))


def test_flipping_scores_changes_number_and_verdict(tmp_path):
    """30 % of the scores turned round: what was reproduced no longer is."""
    before = verdict(tmp_path, GAIN, shares(sm=0.5, qdc=0.62))

    def flipped(method, dataset, k, rng):
        values = coin({"sm": 0.5, "qdc": 0.62}[method], 100, rng)
        if method == "qdc":
            hits = [i for i, v in enumerate(values) if v == 1][:30]
            values[hits] = 0
        return values

    after = verdict(tmp_path, GAIN, flipped)
    assert before.verdict.word == "reproduced"
    assert after.verdict.word == "not reproduced"
    assert after.headline.interval.estimate == pytest.approx(12 - 30)


def test_the_parts_of_a_secondary_contrast_are_corrected_as_its_mean_is(tmp_path):
    """One of twenty: what a 95 % interval would refute stays open."""
    where = "where: {dataset: hotpotqa, k: 3}, delta: 2.0, role: secondary"
    one = GAIN.replace("delta: 2.0", where)
    each = one.replace("role:", "rule: each, role:")
    worse = shares(sm=0.5, qdc=0.46)
    judged = verdict(tmp_path, "\n".join([GAIN, each, *[one] * 19]), worse)
    part = judged.parts[1]
    assert part.interval.level > 0.99
    assert part.interval.hi > 2.0
    assert part.verdict.word == "inconclusive"
    alone = verdict(tmp_path, each.replace("role: secondary", "role: primary"), worse)
    assert alone.verdict.word == "not reproduced"


def test_data_sets_that_share_their_questions_are_no_two_samples(tmp_path):
    mine = paper(tmp_path, GAIN)
    names = ("hotpotqa", "musique")
    gain = lambda m, d, k, rng: coin(0.5 if m == "sm" else 0.7, 100, rng)  # noqa: E731
    fill(tmp_path / "apart", mine, gain)
    fill(tmp_path / "shared", mine, gain)
    for cell in mine.exhibits["table1"].cells("public"):
        assert cell.keys["dataset"] in names
        rewrite(
            tmp_path / "shared",
            cell.condition,
            lambda line: line | {key: line["id"].partition("-")[0] for key in ("id", "cluster")},
        )
    apart, shared = (
        judge(mine, "public", Results(tmp_path / name))[0].headline.interval
        for name in ("apart", "shared")
    )
    assert (apart.n, shared.n) == (200, 100)
    assert shared.estimate == apart.estimate
    assert shared.width > 1.2 * apart.width


def test_exploratory_verdicts_use_all_records_and_registered_ones_exactly_n(tmp_path, monkeypatch):
    """The first 40 of each data set speak for it; all hundred do not."""
    grid = "methods: [sm, qdc, cfs]\n"
    monkeypatch.setattr(mini, "PAPER", mini.PAPER.replace(grid, f"{grid}        n: 40\n"))
    made = paper(tmp_path, GAIN)
    for n in (30, 100):
        right = [i < 40 for i in range(n)]
        sides = {"qdc": right, "sm": [not one for one in right]}
        fill(tmp_path / str(n), made, lambda m, d, k, rng, sides=sides: sides[m], n=n)

    def judged(n, **options):
        return judge(made, "public", Results(tmp_path / str(n)), **options)[0].verdict

    assert (judged(100).interval.n, judged(100).word) == (200, "not reproduced")
    fixed = judged(100, registered={"mini.c01"})
    assert (fixed.interval.n, fixed.word) == (80, "reproduced")
    assert judged(100, cut=True).interval == fixed.interval
    short = judged(30, registered={"mini.c01"})
    assert short.word == "not run"
    assert short.reason == "30 of 40 questions of HotpotQA, Concatenation, k = 3"


def apart(of_cell, rest):
    """sm is right half of the time, qdc on other questions, as often as its cell says."""

    def recall(method, dataset, k, rng):
        right = coin(0.5 if method == "sm" else of_cell.get((dataset, k), rest), 100, rng)
        return rng.permutation(right) if method == "qdc" else right

    return recall


def test_the_headline_is_pooled_over_the_cells_and_says_in_how_many_it_is_clear(tmp_path):
    each = GAIN.replace("delta: 2.0", "delta: 8.0, rule: each")
    recall = apart({("hotpotqa", 3): 0.55}, rest=0.9)
    part = verdict(tmp_path, each, recall).headline
    assert part.verdict.word == "inconclusive"  # for the first cell
    assert part.interval.estimate == pytest.approx((5 + 40 + 40 + 40) / 4)
    assert part.verdict.clear == (3, 4)
    assert ledger.format_effect(part).endswith(" points, clear in 3 of 4 cells")


def test_an_everywhere_claim_fails_by_holm_over_its_parts_and_cells(tmp_path):
    """A cell that fails by itself is one of four, or of eight in two parts."""
    each = GAIN.replace("delta: 2.0", "delta: 2.0, rule: each")
    one = GAIN.replace("delta", "where: {dataset: hotpotqa, k: 3}, delta")
    recall = apart({("hotpotqa", 3): 0.36}, rest=0.55)
    assert verdict(tmp_path, one, recall).verdict.word == "not reproduced"
    held = verdict(tmp_path, each, recall)
    assert held.verdict.word == "inconclusive"
    part = verdict(tmp_path, f"{one}\n{each}", recall).parts[0]
    assert (part.verdict.word, part.interval.level) == ("inconclusive", 0.95)
    assert part.verdict.reason.endswith("but not at 99 % (Holm)")
    # By far it fails among as many.
    far = verdict(tmp_path, f"{one}\n{each}", shares(sm=0.9, qdc=0.1))
    assert far.verdict.word == "not reproduced"


def test_a_claim_that_some_are_enough_for_holds_by_holm_over_them(tmp_path):
    """A cell that holds by itself is one of four."""
    some = GAIN.replace("delta: 2.0", "delta: 2.0, rule: some")
    one = GAIN.replace("delta", "where: {dataset: hotpotqa, k: 3}, delta")
    recall = apart({("hotpotqa", 3): 0.65}, rest=0.5)
    assert verdict(tmp_path, one, recall).verdict.word == "reproduced"
    held = verdict(tmp_path, some, recall)
    assert held.verdict.word == "inconclusive"
    assert verdict(tmp_path, some, shares(sm=0.1, qdc=0.9)).verdict.word == "reproduced"
    # A cell that fails takes nothing from the others.
    mixed = apart({("hotpotqa", 3): 0.95}, rest=0.1)
    assert verdict(tmp_path, some, mixed).verdict.word == "reproduced"


# ------------------------------------------------------------------------ devices


def answered_on(root, made, *machines):
    """A manifest beside each record: as many machines as rows, in turn."""
    for cell in made.exhibits["table1"].cells("public"):
        where = machines[["sm", "qdc"].index(cell.keys["method"])]
        entry = {"start": "2026-01-01T00:00:00+00:00", "questions": 100, "machine": where}
        entry["packages"] = {"torch": "2.13.0"}
        (root / f"{cell.condition.path}.manifest.json").write_text(json.dumps([entry]))


CPU, GPU = "x86_64, 2 cores, Linux", "x86_64, 16 cores, Linux, NVIDIA H200"


@pytest.mark.parametrize("rule", ["mean", "each"])
def test_sides_from_two_devices_get_no_verdict(tmp_path, rule):
    made = paper(tmp_path, GAIN.replace("delta", f"rule: {rule}, delta"))
    root = tmp_path / "records"
    fill(root, made, shares(sm=0.5, qdc=0.7))
    for machines, word in (((CPU, CPU), "reproduced"), ((CPU, GPU), "mixed")):
        answered_on(root, made, *machines)
        found = judge(made, "public", Results(root))[0].verdict
        assert found.word == word
    assert found.reason.endswith(
        "HotpotQA, Concatenation, k = 3: its sides are from CPU, torch 2.13.0 and NVIDIA H200, "
        "torch 2.13.0"
    )


def test_what_needs_more_than_ten_thousand_questions_is_undecidable_here(tmp_path):
    tiny = GAIN.replace("2.0", "0.5")
    found = verdict(tmp_path, tiny, apart({}, rest=0.5)).verdict
    assert found.word == "undecidable here"
    assert "0.5 would need " in found.reason
    assert int(found.reason.split()[-2].replace(",", "")) > 10_000
    # It stands in no decided verdict's place.
    assert verdict(tmp_path, tiny, shares(sm=0.7, qdc=0.5)).verdict.word == "not reproduced"
    near = verdict(tmp_path, tiny.replace("0.5", "8.0"), apart({}, rest=0.5)).verdict
    assert near.word == "inconclusive"
