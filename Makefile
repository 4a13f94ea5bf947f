# Everything runs in .venv, which `make setup` makes once and remakes when a pyproject.toml changes.
# Needed beforehand: make, git and a Python from 3.11 to 3.13 with venv.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
CANDIDATES := python3 python3.13 python3.12 python3.11 python
USABLE := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format types layers bench clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv with everything that developing needs

$(VENV)/bin/python:
	@for python in $(CANDIDATES); do \
	  if "$$python" -c "$(USABLE)" >/dev/null 2>&1; then exec "$$python" -m venv $(VENV); fi; \
	done; \
	echo "make: no Python from 3.11 to 3.13 with venv and pip was found (tried: $(CANDIDATES))" >&2; exit 1

NATIVE := hatch_build.py src/mycelia/native/CMakeLists.txt $(wildcard src/mycelia/native/csrc/*)

$(STAMP): pyproject.toml compat/pyproject.toml $(NATIVE) | $(VENV)/bin/python
	@echo "installing mycelia and its development tools into $(VENV) (once, some minutes)"
	@$(PIP) install -qq --upgrade pip
	@$(PIP) install -qq --editable '.[dev]' --editable ./compat
	@$(BIN)/python -m mycelia.native
	@touch $@

demo: $(STAMP) ## train a small network on handwritten digits
	@$(BIN)/mycelia demo

test: $(STAMP) ## the tests, without those marked torch or slow
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not torch and not slow"

lint: $(STAMP) ## ruff: rules and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

format: $(STAMP) ## rewrite the files as ruff wants them
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

types: $(STAMP) ## mypy
	@$(BIN)/mypy

layers: $(STAMP) ## which package may import which
	@$(BIN)/lint-imports --no-logo

bench: $(STAMP) ## run every benchmarks/bench_*.py
	@for script in benchmarks/bench_*.py; do \
	  if [ ! -e "$$script" ]; then echo "there are no benchmarks/bench_*.py"; exit 0; fi; \
	  echo "== $$script"; $(BIN)/python "$$script" || exit 1; \
	done

clean: ## remove what tools left behind; .venv stays
	@rm -rf build dist compat/build compat/dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find src tests scripts compat -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv
	@rm -rf $(VENV)
