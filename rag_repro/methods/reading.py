"""Reading prompts: how passages and a question are put before a reader.

Every method of a comparison reads with the same template and the same
extraction, so that no method wins by its wording.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from rag_repro.arguments import path as as_path
from rag_repro.data import ENVIRONMENT
from rag_repro.plain import PlainError, from_json, from_yaml, text_of
from rag_repro.schema import Hit, Prefix, Prompt, Question, Segment, Soft, Until
from rag_repro.words import nearest

SOFT = "{soft}"
EXEMPLARS, OWN_EXEMPLARS = "dragin_exemplars.jsonl", "own"
"""The file in the data folder with the exemplars of DRAGIN's paper (appendix F), which are text of
others; the name of ours in the same form."""


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

    def __post_init__(self):
        object.__setattr__(self, "stop", tuple(self.stop))

    @property
    def informed(self) -> bool:
        """Whether each passage has a place for an embedding."""
        return SOFT in self.passage

    def lesson_answer(self, answer: str) -> str:
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
        return Prompt.from_segments(*segments, chat=self.chat)

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


TEXTS = from_yaml(text_of(Path(__file__).with_name("prompts.yaml")))
"""Every prompt's words."""


PROMPTS = MappingProxyType({name: Template(name, **own) for name, own in TEXTS["reading"].items()})


def with_exemplars(template: Template, name: str | None) -> Template:
    """The template behind exemplars: a data set's of the paper, "own", or (None) as it is.

    Raises ValueError: an unknown name; no data folder, or no file of exemplars in it.
    """
    if name is None:
        return template
    own = [tuple(one.values()) for one in TEXTS["dragin_exemplars"]]
    pairs = own if name == OWN_EXEMPLARS else _paper_exemplars(name, os.environ.get(ENVIRONMENT))
    text = "".join(f"Question: {question}\nAnswer: {answer}\n\n" for question, answer in pairs)
    return replace(template, exemplars=text)


@lru_cache(maxsize=8)
def _paper_exemplars(name: str, folder: str | None) -> tuple[tuple[str, str], ...]:
    if not folder:
        raise ValueError(
            f"exemplars of {name!r} lie in the data folder: set {ENVIRONMENT}, or take "
            f"exemplars: {OWN_EXEMPLARS}"
        )
    path = as_path(folder) / EXEMPLARS
    try:
        rows = [from_json(line) for line in text_of(path).splitlines() if line.strip()]
        held = [(row["dataset"], row["question"], row["answer"]) for row in rows]
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; take exemplars: {OWN_EXEMPLARS}") from None
    except (PlainError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a file of exemplars ({error})") from None
    known = dict.fromkeys(dataset for dataset, *_ in held)
    if name not in known:
        raise ValueError(
            f"there are no exemplars of {name!r}{nearest(name, [*known, OWN_EXEMPLARS])}; "
            f"there are: {', '.join([*known, OWN_EXEMPLARS])}"
        )
    return tuple((question, answer) for dataset, question, answer in held if dataset == name)
