//! Ensembles of guests: members differ by what was drawn for them and by nothing else. Skipped by
//! name where QEMU cannot be had.

use formats::machine_file::MachineFile;
use formats::toml_file::TomlFile;
use schedlab_runner::class::Class;
use schedlab_runner::nudge::Nudge;
use schedlab_runner::session::{Job, Session};
use schedsim::Nanos;
use schedsim::workload::{Closed, Phase, Tasks, TimerMode, TimerPhase};
use std::time::Duration;
use worlds::guest::Nudges;
use worlds::guest::nudges::Kind;
use worlds::vm::lockstep::INTERLEAVE;
use worlds::vm::settled::unsaved;
use worlds::vm::{Guest, Kernel, Lockstep, Qemu, Settled, Shape, Transcript, newer_qemu};

/// A guest with one CPU; `None`, with a message, without QEMU.
fn guest() -> Option<Guest> {
    let qemu = match Qemu::find() {
        Ok(qemu) => qemu,
        Err(missing) => {
            eprintln!("skipped: ensembles of guests: {missing}");
            return None;
        }
    };
    Some(Guest {
        qemu,
        kernel: Kernel::find("6.1", &|_| {}).unwrap_or_else(|error| panic!("{error}")),
        cpus: 1,
        lockstep: None,
        memory: 512,
        nodes: 1,
        shape: None,
        session: Session { settle_ms: 100, ..Session::default() },
        files: Vec::new(),
        wall_limit: Duration::from_secs(600),
    })
}

/// Threads that share a mutex, have timers and wait at a barrier.
fn threads() -> Closed {
    let run = |us: u64| Phase::Run(Nanos(us * 1_000));
    let timer = Phase::Timer(TimerPhase {
        name: "own".to_string(),
        period: Nanos(3_000_000),
        mode: TimerMode::Absolute,
        shared: false,
    });
    let locked = vec![
        Phase::Barrier("all".to_string()),
        Phase::repeat(
            6,
            vec![
                run(300),
                Phase::Lock("m".to_string()),
                run(200),
                Phase::Unlock("m".to_string()),
                timer,
            ],
        ),
    ];
    let tasks = vec![
        Tasks { count: 3, ..Tasks::new("one", locked.clone()) },
        Tasks { count: 2, ..Tasks::new("other", locked) },
    ];
    Closed { tasks, ..Closed::default() }
}

fn jobs(nudge: Nudge) -> Vec<Job> {
    vec![Job { trace: true, nudge, ..Job::new("threads", threads(), Class::Other) }]
}

/// What it reported from the state that was saved on.
fn reports(transcript: &Transcript) -> &[String] {
    let is_pause = |line: &String| line.contains("\"paused\"");
    let at = transcript.lines.iter().position(is_pause).expect("it paused");
    &transcript.lines[at + 1..]
}

#[test]
fn a_saved_state_changes_nothing_and_what_was_drawn_before_it_would() {
    let Some(guest) = guest() else { return };
    let jobs = jobs(Nudges::default().of(3, None));
    let state = Settled::boot(&guest, &mut |_| {}).expect("it boots");
    let saved = state.run(&jobs, &mut |_| {}).expect("it runs");
    let straight = unsaved(&guest, &jobs).expect("it runs");
    assert!(reports(&saved).len() > 100, "{:?}", saved.lines);
    assert_eq!(saved.lines, straight.lines, "line for line, times included");
    // Had the wait been made before the state was saved, this comparison would tell.
    let session = Session { settle_ms: 101, ..Session::default() };
    let before = unsaved(&Guest { session, ..guest }, &jobs).expect("it runs");
    assert_ne!(reports(&saved), reports(&before));
}

#[test]
fn each_kind_of_difference_makes_another_run_and_none_makes_the_same() {
    let Some(guest) = guest() else { return };
    let state = Settled::boot(&guest, &mut |_| {}).expect("it boots");
    let run = |nudge| state.run(&jobs(nudge), &mut |_| {}).expect("it runs");
    let plain = run(Nudge::default());
    assert_eq!(plain.lines, run(Nudge::default()).lines);
    // Numbers of as many digits, as the guest reads them.
    let none = Nudge::default();
    let pairs = [
        ("start", [1_000_000, 3_000_000].map(|start_ns| Nudge { start_ns, ..none })),
        ("order", [11, 12].map(|order| Nudge { order, ..none })),
        ("timers", [11, 12].map(|timers| Nudge { timers, timers_ns: 50_000, ..none })),
        ("stack", [10, 39].map(|stack| Nudge { stack, ..none })),
        ("heap", [100, 999].map(|heap| Nudge { heap, ..none })),
        ("data", [1024, 3968].map(|data| Nudge { data, ..none })),
        ("span", [100, 900].map(|span| Nudge { span, ..none })),
    ];
    assert_eq!(pairs.map(|(name, _)| name), Kind::ALL.map(Kind::name));
    let same: Vec<&str> = pairs
        .into_iter()
        .filter(|(_, [one, other])| reports(&run(*one)) == reports(&run(*other)))
        .map(|(name, _)| name)
        .collect();
    assert!(same.is_empty(), "{same:?} change nothing");
}

#[test]
fn the_domains_of_a_guests_kernel_are_those_of_the_machine_and_of_no_other() {
    let qemu = match newer_qemu::of(8, &|_| {}) {
        Ok(qemu) => qemu,
        Err(missing) => return eprintln!("skipped: machines of guests: {missing}"),
    };
    let Some(guest) = guest() else { return };
    let shape = |text: &str| {
        let file = MachineFile::read(&TomlFile::of("m.toml", text)).expect("a machine");
        Shape::of(&file, 64).expect("a shape")
    };
    // Two nodes of two caches, each of one core with two threads.
    let machine = shape("nodes = [['c', 'c'], ['c', 'c']]\n[cluster.c]\ncores = 1\nthreads = 2\n");
    let guest = Guest {
        qemu,
        kernel: Kernel::find("6.18", &|_| {}).unwrap_or_else(|error| panic!("{error}")),
        cpus: 8,
        lockstep: Some(Lockstep { cpus: 8, interleave: INTERLEAVE }),
        nodes: 2,
        shape: Some(machine.clone()),
        ..guest
    };
    let mut events = Vec::new();
    Settled::boot(&guest, &mut |event| events.push(event.clone())).expect("the domains are these");
    machine.judge(&events).expect("they are");
    for (other, says) in [
        ("nodes = [['c'], ['c']]\n[cluster.c]\ncores = 2\nthreads = 2\n", "last-level caches"),
        ("nodes = [['c', 'c'], ['c', 'c']]\n[cluster.c]\ncores = 2\n", "hardware threads"),
        ("nodes = [['c', 'c', 'c', 'c']]\n[cluster.c]\ncores = 1\nthreads = 2\n", "domains"),
        (
            "nodes = [['c'], ['c'], ['c'], ['c']]\n[cluster.c]\ncores = 1\nthreads = 2\n",
            "nodes are not",
        ),
    ] {
        let refused = shape(other).judge(&events).expect_err(other).to_string();
        assert!(refused.contains(says), "{says}: {refused}");
    }
}
