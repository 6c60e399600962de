# The front door. Everything behind it is plain CMake, ctest and pytest; see CONTRIBUTING.md.
.PHONY: build demo test bench format lint clean help

BUILD := build
JOBS ?= $(shell nproc)

build: ## build build/myxtts
	@tools/bootstrap
	@[ -e $(BUILD)/build.ninja ] || cmake --preset release
	@cmake --build $(BUILD) -j $(JOBS)

demo: build ## make a small corpus, train a voice on it for some minutes and let it speak
	@tools/demo

test: build ## every test: units, the binary, sanitizers, lint
	@tools/test

bench: build ## the figures behind the README's claims, on this machine
	@tools/bench

format: ## rewrite the sources in the project's layout
	@tools/lint --fix

lint: build ## layout, static checks, layers
	@tools/lint

clean: ## remove what the build made (the Python environment stays)
	rm -rf $(BUILD)

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10
