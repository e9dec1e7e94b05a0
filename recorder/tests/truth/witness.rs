//! perf records the same run: what the scheduler did to each task must be the same, number by
//! number.

use super::record;
use recording::What;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// By task: switches away and to it, wakings, wakeups, new wakeups, migrations.
type Tally = BTreeMap<u32, [u64; 6]>;

const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,\
                      sched:sched_wakeup_new,sched:sched_migrate_task,sched:sched_process_fork,\
                      sched:sched_process_exit";

/// Holds the two against each other, for tasks that began and ended while both recorded.
pub fn same_as_perf(folder: &Path) {
    if Command::new("perf").arg("--version").output().is_err() {
        println!("      skipped: perf is missing; install it: apt-get install linux-perf");
        return;
    }
    let mounted = Path::new("/sys/kernel/tracing/events").is_dir();
    if !mounted {
        let arguments = ["-t", "tracefs", "nodev", "/sys/kernel/tracing"];
        let status = Command::new("mount").args(arguments).status();
        assert!(status.is_ok_and(|status| status.success()), "tracefs is mounted");
    }
    let data = folder.join("witness.data").display().to_string();
    let workload = "for i in 1 2 3 4 5 6; do seq 3000 | sort -R | tail -1; sleep 0.01; done; \
                    perf bench sched messaging -g 1 -l 20 || true";
    let perf = ["perf", "record", "-q", "-a", "-m", "4096", "-e", EVENTS, "-o", &data, "--"];
    let command: Vec<&str> = perf.into_iter().chain(["sh", "-c", workload]).collect();
    let (read, _) = record(&folder.join("witness.rec"), &[], &command);
    let script = ["script", "-i", &data, "-F", "pid,event,trace"];
    let output = Command::new("perf").args(script).output().expect("perf starts");
    if !mounted {
        let unmounted = Command::new("umount").arg("/sys/kernel/tracing").status();
        assert!(unmounted.is_ok_and(|status| status.success()), "tracefs is unmounted");
    }
    assert_eq!(read.counts().lost(), 0, "{:?}", read.counts().lost);
    assert_eq!(read.counts().disagreement(), None);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("LOST"), "perf lost events");
    let (theirs, lived) = tally_of_perf(&text);
    let mut ours = Tally::new();
    for event in &read.events {
        let mut count = |task: u32, which: usize| ours.entry(task).or_default()[which] += 1;
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
    assert!(lived.len() > 20, "{} tasks", lived.len());
    let mut sum = [0; 6];
    for task in lived {
        assert_eq!(ours.get(&task), theirs.get(&task), "task {task}");
        let counts = theirs.get(&task).copied().unwrap_or_default();
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    println!("      the same: {sum:?} switches away, to, wakings, wakeups, new, migrations");
}

/// What perf counted, and the tasks that began and ended meanwhile.
fn tally_of_perf(text: &str) -> (Tally, Vec<u32>) {
    let (mut tally, mut began, mut lived) = (Tally::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let Some((_, rest)) = line.split_once("sched:") else { continue };
        let Some((event, fields)) = rest.split_once(": ") else { continue };
        // `pid=` is also the end of `prev_pid=`, `child_pid=`, `next_pid=`.
        let field = |name: &str| -> Option<u32> {
            let at = fields.rfind(name)? + name.len();
            fields[at..].split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let mut count = |name: &str, which: usize| {
            let task = field(name).unwrap_or_else(|| panic!("{line}"));
            tally.entry(task).or_default()[which] += 1;
        };
        match event {
            "sched_switch" => {
                count("prev_pid=", 0);
                count("next_pid=", 1);
            }
            "sched_waking" => count("pid=", 2),
            "sched_wakeup" => count("pid=", 3),
            "sched_wakeup_new" => count("pid=", 4),
            "sched_migrate_task" => count("pid=", 5),
            "sched_process_fork" => began.extend(field("child_pid=")),
            "sched_process_exit" => {
                lived.extend(field("pid=").filter(|task| began.contains(task)));
            }
            _ => {}
        }
    }
    (tally, lived)
}
