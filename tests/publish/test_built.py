"""The book itself, built from its committed chapters, page by page."""

from __future__ import annotations

import base64
import copy
import csv
import io
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from filelock import FileLock

from rag_repro.book_folders import BookFolders
from rag_repro.publish.build import to_html
from rag_repro.publish.extension import CLAIM

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = BookFolders(ROOT).names()

pytestmark = pytest.mark.slow

# Attributes whose address a browser fetches by itself; `a` is for the reader to follow.
FETCHED = {
    "audio": "src", "embed": "src", "iframe": "src", "img": "src", "input": "src",
    "link": "href", "object": "data", "script": "src", "source": "src", "track": "src",
    "video": "src", "use": "href", "image": "href",
}  # fmt: skip
NO_FETCH = {"canonical", "author", "license", "next", "prev", "index", "search"}
# How a script or style of this book could ask another host.
ASKS = re.compile(
    r"""(?:url\(|@import|import\(|importScripts\(|fetch\(|\bfrom|\.src=|\.href=|\.open\([^,]*,)"""
    r"""\s*["'`]?\s*(?:https?:)?//[^"'`)\s]+"""
)


@pytest.fixture(scope="session")
def site(tmp_path_factory, request):
    """The folder of the built pages, built once for all of pytest's workers: it takes minutes."""
    shared = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        shared = shared.parent
    root, built = shared / "the-book", shared / "the-book-is-at"
    with FileLock(shared / "the-book.lock"):
        if not built.is_file():
            shutil.rmtree(root, ignore_errors=True)  # of a worker that failed
            root.mkdir()
            for name in ("_config.yml", "_toc.yml"):
                shutil.copy(ROOT / name, root / name)
            shutil.copytree(ROOT / "book", root / "book", ignore=shutil.ignore_patterns("_build"))
            built.write_text(str(to_html(BookFolders(root)).parent), encoding="utf-8")
        return Path(built.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pages(site):
    """Path below the site -> the parsed page, all of them."""
    found = {
        path.relative_to(site).as_posix(): BeautifulSoup(path.read_text("utf-8"), "html.parser")
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }
    assert {"index.html", "glossary.html", "search.html", "reference/engine.html"} <= set(found)
    assert {f"chapters/{name}.html" for name in CHAPTERS} <= set(found)
    return found


def written(pages):
    """Those that we write; the others are Sphinx's own lists and the listings of code."""
    own = ("genindex.html", "search.html", "py-modindex.html")
    return {n: p for n, p in pages.items() if n not in own and not n.startswith("_modules/")}


def is_foreign(address):
    return urlsplit(address.strip()).netloc != ""


def foreign(name, page):
    """What a browser would ask another host for, when it shows the page."""
    for tag in page.find_all(list(FETCHED)):
        if tag.name == "link" and NO_FETCH & set(tag.get("rel", [])):
            continue
        addresses = [tag.get(FETCHED[tag.name]) or "", tag.get("poster") or ""]
        addresses += [part.split()[0] for part in (tag.get("srcset") or "").split(",") if part]
        yield from (f"{name}: <{tag.name}> {a}" for a in addresses if is_foreign(a))
    for tag in page.find_all("script"):
        yield from (f"{name}: script {found}" for found in ASKS.findall(tag.string or ""))
        yield from (f"{name}: {u}" for u in re.findall(r"https?://[^\"']+", tag.string or ""))
    for tag in page.find_all(style=True):
        yield from (f"{name}: style {found}" for found in ASKS.findall(tag["style"]))
    for tag in page.find_all("style"):
        yield from (f"{name}: style {found}" for found in ASKS.findall(tag.string or ""))


def test_no_page_style_or_script_asks_another_host(site, pages):
    assert [fault for name, page in pages.items() for fault in foreign(name, page)] == []
    found = []
    for path in [*site.rglob("*.css"), *site.rglob("*.js"), *site.rglob("*.svg")]:
        text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8", errors="replace"), flags=re.S)
        found += [f"{path.relative_to(site)}: {hit[:120]}" for hit in ASKS.findall(text)]
    assert found == []


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://unpkg.com/x.js"></script>',
        '<script>const THEBE_JS_URL = "https://unpkg.com/thebe"</script>',
        '<script>import("//cdn.example/x.js")</script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<img alt="x" srcset="a.png 1x, https://host/b.png 2x">',
        '<p style="background: url(https://host/x.png)"></p>',
        "<style>@import 'https://host/x.css';</style>",
    ],
)
def test_what_asks_another_host_would_be_found(html):
    assert list(foreign("page", BeautifulSoup(html, "html.parser")))


def test_links_of_the_reader_are_no_fault():
    html = '<a href="https://arxiv.org">x</a><link rel="canonical" href="https://host/x.html">'
    assert list(foreign("page", BeautifulSoup(html, "html.parser"))) == []


def test_formulas_and_search_come_with_the_pages(site, pages):
    assert (site / "_static/mathjax/tex-chtml.js").is_file()
    assert list((site / "_static/mathjax/output/chtml/fonts/woff-v2").glob("*.woff"))
    assert "Search.setIndex" in (site / "searchindex.js").read_text("utf-8")
    assert not list(site.rglob("*thebe*.js"))


def test_every_link_leads_somewhere(site, pages):
    ids = {name: {tag["id"] for tag in page.find_all(id=True)} for name, page in pages.items()}
    faults = []
    for name, page in pages.items():
        for tag in page.find_all(["a", "img", "link", "script"]):
            address = tag.get("href") or tag.get("src") or ""
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            here = site / name
            target = (here.parent / unquote(parts.path)).resolve() if parts.path else here.resolve()
            if not target.is_file():
                faults.append(f"{name}: {address}")
            elif parts.fragment and target.suffix == ".html":
                there = target.relative_to(site.resolve()).as_posix()
                if unquote(parts.fragment) not in ids[there]:
                    faults.append(f"{name}: {address}")
    assert faults == []


def test_every_page_has_a_title_and_one_heading(pages):
    for name, page in pages.items():
        assert page.title.get_text(strip=True), name
        assert page.html.get("lang") == "en", name
        if name in written(pages):
            assert len(page.select("article h1")) == 1, name


def test_every_picture_has_words_for_who_cannot_see_it(pages):
    for name, page in pages.items():
        for image in page.find_all("img"):
            assert (image.get("alt") or "").strip(), f"{name}: {str(image)[:80]}"


def test_every_table_has_heads_and_scrolls_in_its_own_box(pages):
    for name, page in written(pages).items():
        for table in page.select("article table"):
            heads = table.select("thead th")
            if not table.select("tr"):  # nothing of it was run, as the line below its caption says
                told = table.find_next(class_="rr-rest")
                assert table.caption, name
                assert told.get_text(strip=True), name
                continue
            assert heads, f"{name}: {table.get_text(' ', strip=True)[:60]}"
            assert all(head.get_text(strip=True) for head in heads), f"{name}: an empty head"
            assert table.find_parent(class_=["pst-scrollable-table-container", "rr-table"]), name


@pytest.mark.parametrize("name", CHAPTERS)
def test_tables_and_figures_are_numbered_by_chapter(pages, name):
    page, number = pages[f"chapters/{name}.html"], int(name.split("_")[0])
    assert page.select_one("article h1").get_text().startswith(f"{number}. ")
    for kind, where in (("Table", "table caption"), ("Fig.", "figure figcaption")):
        told = [c.select_one(".caption-number") for c in page.select(f"article {where}")]
        assert all(told), f"{name}: a caption without a number"
        numbers = [n.get_text(strip=True) for n in told]
        assert numbers == [f"{kind} {number}.{i}" for i in range(1, len(numbers) + 1)]


def test_pages_speak_of_exhibits_by_number(pages):
    said = [a.get_text() for page in pages.values() for a in page.select("a span.std-numref")]
    assert said
    assert all(re.fullmatch(r"(Table|Fig\.) \d+(\.\d+)?", text) for text in said), said


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_can_be_had_as_a_notebook(site, pages, name):
    page = pages[f"chapters/{name}.html"]
    targets = [a["href"] for a in page.select("a.btn-download-source-button")]
    assert targets == [f"../_sources/chapters/{name}.ipynb"]


def test_the_data_of_an_exhibit_is_in_its_page(pages):
    links = [a for page in pages.values() for a in page.select(".rr-data a")]
    assert links
    for link in links:
        assert link["download"].endswith(".csv")
        text = base64.b64decode(link["href"].split("base64,")[1]).decode()
        head, *rows = csv.reader(io.StringIO(text))
        assert len(set(head)) == len(head) > 1
        if "." in link["download"].removesuffix(".csv"):  # an exhibit's own, as drrag.table5.csv
            assert head[:2] == ["exhibit", "tier"]
        assert rows
        assert {len(row) for row in rows} == {len(head)}


def test_no_button_leads_to_a_repository_that_nobody_named(pages):
    for name, page in pages.items():
        buttons = page.select(".article-header-buttons a[href], .article-header-buttons button")
        assert buttons or name.startswith("_modules") or name not in written(pages), name
        assert not [b for b in buttons if is_foreign(b.get("href", ""))], name
        assert not page.select(".dropdown-launch-buttons, .dropdown-source-buttons"), name


def test_what_the_chapters_cite_stands_in_the_bibliography(pages):
    listed = {tag["id"] for tag in pages["bibliography.html"].select("[role=doc-biblioentry]")}
    cited = {
        urlsplit(a["href"]).fragment
        for page in pages.values()
        for a in page.select('a.reference.internal[href*="bibliography.html#"]')
    }
    assert cited
    assert cited <= listed


def test_claims_that_a_page_names_lead_to_the_ledger(pages):
    linked = 0
    for name, page in written(pages).items():
        if name == "chapters/90_claims.html":
            continue
        page = copy.copy(page)  # other tests read it, too
        stays = page.select("article :is(a, h1, h2, h3, h4, pre, svg, script, style, caption)")
        linked += sum(bool(CLAIM.fullmatch(tag.get_text())) for tag in stays if tag.name == "a")
        for tag in stays:
            tag.extract()
        assert not CLAIM.findall(page.article.get_text(" ")), name
    assert linked


def test_names_of_code_lead_to_the_reference(pages):
    links = pages["chapters/11_drrag_recall.html"].select('article a[href^="../reference/"] code')
    assert "concat(q, d_i)" in [code.get_text() for code in links]
