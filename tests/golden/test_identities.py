"""Committed records stay findable: their names, and the fingerprints of what made them."""

from __future__ import annotations

import csv
import json

import pytest

from tests.golden import identities


@pytest.fixture(scope="module")
def committed() -> list:
    return list(identities.headers())


def test_no_committed_record_changed_its_identity_or_fingerprint():
    golden = list(csv.DictReader(identities.RECORDS.open(encoding="utf-8")))
    assert len(golden) > 1700
    known = {row["path"]: row for row in golden}
    now = {row["path"]: row for row in identities.rows()}
    changed = [path for path in known.keys() & now.keys() if known[path] != now[path]]
    assert not changed, "remade knowingly? then name them in the note"
    assert not known.keys() - now.keys(), "records went away"
    assert not now.keys() - known.keys(), "new records: python -m tests.golden.identities"


def test_the_code_gives_each_committed_record_the_name_that_it_has(committed):
    wrong = []
    for path, header in committed:
        made = identities.condition_of(header["identity"])
        same = json.loads(json.dumps(made.identity)) == header["identity"]
        if not (same and path.endswith(made.path + identities.ENDING)):
            wrong.append(path)
    assert not wrong


def test_every_service_of_the_testbed_has_its_fingerprint(tmp_path):
    golden = json.loads(identities.SERVICES.read_text(encoding="utf-8"))
    assert {name.partition(" ")[0] for name in golden} == {
        *("corpus", "questions", "retriever", "encoder", "reader", "scorer")
    }
    made = identities.services(identities.conditions(), tmp_path)
    different = {name for name in golden.keys() | made.keys() if golden.get(name) != made.get(name)}
    assert not different


def test_records_name_the_services_by_these_fingerprints(committed):
    golden = json.loads(identities.SERVICES.read_text(encoding="utf-8"))
    recorded = {
        value
        for _, header in committed
        for value in header["fingerprint"].values()
        if isinstance(value, str)
    }
    assert not set(golden.values()) - recorded
