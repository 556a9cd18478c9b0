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
# # Run status
#
# Every chapter was executed before the book was built, and carries a note of what ran, on what and
# how long. This page gathers these notes, all but its own.

# %% tags=["parameters"]
largest = 5  # how many of the slowest chapters the figure shows

# %% tags=["hide-input"]
from rag_repro.publish import chapter, status

run = chapter("91_status", globals(), largest=range(1, 100))
run

# %% [markdown]
# ## Chapters

# %% tags=["remove-input"]
runs = status.runs()
status.show(runs, "Chapters and their last run", "tab-runs")

# %% [markdown]
# *Seconds* is the time from a chapter's first cell to its last, with stored records at hand and a
# sample run live. *Memory* is the most that its process held at once. *Real data at hand* says
# whether `RAG_REPRO_DATA` named a folder while it ran.

# %% tags=["remove-input"]
status.slowest(runs, run.largest)

# %% [markdown]
# ## Stored records
#
# The chapters' tables come from records that were made beforehand by `rag-repro run`: one answer
# to one question under one condition. *Hours* add up the runs that made them, though two may have
# shared a machine, and some answers were made twice.

# %% tags=["remove-input"]
status.show(status.recorded(), "Stored records by data set", "tab-recorded")

# %% [markdown]
# ## Machines of the chapters

# %% tags=["remove-input"]
status.show(status.machines(), "Machines", "tab-machines")

# %% [markdown]
# ## Versions under which the chapters ran

# %% tags=["remove-input"]
status.show(status.versions(), "Packages and their versions", "tab-versions")

# %% [markdown]
# ## Sizes in this checkout

# %% tags=["remove-input"]
status.show(status.sizes(), "Folders and their sizes", "tab-sizes")

# %% [markdown] tags=["rerun"]
# ## Troubleshooting
#
# `… is not Python 3.11.5 or newer`
# : `make book PYTHON=/path/to/python3.11`.
#
# The set-up downloads gigabytes of CUDA packages
# : It took the registry's default build of torch. The README tells how to take the CPU build.
#
# The set-up was cut off
# : Run the same command again. It begins the set-up anew.
#
# `unknown parameter …`
# : The message names the nearest one. The first table of each chapter lists them all.
#
# `is stale: its source changed after it was executed`
# : `make book` executes the chapter again.
#
# `… would differ on another machine`
# : The chapter shows a path of your machine, or an object's address. Show something else.
#
# `no kernel … is installed`
# : `jupyter kernelspec list` shows those that are. A kernel of another environment needs this
#   package too: run `pip install --editable .` there, at the root of this checkout.
#
# A chapter about public data only shows stored records
# : Set `RAG_REPRO_DATA` to the folder of the data files.
#
# To execute this chapter alone: `rag-repro chapter 91_status`.
#
# ## How to cite

# %% tags=["remove-input"]
print(status.citation())

# %% [markdown]
# Please cite the papers that you build on as well: {cite:t}`hei2024drrag`, {cite:t}`shi2024erm4`,
# {cite:t}`su2024dragin` and {cite:t}`ye2024r2ag`.
