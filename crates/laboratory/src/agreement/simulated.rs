//! Simulates a guest's run: on a machine with the guest's costs, and on one CPU with the guest's
//! background load.

use super::{Bursts, Pair};
use crate::results_directory::ResultsDirectory;
use formats::trace_file::{Header, Writer};
use formats::workload::ClosedWorkload;
use program::Error;
use results::{Metric, Row, SubjectKind, World};
use schedsim::metrics::Summary;
use schedsim::trace::Observer;
use schedsim::{Machine, Nanos, TaskId, Ticks, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use worlds::experiment::{Candidate, Subject, simulate};
use worlds::guest::{Booted, real};
use worlds::rows_of;
use worlds::vm::as_recorded::as_recorded;
use worlds::vm::background_load::SwitchCost;
use worlds::vm::closed::{JOBS, Traced, shares};
use worlds::vm::conformance::{Collector, Conformance, Turns};
use worlds::vm::timing::{ProgramCost, Timing};
use worlds::vm::{decisions, timing};

/// The simulation of one guest's run.
struct Simulation<'a> {
    booted: &'a Booted<'a>,
    workload: &'a ClosedWorkload,
    policy: Arc<dyn Candidate + Send + Sync>,
    /// The user-space task that takes the decisions, if there is one.
    decider: Option<String>,
}

/// A guest's run and its simulation. The dispatches go to `directory` as traces, for `schedlab diff
/// --order`.
///
/// # Errors
/// If the guest's reports cannot be read, or the simulation fails.
pub(super) fn beside(
    booted: &Booted<'_>,
    directory: Option<&ResultsDirectory>,
) -> Result<Pair, Error> {
    let name = booted.session.trial.program.name();
    let workload = booted
        .session
        .trial
        .program
        .closed()
        .ok_or_else(|| Error::Internal(format!("{name} has no tasks that run in a guest")))?;
    let policy = booted.driver.simulated(&booted.guest().kernel)?;
    Simulation { booted, workload, policy, decider: booted.driver.in_user_space() }.pair(directory)
}

impl Simulation<'_> {
    fn pair(&self, directory: Option<&ResultsDirectory>) -> Result<Pair, Error> {
        let booted = self.booted;
        let (trial, cpus) = (&booted.session.trial, booted.guest().cpus);
        let measured = booted.measured()?;
        let traced = measured.events()?;
        let switch = SwitchCost::of(&booted.proved.transcript, JOBS)?;
        let mut pair = Pair {
            workload: self.workload.name().to_string(),
            name: format!(
                "{} in {}",
                booted.driver.title(&booted.guest().kernel),
                booted.guest().kernel.name
            ),
            member: booted.session.member,
            real: real(booted, &measured, traced.as_ref())
                .iter()
                .map(|row| trial.stamp(row, None))
                .collect(),
            recorded: shares(&measured.tasks_traced),
            order: Vec::new(),
            policy: self.policy.to_string(),
            simulated: Vec::new(),
            machine: Machine::ideal(cpus),
            conformance: Vec::new(),
            judgement: None,
            tasks: Vec::new(),
        };
        let names: Vec<&str> = measured.tasks.iter().map(|task| task.name.as_str()).collect();
        let described = self.workload.scripts(cpus)?;
        let (Some(traced), Some(switch)) = (traced, switch) else {
            pair.machine.switch_cost = switch.map_or(Nanos::ZERO, |switch| switch.all);
            let run = self.simulate(
                Subject::of_closed(self.workload, &described, &pair.machine, None),
                &mut Collector::default(),
            )?;
            pair.simulated = self.numbers(&pair, &names, &run);
            return Ok(pair);
        };
        let decider = self.decider.as_deref();
        pair.tasks = traced.recording.tasks.iter().map(|task| task.name.clone()).collect();
        let timing = Timing::of(&traced, switch, decider);
        let machine = machine(&traced, &timing, switch, cpus, booted.driver.is_ours(), decider);
        let background = traced.background_load(&machine, switch, decider);
        let calls =
            timing.calls(self.workload.description(), &described, &measured.tasks_traced, &machine);
        let called = self.workload.with_calls(|tasks, _| {
            tasks.and_then(|tasks| calls.get(tasks)).copied().unwrap_or(Nanos::ZERO)
        });
        let scripts = background.around(called.scripts(cpus)?);
        let others: Vec<TaskId> = scripts.ids().skip(measured.tasks.len()).collect();
        let subject = Subject {
            beside: &others,
            ..Subject::of_closed(self.workload, &scripts, &machine, None)
        };
        let mut events = Collector::default();
        let summary = self.simulate(subject, &mut events)?;
        pair.simulated = self.numbers(&pair, &names, &summary);
        let until = |turns: Turns| turns.until(self.workload.until());
        let kernel_turns = until(traced.turns.clone());
        let turns =
            until(events.turns(|task| (task.index() < measured.tasks.len()).then_some(task.0)));
        // A recording does not distinguish a yield from a preemption.
        let yields = measured.tasks_traced.iter().any(|task| task.operations.contains_key("yield"));
        let is_wanted = cpus == 1 || directory.is_some();
        let replayed =
            if yields || !is_wanted { None } else { Some(until(self.replay(&traced, &machine)?)) };
        // A kernel's own scheduler does not restart with each job, and the tick times of several
        // CPUs are not known exactly.
        if booted.driver.is_sched_ext() && cpus == 1 {
            let program = booted.driver.program();
            let tasks = (&described, measured.tasks_traced.as_slice());
            let of: (&dyn Candidate, u64) = (&*self.policy, booted.session.seed);
            let until = self.workload.until();
            pair.judgement = Some(decisions::judge(
                &traced,
                tasks,
                &machine,
                of,
                (program.as_deref(), decider),
                (measured.witness.clone(), until),
            )?);
        }
        if cpus == 1 {
            pair.order = kernel_turns.order();
            pair.conformance
                .push((Bursts::Described, Conformance::of(&pair.order, &turns.order())));
            pair.conformance.extend(
                replayed
                    .iter()
                    .map(|turns| (Bursts::Recorded, Conformance::of(&pair.order, &turns.order()))),
            );
        }
        if let Some(directory) = directory {
            let (header, policy) =
                (subject.header(&*self.policy, cpus, booted.session.seed), &self.policy);
            let title = pair
                .member
                .map_or(pair.name.clone(), |member| format!("{}, member {member}", pair.name));
            let name = |what: String| Header {
                candidate: format!("{}: {what}", pair.workload),
                ..header.clone()
            };
            write_turns(directory, &name(title.clone()), &kernel_turns)?;
            write_turns(directory, &name(format!("{policy} beside {title}")), &turns)?;
            if let Some(turns) = &replayed {
                write_turns(directory, &name(format!("{policy} replaying {title}")), turns)?;
            }
        }
        pair.machine = machine;
        Ok(pair)
    }

    fn simulate(&self, subject: Subject<'_>, events: &mut Collector) -> Result<Summary, Error> {
        let session = self.booted.session;
        let run = simulate(
            subject,
            subject.machine,
            &*self.policy,
            (session.seed, None),
            session.check,
            Some(events),
        )?;
        match run.violations.first() {
            None => Ok(run.summary),
            Some(violation) => {
                Err(Error::Check(format!("{}: {}: {violation}", subject.name, self.policy)))
            }
        }
    }

    /// The dispatches of the workload's tasks if their bursts are those recorded.
    fn replay(&self, traced: &Traced, machine: &Machine) -> Result<Turns, Error> {
        let own = machine.switch_cost.saturating_sub(machine.unseen);
        let workload = &as_recorded(
            &traced.events,
            &traced.recording.tasks,
            machine.cpus,
            own,
            self.decider.as_deref(),
        );
        // Interruptions are part of the recorded bursts. The CPU time of a user-space scheduler
        // between two tasks is part of no burst.
        let ticks = machine.ticks.as_ref().map(|ticks| Ticks {
            cost: Nanos::ZERO,
            others: BTreeMap::new(),
            ..ticks.clone()
        });
        let machine = Machine {
            interruption: Nanos::ZERO,
            timer_cost: Nanos::ZERO,
            ticks,
            ..machine.clone()
        };
        let subject = Subject {
            name: "recorded",
            workload,
            machine: &machine,
            mips: None,
            ended: &[],
            until: Time::NEVER,
            beside: &[],
            parts: false,
        };
        let mut events = Collector::default();
        self.simulate(subject, &mut events)?;
        Ok(events.turns(|task| traced.numbers.get(task.index()).copied().flatten()))
    }

    /// The metrics of a simulation, and the CPU share of each task of `names`.
    fn numbers(&self, pair: &Pair, names: &[&str], summary: &Summary) -> Vec<Row> {
        let all = summary.sum(|task| task.cpu_time).0.max(1) as f64;
        let share = |(index, name): (usize, &&str)| {
            let task = summary.tasks.iter().find(|task| task.task.0 as usize == index);
            let share = task.map_or(0.0, |task| task.cpu_time.0 as f64 / all);
            Row { value: Some(share), ..Row::new(World::Sim, Metric::cpu_share) }
                .of(SubjectKind::Task, *name)
                .at("number", index)
        };
        let shares = names.iter().enumerate().map(share);
        rows_of(summary, &World::Sim)
            .into_iter()
            .chain(shares)
            .map(|row| pair.simulated_row(row))
            .collect()
    }
}

/// Writes dispatches as a trace.
fn write_turns(directory: &ResultsDirectory, header: &Header, turns: &Turns) -> Result<(), Error> {
    let mut writer = Writer::create(&directory.trace(&header.candidate, header.cpus)?, header)?;
    writer.events(&turns.events);
    writer.finish()
}

/// The simulated machine. It has the guest's costs; QEMU does not model caches, so migrations cost
/// nothing.
fn machine(
    traced: &Traced,
    timing: &Timing<'_>,
    switch: SwitchCost,
    cpus: u16,
    is_ours: bool,
    decider: Option<&str>,
) -> Machine {
    let costs = &traced.costs;
    // Tasks of a guest with several CPUs read the clock while they run, so interrupts are part of
    // their bursts.
    let (timer_cost, mut ticks) = match cpus {
        1 => (timing.timer, timing.ticks()),
        _ => (Nanos::ZERO, traced.ticks.clone()),
    };
    let costed = Machine {
        switch_cost: switch.all,
        idle_exit: costs.idle_exit(),
        timer_cost,
        ..Machine::ideal(cpus)
    };
    if !is_ours {
        return Machine { wake_cost: costs.wake_cost(), ..costed };
    }
    ticks.looks = traced.looks();
    let wake_cost = costs.waking_when_idle.value.unwrap_or(Nanos::ZERO);
    let program = decider
        .map(|name| timing::program(traced, name))
        .filter(|program| program.switch > Nanos::ZERO);
    let Some(ProgramCost { switch: between, interruption }) = program else {
        return Machine { ticks: Some(ticks), wake_cost, ..costed };
    };
    let interruption =
        if interruption > Nanos::ZERO { switch.own + interruption } else { Nanos::ZERO };
    if ticks.others.is_empty() && ticks.cost > interruption {
        ticks.cost -= interruption; // the measurement includes the program that it notifies
    }
    Machine {
        switch_cost: switch.own + between,
        unseen: between,
        interruption,
        ticks: Some(ticks),
        wake_cost,
        ..costed
    }
}
