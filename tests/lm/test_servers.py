"""Whose turn it is, who rests and who is gone: by a clock of the test's own, and over HTTP."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from concurrent.futures import CancelledError
from contextlib import ExitStack

import pytest

from rag_repro import post
from rag_repro.lm.api import ApiReader
from rag_repro.lm.endpoint import REFUSES, SILENT, Passing, Servers
from rag_repro.schema import Generate, Prompt
from rag_repro.schema.errors import CallError, ReaderError
from tests.lm import loopback

HERE = ("http://a", "http://b", "http://c")


class Clock:
    """Seconds that pass only where somebody waits."""

    def __init__(self, monkeypatch):
        self.now, self.waits = 100.0, []
        monkeypatch.setattr(Servers, "_wait", lambda servers, seconds: self.wait(seconds))

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float | None) -> None:
        assert seconds is not None, "waits for ever, alone"
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def made(clock, urls=HERE, in_flight=2, checked=True, **waiting) -> Servers:
    servers = Servers("tiny", urls, post.Key(None), in_flight=in_flight, **waiting)
    servers.clock = clock
    for server in servers.all:
        server.checked = checked
    return servers


def passing(why: str, wait: float | None = None) -> Passing:
    return Passing(why, of_call=False, wait=wait)


def go() -> threading.Event:
    return threading.Event()


def test_the_least_loaded_server_is_next_and_none_has_more_than_its_places(clock):
    servers = made(clock)
    a, b, c = servers.all
    with ExitStack() as held:
        taken = [held.enter_context(servers.place(go())) for _ in range(6)]
        assert Counter(server.url for server in taken) == dict.fromkeys(HERE, 2)
        with pytest.raises(AssertionError, match="for ever"), servers.place(go()):
            pass
        b.load = 0
        with servers.place(go()) as seventh:
            assert seventh is b
    assert (a.load, c.load) == (0, 0)


def test_a_server_that_nobody_looked_at_gets_one_request_alone(clock):
    servers = made(clock, urls=("http://a",), checked=False)
    with (
        servers.place(go()),
        pytest.raises(AssertionError, match="for ever"),
        servers.place(go()),
    ):
        pass


@pytest.mark.parametrize(("asked_for", "rest"), [(7.0, 7.0), (3600.0, 60.0), (0.0, 0.0)])
def test_a_server_rests_as_long_as_it_asks_for_up_to_patience(clock, asked_for, rest):
    servers = made(clock, urls=("http://a",))
    servers.rest(servers.all[0], passing("status 429", asked_for), clock())
    with servers.place(go()):
        assert clock.now == 100 + rest
    assert clock.waits == ([rest] if rest else [])


def test_each_rest_of_our_own_is_twice_the_one_before(clock):
    servers = made(clock, urls=("http://a",))
    [server] = servers.all
    for failures in range(1, 6):
        assert servers.rest(server, passing("refused"), clock()) == failures
        with servers.place(go()):
            pass
    assert clock.waits == [1.0, 2.0, 4.0, 8.0, 16.0]
    servers.fine(server)
    assert servers.rest(server, passing("refused"), clock()) == 1


def test_requests_that_fail_together_count_as_one_failure(clock):
    servers = made(clock, urls=("http://a",))
    [server] = servers.all
    begun = clock()
    clock.now += 1
    assert [servers.rest(server, passing("cut"), begun) for _ in range(4)] == [1, 1, 1, 1]
    assert servers.rest(server, passing("cut"), clock()) == 2


def test_while_one_rests_the_others_serve_and_then_it_is_tried_by_one_request(clock):
    servers = made(clock, urls=HERE[:2], in_flight=9)
    a, b = servers.all
    servers.rest(a, passing("refused", 5.0), clock())
    with ExitStack() as held:
        assert [held.enter_context(servers.place(go())) for _ in range(3)] == [b, b, b]
        clock.now += 5
        assert [held.enter_context(servers.place(go())) for _ in range(3)] == [a, b, b]
        servers.fine(a)
        assert held.enter_context(servers.place(go())) is a


def test_what_just_failed_a_request_is_avoided_where_another_is_ready(clock):
    servers = made(clock, urls=HERE[:2])
    a, b = servers.all
    b.load = 1
    with servers.place(go(), avoid=a) as taken:
        assert taken is b
    b.load = 2
    with servers.place(go(), avoid=a) as taken:
        assert taken is a


def test_a_lost_server_is_tried_again_when_patience_is_at_its_end(clock, caplog):
    servers = made(clock, urls=HERE[:2])
    a, b = servers.all
    servers.leave(a, SILENT, "refused")
    assert "http://a does not answer and is left out: refused" in caplog.text
    for _ in range(3):
        with servers.place(go()) as taken:
            assert taken is b
    clock.now += 60
    with servers.place(go()) as taken:
        assert taken is a


def test_when_none_is_left_each_is_named_with_its_last_error(clock):
    servers = made(clock, urls=HERE[:2])
    a, b = servers.all
    servers.leave(a, SILENT, "timed out")
    servers.leave(b, REFUSES, "status 401: who?")
    with pytest.raises(ReaderError) as none, servers.place(go()):
        pass
    assert str(none.value) == (
        "api:tiny: http://a does not answer (timed out); http://b refuses us (status 401: who?); "
        "what was finished is kept: run again once one does"
    )
    servers.begin()
    with servers.place(go()) as taken:
        assert taken is a


def test_nobody_waits_on_when_the_run_has_ended(clock):
    servers = made(clock)
    stop = go()
    servers.end(stop)
    with pytest.raises(CancelledError), servers.place(stop):
        pass
    assert clock.waits == []


def test_a_server_holds_at_least_one_request():
    with pytest.raises(ReaderError, match="in_flight is 0"):
        ApiReader("http://a", "tiny", in_flight=0)


# ----------------------------------------------------------------------- over HTTP


@pytest.fixture
def pair(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with loopback.serving() as a, loopback.serving() as b:
        a.text = b.text = lambda body: "says " + body["prompt"]
        yield a, b


def reader(*servers, **settings) -> ApiReader:
    given = {"backoff": 0.001, "timeout": 5} | settings
    return ApiReader(",".join(server.url for server in servers), "tiny", **given)


def asked(n: int) -> list[Generate]:
    return [Generate(Prompt.from_segments(str(i)), 9) for i in range(n)]


def check(made) -> None:
    assert [one.text for one in made] == [f"says {i}" for i in range(len(made))]


def prompts(*servers) -> Counter:
    return Counter(body["prompt"] for server in servers for _, body, _ in server.seen)


def test_two_servers_share_the_calls_and_each_is_asked_once(pair):
    a, b = pair
    check(reader(a, b).generate(asked(20)))
    assert min(len(a.seen), len(b.seen)) > 0
    assert prompts(a, b) == Counter(map(str, range(20)))


def test_a_server_that_is_not_there_costs_no_call(pair):
    a, _ = pair
    with loopback.serving() as gone:
        pass
    check(reader(gone, a).generate(asked(8)))
    assert prompts(a) == Counter(map(str, range(8)))


@pytest.mark.parametrize("status", [429, 503])
def test_not_now_sends_a_call_elsewhere_and_its_server_rests(pair, monkeypatch, status):
    """As long as it asked for; nothing waits while another server has room."""
    a, b = pair
    rests = []

    def rest(self, server, passing, since, real=Servers.rest):
        rests.append((server.url, passing.wait))
        return real(self, server, passing, since)

    monkeypatch.setattr(Servers, "rest", rest)
    a.plan = [(status, {"Retry-After": "3600"}, "later")]
    check(reader(a, b, in_flight=1).generate(asked(6)))
    assert rests == [(a.url, 3600.0)]
    assert len(a.seen) == 1  # it rests, as far as this test goes, for ever
    assert sum(prompts(a, b).values()) == 7


def test_however_often_a_server_says_not_now_no_call_is_lost(pair):
    a, b = pair
    for server in pair:
        server.plan = [(429, {"Retry-After": "0"}, ""), "ok", "ok"] * 9
    check(reader(a, b, retries=1).generate(asked(30)))


def test_a_call_that_one_server_trips_over_is_answered_by_the_other(pair):
    a, b = pair
    a.default = (500, {}, "oops")
    check(reader(a, b).generate(asked(6)))
    assert set(prompts(b)) >= set(map(str, range(6)))


def test_a_call_that_both_trip_over_fails_alone(pair):
    def fickle(body):
        if body["prompt"] == "3":
            raise RuntimeError("this prompt breaks me")  # the connection closes
        return "says " + body["prompt"]

    for server in pair:
        server.text = fickle
    made = reader(*pair, retries=2, in_flight=1).generate(asked(6))
    assert isinstance(made[3], CallError)
    assert "gave up after" in str(made[3])
    assert [one.text for i, one in enumerate(made) if i != 3] == [
        f"says {i}" for i in range(6) if i != 3
    ]


def test_a_server_that_refuses_us_is_left_out_and_told(pair, caplog):
    a, b = pair
    a.default = (401, {}, "who are you?")
    check(reader(a, b).generate(asked(8)))
    assert f"{a.url} refuses us and is left out: status 401: who are you?" in caplog.text


def test_when_the_last_server_is_gone_the_error_names_each(pair):
    a, b = pair
    a.default, b.default = (401, {}, "who are you?"), "close"
    with pytest.raises(ReaderError) as none:
        reader(a, b, retries=1).generate(asked(8))
    told = str(none.value)
    assert f"{a.url} refuses us (status 401" in told
    assert f"{b.url} does not answer (" in told
    assert "what was finished is kept: run again" in told


def test_a_reader_whose_servers_were_gone_can_be_asked_again(pair):
    a, b = pair
    a.default = b.default = (401, {}, "")
    one = reader(a, b)
    with pytest.raises(ReaderError, match="refuses us"):
        one.generate(asked(1))
    a.default = b.default = "ok"
    check(one.generate(asked(4)))


def test_a_server_that_lists_another_model_is_refused_by_name_before_anything_is_asked(pair):
    a, b = pair
    b.models = ["tinier", "large"]
    with pytest.raises(ReaderError) as refused:
        reader(a, b).generate(asked(4))
    told = str(refused.value)
    assert f"{b.url} does not list the model 'tiny', did you mean 'tinier'?" in told
    assert "it lists: 'tinier', 'large'" in told
    assert not a.seen
    assert not b.seen


def test_a_server_that_comes_late_with_another_model_stops_the_run(pair):
    a, b = pair
    b.models = (503, {}, "loading")
    one = reader(a, b)
    check(one.generate(asked(4)))
    assert not prompts(b)
    b.models = ["large"]
    one._servers.clock = lambda: float("inf")  # its rest is over
    with pytest.raises(ReaderError, match=f"{b.url} does not list the model 'tiny'"):
        one.generate(asked(4))
    assert not prompts(b)


@pytest.mark.parametrize("models", [(404, {}, ""), "{}", "[1]", '{"data": [{"name": "tiny"}]}'])
def test_a_server_without_a_list_of_models_must_stand_alone(pair, models, caplog):
    a, b = pair
    b.models = models
    with pytest.raises(ReaderError, match=f"{b.url} has no list of its models.*name it alone"):
        reader(a, b).generate(asked(4))
    with caplog.at_level(logging.WARNING):
        check(reader(b).generate(asked(4)))
    assert "taken at its word that it serves tiny" in caplog.text


def test_each_result_is_handed_out_before_the_last_is_there(pair):
    """Also of a run that fails: what was paid for is kept."""
    a, _ = pair
    a.plan = ["ok", "ok", "ok", (401, {}, "")]
    kept = {}
    with pytest.raises(ReaderError, match="status 401"):
        reader(a, in_flight=1).generate_each(asked(6), kept.__setitem__)
    assert {place: made.text for place, made in kept.items()} == {i: f"says {i}" for i in range(3)}


def test_requests_in_flight_when_a_run_ends_are_handed_out_too(pair):
    """One is refused while another waits for its answer, which comes and is kept."""
    a, b = pair
    begun, refused = threading.Event(), threading.Event()

    def slow(body):
        begun.set()
        assert refused.wait(5)
        return "says " + body["prompt"]

    a.text = slow
    one = reader(a, b, in_flight=1)
    real = one._servers._reply

    def reply(server, path, data):
        if server.url == b.url:
            assert begun.wait(5)
            try:
                raise ReaderError("the run must end")
            finally:
                refused.set()
        return real(server, path, data)

    one._servers._reply = reply
    kept = {}
    with pytest.raises(ReaderError, match="must end"):
        one.generate_each(asked(2), kept.__setitem__)
    assert [made.text for made in kept.values()] in (["says 0"], ["says 1"])


# ------------------------------------------------------------- what an operator must hear


QUOTA = json.dumps({"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}})


def test_a_quota_that_is_used_up_is_not_waited_for(pair):
    a, _ = pair
    a.default = (429, {"Retry-After": "60"}, QUOTA)
    with pytest.raises(ReaderError, match=r"refuses us .status 429: You exceeded your quota"):
        reader(a, backoff=60).generate(asked(2))
    assert len(a.seen) <= 2


def test_an_error_is_told_in_its_own_words(pair):
    a, _ = pair
    for body in ({"error": {"message": "too long"}}, {"detail": "too long"}, {"error": "too long"}):
        a.plan = [(400, {}, json.dumps(body))]
        [failed] = reader(a).generate(asked(1))
        assert str(failed) == "api:tiny: status 400: too long"


def test_a_server_that_calls_the_limit_by_its_newer_name(pair):
    a, _ = pair
    a.plan = [(400, {}, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")]
    check(reader(a, in_flight=1).generate(asked(3)))
    limits = [{n: v for n, v in body.items() if n.startswith("max_")} for _, body, _ in a.seen]
    assert limits == [{"max_tokens": 9}, *[{"max_completion_tokens": 9}] * 3]


def test_requests_to_this_machine_take_no_proxy_and_another_is_named(pair, monkeypatch):
    a, b = pair
    monkeypatch.setenv("http_proxy", b.url.replace("//", "//me:secret@").removesuffix("/v1"))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    check(reader(a).generate(asked(1)))
    for here in ("localhost", "x.localhost", "[::1]", "127.9.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"):
        assert post.proxy(f"http://{here}:1/v1") is None
    far = ApiReader("http://far.example/v1", "tiny")
    with pytest.raises(ReaderError) as refused:
        far.generate(asked(1))
    assert f"through the proxy 127.0.0.1:{b.server_port} of the environment" in str(refused.value)
    assert "secret" not in str(refused.value)
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:9")
    with pytest.raises(ConnectionError, match=r"through the proxy 127\.0\.0\.1:9") as gone:
        post.get("http://far.example/v1/models", post.Key(None), 5)
    assert "secret" not in str(gone.value)


def counting(server, count) -> None:
    """Let the server count a prompt's tokens so."""
    real = loopback.says

    def sound(self, body):
        return json.dumps(real("Rome", self.path, count(len(body["prompt"].split())))).encode()

    server.RequestHandlerClass = type("Counting", (loopback.Handler,), {"sound": sound})


def long(*words: int) -> list[Generate]:
    return [Generate(Prompt.from_segments("word " * n), 9) for n in words]


def test_an_answer_to_a_cut_prompt_is_a_failed_call(pair, caplog):
    a, _ = pair
    counting(a, lambda words: min(words, 400))
    fine, cut = reader(a).generate(long(300, 900))
    assert fine.text == "Rome"
    assert isinstance(cut, CallError)
    assert f"{a.url} read 405 tokens of it, and it has 900 words in 3600 bytes" in str(cut)
    han = Generate(Prompt.from_segments("\u4e2d" * 9000), 9)
    counting(a, lambda words: 512)
    assert "27000 bytes; give the server a longer context" in str(reader(a).generate([han])[0])
    counting(a, lambda words: 12)  # tells the same of any prompt
    assert not isinstance(reader(a).generate(long(9000))[0], CallError)
