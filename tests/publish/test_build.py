"""A small book from its source to HTML, with warnings as errors."""

from __future__ import annotations

import re

import pytest

from rag_repro.publish import build
from rag_repro.publish.build import BuildError, build_book, to_html
from rag_repro.publish.check import CheckError
from rag_repro.publish.pairs import pair

pytestmark = pytest.mark.slow

# What a browser fetches when it shows a page; links that a reader may follow are none of it.
FETCHED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"(?:https?:)?//[^\"]*\"")


@pytest.fixture
def front(monkeypatch):
    """The front page is the report's business; here the small book has its own."""
    monkeypatch.setattr(build.pages, "write", lambda places: None)


def test_a_book_is_executed_checked_and_built_once(places, front, monkeypatch):
    page = build_book(places)
    assert page == places.html / "index.html"
    chapter = places.html / "chapters/05_small.html"
    assert "testbed 3 (3, 4)" in chapter.read_text()
    for built in (page, chapter):
        assert FETCHED.findall(built.read_text()) == []
    # Formulas are set by a script that lies beside the pages.
    assert "_static/mathjax/tex-chtml.js" in page.read_text()
    assert (places.html / "_static/mathjax/tex-chtml.js").is_file()
    assert list((places.html / "_static/mathjax/output/chtml/fonts/woff-v2").glob("*.woff"))

    # Nothing changed: nothing runs. A changed chapter runs again.
    ran = []
    execute = build.execute
    monkeypatch.setattr(
        build, "execute", lambda name, **more: ran.append(name) or execute(name, **more)
    )
    with monkeypatch.context() as quick:
        quick.setattr(build, "to_html", lambda places: page)
        build_book(places)
    assert ran == []
    source = places.source("05_small")
    source.write_text(source.read_text().replace("# Small", "# Smaller"))
    build_book(places)
    assert ran == ["05_small"]
    assert "<h1>Smaller" in chapter.read_text()


def test_a_warning_fails_the_build_each_time(places, front):
    (places.root / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    index = places.book / "index.md"
    index.write_text("# A small book\n\n{ref}`nowhere`\n")
    for _ in range(2):
        with pytest.raises(BuildError, match="nowhere") as raised:
            to_html(places)
        assert "book/index.md:3: WARNING" in str(raised.value)
        assert "Traceback" not in str(raised.value)


def test_a_faulty_chapter_is_never_built(places, front):
    source = places.source("05_small")
    source.write_text(source.read_text() + '\n# %%\nimport sys\n\nprint("x", file=sys.stderr)\n')
    pair(places)
    with pytest.raises(CheckError, match="debris on stderr: 'x'"):
        build_book(places)
    assert not places.html.exists()
