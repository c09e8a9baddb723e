# Two targets do everything: `make run` and `make test`.

.DEFAULT_GOAL := help
.PHONY: help run test needs docs docs-measured fmt lint abr-decisions deny advisories fuzz bench-peers bench-load bench-lab bench-statistics bench-report

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build, run the study quick (under two minutes), print the report's path
	@./scripts/run-quick.sh

# Tests without namespaces, nginx or a browser fail; they are never skipped silently.
test: needs ## install what the tests need, then run every check and test
	cargo fmt --all --check
	./scripts/check-dependencies.sh
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --locked
	cargo test --workspace --locked
	./scripts/abr-decisions/check.sh

needs: ## install what the tests need, or print what is missing
	@./scripts/install-test-needs.sh

fmt: ## format the code
	cargo fmt --all

lint: ## run clippy; every warning is an error
	cargo clippy --workspace --all-targets --locked -- -D warnings

docs: ## write the tables and outputs of README and docs/ that follow from the code
	H123_UPDATE_DOCS=1 cargo test --locked -p h123 --bin h123 -- docs::tables
	H123_UPDATE_DOCS=1 cargo test --locked -p h123 --test it -- docs::outputs flaws::tables

# PAGES='lab.md load.md' limits it to these pages.
docs-measured: ## also measure the outputs of README and docs/ again (about 20 minutes on an idle machine)
	H123_MEASURE_DOCS="$(or $(PAGES),all)" cargo test --release --locked -p h123 --test it -- docs::outputs

abr-decisions: ## make the tables of decisions of dash.js and hls.js again (needs Node.js 20 and the npm registry)
	cd scripts/abr-decisions && npm ci --silent && node make.mjs

deny: ## check licences, bans and sources of the dependencies
	@./scripts/check-dependencies.sh

advisories: ## check the dependencies against the RustSec advisory database (needs cargo-deny and the network)
	cargo deny --locked check --hide-inclusion-graph advisories

# FUZZ_SECONDS and TARGETS limit the search: make fuzz FUZZ_SECONDS=60 TARGETS='frame http3'.
fuzz: ## search every decoder of external bytes for faults (10 minutes each; needs cargo-fuzz)
	@./scripts/fuzz.sh $(TARGETS)

# perf needs the symbols that an installed binary lacks.
bench-peers bench-load: export CARGO_PROFILE_RELEASE_STRIP = none

# ARGS passes options to the harness: make bench-peers ARGS='--only h1s --pairs 20'.
bench-peers: ## compare the client CPU per request with wrk, h2load, siege and ab (about 20 minutes on an idle machine)
	@./scripts/install-bench-needs.sh
	cargo build --release --locked -p h123 -p bench-peers
	./target/release/bench-peers $(ARGS)

bench-load: ## measure h123 load alone: schedule, memory, threads (about 5 minutes on an idle machine)
	@./scripts/install-bench-needs.sh
	cargo build --release --locked -p h123 -p bench-peers
	./target/release/bench-peers alone $(ARGS)

bench-lab: ## measure the emulated link: errors, throughput, cost of a packet (about 1 minute on an idle machine)
	cargo bench --locked -p lab --bench link

bench-statistics: ## test the statistics on simulated studies with a ground truth, for docs/statistics.md (about 5 minutes)
	H123_STUDIES=2000 cargo test --release --locked -p analysis --lib ground_truth -- --nocapture --test-threads=1

bench-report: ## measure time and memory to analyse and report ten million samples (about 2 minutes)
	cargo bench --locked -p h123 --bench report
