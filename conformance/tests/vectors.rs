//! The vectors of this package against the reference, and the tests of these tests.

use std::path::{Path, PathBuf};
use vectors::{
    Action, Answer, Body, Broken, Event, Op, Options, Property, Reference, Subject, Vector,
    Verdict, canaries, play,
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The vectors in a folder of this package, by path.
fn read(folder: &str) -> Vec<Vector> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|end| end == "jsonl") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&root().join(folder), &mut files);
    files.sort();
    assert!(!files.is_empty(), "no vectors in {folder}");
    files.iter().map(|file| Vector::read(file).unwrap_or_else(|why| panic!("{why}"))).collect()
}

/// Those of the mathematics and by hand: whatever kernels do, the reference agrees with them.
fn own() -> Vec<Vector> {
    ["vectors/eevdf", "vectors/proportional", "canaries/unchanged"]
        .into_iter()
        .flat_map(read)
        .collect()
}

#[test]
fn the_reference_agrees_with_the_mathematics_and_with_arithmetic_by_hand() {
    for vector in own() {
        let outcome = play(&vector, &mut Reference::default());
        assert_eq!(outcome.verdict, Verdict::Agree, "{}", vector.header.name);
        assert_eq!(outcome.tie, None, "{}", vector.header.name);
        for property in &vector.header.properties {
            let compared = outcome.compared[*property as usize];
            assert!(compared > 0, "{} claims {property:?}, compares none", vector.header.name);
        }
    }
}

#[test]
fn the_reference_agrees_with_each_kernel_that_it_is() {
    let kernels = read("vectors").into_iter().filter(|v| v.header.claims.starts_with("linux-"));
    let (mut agree, mut refused) = (0, 0);
    for vector in kernels {
        let claims = &vector.header.claims;
        let mut reference = Reference::claiming(claims, Options::default());
        match play(&vector, &mut reference).verdict {
            Verdict::Agree => agree += 1,
            Verdict::Refused(why) if why.ends_with(claims) => refused += 1,
            other => panic!("{}: {other:#?}", vector.header.name),
        }
    }
    assert!(agree >= 33 && refused > 0, "{agree} agree, {refused} are refused");
}

#[test]
fn the_known_difference_from_linux_6_18_is_where_its_tree_has_been_turned() {
    let vector = Vector::read(&root().join("tests/stale-min-slice.jsonl")).unwrap();
    let mut reference = Reference::claiming(&vector.header.claims, Options::default());
    let outcome = play(&vector, &mut reference);
    let at = outcome.difference().map(|found| (found.line, found.property));
    assert_eq!(at, Some((64, Property::Tick)));
}

/// The weights of nice −20 to 19 (`sched_prio_to_weight`).
const OF_NICE: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

#[test]
fn each_weight_is_that_of_a_nice_value() {
    for vector in read("vectors").into_iter().chain(read("canaries")) {
        let weights: Vec<u32> = match &vector.body {
            Body::History(steps) => {
                let weight = |op: &Op| match *op {
                    Op::Task { weight, .. } | Op::Weight { weight, .. } => Some(weight),
                    _ => None,
                };
                steps.iter().filter_map(|step| weight(&step.event.op)).collect()
            }
            Body::Scenario(programs) => {
                let later = programs.iter().flat_map(|program| &program.actions);
                let later = later.filter_map(|action| match action {
                    Action::Weight(weight) => Some(*weight),
                    _ => None,
                });
                programs.iter().map(|program| program.weight).chain(later).collect()
            }
        };
        assert!(!weights.is_empty(), "{}", vector.header.name);
        for weight in weights {
            assert!(OF_NICE.contains(&weight), "{}: {weight}", vector.header.name);
        }
    }
}

#[test]
fn every_fault_is_found_by_a_vector_that_claims_its_property() {
    let faults = canaries::faults(&own());
    for (claims, property, found) in &faults {
        assert!(found.is_some(), "{claims}: {} is not found", property.fault());
    }
    for property in Property::ALL {
        // A request of another length shows when the next one begins.
        let at = if property == Property::Slice { Property::Deadline } else { property };
        let found = |(_, tested, found): &(String, Property, Option<canaries::Found>)| {
            *tested == property && found.as_ref().is_some_and(|found| found.at == at)
        };
        assert!(faults.iter().any(found), "{property:?} is not found at {at:?}: {faults:?}");
    }
}

#[test]
fn every_changed_expectation_is_found_at_its_line_and_property() {
    let (mut found, mut claimed) = (0, Vec::new());
    for vector in read("vectors").into_iter().chain(read("canaries/unchanged")) {
        let (count, lies) = canaries::changed_expectations(&vector);
        assert_eq!(lies, Vec::<String>::new());
        found += count;
        if matches!(vector.body, Body::History(_)) {
            claimed.extend(vector.header.properties);
        }
    }
    assert!(found > 60, "{found}");
    for property in Property::ALL {
        let is_of_scenarios = [Property::LagBound, Property::Share].contains(&property);
        assert!(claimed.contains(&property) != is_of_scenarios, "{property:?}");
    }
}

#[test]
fn every_canary_is_found_where_it_was_changed() {
    let changed = read("canaries/changed");
    for vector in &changed {
        assert_eq!(canaries::missed(vector), None, "{}", vector.header.name);
    }
    // Nobody idles or runs a sleeper in a history that can be read, and a bound is no expectation.
    let of: Vec<Property> =
        changed.iter().filter_map(|vector| Some(vector.header.canary?.property)).collect();
    for property in Property::ALL {
        let has_none = [Property::Conserve, Property::LagBound].contains(&property);
        assert!(of.contains(&property) != has_none, "{property:?}");
    }
}

#[test]
fn a_canary_that_is_not_found_is_a_lie() {
    // The reference agrees with an unchanged vector; to claim a change there is wrong.
    let mut vector = read("canaries/changed").remove(0);
    let unchanged = read("canaries/unchanged").remove(0);
    vector.body = unchanged.body.clone();
    assert!(canaries::missed(&vector).is_some());
    // A history that claims what it does not state is found, too.
    let mut mute = unchanged;
    let Body::History(steps) = &mut mute.body else { panic!("a history") };
    steps.iter_mut().for_each(|step| step.then.tasks.clear());
    let (_, lies) = canaries::changed_expectations(&mute);
    assert!(lies.iter().any(|lie| lie.contains("claims charge")), "{lies:?}");
}

/// The decisions of a subject, without what it states.
struct Mute(Reference);

impl Subject for Mute {
    fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
        let answer = self.0.event(event)?;
        Ok(Answer { tasks: Vec::new(), ..answer })
    }
}

#[test]
fn bounds_need_no_statement() {
    let find = |fault: Option<Property>, at: Property| {
        let vectors = read("vectors/eevdf").into_iter().chain(read("vectors/proportional"));
        let options = Options { fault, ..Options::default() };
        let mut outcomes = vectors.map(|vector| play(&vector, &mut Mute(Reference::new(options))));
        outcomes.any(|outcome| outcome.difference().is_some_and(|found| found.property == at))
    };
    for (fault, at) in [
        (Property::Charge, Property::LagBound),
        (Property::Charge, Property::Share),
        (Property::Share, Property::Share),
        (Property::LagBound, Property::LagBound),
        (Property::Tick, Property::LagBound),
        (Property::Conserve, Property::Conserve),
    ] {
        assert!(find(Some(fault), at), "{fault:?} is not found at {at:?}");
        assert!(!find(None, at), "{at:?} is found without a fault");
    }
}

/// Round robin, of all tasks that are ready, whatever their weights.
#[derive(Default)]
struct RoundRobin(std::collections::VecDeque<u32>);

impl Subject for RoundRobin {
    fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
        let mut answer = Answer::default();
        match event.op {
            Op::Reset { .. } => self.0.clear(),
            Op::Wake { task } | Op::New { task } => self.0.push_back(task),
            Op::Tick => {
                self.0.rotate_left(1.min(self.0.len()));
                answer.resched = Some(true);
            }
            Op::Block => drop(self.0.pop_front()),
            Op::Pick => answer.runs = Some(self.0.front().copied().unwrap_or(0)),
            _ => {}
        }
        Ok(answer)
    }
}

#[test]
fn round_robin_has_equal_shares_and_no_others() {
    let verdicts: Vec<(String, Option<Property>)> = read("vectors/proportional")
        .into_iter()
        .map(|vector| {
            let outcome = play(&vector, &mut RoundRobin::default());
            (vector.header.name, outcome.difference().map(|found| found.property))
        })
        .collect();
    for (name, at) in verdicts {
        let is_fair = ["proportional/equal", "proportional/conserve"].contains(&name.as_str());
        assert_eq!(at, (!is_fair).then_some(Property::Share), "{name}");
    }
}

/// Says what it is told to at one event, and else as the reference.
struct Says(Reference, Op, Answer);

impl Subject for Says {
    fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
        let answer = self.0.event(event)?;
        Ok(if event.op == self.1 { self.2.clone() } else { answer })
    }
}

#[test]
fn an_error_refuses_and_a_pick_without_a_task_breaks() {
    for vector in own() {
        let says = |answer: Answer| {
            play(&vector, &mut Says(Reference::default(), Op::Pick, answer)).verdict
        };
        let refused = says(Answer { error: Some("not today".into()), ..Answer::default() });
        assert_eq!(refused, Verdict::Refused("not today".into()));
        let Verdict::Broken(why) = says(Answer::default()) else { panic!("no `runs`") };
        assert!(why.contains("`runs`"), "{why}");
        // Nobody has task 4096 here.
        let Verdict::Differ(found) = says(Answer { runs: Some(4096), ..Answer::default() }) else {
            panic!("an unknown task runs in {}", vector.header.name)
        };
        assert_eq!(found.property, Property::Conserve);
    }
}

#[test]
fn the_versions_of_the_reference_differ_in_protection_and_in_new_weights() {
    // Task 1 (3 ms) and task 2 (1 ms) are new: due at 1.5 and 0.5 ms, so 2 runs. After 0.4 ms it
    // sleeps, ahead of V = 0.2, and stays; 1 runs. In 6.18 it is protected for the shortest request,
    // until 1 ms, so a tick at a vruntime of 1.1 ms asks for a pick; in 6.12 until its deadline.
    let to_tick = [
        r#"{"at":0,"op":"reset","tick":4000000,"slice":3000000}"#,
        r#"{"at":0,"op":"task","task":1,"weight":1024,"slice":3000000}"#,
        r#"{"at":0,"op":"task","task":2,"weight":1024,"slice":1000000}"#,
        r#"{"at":0,"op":"new","task":1}"#,
        r#"{"at":0,"op":"new","task":2}"#,
        r#"{"at":0,"op":"pick"}"#,
        r#"{"at":400000,"op":"block"}"#,
        r#"{"at":400000,"op":"pick"}"#,
        r#"{"at":1500000,"op":"tick"}"#,
    ];
    // Its weight is doubled then: V = 0.75 ms, its lag −0.35 becomes −0.175; without it V is 0.4, so
    // it is put 0.175 × 3 behind. Of its request 0.4 ms is left; in 6.18 half of that.
    // A yield while it owes costs nothing; at 0.1 ms, with V = 0.25, it costs the rest.
    let last = |claims: &str, lines: &[&str]| {
        let mut reference = Reference::claiming(claims, Options::default());
        let answers =
            lines.iter().map(|line| reference.event(&Event::parse(line).unwrap()).unwrap());
        answers.last().unwrap()
    };
    let state = |answer: &Answer| {
        let state = answer.state(1).unwrap();
        (state.vruntime.unwrap(), state.deadline.unwrap())
    };
    for (claims, resched, deadline) in
        [("linux-6.18-eevdf", true, 1_125_000), ("linux-6.12-eevdf", false, 1_325_000)]
    {
        let after = |lines: &[&str], line: &str| state(&last(claims, &[lines, &[line]].concat()));
        assert_eq!(last(claims, &to_tick).resched, Some(resched), "{claims}");
        let weight = r#"{"at":1500000,"op":"weight","task":1,"weight":2048}"#;
        assert_eq!(after(&to_tick, weight), (925_000, deadline), "{claims}");
        let yields = r#"{"at":1500000,"op":"yield"}"#;
        assert_eq!(after(&to_tick, yields), (1_100_000, 1_500_000), "{claims}");
        let yields = r#"{"at":500000,"op":"yield"}"#;
        assert_eq!(after(&to_tick[..8], yields), (1_500_000, 4_500_000), "{claims}");
    }
    for claims in ["linux-6.1-cfs", "linux-6.6-eevdf", "linux-7.2-eevdf", "linux-6-eevdf", "o1", ""]
    {
        assert!(last(claims, &to_tick[..1]).error.is_some(), "{claims}");
    }
}

#[test]
fn the_origin_of_virtual_time_is_the_subjects_own() {
    struct Shifted(Reference);
    impl Subject for Shifted {
        fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
            let mut answer = self.0.event(event)?;
            for state in &mut answer.tasks {
                state.vruntime = state.vruntime.map(|time| time - (1 << 61));
                state.deadline = state.deadline.map(|time| time - (1 << 61));
            }
            Ok(answer)
        }
    }
    for vector in own() {
        assert!(
            play(&vector, &mut Shifted(Reference::default())).agrees(),
            "{}",
            vector.header.name
        );
    }
}

#[test]
fn where_rounding_could_decide_a_history_ends_without_a_difference() {
    let text = r#"{"format":1,"name":"tie","kind":"history","claims":"linux-6.18-eevdf","properties":["pick"],"source":"by hand","tolerance":1000}
{"at":0,"op":"reset","tick":4000000,"slice":3000000}
{"at":0,"op":"task","task":1,"weight":1024,"slice":3000000}
{"at":0,"op":"task","task":2,"weight":1024,"slice":3000000}
{"at":0,"op":"wake","task":1,"then":{"tasks":[{"task":1,"vruntime":7,"deadline":3000007}]}}
{"at":0,"op":"wake","task":2,"then":{"tasks":[{"task":2,"vruntime":8,"deadline":DUE}]}}
{"at":0,"op":"pick","then":{"runs":2}}
{"at":4000000,"op":"tick","then":{"tasks":[{"task":1,"vruntime":123456}]}}
"#;
    let play = |due: &str| {
        let vector = Vector::parse("tie", text.replace("DUE", due).as_bytes()).unwrap();
        play(&vector, &mut Reference::default())
    };
    let tie = play("3000008");
    assert_eq!((tie.verdict, tie.tie), (Verdict::Agree, Some(7)));
    // Out of reach of rounding, another choice is a difference. (Here it is one of the deadline.)
    let found = play("3009008");
    assert_eq!(found.difference().map(|found| found.line), Some(6));
}
