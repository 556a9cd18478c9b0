"""Parts of a record: shards that ran apart, until they are joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import manifests, records
from .conditions import Condition
from .records import Record
from .services import Workshop


def name(shard: tuple[int, int]) -> str:
    """(1, 4) -> "1-of-4"; "" where there is one shard alone, which is the record."""
    return "{}-of-{}".format(*shard) if shard[1] > 1 else ""


@dataclass(frozen=True)
class Held:
    """What is recorded of a condition: its record, and its parts that are not joined yet.

    written: names of the parts that runs are writing now; all others will be joined.
    committed: the record that one's own builds on (`records.committed`).
    """

    whole: Record | None
    parts: Mapping[str, Record]
    written: frozenset[str] = frozenset()
    committed: Record | None = None

    def ids(self, shard: tuple[int, int] = (1, 1)) -> set[str]:
        """The questions that this shard need not ask.

        Those of the record, of the committed one that it builds on, of the parts that will be
        joined, and of its own part.
        """
        own = name(shard)
        there = [part for key, part in self.parts.items() if key not in self.written or key == own]
        there += [record for record in (self.whole, self.committed) if record is not None]
        return set().union(*(record.by_question for record in there))

    def is_complete(self, wanted: set[str]) -> bool:
        """Whether the record itself has all wanted answers and is sealed, and no part is left.

        This is what "complete" means everywhere.
        """
        sealed = self.whole is None or self.whole.is_sealed
        return sealed and not self.parts and wanted <= self.ids()


def held(root: Path, condition: Condition) -> Held:
    """The condition's record and its parts, as they are now."""
    # Parts before the record: what is joined between the two looks is then met twice, not never.
    names = records.parts(root, condition)
    # Before they are read: a part whose run ends between the two looks is then met later.
    written = frozenset(key for key in names if records.is_written(root, condition, key))
    found = {key: records.load(root, condition, key) for key in names}
    whole = records.load(root, condition)
    kept = {key: part for key, part in found.items() if part is not None}
    behind = records.committed(root)
    return Held(whole, kept, written, records.load(behind, condition) if behind else None)


def join(condition: Condition, workshop: Workshop, results: Path) -> int:
    """Join the condition's parts that no run is writing into its record -> answers that it now
    has more.

    No question is asked, and no index or reader loaded: what a run without shard does first,
    alone. The record is left as by a run, compressed and in the order of the questions.
    """
    added = records.absorb(results, condition)
    record = records.load(results, condition)
    if record is not None:
        dataset = workshop.dataset(condition.dataset, condition.split)
        order = [question.id for question in dataset.questions]
        fingerprint = record.header["fingerprint"]
        with records.open_record(results, condition, fingerprint, "", order):
            manifests.absorb(results, condition)
    return added
