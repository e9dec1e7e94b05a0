//! `schedlab compare --on vm`: the same workload in real kernels.

use super::Compare;
use crate::cmd::PolicyName;
use crate::output::{Align, Results, Row, Table};
use crate::vm::{Guest, Identity, Kernel, Proved, Qemu, prove, yields};
use crate::{Error, progress};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::session::Session;
use schedsim::Nanos;
use std::fmt::Write;
use std::time::Duration;

/// Where a workload runs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Backend {
    /// In the simulator.
    Sim,
    /// In a real kernel under QEMU, with a clock that counts instructions.
    Vm,
}

/// In which kernels, and how.
#[derive(Args, Debug)]
pub struct VmArguments {
    /// Where the workload runs
    #[arg(long, value_enum, default_value = "sim")]
    pub on: Backend,
    /// Kernels for `--on vm`, separated by commas: series of Debian's, or paths of bzImages; `schedlab list kernels` shows them
    #[arg(long, value_name = "KERNEL", value_delimiter = ',', default_value = "6.18")]
    kernel: Vec<String>,
    /// How long a kernel is left alone after its boot, on its own clock, before it is measured
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    settle: Nanos,
}

/// The guest's memory in MiB.
const MEMORY: u32 = 512;
/// A guest that takes longer on this machine's clock has gone astray.
const WALL_LIMIT: Duration = Duration::from_secs(600);

/// One kernel under one class, with what each of its jobs came to.
struct Case {
    guest: Guest,
    identity: Identity,
    class: Class,
    costs: Vec<(u32, yields::YieldCost)>,
}

impl Compare {
    pub(super) fn on_vm(&self) -> Result<(), Error> {
        let tasks = yield_counts(&self.workload.workload.to_string_lossy())?;
        let cases = self.measure(&tasks)?;
        let results = Results::new(cases.iter().flat_map(Case::rows).collect());
        results.print(self.common.format, || text(&cases))
    }

    fn measure(&self, tasks: &[u32]) -> Result<Vec<Case>, Error> {
        if self.cpus.iter().any(|&cpus| cpus != 1) {
            return Err(Error::Usage(
                "with more than one virtual CPU, QEMU runs them in long turns and instructions say nothing: give --cpus 1".to_string(),
            ));
        }
        let qemu = Qemu::find()?;
        let classes = self.classes()?;
        let (mut guests, mut of) = (Vec::new(), Vec::new());
        for name in &self.vm.kernel {
            let kernel = Kernel::find(name, &|what| eprintln!("schedlab: {what}"))?;
            kernel.require(1, &[])?;
            for &class in &classes {
                let jobs = tasks.iter().map(|&tasks| yields::job(tasks, class)).collect();
                let session = Session { settle_ms: self.vm.settle.0 / 1_000_000, jobs, ..Session::default() };
                let (qemu, kernel) = (qemu.clone(), kernel.clone());
                guests.push(Guest { qemu, kernel, cpus: 1, memory: MEMORY, session, files: Vec::new(), wall_limit: WALL_LIMIT });
                of.push(class);
            }
        }
        let proved = prove_with_progress(&guests)?;
        let case = |((guest, class), proved): ((Guest, Class), Proved)| {
            let cost = |(job, &tasks)| yields::cost(&proved.transcript, job).map(|cost| (tasks, cost));
            Case { identity: Identity::of(&guest), guest, class, costs: tasks.iter().enumerate().filter_map(cost).collect() }
        };
        Ok(guests.into_iter().zip(of).zip(proved).map(case).collect())
    }

    /// The kernel's classes that are asked for.
    fn classes(&self) -> Result<Vec<Class>, Error> {
        if self.policy.is_empty() {
            return Ok(vec![Class::Other]);
        }
        let class = |policy: &PolicyName| match policy {
            PolicyName::Kernel(class) => Ok(*class),
            PolicyName::Ours(policy) => Err(Error::Usage(format!(
                "{policy} does not run in a kernel; give one of the kernel's own classes, as in kernel:other, kernel:batch or kernel:fifo:10"
            ))),
        };
        self.policy.iter().map(class).collect()
    }
}

/// `yield:2,8,32`: the numbers of tasks.
fn yield_counts(workload: &str) -> Result<Vec<u32>, Error> {
    let counts = workload.strip_prefix("yield:").map(|counts| counts.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>());
    match counts {
        Some(Ok(counts)) if counts.iter().all(|count| (1..=10_000).contains(count)) => Ok(counts),
        Some(_) => Err(Error::Usage(format!("`{workload}`: give numbers of tasks from 1 to 10000, as in yield:2,8,32,128"))),
        None => Err(Error::Usage(format!("`{workload}` does not run in a kernel yet; give yield:N, as in yield:2,8,32,128"))),
    }
}

/// Boots all guests twice and shows how far they are.
fn prove_with_progress(guests: &[Guest]) -> Result<Vec<Proved>, Error> {
    let steps: usize = guests.iter().map(|guest| 2 * (3 + 2 * guest.session.jobs.len())).sum();
    let bar = progress::bar("booting", steps as u64);
    let proved = prove(guests, &|guest, event| show(&bar, &guests[guest].kernel.name, event));
    bar.finish_and_clear();
    proved
}

fn show(bar: &ProgressBar, kernel: &str, event: &Event) {
    let what = match event {
        Event::Boot { .. } => "booted".to_string(),
        Event::Settled { .. } => "settled".to_string(),
        Event::JobStart { name, .. } => format!("runs {name}"),
        Event::JobEnd { .. } => "has measured".to_string(),
        Event::PowerOff { .. } => "is off".to_string(),
        Event::Failed { message } => message.clone(),
        Event::Sample { .. } | Event::Trace { .. } => return,
    };
    bar.set_message(format!("{kernel} {what}"));
    bar.inc(1);
}

impl Case {
    fn fit(&self) -> Option<yields::Fit> {
        yields::Fit::of(&self.costs.iter().map(|(tasks, cost)| (*tasks, cost.instructions)).collect::<Vec<_>>())
    }

    fn rows(&self) -> Vec<Row> {
        let row = |workload: String, metric: &str, value: f64, note: Option<String>| Row {
            workload,
            policy: format!("kernel:{}", self.class),
            backend: format!("vm:{}", self.guest.kernel.name),
            cpus: self.guest.cpus,
            seed: None,
            params: self.identity.params(),
            metric: metric.to_string(),
            unit: "instructions".to_string(),
            value: Some(value),
            ci_low: None,
            ci_high: None,
            runs: 2,
            verdict: None,
            note,
        };
        let each = self.costs.iter().map(|(tasks, cost)| {
            let (low, high) = cost.range;
            let note = format!("windows from {low:.1} to {high:.1}, {} yields; two boots, the same digits", cost.yields);
            row(format!("yield:{tasks}"), "instructions_per_yield", cost.instructions, Some(note))
        });
        let fitted = self.fit().into_iter().flat_map(|fit| {
            [("instructions_per_yield_base", fit.base), ("instructions_per_yield_per_doubling", fit.per_doubling)].map(|(metric, value)| {
                row("yield:*".to_string(), metric, value, Some("fitted: base + per_doubling * log2 tasks".to_string()))
            })
        });
        each.chain(fitted).collect()
    }
}

fn text(cases: &[Case]) -> String {
    let mut columns = vec![("tasks".to_string(), Align::Right)];
    columns.extend(cases.iter().map(|case| {
        let kernel = &case.guest.kernel;
        let class = if case.class == Class::Other { kernel.fair_scheduler().to_string() } else { case.class.to_string() };
        (format!("{class} in {}", kernel.name), Align::Right)
    }));
    let mut table = Table::new(columns);
    for (index, (tasks, _)) in cases.first().map_or(&[][..], |case| &case.costs).iter().enumerate() {
        let cost = |case: &Case| case.costs.get(index).map_or("-".to_string(), |(_, cost)| format!("{:.1}", cost.instructions));
        table.row(std::iter::once(tasks.to_string()).chain(cases.iter().map(cost)));
    }
    let mut text = format!("Instructions per yield, one virtual CPU, each kernel booted twice: the same digits\n\n{table}\n");
    for case in cases {
        let name = format!("{} ({}, {})", case.guest.kernel.name, case.guest.kernel.release, case.class);
        if let Some(fit) = case.fit() {
            let _ = writeln!(text, "{name}: {:.0} + {:.1} * log2 N", fit.base, fit.per_doubling);
        }
    }
    for case in cases {
        let _ = writeln!(text, "{}", case.identity);
    }
    text
}
