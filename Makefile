# The front door. Everything behind it is plain CMake, ctest and pytest; see CONTRIBUTING.md.
.PHONY: build demo test check bench fuzz format lint docs site clean help

BUILD := build
JOBS ?= $(shell nproc)

build: ## build build/myxtts, the program alone
	@tools/bootstrap
	@[ -e $(BUILD)/build.ninja ] || cmake --preset release
	@cmake --build $(BUILD) -j $(JOBS) --target myxtts

demo: build ## a voice is trained in minutes and speaks; a page plays it
	@tools/demo

test: build ## build the tests and run them: units, the Python package and the program
	@tools/test

check: build ## lint, the unit tests under the sanitizers, a short fuzzing
	@tools/check

bench: build ## measure the README's claims on this machine
	@tools/bench

fuzz: ## feed every parser what nobody would write, a minute each
	@tools/bootstrap --fuzz
	@tools/fuzz

format: ## rewrite the sources in the project's layout
	@tools/lint --fix

lint: build ## layout, static checks, layers
	@tools/lint

docs: build ## rewrite the generated parts of docs/: references from the program, plots from the results
	@tools/make_reference
	@bench/plots.py
	@tools/draw_charts

site: ## the documentation as a static site, build/site
	@[ -x $(BUILD)/site_env/bin/mkdocs ] || { python3 -m venv $(BUILD)/site_env && \
	  $(BUILD)/site_env/bin/python -m pip install -qq --disable-pip-version-check -r tools/site-requirements.txt; }
	@$(BUILD)/site_env/bin/python tools/make_site

clean: ## remove what the build made (the Python environment stays)
	rm -rf $(BUILD)

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10
