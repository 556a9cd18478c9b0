"""The ledger's page: a row a claim with all that is said of it, and rules that hide rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rag_repro
from rag_repro.publish import ledger_page
from rag_repro.show import ledger
from rag_repro.study import papers
from rag_repro.study.conditions import TIERS
from rag_repro.study.scores import Results

STYLE = Path(rag_repro.__file__).parents[1] / "book/_static/rag_repro.css"
CHAPTERS = {"mini.c01": "11_mini_recall"}


def page(book):
    made = ledger_page.entries([papers.load("mini")], book.results())
    return ledger_page.Ledger(made, CHAPTERS)


def rules(ledger):
    """The style rules of its filter."""
    return ledger._repr_html_().split("</style>")[0].removeprefix("<style>")


def shown(html):
    return re.sub(r"<[^>]+>", " ", html.split("<tbody>")[1])


def test_a_row_has_the_claim_the_papers_numbers_and_each_tiers_verdict(book):
    book.fill()
    html = page(book)._repr_html_()
    [_, public, _] = ledger.rows(book.results())
    text = shown(html)
    for wanted in (
        *("mini.c01", "Concatenation finds more.", "abstract", "chapter 11", "mini.table1"),
        *("(table 1)", "+4", "yes", "reproduced", "not run", "no records of world-B"),
        f"+16.00 [+{public['lo']}, +{public['hi']}] points, clear in 4 of 4 cells, n 200",
        f"δ 2, detectable {public['mde']}",
    ):
        assert wanted in text, wanted
    assert 'href="11_mini_recall.html#verdicts"' in html
    row = 'id="mini.c01" data-paper="mini" data-at-testbed="not-run" data-at-public="reproduced"'
    assert row in html
    assert repr(page(book)) == "mini.c01: testbed not run; public reproduced; paper not judged"


def test_rows_and_verdicts_are_those_of_the_command(book):
    book.fill()
    rows = {(row["id"], row["tier"]): row for row in ledger.rows(book.results())}
    for entry in page(book).entries:
        for tier, judged in entry.judged.items():
            made = ledger.of_judged(entry.paper, judged, entry.findings)
            assert made == rows[entry.claim.id, tier]


def test_hostile_text_stays_text(book):
    claims = book.root / "mini" / "claims.yaml"
    told = claims.read_text().replace("claim: Concatenation", 'claim: "<script>x</script>"  #')
    claims.write_text(told)
    papers.load.cache_clear()
    html = page(book)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;x" in html


# ------------------------------------------------------------------------- the filter


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """All papers without a record."""
    known = [papers.load(name) for name in papers.names()]
    empty = Results(tmp_path_factory.mktemp("none"))
    return ledger_page.Ledger(ledger_page.entries(known, empty), {})


def test_every_claim_of_every_paper_has_one_row(whole):
    html = whole._repr_html_()
    ids = re.findall(r'<tr id="([^"]+)"', html)
    assert sorted(ids) == sorted(c.id for n in papers.names() for c in papers.load(n).claims)
    assert len(ids) > 170


def test_each_choice_has_its_button_and_its_rule(whole):
    html = whole._repr_html_()
    buttons = re.findall(r'<input type="radio" name="rr-(\w+)" value="([\w-]+)"( checked)?>', html)
    assert [value for name, value, _ in buttons if name == "tier"] == ["all", *TIERS]
    assert {value for _, value, on in buttons if on} == {"all"}
    made = rules(whole)
    for name, value, _ in buttons:
        if value != "all":
            assert f'name="rr-{name}"][value="{value}"]:checked' in made, (name, value)
    assert "<script" not in html


def hidden(html, **chosen):
    """Ids of the rows that the page's own rules hide, read as a browser does."""
    chosen = {"paper": "all", "tier": "all", "verdict": "all", **chosen}
    gone = set()
    for selector in re.findall(r"(\.rr-ledger[^{]*)\{display:none\}", html):
        wanted = re.findall(
            r':has\(input\[name="rr-(\w+)"\]\[value="([\w-]+)"\]:checked\)', selector
        )
        rows = re.search(r"tbody tr((?::not\(\[[^]]+\]\))+)", selector)
        if rows is None or any(chosen[name] != value for name, value in wanted):
            continue
        unless = re.findall(r':not\(\[([\w-]+)="([\w-]+)"\]\)', rows[1])
        for tag in re.findall(r"<tr id=[^>]+>", html):
            held = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
            if all(held[key] != value for key, value in unless):
                gone.add(held["id"])
    return gone


def test_the_rules_hide_what_is_not_chosen(book):
    book.fill()
    html = page(book)._repr_html_()
    assert hidden(html) == set()
    assert hidden(html, paper="mini") == set()
    assert hidden(html, verdict="reproduced") == set()
    assert hidden(html, verdict="reproduced", tier="public") == set()
    assert hidden(html, verdict="reproduced", tier="testbed") == {"mini.c01"}
    assert hidden(html, verdict="not-run", tier="public") == {"mini.c01"}
    assert hidden(html, verdict="not-run", tier="testbed") == set()
    # At both tiers with this word no claim has a verdict: neither shows until it is chosen.
    assert hidden(html, verdict="not-run") == {"mini.c01"}


def test_a_paper_hides_the_others(whole):
    gone = hidden(whole._repr_html_(), paper="erm4")
    others = {entry.paper.name for entry in whole.entries} - {"erm4"}
    assert {claim.split(".")[0] for claim in gone} == others


def test_a_tier_hides_the_cells_of_the_others(whole):
    for place, tier in enumerate(TIERS, start=3):
        [rule] = [r for r in rules(whole).splitlines() if f'"{tier}"]:checked) :is(' in r]
        assert f".rr-{tier}," not in rule
        assert f":not(:nth-child({place}))" in rule
        assert all(f".rr-{other}" in rule for other in TIERS if other != tier)


def test_a_tier_without_a_verdict_shows_when_it_is_chosen(book, whole):
    book.fill()
    made = page(book)
    assert made.idle == ["testbed", "paper"]
    for tier, place in (("testbed", 3), ("paper", 5)):
        wanted = f'"all"]:checked) :is(.rr-{tier},thead th:nth-child({place})){{display:none}}'
        assert wanted in rules(made)
    assert whole.idle == []
    assert '"all"]:checked) :is(' not in rules(whole)


def test_one_reason_of_all_tiers_stands_once(whole):
    html = whole._repr_html_()
    joint = re.findall(r'<td class="prose rr-every"[^>]* colspan="(\d)">', html)
    assert joint
    assert set(joint) == {str(len(TIERS))}
    for row in html.split("<tr id=")[1:]:
        cells = re.findall(r'<td class="prose rr-[^>]*data-tier="[^"]+"[^>]*>(.*?)</td>', row)
        assert len(cells) in (1, len(TIERS))
        assert len(cells) == 1 or len(set(cells)) > 1
    for tier in TIERS:
        assert f'"{tier}"]:checked) .rr-every{{display:block;border:0}}' in rules(whole)


def test_long_text_is_folded_behind_a_word(whole):
    html = whole._repr_html_()
    summaries = set(re.findall(r"<summary><small>([^<]+)</small></summary>", html))
    assert summaries == {"how it is tested", "why", "its numbers", "history of the test"}
    open_ = re.sub(r"<details>.*?</details>", "", html.split("<tbody>")[1])
    for cell in re.findall(r'<td class="prose rr-[^>]+>(.*?)</td>', open_):
        assert len(re.sub(r"<[^>]+>", "", cell)) <= ledger_page.LONG + 25, cell


def test_the_style_sheet_lays_the_page_out():
    style = STYLE.read_text(encoding="utf-8")
    html = ledger_page.Ledger([], {})._repr_html_()
    for name in ("rr-ledger", "rr-choices", "rr-count"):
        assert f".{name}" in style
        assert name in html
