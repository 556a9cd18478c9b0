"""Parts of a record: shards that ran apart, until they are joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import manifests, records
from .conditions import Condition
from .lines import PACKED, PLAIN
from .records import SHARD, Record
from .services import Workshop


def name(shard: tuple[int, int]) -> str:
    """(1, 4) -> "1-of-4"; "" where there is one shard alone, which is the record."""
    return "{}-of-{}".format(*shard) if shard[1] > 1 else ""


@dataclass(frozen=True)
class Held:
    """What is recorded of a condition: its record, and its parts that are not joined yet."""

    whole: Record | None
    parts: Mapping[str, Record]

    def ids(self, shard: tuple[int, int] = (1, 1)) -> set[str]:
        """The questions that this shard need not ask.

        Those of the record, of finished parts, which will be joined, and of its own part.
        """
        own = name(shard)
        found = [part for key, part in self.parts.items() if is_finished(part) or key == own]
        found += [self.whole] if self.whole is not None else []
        return set().union(*(record.by_question for record in found))


def held(root: Path, condition: Condition) -> Held:
    """The condition's record and its parts, finished or not, as they are now."""
    base = root / (condition.path + SHARD)
    names = {
        path.name.removeprefix(base.name).removesuffix(ending)
        for ending in (PLAIN, PACKED)
        for path in base.parent.glob(f"{base.name}*{ending}")
    }
    # Parts before the record: what is joined between the two looks is then met twice, not never.
    found = {name: records.load(root, condition, name) for name in sorted(names)}
    whole = records.load(root, condition)
    return Held(whole, {name: part for name, part in found.items() if part is not None})


def is_finished(record: Record) -> bool:
    """Whether the run that made it has ended: a part that has not is joined by nobody."""
    return record.path.name.endswith(PACKED)


def join(condition: Condition, workshop: Workshop, results: Path) -> int:
    """Join the condition's finished parts into its record -> answers that it now has more.

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
