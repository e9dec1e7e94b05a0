//! What is recorded on request: a control group, the last while, as much as a budget allows; and
//! what stands in every recording about the tasks and the machine.

use super::operations::times;
use super::{RECORDER, Read, record, this};
use recording::{Class, Event, What};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The last 600 ms before a file appears, of a run that begins and ends with other programs.
pub fn snapshot(folder: &Path) {
    let file = folder.join("snapshot.rec");
    let flag = folder.join("flag").display().to_string();
    // `cat` runs at the beginning only, and `sleep` until the end.
    let command =
        format!("cat /dev/null; (exec sleep 4) & sleep 1.2; touch {flag}; sleep 1.5; wait");
    let when = format!("test -e {flag}");
    let options = ["--snapshot", "600ms", "--when", &when];
    let (read, _) = record(&file, &options, &["sh", "-c", &command]);
    let counts = read.counts();
    assert_eq!(counts.disagreement(), None);
    assert!(counts.discarded["switch"] > 0 && counts.written["switch"] > 0);
    let (first, last) = (read.events[0].time, read.events[read.events.len() - 1].time);
    assert_eq!(read.machine.start, first);
    assert!(last - first <= 600_000_000, "{} ns", last - first);
    // Who was named before is named, and all that a call is about.
    let (mut named, mut objects) = (BTreeSet::new(), BTreeSet::new());
    for event in &read.events {
        match event.what {
            What::Task { .. } => drop(named.insert(event.tid)),
            What::Object { id, .. } => drop(objects.insert(id)),
            What::Call { object, .. } => {
                assert!(named.contains(&event.tid), "{event:?}");
                assert!(object == 0 || objects.contains(&object), "{event:?}");
            }
            _ => {}
        }
    }
    assert!(["sh", "sleep"].iter().all(|name| names(&read.events).contains(*name)));
    assert!(!names(&read.events).contains("cat"));
    assert!(matches!(&read.outcome, recording::Outcome::Complete(end) if end.status.is_none()));
    fs::remove_file(flag).expect("the flag");

    let mut recorder = Command::new(RECORDER);
    recorder.arg("-o").arg(&file).args(["--snapshot", "10s", "--when", "SIGUSR1", "--all"]);
    let mut recorder = recorder.args(["--", "sleep", "60"]).spawn().expect("the recorder starts");
    while !fs::read_to_string(format!("/proc/{}/task/{}/children", recorder.id(), recorder.id()))
        .is_ok_and(|children| is_named(children.trim(), "sleep"))
    {
        sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-USR1", &recorder.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert!(recorder.wait().expect("it ends").success());
    let read = Read::of(&file);
    assert!(read.counts().disagreement().is_none() && names(&read.events).contains("sleep"));
}

fn is_named(pid: &str, name: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
}

/// The names of tasks.
fn names(events: &[Event]) -> BTreeSet<String> {
    let of = |event: &Event| match event.what {
        What::Task { comm, .. } => {
            let name: Vec<u8> = comm.into_iter().take_while(|byte| *byte > 0).collect();
            Some(String::from_utf8_lossy(&name).into_owned())
        }
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// With next to no budget all is left out that can be, by name; with a large one nothing is.
pub fn budget(folder: &Path) {
    let command = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo | cat; sleep 0.05; done";
    let of = |share: &str| {
        let options = ["--budget", share];
        let (read, _) = record(&folder.join("budget.rec"), &options, &["sh", "-c", command]);
        assert_eq!(read.counts().disagreement(), None);
        read
    };
    let read = of("0.0001%");
    let shed = &read.counts().shed;
    let since = |what: &str| {
        let found = shed.iter().find(|(name, _)| name.starts_with(what));
        *found.unwrap_or_else(|| panic!("{what}: {shed:?}")).1
    };
    let order = ["entries", "calls that", "all calls", "wakeups"].map(since);
    assert!(shed.len() == 4 && order.is_sorted(), "{shed:?}");
    let second = 1_000_000_000;
    let after = |from: u64| {
        // An event may have been on its way when the level rose.
        let from = read.machine.start + from + second / 100;
        read.events.iter().filter(move |event| event.time > from)
    };
    let calls = after(order[2]).filter(|event| matches!(event.what, What::Call { .. })).count();
    let wakeups = after(order[3]).filter(|event| matches!(event.what, What::Wakeup { .. })).count();
    let wakings = after(order[3]).filter(|event| matches!(event.what, What::Waking { .. })).count();
    assert!(calls == 0 && wakeups == 0 && wakings > 0, "{calls} {wakeups} {wakings}");
    let read = of("100%");
    assert!(read.counts().shed.is_empty(), "{:?}", read.counts().shed);
    assert!(read.counts().unresolved.keys().all(|what| !what.contains("budget")));
}

/// Calls of a group's tasks are recorded, though nobody traced started them, and no others are.
pub fn cgroup(folder: &Path) {
    let Some(root) = cgroups() else {
        println!("      skipped: there are no control groups of version 2 here");
        return;
    };
    let group = root.join(format!("schedlab-test-{}", std::process::id()));
    let below = group.join("below");
    fs::create_dir_all(&below).expect("a group");
    let join = |group: &Path| {
        let command =
            format!("echo $$ >{}/cgroup.procs; read x; exec $0 operations", group.display());
        let mut child = Command::new("sh");
        child.args(["-c", &command, &this()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        child.spawn().expect("sh")
    };
    let (inside, outside) = (join(&below), join(&root));
    let file = folder.join("cgroup.rec");
    let option = format!("--cgroup={}", group.display());
    // The recorded command lets them go.
    let go =
        format!("echo >/proc/{}/fd/0; echo >/proc/{}/fd/0; sleep 1", inside.id(), outside.id());
    let (read, _) = record(&file, &[&option], &["sh", "-c", &go]);
    let written = |child: std::process::Child| {
        let id = child.id();
        drop(child.wait_with_output().expect("it ends"));
        let of = |event: &&Event| event.tid == id && matches!(event.what, What::Call { .. });
        read.events.iter().filter(of).count() as u64
    };
    let (inside, outside) = (written(inside), written(outside));
    for folder in [below, group] {
        fs::remove_dir(folder).expect("the group is empty");
    }
    assert_eq!(read.machine.causes_of, "cgroup");
    assert!(inside > 2 * times::WRITES_A && outside == 0, "{inside} inside, {outside} outside");
    let bad = Command::new(RECORDER).args(["--check", "--cgroup=/no/such/group"]).output();
    assert_eq!(bad.expect("the recorder starts").status.code(), Some(2));
}

fn cgroups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    Some(PathBuf::from(line.split(' ').nth(1)?))
}

/// A process that lives already: its open pipe, nice value, affinity and policy are known.
pub fn conditions(folder: &Path) {
    let file = folder.join("conditions.rec");
    let mut child = Command::new("nice");
    child.args(["-n", "7", "taskset", "1", "sh", "-c", "read x; exec cat"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("nice");
    while !is_named(&child.id().to_string(), "sh") {
        sleep(Duration::from_millis(10));
    }
    let inode = inode_of(&format!("/proc/{}/fd/0", child.id()));
    let pid = format!("--pid={}", child.id());
    let command = format!("echo >/proc/{}/fd/0; sleep 0.2", child.id());
    let (read, _) = record(&file, &[&pid], &["sh", "-c", &command]);
    let conditions = &read.machine.conditions;
    let open = |number: u32| {
        let mut own = conditions.descriptors.iter().filter(|open| open.tgid == child.id());
        own.find(|open| open.number == number).expect("it is open").clone()
    };
    assert_eq!((open(0).class.as_str(), open(0).inode), ("pipe", inode));
    assert_eq!(open(1).class, "device");
    assert!(conditions.descriptors.iter().all(|open| open.path.is_none()));
    // The pipe that was open has the same number in the events.
    let is_pipe = |event: &&Event| matches!(event.what, What::Object { class: Class::Pipe, inode: i, .. } if i == inode);
    assert_eq!(read.events.iter().filter(is_pipe).count(), 1);
    let mut settings = BTreeSet::new();
    for event in read.events.iter().filter(|event| event.tid == child.id()) {
        if let What::Setting { which, value, .. } = event.what {
            settings.insert((which, value));
        }
    }
    // SAFETY: a number in, a number out.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, child.id()) };
    assert!(nice > 0);
    let nice = i64::from(nice).cast_unsigned();
    assert_eq!(settings, BTreeSet::from([(0, 1), (2, nice)]));
    assert_eq!(
        conditions.online,
        fs::read_to_string("/sys/devices/system/cpu/online")
            .ok()
            .map(|text| text.trim().to_string())
    );
    assert_eq!(conditions.kernel_config.as_ref().map(String::len), kernel_config().map(|()| 32));
    let vulnerabilities = fs::read_dir("/sys/devices/system/cpu/vulnerabilities");
    assert_eq!(conditions.mitigations.len(), vulnerabilities.map_or(0, Iterator::count));
    let bytes = fs::read(&file).expect("the file");
    assert!(!bytes.windows(9).any(|window| window == b"/dev/null"), "a path is in the file");
    let (read, _) = record(&file, &[&pid, "--paths"], &["true"]);
    let paths = read.machine.conditions.descriptors.iter().filter_map(|open| open.path.as_deref());
    assert!(paths.into_iter().any(|path| path == "/dev/null"));
    drop(child.stdin.take());
    child.wait().expect("it ends");
}

fn inode_of(path: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).expect("it is open").ino()
}

fn kernel_config() -> Option<()> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let there = |path: &str| Path::new(path).exists();
    (there("/proc/config.gz") || there(&format!("/boot/config-{}", release.trim()))).then_some(())
}
