//! The numbers of one run on this machine.

use schedlab_runner::event::{self, Event, Stream, TaskResult};
use schedsim::metrics::Better;
use std::collections::BTreeMap;

/// A number that is measured on this machine.
#[derive(Clone, Copy, Debug)]
pub struct HostMetric {
    /// Its name; the same as that of the metric of a trace, if there is one.
    pub id: &'static str,
    /// Its title in tables.
    pub title: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its better direction.
    pub better: Better,
    /// Its meaning and source.
    pub definition: &'static str,
    /// Why it may be missing.
    pub missing: &'static str,
}

const ALWAYS: &str = "the run did not report it";

/// All of them. Those with a better direction get a verdict.
pub const METRICS: [HostMetric; 12] = [
    HostMetric {
        id: "makespan_ns",
        title: "makespan",
        unit: "ns",
        better: Better::Lower,
        definition: "From the release of the tasks until the last one that somebody waits for \
                     ended, or the workload's time was over (CLOCK_MONOTONIC).",
        missing: ALWAYS,
    },
    HostMetric {
        id: "cpu_time_ns",
        title: "CPU time",
        unit: "ns",
        better: Better::Lower,
        definition: "CPU time of all tasks in programs and in the kernel (getrusage).",
        missing: ALWAYS,
    },
    HostMetric {
        id: "user_ns",
        title: "user",
        unit: "ns",
        better: Better::Neither,
        definition: "CPU time in programs (getrusage); kernels that sample by the tick split it \
                     from the kernel's roughly.",
        missing: ALWAYS,
    },
    HostMetric {
        id: "system_ns",
        title: "system",
        unit: "ns",
        better: Better::Neither,
        definition: "CPU time in the kernel (getrusage).",
        missing: ALWAYS,
    },
    HostMetric {
        id: "voluntary_switches",
        title: "vol. sw.",
        unit: "count",
        better: Better::Neither,
        definition: "Switches because a task waited for something (getrusage).",
        missing: ALWAYS,
    },
    HostMetric {
        id: "involuntary_switches",
        title: "invol. sw.",
        unit: "count",
        better: Better::Neither,
        definition: "Switches because something else was to run (getrusage).",
        missing: ALWAYS,
    },
    HostMetric {
        id: "migrations",
        title: "migr.",
        unit: "count",
        better: Better::Neither,
        definition: "Moves of tasks between CPUs (the kernel's software counter cpu-migrations).",
        missing: "not counted: the kernel does not let this user (kernel.perf_event_paranoid), or \
                  there are more than 4096 tasks",
    },
    HostMetric {
        id: "run_delay_ns",
        title: "run delay",
        unit: "ns",
        better: Better::Lower,
        definition: "Time for which tasks were runnable and did not run (/proc/PID/schedstat of \
                     each task at its end).",
        missing: "not read: the kernel keeps no schedstat, there are more than 4096 tasks, or it \
                  is a command (see --traced)",
    },
    HostMetric {
        id: "throughput",
        title: "phases/s",
        unit: "1/s",
        better: Better::Higher,
        definition: "Phases that all tasks completed in a second.",
        missing: "a command has no phases",
    },
    HostMetric {
        id: "unused_cpu",
        title: "unused",
        unit: "1",
        better: Better::Neither,
        definition: "Share of the time of the CPUs that the workload may use in which none of its \
                     tasks ran: 1 - CPU time / (makespan * CPUs).",
        missing: ALWAYS,
    },
    HostMetric {
        id: "idle_cpu",
        title: "idle",
        unit: "1",
        better: Better::Neither,
        definition: "Share of the time of these CPUs in which nothing at all ran (/proc/stat, in \
                     ticks of 10 ms).",
        missing: "the run was shorter than 100 ms, too few ticks of /proc/stat",
    },
    HostMetric {
        id: "stolen_cpu",
        title: "stolen",
        unit: "1",
        better: Better::Neither,
        definition: "Share of the time of these CPUs that a hypervisor gave to others \
                     (/proc/stat).",
        missing: "the run was shorter than 100 ms, too few ticks of /proc/stat",
    },
];

/// The numbers of one run, and its tasks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// By the metric's id; absent where the run did not report it.
    pub values: BTreeMap<&'static str, f64>,
    /// The result of each task.
    pub tasks: Vec<TaskResult>,
    /// What a command wrote to its standard output, if that was wanted.
    pub stdout: Vec<u8>,
    /// And to its standard error.
    pub stderr: Vec<u8>,
}

impl Measured {
    /// Reads the runner's report of a run on `cpus` CPUs.
    ///
    /// # Errors
    /// The message of what failed.
    pub fn of(events: &[Event], cpus: usize) -> Result<Measured, String> {
        let mut measured = Measured::default();
        let mut has_ended = false;
        for event in events {
            match event {
                Event::Failed { message } => return Err(message.clone()),
                Event::Output { stream, bytes, .. } => {
                    let to = match stream {
                        Stream::Stdout => &mut measured.stdout,
                        Stream::Stderr => &mut measured.stderr,
                    };
                    to.extend(event::written(bytes));
                }
                Event::Usage {
                    user_ns,
                    system_ns,
                    voluntary,
                    involuntary,
                    migrations,
                    run_delay_ns,
                    ..
                } => {
                    let known = [
                        ("cpu_time_ns", Some(user_ns + system_ns)),
                        ("user_ns", Some(*user_ns)),
                        ("system_ns", Some(*system_ns)),
                        ("voluntary_switches", Some(*voluntary)),
                        ("involuntary_switches", Some(*involuntary)),
                        ("migrations", *migrations),
                        ("run_delay_ns", *run_delay_ns),
                    ];
                    measured.values.extend(
                        known.into_iter().filter_map(|(id, value)| Some((id, value? as f64))),
                    );
                }
                Event::JobEnd { ns, tasks, .. } => {
                    has_ended = true;
                    measured.values.insert("makespan_ns", *ns as f64);
                    let phases: u64 = tasks.iter().flat_map(|task| task.operations.values()).sum();
                    if phases > 0 {
                        measured.values.insert("throughput", phases as f64 * 1e9 / *ns as f64);
                    }
                    measured.tasks.clone_from(tasks);
                }
                _ => {}
            }
        }
        if !has_ended {
            return Err("the runner ended before the run did".to_string());
        }
        if let (Some(makespan), Some(used)) =
            (measured.value("makespan_ns"), measured.value("cpu_time_ns"))
        {
            measured.values.insert("unused_cpu", 1.0 - used / (makespan * cpus as f64));
        }
        Ok(measured)
    }

    /// The value of a metric.
    pub fn value(&self, id: &str) -> Option<f64> {
        self.values.get(id).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_its_end_and_its_usage_and_a_failure_is_no_number() {
        let usage = Event::Usage {
            job: 0,
            pid: 1,
            user_ns: 600,
            system_ns: 200,
            voluntary: 3,
            involuntary: 1,
            migrations: None,
            run_delay_ns: Some(5),
        };
        let end = Event::JobEnd { job: 0, ns: 1000, tasks: Vec::new() };
        let measured = Measured::of(&[usage.clone(), end.clone()], 2).unwrap();
        assert_eq!(
            (measured.value("cpu_time_ns"), measured.value("unused_cpu")),
            (Some(800.0), Some(0.6))
        );
        assert_eq!((measured.value("migrations"), measured.value("throughput")), (None, None));
        assert!(measured.values.keys().all(|id| METRICS.iter().any(|metric| metric.id == *id)));
        assert!(Measured::of(&[usage], 2).unwrap_err().contains("before the run did"));
        assert_eq!(
            Measured::of(&[Event::Failed { message: "no".to_string() }, end], 2),
            Err("no".to_string())
        );
    }
}
