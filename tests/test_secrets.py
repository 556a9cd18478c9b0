"""An API key reaches the endpoint's header and nothing else, whatever the endpoint does with it.

Its server writes the request's headers into every error and every answer. Then all that a run
leaves is searched: records, manifests, the call cache, logs, messages, tracebacks with their local
variables, an executed notebook.
"""

from __future__ import annotations

import base64
import json
import logging
import lzma
import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from rag_repro import data
from rag_repro.cli import main
from rag_repro.lm import api
from rag_repro.post import Key, post
from rag_repro.schema import Generate, Prompt
from rag_repro.schema.errors import ReaderError
from rag_repro.study import names, records, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.services import Workshop
from tests.lm import loopback
from tests.study.scripted import DATASET

# With characters that JSON, HTML and addresses write in other ways.
CANARY = "sk-Canary/7&+<x>\"y'=\\Zz"
SPELLINGS = {
    "plain": lambda key: key,
    "json": lambda key: json.dumps(key)[1:-1],
    "json, solidus": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "json, all": lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
    "html": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "html, hexadecimal": lambda key: "".join(f"&#x{ord(c):x};" for c in key),
    "address": lambda key: "".join(f"%{ord(c):02X}" for c in key),
    "lower case": str.lower,
}
STEM = "canary/7"  # what no way of quoting Python's text changes


@pytest.fixture
def ground(monkeypatch, tmp_path):
    monkeypatch.setattr(data, "load", lambda name, *, data_dir=None, split=None: DATASET)
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RAG_REPRO_API_KEY", CANARY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    class Quick(api.ApiReader):
        def __init__(self, *given, **settings):
            super().__init__(*given, **{"backoff": 0.001, "retries": 1, "timeout": 0.7} | settings)

    monkeypatch.setattr(api, "ApiReader", Quick)
    return tmp_path


def found_in(text: str) -> list[str]:
    """How the key is spelt where it is found."""
    found = [name for name, spell in SPELLINGS.items() if spell(CANARY) in text]
    return [*found, "in part"] if STEM in text.lower() else found


def found_under(folder: Path) -> dict[str, list[str]]:
    """The files that hold the key; packed ones are looked into."""
    held = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if content[:2] == b"\xfd7":
                content = lzma.decompress(content)
            text = content.decode(errors="replace")
            once = text.replace("\\\\", "\\")  # JSON in JSON
            found = [*found_in(text), *found_in(once), *found_in(str(path))]
            if found or base64.b64encode(CANARY.encode()).decode() in text:
                held[path.name] = found
    return held


def with_locals(error: BaseException) -> str:
    """Every frame of an error and of what led to it, with the local variables of each."""
    seen, told = set(), []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
        frames = traceback.TracebackException.from_exception(one, capture_locals=True)
        ours = [f for f in frames.stack if f"{Path(__file__).name}" not in f.filename]
        told += [f"{f.name} {f.line} {f.locals}" for f in ours]
        told += [str(one), repr(one), repr(one.args)]
    return "\n".join(told)


def condition(server, prompt="short"):
    settings = {"k": 1, "prompt": prompt, "max_new_tokens": 8}
    name = f"api:tiny@{server.url}"
    return Condition("little", "single_step", settings, retriever="bm25", reader=name)


def echo(server) -> str:
    return f"you sent {server.seen[-1][2]}"


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("prompt", ["short", "drrag"])
def test_a_run_whose_endpoint_answers_with_the_key(ground, caplog, spelling, prompt):
    said = SPELLINGS[spelling](CANARY)
    with caplog.at_level(logging.DEBUG), loopback.serving() as server:
        server.text = lambda body: f" {said} and {echo(server)}"
        made = condition(server, prompt)
        assert runner.run(made, Workshop(), ground / "records") == 6
        assert all(headers["Authorization"] == f"Bearer {CANARY}" for *_, headers in server.seen)
        stored = str(records.load(ground / "records", made).lines)
    assert "[key]" in stored  # the answer was kept, without what must not be
    assert "you sent" in stored
    assert not found_under(ground)
    assert not found_in(caplog.text)


# What the endpoint does at first (its errors hold the key), and whether the run survives that.
def told(status: int, spelling: str = "plain", **headers: str):
    body = json.dumps({"error": f"refused {SPELLINGS[spelling](CANARY)}"})
    return status, headers, SPELLINGS[spelling](CANARY) + " " + body


FAILURES = {
    "400": (told(400), True),
    "400, spelt for JSON": (told(400, "json, all"), True),
    "400, spelt for HTML": (told(400, "html"), True),
    "429": (told(429), True),
    "500": (told(500), True),
    "401": (told(401), False),
    "404": (told(404, "address"), False),
    "redirect": (told(302, Location=f"http://127.0.0.1:9/{CANARY}"), False),
    "no JSON": (CANARY, True),
    "a page": (f"<html><body>{CANARY}</body></html>", True),
    "another form": (json.dumps({"key": CANARY, CANARY: [CANARY]}), True),
    "a text that is none": (json.dumps({"choices": [{"text": [CANARY]}]}), True),
    "a count that is none": (
        json.dumps({"choices": [{"text": CANARY}], "usage": {"prompt_tokens": CANARY}}),
        True,
    ),
    "gibberish": ("gibberish", True),
    "cut": ("cut", True),
    "cut in an error": ("cut in an error", True),
    "stall": ("stall", True),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_run_that_fails(ground, caplog, failure):
    trouble, survives = FAILURES[failure]
    raised = None
    with caplog.at_level(logging.DEBUG), loopback.serving() as server:
        server.text = lambda body: echo(server)
        server.plan = [trouble] * 2
        made = condition(server)
        workshop = Workshop()
        try:
            runner.run(made, workshop, ground / "records", batch_size=1)
        except ReaderError as error:
            raised = error
        reader = workshop.reader(made.reader)
        shown = f"{reader!r} {reader.reader!r} {vars(reader.reader)} {reader.fingerprint} {made}"
    assert (raised is None) == survives
    assert not found_under(ground)
    assert not found_in(caplog.text)
    assert not found_in(shown)
    if raised is not None:
        assert not found_in(with_locals(raised))
        assert "[key]" in str(raised) or failure == "redirect"
    for entry in caplog.records:
        if entry.exc_info:
            assert not found_in(with_locals(entry.exc_info[1]))


def test_a_run_whose_endpoint_is_gone(ground, caplog):
    with loopback.serving() as server:
        made = condition(server)
    with caplog.at_level(logging.DEBUG), pytest.raises(ReaderError) as gone:
        runner.run(made, Workshop(), ground / "records")
    assert not found_in(with_locals(gone.value))
    assert not found_in(caplog.text)
    assert not found_under(ground)


@pytest.mark.parametrize("failure", FAILURES)
def test_errors_of_single_calls_and_their_frames(ground, failure):
    trouble, _ = FAILURES[failure]
    with loopback.serving() as server:
        server.plan = [trouble] * 2
        reader = api.ApiReader(server.url, "tiny", key="RAG_REPRO_API_KEY")
        try:
            [made] = reader.generate([Generate(Prompt.from_segments("a"), 2)])
        except ReaderError as error:
            made = error
        if isinstance(made, Exception):
            assert not found_in(with_locals(made))


@pytest.mark.parametrize("key", [f"{CANARY} two", f"{CANARY}\nline", f"{CANARY}ü"])
def test_a_key_that_cannot_be_one_is_not_told_either(ground, monkeypatch, key):
    monkeypatch.setenv("RAG_REPRO_API_KEY", key)
    with loopback.serving() as server:
        reader = api.ApiReader(server.url, "tiny", key="RAG_REPRO_API_KEY")
        with pytest.raises(ReaderError, match="RAG_REPRO_API_KEY") as refused:
            reader.generate([Generate(Prompt.from_segments("a"), 2)])
        assert not server.seen
    assert not found_in(with_locals(refused.value))


def test_a_connection_that_fails_carries_no_frame_that_knows_the_key(ground):
    with loopback.serving() as server:
        server.default = "gibberish"
        with pytest.raises(ConnectionError) as failed:
            post(server.url, b"{}", Key("RAG_REPRO_API_KEY"), 5)
    assert failed.value.__context__ is None
    assert not found_in(with_locals(failed.value))


@pytest.mark.parametrize("dummy", ["none", "EMPTY", "a", "ollama"])
def test_a_dummy_key_is_no_secret_that_would_eat_the_answers(ground, monkeypatch, dummy):
    monkeypatch.setenv("RAG_REPRO_API_KEY", dummy)
    with loopback.serving() as server:
        server.text = f"an {dummy} answer"
        reader = api.ApiReader(server.url, "tiny", key="RAG_REPRO_API_KEY")
        [made] = reader.generate([Generate(Prompt.from_segments("a"), 2)])
    assert made.text == f"an {dummy} answer"


CELLS = """
import logging
logging.basicConfig(level=logging.DEBUG, force=True)
from rag_repro.lm.api import ApiReader
from rag_repro.schema import Generate, Prompt
reader = ApiReader({url!r}, "tiny", key="RAG_REPRO_API_KEY", retries=1, backoff=0.001)
calls = [Generate(Prompt.from_segments("a"), 2)]
%%
display(reader, vars(reader))
print(reader.generate(calls))
print(reader.generate(calls))
%%
%xmode Verbose
reader.generate(calls)
"""


@pytest.mark.slow
def test_an_executed_notebook(ground):
    """Also where it fails under IPython's tracebacks that print local variables."""
    import nbformat
    from nbformat.v4 import new_code_cell, new_notebook

    with loopback.serving() as server:
        server.text = lambda body: f"{CANARY} {echo(server)}"
        server.plan = ["ok", told(500), told(500), "ok", told(401)]
        cells = CELLS.format(url=server.url).split("%%\n")
        book = new_notebook(cells=[new_code_cell(cell.strip()) for cell in cells])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
        nbformat.write(book, ground / "in.ipynb")
        ran = subprocess.run(
            [sys.executable, "-m", "papermill", "in.ipynb", "out.ipynb", "--log-output"],
            cwd=ground,
            capture_output=True,
            text=True,
            check=False,
        )
        assert len(server.seen) == 5
    out = (ground / "out.ipynb").read_text()
    assert "ReaderError" in out
    assert "[key]" in out
    # The traceback did print local variables, the reader among them.
    assert "self = ApiReader" in re.sub(r"\\u001b\[[\d;]*m", "", out)
    assert ran.returncode != 0
    assert not found_in(ran.stdout + ran.stderr)
    assert not found_under(ground)


ADDRESSES = [
    *(
        "http://me:{}@127.0.0.1:1",
        "http://{}@h",
        "https://h/x?token={}",
        "http://h#{}",
        "http://h?{}",
    ),
    *("HTTP://me:{}@h", "http:me:{}@h", "http:/me:{}@h", "//me:{}@h", "me:{}@h", "http://h\\@{}"),
    *("http://me:{}@h:port", "http://me: {}@h", "http://h/x;a?{}#pages=5", "ftp://me:{}@h"),
]


@pytest.mark.parametrize("prefix", ["", "milvus:", "Milvus:"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_of_a_search_holds_no_secret_and_its_refusal_tells_none(prefix, address, capsys):
    secret = "pw-7f3a9c"
    name = prefix + address.format(secret)
    for make in (names.check_retriever, names.label, Workshop().settings_of):
        if make is names.label and not name.startswith(("http://", "https://", "milvus:")):
            continue  # no name of anything: where it is used it is refused
        with pytest.raises(ValueError, match="address") as refused:
            make(name)
        assert secret not in f"{refused.value} {refused.value.args}"
    assert main(["corpus", "card", "world-B@1000", "--address", address.format(secret)]) == 2
    assert secret not in "".join(capsys.readouterr())


def test_an_identity_tells_what_is_searched_and_not_where():
    def made(retriever):
        return Condition("world-B@1000", "single_step", retriever=retriever)

    one, other = made("http://10.0.0.7:8765#pages=5"), made("https://search.example/at#pages=5")
    assert one.identity["retriever"] == "web#pages=5"
    assert (one.hash, one.path) == (other.hash, other.path)
    assert made("http://10.0.0.7:8765").hash != one.hash
    milvus = made("milvus:http://10.0.0.7:19530#dense")
    assert milvus.identity["retriever"] == "milvus#dense"
    assert made("milvus-bm25").identity["retriever"] == "milvus-bm25"
    for condition in (one, other, milvus):
        said = f"{condition.identity} {condition.path}"
        assert not any(word in said for word in ("10.0", "8765", "19530", "example", "http"))
    with pytest.raises(ValueError, match="RAG_REPRO_SEARCH_KEY"):
        made("http://me:secret@h")
    with pytest.raises(ValueError, match="RAG_REPRO_MILVUS_TOKEN"):
        made("milvus:http://me:secret@h")
