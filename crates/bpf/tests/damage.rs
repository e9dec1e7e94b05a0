//! Objects that are damaged: never a panic, a hang or much memory.

mod common;

use bpf::{Machine, Object, Settings};
use common::assemble::Random;
use common::{World, compile};
use std::sync::Arc;

const SOURCE: &str = concat!(
    include_str!("c/bpf.h"),
    r#"
    extern long here_one(long) __ksym;
    extern int CONFIG_HZ __kconfig;
    extern const u32 here_value __ksym __weak;
    struct queue { __uint(type, 22); __uint(max_entries, 3); __type(value, u32); } first SEC(".maps");
    struct {
        __uint(type, 12); __uint(max_entries, 4); __type(key, int);
        __array(values, struct queue);
    } queues SEC(".maps") = { .values = { [1] = &first } };
    struct { __uint(type, 1); __uint(max_entries, 4); __type(key, u32); __type(value, u64); } table SEC(".maps");
    struct ops { s32 (*select)(void *p); char name[8]; } ;
    int counted = 3;
    static long each(u64 round, u64 *sum) { *sum += round; return 0; }
    __attribute__((noinline)) long twice(long x) { return here_one(x) + counted; }
    SEC("struct_ops/f") s32 f(unsigned long *arguments) {
        u64 sum = CONFIG_HZ; u32 key = 1;
        bpf_loop(3, each, &sum, 0);
        bpf_map_update_elem(&table, &key, &sum, 0);
        void *queue = bpf_map_lookup_elem(&queues, &key);
        if (queue) bpf_map_push_elem(queue, &key, 0);
        return twice(sum);
    }
    SEC(".struct_ops.link") struct ops ops = { .select = (void *)f, .name = "mine" };
    "#
);

/// Does with an object whatever can be done with it.
fn use_all(bytes: &[u8]) -> bool {
    let Ok(object) = Object::read(bytes) else { return false };
    let object = Arc::new(object);
    for global in object.globals() {
        object.btf().field(&global.name, "a.b[3].c");
    }
    for name in ["queue", "ops"] {
        object.btf().field(name, "name[2]");
        object.btf().struct_size(name);
    }
    for (number, program) in object.programs().iter().enumerate() {
        object.line(bpf::ProgramId(number as u32), program.length / 2);
    }
    let settings = Settings { budget: 2000, memory: 1 << 22, ..Settings::default() };
    let mut world = World::default();
    if let Ok(mut machine) = Machine::new(Arc::clone(&object), &settings, &world) {
        for entry in object.entries() {
            let _ = machine.run(&mut world, entry, &[1, 2, 3]);
        }
        for map in ["table", "queues"] {
            machine.map(map).map(|map| machine.map_keys(map).len().min(1));
        }
    }
    true
}

#[test]
fn damaged_objects_are_refused_or_run() {
    let good = compile(SOURCE, "v3");
    assert!(use_all(&good));
    let mut random = Random(11);
    let (mut read, mut refused) = (0u32, 0u32);
    let mut count = |good: bool| if good { read += 1 } else { refused += 1 };
    let start = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
    let headers = (0..64).chain(start..good.len());
    for at in headers {
        for value in [0, 0xff, good[at].wrapping_add(1), good[at] ^ 8] {
            let mut bytes = good.clone();
            bytes[at] = value;
            count(use_all(&bytes));
        }
    }
    for _ in 0..4000 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(start as u64) as usize;
            bytes[at] = random.odd() as u8;
        }
        count(use_all(&bytes));
    }
    for length in (0..good.len()).step_by(37) {
        count(use_all(&good[..length]));
    }
    assert!(read > 2000 && refused > 500, "{read} were read, {refused} were refused");
}
