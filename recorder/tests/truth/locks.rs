//! Calls of the C library's locks, of a program that does a known number of them.

use super::operations::{number, times};
use super::{Read, record, this};
use recording::{Class, What, lock, member};
use std::collections::BTreeMap;
use std::path::Path;

pub fn known_locks(folder: &Path) {
    let file = folder.join("locks.rec");
    let (plain, _) = record(&file, &[], &[&this(), "locks"]);
    assert!(plain.machine.overhead.is_some_and(|of| of.lock_ns.is_none()));
    assert!(counts(&plain).keys().all(|(_, op)| *op < lock::LOCK), "nothing asked for locks");

    let (read, _) = record(&file, &["--uprobes"], &[&this(), "locks"]);
    assert_eq!(read.counts().disagreement(), None);
    let lock_ns = read.machine.overhead.and_then(|of| of.lock_ns);
    assert!(lock_ns.is_some_and(|ns| ns > 0.0));
    let counts = counts(&read);
    let of = |op: u16| -> Vec<u64> {
        let mut all: Vec<u64> =
            counts.iter().filter(|((_, of), _)| *of == op).map(|(_, count)| *count).collect();
        all.sort_unstable();
        all
    };
    let plain = times::LOCKS + times::TRIES + times::WAITS_IN_VAIN;
    for op in [lock::LOCK, lock::UNLOCK] {
        // The C library has locks of its own, with a few calls each.
        let known = of(op).into_iter().filter(|count| *count > 10);
        let wanted = [times::LOCKS_INHERITING, times::LOCKED_TWICE, plain];
        assert_eq!(known.collect::<Vec<u64>>(), wanted, "{:?}", of(op));
    }
    assert_eq!(
        (of(lock::SIGNAL), of(lock::BROADCAST)),
        (vec![times::SIGNALS], vec![times::BROADCASTS])
    );
    assert_eq!(of(lock::ARRIVE), [2 * times::MEETINGS]);
    assert_eq!(of(lock::WAIT), [times::WAITS_IN_VAIN]);
    assert_eq!(
        (of(lock::TAKE), of(lock::POST)),
        (vec![times::TAKES + times::SEMAPHORE], vec![1, times::TAKES])
    );
    let object = |op: u16, count: u64| {
        let found = counts.iter().find(|((_, of), all)| *of == op && **all == count);
        found.expect("it was counted").0.0
    };
    let peers: BTreeMap<u64, u64> = read
        .events
        .iter()
        .filter_map(|event| match event.what {
            What::Object { id, class: Class::Futex, peer, .. } => Some((id, peer)),
            _ => None,
        })
        .collect();
    let mutex = object(lock::LOCK, plain);
    assert_eq!(peers[&mutex], 0);
    assert_eq!(peers[&object(lock::LOCK, times::LOCKS_INHERITING)], 2);
    assert_eq!(peers[&object(lock::ARRIVE, 2 * times::MEETINGS)], 2);
    assert_eq!(peers[&object(lock::POST, times::TAKES)], times::SEMAPHORE);
    assert_eq!(peers[&object(lock::POST, 1)], times::OTHER_SEMAPHORE);
    let condition = object(lock::SIGNAL, times::SIGNALS);
    let results = |operation: u16| {
        let of = move |what: &What| match *what {
            What::Call { result, op, object, .. } if op == operation => Some((object, result)),
            _ => None,
        };
        read.events.iter().filter_map(move |event| of(&event.what))
    };
    // Their time was over.
    assert!(results(lock::WAIT).all(|(_, result)| result == -i64::from(libc::ETIMEDOUT)));
    // Each of the three places that lock the mutex is known; a compiler may unroll their loops.
    let sites: std::collections::BTreeSet<i64> =
        results(lock::LOCK).filter(|(of, _)| *of == mutex).map(|(_, site)| site).collect();
    assert!(sites.len() >= 3, "{sites:x?}");
    assert!(!sites.contains(&0));
    let names_its_mutex = |what: &What| matches!(what, What::Member { set, object, op: member::SECOND, .. } if *set == condition && *object == mutex);
    let waits = read.events.iter().filter(|event| names_its_mutex(&event.what)).count() as u64;
    assert_eq!(waits, times::WAITS_IN_VAIN);
    // Who sleeps in such a call sleeps on its object.
    let slept = |object: u64| {
        let sleeps = |what: &What| matches!(what, What::Switch { state: 1, object: of, .. } if *of == object);
        read.events.iter().filter(|event| sleeps(&event.what)).count() as u64
    };
    assert_eq!(slept(condition), times::WAITS_IN_VAIN);
}

/// Calls of futexes by object and operation.
fn counts(read: &Read) -> BTreeMap<(u64, u16), u64> {
    let mut counts = BTreeMap::new();
    for event in &read.events {
        if let What::Call { object, number: of, op, .. } = event.what
            && of == number(libc::SYS_futex)
        {
            *counts.entry((object, op)).or_default() += 1;
        }
    }
    counts
}
