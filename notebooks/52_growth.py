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

# %% tags=["hide-input"]
import numpy as np

from rag_repro.analysis import index_growth
from rag_repro.book_folders import here
from rag_repro.publish import chapter
from rag_repro.show import picture
from rag_repro.show.chapter import Listing
from rag_repro.show.picture import Note, Picture
from rag_repro.show.table import Table
from rag_repro.show.values import number
from rag_repro.study import growth

run = chapter(
    "52_growth",
    globals(),
    sizes=range(100, 100_000_001),
    passages=range(1000, 10_000_000_001),
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
    grown = [growth.run(run.retriever, run.sizes, folder)]
else:
    grown = growth.load_all(FOLDER)
run

# %% [markdown]
# ## How it is measured
#
# The corpora are the {term}`testbed`'s second world, generated in the wanted size. Each size is built
# and searched in a process of its own, so that the most memory that it held is its own, under a limit
# of memory and of the processor's time; the first size that goes beyond a limit is shown as that, and
# larger ones are not tried. Times are the processor's, which other work on the machine moves least;
# those of the clock stand in a column of their own. The largest sizes were measured while other programs
# used both cores. That moves processor time too, and prediction intervals do not cover it. Sizes on the disk are exact, times are rough. Libraries are loaded before anything is counted.
#
# Two stores hold an index: files that are read into memory (bm25s {cite}`lu2024bm25s` and FAISS
# {cite}`douze2024faiss`), and Milvus {cite}`wang2021milvus`, here in its embedded form; the same client
# talks to a cluster, which is where a corpus goes that no one machine holds.

# %% [markdown]
# ## Measured


# %% tags=["hide-input"]
def plain(value, place=None):
    """A tick without powers of ten: formulas are not set in figures."""
    if value >= 1:
        return f"{value:,.0f}"
    return np.format_float_positional(value, precision=3, fractional=False, trim="-")


plt, colours = picture.plots()
shape = (picture.WIDTH, 0.75 * picture.WIDTH)
figure, axes = plt.subplots(2, 2, figsize=shape, layout="constrained")
drawn = [one for one in grown if one.measured]
names = [LABELS.get(one.retriever, one.retriever) for one in drawn]
styles = list(zip(colours, picture.MARKERS, strict=False))[: len(drawn)]
largest = []
for axis, quantity in zip(axes.flat, index_growth.QUANTITIES, strict=True):
    for one, name, (colour, marker) in zip(drawn, names, styles, strict=True):
        if points := quantity.points(one):
            axis.plot(*zip(*points, strict=True), color=colour, marker=marker, ms=5, ls="")
            n, value = points[-1]
            largest.append(f"{name}, {quantity.label}: {number(value, quantity.digits)} at {n:,}")
        if line := index_growth.fit(one, quantity):
            ends = line.points[0][0], line.points[-1][0]
            axis.plot(ends, [line.at(end).estimate for end in ends], color=colour)
    axis.set(xscale="log", yscale="log", xlabel="passages", ylabel=quantity.label)
    axis.xaxis.set_major_formatter(plain)
    axis.yaxis.set_major_formatter(plain)
    axis.minorticks_off()
picture.legend(figure, styles, names)
Picture(
    figure,
    f"Growth. {'; '.join(largest)}.",
    "What an index needs by its number of passages; lines: a power of it, fitted to the larger sizes",
    "fig-growth",
)

# %% tags=["hide-input"]
body = []
for one in grown:
    limit = {
        growth.MEMORY: f"{one.limits.get('gigabytes', '?')} GB of memory",
        growth.PROCESSOR: f"{one.limits.get('minutes', '?')} minutes of the processor",
    }
    for size in one.sizes:
        row = [LABELS.get(one.retriever, one.retriever), f"{size.passages:,}"]
        if size.stopped:
            body.append([*row, "", f"stopped: more than {limit[size.stopped]}", *[""] * 6])
            continue
        row += [number(size.text / 1e6, 1), number(size.index / 1e6, 1)]
        row += [number(index_growth.MEMORY.read(size), 2), number(size.build_cpu, 1)]
        row += [number(size.encoding_cpu, 1), number(size.lookup_cpu, 2)]
        row.append(f"{size.search:.1f} [{number(size.search_95, 1)}]")
        row.append(", ".join(f"{other} {share:.3f}" for other, share in size.overlap.items()))
        body.append(row)
head = ["retriever", "passages", "their text, MB", "index, MB", "memory, GB", "build, s"]
head += ["of it encoding, s", "ms a search", "by the clock [95 of 100]", "overlap at 10"]
filled = [i for i in range(len(head)) if any(row[i] for row in body)]
body = [[row[i] for i in filled] for row in body]
Table([head[i] for i in filled], body, "Each size as it was measured", "tab-growth")

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

# %% tags=["hide-input"]
Listing(index_growth.fit, index_growth.Fit.at)

# %% tags=["hide-input"]
body = []
for one in grown:
    for quantity in index_growth.QUANTITIES:
        if line := index_growth.fit(one, quantity):
            n, value = line.points[-1]
            row = [LABELS.get(one.retriever, one.retriever), quantity.label]
            row += [f"{number(value, quantity.digits)} at {n:,}", f"{line.power:.2f}"]
            row.append(f"x {10**line.residual:.2f}, {len(line.points)} sizes")
            body.append([*row, index_growth.extrapolate(one, quantity, run.passages)])
head = ["retriever", "quantity", "measured", "power of the passages", "residual"]
head.append(f"at {run.passages:,} passages [95 %]")
caption = f"What {run.passages:,} passages would need"
Table(head, body, caption, "tab-wikipedia") if body else Note(
    "Nothing can be extrapolated: three sizes within a factor of 100 are needed, as by "
    "`rag-repro growth bm25 --sizes 1000 10000 100000 1000000`"
)

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
