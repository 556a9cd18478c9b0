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
# # DRAGIN: what to retrieve
#
# With {term}`RIND` saying when, the paper's table 6 lets the query vary: {term}`QFS`, FLARE's sentence
# without doubtful words, the last sentence, the last 25 tokens, everything. It lacks the two plainest
# ones: the question itself, and as many words of the context taken by chance.
#
# Answers are one step too late to judge a query by. First comes what the query is for: the share of the
# question's {term}`gold passages <gold passage>` that it finds.

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
from rag_repro.methods.dragin import queries
from rag_repro.publish import chapter
from rag_repro.show import bars, entries, level
from rag_repro.show.chapter import Listing
from rag_repro.show.heat_map import heat_map

run = chapter("33_dragin_query", globals(), "dragin", exhibits=("queries", "table6", "words"))
run

# %% tags=["remove-input"]
run.source_note

# %% [markdown] tags=["claims"]
# ## What the paper claims
#
# The claims about queries. The last column says whether the numbers *printed in the paper* bear the
# claim out, before anything is re-run.

# %% tags=["remove-input"]
CLAIMS = [
    "dragin.c10",
    "dragin.c20",
    "dragin.c21",
    "dragin.c23",
    "dragin.c24",
    "dragin.c32",
    "dragin.c33",
    "dragin.c41",
]
run.statements(CLAIMS)

# %% [markdown] tags=["symbols"]
# ## Symbols
#
# | paper | here | meaning |
# | --- | --- | --- |
# | $A_i = \{a_{i,1}, \dots, a_{i,i-1}\}$ | `looked` | what $t_i$ looks at, last layer, mean of the heads |
# | $n$ | `top_n` | tokens whose words are the query |
# | $Q_i$ | `query` | these words, in the order of the text |

# %% [markdown] tags=["equation"]
# ## From attention to a query
#
# $$
# Q_i = \text{words}(\text{top}_n(A_i))
# $$ (eq-qfs)

# %% tags=["remove-input"]
Listing(queries.attention_of, queries.select)

# %% [markdown]
# The other rules:

# %% tags=["remove-input"]
Listing(queries.last_sentence, queries.last_tokens, queries.masked_sentence)

# %% [markdown] tags=["worked"]
# ## One question
#
# Answered with QFS's query and with the last sentence, at RIND's moments. The marked words are those that
# QFS took: do they stand before the last sentence (dragin.c32)? How often that is so is not counted,
# since queries of real questions are in no record. Chosen because the first answer is right and
# the second wrong, where there is such a question: it proves nothing.

# %% tags=["remove-input"]
heat_map(
    run,
    {
        "QFS": run.cell("table6", method="qfs"),
        "the last sentence": run.cell("table6", method="last_sentence"),
    },
    "A question by two queries",
    "fig-heat-queries",
)

# %% [markdown] tags=["result"]
# ## The same moments
#
# In whole answers a query that finds more changes what is written next, and so when the next alarm is
# given: then rules are compared at different moments. Here the reader writes one draft, and at each of
# RIND's alarms in it every rule's query is searched for; the share of the gold passages that one search
# finds, mean of the draft's moments. *Words taken* is how much of question and text QFS takes: near 100 %
# QFS asks for the full context, and no difference between those two can show.

# %% tags=["remove-input"]
RULES = ["finds_qfs", "finds_masked_sentence", "finds_full_context", "finds_last_sentence"]
RULES += ["finds_last_tokens", "finds_question"]
run.table(
    "queries",
    run.rows("queries", metric=["words_taken", *RULES]),
    name="tab-queries",
)

# %% tags=["remove-input"]
bars(
    entries(run, "queries", method="check"),
    {
        "QFS": level("finds_qfs"),
        "full context": level("finds_full_context"),
        "last sentence": level("finds_last_sentence"),
        "question": level("finds_question"),
    },
    caption="Gold passages that one query finds at RIND's moments",
    name="fig-queries",
)

# %% [markdown]
# In the first sentence there is no last one, and that rule asks the question: many moments are such. Those
# behind the first sentence tell the rules apart:

# %% tags=["remove-input"]
LATER = ["qfs", "masked_sentence", "full_context", "last_sentence", "last_tokens", "question"]
run.table(
    "queries",
    run.rows("queries", metric=[f"finds_later_{rule}" for rule in LATER]),
    name="tab-later",
)

# %% [markdown]
# A query may find a passage that the answer is past, or does not need yet: one that holds the question
# finds the first step's passage again. A taught answer says a step a sentence, so where the order of the
# steps is known (the testbed) each alarm has one right passage, that of its sentence's step. There the share
# of the moments behind the first sentence whose search finds it decides what is claimed of queries
# (dragin.c10, c20, c23, c24, c32); few answers have such a moment, so
# that little can be told. On public data, where the steps' order is not known, the table before decides.

# %% tags=["remove-input"]
NEXT = ["qfs", "masked_sentence", "full_context", "last_sentence", "question", "random_words"]
run.table(
    "queries",
    run.rows("queries", metric=[f"finds_next_{rule}" for rule in NEXT], dataset="world-B"),
    name="tab-next",
)

# %% [markdown]
# ### Does attention choose?
#
# QFS against as many words of question and text by chance, and against the first ones; once with
# the paper's number of words, and once with few (8 tokens; its own case, in appendix C, has six
# words), where there is something to leave out.

# %% tags=["remove-input"]
WORDS = ["finds_qfs", "finds_random_words", "finds_first_words"]
WORDS += ["finds_qfs_few", "finds_random_few", "finds_first_few"]
run.table(
    "queries",
    run.rows("queries", metric=WORDS),
    name="tab-words-chosen",
)

# %% [markdown]
# ### FLARE's mask
#
# In the paper's case FLARE loses the one name that was right, for it was unsure of it. How often do the
# doubtful words cost more than they save? The sentence that gave FLARE's alarm, whole and masked, with a
# blank for each doubtful word. A third query drops the blank before the word as well, so that what is left
# of two words can be glued: nobody's code does that, but earlier records here did.

# %% tags=["remove-input"]
run.table(
    "queries",
    run.rows("queries", metric=["finds_sentence", "finds_masked_sentence", "finds_sure_sentence"]),
    name="tab-masking",
)

# %% [markdown]
# ## Table 6
#
# Whole answers. *Gain* is against QFS. *Recall a query* is the share of gold passages that one
# search finds; *found* is what all searches of an answer find together. On the testbed $\theta$ is that of
# table 2's controls; the grid of {doc}`chapter 31 <31_dragin_timing>` has table 2's own, which is lower, so
# that rows of one name differ.

# %% tags=["remove-input"]
run.table(
    "table6",
    run.rows("table6", metric=["query_recall", "found_gold", "em", "f1"]),
    name="tab-table6",
)

# %% [markdown]
# ### How many words
#
# The paper has 25 or 35, which of a short answer are most of the words there are. With 100 it is the
# whole context.

# %% tags=["remove-input"]
run.table("words", run.rows("words"), name="tab-words")

# %% [markdown]
# ### Asked again, just now

# %% tags=["remove-input"]
run.live("table6")

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
# | preceding sequence | "the entire context" | question and text, seen behind the whole prompt, and the prompt's word *Answer* between them, which QFS may take, and of the other rules only *the last tokens* where the answer is short | exemplars and passages are not what is asked for; that word stands there by oversight |
# | FLARE's query | without doubtful tokens | a blank for each, as FLARE's authors and DRAGIN's code have it | |
# | heads | not said | their mean | as the released code |
# | parts of words | not said | the word of a chosen token | BM25 knows whole words |
# | rows | five rules | these and the question; words by chance and the first words at the same moments | |
# | layer | the last | the last; no other is tried | what is written keeps the last one's attention alone; others would need a second pass |
# | first outcome | answers | gold passages found at the same moments of one draft | what a query is for; in a loop it moves the moments |

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro chapter 33_dragin_query                          # this page
# rag-repro run dragin.queries                               # one pass a question
# rag-repro run dragin.table6 dragin.words
# ```
