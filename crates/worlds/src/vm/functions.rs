//! Attributes instructions to functions, and to sides: the kernel, a scheduler, the tasks.
//!
//! A QEMU plugin counts by address in a boot of its own. The reports of this boot must equal those
//! of the boots without it, byte for byte: so counting changes no number. The kernel's addresses
//! never vary (`nokaslr`), so its table of symbols is read once, in a guest, and kept. Where the
//! code of a scheduler is, each boot says.

pub mod calls;
mod side;

use super::{Guest, Settled, Transcript, boot, kernel};
use calls::Calls;
use program::Error;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, Session};
pub use side::Side;
use std::collections::BTreeMap;
use std::fs;

/// Lower addresses belong to programs.
const KERNEL: u64 = 1 << 63;

/// The functions of a kernel by address, rising, and the code of programs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Symbols {
    functions: Vec<(u64, String)>,
    /// Code of the scheduler in user space.
    programs: Vec<(u64, u64)>,
    /// Code of the tasks, where it is known.
    tasks: Vec<(u64, u64)>,
}

/// What a job's windows consist of.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Split {
    /// Functions, the one with most instructions first.
    pub functions: Vec<Function>,
    /// The calls of a scheduler's callbacks.
    pub calls: Vec<Calls>,
}

/// A function, and all its instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// As the kernel's symbols have it, without the hash that they put before those in BPF.
    pub name: String,
    /// Whose it is.
    pub side: Side,
    /// How many of them ran.
    pub instructions: u64,
}

impl Split {
    /// Instructions by side, of the sides that have any.
    pub fn sides(&self) -> BTreeMap<Side, u64> {
        let mut sides = BTreeMap::new();
        for function in &self.functions {
            *sides.entry(function.side).or_default() += function.instructions;
        }
        sides
    }

    /// All instructions.
    pub fn all(&self) -> u64 {
        self.functions.iter().map(|function| function.instructions).sum()
    }
}

impl Symbols {
    /// Those of the guest's kernel, from the cache or from a boot of its own, and what `said` has of
    /// its scheduler.
    ///
    /// # Errors
    /// As of [`boot()`].
    pub fn of(guest: &Guest, said: &Transcript) -> Result<Symbols, Error> {
        Ok(Symbols::read(&kernels(guest)?).with(said))
    }

    fn read(text: &str) -> Symbols {
        let line = |line: &str| {
            let (address, name) = line.split_once(' ')?;
            Some((u64::from_str_radix(address, 16).ok()?, name.to_string()))
        };
        let mut functions: Vec<_> = text.lines().filter_map(line).collect();
        functions.sort();
        functions.dedup_by_key(|(address, _)| *address);
        Symbols { functions, ..Symbols::default() }
    }

    fn with(mut self, said: &Transcript) -> Symbols {
        let code = said.events.iter().filter_map(|event| match event {
            Event::SchedulerCode { bpf, programs, tasks } => Some((bpf, programs, tasks)),
            _ => None,
        });
        for (bpf, programs, tasks) in code {
            self.functions.extend(Symbols::read(bpf).functions);
            self.programs.extend(programs);
            self.tasks.extend(tasks);
        }
        self.functions.sort();
        self
    }

    /// The symbol that an address belongs to.
    fn symbol(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|&(begin, _)| begin <= address);
        after.checked_sub(1).map(|at| self.functions[at].1.as_str())
    }

    /// The name of the function that an address belongs to, and its side.
    fn function(&self, address: u64) -> (&str, Side) {
        let is_in =
            |code: &[(u64, u64)]| code.iter().any(|&(from, to)| (from..to).contains(&address));
        if address >= KERNEL {
            let symbol = self.symbol(address).unwrap_or("(unknown)");
            return (plain(symbol), Side::of_symbol(symbol));
        }
        match (is_in(&self.programs), is_in(&self.tasks)) {
            (true, true) => ("(tasks and the scheduler in user space)", Side::Tasks),
            (true, false) => ("(the scheduler in user space)", Side::Program),
            (false, _) => ("(the task itself)", Side::Tasks),
        }
    }

    /// The addresses of the trampolines by which the kernel calls callbacks.
    fn trampolines(&self) -> Vec<u64> {
        let named = self.functions.iter().filter(|(_, name)| calls::callback(name).is_some());
        named.map(|(address, _)| *address).collect()
    }
}

/// The text of a kernel's symbols.
fn kernels(guest: &Guest) -> Result<String, Error> {
    let directory = kernel::cache()?.with_file_name("symbols");
    let path = directory.join(&guest.kernel.sha256);
    if let Ok(text) = fs::read_to_string(&path) {
        return Ok(text);
    }
    let session = Session { symbols: true, ..Session::default() };
    let told = boot(&Guest { session, ..guest.clone() }, &mut |_| {})?;
    let some =
        |event: &Event| if let Event::Symbols { text } = event { Some(text.clone()) } else { None };
    let text: String = told.events.iter().filter_map(some).collect();
    fs::create_dir_all(&directory).map_err(|error| Error::output(&directory, error))?;
    program::write_whole(&path, text.as_bytes())?;
    Ok(text)
}

/// `rr_enqueue` of `bpf_prog_a723c147bdba78ef_rr_enqueue`, and all others as they are.
fn plain(symbol: &str) -> &str {
    let named = symbol.strip_prefix("bpf_prog_").and_then(|hashed| hashed.split_once('_'));
    named.map_or(symbol, |(_, name)| name)
}

/// What the windows of a job consist of, as `transcript` counted them.
pub fn split(transcript: &Transcript, symbols: &Symbols, job: usize) -> Split {
    let window_of =
        |event: &Event| if let Event::Sample { job, .. } = event { Some(*job) } else { None };
    let jobs: Vec<usize> = transcript.events.iter().filter_map(window_of).collect();
    let counts = transcript.counts.as_deref().unwrap_or_default();
    let mut functions: BTreeMap<(&str, Side), u64> = BTreeMap::new();
    for line in counts.lines() {
        let mut words = line.split(' ');
        let number =
            |word: Option<&str>, radix| word.and_then(|word| u64::from_str_radix(word, radix).ok());
        let (Some(window), Some(address), Some(count)) =
            (number(words.next(), 10), number(words.next(), 16), number(words.next(), 10))
        else {
            continue;
        };
        if jobs.get(window as usize) == Some(&job) {
            *functions.entry(symbols.function(address)).or_default() += count;
        }
    }
    let function = |((name, side), instructions): ((&str, Side), u64)| Function {
        name: name.to_string(),
        side,
        instructions,
    };
    let mut functions: Vec<Function> = functions.into_iter().map(function).collect();
    functions.sort_by(|a, b| b.instructions.cmp(&a.instructions).then(a.name.cmp(&b.name)));
    let named = |address| symbols.symbol(address).and_then(calls::callback);
    let calls = calls::read(counts, named, |window| jobs.get(window) == Some(&job));
    Split { functions, calls }
}

/// Runs `jobs` once more, with the plugin, and checks that the guest reports the same as `without`.
///
/// # Errors
/// [`Error::Irreproducible`] if it does not, or what [`boot()`] says.
pub fn count(
    settled: &Settled,
    jobs: &[Job],
    symbols: &Symbols,
    without: &Transcript,
) -> Result<Transcript, Error> {
    let counted = settled.count(jobs, &symbols.trampolines())?;
    match super::proof::difference(&without.lines, &counted.lines) {
        None => Ok(counted),
        Some(difference) => Err(Error::Irreproducible(format!(
            "kernel {} does not say the same while its instructions are looked at: {difference}",
            settled.guest().kernel.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_the_functions_they_lie_in_and_windows_those_of_their_job() {
        let bpf = "ffffffffc0000010 bpf_prog_7585fecbf552b28b_rr_enqueue\nffffffffc0000100 \
                   bpf__sched_ext_ops_enqueue\n"
            .to_string();
        let code = Event::SchedulerCode {
            bpf,
            programs: vec![(0x50_0000, 0x60_0000), (0x70_0000, 0x80_0000)],
            tasks: vec![(0x40_0000, 0x50_0000), (0x70_0000, 0x80_0000)],
        };
        let sample = |job| Event::Sample { job, ns: 1, operations: 1 };
        let counts = "0 ffffffff81000004 7\n0 ffffffff81000104 2\n0 400000 1\n1 ffffffff81000004 \
                      100\n1 ffffffffc0000020 6\n1 ffffffffc0000108 5\n1 501000 4\n1 701000 3\ncall 1 \
                      ffffffffc0000100 11 2\n"
            .to_string();
        let events = vec![code, sample(0), sample(1)];
        let transcript = Transcript { events, counts: Some(counts), ..Transcript::default() };
        let symbols =
            Symbols::read("ffffffff81000000 schedule\nffffffff81000100 dispatch_enqueue\n")
                .with(&transcript);
        assert_eq!(symbols.trampolines(), [0xffff_ffff_c000_0100]);
        let named = |job| {
            let split = split(&transcript, &symbols, job);
            let of = |function: Function| (function.name, function.side, function.instructions);
            (split.functions.into_iter().map(of).collect::<Vec<_>>(), split.calls)
        };
        let one = |name: &str, side, instructions| (name.to_string(), side, instructions);
        let none = named(0);
        assert_eq!(
            none.0,
            [
                one("schedule", Side::Kernel, 7),
                one("dispatch_enqueue", Side::SchedExt, 2),
                one("(the task itself)", Side::Tasks, 1)
            ]
        );
        assert!(none.1.is_empty());
        let (functions, calls) = named(1);
        assert_eq!(
            functions,
            [
                one("schedule", Side::Kernel, 100),
                one("rr_enqueue", Side::Bpf, 6),
                one("bpf__sched_ext_ops_enqueue", Side::Bpf, 5),
                one("(the scheduler in user space)", Side::Program, 4),
                one("(tasks and the scheduler in user space)", Side::Tasks, 3)
            ]
        );
        assert_eq!((calls[0].callback.as_str(), calls[0].mean()), ("enqueue", 11.0));
    }
}
