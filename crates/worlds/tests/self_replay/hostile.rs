//! Changed recordings: replayed or refused.

use super::{Original, all_events};
use formats::import::{self, Options as ImportOptions};
use recording::What;
use schedsim::engine::{Options, simulate_named};
use schedsim::trace::Trace;
use schedsim::workload::{Recorded, ReplayBuilder, ReplayOptions};
use schedsim::{Machine, Time};
use std::fs::{self, File};
use worlds::experiment::parse_policy;
/// Any events at all, in the form of a recording: read and simulated, or refused, without a panic.
#[test]
fn a_changed_recording_is_replayed_or_refused_without_a_panic() {
    let original = Original::of(
        r#"{ "duration": "1s", "epoll": {
                "w": { "sources": [ { "socket": "t" }, { "eventfd": "f" } ] },
                "x": { "sources": [ { "reply": "t" } ] } }, "task": [
            { "name": "serves", "daemon": true, "phases": [ { "loop": { "phases": [
                { "serve": { "epoll": "w", "handle": [
                    [ { "run": "2us" }, { "receive": { "socket": "t", "bytes": 5 } },
                      { "send": { "socket": "t", "bytes": 6, "reply": true } } ],
                    [ { "run": "3us" }, { "take": { "eventfd": "f" } } ] ] } } ] } } ] },
            { "name": "polls", "phases": [ { "loop": { "times": 5, "phases": [
                { "run": "4us" }, { "send": { "socket": "t", "bytes": 5 } },
                { "post": { "eventfd": "f" } }, { "poll": "x" },
                { "receive": { "socket": "t", "bytes": 6, "reply": true } } ] } } ] },
            { "name": "a", "count": 2, "phases": [ { "loop": { "times": 5, "phases": [
                { "run": "9us" }, { "lock": "m" }, { "write": { "pipe": "p", "bytes": 10 } },
                { "unlock": "m" }, { "timer": { "period": "30us" } }, { "barrier": "b" },
                { "send": { "socket": "s", "bytes": 9 } }, { "post": { "eventfd": "e" } } ] } } ] },
            { "name": "b", "phases": [ { "fork": "c" }, { "loop": { "times": 5, "phases": [
                { "read": { "pipe": "p", "bytes": 20 } }, { "take": { "eventfd": "e" } },
                { "receive": { "socket": "s", "bytes": 18 } } ] } }, { "join": "c" } ] },
            { "name": "c", "forked": true, "phases": [ { "run": "50us" } ] } ] }"#,
        2,
    );
    let path = original.record("eevdf");
    let (events, machine) = all_events(&path);
    let mut random = 1u64;
    let mut draw = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % below
    };
    let (rounds, mut replayed) = (800, 0);
    for _ in 0..rounds {
        let mut changed = events.clone();
        for _ in 0..1 + draw(6) {
            let (at, from) = (draw(changed.len()), draw(events.len()));
            match draw(6) {
                // Ends, connections, and waits for signals and children.
                4 => {
                    if let What::Call { object, duration, .. } = changed[at].what {
                        let number = [0, 1, 3, 42, 43, 58, 61, 128, 130, 202][draw(10)];
                        let result = [0, 1, 2, 3, -4, -32, -115, -514][draw(8)];
                        let op = draw(2) as u16;
                        changed[at].what = What::Call { object, result, number, op, duration };
                    }
                }
                5 => {
                    if let What::Object { id, inode, .. } = changed[at].what {
                        let class = recording::Class::ALL[draw(13)];
                        let peer = (draw(3) as u64) << 16 | draw(3) as u64 | 1 << 56;
                        changed[at].what = What::Object { id, class, inode, peer };
                    }
                }
                0 => drop(changed.remove(at)),
                1 => changed[at].what = events[from].what,
                2 => changed[at].tid = events[from].tid,
                _ => {
                    let mut bytes = changed[at].bytes();
                    bytes[16 + draw(24)] = [0, 1, 2, 0xff][draw(4)];
                    if let Some(event) = recording::Event::parse(&bytes) {
                        changed[at] = event;
                    }
                }
            }
        }
        let mut writer = recording::Writer::new(File::create(&path).unwrap(), &machine).unwrap();
        writer.events(&changed).unwrap();
        writer.end(&recording::End::default()).unwrap();
        let mut builder = ReplayBuilder::new(ReplayOptions { program: true, ..Default::default() });
        let options = ImportOptions { allow_lost: true, ..ImportOptions::default() };
        let Ok(read) = import::read(&path, &options, vec![&mut builder]) else { continue };
        builder.share(read.objects);
        let end = Time(read.duration.0);
        let recorded = Recorded {
            tasks: &read.tasks,
            cpus: read.cpus.max(1),
            end,
            switch_cost: schedsim::Nanos::ZERO,
            recorders: &[],
        };
        let (program, _) = builder.finish(recorded);
        let policy = parse_policy("take:rr").unwrap();
        let options = Options { seed: 1, until: Time(100_000_000) };
        let outcome = simulate_named(
            (&program, None),
            &Machine::ideal(2),
            &policy,
            options,
            Trace::new(vec![]),
        );
        replayed += u32::from(outcome.is_ok());
    }
    fs::remove_file(&path).unwrap();
    assert!(replayed > rounds / 4, "{replayed} of {rounds} are replayed");
}
