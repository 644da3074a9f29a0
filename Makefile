# Quarterdeck: every chore is one of these. `make help` lists them.
#
# Nothing is taken from the machine but Python 3.11+, make and the package registries: the first
# run of a target makes what it needs (.venv, .cache), a later one finds it made and loses no time.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CACHE  := .cache
CLIS   := $(CACHE)/claude-cli
ACPX   := $(CACHE)/acpx
SDK    := $(CACHE)/sdk-tests
MCP_CONFORMANCE := $(CACHE)/mcp-conformance
# Most tests wait for a process more than they compute: two to a core.
CORES   := $(shell nproc 2>/dev/null || echo 2)
WORKERS ?= $(shell expr 2 \* $(CORES))
WEB    := web
DECK   := src/quarterdeck/fronts/http/deck
NPM    := PATH="$(abspath $(BIN)):$$PATH" npm --prefix $(WEB) --loglevel=error

# Where Python keeps no bytecode, every start of it compiles every module again: half of a test run.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv setup clis deck run demo screens test long quick check format types options docs bench lock sbom clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# --- what is missing gets made -------------------------------------------------------------

# An environment whose Python is gone or too old is of no use: it is made again.
FITS := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
ifneq ($(shell $(BIN)/python $(FITS) >/dev/null 2>&1 && echo yes),yes)
$(shell rm -f $(VENV)/.installed)
endif

venv:
	@$(BIN)/python $(FITS) >/dev/null 2>&1 || $(PYTHON) $(FITS) || { \
	    echo "Python 3.11 or newer is needed, and $(PYTHON) is not that." \
	         "Name another: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(BIN)/python $(FITS) >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)

$(VENV)/.installed: requirements/dev.lock pyproject.toml
	@$(MAKE) --no-print-directory venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes \
	    --no-binary claude-agent-sdk requirements/dev.lock requirements/uv.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# The real CLI, seven versions of it, as its maker publishes it. See CONTRIBUTING.md.
$(CLIS)/.installed: tools/claude-cli/package-lock.json $(VENV)/.installed
	@$(BIN)/python tools/install_clis.py $(CLIS)
	@touch $@

# A client of the Agent Client Protocol, for the tests of `quarterdeck acp`. Not with `npm ci`, which
# wants optional packages of other platforms that are not published in this version.
$(ACPX)/.installed: tools/acpx/package-lock.json $(VENV)/.installed
	@mkdir -p $(ACPX) && cp tools/acpx/package.json tools/acpx/package-lock.json $(ACPX)/
	@PATH="$(abspath $(BIN)):$$PATH" npm --prefix $(ACPX) --loglevel=error install --no-save \
	    --ignore-scripts --no-audit --no-fund
	@touch $@

# The official conformance runner of MCP, for the tests of `/mcp`.
$(MCP_CONFORMANCE)/.installed: tools/mcp-conformance/package-lock.json $(VENV)/.installed
	@mkdir -p $(MCP_CONFORMANCE) && cp tools/mcp-conformance/package.json tools/mcp-conformance/package-lock.json $(MCP_CONFORMANCE)/
	@PATH="$(abspath $(BIN)):$$PATH" npm --prefix $(MCP_CONFORMANCE) --loglevel=error ci \
	    --ignore-scripts --no-audit --no-fund
	@touch $@

# The source of the official SDK, with its examples and tests, and what some of them need.
$(SDK)/.installed: requirements/dev.lock requirements/sdk-examples.lock $(VENV)/.installed
	@$(BIN)/python tools/install_sdk_source.py >/dev/null
	@touch $@

# The web deck, built into the package. Node comes with the virtual environment.
$(WEB)/node_modules/.installed: $(WEB)/package-lock.json $(VENV)/.installed
	@$(NPM) ci --ignore-scripts --no-audit --no-fund
	@touch $@

$(DECK)/index.html: $(WEB)/node_modules/.installed $(WEB)/index.html $(WEB)/vite.config.ts \
    $(shell find $(WEB)/src $(WEB)/public -type f 2>/dev/null)
	@$(NPM) run --silent build -- --logLevel error
	@touch $@

# A browser for the browser tests, from the system's packages.
$(CACHE)/.browser: $(VENV)/.installed
	@$(BIN)/python tools/install_debian.py browser
	@mkdir -p $(CACHE) && touch $@

# What the sandbox of the CLIs is made with, from there, too. Without it some tests are skipped.
$(CACHE)/.bubblewrap: $(VENV)/.installed
	@$(BIN)/python tools/install_debian.py bubblewrap
	@mkdir -p $(CACHE) && touch $@

setup: $(VENV)/.installed ## make the virtual environment

clis: $(CLIS)/.installed ## install the real CLI versions that the tests drive

deck: $(DECK)/index.html ## build the web deck

# --- what people type ------------------------------------------------------------------------

run: setup deck ## start the hub on loopback, and say where to open it
	@$(BIN)/quarterdeck serve

demo: setup deck ## show the deck with six scripted agents: no account, no cost, nothing left behind
	@$(BIN)/quarterdeck demo

screens: setup deck $(CACHE)/.browser ## pictures of every page, card, panel and dialog, light and dark, into .cache/screens/contact-sheet*.png
	@$(BIN)/python -m tools.screens

# The tests of the web deck's modules run beside a command; both must succeed.
define beside_web_tests
mkdir -p $(CACHE); $(NPM) run --silent test >$(CACHE)/web-tests.log 2>&1 & web=$$!; \
	$(1); code=$$?; wait $$web || code=1; tail -n 200 $(CACHE)/web-tests.log; exit $$code
endef

test: setup clis deck $(ACPX)/.installed $(MCP_CONFORMANCE)/.installed $(SDK)/.installed $(CACHE)/.browser $(CACHE)/.bubblewrap ## run the whole suite; T=path or T=word runs a part
ifeq ($(T),)
	@$(call beside_web_tests,$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --grouped -m 'not long' --cov --cov-report=)
else
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal \
	    $(if $(wildcard $(firstword $(subst ::, ,$(T)))),'$(T)',-k '$(T)')
endif

long: setup clis $(SDK)/.installed ## tests that take minutes: the official SDK's own tests with our transport, and its larger examples with the hub
	@$(BIN)/python -m pytest -n $(CORES) --dist worksteal -m long

quick: setup $(WEB)/node_modules/.installed ## the inner loop: tests that start no process
	@$(call beside_web_tests,$(BIN)/python -m pytest --quick --grouped -q -n $(WORKERS) --dist worksteal)

check: setup $(WEB)/node_modules/.installed ## format, lint, strict types, import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(NPM) run --silent check

format: setup ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

types: setup $(WEB)/node_modules/.installed ## write the protocol's declarations from tools/wire, and the web deck's types from the hub's schema
	@$(BIN)/python tools/write_wire.py
	@$(BIN)/python tools/write_web_types.py

options: setup ## write the classes and pages that have a field or a row for each launch option
	@$(BIN)/python tools/write_launch_options.py

docs: setup clis ## write the pages that are generated
	@$(BIN)/python tools/draw_states.py
	@$(BIN)/python tools/draw_transitions.py
	@QUARTERDECK_WRITE_DOCS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal tests/real_cli

bench: setup deck $(CACHE)/.browser $(CACHE)/.bubblewrap ## measure, side by side with the peers; ROW=4 is one row of the table
	@$(BIN)/python -m bench $(ROW)

# --- now and then ------------------------------------------------------------------------------

lock: setup ## resolve the dependencies anew, into requirements/*.lock
	@echo uv | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
	    --no-annotate --no-header --no-emit-index-url - -o requirements/uv.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
	    --no-annotate --no-header --no-emit-index-url --all-extras --group dev pyproject.toml -o requirements/dev.lock
	@echo aiogram | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
	    --no-annotate --no-header --no-emit-index-url - -o requirements/aiogram.lock
	@printf 'asyncpg\nfakeredis\ntrio\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
	    --no-annotate --no-header --no-emit-index-url - -o requirements/sdk-examples.lock
	@echo "Now run: make sbom"

sbom: setup ## write the bill of materials from the lock files
	@$(BIN)/python tools/write_sbom.py

clean: ## remove what the other targets made
	rm -rf $(VENV) $(CACHE) $(DECK) $(WEB)/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
