//! Settings that a Linux user can change for running tasks: scheduling policy, nice value, slice,
//! CPUs, and the weight of a control group.
//!
//! [`Workload::set`] and [`Closed::set`] change simulated and real tasks in the same way as the
//! kernel; a test compares the two.
//!
//! Source: sched(7), sched_setattr(2), cpuset(7). Linux 6.18, `__setscheduler_params` (a task of
//! another policy keeps its nice value), `set_user_nice` (a nice value changes nothing of a
//! real-time task).

use super::{
    Affinity, Attributes, Cgroup, Closed, Membership, SchedulingPolicy, Slice, TaskClass, Workload,
};
use crate::{CpuId, Nanos, TaskId};

/// A setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// `SCHED_OTHER`, the fair policy.
    Other,
    /// `SCHED_BATCH`: a fair task that preempts no task when it wakes.
    Batch,
    /// `SCHED_IDLE`: a fair task of almost no weight, which every other task preempts.
    Idle,
    /// `SCHED_FIFO` with a priority from 1 to 99, the most important.
    Fifo(u8),
    /// `SCHED_RR` with such a priority.
    RoundRobin(u8),
    /// A nice value from −20 to 19.
    Nice(i8),
    /// The slice that a fair task requests.
    Slice(Nanos),
    /// The allowed CPUs.
    Cpus(Vec<CpuId>),
    /// `cpu.weight`, 1…10000, of a control group that has these tasks and no others.
    Weight(u32),
}

/// The kernel's priority of a fair task with nice value 0.
const FAIR: u8 = 120;
/// The first kernel priority that is not real-time.
const REAL_TIME_BELOW: u8 = 100;

impl Setting {
    /// The scheduling policy of the setting, if any, and the POSIX priority of a real-time one.
    pub fn class(&self) -> Option<(TaskClass, Option<u8>)> {
        match *self {
            Setting::Other => Some((TaskClass::ByPriority, None)),
            Setting::Batch => Some((TaskClass::Batch, None)),
            Setting::Idle => Some((TaskClass::Idle, None)),
            Setting::Fifo(priority) => Some((TaskClass::Fifo, Some(priority))),
            Setting::RoundRobin(priority) => Some((TaskClass::RoundRobin, Some(priority))),
            Setting::Nice(_) | Setting::Slice(_) | Setting::Cpus(_) | Setting::Weight(_) => None,
        }
    }
}

impl Workload {
    /// Applies `setting` to `tasks`. A new control group is called `name`.
    pub fn set(&mut self, tasks: &[TaskId], setting: &Setting, name: &str) {
        match setting {
            Setting::Cpus(cpus) => {
                let affinity = self.affinity(cpus);
                self.each(tasks, |task| {
                    task.affinity = affinity;
                    if !cpus.contains(&task.cpu) {
                        task.cpu = cpus.iter().copied().min().unwrap_or(task.cpu);
                    }
                });
            }
            Setting::Weight(weight) => {
                let group = self.group(tasks, name);
                self.cgroups[group].weight = *weight;
                self.each(tasks, |task| task.attributes.membership = Membership::of(group));
            }
            Setting::Nice(nice) => self.each(tasks, |task| {
                if task.info.prio >= REAL_TIME_BELOW {
                    task.info.prio = FAIR.saturating_add_signed(*nice);
                }
            }),
            Setting::Slice(length) => {
                self.each(tasks, |task| task.attributes.slice = Slice::new(*length))
            }
            Setting::Other
            | Setting::Batch
            | Setting::Idle
            | Setting::Fifo(_)
            | Setting::RoundRobin(_) => {
                if let Some((class, priority)) = setting.class() {
                    self.each(tasks, |task| {
                        task.attributes = Attributes { class, ..task.attributes };
                        task.info.prio = match priority {
                            Some(priority) => 99 - priority.min(99),
                            None if task.info.prio < REAL_TIME_BELOW => FAIR,
                            None => task.info.prio,
                        };
                    });
                }
            }
        }
    }

    fn each(&mut self, tasks: &[TaskId], mut change: impl FnMut(&mut super::TaskSpec)) {
        tasks.iter().for_each(|task| change(&mut self.tasks[task.index()]));
    }

    fn affinity(&mut self, cpus: &[CpuId]) -> Affinity {
        if let [only] = cpus {
            return Affinity::Pinned(*only);
        }
        let set = cpus.iter().copied().collect();
        let known = self.cpu_sets.iter().position(|known| *known == set);
        let index = known.unwrap_or_else(|| {
            self.cpu_sets.push(set);
            self.cpu_sets.len() - 1
        });
        Affinity::Set(index as u32)
    }

    /// The control group that has these tasks and no others, or a new one.
    fn group(&mut self, tasks: &[TaskId], name: &str) -> usize {
        let of = |task: TaskId| self.tasks[task.index()].attributes.membership.group();
        let own = tasks
            .first()
            .and_then(|first| of(*first))
            .filter(|group| self.ids().all(|id| tasks.contains(&id) == (of(id) == Some(*group))));
        own.unwrap_or_else(|| {
            self.cgroups.push(Cgroup { name: name.to_string(), weight: Cgroup::WEIGHT, max: None });
            self.cgroups.len() - 1
        })
    }
}

impl Setting {
    /// Applies it to the `[[task]]`s of these numbers, as [`Workload::set`] does to the tasks of
    /// these entries.
    pub fn set(&self, closed: &mut Closed, entries: &[usize], name: &str) {
        match self {
            Setting::Weight(weight) => {
                let of = |index: usize| closed.tasks[index].cgroup.as_deref();
                let is_own = |group: &&str| {
                    (0..closed.tasks.len())
                        .all(|index| entries.contains(&index) == (of(index) == Some(*group)))
                };
                let group = entries
                    .first()
                    .and_then(|first| of(*first))
                    .filter(is_own)
                    .unwrap_or(name)
                    .to_string();
                closed.cgroups.entry(group.clone()).or_default().weight = *weight;
                entries.iter().for_each(|&index| closed.tasks[index].cgroup = Some(group.clone()));
            }
            Setting::Cpus(cpus) => entries.iter().for_each(|&index| {
                closed.tasks[index].affinity = Some(cpus.iter().map(|cpu| cpu.0).collect())
            }),
            Setting::Slice(length) => {
                entries.iter().for_each(|&index| closed.tasks[index].slice = Some(*length))
            }
            Setting::Nice(nice) => {
                for &index in entries {
                    let tasks = &mut closed.tasks[index];
                    if !matches!(tasks.policy, SchedulingPolicy::Fifo | SchedulingPolicy::Rr) {
                        tasks.nice = Some((*nice).into());
                    }
                }
            }
            Setting::Other => become_class(closed, entries, SchedulingPolicy::Other, None),
            Setting::Batch => become_class(closed, entries, SchedulingPolicy::Batch, None),
            Setting::Idle => become_class(closed, entries, SchedulingPolicy::Idle, None),
            Setting::Fifo(priority) => {
                become_class(closed, entries, SchedulingPolicy::Fifo, Some(*priority))
            }
            Setting::RoundRobin(priority) => {
                become_class(closed, entries, SchedulingPolicy::Rr, Some(*priority))
            }
        }
    }
}

fn become_class(
    closed: &mut Closed,
    entries: &[usize],
    policy: SchedulingPolicy,
    priority: Option<u8>,
) {
    for &index in entries {
        let tasks = &mut closed.tasks[index];
        tasks.policy = policy;
        tasks.priority = priority.map(i32::from);
        // A workload file sets no nice value for real-time tasks.
        tasks.nice = tasks.nice.filter(|_| priority.is_none());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{CgroupOptions, Phase, Tasks};

    fn closed() -> Closed {
        let hog = |name: &str| Tasks {
            count: 2,
            ..Tasks::new(name, vec![Phase::Run(Nanos::from_millis(5))])
        };
        let real_time = Tasks { policy: SchedulingPolicy::Fifo, priority: Some(10), ..hog("rt") };
        let nice = Tasks { nice: Some(7), ..hog("nice") };
        let grouped = Tasks { cgroup: Some("web".to_string()), ..hog("grouped") };
        let cgroups = [("web".to_string(), CgroupOptions::default())].into();
        Closed { tasks: vec![hog("plain"), real_time, nice, grouped], cgroups, ..Closed::default() }
    }

    fn all() -> Vec<Setting> {
        let cpus = |cpus: &[u16]| Setting::Cpus(cpus.iter().copied().map(CpuId).collect());
        vec![
            Setting::Other,
            Setting::Batch,
            Setting::Idle,
            Setting::Fifo(50),
            Setting::RoundRobin(1),
            Setting::Nice(-20),
            Setting::Nice(19),
            Setting::Slice(Nanos::from_millis(1)),
            cpus(&[1]),
            cpus(&[1, 2]),
            Setting::Weight(300),
        ]
    }

    /// The scheduling attributes of a task.
    type Shape = (u8, TaskClass, Slice, Vec<CpuId>, Option<(String, u32)>, CpuId);

    fn shape(workload: &Workload) -> Vec<Shape> {
        let cpus = |affinity| match affinity {
            Affinity::Any => Vec::new(),
            Affinity::Pinned(cpu) => vec![cpu],
            Affinity::Set(set) => workload.cpu_sets[set as usize].iter().collect(),
        };
        let group = |membership: Membership| {
            let group = &workload.cgroups[membership.group()?];
            Some((group.name.clone(), group.weight))
        };
        let one = |task: &crate::workload::TaskSpec| {
            let Attributes { class, slice, membership } = task.attributes;
            (task.info.prio, class, slice, cpus(task.affinity), group(membership), task.cpu)
        };
        workload.tasks.iter().map(one).collect()
    }

    #[test]
    fn a_setting_does_the_same_to_simulated_and_to_real_tasks() {
        let original = Workload::of(&closed(), 4).unwrap();
        for setting in all() {
            let mut changes = 0;
            for entry in 0..closed().tasks.len() {
                let mut described = closed();
                setting.set(&mut described, &[entry], "own");
                let mut simulated = original.clone();
                simulated.set(
                    &[TaskId(2 * entry as u32), TaskId(2 * entry as u32 + 1)],
                    &setting,
                    "own",
                );
                let (one, other) =
                    (shape(&Workload::of(&described, 4).unwrap()), shape(&simulated));
                let fair_again = matches!(setting, Setting::Fifo(_) | Setting::RoundRobin(_));
                assert_eq!(one, other, "{setting:?} of entry {entry}");
                assert!(!fair_again || one[2 * entry].0 < 100);
                changes += usize::from(other != shape(&original));
                let others = |of: &[_]| {
                    of.iter()
                        .enumerate()
                        .filter(|(at, _)| at / 2 != entry)
                        .map(|(_, task)| format!("{task:?}"))
                        .collect::<Vec<_>>()
                };
                assert_eq!(
                    others(&other),
                    others(&shape(&original)),
                    "{setting:?} of entry {entry} changes others"
                );
            }
            assert!(changes >= 1, "{setting:?} changes nothing");
        }
    }

    #[test]
    fn a_real_time_task_has_no_use_for_a_nice_value_and_keeps_none_when_it_becomes_fair() {
        let mut workload = Workload::of(&closed(), 4).unwrap();
        workload.set(&[TaskId(2)], &Setting::Nice(5), "own");
        assert_eq!(workload.tasks[2].info.prio, 89);
        workload.set(&[TaskId(2)], &Setting::Batch, "own");
        assert_eq!(
            (workload.tasks[2].info.prio, workload.tasks[2].attributes.class),
            (120, TaskClass::Batch)
        );
        workload.set(&[TaskId(4)], &Setting::Batch, "own");
        assert_eq!(
            workload.tasks[4].info.prio, 127,
            "a fair task of another policy keeps its nice value"
        );
    }

    #[test]
    fn a_group_that_has_other_tasks_too_is_left_alone() {
        let mut workload = Workload::of(&closed(), 4).unwrap();
        workload.set(&[TaskId(6)], &Setting::Weight(500), "own");
        assert_eq!(
            workload
                .cgroups
                .iter()
                .map(|group| (&group.name[..], group.weight))
                .collect::<Vec<_>>(),
            [("web", 100), ("own", 500)]
        );
        let mut workload = Workload::of(&closed(), 4).unwrap();
        workload.set(&[TaskId(6), TaskId(7)], &Setting::Weight(500), "own");
        assert_eq!(
            workload
                .cgroups
                .iter()
                .map(|group| (&group.name[..], group.weight))
                .collect::<Vec<_>>(),
            [("web", 500)]
        );
    }
}
