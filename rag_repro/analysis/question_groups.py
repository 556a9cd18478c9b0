"""Questions by what they need: how long their gold passages are, and what these are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from rag_repro.schema import Question
from rag_repro.schema.dataset import Dataset


def by_length(datasets: Sequence[Dataset]) -> dict[str, set[str]]:
    """Third in which the mean length of the gold passages lies, the shortest first -> ids of its
    questions.
    """
    words = {q.id: _words_needed(q, d) for d in datasets for q in d.questions if q.gold}
    low, high = np.quantile(list(words.values()), [1 / 3, 2 / 3])
    ends = {
        f"short: up to {low:.0f} words": (0, low),
        f"middle: up to {high:.0f} words": (low, high),
        f"long: over {high:.0f} words": (high, np.inf),
    }
    return {
        name: {question for question, n in words.items() if least < n <= most}
        for name, (least, most) in ends.items()
    }


def by_subject(datasets: Sequence[Dataset]) -> dict[str, set[str]]:
    """What the last gold passage of the chain is about (a person, a film) -> ids of its questions,
    the largest group first. For worlds of the testbed only.
    """
    from rag_repro.data.synthworld import world

    subjects = {}
    for dataset in datasets:
        made = world(str(dataset.card["world"]), int(dataset.card["passages"]))
        for question in dataset.questions:
            last = max(question.gold, key=lambda gold: gold.hop or 0)
            subjects[question.id] = made.subject_of[last.passage_id].kind
    groups: dict[str, set[str]] = defaultdict(set)
    for question, name in subjects.items():
        groups[name].add(question)
    return dict(sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def _words_needed(question: Question, dataset: Dataset) -> float:
    passages = (dataset.corpus.by_id[name] for name in question.gold_ids)
    return float(np.mean([len(passage.text.split()) for passage in passages]))
