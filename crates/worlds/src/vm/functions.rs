//! Attributes instructions to the functions of the kernel.
//!
//! A QEMU plugin counts by address in a boot of its own. The reports of this boot must equal those
//! of the boots without it, byte for byte: so counting changes no number. The kernel's addresses
//! never vary (`nokaslr`), so its table of symbols is read once, in a guest, and kept.

use super::{Guest, Settled, Transcript, boot, kernel};
use program::Error;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, Session};
use std::collections::BTreeMap;
use std::fs;

/// Lower addresses belong to the runner.
const KERNEL: u64 = 1 << 63;

/// The functions of a kernel by address, rising.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbols {
    functions: Vec<(u64, String)>,
}

impl Symbols {
    /// Those of the guest's kernel, from the cache, or from a boot of its own.
    ///
    /// # Errors
    /// As of [`boot()`].
    pub fn of(guest: &Guest) -> Result<Symbols, Error> {
        let directory = kernel::cache()?.with_file_name("symbols");
        let path = directory.join(&guest.kernel.sha256);
        if let Ok(text) = fs::read_to_string(&path) {
            return Ok(Symbols::read(&text));
        }
        let session = Session { symbols: true, ..Session::default() };
        let told = boot(&Guest { session, ..guest.clone() }, &mut |_| {})?;
        let some = |event: &Event| {
            if let Event::Symbols { text } = event { Some(text.clone()) } else { None }
        };
        let text: String = told.events.iter().filter_map(some).collect();
        fs::create_dir_all(&directory).map_err(|error| Error::output(&directory, error))?;
        program::write_whole(&path, text.as_bytes())?;
        Ok(Symbols::read(&text))
    }

    fn read(text: &str) -> Symbols {
        let line = |line: &str| {
            let (address, name) = line.split_once(' ')?;
            Some((u64::from_str_radix(address, 16).ok()?, name.to_string()))
        };
        let mut functions: Vec<_> = text.lines().filter_map(line).collect();
        functions.sort();
        functions.dedup_by_key(|(address, _)| *address);
        Symbols { functions }
    }

    /// The function that an address belongs to.
    fn name(&self, address: u64) -> &str {
        if address < KERNEL {
            return "(the task itself)";
        }
        match self.functions.partition_point(|&(begin, _)| begin <= address) {
            0 => "(unknown)",
            after => &self.functions[after - 1].1,
        }
    }
}

/// The instructions of a job's windows, by function, the largest number first.
pub fn split(transcript: &Transcript, symbols: &Symbols, job: usize) -> Vec<(String, u64)> {
    let window_of =
        |event: &Event| if let Event::Sample { job, .. } = event { Some(*job) } else { None };
    let jobs: Vec<usize> = transcript.events.iter().filter_map(window_of).collect();
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    for line in transcript.counts.as_deref().unwrap_or_default().lines() {
        let mut words = line.split(' ');
        let number =
            |word: Option<&str>, radix| word.and_then(|word| u64::from_str_radix(word, radix).ok());
        let (Some(window), Some(address), Some(count)) =
            (number(words.next(), 10), number(words.next(), 16), number(words.next(), 10))
        else {
            continue;
        };
        if jobs.get(window as usize) == Some(&job) {
            *functions.entry(symbols.name(address)).or_default() += count;
        }
    }
    let mut functions: Vec<(String, u64)> =
        functions.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
    functions.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    functions
}

/// Runs `jobs` once more, with the plugin, and checks that the guest reports the same as `without`.
///
/// # Errors
/// [`Error::Irreproducible`] if it does not, or what [`boot()`] says.
pub fn count(settled: &Settled, jobs: &[Job], without: &Transcript) -> Result<Transcript, Error> {
    let counted = settled.count(jobs)?;
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
        let symbols = Symbols::read("ffffffff81000000 schedule\nffffffff81000100 yield\n");
        let sample = |job| Event::Sample { job, ns: 1, operations: 1 };
        let counts = "0 ffffffff81000004 7\n0 ffffffff81000104 2\n0 400000 1\n1 ffffffff81000004 \
                      100\n"
            .to_string();
        let events = vec![sample(0), sample(1)];
        let (lines, console) = (Vec::new(), String::new());
        let transcript = Transcript { lines, events, counts: Some(counts), console };
        let named = |job| split(&transcript, &symbols, job);
        assert_eq!(
            named(0),
            [
                ("schedule".to_string(), 7),
                ("yield".to_string(), 2),
                ("(the task itself)".to_string(), 1)
            ]
        );
        assert_eq!(named(1), [("schedule".to_string(), 100)]);
    }
}
