//! Recordings held against what is known otherwise: a program that does a known number of
//! operations, perf that records the same run, and a recorder that drops events on purpose.
//!
//! These tests need root and BPF; without, they say that they were skipped. They run one after
//! another, in one process, which is also the program with known operations.

#[path = "truth/locks.rs"]
mod locks;
#[path = "truth/measured.rs"]
mod measured;
#[path = "truth/namespace.rs"]
mod namespace;
#[path = "truth/operations.rs"]
mod operations;
#[path = "truth/options.rs"]
mod options;
#[path = "truth/witness.rs"]
mod witness;

use operations::{number, times};
use recording::{Class, Counts, Event, Machine, Outcome, Reader, What, socket};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

const RECORDER: &str = env!("CARGO_BIN_EXE_schedlab-recorder");

/// What must hold, and how it is tried in a folder.
type Test = (&'static str, fn(&Path));

const TESTS: [Test; 21] = [
    ("known operations are recorded, each about its object", known_operations),
    ("calls of locks are recorded, also those that nothing waits for", locks::known_locks),
    ("a thread that execs is the same task under another number", exec_in_a_thread),
    ("calls of 32-bit programs are counted", calls_of_32_bits),
    ("requests of io_uring are counted", requests_of_io_uring),
    ("perf counts the same switches, wakeups and migrations", witness::same_as_perf),
    ("a dropped event is noticed", a_dropped_event_is_noticed),
    ("events for which the buffer has no room are counted", measured::overrun),
    ("a task that never sleeps is recorded as one", never_sleeps),
    ("a killed recorder leaves a readable file and no probe", killed),
    ("names are hidden on request, equal ones alike", hidden_names),
    ("a snapshot has the last while, and all to read it", options::snapshot),
    ("a budget leaves out detail in order, by name", options::budget),
    ("the calls of a control group are recorded, and no others", options::cgroup),
    ("the exercise does what it says, and costs are written", measured::calibrations),
    ("light runs are runs of the command, and see its calls", measured::light_runs),
    ("programs that record nothing cost less", measured::floor),
    ("tasks without a place in the table are counted", measured::places),
    ("what was open and set before is in the recording", options::conditions),
    ("tasks in a namespace of pids have their numbers there, too", namespace::numbers),
    ("a recorder in a namespace of pids says so", namespace::inside),
];

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("operations") => operations::run(),
        Some("locks") => operations::locks(),
        Some("exec") => operations::exec_in_a_thread(),
        Some("io_uring") => println!("{}", operations::io_uring()),
        Some("32-bit") => println!("{}", operations::calls_of_32_bits()),
        _ => return test(),
    }
    ExitCode::SUCCESS
}

fn test() -> ExitCode {
    let checked = Command::new(RECORDER).arg("--check").output().expect("the recorder starts");
    if checked.status.code() == Some(77) {
        println!("skipped: {}", String::from_utf8_lossy(&checked.stderr).trim());
        return ExitCode::SUCCESS;
    }
    let folder = std::env::temp_dir().join(format!("schedlab-recorder-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, test) in TESTS {
        if wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str())) {
            println!("test: {name}");
            test(&folder);
        }
    }
    fs::remove_dir_all(&folder).expect("the folder");
    ExitCode::SUCCESS
}

/// A recording that was read.
struct Read {
    machine: Machine,
    events: Vec<Event>,
    outcome: Outcome,
}

impl Read {
    fn of(file: &Path) -> Read {
        let mut reader = Reader::new(BufReader::new(File::open(file).expect("it was written")))
            .unwrap_or_else(|damage| panic!("{damage}"));
        let mut events = Vec::new();
        let outcome = reader.read(|_, event| events.push(*event)).unwrap_or_else(|damage| {
            panic!("{damage}");
        });
        Read { machine: reader.machine().clone(), events, outcome }
    }

    fn counts(&self) -> &Counts {
        match &self.outcome {
            Outcome::Complete(end) => &end.counts,
            Outcome::Cut { .. } => panic!("the file is cut off"),
        }
    }
}

/// Records a command, and returns what it wrote.
fn record(file: &Path, options: &[&str], command: &[&str]) -> (Read, String) {
    let mut recorder = Command::new(RECORDER);
    recorder.arg("-o").arg(file).args(options).arg("--").args(command);
    let output = recorder.stderr(Stdio::inherit()).output().expect("the recorder starts");
    assert!(output.status.success(), "{}", output.status);
    (Read::of(file), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn this() -> String {
    std::env::current_exe().expect("this program").display().to_string()
}

fn known_operations(folder: &Path) {
    let (read, said) = record(&folder.join("operations.rec"), &[], &[&this(), "operations"]);
    assert_eq!(read.counts().disagreement(), None);
    assert_eq!(read.counts().lost(), 0);
    let cost = read.machine.overhead.expect("it was measured");
    let quartiles = [0.0, cost.call_ns_q1, cost.call_ns, cost.call_ns_q3];
    assert!(cost.call_ns_q1 > 0.0 && quartiles.is_sorted(), "{cost:?}");
    let inodes: Vec<u64> =
        said.split_whitespace().map(|word| word.parse().expect("an inode")).collect();
    let mut objects = BTreeMap::new();
    let mut peers = BTreeMap::new();
    let mut calls: BTreeMap<(u64, u16), u64> = BTreeMap::new();
    let mut members = Vec::new();
    let mut timers: BTreeMap<u64, u64> = BTreeMap::new();
    for event in &read.events {
        match event.what {
            What::Object { id, class, inode, peer } => {
                objects.insert(id, (class, inode));
                peers.insert(id, peer);
            }
            What::Call { object, number, .. } => *calls.entry((object, number)).or_default() += 1,
            What::Member { set, object, op: op @ 1..=3, .. } => members.push((set, object, op)),
            What::Timer { object, .. } => *timers.entry(object).or_default() += 1,
            _ => {}
        }
    }
    let of = |class: Class| objects.iter().filter(move |(_, object)| object.0 == class);
    let pipes: Vec<u64> = inodes
        .iter()
        .map(|inode| *of(Class::Pipe).find(|(_, object)| object.1 == *inode).expect("a pipe").0)
        .collect();
    let count = |object: u64, call| calls.get(&(object, number(call))).copied().unwrap_or(0);
    let to_a = times::WRITES_A + times::WRITES_A_DUPLICATED + times::WRITES_A_PASSED;
    let written = [to_a, times::WRITES_B].into_iter().chain(times::WRITES_REUSED);
    assert_eq!(pipes.len(), 2 + times::WRITES_REUSED.len());
    for (pipe, writes) in pipes.iter().copied().zip(written) {
        assert_eq!(count(pipe, libc::SYS_write), writes);
        assert_eq!(count(pipe, libc::SYS_read), writes);
    }
    assert_eq!((count(pipes[0], libc::SYS_dup), count(pipes[1], libc::SYS_dup)), (1, 0));

    let one = |class: Class| {
        let all: Vec<u64> = of(class).map(|(id, _)| *id).collect();
        assert_eq!(all.len(), 1, "{class:?}");
        all[0]
    };
    for pipe in &pipes[..2] {
        let is_entry = |event: &&Event| matches!(event.what, What::Member { set: 0, object, op: 0, events } if object == *pipe && events == 1);
        assert_eq!(read.events.iter().filter(is_entry).count() as u64, times::POLLS);
    }
    ends_and_types(&objects, &peers);
    let (event, set, timer) = (one(Class::Eventfd), one(Class::Epoll), one(Class::Timerfd));
    assert_eq!(count(event, libc::SYS_write), times::EVENT_WRITES);
    assert_eq!(peers[&event], u64::from(1 | times::COUNT << 1));
    let is_wait = |event: &&Event| matches!(event.what, What::Call { object, number: call, op: 1, .. } if object == set && call == number(libc::SYS_epoll_wait));
    assert!(cfg!(not(target_arch = "x86_64")) || read.events.iter().any(|event| is_wait(&event)));
    let waits = count(set, libc::SYS_epoll_wait) + count(set, libc::SYS_epoll_pwait);
    assert_eq!(waits, times::EPOLL_WAITS);
    assert_eq!(members, [(set, event, 1), (set, pipes[1], 1)]);
    assert_eq!(count(timer, libc::SYS_timerfd_settime), times::TIMER_SETS);
    assert_eq!(timers.get(&timer), Some(&times::TIMER_SETS));
    // The time of a poll is one of no object, too.
    let sleeps = count(0, libc::SYS_nanosleep) + count(0, libc::SYS_clock_nanosleep);
    assert_eq!(
        (sleeps, timers.get(&0).copied()),
        (times::SLEEPS, Some(times::SLEEPS + times::POLLS))
    );
    let mut wakes: Vec<u64> = of(Class::Futex)
        .map(|(id, _)| count(*id, libc::SYS_futex))
        .filter(|count| *count > 0)
        .collect();
    wakes.sort_unstable();
    assert_eq!(wakes, [times::WAKES_X, times::WAKES_Y]);
}

/// Two internet sockets have the same ports, exchanged; two Unix sockets know each other; and each
/// knows its type.
fn ends_and_types(objects: &BTreeMap<u64, (Class, u64)>, peers: &BTreeMap<u64, u64>) {
    let of = |class: Class, kind: u64| {
        let is = move |id: &&u64| objects[id].0 == class && peers[id] & socket::TYPE == kind << 56;
        objects.keys().filter(is).map(|id| (*id, peers[id] & !socket::TYPE)).collect::<Vec<_>>()
    };
    let connected = of(Class::InternetSocket, socket::STREAM);
    let exchanged = |ports: u64| ports >> 16 | (ports & 0xffff) << 16;
    let ports: Vec<u64> =
        connected.iter().map(|(_, ports)| *ports).filter(|ports| ports & 0xffff > 0).collect();
    let [one, other] = ports[..] else { panic!("{connected:?}") };
    assert_eq!(one, exchanged(other));
    let pair = of(Class::UnixSocket, socket::SEQPACKET);
    let [(one, _), (other, peer)] = pair[..] else { panic!("{pair:?}") };
    assert!(peer == one && other != one, "{pair:?}");
}

fn exec_in_a_thread(folder: &Path) {
    let (read, _) = record(&folder.join("exec.rec"), &[], &[&this(), "exec"]);
    let execs = read.events.iter().enumerate().filter_map(|(at, event)| match event.what {
        What::Exec { task, old } if task != old => Some((at, task)),
        _ => None,
    });
    let execs: Vec<(usize, u32)> = execs.collect();
    let [(at, task)] = execs[..] else { panic!("{execs:?}") };
    let call = |event: &Event, tid: u32, wanted| {
        let wanted = number(wanted);
        event.tid == tid && matches!(event.what, What::Call { number: of, .. } if of == wanted)
    };
    // The shell goes on under that number, and waits for what it starts.
    let waits = read.events[at..].iter().filter(|event| call(event, task, libc::SYS_wait4));
    assert!(waits.count() > 0);
}

fn calls_of_32_bits(folder: &Path) {
    let (read, said) = record(&folder.join("32-bit.rec"), &[], &[&this(), "32-bit"]);
    if said.trim() != "true" {
        println!("      skipped: this kernel runs no 32-bit programs");
        return;
    }
    let unresolved = &read.counts().unresolved;
    let counted = unresolved.iter().find(|(what, _)| what.contains("32-bit"));
    assert_eq!(counted.map(|(_, count)| *count), Some(times::CALLS_32_BIT), "{unresolved:?}");
}

fn requests_of_io_uring(folder: &Path) {
    let (read, said) = record(&folder.join("io_uring.rec"), &[], &[&this(), "io_uring"]);
    if said.trim() != "true" {
        println!("      skipped: this kernel has no io_uring for this user");
        return;
    }
    let unresolved = &read.counts().unresolved;
    let counted = unresolved.iter().find(|(what, _)| what.contains("io_uring"));
    assert_eq!(counted.map(|(_, count)| *count), Some(times::REQUESTS), "{unresolved:?}");
}

fn never_sleeps(folder: &Path) {
    let command = ["timeout", "0.3", "sh", "-c", "echo $$; while :; do :; done"];
    let (read, said) = record(&folder.join("busy.rec"), &[], &command);
    assert_eq!(read.counts().disagreement(), None);
    // The status that `timeout` ends with.
    let Outcome::Complete(end) = &read.outcome else { panic!("the file is cut off") };
    assert_eq!(end.status, Some(124 << 8));
    let busy: u32 = said.trim().parse().expect("its number");
    let own = |event: &&Event| event.tid == busy;
    // It says its number, and calls nothing from then on.
    let calls =
        read.events.iter().filter(own).filter(|event| matches!(event.what, What::Call { .. }));
    let said = calls.map(|event| event.time).max().expect("it wrote");
    let blocked = |event: &&Event| matches!(event.what, What::Switch { state: 1, .. });
    let after = read.events.iter().filter(own).filter(|event| event.time > said);
    assert_eq!(after.filter(blocked).count(), 0);
    let exits = |event: &Event| matches!(event.what, What::Exit { task, .. } if task == busy);
    assert!(read.events.iter().any(exits));
}

fn a_dropped_event_is_noticed(folder: &Path) {
    let command = ["sh", "-c", "echo | cat; sleep 0.01; echo | cat"];
    let (read, _) = record(&folder.join("canary.rec"), &["--canary", "5"], &command);
    let (kind, emitted, arrived) = read.counts().disagreement().expect("it is noticed");
    assert!(kind == "waking" && emitted > arrived, "{kind} {emitted} {arrived}");
    let (read, _) = record(&folder.join("none.rec"), &[], &command);
    assert_eq!(read.counts().disagreement(), None);
}

fn killed(folder: &Path) {
    let before = probes();
    let file = folder.join("killed.rec");
    let mut recorder = Command::new(RECORDER);
    recorder.arg("-o").arg(&file).args(["--", "sleep", "3"]);
    let mut recorder = recorder.spawn().expect("the recorder starts");
    while fs::metadata(&file).map_or(0, |file| file.len()) < 20_000 {
        sleep(Duration::from_millis(50));
    }
    let is_new = |id: &u32| !before.contains(id);
    assert!(probes().iter().any(is_new), "the probes are not found");
    recorder.kill().expect("it is killed");
    recorder.wait().expect("it ends");
    let read = Read::of(&file);
    assert!(matches!(read.outcome, Outcome::Cut { .. }) && read.events.len() > 300);
    let gone = (0..100).any(|_| {
        sleep(Duration::from_millis(50));
        !probes().iter().any(is_new)
    });
    assert!(gone, "a probe is left");
}

/// The recorder's programs in the kernel.
fn probes() -> BTreeSet<u32> {
    let all = libbpf_rs::query::ProgInfoIter::default();
    all.filter(|info| info.name.as_bytes() == b"call_begins").map(|info| info.id).collect()
}

fn hidden_names(folder: &Path) {
    let command = ["sh", "-c", "sleep 0.01; sleep 0.01; cat /dev/null"];
    let names_of = |options: &[&str]| {
        let (read, _) = record(&folder.join("hidden.rec"), options, &command);
        assert_eq!(read.counts().disagreement(), None);
        // The command's own: what is named after its first exec.
        let own = read.events.iter().skip_while(|event| !matches!(event.what, What::Exec { .. }));
        let names = own.filter_map(|event| match event.what {
            What::Task { comm, .. } => Some(comm),
            _ => None,
        });
        names.collect::<BTreeSet<[u8; 16]>>()
    };
    let plain = names_of(&[]);
    assert!([*b"sleep", *b"cat\0\0"].iter().all(|name| plain.iter().any(|n| n.starts_with(name))));
    let hidden = names_of(&["--hide-names"]);
    assert!(hidden.len() >= 2 && hidden.iter().all(|name| name.starts_with(b"program-")));
    let bytes = fs::read(folder.join("hidden.rec")).expect("the file");
    assert!(!bytes.windows(5).any(|window| window == b"sleep"), "a name is in the file");
}
