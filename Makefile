# Two commands matter: `make demo` and `make test`. Each sets up everything it needs.
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CODE   := $(VENV)/.compiled
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto  # all cores, each test on one

.DEFAULT_GOAL := help
.PHONY: help demo test coverage lint format docs links dist clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV), once: this takes a few minutes"
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

$(CODE): $(STAMP) src/hck/cli/compile.py $(wildcard src/hck/backend/cpu/*.py)
	$(BIN)/hck compile
	touch $@

demo: $(STAMP)  ## train on 100,000 points beside the exact kernel, print a table, save a plot
	$(BIN)/hck demo --force

test: $(CODE)  ## run all tests, on all cores, each on one
	$(PYTEST)

coverage: $(STAMP)  ## the same, and which lines of the sources they run
	rm -rf .compiled  # compiling runs some of the lines
	NUMBA_CACHE_DIR=$(CURDIR)/.compiled $(PYTEST) --cov --cov-report=term --cov-report=xml

lint: $(STAMP)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

format: $(STAMP)  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)  ## the site, with the gallery executed, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

links: $(STAMP)  ## check links to elsewhere; without a network, nothing
	$(BIN)/python tests/release/check_links.py

dist: $(STAMP)  ## build sdist and wheel, and check them as docs/releasing.md says
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python tests/release/check_dist.py $(PYTHONS)

clean:  ## remove what the commands above made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* .compiled coverage.xml hck-demo.png \
		dist docs/_build docs/auto_gallery docs/api/generated
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
