//! Combines two workloads on one machine.
//!
//! The tasks of the first keep their ids, those of the second follow. The second one's tasks are
//! daemons: the run is over when all tasks of the first have ended.

use super::{Action, Affinity, Epoll, Group, Membership, Script, Serve, Shared, Source, Workload};
use crate::TaskId;

impl Workload {
    /// This workload with `load` beside it.
    pub fn beside(mut self, load: &Workload) -> Workload {
        let (tasks, sets, cgroups) =
            (self.tasks.len() as u32, self.cpu_sets.len() as u32, self.cgroups.len());
        if self.shared.groups.is_empty() {
            self.shared.groups.push(Group {
                name: "tasks".to_string(),
                first: TaskId(0),
                count: tasks,
                daemon: false,
            });
        }
        let behind = |script: &Script| -> Script {
            let step = |then| match then {
                Action::Wake(task) => Action::Wake(TaskId(task.0 + tasks)),
                Action::Fork(task) => Action::Fork(TaskId(task.0 + tasks)),
                Action::Do(operation) => Action::Do(operation.behind(&self.shared)),
                then => then,
            };
            script.steps().map(|is| (is.run, step(is.then))).collect()
        };
        let mut added = load.tasks.clone();
        for task in &mut added {
            task.script = behind(&task.script);
            if let Some(group) = task.attributes.membership.group() {
                task.attributes.membership = Membership::of(cgroups + group);
            }
            if let Affinity::Set(set) = &mut task.affinity {
                *set += sets;
            }
        }
        self.tasks.extend(added);
        self.cgroups.extend(load.cgroups.iter().cloned());
        self.cpu_sets.extend(load.cpu_sets.iter().cloned());
        self.reservations.resize(tasks as usize, None);
        self.reservations.extend(&load.reservations);
        self.shared.append(&load.shared, tasks, load.tasks.len() as u32);
        self
    }
}

impl Shared {
    /// Appends the objects that `count` tasks share, the first of which is now task `first`. All of
    /// them become daemons.
    fn append(&mut self, other: &Shared, first: u32, count: u32) {
        let Shared {
            mutexes,
            conditions,
            barriers,
            pipes,
            sockets,
            eventfds,
            epolls,
            serves,
            devices,
            timers,
            groups,
            depth,
        } = other;
        self.mutexes.extend_from_slice(mutexes);
        self.conditions.extend_from_slice(conditions);
        self.barriers.extend_from_slice(barriers);
        let sets = self.epolls.len() as u32;
        let watched: Vec<Vec<Source>> = epolls
            .iter()
            .map(|epoll| {
                let moved = |of: &Source| Source { object: of.object.behind(self), ..*of };
                epoll.sources.iter().map(moved).collect()
            })
            .collect();
        self.epolls.extend(
            epolls.iter().zip(watched).map(|(epoll, sources)| Epoll { sources, ..epoll.clone() }),
        );
        self.serves.extend(
            serves.iter().map(|serve| Serve { epoll: serve.epoll + sets, ..serve.clone() }),
        );
        self.pipes.extend_from_slice(pipes);
        self.sockets.extend_from_slice(sockets);
        self.eventfds.extend_from_slice(eventfds);
        self.devices.extend_from_slice(devices);
        self.timers.extend_from_slice(timers);
        let moved = |group: &Group| Group {
            first: TaskId(group.first.0 + first),
            daemon: true,
            ..group.clone()
        };
        let all = Group { name: "load".to_string(), first: TaskId(first), count, daemon: true };
        if groups.is_empty() {
            self.groups.push(all);
        } else {
            self.groups.extend(groups.iter().map(moved));
        }
        self.depth = self.depth.max(*depth);
    }
}
