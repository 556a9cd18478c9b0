"""What each tier needs and costs: MyST pages from the papers' files, models' shapes and manifests.

Nothing in them depends on the machine that writes them: sizes are computed from shapes, times are
those of the manifests, and what is extrapolated from them says so.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..data.sources import sources
from ..lm.hub import PRESETS
from ..lm.sizes import KEPT, Shape, shape
from ..study import costs, names, papers
from ..study.costs import Sizes, Spent
from ..study.papers import Cell, Grid, Paper
from ..study.retarget import retarget
from .caveats import count, table
from .escape import as_code, listing

ROWS, TOKENS = 16, 2048
"""What memory is told for: as many questions in flight as the commands have, prompts of a length
that hardly any here exceeds."""
VECTOR = 384 * 4  # bytes of a passage's vector under MiniLM, in float32
SHIPPED = "smollm2-135m"

INDEX = """\
Every condition of this book runs at one {term}`tier`. These pages tell what each needs and costs
before it is begun. They are made from the files that say what is run, from the shapes of the
models, and from the manifests of the records: no number is written by hand.
"""

ABOUT = {
    "testbed": """\
Invented worlds, made on the spot from a seed, read by the shipped reader and by readers that were
trained from it. Two processor cores do; nothing is downloaded after the set-up.
""",
    "public": """\
Real questions and passages, with the same small readers. It needs the data files
(`RAG_REPRO_DATA` names their folder) and two processor cores.
""",
    "one-gpu": """\
A reader of half a billion to one and a half billion parameters, between the shipped one and the
papers', for one GPU. It is no tier of its own: the conditions are those of testbed and public data
that read, with the reader exchanged. What was trained over the shipped reader (adapters,
R²-Formers) says nothing of another, and is left out. The weights are downloaded once, at the
commits that are named here.
""",
    "paper": """\
The papers' own readers. They need a GPU and downloads, at the commits that the papers' files name.
Llama's weights are handed out to those who accepted its licence on their page: `hf auth login`
tells the hub who you are.
""",
}

COMPUTED = f"""\
Computed from the models' shapes, not measured. The cache holds the keys and values of {ROWS} rows
of {TOKENS:,} tokens (`--batch-size {ROWS}`; a quarter of the rows takes a quarter of it). For a
processor the sum has, besides, the second copy of the weights that is laid out for it, and
{KEPT / 1e9:.1f} GB of kept beginnings of prompts, their limit. Libraries and a pass's own results
come on top, as do sentence encoders and classifiers, which are smaller than the smallest reader.
NF4 needs `pip install 'rag-repro[gpu]'` and CUDA.
"""

MEASURED = """\
*Hours measured* add up the runs that made the records, on {machines}; two runs may have shared the
machine, and an answer that the call cache held cost nothing. *Hours left* are **extrapolated**: the
answers that no record has, at the measured seconds of an answer of the same paper and kind (of the
tier, where the paper has none; of all tiers, where the tier has none). Building indexes, loading
weights and training are not in them. `--estimate` tries a few questions of each condition
and tells for your machine.
"""

SCALED = """\
**Extrapolated**, not measured: the answers, at the seconds of an answer that the shipped reader's
records took on {machines}, times how many more parameters the reader has. These are the hours of
*that* machine; no GPU was at hand. To learn what yours takes, {trial}.
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


def pages(results: Path, chapters: Sequence[str] = ()) -> dict[str, str]:
    """Path below the book's folder -> text, of the four pages and the one before them.

    results: the folder of records. chapters: names of those whose reader can be exchanged.
    """
    known = [papers.load(name) for name in papers.names()]
    cells = costs.cells(known)
    ground = Ground(results, known, cells, costs.sizes(cells, results), chapters)
    made = {
        "tiers/testbed.md": _machine(ground, "testbed", "Testbed"),
        "tiers/public.md": _machine(ground, "public", "Public data"),
        "tiers/one-gpu.md": _one_gpu(ground),
        "tiers/paper.md": _paper(ground),
    }
    return {"tiers/index.md": _index(ground, made), **made}


def _page(title: str, *parts: str) -> str:
    return "\n\n".join(part.strip() for part in (f"# {title}", *parts) if part) + "\n"


# ------------------------------------------------------------------ testbed and public data


def _machine(ground: Ground, tier: str, title: str) -> str:
    cells = ground.of(tier)
    return _page(
        f"{title}: what it needs and costs",
        ABOUT[tier],
        "## Memory and disk",
        _memory(_bases(cells), f"tab-memory-{tier}"),
        COMPUTED,
        _disk(ground, cells, tier),
        "## Answers and time",
        _times(ground, cells, f"tab-times-{tier}"),
        MEASURED.format(machines=_machines(ground, cells)),
        _unsized(ground.spent(cells)),
        "## Commands",
        _commands(ground, tier, data=tier == "public"),
    )


def _bases(cells: Iterable[Cell]) -> list[str]:
    """The weights behind the conditions' readers, smallest first."""
    readers = {cell.condition.reader for cell in cells} - {None}
    found = {names.base_of(name) for name in readers}
    return sorted(found, key=lambda name: (shape(name).parameters, name))


def _memory(weights: Sequence[str], name: str) -> str:
    body = []
    for one in weights:
        made = shape(one)
        on_gpu = [
            f"{_gb(made.weights(dtype))} + {_gb(_cache(made, dtype))}"
            for dtype in ("float32", "bfloat16", "nf4")
        ]
        on_cpu = made.weights("float32") + made.packed + _cache(made, "float32") + KEPT
        sizes = [_gb(_on_disk(one, made)), _gb(on_cpu), *on_gpu]
        body.append([_bare(one), f"{made.parameters / 1e6:,.0f}", *sizes])
    head = ["weights", "million parameters", "disk", "processor, float32"]
    head += ["GPU, float32", "GPU, bfloat16", "GPU, NF4"]
    return table(head, body, "Readers and the GB that they take: weights + cache", name)


def _cache(made: Shape, dtype: str) -> int:
    return made.cache(ROWS * min(TOKENS, made.context), dtype)


def _on_disk(name: str, made: Shape) -> int:
    """Of what ships the float32 copy that is made once; else two bytes a weight, as downloaded."""
    downloaded = name.startswith("hub:") or name in PRESETS
    return made.weights("bfloat16" if downloaded else "float32")


def _disk(ground: Ground, cells: Sequence[Cell], tier: str) -> str:
    dense = [cell for cell in cells if (cell.condition.retriever or "").startswith("minilm")]
    held = costs.passages(dense, ground.results)
    points = []
    if held:
        points.append(
            f"Vectors of {sum(held.values()):,} passages ({count(len(held), 'data set')} with "
            f"records of dense search): {sum(held.values()) * VECTOR / 1e6:.0f} MB."
        )
    files = {
        part.file
        for cell in cells
        if cell.condition.label in sources().releases
        for part in sources().releases[cell.condition.label].parts
    }
    if tier != "testbed" and files:
        known = [file.bytes for file in files if file.bytes]
        points.append(
            f"Official releases, where you fetch them: {count(len(files), 'file')}; the "
            f"{len(known)} whose size is published take {_gb(sum(known))} GB."
        )
    return "\n".join(f"- {point}" for point in points)


def _times(ground: Ground, cells: Sequence[Cell], name: str) -> str:
    body, total, all_left = [], Spent(), 0.0
    for paper in ground.papers:
        for reads in (True, False):
            mine = [c for c in cells if _is_of(paper, c) and bool(c.condition.reader) == reads]
            if not mine:
                continue
            one = ground.spent(mine)
            each = one.each or _each(ground, cells, reads) or _each(ground, ground.cells, reads)
            left = one.left * (each or 0) / 3600
            total, all_left = total + one, all_left + left
            kind = "reads" if reads else "only searches"
            body.append([paper.short, kind, *_counts(one), _each_said(one.each), f"{left:.1f}"])
    body.append(["all", "", *_counts(total), "", f"{all_left:.1f}"])
    head = ["paper", "its conditions", "conditions", "with records", "answers asked"]
    head += ["recorded", "hours measured", "seconds an answer", "hours left"]
    return table(head, body, "Answers, and the time of the records' machine", name)


def _counts(one: Spent) -> list[str]:
    numbers = [one.conditions, one.recorded, one.wanted, one.answers]
    return [*(f"{n:,}" for n in numbers), f"{one.seconds / 3600:.1f}"]


def _each(ground: Ground, cells: Iterable[Cell], reads: bool) -> float | None:
    return ground.spent(c for c in cells if bool(c.condition.reader) == reads).each


def _each_said(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2g}"


def _unsized(one: Spent) -> str:
    if not one.unsized:
        return ""
    return (
        f"{count(one.unsized, 'condition')} ask all questions of a set whose size is not known "
        "before it is made; their answers are not counted."
    )


# ------------------------------------------------------------------ one GPU


def _one_gpu(ground: Ground) -> str:
    body, sums = [], dict.fromkeys(PRESETS, 0.0)
    conditions = answers = 0
    for paper in ground.papers:
        one = ground.spent(exchanged(paper, next(iter(PRESETS))))
        if not one.conditions:
            continue
        each = _shipped_each(ground, paper)
        hours = {name: one.wanted * each * _ratio(name) / 3600 for name in PRESETS}
        sums = {name: sums[name] + hours[name] for name in PRESETS}
        conditions, answers = conditions + one.conditions, answers + one.wanted
        body.append([paper.short, f"{one.conditions:,}", f"{one.wanted:,}", *_hours(hours)])
    body.append(["all", f"{conditions:,}", f"{answers:,}", *_hours(sums)])
    head = ["paper", "conditions", "answers", *(f"hours, {name}" for name in PRESETS)]
    trial = "begin with four questions: `-p n_questions 4`"
    held = "\n".join(f"- {as_code(name)}: {as_code(full)}" for name, full in PRESETS.items())
    return _page(
        "One GPU: what it needs and costs",
        ABOUT["one-gpu"],
        held,
        "## Memory and disk",
        _memory([*PRESETS], "tab-memory-one-gpu"),
        COMPUTED,
        "## Answers and time",
        table(head, body, "Answers, and hours of the records' machine", "tab-times-one-gpu"),
        SCALED.format(machines=_machines(ground, ground.cells), trial=trial),
        "## Commands",
        listing(_gpu_commands(ground), "sh"),
        "A chapter whose parameters are changed computes in float32, shows what was asked, and "
        "leaves the committed records as they are. In place of a GPU of your own any "
        "OpenAI-compatible servers do, for methods that need no trace of the reader: "
        "`-p reader api:MODEL@http://HOST/v1`, with further addresses behind commas.",
    )


def exchanged(paper: Paper, reader: str) -> list[Cell]:
    """The paper's conditions on testbed and public data that can have another reader, with it."""
    exhibits = {
        key: replace(exhibit, grids=tuple(g for g in exhibit.grids if _may_move(g)))
        for key, exhibit in paper.exhibits.items()
    }
    return costs.cells([retarget(replace(paper, exhibits=exhibits), reader=reader)])


def _may_move(grid: Grid) -> bool:
    return grid.reader is not None and grid.tier in ("testbed", "public")


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


def _ratio(name: str) -> float:
    return shape(name).parameters / shape(SHIPPED).parameters


def _hours(hours: Mapping[str, float]) -> list[str]:
    return [f"{value:,.1f}" for value in hours.values()]


def _gpu_commands(ground: Ground) -> str:
    reader = [*PRESETS][-1]
    chapters = ground.chapters or ("NAME",)
    return "\n".join(
        ["pip install --editable '.[gpu]'"]
        + [f"rag-repro chapter {name} -p reader {reader} -p device cuda" for name in chapters]
    )


# ------------------------------------------------------------------ the papers' own


def _paper(ground: Ground) -> str:
    cells = ground.of("paper")
    body = []
    for paper in ground.papers:
        mine = [cell for cell in cells if _is_of(paper, cell)]
        each = _shipped_each(ground, paper)
        for reader in dict.fromkeys(cell.condition.reader for cell in mine):
            one = ground.spent(c for c in mine if c.condition.reader == reader)
            if reader is None:
                body.append([paper.short, "none", *_counts(one)[:4], ""])
                continue
            hours = one.left * each * _ratio(names.base_of(reader)) / 3600
            body.append([paper.short, _bare(reader), *_counts(one)[:4], f"{hours:,.1f}"])
    head = ["paper", "reader", "conditions", "with records", "answers asked", "recorded"]
    head += ["hours left"]
    trial = "add `--estimate` to a command below"
    return _page(
        "The papers' own models: what they need and cost",
        ABOUT["paper"],
        "## Memory and disk",
        _memory(_bases(cells), "tab-memory-paper"),
        COMPUTED,
        _disk(ground, cells, "paper"),
        "## Answers and time",
        table(head, body, "Answers, and hours of the records' machine", "tab-times-paper"),
        SCALED.format(machines=_machines(ground, ground.cells), trial=trial),
        _unsized(ground.spent(cells)),
        "## Commands",
        _commands(ground, "paper", data=True, more="--device cuda --dtype bfloat16"),
        "`--dtype nf4` takes the least memory; its answers are recorded apart.",
    )


# ------------------------------------------------------------------ the page before them


def _index(ground: Ground, made: Mapping[str, str]) -> str:
    body = []
    for tier, label in (("testbed", "testbed"), ("public", "public"), ("paper", "paper")):
        cells = ground.of(tier)
        largest = _bases(cells)[-1:]
        one = ground.spent(cells)
        body.append([label, *_counts(one), *(map(_largest, largest) if largest else [""])])
    both = [cell for paper in ground.papers for cell in exchanged(paper, [*PRESETS][-1])]
    one = ground.spent(both)
    body.insert(2, ["one GPU", *_counts(one), _largest([*PRESETS][-1])])
    head = ["tier", "conditions", "with records", "answers asked", "recorded", "hours measured"]
    head += ["largest reader"]
    links = "\n".join(f"- {{doc}}`{Path(name).stem}`" for name in made)
    return _page(
        "What each tier needs and costs",
        INDEX,
        table(head, body, "The tiers at a glance", "tab-tiers"),
        links,
    )


def _largest(name: str) -> str:
    made = shape(name)
    most = made.weights("bfloat16") + _cache(made, "bfloat16")
    return f"{_bare(name)}, {_gb(most)} GB in bfloat16"


# ------------------------------------------------------------------ forms


def _is_of(paper: Paper, cell: Cell) -> bool:
    return cell.exhibit.partition(".")[0] == paper.name


def _machines(ground: Ground, cells: Sequence[Cell]) -> str:
    return " and on ".join(costs.machines(cells, ground.results)) or "no machine yet"


def _commands(ground: Ground, tier: str, *, data: bool, more: str = "") -> str:
    """What runs everything of the tier, a command a paper; and what times it."""
    told = ["export RAG_REPRO_DATA=/path/to/data"] if data else []
    for paper in ground.papers:
        for timed, verb in ((False, "run"), (True, "time")):
            mine = [e.name for e in paper.exhibits.values() if e.cells(tier) and e.timed == timed]
            # One at a time: `time` takes one exhibit.
            for part in [mine] if verb == "run" and mine else [[name] for name in mine]:
                told.append(_wrapped(f"rag-repro {verb} {' '.join(part)} --tier {tier} {more}"))
    return listing("\n".join(told), "sh")


def _wrapped(command: str) -> str:
    """A command over as many lines as it needs."""
    lines = textwrap.wrap(command, 76, break_long_words=False, break_on_hyphens=False)
    return " \\\n  ".join(lines)


def _bare(name: str) -> str:
    return name.removeprefix("hub:").partition("@")[0]


def _gb(number: int) -> str:
    return f"{number / 1e9:.1f}"
