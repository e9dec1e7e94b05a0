//! Replication, statistics, budgets, verdicts, output and exit codes in a world with scripted
//! results: no run takes time.

use laboratory::{Against, Experiment, Goal, Precision, RoundSettings, Settings, Stopping};
use program::Error;
use results::{Answer, Metric, Row, Verdict};
use schedlab_runner::class::Class;
use std::cell::{Cell, RefCell};
use std::fs;
use std::time::Duration;
use worlds::mock::{Mock, command, run};
use worlds::simulator::Simulator;
use worlds::{Candidate, Determinism, Program, Run, Session, World};

const BASELINE: Candidate<'static> = Candidate::Class(Class::Other);
const OTHER: Candidate<'static> = Candidate::Class(Class::Batch);

fn settings() -> Settings {
    let seconds = Duration::from_secs;
    let precision = Some(Precision::HalfWidth(0.02));
    let stopping = Stopping {
        min_runs: 8,
        max_runs: 100,
        min_time: seconds(0),
        max_time: Some(seconds(400)),
        precision,
    };
    Settings {
        ensemble: Some(8),
        goal: Some(Goal { half_width: 0.02, max_runs: 20 }),
        rounds: RoundSettings { warm_up: 1, against_itself: true, stopping, margin: 0.02 },
        ..Settings::once(1)
    }
}

fn compare(worlds: Vec<Box<dyn World + '_>>, settings: Settings) -> Result<Answer, Error> {
    let (programs, candidates) = (vec![command("load")], Vec::new());
    Experiment { programs, worlds, candidates, against: Against::Usual, cpus: Vec::new(), settings }
        .run()
}

/// The results of candidates: the other candidate differs by this factor, and each run by its
/// noise.
fn answers<'a>(determinism: Determinism, factor: f64, noise: impl Fn(u64) -> f64 + 'a) -> Mock<'a> {
    let count = Cell::new(0);
    Mock::new(determinism, move |session: &Session<'_>| {
        count.set(count.get() + 1);
        let number = if determinism == Determinism::Noisy { count.get() } else { session.seed };
        let factor = if session.trial.candidate == OTHER { factor } else { 1.0 };
        Ok(run(&[
            (Metric::makespan_ns, 1e6 * factor * (1.0 + noise(number))),
            (Metric::switches, 10.0),
        ]))
    })
}

fn row<'a>(answer: &'a Answer, candidate: &Candidate<'_>, metric: Metric) -> &'a Row {
    let is_it = |row: &&Row| row.candidate == candidate.to_string() && row.metric == metric;
    answer
        .results
        .rows
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {metric} of {candidate}: {:?}", answer.results.rows))
}

/// Alternates up and down.
fn wave(number: u64) -> f64 {
    [0.0, 0.01, -0.01][number as usize % 3]
}

#[test]
fn seeds_are_repeated_until_the_interval_is_narrow_and_the_verdict_has_a_size() {
    let answer = compare(vec![Box::new(answers(Determinism::Seeded, 0.5, wave))], settings())
        .expect("an answer");
    let (base, other) =
        (row(&answer, &BASELINE, Metric::makespan_ns), row(&answer, &OTHER, Metric::makespan_ns));
    assert!(base.runs >= 8 && base.verdict.is_none() && base.ci_high > base.value, "{base:?}");
    assert_eq!(
        (other.verdict, other.baseline.as_deref()),
        (Some(Verdict::Better), Some("kernel:other"))
    );
    assert!((other.effect.expect("a size") + 0.5).abs() < 0.01, "{other:?}");
    assert_eq!(row(&answer, &OTHER, Metric::switches).verdict, Some(Verdict::Equivalent));
    assert!(answer.end.is_ok() && answer.results.reproduce.is_some());
    assert!(
        answer.text.contains("kernel:batch: better: makespan_ns 50 % shorter"),
        "{}",
        answer.text
    );
    // A canary: a comparison of equal candidates gets no verdict.
    let same = compare(vec![Box::new(answers(Determinism::Seeded, 1.0, wave))], settings())
        .expect("an answer");
    assert!(row(&same, &OTHER, Metric::makespan_ns).verdict != Some(Verdict::Better));
}

#[test]
fn members_are_numbered_equally_for_all_candidates_and_a_single_run_has_no_number() {
    let members = RefCell::new(Vec::new());
    let mock = || {
        Mock::new(Determinism::Seeded, |session: &Session<'_>| {
            members.borrow_mut().push((
                session.trial.candidate.to_string(),
                session.member,
                session.seed,
            ));
            Ok(Run { random: false, ..run(&[(Metric::makespan_ns, 5.0)]) })
        })
    };
    let answer = compare(vec![Box::new(mock())], settings()).expect("an answer");
    assert_eq!(row(&answer, &BASELINE, Metric::makespan_ns).runs, 8);
    let of = |candidate: &Candidate<'_>| -> Vec<(Option<u64>, u64)> {
        let own = members.borrow();
        own.iter()
            .filter(|(of, ..)| *of == candidate.to_string())
            .map(|(_, member, seed)| (*member, *seed))
            .collect()
    };
    assert_eq!(of(&BASELINE), (1..=8).map(|number| (Some(number), number)).collect::<Vec<_>>());
    assert_eq!(of(&BASELINE), of(&OTHER));
    members.borrow_mut().clear();
    let alone =
        compare(vec![Box::new(mock())], Settings { ensemble: Some(1), goal: None, ..settings() })
            .expect("an answer");
    assert_eq!(of(&BASELINE), [(None, 1)], "nothing is nudged");
    assert!(alone.results.rows.iter().all(|row| row.verdict.is_none() && row.runs == 1));
}

#[test]
fn a_spent_budget_ends_with_code_5_partial_results_and_no_reproduce_command() {
    let wild = |number: u64| if number.is_multiple_of(2) { 0.5 } else { -0.5 };
    for determinism in [Determinism::Seeded, Determinism::Noisy] {
        let answer = compare(vec![Box::new(answers(determinism, 1.0, wild))], settings())
            .expect("an answer");
        assert_eq!(answer.end.as_ref().expect_err("it is wide").exit_code(), 5, "{determinism:?}");
        assert!(
            answer.results.reproduce.is_none() && answer.results.command.starts_with("schedlab")
        );
        let base = row(&answer, &BASELINE, Metric::makespan_ns);
        assert!(
            base.runs >= 4
                && base.note.as_deref().is_some_and(|note| note.contains("inconclusive")),
            "{base:?}"
        );
    }
}

#[test]
fn rounds_are_paired_and_a_failed_run_is_left_out_and_reported() {
    let calls = Cell::new(0);
    let mut inner = answers(Determinism::Noisy, 0.8, wave);
    let mock = Mock::new(Determinism::Noisy, |session: &Session<'_>| {
        calls.set(calls.get() + 1);
        let mut runs = inner
            .run(std::slice::from_ref(session), &indicatif::ProgressBar::hidden())
            .expect("the mock continues");
        if calls.get() == 35 { Err(Error::Input("it broke".to_string())) } else { runs.remove(0) }
    });
    let answer = compare(vec![Box::new(mock)], settings()).expect("an answer");
    let other = row(&answer, &OTHER, Metric::makespan_ns);
    assert_eq!(other.verdict, Some(Verdict::Better));
    assert!(
        (row(&answer, &OTHER, Metric::makespan_difference).value.expect("a number") + 0.2).abs()
            < 0.02
    );
    let of = |metric| row(&answer, &BASELINE, metric);
    assert!(
        of(Metric::same_makespan_difference).verdict.is_some()
            && of(Metric::measurement_overhead).value.is_some()
    );
    let notes: Vec<&str> =
        answer.results.rows.iter().filter_map(|row| row.note.as_deref()).collect();
    assert!(
        notes
            .iter()
            .any(|note| note.contains("failed and are left out") && note.contains("it broke")),
        "{notes:?}"
    );
    assert!(answer.results.reproduce.is_none(), "no two runs are equal");
    // A canary: without a difference there is no verdict.
    let same = compare(vec![Box::new(answers(Determinism::Noisy, 1.0, wave))], settings())
        .expect("an answer");
    let verdict = row(&same, &OTHER, Metric::makespan_ns).verdict;
    assert!(matches!(verdict, Some(Verdict::Equivalent | Verdict::Undecided)), "{verdict:?}");
}

#[test]
fn a_candidate_that_always_fails_is_skipped_and_the_others_run() {
    let mock = Mock::new(Determinism::Noisy, |session: &Session<'_>| {
        match session.trial.candidate == OTHER {
            true => Err(Error::Input("Operation not permitted".to_string())),
            false => Ok(run(&[(Metric::makespan_ns, 1e6), (Metric::switches, 1.0)])),
        }
    });
    let answer = compare(vec![Box::new(mock)], settings()).expect("an answer");
    assert_eq!(answer.end.as_ref().expect_err("a privilege is missing").exit_code(), 77);
    assert!(row(&answer, &BASELINE, Metric::makespan_ns).value.is_some());
    let skipped = row(&answer, &OTHER, Metric::makespan_ns);
    assert!(
        skipped.value.is_none()
            && skipped.note.as_deref().is_some_and(|note| note.starts_with("skipped")),
        "{skipped:?}"
    );
    // Where all fail, there is nothing to show.
    let fails = Mock::new(Determinism::Seeded, |_| Err(Error::Input("it broke".to_string())));
    assert_eq!(compare(vec![Box::new(fails)], settings()).expect_err("it fails").exit_code(), 3);
}

#[test]
fn a_candidate_that_fails_has_rows_without_numbers_and_the_others_go_on() {
    let breaks = || Error::Check("the kernel ended it:\n    stall".to_string());
    let of = |baseline_fails: bool, at: u64| {
        let mock = Mock::new(Determinism::Seeded, move |session: &Session<'_>| {
            let is_it = (session.trial.candidate == BASELINE) == baseline_fails;
            match is_it && session.member == Some(at) {
                true => Err(breaks()),
                false => Ok(run(&[
                    (Metric::makespan_ns, 1e6 + wave(session.seed)),
                    (Metric::switches, 1.0),
                ])),
            }
        });
        compare(vec![Box::new(mock)], settings()).expect("the other goes on")
    };
    // The first member and a later one: earlier numbers of it are not kept.
    for at in [1, 7] {
        let answer = of(false, at);
        let end = answer.end.as_ref().expect_err("one failed");
        assert!(end.exit_code() == 4 && end.to_string().contains("stall"), "{end}");
        let (failed, other) =
            (row(&answer, &OTHER, Metric::switches), row(&answer, &BASELINE, Metric::switches));
        assert_eq!((failed.value, failed.runs, failed.verdict), (None, 0, None));
        assert_eq!(failed.note.as_deref(), Some("failed: the kernel ended it"));
        assert_eq!((other.value, other.runs), (Some(1.0), 8));
        assert!(answer.text.contains("kernel:batch failed (load, 1 CPU): the kernel ended it"));
        assert!(answer.results.reproduce.is_some(), "it fails again");
    }
    // Without a baseline nothing is compared.
    let answer = of(true, 1);
    let other = row(&answer, &OTHER, Metric::makespan_ns);
    assert_eq!((other.value.is_some(), other.runs, other.verdict), (true, 8, None));
    assert_eq!(answer.end.expect_err("one failed").exit_code(), 4);
}

#[test]
fn a_false_claim_of_determinism_is_detected() {
    let checked = Settings { check: true, ..settings() };
    let count = Cell::new(0.0);
    let liar = || {
        Mock::new(Determinism::Seeded, |_| {
            count.set(count.get() + 1.0);
            Ok(run(&[(Metric::makespan_ns, count.get())]))
        })
    };
    let error = compare(vec![Box::new(liar())], checked.clone()).expect_err("it lies");
    assert!(
        error.exit_code() == 6
            && error.to_string().contains("did not repeat itself: makespan_ns is"),
        "{error}"
    );
    assert!(
        compare(vec![Box::new(answers(Determinism::Seeded, 0.5, wave))], checked).is_ok(),
        "a true claim passes"
    );
}

#[test]
fn one_run_of_a_chaotic_world_gets_no_verdict_and_an_ensemble_does() {
    let mock = || {
        Mock::new(Determinism::Chaotic, |session: &Session<'_>| {
            let value = if session.trial.candidate == OTHER { 5.0 } else { 10.0 }
                + session.member.unwrap_or(0) as f64 / 100.0;
            Ok(Run { random: false, repeats: 2, ..run(&[(Metric::makespan_ns, value)]) })
        })
    };
    let of = |ensemble| {
        compare(vec![Box::new(mock())], Settings { ensemble, goal: None, ..settings() })
            .expect("an answer")
    };
    assert!(
        of(None)
            .results
            .rows
            .iter()
            .all(|row| row.verdict.is_none() && row.runs == 1 && row.seed.is_some())
    );
    assert_eq!(row(&of(Some(4)), &OTHER, Metric::makespan_ns).verdict, Some(Verdict::Better));
}

#[test]
fn a_trial_refused_by_one_world_runs_in_another_and_one_refused_by_all_is_an_error() {
    let world = || answers(Determinism::Seeded, 0.5, wave);
    let error =
        compare(vec![Box::new(world().refusing(OTHER))], settings()).expect_err("it is refused");
    assert!(
        error.exit_code() == 2
            && error.to_string().contains("kernel:batch does not run in this world"),
        "{error}"
    );
    let answer = compare(vec![Box::new(world()), Box::new(world().refusing(OTHER))], settings())
        .expect("the first runs it");
    let refused = |row: &&Row| {
        row.note.as_deref().is_some_and(|note| note.starts_with("not run: kernel:batch"))
    };
    assert_eq!(answer.results.rows.iter().filter(refused).count(), 1);
    assert!(answer.text.contains("load is not run under kernel:batch"), "{}", answer.text);
    // The simulator runs no commands, even if the mock does.
    let sim = compare(vec![Box::new(Simulator::new())], settings())
        .expect_err("a command is not simulated");
    assert!(sim.exit_code() == 2 && sim.to_string().contains("--on host"), "{sim}");
}

#[test]
fn worlds_that_take_different_cpus_for_a_workload_say_so() {
    let world = |cpus| Box::new(answers(Determinism::Seeded, 0.5, wave).with_cpus(cpus));
    let text = |first, second| {
        let worlds: Vec<Box<dyn World + '_>> = vec![world(first), world(second)];
        compare(worlds, settings()).expect("an answer").text
    };
    let differing = text(4, 1);
    assert!(differing.contains("4 in mock, 1 in mock"), "{differing}");
    assert!(!text(2, 2).contains("comparable"), "the same CPUs need no remark");
}

#[test]
fn workloads_in_several_worlds_share_one_table_and_one_directory() {
    let scratch = tempfile::tempdir().expect("a directory");
    let settings = Settings { output: Some(scratch.path().join("out")), ..settings() };
    let mocks = [Determinism::Seeded, Determinism::Noisy]
        .map(|determinism| answers(determinism, 0.5, wave));
    let worlds: Vec<Box<dyn World + '_>> =
        mocks.into_iter().map(|mock| Box::new(mock) as Box<dyn World + '_>).collect();
    let programs: Vec<Program> = ["one", "two"].map(command).into();
    let candidates = vec![BASELINE, OTHER];
    let experiment = Experiment {
        programs,
        worlds,
        candidates,
        against: Against::Usual,
        cpus: vec![1, 2],
        settings,
    };
    let answer = experiment.run().expect("an answer");
    for (workload, cpus) in [("one", 1), ("one", 2), ("two", 1), ("two", 2)] {
        let is_it = |row: &&Row| {
            row.workload == workload && row.cpus == cpus && row.metric == Metric::makespan_ns
        };
        assert_eq!(
            answer.results.rows.iter().filter(is_it).count(),
            4,
            "{workload} on {cpus} in two worlds under two candidates"
        );
    }
    let read = |name: &str| fs::read_to_string(scratch.path().join("out").join(name)).expect(name);
    assert_eq!(read("results.csv").lines().count(), answer.results.rows.len() + 1);
    assert!(
        read("runs.csv").lines().any(|line| line.starts_with("\"two\",kernel:batch,2,")),
        "{}",
        read("runs.csv")
    );
    // Whoever adds the hash of the inputs completes it.
    assert!(scratch.path().join("out/UNFINISHED").exists());
}
