"""Hostile text of data sets, models and papers through everything that a page or a terminal shows.

What comes out is parsed with the parsers that read it: only the expected elements are there, and
the text is there as it was.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import rag_repro
from rag_repro.evaluation.intervals import Interval
from rag_repro.publish import frontpage, status, templating
from rag_repro.publish.parameters import Declared, _freeze
from rag_repro.schema import (
    Answer,
    Generate,
    Generation,
    Gold,
    Hit,
    Passage,
    Prompt,
    Question,
    Retrieve,
)
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.show import chapter, escape, exhibit_rows, ledger, picture, traces
from rag_repro.show import recorded_answers as show
from rag_repro.show.exhibit_rows import Row
from rag_repro.show.picture import Download, Picture
from rag_repro.show.table import Table
from rag_repro.study import papers, records
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop
from tests.study.mini import rewrite

CONFIG = Path(rag_repro.__file__).parents[1] / "_config.yml"

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</td></tr></table></div></p>",
    "<!-- not the end",
    "]]><![CDATA[",
    "&amp; &lt;b&gt; &#60;",
    "```{raw} html\n<script>alert(1)</script>\n```",
    "`` `a` ``",
    ":::{admonition} Mine\n:::",
    "{{ substitution }} {% if x %}",
    "{cite}`mine2026` {ref}`x` <inv:#x>",
    "$x$ $$y$$ \\(z\\) \\[w\\] \\begin{equation}v\\end{equation}",
    "a | b || c \\| d",
    "[x](javascript:alert(1)) ![y](http://w/z.png) [^1] http://w <http://w>",
    "# head\n\n- list\n1. list\n\n> quote\n\n---\n\n    code",
    "- list",
    "1. list",
    "% comment",
    "+++ cell",
    "(target)=",
    "term\n: definition",
    "*a* _b_ **c** ~~d~~ H~2~O x^2^ {.class} a\\",
    "\u202edlrow\u202c \u200f\u05d0 \u2067x",
    "w" * 3000,
    "nul \x00 bell \x07 escape \x1b[2J delete \x7f control \x9b",
    "half \ud83d and \udc00",
    "line\u2028end\x85of\x0btext\r\nall",
)


# ------------------------------------------------------------------------- pages


class Page(HTMLParser):
    """The elements with their attributes, and the text of each cell, of a piece of HTML."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.cells: list[str] = []
        self.other: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        if tag != "img":
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data
        else:
            self.other.append(data)

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


KNOWN = {
    ("div", ("class",)), ("table", ()), ("thead", ("class",)), ("tbody", ("class",)), ("tr", ()),
    ("td", ()), ("td", ("class",)), ("th", ("scope",)), ("th", ("scope", "class")),
    ("div", ("class", "id")), ("caption", ()), ("details", ("class",)), ("summary", ()), ("i", ()),
    ("small", ()),
}  # fmt: skip


def cells_of(table: Table) -> list[str]:
    """The cells of a table as its page has them; nothing but a table is there."""
    page = Page(table._repr_html_())
    assert set(page.elements) <= KNOWN
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in table.meanings.items())
    below = f"Columns{meanings}." if meanings else ""
    assert "".join(page.other) == escape.seen(table.caption) + below
    [head] = [i for i, (tag, _) in enumerate(page.elements) if tag == "thead"]
    assert "mathjax_ignore" in table._repr_html_().split("<tbody", 1)[1][:60]
    assert head
    table._repr_html_().encode()
    return page.cells


def shown_in(table: Table) -> None:
    """Every cell of the table is on the page, unchanged but for what cannot be shown."""
    wanted = [str(v) for row in [table.head, *table.body] for v in row]
    assert cells_of(table) == [escape.seen(text) for text in wanted]


QUESTIONS = tuple(
    Question(
        f"q{i}", text, (text, "b"), kind=text[:9], gold=(Gold(f"p{i}", "static", 1),),
        meta={"group": i, "maker": f"m{i}"},
    )
    for i, text in enumerate(HOSTILE)
)  # fmt: skip
PASSAGES = tuple(Passage(f"p{i}", text, text) for i, text in enumerate(HOSTILE))
DATASET = Dataset("d<i>rt", QUESTIONS, Corpus("d<i>rt", PASSAGES))
HITS = tuple(Hit(passage, 1.0, i) for i, passage in enumerate(PASSAGES, 1))


def test_a_control_character_is_seen_and_can_be_written():
    assert escape.seen("a\x00b\x1b\x7f\ud83d\x9b") == "a\u2400b\u241b\u2421\ufffd\ufffd"
    assert escape.seen("tab\tline\nend Łódź 中 \U0001f600 \u200f") == (
        "tab\tline\nend Łódź 中 \U0001f600 \u200f"
    )


def test_tables_of_questions_passages_and_searches():
    for question in QUESTIONS:
        shown_in(traces.question_table(question, DATASET))
    steps = [traces.Step(Retrieve(text, 2), HITS[i : i + 2]) for i, text in enumerate(HOSTILE)]
    shown_in(traces.table(steps, QUESTIONS[0], Answer(hits=HITS)))
    shown_in(traces.context_table(Answer(hits=HITS), QUESTIONS[0], HOSTILE[0]))
    # the data's own words are really in there
    assert HOSTILE[0] in cells_of(traces.question_table(QUESTIONS[0], DATASET))


def test_heads_captions_and_names():
    for text in HOSTILE:
        table = Table([text], [["a"]], text, text, Download(text, text))
        page = Page(table._repr_html_())
        assert {tag for tag, _ in page.elements} == {
            "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "a",
        }  # fmt: skip
        assert page.cells == [escape.seen(text), "a"]
        assert "".join(page.other) == escape.seen(text) * 2


def test_the_tables_of_an_exhibit_of_a_data_set_with_any_name(book):
    interval = Interval(1.0, 0.0, 2.0, 9)
    rows = [
        Row("e", "public", "primary", {"dataset": t, "method": t, "k": t}, "recall", t, interval,
            note=t)
        for t in HOSTILE
    ]  # fmt: skip
    made = exhibit_rows.exhibit_table(book.exhibit, rows)
    made.data = None  # the file beside it is no text of the page
    assert set(map(escape.seen, HOSTILE)) <= set(cells_of(made))
    shown_in(Table([], [[r.note] for r in rows]))


def test_tables_of_pandas():
    import pandas as pd

    # As objects: text of pandas' own kind holds no half characters where pyarrow is installed.
    hostile = pd.Series(HOSTILE, dtype=object)
    shown_in(status.show(pd.DataFrame({"a <b>": hostile, "n": range(len(HOSTILE))})))


def test_a_chapters_parameters():
    declared = {f"p{i}": Declared(f"p{i}", "", text) for i, text in enumerate(HOSTILE)}
    run = _freeze(dict(zip(declared, HOSTILE, strict=True)), declared)
    page = Page(run._repr_html_())
    assert {tag for tag, _ in page.elements} <= {
        "div", "table", "thead", "tbody", "tr", "th", "td", "code", "b",
    }  # fmt: skip
    assert page.cells[3:] == [
        escape.seen(text)
        for name, value in zip(declared, HOSTILE, strict=True)
        for text in (name, repr(value), value)
    ]


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize(
    "text", ["a\x00\x1b\x0bb", "<!-- x --> -- ]]>", '"><img src=x onerror=alert(1)>', "$x$ \\(y\\)"]
)
def test_pictures(text):
    """Their text is drawn as it is, the drawing is sound XML, and words beside it are text."""
    plt, _ = picture.plots()
    figure, axis = plt.subplots(figsize=(2, 1))
    axis.set_title(text)
    made = Picture(figure, text, text)
    ElementTree.fromstring(made.svg)
    page = Page(made._repr_html_())
    assert [tag for tag, _ in page.elements] == ["figure", "img", "figcaption"]
    assert set(page.elements[1][1]) <= {"class", "alt", "src"}
    assert page.other == [escape.seen(text)]


def test_a_dollar_in_a_name_begins_no_formula():
    plt, _ = picture.plots()
    figure, axis = plt.subplots()
    said = axis.set_title("$x$ and $\\frac{1}{")
    assert not said.get_parse_math()
    figure.canvas.draw()
    plt.close(figure)


# -------------------------------------------------------------------- MyST pages


@pytest.fixture(scope="module")
def myst():
    """MyST's parser as the book sets it."""
    from markdown_it.renderer import RendererHTML
    from myst_parser.config.main import MdParserConfig
    from myst_parser.parsers.mdit import create_md_parser

    known = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["parse"]["myst_enable_extensions"]
    return create_md_parser(MdParserConfig(enable_extensions=set(known)), RendererHTML)


def parts(myst, text: str) -> list[tuple[str, str]]:
    """(kind, content) of every piece that MyST's parser finds, blocks and what is in them."""

    def walk(found):
        for token in found:
            if token.type == "inline":
                yield from walk(token.children)
            elif token.type == "fence" and token.info.startswith("{"):  # a directive of ours
                yield token.type, token.info
                yield from walk(myst.parse(token.content))
            else:
                yield token.type, token.content

    return list(walk(myst.parse(text)))


def as_shown(text: str) -> str:
    return " ".join(escape.seen(text).split())


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_of_a_myst_page_is_text(myst, text):
    """At a line's start, in a list, and between words."""
    plain = ["paragraph_open", "text", "paragraph_close"]
    for before in ("", "so: "):
        found = parts(myst, before + escape.as_myst(text))
        assert [kind for kind, _ in found] == plain
        assert found[1][1] == before + as_shown(text)
    found = parts(myst, f"- {escape.as_myst(text)}\n- b")
    assert [kind for kind, _ in found].count("text") == 2
    assert found[3 - 1][0] == "paragraph_open"
    assert ("text", as_shown(text)) in found


@given(st.text())
def test_any_text_of_a_myst_page_is_text(myst, text):
    found = parts(myst, f"x {escape.as_myst(text)} y")
    assert [kind for kind, _ in found] == ["paragraph_open", "text", "paragraph_close"]
    # "x" and "y" beside nothing stand two spaces apart
    assert found[1][1].split() == f"x {escape.seen(text)} y".split()
    if as_shown(text):
        assert [kind for kind, _ in parts(myst, escape.as_myst(text))].count("text") == 1


@given(st.text())
def test_any_text_of_a_page_is_text(text):
    page = Page(Table(["h"], [[text]])._repr_html_())
    assert page.cells[1].replace("\r\n", "\n").replace("\r", "\n") == escape.seen(text).replace(
        "\r\n", "\n"
    ).replace("\r", "\n")
    assert set(page.elements) <= KNOWN


def test_cells_of_a_myst_table(myst):
    body = [[text, "end"] for text in HOSTILE]
    found = parts(myst, templating.table(["a", "b"], body))
    kinds = {kind for kind, _ in found}
    assert kinds == {
        f"{part}_{side}"
        for part in ("table", "thead", "tbody", "tr", "th", "td")
        for side in ("open", "close")
    } | {"text"}
    said = [content for kind, content in found if kind == "text"]
    assert said == ["a", "b", *(x for text in HOSTILE for x in (as_shown(text), "end"))]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_code_of_a_myst_page_is_code(myst, text):
    found = parts(myst, f"see {escape.as_code(text)}, then")
    assert [kind for kind, _ in found] == [
        "paragraph_open", "text", "code_inline", "text", "paragraph_close",
    ]  # fmt: skip
    assert found[2][1] == as_shown(text)
    [(kind, content)] = parts(myst, escape.listing(text, "python"))
    assert kind == "fence"
    # Markdown knows three ends of a line
    assert content.splitlines() == escape.seen(text).splitlines()


def test_the_front_page_of_a_hostile_paper(book, myst):
    """The same parts as where the same number of claims is harmless."""
    claims = book.root / "mini" / "claims.yaml"
    entry = yaml.safe_load(claims.read_text())[0]
    book.fill()

    def page(texts):
        several = [entry | {"id": f"mini.c{i}", "claim": t} for i, t in enumerate(texts, 10)]
        claims.write_text(yaml.safe_dump(several), encoding="utf-8")
        papers.load.cache_clear()
        made = frontpage.text(Results(book.records), book.root)
        made.encode()
        return parts(myst, made)

    # Half a character is in no file.
    texts = [text for text in HOSTILE if not re.search("[\ud800-\udfff]", text)]
    plain, hostile = page(["A claim."] * len(texts)), page(texts)
    assert [kind for kind, _ in hostile] == [kind for kind, _ in plain]
    said = {content for kind, content in hostile if kind == "text"}
    for i, claim in enumerate(texts, 10):
        assert f"mini.c{i}: {as_shown(claim)}" in said


def fenced():
    """Code with lines that would end a block of code."""
    return """
```
<script>alert(1)</script>
````
"""


def test_notes_and_listings(myst):
    """A parameter of any value, and code that holds the marks of a block."""

    class Moved(chapter.Chapter):
        def __init__(self, value):
            self.run = type("Run", (), {"dataset": value})()
            self.moved = ("dataset",)

    for text in HOSTILE:
        found = parts(myst, Moved(text).source_note._repr_markdown_())
        assert [kind for kind, _ in found] == [
            "paragraph_open", "text", "code_inline", "text", "paragraph_close",
        ]  # fmt: skip
        assert found[2][1] == as_shown(f"dataset = {text!r}")

    (kind, content), *rest = parts(myst, chapter.Listing(fenced)._repr_markdown_())
    assert kind == "fence"
    assert content.endswith('````\n"""\n\n')
    assert {kind for kind, _ in rest} <= {"paragraph_open", "code_inline", "paragraph_close"}


# ----------------------------------------------------------------------- terminal


def printed(text: str) -> None:
    """A terminal that is shown this does nothing but show it."""
    text.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_plain_tables_keep_their_rows_and_cells():
    for text in HOSTILE:
        shown = repr(Table(["h"], [[text, "end"]]))
        printed(shown)
        assert len(shown.split("\n")) == 3
        assert shown.split("\n")[2] == f"| {as_shown(text).replace('|', chr(92) + '|')} | end |"


def test_claims_on_a_terminal(book):
    [row, *_] = ledger.rows(book.results())
    for text in HOSTILE:
        shown = ledger.text([row | {"claim": text, "reason": text}], "md")
        printed(shown)
        assert len(shown.strip().split("\n")) == 3
        assert shown.count(f"| {as_shown(text).replace('|', chr(92) + '|')} |") in (1, 2)


def test_the_steps_of_an_answer():
    """What `rag_repro.ask` gives, on a terminal and on a page."""
    made = Generation("\x1b[2J said", (1,), (0,), "eos", 3, 3)
    for i, text in enumerate(HOSTILE):
        heard = [
            traces.Step(Retrieve(text, 1), HITS[i : i + 1]),
            traces.Step(Generate(Prompt.from_segments(text), 3), made),
        ]
        answer = Answer(text=text, prediction=text)
        shown_in(traces.table(heard, QUESTIONS[i], answer))
        shown = traces.text(heard, QUESTIONS[i], answer)
        printed(shown)
        assert len(shown.split("\n")) == 7
        assert shown.endswith(f"answer: {as_shown(text)}")


def test_recorded_answers_on_a_terminal(book, monkeypatch):
    book.fill()
    name = book.exhibit.cells("public")[0].condition.dataset
    question = Question(
        "q0-hotpotqa", HOSTILE[-3], HOSTILE, kind="\x1b[2J", gold=(Gold("p0", "static"),)
    )
    dataset = Dataset(name, (question,), Corpus(name, PASSAGES))
    monkeypatch.setattr(Workshop, "dataset", lambda self, *given: dataset)
    for cell in book.exhibit.cells("public"):
        rewrite(
            book.records,
            cell.condition,
            lambda line: (
                line
                | {"hits": [p.id for p in PASSAGES], "text": "\x1b[2J", "prediction": "\x07"}
                | {"error": "ValueError: \x1b]0;title\x07"}
                if line["id"] == "q0-hotpotqa"
                else line
            ),
        )
    records.load(book.records, book.exhibit.cells("public")[0].condition)
    tables = show.question(show.RecordedExhibit(book.exhibit, book.records), "q0-hotpotqa")
    shown = show.text(tables)
    printed(shown)
    assert "\u241b[2J" in shown
    assert as_shown(PASSAGES[0].title) in shown
    for table in tables:
        shown_in(table)
    page = show.page(HOSTILE[0], tables)
    made = Page(page[page.index("<main>") : page.index("</body>")])
    assert {tag for tag, _ in made.elements} == {
        "main", "h1", "div", "table", "caption", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    assert HOSTILE[0] not in page
