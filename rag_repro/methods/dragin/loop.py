"""DRAGIN's section 3.3, and with other rules the baselines of its table 1.

    T  = what the reader writes behind passages, question and T'       `_draft`
    i  = where T breaks off, by the timing rule; none: T stands        `timing.decide`
    Q  = the query rule's words at i                                   `_query`
    D  = Retriever(Q), in place of the passages before
    T' = truncate(T, t_i), token by token                              (6)

until nothing breaks off, or the answer is as long as it may be. The paper does not
say why the same token does not give the alarm again, for ever: here the first token
behind a search (where the cut is at a sentence, the first sentence) gives none.

The released code writes without passages, searches, and lets the passages serve one
sentence (`settings.documents`); its attention comes from second passes, which are
`Read` calls and counted as reads.

The trace, one entry an event:

    {"stage": "decide", "text": the draft, "words", "entropy", "attention", "meaning",
     "score" (RIND's, a value a unit; other rules: "probability", a value a token),
     "keep": tokens that stay, "kept": their text, "hits": words, "alarm": their numbers,
     "sentence": tokens, first and behind the last, of the one with the alarm}
    {"stage": "retrieve", "query": text, "found": ids; of QFS "context": the words it could
     take, "taken": the numbers of those that it took}
    {"stage": "write", "text": what was added}
    {"stage": "ask_again", "text": what was answered}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...engine import Flow
from ...schema import Answer, Generate, Generation, Hit, Kept, Prompt, Question, Read, Sampling
from ..base import MethodSpec
from ..language import ENGLISH, Language
from ..reading import PROMPTS, Template, extract
from ..sentences import ENGLISH as RULES
from ..sentences import Sentences
from ..stages import search
from .draft import Draft, starts
from .exemplars import with_exemplars
from .qfs import again, again_text, behind, choice, query_of, taken
from .queries import Situation, plain_query
from .rind import Moment
from .settings import RELEASED, DynamicSettings
from .timing import ONE_SENTENCE, decide, event

AGAIN_TOKENS = 20
"""Tokens of the answer that is asked for when none was said (released code, `eval.py`)."""


@dataclass
class _Written:
    """The answer so far: parts of generations, token by token, and the passages last found."""

    parts: list[Kept] = field(default_factory=list)
    text: str = ""
    tokens: int = 0
    passages: tuple[Hit, ...] = ()
    settled: int = 0
    trace: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, made: Generation, n: int) -> None:
        if n:
            text = "".join(Draft.of(made).pieces[:n])
            self.parts.append(Kept(made, n))
            self.text += text
            self.tokens += n
            self.trace.append({"stage": "write", "text": text})


def dynamic(
    question: Question,
    settings: DynamicSettings,
    language: Language = ENGLISH,
    sentences: Sentences = RULES,
) -> Flow:
    """Write, break off where the timing rule says, search with the query rule's words, go on."""
    template = with_exemplars(PROMPTS[settings.prompt], settings.exemplars)
    now = _Written()
    if settings.asks_first:
        yield from _search(question.text, question, settings, now)
    while (room := settings.max_new_tokens - now.tokens) > 0:
        made, ended = yield from _draft(question, settings, template, sentences, now, room)
        draft = judged = Draft.of(made)
        if settings.alone and len(draft):
            alone = yield Read(None, Kept(made, len(draft)), layers=(-1,))
            judged = replace(draft, attention=alone.trace.attention[-1])
        place = f"{question.id} {len(now.trace)}"
        moment, told = None, None
        if len(draft) and not (ended and settings.timing in ("sentence", "window")):
            moment, told = decide(judged, settings, language, now.settled, place)
        now.trace.append(event(draft, moment, told))
        if moment is None:
            now.settled = 0
            now.add(made, len(draft))
            if ended or not len(draft):
                break
            continue
        query, words = yield from _query(question, settings, language, now, draft, moment, place)
        yield from _search(query, question, settings, now, words)
        now.add(made, moment.keep)
        now.settled = _settled(draft, moment, settings)
        if settings.documents != "until_replaced":
            ended = yield from _serve_once(question, settings, template, sentences, now)
            if ended:
                break
    return (yield from _answer(question, settings, template, now))


def _prompt(
    question: Question, passages: Sequence[Hit], template: Template, now: _Written, space: bool
) -> Prompt:
    filled = template.fill(question, passages)
    blank = (" ",) if space and not now.parts else ()
    return Prompt.of(*filled.segments, *blank, *now.parts, chat=filled.chat)


def _draft(question, settings: DynamicSettings, template: Template, sentences, now, room: int):
    """What the reader writes next -> the generation, cut to what counts, and whether it ended."""
    passages = now.passages
    if settings.documents != "until_replaced" and now.tokens:
        passages = ()
    one = settings.timing in ONE_SENTENCE and settings.documents != "one_draft"
    longest = min(room, settings.window) if settings.timing == "window" else room
    return (yield from _write(question, settings, template, sentences, now, passages, longest, one))


def _write(question, settings, template, sentences, now, passages, longest: int, one: bool):
    """Up to `longest` tokens, or one sentence -> the generation, and whether the answer ended."""
    sampling = None
    if settings.sampled:
        seed = settings.seed + len(now.trace)
        sampling = Sampling(seed, settings.temperature, settings.top_p)
    made = yield Generate(
        _prompt(question, passages, template, now, settings.space),
        max_new_tokens=longest,
        stop=(*template.stop, sentences.until_first()) if one else template.stop,
        trace=True,
        attention=settings.looks,
        sampling=sampling,
    )
    ended = made.finish != "length"
    if one:
        _, end = sentences.first(made.text)
        n = Draft.of(made).tokens_before(end)
        # A second sentence has begun: the first is complete, and the answer goes on.
        ended = ended and n == len(made.tokens)
        made = _cut(made, n)
    return made, ended


def _cut(made: Generation, n: int) -> Generation:
    """A generation without what comes behind its first n tokens."""
    if n == len(made.tokens):
        return made
    trace, m = made.trace, made.prompt_tokens
    attention = {layer: rows[:, :n, : m + n] for layer, rows in trace.attention.items()}
    return replace(
        made,
        text=made.text[: made.offsets[n]],
        tokens=made.tokens[:n],
        offsets=made.offsets[:n],
        trace=replace(
            trace,
            probability=trace.probability[:n],
            entropy=trace.entropy[:n],
            attention=attention,
        ),
    )


def _settled(draft: Draft, moment: Moment, settings: DynamicSettings) -> int:
    """How many tokens of the next draft the new passages were fetched for."""
    if settings.timing in ("sentence", "window"):
        return 0
    first, last = moment.sentence
    return last - first if moment.keep == first else 1


def _search(
    query: str,
    question: Question,
    settings: DynamicSettings,
    now: _Written,
    words: Mapping[str, Any] | None = None,
):
    if settings.query_tokens is not None and query:
        read = yield Read(None, query)
        if len(read.tokens) > settings.query_tokens:
            query = query[read.offsets[-settings.query_tokens] :]
    hits = ()
    if query.strip():
        hits = yield search(query, settings.k, question, settings)
    now.passages = tuple(hits)
    found = [hit.passage.id for hit in hits]
    now.trace.append({"stage": "retrieve", "query": query, "found": found, **(words or {})})


def _query(question, settings: DynamicSettings, language, now, draft, moment: Moment, place: str):
    """Stage `formulate`, by the query rule -> the query, and what QFS chose it from."""
    first = _first_column(question, draft, now)
    if settings.query != "qfs":
        pieces = draft.before[first:]
        situation = Situation(question.text, now.text, pieces, draft, moment, place)
        return plain_query(situation, settings, language), {}
    if settings.context == "again":
        text = again_text(question.text, now.text, draft, moment)
        read = yield Read(None, text, layers=(-1,))
        context, hits = again(Draft.of(read), draft, moment)
    else:
        begin = {"prompt": 0, "text": first, "output": len(draft.before) - now.tokens}
        context, hits = behind(draft, moment, begin[settings.context])
    words = taken(context, hits, settings, language)
    return query_of(context, words), choice(context, words, hits)


def _first_column(question: Question, draft: Draft, now: _Written) -> int:
    """The prompt's token with which the question begins; 0 where the prompt words it anew."""
    text = "".join(draft.before)
    at = text.rfind(question.text, 0, len(text) - len(now.text))
    ends = [*starts(draft.before)[1:], len(text)] if text else []
    return sum(end <= at for end in ends)


def _serve_once(question, settings: DynamicSettings, template: Template, sentences, now: _Written):
    """Write behind the passages just found, a sentence or all, and put them away -> ended?"""
    room = settings.max_new_tokens - now.tokens
    if room < 1:
        return True
    one = settings.documents == "one_sentence"
    made, ended = yield from _write(
        question, settings, template, sentences, now, now.passages, room, one
    )
    now.add(made, len(made.tokens))
    now.settled = 0
    return ended or not made.tokens


def _answer(question, settings: DynamicSettings, template: Template, now: _Written) -> Flow:
    """The prediction; where none was said, it is asked for once more (appendix B)."""
    text = now.text
    said = extract(text, template)
    if said is None and template.marker and settings.ask_again != "never":
        passages = now.passages if settings.ask_again == "with_passages" else ()
        prompt = _prompt(question, passages, template, now, False)
        lead = f" {template.marker}"
        out = yield Generate(
            Prompt.of(*prompt.segments, lead, chat=prompt.chat),
            max_new_tokens=AGAIN_TOKENS,
            stop=("\n",),
        )
        text += lead + out.text
        said = extract(text, template)
        now.trace.append({"stage": "ask_again", "text": out.text})
    return Answer(text=text, prediction=said, hits=now.passages, trace=tuple(now.trace))


@dataclass(frozen=True)
class ReleasedSettings(DynamicSettings):
    """DRAGIN as its released code computes it: `settings.RELEASED`, each of it a setting."""

    normalise: bool = RELEASED["normalise"]
    own_row: bool = RELEASED["own_row"]
    heads: str = RELEASED["heads"]
    alone: bool = RELEASED["alone"]
    unit: str = RELEASED["unit"]
    gate: str = RELEASED["gate"]
    meaning: str = RELEASED["meaning"]
    cut: str = RELEASED["cut"]
    pooled: bool = RELEASED["pooled"]
    row: str = RELEASED["row"]
    candidates: str = RELEASED["candidates"]
    context: str = RELEASED["context"]
    documents: str = RELEASED["documents"]
    query_tokens: int | None = RELEASED["query_tokens"]
    ask_again: str = RELEASED["ask_again"]


DYNAMIC = MethodSpec(
    "dynamic", 1, dynamic, DynamicSettings, "DRAGIN, sections 3 and 4.3 (Su et al. 2024)"
)
DRAGIN_RELEASED = MethodSpec(
    "dragin_released", 1, dynamic, ReleasedSettings, "DRAGIN, released code (4d71efc)"
)
