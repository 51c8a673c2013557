PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
LOWEST := .venv-lowest
DIST := .venv-dist

# Assertions as pytest rewrites them, and the library for the processes that tests start, are compiled once.
TEST_SETTINGS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
RUN_TESTS := $(TEST_SETTINGS) $(BIN)/python -m pytest -n 2 --dist loadgroup

.PHONY: help env demo paper test test-fast test-lowest check format mutants bench dist docs docs-serve docs-links clean

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

$(VENV)/.mutants: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group mutants
	@touch $@

$(LOWEST)/.done: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("the lowest versions are made for Python 3.11: make test-lowest PYTHON=python3.11") if sys.version_info[:2] != (3, 11) else None'
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.8"
	$(LOWEST)/bin/uv pip install --quiet --compile-bytecode --python $(LOWEST)/bin/python --resolution lowest-direct \
		--editable '.[excel,page,plots,spark]' --group dev
	@touch $@

$(DIST)/.done: pyproject.toml
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(DIST)/bin/python -m pip install --quiet --disable-pip-version-check --group dist
	@touch $@

env: $(VENV)/.dev  ## Build .venv with all that tests need
	@tests/install_chromium.sh

demo: $(VENV)/.core  ## Install, release a synthetic private column, train three learners on it, draw what they learn
	$(BIN)/labeldp demo

paper: $(VENV)/.paper  ## Compute the paper's tables (hours on 2 cores; the same command continues a stopped run)
	$(BIN)/python -m reproduction crime --include-non-private
	$(BIN)/python -m reproduction housing --include-non-private
	$(BIN)/python -m reproduction criteo --include-non-private --twin 1000000
	$(BIN)/python -m reproduction error --data crime,housing,criteo --twin 1000000
	$(BIN)/python -m reproduction runtime --data crime,housing,criteo --twin 1000000

test: $(VENV)/.dev  ## Run all tests
	@tests/install_chromium.sh
	$(RUN_TESTS)

test-fast: $(VENV)/.dev  ## Run a few quick tests of every file in under a minute: no slow ones, no Spark, no browser
	$(RUN_TESTS) -m "not slow and not further and not spark and not browser"

test-lowest: $(LOWEST)/.done  ## Run all tests with the lowest versions that pyproject.toml allows; some: TESTS="-m 'not slow'"
	$(TEST_SETTINGS) $(LOWEST)/bin/python -m pytest -n 2 --dist loadgroup $(TESTS)

check: $(VENV)/.dev  ## Lint, format check and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## Rewrite in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev $(PEERS)/.done  ## Measure what README.md quotes, beside other libraries, and put it there (under an hour on 2 cores)
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.files
	$(BIN)/python -m benchmarks.beside_peers
	$(BIN)/python -m benchmarks.intervals
	$(BIN)/python -m benchmarks.readme

mutants: $(VENV)/.mutants  ## Change privacy-critical modules one thing at a time; tests must detect it (hours; some modules: MODULES="exact/integers.py release/plan.py")
	$(BIN)/python -m benchmarks.mutants $(MODULES)

docs: $(VENV)/.docs  ## Build the site into build/site; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/site

docs-serve: docs  ## Show the site on http://localhost:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

docs-links: docs  ## Check all links, anchors and pictures of the built site
	$(BIN)/python docs/check_links.py build/site

dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: $(DIST)/.done  ## Build wheel and sdist with bytes that others can reproduce, check them, try the wheel alone
	rm -rf dist build/again build/alone
	$(DIST)/bin/python -m build --dependency-constraints-txt tests/package/build.txt --outdir dist
	$(DIST)/bin/python -m build --dependency-constraints-txt tests/package/build.txt --sdist --wheel --outdir build/again
	$(DIST)/bin/python tests/package/check_dist.py build/again
	$(DIST)/bin/twine check --strict dist/*
	$(DIST)/bin/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv --without-pip build/alone
	$(DIST)/bin/python -m pip --python build/alone install --quiet --disable-pip-version-check dist/*.whl
	$(DIST)/bin/python -m pip --python build/alone check
	build/alone/bin/python -I tests/package/try_wheel.py
	$(DIST)/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --output-reproducible \
		--output-file dist/sbom.cdx.json build/alone/bin/python
	$(DIST)/bin/python tests/package/check_dist.py

clean:  ## Remove environments and caches
	rm -rf $(VENV) $(PEERS) $(LOWEST) $(DIST) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis build/doctrees build/site docs/gallery docs/reference/generated
