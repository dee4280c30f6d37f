# `make run` starts narrows, `make test` checks everything that CI checks.

CARGO ?= cargo
FUZZ_SECONDS ?= 60
# A first build has nothing to go on from: what a next one would need is not written.
ifeq ($(wildcard target/debug),)
export CARGO_INCREMENTAL := 0
endif
DEMO := crates/narrows/tests/fixtures/acp/opencode-1.18-p-paths-sandbox/input.jsonl

.PHONY: build run demo web web-check web-test test rust-tests web-tests documents fmt lint unit doc purity types-check browser types deny soak \
  bench bench-speed bench-streaming bench-history bench-index bench-growth bench-memory bench-serve bench-page bench-acp bench-run precision \
  bless fuzz clean test-agents cluster bench-cluster

build: web
	$(CARGO) build --release --bin narrows

run: build
	target/release/narrows serve

# `narrows parse` at work on a recorded session.
demo: build
	@$(CARGO) build --release --quiet -p narrows --example transcript
	@./scripts/demo target/release/narrows target/release/examples/transcript $(DEMO)

# The page, which the binary embeds: built when something of it is newer than what was built.
web: web/dist/index.html

WEB := $(shell find web/src web/public -type f 2>/dev/null) $(wildcard web/*.html web/*.json web/*.ts) docs/narrows.d.ts

web/dist/index.html: web/node_modules/.package-lock.json $(WEB)
	cd web && npm run --silent build
	@touch $@

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-audit --no-fund --silent
	@touch $@

web-check: web/node_modules/.package-lock.json
	cd web && npm run --silent check

# The golden cases' changes are made by the core's own test.
web-test: web/node_modules/.package-lock.json
	$(CARGO) test --workspace --locked --quiet --test golden
	cd web && npm test --silent

# Tests see what users see.
unit browser: web

# The page's own tests run beside the compiler, the cluster's beside the documents: they mostly wait.
test: web
	@$(MAKE) --no-print-directory --jobs=2 rust-tests web-tests
	@$(MAKE) --no-print-directory --jobs=2 cluster documents
	@$(MAKE) --no-print-directory browser

rust-tests:
	@for part in fmt lint unit; do $(MAKE) --no-print-directory $$part || exit 1; done

documents:
	@for part in purity doc types-check; do $(MAKE) --no-print-directory $$part || exit 1; done

web-tests:
	@for part in web-check web-test; do $(MAKE) --no-print-directory $$part || exit 1; done

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# The program as the tests have built it: built for itself, half of what it needs would be built twice.
PROGRAM = $(CARGO) test --workspace --locked --quiet --no-run

# `make unit TESTS="socket follow"` runs only these programs.
unit:
	@CARGO="$(CARGO)" node scripts/unit.mjs

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

# The core does no I/O, reads no clock and pulls in nothing that would.
purity:
	@./scripts/purity

# The committed OpenAPI document and TypeScript types are what the program says.
types-check:
	@$(PROGRAM)
	@./scripts/types/make --check

types:
	@$(PROGRAM)
	@./scripts/types/make

# The page, and the example of docs/embedding.md, in a real browser.
browser:
	@$(PROGRAM)
	@./scripts/browser-test/run

# Claude Code, opencode, Gemini CLI, Codex and claude-agent-acp themselves, against a scripted model.
# `make test-agents AGENTS="claude gemini"` tries only these.
test-agents:
	@$(PROGRAM)
	@./scripts/test-agents/run $(AGENTS)

# What needs PostgreSQL and NATS, which are installed and started for it: tests of the store and of the
# server again on them, agents across nodes, and nodes while everything is killed and paused. The others
# that run on both are in `make soak`.
CLUSTER = story sessions log search records lease follow socket ingest far cluster upgrade_postgres
CLUSTER_MORE = items outline windows delete rest overview
cluster:
	@MAKEFLAGS= NARROWS_TEST_STORE=postgres ./scripts/services run target/services timeout 900 \
	  $(CARGO) test --workspace --locked --quiet $(CLUSTER:%=--test %)

bench-cluster: web
	@./scripts/services run target/bench-services $(CARGO) bench -p narrows-cli --bench cluster

# How long a server works while its memory is looked at: `make soak MINUTES=5`.
MINUTES ?= 35

soak:
	MINUTES=$(MINUTES) $(CARGO) bench -p narrows-cli --bench memory
	NARROWS_TEST_STORE=postgres ./scripts/services run target/services \
	  $(CARGO) test --workspace --locked --quiet $(CLUSTER_MORE:%=--test %)
	NARROWS_CHAOS_ROUNDS=40 NARROWS_SEED=$$(date +%s) NARROWS_TEST_STORE=postgres \
	  ./scripts/services run target/services $(CARGO) test --workspace --locked --test cluster -- --nocapture
	NARROWS_CYCLES=1000 $(CARGO) test --locked -p narrows-cli --test run -- agents_come_and_go
	NARROWS_KILLS=1000 $(CARGO) test --locked -p narrows-cli --test crash -- --nocapture kill_9
	$(CARGO) test --locked -p narrows-server --test life -- --ignored
	NARROWS_CUTS=20 $(CARGO) test --locked -p narrows-server --test cuts
	NARROWS_REQUESTS=10000 NARROWS_SEED=$$(date +%s) $(CARGO) test --locked -p narrows-server --test any_request

deny:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources

bench: bench-speed bench-streaming bench-history bench-index bench-growth bench-memory bench-serve bench-page bench-acp bench-run bench-cluster

bench-speed:
	$(CARGO) bench -p narrows --bench speed
	$(CARGO) bench -p narrows --bench stages
	$(CARGO) bench -p narrows --bench sanitize

# How much of a text is shown while it streams, in twelve scripts, beside the stream itself.
bench-streaming:
	$(CARGO) bench -p narrows --bench streaming

# Two thousand kept sessions from files, beside what others run on them.
bench-history:
	@CARGO="$(CARGO)" ./scripts/bench-history

# The same sessions read into the store, asked for there, and followed.
bench-index:
	@CARGO="$(CARGO)" ./scripts/bench-index

bench-growth:
	$(CARGO) bench -p narrows --bench growth

# Memory while sessions grow, in a tenth of the sizes of the promise; `FULL=1` for all of it.
bench-memory:
	FULL=$(FULL) $(CARGO) bench -p narrows-cli --bench memory

# What the recorder costs between an editor and its agent.
bench-acp:
	$(CARGO) bench -p narrows-cli --bench acp

# From an agent's line to a frame in a browser, and fifty agents at once.
bench-run: build
	$(CARGO) build --release --quiet -p narrows-cli --examples
	@NARROWS=target/release/narrows ./scripts/bench-run/run

bench-serve:
	$(CARGO) bench -p narrows-server --bench serve

# The page with a session of 100 000 items, and with one that streams.
bench-page: build
	@NARROWS=target/release/narrows ./scripts/bench-page/run

# Marks per MB in ordinary text: `make precision TEXTS="folder folder"`.
precision: build
	@./scripts/precision target/release/narrows $(TEXTS)

# Rewrites the expected files of the golden cases; the diff is the review.
bless:
	NARROWS_BLESS=1 $(CARGO) test -p narrows --test golden --test drift
	NARROWS_BLESS=1 $(CARGO) test -p narrows-render --lib
	NARROWS_BLESS=1 $(CARGO) test -p narrows-cli --test library

fuzz:
	@command -v cargo-fuzz >/dev/null || $(CARGO) install --locked cargo-fuzz
	for target in json adapter sanitize fold; do \
	  $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -dict=fuzz/tokens.dict || exit 1; \
	done

clean:
	$(CARGO) clean
