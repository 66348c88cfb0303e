# Two commands: `make demo` and `make test`. Both set up .venv by themselves. `make wheel` is what a release runs.
PYTHON ?= python3
BIN := .venv/bin
# tests on all cores; each core takes the tests of neighbouring files, and helps the other at the end
PARALLEL ?= -n auto --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq -c constraints.txt

.PHONY: demo play test docs wheel bench clean

demo: .venv/demo
	$(BIN)/superarm demo

play: .venv/demo
	$(BIN)/superarm play

test: .venv/test
	$(BIN)/python -m ruff check src tests benchmarks examples docs
	$(BIN)/python -m ruff format --check src tests benchmarks examples docs
	$(BIN)/python -m mypy
	$(BIN)/python tests/warm.py
	$(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term

wheel: .venv/test
	$(PIP) build twine
	PYTHON=$(PYTHON) .ci/wheel

docs: .venv/test
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open build/site/index.html"

bench: .venv/test
	$(BIN)/python benchmarks/speed.py

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "superarm needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/demo: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing superarm into .venv …"
	$(PIP) -e ".[experiments,serve]"
	@touch $@

.venv/test: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing superarm and its test tools into .venv …"
	$(PIP) -e ".[experiments,sklearn,data,serve,dask,postgres,dev]"
	@touch $@ .venv/demo

clean:
	rm -rf .venv build dist superarm-demo .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
