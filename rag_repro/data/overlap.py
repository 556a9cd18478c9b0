"""Which gold passages are the same passage, in one data set or in two.

The same page is cut, cased and dated differently from set to set, so equal
characters miss copies. Two passages are the same here where

1. their words are equal (case, punctuation, accents and blanks left out), or
2. their pages have the same name and the shorter of the two shares at least
   half of its runs of 8 words with the other, or
3. both sets have one passage a page (HotpotQA, 2WikiMultihopQA: the lead
   section) and the titles are equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from .public.roles import page_name, words

T = TypeVar("T")

RUN = 8
SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Item:
    """A gold passage of the question `owner`; `lead`: its set has one passage a page."""

    owner: tuple[str, str]
    title: str
    text: str
    lead: bool = False


def same(a: Item, b: Item) -> bool:
    """Whether two passages are the same by one of the three rules."""
    if words(a.text) == words(b.text):
        return True
    if words(page_name(a.title)) != words(page_name(b.title)):
        return False
    if a.lead and b.lead and words(a.title) == words(b.title):
        return True
    short, long = sorted((_runs(a.text), _runs(b.text)), key=len)
    return bool(short) and len(short & long) >= SHARE * len(short)


def pairs(items: Sequence[Item]) -> Iterator[tuple[Item, Item]]:
    """All pairs of the same passage with different owners."""
    by_text, by_page = defaultdict(list), defaultdict(list)
    for item in items:
        by_text[words(item.text)].append(item)
        by_page[words(page_name(item.title))].append(item)
    for group in by_text.values():
        yield from (p for p in combinations(group, 2) if p[0].owner != p[1].owner)
    for group in by_page.values():
        for a, b in combinations(group, 2):
            if a.owner != b.owner and a.text != b.text and same(a, b):
                yield a, b


def components(nodes: Iterable[T], edges: Iterable[tuple[T, T]]) -> list[list[T]]:
    """Nodes that hang together, each group and the groups in the order of `nodes`."""
    parent = {n: n for n in nodes}

    def root(n: T) -> T:
        while parent[n] != n:
            n = parent[n]
        return n

    for a, b in edges:
        parent[root(b)] = root(a)
    groups: dict[T, list[T]] = {}
    for n in parent:
        groups.setdefault(root(n), []).append(n)
    return list(groups.values())


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    found = words(text)
    return frozenset(found[i : i + RUN] for i in range(len(found) - RUN + 1))
