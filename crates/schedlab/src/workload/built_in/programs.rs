//! The programs of the papers, and some that schedulers are usually tried with, as closed workloads.
//!
//! What a system call costs is not known to a simulation: where a program does nothing but call, an option says how long that takes. The defaults
//! are of the size seen on machines of the 2020s, and no more.

use super::{BuiltIn, BuiltInOption, Given, Make};
use crate::Error;
use schedsim::Nanos;
use schedsim::admission::duration;
use schedsim::workload::{Closed, IoOperation, IoPhase, Phase, PipeOptions, SchedulingPolicy, Tasks, TimerMode, TimerPhase};
use std::num::NonZeroU32;

const MOST_TASKS: u64 = 1_000_000;
const MOST_TIMES: u64 = 1_000_000_000;
/// From how many senders to how many receivers messages go, in all groups of hackbench together.
const MOST_MESSAGES: u64 = 10_000_000;

const fn option(name: &'static str, default: &'static str, meaning: &'static str) -> BuiltInOption {
    BuiltInOption { name, default, meaning }
}

pub(super) const YIELD: BuiltIn = BuiltIn {
    name: "yield",
    argument: "N",
    summary: "N tasks that do little but give up the CPU: what a scheduler costs (the pslist post's first benchmark)",
    options: &[
        option("tasks", "8", "how many tasks"),
        option("times", "10000", "how often each yields"),
        option("run", "1us", "CPU time between two yields"),
    ],
    make: Make::Closed(yielders),
};

fn yielders(given: &Given) -> Result<Closed, Error> {
    let round = vec![Phase::Run(given.span("run")?), Phase::Yield];
    let yielder = Tasks::new("yielder", vec![Phase::repeat(given.count("times", MOST_TIMES)?, round)]);
    Ok(closed([Tasks { count: given.count("tasks", MOST_TASKS)?, ..yielder }]))
}

pub(super) const HACKBENCH: BuiltIn = BuiltIn {
    name: "hackbench",
    argument: "G",
    summary: "G groups of senders and receivers; each sender writes to every receiver's pipe. hackbench:10 is the pslist post's hackbench with 400 processes",
    options: &[
        option("groups", "10", "how many groups"),
        option("pairs", "20", "how many senders, and how many receivers, in a group"),
        option("loops", "100", "how many messages from each sender to each receiver"),
        option("bytes", "100", "how long a message is"),
        option("send", "1us", "CPU time before each message is written"),
        option("receive", "1us", "CPU time after each message is read"),
        option("threads", "no", "yes: threads in place of processes"),
    ],
    make: Make::Closed(hackbench),
};

fn hackbench(given: &Given) -> Result<Closed, Error> {
    let (groups, loops): (u64, u64) = (given.count("groups", 10_000)?, given.count("loops", MOST_TIMES)?);
    let pairs: u32 = given.count("pairs", 1_000)?;
    let pipes = groups.saturating_mul(pairs.into());
    if pipes.saturating_mul(pairs.into()) > MOST_MESSAGES || pipes > MOST_TASKS / 2 {
        return Err(given.wrong("groups", &format!("with {pairs} pairs in each they are too many for one machine; give fewer of either")));
    }
    let (bytes, send, receive) = (given.count("bytes", 1 << 20)?, given.span("send")?, given.span("receive")?);
    let process = !given.is_on("threads")?;
    let start = || Phase::Barrier("start".to_string());
    let mut tasks = Vec::new();
    for group in 0..groups {
        let pipe = |receiver: u32| format!("{group}.{receiver}");
        let message = |receiver| [Phase::Run(send), Phase::Write { pipe: pipe(receiver), bytes }];
        let round: Vec<Phase> = (0..pairs).flat_map(message).collect();
        let sender = Tasks::new(&format!("sender {group}"), vec![start(), Phase::repeat(loops, round)]);
        tasks.push(Tasks { count: pairs, process, ..sender });
        for receiver in 0..pairs {
            let message = vec![Phase::Read { pipe: pipe(receiver), bytes }, Phase::Run(receive)];
            let name = format!("receiver {}", pipe(receiver));
            tasks.push(Tasks { process, ..Tasks::new(&name, vec![start(), Phase::repeat(loops.saturating_mul(pairs.into()), message)]) });
        }
    }
    Ok(closed(tasks))
}

pub(super) const PYTHAGORAS: BuiltIn = BuiltIn {
    name: "pythagoras",
    argument: "JOBS",
    summary: "the St Andrews study's search for Pythagorean triplets: the same work cut into any number of jobs",
    options: &[
        option("jobs", "3200", "into how many jobs the work is cut"),
        option("work", "10s", "CPU time of all jobs together"),
        option(
            "variant",
            "threads",
            "threads (one for each job), pool (threads that take jobs), processes (one for each job), or sleepers (threads that also sleep)",
        ),
        option("alive", "3200", "so many jobs have a thread or process at a time: the next so many begin when these have ended"),
        option("workers", "4", "threads in the pool"),
        option("create", "", "CPU time to create a thread (15us) or a process (100us), or to put a job into the pool (1us)"),
        option("sleep", "1ms", "how long a sleeper sleeps in the middle of its job"),
    ],
    make: Make::Closed(pythagoras),
};

fn pythagoras(given: &Given) -> Result<Closed, Error> {
    let variant = given.choice("variant", &["threads", "pool", "processes", "sleepers"])?;
    let jobs: u32 = given.count("jobs", MOST_TASKS)?;
    let alive: NonZeroU32 = given.count::<u32>("alive", MOST_TASKS)?.try_into().unwrap_or(NonZeroU32::MIN);
    let (is_pool, is_process, sleeps) = (variant == 1, variant == 2, variant == 3);
    let work = Nanos(given.span("work")?.0.checked_div(jobs.into()).unwrap_or_default());
    let usual = Nanos::from_micros(if is_pool {
        1
    } else if is_process {
        100
    } else {
        15
    });
    let create = if given.get("create").is_empty() { usual } else { given.span("create")? };
    if is_pool {
        return Ok(pool(jobs.into(), work, create, given.count("workers", MOST_TASKS)?));
    }
    let half = Nanos(work.0 / 2);
    let phases = match sleeps {
        true => vec![Phase::Run(half), Phase::Sleep(given.span("sleep")?), Phase::Run(work.saturating_sub(half))],
        false => vec![Phase::Run(work)],
    };
    let job = Tasks { count: jobs, forked: true, process: is_process, ..Tasks::new("job", phases) };
    let batch =
        |size: u32| vec![Phase::repeat(size.into(), vec![Phase::Run(create), Phase::Fork("job".into())]), Phase::Join("job".into())];
    let (batches, rest) = (jobs / alive, jobs % alive);
    let mut phases = Vec::new();
    if batches > 0 {
        phases.push(Phase::repeat(batches.into(), batch(alive.get())));
    }
    if rest > 0 {
        phases.extend(batch(rest));
    }
    Ok(closed([job, Tasks::new("main", phases)]))
}

/// Workers take jobs from one pipe and report them in another, whose room is for all.
fn pool(jobs: u64, work: Nanos, put: Nanos, workers: u32) -> Closed {
    let (todo, done) = ("todo".to_string(), "done".to_string());
    let read = |pipe: &String, bytes| Phase::Read { pipe: pipe.clone(), bytes };
    let write = |pipe: &String| Phase::Write { pipe: pipe.clone(), bytes: 1 };
    let take = Phase::repeat(jobs, vec![read(&todo, 1), Phase::Run(work), write(&done)]);
    let worker = Tasks { count: workers, daemon: true, ..Tasks::new("worker", vec![take]) };
    let main = Tasks::new("main", vec![Phase::repeat(jobs, vec![Phase::Run(put), write(&todo)]), read(&done, jobs)]);
    let mut closed = closed([worker, main]);
    closed.pipes.insert(done, PipeOptions { capacity: jobs });
    closed
}

pub(super) const TWO_THREADS: BuiltIn = BuiltIn {
    name: "two-threads",
    argument: "POLICY",
    summary: "TD-TP's two threads of one policy and priority: the first prints 100 numbers, the second calculates and then prints 100; main waits for both",
    options: &[
        option("policy", "other", "other, fifo or rr"),
        option("priority", "70", "of fifo and rr"),
        option("print", "16us", "CPU time of a print"),
        option("calculate", "40ns", "CPU time of four arithmetic operations"),
        option(
            "loops",
            "twice",
            "how the second calculates in its two loops of 100: twice, one after the other, or nested, one in the other",
        ),
        option("lock", "yes", "whether a print takes the lock of the standard output"),
        option("pinned", "no", "yes: all on one CPU, as the paper's claim about their order needs"),
    ],
    make: Make::Closed(two_threads),
};

fn two_threads(given: &Given) -> Result<Closed, Error> {
    let policy =
        [SchedulingPolicy::Other, SchedulingPolicy::Fifo, SchedulingPolicy::Rr][given.choice("policy", &["other", "fifo", "rr"])?];
    let is_real_time = policy != SchedulingPolicy::Other;
    let priority = is_real_time.then_some(given.count("priority", 99)?);
    let print = Phase::Run(given.span("print")?);
    let stdout = "stdout".to_string();
    let line = if given.is_on("lock")? { vec![Phase::Lock(stdout.clone()), print, Phase::Unlock(stdout)] } else { vec![print] };
    let outer = [2, 100][given.choice("loops", &["twice", "nested"])?];
    let calculate = Phase::repeat(outer, vec![Phase::repeat(100, vec![Phase::Run(given.span("calculate")?)])]);
    let affinity = given.is_on("pinned")?.then(|| vec![0]);
    let thread = |name: &str, phases| Tasks { policy, priority, affinity: affinity.clone(), forked: true, ..Tasks::new(name, phases) };
    let one = thread("thread 1", vec![Phase::repeat(100, line.clone())]);
    let two = thread("thread 2", vec![calculate, Phase::repeat(100, line)]);
    let both = |phase: fn(String) -> Phase| [phase("thread 1".into()), phase("thread 2".into())];
    let main = Tasks::new("main", both(Phase::Fork).into_iter().chain(both(Phase::Join)).collect());
    Ok(closed([Tasks { affinity: affinity.clone(), ..main }, one, two]))
}

pub(super) const FILEIO: BuiltIn = BuiltIn {
    name: "fileio",
    argument: "read|write|copy",
    summary: "UnixBench's file read, write and copy with small buffers (the pslist post's third and fourth benchmark)",
    options: &[
        option("operation", "read", "read, write or copy"),
        option("tasks", "1", "how many tasks"),
        option("bytes", "256", "how long a buffer is"),
        option("blocks", "500", "how many buffers a file has"),
        option("rounds", "20", "how often the file is gone through"),
        option("call", "500ns", "CPU time of a call that reads or writes a buffer; the file is in the page cache"),
        option("flush", "2ms", "how long the device takes to write a file's blocks back, after each round that wrote"),
    ],
    make: Make::Closed(fileio),
};

fn fileio(given: &Given) -> Result<Closed, Error> {
    let operation = given.choice("operation", &["read", "write", "copy"])?;
    let (bytes, blocks, call) = (given.count("bytes", 1 << 30)?, given.count("blocks", MOST_TIMES)?, given.span("call")?);
    let io = |operation, service, bytes| Phase::Io(IoPhase { device: "disk".into(), service, bytes, operation });
    let block = |operation| [Phase::Run(call), io(operation, Nanos::ZERO, bytes)];
    let mut calls = Vec::new();
    if operation != 1 {
        calls.extend(block(IoOperation::Read));
    }
    if operation != 0 {
        calls.extend(block(IoOperation::Write));
    }
    let mut round = vec![Phase::repeat(blocks, calls)];
    if operation != 0 {
        round.push(io(IoOperation::Write, given.span("flush")?, 0));
    }
    let task = Tasks::new("fileio", vec![Phase::repeat(given.count("rounds", MOST_TIMES)?, round)]);
    Ok(closed([Tasks { count: given.count("tasks", MOST_TASKS)?, ..task }]))
}

pub(super) const HOGS: BuiltIn = BuiltIn {
    name: "hogs",
    argument: "N",
    summary: "N tasks that want the CPU all the time",
    options: &[
        option("tasks", "8", "how many tasks"),
        option("work", "1s", "CPU time of each"),
        option("nice", "0", "nice values, separated by commas; the tasks get them in turn"),
    ],
    make: Make::Closed(hogs),
};

fn hogs(given: &Given) -> Result<Closed, Error> {
    let (count, work) = (given.count("tasks", MOST_TASKS)?, given.span("work")?);
    let nice = |text: &str| text.parse().ok().filter(|nice| (-20..=19).contains(nice));
    let nices: Option<Vec<i32>> = given.get("nice").split(',').map(nice).collect();
    let nices = nices.ok_or_else(|| given.wrong("nice", "give numbers between -20 and 19, separated by commas"))?;
    let hog = |(index, &nice)| Tasks { nice: Some(nice), ..Tasks::new(&format!("hog {index}"), vec![Phase::Run(work)]) };
    Ok(closed((0u64..count).zip(nices.iter().cycle()).map(hog)))
}

pub(super) const PERIODIC: BuiltIn = BuiltIn {
    name: "periodic",
    argument: "N",
    summary: "N tasks that wake at multiples of a period and run for a little, beside hogs: who gets the CPU in time?",
    options: &[
        option("tasks", "4", "how many tasks"),
        option("run", "1ms", "CPU time in each period"),
        option("period", "16ms", "how long a period is"),
        option("times", "250", "how many periods"),
        option("hogs", "4", "how many hogs there are beside, which end with the tasks, or when four times the time is over"),
    ],
    make: Make::Closed(periodic),
};

fn periodic(given: &Given) -> Result<Closed, Error> {
    let timer = TimerPhase { period: given.span("period")?, name: String::new(), mode: TimerMode::Absolute, shared: false };
    let (times, period): (u64, Nanos) = (given.count("times", MOST_TIMES)?, timer.period);
    let round = vec![Phase::Run(given.span("run")?), Phase::Timer(timer)];
    let task = Tasks::new("periodic", vec![Phase::repeat(times, round)]);
    let mut tasks = vec![Tasks { count: given.count("tasks", MOST_TASKS)?, ..task }];
    if given.get("hogs") != "0" {
        let hog = Tasks::new("hog", vec![Phase::forever(vec![Phase::Run(Nanos::from_millis(1_000))])]);
        tasks.push(Tasks { count: given.count("hogs", MOST_TASKS)?, daemon: true, ..hog });
    }
    let duration = duration(i128::from(times).saturating_mul(4), period).map_err(|wrong| given.wrong("times", &wrong.to_string()))?;
    Ok(Closed { duration: Some(duration), ..closed(tasks) })
}

pub(super) const PING_PONG: BuiltIn = BuiltIn {
    name: "ping-pong",
    argument: "PAIRS",
    summary: "pairs of tasks that send a byte back and forth over two pipes: what waking somebody costs",
    options: &[
        option("pairs", "1", "how many pairs"),
        option("times", "10000", "how often the byte comes back"),
        option("run", "1us", "CPU time before each message"),
    ],
    make: Make::Closed(ping_pong),
};

fn ping_pong(given: &Given) -> Result<Closed, Error> {
    let (times, run) = (given.count("times", MOST_TIMES)?, given.span("run")?);
    let pair = |pair: u64| {
        let (there, back) = (format!("there {pair}"), format!("back {pair}"));
        let write = |pipe: &String| Phase::Write { pipe: pipe.clone(), bytes: 1 };
        let read = |pipe: &String| Phase::Read { pipe: pipe.clone(), bytes: 1 };
        let ping = vec![Phase::Run(run), write(&there), read(&back)];
        let pong = vec![read(&there), Phase::Run(run), write(&back)];
        [("ping", ping), ("pong", pong)].map(|(name, round)| Tasks::new(&format!("{name} {pair}"), vec![Phase::repeat(times, round)]))
    };
    Ok(closed((0..given.count("pairs", MOST_TASKS / 2)?).flat_map(pair)))
}

fn closed(tasks: impl IntoIterator<Item = Tasks>) -> Closed {
    Closed { tasks: tasks.into_iter().collect(), ..Closed::default() }
}
