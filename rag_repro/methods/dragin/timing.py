"""When to retrieve: the rules of DRAGIN's table 1, and controls.

Each looks at a draft and says where it breaks off, or that it stands. FL-RAG and FS-RAG
break off behind what is written, so that a search follows every window and every sentence;
FLARE writes a doubtful sentence again; RIND cuts where the reader needs help.

RIND is DRAGIN's section 3.1, and what its released code computes instead:

    H_i      = -sum_v p_i(v) log p_i(v)          (1)   entropy, from the reader's trace
    A        = softmax(mask(Q K^T / sqrt(d_k)))  (2)   attention, from the reader's trace
    a_max(i) = max_{j > i} A_{j,i}               (3)   `influence`
    s_i      = 0 where t_i is a stop word        (4)   `meaning`
    S(t_i)   = H_i a_max(i) s_i                  (5)   `scores`

The first token whose score is above the threshold is where the reader needs help.
What the paper leaves open, and each thing that the released code does otherwise,
is a setting (`settings.Rind`); the defaults are the equations.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_repro.methods.dragin.draft_arrays import (
    Draft,
    Span,
    text_of,
    tokens_before,
    windows,
    words_of,
)
from rag_repro.methods.dragin.dynamic_settings import FACTORS, DynamicSettings, Rind
from rag_repro.methods.language import Language


@dataclass(frozen=True)
class Sentence:
    """A sentence of a draft: its text, the token with which it begins, and its units.

    The units, first..last-1, are found by their text (`draft.windows`) and can be none.
    """

    text: str
    begins: int
    units: Span


@dataclass(frozen=True, eq=False)
class Scores:
    """Every unit's (a token's, or a word's) part in the decision; arrays of (u,).

    units: their tokens. surprise: 1 - p, which no equation of the paper's has.
    """

    units: tuple[Span, ...]
    entropy: np.ndarray
    attention: np.ndarray
    meaning: np.ndarray
    surprise: np.ndarray
    score: np.ndarray
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Moment:
    """Where a draft breaks off: its first `keep` tokens stay.

    hits: the tokens of the words that gave the alarm. sentence: the tokens of the
    sentence that they stand in.
    """

    keep: int
    hits: tuple[Span, ...]
    sentence: Span


def influence(attention: np.ndarray, heads: str = "mean", own_row: bool = False) -> np.ndarray:
    """a_max (equation 3): the most that a later token looks at each, (n,).

    attention: (H, n, m + n), of which the last n columns are the tokens themselves.
    Nothing comes after the last token, whose maximum over nothing is 0. heads: "mean"
    of the heads before the maximum, "max" over them, "mean_of_max" after it. own_row:
    with j >= i, so that what a token gives itself counts.
    """
    n = attention.shape[1]
    among = attention[:, :, attention.shape[2] - n :]  # (H, n, n): row j looks at column i
    looks = np.where(np.tril(np.ones((n, n), dtype=bool), 0 if own_row else -1), among, 0)
    if heads == "mean":
        return looks.mean(0).max(0, initial=0)
    if heads == "max":
        return looks.max((0, 1), initial=0)
    return looks.max(1, initial=0).mean(0)


def meaning(
    draft: Draft,
    units: Sequence[Span],
    sentences: Sequence[Sentence],
    rule: str,
    language: Language,
) -> np.ndarray:
    """s (equation 4), (u,): 0 for units without meaning, else 1.

    A token counts as the word that it is a part of. rule: "stop_words": no bare word of
    the language's list; "content": units that contain, as text, a word of content of
    their sentence.
    """
    words = words_of(draft.pieces)
    whole = [next(w for w in words if w[0] <= first < w[1]) for first, _ in units]
    texts = [text_of(draft.pieces, word) for word in whole]
    if rule == "stop_words":
        return np.array([not language.is_stop(bare(text)) for text in texts], dtype=float)
    made = np.zeros(len(units))
    for sentence in sentences:
        content = language.content(sentence.text)
        mine = slice(*sentence.units)
        made[mine] = [any(word in text for word in content) for text in texts[mine]]
    return made


def bare(word: str) -> str:
    """A word without the punctuation around it."""
    kept = [i for i, c in enumerate(word) if c.isalnum()]
    return word[kept[0] : kept[-1] + 1] if kept else word


def scores(draft: Draft, settings: Rind, language: Language) -> Scores:
    """Equation 5 for each unit of a draft. ValueError: the draft has no attention."""
    if draft.attention is None:
        raise ValueError("RIND needs a draft with attention: generate it with trace=True")
    words = words_of(draft.pieces)
    units = words if settings.unit == "word" else draft.tokens
    a_max = influence(draft.attention, settings.heads, settings.own_row)
    entropy = np.array([draft.entropy[a:b].mean() for a, b in units])
    attention = np.array([a_max[a:b].sum() for a, b in units])
    surprise = np.array([1 - draft.probability[a:b].min() for a, b in units])
    sentences = sentences_of(draft, units, language)
    means = meaning(draft, units, sentences, settings.meaning, language)
    if settings.normalise:
        for a, b in (sentence.units for sentence in sentences):
            if total := attention[a:b].sum():
                attention[a:b] *= (b - a) / total
    factors = {"entropy": entropy, "attention": attention, "surprise": surprise}
    score = np.ones(len(units))
    for name in settings.factors:
        if name in factors:
            score = score * factors[name]
        elif settings.gate == "score":
            score = score * means
    return Scores(units, entropy, attention, means, surprise, score, sentences)


def sentences_of(draft: Draft, units: Sequence[Span], language: Language) -> tuple[Sentence, ...]:
    """A draft's sentences, with their tokens or words."""
    words = words_of(draft.pieces)
    spans = language.sentences(draft.text)
    texts = [draft.text[a:b] for a, b in spans]
    firsts = [first for first, _ in units]
    ends = [first for first, _ in words] + [len(draft)]
    found = windows([text_of(draft.pieces, word) for word in words], texts)
    return tuple(
        Sentence(
            text,
            tokens_before(draft.pieces, start),
            (bisect_left(firsts, ends[a]), bisect_left(firsts, ends[b])),
        )
        for (start, _), text, (a, b) in zip(spans, texts, found, strict=True)
    )


def rind(
    draft: Draft, settings: Rind, language: Language, settled: int = 0
) -> tuple[Moment | None, Scores]:
    """When to retrieve -> the moment, None where no unit is above the threshold.

    settled: the draft's first tokens, which passages were just fetched for: no alarm there.
    """
    told = scores(draft, settings, language)
    over = (told.score > settings.threshold) & np.array(
        [first >= settled for first, _ in told.units], dtype=bool
    )
    for sentence in told.sentences:
        a, b = sentence.units
        inside = [u for u in range(a, b) if over[u]]
        if not inside:
            continue
        first = inside[0]
        hits = inside if settings.pooled else inside[:1]
        if settings.gate == "after":
            hits = [u for u in hits if told.meaning[u]]
        keep = told.units[(hits or [first])[0]][0]
        if settings.cut == "sentence":
            keep = sentence.begins
        tokens = (told.units[a][0], told.units[b - 1][1])
        return Moment(keep, tuple(told.units[u] for u in hits), tokens), told
    return None, told


ONE_SENTENCE = ("flare", "sentence")
"""Rules that write, and judge, a sentence at a time."""


def decide(
    draft: Draft,
    settings: DynamicSettings,
    language: Language,
    settled: int,
    place: str,
    begins: bool = False,
) -> tuple[Moment | None, Scores | None]:
    """Where the draft breaks off (None: it stands), and RIND's scores if it was asked.

    settled: the draft's first tokens, for which passages were just fetched: no alarm there.
    place: names the question and the draft, for rules that go by chance. begins: nothing is
    written yet, and nothing was searched for.
    """
    if settings.timing == "rind":
        return rind(draft, settings, language, settled)
    if settings.timing == "flare":
        return flare(draft, settings, language, settled), None
    if settings.timing in ("random", "random_early"):
        early = begins and settings.timing == "random_early"
        return by_chance(draft, settings, language, settled, place, early), None
    whole = (0, len(draft))
    return (Moment(len(draft), (), whole) if settings.timing != "never" else None), None


def flare(
    draft: Draft, settings: DynamicSettings, language: Language, settled: int
) -> Moment | None:
    """The first sentence with doubt: any token's p up to `doubt`, or the mean's (D16).

    Its hits are the tokens that leave FLARE's query; for QFS, which asks what a hit needs to
    know, the one that gave the alarm: of the mean, the most doubtful.
    """
    for first, last in (s.units for s in sentences_of(draft, draft.tokens, language)):
        if last == first:
            continue
        p = draft.probability[first:last]
        doubt = p.min() if settings.doubt_of == "token" else p.mean()
        if doubt <= settings.doubt and last > settled:
            if settings.query == "qfs":
                by_token = settings.doubt_of == "token"
                hit = first + int((p <= settings.doubt).argmax() if by_token else p.argmin())
                hits = ((hit, hit + 1),)
            else:
                hits = tuple(t for t in draft.tokens[first:last] if doubtful(draft, t[0], settings))
            return Moment(first, hits, (first, last))
    return None


def doubtful(draft: Draft, token: int, settings: DynamicSettings) -> bool:
    """Whether a token leaves FLARE's query."""
    return bool(draft.probability[token] <= settings.mask)


def by_chance(
    draft: Draft,
    settings: DynamicSettings,
    language: Language,
    settled: int,
    place: str,
    early: bool = False,
) -> Moment | None:
    """A control: each token may give the alarm, at a rate, whatever it is.

    early: one token of the first sentence does at any rate.
    """
    luck = chance(settings, place)
    drawn = np.flatnonzero(luck.random(len(draft)) < settings.rate)
    drawn = drawn[drawn >= settled]
    spans = [s.units for s in sentences_of(draft, draft.tokens, language)]
    hit = int(drawn[0]) if len(drawn) else len(draft)
    if early:
        first, end = next((span for span in spans if span[0] < span[1]), (0, 0))
        if first < end <= hit:
            hit = int(luck.integers(first, end))
    if hit == len(draft):
        return None
    sentence = next((span for span in spans if span[0] <= hit < span[1]), (0, len(draft)))
    return Moment(hit, ((hit, hit + 1),), sentence)


def chance(settings: DynamicSettings, place: str) -> np.random.Generator:
    """The same luck for the same question and draft, whatever is answered beside it."""
    digest = hashlib.sha256(f"{settings.seed} {place}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def event(draft: Draft, moment: Moment | None, told: Scores | None) -> dict[str, Any]:
    """A decision as plain data: every unit's text and values, what gave the alarm, the cut.

    Units are RIND's where it was asked, else tokens. alarm: units, by number, with a hit.
    sentence: tokens of the one with the alarm.
    """
    units = told.units if told is not None else draft.tokens
    hits = () if moment is None else moment.hits
    keep = len(draft) if moment is None else moment.keep
    made: dict[str, Any] = {"stage": "decide", "text": draft.text}
    made["words"] = [text_of(draft.pieces, unit) for unit in units]
    if told is not None:
        for name in (*FACTORS, "score"):
            made[name] = [round(float(x), 4) for x in getattr(told, name)]
    elif len(draft):
        made["probability"] = [round(float(x), 4) for x in draft.probability]
    made["keep"] = keep
    made["kept"] = "".join(draft.pieces[:keep])
    made["hits"] = [text_of(draft.pieces, hit) for hit in hits]
    made["sentence"] = [] if moment is None else list(moment.sentence)
    made["alarm"] = [i for i, (a, b) in enumerate(units) if any(a <= hit < b for hit, _ in hits)]
    return made
