"""Parts of a record: shards that ran apart, until they are joined."""

from __future__ import annotations

from pathlib import Path

from . import manifests, records
from .conditions import Condition
from .lines import PACKED, PLAIN
from .records import SHARD, Record
from .services import Workshop


def name(shard: tuple[int, int]) -> str:
    """(1, 4) -> "1-of-4"; "" where there is one shard alone, which is the record."""
    return "{}-of-{}".format(*shard) if shard[1] > 1 else ""


def held(root: Path, condition: Condition) -> dict[str, Record]:
    """The condition's parts that are not joined yet, by name, finished or not."""
    base = root / (condition.path + SHARD)
    names = {
        path.name.removeprefix(base.name).removesuffix(ending)
        for ending in (PLAIN, PACKED)
        for path in base.parent.glob(f"{base.name}*{ending}")
    }
    found = {name: records.load(root, condition, name) for name in sorted(names)}
    return {name: record for name, record in found.items() if record is not None}


def is_finished(record: Record) -> bool:
    """Whether the run that made it has ended: a part that has not is joined by nobody."""
    return record.path.name.endswith(PACKED)


def recorded(root: Path, condition: Condition, shard: tuple[int, int] = (1, 1)) -> set[str]:
    """Ids of the questions that the record holds, or a finished part, or this shard's own."""
    found = [records.load(root, condition, one) for one in {"", name(shard)}]
    found += [part for part in held(root, condition).values() if is_finished(part)]
    return set().union(*(record.by_question for record in found if record is not None))


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
