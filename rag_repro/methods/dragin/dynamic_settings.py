"""How dynamic retrieval is done: when, with which query, in which loop.

The defaults are DRAGIN's equations. Every point at which its released code does
otherwise is a setting, named in the docstrings by its number in chapter 35 (D1 to
D14, D21); `ReleasedSettings` has them all as that code has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_repro.methods.base import Count, Settings, Share, one_of
from rag_repro.methods.reading import PROMPTS

QUERIES = (
    *("qfs", "question", "last_sentence", "last_tokens", "sure_sentence", "sentence"),
    *("masked_sentence", "full_context", "random_words", "first_words"),
)
Query = Literal[(*QUERIES,)]  # Sphinx reads no star in an annotation
MASKING = ("masked_sentence", "sure_sentence")
"""Queries that leave out the doubtful tokens of a sentence."""
FACTORS = ("entropy", "attention", "meaning", "surprise")
AS_RECORDED = ("drrag", "drrag_informed")
"""Chat prompts with which there are records whose queries could take the chat template's words,
with context "text". With these they still can, so that a record's name says what it does."""


@dataclass(frozen=True)
class Rind:
    """When to retrieve (section 3.1).

    threshold: theta. factors: what the score multiplies (equation 5); "surprise" is 1 - p.
    heads: "mean" of the heads' attention before the maximum of equation 3, "max" over
        them too, or "mean_of_max" (D3). own_row: a token's look at itself counts (D2).
    normalise: attention by its sentence's mean (D1). alone: attention from a second pass
        over the new text without anything before it (D4).
    unit: "token" or "word", whose tokens' attention is summed and entropy averaged (D5).
    gate: meaning is a factor of the "score", or removes words "after" the alarm, which
        stands (D6). meaning: no meaning have "stop_words", or all but "content" words (D7).
    cut: the text ends before the "token" that gave the alarm, or before its "sentence" (D8).
    pooled: all words of that sentence above the threshold count, not the first (D9).
    """

    threshold: float = 1.0
    factors: tuple[str, ...] = ("entropy", "attention", "meaning")
    heads: Literal["mean", "max", "mean_of_max"] = "mean"
    own_row: bool = False
    normalise: bool = False
    alone: bool = False
    unit: Literal["token", "word"] = "token"
    gate: Literal["score", "after"] = "score"
    meaning: Literal["stop_words", "content"] = "stop_words"
    cut: Literal["token", "sentence"] = "token"
    pooled: bool = False

    def check_rind(self) -> None:
        """ValueError where factors or threshold are none of what they can be."""
        for factor in self.factors:
            one_of("factors", factor, FACTORS)
        if not self.factors or len(set(self.factors)) < len(self.factors):
            raise ValueError(
                f"factors are {list(self.factors)}; name one to three of them, each once"
            )
        if not self.threshold >= 0:
            raise ValueError(f"threshold is {self.threshold}; it must not be below 0")


@dataclass(frozen=True)
class Qfs:
    """What to retrieve (section 3.2).

    top_n: words (their tokens) with the most attention. row: whose attention, the token's
        "own" or that of the place before it, which foretold it (D10).
    candidates: "all" tokens before it, or the "content" words of the context that are not
        hits themselves (D11).
    context: "output" (the new text), "text" (question and output, seen behind the whole
        prompt, and the prompt's word "Answer:" that stands between them), "said" (those two
        without it), "prompt" (all of it), or "again": question and output alone, read a
        second time (D12). Words of the reader's chat template are in none of them, but for
        "text" with DR-RAG's prompts (`AS_RECORDED`), where "said" is to be taken.
    """

    top_n: Count = 25
    row: Literal["own", "previous"] = "own"
    candidates: Literal["all", "content"] = "all"
    context: Literal["output", "text", "said", "prompt", "again"] = "text"

    @property
    def leaves_template_out(self) -> bool:
        """Whether queries take no words of a chat template."""
        return True


@dataclass(frozen=True)
class DynamicSettings(Settings, Rind, Qfs):
    """A way of dynamic retrieval: a timing rule and a query rule in one loop (section 3.3).

    k: passages a search. prompt: the reading prompt by name (D14). max_new_tokens: of the
        whole answer.
    timing: "rind"; "flare": a sentence with a doubtful token is written again;
        "sentence" (FS-RAG), "window" (FL-RAG): after each; "random": at a token, by chance;
        "random_early": so too, and in the first sentence for certain, so that passages are
        found for every answer.
    query: "qfs"; "masked_sentence": the sentence with a blank for each doubtful token, FLARE's;
        "sure_sentence": without them and their blanks, so that words are glued;
        "sentence": the whole of it; "last_sentence", "last_tokens" before that place;
        "question"; "full_context": question and all before it; and two controls.
    first: search with the question before anything is written; None: where the timing
        rule's authors do ("flare", "sentence", "window").
    doubt: FLARE's: a token with p up to this is doubtful enough to search. mask: it leaves
        the query with p up to this. doubt_of: "token", any of the sentence; "sentence",
        the mean of 1 - p above 1 - doubt (D16).
    window: tokens between searches, and tokens in the query "last_tokens".
    rate: chance that a token gives the alarm, random timing. seed: of all that goes by
        chance, for each question and draft apart.
    documents: passages stay "until_replaced", or serve "one_sentence" (D13) or the "one_draft"
        behind their search, and what follows is written without.
    query_tokens: a query keeps its last so many tokens (D21); None: all.
    space: the prompt ends in a blank where nothing is written yet, as FL-RAG's, FS-RAG's
        and FLARE's do in the released code.
    ask_again: where no answer was said, "So the answer is" is put behind the text and the
        reader goes on (appendix B), "bare" as released or "with_passages".
    exemplars: a data set's of the paper (appendix F), "own" invented ones, or None.
    sampled: draw tokens with `temperature` and `top_p` (D15: what the released code leaves
        to the model's own settings) in place of greedy decoding.
    """

    prompt: str | None = "cot"
    timing: Literal["rind", "flare", "sentence", "window", "random", "random_early", "never"] = (
        "rind"
    )
    query: Query = "qfs"
    first: bool | None = None
    doubt: Share = 0.8
    mask: Share = 0.4
    doubt_of: Literal["token", "sentence"] = "token"
    window: Count = 25
    rate: Share = 0.05
    seed: int = 0
    documents: Literal["until_replaced", "one_sentence", "one_draft"] = "until_replaced"
    query_tokens: Count | None = None
    space: bool = False
    ask_again: Literal["never", "bare", "with_passages"] = "with_passages"
    exemplars: str | None = None
    sampled: bool = False
    temperature: float = 0.6
    top_p: float = 0.9

    def __post_init__(self):
        super().__post_init__()
        if self.prompt is None:
            raise ValueError("dynamic retrieval goes by what a reader writes: name a prompt")
        self.check_rind()
        if self.sampled and not (self.temperature > 0 and 0 < self.top_p <= 1):
            raise ValueError(
                f"temperature is {self.temperature} and top_p {self.top_p}; drawing needs the one "
                "above 0, and the other above 0 and up to 1"
            )

    @property
    def leaves_template_out(self) -> bool:
        return self.context != "text" or self.prompt not in AS_RECORDED

    @property
    def meets_template(self) -> bool:
        """Whether its query rule looks at what can hold a template's words, and leaves them out."""
        if self.query == "qfs":
            among = PROMPTS[self.prompt].chat or self.context == "prompt"
            return among and self.context != "again" and self.leaves_template_out
        return self.query == "last_tokens" and PROMPTS[self.prompt].chat

    @property
    def reads_alone(self) -> bool:
        """Whether a draft is read once more with nothing before it, for RIND's attention."""
        return self.timing == "rind" and self.alone

    @property
    def reads_attention(self) -> bool:
        """Whether the attention of a draft is read: else nobody computes it."""
        if self.timing == "rind" and not self.alone:
            return True
        return self.timing != "never" and self.query == "qfs" and self.context != "again"

    @property
    def rewrites(self) -> bool:
        """Whether the sentence that gave the alarm is written again from its beginning."""
        return self.timing == "flare" or (self.timing == "rind" and self.cut == "sentence")

    @property
    def asks_first(self) -> bool:
        """Whether the question is searched for before anything is written."""
        if self.first is None:
            return self.timing in ("flare", "sentence", "window")
        return self.first


@dataclass(frozen=True)
class ReleasedSettings(DynamicSettings):
    """DRAGIN as its released code computes it: D1 to D13, D21 and D24; D14 is `prompt`."""

    normalise: bool = True
    own_row: bool = True
    heads: Literal["mean", "max", "mean_of_max"] = "mean_of_max"
    alone: bool = True
    unit: Literal["token", "word"] = "word"
    gate: Literal["score", "after"] = "after"
    meaning: Literal["stop_words", "content"] = "content"
    cut: Literal["token", "sentence"] = "sentence"
    pooled: bool = True
    row: Literal["own", "previous"] = "previous"
    candidates: Literal["all", "content"] = "content"
    context: Literal["output", "text", "said", "prompt", "again"] = "again"
    documents: Literal["until_replaced", "one_sentence", "one_draft"] = "one_sentence"
    query_tokens: Count | None = 64
    ask_again: Literal["never", "bare", "with_passages"] = "bare"


RELEASED = {name: getattr(ReleasedSettings, name) for name in ReleasedSettings.__annotations__}
"""What the released code has otherwise, by the names of settings."""
