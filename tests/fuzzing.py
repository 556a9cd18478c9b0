"""Spoilt files: valid ones with something changed, as data and as bytes.

RAG_REPRO_FUZZ names how many of them each test tries; a few by default.
"""

from __future__ import annotations

import copy
import gzip
import json
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

modest = settings(
    max_examples=int(os.environ.get("RAG_REPRO_FUZZ", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _deep(n: int) -> list:
    made: list = []
    for _ in range(n):
        made = [made]
    return made


ODD = (
    *(None, True, False, 0, -1, 3, 2**70, 10**400, 0.5, float("nan"), float("inf")),
    *("", " ", "x", "²", "\x00", "\ud800", "a\nb", "\ufeff", "9" * 900, "../x", "é" * 300),
    *([], {}, [[]], [None], ["x"], [1], {"x": 1}, {"": None}, [{}], {"x": []}),
)


@st.composite
def changed(draw, value: Any) -> Any:
    """`value` with up to three places replaced, left out, doubled, renamed or swapped."""
    made = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(made))
        if not places:
            return draw(st.sampled_from(ODD))
        held, key = draw(st.sampled_from(places))
        act = draw(st.sampled_from(["replace", "replace", "leave out", "double", "swap"]))
        if act == "replace":
            held[key] = copy.deepcopy(draw(st.sampled_from([*ODD, _deep(200)])))
        elif act == "leave out":
            del held[key]
        elif isinstance(held, list):
            held.append(copy.deepcopy(held[key]))
        elif act == "double":
            held[draw(st.sampled_from(["x", "", f"{key}s", "id", "metric"]))] = held[key]
        else:
            other = draw(st.sampled_from(list(held)))
            held[key], held[other] = held[other], held[key]
    return made


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value inside."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        keys = one if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in list(keys):
            yield one, key
            waiting.append(one[key])


@st.composite
def spoilt(draw, data: bytes) -> bytes:
    """`data` cut, with bytes put in, put out or doubled; or something else entirely."""
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        act = draw(st.sampled_from(["cut", "in", "in", "in", "out", "double", "other", "form"]))
        if act == "cut":
            data = data[:place]
        elif act == "in":
            odd = draw(st.sampled_from(_ODD_BYTES) | st.binary(min_size=1, max_size=8))
            data = data[:place] + odd + data[place:]
        elif act == "out":
            data = data[:place] + data[place + draw(st.integers(1, 30)) :]
        elif act == "double":
            end = place + draw(st.integers(1, 60))
            data = data[:end] + data[place:]
        elif act == "other":
            data = draw(st.binary(max_size=60))
        else:
            data = draw(st.sampled_from(_FORMS))(data)
    return data


_ODD_BYTES = (
    *(b"\0", b"\0" * 40, b"\xff", b"\xc3", b"\xed\xa0\x80", b"\r", b"\r\n", b"\n", b"\xe2\x80\xa8"),
    *(b"[" * 3000, b'{"a":' * 3000, b'"', b"}", b"]", b",", b":", b"\t", b"\\", b"\\ud800"),
    *(b"9" * 5000, b"NaN", b"-Infinity", b"1e999", b"true", b"null", b"&a ", b"*a", b"!!bool x"),
    *(b"- ", b"? ", b"<<: ", b"!!python/object:os.system ", b"2001-99-99", b"0o9", b"x" * 200000),
)
_FORMS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data.replace(b"\n", b"\r"),
    lambda data: data.decode("utf-8", "replace").encode("utf-16"),
    gzip.compress,
    lambda data: gzip.compress(data)[:-9],
    lambda data: gzip.compress(data) + b"trailing",
    lzma.compress,
    lambda data: lzma.compress(data)[:-9],
    lambda data: lzma.compress(data) + b"trailing",
    lambda data: b"",
)

# Nine lines that are a thousand million values; a list that holds itself; the same key twice.
BOMBS = (
    "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)),
    "&a [*a]\n",
    "title: one\ntitle: two\n",
    "exhibits: &e {x: *e}\n",
    "? [1, 2]\n: x\n",
    "? {a: 1}\n: x\n",
    "{" * 5000,
    "- " * 20000,
)


def text_of(value: Any) -> str:
    """As JSON, whatever it holds: endless integers and half characters, too."""
    return json.dumps(value)


def refused_by_name(read: Callable[[], Any], kind: type, *names: Path | str) -> bool:
    """Whether read() raised `kind` with one of these names in one not too long text.

    What else it raises is raised here, too.
    """
    try:
        read()
    except kind as error:
        told = str(error)
        assert any(str(name) in told for name in names), told
        assert len(told) < 3000, told[:5000]
        return True
    return False
