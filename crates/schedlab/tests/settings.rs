//! Settings that a user switches on: messages of the command line, and the simulator beside a real
//! kernel. What needs QEMU is skipped by name where it cannot be had.

use schedlab_runner::class::Class;
use schedlab_runner::session::Session;
use schedsim::policy::PolicySpec;
use schedsim::workload::{Closed, Phase, Tasks};
use schedsim::{Machine, Nanos, Time};
use std::process::Command;
use std::time::Duration;
use worlds::experiment::{Subject, simulate};
use worlds::setting::Deployment;
use worlds::vm::lockstep::INTERLEAVE;
use worlds::vm::{Guest, Kernel, Lockstep, Qemu, closed, newer_qemu, prove};

const SQLITE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/sqlite-and-xz.perf.data.zst");

fn schedlab(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(arguments)
        .output()
        .expect("the program starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_setting_that_concerns_nothing_is_a_usage_error_that_lists_what_there_is() {
    for (arguments, says) in [
        (&["--apply", "xy: batch"][..], "Did you mean `xz`?"),
        (&["--apply", "xz: turbo"], "There are batch, idle, other"),
        (&["--apply", "xz: cpus=2"], "there is no CPU 2"),
        (&["--apply", "xz: nice=5", "--baseline", "take:rr"], "give --baseline eevdf"),
        (&["--focus", "sqlite"], "Did you mean `sqlite3`?"),
        (&["--search"], "--focus"),
        (&["--search", "--focus", "xz", "--apply", "xz: batch"], "cannot be used with"),
        (&["--others-lose", "5%"], "--focus"),
    ] {
        let (code, message) = schedlab(&[&["compare", SQLITE], arguments].concat());
        assert_eq!(code, Some(2), "{arguments:?}: {message}");
        assert!(message.contains(says), "{arguments:?}: {message}");
    }
    let (code, message) = schedlab(&["compare", "unix1990", "--apply", "*: batch"]);
    assert!(code == Some(2) && message.contains("has no tasks of its own names"), "{message}");
    let (code, message) =
        schedlab(&["compare", "yield:2", "--on", "host", "--apply", "*: weight=200"]);
    assert!(code == Some(77) && message.contains("control group"), "{message}");
}

fn hogs(names: &[&str], duration: Nanos) -> Closed {
    let forever = || vec![Phase::forever(vec![Phase::Run(Nanos(1_000_000_000))])];
    Closed {
        tasks: names.iter().map(|name| Tasks::new(name, forever())).collect(),
        duration: Some(duration),
        ..Closed::default()
    }
}

/// `closed` as it is, and with each of `settings`.
fn variants(closed: &Closed, settings: &[&str]) -> Vec<Closed> {
    let changed = |setting: &&str| {
        let mut changed = closed.clone();
        setting.parse::<Deployment>().expect("a setting").to_closed(&mut changed);
        changed
    };
    std::iter::once(closed.clone()).chain(settings.iter().map(changed)).collect()
}

/// What each task has of the CPU time under `eevdf`.
fn simulated(closed: &Closed, cpus: u16) -> Vec<f64> {
    let (workload, machine) =
        (schedsim::workload::Workload::of(closed, cpus).expect("a workload"), Machine::ideal(cpus));
    let until = Time(closed.duration.expect("a duration").0);
    let subject = Subject {
        name: "hogs",
        workload: &workload,
        machine: &machine,
        mips: None,
        ended: &[],
        until,
        beside: &[],
        parts: false,
    };
    let run = simulate(
        subject,
        &machine,
        &PolicySpec::parse("eevdf").expect("a policy"),
        (1, None),
        true,
        None,
    )
    .expect("a run");
    assert!(run.violations.is_empty(), "{:?}", run.violations);
    let times: Vec<f64> = run.summary.tasks.iter().map(|task| task.cpu_time.0 as f64).collect();
    let all: f64 = times.iter().sum();
    times.iter().map(|time| time / all).collect()
}

/// The same in a guest, undisturbed.
fn measured(variants: &[Closed], cpus: u16, qemu: Qemu) -> Vec<Vec<f64>> {
    let jobs =
        variants.iter().flat_map(|closed| closed::jobs("hogs", closed, Class::Other)).collect();
    let guest = Guest {
        qemu,
        kernel: Kernel::find("6.18", &|_| {}).unwrap_or_else(|error| panic!("{error}")),
        cpus,
        lockstep: (cpus > 1).then_some(Lockstep { cpus, interleave: INTERLEAVE }),
        memory: 512,
        nodes: 1,
        shape: None,
        session: Session { settle_ms: 2000, jobs, ..Session::default() },
        files: Vec::new(),
        wall_limit: Duration::from_secs(600),
    };
    let proved = prove(&[guest], &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    let of = |number: usize| {
        let measured = closed::Measured::of(&proved[0].transcript, closed::JOBS * number)
            .expect("both jobs end");
        closed::shares(&measured.tasks).into_iter().map(|(_, share)| share).collect()
    };
    (0..variants.len()).map(of).collect()
}

#[test]
#[ignore = "long: tools/long"]
fn the_simulator_and_a_kernel_give_tasks_the_same_shares_under_each_setting() {
    let two = hogs(&["a", "b"], Nanos(200_000_000));
    let settings = [
        "b: nice=10",
        "b: nice=-5",
        "b: idle",
        "a: fifo=50",
        "b: rr=1",
        "b: batch",
        "b: weight=300",
        "a: slice=10ms",
    ];
    // The share of `b`: by the kernel's weights of nice values 10, -5 and of SCHED_IDLE, by strict
    // priority, by 300 to 100.
    let expected = [0.5, 0.097, 0.753, 0.003, 0.0, 1.0, 0.5, 0.75, 0.5];
    let three = hogs(&["a", "b", "c"], Nanos(100_000_000));
    let affinity = ["a: cpus=0; b: cpus=0; c: cpus=1"];
    let (one_cpu, two_cpus) = (variants(&two, &settings), variants(&three, &affinity));
    for (closed, expected) in one_cpu.iter().zip(expected) {
        let share = simulated(closed, 1)[1];
        assert!(
            (share - expected).abs() < 0.04,
            "simulated: {share} for {expected}: {:?}",
            closed.tasks
        );
    }
    let pinned = simulated(&two_cpus[1], 2);
    assert!(
        pinned
            .iter()
            .zip([0.25, 0.25, 0.5])
            .all(|(share, expected)| (share - expected).abs() < 0.03),
        "{pinned:?}"
    );
    let (one, other) = match (Qemu::find(), newer_qemu::of(2, &|_| {})) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(missing), _) | (_, Err(missing)) => {
            return eprintln!("skipped: settings in a real kernel: {missing}");
        }
    };
    for ((shares, closed), expected) in
        measured(&one_cpu, 1, one).iter().zip(&one_cpu).zip(expected)
    {
        assert!(
            (shares[1] - expected).abs() < 0.04,
            "in the kernel: {shares:?} for {expected}: {:?}",
            closed.tasks
        );
    }
    let pinned = &measured(&two_cpus[1..], 2, other)[0];
    assert!(
        pinned
            .iter()
            .zip([0.25, 0.25, 0.5])
            .all(|(share, expected)| (share - expected).abs() < 0.05),
        "{pinned:?}"
    );
}
