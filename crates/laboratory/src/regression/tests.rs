//! Rules, environments and intervals of gates.

use super::*;
use results::{Input, InputKind, SubjectKind};

fn row(value: f64, half: Option<f64>) -> Row {
    Row {
        workload: "yield:8".to_string(),
        candidate: "scx:./x".to_string(),
        cpus: 1,
        value: Some(value),
        ci_low: half.map(|half| value - half),
        ci_high: half.map(|half| value + half),
        runs: if half.is_some() { 16 } else { 1 },
        ..Row::new(World::Vm { kernel: "6.18".to_string() }, Metric::instructions_per_yield)
    }
    .at("kernel_sha256", "aa")
    .at("files_sha256", "old")
}

fn judged(old: Vec<Row>, new: Vec<Row>, rule: &str) -> Result<Gate, Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("results.json");
    std::fs::write(&path, Results::new(old).to_json()?).expect("a file");
    let rule: Rule = rule.parse().map_err(Error::Usage)?;
    let baseline = Baseline::read(folder.path(), &[rule], &[])?;
    baseline.judge(&Answer::new(Results::new(new), String::new()), false)
}

fn fails(old: Row, new: Row, rule: &str) -> bool {
    let gate = judged(vec![old], vec![new], rule).expect("a gate");
    assert_eq!(gate.findings.len(), 1);
    gate.findings[0].outcome == Outcome::Failed
}

#[test]
fn a_counted_number_fails_right_beyond_its_limit_and_never_within() {
    let rule = "instructions_per_yield > +1%";
    let of = |new: f64| fails(row(1000.0, None), row(new, None), rule);
    assert!(!of(1000.0) && !of(1010.0) && !of(500.0) && of(1010.1));
    let lower = |new: f64| fails(row(1000.0, None), row(new, None), "instructions_per_yield < -1%");
    assert!(!lower(990.0) && lower(989.9));
    let worse = |new: f64| fails(row(1000.0, None), row(new, None), "instructions_per_yield worse");
    assert!(!worse(1020.0) && worse(1020.1), "2 % do not matter");
}

#[test]
fn a_measured_number_fails_only_when_the_bound_of_its_interval_passes_the_limit() {
    let of = |new: f64, half: f64| {
        fails(row(1000.0, Some(3.0)), row(new, Some(half)), "instructions_per_yield > +1%")
    };
    // The error of the difference is 5, and 1.91 times that if it may be wrong once in a thousand.
    assert!(!of(1019.4, 4.0) && of(1019.7, 4.0));
    assert!(!of(1200.0, 250.0));
    // A number from nothing.
    assert!(fails(row(0.0, None), row(1.0, None), "instructions_per_yield > +1%"));
    assert!(!fails(row(0.0, None), row(0.0, None), "instructions_per_yield > +1%"));
}

#[test]
fn a_failed_candidate_fails_the_gate_and_a_new_number_is_skipped() {
    let failed = Row { value: None, note: Some("failed: stall".to_string()), ..row(0.0, None) };
    let gate = judged(vec![row(1.0, None)], vec![failed], "instructions_per_yield worse");
    let finding = gate.expect("a gate").findings.remove(0);
    assert_eq!((finding.outcome, finding.says.as_str()), (Outcome::Failed, "failed: stall"));
    // What neither has is no regression, but a candidate that fails again fails.
    let of = |note: &str| {
        let null = Row { value: None, note: Some(note.to_string()), ..row(0.0, None) };
        let gate = judged(vec![null.clone()], vec![null], "instructions_per_yield worse");
        gate.expect("a gate").findings[0].outcome
    };
    assert_eq!((of("too few samples"), of("failed: stall")), (Outcome::Skipped, Outcome::Failed));
    let new = Row { workload: "yield:2".to_string(), ..row(9.0, None) };
    let gate =
        judged(vec![row(1.0, None)], vec![row(1.0, None), new], "instructions_per_yield worse");
    let outcomes: Vec<Outcome> =
        gate.expect("a gate").findings.iter().map(|finding| finding.outcome).collect();
    assert_eq!(outcomes, [Outcome::Passed, Outcome::Skipped]);
}

#[test]
fn another_candidate_is_compared_where_each_is_alone_and_by_name_otherwise() {
    let named = |name: &str, value: f64| Row { candidate: name.to_string(), ..row(value, None) };
    let rule = "instructions_per_yield > +1%";
    assert!(fails(named("scx:./old", 100.0), named("scx:./new", 102.0), rule));
    let (old, new) =
        (vec![named("a", 100.0), named("b", 200.0)], vec![named("b", 200.0), named("a", 101.5)]);
    let gate = judged(old, new, rule).expect("a gate");
    let failed: Vec<&str> = gate.of(Outcome::Failed).map(|of| of.candidate.as_str()).collect();
    assert_eq!(failed, ["a"]);
}

#[test]
fn another_environment_is_refused_by_name_and_another_scheduler_is_none() {
    let rule = "instructions_per_yield > +1%";
    let of = |new: Row| judged(vec![row(1.0, None)], vec![new], rule);
    assert!(of(row(1.0, None).at("files_sha256", "new")).is_ok());
    for (new, words) in [
        (row(1.0, None).at("kernel_sha256", "bb"), "the guest's kernel sha256 was aa and is bb"),
        (
            Row { world: World::Vm { kernel: "6.12".into() }, ..row(1.0, None) }
                .at("kernel", "6.12"),
            "the guest's kernel was none and is 6.12",
        ),
    ] {
        let error = of(new).expect_err(words);
        assert!(error.exit_code() == 3 && error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("--allow-environment"), "{error}");
    }
    // Another setting is another question.
    let error = of(row(1.0, None).at("nudges", "other")).expect_err("nothing is the same");
    assert!(
        error.exit_code() == 3 && error.to_string().contains("yield:8 (vm:6.18, 1 CPU)"),
        "{error}"
    );
    // On a real machine kernel and CPU count, and a run needs an interval.
    let host = |value: f64, half| Row { world: World::Host, ..row(value, half) };
    assert!(!fails(host(1.0, Some(0.1)), host(1.0, Some(0.1)), rule));
    assert!(fails(host(1.0, Some(0.1)), host(1.0, None), rule));
    let mut results = Results::new(vec![host(1.0, Some(0.1))]);
    results.cpu = "another".to_string();
    let (old, new) =
        (results, Answer::new(Results::new(vec![host(1.0, Some(0.1))]), String::new()));
    let path = Path::new("none");
    let environment = Environment { path, old: &old, new: &new };
    let pair = [(&old.rows[0], &new.results.rows[0])];
    let differs = environment.differences(pair.into_iter());
    assert!(differs.len() == 1 && differs[0].contains("CPU was another"), "{differs:?}");
}

#[test]
fn a_changed_workload_is_another_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = |hash: &str| Input {
        kind: InputKind::Workload,
        name: "w.toml".to_string(),
        sha256: hash.to_string(),
        source: None,
    };
    results::InputLock::new(vec![input("aa")]).write(folder.path()).expect("a lock");
    let (old, mut new) = (Results::new(vec![]), Answer::new(Results::new(vec![]), String::new()));
    let path = folder.path().join("results.json");
    let mut differs = |hash: &str| {
        new.inputs = vec![input(hash)];
        Environment { path: &path, old: &old, new: &new }.differences(std::iter::empty()).len()
    };
    assert_eq!([differs("aa"), differs("bb")], [0, 1]);
}

#[test]
fn rules_are_read_and_wrong_ones_say_what_a_rule_is() {
    let metric = |text: &str| {
        let rule: Rule = text.parse().map_err(Error::Usage)?;
        rule.metric(&[])
    };
    assert_eq!(metric("wake_p99[redis] worse").unwrap(), Metric::wakeup_latency_ns_p99);
    assert_eq!(metric("switches>1%").unwrap(), Metric::switches);
    assert_eq!(metric("makespan_ns < -0.5 %").unwrap(), Metric::makespan_ns);
    for (text, word) in [
        ("", "no rule"),
        ("switches", "no rule"),
        ("switches better", "neither"),
        ("switches > 5", "percentage"),
        ("switches > x%", "no number"),
        ("switches > inf%", "no number"),
        ("> 5%", "no metric"),
        ("switches[a > 5%", "not closed"),
        ("instructions_per_yeild worse", "Did you mean `instructions_per_yield`"),
        ("warm_up worse", "no better side"),
    ] {
        let error = metric(text).expect_err(text);
        assert!(error.exit_code() == 2 && error.to_string().contains(word), "{text}: {error}");
    }
}

#[test]
fn a_part_or_metric_that_is_not_there_is_named_with_what_is() {
    let part = |name: &str| row(1.0, None).of(SubjectKind::Program, name);
    let of = |rows: Vec<Row>, rule: &str| {
        let error = judged(rows.clone(), rows, rule).expect_err(rule);
        assert_eq!(error.exit_code(), 3, "{error}");
        error.to_string()
    };
    let said = of(vec![part("redis"), part("xz")], "instructions_per_yield[rediz] worse");
    assert!(said.contains("Did you mean `redis`?") && said.contains("redis, xz"), "{said}");
    let said = of(vec![part("redis")], "instructions_per_yield worse");
    assert!(said.contains("instructions_per_yield[redis]"), "{said}");
    let said = of(vec![row(1.0, None)], "instructions_per_yield[redis] worse");
    assert!(said.contains("--by comm"), "{said}");
    let said = of(vec![row(1.0, None)], "switches worse");
    assert!(said.contains("has no switches; it has instructions_per_yield"), "{said}");
}
