# Three commands: `make demo` shows the main job, `make test` checks everything, and `make soak` goes on
# checking what must never be wrong for an hour or two (docs/reliability.md).
# All start from a bare machine (Python 3.11+ and make) and can be repeated.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test suite coverage soak bench docs dist smoke check install format clean

# Reinstalled only when a dependency file changed: the stamp is older than one of them. Modules are compiled
# when they are first imported, most never: those that every command needs, here. A dot is a sign of life.
install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo 'Installing into $(VENV), once: one to three minutes.'
	@while sleep 1 && kill -0 $$$$ 2> /dev/null; do printf .; done & \
	{ test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); } && \
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[learners,dev]' && \
	echo ' installed; loading for the first time' && \
	$(BIN)/python -c 'import cli.experiments.compare, cli.report.writing, learners.experiments.variants' && \
	touch $@

# Teams with a proof, then a federation compared over seeds, then a report. It replaces what it wrote before.
DEMO := runs/demo
demo: $(STAMP)
	@mkdir -p $(DEMO)
	@printf '\n--- 1. The best coalitions, with a proof\n'
	$(BIN)/coalitions solve examples/data/three_domains.csv --output $(DEMO)/solution.json --certificate $(DEMO)/proof.json
	$(BIN)/coalitions verify examples/data/three_domains.csv $(DEMO)/solution.json --certificate $(DEMO)/proof.json
	$(BIN)/coalitions explain examples/data/three_domains.csv $(DEMO)/solution.json mnist-5
	@printf '\n--- 2. Ten clients in five groups: alone (local), one model for all (fedavg), or with similar clients (pfedsv)?\n'
	$(BIN)/coalitions compare --dataset digits-domains --algorithms local,fedavg,pfedsv --rounds 8 --seeds 0,1,2 --jobs 2 --out $(DEMO)/compare --force
	@printf '\n--- 3. One page about all runs\n'
	$(BIN)/coalitions report $(DEMO)/compare

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Hundreds of processes are started: without bytecode, each would compile our modules once more.
# Types are checked on what the tests leave idle.
test: export PYTHONDONTWRITEBYTECODE =
test: $(STAMP)
	$(MAKE) --no-print-directory --jobs 2 check suite

suite: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

# The same tests, traced: a third slower, so not in `make test`. It fails below the floor in pyproject.toml.
coverage: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal --cov --cov-report=term

# Counts are printed at the end. COALITIONS_SOAK=0.1 makes a tenth of it; -k 0-500 picks a part.
soak: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/reliability -v -s

# `make bench` lists the programs and runs the quick ones; `make bench NAME=shapley ARGS=--quick` runs one.
bench: $(STAMP)
ifdef NAME
	$(BIN)/python -m benchmarks.$(NAME) $(ARGS)
else
	@echo 'make bench NAME=… [ARGS=…], one of:'
	@for file in $$(grep -l __main__ benchmarks/*.py); do \
	  printf '  %-11s %s\n' $$(basename $$file .py) "$$(head -n 1 $$file | tr -d '"')"; done
	$(BIN)/python -m benchmarks.optimisers small
	$(BIN)/python -m benchmarks.traffic
endif

# The site, from docs/ and docstrings, in site/; a warning is an error. Open site/index.html.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# A wheel and a source archive in dist/, of what is there now: build/ would keep modules that are gone.
dist: $(STAMP)
	rm -rf build dist
	$(BIN)/python -c "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')" > /dev/null
	rm -rf build
	ls -l dist

# Installs both into clean environments (base, ilp, learners) and tries them; pip fetches what they need.
smoke: dist
	$(BIN)/python tests/smoke.py

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist site *.egg-info .coverage .coverage.*
