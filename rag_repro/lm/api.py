"""Any OpenAI-compatible endpoint as a reader: text in, text out, no trace.

The key is taken from the environment when a request is sent, and kept nowhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from rag_repro.lm.endpoint import PREFIX, Servers, addresses, shown
from rag_repro.post import Key
from rag_repro.schema import Generate, Generation, Kept, Marker, Prompt, Read, Reply, Soft
from rag_repro.schema.errors import CallError
from rag_repro.words import whole

_ENDS = {"length", "max_tokens"}  # a reply's finish where it was cut at max_tokens
_BROKEN = {"content_filter", "safety", "recitation", "error", "abort", "cancelled"}
_BROKEN |= {"insufficient_system_resource"}
_NAME = r"(?:seed:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad)"
# What reasoning stands between, in the spellings of many models.
_MARK = re.compile(
    rf"(?P<open>(?i:<{_NAME}(?:\s[^<>]{{0,99}})?>)|\[THINK\]|\u25c1think\u25b7"
    r"|<\|(?i:begin_of_thought|start_thinking)\|>|<\|channel\|?>(?:analysis|commentary|thought)\b)"
    rf"|(?i:</{_NAME}\s*>)|\[/THINK\]|\u25c1/think\u25b7"
    r"|<\|(?i:end_of_thought|end_thinking)\|>|<\|channel\|>final(?:<\|message\|>)?|<channel\|>"
)
_PIECE = re.compile(r"\s*\S+|\s+")
# What chat templates and tokenizers write around turns; most servers take it for that anywhere.
_IMITATION = re.compile(
    r"<[|\uff5c][^\s<>]{1,40}[|\uff5c]>|<(?:start|end)_of_turn>|</?(?:s|bos|eos|pad|unk)>"
    r"|\[/?INST\]|<</?SYS>>"
)


class ApiReader:
    """Chat completions (`Prompt.chat`) or completions of one model at `urls` (".../v1").

    urls: one address, or several with commas between them, of servers that list the same
    model: whichever has most room answers. A server that fails rests, and the others go on.
    asking: how that is done, as `endpoint.Servers` has it (in_flight, retries, timeout ...).
    key: the NAME of the environment variable that holds the key; None: no key.
    prefill: the server continues a last message of the assistant, so prompts
    with a Reply can be sent as chat.

    Its name and fingerprint hold the model and no address. Results hold no tokens and
    offsets, which an endpoint does not tell in a way that could be continued;
    `prompt_tokens` and `written` are what the endpoint counts.
    How it tokenises is out of our hands: in what imitates a control token
    ("<|im_end|>") a zero-width space is put, which keeps it text.
    """

    def __init__(
        self,
        urls: str,
        model: str,
        *,
        key: str | None = None,
        prefill: bool = False,
        **asking: Any,
    ):
        self.urls = addresses(urls)
        self.model = model
        self.name = self.fingerprint = f"{PREFIX}{model}"
        self._servers = Servers(model, self.urls, Key(key), **asking)
        self._prefill = prefill

    def __repr__(self) -> str:
        return f"ApiReader({','.join(self.urls)}, {self.model})"

    def generate(self, calls: Sequence[Generate]) -> list[Generation | CallError]:
        """One result a call, in order.

        ReaderError: no key, no server is left, or one of them has not the model.
        """
        return self.generate_each(calls, lambda place, made: None)

    def generate_each(
        self,
        calls: Sequence[Generate],
        keep: Callable[[int, Generation | CallError], None],
    ) -> list[Generation | CallError]:
        """The same; each result is handed to keep(place, result) as soon as it is there.

        From any thread, and also where the run fails or is interrupted meanwhile: what was paid
        for need not be lost.
        """
        self._servers.begin()
        stop = threading.Event()

        def one(place: int) -> Generation | CallError:
            made = self._one(calls[place], stop)
            keep(place, made)
            return made

        places = len(self.urls) * self._servers.in_flight
        with ThreadPoolExecutor(max(1, min(places, len(calls)))) as pool:
            asked = [pool.submit(one, place) for place in range(len(calls))]
            try:
                for done in as_completed(asked):
                    done.result()  # the first to fail, in time, ends the run
                return [done.result() for done in asked]
            finally:  # ... and the others need not wait and try on; requests in flight end
                self._servers.end(stop)
                for waiting in asked:
                    waiting.cancel()

    def read(self, calls: Sequence[Read]) -> list[CallError]:
        """An endpoint cannot read a given text: a CallError a call."""
        return [self._unread()] * len(calls)

    def _unread(self) -> CallError:
        return CallError(f"{self.name} cannot read a given text; use a local reader")

    def key(self, call: Generate | Read) -> str:
        """A name for a call's result by content: model, request, rules by name.

        CallError: a Read, which has no result here.
        """
        if isinstance(call, Read):
            raise self._unread()
        path, body = self._request(call)
        stop = [s if isinstance(s, str) else ["rule", s.name] for s in call.stop]
        # Servers of one name need not have the same model: answers are kept by address.
        facts = [self.fingerprint, sorted(self.urls), path, body, stop]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def _one(self, call: Generate, stop: threading.Event) -> Generation | CallError:
        try:
            path, body = self._request(call)
            try:
                try:
                    return _generation(call, self._servers.ask(path, body, stop))
                except _Unsaid:
                    if "stop" not in body:
                        raise
                    # The server stopped before the answer began; what comes without is cut here.
                    del body["stop"]
                    return _generation(call, self._servers.ask(path, body, stop))
            except CallError as error:
                raise CallError(f"{self.name}: {error}") from None
        except CallError as error:
            return error

    # --------------------------------------------------------------- request

    def _request(self, call: Generate) -> tuple[str, dict[str, Any]]:
        lacking = [
            what
            for what, asked in {
                "traces": call.trace,
                "watched tokens": call.watch,
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
        # In a chat no blanks are sent: a server would stop at a line of reasoning that its template
        # opened, which nobody could tell from an answer; and a turn ends by itself.
        blanks = not call.prompt.chat
        strings = [s for s in call.stop if isinstance(s, str) and (blanks or not s.isspace())]
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


# ----------------------------------------------------------------------- the reply


class _Unsaid(CallError):
    """The reply ended before its answer began, and not for want of tokens."""


def _generation(call: Generate, reply: Any) -> Generation:
    """CallError: the reply holds no answer, which is another thing than an empty one."""
    try:
        choice = reply["choices"][0]
        said = choice["message"] if call.prompt.chat else choice
        text = _joined(said["text"] if not call.prompt.chat else said.get("content"))
        refusal = said.get("refusal")
        reasoned = any(said.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
        usage = reply.get("usage") or {}
        counted, written = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens"))
        cached = _count(usage.get("prompt_tokens_details") or {}, "cached_tokens")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise CallError(f"a reply of another form: {shown(reprlib.repr(reply))}") from None
    ended = str(choice.get("finish_reason")).lower()
    if refusal:
        raise CallError(f"no answer: the model refuses ({shown(str(refusal))})")
    if ended in _BROKEN:
        raise CallError(f"no answer: the server broke its reply off (finish_reason {ended})")
    text, cut = _behind_reasoning(whole(text or ""))
    cut = cut or (reasoned and not text.strip())
    unsaid = CallError if ended in _ENDS else _Unsaid
    if cut:
        raise unsaid(
            f"no answer: the reply was cut inside its reasoning after {written} tokens "
            f"(finish_reason {ended}); raise max_new_tokens, or let the model answer without"
        )
    finish = "length" if ended in _ENDS else "eos"
    if (at := call.cut(text)) is not None:
        text, finish = text[:at], "stop"
    ruled = _until(text, [s for s in call.stop if not isinstance(s, str)])
    if ruled is not None:
        text, finish = ruled, "stop"
    if not text.strip() and (finish == "length" or not call.prompt.begun):
        raise unsaid(f"no answer: the reply is empty (finish_reason {ended}, {written} tokens)")
    return Generation(text, (), (), finish, counted, max(0, counted - cached), written=written)


def _joined(content: Any) -> str | None:
    """A reply's text, which some servers give in parts; reasoning among them is left out."""
    if isinstance(content, list):
        content = "".join(
            part if isinstance(part, str) else part["text"]
            for part in content
            if isinstance(part, str) or str(part["type"]).endswith("text")
        )
    if content is not None and not isinstance(content, str):
        raise TypeError
    return content


def _behind_reasoning(text: str) -> tuple[str, bool]:
    """A reply without its reasoning, and whether it was cut inside that."""
    kept, at, inside = [], 0, False
    for mark in _MARK.finditer(text):
        if not inside:
            kept.append(text[at : mark.start()])
            if not mark["open"]:  # where a block only ends, the prompt's template opened it
                kept.clear()
        at, inside = mark.end(), bool(mark["open"])
    return "".join(kept) + ("" if inside else text[at:]), inside


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
