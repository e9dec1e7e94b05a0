//! Traces as tables: one row for each event, and one for each task.

use crate::table::Table;
use crate::work::work;
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use formats::trace_file::Header;
use formats::trace_source::TraceSource;
use pyo3::prelude::*;
use schedsim::trace::{Event, EventKind, Observer, OverheadKind, PrevState, WakeContext};
use schedsim::{CpuId, Nanos, TaskId};
use std::path::PathBuf;
use std::sync::Arc;
use strum::VariantNames;

const EVENTS: [&str; 13] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "sched_migrate_task",
    "job_release",
    "job_complete",
    "overhead",
    "sched_pi_setprio",
    "contention_begin",
];

/// A recording or a run, event by event.
#[pyclass(frozen, get_all, module = "schedlab")]
pub struct Trace {
    /// The workload.
    workload: String,
    /// The policy; `recorded` for a recording.
    policy: String,
    /// The number of CPUs.
    cpus: u16,
    /// The seed of a run.
    seed: u64,
    /// The time of the last event.
    end_ns: u64,
    /// The events, in order of time.
    events: Py<Table>,
    /// The tasks.
    tasks: Py<Table>,
}

/// Reads a recording of perf or a trace that `schedlab run --trace` wrote.
#[pyfunction]
pub fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
    let (header, end, columns) = work(py, None, move || {
        let source = TraceSource::open(&path)?;
        let mut columns = Columns::default();
        let end = source.feed(vec![&mut columns])?;
        Ok((source.header, end, columns))
    })?;
    let (events, tasks) = (Py::new(py, columns.table(py)?)?, Py::new(py, tasks(py, &header)?)?);
    let Header { workload, candidate, cpus, seed, .. } = header;
    Ok(Trace { workload, policy: candidate, cpus, seed, end_ns: end.0, events, tasks })
}

fn tasks(py: Python<'_>, header: &Header) -> PyResult<Table> {
    let all = &header.tasks;
    let ids: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..all.len() as u32));
    let names: ArrayRef =
        Arc::new(StringArray::from_iter_values(all.iter().map(|task| &task.name)));
    let pids: ArrayRef = Arc::new(UInt32Array::from_iter_values(all.iter().map(|task| task.pid)));
    let tgids: ArrayRef = Arc::new(UInt32Array::from_iter_values(all.iter().map(|task| task.tgid)));
    let prios: ArrayRef =
        Arc::new(UInt16Array::from_iter_values(all.iter().map(|task| u16::from(task.prio))));
    let columns = [("task", ids), ("name", names), ("pid", pids), ("tgid", tgids), ("prio", prios)];
    Table::of(py, columns.map(|(name, column)| (name.to_string(), column)).into())
}

/// Events by column.
#[derive(Default)]
struct Columns {
    time: Vec<u64>,
    cpu: Vec<u16>,
    event: Vec<i8>,
    task: Vec<Option<u32>>,
    prev: Vec<Option<u32>>,
    prev_state: Vec<Option<i8>>,
    parent: Vec<Option<u32>>,
    from_cpu: Vec<Option<u16>>,
    target_cpu: Vec<Option<u16>>,
    context: Vec<Option<i8>>,
    overhead: Vec<Option<i8>>,
    duration: Vec<Option<u64>>,
}

/// The fields of an event besides its time and its CPU.
#[derive(Default)]
struct Fields {
    event: i8,
    task: Option<TaskId>,
    prev: Option<TaskId>,
    prev_state: Option<i8>,
    parent: Option<TaskId>,
    from_cpu: Option<CpuId>,
    target_cpu: Option<CpuId>,
    context: Option<i8>,
    overhead: Option<i8>,
    duration: Option<Nanos>,
}

impl Fields {
    fn of(kind: EventKind) -> Fields {
        let of_task = |event, task| Fields { event, task: Some(task), ..Fields::default() };
        match kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                let state = Some(prev_state as i8);
                Fields { prev: Some(prev), prev_state: state, ..of_task(0, next) }
            }
            EventKind::SchedWaking { task, target, context } => {
                let context = Some(context as i8);
                Fields { target_cpu: Some(target), context, ..of_task(1, task) }
            }
            EventKind::SchedWakeup { task, target } => {
                Fields { target_cpu: Some(target), ..of_task(2, task) }
            }
            EventKind::SchedWakeupNew { task, target } => {
                Fields { target_cpu: Some(target), ..of_task(3, task) }
            }
            EventKind::SchedProcessFork { parent, child } => {
                Fields { parent: Some(parent), ..of_task(4, child) }
            }
            EventKind::SchedProcessExec { task } => of_task(5, task),
            EventKind::SchedProcessExit { task } => of_task(6, task),
            EventKind::SchedMigrateTask { task, from, to } => {
                Fields { from_cpu: Some(from), target_cpu: Some(to), ..of_task(7, task) }
            }
            EventKind::JobRelease { task } => of_task(8, task),
            EventKind::JobComplete { task, demand } => {
                Fields { duration: Some(demand), ..of_task(9, task) }
            }
            EventKind::Overhead { task, kind, spent } => {
                Fields { overhead: Some(kind as i8), duration: Some(spent), ..of_task(10, task) }
            }
            EventKind::SchedPiSetprio { task, .. } => of_task(11, task),
            EventKind::ContentionBegin { task, .. } => of_task(12, task),
        }
    }
}

impl Observer for Columns {
    fn events(&mut self, chunk: &[Event]) {
        // The idle task has no id.
        let id =
            |task: Option<TaskId>| task.filter(|task| *task != TaskId::NONE).map(|task| task.0);
        for event in chunk {
            let fields = Fields::of(event.kind);
            self.time.push(event.time.0);
            self.cpu.push(event.cpu.0);
            self.event.push(fields.event);
            self.task.push(id(fields.task));
            self.prev.push(id(fields.prev));
            self.prev_state.push(fields.prev_state);
            self.parent.push(id(fields.parent));
            self.from_cpu.push(fields.from_cpu.map(|cpu| cpu.0));
            self.target_cpu.push(fields.target_cpu.map(|cpu| cpu.0));
            self.context.push(fields.context);
            self.overhead.push(fields.overhead);
            self.duration.push(fields.duration.map(|duration| duration.0));
        }
    }
}

impl Columns {
    fn table(self, py: Python<'_>) -> PyResult<Table> {
        let task = |ids: Vec<Option<u32>>| Arc::new(UInt32Array::from(ids)) as ArrayRef;
        let cpu = |cpus: Vec<Option<u16>>| Arc::new(UInt16Array::from(cpus)) as ArrayRef;
        let overheads = OverheadKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>();
        let columns: [(&str, ArrayRef); 12] = [
            ("time_ns", Arc::new(UInt64Array::from(self.time))),
            ("cpu", Arc::new(UInt16Array::from(self.cpu))),
            ("event", words(Int8Array::from(self.event), &EVENTS)),
            ("task", task(self.task)),
            ("prev", task(self.prev)),
            ("prev_state", words(Int8Array::from(self.prev_state), PrevState::VARIANTS)),
            ("parent", task(self.parent)),
            ("from_cpu", cpu(self.from_cpu)),
            ("target_cpu", cpu(self.target_cpu)),
            ("context", words(Int8Array::from(self.context), WakeContext::VARIANTS)),
            ("overhead", words(Int8Array::from(self.overhead), &overheads)),
            ("duration_ns", Arc::new(UInt64Array::from(self.duration))),
        ];
        Table::of(py, columns.map(|(name, column)| (name.to_string(), column)).into())
    }
}

/// A column with few different words, each stored once.
fn words(keys: Int8Array, words: &[&str]) -> ArrayRef {
    let words = Arc::new(StringArray::from_iter_values(words));
    Arc::new(DictionaryArray::<Int8Type>::new(keys, words))
}
