# `make help` lists the commands. Everything is installed in this folder (.venv, .cache).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= all
STUDY ?= config/config.yaml
LAUNCHES ?=
TIMES ?= 50
PYTEST = python -m pytest
# What is asked for fails if it cannot run here.
REQUIRED = CASTMATES_LAB=$${CASTMATES_LAB:-required} CASTMATES_BROWSER=$${CASTMATES_BROWSER:-required}

export PATH := $(CURDIR)/$(BIN):$(PATH)
# uv trusts what pip trusts: the system's certificates, where there are any.
export UV_SYSTEM_CERTS := $(if $(wildcard /etc/ssl/certs/ca-certificates.crt),1,0)

.DEFAULT_GOAL := help
# Options of a sweep besides its file.
MORE = $(if $(LAUNCHES),'launches=$(LAUNCHES)')
# Where the jobs run: profiles/PROFILE; on this machine, on all CORES, without one.
PROFILE ?=
WHERE = $(if $(PROFILE),--workflow-profile profiles/$(PROFILE),--cores $(CORES))

.PHONY: help demo sweep plan doctor dev check test test-all test-nightly soak mutants figures-check lab lab-test test-slurm \
  browser twins compilers lint format schemas lock wheel docs examples benchmarks clean

help: ## list the commands
	@echo "Castmates: co-location interference studies"
	@echo
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'
	@echo
	@echo "  After 'source $(BIN)/activate', plain 'snakemake --cores all' does the same sweep."

demo: $(VENV)/run.stamp ## a first report in two minutes: cache partitions on a simulated processor
	@castmates demo -j $(CORES)

sweep: $(VENV)/$(or $(filter slurm kubernetes,$(PROFILE)),run).stamp ## measure a study and write its report, goes on where it stopped (STUDY=…; LAUNCHES=12: more launches; PROFILE=slurm: on a cluster)
	@snakemake $(WHERE) --config study=$(STUDY) $(MORE)

plan: $(VENV)/run.stamp ## show what a study will measure, and how long it takes
	@castmates plan $(STUDY)

doctor: $(VENV)/run.stamp ## show what this machine can and cannot measure
	@castmates doctor

# Times are for two quiet cores, after the set-up. tests/README.md explains what belongs where.
dev: $(VENV)/dev.stamp ## set up the tools for contributors, and git's hooks (1 minute)
	@if git rev-parse --git-dir >/dev/null 2>&1; then pre-commit install --install-hooks; fi

check: $(VENV)/dev.stamp $(VENV)/docs.stamp ## while you work: format, lint, types and the pure tests (7 minutes)
	@python -m tests.tiers check

test: $(VENV)/dev.stamp ## before a change is sent: pure tests, real processes, the most important sweeps (20 minutes)
	@python -c 'from castmates.workloads.native import build; raise SystemExit(not build.find_compiler())' || $(MAKE) compilers
	@python -m tests.tiers test

# Required tests fail if they cannot run here; CASTMATES_LAB=wanted skips them instead, with the reason.
test-all: export CASTMATES_NEEDS ?= twins,stress-ng,servers
test-all: $(VENV)/dev.stamp $(VENV)/docs.stamp ## before each merge: also all sweeps, TensorFlow, browser, chaos and the lab (55 minutes)
	@$(REQUIRED) python -m tests.tiers all

test-nightly: $(VENV)/dev.stamp ## all other tests, with a new seed: all of the lab, 200 kills, all jobs, documented figures (3 hours)
	@CASTMATES_LAB=$${CASTMATES_LAB:-all} CASTMATES_BROWSER=$${CASTMATES_BROWSER:-required} \
	  CASTMATES_CHAOS_KILLS=$${CASTMATES_CHAOS_KILLS:-200} CASTMATES_ALL_JOBS=1 python -m tests.tiers nightly

soak: $(VENV)/dev.stamp ## run a test with real processes 50 times, under load (TEST=tests/real/…)
	@TIMES=$(TIMES) scripts/soak.sh $(TEST)

mutants: $(VENV)/dev.stamp ## 300 small faults in all rooms: fails if the pure tests miss one that they found before (25 minutes)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r tests/mutation/environment.lock
	@python -m tests.mutation run --output .cache/mutation/after.json --mutants tests/mutation/before.json \
	  && python -m tests.mutation compare tests/mutation/before.json .cache/mutation/after.json

figures-check: $(VENV)/dev.stamp ## compare the simulated figures in docs/ with the output of their tests (nightly; minutes)
	@$(PYTEST) -n auto tests/unit/test_documented_figures.py

lab: $(VENV)/run.stamp ## build the lab: emulated machines with RDT, for tests of the drivers (once, 4 minutes; Debian 12)
	@python -m tests.lab.kit.build

lab-test: $(VENV)/dev.stamp ## test the drivers, and a whole sweep, in the lab's kernels (CASTMATES_LAB=all: including the longest tests)
	@CASTMATES_LAB=$${CASTMATES_LAB:-required} python -m pytest tests/lab

test-slurm: $(VENV)/dev.stamp $(VENV)/slurm.stamp ## send sweeps through a real Slurm of two virtual nodes (as root; Debian 12; 10 minutes)
	@CASTMATES_NEEDS=slurm,root,unshare,two-cpus $(PYTEST) tests/slurm

browser: $(VENV)/run.stamp ## fetch Chromium, for tests of the report's page (once, without root; Debian 12)
	@python -m tests.browser.chromium

twins: $(VENV)/run.stamp ## fetch the programs of the twins, for their tests (once, without root; Debian 12)
	@python -m tests.runner.twin_packages

compilers: $(VENV)/run.stamp ## fetch zig, to check the kernels for other processors (once, 0.4 GB)
	@python -c 'from castmates import files, project; from castmates.workloads import environments; \
	  print(environments.build(environments.COMPILER, project.ENVIRONMENTS, files.cache_folder()))'

lint: $(VENV)/dev.stamp docs ## check style, types, workflow, schemas, and the links of the documentation
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	snakemake --lint
	castmates internals schemas --check

# With --quiet, --strict would not see warnings.
docs: $(VENV)/docs.stamp ## build the documentation's site into dist/site, and check its links
	@NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict
	@echo "The documentation is in dist/site/index.html; with search: python -m http.server --directory dist/site"

examples: $(VENV)/dev.stamp ## run the examples of the tutorial and the case study, and write their output into the pages
	@python -m docs_site.examples

format: $(VENV)/dev.stamp ## format the code
	ruff check --fix --quiet . || true
	ruff format .
	snakefmt Snakefile workflow

schemas: $(VENV)/run.stamp ## write the JSON Schemas of the YAML files
	castmates internals schemas

lock: $(VENV)/run.stamp ## resolve all dependencies again
	scripts/lock.sh

wheel: $(VENV)/dev.stamp ## build the wheel into dist/, install it in an empty environment and measure with it (1 minute)
	python -m hatchling build --target wheel --directory dist
	@$(PYTEST) -q tests/workflow/test_wheel.py

benchmarks: $(VENV)/dev.stamp ## run the benchmarks that were not yet run with this code, and write docs/benchmarks.md (shows the time left; ONLY="noise scale")
	@python -m benchmarks.all $(if $(ONLY),--only $(ONLY))

clean: ## remove the environments and everything that was built (results stay)
	rm -rf $(VENV) .cache dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "castmates needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1): install one and run 'make PYTHON=python3.12 …'." >&2; exit 1; }
	@echo "Installing Castmates into $(VENV), once: about 650 MB" >&2
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make virtual environments: on Debian and Ubuntu 'apt-get install python3-venv' adds it." >&2; exit 1; }
	@touch $@

$(VENV)/run.stamp: $(VENV)/python.stamp envs/castmates.lock pyproject.toml
	@scripts/set_up.sh framework envs/castmates.lock
	@touch $@

$(VENV)/docs.stamp: $(VENV)/run.stamp envs/docs.lock
	@scripts/set_up.sh documentation envs/docs.lock
	@touch $@

$(VENV)/slurm.stamp: $(VENV)/run.stamp envs/slurm.lock
	@scripts/set_up.sh slurm envs/slurm.lock
	@touch $@

$(VENV)/kubernetes.stamp: $(VENV)/run.stamp envs/kubernetes.lock
	@scripts/set_up.sh kubernetes envs/kubernetes.lock
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp envs/dev.lock
	@scripts/set_up.sh contributors envs/dev.lock
	@touch $@
