"""What a method may ask for: prompts, the calls that carry them, what services return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from rag_repro.schema.texts import Passage

# ------------------------------------------------------------------- prompts


@dataclass(frozen=True, slots=True)
class Prefix:
    """Text that many prompts begin with (exemplars): computed once, reused."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Text at which the reader's own turn already stands, as "Answer:"."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Soft:
    """Row `index` of what the soft module `name` makes of `features`.

    `features` has shape (passages, n_features); the module maps it to
    (passages, d_model), and one row is placed here as a token's embedding.
    """

    name: str
    features: np.ndarray
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The first `n_tokens` tokens of an earlier generation, token-exactly."""

    generation: Generation
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Marker:
    """A token that a vocabulary was given apart, as Self-RAG's "[Retrieval]", by its text.

    Nothing else in a prompt can write one: all other text is plain words.
    """

    text: str


Segment = str | Prefix | Reply | Soft | Kept | Marker


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a reader is shown, in order.

    With `chat`, the segments before the first Reply or Kept are the user's
    turn in the reader's own chat template, and the rest opens the reader's
    turn. Without, they are simply joined.
    """

    segments: tuple[Segment, ...]
    chat: bool = False

    @property
    def begun(self) -> bool:
        """Whether words of the reply itself stand in the prompt, which the reader continues."""
        return any(
            bool(s.n_tokens)
            if isinstance(s, Kept)
            else isinstance(s, Reply) and bool(s.text.strip())
            for s in self.segments
        )

    @classmethod
    def from_segments(cls, *segments: Segment, chat: bool = False) -> Prompt:
        return cls(tuple(segments), chat)


# ------------------------------------------------------- what services return


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What a reader can tell of n tokens (new, or given to `Read`).

    probability: (n,) of each token under the distribution it was drawn from.
    entropy: (n,) of that distribution, in nats.
    attention: layer -> (heads, n, n_prompt + n); row t is the attention *of*
    token t, once it is itself an input, over prompt and tokens up to itself.
    Layers count from the end: -1 is the last. Empty where not asked for.
    prompt: what each of the n_prompt tokens says, so that its words can be found;
    joined it is the prompt as the reader saw it. A soft one says nothing.
    template: stretches of those (first, behind the last) that are none of the prompt's own
    words: what the reader's chat template says around them, and its opening token.
    """

    probability: np.ndarray
    entropy: np.ndarray
    attention: Mapping[int, np.ndarray] = field(default_factory=dict)
    prompt: tuple[str, ...] = ()
    template: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """Tokens and text from a reader, or (finish "given") a text it read.

    offsets: character in `text` at which each token begins, len(tokens) long.
    finish: "stop", "eos", "length" or "given".
    prefilled: prompt tokens really computed, the reused prefix left out.
    watched: (n, watched tokens) probabilities, None where none was asked.
    written: how many new tokens, where an endpoint counts them and names none.
    """

    text: str
    tokens: tuple[int, ...]
    offsets: tuple[int, ...]
    finish: str
    prompt_tokens: int
    prefilled: int
    trace: Trace | None = None
    watched: np.ndarray | None = None
    written: int | None = None

    @property
    def pieces(self) -> tuple[str, ...]:
        """What each token says; joined it is the text."""
        return pieces_of(self.text, self.offsets)


def pieces_of(text: str, offsets: Sequence[int]) -> tuple[str, ...]:
    """What each token says, from where each begins; joined it is the text.

    Of a character made of several tokens the last says it.
    """
    return tuple(text[a:b] for a, b in pairwise([0, *offsets[1:], len(text)])) if offsets else ()


# ------------------------------------------------------------------ the calls


@dataclass(frozen=True, slots=True)
class Until:
    """A named stop rule on the decoded text, as "first sentence is complete"."""

    name: str
    holds: Callable[[str], bool] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Draw tokens at random; without it decoding is greedy."""

    seed: int
    temperature: float = 1.0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask a reader to write. -> Generation

    stop: strings (cut off from the text, see `cut`) or rules (kept) that end it.
    trace: also probability, entropy and last-layer attention of each token. attention:
        False leaves the attention out of the trace, where nobody reads it.
    watch: tokens, given as text, whose probability is wanted at each step.
    """

    prompt: Prompt
    max_new_tokens: int
    stop: tuple[str | Until, ...] = ()
    trace: bool = False
    attention: bool = True
    watch: tuple[str, ...] = ()
    sampling: Sampling | None = None
    service: str = "reader"

    def cut(self, text: str) -> int | None:
        """Where a stop string ends a reply's text; None where none does.

        The blanks that a reply begins with end nothing: it has said nothing yet.
        """
        blanks = 0 if self.prompt.begun else len(text) - len(text.lstrip())
        strings = [s for s in self.stop if isinstance(s, str)]
        found = [text.find(s, max(0, blanks + 1 - len(s))) for s in strings]
        return min((at for at in found if at >= 0), default=None)


@dataclass(frozen=True, slots=True)
class Read:
    """Ask a reader what it makes of a given text. -> Generation, "given"

    prompt: None lets the text stand alone, without even an opening token; nothing
        foretells its first token then, whose probability and entropy are nan.
    text: in plain words, or an earlier generation's tokens, as they are. Empty, with a
        prompt and layers: nothing but where the prompt's last token looks, which is the one
        row of its attention.
    layers: those whose attention is wanted, counted from the end; none: only
    probabilities and entropies.
    """

    prompt: Prompt | None
    text: str | Kept
    layers: tuple[int, ...] = ()
    service: str = "reader"


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Ask a retriever. -> tuple[Hit, ...], best first, at most k

    within: ids of the passages to choose from; None: the whole corpus.
    """

    query: str
    k: int
    within: tuple[str, ...] | None = None
    service: str = "retriever"


@dataclass(frozen=True, slots=True)
class Encode:
    """Ask an encoder. -> float32 array (texts, d)"""

    texts: tuple[str, ...]
    service: str = "encoder"


@dataclass(frozen=True, slots=True)
class Score:
    """Ask a scorer (a classifier). -> float32 array (items,) of probabilities

    items: the texts of each, as many as the scorer takes. DR-RAG's classifier
    takes (question, passage, other passage), texts without titles, the passage
    that was found first before the other, and tells the probability, from 0 to
    1, that both are needed for the question (its equation 2). An item's value
    must not depend on the items beside it, or answers would differ by batch.
    """

    items: tuple[tuple[str, ...], ...]
    service: str = "scorer"


@dataclass(frozen=True, slots=True)
class Recall:
    """Ask the reservoir. -> tuple[Hit, ...]"""

    query: str
    k: int
    service: str = "reservoir"


@dataclass(frozen=True, slots=True)
class Remember:
    """Put passages into the reservoir. -> None"""

    passages: tuple[Passage, ...]
    service: str = "reservoir"


Call = Generate | Read | Retrieve | Encode | Score | Recall | Remember
