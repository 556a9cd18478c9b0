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
# # R²AG: what it costs
#
# "R²AG increases latency by only 0.8 %", says the paper's introduction, and no table, figure or
# set-up stands behind the number. It depends on the {term}`reader` and on the prompt: the same former is a
# smaller part of a larger reader, but the tokens that it adds are added for every one. And it depends on what is counted: features need the vectors of all
# passages, which an index may hold or not.
#
# So plain RAG and R²AG are timed in turns here, one question at a time, on the same questions: up
# to the first token, where nothing but the prompt counts, and for whole answers, whose lengths
# differ. The encoding of texts is shown apart. So are the numbers that a former has, which need no
# clock.
#
# What comes out: R²AG adds a fifth to the time to the first token here, and not 0.8 %. More than half of what
# it adds is the encoding of passages, which an index can spare, and most of the rest is a longer prompt.

# %% tags=["parameters"]
tier = "all"  # whose times to show: "testbed" or "all"
n_questions = None  # questions of each data set; None: all that are timed
live_calls = 2  # timed questions to ask again now, to see whether their answers are the same
seed = 0  # draws the questions that are asked again
device = "cpu"  # where readers and encoders compute
batch_size = 1  # questions in flight at once, of those asked again

# %% tags=["hide-input"]
import json
from collections import Counter

import torch

from rag_repro.lm import hub
from rag_repro.lm.former import R2Former
from rag_repro.publish import chapter
from rag_repro.show import curve, entries, key, label, level, mean, percent, table
from rag_repro.show.chapter import Listing
from rag_repro.show.table import Table
from rag_repro.study import clock, timed_runs

run = chapter("45_r2ag_latency", globals(), "r2ag", exhibits=("latency",), folded=["paper"])
run

# %% tags=["remove-input"]
run.source_note

# %% [markdown] tags=["claims"]
# ## What the paper claims
#
# The last column says whether the numbers *printed in the paper* bear the claim out, before
# anything is re-run.

# %% tags=["remove-input"]
CLAIMS = [f"r2ag.{name}" for name in ("c33", "c34", "c38")]
run.statements(CLAIMS)

# %% [markdown] tags=["symbols"]
# ## Symbols
#
# | paper | here | meaning |
# | --- | --- | --- |
# | latency | `seconds` | from question to answer, one question at a time |
# | (none) | `seconds_reader` | the part of it in the reader, the former being in it |
# | (none) | `seconds_encoder` | the part in which texts are encoded |
# | (none) | `prefilled_tokens` | prompt tokens that the reader computed |
# | $h_1$, $h_2$ | 256, `width` | numbers a passage in the former, and in the reader's embeddings |

# %% [markdown] tags=["equation"]
# ## What is added
#
# With an encoding $e$ of a text, the former $f(k)$, and a reading $p$ of the prompt and $w$ of what
# is written,
#
# $$
# \begin{aligned}
# T_{\text{RAG}} &= e(q) + s + p(n) + w(m) \\
# T_{\text{R²AG}} &= e(q) + s + \underbrace{e(q) + \textstyle\sum_i e(d_i)}_{\text{features, if no index holds them}} + f(k) + p(n + ck + c_0) + w(m')
# \end{aligned}
# $$ (eq-latency)
#
# for a search $s$, $n$ tokens of prompt, $m$ and $m'$ of answer. The added tokens are $c_0$ of one
# sentence in the instruction, and before each passage $c$: the word "similarity" and its embedding. How
# many that is depends on the reader: here $c$ is 6 and $c_0$ 11, by the prompts of five and of ten passages
# below. The testbed's passages are short; in a prompt of 2,000 tokens, as the paper's are, as many are a
# smaller share. Equation {eq}`eq-latency` is ours.

# %% tags=["remove-input"]
Listing(R2Former.__init__, timed_runs.take_turns, clock.Clocked)

# %% [markdown]
# ### How large a former is
#
# Three features, one layer, room for 20 passages (those that are timed have room for ten); before the
# reader of this book and before one as wide as the paper's LLaMA2-7B. The head serves the training
# alone.

# %% tags=["hide-input"]
READER = "smollm2-135m"
width = json.loads((hub.resolve(READER).path / "config.json").read_text("utf-8"))["hidden_size"]
PARTS = {
    "lift": "features to 256",
    "positions": "places",
    "encoder": "encoder layer",
    "projection": "projection to the reader",
    "head": "matching head",
}
sizes = []
for reader, wide in {READER: width, "as wide as LLaMA2-7B": 4096}.items():
    with torch.device("meta"):
        former = R2Former(3, wide)
    numbers = Counter()
    for name, parameter in former.named_parameters():
        numbers[name.partition(".")[0]] += parameter.numel()
    sizes.append([reader, wide, *(f"{numbers[p]:,}" for p in PARTS), f"{numbers.total():,}"])
Table(
    ["reader", "width", *PARTS.values(), "all"],
    sizes,
    "Numbers that an R²-Former has, by the width of its reader",
    "tab-sizes",
)

# %% [markdown] tags=["worked"]
# ## One answer and its clock
#
# R²AG up to its first token, call by call. *Texts encoded* are the question and its passages, for
# the features:

# %% tags=["hide-input"]
ONE = run.cell("latency", method="r2ag_first", dataset="world-B-10")
line = run.results.lines(ONE)[0]
turn = line["turns"][0]
CALLS = {
    "reader": "the reader writes",
    "retriever": "search",
    "retriever.encoder": "of it, queries encoded",
    "encoder": "texts encoded",
}
Table(
    ["call", "items", "milliseconds", "of the whole"],
    [
        [CALLS[call], items, f"{1000 * took:,.1f}", f"{100 * took / turn['seconds']:.1f} %"]
        for call, took, items in turn["clock"]
    ]
    + [["all in all", "", f"{1000 * turn['seconds']:,.1f}", "100.0 %"]],
    f"The clock of one answer, question {line['id']}",
)

# %% [markdown] tags=["result"]
# ## To the first token
#
# In percent of plain RAG's time to its first token, on the same questions, each of which every row
# answers once, in turns; times are means over questions. The paper's number would be 100.8.
# *Constant features* need no encoder: what is left is the former and its places in the prompt.
# *In the reader* compares the readers' part of the time alone. Compressors keep here what they
# keep by default, RECOMP five sentences and LongLLMLingua 0.55 of the tokens, not chapter 40's ten and 0.8.

# %% tags=["remove-input"]
FIRST = ("rag_first", "r2ag_first", "constant_first")
AHEAD = (
    "recomp_extractive_first",
    "recomp_abstractive_first",
    "long_llmlingua_first",
    "crag_first",
)
COLUMNS = {
    "data set": key("dataset"),
    "k": key("k"),
    "method": label(),
    "prompt tokens computed": mean("prefilled_tokens").printed(digits=0),
    "seconds [95 %], n": level("seconds").printed(digits=3),
    "in % of the baseline's": percent("seconds"),
    "in the reader, %": percent("seconds_reader"),
    "encoding, ms": mean("seconds_encoder", scale=1000),
}
first = entries(run, "latency", method=[*FIRST], dataset="world-B-10")
table(first, COLUMNS, "Time to the first token, in % of plain RAG's", "tab-first")

# %% [markdown]
# With constant features no passage is encoded, and the reader's own time grows just as much: most of what is
# added there is the longer prompt, which a larger reader would read as well.
#
# By the number of passages. The dashed line is the paper's number:

# %% tags=["remove-input"]
PRINTED = float(run.paper.printed("latency")[0]["value"])
curve(
    entries(run, "latency", method=[*FIRST], dataset="world-B-20"),
    "k",
    {"all in all": percent("seconds"), "in the reader": percent("seconds_reader")},
    reference=100 + PRINTED,
    caption="Time to the first token in % of plain RAG's, by the number of passages; bars are 95 %",
    name="fig-by-k",
)

# %% [markdown]
# ## Whole answers, and the rivals
#
# What works before the reader takes time of its own, and may leave the reader less to read. The paper
# speaks of the first alone; r2ag.c38 is judged by the whole time to the first token, as a user waits for
# it, and fails where one such method is faster than plain RAG. LongLLMLingua asks the reader itself, many
# times a question, what to leave out: *prompt tokens computed* are of these prompts and of the answer's, but
# not of the texts that are scored behind them, so that its cost is told by the time and not by this
# column. To the first token:

# %% tags=["remove-input"]
RIVALS = ("rag_first", "r2ag_first", *AHEAD)
ahead = entries(run, "latency", method=[*RIVALS], dataset="world-B-10")
table(ahead, COLUMNS, "Time to the first token, of rivals", "tab-rivals")

# %% [markdown]
# Whole answers. A method that writes shorter ones is done sooner, which is no property of its prompt; of
# R²AG only the means say so:

# %% tags=["remove-input"]
whole = [e for e in entries(run, "latency") if not e.keys["method"].endswith("_first")]
table(whole, COLUMNS, "Time for whole answers, in % of plain RAG's", "tab-whole")

# %% [markdown]
# ### Asked again, just now
#
# Times cannot be repeated to the digit; answers can.

# %% tags=["remove-input"]
run.live("latency")

# %% [markdown] tags=["verdict"]
# ## Verdicts
#
# Times are judged as ratios on the same questions; of r2ag.c38 *the other* is the method that works before
# the reader. "0.8 %" holds where the whole interval lies
# between no change and twice as much.

# %% tags=["remove-input"]
run.claims(CLAIMS)

# %% tags=["remove-input"]
run.changed(CLAIMS)

# %% [markdown]
# Contrasts beside these, whole answers and the former alone among them. They decide no claim, and
# are corrected for their number:

# %% tags=["remove-input"]
run.asides(CLAIMS)

# %% [markdown] tags=["deviations"]
# ## Deviations from the paper
#
# | point | the paper | here | why |
# | --- | --- | --- | --- |
# | set-up | not told | questions in turns, one at a time, warm weights, no cache of calls | |
# | reader | not told; 7B in its tables | 135 million parameters, so that the former weighs more than before a larger one; the longer prompt does not | two cores |
# | repeats | not told | each question once by each row, in turns; means over few questions, and ratios on the same ones | two cores |
# | numbers of passages | not told | 5 and 10; plain RAG also 20 | the timed former has ten places |
# | machine | not told | two cores; processor and load stand in the record's manifest | |
# | what is counted | not told | first token and whole answer; in the reader, and in all | |
# | vectors of passages | not told whether an index hands them out | encoded anew for each question, and told apart | an index could hold them |
# | memory | not told | not measured | numbers to hold are counted |
# | CRAG, and RECOMP's writing compressor | not told | not timed yet; CRAG would be at its authors' threshold, by which it leaves more to read than in chapter 40 | two cores |

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# Nothing else should be at work on the machine while it is timed; the load stands in the manifest
# beside each record.
#
# ```bash
# rag-repro chapter 45_r2ag_latency                          # this page
# rag-repro train r2ag-mixed                                 # what is timed
# rag-repro time r2ag.latency                                # the times, or go on where they stopped
# rag-repro time r2ag.latency --tier paper --device cuda     # the paper's reader; needs a GPU
# rag-repro exhibit r2ag.latency --format csv                # every cell as a line
# ```
