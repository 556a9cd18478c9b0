"""One testbed question through ERM4's pipelines, made live, in the form of its figure 4.

rewriter -> queries -> which passages each brings -> response;   filter -> label of each passage
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data import is_made_here
from ..data.dataset import Dataset
from ..schema import Answer, Question
from ..study import runner
from ..study.papers import Cell
from ..study.scores import Results
from ..study.services import Workshop
from . import cases, missing
from .missing import Missing
from .picture import Note
from .table import Table
from .traces import question_table, roles_of, short

TEXT = 140  # characters of a passage that the page shows


def case(
    cells: Mapping[str, Cell],
    results: Results,
    workshop: Workshop,
    *,
    judge: str,
    kinds: Sequence[str] = ("comparison",),
    metric: str = "acc_words",
    explained: Cell | None = None,
) -> list[Table | Note]:
    """Pages to be shown one by one: the question, the rewriters, the filter.

    cells: of one testbed data set, by what they are called; the first is what the last is
    compared with. judge: which of them filters. explained: a cell whose judge explains before
    it labels; its explanations stand beside where its judge is trained. The question is the
    first of these kinds of which the first cell misses a gold passage that another finds, and
    which the last answers and the first does not, by the records; without such a one, the first
    that it misses, that the last answers, or of these kinds at all.
    """
    lacking = [command for cell in cells.values() for command in missing.untrained(cell)]
    if lacking:
        return [Missing(tuple(dict.fromkeys(lacking))).note]
    before, *_, after = cells.values()
    if not is_made_here(after.condition.dataset):
        return [Note("Texts of public data sets are not shown here.")]
    dataset = workshop.dataset(after.condition.dataset, after.condition.split)
    found = cases.versus(results, before, after, cases.higher(metric))
    gained = [] if found is None else [line["id"] for line, _ in found.gained]
    question = _chosen(gained, _missed(results, before, list(cells.values())[1:]), dataset, kinds)
    told = {said: asked(cell, question, workshop) for said, cell in cells.items()}
    why: dict[str, str] = {}
    if explained is not None and not missing.untrained(explained):
        answer = asked(explained, question, workshop)
        why = {e["passage"]: e["explanation"] or "" for e in _events(answer, "filter")}
    numbers = _numbered(told.values())
    return [
        question_table(question, dataset),
        _rewriters(told, question, numbers),
        _filter(told[judge], question, dataset, numbers, why),
    ]


def _missed(results: Results, before: Cell, others: Sequence[Cell]) -> list[str]:
    """Questions of which one of the others found more gold passages."""
    most: dict[str, float] = {}
    for scores in filter(None, (results.scores(cell, "recall") for cell in others)):
        for name, value in scores.by_id().items():
            most[name] = max(value, most.get(name, 0.0))
    if (held := results.scores(before, "recall")) is None:
        return []
    return [name for name, value in held.by_id().items() if most.get(name, 0.0) > value]


def _chosen(
    gained: Sequence[str], missed: Sequence[str], dataset: Dataset, kinds: Sequence[str]
) -> Question:
    """The first of these kinds that is both; else missed, else gained, else of the data set."""
    both = [name for name in missed if name in gained]
    for name in (*both, *missed, *gained):
        if dataset.by_id[name].kind in kinds:
            return dataset.by_id[name]
    return next((q for q in dataset.questions if q.kind in kinds), dataset.questions[0])


def asked(cell: Cell, question: Question, workshop: Workshop) -> Answer:
    """The question's answer now. ValueError: it failed."""
    services = workshop.services(cell.condition)
    [(_, answer)] = runner.answers(cell.condition, [question], services, 1)
    if answer.error is not None:
        raise ValueError(f"{cell.exhibit}, question {question.id!r}: {answer.error}")
    return answer


def _events(answer: Answer, stage: str) -> list[Mapping[str, Any]]:
    return [event for event in answer.trace if event.get("stage") == stage]


def _numbered(answers: Any) -> dict[str, int]:
    """Passage -> its number on the page, in the order in which they are met."""
    names = (
        name
        for answer in answers
        for event in _events(answer, "retrieve")
        for name in event["found"]
    )
    return {name: place for place, name in enumerate(dict.fromkeys(names), start=1)}


def _rewriters(told: Mapping[str, Answer], question: Question, numbers: Mapping[str, int]) -> Table:
    """One line a query: what was written, which passages it brings (gold ones starred)."""
    gold, body = set(question.gold_ids), []
    for said, answer in told.items():
        wrote = _events(answer, "rewrite")
        fault = next((e["fault"] for e in wrote if e["fault"]), "")
        new = next((e["parts"][0] for e in wrote if e["by"] == "plus" and e["parts"]), "")
        searches = _events(answer, "retrieve")
        for place, event in enumerate(searches or [None]):
            brought = "" if event is None else _told(event["found"], gold, numbers)
            query = "" if event is None else event["query"]
            first = place == 0
            body.append(
                [
                    said if first else "",
                    (f"(not in form: {fault})" if fault else new) if first else "",
                    query,
                    brought,
                    (answer.prediction or "(none)") if first else "",
                ]
            )
    head = ["row", "rewritten question", "query", "passages it brings (* gold)", "response"]
    return Table(head, body, f"“{question.text}”: queries, and what they bring")


def _told(names: Sequence[str], gold: set[str], numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{numbers[name]}{'*' if name in gold else ''}" for name in names)


def _filter(
    answer: Answer,
    question: Question,
    dataset: Dataset,
    numbers: Mapping[str, int],
    why: Mapping[str, str],
) -> Table:
    """One line a judged passage: number, title, text, whether gold, label and its probability."""
    roles = roles_of(question)
    passages, body = dataset.corpus.by_id, []
    for event in _events(answer, "filter"):
        name, sure = event["passage"], event["probability"]
        cells = [numbers.get(name, ""), passages[name].title, short(passages[name].text, TEXT)]
        cells += [roles.get(name, ""), event["label"], "" if sure is None else f"{100 * sure:.0f}"]
        body.append([*cells, *([short(why.get(name, ""), TEXT)] if why else [])])
    head = ["no.", "passage", "text", "gold", "label", "entailed, %"]
    head += ["explained (by the filter that explains first)"] if why else []
    return Table(head, body, "What the filter says of each passage that it judged")
