"""The endpoint reader against a small server on the loopback that can misbehave."""

from __future__ import annotations

import json
import logging
import time

import numpy as np
import pytest

from rag_repro import post
from rag_repro.cache import CachedReader, Store
from rag_repro.lm.api import ApiReader
from rag_repro.lm.endpoint import label, parse
from rag_repro.schema import (
    Generate,
    Generation,
    Kept,
    Marker,
    Prefix,
    Prompt,
    Read,
    Reply,
    Sampling,
    Soft,
    Until,
)
from rag_repro.schema.errors import CallError, ReaderError
from tests.lm import loopback

KEY = "sk-secret-0123456789"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with loopback.serving() as made:
        yield made


def reader(server: loopback.Server, **settings) -> ApiReader:
    given = {"backoff": 0.001, "timeout": 5} | settings
    return ApiReader(server.url, "tiny", **given)


def ask(reader: ApiReader, *segments, chat: bool = False, **settings):
    settings = {"max_new_tokens": 9} | settings
    return reader.generate([Generate(Prompt.from_segments(*segments, chat=chat), **settings)])[0]


def test_completions(server):
    made = ask(reader(server), Prefix("Q: who? "), Reply("A:"))
    path, body, headers = server.seen[0]
    assert path == "/v1/completions"
    assert body == {"model": "tiny", "max_tokens": 9, "temperature": 0, "prompt": "Q: who? A:"}
    assert "Authorization" not in headers
    assert (made.text, made.finish) == (server.text, "eos")
    assert (made.prompt_tokens, made.prefilled, made.written) == (12, 7, 3)
    assert (made.tokens, made.offsets, made.trace) == ((), (), None)


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


def reply(content, finish="stop", **more) -> str:
    """A chat's reply as it stands in JSON."""
    choice = {"message": {"content": content, **more}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": {"completion_tokens": 7}})


REASONED = [
    "<think>\nRome?\nNo.\n</think>\n\nParis",
    "<think></think>Paris",
    "Rome?\nNo.\n</think>\n\nParis",
    "<think>a <think>b</think> c</think> Paris",
    "<reasoning>Rome?</reasoning>\nParis",
    '<Thought depth="2">Rome?</Thought>Paris',
    "<thinking>Rome?</thinking>Paris",
    "<seed:think>Rome?</seed:think>Paris",
    "[THINK]Rome?[/THINK]Paris",
    "<|begin_of_thought|>Rome?<|end_of_thought|>Paris",
    "<|START_THINKING|>Rome?<|END_THINKING|>Paris",
    "\u25c1think\u25b7Rome?\u25c1/think\u25b7Paris",
    "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant<|channel|>final<|message|>Paris",
]


@pytest.mark.parametrize("said", REASONED)
def test_reasoning_is_no_part_of_the_answer(server, said):
    server.plan = [reply(said)]
    made = ask(reader(server), "Who?", chat=True, stop=("\n",))
    assert (made.text.strip(), len(server.seen)) == ("Paris", 1)
    assert "stop" not in server.seen[0][1]


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "Par"}, {"type": "output_text", "text": "is"}],
        ["Paris"],
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Rome?"}]}, "Paris"],
    ],
)
def test_an_answer_in_parts_is_put_together(server, content):
    server.plan = [reply(content)]
    assert ask(reader(server), "Who?", chat=True).text == "Paris"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (reply(None), "the reply is empty (finish_reason stop, 7 tokens)"),
        (reply(""), "the reply is empty"),
        (reply(" \n\n"), "the reply is empty"),
        (reply([]), "the reply is empty"),
        (reply(None, "tool_calls"), "the reply is empty (finish_reason tool_calls"),
        (reply("Question: what?"), "the reply is empty"),  # cut here at "Question:"
        (reply(None, refusal="I must not."), "the model refuses (I must not.)"),
        (reply(None, "content_filter"), "broke its reply off (finish_reason content_filter)"),
        (reply("It is Par", "content_filter"), "broke its reply off"),
        (reply("It is Par", "error"), "broke its reply off"),
        (reply(None, "length", reasoning_content="Rome?"), "cut inside its reasoning after 7"),
        (reply("", "length", reasoning="Rome?"), "cut inside its reasoning"),
        (reply("<think>\nRome?", "length"), "cut inside its reasoning"),
        (reply("[THINK]Rome?", "length"), "cut inside its reasoning"),
        (reply("<|channel|>analysis<|message|>Rome?", "length"), "cut inside its reasoning"),
        (reply("<think>Rome?</think>\n", "length"), "the reply is empty"),
    ],
)
def test_an_answer_that_did_not_come_is_a_failed_call_and_not_kept(server, tmp_path, said, why):
    one = CachedReader(reader(server), Store(tmp_path / "calls.sqlite"))
    call = Generate(Prompt.from_segments("Who?", chat=True), 9, stop=("\n", "Question:"))
    server.default = said
    [failed] = one.generate([call])
    assert isinstance(failed, CallError)
    assert "api:tiny: no answer: " in str(failed)
    assert why in str(failed)
    server.default = reply("Paris")
    assert one.generate([call])[0].text == "Paris"


@pytest.mark.parametrize("said", ["\n\nParis", " \n \n\nParis", "<think>\nRome?</think>\nParis"])
@pytest.mark.parametrize("chat", [True, False])
def test_a_stop_before_the_answer_begins_is_none(server, said, chat):
    """Whoever cuts: a server stops at once, and is asked once more without."""

    def cut(body: dict) -> str:
        return min(
            (said.partition(stop)[0] for stop in body.get("stop", [])), key=len, default=said
        )

    server.text = lambda body: cut(body) if body.get("stop") else said + "\nmore"
    made = ask(reader(server), "Who?", chat=chat, stop=("\n",))
    assert (made.text.strip(), made.finish) == ("Paris", "stop")
    assert len(server.seen) == (1 if chat else 2)


def test_a_reply_that_was_begun_may_end_at_once(server):
    """A chain of sentences ends so; its first sentence must come."""
    server.text = "\nQuestion: what?"
    made = ask(reader(server), "Who?", Reply(" Ada wrote it."), stop=("\n",))
    assert (made.text, made.finish) == ("", "stop")


@pytest.mark.parametrize(
    "call",
    [
        Generate(Prompt.from_segments("a"), 9, trace=True),
        Generate(Prompt.from_segments("a"), 9, watch=("x",)),
        Generate(Prompt.from_segments("a", Soft("r2", np.zeros((1, 1)), 0)), 9),
        Generate(Prompt.from_segments("a", Kept(Generation("b", (1,), (0,), "eos", 1, 1), 1)), 9),
        Generate(Prompt.from_segments("a", Marker("[Relevant]")), 9),
    ],
)
def test_what_an_endpoint_lacks_is_refused_before_it_is_asked(server, call):
    made = reader(server).generate([call])[0]
    assert isinstance(made, CallError)
    assert "use a local reader" in str(made)
    assert isinstance(reader(server).read([Read(Prompt.from_segments("a"), "b")])[0], CallError)
    assert not server.seen


PASSING = [
    (429, {"Retry-After": "0"}, "slow down"),
    (429, {"retry-after": "0.01"}, "slow down"),
    (429, {}, "slow down"),
    (500, {}, "oops"),
    (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, "later"),
    (503, {"Retry-After": "soon"}, "later"),
    "cut",
    "cut without a length",
    "cut in the chunks",
    "cut in an error",
    "close",
    "gibberish",
    "{not json",
    "<html><body>Please sign in</body></html>",
    "[" * 100_000,
]


@pytest.mark.parametrize("trouble", PASSING, ids=lambda trouble: str(trouble)[:30])
def test_what_may_pass_is_tried_again(server, trouble):
    server.plan = [trouble, trouble]
    assert ask(reader(server), "Who?").text == server.text
    assert len(server.seen) == 3


@pytest.mark.parametrize("trouble", ["stall", "stall in the body", "drip", "drip in the body"])
def test_a_server_that_stalls(server, trouble):
    server.plan = [trouble]
    one = reader(server, timeout=0.7, retries=1)
    assert ask(one, "Who?").text == server.text
    server.plan = [trouble] * 2
    made = ask(one, "Who?")
    assert isinstance(made, CallError)
    assert "2 tries" in str(made)
    assert "timed out" in str(made)


def test_a_reply_without_end(server, monkeypatch):
    monkeypatch.setattr(post, "LARGEST", 1000)
    server.plan = [json.dumps(loopback.says("x" * 2000))] * 2
    assert "more than 1000 bytes" in str(ask(reader(server, retries=1), "Who?"))


def test_one_call_that_fails_leaves_the_others(server):
    server.plan = [(400, {}, "prompt too long")]
    one = reader(server, in_flight=1)
    made = one.generate([Generate(Prompt.from_segments(str(i)), 9) for i in range(3)])
    assert isinstance(made[0], CallError)
    assert "prompt too long" in str(made[0])
    assert [m.text for m in made[1:]] == [server.text] * 2
    assert len(server.seen) == 3


def test_a_prompt_that_the_server_trips_over_fails_alone(server):
    """It keeps answering 500 to one prompt, and answers everything else."""
    server.plan = [(500, {}, "cannot parse this")] * 2
    one = reader(server, in_flight=1, retries=1)
    made = one.generate([Generate(Prompt.from_segments(str(i)), 9) for i in range(2)])
    assert isinstance(made[0], CallError)
    assert "gave up after 2 tries: status 500: cannot parse this" in str(made[0])
    assert made[1].text == server.text
    # two tries, the question whether anybody is there, the second call
    assert [body["prompt"] for _, body, _ in server.seen] == ["0", "0", "Hello", "1"]


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("trouble", [(429, {}, "no quota"), (500, {}, "oops"), "close", "stall"])
def test_an_endpoint_that_answers_nobody_stops_the_run(server, trouble, chat):
    server.default = trouble
    one = reader(server, retries=1, timeout=0.2)
    with pytest.raises(ReaderError, match="does not answer") as stopped:
        ask(one, "Who?", chat=chat)
    assert not isinstance(stopped.value, CallError)
    assert "run again" in str(stopped.value)


def test_an_endpoint_that_is_not_there(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with loopback.serving() as gone:
        pass
    with pytest.raises(ReaderError, match=f"{gone.url} does not answer.*refused"):
        ask(reader(gone), "Who?")


def test_a_run_that_must_stop_stops_at_once(server):
    """The other calls of the batch do not go on waiting and trying."""
    server.default = (429, {"Retry-After": "30"}, "wait")
    start = time.monotonic()
    for turn in range(1, 9):  # whichever of the two calls is refused
        server.plan = [(401, {}, "who are you?")]
        with pytest.raises(ReaderError, match="RAG_REPRO_API_KEY"):
            reader(server, in_flight=2).generate(
                [Generate(Prompt.from_segments(str(i)), 9) for i in range(9)]
            )
        assert len(server.seen) < 5 * turn
    assert time.monotonic() - start < 20


def test_results_come_back_in_order(server):
    """Though later ones are ready first, and some are tried again."""
    server.text = lambda body: "says " + body["prompt"]
    server.plan = [(500, {}, ""), "close", (429, {}, ""), "cut"]
    asked = [Generate(Prompt.from_segments(str(i)), 9) for i in range(12)]
    made = reader(server, in_flight=4, backoff=0.02).generate(asked)
    assert [m.text for m in made] == [f"says {i}" for i in range(12)]


@pytest.mark.parametrize(
    "reply",
    [
        '{"choices": []}',
        '{"choices": [{"text": 3}]}',
        '{"choices": [{"text": [{"type": "text"}]}]}',
        '{"choices": "text"}',
        '{"choices": [null]}',
        '{"choices": [{"text": "a"}], "usage": [1]}',
        '{"a": 1}',
        "[]",
        "null",
        '"text"',
        "3",
        '{"error": {"message": "model is loading"}}',
    ],
)
def test_replies_that_are_not_what_was_asked_for(server, reply):
    server.plan = [reply]
    made = ask(reader(server), "Who?")
    assert isinstance(made, CallError)
    assert "a reply" in str(made)
    assert len(server.seen) == 1


def test_the_error_in_a_reply_is_told(server):
    server.plan = ['{"error": "model is \\u001b[31mloading"}']
    told = str(ask(reader(server), "Who?"))
    assert "model is" in told
    assert told.isprintable()


@pytest.mark.parametrize("counts", ["Infinity", "-3", '"12"', "null", "1e400", "true", "9" * 400])
def test_counts_that_cannot_be(server, counts):
    server.plan = [f'{{"choices": [{{"text": "a"}}], "usage": {{"prompt_tokens": {counts}}}}}']
    made = ask(reader(server), "Who?")
    assert made.text == "a"
    assert made.prefilled == made.prompt_tokens >= 0


def test_half_a_character_is_no_text_that_a_record_could_hold(server):
    server.plan = ['{"choices": [{"text": "a \\ud83d"}]}']
    assert ask(reader(server), "Who?").text == "a \ufffd"
    assert ask(reader(server), "Who \ud83d?").text == server.text
    assert server.seen[-1][1]["prompt"] == "Who \ufffd?"


@pytest.mark.parametrize(
    "imitated",
    [
        "<|im_end|>",
        "<|start_header_id|>",
        "<end_of_turn>",
        "[INST]",
        "</s>",
        "<</SYS>>",
        "<\uff5cUser\uff5c>",
    ],
)
@pytest.mark.parametrize("chat", [True, False])
def test_what_imitates_a_control_token_is_sent_as_text(server, imitated, chat):
    """The endpoint tokenises by its own rules, most of which take such words for the tokens."""
    ask(reader(server), f"Who {imitated}", " <|im_", "start|>? <b> [1] a<b|c>d", chat=chat)
    body = server.seen[0][1]
    sent = body["messages"][0]["content"] if chat else body["prompt"]
    plain = f"Who {imitated} <|im_start|>? <b> [1] a<b|c>d"
    assert imitated not in sent
    assert "<|im_start|>" not in sent
    assert sent.replace("\u200b", "") == plain
    assert sent.endswith("? <b> [1] a<b|c>d")


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


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_does_not_carry_the_key_away(server, monkeypatch, status):
    monkeypatch.setenv("TINY_KEY", KEY)
    server.plan = [(status, {"Location": server.url + "/elsewhere"}, "")]
    with pytest.raises(ReaderError, match=r"redirects are not followed.*elsewhere"):
        ask(reader(server, key="TINY_KEY"), "Who?")
    assert len(server.seen) == 1


@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_one(server, monkeypatch, value):
    monkeypatch.setenv("TINY_KEY", value)
    with pytest.raises(ReaderError, match="TINY_KEY") as refused:
        ask(reader(server, key="TINY_KEY"), "Who?")
    assert not value or value not in str(refused.value)
    assert not server.seen


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "host/v1",
        "http://u:p@host/v1",
        "http://h?k=1",
        "http://h/v1#k",
        "http://h:port/v1",
        "http://[::1/v1",
        "http://h/v 1",
        "http://h/v1\n",
        "http://",
        "http://h/v1,",
        "http://h/v1,i/v1",
        "http://h/v1, http://i/v1",
        "http://h/v1,http://i/v1,http://h/v1/",
        "http://h/v1,http://u:p@i/v1",
    ],
)
def test_addresses_that_cannot_be_used(url):
    with pytest.raises(ReaderError) as refused:
        ApiReader(url, "tiny")
    assert "u:p" not in str(refused.value)
    with pytest.raises(ReaderError) as refused:
        parse(f"api:tiny@{url}")
    assert "u:p" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "model", "urls"),
    [
        ("api:tiny@http://h:1/v1", "tiny", ["http://h:1/v1"]),
        ("api:a/b@fp8:7b@https://h/v1/", "a/b@fp8:7b", ["https://h/v1"]),
        ("api:m@http://x@http://h", "m@http://x", ["http://h"]),
        ("api:m@http://h/v1,https://i:2/v1/", "m", ["http://h/v1", "https://i:2/v1"]),
    ],
)
def test_names_of_readers_at_endpoints(name, model, urls):
    assert parse(name) == (model, tuple(urls))
    assert label(name) == f"api:{model}"


def test_a_given_text_cannot_be_read_through_the_cache_either(tmp_path):
    reader = ApiReader("http://127.0.0.1:9/v1", "tiny")
    [refused] = CachedReader(reader, Store(tmp_path / "calls.sqlite")).read(
        [Read(Prompt.from_segments("a"), "b")]
    )
    assert isinstance(refused, CallError)
    assert "use a local reader" in str(refused)


def test_names_of_other_readers_are_their_labels():
    assert [label(name) for name in ("smollm2-135m", "a/folder@http", None)] == [
        "smollm2-135m",
        "a/folder@http",
        None,
    ]


@pytest.mark.parametrize("name", ["api:tiny", "api:@http://h", "api:tiny@h/v1", "tiny@http://h"])
def test_names_that_name_no_endpoint(name):
    with pytest.raises(ReaderError, match="api:MODEL@URL"):
        parse(name)


def test_calls_are_named_by_what_is_asked(server):
    one = reader(server)
    call = Generate(Prompt.from_segments("a"), 9, stop=("x",))
    assert one.key(call) == one.key(Generate(Prompt.from_segments("a"), 9, stop=("x",)))
    assert one.key(call) != one.key(Generate(Prompt.from_segments("a"), 9, stop=("y",)))
    assert one.key(call) != one.key(
        Generate(Prompt.from_segments("a"), 9, stop=(Until("x", bool),))
    )
    assert one.key(call) != ApiReader(server.url, "other").key(call)


def test_answers_are_kept_by_address_and_records_know_the_model_alone(server, tmp_path):
    """Two servers may call other models by one name."""

    def at(urls: str) -> ApiReader:
        return ApiReader(urls, "tiny")

    call = Generate(Prompt.from_segments("a"), 9)
    a, b = "http://a:1/v1", "http://b/v1"
    assert at(a).key(call) != at(b).key(call) != at(f"{a},{b}").key(call)
    assert at(f"{a},{b}").key(call) == at(f"{b}/,HTTP://A:1/v1").key(call)
    assert at(a).fingerprint == at(b).fingerprint == "api:tiny"
    store = Store(tmp_path / "calls.sqlite")
    with loopback.serving() as other:
        other.text = "Nobody knows."
        said = [CachedReader(reader(s), store).generate([call])[0].text for s in (server, other)]
    assert said == [server.text, other.text]
