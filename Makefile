# The two commands a newcomer needs are `make run` and `make test`; `make help` lists the rest.
.DEFAULT_GOAL := help
SHELL := /bin/bash
CARGO ?= cargo
DATA ?= data
LISTEN ?= 127.0.0.1:8080
DOMAIN ?= localhost:8080
# Where the conformance programs of the protocol lie; they are not part of this repository.
CONFORMANCE ?= ../shared/conformance

.PHONY: help setup setup-test build run demo demo-federation test nightly fmt lint doc verify bench conformance clean

help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | column -t -s "$$(printf '\t')"

setup: ## Installs what a build needs (apt) and says so
	@scripts/setup

setup-test: ## Installs what the tests need on top
	@scripts/setup test

build: setup ## Builds the hub and the client, release profile
	$(CARGO) build --release --locked -p aip-hub -p aip-client

run: build ## Starts a hub for trying out, with the embedded stores, and prints what to try
	@scripts/run --data "$(DATA)" --listen "$(LISTEN)" --domain "$(DOMAIN)"

demo: setup ## Plays the whole story against a real hub and prints a transcript
	$(CARGO) build --locked -p aip-hub -p aip-client -p aip-tests --bins
	@target/debug/aip-demo

demo-federation: setup ## Plays mail between three real hubs and prints a transcript
	$(CARGO) build --locked -p aip-hub -p aip-client -p aip-tests --bins
	@target/debug/aip-demo-federation

test: setup-test ## Runs every test
	$(CARGO) build --workspace --bins --locked
	$(CARGO) test --workspace --locked --no-fail-fast

nightly: setup-test ## The fault suites, twenty times as long as in `make test`; see docs/FAULTS.md
	$(CARGO) build --workspace --bins --locked
	AIP_FAULT_ROUNDS=$${AIP_FAULT_ROUNDS:-100} $(CARGO) test --locked -p aip-tests --test it faults -- --nocapture

fmt: ## Formats the code
	$(CARGO) fmt --all

lint: setup ## Format check, clippy and documentation, with warnings as errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

doc: setup ## Builds the code's documentation
	$(CARGO) doc --workspace --no-deps --locked

verify: lint test ## What the continuous integration runs

bench: setup-test ## Measures the hub against yardsticks in the same run; see docs/PERFORMANCE.md
	$(CARGO) build --release --locked -p aip-hub -p aip-bench
	target/release/aip-bench

conformance: build ## Runs the independent conformance checks, where they are present
	@scripts/conformance "$(CONFORMANCE)"

clean: ## Removes what was built
	$(CARGO) clean
