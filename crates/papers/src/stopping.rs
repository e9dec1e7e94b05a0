//! The pslist post's stopping rule on the ensembles on record: at least five repetitions, and more
//! until the relative standard error is low enough. `papers/pslist/stopping.csv` says of each
//! ensemble of its kernels in `ensembles.csv` what that error is, and after how many repetitions the rule would have
//! stopped. `UPDATE_STOPPING=1 cargo test -p schedlab-papers --lib stopping` writes it again.

use results::Row;
use statistics::Estimate;
use std::path::PathBuf;

/// The post's fewest repetitions.
const FEWEST: f64 = 5.0;
/// The relative standard error at which the rule stops: that of `--protocol pslist` (L-ERR02).
const ENOUGH: f64 = 0.01;

#[test]
fn the_stopping_rule_of_the_post_is_on_record_and_all_benchmarks_but_two_meet_it() {
    let rows = results::from_csv(&std::fs::read_to_string(file("ensembles.csv")).unwrap()).unwrap();
    let of_its_kernels = |row: &&Row| row.world.to_string().ends_with("-6.1");
    let lines: Vec<String> = rows.iter().filter(of_its_kernels).filter_map(line).collect();
    let table = format!(
        "workload,cpus,order,metric,runs,relative_standard_error,stops_at\n{}\n",
        lines.join("\n")
    );
    let path = file("stopping.csv");
    if std::env::var_os("UPDATE_STOPPING").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let on_record = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(on_record == table, "{}: UPDATE_STOPPING=1 writes it", path.display());
    let benchmarks =
        ["./yields ", "./files read /dev/", "./files write /dev/", "./files ", "hackbench "];
    for program in benchmarks {
        assert!(lines.iter().any(|line| line.starts_with(program)), "no ensemble of {program}");
    }
    let own = lines.iter().filter(|line| benchmarks.iter().any(|name| line.starts_with(name)));
    let more: Vec<[&str; 4]> = own
        .filter(|line| !line.ends_with(&format!(",{FEWEST}")))
        .map(|line| {
            let row: Vec<&str> = line.split(',').collect();
            [row[0], row[1], row[2], row[row.len() - 1]]
        })
        .collect();
    // On two CPUs threads of the tree are alone on one by chance (L-CLM01-spread).
    let known =
        [["./yields 32 50000", "2", "tree", "171"], ["./yields 128 50000", "2", "tree", "6"]];
    assert_eq!(more, known, "these ask for more repetitions");
}

/// A wider interval asks for more repetitions, four times as many for twice the width.
#[test]
fn an_ensemble_that_scatters_goes_on() {
    let of = |half: f64| {
        let estimate = Estimate { mean: 100.0, half_width: Some(half) };
        stops_at(relative_standard_error(&estimate, 16), 16)
    };
    assert_eq!([of(0.1), of(2.1314), of(4.2629), of(8.5258)], [5.0, 16.0, 64.0, 256.0]);
}

fn line(row: &Row) -> Option<String> {
    let (mean, low, high) = (row.value?, row.ci_low?, row.ci_high?);
    let estimate = Estimate { mean, half_width: Some((high - low) / 2.0) };
    let error = relative_standard_error(&estimate, row.runs);
    let order = if row.text("kernel_arguments") == "pslist" { "pslist" } else { "tree" };
    let stops = stops_at(error, row.runs);
    Some(format!(
        "{},{},{order},{},{},{error:.6},{stops}",
        row.workload, row.cpus, row.metric, row.runs
    ))
}

/// The standard error of the mean as a share of it, from the interval of this number of runs.
fn relative_standard_error(estimate: &Estimate, runs: u32) -> f64 {
    // What half of the interval is in standard errors: of runs whose standard error is one.
    let unit: Vec<f64> = (0..runs).map(|run| if run % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let n = f64::from(runs);
    let mean = unit.iter().sum::<f64>() / n;
    let variance = unit.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = Estimate::of(&unit).and_then(|unit| unit.half_width).unwrap_or(f64::INFINITY);
    estimate.relative_half_width() / (half / (variance / n).sqrt())
}

/// After how many repetitions the rule stops, if they scatter as these do.
fn stops_at(error: f64, runs: u32) -> f64 {
    let spread = error * f64::from(runs).sqrt();
    // Sixteen runs at exactly the threshold are enough, whatever the last digit.
    FEWEST.max(((spread / ENOUGH).powi(2) - 0.01).ceil())
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../papers/pslist").join(name)
}
