# `make demo` and `make test` need python3 with venv, and nothing else: they set up .venv themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Modules are compiled once, and not by each of the processes that tests start.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-long docs links clusters repeat lint style types audit bench bench-detail bench-engines bench-leaves bench-scale peers experiments clean

demo: $(VENV)/.plain
	$(BIN)/treetop demo

# Types are checked while the tests run: where one test waits for the kernels of another, a core is free.
test: style
	@$(BIN)/mypy > $(VENV)/types.txt 2>&1 & types=$$!; \
	$(BIN)/pytest -q -n auto --dist worksteal -m "not long"; tests=$$?; \
	wait $$types; types=$$?; \
	echo "mypy:"; cat $(VENV)/types.txt; \
	exit $$((tests || types))

# The others: studies, real tables, simulations, pages in a browser, the wheel in an empty environment.
test-long: $(VENV)/.test
	$(BIN)/pytest -q -n auto --dist worksteal -m long

# The documentation site, in site/index.html: made and read without a network. A dead link is an error.
docs: $(VENV)/.test
	$(BIN)/python -m sphinx -q -W --keep-going docs site
	@echo "Open site/index.html"

# The links that lead out of the site, which needs a network.
links: $(VENV)/.test
	$(BIN)/python -m sphinx -q -b linkcheck docs site/links

# Spark and Dask, whose tests are skipped without them.
clusters: $(VENV)/.clusters

# The whole suite again and again, part by part at low priority: a test that fails by chance shows itself.
RUNS ?= 20
repeat: $(VENV)/.test
	$(BIN)/python tests/repeat.py --runs $(RUNS)

lint: style types

style: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/layers.py

types: $(VENV)/.test
	$(BIN)/mypy

# The deep version of the privacy audits: minutes instead of seconds.
audit: $(VENV)/.test
	TREETOP_AUDIT=deep $(BIN)/pytest -q -n auto --dist worksteal tests/privacy

bench: $(VENV)/.bench .bench/.ready
	$(BIN)/python -m benchmarks

# An Italy-like table at full detail through the command line: seconds, memory, and what every level did.
bench-detail: $(VENV)/.plain
	$(BIN)/python -m benchmarks.full_detail

# Tables larger than memory through the command line, in worker processes: SIZES="10M 100M 1G", MEMORY=1GB; with margins
# PLAN=trips.toml, with more leaves EPSILON=4.
SIZES ?= 10M 100M
MEMORY ?= 1GB
PLAN ?= no_margins.toml
EPSILON ?= 1
bench-scale: $(VENV)/.plain
	$(BIN)/python -m benchmarks.scale $(SIZES) --memory $(MEMORY) --plan $(PLAN) --epsilon $(EPSILON)

# The same table on every engine, Spark with them where it is installed (make clusters): SIZES as above.
bench-engines: $(VENV)/.plain
	$(BIN)/python -m benchmarks.engines $(SIZES) --memory $(MEMORY)

# A release larger than memory, which is made up: its check, queries, tables and export. LEAVES=100M.
LEAVES ?= 100M
bench-leaves: $(VENV)/.plain
	$(BIN)/python -m benchmarks.leaves $(LEAVES)

# The same table through other tools, each in an environment of its own: docs/results/peers.md.
peers: $(VENV)/.bench .bench/.ready
	$(BIN)/python -m benchmarks.peers

# The studies behind docs/results, one after the other: those that this version has not finished, from where they stopped.
# Those of real tables skip themselves where the tables are not. STUDIES="inftda margins" for some.
experiments: $(VENV)/.test
	$(BIN)/python -m experiments $(STUDIES)

$(VENV)/.plain: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.plain
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[test,studio,docs]"
	touch $@

$(VENV)/.clusters: pyproject.toml $(VENV)/.test
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[spark,dask]"
	touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.plain
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[bench]"
	touch $@

# The public reference implementation, with the OpenDP that it runs on, apart from ours.
.bench/.ready:
	$(PYTHON) -m venv .bench
	.bench/bin/pip install --quiet --disable-pip-version-check inf-tda==0.1 opendp==0.12.1
	touch $@

clean:
	rm -rf $(VENV) .bench .experiments site .mypy_cache .ruff_cache .pytest_cache .hypothesis .repeat
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
