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
# # DR-RAG: what an answer costs
#
# DR-RAG {cite}`hei2024drrag` asks its language model once. Methods that reason in steps ask it again
# and again, and the paper holds that this is where they lose: its table 2 counts the steps of each
# method and the time for one answer, as a multiple of what one search and one reading take, and its
# figure 3 draws quality against time.
#
# Nothing in these columns can be checked from the page alone. The rows of the other methods are
# said to coincide with a table of another paper, made with another language model (unverified here:
# that table was not at hand); the times of DR-RAG are its own. A ratio of the two compares machines
# and models as well as methods. So all methods are timed here on one machine, with one reader
# (Self-RAG needs another), on the same questions, side by side.

# %% tags=["parameters"]
tier = "all"  # whose times to show: "testbed", "public" or "all"
dataset = ""  # a data set to time instead, as "world-C"; "": those of figure 3
retriever = ""  # what searches instead, "bm25" or "minilm"; "": as figure 3
reader = ""  # who reads instead, as "smollm2-135m"; "": as figure 3
methods = []  # only these rows of figure 3, as ["single_step", "qdc"]; []: all
n_questions = None  # questions of each data set; None: all that are timed
live_calls = 4  # timed questions to ask again now, to see whether their answers are the same
seed = 0  # draws the questions that are asked again
device = "cpu"  # where readers and encoders compute
batch_size = 1  # questions in flight at once, of those asked again

# %% tags=["hide-input"]
from IPython.display import display

from rag_repro.publish import chapter
from rag_repro.publish.places import here
from rag_repro.report import groups, time_figures, times
from rag_repro.report.desk import Desk, Listing
from rag_repro.study import clock, timing

run = chapter(
    "14_drrag_cost",
    globals(),
    tier=("all", "testbed", "public"),
    n_questions=range(1, 10_000_001),
    methods=(
        "single_step",
        "adaptive_retrieval",
        "half_by_lot",
        "self_rag",
        "adaptive_rag",
        "multi_step",
        "qdc",
        "cis",
        "dr_rag",
        "cis_next",
        "cfs_next",
        "dr_rag_joint",
        "bm25",
        "qdc_bm25",
        "sm",
        "cfs",
    ),
)
desk = Desk("drrag", run, here().root, exhibits=("fig3", "scale"), methods=run.methods)
figure_3, scale = desk.paper.exhibit("fig3"), desk.paper.exhibit("scale")
run

# %% tags=["remove-input"]
desk.says

# %% [markdown] tags=["claims"]
# ## What the paper claims
#
# The claims about calls and time, and three that a summary of the paper adds. The last column says
# whether the numbers *printed in the paper* bear the claim out, before anything is re-run.

# %% tags=["remove-input"]
CLAIMS = [f"drrag.{name}" for name in ("c28", "c29", "c30", "c31", "c34", "s02", "s07")]
desk.statements(CLAIMS)

# %% [markdown] tags=["symbols"]
# ## Symbols
#
# | paper | here | meaning |
# | --- | --- | --- |
# | Step | `reader_calls`, `retrievals` | how often a method goes to the language model, or searches; the paper does not say which its column counts |
# | Time | `seconds`, over those of `single_step` | from question to answer, one question at a time |
# | $C$ | `scorer` | the pair classifier |
# | $k_1$, $k_2$ | `k1`, `k - k1` | passages of the first stage, and of the second |
# | (no symbol) | `pairs` | pairs that the classifier is asked about for one question |
# | (no symbol) | `clock` | the calls of one answer in their order, with the seconds of each |
#
# "Step" hardly counts calls of the language model: Adaptive Retrieval has 0.50 there, and cannot answer
# half of its questions without a model. It reads like the number of *searches*. By that count DR-RAG
# searches $1 + k_1$ times, in two rounds.

# %% [markdown] tags=["equation"]
# ## What is measured
#
# The paper has no equation for time. With one search $s$, an encoding $e$ of a query, $t_C$ for a pair and
# a reading $r$ that grows with what is read and written, an answer takes
#
# $$
# \begin{aligned}
# T_{\text{single-step}} &= e + s + r(k) \\
# T_{\text{DR-RAG}} &= (1 + k_1)\,(e + s) + n_{\text{pairs}}\, t_C + r(k' \le k) \\
# T_{\text{multi-step}} &= \sum_{i=1}^{m} \bigl(e + s + r_i\bigr) + r(k)
# \end{aligned}
# $$ (eq-time)
#
# so that DR-RAG gains on the methods in steps wherever a reading costs more than some searches and
# some pairs. That depends on the reader: beside a large one, or one behind a network, all that
# stands before $r$ is small; beside one of 135 million parameters on two cores it need not be.
# Equation {eq}`eq-time` is ours.
#
# Methods never see a clock. Each service is wrapped in one that notes how long its calls take, and the
# methods take turns at each question, in an order drawn for that question:

# %% tags=["remove-input"]
Listing(timing.take_turns, timing.Seat.ask, clock.Clocked)

# %% [markdown]
# When the clock starts, the weights and the index are warm, and so is whatever one uncounted
# question before the first has touched. The cache of calls is left out, and before each answer the
# reader forgets the beginnings of prompts that it kept, so that no method reads for another. Within
# one answer it keeps them: a method in steps may use what it computed itself. One thing was kept that
# should not have been: the vectors of texts that the classifier had met before. What is shown of it
# is the least that it takes.

# %% [markdown] tags=["worked"]
# ## One answer and its clock
#
# DR-RAG with forward selection on a question of the testbed: the first timed answer in which the
# classifier was asked anything.

# %% tags=["remove-input"]
shown = [c for c in figure_3.cells() if c.keys["method"] == "dr_rag"]
cell = min(shown, key=lambda c: c.tier != "testbed", default=None)
line = times.worked(cell, desk.results) if cell else None
times.clock_table(line, cell)

# %% tags=["remove-input"]
time_figures.one_clock(
    line, cell, caption="The calls of one answer, one behind the other", name="fig-clock"
)

# %% [markdown] tags=["result"]
# ## Figure 3 and the columns Step and Time of table 2
#
# Each method's time beside that of single-step on the same questions, with its interval; then the
# paper's column, then the seconds. Further columns count the reader's calls, the tokens that it
# read (those of prompts that it really computed) and wrote, the searches, and the pairs judged. QDC
# and CIS are not in the paper's table; they show what the parts of DR-RAG cost one by one, and the
# rows *without QDC* what the classifier costs where there is no second query. On public data
# Adaptive Retrieval is another method than the paper's, *half by lot*: these sets tell no page
# views. A row with more searches and a classifier can take less time than single-step: nearly all of the
# time is the reader's, and what it writes differs with what it is handed. CIS and CFS are at threshold 0.5;
# one that refuses more would leave less to read.

# %% tags=["remove-input"]
rows = {name: times.timed(figure_3, desk.results, name) for name in desk.tiers()}
printed = times.printed_values(desk.paper, "table2")
for name, of_tier in rows.items():
    of_paper = printed if name == "public" else {}
    display(times.time_table(figure_3, of_tier, of_paper, name=f"tab-time-{name}"))

# %% [markdown]
# Quality against time. F1 is that of the method's recorded answers where it has some beyond those that
# were timed, else of the timed ones, whose intervals are wide. On public data the hollow points are the
# paper's own, from its table 2 (the values of its figure 3 are not in its text).

# %% tags=["remove-input"]
PAPER = {"testbed": "", "public": "; hollow: the paper's"}
for name, of_tier in rows.items():
    display(
        time_figures.quality_against_time(
            figure_3,
            of_tier,
            printed if name == "public" else {},
            caption=f"F1 against time, {name}; filled: ours, with 95 % intervals{PAPER[name]}",
            name=f"fig-time-{name}",
        )
    )

# %% [markdown]
# ### The 74.2 %, recomputed
#
# Recomputed from the paper's own table, the mean share of Adaptive-RAG's time that DR-RAG saves:

# %% tags=["remove-input"]
times.saved(printed, "dr_rag", "adaptive_rag", name="tab-saved")

# %% [markdown]
# The last line is the claim's arithmetic. What it rests on is another matter: each of the two
# printed times is a multiple of *some* single-step, and the two need not be the same one. The row
# of Adaptive-RAG is among those said to coincide with a table of {cite}`jeong2024adaptiverag`,
# made with FLAN-T5-XL; DR-RAG's was measured with Llama3-8B, by the table's caption. The verdict
# below is on our own ratio, of the two methods side by side.
#
# ### Where the time goes
#
# A summary of the paper says that *retrieval* time falls, and that the extra cost of two stages
# lies in the first. Both are about parts of an answer's time, which the paper does not give:

# %% tags=["remove-input"]
for name, of_tier in rows.items():
    display(
        time_figures.parts(
            of_tier, caption=f"Seconds for one answer by service, {name}", name=f"fig-parts-{name}"
        )
    )

# %% tags=["remove-input"]
for name, of_tier in rows.items():
    display(times.part_table(of_tier, name=f"tab-parts-{name}"))

# %% [markdown]
# The first search of DR-RAG is that of single-step, for fewer passages. What comes on top is $k_1$
# more searches, whose queries are longer by a passage and must be encoded, and the classifier.
#
# ## How both grow with the corpus
#
# The paper's data sets are small, and so are their corpora here. How recall and time go on from
# there is a question that the summary leaves open. So one of the testbed's worlds can be made to
# grow, without a reader. Encoding passages takes a while on two cores, so the dense methods end where
# their vectors can be had in minutes. Each size has questions of its own,
# drawn in the same way.

# %% tags=["remove-input"]
growing = desk.rows("scale")
labels = {name: row.label for name, row in scale.methods.items()}
time_figures.against_size(
    growing,
    metrics={"recall": "recall, %", "ms": "milliseconds"},
    methods=labels,
    sizes=times.sizes(scale, desk.results),
    caption="Recall at k = 4 and time without a reading, as the corpus grows",
    name="fig-scale",
)

# %% tags=["hide-input"]
desk.table("scale", [row for row in growing if row.metric in ("recall", "ms")], name="tab-scale")

# %% [markdown]
# ## By length and by subject
#
# Does it matter how long the needed passages are, or what they are about? The records of table 5 at
# $k = 4$ can tell, since the testbed knows both of every question. First by the mean length of a question's
# needed passages, in thirds of the questions; passages of the testbed have three to six sentences,
# so the range is narrow. *n* is that of the plain search. CFS, at threshold 0.5, was run on fewer questions,
# and what it adds is over those alone: *QDC adds* and *CFS adds* are not on the same questions.

# %% tags=["remove-input"]
WORLDS = ("world-B", "world-C", "world-D")
worlds = {name: desk.workshop.dataset(name, "test") for name in WORLDS}
of_table_5 = desk.paper.exhibit("table5")
ADDED = {"qdc": "sm", "cfs": "sm", "qdc_bm25": "bm25"}
chosen = {"k": 4, "own_candidates": False}
groups.group_table(
    desk.results,
    of_table_5,
    worlds,
    groups.by_length,
    ADDED,
    what="length of the needed passages",
    name="tab-by-length",
    **chosen,
)

# %% [markdown]
# By what the last needed passage is about:

# %% tags=["remove-input"]
groups.group_table(
    desk.results,
    of_table_5,
    worlds,
    groups.by_subject,
    ADDED,
    what="subject of the last needed passage",
    name="tab-by-subject",
    **chosen,
)

# %% [markdown]
# And by the relation that the last step follows:

# %% tags=["hide-input"]
groups.group_table(
    desk.results,
    of_table_5,
    worlds,
    groups.by_relation,
    ADDED,
    what="relation of the last step",
    name="tab-by-relation",
    **chosen,
)

# %% [markdown]
# ### Asked again, just now
#
# Times cannot be repeated to the digit; answers can.

# %% tags=["remove-input"]
desk.live("fig3")

# %% [markdown] tags=["verdict"]
# ## Verdicts
#
# {numref}`tab-verdicts-14` gives them. Times are judged as ratios: the mean time of one method in
# percent of the mean time of the other, on the same questions, with the questions drawn anew for
# the interval. For "less time" the effect is how far the ratio lies below 100, and must reach half
# of what the paper's own numbers say; for a share of the whole, how far it lies below a tenth. A
# ratio of two methods on one machine says nothing about seconds elsewhere, and it shifts with the
# reader: the smaller the reader, the more searches and classifier weigh.
#
# A claim that names several methods fails where one of them is not slower, and stays open while one of
# them is not timed. Self-RAG's reader was taught to give its answer without reasoning, so that it writes less
# than the others: that DR-RAG takes longer than Self-RAG is in part that, and where a verdict fails by this
# row alone it says little about the two methods.

# %% tags=["remove-input"]
desk.claims(CLAIMS)

# %% [markdown]
# Contrasts beside these, among them those about rows that the paper itself
# holds to be faster. They decide no claim, and are corrected for their
# number:

# %% tags=["remove-input"]
desk.asides(CLAIMS)

# %% [markdown] tags=["deviations"]
# ## Deviations from the paper
#
# | point | the paper | here | why |
# | --- | --- | --- | --- |
# | reader | Llama3-8B (table 2), gpt-3.5-turbo (figure 3) | one of 135 million parameters, taught to read | what runs on two cores |
# | classifier | BigBird-base, 125 million parameters, over both passages at once | a regression over similarities of MiniLM's vectors (23 million), one vector a text; what a cross-encoder costs is not timed | the same |
# | machine | not stated | two cores; processor, versions and threads in the record's header | |
# | time | one number a data set, no n, no spread | up to 30 questions a data set (n stands in each cell), one answer each, side by side; interval by question | |
# | batches | not stated | one question at a time; the second-stage queries of *one* question are searched together | as DR-RAG would be served |
# | rows of other methods | said to be from another paper (not checked here) | run here, with the same passages and questions, and the same reader but for Self-RAG | |
# | Adaptive Retrieval | not stated what popularity is | testbed: page views of what the question names; public data: half of the questions by lot, as the printed 0.50 | these sets tell no page views |
# | Self-RAG, Adaptive-RAG | released models | on the testbed alone, with a reader and a classifier taught on another world; Self-RAG's reader was taught to answer without reasoning | no public labels here to teach them on |
# | multi-step | up to 15 passages, 10 sentences | the k of all rows; two passages a search, four sentences | the same k for all, which two searches may fill: further rounds then add time and no passages, so the multi-step approach looks slower than need be |
# | search | not stated; from memory or a server | in memory, in the same process | |
# | $k$ | DR-RAG's row of table 2 is the mean over k = 3, 4, 6 | k = 4 | |

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# Nothing else should be at work on the machine while it is timed; the load stands in the manifest
# beside each record.
#
# ```bash
# rag-repro time drrag.fig3 --tier testbed             # the times, or go on where they stopped
# rag-repro time drrag.fig3 --tier public              # needs RAG_REPRO_DATA
# rag-repro time drrag.scale                           # as the corpus grows; no reader
# rag-repro time drrag.fig3 --dataset world-B --repeats 3 --results elsewhere/records
# rag-repro exhibit drrag.fig3 --format csv            # every cell as a line
# rag-repro chapter 14_drrag_cost                      # this page
# rag-repro chapter 14_drrag_cost -p dataset world-C@1000 -p retriever bm25 \
#     -p reader smollm2-135m -p methods '["single_step", "qdc"]' -p n_questions 3
# ```
#
# Times lie in `results/times`. Those of another machine, or of another set of methods, are not continued but
# refused, since they would not compare: move them away to time anew.
