//! The record as tables.

use crate::record::{OURS, Record, TASKS};
use crate::target::TARGETS;
use std::fmt::Write;

const OPERATIONS: [&str; 4] = ["pop", "insert", "remove", "insert_front"];

/// Everything on the page that numbers make.
pub fn tables(record: &Record) -> String {
    let tools = record.tools.of.iter().map(|(name, version)| format!("{name}: {version}"));
    let mut page = format!("Counted with {}.\n\n", tools.collect::<Vec<_>>().join("; "));
    page += "## A pop and an insert: mean\n\n\
             Instructions without the loop's own, at N = 1 / 10 / 100 / 1000 tasks.\n\n";
    page += &slices(record, "10", "10 levels at random");
    page += &slices(record, "one", "all tasks at one level");
    page += &operations(record);
    page += "## Memory\n\nBytes. Code is that of all verbs as functions.\n\n";
    page += &sizes(record, &TARGETS.map(|target| target.name));
    page += "\n## Goals that are missed\n\n";
    missed(record).iter().for_each(|line| page += &format!("- {line}\n"));
    page
}

fn slices(record: &Record, levels: &str, words: &str) -> String {
    let names = TARGETS.map(|target| target.name).join(" | ");
    let mut table = format!("| {words} | {names} |\n|---{}|\n", "|---".repeat(TARGETS.len()));
    let ours = OURS.iter().flat_map(|queue| [("C", queue), ("Rust", queue)]);
    let peers = ["list_head", "list_head_init", "multiq"];
    for (language, queue) in ours.chain(peers.iter().map(|peer| ("C", peer))) {
        let column = |target: &str| {
            let cost = |tasks| record.slice(language, target, queue, levels, tasks);
            let costs: Option<Vec<f64>> = TASKS.into_iter().map(cost).collect();
            costs.map_or(String::new(), |costs| list(&costs))
        };
        let columns = TARGETS.map(|target| column(target.name)).join(" | ");
        let language = if language == "Rust" { " in Rust" } else { "" };
        let _ = writeln!(table, "| {queue}{language} | {columns} |");
    }
    table + "\n"
}

/// The costs of each operation alone.
fn operations(record: &Record) -> String {
    let mut text = "## Each operation: mean and maximum\n\n\
                    Instructions of the inlined operation between two marks. In a random mix of \
                    operations on N tasks at 10 levels: the mean, the 99th percentile and the \
                    maximum. Last, the maximum of all sequences of six operations on four tasks at \
                    two levels.\n"
        .to_string();
    for target in &TARGETS {
        let heading = "operation | mean, p99, max at N = 10 | at N = 1000 | all sequences";
        let _ = writeln!(text, "\n| {} | {heading} |\n|---|---|---|---|---|", target.name);
        for queue in OURS.iter().chain(&["list_head", "multiq"]) {
            for operation in OPERATIONS {
                let at = [("target", target.name), ("queue", queue)];
                let mixed = |tasks| {
                    let of = [at[0], at[1], ("operation", operation), ("tasks", tasks)];
                    let cell = record.find(&of);
                    let cell = cell.unwrap_or_else(|| panic!("no {operation} of {queue}"));
                    let [mean, p99, max] = ["mean", "p99", "max"].map(|name| cell.value(name));
                    format!("{mean:.1}, {p99}, {max}")
                };
                let worst = record.find(&[at[0], at[1], ("of", "all sequences")]);
                let worst = worst.map_or(String::new(), |cell| cell.value(operation).to_string());
                let columns = [mixed("10"), mixed("1000"), worst].join(" | ");
                let _ = writeln!(text, "| {queue} | {operation} | {columns} |");
            }
        }
    }
    text + "\n"
}

/// Code and RAM.
pub fn sizes(record: &Record, targets: &[&str]) -> String {
    let mut table = "| target | queue | code at -Os, -O2 | RAM of a queue | RAM of a task |\n\
                     |---|---|---|---|---|\n"
        .to_string();
    for target in targets {
        for queue in OURS {
            let of = [("target", *target), ("queue", queue), ("of", "size")];
            let cell = record.find(&of).unwrap_or_else(|| panic!("no size of {queue}"));
            let [small, fast, queue_bytes, task] =
                ["code_bytes_small", "code_bytes_fast", "queue_bytes", "task_bytes"]
                    .map(|name| cell.value(name));
            let _ = writeln!(
                table,
                "| {target} | {queue} | {small}, {fast} | {queue_bytes} | {task} |"
            );
        }
    }
    table
}

/// The goals that the record misses.
fn missed(record: &Record) -> Vec<String> {
    let mut missed = vec![];
    let mut hold = |what: String, costs: &[f64], goals: &[f64]| {
        // Counts have a digit behind the point.
        if costs.iter().zip(goals).any(|(cost, goal)| *cost > goal + 0.05) {
            missed.push(format!("{what}: {}, goal {}", list(costs), list(goals)));
        }
    };
    for queue in OURS {
        let peer = match queue {
            "rr" => Some("list_head"),
            "priority" | "ruler" => Some("multiq"),
            _ => None,
        };
        for target in TARGETS.map(|target| target.name) {
            let slices = |language, target, queue, factor: f64| {
                let cost =
                    |tasks| Some(factor * record.slice(language, target, queue, "10", tasks)?);
                TASKS.into_iter().filter_map(cost).collect::<Vec<f64>>()
            };
            let ours = slices("C", target, queue, 1.0);
            let rust = slices("Rust", target.trim_end_matches(" gcc"), queue, 1.1);
            hold(format!("{queue} on {target}, 1.1 × Rust"), &ours, &rust);
            if let Some(peer) = peer {
                hold(
                    format!("{queue} on {target}, {peer}"),
                    &ours,
                    &slices("C", target, peer, 1.0),
                );
            }
        }
    }
    for (queue, code, ram) in
        [("rr", 120.0, 8.0), ("priority", 500.0, 300.0), ("ruler", 500.0, 300.0)]
    {
        let of = [("target", "cortex-m4"), ("queue", queue), ("of", "size")];
        let size = record.find(&of).unwrap_or_else(|| panic!("no size of {queue}"));
        let what = format!("{queue} on cortex-m4, bytes of");
        hold(format!("{what} code"), &[size.value("code_bytes_small")], &[code]);
        hold(format!("{what} RAM"), &[size.value("queue_bytes")], &[ram]);
    }
    missed
}

fn list(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.1}")).collect::<Vec<_>>().join(" / ")
}
