//! Parts of traces: what is left adds up to the whole.

use formats::selection::{Selected, Selection};
use formats::trace_source::TraceSource;
use schedsim::metrics::{Metrics, Summary};
use schedsim::trace::{Event, Observer};
use std::path::Path;

fn hackbench() -> TraceSource {
    let name =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/cargo-build.perf-script.txt.zst");
    TraceSource::open(Path::new(name)).expect("a recording")
}

fn part(window: Option<&str>, cpus: Option<&str>, comm: &[&str]) -> TraceSource {
    let selection = Selection {
        window: window.map(|text| text.parse().expect("a window")),
        cpus: cpus.map(|text| text.parse().expect("CPUs")),
        comm: comm.iter().map(|name| name.to_string()).collect(),
    };
    hackbench().select(selection).expect("a part")
}

#[derive(Default)]
struct Collect(Vec<Event>);

impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

fn events(source: &TraceSource) -> Vec<Event> {
    let mut collect = Collect::default();
    source.feed(vec![&mut collect]).expect("a whole trace");
    collect.0
}

fn summary(source: &TraceSource) -> Summary {
    let mut metrics = Metrics::new(source.header.cpus);
    let end = source.feed(vec![&mut metrics]).expect("a whole trace");
    metrics.finish(end)
}

#[test]
fn windows_that_meet_have_all_events_between_them() {
    let whole = events(&hackbench());
    let (before, after) = (part(Some("..1s"), None, &[]), part(Some("1s.."), None, &[]));
    let at_the_border = whole.iter().filter(|event| event.time.0 == 1_000_000_000).count();
    let (first, second) = (events(&before), events(&after));
    assert_eq!(first.len() + second.len(), whole.len() + at_the_border);
    assert!(first.len() > 1000 && second.len() > 1000);
    // Busy time adds up, but for what ran across the border on each CPU, which both infer.
    let busy = |source: &TraceSource| summary(source).sum(|task| task.cpu_time).0 as f64;
    let ratio = (busy(&before) + busy(&after)) / busy(&hackbench());
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    assert!(before.header.tasks.len() < hackbench().header.tasks.len(), "tasks that are not there");
}

#[test]
fn a_task_alone_keeps_its_cpu_time_and_its_wakeups() {
    let whole = hackbench();
    let all = summary(&whole);
    let names: Vec<&str> = whole.header.tasks.iter().map(|task| task.name.as_str()).collect();
    let largest = all.tasks.iter().max_by_key(|task| task.cpu_time).expect("a task");
    let name = names[largest.task.index()];
    let source = part(None, None, &[name]);
    assert!(source.header.tasks.iter().all(|task| task.name == name));
    let alone = summary(&source);
    let of_name =
        |summary: &Summary, names: &[&str], of: fn(&schedsim::metrics::TaskSummary) -> u64| {
            let tasks = summary.tasks.iter().filter(|task| names[task.task.index()] == name);
            tasks.map(of).sum::<u64>()
        };
    let left: Vec<&str> = source.header.tasks.iter().map(|task| task.name.as_str()).collect();
    let both = |of: fn(&schedsim::metrics::TaskSummary) -> u64| {
        (of_name(&all, &names, of) as f64, of_name(&alone, &left, of) as f64)
    };
    let (wakeups, as_many) = both(|task| task.wakeups.into());
    assert_eq!(wakeups, as_many, "{name}");
    // This recording lacks some switches: without the tasks that are left out, less is inferred of them.
    let (of_all, of_part) = both(|task| task.cpu_time.0);
    assert!((of_part / of_all - 1.0).abs() < 0.02, "{name}: {of_all} became {of_part}");
}

#[test]
fn cpus_are_those_that_are_named_and_all_of_them_are_all() {
    let whole = events(&hackbench());
    assert_eq!(events(&part(None, Some("0-4000"), &[])), whole);
    let of_one = events(&part(None, Some("1"), &[]));
    let switches = |events: &[Event], cpu: Option<u16>| {
        let is =
            |event: &&Event| matches!(event.kind, schedsim::trace::EventKind::SchedSwitch { .. });
        events.iter().filter(is).filter(|event| cpu.is_none_or(|cpu| event.cpu.0 == cpu)).count()
    };
    assert_eq!(switches(&of_one, None), switches(&whole, Some(1)));
}

#[test]
fn what_selects_nothing_is_named() {
    let wrong = |text: &str| text.parse::<formats::selection::Window>().expect_err(text);
    assert!(wrong("1s").contains(".."));
    assert!(wrong("2s..1s").contains("empty"));
    assert!("3-1".parse::<formats::selection::CpuSet>().expect_err("a range").contains("1-3"));
    let select =
        |selection| hackbench().select(selection).map(drop).expect_err("nothing").to_string();
    let late = Selection { window: "100s..".parse().ok(), ..Selection::default() };
    assert!(select(late).contains("nothing is selected"));
    let unknown = Selection { comm: vec!["rustcc".to_string()], ..Selection::default() };
    assert!(select(unknown).contains("Did you mean"));
    let mut none = Collect::default();
    let nothing = Selected::new(&Selection::default(), Some(vec![]), vec![&mut none]);
    assert!(nothing.finish(schedsim::Time::ZERO).is_err());
}
