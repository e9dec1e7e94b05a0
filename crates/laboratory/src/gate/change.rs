//! The changes between two compared variants.

use super::OTHER_SEEDS;
use results::Point;
use schedsim::policy::PolicySpec;
use schedsim::workload::{Affinity, Workload};
use schedsim::{CpuId, CpuSet, Machine, Nanos, Time};
use std::fmt;
use worlds::Program;
use worlds::experiment::parse_policy;
use worlds::load::{Changed, Closed, Replay};

/// A change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// Other seeds for the nudges.
    Seeds,
    /// CPU numbers in reverse order.
    CpuNumbers,
    /// All costs of the machine are higher by this many per mille.
    Costs(i32),
    /// The slice is longer by this.
    Longer(Nanos),
    /// The slice is longer by this factor.
    Times(u32),
    /// The machine has half the CPUs.
    HalfTheCpus,
    /// No running task is preempted by an equal one.
    Starving,
}

/// The expected effect of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No difference.
    Null,
    /// A difference that grows with the change.
    Growing,
    /// A difference that can be found.
    Known,
}

/// A workload under a policy, changed or not.
#[derive(Clone, Debug)]
pub struct Variant {
    pub program: Program,
    pub policy: PolicySpec,
    pub cpus: u16,
    /// The offset of its seeds.
    pub seeds: u64,
}

/// The policy under which tasks starve.
const STARVING: &str = "fifo";
/// The options that set the length of a slice; the first that a policy has is used.
const SLICES: [&str; 3] = ["slice", "latency", "quantum"];

impl Change {
    /// The changes without effect.
    pub fn null() -> Vec<Change> {
        vec![
            Change::Seeds,
            Change::CpuNumbers,
            Change::Costs(5),
            Change::Costs(-5),
            Change::Longer(Nanos::from_micros(1)),
        ]
    }

    /// All changes.
    pub fn all() -> Vec<Change> {
        let longer = [2, 5, 10, 20, 50, 100, 200, 500]
            .map(|length| Change::Longer(Nanos::from_micros(length)));
        let known = [Change::Times(2), Change::Times(4), Change::HalfTheCpus, Change::Starving];
        Change::null().into_iter().chain(longer).chain(known).collect()
    }

    /// The expected effect.
    pub fn kind(self) -> Kind {
        match self {
            Change::Seeds
            | Change::CpuNumbers
            | Change::Costs(_)
            | Change::Longer(Nanos(..=1_000)) => Kind::Null,
            Change::Longer(_) | Change::Times(..=3) => Kind::Growing,
            Change::Times(_) | Change::HalfTheCpus | Change::Starving => Kind::Known,
        }
    }

    /// `variant` with this change; none if it does not apply, for example to a policy without a
    /// slice.
    pub fn of(self, variant: &Variant) -> Option<Variant> {
        let same = variant.clone();
        Some(match self {
            Change::Seeds => Variant { seeds: OTHER_SEEDS, ..same },
            Change::CpuNumbers => Variant { program: altered(&same.program, reversed)?, ..same },
            Change::Costs(per_mille) => {
                let altered = altered(&same.program, |workload, machine| {
                    Some((workload.clone(), costlier(machine, per_mille)))
                });
                Variant { program: altered?, ..same }
            }
            Change::Longer(by) => Variant {
                policy: with_slice(&same.policy, |slice| slice.saturating_add(by))?,
                ..same
            },
            Change::Times(times) => Variant {
                policy: with_slice(&same.policy, |slice| Nanos(slice.0 * u64::from(times)))?,
                ..same
            },
            Change::HalfTheCpus => Variant {
                cpus: (same.cpus > 1 && is_flat(&same.program)).then_some(same.cpus / 2)?,
                ..same
            },
            Change::Starving => {
                let policy = parse_policy(STARVING).ok().filter(|policy| *policy != same.policy)?;
                Variant { policy, ..same }
            }
        })
    }
}

/// `program` with other scripts or another machine.
fn altered(
    program: &Program,
    alter: impl Fn(&Workload, &Machine) -> Option<(Workload, Machine)>,
) -> Option<Program> {
    let of_closed = |closed: &Closed| {
        let (scripts, machine) = alter(&closed.scripts, &closed.machine)?;
        Some(Box::new(Closed { scripts, machine, ..closed.clone() }))
    };
    Some(match program {
        Program::Replay(replay) => {
            let recorded = &replay.recorded;
            let until = replay.changed.as_ref().map_or(Time::NEVER, |changed| changed.until);
            let (workload, machine) = match &replay.changed {
                Some(Changed { workload, machine, .. }) => alter(workload, machine),
                None => alter(&recorded.workload, &recorded.machine),
            }?;
            let changed = Some(Changed {
                workload,
                machine,
                until,
                point: Point::new(),
                told: String::new(),
            });
            Program::Replay(Box::new(Replay { changed, ..(**replay).clone() }))
        }
        Program::Closed(closed) => Program::Closed(of_closed(closed)?),
        Program::Yields(tasks, closed) => Program::Yields(*tasks, of_closed(closed)?),
        Program::Open(_) | Program::Command(_) => return None,
    })
}

/// The workload and machine with CPU numbers in reverse order; none if the CPUs differ or there is
/// only one.
fn reversed(workload: &Workload, machine: &Machine) -> Option<(Workload, Machine)> {
    let cpus = machine.cpus;
    if cpus < 2 || machine.topology.is_some() || machine.ticks.is_some() {
        return None;
    }
    let other = |cpu: CpuId| CpuId(cpus - 1 - cpu.0 % cpus);
    let mut workload = workload.clone();
    for task in &mut workload.tasks {
        task.cpu = other(task.cpu);
        if let Affinity::Pinned(cpu) = &mut task.affinity {
            *cpu = other(*cpu);
        }
    }
    for set in &mut workload.cpu_sets {
        let mut reversed = CpuSet::empty(cpus);
        set.iter().filter(|cpu| cpu.0 < cpus).for_each(|cpu| reversed.insert(other(cpu)));
        *set = reversed;
    }
    Some((workload, machine.clone()))
}

fn costlier(machine: &Machine, per_mille: i32) -> Machine {
    let of = |cost: Nanos| {
        Nanos((cost.0 as f64 * (1.0 + f64::from(per_mille) / 1_000.0)).round() as u64)
    };
    Machine {
        switch_cost: of(machine.switch_cost),
        migration_cost: of(machine.migration_cost),
        idle_exit: of(machine.idle_exit),
        wake_cost: of(machine.wake_cost),
        latency: machine.latency.clone().each(of),
        ..machine.clone()
    }
}

/// `policy` with another slice; none if it has none.
fn with_slice(policy: &PolicySpec, of: impl Fn(Nanos) -> Nanos) -> Option<PolicySpec> {
    let (name, slice) = SLICES.iter().find_map(|name| Some((*name, policy.duration(name)?)))?;
    let text = policy.to_string();
    let (front, options) = text.split_once('?').unwrap_or((&text, ""));
    let others = options
        .split('&')
        .filter(|option| !option.is_empty() && option.split('=').next() != Some(name));
    let options: Vec<String> =
        others.map(str::to_string).chain([format!("{name}={}ns", of(slice).0)]).collect();
    parse_policy(&format!("{front}?{}", options.join("&"))).ok()
}

fn is_flat(program: &Program) -> bool {
    program.subject("").is_some_and(|subject| {
        subject.machine.topology.is_none() && subject.machine.ticks.is_none()
    })
}

/// The name in the committed results.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Seeds => write!(f, "other seeds"),
            Change::CpuNumbers => write!(f, "CPU numbers reversed"),
            Change::Costs(per_mille) => write!(f, "costs {:+.1} %", f64::from(*per_mille) / 10.0),
            Change::Longer(by) => write!(f, "slice +{} us", by.0 / 1_000),
            Change::Times(times) => write!(f, "slice x {times}"),
            Change::HalfTheCpus => write!(f, "half the CPUs"),
            Change::Starving => write!(f, "under {STARVING}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_lengthened_wherever_it_stands() {
        let longer = |text: &str| {
            let policy = parse_policy(text).expect("a policy");
            with_slice(&policy, |slice| Nanos(slice.0 + 1_000)).map(|policy| policy.to_string())
        };
        assert_eq!(longer("eevdf").as_deref(), Some("eevdf?slice=701000ns"));
        assert_eq!(
            longer("eevdf?slice=3ms&tick=1ms").as_deref(),
            Some("eevdf?tick=1ms&slice=3001000ns")
        );
        assert_eq!(longer("take:rr?quantum=1ms").as_deref(), Some("take:rr?quantum=1001000ns"));
        assert_eq!(longer("cfs").as_deref(), Some("cfs?latency=6001000ns"));
        assert_eq!(longer("fifo"), None);
    }

    #[test]
    fn each_change_has_a_unique_name_and_a_kind() {
        let all = Change::all();
        let mut names: Vec<String> = all.iter().map(Change::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert!(Change::null().into_iter().all(|change| change.kind() == Kind::Null));
        assert_eq!(
            all.iter().filter(|change| change.kind() == Kind::Null).count(),
            Change::null().len()
        );
    }
}
