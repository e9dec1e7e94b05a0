//! The text of `perf script`: one event per line, with interrupt flags if they are known.
//!
//! The format is that of `perf script --ns -F comm,pid,tid,cpu,flags,time,event,trace`; importing
//! the text gives the same events. Jobs and overhead have no tracepoint; the last lines state how
//! many were left out.

use super::names::Name;
use super::{Export, Names, Omitted};
use schedsim::trace::{Event, EventKind, PrevState, WakeContext};
use schedsim::{TaskId, Time};
use std::io::{self, Write};

/// Writes a trace as the text of `perf script`.
pub struct PerfScript<'a> {
    out: &'a mut dyn Write,
    names: Names,
    /// By CPU: the running task, for the first columns.
    running: Vec<TaskId>,
    text: Vec<u8>,
    omitted: Omitted,
}

impl<'a> PerfScript<'a> {
    /// Begins the file.
    pub fn new(out: &'a mut dyn Write, names: Names, cpus: u16) -> io::Result<PerfScript<'a>> {
        writeln!(
            out,
            "# written by schedlab {}\n# nrcpus online : {cpus}",
            env!("CARGO_PKG_VERSION")
        )?;
        Ok(PerfScript {
            out,
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
        let flags = match event.kind {
            EventKind::SchedWaking { context, .. } => match context {
                WakeContext::Task => "....  ",
                WakeContext::Softirq => "..s.  ",
                WakeContext::Hardirq => "..h.  ",
                WakeContext::Unknown => "",
            },
            _ => "",
        };
        write!(
            out,
            "{} {}/{} [{:03}] {flags}{seconds}.{nanos:09}: ",
            current.comm, current.tgid, current.tid, event.cpu.0
        )?;
        fields(out, &event.kind, &self.names)?;
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

impl Export for PerfScript<'_> {
    fn write(&mut self, chunk: &[Event]) -> io::Result<()> {
        chunk.iter().try_for_each(|event| self.event(event))?;
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    fn finish(&mut self, _: Time) -> io::Result<Omitted> {
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
