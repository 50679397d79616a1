# `make demo` and `make test` need nothing but Python 3.11+, make and a C compiler.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
# processes of the tests: one more than two cores, as many tests wait for other processes
WORKERS ?= 3
ROUNDS ?= 1

export HF_HUB_OFFLINE ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-rest test-all fuzz check lint types imports wheel docs docs-serve bench coverage live scoreboard lock release clean

help: ## show this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Posology needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[embedded]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed ## set up, then answer sample questions
	$(BIN)/posology demo

# compiled modules are kept: the tests start some hundred processes, each of which would compile all that it imports
test test-rest test-all fuzz coverage: export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# with AGAIN=1, tests that failed run once more, alone: those that fail again fail the run, the others are named as
# flaky, to be mended. Random examples that failed are repeated as they were.
LAST := --last-failed --last-failed-no-failures none
ONCE_MORE := $(if $(AGAIN),|| { test $$? = 1 && $(BIN)/python -m pytest $(LAST) --verbose -m "not exhaustive"; })

test: $(VENV)/.installed-dev ## set up, then run the tests: minutes
	$(PYTEST) -m "not slow and not exhaustive" $(ONCE_MORE)

test-rest: $(VENV)/.installed-dev ## what `make test` leaves out
	$(PYTEST) -m "slow and not exhaustive" $(ONCE_MORE)

test-all: $(VENV)/.installed-dev ## both
	$(PYTEST) -m "not exhaustive"

fuzz: $(VENV)/.installed-dev ## the property tests with 20 times as many, new examples; ROUNDS times over (1)
	for round in $$(seq $(ROUNDS)); do $(PYTEST) -m "hypothesis or exhaustive" \
	  --hypothesis-profile fuzz --timeout 3600 || exit 1; done

coverage: $(VENV)/.installed-dev ## all tests, with line and branch coverage
	$(PYTEST) -m "not exhaustive" --cov --cov-report=term

check: lint types imports wheel docs ## ruff, mypy, import-linter, the built wheel, the documentation

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

wheel: $(VENV)/.installed-dev ## build the wheel and run the smoke tests on it, sources gone
	$(BIN)/python tests/wheel.py

docs: $(VENV)/.installed-dev ## build the documentation's site into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.installed-dev ## show the documentation at http://127.0.0.1:8001, as it is edited
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

bench: $(VENV)/.installed-dev ## experiments without a key; draws docs/figures; ONLY="papers policy" chooses, INDEX=DIR adds some
	$(BIN)/python -m evals --data $(DATA) $(if $(INDEX),--index $(INDEX)) $(ONLY)

live: $(VENV)/.installed-dev ## five questions to a real model: MODEL=gguf:FILE or llamacpp:NAME
	$(BIN)/python -m evals.live smoke --model "$(MODEL)"

scoreboard: $(VENV)/.installed-dev ## questions of known answers to a model, beside a plain RAG: MODEL=openai:NAME, COUNT=60 of a set
	$(BIN)/python -m evals.live scoreboard --data $(DATA) --model "$(MODEL)" --count $(or $(COUNT),60) $(if $(URL),--url $(URL))

lock: $(VENV)/.installed-dev ## rewrite constraints.txt from this environment
	$(BIN)/python -m pip freeze --exclude-editable | sed -E 's/\+cpu$$//; /@/d' > constraints.txt

release: $(VENV)/.installed-dev ## wheel and sdist with a bill of materials and sums in dist; licences and advisories checked
	$(BIN)/python -m deploy.release.build

clean: ## remove the environment and what the demo left
	rm -rf $(VENV) .posology dist build
