# schedlab: `make lab` shows it, `make test` checks it, `make bench` measures it, `make kernel` runs a kernel on it.

# Quick to build: not optimised, and without papers, Parquet and the runner of this machine and guests.
LAB := target/lab/schedlab

.PHONY: lab test long bench kernel docs book install release clean

lab: ## build, then find out what would help a recorded load
	@tools/setup lab
	cargo build --profile lab --locked -p schedlab --no-default-features
	$(LAB) compare workloads/causes/groff.rec.zst -o results/lab
	@echo "The report: results/lab/report.html" >&2
	@echo "The program is $(LAB), built quickly. All of it, optimised and on your PATH: make install" >&2

install: ## build, then put schedlab, its man pages and completions below PREFIX (~/.local, or /usr/local for root)
	@tools/setup lab
	@tools/install $(if $(PREFIX),--prefix $(PREFIX))

test: ## everything that CI runs
	@tools/setup test
	tools/test

long: ## what takes longer than CI may: two hours of guests, fuzzing, packages (docs/long-tests.csv)
	@tools/setup test
	@tools/setup release
	cargo build --release --locked -p schedlab
	cargo build --locked -q -p schedlab-scx -p schedlab-recorder
	tools/long

bench: ## measure, print, judge nothing
	@tools/setup bench
	tools/bench

kernel: ## build the teaching kernel, and run it on a Cortex-M, a RISC-V and an x86 machine in QEMU (docs/kernel.md)
	@tools/setup kernel
	cargo build --release --locked -p schedlab
	tools/kernel

docs: ## measure the quick figures of the documents again, and fill all of them in
	cargo build --release --locked -p schedlab
	tools/docs

book: ## build the documents as a site, target/book/html, with mdBook
	cargo build --release --locked -p schedlab
	tools/book

release: ## build tarballs, Python packages, crates and a container, and try each in a clean root (docs/install.md)
	@tools/setup release
	tools/release

clean:
	cargo clean
	rm -rf results
