"""The front page: what was tested, the verdicts so far, how sure we are, what comes next.

A MyST page made from the records alone. No number in it is written by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..study import campaign, papers
from ..study.scores import Results
from . import ledger, verdict_figure, verdict_lists
from .caveats import Recorded, asked, count, how_sure, states, table, with_verdict
from .escape import as_code, as_myst
from .missing import run_command

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
a question, and every verdict, and every number given as ours, is computed from them.

Where a mechanism can be isolated, it is tested on invented encyclopedias of which every fact is
known (the *testbed*); where real questions are at hand, on these, with small open models
(*public*). The papers' own models and full data (*paper*) need a GPU and downloads. These are the
{term}`tiers <tier>`.
"""

LEDGER = "chapters/90_claims"
# Groups of claims as a sentence has them.
_SAID = {
    verdict_lists.HELD: "held",
    verdict_lists.DIRECTION: "held in direction only",
    verdict_lists.FAILED: "did not hold",
    verdict_lists.MIXED: "held at one tier and failed at another",
    verdict_lists.OPEN: "stay open",
    verdict_lists.UNKNOWABLE: "cannot be known from here",
    verdict_lists.NEVER: "have not been run",
}

READING = """\
Most verdicts rest on differences between methods on the same questions, with a 95 % interval;
absolute values depend on corpus, subset and model. Where a claim itself names a level, a ratio or
a count, the verdict is on that and *effect* is that number: weaker evidence. *Reproduced* means
that the difference is there in the claimed direction and may be as large as the smallest effect of
interest (half of what the paper reports; where it reports none, one of ours); *direction only*,
that it is there but smaller; *not reproduced*, that a difference of that size can be ruled out;
*inconclusive*, that there were too few questions to tell. On the testbed the words are *mechanism
holds* and *mechanism fails*. {ref}`All words with their rules <verdicts>`.
"""


AUTHORS = """\
The authors of the four papers were not asked. Nothing of this book was shown to them before it was
written, neither the verdicts nor what was found in their numbers, and none of them has answered for
it or against it. Where a paper leaves a choice open, ours is told as ours; where its numbers and
its sentences do not go together, both are shown with their places, without a guess at the cause.
Often one file would settle it: the ids of the questions, the answers, the configuration of a run.
"""


def text(
    results: Results,
    root: Path,
    claims: Sequence[Mapping[str, Any]] | None = None,
    *,
    figure: str = "",
) -> str:
    """The page, from the records and from the chapters under `root`.

    claims: the ledger's rows, where they are made already. figure: the picture of all
    verdicts, below the book's folder.
    """
    claims = ledger.rows(results) if claims is None else claims
    # Once, though two papers may ask for the same condition.
    asked_for = campaign.once(
        cell
        for name in papers.names()
        for exhibit in papers.load(name).exhibits.values()
        for cell in exhibit.cells()
    )
    recorded = [Recorded(cell, results.lines(cell)) for cell in asked_for]
    parts = [
        "# Four RAG papers, re-tested",
        OPENING.replace("{papers}", _papers()),
        _found(claims),
        verdict_lists.main(claims),
        _figure(figure, claims),
        _tested(recorded),
        "## How to read a verdict",
        READING,
        "## Verdicts so far",
        _counts(claims),
        verdict_lists.text(claims),
        verdict_lists.unborne(claims),
        _ledger(root),
        "## How sure are we",
        how_sure(claims, recorded),
        asked(recorded),
        "## Communication with the authors",
        AUTHORS,
        "## What comes next",
        _next(recorded),
        _chapters(root),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


# ------------------------------------------------------------------ what was run


def _papers() -> str:
    named = [f"{short} {{cite}}`{cite}`" for _, short, cite in BOOK]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _tested(recorded: Sequence[Recorded]) -> str:
    ran = [r for r in recorded if r.lines is not None]
    if not ran:
        return "Nothing is recorded yet."
    answers = sum(len(r.lines) for r in ran)
    exhibits = count(len({r.cell.exhibit for r in ran}), "exhibit")
    return (
        f"Recorded so far: {count(answers, 'answer')} under {count(len(ran), 'condition')} of "
        f"{exhibits}."
    )


# ---------------------------------------------------------------------- verdicts


def _found(claims: Sequence[Mapping[str, Any]]) -> str:
    """What was found of the claims in a sentence, for the first screen, each claim once."""
    judged = with_verdict(claims)
    if not judged:
        return ""
    groups = verdict_lists.sort(claims)
    parts = [f"{len(groups[name])} {said}" for name, said in _SAID.items() if groups[name]]
    every = [rows for held in groups.values() for rows in held]
    small = (
        "" if any(row["tier"] == "paper" for row in judged)
        else " With the papers' own models none is judged yet: the readers here are small ones."
    )  # fmt: skip
    others = len({r["id"] for r in claims if verdict_lists.of_summary(r)})
    beside = (
        f" {count(others, 'claim')}, numbered with an s, stand in a summary of a paper that came "
        "with this project." if others else ""
    )  # fmt: skip
    return (
        f"**Found so far.** Of {verdict_lists.counted(every)}, by what the records here decide: "
        f"{'; '.join(parts)}.{small}{beside} {{numref}}`tab-counts` has papers and tiers apart. "
        f"{states(claims)}"
    )


def _counts(claims: Sequence[Mapping[str, Any]]) -> str:
    """A line a paper and tier: how many claims hold, fail, stay open; the figure's numbers."""
    if not with_verdict(claims):
        return "No claim has records yet."
    tally = verdict_figure.counts(claims)
    groups = [g for g in verdict_figure.GROUPS if any(of_one[g] for of_one in tally.values())]
    # One column for both, as in the figure, so that all of them fit a page's width.
    body = [
        [", ".join(place), *(str(of_one[g] or "") for g in groups)]
        for place, of_one in tally.items()
    ]
    return table(["paper, tier", *groups], body, "Claims by verdict", "tab-counts")


def _ledger(root: Path) -> str:
    if not (root / "book" / f"{LEDGER}.ipynb").is_file():
        return ""
    return f"{{doc}}`{LEDGER}` has every claim with its reasons, to be filtered."


def _figure(path: str, claims: Sequence[Mapping[str, Any]]) -> str:
    if not path:
        return ""
    spoken = as_myst(verdict_figure.spoken(verdict_figure.counts(claims)))
    return (
        f"```{{figure}} {path}\n:name: fig-verdicts\n:figclass: rr-exhibit rr-slim\n"
        f":alt: {spoken}\n\n{verdict_figure.CAPTION}\n```"
    )


# -------------------------------------------------------------------- what is next


def _next(recorded: Sequence[Recorded]) -> str:
    """What lacks records, a paper folded behind a line, each with the command that makes them."""
    places: dict[tuple[str, str, str], list[bool]] = {}
    for r in recorded:
        verb = "time" if r.cell.timed else "run"
        places.setdefault((r.cell.exhibit, r.cell.tier, verb), []).append(r.lines is None)
    folded: dict[str, list[str]] = {}
    lacking: Counter = Counter()
    for (exhibit, tier, verb), missing in places.items():
        if any(missing):
            paper = exhibit.split(".")[0]
            lacking[paper] += sum(missing)
            folded.setdefault(paper, []).append(
                f"Not run: {sum(missing)} of {count(len(missing), 'condition')} of "
                f"{as_code(exhibit)} at tier `{tier}`; "
                f"{as_code(run_command(exhibit, tier, verb))} runs them."
            )
    parts = [
        f"````{{dropdown}} {as_myst(papers.load(paper).short)}: "
        f"{count(lacking[paper], 'condition')} to be run\n"
        + "\n".join(f"- {point}" for point in points)
        + "\n````"
        for paper, points in folded.items()
    ]
    waiting = [
        f"{as_code(exhibit.name)} ({'; '.join(as_myst(reason) for reason in _reasons(exhibit))})"
        for name in papers.names()
        for exhibit in papers.load(name).exhibits.values()
        if not exhibit.grids
    ]
    if waiting:
        parts.append(f"Nothing to run: {', '.join(waiting)}.")
    later = [short for name, short, _ in BOOK if name not in papers.names()]
    if later:
        parts.append(f"Not begun: {', '.join(later)}.")
    return "\n\n".join(parts or ["Everything planned has been run."])


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
