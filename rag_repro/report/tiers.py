"""What each tier needs and costs: MyST pages from the papers' files, models' shapes and manifests.

Nothing in them depends on the machine that writes them: sizes are computed from shapes, times are
those of the manifests, and what is extrapolated from them says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..data.sources import sources
from ..data.titles import bare
from ..lm.hub import PRESETS
from ..lm.sizes import shape
from ..study import costs, names, papers
from ..study.costs import Spent
from ..study.papers import Cell, Grid, Paper
from ..study.retarget import retarget
from . import tiers_parts as parts
from .caveats import count, table
from .escape import as_code, listing

VECTOR = 384 * 4  # bytes of a passage's vector under MiniLM, in float32

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


def pages(results: Path, chapters: Sequence[str] = ()) -> dict[str, str]:
    """Path below the book's folder -> text, of the four pages and the one before them.

    results: the folder of records. chapters: names of those whose reader can be exchanged.
    """
    known = [papers.load(name) for name in papers.names()]
    cells = costs.cells(known)
    ground = parts.Ground(results, known, cells, costs.sizes(cells, results), chapters)
    made = {
        "tiers/testbed.md": _machine(ground, "testbed", "Testbed"),
        "tiers/public.md": _machine(ground, "public", "Public data"),
        "tiers/one-gpu.md": _one_gpu(ground),
        "tiers/paper.md": _paper(ground),
    }
    return {"tiers/index.md": _index(ground, made), **made}


# ------------------------------------------------------------------ testbed and public data


def _machine(ground: parts.Ground, tier: str, title: str) -> str:
    cells = ground.of(tier)
    return parts.page(
        f"{title}: what it needs and costs",
        ABOUT[tier],
        "## Memory and disk",
        parts.memory(parts.bases(cells), f"tab-memory-{tier}"),
        parts.COMPUTED,
        _disk(ground, cells, tier),
        "## Answers and time",
        _times(ground, cells, f"tab-times-{tier}"),
        MEASURED.format(machines=parts.machines(ground, cells)),
        _unsized(ground.spent(cells)),
        "## Commands",
        parts.commands(ground, tier, data=tier == "public"),
    )


def _disk(ground: parts.Ground, cells: Sequence[Cell], tier: str) -> str:
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
            f"{len(known)} whose size is published take {parts.gb(sum(known))} GB."
        )
    return "\n".join(f"- {point}" for point in points)


def _times(ground: parts.Ground, cells: Sequence[Cell], name: str) -> str:
    body, total, all_left = [], Spent(), 0.0
    for paper in ground.papers:
        for reads in (True, False):
            mine = [c for c in cells if parts.is_of(paper, c) and bool(c.condition.reader) == reads]
            if not mine:
                continue
            one = ground.spent(mine)
            each = one.each or _each(ground, cells, reads) or _each(ground, ground.cells, reads)
            left = one.left * (each or 0) / 3600
            total, all_left = total + one, all_left + left
            kind = "reads" if reads else "only searches"
            body.append(
                [paper.short, kind, *parts.counts(one), _each_said(one.each), f"{left:.1f}"]
            )
    body.append(["all", "", *parts.counts(total), "", f"{all_left:.1f}"])
    head = ["paper", "kind", "conditions", "with records", "answers asked"]
    head += ["recorded", "hours measured", "seconds an answer", "hours left"]
    return table(head, body, "Answers, and the time of the records' machine", name)


def _each(ground: parts.Ground, cells: Iterable[Cell], reads: bool) -> float | None:
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


def _one_gpu(ground: parts.Ground) -> str:
    body, sums = [], dict.fromkeys(PRESETS, 0.0)
    conditions = answers = 0
    for paper in ground.papers:
        one = ground.spent(exchanged(paper, next(iter(PRESETS))))
        if not one.conditions:
            continue
        each = _shipped_each(ground, paper)
        hours = {name: one.wanted * each * parts.ratio(name) / 3600 for name in PRESETS}
        sums = {name: sums[name] + hours[name] for name in PRESETS}
        conditions, answers = conditions + one.conditions, answers + one.wanted
        body.append([paper.short, f"{one.conditions:,}", f"{one.wanted:,}", *_hours(hours)])
    body.append(["all", f"{conditions:,}", f"{answers:,}", *_hours(sums)])
    head = ["paper", "conditions", "answers", *(f"hours, {name}" for name in PRESETS)]
    trial = "begin with four questions: `-p n_questions 4`"
    held = "\n".join(f"- {as_code(name)}: {as_code(full)}" for name, full in PRESETS.items())
    return parts.page(
        "One GPU: what it needs and costs",
        ABOUT["one-gpu"],
        held,
        "## Memory and disk",
        parts.memory([*PRESETS], "tab-memory-one-gpu"),
        parts.COMPUTED,
        "## Answers and time",
        table(head, body, "Answers, and hours of the records' machine", "tab-times-one-gpu"),
        SCALED.format(machines=parts.machines(ground, ground.cells), trial=trial),
        "## Commands",
        listing(_gpu_commands(ground), "sh"),
        "The table counts all conditions that could have another reader. These commands run the "
        "chapters in which the reader is a parameter, and of their conditions those that the "
        "chapter shows; each lists them before it asks.\n\n"
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


def _shipped_each(ground: parts.Ground, paper: Paper) -> float:
    """Seconds an answer by the shipped reader or one trained from it; of all papers where this
    one has none, 0 where there are no records."""
    cells = [
        cell
        for cell in ground.cells
        if cell.condition.reader and names.base_of(cell.condition.reader) == parts.SHIPPED
    ]
    mine = ground.spent(cell for cell in cells if parts.is_of(paper, cell))
    return mine.each or ground.spent(cells).each or 0.0


def _hours(hours: Mapping[str, float]) -> list[str]:
    return [f"{value:,.1f}" for value in hours.values()]


def _gpu_commands(ground: parts.Ground) -> str:
    reader = [*PRESETS][-1]
    chapters = ground.chapters or ("NAME",)
    return "\n".join(
        ["pip install --editable '.[gpu]'"]
        + [f"rag-repro chapter {name} -p reader {reader} -p device cuda" for name in chapters]
    )


# ------------------------------------------------------------------ the papers' own


def _paper(ground: parts.Ground) -> str:
    cells = ground.of("paper")
    body = []
    for paper in ground.papers:
        mine = [cell for cell in cells if parts.is_of(paper, cell)]
        each = _shipped_each(ground, paper)
        for reader in dict.fromkeys(cell.condition.reader for cell in mine):
            one = ground.spent(c for c in mine if c.condition.reader == reader)
            if reader is None:
                body.append([paper.short, "none", *parts.counts(one)[:4], ""])
                continue
            hours = one.left * each * parts.ratio(names.base_of(reader)) / 3600
            body.append([paper.short, bare(reader), *parts.counts(one)[:4], f"{hours:,.1f}"])
    head = ["paper", "reader", "conditions", "with records", "answers asked", "recorded"]
    head += ["hours left"]
    trial = "add `--estimate` to a command below"
    return parts.page(
        "The papers' own models: what they need and cost",
        ABOUT["paper"],
        "## Memory and disk",
        parts.memory(parts.bases(cells), "tab-memory-paper"),
        parts.COMPUTED,
        _disk(ground, cells, "paper"),
        "## Answers and time",
        table(head, body, "Answers, and hours of the records' machine", "tab-times-paper"),
        SCALED.format(machines=parts.machines(ground, ground.cells), trial=trial),
        _unsized(ground.spent(cells)),
        "## Commands",
        parts.commands(ground, "paper", data=True, more="--device cuda --dtype bfloat16"),
        "`--dtype nf4` takes the least memory; its answers are recorded apart.",
    )


# ------------------------------------------------------------------ the page before them


def _index(ground: parts.Ground, made: Mapping[str, str]) -> str:
    body = []
    for tier, label in (("testbed", "testbed"), ("public", "public"), ("paper", "paper")):
        cells = ground.of(tier)
        largest = parts.bases(cells)[-1:]
        one = ground.spent(cells)
        body.append([label, *parts.counts(one), *(map(_largest, largest) if largest else [""])])
    both = [cell for paper in ground.papers for cell in exchanged(paper, [*PRESETS][-1])]
    one = ground.spent(both)
    body.insert(2, ["one GPU", *parts.counts(one), _largest([*PRESETS][-1])])
    head = ["tier", "conditions", "with records", "answers asked", "recorded", "hours measured"]
    head += ["largest reader"]
    links = "\n".join(f"- {{doc}}`{Path(name).stem}`" for name in made)
    return parts.page(
        "What each tier needs and costs",
        INDEX,
        table(head, body, "The tiers at a glance", "tab-tiers"),
        links,
    )


def _largest(name: str) -> str:
    made = shape(name)
    most = made.weights("bfloat16") + parts.cache(made, "bfloat16")
    return f"{bare(name)}, {parts.gb(most)} GB in bfloat16"
