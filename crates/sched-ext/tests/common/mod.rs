//! A short simulation under any object, for the test of damaged ones and for the fuzzer.
#![allow(dead_code)]

use sched_ext::{Compiled, Limits, Loaded, Unfit};
use schedsim::engine::{self, Error, Options};

use schedsim::seat::{Breach, Rule};
use schedsim::trace::{TaskInfo, Trace};
use schedsim::workload::{Action, Affinity, Attributes, Start, TaskSpec, Workload};
use schedsim::{CpuId, CpuSet, Machine, MigrationCosts, Nanos, Place, TaskId, Time, Topology};

/// Long enough for every callback.
const UNTIL: Time = Time(12_000_000);
const CPUS: u16 = 3;

/// How a simulation went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Went {
    /// The bytes are no scheduler.
    Refused,
    /// The scheduler was ejected.
    Ejected,
    /// To its end.
    Well,
}

/// Simulates a workload under the scheduler in `bytes`.
pub fn simulate(bytes: &[u8], instructions: u64) -> Went {
    match run(bytes, instructions) {
        Err(_) => Went::Refused,
        Ok(Some(_)) => Went::Ejected,
        Ok(None) => Went::Well,
    }
}

/// As [`simulate`], with why the scheduler was ejected. Whatever it does, at worst it is ejected:
/// that the policy breaks the simulator's rules is an error of ours.
pub fn run(bytes: &[u8], instructions: u64) -> Result<Option<String>, Unfit> {
    let limits = Limits { instructions, memory: 1 << 22 };
    let loaded = Loaded::read_within(bytes, &[], limits)?;
    let policy = Compiled::new(loaded, CPUS);
    let machine = machine();
    let options = Options { seed: 1, until: UNTIL };
    match engine::simulate(&workload(), &machine, policy, options, Trace::new(Vec::new())) {
        Ok(_) => Ok(None),
        Err(Error::Policy(Breach { rule: Rule::GivesUp { message }, .. })) => Ok(Some(message)),
        Err(error) => panic!("{error}"),
    }
}

/// A core of two threads and one of one, in one cluster.
fn machine() -> Machine {
    let place = |core| Place { core, cluster: 0, node: 0, speed: 1.0 };
    let topology = Topology::new(
        vec![place(0), place(0), place(1)],
        Vec::new(),
        1.5,
        MigrationCosts::default(),
    );
    Machine { topology: Some(topology.expect("a topology")), ..Machine::ideal(CPUS) }
}

/// Tasks that sleep, wait for each other, yield, fork and need a CPU all the time.
fn workload() -> Workload {
    const MS: u64 = 1_000_000;
    let task = |start, affinity, steps: &[(u64, Action)]| TaskSpec {
        info: TaskInfo { name: "t".into(), pid: 0, tgid: 0, prio: 120 },
        attributes: Attributes::default(),
        affinity,
        cpu: CpuId(0),
        start,
        script: steps.iter().map(|&(run, then)| (Nanos(run), then)).collect(),
    };
    let begins = Start::At(Time::ZERO);
    let hog = [(30 * MS, Action::Exit)];
    let nap = (MS / 5, Action::Sleep(Nanos(MS / 3)));
    let yields = (MS / 10, Action::Yield);
    let tasks = vec![
        task(begins, Affinity::Any, &hog),
        task(begins, Affinity::Any, &hog),
        task(begins, Affinity::Pinned(CpuId(1)), &[nap, nap, yields, nap, (MS, Action::Exit)]),
        task(begins, Affinity::Set(0), &[nap, nap, nap, nap, yields, nap, (MS, Action::Exit)]),
        task(
            begins,
            Affinity::Any,
            &[nap, (MS, Action::Fork(TaskId(5))), (0, Action::Wake(TaskId(6))), (0, Action::Exit)],
        ),
        task(Start::Forked, Affinity::Any, &[yields, yields, nap, (MS, Action::Exit)]),
        task(Start::Asleep(Time(MS)), Affinity::Any, &[(MS, Action::Wait), (MS, Action::Exit)]),
    ];
    let set: CpuSet = [CpuId(0), CpuId(2)].into_iter().collect();
    Workload { tasks, cpu_sets: vec![set], ..Workload::default() }
}
