//! Draws a random case: tasks, their phases, and their waits for one another.

use super::Case;
use crate::workload::{
    BarrierOptions, Closed, DeviceOptions, IoOperation, IoPhase, Phase, SchedulingPolicy, Tasks,
    TimerMode, TimerPhase,
};
use crate::{Machine, Nanos, Random};

/// A task's phases in inseparable groups: nothing comes between a lock and its unlock.
type Groups = Vec<Vec<Phase>>;

pub fn case(seed: u64) -> Case {
    let mut draw = Draw { random: Random::new(seed), unit: 1 };
    draw.unit = draw.of(&[1, 1_000, 100_000, 1_000_000, 1_000_000]);
    let machine = draw.machine();
    let count = 1 + draw.below(9) as usize;
    let mut tasks: Vec<Tasks> = (0..count).map(|index| draw.task(index, machine.cpus)).collect();
    let mut groups: Vec<Groups> = (0..count).map(|_| draw.groups()).collect();
    draw.pipes(&mut groups);
    draw.forks(&mut tasks, &mut groups);
    draw.barrier(&tasks, &mut groups);
    for (tasks, groups) in tasks.iter_mut().zip(groups) {
        tasks.phases = groups.into_iter().flatten().collect();
    }
    let duration = draw.one_in(3).then(|| Nanos(1 + draw.unit * (1 + draw.below(30))));
    let mut workload = Closed {
        name: Some(format!("swarm-{seed}")),
        cpus: Some(machine.cpus),
        duration,
        tasks,
        ..Closed::default()
    };
    declare(&mut workload);
    Case { workload, machine }
}

/// Adds a table for each barrier and device in use, which a workload file requires if few tasks use
/// it.
pub(super) fn declare(workload: &mut Closed) {
    (workload.barriers, workload.devices) = Default::default();
    for phase in workload.tasks.iter().flat_map(|tasks| &tasks.phases) {
        match phase {
            Phase::Barrier(barrier) => {
                workload.barriers.insert(barrier.clone(), BarrierOptions::default());
            }
            Phase::Io(io) => {
                workload.devices.insert(io.device.clone(), DeviceOptions::default());
            }
            _ => {}
        }
    }
}

struct Draw {
    random: Random,
    /// The typical duration in this case, in ns.
    unit: u64,
}

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn one_in(&mut self, several: u64) -> bool {
        self.below(several) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A duration, often a multiple of the unit, so that events coincide.
    fn span(&mut self) -> Nanos {
        let whole = self.unit * self.of(&[0, 1, 1, 2, 3, 5, 9]);
        let odd = if self.one_in(2) { self.below(self.unit + 1) } else { 0 };
        Nanos(whole + odd)
    }

    fn machine(&mut self) -> Machine {
        let cpus = self.of(&[1, 1, 2, 2, 3, 4, 5]);
        let mut machine = Machine::ideal(cpus);
        let most = self.of(&[20, 5_000, 100_000]);
        for cost in [
            &mut machine.switch_cost,
            &mut machine.migration_cost,
            &mut machine.idle_exit,
            &mut machine.wake_cost,
        ] {
            if self.one_in(2) {
                *cost = Nanos(self.below(most));
            }
        }
        machine
    }

    fn task(&mut self, index: usize, cpus: u16) -> Tasks {
        use SchedulingPolicy::{Batch, Fifo, Idle, Other, Rr};
        let mut task = Tasks::new(&format!("t{index}"), Vec::new());
        task.policy = self.of(&[Other, Other, Other, Other, Other, Batch, Idle, Fifo, Rr]);
        match task.policy {
            Fifo | Rr => task.priority = Some(self.of(&[1, 50, 50, 70, 99])),
            Other | Batch | Idle => {
                task.nice =
                    self.one_in(2).then(|| self.below(40) as i32 - 20).filter(|&nice| nice != 0)
            }
        }
        task.slice = self.one_in(5).then(|| Nanos(100_000 + self.below(8_000_000)));
        task.start = if self.one_in(2) { Nanos::ZERO } else { self.span() };
        let affinity: Vec<u16> = (0..cpus).filter(|_| self.one_in(2)).collect();
        task.affinity = (self.one_in(4) && !affinity.is_empty()).then_some(affinity);
        task
    }

    fn groups(&mut self) -> Groups {
        (0..1 + self.below(7)).map(|_| self.group()).collect()
    }

    fn group(&mut self) -> Vec<Phase> {
        match self.below(14) {
            0..4 => vec![Phase::Run(self.span())],
            4..7 => vec![Phase::Run(self.span()), Phase::Sleep(self.span())],
            7 => vec![Phase::Run(self.span()), Phase::Yield],
            8 => vec![Phase::Sleep(self.span())],
            9 | 10 => {
                let mutex = self.of(&["m", "n"]).to_string();
                vec![Phase::Lock(mutex.clone()), Phase::Run(self.span()), Phase::Unlock(mutex)]
            }
            11 => {
                let io = IoPhase {
                    device: "disk".into(),
                    service: self.span(),
                    bytes: 0,
                    operation: IoOperation::Read,
                };
                vec![Phase::Io(io)]
            }
            12 => {
                let period = Nanos(1 + self.unit * (1 + self.below(9)));
                let mode = self.of(&[TimerMode::Relative, TimerMode::Absolute]);
                vec![
                    Phase::Timer(TimerPhase { period, name: String::new(), mode, shared: false }),
                    Phase::Run(self.span()),
                ]
            }
            _ => {
                let then = if self.one_in(2) { Phase::Sleep(self.span()) } else { Phase::Yield };
                let times = 1 + self.below(4);
                vec![Phase::repeat(times, vec![Phase::Run(self.span()), then])]
            }
        }
    }

    fn put(&mut self, groups: &mut Groups, phase: Phase) {
        let place = self.below(groups.len() as u64 + 1) as usize;
        groups.insert(place, vec![phase]);
    }

    /// Some tasks read what an earlier one writes; the writer never waits for room.
    fn pipes(&mut self, groups: &mut [Groups]) {
        for reader in 1..groups.len() {
            while self.one_in(3) {
                let (writer, bytes) = (self.below(reader as u64) as usize, 1 + self.below(4096));
                let pipe = format!("p{writer}-{reader}-{}", groups[reader].len());
                self.put(&mut groups[writer], Phase::Write { pipe: pipe.clone(), bytes });
                self.put(&mut groups[reader], Phase::Read { pipe, bytes, partial: false });
            }
        }
    }

    /// Some tasks are forked by an earlier one, which may join them as its last phase.
    fn forks(&mut self, tasks: &mut [Tasks], groups: &mut [Groups]) {
        let mut joins: Vec<Vec<Phase>> = vec![Vec::new(); tasks.len()];
        for (index, child) in tasks.iter_mut().enumerate().skip(1) {
            if self.one_in(6) {
                let parent = self.below(index as u64) as usize;
                (child.forked, child.start) = (true, Nanos::ZERO);
                self.put(&mut groups[parent], Phase::Fork(child.name.clone()));
                if self.one_in(2) {
                    joins[parent].push(Phase::Join(child.name.clone()));
                }
            }
        }
        groups.iter_mut().zip(joins).for_each(|(groups, joins)| groups.push(joins));
    }

    /// Some initial tasks meet at a barrier before anything else.
    fn barrier(&mut self, tasks: &[Tasks], groups: &mut [Groups]) {
        if self.one_in(3) {
            for (_, groups) in tasks.iter().zip(groups).filter(|(task, _)| !task.forked) {
                if self.one_in(2) {
                    groups.insert(0, vec![Phase::Barrier("start".into())]);
                }
            }
        }
    }
}
