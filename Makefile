# Two commands: `make demo` and `make test` (`make test-all` with all that takes long). They set up .venv by themselves, and compile what has changed.
# `make native` only compiles; `make wheel` is what a release runs.
PYTHON ?= python3
BIN := .venv/bin
# one process more than cores, as many tests wait for a clock or another process; each takes the tests of neighbouring
# files, and helps the others at the end
PARALLEL ?= -n $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)') --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq -c constraints.txt
# packages are installed while superarm compiles: pip leaves that to build/native
EDITABLE := SUPERARM_COMPILE=0 $(PIP) --no-build-isolation -e
MAKEFLAGS += --jobs=2
# the tests start hundreds of processes: without bytecode on disk each would compile superarm's modules again
unexport PYTHONDONTWRITEBYTECODE

SOURCES := $(shell find src/superarm -name '*.p[yx][xd]') $(wildcard src/superarm/native/c/*) setup.py buildtools/compiler.py buildtools/stubs.py

.PHONY: demo play test test-all coverage native docs wheel bench clean

demo: .venv/demo build/native
	$(BIN)/superarm demo

play: .venv/demo build/native
	$(BIN)/superarm play

test: .venv/test build/native
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow"

# what takes long: statistics over many runs, chaos, kills, every page of the docs
test-all: test
	$(BIN)/python -m pytest $(PARALLEL) -m slow

# lines that the quick tests run: before Python 3.12, counting them takes longer than the tests
coverage: .venv/test build/native
	COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")') \
	  $(BIN)/python -m pytest $(PARALLEL) -m "not slow" --cov --cov-report=term

native: .venv/demo build/native

wheel: .venv/test
	$(PIP) auditwheel build twine
	PYTHON=$(PYTHON) .ci/wheel

docs: .venv/test build/native
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open build/site/index.html"

bench: .venv/test build/native
	$(BIN)/python benchmarks/speed.py

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "superarm needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

# what setup.py needs; it stays, so that a change is compiled without installing anything again
.venv/build: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing superarm into .venv …"
	$(PIP) cython numpy setuptools $$($(BIN)/python buildtools/compiler.py)
	@touch $@

.venv/demo: .venv/build
	$(EDITABLE) ".[experiments,serve,label]"
	@touch $@

.venv/test: .venv/build
	$(EDITABLE) ".[experiments,sklearn,data,serve,label,dask,postgres,onnx,dev]"
	@touch $@ .venv/demo

build/native: $(SOURCES) | .venv/build
	@echo "compiling superarm …"
	@$(BIN)/python setup.py -q build_ext --inplace
	@touch $@

clean:
	rm -rf .venv build dist superarm-demo .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
	find src \( -name '*.so' -o -name '*.pyi' -o -name '*.egg-info' \) -prune -exec rm -rf {} +
