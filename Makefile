PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers

.PHONY: help env demo paper test test-fast check format mutants bench clean

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

clean:  ## Remove environments and caches
	rm -rf $(VENV) $(PEERS) .pytest_cache .mypy_cache .ruff_cache .hypothesis
