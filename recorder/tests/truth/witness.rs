//! perf records the same run: what the scheduler did to each task must be the same, number by
//! number.
//!
//! What is held against what:
//!
//! - Only tasks of the command's own tree count, which began and ended between two marks: the
//!   first and the last fork of its shell. perf enables and disables its events CPU by CPU, so
//!   that it sees a part only of what lives at its beginning and end.
//! - A tracepoint runs in some task, which *emits* its event. On some kernels perf gets no event
//!   at all from some emitter: on one guest kernel 6.18 the idle task of one CPU, there switched
//!   to 205 times and away from 0 times, so that all that woke in its interrupts was missing. perf
//!   reports no loss. Its own record shows it, though: on each CPU, a switch begins with the
//!   task with which the one before ended. An emitter whose switches perf never has, and after
//!   which this chain is broken, is *silent*. Its events are left out on both sides, and it is printed.
//! - Any other gap in perf's chain, and a loss that perf reports, ends the trial, and another one
//!   is made. A difference without such a gap is one of the recorder, and fails.
//! - The recorder's own chain must be whole where a task of the tree or an idle task leaves a CPU,
//!   so that a switch that is silent under perf is checked, too. What other tasks emit is not in
//!   question: of some threads of the program that runs that guest neither perf nor BPF gets
//!   switches.

use super::{Read, record};
use recording::{Event, What};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// By task: switches away and to it, wakings, wakeups, new wakeups, migrations.
type Tally = BTreeMap<u32, [u64; 6]>;

/// In whose time an event happened: a task, or the idle task of a CPU.
type Emitter = (u32, u16);

const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,\
                      sched:sched_wakeup_new,sched:sched_migrate_task,sched:sched_process_fork,\
                      sched:sched_process_exit";

/// How often perf may lose events.
const TRIALS: usize = 5;

/// How a comparison ends.
#[derive(PartialEq, Eq, Debug)]
enum Comparison {
    Same { tasks: usize, sum: [u64; 6] },
    PerfLost(String),
    Differs(String),
}
use Comparison::{Differs, PerfLost, Same};

/// Holds the two against each other.
pub fn same_as_perf(folder: &Path) {
    if Command::new("perf").arg("--version").output().is_err() {
        println!("      skipped: perf is missing; install it: apt-get install linux-perf");
        return;
    }
    a_wrong_count_is_noticed();
    for trial in 1..=TRIALS {
        match compared(folder) {
            Same { tasks, sum } => {
                println!("      {tasks} tasks, the same: {sum:?} switches away, to, wakings,");
                println!("      wakeups, new wakeups, migrations");
                assert!(tasks > 20, "too few tasks to say anything");
                return;
            }
            PerfLost(what) => println!("      trial {trial} says nothing, perf lost: {what}"),
            Differs(what) => panic!("{what}"),
        }
    }
    panic!("perf lost events {TRIALS} times");
}

fn compared(folder: &Path) -> Comparison {
    let mounted = Path::new("/sys/kernel/tracing/events").is_dir();
    if !mounted {
        let arguments = ["-t", "tracefs", "nodev", "/sys/kernel/tracing"];
        let status = Command::new("mount").args(arguments).status();
        assert!(status.is_ok_and(|status| status.success()), "tracefs is mounted");
    }
    let data = folder.join("witness.data").display().to_string();
    let workload = "echo $$; for i in 1 2 3 4 5 6; do seq 3000 | sort -R | tail -1; sleep 0.01; \
                    done; perf bench sched messaging -g 1 -l 20 || true; sleep 0.05";
    let perf = ["perf", "record", "-q", "-a", "-m", "4096", "-e", EVENTS, "-o", &data, "--"];
    let command: Vec<&str> = perf.into_iter().chain(["sh", "-c", workload]).collect();
    let (read, said) = record(&folder.join("witness.rec"), &[], &command);
    let perf = |arguments: &[&str]| {
        let output = Command::new("perf").args(arguments).args(["-i", &data]).output();
        String::from_utf8_lossy(&output.expect("perf starts").stdout).into_owned()
    };
    let text = perf(&["script", "-F", "tid,cpu,event,trace"]);
    let statistics = perf(&["report", "--stats"]);
    if !mounted {
        let unmounted = Command::new("umount").arg("/sys/kernel/tracing").status();
        assert!(unmounted.is_ok_and(|status| status.success()), "tracefs is unmounted");
    }
    assert_eq!(read.counts().lost(), 0, "{:?}", read.counts().lost);
    assert_eq!(read.counts().disagreement(), None);
    let shell = said.lines().next().and_then(|line| line.trim().parse().ok());
    let theirs: Vec<Event> = text.lines().filter_map(parse).collect();
    if let Some(lost) = statistics.lines().find(|line| line.contains("LOST")) {
        return PerfLost(lost.trim().to_string());
    }
    let Read { events: ours, .. } = read;
    for (name, events) in [("perf", &theirs), ("the recorder", &ours)] {
        for (task, cpu) in silent(events) {
            let idle = if task == 0 { format!(" (idle on CPU {cpu})") } else { String::new() };
            println!("      {name} gets no switch from task {task}{idle}: left out");
        }
    }
    compare(&ours, &theirs, shell.expect("the shell prints its number"))
}

/// Holds one record against the other, for the tasks below `shell`.
fn compare(ours: &[Event], theirs: &[Event], shell: u32) -> Comparison {
    let tasks = lived(theirs, shell);
    let own = |(task, _): Emitter| task == 0 || tasks.contains(&task);
    if let Some(gap) = gap(ours, own) {
        return Differs(format!("the recorder lost a switch: {gap}"));
    }
    let silent = silent(theirs);
    let (mine, yours) = (tally(ours, &silent), tally(theirs, &silent));
    let mut sum = [0; 6];
    for task in &tasks {
        let of = |tally: &Tally| tally.get(task).copied().unwrap_or_default();
        if of(&mine) != of(&yours) {
            let more = of(&mine).iter().zip(of(&yours)).all(|(mine, yours)| *mine >= yours);
            let what = format!("task {task}: recorder {:?}, perf {:?}", of(&mine), of(&yours));
            return match gap(theirs, |came| !silent.contains(&came)) {
                Some(gap) if more => PerfLost(format!("{what}; {gap}")),
                _ => Differs(what),
            };
        }
        sum.iter_mut().zip(of(&yours)).for_each(|(sum, count)| *sum += count);
    }
    Same { tasks: tasks.len(), sum }
}

/// The switches after which another task leaves the CPU than the one that came: who came, who
/// left.
fn breaks(events: &[Event]) -> Vec<(Emitter, u32)> {
    let mut running: BTreeMap<u16, u32> = BTreeMap::new();
    let mut breaks = Vec::new();
    for event in events {
        if let What::Switch { next, .. } = event.what {
            let came = running.insert(event.cpu, next);
            if let Some(came) = came.filter(|came| *came != event.tid) {
                breaks.push((emitter(came, event.cpu), event.tid));
            }
        }
    }
    breaks
}

/// The emitters of whose switches there is none although they ran.
fn silent(events: &[Event]) -> BTreeSet<Emitter> {
    let switches = events.iter().filter(|event| matches!(event.what, What::Switch { .. }));
    let heard: BTreeSet<Emitter> = switches.map(|event| emitter(event.tid, event.cpu)).collect();
    let came = breaks(events).into_iter().map(|(came, _)| came);
    came.filter(|came| !heard.contains(came)).collect()
}

/// A switch away from one of these tasks that is missing.
fn gap(events: &[Event], is_one: impl Fn(Emitter) -> bool) -> Option<String> {
    let found = breaks(events).into_iter().find(|(came, _)| is_one(*came));
    found.map(|((came, _), left)| format!("task {came} came, and task {left} left"))
}

fn emitter(task: u32, cpu: u16) -> Emitter {
    if task == 0 { (0, cpu) } else { (task, 0) }
}

/// What happened to each task, but for what silent ones emitted.
fn tally(events: &[Event], silent: &BTreeSet<Emitter>) -> Tally {
    let mut tally = Tally::new();
    for event in events {
        if silent.contains(&emitter(event.tid, event.cpu)) {
            continue;
        }
        let mut count = |task: u32, which: usize| tally.entry(task).or_default()[which] += 1;
        match event.what {
            What::Switch { next, .. } => {
                count(event.tid, 0);
                count(next, 1);
            }
            What::Waking { task, .. } => count(task, 2),
            What::Wakeup { task, .. } => count(task, 3),
            What::WakeupNew { task, .. } => count(task, 4),
            What::Migrate { task, .. } => count(task, 5),
            _ => {}
        }
    }
    tally
}

/// The tasks below `root` that ended before its last fork. A number that was used twice is none.
fn lived(events: &[Event], root: u32) -> Vec<u32> {
    let mut tree = BTreeSet::from([root]);
    let (mut began, mut ended, mut lived) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for event in events {
        match event.what {
            What::Fork { parent, child, .. } => {
                *began.entry(child).or_insert(0) += 1;
                if tree.contains(&parent) {
                    tree.insert(child);
                }
                if parent == root {
                    lived.clone_from(&ended);
                }
            }
            What::Exit { task, .. } if task != root && tree.contains(&task) => {
                ended.insert(task);
            }
            _ => {}
        }
    }
    lived.into_iter().filter(|task| began[task] == 1).collect()
}

/// An event of `perf script -F tid,cpu,event,trace`, as far as it is compared.
fn parse(line: &str) -> Option<Event> {
    let (head, rest) = line.split_once("sched:")?;
    let (event, fields) = rest.split_once(": ")?;
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    // `pid=` is also the end of `prev_pid=`, `child_pid=`, `next_pid=`. A name may have it.
    let field = |name: &str| -> u32 {
        let found = fields.rfind(name).and_then(|at| number(&fields[at + name.len()..]));
        found.unwrap_or_else(|| panic!("{line}"))
    };
    let parent = || {
        let end = fields.find(" child_comm=")?;
        number(&fields[fields[..end].rfind(" pid=")? + " pid=".len()..end])
    };
    let (emitted, cpu) = head.split_once('[')?;
    // A task that was released has the number -1.
    let mut tid = emitted.trim().parse().unwrap_or(u32::MAX);
    let cpu = u16::try_from(number(cpu)?).ok()?;
    let (target, prio, from, to) = (0, 0, 0, 0);
    let what = match event {
        "sched_switch" => {
            tid = field(" prev_pid=");
            let (state, next, prev_tgid, object) = (0, field(" next_pid="), 0, 0);
            What::Switch { state, prev_prio: 0, next, next_prio: 0, prev_tgid, object }
        }
        "sched_waking" => What::Waking { task: field(" pid="), target, prio, call: 0, object: 0 },
        "sched_wakeup" => What::Wakeup { task: field(" pid="), target, prio },
        "sched_wakeup_new" => What::WakeupNew { task: field(" pid="), target, prio },
        "sched_migrate_task" => What::Migrate { task: field(" pid="), prio, from, to },
        "sched_process_fork" => {
            let parent = parent().unwrap_or_else(|| panic!("{line}"));
            What::Fork {
                parent,
                child: field(" child_pid="),
                child_tgid: 0,
                number: 0,
                namespace: 0,
            }
        }
        "sched_process_exit" => What::Exit { task: field(" pid="), prio },
        _ => return None,
    };
    Some(Event { time: 0, cpu, context: 0, tid, what })
}

/// The comparison itself, on a small record: a shell (7) whose child (8) sleeps on CPU 1, which is
/// idle meanwhile.
fn a_wrong_count_is_noticed() {
    let text = "
        7 [000] sched:sched_process_fork: comm=sh pid=7 child_comm=sh child_pid=8
        7 [000] sched:sched_wakeup_new: comm=sh pid=8 prio=120 target_cpu=001
        0 [001] sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=8 next_prio=120
        8 [001] sched:sched_switch: prev_comm=sleep prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
        0 [001] sched:sched_waking: comm=sleep pid=8 prio=120 target_cpu=001
        0 [001] sched:sched_wakeup: comm=sleep pid=8 prio=120 target_cpu=001
        0 [001] sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sleep next_pid=8 next_prio=120
        8 [001] sched:sched_process_exit: comm=sleep pid=8 prio=120
       -1 [001] sched:sched_switch: prev_comm=sleep prev_pid=8 prev_prio=120 prev_state=Z ==> next_comm=swapper/1 next_pid=0 next_prio=120
        7 [000] sched:sched_process_fork: comm=a pid=1 pid=7 child_comm=sh child_pid=9";
    let all: Vec<Event> = text.lines().filter_map(parse).collect();
    let same = |sum| Same { tasks: 1, sum };
    assert_eq!(all.len(), 10);
    assert_eq!(compare(&all, &all, 7), same([2, 2, 1, 1, 1, 0]));
    let without = |left_out: &dyn Fn(usize, &Event) -> bool| -> Vec<Event> {
        let events = all.iter().enumerate().filter(|(at, event)| !left_out(*at, event));
        events.map(|(_, event)| *event).collect()
    };
    // perf hears nothing from the idle task: the rest is the same, and is held against the rest.
    let idle = without(&|_, event| event.tid == 0);
    assert_eq!(compare(&all, &idle, 7), same([2, 0, 0, 0, 1, 0]));
    for lost in 0..all.len() - 1 {
        let fewer = without(&|at, _| at == lost);
        let is_counted = !matches!(all[lost].what, What::Fork { .. } | What::Exit { .. });
        // The recorder's loss is always a difference; so is perf's, but for a gap in its chain.
        let ours = compare(&fewer, &all, 7);
        assert!(matches!(ours, Differs(_)) == is_counted, "event {lost}: {ours:?}");
        let theirs = compare(&all, &fewer, 7);
        let in_chain = matches!(all[lost].what, What::Switch { .. }) && (3..8).contains(&lost);
        assert!(matches!(theirs, PerfLost(_)) == in_chain, "event {lost}: {theirs:?}");
        assert!(in_chain || !is_counted || matches!(theirs, Differs(_)), "event {lost}");
        let wrong = compare(&fewer, &idle, 7);
        let heard = is_counted && (all[lost].tid != 0 || (3..8).contains(&lost) && in_chain);
        assert!(matches!(wrong, Differs(_)) == heard, "event {lost}: {wrong:?}");
    }
}
