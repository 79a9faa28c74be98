# The same few commands by hand and in continuous integration. Needs Python >= 3.11 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet
WORKERS ?= 2
# Extra arguments for the comparison with peers, for example: make bench BENCH="--seeds 3 --tasks 'furuta-pulse-*'"
BENCH ?=
# Anything: the short form of the comparison.
SHORT ?=
# Extra arguments for the scoreboard, for example: make scoreboard SCOREBOARD="twins furuta-pulse"
SCOREBOARD ?=
# Extra arguments for the attacks, for example: make torture TORTURE="--inputs 1000 --fits 10 --processes 5"
TORTURE ?=
# Extra arguments for pytest, for example: make test PYTEST="-m 'not slow' tests/geometry"
PYTEST ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-all test-processors test-versions lint format docs bench bench-own scoreboard scoreboard-quick scoreboard-baseline torture wheel-test audit pins clean

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Stamp files: each group of packages is installed once, and again when its pins change.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "shadowfit needs Python >= 3.11, found %d.%d (choose another one: make PYTHON=python3.12 ...)" % sys.version_info[:2])'
	@echo "$(VENV): an environment of its own, with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.python pyproject.toml requirements/runtime.txt requirements/build.txt
	@echo "$(VENV): what shadowfit needs, in the versions of requirements/runtime.txt (200 MB, a minute)"
	@$(PIP) -r requirements/runtime.txt -r requirements/build.txt
	@echo "$(VENV): shadowfit itself, as it stands in src/"
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.runtime requirements/test.txt requirements/dev.txt
	@echo "$(VENV): what tests and checks of style need (requirements/test.txt, dev.txt)"
	@$(PIP) -r requirements/test.txt -r requirements/dev.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.runtime requirements/docs.txt
	@echo "$(VENV): what builds the documentation (requirements/docs.txt)"
	@$(PIP) -r requirements/docs.txt
	@touch $@

$(VENV)/.bench: $(VENV)/.test requirements/bench.txt
	@echo "$(VENV): what benchmarks compare with (requirements/bench.txt)"
	@$(PIP) -r requirements/bench.txt
	@touch $@

setup: $(VENV)/.runtime  ## Create .venv with the pinned packages and shadowfit itself
	@echo "Ready: $(BIN)/shadowfit --help, or make demo"

demo: $(VENV)/.runtime  ## Run the demonstration; results in demo/
	$(BIN)/shadowfit demo --out demo

test: lint  ## Check style and types, then run all tests but the slow ones
	$(BIN)/pytest -n $(WORKERS) --dist loadfile $(PYTEST)

test-slow: $(VENV)/.test  ## Run the slow tests: planted truths, all combinations of laws, the tutorial, whole studies
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m slow $(PYTEST)

test-all: test test-slow  ## Run everything

test-processors: $(VENV)/.test  ## Run the tests of estimation and evaluation as on older and newer processors
	$(BIN)/python -m tools.processors -n $(WORKERS) --dist loadfile --quiet tests/estimation tests/evaluation $(PYTEST)

test-versions: $(VENV)/.test  ## Try the wheel with the newest releases and the lowest that it allows, on each Python here (PYTHONS="...")
	rm -rf dist
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -m tools.versions dist/shadowfit-*.whl $(PYTHONS)

lint: $(VENV)/.test  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test  ## Put the code into its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs $(VENV)/.test  ## Build the documentation into site/; a warning is an error
	$(BIN)/python -m tools.api_page
	$(BIN)/python -m tools.gallery
	$(BIN)/python -m tools.command_page
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.bench  ## Compare with peers, write docs/record/benchmarks.md (hours; SHORT=1: minutes, to .bench/short)
	$(BIN)/python -m benchmarks.peers.run $(if $(SHORT),--short --folder .bench/short) $(BENCH)
	$(BIN)/python -m benchmarks.peers.report $(if $(SHORT),--folder .bench/short --docs .bench/short)

scoreboard: $(VENV)/.bench  ## Measure everything (hours; it goes on where it was), write results and docs/scoreboard.md
	$(BIN)/python -m benchmarks.scoreboard --record $(SCOREBOARD)

scoreboard-quick: $(VENV)/.bench  ## Measure the quick form (minutes); fails where a number is worse than its baseline
	$(BIN)/python -m benchmarks.scoreboard --quick $(SCOREBOARD)

scoreboard-baseline: $(VENV)/.bench  ## Make what the quick form measures now the baseline; the commit says why
	$(BIN)/python -m benchmarks.scoreboard --quick --baseline $(SCOREBOARD)

bench-own: $(VENV)/.bench  ## Run the programs that time shadowfit alone
	@set -e; for program in benchmarks/[a-z]*.py; do echo "== $$program"; $(BIN)/python "$$program"; done

torture: $(VENV)/.test  ## Attack with damaged input and caches, kills and full disks (half an hour); report in torture.md
	$(BIN)/python -m torture $(TORTURE)

wheel-test: $(VENV)/.runtime  ## Build a wheel, install it into an empty environment, run the demonstration there
	rm -rf dist $(VENV)-wheel
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip --disable-pip-version-check install --quiet --constraint requirements/runtime.txt dist/*.whl
	cd $(VENV)-wheel && env -u PYTHONPATH bin/shadowfit demo --quiet --out demo && test -s demo/report.html
	rm -rf $(VENV)-wheel

audit:  ## Compare the pinned packages with published lists of known holes (needs the network)
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip --disable-pip-version-check install --quiet pip-audit
	$(VENV)-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement requirements/runtime.txt
	rm -rf $(VENV)-audit

pins:  ## Write requirements/*.txt anew, from the newest versions that pyproject.toml allows
	rm -rf $(VENV)-pins
	$(PYTHON) -m venv $(VENV)-pins
	$(VENV)-pins/bin/python -m pip install --quiet 'hatchling>=1.26' --editable '.[arviz,bags,dask,hdf5,mjcf,mjx,pandas,plots,usd,web,test,dev,docs,bench]'
	$(VENV)-pins/bin/python requirements/pin.py
	rm -rf $(VENV)-pins

clean:  ## Remove everything that can be made again, the environment included
	rm -rf $(VENV) $(VENV)-audit $(VENV)-pins $(VENV)-wheel .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build demo dist site
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
