//! `mlfq` against its public relatives: ReactOS's dispatcher, macOS' scheduler, and what Microsoft
//! documents of Windows.
//!
//! `tools/relatives` reads facts out of their sources (`relatives/facts.csv`) and writes what they
//! decide (`relatives/vectors.csv`). `relatives/differences.csv` has a line for each vector that
//! `mlfq` decides otherwise: its own decision, and the name of the difference, which is explained in
//! docs/policies/mlfq.md. `UPDATE_RELATIVES=1` writes the decisions anew and leaves the names.

#[path = "support/play.rs"]
mod play;

use play::*;
use schedsim::policy::{Enqueue, FeedbackRules, Mlfq, TaskView, Windows};
use schedsim::workload::Action;
use schedsim::{Machine, Nanos, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A quantum of six, so that a wait costs one.
const SIXTHS: Windows = Windows { quantum: Nanos(6), stretch: 1, boost: 1 };

/// A line of vectors.csv.
struct Vector {
    relative: String,
    name: String,
    event: String,
    base: u16,
    priority: u16,
    left: u64,
    amount: u16,
    /// The priority, what is left of the quantum, the place; empty where the relative says nothing.
    then: [String; 3],
}

#[test]
fn every_difference_from_a_relative_is_named() {
    let differences = differences();
    let mut lines = vec!["relative,vector,priority,left,place,difference".to_owned()];
    let mut wrong = Vec::new();
    for vector in vectors() {
        let ours = decided(SIXTHS, &vector);
        if agrees(&ours, &vector.then) {
            continue;
        }
        let key = (vector.relative.clone(), vector.name.clone());
        let (recorded, name) = differences.get(&key).cloned().unwrap_or_default();
        if recorded != ours || name.is_empty() {
            wrong.push(format!(
                "{key:?}: {:?} there, {ours:?} here, on record {recorded:?}",
                vector.then
            ));
        }
        let [priority, left, place] = ours;
        lines.push(format!("{},\"{}\",{priority},{left},{place},{name}", key.0, key.1));
    }
    if std::env::var_os("UPDATE_RELATIVES").is_some() {
        std::fs::write(folder().join("differences.csv"), lines.join("\n") + "\n").unwrap();
        return;
    }
    assert!(
        wrong.is_empty(),
        "{}\nUPDATE_RELATIVES=1 writes what is decided; name each difference in relatives/differences.csv",
        wrong.join("\n")
    );
    assert_eq!(lines.len() - 1, differences.len(), "a line of a vector that agrees or is gone");
}

#[test]
fn each_name_of_a_difference_is_explained_and_each_explanation_is_one() {
    let names: BTreeSet<String> = differences().into_values().map(|(_, name)| name).collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policies/mlfq.md");
    let page = std::fs::read_to_string(page).unwrap();
    let explained: BTreeSet<String> = page
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| *")?.split_once("* |")?.0.to_owned()))
        .collect();
    assert_eq!(names, explained);
    let all = vectors();
    let alike = all.iter().filter(|vector| agrees(&decided(SIXTHS, vector), &vector.then)).count();
    for says in [format!("as {} vectors", all.len()), format!("In {alike}\n")] {
        assert!(page.contains(&says), "docs/policies/mlfq.md does not say `{}`", says.trim());
    }
}

/// The test would see another policy: each of these mutations contradicts vectors that agree now.
#[test]
fn a_mutated_policy_is_found() {
    let agreeing: Vec<Vector> = vectors()
        .into_iter()
        .filter(|vector| agrees(&decided(SIXTHS, vector), &vector.then))
        .collect();
    assert!(agreeing.len() > 100);
    for (what, mutated) in [
        ("a boost of two levels", Windows { boost: 2, ..SIXTHS }),
        ("no boost", Windows { boost: 0, ..SIXTHS }),
        ("a quantum twice as long", Windows { quantum: Nanos(12), ..SIXTHS }),
    ] {
        let broken =
            agreeing.iter().filter(|vector| !agrees(&decided(mutated, vector), &vector.then));
        assert!(broken.count() > 5, "{what} goes unseen");
    }
}

/// The difference `one boost for all` is the option's default and nothing else: with the relative's
/// own boost none of them is left.
#[test]
fn with_the_boost_of_the_device_the_levels_are_those_of_reactos() {
    let differences = differences();
    let mut seen = 0;
    for vector in vectors().into_iter().filter(|vector| vector.event == "wake") {
        let key = (vector.relative.clone(), vector.name.clone());
        if differences.get(&key).is_some_and(|(_, name)| name == "one boost for all") {
            let ours = decided(Windows { boost: vector.amount, ..SIXTHS }, &vector);
            assert_eq!(ours[0], vector.then[0], "{}", vector.name);
            seen += 1;
        }
    }
    assert!(seen > 10);
}

/// The place in the list is the policy's own, not only that of its rules: a preempted task goes on
/// before its equals, one that used its quantum goes on after them.
#[test]
fn the_policy_keeps_the_places_that_its_rules_give() {
    let hog = || task(120, NOW, &[(90_000 * MS, Action::Exit)]);
    let better = task(100, at(10 * MS), &[(MS, Action::Exit)]);
    let (_, events) = run_until(
        Mlfq::new(1, Windows::default()),
        &Machine::ideal(1),
        &workload(vec![hog(), hog(), better]),
        Time(60 * MS),
    );
    let order: Vec<i64> = switches(&events).into_iter().map(|(_, task)| task).collect();
    assert_eq!(order, [0, 2, 0, 1]);
}

/// What `mlfq` decides: the priority, the rest of the quantum, the place.
fn decided(rules: Windows, vector: &Vector) -> [String; 3] {
    // XNU's default of 31 is 8 here; what is better or worse by levels stays so.
    let offset = if vector.relative == "xnu" { 23 } else { 0 };
    let prio = prio_of(vector.base.saturating_sub(offset).max(1));
    let mut standing = rules.admit(&TaskView::of(prio));
    let own = 31 - standing.base;
    let rises = vector.priority - vector.base;
    standing.level = standing.base - rises;
    standing.left = Nanos(vector.left);
    standing.is_rescued = vector.event.ends_with("-lifted");
    let quantum = |rules: Windows| rules.admit(&TaskView::of(prio)).quantum.0;
    let mut place = String::new();
    match vector.event.trim_end_matches("-lifted") {
        "base" => {}
        "wait" | "starve" => {
            rules.review(&mut standing, Some(Nanos::from_millis(vector.amount.into())));
            if vector.event == "starve" {
                place = if standing.is_rescued { "next" } else { "waits" }.to_owned();
            }
        }
        "use" => (0..vector.amount).for_each(|_| rules.quantum_over(&mut standing)),
        "stretch" => {
            let stretched = Windows { stretch: vector.amount, ..rules };
            standing.left = Nanos(quantum(stretched) / quantum(rules));
        }
        "quantum-us" => standing.left = Nanos(Windows::default().quantum.0 / US),
        "ticks-client" => standing.left = Nanos(Windows::default().quantum.0 / 15_625_000),
        "ticks-server" => standing.left = Nanos(187_500_000 / 15_625_000),
        event => {
            let why = match event {
                "wake" => Enqueue::Wakeup,
                "quantum-end" => Enqueue::SliceOver,
                "yield" => Enqueue::Yielded,
                "preempt" => Enqueue::Preempted,
                "new" => Enqueue::New,
                _ => panic!("no event `{event}`"),
            };
            let to_tail = rules.ready(&mut standing, why);
            place = if to_tail { "tail" } else { "head" }.to_owned();
        }
    }
    let priority = 31 - standing.level + (vector.base - own.min(vector.base));
    let shown =
        |known: &String, value: String| if known.is_empty() { String::new() } else { value };
    let [first, second, third] = &vector.then;
    [
        shown(first, priority.to_string()),
        shown(second, standing.left.0.to_string()),
        shown(third, place),
    ]
}

/// The kernel priority of a task whose base is this one of Windows'.
fn prio_of(base: u16) -> u8 {
    let is = |prio: &u8| 31 - SIXTHS.admit(&TaskView::of(*prio)).base == base;
    (0..140).find(is).unwrap_or_else(|| panic!("no task of Linux has the base priority {base}"))
}

fn agrees(ours: &[String; 3], theirs: &[String; 3]) -> bool {
    ours.iter().zip(theirs).all(|(ours, theirs)| theirs.is_empty() || ours == theirs)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/relatives")
}

fn vectors() -> Vec<Vector> {
    let number = |cell: &str| cell.parse().unwrap_or(0);
    let line = |cells: Vec<String>| Vector {
        relative: cells[0].clone(),
        name: cells[1].clone(),
        event: cells[2].clone(),
        base: number(&cells[3]),
        priority: number(&cells[4]),
        left: number(&cells[5]).into(),
        amount: number(&cells[6]),
        then: [7, 8, 9].map(|column| cells[column].clone()),
    };
    lines("vectors.csv").into_iter().map(line).collect()
}

/// By relative and vector: what `mlfq` decides, and the difference's name.
fn differences() -> BTreeMap<(String, String), ([String; 3], String)> {
    let entry = |cells: Vec<String>| {
        let ours = [2, 3, 4].map(|column| cells[column].clone());
        ((cells[0].clone(), cells[1].clone()), (ours, cells[5].clone()))
    };
    lines("differences.csv").into_iter().map(entry).collect()
}

/// The cells of a file, without its first line; a quoted cell may hold commas.
fn lines(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder().join(name)).unwrap_or_default();
    let cells = |line: &str| {
        let mut quoted = false;
        let split = |sign: char| {
            quoted ^= sign == '"';
            sign == ',' && !quoted
        };
        line.split(split).map(|cell| cell.trim_matches('"').to_owned()).collect()
    };
    text.lines().skip(1).map(cells).collect()
}
