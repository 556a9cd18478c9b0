"""Tables and figures of the testbed's chapter."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from rag_repro.analysis.deep_recall import recall_at

from ..data.dataset import Dataset
from ..data.synthworld import World
from ..data.synthworld.calibration import BAND, CalibrationRow
from ..data.synthworld.dials import PRESETS
from ..data.synthworld.wordings import relations, wording_set, wordings
from ..evaluation.verdicts import NOT_RUN
from ..study.papers import Exhibit
from ..study.scores import Results
from . import figures
from .picture import Picture
from .table import Table
from .traces import short
from .values import within

PANELS = 3  # of a figure, side by side


def inventory(world: World) -> Table:
    """How many entities of each kind, how many share their name, how many facts they have."""
    by_kind = defaultdict(list)
    for entity in world.entities:
        by_kind[entity.kind].append(entity)
    names = Counter(entity.name for entity in world.entities)
    facts = Counter(world.entity[fact.subject].kind for fact in world.facts)
    body = [
        [kind, len(held), sum(names[e.name] > 1 for e in held), f"{facts[kind] / len(held):.1f}"]
        for kind, held in sorted(by_kind.items(), key=lambda item: -len(item[1]))
    ]
    head = ["kind", "entities", "share their name", "facts each"]
    return Table(head, body, f"Entities of world {world.name}, by kind", "tab-entities")


def relation_table(world: World) -> Table:
    """Every relation with the number of its wordings, in all worlds together, and an example."""
    sets = [wordings(which) for which in sorted({p.wording for p in PRESETS.values()})]
    here = wordings(wording_set(world.name))
    body = []
    for name, relation in sorted(relations().items()):
        said = sum(len(of[name].says) for of in sets)
        asked = sum(len(of[name].near) + len(of[name].far) for of in sets)
        before, after = here[name].says[0]
        example = f"{before} … {after}".strip()
        body.append([name, relation.answer, said, asked, example])
    head = ["relation", "answer", "wordings in passages", "in questions", "one"]
    return Table(head, body, "Relations, and in how many ways each is said", "tab-relations")


def kind_table(dataset: Dataset) -> Table:
    """One question of each kind with its answer and what it needs."""
    first = {}
    for question in dataset.questions:
        first.setdefault(question.meta["maker"], question)
    counts = Counter(q.meta["maker"] for q in dataset.questions)
    body = []
    for kind, question in sorted(first.items()):
        roles = Counter(gold.role for gold in question.gold)
        needs = ", ".join(f"{n} {role}" for role, n in sorted(roles.items(), reverse=True))
        answer = question.answers[0]
        body.append([kind, counts[kind], question.text, answer, needs])
    head = ["kind", "questions", "one of them", "an answer", "gold passages"]
    return Table(head, body, f"Kinds of question in {dataset.name}", "tab-kinds")


def chain_table(dataset: Dataset, kind: str) -> Table:
    """The first question of a kind, step by step, with its gold passages."""
    question = next(q for q in dataset.questions if q.meta["maker"] == kind)
    passages = dataset.corpus.by_id
    body: list[list[Any]] = [["question", question.text, " | ".join(question.answers)]]
    body += [[f"step {i}", s.question, s.answer] for i, s in enumerate(question.steps, start=1)]
    for gold in question.gold:
        passage = passages[gold.passage_id]
        body.append([f"{gold.role}, hop {gold.hop}", passage.title, passage.text])
    head = ["part", "question or title", "answer or passage"]
    return Table(head, body, f"A question of kind {kind}, step by step", "tab-chain")


def calibration_table(rows: Sequence[CalibrationRow]) -> Table:
    """Recall of BM25 at the preset, by world: over all, by role."""
    body = [
        [
            row.world,
            row.questions,
            *(f"{100 * v:.1f}" for v in (row.recall, row.static, row.dynamic, row.linked)),
        ]
        for row in rows
        if row.dial is None
    ]
    head = ["world", "questions", "recall at 3, %", "static-relevant", "dynamic-relevant", "linked"]
    caption = "BM25 on multi-hop questions, the dials at their preset"
    return Table(head, body, caption, "tab-calibration")


def is_chain(kind: str) -> bool:
    """Whether questions of this kind lead from one passage to the next, whatever set has them."""
    return kind in ("compositional", "bridge") or kind[1:4] == "hop"


def recall_table(exhibit: Exhibit, results: Results, k: int = 4) -> Table:
    """Recall of dynamic passages at k on chain questions, by set and retriever, off the records."""
    found: dict[str, dict[str, str]] = {}
    search = ("bm25", "minilm")
    for cell in exhibit.cells():
        if cell.keys["method"] in search:
            lines = [x for x in results.lines(cell) or () if is_chain(x["kind"])]
            value = recall_at(lines, k, role="dynamic") if lines else None
            said = within(value, 1, n=True) or NOT_RUN
            found.setdefault(cell.keys["dataset"], {})[cell.keys["method"]] = said
    body = [[dataset, *(by.get(m, NOT_RUN) for m in search)] for dataset, by in found.items()]
    caption = f"Dynamic-relevant passages found at k = {k}, %: world Z beside public sets"
    head = ["data set", *(exhibit.methods[m].label for m in search)]
    return Table(head, body, caption, "tab-recall-dynamic")


def way_table(exhibit: Exhibit, results: Results) -> Table:
    """What a reader gets right without passages, with found ones, with gold: off the records."""
    levels: dict[str, dict[str, float]] = {}
    for cell in exhibit.cells():
        read = results.scores(cell, "acc") if cell.condition.reader else None
        if read is not None:
            levels.setdefault(cell.keys["dataset"], {})[cell.keys["method"]] = float(
                read.values.mean()
            )
    body = []
    for dataset, by in levels.items():
        ends = by.get("closed"), by.get("plain"), by.get("gold")
        known = None not in ends and ends[0] != ends[2]
        way = f"{100 * (ends[1] - ends[0]) / (ends[2] - ends[0]):.0f}" if known else NOT_RUN
        body.append([dataset, *(NOT_RUN if v is None else f"{v:.1f}" for v in ends), way])
    head = ["data set", "no passage", "plain RAG", "gold passages", "way from first to last, %"]
    caption = "Right answers, %: plain RAG is to be at least half way to gold passages"
    return Table(head, body, caption, "tab-half-way")


def calibration_figure(rows: Sequence[CalibrationRow]) -> Picture:
    """BM25's recall as each dial is turned alone; the band is what was aimed at."""
    plt, colours = figures.plots()
    by_dial = defaultdict(list)
    for row in rows:
        if row.dial is not None:
            by_dial[row.dial].append(row)
    lines = -(-len(by_dial) // PANELS)
    figure, axes = plt.subplots(
        lines,
        PANELS,
        figsize=(figures.WIDTH, 2.1 * lines + 0.5),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for unused in axes.flat[len(by_dial) :]:
        unused.set_axis_off()
    for axis, (dial, held) in zip(axes.flat, by_dial.items(), strict=False):
        x = [row.value for row in held]
        axis.axhspan(100 * BAND[0], 100 * BAND[1], color="0.9", zorder=0)
        looks = zip(colours, figures.MARKERS, ("recall", "static", "dynamic"), strict=False)
        for colour, marker, name in looks:
            axis.plot(
                x, [100 * getattr(row, name) for row in held], marker=marker, ms=4, color=colour,
                label={"recall": "all gold"}.get(name, f"{name}-relevant"),
            )  # fmt: skip
        axis.set_xlabel(dial.replace("_", " "))
        axis.set_ylim(0, 100)
    figure.supylabel("BM25's recall at 3, %", fontsize="medium")
    figures.legend_of_labels(figure)
    alt = "BM25's recall at 3 by dial. " + "; ".join(
        f"{dial}: " + ", ".join(f"{r.value:g} gives {100 * r.recall:.0f} %" for r in held)
        for dial, held in by_dial.items()
    )
    caption = "BM25 as each dial is turned alone; the grey band is 40 to 65 %"
    return Picture(figure, alt, caption, "fig-dials")


def rank_figure(dataset: Dataset, retriever: Any, depth: int = 50) -> Picture:
    """Where a retriever ranks the gold passages for the bare question, by role."""
    plt, colours = figures.plots()
    questions = [q for q in dataset.questions if "dynamic" in {g.role for g in q.gold}]
    found = retriever.search([q.text for q in questions], depth)
    ranks: dict[str, list[int]] = {"static": [], "dynamic": []}
    for question, hits in zip(questions, found, strict=True):
        rank = {hit.passage.id: hit.rank for hit in hits}
        for gold in question.gold:
            ranks[gold.role].append(rank.get(gold.passage_id, depth + 1))
    figure, axis = plt.subplots(figsize=(figures.across(), 3), layout="constrained")
    spoken = []
    looks = zip(colours, figures.STYLES, ranks.items(), strict=False)
    for colour, style, (role, values) in looks:
        share = [100 * sum(v <= k for v in values) / len(values) for k in range(1, depth + 1)]
        axis.step(
            range(1, depth + 1), share, where="post", color=colour, ls=style,
            label=f"{role}-relevant ({len(values)} passages)",
        )  # fmt: skip
        spoken.append(f"{role}: {share[2]:.0f} % within 3, {share[-1]:.0f} % within {depth}")
    axis.set_xlabel("rank for the question alone")
    axis.set_ylabel("share of gold at that rank or above, %")
    axis.set_ylim(0, 100)
    axis.legend(loc="lower right")
    alt = "Share of gold passages by rank. " + "; ".join(spoken)
    caption = f"Gold passages by rank, {dataset.name}: questions with a dynamic-relevant passage"
    return Picture(figure, alt, caption, "fig-ranks")


def passage_table(dataset: Dataset, n: int) -> Table:
    """The first passages of a world."""
    body = [[p.id, p.title, p.text] for p in dataset.corpus.passages[:n]]
    caption = f"The first passages of {dataset.name}"
    return Table(["id", "title", "text"], body, caption, "tab-world")


def group_table(dataset: Dataset, n: int) -> Table:
    """Near-paraphrases of the same question, by group."""
    groups = defaultdict(list)
    for question in dataset.questions:
        if "group" in question.meta:
            groups[question.meta["group"]].append(question)
    body = [
        [group, short(question.text), question.answers[0]]
        for group, held in list(groups.items())[:n]
        for question in held
    ]
    caption = "Groups of questions that ask for the same fact"
    return Table(["group", "question", "answer"], body, caption, "tab-groups")
