use super::*;
use results::Verdict;

fn run(candidate: &str, member: u64, value: Option<f64>) -> (u64, Row) {
    let row = Row {
        workload: "w".to_string(),
        candidate: candidate.to_string(),
        cpus: 4,
        value,
        runs: 1,
        note: value.is_none().then(|| "saturated".to_string()),
        ..Row::new(World::Sim, Metric::grr)
    };
    (member, row)
}

fn settled(runs: &[(u64, Row)], baseline: Option<&str>, fidelity: &[Fidelity]) -> Vec<Row> {
    let mut summed = sum_up(runs, baseline, fidelity);
    settle([(&mut summed.rows[..], &summed.compared[..])]);
    summed.rows
}

#[test]
fn pairs_by_member_decide_a_difference_that_means_alone_do_not() {
    // Runs differ far more than the candidates, which differ in each pair by a tenth.
    let runs: Vec<(u64, Row)> = (0..16)
        .flat_map(|member| {
            [
                run("base", member, Some(10.0 + member as f64)),
                run("new", member, Some(0.9 * (10.0 + member as f64))),
            ]
        })
        .collect();
    let rows = settled(&runs, Some("base"), &[]);
    let of = |candidate: &str, metric: Metric| {
        rows.iter().find(|row| row.candidate == candidate && row.metric == metric).expect("a row")
    };
    assert_eq!((of("base", Metric::grr).value, of("base", Metric::grr).runs), (Some(17.5), 16));
    assert!(
        of("new", Metric::grr).ci_high > of("base", Metric::grr).ci_low,
        "the intervals overlap"
    );
    let new = of("new", Metric::grr);
    assert_eq!((new.verdict, new.reason.as_deref()), (Some(Verdict::Better), None));
    assert!(
        (new.effect.expect("a size") + 0.1).abs() < 1e-12
            && new.effect_low < new.effect
            && new.effect < new.effect_high
    );
    let ngrr = of("new", Metric::ngrr);
    assert!(
        (ngrr.value.expect("a ratio") - 0.9).abs() < 1e-12
            && ngrr.ci_high.expect("high") - ngrr.ci_low.expect("low") < 1e-9
    );
    assert!(
        settled(&runs, None, &[])
            .iter()
            .all(|row| row.metric == Metric::grr && row.verdict.is_none())
    );
    // The same values in another order are not pairs.
    let shuffled: Vec<(u64, Row)> = runs
        .into_iter()
        .map(
            |(member, row)| {
                if row.candidate == "new" { ((member * 7) % 16, row) } else { (member, row) }
            },
        )
        .collect();
    assert_eq!(settled(&shuffled, Some("base"), &[])[1].verdict, Some(Verdict::Undecided));
}

#[test]
fn a_replay_error_above_the_difference_prevents_a_verdict() {
    let runs: Vec<(u64, Row)> = (0..16)
        .flat_map(|member| {
            [run("base", member, Some(10.0)), run("new", member, Some(9.0 + 0.01 * member as f64))]
        })
        .collect();
    let fidelity = |error: f64| Fidelity {
        metric: Metric::grr,
        subject: None,
        recorded: 10.0,
        replayed: vec![10.0 + error; 16],
    };
    let verdict = |fidelity: &[Fidelity]| {
        let row = settled(&runs, Some("base"), fidelity).remove(1);
        (row.verdict, row.reason)
    };
    assert_eq!(verdict(&[fidelity(0.5)]), (Some(Verdict::Better), None));
    assert_eq!(
        verdict(&[fidelity(2.0)]),
        (Some(Verdict::Undecided), Some("within the replay's error of 20.0 %".to_string()))
    );
    // One bad replay of sixteen does not widen the error; two do.
    let mut wild = fidelity(0.5);
    wild.replayed[3] = 20.0;
    assert_eq!(verdict(&[wild.clone()]).0, Some(Verdict::Better));
    wild.replayed[9] = 20.0;
    assert_eq!(verdict(&[wild]).0, Some(Verdict::Undecided));
    let other = Fidelity { metric: Metric::switches, ..fidelity(0.5) };
    assert!(verdict(&[other]).1.expect("a reason").contains("the recording lacks this metric"));
}

#[test]
fn a_saturated_run_is_left_out_of_every_mean() {
    let runs = [
        run("base", 1, Some(2.0)),
        run("base", 2, Some(2.0)),
        run("new", 1, Some(1.0)),
        run("new", 2, None),
    ];
    let rows = settled(&runs, Some("base"), &[]);
    assert_eq!(
        (rows[1].value, rows[1].note.as_deref(), rows[1].verdict),
        (None, Some("1 of 2 runs: saturated"), None)
    );
    assert_eq!((rows[2].metric, rows[2].value), (Metric::ngrr, None));
    let other_way = settled(&runs, Some("new"), &[]);
    let ngrr = other_way.iter().find(|row| row.metric == Metric::ngrr).expect("a row");
    assert_eq!((ngrr.value, ngrr.note.as_deref()), (None, Some("new: saturated")));
}

#[test]
fn a_single_run_gets_no_verdict() {
    let rows = settled(&[run("base", 1, Some(2.0)), run("new", 1, Some(1.0))], Some("base"), &[]);
    assert!(rows.iter().all(|row| row.verdict.is_none()), "{rows:?}");
}
