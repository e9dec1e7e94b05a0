//! The format of a workload file: what its keys are, and the JSON Schema of it that editors use (`docs/workload.schema.json`).
//!
//! The doc comments here are the descriptions in that schema, and those that `schedlab list workloads` shows.
#![deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::arithmetic_side_effects)]

use schedsim::Nanos;
use schedsim::admission::{Cpus, Drawn as DrawnTasks, Population, Priority as Prio, WarmUpTasks, admitted, admitted_if_given};
use schedsim::workload::{self, Bin};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema as schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;

/// A workload of schedlab's.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Definition {
    /// What to call it (default: the file's name).
    pub name: Option<String>,
    /// What it stands for.
    pub description: Option<String>,
    /// A built-in workload that the parameters here change, in place of classes of its own.
    pub base: Option<Base>,

    /// Offered Load: CPU time that arrives, without overhead, over CPU time that there is. Arrivals are scaled to it. (unix1990: 0.7)
    pub load: Option<f64>,
    /// The time between two arrivals (default: exponential, with the mean that gives the load).
    pub arrivals: Option<Distribution<Span>>,
    /// How many CPUs (unix1990: 4).
    #[serde(default, deserialize_with = "admitted_if_given::<_, Cpus, _>")]
    #[schemars(with = "Option<Cpus>")]
    pub cpus: Option<u16>,
    /// How fast a CPU is: at 0.5 bursts take twice as long, while arrivals, pauses and costs stay what they are (default: 1).
    pub speed: Option<f64>,
    /// The quantum of policies that do not say one, as in take:rr?quantum=10ms (unix1990: 100ms).
    pub quantum: Option<Span>,
    /// Task migration cost: added to the first burst after a migration (default: none; unix1990: 1ms).
    pub tmc: Option<Span>,
    /// System migration cost: the share by which bursts lengthen under a policy that may migrate tasks (default: 0; unix1990: 0.05).
    pub smc: Option<f64>,
    /// Which bursts pay the system migration cost (default: every-burst).
    pub slows: Option<Slows>,
    /// If given, a task that comes back to its CPU has to fetch again what it lost: tmc × (1 − 2^(−time away / half-life)).
    pub refill_half_life: Option<Span>,
    /// By how much each migration delays what the other CPUs run (default: none).
    pub bus: Option<Span>,
    /// The share by which a burst lengthens that begins on another CPU than the task's first (default: 0).
    pub remote: Option<f64>,
    /// What a CPU spends each time it goes from one task to another (default: none).
    pub switch_cost: Option<Span>,
    /// For so long a dispatch holds the lock of the queue that its task comes from, for each entry examined there; others wait (default: none).
    pub lock_hold: Option<Span>,
    /// What it takes an idle CPU to begin with a woken task (default: none).
    pub idle_exit: Option<Span>,
    /// From a waking until a CPU that is awake switches to the woken task (default: none).
    pub wake_cost: Option<Span>,

    /// So many tasks are measured (default: 1000).
    #[serde(default, deserialize_with = "admitted_if_given::<_, DrawnTasks, _>")]
    #[schemars(with = "Option<DrawnTasks>")]
    pub tasks: Option<u64>,
    /// What comes before the measured tasks: a number of tasks, or "mser-5", which lets the data decide (default: 0).
    pub warm_up: Option<WarmUp>,
    /// What happens after the last measured task has arrived: the system drains, or tasks go on arriving until all measured ones have left (default: drain).
    pub after: Option<After>,
    /// With more tasks alive than this the run ends, saturated (default: 20000). A load of 1 or more needs it.
    #[serde(default, deserialize_with = "admitted_if_given::<_, Population, _>")]
    #[schemars(with = "Option<Population>")]
    pub population_limit: Option<u32>,
    /// What a saturated run is told by, beside the limit of the population (default: drift).
    pub saturation: Option<Saturation>,

    /// Of unix1990: mean pause (default: 70ms).
    pub pause: Option<Span>,
    /// Of unix1990: mean number of bursts of a task (default: 50).
    pub bursts: Option<f64>,
    /// Of unix1990: mean of exponential bursts, in place of the measured histogram.
    pub burst: Option<Span>,
    /// Of unix1990: the share of the load that comes from processor-intensive tasks (default: 0).
    pub intensive: Option<f64>,
    /// Of unix1990: one priority, or the four levels of §5.3 (default: one).
    pub priorities: Option<Priorities>,

    /// Classes of tasks that arrive, run, pause and leave.
    #[serde(default)]
    pub class: Vec<Class>,
}

/// Tasks of one kind, of a stochastic workload.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Class {
    /// What to call it.
    pub name: Option<String>,
    /// How many of the tasks are of this class; all shares sum to one. A single class needs none.
    pub share: Option<f64>,
    /// How much of the load comes from this class, in place of `share`; these sum to one too.
    pub load_share: Option<f64>,
    /// Whether it is known of its tasks when they arrive that they need the CPU all the time (default: no).
    #[serde(default)]
    pub intensive: bool,
    /// Linux's kernel priority, 0 to 139, low is urgent (default: 120, nice 0).
    #[serde(default, deserialize_with = "admitted_if_given::<_, Prio, _>")]
    #[schemars(with = "Option<Prio>")]
    pub priority: Option<u8>,
    /// Several priorities in place of one.
    pub priorities: Option<Vec<Priority>>,
    /// How many CPU bursts a task has; rounded, at least one.
    pub bursts: Distribution<f64>,
    /// How long a CPU burst is.
    pub burst: Distribution<Span>,
    /// How long a pause between two bursts is. A class of single bursts needs none.
    pub pause: Option<Distribution<Span>>,
}

/// A priority and how many tasks have it.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// Linux's kernel priority, 0 to 139, low is urgent.
    #[serde(deserialize_with = "admitted::<_, Prio, _>")]
    #[schemars(with = "Prio")]
    pub priority: u8,
    /// How many of the class's tasks have it; all shares sum to one.
    pub share: f64,
}

/// A distribution of durations or of counts.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Distribution<T> {
    /// Always this.
    Constant(T),
    /// All values between two alike.
    Uniform(T, T),
    /// The memoryless one with this mean.
    Exponential(T),
    /// Whole numbers from 1 on, with this mean.
    Geometric(T),
    /// Exponential with one of several means.
    Hyperexponential(Vec<Phase<T>>),
    /// A number whose logarithm is normal.
    LogNormal(LogNormal<T>),
    /// A histogram whose bins double in width.
    Octaves(Octaves<T>),
    /// A histogram with bins of any width, uniform inside each.
    Histogram(Vec<Bar<T>>),
    /// One of these values, each as likely as the others.
    Empirical(Vec<T>),
}

/// A part of a hyperexponential distribution.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase<T> {
    /// How likely it is; all shares sum to one.
    pub share: f64,
    /// Its mean.
    pub mean: T,
}

/// By its moments.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogNormal<T> {
    /// Its mean.
    pub mean: T,
    /// Its coefficient of variation: standard deviation over mean.
    pub variation: f64,
}

/// Uniform from `first` to twice that with the first weight, from there to twice that with the second, and so on.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Octaves<T> {
    /// Where the first octave begins.
    pub first: T,
    /// How much lies in each octave, in proportion to the others.
    pub weights: Vec<f64>,
}

/// A bin of a histogram.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bar<T> {
    /// The smallest value in it.
    pub from: T,
    /// The value at which the next one begins.
    pub to: T,
    /// How much lies in it, in proportion to the others.
    pub weight: f64,
}

/// A built-in stochastic workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// Curran & Stumm's Baseline System.
    Unix1990,
}

/// Which bursts pay for migrations being possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Slows {
    /// All bursts under a policy that may migrate tasks, whether or not it does: as in the paper.
    EveryBurst,
    /// What is left of a burst when its task migrates.
    MigratedBursts,
}

/// Priorities of unix1990.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priorities {
    /// All alike.
    One,
    /// 10 % system high, 20 % system low, 50 % user, 20 % background.
    Four,
}

/// What happens when the last measured task has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum After {
    /// Nobody arrives any more.
    Drain,
    /// Tasks go on arriving until the last measured one has left.
    GoOn,
}

/// What a saturated run is told by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Saturation {
    /// The population grows all the time; takes at least 4,000 measured tasks to tell.
    Drift,
    /// As drift, or the load is above what the CPUs can bear in closed form: 1 over what overhead makes of a burst; for unix1990's Central Queue with every dispatch migrating.
    ClosedForm,
    /// The limit of the population alone.
    Limit,
}

/// How many tasks come before the measured ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarmUp {
    /// So many.
    Tasks(u64),
    /// As many as MSER-5 says (White 1997).
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
                WarmUpTasks::admit(tasks.into()).map(|tasks| WarmUp::Tasks(tasks.get())).map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<WarmUp, E> {
                if text == "mser-5" { Ok(WarmUp::Mser5) } else { Err(E::invalid_value(de::Unexpected::Str(text), &self)) }
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
        schema!({ "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(ns|us|µs|ms|s)$", "examples": ["500us", "1.5ms"] })
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

/// What can be drawn: a duration, which is drawn in nanoseconds, or a plain number.
pub trait Drawn: Copy {
    /// As it is drawn.
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
    /// To draw from.
    ///
    /// # Errors
    /// If a number is out of range; the message says which.
    pub fn build(&self) -> Result<workload::Distribution, String> {
        use workload::Distribution as Drawn;
        match self {
            Distribution::Constant(value) => Drawn::constant(value.number()),
            Distribution::Uniform(low, high) => Drawn::uniform(low.number(), high.number()),
            Distribution::Exponential(mean) => Drawn::exponential(mean.number()),
            Distribution::Geometric(mean) => Drawn::geometric(mean.number()),
            Distribution::Hyperexponential(phases) => {
                Drawn::hyperexponential(&phases.iter().map(|phase| (phase.share, phase.mean.number())).collect::<Vec<_>>())
            }
            Distribution::LogNormal(LogNormal { mean, variation }) => Drawn::log_normal(mean.number(), *variation),
            Distribution::Octaves(Octaves { first, weights }) => Drawn::octaves(first.number(), weights),
            Distribution::Histogram(bars) => {
                let bin = |bar: &Bar<T>| Bin { low: bar.from.number(), high: bar.to.number(), weight: bar.weight };
                Drawn::histogram(&bars.iter().map(bin).collect::<Vec<_>>())
            }
            Distribution::Empirical(values) => Drawn::empirical(&values.iter().map(|value| value.number()).collect::<Vec<_>>()),
        }
    }
}

/// A workload of schedlab's: stochastic, with classes of tasks, or closed, with tasks that go through phases.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum File {
    Stochastic(Box<Definition>),
    Closed(Box<workload::Closed>),
}

/// The JSON Schema of a workload file, as it is published.
pub fn json_schema() -> String {
    format!("{:#}\n", schemars::schema_for!(File).as_value())
}

/// The keys of a stochastic workload, each with what it means.
pub fn stochastic_keys() -> Vec<(String, String)> {
    let schema = schemars::schema_for!(Definition);
    let keys = schema.as_value()["properties"].as_object().into_iter().flatten();
    keys.map(|(name, key)| (name.clone(), key["description"].as_str().unwrap_or_default().to_string())).collect()
}
