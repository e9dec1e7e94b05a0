//! Stochastic workloads: the same tasks under every scheduler, and the same run as from written
//! scripts.

mod support;

use schedsim::checks::Checks;
use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::metrics::{Metrics, OpenSystem};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, EventKind, Observer, Trace};
use schedsim::workload::{After, Model, RunLength, Unix1990};
use schedsim::{Machine, Nanos, TaskId, Time};
use support::{Collect, Run};

fn events(policy: &str, source: Source, machine: &Machine, until: Time) -> (Outcome, Vec<Event>) {
    let mut collect = Collect::default();
    let policy = PolicySpec::parse(policy).unwrap();
    let outcome = engine::simulate_named(
        source,
        machine,
        &policy,
        Options { seed: 3, until },
        Trace::new(vec![&mut collect]),
    );
    (outcome.unwrap(), collect.0)
}

fn first(tasks: u64) -> Unix1990 {
    Unix1990 {
        length: RunLength { measured: tasks, ..Unix1990::FROM_EMPTY },
        ..Unix1990::default()
    }
}

/// The events with tasks numbered in order of arrival, and without jobs.
fn numbered(events: &[Event]) -> Vec<Event> {
    let (mut number, mut born) = (Vec::new(), 0);
    let mut named = Vec::new();
    for event in events {
        let rename = |task: TaskId| if task == TaskId::NONE { task } else { number[task.index()] };
        let kind = match event.kind {
            EventKind::JobRelease { task } => {
                number.resize(number.len().max(task.index() + 1), TaskId(0));
                number[task.index()] = TaskId(born);
                born += 1;
                continue;
            }
            EventKind::JobComplete { .. } => continue,
            EventKind::SchedSwitch { prev, next, prev_state } => {
                EventKind::SchedSwitch { prev: rename(prev), next: rename(next), prev_state }
            }
            EventKind::SchedWaking { task, target, context } => {
                EventKind::SchedWaking { task: rename(task), target, context }
            }
            EventKind::SchedWakeupNew { task, target } => {
                EventKind::SchedWakeupNew { task: rename(task), target }
            }
            EventKind::SchedProcessExit { task } => {
                EventKind::SchedProcessExit { task: rename(task) }
            }
            EventKind::SchedMigrateTask { task, from, to } => {
                EventKind::SchedMigrateTask { task: rename(task), from, to }
            }
            EventKind::Overhead { task, kind, spent } => {
                EventKind::Overhead { task: rename(task), kind, spent }
            }
            kind => panic!("a model does not cause {kind:?}"),
        };
        named.push(Event { kind, ..*event });
    }
    named
}

#[test]
fn tasks_drawn_during_a_run_behave_as_written_scripts() {
    let unix = Unix1990 { load: 0.8, ..first(300) };
    let (model, machine) = (unix.model().unwrap(), unix.machine());
    let scripts = model.scripts(3, 300);
    for policy in
        ["central:rr?quantum=100ms", "initial:rr?quantum=100ms", "take:rr?quantum=100ms", "eevdf"]
    {
        let (drawn, drawn_events) = events(policy, Source::from(&model), &machine, Time::NEVER);
        let (written, written_events) =
            events(policy, Source::from(&scripts), &machine, Time::NEVER);
        assert_eq!(numbered(&drawn_events), written_events, "{policy}");
        assert_eq!(
            (drawn.end, drawn.events, drawn.useful),
            (written.end, written.events, written.useful),
            "{policy}"
        );
        // And the written tasks keep all rules.
        let promises = PolicySpec::parse(policy).unwrap().promises(machine.cpus);
        let mut checks = Checks::new(&scripts, &machine, promises);
        let run = Run {
            workload: &scripts,
            machine: &machine,
            until: Time::NEVER,
            observers: vec![&mut checks],
        };
        let outcome = run.under(policy).unwrap();
        assert_eq!(checks.finish(&outcome), [], "{policy}");
    }
}

#[test]
fn a_task_has_the_same_bursts_and_pauses_under_every_policy() {
    let unix = first(500);
    let model = unix.model().unwrap();
    let demands = |policy| {
        let (_, events) = events(policy, Source::from(&model), &unix.machine(), Time::NEVER);
        let (mut number, mut demands, mut born) = (Vec::new(), vec![Nanos::ZERO; 500], 0);
        for event in events {
            match event.kind {
                EventKind::JobRelease { task } => {
                    number.resize(number.len().max(task.index() + 1), 0);
                    number[task.index()] = born;
                    born += 1;
                }
                EventKind::JobComplete { task, demand } => demands[number[task.index()]] = demand,
                _ => {}
            }
        }
        demands
    };
    let central = demands("central:rr?quantum=100ms");
    assert!(central.iter().all(|&demand| demand > Nanos::ZERO));
    assert_eq!(central, demands("initial:rr?quantum=5ms"));
    assert_eq!(central, demands("take:rr?quantum=1ms"));
}

#[test]
fn a_run_ends_when_its_length_says() {
    let alive_at_end = |model: &Model, machine: &Machine, until| {
        let (outcome, events) =
            events("take:rr?quantum=100ms", Source::from(model), machine, until);
        let count =
            |of: fn(&EventKind) -> bool| events.iter().filter(|event| of(&event.kind)).count();
        let released = count(|kind| matches!(kind, EventKind::JobRelease { .. }));
        (outcome, released, released - count(|kind| matches!(kind, EventKind::JobComplete { .. })))
    };
    let unix = first(200);
    let (model, machine) = (unix.model().unwrap(), unix.machine());
    let (_, released, alive) = alive_at_end(&model, &machine, Time::NEVER);
    assert_eq!((released, alive), (200, 0), "drained");

    let go_on = model.clone().with_length(RunLength {
        warm_up: 50,
        measured: 100,
        after: After::GoOn,
        population_limit: 1000,
    });
    let (_, released, alive) = alive_at_end(&go_on, &machine, Time::NEVER);
    assert!(
        released > 150 && alive > 0,
        "others come until the last measured one has left: {released}, {alive}"
    );

    let until = Time(1_000_000_000);
    let timed = model.with_length(RunLength { measured: u64::MAX, ..Unix1990::STEADY });
    assert_eq!(alive_at_end(&timed, &machine, until).0.end, until);

    let flooded = Unix1990 {
        load: 1.5,
        length: RunLength { population_limit: 500, ..Unix1990::STEADY },
        ..unix
    };
    let (outcome, _, alive) = alive_at_end(&flooded.model().unwrap(), &machine, Time::NEVER);
    assert_eq!(alive, 500, "a saturated run stops by itself, at {}", Nanos(outcome.end.0));
}

#[test]
fn the_metrics_of_an_open_system_are_those_of_its_tasks() {
    // All tasks are measured, and the window is the complete run: then both sets of metrics must
    // agree.
    let unix = Unix1990 { load: 0.8, ..first(400) };
    let (model, machine) = (unix.model().unwrap(), unix.machine());
    for policy in ["central:rr?quantum=100ms", "initial:rr?quantum=100ms", "take:rr?quantum=100ms"]
    {
        let mut open = OpenSystem::new(&model, 3, machine.cpus);
        let (outcome, drawn) = events(policy, Source::from(&model), &machine, Time::NEVER);
        open.events(&drawn);
        let open = open.finish();
        let mut metrics = Metrics::new(machine.cpus);
        metrics.events(&numbered(&drawn));
        let all = metrics.finish(outcome.end);
        let mut direct = OpenSystem::new(&model, 3, machine.cpus);
        let options = Options { seed: 3, until: Time::NEVER };
        let same = engine::simulate_open(
            &model,
            &machine,
            &PolicySpec::parse(policy).unwrap(),
            options,
            &mut direct,
        )
        .unwrap();
        assert_eq!(
            (same, direct.finish()),
            (outcome, open.clone()),
            "{policy}: by events in chunks, and one by one"
        );
        let close = |name: &str, a: Option<f64>, b: Option<f64>| {
            assert!((a.unwrap() - b.unwrap()).abs() < 1e-9, "{policy}: {name} {a:?} {b:?}");
        };
        close("grr", open.grr(|_| true), all.get("grr"));
        close("apr", open.apr(|_| true), all.get("apr"));
        let overhead =
            all.get("overhead_ns").unwrap_or(0.0) / all.sum(|task| task.task_time()).0 as f64;
        close("inflation", open.inflation(), Some(overhead));
        assert_eq!(open.tasks(), 400);

        // The window ends with the last arrival.
        let last = drawn
            .iter()
            .rfind(|event| matches!(event.kind, EventKind::JobRelease { .. }))
            .unwrap()
            .time;
        let first = drawn[0].time;
        let within: Vec<Event> =
            drawn.iter().take_while(|event| event.time <= last).copied().collect();
        let mut metrics = Metrics::new(machine.cpus);
        metrics.events(&numbered(&within));
        let part = metrics.finish(last);
        let scale = last.0 as f64 / (last - first).0 as f64;
        close(
            "idle waste",
            Some(open.idle_waste),
            part.get("idle_waste").map(|share| share * scale),
        );
        close(
            "least idle waste",
            Some(open.idle_waste_min),
            part.get("idle_waste_min").map(|share| share * scale),
        );
        close(
            "utilisation",
            Some(open.utilisation),
            part.get("utilisation").map(|share| share * scale),
        );
        close("migration rate", open.migration_rate(), part.get("migration_rate"));
    }
}

#[test]
fn processor_intensive_tasks_that_count_for_25_get_processors_of_their_own() {
    // Curran & Stumm 1990, §5.2: it repairs initial placement by the number of tasks.
    let unix = Unix1990 {
        intensive: 0.5,
        length: RunLength { measured: 3_000, ..Unix1990::FROM_EMPTY },
        ..Unix1990::default()
    };
    let model = unix.model().unwrap();
    let apr = |policy: &str| {
        let (_, drawn) = events(policy, Source::from(&model), &unix.machine(), Time::NEVER);
        let mut open = OpenSystem::new(&model, 3, 4);
        open.events(&drawn);
        open.finish().apr(|group| group.kind.class == 0).unwrap()
    };
    let (plain, heavy) =
        (apr("initial:rr?quantum=100ms"), apr("initial:rr?quantum=100ms&heavy=25"));
    assert!(heavy < plain, "{heavy} {plain}");
}
