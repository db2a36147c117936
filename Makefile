# Everything runs in .venv, which `make setup` makes; nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WEIGHTS := $(wildcard weights/*.* weights/*/*.py weights/src/*/*.py)
PAGES := src/wsabie/server/static/index.html
SEEDS ?= 1,2,3
MODULES := web/node_modules/.package-lock.json
NPM := $(shell command -v npm)
# Nothing is installed but what locks/ names, and only with the content that it had then. No build looks for more.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
LOCKED := $(INSTALL) --require-hashes --requirement
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
  --no-emit-package wsabie-lite0 --custom-compile-command "make lock" $(if $(NEWEST),--upgrade)
TYPES := $(BIN)/python scripts/print_openapi.py | npm --prefix web run --silent types --
export PATH := $(PATH):$(CURDIR)/$(BIN)

.PHONY: help setup web types demo test databases soak fuzz fuzz-files faults lint .lint-types .lint-package .lint-pages bench docs lock dist audit clean

help:  ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## make .venv with the package and the tools that tests need, and build the pages
	@$(MAKE) --silent --no-print-directory --jobs=$(if $(NPM),2,1) $(VENV)/.developer $(PAGES)

web: $(PAGES)  ## build the pages of the service

$(STAMP): pyproject.toml locks/package.txt $(WEIGHTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "wsabie needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "this Python cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing wsabie into $(VENV) ..."
	@$(LOCKED) locks/package.txt
	@$(INSTALL) --no-build-isolation ./weights --editable .
	@touch $@

$(VENV)/.developer: $(STAMP) locks/developer.txt
	@$(LOCKED) locks/developer.txt
	@found=$$($(BIN)/python -m pip check --disable-pip-version-check) || { echo "$$found"; echo "locks/ does not fit pyproject.toml; run: make lock"; exit 1; }
	@touch $@

$(VENV)/.tools: $(STAMP) locks/tools.txt
	@$(LOCKED) locks/tools.txt
	@touch $@

$(MODULES): web/package.json web/package-lock.json | $(if $(NPM),,$(STAMP))
	@command -v npm >/dev/null || { echo "no Node here: installing it into $(VENV) ..."; $(LOCKED) locks/node.txt; }
	@cd web && npm ci --loglevel=error
	@touch $@

$(PAGES): $(MODULES) $(wildcard web/*.html web/*.ts web/*.json) $(shell find web/src web/public -type f)
	@cd web && npm run --silent build -- --logLevel warn
	@touch $@

types: $(VENV)/.developer $(MODULES)  ## write the types of the pages (web/src/api/types.ts) from the schemas of the service
	@$(TYPES)

demo: $(STAMP)  ## train on the bundled pictures, compare with baselines, write a report
	@$(BIN)/wsabie demo

lint: setup  ## style, types, import rules, names and sizes
	@$(MAKE) --silent --no-print-directory --jobs=3 .lint-types .lint-package .lint-pages

.lint-types:
	@$(BIN)/mypy

.lint-package:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/check_code.py

.lint-pages:
	@cd web && npm run --silent lint
	@$(TYPES) --check >/dev/null || { echo "web/src/api/types.ts is not what the schemas of the service give; run: make types"; exit 1; }

test: lint  ## lint and the whole test suite
	@cd web && npm run --silent test
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

databases: setup  ## the tests of collections and services, each on SQLite and on PostgreSQL
	@WSABIE_TEST_EACH_DATABASE=1 scripts/with-postgres $(BIN)/python -m pytest -n auto --dist loadfile tests/collection tests/server tests/cli/collection tests/faults

soak: setup  ## kill a service 50 times on each database, and see that nothing is lost (KILLS=50)
	@WSABIE_TEST_EACH_DATABASE=1 WSABIE_SOAK_KILLS=$(or $(KILLS),50) scripts/with-postgres $(BIN)/python -m pytest -s tests/faults/test_service_kills.py

fuzz: setup  ## 100 made-up requests to each route of a service, by three seeds, on each database (EXAMPLES=100 SEEDS=1,2,3)
	@WSABIE_TEST_EACH_DATABASE=1 WSABIE_FUZZ_EXAMPLES=$(or $(EXAMPLES),100) WSABIE_FUZZ_SEEDS=$(SEEDS) scripts/with-postgres $(BIN)/python -m pytest -s tests/server/test_fuzz.py

fuzz-files: setup  ## 2,000 made-up files through the readers and through collections (FILES=2000)
	@WSABIE_FUZZ_FILES=$(or $(FILES),2000) $(BIN)/python -m pytest -s tests/io/test_made_up_files.py

faults: setup  ## kill, fill, change and slow down all that writes and reads, and see that nothing is lost (half an hour; SEED=0)
	@$(BIN)/python -m benchmarks.faults --seed $(or $(SEED),0)

bench: setup  ## the measurements that the docs quote (minutes; `benchmarks/README.md`)
	@$(BIN)/python -m benchmarks

docs: setup  ## build the documentation into docs/_build
	@$(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	@echo docs/_build/html/index.html

lock: $(VENV)/.tools  ## choose versions again after a change of pyproject.toml; NEWEST=1: the newest of all
	@$(COMPILE) pyproject.toml locks/build.in --extra photos --extra dev --extra docs --output-file locks/developer.txt
	@$(COMPILE) pyproject.toml locks/build.in --extra photos --constraint locks/developer.txt --output-file locks/package.txt
	@$(COMPILE) locks/tools.in --constraint locks/developer.txt --output-file locks/tools.txt
	@$(COMPILE) locks/node.in --output-file locks/node.txt

dist: $(VENV)/.tools $(PAGES)  ## the source distribution and the wheels, in dist/: built twice, compared, checked, installed and tried
	@scripts/build-distributions

audit: $(VENV)/.tools  ## known holes in what is installed; ADVISORIES="FILE ...": by exports of osv.dev, without a network
	@$(BIN)/python scripts/audit.py $(ADVISORIES)

clean:  ## remove the environment and everything built
	rm -rf $(VENV) web/node_modules $(dir $(PAGES)) build dist docs/_build wsabie-demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
