"""Work that takes long is shown: on a terminal a bar, elsewhere a line now and then."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import termios
import time

import numpy as np
import pytest

from rag_repro import bars
from rag_repro.bars import Bar, waiting
from rag_repro.lm import hub, load
from rag_repro.study.services import Workshop


@pytest.fixture
def fast(monkeypatch):
    """Seconds and minutes pass quickly."""
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(bars, "BEAT", 0.01)
    monkeypatch.setattr(bars, "PIPED", 0.1)
    monkeypatch.setattr(bars, "PATIENCE", 0.05)


def test_what_is_piped_gets_a_line_now_and_then_also_while_nothing_is_counted(fast):
    out = io.StringIO()
    with Bar(range(500), desc="counting", file=out, disable=False) as bar:
        for _ in bar:
            time.sleep(0.0005)
        time.sleep(0.3)
    lines = out.getvalue().splitlines()
    assert 2 <= len(lines) <= 8
    assert all(line.startswith("counting: ") for line in lines)
    assert "\r" not in out.getvalue()


def test_what_is_quick_shows_nothing(fast, monkeypatch):
    monkeypatch.setattr(bars, "PATIENCE", 5.0)
    out = io.StringIO()
    for piped in (True, False):
        with Bar(range(50), file=out, disable=False) as bar:
            bar._piped = piped
            for _ in bar:
                time.sleep(0.001)
    assert out.getvalue() == ""


def test_a_terminal_shows_a_clock_while_something_is_made_and_wipes_it(tmp_path):
    code = (
        "import time; from rag_repro import bars; bars.PATIENCE = bars.BEAT = 0.05\n"
        "from rag_repro.study.services import Workshop\n"
        "Workshop()._once(('retriever', 'minilm'), lambda: time.sleep(0.5))\n"
    )
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (24, 80))
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs) as done:
        os.close(theirs)
        shown = b""
        try:
            while got := os.read(ours, 4096):
                shown += got
        except OSError:  # the other end is closed
            pass
    assert done.returncode == 0
    assert shown.count(b"retriever minilm: 00:0") > 3
    assert shown.endswith(b"\r")
    assert shown.rstrip(b"\r").endswith(b" ")


def test_encoding_counts_texts_and_gives_the_same_vectors(fast, monkeypatch):
    made = load.SentenceEncoder(hub.resolve("minilm"))
    texts = [f"the harbour number {i}" for i in range(20)]
    plain = made.encode(texts)
    seen = []
    monkeypatch.setattr(load, "MANY", 10)
    # True, as where the bar was just drawn: torch would take that for what the model made.
    monkeypatch.setattr(Bar, "update", lambda self, n: seen.append(n) or True)
    assert np.array_equal(made.encode(texts), plain)
    assert sum(seen) == 20


def test_a_service_is_made_once_and_under_a_clock(monkeypatch):
    told = []
    monkeypatch.setattr(
        "rag_repro.study.services.waiting", lambda what: told.append(what) or waiting(what)
    )
    workshop = Workshop()
    for _ in range(2):
        assert len(workshop.dataset("world-B@1000", None).corpus) == 1000
    assert told == ["dataset world-B@1000"]
