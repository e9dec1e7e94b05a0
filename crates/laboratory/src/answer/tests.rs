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
    replay: Option<(Vec<Fidelity>, bool)>,
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

/// A replay that is off by this share in all metrics of `SHOWN` but the last, and of the programs
/// by as much again.
fn replayed(error: f64) -> Vec<Fidelity> {
    let of = |subject: Option<&str>, metric, error: f64| Fidelity {
        metric,
        subject: subject.map(str::to_string),
        recorded: 100.0,
        replayed: vec![100.0 * (1.0 + error); 16],
    };
    let parts = |name| SHOWN[..3].iter().map(move |metric| of(Some(name), *metric, 2.0 * error));
    // A program of the first metric comes first: the answer must look for the complete run.
    parts("redis").chain(SHOWN[..3].iter().map(|metric| of(None, *metric, error))).collect()
}

fn whole() -> Vec<Case> {
    let case =
        |title, rows| Case { title, rows, focus: None, replay: Some((replayed(0.06), true)) };
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
        case("a price", vec![better("xz: batch", span, -0.12), worse("xz: batch", wake, 0.07)]),
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
        case("a trade", vec![better("xz: batch", span, -0.12), worse("xz: batch", wake, 0.3)]),
        case(
            "a trade for many times as much",
            vec![better("xz: batch", span, -0.12), worse("xz: batch", wake, 11.0)],
        ),
        case(
            "a loss that is larger than the gain is a trade",
            vec![
                better("central:rr", span, -0.12),
                worse("central:rr", Metric::wakeup_latency_ns_p50, 0.13),
                worse("central:rr", wake, 76.0),
            ],
        ),
        case(
            "a help goes before a trade with a larger gain",
            vec![
                better("rr", span, -0.5),
                worse("rr", wake, 0.6),
                better("fifo", span, -0.2),
                worse("fifo", wake, 0.1),
            ],
        ),
        Case {
            title: "a replay that is not like its recording gives no advice",
            rows: vec![better("central:rr", delay, -0.9)],
            focus: None,
            replay: Some((replayed(1.3), false)),
        },
        Case {
            title: "a recording without causes says so",
            rows: vec![better("xz: batch", span, -0.12)],
            focus: None,
            replay: Some((replayed(0.01), false)),
        },
        case("an object of a scheduler", vec![better("scx:./a.bpf.o slice_ns=1ms", span, -0.12)]),
        case("a published scheduler", vec![better("scx:bpfland@1.1.4", span, -0.12)]),
        case("a model", vec![better("eevdf", span, -0.12)]),
        case("a scheduler of the kernel's BPF", vec![better("bpf:rr", span, -0.12)]),
        case("nothing was compared", vec![Row { verdict: None, ..undecided("xz: batch") }]),
    ]
}

fn focused() -> Vec<Case> {
    let (delay, wake) = (Metric::run_delay_ns, Metric::wakeup_latency_ns_p99);
    let focus = || Some(Focus { program: "redis".to_string(), others_lose: 0.1 });
    let case =
        |title, rows| Case { title, rows, focus: focus(), replay: Some((replayed(0.06), true)) };
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
            "what the focus itself loses makes it a trade",
            vec![
                of("redis", better("redis: fifo=50", wake, -0.4)),
                of("redis", worse("redis: fifo=50", delay, 0.8)),
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
            replay: None,
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
            replay: None,
        },
    ]
}

fn say(case: &Case) -> String {
    let rows: Vec<&Row> = case.rows.iter().collect();
    let replay = case.replay.as_ref();
    let replay = replay.map(|(fidelity, causes)| Replayed { fidelity, has_causes: *causes });
    let question = Question { shown: &SHOWN, focus: case.focus.as_ref(), replay };
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
    let replay = Some(Replayed { fidelity: &replayed(0.5), has_causes: true });
    let said = answer(&rows, &Question { shown: &SHOWN, focus: None, replay }).unwrap();
    assert!(
        said.starts_with(
            "`xz: idle` does not help beyond the replay's error (50 % in makespan): keep what \
             you have."
        ),
        "{said}"
    );
}

#[test]
fn numbers_of_programs_do_not_change_which_candidate_helps_the_complete_run() {
    let (wake, delay) = (Metric::wakeup_latency_ns_p99, Metric::task_run_delay_ns);
    let mut rows = vec![better("xz: idle", wake, -0.8), better("xz: nice=10", wake, -0.3)];
    let first = |rows: &[Row]| {
        let question = Question { shown: &SHOWN, focus: None, replay: None };
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

/// Whatever the numbers are, no answer calls a help what loses a larger share than it gains. None
/// gives advice by a replay that is not like its recording.
#[test]
fn no_help_has_a_price_above_its_gain() {
    let (span, wake) = (Metric::makespan_ns, Metric::wakeup_latency_ns_p99);
    let shares = [0.01, 0.1, 0.5, 0.9, 4.0];
    for (gain, loss, error) in shares.iter().flat_map(|gain| {
        shares.iter().flat_map(move |loss| [0.4, 0.6].map(|error| (*gain, *loss, error)))
    }) {
        let rows = [better("rr", Metric::throughput, gain), worse("rr", wake, loss)];
        let other = [better("fifo", span, -0.01), worse("fifo", wake, 0.009)];
        let rows: Vec<&Row> = rows.iter().chain(&other).collect();
        let shown = [span, wake, Metric::throughput];
        let replay = Some(Replayed { fidelity: &replayed(error), has_causes: true });
        let said = answer(&rows, &Question { shown: &shown, focus: None, replay }).unwrap();
        let begin = match (error > UNLIKE, loss > gain) {
            (true, _) => "No advice: ",
            (false, true) => "`fifo` would help: ",
            (false, false) => "`",
        };
        assert!(said.starts_with(begin), "{gain} {loss} {error}: {said}");
        assert_eq!(said.contains("Switch it on"), error < UNLIKE, "{said}");
    }
}
