"""What each tier needs and costs: MyST pages from the papers' files, models' shapes and manifests.

Nothing in them depends on the machine that writes them: sizes are computed from shapes, times are
those of the manifests, and what is extrapolated from them says so. The texts are templates.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_repro.data.sources import sources
from rag_repro.data.titles import bare
from rag_repro.lm.hub import PRESETS
from rag_repro.lm.sizes import KEPT, Shape, shape
from rag_repro.publish.templating import render
from rag_repro.study import costs, names, papers
from rag_repro.study.costs import Sizes, Spent
from rag_repro.study.papers import Cell, Paper
from rag_repro.study.retarget import retarget

SHIPPED = "smollm2-135m"
VECTOR = 384 * 4  # bytes of a passage's vector under MiniLM, in float32
ROWS, TOKENS = 16, 2048
"""What memory is told for: as many questions in flight as the commands have, prompts of a length
that hardly any here exceeds."""


def pages(results: Path, chapters: Sequence[str] = ()) -> dict[str, str]:
    """Path below the book's folder -> text, of the four pages and the one before them.

    results: the folder of records. chapters: names of those whose reader can be exchanged.
    """
    known = [papers.load(name) for name in papers.names()]
    cells = costs.cells(known)
    ground = Ground(results, known, cells, costs.sizes(cells, results), chapters)
    return {
        "tiers/index.md": _index(ground),
        "tiers/testbed.md": _machine(ground, "testbed"),
        "tiers/public.md": _machine(ground, "public"),
        "tiers/one-gpu.md": _one_gpu(ground),
        "tiers/paper.md": _paper(ground),
    }


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

    def spent(self, some: Iterable[Cell]) -> Spent:
        return sum((costs.spent(cell, self.sizes, self.results) for cell in some), Spent())

    def at(self, tier: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.tier == tier]

    def machines(self, cells: Sequence[Cell]) -> str:
        return " and on ".join(costs.machines(cells, self.results)) or "no machine yet"


# ------------------------------------------------------------------ the pages


def _machine(ground: Ground, tier: str) -> str:
    """Testbed and public data: what two cores do."""
    cells, rows, total, hours = ground.at(tier), [], Spent(), 0.0
    for paper in ground.papers:
        for reads in (True, False):
            mine = [c for c in cells if _is_of(paper, c) and bool(c.condition.reader) == reads]
            if not mine:
                continue
            one = ground.spent(mine)
            each = one.each or _each(ground, cells, reads) or _each(ground, ground.cells, reads)
            left = one.left * (each or 0) / 3600
            total, hours = total + one, hours + left
            kind = "reads" if reads else "only searches"
            seconds = "" if one.each is None else f"{one.each:.2g}"
            rows.append([paper.short, kind, *_counts(one), seconds, f"{left:.1f}"])
    rows.append(["all", "", *_counts(total), "", f"{hours:.1f}"])
    return render(
        "tier_machine",
        **_needs(ground, tier, cells),
        rows=rows,
        machines=ground.machines(cells),
        unsized=ground.spent(cells).unsized,
        commands=_commands(ground, tier),
    )


def _one_gpu(ground: Ground) -> str:
    rows, sums, conditions, answers = [], dict.fromkeys(PRESETS, 0.0), 0, 0
    for paper in ground.papers:
        one = ground.spent(exchanged(paper, next(iter(PRESETS))))
        if not one.conditions:
            continue
        each = _shipped_each(ground, paper)
        hours = {name: one.wanted * each * _ratio(name) / 3600 for name in PRESETS}
        sums = {name: sums[name] + hours[name] for name in PRESETS}
        conditions, answers = conditions + one.conditions, answers + one.wanted
        rows.append([paper.short, f"{one.conditions:,}", f"{one.wanted:,}", *_hours(hours)])
    rows.append(["all", f"{conditions:,}", f"{answers:,}", *_hours(sums)])
    more = f"-p reader {[*PRESETS][-1]} -p device cuda"
    commands = [f"rag-repro chapter {name} {more}" for name in ground.chapters or ("NAME",)]
    return render(
        "tier_one_gpu",
        **_needs(ground, "one-gpu", []),
        head=["paper", "conditions", "answers", *(f"hours, {name}" for name in PRESETS)],
        rows=rows,
        presets=PRESETS,
        machines=ground.machines(ground.cells),
        commands="\n".join(["pip install --editable '.[gpu]'", *commands]),
    )


def _paper(ground: Ground) -> str:
    cells, rows = ground.at("paper"), []
    for paper in ground.papers:
        mine = [cell for cell in cells if _is_of(paper, cell)]
        each = _shipped_each(ground, paper)
        for reader in dict.fromkeys(cell.condition.reader for cell in mine):
            one = ground.spent(c for c in mine if c.condition.reader == reader)
            hours = reader and one.left * each * _ratio(names.base_of(reader)) / 3600
            row = [paper.short, bare(reader) if reader else "none", *_counts(one)[:4]]
            rows.append([*row, "" if reader is None else f"{hours:,.1f}"])
    return render(
        "tier_paper",
        **_needs(ground, "paper", cells),
        rows=rows,
        machines=ground.machines(ground.cells),
        unsized=ground.spent(cells).unsized,
        commands=_commands(ground, "paper", more="--device cuda --dtype bfloat16"),
    )


def _index(ground: Ground) -> str:
    rows = []
    for tier in ("testbed", "public", "paper"):
        cells = ground.at(tier)
        largest = _bases(cells)[-1:]
        rows.append([tier, *_counts(ground.spent(cells)), "".join(map(_largest, largest))])
    last = [*PRESETS][-1]
    both = [cell for paper in ground.papers for cell in exchanged(paper, last)]
    rows.insert(2, ["one GPU", *_counts(ground.spent(both)), _largest(last)])
    return render("tier_index", rows=rows, pages=("testbed", "public", "one-gpu", "paper"))


# ------------------------------------------------------------------ memory and disk


def _needs(ground: Ground, tier: str, cells: Sequence[Cell]) -> dict[str, Any]:
    """What `tier_memory` shows. files: bytes of each release, 0 where none are published."""
    dense = [cell for cell in cells if (cell.condition.retriever or "").startswith("minilm")]
    passages = costs.passages(dense, ground.results)
    files = {
        part.file
        for cell in cells
        if cell.condition.label in sources().releases and tier != "testbed"
        for part in sources().releases[cell.condition.label].parts
    }
    weights = [*PRESETS] if tier == "one-gpu" else _bases(cells)
    return {
        "tier": tier,
        "gb": _gb,
        "batch": ROWS,
        "tokens": TOKENS,
        "kept": KEPT,
        "memory": [_memory(name, shape(name)) for name in weights],
        "vectors": sum(passages.values()),
        "vector_bytes": VECTOR,
        "vector_sets": len(passages),
        "files": [file.bytes or 0 for file in files],
    }


def _bases(cells: Iterable[Cell]) -> list[str]:
    """The weights behind the conditions' readers, smallest first; a model once."""
    readers = {cell.condition.reader for cell in cells} - {None}
    bases = {bare(base): base for base in map(names.base_of, sorted(readers))}
    return sorted(bases.values(), key=lambda name: (shape(name).parameters, name))


def _memory(name: str, model: Shape) -> list[str]:
    """Of what ships the disk has the float32 copy that is made once; else what is downloaded."""
    downloaded = name.startswith("hub:") or name in PRESETS
    disk = model.weights("bfloat16" if downloaded else "float32")
    processor = model.weights("float32") + model.packed + _cache(model, "float32") + KEPT
    gpu = [
        f"{_gb(model.weights(dtype))} + {_gb(_cache(model, dtype))}"
        for dtype in ("float32", "bfloat16", "nf4")
    ]
    return [bare(name), f"{model.parameters / 1e6:,.0f}", _gb(disk), _gb(processor), *gpu]


def _cache(model: Shape, dtype: str) -> int:
    return model.cache(ROWS * min(TOKENS, model.context), dtype)


def _largest(name: str) -> str:
    model = shape(name)
    most = model.weights("bfloat16") + _cache(model, "bfloat16")
    return f"{bare(name)}, {_gb(most)} GB in bfloat16"


def _gb(number: int) -> str:
    return f"{number / 1e9:.1f}"


# ------------------------------------------------------------------ conditions and commands


def exchanged(paper: Paper, reader: str) -> list[Cell]:
    """The paper's conditions on testbed and public data that can have another reader, with it."""
    exhibits = {
        key: replace(
            exhibit,
            grids=tuple(g for g in exhibit.grids if g.reader and g.tier in ("testbed", "public")),
        )
        for key, exhibit in paper.exhibits.items()
    }
    return costs.cells([retarget(replace(paper, exhibits=exhibits), reader=reader)])


def _shipped_each(ground: Ground, paper: Paper) -> float:
    """Seconds an answer by the shipped reader or one trained from it; of all papers where this
    one has none, 0 where there are no records."""
    cells = [
        cell
        for cell in ground.cells
        if cell.condition.reader and names.base_of(cell.condition.reader) == SHIPPED
    ]
    mine = ground.spent(cell for cell in cells if _is_of(paper, cell))
    return mine.each or ground.spent(cells).each or 0.0


def _each(ground: Ground, cells: Iterable[Cell], reads: bool) -> float | None:
    return ground.spent(c for c in cells if bool(c.condition.reader) == reads).each


def _ratio(name: str) -> float:
    return shape(name).parameters / shape(SHIPPED).parameters


def _is_of(paper: Paper, cell: Cell) -> bool:
    return cell.exhibit.partition(".")[0] == paper.name


def _hours(hours: Mapping[str, float]) -> list[str]:
    return [f"{value:,.1f}" for value in hours.values()]


def _counts(one: Spent) -> list[str]:
    numbers = [one.conditions, one.recorded, one.wanted, one.answers]
    return [*(f"{n:,}" for n in numbers), f"{one.seconds / 3600:.1f}"]


def _commands(ground: Ground, tier: str, *, more: str = "") -> str:
    """What runs everything of the tier, a command a paper; and what times it."""
    commands = [] if tier == "testbed" else ["export RAG_REPRO_DATA=/path/to/data"]
    for paper in ground.papers:
        for timed, verb in ((False, "run"), (True, "time")):
            mine = [e.name for e in paper.exhibits.values() if e.cells(tier) and e.timed == timed]
            # One at a time: `time` takes one exhibit.
            for part in [mine] if verb == "run" and mine else [[name] for name in mine]:
                command = f"rag-repro {verb} {' '.join(part)} --tier {tier} {more}"
                lines = textwrap.wrap(command, 76, break_long_words=False, break_on_hyphens=False)
                commands.append(" \\\n  ".join(lines))
    return "\n".join(commands)
