"""Progress of whatever may take long: a bar on a terminal, elsewhere a line each minute."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from tqdm import tqdm

PATIENCE = 5.0  # seconds that work may take in silence
PIPED = 60.0  # seconds between two lines where no terminal shows a bar
BEAT = 1.0  # seconds after which a bar is drawn again, so that its clock goes on


class Bar(tqdm):
    """tqdm's bar, which is drawn once a second from its sixth second on, also while nothing is
    counted; without a terminal it is a line on stderr each minute instead."""

    def __init__(self, *given: Any, **named: Any):
        self._piped = not sys.stderr.isatty()
        self._told = time.monotonic()
        self._done, self._drawn = threading.Event(), False
        super().__init__(*given, **{"leave": False, "delay": PATIENCE, **named})
        if not self.disable:
            threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self._done.wait(BEAT):
            if self._time() >= self.start_t + self.delay:
                self._drawn = True
                self.refresh()

    def display(self, *given: Any, **named: Any) -> bool | None:
        if not self._piped:
            return super().display(*given, **named)
        if (now := time.monotonic()) - self._told >= PIPED:
            self._told = now
            self.fp.write(f"{self}\n")
            self.fp.flush()
        return None

    def close(self) -> None:
        if hasattr(self, "_done"):
            self._done.set()
            if self._drawn:  # by the clock, which tqdm does not count: else it would not wipe it
                self.last_print_t = self._time()
        super().close()


def waiting(what: str) -> Bar:
    """A bar for work that counts nothing: what it is, and how long it has taken."""
    return Bar(desc=what, bar_format="{desc}: {elapsed}")
