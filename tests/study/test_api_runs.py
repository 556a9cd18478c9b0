"""Runs whose reader is an endpoint: named in the condition, and its server dies in the middle."""

from __future__ import annotations

import json
import re

import pytest

from rag_repro import data
from rag_repro.lm import api
from rag_repro.schema.errors import ReaderError
from rag_repro.study import manifests, records, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.services import Workshop
from tests.lm import loopback
from tests.study.scripted import DATASET

SETTINGS = {"k": 2, "prompt": "short", "max_new_tokens": 8}


@pytest.fixture
def ground(monkeypatch, tmp_path):
    """Six questions, a cache of this test's own, and no long waits."""
    monkeypatch.setattr(data, "load", lambda name, *, data_dir=None, split=None: DATASET)
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("RAG_REPRO_API_KEY", raising=False)

    class Quick(api.ApiReader):
        def __init__(self, *given, **settings):
            super().__init__(*given, **{"backoff": 0.001, "retries": 1, "timeout": 5} | settings)

    monkeypatch.setattr(api, "ApiReader", Quick)
    return tmp_path


def condition(server, **changes):
    given = {"reader": f"api:tiny/7b@{server.url}", "retriever": "bm25", **changes}
    return Condition("little", "single_step", SETTINGS, **given)


def echo(body):
    """Question i is answered with "says i"."""
    return " says " + re.findall(r"query (\d)", body["prompt"])[-1]


def content(root, made):
    return records.find(root, made).read_bytes()


def test_a_run_through_an_endpoint(ground):
    with loopback.serving() as server:
        server.text = echo
        made = condition(server)
        assert runner.run(made, Workshop(), ground) == 6
        lines = records.load(ground, made).lines
        assert [line["prediction"] for line in lines] == [f"says {i}" for i in range(6)]
        assert lines[0]["cost"] == {
            "reader_calls": 1,
            "prompt_tokens": 12,
            "new_tokens": 3,
            "retrievals": 1,
        }
        assert {path for path, _, _ in server.seen} == {"/v1/completions"}
        assert all("Authorization" not in headers for _, _, headers in server.seen)
        head = records.load(ground, made).header
        assert head["identity"]["reader"] == "api:tiny/7b"
        assert server.url not in json.dumps(head)
        assert "-api_tiny_7b-k2-" in made.path
        # Asked again from the cache: the endpoint hears nothing.
        asked = len(server.seen)
        runner.run(made, Workshop(), ground / "again")
        assert len(server.seen) == asked
        assert content(ground / "again", made) == content(ground, made)


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("death", ["close", "stop"])
def test_a_server_that_dies_in_the_middle_leaves_a_run_that_goes_on(
    ground, monkeypatch, batch_size, death
):
    """No question is recorded as failed for it, and the end is as if nothing had been."""
    with loopback.serving() as server:
        server.text = echo
        made = condition(server)
        runner.run(made, Workshop(), ground / "whole", batch_size=batch_size)
        whole = content(ground / "whole", made)
    (ground / "cache" / "answers.sqlite").unlink()

    with loopback.serving(server.server_port) as second:
        asked = []

        def until_the_fifth(body):
            asked.append(body)
            if len(asked) >= 5:
                second.default = "close"
            return echo(body)

        second.text = until_the_fifth
        with pytest.raises(ReaderError, match="does not answer"):
            runner.run(made, Workshop(), ground, batch_size=batch_size)
    if death == "stop":  # tried once more, while nobody listens there at all
        with pytest.raises(ReaderError, match="does not answer"):
            runner.run(made, Workshop(), ground, batch_size=batch_size)
    # Of those in flight together none may be recorded yet; what was answered is in the cache.
    record = records.load(ground, made)
    held = record.lines if record else ()
    assert len(held) < 6
    assert not any("error" in line for line in held)

    with loopback.serving(server.server_port) as third:
        third.text = echo
        assert runner.run(made, Workshop(), ground, batch_size=batch_size) == 6 - len(held)
    assert content(ground, made) == whole
    assert sum(entry["questions"] for entry in manifests.read(ground, made)) == 6


def test_a_prompt_that_the_endpoint_refuses_fails_alone(ground):
    with loopback.serving() as server:
        server.text = echo
        server.plan = ["ok", (400, {}, "too long")]
        made = condition(server)
        runner.run(made, Workshop(), ground, batch_size=1)
        failed = [line for line in records.load(ground, made).lines if "error" in line]
        assert len(failed) == 1
        assert "too long" in failed[0]["error"]


def test_the_key_is_sent_where_it_is_set(ground, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_API_KEY", "sk-0123456789")
    with loopback.serving() as server:
        server.text = echo
        runner.run(condition(server), Workshop(), ground, n=1)
        assert server.seen[0][2]["Authorization"] == "Bearer sk-0123456789"


@pytest.mark.parametrize("reader", ["api:tiny", "api:tiny@127.0.0.1", "api:t@http://u:pw@h/v1"])
def test_a_name_that_names_no_endpoint_is_refused_where_it_is_written(reader):
    with pytest.raises(ReaderError) as refused:
        Condition("little", "single_step", SETTINGS, reader=reader)
    assert "pw" not in str(refused.value)


def test_a_record_knows_its_model_and_not_who_answered(ground):
    """Made at one server, gone on with at another, complete at both; a model has its own."""
    with loopback.serving() as one, loopback.serving() as two:
        one.text = two.text = echo
        there, elsewhere = condition(one), condition(two)
        both = condition(one, reader=f"api:tiny/7b@{two.url},{one.url}")
        assert there.identity == elsewhere.identity == both.identity
        assert there.path == elsewhere.path == both.path
        workshop = Workshop()
        made = [workshop.fingerprint(one) for one in (there, elsewhere, both)]
        assert made[0] == made[1] == made[2]
        assert runner.run(there, Workshop(), ground, n=2) == 2
        (ground / "cache" / "answers.sqlite").unlink()
        assert runner.run(elsewhere, Workshop(), ground, n=4) == 2
        assert runner.run(both, Workshop(), ground) == 2
        assert len(one.seen) + len(two.seen) == 6
        assert len(two.seen) >= 2
        lines = records.load(ground, there).lines
        assert [line["prediction"] for line in lines] == [f"says {i}" for i in range(6)]
        other = condition(one, reader=f"api:tiny@{one.url}")
    assert other.path != there.path
    assert workshop.fingerprint(other) != made[0]


def test_a_setting_that_names_a_reader_holds_no_address_either(ground):
    with loopback.serving() as one, loopback.serving() as two:
        made = [
            Condition(
                "little",
                "erm4",
                {"rewrite": "plus", "rewriter": f"api:tiny@{server.url}", "prompt": "short"},
                retriever="bm25",
                reader=f"api:tiny/7b@{server.url}",
            )
            for server in (one, two)
        ]
        assert made[0].identity == made[1].identity
        assert made[0].identity["settings"]["rewriter"] == "api:tiny"
        workshop = Workshop()
        assert workshop.fingerprint(made[0]) == workshop.fingerprint(made[1])
        assert workshop.fingerprint(made[0])["api:tiny"] == "api:tiny"


def test_the_requests_at_a_server_are_a_setting_of_the_workshop(ground):
    with loopback.serving() as server:
        server.text = echo
        workshop = Workshop(in_flight=3)
        runner.run(condition(server), workshop, ground)
        assert workshop.reader(condition(server).reader).reader._servers.in_flight == 3
