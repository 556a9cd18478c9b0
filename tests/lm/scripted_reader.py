"""A reader that says what a test tells it to, with hand-made traces."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from rag_repro.lm.prompts import prompt_text, spoken_text
from rag_repro.schema import Generate, Generation, Kept, Prompt, Read, Soft, Trace
from rag_repro.schema.errors import ReaderError

_PIECE = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """An answer with its trace. A token is a word with the white space before it.

    probability, entropy: one a token (1 and 0 where None). attention: (heads,
    tokens, prompt tokens + tokens) of the last layer (None: one head that
    looks at everything before and at itself alike). watched: (tokens, watched).
    """

    text: str
    probability: Sequence[float] | None = None
    entropy: Sequence[float] | None = None
    attention: np.ndarray | None = None
    watched: np.ndarray | None = None


Answered = str | Said | Generation | Exception
Script = Sequence[Answered] | Callable[[str], Answered]


def pieces(text: str) -> list[str]:
    """The words of a text, each with the white space before it: the scripted tokens."""
    return _PIECE.findall(text)


def prompt_pieces(prompt: Prompt | None) -> list[str]:
    """A prompt's tokens, of which a soft one says nothing."""
    segments = () if prompt is None else prompt.segments
    made: list[str] = []
    for soft, group in groupby(segments, key=lambda segment: isinstance(segment, Soft)):
        run = tuple(group)
        made += [""] * len(run) if soft else pieces(prompt_text(Prompt(run)))
    return made


class ScriptedReader:
    """Answers calls from a script: a list, used up in order, or a function of the prompt's text.

    `max_new_tokens`, `stop` and `Until` rules work as in any reader, token by
    token. An exception in the script stands in the list of results. `calls`
    are all calls so far, `batches` how many came together.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        reads: Callable[[str, str], Answered] | None = None,
        name: str = "scripted",
        fingerprint: str = "scripted",
    ):
        self._script = script
        self._reads = reads
        self._used = 0
        self._vocabulary: dict[str, int] = {}
        self.name = name
        self.fingerprint = fingerprint
        self.calls: list[Generate | Read] = []
        self.batches: list[int] = []

    def tokens(self, prompt: Prompt) -> int:
        """How many words a prompt has."""
        return len(pieces(prompt_text(prompt)))

    def generate(self, calls: Sequence[Generate]) -> list[Generation | Exception]:
        self.batches.append(len(calls))
        self.calls.extend(calls)
        return [self._answer(call) for call in calls]

    def read(self, calls: Sequence[Read]) -> list[Generation | Exception]:
        self.batches.append(len(calls))
        self.calls.extend(calls)
        results: list[Generation | Exception] = []
        for call in calls:
            text = spoken_text(call.text) if isinstance(call.text, Kept) else call.text
            told = Said(text)
            if self._reads is not None:
                told = self._reads(prompt_text(call.prompt), text)
            if isinstance(told, Generation | Exception):
                results.append(told)
                continue
            told = Said(told) if isinstance(told, str) else told
            if told.text != text:
                raise ReaderError(f"the script reads {told.text!r} where {text!r} was given")
            made = self._made(call.prompt, told, len(pieces(told.text)), "given")
            rows = made.trace.attention[-1]
            if not text:  # of the prompt's last token, which looks at all of it alike
                n = len(made.trace.prompt)
                given = np.full((1, 1, n), 1 / n) if told.attention is None else told.attention
                rows = np.asarray(given, dtype=np.float32)
            wanted = dict.fromkeys(call.layers, rows)
            trace = dataclasses.replace(made.trace, attention=wanted)
            results.append(dataclasses.replace(made, trace=trace))
        return results

    def _answer(self, call: Generate) -> Generation | Exception:
        if callable(self._script):
            told = self._script(prompt_text(call.prompt))
        elif self._used < len(self._script):
            told = self._script[self._used]
            self._used += 1
        else:
            raise ReaderError(f"the script has only {len(self._script)} answers")
        if isinstance(told, Generation | Exception):
            return told
        told = Said(told) if isinstance(told, str) else told
        words = pieces(told.text)
        finish, n, text = "eos", len(words), told.text
        for i in range(1, len(words) + 1):
            so_far = "".join(words[:i])
            if (cut := call.cut(so_far)) is not None:
                finish, text = "stop", so_far[:cut]
                n = sum(start < len(text) for start in _starts(words[:i]))
                break
            if any(not isinstance(s, str) and s.holds(so_far) for s in call.stop):
                finish, n, text = "stop", i, so_far
                break
            if i == call.max_new_tokens:
                finish, n, text = ("length" if i < len(words) else "eos"), i, so_far
                break
        made = self._made(call.prompt, told, n, finish)
        watched = None
        if call.watch:
            if told.watched is None:
                raise ReaderError(f"the script says nothing of the watched tokens {call.watch}")
            watched = np.asarray(told.watched, dtype=np.float32)[:n]
        trace = made.trace if call.trace else None
        if call.trace and not call.attention:
            trace = dataclasses.replace(made.trace, attention={})
        return dataclasses.replace(made, text=text, trace=trace, watched=watched)

    def _made(self, prompt: Prompt, told: Said, n: int, finish: str) -> Generation:
        words, before = pieces(told.text), prompt_pieces(prompt)
        for name in ("probability", "entropy"):
            given = getattr(told, name)
            if given is not None and len(given) != len(words):
                raise ReaderError(
                    f"the script gives {len(given)} values of {name} for {len(words)} tokens"
                )
        attention = told.attention
        if attention is None:
            seen = np.tril(np.ones((len(words), len(before) + len(words))), len(before))
            attention = (seen / seen.sum(1, keepdims=True))[None]
        trace = Trace(
            np.asarray(told.probability or [1.0] * len(words), dtype=np.float32)[:n],
            np.asarray(told.entropy or [0.0] * len(words), dtype=np.float32)[:n],
            {-1: np.asarray(attention, dtype=np.float32)[:, :n, : len(before) + n]},
            tuple(before),
        )
        ids = tuple(self._vocabulary.setdefault(w, len(self._vocabulary)) for w in words[:n])
        starts = tuple(_starts(words[:n]))
        return Generation(told.text, ids, starts, finish, len(before), len(before), trace)


def _starts(words: Sequence[str]) -> list[int]:
    """The character at which each word's token begins."""
    starts, at = [], 0
    for word in words:
        starts.append(at)
        at += len(word)
    return starts
