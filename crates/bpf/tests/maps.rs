//! Maps against simple twins: long random sequences of what can be done with them.

mod common;

use bpf::{MapId, Settings};
use common::assemble::Random;
use common::{Bench, compile};

const SOURCE: &str = concat!(
    include_str!("c/bpf.h"),
    r#"
    struct { __uint(type, 1); __uint(max_entries, 20); __type(key, u32[3]); __type(value, u64); } hash SEC(".maps");
    struct { __uint(type, 9); __uint(max_entries, 20); __type(key, u32[3]); __type(value, u64); } lru SEC(".maps");
    struct { __uint(type, 2); __uint(max_entries, 20); __type(key, u32); __type(value, u64); } array SEC(".maps");
    struct { __uint(type, 22); __uint(max_entries, 5); __type(value, u64); } queue SEC(".maps");
    struct { __uint(type, 23); __uint(max_entries, 5); __type(value, u64); } stack SEC(".maps");
    SEC("struct_ops/f") long f(void *x) {
        u32 key[3] = {};
        return bpf_map_lookup_elem(&hash, key) || bpf_map_lookup_elem(&lru, key) || bpf_map_lookup_elem(&array, key)
            || bpf_map_pop_elem(&queue, key) || bpf_map_pop_elem(&stack, key);
    }
    "#
);

/// Pairs in the order of their last use: a table without tricks.
struct Twin {
    pairs: Vec<(u64, u64)>,
    forgets: bool,
}

impl Twin {
    fn use_of(&mut self, key: u64) -> Option<u64> {
        let place = self.pairs.iter().position(|pair| pair.0 == key)?;
        if self.forgets {
            let pair = self.pairs.remove(place);
            self.pairs.push(pair);
            return Some(pair.1);
        }
        Some(self.pairs[place].1)
    }

    fn update(&mut self, key: u64, value: u64, flags: u64) -> i64 {
        let place = self.pairs.iter().position(|pair| pair.0 == key);
        match (place, flags) {
            (Some(_), 1) => return -17,
            (None, 2) => return -2,
            (_, 0..=2) => {}
            _ => return -22,
        }
        match place {
            Some(place) => drop(self.pairs.remove(place)),
            None if self.pairs.len() < 20 => {}
            None if self.forgets => drop(self.pairs.remove(0)),
            None => return -7,
        }
        self.pairs.push((key, value));
        0
    }

    fn delete(&mut self, key: u64) -> i64 {
        match self.pairs.iter().position(|pair| pair.0 == key) {
            Some(place) => {
                self.pairs.remove(place);
                0
            }
            None => -2,
        }
    }
}

fn key(number: u64) -> [u8; 12] {
    let mut key = [7; 12];
    key[4..].copy_from_slice(&number.to_le_bytes());
    key
}

fn bench() -> Bench {
    Bench::new(&compile(SOURCE, "v3"), Settings::default())
}

fn value(bench: &mut Bench, map: MapId, key: &[u8]) -> Option<u64> {
    let at = bench.machine.map_lookup(map, key).unwrap();
    (!at.is_null()).then(|| bench.machine.read_u64(at).unwrap())
}

#[test]
fn tables() {
    let mut bench = bench();
    for (name, forgets) in [("hash", false), ("lru", true)] {
        let map = bench.machine.map(name).unwrap();
        let mut twin = Twin { pairs: Vec::new(), forgets };
        let mut random = Random(5);
        let mut full = 0;
        for step in 0..20_000 {
            let number = random.below(30);
            let (flags, new) = (random.of(&[0, 0, 0, 1, 2, 3]), random.next());
            match random.below(5) {
                0 => {
                    let deleted = bench.machine.map_delete(map, &key(number)).unwrap();
                    assert_eq!(deleted, twin.delete(number), "{name} {step}");
                }
                1 | 2 => {
                    let updated =
                        bench.machine.map_update(map, &key(number), &new.to_le_bytes(), flags);
                    let theirs = twin.update(number, new, flags);
                    assert_eq!(updated, Ok(theirs), "{name} {step} {flags}");
                    full += u32::from(theirs == -7);
                }
                3 if step % 50 == 0 => {
                    let mut keys = bench.machine.map_keys(map);
                    let mut theirs: Vec<Vec<u8>> =
                        twin.pairs.iter().map(|pair| key(pair.0).to_vec()).collect();
                    keys.sort();
                    theirs.sort();
                    assert_eq!(keys, theirs, "{name} {step}");
                }
                _ => {
                    let theirs = twin.use_of(number);
                    assert_eq!(value(&mut bench, map, &key(number)), theirs, "{name} {step}");
                }
            }
            assert_eq!(bench.machine.map_length(map), twin.pairs.len());
        }
        assert_eq!(full > 0, !forgets);
        for number in 0..30 {
            bench.machine.map_delete(map, &key(number)).unwrap();
        }
    }
    let used = bench.machine.used();
    assert_eq!(used, self::bench().machine.used(), "what was deleted was freed");
}

#[test]
fn arrays() {
    let mut bench = bench();
    let map = bench.machine.map("array").unwrap();
    let mut twin = [0; 20];
    let mut random = Random(6);
    for _ in 0..5000 {
        let index = random.below(25) as u32;
        let (flags, new) = (random.of(&[0, 0, 1, 2, 7]), random.next());
        let mine = twin.get(index as usize).copied();
        assert_eq!(value(&mut bench, map, &index.to_le_bytes()), mine);
        let updated =
            bench.machine.map_update(map, &index.to_le_bytes(), &new.to_le_bytes(), flags);
        let theirs = match (mine, flags) {
            (_, 7) => -22,
            (None, _) => -7,
            (_, 1) => -17,
            _ => {
                twin[index as usize] = new;
                0
            }
        };
        assert_eq!(updated, Ok(theirs));
        assert_eq!(bench.machine.map_delete(map, &index.to_le_bytes()), Ok(-22));
    }
    assert_eq!(bench.machine.map_update(map, &[1, 2], &[0; 8], 0), Ok(-22));
    assert_eq!(bench.machine.map_update(map, &[1, 0, 0, 0], &[0; 7], 0), Ok(-22));
}

#[test]
fn queues_and_stacks() {
    let mut bench = bench();
    for (name, is_stack) in [("queue", false), ("stack", true)] {
        let map = bench.machine.map(name).unwrap();
        let mut twin: Vec<u64> = Vec::new();
        let mut random = Random(7);
        for _ in 0..5000 {
            let new = random.next();
            match random.below(5) {
                0 | 1 => {
                    let flags = random.of(&[0, 2, 1]);
                    let theirs = match (flags, twin.len() == 5) {
                        (1, _) => -22,
                        (0, true) => -7,
                        (_, is_full) => {
                            if is_full {
                                twin.remove(0);
                            }
                            twin.push(new);
                            0
                        }
                    };
                    assert_eq!(bench.machine.queue_push(map, &new.to_le_bytes(), flags), theirs);
                }
                which => {
                    let next = if is_stack { twin.last() } else { twin.first() }.copied();
                    if which == 2 && next.is_some() {
                        twin.remove(if is_stack { twin.len() - 1 } else { 0 });
                    }
                    let mine = bench.machine.queue_next(map, which == 2);
                    let mine = mine.map(|bytes| u64::from_le_bytes((*bytes).try_into().unwrap()));
                    assert_eq!(mine, next);
                }
            }
        }
    }
}
