"""Small helpers with words, used on every floor."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable

# A class of `regex` (version 1): letters of scripts that are written without blanks between words.
UNSPACED = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}ーｰ\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
    r"\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Balinese}\p{Javanese}\p{Cham}--[\p{M}\p{Nd}\p{P}]]"
)


def nearest(name: object, known: Iterable[object]) -> str:
    """`, did you mean 'x'?` for the nearest known name, or nothing."""
    words = [str(k) for k in known]
    match = [word for word in words if word.casefold() == str(name).casefold()]
    match = match or difflib.get_close_matches(str(name), words, n=1)
    return f", did you mean {match[0]!r}?" if match else ""


FEW = 12
"""Names that a message lists; of more it gives the three nearest."""


def choices(name: object, known: Iterable[str], command: str = "") -> str:
    """The end of an error message: what may be meant, and what there is.

    command: what prints all names, for where these are many.
    """
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0)
    there = f"there are: {', '.join(known)}"
    if len(known) > FEW:
        there = f"there are {len(known)}, as {', '.join(near)}"
        there += f"; `{command}` lists them" if command else ""
    return f"{nearest(name, known)}; {there}"


def printable(text: str) -> str:
    """The text as the terminal can show it: a character that it lacks becomes its number."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def duration(seconds: float) -> str:
    """As "8 s", "3.2 min" or "5.1 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# Halves of a character, which a JSON file may hold and UTF-8 cannot.
_HALF = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """The text with U+FFFD in place of each half of a character, so of the same length."""
    return _HALF.sub("\ufffd", text)
