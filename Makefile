# Two commands for a newcomer: `make lab` and `make test`. Each does all its own set-up.
# PYTHON names the interpreter (3.11 or newer), VENV the environment's folder.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
QUICKSTART := notebooks/01_quickstart.ipynb
OLDER := $(patsubst tests/versions/%.txt,%,$(wildcard tests/versions/*.txt))
OLDER_TOOLS := hypothesis matplotlib nbclient pytest
OLDER_PYTHON ?= $(or $(shell python3.11 -c 'import sys; print(sys.executable)' 2>/dev/null),$(PYTHON))
NBVAL := --nbval --nbval-sanitize-with notebooks/sanitize.cfg

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help lab demo test test-fast check check-views format format-views views bench pictures weights browser node servers older labextension dist clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

lab: $(VENV)/.lab weights ## Set up, check the quickstart once, open JupyterLab on it
	@VENV="$(VENV)" sh scripts/lab.sh $(QUICKSTART)

demo: $(VENV)/.lab weights ## Run the main job in the terminal and show the conversation
	@$(BIN)/agent-magics demo

test: node check older weights browser servers ## Set up and run every test: linters, browser, notebooks, package
	$(PYTEST) -m browser tests/browser
	$(PYTEST) -m "not browser" $(NBVAL) --req-report notebooks tests

test-fast: $(VENV)/.test ## The daily loop: under a minute
	$(PYTEST) -m "not slow and not browser and not embedded" --hypothesis-profile=fast tests

check: $(VENV)/.test ## Run every linter, and the tests of views; CI runs the same
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@sh scripts/with_node.sh $(MAKE) --no-print-directory check-views

check-views: node_modules/.done
	@$(JLPM) check
	@$(JLPM) test >node_modules/.log 2>&1 || { cat node_modules/.log; exit 1; }

format: $(VENV)/.test ## Let ruff, eslint and prettier mend what they can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@sh scripts/with_node.sh $(MAKE) --no-print-directory format-views

format-views: node_modules/.done
	@$(JLPM) format

views: node_modules/.done ## Bundle the views anew after a change in widgets/src
	@$(JLPM) build

bench: $(VENV)/.test ## Measure what it costs
	$(BIN)/python -m benchmarks

pictures: browser ## Take the documentation's pictures anew, in both themes
	$(BIN)/python -m scripts.pictures

dist: $(VENV)/.test ## Build the wheel and the sdist
	$(BIN)/python -m hatchling build

weights: | $(VENV)/.package ## Fetch the embedded model once (93 MB)
	@$(BIN)/agent-magics model pull

browser: $(VENV)/.test ## Find Chromium, or install it where that is ours to do
	@sh scripts/system.sh Chromium chromium chromium chromium-browser google-chrome

node: ## Find Node, or install it where that is ours to do
	@sh scripts/system.sh Node nodejs node

servers: $(VENV)-servers/.done ## Install what tests talk to and nobody here wrote; tests are skipped without

older: $(OLDER:%=$(VENV)-%/.done) ## Test what leans on IPython's and ipykernel's inside with older versions
	@for each in $(OLDER); do test ! -f "$(VENV)-$$each/.done" || { echo "With $$each:"; \
		"$(VENV)-$$each/bin/python" -m pytest -m inside tests/notebook -W "ignore:Deprecated in traitlets:DeprecationWarning" || exit 1; }; done

labextension: node_modules/.done ## Build the JupyterLab extension anew and link it
	cd labextension && $(JLPM) build
	@mkdir -p $(VENV)/share/jupyter/labextensions
	@rm -rf $(VENV)/share/jupyter/labextensions/agent-magics-labextension
	@ln -s "$(abspath labextension/dist)" $(VENV)/share/jupyter/labextensions/agent-magics-labextension

clean: ## Remove environments, caches and builds
	rm -rf .venv* dist labextension/dist labextension/lib node_modules .yarn .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found; install one or name it: make PYTHON=/path/to/python3"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than Python 3.11; name a newer one: make PYTHON=/path/to/python3"; exit 1; }
	@"$(PYTHON)" -m venv "$(VENV)" || { rm -rf "$(VENV)"; echo "$(PYTHON) can't make an environment; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

# Each stamp says with which extras the package was last installed.
LABEXTENSION := hatch_build.py $(wildcard labextension/src/* labextension/*.json)
$(VENV)/.lab: $(BIN)/python pyproject.toml $(LABEXTENSION)
	@echo "Installing agent-magics into $(VENV) (a minute or two the first time) ..."
	@$(BIN)/python -m pip install --quiet --editable ".[local,lab]"
	@touch $@ $(VENV)/.package

$(VENV)/.test: $(BIN)/python pyproject.toml $(LABEXTENSION)
	@echo "Installing agent-magics and its test tools into $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@ $(VENV)/.lab $(VENV)/.package

# Tools for JavaScript and TypeScript; jlpm, a yarn that comes with jupyter-builder, needs Node only.
JLPM = PATH="$(abspath $(BIN)):$$PATH" jlpm
node_modules/.done: package.json labextension/package.json yarn.lock | $(VENV)/.test
	@echo "Installing tools for JavaScript into node_modules (half a minute the first time) ..."
	@mkdir -p node_modules
	@$(JLPM) install --immutable >node_modules/.log 2>&1 || { cat node_modules/.log; exit 1; }
	@touch $@

# LiteLLM's proxy and a mock of both APIs want versions of their own; what can't be had here is no failure.
$(VENV)-servers/.done:
	@echo "Installing servers to test against into $(VENV)-servers (three minutes the first time) ..."
	@{ "$(PYTHON)" -m venv "$(VENV)-servers" && \
		"$(VENV)-servers/bin/python" -m pip install --quiet "litellm[proxy]>=1.100,<1.101" "fakellm>=0.3.5,<0.4" && \
		touch $@; } || echo "They can't be installed here; their tests are skipped."

PRINT_DEPENDENCIES := import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')

# Older versions of what notebooks run on, each set in an environment of its own; the package comes from the tree.
# Where AGENT_MAGICS_REQUIRE_OLDER is set (CI sets it) a set that can't be installed is an error.
$(OLDER:%=$(VENV)-%/.done): $(VENV)-%/.done: tests/versions/%.txt pyproject.toml
	@echo "Installing $* into $(VENV)-$* (half a minute the first time) ..."
	@{ "$(OLDER_PYTHON)" -m venv "$(VENV)-$*" && \
		"$(VENV)-$*/bin/python" -c "$(PRINT_DEPENDENCIES)" > "$(VENV)-$*/dependencies.txt" && \
		"$(VENV)-$*/bin/python" -m pip install --quiet --constraint $< \
			--requirement "$(VENV)-$*/dependencies.txt" $(OLDER_TOOLS) && \
		touch $@; } || { echo "$* can't be installed here; its tests are left out."; \
		test -z "$$AGENT_MAGICS_REQUIRE_OLDER"; }

$(VENV)/.package: | $(VENV)/.lab
	@touch $@
