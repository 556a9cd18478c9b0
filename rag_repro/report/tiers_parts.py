"""What the pages of tiers are made from: their ground, readers' sizes, counts of conditions and
commands."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..data.titles import bare
from ..lm.hub import PRESETS
from ..lm.sizes import KEPT, Shape, shape
from ..study import costs, names
from ..study.costs import Sizes, Spent
from ..study.papers import Cell, Paper
from .caveats import table
from .escape import listing

SHIPPED = "smollm2-135m"
ROWS, TOKENS = 16, 2048
"""What memory is told for: as many questions in flight as the commands have, prompts of a length
that hardly any here exceeds."""
COMPUTED = f"""\
Computed from the models' shapes, not measured. The cache holds the keys and values of {ROWS} rows
of {TOKENS:,} tokens (`--batch-size {ROWS}`; a quarter of the rows takes a quarter of it). For a
processor the sum has, besides, the second copy of the weights that is laid out for it, and
{KEPT / 1e9:.1f} GB of kept beginnings of prompts, their limit. Libraries and a pass's own results
come on top, as do sentence encoders and classifiers, which are smaller than the smallest reader.
NF4 needs `pip install 'rag-repro[gpu]'` and CUDA.
"""


@dataclass(frozen=True)
class Ground:
    """What the pages are made from: every condition once, and what is known of them.

    chapters: those whose reader can be exchanged.
    """

    results: Path
    papers: Sequence[Paper]
    cells: Sequence[Cell]
    sizes: Sizes
    chapters: Sequence[str]
    _held: dict[tuple, Spent] = field(default_factory=dict)

    def spent(self, some: Iterable[Cell]) -> Spent:
        return sum(map(self._spent, some), Spent())

    def _spent(self, cell: Cell) -> Spent:
        place = cell.exhibit, cell.condition.hash, cell.n
        if place not in self._held:
            self._held[place] = costs.spent(cell, self.sizes, self.results)
        return self._held[place]

    def of(self, tier: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.tier == tier]


def page(title: str, *parts: str) -> str:
    return "\n\n".join(part.strip() for part in (f"# {title}", *parts) if part) + "\n"


# ------------------------------------------------------------------ readers


def bases(cells: Iterable[Cell]) -> list[str]:
    """The weights behind the conditions' readers, smallest first; a model once."""
    readers = {cell.condition.reader for cell in cells} - {None}
    found = {bare(base): base for base in map(names.base_of, sorted(readers))}
    return sorted(found.values(), key=lambda name: (shape(name).parameters, name))


def memory(weights: Sequence[str], name: str) -> str:
    body = []
    for one in weights:
        made = shape(one)
        on_gpu = [
            f"{gb(made.weights(dtype))} + {gb(cache(made, dtype))}"
            for dtype in ("float32", "bfloat16", "nf4")
        ]
        on_cpu = made.weights("float32") + made.packed + cache(made, "float32") + KEPT
        sizes = [gb(on_disk(one, made)), gb(on_cpu), *on_gpu]
        body.append([bare(one), f"{made.parameters / 1e6:,.0f}", *sizes])
    head = ["weights", "million parameters", "disk", "processor, float32"]
    head += ["GPU, float32", "GPU, bfloat16", "GPU, NF4"]
    return table(head, body, "Readers and the GB that they take: weights + cache", name)


def cache(made: Shape, dtype: str) -> int:
    return made.cache(ROWS * min(TOKENS, made.context), dtype)


def on_disk(name: str, made: Shape) -> int:
    """Of what ships the float32 copy that is made once; else two bytes a weight, as downloaded."""
    downloaded = name.startswith("hub:") or name in PRESETS
    return made.weights("bfloat16" if downloaded else "float32")


def ratio(name: str) -> float:
    return shape(name).parameters / shape(SHIPPED).parameters


# ------------------------------------------------------------------ cells and commands


def counts(one: Spent) -> list[str]:
    numbers = [one.conditions, one.recorded, one.wanted, one.answers]
    return [*(f"{n:,}" for n in numbers), f"{one.seconds / 3600:.1f}"]


def is_of(paper: Paper, cell: Cell) -> bool:
    return cell.exhibit.partition(".")[0] == paper.name


def machines(ground: Ground, cells: Sequence[Cell]) -> str:
    return " and on ".join(costs.machines(cells, ground.results)) or "no machine yet"


def commands(ground: Ground, tier: str, *, data: bool, more: str = "") -> str:
    """What runs everything of the tier, a command a paper; and what times it."""
    told = ["export RAG_REPRO_DATA=/path/to/data"] if data else []
    for paper in ground.papers:
        for timed, verb in ((False, "run"), (True, "time")):
            mine = [e.name for e in paper.exhibits.values() if e.cells(tier) and e.timed == timed]
            # One at a time: `time` takes one exhibit.
            for part in [mine] if verb == "run" and mine else [[name] for name in mine]:
                told.append(wrapped(f"rag-repro {verb} {' '.join(part)} --tier {tier} {more}"))
    return listing("\n".join(told), "sh")


def wrapped(command: str) -> str:
    """A command over as many lines as it needs."""
    lines = textwrap.wrap(command, 76, break_long_words=False, break_on_hyphens=False)
    return " \\\n  ".join(lines)


def gb(number: int) -> str:
    return f"{number / 1e9:.1f}"
