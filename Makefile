# make demo: set up, then the whole job on a real model.   make test: set up, then every test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Image support is built for nothing here; a build for CUDA adds -DGGML_CUDA=on.
export CMAKE_ARGS ?= -DLLAVA_BUILD=OFF

.PHONY: demo test lint setup clean

demo: $(VENV)/.run
	$(BIN)/edge-agentic demo

test: $(VENV)/.test lint
	$(BIN)/python -m pytest

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: $(VENV)/.run

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "error: no $(PYTHON); install python3 (3.10 or newer)"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "error: $(PYTHON) is older than 3.10; use make PYTHON=python3.11"; exit 2; }
	@command -v g++ >/dev/null || { echo "error: no C++ compiler for llama.cpp; apt install g++"; exit 2; }
	$(PYTHON) -m venv $(VENV) || { echo "error: no venv module; apt install python3-venv"; exit 2; }

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	@echo "Setting up; llama.cpp is compiled the first time: 5 to 15 minutes."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[llamacpp,sandbox]'
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[llamacpp,sandbox,test]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
