use super::*;
use crate::Random;
use crate::policy::{Catalog, Central, CentralOptions, Context, Levels, PolicySpec, Reweight};
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

/// The state of the second of two tasks when its nice value changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Sleeps,
    Waits,
    Runs,
    /// It was removed while it waited, as a kernel reports it, and comes back.
    IsAway,
}

/// The run times of two hogs of nice 0 after the second one, in this state, changes to `prio`.
fn shares_after_a_change(policy: impl Policy, place: Place, prio: u8) -> [u64; 2] {
    let mut live = awake(policy, 2);
    let mut ran = [0; 2];
    let mut changes_at = Some(500);
    for step in 1..6_000 {
        let Some(task) = live.current(CPU) else { break };
        live.running(CPU, task);
        live.at(Time(step * 1_000_000));
        ran[task.index()] += 1;
        live.tick(CPU);
        if changes_at.is_some_and(|at| step >= at) && (task == TaskId(1)) == (place == Place::Runs)
        {
            (changes_at, ran) = (None, [0; 2]);
            match place {
                Place::Runs | Place::Waits => live.set_weight(TaskId(1), prio),
                Place::Sleeps | Place::IsAway => {
                    live.taken(TaskId(1));
                    live.set_weight(TaskId(1), prio);
                    if place == Place::Sleeps {
                        live.wake(TaskId(1), false, None)
                    } else {
                        live.restored(TaskId(1))
                    }
                }
            }
        }
        live.stopped(CPU, Stop::Preempted);
    }
    assert_eq!((live.breach(), changes_at), (None, None));
    ran
}

/// The oracle knows only Linux's weights. Policies cache values when a task arrives, such as
/// weights; a change must reach them, too.
#[test]
fn a_task_that_changes_its_nice_value_has_the_share_of_the_new_one() {
    for policy in ["eevdf", "cfs", "stride", "pslist", "lottery"] {
        for place in [Place::Sleeps, Place::Waits, Place::Runs, Place::IsAway] {
            for (prio, weight) in [(130, 110.0), (117, 1991.0), (120, 1024.0)] {
                let [first, second] = shares_after_a_change(
                    PolicySpec::parse(policy).unwrap().policy(1),
                    place,
                    prio,
                );
                let share = second as f64 / (first + second) as f64;
                // Tickets are random: three standard deviations.
                let error = if policy == "lottery" { 0.02 } else { 0.01 };
                assert!(
                    (share - weight / (weight + 1024.0)).abs() < error,
                    "{policy}, {place:?}, {prio}: {share}"
                );
            }
        }
    }
}

/// A task's weight follows its own nice value, whatever it inherits.
#[test]
fn an_inherited_priority_changes_no_share_under_a_fair_scheduler() {
    for policy in ["eevdf", "cfs"] {
        let mut live = awake(PolicySpec::parse(policy).unwrap().policy(1), 2);
        let mut ran = [0; 2];
        assert_eq!(live.seat.set_weight(TaskId(0), 130, Reweight::Inherited), Effect::Nothing);
        for step in 1..2_000 {
            let Some(task) = live.current(CPU) else { break };
            live.running(CPU, task);
            live.at(Time(step * 1_000_000));
            ran[task.index()] += 1;
            live.tick(CPU);
            live.stopped(CPU, Stop::Preempted);
        }
        assert!(u64::abs_diff(ran[0], ran[1]) < 10, "{policy}: {ran:?}");
    }
}

/// As `prio_changed_rt` and `prio_changed_fair`. A running task that gets worse makes room at once.
/// A waiting task that gets better does not wait for a slice to end.
#[test]
fn a_running_task_that_gets_worse_than_a_waiting_one_is_stopped() {
    for policy in ["fifo", "rr", "eevdf", "cfs", "o1"] {
        let mut live = awake(PolicySpec::parse(policy).unwrap().policy(1), 2);
        let runs = live.current(CPU).unwrap();
        live.running(CPU, runs);
        chosen(&mut live);
        live.set_weight(runs, 139);
        assert_eq!(chosen(&mut live), [(u32::MAX, 0)], "{policy}");
        live.paused(CPU);
        // Which of two equals a fair scheduler picks then depends on their virtual times.
        let is_fair = ["eevdf", "cfs"].contains(&policy);
        assert!(is_fair || live.current(CPU) != Some(runs), "{policy}");
    }
    let mut live = awake(PolicySpec::parse("fifo").unwrap().policy(1), 2);
    live.running(CPU, TaskId(0));
    chosen(&mut live);
    live.set_weight(TaskId(1), 110);
    assert_eq!(chosen(&mut live), [(u32::MAX, 0)], "the one that waits is better now");
    live.set_weight(TaskId(0), 100);
    live.paused(CPU);
    assert_eq!(
        (live.current(CPU), live.breach()),
        (Some(TaskId(0)), None),
        "until the other is better still"
    );
}

#[test]
fn a_policy_restarts_when_no_task_waits() {
    fn begins_anew(policy: impl Policy + Clone) {
        let mut live = awake(policy.clone(), 3);
        assert!(!live.begin_anew(policy.clone(), 1), "two tasks wait");
        live.taken(TaskId(1));
        live.taken(TaskId(2));
        assert!(
            live.begin_anew(policy.clone(), 1),
            "one was chosen, and no report says yet that it runs"
        );
        live.running(CPU, TaskId(0));
        assert!(live.begin_anew(policy.clone(), 1));
        assert_eq!(live.current(CPU), Some(TaskId(0)));
        live.wake(TaskId(1), false, None);
        live.stopped(CPU, Stop::Blocked);
        live.running(CPU, TaskId(1));
        live.stopped(CPU, Stop::Blocked);
        assert!(live.begin_anew(policy, 1), "no task runs");
        live.wake(TaskId(2), false, None);
        assert_eq!((live.current(CPU), live.breach()), (Some(TaskId(2)), None));
    }
    for policy in
        ["central:ruler", "take:multilist2", "eevdf", "cfs", "mlfq", "pslist", "stride", "o1", "rr"]
    {
        begins_anew(PolicySpec::parse(policy).unwrap().policy(1));
    }
}

/// One batch of reports may hold both: a better task woke, and the CPU was interrupted on the
/// policy's behalf.
#[test]
fn an_interrupted_task_is_not_stopped_again() {
    let options = CentralOptions {
        preempt: true,
        levels: Levels::new(32),
        ..CentralOptions::baseline(Nanos(100))
    };
    let mut live = awake(Central::new(Priority::new(), options), 1);
    live.running(CPU, TaskId(0));
    chosen(&mut live);
    live.arrive(TaskId(1), Arrival { prio: 100, ..Arrival::default() });
    live.wake(TaskId(1), true, None);
    live.paused(CPU);
    assert_eq!(chosen(&mut live), [(1, 100)], "it would stop task 1");
}

/// A policy that counts placed tasks loses none: neither tasks asleep before it started, nor ones
/// that change CPUs or leave without having run.
#[test]
fn every_task_is_placed_once_before_it_leaves() {
    fn leavers(policy: impl Policy) -> Option<String> {
        let mut live = Live::new(policy, Machine::ideal(2), 1);
        for task in (0..6).map(TaskId) {
            live.arrive(task, Arrival::default());
        }
        (0..4).map(TaskId).for_each(|task| live.wake(task, false, None));
        (0..4).map(TaskId).for_each(|task| live.taken(task));
        live.set_cpumask(TaskId(1), 1);
        live.wake(TaskId(1), false, None);
        (0..6).map(TaskId).for_each(|task| live.leave(task));
        live.breach().map(ToString::to_string)
    }
    for name in Catalog::built_in().names() {
        assert_eq!(leavers(PolicySpec::parse(&name).unwrap().policy(2)), None, "{name}");
    }
}

#[test]
fn tasks_that_yield_alternate_and_a_sleeper_returns() {
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
fn an_interrupted_task_continues_with_the_rest_of_its_slice() {
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

/// The kernel has received the decision that the first task continues.
#[test]
fn a_task_chosen_to_continue_is_stopped_for_a_better_one_that_wakes_first() {
    let options = CentralOptions {
        preempt: true,
        levels: Levels::new(32),
        ..CentralOptions::baseline(Nanos(100))
    };
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
    let options = CentralOptions {
        levels: Levels::new(140),
        preempt: true,
        ..CentralOptions::baseline(Nanos(100))
    };
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
    live.set_cpumask(TaskId(2), 0b10);
    live.wake(TaskId(2), false, None);
    live.stopped(CPU, Stop::Blocked);
    assert_eq!(live.current(CPU), None, "task 2 may run on CPU 1 only");
    live.stopped(CpuId(1), Stop::Blocked);
    assert_eq!(live.current(CpuId(1)), Some(TaskId(2)));
    live.leave(TaskId(2));
    assert_eq!((live.current(CpuId(1)), live.breach()), (None, None));
}

/// Under every policy: six tasks, whose CPUs, class and weight change, run only where they may, and
/// none is lost, while CPUs come and go.
#[test]
fn no_task_runs_outside_its_affinity_under_any_changes() {
    fn changes(name: &str, policy: impl Policy, seed: u64) {
        let mut random = Random::new(seed);
        let mut live = Live::new(policy, Machine::ideal(3), 1);
        let (mut masks, mut now) = ([0b111; 6], 0);
        for task in (0..6).map(TaskId) {
            live.arrive(task, Arrival::default());
            live.wake(task, true, None);
        }
        for step in 0..200 {
            now += [0, 1_000, 4_000_000][random.below(3) as usize];
            live.at(Time(now));
            let (task, cpu) = (TaskId(random.below(6) as u32), CpuId(random.below(3) as u16));
            live.current(cpu).into_iter().for_each(|task| live.running(cpu, task));
            match random.below(10) {
                0..=2 => {
                    masks[task.index()] = 1 + random.below(7);
                    live.set_cpumask(task, masks[task.index()]);
                }
                3 => live.set_weight(task, 100 + random.below(40) as u8),
                4 => live.disable(task),
                5 => live.enable(task, Arrival { cpus: masks[task.index()], ..Arrival::default() }),
                6 => live.stopped(cpu, Stop::Blocked),
                7 => live.stopped(cpu, Stop::Preempted),
                8 => live.withdraw(task),
                _ => live.tick(cpu),
            }
            if random.below(2) == 0 {
                live.wake(task, false, None)
            } else {
                live.restored(task)
            }
            assert_eq!(live.ended(), None, "{name}: after step {step} of {seed}");
            for cpu in live.machine().all() {
                let outside =
                    live.current(cpu).filter(|task| masks[task.index()] >> cpu.0 & 1 == 0);
                assert_eq!(outside, None, "{name}: on CPU {} after step {step} of {seed}", cpu.0);
                let waits = (0..6)
                    .map(TaskId)
                    .find(|&task| live.is_waiting(task) && masks[task.index()] == 1 << cpu.0);
                assert!(
                    live.current(cpu).is_some() || waits.is_none(),
                    "{name}: {waits:?} may run on CPU {} alone, which idles after step {step} of \
                     {seed}",
                    cpu.0
                );
            }
        }
    }
    for name in Catalog::built_in().names() {
        let spec = PolicySpec::parse(&name).unwrap();
        (0..20).for_each(|seed| changes(&name, spec.policy(3), seed));
    }
}

#[test]
fn a_task_of_another_class_is_not_scheduled_until_it_is_back() {
    for name in Catalog::built_in().names() {
        let mut live = awake(PolicySpec::parse(&name).unwrap().policy(1), 2);
        let first = live.current(CPU).unwrap();
        live.running(CPU, first);
        live.disable(first);
        live.wake(first, false, None);
        assert!(live.current(CPU).is_some_and(|other| other != first), "{name}");
        live.stopped(CPU, Stop::Blocked);
        assert_eq!((live.current(CPU), live.breach()), (None, None), "{name}");
        live.enable(first, Arrival { prio: 125, ..Arrival::default() });
        live.wake(first, false, None);
        assert_eq!((live.current(CPU), live.breach()), (Some(first), None), "{name}");
        live.disable(first);
        live.leave(first);
        assert_eq!(live.ended(), None, "{name}");
    }
}

#[test]
fn a_cpu_that_another_class_has_takes_no_task_and_keeps_its_own() {
    for name in Catalog::built_in().names() {
        let mut live = awake(PolicySpec::parse(&name).unwrap().policy(1), 2);
        let first = live.current(CPU).unwrap();
        live.running(CPU, first);
        live.cpu_release(CPU);
        assert_eq!(live.current(CPU), Some(first), "{name}");
        live.stopped(CPU, Stop::Blocked);
        assert_eq!(live.current(CPU), None, "{name}");
        live.cpu_acquire(CPU);
        assert!(
            live.current(CPU).is_some() && live.ended().is_none(),
            "{name}: {:?}",
            live.ended()
        );
    }
}

#[test]
fn a_policy_with_one_queue_continues_without_a_cpu_and_others_are_refused() {
    for name in Catalog::built_in().names() {
        let policy = PolicySpec::parse(&name).unwrap().policy(2);
        let can = policy.promises().hotplug;
        let mut live = Live::new(policy, Machine::ideal(2), 1);
        for task in (0..2).map(TaskId) {
            live.arrive(task, Arrival::default());
            live.wake(task, true, None);
        }
        let displaced = live.current(CpuId(1));
        live.cpu_offline(CpuId(1));
        if !can {
            let why = live.ended().map(ToString::to_string).unwrap_or_default();
            assert!(why.contains("CPU 1 goes offline"), "{name}: {why}");
            continue;
        }
        assert_eq!((live.current(CpuId(1)), live.ended()), (None, None), "{name}");
        live.stopped(CPU, Stop::Blocked);
        assert_eq!((live.current(CPU), live.current(CpuId(1))), (displaced, None), "{name}");
        live.cpu_online(CpuId(1));
        live.wake(TaskId(0), false, None);
        assert!(
            live.current(CpuId(1)).is_some() && live.ended().is_none(),
            "{name}: {:?}",
            live.ended()
        );
    }
}

#[test]
fn a_policy_that_was_made_for_fewer_cpus_is_refused() {
    for name in Catalog::built_in().names() {
        let (policy, machine) = (PolicySpec::parse(&name).unwrap(), Machine::ideal(2));
        let mut live = Live::new(policy.policy(1), machine.clone(), 1);
        for task in (0..3).map(TaskId) {
            live.arrive(task, Arrival::default());
            live.wake(task, true, None);
        }
        machine.all().for_each(|cpu| live.tick(cpu));
        let ended = live.ended().map(ToString::to_string);
        let keeps_nothing = policy.policy(1).needs().most_cpus.is_none();
        let words = "at 0ns: the policy was made for 1 CPU, and the machine has 2: make it for 2";
        assert_eq!(ended.as_deref(), (!keeps_nothing).then_some(words), "{name}");
        let begin = |task| {
            crate::engine::simulate(
                task,
                &machine,
                policy.policy(1),
                crate::engine::Options { seed: 1, until: Time(9_000_000) },
                crate::trace::Trace::new(vec![]),
            )
        };
        let workload = crate::workload::Workload::of(
            &serde_json::from_str(
                r#"{ "task": [ { "name": "a", "count": 4, "phases": [ { "run": "2ms" } ] } ] }"#,
            )
            .unwrap(),
            1,
        )
        .unwrap();
        assert_eq!(begin(&workload).is_ok(), keeps_nothing, "{name}");
    }
}

/// Dispatches a task that does not exist.
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
    let no_task =
        "at 0ns: dispatch, task 9, CPU 0: there is no such task: it has not come yet, or has left";
    assert_eq!(rule(&live).as_deref(), Some(no_task));
    let mut live = Live::new(Stranger(round_robin()), Machine::ideal(1), 1);
    live.arrive(TaskId(1), Arrival::default());
    live.wake(TaskId(1), true, None);
    assert_eq!(
        rule(&live).as_deref(),
        Some("at 0ns: select_cpu, task 1, CPU 7: there is no such CPU; the last one is CPU 0")
    );
}

/// Random kernel events for six tasks, in any order, including events at equal times.
fn anything(policy: impl Policy, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut live = awake(policy, 6);
    let mut now = 0;
    for step in 0..400 {
        now += [0, 0, 1_000, 700_000, 4_000_000][random.below(5) as usize];
        live.at(Time(now));
        let (any, running) = (TaskId(random.below(6) as u32), live.current(CPU));
        running.into_iter().for_each(|task| live.running(CPU, task));
        let what = random.below(9);
        match what {
            0..=2 => live.wake(any, false, None),
            3 => live.stopped(CPU, Stop::Blocked),
            4 => live.stopped(CPU, Stop::Yielded),
            5 => live.tick(CPU),
            6 => live.taken(any),
            8 => live.set_weight(any, 95 + random.below(45) as u8),
            _ => live
                .stopped(CPU, if random.below(2) == 0 { Stop::SliceOver } else { Stop::Preempted }),
        }
        let waits = (0..6).map(TaskId).find(|&task| live.is_waiting(task));
        if let (None, Some(task)) = (live.current(CPU), waits) {
            return Err(format!(
                "task {} waits and the CPU idles after step {step} of {}, a {what}",
                task.0, seed
            ));
        }
        if let Some(failure) = live.breach() {
            return Err(format!("{failure} after step {step} of {}, a {what}", seed));
        }
    }
    Ok(())
}

#[test]
fn no_cpu_idles_while_a_task_waits_under_any_kernel_events() {
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
        let task = live.current(CPU).ok_or("no task runs while three wait")?;
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
fn every_policy_of_the_catalog_runs_live_and_starves_no_equal() {
    for name in Catalog::built_in().names() {
        let least = drive(PolicySpec::parse(&name).unwrap().policy(1));
        // Tickets are random, and a task that has not run yet is worth less than one that gave up
        // most of a quantum.
        let enough = if name == "lottery" { 20 } else { 40 };
        assert!(least.as_ref().is_ok_and(|&least| least >= enough), "{name}: {least:?}");
    }
}
