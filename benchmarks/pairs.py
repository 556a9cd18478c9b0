"""What judging pairs costs, against the reader's call that it comes before.

DR-RAG's classifier judges pairs of a question's passages; then a reader answers
once, from the passages kept. `ratio` is how many times longer that call takes than
judging all pairs of its passages (15 of six), all at batch 1. `ms_alone` and `ms_batched`
are milliseconds a pair, asked one by one and all at once. Nothing is kept from turn to
turn: a classifier over similarities encodes its texts anew, which a run with a call
cache does once a passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks import timing
from rag_repro import data
from rag_repro.lm.load import Loaded
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Generate

ALONE, BATCHED, READER = "pairs, one by one", "pairs, all at once", "reader, one call"


@dataclass(frozen=True)
class Work:
    """One question's share: the pairs judged for it, and the reader's call after it."""

    items: tuple[tuple[str, str, str], ...]
    call: Generate


def main(
    argv: Sequence[str] | None = None, loaded: Loaded | None = None, scorer: Any = None
) -> None:
    """loaded, scorer: a model and a classifier instead of those that the options name."""
    from rag_repro.lm.local import LocalReader

    parser = timing.parser(__doc__.splitlines()[0], questions=8, repeats=3, k=6, new_tokens=32)
    parser.add_argument("--classifier", default="drrag-classifier-testbed", help="(%(default)s)")
    given = parser.parse_args(argv)
    if given.k < 2:
        raise ValueError(f"k is {given.k}; a pair needs at least 2 passages")
    if scorer is None:
        scorer = classifier(given.classifier)
    loaded = loaded or timing.weights(given.reader, given.device)
    reader = LocalReader(loaded, batch_size=1)
    work = asked(given.questions, given.k, given.new_tokens)
    times, results = timing.interleave(
        {
            ALONE: lambda: [scorer.score([item])[0] for w in work for item in w.items],
            BATCHED: lambda: scorer.score([item for w in work for item in w.items]),
            READER: lambda: [answered(reader, w.call) for w in work],
        },
        given.repeats,
    )
    pairs = sum(len(w.items) for w in work)
    facts = {
        "benchmark": "pairs",
        **timing.ratio(times[READER], times[ALONE]),
        "ms_alone": round(1000 * median(times[ALONE].wall) / pairs, 3),
        "ms_batched": round(1000 * median(times[BATCHED].wall) / pairs, 3),
        "ms_reader": round(1000 * median(times[READER].wall) / len(work), 1),
        "largest_difference": float(
            np.abs(np.array(results[ALONE]) - np.array(results[BATCHED])).max()
        ),
        "questions": given.questions,
        "repeats": given.repeats,
        "pairs_a_question": pairs / len(work),
        "prompt_tokens": round(mean(made.prompt_tokens for made in results[READER]), 1),
        "new_tokens": round(mean(len(made.tokens) for made in results[READER]), 1),
        "classifier": scorer.name,
        **timing.setting(loaded),
    }
    goals = [
        f"a pair: {facts['ms_alone']} ms alone, {facts['ms_batched']} ms in a batch "
        f"(probabilities differ by at most {facts['largest_difference']:.1e})",
        f"one reader call takes {facts['ratio']} times as long as judging "
        f"{facts['pairs_a_question']:g} pairs one by one "
        f"({facts['ratio_cpu']} by processor time)",
    ]
    title = f"seconds for {given.questions} questions of {facts['pairs_a_question']:g} pairs"
    timing.show(title, facts, times, as_json=given.json, goals=goals)


def classifier(name: str) -> Any:
    """A trained classifier that keeps nothing, by the name that conditions use.

    Raises ValueError with the command that trains it.
    """
    from rag_repro.lm import hub
    from rag_repro.lm.load import SentenceEncoder
    from rag_repro.lm.pair_scorers import PairClassifier, SimilarityClassifier
    from rag_repro.study.names import SCORERS, train_command

    if name not in hub.artifacts() and (command := train_command(name, SCORERS)):
        raise ValueError(f"the classifier {name!r} is not trained on this machine: {command}")
    weights = hub.resolve(name)
    if weights.base is not None and hub.task_of(weights.path) == "similarities":
        return SimilarityClassifier(weights, SentenceEncoder(weights.base))
    return PairClassifier(weights)


def asked(n: int, k: int, new: int) -> list[Work]:
    """Questions of the testbed, each with all pairs of its k best passages, and its prompt."""
    from rag_repro.retrieval import BM25

    dataset = data.load("world-B")
    questions = timing.first(dataset, n)
    found = BM25(dataset.corpus).search([question.text for question in questions], k)
    return [
        Work(
            tuple(
                (question.text, a.passage.text, b.passage.text) for a, b in combinations(hits, 2)
            ),
            Generate(PROMPTS["drrag"].fill(question, hits), new),
        )
        for question, hits in zip(questions, found, strict=True)
    ]


def answered(reader: Any, call: Generate) -> Any:
    """One answer from a reader that remembers nothing."""
    reader.forget()
    return reader.generate([call])[0]


if __name__ == "__main__":
    main()
