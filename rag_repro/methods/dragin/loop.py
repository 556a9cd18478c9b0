"""DRAGIN's section 3.3, and with other rules the baselines of its table 1.

    T  = what the reader writes behind passages, question and T'       `_draft`
    i  = where T breaks off, by the timing rule; none: T stands        `timing.decide`
    Q  = the query rule's words at i                                   `_query`
    D  = Retriever(Q), in place of the passages before
    T' = truncate(T, t_i), token by token                              (6)

until nothing breaks off, or the answer is as long as it may be. The paper does not
say why the same token does not give the alarm again, for ever: here the first token
behind a search (the first sentence, where rules have it written again) gives none.

The released code writes without passages, searches, and lets the passages serve one
sentence (`settings.documents`); its attention comes from second passes, which are
`Read` calls and counted as reads.

The trace, one entry an event:

    {"stage": "decide", "text": the draft, "words", "entropy", "attention", "meaning",
     "surprise", "score" (RIND's, a value a unit; other rules: "probability", a value a token),
     "keep": tokens that stay, "kept": their text, "hits": words, "alarm": their numbers,
     "sentence": tokens, first and behind the last, of the one with the alarm}
    {"stage": "retrieve", "query": text, "found": ids; of QFS "context": the words it could
     take, "taken": the numbers of those that it took}
    {"stage": "write", "text": what was added}
    {"stage": "ask_again", "text": what was answered}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag_repro.engine import Flow
from rag_repro.methods.base import builtin
from rag_repro.methods.dragin.draft_arrays import Draft, tokens_before
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings, ReleasedSettings
from rag_repro.methods.dragin.queries import (
    Situation,
    choice,
    context_of,
    plain_query,
    query_of,
    reread,
    taken,
)
from rag_repro.methods.dragin.timing import ONE_SENTENCE, chance, decide, event, sentences_of
from rag_repro.methods.language import ENGLISH, Language
from rag_repro.methods.reading import PROMPTS, Template, extract, one_line, with_exemplars
from rag_repro.methods.sentences import ENGLISH as RULES
from rag_repro.methods.sentences import Sentences
from rag_repro.methods.stages import Below, Retrieved, search
from rag_repro.schema import Answer, Generate, Generation, Kept, Prompt, Question, Read, Sampling

NOTHING = Retrieved(())
AGAIN_TOKENS = 20
"""Tokens of the answer that is asked for when none was said (released code, `eval.py`)."""


@dataclass
class _Answering:
    """A question, how it is answered, and the answer so far.

    below: the stages that search for a query. parts: of generations, token by token; tokens: how
    many. found: what those stages last brought. fresh: it was found for what is written next.
    """

    question: Question
    settings: DynamicSettings
    template: Template
    language: Language
    sentences: Sentences
    below: Below
    parts: list[Kept] = field(default_factory=list)
    text: str = ""
    tokens: int = 0
    found: Retrieved = NOTHING
    fresh: bool = False
    trace: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How many more tokens the answer may have."""
        return self.settings.max_new_tokens - self.tokens

    @property
    def place(self) -> str:
        """Names the question and how far it is, for all that goes by chance."""
        return f"{self.question.id} {len(self.trace)}"

    @property
    def sampling(self) -> Sampling | None:
        """How the next tokens are drawn; None: greedily."""
        if not self.settings.sampled:
            return None
        seed = int(chance(self.settings, f"tokens {self.place}").integers(2**31))
        return Sampling(seed, self.settings.temperature, self.settings.top_p)

    def add(self, made: Generation, n: int) -> None:
        if n:
            text = "".join(made.pieces[:n])
            self.parts.append(Kept(made, n))
            self.text += text
            self.tokens += n
            self.trace.append({"stage": "write", "text": text})


def since(settings: DynamicSettings) -> int:
    """The version since which a way of dynamic retrieval answers as it does now.

    4: a query takes no words of a chat template. 3: at FLARE's moments QFS asks for the token
    that gave the alarm.
    """
    if settings.meets_template:
        return 4
    return 3 if (settings.timing, settings.query) == ("flare", "qfs") else 2


@builtin("dynamic", 4, DynamicSettings, "DRAGIN, sections 3 and 4.3 (Su et al. 2024)", since)
@builtin("dragin_released", 4, ReleasedSettings, "DRAGIN, released code (4d71efc)", since)
def dynamic(
    question: Question,
    settings: DynamicSettings,
    language: Language = ENGLISH,
    sentences: Sentences = RULES,
    below: Below | None = None,
) -> Flow:
    """Write, break off where the timing rule says, search with the query rule's words, go on.

    below: the stages that find passages, in place of one plain search; they are given the
    question with the query in its text's place.
    """

    def plainly(asked: Question):
        hits = yield search(asked.text, settings.k, asked, settings)
        return Retrieved(tuple(hits))

    template = with_exemplars(PROMPTS[settings.prompt], settings.exemplars)
    now = _Answering(question, settings, template, language, sentences, below or plainly)
    if settings.asks_first:
        yield from _search(now, question.text)
    while now.room > 0:
        made, draft, ended = yield from _draft(now)
        judged = draft
        if settings.reads_alone and len(draft):
            alone = yield Read(None, Kept(made, len(draft)), layers=(-1,))
            judged = replace(draft, attention=alone.trace.attention[-1])
        place = now.place
        moment, told = None, None
        if len(draft) and not (ended and settings.timing in ("sentence", "window")):
            begins = not (now.tokens or now.fresh or settings.asks_first)
            settled = _settled(now, draft)
            moment, told = decide(judged, settings, language, settled, place, begins)
        now.trace.append(event(draft, moment, told))
        if moment is None:
            now.fresh = False
            now.add(made, len(draft))
            if ended or not len(draft):
                break
            continue
        at = Situation(one_line(question.text), now.text, draft, moment, place)
        query, words = yield from _query(now, at)
        yield from _search(now, query, words)
        now.add(made, moment.keep)
        now.fresh = True
        if settings.documents != "until_replaced":
            ended = yield from _serve_once(now)
            if ended:
                break
    return (yield from _answer(now))


def _prompt(now: _Answering, found: Retrieved, space: bool) -> Prompt:
    filled = now.template.fill(now.question, found.hits, found.soft)
    blank = (" ",) if space and not now.parts else ()
    return Prompt.from_segments(*filled.segments, *blank, *now.parts, chat=filled.chat)


def _draft(now: _Answering):
    """What the reader writes next -> the generation, what of it counts, and whether it ended."""
    settings, found = now.settings, now.found
    if settings.documents != "until_replaced" and now.tokens:
        found = NOTHING
    one = settings.timing in ONE_SENTENCE and settings.documents != "one_draft"
    longest = min(now.room, settings.window) if settings.timing == "window" else now.room
    made, n, ended = yield from _write(now, found, longest, one, judged=True)
    return made, Draft.from_generation(made).first(n), ended


def _write(now: _Answering, found: Retrieved, longest: int, one: bool, judged: bool):
    """Up to `longest` tokens, or one sentence -> the generation, how many of its tokens count,
    and whether the answer ended. judged: its attention is read, if any is.
    """
    stop = now.template.stop
    made = yield Generate(
        _prompt(now, found, now.settings.space),
        max_new_tokens=longest,
        stop=(*stop, now.sentences.until_first()) if one else stop,
        trace=True,
        attention=judged and now.settings.reads_attention,
        sampling=now.sampling,
    )
    n, ended = len(made.tokens), made.finish != "length"
    if one:
        _, end = now.sentences.first(made.text)
        n = tokens_before(made.pieces, end)
        # A second sentence has begun: the first is complete, and the answer goes on.
        ended = ended and n == len(made.tokens)
    return made, n, ended


def _settled(now: _Answering, draft: Draft) -> int:
    """How many of a draft's tokens the passages were just fetched for: no alarm there."""
    if not now.fresh or not now.settings.rewrites:
        return int(now.fresh)
    spans = (sentence.units for sentence in sentences_of(draft, draft.tokens, now.language))
    return next((last for first, last in spans if last > first), 0)


def _search(now: _Answering, query: str, words: Mapping[str, Any] | None = None):
    longest = now.settings.query_tokens
    if longest is not None and query:
        read = yield Read(None, query)
        if len(read.tokens) > longest:
            query = query[read.offsets[-longest] :]
    now.found = NOTHING
    if query.strip():
        now.found = yield from now.below(replace(now.question, text=query))
    now.trace.extend(now.found.events)
    ids = [hit.passage.id for hit in now.found.hits]
    now.trace.append({"stage": "retrieve", "query": query, "found": ids, **(words or {})})


def _query(now: _Answering, at: Situation):
    """Stage `formulate`, by the query rule -> the query, and what QFS chose it from."""
    settings, language = now.settings, now.language
    if settings.query != "qfs":
        return plain_query(at, settings, language), {}
    read = None
    if settings.context == "again":
        read = Draft.from_generation((yield reread(at)))
    context, hits = context_of(at, settings, read)
    words = taken(context, hits, settings, language)
    return query_of(context, words), choice(context, words, hits)


def _serve_once(now: _Answering):
    """Write behind the passages just found, a sentence or all, and put them away -> ended?"""
    if now.room < 1:
        return True
    one = now.settings.documents == "one_sentence"
    made, n, ended = yield from _write(now, now.found, now.room, one, judged=False)
    now.add(made, n)
    now.fresh = False
    return ended or not n


def _answer(now: _Answering) -> Flow:
    """The prediction; where none was said, it is asked for once more (appendix B)."""
    text, template, ask_again = now.text, now.template, now.settings.ask_again
    said = extract(text, template)
    if said is None and template.marker and ask_again != "never":
        found = now.found if ask_again == "with_passages" else NOTHING
        prompt = _prompt(now, found, False)
        lead = f" {template.marker}"
        out = yield Generate(
            Prompt.from_segments(*prompt.segments, lead, chat=prompt.chat),
            max_new_tokens=AGAIN_TOKENS,
            stop=("\n",),
            sampling=now.sampling,
        )
        text += lead + out.text
        said = extract(text, template)
        now.trace.append({"stage": "ask_again", "text": out.text})
    return Answer(text=text, prediction=said, hits=now.found.hits, trace=tuple(now.trace))
