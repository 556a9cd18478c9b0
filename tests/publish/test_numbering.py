"""A small book: its tables and figures get numbers, and its buttons follow one address."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from rag_repro.publish import extension
from rag_repro.publish.build import execute, to_html
from rag_repro.publish.extension import switch
from rag_repro.show.picture import Download
from rag_repro.show.table import Table

CONFIG = """\
title: A small book
only_build_toc_files: true
execute: {execute_notebooks: "off"}
repository: {url: "URL", branch: main, path_to_book: book}
launch_buttons:
  binderhub_url: https://mybinder.org
  colab_url: https://colab.research.google.com
sphinx:
  extra_extensions:
    [rag_repro.publish.extension]
  config: {nb_ipywidgets_js: {}}
"""
SHOWN = """
# %% [markdown]
# ## A section
#
# See {numref}`tab-one-5`.
#
# $$x$$ (eq-x)

# %%
from IPython.display import display

from rag_repro.show import picture
from rag_repro.show.picture import Picture
from rag_repro.show.table import Table

display(Table(["a"], [[1]]))
display(Table(["a"], [["<b>"]], "First & <b>", "tab-one"))
display(Table(["a"], [[2]], "Second", "tab-one"))
plt, _ = picture.plots()
figure, _ = plt.subplots()
display(Picture(figure, "words", "Drawn", "fig-one"))
"""


def built(places, url):
    (places.root / "_config.yml").write_text(CONFIG.replace("URL", url))
    to_html(places)
    text = (places.html / "chapters/05_small.html").read_text()
    return BeautifulSoup(text, "html.parser")


@pytest.mark.slow
def test_a_small_book_has_numbers_and_its_buttons_where_it_is_told_the_address(places):
    source = places.source("05_small")
    source.write_text(source.read_text() + SHOWN)
    execute("05_small", update=True, places=places)

    page = built(places, "https://github.com/someone/book")
    assert page.select_one("article h1").get_text().startswith("5. Small")
    assert not page.select("article h2 .section-number")
    captions = [c.get_text().rstrip("#") for c in page.select("article caption")]
    assert captions == ["Table 5.1 First & <b>", "Table 5.2 Second"]
    [drawn] = page.select("figure figcaption .caption-number")
    assert drawn.get_text(strip=True) == "Fig. 5.1"
    assert page.select_one(".eqno").get_text().startswith("(5.1)")
    [said] = page.select("a .std-numref")
    assert said.get_text() == "Table 5.1"
    assert page.find(id=said.parent["href"].removeprefix("#")).name == "table"
    assert page.select_one("article td", string="<b>") or "&lt;b&gt;" in str(page)
    links = [a["href"] for a in page.select(".dropdown-launch-buttons a")]
    assert links == [
        "https://mybinder.org/v2/gh/someone/book/main?urlpath=tree/book/chapters/05_small.ipynb",
        "https://colab.research.google.com/github/someone/book/blob/main/book/chapters/05_small.ipynb",
    ]
    source = [a["href"] for a in page.select(".dropdown-source-buttons a")]
    assert source[0] == "https://github.com/someone/book"
    assert source[1].startswith("https://github.com/someone/book/issues/new?")


class Config:
    def __init__(self, url):
        self.html_theme_options = {
            "repository_url": url,
            "launch_buttons": {"binderhub_url": "b", "colab_url": "c", "thebe": False},
        }


@pytest.mark.parametrize(
    ("url", "launch", "source"),
    [
        ("", {"thebe"}, False),
        (None, {"thebe"}, False),
        ("https://github.com/a/b", {"binderhub_url", "colab_url", "thebe"}, True),
        ("https://gitlab.com/a/b", {"binderhub_url", "thebe"}, True),
    ],
)
def test_one_address_switches_all_buttons(url, launch, source):
    config = Config(url)
    switch(None, config)
    assert set(config.html_theme_options["launch_buttons"]) == launch
    assert config.html_theme_options["use_repository_button"] is source
    assert config.html_theme_options["use_issues_button"] is source
    assert bool(config.html_theme_options.get("repository_url")) is source


def test_what_a_table_shows_is_what_the_book_reads():
    """The two must not part: numbering knows the HTML of show."""
    table = Table(["h"], [["1"]], "A & <b>", 'n"1', Download("x.csv", "a,b\n"))
    found = extension.TABLE.match(table._repr_html_())
    assert found["caption"] == "A &amp; &lt;b&gt;"
    assert "x.csv" in found["after"]
    assert extension.TABLE.match(Table(["h"], [["1"]])._repr_html_()) is None
