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

#[test]
fn values_of_each_cpu_and_of_each_task() {
    let source = r#"
        struct value { u64 count; struct { u32 word; } bpf; };
        struct { __uint(type, 6); __uint(max_entries, 2); __type(key, u32); __type(value, u64); } of_cpu SEC(".maps");
        struct { __uint(type, 5); __uint(max_entries, 9); __type(key, u64); __type(value, u64); } of_key SEC(".maps");
        struct { __uint(type, 29); __uint(map_flags, 1); __type(key, int); __type(value, struct value); } of_task SEC(".maps");
        SEC("struct_ops/f") long f(unsigned long *arguments) {
            u32 key = 1;
            u64 *mine = bpf_map_lookup_elem(&of_cpu, &key);
            u64 *zeroth = bpf_map_lookup_percpu_elem(&of_cpu, &key, 0);
            if (!mine || !zeroth || bpf_map_lookup_percpu_elem(&of_cpu, &key, 4)) return -1;
            *mine += 10;
            u64 long_key = 5, one = 1;
            u64 *keyed = bpf_map_lookup_elem(&of_key, &long_key);
            if (keyed) *keyed += 1; else bpf_map_update_elem(&of_key, &long_key, &one, 0);
            return *zeroth;
        }
        SEC("struct_ops/g") long g(unsigned long *arguments) {
            struct value *value = bpf_task_storage_get(&of_task, (void *)arguments[0], 0, arguments[1]);
            return value ? ++value->count : 0;
        }
        SEC("struct_ops/h") long h(unsigned long *arguments) {
            return bpf_task_storage_delete(&of_task, (void *)arguments[0]);
        }
    "#;
    let bytes = compile(&format!("{HEADER}\n{source}"), "v3");
    let mut bench = Bench::new(&bytes, Settings { cpus: 4, ..Settings::default() });
    assert_eq!(bench.run("f", &[]).unwrap(), 10);
    bench.machine.cpu = 2;
    assert_eq!(bench.run("f", &[]).unwrap(), 10);
    assert_eq!(bench.run("f", &[]).unwrap(), 10);
    let of_cpu = bench.machine.map("of_cpu").unwrap();
    let second = bench.machine.map_lookup_of_cpu(of_cpu, &1u32.to_le_bytes(), 2).unwrap();
    assert_eq!(bench.machine.read_u64(second), Ok(20));
    let of_key = bench.machine.map("of_key").unwrap();
    let counts = [0, 1, 2, 3].map(|cpu| {
        let at = bench.machine.map_lookup_of_cpu(of_key, &5u64.to_le_bytes(), cpu).unwrap();
        bench.machine.read_u64(at).unwrap()
    });
    assert_eq!(counts, [1, 0, 2, 0]);
    let [one, other] = [0, 1].map(|_| bench.machine.allocate("task", 64).unwrap());
    assert_eq!(bench.run("g", &[one.0, 0]).unwrap(), 0);
    assert_eq!(bench.run("g", &[one.0, 1]).unwrap(), 1);
    assert_eq!(bench.run("g", &[one.0, 0]).unwrap(), 2);
    assert_eq!(bench.run("g", &[other.0, 1]).unwrap(), 1);
    assert_eq!(bench.run("h", &[one.0]).unwrap(), 0);
    assert_eq!(bench.run("h", &[one.0]).unwrap() as i64, -2);
    let used = bench.machine.used();
    bench.machine.free(other).unwrap();
    assert_eq!(bench.machine.used(), used - 64 - 16, "the value goes with its owner");
    assert_eq!(bench.run("g", &[other.0, 0]).unwrap(), 0);
    assert_eq!(bench.run("g", &[other.0, 1]).unwrap_err().kind(), FaultKind::Freed);
}

#[test]
fn every_kind_of_fault() {
    let source = r#"
        const volatile u64 constant = 3;
        u64 *kept;
        SEC("struct_ops/null") long null(unsigned long **arguments) { return *arguments[0]; }
        SEC("struct_ops/before") long before(unsigned long **arguments) { return arguments[0][-1]; }
        SEC("struct_ops/constant") long write_constant(void *x) { *(volatile u64 *)&constant = 1; return 0; }
        SEC("struct_ops/keep") long keep(unsigned long **arguments) { kept = (void *)arguments[0]; return 0; }
        SEC("struct_ops/use") long use(void *x) { return *kept; }
        SEC("struct_ops/forever") long forever(void *x) { while (1) asm volatile ("r0 = r0"); return 0; }
        __attribute__((noinline)) u64 deep(u64 x) { u64 y[3] = { x }; asm volatile ("" :: "r"(y)); return deep(x + 1) + y[0]; }
        SEC("struct_ops/sink") long sink(void *x) { return deep(1); }
        SEC("struct_ops/over") long over(void *x) { asm volatile ("r0 = *(u64 *)(r10 + 0)"); return 1; }
        extern long here_refuses(long) __ksym;
        SEC("struct_ops/refused") long refused(void *x) { return here_refuses(1); }
    "#;
    let bytes = compile(&format!("{HEADER}\n{source}"), "v3");
    let mut bench = Bench::new(&bytes, Settings { budget: 100_000, ..Settings::default() });
    let kinds = [
        ("null", FaultKind::Null),
        ("write_constant", FaultKind::ReadOnly),
        ("forever", FaultKind::Budget),
        ("sink", FaultKind::Depth),
        ("over", FaultKind::Bounds),
        ("refused", FaultKind::Outside),
    ];
    for (program, kind) in kinds {
        let fault = bench.run(program, &[0]).unwrap_err();
        assert_eq!(fault.kind(), kind, "{fault}");
        assert!(fault.program().is_some() && fault.line().is_some(), "{fault}");
    }
    let memory = bench.machine.allocate("a task", 8).unwrap();
    let fault = bench.run("before", &[memory.0]).unwrap_err();
    assert_eq!(fault.what(), "reads 8 bytes at 8 bytes before a task");
    bench.run("keep", &[memory.0]).unwrap();
    assert_eq!(bench.run("use", &[]), Ok(0));
    bench.machine.free(memory).unwrap();
    let fault = bench.run("use", &[]).unwrap_err();
    assert_eq!(fault.what(), "reads 8 bytes at offset 0 of a task, which was freed");
    assert!(bench.machine.free(memory).is_err());
}

#[test]
fn a_value_that_was_deleted_lives_until_the_program_ends() {
    let source = r#"
        struct { __uint(type, 1); __uint(max_entries, 1); __type(key, u32); __type(value, u64); } table SEC(".maps");
        SEC("struct_ops/f") long f(void *x) {
            u32 key = 1, other = 2; u64 five = 5, six = 6;
            bpf_map_update_elem(&table, &key, &five, 0);
            u64 *value = bpf_map_lookup_elem(&table, &key);
            if (!value) return -1;
            bpf_map_update_elem(&table, &key, &six, 0);
            u64 *changed = bpf_map_lookup_elem(&table, &key);
            if (!changed || bpf_map_delete_elem(&table, &key)) return -2;
            bpf_map_update_elem(&table, &other, &five, 0);
            return *value * 10 + *changed;
        }
    "#;
    let mut bench = bench(source);
    let before = bench.machine.used();
    assert_eq!(bench.run("f", &[]), Ok(56));
    assert_eq!(bench.machine.used(), before + 8);
}

#[test]
fn what_is_special_in_a_value_is_not_copied() {
    let source = r#"
        struct bpf_timer { u64 opaque[2]; } __attribute__((aligned(8)));
        struct value { u32 a; struct { struct bpf_timer timer; } in; u32 b; };
        struct { __uint(type, 2); __uint(max_entries, 1); __type(key, u32); __type(value, struct value); } array SEC(".maps");
        SEC("struct_ops/f") long f(void *x) {
            u32 key = 0; struct value new = { 1, { { { 2, 3 } } }, 4 };
            bpf_map_update_elem(&array, &key, &new, 0);
            struct value *value = bpf_map_lookup_elem(&array, &key);
            return value ? value->a * 1000 + value->in.timer.opaque[0] * 100 + value->in.timer.opaque[1] * 10 + value->b : -1;
        }
    "#;
    assert_eq!(bench(source).run("f", &[]), Ok(1004));
}

#[test]
fn records_texts_and_walks() {
    let source = r#"
        struct { __uint(type, 27); __uint(max_entries, 4096); } ring SEC(".maps");
        struct { __uint(type, 1); __uint(max_entries, 9); __type(key, u32); __type(value, u64); } table SEC(".maps");
        static long each(void *map, u32 *key, u64 *value, u64 *sum) { *sum += *key * *value; return *key == 3; }
        SEC("struct_ops/f") long f(void *x) {
            u64 sum = 0;
            for (u32 key = 1; key < 6; key++) { u64 value = 10; bpf_map_update_elem(&table, &key, &value, 0); }
            long seen = bpf_for_each_map_elem(&table, each, &sum, 0);
            u64 *record = bpf_ringbuf_reserve(&ring, 8, 0);
            if (!record) return -1;
            *record = sum;
            bpf_ringbuf_submit(record, 0);
            bpf_ringbuf_output(&ring, &seen, 4, 0);
            return 0;
        }
        static const char format[] = "%s is %d of %-4u|%04x|%5lld|%%";
        static const char name[] = "cpu";
        SEC("struct_ops/g") long g(void *x) {
            u64 words[] = { (u64)name, -3, 7, 255, -9 };
            char text[40];
            bpf_trace_vprintk(format, sizeof(format), words, sizeof(words));
            return bpf_snprintf(text, 10, format, words, sizeof(words)) * 100 + bpf_strncmp(text, 10, "cpu is -3") * 10;
        }
        SEC("struct_ops/h") long h(unsigned long *arguments) {
            char text[8] = { 9, 9, 9, 9, 9, 9, 9, 9 };
            long length = bpf_probe_read_kernel_str(text, sizeof(text), (void *)arguments[0]);
            u64 word = 1;
            long error = bpf_probe_read_kernel(&word, 8, (void *)arguments[1]);
            return length * 1000 + text[1] * 10 + (error == -14 && !word);
        }
    "#;
    let mut bench = bench(source);
    bench.run("f", &[]).unwrap();
    let records = [60u64.to_le_bytes().to_vec(), 3u32.to_le_bytes().to_vec()];
    assert_eq!((&bench.world.records[..], bench.machine.records()), (&records[..], 2));
    let length = "cpu is -3 of 7   |00ff|   -9|%".len() as u64;
    assert_eq!(bench.run("g", &[]), Ok((length + 1) * 100));
    assert_eq!(bench.world.printed, ["cpu is -3 of 7   |00ff|   -9|%"]);
    let text = bench.machine.allocate("text", 16).unwrap();
    bench.machine.write(text, b"AB\0C").unwrap();
    assert_eq!(bench.run("h", &[text.0, 0xdead_beef]), Ok(3 * 1000 + 66 * 10 + 1));
}

#[test]
fn the_outside_calls_back_and_costs_are_counted() {
    let source = r#"
        extern long here_call(void *, long) __ksym;
        static long doubles(long x) { return 2 * x; }
        static long again(long x) { return here_call(doubles, x + 1); }
        SEC("struct_ops/f") long f(unsigned long *arguments) { return here_call(again, arguments[0]) + 1; }
    "#;
    let mut bench = bench(source);
    assert_eq!(bench.run("f", &[4]), Ok(11));
    assert_eq!(bench.run("f", &[5]), Ok(13));
    let program = bench.machine.object().program("f").unwrap();
    let counter = bench.machine.counter(program);
    assert_eq!((counter.runs, counter.instructions), (2, bench.machine.executed()));
    assert!(counter.instructions > 20, "{counter:?}");
    let doubles = bench.machine.object().program("doubles").unwrap();
    assert_eq!(bench.machine.counter(doubles).runs, 2);
    let address = bench.machine.program_address(doubles);
    assert_eq!(bench.machine.call(&mut bench.world, address.0, [21, 0, 0, 0, 0]), Ok(42));
    let wrong = bench.machine.call(&mut bench.world, address.0 + 4, [0; 5]).unwrap_err();
    assert_eq!(wrong.kind(), FaultKind::Argument);
}
