//! Curran & Stumm's Baseline System under their three algorithms, a line for each run: `unix1990
//! [LOAD] [TASKS] [SEEDS]`.
//!
//! Tab-separated: policy, load, seed, GRR, APR, utilisation, migrations per dispatch, idle waste,
//! CPU inflation, and whether the run was saturated.

use schedsim::engine::{self, Options};
use schedsim::metrics::{OpenSummary, OpenSystem};
use schedsim::policy::PolicySpec;
use schedsim::trace::Trace;
use schedsim::workload::{Model, RunLength, Unix1990};
use schedsim::{Machine, Time};

fn run(
    policy: &PolicySpec,
    model: &Model,
    machine: &Machine,
    seed: u64,
) -> Result<OpenSummary, engine::Error> {
    let mut open = OpenSystem::new(model, seed, machine.cpus);
    let options = Options { seed, until: Time::NEVER };
    engine::simulate_named(model, machine, policy, options, Trace::new(vec![&mut open]))?;
    Ok(open.finish())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<f64> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let argument = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (load, tasks, seeds) =
        (argument(0, 0.7), argument(1, 4000.0) as u64, argument(2, 3.0) as u64);
    let length = RunLength { warm_up: tasks / 10, measured: tasks, ..Unix1990::STEADY };
    let unix = Unix1990 { load, length, ..Unix1990::default() };
    let (model, machine) = (unix.model()?, unix.machine());
    println!(
        "policy\tload\tseed\tgrr\tapr\tutilisation\tmigration_rate\tidle_waste\tinflation\\
         tsaturated"
    );
    for policy in ["central:rr", "initial:rr", "take:rr"] {
        for seed in 1..=seeds {
            let summary = run(
                &PolicySpec::parse(&format!("{policy}?quantum=100ms"))?,
                &model,
                &machine,
                seed,
            )?;
            let ratios = [
                summary.grr(|_| true),
                summary.apr(|_| true),
                Some(summary.utilisation),
                summary.migration_rate(),
            ];
            let shares = [Some(summary.idle_waste), summary.inflation()];
            let numbers = ratios
                .into_iter()
                .chain(shares)
                .map(|value| value.map_or(String::new(), |value| value.to_string()));
            let saturated = if summary.saturated.is_some() { "yes" } else { "no" };
            println!(
                "{policy}\t{load}\t{seed}\t{}\t{saturated}",
                numbers.collect::<Vec<_>>().join("\t")
            );
        }
    }
    Ok(())
}
