//! `schedlab run --trace-bpf`: each line is what the scheduler in `steps.bpf.c` does, which is known.

use super::{object, object_of, source};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Two tasks on one CPU: `light` runs for 1 ms, sleeps for 2 ms and runs again, `hog` runs for 4 ms.
const LOAD: &str = r#"
cpus = 1

[[task]]
name = "light"
phases = [ { run = "1ms" }, { sleep = "2ms" }, { run = "1ms" } ]

[[task]]
name = "hog"
phases = [ { run = "4ms" } ]
"#;

/// What happens in the first 2 ms.
const BEGINNING: &str = "\
[000] 0.000000000: init()
  scx_bpf_create_dsq(dsq_id=0x7, node=-1) = 0
  = 0
[000] 0.000000000: enqueue(p=light[1], enq_flags=0)
  note(…)
    bpf_map_lookup_elem(map=&seen, key=1) = NULL
    bpf_map_update_elem(map=&seen, key=1, value={times = 1, woke = false}, flags=0x0) = 0
  bpf_printk: task 1 comes
  last_vtime = 10
  light[1]->scx.dsq_vtime = 10
  scx_bpf_dsq_insert_vtime(p=light[1], dsq_id=0x7, slice=3ms, vtime=10, enq_flags=0)
  map seen[1] = {times = 1, woke = false}
[000] 0.000000000: dispatch(cpu=0, prev=NULL)
  bpf_map_lookup_elem(map=&dispatches, key=0) = &dispatches[0]@0
  dispatches[0]@0 = 1
  scx_bpf_dsq_move_to_local(dsq_id=0x7) = true
    light[1] -> SCX_DSQ_LOCAL_ON|0
  map dispatches[0]@0 = 1
[000] 0.000000000: enqueue(p=hog[2], enq_flags=0)
  note(…)
    bpf_map_lookup_elem(map=&seen, key=2) = NULL
    bpf_map_update_elem(map=&seen, key=2, value={times = 1, woke = false}, flags=0x0) = 0
  bpf_printk: task 2 comes
  last_vtime = 20
  hog[2]->scx.dsq_vtime = 20
  scx_bpf_dsq_insert_vtime(p=hog[2], dsq_id=0x7, slice=3ms, vtime=20, enq_flags=0)
  map seen[1] = {times = 1, woke = false}
  map seen[2] = {times = 1, woke = false}
[000] 0.001000000: dispatch(cpu=0, prev=light[1])
  bpf_map_lookup_elem(map=&dispatches, key=0) = &dispatches[0]@0
  dispatches[0]@0 = 2
  scx_bpf_dsq_move_to_local(dsq_id=0x7) = true
    hog[2] -> SCX_DSQ_LOCAL_ON|0
  map dispatches[0]@0 = 2
";

/// All callbacks of the run.
const CALLBACKS: &str = "\
[000] 0.000000000: init() = 0
[000] 0.000000000: enqueue(p=light[1], enq_flags=0)
[000] 0.000000000: dispatch(cpu=0, prev=NULL)
[000] 0.000000000: enqueue(p=hog[2], enq_flags=0)
[000] 0.001000000: dispatch(cpu=0, prev=light[1])
[000] 0.003000000: enqueue(p=light[1], enq_flags=SCX_ENQ_WAKEUP)
[000] 0.004000000: dispatch(cpu=0, prev=hog[2])
[000] 0.004000000: enqueue(p=hog[2], enq_flags=0)
[000] 0.005000000: dispatch(cpu=0, prev=NULL)
[000] 0.006000000: dispatch(cpu=0, prev=NULL)
";

/// The scheduler and its load, in a folder; nothing where no compiler is.
struct Bench {
    place: TempDir,
    object: PathBuf,
    load: PathBuf,
}

impl Bench {
    fn new() -> Option<Bench> {
        let place = TempDir::new().expect("a folder");
        let object = object_of(place.path(), &source("steps.bpf.c"))?;
        let load = place.path().join("load.toml");
        std::fs::write(&load, LOAD).expect("a file");
        Some(Bench { place, object, load })
    }

    fn run(&self, more: &[&str]) -> Output {
        let policy = format!("scx:{}", self.object.display());
        Command::new(env!("CARGO_BIN_EXE_schedlab"))
            .args(["run", &self.load.display().to_string(), "--policy", &policy])
            .args(more)
            .output()
            .expect("it starts")
    }

    /// What is traced, and the result behind it.
    fn told(&self, filter: &str, more: &[&str]) -> (String, String) {
        let output = self.run(&[&["--trace-bpf", filter], more].concat());
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{filter}: {wrong}");
        let text = String::from_utf8(output.stdout).expect("text");
        let at = text.find("load: 2 tasks").expect("the result");
        let (trace, result) = text.split_at(at);
        let trace = trace.strip_suffix("\n").unwrap_or(trace);
        (trace.to_string(), result.split("\nReproduce:").next().unwrap_or_default().to_string())
    }

    fn trace(&self, filter: &str) -> String {
        self.told(filter, &[]).0
    }
}

/// The callbacks of a trace that hold one of these words, each with its lines.
fn callbacks(trace: &str, words: &[&str]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for line in trace.lines() {
        if line.starts_with('[') {
            parts.push(String::new());
        }
        parts.last_mut().expect("a callback").extend([line, "\n"]);
    }
    parts.into_iter().filter(|part| words.iter().any(|word| part.contains(word))).collect()
}

#[test]
fn each_line_is_what_the_scheduler_does() {
    let Some(bench) = Bench::new() else { return };
    assert_eq!(bench.trace("at=..2ms maps"), BEGINNING);
    assert_eq!(bench.trace("callbacks"), CALLBACKS);
    let is_map = |line: &&str| !line.starts_with("  map ");
    let without_maps: String =
        BEGINNING.lines().filter(is_map).map(|line| line.to_string() + "\n").collect();
    assert_eq!(bench.trace("at=..2ms"), without_maps);
    let is_call = |line: &&str| line.contains('(') || !line.contains(" = ") || line.contains("= 0");
    let calls: String =
        without_maps.lines().filter(is_call).map(|line| line.to_string() + "\n").collect();
    assert_eq!(bench.trace("calls at=..2ms"), calls);
    // A variable is shown after each.
    let trace = bench.trace("callbacks enqueue maps=last_vtime,dispatches");
    let values: Vec<&str> = trace.lines().filter(|line| line.starts_with("  ")).collect();
    let expected = [
        "  map dispatches: no values",
        "  map seen[1] = {times = 1, woke = false}",
        "  var last_vtime = 10",
    ];
    assert_eq!(values[..3], expected);
    assert!(trace.contains("  map seen[1] = {times = 2, woke = false}"), "{trace}");
    assert!(trace.contains("  map dispatches[0]@0 = 3\n"), "{trace}");
    assert!(trace.ends_with("  var last_vtime = 40\n"), "{trace}");
}

/// With `--mips` the CPU pays at each dispatch for the callbacks since the last one, as they are shown.
/// Here it pays for all before the last dispatch that finds a task, and never idles before.
#[test]
fn a_machine_that_charges_pays_for_what_is_shown() {
    let Some(bench) = Bench::new() else { return };
    let makespan = |more: &[&str]| -> u64 {
        let output = bench.run(&[&["--format", "json"], more].concat());
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("json");
        let rows = document["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["metric"] == "makespan_ns").expect("a makespan");
        row["value"].as_f64().expect("a number") as u64
    };
    // A million million instructions per second are free.
    let free = makespan(&[]);
    assert_eq!(makespan(&["--mips", "1000000000"]), free);
    for (mips, ns) in [("1000", 1), ("100", 10)] {
        let (trace, _) = bench.told("costs calls", &["--mips", mips]);
        let last = trace.rfind("-> SCX_DSQ_LOCAL_ON|0").expect("a dispatch");
        let end = trace[last..].find("\n[").map_or(trace.len(), |end| last + end);
        let number = |line: &str| -> Option<u64> {
            line.trim().strip_prefix("about ")?.split_once(" instructions: ")?.0.parse().ok()
        };
        let instructions: Vec<u64> = trace[..end].lines().filter_map(number).collect();
        let callbacks = trace[..end].lines().filter(|line| line.starts_with('[')).count();
        assert_eq!(instructions.len(), callbacks, "{trace}");
        assert!(instructions.iter().all(|&number| (100..1000).contains(&number)), "{trace}");
        let all: u64 = instructions.iter().sum();
        assert_eq!(makespan(&["--mips", mips]) - free, ns * all, "{trace}");
    }
}

/// Lines of source stand before what they do, with the number that they have in the file. Without
/// them and their indentation the trace is the one without `lines`.
#[test]
fn lines_of_source_are_those_of_the_file() {
    let Some(bench) = Bench::new() else { return };
    let source = std::fs::read_to_string(source("steps.bpf.c")).expect("the source");
    let source: Vec<&str> = source.lines().map(str::trim).collect();
    let trace = bench.trace("lines");
    let (mut rest, mut last, mut pairs) = (String::new(), String::new(), Vec::new());
    for line in trace.lines() {
        match line.trim_start().strip_prefix("steps.bpf.c:") {
            Some(line) => {
                let (number, text) = line.split_once(": ").expect("a number and a text");
                let number: usize = number.parse().expect("a number");
                assert_eq!(source[number - 1], text, "{line}");
                last = text.to_string();
            }
            None => {
                rest += &format!("{}\n", line.trim_start());
                pairs.push((line.trim_start().to_string(), last.clone()));
            }
        }
    }
    let plain = bench.trace("writes");
    let plain: String = plain.lines().map(|line| line.trim_start().to_string() + "\n").collect();
    assert_eq!(rest, plain);
    for (does, of) in [
        ("last_vtime = 10", "last_vtime += 10;"),
        ("light[1]->scx.dsq_vtime = 10", "p->scx.dsq_vtime = last_vtime;"),
        ("dispatches[0]@0 = 1", "*count += 1;"),
        ("seen[1].times = 2", "known->times++;"),
        ("bpf_printk: task 2 comes", "bpf_trace_printk(text, sizeof(text), p->pid);"),
        ("scx_bpf_create_dsq(dsq_id=0x7, node=-1) = 0", "return scx_bpf_create_dsq(QUEUE, -1);"),
    ] {
        let pair = pairs.iter().find(|(line, _)| line == does);
        assert_eq!(pair.map(|(_, last)| &**last), Some(of), "{does}");
    }
}

#[test]
fn a_filter_shows_a_part_of_the_whole() {
    let Some(bench) = Bench::new() else { return };
    let whole = bench.trace("");
    assert_eq!(whole, bench.trace("all"));
    let enqueues = callbacks(&whole, &[": enqueue("]);
    assert_eq!(bench.trace("enqueue"), enqueues);
    // A dispatch has to do with the task that it moves as well.
    let of_hog = callbacks(&whole, &["hog[2]"]);
    assert_eq!(of_hog.matches(": dispatch(").count(), 3);
    assert_eq!(bench.trace("task=hog"), of_hog);
    assert_eq!(bench.trace("task=2"), of_hog);
    assert_eq!(bench.trace("task=light,hog"), callbacks(&whole, &["light[1]", "hog[2]"]));
    assert_eq!(bench.trace("enqueue,init task=light at=1ms..5ms"), callbacks(&whole, &[" 0.003"]));
    assert_eq!(bench.trace("at=1ms..3ms"), callbacks(&whole, &[" 0.001"]));
    assert_eq!(bench.trace("cpu=0"), whole);
    let none = bench.run(&["--trace-bpf", "cpu=1"]);
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(said.contains("no callback of the run is as the filter says"), "{said}");
    assert!(none.stdout.starts_with(b"load: 2 tasks"));
}

/// A canary: another source has another trace, in the lines that were changed.
#[test]
fn a_changed_source_changes_its_lines_alone() {
    let Some(bench) = Bench::new() else { return };
    let text = std::fs::read_to_string(source("steps.bpf.c")).expect("the source");
    let changed = bench.place.path().join("steps.bpf.c");
    let other = text.replace("last_vtime += 10;", "last_vtime += 13;");
    assert_ne!(other, text);
    std::fs::write(&changed, other).expect("a file");
    let before = bench.trace("lines");
    let object = object_of(bench.place.path(), &changed).expect("the compiler");
    let after = Bench { object, ..bench }.trace("lines");
    let pairs = before.lines().zip(after.lines()).filter(|(before, after)| before != after);
    let mut changes = 0;
    for (before, after) in pairs {
        let is_it = before.contains("vtime") && (after.contains("13") || after.contains("vtime"));
        assert!(is_it, "{before} | {after}");
        changes += 1;
    }
    // In each of four callbacks: the source, the variable, the member, the call.
    assert_eq!((before.lines().count(), changes), (after.lines().count(), 16));
}

#[test]
fn a_run_is_the_same_without_its_trace() {
    let Some(bench) = Bench::new() else { return };
    let path = |name: &str| bench.place.path().join(name).display().to_string();
    let (traced, plain) = (path("traced.trace"), path("plain.trace"));
    let (_, result) = bench.told("lines maps", &["--trace", &traced, "--check"]);
    let output = bench.run(&["--trace", &plain, "--check"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.split("\nReproduce:").next(), Some(&*result));
    assert_eq!(std::fs::read(traced).expect("a trace"), std::fs::read(plain).expect("a trace"));
    // In a directory of results, too, where the text is a file.
    let (traced, plain) = (path("traced"), path("plain"));
    let with = ["--trace-bpf", "lines maps", "-o", &traced, "--format", "json"];
    assert_eq!(bench.run(&with).status.code(), Some(0));
    assert_eq!(bench.run(&["-o", &plain, "--format", "json"]).status.code(), Some(0));
    let file = |folder: &str, name: &str| std::fs::read(Path::new(folder).join(name)).expect(name);
    let csv = |folder: &str| file(folder, "results.csv");
    assert_eq!(csv(&traced), csv(&plain));
    let text = String::from_utf8(file(&traced, "schedulers/trace-bpf.txt")).expect("text");
    assert_eq!(text, bench.trace("lines maps"));
}

#[test]
fn the_end_of_a_scheduler_is_shown_whatever_the_filter() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    let load = place.path().join("load.toml");
    std::fs::write(&load, LOAD).expect("a file");
    let run = |constant: &str, filter: &str| {
        let policy = format!("scx:{} {constant}", object.display());
        let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
            .args(["run", &load.display().to_string(), "--policy", &policy])
            .args(["--trace-bpf", filter])
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(4), "{constant}");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = run("gives_up=true", "enqueue");
    assert_eq!(
        text.lines().filter(|line| !line.contains("count")).collect::<Vec<_>>(),
        [
            "[000] 0.000000000: enqueue(p=light[1], enq_flags=0)",
            "  scx_bpf_error_bstr(fmt=\"task %d asks too much\")",
            "  scx_bpf_dsq_insert(p=light[1], dsq_id=0x7, slice=20ms, enq_flags=0)",
            "[000] 0.000000000: ejected: task 1 asks too much",
            "",
        ]
    );
    let text = run("reads_null=true", "init at=1s..");
    assert!(
        text.starts_with("[000] 0.000000000: ejected: enqueue: `trial_enqueue` writes"),
        "{text}"
    );
    // A timer's function is a callback as well.
    let text = run("rings=2", "timer callbacks");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "[000] 0.001000000: timer ring(map=&timers, key=2, value={timer = {opaque = {0, 0}}})",
            "[000] 0.002000000: timer ring(map=&timers, key=2, value={timer = {opaque = {0, 0}}})",
            "[000] 0.002000000: ejected: ring 2 of key 2 at 2000000",
        ]
    );
}

#[test]
fn what_cannot_be_traced_is_refused_by_name() {
    let Some(bench) = Bench::new() else { return };
    for (arguments, said) in [
        (&["--trace-bpf", "enqeue"][..], "Did you mean `enqueue`?"),
        (&["--trace-bpf", "enqueue tsk=hog"], "Did you mean `task`?"),
        (&["--trace-bpf", "at=3ms..2ms"], "is empty"),
        (&["--trace-bpf", "task=ligt"], "no task named `ligt`. Did you mean `light`?"),
        (&["--trace-bpf", "task=3"], "the numbers from 1 to 2"),
        (&["--trace-bpf", "tick"], "no callback named `tick`. It has enqueue, dispatch, init."),
        (&["--trace-bpf", "maps=seem"], "no map or variable named `seem`. Did you mean `seen`?"),
        (&["--trace-bpf", "enqueue", "--format", "json"], "give -o DIR"),
        (&["--trace-bpf", "enqueue", "--on", "vm"], "leave --on vm out"),
    ] {
        let output = bench.run(arguments);
        let wrong = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert!(output.status.code() == Some(2) && wrong.contains(said), "{arguments:?}: {wrong}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let other = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["run", &bench.load.display().to_string(), "--policy", "eevdf"])
        .args(["--trace-bpf", "enqueue"])
        .output()
        .expect("it starts");
    let wrong = String::from_utf8_lossy(&other.stderr);
    assert!(other.status.code() == Some(2) && wrong.contains("and eevdf is none"), "{wrong}");
}

/// A scheduler sees the names of tasks, and which of them are threads of the kernel.
#[test]
fn a_thread_of_the_kernel_is_one_for_the_scheduler() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object_of(place.path(), &source("tasks.bpf.c")) else { return };
    let load = place.path().join("load.toml");
    let tasks = ["kworker/0:1", "light"]
        .map(|name| format!("[[task]]\nname = \"{name}\"\nphases = [ {{ run = \"1ms\" }} ]\n"));
    std::fs::write(&load, format!("cpus = 1\n{}", tasks.concat())).expect("a file");
    let bench = Bench { place, object, load };
    let output = bench.run(&["--trace-bpf", "enqueue calls"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let printed: Vec<&str> =
        text.lines().filter_map(|line| line.trim().strip_prefix("bpf_printk: ")).collect();
    let letter = |name: &str| name.as_bytes()[0];
    let expected = [
        format!("letter {} kernel 1 memory 0", letter("kworker")),
        format!("letter {} kernel 0 memory 1", letter("light")),
    ];
    assert_eq!(printed, expected, "{text}");
}
