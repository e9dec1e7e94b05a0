//! Monitors that are known, run by a naive scheduler, and read from what it saw.

use super::*;
use proptest::prelude::*;

const MUTEX: u32 = 7;
/// The conditions: their counters.
const NOT_FULL: u32 = 0;
const NOT_EMPTY: u32 = 1;

/// Makers and takers around a queue, as `workloads/truth/locks.c`.
#[derive(Clone, Debug)]
struct Queue {
    slots: u64,
    makers: usize,
    takers: usize,
    items: u64,
    /// In per cent: how often a task waits although it finds what it needs.
    waits_in_error: u32,
    /// In per cent: how often a wait's time is over before the signal.
    gives_up: u32,
    /// Whether the places of locks are known.
    has_sites: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Status {
    Locks,
    Waits(u32),
    Woken(u32),
    Ended,
}

/// Runs the queue, one critical section after the other, in an order that `random` chooses.
fn run(queue: &Queue, mut random: impl FnMut(u64) -> u64) -> Vec<Act> {
    let (mut acts, mut filled, mut made, mut taken) = (Vec::new(), 0, 0, 0);
    let tasks = queue.makers + queue.takers;
    let mut states = vec![(Status::Locks, 0_u32); tasks];
    let all = queue.makers as u64 * queue.items;
    let mut has_waited = vec![false; tasks];
    while taken < all || states.iter().any(|(status, _)| *status != Status::Ended) {
        let index = random(tasks as u64) as usize;
        let (task, is_maker) = (TaskId(index as u32), index < queue.makers);
        let (own, other) = if is_maker { (NOT_FULL, NOT_EMPTY) } else { (NOT_EMPTY, NOT_FULL) };
        let site = if queue.has_sites { 1 + u64::from(is_maker) } else { 0 };
        let mut act = |what| {
            let (time, place) = (Time(10 * acts.len() as u64), acts.len() as u32);
            acts.push(Act { time, task, place, what });
        };
        match states[index].0 {
            Status::Ended => continue,
            Status::Locks => act(What::Locked { mutex: MUTEX, site }),
            Status::Waits(_) if random(100) < queue.gives_up.into() => {
                // The place of the wait was another act: it gave up then.
                let began = acts.iter().rposition(|act: &Act| act.task == task).unwrap();
                acts[began].what = What::GaveUp(MUTEX);
                let (time, place) = (Time(10 * acts.len() as u64), acts.len() as u32);
                let what = What::Locked { mutex: MUTEX, site: SAME };
                acts.push(Act { time, task, place, what });
            }
            Status::Waits(_) => continue,
            Status::Woken(condition) => act(What::Received { condition, mutex: MUTEX }),
        }
        let mut act = |what| {
            let (time, place) = (Time(10 * acts.len() as u64), acts.len() as u32);
            acts.push(Act { time, task, place, what });
        };
        let is_over = !is_maker && taken == all;
        let may = is_over || if is_maker { filled < queue.slots } else { filled > 0 };
        let errs =
            !std::mem::take(&mut has_waited[index]) && random(100) < queue.waits_in_error.into();
        if !may || errs && !is_over {
            act(What::Waits { condition: own, mutex: MUTEX });
            states[index].0 = Status::Waits(own);
            if errs && may {
                // Nobody might ever wake it.
                (states[index].0, has_waited[index]) = (Status::Woken(own), true);
            }
            continue;
        }
        let mut wake = |condition, all: bool| {
            let mut waiting: Vec<usize> =
                (0..tasks).filter(|of| states[*of].0 == Status::Waits(condition)).collect();
            if !all && !waiting.is_empty() {
                waiting = vec![waiting[random(waiting.len() as u64) as usize]];
            }
            waiting.into_iter().for_each(|of| states[of].0 = Status::Woken(condition));
        };
        if is_over {
            act(What::Signalled { condition: NOT_EMPTY, all: true });
            wake(NOT_EMPTY, true);
            states[index].0 = Status::Ended;
        } else {
            filled = if is_maker { filled + 1 } else { filled - 1 };
            (made, taken) = (made + u64::from(is_maker), taken + u64::from(!is_maker));
            if !is_maker && taken == all {
                act(What::Signalled { condition: NOT_EMPTY, all: true });
                wake(NOT_EMPTY, true);
            }
            act(What::Signalled { condition: other, all: false });
            wake(other, false);
            states[index].1 += 1;
            let is_done = is_maker && u64::from(states[index].1) == queue.items;
            states[index].0 = if is_done { Status::Ended } else { Status::Locks };
        }
        act(What::Unlocked(MUTEX));
    }
    assert_eq!((made, taken), (all, all));
    acts
}

/// What the acts are read as, and the counters at the beginning.
fn read_back(acts: Vec<Act>) -> (Monitors, Vec<u64>) {
    let name = |of: &str| Eventfd::semaphore(of.to_string(), 0);
    let mut shared =
        Shared { eventfds: vec![name("not full"), name("not empty")], ..Shared::default() };
    let mut builder = ReplayBuilder { acts, ..ReplayBuilder::default() };
    let found = builder.find_monitors(&mut shared);
    (found, shared.eventfds.iter().map(|of| of.count).collect())
}

/// A generator of numbers below a limit.
fn random(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |limit| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    }
}

fn queues() -> impl Strategy<Value = Queue> {
    (1..6_u64, 1..4_usize, 1..4_usize, 30..80_u64, any::<bool>(), any::<bool>()).prop_map(
        |(slots, makers, takers, items, gives_up, has_sites)| Queue {
            slots,
            makers,
            takers,
            items,
            waits_in_error: 0,
            gives_up: if gives_up { 20 } else { 0 },
            has_sites,
        },
    )
}

/// Whether tasks have waited for the condition, and so may be known to take from it.
fn is_waited_for(acts: &[Act], of: u32) -> bool {
    acts.iter().any(|act| matches!(act.what, What::Received { condition, .. } if condition == of))
}

proptest! {
    #[test]
    fn a_queue_is_read_as_its_slots_and_items(queue in queues(), seed: u64) {
        let acts = run(&queue, random(seed));
        let waits = [NOT_FULL, NOT_EMPTY].map(|of| is_waited_for(&acts, of));
        let locks = acts.iter().filter(|act| matches!(act.what, What::Locked { .. })).count();
        let (found, counts) = read_back(acts);
        // Without places, a kind of section that never waited is not known to take.
        prop_assume!(queue.has_sites || found.doubted.is_empty());
        prop_assert!(found.doubted.is_empty(), "{found:?}");
        if waits[0] {
            prop_assert_eq!(counts[0], queue.slots);
        }
        if waits[1] {
            prop_assert_eq!(counts[1], 0);
        }
        if waits == [true; 2] && queue.has_sites {
            let all = queue.makers * queue.items as usize;
            let of = |of: u32| found.taken.values().filter(|taken| taken.contains(&of)).count();
            prop_assert_eq!(of(NOT_FULL), all);
            // Who ends takes nothing that another one needs, but waits for the end.
            let end = found.broadcasts.values().find(|(_, added)| *added > 0);
            let (open, ended) = *end.expect("the queue ends with a broadcast");
            prop_assert_eq!((of(open), ended), (queue.takers, queue.takers as u64));
            prop_assert_eq!(of(NOT_EMPTY), all);
            prop_assert!(found.taken.len() <= locks);
        }
    }

    #[test]
    fn a_program_that_waits_whatever_it_finds_is_doubted(queue in queues(), seed: u64) {
        let queue = Queue { waits_in_error: 30, gives_up: 0, ..queue };
        let (found, _) = read_back(run(&queue, random(seed)));
        prop_assert!(found.doubted_mutexes.contains(&MUTEX));
    }

    #[test]
    fn signals_that_are_lost_are_noticed(queue in queues(), seed: u64) {
        let mut acts = run(&queue, random(seed));
        prop_assume!(is_waited_for(&acts, NOT_EMPTY));
        let is_signal = |act: &Act| act.what == What::Signalled { condition: NOT_EMPTY, all: false };
        let mut seen = 0;
        acts.retain(|act| {
            seen += usize::from(is_signal(act));
            !is_signal(act) || !seen.is_multiple_of(4)
        });
        let (found, counts) = read_back(acts);
        prop_assert!(counts[1] > 0 || found.doubted.contains(&NOT_EMPTY));
    }
}

#[test]
fn two_in_one_critical_section_are_no_reading() {
    let queue = Queue {
        slots: 2,
        makers: 2,
        takers: 2,
        items: 50,
        waits_in_error: 0,
        gives_up: 0,
        has_sites: true,
    };
    let mut acts = run(&queue, random(5));
    let locks = |act: &Act| matches!(act.what, What::Locked { .. });
    let first = acts.iter().position(locks).unwrap();
    let other = acts.iter().position(|act| locks(act) && act.task != acts[first].task).unwrap();
    acts[other].time = Time(acts[first].time.0 + 1);
    let (found, _) = read_back(acts);
    assert!(found.doubted_mutexes.contains(&MUTEX));
}

#[test]
fn a_broadcast_to_those_that_wait_lets_the_others_wait() {
    // A barrier of three, three times: who comes next time waits again.
    let mut acts = Vec::new();
    for _ in 0..30 {
        for task in 0..3 {
            let act = |acts: &mut Vec<Act>, task: u32, what| {
                let (time, place) = (Time(acts.len() as u64), acts.len() as u32);
                acts.push(Act { time, task: TaskId(task), place, what });
            };
            act(&mut acts, task, What::Locked { mutex: MUTEX, site: 1 });
            if task < 2 {
                act(&mut acts, task, What::Waits { condition: NOT_FULL, mutex: MUTEX });
                continue;
            }
            act(&mut acts, task, What::Signalled { condition: NOT_FULL, all: true });
            act(&mut acts, task, What::Unlocked(MUTEX));
            for waiter in 0..2 {
                act(&mut acts, waiter, What::Received { condition: NOT_FULL, mutex: MUTEX });
                act(&mut acts, waiter, What::Unlocked(MUTEX));
            }
        }
    }
    let (found, counts) = read_back(acts);
    assert!(found.doubted.is_empty(), "{found:?}");
    assert_eq!(counts[0], 0);
    assert!(
        found.broadcasts.values().all(|added| *added == (NOT_FULL, 2)),
        "{:?}",
        found.broadcasts
    );
}

/// Semaphores of which a call is seen from its beginning to its end, while it happens somewhere in
/// between.
#[test]
fn a_semaphore_has_what_it_had_when_it_was_first_seen() {
    for (held, known) in [(1, 1), (3, 3), (1, 0)] {
        let (mut acts, mut count, mut waiting) = (Vec::new(), held, Vec::new());
        let mut random = random(held + 10 * known);
        for step in 0..2_000_u64 {
            let (time, task) = (Time(100 * step), TaskId(random(6) as u32));
            let place = step as u32;
            let mut act = |late: u64, task, what| {
                acts.push(Act { time: Time(time.0 + late), task, place, what });
            };
            if waiting.contains(&task) {
                continue;
            }
            if random(2) == 0 && count < held {
                act(0, task, What::Posts(0));
                act(60, task, What::Posted(0));
                if waiting.is_empty() {
                    count += 1;
                } else {
                    let first = waiting.remove(0);
                    act(50, first, What::Took { semaphore: 0, waited: true });
                }
            } else if count > 0 {
                count -= 1;
                act(0, task, What::Takes(0));
                act(90, task, What::Took { semaphore: 0, waited: false });
            } else {
                waiting.push(task);
                act(0, task, What::AwaitsPost(0));
            }
        }
        let mut shared = Shared {
            eventfds: vec![Eventfd::semaphore("s".to_string(), known)],
            ..Shared::default()
        };
        let mut builder = ReplayBuilder { acts, ..ReplayBuilder::default() };
        let found = builder.find_monitors(&mut shared);
        assert!(found.doubted.is_empty(), "{held} {known} {found:?}");
        assert_eq!(shared.eventfds[0].count, held);
    }
}
