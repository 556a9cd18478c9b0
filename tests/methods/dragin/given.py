"""One decision on given arrays: to check ours against another program's, word by word.

No reader and no retriever: what they would have said is handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_repro.methods.dragin.draft_arrays import Draft, text_of
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings
from rag_repro.methods.dragin.queries import Situation, context_of, plain_query, qfs
from rag_repro.methods.dragin.timing import Scores, decide
from rag_repro.methods.language import ENGLISH, Language


@dataclass(frozen=True, eq=False)
class Decision:
    """triggered: whether to retrieve. kept: the draft's text that stays. hits: the words that
    gave the alarm. query: "" where nothing triggered. scores: RIND's, None for other rules.
    """

    triggered: bool
    kept: str
    hits: tuple[str, ...] = ()
    query: str = ""
    scores: Scores | None = None


def decision(
    tokens: Sequence[str],
    entropy: Sequence[float],
    attention: np.ndarray,
    settings: DynamicSettings,
    *,
    question: str = "",
    said: str = "",
    before: Sequence[str] = (),
    probability: Sequence[float] | None = None,
    context_tokens: Sequence[str] = (),
    context_attention: np.ndarray | None = None,
    settled: int = 0,
    language: Language = ENGLISH,
) -> Decision:
    """What DRAGIN decides on a draft, by the equations or as released (`ReleasedSettings`).

    tokens: n pieces of text that join to the draft (a word's first with the blank before it).
    entropy: (n,), nats. attention: (H, n, m + n) of the last layer, m being the tokens in
    `before` (0 where the draft is read alone). context_tokens, context_attention: of the
    second reading, (H, c, c), where `settings.context` is "again" (its text is
    `qfs.reread`'s). question, said: what else query rules look at, and where they stand in
    `before` the bounds of a context (all of it where the question does not). ValueError:
    shapes that do not fit one another, or no second reading where one is asked for.
    """
    n, m = len(tokens), len(before)
    attention = np.asarray(attention, dtype=float)
    if np.shape(entropy) != (n,) or attention.shape[1:] != (n, m + n):
        raise ValueError(
            f"{n} tokens behind {m} need entropy ({n},) and attention (heads, {n}, {m + n}), "
            f"not {np.shape(entropy)} and {attention.shape}"
        )
    sure = np.ones(n) if probability is None else np.asarray(probability, dtype=float)
    draft = Draft(tuple(tokens), sure, np.asarray(entropy, dtype=float), attention, tuple(before))
    moment, scores = decide(draft, settings, language, settled, "given")
    if moment is None:
        return Decision(False, draft.text, scores=scores)
    now = Situation(question, said, draft, moment, "given")
    if settings.query != "qfs":
        query = plain_query(now, settings, language)
    else:
        read = None
        if settings.context == "again":
            if context_attention is None:
                raise ValueError(
                    "settings.context is 'again': hand in the second reading's attention"
                )
            empty = np.zeros(len(context_tokens))
            looked = np.asarray(context_attention, dtype=float)
            read = Draft(tuple(context_tokens), empty, empty, looked)
        query = qfs(*context_of(now, settings, read), settings, language)
    hit_words = tuple(text_of(tokens, hit) for hit in moment.hits)
    return Decision(True, "".join(tokens[: moment.keep]), hit_words, query, scores)
