//! Those who look on see each line, call, result and write of a program, and change nothing.

mod common;

use bpf::{
    Address, Called, Fault, FunctionId, Holder, Listing, Machine, Object, Outside, Place, Settings,
};
use common::{Bench, World, compile};
use std::sync::Arc;

const SOURCE: &str = r#"
struct entry { u32 id; u64 times[3]; _Bool is_new; char name[8]; };
struct { __uint(type, 2); __uint(max_entries, 4); __type(key, u32); __type(value, struct entry); } entries SEC(".maps");
struct { __uint(type, 6); __uint(max_entries, 2); __type(key, u32); __type(value, u64); } counts SEC(".maps");
struct { __uint(type, 1); __uint(max_entries, 8); __type(key, u64); __type(value, s32); } table SEC(".maps");
int counted = 40;
extern u64 here_add(u64 value) __ksym;
__attribute__((noinline)) static u64 twice(u64 x) { counted++; return 2 * x; }
SEC("struct_ops/f") long f(unsigned long *arguments) {
    u32 key = 3, one = 1;
    u64 long_key = 9;
    s32 negative = -5;
    struct entry *entry = bpf_map_lookup_elem(&entries, &key);
    u64 *count = bpf_map_lookup_elem(&counts, &one);
    if (!entry || !count) return -1;
    entry->times[2] = twice(arguments[0]);
    *count = 8;
    bpf_map_update_elem(&table, &long_key, &negative, 0);
    return here_add(entry->times[2]);
}
"#;

/// Writes down what it sees.
struct Witness {
    world: World,
    listing: Listing,
    lines: Vec<u32>,
    told: Vec<String>,
}

impl Outside for Witness {
    fn function(
        &mut self,
        machine: &mut Machine,
        function: FunctionId,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        self.world.function(machine, function, arguments)
    }

    fn helper(&mut self, machine: &mut Machine, helper: u32, with: [u64; 5]) -> Result<u64, Fault> {
        self.world.helper(machine, helper, with)
    }

    fn step(&mut self, _: &Machine, at: Place) {
        let line = self.listing.number(at).and_then(|number| self.listing.line(number));
        let line = line.map_or(0, |line| line.line);
        if self.lines.last() != Some(&line) {
            self.lines.push(line);
        }
    }

    fn calls(&mut self, machine: &Machine, called: Called, arguments: [u64; 5]) {
        self.told.push(match called {
            Called::Helper(number) => format!("helper {number}"),
            Called::Function(of) => machine.object().functions()[of.0 as usize].name.clone(),
            Called::Own(place) => {
                let of = machine.object().program_of(place).expect("a program");
                let name = &machine.object().programs()[of.0 as usize].name;
                format!("{name}({})", arguments[0])
            }
        });
    }

    fn returns(&mut self, _: &Machine, value: u64) {
        self.told.push(if value >> 32 == 0 { format!("= {value}") } else { "= a place".into() });
    }

    fn stores(&mut self, machine: &Machine, address: Address, size: usize) {
        if machine.is_of_a_call(address) {
            return;
        }
        let found = machine.found(address).expect("memory");
        let offset = (address.0 - found.start.0) as u32;
        let btf = machine.object().btf();
        let part = btf.part_at(found.kind.expect("a type"), offset);
        let bytes = machine.bytes(address, size).expect("bytes");
        let value = btf.shown(part.kind, bytes, &|_| None);
        let holder = match found.holder {
            Holder::Variable(name) => name,
            Holder::Value { map, key, cpu } => {
                let name = &machine.map_definition(map).expect("a map").name;
                format!(
                    "{name}[{}]{}",
                    key[0],
                    cpu.map_or(String::new(), |cpu| format!(" of {cpu}"))
                )
            }
            other => panic!("{other:?}"),
        };
        self.told.push(format!("{holder}{} = {value}", part.way));
    }
}

fn source() -> String {
    format!("{}\n{SOURCE}", include_str!("c/bpf.h"))
}

/// The line of the source that begins with these words.
fn line(words: &str) -> u32 {
    let source = source();
    source.lines().position(|line| line.trim().starts_with(words)).expect("a line") as u32 + 1
}

fn witness(bytes: &[u8]) -> (Machine, Witness) {
    let object = Arc::new(Object::read(bytes).unwrap());
    let settings = Settings { cpus: 3, ..Settings::default() };
    let machine = Machine::new(Arc::clone(&object), &settings, &World::default()).unwrap();
    let listing = object.listing();
    let told = Vec::new();
    (machine, Witness { world: World::default(), listing, lines: Vec::new(), told })
}

#[test]
fn lines_calls_results_and_writes_are_told_in_their_order() {
    let (mut machine, mut witness) = witness(&compile(&source(), "v3"));
    machine.cpu = 2;
    let program = machine.object().program("f").unwrap();
    assert_eq!(machine.run(&mut witness, program, &[21]).unwrap(), 43);
    let expected = [
        "helper 1",
        "= a place",
        "helper 1",
        "= a place",
        "twice(21)",
        "counted = 41",
        "= 42",
        "entries[3].times[2] = 42",
        "counts[1] of 2 = 8",
        "helper 2",
        "= 0",
        "here_add",
        "= 43",
    ];
    assert_eq!(witness.told, expected);
    let at = |words: &str| witness.lines.iter().position(|&known| known == line(words));
    let order = [
        "struct entry *entry =",
        "u64 *count =",
        "entry->times[2] =",
        "__attribute__((noinline)) static u64 twice",
        "*count = 8",
        "bpf_map_update_elem(&table",
    ]
    .map(|words| at(words).unwrap_or_else(|| panic!("{words}: {:?}", witness.lines)));
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn nothing_changes_by_looking() {
    let bytes = compile(&source(), "v3");
    let (mut machine, mut witness) = witness(&bytes);
    let mut bench = Bench::new(&bytes, Settings { cpus: 3, ..Settings::default() });
    let program = machine.object().program("f").unwrap();
    for argument in 0..5 {
        let seen = machine.run(&mut witness, program, &[argument]).unwrap();
        let used = machine.used();
        for map in 0..3 {
            machine.map_values(bpf::MapId(map));
        }
        assert_eq!(machine.used(), used);
        assert_eq!(seen, bench.run("f", &[argument]).unwrap());
    }
    assert_eq!(machine.executed(), bench.machine.executed());
    assert_eq!(machine.used(), bench.machine.used());
}

#[test]
fn the_values_of_maps_are_shown_by_their_types() {
    let (mut machine, mut witness) = witness(&compile(&source(), "v3"));
    let program = machine.object().program("f").unwrap();
    machine.run(&mut witness, program, &[21]).unwrap();
    let shown = |name: &str| -> Vec<String> {
        let map = machine.map(name).unwrap();
        let of = machine.map_definition(map).unwrap();
        let values = machine.map_values(map).into_iter();
        let shown = values.map(|(holder, at)| {
            let bytes = machine.bytes(at, of.value_size as usize).unwrap();
            let value = machine.object().btf().shown(of.value.unwrap(), bytes, &|_| None);
            let Holder::Value { key, cpu, .. } = holder else { panic!("{holder:?}") };
            format!("{} {cpu:?} {value}", key[0])
        });
        shown.collect()
    };
    assert_eq!(
        shown("entries"),
        ["3 None {id = 0, times = {0, 0, 42}, is_new = false, name = \"\"}"]
    );
    assert_eq!(shown("counts"), ["1 Some(0) 8"]);
    assert_eq!(shown("table"), ["9 None -5"]);
}
