"""When to retrieve: the rules of DRAGIN's table 1, and controls.

Each looks at a draft and says where it breaks off, or that it stands. FL-RAG and FS-RAG
break off behind what is written, so that a search follows every window and every sentence;
FLARE writes a doubtful sentence again; RIND cuts where the reader needs help.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ..language import Language
from .draft import Draft, text_of
from .rind import Moment, Scores, rind, sentences_of
from .settings import FACTORS, DynamicSettings

ONE_SENTENCE = ("flare", "sentence")
"""Rules that write, and judge, a sentence at a time."""


def decide(
    draft: Draft, settings: DynamicSettings, language: Language, settled: int, place: str
) -> tuple[Moment | None, Scores | None]:
    """Where the draft breaks off (None: it stands), and RIND's scores if it was asked.

    settled: the draft's first tokens, for which passages were just fetched: no alarm there.
    place: names the question and the draft, for the rule that goes by chance.
    """
    if settings.timing == "rind":
        return rind(draft, settings, language, settled)
    if settings.timing == "flare":
        return flare(draft, settings, language, settled), None
    if settings.timing == "random":
        return by_chance(draft, settings, language, settled, place), None
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
    draft: Draft, settings: DynamicSettings, language: Language, settled: int, place: str
) -> Moment | None:
    """A control: each token may give the alarm, at a rate, whatever it is."""
    drawn = np.flatnonzero(chance(settings, place).random(len(draft)) < settings.rate)
    drawn = drawn[drawn >= settled]
    if not len(drawn):
        return None
    hit = int(drawn[0])
    spans = [s.units for s in sentences_of(draft, draft.tokens, language)]
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
