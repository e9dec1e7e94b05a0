//! Runs a workload once in the simulator, observed.

use super::{Candidate, Subject};
use program::Error;
use schedsim::checks::{Checks, Violation};
use schedsim::engine::{Options, Outcome};
use schedsim::metrics::{Metrics, Summary};
use schedsim::trace::{Observer, Trace, TraceHash};
use schedsim::workload::{Nudge, UntilEnded};
use schedsim::{Machine, Nanos, Time, counted};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its metrics.
    pub summary: Summary,
    /// Its end, its events, and whether another seed would change it.
    pub outcome: Outcome,
    /// The hash of its trace.
    pub hash: u64,
    /// What the checks found, if they were requested.
    pub violations: Vec<Violation>,
}

/// Runs `subject` on `machine` under `policy` with this seed, nudged if it is a member of an
/// ensemble; `observer` receives the events as well.
///
/// The metrics of a replay cover the time until the tasks that ended in the recording have ended
/// ([`UntilEnded`]), as those of the recording do.
pub fn simulate(
    subject: Subject<'_>,
    machine: &Machine,
    policy: &dyn Candidate,
    (seed, nudge): (u64, Option<Nudge>),
    check: bool,
    observer: Option<&mut dyn Observer>,
) -> Result<Run, Error> {
    let charged = subject.mips.map(|mips| match policy.cost(mips) {
        Some(cost) => Ok(Machine { queue_cost: Some(cost), ..machine.clone() }),
        None => Err(Error::Usage(format!(
            "there are no measured costs for the ready queues of {policy}: leave --mips out"
        ))),
    });
    let charged = charged.transpose()?;
    let machine = charged.as_ref().unwrap_or(machine);
    let nudged = nudge.map(|nudge| nudge.machine(machine));
    let machine = nudged.as_ref().unwrap_or(machine);
    let Subject { workload, ended, until: stop, beside, parts, .. } = subject;
    let tasks = workload.tasks.iter().map(|task| (task.info.prio, task.attributes.class));
    let mut metrics = Metrics::new(machine.cpus)
        .with_tasks(tasks)
        .with_reservations(workload.reservations.iter().copied());
    metrics = metrics.excluding(beside.iter().copied());
    if parts {
        metrics = metrics.with_parts();
    }
    let mut until = UntilEnded::new(ended, &mut metrics);
    let mut hash = TraceHash::new();
    let mut checks = check
        .then(|| Checks::new(workload, machine, policy.promises(machine.cpus)).with_nudge(nudge));
    let mut observers: Vec<&mut dyn Observer> = vec![&mut until, &mut hash];
    if let Some(checks) = &mut checks {
        observers.push(checks);
    }
    if let Some(observer) = observer {
        observers.push(observer);
    }
    let options = Options { seed, until: stop };
    let outcome = policy.run((workload, nudge).into(), machine, options, Trace::new(observers));
    let outcome = outcome.map_err(|error| {
        super::of_run(&error, &policy, &format!(" on {}", counted(machine.cpus.into(), "CPU")))
    })?;
    let violations = checks.map(|checks| checks.finish(&outcome)).unwrap_or_default();
    if until.end().is_none() && !ended.is_empty() && stop != Time::NEVER {
        let stop = Nanos(stop.0);
        return Err(Error::Input(format!(
            "under {policy} the tasks of {} have not ended when the added load does, after \
             {stop}: give it a longer `duration`",
            subject.name
        )));
    }
    let end = until.end().unwrap_or(outcome.end);
    Ok(Run { summary: metrics.finish(end), outcome, hash: hash.value(), violations })
}
