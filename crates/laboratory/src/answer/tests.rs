//! Every kind of answer, compared with `cases.txt`: `UPDATE_ANSWERS=1 cargo test -p
//! schedlab-laboratory --lib answer` rewrites it.

use super::*;
use std::fs;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/answer/cases.txt");
const SHOWN: [Metric; 4] =
    [Metric::makespan_ns, Metric::wakeup_latency_ns_p99, Metric::run_delay_ns, Metric::switches];

struct Case {
    title: &'static str,
    rows: Vec<Row>,
    focus: Option<Focus>,
    replay_error: Option<f64>,
}

fn row(candidate: &str, metric: Metric, verdict: Verdict, effect: f64) -> Row {
    Row {
        workload: "w".to_string(),
        candidate: candidate.to_string(),
        cpus: 2,
        baseline: Some("eevdf".to_string()),
        runs: 16,
        verdict: Some(verdict),
        effect: Some(effect),
        effect_low: Some(effect - 0.03),
        effect_high: Some(effect + 0.03),
        ..Row::new(Name::Sim, metric)
    }
}

fn of(program: &str, row: Row) -> Row {
    row.of(SubjectKind::Program, program)
}

/// A difference without a share of the baseline.
fn beyond(row: Row) -> Row {
    let [difference, difference_low, difference_high] = [1.2e6, 1.1e6, 1.3e6].map(Some);
    Row {
        effect: None,
        effect_low: None,
        effect_high: None,
        difference,
        difference_low,
        difference_high,
        ..row
    }
}

fn better(candidate: &str, metric: Metric, effect: f64) -> Row {
    row(candidate, metric, Verdict::Better, effect)
}

fn worse(candidate: &str, metric: Metric, effect: f64) -> Row {
    row(candidate, metric, Verdict::Worse, effect)
}

fn undecided(candidate: &str) -> Row {
    row(candidate, Metric::makespan_ns, Verdict::Undecided, -0.01)
}

fn whole() -> Vec<Case> {
    let case = |title, rows| Case { title, rows, focus: None, replay_error: Some(0.06) };
    let (span, delay, wake) =
        (Metric::makespan_ns, Metric::run_delay_ns, Metric::wakeup_latency_ns_p99);
    vec![
        case(
            "a gain from next to nothing",
            vec![better("xz: batch", span, -0.12), beyond(worse("xz: batch", wake, 0.0))],
        ),
        case("one gain", vec![better("xz: batch", span, -0.12)]),
        case("two gains", vec![better("xz: batch", span, -0.12), better("xz: batch", delay, -0.4)]),
        case(
            "three gains",
            vec![
                better("xz: idle", span, -0.12),
                better("xz: idle", delay, -0.4),
                better("xz: idle", wake, -0.8),
            ],
        ),
        case(
            "four gains",
            vec![
                better("a: idle", span, -0.12),
                better("a: idle", delay, -0.4),
                better("a: idle", wake, -0.8),
                better("a: idle", Metric::wakeup_latency_ns_max, -0.1),
                of("b", better("a: idle", delay, -0.5)),
            ],
        ),
        case("a price", vec![better("xz: batch", span, -0.12), worse("xz: batch", wake, 0.3)]),
        case(
            "a price of many times",
            vec![better("xz: batch", span, -0.12), worse("xz: batch", wake, 11.0)],
        ),
        case(
            "a free gain is better than a larger one at a price",
            vec![
                better("a: idle", span, -0.3),
                worse("a: idle", wake, 0.3),
                better("a: batch", span, -0.05),
            ],
        ),
        case(
            "a program gains, another pays",
            vec![
                of("sqlite3", better("xz: idle", delay, -0.4)),
                of("xz", worse("xz: idle", delay, 0.08)),
            ],
        ),
        case("nothing helps", vec![undecided("xz: batch"), undecided("xz: idle")]),
        case("one candidate does not help", vec![undecided("xz: batch")]),
        case(
            "one of two is worse",
            vec![undecided("xz: batch"), worse("*: slice=5.6ms", span, 0.05)],
        ),
        case("both are worse", vec![worse("xz: batch", span, 0.05), worse("xz: idle", span, 0.05)]),
        case("fewer switches help nobody", vec![better("*: batch", Metric::switches, -0.5)]),
        case("several commands", vec![better("a: batch, nice=5; b: fifo=50", span, -0.12)]),
        case("a scheduler of the kernel's BPF", vec![better("bpf:rr", span, -0.12)]),
        case("nothing was compared", vec![Row { verdict: None, ..undecided("xz: batch") }]),
    ]
}

fn focused() -> Vec<Case> {
    let (delay, wake) = (Metric::run_delay_ns, Metric::wakeup_latency_ns_p99);
    let focus = || Some(Focus { program: "redis".to_string(), others_lose: 0.1 });
    let case = |title, rows| Case { title, rows, focus: focus(), replay_error: Some(0.06) };
    vec![
        case("the focus gains", vec![of("redis", better("redis: fifo=50", wake, -0.4))]),
        case(
            "the focus gains, another pays what is allowed",
            vec![
                of("redis", better("redis: fifo=50", wake, -0.4)),
                of("bench", worse("redis: fifo=50", delay, 0.07)),
            ],
        ),
        case(
            "the dearer candidate is not taken",
            vec![
                of("redis", better("redis: fifo=50", wake, -0.4)),
                of("bench", worse("redis: fifo=50", delay, 0.3)),
                of("redis", better("redis: nice=-5", wake, -0.1)),
            ],
        ),
        case(
            "all are too dear",
            vec![
                of("redis", better("redis: fifo=50", wake, -0.4)),
                of("bench", worse("redis: fifo=50", delay, 0.3)),
            ],
        ),
        case(
            "another gains, the focus does not",
            vec![
                of("bench", better("redis: idle", delay, -0.4)),
                of("redis", undecided("redis: idle")),
            ],
        ),
        case(
            "the focus was not compared",
            vec![undecided("redis: idle"), of("bench", undecided("redis: idle"))],
        ),
        Case {
            title: "nothing is replayed",
            rows: vec![undecided("a: idle"), undecided("a: batch")],
            focus: None,
            replay_error: None,
        },
        Case {
            title: "measured on this machine, one run",
            rows: vec![Row {
                world: Name::Host,
                runs: 1,
                effect_low: None,
                effect_high: None,
                ..better("kernel:batch", Metric::makespan_ns, -0.015)
            }],
            focus: None,
            replay_error: None,
        },
    ]
}

fn say(case: &Case) -> String {
    let rows: Vec<&Row> = case.rows.iter().collect();
    let question =
        Question { shown: &SHOWN, focus: case.focus.as_ref(), replay_error: case.replay_error };
    answer(&rows, &question).unwrap_or_else(|| "(no answer)\n".to_string())
}

#[test]
fn every_answer_has_the_wording_of_the_file() {
    let all: Vec<Case> = whole().into_iter().chain(focused()).collect();
    assert!(all.len() >= 12);
    let said: String =
        all.iter().map(|case| format!("## {}\n{}\n", case.title, say(case))).collect();
    if std::env::var_os("UPDATE_ANSWERS").is_some() {
        fs::write(CASES, &said).unwrap();
    }
    let held = fs::read_to_string(CASES).unwrap();
    assert!(
        held == said,
        "cases.txt is out of date: UPDATE_ANSWERS=1 cargo test -p schedlab-laboratory \
         answer\n{said}"
    );
    for wrong in ["beyond doubt", "NaN", "inf", "()", "  ("] {
        assert!(!said.contains(wrong), "{wrong}");
    }
}

#[test]
fn the_order_of_rows_changes_nothing() {
    for mut case in whole().into_iter().chain(focused()) {
        let said = say(&case);
        case.rows.reverse();
        assert_eq!(say(&case), said, "{}", case.title);
    }
}

/// A canary: the verdict decides the answer, not the size of the numbers.
#[test]
fn a_large_undecided_difference_is_not_called_a_help() {
    let rows = [Row { effect: Some(-0.9), ..undecided("xz: idle") }];
    let rows: Vec<&Row> = rows.iter().collect();
    let said =
        answer(&rows, &Question { shown: &SHOWN, focus: None, replay_error: Some(0.5) }).unwrap();
    assert!(
        said.starts_with(
            "`xz: idle` does not help beyond the replay's error (50 %): keep what you have."
        ),
        "{said}"
    );
}

#[test]
fn numbers_of_programs_do_not_change_which_candidate_helps_the_complete_run() {
    let (wake, delay) = (Metric::wakeup_latency_ns_p99, Metric::task_run_delay_ns);
    let mut rows = vec![better("xz: idle", wake, -0.8), better("xz: nice=10", wake, -0.3)];
    let first = |rows: &[Row]| {
        let question = Question { shown: &SHOWN, focus: None, replay_error: None };
        answer(&rows.iter().collect::<Vec<_>>(), &question).expect("an answer")
    };
    assert!(first(&rows).starts_with("`xz: idle` would help"));
    // The answer names the loss of xz. The same candidate still helps the complete run most; a
    // candidate that helps only one program ranks behind it.
    rows.push(of("xz", worse("xz: idle", delay, 1.5)));
    rows.push(of("seq", better("seq: batch", delay, -0.9)));
    let text = first(&rows);
    assert!(
        text.starts_with("`xz: idle` would help") && text.contains("The price: xz's"),
        "{text}"
    );
}
