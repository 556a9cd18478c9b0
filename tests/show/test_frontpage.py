"""The front page: every number from records, every text escaped, links that lead somewhere."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import rag_repro
from rag_repro.publish import frontpage, verdict_summary
from rag_repro.publish.templating import render
from rag_repro.show import exhibit_rows, ledger
from rag_repro.study import campaign, papers, records
from rag_repro.study.scores import Results
from tests.study import mini
from tests.study.mini import rewrite

ROOT = Path(rag_repro.__file__).parents[1]
BIBLIOGRAPHY = ROOT / "book" / "references.bib"


def page(book):
    return frontpage.text(Results(book.records), book.root)


def section(text, title):
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_without_records_the_page_is_whole(book):
    text = page(book)
    assert text.startswith("# Four RAG papers, re-tested\n")
    assert "Nothing is recorded yet." in text
    assert "No claim has records yet." in section(text, "Verdicts so far")
    assert "There is no verdict to be sure of." in section(text, "How sure are we")
    never = section(text, "Verdicts so far")
    assert "### What has not been run\n\n1 claim has no record" in never
    assert "| mini.c01\\: Concatenation finds more. | public\\: no records of" in never
    assert "{figure}" not in text
    next_ = section(text, "What comes next")
    assert "{dropdown} Mini: 12 conditions to be run\n- Not run: " in next_
    assert "Not run: 8 of 8 conditions of `mini.table1` at tier `public`" in next_
    assert "`rag-repro run mini.table1 --tier public`" in next_
    assert "Chapters" not in text
    assert "\n\n\n" not in text


def test_the_four_papers_are_cited_by_keys_of_the_bibliography(book):
    for short, cite in frontpage.BOOK.items():
        assert f"{short} {{cite}}`{cite}`" in page(book)
        assert re.search(rf"^@\w+{{{cite},", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.M)


def test_verdicts_are_counted_by_paper_and_tier_and_listed_with_what_they_rest_on(book):
    book.fill()
    text = page(book)
    verdicts = section(text, "Verdicts so far")
    assert "| paper, tier | holds | not run |" in verdicts
    assert "| Mini, public | 1 |  |" in verdicts
    assert "| Mini, testbed |  | 1 |" in verdicts
    [row] = [r for r in ledger.rows(book.results()) if r["tier"] == "public"]
    assert (
        f"| mini.c01\\: Concatenation finds more. | reproduced<br>"
        f"+16.00 \\[+{row['lo']}, +{row['hi']}\\] points, clear in 4 of 4 cells<br>"
        "δ 2, n 200 |" in verdicts
    )
    assert "Recorded so far: 800 answers under 8 conditions of 1 exhibit." in text
    assert "### What held\n\n1 claim held wherever" in verdicts
    assert verdicts.count("### ") == verdicts.count("{dropdown} Mini 1") == 1
    assert "at tier `public`;" not in section(text, "What comes next")


def test_the_first_screen_says_what_was_found(book):
    assert "Found so far" not in page(book)
    book.fill()
    text = page(book)
    assert "**Found so far.** Of 1 claim, by what the records here decide: 1 held. With" in text
    assert "With the papers' own models none is judged yet" in text
    assert "Of 1 verdict, a tier each, 1 exploratory; of the exploratory ones 0 rest on" in text
    assert text.index("Found so far") < text.index("## How to read a verdict")
    rows = ledger.rows(book.results())
    other = [r | {"id": "mini.c02", "verdict": "not reproduced"} for r in rows]
    told = frontpage.text(Results(book.records), book.root, [*rows, *other])
    assert (
        "Of 2 claims (1 distinct result), by what the records here decide: 1 held; 1 did not"
        in told
    )
    by_paper = [r | {"tier": "paper"} for r in rows if r["tier"] == "public"]
    assert "own models none" not in frontpage.text(Results(book.records), book.root, by_paper)


def test_what_the_papers_are_known_for_stands_first_once_any_of_it_is_judged(book):
    book.fill()
    rows = ledger.rows(book.results())
    known = [r | {"main": True} for r in rows]
    assert "What the papers are known for" not in frontpage.text(
        Results(book.records), book.root, rows
    )
    text = frontpage.text(Results(book.records), book.root, known)
    assert text.index("Found so far") < text.index("{table} What the papers are known for")
    assert text.index("known for") < text.index("## How to read a verdict")
    bare = [r | {"verdict": "not run"} for r in known]
    assert "known for" not in frontpage.text(Results(book.records), book.root, bare)


def test_tests_that_are_registered_and_those_that_are_refused_stand_below(book):
    book.fill()
    known = [r | {"main": True} for r in ledger.rows(book.results())]
    assert "registered" not in frontpage.text(Results(book.records), book.root, known)
    held = {
        "tests": [{"claim": "mini.c01", "tier": "testbed"}],
        "refused": {"mini.c02/testbed": ".", "mini.c03/testbed": ".", "mini.c04/testbed": "."},
    }
    (book.records.parent / "registration.yaml").write_text(yaml.safe_dump(held))
    told = frontpage.text(Results(book.records), book.root, known)
    assert "1 test of these claims is registered" in told
    assert "None of them was run so far. No test is registered for " in told
    assert "for mini.c02, mini.c03 and mini.c04: what it takes is not trained" in told
    ran = [r | {"state": "confirmed"} for r in known]
    told = frontpage.text(Results(book.records), book.root, ran)
    assert re.search(r"\d of them was run so far", told)


def test_each_paper_is_known_for_some_of_its_own_claims():
    for name in ("drrag", "erm4", "dragin", "r2ag"):
        known = [claim for claim in papers.load(name).claims if claim.main]
        assert 1 <= len(known) <= 4
        assert not any(claim.place.startswith("summary") for claim in known)


def test_the_authors_were_not_asked_and_the_page_says_so(book):
    said = section(page(book), "Communication with the authors")
    assert said.strip().startswith("The authors of the four papers were not asked.")


def test_the_figure_stands_on_the_first_screen_with_its_numbers_in_words(book):
    book.fill()
    rows = ledger.rows(book.results())
    text = frontpage.text(Results(book.records), book.root, rows, figure="images/verdicts.svg")
    assert "```{figure} images/verdicts.svg\n:name: fig-verdicts" in text
    assert ":alt: Mini, testbed\\: 1 not run. Mini, public\\: 1 holds. Mini, paper" in text
    assert text.index("{figure}") < text.index("## How to read a verdict")


def test_the_ledger_is_linked_once_it_is_a_page(book):
    assert "chapters/90_claims" not in page(book)
    made = book.root / "book/chapters/90_claims.ipynb"
    made.parent.mkdir(parents=True)
    made.write_text("{}")
    assert "{doc}`chapters/90_claims` has every claim" in page(book)


def test_tables_have_numbers_that_the_page_refers_to(book):
    book.fill()
    text = page(book)
    for name in ("tab-counts", "tab-holds", "tab-asked"):
        assert text.count(f":name: {name}\n") == 1
    assert "{numref}`tab-counts`" in text


def test_how_sure_we_are_is_said_from_the_records(book):
    book.fill()
    sure = section(page(book), "How sure are we")
    assert "1 verdict with an interval, each from 200 to 200 answered questions." in sure
    assert "about 0.1 miss the truth by chance" in sure
    # 100 of HotpotQA's 7,405 questions and of MuSiQue's 2,417
    assert "Asked on parts of the whole sets (HotpotQA; MuSiQue)" in sure
    assert "| public | HotpotQA | 100 | 7,405 \\(validation\\) |" in sure
    assert "Searched with 1 retriever, which need not be" in sure
    assert "\n  <details><summary>its name</summary><code>minilm</code></details>\n" in sure
    assert "No language model has answered yet" in sure
    assert "No claim has a verdict at tier `testbed` or `paper`." in sure
    assert "failed" not in sure
    assert "Testbed verdicts" not in sure


def test_a_set_asked_as_a_whole_is_no_part(book, monkeypatch):
    book.fill()
    whole = {
        name: dataclasses.replace(source, full_size=100) if name == "hotpotqa" else source
        for name, source in verdict_summary.registry().items()
    }
    monkeypatch.setattr(verdict_summary, "registry", lambda: whole)
    assert "Asked on parts of the whole sets (MuSiQue)" in page(book)


def recorded(cells):
    """These conditions, each with an answer."""
    return [verdict_summary.Recorded(cell, [{"id": "q"}]) for cell in cells]


def test_one_interval_in_twenty_is_expected_to_miss():
    row = {"n": 50, "verdict": "reproduced", "reason": "", "tier": "public"}
    told = render("how_sure", **verdict_summary.facts([row] * 30, []))
    assert "30 verdicts with an interval, each from 50 to 50" in told
    assert "about 1.5 miss the truth by chance" in told


def test_the_testbed_failures_and_readers_change_what_is_said(book, monkeypatch):
    book.fill(tier="testbed")
    [cell, *_] = book.exhibit.cells("testbed")
    rewrite(
        book.records,
        cell.condition,
        lambda line: line | ({"error": "E"} if mini.number(line) == 3 else {}),
    )
    sure = section(page(book), "How sure are we")
    assert "Testbed verdicts say whether a mechanism works" in sure
    assert "1 of 400 answers failed and count as wrong." in sure
    assert "| testbed | world-B | 100 | invented; any number can be made |" in sure
    assert "Asked on parts" not in sure

    cells = [dataclasses.replace(cell.condition, reader="smollm2-135m")]
    read = dataclasses.replace(cell, condition=cells[0])
    told = render("how_sure", **verdict_summary.facts([], recorded([cell, read])))
    assert "Read by 1 reader: open models" in told
    assert "<code>smollm2-135m</code>" in told
    assert "No language model" not in told
    assert "trained row" not in told


def test_rows_of_one_training_are_counted(book):
    [cell, *_] = book.exhibit.cells("testbed")

    def trained(method, seed):
        return dataclasses.replace(cell, keys={**cell.keys, "method": method, "seed": seed})

    cells = [trained("a", 0), trained("b", 0), trained("b", 1)]
    told = render("how_sure", **verdict_summary.facts([], recorded(cells)))
    assert "Of 2 trained rows 1 rests on one training: how far another training would" in told


def test_an_inconclusive_verdict_says_what_could_have_been_seen(book):
    book.fill({"sm": 0.62, "qdc": 0.62})
    [row] = [r for r in ledger.rows(book.results()) if r["tier"] == "public"]
    assert row["verdict"] == "inconclusive"
    text = page(book)
    assert f"2 \\(detectable\\: {row['mde']}\\)" in text
    assert "1 of 1 verdict is inconclusive" in section(text, "How sure are we")


def test_hostile_text_of_a_claim_stays_text(book):
    claims = book.root / "mini" / "claims.yaml"
    claims.write_text(
        claims.read_text().replace(
            "claim: Concatenation finds more.",
            'claim: "a | b <script>x</script> ```{note} {{ y }} $z$"',
        )
    )
    papers.load.cache_clear()
    text = page(book)
    assert (
        "a \\| b \\<script\\>x\\</script\\> \\`\\`\\`\\{note\\} \\{\\{ y \\}\\} \\$z\\$ |" in text
    )
    assert "<script" not in text.replace("\\<script", "")


def test_links_lead_to_chapters_that_are_executed_and_in_the_contents(book):
    (book.root / "_toc.yml").write_text(
        "root: index\nparts:\n- chapters:\n  - file: chapters/02_there\n  - file: glossary\n"
        "  - file: chapters/01_first\n    sections: [{file: chapters/03_absent}]\n"
    )
    chapters = book.root / "book" / "chapters"
    chapters.mkdir(parents=True)
    for name in ("01_first", "02_there", "04_not_in_contents"):
        (chapters / f"{name}.ipynb").write_text("{}")
    links = re.findall(r"\{doc\}`([^`]+)`", page(book))
    assert links == ["chapters/02_there", "chapters/01_first"]


@pytest.mark.parametrize("name", papers.names())
def test_the_committed_papers_make_a_page(tmp_path, name):
    text = frontpage.text(Results(tmp_path), tmp_path)
    assert papers.load(name).exhibits
    for claim in papers.load(name).claims:
        assert f"| {claim.id}\\: " in text


# -------------------------------------------------------------------- nothing is written by hand


def flipped(book, method):
    """30 % of the method's scores turned round, in every record of it."""
    for cell in book.exhibit.cells("public"):
        if cell.keys["method"] == method:
            chosen = set(np.random.default_rng(1).permutation(100)[:30])

            def turn(line, chosen=chosen):
                scores = dict(line["scores"])
                if mini.number(line) in chosen:
                    scores["recall"] = 1 - scores["recall"]
                return line | {"scores": scores}

            rewrite(book.records, cell.condition, turn)


def numbers(book):
    """(rows by place, the claim's row, the page)."""
    made = exhibit_rows.rows(book.paper, book.exhibit, book.results(), "public")
    rows = {(*r.keys.values(), r.metric): r for r in made if r.ours}
    [claim] = [r for r in ledger.rows(book.results()) if r["tier"] == "public"]
    return rows, claim, page(book)


def test_flipped_scores_change_every_dependent_number_and_verdict(book):
    book.fill()
    rows, claim, text = numbers(book)
    flipped(book, "qdc")
    new_rows, new_claim, new_text = numbers(book)

    assert rows.keys() == new_rows.keys()
    moved = 0
    for key, row in rows.items():
        new = new_rows[key]
        depends = row.keys["method"] == "qdc" and row.metric == "recall"
        for before, after in ((row.ours, new.ours), (row.diff, new.diff)):
            if before is not None:
                same = [a == b for a, b in zip(_three(before), _three(after), strict=True)]
                assert not any(same) if depends else all(same), key
        moved += depends
        # What the paper printed does not move.
        assert (new.paper, new.note) == (row.paper, row.note)
    assert moved == 4

    assert (claim["verdict"], new_claim["verdict"]) == ("reproduced", "inconclusive")
    for number in ("effect", "lo", "hi", "mde", "reason"):
        assert new_claim[number] != claim[number]
    for number in ("n", "delta", "support", "place"):
        assert new_claim[number] == claim[number]

    effect, new_effect = (
        " ".join(f"{float(one[number]):+.2f}" for number in ("effect", "lo", "hi"))
        for one in (claim, new_claim)
    )
    text, new_text = (re.sub(r"[\\\[\],]", "", page) for page in (text, new_text))
    assert effect in text
    assert effect not in new_text
    assert new_effect in new_text
    # Commas went with the brackets of the intervals.
    assert "| paper tier | inconclusive | not run |" in new_text
    assert "| public | reproduced |" not in new_text


def _three(interval):
    return interval.estimate, interval.lo, interval.hi


def test_other_sizes_change_every_count(book):
    book.fill()
    for cell in book.exhibit.cells("public"):
        rewrite(book.records, cell.condition, lambda line: line if mini.number(line) < 37 else None)
    text = page(book)
    assert "Recorded so far: 296 answers under 8 conditions" in text
    assert "each from 74 to 74 answered questions" in text
    assert "| public | HotpotQA | 37 | 7,405" in text
    assert "200" not in section(text, "Verdicts so far")
    records.find(book.records, book.exhibit.cells("public")[0].condition).unlink()
    text = page(book)
    assert "Not run: 1 of 8 conditions of `mini.table1` at tier `public`" in text
    assert "259 answers under 7 conditions" in text


def test_every_command_on_the_committed_front_page_is_taken():
    """`run` refuses exhibits with times, and `time` the others."""
    text = (ROOT / "book/index.md").read_text(encoding="utf-8")
    said = set(re.findall(r"`rag-repro (run|time) (\S+) --tier (\w+)", text))
    assert said
    for verb, exhibit, tier in said:
        assert campaign.select([exhibit], tier=tier, timed=verb == "time")
