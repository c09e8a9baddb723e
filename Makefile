# Two targets do everything: `make run` and `make test`.

.DEFAULT_GOAL := help
.PHONY: help run test needs docs fmt lint deny bench-peers bench-load bench-lab bench-statistics bench-report

help: ## what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build, run the study quick (about two minutes), print the report's path
	@./scripts/run-quick.sh

# A test that cannot have namespaces, nginx or a browser fails: it is never skipped in silence.
test: needs ## install what the tests need, then run every check and test
	cargo fmt --all --check
	./scripts/check-dependencies.sh
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --workspace --locked

needs: ## install what the tests need, or say what is missing
	@./scripts/install-test-needs.sh

fmt: ## format the code
	cargo fmt --all

lint: ## clippy, with every warning an error
	cargo clippy --workspace --all-targets --locked -- -D warnings

docs: ## write the tables of README and docs/ that follow from the code
	H123_UPDATE_DOCS=1 cargo test --locked -p h123 --bin h123 -- docs::tables

deny: ## licences, bans and sources of the dependencies
	@./scripts/check-dependencies.sh

# Options of the harness go through ARGS: make bench-peers ARGS='--only h1s --pairs 20'.
bench-peers: ## client CPU per request beside wrk, h2load, siege and ab (about 20 minutes on a quiet machine)
	@./scripts/install-bench-needs.sh
	cargo build --release --locked -p h123 -p bench-peers
	./target/release/bench-peers $(ARGS)

bench-load: ## h123 load on its own: schedule, memory, threads (about 5 minutes on a quiet machine)
	@./scripts/install-bench-needs.sh
	cargo build --release --locked -p h123 -p bench-peers
	./target/release/bench-peers alone $(ARGS)

bench-lab: ## the emulated link: its errors, its throughput, what a packet costs (about a minute on a quiet machine)
	cargo bench --locked -p lab --bench link

bench-statistics: ## the statistics against simulated studies with a known answer (about five minutes): the tables of docs/statistics.md
	H123_STUDIES=2000 cargo test --release --locked -p analysis --lib ground_truth -- --nocapture --test-threads=1

bench-report: ## ten million samples analysed and reported: time and memory (about two minutes)
	cargo bench --locked -p h123 --bench report
