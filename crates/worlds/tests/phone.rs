//! A phone's CPUs are found again: simulates a machine of slow and fast CPUs, writes the text of
//! ftrace of it, with the frequencies of its CPUs, and replays that.

use formats::import;
use schedsim::engine::{Options, simulate_named};
use schedsim::trace::{Event, EventKind, Observer, PrevState, Trace};
use schedsim::workload::Workload;
use schedsim::{Machine, MigrationCosts, Nanos, Place, TaskId, Time, Topology};
use std::fmt::Write;
use std::path::Path;
use worlds::experiment::{CostOverrides, Reading, Recorded, parse_policy};

/// Enough tasks that slow CPUs are used, too.
const TASKS: &str = r#"{ "task": [
    { "name": "app", "count": 10, "phases": [ { "loop": { "times": 40, "phases": [
        { "run": "3ms" }, { "sleep": "1ms" } ] } } ] },
    { "name": "audio", "count": 2, "phases": [ { "loop": { "times": 60, "phases": [
        { "run": "400us" }, { "sleep": "2ms" } ] } } ] } ] }"#;

/// CPUs 0 to 3 do 0.4 of what CPUs 4 to 7 do.
fn phone() -> Machine {
    let place =
        |core| Place { core, cluster: core / 4, node: 0, speed: if core < 4 { 0.4 } else { 1.0 } };
    let places = (0..8).map(place).collect();
    let topology = Topology::new(places, Vec::new(), 1.0, MigrationCosts::default());
    Machine { topology: Some(topology.unwrap()), ..Machine::ideal(8) }
}

#[derive(Default)]
struct Collect(Vec<Event>);

impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

fn simulate(workload: &Workload, machine: &Machine) -> (Vec<Event>, Time) {
    let mut collect = Collect::default();
    let policy = parse_policy("eevdf").unwrap();
    let options = Options { seed: 1, until: Time::NEVER };
    let trace = Trace::new(vec![&mut collect]);
    let end = simulate_named((workload, None), machine, &policy, options, trace).unwrap().end;
    (collect.0, end)
}

/// The text of ftrace.
fn text(events: &[Event], workload: &Workload, khz: [u64; 2]) -> String {
    let mut text = String::new();
    if khz[0] > 0 {
        for cpu in 0..8 {
            let khz = khz[usize::from(cpu >= 4)];
            let event = format!("cpu_frequency: state={khz} cpu_id={cpu}");
            writeln!(text, "          <idle>-0     [{cpu:03}] d..3. 10.000000000: {event}")
                .unwrap();
        }
    }
    let named = |task: TaskId| match task {
        TaskId::NONE => ("swapper".to_owned(), 0),
        task => (workload.tasks[task.index()].info.name.clone(), 100 + task.0),
    };
    for event in events {
        let what = match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                let ((prev, pid), (next, next_pid)) = (named(prev), named(next));
                let state = match prev_state {
                    PrevState::Runnable => "R",
                    PrevState::Blocked => "S",
                    PrevState::Dead => "X",
                };
                format!(
                    "sched_switch: prev_comm={prev} prev_pid={pid} prev_prio=120 \
                     prev_state={state} ==> next_comm={next} next_pid={next_pid} next_prio=120"
                )
            }
            EventKind::SchedWaking { task, target, .. } => {
                let (name, pid) = named(task);
                format!("sched_waking: comm={name} pid={pid} prio=120 target_cpu={:03}", target.0)
            }
            _ => continue,
        };
        let (cpu, time) = (event.cpu.0, event.time.0);
        let time = format!("{}.{:09}", 10 + time / 1_000_000_000, time % 1_000_000_000);
        writeln!(text, "            task-1     [{cpu:03}] d.h3. {time}: {what}").unwrap();
    }
    text
}

fn load(text: &str, name: &str) -> Recorded {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    let zero = Some(Nanos::ZERO);
    let costs =
        CostOverrides { switch: zero, migration: zero, idle_exit: zero, wake: zero, mips: None };
    Recorded::load(&path, Reading::default(), costs, |path, options, observers| {
        Ok(import::read(path, &options, observers)?)
    })
    .unwrap()
}

/// The difference as a share.
fn off(a: u64, b: u64) -> f64 {
    a.abs_diff(b) as f64 / b as f64
}

#[test]
fn the_frequencies_of_a_phone_make_its_machine_and_its_work() {
    let workload = Workload::of(&serde_json::from_str(TASKS).unwrap(), 8).unwrap();
    let (events, end) = simulate(&workload, &phone());
    let recorded = load(&text(&events, &workload, [800_000, 2_000_000]), "phone.txt");
    let topology = recorded.machine.topology.as_ref().expect("CPUs that differ");
    for cpu in recorded.machine.all() {
        let place = topology.place(cpu);
        let expected = if cpu.0 < 4 { (0.4, 0) } else { (1.0, 1) };
        assert_eq!((place.speed, place.cluster), expected, "{cpu:?}");
    }
    let truth = workload.demand().0;
    assert!(off(recorded.workload.demand().0, truth) < 0.001, "{}", recorded.workload.demand());
    let (_, again) = simulate(&recorded.workload, &recorded.machine);
    assert!(off(again.0, end.0) < 0.02, "{again:?} for {end:?}");

    // Without them, work on slow CPUs counts as if it were done on fast ones.
    let flat = load(&text(&events, &workload, [0, 0]), "phone-flat.txt");
    assert!(flat.machine.topology.is_none());
    assert!(off(flat.workload.demand().0, truth) > 0.1, "{}", flat.workload.demand());
}

/// Another number of CPUs is not that of the phone.
#[test]
fn other_numbers_of_cpus_are_of_equal_ones() {
    let workload = Workload::of(&serde_json::from_str(TASKS).unwrap(), 8).unwrap();
    let (events, _) = simulate(&workload, &phone());
    let recorded = load(&text(&events, &workload, [800_000, 2_000_000]), "phone-other.txt");
    let subject = recorded.subject();
    assert!(subject.machine(8).topology.is_some() && subject.machine(4).topology.is_none());
    assert!(recorded.headline().contains("Its CPUs differ in speed"), "{}", recorded.headline());
}
