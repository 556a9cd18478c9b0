"""Pages that are generated before each build."""

from __future__ import annotations

import re
import textwrap

from rag_repro.book_folders import BookFolders
from rag_repro.digest import write_whole
from rag_repro.publish import (
    contents,
    deviations,
    frontpage,
    inputs,
    parameters,
    reference,
    tiers,
    verdict_summary,
)
from rag_repro.show import ledger
from rag_repro.study.scores import Results

FIGURE = "images/verdicts.svg"  # below book/
README = "../README.md"
SOURCES = ("rag_repro", "results", "artifacts", "notebooks", "book")
"""All that a page is made of, and the pages."""


def write(places: BookFolders) -> None:
    """Write every generated page; one whose text is the same is not touched.

    Nothing is made anew where no file has changed since the last time: verdicts take a minute.
    """
    stamp = places.book / "_build" / "pages.sha256"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == inputs.digest(places.root, SOURCES):
        return
    front, figure = front_page(places)
    made = {
        "index.md": front,
        FIGURE: figure,
        "deviations.md": deviations.text(contents.deviations(places), contents.titles(places)),
        **tier_pages(places),
        **reference.pages(places),
        README: with_findings((places.book / README).read_text(encoding="utf-8"), front),
    }
    for name, text in made.items():
        target = places.book / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            write_whole(target, text)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    write_whole(stamp, inputs.digest(places.root, SOURCES))


def with_findings(readme: str, front: str) -> str:
    """The README with the front page's paragraph of what was found as its first under that head."""
    [found] = re.findall(r"\*\*Found so far\.\*\* (.*?) \{numref\}", front, re.S)
    text = textwrap.fill(" ".join(found.split()), 99)
    before, head, after = readme.partition("## What was found\n\n")
    return "".join([before, head, text, *after.partition("\n\n")[1:]])


def front_page(places: BookFolders) -> tuple[str, str]:
    """What was tested and the verdicts so far; and their figure (SVG)."""
    results = Results(places.records)  # one, so that each record is read once
    claims = ledger.rows(results)
    picture = verdict_summary.figure(claims)
    text = frontpage.text(results, places.root, claims, figure=FIGURE)
    return text, picture.svg.decode()


def tier_pages(places: BookFolders) -> dict[str, str]:
    """What each tier needs and costs, with the chapters whose reader can be exchanged."""
    chapters = [n for n in places.names() if "reader" in parameters.parameters(n, places)]
    return tiers.pages(places.records, chapters)
