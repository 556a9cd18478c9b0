"""A small book from its source to HTML, with warnings as errors."""

from __future__ import annotations

import os
import re

import nbformat
import pytest

from rag_repro.publish import build
from rag_repro.publish.build import BuildError, ChapterError, build_book, to_html
from rag_repro.publish.notebook_pairs import pair

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
    monkeypatch.setattr(build, "to_html", lambda places: page)
    build_book(places)
    assert ran == []
    source = places.source("05_small")
    source.write_text(source.read_text().replace("# Small", "# Smaller"))
    build_book(places)
    assert ran == ["05_small"]
    assert "# Smaller" in places.executed("05_small").read_text()


def another(places, name: str, *cells: str) -> None:
    """One more chapter like 05_small, with cells behind it."""
    text = places.source("05_small").read_text().replace("05_small", name)
    places.source("05_small").with_name(f"{name}.py").write_text("".join([text, *cells]))


def ran_in(places, name: str) -> int:
    """The process that executed the chapter's kernel, as the chapter told."""
    book = nbformat.read(places.executed(name), as_version=4)
    said = "".join(o.get("text", "") for c in book.cells for o in c.get("outputs", []))
    return int(re.search(r"parent (\d+)", said)[1])


# A chapter that ends only when another has begun: one after another, they never would.
MEETING = """
# %%
import os
import time
from pathlib import Path

MET = Path("../.cache")
MET.mkdir(exist_ok=True)
(MET / "{name}").touch()
BEGAN = time.monotonic()
while not (MET / "{beside}").exists():
    assert time.monotonic() < BEGAN + 120, "{beside} did not begin"
    time.sleep(0.05)
print("parent", os.getppid(), os.environ["OMP_NUM_THREADS"])
"""


def test_chapters_run_side_by_side_and_the_page_of_all_runs_after_them(places, front, monkeypatch):
    monkeypatch.setattr(build, "to_html", lambda places: places.html / "index.html")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, beside in (("06_other", "07_third"), ("07_third", "06_other")):
        another(places, name, MEETING.format(name=name, beside=beside))
    tells = '\n# %%\nprint(sorted(p.name for p in Path("../book/chapters").glob("*")))\n'
    another(places, build.status.OWN, tells)
    build_book(places, jobs=2)
    assert os.getpid() not in (ran_in(places, "06_other"), ran_in(places, "07_third"))
    told = places.executed(build.status.OWN).read_text()
    assert "06_other.ipynb" in told
    assert "07_third.ipynb" in told

    # Nothing changed, so nothing runs.
    monkeypatch.setattr(build, "execute", None)
    build_book(places, jobs=2)


def test_the_page_of_all_chapters_runs_last(places, front, monkeypatch):
    monkeypatch.setattr(build, "to_html", lambda places: places.html / "index.html")
    another(places, build.status.OWN)
    another(places, "92_later")
    ran, execute = [], build.execute
    monkeypatch.setattr(
        build, "execute", lambda name, **more: ran.append(name) or execute(name, **more)
    )
    build_book(places)
    assert ran == ["05_small", "92_later", build.status.OWN]


def test_a_chapter_that_fails_beside_others_is_named_and_loses_none_of_them(places, front):
    another(places, "04_fails", '\n# %%\nraise ValueError("not today")\n')
    with pytest.raises(ChapterError, match=r"04_fails: the code cell .* not today"):
        build_book(places, jobs=2)
    assert places.executed("05_small").is_file()


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
    with pytest.raises(BuildError, match="debris on stderr: 'x'"):
        build_book(places)
    assert not places.html.exists()
