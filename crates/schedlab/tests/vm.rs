//! Real kernels: they boot, count, and repeat themselves. Skipped by name where QEMU cannot be had.

use schedlab::vm::{Guest, Kernel, Proved, Qemu, prove, yields};
use schedlab_runner::class::Class;
use schedlab_runner::session::Session;
use std::time::Duration;

/// A guest of each kernel with `session`; `None`, said aloud, without QEMU.
fn guests(kernels: &[&str], session: &Session) -> Option<Vec<Guest>> {
    let qemu = match Qemu::find() {
        Ok(qemu) => qemu,
        Err(missing) => {
            eprintln!("skipped: real kernels: {missing}");
            return None;
        }
    };
    let guest = |name: &&str| Guest {
        qemu: qemu.clone(),
        kernel: Kernel::find(name, &|_| {}).unwrap_or_else(|error| panic!("{error}")),
        cpus: 1,
        memory: 512,
        session: session.clone(),
        files: Vec::new(),
        wall_limit: Duration::from_secs(240),
    };
    Some(kernels.iter().map(guest).collect())
}

fn cost(proved: &Proved, job: usize) -> f64 {
    yields::cost(&proved.transcript, job).expect("samples").instructions
}

#[test]
fn each_kernel_repeats_itself_and_a_yield_costs_more_with_more_tasks() {
    let jobs = [2, 32].map(|tasks| yields::job(tasks, Class::Other));
    let session = Session { settle_ms: 2000, jobs: jobs.into(), ..Session::default() };
    let Some(guests) = guests(&["6.1", "6.18"], &session) else { return };
    // `prove` boots each twice and compares every line.
    let proved = prove(&guests, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    let [cfs, eevdf] = &proved[..] else { panic!("two kernels") };
    for (proved, around) in [(cfs, 2050.0), (eevdf, 2800.0)] {
        let (few, many) = (cost(proved, 0), cost(proved, 1));
        assert!((few / around - 1.0).abs() < 0.15, "a yield of two tasks takes {few} instructions, which was about {around}");
        assert!(few < many && many < 1.3 * few, "a tree grows with the logarithm: {few}, {many}");
    }
}
