"""Bootstrap intervals from counts that are kept, against units drawn anew for each mean.

A page asks for thousands of intervals over the same questions, each with a generator begun anew,
so that all of them draw the same questions. One side draws them for each mean and adds up their
scores, as is plain; the other is the package's, which keeps how often each is drawn. Half of the
scores are 0 or 1, half lie between; the sets have `--questions` questions each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks import timing
from rag_repro.evaluation import bootstrap_draws
from rag_repro.evaluation.resampling import DRAWS, new_generator, resample

KEPT, ANEW = "counts kept", "drawn anew"


def main(argv: Sequence[str] | None = None) -> None:
    parser = timing.parser(__doc__.splitlines()[0], questions=300, repeats=5, reads=False)
    parser.add_argument("--means", type=int, default=40, help="of each turn (%(default)s)")
    given = parser.parse_args(argv)
    scores = drawn_scores(given.means, given.questions)
    sides = {ANEW: partial(anew, scores), KEPT: partial(kept, scores)}
    times, found = timing.interleave(sides, given.repeats)
    facts = {
        "benchmark": "bootstrap",
        **timing.ratio(times[ANEW], times[KEPT]),
        "equal_draws": bool(np.allclose(found[ANEW], found[KEPT], rtol=0, atol=1e-9)),
        "means": given.means,
        "questions": given.questions,
        "draws": DRAWS,
        "repeats": given.repeats,
        **timing.machine("numpy"),
    }
    goals = [f"{facts['ratio']} times the means a second, equal draws: {facts['equal_draws']}"]
    title = f"seconds for {given.means} means of {given.questions} questions, {DRAWS:,} draws each"
    timing.show(title, facts, times, as_json=given.json, goals=goals)


def drawn_scores(means: int, questions: int) -> np.ndarray:
    """(means, questions): 0 or 1 in every other row, between them in the rest."""
    scores = np.random.default_rng(0).random((means, questions))
    scores[::2] = scores[::2].round()
    return scores


def anew(scores: np.ndarray) -> np.ndarray:
    """(means, DRAWS) of the plain way, widened for few questions as the package's."""
    return np.stack([_plain(row) for row in scores])


def _plain(row: np.ndarray) -> np.ndarray:
    n, rng = len(row), new_generator()
    step = max(1, bootstrap_draws.CHUNK // n)
    parts = [
        row[rng.integers(0, n, size=(min(step, DRAWS - start), n))].mean(1)
        for start in range(0, DRAWS, step)
    ]
    return row.mean() + (np.concatenate(parts) - row.mean()) * np.sqrt(n / (n - 1))


def kept(scores: np.ndarray) -> np.ndarray:
    """(means, DRAWS) of the package, whose counts are drawn once a turn."""
    bootstrap_draws._kept.cache_clear()
    return np.stack([resample(row, rng=new_generator()).draws for row in scores])


if __name__ == "__main__":
    main()
