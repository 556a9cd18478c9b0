"""What would each query rule find? Asked at the very same moments.

In the loop a query that finds more changes what is written next, and with it where the next
alarm is given: a mean over a loop's searches compares queries at different moments. Here the
reader writes one draft, the timing rule says where in it it would have asked, as if no
passage changed what follows, and at each place the query of every rule is searched for.
Nothing is written anew, so that this costs one draft. No paper has this method, which is a
control of this book.

The trace, one entry a moment, in the order of the draft:

    {"stage": "queries", "taken": words of QFS's query, "among": words up to the alarm's with
     it, "sentence": which of the draft's it is in, from 1, "asked": rule of `RULES` -> query,
     "found": rule -> ids}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ...engine import Flow
from ...schema import Answer, Generate, Question
from ..base import MethodSpec
from ..language import ENGLISH, Language
from ..reading import PROMPTS, extract, one_line
from ..stages import search
from .draft import Draft
from .exemplars import with_exemplars
from .qfs import choice, context_of, query_of, taken
from .queries import Situation, plain_query
from .rind import Moment, sentences_of
from .settings import DynamicSettings
from .timing import decide

PLAIN = (
    *("question", "last_sentence", "last_tokens", "sure_sentence", "sentence", "full_context"),
    *("random_words", "first_words"),
)
FEW = ("qfs_few", "random_few", "first_few")
OTHERWISE = ("masked_sentence", "qfs_said")
RULES = ("qfs", *PLAIN, *FEW, *OTHERWISE)
"""Query rules in the order of records. Words by chance, and the first ones, are as many as QFS
takes there; "few": of `QueryCheckSettings.few` tokens in place of `top_n`; "qfs_said": QFS without
the prompt's own words (context "said")."""


@dataclass(frozen=True)
class QueryCheckSettings(DynamicSettings):
    """As in dynamic retrieval; few: a second, smaller number of tokens for QFS."""

    few: int = 8

    def __post_init__(self):
        super().__post_init__()
        if self.timing not in ("rind", "flare") or self.alone or self.context == "again":
            raise ValueError(
                "queries are checked at RIND's or FLARE's moments, with the attention of one pass"
            )
        if self.few < 1:
            raise ValueError(f"few is {self.few}; it must be at least 1")


def query_check(
    question: Question, settings: QueryCheckSettings, language: Language = ENGLISH
) -> Flow:
    """One draft; at each alarm in it, the search of every query rule."""
    template = with_exemplars(PROMPTS[settings.prompt], settings.exemplars)
    hits = ()
    if settings.asks_first:
        hits = tuple((yield search(question.text, settings.k, question, settings)))
    made = yield Generate(
        template.fill(question, hits),
        max_new_tokens=settings.max_new_tokens,
        stop=template.stop,
        trace=True,
        attention=True,
    )
    draft = Draft.of(made)
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


def since(settings: QueryCheckSettings) -> int:
    """3: a query takes no words of a chat template."""
    return 3 if PROMPTS[settings.prompt].chat else 2


QUERY_CHECK = MethodSpec(
    "query_check", 3, query_check, QueryCheckSettings, "this book: a check of query rules", since
)
