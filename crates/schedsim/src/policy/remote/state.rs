//! What a policy sees, as words: the machine once, of the rest what has changed.

use super::super::{Context, Needs, Promises, TaskView};
use super::calls::{affinity, affinity_words};
use super::words::{Reader, put_text};
use crate::seat::Away;
use crate::workload::{Attributes, Bandwidth, Cgroup, Membership, Reservation, Slice, TaskClass};
use crate::{CpuId, CpuSet, Machine, MigrationCosts, Nanos, Place, TaskId, Time, Topology};

/// The kinds of changes.
const NOW: u64 = 1;
const IDLE: u64 = 2;
const CURRENT: u64 = 3;
const TASK: u64 = 4;
const AWAY: u64 = 5;
const CPU_SET: u64 = 6;
const RESERVATIONS: u64 = 7;
const CGROUPS: u64 = 8;

const CLASSES: [TaskClass; 5] = [
    TaskClass::ByPriority,
    TaskClass::Fifo,
    TaskClass::RoundRobin,
    TaskClass::Batch,
    TaskClass::Idle,
];

/// What the other end knows.
#[derive(Debug)]
pub(super) struct Seen {
    now: Time,
    idle: CpuSet,
    current: Vec<TaskId>,
    tasks: Vec<TaskView>,
    away: Vec<(CpuId, Away)>,
    cpu_sets: usize,
    reservations: usize,
    cgroups: usize,
}

impl Seen {
    /// At the beginning, as [`Context::new`] makes it.
    pub fn new(machine: &Machine) -> Seen {
        Seen {
            now: Time::ZERO,
            idle: machine.all().collect(),
            current: vec![TaskId::NONE; usize::from(machine.cpus)],
            tasks: Vec::new(),
            away: Vec::new(),
            cpu_sets: 0,
            reservations: 0,
            cgroups: 0,
        }
    }

    /// Writes what differs in `cx`.
    pub fn put_changes(&mut self, to: &mut Vec<u64>, cx: &Context) {
        if self.now != cx.now {
            self.now = cx.now;
            to.extend([NOW, cx.now.0]);
        }
        if self.idle != cx.idle {
            self.idle.clone_from(&cx.idle);
            to.push(IDLE);
            put_set(to, &cx.idle);
        }
        for (cpu, (seen, is)) in self.current.iter_mut().zip(&cx.current).enumerate() {
            if seen != is {
                *seen = *is;
                to.extend([CURRENT, cpu as u64, is.0.into()]);
            }
        }
        if self.away != cx.away {
            self.away.clone_from(&cx.away);
            to.extend([AWAY, cx.away.len() as u64]);
            cx.away.iter().for_each(|(cpu, why)| {
                to.extend([cpu.0.into(), u64::from(*why == Away::Released)]);
            });
        }
        self.put_tables(to, cx);
        self.put_tasks(to, cx);
    }

    /// Sets, reservations and groups are only added.
    fn put_tables(&mut self, to: &mut Vec<u64>, cx: &Context) {
        for set in &cx.cpu_sets[self.cpu_sets..] {
            to.push(CPU_SET);
            put_set(to, set);
        }
        self.cpu_sets = cx.cpu_sets.len();
        if self.reservations != cx.reservations.len() {
            self.reservations = cx.reservations.len();
            to.extend([RESERVATIONS, cx.reservations.len() as u64]);
            for reservation in &cx.reservations {
                let of = |part: fn(&Reservation) -> Nanos| {
                    reservation.as_ref().map_or(0, |one| part(one).0)
                };
                to.push(reservation.is_some().into());
                to.extend([of(|one| one.runtime), of(|one| one.deadline), of(|one| one.period)]);
            }
        }
        if self.cgroups != cx.cgroups.len() {
            self.cgroups = cx.cgroups.len();
            to.extend([CGROUPS, cx.cgroups.len() as u64]);
            for (index, cgroup) in cx.cgroups.iter().enumerate() {
                // Its name is the workload's affair.
                put_text(to, &index.to_string());
                let (quota, period) = cgroup.max.map_or((0, 0), |max| (max.quota.0, max.period.0));
                to.extend([cgroup.weight.into(), cgroup.max.is_some().into(), quota, period]);
            }
        }
    }

    fn put_tasks(&mut self, to: &mut Vec<u64>, cx: &Context) {
        let known = self.tasks.len();
        self.tasks.extend_from_slice(&cx.tasks[known..]);
        for (task, (seen, is)) in self.tasks.iter_mut().zip(&cx.tasks).enumerate() {
            let is_new = task >= known;
            // Its state is the seat's affair.
            seen.state = is.state;
            if is_new || seen != is {
                *seen = *is;
                to.extend([TASK, task as u64]);
                put_view(to, is);
            }
        }
    }
}

/// Makes the change of this kind in `cx`.
pub(super) fn change(kind: u64, reader: &mut Reader, cx: &mut Context) -> Option<()> {
    match kind {
        NOW => cx.now = Time(reader.next()?),
        IDLE => cx.idle = set(reader, cx.machine.cpus)?,
        CURRENT => {
            let (cpu, task): (usize, u32) = (reader.number()?, reader.number()?);
            *cx.current.get_mut(cpu)? = TaskId(task);
        }
        TASK => {
            let task: usize = reader.number()?;
            if task >= cx.tasks.len() {
                cx.tasks.resize(task + 1, TaskView::of(120));
            }
            cx.tasks[task] = view(reader)?;
        }
        AWAY => {
            let count: usize = reader.number()?;
            let one = |_| {
                let cpu = CpuId(reader.number()?);
                Some((cpu, if reader.next()? == 1 { Away::Released } else { Away::Offline }))
            };
            cx.away = (0..count).map(one).collect::<Option<_>>()?;
        }
        CPU_SET => {
            let set = set(reader, cx.machine.cpus)?;
            cx.cpu_sets.push(set);
        }
        RESERVATIONS => {
            let count: usize = reader.number()?;
            let one = |_| {
                let is_some = reader.next()? == 1;
                let reservation = Reservation {
                    runtime: Nanos(reader.next()?),
                    deadline: Nanos(reader.next()?),
                    period: Nanos(reader.next()?),
                };
                Some(is_some.then_some(reservation))
            };
            cx.reservations = (0..count).map(one).collect::<Option<_>>()?;
        }
        CGROUPS => {
            let count: usize = reader.number()?;
            let one = |_| {
                let (name, weight) = (reader.text()?, reader.number()?);
                let has_max = reader.next()? == 1;
                let (quota, period) = (Nanos(reader.next()?), Nanos(reader.next()?));
                Some(Cgroup { name, weight, max: has_max.then_some(Bandwidth { quota, period }) })
            };
            cx.cgroups = (0..count).map(one).collect::<Option<_>>()?;
        }
        _ => return None,
    }
    Some(())
}

fn put_view(to: &mut Vec<u64>, view: &TaskView) {
    let Attributes { class, slice, membership } = view.attributes;
    let class = CLASSES.iter().position(|&one| one == class).unwrap_or(0) as u64;
    let slice = slice.length().map_or(0, |length| length.0);
    let group = membership.group().map_or(0, |group| group as u64 + 1);
    to.extend([view.prio.into(), class, slice, group, view.intensive.into(), view.cpu.0.into()]);
    to.extend(affinity_words(view.affinity));
}

fn view(reader: &mut Reader) -> Option<TaskView> {
    let prio = reader.number()?;
    let class = *CLASSES.get(reader.number::<usize>()?)?;
    let slice = match reader.next()? {
        0 => Slice::DEFAULT,
        length => Slice::new(Nanos(length)),
    };
    let group = reader.number::<u16>()?.checked_sub(1);
    let membership =
        group.map_or_else(Membership::default, |group| Membership::of(usize::from(group)));
    let (intensive, cpu) = (reader.next()? == 1, CpuId(reader.number()?));
    let attributes = Attributes { class, slice, membership };
    Some(TaskView { attributes, intensive, cpu, affinity: affinity(reader)?, ..TaskView::of(prio) })
}

fn put_set(to: &mut Vec<u64>, set: &CpuSet) {
    let at = to.len();
    to.push(0);
    to.extend(set.iter().map(|cpu| u64::from(cpu.0)));
    to[at] = (to.len() - at - 1) as u64;
}

fn set(reader: &mut Reader, cpus: u16) -> Option<CpuSet> {
    let mut set = CpuSet::empty(cpus);
    let count: usize = reader.number()?;
    for &cpu in reader.take(count)? {
        set.insert(u16::try_from(cpu).ok().filter(|&cpu| cpu < cpus).map(CpuId)?);
    }
    Some(set)
}

fn put_time(to: &mut Vec<u64>, time: Option<Nanos>) {
    to.extend([time.is_some().into(), time.map_or(0, |time| time.0)]);
}

fn time(reader: &mut Reader) -> Option<Option<Nanos>> {
    let (is_some, time) = (reader.next()? == 1, reader.next()?);
    Some(is_some.then_some(Nanos(time)))
}

/// Writes what crosses of the machine.
pub(super) fn put_machine(to: &mut Vec<u64>, machine: &Machine) {
    let Machine { cpus, switch_cost, migration_cost, idle_exit, wake_cost, .. } = *machine;
    to.push(cpus.into());
    to.extend([switch_cost, migration_cost, idle_exit, wake_cost].map(|cost| cost.0));
    let Some(topology) = &machine.topology else { return to.push(0) };
    to.push(1);
    let (places, distances, smt, MigrationCosts { core, cluster, node, remote }) = topology.parts();
    to.push(smt.to_bits());
    [core, cluster, node, remote].into_iter().for_each(|cost| put_time(to, cost));
    for Place { core, cluster, node, speed } in places {
        to.extend([core, cluster, node].map(|number| u64::from(*number)));
        to.push(speed.to_bits());
    }
    to.push(distances.len() as u64);
    to.extend(distances.iter().flatten().map(|&distance| u64::from(distance)));
}

/// The machine of a greeting.
pub(super) fn machine(reader: &mut Reader) -> Option<Machine> {
    let cpus = reader.number()?;
    let mut cost = || reader.next().map(Nanos);
    let machine = Machine {
        switch_cost: cost()?,
        migration_cost: cost()?,
        idle_exit: cost()?,
        wake_cost: cost()?,
        ..Machine::ideal(cpus)
    };
    if reader.next()? == 0 {
        return Some(machine);
    }
    let smt = f64::from_bits(reader.next()?);
    let migration = MigrationCosts {
        core: time(reader)?,
        cluster: time(reader)?,
        node: time(reader)?,
        remote: time(reader)?,
    };
    let place = |_| {
        Some(Place {
            core: reader.number()?,
            cluster: reader.number()?,
            node: reader.number()?,
            speed: f64::from_bits(reader.next()?),
        })
    };
    let places = (0..cpus).map(place).collect::<Option<Vec<_>>>()?;
    let nodes: usize = reader.number()?;
    let row = |_| (0..nodes).map(|_| reader.number()).collect::<Option<Vec<u16>>>();
    let distances = (0..nodes).map(row).collect::<Option<Vec<_>>>()?;
    let topology = Topology::new(places, distances, smt, migration).ok()?;
    Some(Machine { topology: Some(topology), ..machine })
}

/// Writes what a policy needs and promises. Promises that only checks read do not cross.
pub(super) fn put_nature(to: &mut Vec<u64>, needs: Needs, promises: Promises, migrates: bool) {
    put_time(to, needs.tick);
    let most_cpus = needs.most_cpus.map_or(0, |cpus| u64::from(cpus) + 1);
    to.extend([needs.blocking.into(), needs.alarm.into(), most_cpus]);
    to.extend([promises.inherits, promises.hotplug, migrates].map(u64::from));
}

/// What a policy needs and promises, and whether it migrates tasks.
pub(super) fn nature(reader: &mut Reader) -> Option<(Needs, Promises, bool)> {
    let tick = time(reader)?;
    let (blocking, alarm) = (reader.next()? == 1, reader.next()? == 1);
    let most_cpus = reader.next()?.checked_sub(1).map(|cpus| cpus as u16);
    let (inherits, hotplug) = (reader.next()? == 1, reader.next()? == 1);
    let needs = Needs { tick, blocking, alarm, most_cpus, requests: false };
    Some((needs, Promises { inherits, hotplug, ..Promises::default() }, reader.next()? == 1))
}
