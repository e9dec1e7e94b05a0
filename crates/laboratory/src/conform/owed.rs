//! What any general-purpose scheduler owes: each check as a job with its bound.
//!
//! A bound is far above what a fair scheduler needs, so that it tells a defect from a taste. Tasks
//! of the same weight wait at most for a few slices of the others. 25 slices of sched_ext's default
//! of 20 ms are 500 ms. Tasks of different weight wait longer by right, see [`NICE_BOUND`].

use super::judged::{self, Found, Scene};
use schedlab_runner::class::Class;
use schedlab_runner::session::Job;
use schedlab_runner::step::{Act, Step};
use schedsim::Nanos;
use schedsim::workload::{Closed, LoopPhase, MutexOptions, Phase, SchedulingPolicy, Tasks};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// How long a runnable task may wait beside others of its weight.
const BOUND: Nanos = Nanos(500 * MS);
/// The same for a task of nice 5 beside three of nice −5 on two CPUs. It is owed 335 of 9,698 parts
/// of them, a slice of 20 ms in each 290 ms. Three times that is rounded up. With the extremes, −20
/// and 19, it would be owed one in six minutes: no bound in seconds can be asked for there.
const NICE_BOUND: Nanos = Nanos(1000 * MS);

/// A question to a scheduler.
pub struct Owed {
    /// The check, one of [`CHECKS`].
    pub check: &'static str,
    /// The workload in a few words.
    pub workload: &'static str,
    /// What is asked, in a sentence with its bound.
    pub asked: String,
    /// The most that it may be.
    pub bound: Nanos,
    /// What runs.
    pub job: Job,
    /// How it is judged.
    pub judge: fn(&Scene<'_>) -> Found,
}

/// The names of the checks, in the order in which they run: what may end the scheduler comes last.
pub const CHECKS: [&str; 10] = [
    "starvation",
    "conservation",
    "weights",
    "affinity",
    "kernel-threads",
    "storms",
    "suspension",
    "inheritance",
    "hotplug",
    "unloading",
];

/// What is not asked of any scheduler, with the reason.
pub const NOT_ASKED: [(&str, &str); 4] = [
    (
        "weights of control groups",
        "sched_ext leaves them to the scheduler, and many honest ones have none",
    ),
    (
        "nice −20 beside nice 19",
        "by its weight such a task is owed a slice in six minutes: no bound in seconds is fair",
    ),
    (
        "ksoftirqd",
        "whether softirqs reach it or run at the end of an interrupt is the kernel's choice; \
         workers of each CPU and grace periods are asked in its place",
    ),
    (
        "inheritance between tasks of sched_ext",
        "the kernel tells a scheduler of sched_ext nothing of it: only a real-time waiter lifts the \
         owner, and the kernel itself does that",
    ),
];

/// All questions for a machine with `cpus` CPUs.
pub fn all(cpus: u16) -> Vec<Owed> {
    let mut all = starvation();
    all.extend([
        conservation(),
        weights(),
        affinity(),
        kernel_threads(cpus),
        storms(),
        suspension(),
        inheritance(),
        hotplug(cpus),
        unloading(),
    ]);
    all
}

/// The weights again: under the kernel's own scheduler, after the other is gone.
pub fn reference() -> Job {
    Job { name: "reference".to_string(), ..weights().job }
}

fn run(us: u64) -> Phase {
    Phase::Run(Nanos(us * US))
}

fn sleep(us: u64) -> Phase {
    Phase::Sleep(Nanos(us * US))
}

fn always(name: &str, count: u32, phases: Vec<Phase>) -> Tasks {
    Tasks { count, daemon: true, ..Tasks::new(name, vec![Phase::forever(phases)]) }
}

fn hogs(count: u32) -> Tasks {
    always("hog", count, vec![run(1_000)])
}

fn sleeper() -> Tasks {
    always("sleeper", 1, vec![run(200), sleep(5_000)])
}

fn nice(nice: i32, tasks: Tasks) -> Tasks {
    Tasks { nice: Some(nice), ..tasks }
}

fn pinned(cpus: &[u16], tasks: Tasks) -> Tasks {
    Tasks { affinity: Some(cpus.to_vec()), ..tasks }
}

fn step(at_ms: u64, act: Act) -> Step {
    Step { at_ns: at_ms * MS, act }
}

/// A recorded job that ends after `ms`, with steps.
fn job(name: &str, ms: u64, tasks: Vec<Tasks>, steps: Vec<Step>) -> Job {
    let duration = Some(Nanos(ms * MS));
    let mut workload = Closed { tasks, duration, ..Closed::default() };
    if workload.tasks.iter().all(|task| task.daemon) {
        // A workload needs a task at whose end it ends.
        workload.tasks[0].daemon = false;
    }
    Job { trace: true, overseen: Some(steps), ..Job::new(name, workload, Class::Other) }
}

fn starving(workload: &'static str, bound: Nanos, job: Job) -> Owed {
    let asked = format!("no runnable task waits longer than {bound}");
    Owed { check: "starvation", workload, asked, bound, job, judge: judged::no_long_wait }
}

fn starvation() -> Vec<Owed> {
    let write = |pipe: &str| Phase::Write { pipe: pipe.to_string(), bytes: 1 };
    let read = |pipe: &str| Phase::Read { pipe: pipe.to_string(), bytes: 1, partial: false };
    let pair = |name: &str, to: &str, from: &str, first: bool| {
        let rounds = match first {
            true => vec![write(to), read(from), run(50)],
            false => vec![read(from), run(50), write(to)],
        };
        always(name, 1, rounds)
    };
    let child = Tasks {
        count: 400,
        forked: true,
        process: true,
        daemon: true,
        ..Tasks::new("child", vec![run(100)])
    };
    let fork = vec![Phase::Fork("child".to_string()), Phase::Join("child".to_string()), sleep(500)];
    let forker = Tasks {
        daemon: true,
        ..Tasks::new("forker", vec![Phase::Loop(LoopPhase { times: Some(400), phases: fork })])
    };
    vec![
        starving(
            "a task that sleeps beside hogs",
            BOUND,
            job("sleeper", 800, vec![hogs(6), sleeper()], vec![]),
        ),
        starving(
            "a storm of yields",
            BOUND,
            job(
                "yields",
                700,
                vec![always("yielder", 4, vec![run(100), Phase::Yield]), hogs(2)],
                vec![],
            ),
        ),
        starving(
            "tasks that are forked and exit beside hogs",
            BOUND,
            job("forks", 800, vec![hogs(3), forker, child], vec![]),
        ),
        starving(
            "chains of wakeups beside hogs",
            BOUND,
            job(
                "chains",
                800,
                vec![
                    hogs(4),
                    pair("ping", "there", "back", true),
                    pair("pong", "back", "there", false),
                    pair("tick", "left", "right", true),
                    pair("tock", "right", "left", false),
                ],
                vec![],
            ),
        ),
        starving(
            "hogs pinned to CPU 0 beside free ones",
            BOUND,
            job(
                "pinned",
                800,
                vec![
                    hogs(3),
                    pinned(&[0], always("pinned", 3, vec![run(1_000)])),
                    pinned(&[0], sleeper()),
                ],
                vec![],
            ),
        ),
        starving(
            "nice 5 beside three hogs of nice −5",
            NICE_BOUND,
            job(
                "nice",
                1500,
                vec![nice(-5, hogs(3)), nice(5, always("polite", 1, vec![run(1_000)]))],
                vec![],
            ),
        ),
    ]
}

fn conservation() -> Owed {
    let bound = Nanos(50 * MS);
    Owed {
        check: "conservation",
        workload: "five tasks that run and sleep in turn",
        asked: format!(
            "no CPU idles beside a waiting task that may run there for longer than {bound}, nor all \
             CPUs together for a tenth of their time"
        ),
        bound,
        job: job(
            "conservation",
            1000,
            vec![always("worker", 5, vec![run(4_000), sleep(3_000)])],
            vec![],
        ),
        judge: judged::no_idle_beside_waiting,
    }
}

fn weights() -> Owed {
    Owed {
        check: "weights",
        workload: "three hogs of nice 0 beside three of nice 5",
        asked:
            "each of nice 0 gets more than each of nice 5; together 3.06 times as much by their \
                weights, and between half and twice that"
                .to_string(),
        bound: Nanos::ZERO,
        job: job(
            "weights",
            1500,
            vec![hogs(3), nice(5, always("polite", 3, vec![run(1_000)]))],
            vec![],
        ),
        judge: judged::shares_follow_weights,
    }
}

fn affinity() -> Owed {
    let bound = Nanos(250 * MS);
    let places: [&[u16]; 4] = [&[0], &[1], &[0], &[1]];
    let to =
        |task: &str, cpus: &[u16]| Act::Affinity { task: task.to_string(), cpus: cpus.to_vec() };
    let steps = (1..).zip(places).flat_map(|(number, cpus)| {
        ["moved", "dozing"].map(|task| step(300 * number, to(task, cpus)))
    });
    Owed {
        check: "affinity",
        workload: "a hog and a sleeping task whose CPUs change four times, beside hogs",
        asked: format!(
            "after each change they run on no other CPU, and run within {bound}; nobody waits longer"
        ),
        bound,
        job: job(
            "affinity",
            1500,
            vec![
                hogs(3),
                always("moved", 1, vec![run(1_000)]),
                always("dozing", 1, vec![run(200), sleep(5_000)]),
            ],
            steps.collect(),
        ),
        judge: judged::affinity_holds,
    }
}

fn kernel_threads(cpus: u16) -> Owed {
    let on_each =
        (0..cpus).map(|cpu| pinned(&[cpu], always(&format!("hog{cpu}"), 3, vec![run(1_000)])));
    Owed {
        check: "kernel-threads",
        workload: "three hogs pinned to each CPU, while each CPU's worker is given work",
        asked: format!(
            "the kernel's worker of each CPU has done its work, and a grace period of RCU is over, \
             within {BOUND}; no thread of the kernel waits longer"
        ),
        bound: BOUND,
        job: job(
            "kernel-threads",
            1200,
            on_each.collect(),
            vec![
                step(100, Act::KernelWork),
                step(200, Act::GracePeriod),
                step(600, Act::KernelWork),
                step(700, Act::GracePeriod),
            ],
        ),
        judge: judged::kernel_threads_are_served,
    }
}

fn storms() -> Owed {
    let bound = Nanos(5_000 * MS);
    let child = |name: &str, process: bool| Tasks {
        count: 120,
        forked: true,
        process,
        ..Tasks::new(name, vec![run(50)])
    };
    let forker = |name: &str, of: &str| {
        let each = |_| Phase::Fork(of.to_string());
        let burst: Vec<Phase> = (0..40).map(each).chain([Phase::Join(of.to_string())]).collect();
        Tasks::new(name, vec![Phase::repeat(3, burst)])
    };
    Owed {
        check: "storms",
        workload: "240 tasks are forked and exit in bursts of 40, and 60 programs are started",
        asked: format!("none is refused, and all have ended within {bound}"),
        bound,
        job: job(
            "storms",
            bound.0 / MS,
            vec![
                forker("processes", "process"),
                child("process", true),
                forker("threads", "thread"),
                child("thread", false),
            ],
            vec![step(5, Act::Execs(60))],
        ),
        judge: judged::storms_pass,
    }
}

fn suspension() -> Owed {
    let process = |tasks: Tasks| Tasks { process: true, ..tasks };
    let stopped = |name: &str, phases| process(always(name, 1, phases));
    let names = ["stopped", "sleeping"];
    let both = |at, act: fn(String) -> Act| names.map(|name| step(at, act(name.to_string())));
    let steps = [
        both(200, Act::Stop),
        both(450, Act::Continue),
        both(700, Act::Stop),
        both(950, Act::Continue),
    ];
    Owed {
        check: "suspension",
        workload: "a hog and a sleeping task are stopped and continued twice (SIGSTOP), beside hogs",
        asked: format!("each stops within 200 ms, and runs within {BOUND} after it is continued"),
        bound: BOUND,
        job: job(
            "suspension",
            1600,
            vec![
                hogs(3),
                stopped(names[0], vec![run(1_000)]),
                stopped(names[1], vec![run(200), sleep(5_000)]),
            ],
            steps.concat(),
        ),
        judge: judged::suspended_tasks_return,
    }
}

fn inheritance() -> Owed {
    let lock = || Phase::Lock("lock".to_string());
    let unlock = || Phase::Unlock("lock".to_string());
    let urgent = Tasks {
        policy: SchedulingPolicy::Fifo,
        priority: Some(50),
        ..always("urgent", 1, vec![sleep(20_000), lock(), run(100), unlock()])
    };
    let owner = nice(5, always("owner", 1, vec![lock(), run(5_000), unlock(), run(1_000)]));
    let mut job = job("inheritance", 1300, vec![hogs(4), owner, urgent], vec![]);
    job.workload
        .mutexes
        .insert("lock".to_string(), MutexOptions { inherit: true, ..MutexOptions::default() });
    Owed {
        check: "inheritance",
        workload: "a real-time task waits for a mutex (PI futex) of a task of nice 5, beside hogs",
        asked: format!(
            "the real-time task is back within 120 ms each time, although it sleeps for 20 ms and \
             the owner has 5 ms to run; back in its class the owner waits no longer than {BOUND}"
        ),
        bound: BOUND,
        job,
        judge: judged::owners_are_lifted,
    }
}

fn hotplug(cpus: u16) -> Owed {
    let last = cpus - 1;
    Owed {
        check: "hotplug",
        workload: "the last CPU is switched off and on again under four hogs and a sleeping task",
        asked: format!(
            "both succeed within 2 s; nobody waits longer than {BOUND}; the CPU is used again within \
             {BOUND}; the scheduler is there 2.5 s later, the same or loaded again"
        ),
        bound: BOUND,
        job: job(
            "hotplug",
            3200,
            vec![hogs(4), sleeper()],
            vec![step(200, Act::Offline(last)), step(700, Act::Online(last))],
        ),
        judge: judged::hotplug_passes,
    }
}

fn unloading() -> Owed {
    Owed {
        check: "unloading",
        workload: "the scheduler is ended under three hogs and a sleeping task",
        asked: format!(
            "the kernel says `disabled` within 5 s; nobody waits longer than {BOUND}; no map, program, \
             link, pin, process or file is left a second after its end"
        ),
        bound: BOUND,
        job: job("unloading", 900, vec![hogs(3), sleeper()], vec![step(200, Act::Unload)]),
        judge: judged::nothing_is_left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_asked_and_its_workload_can_run() {
        for cpus in [2, 4, 8] {
            let all = all(cpus);
            let mut asked: Vec<&str> = all.iter().map(|owed| owed.check).collect();
            asked.dedup();
            assert_eq!(asked, CHECKS);
            assert_eq!(all.iter().filter(|owed| owed.check == "starvation").count(), 6);
            for owed in all {
                let checked = owed.job.workload.check(cpus);
                assert!(checked.is_ok(), "{}: {checked:?}", owed.job.name);
                let mut steps = owed.job.overseen.iter().flatten();
                let end = owed.job.workload.duration.unwrap_or(Nanos::ZERO);
                assert!(steps.all(|step| step.at_ns < end.0), "{}", owed.job.name);
            }
        }
    }
}
