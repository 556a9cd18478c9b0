"""What commands tell while they work: our own words, one line each, and of libraries warnings."""

from __future__ import annotations

import logging
import sys

CHATTY = ("httpx", "sentence_transformers", "faiss", "transformers", "bm25s", "papermill")


class Handler(logging.StreamHandler):
    """Writes above the bars that are shown, not into them."""

    def emit(self, record: logging.LogRecord) -> None:
        if "tqdm" not in sys.modules:  # nothing shows a bar, and help comes at once
            return super().emit(record)
        from tqdm import tqdm

        with tqdm.external_write_mode(file=self.stream):
            return super().emit(record)


def to_stderr() -> None:
    """For a process of its own; a program that has set up its logging keeps it."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[Handler(sys.stderr)])
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
