//! Several CPUs of a guest in lockstep keep time: what must take as long on each of them does, and
//! a second run says the same bytes. Skipped by name where QEMU cannot be had.
//!
//! `SCHEDLAB_LOCKSTEP` names other guests than those of CI, as `7.3:2 6.18:8`.

use formats::workload::Workload;
use program::Error;
use schedlab_runner::class::Class;
use schedlab_runner::event::{Event, TaskResult};
use schedlab_runner::session::{Job, Session};
use schedsim::Nanos;
use schedsim::workload::{Closed, Phase, Tasks};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use worlds::vm::lockstep::INTERLEAVE;
use worlds::vm::{Guest, Kernel, Lockstep, Orders, Settled, boot, newer_qemu, prove_each};

/// 20 million instructions.
const WORK: Nanos = Nanos(160_000_000);
const ROUNDS: u64 = 500;

/// What the guest's jobs came to, in nanoseconds but for the spread.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Of the fastest and of the slowest of tasks that do [`WORK`], one on each CPU.
    pinned: (f64, f64),
    /// The same, all other CPUs idle.
    alone: f64,
    /// By how much of the mean the passes of hogs differ, one on each CPU.
    spread: f64,
    /// A round trip of two tasks through pipes.
    pipe: f64,
    /// A meeting of two tasks at a barrier.
    futex: f64,
    /// All messages of 20 senders and receivers: the median of three runs, as each is chaotic.
    hackbench: f64,
}

fn tasks(name: &str, phases: Vec<Phase>) -> Tasks {
    Tasks::new(name, phases)
}

fn on(cpu: u16, of: Tasks) -> Tasks {
    Tasks { affinity: Some(vec![cpu]), ..of }
}

fn workloads(cpus: u16) -> Vec<(&'static str, Closed)> {
    let closed = |tasks| Closed { tasks, ..Closed::default() };
    let each = |phases: &[Phase]| {
        (0..cpus).map(|cpu| on(cpu, tasks(&format!("t{cpu}"), phases.to_vec()))).collect()
    };
    let work = [Phase::Run(WORK)];
    let hogs = closed(each(&[Phase::forever(vec![Phase::Run(Nanos(4_000))])]));
    let last = cpus - 1;
    let (read, write) = (
        |pipe: &str| Phase::Read { pipe: pipe.to_string(), bytes: 1, partial: false },
        |pipe: &str| Phase::Write { pipe: pipe.to_string(), bytes: 1 },
    );
    let pair = |a: Vec<Phase>, b: Vec<Phase>| {
        closed(vec![
            on(0, tasks("a", vec![Phase::repeat(ROUNDS, a)])),
            on(last, tasks("b", vec![Phase::repeat(ROUNDS, b)])),
        ])
    };
    let meet = || vec![Phase::Barrier("meet".to_string())];
    let Ok(Workload::Closed(hackbench)) = Workload::resolve("hackbench:1?loops=10".as_ref()) else {
        panic!("it is built in")
    };
    vec![
        // With a limit of time the runner has real-time priority as it opens the gate.
        ("pinned", Closed { duration: Some(Nanos(2 * WORK.0)), ..closed(each(&work)) }),
        ("alone", closed(vec![on(last, tasks("alone", work.to_vec()))])),
        ("hogs", Closed { duration: Some(Nanos(100_000_000)), ..hogs }),
        ("pipe", pair(vec![write("there"), read("back")], vec![read("there"), write("back")])),
        ("futex", pair(meet(), meet())),
        ("hackbench", hackbench.description().clone()),
        ("hackbench", hackbench.description().clone()),
        ("hackbench", hackbench.description().clone()),
    ]
}

fn guest(kernel: &str, cpus: u16, lockstep: Option<Lockstep>) -> Option<Guest> {
    let qemu = match newer_qemu::find(&|_| {}) {
        Ok(qemu) => qemu,
        Err(missing) => {
            eprintln!("skipped: CPUs in lockstep: {missing}");
            return None;
        }
    };
    Some(Guest {
        qemu,
        kernel: Kernel::find(kernel, &|_| {}).unwrap_or_else(|error| panic!("{error}")),
        cpus,
        lockstep,
        memory: 512,
        nodes: 1,
        shape: None,
        session: Session { settle_ms: 2_000, pauses: true, ..Session::default() },
        files: Vec::new(),
        wall_limit: Duration::from_secs(300),
    })
}

fn median(mut of: [f64; 3]) -> f64 {
    of.sort_by(f64::total_cmp);
    of[1]
}

/// Runs everything twice, and compares every byte.
fn times(guest: &Guest) -> Times {
    // What calculates does so under SCHED_FIFO, so that no thread of the kernel's comes between.
    let class = |name| match name {
        "pinned" | "alone" | "hogs" => Class::Fifo(1),
        _ => Class::Other,
    };
    let jobs: Vec<Job> = workloads(guest.cpus)
        .into_iter()
        .map(|(name, workload)| Job::new(name, workload, class(name)))
        .collect();
    let orders = Orders { guest: 0, jobs, interleave: None, is_repeated: true };
    let (_, proved) = prove_each(std::slice::from_ref(guest), &[orders], &|_, _| {});
    let proved: Vec<_> = proved
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{} on {} CPUs: {error}", guest.kernel.name, guest.cpus));
    let end = |number: usize| -> (f64, &[TaskResult]) {
        let end = proved[0].transcript.events.iter().find_map(|event| match event {
            Event::JobEnd { job, ns, tasks } if *job == number => Some((*ns as f64, &tasks[..])),
            _ => None,
        });
        end.unwrap_or_else(|| panic!("job {number} ends"))
    };
    let range = |values: Vec<f64>| {
        (
            values.iter().copied().fold(f64::MAX, f64::min),
            values.iter().copied().fold(0.0, f64::max),
        )
    };
    let ended = |number| end(number).1.iter().map(|task| task.ended_ns.unwrap_or(0) as f64);
    let passes = end(2).1.iter().map(|task| task.operations["run"] as f64).collect::<Vec<f64>>();
    let mean = passes.iter().sum::<f64>() / passes.len() as f64;
    let (fewest, most) = range(passes);
    Times {
        pinned: range(ended(0).collect()),
        alone: end(1).0,
        spread: (most - fewest) / mean,
        pipe: end(3).0 / ROUNDS as f64,
        futex: end(4).0 / ROUNDS as f64,
        hackbench: median([5, 6, 7].map(|job| end(job).0)),
    }
}

fn lockstep(cpus: u16) -> Option<Lockstep> {
    Some(Lockstep { cpus, interleave: INTERLEAVE })
}

/// What does not hold of a guest's times, beside those of one CPU of the same speed.
fn wrong(times: Times, one: Times, cpus: u16) -> Vec<String> {
    let (fastest, slowest) = times.pinned;
    let near = |value: f64, of: f64, within: f64| (value / of - 1.0).abs() <= within;
    // Ticks included, which come every half a million instructions.
    let is_work = |value| near(value, WORK.0 as f64, 0.01) && near(value, one.alone, 0.003);
    let speed_up = one.hackbench / times.hackbench;
    let least = match cpus {
        2 => 1.6,
        3 | 4 => 2.5,
        _ => 4.0,
    };
    // With 8, one CPU's ticks are a larger part of what all do; 0.34 % were measured.
    let apart = if cpus > 4 { 0.005 } else { 0.003 };
    let checks = [
        ("pinned work takes its time", is_work(fastest) && is_work(slowest)),
        ("it takes as long on each CPU", slowest / fastest < 1.0 + apart),
        ("it takes its time beside idle CPUs", is_work(times.alone)),
        ("hogs do as much on each CPU", times.spread < 2.0 * apart),
        ("a pipe takes 40 to 120 us there and back", (40e3..120e3).contains(&times.pipe)),
        // Without a sleep, where both come at once, it takes 10 us.
        ("to meet at a futex takes 8 to 100 us", (8e3..100e3).contains(&times.futex)),
        // Several find more bytes at a time: eight of 7.3 are 10.6 times as fast as one.
        ("more CPUs do more", speed_up > least && speed_up < 1.5 * f64::from(cpus)),
    ];
    checks.iter().filter(|(_, holds)| !holds).map(|(what, _)| what.to_string()).collect()
}

#[test]
#[ignore = "long: tools/long"]
fn cpus_in_lockstep_keep_time_and_without_the_plugin_they_do_not() {
    let guests = std::env::var("SCHEDLAB_LOCKSTEP").unwrap_or("6.18:4 6.1:2".to_string());
    let mut canary = None;
    for named in guests.split_whitespace() {
        let (kernel, cpus) = named.split_once(':').expect("KERNEL:CPUS");
        let cpus: u16 = cpus.parse().expect("a number of CPUs");
        let Some(one) = guest(kernel, 1, lockstep(1)) else { return };
        let Some(several) = guest(kernel, cpus, lockstep(cpus)) else { return };
        let (one, several) = (times(&one), times(&several));
        canary.get_or_insert(one);
        eprintln!("{kernel} on 1 CPU: {one:?}\n{kernel} on {cpus} CPUs: {several:?}");
        let wrong = wrong(several, one, cpus);
        assert!(wrong.is_empty(), "{kernel} on {cpus} CPUs: {wrong:?}");
    }
    // A canary: QEMU's own turns.
    let (Some(turns), Some(one)) = (guest("6.18", 2, None), canary) else { return };
    let turns = times(&turns);
    eprintln!("without the plugin: {turns:?}");
    let wrong = wrong(turns, one, 2);
    assert!(wrong.len() >= 3, "{wrong:?}");
}

#[test]
#[ignore = "boots for minutes, and says how many boots differ: by hand, on a busy machine"]
fn boots_of_several_cpus_repeat_themselves() {
    let wanted = std::env::var("SCHEDLAB_BOOTS").unwrap_or("6.18:4:8".to_string());
    for named in wanted.split_whitespace() {
        let [kernel, cpus, boots]: [&str; 3] =
            named.split(':').collect::<Vec<_>>().try_into().expect("KERNEL:CPUS:BOOTS");
        let cpus: u16 = cpus.parse().expect("a number of CPUs");
        let Some(guest) = guest(kernel, cpus, lockstep(cpus)) else { return };
        let mut said: Vec<(Vec<String>, u32)> = Vec::new();
        for _ in 0..boots.parse().expect("a number of boots") {
            let boot = Settled::boot(&guest, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
            match said.iter_mut().find(|(lines, _)| lines == boot.said()) {
                Some((_, times)) => *times += 1,
                None => said.push((boot.said().to_vec(), 1)),
            }
        }
        let times: Vec<u32> = said.iter().map(|(_, times)| *times).collect();
        println!("{kernel} on {cpus} CPUs, {boots} boots: alike were {times:?}");
        assert_eq!(times.len(), 1, "{:?}", said.iter().map(|(lines, _)| lines).collect::<Vec<_>>());
    }
}

/// Takes the priority from the main loop of each QEMU of this process, until `ends`.
fn demote(ends: &AtomicBool) {
    while !ends.load(Relaxed) {
        for thread in std::fs::read_dir("/proc/self/task").expect("threads").flatten() {
            let children = std::fs::read_to_string(thread.path().join("children"));
            for child in children.unwrap_or_default().split_whitespace() {
                let ordinary = libc::sched_param { sched_priority: 0 };
                // SAFETY: the parameters outlive the call.
                unsafe {
                    let child = child.parse().expect("a process");
                    libc::sched_setscheduler(child, libc::SCHED_OTHER, &raw const ordinary);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The nudge: nothing but the guest's own time may end a turn.
#[test]
#[ignore = "boots for minutes, with both CPUs busy: by hand"]
fn a_main_loop_that_comes_late_changes_no_turn() {
    const BOOTS: usize = 8;
    let Some(guest) = guest("6.18", 2, lockstep(2)) else { return };
    let Ok(Workload::Closed(hackbench)) = Workload::resolve("hackbench:4?loops=30".as_ref()) else {
        panic!("it is built in")
    };
    let jobs: Vec<Job> = (0..4)
        .map(|_| Job::new("hackbench", hackbench.description().clone(), Class::Other))
        .collect();
    let guest = Guest { session: Session { pauses: false, jobs, ..guest.session }, ..guest };
    let ends = AtomicBool::new(false);
    let turns: Vec<Option<String>> = std::thread::scope(|scope| {
        scope.spawn(|| demote(&ends));
        for _ in 0..3 {
            scope.spawn(|| {
                while !ends.load(Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let some = || -> Result<Vec<_>, Error> {
            (0..BOOTS / 2).map(|_| Ok(boot(&guest, &mut |_| {})?.turns)).collect()
        };
        let halves = [scope.spawn(some), scope.spawn(some)].map(|half| half.join());
        ends.store(true, Relaxed);
        let some = halves.into_iter().map(|half| half.expect("no panic"));
        some.flat_map(|half| half.unwrap_or_else(|error| panic!("{error}"))).collect()
    });
    assert!(turns[0].is_some() && turns.iter().all(|turn| *turn == turns[0]), "{turns:#?}");
}

/// CPU time in seconds of all that has ended: QEMU's.
fn spent() -> f64 {
    // SAFETY: it is filled by the call, and zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// What a guest's instruction costs on this machine, in nanoseconds of CPU time: the difference of
/// two runs, one of which does 3 times as much on each CPU.
fn cost(guest: &Guest) -> f64 {
    let state = Settled::boot(guest, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let took = |work: Nanos| {
        let each = (0..guest.cpus)
            .map(|cpu| on(cpu, tasks(&format!("t{cpu}"), vec![Phase::Run(work)])))
            .collect();
        let job = Job::new("work", Closed { tasks: each, ..Closed::default() }, Class::Other);
        let before = spent();
        state.run(&[job], &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
        spent() - before
    };
    let instruction = guest.lockstep.map_or(Nanos(1), Lockstep::instruction);
    let instructions = 2 * WORK.0 / instruction.0 * u64::from(guest.cpus);
    (took(Nanos(3 * WORK.0)) - took(WORK)) * 1e9 / instructions as f64
}

#[test]
#[ignore = "measures this machine and judges nothing: by hand"]
fn what_an_instruction_in_lockstep_costs_beside_one_of_a_single_cpu() {
    let Some(one) = guest("6.18", 1, None) else { return };
    let one = cost(&one);
    println!("1 CPU without lockstep: {one:.2} ns an instruction");
    for cpus in [2, 4, 8] {
        let Some(several) = guest("6.18", cpus, lockstep(cpus)) else { return };
        let several = cost(&several);
        println!("{cpus} CPUs: {several:.2} ns, {:.2} times that", several / one);
    }
}
