//! Ensembles of guests: members differ by what was drawn for them and by nothing else. Skipped by
//! name where QEMU cannot be had.

use formats::machine_file::MachineFile;
use formats::toml_file::TomlFile;
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
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
    // That of several CPUs has a test of its own.
    let of_one = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Interleave).map(Kind::name);
    assert!(pairs.iter().map(|(name, _)| *name).eq(of_one));
    let same: Vec<&str> = pairs
        .into_iter()
        .filter(|(_, [one, other])| reports(&run(*one)) == reports(&run(*other)))
        .map(|(name, _)| name)
        .collect();
    assert!(same.is_empty(), "{same:?} change nothing");
}

#[test]
fn members_on_several_cpus_differ_by_how_far_these_may_be_apart() {
    let Some(guest) = shaped(&shape("nodes = [['c']]\n[cluster.c]\ncores = 2\n")) else { return };
    let state = Settled::boot(&guest, &mut |_| {}).expect("it boots");
    let jobs = jobs(Nudge::default());
    let run = |interleave| {
        let ran = state.run_interleaved(&jobs, interleave, &mut |_| {}).expect("it runs");
        reports(&ran).to_vec()
    };
    let plain = run(None);
    assert_eq!(plain, run(Some(INTERLEAVE)), "as the guest says");
    assert_ne!(plain, run(Some(INTERLEAVE / 2)));
}

fn shape(text: &str) -> Shape {
    let file = MachineFile::read(&TomlFile::of("m.toml", text)).expect("a machine");
    Shape::of(&file, 64).expect("a shape")
}

/// A guest of this shape; `None`, with a message, without QEMU.
fn shaped(shape: &Shape) -> Option<Guest> {
    let qemu = match newer_qemu::of(shape.cpus(), &|_| {}) {
        Ok(qemu) => qemu,
        Err(missing) => {
            eprintln!("skipped: machines of guests: {missing}");
            return None;
        }
    };
    let (cpus, nodes) = (shape.cpus(), shape.nodes());
    Some(Guest {
        qemu,
        kernel: Kernel::find("6.18", &|_| {}).unwrap_or_else(|error| panic!("{error}")),
        cpus,
        lockstep: Some(Lockstep { cpus, interleave: INTERLEAVE }),
        nodes,
        shape: Some(shape.clone()),
        ..guest()?
    })
}

#[test]
fn the_domains_of_a_guests_kernel_are_those_of_the_machine_and_of_no_other() {
    // Two nodes of two caches, each of one core with two threads.
    let machine = shape("nodes = [['c', 'c'], ['c', 'c']]\n[cluster.c]\ncores = 1\nthreads = 2\n");
    let Some(guest) = shaped(&machine) else { return };
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

#[test]
fn a_guest_has_clusters_of_different_sizes_and_cpus_that_are_offline_and_keeps_time() {
    // Two cores of two threads beside three cores on one node, and one core on another.
    let text = "nodes = [['big', 'little'], ['one']]\n[cluster.big]\ncores = 2\nthreads = \
                2\n[cluster.little]\ncores = 3\n[cluster.one]\ncores = 1\n";
    let machine = shape(&format!("offline = [1, 3, 4, 6]\n{text}"));
    let Some(guest) = shaped(&machine) else { return };
    let mut events = Vec::new();
    let state = Settled::boot(&guest, &mut |event| events.push(event.clone()));
    let state = state.expect("the domains are these");
    for (other, says) in [
        (text.to_string(), "does not say"),
        (format!("offline = [1, 3, 4, 5]\n{text}"), "does not say"),
        // Three alike on the first node, and no threads.
        (
            "offline = [1, 3, 4, 6]\nnodes = [['c'], ['d']]\n[cluster.c]\ncores = \
             7\n[cluster.d]\ncores = 1\n"
                .to_string(),
            "last-level caches",
        ),
    ] {
        let refused = shape(&other).judge(&events).expect_err(&other).to_string();
        assert!(refused.contains(says), "{says}: {refused}");
    }
    let work = |cpu| Tasks {
        affinity: Some(vec![cpu]),
        ..Tasks::new(&format!("on{cpu}"), vec![Phase::Run(Nanos(40_000_000))])
    };
    let online = [0, 2, 5, 7];
    let pinned = Closed { tasks: online.map(work).to_vec(), ..Closed::default() };
    let ran = state.run(&[Job::new("pinned", pinned, Class::Other)], &mut |_| {}).expect("it runs");
    let tasks = ran.events.iter().find_map(|event| match event {
        Event::JobEnd { tasks, .. } => Some(tasks),
        _ => None,
    });
    let took: Vec<u64> = tasks.expect("it ends").iter().filter_map(|task| task.ended_ns).collect();
    // 4 CPUs in lockstep, whatever is offline; with 8 it would be twice that.
    let is_right = |ns: &u64| (40_000_000..42_000_000).contains(ns);
    assert!(took.len() == 4 && took.iter().all(is_right), "{took:?}");
}
