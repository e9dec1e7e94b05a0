//! A stochastic model and its machine, from the definition in a workload file.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

use crate::workload::format::{
    After, Base, BurstsLaw, Class, Definition, Priorities, Saturation, Slows, Span, WarmUp,
};
use schedsim::admission::Real;
use schedsim::policy::{PolicyError, PolicySpec};
use schedsim::workload::{
    self, Bursts, Counts, Distribution, Histogram, Invalid, Model, RunLength, Unix1990,
};
use schedsim::{Machine, Nanos, Sharing, counted};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;

/// A stochastic workload with its machine.
#[derive(Clone, Debug)]
pub struct Stochastic {
    /// The name.
    pub name: String,
    /// The arriving tasks.
    pub model: Model,
    /// The machine.
    pub machine: Machine,
    /// The quantum of policies without one of their own.
    pub quantum: Option<Nanos>,
    /// The tasks before the measured ones. With MSER-5 the model has no warm-up.
    pub warm_up: WarmUp,
    /// How saturation is detected.
    pub saturation: Saturation,
    /// The load at which Central Queue saturates, if there is a closed form.
    pub central_saturation_load: Option<f64>,
    /// The given parameters, by their names in results.
    pub parameters: BTreeMap<String, String>,
}

/// Adds the key to an error.
fn at<T>(key: &str, result: Result<T, String>) -> Result<T, Invalid> {
    result.map_err(|message| Invalid { key: key.to_string(), message })
}

fn refuse<T>(key: &str, message: impl Into<String>) -> Result<T, Invalid> {
    at(key, Err(message.into()))
}

/// `value`, if it is in its range.
fn admit(key: &str, range: Real, value: f64) -> Result<f64, Invalid> {
    at(key, range.admit(value).map_err(|wrong| wrong.to_string()))
}

impl Stochastic {
    /// From what the file and its parameters define; the error has the key.
    pub(super) fn new(
        name: String,
        definition: &Definition,
        parameters: BTreeMap<String, String>,
    ) -> Result<Stochastic, Invalid> {
        let length = run_length(definition)?;
        let (model, machine, central_saturation_load) = match definition.base {
            Some(Base::Unix1990) => unix1990(definition, length)?,
            None => of_classes(&name, definition, length)?,
        };
        let load = model.offered_load(machine.cpus);
        if load >= 1.0 && definition.population_limit.is_none() {
            let key = if definition.load.is_some() { "load" } else { "arrivals" };
            return refuse(
                key,
                format!(
                    "a load of {load:.3} never reaches a steady state: give population-limit, the \
                     number of tasks at which the run ends"
                ),
            );
        }
        let quantum = definition
            .quantum
            .map(|Span(quantum)| quantum)
            .or(definition.base.map(|Base::Unix1990| Nanos::from_millis(100)));
        if quantum == Some(Nanos::ZERO) {
            return refuse("quantum", "a quantum must be above zero");
        }
        let warm_up = definition.warm_up.unwrap_or_else(|| {
            WarmUp::Tasks(model.settling(machine.cpus, machine.sharing.slowdown))
        });
        let model = match warm_up {
            WarmUp::Tasks(tasks) => model.with_length(RunLength { warm_up: tasks, ..length }),
            WarmUp::Mser5 => model,
        };
        let saturation = definition.saturation.unwrap_or(Saturation::Drift);
        Ok(Stochastic {
            name,
            model,
            machine,
            quantum,
            warm_up,
            saturation,
            central_saturation_load,
            parameters,
        })
    }

    /// `policy` with this workload's quantum, unless it has its own. Policies that are complete
    /// schedulers keep theirs.
    pub fn policy(&self, policy: &PolicySpec) -> Result<PolicySpec, PolicyError> {
        match self.quantum {
            Some(quantum) if policy.descriptor().is_topology() && !policy.sets("quantum") => {
                policy.with("quantum", &format!("{}ns", quantum.0))
            }
            _ => Ok(policy.clone()),
        }
    }

    /// Whether the policy cannot have a steady state here, by the closed form, if there is one.
    pub fn saturates(&self, policy: &(impl fmt::Display + ?Sized), migrates: bool) -> bool {
        let text = policy.to_string();
        let is_plain_central = text.starts_with("central:")
            && !text.contains("search=")
            && !text.contains("shortcut=");
        let slowdown = if migrates && self.machine.sharing.slows == schedsim::Slows::EveryBurst {
            self.machine.sharing.slowdown
        } else {
            0.0
        };
        let bearable = self
            .central_saturation_load
            .filter(|_| is_plain_central)
            .unwrap_or(1.0 / (1.0 + slowdown));
        self.model.offered_load(self.machine.cpus) >= bearable
    }
}

/// One line with what a reader of results must know.
impl fmt::Display for Stochastic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (machine, length) = (&self.machine, self.model.length());
        let load = self.model.offered_load(machine.cpus);
        write!(
            f,
            "{}: load {load:.3} on {}, {} tasks",
            self.name,
            counted(machine.cpus.into(), "CPU"),
            length.measured
        )?;
        match (self.warm_up, length.after) {
            (WarmUp::Mser5, _) => write!(f, " less a warm-up by MSER-5")?,
            (WarmUp::Tasks(0), workload::After::Drain) => write!(f, " from an empty system")?,
            (WarmUp::Tasks(tasks), _) => write!(f, " after {tasks}")?,
        }
        write!(f, "; TMC {}, SMC {}%", machine.migration_cost, 100.0 * machine.sharing.slowdown)?;
        self.quantum.map_or(Ok(()), |quantum| write!(f, ", quantum {quantum}"))
    }
}

fn run_length(definition: &Definition) -> Result<RunLength, Invalid> {
    let defaults = Unix1990::STEADY;
    let after = definition.after.map_or(defaults.after, |after| match after {
        After::Drain => workload::After::Drain,
        After::GoOn => workload::After::GoOn,
    });
    let length = RunLength {
        // The default, unless the definition sets it, follows from the model.
        warm_up: 0,
        measured: definition.tasks.unwrap_or(defaults.measured),
        after,
        population_limit: definition.population_limit.unwrap_or(defaults.population_limit),
    };
    if length.measured < 5000 && definition.warm_up == Some(WarmUp::Mser5) {
        return refuse(
            "warm-up",
            format!(
                "MSER-5 takes batches of five from at least 5000 tasks, not from {}",
                length.measured
            ),
        );
    }
    if length.measured < 4000 && definition.saturation == Some(Saturation::Drift) {
        return refuse(
            "saturation",
            format!("drift needs at least 4000 tasks, not {}", length.measured),
        );
    }
    Ok(length)
}

/// Applies the definition to `machine`, which has the defaults.
fn machine(definition: &Definition, mut machine: Machine) -> Result<Machine, Invalid> {
    let share = |key: &str, share: Option<f64>, default: f64| {
        admit(key, Real::SLOWDOWN, share.unwrap_or(default))
    };
    let span = |span: Option<Span>, default| span.map_or(default, |Span(span)| span);
    machine.switch_cost = span(definition.switch_cost, machine.switch_cost);
    machine.lock_hold = span(definition.lock_hold, machine.lock_hold);
    machine.lock_contention =
        share("lock-contention", definition.lock_contention, machine.lock_contention)?;
    machine.deciders = definition.deciders.and_then(NonZero::new).or(machine.deciders);
    machine.wake_cost = span(definition.wake_cost, machine.wake_cost);
    machine.idle_exit = span(definition.idle_exit, machine.idle_exit);
    machine.migration_cost = span(definition.tmc, machine.migration_cost);
    machine.sharing = Sharing {
        slowdown: share("smc", definition.smc, machine.sharing.slowdown)?,
        slows: definition.slows.map_or(machine.sharing.slows, |slows| match slows {
            Slows::EveryBurst => schedsim::Slows::EveryBurst,
            Slows::MigratedBursts => schedsim::Slows::MigratedBursts,
        }),
        refill_half_life: definition.refill_half_life.map(|Span(half_life)| half_life),
        bus: span(definition.bus, Nanos::ZERO),
        remote: share("remote", definition.remote, 0.0)?,
    };
    if machine.sharing.refill_half_life == Some(Nanos::ZERO) {
        return refuse("refill-half-life", "a half-life must be above zero");
    }
    Ok(machine)
}

fn speed(definition: &Definition) -> Result<f64, Invalid> {
    admit("speed", Real::SPEED, definition.speed.unwrap_or(1.0))
}

/// The bursts of unix1990: exponential, or a histogram.
fn burst_lengths(definition: &Definition) -> Result<Bursts, Invalid> {
    let given = [
        ("burst-tail", definition.burst_tail),
        ("burst-head", definition.burst_head),
        ("burst-scale", definition.burst_scale),
    ];
    let Some(Span(mean)) = definition.burst else {
        let [tail, head, scale] = given.map(|(_, value)| value);
        let usual = Histogram::default();
        return Ok(Bursts::Measured(Histogram {
            tail: tail.unwrap_or(usual.tail),
            head: head.unwrap_or(usual.head),
            scale: scale.unwrap_or(usual.scale),
        }));
    };
    match given.into_iter().find(|(_, value)| value.is_some()) {
        Some((key, _)) => refuse(
            key,
            "this shapes the histogram of bursts, and `burst` replaces it: leave one of them out",
        ),
        None => Ok(Bursts::Exponential(mean)),
    }
}

type Built = (Model, Machine, Option<f64>);

fn unix1990(definition: &Definition, length: RunLength) -> Result<Built, Invalid> {
    for (key, is_there) in
        [("class", !definition.class.is_empty()), ("arrivals", definition.arrivals.is_some())]
    {
        if is_there {
            return refuse(
                key,
                "a workload with a base has the classes and the arrivals of its base",
            );
        }
    }
    let defaults = Unix1990::default();
    let unix = Unix1990 {
        load: admit("load", Real::LOAD, definition.load.unwrap_or(defaults.load))?,
        cpus: definition.cpus.unwrap_or(defaults.cpus),
        speed: speed(definition)?,
        pause: definition.pause.map_or(defaults.pause, |Span(pause)| pause),
        bursts: admit("bursts", Real::BURSTS, definition.bursts.unwrap_or(defaults.bursts))?,
        pause_variation: definition.pause_variation.unwrap_or(defaults.pause_variation),
        counts: match definition.bursts_law {
            Some(BurstsLaw::Constant) => Counts::Constant,
            Some(BurstsLaw::Geometric) | None => Counts::Geometric,
        },
        burst: burst_lengths(definition)?,
        intensive: definition.intensive.unwrap_or(defaults.intensive),
        priorities: match definition.priorities {
            Some(Priorities::Four) => workload::Priorities::Four,
            _ => workload::Priorities::One,
        },
        length,
        ..defaults
    };
    let machine = machine(definition, unix.machine())?;
    let costs = Unix1990 { tmc: machine.migration_cost, smc: machine.sharing.slowdown, ..unix };
    Ok((unix.model()?, machine, Some(costs.central_saturation_load()?)))
}

fn of_classes(name: &str, definition: &Definition, length: RunLength) -> Result<Built, Invalid> {
    let of_the_base = [
        ("pause", definition.pause.is_some()),
        ("pause-variation", definition.pause_variation.is_some()),
        ("bursts", definition.bursts.is_some()),
        ("bursts-law", definition.bursts_law.is_some()),
        ("burst", definition.burst.is_some()),
        ("burst-tail", definition.burst_tail.is_some()),
        ("burst-head", definition.burst_head.is_some()),
        ("burst-scale", definition.burst_scale.is_some()),
        ("intensive", definition.intensive.is_some()),
        ("priorities", definition.priorities.is_some()),
    ];
    if let Some((key, _)) = of_the_base.into_iter().find(|&(_, is_there)| is_there) {
        return refuse(
            key,
            "this belongs to base = \"unix1990\"; in other workloads it belongs to a class",
        );
    }
    if definition.class.is_empty() {
        return refuse(
            "class",
            "there is nothing to run: give [[class]] tables, or base = \"unix1990\"",
        );
    }
    let Some(cpus) = definition.cpus else {
        return refuse("cpus", "the number of CPUs is missing");
    };
    let machine = machine(definition, Machine::ideal(cpus))?;
    let speed = speed(definition)?;
    let mut classes = Vec::with_capacity(definition.class.len());
    for (index, class) in definition.class.iter().enumerate() {
        classes.push(drawn_class(&format!("class[{index}]"), class, speed)?);
    }
    let shares = shares(&definition.class, &classes)?;
    classes.iter_mut().zip(shares).for_each(|(class, share)| class.share = share);
    classes.retain(|class| class.share > 0.0);
    let work: f64 = classes.iter().map(|class| class.share * class.cpu_time()).sum();
    let model = Model::new(name, arrivals(definition, work, cpus)?, classes, length)?;
    Ok((model, machine, None))
}

fn drawn_class(key: &str, class: &Class, speed: f64) -> Result<workload::Class, Invalid> {
    let burst = class.burst.build().and_then(|burst| burst.scaled(1.0 / speed));
    let bursts = at(&format!("{key}.bursts"), class.bursts.build())?;
    let most = Real { least: 0.0, ..Real::BURSTS };
    admit(&format!("{key}.bursts"), most, bursts.mean())?;
    let pause = match &class.pause {
        Some(pause) => pause.build(),
        None if bursts.mean() > 1.0 => {
            Err("tasks of several bursts need pauses between them".to_string())
        }
        None => Distribution::constant(1.0),
    };
    let (of, priorities) = match (class.priority, &class.priorities) {
        (Some(_), Some(_)) => {
            return refuse(&format!("{key}.priorities"), "give one priority or several, not both");
        }
        (priority, None) => ("priority", vec![(priority.unwrap_or(120), 1.0)]),
        (None, Some(priorities)) => (
            "priorities",
            priorities.iter().map(|priority| (priority.priority, priority.share)).collect(),
        ),
    };
    sum_to_one(&format!("{key}.{of}"), priorities.iter().map(|&(_, share)| share))?;
    Ok(workload::Class {
        name: class.name.clone().unwrap_or_else(|| key.to_string()),
        share: 0.0,
        intensive: class.intensive,
        priorities,
        bursts,
        burst: at(&format!("{key}.burst"), burst)?,
        pause: at(&format!("{key}.pause"), pause)?,
    })
}

/// The share of tasks of each class, given or derived from its share of the load.
fn shares(given: &[Class], classes: &[workload::Class]) -> Result<Vec<f64>, Invalid> {
    let by_load = given.iter().any(|class| class.load_share.is_some());
    let key =
        |index: usize| format!("class[{index}].{}", if by_load { "load-share" } else { "share" });
    let mut shares = Vec::with_capacity(given.len());
    for (index, class) in given.iter().enumerate() {
        let share = match (class.share, class.load_share) {
            (None, None) if given.len() == 1 => 1.0,
            (Some(share), None) if !by_load => share,
            (None, Some(share)) => share,
            (Some(_), _) => {
                return refuse(
                    &format!("class[{index}].share"),
                    "give shares of the tasks or shares of the load, not both",
                );
            }
            (None, None) => return refuse(&key(index), "the share is missing"),
        };
        if !(0.0..=1.0).contains(&share) {
            return refuse(&key(index), format!("a share is a number from 0 to 1, not {share}"));
        }
        shares.push(share);
    }
    sum_to_one(&key(given.len().saturating_sub(1)), shares.iter().copied())?;
    if by_load {
        shares.iter_mut().zip(classes).for_each(|(share, class)| *share /= class.cpu_time());
    }
    let sum: f64 = shares.iter().sum();
    Ok(shares.into_iter().map(|share| share / sum).collect())
}

fn sum_to_one(key: &str, shares: impl Iterator<Item = f64>) -> Result<(), Invalid> {
    let sum = shares.fold(0.0, |sum, share| sum + share);
    if (sum - 1.0).abs() <= 1e-6 {
        Ok(())
    } else {
        refuse(key, format!("the shares sum to {sum}, not to one"))
    }
}

/// The gaps between arrivals that produce the load, for `work` nanoseconds per task.
fn arrivals(definition: &Definition, work: f64, cpus: u16) -> Result<Distribution, Invalid> {
    let gaps = definition
        .arrivals
        .as_ref()
        .map(|arrivals| at("arrivals", arrivals.build()))
        .transpose()?;
    match (definition.load, gaps) {
        (Some(load), gaps) => {
            let load = admit("load", Real::LOAD, load)?;
            let mean = work / (load * f64::from(cpus));
            at(
                "load",
                gaps.map_or_else(
                    || Distribution::exponential(mean),
                    |gaps| gaps.scaled(mean / gaps.mean()),
                ),
            )
        }
        (None, Some(gaps)) => Ok(gaps),
        (None, None) => refuse("load", "give the load, or the time between arrivals"),
    }
}
