"""2WikiMultihopQA (Ho et al. 2020): HotpotQA's fields, evidence triples and answer ids.

`id_aliases.json` (JSON Lines of {Q_id, aliases, demonyms}), where it lies in
the same folder, adds the aliases of the answer, as the official evaluation does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rag_repro.data.public.opened_files import lines, records
from rag_repro.data.public.readers import hotpotqa
from rag_repro.data.public.record import Record, unique
from rag_repro.data.public.roles import evidence_steps

ALIASES = "id_aliases.json"


def read(path: Path) -> Iterator[Record]:
    """Questions with chains of steps from their evidences, where there are any."""
    aliases = {name: found for p in companion_files(path) for name, found in _aliases(p)}
    for row in records(path):
        plain = hotpotqa.record(row)
        others = aliases.get(row.take("answer_id", str, ""), ())
        yield replace(
            plain,
            answers=unique((*plain.answers, *others)),
            steps=evidence_steps(row, plain.gold_titles),
            meta={**plain.meta, "evidences": row.take("evidences", list, [])},
        )


def companion_files(path: Path) -> tuple[Path, ...]:
    """The alias file, where there is one."""
    found = path.with_name(ALIASES)
    return (found,) if found.is_file() else ()


def _aliases(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    for row in lines(path):
        # Sorted, as the sets of the official evaluation have no order.
        names = {*row.strings("aliases"), *row.strings("demonyms", [])}
        yield row.take("Q_id", str), tuple(sorted(names))
