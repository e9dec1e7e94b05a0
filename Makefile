# schedlab: `make lab` shows it, `make test` checks it, `make bench` measures it.

SCHEDLAB := target/release/schedlab

.PHONY: lab test bench docs clean

lab: ## build, then find out what would help a recorded load
	@tools/setup lab
	cargo build --release --locked -p schedlab
	$(SCHEDLAB) compare workloads/sqlite-and-xz.perf.data.zst -o results/lab

test: ## everything that CI runs
	@tools/setup test
	tools/test

bench: ## measure, print, judge nothing
	@tools/setup bench
	tools/bench

docs: ## measure the quick figures of the documents again, and fill all of them in
	cargo build --release --locked -p schedlab
	tools/docs

clean:
	cargo clean
	rm -rf results
