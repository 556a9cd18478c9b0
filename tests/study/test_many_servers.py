"""Runs whose reader is several servers, each a process of its own, of which some are killed."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections import Counter
from contextlib import ExitStack

import pytest

from rag_repro import data
from rag_repro.lm import api
from rag_repro.schema import Gold, Passage, Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.schema.errors import ReaderError
from rag_repro.study import records, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.services import Workshop
from tests.lm.counting import running

N, LIMIT = 40, 3
PASSAGES = tuple(Passage(f"p{i}", f"Title {i}", f"secret text {i}") for i in range(N))
QUESTIONS = tuple(
    Question(f"q{i}", f"query {i}", (f"says {i}",), kind="bridge", gold=(Gold(f"p{i}", "static"),))
    for i in range(N)
)
DATASET = Dataset("forty", QUESTIONS, Corpus("forty", PASSAGES))
ONCE = Counter(str(i) for i in range(N))


@pytest.fixture
def ground(monkeypatch, tmp_path):
    """Forty questions, a call cache of this test's own, short waits."""
    monkeypatch.setattr(data, "load", lambda name, *, data_dir=None, split=None: DATASET)
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("RAG_REPRO_API_KEY", raising=False)

    class Quick(api.ApiReader):
        def __init__(self, *given, **settings):
            told = {"backoff": 0.01, "patience": 0.1, "retries": 2, "timeout": 30}
            super().__init__(*given, **told | settings)

    monkeypatch.setattr(api, "ApiReader", Quick)
    return tmp_path


def run(ground, *servers, batch_size=N):
    """-> questions answered now."""
    made = condition(*servers)
    workshop = Workshop(in_flight=LIMIT)
    return runner.run(made, workshop, ground / "records", batch_size=batch_size)


def condition(*servers):
    settings = {"k": 2, "prompt": "short", "max_new_tokens": 8}
    reader = f"api:tiny@{','.join(server.url for server in servers)}"
    return Condition("forty", "single_step", settings, retriever="bm25", reader=reader)


def predictions(ground, *servers):
    record = records.load(ground / "records", condition(*servers))
    return {line["id"]: line.get("prediction") for line in record.lines} if record else {}


WHOLE = {f"q{i}": f"says {i}" for i in range(N)}


def when_full(*servers, kill=(), release=(), limit=LIMIT):
    """A thread that acts when each of the servers holds as many requests as it may be sent."""

    def wait():
        for server in servers:
            while server.holds() < limit:
                time.sleep(0.02)
        for server in kill:
            server.kill()
        for server in release:
            server.release()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_one_of_two_servers_is_killed_in_the_middle_and_nothing_is_lost_or_paid_twice(ground):
    with running(ground / "a", hold=7) as a, running(ground / "b", hold=7) as b:
        killer = when_full(a, kill=[a], release=[b])
        assert run(ground, a, b) == N
        killer.join()
        assert predictions(ground, a, b) == WHOLE
        assert a.answered() + b.answered() == ONCE
        # Only what the dead server had taken and not answered was asked again.
        twice = a.asked() + b.asked() - ONCE
        assert twice == a.asked() - a.answered()
        assert sum(twice.values()) == LIMIT
        assert max(a.most_at_once(), b.most_at_once()) <= LIMIT


def test_when_both_are_gone_the_run_stops_and_goes_on_with_another_for_what_is_missing(ground):
    with running(ground / "a", hold=7) as a, running(ground / "b", hold=7) as b:
        killer = when_full(a, b, kill=[a, b])
        with pytest.raises(ReaderError) as gone:
            run(ground, a, b)
        killer.join()
        for server in (a, b):
            assert f"{server.url} does not answer" in str(gone.value)
        assert "run again" in str(gone.value)
        paid = a.answered() + b.answered()
        assert sum(paid.values()) == 14
        before = predictions(ground, a, b)
        assert all(before[name] == WHOLE[name] for name in before)
        with running(ground / "c") as c:
            assert run(ground, c) == N - len(before)
            assert predictions(ground, c) == WHOLE
            # What is recorded is not asked again; what only the cache holds is another address's.
            assert c.asked() == ONCE - Counter(name.removeprefix("q") for name in before)
        lines = records.load(ground / "records", condition(c)).lines
    assert not any("error" in line for line in lines)


def test_a_server_that_comes_back_is_asked_again(ground, monkeypatch):
    """At its old address, in the midst of the run; without patience, so it is tried at once."""
    monkeypatch.setattr(api, "ApiReader", functools.partial(api.ApiReader, patience=0.0))
    with ExitStack() as stack:
        a, b = (stack.enter_context(running(ground / name, hold=2)) for name in "ab")
        killer = when_full(a, kill=[a], release=[b])
        back = []

        def start_it_anew(progress):
            if not back:
                killer.join()
                back.append(stack.enter_context(running(ground / "anew", port=a.port)))

        workshop = Workshop(in_flight=LIMIT)
        made, where = condition(a, b), ground / "records"
        runner.run(made, workshop, where, batch_size=N // 2 // runner.AHEAD, report=start_it_anew)
        assert back[0].asked()
        assert a.answered() + b.answered() + back[0].answered() == ONCE
        assert predictions(ground, a, b) == WHOLE


@pytest.mark.parametrize("limit", [1, 4])
def test_a_server_never_has_more_requests_than_the_limit(ground, limit):
    with running(ground / "a", hold=0) as a, running(ground / "b", hold=0) as b:
        when_full(a, b, release=[a, b], limit=limit)
        workshop = Workshop(in_flight=limit)
        runner.run(condition(a, b), workshop, ground / "records", batch_size=N)
        assert a.asked() + b.asked() == ONCE
        assert a.most_at_once() == b.most_at_once() == limit


def test_the_record_is_the_same_whoever_answered(ground):
    with running(ground / "a") as a, running(ground / "b") as b:
        run(ground, a)
        one = records.load(ground / "records", condition(a))
        (ground / "records").rename(ground / "of one")
        (ground / "cache" / "answers.sqlite").unlink()
        run(ground, b, a)
        two = records.load(ground / "records", condition(b, a))
    assert (one.header, one.lines) == (two.header, two.lines)
    assert "127.0.0.1" not in json.dumps([two.header, two.lines])


def test_a_run_that_fails_in_its_first_batch_has_kept_every_answer_that_it_got(ground):
    """None of its questions is recorded yet; the next run pays for the rest alone."""
    with running(ground / "a", hold=9) as a:
        killer = when_full(a, kill=[a])
        with pytest.raises(ReaderError):
            run(ground, a)
        killer.join()
        paid = a.answered()
        assert sum(paid.values()) == 9
        assert records.load(ground / "records", condition(a)) is None
        with running(ground / "b", port=a.port) as b:
            run(ground, b)
            assert b.asked() == ONCE - paid
