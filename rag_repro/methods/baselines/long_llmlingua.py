"""LongLLMLingua: passages that make the question likely come first, and unlikely words go.

    r_i = perplexity of (q + a sentence that says the answer is in the documents) given d_i
    in the order of r, lowest first, take d_i until their tokens exceed target + budget
    target = rate (|q| + sum |d|) - |q|
    share kept of the j-th of N taken = target / sum |d taken| + dynamic (N - 1 - 2j) / (N - 1)
    of each, keep the tokens t with the highest log p(t | q, d_<t) - log p(t | d_<t)
                            (Jiang et al. 2024, section 4; llmlingua's code; FlashRAG's settings)

All probabilities are a small reader's, over given texts (`Read`): 2 k passes at once,
then one for each passage taken. The kept text is made of that reader's own tokens.

Other here: each passage is read by itself, where the original reads the passages as one
text, 200 tokens at a time, behind what it has kept so far; so no passage's words depend
on the other passages, but for the share. The original's code keeps a token by its
*successor's* value (one place off) and one token fewer than the share; here a token is
kept by its own value, as the paper has it. A passage's first token, which nothing
foretells, stays as long as any does. A rate of 1 keeps all, whatever the dynamic ratio.
Passages stand as R²AG writes them, "(Title: t) text"; FlashRAG adds their number, which
would make their order part of their text. No recovery of words in the answer.

The trace: {"stage": "rank", "passage": id, "perplexity": .., "tokens": |d|} one a passage
in the new order, then one event as `methods.compressing` says, by "long_llmlingua", with
"tokens": [before, after]. `Answer.hits` are in the new order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...engine import Flow
from ...schema import Generation, Hit, Prompt, Question, Read
from ..base import MethodSpec, one_of
from ..compressing import CompressorSettings, left, read_left, told
from ..reading import one_line
from ..stages import retrieve

IN_THEM = " We can get the answer to this question in the given documents."
"""What the question is followed by where it ranks the passages."""

LEAST_TARGET = 100
"""Tokens taken for the target of the passages' choice where the rate leaves less than none."""

ORDERS = ("sort", "original")
_TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class LongLLMLinguaSettings(CompressorSettings):
    """How much stays, and who says so; the defaults are FlashRAG's.

    compressor: the small reader's name.
    rate: tokens that stay, as a share, the question's among them (from above 0 to 1).
    dynamic_ratio: by how much the first passage's share is larger, the last one's smaller.
    budget: tokens beyond the target up to which passages are taken ("+100").
    order: the passages' in the prompt, "sort" by perplexity or the "original" one.
    """

    compressor: str = "smollm2-135m"
    rate: float = 0.55
    dynamic_ratio: float = 0.3
    budget: int = 100
    order: str = "sort"

    def __post_init__(self):
        super().__post_init__()
        one_of("order", self.order, ORDERS)
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate is {self.rate}; it must lie above 0 and not above 1")
        if not 0 <= self.dynamic_ratio <= 1:
            raise ValueError(f"dynamic_ratio is {self.dynamic_ratio}; it lies between 0 and 1")
        if self.budget < 0:
            raise ValueError(f"budget is {self.budget}; it cannot be negative")

    @property
    def needs(self) -> Mapping[str, str]:
        return {**super().needs, self.compressor: "reader"}


def long_llmlingua(question: Question, settings: LongLLMLinguaSettings) -> Flow:
    """Retrieve, rank by perplexity, drop passages and then words, read."""
    hits = yield from retrieve(question, settings)
    documents = {
        hit.passage.id: f"(Title: {one_line(hit.passage.title)}) {one_line(hit.passage.text)}"
        for hit in hits
    }
    by = settings.compressor
    asked = f"{question.text}{IN_THEM}"
    outs = yield [
        *(Read(Prompt.of(text), asked, service=by) for text in documents.values()),
        *(Read(None, text, service=by) for text in documents.values()),
    ]
    given, alone = outs[: len(hits)], outs[len(hits) :]
    lengths = [len(out.tokens) for out in alone]
    losses = [float(-log_probability(out).mean()) for out in given]
    ranking = sorted(range(len(hits)), key=lambda i: losses[i])
    n_question = sum(at < len(question.text) for at in given[0].offsets) if given else 0
    target = settings.rate * (n_question + sum(lengths)) - n_question
    taken = within_budget(ranking, lengths, target, settings)
    shares = shares_of([lengths[i] for i in taken], target, settings)
    names = list(documents)
    beside = yield [
        Read(Prompt.of(f"{question.text}\n\n"), documents[names[i]], service=by) for i in taken
    ]
    kept, n_kept = dict.fromkeys(names, ""), 0
    for i, share, out in zip(taken, shares, beside, strict=True):
        places = best_tokens(alone[i], out, share)
        kept[names[i]] = "".join(out.pieces[at] for at in places).strip()
        n_kept += len(places)
    order = taken if settings.order == "sort" else sorted(taken)
    texts = [kept[names[i]] for i in order if kept[names[i]]]
    shown = [left(text, rank) for rank, text in enumerate(texts, start=1)]
    trace = [
        {
            "stage": "rank",
            "passage": names[i],
            "perplexity": float(np.exp(losses[i])),
            "tokens": lengths[i],
        }
        for i in ranking
    ]
    tokens = [sum(lengths), n_kept]
    trace.append(told("long_llmlingua", documents, shown, kept, tokens=tokens))
    found: list[Hit] = [hits[i] for i in ranking]
    return (yield from read_left(question, shown, found, settings, trace))


def within_budget(
    ranking: Sequence[int], lengths: Sequence[int], target: float, settings: LongLLMLinguaSettings
) -> list[int]:
    """The first passages of the ranking, up to the one that oversteps the budget, it included."""
    room = (target if target >= 0 else LEAST_TARGET) + settings.budget
    taken = []
    for i in ranking:
        taken.append(i)
        room -= lengths[i]
        if room < 0:
            break
    return taken


def shares_of(
    lengths: Sequence[int], target: float, settings: LongLLMLinguaSettings
) -> list[float]:
    """The share of each taken passage's tokens that stays. lengths: theirs, by rank."""
    n = len(lengths)
    if settings.rate == 1:
        return [1.0] * n
    whole = target / sum(lengths) if n else 0.0
    step = settings.dynamic_ratio / (n - 1) if n > 1 else 0.0
    return [min(1.0, max(0.0, whole + step * (n - 1 - 2 * j))) for j in range(n)]


def best_tokens(alone: Generation, beside: Generation, share: float) -> list[int]:
    """Places of a passage's tokens that the question makes most likely, in text order.

    alone, beside: the same text, read without and with the question. Of equal ones
    the earlier stays.
    """
    gain = log_probability(beside) - log_probability(alone)
    gain[:1] = np.inf
    n = int(len(gain) * share + 1e-9)  # 0.29 of 100 are 29
    return sorted(np.argsort(-gain, kind="stable")[:n].tolist())


def log_probability(out: Generation) -> np.ndarray:
    """float64 (tokens,): of a text that was read; an impossible token has the least of all."""
    return np.log(np.maximum(out.trace.probability, _TINY, dtype=np.float64))


LONG_LLMLINGUA = MethodSpec(
    "long_llmlingua",
    1,
    long_llmlingua,
    LongLLMLinguaSettings,
    "Jiang et al. 2024, section 4; FlashRAG's settings",
)
