//! Counts instructions: under qemu-user by `c/tests/plugin.c` on every architecture, and by
//! callgrind on x86-64, which must agree.

use crate::record::{COMMAND, Cell, OURS, Record, TASKS};
use crate::target::{Missing, TARGETS, Target, feed, for_each, run, source};
use crate::truth;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As `c/tests/count.c` numbers them.
const QUEUES: [&str; 9] =
    ["loop", "rr", "priority", "ruler", "wheel", "rbtree", "list_head", "list_head_init", "multiq"];
const OPERATIONS: [&str; 5] = ["pop", "insert", "remove", "insert_front", "loop"];
const SLICES: u32 = 20_000;

/// What `count.c` is to do.
#[derive(Clone, Copy)]
struct Job {
    queue: &'static str,
    tasks: u32,
    /// At random among so many; 0: all at one.
    levels: u16,
    mix: bool,
    shuffled: bool,
}

impl Job {
    fn input(self) -> Vec<u8> {
        let queue = QUEUES.iter().position(|&name| name == self.queue).unwrap() as u16;
        let slices = [(SLICES >> 16) as u16, SLICES as u16];
        let numbers =
            [queue, self.tasks as u16, self.levels, self.mix.into(), self.shuffled.into()];
        numbers.into_iter().chain(slices).flat_map(u16::to_le_bytes).collect()
    }
}

/// How often an operation took how many instructions: by operation, then by instructions.
type Counts = BTreeMap<&'static str, BTreeMap<u64, u64>>;

/// The counting program of a target.
struct Counter<'a> {
    target: &'a Target,
    program: PathBuf,
    plugin: PathBuf,
}

impl<'a> Counter<'a> {
    /// Over the C queues.
    fn new(target: &'a Target) -> Result<Self, Missing> {
        Counter::of(target, target.program("tests/count.c", &["-O2"])?)
    }

    fn of(target: &'a Target, program: PathBuf) -> Result<Self, Missing> {
        let plugin = program.with_extension("so");
        let mut compile = Command::new("gcc");
        compile.args(crate::target::STRICT).args(["-O2", "-shared", "-fPIC"]);
        run(compile.arg(source("tests/plugin.c")).arg("-o").arg(&plugin))?;
        Ok(Counter { target, program, plugin })
    }

    fn count(&self, job: Job) -> Result<Counts, Missing> {
        self.count_of(&self.program, &job.input())
    }

    fn count_of(&self, program: &Path, input: &[u8]) -> Result<Counts, Missing> {
        let out = self.program.with_extension("counts");
        let plugin = format!("{},out={}", self.plugin.display(), out.display());
        let command = self.target.command(program, &["-plugin".into(), plugin]);
        let answer = feed(command, input)?;
        if answer.code != Some(0) && answer.complaint.contains("plugin") {
            let why =
                format!("{} does not load the plugin: {}", self.target.qemu, answer.complaint);
            return Err(Missing(why));
        }
        assert_eq!(answer.code, Some(0), "{}: {}", self.target.name, answer.complaint);
        let mut counts = Counts::new();
        for line in std::fs::read_to_string(out).unwrap().lines() {
            let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            let operation = OPERATIONS[numbers[0] as usize];
            *counts.entry(operation).or_default().entry(numbers[1]).or_default() += numbers[2];
        }
        Ok(counts)
    }

    /// Instructions of a slice, with the loop.
    fn gross(&self, job: Job) -> Result<f64, Missing> {
        let counts = self.count(Job { mix: false, ..job })?;
        Ok(*counts["loop"].keys().next().unwrap() as f64 / f64::from(SLICES))
    }

    /// A pop and an insert without the loop.
    fn slice(&self, job: Job) -> Result<Cell, Missing> {
        let net = self.gross(job)? - self.gross(Job { queue: "loop", ..job })?;
        Ok(slice_cell("C", self.target.name, job, net))
    }

    /// Each operation of the mix.
    fn operations(&self, job: Job) -> Result<Vec<Cell>, Missing> {
        let counts = self.count(Job { mix: true, ..job })?;
        Ok(counts
            .into_iter()
            .map(|(operation, times)| {
                let samples: u64 = times.values().sum();
                let sum: u64 = times.iter().map(|(cost, times)| cost * times).sum();
                let percentile = |share: u64| {
                    let mut below = 0;
                    let reached = |times: &u64| {
                        below += times;
                        below * 100 >= samples * share
                    };
                    let index = times.values().position(reached).unwrap();
                    *times.keys().nth(index).unwrap() as f64
                };
                let of =
                    [("target", self.target.name), ("queue", job.queue), ("operation", operation)];
                let tasks = job.tasks.to_string();
                let of: Vec<(&str, &str)> = of.into_iter().chain([("tasks", &tasks[..])]).collect();
                let max = *times.keys().last().unwrap() as f64;
                let mean = tenth(sum as f64 / samples as f64);
                Cell::new(
                    &of,
                    &[
                        ("mean", mean),
                        ("p50", percentile(50)),
                        ("p99", percentile(99)),
                        ("max", max),
                    ],
                )
            })
            .collect())
    }

    /// The most that each operation takes in any sequence of six operations on four tasks.
    fn worst(&self, queue: &'static str) -> Result<Cell, Missing> {
        let program = self.target.program("tests/script.c", &[&truth::queue(queue), "-O2"])?;
        let counts = self.count_of(&program, &truth::exhaustive(queue, 6).bytes())?;
        let of = [("of", "all sequences"), ("target", self.target.name), ("queue", queue)];
        let worst = |(&name, times): (&&'static str, &BTreeMap<u64, u64>)| {
            (name, *times.keys().last().unwrap() as f64)
        };
        Ok(Cell::new(&of, &counts.iter().map(worst).collect::<Vec<_>>()))
    }

    /// Code and RAM of each queue.
    fn sizes(&self) -> Result<Vec<Cell>, Missing> {
        let bytes = self.target.answer(&self.program, &[])?.output;
        let sizes: Vec<f64> =
            bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]).into()).collect();
        let cell = |(number, queue): (usize, &&str)| {
            let option = format!("-DQUEUE={}", number + 1);
            let code =
                |level| Ok(code_bytes(&self.target.object("tests/size.c", &[&option, level])?));
            Ok(Cell::new(
                &[("of", "size"), ("target", self.target.name), ("queue", queue)],
                &[
                    ("code_bytes_small", code("-Os")?),
                    ("code_bytes_fast", code("-O2")?),
                    ("queue_bytes", sizes[2 * number]),
                    ("task_bytes", sizes[2 * number + 1]),
                ],
            ))
        };
        OURS.iter().enumerate().map(cell).collect()
    }
}

fn slice_cell(language: &str, target: &str, job: Job, net: f64) -> Cell {
    let levels = if job.levels == 0 { "one".to_string() } else { job.levels.to_string() };
    let tasks = job.tasks.to_string();
    let of = [
        ("of", language),
        ("target", target),
        ("queue", job.queue),
        ("levels", &levels),
        ("tasks", &tasks),
    ];
    Cell::new(&of, &[("instructions", tenth(net))])
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The bytes of an object file's sections that go into flash: code and constants.
fn code_bytes(object: &Path) -> f64 {
    let bytes = std::fs::read(object).unwrap();
    let number = |at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    };
    let (word, headers, each, count) = match bytes[4] {
        1 => (4, number(32, 4), number(46, 2), number(48, 2)),
        _ => (8, number(40, 8), number(58, 2), number(60, 2)),
    };
    // A section header: name, type, flags, address, offset, size. SHT_PROGBITS with SHF_ALLOC.
    let section = |index| {
        let at = headers + index * each;
        let is_loaded = number(at + 4, 4) == 1 && number(at + 8, word) & 2 != 0;
        if is_loaded { number(at + 8 + 3 * word, word) } else { 0 }
    };
    (0..count).map(section).sum::<usize>() as f64
}

/// The instructions that callgrind counts of `program` within its functions `for_ever…`, per slice.
fn callgrind(program: &Path, arguments: &[String], input: &[u8]) -> Result<f64, Missing> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--toggle-collect=*for_ever*"]);
    command.arg("--callgrind-out-file=/dev/null").arg(program).args(arguments);
    let answer = feed(command, input)?;
    assert_eq!(answer.code, Some(0), "{}", answer.complaint);
    let total = answer.complaint.lines().find_map(|line| line.split_once("Collected :")).unwrap().1;
    Ok(total.trim().parse::<f64>().unwrap() / f64::from(SLICES))
}

/// The cells of the Rust queues on the machine's own target, by `examples/count`: the numbers of
/// `docs/queue-atlas.md`.
fn native_rust() -> Result<Vec<Cell>, Missing> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs this test");
    let build = ["build", "--locked", "--quiet", "--release", "-p", "readyq", "--example", "count"];
    let messages = run(Command::new(cargo).args(build).arg("--message-format=json"))?;
    let path = messages.rsplit_once("\"executable\":\"").unwrap().1.split_once('"').unwrap().0;
    let gross = |queue: &str, job: Job| {
        let levels = if job.levels == 0 { "one:9".to_string() } else { job.levels.to_string() };
        let arguments = [queue, &job.tasks.to_string(), &levels, &SLICES.to_string()];
        callgrind(Path::new(path), &arguments.map(str::to_string), &[])
    };
    jobs(&OURS)
        .map(|job| {
            Ok(slice_cell("Rust", "x86-64", job, gross(job.queue, job)? - gross("loop", job)?))
        })
        .collect()
}

/// Those on another target, by the loops of `c/tests/loops.rs`.
fn rust(target: &Target) -> Result<Vec<Cell>, Missing> {
    let counter = Counter::of(target, target.rust_program()?)?;
    let net = |job| Ok(counter.gross(job)? - counter.gross(Job { queue: "loop", ..job })?);
    jobs(&OURS).map(|job| Ok(slice_cell("Rust", target.name, job, net(job)?))).collect()
}

/// The loops of `queues`.
fn jobs(queues: &[&'static str]) -> impl Iterator<Item = Job> {
    queues.iter().flat_map(|&queue| {
        [10, 0].into_iter().flat_map(move |levels| {
            TASKS.map(|tasks| Job { queue, tasks, levels, mix: false, shuffled: false })
        })
    })
}

/// The tools on which counts depend, with their versions.
fn tools() -> Result<Cell, Missing> {
    let version = |tool: &str| {
        run(Command::new(tool).arg("--version"))
            .map(|text| text.lines().next().unwrap_or("").to_string())
    };
    Ok(Cell::new(
        &[
            ("gcc", &version("gcc")?),
            ("clang", &version("clang-19")?),
            ("rustc", &version("rustc")?),
        ],
        &[],
    ))
}

#[test]
#[ignore = "writes the record: tools/c-edition"]
fn record() {
    let measure = || -> Result<Record, Missing> {
        let mut cells = native_rust()?;
        for target in &TARGETS {
            let counter = Counter::new(target)?;
            for job in jobs(&QUEUES[1..]) {
                cells.push(counter.slice(job)?);
                if job.levels != 0 {
                    cells.extend(counter.operations(job)?);
                }
            }
            for queue in OURS {
                cells.push(counter.worst(queue)?);
            }
            cells.extend(counter.sizes()?);
            if !target.native {
                cells.extend(rust(target)?);
            }
        }
        Ok(Record { tools: tools()?, cells })
    };
    match measure() {
        Ok(record) => record.commit(),
        Err(Missing(why)) => panic!("the record needs every tool: {why}"),
    }
}

#[test]
fn the_documents_are_those_of_the_record() {
    let record = Record::committed();
    assert_eq!(record.outdated(), [""; 0], "{COMMAND} writes them");
    let mut changed = record.clone();
    changed.cells[0].values[0].1 += 0.1;
    assert!(!changed.outdated().is_empty(), "a changed digit would not be noticed");
}

#[test]
fn counts_are_those_of_the_record() {
    let record = Record::committed();
    match tools() {
        Ok(tools) if tools == record.tools => {}
        Ok(tools) => {
            eprintln!("skipped: counts against the record, which is of other compilers: {tools:?}");
            return;
        }
        Err(Missing(why)) => {
            eprintln!("skipped: counts against the record: {why}");
            return;
        }
    }
    for_each("counts against the record", |target| {
        let counter = Counter::new(target)?;
        let job = Job { queue: "ruler", tasks: 10, levels: 10, mix: false, shuffled: false };
        let mut again = vec![counter.slice(job)?];
        again.extend(counter.operations(Job { queue: "rbtree", ..job })?);
        again.extend(counter.sizes()?);
        for cell in again {
            assert!(
                record.cells.contains(&cell),
                "{cell:?} is not in the record; {COMMAND} writes it"
            );
        }
        // Where tasks lie in memory changes no instruction.
        assert_eq!(counter.gross(job)?, counter.gross(Job { shuffled: true, ..job })?);
        Ok(())
    });
}

#[test]
fn qemu_counts_what_callgrind_counts() {
    for_each("qemu against callgrind", |target| {
        if !target.native {
            return Ok(());
        }
        let counter = Counter::new(target)?;
        for queue in ["rr", "ruler", "rbtree"] {
            let job = Job { queue, tasks: 100, levels: 10, mix: false, shuffled: false };
            let total = callgrind(&counter.program, &[], &job.input())?;
            let [qemu, callgrind] = [counter.gross(job)?, total];
            println!("{queue} on {}: {qemu:.3} by qemu, {callgrind:.3} by callgrind", target.name);
            assert!((qemu / callgrind - 1.0).abs() < 0.01, "{queue}: {qemu}, {callgrind}");
        }
        Ok(())
    });
}
