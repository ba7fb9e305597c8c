# `make help` lists what there is. Everything is installed in this folder (.venv, .cache).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= all
STUDY ?= config/config.yaml
KILLS ?= 200

export PATH := $(CURDIR)/$(BIN):$(PATH)
# uv trusts what pip trusts: the system's certificates, where there are any.
export UV_SYSTEM_CERTS := $(if $(wildcard /etc/ssl/certs/ca-certificates.crt),1,0)
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help sweep plan doctor test test-fast lab lab-test browser compilers chaos lint format schemas lock benchmarks clean

help: ## list the commands
	@echo "Castmates: co-location interference studies"
	@echo
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'
	@echo
	@echo "  After 'source $(BIN)/activate', plain 'snakemake --cores all' does the same sweep."

sweep: $(VENV)/run.stamp ## measure a study and write its report, goes on where it stopped (STUDY=config/config.yaml)
	@snakemake --cores $(CORES) --config study=$(STUDY)

plan: $(VENV)/run.stamp ## say what a study comes to, and how long it takes
	@castmates plan $(STUDY)

doctor: $(VENV)/run.stamp ## say what this machine can and cannot do
	@castmates doctor

# Real processes and clocks are at work: what fails while other machines' load is felt here is run once more by itself, and
# fails if it fails again. Both outcomes are printed.
test: $(VENV)/dev.stamp ## run all tests (builds the TensorFlow environment once); what fails is tried once more
	@python -m pytest || { test $$? -eq 1 && echo && \
	  echo "The tests above that failed are run once more, by themselves; those that pass now are unsteady:" && \
	  python -m pytest -v --last-failed --last-failed-no-failures none; }

test-fast: $(VENV)/dev.stamp ## run the tests that need no TensorFlow and take no long time
	@python -m pytest -m "not tensorflow and not slow"

lab: $(VENV)/run.stamp ## build the lab: emulated machines with RDT, in which the drivers are tested (once, 4 minutes; Debian 12)
	@python -m tests.lab.kit.build

lab-test: $(VENV)/dev.stamp ## test the drivers, and a whole sweep, in the lab's kernels (CASTMATES_LAB=all: the longest tests too)
	@CASTMATES_LAB=$${CASTMATES_LAB:-required} python -m pytest tests/lab

browser: $(VENV)/run.stamp ## fetch Chromium, in which the report's page is tested (once, without root; Debian 12)
	@python -m tests.browser.chromium

compilers: $(VENV)/run.stamp ## fetch zig, with which the kernels are checked for other processors (once, 0.4 GB)
	@python -c 'from castmates import project; from castmates.workloads import environments; \
	  print(environments.build(environments.COMPILER, project.ENVIRONMENTS, project.cache()))'

chaos: $(VENV)/dev.stamp ## kill the parts of a sweep at KILLS=200 random moments: nothing may be left, nothing lost
	@CASTMATES_CHAOS_KILLS=$(KILLS) python -m pytest tests/chaos

lint: $(VENV)/dev.stamp ## check style, types, workflow and schemas
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	snakemake --lint
	castmates schemas --check

format: $(VENV)/dev.stamp ## put the code into its style
	ruff check --fix --quiet . || true
	ruff format .
	snakefmt Snakefile workflow

schemas: $(VENV)/run.stamp ## write the JSON Schemas of the YAML files
	castmates schemas

lock: $(VENV)/run.stamp ## resolve all dependencies anew
	scripts/lock.sh

benchmarks: $(VENV)/dev.stamp ## measure what our own parts cost and gain, into docs/benchmarks.md (50 minutes on a quiet machine)
	python -m benchmarks.all --output docs/benchmarks.md

clean: ## remove the environments (results stay)
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "castmates needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1): install one and run 'make PYTHON=python3.12 …'." >&2; exit 1; }
	@echo "Creating the environment in $(VENV) (about 760 MB, a minute or two)"
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make virtual environments: on Debian and Ubuntu 'apt-get install python3-venv' adds it." >&2; exit 1; }
	@touch $@

$(VENV)/run.stamp: $(VENV)/python.stamp envs/castmates.lock pyproject.toml
	$(PIP) install --require-hashes -r envs/castmates.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp envs/dev.lock
	$(BIN)/uv pip install --python $(BIN)/python --require-hashes -r envs/dev.lock
	@touch $@
