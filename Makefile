# All one needs: Python 3.11 or newer, make, and a package registry. Verbs: demo test check sim bench docs.
#
#   make demo                  a fleet, a queue, a real program on this machine, in two minutes
#   make test                  every test;  JOBS=1 for one at a time, ARGS='-k queue' for pytest
#   make check                 lint, types, import contracts
#   make sim                   break the scheduler until stopped; SEEDS=50 for so many, SEED=7 for that one
#   make bench                 how fast it is, printed
#   make docs                  write the reference pages anew from the code
#
# PYTHON=python3.13 and VENV=.venv-3.13 choose the interpreter and where its environment is kept.

SHELL := /bin/sh
VENV ?= .venv
JOBS ?= 2
ARGS ?=
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo demo-stop test check sim bench docs venv clean
.DEFAULT_GOAL := help
.PHONY: help
help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.ready
	@$(BIN)/dws demo

demo-stop: $(VENV)/.ready
	@$(BIN)/dws demo --stop

test: $(VENV)/.ready-test
	@$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

check: $(VENV)/.ready-dev
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

sim: $(VENV)/.ready
	@$(BIN)/dws simulate --break $(if $(SEED),$(SEED),$(if $(SEEDS),--seeds $(SEEDS),--forever)) $(ARGS)

bench: $(VENV)/.ready
	@$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.ready
	@$(BIN)/python -m tools.reference

venv: $(VENV)/.ready

# An environment is made once for each set of dependencies; the stamp is written only when all of it worked.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found; name one with PYTHON=…" >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "make: $(PYTHON) cannot make an environment; on Debian and Ubuntu: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }

$(VENV)/.ready: pyproject.toml | $(BIN)/python
	@$(PIP) --editable .
	@$(BIN)/python -c 'from dws.planner import kernels; kernels.warm()'
	@touch $@

$(VENV)/.ready-test: pyproject.toml $(VENV)/.ready
	@$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.ready-dev: pyproject.toml $(VENV)/.ready
	@$(PIP) --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
