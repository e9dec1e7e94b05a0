//! A closed workload in real kernels, and in the simulator beside them.

use super::agreement::{Boot, Own, agreement};
use super::{Backend, Case, InCharge, with_boot};
use crate::Error;
use crate::cmd::compare::Compare;
use crate::experiment::{Subject, simulate};
use crate::output::{self, Align, Point, Results, Row, SubjectKind, Table, World, headline, quantity, registered};
use crate::results_directory::ResultsDirectory;
use crate::trace_file::{Header, Writer};
use crate::vm::as_recorded::as_recorded;
use crate::vm::closed::{JOBS, Measured, SwitchCost, Traced, jobs, shares, switching};
use crate::vm::conformance::{Collector, Conformance, Turns};
use crate::vm::timing::{self, ProgramCost, Timing};
use crate::vm::{decisions, kernel};
use crate::workload::ClosedWorkload;
use schedsim::live::Judgement;
use schedsim::metrics::{CATALOGUE, Metric, Summary};
use schedsim::policy::PolicySpec;
use schedsim::trace::Observer;
use schedsim::{Machine, Nanos, TaskId, Ticks, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What can be said of several virtual CPUs, which QEMU runs one after another.
const UNTIMED: [&str; 1] = ["migrations"];
const NO_TIME: &str = "with several virtual CPUs, which QEMU runs one after another, times are sums and mean nothing";

/// What a workload came to in one place.
pub(super) struct Outcome {
    pub policy: String,
    world: World,
    /// Without the boot.
    pub name: String,
    boot: Option<u64>,
    cpus: u16,
    point: Point,
    /// Without the kernel's recording, where that makes a difference.
    makespan: Option<Nanos>,
    pub shares: Vec<(String, f64)>,
    /// `None` if events were lost.
    summary: Option<Summary>,
    runs: u32,
    note: Option<String>,
    /// Of a simulation: whether the kernel chose the same.
    pub conformance: Vec<(Bursts, Conformance)>,
    /// Of a simulated policy: whether it would have decided as the kernel did, or the rule that it broke.
    pub judgement: Option<Result<Judgement, String>>,
}

/// What the tasks ran in a simulation that is held against the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bursts {
    /// What the workload says, and what calls cost there.
    Described,
    /// What they ran in the guest.
    Recorded,
}

impl Bursts {
    /// The metric, and what it is called in a table.
    pub fn names(self) -> (output::Metric, &'static str) {
        match self {
            Bursts::Described => (output::Metric::equal_dispatches, "the order of dispatches"),
            Bursts::Recorded => (output::Metric::equal_dispatches_recorded, "the order with bursts as recorded"),
        }
    }
}

impl Compare {
    /// All of `workloads`, one after another in each boot.
    pub(super) fn closed_on_vm(&self, workloads: &[ClosedWorkload]) -> Result<(), Error> {
        for ours in InCharge::all(&self.policy)?.iter().filter(|in_charge| in_charge.is_ours()) {
            workloads.iter().try_for_each(|workload| workload.expect_for_sched_ext(ours))?;
        }
        if self.output.is_some() && workloads.len() > 1 {
            return Err(Error::Usage("-o takes the traces of one workload: leave --then out".to_string()));
        }
        let cpus = self.one_number_of_cpus()?.unwrap_or(1);
        workloads.iter().try_for_each(|workload| workload.scripts(cpus).map(drop))?;
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let with_simulated = self.vm.on.contains(&Backend::Sim);
        let of_one = |workload: &ClosedWorkload, class| {
            let switching = with_simulated.then(|| switching(class));
            jobs(workload.name(), workload.description(), class).into_iter().chain(switching).collect::<Vec<_>>()
        };
        let each = JOBS + usize::from(with_simulated);
        let all = |class| workloads.iter().flat_map(|workload| of_one(workload, class)).collect();
        let has_groups = workloads.iter().any(|workload| !workload.description().cgroups.is_empty());
        let cases = self.cases(cpus, if has_groups { &kernel::CGROUPS } else { &[] }, all)?;
        let (mut rows, mut text) = (Vec::new(), String::new());
        for (index, workload) in workloads.iter().enumerate() {
            let (outcomes, own, agreements) = self.outcomes(workload, each * index, &cases, directory.as_ref())?;
            rows.extend(outcomes.iter().flat_map(|outcome| outcome.rows(workload.name())).chain(own));
            text += &(workload.headline() + &tables(&outcomes) + &agreements);
        }
        let results = Results::new(rows);
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            directory.finish()?;
        }
        results.print(self.common.format, || text)
    }

    /// What `workload`, whose jobs begin with number `job` of each case, came to, and how far the simulator agrees.
    fn outcomes(
        &self,
        workload: &ClosedWorkload,
        job: usize,
        cases: &[Case],
        directory: Option<&ResultsDirectory>,
    ) -> Result<(Vec<Outcome>, Vec<Row>, String), Error> {
        let (mut outcomes, mut rows, mut agreements) = (Vec::new(), Vec::new(), String::new());
        let mut names: Vec<String> = cases.iter().map(Case::name).collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        for name in names {
            let mut boots = Vec::new();
            for case in cases.iter().filter(|case| case.name() == name) {
                let measured = Measured::of(&case.proved.transcript, case.first_job + job)
                    .ok_or_else(|| Error::Internal(format!("kernel {} ended no job", case.guest.kernel.name)))?;
                let traced = if measured.lost == 0 { Some(measured.read()?) } else { None };
                if self.vm.on.contains(&Backend::Sim) {
                    boots.push(self.beside(case, job, workload, &measured, traced.as_ref(), directory)?);
                } else {
                    outcomes.push(Outcome::real(case, &measured, traced.as_ref()));
                }
            }
            if !boots.is_empty() {
                let own = Own::of(&boots);
                agreements += &agreement(&name, &boots, &own);
                rows.extend(own.iter().map(|own| Row { workload: workload.name().to_string(), ..own.row(&boots) }));
                outcomes.extend(boots.into_iter().flat_map(|boot| [boot.real, boot.simulated]));
            }
        }
        Ok((outcomes, rows, agreements))
    }

    /// The same simulated: on a machine with the guest's costs, and on one CPU with the surroundings that the tasks met there.
    fn beside(
        &self,
        case: &Case,
        job: usize,
        workload: &ClosedWorkload,
        measured: &Measured,
        traced: Option<&Traced>,
        directory: Option<&ResultsDirectory>,
    ) -> Result<Boot, Error> {
        let cpus = case.guest.cpus;
        let policy = case.in_charge.simulated(&case.guest.kernel)?;
        let real = Outcome::real(case, measured, traced);
        let names = measured.tasks.iter().map(|task| task.name.clone());
        let switch = SwitchCost::of(&case.proved.transcript, case.first_job + job + JOBS)?;
        let described = workload.scripts(cpus)?;
        let (Some(traced), Some(switch)) = (traced, switch) else {
            let machine = Machine { switch_cost: switch.map_or(Nanos::ZERO, |switch| switch.all), ..Machine::ideal(cpus) };
            let subject = Subject::of_closed(workload, &described, &machine, None);
            let run = simulate(subject, &machine, &policy, self.common.seed, self.check, None)?;
            let simulated = Outcome::simulated(&policy.to_string(), case, names, run.summary);
            return Ok(Boot { real, recorded: shares(&measured.tasks_traced), order: Vec::new(), simulated, machine });
        };
        let left_out = case.in_charge.in_user_space();
        let left_out = left_out.as_deref();
        let timing = Timing::of(traced, switch, left_out);
        let machine = machine(traced, &timing, switch, cpus, case.in_charge.is_ours(), left_out);
        let surroundings = traced.surroundings(&machine, switch, left_out);
        let calls = timing.calls(workload.description(), &described, &measured.tasks_traced, &machine);
        let scripts = surroundings.around(workload.with_calls(&calls).scripts(cpus)?);
        let others: Vec<TaskId> = scripts.ids().skip(measured.tasks.len()).collect();
        let subject = Subject { beside: &others, ..Subject::of_closed(workload, &scripts, &machine, None) };
        let mut events = Collector::default();
        let run = simulate(subject, &machine, &policy, self.common.seed, self.check, Some(&mut events))?;
        let mut simulated = Outcome::simulated(&policy.to_string(), case, names, run.summary);
        let until = |turns: Turns| turns.until(workload.until());
        let kernel_turns = until(traced.turns.clone());
        let order = if cpus == 1 { kernel_turns.order() } else { Vec::new() };
        let turns = until(events.turns(|task| (task.index() < measured.tasks.len()).then_some(task.0)));
        // A recording does not tell a yield from a preemption.
        let yields = measured.tasks_traced.iter().any(|task| task.operations.contains_key("yield"));
        let is_wanted = cpus == 1 || directory.is_some();
        let replayed = if yields || !is_wanted { None } else { Some(until(self.replay(traced, &machine, &policy, left_out)?)) };
        // A kernel's own scheduler does not begin anew with a job, and of several CPUs it is not known when exactly their ticks are.
        if case.in_charge.is_ours() && cpus == 1 {
            let program = case.in_charge.program();
            let who = (program.as_deref(), left_out);
            let tasks = (&described, measured.tasks_traced.as_slice());
            simulated.judgement = Some(decisions::judge(traced, tasks, &machine, (&policy, self.common.seed), who, workload.until()));
        }
        if cpus == 1 {
            simulated.conformance.push((Bursts::Described, Conformance::of(&order, &turns.order())));
            simulated.conformance.extend(replayed.iter().map(|turns| (Bursts::Recorded, Conformance::of(&order, &turns.order()))));
        }
        if let Some(directory) = directory {
            let header = subject.header(&policy, cpus, self.common.seed);
            write_turns(directory, &Header { policy: case.title(), ..header.clone() }, &kernel_turns)?;
            write_turns(directory, &Header { policy: format!("{policy} beside {}", case.title()), ..header.clone() }, &turns)?;
            if let Some(turns) = &replayed {
                write_turns(directory, &Header { policy: format!("{policy} replaying {}", case.title()), ..header }, turns)?;
            }
        }
        Ok(Boot { real, recorded: shares(&measured.tasks_traced), order, simulated, machine })
    }

    /// The turns of the workload's tasks if their bursts are as they were recorded.
    fn replay(&self, traced: &Traced, machine: &Machine, policy: &PolicySpec, left_out: Option<&str>) -> Result<Turns, Error> {
        let own = machine.switch_cost.saturating_sub(machine.unseen);
        let workload = &as_recorded(&traced.events, &traced.recording.tasks, machine.cpus, own, left_out);
        // Interruptions are part of the bursts in which they were; what a program in user space takes between two tasks is nobody's.
        let ticks = machine.ticks.as_ref().map(|ticks| Ticks { cost: Nanos::ZERO, others: BTreeMap::new(), ..ticks.clone() });
        let machine = Machine { interruption: Nanos::ZERO, timer_cost: Nanos::ZERO, ticks, ..machine.clone() };
        let subject = Subject { name: "recorded", workload, machine: &machine, mips: None, ended: &[], until: Time::NEVER, beside: &[] };
        let mut events = Collector::default();
        simulate(subject, &machine, policy, self.common.seed, self.check, Some(&mut events))?;
        Ok(events.turns(|task| traced.numbers.get(task.index()).copied().flatten()))
    }
}

/// Writes turns as a trace, for `schedlab diff --order`.
fn write_turns(directory: &ResultsDirectory, header: &Header, turns: &Turns) -> Result<(), Error> {
    let mut writer = Writer::create(&directory.trace(&header.policy, header.cpus)?, header)?;
    writer.events(&turns.events);
    writer.finish()
}

/// The simulated machine: its costs are those of the guest, whose caches QEMU leaves out, so that migrations cost nothing.
fn machine(traced: &Traced, timing: &Timing, switch: SwitchCost, cpus: u16, is_ours: bool, program: Option<&str>) -> Machine {
    let costs = &traced.costs;
    // Tasks of a guest with several CPUs look at the clock while they run, so that interrupts are part of what they were to run.
    let (timer_cost, mut ticks) = match cpus {
        1 => (timing.timer, timing.ticks()),
        _ => (Nanos::ZERO, traced.ticks.clone()),
    };
    let costed = Machine { switch_cost: switch.all, idle_exit: costs.idle_exit(), timer_cost, ..Machine::ideal(cpus) };
    if !is_ours {
        return Machine { wake_cost: costs.wake_cost(), ..costed };
    }
    ticks.looks = traced.looks();
    let wake_cost = costs.waking_when_idle.value.unwrap_or(Nanos::ZERO);
    let program = program.map(|name| timing::program(traced, name)).filter(|program| program.switch > Nanos::ZERO);
    let Some(ProgramCost { switch: between, interruption }) = program else {
        return Machine { ticks: Some(ticks), wake_cost, ..costed };
    };
    let interruption = if interruption > Nanos::ZERO { switch.own + interruption } else { Nanos::ZERO };
    if ticks.others.is_empty() && ticks.cost > interruption {
        ticks.cost -= interruption; // it was seen together with the program, which is told of it
    }
    Machine { switch_cost: switch.own + between, unseen: between, interruption, ticks: Some(ticks), wake_cost, ..costed }
}

impl Outcome {
    fn real(case: &Case, measured: &Measured, traced: Option<&Traced>) -> Outcome {
        let lost =
            (measured.lost > 0).then(|| format!("the guest's buffer had no room for {} events; give a shorter workload", measured.lost));
        Outcome {
            policy: case.in_charge.to_string(),
            world: case.world(),
            name: case.name(),
            boot: case.boot,
            cpus: case.guest.cpus,
            point: case.point(),
            makespan: Some(measured.makespan),
            shares: shares(&measured.tasks),
            summary: traced.map(|traced| traced.summary.clone()),
            runs: 2,
            note: lost,
            conformance: Vec::new(),
            judgement: None,
        }
    }

    /// The same simulated as in `case`.
    fn simulated(policy: &str, case: &Case, names: impl Iterator<Item = String>, summary: Summary) -> Outcome {
        let all = summary.sum(|task| task.cpu_time).0.max(1) as f64;
        let share = |index: usize| {
            let task = summary.tasks.iter().find(|task| task.task.0 as usize == index);
            task.map_or(0.0, |task| task.cpu_time.0 as f64 / all)
        };
        Outcome {
            policy: policy.to_string(),
            world: World::Sim,
            name: format!("{policy}, simulated"),
            boot: case.boot,
            cpus: case.guest.cpus,
            point: case.boot.map(|boot| ("boot", boot)).into_iter().collect(),
            makespan: None,
            shares: names.enumerate().map(|(index, name)| (name, share(index))).collect(),
            summary: Some(summary),
            runs: 1,
            note: None,
            conformance: Vec::new(),
            judgement: None,
        }
    }

    /// The value of a metric, and why there is none.
    pub fn value(&self, metric: &Metric) -> (Option<f64>, Option<String>) {
        if self.world != World::Sim && self.cpus > 1 && !UNTIMED.contains(&metric.id) {
            return (None, Some(NO_TIME.to_string()));
        }
        match (&self.summary, self.makespan.filter(|_| metric.id == "makespan_ns")) {
            (_, Some(makespan)) => (Some(makespan.0 as f64), None),
            (Some(summary), None) => {
                let value = metric.read(summary);
                (value.value, value.note.map(str::to_string))
            }
            (None, None) => (None, self.note.clone()),
        }
    }

    /// One of its results.
    pub fn row(&self, metric: output::Metric, value: Option<f64>, note: Option<String>) -> Row {
        Row {
            candidate: self.policy.clone(),
            cpus: self.cpus,
            point: self.point.clone(),
            value,
            runs: self.runs,
            note,
            ..Row::new(self.world.clone(), metric)
        }
    }

    fn rows(&self, workload: &str) -> Vec<Row> {
        let row = |metric, value, note| Row { workload: workload.to_string(), ..self.row(metric, value, note) };
        let of_kind = |metric, kind: &str, count: usize| row(metric, Some(count as f64), None).of(SubjectKind::Difference, kind);
        let metrics = CATALOGUE.iter().map(|metric| {
            let (value, note) = self.value(metric);
            row(registered(metric.id), value, note)
        });
        let shares = self.shares.iter().enumerate().map(|(number, (name, share))| {
            row(output::Metric::cpu_share, Some(*share), None).of(SubjectKind::Task, name).at("number", number)
        });
        let conformance = self.conformance.iter().flat_map(|(bursts, conformance)| {
            let note = Some(format!("{} turns in the kernel, {} simulated", conformance.real, conformance.simulated));
            let differences =
                conformance.differences.iter().map(|(class, count)| of_kind(output::Metric::dispatch_differences, class.name(), *count));
            let differences = differences.filter(|_| *bursts == Bursts::Described);
            std::iter::once(row(bursts.names().0, Some(conformance.share()), note)).chain(differences).collect::<Vec<_>>()
        });
        let judgement = self.judgement.iter().flat_map(|judgement| match judgement {
            Ok(judgement) => {
                let differences = judgement.differences().into_iter();
                let differences = differences.map(|(how, count)| of_kind(output::Metric::decision_differences, how.name(), count));
                let note = Some(format!("{} decisions", judgement.decisions));
                std::iter::once(row(output::Metric::equal_decisions, Some(judgement.share()), note)).chain(differences).collect()
            }
            Err(rule) => vec![row(output::Metric::equal_decisions, None, Some(rule.clone()))],
        });
        metrics.chain(shares).chain(judgement).chain(conformance).collect()
    }
}

/// Shares by name: the smallest and the largest of the tasks that have it, in all boots.
fn shares_by_name<'a>(boots: &[&'a Outcome]) -> BTreeMap<&'a str, (f64, f64)> {
    let mut ranges: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (name, share) in boots.iter().flat_map(|boot| &boot.shares) {
        let range = ranges.entry(name).or_insert((f64::INFINITY, 0.0));
        *range = (range.0.min(*share), range.1.max(*share));
    }
    ranges
}

fn tables(outcomes: &[Outcome]) -> String {
    let mut table = Table::new(std::iter::once(("", Align::Left)).chain(headline().map(|(_, title)| (title, Align::Right))));
    for outcome in outcomes {
        let cell = |(metric, _): (&Metric, _)| outcome.value(metric).0.map_or("-".to_string(), |value| quantity(value, metric.unit));
        table.row(std::iter::once(with_boot(&outcome.name, outcome.boot)).chain(headline().map(cell)));
    }
    let mut groups: Vec<Vec<&Outcome>> = Vec::new();
    for outcome in outcomes {
        match groups.iter_mut().find(|group| group[0].name == outcome.name) {
            Some(group) => group.push(outcome),
            None => groups.push(vec![outcome]),
        }
    }
    let columns = groups.iter().map(|group| (group[0].name.clone(), Align::Right));
    let mut shares = Table::new(std::iter::once(("share of CPU time".to_string(), Align::Left)).chain(columns));
    let by_name: Vec<_> = groups.iter().map(|group| shares_by_name(group)).collect();
    const NAMES: usize = 20;
    for name in by_name.first().into_iter().flat_map(BTreeMap::keys).take(NAMES) {
        let cell = |shares: &BTreeMap<&str, (f64, f64)>| match shares.get(name) {
            Some((low, high)) if high - low < 1e-4 => format!("{:.2}%", 100.0 * low),
            Some((low, high)) => format!("{:.2}…{:.2}%", 100.0 * low, 100.0 * high),
            None => "-".to_string(),
        };
        shares.row(std::iter::once(name.to_string()).chain(by_name.iter().map(cell)));
    }
    let mut text = format!("\n{table}\n{shares}\n");
    for note in outcomes.iter().filter_map(|outcome| outcome.note.as_ref()) {
        let _ = writeln!(text, "{note}");
    }
    if outcomes.iter().any(|outcome| outcome.world != World::Sim && outcome.cpus > 1) {
        let _ = writeln!(text, "Only shares and migrations are shown: {NO_TIME}.");
    }
    if let Some(nodes) = outcomes.iter().find_map(|outcome| outcome.point.get("numa_nodes")) {
        let _ = writeln!(text, "NUMA nodes: {nodes}: the kernel takes them for nodes, and no memory is slower.");
    }
    text
}
