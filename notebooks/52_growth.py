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
# # Growth beyond one machine
#
# DRAGIN {cite}`su2024dragin` searches the whole of Wikipedia, 21,015,324 {term}`passages <passage>`
# of a hundred words each {cite}`karpukhin2020dpr`; the corpora of this book's records hold
# thousands. What would it take to search all of it with the {term}`retrievers <retriever>` of this
# book? Here an index grows from a thousand passages on, and what it needs is measured: its size on
# the disk and in memory, the time to build it, and the time of one search. What was not measured is
# a straight line carried on, and is marked as such.
#
# The passages that it grows by are the testbed's, some three hundred letters each, which is about
# fifty words. Everything that BM25 needs grows with the text, and so do an encoder's hours: these are
# carried on to a Wikipedia of such short passages, and the real one needs about twice as much.

# %% tags=["parameters"]
retriever = ""  # one to measure here and now, as "bm25-stemmed"; "": show the recorded ones
sizes = [1000, 3000, 10000]  # passages at which it is measured
passages = 21_015_324  # how large a corpus the tables carry on to
core_hour = 0.05  # price of an hour of one core, in any currency: put in your provider's
memory_hour = 0.005  # price of a gigabyte of memory for an hour
disk_month = 0.1  # price of a gigabyte on the disk for a month
again = 1000  # the size that is measured once more, of bm25 or of the retriever named above

# %% tags=["hide-input"]
from rag_repro.publish import chapter
from rag_repro.publish.places import here
from rag_repro.report import growth
from rag_repro.report.desk import Listing
from rag_repro.study import growth as records
from rag_repro.study import growth_size

run = chapter(
    "52_growth",
    globals(),
    sizes=range(100, 100_000_001),
    passages=range(1000, 10_000_000_001),
    again=range(100, 1_000_001),
)
FOLDER = here().root / "results" / "growth"
LABELS = {
    "bm25": "BM25",
    "minilm": "MiniLM, exact",
    "milvus-bm25": "BM25 in Milvus",
    "milvus-minilm": "MiniLM in Milvus",
}
if run.retriever:
    folder = here().root / "results" / "local" / "growth"
    grown = [records.run(run.retriever, run.sizes, folder)]
else:
    grown = records.load_all(FOLDER)
run

# %% [markdown]
# ## How it is measured
#
# The corpora are the {term}`testbed`'s second world, generated in the wanted size. Each size is built
# and searched in a process of its own, so that the most memory that it held is its own, under a limit
# of memory and of the processor's time; the first size that goes beyond a limit is shown as that, and
# larger ones are not tried. Times are the processor's, which other work on the machine moves least;
# those of the clock stand beside. Still, the largest sizes were measured while other programs used both
# cores, and *Measured again* below shows how far processor time itself moves; prediction intervals do not
# cover that. Sizes on the disk are exact, times are rough. Libraries are loaded before anything is counted.
#
# Two stores hold an index: files that are read into memory (bm25s {cite}`lu2024bm25s` and FAISS
# {cite}`douze2024faiss`), and Milvus {cite}`wang2021milvus`, here in its embedded form; the same client
# talks to a cluster, which is where a corpus goes that no one machine holds.

# %% [markdown]
# ## Measured

# %% tags=["remove-input"]
growth.picture(
    grown,
    LABELS,
    "What an index needs by its number of passages; lines: a power of it, fitted to the larger sizes",
    "fig-growth",
)

# %% tags=["remove-input"]
growth.table(grown, LABELS, "Each size as it was measured", "tab-growth")

# %% [markdown]
# *Memory* is what the process held more than before it had a corpus, the corpus in it. *Ms a search* is the
# processor's time, a mean, without the encoding of the question, which does not grow with the corpus. *By the
# clock* is the median with the encoding and all waiting, and in brackets what 95 of 100 searches stay
# below: where nothing is encoded the two differ by waiting, for the store or for a busy processor.
# *Overlap at 10* is the share of the best ten passages that Milvus and the index in memory have in common.
#
# ## Carried on
#
# On logarithmic axes a straight line is fitted through the sizes; its slope is the exponent with which a
# need grows. The interval is a prediction interval, in which one more measurement would be expected if
# the line held that far. It need not: where an index no longer fits into a machine's memory, nothing goes
# on as before. Where the measured sizes leave more than a factor of 100
# open, nothing is carried on, and no line of memory that ends below the index itself: it rests on what does
# not grow, as an encoder. Of an index that is read into memory its size on the disk is then the least that
# is needed. A retriever that was measured at fewer than three sizes has no line. *Hours to build* are hours
# of one core. The embedded Milvus is Milvus Lite, written in Python and meant for small corpora: its times
# and its memory are no guide to those of a server, whose results it shares.

# %% tags=["remove-input"]
Listing(growth.fit, growth.Fit.at)

# %% tags=["remove-input"]
growth.wikipedia(
    grown,
    run.passages,
    labels=LABELS,
    caption=f"What {run.passages:,} passages would need",
    name="tab-wikipedia",
)

# %% [markdown]
# With the prices among the parameters, which are round numbers and no offer of anybody:

# %% tags=["remove-input"]
growth.bill(
    grown,
    growth.Prices(run.core_hour, run.memory_hour, run.disk_month),
    run.passages,
    LABELS,
    f"What {run.passages:,} passages would cost",
    "tab-bill",
)

# %% [markdown]
# ## Measured again, just now
#
# One recorded size, built anew while this page was made. The index must be the same to the byte; the
# times are this machine's.

# %% tags=["remove-input"]
NAME = run.retriever or "bm25"
growth.again(grown, NAME, growth_size.apart(NAME, run.again, queries=100, minutes=10, gigabytes=6))

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro growth bm25 --sizes 1000 10000 100000 1000000   # go on with a record, or begin one
# rag-repro corpus build world-B@100000 --retriever milvus-bm25   # a corpus in Milvus, counted
# rag-repro chapter 52_growth -p retriever bm25-stemmed -p sizes "[1000, 3000, 10000]"
# ```
#
# A record of growth is continued on the machine that began it, since sizes compare only there.
