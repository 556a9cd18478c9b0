"""Invented names: numbers spelt as syllables, so that none occurs twice.

A stem is onset + vowel + middle + vowel + ending. Runs of vowels and of
consonants alternate, therefore a spelling can be read back in one way only and
different numbers give different stems. Worlds with the same set of syllables
own equal shares of the numbers, scattered by a fixed permutation, and no ending
occurs in two sets: no two worlds share a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import gcd, prod

from rag_repro.data.synthworld.dials import PRESETS
from rag_repro.data.synthworld.wordings import read_table

WORLDS = tuple(PRESETS)
FIRST_NAME_FAMILIES = ("male", "female")
# A stride near the golden section keeps neighbours in number apart in sound.
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Family:
    """The syllables of one family of names: onsets, vowels, middles, second vowels, endings.

    First names have no second vowel. worlds: those that share its stems.
    """

    parts: tuple[tuple[str, ...], ...]
    worlds: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many stems one world owns."""
        return prod(map(len, self.parts)) // len(self.worlds)


@cache
def families(which: str = "first") -> dict[str, Family]:
    """Family of names (surname, title, city …) -> its syllables, of one set of syllables."""
    table = read_table("words.yaml")["syllables"][which]
    worlds = tuple(name for name, preset in PRESETS.items() if preset.syllables == which)
    onsets, vowels, middles = (
        tuple(table[part].split()) for part in ("onsets", "vowels", "middles")
    )
    made = {}
    for name, endings in table["endings"].items():
        seconds = ("",) if name in FIRST_NAME_FAMILIES else vowels
        made[name] = Family((onsets, vowels, middles, seconds, tuple(endings.split())), worlds)
    return made


@cache
def _stride(size: int) -> int:
    """A step that visits all of 0..size-1 once."""
    step = int(size * _GOLDEN) | 1
    while gcd(step, size) != 1:
        step += 2
    return step


@cache
def _laid_out(family: str, world: int) -> tuple[Family, int, int, int, int, int]:
    name = WORLDS[world]
    syllables = families(PRESETS[name].syllables)[family]
    size, whole = syllables.size, syllables.size * len(syllables.worlds)
    return syllables, size, _stride(size), whole, _stride(whole), syllables.worlds.index(name)


def stem(family: str, world: int, number: int, seed: int) -> str:
    """Stem `number` of a family in a world, by its place in WORLDS; capitalised.

    Different (world, number) never give the same text, nor do two families; number: below the
    family's size.
    """
    syllables, size, own_stride, whole, whole_stride, place = _laid_out(family, world)
    rest = place * size + (number * own_stride + seed * 7919) % size
    rest = rest * whole_stride % whole
    text = ""
    for part in reversed(syllables.parts):
        rest, at = divmod(rest, len(part))
        text = part[at] + text
    return text.capitalize()
