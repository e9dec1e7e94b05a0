//! Text with one event per line, as `perf script` or the kernel's `trace` file has it, with interrupt
//! flags if they are known.
//!
//! perf's is that of `perf script --ns -F comm,pid,tid,cpu,flags,time,event,trace`; the kernel's has
//! nine digits of a second, as `trace-cmd report -t` prints, and the column of processes
//! (`record-tgid`). Importing the text gives the same events. Jobs and overhead have no tracepoint;
//! the last lines state how many were left out.

use super::names::Name;
use super::{Export, Names, Omitted};
use schedsim::trace::{Event, EventKind, PrevState, WakeContext};
use schedsim::{TaskId, Time};
use std::io::{self, Write};

/// The legend above the kernel's columns.
const FTRACE_COLUMNS: &str = "\
#                                          _-----=> irqs-off/BH-disabled
#                                         / _----=> need-resched
#                                        | / _---=> hardirq/softirq
#                                        || / _--=> preempt-depth
#                                        ||| / _-=> migrate-disable
#                                        |||| /     delay
#           TASK-PID       TGID     CPU#  |||||  TIMESTAMP         FUNCTION
#              | |           |        |   |||||     |                 |
";

/// Whose text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// `perf script`'s.
    Perf,
    /// The kernel's.
    Ftrace,
}

/// Writes a trace as text.
pub struct Text<'a> {
    out: &'a mut dyn Write,
    style: Style,
    names: Names,
    /// By CPU: the running task, for the first columns.
    running: Vec<TaskId>,
    text: Vec<u8>,
    omitted: Omitted,
}

impl<'a> Text<'a> {
    /// Begins the file.
    pub fn new(
        out: &'a mut dyn Write,
        style: Style,
        names: Names,
        cpus: u16,
    ) -> io::Result<Text<'a>> {
        let version = env!("CARGO_PKG_VERSION");
        match style {
            Style::Perf => {
                writeln!(out, "# written by schedlab {version}\n# nrcpus online : {cpus}")?
            }
            Style::Ftrace => write!(
                out,
                "# tracer: nop\n#\n# written by schedlab {version}   #P:{cpus}\n#\n{FTRACE_COLUMNS}"
            )?,
        }
        Ok(Text {
            out,
            style,
            names,
            running: vec![TaskId::NONE; usize::from(cpus)],
            text: Vec::new(),
            omitted: Omitted::default(),
        })
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        let index = event.cpu.index();
        if index >= self.running.len() {
            self.running.resize(index + 1, TaskId::NONE);
        }
        match event.kind {
            EventKind::JobRelease { .. } | EventKind::JobComplete { .. } => {
                self.omitted.jobs += 1;
                return Ok(());
            }
            EventKind::Overhead { .. } => {
                self.omitted.overheads += 1;
                return Ok(());
            }
            EventKind::SchedSwitch { prev, .. } => self.running[index] = prev,
            _ => {}
        }
        let current = self.names.of(self.running[index]);
        let out = &mut self.text;
        let (seconds, nanos) = (event.time.0 / 1_000_000_000, event.time.0 % 1_000_000_000);
        let context = match event.kind {
            EventKind::SchedWaking { context, .. } => Some(context),
            _ => None,
        };
        let cpu = event.cpu.0;
        let Name { comm, tid, tgid, .. } = current;
        match self.style {
            Style::Perf => {
                let flags = match context {
                    Some(WakeContext::Task) => "....  ",
                    Some(WakeContext::Softirq) => "..s.  ",
                    Some(WakeContext::Hardirq) => "..h.  ",
                    Some(WakeContext::Unknown) | None => "",
                };
                write!(out, "{comm} {tgid}/{tid} [{cpu:03}] {flags}{seconds}.{nanos:09}: ")
            }
            Style::Ftrace => {
                let flags = match context {
                    Some(WakeContext::Task) | None => "....1 ",
                    Some(WakeContext::Softirq) => "..s.1 ",
                    Some(WakeContext::Hardirq) => "..h.1 ",
                    Some(WakeContext::Unknown) => "",
                };
                write!(out, "{comm:>16}-{tid:<7} ({tgid:>7}) [{cpu:03}] {flags}")?;
                write!(out, "{seconds:>5}.{nanos:09}: ")
            }
        }?;
        let start = out.len();
        fields(out, &event.kind, &self.names)?;
        if self.style == Style::Ftrace
            && let Some(colon) = memchr::memchr(b':', &out[start..])
        {
            // The name of the system is perf's.
            out.drain(start..=start + colon);
        }
        out.push(b'\n');
        if let EventKind::SchedSwitch { next, .. } = event.kind {
            self.running[index] = next;
        }
        Ok(())
    }
}

/// The event's name and its fields, as the kernel spells them.
fn fields(out: &mut Vec<u8>, kind: &EventKind, names: &Names) -> io::Result<()> {
    let task_fields = |out: &mut Vec<u8>, Name { comm, tid, prio, .. }: &Name| {
        write!(out, "comm={comm} pid={tid} prio={prio}")
    };
    match *kind {
        EventKind::SchedSwitch { prev, next, prev_state } => {
            let (prev, next) = (names.of(prev), names.of(next));
            let state = match prev_state {
                PrevState::Runnable => "R",
                PrevState::Blocked => "S",
                PrevState::Dead => "X",
            };
            write!(
                out,
                "sched:sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={state}",
                prev.comm, prev.tid, prev.prio
            )?;
            write!(
                out,
                " ==> next_comm={} next_pid={} next_prio={}",
                next.comm, next.tid, next.prio
            )
        }
        EventKind::SchedWaking { task, target, .. } => {
            out.extend_from_slice(b"sched:sched_waking: ");
            task_fields(out, names.of(task))?;
            write!(out, " target_cpu={:03}", target.0)
        }
        EventKind::SchedWakeup { task, target } => {
            out.extend_from_slice(b"sched:sched_wakeup: ");
            task_fields(out, names.of(task))?;
            write!(out, " target_cpu={:03}", target.0)
        }
        EventKind::SchedWakeupNew { task, target } => {
            out.extend_from_slice(b"sched:sched_wakeup_new: ");
            task_fields(out, names.of(task))?;
            write!(out, " target_cpu={:03}", target.0)
        }
        EventKind::SchedProcessFork { parent, child } => {
            let (parent, child) = (names.of(parent), names.of(child));
            write!(out, "sched:sched_process_fork: comm={} pid={}", parent.comm, parent.tid)?;
            write!(out, " child_comm={} child_pid={}", child.comm, child.tid)
        }
        EventKind::SchedProcessExec { task } => {
            let Name { comm, tid, .. } = names.of(task);
            write!(out, "sched:sched_process_exec: filename={comm} pid={tid} old_pid={tid}")
        }
        EventKind::SchedProcessExit { task } => {
            out.extend_from_slice(b"sched:sched_process_exit: ");
            task_fields(out, names.of(task))
        }
        EventKind::SchedMigrateTask { task, from, to } => {
            out.extend_from_slice(b"sched:sched_migrate_task: ");
            task_fields(out, names.of(task))?;
            write!(out, " orig_cpu={} dest_cpu={}", from.0, to.0)
        }
        EventKind::SchedPiSetprio { task, old, new } => {
            let Name { comm, tid, .. } = names.of(task);
            write!(out, "sched:sched_pi_setprio: comm={comm} pid={tid} oldprio={old} newprio={new}")
        }
        EventKind::ContentionBegin { mutex, .. } => {
            write!(out, "lock:contention_begin: {mutex:#x} (flags=MUTEX)")
        }
        EventKind::JobRelease { .. }
        | EventKind::JobComplete { .. }
        | EventKind::Overhead { .. } => {
            unreachable!("{kind:?} has no tracepoint")
        }
    }
}

impl Export for Text<'_> {
    fn write(&mut self, chunk: &[Event]) -> io::Result<()> {
        chunk.iter().try_for_each(|event| self.event(event))?;
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    fn finish(self: Box<Self>, _: Time) -> io::Result<Omitted> {
        let Omitted { jobs, overheads } = self.omitted;
        for (count, what) in [(jobs, "job_release and job_complete"), (overheads, "overhead")] {
            if count > 0 {
                writeln!(
                    self.out,
                    "# left out: {count} {what} events, which Linux has no tracepoint for"
                )?;
            }
        }
        Ok(self.omitted)
    }
}
