//! A judge's suite, as its file says it, and what the judge says of a candidate.

use crate::{Metric, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A suite: on what candidates are judged, and how that makes one score.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The policy that candidates are compared with; its score is 1.
    #[serde(default)]
    pub baseline: String,
    /// The workloads of the score: names, or files beside the suite.
    #[serde(default)]
    pub training: Vec<String>,
    /// The workloads of the second score, which no search should see.
    #[serde(default)]
    pub held_out: Vec<String>,
    /// The number of runs of each workload, each with another seed.
    #[serde(default = "sixteen")]
    #[schemars(range(min = 1, max = 1000))]
    pub seeds: u32,
    /// The seed of the first run. Held-out workloads begin a million later.
    #[serde(default = "one")]
    pub first_seed: u64,
    /// The number of CPUs, by default as many as each workload has.
    pub cpus: Option<u16>,
    /// The kernel of the guests in which candidates run, as in "6.18". Without it they are
    /// simulated.
    pub kernel: Option<String>,
    /// A machine with a topology, as in `schedlab compare --machine`.
    pub machine: Option<String>,
    /// The cost of a switch, as in "2us".
    pub switch_cost: Option<String>,
    /// The cost of a migration.
    pub migration_cost: Option<String>,
    /// The time that an idle CPU needs to start a task woken from another CPU.
    pub idle_exit: Option<String>,
    /// The time that a busy CPU needs to switch to a woken task.
    pub wake_cost: Option<String>,
    /// What makes the score: the weighted geometric mean of how many times better each metric of
    /// each workload is than the baseline's.
    #[serde(default)]
    pub score: Vec<Part>,
    /// What must hold in every run, as in "wakeup_latency_ns_max < 50ms".
    #[serde(default)]
    pub constraints: Vec<String>,
    /// The least CPU time for tasks per time of a run, as a share of the baseline's: a candidate
    /// that idles CPUs to win latency does less work.
    #[serde(default = "nearly_all")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub least_work: f64,
    /// The limits.
    #[serde(default)]
    pub limits: Limits,
}

/// A part of the score.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The metric, by its name in results.
    pub metric: String,
    /// Its weight.
    #[serde(default = "weight")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub weight: f64,
    /// Which way is better, where the metric has no better side or the suite wants the other.
    pub better: Option<Side>,
}

/// The better side of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Less is better.
    Less,
    /// More is better.
    More,
}

/// The limits of a candidate.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The most events of a run. It is the same on every machine.
    #[schemars(range(min = 1))]
    pub events: u64,
    /// The wall-clock time of a candidate with all its runs, in seconds. Who needs longer gets the
    /// verdict `timeout` and never a score.
    #[schemars(range(min = 1, max = 86400))]
    pub seconds: u64,
    /// The address space of a candidate's process, in MiB.
    #[schemars(range(min = 64, max = 65536))]
    pub memory_mib: u64,
    /// The wall-clock time of a compilation, which is not part of `seconds`.
    #[schemars(range(min = 1, max = 86400))]
    pub compile_seconds: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { events: 5_000_000, seconds: 300, memory_mib: 1024, compile_seconds: 120 }
    }
}

fn sixteen() -> u32 {
    16
}

fn one() -> u64 {
    1
}

fn weight() -> f64 {
    1.0
}

fn nearly_all() -> f64 {
    0.95
}

/// What a judge says of a candidate: one line of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The candidate's name; of one without a name, the number of its line.
    pub id: String,
    /// The hash of the suite and of all files that it names.
    pub suite: String,
    /// The build of schedlab.
    pub version: String,
    /// The candidate in words: a policy with its options, or a file.
    pub candidate: String,
    /// Whether it has a score, or why not.
    pub verdict: Judgement,
    /// The reason, if it has no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many times better than the baseline it is in training.
    pub score: Option<f64>,
    /// The same on held-out workloads, if there are any.
    pub held_out: Option<f64>,
    /// The score over the held-out one, minus 1.
    pub gap: Option<f64>,
    /// Whether the gap is more than 2 %: then it is better at what it was tried on than at what it
    /// was not.
    pub overfits: Option<bool>,
    /// The constraints, each with the worst value of all runs.
    pub constraints: Vec<Constraint>,
    /// The metrics of the score in each workload.
    pub metrics: Vec<Measured>,
    /// How long its compilation took, in seconds, if it was compiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_seconds: Option<f64>,
}

/// What became of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It has a score.
    Score,
    /// A constraint does not hold; it has numbers, but no score.
    Constraint,
    /// It left CPUs idle, or tasks behind, that the baseline does not; it has numbers, but no
    /// score.
    LessWork,
    /// A metric of the score has no value under it.
    NoValue,
    /// A run had more events than allowed.
    Limit,
    /// It needed more wall-clock time than allowed.
    Timeout,
    /// It broke the contract of a policy.
    Contract,
    /// It panicked, raised an exception, gave up, or its process ended.
    Crash,
    /// It needed more memory than allowed.
    OutOfMemory,
    /// The compiler refuses it.
    CompileError,
    /// It is no policy, or its line is no candidate.
    NotAPolicy,
    /// The same run twice gave two results.
    NotRepeatable,
    /// It cannot run a workload, or this suite does not judge its kind.
    Refused,
    /// Something that it needs is missing on this machine.
    Missing,
}

/// A constraint.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Constraint {
    /// As the suite says it.
    pub rule: String,
    /// Whether it holds in every run.
    pub holds: bool,
    /// The worst value.
    pub worst: Option<f64>,
    /// The workload of that value.
    pub workload: Option<String>,
}

/// A metric of a candidate in a workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Whether it is a training workload or a held-out one.
    pub set: Set,
    /// The workload.
    pub workload: String,
    /// The number of CPUs.
    pub cpus: u16,
    /// The metric.
    pub metric: Metric,
    /// Its value over the runs: the mean, or the median where a few runs can dominate the mean.
    pub value: Option<f64>,
    /// The baseline's.
    pub baseline: Option<f64>,
    /// How many times better it is than the baseline, from 0.001 to 1000.
    pub ratio: Option<f64>,
    /// Whether the difference is decided, by the rule of `schedlab compare`.
    pub verdict: Option<Verdict>,
}

/// The two sets of workloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Of the score.
    Training,
    /// Of the second score.
    HeldOut,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_in_docs_are_current() {
        let docs = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        for (name, schema) in [
            ("suite.schema.json", schemars::schema_for!(Suite)),
            ("judged.schema.json", schemars::schema_for!(Judged)),
        ] {
            let (path, new) =
                (docs.join(name), serde_json::to_string_pretty(&schema).unwrap() + "\n");
            if std::env::var_os("UPDATE_SCHEMA").is_some() {
                std::fs::write(&path, &new).unwrap();
            }
            assert_eq!(
                std::fs::read_to_string(&path).unwrap_or_default(),
                new,
                "docs/{name} is out of date: UPDATE_SCHEMA=1 cargo test --lib"
            );
        }
    }
}
