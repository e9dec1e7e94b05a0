//! What objects refer to: kernel functions and variables, settings, tables for the kernel, maps in
//! maps.

mod common;

use bpf::{Field, Kernel, Machine, Missing, Object, Operation, Settings};
use common::{Bench, World, compile};
use std::sync::Arc;

const HEADER: &str = include_str!("c/bpf.h");

fn object(source: &str) -> Vec<u8> {
    compile(&format!("{HEADER}\n{source}"), "v3")
}

fn bench(source: &str) -> Bench {
    Bench::new(&object(source), Settings { cpus: 4, ..Settings::default() })
}

#[test]
fn kernel_functions_strong_and_weak() {
    let source = r#"
        extern long here_one(long) __ksym;
        extern long here_two___flavour(long) __ksym __weak;
        extern long missing(long) __ksym __weak;
        SEC("struct_ops/f") long f(unsigned long *arguments) {
            long sum = here_one(arguments[0]);
            if (here_two___flavour) sum = here_two___flavour(sum);
            if (missing) sum = missing(sum) + 1000;
            return sum;
        }
        SEC("struct_ops/g") long g(unsigned long *arguments) { return missing(1); }
    "#;
    let mut bench = bench(source);
    assert_eq!(bench.run("f", &[5]).unwrap(), 7);
    let calls: Vec<&str> = bench.world.calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(calls, ["here_one", "here_two___flavour"]);
    let object = bench.machine.object();
    assert_eq!(object.functions()[1].essential(), "here_two");
    assert_eq!(object.functions()[0].arguments, Some(1));
    assert_eq!((object.functions()[0].is_weak, object.functions()[1].is_weak), (false, true));
    let fault = bench.run("g", &[]).unwrap_err();
    assert_eq!(fault.what(), "calls the kernel function `missing`, which is not there");
    assert_eq!(fault.program(), Some("g"));
}

#[test]
fn all_that_is_missing_is_named() {
    let source = r#"
        extern long missing(long) __ksym;
        extern long unused(long) __ksym;
        extern const int lost __ksym;
        extern int CONFIG_LOST __kconfig;
        static long (*odd)(void) = (void *)99;
        struct { __uint(type, 33); __uint(max_entries, 1); } arena SEC(".maps");
        __attribute__((noinline)) long below(long x) { return missing(x) + odd(); }
        SEC("struct_ops/f") long f(unsigned long *arguments) {
            u32 key = 0;
            return below(1) + lost + CONFIG_LOST + !!bpf_map_lookup_elem(&arena, &key);
        }
        SEC("syscall") long not_used(void *context) { return unused(1); }
        struct table { long (*f)(unsigned long *); } ;
        SEC(".struct_ops") struct table ops = { .f = f };
    "#;
    let read = Arc::new(Object::read(&object(source)).unwrap());
    let refused = Machine::new(read, &Settings::default(), &World::default());
    let Err(refused) = refused else { panic!("it was not refused") };
    let said = refused.to_string();
    for part in ["`missing`", "helper 99", "kind 33 (`arena`)", "`lost`", "`CONFIG_LOST`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("unused"), "{said}");
    assert_eq!(refused.0.len(), 5);
    assert!(refused.0.contains(&Missing::Helper(99)));
}

#[test]
fn settings_and_variables_of_the_kernel() {
    let source = r#"
        extern int CONFIG_HZ __kconfig;
        extern const char CONFIG_NAME[16] __kconfig;
        extern _Bool CONFIG_LOST __kconfig __weak;
        extern const u32 here_value __ksym;
        extern const u64 here_of_cpu __ksym __weak;
        extern const u32 lost __ksym __weak;
        SEC("struct_ops/f") long f(unsigned long *arguments) {
            u64 *third = bpf_per_cpu_ptr(&here_of_cpu, 3);
            if (!third || bpf_per_cpu_ptr(&here_of_cpu, 4)) return -1;
            if (&lost || CONFIG_LOST) return -2;
            return CONFIG_HZ + here_value * 1000 + CONFIG_NAME[2] * 1000000 + *third * 1000000000;
        }
    "#;
    let mut bench = bench(source);
    let third = bench.machine.kernel_variable("here_of_cpu", 3).unwrap();
    bench.machine.write_u64(third, 5).unwrap();
    assert_eq!(bench.run("f", &[]).unwrap(), 5_110_077_250);
}

#[test]
fn tables_for_the_kernel() {
    let source = r#"
        struct task { int pid; u64 vtime; };
        struct table {
            s32 (*select)(struct task *p, s32 cpu, u64 flags);
            void (*enqueue)(struct task *p, u64 flags);
            u64 flags;
            u32 timeout;
            char name[16];
        };
        SEC("struct_ops/select") s32 choose(unsigned long *arguments) { return arguments[1] + 1; }
        SEC(".struct_ops.link") struct table other = { .name = "other", .timeout = 9 };
        SEC(".struct_ops.link") struct table ops = { .select = (void *)choose, .flags = 5, .timeout = 5000, .name = "mine" };
    "#;
    let object = Object::read(&object(source)).unwrap();
    let [other, table] = object.struct_ops() else { panic!("{:?}", object.struct_ops()) };
    assert_eq!((table.name.as_str(), table.kind.as_str()), ("ops", "table"));
    assert_eq!(table.section, ".struct_ops.link");
    let choose = object.program("choose").unwrap();
    assert_eq!(table.member("select"), Some(&Operation::Program(choose)));
    assert_eq!(table.member("enqueue"), Some(&Operation::Bytes(vec![0; 8])));
    assert_eq!(table.member("timeout"), Some(&Operation::Bytes(5000u32.to_le_bytes().to_vec())));
    assert_eq!(other.member("timeout"), Some(&Operation::Bytes(9u32.to_le_bytes().to_vec())));
    assert_eq!(
        table.member("name"),
        Some(&Operation::Bytes(b"mine\0\0\0\0\0\0\0\0\0\0\0\0".into()))
    );
    assert_eq!(object.entries(), [choose]);
    assert_eq!(object.btf().struct_size("task"), Some(16));
}

#[test]
fn fields_are_found_where_the_compiler_puts_them() {
    let source = r#"
        typedef struct { u32 a; union { u64 b; struct { u16 c; u16 d[3]; }; }; } inner_t;
        enum state { QUIET = -3, LOUD = 70000 };
        enum wide { TOP = 0xffffffff00000000ULL };
        struct outer { char x; const inner_t in[2]; u32 low : 3; u32 high : 7; struct outer *next; s32 sign; };
        #define AT(field) __builtin_offsetof(struct outer, field)
        volatile enum state state; volatile enum wide wide;
        u64 places[] = { AT(in[1]), AT(in[1].b), AT(in[1].d[2]), AT(next), AT(sign), sizeof(struct outer) };
        SEC("struct_ops/f") long f(struct outer **arguments) {
            struct outer *o = arguments[0];
            o->high = 99;
            return o->low;
        }
    "#;
    let mut bench = bench(source);
    let places = bench.machine.variable("places").unwrap();
    let places: Vec<u64> =
        places.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let object = Arc::clone(bench.machine.object());
    let btf = object.btf();
    for (path, place) in ["in[1]", "in[1].b", "in[1].d[2]", "next", "sign"].iter().zip(&places) {
        let field = btf.field("outer", path).unwrap();
        assert_eq!((u64::from(field.offset), field.bits), (*place, None), "{path}");
    }
    assert_eq!(btf.struct_size("outer").unwrap() as u64, places[5]);
    assert!(btf.field("outer", "in[2]").is_none() && btf.field("outer", "lost").is_none());
    assert!(btf.is_signed(btf.field("outer", "sign").unwrap().kind));
    assert!(!btf.is_signed(btf.field("outer", "in[0].a").unwrap().kind));
    assert_eq!((btf.enumerator("QUIET"), btf.enumerator("LOUD")), (Some(-3), Some(70000)));
    assert_eq!(btf.enumerator("TOP"), Some(-(1i64 << 32)));
    assert_eq!(btf.enumerators_of("state"), [("QUIET", -3), ("LOUD", 70000)]);
    let outer = bench.machine.allocate("outer", places[5] as usize).unwrap();
    let [low, high]: [Field; 2] = ["low", "high"].map(|name| btf.field("outer", name).unwrap());
    bench.machine.set_field(outer, low, 5).unwrap();
    assert_eq!(bench.run("f", &[outer.0]).unwrap(), 5);
    assert_eq!(bench.machine.field(outer, high), Ok(99));
    assert_eq!(bench.machine.field(outer, low), Ok(5));
    bench.machine.set_field(outer, high, 3).unwrap();
    assert_eq!((bench.machine.field(outer, high), bench.machine.field(outer, low)), (Ok(3), Ok(5)));
}

#[test]
fn an_array_of_queues_that_is_filled_from_the_start() {
    let source = r#"
        struct queue { __uint(type, 22); __uint(max_entries, 3); __type(value, u32); } first SEC(".maps"), second SEC(".maps"), third SEC(".maps");
        struct {
            __uint(type, 12); __uint(max_entries, 4); __type(key, int);
            __array(values, struct queue);
        } queues SEC(".maps") = { .values = { [0] = &first, [2] = &third, [3] = &second } };
        SEC("struct_ops/push") long push(unsigned long *arguments) {
            u32 index = arguments[0], value = arguments[1];
            void *queue = bpf_map_lookup_elem(&queues, &index);
            return queue ? bpf_map_push_elem(queue, &value, 0) : 1;
        }
        SEC("struct_ops/pop") long pop(unsigned long *arguments) {
            u32 index = arguments[0], value = 0, seen = 0;
            void *queue = bpf_map_lookup_elem(&queues, &index);
            if (!queue) return 1;
            if (bpf_map_peek_elem(queue, &seen) || bpf_map_pop_elem(queue, &value)) return -1;
            return seen == value ? value : -5;
        }
    "#;
    let mut bench = bench(source);
    for (queue, value) in [(0, 5), (0, 6), (0, 7), (3, 8)] {
        assert_eq!(bench.run("push", &[queue, value]).unwrap(), 0);
    }
    assert_eq!(bench.run("push", &[0, 9]).unwrap() as i64, -7, "it is full");
    assert_eq!(bench.run("push", &[1, 9]).unwrap(), 1, "there is no map");
    assert_eq!(bench.run("pop", &[3]).unwrap(), 8);
    for value in [5, 6, 7] {
        assert_eq!(bench.run("pop", &[0]).unwrap(), value);
    }
    assert_eq!(bench.run("pop", &[0]).unwrap() as i64, -1);
    let second = bench.machine.map("second").unwrap();
    assert_eq!(bench.machine.queue_push(second, &11u32.to_le_bytes(), 0), 0);
    assert_eq!(bench.run("pop", &[3]).unwrap(), 11);
    let queues = bench.machine.map("queues").unwrap();
    let template = bench.machine.map_definition(queues).unwrap().inner.unwrap();
    let template = bench.machine.map_definition(template).unwrap().clone();
    assert_eq!((template.max_entries, template.value_size), (3, 4));
    let made = bench.machine.create_map(template).unwrap();
    assert!(bench.machine.set_inner(queues, &1u32.to_le_bytes(), made));
    assert!(!bench.machine.set_inner(queues, &4u32.to_le_bytes(), made));
    assert_eq!(bench.run("push", &[1, 9]).unwrap(), 0);
    assert_eq!(bench.machine.map_length(made), 1);
}

#[test]
fn the_kernel_is_asked_by_the_name_that_it_knows() {
    struct Asked(std::cell::RefCell<Vec<String>>);
    impl Kernel for Asked {
        fn has_function(&self, function: &bpf::Function) -> bool {
            self.0.borrow_mut().push(function.essential().to_string());
            true
        }
        fn has_helper(&self, _: u32) -> bool {
            true
        }
        fn setting(&self, _: &str) -> Option<bpf::Setting> {
            None
        }
        fn variable(&self, _: &str) -> Option<bpf::KernelVariable> {
            None
        }
    }
    let source = r#"
        extern long a___b(long) __ksym __weak;
        extern long a___v2___compat(long) __ksym __weak;
        extern long ___odd(long) __ksym __weak;
        extern long four____lines(long) __ksym __weak;
        SEC("struct_ops/f") long f(unsigned long *x) { return a___b(1) + a___v2___compat(1) + ___odd(1) + four____lines(1); }
    "#;
    let read = Arc::new(Object::read(&object(source)).unwrap());
    let asked = Asked(std::cell::RefCell::default());
    Machine::new(read, &Settings::default(), &asked).unwrap();
    assert_eq!(*asked.0.borrow(), ["a", "a___v2", "___odd", "four____lines"]);
}
