"""Reading prompts: how passages and a question are put before a reader.

Every method of a comparison reads with the same template and the same
extraction, so that no method wins by its wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType

from ..schema import Hit, Prefix, Prompt, Question, Segment, Soft, Until

SOFT = "{soft}"


@dataclass(frozen=True)
class Template:
    """A reading prompt.

    passage: one line of `str.format` with number, title, text; {soft} is the place of
        an embedding that is no text.
    body: the user's words, with {passages} and {question}. bare: the same for a
        question without passages; None: the body, with nothing in its place.
    exemplars: shared text before the body (`Prefix`: computed once a batch).
    marker: what stands before the answer in the reader's text; None: the whole
        text is the answer. yes_no: the answer is a yes or no, read as DRAGIN's code reads it.
    """

    name: str
    source: str
    passage: str
    body: str
    bare: str | None = None
    exemplars: str = ""
    marker: str | None = None
    chat: bool = False
    stop: tuple[str | Until, ...] = ()
    yes_no: bool = False

    @property
    def informed(self) -> bool:
        """Whether each passage has a place for an embedding."""
        return SOFT in self.passage

    def told(self, answer: str) -> str:
        """An answer as a lesson has it behind the prompt: it opens a turn of a chat, and
        elsewhere follows "Answer:".
        """
        return answer if self.chat else f" {answer}"

    def fill(self, question: Question, hits: Sequence[Hit], soft: Sequence[Soft] = ()) -> Prompt:
        """The prompt for one question; the hits stand in their given order.

        The one place where text of the data enters a prompt. Each text takes one
        line, so that none can open a line that looks like the prompt's own
        ("Question:", "Answer:"), and is put in once: braces in it mean nothing.

        soft: one for each hit, where `informed`; ValueError: another number of them.
        """
        if len(soft) != (len(hits) if self.informed else 0):
            raise ValueError(
                f"the prompt {self.name!r} has {'a' if self.informed else 'no'} place for an "
                f"embedding before each passage; {len(soft)} came with {len(hits)} passages"
            )
        wording = self.body if hits or self.bare is None else self.bare
        # Cut before anything is put in: a text that imitates a place is text.
        before, _, after = wording.partition("{passages}")
        asked = one_line(question.text)
        passages = self.spread(hits, soft)
        words = joined([before.format(question=asked), *passages, after.format(question=asked)])
        segments = (Prefix(self.exemplars), *words) if self.exemplars else words
        return Prompt.of(*segments, chat=self.chat)

    def line(self, number: int, hit: Hit) -> tuple[str, str, str]:
        """What a hit is in the prompt: up to the place of its embedding, the rest of what
        marks it, and what is told of it, from its title or text on.
        """
        before, soft, after = self.passage.partition(SOFT)
        if not soft:
            before, after = "", self.passage
        told = min(at for at in map(after.find, ("{title}", "{text}")) if at >= 0)
        said = _said(hit)
        return tuple(p.format(number=number, **said) for p in (before, after[:told], after[told:]))

    def spread(self, hits: Sequence[Hit], soft: Sequence[Soft]) -> Iterator[Segment]:
        parts = self.passage.split(SOFT)
        for i, hit in enumerate(hits, start=1):
            said = _said(hit)
            yield parts[0].format(number=i, **said)
            for part in parts[1:]:
                yield soft[i - 1]
                yield part.format(number=i, **said)


def _said(hit: Hit) -> dict[str, str]:
    return {"title": one_line(hit.passage.title), "text": one_line(hit.passage.text)}


def joined(segments: Sequence[Segment]) -> list[Segment]:
    """The segments with stretches of plain text made one each."""
    runs = groupby(segments, key=lambda segment: isinstance(segment, str))
    return [one for plain, run in runs for one in (["".join(run)] if plain else run)]


def one_line(text: str) -> str:
    """The text without its line breaks, of any kind that a reader may take for one."""
    lines = text.splitlines()
    return text if lines == [text] else " ".join(line.strip() for line in lines if line.strip())


def extract(text: str, template: Template) -> str | None:
    """The prediction in a reader's text; None where it did not keep the form.

    After the last marker that something follows: what stands in the angle brackets
    that the form shows, else the rest of the line without its closing mark.
    """
    if template.yes_no:
        return released_answer(text, yes_no=True)
    if template.marker is None:
        return text.strip() or None
    for rest in reversed(text.split(template.marker)[1:]):
        line = rest.strip().split("\n", 1)[0]
        bracketed = re.match(r"<([^<>]+)>", line)
        if said := (bracketed[1] if bracketed else line.rstrip(".; ")).strip():
            return said
    return None


def released_answer(text: str, yes_no: bool) -> str | None:
    """What DRAGIN's released code takes for the answer in a reader's text (D28)."""
    _, found, rest = text.partition("the answer is")
    if not found:
        return None
    if yes_no:
        return "yes" if rest[1:4] == "yes" else "no"
    return rest[1:].removesuffix("</s>").removesuffix("<|endoftext|>").removesuffix(".")


# Quoted from DR-RAG, table 9: the one prompt that the paper prints.
_DRRAG_BODY = """You are a reading comprehension expert, and you need to complete a reading \
comprehension task.

Contexts
{passages}
After reading the documents above, answering the following question. Reasoning step by step. \
At last, you should output the final result via the following format:

Answer: <your answer based on the documents>; Please answer the question directly.

Question:
{question}
Give your analysis process first, and then output your answer in a specified format."""

# Ours: the same words where a method answers without passages, which table 9 has no form for.
_DRRAG_BARE = """You are a reading comprehension expert, and you need to answer a question. \
Reasoning step by step. At last, you should output the final result via the following format:

Answer: <your answer>; Please answer the question directly.

Question:
{question}
Give your analysis process first, and then output your answer in a specified format."""

_DRRAG = Template(
    name="drrag",
    source="DR-RAG, table 9",
    passage="Document {number}:\n{text}\n",
    body=_DRRAG_BODY,
    bare=_DRRAG_BARE,
    marker="Answer:",
    chat=True,
)

# Invented for this book, in the testbed's manner; their names occur in no world.
_EXEMPLARS = """Read the passages and answer the question with a few words.

Passage: Harbour of Glass is a drama film directed by Ilvo Brannek. It was first shown in 1961.
Passage: Ilvo Brannek was a director who was born in the town of Sarrow.
Question: In which town was the director of Harbour of Glass born?
Answer: Sarrow

Passage: Tessaly Vroom founded Vroom Instruments, a maker of clocks.
Passage: Vroom Instruments has its headquarters in Old Perrin.
Question: Who started Vroom Instruments?
Answer: Tessaly Vroom

Passage: Maurin Delk (born 3 May 1907) was a composer.
Passage: Ansa Rhoe (born 12 July 1911) was a composer and teacher.
Question: Who was born first, Maurin Delk or Ansa Rhoe?
Answer: Maurin Delk

Passage: The Quiet Orchard was released in 1988.
Passage: A Lamp for Winter was released in 1979.
Question: Did The Quiet Orchard come out before A Lamp for Winter?
Answer: no

Passage: Corve Stadium seats 18,400 people and is the home of Corve United.
Question: How many people can sit in the stadium of Corve United?
Answer: 18,400

Passage: Jessamy Orr married the painter Pell Ostrand in 1952.
Passage: Pell Ostrand was a citizen of Varnia.
Question: What is the nationality of the husband of Jessamy Orr?
Answer: Varnia

"""

_ASK = "Question: {question}\nAnswer:"
_CONTEXT = "Context:\n{passages}Answer in the same format as before.\n"
_STEP_BY_STEP = "Let's think it step by step."
_STEPS = "Answer the following question by reasoning step-by-step, following the example above.\n"
_YES_NO = "Following the examples above, answer the question by reasoning step-by-step.\n\n"
_DRAGIN = Template(
    name="dragin",
    source="DRAGIN, appendix F",
    passage="[{number}] {text}\n",
    body=_CONTEXT + _ASK,
    bare=_ASK,
    marker="So the answer is",
    stop=("\n",),
)

_COT = replace(
    _DRAGIN,
    name="cot",
    source="DRAGIN, section 3.3, without its exemplars",
    body="Below are the external knowledge references:\n{passages}"
    "Please answer the question based on the external knowledge:\n" + _ASK,
)

# R²AG, table 5. The row of R²AG has lost its end there; with the "Answer:" of the others it differs
# from RAG's by the one added sentence and the word before each embedding, and by nothing else.
_ONLY = "Only give me the answer and do not output any other words.\n"
_INSTRUCTION = (
    "Write a high-quality answer for the given question using only the provided search results "
    "(some of which might be irrelevant). "
)
_R2AG_RAG = Template(
    name="r2ag_rag",
    source="R²AG, table 5: RAG",
    passage="[{number}](Title: {title}) {text}\n",
    body=f"{_INSTRUCTION}{_ONLY}\n{{passages}}\n{_ONLY}{_ASK}",
    bare=f"Write a high-quality answer for the given question. {_ONLY}\n{_ASK}",
    chat=True,
    stop=("\n",),
)
_R2AG = replace(
    _R2AG_RAG,
    name="r2ag",
    source="R²AG, table 5: R²AG",
    passage="[{number}]similarity: {soft}(Title: {title}) {text}\n",
    body=f"{_INSTRUCTION}{_ONLY.strip()} The similarity information is provided in front "
    f"of search results.\n\n{{passages}}\n{_ONLY}{_ASK}",
)

PROMPTS = MappingProxyType(
    {
        "drrag": _DRRAG,
        "drrag_informed": replace(
            _DRRAG,
            name="drrag_informed",
            source="DR-RAG, table 9, with places as R²AG's table 5 has them",
            passage="Document {number}: {soft}\n{text}\n",
        ),
        "cot": _COT,
        # Without appendix F's exemplars there are no "examples above" to follow.
        "cot_yes_no": replace(
            _COT,
            name="cot_yes_no",
            source="DRAGIN, section 3.3, for StrategyQA",
            yes_no=True,
        ),
        "dragin": _DRAGIN,
        "dragin_yes_no": replace(
            _DRAGIN,
            name="dragin_yes_no",
            source="DRAGIN, appendix F, for StrategyQA",
            body=_CONTEXT + _YES_NO + _ASK,
            bare=_YES_NO + _ASK,
            yes_no=True,
        ),
        "dragin_steps": replace(
            _DRAGIN,
            name="dragin_steps",
            source="DRAGIN, appendix F, for HotpotQA",
            body=_CONTEXT + _STEPS + _ASK,
            bare=_STEPS + _ASK,
        ),
        "chat": Template(
            name="chat",
            source="this book: plain words, for a reader that was taught to follow them",
            passage="{text}\n",
            body="{passages}\nAnswer with a few words: {question}",
            bare="Answer with a few words: {question}",
            chat=True,
            stop=("\n",),
        ),
        "selfrag": Template(
            name="selfrag",
            source="Self-RAG, the released checkpoints' prompts",
            passage="{title}\n{text}\n",
            body="### Instruction:\n{question}\n\n### Input:\n{passages}\n### Response:\n",
            bare="### Instruction:\n{question}\n\n### Response:\n",
        ),
        "short": Template(
            name="short",
            source="this book: six invented exemplars, short answers",
            passage="Passage: {text}\n",
            body="{passages}" + _ASK,
            exemplars=_EXEMPLARS,
            stop=("\n",),
        ),
        "r2ag_rag": _R2AG_RAG,
        "r2ag_cot": replace(
            _R2AG_RAG,
            name="r2ag_cot",
            source="R²AG, table 5: CoT",
            body=_R2AG_RAG.body.removesuffix("Answer:") + _STEP_BY_STEP,
            bare=_R2AG_RAG.bare.removesuffix("Answer:") + _STEP_BY_STEP,
        ),
        "r2ag_compressed": replace(
            _R2AG_RAG,
            name="r2ag_compressed",
            source="R²AG, table 5: compression",
            passage="{text}\n",
        ),
        "r2ag": _R2AG,
        # The same words for a reader that has no chat template, as Gemma 3 270M as it ships.
        "r2ag_rag_plain": replace(_R2AG_RAG, name="r2ag_rag_plain", chat=False),
        "r2ag_plain": replace(_R2AG, name="r2ag_plain", chat=False),
    }
)
