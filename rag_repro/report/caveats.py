"""How sure we are, in plain words: sizes, models, tiers and failures, read from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data.public.registry import registry
from ..data.titles import DATASETS, word
from ..evaluation.verdicts import INCONCLUSIVE, UNSAID
from ..study.conditions import TIERS
from ..study.judge import EXPLORATORY
from ..study.papers import Cell
from .escape import as_html, as_myst
from .table import is_numeric


@dataclass(frozen=True)
class Recorded:
    """One condition with its recorded answers (at most its n), None where nobody ran it."""

    cell: Cell
    lines: Sequence[Mapping[str, Any]] | None


def with_verdict(claims: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in claims if row["verdict"] not in UNSAID]


def states(claims: Sequence[Mapping[str, Any]]) -> str:
    """How many verdicts are in which state, in a sentence."""
    judged = with_verdict(claims)
    each = Counter(row["state"] for row in judged)
    said = ", ".join(f"{n:,} {state}" for state, n in sorted(each.items()))
    changed = sum(bool(row["changed"]) for row in judged if row["state"] == EXPLORATORY)
    return (
        f"Of {count(len(judged), 'verdict')}, a tier each, {said}; of the exploratory ones "
        f"{changed:,} rest on tests that were changed after records had been seen."
    )


def how_sure(claims: Sequence[Mapping[str, Any]], recorded: Sequence[Recorded]) -> str:
    judged = with_verdict(claims)
    points = [
        *(_of_sizes(judged) if judged else ["There is no verdict to be sure of."]),
        *_of_subsets(_sizes(recorded)),
        *_of_models([r.cell for r in recorded if r.lines]),
        *(_of_tiers({row["tier"] for row in judged}) if judged else []),
        *_of_failures([line for r in recorded for line in r.lines or ()]),
    ]
    return "\n".join(f"- {point}" for point in points)


def _of_sizes(judged: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    sizes = sorted(row["n"] for row in judged if row["n"] != "")
    if sizes:
        missing = f"{len(sizes) / 20:.{0 if len(sizes) > 100 else 1}f}"
        yield (
            f"{count(len(sizes), 'verdict')} with an interval, each from {sizes[0]:,} to "
            f"{sizes[-1]:,} answered questions. Of so many 95 % intervals about "
            f"{missing} miss the truth by chance alone."
        )
    unclear = [row for row in judged if row["verdict"] == INCONCLUSIVE]
    if unclear:
        are = "is" if len(unclear) == 1 else "are"
        yield (
            f"{len(unclear)} of {count(len(judged), 'verdict')} {are} inconclusive: the interval "
            "holds both what is claimed and what would refute it; more questions would tell. "
            "The smallest difference that these could show stands beside δ."
        )


def _of_subsets(sizes: Mapping[tuple[str, str], int]) -> Iterable[str]:
    parts = [
        DATASETS.get(name, name)
        for (tier, name), n in sizes.items()
        if tier != "testbed" and name in registry() and n < (registry()[name].full_size or 0)
    ]
    if parts:
        yield (
            f"Asked on parts of the whole sets ({'; '.join(map(as_myst, parts))}), over smaller "
            "corpora: our values are not comparable with published ones."
        )


def _of_models(cells: Sequence[Cell]) -> Iterable[str]:
    readers = sorted({word(c.condition.reader) for c in cells if c.condition.reader})
    retrievers = sorted({c.condition.retriever for c in cells if c.condition.retriever})
    if retrievers:
        yield (
            f"Searched with {count(len(retrievers), 'retriever')}, which need not be what the "
            f"papers searched with.{_named(retrievers)}"
        )
    if readers:
        yield (
            f"Read by {count(len(readers), 'reader')}: open models, most of them far smaller than "
            f"the papers'.{_named(readers)}"
        )
    elif cells:
        yield (
            "No language model has answered yet: what is recorded is about retrieval, nothing "
            "about answers."
        )
    seeds: dict[tuple[str, str], set[int]] = {}
    for cell in cells:
        if "seed" in cell.keys:  # a row of its exhibit, since another may train it otherwise
            seeds.setdefault((cell.exhibit, cell.keys["method"]), set()).add(cell.keys["seed"])
    if single := sum(len(held) == 1 for held in seeds.values()):
        told = (
            "is in none of their intervals"
            if single == len(seeds)
            else "is in their intervals as far as the others' trainings tell"
        )
        yield (
            f"Of {count(len(seeds), 'trained row')} {single} "
            f"{'rests' if single == 1 else 'rest'} on one training: how far another training would "
            f"differ {told}."
        )


def _of_tiers(judged: set[str]) -> Iterable[str]:
    if "testbed" in judged:
        yield (
            "Testbed verdicts say whether a mechanism works where its conditions are known to "
            "hold, not how often they hold in real text."
        )
    unseen = [tier for tier in TIERS if tier not in judged]
    if unseen:
        yield f"No claim has a verdict at tier {' or '.join(f'`{t}`' for t in unseen)}."


def _of_failures(lines: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    failed = sum("error" in line for line in lines)
    if failed:
        yield f"{failed:,} of {count(len(lines), 'answer')} failed and count as wrong."


def asked(recorded: Sequence[Recorded]) -> str:
    """A line a data set: how many questions were asked, and how many the whole set has."""
    body = [
        [tier, DATASETS.get(name, name), f"{n:,}", _whole(name)]
        for (tier, name), n in _sizes(recorded).items()
    ]
    if not body:
        return ""
    head = ["tier", "data set", "questions asked", "questions of the whole set"]
    return table(head, body, "Questions that were asked", "tab-asked")


def _sizes(recorded: Sequence[Recorded]) -> dict[tuple[str, str], int]:
    """(tier, data set) -> different questions that have a record."""
    asked: dict[tuple[str, str], set[str]] = {}
    for r in recorded:
        if r.lines:
            ids = asked.setdefault((r.cell.tier, r.cell.condition.dataset), set())
            ids.update(line["id"] for line in r.lines)
    return {place: len(ids) for place, ids in asked.items()}


def _whole(dataset: str) -> str:
    if dataset.startswith("world-"):
        return "invented; any number can be made"
    source = registry().get(dataset)
    if source is None or source.full_size is None:
        return "not known"
    return f"{source.full_size:,} ({source.split.strip('()')})"


# ------------------------------------------------------------------------- forms


def table(
    head: Sequence[str],
    body: Sequence[Sequence[Any]],
    caption: str = "",
    name: str = "",
    form: str = "rr-short",
) -> str:
    """A MyST table; with a caption it has a number, and `{numref}` finds it by its name.

    A cell that is a tuple holds lines. form: the class that says how it is laid out, "rr-short"
    (no cell wraps) or "rr-claims" (the first column holds sentences).
    """
    columns = zip(*body, strict=True)
    sides = ["---:" if is_numeric(column) else "---" for column in columns] or ["---"] * len(head)
    lines = [list(map(as_myst, head)), sides]
    lines += [[_cell(value) for value in row] for row in body]
    made = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    if not caption:
        return made
    return f"```{{table}} {caption}\n:name: {name}\n:class: {form}\n\n{made}\n```"


def _cell(value: Any) -> str:
    return "<br>".join(map(as_myst, value)) if isinstance(value, tuple) else as_myst(value)


def count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def _named(names: Sequence[str]) -> str:
    """Names below a point of a list, folded away."""
    told = ", ".join(f"<code>{as_html(name)}</code>" for name in names)
    summary = "its name" if len(names) == 1 else "their names"
    return f"\n  <details><summary>{summary}</summary>{told}</details>"
