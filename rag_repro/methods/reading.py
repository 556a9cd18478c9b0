"""Reading prompts: how passages and a question are put before a reader.

Every method of a comparison reads with the same template and the same
extraction, so that no method wins by its wording.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..schema import Hit, Prefix, Prompt, Question, Until


@dataclass(frozen=True)
class Template:
    """A reading prompt.

    passage: one line of `str.format` with number, title, text.
    body: the user's words, with {passages} and {question}. bare: the same for a
        question without passages; None: the body, with nothing in its place.
    exemplars: shared text before the body (`Prefix`: computed once a batch).
    marker: what stands before the answer in the reader's text; None: the whole
        text is the answer.
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

    def fill(self, question: Question, hits: Sequence[Hit]) -> Prompt:
        """The prompt for one question; the hits stand in their given order.

        The one place where text of the data enters a prompt. Each text takes one
        line, so that none can open a line that looks like the prompt's own
        ("Question:", "Answer:"), and is put in once: braces in it mean nothing.
        """
        passages = "".join(
            self.passage.format(
                number=i, title=one_line(h.passage.title), text=one_line(h.passage.text)
            )
            for i, h in enumerate(hits, start=1)
        )
        wording = self.body if hits or self.bare is None else self.bare
        body = wording.format(passages=passages, question=one_line(question.text))
        segments = (Prefix(self.exemplars), body) if self.exemplars else (body,)
        return Prompt.of(*segments, chat=self.chat)


def one_line(text: str) -> str:
    """The text without its line breaks, of any kind that a reader may take for one."""
    lines = text.splitlines()
    return text if lines == [text] else " ".join(line.strip() for line in lines if line.strip())


def extract(text: str, template: Template) -> str | None:
    """The prediction in a reader's text; None where it did not keep the form.

    After the last marker: what stands in the angle brackets that the form
    shows, else the rest of the line without its closing mark.
    """
    if template.marker is None:
        return text.strip() or None
    _, found, rest = text.rpartition(template.marker)
    if not found:
        return None
    line = rest.strip().split("\n", 1)[0]
    bracketed = re.match(r"<([^<>]+)>", line)
    return (bracketed[1] if bracketed else line.rstrip(".; ")).strip() or None


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

PROMPTS = MappingProxyType(
    {
        "drrag": Template(
            name="drrag",
            source="DR-RAG, table 9",
            passage="Document {number}:\n{text}\n",
            body=_DRRAG_BODY,
            bare=_DRRAG_BARE,
            marker="Answer:",
            chat=True,
        ),
        "cot": Template(
            name="cot",
            source="DRAGIN, section 3.3, without its exemplars",
            passage="[{number}] {text}\n",
            body="Below are the external knowledge references:\n{passages}"
            "Please answer the question based on the external knowledge:\n"
            "Question: {question}\nAnswer:",
            bare="Question: {question}\nAnswer:",
            marker="So the answer is",
            stop=("\n",),
        ),
        "dragin": Template(
            name="dragin",
            source="DRAGIN, appendix F",
            passage="[{number}] {text}\n",
            body="Context:\n{passages}Answer in the same format as before.\n"
            "Question: {question}\nAnswer:",
            bare="Question: {question}\nAnswer:",
            marker="So the answer is",
            stop=("\n",),
        ),
        "dragin_steps": Template(
            name="dragin_steps",
            source="DRAGIN, appendix F, for HotpotQA",
            passage="[{number}] {text}\n",
            body="Context:\n{passages}Answer in the same format as before.\n"
            "Answer the following question by reasoning step-by-step, following the example "
            "above.\nQuestion: {question}\nAnswer:",
            bare="Answer the following question by reasoning step-by-step, following the example "
            "above.\nQuestion: {question}\nAnswer:",
            marker="So the answer is",
            stop=("\n",),
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
            body="{passages}Question: {question}\nAnswer:",
            exemplars=_EXEMPLARS,
            stop=("\n",),
        ),
    }
)
