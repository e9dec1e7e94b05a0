//! `schedlab compare --on vm`: a workload in real kernels.
//!
//! Yields have a report of their own, in instructions; every other workload is reported by `vm/closed.rs`.

mod agreement;
mod closed;
mod in_charge;
mod yields;

use super::Compare;
use crate::output::{Point, World};
use crate::vm::{Guest, Identity, Kernel, Proved, Qemu, kernel, prove};
use crate::workload::{ClosedWorkload, Workload};
use crate::{Error, progress};
use clap::{Args, ValueEnum};
use in_charge::InCharge;
use indicatif::ProgressBar;
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, Session};
use schedsim::Nanos;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

/// Where a workload runs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Backend {
    /// In the simulator.
    Sim,
    /// In a real kernel under QEMU, with a clock that counts instructions.
    Vm,
    /// On this machine.
    Host,
}

/// In which kernels, and how.
#[derive(Args, Debug)]
pub struct VmArguments {
    /// Where the workload runs: simulated, in a real kernel, or on this machine; `sim,vm` holds the simulated scheduler against the real one, decision by decision and by what both come to
    #[arg(long, value_enum, value_delimiter = ',', default_value = "sim")]
    pub on: Vec<Backend>,
    /// Kernels for `--on vm`, separated by commas: series of Debian's, or paths of bzImages; `schedlab list kernels` shows them
    #[arg(long, value_name = "KERNEL", value_delimiter = ',', default_value = "6.18")]
    pub kernel: Vec<String>,
    /// How long a kernel is left alone after its boot, on its own clock, before it is measured; longer if a scheduler of ours is not in charge by then
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    settle: Nanos,
    /// On vm: split the instructions of yields by the kernel's functions, and show so many
    #[arg(long, value_name = "N")]
    functions: Option<usize>,
    /// On vm: cut the guest into so many NUMA nodes. Artificial: the kernel takes them for nodes, and no memory is slower
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=8))]
    numa_nodes: u16,
    /// On vm: run this workload as well, after the others, in the same boots; may be given several times
    #[arg(long, value_name = "WORKLOAD")]
    pub then: Vec<OsString>,
    /// On vm: the classes of a kernel's own share a boot, one after another: faster, and each finds the kernel as the one before has left it
    #[arg(long)]
    one_boot: bool,
    /// On vm: boot each kernel so many times, left alone 7 ms longer each time, so that what hangs on a microsecond comes out otherwise: means and ranges
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    boots: u64,
}

impl VmArguments {
    /// Whether a real kernel is asked for.
    pub fn is_on(&self) -> bool {
        self.on.contains(&Backend::Vm)
    }

    /// Refuses what is about boots where nothing is booted.
    pub fn expect_no_boot(&self) -> Result<(), Error> {
        match self.then.is_empty() && !self.one_boot && self.boots == 1 {
            true => Ok(()),
            false => Err(Error::Usage("--then, --one-boot and --boots are about guests: add --on vm, or leave them out".to_string())),
        }
    }
}

/// The guest's memory in MiB.
const MEMORY: u32 = 512;
/// A guest that takes longer on this machine's clock has gone astray.
const WALL_LIMIT: Duration = Duration::from_secs(900);

/// One boot is left alone by so much longer than the one before. Ticks come 4 ms apart, so that each finds another place between two of them.
const LONGER: Nanos = Nanos(7_000_000);

/// One kernel under one scheduler, with what it said.
struct Case {
    guest: Guest,
    identity: Identity,
    in_charge: InCharge,
    /// Which of its boots, from 1 on; `None` if it is the only one.
    boot: Option<u64>,
    proved: Arc<Proved>,
    /// Its first job, of those of its boot.
    first_job: usize,
}

impl Compare {
    pub(super) fn on_vm(&self) -> Result<(), Error> {
        let argument = self.workload.workload.to_string_lossy();
        match argument.strip_prefix("yield:").filter(|counts| !counts.contains('?') && self.vm.then.is_empty()) {
            Some(counts) if !self.vm.on.contains(&Backend::Sim) => self.yields_on_vm(counts),
            _ => {
                let names = std::iter::once(&self.workload.workload).chain(&self.vm.then);
                self.closed_on_vm(&names.map(|name| for_kernels(name)).collect::<Result<Vec<_>, _>>()?)
            }
        }
    }

    /// Boots each kernel under each scheduler twice, with the jobs that `jobs` makes.
    fn cases(&self, cpus: u16, needs: &[kernel::Need], jobs: impl Fn(Class) -> Vec<Job>) -> Result<Vec<Case>, Error> {
        let (schedulers, nodes) = (InCharge::all(&self.policy)?, self.vm.numa_nodes);
        if !cpus.is_multiple_of(nodes) {
            return Err(Error::Usage(format!("{cpus} CPUs cannot be cut into {nodes} NUMA nodes: give --cpus {}", 2 * nodes)));
        }
        let qemu = Qemu::find()?;
        let mut guests: Vec<Guest> = Vec::new();
        // Who schedules, in which of its boots, in which guest, from which job on.
        let mut of = Vec::new();
        for name in &self.vm.kernel {
            let kernel = Kernel::find(name, &|what| eprintln!("schedlab: {what}"))?;
            kernel.require(cpus, if nodes > 1 { &kernel::NUMA } else { &[] })?;
            kernel.require(cpus, needs)?;
            schedulers.iter().try_for_each(|in_charge| in_charge.require(&kernel, cpus))?;
            for boot in 0..self.vm.boots {
                let number = (self.vm.boots > 1).then_some(boot + 1);
                let settle_ms = (self.vm.settle.0 + boot * LONGER.0) / 1_000_000;
                let mut shared: Option<usize> = None;
                for in_charge in &schedulers {
                    let mut jobs = jobs(in_charge.class());
                    let may_share = self.vm.one_boot && !in_charge.is_ours();
                    if let Some(guest) = shared.filter(|_| may_share) {
                        let all = &mut guests[guest].session.jobs;
                        of.push((in_charge.clone(), number, guest, all.len()));
                        all.append(&mut jobs);
                        continue;
                    }
                    let session = Session { settle_ms, jobs, ..Session::default() };
                    let (qemu, kernel) = (qemu.clone(), kernel.clone());
                    let (memory, wall_limit) = (MEMORY, WALL_LIMIT);
                    let mut guest =
                        Guest { qemu, kernel, cpus, memory, nodes, session, files: Vec::new(), count_addresses: false, wall_limit };
                    in_charge.install(&mut guest)?;
                    shared = shared.or(may_share.then_some(guests.len()));
                    of.push((in_charge.clone(), number, guests.len(), 0));
                    guests.push(guest);
                }
            }
        }
        let proved: Vec<Arc<Proved>> = prove_with_progress(&guests)?.into_iter().map(Arc::new).collect();
        for (in_charge, _, guest, _) in &of {
            in_charge.judge(&proved[*guest].transcript)?;
        }
        let case = |(in_charge, boot, guest, first_job): (InCharge, Option<u64>, usize, usize)| {
            let (guest, proved) = (guests[guest].clone(), proved[guest].clone());
            Case { identity: Identity::of(&guest), guest, in_charge, boot, proved, first_job }
        };
        Ok(of.into_iter().map(case).collect())
    }

    /// The number of CPUs, if one is asked for.
    fn one_number_of_cpus(&self) -> Result<Option<u16>, Error> {
        match self.cpus[..] {
            [] => Ok(None),
            [cpus @ 1..=16] => Ok(Some(cpus)),
            [_] => Err(Error::Usage("a guest has from 1 to 16 CPUs".to_string())),
            _ => Err(Error::Usage("on vm give one number of CPUs at a time".to_string())),
        }
    }
}

/// A workload of tasks that are made by real calls.
fn for_kernels(argument: &OsStr) -> Result<ClosedWorkload, Error> {
    match Workload::resolve(argument)? {
        Workload::Closed(workload) => Ok(*workload),
        Workload::Recording(_) | Workload::Stochastic(_) => Err(Error::Usage(format!(
            "`{}` does not run in a real kernel, which takes tasks that go through phases: a file with [[task]]s, or one of those \
             that `schedlab list workloads` shows, as yield:8, hackbench:1 or periodic:4",
            argument.to_string_lossy()
        ))),
    }
}

impl Case {
    /// `EEVDF in 6.18`, `fifo:10 in 6.1`, `bpf:ruler in 6.18`.
    fn name(&self) -> String {
        format!("{} in {}", self.in_charge.title(&self.guest.kernel), self.guest.kernel.name)
    }

    /// Its name, and which boot it is if there are several.
    fn title(&self) -> String {
        with_boot(&self.name(), self.boot)
    }

    /// As coordinates of a result.
    fn point(&self) -> Point {
        let mut point = self.identity.point();
        if self.guest.nodes > 1 {
            point.set("numa_nodes", format!("{}, artificial", self.guest.nodes));
        }
        point.extend(self.boot.map(|boot| ("boot", boot)).into_iter().collect());
        point
    }

    fn world(&self) -> World {
        World::Vm { kernel: self.guest.kernel.name.clone() }
    }
}

/// A name, and which boot it is if there are several.
fn with_boot(name: &str, boot: Option<u64>) -> String {
    boot.map_or(name.to_string(), |boot| format!("{name}, boot {boot}"))
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
        Event::ServiceEnd { status, early: true, .. } => format!("has lost its scheduler ({status})"),
        Event::Tick { .. }
        | Event::Sample { .. }
        | Event::Trace { .. }
        | Event::TraceLost { .. }
        | Event::Symbols { .. }
        | Event::Usage { .. } => return,
        Event::Service { .. } | Event::ServiceEnd { .. } => return,
    };
    bar.set_message(format!("{kernel} {what}"));
    bar.inc(1);
}
