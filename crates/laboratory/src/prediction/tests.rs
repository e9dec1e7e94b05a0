use super::*;
use formats::import;
use formats::toml_file::TomlFile;
use formats::workload::ClosedWorkload;
use schedsim::metrics::CATALOGUE;
use schedsim::workload::{Setting, Workload};
use schedsim::{Machine, counted};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use worlds::Determinism;
use worlds::experiment::{CostOverrides, Reading, Recorded, Subject, simulate};
use worlds::load::Closed;
use worlds::mock::{Mock, command, run};
use worlds::setting::Assignment;
use worlds::simulator::Simulator;

/// The programs of the bundled recording; the second half is `xz`.
const TASKS: &str = "[[task]]\nname = 'sqlite3'\nphases = [{ run = '1ms' }]\n[[task]]\nname = \
                     'xz'\nphases = [{ run = '1ms' }]\n";

fn program(tasks: &str) -> Program {
    let workload = ClosedWorkload::read(TomlFile::of("both.toml", tasks)).expect("a workload");
    let closed = Closed::on(workload, Machine::ideal(2)).expect("scripts");
    Program::Closed(Box::new(closed))
}

fn change(text: &str) -> Change {
    text.parse().expect("a change")
}

fn recorded() -> Arc<Recorded> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/sqlite-and-xz.perf.data.zst");
    let recorded = Recorded::load(
        &file,
        Reading::default(),
        CostOverrides::default(),
        |path, options, observers| Ok(import::read(path, &options, observers)?),
    );
    Arc::new(recorded.expect("the recording is bundled"))
}

fn test(changes: &[Change]) -> Test {
    let policy = PolicySpec::parse("eevdf").expect("a policy");
    let changes = [&[Change::Nothing], changes].concat();
    Test { policy, changes, cpus: 2, rounds: 2, basis: Basis::Recording }
}

/// The sessions in the recording world, and the results. A run takes 100 ns, each later session 10
/// ns more.
fn tested(
    test: &Test,
    recorded: Option<Arc<Recorded>>,
) -> Result<(Vec<String>, Prediction), Error> {
    let seen = RefCell::new(Vec::new());
    let mut recording = Mock::new(Determinism::Noisy, |session| {
        let mut seen = seen.borrow_mut();
        let makespan = 100.0 + 10.0 * (seen.len() % test.changes.len()) as f64;
        seen.push(format!(
            "{}, {}",
            session.trial.candidate,
            counted(session.trial.cpus.into(), "CPU")
        ));
        Ok(Run { recorded: recorded.clone(), ..run(&[(Metric::makespan_ns, makespan)]) })
    });
    let mut replaying = Simulator::new();
    let mut sides =
        Sides { real: &mut recording, kernels: BTreeMap::new(), predicting: &mut replaying };
    let prediction = test.run(&program(TASKS), &mut sides, &ProgressBar::hidden())?;
    Ok((seen.borrow().clone(), prediction))
}

#[test]
fn a_prediction_equals_a_replay_with_the_same_change_made_by_hand() {
    let test = test(&[change("cpus=1"), change("nice=10"), change("fifo=50")]);
    let recorded = recorded();
    let (seen, prediction) = tested(&test, Some(recorded.clone())).unwrap();
    let once = [
        "kernel:other, 2 CPUs",
        "kernel:other, 1 CPU",
        "xz: nice=10, 2 CPUs",
        "*: fifo=50, 2 CPUs",
    ];
    assert_eq!(seen, [once, once].concat());

    let by_hand = |cpus: u16, prio: &dyn Fn(&str) -> Option<u8>| {
        let mut workload: Workload = recorded.workload.clone();
        for task in &mut workload.tasks {
            task.info.prio = prio(&task.info.name).unwrap_or(task.info.prio);
        }
        let machine = Machine { cpus, ..recorded.machine.clone() };
        let subject = Subject { workload: &workload, ..recorded.subject() };
        simulate(subject, &machine, &test.policy, (1, None), false, None).expect("a run").summary
    };
    let all = Assignment { program: "*".to_string(), settings: Vec::new() };
    let expected = [
        by_hand(2, &|_| None),
        by_hand(1, &|_| None),
        by_hand(2, &|name| (name == "xz").then_some(130)),
        by_hand(2, &|name| all.concerns(name).then_some(49)),
    ];
    for (tested, summary) in prediction.tested.iter().zip(&expected) {
        for metric in CATALOGUE {
            let known = Metric::named(metric.id).expect("it is registered");
            let predicted = tested.predicted(known).map(|estimate| estimate.mean);
            assert_eq!(predicted, metric.read(summary).value, "{}: {}", tested.change, metric.id);
        }
    }
}

#[test]
fn an_error_is_a_share_of_the_measured_value() {
    let test = test(&[Change::Cpus(1)]);
    let (_, prediction) = tested(&test, Some(recorded())).unwrap();
    let rows = prediction.rows(&test);
    let value = |world: Name, metric: Metric, cpus: u16| {
        let found =
            rows.iter().find(|row| row.world == world && row.metric == metric && row.cpus == cpus);
        found.and_then(|row| row.value).unwrap_or_else(|| panic!("{metric} of {world}"))
    };
    for (cpus, measured) in [(2, 100.0), (1, 110.0)] {
        assert_eq!(value(Name::Mock, Metric::makespan_ns, cpus), measured);
        let predicted = value(Name::Sim, Metric::makespan_ns, cpus);
        let error = value(Name::Sim, Metric::makespan_ns_prediction_error, cpus);
        assert!((error - (predicted / measured - 1.0)).abs() < 1e-9);
    }
    assert!(rows.iter().all(|row| row.runs == 2 && row.coordinate("change").is_some()));
}

#[test]
fn an_untestable_workload_or_policy_is_refused_by_name() {
    let refused = |error: Error| error.to_string();
    let none = refused(tested(&test(&[]), None).map(drop).unwrap_err());
    assert!(none.contains("mock makes no recordings that can be replayed"), "{none}");
    let command = command("true");
    let none = refused(test(&[]).trials(&command).map(drop).unwrap_err());
    assert!(none.contains("the tasks of true cannot be run again"), "{none}");
    let rr = Test {
        policy: PolicySpec::parse("take:rr").expect("a policy"),
        ..test(&[change("nice=1")])
    };
    let none = refused(rr.trials(&program(TASKS)).map(drop).unwrap_err());
    assert!(none.contains("take:rr does not know"), "{none}");
}

#[test]
fn the_second_half_of_the_fair_tasks_gets_the_nice_value() {
    let entry = |name: &str, more: &str| {
        format!("[[task]]\nname = '{name}'\n{more}phases = [{{ run = '1ms' }}]\n")
    };
    let fifo = "policy = 'fifo'\npriority = 50\n";
    let all = [entry("a", ""), entry("b", ""), entry("c", ""), entry("d", fifo)].concat();
    assert_eq!(later(&program(&all)).unwrap(), ["c"]);
    assert_eq!(comm("a-name-of-many-letters"), "a-name-of-many-");
}

/// A world refuses a setting for a program that the workload does not have.
#[test]
fn tasks_of_one_program_get_the_nice_value_under_its_name() {
    let entry = |program: &str, number: u32| {
        format!(
            "[[task]]\nname = '{program} {number}'\nprogram = '{program}'\nphases = [{{ run = \
             '1ms' }}]\n"
        )
    };
    let all = [entry("sender", 1), entry("receiver", 1), entry("receiver", 2)].concat();
    let program = program(&all);
    assert_eq!(later(&program).unwrap(), ["receiver"]);
    for trial in test(&[change("nice=10")]).trials(&program).unwrap() {
        let deployment = trial.candidate.deployment();
        deployment.map(|one| one.expect_for("it", &program.programs(), 2)).transpose().unwrap();
    }
}

#[test]
fn a_change_is_text() {
    for text in ["kernel=6.1", "policy=bpf:rr", "policy=central:rr", "policy=scx:./a.bpf.o x=1"] {
        assert_eq!(change(text).to_string(), text);
    }
    for text in ["cpus=1", "fifo=50", "batch", "slice=1ms", "xz: batch", "a: nice=1; b: idle"] {
        assert_eq!(change(text).to_string(), text);
    }
    assert!(matches!(change("nice=10"), Change::Half(Setting::Nice(10))));
    assert!(matches!(change("*: nice=10"), Change::Applied(_)), "of all, as it says");
    for (text, words) in [
        ("cpus=0", "0"),
        ("nise=10", "batch, idle"),
        ("policy=bpf:rrr", "bpf:rr"),
        ("xz:", "nothing to set"),
    ] {
        let error = text.parse::<Change>().unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
}

/// The simulator runs the object that the kernel loads, and no policy in its place.
#[test]
fn an_object_is_the_same_on_both_sides() {
    let object = change("policy=scx:./a.bpf.o slice_ns=1ms");
    let policy = PolicySpec::parse("eevdf").unwrap();
    let name = "scx:./a.bpf.o slice_ns=1ms";
    let sides = [object.real(&[]), object.predicted(&policy, &[]), object.ground(2).candidate];
    for candidate in sides {
        assert!(matches!(&candidate, Candidate::Bpf(found) if found == name), "{candidate}");
    }
    assert!(matches!(change("policy=bpf:rr").predicted(&policy, &[]), Candidate::Policy(_)));
    // It is read before anything is measured.
    let program = program(TASKS);
    let Err(error) = test(&[object]).trials(&program).map(drop) else { panic!("no such file") };
    assert!(error.to_string().contains("a.bpf.o"), "{error}");
}

/// Without recordings the description is simulated, before the kernel is asked; member by member.
#[test]
fn a_description_is_predicted_before_it_is_measured() {
    let test = Test { rounds: 3, ..test(&[change("batch")]) };
    let test = Test { basis: Basis::Description(costs::tests::everywhere(&test)), ..test };
    let order = RefCell::new(Vec::new());
    let world = |name: &'static str, slower: f64| {
        let order = &order;
        Mock::new(Determinism::Chaotic, move |session| {
            let member = session.member.expect("a member") as f64;
            assert_eq!(session.seed as f64, member);
            let is_changed = session.trial.candidate.deployment().is_some();
            order.borrow_mut().push(name);
            let makespan = (100.0 + member) * if is_changed { slower } else { 1.0 };
            Ok(run(&[(Metric::makespan_ns, makespan)]))
        })
    };
    let (mut real, mut predicting) = (world("real", 0.9), world("said", 1.2));
    let mut sides =
        Sides { real: &mut real, kernels: BTreeMap::new(), predicting: &mut predicting };
    let prediction = test.run(&program(TASKS), &mut sides, &ProgressBar::hidden()).expect("runs");
    let effects = prediction.effects(&prediction.tested[1], Metric::makespan_ns);
    let (said, so) = effects.expect("both");
    assert!((said.mean - 0.2).abs() < 1e-9 && (so.mean + 0.1).abs() < 1e-9, "{said:?}, {so:?}");
    assert!(said.low < said.mean && so.high > so.mean);
    let rows = prediction.rows(&test);
    let changed = rows.iter().filter(|row| row.effect.is_some()).count();
    assert_eq!(
        changed,
        2 * prediction.measures.iter().filter(|of| of.metric == Metric::makespan_ns).count()
    );
    assert_eq!(*order.borrow(), [vec!["said"; 6], vec!["real"; 6]].concat());
}

/// A change of the kernel runs on that kernel, and its model is simulated with that kernel's costs.
#[test]
fn another_kernel_is_asked_for_its_own_runs() {
    let changes = [change("kernel=6.1"), change("policy=bpf:rr"), change("fifo=50")];
    let test = Test { rounds: 2, ..test(&changes) };
    let test = Test { basis: Basis::Description(costs::tests::everywhere(&test)), ..test };
    let order = RefCell::new(Vec::new());
    let world = |name: &'static str| {
        let order = &order;
        Mock::new(Determinism::Chaotic, move |session| {
            order.borrow_mut().push(format!("{name}: {}", session.trial.candidate));
            Ok(run(&[(Metric::makespan_ns, 100.0)]))
        })
    };
    let (mut real, mut predicting) = (world("6.18"), world("said"));
    let other: Box<dyn World> = Box::new(world("6.1"));
    let kernels = [("6.1".to_string(), other)].into();
    let mut sides = Sides { real: &mut real, kernels, predicting: &mut predicting };
    let prediction = test.run(&program(TASKS), &mut sides, &ProgressBar::hidden()).expect("runs");
    let rows = prediction.rows(&test);
    let of = |change: &str| -> Vec<(String, &str)> {
        let own = rows.iter().filter(|row| {
            row.metric == Metric::makespan_ns && format!("{:?}", row.point).contains(change)
        });
        own.map(|row| (row.world.to_string(), row.candidate.as_str())).collect()
    };
    let mock = "mock".to_string();
    assert_eq!(of("6.1"), [(mock.clone(), "cfs"), ("vm:6.1".to_string(), "kernel:other")]);
    assert_eq!(of("bpf:rr"), [(mock.clone(), "central:rr"), (mock, "bpf:rr")]);
    let mut order = order.borrow().clone();
    order.dedup();
    let expected = [
        "said: eevdf",
        "said: cfs",
        "said: central:rr",
        "said: *: fifo=50",
        "6.18: kernel:other",
        "6.18: bpf:rr",
        "6.18: *: fifo=50",
        "6.1: kernel:other",
    ];
    assert_eq!(order, expected);
}
