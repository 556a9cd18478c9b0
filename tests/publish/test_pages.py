"""Generated pages, and the tables of the status chapter, from hand-made notes."""

from __future__ import annotations

import json
from types import SimpleNamespace

from rag_repro.publish import pages, status
from rag_repro.study import costs

FRONT = "# {0}\n\n**Found so far.** {0} of 180 claims held. {{numref}}\n"


def test_a_page_is_written_only_when_its_text_changes(places, monkeypatch):
    index = places.book / "index.md"
    monkeypatch.setattr(pages, "tier_pages", lambda places: {})  # they take seconds
    monkeypatch.setattr(pages, "front_page", lambda places: (FRONT.format("One"), "<svg/>"))
    readme = places.root / "README.md"
    readme.write_text("# Book\n\n## What was found\n\nOld.\n\nThe front page\n")
    pages.write(places)
    text = "One of 180 claims held."
    assert readme.read_text() == f"# Book\n\n## What was found\n\n{text}\n\nThe front page\n"
    before = index.stat().st_mtime_ns
    pages.write(places)
    assert index.stat().st_mtime_ns == before
    monkeypatch.setattr(pages, "front_page", lambda places: (FRONT.format("Two"), "<svg/>"))
    pages.write(places)
    assert index.read_text() == FRONT.format("One")  # no file has changed: nothing is made anew
    places.records.mkdir(parents=True)
    (places.records / "new.manifest.json").write_text("[]")
    pages.write(places)
    assert index.read_text() == FRONT.format("Two")
    index.write_text("# Changed by hand\n")
    pages.write(places)
    assert index.read_text() == FRONT.format("Two")
    assert (places.book / pages.FIGURE).read_text() == "<svg/>"
    assert (places.book / "deviations.md").read_text().startswith("# Deviations\n")
    assert (places.book / "reference/index.md").is_file()


def note(**changes):
    told = {
        "parameters": {}, "started": "2026-01-02T03:04:05+00:00", "seconds": 2.5,
        "memory_mb": 100, "python": "3.11.1", "versions": {"numpy": "2.0"}, "data": False,
        "machine": {"system": "Linux", "processor": "P", "cores": 2, "memory_gb": 4},
    }  # fmt: skip
    return told | changes


def put(places, name, told):
    text = json.dumps({"metadata": {"rag_repro": told}, "cells": []})
    (places.chapters / f"{name}.ipynb").write_text(text)


def test_the_status_tables_gather_what_executed_chapters_tell(places):
    put(places, "05_small", note())
    put(places, "06_else", note(seconds=3.0, versions={"numpy": "2.1"}, data=True))
    put(places, "91_status", note(seconds=99.0))
    runs = status.runs(places)
    assert list(runs["chapter"]) == ["05_small", "06_else"]
    assert list(runs["seconds"]) == [2.5, 3.0]
    assert list(runs["run on"]) == ["2026-01-02", "2026-01-02"]
    assert list(runs["real data at hand"]) == ["no", "yes"]
    machines = status.machines(places)
    assert list(machines["chapters"]) == ["05_small, 06_else"]
    assert list(status.versions(places)["version"]) == ["2.0, 2.1"]


def test_a_gpu_gets_its_column(places):
    put(places, "05_small", note(machine=note()["machine"] | {"gpu": "G"}))
    assert list(status.machines(places)["gpu"]) == ["G"]


def test_answers_are_counted_by_data_set_as_the_pages_of_tiers_count_them(places, monkeypatch):
    def cell(label):
        return SimpleNamespace(condition=SimpleNamespace(label=label))

    hotpotqa, other, world, timed = cells = [cell(x) for x in ["hotpotqa"] * 2 + ["world-B"] * 2]
    spent = {
        id(hotpotqa): costs.Spent(conditions=1, recorded=1, answers=1000, seconds=1800),
        id(other): costs.Spent(conditions=1, wanted=1000),
        id(world): costs.Spent(conditions=1, recorded=1, answers=10, seconds=3600),
        id(timed): costs.Spent(conditions=1, recorded=1, answers=5, seconds=1800),
    }
    machine = {id(one): ("m",) for one in cells}
    monkeypatch.setattr(costs, "cells", lambda papers: cells)
    monkeypatch.setattr(costs, "sizes", lambda cells, results: {})
    monkeypatch.setattr(costs, "spent", lambda cell, known, results: spent[id(cell)])
    monkeypatch.setattr(costs, "machines", lambda some, results: machine[id(some[0])])
    assert status.recorded(places).to_dict("records") == [
        {"data set": "HotpotQA", "conditions": 1, "answers": 1000, "hours": 0.5},
        {"data set": "world-B", "conditions": 2, "answers": 15, "hours": 1.5},
    ]
    assert '<td class="number">1,000</td>' in status.show(status.recorded(places))._repr_html_()
    machine[id(world)] = ("m", "other")
    assert list(status.recorded(places)["machine"]) == ["m", "m; other"]


def test_a_table_is_shown_with_one_decimal_and_escaped(places):
    put(places, "05_small", note(seconds=2.25))
    shown = status.show(status.runs(places))._repr_html_()
    assert '<td class="number">2.2</td>' in shown
    assert '<td class="number">100</td>' in shown


def test_sizes_leave_caches_out(places):
    (places.root / "artifacts/__pycache__").mkdir(parents=True)
    (places.root / "artifacts/__pycache__/x").write_bytes(b"0" * 9000)
    (places.root / "artifacts/y").write_bytes(b"0" * 2048)
    table = status.sizes(places).set_index("folder")
    assert tuple(table.loc["artifacts/"]) == (1, 2)


def test_the_tables_are_well_formed_before_anything_has_run(places):
    for table in (status.runs, status.machines, status.versions, status.recorded):
        assert len(table(places)) == 0
