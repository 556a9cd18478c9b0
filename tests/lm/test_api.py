"""The endpoint reader against a small server on the loopback that can misbehave."""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from rag_repro.lm.api import ApiReader
from rag_repro.lm.errors import CallError, ReaderError
from rag_repro.schema import (
    Generate,
    Generation,
    Kept,
    Prefix,
    Prompt,
    Read,
    Reply,
    Sampling,
    Soft,
    Until,
)

KEY = "sk-secret-0123456789"


class Server(ThreadingHTTPServer):
    """Answers from `plan`: what each request in turn gets; "ok" at the end of it."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: list = []
        self.seen: list[tuple[str, dict, dict]] = []
        self.text = "It is Rome. It is Paris."
        self.stall = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, body, dict(self.headers)))
        what = self.server.plan.pop(0) if self.server.plan else "ok"
        if isinstance(what, tuple):
            status, headers, text = what
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())
            return
        if what == "stall":
            self.server.stall.wait(10)
            return
        text = self.server.text
        said = {"message": {"content": text}} if "chat" in self.path else {"text": text}
        reply = {
            "choices": [said | {"finish_reason": "stop"}],
            "usage": {"prompt_tokens": 12, "prompt_tokens_details": {"cached_tokens": 5}},
        }
        data = what.encode() if what.startswith("{") else json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if what == "cut" else data)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.stall.set()
    made.shutdown()
    made.server_close()
    thread.join()


def reader(server: Server, **settings) -> ApiReader:
    return ApiReader(server.url, "tiny", **({"backoff": 0.001, "timeout": 5} | settings))


def ask(reader: ApiReader, *segments, chat: bool = False, **settings):
    settings = {"max_new_tokens": 9} | settings
    return reader.generate([Generate(Prompt.of(*segments, chat=chat), **settings)])[0]


def test_completions(server):
    made = ask(reader(server), Prefix("Q: who? "), Reply("A:"))
    path, body, headers = server.seen[0]
    assert path == "/v1/completions"
    assert body == {"model": "tiny", "max_tokens": 9, "temperature": 0, "prompt": "Q: who? A:"}
    assert "Authorization" not in headers
    assert (made.text, made.finish) == (server.text, "eos")
    assert (made.prompt_tokens, made.prefilled, made.tokens, made.trace) == (12, 7, (), None)


def test_chat(server):
    sampling = Sampling(7, 0.5, 0.9)
    made = ask(reader(server), "Who?", chat=True, sampling=sampling, stop=(". It",))
    path, body, _ = server.seen[0]
    assert path == "/v1/chat/completions"
    assert body["messages"] == [{"role": "user", "content": "Who?"}]
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.5, 0.9, 7)
    assert body["stop"] == [". It"]
    assert (made.text, made.finish) == ("It is Rome", "stop")


def test_a_begun_reply_needs_a_server_that_continues_it(server):
    refused = ask(reader(server), "Who?", Reply("Answer:"), chat=True)
    assert isinstance(refused, CallError)
    assert not server.seen
    ask(reader(server, prefill=True), "Who?", Reply("Answer:"), " It", chat=True)
    assert server.seen[0][1]["messages"][1] == {"role": "assistant", "content": "Answer: It"}


def test_rules_are_applied_to_what_comes_back(server):
    rule = Until("first sentence", lambda text: text.endswith("."))
    made = ask(reader(server), "Who?", stop=(rule, "a", "b", "c", "d", "zz"))
    assert len(server.seen[0][1]["stop"]) == 4
    assert (made.text, made.finish) == ("It is Rome.", "stop")


@pytest.mark.parametrize(
    "call",
    [
        Generate(Prompt.of("a"), 9, trace=True),
        Generate(Prompt.of("a"), 9, watch=("x",)),
        Generate(Prompt.of("a"), 9, adapter="qa"),
        Generate(Prompt.of("a", Soft("r2", np.zeros((1, 1)), 0)), 9),
        Generate(Prompt.of("a", Kept(Generation("b", (1,), (0,), "eos", 1, 1), 1)), 9),
    ],
)
def test_what_an_endpoint_lacks_is_refused_before_it_is_asked(server, call):
    made = reader(server).generate([call])[0]
    assert isinstance(made, CallError)
    assert "use a local reader" in str(made)
    assert isinstance(reader(server).read([Read(Prompt.of("a"), "b")])[0], CallError)
    assert not server.seen


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {"Retry-After": "0"}, "slow down"),
        (500, {}, "oops"),
        (503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "later"),
        "cut",
        "{not json",
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again(server, trouble):
    server.plan = [trouble, trouble]
    assert ask(reader(server), "Who?").text == server.text
    assert len(server.seen) == 3


def test_a_server_that_stalls(server):
    server.plan = ["stall"]
    assert ask(reader(server, timeout=0.2), "Who?").text == server.text
    server.plan = ["stall"] * 2
    made = ask(reader(server, timeout=0.2, retries=1), "Who?")
    assert isinstance(made, CallError)
    assert "2 tries" in str(made)
    assert "timed out" in str(made)


def test_one_call_that_fails_leaves_the_others(server):
    server.plan = [(400, {}, "prompt too long")]
    one = reader(server, batch_size=1)
    made = one.generate([Generate(Prompt.of(str(i)), 9) for i in range(3)])
    assert isinstance(made[0], CallError)
    assert "prompt too long" in str(made[0])
    assert [m.text for m in made[1:]] == [server.text] * 2
    assert len(server.seen) == 3


def test_results_come_back_in_order(server):
    asked = [Generate(Prompt.of(str(i)), 9) for i in range(12)]
    assert all(m.text == server.text for m in reader(server, batch_size=4).generate(asked))
    assert sorted(body["prompt"] for _, body, _ in server.seen) == sorted(map(str, range(12)))


@pytest.mark.parametrize("reply", ['{"choices": []}', '{"choices": [{"text": 3}]}', '{"a": 1}'])
def test_replies_that_are_not_what_was_asked_for(server, reply):
    server.plan = [reply]
    assert isinstance(ask(reader(server), "Who?"), CallError)


def test_the_key_goes_to_the_endpoint_and_nowhere_else(server, monkeypatch, caplog):
    monkeypatch.setenv("TINY_KEY", KEY)
    one = reader(server, key="TINY_KEY", retries=1)
    with caplog.at_level(logging.DEBUG):
        assert ask(one, "Who?").text == server.text
        assert server.seen[0][2]["Authorization"] == f"Bearer {KEY}"
        server.plan = [(500, {}, f"bad key {KEY}")] * 2
        failed = ask(one, "Who?")
        server.plan = [(401, {}, f"who is {KEY}?")]
        with pytest.raises(ReaderError, match="status 401") as refused:
            ask(one, "Who?")
    everything = f"{failed} {refused.value} {one!r} {one.fingerprint} {vars(one)} {caplog.text}"
    assert "bad key [key]" in everything
    assert KEY not in everything


def test_a_redirect_does_not_carry_the_key_away(server, monkeypatch):
    monkeypatch.setenv("TINY_KEY", KEY)
    server.plan = [(307, {"Location": server.url + "/elsewhere"}, "")]
    made = ask(reader(server, key="TINY_KEY"), "Who?")
    assert isinstance(made, CallError)
    assert len(server.seen) == 1


@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_one(server, monkeypatch, value):
    monkeypatch.setenv("TINY_KEY", value)
    with pytest.raises(ReaderError, match="TINY_KEY") as refused:
        ask(reader(server, key="TINY_KEY"), "Who?")
    assert not value or value not in str(refused.value)
    assert not server.seen


@pytest.mark.parametrize("url", ["ftp://host/v1", "host/v1", "http://u:p@host/v1", "http://h?k=1"])
def test_addresses_that_cannot_be_used(url):
    with pytest.raises(ReaderError) as refused:
        ApiReader(url, "tiny")
    assert "u:p" not in str(refused.value)


def test_calls_are_named_by_what_is_asked(server):
    one = reader(server)
    call = Generate(Prompt.of("a"), 9, stop=("x",))
    assert one.key(call) == one.key(Generate(Prompt.of("a"), 9, stop=("x",)))
    assert one.key(call) != one.key(Generate(Prompt.of("a"), 9, stop=("y",)))
    assert one.key(call) != one.key(Generate(Prompt.of("a"), 9, stop=(Until("x", bool),)))
    assert one.key(call) != ApiReader(server.url, "other").key(call)
