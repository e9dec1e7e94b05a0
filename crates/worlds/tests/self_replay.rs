//! Self-replay: simulates a closed workload, writes a recording with calls of the simulation, reads
//! it as a program, and simulates that. Under the recorded policy and under any other one the
//! program must do what the workload does. The replay of the recorded schedule does not.

use formats::export::RecordingWriter;
use formats::import::{self, Options as ImportOptions};
use formats::workload::Workload as Named;
use schedsim::engine::{Options, simulate_named};
use schedsim::metrics::{CATALOGUE, Metrics};
use schedsim::trace::{Observer, TaskInfo, Trace};
use schedsim::workload::{Nudge, Recorded, ReplayBuilder, ReplayOptions, ReplayReport, Workload};
use schedsim::{Machine, Nanos, Time};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use worlds::experiment::parse_policy;

/// A workload on a machine, one member of an ensemble: no two tasks do something at the same time.
struct Original {
    workload: Workload,
    machine: Machine,
    until: Time,
}

const NUDGE: u64 = 7;

type Numbers = BTreeMap<&'static str, Option<f64>>;

impl Original {
    fn named(name: &str, cpus: u16) -> Original {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = root.join("workloads").join(name);
        let argument = if path.is_file() { path.into_os_string() } else { name.into() };
        let Ok(Named::Closed(closed)) = Named::resolve(&argument) else {
            panic!("{name} is no closed workload")
        };
        Original {
            workload: closed.scripts(cpus).unwrap(),
            machine: Machine::ideal(cpus),
            until: closed.until(),
        }
    }

    fn of(text: &str, cpus: u16) -> Original {
        let closed = serde_json::from_str(text).unwrap();
        Original {
            workload: Workload::of(&closed, cpus).unwrap(),
            machine: Machine::ideal(cpus),
            until: Time::NEVER,
        }
    }

    fn with_costs(self) -> Original {
        let machine = Machine { switch_cost: Nanos(1_500), ..self.machine };
        Original { machine, ..self }
    }

    fn run(&self, policy: &str) -> Numbers {
        measure(&self.workload, Some(Nudge::new(NUDGE)), self, policy)
    }

    /// The recording of a run under `policy`, read as a program or as a schedule.
    fn recorded(&self, policy: &str, schedule: bool) -> (Workload, ReplayReport) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir()
            .join(format!("schedlab-self-replay-{}-{number}.rec", std::process::id()));
        let tasks = infos(&self.workload);
        let cpus = self.machine.cpus;
        let mut writer = RecordingWriter::new(
            BufWriter::new(File::create(&path).unwrap()),
            &tasks,
            &self.workload.shared,
            cpus,
        )
        .unwrap();
        let nudge = Some(Nudge::new(NUDGE));
        simulate(&self.workload, nudge, self, policy, &mut writer);
        writer.finish().unwrap();
        let mut builder = ReplayBuilder::new(ReplayOptions { schedule, ..Default::default() });
        let recording =
            import::read(&path, &ImportOptions::default(), vec![&mut builder]).unwrap();
        fs::remove_file(&path).unwrap();
        builder.share(recording.objects);
        builder.finish(Recorded {
            tasks: &recording.tasks,
            cpus,
            end: Time(recording.duration.0),
            switch_cost: self.machine.switch_cost,
        })
    }
}

fn infos(workload: &Workload) -> Vec<TaskInfo> {
    workload.tasks.iter().map(|task| task.info.clone()).collect()
}

fn simulate(
    workload: &Workload,
    nudge: Option<Nudge>,
    of: &Original,
    policy: &str,
    observer: &mut dyn Observer,
) -> Time {
    let policy = parse_policy(policy).unwrap();
    let machine = nudge.map_or(of.machine.clone(), |_| of.machine.clone());
    let options = Options { seed: 1, until: of.until };
    let trace = Trace::new(vec![observer]);
    let outcome = simulate_named((workload, nudge), &machine, &policy, options, trace);
    outcome.unwrap_or_else(|error| panic!("{error}")).end
}

fn measure(workload: &Workload, nudge: Option<Nudge>, of: &Original, policy: &str) -> Numbers {
    let tasks = workload.tasks.iter().map(|task| (task.info.prio, task.attributes.class));
    let mut metrics = Metrics::new(of.machine.cpus).with_tasks(tasks);
    let end = simulate(workload, nudge, of, policy, &mut metrics);
    let summary = metrics.finish(end);
    CATALOGUE.iter().map(|metric| (metric.id, metric.read(&summary).value)).collect()
}

/// The metrics that must be the same, to the last digit.
const SAME: [&str; 12] = [
    "makespan_ns",
    "cpu_time_ns",
    "switches",
    "dispatches",
    "wakeups",
    "run_delay_ns",
    "run_delay_ns_max",
    "wakeup_latency_ns_mean",
    "wakeup_latency_ns_max",
    "migrations",
    "burst_ns_p50",
    "pause_ns_p99",
];

fn differences(one: &Numbers, other: &Numbers) -> Vec<String> {
    SAME.iter()
        .filter(|id| one[*id] != other[*id])
        .map(|id| format!("{id}: {:?}, and {:?}", one[*id], other[*id]))
        .collect()
}

const POLICIES: [&str; 4] = ["eevdf", "take:rr", "central:rr", "fifo"];

/// Recorded under each of the first two policies, it is the same under all.
fn is_exact(name: &str, original: &Original) {
    for recorded in &POLICIES[..2] {
        let (program, report) = original.recorded(recorded, false);
        assert_eq!((report.wakeups.tokens, report.doubted_objects), (0, 0), "{name}: {report:?}");
        for policy in POLICIES {
            let found = differences(
                &original.run(policy),
                &measure(&program, None, original, policy),
            );
            assert!(found.is_empty(), "{name}, from {recorded}, under {policy}: {found:#?}");
        }
    }
}

#[test]
fn pipes_are_replayed_exactly_under_any_policy() {
    is_exact("ping-pong", &Original::named("ping-pong:3?times=200", 2));
    is_exact("hackbench", &Original::named("hackbench:2?pairs=5&loops=20", 2));
}
