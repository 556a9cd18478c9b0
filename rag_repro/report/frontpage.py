"""The front page: what was tested, the verdicts so far, how sure we are, what comes next.

A MyST page made from the records alone. No number in it is written by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..data.public.registry import SOURCES
from ..evaluation.verdicts import INCONCLUSIVE, NOT_RUN, WORDS
from ..study import campaign, papers
from ..study.conditions import TIERS
from ..study.papers import Cell
from ..study.scores import Results
from . import ledger
from .tables import DATASETS, escaped

# The papers of this book: name in `study/papers`, short name, key of the bibliography.
BOOK = (
    ("drrag", "DR-RAG", "hei2024drrag"),
    ("erm4", "ERM4", "shi2024erm4"),
    ("dragin", "DRAGIN", "su2024dragin"),
    ("r2ag", "R²AG", "ye2024r2ag"),
)

OPENING = """\
This book re-tests four papers on retrieval-augmented generation: {papers}. Each statement of a
paper is written down so that measurements can refute it; the measurements are stored, one record
a question, and every number and verdict in these pages is computed from them.

Where a mechanism can be isolated, it is tested on invented encyclopedias of which every fact is
known (the *testbed*); where real questions are at hand, on these, with small open models
(*public*). The papers' own models and full data (*paper*) need a GPU and downloads.
"""

READING = """\
Verdicts rest on differences between methods on the same questions, with a 95 % interval. They do
not rest on absolute values, which depend on corpus, subset and model. *Reproduced* means that the
difference is there in the claimed direction and may be as large as half of what the paper reports;
*direction only*, that it is there but smaller; *not reproduced*, that a difference of that size
can be ruled out; *inconclusive*, that there were too few questions to tell. On the testbed the
words are *mechanism holds* and *mechanism fails*. {ref}`All words with their rules <verdicts>`.
"""


@dataclass(frozen=True)
class _Recorded:
    """One condition with its recorded answers (at most its n), None where nobody ran it."""

    cell: Cell
    lines: Sequence[Mapping[str, Any]] | None


def text(results_folder: Path, root: Path) -> str:
    """The page, from the records in `results_folder` and the chapters under `root`."""
    results = Results(results_folder)
    claims = ledger.rows(results)
    recorded = [
        _Recorded(cell, results.lines(cell))
        for name in papers.names()
        for cell in campaign.once(
            cell for exhibit in papers.load(name).exhibits.values() for cell in exhibit.cells()
        )
    ]
    parts = [
        "# Four RAG papers, re-tested",
        OPENING.format(papers=_papers()),
        _tested(recorded),
        "## How to read a verdict",
        READING,
        "## Verdicts so far",
        _counts(claims),
        _judged(claims),
        "## How sure are we",
        _sure(claims, recorded),
        _asked(recorded),
        _unjudged(claims),
        "## What comes next",
        _next(recorded),
        _chapters(root),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


# ------------------------------------------------------------------ what was run


def _papers() -> str:
    named = [f"{short} {{cite}}`{cite}`" for _, short, cite in BOOK]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _tested(recorded: Sequence[_Recorded]) -> str:
    ran = [r for r in recorded if r.lines is not None]
    if not ran:
        return "Nothing is recorded yet."
    answers = sum(len(r.lines) for r in ran)
    exhibits = sorted({r.cell.exhibit for r in ran})
    return (
        f"Recorded so far: {_count(answers, 'answer')} under {_count(len(ran), 'condition')}, for "
        + ", ".join(f"`{name}`" for name in exhibits)
        + "."
    )


def _asked(recorded: Sequence[_Recorded]) -> str:
    """A line a data set: how many questions were asked, and how many the whole set has."""
    body = [
        [tier, DATASETS.get(name, name), f"{n:,}", _whole(name)]
        for (tier, name), n in _sizes(recorded).items()
    ]
    if not body:
        return ""
    return _table(["tier", "data set", "questions asked", "questions of the whole set"], body)


def _sizes(recorded: Sequence[_Recorded]) -> dict[tuple[str, str], int]:
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
    source = SOURCES.get(dataset)
    if source is None or source.full_size is None:
        return "not known"
    return f"{source.full_size:,} ({source.split})"


# ---------------------------------------------------------------------- verdicts


def _counts(claims: Sequence[Mapping[str, Any]]) -> str:
    """A line a paper and tier: how many claims got which verdict."""
    tally: dict[tuple[str, str], Counter] = {}
    for row in claims:
        tally.setdefault((row["paper"], row["tier"]), Counter())[row["verdict"]] += 1
    if not _with_verdict(claims):
        return "No claim has records yet."
    words = [w for w in WORDS if w != NOT_RUN and any(c[w] for c in tally.values())] + [NOT_RUN]
    body = [[*place, *(str(count[w] or "") for w in words)] for place, count in tally.items()]
    return _table(["paper", "tier", *words], body) + "\n\nThe numbers count claims."


def _with_verdict(claims: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in claims if row["verdict"] != NOT_RUN]


def _judged(claims: Sequence[Mapping[str, Any]]) -> str:
    """Every claim that has a verdict, with what it rests on."""
    head = ["claim", "statement", "tier", "verdict", "effect [95 %]", "δ", "n"]
    body = [
        [row["id"], row["claim"], row["tier"], _word(row), _effect(row), _delta(row), row["n"]]
        for row in _with_verdict(claims)
    ]
    if not body:
        return ""
    return (
        _table(head, body)
        + "\n\nEffects are in points where the metric is a percentage, in the direction that the "
        "paper claims, and belong to the claim's first contrast; δ is the smallest effect of "
        "interest, or the margin of a claim of no difference. A claim of several parts holds "
        "where each part holds and fails where one fails; its effect is the mean."
    )


def _parts(row: Mapping[str, Any]) -> str:
    """How many parts the verdict is made of, as "9 parts"; empty where it is one."""
    found = re.search(r"\b\d+ parts\b", row["reason"])
    return found[0] if found else ""


def _word(row: Mapping[str, Any]) -> str:
    return f"{row['verdict']} ({_parts(row)})" if _parts(row) else row["verdict"]


def _effect(row: Mapping[str, Any]) -> str:
    return f"{row['effect']} [{row['lo']}, {row['hi']}]" if row["effect"] else ""


def _delta(row: Mapping[str, Any]) -> str:
    seen = row["verdict"] == INCONCLUSIVE and row["mde"] and not _parts(row)
    return f"{row['delta']} (detectable: {row['mde']})" if seen else row["delta"]


def _unjudged(claims: Sequence[Mapping[str, Any]]) -> str:
    """The claims without a verdict at any tier, folded away, each with its reason."""
    judged = {row["id"] for row in _with_verdict(claims)}
    first = {row["id"]: row for row in reversed(claims) if row["tier"] == "public"}
    rows = [row for row in reversed(first.values()) if row["id"] not in judged]
    if not rows:
        return ""
    body = [[row["id"], row["claim"], row["reason"]] for row in rows]
    title = f"{len(rows)} of {_count(len(first), 'claim')} without a verdict at any tier"
    table = _table(["claim", "statement", "why"], body)
    return f"````{{dropdown}} {title}\n{table}\n````"


# --------------------------------------------------------------------- how sure


def _sure(claims: Sequence[Mapping[str, Any]], recorded: Sequence[_Recorded]) -> str:
    judged = _with_verdict(claims)
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
        yield (
            f"{_count(len(sizes), 'verdict')} with an interval, each from {sizes[0]:,} to "
            f"{sizes[-1]:,} answered questions. Of so many 95 % intervals about "
            f"{len(sizes) / 20:.1f} miss the truth by chance alone."
        )
    unclear = [row for row in judged if row["verdict"] == INCONCLUSIVE]
    if unclear:
        yield (
            f"{len(unclear)} of {_count(len(judged), 'verdict')} inconclusive: what is claimed "
            "may be true and too small to be seen with this many questions. What could have been "
            "seen stands beside δ."
        )


def _of_subsets(sizes: Mapping[tuple[str, str], int]) -> Iterable[str]:
    parts = [
        DATASETS.get(name, name)
        for (tier, name), n in sizes.items()
        if tier != "testbed" and name in SOURCES and n < (SOURCES[name].full_size or 0)
    ]
    if parts:
        yield (
            f"Asked on parts of the whole sets ({', '.join(map(escaped, parts))}), over smaller "
            "corpora: our values are not comparable with published ones."
        )


def _of_models(cells: Sequence[Cell]) -> Iterable[str]:
    readers = sorted({c.condition.reader for c in cells if c.condition.reader})
    retrievers = sorted({c.condition.retriever for c in cells if c.condition.retriever})
    if retrievers:
        yield (
            f"Searched with {_code(retrievers)}, which need not be what the papers searched with."
        )
    if readers:
        yield f"Read by {_code(readers)}: open models, most of them far smaller than the papers'."
    elif cells:
        yield (
            "No language model has answered yet: what is recorded is about retrieval, nothing "
            "about answers."
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
        yield f"{failed:,} of {_count(len(lines), 'answer')} failed and count as wrong."


# -------------------------------------------------------------------- what is next


def _next(recorded: Sequence[_Recorded]) -> str:
    places: dict[tuple[str, str], list[bool]] = {}
    for r in recorded:
        places.setdefault((r.cell.exhibit, r.cell.tier), []).append(r.lines is None)
    points = [
        f"Not run: {sum(missing)} of {_count(len(missing), 'condition')} of `{exhibit}` at tier "
        f"`{tier}`; `rag-repro run {exhibit} --tier {tier}` runs them."
        for (exhibit, tier), missing in places.items()
        if any(missing)
    ]
    waiting = [
        f"`{exhibit.name}` ({'; '.join(escaped(reason) for reason in _reasons(exhibit))})"
        for name in papers.names()
        for exhibit in papers.load(name).exhibits.values()
        if not exhibit.grids
    ]
    if waiting:
        points.append(f"To be built: {', '.join(waiting)}.")
    later = [short for name, short, _ in BOOK if name not in papers.names()]
    if later:
        points.append(f"Not begun: {', '.join(later)}.")
    return "\n".join(f"- {point}" for point in points or ["Everything planned has been run."])


def _reasons(exhibit: papers.Exhibit) -> list[str]:
    return list(dict.fromkeys(row.waits for row in exhibit.methods.values() if row.waits))


def _chapters(root: Path) -> str:
    """Links to the executed chapters that the book's contents name."""
    contents = root / "_toc.yml"
    if not contents.is_file():
        return ""
    named = _files(yaml.safe_load(contents.read_text(encoding="utf-8")))
    there = [
        name
        for name in named
        if name.startswith("chapters/") and (root / "book" / f"{name}.ipynb").is_file()
    ]
    links = "\n".join(f"- {{doc}}`{name}`" for name in there)
    return f"## Chapters\n\n{links}" if links else ""


def _files(entry: Any) -> list[str]:
    """Every `file:` of the table of contents, in its order."""
    if isinstance(entry, list):
        return [name for item in entry for name in _files(item)]
    if not isinstance(entry, dict):
        return []
    own = [entry["file"]] if "file" in entry else []
    return own + [name for value in entry.values() for name in _files(value)]


# ------------------------------------------------------------------------- forms


def _table(head: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    lines = [list(map(escaped, head)), ["---"] * len(head)]
    lines += [list(map(escaped, row)) for row in body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
