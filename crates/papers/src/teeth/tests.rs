//! The counter-examples on record contradict their checks, and what would let a vacuous check pass
//! is caught.

use super::*;
use crate::folder;
use limits::Measured;
use results::Metric;
use std::path::Path;

/// Policies that are as good and as bad as they come: balanced and not, with long and with short
/// slices. With and without priorities, with cheap and with dear queues.
const POLICIES: &str = "cfs,o1,mlfq,eevdf,pslist,initial:rr,initial:multilist2,\
                        take:rr?idle=once,central:rr?quantum=100us,central:rr?quantum=7ms,\
                        central:heap,central:sorted-list?quantum=100us";

fn papers() -> Vec<Paper> {
    folder::names()
        .iter()
        .map(|name| Paper::load(name).unwrap_or_else(|why| panic!("{why}")))
        .collect()
}

fn kept(paper: &Paper) -> Vec<CounterExample> {
    let file = path(&paper.name, "counter-examples.csv");
    let reader = csv::Reader::from_path(&file);
    reader
        .unwrap_or_else(|why| panic!("{}: {why}", file.display()))
        .into_deserialize()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|why| panic!("{}: {why}", file.display()))
}

fn write<T: serde::Serialize>(file: &Path, rows: &[T]) {
    let mut writer = csv::Writer::from_path(file).unwrap();
    rows.iter().for_each(|row| writer.serialize(row).unwrap());
    writer.flush().unwrap();
}

#[test]
fn every_check_has_a_counter_example() {
    let mut all = Vec::new();
    for paper in papers() {
        let (limits, record) = (Limits::of(&paper), record(&paper.name));
        if std::env::var_os("UPDATE_TEETH").is_some() {
            let (found, mut vacuous) = searched(&paper, &limits, &record);
            write(&path(&paper.name, "counter-examples.csv"), &found);
            all.append(&mut vacuous);
        } else {
            all.append(&mut faults(&paper, &limits, &record, &kept(&paper)));
        }
    }
    assert!(all.is_empty(), "{} checks:\n{}", all.len(), all.join("\n"));
}

/// In the simulator no two policies differ by 5 % there; in the kernel the way through user space
/// is nine tenths of a yield.
#[test]
fn a_vacuous_check_is_caught_by_its_id() {
    for (name, id, planted) in [
        ("st-andrews", "A-CLM01-sim", "max(abs(windows / cfs - 1)) < 0.05"),
        ("st-andrews", "A-CLM01-sim", "max(windows / cfs) > 1.05"),
        ("porter-2021", "P-CLM11-kernel", "max((list / fifo)[50..200] * tree / tree) <= 1.5"),
        ("porter-2021", "P-CLM11-kernel", "max((list / tree)[50..200] * fifo / fifo) <= 0.2"),
    ] {
        let mut paper = Paper::load(name).unwrap();
        let (limits, record) = (Limits::of(&paper), record(&paper.name));
        paper.claims.retain(|claim| claim.id == id);
        let (_, vacuous) = searched(&paper, &limits, &record);
        assert_eq!(vacuous, Vec::<String>::new());
        let known = paper.known(&paper.claims[0].bindings).unwrap();
        paper.claims[0].check = vec![planted.to_string()];
        paper.claims[0].checks = vec![Check::parse(planted, &known).unwrap()];
        let (_, vacuous) = searched(&paper, &limits, &record);
        assert_eq!(vacuous.len(), 1, "{planted}");
        assert!(vacuous[0].starts_with(&format!("{id} (1) is vacuous")), "{vacuous:?}");
    }
}

#[test]
fn a_counter_example_that_shows_nothing_is_caught() {
    let paper = Paper::load("st-andrews").unwrap();
    let (limits, record, kept) = (Limits::of(&paper), record(&paper.name), kept(&paper));
    let faults = |kept: &[CounterExample]| faults(&paper, &limits, &record, kept);
    assert_eq!(faults(&kept), Vec::<String>::new());
    let place = kept.iter().position(|one| one.claim == "A-CLM01-sim").unwrap();
    let changed = |change: &dyn Fn(&mut CounterExample)| {
        let mut kept = kept.clone();
        change(&mut kept[place]);
        faults(&kept).join("\n")
    };
    let harmless = changed(&|one| one.mutation = "cfs = 50 %; windows = 50 %".to_string());
    assert!(harmless.starts_with("A-CLM01-sim (1) has no counter-example"), "{harmless}");
    assert!(!changed(&|one| one.mutation = "cfs = 50 %".to_string()).is_empty());
    assert!(!changed(&|one| one.mutation = "cfs = flat; windows = 0 %".to_string()).is_empty());
    assert!(changed(&|one| one.part = 7).contains("A-CLM01-sim (7) is no check"));
    assert!(!faults(&kept[1..]).is_empty());
}

/// The extremes of all policies, for what claims use of a command, and for its run time.
fn measured(paper: &Paper, most: f64) -> Vec<Measured> {
    let commands = &paper.experiments.command;
    let mut wanted: BTreeSet<_> =
        commands.iter().map(|command| (&command.name, Metric::makespan_ns)).collect();
    for binding in paper.claims.iter().flat_map(|claim| claim.bindings.values()) {
        if let Binding::Command(binding) = binding {
            wanted.insert((&binding.command, binding.metric));
        }
    }
    let mut all = Vec::new();
    for command in commands {
        for (x, rows) in command.simulated(&paper.folder, POLICIES, most).unwrap() {
            for (_, metric) in wanted.iter().filter(|(name, _)| **name == command.name) {
                let values = || {
                    let of = rows.iter().filter(|row| row.metric == *metric);
                    of.filter_map(|row| Some((row.value?, row.candidate.clone())))
                };
                let least = values().min_by(|a, b| a.0.total_cmp(&b.0));
                let Some((low, low_under)) = least else { continue };
                let (high, high_under) = values().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
                let (command, metric) = (command.name.clone(), metric.id().to_string());
                all.push(Measured { command, metric, x, low, low_under, high, high_under });
            }
        }
    }
    all
}

#[test]
fn limits_are_what_policies_do() {
    let again = std::env::var_os("UPDATE_LIMITS").is_some();
    for name in ["st-andrews", "pslist", "td-tp"] {
        let paper = Paper::load(name).unwrap();
        // All of them take long without optimisation.
        let rows = measured(&paper, if again { f64::INFINITY } else { 16.0 });
        if again {
            write(&path(name, "limits.csv"), &rows);
        }
        let kept = Limits::of(&paper).measured;
        for row in rows {
            assert!(
                kept.contains(&row),
                "{name}/limits.csv lacks {row:?}; UPDATE_LIMITS=1 renews it"
            );
        }
    }
}
