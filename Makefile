PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers

.PHONY: help env demo paper test test-fast check format mutants bench docs docs-serve docs-links clean

help:  ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 11

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("labeldp needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[excel,page,plots,spark]' --group dev
	@touch $@ $(VENV)/.core $(VENV)/.paper

$(VENV)/.paper: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[files,plots]' --group reproduction
	@touch $@ $(VENV)/.core

$(PEERS)/.done: benchmarks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers.txt
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[excel,page,plots,spark]' --group docs
	@touch $@

env: $(VENV)/.dev  ## Build .venv with all that tests need
	@tests/install_chromium.sh

demo: $(VENV)/.core  ## Install, train private models on a synthetic survey, draw their price
	$(BIN)/labeldp demo

paper: $(VENV)/.paper  ## Compute the paper's tables (hours on 2 cores; the same command continues a stopped run)
	$(BIN)/python -m reproduction crime --include-non-private
	$(BIN)/python -m reproduction housing --include-non-private
	$(BIN)/python -m reproduction criteo --include-non-private --twin 1000000
	$(BIN)/python -m reproduction error --data crime,housing,criteo --twin 1000000
	$(BIN)/python -m reproduction runtime --data crime,housing,criteo --twin 1000000

test: $(VENV)/.dev  ## Run all tests
	@tests/install_chromium.sh
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

test-fast: $(VENV)/.dev  ## Run the tests that take less than a minute together: no slow ones, no Spark, no browser
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup \
		-m "not slow and not spark and not browser"

check: $(VENV)/.dev  ## Lint, format check and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## Rewrite in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev $(PEERS)/.done  ## Measure speed and memory beside other libraries
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.release
	$(BIN)/python -m benchmarks.interval
	$(BIN)/python -m benchmarks.split
	$(BIN)/python -m benchmarks.files

mutants: $(VENV)/.dev  ## Change the privacy-critical rooms one thing at a time; tests must notice (hours; some rooms: ROOMS="noise/integers.py release/plan.py")
	$(BIN)/python -m benchmarks.mutants $(ROOMS)

docs: $(VENV)/.docs  ## Build the site into build/site; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

docs-serve: docs  ## Show the site on http://localhost:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

docs-links: docs  ## Check all links, anchors and pictures of the built site
	$(BIN)/python docs/check_links.py build/site

clean:  ## Remove environments and caches
	rm -rf $(VENV) $(PEERS) .pytest_cache .mypy_cache .ruff_cache .hypothesis
