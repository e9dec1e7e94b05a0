//! Tests the engine with small workloads, event by event.

#[path = "engine/event_loops.rs"]
mod event_loops;
#[path = "engine/inheritance.rs"]
mod inheritance;
#[path = "engine/machines.rs"]
mod machines;
#[path = "engine/objects.rs"]
mod objects;
#[path = "engine/phases.rs"]
mod phases;
#[path = "engine/spinning.rs"]
mod spinning;
#[path = "engine/wakes.rs"]
mod wakes;

use schedsim::engine::{self, Options, Outcome};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, EventKind, Observer, TaskInfo, Trace};
use schedsim::workload::{Action, Affinity, Attributes, Script, Start, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, TaskId, Ticks, Time};

#[derive(Default)]
struct Collect(Vec<Event>);
impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

fn run(
    policy: &str,
    machine: &Machine,
    workload: &Workload,
) -> (Result<Outcome, engine::Error>, Vec<Event>) {
    let mut collect = Collect::default();
    let spec = PolicySpec::parse(policy).unwrap();
    let options = Options { seed: 1, until: Time::NEVER };
    let outcome =
        engine::simulate_named(workload, machine, &spec, options, Trace::new(vec![&mut collect]));
    (outcome, collect.0)
}

fn task(start: Start, steps: &[(u64, Action)]) -> TaskSpec {
    let script: Script = steps.iter().map(|&(run, then)| (Nanos(run), then)).collect();
    let info = TaskInfo { name: "t".into(), pid: 0, tgid: 0, prio: 120 };
    TaskSpec {
        info,
        attributes: Attributes::default(),
        affinity: Affinity::Any,
        cpu: CpuId(0),
        start,
        script,
    }
}

/// `(time, cpu, prev, next)` of every switch.
fn switches(events: &[Event]) -> Vec<(u64, u16, i64, i64)> {
    let id = |task: TaskId| if task == TaskId::NONE { -1 } else { i64::from(task.0) };
    let switch = |event: &Event| match event.kind {
        EventKind::SchedSwitch { prev, next, .. } => {
            Some((event.time.0, event.cpu.0, id(prev), id(next)))
        }
        _ => None,
    };
    events.iter().filter_map(switch).collect()
}

const NOW: Start = Start::At(Time::ZERO);

#[test]
fn two_tasks_share_a_cpu_by_the_quantum() {
    let ms = 1_000_000;
    let workload = Workload {
        tasks: vec![task(NOW, &[(6 * ms, Action::Exit)]), task(NOW, &[(5 * ms, Action::Exit)])],
        ..Default::default()
    };
    let (outcome, events) = run("central:rr", &Machine::ideal(1), &workload);
    assert_eq!(outcome.unwrap().end, Time(11 * ms));
    assert_eq!(
        switches(&events),
        [
            (0, 0, -1, 0),
            (4 * ms, 0, 0, 1),
            (8 * ms, 0, 1, 0),
            (10 * ms, 0, 0, 1),
            (11 * ms, 0, 1, -1)
        ]
    );
}

#[test]
fn a_slice_ends_when_the_machine_checks_it() {
    let ms = 1_000_000;
    let workload = Workload {
        tasks: vec![task(NOW, &[(6 * ms, Action::Exit)]), task(NOW, &[(5 * ms, Action::Exit)])],
        ..Default::default()
    };
    let ticks = |first| Some(Ticks::new(Nanos(4 * ms), Time(first)));
    let machine = |first| Machine { ticks: ticks(first), ..Machine::ideal(1) };
    let (_, events) = run("central:rr?quantum=3ms", &machine(0), &workload);
    assert_eq!(
        switches(&events),
        [
            (0, 0, -1, 0),
            (4 * ms, 0, 0, 1),
            (8 * ms, 0, 1, 0),
            (10 * ms, 0, 0, 1),
            (11 * ms, 0, 1, -1)
        ]
    );
    let (_, events) = run("central:rr?quantum=3ms", &machine(ms), &workload);
    assert_eq!(
        switches(&events),
        [
            (0, 0, -1, 0),
            (5 * ms, 0, 0, 1),
            (9 * ms, 0, 1, 0),
            (10 * ms, 0, 0, 1),
            (11 * ms, 0, 1, -1)
        ]
    );
}

#[test]
fn a_cpu_checks_its_slice_when_a_task_of_another_class_runs() {
    let ms = 1_000_000;
    let workload =
        Workload { tasks: vec![task(NOW, &[(20 * ms, Action::Exit)]); 4], ..Default::default() };
    // The slices that start at 0 are over at 3 ms: CPU 0 checks at 2, which is too early, and at
    // 3.5; CPU 1 at its tick.
    let looks =
        [(CpuId(0), Time(2 * ms)), (CpuId(0), Time(7 * ms / 2)), (CpuId(0), Time(15 * ms / 4))]
            .into();
    let ticks = Some(Ticks { looks, ..Ticks::new(Nanos(4 * ms), Time(0)) });
    let (_, events) =
        run("central:rr?quantum=3ms", &Machine { ticks, ..Machine::ideal(2) }, &workload);
    let until_8: Vec<_> =
        switches(&events).into_iter().filter(|&(time, ..)| time <= 8 * ms).collect();
    assert_eq!(
        until_8,
        [
            (0, 0, -1, 0),
            (0, 1, -1, 1),
            (7 * ms / 2, 0, 0, 2),
            (4 * ms, 1, 1, 3),
            (8 * ms, 0, 2, 0),
            (8 * ms, 1, 3, 1)
        ]
    );
}

#[test]
fn the_check_of_a_slice_is_late_at_random_on_each_cpu() {
    let ms = 1_000_000;
    let workload =
        Workload { tasks: vec![task(NOW, &[(400 * ms, Action::Exit)]); 4], ..Default::default() };
    let ticks = Some(Ticks { lateness: Nanos(1_000), ..Ticks::new(Nanos(4 * ms), Time(0)) });
    let (_, events) =
        run("central:rr?quantum=3ms", &Machine { ticks, ..Machine::ideal(2) }, &workload);
    let late = |cpu: u16| -> Vec<u64> {
        let ends = switches(&events)
            .into_iter()
            .filter(|&(time, on, prev, next)| on == cpu && time > 0 && prev >= 0 && next >= 0);
        ends.map(|(time, ..)| time % (4 * ms)).take(50).collect()
    };
    let (first, second) = (late(0), late(1));
    assert!(first.iter().chain(&second).all(|&late| late <= 1_000), "{first:?} {second:?}");
    let before = first.iter().zip(&second).filter(|(first, second)| first < second).count();
    assert!((10..40).contains(&before), "one CPU is before the other in {before} of 50 looks");
}

#[test]
fn a_task_that_was_there_before_wakes_where_it_was() {
    let spec = |start| TaskSpec { cpu: CpuId(1), start, ..task(NOW, &[(10, Action::Exit)]) };
    let workload = Workload {
        tasks: vec![spec(Start::Asleep(Time(5))), spec(Start::At(Time(5)))],
        ..Default::default()
    };
    let (_, events) = run("initial:rr", &Machine::ideal(2), &workload);
    let wakings: Vec<EventKind> = events
        .iter()
        .map(|event| event.kind)
        .filter(|kind| !matches!(kind, EventKind::SchedSwitch { .. }))
        .collect();
    assert!(matches!(wakings[0], EventKind::SchedWaking { task: TaskId(0), .. }), "{wakings:?}");
    assert!(matches!(wakings[1], EventKind::SchedWakeupNew { task: TaskId(1), .. }), "{wakings:?}");
    assert_eq!(switches(&events).iter().filter(|switch| switch.0 == 5).count(), 2);
}

#[test]
fn switches_migrations_and_leaving_idle_cost_the_machines_values() {
    let machine = Machine {
        cpus: 1,
        switch_cost: Nanos(10),
        migration_cost: Nanos(1000),
        idle_exit: Nanos(100),
        ..Machine::ideal(1)
    };
    let workload = Workload {
        tasks: vec![task(NOW, &[(50, Action::Sleep(Nanos(500))), (50, Action::Exit)])],
        ..Default::default()
    };
    let (outcome, events) = run("central:rr", &machine, &workload);
    assert_eq!(
        switches(&events),
        [(100, 0, -1, 0), (160, 0, 0, -1), (660, 0, -1, 0), (720, 0, 0, -1)]
    );
    assert_eq!(outcome.unwrap().useful, Nanos(100));
}

#[test]
fn a_dispatch_waits_for_the_lock_and_holds_it_for_each_examined_entry() {
    let machine = Machine { lock_hold: Nanos(1), ..Machine::ideal(2) };
    let tasks = |n: usize| Workload {
        tasks: vec![task(NOW, &[(10, Action::Exit)]); n],
        ..Default::default()
    };
    let ends = |policy: &str, machine: &Machine, n: usize| {
        let (outcome, events) = run(policy, machine, &tasks(n));
        let last = |cpu: u16| {
            switches(&events).iter().filter(|switch| switch.1 == cpu).map(|switch| switch.0).max()
        };
        (outcome.unwrap().useful, last(0), last(1))
    };
    // One queue: CPU 0 holds its lock from 0 to 1 and from 11 to 12, CPU 1 waits and holds it from
    // 1 to 2, and from 12 to 13.
    assert_eq!(ends("central:rr", &machine, 4), (Nanos(40), Some(22), Some(23)));
    // A queue each: no CPU waits.
    assert_eq!(ends("initial:rr", &machine, 4), (Nanos(40), Some(22), Some(22)));
    assert_eq!(ends("take:rr", &machine, 4), (Nanos(40), Some(22), Some(22)));
    // CPU 1 is busy with a hog, whose search comes first; the other tasks were on CPU 1 before. CPU
    // 0 waits from 0 to 1 and runs them from 2, 13 and 24 on. With a search for its own tasks it
    // examines two at 12, so that the last two start one later.
    let mut beside = tasks(4);
    beside.tasks.iter_mut().for_each(|task| task.cpu = CpuId(1));
    beside.tasks[0].script = [(Nanos(100), Action::Exit)].into_iter().collect();
    let last_on_cpu_0 = |policy| {
        switches(&run(policy, &machine, &beside).1)
            .iter()
            .filter(|switch| switch.1 == 0)
            .map(|switch| switch.0)
            .max()
    };
    assert_eq!(
        (last_on_cpu_0("central:rr"), last_on_cpu_0("central:rr?search=all")),
        (Some(34), Some(35))
    );
    // The cost is charged to the task that is found.
    let (_, events) = run("central:rr", &machine, &tasks(2));
    let spent: Vec<u64> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Overhead { spent, .. } => Some(spent.0),
            _ => None,
        })
        .collect();
    assert_eq!(spent, [1, 2]);
}

#[test]
fn a_waking_interrupts_the_task_of_its_cpu() {
    let machine = Machine { interruption: Nanos(7), ..Machine::ideal(1) };
    let ran = |policy: &str, tasks: Vec<TaskSpec>| {
        let useful: u64 =
            tasks.iter().flat_map(|task| task.script.steps()).map(|step| step.run.0).sum();
        let (outcome, events) = run(policy, &machine, &Workload { tasks, ..Default::default() });
        assert_eq!(outcome.unwrap().useful, Nanos(useful));
        switches(&events).into_iter().map(|(time, _, _, next)| (time, next)).collect::<Vec<_>>()
    };
    // Task 1 starts while task 0 runs, which continues at 12; task 0 wakes at 47, when task 1 has
    // run for 30.
    let sleeper = task(NOW, &[(10, Action::Sleep(Nanos(30))), (5, Action::Exit)]);
    let hog = task(Start::At(Time(5)), &[(100, Action::Exit)]);
    assert_eq!(ran("central:rr", vec![sleeper, hog]), [(0, 0), (17, 1), (124, 0), (129, -1)]);
    // A waking task is interrupted first, and only then continues or sleeps.
    let waits = || task(NOW, &[(0, Action::Wait), (5, Action::Exit)]);
    let (wake, sleep) = (Action::Wake(TaskId(0)), Action::Sleep(Nanos(100)));
    let runs_on = task(NOW, &[(10, wake), (10, Action::Exit)]);
    assert_eq!(ran("central:rr", vec![waits(), runs_on]), [(0, 1), (27, 0), (32, -1)]);
    let sleeps = task(NOW, &[(10, wake), (0, sleep), (5, Action::Exit)]);
    assert_eq!(
        ran("central:rr", vec![waits(), sleeps]),
        [(0, 1), (17, 0), (22, -1), (117, 1), (122, -1)]
    );
    // Where the policy stops it there is a switch, and nothing else.
    let mut better = waits();
    better.info.prio = 100;
    let runs_on = task(NOW, &[(10, wake), (10, Action::Exit)]);
    assert_eq!(
        ran("central:priority", vec![better, runs_on]),
        [(0, 1), (10, 0), (15, 1), (25, -1)]
    );
}

#[test]
fn a_waking_takes_time_during_which_the_preempted_task_runs() {
    let machine = Machine { wake_cost: Nanos(5), ..Machine::ideal(1) };
    // Wakes at 1010 by an interrupt; the CPU idles until then, and switches at 1015.
    let sleeper = [(10, Action::Sleep(Nanos(1000))), (50, Action::Exit)];
    let (_, events) = run(
        "central:rr",
        &machine,
        &Workload { tasks: vec![task(NOW, &sleeper)], ..Default::default() },
    );
    assert_eq!(switches(&events)[2..], [(1015, 0, -1, 0), (1065, 0, 0, -1)]);
    // The same sleeper, of high priority, beside a hog: it preempts, five nanoseconds after its
    // waking.
    let (mut urgent, hog) = (task(NOW, &sleeper), task(NOW, &[(3000, Action::Exit)]));
    urgent.info.prio = 10;
    let workload = Workload { tasks: vec![urgent, hog], ..Default::default() };
    let (outcome, events) = run("fifo", &machine, &workload);
    let end = 10 + 3000 + 50;
    assert_eq!(outcome.unwrap().end, Time(end));
    assert_eq!(
        switches(&events)[1..],
        [(10, 0, 0, 1), (1015, 0, 1, 0), (1065, 0, 0, 1), (end, 0, 1, -1)]
    );
    // A hog that ends before that has no effect.
    let (mut urgent, short) = (task(NOW, &sleeper), task(NOW, &[(1003, Action::Exit)]));
    urgent.info.prio = 10;
    let (_, events) =
        run("fifo", &machine, &Workload { tasks: vec![urgent, short], ..Default::default() });
    assert_eq!(switches(&events)[2], (1013, 0, 1, 0));
}

#[test]
fn a_timer_interrupt_takes_time_before_the_woken_task_preempts() {
    let machine = Machine { timer_cost: Nanos(4), switch_cost: Nanos(10), ..Machine::ideal(1) };
    // Wakes at 1020; the hog, which has run since 30, does nothing from then on and stops at 1024.
    let mut urgent = task(NOW, &[(10, Action::Sleep(Nanos(1000))), (50, Action::Exit)]);
    urgent.info.prio = 10;
    let (outcome, events) = run(
        "fifo",
        &machine,
        &Workload { tasks: vec![urgent, task(NOW, &[(3000, Action::Exit)])], ..Default::default() },
    );
    let end = 10 + 10 + 10 + 3000 + 4 + 10 + 50 + 10;
    assert_eq!(
        switches(&events),
        [(0, 0, -1, 0), (20, 0, 0, 1), (1024, 0, 1, 0), (1084, 0, 0, 1), (end, 0, 1, -1)]
    );
    assert_eq!(outcome.unwrap().useful, Nanos(3060));
}

#[test]
fn a_user_space_policy_also_costs_time_when_a_task_is_chosen_again() {
    let yields = [(5, Action::Yield), (5, Action::Yield), (5, Action::Exit)];
    let ends = |machine: &Machine| {
        let (outcome, events) = run(
            "central:rr",
            machine,
            &Workload { tasks: vec![task(NOW, &yields)], ..Default::default() },
        );
        (outcome.unwrap().end, switches(&events).len())
    };
    let machine = Machine { switch_cost: Nanos(10), ..Machine::ideal(1) };
    assert_eq!(ends(&machine), (Time(10 + 15), 2));
    assert_eq!(ends(&Machine { unseen: Nanos(6), ..machine }), (Time(3 * 10 + 15), 2));
}

#[test]
fn a_tick_interrupts_its_cpu_and_a_policy_receives_the_ticks_that_it_needs() {
    let ticks = Ticks {
        cost: Nanos(3),
        others: [(1, Nanos(7))].into(),
        ..Ticks::new(Nanos(100), Time(50))
    };
    let machine = Machine { ticks: Some(ticks), ..Machine::ideal(1) };
    let workload = |tasks| Workload { tasks, ..Default::default() };
    // Ticks at 50, 150, 250 and 350 take 3, 7, 3 and 3.
    let (outcome, _) =
        run("central:rr", &machine, &workload(vec![task(NOW, &[(400, Action::Exit)])]));
    assert_eq!(outcome.map(|outcome| (outcome.end, outcome.useful)), Ok((Time(416), Nanos(400))));
    // A slice of 100 is over at 150, and the tick must end before the next task runs.
    let two = || vec![task(NOW, &[(200, Action::Exit)]), task(NOW, &[(80, Action::Exit)])];
    let (_, events) = run("central:rr?quantum=100ns", &machine, &workload(two()));
    assert_eq!(
        switches(&events),
        [(0, 0, -1, 0), (157, 0, 0, 1), (157 + 80, 0, 1, 0), (157 + 80 + 53 + 3, 0, 0, -1)]
    );
    // A policy in a user-space program that receives the second tick uses its time after that.
    let told =
        Machine { interruption: Nanos(20), ticks: machine.ticks.clone(), ..Machine::ideal(1) };
    let (outcome, _) =
        run("o1?tick=200ns", &told, &workload(vec![task(NOW, &[(180, Action::Exit)])]));
    assert_eq!(outcome.map(|outcome| outcome.end), Ok(Time(3 + 7 + 20 + 180)));
    // A tick during a switch lengthens the switch.
    let machine = Machine { switch_cost: Nanos(60), ..machine };
    let (_, events) =
        run("central:rr", &machine, &workload(vec![task(NOW, &[(20, Action::Exit)])]));
    assert_eq!(switches(&events), [(0, 0, -1, 0), (60 + 3 + 20, 0, 0, -1)]);
}

#[test]
fn a_token_that_comes_before_the_wait_is_kept() {
    let waker = task(
        NOW,
        &[(10, Action::Wake(TaskId(1))), (10, Action::Wake(TaskId(1))), (100, Action::Exit)],
    );
    let waiter = task(NOW, &[(15, Action::Wait), (15, Action::Wait), (15, Action::Exit)]);
    let workload = Workload { tasks: vec![waker, waiter], ..Default::default() };
    let (outcome, events) = run("take:rr", &Machine::ideal(2), &workload);
    assert_eq!(outcome.unwrap().end, Time(120));
    // Both tokens came in time: the waiter does not block.
    assert_eq!(switches(&events).iter().filter(|&&(.., next)| next == 1).count(), 1);
}

#[test]
fn a_cycle_of_waits_is_reported_with_its_tasks() {
    let one = task(NOW, &[(1, Action::Wait), (1, Action::Wake(TaskId(1))), (1, Action::Exit)]);
    let two = task(NOW, &[(1, Action::Wait), (1, Action::Wake(TaskId(0))), (1, Action::Exit)]);
    let (outcome, _) = run(
        "central:rr",
        &Machine::ideal(1),
        &Workload { tasks: vec![one, two], ..Default::default() },
    );
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.contains(
            "task 0 (t) waits for a wakeup by task 1 (t), which waits for a wakeup by task 0 again"
        ),
        "{message}"
    );
}

#[test]
fn a_wait_without_a_waker_is_a_stall_but_sleeping_for_ever_at_the_end_is_not() {
    let (outcome, _) = run(
        "central:rr",
        &Machine::ideal(1),
        &Workload { tasks: vec![task(NOW, &[(5, Action::Wait)])], ..Default::default() },
    );
    assert_eq!(outcome.unwrap().end, Time(5));
    let workload = Workload {
        tasks: vec![task(NOW, &[(5, Action::Wait), (5, Action::Exit)])],
        ..Default::default()
    };
    let message = run("central:rr", &Machine::ideal(1), &workload).0.unwrap_err().to_string();
    assert!(message.contains("no other task has left to give"), "{message}");
}

#[test]
fn initial_placement_never_migrates_and_take_does_rather_than_idle() {
    let ms = 1_000_000;
    let workload = Workload {
        tasks: (0..5).map(|n| task(NOW, &[((1 + n) * 10 * ms, Action::Exit)])).collect(),
        ..Default::default()
    };
    let migrations = |policy| {
        let (_, events) = run(policy, &Machine::ideal(2), &workload);
        events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::SchedMigrateTask { .. }))
            .count()
    };
    assert_eq!(migrations("initial:rr"), 0);
    assert!(migrations("take:rr") >= 1);
    assert!(migrations("central:rr") > migrations("take:rr"));
}

#[test]
fn a_pinned_task_runs_on_its_cpu_under_every_topology() {
    for policy in ["central:rr", "initial:rr", "take:rr"] {
        let mut tasks: Vec<_> = (0..6)
            .map(|_| {
                task(NOW, &[(9_000_000, Action::Sleep(Nanos(1000))), (9_000_000, Action::Exit)])
            })
            .collect();
        tasks[1].affinity = Affinity::Pinned(CpuId(1));
        tasks[2].affinity = Affinity::Pinned(CpuId(1));
        let (outcome, events) =
            run(policy, &Machine::ideal(3), &Workload { tasks, ..Default::default() });
        outcome.unwrap();
        let astray = switches(&events)
            .into_iter()
            .filter(|&(_, cpu, _, next)| (next == 1 || next == 2) && cpu != 1)
            .count();
        assert_eq!(astray, 0, "{policy}");
    }
}
