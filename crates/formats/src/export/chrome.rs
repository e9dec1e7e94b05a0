//! Chrome's trace-event JSON: an interval for each run of a task, a counter for each ready queue,
//! instants for the other events.
//!
//! CPUs are the threads of one process, so each is a row. Times are microseconds with three
//! decimals, exact to the nanosecond.

use super::occupancy::Interval;
use super::queue_lengths::QueueLength;
use super::{Export, Names, Occupancy, Omitted, QueueLengths};
use schedsim::trace::{Event, EventKind};
use schedsim::{Nanos, TaskId, Time};
use std::io::{self, Write};

/// Writes a trace as Chrome's JSON.
pub struct Chrome<'a> {
    out: &'a mut dyn Write,
    names: Names,
    /// The names as JSON strings.
    quoted: Vec<String>,
    occupancy: Occupancy,
    queue_lengths: QueueLengths,
    text: Vec<u8>,
}

impl<'a> Chrome<'a> {
    /// Begins the file.
    pub fn new(out: &'a mut dyn Write, names: Names, cpus: u16) -> io::Result<Chrome<'a>> {
        write!(
            out,
            r#"{{"displayTimeUnit":"ns","otherData":{{"writer":"schedlab {}"}},"traceEvents":["#,
            env!("CARGO_PKG_VERSION")
        )?;
        out.write_all(
            b"\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"CPUs\"}}",
        )?;
        for cpu in 0..cpus {
            write!(
                out,
                ",\n{{\"ph\":\"M\",\"pid\":0,\"tid\":{cpu},\"name\":\"thread_name\",\"args\":{{\"\
                 name\":\"CPU {cpu}\"}}}}"
            )?;
        }
        let quoted = names
            .all()
            .iter()
            .map(|name| serde_json::Value::from(name.comm.as_str()).to_string())
            .collect();
        Ok(Chrome {
            out,
            names,
            quoted,
            occupancy: Occupancy::new(),
            queue_lengths: QueueLengths::new(cpus),
            text: Vec::new(),
        })
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        let text = &mut self.text;
        self.queue_lengths.event(event, |length| counter(text, &length));
        for interval in self.occupancy.event(event) {
            run(&mut self.text, interval, &self.names, &self.quoted)?;
        }
        let (time, cpu) = (Micros(event.time.0), event.cpu.0);
        match event.kind {
            EventKind::SchedSwitch { .. } => Ok(()),
            EventKind::Overhead { kind, spent, .. } => {
                let kind = kind.name();
                let duration = Micros(spent.0);
                let place = format!(r#""pid":1,"tid":{cpu},"ts":{time},"dur":{duration}"#);
                write!(
                    self.text,
                    ",\n{{\"ph\":\"X\",{place},\"cat\":\"overhead\",\"name\":\"{kind}\"}}"
                )
            }
            EventKind::JobComplete { task, demand } => {
                self.instant(event, "job_complete", task, Some(demand))
            }
            EventKind::JobRelease { task } => self.instant(event, "job_release", task, None),
            EventKind::SchedWaking { task, .. } => self.instant(event, "sched_waking", task, None),
            EventKind::SchedWakeup { task, .. } => self.instant(event, "sched_wakeup", task, None),
            EventKind::SchedWakeupNew { task, .. } => {
                self.instant(event, "sched_wakeup_new", task, None)
            }
            EventKind::SchedProcessFork { child, .. } => {
                self.instant(event, "sched_process_fork", child, None)
            }
            EventKind::SchedProcessExec { task } => {
                self.instant(event, "sched_process_exec", task, None)
            }
            EventKind::SchedProcessExit { task } => {
                self.instant(event, "sched_process_exit", task, None)
            }
            EventKind::SchedPiSetprio { task, .. } => {
                self.instant(event, "sched_pi_setprio", task, None)
            }
            EventKind::ContentionBegin { task, .. } => {
                self.instant(event, "contention_begin", task, None)
            }
            EventKind::SchedMigrateTask { task, .. } => {
                self.instant(event, "sched_migrate_task", task, None)
            }
        }
    }

    fn instant(
        &mut self,
        event: &Event,
        what: &str,
        task: TaskId,
        demand: Option<Nanos>,
    ) -> io::Result<()> {
        let (time, cpu, tid) = (Micros(event.time.0), event.cpu.0, self.names.of(task).tid);
        write!(
            self.text,
            ",\n{{\"ph\":\"i\",\"s\":\"t\",\"pid\":0,\"tid\":{cpu},\"ts\":{time},\"name\":\"\
             {what}\",\"args\":{{\"task\":{tid}"
        )?;
        if let Some(demand) = demand {
            write!(self.text, ",\"demand_ns\":{}", demand.0)?;
        }
        self.text.extend_from_slice(b"}}");
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

fn run(out: &mut Vec<u8>, interval: &Interval, names: &Names, quoted: &[String]) -> io::Result<()> {
    let name = quoted.get(interval.task.index()).map_or("\"?\"", String::as_str);
    let (start, duration) = (Micros(interval.start.0), Micros((interval.end - interval.start).0));
    let (cpu, tid) = (interval.cpu.0, names.of(interval.task).tid);
    write!(
        out,
        ",\n{{\"ph\":\"X\",\"pid\":0,\"tid\":{cpu},\"ts\":{start},\"dur\":{duration},\"cat\":\"\
         run\",\"name\":{name},\"args\":{{\"task\":{tid}}}}}"
    )
}

fn counter(out: &mut Vec<u8>, QueueLength { time, cpu, length }: &QueueLength) {
    let (time, cpu) = (Micros(time.0), cpu.0);
    let _ = write!(
        out,
        ",\n{{\"ph\":\"C\",\"pid\":0,\"ts\":{time},\"name\":\"ready queue of CPU \
         {cpu}\",\"args\":{{\"tasks\":{length}}}}}"
    );
}

/// Nanoseconds, written as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl Export for Chrome<'_> {
    fn write(&mut self, chunk: &[Event]) -> io::Result<()> {
        chunk.iter().try_for_each(|event| self.event(event))?;
        self.flush()
    }

    fn finish(mut self: Box<Self>, end: Time) -> io::Result<Omitted> {
        let text = &mut self.text;
        self.queue_lengths.finish(|length| counter(text, &length));
        for interval in self.occupancy.finish(end) {
            run(&mut self.text, interval, &self.names, &self.quoted)?;
        }
        self.flush()?;
        self.out.write_all(b"\n]}\n")?;
        Ok(Omitted::default())
    }
}
