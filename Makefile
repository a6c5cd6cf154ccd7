# Two targets do all the set-up on a fresh Debian or Ubuntu machine with Rust: demo and test.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CORDON := target/release/cordon
SCRIPTS := scripts/setup scripts/as-root scripts/as-rootless scripts/demo scripts/bench-start \
           scripts/bench-proxy scripts/bench-instructions scripts/clean-containers scripts/fuzz .ci/run \
           crates/engine/src/build/enter.sh crates/engine/src/build/runtime.sh
ROOTLESS_PACKAGES := cordon-image
FUZZ_SECONDS ?= 600

# The tests that drive the program itself, and the benchmarks, use what people would run.
export CORDON_BIN ?= $(CURDIR)/$(CORDON)
# The Python clients that judge some of them; scripts/setup makes this environment.
export CORDON_TEST_PYTHON ?= $(CURDIR)/target/venv/bin/python

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## show what Cordon does; installs podman if it is missing
	@scripts/setup demo
	@$(MAKE) release
	@scripts/demo

.PHONY: test
test: ## everything: lints, unit tests, podman, rootless podman and docker end to end
	@scripts/setup test
	@$(MAKE) check release
	cargo test --workspace --locked --no-fail-fast
	@$(MAKE) test-rootless

# In-process tests of what drives podman, once more as a user without privileges.
.PHONY: test-rootless
test-rootless:
	@for package in $(ROOTLESS_PACKAGES); do \
	  program=$$(cargo test --locked --no-run --package "$$package" --test it 2>&1 | sed -n 's/.*Executable.*(\(.*\))/\1/p'); \
	  echo "rootless: $$package"; \
	  scripts/as-rootless "$$(realpath "$$program")" podman; \
	done

.PHONY: check
check: ## formatting, clippy, shellcheck and documentation
	cargo fmt --all --check
	rustfmt --edition 2024 --check scripts/images/*.rs
	cargo clippy --workspace --all-targets --locked -- -D warnings
	shellcheck -x $(SCRIPTS)
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked

# The proxy's program goes into an image of its own, so it is linked statically. With a target named, the flag
# does not reach build scripts and macros.
TARGET := $(shell rustc -vV | sed -n 's/^host: //p')
STATIC := CARGO_TARGET_$(shell echo $(TARGET) | tr a-z- A-Z_)_RUSTFLAGS='-C target-feature=+crt-static'
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

.PHONY: release
release: ## build target/release/cordon and cordon-proxy
	cargo build --release --locked --package cordon-cli
	$(STATIC) cargo build --release --locked --package cordon-proxy --bin cordon-proxy --target $(TARGET)
	@install -C -m 0755 $(TARGET_DIR)/$(TARGET)/release/cordon-proxy $(TARGET_DIR)/release/cordon-proxy

.PHONY: bench-start
bench-start: ## how long a run takes to start, beside plain podman and docker
	@scripts/setup test
	@$(MAKE) release
	@scripts/bench-start

.PHONY: bench-proxy
bench-proxy: ## throughput and delay of the proxy, beside mitmproxy and no proxy at all
	@scripts/bench-proxy

.PHONY: bench-instructions
bench-instructions: ## instructions of the request path; fails where they grow by a tenth
	@scripts/setup test
	@scripts/bench-instructions

.PHONY: bench-events
bench-events: ## what an event costs in a reply of 10,000 and of 100,000; fails where it grows
	@cargo run --quiet --release --locked --package bench -- events

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZ_SECONDS each
	@scripts/setup test
	@scripts/fuzz $(FUZZ_SECONDS)

.PHONY: clean-containers
clean-containers: ## remove every container of Cordon's and end the docker daemon that test started
	@scripts/clean-containers
	@scripts/setup stop
