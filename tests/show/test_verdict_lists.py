"""Claims by what was found of them, and the figure that shows them at a glance."""

from __future__ import annotations

import pytest

from rag_repro.evaluation.verdicts import WORDS
from rag_repro.publish import frontpage, verdict_summary
from rag_repro.show import ledger
from rag_repro.study import papers
from rag_repro.study.conditions import TIERS
from rag_repro.study.scores import Results


def row(claim, tier, verdict, paper="Mini"):
    made = {"id": claim, "paper": paper, "tier": tier, "verdict": verdict, "claim": "It helps."}
    made |= {
        "effect": "3.00",
        "lo": "1.00",
        "hi": "5.00",
        "n": 50,
        "delta": "2.00",
        "mde": "2.50",
        "unit": "points",
    }
    return made | {
        "reason": f"why {verdict}",
        "state": "exploratory",
        "small": False,
        "parts": 1,
        "main": False,
        "changed": "",
        "support": "yes",
        "place": "table 1",
        "told": "3.00 [1.00, 5.00] points",
        "smallest": "2",
    }


@pytest.fixture
def page(tmp_path):
    """A function: the lists of the front page that is made of these rows."""

    def made(rows):
        text = frontpage.text(Results(tmp_path), tmp_path, rows)
        return text.split("## Verdicts so far\n", 1)[1].split("\n## ", 1)[0]

    return made


def two(testbed, public):
    tiers = {"testbed": testbed, "public": public, "paper": "not run"}
    return [row("x.c01", tier, word) for tier, word in tiers.items()]


@pytest.mark.parametrize(
    ("testbed", "public", "wanted"),
    [
        ("mechanism holds", "reproduced", verdict_summary.HELD),
        ("mechanism holds", "not run", verdict_summary.HELD),
        ("mechanism holds", "inconclusive", verdict_summary.HELD),
        ("mechanism holds", "direction only", verdict_summary.DIRECTION),
        ("mechanism fails", "not reproduced", verdict_summary.FAILED),
        ("not run", "not reproduced", verdict_summary.FAILED),
        ("mechanism fails", "reproduced", verdict_summary.MIXED),
        ("mechanism holds", "not reproduced", verdict_summary.MIXED),
        ("mechanism fails", "direction only", verdict_summary.MIXED),
        ("inconclusive", "reader too weak", verdict_summary.OPEN),
        ("not run", "not run", verdict_summary.NEVER),
        ("not judged", "not run", verdict_summary.NEVER),
        ("not judged", "reproduced", verdict_summary.HELD),
    ],
)
def test_a_claim_stands_in_one_group(testbed, public, wanted):
    found = verdict_summary.sort(two(testbed, public))
    assert [name for name, held in found.items() if held] == [wanted]


def test_what_no_record_can_decide_is_told_from_what_was_not_run(tmp_path):
    nothing = Results(tmp_path)
    rows = [r for tier in TIERS for r in ledger.rows(nothing, ["r2ag"], [tier])]
    found = verdict_summary.sort(rows)
    never = {held[0]["id"] for held in found[verdict_summary.NEVER]}
    unknowable = {held[0]["id"] for held in found[verdict_summary.UNKNOWABLE]}
    paper = papers.load("r2ag")
    without = {claim.id for claim in paper.claims if claim.no_contrast}
    # And those whose formers no proof tries, whatever is recorded.
    assert unknowable - without == {f"r2ag.c{n}" for n in (12, 15, 16, 17, 36, 39, 41)}
    assert without < unknowable
    assert never == {claim.id for claim in paper.claims} - unknowable


def test_each_group_has_a_section_with_its_number_and_its_table(page):
    rows = two("mechanism holds", "reproduced")
    rows += [r | {"id": "x.c02"} for r in two("not run", "not reproduced")]
    text = page(rows)
    held, failed = text.split("### ")[1:]
    assert held.startswith("What held\n\n1 claim held")
    assert "{dropdown} Mini 1" in held
    assert "| claim | testbed | public |" in held
    assert held.count("| x.c01\\: It helps. |") == 1
    below = "3.00 \\[1.00, 5.00\\] points<br>δ 2, n 50"
    assert f"| mechanism holds<br>{below} | reproduced<br>{below} |" in held
    assert failed.startswith("What did not hold")
    assert "| claim | public |" in failed
    assert "| x.c02\\: It helps. | not reproduced<br>3.00" in failed
    assert "δ is the smallest effect" in text
    assert "δ" not in page(two("not run", "not run"))


def test_every_verdict_has_a_place_in_the_figure():
    assert {verdict_summary.GROUP_OF[word] for word in WORDS} == set(verdict_summary.GROUPS)


def test_the_figure_counts_claims_and_is_the_same_twice():
    rows = two("mechanism holds", "reproduced")
    rows += [r | {"id": "x.c02"} for r in two("mechanism fails", "inconclusive")]
    first, second = (verdict_summary.figure(rows) for _ in range(2))
    assert first.svg == second.svg
    assert "Mini, testbed: 1 holds, 1 does not hold. Mini, public: 1 holds, 1 incon" in first.alt
    assert first.alt.endswith("Mini, paper: 2 not run.")
    assert first.name == "fig-verdicts"


def test_what_has_no_records_has_no_colour_and_each_group_its_own_look():
    looks = {name: (colour, hatch) for name, (_, colour, hatch) in verdict_summary.GROUPS.items()}
    assert looks["not run"] == (None, "")
    assert {name for name, (colour, _) in looks.items() if colour is None} == {
        verdict_summary.NEVER,
        verdict_summary.UNKNOWABLE,
        verdict_summary.DEVICES,
    }
    assert len(set(looks.values())) == len({hatch for _, hatch in looks.values()}) + 1


def test_a_mechanism_that_holds_below_delta_says_so(page):
    made = page([row("a.c01", "testbed", "mechanism holds") | {"small": True}])
    assert r"mechanism holds \(below δ\)<br>" in made
    assert r"below δ\)" not in page([row("a.c01", "testbed", "mechanism holds")])


def test_a_verdict_of_several_parts_says_of_how_many(page):
    made = page([row("a.c01", "testbed", "mechanism holds") | {"parts": 2}])
    assert r"mechanism holds \(2 parts\)<br>" in made
    assert " parts\\)" not in page([row("a.c01", "testbed", "mechanism holds")])


def test_what_the_papers_numbers_speak_against_stands_apart_with_its_working(page):
    against = {
        "support": "no",
        "place": "table 1",
        "numbers": "3 of 9",
        "working": "Table 1, A less B: above in 3.",
    }
    rows = [r | against for r in two("not run", "reproduced")]
    rows += [r | {"id": "x.c02", "support": "yes"} for r in two("not run", "reproduced")]
    _, text = page(rows).split("### What a paper's own numbers speak against")
    assert "1 claim, whatever is found here." in text
    assert "| 3 of 9 | Table 1, A less B\\: above in 3. |" in text
    assert "x.c02" not in text
    assert verdict_summary.unborne([r | {"place": "summary"} for r in rows[:2]]) == []
    assert verdict_summary.unborne([r | {"support": "yes"} for r in rows]) == []
    assert "speak against" not in page([r | {"support": "yes"} for r in rows])


def test_a_verdict_of_a_registered_test_says_so(page):
    found = row("a.c01", "testbed", "mechanism holds")
    assert r"mechanism holds \(confirmed\)" in page([found | {"state": "confirmed"}])
    assert "exploratory" not in page([found])
    known = found | {"main": True}
    _, [[_, cell]] = verdict_summary.by_tier(verdict_summary.main([known]), brief=True)
    assert cell[-1] == "exploratory"


def test_claims_that_share_a_contrast_are_one_result(book):
    book.fill()
    [one] = ledger.rows(book.results(), ["mini"], ["public"])
    assert len(one["contrasts"]) == 1  # the secondary one decides nothing
    again = one | {"id": "mini.c02", "delta": "9.00"}  # another effect is asked for
    other = one | {"id": "mini.c03", "contrasts": ["apart"]}
    both = one | {"id": "mini.c04", "contrasts": ["apart", "more"]}
    assert verdict_summary.distinct([[one], [again]]) == 1
    assert frontpage.counted([[one], [again], [other]]) == "3 claims (2 distinct results)"
    assert verdict_summary.distinct([[one], [again], [other], [both]]) == 2
    last = one | {"id": "mini.c05", "contrasts": ["more"]}
    assert verdict_summary.distinct([[both], [other], [last]]) == 1
    bridge = both | {"contrasts": [*one["contrasts"], "more"]}
    assert verdict_summary.distinct([[one], [other], [both], [bridge]]) == 1
    assert frontpage.counted([[one], [other]]) == "2 claims"
