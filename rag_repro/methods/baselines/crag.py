"""CRAG as R²AG runs it: judge the passages, keep their best parts, and doubt by adding them whole.

    s_i = evaluator(q, d_i)
    correct    if any s_i >= upper, else ambiguous if any s_i >= lower, else incorrect
    refined    = the best strips (three sentences each) by evaluator(q, strip), "; " between,
                 in the order of their scores        (Yan et al. 2024, sections 4.2 to 4.4; code)
    correct    reads `refined`
    ambiguous  reads `refined`, then the passages as they were

The original adds to an ambiguous question what a web search finds, and replaces an
incorrect one's passages by it. R²AG has no web: its evaluator "only triggered
{Correct, Ambiguous}", since a relevant document is among those given (its appendix D).
What then stands beside `refined` it does not say; the passages themselves are the least
that another source could add, our choice. Incorrect is counted apart and read as
ambiguous, or (`incorrect: nothing`) without passages, as the original drops them.

As in the code: strips come from all passages whatever their scores, at most ten are
kept, those under four words come last. Other here: the evaluator (T5-large with a value
from -1 to 1 there) is a classifier of the testbed or of public questions that tells a
probability, so the thresholds for PopQA, 0.592 and -0.995, become (1 + s) / 2; sentences
end by the splitter that is handed in, where the code cuts at ". " and "?".

The trace: {"stage": "evaluate", "passage": id, "relevant": s_i} one a passage, then one
event as `methods.compressing` says, by "crag", with "decision" and "strips": how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...engine import Flow
from ...schema import Hit, Question, Score
from ..base import MethodSpec, one_of
from ..compressing import (
    CompressorSettings,
    at_least_one,
    before,
    left,
    read_left,
    told,
)
from ..sentences import ENGLISH, Sentences
from ..stages import probabilities_of, retrieve

LEAST_WORDS = 4
"""Of a strip, below which it is not judged and counts 0."""

DOUBTFUL = ("ambiguous", "nothing")


@dataclass(frozen=True)
class CragSettings(CompressorSettings):
    """Who judges, how strictly, and what is kept.

    evaluator: the scorer's name; its items are (question, passage), texts without titles.
    upper, lower: thresholds of "correct" and "ambiguous", probabilities.
    strip: sentences a strip; None: a passage is one strip.
    n_strips: how many of them stay, at most.
    incorrect: what is read where all passages lie below `lower`: as "ambiguous", or "nothing".
    """

    evaluator: str = "crag-evaluator-testbed"
    upper: float = 0.796
    lower: float = 0.0025
    strip: int | None = 3
    n_strips: int = 10
    incorrect: str = "ambiguous"

    def __post_init__(self):
        super().__post_init__()
        at_least_one(self, "strip", "n_strips")
        one_of("incorrect", self.incorrect, DOUBTFUL)
        if not 0 <= self.lower <= self.upper <= 1:
            raise ValueError(
                f"lower {self.lower} and upper {self.upper} must be probabilities, lower first"
            )

    @property
    def needs(self) -> Mapping[str, str]:
        return {**super().needs, self.evaluator: "scorer"}


def crag(question: Question, settings: CragSettings, sentences: Sentences = ENGLISH) -> Flow:
    """Retrieve, judge, refine, read."""
    hits = yield from retrieve(question, settings)
    strips = [s for hit in hits for s in strips_of(hit, settings, sentences)]
    relevant, worth = yield from _judge(question, hits, strips, settings)
    decision = decide(relevant, settings)
    trace = [
        {"stage": "evaluate", "passage": hit.passage.id, "relevant": p}
        for hit, p in zip(hits, relevant, strict=True)
    ]
    best = sorted(zip(worth, strips, strict=True), key=lambda pair: -pair[0])[: settings.n_strips]
    kept = {hit.passage.id: "" for hit in hits}
    for _, (name, strip) in best:
        kept[name] += f"{strip} "
    shown = [left("; ".join(strip for _, (_, strip) in best))] if best else []
    if decision == "incorrect" and settings.incorrect == "nothing":
        best, shown, kept = [], [], dict.fromkeys(kept, "")
    elif decision != "correct":
        shown, kept = [*shown, *hits], before(hits)
    trace.append(told("crag", before(hits), shown, kept, decision=decision, strips=len(best)))
    return (yield from read_left(question, shown, hits, settings, trace))


def strips_of(hit: Hit, settings: CragSettings, sentences: Sentences) -> list[tuple[str, str]]:
    """A passage's parts, each with the passage's id."""
    name, text = hit.passage.id, hit.passage.text
    if settings.strip is None:
        return [(name, text)]
    said = sentences.of(text)
    starts = range(0, len(said), settings.strip)
    return [(name, " ".join(said[i : i + settings.strip])) for i in starts]


def _judge(
    question: Question,
    hits: Sequence[Hit],
    strips: Sequence[tuple[str, str]],
    settings: CragSettings,
):
    """The evaluator's probabilities of the passages, and of the strips (0 for short ones)."""
    long = [i for i, (_, strip) in enumerate(strips) if len(strip.split()) >= LEAST_WORDS]
    whole = tuple((question.text, hit.passage.text) for hit in hits)
    parts = tuple((question.text, strips[i][1]) for i in long)
    scores = yield [Score(items, service=settings.evaluator) for items in (whole, parts)]
    relevant, found = (
        probabilities_of(given, items, settings.evaluator, what)
        for given, items, what in zip(scores, (whole, parts), ("passages", "strips"), strict=True)
    )
    worth = [0.0] * len(strips)
    for i, p in zip(long, found, strict=True):
        worth[i] = p
    return relevant, worth


def decide(relevant: Sequence[float], settings: CragSettings) -> str:
    """By the best passage: "correct", "ambiguous" or "incorrect" (also without any passage)."""
    best = max(relevant, default=-1.0)
    if best >= settings.upper:
        return "correct"
    return "ambiguous" if best >= settings.lower else "incorrect"


CRAG = MethodSpec("crag", 1, crag, CragSettings, "Yan et al. 2024, without its web search (R²AG)")
