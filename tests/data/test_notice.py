"""The notice of `results/`: whose texts answers may quote, as the catalogue of data has it."""

from __future__ import annotations

from pathlib import Path

from rag_repro.data.public import registry
from rag_repro.data.sources import sources

ROOT = Path(__file__).resolve().parents[2]
NOTICE = (ROOT / "results/NOTICE.md").read_text(encoding="utf-8")


def row(name: str) -> str:
    """A data set's line of the notice, from the catalogue."""
    entry, releases = registry()[name], sources().releases
    release = releases.get(name) or releases.get(entry.project_file.split(".")[0])
    page = f"<{release.page}>" if release else entry.source
    return f"| `{name}` | {entry.title} | {entry.paper} | {entry.licence} | {page} |"


def test_every_public_data_set_with_records_is_attributed_as_the_catalogue_has_it():
    folders = [path.name for path in (ROOT / "results").glob("records/*")]
    folders += [path.name for path in (ROOT / "results").glob("times/*/*")]
    used = sorted({*folders} & {*registry()})
    assert "hotpotqa" in used
    listed = [line for line in NOTICE.splitlines() if line.startswith("| `")]
    assert listed == [row(name) for name in used]


def test_whoever_takes_the_records_or_the_book_is_told_of_it():
    assert "https://creativecommons.org/licenses/by-sa/4.0/" in NOTICE
    for name in ("LICENSE", "README.md", "CITATION.cff"):
        assert "results/NOTICE.md" in (ROOT / name).read_text(encoding="utf-8"), name
    assert "CC BY-SA" in (ROOT / "book/bibliography.md").read_text(encoding="utf-8")
