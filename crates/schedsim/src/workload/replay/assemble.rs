//! Writes the scripts from the logs of the tasks, one task at a time.

use super::calls;
use super::carriers::Doubted;
use super::event_loops::{self, Takers};
use super::groups::Groups;
use super::latches::Placed;
use super::log::{Deed, Did};
use super::monitors::Monitors;
use super::outside;
use super::report::EdgeCounts;
use super::task::{Ending, Task};
use super::verdict::{Sure, Verdict, Verdicts};
use super::within::Within;
use super::{
    BackgroundOf, KernelWork, Recorded, ReplayOptions, ReplayReport, TaskMatch, kernel_threads,
};
use crate::trace::TaskInfo;
use crate::workload::{
    Action, Affinity, Attributes, NoiseClass, Operation, Script, Shared, Start, TaskSpec, Workload,
};
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};

/// The objects of a program.
pub(super) struct Program {
    pub shared: Shared,
    /// Objects that explain nothing.
    pub doubted: Doubted,
    pub monitors: Monitors,
    pub placed: Placed,
    pub kernel_work: KernelWork,
}

/// A background load ends at the latest after this many times the length of the recording.
const MOST_TIMES: u64 = 64;

/// Writes the scripts.
pub(super) fn assemble(
    mut tasks: Vec<Task>,
    program: Program,
    options: &ReplayOptions,
    recorded: Recorded,
    mut report: ReplayReport,
) -> (Workload, ReplayReport) {
    let endings: Vec<Ending> = tasks.iter_mut().map(Task::close).collect();
    let verdicts = Verdicts::new(
        &tasks,
        recorded.tasks,
        Nanos(recorded.end.0.saturating_mul(u64::from(recorded.cpus))),
    );
    let outside = match options.background {
        BackgroundOf::Recorded => Vec::new(),
        _ => outside::classes(&tasks, recorded.tasks, &verdicts),
    };
    let outside = |task: TaskId| outside.get(task.index()).copied().flatten();
    let cpu_sets = options.affinities.iter().map(|(_, set)| set.clone()).collect();
    let Program { mut shared, doubted, monitors, placed, kernel_work } = program;
    let given_up = (&doubted, &monitors);
    let forked: Vec<bool> = tasks.iter().map(|task| task.start == Start::Forked).collect();
    let is_program = report.operations > 0;
    let takers = Takers::of(&tasks, &shared, &placed);
    let joined = (0..).map(TaskId).zip(&tasks).flat_map(|(by, task)| {
        let operations = calls::operations(by, &task.log, given_up).into_iter();
        operations.filter_map(move |(_, did)| match did {
            Did::Joined(task) => Some((by, task)),
            _ => None,
        })
    });
    let joined = joined.filter(|(by, task)| placed.join(*by, *task).is_none());
    let groups =
        Groups::arrange(&mut shared.groups, &forked, &joined.map(|(_, task)| task).collect());
    let mut workload = Workload {
        tasks: Vec::with_capacity(tasks.len()),
        cpu_sets,
        shared,
        ..Workload::default()
    };
    for ((index, task), ending) in tasks.into_iter().enumerate().zip(endings) {
        let nameless = || TaskInfo { name: String::new(), pid: 0, tgid: 0, prio: 120 };
        let info = recorded.tasks.get(index).cloned().unwrap_or_else(nameless);
        let (held, has_changed) = task.usual_settings();
        let affinity = given_affinity(&info, options)
            .or_else(|| held.affinity(recorded.cpus, &mut workload.cpu_sets))
            .unwrap_or_else(|| affinity(&info, recorded.cpus));
        let is_recorder =
            task.start != Start::Forked && recorded.recorders.contains(&info.name.as_str());
        if let Some(class) = outside(TaskId(index as u32)) {
            let (id, costs) = (TaskId(index as u32), (recorded.switch_cost, kernel_work));
            let noise = outside::noise(id, class, &task, costs, recorded.end);
            if is_recorder {
                report.outside.recorder.push(id);
            } else {
                report.outside.add(id, class, &task);
            }
            let is_drawn = options.background == BackgroundOf::Fitted && !is_recorder;
            let noise = noise.filter(|_| is_drawn);
            workload.tasks.push(TaskSpec {
                attributes: Attributes::default(),
                cpu: task.first_cpu.unwrap_or(CpuId(0)),
                // No task forks it.
                start: if noise.is_some() { Start::At(Time::ZERO) } else { Start::Forked },
                affinity,
                info,
                script: Script::new(),
            });
            workload.background.noise.extend(noise);
            continue;
        }
        if is_recorder {
            report.outside.recorder.push(TaskId(index as u32));
            report.outside.recorder_time += task.log.entries().map(|(run, _)| run).sum::<Nanos>();
        }
        report.changed_settings += u64::from(has_changed);
        report.pinned += u64::from(matches!(affinity, Affinity::Pinned(_)));
        report.restricted += u64::from(matches!(affinity, Affinity::Set(_)));
        report.unfinished += u64::from(ending == Ending::Unfinished);
        if ending == Ending::Exited {
            report.ended.push(TaskId(index as u32));
        }
        let mut writer = Writer {
            script: Script::new(),
            id: TaskId(index as u32),
            run: Nanos::ZERO,
            has_run: false,
            switch_cost: recorded.switch_cost,
            owed: recorded.switch_cost,
            kernel_work,
            owed_to_kernel: Nanos::ZERO,
            verdicts: &verdicts,
            groups: &groups,
            placed: &placed,
            outside: &outside,
            timed: task.calls.timed,
            traced: task.calls.traced,
            report: &mut report,
        };
        let id = TaskId(index as u32);
        let mut operations = calls::operations(id, &task.log, given_up);
        placed.add(id, &mut operations);
        let mut operations = operations.into_iter().peekable();
        let (mut places, mut is_counted) = (task.log.places().peekable(), false);
        while let Some((place, run, deed)) = places.next() {
            if !std::mem::take(&mut is_counted) {
                writer.run(run, deed);
            }
            // The creator waits in the call that creates (`vfork`), and the kernel does not stop it
            // there for the new task: what it still does is done before.
            if let (Deed::Forked(_), Some((next, run, deed))) = (deed, places.peek())
                && operations
                    .peek()
                    .is_some_and(|(at, did)| at == next && matches!(did, Did::Passed(_)))
            {
                writer.run(*run, *deed);
                is_counted = true;
            }
            while let Some((_, did)) = operations.next_if(|(at, _)| *at <= place) {
                writer.does(did);
            }
            writer.add(deed);
        }
        operations.for_each(|(_, did)| writer.does(did));
        let mut script = writer.finish(ending);
        if takers.waits(id) {
            script = takers.find_loops(id, &script, &mut workload.shared, &mut report);
        }
        workload.tasks.push(TaskSpec {
            attributes: Attributes { class: held.class(info.prio), ..Attributes::default() },
            cpu: task.created_on.filter(|_| is_program).or(task.first_cpu).unwrap_or(CpuId(0)),
            start: match task.start {
                // Its creator is not of the program, and so creates nothing.
                Start::Forked if outside(task.parent).is_some() => Start::At(task.born),
                start => start,
            },
            info,
            affinity,
            script,
        });
    }
    event_loops::complete(&mut workload);
    // What the program waits for may never come, and then nothing of it ends.
    workload.background.awaited = report.ended.clone();
    let times = if report.ended.is_empty() { 1 } else { MOST_TIMES };
    workload.background.until = Time(recorded.end.0.saturating_mul(times));
    report.bursts = workload.bursts();
    report.demand = workload.demand();
    report.script_bytes = workload.script_bytes();
    (workload, report)
}

/// The affinity of a task that an option gives.
fn given_affinity(task: &TaskInfo, options: &ReplayOptions) -> Option<Affinity> {
    let fits = |(which, _): &(TaskMatch, CpuSet)| which.fits(task);
    options.affinities.iter().position(fits).map(|index| Affinity::Set(index as u32))
}

/// The affinity of a task of which none was recorded: one CPU for per-CPU kernel threads, or all.
fn affinity(task: &TaskInfo, cpus: u16) -> Affinity {
    kernel_threads::bound_cpu(task)
        .filter(|cpu| cpu.0 < cpus)
        .map_or(Affinity::Any, Affinity::Pinned)
}

/// Writes a script from the entries of a log.
struct Writer<'a> {
    script: Script,
    id: TaskId,
    /// The run time since the last step.
    run: Nanos,
    /// Whether it ran at all, though switches may have taken all of that.
    has_run: bool,
    switch_cost: Nanos,
    /// The time of switches to subtract from later runs. A run that is shorter than a switch
    /// cannot have contained a complete one.
    owed: Nanos,
    kernel_work: KernelWork,
    /// The kernel's work in calls to subtract from this run and later ones. It is a mean: what a run
    /// has less of it, another one has more.
    owed_to_kernel: Nanos,
    verdicts: &'a Verdicts,
    groups: &'a Groups,
    placed: &'a Placed,
    outside: &'a dyn Fn(TaskId) -> Option<NoiseClass>,
    /// Sleeps that are known to last for a time.
    timed: u64,
    /// Whether its calls were recorded.
    traced: bool,
    report: &'a mut ReplayReport,
}

impl Writer<'_> {
    fn run(&mut self, run: Nanos, deed: Deed) {
        if let Deed::Ran { switches } = deed {
            self.owed += Nanos(self.switch_cost.0.saturating_mul(u64::from(switches)));
        }
        self.has_run |= run > Nanos::ZERO || matches!(deed, Deed::Ran { .. });
        let paid = run.min(self.owed);
        self.owed -= paid;
        self.report.switch_time += paid;
        let run = run - paid;
        self.owed_to_kernel += match deed {
            Deed::Slept { .. } | Deed::Explained { slept: true } => self.kernel_work.block,
            Deed::Woke { .. } | Deed::Explained { slept: false } => self.kernel_work.wake,
            Deed::Ran { switches } => {
                Nanos(self.kernel_work.preempt.0.saturating_mul(u64::from(switches)))
            }
            Deed::Forked(_) | Deed::Called { .. } => Nanos::ZERO,
        };
        let paid = run.min(self.owed_to_kernel);
        self.owed_to_kernel -= paid;
        self.report.kernel_time += paid;
        self.run += run - paid;
    }

    fn does(&mut self, did: Did) {
        match did {
            Did::Yield => self.step(Action::Yield),
            Did::Joined(task) => match self.placed.join(self.id, task) {
                Some(operation) => self.step(Action::Do(operation)),
                None => {
                    for group in self.groups.end_of(task) {
                        self.step(Action::Do(Operation::Join(group)));
                    }
                }
            },
            Did::Operation(Operation::Join(range)) => {
                for group in self.groups.of(range) {
                    self.step(Action::Do(Operation::Join(group)));
                }
            }
            Did::Operation(operation) => self.step(Action::Do(operation)),
            Did::Passed(_) | Did::Took(_) | Did::Paged(_) => {
                if let Some(operation) = self.placed.wait(did) {
                    self.step(Action::Do(operation));
                }
            }
        }
    }

    fn add(&mut self, deed: Deed) {
        match deed {
            Deed::Ran { .. } | Deed::Called { .. } | Deed::Explained { slept: false } => {}
            Deed::Explained { slept: true } => {
                self.report.wakeups.objects += 1;
                self.owed = self.switch_cost;
            }
            Deed::Woke { task, kind } => {
                let is_drawn = (self.outside)(task).is_some();
                if !is_drawn && self.verdicts.of(self.id, task, kind).dependency {
                    self.step(Action::Wake(task));
                }
            }
            Deed::Forked(task) if (self.outside)(task).is_some() => {}
            Deed::Forked(task) => self.step(Action::Fork(task)),
            Deed::Slept { waker, kind, pause, within } => {
                let verdict = if waker == TaskId::NONE {
                    Verdict::INTERRUPT
                } else {
                    self.verdicts.of(waker, self.id, kind)
                };
                if verdict.dependency {
                    count(&mut self.report.dependencies, verdict.sure);
                    self.report.wakeups.tokens += u64::from(self.traced);
                    self.report.wakeups.futex_tokens +=
                        u64::from(self.traced && within == Within::Futex);
                    if self.traced {
                        *self.report.tokens_within.entry(within).or_default() += 1;
                    }
                    self.step(Action::Wait);
                } else {
                    count(&mut self.report.delays, verdict.sure);
                    let is_timed = self.timed > 0;
                    self.timed = self.timed.saturating_sub(1);
                    self.report.wakeups.objects += u64::from(self.traced && is_timed);
                    self.report.wakeups.pauses += u64::from(self.traced && !is_timed);
                    self.step(Action::Sleep(pause));
                }
                self.owed = self.switch_cost;
            }
        }
    }

    fn step(&mut self, then: Action) {
        // A script that starts with a pause stands for a task that starts asleep.
        if self.has_run && self.script.is_empty() && self.run == Nanos::ZERO && then.ends_burst() {
            self.script.push(Nanos::ZERO, Action::Continue);
        }
        self.script.push(std::mem::take(&mut self.run), then);
    }

    fn finish(mut self, ending: Ending) -> Script {
        self.step(match ending {
            Ending::Asleep => Action::Wait,
            Ending::Exited | Ending::Unfinished => Action::Exit,
        });
        self.script.shrink();
        self.script
    }
}

fn count(counts: &mut EdgeCounts, sure: Sure) {
    *match sure {
        Sure::Recorded => &mut counts.recorded,
        Sure::Inferred => &mut counts.inferred,
        Sure::Doubtful => &mut counts.doubtful,
    } += 1;
}
