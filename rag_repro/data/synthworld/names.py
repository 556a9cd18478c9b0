"""Invented names: numbers spelt as syllables, so that none occurs twice.

A stem is onset + vowel + middle + vowel + ending. Runs of vowels and of
consonants alternate, therefore a spelling can be read back in one way only and
different numbers give different stems. Each of the four worlds owns a quarter
of the numbers, scattered by a fixed permutation: no two worlds share a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import gcd

from .wordings import read_table

WORLDS = ("A", "B", "C", "D")
FIRST_NAME_FAMILIES = ("male", "female")
# A stride near the golden section keeps neighbours in number apart in sound.
_GOLDEN = 0.6180339887498949


class NamesUsedUp(ValueError):
    """More names were asked for than the syllables give."""


@dataclass(frozen=True)
class Family:
    """The syllables of one family of names. First names have no second vowel."""

    onsets: tuple[str, ...]
    vowels: tuple[str, ...]
    middles: tuple[str, ...]
    seconds: tuple[str, ...]
    endings: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many stems one world owns."""
        whole = len(self.onsets) * len(self.vowels) * len(self.middles)
        return whole * len(self.seconds) * len(self.endings) // len(WORLDS)


@cache
def families() -> dict[str, Family]:
    """Family of names (surname, title, city …) -> its syllables."""
    table = read_table("words.yaml")
    onsets, vowels, middles = (
        tuple(table[part].split()) for part in ("onsets", "vowels", "middles")
    )
    return {
        name: Family(
            onsets,
            vowels,
            middles,
            ("",) if name in FIRST_NAME_FAMILIES else vowels,
            tuple(endings.split()),
        )
        for name, endings in table["endings"].items()
    }


@cache
def _stride(size: int) -> int:
    """A step that visits all of 0..size-1 once."""
    step = int(size * _GOLDEN) | 1
    while gcd(step, size) != 1:
        step += 2
    return step


@cache
def _laid_out(family: str) -> tuple[Family, int, int, int]:
    syllables = families()[family]
    size = syllables.size
    return syllables, size, _stride(size), _stride(size * len(WORLDS))


def stem(family: str, world: int, number: int, seed: int) -> str:
    """Stem `number` of a family in world 0..3, capitalised.

    Different (world, number) never give the same text, nor do two families.
    Raises NamesUsedUp where number is outside what one world owns.
    """
    syllables, size, own_stride, whole_stride = _laid_out(family)
    if not 0 <= number < size:
        raise NamesUsedUp(
            f"stem {number} of family {family!r} does not exist: a world owns {size}; "
            "ask for fewer passages"
        )
    rest = world * size + (number * own_stride + seed * 7919) % size
    rest = rest * whole_stride % (size * len(WORLDS))
    rest, ending = divmod(rest, len(syllables.endings))
    rest, second = divmod(rest, len(syllables.seconds))
    rest, middle = divmod(rest, len(syllables.middles))
    onset, vowel = divmod(rest, len(syllables.vowels))
    text = (
        syllables.onsets[onset]
        + syllables.vowels[vowel]
        + syllables.middles[middle]
        + syllables.seconds[second]
        + syllables.endings[ending]
    )
    return text.capitalize()
