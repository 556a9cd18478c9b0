"""IRCoT, DR-RAG's "multi-step approach": a sentence of reasoning, a search with it, and again.

    repeat:  P = P + Retriever(q, or the last sentence that is no mere conclusion)
             s = first sentence of Reader(P, q, s_1 .. s_t)
    until    s says "answer is", is empty, or there are enough of them
    answer = Reader(P, q)                      (Trivedi et al. 2023, section 3)

From the released code: what counts as a conclusion ("So", "Thus", a sum ...)
and is no query, question words dropped from queries, 6 passages a search, 15 in
all, 10 sentences, passages over 600 words passed over and shown up to 350. The
answer is then read by a reader of its own, which is here the reading that all
methods share, or taken from the chain.

Left open or other here: the chain's prompt, few-shot demonstrations in the
original, is a template by name, so that each reader gets one that it can
follow; spaCy's rules end sentences in place of a parser; passages are told
apart by title and text, since corpora hold no near duplicates (the original
compares spellings). "Step" in DR-RAG's table 2 counts rounds, that is searches;
our reader calls count the last reading too.

The trace, one entry an event:

    {"stage": "retrieve", "query": text, "found": ids, "added": ids}
    {"stage": "think", "sentence": text}
    {"stage": "stop", "why": "answer" | "empty" | "sentences"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from rag_repro.engine import Flow
from rag_repro.methods.base import Count, Settings, Within, builtin, one_of
from rag_repro.methods.reading import PROMPTS, Template, extract
from rag_repro.methods.sentences import ENGLISH, Sentences
from rag_repro.methods.stages import read, search
from rag_repro.schema import Answer, Generate, Hit, Prompt, Question, Reply


@dataclass(frozen=True)
class IRCoTSettings(Settings):
    """How far the chain goes, and who answers.

    k: passages collected, at most (15 in the original). Without `prompt` no
        reader is called: the first search's hits are the whole answer.
    per_step: passages a search; None: two fifths of k (the original's 6 of 15).
    max_sentences, sentence_tokens: the chain's length, and a sentence's in tokens.
    longest, shown: passages of more words are passed over; words of each passage
        that the chain's prompt shows.
    chain: the reading prompt's name under which the reader reasons.
    answer: "reader": read the collected passages by `prompt`, as all methods do;
        "chain": what the chain's last sentence says, no further call.
    """

    k: Count = 15
    per_step: int | None = None
    max_sentences: Annotated[int, Within(1, 99)] = 10  # a search and a reader call each
    sentence_tokens: Count = 200
    longest: Count = 600
    shown: Count = 350
    chain: str = "cot"
    answer: Literal["reader", "chain"] = "reader"

    def __post_init__(self):
        super().__post_init__()
        if self.per_step is None:
            object.__setattr__(self, "per_step", max(1, round(self.k * 6 / 15)))
        if not 1 <= self.per_step <= self.k:
            raise ValueError(f"per_step is {self.per_step}; it must lie between 1 and k = {self.k}")
        one_of("chain", self.chain, PROMPTS)


@builtin("ircot", 1, IRCoTSettings, "Trivedi et al. 2023, section 3; IRCoT's code")
def ircot(question: Question, settings: IRCoTSettings, sentences: Sentences = ENGLISH) -> Flow:
    """Reason and retrieve by turns, then read what was collected."""
    if settings.prompt is None:
        query = without_question_words(question.text)
        return Answer(hits=(yield search(query, settings.per_step, question, settings)))
    trace: list[Mapping[str, Any]] = []
    hits, chain = yield from reason(question, settings, sentences, trace)
    if settings.answer == "reader":
        answer = yield from read(question, hits, settings)
    else:
        last = chain[-1] if chain else ""
        said = conclusion(last, PROMPTS[settings.chain]) or None
        answer = Answer(text=" ".join(chain), prediction=said, hits=hits)
    return replace(answer, trace=tuple(trace))


def reason(
    question: Question,
    settings: IRCoTSettings,
    sentences: Sentences,
    trace: list[Mapping[str, Any]],
):
    """The loop -> the collected hits, in the order of their coming, and the chain's sentences."""
    template = PROMPTS[settings.chain]
    stop = (*template.stop, sentences.until_first())
    hits: tuple[Hit, ...] = ()
    chain: list[str] = []
    said = ""  # the chain as the reader wrote it, white space and all
    why = None
    while why is None:
        query = without_question_words(last_fact(chain) or question.text)
        found = ()
        if query.strip():
            found = yield search(query, settings.per_step, question, settings)
        more = collect(hits, found, settings)
        trace.append(
            {
                "stage": "retrieve",
                "query": query,
                "found": [hit.passage.id for hit in found],
                "added": [hit.passage.id for hit in more[len(hits) :]],
            }
        )
        hits = more
        out = yield Generate(
            chain_prompt(question, hits, said, settings),
            max_new_tokens=settings.sentence_tokens,
            stop=stop,
        )
        sentence, end = sentences.first(out.text)
        said += out.text[:end]
        if sentence:
            chain.append(sentence)
            trace.append({"stage": "think", "sentence": sentence})
        why = _why_stop(sentence, chain, template, settings)
    trace.append({"stage": "stop", "why": why})
    return hits, chain


def _why_stop(
    sentence: str, chain: Sequence[str], template: Template, settings: IRCoTSettings
) -> str | None:
    if not sentence:
        return "empty"
    if conclusion(sentence, template) is not None:
        return "answer"
    return "sentences" if len(chain) >= settings.max_sentences else None


def chain_prompt(
    question: Question, hits: Sequence[Hit], said: str, settings: IRCoTSettings
) -> Prompt:
    """Passages and question by the chain's template, and the chain so far as the reader's words."""
    shown = [
        replace(hit, passage=replace(hit.passage, text=_words(hit.passage.text, settings.shown)))
        for hit in hits
    ]
    prompt = PROMPTS[settings.chain].fill(question, shown)
    return replace(prompt, segments=(*prompt.segments, Reply(said))) if said else prompt


def _words(text: str, most: int) -> str:
    return " ".join(text.split(" ")[:most])


def collect(hits: Sequence[Hit], found: Sequence[Hit], settings: IRCoTSettings) -> tuple[Hit, ...]:
    """The hits and the new ones among those found, up to k, without overlong passages."""
    kept = list(hits)
    texts = {(hit.passage.title, hit.passage.text) for hit in kept}
    for hit in found:
        text = (hit.passage.title, hit.passage.text)
        overlong = len(hit.passage.text.split(" ")) > settings.longest
        if len(kept) >= settings.k or overlong or text in texts:
            continue
        kept.append(hit)
        texts.add(text)
    return tuple(kept)


_CONCLUDES = ("thus ", "thus,", "so ", "so,", "that is,", "therefore", "hence")
_SUM = re.compile(r".*\d[\d,.]* [+-] \d[\d,.]* = \d")
_QUESTION_WORDS = frozenset(("who", "what", "when", "where", "why", "which", "how", "does", "is"))
_ANSWER = re.compile(r".* answer is:? (.*)")


def last_fact(chain: Sequence[str]) -> str:
    """The last sentence that tells something new, no conclusion and no sum; "" without any."""
    for sentence in reversed(chain):
        if not sentence.lower().startswith(_CONCLUDES) and not _SUM.match(sentence):
            return sentence
    return ""


def without_question_words(query: str) -> str:
    return " ".join(word for word in query.split(" ") if word.lower() not in _QUESTION_WORDS)


def conclusion(sentence: str, template: Template) -> str | None:
    """What a sentence gives as the answer; None where it gives none.

    By the words "answer is", as the original has it, or in the template's own form.
    """
    given = _ANSWER.match(sentence)
    if given:
        return given[1].strip().removesuffix(".")
    return extract(sentence, template) if template.marker else None
