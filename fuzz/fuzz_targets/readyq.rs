//! Every structure against its model, under whatever sequence of operations the fuzzer finds.
#![no_main]

#[path = "../../crates/readyq/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use readyq::catalog::{self, Visitor};
use readyq::{ReadyQueue, Strides};
use support::Op;
use support::laws::Pair;
use support::models::model;

const TASKS: usize = 16;
const LEVELS: u16 = 8;

struct Run<'a> {
    name: &'static str,
    strides: Strides,
    ops: &'a [Op],
}

impl Visitor for Run<'_> {
    type Out = ();

    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) {
        let pair = Pair::new(queue, model(self.name, LEVELS as u32, self.strides), TASKS, LEVELS);
        pair.check(self.ops).unwrap_or_else(|fault| panic!("{}: {fault}", self.name));
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let entry = &catalog::ENTRIES[choice as usize % catalog::ENTRIES.len()];
    let strides = if choice < 128 { Strides::Linear } else { Strides::PowersOfTwo };
    // A byte per operation: the task in the low bits, the operation in the high ones.
    let op = |byte: &u8| match byte >> 4 {
        level @ 0..8 => Op::Insert((byte & 15) as u32, level as u16),
        8..14 => Op::Pop,
        _ => Op::Remove((byte & 15) as u32),
    };
    let ops: Vec<Op> = data.iter().take(1000).map(op).collect();
    catalog::visit(
        entry.name,
        LEVELS as u32,
        strides,
        Run { name: entry.name, strides, ops: &ops },
    )
    .expect("8 levels suit everyone");
});
