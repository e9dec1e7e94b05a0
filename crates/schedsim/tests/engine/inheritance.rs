//! Priority inheritance: the classic inversion and a chain by hand, and random locking programs
//! under the checks.

use super::{Collect, switches};
use proptest::prelude::*;
use schedsim::checks::{Checks, Violation};
use schedsim::engine::{self, Error, Options};
use schedsim::metrics::Metrics;
use schedsim::policy::{
    Catalog, Context, Dispatch, Effect, Enqueue, Needs, Policy, PolicySpec, Promises, Reweight,
    Wake,
};
use schedsim::trace::{EventKind, Trace};
use schedsim::workload::{Closed, MutexOptions, Phase, SchedulingPolicy, Tasks, Workload};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// The policies that support priority changes.
const INHERITING: [&str; 10] = [
    "fifo",
    "rr",
    "eevdf",
    "cfs",
    "o1",
    "pslist",
    "central:priority",
    "initial:priority",
    "take:priority",
    "central:rr",
];

fn real_time(name: &str, priority: i32, start_ms: u64, phases: &str) -> Tasks {
    let phases: Vec<Phase> = serde_json::from_str(phases).unwrap();
    Tasks {
        policy: SchedulingPolicy::Fifo,
        priority: Some(priority),
        start: Nanos::from_millis(start_ms),
        ..Tasks::new(name, phases)
    }
}

/// `task` with this affinity.
fn on(cpus: &[u16], task: Tasks) -> Tasks {
    Tasks { affinity: Some(cpus.to_vec()), ..task }
}

fn with_mutexes(cpus: u16, tasks: Vec<Tasks>, mutexes: &[&str], inherit: bool) -> Workload {
    let mut closed = Closed { tasks, ..Closed::default() };
    for mutex in mutexes {
        closed
            .mutexes
            .insert(mutex.to_string(), MutexOptions { handoff: false, inherit, spin: None });
    }
    Workload::of(&closed, cpus).unwrap()
}

/// The meteorological task holds the bus, the communications task computes for long, the bus
/// manager waits (Jones 1997, on Mars Pathfinder). On one CPU.
fn pathfinder(inherit: bool) -> Workload {
    let mut closed: Closed = serde_json::from_str(include_str!("pathfinder.json")).unwrap();
    closed.mutexes.insert("bus".into(), MutexOptions { handoff: false, inherit, spin: None });
    Workload::of(&closed, 1).unwrap()
}

/// The switches on each CPU: the time in µs and the task.
fn turns_by_cpu(policy: &str, cpus: u16, workload: &Workload) -> Vec<Vec<(u64, i64)>> {
    let mut collect = Collect::default();
    let spec = PolicySpec::parse(policy).unwrap();
    let options = Options { seed: 1, until: Time::NEVER };
    engine::simulate_named(
        workload,
        &Machine::ideal(cpus),
        &spec,
        options,
        Trace::new(vec![&mut collect]),
    )
    .unwrap();
    let mut turns = vec![Vec::new(); usize::from(cpus)];
    switches(&collect.0)
        .iter()
        .for_each(|&(time, cpu, _, next)| turns[usize::from(cpu)].push((time / 1000, next)));
    turns
}

/// The switches on the only CPU, in ms.
fn turns(policy: &str, workload: &Workload) -> Vec<(u64, i64)> {
    turns_by_cpu(policy, 1, workload)[0].iter().map(|&(time, next)| (time / 1000, next)).collect()
}

#[test]
fn the_classic_inversion_lasts_as_long_as_the_radio_computes_unless_priorities_are_inherited() {
    let (weather, bus, radio, nobody) = (0, 1, 2, -1);
    for policy in INHERITING.iter().filter(|policy| **policy != "central:rr") {
        let policy =
            if policy.contains(':') { format!("{policy}?quantum=1s") } else { policy.to_string() };
        let without = [
            (0, weather),
            (1, bus),
            (2, radio),
            (102, weather),
            (105, bus),
            (106, weather),
            (107, nobody),
        ];
        assert_eq!(turns(&policy, &pathfinder(false)), without, "{policy}");
        let with = [
            (0, weather),
            (1, bus),
            (2, weather),
            (5, bus),
            (6, radio),
            (106, weather),
            (107, nobody),
        ];
        assert_eq!(turns(&policy, &pathfinder(true)), with, "{policy}");
    }
}

#[test]
fn the_inversion_is_bounded_by_the_critical_section() {
    let inversion = |inherit: bool| {
        let (workload, machine) = (pathfinder(inherit), Machine::ideal(1));
        let tasks = workload.tasks.iter().map(|task| (task.info.prio, task.attributes.class));
        let mut metrics = Metrics::new(1).with_tasks(tasks);
        let options = Options { seed: 1, until: Time::NEVER };
        let spec = PolicySpec::parse("fifo").unwrap();
        let outcome = engine::simulate_named(
            &workload,
            &machine,
            &spec,
            options,
            Trace::new(vec![&mut metrics]),
        )
        .unwrap();
        metrics.finish(outcome.end).fairness.unwrap().inversion
    };
    // The wait of the bus manager for the bus, from 2 ms on.
    assert_eq!(
        [inversion(false), inversion(true)],
        [Nanos::from_millis(103), Nanos::from_millis(3)]
    );
}

#[test]
fn a_fair_mutex_holder_is_a_real_time_task_until_it_unlocks() {
    for policy in ["eevdf", "cfs", "o1", "pslist"] {
        let mut workload = pathfinder(true);
        workload.tasks[0].info.prio = 120;
        workload.tasks[0].attributes = Default::default();
        assert_eq!(
            turns(policy, &workload),
            [(0, 0), (1, 1), (2, 0), (5, 1), (6, 2), (106, 0), (107, -1)],
            "{policy}"
        );
        let violations = violations(policy, &workload, &Machine::ideal(1)).unwrap();
        assert!(violations.is_empty(), "{policy}: {}", violations[0]);
    }
}

#[test]
fn a_task_in_delayed_dequeue_that_wakes_as_a_real_time_task_leaves_its_queue() {
    let fair = |name: &str, phases: &str| Tasks {
        policy: SchedulingPolicy::Other,
        priority: None,
        ..real_time(name, 0, 0, phases)
    };
    let tasks = vec![
        fair(
            "holder",
            r#"[ { "lock": "m" }, { "run": "2ms" }, { "sleep": "1500us" }, { "run": "1ms" }, { "unlock": "m" }, { "run": "1ms" } ]"#,
        ),
        on(&[0], fair("neighbour", r#"[ { "run": "3ms" } ]"#)),
        on(
            &[1],
            real_time(
                "waiter",
                10,
                3,
                r#"[ { "lock": "m" }, { "run": "1ms" }, { "unlock": "m" } ]"#,
            ),
        ),
        on(&[0], real_time("urgent", 50, 3, r#"[ { "run": "6ms" } ]"#)),
    ];
    let workload = with_mutexes(2, tasks, &["m"], true);
    for policy in ["eevdf", "cfs"] {
        let turns = turns_by_cpu(policy, 2, &workload);
        // Under eevdf the holder has had 2 ms and its neighbour none when it sleeps, and the
        // neighbour 1 ms when it wakes: it is still on the queue of CPU 0.
        assert_eq!(turns[0], [(0, 0), (2000, 1), (3000, 3), (9000, 1), (11_000, -1)], "{policy}");
        // It wakes on CPU 1, where the waiter has wanted the mutex since 3 ms, unlocks it at 4.5
        // ms, and continues there as a fair task.
        assert_eq!(
            turns[1],
            [(3000, 2), (3000, -1), (3500, 0), (4500, 2), (5500, 0), (6500, -1)],
            "{policy}"
        );
    }
}

#[test]
fn a_task_due_on_the_cpu_of_a_task_that_just_inherited_takes_another() {
    let tasks = vec![
        on(
            &[0],
            real_time(
                "holder",
                10,
                0,
                r#"[ { "lock": "m" }, { "run": "4ms" }, { "unlock": "m" } ]"#,
            ),
        ),
        on(&[1], real_time("least", 5, 0, r#"[ { "run": "10ms" } ]"#)),
        on(
            &[2],
            real_time(
                "most",
                50,
                0,
                r#"[ { "lock": "n" }, { "run": "2ms" }, { "unlock": "n" }, { "lock": "m" }, { "run": "1ms" } ]"#,
            ),
        ),
        on(&[0, 1], real_time("second", 20, 1, r#"[ { "lock": "n" }, { "run": "1ms" } ]"#)),
    ];
    let workload = with_mutexes(3, tasks, &["m", "n"], true);
    for policy in ["fifo", "rr", "eevdf", "cfs"] {
        let turns = turns_by_cpu(policy, 3, &workload);
        // The second finds its mutex locked at 1 ms. At 2 ms it gets it and must run on its old
        // CPU, in place of the holder, for which the most important task starts to wait at once.
        assert_eq!(turns[0], [(0, 0), (1000, 3), (1000, 0), (4000, -1)], "{policy}");
        assert_eq!(turns[1], [(0, 1), (2000, 3), (3000, 1), (11_000, -1)], "{policy}");
    }
}

#[test]
fn a_chain_of_two_mutexes_passes_priorities_on_and_takes_them_back_one_by_one() {
    let tasks = vec![
        real_time(
            "low",
            10,
            0,
            r#"[ { "lock": "a" }, { "run": "3ms" }, { "unlock": "a" }, { "run": "1ms" } ]"#,
        ),
        real_time(
            "middle",
            20,
            1,
            r#"[ { "lock": "b" }, { "run": "1ms" }, { "lock": "a" }, { "run": "1ms" }, { "unlock": "a" }, { "run": "1ms" }, { "unlock": "b" }, { "run": "1ms" } ]"#,
        ),
        real_time("high", 90, 3, r#"[ { "lock": "b" }, { "run": "1ms" }, { "unlock": "b" } ]"#),
        real_time("hog", 50, 4, r#"[ { "run": "10ms" } ]"#),
    ];
    let workload = with_mutexes(1, tasks, &["a", "b"], true);
    // At 2 ms middle wants a, so low runs at 20; at 3 ms high wants b, so both run at 90: low until
    // 4 ms (3 ms of work), middle until it unlocks b.
    let order = [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 2),
        (3, 0),
        (4, 1),
        (6, 2),
        (7, 3),
        (17, 1),
        (18, 0),
        (19, -1),
    ];
    assert_eq!(turns("fifo", &workload), order);
    let mut collect = Collect::default();
    let options = Options { seed: 1, until: Time::NEVER };
    let spec = PolicySpec::parse("fifo").unwrap();
    engine::simulate_named(
        &workload,
        &Machine::ideal(1),
        &spec,
        options,
        Trace::new(vec![&mut collect]),
    )
    .unwrap();
    let changes: Vec<_> = collect
        .0
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::SchedPiSetprio { task, old, new } => {
                Some((event.time.0 / 1_000_000, task.0, old, new))
            }
            _ => None,
        })
        .collect();
    // Kernel priorities: 99 less the given one.
    assert_eq!(
        changes,
        [(2, 0, 89, 79), (3, 1, 79, 9), (3, 0, 79, 9), (4, 0, 9, 89), (6, 1, 9, 79)]
    );
}

#[test]
fn the_most_important_waiting_task_gets_the_mutex() {
    let wants = r#"[ { "lock": "m" }, { "run": "1ms" }, { "unlock": "m" } ]"#;
    let tasks = vec![
        real_time("holder", 60, 0, r#"[ { "lock": "m" }, { "sleep": "9ms" }, { "unlock": "m" } ]"#),
        real_time("first", 20, 1, wants),
        real_time("best", 70, 2, wants),
        real_time("equal", 20, 3, wants),
    ];
    let got = |inherit| {
        turns("fifo", &with_mutexes(1, tasks.clone(), &["m"], inherit))
            .into_iter()
            .filter(|turn| turn.0 >= 9)
            .collect::<Vec<_>>()
    };
    assert_eq!(got(true), [(9, 0), (9, 2), (10, 1), (11, 3), (12, -1)]);
    assert_eq!(got(false), [(9, 0), (9, 1), (10, 2), (11, 3), (12, -1)]);
}

#[test]
fn a_policy_whose_priorities_do_not_change_refuses() {
    let catalog = Catalog::built_in();
    let may_refuse = catalog
        .schedulers()
        .filter(|scheduler| !PolicySpec::parse(scheduler.name).unwrap().promises(1).inherits);
    let refusing: Vec<&str> = may_refuse.map(|scheduler| scheduler.name).collect();
    assert_eq!(refusing, ["mlfq", "mlfq-textbook", "stride", "lottery", "rm", "deadline"]);
    for policy in refusing {
        let spec = PolicySpec::parse(policy).unwrap();
        let options = Options { seed: 1, until: Time::NEVER };
        let error = engine::simulate_named(
            &pathfinder(true),
            &Machine::ideal(1),
            &spec,
            options,
            Trace::new(vec![]),
        )
        .unwrap_err();
        assert!(matches!(error, Error::Task { .. }), "{error}");
        assert!(error.to_string().contains("the mutex bus inherits priorities"), "{error}");
    }
}

/// The violations of all checks, including the policy's promises.
fn violations(
    policy: &str,
    workload: &Workload,
    machine: &Machine,
) -> Result<Vec<Violation>, Error> {
    let spec = PolicySpec::parse(policy).unwrap();
    let mut checks = Checks::new(workload, machine, spec.promises(machine.cpus));
    let options = Options { seed: 1, until: Time::NEVER };
    let outcome =
        engine::simulate_named(workload, machine, &spec, options, Trace::new(vec![&mut checks]))?;
    Ok(checks.finish(&outcome))
}

/// Runs, sleeps and critical sections; mutexes are locked in order, so that there is no deadlock.
fn any_program() -> impl Strategy<Value = Vec<Phase>> {
    let span = || (1u64..400).prop_map(Nanos::from_micros);
    let section = (0u8..3, 0u8..3, span(), span(), any::<bool>()).prop_map(
        |(one, other, first, second, sleeps)| {
            let (outer, inner) = (one.min(other).to_string(), one.max(other).to_string());
            let inside = if sleeps { Phase::Sleep(second) } else { Phase::Run(second) };
            let mut phases = vec![Phase::Lock(outer.clone()), Phase::Run(first)];
            if outer == inner {
                phases.push(inside);
            } else {
                phases.extend([
                    Phase::Lock(inner.clone()),
                    inside,
                    Phase::Unlock(inner),
                    Phase::Run(first),
                ]);
            }
            phases.push(Phase::Unlock(outer));
            phases
        },
    );
    let part = prop_oneof![
        2 => span().prop_map(|span| vec![Phase::Run(span)]),
        1 => span().prop_map(|span| vec![Phase::Sleep(span)]),
        1 => Just(vec![Phase::Yield]),
        4 => section,
    ];
    proptest::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

fn any_tasks() -> impl Strategy<Value = Vec<Tasks>> {
    let importance = prop_oneof![
        (1i32..6).prop_map(|priority| (SchedulingPolicy::Fifo, Some(priority), None)),
        (1i32..6).prop_map(|priority| (SchedulingPolicy::Rr, Some(priority), None)),
        (-20i32..20).prop_map(|nice| (SchedulingPolicy::Other, None, Some(nice))),
    ];
    let pin = prop_oneof![3 => Just(None), 1 => (0u16..4).prop_map(Some)];
    let task = (any_program(), importance, 0u64..600, pin);
    proptest::collection::vec(task, 2..8).prop_map(|tasks| {
        let task = |(index, (phases, (policy, priority, nice), start, pin)): (
            usize,
            (Vec<Phase>, _, u64, Option<u16>),
        )| Tasks {
            policy,
            priority,
            nice,
            start: Nanos::from_micros(start),
            affinity: pin.map(|cpu| vec![cpu]),
            ..Tasks::new(&format!("t{index}"), phases)
        };
        tasks.into_iter().enumerate().map(task).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn locking_programs_keep_all_rules_and_promises(
        tasks in any_tasks(),
        cpus in 1u16..5,
        costs: bool,
        plain: bool,
    ) {
        let mut closed = Closed { tasks, ..Closed::default() };
        for tasks in &mut closed.tasks {
            if let Some(affinity) = &mut tasks.affinity {
                affinity[0] %= cpus;
            }
        }
        let text = serde_json::to_string(&closed).unwrap();
        // One of the three may have no inheritance: there the chain ends.
        for mutex in
            ["0", "1", "2"].iter().filter(|mutex| text.contains(&format!(r#""lock":"{mutex}""#)))
        {
            closed.mutexes.insert(
                mutex.to_string(),
                MutexOptions { inherit: !(plain && *mutex == "1"), ..MutexOptions::default() },
            );
        }
        let workload = Workload::of(&closed, cpus).unwrap();
        let machine = match costs {
            true => Machine {
                switch_cost: Nanos(700),
                migration_cost: Nanos(900),
                idle_exit: Nanos(2_000),
                ..Machine::ideal(cpus)
            },
            false => Machine::ideal(cpus),
        };
        for policy in INHERITING {
            let violations = violations(policy, &workload, &machine);
            prop_assert!(violations.is_ok(), "{policy}: {}", violations.unwrap_err());
            prop_assert_eq!(violations.unwrap(), vec![], "{}", policy);
        }
    }
}

/// Best priority first, on one CPU. Records each `set_weight`, and uses nothing else: a task's
/// priority is that of the last call.
struct Listens {
    waiting: Vec<TaskId>,
    taken: Option<TaskId>,
    prios: Vec<u8>,
    changes: Rc<RefCell<Vec<(TaskId, u8, u8)>>>,
}

impl Policy for Listens {
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn promises(&self) -> Promises {
        Promises { inherits: true, ..Promises::default() }
    }
    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.prios.resize(self.prios.len().max(task.index() + 1), 0);
        self.prios[task.index()] = cx.task(task).prio;
    }
    fn set_weight(&mut self, cx: &mut Context, task: TaskId, old: u8, why: Reweight) -> Effect {
        assert_eq!(why, Reweight::Inherited);
        assert!(!self.waiting.contains(&task), "it was taken away before");
        let new = cx.task(task).prio;
        assert_eq!(std::mem::replace(&mut self.prios[task.index()], new), old);
        self.changes.borrow_mut().push((task, old, new));
        Effect::Nothing
    }
    fn select_cpu(&mut self, _cx: &mut Context, _task: TaskId, _wake: Wake) -> CpuId {
        CpuId(0)
    }
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        assert_eq!(
            why == Enqueue::Restored,
            self.taken.take() == Some(task),
            "a restored task was just taken out of the queue"
        );
        assert_eq!(
            self.prios[task.index()],
            cx.task(task).prio,
            "no priority changes without set_weight"
        );
        self.waiting.push(task);
        match cx.current(cpu) {
            None => Effect::Kick(cpu),
            Some(running) if self.prios[running.index()] > self.prios[task.index()] => {
                Effect::Preempt(cpu)
            }
            Some(_) => Effect::Nothing,
        }
    }
    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        self.waiting.retain(|&other| other != task);
        self.taken = Some(task);
    }
    fn dispatch(&mut self, _cx: &mut Context, _cpu: CpuId) -> Option<Dispatch> {
        let best =
            (0..self.waiting.len()).min_by_key(|&at| self.prios[self.waiting[at].index()])?;
        Some(Dispatch { task: self.waiting.remove(best), slice: Nanos::from_millis(1_000) })
    }
}

#[test]
fn set_weight_is_called_for_each_change_that_the_trace_holds() {
    let (changes, mut events) = (Rc::default(), Collect::default());
    let policy =
        Listens { waiting: vec![], taken: None, prios: vec![], changes: Rc::clone(&changes) };
    let options = Options { seed: 1, until: Time::NEVER };
    engine::simulate(
        &pathfinder(true),
        &Machine::ideal(1),
        policy,
        options,
        Trace::new(vec![&mut events]),
    )
    .unwrap();
    let traced = events.0.iter().filter_map(|event| match event.kind {
        EventKind::SchedPiSetprio { task, old, new } => Some((task, old, new)),
        _ => None,
    });
    let traced: Vec<_> = traced.collect();
    assert!(!traced.is_empty());
    assert_eq!(*changes.borrow(), traced);
}
