//! The gate on the committed counts, and rules that it must reject.

use super::*;
use clap::Parser;
use laboratory::Summed;
use laboratory::gate::Kind;
use results::Verdict;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    verdicts: Verdicts,
}

/// The lines of `docs/verdicts.csv`.
const COMMITTED: &str = include_str!("../../../../../docs/verdicts.csv");
const PICTURE: &str = include_str!("../../../../../docs/images/verdicts.svg");

fn file(name: &str) -> String {
    format!("{}/../../workloads/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Counts for these files in `workloads/` under `eevdf`.
fn tally(files: &[&str], truth: &str, changes: Vec<Change>, rule: Rule) -> Tally {
    let paths: Vec<String> = files.iter().map(|name| file(name)).collect();
    let words = ["verdicts", "--policy", "eevdf", "--truth", truth]
        .into_iter()
        .chain(paths.iter().map(String::as_str));
    let verdicts = CommandLine::parse_from(words).verdicts;
    let programs = verdicts.programs(&verdicts.workload).expect("programs");
    verdicts.gate(changes, rule).test(&programs).expect("counts")
}

/// A rule with one of the four conditions: the interval of this row alone excludes zero.
fn interval_alone(table: &mut Summed) {
    product_rule(table);
    for row in &mut table.rows {
        let excludes_zero = row
            .difference_low
            .zip(row.difference_high)
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        row.verdict =
            row.verdict.map(|_| if excludes_zero { Verdict::Worse } else { Verdict::Undecided });
    }
}

/// A rule that decides nothing: it has no false verdict and finds no difference.
fn nothing(table: &mut Summed) {
    table.compared.iter().for_each(|(at, _)| table.rows[*at].verdict = Some(Verdict::Undecided));
}

#[test]
fn equal_candidates_are_called_equal_and_a_rule_of_one_condition_fails() {
    let files = ["redis.perf-script.txt.zst", "pipes.toml", "nice.toml"];
    let rows = |rule| tally(&files, "16", Change::null(), rule).assess();
    let product = rows(product_rule);
    assert!(product.null.0 > 100, "{product:?}");
    product.expect().expect("the gate passes");
    let canary = rows(interval_alone);
    let error = canary.expect().expect_err("it calls equal candidates different");
    assert_eq!(error.exit_code(), 4);
    assert!(error.to_string().contains("decides too much"), "{error}");
}

#[test]
fn the_committed_counts_equal_new_counts() {
    let committed = Tally::from_csv(COMMITTED).expect("lines");
    let of = |workload: &str, is: &dyn Fn(&str) -> bool| {
        let lines = committed
            .lines
            .iter()
            .filter(|line| line.workload == workload && line.policy == "eevdf" && is(&line.change));
        lines.cloned().collect::<Vec<_>>()
    };
    let all = tally(&["nice.toml"], "256", Change::all(), product_rule);
    assert!(!all.lines.is_empty());
    assert_eq!(
        all.lines,
        of("nice", &|_| true),
        "write docs/verdicts.csv again: schedlab check verdicts -o DIR"
    );
    let null: Vec<String> = Change::null().iter().map(Change::to_string).collect();
    let redis = tally(&["redis.perf-script.txt.zst"], "16", Change::null(), product_rule);
    assert_eq!(
        redis.lines,
        of("redis.perf-script.txt.zst", &|change| null.iter().any(|name| name == change))
    );
}

#[test]
fn the_committed_counts_pass_include_all_bundled_workloads_and_match_the_picture() {
    let committed = Tally::from_csv(COMMITTED).expect("lines");
    committed.assess().expect().expect("the gate passes");
    let folder = file("");
    let all = bundled(Path::new(&folder)).expect("workloads");
    let is_of_causes = |path: &OsString| path.to_string_lossy().ends_with(".rec.zst");
    assert_eq!(all.iter().filter(|path| is_of_causes(path)).count(), 5);
    for path in all {
        let path = path.to_string_lossy().into_owned();
        let name = path.rsplit('/').next().unwrap_or(&path);
        // A description beside a recording has its name.
        let stem = name.split(['.', ':']).next().unwrap_or(name);
        let begin = if name.ends_with(".rec.zst") { name } else { stem };
        assert!(
            committed.lines.iter().any(|line| line.workload.starts_with(begin)),
            "{path} is not in docs/verdicts.csv"
        );
    }
    assert_eq!(
        PICTURE,
        picture(&committed),
        "docs/images/verdicts.svg is not of docs/verdicts.csv"
    );
}

#[test]
fn a_rule_that_decides_nothing_finds_nothing() {
    let changes = Change::all().into_iter().filter(|change| change.kind() == Kind::Known).collect();
    let assessment = tally(&["nice.toml"], "32", changes, nothing).assess();
    assert!(assessment.due.0 > 0 && assessment.due.1 == 0, "{assessment:?}");
    assert!(
        assessment
            .expect()
            .expect_err("it finds nothing")
            .to_string()
            .contains("decides too little")
    );
}
