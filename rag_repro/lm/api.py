"""Any OpenAI-compatible endpoint as a reader: text in, text out, no trace.

The key is taken from the environment when a request is sent, and kept nowhere.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import re
import reprlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from rag_repro.lm.endpoint import KEY_VARIABLE, PREFIX, checked
from rag_repro.lm.errors import CallError, ReaderError
from rag_repro.lm.plain import whole
from rag_repro.lm.post import Key, post
from rag_repro.schema import Generate, Generation, Kept, Marker, Prompt, Read, Reply, Soft

log = logging.getLogger(__name__)

_TEMPORARY = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_REFUSED = {301, 302, 303, 307, 308, 401, 402, 403, 404, 405, 410}
_PIECE = re.compile(r"\s*\S+|\s+")
# What chat templates and tokenizers write around turns; most servers take it for that anywhere.
_IMITATION = re.compile(
    r"<[|\uff5c][^\s<>]{1,40}[|\uff5c]>|<(?:start|end)_of_turn>|</?(?:s|bos|eos|pad|unk)>"
    r"|\[/?INST\]|<</?SYS>>"
)


class _Down(Exception):
    """A call was tried as often as it may be."""


class ApiReader:
    """Chat completions (`Prompt.chat`) or completions of one model at `url` (".../v1").

    key: the NAME of the environment variable that holds the key; None: no key.
    Failures that may pass (429, 5xx, timeouts, cut replies) are tried again up
    to `retries` times, waiting `backoff` seconds, then twice that, and so on
    (or what the server asks for, up to `patience` seconds). Then a one-word
    question is asked: if that is answered the call is at fault, and has a CallError
    in its place; else the endpoint is, and the run must stop, which can go on
    from its records later. timeout: seconds for one request with its reply.
    prefill: the server continues a last message of the assistant, so prompts
    with a Reply can be sent as chat.

    Results hold no tokens and offsets, which an endpoint does not tell in a way that
    could be continued; `prompt_tokens` and `written` are what the endpoint counts.
    How it tokenises is out of our hands: in what imitates a control token
    ("<|im_end|>") a zero-width space is put, which keeps it text.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        batch_size: int = 4,
        retries: int = 5,
        timeout: float = 120.0,
        backoff: float = 1.0,
        patience: float = 60.0,
        prefill: bool = False,
    ):
        self.url = checked(url)
        self.model = model
        self.name = f"{PREFIX}{model}"
        self.fingerprint = f"{PREFIX}{self.url}:{model}"
        self._key = Key(key)
        self._batch_size = batch_size
        self._retries = retries
        self._timeout = timeout
        self._backoff = backoff
        self._patience = patience
        self._prefill = prefill
        self._jitter = random.Random()  # of waiting times, which change no result
        self._stop = threading.Event()

    def __repr__(self) -> str:
        return f"ApiReader({self.url}, {self.model})"

    def generate(self, calls: Sequence[Generate]) -> list[Generation | CallError]:
        """One result a call, in order; requests run `batch_size` at a time.

        ReaderError: no key, or the endpoint is gone, refuses us, redirects us or
        does not know the model.
        """
        self._key.check()
        self._stop = threading.Event()
        with ThreadPoolExecutor(max(1, self._batch_size)) as pool:
            asked = [pool.submit(self._one, call) for call in calls]
            try:
                for one in as_completed(asked):
                    one.result()  # the first to fail, in time, ends the run
                return [one.result() for one in asked]
            finally:  # ... and the others need not wait and try on
                self._stop.set()
                for one in asked:
                    one.cancel()

    def read(self, calls: Sequence[Read]) -> list[CallError]:
        """An endpoint cannot read a given text: a CallError a call."""
        return [CallError(f"{self.name} cannot read a given text; use a local reader")] * len(calls)

    def key(self, call: Generate) -> str:
        """A name for a call's result by content: endpoint, model, request, rules by name."""
        path, body = self._request(call)
        stop = [s if isinstance(s, str) else ["rule", s.name] for s in call.stop]
        facts = [self.fingerprint, path, body, stop]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def _one(self, call: Generate) -> Generation | CallError:
        try:
            path, body = self._request(call)
            try:
                reply = self._asked(path, body, self._retries)
            except _Down as gave_up:
                why = str(gave_up)
            else:
                return self._generation(call, reply)
            if not self._stop.is_set():
                self._probe(path, body, why)
            raise CallError(f"{self.name}: gave up after {self._retries + 1} tries: {why}")
        except CallError as error:
            return error

    def _probe(self, path: str, body: dict[str, Any], why: str) -> None:
        """ReaderError: the endpoint does not answer a word, so no later call would fare better."""
        small = {"messages": [{"role": "user", "content": "Hello"}]}
        small = small if "messages" in body else {"prompt": "Hello"}
        try:
            self._asked(path, {"model": self.model, "max_tokens": 1, "temperature": 0, **small}, 0)
        except _Down:
            pass
        else:
            return
        raise ReaderError(
            f"{self.name}: {self.url} does not answer (after {self._retries + 1} tries: {why}); "
            "what was finished is kept: run again once it does"
        )

    # --------------------------------------------------------------- request

    def _request(self, call: Generate) -> tuple[str, dict[str, Any]]:
        lacking = [
            what
            for what, asked in {
                "traces": call.trace,
                "watched tokens": call.watch,
                "adapters": call.adapter,
                "soft tokens": any(isinstance(s, Soft) for s in call.prompt.segments),
                "kept tokens": any(isinstance(s, Kept) for s in call.prompt.segments),
                "markers": any(isinstance(s, Marker) for s in call.prompt.segments),
            }.items()
            if asked
        ]
        if lacking:
            raise CallError(f"{self.name} has no {', '.join(lacking)}; use a local reader")
        if "" in call.stop:
            raise CallError("an empty stop string would end every answer at once")
        strings = [s for s in call.stop if isinstance(s, str)]
        body: dict[str, Any] = {"model": self.model, "max_tokens": call.max_new_tokens}
        # Endpoints take four at most; the rest is cut here.
        body |= {"stop": strings[:4]} if strings else {}
        if call.sampling is None:
            body["temperature"] = 0
        else:
            s = call.sampling
            body |= {"temperature": s.temperature, "top_p": s.top_p, "seed": s.seed}
        if not call.prompt.chat:
            return "/completions", body | {"prompt": _text(call.prompt.segments)}
        return "/chat/completions", body | {"messages": self._messages(call.prompt)}

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        cut = next(
            (i for i, s in enumerate(prompt.segments) if isinstance(s, Reply)),
            len(prompt.segments),
        )
        messages = [{"role": "user", "content": _text(prompt.segments[:cut])}]
        if cut < len(prompt.segments):
            if not self._prefill:
                raise CallError(
                    f"{self.name} cannot continue a begun reply; set prefill=True if its server can"
                )
            messages.append({"role": "assistant", "content": _text(prompt.segments[cut:])})
        return messages

    def _asked(self, path: str, body: dict[str, Any], retries: int) -> dict[str, Any]:
        """The endpoint's reply. CallError: it refused the call; _Down: it kept failing."""
        data = json.dumps(body).encode()
        why = ""
        for attempt in range(retries + 1):
            wait = None
            try:
                status, headers, text = post(self.url + path, data, self._key, self._timeout)
            except ConnectionError as error:
                why = _shown(str(error))
            else:
                if status == 200:
                    try:
                        return json.loads(text)
                    except (ValueError, RecursionError):
                        why = f"a reply that is no JSON: {_shown(text)}"
                else:
                    why = f"status {status}: {_shown(text)}"
                    self._judged(status, headers, why)
                    wait = _seconds(headers.get("retry-after"))
            if attempt < retries and not self._stop.is_set():
                if wait is None:
                    wait = self._backoff * 2**attempt * self._jitter.uniform(0.75, 1.25)
                log.info("%s: %s; trying again", self.name, why)
                self._stop.wait(min(wait, self._patience))
            if self._stop.is_set():
                break
        raise _Down(why)

    def _judged(self, status: int, headers: dict[str, str], why: str) -> None:
        """ReaderError, CallError: a status that no second try will change."""
        if 300 <= status < 400:
            why = f"status {status}: redirects are not followed; name the address it points to, "
            why += _shown(headers.get("location", "none"))
        if status == 401 and not self._key.name:
            why += f" ({KEY_VARIABLE} holds no key)"
        if status in _REFUSED:
            raise ReaderError(f"{self.name}: {why}")
        if status not in _TEMPORARY:
            raise CallError(f"{self.name}: {why}")

    # ----------------------------------------------------------------- reply

    def _generation(self, call: Generate, reply: dict[str, Any]) -> Generation:
        try:
            choice = reply["choices"][0]
            text = choice["message"]["content"] if call.prompt.chat else choice["text"]
            usage = reply.get("usage") or {}
            counted, written = (
                _count(usage, name) for name in ("prompt_tokens", "completion_tokens")
            )
            cached = _count(usage.get("prompt_tokens_details") or {}, "cached_tokens")
        except (KeyError, IndexError, TypeError, AttributeError):
            told = _shown(reprlib.repr(reply))
            raise CallError(f"{self.name}: a reply of another form: {told}") from None
        text = "" if text is None else text
        if not isinstance(text, str):
            raise CallError(f"{self.name}: a reply whose text is a {type(text).__name__}")
        text = whole(text)
        finish = "length" if choice.get("finish_reason") == "length" else "eos"
        strings = [s for s in call.stop if isinstance(s, str)]
        cuts = [text.find(s) for s in strings if s in text]
        if cuts:
            text, finish = text[: min(cuts)], "stop"
        ruled = _until(text, [s for s in call.stop if not isinstance(s, str)])
        if ruled is not None:
            text, finish = ruled, "stop"
        return Generation(text, (), (), finish, counted, max(0, counted - cached), written=written)


def _text(segments: Sequence) -> str:
    said = whole("".join(s if isinstance(s, str) else s.text for s in segments))
    return _IMITATION.sub(lambda found: f"{found[0][0]}\u200b{found[0][1:]}", said)


def _count(usage: dict[str, Any], name: str) -> int:
    """A count as the endpoint tells it; 0 where it tells none that could be one."""
    told = usage.get(name)
    return told if type(told) is int and told > 0 else 0


def _until(text: str, rules: Sequence) -> str | None:
    """The text up to the word at which a rule first holds; an endpoint cannot ask us meanwhile."""
    for found in _PIECE.finditer(text):
        if any(rule.holds(text[: found.end()]) for rule in rules):
            return text[: found.end()]
    return None


def _seconds(header: str | None) -> float | None:
    """What Retry-After says, where it says seconds."""
    return float(header) if header and re.fullmatch(r"\d+(\.\d+)?", header) else None


def _shown(message: str) -> str:
    """The beginning of a message, in one line."""
    line = " ".join(message[:10_000].split())[:300]
    return "".join(c if c.isprintable() else "\ufffd" for c in line)
