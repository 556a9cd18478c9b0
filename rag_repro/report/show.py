"""One question's recorded answers, joined with the local data."""

from __future__ import annotations

from pathlib import Path

from ..study import papers
from ..study.papers import StudyError
from ..study.scores import Results
from ..study.services import Workshop
from .escape import one_line


def question(
    exhibit_name: str,
    question_id: str,
    results: Path,
    *,
    data_dir: Path | None = None,
    tier: str | None = None,
) -> str:
    """The question with its gold passages, then what each method of the exhibit did with it.

    Where several data sets hold the id (worlds number their questions alike),
    it is the first of them. Raises StudyError where no record of the exhibit
    holds the question, or the records are of another corpus than the data at
    hand, and the data's own error where the data set is not at hand.
    """
    _, exhibit = papers.exhibit(exhibit_name)
    records = Results(results)
    held = [
        (cell, line)
        for cell in exhibit.cells(tier)
        for line in records.lines(cell) or ()
        if line["id"] == question_id
    ]
    if not held:
        raise StudyError(
            f"no record of {exhibit_name} holds the question {question_id!r}; "
            f"`rag-repro exhibit {exhibit_name} --format csv` says which data sets it has"
        )
    workshop = Workshop(data_dir=data_dir)
    dataset_name = held[0][0].condition.dataset
    dataset = workshop.dataset(dataset_name, None)
    held = [(cell, line) for cell, line in held if cell.condition.dataset == dataset_name]
    passages = dataset.corpus.by_id
    strange = [name for _, line in held for name in line["hits"] if name not in passages]
    if question_id not in dataset.by_id or strange:
        raise StudyError(
            f"the records of {question_id!r} were made from other data than the {dataset_name} "
            f"at hand, which lacks {strange[0] if strange else question_id!r}; take the data set "
            "that the records were made from"
        )
    asked = dataset.by_id[question_id]
    gold = set(asked.gold_ids)
    lines = [
        f"{one_line(asked.id)} ({dataset.name}, {one_line(asked.kind)})",
        f"  question  {one_line(asked.text)}",
        f"  answers   {one_line(' | '.join(asked.answers))}",
    ]
    for g in asked.gold:
        passage = passages[g.passage_id]
        lines.append(
            f"  gold      [{g.role or '?'}] {one_line(f'{passage.title}: {passage.text}')}"
        )
    for cell, line in held:
        settings = ", ".join(f"{k} {v}" for k, v in cell.keys.items() if k != "dataset")
        lines.append(f"\n{settings}")
        for rank, name in enumerate(line["hits"], start=1):
            mark = "gold" if name in gold else "    "
            lines.append(f"  {rank:2d}. {mark} {one_line(passages[name].title)}")
        if "text" in line:
            lines.append(f"  says      {line['text']!r}, taken as {line['prediction']!r}")
        scores = ", ".join(f"{k} {v:g}" for k, v in line["scores"].items())
        lines.append(f"  scores    {scores}")
        if "error" in line:
            lines.append(f"  failed    {one_line(line['error'])}")
    return "\n".join(lines)
