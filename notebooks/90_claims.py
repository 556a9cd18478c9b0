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
# # Claims ledger and audit
#
# Every statement of the four papers that this book tests, one row each: what is claimed and where,
# the numbers that the paper itself prints for it, and what our records say at each
# {term}`tier <tier>`. The second half holds the papers' printed numbers against their own sentences.
# Verdicts are computed from the stored records, sums over the papers' tables from their transcribed
# values; quotations, and the numbers beside a claim, are written by hand from the papers.

# %% tags=["parameters"]
paper = "all"  # whose claims to show: a paper's name, as "drrag", or "all"

# %% tags=["hide-input"]
from IPython.display import display

from rag_repro.book_folders import here
from rag_repro.publish import chapter, contents, ledger_page, verdict_summary
from rag_repro.show.ledger import of_judged
from rag_repro.show.table import Table
from rag_repro.study import audits, papers
from rag_repro.study.scores import Results

KNOWN = [name for name in papers.names() if papers.load(name).claims]
run = chapter("90_claims", globals(), paper=("all", *KNOWN))
run

# %% [markdown]
# ## At a glance

# %% tags=["remove-input"]
shown = [papers.load(name) for name in KNOWN if run.paper in ("all", name)]
entries = ledger_page.entries(shown, Results(here().records))
rows = [of_judged(e.paper, judged) for e in entries for judged in e.judged.values()]
verdict_summary.figure(rows)

# %% [markdown]
# Claims that share a contrast are one *distinct result*:

# %% tags=["remove-input"]
Table(
    ["what our records say", "claims", "distinct results"],
    [
        [group, len(held), verdict_summary.distinct(held)]
        for group, held in verdict_summary.sort(rows).items()
    ],
    "Claims and distinct results",
    "tab-distinct",
)

# %% [markdown]
# ## The ledger
#
# Choose a paper, a tier, a verdict; the glossary has {ref}`the rules of all verdicts <verdicts>`. A
# tier at which no claim has a verdict yet shows when it is chosen.
# Below a verdict stand
#
# - the effect with its unit and 95 % interval: a difference in the direction that the paper claims,
#   or a level or ratio, or how far one lies from what would refute the claim. Of a claim of several
#   parts it is that of the first part with the verdict of the whole, the mean of its cells;
# - δ, the smallest effect of interest, or the margin of a claim of no difference;
# - *detectable*, the smallest effect that as many questions could have shown.
#
# In the second column a word says whether the paper's printed numbers bear the claim out: yes,
# partly, no, or none where none of them speaks to it. Below it stands the working, where the audit
# has one. H, M and W are HotpotQA, MuSiQue and 2WikiMultihopQA; the glossary has the other short names, as
# SM and QDC.
#
# The same rows as a file: `rag-repro claims --format csv`, `json` or `md`.

# %% tags=["remove-input"]
ledger_page.Ledger(entries, contents.claims())

# %% [markdown]
# ## The audit
#
# What follows is arithmetic on the values that the papers print, and on nothing else. *Coincides*
# says that two things are the same where they need not be; it does not say why. Where another
# paper's table would be needed that is not at hand, the row says so, and that part is not
# verified. Where the paper cannot tell, the last words of a row name what would.

# %% tags=["remove-input"]
findings = {one.short: audits.findings(one) for one in shown}
tally = [
    [short, *([f.outcome for f in found].count(outcome) or "" for outcome in audits.OUTCOMES)]
    for short, found in findings.items()
]
Table(["paper", *audits.OUTCOMES], tally, "Findings by outcome", "tab-audit")

# %% tags=["remove-input"]
HEAD = ["place", "what the paper says", "from its printed values", "outcome", "claims"]
for one in shown:
    body = []
    for f in findings[one.short]:
        settles = f" What would tell: {f.sentence.settles}." if f.sentence.settles else ""
        line = [f.sentence.place, f.sentence.said, f.working + settles, f.outcome]
        body.append([*line, ", ".join(f.sentence.claims)])
    caption = f"{one.short}: sentences and printed values"
    display(Table(HEAD, body, caption, f"tab-{one.name}", stacked=True))

# %% [markdown]
# ## Two places of one paper
#
# Some things no table can show: two sentences, captions or labels that do not go together.

# %% tags=["remove-input"]
HEAD = ["place", "what it says", "beside", "what that says", "claims"]
for one in shown:
    readings = audits.load(one).readings
    body = [[r.place, r.said, r.beside, r.told, ", ".join(r.claims)] for r in readings]
    caption = f"{one.short}: two places that do not go together"
    display(Table(HEAD, body, caption, f"tab-{one.name}-places", stacked=True))

# %% [markdown]
# ## What the authors say
#
# They were not asked, as the {doc}`front page <../index>` says. What is told of the papers is what
# stands in their texts.

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro chapter 90_claims                     # this page
# rag-repro chapter 90_claims -p paper drrag      # one paper's
# rag-repro claims --paper drrag --format csv     # the rows alone
# rag-repro claims --tier public --format json
# ```
