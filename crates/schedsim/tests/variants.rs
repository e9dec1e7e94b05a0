//! Each variant of the three topologies behaves as described.

mod support;

use schedsim::trace::EventKind;
use schedsim::workload::{Action, Workload};
use schedsim::{Machine, Nanos, TaskId};
use support::{at, events_of, task, workload};

/// `(time, cpu, task)` of every dispatch.
fn dispatches(policy: &str, cpus: u16, workload: &Workload) -> Vec<(u64, u16, u32)> {
    let (_, events) = events_of(policy, &Machine::ideal(cpus), workload);
    let dispatch = |event: &schedsim::trace::Event| match event.kind {
        EventKind::SchedSwitch { next, .. } if next != TaskId::NONE => {
            Some((event.time.0, event.cpu.0, next.0))
        }
        _ => None,
    };
    events.iter().filter_map(dispatch).collect()
}

/// A task that starts at `start`, with these bursts and a pause of 100 between two.
fn bursts(start: u64, prio: u8, runs: &[u64]) -> schedsim::workload::TaskSpec {
    let (last, others) = runs.split_last().unwrap();
    let steps =
        others.iter().map(|&run| (run, Action::Sleep(Nanos(100)))).chain([(*last, Action::Exit)]);
    let mut spec = task(at(start), steps);
    spec.info.prio = prio;
    spec
}

#[test]
fn a_central_queue_is_searched_up_to_its_option() {
    // CPU 0 runs task 0 and CPU 1 task 1; tasks 2 and 3 wait. At 1000 CPU 0 is free with 2 (which
    // ran on CPU 1) before 3 (which ran on CPU 0).
    let load = |prio3| {
        let first = [bursts(0, 120, &[10, 500]), bursts(0, 120, &[10, 500])];
        let hogs = [bursts(100, 120, &[900]), bursts(100, 120, &[2000])];
        // After their pauses, at 110, tasks 1 and 0 wait; 1 comes first as it wakes a little
        // earlier.
        let mut tasks: Vec<_> = first.into_iter().chain(hogs).collect();
        tasks[1].script = [(Nanos(9), Action::Sleep(Nanos(100))), (Nanos(500), Action::Exit)]
            .into_iter()
            .collect();
        tasks[0].info.prio = prio3;
        workload(tasks)
    };
    let taken = |options: &str, prio3| {
        let all = dispatches(
            &format!("central:priority?quantum=1s&preempt=no&levels=4{options}"),
            2,
            &load(prio3),
        );
        all.into_iter().find(|&(time, ..)| time == 1000).unwrap()
    };
    assert_eq!(taken("", 120), (1000, 0, 1), "the head");
    assert_eq!(taken("&search=2", 120), (1000, 0, 0), "the second, which ran here");
    assert_eq!(taken("&search=all", 120), (1000, 0, 0));
    assert_eq!(taken("&search=top", 120), (1000, 0, 0));
    assert_eq!(
        taken("&search=2", 130),
        (1000, 0, 0),
        "a search by number continues into worse levels"
    );
    assert_eq!(taken("&search=top", 130), (1000, 0, 1), "the scan of the best level does not");
    assert_eq!(taken("&search=top", 121), (1000, 0, 0), "grouped levels: 120 and 121 are of one");
}

#[test]
fn the_shortcut_brings_a_task_back_to_its_cpu() {
    // Task 1 runs on CPU 1 and wakes when both are idle.
    let load = workload(vec![bursts(0, 120, &[50]), bursts(0, 120, &[60, 60])]);
    assert_eq!(dispatches("central:rr", 2, &load).last(), Some(&(160, 1, 1)));
    assert_eq!(dispatches("central:rr?shortcut=no", 2, &load).last(), Some(&(160, 0, 1)));
}

#[test]
fn an_idle_cpu_takes_the_head_or_the_tail_while_it_idles_or_once() {
    // CPU 1 becomes idle at 50, when tasks 2 and 3 wait on CPU 0.
    let load = workload(vec![
        bursts(0, 120, &[1000]),
        bursts(0, 120, &[50]),
        bursts(10, 120, &[100]),
        bursts(20, 120, &[100]),
    ]);
    let on_1 = |policy: &str| {
        let all = dispatches(policy, 2, &load);
        all.into_iter()
            .filter(|&(_, cpu, task)| task > 1 && cpu == 1)
            .map(|(time, _, task)| (time, task))
            .collect::<Vec<_>>()
    };
    // Ties go to the lowest CPU, so that 2 goes to CPU 0 and 3 to CPU 1.
    assert_eq!(on_1("take:rr?quantum=1s&ties=lowest"), [(50, 3), (150, 2)]);
    // One waits on a busy CPU 0 from 200 on, long after CPU 1 has become idle.
    let late = workload(vec![
        bursts(0, 120, &[30, 500]),
        bursts(0, 120, &[50]),
        bursts(100, 120, &[1000]),
    ]);
    let second = |policy: &str| {
        dispatches(policy, 2, &late).into_iter().rfind(|&(.., task)| task == 0).unwrap()
    };
    assert_eq!(second("take:rr?quantum=10s&ties=lowest"), (130, 1, 0), "polling");
    assert_eq!(
        second("take:rr?quantum=10s&ties=lowest&idle=once"),
        (1100, 0, 0),
        "looked before there was anything to see"
    );

    // At 60 CPU 1 has done its two tasks, and 2 and 4 wait on CPU 0, in this order.
    let tasks = [(0, 1000), (0, 50), (1, 10), (2, 10), (3, 10)];
    let queue = workload(tasks.map(|(start, run)| bursts(start, 120, &[run])).into());
    let stolen = |taken: &str| {
        let all = dispatches(&format!("take:rr?quantum=1s&ties=lowest{taken}"), 2, &queue);
        all.into_iter().find(|&(time, cpu, _)| (time, cpu) == (60, 1)).map(|(.., task)| task)
    };
    assert_eq!(
        (stolen(""), stolen("&taken=head"), stolen("&taken=tail")),
        (Some(2), Some(2), Some(4))
    );
}

#[test]
fn a_new_task_counts_those_that_it_has_to_wait_for() {
    // Two tasks on either CPU, but those on CPU 1 are of a worse level than the new one.
    let tasks = [(0, 100), (1, 130), (2, 130), (3, 130), (4, 120)];
    let load = workload(tasks.map(|(start, prio)| bursts(start, prio, &[1000])).into());
    let place = |policy: &str| {
        let (_, events) = events_of(policy, &Machine::ideal(2), &load);
        let target = events.iter().find_map(|event| match event.kind {
            EventKind::SchedWakeupNew { task: TaskId(4), target } => Some(target.0),
            _ => None,
        });
        target.unwrap()
    };
    for topology in ["initial", "take"] {
        let policy = format!("{topology}:priority?levels=4&quantum=1s&preempt=no&ties=lowest");
        assert_eq!(place(&policy), 1, "{topology}: no task there is as good");
        assert_eq!(place(&format!("{policy}&count=all")), 0, "{topology}: as many are on either");
    }
    // A running task counts, or does not.
    let load = workload(vec![bursts(0, 120, &[1000]), bursts(1, 120, &[10])]);
    let second = |policy: &str| dispatches(policy, 2, &load)[1].1;
    assert_eq!(second("take:rr?ties=lowest"), 1);
    assert_eq!(
        second("take:rr?ties=lowest&ready=waiting&idle=once"),
        0,
        "no task waits anywhere: the lowest CPU"
    );
}

#[test]
fn load_by_utilisation_counts_the_cpu_use_of_tasks() {
    // Task 0 computes all the time, the next three sleep nearly all the time.
    let ms = |n: u64| Nanos::from_millis(n).0;
    let idler =
        |start| task(at(ms(start)), [(ms(1), Action::Sleep(Nanos::from_millis(100)))].repeat(10));
    let hog = bursts(0, 120, &[ms(5000)]);
    let load = workload(vec![hog, idler(150), idler(160), idler(170), bursts(ms(400), 120, &[10])]);
    let place = |options: &str| {
        let all = dispatches(&format!("initial:rr?quantum=100ms&ties=lowest{options}"), 2, &load);
        [1, 2, 3, 4]
            .map(|of| all.iter().find(|&&(.., task)| task == of).map_or(9, |&(_, cpu, _)| cpu))
    };
    assert_eq!(place(""), [1, 0, 1, 0]);
    assert_eq!(place("&load=utilisation"), [1, 1, 1, 1]);
}
