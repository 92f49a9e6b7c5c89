# Everything a person or the continuous check runs. `make` alone lists the targets.
#
# Each target first brings .venv up to date (.ci/setup.py; at once when nothing changed).

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
N ?= 20000
# For two cores: of two workers each waits for processes of its tests a fifth of the time.
WORKERS ?= 3
OUTPUT ?= demo-output

# Tests start hundreds of processes; without caches each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help backends matrix demo test thorough test-shuffled walk check check-source check-fast format bench fuzz suites zoo screenshots wheel clean setup setup-demo

help:
	@echo "make demo         compile, change, run and compare a sample, open it; without a display write screenshots"
	@echo "make test         set up from nothing, then run the whole test suite"
	@echo "make thorough     the same with every case of the costly tests (tests/costly.py)"
	@echo "make test-shuffled the suite three times, each in another order; SEED=N takes an order again"
	@echo "make walk         walk through the real window by mouse and by keyboard on a display of its own"
	@echo "make check        format, lint, types, imports and the fast tests (under two minutes)"
	@echo "make bench        measure speed, side by side with the stock tool"
	@echo "make fuzz N=20000 feed damaged files to every reader, and random clicks and keys to the window"
	@echo "make matrix       what works of each backend, by commands, into docs/backends.md (hours; ARGS='--model m1')"
	@echo "make zoo          compile and run real architectures, write docs/models.md and partitions.md (hours; ZOO=NAME for some)"
	@echo "make backends     install vendors' packages in an environment of their own, run the tests marked vendor"
	@echo "make suites       run the stock wheel's own tests on this project, all of them (an hour)"
	@echo "make screenshots  write the screenshots in docs/images"
	@echo "make wheel        build the wheel into dist/"
	@echo "make format       let ruff format and sort the sources"
	@echo "make clean        remove the environment and everything that was built"

setup:
	@$(PYTHON) .ci/setup.py --venv $(VENV) --extras interop,dev

setup-demo:
	@$(PYTHON) .ci/setup.py --venv $(VENV) --extras interop

demo: setup-demo
	@$(BIN)/python -m devtools_app.demo --output $(OUTPUT)

test: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -p no:randomly

thorough: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -p no:randomly --all-cases

test-shuffled: setup  # pytest-randomly prints the seed of the order; SEED=N takes it again
	for turn in 1 2 3; do $(BIN)/python -m pytest -n $(WORKERS) $(if $(SEED),--randomly-seed=$(SEED)) || exit 1; done

walk: setup  # WALK=keys or WALK="mouse --size 1280x720" for one of them
	$(BIN)/python -m tests.walk $(WALK)

check: setup  # both halves at a time: pyright is one process, and so is the end of the tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-source check-fast

check-source:
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

check-fast:
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -p no:randomly \
	  -m "not slow and not interop" --hypothesis-profile=quick

format: setup
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup
	$(BIN)/python -m tests.bench

fuzz: setup
	$(BIN)/python -m tests.fuzz --cases $(N)
	$(BIN)/python -m tests.fuzz.payloads --cases $(N)
	$(BIN)/python -m tests.fuzz.window

matrix: setup
	$(BIN)/python -m tests.backends_matrix $(ARGS)

zoo:
	@$(PYTHON) .ci/setup.py --venv $(VENV) --extras interop,dev,zoo
	$(BIN)/python -m tests.zoo $(ZOO)

# Requirements of vendors exclude the pinned ones, hence an environment apart.
VENDOR_PACKAGES ?= 'openvino>=2025.1,<2026' nncf==3.1.0
backends: setup
	@$(PYTHON) .ci/setup.py --venv $(VENV)-backends --extras interop,dev
	$(VENV)-backends/bin/python -m pip install --disable-pip-version-check $(VENDOR_PACKAGES)
	QT_QPA_PLATFORM=offscreen $(VENV)-backends/bin/python -m pytest -p no:randomly -m vendor tests/runtime tests/inspector tests/compiler tests/app

suites: setup
	$(BIN)/python -m tests.suites --workers $(WORKERS)

screenshots: setup
	$(BIN)/python -m devtools_app.screenshots docs/images

wheel: setup
	$(BIN)/hatchling build -t wheel

clean:
	rm -rf $(VENV) build dist demo-output walk-output zoo-output .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
