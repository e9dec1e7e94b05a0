//! `--on host`: real tasks on this machine, what is refused, and that the machine is left as it
//! was. What needs a privilege is skipped by name where that is missing.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError::Timeout;
use std::time::{Duration, Instant};

const SCHEDLAB: &str = env!("CARGO_BIN_EXE_schedlab");

fn compare(arguments: &[&str]) -> Output {
    Command::new(SCHEDLAB)
        .arg("compare")
        .args(arguments)
        .args(["--on", "host"])
        .output()
        .expect("the program starts")
}

/// The same with a command behind it.
fn compare_command(arguments: &[&str], command: &[&str]) -> Output {
    let mut schedlab = Command::new(SCHEDLAB);
    schedlab.args(["compare", "--on", "host"]).args(arguments).arg("--").args(command);
    schedlab.output().expect("the program starts")
}

fn fails(output: &Output, code: i32, words: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

/// The rows; a comparison that ran out of time has some as well.
fn rows(output: &Output) -> Vec<Value> {
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{message}");
    let results: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {message}"));
    results["rows"].as_array().expect("rows").clone()
}

fn find<'a>(rows: &'a [Value], policy: &str, metric: &str) -> &'a Value {
    let row = rows.iter().find(|row| row["candidate"] == policy && row["metric"] == metric);
    row.unwrap_or_else(|| panic!("no {metric} of {policy}"))
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: it needs root: sudo cargo test -p schedlab --test host");
    }
    is_root
}

const QUICK: [&str; 6] = ["--ensemble", "2", "--warm-up", "0", "--format", "json"];

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("schedlab-host-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("a scratch directory");
    path
}

#[test]
fn real_tasks_are_measured_and_single_runs_are_kept() {
    let dir = scratch("measured");
    let policies = [
        "hogs:2?work=20ms",
        "--cpus",
        "1",
        "--policy",
        "kernel:other,kernel:batch",
        "-o",
        dir.to_str().expect("UTF-8"),
    ];
    let output = compare(&[&policies[..], &QUICK].concat());
    let rows = rows(&output);
    for policy in ["kernel:other", "kernel:batch"] {
        let makespan = find(&rows, policy, "makespan_ns");
        assert_eq!((&makespan["world"], &makespan["cpus"]), (&"host".into(), &1.into()));
        // Two tasks with 20 ms each on one CPU.
        assert!(makespan["value"].as_f64().expect("a number") >= 40e6, "{makespan}");
        let cpu = find(&rows, policy, "cpu_time_ns")["value"].as_f64().expect("a number");
        assert!(cpu >= 39e6, "{cpu}");
        let delay = find(&rows, policy, "run_delay_ns")["value"]
            .as_f64()
            .expect("this kernel keeps schedstat");
        // One waits while the other runs.
        assert!(delay >= 15e6, "{delay}");
        let of_task = rows
            .iter()
            .filter(|row| row["candidate"] == policy && row["metric"] == "task_cpu_time_ns");
        assert!(
            of_task.clone().count() == 2
                && of_task.clone().all(|row| row["value"].as_f64().is_some_and(|ns| ns >= 19e6))
        );
    }
    assert!(rows.iter().any(|row| row["metric"] == "same_makespan_difference"), "A/A");
    let runs = fs::read_to_string(dir.join("runs.csv")).expect("runs.csv");
    let makespans = runs
        .lines()
        .filter(|line| line.contains(",kernel:batch,1,") && line.contains(",makespan_ns,"));
    let makespans: Vec<f64> = makespans
        .map(|line| line.rsplit(',').next().expect("a value").parse().expect("a number"))
        .collect();
    let mean = makespans.iter().sum::<f64>() / makespans.len() as f64;
    let row = find(&rows, "kernel:batch", "makespan_ns");
    assert_eq!(row["runs"], makespans.len());
    assert!((row["value"].as_f64().expect("a number") / mean - 1.0).abs() < 1e-9);
    assert!(dir.join("report.html").is_file());
    fs::remove_dir_all(dir).expect("scratch");
}

#[test]
fn threads_processes_and_many_short_jobs_all_end() {
    for workload in [
        "pythagoras:300?work=10ms&alive=50&create=0us",
        "pythagoras:300?work=10ms&alive=50&create=0us&variant=processes",
        "pythagoras:5000?work=10ms&alive=100&create=0us&variant=pool",
        "hackbench:1?loops=2",
        "two-threads",
        "fileio:copy?rounds=2",
    ] {
        let rows = rows(&compare(&[&[workload, "--policy", "kernel:other"], &QUICK[..]].concat()));
        assert!(find(&rows, "kernel:other", "makespan_ns")["value"].is_number(), "{workload}");
        assert!(find(&rows, "kernel:other", "throughput")["value"].is_number(), "{workload}");
    }
    if is_root() {
        // On one CPU whoever waits for the end must not keep from it who is ending; where it did,
        // runs ended 0.95 s late, and some not at all.
        let one_cpu = [
            "hogs:4?work=1ms",
            "--cpus",
            "1",
            "--policy",
            "kernel:other,kernel:fifo:50",
            "--warm-up",
            "0",
            "--format",
            "json",
        ];
        let rows = rows(&compare(
            &[&one_cpu[..], &["--ci", "0.001%", "--ensemble", "10", "--max-runs", "12"]].concat(),
        ));
        assert!(
            find(&rows, "kernel:fifo:50", "makespan_ns")["runs"].as_u64().expect("a number") >= 10
        );
    }
}

#[test]
fn a_command_that_fails_or_takes_too_long_is_reported_and_never_averaged_in() {
    fails(
        &compare_command(&QUICK, &["sh", "-c", "echo no such luck >&2; exit 7"]),
        3,
        &["exit status: 7", "no such luck"],
    );
    fails(
        &compare_command(&[&QUICK[..], &["--timeout", "100ms"]].concat(), &["sleep", "10"]),
        3,
        &["not over after 100ms", "killed"],
    );
    fails(&compare_command(&QUICK, &["no-such-command-at-all"]), 2, &["there is no such command"]);
    // The sixth time only: the trial, four runs of the baseline against itself with and without
    // measuring, and then it counts.
    let dir = scratch("fails-once");
    let count = dir.join("count");
    let script = format!("echo >> {0}; test $(wc -l < {0}) -ne 9", count.display());
    let output = compare_command(
        &[&["--policy", "kernel:other"], &QUICK[..]].concat(),
        &["sh", "-c", &script],
    );
    let rows = rows(&output);
    let makespan = find(&rows, "kernel:other", "makespan_ns");
    let note = makespan["note"].as_str().expect("a note");
    assert!(
        note.contains("1 of ")
            && note.contains("failed and are left out")
            && note.contains("exit status: 1"),
        "{note}"
    );
    fs::remove_dir_all(dir).expect("scratch");
}

#[test]
fn what_cannot_run_here_is_refused_with_what_to_do() {
    if !Path::new("/sys/kernel/sched_ext").exists() {
        for policy in ["take:rr", "bpf:rr", "scx:./scx_simple"] {
            let output = compare(&["hogs:1", "--policy", policy]);
            fails(&output, 77, &[policy, "sched_ext", "--on vm", "--on sim"]);
        }
    }
    fails(&compare(&["hogs:1", "--policy", "kernel:fifo:99"]), 2, &["watchdog", "98"]);
    fails(&compare(&["hogs:1", "--nice", "20"]), 2, &["-20..=19"]);
    fails(&compare(&["hogs:1", "--affinity", "4000"]), 2, &["CPU 4000 is not there", "may be:"]);
    fails(&compare(&["hogs:1", "--affinity", "5000"]), 2, &["5000 is out of range", "0 to 4095"]);
    fails(&compare(&["hogs:1", "--affinity", "2-1"]), 2, &["0,2-3"]);
    fails(&compare(&["hogs:1", "--cpus", "1000"]), 2, &["1000 CPUs are requested"]);
    fails(&compare(&["unix1990"]), 2, &["in the simulator only", "hackbench:1"]);
    fails(&compare(&["hogs:1", "--load", "0.5"]), 2, &["leave --load"]);
    fails(
        &compare(&["pythagoras:204800?alive=204800"]),
        2,
        &["204801 tasks alive", "has room for"],
    );
    fails(&compare_command(&["hogs:1"], &["true"]), 2, &["not both"]);
    fails(
        &Command::new(SCHEDLAB).args(["compare", "--", "true"]).output().expect("starts"),
        2,
        &["--on host"],
    );
    let redis = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/redis.perf-script.txt.zst");
    fails(&compare(&[redis]), 2, &["is a recording", "-- make"]);
}

#[test]
fn without_the_privilege_a_class_is_skipped_and_the_rest_runs() {
    if !is_root() {
        return;
    }
    let mut schedlab = Command::new("setpriv");
    schedlab.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
        SCHEDLAB,
    ]);
    schedlab
        .args([
            "compare",
            "hogs:1?work=5ms",
            "--on",
            "host",
            "--policy",
            "kernel:other,kernel:fifo:50",
            "--ci",
            "100%",
        ])
        .args(QUICK);
    let output = schedlab.output().expect("setpriv of util-linux");
    fails(
        &output,
        77,
        &["kernel:fifo:50 was not run", "Operation not permitted", "setcap cap_sys_nice"],
    );
    let rows = rows(&output);
    assert!(find(&rows, "kernel:other", "makespan_ns")["value"].is_number());
    assert!(
        find(&rows, "kernel:fifo:50", "makespan_ns")["note"]
            .as_str()
            .expect("a note")
            .starts_with("skipped")
    );
}

#[test]
fn a_recorded_run_has_the_latencies_of_its_own_tasks() {
    if !is_root() || Command::new("perf").arg("version").output().is_err() {
        eprintln!("skipped: it needs perf: apt-get install linux-perf");
        return;
    }
    let sleepers = "pythagoras:20?variant=sleepers&alive=20&create=0us&work=20ms";
    // Somebody else, who is woken thousands of times a second.
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        while is_over.recv_timeout(Duration::from_micros(100)).is_err_and(|why| why == Timeout) {}
    });
    let output =
        compare(&[&[sleepers, "--policy", "kernel:other", "--traced"], &QUICK[..]].concat());
    drop(over);
    other.join().expect("it ends");
    let rows = rows(&output);
    let recorded = |metric: &str| {
        let row =
            rows.iter().find(|row| row["metric"] == metric && row["point"]["recorded"] == "perf");
        row.unwrap_or_else(|| panic!("no {metric}"))["value"]
            .as_f64()
            .unwrap_or_else(|| panic!("no value of {metric}"))
    };
    // Twenty jobs that sleep once each and a main task that waits for each; all may wait for the
    // lock of their memory map a few times.
    assert!((20.0..=200.0).contains(&recorded("wakeups")), "{}", recorded("wakeups"));
    assert!(recorded("wakeup_latency_ns_p50") > 0.0 && recorded("switches") >= 40.0);
    assert!(
        recorded("slice_ns_mean") > 0.0 && (0.0..=1.0).contains(&recorded("completion_inversions"))
    );
}

#[test]
fn predictions_are_held_against_this_machine_change_by_change() {
    for (workload, words) in [
        ("unix1990", "the tasks of unix1990 cannot be run again"),
        ("hackbnch:1", "Did you mean `hackbench`?"),
    ] {
        fails(
            &Command::new(SCHEDLAB)
                .args(["predict", workload])
                .output()
                .expect("the program starts"),
            2,
            &[words],
        );
    }
    if !is_root() || Command::new("perf").arg("version").output().is_err() {
        eprintln!("skipped: it needs perf: apt-get install linux-perf");
        return;
    }
    let arguments = ["predict", "hogs:2?work=10ms", "--ensemble", "2", "--format", "json"];
    let output = Command::new(SCHEDLAB).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = rows(&output);
    for change in ["no change", "cpus=1", "nice=10", "fifo=50"] {
        let value = |backend: &str, metric: &str| {
            let row = rows.iter().find(|row| {
                row["point"]["change"] == change
                    && row["world"] == backend
                    && row["metric"] == metric
            });
            row.unwrap_or_else(|| panic!("no {metric} of {backend}, {change}"))["value"]
                .as_f64()
                .expect("a number")
        };
        let (predicted, measured) = (value("sim", "makespan_ns"), value("host", "makespan_ns"));
        assert!(
            (value("sim", "makespan_ns_prediction_error") - (predicted / measured - 1.0)).abs()
                < 1e-9
        );
        // Two tasks with 10 ms each, less what starting them takes from the recorded runs.
        let least = if change == "cpus=1" { 19e6 } else { 9.5e6 };
        assert!(predicted >= least && measured >= least, "{change}: {predicted}, {measured}");
    }
}

#[test]
fn a_file_of_rt_apps_loads_the_cpus_as_rt_app_does() {
    if Command::new("rt-app").arg("--version").output().is_err() {
        eprintln!("skipped: it needs rt-app: apt-get install rt-app");
        return;
    }
    let dir = scratch("rt-app");
    let file = dir.join("load.json");
    let timer = r#""timer": {"ref": "unique", "period": 16000}"#;
    let thread = |run: u32| {
        format!(r#"{{"loop": 1, "phases": {{"load": {{"loop": 60, "run": {run}, {timer}}}}}}}"#)
    };
    let global =
        r#""global": {"duration": 20, "calibration": "CPU0", "default_policy": "SCHED_OTHER"}"#;
    let text = format!(
        r#"{{{global}, "tasks": {{"light": {}, "heavy": {}}}}}"#,
        thread(1500),
        thread(6000)
    );
    fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let (ours, theirs) = (loads_of_ours(file), loads_of_rt_app(file));
    fs::remove_dir_all(dir).expect("scratch");
    eprintln!("here {ours:?}, rt-app {theirs:?}");
    for (task, asked) in [("light", 60.0 * 1.5e6), ("heavy", 60.0 * 6e6)] {
        let (ours, theirs) = (ours.cpu_ns[task], theirs.cpu_ns[task]);
        assert!(ours >= 0.97 * asked, "{task} ran for {ours} ns of {asked}");
        assert!(
            (0.2..5.0).contains(&(theirs / ours)),
            "{task} runs for {ours} ns here and for {theirs} in rt-app"
        );
    }
    // rt-app counts loops, whose speed it measures when it starts: where others run it is off by
    // half, for all of its tasks about alike.
    for (loads, range) in [(&ours, 3.6..4.4), (&theirs, 2.0..8.0)] {
        let ratio = loads.cpu_ns["heavy"] / loads.cpu_ns["light"];
        assert!(
            range.contains(&ratio),
            "heavy ran for {ratio} times as long as light, not 4 times"
        );
    }
    // Two tasks that wait for 60 timers each, and for the begin; what else waits is neither's load.
    // On a busy machine a task may come too late for its timer, and then does not wait. However
    // late it is, it cannot end before its last timer.
    for switches in [ours.switches, theirs.switches] {
        assert!(
            (1.0..=150.0).contains(&switches),
            "{switches} times a task waited, and there are 120 timers"
        );
    }
    for makespan_ns in [ours.makespan_ns, theirs.makespan_ns] {
        assert!(makespan_ns >= 59.0 * 16e6, "60 periods of 16 ms were over after {makespan_ns} ns");
    }
}

/// What the tasks of a file did.
#[derive(Debug)]
struct Loads {
    /// The CPU time of each task.
    cpu_ns: BTreeMap<String, f64>,
    /// How often `light` and `heavy` waited, together.
    switches: f64,
    /// From the begin of the first to the end of the last.
    makespan_ns: f64,
}

fn loads_of_ours(file: &str) -> Loads {
    let rows = rows(&compare(&[&[file, "--policy", "kernel:other"], &QUICK[..]].concat()));
    let number = |row: &Value| row["value"].as_f64().expect("a number");
    let tasks = rows.iter().filter(|row| row["metric"] == "task_cpu_time_ns");
    let cpu_ns = tasks
        .map(|row| (row["subject"].as_str().expect("a name").to_string(), number(row)))
        .collect();
    let of_all = |metric: &str| number(find(&rows, "kernel:other", metric));
    Loads { cpu_ns, switches: of_all("voluntary_switches"), makespan_ns: of_all("makespan_ns") }
}

/// The CPU time of each thread of rt-app's, and how often those two waited, read from the kernel
/// while it runs.
fn loads_of_rt_app(file: &str) -> Loads {
    // It leaves its logs where it is started.
    let here = Path::new(file).parent().expect("a directory");
    let begin = Instant::now();
    let mut rt_app = Command::new("rt-app");
    let mut rt_app = rt_app
        .current_dir(here)
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("rt-app");
    let (mut cpu_ns, mut switches) = (BTreeMap::new(), BTreeMap::new());
    while rt_app.try_wait().expect("it can be waited for").is_none() {
        for thread in
            fs::read_dir(format!("/proc/{}/task", rt_app.id())).into_iter().flatten().flatten()
        {
            let read =
                |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let name = read("comm").trim().split('-').next().unwrap_or_default().to_string();
            let waited = read("status").lines().find_map(|line| {
                line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<f64>().ok()
            });
            if let (Some(ns), Some(waited)) =
                (read("schedstat").split(' ').next().and_then(|ns| ns.parse::<f64>().ok()), waited)
            {
                cpu_ns.insert(name.clone(), ns);
                switches.insert(name, waited);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let switches = ["light", "heavy"].iter().filter_map(|task| switches.get(*task)).sum();
    Loads { cpu_ns, switches, makespan_ns: begin.elapsed().as_nanos() as f64 }
}

#[test]
fn a_full_disk_is_said() {
    if !is_root() {
        return;
    }
    let script = format!(
        "mount -t tmpfs -o size=64k none /mnt && TMPDIR=/mnt {SCHEDLAB} compare fileio:write --on \
         host --policy kernel:other"
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output()
        .expect("unshare of util-linux");
    fails(&output, 3, &["No space left on device", "TMPDIR"]);
}

/// A comparison that would go on for a minute, once its runner runs.
fn busy(name: &str, more: &[&str]) -> Child {
    let workload = format!("hogs:1?work=50s&nice={name}");
    // Whoever runs the tests in the background may have SIGINT ignored, which children inherit.
    let mut schedlab = Command::new("env");
    schedlab
        .args([
            "--default-signal=INT",
            SCHEDLAB,
            "compare",
            &workload,
            "--on",
            "host",
            "--policy",
            "kernel:other",
        ])
        .args(more);
    let child =
        schedlab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    wait_until("the hog runs", || !hogs_of(&child).is_empty());
    child
}

/// The processes of the sessions that `schedlab` started: its children's, which are the guard's and
/// the runner's.
fn hogs_of(schedlab: &Child) -> Vec<u32> {
    let fields = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        let words: Vec<String> = rest.split_ascii_whitespace().map(str::to_string).collect();
        Some((words[1].parse::<u32>().ok()?, words[3].parse::<u32>().ok()?))
    };
    let pids = || {
        fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    };
    let runners: Vec<u32> = pids()
        .filter(|&pid| {
            fields(pid).is_some_and(|(parent, session)| parent == schedlab.id() && session == pid)
        })
        .collect();
    pids()
        .filter(|&pid| {
            fields(pid)
                .is_some_and(|(parent, session)| runners.contains(&session) && parent == session)
        })
        .collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z")
}

const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";

#[test]
fn killed_or_interrupted_it_leaves_no_task_and_no_setting_behind() {
    let before = fs::read_to_string(THROTTLING).expect("a setting");
    let more: &[&str] = if is_root() { &["--no-rt-throttling"] } else { &[] };
    for signal in [rustix::process::Signal::KILL, rustix::process::Signal::INT] {
        let mut schedlab = busy("1", more);
        let hogs = hogs_of(&schedlab);
        if !more.is_empty() {
            assert_eq!(fs::read_to_string(THROTTLING).expect("a setting").trim(), "-1");
        }
        let pid = rustix::process::Pid::from_raw(schedlab.id().cast_signed()).expect("a pid");
        rustix::process::kill_process(pid, signal).expect("it is alive");
        assert!(!schedlab.wait().expect("it ends").success());
        wait_until("the hogs are gone", || hogs.iter().all(|&pid| is_gone(pid)));
        wait_until("throttling is as it was", || {
            fs::read_to_string(THROTTLING).is_ok_and(|now| now == before)
        });
    }
}

/// What a command prints is a metric with an interval and a verdict; what it does not print has the
/// reason in place of a number.
#[test]
fn a_number_that_a_command_prints_is_compared() {
    let script =
        "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; echo \"t=$n\"; echo bye >&2";
    let directory = tempfile::tempdir().unwrap();
    let run = |script: &str, metrics: &[&str]| {
        let mut schedlab = Command::new(SCHEDLAB);
        schedlab.current_dir(directory.path()).args(["compare", "--on", "host"]);
        schedlab.args(["--no-self-comparison", "--policy", "kernel:other"]).args(QUICK);
        for metric in metrics {
            schedlab.args(["--metric", metric]);
        }
        schedlab.args(["--", "sh", "-c", script]).output().expect("the program starts")
    };
    // The first run shows whether it runs at all; two more count: 1 and 2.
    let output = run(script, &["t=regex:t=([0-9]+),ms,lower", "u=json:/u,us,lower"]);
    let rows = rows(&output);
    let row = find(&rows, "kernel:other", "printed:t:ms:lower");
    assert_eq!((&row["value"], &row["unit"], &row["runs"]), (&1.5.into(), &"ms".into(), &2.into()));
    let row = find(&rows, "kernel:other", "printed:u:us:lower");
    assert!(row["value"].is_null() && row["note"].to_string().contains("no JSON"), "{row}");
    // Output without end, a name twice, what is no reader, and no command.
    fails(&run("yes", &["hackbench"]), 3, &["more than 64 MiB of output"]);
    fails(&run("true", &["hackbench", "time=json:/t,s,lower"]), 2, &["`time` twice"]);
    fails(&run("true", &["t=json:t,s,lower"]), 2, &["slash"]);
    let none = compare(&["hackbench:1", "--metric", "hackbench"]);
    fails(&none, 2, &["COMMAND"]);
}
