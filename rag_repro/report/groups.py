"""Scores apart by what the needed passages are: how many, how long, what they are about.

The testbed tells both of every question, so the records that are there already
answer: nothing is run for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..data.dataset import Dataset
from ..evaluation import metrics
from ..evaluation.statistics import Resampled
from ..evaluation.verdicts import NOT_RUN
from ..schema import Question
from ..study.exhibits import Cell, Exhibit
from ..study.scores import Results, Scores, paired, resampled, shared_seeds
from ..study.trainings import merged
from . import missing
from .picture import Note
from .table import Table
from .values import within

FEWEST = 30  # questions of a group, all data sets together; smaller ones are not shown
CHOICES = ("comparison", "bridge_comparison", "yes_no")
"""Kinds of questions that name what the answer is one of."""


def words_needed(question: Question, dataset: Dataset) -> float:
    """Mean number of words of the question's gold passages."""
    passages = (dataset.corpus.by_id[name] for name in question.gold_ids)
    return float(np.mean([len(passage.text.split()) for passage in passages]))


def by_length(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Question id -> the third in which the length of its gold passages lies."""
    words = {q.id: words_needed(q, d) for d in datasets for q in d.questions if q.gold}
    low, high = np.quantile(list(words.values()), [1 / 3, 2 / 3])

    def third(n: float) -> str:
        if n <= low:
            return f"short: up to {low:.0f} words"
        return f"middle: up to {high:.0f} words" if n <= high else f"long: over {high:.0f} words"

    return {name: third(n) for name, n in sorted(words.items(), key=lambda pair: pair[1])}


def by_subject(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Question id -> what the last gold passage of its chain is about: a person, a film, a club.

    For worlds of the testbed only.
    """
    from ..data.synthworld import world

    found = {}
    for dataset in datasets:
        here = world(str(dataset.card["world"]), int(dataset.card["passages"]))
        for question in dataset.questions:
            last = max(question.gold, key=lambda gold: gold.hop or 0)
            found[question.id] = here.subject_of[last.passage_id].kind
    return _most_first(found)


def by_relation(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Question id -> the last relation that its chain follows."""
    found = {q.id: q.meta["relations"][-1].replace("_", " ") for d in datasets for q in d.questions}
    return _most_first(found)


def by_hops(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Question id -> how many steps it takes, the fewest first."""
    found = sorted((q.hops, q.id) for d in datasets for q in d.questions if q.hops)
    return {name: f"{hops} hop{'s' * (hops > 1)}" for hops, name in found}


def by_steps(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Question id -> one step, several, or a choice, which can be guessed from the question."""
    found = {}
    for question in (q for d in datasets for q in d.questions if q.hops):
        if question.kind in CHOICES:
            found[question.id] = "a choice: one of two, or yes or no"
        else:
            found[question.id] = "one step" if question.hops == 1 else "several steps"
    return _most_first(found)


def _most_first(found: Mapping[str, str]) -> dict[str, str]:
    often = Counter(found.values())
    return dict(sorted(found.items(), key=lambda pair: (-often[pair[1]], pair[1])))


def group_table(
    results: Results,
    exhibit: Exhibit,
    datasets: Mapping[str, Dataset],
    grouped: Callable[[Sequence[Dataset]], Mapping[str, str]],
    pairs: Mapping[str, str],
    *,
    metric: str = "recall",
    what: str,
    name: str = "",
    **wanted: object,
) -> Table | Note:
    """One line a group: each baseline's value, and what the method adds to it.

    datasets: by the name that the cells carry. pairs: method -> its baseline. wanted: what
    picks the cells, as k=4. what: names the groups, as "length of the needed passages".
    """
    exhibit, results = merged(exhibit, results)
    group = grouped(list(datasets.values()))
    cells = [c for c in exhibit.cells() if c.keys["dataset"] in datasets and c.matches(wanted)]
    asked = [c for c in cells if c.keys["method"] in {*pairs, *pairs.values()}]
    body = []
    for one in dict.fromkeys(group.values()):
        ids = {question for question in group if group[question] == one}
        drawn = {m: _drawn(results, cells, m, base, metric, ids) for m, base in pairs.items()}
        if any(d and d[0].n >= FEWEST for d in drawn.values()):
            body.append([one, *_told(drawn, pairs)])
    if not body:
        return missing.note(asked, results)
    labels = {key: row.label for key, row in exhibit.methods.items()}
    head = [what]
    for baseline, methods in _by_baseline(pairs).items():
        head += [labels[baseline], *(f"{labels[method]} adds" for method in methods)]
    caption = f"{metrics.get(metric).symbol} by {what}, {', '.join(datasets)}"
    return Table(head, body, caption, name)


def _by_baseline(pairs: Mapping[str, str]) -> dict[str, list[str]]:
    return {b: [m for m in pairs if pairs[m] == b] for b in dict.fromkeys(pairs.values())}


def _told(
    drawn: Mapping[str, tuple[Resampled, Resampled] | None], pairs: Mapping[str, str]
) -> list[str]:
    """Each baseline's level, then what its methods add; "not run" where nobody has run it."""
    cells = []
    for methods in _by_baseline(pairs).values():
        level = next((drawn[m][0].interval() for m in methods if drawn[m]), None)
        cells.append(within(level, 1, n=True) or NOT_RUN)
        cells += [within(drawn[m] and drawn[m][1].interval(), 1, "+") or NOT_RUN for m in methods]
    return cells


def _drawn(
    results: Results,
    cells: Sequence[Cell],
    method: str,
    baseline: str,
    metric: str,
    ids: set[str],
) -> tuple[Resampled, Resampled] | None:
    """The baseline's level and the method's gain over it, the data sets' questions together."""
    sides = [
        [results.scores(c, metric, lambda line: line["id"] in ids) for c in _of(cells, name)]
        for name in (method, baseline)
    ]
    if not all(any(side) for side in sides):
        return None
    high, low = (_together([s for s in side if s is not None]) for side in sides)
    gain = paired([(high, low)], metric)
    return None if gain is None else (resampled(low, metric), gain)


def _of(cells: Sequence[Cell], method: str) -> list[Cell]:
    return [cell for cell in cells if cell.keys["method"] == method]


def _together(parts: Sequence[Scores]) -> Scores:
    """The data sets' questions as one, of the trainings that all of them have."""
    ids, clusters = ([x for p in parts for x in getattr(p, of)] for of in ("ids", "clusters"))
    seeds = shared_seeds(parts) or []
    each = {seed: np.concatenate([p.by_training[seed] for p in parts]) for seed in seeds}
    values = (
        np.mean([*each.values()], axis=0) if each else np.concatenate([p.values for p in parts])
    )
    first = parts[0]
    return replace(first, ids=tuple(ids), clusters=tuple(clusters), values=values, by_training=each)
