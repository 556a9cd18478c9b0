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
# # DRAGIN: the equations and the released code
#
# The released code does not compute the paper's equations. It divides attention by its sentence's
# mean (so that a score is an entropy, weighted, and the paper's thresholds fit it); it counts a
# token's look at itself, which makes the first token's attention 1 in every reader; it reads the new
# text again, alone, for its attention, and a third time for the query; it works on words; it throws
# the whole sentence away; its passages serve one sentence. Some of this is engineering, some
# changes what is decided. The paper tells none of it, and its numbers come from code, in one of its
# states.
#
# Both are implemented here with the same functions, each difference a setting. First those of deciding
# and of the query (D1 to D12) are tried one by one on the *same* drafts, so that nothing else varies;
# then these, D13 and D21 are run whole on the testbed, D1, D8 and D13 on more questions.

# %% tags=["parameters"]
tier = "all"  # whose records to show: "testbed", "public" or "all"
dataset = ""  # a data set to run instead, as "world-C" or "musique"; "": those of each exhibit
reader = ""  # who reads instead, as "smollm2-135m"; "": those of the exhibits
n_questions = None  # questions of each data set; None: all
live_calls = 4  # recorded questions to ask again now
seed = 0  # draws the questions that are asked again
device = "cpu"  # where readers compute
batch_size = 8  # questions in flight at once

# %% tags=["hide-input"]
from dataclasses import replace

from rag_repro.methods.dragin import draft_arrays, draft_checks, dynamic_settings, timing
from rag_repro.publish import chapter
from rag_repro.show import Column, entries, key, share, table
from rag_repro.show.chapter import Listing
from rag_repro.show.heat_map import heat_map
from rag_repro.show.table import Table

run = chapter(
    "35_dragin_equations",
    globals(),
    "dragin",
    exhibits=("influence", "differences", "replayed", "decoding"),
)
run

# %% tags=["remove-input"]
run.source_note

# %% [markdown] tags=["claims"]
# ## What the paper claims
#
# The paper says nothing of its code. Two claims are about what equations 3 and 4 do, which the code does
# otherwise; one is about decoding, which the code leaves to the model.

# %% tags=["remove-input"]
CLAIMS = ["dragin.c30", "dragin.c31", "dragin.c37"]
run.statements(CLAIMS)

# %% [markdown] tags=["symbols"]
# ## The differences
#
# 30 differences were found, D1 to D30. The first table has those by which the two versions here
# differ; its column *equations* is the default of the setting. The second has the others, which
# concern prompts, decoding, data, baselines and what is counted.

# %% tags=["remove-input"]
PLAIN, CODE = dynamic_settings.DynamicSettings(), dynamic_settings.RELEASED
WORDS = {
    "released": "the released code",
    "D1": "raw attention, not by the sentence's mean",
    "D2": "later tokens' looks alone, not one's own",
    "D3": "the heads' mean before the maximum",
    "D4": "attention as the reader wrote, prompt and all",
    "D5": "tokens, not words",
    "D6": "meaning decides on the alarm",
    "D7": "stop words, not parts of speech",
    "D8": "cut at the token, not before its sentence",
    "D9": "the first word alone",
    "D10": "the token's own row",
    "D11": "all tokens, not content words",
    "D12": "the context as the reader had it",
    "equations": "the equations, at a threshold of their own",
}
WORDS |= {name: f"{name}: {WORDS[name]}" for name in draft_checks.DIFFERENCES}
Table(
    ["difference", "setting", "equations", "released code"],
    [
        [WORDS[name], field, str(getattr(PLAIN, field)), str(CODE[field])]
        for name, field in draft_checks.DIFFERENCES.items()
    ]
    + [
        [
            "D13: passages stay, or serve one sentence",
            "documents",
            PLAIN.documents,
            CODE["documents"],
        ],
        [
            "D21: the query whole, or its last 64 tokens",
            "query_tokens",
            "all",
            str(CODE["query_tokens"]),
        ],
        [
            "D24: asked again with passages, or without",
            "ask_again",
            PLAIN.ask_again,
            CODE["ask_again"],
        ],
    ],
    "Where the released code leaves the equations",
    "tab-differences",
)

# %% [markdown]
# | difference | the paper | the released code | here |
# | --- | --- | --- | --- |
# | D14: prompt | a sentence about external knowledge (section 3.3), or context and exemplars (appendix F) | appendix F's | both, setting `prompt`; two rows of the whole runs below, with a reader as shipped |
# | D15: decoding | greedy | left to the model's stored settings, by which some draw at random | greedy; drawn [below](section-sampled) |
# | D16: FLARE's doubt | any token below the threshold | the mean over a sentence's tokens | both, setting `doubt_of`; two rows of {doc}`chapter 30 <30_dragin>` |
# | D17: behind FLARE's search | the doubtful sentence is written again | all that the reader then writes is taken over | one sentence, then the rule looks again; as the code in `flare_released` |
# | D18: tokens between FL-RAG's searches | not said | 16 or 32 at first, later not set | chosen on tune questions |
# | D19: StrategyQA's exemplars | eight, by appendix A; appendix F prints six | six | those that appendix F prints |
# | D20: size of a passage | 100 tokens | 100 words | as each data set came |
# | D22: questions and answers | 1,000 of a set, which is not said | the first 1,000; other names of 2WikiMultihopQA's answers count; StrategyQA's train file | n in each cell; names as the data have them |
# | D23: base of the entropy | not said | e | e |
# | D25: FLARE's query | the last sentence (table 4) | the sentence with a blank for what is doubtful, or all of the text | either, setting `query` |
# | D26: FL-RAG's query | the last 25 tokens | tokens as the tokenizer writes them, marks and all | the text of these tokens |
# | D27: a retrieval | not said | each search | each search |
# | D28: where the answer is read | not said | behind the first "the answer is", to the text's end; for StrategyQA, whether "yes" follows | behind the last "So the answer is", to the line's end; with the prompts `cot_yes_no` and `dragin_yes_no` as the code |
# | D29: the end token | not said | glued to the last word, whose attention and entropy it joins | no part of the text (not built) |
# | D30: line breaks | not said | stay inside words, and so in queries | white space between words (not built) |
#
# By D28 the same text can hold another answer, or none: of "Thus, the answer is Sarnby." the released code
# takes *Sarnby*, and nothing is taken here.

# %% [markdown] tags=["equation"]
# ## One function for both
#
# $$
# a_{\max}(i) = \max_{j > i} A_{j,i}
# $$ (eq-both)

# %% tags=["remove-input"]
Listing(timing.influence, timing.rind)

# %% [markdown]
# With $j \ge i$ in place of $j > i$ (D2) the first token of a text that is read alone looks at
# itself, and at nothing else, so its $a_{\max}$ is 1 whatever the reader (dragin.c30). No reader is
# needed to see that.

# %% [markdown]
# Sentences are found in the released code by joining words with blanks until the sentence's text occurs;
# where it never does, the sentence is passed over:

# %% tags=["remove-input"]
Listing(draft_arrays.windows)

# %% [markdown] tags=["worked"]
# ## One question
#
# Answered by the equations and by the released code, each with its own threshold. Chosen because the
# first is right and the second is not, where there is such a question: it proves nothing.

# %% tags=["remove-input"]
heat_map(
    run,
    {
        "the equations": run.cell("differences", method="equations"),
        "the released code": run.cell("differences", method="released"),
    },
    "A question by the equations, and by the released code",
    "fig-heat-code",
)

# %% [markdown] tags=["result"]
# ## The same drafts, decided fourteen ways
#
# The reader writes once. On this draft the released code decides, then the same code with one
# difference at a time put back, then the equations with their own threshold. On the testbed that is the
# one of table 2's controls, higher than in the question above and in the whole runs below, so that how
# often the equations give an alarm is not comparable with those.


# %% tags=["remove-input"]
def decided(part, both=False):
    """Percent of drafts on which a variant has this part of the released code's decision.

    part: 0 alarm or none, 1 where it cuts, 2 its query. both: only drafts on which both give an alarm.
    """

    def read(entry):
        at = draft_checks.VARIANTS.index(entry.keys["variant"])

        def counts(line):
            held = line.get("variants")
            return bool(held) and (not both or bool(held[0][0] and held[at][0]))

        def alike(line):
            return line["variants"][at][part] == line["variants"][0][part]

        return share(alike, counts).read(entry) if at else None

    return Column(read)


def alarm(entry):
    at = draft_checks.VARIANTS.index(entry.keys["variant"])
    return share(lambda line: line["variants"][at][0] == 1, lambda line: "variants" in line).read(
        entry
    )


table(
    [
        replace(entry, cell=replace(entry.cell, keys={**entry.keys, "variant": variant}))
        for entry in entries(run, "replayed")
        for variant in draft_checks.VARIANTS
    ],
    {
        "data set": key("dataset"),
        "decided by": Column(lambda entry: WORDS[entry.keys["variant"]], measured=False),
        "alarm, %": Column(alarm, n=True),
        "alarm or none alike, %": decided(0),
        "same cut, %": decided(1, both=True),
        "same query, %": decided(2, both=True),
    },
    "Decisions on the same drafts",
    "tab-replayed",
)

# %% [markdown]
# A difference that flips nothing on real drafts would be one on paper alone. (On made-up drafts each
# flips something; the package's tests hold them to it.) D10 flips nothing here. It changes which row of attention
# chooses the query's words. The code chooses among content words, and a first draft seldom has more of them
# than may be taken, so that nothing is chosen: that the row is of no account in longer texts does not follow.

# %% [markdown]
# ## What a_max tells
#
# Equation 3 takes for a token's influence how much a later one looks at it. Is a word that is looked at
# more one that shapes more of what follows? Of a draft's words, two of the same form (a name, a number,
# another word) that stand next to each other among those are a pair. Each is masked in turn, the text is
# read again, and the same tokens, up to 16 behind both words, say how far they moved: the mean
# difference of their log probabilities, in nats a token. A word moves most what is near it, and where the
# nearer one of a pair has the higher a_max more often (*higher stands first* says how often it has not),
# being near would pass for being looked at. So *moved more* and *higher a_max moves more* take both orders
# alike, of answers that have pairs of both.

# %% tags=["remove-input"]
run.table("influence", run.rows("influence"), name="tab-influence")

# %% [markdown]
# ## Whole runs
#
# *Gain* is against the released code. *Blank alarms* are those at which no word above the threshold
# bears meaning: by equation 4 there are none, while the released code looks at meaning behind the
# alarm (D6, dragin.c31). Which prompt is used (D14) can be tried on a reader as shipped alone: the
# others were taught the form of section 3.3's. A blank behind the prompt is what the code's FL-RAG,
# FS-RAG and FLARE have, and its DRAGIN has not. *Alarm rate* is alarms by words judged, which end at the
# alarm: where it nears the whole, the first word of almost every draft gives one, and the released code
# searches at every sentence, whatever the reader knows.

# %% tags=["remove-input"]
WHOLE = ["em", "f1", "retrievals", "alarm_rate", "blank_alarms"]
run.table("differences", run.rows("differences", metric=WHOLE), name="tab-whole")

# %% [markdown]
# (section-sampled)=
# ### Greedy or sampled
#
# The paper says greedy and recommends the models' own sampling, "as this will yield better performance"
# (section 4.5). A token's entropy and probability are those of the distribution that it is drawn from,
# as in the released code's `generate`: tempered and cut, so that they tell of less doubt than under
# greedy decoding, at which θ was chosen. At that θ sampled DRAGIN hardly searches at all: its rows compare
# retrieval with next to none, and not two ways of decoding. What is said of dragin.c37 can be read from
# SR-RAG's rows alone.

# %% tags=["remove-input"]
decoded = run.rows("decoding", metric=["em", "f1", "retrievals"])
run.table("decoding", decoded, name="tab-decoding")

# %% [markdown]
# ### Asked again, just now

# %% tags=["remove-input"]
run.live("differences")

# %% [markdown] tags=["verdict"]
# ## Verdicts

# %% tags=["remove-input"]
run.claims(CLAIMS)

# %% tags=["remove-input"]
run.changed(CLAIMS)

# %% [markdown] tags=["deviations"]
# ## Deviations from the paper and from its code
#
# | point | there | here | why |
# | --- | --- | --- | --- |
# | sentences of a draft | spaCy's small English model | the same model, as a package ships it | |
# | second pass | on the tokens as generated | the same tokens | |
# | third pass | text, split into tokens anew | the same | |
# | length | a budget of tokens for each of the loop's two passes | one for the whole answer | the same for all methods |
# | end of an answer | where "the answer is" has been said | where the reader ends | what stands behind it is not read |
# | state of the code | several, with defects at the time of the paper | the last one | chapter 30 tells which of the earlier baselines were run |

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro chapter 35_dragin_equations                      # this page
# rag-repro run dragin.replayed                              # decisions on the same drafts
# rag-repro run dragin.influence                             # words of pairs masked
# rag-repro run dragin.differences dragin.decoding           # whole runs
# ```
