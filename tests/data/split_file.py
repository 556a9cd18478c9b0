"""How `splits.json` was made from the project's data files, once: its promises are `splits`'s.

Which gold passages are the same passage, in one data set or in two: the same page is cut, cased
and dated differently from set to set, so equal characters miss
copies. Two passages are the same here where

1. their words are equal (case, punctuation, accents and blanks left out), or
2. their pages have the same name and the shorter of the two shares at least
   half of its runs of 8 words with the other, or
3. both sets have one passage a page (HotpotQA, 2WikiMultihopQA: the lead
   section) and the titles are equal.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from rag_repro.data.public import MissingFile, load
from rag_repro.data.public.opened_files import lines
from rag_repro.data.public.roles import page_name, split_words
from rag_repro.data.splits import CONFIRM, SPLITS, frozen, lot
from rag_repro.digest import sha256
from rag_repro.schema import Question
from rag_repro.schema.dataset import Dataset

# How it is divided. Sizes are questions; where there are two, (train, tune), the rest is test.
_TEST = (
    "hotpotqa",
    "hotpotqa_fullwiki",
    "2wikimultihopqa",
    "2wikimultihopqa_open",
    "musique",
    "nq20",
)
_CUT = {"popqa": (200, 100), "ambignq": (0, 233), "strategyqa": (0, 40), "dureader": (60, 10)}
_TRAIN = {
    "hotpotqa_train": 0.2,
    "2wikimultihopqa_train": 0.2,
    "nq": 0.2,
    "iirc": 0,
    "ircot_demos": 0,
}
_ONE_PASSAGE_A_PAGE = ("hotpotqa", "2wikimultihopqa")
_OVER = {"ambignq_nq": "ambignq"}  # a part of another set's questions, split as they are
_SORTED = ("2wikimultihopqa_open", "musique", "popqa")  # by kind: the first hundred are one kind
_EXEMPLARS = "dragin_exemplars.jsonl"

Key = tuple[str, str]  # data set, question id


def make(data_dir: Path) -> dict[str, Any]:
    """What `splits.json` holds, made from the project's files in `data_dir`.

    Test sets are test whole. The sets of _CUT are divided, questions that hang
    together by a shared gold passage staying together; what shares with
    another test or divided set is test. Last, training questions that share
    with any test question are dropped, and a part of the rest is for tuning.
    """

    data = {n: load(n, data_dir) for n in (*_TEST, *_CUT, *_TRAIN)}
    friends = _friends(data)
    test: set[Key] = {(n, q.id) for n in _TEST for q in data[n].questions}
    test |= {("nq", q.id) for q in data["nq20"].questions}
    fixed = frozenset(test)
    sets = {n: _part(data[n], test=[q.id for q in data[n].questions]) for n in _TEST}
    for name, sizes in _CUT.items():
        sets[name] = _cut(data[name], sizes, friends, fixed, _exemplars(data_dir, data[name]))
        test |= {(name, i) for i in sets[name]["test"]}
    dropped: dict[str, dict[str, str]] = {}
    for name, tune in _TRAIN.items():
        own = [(name, q.id) for q in data[name].questions if (name, q.id) not in test]
        leaks = {k[1]: min(friends[k] & test) for k in own if friends[k] & test}
        dropped[name] = {i: f"shares a gold passage with {n} {j}" for i, (n, j) in leaks.items()}
        clean = [k for k in own if k[1] not in leaks]
        groups = _hashed(_groups(clean, friends))
        tuned, trained = _fill(groups, (round(tune * len(clean)), len(clean)))
        tested = [q.id for q in data[name].questions if (name, q.id) in test]
        sets[name] = _part(data[name], trained, tuned, tested)
    for name, whole in _OVER.items():
        kept = load(name, data_dir)
        sets[name] = _part(kept, *(sets[whole][split] for split in SPLITS))
    return {
        "sets": sets,
        "dropped": {n: d for n, d in dropped.items() if d},
        "files": {n: sha256(Path(data_dir) / f"{n}.jsonl.gz") for n in sorted(data)},
    }


def dumps(made: Mapping[str, Any]) -> str:
    """The bytes of `splits.json`: a line for each list, so that a change shows."""
    lines = []
    for name, parts in made["sets"].items():
        inner = ",\n".join(f"   {json.dumps(s)}: {json.dumps(list(v))}" for s, v in parts.items())
        lines.append(f"  {json.dumps(name)}: {{\n{inner}\n  }}")
    rest = {k: v for k, v in made.items() if k != "sets"}
    tail = json.dumps(rest, indent=1)[1:].lstrip("\n")
    return '{\n "sets": {\n' + ",\n".join(lines) + "\n },\n" + tail + "\n"


def leaks(data_dir: Path) -> list[tuple[Key, Key]]:
    """Questions of the subfolder `confirm` that share a gold passage or their wording with one
    outside it, of whatever split and data set: (theirs, ours), their set as "NAME/confirm"."""

    data = {}
    for name in frozen()["sets"]:
        for folder, end in ((Path(data_dir), ""), (Path(data_dir) / CONFIRM, f"/{CONFIRM}")):
            try:
                data[name + end] = load(name, folder)
            except MissingFile:  # of either folder, some sets are not at hand
                continue
    friends = _friends(data)
    return sorted(
        (key, other)
        for key, others in friends.items()
        for other in others
        if key[0].endswith(f"/{CONFIRM}") and not other[0].endswith(f"/{CONFIRM}")
    )


def _friends(data: Mapping[str, Dataset]) -> Mapping[Key, set[Key]]:
    """Question -> the questions, of all sets, with the same gold passage or wording."""

    items, wording = [], defaultdict(list)
    for name, d in data.items():
        lead = name.startswith(_ONE_PASSAGE_A_PAGE)
        for q in d.questions:
            wording[split_words(q.text)].append((name, q.id))
            for i in q.gold_ids:
                p = d.corpus.by_id[i]
                own = lead or q.meta.get("dataset", "").startswith(_ONE_PASSAGE_A_PAGE)
                items.append(Item((name, q.id), p.title, p.text, own))
    found: dict[Key, set[Key]] = defaultdict(set)
    for a, b in pairs(items):
        found[a.owner].add(b.owner)
        found[b.owner].add(a.owner)
    for group in wording.values():
        for key in group:
            found[key] |= set(group) - {key}
    return found


def _cut(
    d: Dataset,
    sizes: tuple[int, int],
    friends: Mapping[Key, set[Key]],
    fixed: frozenset[Key],
    exemplars: frozenset[str],
) -> dict[str, list[str]]:
    """Train, tune and test of a set that comes as one file; exemplars are train."""
    closed = fixed | {k for k in friends if k[0] in _CUT and k[0] != d.name}
    groups = _groups([(d.name, q.id) for q in d.questions], friends)
    shown = [g for g in groups if any(i in exemplars for _, i in g)]
    free = [g for g in groups if g not in shown and not any(friends[k] & closed for k in g)]
    trained, tuned = [], []
    for part, room in _strata(d, free, sizes):
        first, second = _fill(_hashed(part), room)
        trained, tuned = trained + first, tuned + second
    trained += [k[1] for g in shown for k in g]
    rest = [q.id for q in d.questions if q.id not in {*trained, *tuned}]
    return _part(d, trained, tuned, rest)


def _strata(
    d: Dataset, groups: Sequence[list[Key]], sizes: tuple[int, int]
) -> Iterable[tuple[list[list[Key]], tuple[int, int]]]:
    """Groups of each kind of question with their share of (train, tune).

    DuReader's own division stays: its train questions train, its dev questions
    are for tuning and testing.
    """
    if d.name == "dureader":
        theirs = {q.id for q in d.questions if q.meta["split"] == "train"}
        yield [g for g in groups if g[0][1] in theirs], (sizes[0], 0)
        yield [g for g in groups if g[0][1] not in theirs], (0, sizes[1])
        return
    n = sum(map(len, groups))
    for kind in dict.fromkeys(q.kind for q in d.questions):
        part = [g for g in groups if d.by_id[g[0][1]].kind == kind]
        share = sum(map(len, part)) / n
        yield part, (round(sizes[0] * share), round(sizes[1] * share))


def _exemplars(data_dir: Path, d: Dataset) -> frozenset[str]:
    """Questions that DRAGIN's prompts show with their answers: never to be tested on."""

    shown = {split_words(row.fields["question"]) for row in lines(Path(data_dir) / _EXEMPLARS)}
    return frozenset(q.id for q in d.questions if split_words(q.text) in shown)


def _groups(keys: Sequence[Key], friends: Mapping[Key, set[Key]]) -> list[list[Key]]:

    own = set(keys)
    return components(keys, ((k, f) for k in keys for f in sorted(friends[k] & own)))


def _hashed(groups: Iterable[list[Key]]) -> list[list[Key]]:
    """In the order of the SHA-256 of their least key: a fixed lot."""
    return sorted(groups, key=lambda g: lot(":".join(min(g))))


def _fill(groups: Iterable[list[Key]], sizes: Sequence[int]) -> list[list[str]]:
    """Groups dealt out: each goes whole to the first part that has room for it."""
    parts: list[list[str]] = [[] for _ in sizes]
    for group in groups:
        for part, size in zip(parts, sizes, strict=True):
            if len(part) + len(group) <= size:
                part += [i for _, i in group]
                break
    return parts


def _part(d: Dataset, train=(), tune=(), test=()) -> dict[str, list[str]]:
    """The three lists, each in file order; of a file sorted by kind, in a drawn one."""
    order = _drawn if d.name in _SORTED else list
    sets = {"train": set(train), "tune": set(tune), "test": set(test)}
    return {
        s: [q.id for q in order([q for q in d.questions if q.id in chosen])]
        for s, chosen in sets.items()
    }


def _drawn(questions: Sequence[Question]) -> list[Question]:
    """By lot, and every beginning has each kind by its share, to less than one question a kind."""
    of_kind = defaultdict(list)
    for q in sorted(questions, key=lambda q: lot(q.id)):
        of_kind[q.kind].append(q)
    # The i-th of m of a kind stands as far behind the beginning as i + 1/2 of m.
    places = {
        q.id: ((i + 0.5) / len(own), lot(q.id))
        for own in of_kind.values()
        for i, q in enumerate(own)
    }
    return sorted(questions, key=lambda q: places[q.id])


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
    if split_words(a.text) == split_words(b.text):
        return True
    if split_words(page_name(a.title)) != split_words(page_name(b.title)):
        return False
    if a.lead and b.lead and split_words(a.title) == split_words(b.title):
        return True
    short, long = sorted((_runs(a.text), _runs(b.text)), key=len)
    return bool(short) and len(short & long) >= SHARE * len(short)


def pairs(items: Sequence[Item]) -> Iterator[tuple[Item, Item]]:
    """All pairs of the same passage with different owners."""
    by_text, by_page = defaultdict(list), defaultdict(list)
    for item in items:
        by_text[split_words(item.text)].append(item)
        by_page[split_words(page_name(item.title))].append(item)
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
    found = split_words(text)
    return frozenset(found[i : i + RUN] for i in range(len(found) - RUN + 1))
