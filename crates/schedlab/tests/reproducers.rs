//! Reproducers: a program in C does as many operations as its workload, rt-app's JSON means the same
//! when it is read again, and neither has a name of the original if it is anonymous.

use formats::export::{Format, Language, anonymise_program, anonymise_trace, described, export};
use formats::import;
use formats::toml_file::TomlFile;
use formats::trace_source::TraceSource;
use formats::workload::{ClosedWorkload, Workload};
use schedsim::engine::{Options, simulate_named};
use schedsim::trace::{Event, EventKind, Observer, Trace};
use schedsim::workload::{Closed, Phase};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use worlds::experiment::{CostOverrides, Reading, Recorded, parse_policy};

const WORKLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");

/// Every phase, in an order in which none waits for ever and the number of each is known.
const ALL: &str = r#"
description = "ends a comment */ and \"quotes\""
[pipe.p]
capacity = 4096
[socket.d]
kind = "datagram"
[eventfd.tokens]
semaphore = true
count = 2
[eventfd.of_libc]
semaphore = true
wakes_one = true
[mutex.pi]
inherit = true
[mutex.spun]
spin = {}
[mutex.limited]
spin = { limit = "20us" }
[mutex.slept]
spin = { limit = "20us", sleep = "1ms" }
[epoll.set]
sources = [{ socket = "s" }, { eventfd = "stop", trigger = "edge" }]
[epoll.loop]
sources = [{ pipe = "a" }, { pipe = "b", trigger = "drained" }]
[epoll.watched]
sources = [{ eventfd = "late", off = true }]
[device.disk]
channels = 2
[list]
last = [{ run = "10us" }]
[[task]]
name = "writer"
count = 2
phases = [{ loop = { times = 5, phases = [{ write = { pipe = "p", bytes = 3000 } }, { run = "20us" }, { loop = { times = 2, phases = ["yield"] } }] } }, { barrier = "all" }]
[[task]]
name = "reader"
program = "a \"name\\ longer than fifteen"
process = true
phases = [{ loop = { times = 10, phases = [{ read = { pipe = "p", bytes = 3000 } }] } }, { barrier = "all" }, { io = { device = "disk", service = "1ms" } }, { exec = "last" }]
[[task]]
name = "parent"
phases = [{ fork = "child" }, { fork = "child" }, { join = "child" }, { sleep = "1ms" }, { sleep_until = "5ms" }, { timer = { period = "2ms" } }, { timer = { period = "1ms", name = "shared", shared = true, mode = "absolute" } }]
[[task]]
name = "child"
count = 2
forked = true
process = true
phases = [{ lock = "pi" }, { run = "50us" }, { unlock = "pi" }, { post = { eventfd = "of_libc", count = 2 } }, { take = { eventfd = "tokens" } }]
[[task]]
name = "waiter"
phases = [{ lock = "m" }, { post = { eventfd = "here" } }, { wait = { condition = "c", mutex = "m" } }, { unlock = "m" }, { loop = { times = 4, phases = [{ take = { eventfd = "of_libc" } }] } }]
[[task]]
name = "signaller"
start = "1ms"
phases = [{ take = { eventfd = "here" } }, { lock = "m" }, { broadcast = "c" }, { signal = "c" }, { unlock = "m" }]
[[task]]
name = "client"
phases = [{ loop = { times = 3, phases = [{ send = { socket = "s", bytes = 100 } }, { receive = { socket = "s", bytes = 7, reply = true } }] } }, { send = { socket = "d", bytes = 9 } }]
[[task]]
name = "server"
phases = [{ loop = { times = 3, phases = [{ serve = { epoll = "set", handle = [[{ receive = { socket = "s", bytes = 100 } }, { send = { socket = "s", bytes = 7, reply = true } }], [{ take = { eventfd = "stop" } }, { post = { eventfd = "stop" } }]] } }] } }, { receive = { socket = "d", bytes = 100 } }]
[[task]]
name = "feeder"
phases = [{ write = { pipe = "a", bytes = 10 } }, { sleep = "2ms" }, { write = { pipe = "b", bytes = 10 } }, { sleep = "2ms" }, { write = { pipe = "a", bytes = 10 } }, { sleep = "2ms" }, { post = { eventfd = "late" } }]
[[task]]
name = "looper"
phases = [{ event_loop = { epoll = "loop", round = "5us", handle = [[[{ read = { pipe = "a", bytes = 10 } }], [{ read = { pipe = "a", bytes = 10 } }]], [[{ read = { pipe = "b", bytes = 4 } }], [{ read = { pipe = "b", bytes = 6 } }]]] } }, { watch = { epoll = "watched", source = { eventfd = "late" } } }, { poll = "watched" }, { take = { eventfd = "late" } }]
[[task]]
name = "spinner"
count = 3
phases = [{ loop = { times = 20, phases = [{ lock = "spun" }, { run = "30us" }, { unlock = "spun" }, { lock = "limited" }, { run = "30us" }, { unlock = "limited" }, { lock = "slept" }, { run = "30us" }, { unlock = "slept" }] } }]
[[task]]
name = "daemon"
daemon = true
process = true
phases = [{ take = { eventfd = "stop" } }]
"#;

struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let dir =
            std::env::temp_dir().join(format!("schedlab-repro-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a scratch directory");
        Scratch(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn closed(text: &str) -> ClosedWorkload {
    ClosedWorkload::read(TomlFile::of("w.toml", text)).expect("a workload")
}

fn program_of(name: &str) -> (Closed, Recorded) {
    let path = Path::new(WORKLOADS).join("causes").join(name);
    let read = |path: &Path, options, observers: Vec<&mut dyn Observer>| {
        Ok(import::read(path, &options, observers)?)
    };
    let recorded = Recorded::load(&path, Reading::default(), CostOverrides::default(), read)
        .expect("a recording");
    let Recorded { workload, replay, machine, .. } = &recorded;
    (described(workload, &replay.ended, machine.cpus).expect("a program"), recorded)
}

/// What a program in C prints: how many operations of each kind were done.
fn counts_in_c(scratch: &Scratch, closed: &Closed) -> BTreeMap<String, u64> {
    let (source, binary) = (scratch.file("program.c"), scratch.file("program"));
    Language::C.write(closed, None, &source).expect("a program");
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"];
    let built = Command::new("cc").args(flags).args([&binary, &source]).output().expect("cc");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new("timeout").arg("60").arg(&binary).output().expect("timeout");
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}: {told}", ran.status);
    let line = |line: &str| {
        let (word, count) = line.split_once(' ').expect("a word and a number");
        (word.to_string(), count.parse().expect("a number"))
    };
    String::from_utf8(ran.stdout).expect("text").lines().map(line).collect()
}

/// How many operations of each kind a workload without choices has.
fn counts_of(closed: &Closed) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for tasks in closed.tasks.iter().filter(|tasks| !tasks.daemon) {
        for place in closed.reached_by(tasks, "") {
            let json = serde_json::to_value(place.phase).expect("json");
            let word = match &json {
                serde_json::Value::Object(of) => of.keys().next().expect("a key").clone(),
                other => other.as_str().expect("a word").to_string(),
            };
            let word = match word.as_str() {
                "broadcast" => "signal".to_string(),
                "sleep_until" => "sleep".to_string(),
                "loop" | "exec" | "event_loop" => continue,
                _ => word,
            };
            *counts.entry(word).or_insert(0) += place.times * u64::from(tasks.count);
        }
    }
    counts
}

fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: it needs cc: apt-get install gcc");
    }
    found
}

#[test]
fn a_program_in_c_does_every_operation_as_often_as_the_workload() {
    if !has_compiler() {
        return;
    }
    let scratch = Scratch::new("c");
    let workload = closed(ALL);
    let closed = workload.description();
    let (mut expected, found) = (counts_of(closed), counts_in_c(&scratch, closed));
    // The server waits three times, the loop once for each round and for its end. Two rounds of each
    // object are two rounds of the loop if all is there before it begins, four if all comes alone.
    let rounds = found["serve"] - 3 - 1;
    assert!((2..=4).contains(&rounds), "{found:?}");
    expected.insert("serve".to_string(), found["serve"]);
    // Nobody stops the server, and each round of the loop has CPU time of its own.
    for (word, change) in [("take", -3), ("post", -3), ("run", rounds.cast_signed())] {
        expected
            .entry(word.to_string())
            .and_modify(|count| *count = count.strict_add_signed(change));
    }
    assert_eq!(found, expected);
    for name in ["pipes.toml", "levels.toml"] {
        let text = fs::read_to_string(Path::new(WORKLOADS).join(name)).expect("a file");
        let workload = self::closed(&text);
        let mut short = workload.description().clone();
        // As many rounds as a second has room for.
        short.tasks.iter_mut().for_each(|tasks| shorten(&mut tasks.phases));
        assert_eq!(counts_in_c(&scratch, &short), counts_of(&short), "{name}");
    }
}

/// As it was recorded, the time of a call is a part of the run before or behind it.
#[test]
fn calls_of_a_program_in_c_are_a_part_of_its_runs() {
    if !has_compiler() {
        return;
    }
    let scratch = Scratch::new("paced");
    let calls =
        "{ write = { pipe = 'p', bytes = 60000 } }, { read = { pipe = 'p', bytes = 60000 } }";
    let rounds = format!(
        "phases = [{{ loop = {{ times = 2000, phases = [{{ loop = {{ times = 5, phases = [{calls}] \
         }} }}, {{ run = '150us' }}] }} }}]"
    );
    let task = format!("[pipe.p]\n[[task]]\nname = 't'\n{rounds}\n");
    counts_in_c(&scratch, closed(&task).description());
    // What the shell waited for: of the program, user and system.
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" >&2; times"]).arg(scratch.file("program"));
    let times = String::from_utf8(shell.output().expect("sh").stdout).expect("text");
    let seconds = |time: &str| -> f64 {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("minutes");
        60.0 * minutes.parse::<f64>().expect("a number") + seconds.parse::<f64>().expect("a number")
    };
    let used: f64 = times.lines().last().expect("children").split(' ').map(seconds).sum();
    assert!((0.27..0.34).contains(&used), "{used} s of 0.3 s: {times}");
}

fn shorten(phases: &mut [Phase]) {
    for phase in phases {
        if let Phase::Loop(of) = phase {
            let deep = of.phases.iter().any(|phase| matches!(phase, Phase::Loop(_)));
            of.times = of.times.map(|times| if deep { times } else { times.div_ceil(20) });
            shorten(&mut of.phases);
        }
    }
}

#[test]
fn recorded_programs_end_in_c() {
    if !has_compiler() {
        return;
    }
    let scratch = Scratch::new("recorded");
    for (name, words) in [
        ("hackbench.rec.zst", ["send", "receive", "fork"]),
        ("redis.rec.zst", ["serve", "watch", "send"]),
        ("make.rec.zst", ["fork", "join", "io"]),
    ] {
        let (mut closed, _) = program_of(name);
        // Without what another machine has no CPUs for.
        closed.tasks.iter_mut().for_each(|tasks| tasks.affinity = None);
        let counts = counts_in_c(&scratch, &closed);
        assert!(words.iter().all(|word| counts.get(*word).is_some_and(|of| *of > 0)), "{counts:?}");
    }
}

/// What can be said in rt-app's words without an approximation.
const SIMPLE: &str = r#"
duration = "1s"
[mutex.m]
inherit = false
[[task]]
name = "producer"
count = 2
nice = -5
slice = "2ms"
phases = [{ loop = { times = 30, phases = [{ run = "700us" }, { lock = "m" }, { run = "40us" }, { signal = "c" }, { unlock = "m" }, { timer = { period = "3ms", name = "t" } }] } }, { barrier = "end" }, { run = "5us" }]
[[task]]
name = "consumer"
phases = [{ loop = { phases = [{ lock = "m" }, { wait = { condition = "c", mutex = "m" } }, { run = "300us" }, { unlock = "m" }, { fork = "helper" }] , times = 20 } }]
[[task]]
name = "helper"
forked = true
count = 20
policy = "batch"
phases = [{ run = "90us" }, { sleep = "1ms" }, { run = "10us" }]
[[task]]
name = "rt"
policy = "fifo"
priority = 7
affinity = [1]
start = "2500us"
phases = [{ loop = { times = 9, phases = [{ loop = { times = 3, phases = [{ run = "100us" }, "yield"] } }, { sleep = "5ms" }] } }, { barrier = "end" }]
[[task]]
name = "joined"
phases = [{ sleep_until = "4ms" }, { run = "1ms" }, { sleep_until = "9ms" }, { timer = { period = "11ms", name = "t", shared = true, mode = "absolute" } }, { run = "1ms" }]
[[task]]
name = "poster"
phases = [{ loop = { times = 50, phases = [{ post = { eventfd = "e", count = 2 } }, { run = "60us" }] } }]
[[task]]
name = "taker"
count = 2
phases = [{ loop = { times = 50, phases = [{ take = { eventfd = "e" } }, { run = "80us" }] } }]
[eventfd.e]
semaphore = true
wakes_one = true
"#;

struct Switches(Vec<(Time, CpuId, TaskId, TaskId)>);

impl Observer for Switches {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            if let EventKind::SchedSwitch { prev, next, .. } = event.kind {
                self.0.push((event.time, event.cpu, prev, next));
            }
        }
    }
}

fn switches(workload: &ClosedWorkload, policy: &str) -> Vec<(Time, CpuId, TaskId, TaskId)> {
    let machine = Machine::ideal(2);
    let scripts = workload.scripts(2).expect("scripts");
    let (policy, mut switches) = (parse_policy(policy).expect("a policy"), Switches(Vec::new()));
    let options = Options { seed: 1, until: workload.until() };
    simulate_named(&scripts, &machine, &policy, options, Trace::new(vec![&mut switches]))
        .expect("a run");
    switches.0
}

fn read_again(file: &Path) -> ClosedWorkload {
    match Workload::resolve(file.as_os_str()).expect("a workload") {
        Workload::Closed(workload) => *workload,
        _ => panic!("{} is another workload", file.display()),
    }
}

#[test]
fn rt_apps_json_read_again_is_scheduled_the_same() {
    let scratch = Scratch::new("rt-app");
    let file = scratch.file("w.json");
    let workload = closed(SIMPLE);
    Language::RtApp.write(workload.description(), None, &file).expect("a file");
    let text = fs::read_to_string(&file).expect("text");
    assert!(!text.contains("Approximated"), "{text}");
    let again = read_again(&file);
    for policy in ["eevdf", "rr", "fifo", "cfs"] {
        let (wanted, found) = (switches(&workload, policy), switches(&again, policy));
        assert!(wanted.len() > 200, "{policy}: {}", wanted.len());
        let differ = wanted.iter().zip(&found).position(|(wanted, found)| wanted != found);
        assert_eq!(differ.map(|at| (&wanted[at], &found[at])), None, "{policy}: {text}");
        assert_eq!(wanted.len(), found.len(), "{policy}");
    }
}

#[test]
fn what_rt_app_has_no_words_for_is_counted_or_refused_by_name() {
    let scratch = Scratch::new("words");
    let file = scratch.file("w.json");
    let write = |text: &str| Language::RtApp.write(closed(text).description(), None, &file);
    let pipes = |first: u32, second: u32| {
        format!(
            "[[task]]\nname = 'a'\nprocess = true\nphases = [{{ write = {{ pipe = 'p', bytes = \
             {first} }} }}, {{ run = '1500ns' }}, {{ run = '1500ns' }}]\n[[task]]\nname = \
             'b'\nphases = [{{ loop = {{ times = {}, phases = [{{ read = {{ pipe = 'p', bytes = \
             {second} }} }}] }} }}, {{ join = 'a' }}]\n",
            first / second
        )
    };
    write(&pipes(300, 100)).expect("a file");
    let text = fs::read_to_string(&file).expect("text");
    for words in [
        "Approximated, 2 times: messages of pipes and sockets are tokens",
        "Approximated, 1 times: processes are threads",
        "Approximated, 1 times: runs are whole microseconds",
        r#""p0" : { "loop" : 3, "sem_post0" : "pipe p" }"#,
        r#""run0" : 1, "run1" : 2, "sem_post2" : "end of a""#,
        r#""sem_wait0" : "end of a""#,
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(switches(&read_again(&file), "rr").last().map(|last| last.0), Some(Time(3_000)));
    let task =
        |phases: &str, rest: &str| format!("{rest}\n[[task]]\nname = 't'\nphases = [{phases}]\n");
    let lock =
        |name: &str| format!("{{ lock = '{name}' }}, {{ run = '1ms' }}, {{ unlock = '{name}' }}");
    for (text, words) in [
        (ALL.to_string(), "parent: it waits for as many of child as there are then"),
        (
            task(
                "{ post = { eventfd = 'x' } }, { serve = { epoll = 'e', handle = [[{ take = { \
                 eventfd = 'x' } }]] } }",
                "[epoll.e]\nsources = [{ eventfd = 'x' }]",
            ),
            "t: what it does depends on which of several objects is ready",
        ),
        (
            task("{ barrier = 'b' }", "[barrier.b]\ntasks = 2\n[[task]]\nname = 'u'\ncount = 2\nphases = [{ barrier = 'b' }]"),
            "the barrier b waits for 2 tasks, and rt-app's for as many as there are references to \
             it, 3: write it with --to c",
        ),
        (
            task(&format!("{}, {}", lock("m"), lock("n")), "[mutex.m]\ninherit = true"),
            "some mutexes inherit priorities and others do not",
        ),
        (
            task("{ run = '1ms' }", "[[task]]\nname = 'd'\ndaemon = true\nphases = [{ run = '1s' }]"),
            "give the workload a `duration`",
        ),
        (
            "[[task]]\nname = 't'\ncgroup = 'g'\nphases = [{ run = '1ms' }]\n[cgroup.g]\nweight = 7\n".to_string(),
            "its group g has a weight or a limit",
        ),
    ] {
        let error = write(&text).expect_err(words);
        assert!(error.to_string().contains(words) && error.exit_code() == 77, "{error}");
    }
}

#[test]
fn debians_rt_app_runs_what_is_written() {
    if Command::new("rt-app").arg("--version").output().is_err() {
        eprintln!("skipped: it needs rt-app: apt-get install rt-app");
        return;
    }
    let scratch = Scratch::new("debian");
    let file = scratch.file("w.json");
    // Without what is newer than its rt-app: fork, batch and semaphores.
    let text = "[[task]]\nname = 'a'\ncount = 2\nnice = 3\nphases = [{ loop = { times = 5, phases = [{ run = '500us' }, { lock = 'm' }, { run = '9us' }, { unlock = 'm' }, { timer = { period = '4ms' } }] } }]\n[[task]]\nname = 'b'\nphases = [{ sleep_until = '9ms' }, 'yield', { run = '1ms' }]\n";
    Language::RtApp.write(closed(text).description(), None, &file).expect("a file");
    // Calibrated already: it would take a second.
    let json = fs::read_to_string(&file).expect("text").replace("\"CPU0\"", "50");
    fs::write(&file, json).expect("a file");
    let ran =
        Command::new("timeout").args(["60", "rt-app"]).arg(&file).current_dir(&scratch.0).output();
    let ran = ran.expect("timeout");
    let told = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}: {}", ran.status, String::from_utf8_lossy(&told));
}

#[test]
fn nothing_of_the_original_is_in_an_anonymous_export() {
    let scratch = Scratch::new("anonymous");
    let has =
        |bytes: &[u8], name: &str| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    let path = Path::new(WORKLOADS).join("redis.perf-script.txt.zst");
    let mut source = TraceSource::open(&path).expect("a recording");
    let before = source.header.clone();
    anonymise_trace(&mut source.header);
    // The same name or number has the same alias, and no two have one.
    let mut aliases: BTreeSet<(String, String)> = BTreeSet::new();
    let mut pids: BTreeSet<(u32, u32)> = BTreeSet::new();
    for (old, new) in before.tasks.iter().zip(&source.header.tasks) {
        aliases.insert((old.name.clone(), new.name.clone()));
        pids.extend([(old.pid, new.pid), (old.tgid, new.tgid)]);
    }
    let olds = |of: &BTreeSet<(String, String)>| {
        of.iter().map(|of| of.0.clone()).collect::<BTreeSet<_>>().len()
    };
    let news = |of: &BTreeSet<(String, String)>| {
        of.iter().map(|of| of.1.clone()).collect::<BTreeSet<_>>().len()
    };
    assert_eq!((olds(&aliases), news(&aliases)), (aliases.len(), aliases.len()));
    assert_eq!(pids.iter().map(|of| of.1).collect::<BTreeSet<_>>().len(), pids.len());
    let names: BTreeSet<&str> =
        before.tasks.iter().map(|task| task.name.as_str()).filter(|name| name.len() > 4).collect();
    assert!(names.contains("redis-server"), "{names:?}");
    for (format, name) in [
        (Format::Perfetto, "t.pftrace"),
        (Format::Chrome, "t.json"),
        (Format::PerfScript, "t.txt"),
        (Format::Ftrace, "t.ftrace.txt"),
        (Format::Parquet, "t.parquet"),
    ] {
        let file = scratch.file(name);
        export(&source, format, &file).expect("an export");
        let bytes = fs::read(&file).expect("a file");
        let left: Vec<_> = names.iter().filter(|name| has(&bytes, name)).collect();
        assert!(left.is_empty(), "{name} has {left:?}");
        if format == Format::Parquet {
            assert_eq!(
                TraceSource::open(&file).expect("a trace").header.tasks,
                source.header.tasks
            );
        }
    }
    let (mut closed, recorded) = program_of("redis.rec.zst");
    let original = closed.clone();
    anonymise_program(&mut closed);
    let names: BTreeSet<&str> =
        original.tasks.iter().map(|tasks| tasks.program()).filter(|name| name.len() > 4).collect();
    assert!(!names.is_empty());
    for (language, name) in [(Language::Workload, "p.toml"), (Language::C, "p.c")] {
        let file = scratch.file(name);
        language.write(&closed, None, &file).expect("an export");
        let bytes = fs::read(&file).expect("a file");
        let left: Vec<_> = names.iter().filter(|name| has(&bytes, name)).collect();
        assert!(left.is_empty(), "{name} has {left:?}");
    }
    // The program is the same.
    let cpus = recorded.machine.cpus;
    let [wanted, found] = [&original, &closed].map(|closed| {
        let workload =
            ClosedWorkload::translated("w".into(), closed.clone(), "w", BTreeMap::new(), vec![]);
        let scripts = workload.scripts(cpus).expect("scripts");
        (scripts.tasks.len(), scripts.demand(), scripts.bursts())
    });
    assert_eq!(wanted, found);
    assert!(wanted.1 > Nanos::ZERO);
}
