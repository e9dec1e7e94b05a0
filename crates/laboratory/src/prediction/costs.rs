//! The costs of a real kernel, by call: measured before anything is predicted for it.
//!
//! Small workloads run there, each twice, the second time with twice as many rounds. The difference
//! of the two makespans is the time of the additional rounds alone: what begins and ends a run is
//! in both. A task that calls alone shows what a call takes that neither blocks nor wakes. Two that
//! pass the CPU to each other show blocking, waking and the switch.

mod probe;

use super::{Ground, Sides, Test, runs};
use formats::workload::ClosedWorkload;
use indicatif::ProgressBar;
use probe::{APART, CHILD, Kind, PAIRS, Probe, ROUNDS, SLEEP, Slope, WORK};
use program::Error;
use results::{Metric, Row, SubjectKind, World as Name};
use schedsim::workload::{Phase, Tasks};
use schedsim::{CallCosts, Machine, Nanos, Spread, Ticks, Time};
use std::collections::BTreeMap;
use worlds::load::Closed;
use worlds::{Candidate, Observed, Program, Trial, World};

/// What a kernel's work takes on one of its machines. All durations are means, in time of that
/// machine.
#[derive(Clone, PartialEq, Debug)]
pub struct KernelCosts {
    cpus: u16,
    /// A call that neither blocks nor wakes, by kind.
    calls: [Nanos; Kind::ALL.len()],
    /// From one task to another.
    switch: Nanos,
    /// Blocking, and being woken by another task, together.
    block_and_wake: Nanos,
    /// Of exiting, the part after those who wait are woken.
    exit: Nanos,
    /// The interrupt of a timer that wakes a task while another one runs.
    timer: Nanos,
    /// From the interrupt of a timer to the task, on a CPU that idles.
    wake: Nanos,
    /// From a waking to the task, on another CPU, which idles; absent with one CPU.
    idle_exit: Option<Nanos>,
    /// The time between two ticks.
    tick: Nanos,
    /// The interrupt of a tick.
    tick_cost: Nanos,
}

/// The costs of all kernels that predictions are made for, by where tasks run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Costs(BTreeMap<String, KernelCosts>);

/// The names of what is no call.
const SWITCH: &str = "switch";
const BLOCK_AND_WAKE: &str = "block and wake";
const EXIT: &str = "exit";
const TIMER: &str = "timer";
const WAKE: &str = "wake of an idle CPU";
const WAKE_ACROSS: &str = "wake across CPUs";
const TICK: &str = "tick";

/// A time that may have come out below zero.
fn nanos(time: f64) -> Nanos {
    Nanos(time.max(0.0).round() as u64)
}

impl Costs {
    /// Those of the kernels of `world`, with a tick each `tick`, as [`Costs::rows`] wrote them.
    ///
    /// # Errors
    /// If there are none, or one lacks.
    pub fn read(rows: &[Row], world: &Name, tick: Nanos) -> Result<Costs, String> {
        let mut times: BTreeMap<String, (u16, BTreeMap<&str, Nanos>)> = BTreeMap::new();
        let is_one = |row: &&Row| row.metric == Metric::kernel_cost_ns && row.world == *world;
        for row in rows.iter().filter(is_one) {
            let own = times.entry(row.candidate.clone()).or_default();
            own.0 = row.cpus;
            if let (Some(name), Some(value)) = (&row.subject, row.value) {
                own.1.insert(name, nanos(value));
            }
        }
        if times.is_empty() {
            return Err(format!(
                "there is no kernel_cost_ns of {world}: give the results of `schedlab predict --on \
                 vm` with the same kernel"
            ));
        }
        let of = |(ground, (cpus, times)): (String, (u16, BTreeMap<&str, Nanos>))| {
            let costs = KernelCosts::of_named((cpus, tick), &times)
                .ok_or_else(|| format!("one of the kernel_cost_ns of {ground} is missing"))?;
            Ok((ground, costs))
        };
        times.into_iter().map(of).collect::<Result<_, String>>().map(Costs)
    }

    /// Measures what `test` needs and these are without, on the real kernels of `sides`, which must
    /// be ready and have a tick each `tick`.
    ///
    /// # Errors
    /// If a run fails.
    pub fn measure(
        self,
        test: &Test,
        sides: &mut Sides<'_>,
        tick: Nanos,
        progress: &ProgressBar,
    ) -> Result<Costs, Error> {
        let mut costs = self.0;
        for kernel in test.kernels() {
            let own = test.changes.iter().filter(|change| change.kernel() == kernel);
            let grounds: BTreeMap<String, Ground> = own
                .map(|change| change.ground(test.cpus))
                .map(|ground| (ground.to_string(), ground))
                .filter(|(name, _)| !costs.contains_key(name))
                .collect();
            if grounds.is_empty() {
                continue;
            }
            let asked: Vec<(Candidate<'_>, u16)> =
                grounds.values().map(|ground| (ground.candidate.clone(), ground.cpus)).collect();
            let found = KernelCosts::measure(sides.world(kernel)?, &asked, tick, progress)?;
            costs.extend(grounds.into_keys().zip(found));
        }
        Ok(Costs(costs))
    }

    /// The workload of `program` with the costs of this ground, on the machine that has them.
    ///
    /// # Errors
    /// If they were not measured, or it does not fit the machine.
    pub fn charge(&self, program: &Program, ground: &Ground) -> Result<Program, Error> {
        match (self.0.get(&ground.to_string()), program.closed()) {
            (Some(costs), Some(workload)) => costs.charge(workload),
            _ => Err(Error::Internal(format!("no costs were measured of {ground}"))),
        }
    }

    /// A row for each, of the kernels of `world`.
    pub fn rows(&self, world: &Name) -> Vec<Row> {
        let of = |(ground, costs): (&String, &KernelCosts)| {
            let row = |(name, time): (&str, Option<Nanos>)| {
                let row = Row {
                    candidate: ground.clone(),
                    cpus: costs.cpus,
                    value: Some(time?.0 as f64),
                    runs: 2,
                    ..Row::new(world.clone(), Metric::kernel_cost_ns)
                };
                Some(row.of(SubjectKind::Function, name))
            };
            costs.named().into_iter().filter_map(row).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Where they were measured, and what they are.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &KernelCosts)> {
        self.0.iter().map(|(ground, costs)| (ground.as_str(), costs))
    }
}

impl KernelCosts {
    /// Measures the kernel of `world`, which must be ready, with the probes' tasks under each of
    /// these candidates on as many CPUs.
    ///
    /// # Errors
    /// If a run fails.
    pub fn measure(
        world: &mut dyn World,
        grounds: &[(Candidate<'_>, u16)],
        tick: Nanos,
        progress: &ProgressBar,
    ) -> Result<Vec<KernelCosts>, Error> {
        let probes: Vec<Vec<Probe>> = grounds.iter().map(|(_, cpus)| Probe::all(*cpus)).collect();
        let programs = probes.iter().zip(grounds).flat_map(|(probes, (_, cpus))| {
            probes.iter().flat_map(|probe| [1, 2].map(|times| probe.program(times * ROUNDS, *cpus)))
        });
        let programs = programs.collect::<Result<Vec<Program>, Error>>()?;
        let under = probes.iter().zip(grounds);
        let under = under.flat_map(|(probes, ground)| vec![ground; 2 * probes.len()]);
        let trials: Vec<Trial<'_>> = programs
            .iter()
            .zip(under)
            .map(|(program, (candidate, cpus))| Trial {
                program,
                candidate: candidate.clone(),
                cpus: *cpus,
            })
            .collect();
        let runs = runs(world, &trials, &[None], Observed::Measured, progress)?;
        let mut slopes = runs.chunks(2).map(Slope::of);
        let of = |(probes, (_, cpus)): (&Vec<Probe>, &(Candidate<'_>, u16))| {
            let own = slopes.by_ref().take(probes.len()).collect::<Result<Vec<Slope>, Error>>()?;
            let slope = |probe: Probe| {
                probes.iter().zip(&own).find(|(of, _)| **of == probe).map(|(_, slope)| *slope)
            };
            KernelCosts::of((*cpus, tick), &slope)
                .ok_or_else(|| Error::Internal("a probe of a kernel's costs did not run".into()))
        };
        probes.iter().zip(grounds).map(of).collect()
    }

    /// Of what a round takes, by probe; ticks have their share of what runs. Each cost is what is
    /// left when those before it are taken off.
    fn of(
        (cpus, tick): (u16, Nanos),
        slope: &dyn Fn(Probe) -> Option<Slope>,
    ) -> Option<KernelCosts> {
        let own = WORK.0 as f64 / slope(Probe::Work)?.time;
        let sleeper = slope(Probe::Alone(Kind::Sleep))?;
        let slope = |probe| slope(probe).map(|slope| Slope { time: slope.time * own, ..slope });
        let alone = |kind: Kind| Some(slope(Probe::Alone(kind))?.time / kind.round().1);
        let [yields, pipe, counter] = [Kind::Yield, Kind::Pipe, Kind::Counter].map(alone);
        let (yields, pipe, counter) = (yields?, pipe?, counter?);
        let two = slope(Probe::Yields)?;
        let switch = (two.time - 2.0 * yields).max(0.0) / two.switches.max(1.0);
        let talk = slope(Probe::Talk)?.time / f64::from(2 * PAIRS);
        let block_and_wake = (talk - 2.0 * pipe - switch).max(0.0);
        let wake = sleeper.wakeup.unwrap_or(0.0);
        let sleep = (sleeper.time - SLEEP.0 as f64 - wake - switch).max(0.0);
        let beside = slope(Probe::Beside)?;
        let timer = beside.time - sleep - block_and_wake / 2.0 - beside.switches * switch;
        // Reading and blocking go beside the other's work.
        let across = slope(Probe::TalkAcross)
            .map(|across| across.time / 2.0 - APART.0 as f64 - pipe - switch);
        let fork = slope(Probe::Alone(Kind::Fork))?;
        let exit = (fork.wakeup.unwrap_or(0.0) - block_and_wake / 2.0).max(0.0);
        let mut calls = [Nanos::ZERO; Kind::ALL.len()];
        for kind in Kind::ALL {
            let time = alone(kind)?;
            calls[kind as usize] = nanos(match kind {
                Kind::Set => time - 2.0 * counter,
                Kind::Condition => time - (block_and_wake + switch) / 2.0,
                Kind::Fork | Kind::Process => {
                    let switches = slope(Probe::Alone(kind))?.switches;
                    time - CHILD.0 as f64 - switches * switch - block_and_wake - exit
                }
                Kind::Sleep => sleep,
                _ => time,
            });
        }
        Some(KernelCosts {
            cpus,
            calls,
            switch: nanos(switch),
            block_and_wake: nanos(block_and_wake),
            exit: nanos(exit),
            timer: nanos(timer),
            wake: nanos(wake),
            idle_exit: across.map(nanos),
            tick,
            tick_cost: nanos((1.0 - own) * tick.0 as f64),
        })
    }

    /// Of what [`KernelCosts::named`] gives; `None` if one is missing.
    fn of_named((cpus, tick): (u16, Nanos), times: &BTreeMap<&str, Nanos>) -> Option<KernelCosts> {
        let time = |name: &str| times.get(name).copied();
        let calls: Option<Vec<Nanos>> = Kind::ALL.iter().map(|kind| time(kind.name())).collect();
        Some(KernelCosts {
            cpus,
            calls: calls?.try_into().ok()?,
            switch: time(SWITCH)?,
            block_and_wake: time(BLOCK_AND_WAKE)?,
            exit: time(EXIT)?,
            timer: time(TIMER)?,
            wake: time(WAKE)?,
            idle_exit: if cpus > 1 { Some(time(WAKE_ACROSS)?) } else { None },
            tick,
            tick_cost: time(TICK)?,
        })
    }

    /// All of them, with names; absent where there is none.
    pub fn named(&self) -> Vec<(&'static str, Option<Nanos>)> {
        let calls = Kind::ALL.iter().zip(self.calls).map(|(kind, time)| (kind.name(), Some(time)));
        let rest = [
            (SWITCH, Some(self.switch)),
            (BLOCK_AND_WAKE, Some(self.block_and_wake)),
            (EXIT, Some(self.exit)),
            (TIMER, Some(self.timer)),
            (WAKE, Some(self.wake)),
            (WAKE_ACROSS, self.idle_exit),
            (TICK, Some(self.tick_cost)),
        ];
        calls.chain(rest).collect()
    }

    /// A call of this phase among these tasks, without blocking and waking.
    fn call(&self, phase: &Phase, tasks: &[Tasks]) -> Nanos {
        Kind::of(phase, tasks).map_or(Nanos::ZERO, |kind| self.calls[kind as usize])
    }

    /// The machine with these costs.
    pub fn machine(&self) -> Machine {
        let half = Spread::always(Nanos(self.block_and_wake.0 / 2));
        let calls = CallCosts {
            block: half.clone(),
            wake_here: half.clone(),
            wake_away: half,
            exit: Spread::always(self.exit),
            ..CallCosts::default()
        };
        Machine {
            switch_cost: self.switch,
            idle_exit: self.idle_exit.unwrap_or(Nanos::ZERO),
            wake_cost: self.wake,
            timer_cost: self.timer,
            calls,
            ticks: Some(Ticks {
                cost: self.tick_cost,
                ..Ticks::new(self.tick, Time(self.tick.0 / 2))
            }),
            ..Machine::ideal(self.cpus)
        }
    }

    /// The workload with these costs, on the machine that has them.
    ///
    /// # Errors
    /// If it does not fit the machine.
    pub fn charge(&self, workload: &ClosedWorkload) -> Result<Program, Error> {
        let tasks = &workload.description().tasks;
        let charged = workload.with_calls(|_, phase| self.call(phase, tasks));
        Closed::on(charged, self.machine()).map(Box::new).map(Program::Closed)
    }
}

#[cfg(test)]
pub(super) mod tests;
