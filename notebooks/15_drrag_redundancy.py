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
# # DR-RAG: recall, redundancy and answers
#
# DR-RAG {cite}`hei2024drrag` argues by two effects. The more of what a question needs is in the
# {term}`reader`'s context, the better it answers; and the more useless {term}`passages <passage>` stand
# beside it, the worse. Both are plausible, and the paper measures neither: it compares methods, which
# differ in both at once. On 2WikiMultihopQA its own table even shows answers getting worse while
# recall rises.
#
# Here each effect is taken alone. A control hands the reader passages that were *chosen* and not
# found: all {term}`gold passages <gold passage>`, all but one, or none, and a given number of others,
# near the question or by chance. Then the recorded answers of chapter 10 are split, question by
# question, by what happened to recall.

# %% tags=["parameters"]
tier = "all"  # whose records to show: "testbed", "public" or "all"
dataset = ""  # a data set to run instead, as "world-C" or "musique"; "": those of the exhibits
retriever = ""  # what searches instead, "bm25" or "minilm"; "": as the exhibits say
reader = ""  # who reads instead, as "smollm2-135m"; "": those of the exhibits
n_questions = None  # questions of each data set; None: all
live_calls = 6  # recorded questions to ask again now
seed = 0  # draws the questions that are asked again
device = "cpu"  # where readers and encoders compute
batch_size = 8  # questions in flight at once

# %% tags=["hide-input"]
from statistics import mean

from IPython.display import display

from rag_repro.data.titles import word
from rag_repro.methods.baselines import controls
from rag_repro.publish import chapter
from rag_repro.show import (
    Column,
    cases,
    curve,
    entries,
    frontier,
    key,
    label,
    level,
    paper,
    readers,
    table,
)
from rag_repro.show.chapter import Listing
from rag_repro.show.table import Table
from rag_repro.study.grouping import SHARES, gold_found
from rag_repro.study.printed import Compared

run = chapter(
    "15_drrag_redundancy", globals(), "drrag", exhibits=("coverage", "distractors", "readers")
)
TAUGHT = [run.reader] if run.reader else ["testbed-reader", "public-reader"]
run

# %% tags=["remove-input"]
run.source_note

# %% [markdown] tags=["claims"]
# ## What the paper claims
#
# The last column says whether the numbers *printed in the paper* bear the claim out, before anything
# is re-run.

# %% tags=["remove-input"]
CLAIMS = [f"drrag.{name}" for name in ("c14", "c15", "c17", "c18", "c19", "c35")]
run.statements(CLAIMS)

# %% [markdown] tags=["symbols"]
# ## Symbols
#
# | paper | here | meaning |
# | --- | --- | --- |
# | recall rate | `recall` | share of a question's gold passages that are in the context |
# | redundant information | `others` | passages in the context that are not gold |
# | Acc | `acc` | an accepted answer stands in what the reader gives as its answer |
# | $k$ | `k` | passages in the context |
# | | `gold` | how much of the gold is handed over: all, some (all but one), none |
# | | `kind` | where the others come from: near the question, or by chance |

# %% [markdown] tags=["equation"]
# ## Passages that were chosen
#
# $$
# \begin{gathered}
# Cnt = \text{shuffle}(G \cup O) \\
# G \subseteq \text{gold}(q), \quad O \cap \text{gold}(q) = \emptyset
# \end{gathered}
# $$ (eq-given)
#
# $G$ and $O$ are set apart, so that one can be held while the other varies. The order is drawn by
# the question, since a reader may lean on it; a larger number of others holds the smaller one.

# %% tags=["remove-input"]
Listing(controls.given_passages, controls.others)

# %% [markdown] tags=["worked"]
# ## One question, with less and less of its gold
#
# The first testbed question that is answered with all its gold and not without one of it, and how
# often that happens against the reverse.

# %% tags=["remove-input"]
coverage = run.paper.exhibit("coverage")
SOME, ALL = {"method": "some"}, {"method": "all"}
two_hops = cases.of_kind("compositional")
pages = cases.case(
    coverage,
    run.results,
    run.workshop,
    SOME,
    ALL,
    fine=two_hops,
    counted=("right only with all its gold", "right only without one of it"),
)
for page in pages:
    display(page)

# %% [markdown]
# And the first that is answered with the gold passages alone and not among eight others:

# %% tags=["remove-input"]
distractors = run.paper.exhibit("distractors")
AMONG, ALONE = {"method": "near", "others": 8}, {"method": "near", "others": 0}
NAMES = ("gold among eight others", "gold alone")
pages = cases.case(
    distractors,
    run.results,
    run.workshop,
    AMONG,
    ALONE,
    names=NAMES,
    counted=("right only without the others", "right only among the others"),
)
for page in pages:
    display(page)

# %% [markdown] tags=["result"]
# ## Effects of recall
#
# Four passages each time, but none in the first row; what varies is how many of them are gold.
# *Gain* is against the row above.
# A question with one gold passage has none left where one is missing.

# %% tags=["remove-input"]
run.table("coverage", run.rows("coverage", metric=["acc", "em"]), name="tab-coverage")

# %% [markdown]
# Whether the reader can read at all is decided where it has the gold passages and nothing else:

# %% tags=["remove-input"]
readers.gate(run.paper, run.results, run.tiers())

# %% [markdown]
# ### As found, not as given
#
# The answers of chapter 10, by how much of the gold a method had found. Here questions differ as well:
# those whose gold is hard to find may be hard to answer too.

# %% tags=["hide-input"]
FOUND = {
    f"{share} gold found, %, n": level("acc", where=lambda x, share=share: gold_found(x) == share)
    for share in SHARES
}
table(
    entries(run, "table3", k=4, reader=TAUGHT, method=["sm", "cfs"]),
    {"data set": key("dataset"), "reader": key("reader"), "method": label(), **FOUND},
    "Accuracy by how much of the gold the method had found",
    "tab-by-coverage",
)

# %% [markdown]
# ### Recall against accuracy
#
# The paper's cells (hollow) and ours (filled), a point for each method and $k$. A slope within a panel
# is what the paper's sentence is about; points of one method at growing $k$ also differ in how many
# useless passages they hold.

# %% tags=["hide-input"]
RECALL = {
    (row["dataset"], row["method"], row["k"]): float(row["value"])
    for row in run.paper.printed("table5")
    if row["metric"] == "recall"
}


def their_recall(entry):
    return RECALL.get(tuple(str(entry.keys[name]) for name in ("dataset", "method", "k")))


def their_accuracy(entry):
    value = paper("acc").read(entry)
    return float(value) if value else None


# As many of other passages are controls of chapter 10, and too many for one figure.
SHOWN = ("bm25", "sm", "qdc", "cis", "cfs", "cfs_similar", "cis_random")
SHOWN += ("cis_tuned", "cfs_tuned", "cis_fed", "cfs_fed", "cis_joint", "cfs_joint")
frontier(
    entries(run, "table3", reader=TAUGHT, method=[*SHOWN]),
    level("recall"),
    level("acc"),
    printed=(Column(their_recall), Column(their_accuracy)),
    caption="Accuracy against recall (hollow: the paper, Llama3-8B; filled: ours)",
    name="fig-slopes",
)

# %% [markdown]
# ### What CIS loses
#
# The paper says that where CIS loses much recall its answers get worse. Its own cells, sorted by what
# CIS loses:

# %% tags=["hide-input"]
SIDES = {"method": "cis"}, {"method": "qdc"}
recall = Compared("table5", *SIDES, {"metric": "recall"}).values(run.paper)
answers = Compared("table3", *SIDES).values(run.paper)
body = []
for place, change in sorted(recall.items(), key=lambda item: item[1]):
    at = {name: dict(place)[name] for name in ("dataset", "k")}
    changed = {}
    for told, gained in answers.items():
        if at.items() <= dict(told).items():
            changed.setdefault(dict(told)["reader"], []).append(gained)
    means = {reader: f"{mean(gained):+.2f}" for reader, gained in changed.items()}
    body.append([word(at["dataset"]), at["k"], f"{change:+.2f}", *means.values()])
Table(
    ["data set", "k", "recall", *(f"answers, {reader}" for reader in means)],
    body,
    "Printed: CIS minus QDC, least recall first",
    "tab-trade",
)

# %% [markdown]
# ## Effects of redundant information
#
# All gold passages, and more and more others: near ones, which the retriever takes for relevant, and
# others by chance.

# %% tags=["remove-input"]
for shown in run.tiers():
    display(
        curve(
            entries(run, "distractors", tier=shown),
            "others",
            {"Acc": level("acc")},
            caption=f"Accuracy with all gold passages and a number of others, {shown}",
            name=f"fig-distractors-{shown}",
        )
    )

# %% [markdown]
# ### Asked again, just now

# %% tags=["remove-input"]
run.live("coverage")

# %% [markdown] tags=["verdict"]
# ## Verdicts
#
# Three claims are decided question by question: only those questions count where recall fell (c14),
# where it stayed while passages became fewer (c15), or where it rose (c18). That is nearer to what
# the sentences say than a comparison of means, in which few questions change and most do not; but
# such questions are not drawn by chance, and are fewer than all. For c15, on what fewer passages
# do, CIS selects at the threshold that tune questions choose by the number of passages fed; for c14,
# on what lost gold costs, by F1 (chapter 12), the higher threshold, at which more gold is lost.

# %% tags=["remove-input"]
run.claims(CLAIMS)

# %% [markdown]
# Some tests are not what they were at first ({doc}`chapter 10 <10_drrag>` says what that costs):

# %% tags=["remove-input"]
run.changed(CLAIMS)

# %% [markdown]
# Contrasts beside these, among them the selections at the thresholds that decide nothing here. They
# decide no claim, and are corrected for their number:

# %% tags=["remove-input"]
run.asides(CLAIMS)

# %% [markdown] tags=["deviations"]
# ## Deviations from the paper
#
# | point | the paper | here | why |
# | --- | --- | --- | --- |
# | effects | argued from differences between methods | gold and others varied apart | methods differ in both |
# | readers | gpt-3.5-turbo, Llama3-8B | SmolLM2-135M-Instruct with adapters of ours | see chapter 10 |
# | contexts in training | none | all gold, among others | a reader that never saw a gap may fill it with a guess; part of what a missing passage costs here can be that |
# | missing gold | not studied | one gold passage, drawn by the question | the least change |
# | others | what a method happens to find | the best for the question by similarity, or by chance | |
# | order of passages | not stated | drawn by the question | readers may lean on places |
# | $k$ | 3, 4, 6 | 4; up to 12 with eight others | the readers learned from lists of at most ten, mostly shorter, so part of the loss at eight others may be length |

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro chapter 15_drrag_redundancy                      # this page
# rag-repro chapter 15_drrag_redundancy -p dataset world-C -p n_questions 20 -p reader smollm2-135m
# rag-repro run drrag.coverage                               # the records, where they stopped
# rag-repro run drrag.distractors --role primary
# rag-repro run drrag.table3 --role primary                  # what the splits by recall need
# rag-repro exhibit drrag.coverage --format csv              # every cell as a line
# ```
