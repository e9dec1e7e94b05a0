//! The programs of the papers, and common scheduler test programs, as closed workloads.
//!
//! A simulation does not know the cost of a system call. If a program does nothing but system
//! calls, an option sets their cost. The defaults are only of the order seen on machines of the
//! 2020s.

use super::{BuiltIn, Given, Make, option};
use program::Error;
use schedsim::Nanos;
use schedsim::admission::duration;
use schedsim::workload::{
    Closed, IoOperation, IoPhase, Phase, PipeOptions, SchedulingPolicy, Tasks, TimerMode,
    TimerPhase,
};
use std::num::NonZeroU32;

const MOST_TASKS: u64 = 1_000_000;
const MOST_TIMES: u64 = 1_000_000_000;
/// The limit on sender-receiver pairs in all groups of hackbench together.
const MOST_MESSAGES: u64 = 10_000_000;

pub(super) const YIELD: BuiltIn = BuiltIn {
    name: "yield",
    argument: "N",
    summary: "N tasks that mostly yield: the cost of a scheduler (the pslist \
              post's first benchmark)",
    options: &[
        option("tasks", "8", "how many tasks"),
        option("times", "10000", "how often each yields"),
        option("run", "1us", "CPU time between two yields"),
    ],
    make: Make::Closed(yielders),
};

fn yielders(given: &Given) -> Result<Closed, Error> {
    let round = vec![Phase::Run(given.span("run")?), Phase::Yield];
    let yielder =
        Tasks::new("yielder", vec![Phase::repeat(given.count("times", MOST_TIMES)?, round)]);
    Ok(closed([Tasks { count: given.count("tasks", MOST_TASKS)?, ..yielder }]))
}

pub(super) const HACKBENCH: BuiltIn = BuiltIn {
    name: "hackbench",
    argument: "G",
    summary: "G groups of senders and receivers; each sender writes to every receiver's pipe. \
              hackbench:10 is the pslist post's hackbench with 400 processes",
    options: &[
        option("groups", "10", "number of groups"),
        option("pairs", "20", "number of senders, and of receivers, in a group"),
        option("loops", "100", "number of messages from each sender to each receiver"),
        option("bytes", "100", "size of a message"),
        option("send", "1us", "CPU time before each message is written"),
        option("receive", "1us", "CPU time after each message is read"),
        option("threads", "no", "yes: threads in place of processes"),
    ],
    make: Make::Closed(hackbench),
};

fn hackbench(given: &Given) -> Result<Closed, Error> {
    let (groups, loops): (u64, u64) =
        (given.count("groups", 10_000)?, given.count("loops", MOST_TIMES)?);
    let pairs: u32 = given.count("pairs", 1_000)?;
    let pipes = groups.saturating_mul(pairs.into());
    if pipes.saturating_mul(pairs.into()) > MOST_MESSAGES || pipes > MOST_TASKS / 2 {
        return Err(given.wrong(
            "groups",
            &format!(
                "with {pairs} pairs in each they are too many for one machine; give fewer of \
                 either"
            ),
        ));
    }
    let (bytes, send, receive) =
        (given.count("bytes", 1 << 20)?, given.span("send")?, given.span("receive")?);
    let process = !given.is_on("threads")?;
    let start = || Phase::Barrier("start".to_string());
    let mut tasks = Vec::new();
    for group in 0..groups {
        let pipe = |receiver: u32| format!("{group}.{receiver}");
        let message = |receiver| [Phase::Run(send), Phase::Write { pipe: pipe(receiver), bytes }];
        let round: Vec<Phase> = (0..pairs).flat_map(message).collect();
        let sender =
            numbered("sender", &group.to_string(), vec![start(), Phase::repeat(loops, round)]);
        tasks.push(Tasks { count: pairs, process, ..sender });
        for receiver in 0..pairs {
            let message = vec![
                Phase::Read { pipe: pipe(receiver), bytes, partial: false },
                Phase::Run(receive),
            ];
            let phases = vec![start(), Phase::repeat(loops.saturating_mul(pairs.into()), message)];
            tasks.push(Tasks { process, ..numbered("receiver", &pipe(receiver), phases) });
        }
    }
    Ok(closed(tasks))
}

pub(super) const PYTHAGORAS: BuiltIn = BuiltIn {
    name: "pythagoras",
    argument: "JOBS",
    summary: "the St Andrews study's search for Pythagorean triplets: the same work cut into any \
              number of jobs",
    options: &[
        option("jobs", "3200", "number of jobs"),
        option("work", "10s", "CPU time of all jobs together"),
        option(
            "variant",
            "threads",
            "threads (one for each job), pool (threads that take jobs), processes (one for each \
             job), or sleepers (threads that also sleep)",
        ),
        option(
            "alive",
            "3200",
            "number of jobs that have a thread or process at a time; the next batch begins when \
             these have ended",
        ),
        option("workers", "4", "threads in the pool"),
        option(
            "create",
            "",
            "CPU time to create a thread (15us) or a process (100us), or to put a job into the \
             pool (1us)",
        ),
        option("sleep", "1ms", "sleep of a sleeper in the middle of its job"),
    ],
    make: Make::Closed(pythagoras),
};

fn pythagoras(given: &Given) -> Result<Closed, Error> {
    let variant = given.choice("variant", &["threads", "pool", "processes", "sleepers"])?;
    let jobs: u32 = given.count("jobs", MOST_TASKS)?;
    let alive: NonZeroU32 =
        given.count::<u32>("alive", MOST_TASKS)?.try_into().unwrap_or(NonZeroU32::MIN);
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
        true => vec![
            Phase::Run(half),
            Phase::Sleep(given.span("sleep")?),
            Phase::Run(work.saturating_sub(half)),
        ],
        false => vec![Phase::Run(work)],
    };
    let job = Tasks { count: jobs, forked: true, process: is_process, ..Tasks::new("job", phases) };
    let batch = |size: u32| {
        vec![
            Phase::repeat(size.into(), vec![Phase::Run(create), Phase::Fork("job".into())]),
            Phase::Join("job".into()),
        ]
    };
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

/// Workers take jobs from one pipe and report them in another that has room for all of them.
fn pool(jobs: u64, work: Nanos, put: Nanos, workers: u32) -> Closed {
    let (todo, done) = ("todo".to_string(), "done".to_string());
    let read = |pipe: &String, bytes| Phase::Read { pipe: pipe.clone(), bytes, partial: false };
    let write = |pipe: &String| Phase::Write { pipe: pipe.clone(), bytes: 1 };
    let take = Phase::repeat(jobs, vec![read(&todo, 1), Phase::Run(work), write(&done)]);
    let worker = Tasks { count: workers, daemon: true, ..Tasks::new("worker", vec![take]) };
    let main = Tasks::new(
        "main",
        vec![Phase::repeat(jobs, vec![Phase::Run(put), write(&todo)]), read(&done, jobs)],
    );
    let mut closed = closed([worker, main]);
    closed.pipes.insert(done, PipeOptions { capacity: jobs });
    closed
}

pub(super) const TWO_THREADS: BuiltIn = BuiltIn {
    name: "two-threads",
    argument: "POLICY",
    summary: "TD-TP's two threads of one policy and priority: the first prints 100 numbers, the \
              second calculates and then prints 100; main waits for both",
    options: &[
        option("policy", "other", "other, fifo or rr"),
        option("priority", "70", "of fifo and rr"),
        option("print", "16us", "CPU time of a print"),
        option("calculate", "40ns", "CPU time of four arithmetic operations"),
        option(
            "loops",
            "twice",
            "the second's two loops of 100: twice (one after the other) or \
             nested",
        ),
        option("lock", "yes", "whether a print takes the lock of the standard output"),
        option(
            "pinned",
            "no",
            "yes: all on one CPU, which the paper's claim about their order needs",
        ),
    ],
    make: Make::Closed(two_threads),
};

fn two_threads(given: &Given) -> Result<Closed, Error> {
    let policy = [SchedulingPolicy::Other, SchedulingPolicy::Fifo, SchedulingPolicy::Rr]
        [given.choice("policy", &["other", "fifo", "rr"])?];
    let is_real_time = policy != SchedulingPolicy::Other;
    let priority = is_real_time.then_some(given.count("priority", 99)?);
    let print = Phase::Run(given.span("print")?);
    let stdout = "stdout".to_string();
    let line = if given.is_on("lock")? {
        vec![Phase::Lock(stdout.clone()), print, Phase::Unlock(stdout)]
    } else {
        vec![print]
    };
    let outer = [2, 100][given.choice("loops", &["twice", "nested"])?];
    let calculate =
        Phase::repeat(outer, vec![Phase::repeat(100, vec![Phase::Run(given.span("calculate")?)])]);
    let affinity = given.is_on("pinned")?.then(|| vec![0]);
    let thread = |name: &str, phases| Tasks {
        policy,
        priority,
        affinity: affinity.clone(),
        forked: true,
        ..Tasks::new(name, phases)
    };
    let one = thread("thread 1", vec![Phase::repeat(100, line.clone())]);
    let two = thread("thread 2", vec![calculate, Phase::repeat(100, line)]);
    let both = |phase: fn(String) -> Phase| [phase("thread 1".into()), phase("thread 2".into())];
    let main = Tasks::new("main", both(Phase::Fork).into_iter().chain(both(Phase::Join)).collect());
    Ok(closed([Tasks { affinity: affinity.clone(), ..main }, one, two]))
}

pub(super) const FILEIO: BuiltIn = BuiltIn {
    name: "fileio",
    argument: "read|write|copy",
    summary: "UnixBench's file read, write and copy with small buffers (the pslist post's third \
              and fourth benchmark)",
    options: &[
        option("operation", "read", "read, write or copy"),
        option("tasks", "1", "number of tasks"),
        option("bytes", "256", "size of a buffer"),
        option("blocks", "500", "number of buffers in a file"),
        option("rounds", "20", "number of passes over the file"),
        option(
            "call",
            "500ns",
            "CPU time of a call that reads or writes a buffer; the file is in the page cache",
        ),
        option(
            "flush",
            "2ms",
            "time of the device to write a file's blocks back, after each pass that wrote",
        ),
    ],
    make: Make::Closed(fileio),
};

fn fileio(given: &Given) -> Result<Closed, Error> {
    let operation = given.choice("operation", &["read", "write", "copy"])?;
    let (bytes, blocks, call) =
        (given.count("bytes", 1 << 30)?, given.count("blocks", MOST_TIMES)?, given.span("call")?);
    let io = |operation, service, bytes| {
        Phase::Io(IoPhase { device: "disk".into(), service, bytes, operation })
    };
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
    summary: "N tasks that never block",
    options: &[
        option("tasks", "8", "number of tasks"),
        option("work", "1s", "CPU time of each"),
        option(
            "nice",
            "0",
            "nice values, separated by commas; assigned to the tasks in order, repeatedly",
        ),
    ],
    make: Make::Closed(hogs),
};

fn hogs(given: &Given) -> Result<Closed, Error> {
    let (count, work) = (given.count("tasks", MOST_TASKS)?, given.span("work")?);
    let nice = |text: &str| text.parse().ok().filter(|nice| (-20..=19).contains(nice));
    let nices: Option<Vec<i32>> = given.get("nice").split(',').map(nice).collect();
    let nices = nices.ok_or_else(|| {
        given.wrong("nice", "give numbers between -20 and 19, separated by commas")
    })?;
    let hog = |(index, &nice)| Tasks {
        nice: Some(nice),
        ..Tasks::new(&format!("hog {index}"), vec![Phase::Run(work)])
    };
    Ok(closed((0u64..count).zip(nices.iter().cycle()).map(hog)))
}

pub(super) const PERIODIC: BuiltIn = BuiltIn {
    name: "periodic",
    argument: "N",
    summary: "N tasks that wake at multiples of a period and run for a little, beside hogs: which \
              task gets the CPU in time?",
    options: &[
        option("tasks", "4", "number of tasks"),
        option("run", "1ms", "CPU time in each period"),
        option("period", "16ms", "length of a period"),
        option("times", "250", "number of periods"),
        option(
            "hogs",
            "4",
            "how many hogs there are beside, which end with the tasks, or when four times the \
             time is over",
        ),
    ],
    make: Make::Closed(periodic),
};

fn periodic(given: &Given) -> Result<Closed, Error> {
    let timer = TimerPhase {
        period: given.span("period")?,
        name: String::new(),
        mode: TimerMode::Absolute,
        shared: false,
    };
    let (times, period): (u64, Nanos) = (given.count("times", MOST_TIMES)?, timer.period);
    let round = vec![Phase::Run(given.span("run")?), Phase::Timer(timer)];
    let task = Tasks::new("periodic", vec![Phase::repeat(times, round)]);
    let mut tasks = vec![Tasks { count: given.count("tasks", MOST_TASKS)?, ..task }];
    if given.get("hogs") != "0" {
        let hog =
            Tasks::new("hog", vec![Phase::forever(vec![Phase::Run(Nanos::from_millis(1_000))])]);
        tasks.push(Tasks { count: given.count("hogs", MOST_TASKS)?, daemon: true, ..hog });
    }
    let duration = duration(i128::from(times).saturating_mul(4), period)
        .map_err(|wrong| given.wrong("times", &wrong.to_string()))?;
    Ok(Closed { duration: Some(duration), ..closed(tasks) })
}

pub(super) const PING_PONG: BuiltIn = BuiltIn {
    name: "ping-pong",
    argument: "PAIRS",
    summary: "pairs of tasks that send a byte back and forth over two pipes: what waking somebody \
              costs",
    options: &[
        option("pairs", "1", "number of pairs"),
        option("times", "10000", "number of round trips"),
        option("run", "1us", "CPU time before each message"),
    ],
    make: Make::Closed(ping_pong),
};

fn ping_pong(given: &Given) -> Result<Closed, Error> {
    let (times, run) = (given.count("times", MOST_TIMES)?, given.span("run")?);
    let pair = |pair: u64| {
        let (there, back) = (format!("there {pair}"), format!("back {pair}"));
        let write = |pipe: &String| Phase::Write { pipe: pipe.clone(), bytes: 1 };
        let read = |pipe: &String| Phase::Read { pipe: pipe.clone(), bytes: 1, partial: false };
        let ping = vec![Phase::Run(run), write(&there), read(&back)];
        let pong = vec![read(&there), Phase::Run(run), write(&back)];
        [("ping", ping), ("pong", pong)].map(|(name, round)| {
            numbered(name, &pair.to_string(), vec![Phase::repeat(times, round)])
        })
    };
    Ok(closed((0..given.count("pairs", MOST_TASKS / 2)?).flat_map(pair)))
}

/// One of several entries of a program.
fn numbered(program: &str, number: &str, phases: Vec<Phase>) -> Tasks {
    Tasks {
        program: Some(program.to_string()),
        ..Tasks::new(&format!("{program} {number}"), phases)
    }
}

fn closed(tasks: impl IntoIterator<Item = Tasks>) -> Closed {
    Closed { tasks: tasks.into_iter().collect(), ..Closed::default() }
}
