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
# # DRAGIN: the threshold
#
# {term}`RIND` gives the alarm where a score exceeds $\theta$. The paper has a $\theta$ for each
# reader and data set, between 0.6 and 1.5. It does not say on which questions it chose them, and
# concludes from its table 5 that results hardly depend on $\theta$. That table is labelled
# HotpotQA; its values are those of 2WikiMultihopQA.
#
# A flat curve has two readings: the method is robust, or the threshold decides nothing, since nearly
# every sentence gives the alarm or nearly none does. So the number of searches stands beside every
# value.

# %% tags=["parameters"]
tier = "all"  # whose records to show: "testbed", "public" or "all"
dataset = ""  # a data set to run instead, as "world-C" or "musique"; "": those of each exhibit
reader = ""  # who reads instead, as "smollm2-135m"; "": those of the exhibits
n_questions = None  # questions of each data set; None: all
live_calls = 2  # recorded questions to ask again now
seed = 0  # draws the questions that are asked again
device = "cpu"  # where readers compute
batch_size = 8  # questions in flight at once

# %% tags=["hide-input"]
from IPython.display import display

from rag_repro.methods.dragin import timing
from rag_repro.publish import chapter
from rag_repro.show import curve, entries, level, mean
from rag_repro.show.chapter import Listing

run = chapter("32_dragin_threshold", globals(), "dragin", exhibits=("table5", "tuning"))
run

# %% tags=["remove-input"]
run.source_note

# %% [markdown] tags=["claims"]
# ## What the paper claims
#
# The last column says whether the numbers *printed in the paper* bear the claim out, before anything
# is re-run.

# %% tags=["remove-input"]
CLAIMS = ["dragin.c18", "dragin.c19", "dragin.c43"]
run.statements(CLAIMS)

# %% [markdown] tags=["symbols"]
# ## Symbols
#
# | paper | here | meaning |
# | --- | --- | --- |
# | $\theta$ | `threshold` | a score above it gives the alarm |
# | $\mathcal{S}_{RIND}$ | `score` | by equation 5, or as the released code has it |

# %% [markdown] tags=["equation"]
# ## The alarm
#
# $$
# i = \min \{ j : \mathcal{S}_{RIND}(t_j) > \theta \}
# $$ (eq-first)

# %% tags=["remove-input"]
Listing(timing.rind)

# %% [markdown] tags=["worked"]
# ## How it was chosen here
#
# What the records of chapters 30 to 35 use was chosen on world A's tune split and on 40 of HotpotQA's tune
# ids, from short grids that the baselines shared. Two things were wrong with that. On HotpotQA two values
# were equal, and the rule took the one that searches less, so that DRAGIN searched about half as often as
# FL-RAG and FS-RAG; and on the testbed no value below 0.02 was tried. A lower $\theta$ makes
# dragin.c13 (few searches) harder and dragin.c01 to c03 (answers) easier, so that neither kind of public
# verdict holds for another.
#
# So the rule has changed. All dynamic methods are tuned on the same questions of the kinds that decide, 60
# of HotpotQA and 27 of 2WikiMultihopQA, and 100 of world Z, each over one wide grid that ends at *never* and,
# but for RIND and random timing, where many searches are slow, beyond the best value; of equal values the middle
# one is taken. Chance that is early or follows a first search is only matched, over a few values around the
# match; so is every rule with table 4's query. Beside the best value is the one at which a method searches as
# often as the paper prints, and that is where methods are compared. `rag-repro tune` prints both, with the
# curve of quality against searches. Registered tests take these values. Table 4's query, the last sentence,
# is matched by itself: with it RIND searches less at the same $\theta$ of world Z than with QFS.
#
# The controls of table 2 are not tuned but matched: the threshold of RIND without a factor gives an alarm at
# as many of the words that RIND judged there, which is not as many alarms an answer. So is random timing's
# rate on the testbed, where that gives as many searches.

# %% tags=["remove-input"]
TUNED = [
    "dragin",
    "dragin_first",
    "flare",
    "fl",
    "random",
    "random_early",
    "random_first",
    "released",
]
tuned = run.rows("tuning", metric=["em", "retrievals"], method=TUNED)
run.table("tuning", tuned, name="tab-tuning")

# %% [markdown]
# Quality against searches, on these questions; the table has more rows. Where both search as often as the
# paper prints, FLARE's EM is above RIND's on world Z and 2WikiMultihopQA, and below it on HotpotQA. Random
# timing's is below RIND's on all three; where it searches in the first sentence for certain, it is level with
# RIND's on world Z, above it on HotpotQA and below it on 2WikiMultihopQA. So on world Z and HotpotQA RIND's
# gain over chance may be that it searches for nearly every question, which chance alone does not. Behind a
# search for the question itself, chance is further above RIND on HotpotQA, and further below it on
# 2WikiMultihopQA. Where RIND has that search, too, chance is again above it on HotpotQA and below it on
# 2WikiMultihopQA. That is no verdict: these questions are few, and the thresholds were chosen on them.

# %% tags=["remove-input"]
for words, short in {"Exact match": "em", "F1": "f1"}.items():
    display(
        curve(
            entries(run, "tuning", method=["dragin", "flare", "fl", "random", "random_early"]),
            mean("retrievals"),
            {short.upper(): level(short)},
            caption=f"{words} by number of searches, a point a setting",
            name=f"fig-tuning-{short}",
        )
    )

# %% [markdown] tags=["result"]
# ## Table 5
#
# Answers by $\theta$, with the searches behind them; *alarm rate* is alarms a word that RIND judged:

# %% tags=["remove-input"]
SWEPT = ["em", "f1", "retrievals", "alarm_rate"]
run.table("table5", run.rows("table5", metric=SWEPT), name="tab-table5")

# %% tags=["remove-input"]
curve(
    entries(run, "table5"),
    "threshold",
    {"EM": level("em"), "F1": level("f1")},
    caption="Answers by threshold",
    name="fig-threshold",
)

# %% [markdown]
# ### Asked again, just now

# %% tags=["remove-input"]
run.live("table5")

# %% [markdown] tags=["verdict"]
# ## Verdicts

# %% tags=["remove-input"]
run.claims(CLAIMS)

# %% tags=["remove-input"]
run.changed(CLAIMS)

# %% [markdown] tags=["deviations"]
# ## Deviations from the paper
#
# | point | the paper | here | why |
# | --- | --- | --- | --- |
# | range | 0.3 to 1.0 | 0.05 to 0.8 for the equations; the released code's own range on tuning questions alone | the two scores differ in size |
# | data set | labelled HotpotQA, is 2WikiMultihopQA | both, where the reader is not too weak, and the testbed | |
# | choice | not said | on questions that nothing is tested on | else the best of several is reported |

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro chapter 32_dragin_threshold                      # this page
# rag-repro run dragin.tuning                                # where thresholds are chosen
# rag-repro run dragin.table5
# ```
