//! Events as rows of a table: one column for each field, empty where the event has no such field.
//!
//! Python's `trace.events` and [Parquet files](crate::trace_file) have these columns. A row is
//! the whole event: [`event`] gives back what [`cells`] took apart.

use schedsim::trace::{Event, EventKind, OverheadKind, PrevState, WakeContext};
use schedsim::{CpuId, Nanos, TaskId, Time};
use strum::{VariantArray, VariantNames};

/// The version of the columns.
pub const VERSION: u32 = 1;

/// A column.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What its cells are.
    pub kind: Kind,
    /// Whether cells may be empty.
    pub optional: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// What the cells of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number, and its bits.
    Whole(u8),
    /// A word; the cell is its place in the list.
    Word(&'static [&'static str]),
}

/// The words for kinds of events, those of Linux's tracepoints first.
pub const EVENTS: [&str; 13] = [
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

/// The number of columns.
pub const WIDTH: usize = 16;

/// The cells of a row, by column.
pub type Cells = [Option<u64>; WIDTH];

// Places of the columns.
const TIME: usize = 0;
const CPU: usize = 1;
const EVENT: usize = 2;
const TASK: usize = 3;
const PREV: usize = 4;
const PREV_STATE: usize = 5;
const PARENT: usize = 6;
const FROM: usize = 7;
const TARGET: usize = 8;
const CONTEXT: usize = 9;
const OVERHEAD: usize = 10;
const DURATION: usize = 11;
const OWNER: usize = 12;
const MUTEX: usize = 13;
const OLD_PRIO: usize = 14;
const NEW_PRIO: usize = 15;

const OVERHEADS: [&str; OverheadKind::ALL.len()] = {
    let mut names = [""; OverheadKind::ALL.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = OverheadKind::ALL[place].name();
        place += 1;
    }
    names
};

const CPU_NUMBER: Kind = Kind::Whole(16);
const TASK_NUMBER: Kind = Kind::Whole(32);

const fn always(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, optional: false, meaning }
}

const fn some(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, optional: true, meaning }
}

/// The columns, in order.
pub const COLUMNS: [Column; WIDTH] = [
    always("time_ns", Kind::Whole(64), "nanoseconds since the beginning; never less than before"),
    always("cpu", CPU_NUMBER, "where it happened; of a waking, the CPU that wakes"),
    always("event", Kind::Word(&EVENTS), "what happened"),
    some(
        "task",
        TASK_NUMBER,
        "the task it is about; of a switch the one that runs now, of a fork the child; empty is the idle task",
    ),
    some("prev", TASK_NUMBER, "of a switch: the task that ran; empty is the idle task"),
    some(
        "prev_state",
        Kind::Word(<PrevState as VariantNames>::VARIANTS),
        "of a switch: why that task stopped",
    ),
    some("parent", TASK_NUMBER, "of a fork: the task that called it"),
    some("from_cpu", CPU_NUMBER, "of a migration: where the task was"),
    some("target_cpu", CPU_NUMBER, "of a wakeup or a migration: where the task is now"),
    some(
        "context",
        Kind::Word(<WakeContext as VariantNames>::VARIANTS),
        "of a waking: what woke the task",
    ),
    some("overhead", Kind::Word(&OVERHEADS), "of overhead: what it is for"),
    some(
        "duration_ns",
        Kind::Whole(64),
        "of overhead: how long; of a completed job: its bursts and pauses",
    ),
    some("owner", TASK_NUMBER, "of a contention: the task that holds the mutex"),
    some("mutex", Kind::Whole(32), "of a contention: the number of the mutex"),
    some("old_prio", Kind::Whole(8), "of an inheritance: the kernel's priority before"),
    some("new_prio", Kind::Whole(8), "of an inheritance: the kernel's priority from now on"),
];

/// The row of an event.
pub fn cells(event: &Event) -> Cells {
    let mut cells = [None; WIDTH];
    cells[TIME] = Some(event.time.0);
    cells[CPU] = Some(event.cpu.0.into());
    let mut set = |column: usize, value: u64| cells[column] = Some(value);
    let cpu = |cpu: CpuId| u64::from(cpu.0);
    let (kind, task) = match event.kind {
        EventKind::SchedSwitch { prev, next, prev_state } => {
            if let Some(prev) = number(prev) {
                set(PREV, prev);
            }
            set(PREV_STATE, prev_state as u64);
            (0, next)
        }
        EventKind::SchedWaking { task, target, context } => {
            set(TARGET, cpu(target));
            set(CONTEXT, context as u64);
            (1, task)
        }
        EventKind::SchedWakeup { task, target } => {
            set(TARGET, cpu(target));
            (2, task)
        }
        EventKind::SchedWakeupNew { task, target } => {
            set(TARGET, cpu(target));
            (3, task)
        }
        EventKind::SchedProcessFork { parent, child } => {
            if let Some(parent) = number(parent) {
                set(PARENT, parent);
            }
            (4, child)
        }
        EventKind::SchedProcessExec { task } => (5, task),
        EventKind::SchedProcessExit { task } => (6, task),
        EventKind::SchedMigrateTask { task, from, to } => {
            set(FROM, cpu(from));
            set(TARGET, cpu(to));
            (7, task)
        }
        EventKind::JobRelease { task } => (8, task),
        EventKind::JobComplete { task, demand } => {
            set(DURATION, demand.0);
            (9, task)
        }
        EventKind::Overhead { task, kind, spent } => {
            set(OVERHEAD, kind as u64);
            set(DURATION, spent.0);
            (10, task)
        }
        EventKind::SchedPiSetprio { task, old, new } => {
            set(OLD_PRIO, old.into());
            set(NEW_PRIO, new.into());
            (11, task)
        }
        EventKind::ContentionBegin { task, owner, mutex } => {
            if let Some(owner) = number(owner) {
                set(OWNER, owner);
            }
            set(MUTEX, mutex.into());
            (12, task)
        }
    };
    set(EVENT, kind);
    cells[TASK] = number(task);
    cells
}

/// The event of a row; `None` if the row is none.
pub fn event(cells: &Cells) -> Option<Event> {
    let cpu = |column: usize| Some(CpuId(u16::try_from(cells[column]?).ok()?));
    let prio = |column: usize| u8::try_from(cells[column]?).ok();
    let task = |column: usize| match cells[column] {
        None => Some(TaskId::NONE),
        Some(number) => u32::try_from(number).ok().map(TaskId).filter(|&task| task != TaskId::NONE),
    };
    let of = task(TASK)?;
    fn at<T: Copy>(cells: &Cells, column: usize, all: &[T]) -> Option<T> {
        all.get(usize::try_from(cells[column]?).ok()?).copied()
    }
    let kind = match cells[EVENT]? {
        0 => EventKind::SchedSwitch {
            prev: task(PREV)?,
            next: of,
            prev_state: at(cells, PREV_STATE, <PrevState as VariantArray>::VARIANTS)?,
        },
        1 => EventKind::SchedWaking {
            task: of,
            target: cpu(TARGET)?,
            context: at(cells, CONTEXT, <WakeContext as VariantArray>::VARIANTS)?,
        },
        2 => EventKind::SchedWakeup { task: of, target: cpu(TARGET)? },
        3 => EventKind::SchedWakeupNew { task: of, target: cpu(TARGET)? },
        4 => EventKind::SchedProcessFork { parent: task(PARENT)?, child: of },
        5 => EventKind::SchedProcessExec { task: of },
        6 => EventKind::SchedProcessExit { task: of },
        7 => EventKind::SchedMigrateTask { task: of, from: cpu(FROM)?, to: cpu(TARGET)? },
        8 => EventKind::JobRelease { task: of },
        9 => EventKind::JobComplete { task: of, demand: Nanos(cells[DURATION]?) },
        10 => EventKind::Overhead {
            task: of,
            kind: at(cells, OVERHEAD, OverheadKind::ALL)?,
            spent: Nanos(cells[DURATION]?),
        },
        11 => EventKind::SchedPiSetprio { task: of, old: prio(OLD_PRIO)?, new: prio(NEW_PRIO)? },
        12 => EventKind::ContentionBegin {
            task: of,
            owner: task(OWNER)?,
            mutex: u32::try_from(cells[MUTEX]?).ok()?,
        },
        _ => return None,
    };
    Some(Event { time: Time(cells[TIME]?), cpu: cpu(CPU)?, kind })
}

/// The number of a task; the idle task has none.
fn number(task: TaskId) -> Option<u64> {
    (task != TaskId::NONE).then_some(task.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn a_row_is_the_whole_event_and_other_rows_are_none() {
        let (task, cpu, other) = (TaskId(3), CpuId(2), TaskId::NONE);
        let kinds = [
            EventKind::SchedSwitch { prev: task, next: other, prev_state: PrevState::Dead },
            EventKind::SchedSwitch { prev: other, next: task, prev_state: PrevState::Runnable },
            EventKind::SchedWaking { task, target: cpu, context: WakeContext::Unknown },
            EventKind::SchedWakeup { task, target: cpu },
            EventKind::SchedWakeupNew { task, target: cpu },
            EventKind::SchedProcessFork { parent: other, child: TaskId(9) },
            EventKind::SchedProcessExec { task },
            EventKind::SchedProcessExit { task },
            EventKind::SchedMigrateTask { task, from: cpu, to: CpuId(7) },
            EventKind::JobRelease { task },
            EventKind::JobComplete { task, demand: Nanos(u64::MAX) },
            EventKind::Overhead { task: other, kind: OverheadKind::Calls, spent: Nanos(5) },
            EventKind::SchedPiSetprio { task, old: 139, new: 3 },
            EventKind::ContentionBegin { task, owner: TaskId(9), mutex: u32::MAX },
        ];
        let mut kinds_seen = [false; EVENTS.len()];
        for kind in kinds {
            let whole = Event { time: Time(u64::MAX), cpu: CpuId(1023), kind };
            let row = cells(&whole);
            assert_eq!(event(&row), Some(whole));
            kinds_seen[usize::try_from(row[EVENT].expect("a kind")).expect("small")] = true;
            for (column, of) in
                COLUMNS.iter().enumerate().filter(|(place, _)| row[*place].is_some())
            {
                // A number that is too large for its field is no event.
                let mut wrong = row;
                wrong[column] = Some(u64::MAX);
                if of.kind != Kind::Whole(64) {
                    assert_eq!(event(&wrong), None, "{}", of.name);
                }
                wrong[column] = None;
                assert!(event(&wrong) != Some(whole), "{}", of.name);
            }
        }
        assert_eq!(kinds_seen, [true; EVENTS.len()], "a kind of event was not tried");
    }

    #[test]
    fn the_documents_table_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace.md");
        let text = std::fs::read_to_string(path).expect("docs/trace.md");
        let mut table = String::from("| column | cells | what |\n|---|---|---|\n");
        for Column { name, kind, optional, meaning } in &COLUMNS {
            let cells = match kind {
                Kind::Whole(bits) => format!("{bits} bits"),
                Kind::Word(words) => {
                    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
                }
            };
            let or_empty = if *optional { ", or empty" } else { "" };
            writeln!(table, "| `{name}` | {cells}{or_empty} | {meaning} |").expect("a string");
        }
        let (begin, end) = ("<!-- columns -->\n", "<!-- end of columns -->");
        let (before, rest) = text.split_once(begin).expect("the mark of the columns");
        let (_, behind) = rest.split_once(end).expect("the mark of their end");
        let right = format!("{before}{begin}{table}{end}{behind}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &right).expect("docs/trace.md");
        }
        assert!(
            text == right,
            "docs/trace.md has other columns: UPDATE_DOCS=1 cargo test -p schedlab-formats"
        );
    }
}
