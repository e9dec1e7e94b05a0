//! Every key of rt-app's grammar and how it is treated here. It is the one list from which the
//! reader, its messages and the tables of docs/rt-app.md come.
//!
//! The reference is upstream's parser at the commit in docs/rt-app.json. There `tools/rt-app` also
//! writes all keys that this parser has. A test holds that list and this one equal.

use program::no_such;

/// How a key is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// It has the same meaning as in rt-app.
    Honoured,
    /// It has a similar meaning; the result says so.
    Approximated,
    /// It does not affect scheduling here.
    Ignored,
    /// A file with this key is refused.
    Rejected,
}

/// The object that a key belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The whole file.
    Root,
    /// `global`.
    Global,
    /// An entry of `resources`.
    Resource,
    /// The `type` of an entry of `resources`.
    Kind,
    /// An event of a task or phase. A key is the event whose name it begins with; the longest wins.
    Event,
    /// The value of `wait` and `sync`.
    Wait,
    /// The value of `timer`.
    Timer,
    /// The value of `memrun`.
    Memrun,
    /// A task or a phase.
    Phase,
    /// A task, not a phase.
    Task,
    /// The value of `policy` and `default_policy`.
    Policy,
}

/// A key and its treatment.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The object.
    pub place: Place,
    /// The key, or its start in case of an event.
    pub name: &'static str,
    /// The first version with this meaning: 1.0 of 2017, the year of a later commit, or one before
    /// 1.0 that newer versions no longer know.
    pub since: &'static str,
    /// The treatment.
    pub treatment: Treatment,
    /// An explanation.
    pub how: &'static str,
}

/// Keys of versions before 1.0.
pub const OLD: &str = "before 1.0";
const FIRST: &str = "1.0";

use Place::{Event, Global, Kind, Memrun, Phase, Policy, Resource, Root, Task, Timer, Wait};
use Treatment::{Approximated, Honoured, Ignored, Rejected};

const fn key(
    place: Place,
    name: &'static str,
    since: &'static str,
    treatment: Treatment,
    how: &'static str,
) -> Key {
    Key { place, name, since, treatment, how }
}

/// All keys.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key(Event, "run", FIRST, Honoured, "CPU time, at the speed at which the CPU was calibrated"),
    key(Event, "runtime", FIRST, Approximated, "CPU time; in rt-app it is wall-clock time, so that a preempted task does less"),
    key(Event, "sleep", FIRST, Honoured, "sleeps"),
    key(Event, "timer", FIRST, Honoured, "`unique…` is a timer of each task's own, any other name is shared"),
    key(Event, "lock", FIRST, Honoured, "a mutex, with priority inheritance if `pi_enabled` says so"),
    key(Event, "unlock", FIRST, Honoured, "by a task that holds it; else the file is refused"),
    key(Event, "wait", FIRST, Honoured, "waits on a condition with a mutex that it holds"),
    key(Event, "signal", FIRST, Honoured, "wakes the first waiter; lost if there is none"),
    key(Event, "broad", FIRST, Honoured, "wakes all waiters"),
    key(Event, "sync", FIRST, Honoured, "signals and waits, with a mutex that it holds: rt-app takes none, whatever its tutorial says"),
    key(Event, "barrier", FIRST, Honoured, "waits for as many as there are references to the name, each by every instance; not in a task that is forked"),
    key(Event, "suspend", FIRST, Honoured, "waits on the condition of that name; without a value, of the task's. rt-app since 2025 takes the task's in any case, and some of its examples then wait for ever; where that differs, the result says so"),
    key(Event, "resume", FIRST, Honoured, "wakes all that are suspended under that name"),
    key(Event, "yield", FIRST, Honoured, "gives up the CPU"),
    key(Event, "mem", FIRST, Approximated, "CPU time, 0.1 ns for each byte"),
    key(Event, "memrun", "2026", Approximated, "CPU time: 1 ns for each byte that is read or written; for each step of a chase 1 ns if `size` is up to 32 KiB, 4 ns up to 1 MiB, 15 ns up to 32 MiB, else 80 ns"),
    key(Event, "iorun", FIRST, Approximated, "a request of 1 ns for each byte to one device, which serves one at a time"),
    key(Event, "fork", "2018", Honoured, "the next task of that name comes into being; more than 1,024 of one name are refused, as rt-app ends there"),
    key(Event, "sem_post", "2026", Honoured, "adds a token and wakes one waiter"),
    key(Event, "sem_wait", "2026", Honoured, "waits for a token and takes it"),

    key(Wait, "ref", FIRST, Honoured, "the condition; `unknown` if absent"),
    key(Wait, "mutex", FIRST, Honoured, "the mutex; `unknown` if absent"),
    key(Timer, "ref", FIRST, Honoured, "the name; `unknown` if absent"),
    key(Timer, "period", FIRST, Honoured, "the period; zero does nothing"),
    key(Timer, "mode", FIRST, Honoured, "`relative` or `absolute`"),
    key(Memrun, "type", "2026", Honoured, "`read`, `write` or `chase`"),
    key(Memrun, "size", "2026", Approximated, "of the buffer: how far away the memory is"),
    key(Memrun, "count", "2026", Honoured, "bytes, or steps of a chase"),
    key(Memrun, "ref", "2026", Ignored, "buffers are not modelled"),
    key(Memrun, "pattern", "2026", Ignored, "of a chase; prefetching is not modelled"),
    key(Memrun, "stride", "2026", Ignored, "of a chase"),

    key(Phase, "loop", FIRST, Honoured, "−1 is endless; without it a task is endless and a phase happens once. An endless loop that takes no time gets 1 µs a round for its calls. 1.0 repeats a task without phases endlessly whatever it says, newer versions (2017) do what it says, and so does schedlab"),
    key(Phase, "policy", FIRST, Approximated, "one for the lifetime of a task: a file whose phases change it is refused"),
    key(Phase, "priority", FIRST, Approximated, "a nice value, or a real-time priority (10 if it is not given); as `policy`"),
    key(Phase, "dl-runtime", FIRST, Approximated, "the runtime of a SCHED_DEADLINE task; since 2025 the slice that a SCHED_OTHER or SCHED_BATCH task requests, from 0.1 to 100 ms as in Linux; as `policy`"),
    key(Phase, "dl-period", FIRST, Approximated, "of SCHED_DEADLINE; `dl-runtime` if absent; as `policy`"),
    key(Phase, "dl-deadline", FIRST, Approximated, "of SCHED_DEADLINE; `dl-period` if absent; as `policy`"),
    key(Phase, "cpus", FIRST, Approximated, "of a task: unchanged; those of phases become one set for its lifetime. In phases since 2018"),
    key(Phase, "nodes_membind", "2020", Ignored, "memory has no place here; the result says so"),
    key(Phase, "util_min", "2018", Ignored, "frequencies are not modelled; the result says so"),
    key(Phase, "util_max", "2018", Ignored, "frequencies are not modelled; the result says so"),
    key(Phase, "taskgroup", "2019", Approximated, "a control group of the default weight, for the lifetime of a task; one in a group that others share is refused"),
    key(Task, "phases", FIRST, Honoured, "in order"),
    key(Task, "instance", FIRST, Honoured, "number of tasks; 0: only if it is forked"),
    key(Task, "delay", FIRST, Honoured, "the task starts later"),
    key(Task, "runtime", FIRST, Approximated, "beside being an event: as `dl-runtime`, if that is absent"),
    key(Task, "period", FIRST, Approximated, "as `dl-period`, if that is absent"),
    key(Task, "deadline", FIRST, Approximated, "as `dl-deadline`, if that is absent"),
    key(Task, "exec", OLD, Rejected, "write `run`"),
    key(Task, "lock_order", OLD, Rejected, "write `lock` and `unlock` in the order in which they happen"),
    key(Task, "resources", OLD, Rejected, "write the events that use them"),

    key(Policy, "SCHED_OTHER", FIRST, Honoured, "`other`"),
    key(Policy, "SCHED_BATCH", "2026", Honoured, "`batch`"),
    key(Policy, "SCHED_IDLE", "2018", Honoured, "`idle`"),
    key(Policy, "SCHED_RR", FIRST, Honoured, "`rr`"),
    key(Policy, "SCHED_FIFO", FIRST, Honoured, "`fifo`"),
    key(Policy, "SCHED_DEADLINE", FIRST, Approximated, "a reservation, which the schedulers `deadline` and `rm` keep; to all others the task is SCHED_OTHER. Missed deadlines are counted"),

    key(Global, "duration", FIRST, Honoured, "seconds; −1: until all tasks have ended"),
    key(Global, "default_policy", FIRST, Honoured, "of tasks without `policy`"),
    key(Global, "pi_enabled", FIRST, Honoured, "priority inheritance of all mutexes"),
    key(Global, "calibration", FIRST, Ignored, "`run` is CPU time here"),
    key(Global, "lock_pages", FIRST, Ignored, "memory"),
    key(Global, "mem_buffer_size", FIRST, Ignored, "memory"),
    key(Global, "io_device", FIRST, Ignored, "one device serves all `iorun`"),
    key(Global, "cumulative_slack", FIRST, Ignored, "logs"),
    key(Global, "log_size", FIRST, Ignored, "logs"),
    key(Global, "logdir", FIRST, Ignored, "logs"),
    key(Global, "log_basename", FIRST, Ignored, "logs"),
    key(Global, "ftrace", FIRST, Ignored, "logs"),
    key(Global, "gnuplot", FIRST, Ignored, "logs"),
    key(Global, "frag", OLD, Ignored, "logs"),

    key(Root, "tasks", FIRST, Honoured, "the tasks"),
    key(Root, "global", FIRST, Honoured, "see above"),
    key(Root, "resources", FIRST, Honoured, "need not be declared: an event that names one makes it"),
    key(Resource, "type", FIRST, Honoured, "`mutex` if absent"),
    key(Resource, "target", OLD, Ignored, "of a signal; the event names the condition"),
    key(Kind, "mutex", FIRST, Honoured, ""),
    key(Kind, "timer", FIRST, Honoured, ""),
    key(Kind, "wait", FIRST, Honoured, "a condition"),
    key(Kind, "signal", FIRST, Ignored, "makes nothing, as in rt-app"),
    key(Kind, "broadcast", FIRST, Ignored, "makes nothing, as in rt-app"),
    key(Kind, "sync", FIRST, Ignored, "makes nothing, as in rt-app"),
    key(Kind, "sleep", FIRST, Ignored, "makes nothing, as in rt-app"),
    key(Kind, "run", FIRST, Ignored, "makes nothing, as in rt-app"),
];

/// The keys of an object.
pub fn keys_of(place: Place) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.place == place)
}

/// The key `name` of one of these objects.
pub fn find(places: &[Place], name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| places.contains(&key.place) && key.name == name)
}

/// The event whose name `key` begins with.
pub fn event_of(key: &str) -> Option<&'static Key> {
    keys_of(Event).filter(|event| key.starts_with(event.name)).max_by_key(|event| event.name.len())
}

/// Why `name` is refused in an object of one of these kinds.
pub fn unknown(places: &[Place], what: &str, name: &str) -> String {
    let names: Vec<String> = KEYS
        .iter()
        .filter(|key| places.contains(&key.place) && key.since != OLD)
        .map(|key| key.name.to_string())
        .collect();
    no_such(what, name, &names, "docs/rt-app.md lists them.")
}

/// Why a key of before 1.0 is refused.
pub fn outdated(key: &Key) -> String {
    format!(
        "`{}` is of rt-app's grammar before 1.0, which rt-app 1.0 and newer do not run either: {}",
        key.name, key.how
    )
}

/// The tables of docs/rt-app.md.
#[cfg(test)]
pub fn tables() -> String {
    let table = |(heading, places): &(&str, &[Place])| {
        let row = |key: &Key| {
            let treatment = format!("{:?}", key.treatment).to_lowercase();
            format!("| `{}` | {} | {treatment} | {} |\n", key.name, key.since, key.how)
        };
        let rows: String = KEYS.iter().filter(|key| places.contains(&key.place)).map(row).collect();
        format!("| {heading} | since | | |\n|---|---|---|---|\n{rows}")
    };
    let tables: [(&str, &[Place]); 9] = [
        ("event", &[Event]),
        ("of `wait` and `sync`", &[Wait]),
        ("of `timer`", &[Timer]),
        ("of `memrun`", &[Memrun]),
        ("of a task or phase", &[Phase]),
        ("of a task", &[Task]),
        ("policy", &[Policy]),
        ("of `global`", &[Global]),
        ("of the file, `resources` and their types", &[Root, Resource, Kind]),
    ];
    tables.iter().map(table).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn docs_rt_app_has_the_tables_of_the_code() {
        const BEGIN: &str = "<!-- The next tables are made by a test of crates/formats. -->\n\n";
        const END: &str = "\n<!-- end of the tables -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rt-app.md");
        let page = std::fs::read_to_string(path).expect("docs/rt-app.md");
        let (head, rest) = page.split_once(BEGIN).expect("the begin of the tables");
        let (now, tail) = rest.split_once(END).expect("the end of the tables");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let page = format!("{head}{BEGIN}{}{END}{tail}", tables());
            std::fs::write(path, page).expect("docs can be written");
        } else {
            let how = "docs/rt-app.md is out of date: UPDATE_DOCS=1 cargo test --lib rt_app";
            assert_eq!(now, tables(), "{how}");
        }
    }

    /// What `tools/rt-app` found in the source of upstream's parser is what is listed here.
    #[test]
    fn every_key_of_upstreams_parser_is_listed_and_no_other() {
        let found: serde_json::Value =
            serde_json::from_str(include_str!("../../../../../docs/rt-app.json")).unwrap();
        let places = [
            ("root", Root),
            ("global", Global),
            ("resource", Resource),
            ("resource type", Kind),
            ("event", Event),
            ("wait", Wait),
            ("timer", Timer),
            ("memrun", Memrun),
            ("phase", Phase),
            ("task", Task),
            ("policy", Policy),
        ];
        assert_eq!(found["keys"].as_object().map(serde_json::Map::len), Some(places.len()));
        for (name, place) in places {
            let upstream: BTreeSet<&str> = found["keys"][name]
                .as_array()
                .unwrap_or_else(|| panic!("no keys of {name}"))
                .iter()
                .filter_map(serde_json::Value::as_str)
                .collect();
            let ours: BTreeSet<&str> =
                keys_of(place).filter(|key| key.since != OLD).map(|key| key.name).collect();
            assert_eq!(ours, upstream, "{name}");
        }
    }

    #[test]
    fn no_key_is_listed_twice() {
        for (index, key) in KEYS.iter().enumerate() {
            let is_same = |other: &Key| (other.place, other.name) == (key.place, key.name);
            assert!(!KEYS[..index].iter().any(is_same), "{key:?}");
        }
    }
}
