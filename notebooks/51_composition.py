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
# # Composition
#
# The four papers act at different stages: ERM4 {cite}`shi2024erm4` rewrites the {term}`question` and
# filters what was found, DR-RAG {cite}`hei2024drrag` searches in two stages and selects, R²AG
# {cite}`ye2024r2ag` tells the {term}`reader` what the {term}`retriever` thinks of each passage, DRAGIN
# {cite}`su2024dragin` decides while it writes when to search. Nothing keeps them from working together, and
# no paper tried. Do their gains add up? Does one make another needless, or harm it?

# %% tags=["parameters"]
tier = "all"  # whose records to show: "testbed", "public" or "all"
dataset = ""  # a data set to run instead, as "world-C" or "musique"; "": those of the exhibits
reader = ""  # who reads instead, as "smollm2-135m"; "": those of the exhibits
n_questions = None  # questions of each data set; None: all
live_calls = 6  # recorded questions to ask again now
seed = 0  # draws the questions that are asked again
device = "cpu"  # where readers compute
batch_size = 8  # questions in flight at once

# %% tags=["hide-input"]
from rag_repro.analysis import factorial
from rag_repro.data.titles import word
from rag_repro.evaluation import metrics
from rag_repro.evaluation.power import mde_of
from rag_repro.methods import composed
from rag_repro.publish import chapter
from rag_repro.show import missing
from rag_repro.show.chapter import Listing
from rag_repro.show.picture import Note
from rag_repro.show.table import Table
from rag_repro.show.values import number, within

# On other ground there is nothing to confirm.
run = chapter(
    "51_composition",
    globals(),
    "together",
    exhibits=("composition", "confirmation", "readers"),
    elsewhere=("composition", "readers"),
    tier=("all", "testbed"),
)
HALF, HEAD = run.paper.exhibit("composition"), run.paper.exhibit("head")
run

# %% tags=["remove-input"]
run.source_note

# %% [markdown]
# ## Four methods in one
#
# Each stage is a generator that the others can stand around, so that all sixteen combinations are one
# function. With none of the four on it is one search and one reading; with one of them on it is that
# paper's method, call for call, which the package's tests hold it to.

# %% tags=["remove-input"]
Note(f"```text\n{composed.__doc__}```")

# %% tags=["remove-input"]
Listing(composed.composed, composed.stages)

# %% [markdown]
# ## Half of the sixteen
#
# Eight runs are enough for the effect of each and of pairs, if they are the right eight: those with an even
# number of papers. Among them each paper is on in four and off in four, and in either four each of the
# others is on in two. The price is that effects are *confounded*: what ERM4 and DR-RAG do to each other
# cannot be told from what DRAGIN and R²AG do to each other, and so for each split into pairs; nor can the
# effect of one paper be told from what the three others do only when all are on, which is taken to be
# small. For *prompt tokens* it is not: R²AG alone adds a few to each prompt ({doc}`chapter 50
# <50_head_to_head>`), and what stands as its effect on them below is what the other three do to one
# another. So no paper's effect on them is its own. ERM4 takes part without its memory, which would make a
# question depend on those before it.

# %% tags=["remove-input"]
run.table(
    "composition",
    run.rows("composition", metric=["em", "f1", "recall", "passages", "unparsed"]),
    name="tab-composition",
)

# %% [markdown]
# *Passages* are those before the reader at the last, and *recall* is theirs: what each stage lets through
# the next one thins out, and DRAGIN replaces what the reader has by what its last search brings, which
# behind a filter may be nothing.

# %% [markdown]
# ## What each does, and two of them together
#
# An effect is the mean with it on, less the mean with it off, on the questions that all eight have
# answered; of searches it is a number. That of two is, as is usual for such designs, half of what
# the one adds where the other is on less what it adds where that is off: half of what both bring
# beyond their sum. Seven intervals of 95 % stand here for each measure: of ten such sets of seven,
# about three would show a difference where there is none. On many questions all eight runs are right
# or all are wrong; these say nothing, and intervals are as wide as the others make them.

# %% tags=["remove-input"]
NAMES = {"erm4": "ERM4", "drrag": "DR-RAG", "dragin": "DRAGIN", "r2ag": "R²AG"}
DESIGN = factorial.Design.from_rows(tuple(HALF.methods), tuple(NAMES))
EFFECTS = ("em", "f1", "recall", "passages", "retrievals", "prompt_tokens")
SETS = dict.fromkeys(cell.keys["dataset"] for cell in HALF.cells())


def scores_of(exhibit, dataset, metric):
    cells = [cell for cell in exhibit.cells() if cell.keys["dataset"] == dataset]
    return {cell.keys["method"]: run.results.scores(cell, metric) for cell in cells}


def shown(head, body, caption, name):
    if not body:
        return missing.note(HALF.cells(), run.results, caption)
    return Table(head, body, caption, name)


shown(
    ["data set", "metric", "effect of", "effect [95 %], n", "detectable"],
    [
        [word(dataset), metrics.get(metric).symbol, DESIGN.describe(group, NAMES),
         within(drawn.interval(), 1, "+", n=True), number(mde_of(drawn.interval()), 1)]
        for dataset in SETS
        for metric in EFFECTS
        if None not in (scores := scores_of(HALF, dataset, metric)).values()
        for group in DESIGN.groups()
        if (drawn := factorial.effect_of(DESIGN, group[0], scores, metric))
    ],
    "Effects in points, and in passages, searches and tokens",
    "tab-effects",
)  # fmt: skip

# %% [markdown]
# Do their gains add up? There is none to add here: alone, none of the four is above one search, as the
# next table has it. So it is asked of what they cost. An effect of two whose interval excludes zero says
# that they do not add up; *detectable* is what so many questions would have shown four times in five.
#
# The half holds no paper alone. With their rows of {doc}`chapter 50 <50_head_to_head>` each pair can be
# held against its own parts, without anything confounded. DRAGIN has an earlier threshold here, 0.1, the
# best of four on 20 questions of world A; so it is set beside its row with that one.

# %% tags=["remove-input"]
body = []
for dataset in SETS:
    together, alone = scores_of(HALF, dataset, "em"), scores_of(HEAD, dataset, "em")
    alone["dragin"] = alone.get("dragin_combined")
    for pair in HALF.methods:
        first, _, second = pair.partition("_")
        sides = [together.get(pair), *(alone.get(row) for row in (first, second, "single"))]
        if not {first, second} <= NAMES.keys() or None in sides:
            continue
        if drawn := factorial.beyond_sum(*sides, "em"):
            gains = [one.interval() for one in drawn]
            body.append(
                [f"{NAMES[first]} and {NAMES[second]}", *(within(g, 1, "+") for g in gains),
                 number(mde_of(gains[-1]), 1), gains[-1].n]
            )  # fmt: skip
shown(
    ["pair", "EM: the first alone", "the second alone", "both", "beyond the sum [95 %]",
     "detectable", "n"],
    body,
    "What two bring, beside what each brings alone, in points over none of them",
    "tab-sums",
)  # fmt: skip

# %% [markdown]
# By the means, no combination in {numref}`tab-composition-51` is above the better of its parts, in
# EM or in F1.

# %% [markdown]
# ## On fresh questions
#
# Of eight combinations the best is partly so by chance. Chosen by the first 60 questions of world B, it
# is asked about another world, where no combination had been tried. So are all four at once, not
# for a result of theirs, but since that is where the four could disturb one another most. (The
# world's questions had been asked without passages and with gold ones, for chapter 10.)

# %% tags=["remove-input"]
fresh = run.rows("confirmation", metric=["em", "f1", "recall", "passages", "retrievals"])
run.whole_table("confirmation", fresh, "tab-confirmation")

# %% [markdown]
# ## Asked again, just now

# %% tags=["remove-input"]
run.live("composition")

# %% [markdown]
# ## How this could fool us
#
# - **R²AG's former is trained.** Before the same frozen reader, but on lists of the first world; part of its
#   effect may be that of training vectors at all. The control for that, *learnable tokens*, stands in
#   {doc}`chapter 50 <50_head_to_head>`, alone; in a combination it was not tried. It is one training, and its
#   intervals hold the questions' noise alone.
# - **ERM4 and DRAGIN are not quite themselves together.** Where DRAGIN is off, the reader reads the rewritten
#   question; where it is on, the original one, and not every question is searched at all.
# - **DR-RAG hardly selects here.** At its threshold, by F1, two passages stay for most questions (chapter 50), so
#   that its effect is mostly that of a shorter list.
# - **ERM4 leaves few passages,** and with DRAGIN fewer; the reader was taught on lists of two and more.
# - **R²AG's former learned from plain lists.** Behind a selection, a filter or a dynamic reader's queries the
#   lists are others than those.
# - **A dynamic reader asks in its own words.** The rewriter was taught to rewrite questions. DRAGIN's
#   queries are words without a sentence, and these it is given.
# - **The reader was told facts.** Some behind the first hundred questions of world B and the first fifty
#   of world C were in its lessons, so that a search may be worth less here than elsewhere.
# - **ERM4 is told each question's number of steps**, by which it chooses its filter's hypothesis.
# - **Thresholds are those of each alone.** A combination tuned as a whole could do better.

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro chapter 51_composition                 # this page
# rag-repro train r2ag-reasoning                   # the former before the testbed's reader
# rag-repro run together.composition               # the eight runs
# rag-repro run together.confirmation              # two of them on fresh questions
# ```
