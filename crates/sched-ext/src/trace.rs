//! What a scheduler does, in words: its callbacks, and what each calls, writes and executes.
//!
//! A trace is text, a line for each thing, and is handed on as it grows. It only looks on: the run is
//! the same without it.

mod arguments;
mod callback;
mod filter;
mod words;

pub use filter::{Depth, Filter, Task};

use crate::callbacks::Callback;
use crate::core::{Answer, Core};
use crate::kernel::Kernel;
use crate::loaded::Loaded;
use bpf::{Listing, Machine, ProgramId};
use callback::Within;
use schedsim::{CpuId, Time};
use std::sync::Arc;

/// Where the text of a trace goes, some lines at a time.
pub type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// The text that is kept before it is handed on.
const CHUNK: usize = 1 << 15;
/// The text of a callback that is kept until it is known whether it is of a wanted task.
const MOST_HELD: usize = 1 << 20;

/// Writes down what a scheduler does.
#[derive(Clone)]
pub struct Tracer {
    filter: Arc<Filter>,
    /// The names of the tasks, by number.
    names: Arc<[String]>,
    listing: Arc<Listing>,
    to: Sink,
    text: String,
    /// Whether the reason was written for which the scheduler ended.
    has_ended: bool,
}

impl Tracer {
    /// A trace of what `filter` lets through, to `to`. `names` are those of the tasks by number; one
    /// without a name is called as in the scheduler's memory.
    pub fn new(loaded: &Loaded, filter: Arc<Filter>, names: Arc<[String]>, to: Sink) -> Tracer {
        let has_lines = filter.depth >= Depth::Lines;
        let listing = if has_lines { loaded.object().listing() } else { Listing::default() };
        let listing = Arc::new(listing);
        Tracer { filter, names, listing, to, text: String::new(), has_ended: false }
    }

    /// Calls a callback's program, and writes down what it does if it is wanted.
    pub(crate) fn run(
        &mut self,
        machine: &mut Machine,
        mut kernel: Kernel<'_>,
        callback: Callback,
        program: ProgramId,
        arguments: Arguments<'_>,
    ) -> Answer<u64> {
        let (now, cpu) = (kernel.cx.now(), kernel.core.this);
        kernel.core.moved.iter_mut().for_each(Vec::clear);
        if !self.filter.wants(callback, cpu, now) {
            return arguments.run(machine, &mut kernel, program);
        }
        let begins = format!("{}{}", place(cpu, now), callback.name());
        let mut within = Within::new(kernel, self, callback, begins);
        within.begin(machine, program, arguments);
        let answer = arguments.run(machine, &mut within, program);
        within.end(machine, &answer);
        answer
    }

    /// Writes down why the scheduler is at its end, if it is and that was not said. It is always
    /// wanted.
    pub(crate) fn end(&mut self, core: &Core, now: Time) {
        if let Some(reason) = core.exit.as_ref().filter(|_| !self.has_ended) {
            self.has_ended = true;
            self.text += &format!("{}ejected: {reason}\n", place(core.this, now));
            self.hand_on(0);
        }
    }

    /// Hands the text on if it is longer than `least`.
    fn hand_on(&mut self, least: usize) {
        if self.text.len() > least {
            (self.to)(&self.text);
            self.text.clear();
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.hand_on(0);
    }
}

/// How a program is called: as an operation with its arguments, or as the function of a timer.
#[derive(Clone, Copy)]
pub(crate) enum Arguments<'a> {
    Operation(&'a [u64]),
    Timer { callback: u64, arguments: [u64; 5] },
}

impl Arguments<'_> {
    fn run(
        &self,
        machine: &mut Machine,
        outside: &mut impl bpf::Outside,
        program: ProgramId,
    ) -> Answer<u64> {
        match *self {
            Arguments::Operation(arguments) => machine.run(outside, program, arguments),
            Arguments::Timer { callback, arguments } => machine.call(outside, callback, arguments),
        }
    }

    fn values(&self) -> &[u64] {
        match self {
            Arguments::Operation(arguments) => arguments,
            Arguments::Timer { arguments, .. } => arguments,
        }
    }
}

/// Where and when, as `perf script` and ftrace begin their lines.
fn place(cpu: CpuId, now: Time) -> String {
    format!("[{:03}] {}.{:09}: ", cpu.0, now.0 / 1_000_000_000, now.0 % 1_000_000_000)
}
