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
# # DRAGIN: when to retrieve
#
# The paper's table 4 fixes the query (the last whole sentence) and lets the rule that says *when*
# vary: after every sentence, after every $n$ tokens, where FLARE doubts a token, where {term}`RIND`
# gives the alarm. It does so by answers, on one data set. Answers are far from the alarm: the
# right moment with a bad query helps nobody.
#
# On the {term}`testbed` the moment itself can be judged. Which facts the {term}`reader` was taught is
# known, and whether it would go on wrongly can be tried: at each hop of a question it is put before the
# value and left to write on. So *when to retrieve* has a right answer, and each rule, and each part of
# RIND's score, can be held against it. The paper takes none of its parts away.

# %% tags=["parameters"]
tier = "all"  # whose records to show: "testbed", "public" or "all"
dataset = ""  # a data set to run instead, as "world-C" or "musique"; "": those of each exhibit
reader = ""  # who reads instead, as "smollm2-135m"; "": those of the exhibits
threshold = None  # θ, above which a token's doubt gives the alarm; None: as the exhibits say
top_n = None  # n, words of a query, those with the most attention; None: as the exhibits say
k = None  # passages that a search brings; None: as the exhibits say
n_questions = None  # questions of each data set; None: all
live_calls = 4  # recorded questions to ask again now
seed = 0  # draws the questions that are asked again
device = "cpu"  # where readers compute
batch_size = 8  # questions in flight at once

# %% tags=["hide-input"]
import numpy as np

from rag_repro.analysis import hop_timing
from rag_repro.methods.dragin import timing, timing_check
from rag_repro.methods.dragin.timing_check import SIGNALS
from rag_repro.publish import chapter
from rag_repro.show import missing
from rag_repro.show.chapter import Listing
from rag_repro.show.picture import (
    MARKERS,
    STYLES,
    WIDTH,
    Download,
    Picture,
    legend_of_labels,
    plots,
)
from rag_repro.show.table import Table
from rag_repro.show.values import in_points, number

run = chapter("31_dragin_timing", globals(), "dragin", exhibits=("table4", "grid", "hops", "time"))
run

# %% tags=["remove-input"]
run.source_note

# %% [markdown] tags=["claims"]
# ## What the paper claims
#
# The claims about timing. The last column says whether the numbers *printed in the paper* bear the
# claim out, before anything is re-run.

# %% tags=["remove-input"]
CLAIMS = [
    "dragin.c07",
    "dragin.c09",
    "dragin.c15",
    "dragin.c16",
    "dragin.c17",
    "dragin.c22",
    "dragin.c28",
    "dragin.c29",
    "dragin.c36",
]
run.statements(CLAIMS)

# %% [markdown] tags=["symbols"]
# ## Symbols
#
# | paper | here | meaning |
# | --- | --- | --- |
# | $\mathcal{H}_i$ | `entropy` | entropy of the distribution that the token was drawn from |
# | $1 - p$ | `surprise` | what FLARE goes by: how improbable a token is that the reader would say |
# | $a_{\max}(i)$ | `attention` | the most that a later token looks at it |
# | $s_i$ | `meaning` | 0 for a stop word |
# | $\mathcal{S}_{RIND}$ | `score` | the product of entropy, attention and meaning |

# %% [markdown] tags=["equation"]
# ## The rules
#
# $$
# \mathcal{S}_{RIND}(t_i) = \mathcal{H}_i \cdot a_{\max}(i) \cdot s_i > \theta
# $$ (eq-alarm)
#
# Each factor can be left out (`settings.factors`):

# %% tags=["remove-input"]
Listing(timing.scores)

# %% [markdown]
# FLARE's rule, and alarms by chance, the control:

# %% tags=["remove-input"]
Listing(timing.flare, timing.by_chance)

# %% [markdown] tags=["worked"]
# ## Where help is needed
#
# The gold chain of thought is read behind the question alone, without passages. At each hop, before the
# fact's value, the reader writes on by itself. A search is *needed* there by one of two labels: it was
# never taught the fact, or what it writes is wrong. What each rule goes by is taken at the value's
# tokens, but for FLARE's probability, which is that of the words that the reader goes on with: the
# probability of the gold value would tell whether it is known.

# %% tags=["remove-input"]
Listing(timing_check.timing_check)

# %% [markdown] tags=["result"]
# ### How well does each signal tell?
#
# By the area under the curve ({term}`AUC`): of two hops, how often the one that needs a search has
# the higher value. Beside it the precision where each rule gives as many alarms as there are hops
# in need, so that no threshold favours any. FLARE's row is of the reader's own words, all others of the
# gold value's, whose later tokens tell a little of whether it is known: so the difference between it and
# RIND favours RIND. The other rows can be compared with each other.

# %% tags=["remove-input"]
WORDS = {
    "untaught": "the reader was not taught the fact",
    "wrong": "its own next answer is wrong",
}
CHECKED = [
    cell for cell in run.paper.exhibit("hops").cells("testbed") if cell.matches({"method": "check"})
]
HOPS = hop_timing.hops(CHECKED, run.results)


def shown(head, body, caption, name):
    if HOPS is None:
        return missing.note(CHECKED, run.results, caption)
    return Table(head, body, caption, name, Download.from_rows(name, head, body))


shown(
    ["a search is needed where", "signal", "AUC, %", "against RIND, points",
     "precision at equal rate, %", "hops"],
    [
        [WORDS[one.label], SIGNALS[one.signal], in_points(one.auc), in_points(one.gain, "+"),
         in_points(one.precision), len(HOPS.units)]
        for one in (hop_timing.areas(HOPS) if HOPS else ())
    ],
    "Signals against where a search is needed",
    "tab-areas",
)  # fmt: skip

# %% [markdown]
# The rules at the thresholds that they have in the tables of answers, which are the large open marks of
# the figure below:

# %% tags=["remove-input"]
OWN = {
    name: run.condition("table2", method=name).configured
    for name in ("dragin", "released", "flare")
}
THRESHOLDS = {
    "score": OWN["dragin"].threshold,
    "released": OWN["released"].threshold,
    "surprise": 1 - OWN["flare"].doubt,
}
RULES = {
    f"{SIGNALS[signal]}, " + (f"p up to {1 - t:g}" if signal == "surprise" else f"above {t:g}"):
        hop_timing.alarms_of(signal, HOPS.signals[signal], t)
    for signal, t in (THRESHOLDS if HOPS else {}).items()
}  # fmt: skip
if HOPS:
    RULES["every sentence (FS-RAG)"] = np.ones(len(HOPS.units))
shown(
    ["a search is needed where", "rule", "alarms, % of hops", "precision, %", "recall, %", "hops"],
    [
        [WORDS[label], rule, number(100 * alarm.mean(), 1),
         in_points(hop_timing.precision(alarm, needs, HOPS.units)),
         in_points(hop_timing.recall(alarm, needs, HOPS.units)), len(needs)]
        for label, needs in (HOPS.needs if HOPS else {}).items()
        for rule, alarm in RULES.items()
    ],
    "Rules at their own thresholds",
    "tab-rules-hops",
)  # fmt: skip

# %% tags=["remove-input"]
DRAWN = ("score", "entropy", "surprise", "attention", "released")


def courses():
    """Recall by the share of hops with an alarm, a panel a label; large: a rule's own threshold."""
    plt, colours = plots()
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 4.0), sharey=True, layout="constrained")
    rates, rows = np.linspace(0, 1, 21), []
    for axis, (label, needs) in zip(axes, HOPS.needs.items(), strict=True):
        axis.plot([0, 100], [0, 100], color="0.5", lw=1, ls="--", label="by chance")
        for i, signal in enumerate(DRAWN):
            found = hop_timing.course(HOPS.signals[signal], needs, rates)
            look = {"color": colours[i], "marker": MARKERS[i]}
            axis.plot(100 * rates, found, ls=STYLES[i % 4], ms=4, markevery=(2 + i, 5),
                      label=SIGNALS[signal], **look)  # fmt: skip
            if signal in THRESHOLDS:
                alarm = hop_timing.alarms_of(signal, HOPS.signals[signal], THRESHOLDS[signal])
                recalled = 100 * (alarm * needs).sum() / max(1, needs.sum())
                axis.plot(100 * alarm.mean(), recalled, ms=11, mfc="none", **look)
            rows += [
                [WORDS[label], SIGNALS[signal], f"{100 * rate:.0f}", f"{share:.1f}"]
                for rate, share in zip(rates, found, strict=True)
            ]
        axis.set(title=WORDS[label], xlabel="hops with an alarm, %", xlim=(0, 100), ylim=(0, 102))
    axes[0].set_ylabel("hops that need a search, % found")
    legend_of_labels(figure)
    spoken = (f"{w}, {s}, alarms at {r} %: {f} % found" for w, s, r, f in rows if r in ("25", "50"))
    data = Download.from_rows("fig-hops", ["needed_where", "signal", "alarms", "found"], rows)
    return Picture(figure, f"Line chart. {'; '.join(spoken)}.", CAPTION, "fig-hops", data)


CAPTION = "Hops in need that are found, by the share of hops with an alarm"
courses() if HOPS else missing.note(CHECKED, run.results, CAPTION)

# %% [markdown]
# ## Table 4: answers, with the last sentence as query
#
# *Gain* is against a search after every sentence. The paper has IIRC, of which ten questions are at
# hand; MuSiQue stands in its place. FL-RAG and FS-RAG search for the question first, as the released
# code has it, and FLARE, as its authors have it; RIND and random timing do not. So this table mixes the
# choice of the moment with having the question's passages; the next one does not.

# %% tags=["remove-input"]
run.table("table4", run.rows("table4", metric=["em", "f1", "retrievals"]), name="tab-table4")

# %% [markdown]
# ## Timing by query
#
# A full row and a full column of the grid of timing rules and query rules, and the corners that claims
# ask for. *No* cell searches for the question before anything is written, also where the rule's authors do.
# What differs beside timing and query belongs to the timing rule: how much of a draft is kept (all behind a
# window or a sentence, nothing of FLARE's doubtful sentence, what stands before the token in RIND), and how
# often it searches, which is not matched. *RIND as often as random* is RIND at the $\theta$ of table 2's
# controls, to be set beside random timing alone. *Early random timing* searches in the first sentence for
# certain, and by chance from then on. *One search* is that for the question alone, and what each pairing has
# to beat.

# %% tags=["remove-input"]
run.table("grid", run.rows("grid", metric=["em", "retrievals", "found_gold"]), name="tab-grid")

# %% [markdown]
# ## What an alarm costs
#
# Time for one answer at batch 1, methods in turn on the same questions; a search is not all that an
# alarm costs, and *RIND looking on* is what looking at attention and entropy costs without any alarm.
# DRAGIN (equations) is timed at the higher $\theta$ of table 2's controls; at table 2's own it searches more
# often, and would take longer.

# %% tags=["remove-input"]
run.table("time", run.rows("time"), name="tab-time")

# %% [markdown]
# ### Asked again, just now

# %% tags=["remove-input"]
run.live("table4")

# %% [markdown] tags=["verdict"]
# ## Verdicts
#
# dragin.c29 and the areas in dragin.c28 are judged within each question, by which of its own hops need a
# search: hence fewer questions, and other values than the pooled areas above. They say whether the score
# *ranks* hops rightly, not whether the rule is selective: at its threshold in table 2 RIND is little more so
# on the testbed than a search at every sentence.

# %% tags=["remove-input"]
run.claims(CLAIMS)

# %% tags=["remove-input"]
run.changed(CLAIMS)

# %% [markdown]
# Contrasts beside these, among them what is left of a claim where nobody, or everybody, searches for the
# question first. They decide no claim, and are corrected for their number:

# %% tags=["remove-input"]
run.asides(CLAIMS)

# %% [markdown] tags=["deviations"]
# ## Deviations from the paper
#
# | point | the paper | here | why |
# | --- | --- | --- | --- |
# | data set of table 4 | IIRC | testbed, MuSiQue, and IIRC's ten questions | what is at hand |
# | FL-RAG's row | that of table 2, although the query changed | run with the query it says | |
# | first search | by none, as timing and query are said to be all that differs; by FL-RAG and FS-RAG in the released code | table 4: by those two, and by FLARE as its authors have it; the grid: by none | else the moment is mixed with the question's passages |
# | FLARE's probability where a rule is checked | | that of the reader's own next words; a first check took that of the gold value, which tells whether the value is known, and was withdrawn | a review found it |
# | what RIND and its parts go by where they are checked | the words that the reader writes | the gold value's tokens, the highest: behind the first, whether the value is known shows a little in the rest, so that their areas are upper bounds beside FLARE's | one pass for all hops |
# | where a search is needed | not asked | taught facts, and the reader's own next words | known on the testbed |
# | parts of the score | all three | each left out in turn, at a threshold at which as many of the tuning questions' words give the alarm; on those tested RIND without entropy gives more alarms an answer on the testbed, and no other row surely differs | |

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro chapter 31_dragin_timing                         # this page
# rag-repro run dragin.hops                                  # each hop's signals
# rag-repro run dragin.table4 dragin.grid                    # answers
# rag-repro time dragin.time                                 # seconds
# ```
