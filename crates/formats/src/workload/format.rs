//! The format of a workload file: its keys, and the JSON Schema that editors use
//! (`docs/workload.schema.json`).
//!
//! The doc comments here are the descriptions in that schema and in `schedlab list workloads`.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

use schedsim::Nanos;
use schedsim::admission::{
    Cpus, Drawn as DrawnTasks, Population, Priority as Prio, WarmUpTasks, admitted,
    admitted_if_given,
};
use schedsim::workload::{self, Bin};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema as schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;

/// A workload of schedlab.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Definition {
    /// The name (default: the file's name).
    pub name: Option<String>,
    /// What the workload represents.
    pub description: Option<String>,
    /// A built-in workload that the parameters here change, instead of classes.
    pub base: Option<Base>,

    /// Offered load: arriving CPU time, without overhead, over available CPU time. Arrivals are
    /// scaled to it. (unix1990: 0.7)
    pub load: Option<f64>,
    /// The time between two arrivals (default: exponential, with the mean that gives the load).
    pub arrivals: Option<Distribution<Span>>,
    /// The number of CPUs (unix1990: 4).
    #[serde(default, deserialize_with = "admitted_if_given::<_, Cpus, _>")]
    #[schemars(with = "Option<Cpus>")]
    pub cpus: Option<u16>,
    /// The speed of a CPU: at 0.5 bursts take twice as long; arrivals, pauses and costs do not
    /// change (default: 1).
    pub speed: Option<f64>,
    /// The quantum of policies without one of their own, as in take:rr?quantum=10ms (unix1990:
    /// 100ms).
    pub quantum: Option<Span>,
    /// Task migration cost: added to the first burst after a migration (default: none; unix1990:
    /// 1ms).
    pub tmc: Option<Span>,
    /// System migration cost: the share by which bursts lengthen under a policy that may migrate
    /// tasks (default: 0; unix1990: 0.05).
    pub smc: Option<f64>,
    /// Which bursts pay the system migration cost (default: every-burst).
    pub slows: Option<Slows>,
    /// If given, a task that returns to its CPU must refill its cache: tmc × (1 − 2^(−time away /
    /// half-life)).
    pub refill_half_life: Option<Span>,
    /// The delay that each migration causes to the tasks on the other CPUs (default: none).
    pub bus: Option<Span>,
    /// The share by which a burst lengthens that begins on a CPU other than the task's first
    /// (default: 0).
    pub remote: Option<f64>,
    /// The CPU time of a switch from one task to another (default: none).
    pub switch_cost: Option<Span>,
    /// The time for which a dispatch holds the lock of its task's queue, for each entry examined
    /// there; other CPUs wait (default: none).
    pub lock_hold: Option<Span>,
    /// The share by which such a hold lengthens for each other CPU that is at the lock already
    /// (default: 0).
    pub lock_contention: Option<f64>,
    /// The number of CPUs that make scheduling decisions; the others wait for one of them (default:
    /// each decides for itself). It matters where locks are held.
    #[serde(default, deserialize_with = "admitted_if_given::<_, Cpus, _>")]
    #[schemars(with = "Option<Cpus>")]
    pub deciders: Option<u16>,
    /// The time that an idle CPU needs to start a woken task (default: none).
    pub idle_exit: Option<Span>,
    /// The time from a wakeup until a busy CPU switches to the woken task (default: none).
    pub wake_cost: Option<Span>,

    /// The number of measured tasks (default: 5000).
    #[serde(default, deserialize_with = "admitted_if_given::<_, DrawnTasks, _>")]
    #[schemars(with = "Option<DrawnTasks>")]
    pub tasks: Option<u64>,
    /// The tasks before the measured ones: a number, or "mser-5", which chooses it from the data
    /// (default: as many as arrive until an empty system has settled, 1000 to 20000).
    pub warm_up: Option<WarmUp>,
    /// What happens after the last measured task has arrived: the system drains, or tasks continue
    /// to arrive until all measured ones have exited (default: go-on).
    pub after: Option<After>,
    /// If more tasks than this are in the system, the run ends as saturated (default: 20000). A
    /// load of 1 or more needs it.
    #[serde(default, deserialize_with = "admitted_if_given::<_, Population, _>")]
    #[schemars(with = "Option<Population>")]
    pub population_limit: Option<u32>,
    /// How saturation is detected, besides the limit of the population (default: drift).
    pub saturation: Option<Saturation>,

    /// Of unix1990: mean pause (default: 70ms).
    pub pause: Option<Span>,
    /// Of unix1990: the coefficient of variation of pauses; at 1 they are exponential, else
    /// log-normal (default: 1).
    pub pause_variation: Option<f64>,
    /// Of unix1990: mean number of bursts of a task (default: 50).
    pub bursts: Option<f64>,
    /// Of unix1990: how the number of bursts is drawn (default: geometric).
    pub bursts_law: Option<BurstsLaw>,
    /// Of unix1990: mean of exponential bursts, in place of the measured histogram.
    pub burst: Option<Span>,
    /// Of unix1990: of the histogram of bursts, each octave above 2–4 ms has 2^−this times the
    /// bursts of the one below (default: 1.786).
    pub burst_tail: Option<f64>,
    /// Of unix1990: of the histogram of bursts, each octave below 2–4 ms has this share of the
    /// bursts of the one above (default: 0.1).
    pub burst_head: Option<f64>,
    /// Of unix1990: a factor on the histogram of bursts; 0.15 if it was measured at 3 MIPS and
    /// scaled to 20 (default: 1).
    pub burst_scale: Option<f64>,
    /// Of unix1990: the share of the load that comes from processor-intensive tasks (default: 0).
    pub intensive: Option<f64>,
    /// Of unix1990: one priority, or the four levels of §5.3 (default: one).
    pub priorities: Option<Priorities>,

    /// Classes of tasks that arrive, run, pause and exit.
    #[serde(default)]
    pub class: Vec<Class>,
}

/// Tasks of one kind in a stochastic workload.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Class {
    /// The name.
    pub name: Option<String>,
    /// The share of tasks in this class; all shares sum to one. A single class needs none.
    pub share: Option<f64>,
    /// The share of the load from this class, instead of `share`; these also sum to one.
    pub load_share: Option<f64>,
    /// Whether the scheduler knows at their arrival that its tasks need the CPU all the time
    /// (default: no).
    #[serde(default)]
    pub intensive: bool,
    /// Linux's kernel priority, 0 to 139; lower is more urgent (default: 120, nice 0).
    #[serde(default, deserialize_with = "admitted_if_given::<_, Prio, _>")]
    #[schemars(with = "Option<Prio>")]
    pub priority: Option<u8>,
    /// Several priorities instead of one.
    pub priorities: Option<Vec<Priority>>,
    /// The number of CPU bursts of a task; rounded, at least one.
    pub bursts: Distribution<f64>,
    /// The length of a CPU burst.
    pub burst: Distribution<Span>,
    /// The length of a pause between two bursts. A class of single bursts needs none.
    pub pause: Option<Distribution<Span>>,
}

/// A priority and the share of tasks with it.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// Linux's kernel priority, 0 to 139; lower is more urgent.
    #[serde(deserialize_with = "admitted::<_, Prio, _>")]
    #[schemars(with = "Prio")]
    pub priority: u8,
    /// The share of the class's tasks with this priority; all shares sum to one.
    pub share: f64,
}

/// A distribution of durations or of counts.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Distribution<T> {
    /// A constant.
    Constant(T),
    /// Uniform between two values.
    Uniform(T, T),
    /// Exponential with this mean.
    Exponential(T),
    /// Integers from 1 on, with this mean.
    Geometric(T),
    /// A mixture of exponential distributions.
    Hyperexponential(Vec<Phase<T>>),
    /// A number whose logarithm is normally distributed.
    LogNormal(LogNormal<T>),
    /// A histogram whose bins double in width.
    Octaves(Octaves<T>),
    /// A histogram with bins of any width, uniform inside each.
    Histogram(Vec<Bar<T>>),
    /// One of these values, each equally likely.
    Empirical(Vec<T>),
}

/// A phase of a hyperexponential distribution.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase<T> {
    /// Its probability; all shares sum to one.
    pub share: f64,
    /// Its mean.
    pub mean: T,
}

/// A distribution given by its moments.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogNormal<T> {
    /// Its mean.
    pub mean: T,
    /// Its coefficient of variation: standard deviation over mean.
    pub variation: f64,
}

/// A histogram whose bins double: uniform from `first` to twice that with the first weight, from
/// there to twice that with the second, and so on.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Octaves<T> {
    /// The start of the first octave.
    pub first: T,
    /// The relative weight of each octave.
    pub weights: Vec<f64>,
}

/// A bin of a histogram.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bar<T> {
    /// The smallest value in the bin.
    pub from: T,
    /// The start of the next bin.
    pub to: T,
    /// The relative weight of the bin.
    pub weight: f64,
}

/// A built-in stochastic workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// Curran & Stumm's Baseline System.
    Unix1990,
}

/// The bursts that pay the system migration cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Slows {
    /// All bursts under a policy that may migrate tasks, even if it does not: as in the paper.
    EveryBurst,
    /// The rest of a burst when its task migrates.
    MigratedBursts,
}

/// Priorities of unix1990.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priorities {
    /// The same priority for all.
    One,
    /// 10 % system high, 20 % system low, 50 % user, 20 % background.
    Four,
}

/// How the number of bursts of a task of unix1990 is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BurstsLaw {
    /// Geometric, from 1 on.
    Geometric,
    /// The same for all tasks: a whole number.
    Constant,
}

/// What happens when the last measured task has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum After {
    /// No more tasks arrive.
    Drain,
    /// Tasks continue to arrive until the last measured one has exited.
    GoOn,
}

/// How saturation is detected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Saturation {
    /// The population grows all the time; needs at least 4,000 measured tasks.
    Drift,
    /// As drift, or the load exceeds the closed-form capacity: 1 over the relative length of a
    /// burst with overhead. For unix1990's Central Queue every dispatch counts as a migration.
    ClosedForm,
    /// Only the limit of the population.
    Limit,
}

/// The number of tasks before the measured ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarmUp {
    /// A fixed number.
    Tasks(u64),
    /// The number that MSER-5 chooses (White 1997).
    Mser5,
}

/// A duration, as in 500us or 1.5ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span(pub Nanos);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Span;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a duration: a number and a unit (ns, us, ms or s), as in \"1.5ms\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map(Span).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl<'de> Deserialize<'de> for WarmUp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WarmUp, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = WarmUp;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of tasks, or \"mser-5\"")
            }
            fn visit_i64<E: de::Error>(self, tasks: i64) -> Result<WarmUp, E> {
                WarmUpTasks::admit(tasks.into())
                    .map(|tasks| WarmUp::Tasks(tasks.get()))
                    .map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<WarmUp, E> {
                if text == "mser-5" {
                    Ok(WarmUp::Mser5)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(text), &self))
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema!({
            "type": "string",
            "pattern": r"^[0-9]+(\.[0-9]+)?(ns|us|µs|ms|s)$",
            "examples": ["500us", "1.5ms"]
        })
    }
}

impl JsonSchema for WarmUp {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "WarmUp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema!({ "oneOf": [{ "type": "integer", "minimum": 0 }, { "const": "mser-5" }] })
    }
}

/// A quantity to draw: a duration, in nanoseconds, or a plain number.
pub trait Drawn: Copy {
    /// The value as a number.
    fn number(self) -> f64;
}

impl Drawn for f64 {
    fn number(self) -> f64 {
        self
    }
}

impl Drawn for Span {
    fn number(self) -> f64 {
        self.0.0 as f64
    }
}

impl<T: Drawn> Distribution<T> {
    /// Builds the distribution.
    ///
    /// # Errors
    /// If a number is out of range; the message names it.
    pub fn build(&self) -> Result<workload::Distribution, String> {
        use workload::Distribution as Drawn;
        match self {
            Distribution::Constant(value) => Drawn::constant(value.number()),
            Distribution::Uniform(low, high) => Drawn::uniform(low.number(), high.number()),
            Distribution::Exponential(mean) => Drawn::exponential(mean.number()),
            Distribution::Geometric(mean) => Drawn::geometric(mean.number()),
            Distribution::Hyperexponential(phases) => Drawn::hyperexponential(
                &phases.iter().map(|phase| (phase.share, phase.mean.number())).collect::<Vec<_>>(),
            ),
            Distribution::LogNormal(LogNormal { mean, variation }) => {
                Drawn::log_normal(mean.number(), *variation)
            }
            Distribution::Octaves(Octaves { first, weights }) => {
                Drawn::octaves(first.number(), weights)
            }
            Distribution::Histogram(bars) => {
                let bin = |bar: &Bar<T>| Bin {
                    low: bar.from.number(),
                    high: bar.to.number(),
                    weight: bar.weight,
                };
                Drawn::histogram(&bars.iter().map(bin).collect::<Vec<_>>())
            }
            Distribution::Empirical(values) => {
                Drawn::empirical(&values.iter().map(|value| value.number()).collect::<Vec<_>>())
            }
        }
    }
}

/// A workload of schedlab: stochastic, with classes of tasks, or closed, with tasks that go through
/// phases.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum File {
    Stochastic(Box<Definition>),
    Closed(Box<workload::Closed>),
}

/// The published JSON Schema of a workload file.
pub fn json_schema() -> String {
    format!("{:#}\n", schemars::schema_for!(File).as_value())
}

/// The keys of a stochastic workload with their meanings.
pub fn stochastic_keys() -> Vec<(String, String)> {
    let schema = schemars::schema_for!(Definition);
    let keys = schema.as_value()["properties"].as_object().into_iter().flatten();
    keys.map(|(name, key)| {
        (name.clone(), key["description"].as_str().unwrap_or_default().to_string())
    })
    .collect()
}
