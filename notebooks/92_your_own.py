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
# # Your own texts, your own method
#
# Everything in this book runs on your texts too. This chapter goes from one question over a folder
# of text files, by way of a check of that folder, to a retrieval method of your own that is compared
# with the plainest one, on the same questions and with as many passages.
#
# The reader is the small one that comes with the book (SmolLM2, 135 million parameters), so that
# the page executes in a minute on two cores. **A reader of this size reads badly**: look at what it
# says before you look at a score, and name a larger one in the parameters where you have it.

# %% tags=["parameters"]
folder = "notebooks/your_own/town"  # your texts: a path from the folder that you are in
question = "Who built the lighthouse of Marrowick?"  # the one to begin with
dataset = "world-B@1000"  # where else the method is tried, as "world-C@1000" or "musique"
reader = "smollm2-135m"  # a name, a folder of weights, or "hub:owner/name@revision"
retriever = "bm25"  # what searches: "bm25" or "minilm"
k = 2  # passages that the reader is shown, with every method
prompt = "chat"  # how it is asked: "chat", or "short" with its six exemplars
max_new_tokens = 24  # its longest answer
n_questions = 8  # questions from each data set, at most
device = "cpu"  # where the reader computes
batch_size = 16  # questions in flight at once

# %% tags=["hide-input"]
from rag_repro.book_folders import here
from rag_repro.methods.reading import PROMPTS
from rag_repro.publish import chapter
from rag_repro.show import traces
from rag_repro.show.picture import Note
from rag_repro.study.services import Workshop

run = chapter(
    "92_your_own", globals(), k=range(1, 101), max_new_tokens=range(1, 4097), prompt=tuple(PROMPTS)
)
workshop = Workshop(device=run.device, batch_size=run.batch_size)
# The default lies in the checkout; a folder of yours is taken from where you are.
mine = f"folder:{run.folder if 'folder' in run.changed else here().root / run.folder}"
run

# %% [markdown]
# ## One question
#
# `ask` needs a question and a place to look: a folder, a data set's name, or passages in memory. What
# it returns prints as its trace, every search with what it found, and every reading with what was said.

# %%
from rag_repro import ask

names = {"retriever": run.retriever, "reader": run.reader, "services": workshop}
asked = ask(run.question, mine, k=run.k, **names)
print(asked)

# %% [markdown]
# `asked.prediction` is the answer alone, and `asked.steps` holds the calls with their full results.

# %% [markdown]
# ## Your texts and questions
#
# ```text
# my_texts/
#   passages/      *.txt and *.md, in folders if you like
#   questions.jsonl
# ```
#
# **Passages.** A text's title is its first heading, or else its file's name. A text of more than 100
# words is cut where a sentence or a paragraph ends, so `passages/history.md` becomes `history#1`,
# `history#2` and so on.
#
# **Questions.** One object a line; only `question` is needed.
#
# | field | meaning | without it |
# | --- | --- | --- |
# | `question` | the text | |
# | `answers` | what you accept, a text or a list of texts | answers are shown, but not scored |
# | `gold` | the passages that are needed: a file (`lighthouse`), a passage (`history#2`), or words quoted from one | recall is not scored |
# | `id` | a name for it | `q1`, `q2`, ... |
# | `kind` | any group you want to tell apart | |
# | `split` | `train`, `tune` or `test` | `test` |
#
# `questions.csv` has the same names in its first line, and `|` between several answers.
# `questions.txt` has a question a line and nothing else.
#
# Loading checks the whole folder, and tells everything that is wrong at once:

# %%
from rag_repro import load
from rag_repro.data import cards

texts = load(mine)
print(cards.describe(mine))

# %% tags=["hide-input"]
from rag_repro.show.table import Table

Table(
    ["passage", "title", "words", "begins"],
    [
        [p.id, p.title, len(p.text.split()), traces.short(p.text)]
        for p in texts.corpus.passages[:20]
    ],
    f"{texts.name}: the first of its {len(texts.corpus)} passages",
)

# %% [markdown]
# This is what a folder with mistakes is told. Nothing is read in part: mend them all, and load again.

# %% tags=["hide-input"]
import tempfile
import textwrap
from pathlib import Path

from rag_repro.data.own import FolderError

with tempfile.TemporaryDirectory() as place:
    wrong = Path(place) / "my_texts"
    (wrong / "passages").mkdir(parents=True)
    (wrong / "passages/mill.txt").write_text("The mill was built by Jo Penn.")
    (wrong / "passages/old.txt").write_bytes("The café closed.".encode("latin-1"))
    (wrong / "questions.jsonl").write_text(
        '{"question": "Who built the mill?", "answer": "Jo Penn", "gold": "mill"}\n'
        '{"question": "When did the café close?", "gold": "mil"}\n'
        '{"question": "who built  the mill?"}\n'
    )
    try:
        load(f"folder:{wrong}")
    except FolderError as error:
        for problem in error.problems:
            print(textwrap.fill(problem, 76, subsequent_indent="    "))

# %% [markdown]
# ## A method of your own
#
# A method is a generator for *one* question. It yields calls (`Retrieve`, `Generate`, ...) and is sent
# their results; `search` and `read` are the stages that all methods of this book share. The engine runs
# it for many questions at once and batches the calls of all of them.
#
# This one asks twice. The first answer may name what the question does not, so it goes into a second
# search. Half of the `k` passages come from the first search, so that the reader is shown as many in the
# end as with any other method.

# %%
from dataclasses import replace

from rag_repro import method
from rag_repro.methods.drrag.concatenation import take_in_turns
from rag_repro.methods.stages import read, search


@method("ask_twice")
def ask_twice(question, settings):
    """Search, read; search again with that answer; read again."""
    half = (settings.k + 1) // 2
    first = yield search(question.text, half, question, settings)
    draft = yield from read(question, first, settings)
    query = f"{question.text} {draft.prediction or ''}"
    second = yield search(query, settings.k, question, settings)
    hits = take_in_turns(first, [second], settings.k)
    answer = yield from read(question, hits, settings)
    return replace(answer, trace=({"first answer": draft.prediction},))


# %% [markdown]
# The decorator makes its name known to everything here: `ask`, `compare`, conditions and records. Its
# records are named by a hash of this source as well, so an edited method never meets the answers of
# its earlier self; when something that it *calls* changes, raise `@method("ask_twice", version=2)`.
#
# One question, step by step. It is the first of the folder's questions that needs two passages, if
# there is one.

# %%
two = [q for q in texts.questions if len(q.gold) > 1]
shown = (two or texts.questions)[0]
same = {"k": run.k, "prompt": run.prompt, "max_new_tokens": run.max_new_tokens}
walked = ask(shown, texts, method="ask_twice", **same, **names)
walked

# %% tags=["remove-input"]
first_answer = walked.answer.trace[0]["first answer"]
Table(
    ["what", "text"],
    [["accepted", " | ".join(shown.answers)], ["first answer", first_answer or "(none)"]],
)

# %% [markdown] tags=["result"]
# ## Against the plainest method
#
# `single_step` searches once and reads once. Both get the same questions, the same `k` and the same
# prompt; asking twice costs a second reading. Each answer is stored as a record, so that a run that
# was cut off goes on where it stopped, and a second run asks nothing again.
#
# *recall* is the share of the needed passages that were found, *acc* whether an accepted answer stands
# in what the reader said, *f1* how many words the two share. Intervals are 95 % bootstrap intervals,
# widened where questions are few, and at least as wide as what so few may have left unseen. The
# difference is paired: question by question.

# %%
from rag_repro import compare

methods = ["single_step", "ask_twice"]
results = here().root / "results/local/records"
own = compare(methods, mine, results, n=run.n_questions, **same, **names)
own

# %% [markdown]
# What was said, question by question. Read this before you believe a mean.

# %%
own.answers()

# %% [markdown]
# The same two lines for a data set of the book, here the testbed, where every name is invented, so
# that the reader as it comes cannot know the answer by heart:

# %%
world = compare(methods, run.dataset, results, n=run.n_questions, **same, **names)
world

# %% [markdown]
# ### What this shows

# %% tags=["remove-input"]
gains = [
    (f"`{c.dataset.name}`", c.difference("ask_twice", "acc"), len(c.dataset.questions))
    for c in (own, world)
]
said = [
    f"On {name}, asking twice changed accuracy by {d.estimate:+.1f} points, with an interval from "
    f"{d.lo:+.1f} to {d.hi:+.1f}."
    if d
    else f"On {name} nothing was scored: no question has accepted answers."
    for name, d, _ in gains
]
n = min(n for *_, n in gains)
Note(
    " ".join(said)
    + f" **n = {n} proves nothing**, in either direction: with so few questions one answer moves the mean"
    f" by {100 / n:.1f} points. It is enough to see a method run, and to read what it did."
)

# %% [markdown]
# For a result, take hundreds of questions, choose the method's settings on other questions than those
# you report, and a reader that can use what it is given: compare `gold_passages` with `no_retrieval`
# first. Where the reader is hardly better with the right passages than without any, no way of finding
# passages can show.

# %% [markdown]
# ## All that is recorded, as one table
#
# `results()` gives every recorded score of this book as one pandas table: a row per condition and
# question, a column per metric, percentages in points. `help(results)` names the columns. Three
# examples.
#
# **Mean by method and kind of question**, over all conditions of a method:

# %%
from rag_repro import results as recorded

scores = recorded()
testbed = scores[scores.dataset == "world-B"]
means = testbed.groupby(["method", "kind"], observed=True).em.mean().unstack().round(1)
means = means.head(10).reset_index()
Table(list(means), means.to_numpy(), "Exact match by method and kind, world-B, all readers")

# %% [markdown]
# **Recall by retriever and number of passages**, of the methods that search once:

# %%
once = scores[(scores.method == "single_step") & (scores.split == "test")]
found = once.pivot_table("recall", ["dataset", "retriever"], "k", observed=True).round(1)
found = found.head(10).reset_index().astype(object).fillna("")
Table(list(found), found.to_numpy(), "Recall by retriever and number of passages")

# %% [markdown]
# **Two conditions, question by question.** A condition has a hash; on the same questions its scores
# stand beside another's. The mean of the differences is what this book calls a gain.

# %%
asked = testbed.groupby(["method", "condition"], observed=True).em.count()
without, once = (asked[name].idxmax() for name in ("no_retrieval", "single_step"))
both = testbed[testbed.condition.isin([without, once])]
both = both.pivot_table("em", "id", "condition", observed=True).dropna()
(both[once] - both[without]).agg(["count", "mean"]).round(1)

# %% [markdown] tags=["rerun"]
# ## Run it yourself
#
# ```bash
# rag-repro data card folder:my_texts                       # check the folder, print its card
# rag-repro chapter 92_your_own -p folder my_texts          # this page on your texts
# rag-repro chapter 92_your_own -p n_questions 200 -p prompt short -p retriever minilm
# rag-repro chapter 92_your_own -p reader hub:OWNER/NAME@REVISION -p device cuda
# rag-repro chapter 11_drrag_recall -p dataset folder:/path/to/my_texts -p retriever bm25
# ```
#
# To go on, copy `notebooks/92_your_own.py` under another number, change the method, and run `make pair`.
# Three things worth trying, each a change of a line or two:
#
# 1. Hand the passages to the reader in reverse, best last. How much does the order alone change?
# 2. Put only the *first answer* into the second search, without the question.
# 3. Skip the second search where the first answer stands in no passage.
