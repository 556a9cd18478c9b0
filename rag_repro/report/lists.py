"""A list of passages as R²AG's former is told of it: features, head, and prompt, made live.

Nothing is read here: an encoder is enough, and of the corpus only the lists' own passages
are encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import engine, retrieval
from ..data.dataset import Corpus, Dataset
from ..methods.r2ag.features import COLUMNS
from ..methods.r2ag.method import R2AGSettings, gold_of, placed, r2ag
from ..methods.reading import PROMPTS
from ..schema import Answer, Hit, Question, Soft
from ..study.papers import Cell
from ..study.services import Workshop
from . import missing, trained
from .desk import at_hand
from .escape import listing
from .picture import Note
from .table import Table
from .traces import roles_of, short

SYMBOLS = dict(zip(COLUMNS, ("r", "γ", "ζ"), strict=True))


@dataclass(frozen=True, eq=False)
class Listed:
    """A question with its candidates as ranked, and their features (k, 3)."""

    question: Question
    hits: tuple[Hit, ...]
    rows: np.ndarray

    @property
    def labels(self) -> list[int]:
        """1 for each gold passage, 0 for another."""
        return gold_of(self.question, self.hits)


def of(
    dataset: Dataset,
    questions: Sequence[Question],
    workshop: Workshop,
    encoder: str = "minilm",
    most: int | None = None,
) -> list[Listed]:
    """The questions' own candidates through the method itself, up to where a reader is asked.

    most: only the best so many of each list. ValueError: a question without candidates, or
    another that the method cannot be asked.
    """
    ids = dict.fromkeys(name for q in questions for name in q.candidates)
    corpus = Corpus(f"{dataset.name}-lists", tuple(dataset.corpus.by_id[name] for name in ids))
    made = workshop.encoder(encoder)
    services = {"retriever": retrieval.build("dense", corpus, encoder=made), encoder: made}
    tasks = []
    for q in questions:
        k = min(len(q.candidates), most or len(q.candidates))
        settings = R2AGSettings(k=k, prompt=None, own_candidates=True, encoder=encoder)
        tasks.append(engine.Task(q, r2ag, settings))
    answers = {task.question.id: answer for task, answer in engine.run(tasks, services)}
    return [_listed(dataset, question, answers[question.id]) for question in questions]


def by_dataset(cells: Iterable[Cell], workshop: Workshop, n: int) -> dict[str, list[Listed]]:
    """The lists of the first n questions of each of the cells' data sets whose data is here.

    As long as the cells have them (k): no former has more places.
    """
    asked = {cell.keys["dataset"]: cell.condition for cell in cells if at_hand(cell)}
    made = {}
    for name, condition in asked.items():
        dataset = workshop.dataset(condition.dataset, condition.split)
        most = condition.configured.k
        made[name] = of(dataset, dataset.first(n).questions, workshop, most=most)
    return made


def _listed(dataset: Dataset, question: Question, answer: Answer) -> Listed:
    if answer.error:
        raise ValueError(f"{dataset.name}, question {question.id!r}: {answer.error}")
    event = next(event for event in answer.trace if event["stage"] == "features")
    return Listed(question, answer.hits, np.array(event["rows"], dtype=np.float32))


def table(listed: Listed, former: str, name: str = "") -> Table:
    """A line a passage, as ranked: features, whether gold, and the head's probability of it.

    former: whose head (equation 7); a column without numbers says how to train it.
    """
    head = ["place", "passage", "gold", *SYMBOLS.values(), "head: gold, %"]
    roles = roles_of(listed.question)
    told = relevance(former, [listed])
    body = []
    for i, hit in enumerate(listed.hits):
        values = [f"{x:.3f}" for x in listed.rows[i]]
        said = f"{100 * told[0][i]:.0f}" if told else ""
        passage = hit.passage
        body.append([i + 1, passage.title, roles.get(passage.id, ""), *values, said])
    if not told:
        body[0][-1] = missing.of_trained([former], ("r2ag",))
    return Table(head, body, f"“{listed.question.text}”, and its candidates", name)


def relevance(former: str, lists: Sequence[Listed]) -> list[np.ndarray]:
    """The head's probability of each passage of each list; [] where the former is not trained."""
    folder = trained.weights(former)
    if folder is None:
        return []
    import torch

    from ..lm import former as formers
    from ..lm.adapters import card_of

    _, module = formers.load(folder, card_of(folder))
    with torch.no_grad():
        hidden = (module.attend(torch.tensor(one.rows)[None]) for one in lists)
        return [torch.sigmoid(module.relevance(h))[0].numpy() for h in hidden]


def prompt(listed: Listed, template: str, most: int = 60) -> Note:
    """The prompt for this list in the words of the paper's table 5; passages are cut short here.

    ⟨e_i⟩ stands where the former's embedding of passage i does.
    """
    form = PROMPTS[template]
    hits = [_cut(hit, most) for hit in listed.hits]
    soft = placed(listed.rows) if form.informed else ()
    segments = form.fill(listed.question, hits, soft).segments
    said = (f"⟨e_{s.index + 1}⟩" if isinstance(s, Soft) else str(s) for s in segments)
    return Note(listing("".join(said), "text"))


def _cut(hit: Hit, most: int) -> Hit:
    return replace(hit, passage=replace(hit.passage, text=short(hit.passage.text, most)))
