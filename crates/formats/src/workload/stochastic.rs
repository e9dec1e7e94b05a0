//! Builds a model and a machine from a workload file and parameters.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

use super::format::{
    After, Base, BurstsLaw, Class, Definition, Priorities, Saturation, Slows, Span, WarmUp,
    stochastic_keys,
};
use crate::toml_file::{TomlFile, with_nearest};
use program::{Error, no_such};
use schedsim::admission::Real;
use schedsim::policy::{PolicyError, PolicySpec};
use schedsim::workload::{
    self, Bursts, Counts, Distribution, Histogram, Invalid, Model, RunLength, Unix1990,
};
use schedsim::{Machine, Nanos, Sharing};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use toml::Value;

/// A workload file whose parameters can still change.
#[derive(Clone, Debug)]
pub struct Template {
    file: TomlFile,
    name: String,
    table: toml::Table,
}

/// Values that replace those of the file, by key.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parameters(BTreeMap<String, Value>);

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

/// Keys that describe the kind of workload, not its amount: these are not parameters.
const NO_PARAMETERS: [&str; 4] = ["name", "description", "base", "class"];

impl Template {
    /// Reads the workload in `file`.
    ///
    /// # Errors
    /// If it is not TOML, or has unknown keys or invalid values.
    pub fn read(file: TomlFile) -> Result<Template, Error> {
        let definition: Definition = file.parse()?;
        let stem = file.name().rsplit('/').next().unwrap_or_default().trim_end_matches(".toml");
        let name = definition.name.unwrap_or_else(|| stem.to_string());
        Ok(Template { name, table: file.parse()?, file })
    }

    /// Reads `text`; `name` is its name in messages.
    pub fn parse(name: &str, text: &str) -> Result<Template, Error> {
        Template::read(TomlFile::of(name, text))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// This workload under another name, with `parameters` in place of the file's values.
    ///
    /// # Errors
    /// If a parameter is unknown, or the numbers are invalid.
    pub fn preset(self, name: &str, parameters: Parameters) -> Result<Template, Error> {
        self.with(&parameters)?;
        let mut table = self.table;
        table.extend(parameters.0);
        Ok(Template { name: name.to_string(), table, file: self.file })
    }

    /// The workload with `parameters` in place of the file's values.
    ///
    /// # Errors
    /// If a parameter is unknown, or the numbers are invalid: the message points at the parameter
    /// or at the file's line and key.
    pub fn with(&self, parameters: &Parameters) -> Result<Stochastic, Error> {
        self.build(parameters).map_err(|invalid| self.refuse(parameters, &invalid))
    }

    /// The error for `invalid`: it points at the parameter or at the file's line and key.
    pub fn refuse(&self, parameters: &Parameters, invalid: &Invalid) -> Error {
        if parameters.0.contains_key(&invalid.key) {
            Error::Usage(format!("the parameter {invalid}"))
        } else {
            self.file.wrong(&invalid.key, &invalid.message)
        }
    }

    /// The same; the error has the key.
    pub fn build(&self, parameters: &Parameters) -> Result<Stochastic, Invalid> {
        let mut table = self.table.clone();
        for (key, value) in &parameters.0 {
            check(key, value)?;
            table.insert(key.clone(), value.clone());
        }
        let definition = Definition::deserialize(table).map_err(|error| Invalid {
            key: String::new(),
            message: error.message().to_string(),
        })?;
        // Results have a column for CPUs.
        let parameters = parameters
            .iter()
            .filter(|&(key, _)| key != "cpus")
            .map(|(key, value)| (key.to_string(), value))
            .collect();
        Stochastic::new(self.name.clone(), &definition, parameters)
    }
}

/// Checks one parameter: that the name exists and that it accepts the value.
fn check(key: &str, value: &Value) -> Result<(), Invalid> {
    let invalid = |message| Invalid { key: key.to_string(), message };
    let names: Vec<String> = list_parameters().into_iter().map(|(name, _)| name).collect();
    if !names.iter().any(|name| name == key) {
        return Err(invalid(no_such(
            "parameter",
            key,
            &names,
            "`schedlab list workloads` shows them all.",
        )));
    }
    let alone = toml::Table::from_iter([(key.to_string(), value.clone())]);
    Definition::deserialize(alone).map(drop).map_err(|error| invalid(with_nearest(error.message())))
}

/// All parameters with their meanings.
pub fn list_parameters() -> Vec<(String, String)> {
    stochastic_keys()
        .into_iter()
        .filter(|(name, _)| !NO_PARAMETERS.contains(&name.as_str()))
        .collect()
}

impl Parameters {
    /// Checks that the parameter `key` exists and accepts `value`.
    pub fn check(key: &str, value: &Value) -> Result<(), String> {
        check(key, value).map_err(|invalid| invalid.message)
    }

    /// Sets `key`.
    pub fn insert(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_string(), value);
    }

    /// A copy with a value for `key`.
    pub fn with(&self, key: &str, value: Value) -> Parameters {
        let mut changed = self.clone();
        changed.insert(key, value);
        changed
    }

    /// All parameters, sorted by key, by their names in results.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().map(|(key, value)| {
            (key.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_string))
        })
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A parameter on the command line, `KEY=VALUE`.
impl FromStr for Parameters {
    type Err = String;

    fn from_str(text: &str) -> Result<Parameters, String> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| "give KEY=VALUE, as in tmc=2ms".to_string())?;
        let parsed = toml::de::ValueDeserializer::parse(value).and_then(Value::deserialize);
        let value = parsed.unwrap_or_else(|_| Value::String(value.to_string()));
        Parameters::check(key, &value)?;
        Ok(Parameters(BTreeMap::from([(key.to_string(), value)])))
    }
}

impl FromIterator<Parameters> for Parameters {
    fn from_iter<I: IntoIterator<Item = Parameters>>(all: I) -> Parameters {
        Parameters(all.into_iter().flat_map(|parameters| parameters.0).collect())
    }
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
    fn new(
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
            "{}: load {load:.3} on {} CPU{}, {} tasks",
            self.name,
            machine.cpus,
            if machine.cpus == 1 { "" } else { "s" },
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

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: &str = "[[class]]\nbursts = { geometric = 50 }\nburst = { exponential = \"5ms\" \
                         }\npause = { exponential = \"70ms\" }\n";

    fn read(text: &str) -> Result<Stochastic, Error> {
        Template::read(TomlFile::of("w.toml", text))?.with(&Parameters::default())
    }

    fn refused(text: &str, words: &str) {
        let error = read(text).expect_err(text);
        assert!(error.to_string().starts_with(words), "{text}\n{error}\nis not\n{words}");
        assert_eq!(error.exit_code(), 3);
    }

    #[test]
    fn every_kind_of_distribution_can_be_written() {
        let all = [
            "{ constant = \"5ms\" }",
            "{ uniform = [\"1ms\", \"9ms\"] }",
            "{ exponential = \"5ms\" }",
            "{ hyperexponential = [{ share = 0.5, mean = \"1ms\" }, { share = 0.5, mean = \"9ms\" \
             }] }",
            "{ log-normal = { mean = \"5ms\", variation = 2 } }",
            "{ octaves = { first = \"2ms\", weights = [2, 1] } }",
            "{ histogram = [{ from = \"0ms\", to = \"4ms\", weight = 1 }, { from = \"6ms\", to = \
             \"10ms\", weight = 1 }] }",
            "{ empirical = [\"1ms\", \"9ms\"] }",
        ];
        for burst in all {
            let text = CLASS.replace("{ exponential = \"5ms\" }", burst);
            let workload = read(&format!("load = 0.7\ncpus = 4\n{text}")).expect(burst);
            let mean = workload.model.classes()[0].burst.mean();
            assert!((3.9e6..5.1e6).contains(&mean), "{burst}: {mean}");
            assert!((workload.model.offered_load(4) - 0.7).abs() < 1e-9);
        }
    }

    #[test]
    fn invalid_numbers_are_refused_with_line_and_key() {
        let with = |head: &str| format!("{head}\n{CLASS}");
        for (head, words) in [
            (
                "load = 1.2\ncpus = 4",
                "w.toml:1: load: a load of 1.200 never reaches a steady state: give \
                 population-limit",
            ),
            (
                "load = -0.5\ncpus = 4",
                "w.toml:1: load: -0.5 is out of range: give a number from 0.000001 to 1000000",
            ),
            (
                "load = nan\ncpus = 4",
                "w.toml:1: load: NaN is out of range: give a number from 0.000001",
            ),
            ("load = 0.5", "w.toml:1: cpus: the number of CPUs is missing"),
            ("cpus = 4", "w.toml:1: load: give the load, or the time between arrivals"),
            (
                "cpus = 0\nload = 0.5",
                "w.toml:1: cpus: 0 is out of range: give a whole number from 1 to 4096",
            ),
            (
                "cpus = -4\nload = 0.5",
                "w.toml:1: cpus: -4 is out of range: give a whole number from 1 to 4096",
            ),
            (
                "cpus = 4\narrivals = { constant = \"1ms\" }",
                "w.toml:2: arrivals: a load of 62.500 never reaches a steady state",
            ),
            (
                "cpus = 4\nload = 0.5\ntmc = \"5\"",
                "w.toml:3: tmc: \"5\" is not a duration: give a number and a unit",
            ),
            ("cpus = 4\nload = 0.5\ntmc = \"-1ms\"", "w.toml:3: tmc: \"-1ms\" is not a duration"),
            (
                "cpus = 4\nload = 0.5\ntmc = 5",
                "w.toml:3: tmc: invalid type: integer `5`, expected a duration",
            ),
            (
                "cpus = 4\nload = 0.5\n\nsmc = -0.1",
                "w.toml:4: smc: -0.1 is out of range: give a number from 0 to 1000000",
            ),
            ("cpus = 4\nload = 0.5\nremote = inf", "w.toml:3: remote: inf is out of range"),
            (
                "cpus = 4\nload = 0.5\nspeed = nan",
                "w.toml:3: speed: NaN is out of range: give a number from 0.001 to 1000",
            ),
            ("cpus = 4097\nload = 0.5", "w.toml:1: cpus: 4097 is out of range"),
            ("cpus = 99999999999999999999\nload = 0.5", "w.toml:1: "),
            ("cpus = 4\nload = 1e-300", "w.toml:2: load: 0.00"),
            ("cpus = 4\nload = inf", "w.toml:2: load: inf is out of range"),
            (
                "cpus = 4\nload = 0.5\ntasks = 9223372036854775807",
                "w.toml:3: tasks: 9223372036854775807 is out of range",
            ),
            ("cpus = 4\nload = 0.5\nwarm-up = -1", "w.toml:3: warm-up: -1 is out of range"),
            ("cpus = 4\nload = 0.5\nsmc = 1e300", "w.toml:3: smc: 1000"),
            (
                "cpus = 4\nload = 0.5\ntmc = \"99999999999999999999s\"",
                "w.toml:3: tmc: 99999999999999999999s is out of range: give a duration",
            ),
            (
                "cpus = 4\nload = 0.5\nquantum = \"0ms\"",
                "w.toml:3: quantum: a quantum must be above zero",
            ),
            (
                "cpus = 4\nload = 0.5\nrefill-half-life = \"0ms\"",
                "w.toml:3: refill-half-life: a half-life must be above zero",
            ),
            (
                "cpus = 4\nload = 0.5\ntasks = 0",
                "w.toml:3: tasks: 0 is out of range: give a whole number from 1 to",
            ),
            (
                "cpus = 4\nload = 0.5\npopulation-limit = 0",
                "w.toml:3: population-limit: 0 is out of range: give a whole number from 1 to \
                 4194304",
            ),
            (
                "cpus = 4\nload = 0.5\nwarm-up = \"mser\"",
                "w.toml:3: warm-up: invalid value: string \"mser\", expected a number of tasks, \
                 or \"mser-5\"",
            ),
            (
                "cpus = 4\nload = 0.5\nwarm-up = \"mser-5\"\ntasks = 4000",
                "w.toml:3: warm-up: MSER-5 takes batches of five from at least 5000",
            ),
            (
                "cpus = 4\nload = 0.5\nsaturation = \"drift\"\ntasks = 3000",
                "w.toml:3: saturation: drift needs at least 4000 tasks",
            ),
            (
                "cpus = 4\nload = 0.5\nintensive = 0.5",
                "w.toml:3: intensive: this belongs to base = \"unix1990\"",
            ),
            (
                "cpus = 4\nlaod = 0.5",
                "w.toml:2: laod: there is no key named `laod`. Did you mean `load`?",
            ),
            ("base = \"unix1990\"", "w.toml:2: class: a workload with a base has the classes"),
            (
                "base = \"unix1991\"",
                "w.toml:1: base: there is no choice named `unix1991`. Did you mean `unix1990`?",
            ),
        ] {
            refused(&with(head), words);
        }
        refused("cpus = 4\nload = 0.5\n", "w.toml:1: class: there is nothing to run");
        refused("cpus = 4\nload = ", "w.toml:2: ");
        refused(
            "base = \"unix1990\"\nbursts = 0.5\n",
            "w.toml:2: bursts: 0.5 is out of range: give a number from 1 to",
        );
        refused(
            "base = \"unix1990\"\nintensive = 1.5\n",
            "w.toml:2: intensive: the share of processor-intensive load",
        );
    }

    #[test]
    fn invalid_classes_are_refused_with_line_and_key() {
        let refused = |from: &str, to: &str, words: &str| {
            let class = CLASS.replace(from, to);
            assert_ne!(class, CLASS);
            refused(&format!("cpus = 4\nload = 0.5\n{class}"), words);
        };
        let burst = "{ exponential = \"5ms\" }";
        refused(
            burst,
            "{ empirical = [] }",
            "w.toml:5: class[0].burst: an empirical distribution needs at least one sample",
        );
        refused(
            burst,
            "{ exponential = \"0ms\" }",
            "w.toml:5: class[0].burst: a mean must be a number above zero",
        );
        refused(
            burst,
            "{ log-normal = { mean = \"1ms\", variation = nan } }",
            "w.toml:5: class[0].burst: a coefficient of variation",
        );
        refused(
            burst,
            "{ octaves = { first = \"1ms\", weights = [0, 0] } }",
            "w.toml:5: class[0].burst: the sum of the weights",
        );
        refused(
            burst,
            "{ octaves = { first = \"1ms\", weights = [1, -1] } }",
            "w.toml:5: class[0].burst: a weight must be zero or more",
        );
        refused(
            burst,
            "{ uniform = [\"9ms\", \"1ms\"] }",
            "w.toml:5: class[0].burst: a uniform distribution needs an upper end above",
        );
        refused(
            burst,
            "{ hyperexponential = [{ share = 0.5, mean = \"1ms\" }, { share = 0.4, mean = \"9ms\" \
             }] }",
            "w.toml:5: class[0].burst: the probabilities sum to 0.9, not to one",
        );
        refused(
            burst,
            "{ weibull = \"5ms\" }",
            "w.toml:5: class[0].burst.weibull: there is no choice named `weibull`.",
        );
        refused(
            "{ geometric = 50 }",
            "{ geometric = 0.5 }",
            "w.toml:4: class[0].bursts: a geometric distribution counts from 1",
        );
        refused(
            "pause = { exponential = \"70ms\" }\n",
            "",
            "w.toml:3: class[0].pause: tasks of several bursts need pauses",
        );
        refused(
            "[[class]]\n",
            "[[class]]\nshare = 0.5\n",
            "w.toml:4: class[0].share: the shares sum to 0.5, not to one",
        );
        refused(
            "[[class]]\n",
            "[[class]]\nshare = nan\n",
            "w.toml:4: class[0].share: a share is a number from 0 to 1, not NaN",
        );
        refused(
            "[[class]]\n",
            "[[class]]\nshare = 1\nload-share = 1\n",
            "w.toml:4: class[0].share: give shares of the tasks or",
        );
        refused(
            "[[class]]\n",
            "[[class]]\npriority = 140\n",
            "w.toml:4: class[0].priority: 140 is out of range: give a whole number from 0 to 139",
        );
        let nan = "[[class]]\npriorities = [{ priority = 100, share = nan }]\n";
        refused(
            "[[class]]\n",
            nan,
            "w.toml:4: class[0].priorities: the shares sum to NaN, not to one",
        );
        refused(
            "[[class]]\n",
            "[[class]]\npriorities = []\n",
            "w.toml:4: class[0].priorities: the shares sum to 0, not to one",
        );
    }

    #[test]
    fn parameters_replace_the_files_values_and_errors_name_them() {
        let template = Template::read(TomlFile::of("unix1990", "base = \"unix1990\"\n")).unwrap();
        let set = |text: &str| {
            text.split(' ').map(str::parse::<Parameters>).collect::<Result<Parameters, String>>()
        };
        let changed = template
            .with(
                &set("load=0.5 cpus=8 tmc=2ms smc=0.1 tasks=5000 warm-up=mser-5 intensive=0.25")
                    .unwrap(),
            )
            .unwrap();
        assert!((changed.model.offered_load(8) - 0.5).abs() < 1e-9);
        assert_eq!(
            (changed.machine.migration_cost, changed.machine.sharing.slowdown),
            (Nanos::from_millis(2), 0.1)
        );
        assert_eq!((changed.model.classes().len(), changed.warm_up), (2, WarmUp::Mser5));
        assert_eq!(changed.parameters["tmc"], "2ms");
        assert_eq!(
            changed.policy(&PolicySpec::parse("take:rr").unwrap()).unwrap().to_string(),
            "take:rr?quantum=100000000ns"
        );
        for (bad, words) in [
            ("lod=0.5", "Did you mean `load`?"),
            ("load", "give KEY=VALUE"),
            ("load=x", "invalid type: string \"x\""),
            ("tmc=2", "expected a duration"),
            ("class=1", "no parameter named `class`"),
        ] {
            let message = set(bad).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
        let error = template.with(&set("load=1.5").unwrap()).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the parameter load: a load of 1.500 never reaches a steady state")
                && error.exit_code() == 2,
            "{error}"
        );
        assert!(template.with(&set("load=1.5 population-limit=100").unwrap()).is_ok());
    }

    #[test]
    fn the_built_in_baseline_equals_the_model() {
        let workload = read("base = \"unix1990\"\n").unwrap();
        let unix = Unix1990::default();
        assert_eq!(workload.machine, unix.machine());
        let (model, length) = (unix.model().unwrap(), workload.model.length());
        assert_eq!(
            (model.classes(), model.gap(), model.length()),
            (workload.model.classes(), workload.model.gap(), length)
        );
    }

    #[test]
    fn a_class_may_have_a_share_of_the_load() {
        let heavy = CLASS.replace("5ms", "5s").replace("[[class]]", "[[class]]\nload-share = 0.25");
        let light = CLASS.replace("[[class]]", "[[class]]\nload-share = 0.75");
        let workload = read(&format!("cpus = 4\nload = 0.5\n{light}{heavy}")).unwrap();
        let model = &workload.model;
        let part = |class: &workload::Class| class.share * class.cpu_time() / model.mean_cpu_time();
        assert!(
            (part(&model.classes()[1]) - 0.25).abs() < 1e-9
                && (model.offered_load(4) - 0.5).abs() < 1e-9
        );
    }
}
