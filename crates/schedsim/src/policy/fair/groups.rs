//! Control groups under a fair scheduler: a group is scheduled like one task, and its tasks by the
//! same discipline within it.
//!
//! On each CPU a group has an *entity* for its runnable tasks there. By the group's weight
//! (`cpu.weight`), the entity competes with tasks outside of groups and with the entities of other
//! groups. When it is chosen, the chosen task of the group runs. On several CPUs the weight is
//! divided in proportion to the group's runnable tasks. A group that has used its quota (`cpu.max`)
//! does not run until its next period; an overrun is subtracted from the next quota.
//!
//! Source: Linux 6.18, `kernel/sched/fair.c`: `enqueue_task_fair`, `pick_task_fair`,
//! `update_cfs_group`, `calc_group_shares`, `account_cfs_rq_runtime`, `throttle_cfs_rq`,
//! `__refill_cfs_bandwidth_runtime`; `sched_weight_from_cgroup`.
//!
//! Deviations: groups are not nested. The quota is one pool, where the kernel distributes it to
//! CPUs in slices of 5 ms. A busy CPU unthrottles a group at its first tick in the new period, not
//! at its start. The distribution of the group's tasks is read when an entity is chosen, not at
//! each tick. Load balancing ignores groups. The entity leaves at once when the group's last task
//! sleeps, even if that task is in delayed dequeue (`DELAY_DEQUEUE` applies among tasks only).
//! There is no burst.

use super::{Discipline, Join, Leave};
use crate::policy::weights::weight;
use crate::policy::{Kept, Shares, TaskView, VirtualTimes};
use crate::workload::{Bandwidth, Cgroup, Membership};
use crate::{CpuId, TaskId, Time};

/// A discipline that can run among groups, and once more within each.
pub trait Nested: Discipline + Clone {
    /// Whether `cpu` has no task at all, including those in delayed dequeue.
    fn is_empty(&self, cpu: CpuId) -> bool;

    /// Sets the weight of `task`, which is on no queue.
    fn set_share(&mut self, task: TaskId, weight: u32);
}

/// A discipline over groups and tasks outside of groups, and one within each group.
#[derive(Clone, Debug)]
pub struct Grouped<D> {
    /// The first ids are the entities, one for each group on each CPU; the tasks follow.
    root: D,
    groups: Vec<Group<D>>,
    /// The number of entities.
    entities: u32,
    cpus: usize,
    now: Time,
    tasks: Vec<Member>,
    /// On each CPU.
    running: Vec<Running>,
    /// The earliest start of a new period of a throttled group.
    next_refill: Time,
}

#[derive(Clone, Debug)]
struct Group<D> {
    inner: D,
    weight: u32,
    quota: Option<Quota>,
    /// The weight of its runnable tasks on each CPU, and in total.
    loads: Vec<u64>,
    load: u64,
    /// Per CPU: whether, and how, the entity is on the queue.
    entities: Vec<Entity>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entity {
    Away,
    /// With this weight.
    Present(u32),
    Throttled,
}

/// The CPU time left in this period; negative after an overrun.
#[derive(Clone, Copy, Debug)]
struct Quota {
    bandwidth: Bandwidth,
    left: i64,
    end: Time,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    membership: Membership,
    weight: u32,
    /// Whether the load of its group includes it.
    is_counted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    /// `None` if it has left since.
    task: Option<TaskId>,
    /// Its current or last group, where it counts as running until another task starts.
    group: Option<usize>,
    exec_start: Time,
}

impl Running {
    const NOBODY: Running = Running { task: None, group: None, exec_start: Time::ZERO };
}

/// The minimum weight of an entity (`MIN_SHARES`).
const LEAST: u64 = 2;

impl<D: Nested> Grouped<D> {
    /// Wraps `discipline`, which is for `cpus` CPUs; no groups yet.
    pub fn new(discipline: D, cpus: u16) -> Grouped<D> {
        Grouped {
            root: discipline,
            groups: Vec::new(),
            entities: 0,
            cpus: usize::from(cpus),
            now: Time::ZERO,
            tasks: Vec::new(),
            running: vec![Running::NOBODY; usize::from(cpus)],
            next_refill: Time::NEVER,
        }
    }

    fn group_of(&self, task: TaskId) -> Option<usize> {
        if self.groups.is_empty() { None } else { self.tasks[task.index()].membership.group() }
    }

    /// The root's id for the entity of `group` on `cpu`.
    fn entity(&self, group: usize, cpu: CpuId) -> TaskId {
        TaskId((group * self.cpus + cpu.index()) as u32)
    }

    /// The root's id for a task outside of groups.
    #[inline]
    fn behind(&self, task: TaskId) -> TaskId {
        TaskId(task.0 + self.entities)
    }

    /// The root's choice: the entity of a group, or a task outside of groups.
    #[inline]
    fn chosen(&self, id: TaskId) -> Result<usize, TaskId> {
        if id.0 < self.entities {
            Ok(id.index() / self.cpus)
        } else {
            Err(TaskId(id.0 - self.entities))
        }
    }

    /// The current weight of the entity of `group` on `cpu`.
    fn share(&self, group: usize, cpu: CpuId) -> u32 {
        let Group { weight, loads, load, .. } = &self.groups[group];
        (u64::from(*weight) * loads[cpu.index()])
            .div_ceil((*load).max(1))
            .clamp(LEAST, u64::from(*weight).max(LEAST)) as u32
    }

    /// Enqueues the entity of `group` on `cpu`, if a task is runnable there and the group is not
    /// throttled.
    fn appear(&mut self, group: usize, cpu: CpuId, how: Join, now: Time) {
        let (entity, weight) = (self.entity(group, cpu), self.share(group, cpu));
        let of = &mut self.groups[group];
        if matches!(of.entities[cpu.index()], Entity::Present(_)) || of.inner.is_empty(cpu) {
            return;
        }
        if of.is_exhausted() {
            of.entities[cpu.index()] = Entity::Throttled;
            return;
        }
        of.entities[cpu.index()] = Entity::Present(weight);
        self.root.set_share(entity, weight);
        self.root.join(cpu, entity, how, now);
    }

    /// Dequeues the entity of `group` on `cpu`.
    fn vanish(&mut self, group: usize, cpu: CpuId, becomes: Entity, now: Time) {
        let entity = self.entity(group, cpu);
        let before = std::mem::replace(&mut self.groups[group].entities[cpu.index()], becomes);
        if matches!(before, Entity::Present(_)) {
            let how = if becomes == Entity::Throttled { Leave::Moves } else { Leave::Exits };
            self.root.leave(cpu, entity, how, now);
        }
    }

    /// Updates the weight of the entity of `cpu`, which is about to run, by its part of the group's
    /// tasks.
    fn reweigh(&mut self, group: usize, cpu: CpuId, now: Time) {
        let weight = self.share(group, cpu);
        let Entity::Present(before) = self.groups[group].entities[cpu.index()] else { return };
        if weight.abs_diff(before) * 8 <= before {
            return;
        }
        let entity = self.entity(group, cpu);
        self.root.leave(cpu, entity, Leave::Moves, now);
        self.root.set_share(entity, weight);
        self.root.join(cpu, entity, Join::Moves, now);
        self.groups[group].entities[cpu.index()] = Entity::Present(weight);
    }

    /// Refills the quotas of groups with a new period.
    fn refill(&mut self, now: Time) {
        self.next_refill = Time::NEVER;
        for group in 0..self.groups.len() {
            let Some(quota) = &mut self.groups[group].quota else { continue };
            quota.begin_periods(now);
            if quota.left <= 0 {
                self.next_refill = self.next_refill.min(quota.end);
                continue;
            }
            for cpu in (0..self.cpus as u16).map(CpuId) {
                if self.groups[group].entities[cpu.index()] == Entity::Throttled {
                    self.groups[group].entities[cpu.index()] = Entity::Away;
                    self.root.charge(cpu, now);
                    self.appear(group, cpu, Join::Moves, now);
                }
            }
        }
    }
}

impl<D> Group<D> {
    fn is_exhausted(&self) -> bool {
        self.quota.is_some_and(|quota| quota.left <= 0)
    }
}

impl Quota {
    /// Advances to the period of `now`.
    fn begin_periods(&mut self, now: Time) {
        let Bandwidth { quota, period } = self.bandwidth;
        if now >= self.end {
            let periods = now.since(self.end).0 / period.0 + 1;
            let more = i64::try_from(quota.0.saturating_mul(periods)).unwrap_or(i64::MAX);
            self.left =
                self.left.saturating_add(more).min(i64::try_from(quota.0).unwrap_or(i64::MAX));
            self.end = Time(self.end.0.saturating_add(period.0.saturating_mul(periods)));
        }
    }
}

impl<D: Nested> Discipline for Grouped<D> {
    fn set_groups(&mut self, cgroups: &[Cgroup]) {
        let group = |cgroup: &Cgroup| Group {
            inner: self.root.clone(),
            weight: (cgroup.weight * 1024 + Cgroup::WEIGHT / 2) / Cgroup::WEIGHT,
            quota: cgroup.max.map(|bandwidth| Quota {
                bandwidth,
                left: bandwidth.quota.0 as i64,
                end: Time(bandwidth.period.0),
            }),
            loads: vec![0; self.cpus],
            load: 0,
            entities: vec![Entity::Away; self.cpus],
        };
        self.groups = cgroups.iter().map(group).collect();
        let view = TaskView::of(120);
        self.entities = (self.groups.len() * self.cpus) as u32;
        (0..self.entities).for_each(|entity| self.root.init_task(TaskId(entity), &view));
    }

    fn init_task(&mut self, task: TaskId, view: &TaskView) {
        let member = Member {
            membership: view.attributes.membership,
            weight: weight(view.prio, view.attributes.class),
            is_counted: false,
        };
        self.tasks.resize(self.tasks.len().max(task.index() + 1), member);
        self.tasks[task.index()] = member;
        match member.membership.group() {
            Some(group) => self.groups[group].inner.init_task(task, view),
            None => self.root.init_task(self.behind(task), view),
        }
    }

    fn charge(&mut self, cpu: CpuId, now: Time) -> bool {
        let is_over = self.root.charge(cpu, now);
        let Running { task: Some(_), group: Some(group), exec_start } = self.running[cpu.index()]
        else {
            return is_over;
        };
        self.running[cpu.index()].exec_start = now;
        let of = &mut self.groups[group];
        let is_over = of.inner.charge(cpu, now) || is_over;
        if let Some(quota) = &mut of.quota {
            quota.left -= now.since(exec_start).0 as i64;
            quota.begin_periods(now);
            if quota.left <= 0 {
                self.next_refill = self.next_refill.min(quota.end);
                return true;
            }
        }
        is_over
    }

    fn refresh(&mut self, now: Time) {
        self.now = now;
        if now >= self.next_refill {
            self.refill(now);
        }
    }

    fn wakes_at(&self, cpu: CpuId) -> Option<Time> {
        let waits = |of: &&Group<D>| of.entities[cpu.index()] == Entity::Throttled;
        self.groups.iter().filter(waits).filter_map(|of| of.quota).map(|quota| quota.end).min()
    }

    fn expires(&mut self, cpu: CpuId) -> bool {
        let Some(group) = self.running[cpu.index()].group else { return self.root.expires(cpu) };
        self.groups[group].inner.expires(cpu) || self.root.expires(cpu)
    }

    fn join(&mut self, cpu: CpuId, task: TaskId, how: Join, now: Time) {
        let Member { membership, weight, .. } = self.tasks[task.index()];
        let Some(group) = membership.group() else {
            return self.root.join(cpu, self.behind(task), how, now);
        };
        self.tasks[task.index()].is_counted = true;
        let of = &mut self.groups[group];
        of.inner.join(cpu, task, how, now);
        of.loads[cpu.index()] += u64::from(weight);
        of.load += u64::from(weight);
        self.appear(group, cpu, Join::Wakes, now);
    }

    fn leave(&mut self, cpu: CpuId, task: TaskId, how: Leave, now: Time) {
        if self.running[cpu.index()].task == Some(task) {
            self.running[cpu.index()].task = None;
        }
        let Member { membership, weight, .. } = self.tasks[task.index()];
        let Some(group) = membership.group() else {
            return self.root.leave(cpu, self.behind(task), how, now);
        };
        self.tasks[task.index()].is_counted = false;
        let of = &mut self.groups[group];
        of.inner.leave(cpu, task, how, now);
        of.loads[cpu.index()] -= u64::from(weight);
        of.load -= u64::from(weight);
        if of.inner.is_empty(cpu) {
            self.vanish(group, cpu, Entity::Away, now);
        }
    }

    fn virtual_times(&self, cpu: CpuId, task: TaskId, now: Time) -> Option<VirtualTimes> {
        match self.tasks.get(task.index())?.membership.group() {
            Some(group) => self.groups[group].inner.virtual_times(cpu, task, now),
            None => self.root.virtual_times(cpu, self.behind(task), now),
        }
    }

    fn keep(&mut self, cpu: CpuId, task: TaskId, kept: Kept) {
        match self.tasks[task.index()].membership.group() {
            Some(group) => self.groups[group].inner.keep(cpu, task, kept),
            None => self.root.keep(cpu, self.behind(task), kept),
        }
    }

    fn in_delayed_dequeue(&self, task: TaskId) -> bool {
        match self.group_of(task) {
            Some(group) => self.groups[group].inner.in_delayed_dequeue(task),
            None => self.root.in_delayed_dequeue(self.behind(task)),
        }
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        loop {
            let first = self.root.pick(cpu)?;
            let group = match self.chosen(first) {
                Ok(group) => group,
                Err(task) => return Some(task),
            };
            if self.groups[group].is_exhausted() {
                self.vanish(group, cpu, Entity::Throttled, self.now);
                if self.running[cpu.index()].group == Some(group) {
                    self.put_back(cpu); // `cpu` may idle now, which is not charged
                }
                continue;
            }
            match self.groups[group].inner.pick(cpu) {
                Some(task) => return Some(task),
                None => self.vanish(group, cpu, Entity::Away, self.now), /* those who were left
                                                                          * lingered, and have
                                                                          * paid */
            }
        }
    }

    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        let group = self.group_of(task);
        let before = std::mem::replace(
            &mut self.running[cpu.index()],
            Running { task: Some(task), group, exec_start: now },
        )
        .group;
        if let Some(before) = before.filter(|_| before != group) {
            self.groups[before].inner.put_back(cpu);
        }
        match group {
            Some(group) => {
                self.reweigh(group, cpu, now);
                self.root.start(cpu, self.entity(group, cpu), now);
                self.groups[group].inner.start(cpu, task, now);
            }
            None => self.root.start(cpu, self.behind(task), now),
        }
    }

    fn put_back(&mut self, cpu: CpuId) {
        self.root.put_back(cpu);
        if let Some(group) =
            std::mem::replace(&mut self.running[cpu.index()], Running::NOBODY).group
        {
            self.groups[group].inner.put_back(cpu);
        }
    }

    fn yield_task(&mut self, cpu: CpuId) {
        match self.running[cpu.index()].group {
            Some(group) => self.groups[group].inner.yield_task(cpu),
            None => self.root.yield_task(cpu),
        }
    }

    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool {
        match self.group_of(task) {
            _ if self.is_held(task) => false,
            Some(group) if self.running[cpu.index()].group == Some(group) => {
                self.groups[group].inner.preempts(cpu, task)
            }
            Some(group) => self.root.preempts(cpu, self.entity(group, cpu)),
            None => self.root.preempts(cpu, self.behind(task)),
        }
    }

    fn set_weight(&mut self, cpu: CpuId, task: TaskId, view: &TaskView) {
        let member = &mut self.tasks[task.index()];
        let before =
            std::mem::replace(&mut member.weight, weight(view.prio, view.attributes.class));
        let Member { membership, weight, is_counted } = *member;
        let Some(group) = membership.group() else {
            return self.root.set_weight(cpu, self.behind(task), view);
        };
        let of = &mut self.groups[group];
        if is_counted {
            let change = |load: &mut u64| *load = *load - u64::from(before) + u64::from(weight);
            change(&mut of.loads[cpu.index()]);
            change(&mut of.load);
        }
        of.inner.set_weight(cpu, task, view);
    }

    fn shares(&self) -> Option<Shares> {
        self.root.shares()
    }

    fn is_held(&self, task: TaskId) -> bool {
        self.group_of(task).is_some_and(|group| self.groups[group].is_exhausted())
    }

    fn may_move(&self, cpu: CpuId, task: TaskId) -> bool {
        match self.group_of(task) {
            Some(group) => self.groups[group].inner.may_move(cpu, task),
            None => self.root.may_move(cpu, self.behind(task)),
        }
    }
}
