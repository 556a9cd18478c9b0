"""What commands tell while they work: our own words, one line each, and of libraries warnings."""

from __future__ import annotations

import logging
import sys

CHATTY = ("httpx", "sentence_transformers", "faiss", "transformers", "bm25s", "papermill")


def to_stderr() -> None:
    """For a process of its own; a program that has set up its logging keeps it."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
