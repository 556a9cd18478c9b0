"""The pages on what each tier needs and costs, by synthetic records; and the committed ones."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from rag_repro.book_folders import BookFolders
from rag_repro.lm.sizes import shape
from rag_repro.publish import pages, tiers
from rag_repro.study import papers
from rag_repro.study.names import base_of
from rag_repro.study.records import open_record
from tests.study import mini

ROOT = Path(__file__).resolve().parents[2]

READING = """
  answers:
    title: Answers
    place: table 2
    metrics: [acc]
    methods:
      sr: {label: Single step, run: single_step, retriever: minilm, settings: {prompt: short}}
      joint: {label: Joint, run: single_step, retriever: minilm, settings: {prompt: short}}
    grids:
      - {tier: public, datasets: [hotpotqa], methods: [sr], reader: smollm2-135m, n: 100}
      - {tier: testbed, datasets: [world-B], methods: [sr], reader: testbed-reader, n: 60}
      - tier: testbed
        datasets: [world-B]
        methods: [joint]
        reader: smollm2-135m
        n: 60
        trained: {joint: selfrag-reader}
      - tier: paper
        datasets: [hotpotqa]
        methods: [sr]
        reader: hub:meta-llama/Llama-2-7b-chat-hf@f5db02db724555f92da89c216ac04704f23d4590
  times:
    title: Times
    place: figure 1
    metrics: [seconds]
    timed: true
    methods:
      sr: {label: Single step, run: single_step, retriever: minilm, settings: {prompt: short}}
    grids:
      - {tier: testbed, datasets: [world-B], methods: [sr], reader: testbed-reader, n: 5}
"""


@pytest.fixture
def ground(book, monkeypatch):
    """The small paper with answers of readers; `ran` writes a condition's record."""
    monkeypatch.setattr(mini, "PAPER", mini.PAPER.rstrip() + READING)
    book.paper = mini.paper(book.root, "")
    papers.load.cache_clear()

    def ran(tier, questions, seconds, exhibit="answers", machine="two cores"):
        cell = book.paper.exhibits[exhibit].cells(tier)[0]
        path = book.records / f"{cell.condition.path}.manifest.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        start = datetime(2026, 1, 1, tzinfo=UTC)
        told = {"start": start, "end": start + timedelta(seconds=seconds)}
        told = {name: moment.isoformat() for name, moment in told.items()}
        told |= {"machine": machine, "questions": questions}
        path.write_text(json.dumps([told]))
        with open_record(book.records, cell.condition, {}) as record:
            for number in range(questions):
                line = {"id": f"q{number}", "cluster": "q", "hits": [], "scores": {}}
                record.append(line)

    book.ran = ran
    book.pages = lambda *chapters: tiers.pages(book.records, chapters)
    return book


def rows(text: str, name: str) -> list[list[str]]:
    """The cells of a table below its head."""
    table = text.split(f":name: {name}\n")[1].split("```")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_before_anything_has_run_answers_are_asked_and_no_time_is_told(ground):
    made = ground.pages()
    assert rows(made["tiers/public.md"], "tab-times-public") == [
        ["Mini", "reads", "1", "0", "100", "0", "0.0", "", "0.0"],
        ["Mini", "only searches", "8", "0", "1,968", "0", "0.0", "", "0.0"],
        ["all", "", "9", "0", "2,068", "0", "0.0", "", "0.0"],
    ]
    assert "on no machine yet" in made["tiers/public.md"]


def test_hours_left_are_the_missing_answers_at_the_measured_seconds(ground):
    ground.ran("public", 40, 3000)  # 75 seconds each, 60 answers left
    [reads, *_] = rows(ground.pages()["tiers/public.md"], "tab-times-public")
    assert reads == ["Mini", "reads", "1", "1", "100", "40", "0.8", "75", "1.2"]


def test_a_tier_without_times_takes_those_of_the_others(ground):
    ground.ran("public", 100, 3000)
    [reads, *_] = rows(ground.pages()["tiers/testbed.md"], "tab-times-testbed")
    # 60 + 60 + 5 answers at 30 seconds; none of them measured here
    assert reads == ["Mini", "reads", "3", "0", "125", "0", "0.0", "", "1.0"]


def test_one_gpu_asks_what_can_have_another_reader_and_scales_by_parameters(ground):
    ground.ran("public", 100, 3000)
    made = ground.pages("30_dragin")["tiers/one-gpu.md"]
    small, large = (shape(name).parameters for name in ("qwen2.5-0.5b", "qwen2.5-1.5b"))
    base = shape("smollm2-135m").parameters
    # public 100, testbed 60, and the 5 timed ones; what was trained is left out, as is what
    # only searches
    hours = [165 * 30 * size / base / 3600 for size in (small, large)]
    assert rows(made, "tab-times-one-gpu")[0] == ["Mini", "3", "165", *(f"{h:.1f}" for h in hours)]
    assert "**Extrapolated**, not measured" in made
    assert "records took on two cores" in " ".join(made.split())
    assert "rag-repro chapter 30_dragin -p reader qwen2.5-1.5b -p device cuda" in made


def test_the_papers_readers_are_told_each_with_its_hours(ground):
    ground.ran("public", 100, 3000)
    made = ground.pages()["tiers/paper.md"]
    [row] = rows(made, "tab-times-paper")
    ratio = shape("meta-llama/Llama-2-7b-chat-hf").parameters / shape("smollm2-135m").parameters
    assert row[:5] == ["Mini", "meta-llama/Llama-2-7b-chat-hf", "1", "0", "252"]
    assert row[-1] == f"{252 * 30 * ratio / 3600:,.1f}"
    assert "rag-repro run mini.answers --tier paper --device cuda --dtype bfloat16" in made


def test_memory_is_computed_from_shapes(ground):
    made = ground.pages()["tiers/paper.md"]
    [row] = rows(made, "tab-memory-paper")
    llama = shape("meta-llama/Llama-2-7b-chat-hf")
    cache = llama.cache(16 * 2048, "bfloat16")
    said = [f"{llama.weights(d) / 1e9:.1f} + {cache / 1e9:.1f}" for d in ("bfloat16", "nf4")]
    assert row[:3] == ["meta-llama/Llama-2-7b-chat-hf", "6,738", "13.5"]
    assert row[-2:] == said == ["13.5 + 17.2", "4.2 + 17.2"]


def test_an_adapted_reader_takes_what_its_base_takes(ground):
    [row] = rows(ground.pages()["tiers/testbed.md"], "tab-memory-testbed")
    assert row[0] == base_of("testbed-reader") == "smollm2-135m"


def test_the_tiers_are_told_side_by_side(ground):
    ground.ran("public", 100, 1800)
    told = rows(ground.pages()["tiers/index.md"], "tab-tiers")
    assert [row[0] for row in told] == ["testbed", "public", "one GPU", "paper"]
    assert told[1][:6] == ["public", "9", "1", "2,068", "100", "0.5"]


def test_commands_name_each_exhibit_of_the_tier_once_and_timed_ones_apart(ground):
    told = ground.pages()["tiers/testbed.md"]
    assert "rag-repro run mini.table1 mini.answers --tier testbed\n" in told
    assert "rag-repro time mini.times --tier testbed\n" in told


def test_pages_do_not_depend_on_what_is_trained_or_cached_here(ground, monkeypatch, tmp_path):
    before = ground.pages()
    monkeypatch.setenv("RAG_REPRO_ARTIFACTS", str(tmp_path / "none"))
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "none"))
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    assert ground.pages() == before


def test_the_readers_of_all_tiers_have_a_known_shape():
    for name in papers.names():
        for exhibit in papers.load(name).exhibits.values():
            for reader in {cell.condition.reader for cell in exhibit.cells()} - {None}:
                assert shape(base_of(reader)).parameters > 1e8


def test_every_page_of_the_tiers_is_in_the_contents():
    contents = json.dumps(yaml.safe_load((ROOT / "_toc.yml").read_text()))
    for name in ("index", "testbed", "public", "one-gpu", "paper"):
        assert re.search(rf'"tiers/{name}"', contents)


@pytest.mark.slow
def test_the_committed_pages_are_those_of_the_code_and_the_records():
    for name, text in pages.tier_pages(BookFolders(ROOT)).items():
        told = (ROOT / "book" / name).read_text(encoding="utf-8")
        assert told == text, f"book/{name} is old: run `make book`"
