//! A schedule of one CPU as a history of `schedlab-vectors` (conformance/README.md): what happened
//! to the CPU's fair tasks, and who ran. Its decisions can be judged; state is not in it.
//!
//! Of the busy periods of the CPU the longest is written. A task of a real-time class is no task of
//! the fair queue: the history's clock stands while one runs.

mod periods;

pub use periods::Written;

use super::Names;
use crate::selection::Selection;
use crate::trace_source::TraceSource;
use periods::{Entry, Period, Periods, What};
use program::{Error, Whole};
use schedsim::policy::weight_of;
use schedsim::{CpuId, Nanos, TaskId};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::Path;

/// By how much CPU time a task's share may be off, in ns: some slices of a few tasks. A scheduler
/// that does not share by weight is off by more and more.
const TOLERANCE: u64 = 50_000_000;

/// Writes the longest busy period of `cpu` of `source` to the file `to`; a trace of one CPU needs no
/// choice. Says what is left out.
///
/// # Errors
/// If the trace does not say who was ready when, or at which weight.
pub fn export_vectors(source: &TraceSource, cpu: Option<u16>, to: &Path) -> Result<Written, Error> {
    let refused = |why: &str| Error::Input(format!("{}: {why}", source.header.workload));
    if to.extension().is_some_and(|extension| extension == "zst") {
        let name = to.display();
        return Err(Error::Usage(format!(
            "schedlab-vectors reads plain lines; leave out the .zst of {name}"
        )));
    }
    let cpus = source.header.cpus;
    let cpu = match cpu {
        Some(cpu) => cpu,
        None if cpus == 1 => 0,
        None => {
            return Err(Error::Usage(format!(
                "a history is of one CPU, and the trace has {cpus}; choose one with --cpus"
            )));
        }
    };
    if source.lost > 0 {
        return Err(refused(&format!(
            "{} events were lost, so who is ready is not known; record with a larger buffer",
            source.lost
        )));
    }
    if source.is_inferred {
        return Err(refused(
            "this JSON has neither priorities nor why a task stopped; give the trace or recording \
             that it was made of",
        ));
    }
    let tasks = &source.header.tasks;
    if tasks.is_empty() {
        return Err(refused(
            "its tasks have no priorities, they were drawn while it was simulated; give the trace \
             of a closed workload or a recording",
        ));
    }
    let fair = tasks.iter().map(|task| task.prio >= 100).collect();
    let mut periods = Periods::new(CpuId(cpu), fair);
    source.feed(vec![&mut periods])?;
    let name = |task: TaskId| {
        let known = Names::new(tasks);
        let name = known.of(task);
        format!("{}/{}", name.comm, name.tid)
    };
    let (longest, left) = periods.finish().map_err(|fault| refused(&fault.sentence(name)))?;
    if let Some(&(task, _)) = longest.tasks.iter().find(|(task, _)| source.is_reprioritised(*task))
    {
        let task = name(task);
        return Err(refused(&format!(
            "the priority of {task} changed while it was recorded, and which one held when is not \
             kept; record after it is set"
        )));
    }
    let failed = |error| Error::output(to, error);
    let mut file = BufWriter::new(Whole::create(to).map_err(failed)?);
    write(&mut file, source, cpu, &longest, to).map_err(failed)?;
    let whole = file.into_inner().map_err(IntoInnerError::into_error);
    whole.and_then(Whole::finish).map_err(failed)?;
    Ok(left)
}

/// The CPU that is chosen; [`export_vectors`] looks at the others itself, to see who comes and goes.
///
/// # Errors
/// If the choice hides tasks that may have been ready, or is of several CPUs.
pub fn chosen_cpu(part: &mut Selection) -> Result<Option<u16>, Error> {
    if part.names_tasks() {
        return Err(Error::Usage(
            "a history has all tasks of its CPU, or it would not say who waited; leave out --comm"
                .to_string(),
        ));
    }
    match part.cpus.take() {
        None => Ok(None),
        Some(cpus) => match cpus.only() {
            Some(cpu) => Ok(Some(cpu)),
            None => Err(Error::Usage("a history is of one CPU; name one with --cpus".to_string())),
        },
    }
}

fn write(
    out: &mut impl Write,
    source: &TraceSource,
    cpu: u16,
    period: &Period,
    to: &Path,
) -> io::Result<()> {
    let names = Names::new(&source.header.tasks);
    let plain = |text: String| -> String {
        text.chars().map(|c| if c.is_control() { '?' } else { c }).take(200).collect()
    };
    let header = &source.header;
    let stem = to.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("history");
    let (begin, length) = (Nanos(period.begins.0), Nanos(period.length()));
    let from = format!(
        ", CPU {cpu}, {length} from {begin} on; exported by schedlab {}. It does not say tick and \
         requests: both are 1 ns here",
        env!("CARGO_PKG_VERSION")
    );
    let of = plain(format!("{} under {}", header.workload, header.candidate));
    line(
        out,
        &json!({
            "format": 1, "name": plain(stem.to_string()), "kind": "history",
            "claims": "proportional", "properties": ["conserve", "share"],
            "source": of + &from, "tolerance": TOLERANCE,
        }),
    )?;
    line(out, &json!({"at": 0, "op": "reset", "tick": 1, "slice": 1}))?;
    let mut numbers = BTreeMap::from([(TaskId::NONE, 0)]);
    for &(task, _) in &period.tasks {
        let number = numbers.len();
        numbers.insert(task, number);
        let name = names.of(task);
        line(
            out,
            &json!({
                "at": 0, "op": "task", "task": number, "weight": weight_of(name.prio), "slice": 1,
                "note": plain(format!("{}/{}", name.comm, name.tid)),
            }),
        )?;
    }
    for task in period.waited() {
        line(out, &json!({"at": 0, "op": "wake", "task": numbers[&task]}))?;
    }
    if let Some(runs) = period.ran {
        line(out, &json!({"at": 0, "op": "pick", "then": {"runs": numbers[&runs]}}))?;
    }
    for &Entry { at, what } in &period.entries {
        let at = at - period.clock;
        let event = match what {
            What::Wake(task) => json!({"at": at, "op": "wake", "task": numbers[&task]}),
            What::New(task) => json!({"at": at, "op": "new", "task": numbers[&task]}),
            What::Block => json!({"at": at, "op": "block"}),
            What::Exit => json!({"at": at, "op": "exit"}),
            What::Pick(task) => json!({"at": at, "op": "pick", "then": {"runs": numbers[&task]}}),
        };
        line(out, &event)?;
    }
    Ok(())
}

fn line(out: &mut impl Write, value: &serde_json::Value) -> io::Result<()> {
    writeln!(out, "{value}")
}
