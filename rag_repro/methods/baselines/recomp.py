"""RECOMP: passages are boiled down, to some of their sentences or to a summary, and then read.

    extractive    keep the n sentences s with the highest cos(E(q), E(s)), in text order
    abstractive   M("Question: q\\n Document: d_1 .. d_k\\n Summary: "); nothing written means
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

The trace has one event, as `methods.compressing` says, by "extractive" or
"abstractive"; extractive adds "scores", one a sentence in text order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...engine import Flow
from ...schema import Encode, Generate, Hit, Prompt, Question
from ..base import MethodSpec, one_of
from ..compressing import (
    CompressorSettings,
    at_least_one,
    before,
    fill_or_refuse,
    left,
    read_left,
    told,
)
from ..reading import TEXTS, Template
from ..sentences import ENGLISH, Sentences
from ..stages import retrieve

EXTRACTIVE = {"encoder": "minilm", "n_sentences": 5, "titled": False}
ABSTRACTIVE = {"compressor": "recomp-abstractive-testbed", "summary_tokens": 128}
KINDS = ("extractive", "abstractive")

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

    kind: str = "extractive"
    encoder: str | None = None
    n_sentences: int | None = None
    titled: bool | None = None
    compressor: str | None = None
    summary_tokens: int | None = None

    def __post_init__(self):
        super().__post_init__()
        one_of("kind", self.kind, KINDS)
        used, unused = EXTRACTIVE, ABSTRACTIVE
        if self.kind == "abstractive":
            used, unused = unused, used
        fill_or_refuse(self, used, list(unused), f"kind {self.kind!r}")
        at_least_one(self, "n_sentences", "summary_tokens")

    @property
    def needs(self) -> Mapping[str, str]:
        if self.kind == "extractive":
            return {**super().needs, self.encoder: "encoder"}
        return {**super().needs, self.compressor: "reader"}


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
    found = [(hit.passage, s) for hit in hits for s in sentences.of(hit.passage.text)]
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
    return shown, told(
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
    return shown, told("abstractive", before(hits), shown, None)


def summary_prompt(question: Question, hits: Sequence[Hit]) -> Prompt:
    """What the abstractive compressor is asked."""
    return SUMMARY.fill(question, hits)


RECOMP = MethodSpec("recomp", 1, recomp, RecompSettings, "Xu et al. 2023; FlashRAG's refiner")
