//! What a compiled scheduler does, written down: which part, and where to.
//!
//! A filter is words in any order, as in `enqueue,dispatch task=redis at=2ms..3ms lines`.

use super::Compiled;
use crate::experiment::Candidate;
use formats::selection::{CpuSet, Window};
use program::{Error, no_such};
use sched_ext::Callback;
use sched_ext::trace::{Depth, Filter, Sink, Task, Tracer};
use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::policy::Promises;
use schedsim::trace::Trace;
use schedsim::{Machine, QueueCost};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The words that say how much is shown.
const DEPTHS: [(&str, Depth); 4] = [
    ("callbacks", Depth::Callbacks),
    ("calls", Depth::Calls),
    ("writes", Depth::Writes),
    ("lines", Depth::Lines),
];
/// The words with a value.
const KEYS: [&str; 4] = ["task", "cpu", "at", "maps"];
/// Instructions as well.
const COSTS: &str = "costs";
/// All callbacks.
const ALL: &str = "all";
/// Where a user reads on.
const SEE: &str = "`schedlab run --help` shows the words of a filter.";

/// What is traced, as a user writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BpfFilter(Arc<Filter>);

impl FromStr for BpfFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<BpfFilter, String> {
        let mut filter = Filter::default();
        let mut seen = BTreeSet::new();
        let mut depth = None;
        for word in words(text)? {
            let Some((key, value)) = word.split_once('=') else {
                match DEPTHS.iter().find(|(name, _)| *name == word) {
                    Some(&(_, of)) => depth = depth.max(Some(of)),
                    None if word == COSTS => filter.costs = true,
                    None if word == "maps" => filter.maps = filter.maps.or(Some(Vec::new())),
                    None => filter.callbacks.extend(callbacks(&word)?),
                }
                continue;
            };
            if !seen.insert(key.to_string()) {
                return Err(format!("`{key}=` is given twice: give one, as in {key}=A,B"));
            }
            let parts = || value.split(',').filter(|part| !part.is_empty()).map(str::to_string);
            if value.is_empty() {
                return Err(format!("`{key}=` has no value. {SEE}"));
            }
            match key {
                "task" => filter.tasks.extend(parts().map(|part| match part.parse() {
                    Ok(pid) => Task::Pid(pid),
                    Err(_) => Task::Named(part),
                })),
                "cpu" => filter.cpus = Some(value.parse::<CpuSet>()?.numbers().collect()),
                "at" => {
                    let window = value.parse::<Window>().map_err(|why| format!("at={why}"))?;
                    (filter.from, filter.to) = window.bounds();
                }
                "maps" => filter.maps = Some(parts().collect()),
                _ => return Err(no_such("key", key, &KEYS.map(str::to_string), SEE)),
            }
        }
        filter.depth = depth.unwrap_or_default();
        Ok(BpfFilter(Arc::new(filter)))
    }
}

/// The callbacks of a list of names; none stands for all.
fn callbacks(word: &str) -> Result<Vec<Callback>, String> {
    let names = word.split(',').filter(|name| !name.is_empty() && *name != ALL);
    let known = |name: &str| Callback::all().find(|callback| callback.name() == name);
    names
        .map(|name| {
            known(name).ok_or_else(|| {
                let all = Callback::all().map(|callback| callback.name().to_string());
                let others =
                    DEPTHS.iter().map(|(name, _)| *name).chain([COSTS]).map(str::to_string);
                let keys = KEYS.iter().map(|key| format!("{key}="));
                let all: Vec<String> = all.chain(others).chain(keys).collect();
                no_such("callback or word", name, &all, SEE)
            })
        })
        .collect()
}

/// The words of a filter. Within double quotes a space separates none.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            letter if letter.is_whitespace() && !is_quoted => words.push(String::new()),
            letter => words.last_mut().into_iter().for_each(|word| word.push(letter)),
        }
    }
    if is_quoted {
        return Err(format!("`{text}` has a quote without its end"));
    }
    words.retain(|word| !word.is_empty());
    Ok(words)
}

impl BpfFilter {
    /// Refuses what the scheduler or the workload does not have. `names` are those of the tasks, if
    /// they are known before the run.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists what there is.
    pub(crate) fn expect_for(&self, of: &Compiled, names: &[String]) -> Result<(), Error> {
        let Filter { callbacks, tasks, maps, .. } = &*self.0;
        let wrong = |what: String| Error::Usage(format!("--trace-bpf: {of}: {what}"));
        let has: Vec<String> = of.loaded().operations().map(|op| op.name().to_string()).collect();
        for callback in callbacks {
            if let Callback::Op(op) = callback
                && !has.iter().any(|name| name == op.name())
            {
                let what = no_such("callback", op.name(), &has, "It has ");
                return Err(wrong(format!("{what}{}.", has.join(", "))));
            }
        }
        let holders = of.loaded().holders();
        for name in maps.iter().flatten() {
            if !holders.contains(name) {
                return Err(wrong(no_such("map or variable", name, &holders, "").trim().into()));
            }
        }
        for task in tasks {
            let is_there = match task {
                Task::Named(name) => names.is_empty() || names.contains(name),
                Task::Pid(pid) => *pid > 0 && (names.is_empty() || (*pid as usize) <= names.len()),
            };
            if is_there {
                continue;
            }
            let all: BTreeSet<&String> = names.iter().collect();
            let all: Vec<String> = all.into_iter().cloned().collect();
            return Err(match task {
                Task::Named(name) => wrong(no_such("task", name, &all, "").trim().into()),
                Task::Pid(pid) => wrong(format!(
                    "there is no task {pid}: the scheduler knows them by the numbers from 1 to {}",
                    names.len()
                )),
            });
        }
        Ok(())
    }
}

/// A trace of one run, and where its text goes.
pub struct BpfTrace {
    filter: BpfFilter,
    out: Arc<Mutex<Out>>,
    has_begun: AtomicBool,
}

struct Out {
    to: Box<dyn Write + Send>,
    lines: u64,
    failed: Option<std::io::Error>,
}

impl BpfTrace {
    /// A trace of what `filter` lets through, to `to`.
    pub fn new(filter: BpfFilter, to: Box<dyn Write + Send>) -> BpfTrace {
        let out = Out { to, lines: 0, failed: None };
        BpfTrace { filter, out: Arc::new(Mutex::new(out)), has_begun: AtomicBool::new(false) }
    }

    /// What is traced.
    pub fn filter(&self) -> &BpfFilter {
        &self.filter
    }

    /// Writes what is left. Gives the number of lines.
    ///
    /// # Errors
    /// The first one of writing. That who reads has had enough is none.
    pub fn finish(&self) -> std::io::Result<u64> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let flushed = out.to.flush();
        match out.failed.take().map_or(flushed, Err) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(out.lines),
        }
    }

    /// Where the text goes, the first time: a repeated run is not written again.
    fn sink(&self) -> Option<Sink> {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return None;
        }
        let out = Arc::clone(&self.out);
        Some(Arc::new(move |text: &str| {
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            let Out { to, lines, failed } = &mut *out;
            if failed.is_none() {
                *lines += text.lines().count() as u64;
                *failed = to.write_all(program::visible(text).as_bytes()).err();
            }
        }))
    }
}

impl fmt::Debug for BpfTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BpfTrace({:?})", self.filter)
    }
}

/// A scheduler whose first run is written down.
pub(crate) struct Traced<'a> {
    pub scheduler: &'a Compiled,
    pub trace: &'a BpfTrace,
}

impl fmt::Display for Traced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scheduler.fmt(f)
    }
}

impl Candidate for Traced<'_> {
    fn cost(&self, mips: f64) -> Option<QueueCost> {
        self.scheduler.cost(mips)
    }

    fn promises(&self, cpus: u16) -> Promises {
        self.scheduler.promises(cpus)
    }

    fn migrates(&self, cpus: u16) -> bool {
        self.scheduler.migrates(cpus)
    }

    fn run(
        &self,
        source: Source<'_>,
        machine: &Machine,
        options: Options,
        trace: Trace<'_>,
    ) -> Result<Outcome, engine::Error> {
        let Some(sink) = self.trace.sink() else {
            return self.scheduler.run(source, machine, options, trace);
        };
        let names: Arc<[String]> = match source {
            Source::Scripts(workload, _) => {
                workload.tasks.iter().map(|task| task.info.name.clone()).collect()
            }
            Source::Model(_) => Arc::default(),
        };
        let loaded = self.scheduler.loaded();
        let tracer = Tracer::new(loaded, Arc::clone(&self.trace.filter.0), names, sink);
        let policy = self.scheduler.policy_for(source, machine.cpus).traced(tracer);
        engine::simulate(source, machine, policy, options, trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_ext::Op;
    use schedsim::Time;

    fn of(text: &str) -> Result<Filter, String> {
        text.parse::<BpfFilter>().map(|filter| (*filter.0).clone())
    }

    #[test]
    fn a_filter_is_words_in_any_order() {
        let all = of("").expect("all");
        assert_eq!(all, Filter::default());
        assert_eq!(of("all").expect("all"), all);
        let one =
            of("lines at=2ms..3ms task=redis,\"nice 0\",7 enqueue,dispatch cpu=0,2-3 maps costs");
        let other = of(" timer cpu=1 ").expect("a filter");
        assert_eq!(other.callbacks, [Callback::Timer]);
        let named = |name: &str| Task::Named(name.to_string());
        assert_eq!(
            one.expect("a filter"),
            Filter {
                callbacks: vec![Callback::Op(Op::Enqueue), Callback::Op(Op::Dispatch)],
                tasks: vec![named("redis"), named("nice 0"), Task::Pid(7)],
                cpus: Some([0, 2, 3].into()),
                from: Time(2_000_000),
                to: Time(3_000_000),
                depth: Depth::Lines,
                maps: Some(Vec::new()),
                costs: true,
            }
        );
        assert_eq!(of("calls lines callbacks").expect("a filter").depth, Depth::Lines);
        assert_eq!(of("maps=a,b maps").expect("a filter").maps, Some(vec!["a".into(), "b".into()]));
        assert_eq!(of("at=..1s").expect("a filter").from, Time::ZERO);
    }

    #[test]
    fn a_wrong_filter_says_what_is_wrong() {
        for (text, said) in [
            ("enqeue", "named `enqeue`. Did you mean `enqueue`?"),
            ("line", "Did you mean `lines`?"),
            ("tsk=redis", "no key named `tsk`. Did you mean `task`?"),
            ("task", "Did you mean `task=`?"),
            ("task=", "`task=` has no value"),
            ("cpu=x", "`x` is no CPU"),
            ("at=2ms", "has no `..`"),
            ("at=3ms..2ms", "is empty"),
            ("at=2..3", "at="),
            ("task=a task=b", "given twice"),
            ("task=\"a", "without its end"),
        ] {
            let wrong = of(text).expect_err(text);
            assert!(wrong.contains(said), "{text}: {wrong}");
        }
    }
}
