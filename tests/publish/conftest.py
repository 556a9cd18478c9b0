"""A small book of one chapter, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_repro.book_folders import BookFolders
from rag_repro.publish.notebook_pairs import pair

HEADER = """\
# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: kernelspec,jupytext,-jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---
"""

CHAPTER = (
    HEADER
    + """
# %% [markdown]
# # Small

# %% tags=["parameters"]
tier = "testbed"  # where it runs
n_questions = 3  # how many questions
ks = [3, 4]  # how many passages

# %%
from rag_repro.publish import chapter

run = chapter("05_small", globals(), ks=range(1, 100))
run

# %%
from pathlib import Path

told = Path("told.txt").read_text() if Path("told.txt").is_file() else "nothing"
print(run.tier, run.n_questions, run.ks, run.changed, told)

# %% [markdown] tags=["rerun"]
# Again: `rag-repro chapter 05_small`
"""
)

CONFIG = """\
title: A small book
only_build_toc_files: true
execute: {execute_notebooks: "off"}
sphinx:
  extra_extensions: [rag_repro.publish.extension]
  config: {nb_ipywidgets_js: {}}
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BookFolders:
    """A book with the chapter 05_small, whose working folder this is."""
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nchapters:\n  - file: chapters/05_small\n"
    )
    (tmp_path / "_config.yml").write_text(CONFIG)
    for folder in ("notebooks", "book/chapters", "results"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "notebooks/05_small.py").write_text(CHAPTER)
    (tmp_path / "book/index.md").write_text("# A small book\n\n$x^2$\n")
    monkeypatch.chdir(tmp_path)
    found = BookFolders(tmp_path)
    pair(found)
    return found
