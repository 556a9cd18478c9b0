"""A little paper whose one row searches over HTTP, so that a test can hold its questions up."""

from __future__ import annotations

import threading
from pathlib import Path

from rag_repro.data import load
from rag_repro.retrieval import build
from rag_repro.retrieval.served import SearchServer

WORLD = "world-B@1000"
PAPER = """
title: Searches that can be held up
short: Gates
cite: ""
exhibits:
  found:
    title: What is found
    place: none
    own: true
    metrics: [recall]
    methods:
      web: {{label: over HTTP, run: single_step, retriever: "{url}"}}
      bm25: {{label: here, run: single_step, retriever: bm25}}
    grids:
      - {{tier: testbed, datasets: [{world}], methods: [web, bm25], settings: {{k: [2]}}, n: {n}}}
"""


class Gate(SearchServer):
    """Answers like bm25, but for one question (by its number), which waits until it is `let`."""

    def __init__(self, held: int):
        dataset = load(WORLD, split="test")
        self.held, self.waiting = dataset.questions[held].text, threading.Event()
        self._open = threading.Event()
        super().__init__(build("bm25", dataset.corpus))

    def let(self) -> None:
        self._open.set()

    def search(self, asked):
        if asked.get("query") == self.held:
            self.waiting.set()
            self._open.wait()
        return super().search(asked)


def paper(folder: Path, url: str, n: int = 6) -> Path:
    """The folder of papers for RAG_REPRO_PAPERS, with the exhibit `gates.found`."""
    (folder / "gates").mkdir(parents=True)
    (folder / "gates" / "paper.yaml").write_text(PAPER.format(url=url, world=WORLD, n=n))
    (folder / "gates" / "claims.yaml").write_text("[]\n")
    return folder
