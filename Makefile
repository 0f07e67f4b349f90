# Two commands for a fresh machine with Python 3.11: `make run` and `make test`.
PYTHON ?= python3.11
ifeq (,$(shell command -v $(PYTHON) 2>/dev/null))
PYTHON := python3
endif
BIN := .venv/bin

.PHONY: run setup dev test test-real test-found test-all seconds lint schema mutants pictures site clean

run: setup
	$(BIN)/python main.py

setup: .venv/runtime.done

dev: .venv/dev.done

TESTS := test test-real test-found test-all
$(TESTS): export PYTHONDONTWRITEBYTECODE = # what many processes import is compiled once
$(TESTS): export OPENBLAS_NUM_THREADS ?= 1 # as workers have it: threads that spin take a core from the others
DEALT := -n 2 --dist loadfile --no-loadscope-reorder # files stay whole, in the order of tests/support/dealing.py
QUICK := -m "not slow" $(DEALT) --timeout 900 -o faulthandler_timeout=600

test: dev # what's quick
	$(BIN)/python -m pytest tests $(QUICK)

test-real: dev # compilers, clusters, browsers, campaigns, whole repairs
	$(BIN)/python -m pytest tests_real $(QUICK)

test-found: dev # faults of other libraries that campaigns found, with these releases: once a week
	$(BIN)/python -m pytest tests_found $(DEALT)

test-all: dev # tests and tests_real, slow cases too
	$(BIN)/python -m pytest tests tests_real $(DEALT)

seconds: dev
	$(BIN)/python tests/support/dealing.py

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

schema: setup
	$(BIN)/python -m conrepair.application.config.schema
	$(BIN)/python -m conrepair.application.report.schema
	$(BIN)/python -m conrepair_lab.report.schema

mutants: dev
	$(BIN)/python -m benchmarks.mutants

pictures: dev
	$(BIN)/python docs/pictures/screenshots.py $(if $(AUDIT),--audit $(AUDIT))

site: dev # every link checked; then: python -m http.server -d build/site/html
	$(BIN)/python docs/site/build.py

clean:
	rm -rf .venv generated .cache build/site

PACKAGES := . $(patsubst %,plugins/%,crowd lab legacy onnx-keras) # of this repository, without plug-ins of other runtimes

.venv/runtime.done: requirements.txt pyproject.toml $(wildcard plugins/*/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "Python 3.11 is needed, $(PYTHON) is another. Try: make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -r requirements.txt
	$(BIN)/python -m pip install --no-deps $(PACKAGES:%=--editable %)
	touch $@

.venv/dev.done: requirements-dev.txt .venv/runtime.done
	$(BIN)/python -m pip install -r requirements-dev.txt
	touch $@
