"""How dynamic retrieval is done: when, with which query, in which loop.

The defaults are DRAGIN's equations. Every point at which its released code does
otherwise is a setting, named in the docstrings by its number in chapter 35 (D1 to
D14, D21); `ReleasedSettings` has them all as that code has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base import Settings, one_of
from ..reading import PROMPTS

TIMINGS = ("rind", "flare", "sentence", "window", "random", "never")
QUERIES = (
    *("qfs", "question", "last_sentence", "last_tokens", "sure_sentence", "sentence"),
    *("masked_sentence", "full_context", "random_words", "first_words"),
)
MASKING = ("masked_sentence", "sure_sentence")
"""Queries that leave out the doubtful tokens of a sentence."""
FACTORS = ("entropy", "attention", "meaning", "surprise")
DOCUMENTS = ("until_replaced", "one_sentence", "one_draft")
ASK_AGAIN = ("never", "bare", "with_passages")
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
    heads: str = "mean"
    own_row: bool = False
    normalise: bool = False
    alone: bool = False
    unit: str = "token"
    gate: str = "score"
    meaning: str = "stop_words"
    cut: str = "token"
    pooled: bool = False

    def check_rind(self) -> None:
        """ValueError where one of these is none of what it can be."""
        for factor in self.factors:
            one_of("factors", factor, FACTORS)
        one_of("heads", self.heads, ("mean", "max", "mean_of_max"))
        one_of("unit", self.unit, ("token", "word"))
        one_of("gate", self.gate, ("score", "after"))
        one_of("meaning", self.meaning, ("stop_words", "content"))
        one_of("cut", self.cut, ("token", "sentence"))
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

    top_n: int = 25
    row: str = "own"
    candidates: str = "all"
    context: str = "text"

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
        "sentence" (FS-RAG), "window" (FL-RAG): after each; "random": at a token, by chance.
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
    rate: chance that a token gives the alarm, timing "random". seed: of all that goes by
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

    k: int = 3
    prompt: str | None = "cot"
    max_new_tokens: int = 64
    timing: str = "rind"
    query: str = "qfs"
    first: bool | None = None
    doubt: float = 0.8
    mask: float = 0.4
    doubt_of: str = "token"
    window: int = 25
    rate: float = 0.05
    seed: int = 0
    documents: str = "until_replaced"
    query_tokens: int | None = None
    space: bool = False
    ask_again: str = "with_passages"
    exemplars: str | None = None
    sampled: bool = False
    temperature: float = 0.6
    top_p: float = 0.9

    def __post_init__(self):
        super().__post_init__()
        if self.prompt is None:
            raise ValueError("dynamic retrieval goes by what a reader writes: name a prompt")
        one_of("timing", self.timing, TIMINGS)
        one_of("query", self.query, QUERIES)
        one_of("documents", self.documents, DOCUMENTS)
        one_of("ask_again", self.ask_again, ASK_AGAIN)
        self.check_rind()
        one_of("row", self.row, ("own", "previous"))
        one_of("candidates", self.candidates, ("all", "content"))
        one_of("context", self.context, ("output", "text", "said", "prompt", "again"))
        one_of("doubt_of", self.doubt_of, ("token", "sentence"))
        for name in ("top_n", "window", "query_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        if self.sampled and not (self.temperature > 0 and 0 < self.top_p <= 1):
            raise ValueError(
                f"temperature is {self.temperature} and top_p {self.top_p}; drawing needs the one "
                "above 0, and the other above 0 and up to 1"
            )
        for name in ("doubt", "mask", "rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")

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
    def looks(self) -> bool:
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
    heads: str = "mean_of_max"
    alone: bool = True
    unit: str = "word"
    gate: str = "after"
    meaning: str = "content"
    cut: str = "sentence"
    pooled: bool = True
    row: str = "previous"
    candidates: str = "content"
    context: str = "again"
    documents: str = "one_sentence"
    query_tokens: int | None = 64
    ask_again: str = "bare"


RELEASED = {name: getattr(ReleasedSettings, name) for name in ReleasedSettings.__annotations__}
"""What the released code has otherwise, by the names of settings."""
