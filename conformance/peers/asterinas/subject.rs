//! Asterinas' CFS as a subject: its `sched_class/{mod,fair,policy,time,idle,stop}.rs` and `nice.rs`, unmodified, on one CPU.
//!
//! The calls are those of OSTD's `task/scheduler/mod.rs`. `resched` is whether `enqueue` names the CPU, and what `update_current(Tick)` says. An idle thread runs
//! while no task does. The weights that it can express are Linux's forty, by their nice values; a vruntime cannot be set, and requests do not exist.

extern crate alloc;

mod event;
mod sched {
    pub(crate) mod nice;
    pub(crate) mod sched_class;

    pub(crate) mod stats {
        pub(crate) trait SchedulerStats: Sync + Send {
            fn nr_queued_and_running(&self) -> (u32, u32);
        }

        pub(crate) fn set_stats_from_scheduler(_: &'static dyn SchedulerStats) {}
    }
}
mod thread {
    use std::sync::{Arc, Mutex, MutexGuard};

    use ostd::{cpu::CpuSet, task::Task};

    use crate::sched::sched_class::SchedAttr;

    pub(crate) struct Thread {
        pub(crate) number: u64,
        pub(crate) attr: SchedAttr,
        pub(crate) affinity: Affinity,
    }

    impl Thread {
        pub(crate) fn sched_attr(&self) -> &SchedAttr {
            &self.attr
        }

        pub(crate) fn atomic_cpu_affinity(&self) -> &Affinity {
            &self.affinity
        }
    }

    pub(crate) struct Affinity(pub(crate) Mutex<CpuSet>);

    impl Affinity {
        pub(crate) fn load(&self, _: core::sync::atomic::Ordering) -> MutexGuard<'_, CpuSet> {
            self.0.lock().expect("no panic while the lock is held")
        }
    }

    pub(crate) trait AsThread {
        fn as_thread(&self) -> Option<&Arc<Thread>>;
    }

    impl AsThread for Task {
        fn as_thread(&self) -> Option<&Arc<Thread>> {
            self.data.downcast_ref()
        }
    }
}

use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
    sync::{Arc, Mutex, atomic::Ordering},
};

use ostd::{
    cpu::CpuSet,
    task::{
        Task, TaskScheduleInfo,
        scheduler::{EnqueueFlags, LocalRunQueue, Scheduler, UpdateFlags},
    },
};

use self::{
    event::Event,
    sched::{
        nice::{Nice, NiceValue},
        sched_class::{ClassScheduler, SchedAttr, SchedPolicy},
    },
    thread::{Affinity, AsThread, Thread},
};

/// `sched_prio_to_weight` of Linux, from nice -20.
const WEIGHTS: [i64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

fn main() {
    let mut subject: Result<Subject, String> = Err("the first event is not reset".into());
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = line
            .map_err(|error| error.to_string())
            .and_then(|line| Event::read(&line))
            .and_then(|event| {
                if event.op == "reset" {
                    subject = Ok(Subject::new());
                }
                subject.as_mut().map_err(|error| error.clone())?.does(&event)
            });
        let written = match answer {
            Ok(answer) => writeln!(out, "{{{answer}}}"),
            Err(error) => {
                let written = writeln!(out, "{{\"error\":\"{error}\"}}");
                // After an error the state means nothing until the next reset.
                subject = Err(error);
                written
            }
        };
        if written.and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

struct Subject {
    scheduler: ClassScheduler,
    tasks: BTreeMap<i64, Arc<Task>>,
    /// The tasks that are in the queue or run.
    ready: Vec<i64>,
    /// A task that yielded keeps the CPU if the scheduler says so.
    keeps: bool,
}

impl Subject {
    fn new() -> Self {
        ostd::NOW.store(0, Ordering::Relaxed);
        let subject = Self {
            scheduler: ClassScheduler::new(),
            tasks: BTreeMap::new(),
            ready: Vec::new(),
            keeps: false,
        };
        let _ = subject.scheduler.enqueue(task(0, SchedPolicy::Idle), EnqueueFlags::Spawn);
        subject.with(|queue| {
            queue.try_pick_next();
        });
        subject
    }

    /// What the members of the answer are.
    fn does(&mut self, event: &Event) -> Result<String, String> {
        ostd::NOW.store(event.at, Ordering::Relaxed);
        match event.op.as_str() {
            "reset" => Ok(String::new()),
            "task" => {
                if event.vruntime > 0 {
                    return Err(
                        "Asterinas has no way to set a task's vruntime, and a new one has 0".into(),
                    );
                }
                if event.task < 1 || self.tasks.contains_key(&event.task) {
                    return Err("a task has a number of its own, from 1".into());
                }
                self.tasks.insert(
                    event.task,
                    task(event.task as u64, SchedPolicy::Fair(nice(event.weight)?)),
                );
                Ok(String::new())
            }
            "wake" | "new" => {
                let task = self
                    .tasks
                    .get(&event.task)
                    .filter(|_| !self.ready.contains(&event.task))
                    .ok_or("a task that wakes exists and sleeps")?;
                let flags =
                    if event.op == "new" { EnqueueFlags::Spawn } else { EnqueueFlags::Wake };
                let resched = self.scheduler.enqueue(task.clone(), flags).is_some();
                self.ready.push(event.task);
                Ok(format!("\"resched\":{resched}"))
            }
            "tick" => {
                let resched = self.with(|queue| queue.update_current(UpdateFlags::Tick));
                Ok(format!("\"resched\":{resched},{}", self.states()))
            }
            "block" | "exit" => {
                let running = self.running();
                if running == 0 {
                    return Err("no task runs".into());
                }
                let flags = if event.op == "block" { UpdateFlags::Wait } else { UpdateFlags::Exit };
                self.with(|queue| {
                    let _ = queue.update_current(flags);
                    queue.dequeue_current();
                });
                self.ready.retain(|&task| task != running);
                Ok(self.states())
            }
            "yield" => {
                self.keeps = !self.with(|queue| queue.update_current(UpdateFlags::Yield));
                Ok(self.states())
            }
            "pick" => {
                if !std::mem::take(&mut self.keeps) {
                    self.with(|queue| {
                        queue.try_pick_next();
                    });
                }
                Ok(format!("\"runs\":{}", self.running()))
            }
            "weight" => {
                let task = self.tasks.get(&event.task).ok_or("the task does not exist")?;
                thread(task).attr.set_policy(SchedPolicy::Fair(nice(event.weight)?));
                Ok("\"resched\":false".into())
            }
            "slice" => Err("Asterinas has no requests".into()),
            op => Err(format!("the event {op} is unknown")),
        }
    }

    fn with<T>(&self, does: impl FnOnce(&mut dyn LocalRunQueue) -> T) -> T {
        let (mut does, mut result) = (Some(does), None);
        self.scheduler.mut_local_rq_with(&mut |queue| result = does.take().map(|does| does(queue)));
        result.expect("the queue is there")
    }

    fn running(&self) -> i64 {
        self.with(|queue| queue.current().map_or(0, |task| thread(task).number as i64))
    }

    /// The vruntimes of the tasks in the queue; the running one's is that of the last update.
    fn states(&self) -> String {
        let states: Vec<String> = self
            .ready
            .iter()
            .map(|number| {
                format!("{{\"task\":{number},\"vruntime\":{}}}", vruntime(&self.tasks[number]))
            })
            .collect();
        format!("\"tasks\":[{}]", states.join(","))
    }
}

fn task(number: u64, policy: SchedPolicy) -> Arc<Task> {
    let thread = Arc::new(Thread {
        number,
        attr: SchedAttr::new(policy),
        affinity: Affinity(Mutex::new(CpuSet)),
    });
    Arc::new(Task { schedule_info: TaskScheduleInfo::default(), data: Box::new(thread) })
}

fn thread(task: &Task) -> &Thread {
    task.as_thread().expect("every task has a thread")
}

fn nice(weight: i64) -> Result<Nice, String> {
    let index = WEIGHTS
        .iter()
        .position(|&of| of == weight)
        .ok_or("Asterinas has only the weights of nice values")?;
    Ok(Nice::new(NiceValue::new(index as i8 - 20)))
}

/// The vruntime is private to `fair.rs`; its `Debug` shows it.
fn vruntime(task: &Task) -> u64 {
    let text = format!("{:?}", thread(task).attr);
    let digits = text.rsplit_once("vruntime: ").map_or("", |(_, rest)| rest);
    digits
        .split(|byte: char| !byte.is_ascii_digit())
        .next()
        .and_then(|digits| digits.parse().ok())
        .expect("FairAttr shows its vruntime")
}
