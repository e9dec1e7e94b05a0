//! How late a CPU chooses after a waking, and where interrupts arrive.

use super::{NOW, run, switches, task};
use schedsim::engine::{self, Options};
use schedsim::policy::{Context, Dispatch, Effect, Enqueue, Policy, Wake};
use schedsim::trace::{Event, EventKind, Trace};
use schedsim::workload::{
    Action, Affinity, Closed, Device, Operation, Shared, Start, TaskSpec, Workload,
};
use schedsim::{ByIdleTime, CpuId, Machine, Nanos, Spread, TaskId, Time, WakeLatency};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const DISK: u64 = 30_000;

/// A machine whose CPUs are late by a value of its own for each class.
fn machine() -> Machine {
    let always = |[fresh, short, long]: [u64; 3]| {
        let times = [fresh, fresh, fresh, fresh, short, short, long];
        ByIdleTime(times.map(|time| Spread::always(Nanos(time))))
    };
    Machine {
        idle_exit: Nanos(1),
        wake_cost: Nanos(1),
        latency: WakeLatency {
            idle_here: always([200, 280, 800]),
            idle_away: always([700, 1_400, 2_400]),
            busy_here: Spread::always(Nanos(260)),
            busy_away: Spread::always(Nanos(1_000)),
            seed: 1,
        },
        ..Machine::ideal(2)
    }
}

fn on(cpu: u16, steps: &[(u64, Action)]) -> TaskSpec {
    TaskSpec { affinity: Affinity::Pinned(CpuId(cpu)), cpu: CpuId(cpu), ..task(NOW, steps) }
}

/// When `task` got a CPU.
fn dispatches(policy: &str, machine: &Machine, workload: &Workload, task: i64) -> Vec<u64> {
    let (outcome, events) = run(policy, machine, workload);
    outcome.unwrap();
    let of = |(time, _, _, next)| (next == task).then_some(time);
    switches(&events).into_iter().filter_map(of).collect()
}

/// Of a workload whose first task sleeps and then wakes the second one after `idle`.
fn woken_after(idle: u64, prio: u8) -> Workload {
    let sleeper = |cpu| on(cpu, &[(1_000, Action::Wait), (500, Action::Exit)]);
    let waker = on(0, &[(1_000 + idle, Action::Wake(TaskId(1))), (9_000, Action::Exit)]);
    let mut tasks = vec![waker, sleeper(1)];
    tasks.iter_mut().for_each(|task| task.info.prio = prio);
    Workload { tasks, ..Workload::default() }
}

#[test]
fn an_idle_cpu_is_the_later_the_longer_it_was_idle() {
    for (idle, late) in [(3_000, 700), (100_000, 1_400), (300_000, 2_400)] {
        for (policy, prio) in [("eevdf", 120), ("fifo", 50), ("take:rr", 120)] {
            let (outcome, events) = run(policy, &machine(), &woken_after(idle, prio));
            outcome.unwrap();
            let woken = woken(&events, TaskId(1));
            let all = switches(&events);
            let began = all.iter().rfind(|&&(_, _, prev, next)| (prev, next) == (-1, 1)).unwrap().0;
            assert_eq!(began - woken, late, "{policy}");
        }
    }
}

/// When the running task of another CPU wakes `task`.
fn woken(events: &[Event], task: TaskId) -> u64 {
    let of = |event: &Event| match event.kind {
        EventKind::SchedWaking { task: of, .. } if of == task => Some(event.time.0),
        _ => None,
    };
    events.iter().find_map(of).unwrap()
}

#[test]
fn an_interrupt_of_its_own_wakes_a_cpu_sooner() {
    for (pause, late) in [(3_000, 200), (100_000, 280), (300_000, 800)] {
        let sleeps = on(0, &[(1_000, Action::Sleep(Nanos(pause))), (500, Action::Exit)]);
        let workload = Workload { tasks: vec![sleeps], ..Workload::default() };
        let times = dispatches("eevdf", &machine(), &workload, 0);
        assert_eq!(times[1] - times[0], 1_000 + pause + late);
    }
}

#[test]
fn a_busy_cpu_stops_its_task_sooner_if_that_is_the_waker() {
    let better = |cpu| {
        let mut task = on(cpu, &[(1_000, Action::Wait), (500, Action::Exit)]);
        task.info.prio = 10;
        task
    };
    for (cpu, late) in [(0, 260), (1, 1_000)] {
        let mut waker = on(0, &[(50_000, Action::Wake(TaskId(2))), (90_000, Action::Exit)]);
        let mut hog = on(1, &[(200_000, Action::Exit)]);
        (waker.info.prio, hog.info.prio) = (50, 50);
        let workload = Workload { tasks: vec![waker, hog, better(cpu)], ..Workload::default() };
        let (outcome, events) = run("fifo", &machine(), &workload);
        outcome.unwrap();
        let woken = woken(&events, TaskId(2));
        let all = switches(&events);
        let last = all.iter().rfind(|(_, _, _, next)| *next == 2).unwrap().0;
        assert_eq!(last - woken, late);
    }
}

#[test]
fn a_task_stays_on_the_cpu_that_is_about_to_run_it() {
    // The waker blocks before the other CPU has left idle. It does not pull the task that waits
    // there (`pull_rt_task`), so that nothing migrates.
    let steps = |other: u32, first: bool| {
        let mut steps = Vec::new();
        for _ in 0..20 {
            let (wait, wake) = ((100, Action::Wait), (100, Action::Wake(TaskId(other))));
            steps.extend(if first { [wake, wait] } else { [wait, wake] });
        }
        steps.push((1, Action::Exit));
        steps
    };
    let mut tasks = vec![task(NOW, &steps(1, true)), task(Start::At(Time(50)), &steps(0, false))];
    tasks[1].cpu = CpuId(1);
    tasks.iter_mut().for_each(|task| task.info.prio = 50);
    let workload = Workload { tasks, ..Workload::default() };
    for policy in ["fifo", "eevdf"] {
        let (outcome, events) = run(policy, &machine(), &workload);
        outcome.unwrap();
        let all = switches(&events);
        assert!(all.iter().filter(|(_, _, _, next)| *next >= 0).count() >= 38, "{policy}: {all:?}");
        assert!(
            all.iter().all(|&(_, cpu, _, next)| next < 0 || i64::from(cpu) == next),
            "{policy}: {all:?}"
        );
    }
}

#[test]
fn the_interrupts_of_a_device_arrive_on_its_cpu() {
    let io = Action::Do(Operation::Io { device: 0, service: Nanos(DISK) });
    let end = |interrupts: Option<u16>| {
        let device = Device { name: "disk".into(), channels: 1, interrupts: interrupts.map(CpuId) };
        let steps: Vec<(u64, Action)> =
            (0..10).map(|_| (1_000, io)).chain([(1, Action::Exit)]).collect();
        let shared = Shared { devices: vec![device], ..Shared::default() };
        let workload = Workload { tasks: vec![on(0, &steps)], shared, ..Workload::default() };
        let (outcome, events) = run("eevdf", &machine(), &workload);
        let wakers: Vec<u16> = (events.iter())
            .filter(|event| matches!(event.kind, EventKind::SchedWaking { .. }))
            .map(|event| event.cpu.0)
            .collect();
        assert_eq!(wakers.len(), 10);
        assert!(wakers.iter().all(|&cpu| cpu == interrupts.unwrap_or(0) % 2), "{wakers:?}");
        outcome.unwrap().end.0
    };
    // Without a CPU they follow the task; a number that this machine does not have wraps.
    assert_eq!((end(None), end(Some(2))), (end(Some(0)), end(Some(0))));
    assert_eq!(end(Some(1)) - end(Some(0)), 10 * (1_400 - 280));
}

/// One CPU in order of arrival. It keeps whom each wakeup is of, and whether it is one in sync.
#[derive(Clone, Default)]
struct Hears {
    waiting: VecDeque<TaskId>,
    heard: Rc<RefCell<Vec<(TaskId, bool)>>>,
}

impl Policy for Hears {
    fn init_task(&mut self, _: &mut Context, _: TaskId) {}
    fn select_cpu(&mut self, _: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        if !wake.new {
            self.heard.borrow_mut().push((task, wake.sync));
        }
        CpuId(0)
    }
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, _: Enqueue) -> Effect {
        self.waiting.push_back(task);
        if cx.current(cpu).is_none() { Effect::Kick(cpu) } else { Effect::Nothing }
    }
    fn dequeue(&mut self, _: &mut Context, task: TaskId) {
        self.waiting.retain(|&other| other != task);
    }
    fn dispatch(&mut self, _: &mut Context, _: CpuId) -> Option<Dispatch> {
        let task = self.waiting.pop_front()?;
        Some(Dispatch { task, slice: Nanos::from_millis(1_000) })
    }
}

/// As `wake_up_interruptible_sync_poll` in `fs/pipe.c` and `net/core/sock.c`, and `wake_up_q` of
/// futexes, `wake_up_locked_poll` of eventfds and timers otherwise.
#[test]
fn pipes_and_sockets_wake_in_sync_and_nothing_else_does() {
    let cases = [
        (r#"{"read": {"pipe": "p", "bytes": 1}}"#, r#"{"write": {"pipe": "p", "bytes": 1}}"#, true),
        (
            r#"{"receive": {"socket": "s", "bytes": 1}}"#,
            r#"{"send": {"socket": "s", "bytes": 1}}"#,
            true,
        ),
        (r#"{"take": {"eventfd": "e"}}"#, r#"{"post": {"eventfd": "e"}}"#, false),
        (r#"{"wait": {"condition": "c", "mutex": "m"}}"#, r#"{"signal": "c"}"#, false),
        (r#"{"sleep": "2ms"}"#, r#"{"run": "5ms"}"#, false),
    ];
    for (waits, wakes, sync) in cases {
        let text = format!(
            r#"{{"task": [{{"name": "a", "phases": [{{"lock": "m"}}, {waits}, {{"unlock": "m"}}]}},
            {{"name": "b", "phases": [{{"run": "1ms"}}, {wakes}]}}]}}"#
        );
        let closed: Closed = serde_json::from_str(&text).unwrap();
        let policy = Hears::default();
        let heard = Rc::clone(&policy.heard);
        let options = Options { seed: 1, until: Time::NEVER };
        let workload = Workload::of(&closed, 1).unwrap();
        engine::simulate(&workload, &Machine::ideal(1), policy, options, Trace::new(vec![]))
            .unwrap();
        assert_eq!(*heard.borrow(), [(TaskId(0), sync)], "{wakes}");
    }
}
