"""Three checks of DRAGIN on one draft of a reader: controls of this book, which no paper has.

`query_check`: what would each query rule find, at the very same moments?
In the loop a query that finds more changes what is written next, and with it where the next
alarm is given: a mean over a loop's searches compares queries at different moments. Here the
reader writes one draft, the timing rule says where in it it would have asked, as if no
passage changed what follows, and at each place the query of every rule is searched for.
Nothing is written anew, so that this costs one draft.

The trace, one entry a moment, in the order of the draft:

    {"stage": "queries", "taken": words of QFS's query, "among": words up to the alarm's with
     it, "sentence": which of the draft's it is in, from 1, "asked": rule of `RULES` -> query,
     "found": rule -> ids}

`influence_check`: does a_max tell how strongly a word shapes what follows (equation 3)?
DRAGIN takes a token's a_max for its influence on what follows. Here the reader writes one
draft without passages. Of its words, two of the same form (a name, a number, another word)
that stand next to each other among those are a pair; one has the higher a_max. Each is masked
in turn, the text is read again, and the same tokens, those behind the later of the two, say how
far their probabilities moved. If a_max is influence, they move further where the word with the
higher one is gone.

The trace, one entry a pair, in the order of the draft:

    {"stage": "influence", "words": the one with the higher a_max, the other, "a_max": theirs,
     "moved": mean |log p - log p masked| of the tokens behind both, in nats, for each,
     "first": whether the one with the higher a_max stands first}

`dragin_replay`: each difference between DRAGIN's equations and its released code.
The reader writes once, without passages, as the first round of either does. On this
draft the released code decides, then with one of its differences at a time put back to the
equations, then the equations themselves with their own threshold. Nothing is searched
for, so what differs is the decision alone.

The trace, one entry a variant, in the order of `VARIANTS`:

    {"stage": "variant", "name": text, "triggered": bool, "keep": tokens that stay,
     "query": text}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_repro.engine import Flow
from rag_repro.methods.base import Count, Settings, builtin
from rag_repro.methods.dragin.draft_arrays import Draft, Span, text_of, tokens_before, words_of
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings, ReleasedSettings
from rag_repro.methods.dragin.queries import (
    Situation,
    choice,
    context_of,
    plain_query,
    qfs,
    query_of,
    reread,
    taken,
)
from rag_repro.methods.dragin.timing import Moment, bare, decide, rind, sentences_of
from rag_repro.methods.language import ENGLISH, Language
from rag_repro.methods.reading import PROMPTS, Template, extract, one_line, with_exemplars
from rag_repro.methods.stages import search
from rag_repro.schema import Answer, Generate, Hit, Kept, Question, Read

PLAIN = (
    *("question", "last_sentence", "last_tokens", "sure_sentence", "sentence", "full_context"),
    *("random_words", "first_words"),
)
RULES = ("qfs", *PLAIN, "qfs_few", "random_few", "first_few", "masked_sentence", "qfs_said")
"""Query rules in the order of records. Words by chance, and the first ones, are as many as QFS
takes there; "few": of `QueryCheckSettings.few` tokens in place of `top_n`; "qfs_said": QFS without
the prompt's own words (context "said")."""


def _written(question: Question, settings: Settings, hits: Sequence[Hit] = ()):
    """What the reader writes once -> template, prompt, generation, and the draft that it is."""
    template = with_exemplars(PROMPTS[settings.prompt], settings.exemplars)
    prompt = template.fill(question, hits)
    made = yield Generate(prompt, settings.max_new_tokens, stop=template.stop, trace=True)
    return template, prompt, made, Draft.from_generation(made)


@dataclass(frozen=True)
class QueryCheckSettings(DynamicSettings):
    """As in dynamic retrieval; few: a second, smaller number of tokens for QFS."""

    few: Count = 8

    def __post_init__(self):
        super().__post_init__()
        if self.timing not in ("rind", "flare") or self.alone or self.context == "again":
            raise ValueError(
                "queries are checked at RIND's or FLARE's moments, with the attention of one pass"
            )


@builtin(
    "query_check",
    3,
    QueryCheckSettings,
    "this book: a check of query rules",
    lambda settings: 3 if PROMPTS[settings.prompt].chat else 2,
)
def query_check(
    question: Question, settings: QueryCheckSettings, language: Language = ENGLISH
) -> Flow:
    """One draft; at each alarm in it, the search of every query rule."""
    hits = ()
    if settings.asks_first:
        hits = tuple((yield search(question.text, settings.k, question, settings)))
    template, _, made, draft = yield from _written(question, settings, hits)
    asked, counts = [], []
    for number, moment in enumerate(moments(draft, settings, language)):
        place = f"{question.id} {number}"
        now = Situation(one_line(question.text), "", draft, moment, place)
        queries, count = _queries(now, settings, language)
        asked.append(queries)
        counts.append({**count, "sentence": sentence_of(draft, moment, language)})
    # The same words are searched for once.
    wanted = list(dict.fromkeys(q for queries in asked for q in queries.values() if q.strip()))
    results = yield [search(query, settings.k, question, settings) for query in wanted]
    found = {
        query: [hit.passage.id for hit in hits] for query, hits in zip(wanted, results, strict=True)
    }
    trace = [
        {
            "stage": "queries",
            **count,
            "asked": dict(queries),
            "found": {rule: found.get(query, []) for rule, query in queries.items()},
        }
        for queries, count in zip(asked, counts, strict=True)
    ]
    said = extract(made.text, template)
    return Answer(text=made.text, prediction=said, hits=hits, trace=tuple(trace))


def moments(draft: Draft, settings: DynamicSettings, language: Language) -> Iterator[Moment]:
    """All alarms in a draft. As in the loop what gave one is settled behind it: its token, or
    its sentence where that is written again."""
    settled = 0
    while settled < len(draft):
        moment, _ = decide(draft, settings, language, settled, "")
        if moment is None:
            return
        yield moment
        settled = moment.sentence[1] if settings.rewrites else moment.keep + 1


def sentence_of(draft: Draft, moment: Moment, language: Language) -> int:
    """In which of the draft's sentences an alarm was given, from 1."""
    spans = [sentence.units for sentence in sentences_of(draft, draft.tokens, language)]
    return 1 + sum(first < last <= moment.sentence[0] for first, last in spans)


def _queries(
    now: Situation, settings: QueryCheckSettings, language: Language
) -> tuple[Mapping[str, str], Mapping[str, int]]:
    """Each rule's query, and of how many words QFS takes how many."""
    context, hits = context_of(now, settings)
    most = taken(context, hits, settings, language)
    few = taken(context, hits, replace(settings, top_n=settings.few), language)
    made = {"qfs": query_of(context, most)}
    as_many = replace(settings, top_n=max(1, len(most)))
    made |= {rule: plain_query(now, replace(as_many, query=rule), language) for rule in PLAIN}
    as_few = replace(settings, top_n=max(1, len(few)))
    made["qfs_few"] = query_of(context, few)
    made["random_few"] = plain_query(now, replace(as_few, query="random_words"), language)
    made["first_few"] = plain_query(now, replace(as_few, query="first_words"), language)
    made["masked_sentence"] = plain_query(now, replace(settings, query="masked_sentence"), language)
    alone, own = context_of(now, replace(settings, context="said"))
    made["qfs_said"] = query_of(alone, taken(alone, own, settings, language))
    told = choice(context, most, hits)
    return made, {"taken": len(told["taken"]), "among": len(told["context"])}


MASK = "_"
"""Stands for a word, which then has its place and says nothing."""


@dataclass(frozen=True)
class InfluenceCheckSettings(Settings):
    """pairs: of a draft, at most, in its order. reach: tokens behind a pair that are looked at.

    exemplars, max_new_tokens: as in dynamic retrieval.
    """

    prompt: str | None = "cot"
    exemplars: str | None = None
    pairs: Count = 4
    reach: Count = 16

    def __post_init__(self):
        super().__post_init__()
        if self.prompt is None:
            raise ValueError("the check goes by what a reader writes: name a prompt")
        # Nothing is searched: what would be found must not make another condition.
        for name in ("k", "own_candidates"):
            object.__setattr__(self, name, getattr(Settings, name))


@builtin("influence_check", 1, InfluenceCheckSettings, "this book: a check of a_max")
def influence_check(
    question: Question, settings: InfluenceCheckSettings, language: Language = ENGLISH
) -> Flow:
    """One draft; of each pair of words, each masked in turn and the text read again."""
    template, prompt, made, draft = yield from _written(question, settings)
    pairs = list(pairs_of(draft, template, language))[: settings.pairs]
    if not pairs:
        return Answer(text=made.text, prediction=extract(made.text, template))
    # All three are read the same way, so that nothing differs but the word.
    masked = [without(draft, word) for pair in pairs for word in pair]
    whole, *others = map(
        Draft.from_generation, (yield [Read(prompt, text) for text in (draft.text, *masked)])
    )
    trace = []
    for (one, two), gone in zip(pairs, zip(others[::2], others[1::2], strict=True), strict=True):
        last = max(one[1], two[1])
        moved = [shift(whole, other, len(draft) - last, settings.reach) for other in gone]
        if None in moved:
            continue
        a_max = [looked_at(draft, word) for word in (one, two)]
        high = int(a_max[1] > a_max[0])
        trace.append(
            {
                "stage": "influence",
                "words": [text_of(draft.pieces, (one, two)[i]) for i in (high, 1 - high)],
                "a_max": [round(a_max[i], 4) for i in (high, 1 - high)],
                "moved": [round(moved[i], 4) for i in (high, 1 - high)],
                "first": (one, two)[high][0] < (one, two)[1 - high][0],
            }
        )
    prediction = extract(made.text, template)
    return Answer(text=made.text, prediction=prediction, trace=tuple(trace))


def pairs_of(draft: Draft, template: Template, language: Language) -> Iterator[tuple[Span, Span]]:
    """Words of one form that stand next to each other among those, each in one pair at most.

    Stop words have no score whatever their a_max is; from the answer's marker on the text is
    the prompt's form; and the last word has nothing behind it.
    """
    marker = template.marker and draft.text.find(template.marker)
    until = len(draft) if marker is None or marker < 0 else tokens_before(draft.pieces, marker)
    waiting: dict[str, Span] = {}
    for word in words_of(draft.pieces):
        said = bare(text_of(draft.pieces, word))
        if word[1] > until or word[1] >= len(draft) or not said or language.is_stop(said):
            continue
        kind = form(said)
        if kind in waiting:
            yield waiting.pop(kind), word
        else:
            waiting[kind] = word


def form(word: str) -> str:
    """ "number", "name" (it begins with a capital) or "word"."""
    if any(c.isdigit() for c in word):
        return "number"
    return "name" if word[0].isupper() else "word"


def looked_at(draft: Draft, word: Span) -> float:
    """a_max of a word: the most that a token behind it looks at one of its tokens."""
    a, b = word
    m = len(draft.before)
    rows = draft.attention[:, b:, m + a : m + b].mean(0)  # (n - b, b - a)
    return float(rows.max())


def without(draft: Draft, word: Span) -> str:
    """The draft's text with a mask in the word's place, and the white space before it."""
    a, b = word
    said = "".join(draft.pieces[a:b])
    white = said[: len(said) - len(said.lstrip())]
    return "".join((*draft.pieces[:a], white, MASK, *draft.pieces[b:]))


def shift(whole: Draft, masked: Draft, behind: int, reach: int) -> float | None:
    """How far the first `reach` of the last `behind` tokens moved, nats a token.

    None where they are no more the same tokens, or there is none.
    """
    at, to = len(whole) - behind, len(masked) - behind
    if not behind or whole.pieces[at:] != masked.pieces[to:]:
        return None
    here, there = (
        np.log(np.maximum(draft.probability[i : i + reach], 1e-12))
        for draft, i in ((whole, at), (masked, to))
    )
    return float(np.abs(here - there).mean())


DIFFERENCES = {
    "D1": "normalise",
    "D2": "own_row",
    "D3": "heads",
    "D4": "alone",
    "D5": "unit",
    "D6": "gate",
    "D7": "meaning",
    "D8": "cut",
    "D9": "pooled",
    "D10": "row",
    "D11": "candidates",
    "D12": "context",
}
"""Those that a decision on one draft can show, by their settings."""
RELEASED, EQUATIONS = "released", "equations"
VARIANTS = (RELEASED, *DIFFERENCES, EQUATIONS)


@dataclass(frozen=True)
class ReplaySettings(ReleasedSettings):
    """The released code's settings, and the equations' own threshold beside them.

    theta: of the equations; their scores are of another size than the released code's.
    """

    theta: float = 0.2


def variants(settings: ReplaySettings) -> dict[str, DynamicSettings]:
    """What each variant decides by."""
    plain = DynamicSettings(prompt=settings.prompt, top_n=settings.top_n, threshold=settings.theta)
    one_back = {
        name: replace(settings, **{field: getattr(plain, field)})
        for name, field in DIFFERENCES.items()
    }
    return {RELEASED: settings, **one_back, EQUATIONS: plain}


def since(settings: ReplaySettings) -> int:
    """3: a query takes no words of a chat template."""
    return 3 if any(own.meets_template for own in variants(settings).values()) else 2


@builtin("dragin_replay", 3, ReplaySettings, "this book: DRAGIN's differences on one draft", since)
def replay(question: Question, settings: ReplaySettings, language: Language = ENGLISH) -> Flow:
    """One draft, a decision and a query by each variant."""
    _, _, made, draft = yield from _written(question, settings)
    if not len(draft):
        return Answer(text=made.text)
    read = yield Read(None, Kept(made, len(draft)), layers=(-1,))
    alone = replace(draft, attention=read.trace.attention[-1])
    rules = variants(settings)
    moments = {
        name: rind(alone if own.alone else draft, own, language)[0] for name, own in rules.items()
    }
    broken = {
        name: Situation(one_line(question.text), "", draft, moment)
        for name, moment in moments.items()
        if moment is not None
    }
    wanted = {name: reread(now) for name, now in broken.items() if rules[name].context == "again"}
    asked = list(dict.fromkeys(wanted.values()))
    results = yield asked
    second = dict(zip(asked, map(Draft.from_generation, results), strict=True))
    trace = []
    for name, own in rules.items():
        query = ""
        if name in broken:
            again = second[wanted[name]] if name in wanted else None
            query = qfs(*context_of(broken[name], own, again), own, language)
        event = {"stage": "variant", "name": name, "triggered": name in broken}
        keep = moments[name].keep if name in broken else len(draft)
        trace.append(event | {"keep": keep, "query": query})
    return Answer(text=made.text, trace=tuple(trace))
