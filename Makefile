# make chat | test | check | lint | bench | bench-million | bench-store | fuzz | faults | faults-store | conformance:
# each sets up what it needs in .venv and .peers, nothing global.
PYTHON ?= python3
# Processes that run tests in parallel. Some tests wait: one more than there are processors keeps these busy.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: chat test full check setup lint bench bench-million bench-store fuzz faults faults-store conformance clean

chat: $(VENV)/.chat
	@$(BIN)/ragchat

PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal -m

# The quick tests: those in one process, and a smoke test for each peer and each kind of process. The large peers
# are set up by `make full`; without them their smoke tests are skipped.
test: $(VENV)/.test .peers/mcp1/.done .peers/fastmcp/.done .peers/typescript/.done .peers/axe/.done
	@$(PYTEST) 'smoke or not full'

# The tests that `make test` leaves out.
full: setup
	@$(PYTEST) 'full and not smoke'

# All of it, with more examples of each property.
check: setup
	@TEST_PROFILE=full $(MAKE) --jobs=1 test full conformance lint

# All that tests need. With --jobs=8 its seven parts are set up at once; with fewer, ours would begin late.
setup: $(VENV)/.test .peers/mcp1/.done .peers/fastmcp/.done .peers/litellm/.done .peers/servers/.done .peers/typescript/.done \
       .peers/axe/.done

lint: $(VENV)/.test
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# FUZZ_MINUTES=60 runs for longer (the default is 10). Failing examples are kept in .hypothesis and tried first.
fuzz: $(VENV)/.test
	@$(BIN)/python -m tests.fuzz

# FAULTS=1000 is the number of kills; the other campaigns are in proportion.
faults: $(VENV)/.test
	@$(BIN)/python -m tests.faults

# Servers of a memory in PostgreSQL; FAULTS=10000 is ten times as long as the default.
faults-store: $(VENV)/.test
	@$(BIN)/python -m tests.faults store

conformance: $(VENV)/.test .peers/typescript/.done
	@$(BIN)/python -m tests.conformance

bench: $(VENV)/.test .peers/fastmcp/.done
	@$(BIN)/python -m tests.benchmarks

# CHUNKS=100000 makes a smaller one.
bench-million: $(VENV)/.test
	@$(BIN)/python -m tests.benchmarks million

# A memory in SQLite and in PostgreSQL; CHUNKS=1000000 makes larger ones.
bench-store: $(VENV)/.test
	@$(BIN)/python -m tests.benchmarks store

clean:
	rm -rf $(VENV) .peers

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("ragchat needs Python 3.11 or newer; try: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@# There are no wheels of wordllama for these: without a compiler, pip would show a page of errors.
	@$(PYTHON) -c 'import platform, shutil, sys; sys.exit("wordllama has to be compiled here: install a C++ compiler (apt install g++ python3-dev), or try: make PYTHON=python3.13" if not shutil.which("c++") and (sys.version_info >= (3, 14) or platform.machine() == "aarch64") else 0)'
	@echo "Setting up $(VENV) (once; about a minute) ..." >&2
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.chat: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP) --editable '.[pdf,office,code]'
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	@# Compiled when imported, here by one process: all workers would begin by compiling the same. Whether the
	@# tests can be imported is for them to say.
	@$(PIP) --no-compile --editable '.[test,lint]'
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only >/dev/null || true
	@touch $@ $(VENV)/.chat

# Programs we are tested against and measured with; each pins versions that could not share our environment.
# `nice`: setting up our own environment takes longest, and what follows waits for it.
.peers/%/.done: tests/peers/%.txt
	@echo "Setting up the test peer $* (once) ..." >&2
	@nice $(PYTHON) -m venv .peers/$*
	@# Compiled when imported: most of it never is.
	@nice .peers/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --requirement $<
	@touch $@

.peers/%/.done: tests/peers/%.npm
	@if command -v npm >/dev/null; then \
		echo "Setting up the test peer $* (once; a minute) ..." >&2; \
		mkdir -p .peers/$* && nice npm install --prefix .peers/$* --loglevel error --no-audit --no-fund \
			--no-save --no-package-lock $$(cat $<) >/dev/null && touch $@; \
	else \
		echo "There is no npm here: what needs the test peer $* is skipped." >&2; \
	fi
