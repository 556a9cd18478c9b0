from __future__ import annotations

import json
import sys

from rag_repro.publish.inputs import changed, gather
from rag_repro.study import manifests, records, sealed

HEADER = {"format": 1, "identity": {}, "fingerprint": {}}


def put(root, path, score):
    """A record of one answer, as a run leaves it."""
    line = {"id": "q", "cluster": "q", "hits": [], "scores": {"em": score}}
    file = root / "results/records" / f"{path}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in (HEADER, line)))


def heard_of(read):
    """What the probe hears while `read` runs."""
    told = []
    hook = {"on": True}

    def hear(event, arguments):
        if hook["on"] and event == records.READ:
            told.append(arguments[0])

    sys.addaudithook(hear)  # which stays as long as Python does
    read()
    hook["on"] = False
    return {"opened": [], "modules": [], "records": told}


def test_a_record_counts_by_what_it_holds_and_no_other_does(tmp_path):
    store, own = tmp_path / "results/records", tmp_path / "own"
    put(tmp_path, "a/qdc-1", 1.0)

    def read():
        records.at(store, "a/qdc-1")
        manifests.at(store, "a/qdc-2")

    inputs = gather(tmp_path, heard_of(read), own)
    assert [*inputs] == ["record:results/records/a/qdc-1", "record:results/records/a/qdc-2"]
    put(tmp_path, "a/qdc-3", 1.0)
    (store / "a/qdc-1.lock").touch()
    assert changed(tmp_path, inputs, own) == []
    (store / "a/qdc-1.jsonl").rename(store / "a/qdc-1.jsonl.open")
    assert changed(tmp_path, inputs, own) == ["record:results/records/a/qdc-1"]
    put(tmp_path, "a/qdc-1", 0.0)
    assert changed(tmp_path, inputs, own) == ["record:results/records/a/qdc-1"]
    put(tmp_path, "a/qdc-1", 1.0)
    put(tmp_path, "a/qdc-2", 1.0)  # of which there was none
    assert changed(tmp_path, inputs, own) == ["record:results/records/a/qdc-2"]


def test_a_manifest_counts_with_its_record_and_the_form_does_not(tmp_path):
    store, own = tmp_path / "results/records", tmp_path / "own"
    put(tmp_path, "a/qdc-1", 1.0)
    inputs = gather(tmp_path, heard_of(lambda: records.at(store, "a/qdc-1")), own)
    every = gather(tmp_path, heard_of(lambda: records.paths(store)), own)
    assert sealed.seal(store) == 1
    assert not changed(tmp_path, inputs | every, own)
    entry = {"start": "2026-01-01T00:00:00+00:00", "questions": 1, "machine": "x"}
    put(tmp_path, "a/qdc-1", 1.0)
    (store / "a/qdc-1.manifest.json").write_text(json.dumps([entry]))
    assert changed(tmp_path, inputs, own) == ["record:results/records/a/qdc-1"]
    (store / "a/qdc-1.manifest.json").unlink()
    put(tmp_path, "a/qdc-2", 1.0)
    assert not changed(tmp_path, inputs, own)
    assert changed(tmp_path, every, own) == ["record:results/records/"]
