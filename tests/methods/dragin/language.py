"""A language small enough to check by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Small:
    """Sentences end with a full stop; stop words, and others without content, by list."""

    stops: frozenset[str] = frozenset({"the", "was", "in", "of", "is"})
    idle: frozenset[str] = frozenset({"hall"})
    name: str = "small"

    def is_stop(self, word: str) -> bool:
        return word.lower() in self.stops

    def sentences(self, text: str) -> tuple[tuple[int, int], ...]:
        found = re.finditer(r"\S.*?(?:\.(?=\s|$)|$)", text, re.DOTALL)
        return tuple((m.start(), m.start() + len(m[0].rstrip())) for m in found)

    def content(self, text: str) -> tuple[str, ...]:
        return tuple(w for w in re.findall(r"\w+", text) if w.lower() not in self.stops | self.idle)


SMALL = Small()
