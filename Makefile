# Needs Python 3.11 or newer and make. `make` alone lists what there is to do.

PYTHON ?= python3
VENV ?= .venv
# Test processes; `make test JOBS=0` runs the tests in one.
JOBS ?= 2

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.docs-installed
# Where `make docs` puts the documentation.
SITE ?= site
PYTEST := $(BIN)/python -m pytest
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' \
	| while IFS="$$(printf '\t')" read -r target text; do printf '  make %-14s %s\n' "$$target" "$$text"; done

.PHONY: install
install: $(INSTALLED) ## Make the virtual environment and install edgegym into it

# A finished installation leaves a stamp, so that it happens once and again only when these files change.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit("edgegym needs Python 3.11 or newer, but \"$(PYTHON)\" is %s. Name another one: make PYTHON=python3.12" % v if sys.version_info < (3, 11) else 0)'
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@echo "Installing edgegym and its tested dependencies; a first time takes minutes and downloads PyTorch ..."
	@$(PIP_INSTALL) -c constraints.txt --editable '.[sb3,marl,tune,records,bench,dev]'
	@touch $@
	@echo "Installed."

.PHONY: demo
demo: $(INSTALLED) ## Train an agent, compare it with the analytic baseline, report in runs/demo
	$(BIN)/python -m agents demo

.PHONY: demo-hundred
demo-hundred: $(INSTALLED) ## Play the demo's agent, trained on 25 nodes, on 100 nodes with four times the budget
	$(BIN)/python -m agents evaluate runs/demo -o runs/demo/hundred --seeds 10 \
	  --policy static uniform analytic analytic_local analytic_mpc \
	  --set nodes.count=100 --set region.width_km=10 --set region.height_km=10 \
	  --set migration.budget_bytes_per_s=2576980378 --set migration.burst_bytes=38654705664 \
	  --set control.moves_per_epoch=4

.PHONY: test
test: test-compiled test-plain ## Run the tests, then those of the kernels once more as plain Python

.PHONY: test-compiled
test-compiled: $(INSTALLED)
	$(PYTEST) -n $(JOBS)

.PHONY: test-plain
test-plain: $(INSTALLED)
	NUMBA_DISABLE_JIT=1 $(PYTEST) -n $(JOBS) -m "twin and not slow"

.PHONY: test-slow
test-slow: $(INSTALLED) ## Run the studies that take minutes
	$(PYTEST) -m slow

.PHONY: wheel-test
wheel-test: $(INSTALLED) ## Build the wheel, try it and the examples in a new environment elsewhere
	$(PYTEST) -m wheel tests/packaging

.PHONY: examples
examples: $(INSTALLED) ## Run the examples, shortened, with the wheel and the libraries they are about
	$(PYTEST) -m wheel tests/packaging/test_examples.py

.PHONY: lint
lint: $(INSTALLED) ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(INSTALLED) ## Fix style where that can be done automatically
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: check
check: lint test ## Run lint, then the tests

.PHONY: bench
bench: $(INSTALLED) ## Measure the speed of simulator, environment and equilibrium
	$(BIN)/edgegym bench

.PHONY: figures
figures: $(INSTALLED) ## Draw the framework paper's figures and the studies for docs/figures.md
	$(BIN)/edgegym figures all studies -o docs/figures --page docs/figures.md

# Apart from the rest: who trains an agent needn't wait for it.
$(DOCS_INSTALLED): $(INSTALLED)
	@echo "Installing what builds the documentation ..."
	@$(PIP_INSTALL) -c constraints.txt --editable '.[docs]'
	@touch $@

.PHONY: docs-install
docs-install: $(DOCS_INSTALLED) ## Install what builds the documentation

# Material announces its successor at each build, which is no news after the first.
.PHONY: docs
docs: $(DOCS_INSTALLED) ## Build the documentation into site/, with every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir "$(abspath $(SITE))"
	@echo "Built: $(SITE)/index.html"

.PHONY: docs-serve
docs-serve: $(DOCS_INSTALLED) ## Show the documentation at http://127.0.0.1:8000, renewed at each edit
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --watch edgegym --watch docs

.PHONY: clean
clean: ## Remove builds and caches; keeps the virtual environment and runs/
	rm -rf build dist $(SITE) .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find agents edgegym examples tests -type d -name __pycache__ -prune -exec rm -rf {} +
