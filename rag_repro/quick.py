"""One question answered, with every step: `rag_repro.ask`.

It stands on what the book itself uses (methods, engine, workshop), and is short enough to be read
as an example of it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rag_repro import data, engine
from rag_repro.methods.dragin.alarms import watched
from rag_repro.plain import shortened
from rag_repro.retrieval import NO_CORPUS
from rag_repro.retrieval.interface import SCHEMES
from rag_repro.schema import Answer, Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.show import traces
from rag_repro.show.traces import Step
from rag_repro.study.services import Workshop, refuse_limits
from rag_repro.study.setups import DEFAULT, READER, setup
from rag_repro.words import printable

log = logging.getLogger(__name__)


class AskError(ValueError):
    """A question that its method could not answer; the message says why."""


@cache
def workshop() -> Workshop:
    """The one that is used where none is given: indexes and weights are loaded once a process."""
    return Workshop()


@dataclass(frozen=True, repr=False)
class Asked:
    """An answer with the steps that led to it. Prints, and shows on a page, as its trace."""

    question: Question
    answer: Answer
    steps: tuple[Step, ...]

    @property
    def prediction(self) -> str | None:
        """The answer in short; None where the reader did not keep to the asked form."""
        return self.answer.prediction

    def __repr__(self) -> str:
        return traces.text(self.steps, self.question, self.answer)

    def __str__(self) -> str:
        return printable(repr(self))

    def _repr_html_(self) -> str:
        return traces.table(self.steps, self.question, self.answer)._repr_html_()


def ask(
    question: str | Question,
    corpus: str | Path | Corpus | Dataset | None = None,
    *,
    method: str = "bm25-rag",
    retriever: Any = DEFAULT,
    reader: str | None = READER,
    services: Workshop | None = None,
    **settings: Any,
) -> Asked:
    """Answer one question over some passages, and keep every step.

    corpus: a folder of texts (a Path, or "folder:PATH"; see `data.own`), a name
    that `data.load` knows, or passages in memory. method: "drrag", "erm4", "dragin",
    "r2ag" or a baseline, with thresholds and trained parts of the book's main result (`rag-repro
    methods` lists them). retriever: "default" is that of the book's main result. reader: where a
    method needs a trained one, the one that was trained over `reader`; None: passages are only
    found.
    settings: the method's, as k=4. services: a workshop of one's own, for another device or dtype.

    retriever may also be your own: a function (query, k) -> [(title, text)], an object with such
    a `search`, LangChain's retriever, (index, texts, "minilm") of FAISS, (index, texts) of bm25s,
    or a service's address (`retrieval.served` has its form). Then a corpus may be left out; given,
    its gold passages are recognised by their texts.

        def search(query, k):
            return [(page.title, page.text) for page in my_index.lookup(query)[:k]]

        ask("Who built the lighthouse of Marrowick?", retriever=search, k=2)

    Raises ValueError for an unknown name or setting and for a reader that cannot serve the method,
    AskError where the method fails.
    """
    chosen = setup(method, settings, retriever=retriever, reader=reader)
    configured = chosen.configured
    if not isinstance(question, str | Question):
        raise AskError(f"the question {shortened(repr(question), 60)} is no text; give a text")
    asked = question if isinstance(question, Question) else Question("q", question.strip(), ())
    if not asked.text:
        raise AskError("the question is empty")
    made, passages = services or workshop(), _corpus(corpus, chosen.retriever)
    if "reservoir" in configured.needs.values():
        raise AskError(f"{method} remembers earlier questions, and this is one: use `compare`")
    serving = {}
    if chosen.retriever is not None:
        serving["retriever"] = made.retriever(chosen.retriever, passages)
        refuse_limits(serving["retriever"], chosen.spec, configured, [asked])
    serving |= {
        name: made.over_corpus(kind, name, passages) for name, kind in configured.needs.items()
    }
    if chosen.reader is not None:
        serving["reader"] = made.reader(chosen.reader)
    heard: list[Step] = []
    task = engine.Task(asked, traces.listen(chosen.spec.run, heard), configured)
    [(_, answer)] = engine.run([task], serving, batch_size=1)
    if answer.error is not None:
        raise AskError(f"{method} could not answer {asked.text!r}: {answer.error}")
    if (alarms := watched(configured)) is not None:
        alarms.add(answer)
        if remark := alarms.remark():
            log.warning("%s: %s", method, remark)
    return Asked(asked, answer, tuple(heard))


def _corpus(given: str | Path | Corpus | Dataset | None, retriever: Any) -> Corpus:
    if given is None:
        if isinstance(retriever, str) and not retriever.startswith(SCHEMES):
            raise AskError(
                f"the retriever {retriever!r} searches a corpus, and none is given: name one, as "
                "folder:PATH, or give a retriever of your own"
            )
        return NO_CORPUS
    if isinstance(given, Corpus):
        return given
    if isinstance(given, Dataset):
        return given.corpus
    folder = given if isinstance(given, Path) else None
    if isinstance(given, str) and given.startswith(data.FOLDER):
        folder = Path(given.removeprefix(data.FOLDER))
    if folder is None:
        return data.load(str(given)).corpus
    from rag_repro.data import own

    return own.corpus(folder)
