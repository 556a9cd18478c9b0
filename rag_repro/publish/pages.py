"""Pages that are generated before each build."""

from __future__ import annotations

from rag_repro.publish import reference
from rag_repro.publish.places import Places


def write(places: Places) -> None:
    """Write every generated page; one whose text is the same is not touched."""
    for name, text in {"index.md": front_page(places), **reference.pages(places)}.items():
        target = places.book / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def front_page(places: Places) -> str:
    """What was tested, and the verdicts so far."""
    from rag_repro.report import frontpage

    return frontpage.text(places.records, places.root)
