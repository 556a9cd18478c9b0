"""Answers among the first n passages, by n: ERM4's figure 2 out of the ranks in records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..data.titles import word
from ..evaluation.knowledge_metrics import answer_recall_at, snippet_precision_at
from ..methods.drrag.concatenation import take_in_turns
from ..schema import Question
from ..study.papers import Cell, Exhibit
from ..study.scores import Results
from . import missing
from .figures import MARKERS, STYLES, WIDTH, legend_of_labels, plots
from .picture import Download, Note, Picture
from .table import Table

MOST = 30
QUERY = 10
"""Passages of one query: where the paper's figure has its dashed lines."""

Line = Mapping[str, Any]
SHOWN: Mapping[str, Callable[[int, Line], float | None]] = {
    "answer recall, %": answer_recall_at,
    "precision, %": snippet_precision_at,
}


def curves(lines: Sequence[Line], most: int = MOST) -> dict[str, list[float]] | None:
    """Recall and precision after 1 to `most` passages, in %; None: nobody knows where answers are.

    Means over the questions that have a value at every number of passages.
    """
    made = {}
    for said, at in SHOWN.items():
        told = [[at(n, line) for n in range(1, most + 1)] for line in lines]
        told = [values for values in told if None not in values]
        if not told:
            return None
        made[said] = [100 * float(mean) for mean in np.mean(told, axis=0)]
    return made


def figure(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    methods: Sequence[str],
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """A panel a data set, recall above precision; a line a row of the exhibit.

    Dotted: where the paper's second and third query would begin.
    """
    asked = [cell for cell in cells if cell.keys["method"] in methods]
    held = {}
    for cell in asked:
        if found := curves(results.lines(cell) or ()):
            held[cell.keys["dataset"], cell.keys["method"]] = found
    if not held:
        return missing.note(asked, results, caption)
    plt, colours = plots()
    datasets = list(dict.fromkeys(dataset for dataset, _ in held))
    size = (WIDTH, 4.6)
    drawn, axes = plt.subplots(
        2, len(datasets), figsize=size, sharex=True, sharey="row", squeeze=False,
        layout="constrained",
    )  # fmt: skip
    spoken, rows = [], []
    for column, dataset in enumerate(datasets):
        for axis, said in zip(axes[:, column], SHOWN, strict=True):
            for i, method in enumerate(methods):
                found = held.get((dataset, method))
                if found is None:
                    continue
                look = {"color": colours[i], "ls": STYLES[i % len(STYLES)], "lw": 1.5}
                axis.plot(
                    range(1, MOST + 1), found[said], marker=MARKERS[i], ms=4,
                    markevery=(4, 5), label=exhibit.methods[method].label, **look,
                )  # fmt: skip
                at = ", ".join(f"{found[said][n - 1]:.0f} at {n}" for n in (5, 10, 20, 30))
                label = exhibit.methods[method].label
                spoken.append(f"{word(dataset)}, {label}, {said}: {at}")
                rows += [
                    [dataset, method, said, n, f"{v:.2f}"] for n, v in enumerate(found[said], 1)
                ]
            for place in (QUERY, 2 * QUERY):
                axis.axvline(place, color="0.25", lw=1.1, ls=":")
            axis.grid(visible=False, axis="x")
        axes[0][column].set_title(word(dataset))
        axes[1][column].set_xlabel("passages")
    for axis, said in zip(axes[:, 0], SHOWN, strict=True):
        axis.set_ylabel(said)
    legend_of_labels(drawn)
    head = ["dataset", "method", "measure", "passages", "value"]
    alt = "Line chart. " + "; ".join(spoken) + "."
    return Picture(drawn, alt, caption, name, Download.of(name, head, rows))


def ranks(
    question: Question,
    queries: Sequence[str],
    dataset: Dataset,
    retriever: Any,
    name: str = "",
) -> Table:
    """One line a query, the question itself first: at which ranks the gold passages stand.

    The question is given `MOST` passages, each query `QUERY`; the last line is the queries'
    best in turn. An empty cell: not among them.
    """
    gold = question.gold
    found = [retriever.search([question.text], MOST, None)[0]]
    found += retriever.search(list(queries), QUERY, None)
    mixed = take_in_turns((), found[1:], MOST)
    lines = [("the question itself", found[0])]
    lines += [(query, hits) for query, hits in zip(queries, found[1:], strict=True)]
    lines.append(("all queries, mixed", mixed))
    body = []
    for said, hits in lines:
        places = {hit.passage.id: rank for rank, hit in enumerate(hits, start=1)}
        body.append([said, len(hits), *(places.get(g.passage_id, "") for g in gold)])
    titles = [dataset.corpus.by_id[g.passage_id].title for g in gold]
    head = ["query", "passages", *(f"rank of {title}" for title in titles)]
    return Table(head, body, f"“{question.text}”: where its gold passages stand", name)


@dataclass(frozen=True)
class Oracle:
    """Questions against their perfect queries, by whether all gold is among as many passages.

    shown: the first of which only the queries find all, else the first of all.
    """

    shown: Question
    counts: Table


def oracle(
    queries: Mapping[str, Sequence[str]],
    dataset: Dataset,
    retriever: Any,
    name: str = "",
    most: int = QUERY,
) -> Oracle:
    """Each question's own `most` passages against as many of its queries' best in turn.

    queries: by question id, as somebody would write them who knows what is needed.
    """
    found: dict[str, dict[tuple[bool, ...], int]] = {}
    shown = None
    for question, told in _told(queries, dataset, retriever, most):
        counts = found.setdefault(question.kind, {})
        counts[told] = counts.get(told, 0) + 1
        if told == (True, False):
            shown = shown or question
    body = [[kind, *(counts.get(told, 0) for told in EVERY)] for kind, counts in found.items()]
    body.append(["all", *(sum(column) for column in list(zip(*body, strict=True))[1:])])
    body = [[*row, sum(row[1:])] for row in body]
    head = ["kind", "only by the queries", "only by the question", "by both", "by neither"]
    caption = (
        f"All gold passages among {most} of {dataset.name}, by perfect queries and by the question "
        "itself"
    )
    table = Table([*head, "questions"], body, caption, name)
    return Oracle(shown or dataset.by_id[next(iter(queries))], table)


EVERY = ((True, False), (False, True), (True, True), (False, False))
"""Whether all gold is found, by the queries and by the question."""


def _told(
    queries: Mapping[str, Sequence[str]], dataset: Dataset, retriever: Any, most: int
) -> Iterator[tuple[Question, tuple[bool, bool]]]:
    """Each question, and whether all its gold is among `most`, by its queries and by itself."""
    for one, written in queries.items():
        question = dataset.by_id[one]
        hits, *others = retriever.search([question.text, *written], most, None)
        sides = (take_in_turns((), others, most), hits)
        gold = set(question.gold_ids)
        yield question, tuple(gold <= {hit.passage.id for hit in side} for side in sides)


def room(
    queries: Mapping[str, Sequence[str]],
    dataset: Dataset,
    retrievers: Mapping[str, Any],
    numbers: Sequence[int],
    name: str = "",
) -> Table:
    """What there is to be gained: one line a search and number of passages.

    Share of the questions all of whose gold passages are found, by perfect queries and by the
    question itself; where the two are alike no rewriter can win, whoever trains it.
    """
    body = []
    for said, retriever in retrievers.items():
        for most in numbers:
            told = [pair for _, pair in _told(queries, dataset, retriever, most)]
            shares = [100 * sum(side) / len(told) for side in zip(*told, strict=True)]
            only = [sum(pair == one for pair in told) for one in EVERY[:2]]
            body.append(
                [said, most, *(f"{x:.1f}" for x in (*shares, shares[0] - shares[1])), *only]
            )
    head = ["search", "passages", "by perfect queries, %", "by the question, %", "room, points"]
    head += ["only by the queries", "only by the question"]
    caption = f"All gold passages found, {word(dataset.name)}, {len(queries)} questions"
    return Table(head, body, caption, name, Download.of(name, head, body))


def readings(question: Question, name: str = "") -> Table:
    """An ambiguous question with its readings, and which of them is meant."""
    meant = question.meta.get("intent")
    body = [
        [one.question, " | ".join(one.answers), "yes" if place == meant else ""]
        for place, one in enumerate(question.interpretations)
    ]
    head = ["it can mean", "answer", "meant"]
    return Table(head, body, f"“{question.text}”, and what it can mean", name)
