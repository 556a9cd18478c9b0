"""Any OpenAI-compatible endpoint as a reader: text in, text out, no trace.

The key is taken from the environment when a request is sent, and kept nowhere.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import os
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rag_repro.lm.errors import CallError, ReaderError
from rag_repro.schema import Generate, Generation, Kept, Prompt, Read, Reply, Soft

log = logging.getLogger(__name__)

_TEMPORARY = {408, 409, 425, 429, 500, 502, 503, 504}
_REFUSED = {401, 403, 404}
_PIECE = re.compile(r"\s*\S+|\s+")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


class ApiReader:
    """Chat completions (`Prompt.chat`) or completions of one model at `url` (".../v1").

    key: the NAME of the environment variable that holds the key; None: no key.
    Failures that may pass (429, 5xx, timeouts, cut replies) are tried again up
    to `retries` times, waiting `backoff` seconds, then twice that, and so on
    (or what the server asks for, up to `patience` seconds). A call that still
    fails has a CallError in its place. prefill: the server continues a last
    message of the assistant, so prompts with a Reply can be sent as chat.

    Results hold no tokens and offsets, which an endpoint does not tell in a way that
    could be continued; prompt tokens are what the endpoint counts.
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
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ReaderError("the endpoint's address must begin with http:// or https://")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ReaderError(
                "the endpoint's address must hold no credentials and no query: "
                "put the key into an environment variable and name that"
            )
        self.url = url.rstrip("/")
        self.model = model
        self.name = f"api:{model}"
        self.fingerprint = f"api:{self.url}:{model}"
        self._key_name = key
        self._batch_size = batch_size
        self._retries = retries
        self._timeout = timeout
        self._backoff = backoff
        self._patience = patience
        self._prefill = prefill
        self._opener = urllib.request.build_opener(_NoRedirect)

    def __repr__(self) -> str:
        return f"ApiReader({self.url}, {self.model})"

    def generate(self, calls: Sequence[Generate]) -> list[Generation | CallError]:
        """One result a call, in order; requests run `batch_size` at a time.

        ReaderError: no key, or the endpoint refuses us or does not know the model.
        """
        with ThreadPoolExecutor(max(1, self._batch_size)) as pool:
            return list(pool.map(self._one, calls))

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
            reply = self._post(path, body)
            return self._generation(call, reply)
        except CallError as error:
            return error

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
            }.items()
            if asked
        ]
        if lacking:
            raise CallError(f"{self.name} has no {', '.join(lacking)}; use a local reader")
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

    def _key(self) -> str | None:
        if self._key_name is None:
            return None
        key = os.environ.get(self._key_name, "").strip()
        if not key:
            raise ReaderError(f"the environment variable {self._key_name} holds no key")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            # http.client would print the key in its complaint.
            raise ReaderError(f"the key in {self._key_name} holds white space or odd characters")
        return key

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The endpoint's reply. CallError: it refused the call, or kept failing."""
        key = self._key()
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        data = json.dumps(body).encode()
        why = ""
        for attempt in range(self._retries + 1):
            request = urllib.request.Request(self.url + path, data, headers, method="POST")
            wait = None
            try:
                with self._opener.open(request, timeout=self._timeout) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                why = f"status {error.code}: {_shorten(error.read(2000), key)}"
                if error.code in _REFUSED:
                    raise ReaderError(f"{self.name}: {why}") from None
                if error.code not in _TEMPORARY:
                    raise CallError(f"{self.name}: {why}") from None
                wait = _seconds(error.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException, ValueError) as error:
                # Timeouts, dropped connections, replies cut short (so no JSON).
                why = _shorten(f"{type(error).__name__}: {error}".encode(), key)
            if attempt < self._retries:
                if wait is None:
                    wait = self._backoff * 2**attempt * random.uniform(0.75, 1.25)
                log.info("%s: %s; trying again", self.name, why)
                time.sleep(min(wait, self._patience))
        raise CallError(f"{self.name}: gave up after {self._retries + 1} tries: {why}")

    # ----------------------------------------------------------------- reply

    def _generation(self, call: Generate, reply: dict[str, Any]) -> Generation:
        try:
            choice = reply["choices"][0]
            text = choice["message"]["content"] if call.prompt.chat else choice["text"]
            usage = reply.get("usage") or {}
            counted = int(usage.get("prompt_tokens") or 0)
            details = usage.get("prompt_tokens_details") or {}
            cached = int(details.get("cached_tokens") or 0)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise CallError(f"{self.name}: a reply without {error}") from None
        text = text or ""
        if not isinstance(text, str):
            raise CallError(f"{self.name}: a reply whose text is a {type(text).__name__}")
        finish = "length" if choice.get("finish_reason") == "length" else "eos"
        strings = [s for s in call.stop if isinstance(s, str)]
        cuts = [text.find(s) for s in strings if s in text]
        if cuts:
            text, finish = text[: min(cuts)], "stop"
        ruled = _until(text, [s for s in call.stop if not isinstance(s, str)])
        if ruled is not None:
            text, finish = ruled, "stop"
        return Generation(text, (), (), finish, counted, counted - cached)


def _text(segments: Sequence) -> str:
    return "".join(s if isinstance(s, str) else s.text for s in segments)


def _until(text: str, rules: Sequence) -> str | None:
    """The text up to the word at which a rule first holds; an endpoint cannot ask us meanwhile."""
    for found in _PIECE.finditer(text):
        if any(rule.holds(text[: found.end()]) for rule in rules):
            return text[: found.end()]
    return None


def _seconds(header: str | None) -> float | None:
    """What Retry-After says, where it says seconds."""
    return float(header) if header and re.fullmatch(r"\d+(\.\d+)?", header) else None


def _shorten(message: bytes, key: str | None) -> str:
    """One line of a message, without the key should a server echo it."""
    text = " ".join(message.decode(errors="replace").split())
    return (text.replace(key, "[key]") if key else text)[:300]
