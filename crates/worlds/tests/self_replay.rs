//! Self-replay: simulates a closed workload, writes a recording with calls of the simulation, reads
//! it as a program, and simulates that. Under the recorded policy and under any other one the
//! program must do what the workload does. The replay of the recorded schedule does not.

#[path = "self_replay/hostile.rs"]
mod hostile;
#[path = "self_replay/latches.rs"]
mod latches;
#[path = "self_replay/order.rs"]
mod order;
#[path = "support/seen.rs"]
mod seen;
#[path = "self_replay/sets.rs"]
mod sets;

use formats::export::{RecordingWriter, described};
use formats::import::{self, Options as ImportOptions};
use formats::workload::Workload as Named;
use recording::{What, lock, storage};
use schedsim::engine::{Options, simulate_named};
use schedsim::trace::{Observer, TaskInfo, Trace};
use schedsim::workload::{
    Closed, Nudge, Recorded, ReplayBuilder, ReplayOptions, ReplayReport, Setting, Workload,
};
use schedsim::{Machine, TaskId, Time};
use seen::{Events, Seen, difference};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use worlds::experiment::parse_policy;

/// A workload on a machine, one member of an ensemble: no two tasks do something at the same time.
struct Original {
    workload: Workload,
    machine: Machine,
    until: Time,
    /// What this member of an ensemble differs by.
    nudge: Option<Nudge>,
}

const NUDGE: u64 = 7;

impl Original {
    fn named(name: &str, cpus: u16) -> Original {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = root.join("workloads").join(name);
        let argument = if path.is_file() { path.into_os_string() } else { name.into() };
        let Ok(Named::Closed(closed)) = Named::resolve(&argument) else {
            panic!("{name} is no closed workload")
        };
        Original {
            workload: closed.scripts(cpus).unwrap(),
            machine: Machine::ideal(cpus),
            until: closed.until(),
            nudge: Some(Nudge::new(NUDGE)),
        }
    }

    fn of(text: &str, cpus: u16) -> Original {
        let closed: Closed = serde_json::from_str(text).unwrap();
        Original {
            workload: Workload::of(&closed, cpus).unwrap(),
            machine: Machine::ideal(cpus),
            until: closed.duration.map_or(Time::NEVER, |after| Time(after.0)),
            nudge: Some(Nudge::new(NUDGE)),
        }
    }

    fn events(&self, policy: &str) -> Vec<Seen> {
        events(&self.workload, self.nudge, self, policy)
    }

    /// Writes the recording of a run under `policy`.
    fn record(&self, policy: &str) -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir()
            .join(format!("schedlab-self-replay-{}-{number}.rec", std::process::id()));
        let (tasks, shared) = (infos(&self.workload), &self.workload.shared);
        let file = BufWriter::new(File::create(&path).unwrap());
        let mut writer = RecordingWriter::new(file, &tasks, shared, self.machine.cpus).unwrap();
        writer.settings(&self.workload);
        simulate(&self.workload, self.nudge, self, policy, &mut writer);
        writer.finish().unwrap();
        path
    }

    /// The recording of a run under `policy`, read as a program or as a schedule.
    fn recorded(&self, policy: &str, program: bool) -> (Workload, ReplayReport) {
        self.rewritten(policy, program, |_, event| vec![event])
    }

    /// The same, of a recording in which other events stand in the place of each.
    fn rewritten(
        &self,
        policy: &str,
        program: bool,
        instead: impl FnMut(&[recording::Event], recording::Event) -> Vec<recording::Event>,
    ) -> (Workload, ReplayReport) {
        self.rewritten_with(policy, ReplayOptions { program, ..Default::default() }, instead)
    }

    fn rewritten_with(
        &self,
        policy: &str,
        options: ReplayOptions,
        mut instead: impl FnMut(&[recording::Event], recording::Event) -> Vec<recording::Event>,
    ) -> (Workload, ReplayReport) {
        let (path, cpus) = (self.record(policy), self.machine.cpus);
        let (events, machine) = all_events(&path);
        let events: Vec<_> = events.iter().flat_map(|event| instead(&events, *event)).collect();
        write(&path, &machine, &events);
        let mut builder = ReplayBuilder::new(options);
        let recording = import::read(&path, &ImportOptions::default(), vec![&mut builder]).unwrap();
        fs::remove_file(&path).unwrap();
        builder.share(recording.objects);
        builder.finish(Recorded {
            tasks: &recording.tasks,
            cpus,
            end: Time(recording.duration.0),
            switch_cost: self.machine.switch_cost,
            recorders: &[],
        })
    }
}

fn all_events(path: &Path) -> (Vec<recording::Event>, recording::Machine) {
    let mut events = Vec::new();
    let mut reader = recording::Reader::new(File::open(path).unwrap()).unwrap();
    reader.read(|_, event| events.push(*event)).unwrap();
    (events, reader.machine().clone())
}

fn write(path: &Path, machine: &recording::Machine, events: &[recording::Event]) {
    let mut writer = recording::Writer::new(File::create(path).unwrap(), machine).unwrap();
    writer.events(events).unwrap();
    let mut counts = recording::Counts::default();
    for event in events {
        *counts.written.entry(event.what.name().to_string()).or_default() += 1;
    }
    counts.emitted = counts.written.clone();
    writer.end(&recording::End { counts, status: Some(0) }).unwrap();
}

fn infos(workload: &Workload) -> Vec<TaskInfo> {
    workload.tasks.iter().map(|task| task.info.clone()).collect()
}

fn simulate(
    workload: &Workload,
    nudge: Option<Nudge>,
    of: &Original,
    policy: &str,
    observer: &mut dyn Observer,
) -> Time {
    let policy = parse_policy(policy).unwrap();
    let options = Options { seed: 1, until: of.until };
    let trace = Trace::new(vec![observer]);
    let outcome = simulate_named((workload, nudge), &of.machine, &policy, options, trace);
    outcome.unwrap_or_else(|error| panic!("{error}")).end
}

fn events(workload: &Workload, nudge: Option<Nudge>, of: &Original, policy: &str) -> Vec<Seen> {
    let tasks = infos(workload);
    let mut events = Events(&tasks, Vec::new());
    simulate(workload, nudge, of, policy, &mut events);
    events.1
}

fn replayed(program: &Workload, of: &Original, policy: &str) -> Vec<Seen> {
    events(program, None, of, policy)
}

const POLICIES: [&str; 4] = ["eevdf", "take:rr", "central:rr", "fifo"];

/// Recorded under each of the first two policies, it is the same under all.
fn is_exact(name: &str, original: &Original) {
    is_exact_with(name, original, |policy| original.recorded(policy, true));
}

/// The program as a workload that a person could have written.
fn written_out(program: &Workload, report: &ReplayReport, of: &Original) -> Workload {
    let closed = described(program, &report.ended, of.machine.cpus).unwrap();
    let text = toml::to_string(&closed).unwrap();
    let closed: Closed = toml::from_str(&text).unwrap();
    let mut workload =
        Workload::of(&closed, of.machine.cpus).unwrap_or_else(|error| panic!("{error:?}: {text}"));
    for (task, tasks) in workload.tasks.iter_mut().zip(&closed.tasks) {
        task.info.pid = tasks.name.rsplit('/').next().unwrap().parse().unwrap();
    }
    workload
}

fn is_exact_with(name: &str, original: &Original, read: impl Fn(&str) -> (Workload, ReplayReport)) {
    for recorded in &POLICIES[..2] {
        let (program, report) = read(recorded);
        assert_eq!((report.wakeups.tokens, report.doubted_objects), (0, 0), "{name}: {report:?}");
        for policy in POLICIES {
            let wanted = original.events(policy);
            let found = events(&program, None, original, policy);
            if let Some(difference) = difference(&wanted, &found) {
                panic!("{name}, from {recorded}, under {policy}: {difference}");
            }
            // Written out, a wait for the ends of many is one for each in turn.
            if program.shared.groups.iter().any(|group| group.count > 1) {
                continue;
            }
            let found = events(&written_out(&program, &report, original), None, original, policy);
            if let Some(difference) = difference(&wanted, &found) {
                panic!("{name}, from {recorded}, written out, under {policy}: {difference}");
            }
        }
    }
}

#[test]
fn pipes_are_replayed_exactly_under_any_policy() {
    is_exact("ping-pong", &Original::named("ping-pong:3?times=200", 2));
    is_exact("hackbench", &Original::named("hackbench:2?pairs=5&loops=20", 2));
    let partial = r#"{ "pipe": { "p": { "capacity": 1048576 } }, "task": [
        { "name": "writer", "count": 3, "phases": [ { "loop": { "times": 60, "phases": [
            { "run": "5us" }, { "write": { "pipe": "p", "bytes": 3000 } } ] } } ] },
        { "name": "reader", "phases": [ { "loop": { "times": 40, "phases": [
            { "run": "20us" },
            { "read": { "pipe": "p", "bytes": 9000, "partial": true } } ] } } ] } ] }"#;
    is_exact("partial", &Original::of(partial, 2));
}

#[test]
fn sockets_and_event_counters_are_replayed_exactly_under_any_policy() {
    for kind in ["stream", "datagram"] {
        // 150 senders' messages fill a buffer before the receiver takes one.
        let text = format!(
            r#"{{ "socket": {{ "s": {{ "kind": "{kind}" }} }}, "task": [
                {{ "name": "sender", "count": 3, "phases": [ {{ "loop": {{ "times": 150, "phases": [
                    {{ "run": "3us" }}, {{ "send": {{ "socket": "s", "bytes": 100 }} }} ] }} }} ] }},
                {{ "name": "receiver", "count": 2, "phases": [ {{ "loop": {{ "times": 225, "phases": [
                    {{ "run": "9us" }},
                    {{ "receive": {{ "socket": "s", "bytes": 100 }} }} ] }} }} ] }},
                {{ "name": "asks", "phases": [ {{ "loop": {{ "times": 40, "phases": [
                    {{ "run": "7us" }}, {{ "send": {{ "socket": "q", "bytes": 900 }} }},
                    {{ "receive": {{ "socket": "q", "bytes": 30, "reply": true }} }} ] }} }} ] }},
                {{ "name": "answers", "phases": [ {{ "loop": {{ "times": 40, "phases": [
                    {{ "receive": {{ "socket": "q", "bytes": 900 }} }}, {{ "run": "5us" }},
                    {{ "send": {{ "socket": "q", "bytes": 30, "reply": true }} }} ] }} }} ] }} ] }}"#
        );
        is_exact(kind, &Original::of(&text, 2));
    }
    let semaphore = r#"{ "eventfd": { "e": { "semaphore": true, "count": 5 } }, "task": [
        { "name": "posts", "count": 2, "phases": [ { "loop": { "times": 60, "phases": [
            { "run": "8us" }, { "post": { "eventfd": "e", "count": 2 } } ] } } ] },
        { "name": "takes", "count": 3, "phases": [ { "loop": { "times": 80, "phases": [
            { "take": { "eventfd": "e" } }, { "run": "5us" } ] } } ] } ] }"#;
    is_exact("semaphore", &Original::of(semaphore, 2));
    let answered = r#"{ "task": [
        { "name": "posts", "count": 1, "phases": [ { "loop": { "times": 60, "phases": [
            { "post": { "eventfd": "e", "count": 7 } }, { "run": "8us" },
            { "take": { "eventfd": "back" } } ] } } ] },
        { "name": "takes", "count": 1, "phases": [ { "loop": { "times": 60, "phases": [
            { "take": { "eventfd": "e" } }, { "run": "9us" },
            { "post": { "eventfd": "back" } } ] } } ] } ] }"#;
    is_exact("counter", &Original::of(answered, 2));
}

#[test]
fn polls_and_event_loops_are_replayed_exactly_under_any_policy() {
    let start = r#"{ "epoll": { "start": { "sources": [ { "pipe": "go" } ] } }, "task": [
        { "name": "runner", "count": 5, "phases": [
            { "run": "4us" }, { "poll": "start" }, { "run": "9us" } ] },
        { "name": "starter", "phases": [
            { "run": "20us" }, { "write": { "pipe": "go", "bytes": 1 } } ] } ] }"#;
    let original = Original::of(start, 2);
    is_exact("poll", &original);
    let server = |events: u16| {
        format!(
            r#"{{ "duration": "1s", "socket": {{ "s": {{ "kind": "datagram" }} }},
              "epoll": {{ "w": {{ "events": {events}, "sources": [
                  {{ "pipe": "p" }}, {{ "socket": "s" }}, {{ "eventfd": "e" }} ] }} }},
              "task": [
                {{ "name": "server", "daemon": true, "phases": [ {{ "loop": {{ "phases": [
                    {{ "serve": {{ "epoll": "w", "handle": [
                        [ {{ "run": "3001ns" }}, {{ "read": {{ "pipe": "p", "bytes": 20 }} }},
                          {{ "run": "2003ns" }}, {{ "write": {{ "pipe": "back", "bytes": 9 }} }} ],
                        [ {{ "run": "5009ns" }}, {{ "receive": {{ "socket": "s", "bytes": 70 }} }} ],
                        [ {{ "run": "1us" }}, {{ "take": {{ "eventfd": "e" }} }},
                          {{ "run": "7103ns" }},
                          {{ "send": {{ "socket": "s", "bytes": 8, "reply": true }} }} ] ] }} }} ] }} }} ] }},
                {{ "name": "asks", "count": 3, "phases": [ {{ "loop": {{ "times": 40, "phases": [
                    {{ "run": "6151ns" }}, {{ "write": {{ "pipe": "p", "bytes": 20 }} }},
                    {{ "read": {{ "pipe": "back", "bytes": 9 }} }} ] }} }} ] }},
                {{ "name": "sends", "count": 2, "phases": [ {{ "loop": {{ "times": 50, "phases": [
                    {{ "run": "8377ns" }}, {{ "send": {{ "socket": "s", "bytes": 70 }} }} ] }} }} ] }},
                {{ "name": "posts", "phases": [ {{ "loop": {{ "times": 30, "phases": [
                    {{ "run": "9719ns" }}, {{ "post": {{ "eventfd": "e" }} }},
                    {{ "receive": {{ "socket": "s", "bytes": 8, "reply": true }} }} ] }} }} ] }} ] }}"#
        )
    };
    for events in [64, 2] {
        let mut original = Original::of(&server(events), 2);
        let (program, report) = original.recorded("eevdf", true);
        assert_eq!((report.event_loops, report.doubted_waits), (1, 0), "{report:?}");
        let found = replayed(&program, &original, "eevdf");
        assert_eq!(difference(&original.events("eevdf"), &found), None);
        // A nudge goes with the place in the original's order, so another order has other costs.
        original.nudge = None;
        is_exact(&format!("server of {events}"), &original);
    }
}

#[test]
fn locks_conditions_and_barriers_are_replayed_exactly_under_any_policy() {
    for options in ["", r#", "handoff": true"#, r#", "inherit": true"#] {
        let text = format!(
            r#"{{ "mutex": {{ "m": {{ "handoff": false{options} }} }},
              "barrier": {{ "meet": {{ "tasks": 3 }} }},
              "task": [
                {{ "name": "worker", "count": 3, "phases": [ {{ "loop": {{ "times": 40, "phases": [
                    {{ "run": "13us" }}, {{ "lock": "m" }}, {{ "run": "31us" }},
                    {{ "unlock": "m" }}, {{ "sleep": "5us" }}, {{ "barrier": "meet" }} ] }} }} ] }},
                {{ "name": "waiter", "phases": [ {{ "loop": {{ "times": 40, "phases": [
                    {{ "lock": "m" }}, {{ "wait": {{ "condition": "c", "mutex": "m" }} }},
                    {{ "run": "7us" }}, {{ "unlock": "m" }} ] }} }} ] }},
                {{ "name": "signaller", "phases": [ {{ "run": "1us" }}, {{ "loop": {{ "times": 200, "phases": [
                    {{ "sleep": "90us" }}, {{ "lock": "m" }}, {{ "run": "3us" }},
                    {{ "signal": "c" }}, {{ "unlock": "m" }} ] }} }} ] }} ] }}"#
        )
        .replacen(r#""handoff": false, "#, "", 1);
        is_exact(&format!("locks{options}"), &Original::of(&text, 2));
    }
}

/// A call on a futex in the place of a library's call.
fn futex(event: recording::Event, op: u16, result: i64) -> recording::Event {
    let What::Call { object, number, duration, .. } = event.what else { unreachable!() };
    recording::Event { what: What::Call { object, result, number, op, duration }, ..event }
}

/// Tasks that meet, of which another one is last each time, and a pair that does not.
const MEETING: &str = r#"{ "barrier": { "meet": { "tasks": 4 } },
    "task": [
        { "name": "worker", "count": 2, "phases": [ { "loop": { "times": 40, "phases": [
            { "run": "13us" }, { "sleep": "20us" }, { "run": "9us" }, { "barrier": "meet" } ] } } ] },
        { "name": "sleeper", "phases": [ { "run": "1us" }, { "loop": { "times": 20, "phases": [
            { "sleep": "90us" }, { "barrier": "meet" }, { "run": "7us" }, { "barrier": "meet" } ] } } ] },
        { "name": "runner", "phases": [ { "loop": { "times": 40, "phases": [
            { "run": "46us" }, { "barrier": "meet" } ] } } ] } ] }"#;

/// What a kernel sees of a barrier: tasks that wait on a futex, and one that wakes them all.
#[test]
fn a_barrier_of_futex_calls_is_replayed_exactly_under_any_policy() {
    let original = Original::of(MEETING, 2);
    is_exact("library", &original);
    let of_futexes = |events: &[recording::Event], event: recording::Event| {
        let tasks = match event.what {
            What::Call { op: lock::ARRIVE, duration, .. } if duration > 0 => {
                return vec![futex(event, 0, 0)];
            }
            What::Call { op: lock::ARRIVE, .. } => 3,
            What::Object { id, class, inode, .. } => {
                return vec![recording::Event {
                    what: What::Object { id, class, inode, peer: 0 },
                    ..event
                }];
            }
            _ => return vec![event],
        };
        assert!(!events.is_empty());
        vec![futex(event, 1, tasks)]
    };
    is_exact_with("futexes", &original, |policy| original.rewritten(policy, true, of_futexes));

    // One arrival makes no call: the futex is no barrier, and all is as recorded.
    let mut is_first = true;
    let (program, report) = original.rewritten("eevdf", true, |events, event| {
        let drops = matches!(event.what, What::Call { op: lock::ARRIVE, .. })
            && std::mem::take(&mut is_first);
        if drops { Vec::new() } else { of_futexes(events, event) }
    });
    assert!(program.shared.barriers.iter().all(|barrier| barrier.tasks == 0));
    let wakeups = report.wakeups;
    assert!(wakeups.tokens > 100 && wakeups.tokens == wakeups.futex_tokens, "{wakeups:?}");
}

/// The library's call says what the futex calls in it are for.
#[test]
fn futex_calls_inside_calls_of_a_library_change_nothing() {
    let locks = r#"{ "task": [
        { "name": "worker", "count": 3, "phases": [ { "loop": { "times": 40, "phases": [
            { "run": "13us" }, { "lock": "m" }, { "run": "31us" }, { "unlock": "m" } ] } } ] },
        { "name": "waiter", "phases": [ { "loop": { "times": 40, "phases": [
            { "lock": "m" }, { "wait": { "condition": "c", "mutex": "m" } },
            { "run": "7us" }, { "unlock": "m" } ] } } ] },
        { "name": "signaller", "phases": [ { "run": "1us" }, { "loop": { "times": 200, "phases": [
            { "sleep": "90us" }, { "lock": "m" }, { "run": "3us" },
            { "signal": "c" }, { "unlock": "m" } ] } } ] } ] }"#;
    for text in [MEETING, locks] {
        let original = Original::of(text, 2);
        is_exact_with("nested", &original, |policy| {
            original.rewritten(policy, true, |_, event| match event.what {
                What::Call { op: lock::UNLOCK | lock::SIGNAL | lock::BROADCAST, .. } => {
                    vec![futex(event, 1, 1), event]
                }
                What::Call { op: lock::ARRIVE, duration: 0, .. } => {
                    vec![futex(event, 1, 3), event]
                }
                What::Call { op: lock::LOCK | lock::WAIT | lock::ARRIVE, duration, .. }
                    if duration > 0 =>
                {
                    vec![futex(event, 0, 0), event]
                }
                _ => vec![event],
            })
        });
    }
    // A task that unlocks what it has not locked: a call is missing, and the mutex explains nothing.
    let original = Original::of(locks, 2);
    let mut is_first = true;
    let (_, report) = original.rewritten("eevdf", true, |_, event| {
        let drops = matches!(event.what, What::Call { op: lock::LOCK, .. })
            && std::mem::take(&mut is_first);
        if drops { Vec::new() } else { vec![event] }
    });
    assert_eq!(report.doubted_objects, 1);
    assert!(report.wakeups.tokens > 50, "{:?}", report.wakeups);
}

/// What a kernel sees of a device: calls on a file in which tasks sleep until an interrupt.
#[test]
fn synced_files_are_replayed_exactly_under_any_policy() {
    let original = Original::of(
        r#"{ "device": { "disk": { "channels": 5 } }, "task": [
            { "name": "writer", "count": 5, "phases": [ { "loop": { "times": 50, "phases": [
                { "run": "9us" }, { "io": { "device": "disk", "service": "80us" } },
                { "run": "5us" }, { "io": { "device": "disk", "service": "7us" } } ] } } ] } ] }"#,
        2,
    );
    let of_files = |_: &[recording::Event], event: recording::Event| {
        let what = match event.what {
            What::Object { id, inode, .. } => {
                let peer = 8 << storage::MINOR_BITS | 1;
                What::Object { id, class: recording::Class::File, inode, peer }
            }
            What::Call { object, result, duration, .. } => {
                What::Call { object, result, number: 75, op: 0, duration }
            }
            What::Timer { .. } => return Vec::new(),
            what => what,
        };
        vec![recording::Event { what, ..event }]
    };
    is_exact_with("files", &original, |policy| {
        let (program, report) = original.rewritten(policy, true, of_files);
        let devices: Vec<_> = program.shared.devices.iter().collect();
        assert_eq!((devices[0].name.as_str(), devices.len()), ("file system 8:1", 1));
        assert!((2..=5).contains(&devices[0].channels), "{devices:?}");
        (program, report)
    });
}

#[test]
fn settings_are_replayed_exactly_under_any_policy() {
    let mut original = Original::of(
        r#"{ "mutex": { "m": {} }, "task": [
            { "name": "plain", "count": 2, "phases": [ { "loop": { "times": 60, "phases": [
                { "run": "70us" }, { "sleep": "100us" }, { "lock": "m" }, { "run": "9us" },
                { "unlock": "m" } ] } } ] },
            { "name": "nice", "nice": 5, "phases": [ { "loop": { "times": 60, "phases": [
                { "run": "900us" }, { "sleep": "10us" } ] } } ] },
            { "name": "set", "count": 4, "phases": [ { "loop": { "times": 60, "phases": [
                { "run": "300us" }, { "sleep": "300us" } ] } } ] } ] }"#,
        2,
    );
    let plain = original.recorded("eevdf", true).0;
    let set = [
        Setting::Batch,
        Setting::Idle,
        Setting::RoundRobin(40),
        Setting::Cpus(vec![schedsim::CpuId(1)]),
    ];
    for (task, setting) in set.iter().enumerate() {
        original.workload.set(&[TaskId(task as u32 + 3)], setting, "");
    }
    is_exact("settings", &original);
    // Without its settings it is another program.
    let wanted = original.events("eevdf");
    assert!(difference(&wanted, &events(&plain, None, &original, "eevdf")).is_some());
}

#[test]
fn sleeps_timers_devices_and_yields_are_replayed_exactly_under_any_policy() {
    let kinds = [
        (
            "asleep",
            r#"{ "name": "asleep", "count": 4, "phases": [ { "loop": { "times": 50, "phases": [
                { "run": "70us" }, { "sleep": "100us" }, "yield" ] } } ] }"#,
        ),
        (
            "restarting",
            r#"{ "name": "restarting", "count": 3, "phases": [ { "loop": { "times": 50, "phases": [
                { "run": "60us" }, { "timer": { "period": "150us" } }, "yield" ] } } ] }"#,
        ),
        (
            "absolute",
            r#"{ "name": "absolute", "count": 1, "phases": [ { "loop": { "times": 50, "phases": [
                { "run": "60us" }, { "timer": { "period": "140us", "mode": "absolute" } } ] } } ] },
            { "name": "other", "count": 1, "phases": [ { "loop": { "times": 50, "phases": [
                { "run": "60us" }, { "timer": { "period": "111us", "mode": "absolute" } } ] } } ] },
            { "name": "third", "count": 1, "phases": [ { "loop": { "times": 50, "phases": [
                { "run": "60us" }, { "timer": { "period": "129us", "mode": "absolute" } } ] } } ] }"#,
        ),
        (
            "reader",
            r#"{ "name": "reader", "count": 5, "phases": [ { "loop": { "times": 50, "phases": [
                { "run": "9us" }, { "io": { "device": "disk", "service": "80us" } } ] } } ] }"#,
        ),
    ];
    let of = |tasks: &str| {
        let devices = if tasks.contains("disk") {
            r#""device": { "disk": { "channels": 2 } }, "#
        } else {
            ""
        };
        Original::of(&format!(r#"{{ {devices}"task": [ {tasks} ] }}"#), 2)
    };
    for (name, tasks) in kinds {
        is_exact(name, &of(tasks));
    }
    let all = kinds.map(|(_, tasks)| tasks).join(", ");
    is_exact("all", &of(&all));
}

#[test]
fn forks_and_their_ends_are_replayed_exactly_under_any_policy() {
    for variant in ["threads", "processes", "sleepers"] {
        let name = format!("pythagoras:40?variant={variant}&alive=15&work=20ms&sleep=90us");
        is_exact(&name, &Original::named(&name, 2));
    }
    is_exact("two-threads", &Original::named("two-threads", 2));
}

/// What the test is for: the replay of a recorded schedule does something else under another
/// policy.
#[test]
fn the_replay_of_the_schedule_is_another_run_under_another_policy() {
    let original = Original::named("hackbench:2?pairs=5&loops=20", 2);
    let (schedule, report) = original.recorded("fifo", false);
    assert_eq!((report.operations, report.wakeups.total()), (0, 0));
    let switches = |events: &[Seen]| {
        events.iter().filter(|(_, _, what)| what.starts_with("switch")).count() as f64
    };
    let wanted = switches(&original.events("eevdf"));
    let found = switches(&events(&schedule, None, &original, "eevdf"));
    assert!((found / wanted - 1.0).abs() > 0.1, "{found} switches, and {wanted}");
}
