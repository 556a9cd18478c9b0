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

# %% [markdown]
# # Retrievers and metrics
#
# Every result in this book stands on a search. This chapter shows what the two {term}`retrievers
# <retriever>` find, on the {term}`testbed` and on the questions of HotpotQA
# {cite}`yang2018hotpotqa`, 2WikiMultihopQA {cite}`ho2020wikimultihop` and MuSiQue
# {cite}`trivedi2022musique`, how that is counted, and how far a choice that papers seldom report,
# *which* BM25, moves the numbers by itself. A published gain that is no larger than that, on as few
# questions, is worth a second look.

# %% tags=["parameters"]
tier = "all"  # whose records to show: "testbed", "public" or "all"
dataset = ""  # a data set to run instead, as "world-C" or "musique"; "": the book's own
n_questions = None  # questions of each data set; None: all
depths = [1, 2, 3, 4, 6, 8, 10, 15, 20]  # numbers of passages at which recall is read off
live_calls = 39  # recorded questions to ask again now
seed = 0  # draws the questions that are asked again
device = "cpu"  # where the sentence encoder computes
batch_size = 64  # questions in flight at once

# %% tags=["hide-input"]
from dataclasses import replace

from IPython.display import display

from rag_repro.analysis.deep_recall import recall_at
from rag_repro.publish import chapter
from rag_repro.retrieval import bm25
from rag_repro.show import Column, curve, entries
from rag_repro.show.picture import Note

run = chapter("02_retrievers", globals(), "tools", exhibits=("depth", "bm25"), depths=range(1, 21))
run

# %% tags=["remove-input"]
run.source_note

# %% [markdown]
# ## Two retrievers
#
# **BM25** {cite}`robertson2009bm25` scores a passage by the words that it shares with the query,
# rare words more, repeated words ever less, long passages less. With $N$ passages, $\mathrm{df}_t$
# of them holding the term $t$, and $\mathrm{tf}_t$ its count in a passage of length $\ell$:
#
# $$
# \mathrm{score}(q, p) = \sum_{t \in q} \log\left(1 + \frac{N - \mathrm{df}_t + 0.5}
# {\mathrm{df}_t + 0.5}\right) \cdot \frac{\mathrm{tf}_t}
# {\mathrm{tf}_t + k_1 (1 - b + b\, \ell / \bar\ell)}
# $$ (eq-bm25)
#
# That is Lucene's form, computed with bm25s {cite}`lu2024bm25s`. There are others
# {cite}`kamphuis2020bm25`; the module names each and where it differs:

# %% tags=["remove-input"]
Note(f"```text\n{bm25.__doc__}```")

# %% [markdown]
# **Similarity matching** encodes query and passages into vectors of length 1 and takes the nearest
# by inner product, exactly, with FAISS {cite}`douze2024faiss`. The encoder is MiniLM
# {cite}`wang2020minilm`, trained as a sentence encoder {cite}`reimers2019sbert`, which ships with
# the book: 23 million parameters, 256 tokens. Passages of equal score stand in the order of their
# ids, in both, so that a result does not depend on the order of a file.
#
# ## What is counted
#
# | metric | one question | used by |
# | --- | --- | --- |
# | recall | share of its {term}`gold passages <gold passage>` among the first $k$ | DR-RAG, table 5 |
# | all gold | 1 where all of them are | a stricter reading of the same |
# | answer recall | share of its answers that occur in the passages | ERM4, figure 2 |
#
# Each is averaged over questions; intervals are 95 % bootstrap intervals
# {cite}`efron1979bootstrap`, resampled by question and
# on the testbed by chain of facts.
#
# ## Recall against k


# %% tags=["hide-input"]
def found(role=None, whole=False):
    """Recall among the first k of what was retrieved; whole: questions with all their gold."""

    def read(entry):
        lines = entry.results.lines(entry.cell) or ()
        return recall_at(lines, entry.keys["k"], role=role, whole=whole)

    return Column(read, unit="recall" if not whole else "%")


def at_depths(entry):
    """An entry for each number of passages up to the depth that was retrieved."""
    for k in run.depths:
        if k <= entry.keys["k"]:
            yield replace(entry, cell=replace(entry.cell, keys={**entry.keys, "k": k}))


for shown in run.tiers():
    deep = [one for e in entries(run, "depth", tier=shown) for one in at_depths(e)]
    display(
        curve(
            deep,
            "k",
            {"recall": found(), "all gold": found(whole=True)},
            caption=f"Share of gold passages found, and of questions with all of them, {shown}",
            name=f"fig-recall-{shown}",
        )
    )
    display(
        curve(
            deep,
            "k",
            {f"{role}-relevant": found(role) for role in ("static", "dynamic")},
            caption=f"Passages whose subject the question names, and the others, {shown}",
            name=f"fig-roles-{shown}",
        )
    )

# %% [markdown]
# On public data nobody labelled the roles: a passage counts as static where its title, without what
# stands in brackets, occurs in the question. A name that is written otherwise counts as dynamic, and
# since titles are searched too, part of the gap is the rule's own doing ({doc}`chapter 11
# <11_drrag_recall>`).
#
# How steeply a line rises says what a longer list is worth. {numref}`fig-roles-public-2` and
# {numref}`fig-roles-testbed-2` tell which passages are missing: the methods of the following
# chapters are for the case that the {term}`dynamic-relevant` ones stay behind, and that a longer
# list is a poor way to them.
#
# ## Which BM25?
#
# Each line changes one thing (Anserini's two, $k_1$ and $b$), and is compared with our default on
# the same questions, at $k = 3$. An interval without zero speaks for a difference; with so many lines, none
# of which is corrected for their number, a few show one by chance. The last line is
# another comparison: of the reference implementation, `rank_bm25`, with the fast one under the same
# (Robertson's) formula. They part only over words that more than half of the passages hold, to which
# the reference gives a small weight and the formula none.

# %% tags=["remove-input"]
which = run.rows("bm25", metric="recall")
for shown in dict.fromkeys(row.keys["dataset"] for row in which):
    of_one = [row for row in which if row.keys["dataset"] == shown]
    display(run.table("bm25", of_one, name=f"tab-bm25-{shown}"))

# %% [markdown]
# ## Asked again, just now
#
# A {term}`live check`, as most chapters have one: some of the questions behind this page's records,
# asked again while it was made.

# %% tags=["remove-input"]
run.live("bm25")

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro chapter 02_retrievers -p dataset world-C -p n_questions 50
# rag-repro chapter 02_retrievers -p dataset musique      # needs RAG_REPRO_DATA
# rag-repro exhibit tools.bm25 --format csv
# ```
