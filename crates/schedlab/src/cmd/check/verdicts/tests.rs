//! The gate on what is committed, and rules that it must not let through.

use super::*;
use crate::gate::Kind;
use crate::laboratory::Summed;
use clap::Parser;
use results::Verdict;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    verdicts: Verdicts,
}

fn file(name: &str) -> String {
    format!("{}/../../workloads/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The counts of these files in `workloads/` under `eevdf`.
fn tally(files: &[&str], truth: &str, changes: Vec<Change>, rule: Rule) -> Tally {
    let paths: Vec<String> = files.iter().map(|name| file(name)).collect();
    let words = ["verdicts", "--policy", "eevdf", "--truth", truth].into_iter().chain(paths.iter().map(String::as_str));
    let verdicts = CommandLine::parse_from(words).verdicts;
    let programs = verdicts.programs(&verdicts.workload).expect("programs");
    verdicts.gate(changes, rule).test(&programs).expect("counts")
}

/// A rule with one condition of four: the interval of this row alone excludes zero.
fn interval_alone(table: &mut Summed) {
    product_rule(table);
    for row in &mut table.rows {
        let excludes_zero = row.effect_low.zip(row.effect_high).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        row.verdict = row.verdict.map(|_| if excludes_zero { Verdict::Worse } else { Verdict::Undecided });
    }
}

/// A rule that decides nothing is right about all that is alike, and finds nothing.
fn nothing(table: &mut Summed) {
    table.compared.iter().for_each(|(at, _)| table.rows[*at].verdict = Some(Verdict::Undecided));
}

#[test]
fn alike_ones_are_alike_and_a_rule_of_one_condition_does_not_pass() {
    let files = ["redis.perf-script.txt.zst", "pipes.toml", "nice.toml"];
    let rows = |rule| tally(&files, "16", Change::null(), rule).assess();
    let product = rows(product_rule);
    assert!(product.null.0 > 100, "{product:?}");
    product.expect().expect("the gate passes");
    let canary = rows(interval_alone);
    let error = canary.expect().expect_err("it calls alike ones different");
    assert_eq!(error.exit_code(), 4);
    assert!(error.to_string().contains("decides too much"), "{error}");
}

#[test]
fn a_rule_that_decides_nothing_finds_nothing() {
    let changes = Change::all().into_iter().filter(|change| change.kind() == Kind::Known).collect();
    let assessment = tally(&["nice.toml"], "32", changes, nothing).assess();
    assert!(assessment.due.0 > 0 && assessment.due.1 == 0, "{assessment:?}");
    assert!(assessment.expect().expect_err("it finds nothing").to_string().contains("decides too little"));
}
