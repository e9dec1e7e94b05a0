use super::*;
use crate::Random;
use crate::policy::{Catalog, Central, CentralOptions, Context, Levels, PolicySpec};
use readyq::{Priority, RoundRobin};

const CPU: CpuId = CpuId(0);

/// `count` tasks on one CPU, woken in order; task 0 is the CPU's.
fn awake<P: Policy>(policy: P, count: u32) -> Live<P> {
    let mut live = Live::new(policy, Machine::ideal(1), 1);
    for task in (0..count).map(TaskId) {
        live.arrive(task, Arrival::default());
        live.wake(task, true, None);
    }
    live
}

fn round_robin() -> Central<RoundRobin> {
    Central::new(RoundRobin::new(), CentralOptions::baseline(Nanos(100)))
}

fn chosen<P: Policy>(live: &mut Live<P>) -> Vec<(u32, u64)> {
    let run = |decision| match decision {
        Decision::Run { task, slice, .. } => (task.0, slice.0),
        Decision::Stop(_) => (u32::MAX, 0),
    };
    live.decisions().map(run).collect()
}

/// Policies keep what they were told when a task came, weights for one: a change reaches them all the same.
#[test]
fn a_task_that_changes_its_nice_value_has_the_share_of_the_new_one() {
    fn shares(policy: impl Policy, asleep: bool) -> [u64; 2] {
        let mut live = awake(policy, 2);
        let mut ran = [0; 2];
        if !asleep {
            // Task 1 runs, as it does when it changes its own.
            while live.current(CPU) != Some(TaskId(1)) {
                live.stopped(CPU, Stop::Yielded);
            }
            live.set_prio(TaskId(1), 130);
        } else {
            live.taken(TaskId(1));
            live.set_prio(TaskId(1), 130);
            live.wake(TaskId(1), false, None);
        }
        for step in 1..20_000 {
            let Some(task) = live.current(CPU) else { break };
            live.running(CPU, task);
            live.at(Time(step * 1_000_000));
            ran[task.index()] += 1;
            live.tick(CPU);
            live.stopped(CPU, Stop::Preempted);
        }
        assert_eq!(live.breach(), None);
        ran
    }
    for policy in ["eevdf", "cfs", "stride"] {
        for asleep in [false, true] {
            let [first, second] = shares(PolicySpec::parse(policy).unwrap().policy(1), asleep);
            let share = second as f64 / (first + second) as f64;
            // Nice 10 has a weight of 110, nice 0 of 1024.
            assert!((share - 110.0 / 1134.0).abs() < 0.01, "{policy}, asleep: {asleep}: {share}");
        }
    }
}

#[test]
fn a_policy_begins_anew_when_nobody_waits() {
    fn begins_anew(policy: impl Policy + Clone) {
        let mut live = awake(policy.clone(), 3);
        assert!(!live.begin_anew(policy.clone(), 1), "two tasks wait");
        live.taken(TaskId(1));
        live.taken(TaskId(2));
        assert!(live.begin_anew(policy.clone(), 1), "one was chosen, and nobody has said yet that it runs");
        live.running(CPU, TaskId(0));
        assert!(live.begin_anew(policy.clone(), 1));
        assert_eq!(live.current(CPU), Some(TaskId(0)));
        live.wake(TaskId(1), false, None);
        live.stopped(CPU, Stop::Blocked);
        live.running(CPU, TaskId(1));
        live.stopped(CPU, Stop::Blocked);
        assert!(live.begin_anew(policy, 1), "nobody runs");
        live.wake(TaskId(2), false, None);
        assert_eq!((live.current(CPU), live.breach()), (Some(TaskId(2)), None));
    }
    for policy in ["central:ruler", "take:multilist2", "eevdf", "cfs", "mlfq", "pslist", "stride", "o1", "rr"] {
        begins_anew(PolicySpec::parse(policy).unwrap().policy(1));
    }
}

/// What is read together may hold both: that a better task woke, and that the CPU was kept from its task for the policy's sake.
#[test]
fn who_is_kept_from_running_already_is_not_stopped_once_more() {
    let options = CentralOptions { preempt: true, levels: Levels::new(32), ..CentralOptions::baseline(Nanos(100)) };
    let mut live = awake(Central::new(Priority::new(), options), 1);
    live.running(CPU, TaskId(0));
    chosen(&mut live);
    live.arrive(TaskId(1), Arrival { prio: 100, ..Arrival::default() });
    live.wake(TaskId(1), true, None);
    live.paused(CPU);
    assert_eq!(chosen(&mut live), [(1, 100)], "it would stop task 1");
}

/// A policy that counts tasks where it placed them loses none: of those that were asleep before it came, change CPUs, or leave without having run.
#[test]
fn every_task_is_placed_once_before_it_leaves() {
    fn leavers(policy: impl Policy) -> Option<String> {
        let mut live = Live::new(policy, Machine::ideal(2), 1);
        for task in (0..6).map(TaskId) {
            live.arrive(task, Arrival::default());
        }
        (0..4).map(TaskId).for_each(|task| live.wake(task, false, None));
        (0..4).map(TaskId).for_each(|task| live.taken(task));
        live.set_affinity(TaskId(1), 1);
        live.wake(TaskId(1), false, None);
        (0..6).map(TaskId).for_each(|task| live.leave(task));
        live.breach().map(ToString::to_string)
    }
    for name in Catalog::built_in().names() {
        assert_eq!(leavers(PolicySpec::parse(&name).unwrap().policy(2)), None, "{name}");
    }
}

#[test]
fn tasks_that_yield_take_turns_and_one_that_sleeps_comes_back() {
    let mut live = awake(round_robin(), 3);
    assert_eq!(chosen(&mut live), [(0, 100)]);
    for (time, task) in [(1, 0), (2, 1), (3, 2)] {
        live.at(Time(time));
        live.running(CPU, TaskId(task));
        live.stopped(CPU, Stop::Yielded);
    }
    assert_eq!(chosen(&mut live), [(1, 100), (2, 100), (0, 100)]);
    live.stopped(CPU, Stop::Blocked);
    live.wake(TaskId(0), false, Some(CPU));
    live.stopped(CPU, Stop::Exited);
    assert_eq!(chosen(&mut live), [(1, 100), (2, 100)]);
    assert!(!live.is_chosen(TaskId(0)) && live.current(CPU) == Some(TaskId(2)));
    assert_eq!(live.breach(), None);
}

#[test]
fn a_task_that_is_kept_from_running_goes_on_with_what_is_left_of_its_slice() {
    let mut live = awake(round_robin(), 2);
    live.at(Time(10));
    live.running(CPU, TaskId(0));
    live.at(Time(40));
    live.paused(CPU);
    live.resume(CPU);
    assert_eq!(chosen(&mut live), [(0, 100), (0, 70)]);
    live.at(Time(50));
    live.running(CPU, TaskId(0));
    live.at(Time(120));
    live.paused(CPU);
    live.resume(CPU);
    assert_eq!(chosen(&mut live), [(1, 100)], "its slice was over");
}

/// The kernel has been told already that the first goes on.
#[test]
fn a_task_that_goes_on_is_stopped_where_a_better_one_comes_before_it_runs() {
    let options = CentralOptions { preempt: true, levels: Levels::new(32), ..CentralOptions::baseline(Nanos(100)) };
    let mut live = awake(Central::new(Priority::new(), options), 1);
    live.running(CPU, TaskId(0));
    live.paused(CPU);
    live.resume(CPU);
    assert_eq!(chosen(&mut live), [(0, 100), (0, 100)]);
    live.arrive(TaskId(1), Arrival { prio: 100, ..Arrival::default() });
    live.wake(TaskId(1), true, None);
    assert_eq!((chosen(&mut live), live.current(CPU)), (vec![(u32::MAX, 0)], Some(TaskId(0))));
    live.running(CPU, TaskId(0));
    assert_eq!(chosen(&mut live), [(u32::MAX, 0)]);
    live.paused(CPU);
    assert_eq!(chosen(&mut live), [(1, 100)]);
}

#[test]
fn one_that_is_better_stops_the_running_one() {
    let options = CentralOptions { levels: Levels::new(140), preempt: true, ..CentralOptions::baseline(Nanos(100)) };
    let mut live = Live::new(Central::new(Priority::new(), options), Machine::ideal(1), 1);
    for (task, prio) in [(0, 120), (1, 100)] {
        live.arrive(TaskId(task), Arrival { prio, ..Arrival::default() });
    }
    live.wake(TaskId(0), true, None);
    live.running(CPU, TaskId(0));
    live.wake(TaskId(1), true, None);
    assert_eq!(chosen(&mut live), [(0, 100), (u32::MAX, 0)]);
    live.paused(CPU);
    assert_eq!(chosen(&mut live), [(1, 100)]);
}

#[test]
fn a_task_that_is_taken_away_is_not_chosen_and_a_new_affinity_holds() {
    let mut live = Live::new(round_robin(), Machine::ideal(2), 1);
    for task in (0..3).map(TaskId) {
        live.arrive(task, Arrival::default());
        live.wake(task, true, None);
    }
    live.taken(TaskId(2));
    live.set_affinity(TaskId(2), 0b10);
    live.wake(TaskId(2), false, None);
    live.stopped(CPU, Stop::Blocked);
    assert_eq!(live.current(CPU), None, "task 2 may run on CPU 1 only");
    live.stopped(CpuId(1), Stop::Blocked);
    assert_eq!(live.current(CpuId(1)), Some(TaskId(2)));
    live.leave(TaskId(2));
    assert_eq!((live.current(CpuId(1)), live.breach()), (None, None));
}

/// Dispatches a task that there is not.
struct Stranger(Central<RoundRobin>);

impl Policy for Stranger {
    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.0.init_task(cx, task);
    }
    fn select_cpu(&mut self, _cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        CpuId(if task.0 == 1 { 7 } else { 0 })
    }
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        self.0.enqueue(cx, task, cpu, why)
    }
    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        self.0.dequeue(cx, task);
    }
    fn dispatch(&mut self, _cx: &mut Context, _cpu: CpuId) -> Option<Dispatch> {
        Some(Dispatch { task: TaskId(9), slice: Nanos(1) })
    }
}

#[test]
fn a_rule_that_is_broken_is_named() {
    let live = awake(Stranger(round_robin()), 1);
    let rule = |live: &Live<Stranger>| live.breach().map(ToString::to_string);
    let no_task = "at 0ns: dispatch, task 9, CPU 0: there is no such task: it has not come yet, or has left";
    assert_eq!(rule(&live).as_deref(), Some(no_task));
    let mut live = Live::new(Stranger(round_robin()), Machine::ideal(1), 1);
    live.arrive(TaskId(1), Arrival::default());
    live.wake(TaskId(1), true, None);
    assert_eq!(rule(&live).as_deref(), Some("at 0ns: select_cpu, task 1, CPU 7: there is no such CPU; the last one is CPU 0"));
}

/// What a kernel may do to six tasks, in any order, times that stand still included.
fn anything(policy: impl Policy, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut live = awake(policy, 6);
    let mut now = 0;
    for step in 0..400 {
        now += [0, 0, 1_000, 700_000, 4_000_000][random.below(5) as usize];
        live.at(Time(now));
        let (any, running) = (TaskId(random.below(6) as u32), live.current(CPU));
        running.into_iter().for_each(|task| live.running(CPU, task));
        let what = random.below(8);
        match what {
            0..=2 => live.wake(any, false, None),
            3 => live.stopped(CPU, Stop::Blocked),
            4 => live.stopped(CPU, Stop::Yielded),
            5 => live.tick(CPU),
            6 => live.taken(any),
            _ => live.stopped(CPU, if random.below(2) == 0 { Stop::SliceOver } else { Stop::Preempted }),
        }
        let waits = (0..6).map(TaskId).find(|&task| live.is_waiting(task));
        if let (None, Some(task)) = (live.current(CPU), waits) {
            return Err(format!("task {} waits and the CPU idles after step {step} of {}, a {what}", task.0, seed));
        }
        if let Some(failure) = live.breach() {
            return Err(format!("{failure} after step {step} of {}, a {what}", seed));
        }
    }
    Ok(())
}

#[test]
fn no_cpu_idles_while_a_task_waits_whatever_the_kernel_does() {
    for name in Catalog::built_in().names() {
        let spec = PolicySpec::parse(&name).unwrap();
        (0..50).for_each(|seed| assert_eq!(anything(spec.policy(1), seed), Ok(()), "{name}"));
    }
}

/// Yields of three tasks on one CPU under each policy that the catalog knows.
fn drive(policy: impl Policy) -> Result<u32, String> {
    let mut live = awake(policy, 3);
    let mut ran = [0; 3];
    for turn in 1..200 {
        live.at(Time(turn * 1_000_000));
        let task = live.current(CPU).ok_or("nobody runs while three wait")?;
        ran[task.index()] += 1;
        live.running(CPU, task);
        live.tick(CPU);
        live.stopped(CPU, if turn % 3 == 0 { Stop::SliceOver } else { Stop::Yielded });
        if let Some(failure) = live.breach() {
            return Err(failure.to_string());
        }
    }
    Ok(ran.into_iter().min().unwrap_or(0))
}

#[test]
fn every_policy_of_the_catalog_runs_live_and_starves_nobody_of_equals() {
    for name in Catalog::built_in().names() {
        let least = drive(PolicySpec::parse(&name).unwrap().policy(1));
        // Tickets are drawn, and who has not had a turn yet is worth less than who gave up most of one.
        let enough = if name == "lottery" { 20 } else { 40 };
        assert!(least.as_ref().is_ok_and(|&least| least >= enough), "{name}: {least:?}");
    }
}
