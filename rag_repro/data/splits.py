"""The frozen split file: which questions may be trained on, tuned on and tested on.

`splits.json` holds ids only. It was made once (`tests/data/split_file.py`) from the project's
data files (their hashes are in it) and is read, never made anew, in use; a
test makes it again where the data are at hand. Its promises:

- no question of a train or tune list, of any data set, shares a gold passage
  or its wording with a question of a test list, of any data set, where
  "share" includes near copies; train and tune of one set share none;
- 2wikimultihopqa and 2wikimultihopqa_open are both test sets and overlap;
  so do hotpotqa and hotpotqa_fullwiki, nq20 and nq, and ambignq and ambignq_nq;
- the first n of a list are a sample of it: files are in no order of kinds, and of those that
  are (`tests/data/split_file.py` names them) lists are drawn, each kind by its share.

What recurs (`recurring`) is test whole, and has a file of its own.

Split "confirm" is in no list: it is what lies in the subfolder `confirm` of the data folder,
released after all that was chosen. A test holds it to the first promise.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from rag_repro.data import recurring
from rag_repro.data.synthworld.dials import PRESETS
from rag_repro.schema.dataset import Dataset
from rag_repro.words import choices, nearest

log = logging.getLogger(__name__)

SPLITS = ("train", "tune", "test")
CONFIRM = "confirm"
CHOSEN_ON = ("train", "tune")  # what is chosen, or shown to be learned, on them decides no claim
"""The split and the subfolder of questions on which nothing was chosen."""
ALIASES: Mapping[str, str] = {"nq10": "nq20", "nq30": "nq20"}


class SplitError(ValueError):
    """No such split, or a data set without one, or not the file it was made from."""


def to_confirm(made: Dataset) -> Dataset:
    """A data set of the subfolder, whole; its corpus has a name of its own, and is never pooled."""
    corpus = replace(made.corpus, name=f"{made.corpus.name}/{CONFIRM}")
    return replace(made, corpus=corpus, card={**made.card, "frozen_split": CONFIRM})


def check_split(split: str) -> None:
    if split not in SPLITS:
        raise SplitError(
            f"no split {split!r}{nearest(split, SPLITS)}; there are: {', '.join(SPLITS)}"
        )


def ids(name: str, split: str) -> tuple[str, ...]:
    """The questions of data set `name` in a split, in its order; () where it has none.

    Raises SplitError for an unknown split or a name that is not in the file.
    """
    check_split(split)
    if name in recurring.frozen():
        return tuple(recurring.frozen()[name]) if split == "test" else ()
    sets = frozen()["sets"]
    known = ALIASES.get(name, name)
    if known not in sets:
        there = choices(name, [*sets, *ALIASES], "rag-repro data list")
        raise SplitError(f"no splits for the data set {name!r}{there}")
    return tuple(sets[known][split])


def only(dataset: Dataset, split: str) -> Dataset:
    """The questions of a split, over the whole corpus; the card says which split.

    Questions that the split file does not know, as of a full official file,
    are left out, with a warning. Raises SplitError where the split is empty, or lists
    questions that the data set does not have.
    """
    wanted = ids(dataset.name, split)
    if not wanted:
        has = [s for s in SPLITS if ids(dataset.name, s)]
        raise SplitError(f"{dataset.name} has no {split} questions; it has {', '.join(has)}")
    absent = [i for i in wanted if i not in dataset.by_id]
    if absent:
        raise SplitError(
            f"{dataset.name}: {len(absent)} of {len(wanted)} {split} questions, as {absent[0]!r}, "
            "are not in this file; take the file the splits were made from, or load without split"
        )
    known = {i for part in SPLITS for i in ids(dataset.name, part)}
    known |= {*frozen()["dropped"].get(ALIASES.get(dataset.name, dataset.name), ())}
    if unknown := len({*dataset.by_id} - known):
        log.warning(
            "%s: %d of %d questions are used, since the book's split file does not list %d; "
            "FORMAT:FILE, as hotpotqa:FILE, names a file all of whose questions are asked",
            *(dataset.name, len(wanted), len(dataset.questions), unknown),
        )
    return _kept(dataset, wanted, split)


def of_world(world: str) -> tuple[str, ...]:
    """The splits that a world of the testbed has."""
    return ("train", "tune") if PRESETS[world].learned else ("test",)


def only_of_world(dataset: Dataset, world: str, split: str) -> Dataset:
    """The testbed's splits: worlds A and Z train and tune, the others test, whole.

    Tune of A is every cluster of questions whose SHA-256 falls into the lowest
    fifth, so that it does not depend on how many questions there are. Questions of
    another world are made for their split (`synthworld.build`), and stay whole.
    """
    check_split(split)
    if split not in of_world(world):
        raise SplitError(f"world {world} has no {split} questions; train and tune on A, test on B")
    if world != "A":
        return _kept(dataset, [q.id for q in dataset.questions], split)
    fifth = {c: lot(c) < 2**256 // 5 for c in {q.unit for q in dataset.questions}}
    wanted = [q.id for q in dataset.questions if fifth[q.unit] == (split == "tune")]
    return _kept(dataset, wanted, split)


def _kept(dataset: Dataset, wanted: Sequence[str], split: str) -> Dataset:
    return replace(dataset.only(wanted), card={**dataset.card, "frozen_split": split})


def lot(name: str) -> int:
    """A fixed lot: the SHA-256 as a number below 2**256."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")


@cache
def frozen() -> Mapping[str, Any]:
    """The split file: `sets` name -> split -> ids, `dropped` name -> id -> why, `files` hashes."""
    return json.loads(resources.files(__package__).joinpath("splits.json").read_text("utf-8"))
