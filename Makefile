# `make demo` and `make test` set up .venv in this folder first; nothing outside it is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: sim-matrix demo test check lint types layers bench soak clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

demo: $(VENV)/.ready
	$(BIN)/unisono train mlp_fashion_mnist --devices 2 --platform cpu

test: check
	$(BIN)/python -m pytest

check: lint types layers

lint: $(VENV)/.ready
	$(BIN)/ruff check .

types: $(VENV)/.ready
	$(BIN)/mypy

layers: $(VENV)/.ready
	$(BIN)/lint-imports

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py --write

soak: $(VENV)/.ready
	$(BIN)/python scripts/soak.py --write

# The simulated NPU on every supported torch that can be installed here, each in a temporary environment.
sim-matrix: $(VENV)/.ready
	$(BIN)/python tests/sim/matrix.py 2.11.0 2.12.0 2.13.0 2.14.1

clean:
	rm -rf $(VENV) build dist
