# make demo and make test each work from a fresh clone; PYTHON=python3.12 make test picks another interpreter.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.installed-docs

.DEFAULT_GOAL := help
.PHONY: help install demo test adapters lint types docs format clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1: \2/p' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## create .venv with all that developing needs

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "modelodds needs Python 3.11 or newer; name one with PYTHON=...")'
	@echo "installing into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --editable '.[test,dev,demo]'
	@touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	@$(PIP) install --editable '.[docs]'
	@touch $@

demo: install  ## compare three models of real data
	@$(BIN)/modelodds demo

test: install  ## the whole test suite, on two cores
	$(BIN)/python -m pytest -n 2

adapters: install  ## the adapters' tests, with every library there is an adapter for
	@$(PIP) install --editable '.[adapters]'
	$(BIN)/python -m pytest -n 2 tests/test_adapter_*.py tests/test_examples.py

lint: install  ## style, without changing anything
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: install  ## static types of src
	$(BIN)/mypy

docs: $(DOCS_INSTALLED)  ## build the site into site/
	$(BIN)/mkdocs build --strict

format: install  ## put the style right
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:  ## remove everything that was made here, .venv included
	rm -rf $(VENV) site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
