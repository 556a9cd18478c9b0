"""R²AG: before each passage stands an embedding of what the retriever knows of the list.

    D = the k best passages, in the retriever's order                       (section 3.1)
    input_i = r_i, gamma_i, zeta_i                                          (equations 10 to 12)
    E^R = R²-Former(input)                                                  (equations 2, 3)
    answer = Reader(question, e^R_1 d_1, ..., e^R_k d_k)                    (equations 5, 6)

The R²-Former belongs to the reader that was trained with it (`lm.former`): here its
features are placed, and nothing more is known of it.

Beside the paper's features stand the controls that it lacks, each of which has a
former of its own, trained alike, and can be asked of another's too (what does a former
make of features that are another passage's?):

    shuffled    the rows change places between the passages, by chance (the question's id)
    constant    every entry is 1
    gold        1 for a gold passage, 0 for another: features that know the answer's place
    free        none: the learnable tokens of figure 3 look at no feature

And for a retriever without vectors (the paper's limitation on sparse ones):

    scores      its own score of each passage, in shares of the list's best one; r alone, for
                gamma and zeta compare passages, and there is nothing to compare them by

BM25's scores grow with the number of a question's words, so that their shares, and not they
themselves, are of one measure from question to question, as cosines are.

The trace:

    {"stage": "features", "inputs": .., "passages": ids, "columns": .., "rows": a list a passage}
    {"stage": "exchange", "passages": [id, id], or [] where it could not be}    with `exchange`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

import numpy as np

from rag_repro.engine import Flow
from rag_repro.methods.base import Count, Settings, builtin, one_of
from rag_repro.methods.r2ag.features import COLUMNS, features
from rag_repro.methods.reading import PROMPTS
from rag_repro.methods.stages import read, retrieve
from rag_repro.retrieval.interface import passage_text
from rag_repro.schema import Encode, Hit, Question, Soft

SOFT = "r2ag"
"""The name by which soft segments call the reader's former."""

ENCODED = ("features", "shuffled")


@dataclass(frozen=True)
class R2AGSettings(Settings):
    """What the former is told, and by whom.

    encoder: the service whose vectors the features are of; none where there are none.
    columns: which features there are; one left out is no column at all, since a column of
        noughts is something that a former can learn from.
    exchange: the embeddings of the first gold passage and of the first other one change
        places (r2ag.c32: does the answer follow?).
    """

    k: Count = 10
    prompt: str | None = "r2ag"
    max_new_tokens: Count = 100
    encoder: str | None = "minilm"
    inputs: Literal["features", "shuffled", "constant", "gold", "free", "scores"] = "features"
    columns: Sequence[str] = COLUMNS
    similarity: Literal["cosine", "dot"] = "cosine"
    exchange: bool = False

    def __post_init__(self):
        super().__post_init__()
        for column in self.columns:
            one_of("a column", column, COLUMNS)
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise ValueError(f"columns are {list(self.columns)}; name one or more, each once")
        if self.inputs == "scores" and tuple(self.columns) != COLUMNS[:1]:
            raise ValueError(
                f"inputs 'scores' are {COLUMNS[0]} alone, since a score compares no two passages; "
                f"say columns: [{COLUMNS[0]}]"
            )
        self._check_prompt()
        if self.inputs not in ENCODED:
            if self.similarity != "cosine":
                raise ValueError(
                    f"similarity {self.similarity!r} would do nothing with inputs {self.inputs!r}"
                )
            # The name of what is not asked must not make it another condition.
            object.__setattr__(self, "encoder", None)
        elif not self.encoder:
            raise ValueError(f"inputs {self.inputs!r} need an encoder's name")
        object.__setattr__(self, "columns", tuple(self.columns))

    def _check_prompt(self) -> None:
        if self.prompt is not None and not PROMPTS[self.prompt].informed:
            places = ", ".join(name for name, prompt in PROMPTS.items() if prompt.informed)
            raise ValueError(
                f"the prompt {self.prompt!r} has no place for an embedding before each passage; "
                f"there are: {places}, and single_step reads with any"
            )

    @property
    def needs(self) -> dict[str, str]:
        return {self.encoder: "encoder"} if self.encoder else {}


@builtin("r2ag", 1, R2AGSettings, "Ye, Li et al. 2024, R²AG")
def r2ag(question: Question, settings: R2AGSettings) -> Flow:
    """Retrieve, tell the former of the list, and read with its embeddings in place."""
    hits = yield from retrieve(question, settings)
    soft, trace = yield from informed(question, hits, settings)
    answer = yield from read(question, hits, settings, soft=soft)
    return replace(answer, trace=(*trace, *answer.trace))


def informed(question: Question, hits: Sequence[Hit], settings: R2AGSettings):
    """-> a soft segment for each hit, and the trace of what the former is told."""
    rows = yield from inputs(question, hits, settings)
    trace: list[dict[str, Any]] = [_told(hits, rows, settings)]
    order = list(range(len(hits)))
    if settings.exchange:
        places = steered(question, hits)
        for place, other in zip(places, reversed(places), strict=True):
            order[place] = other
        trace.append({"stage": "exchange", "passages": [hits[i].passage.id for i in places]})
    return placed(rows, order), trace


def placed(rows: np.ndarray, order: Sequence[int] | None = None) -> list[Soft]:
    """A soft segment for each passage: row i of what the former makes of all, or row order[i]."""
    return [Soft(SOFT, rows, i) for i in (range(len(rows)) if order is None else order)]


def inputs(question: Question, hits: Sequence[Hit], settings: R2AGSettings):
    """What the former is told: float32 (k, columns), in one call to the encoder or none."""
    shape = len(hits), len(settings.columns)
    if settings.inputs == "gold":
        labels = np.array(gold_of(question, hits), dtype=np.float32)
        return np.ascontiguousarray(np.broadcast_to(labels[:, None], shape))
    if settings.inputs == "scores":
        return shares(hits)
    if settings.inputs not in ENCODED or not hits:
        return np.ones(shape, dtype=np.float32)
    texts = (question.text, *map(text_of_hit, hits))
    vectors = yield Encode(texts, service=settings.encoder)
    made = features(vectors[0], vectors[1:], settings.similarity)
    made = made[:, [COLUMNS.index(column) for column in settings.columns]]
    if settings.inputs == "shuffled":
        made = made[Random(f"shuffled {question.id}").sample(range(len(made)), len(made))]
    return made


def text_of_hit(hit: Hit) -> str:
    """What the encoder reads of it: as the dense retriever does, so that r is its score."""
    return passage_text(hit.passage, ("title", "text"))


def shares(hits: Sequence[Hit]) -> np.ndarray:
    """float32 (k, 1): each hit's score by the best one's; noughts where that is none."""
    scores = np.array([[hit.score] for hit in hits], dtype=np.float32).reshape(-1, 1)
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else np.zeros_like(scores)


def gold_of(question: Question, hits: Sequence[Hit]) -> list[int]:
    """1 for each hit that is gold, 0 for another. ValueError: the question names no gold."""
    if not question.gold:
        raise ValueError(f"question {question.id!r} names no gold passages, and labels need them")
    return [int(hit.passage.id in question.gold_ids) for hit in hits]


def steered(question: Question, hits: Sequence[Hit]) -> list[int]:
    """The places of the best gold hit and of the best other one; none where one lacks."""
    gold = gold_of(question, hits)
    return [gold.index(1), gold.index(0)] if {0, 1} <= set(gold) else []


def _told(hits: Sequence[Hit], rows: np.ndarray, settings: R2AGSettings) -> dict[str, Any]:
    return {
        "stage": "features",
        "inputs": settings.inputs,
        "passages": [hit.passage.id for hit in hits],
        "columns": list(settings.columns),
        "rows": [[round(float(x), 6) for x in row] for row in rows],
    }
