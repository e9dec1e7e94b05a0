//! Compiled C programs with answers that are known.

mod common;

use bpf::{FaultKind, Settings};
use common::{Bench, compile};

const HEADER: &str = include_str!("c/bpf.h");

fn bench(source: &str) -> Bench {
    Bench::new(&compile(&format!("{HEADER}\n{source}"), "v3"), Settings::default())
}

#[test]
fn global_data_and_functions() {
    let source = r#"
        const volatile unsigned int factor = 3;
        int counted = 40;
        static unsigned long hidden;
        __attribute__((noinline)) static long twice(long x) { hidden += x; return 2 * x; }
        __attribute__((noinline)) long global_twice(long x) { return twice(x) + 1; }
        SEC("struct_ops/f") long f(unsigned long *arguments) {
            counted += 2;
            return global_twice(arguments[1]) * factor;
        }
    "#;
    let mut bench = bench(source);
    assert!(bench.machine.set_number("factor", 5));
    assert_eq!(bench.run("f", &[0, 10]).unwrap(), 105);
    assert_eq!(bench.machine.number("counted"), Some(42));
    assert_eq!(bench.machine.number("hidden"), Some(10));
}

#[test]
fn maps_from_a_program() {
    let source = r#"
        struct { __uint(type, 2); __uint(max_entries, 4); __type(key, u32); __type(value, u64); } numbers SEC(".maps");
        struct { __uint(type, 1); __uint(max_entries, 2); __type(key, u64); __type(value, u64); } table SEC(".maps");
        SEC("struct_ops/f") long f(unsigned long *arguments) {
            u32 key = arguments[0];
            u64 *value = bpf_map_lookup_elem(&numbers, &key);
            if (!value) return -1;
            *value += 7;
            u64 long_key = arguments[0];
            long error = bpf_map_update_elem(&table, &long_key, value, 1);
            return error ? error : *value;
        }
    "#;
    let mut bench = bench(source);
    assert_eq!(bench.run("f", &[1]).unwrap(), 7);
    assert_eq!(bench.run("f", &[1]).unwrap() as i64, -17, "it exists");
    assert_eq!(bench.run("f", &[2]).unwrap(), 7);
    assert_eq!(bench.run("f", &[3]).unwrap() as i64, -7, "it is full");
    assert_eq!(bench.run("f", &[4]).unwrap() as i64, -1, "there is no such number");
}

#[test]
fn a_fault_names_the_line() {
    let source = r#"
        struct { __uint(type, 2); __uint(max_entries, 1); __type(key, u32); __type(value, u64); } numbers SEC(".maps");
        SEC("struct_ops/f") long f(unsigned long *arguments) {
            u32 key = 0;
            u64 *value = bpf_map_lookup_elem(&numbers, &key);
            return value ? value[arguments[0]] : 0; /* here */
        }
    "#;
    let mut bench = bench(source);
    assert_eq!(bench.run("f", &[0]).unwrap(), 0);
    let fault = bench.run("f", &[2]).unwrap_err();
    assert_eq!(fault.kind(), FaultKind::Bounds);
    assert!(fault.line().unwrap().text.contains("/* here */"), "{fault}");
    let what = "reads 8 bytes at offset 16 of the 8 bytes of a value of map `numbers`";
    assert_eq!(fault.what(), what);
}

#[test]
fn callbacks() {
    let source = r#"
        static long add(u64 round, u64 *sum) { *sum += round; return round == 6; }
        SEC("struct_ops/f") long f(unsigned long *arguments) {
            u64 sum = 0;
            long rounds = bpf_loop(arguments[0], add, &sum, 0);
            return rounds * 1000 + sum;
        }
    "#;
    let mut bench = bench(source);
    assert_eq!(bench.run("f", &[4]).unwrap(), 4006);
    assert_eq!(bench.run("f", &[100]).unwrap(), 7021);
}
