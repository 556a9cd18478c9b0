"""Three compressors, and what they share: how a reader is shown what they leave.

What is left stands in the reading prompt as passages of its own, so that any
reading prompt will do; with nothing left the reader is asked without passages.
Without `prompt` no reader answers: what is left is all that the trace tells.

    {"stage": "compress", "by": name, "texts": what is left, "after": its size,
     "before": {passage id: size given}, "kept": {passage id: size left} or None}

`kept` is None where nobody knows from which passage the words are. Sizes are in
characters without white space: not all compressors come with a tokenizer, and
one that drops parts of words leaves nearly as many words as there were.

RECOMP: passages are boiled down, to some of their sentences or to a summary, and then read.

    extractive    keep the n sentences s with the highest cos(E(q), E(s)), in text order
    abstractive   M("Question: q\n Document: d_1 .. d_k\n Summary: "); nothing written means
                  that no document helps, and the question is asked alone
                                            (Xu et al. 2023, sections 2 and 3)

Which of the two stands in R²AG's table 1 the paper does not say; both are here.
As in FlashRAG, n is 5 and a sentence goes without its passage's title; `titled`
heads it with the title, since a sentence that begins with "He" says little alone.

Other here: E is a plain sentence encoder, where the authors fine-tune one by how
much a sentence helps their reader; cosine, where they take the dot product (equal
for unit vectors); M is a reader with an adapter (`recomp-abstractive-testbed`:
taught to write the gold passages' supporting sentences, or nothing), where theirs
is T5-large taught by GPT-3.5's summaries; the blank behind "Summary:" is M's to
write, as its tokenizer has it; nothing is cut at 1,024 tokens.

The trace has one event, as said above, by "extractive" or "abstractive"; extractive adds
"scores", one a sentence in text order.

CRAG as R²AG runs it: judge the passages, keep their best parts, and doubt by adding them whole.

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
event as said above, by "crag", with "decision" and "strips": how many.

LongLLMLingua: passages that make the question likely come first, and unlikely words go.

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
in the new order, then one event as said above, by "long_llmlingua", with
"tokens": [before, after]. `Answer.hits` are in the new order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from rag_repro.engine import Flow
from rag_repro.methods.base import Count, Settings, Share, Within, builtin, fill_or_refuse
from rag_repro.methods.reading import TEXTS, Template, one_line
from rag_repro.methods.sentences import ENGLISH, Sentences
from rag_repro.methods.stages import probabilities_of, read, retrieve
from rag_repro.schema import (
    Encode,
    Generate,
    Generation,
    Hit,
    Passage,
    Prompt,
    Question,
    Read,
    Score,
)


@dataclass(frozen=True)
class CompressorSettings(Settings):
    """k: passages that are compressed together (R²AG's ten)."""

    k: Count = 10
    max_new_tokens: Count = 100

    @property
    def answers(self) -> bool:
        return self.prompt is not None


def left(text: str, rank: int = 1) -> Hit:
    """A text that a compressor made or left over, as a reading prompt takes it: untitled."""
    return Hit(Passage("", "", text), 0.0, rank)


def before(hits: Sequence[Hit]) -> dict[str, str]:
    """Passage id -> text, as most compressors are given it."""
    return {hit.passage.id: hit.passage.text for hit in hits}


def compression_event(
    by: str,
    before: Mapping[str, str],
    shown: Sequence[Hit],
    kept: Mapping[str, str] | None,
    **more: Any,
) -> dict[str, Any]:
    """The event that says what was compressed. before, kept: passage id -> text."""
    texts = [hit.passage.text for hit in shown]
    return {
        "stage": "compress",
        "by": by,
        "texts": texts,
        "after": sum(map(size, texts)),
        "before": {name: size(text) for name, text in before.items()},
        "kept": None if kept is None else {name: size(text) for name, text in kept.items()},
        **more,
    }


def size(text: str) -> int:
    """Characters that are no white space."""
    return len("".join(text.split()))


def read_left(
    question: Question,
    shown: Sequence[Hit],
    found: Sequence[Hit],
    settings: Settings,
    trace: Sequence[Mapping[str, Any]],
) -> Flow:
    """Read what is left. The answer's hits are the passages that were found, not what is left."""
    answer = yield from read(question, shown, settings)
    return replace(answer, hits=tuple(found), trace=(*trace, *answer.trace))


EXTRACTIVE = {"encoder": "minilm", "n_sentences": 5, "titled": False}
ABSTRACTIVE = {"compressor": "recomp-abstractive-testbed", "summary_tokens": 128}

SUMMARY = Template("recomp", **TEXTS["recomp"])
"""What the abstractive compressor is asked, and was taught on; its summary begins with a blank."""


@dataclass(frozen=True)
class RecompSettings(CompressorSettings):
    """How the passages are boiled down. What the other kind needs must be left out.

    kind: "extractive" or "abstractive".
    encoder, n_sentences, titled: of extractive: whose vectors are compared, how many
        sentences stay, and whether a sentence is headed by its passage's title.
    compressor, summary_tokens: of abstractive: the reader that writes the summary, and how
        long it may be (128: what the authors train on; FlashRAG lets it write 512).
    """

    kind: Literal["extractive", "abstractive"] = "extractive"
    encoder: str | None = None
    n_sentences: Count | None = None
    titled: bool | None = None
    compressor: str | None = None
    summary_tokens: Count | None = None

    def __post_init__(self):
        super().__post_init__()
        fill_or_refuse(self, self.kind == "extractive", EXTRACTIVE, f"kind {self.kind!r}")
        fill_or_refuse(self, self.kind == "abstractive", ABSTRACTIVE, f"kind {self.kind!r}")

    @property
    def needs(self) -> Mapping[str, str]:
        if self.kind == "extractive":
            return {**super().needs, self.encoder: "encoder"}
        return {**super().needs, self.compressor: "reader"}


@builtin("recomp", 1, RecompSettings, "Xu et al. 2023; FlashRAG's refiner")
def recomp(question: Question, settings: RecompSettings, sentences: Sentences = ENGLISH) -> Flow:
    """Retrieve, compress, read."""
    hits = yield from retrieve(question, settings)
    if settings.kind == "extractive":
        shown, event = yield from extract(question, hits, settings, sentences)
    else:
        shown, event = yield from summarise(question, hits, settings)
    return (yield from read_left(question, shown, hits, settings, [event]))


def extract(
    question: Question, hits: Sequence[Hit], settings: RecompSettings, sentences: Sentences
):
    """The best sentences of all passages as one text, and the trace's event."""
    found = [(hit.passage, s) for hit in hits for s in sentences.in_text(hit.passage.text)]
    texts = [f"{p.title}: {s}" if settings.titled else s for p, s in found]
    scores = np.zeros(0)
    if texts:
        vectors = yield Encode((question.text, *texts), service=settings.encoder)
        scores = cosines(vectors[0], vectors[1:])
    best = sorted(np.argsort(-scores, kind="stable")[: settings.n_sentences].tolist())
    kept: dict[str, str] = {hit.passage.id: "" for hit in hits}
    for i in best:
        passage, sentence = found[i]
        kept[passage.id] += f"{sentence} "
    shown = [left(" ".join(texts[i] for i in best))] if best else []
    return shown, compression_event(
        "extractive", before(hits), shown, kept, scores=[float(score) for score in scores]
    )


def cosines(query: np.ndarray, others: np.ndarray) -> np.ndarray:
    """float64 (n,): the cosine of query (d,) and each of others (n, d); 0 beside a null vector."""
    one, many = query.astype(np.float64), others.astype(np.float64)
    lengths = np.linalg.norm(many, axis=1) * np.linalg.norm(one)
    return np.divide(many @ one, lengths, out=np.zeros(len(many)), where=lengths > 0)


def summarise(question: Question, hits: Sequence[Hit], settings: RecompSettings):
    """The compressor's summary, if it writes one, and the trace's event."""
    text = ""
    if hits:
        out = yield Generate(
            summary_prompt(question, hits),
            max_new_tokens=settings.summary_tokens,
            service=settings.compressor,
        )
        text = out.text.strip()
    shown = [left(text)] if text else []
    return shown, compression_event("abstractive", before(hits), shown, None)


def summary_prompt(question: Question, hits: Sequence[Hit]) -> Prompt:
    """What the abstractive compressor is asked."""
    return SUMMARY.fill(question, hits)


LEAST_WORDS = 4
"""Of a strip, below which it is not judged and counts 0."""


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
    strip: Count | None = 3
    n_strips: Count = 10
    incorrect: Literal["ambiguous", "nothing"] = "ambiguous"

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.lower <= self.upper <= 1:
            raise ValueError(
                f"lower {self.lower} and upper {self.upper} must be probabilities, lower first"
            )

    @property
    def needs(self) -> Mapping[str, str]:
        return {**super().needs, self.evaluator: "scorer"}


@builtin("crag", 1, CragSettings, "Yan et al. 2024, without its web search (R²AG)")
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
    trace.append(
        compression_event("crag", before(hits), shown, kept, decision=decision, strips=len(best))
    )
    return (yield from read_left(question, shown, hits, settings, trace))


def strips_of(hit: Hit, settings: CragSettings, sentences: Sentences) -> list[tuple[str, str]]:
    """A passage's parts, each with the passage's id."""
    name, text = hit.passage.id, hit.passage.text
    if settings.strip is None:
        return [(name, text)]
    said = sentences.in_text(text)
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


IN_THEM = " We can get the answer to this question in the given documents."
"""What the question is followed by where it ranks the passages."""

LEAST_TARGET = 100
"""Tokens taken for the target of the passages' choice where the rate leaves less than none."""

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
    dynamic_ratio: Share = 0.3
    budget: Annotated[int, Within(0)] = 100
    order: Literal["sort", "original"] = "sort"

    def __post_init__(self):
        super().__post_init__()
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate is {self.rate}; it must lie above 0 and not above 1")

    @property
    def needs(self) -> Mapping[str, str]:
        return {**super().needs, self.compressor: "reader"}


@builtin(
    "long_llmlingua", 1, LongLLMLinguaSettings, "Jiang et al. 2024, section 4; FlashRAG's settings"
)
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
        *(Read(Prompt.from_segments(text), asked, service=by) for text in documents.values()),
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
        Read(Prompt.from_segments(f"{question.text}\n\n"), documents[names[i]], service=by)
        for i in taken
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
    trace.append(compression_event("long_llmlingua", documents, shown, kept, tokens=tokens))
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
