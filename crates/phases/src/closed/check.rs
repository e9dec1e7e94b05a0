//! Checks a closed workload before it runs.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod event_loop;
mod sets;

use super::walk::Place;
use super::{
    CgroupOptions, Closed, EpollObject, EpollSource, EventLoopPhase, LoopPhase, MutexOptions,
    Phase, ReservationOptions, SchedulingPolicy, ServePhase, SocketKind, Spin, Tasks, WatchPhase,
};
use crate::admission::{Cpus, DEEPEST, TaskCount};
use crate::{Invalid, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of phases over all tasks. Each task's script takes 8 or 16 bytes a phase.
const MOST_PHASES: u64 = 1 << 25;
/// The maximum number of loop iterations that take no time. The engine executes all of them at one
/// instant.
const MOST_STILL_ROUNDS: u64 = 1_000_000_000;

/// What fits the default buffer of a socket (`net.core.wmem_default`) with what the kernel keeps.
const LARGEST_DATAGRAM: u64 = 212_992 - 32;

/// The tasks by name.
type Named<'c> = BTreeMap<&'c str, &'c Tasks>;

type Verdict = Result<(), Invalid>;

fn invalid(key: impl Into<String>, message: impl Into<String>) -> Verdict {
    Err(Invalid { key: key.into(), message: message.into() })
}

fn expect(holds: bool, key: &str, message: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { invalid(key, message()) }
}

impl Closed {
    /// Checks the workload for a machine of `cpus` CPUs.
    ///
    /// # Errors
    /// If it cannot run there. The key names the place, as in `task[1].phases[0].loop.phases[2]`.
    pub fn check(&self, cpus: u16) -> Result<(), Invalid> {
        expect(!self.tasks.is_empty(), "task", || {
            "there is no task; a closed workload needs at least one [[task]]".into()
        })?;
        expect(Cpus::has(cpus), "cpus", || Cpus::refuse(cpus).to_string())?;
        let all =
            self.tasks.iter().fold(0, |all: u64, tasks| all.saturating_add(tasks.count.into()));
        let tasks = || format!("these are {all} tasks together: {}", TaskCount::refuse(all));
        expect(all == 0 || TaskCount::has(all), "task", tasks)?;
        let mut named = Named::new();
        for (index, tasks) in self.tasks.iter().enumerate() {
            let is_new = named.insert(&tasks.name, tasks).is_none();
            expect(is_new, &format!("task[{index}].name"), || {
                format!("there is another task named {}", tasks.name)
            })?;
        }
        for (name, &options) in &self.mutexes {
            check_mutex(options, &format!("mutex.{name}"))?;
        }
        let mut all_phases = 0u64;
        for (index, tasks) in self.tasks.iter().enumerate() {
            let key = format!("task[{index}]");
            let phases = self.check_tasks(tasks, &key, cpus, &named)?;
            all_phases = all_phases.saturating_add(phases.saturating_mul(tasks.count.into()));
            let message = || {
                format!(
                    "the tasks so far have {all_phases} phases together, and there can be \
                     {MOST_PHASES}; give fewer tasks or phases"
                )
            };
            expect(all_phases <= MOST_PHASES, &format!("{key}.phases"), message)?;
        }
        for (name, &options) in &self.cgroups {
            let has_members = self.tasks.iter().any(|tasks| tasks.cgroup.as_ref() == Some(name));
            expect(has_members, &format!("cgroup.{name}"), || {
                format!("no task is in this group; say `cgroup = \"{name}\"` in one")
            })?;
            check_cgroup(options, &format!("cgroup.{name}"))?;
        }
        for (name, list) in &self.lists {
            check_order(list, &format!("list.{name}"), Nest::default())?;
        }
        self.check_forks(&named)?;
        self.check_tables()?;
        self.check_waiters()?;
        self.check_end()
    }

    /// Checks the tasks and returns the total number of phases.
    fn check_tasks(
        &self,
        tasks: &Tasks,
        key: &str,
        cpus: u16,
        named: &Named,
    ) -> Result<u64, Invalid> {
        expect(tasks.count > 0, &format!("{key}.count"), || "there must be at least one".into())?;
        check_importance(tasks, key)?;
        if let Some(slice) = tasks.slice {
            let fits = (100_000..=100_000_000).contains(&slice.0);
            expect(fits, &format!("{key}.slice"), || {
                format!("{} is not between 0.1ms and 100ms", slice.exact())
            })?;
        }
        if let Some(reservation) = tasks.reservation {
            check_reservation(reservation, &format!("{key}.reservation"))?;
        }
        if let Some(name) = &tasks.cgroup {
            let known = self.cgroups.contains_key(name);
            expect(known, &format!("{key}.cgroup"), || {
                format!("there is no group named {name}; write a table [cgroup.{name}]")
            })?;
        }
        if let Some(affinity) = &tasks.affinity {
            expect(!affinity.is_empty(), &format!("{key}.affinity"), || {
                "the task may run nowhere; name a CPU".into()
            })?;
            let wrong = affinity.iter().position(|&cpu| cpu >= cpus);
            if let Some(wrong) = wrong {
                let message = format!(
                    "there is no CPU {}: the machine has CPUs 0 to {}",
                    affinity[wrong],
                    cpus.saturating_sub(1)
                );
                return Err(Invalid { key: format!("{key}.affinity[{wrong}]"), message });
            }
        }
        let starts_once = !tasks.forked || tasks.start == Nanos::ZERO;
        expect(starts_once, &format!("{key}.start"), || {
            "a forked task starts when it is forked, and at no other time".into()
        })?;
        check_order(&tasks.phases, &format!("{key}.phases"), Nest::default())?;
        let places = self.reached_by(tasks, key);
        places.iter().try_for_each(|place| self.check_phase(place, named))?;
        self.check_endless_lists(tasks)?;
        Locks { closed: self, entered: BTreeSet::new() }.walk(
            &tasks.phases,
            &format!("{key}.phases"),
            &mut BTreeSet::new(),
        )?;
        Ok(places.len().try_into().unwrap_or(u64::MAX))
    }

    fn check_phase(&self, place: &Place, named: &Named) -> Verdict {
        let key = &place.key;
        let known = |name: &String| named.get(name.as_str());
        let no_task = |name: &String| format!("there is no task named {name}");
        match place.phase {
            Phase::Read { bytes, .. } | Phase::Write { bytes, .. } => {
                expect(*bytes > 0, key, || "give at least one byte".into())
            }
            Phase::Send { socket, bytes, .. } => {
                expect(*bytes > 0, key, || "give at least one byte".into())?;
                let fits = !self.is_datagram(socket) || *bytes <= LARGEST_DATAGRAM;
                expect(fits, key, || {
                    format!("a datagram has at most {LARGEST_DATAGRAM} bytes, not {bytes}")
                })
            }
            Phase::Receive { socket, bytes, partial, .. } => {
                expect(*bytes > 0, key, || "give at least one byte".into())?;
                expect(!partial || !self.is_datagram(socket), key, || {
                    "a datagram is received as a whole; leave `partial` out".into()
                })
            }
            Phase::Serve(serve) => {
                self.check_handled(&serve.epoll, serve.handle.len(), serve.handle.is_empty(), key)
            }
            Phase::EventLoop(event_loop) => self.check_event_loop(event_loop, key),
            Phase::Poll(epoll) => expect(self.epolls.contains_key(epoll), key, || {
                format!("there is no table [epoll.{epoll}]")
            }),
            Phase::Watch(watch) => self.check_watch(watch, key),
            Phase::Post { count, .. } => expect((1..u64::MAX).contains(count), key, || {
                "give a count of at least one, and less than 2^64 - 1".into()
            }),
            Phase::Timer(timer) => {
                expect(timer.period > Nanos::ZERO, key, || "give a period above zero".into())?;
                expect(!timer.shared || !timer.name.is_empty(), key, || {
                    "give a timer that is shared a name".into()
                })
            }
            Phase::Fork(name) => match known(name) {
                None => invalid(key, no_task(name)),
                Some(tasks) => expect(tasks.forked, key, || {
                    format!("{name} starts of its own accord; say `forked = true` there")
                }),
            },
            Phase::Wait { mutex, .. } => {
                let spins = self.mutexes.get(mutex).is_some_and(|of| of.spin.is_some());
                expect(!spins, key, || {
                    format!("a task waits for a signal with a mutex that sleeps, and {mutex} spins")
                })
            }
            Phase::Join(name) => expect(known(name).is_some(), key, || no_task(name)),
            Phase::Exec(name) => expect(self.lists.contains_key(name), key, || {
                format!("there is no list named {name}")
            }),
            _ => Ok(()),
        }
    }

    /// Checks that all sources of a set are handled.
    fn check_handled(&self, epoll: &str, handled: usize, only_waits: bool, key: &str) -> Verdict {
        let Some(set) = self.epolls.get(epoll) else {
            return invalid(key, format!("there is no table [epoll.{epoll}]"));
        };
        let sources = set.sources.len();
        expect(only_waits || sources == handled, key, || {
            format!("the set has {sources} sources, and {handled} are handled")
        })
    }

    fn is_datagram(&self, socket: &str) -> bool {
        self.sockets.get(socket).is_some_and(|options| options.kind == SocketKind::Datagram)
    }

    /// A list that leads back to itself must take some time, or the run would not advance.
    fn check_endless_lists(&self, tasks: &Tasks) -> Verdict {
        for name in self.lists_of(tasks) {
            let own = Tasks { phases: self.lists[name].clone(), ..tasks.clone() };
            let is_endless = self.lists_of(&own).contains(name);
            let message = || {
                format!(
                    "the list {name} continues with itself for ever and takes no time; put a run, \
                     a sleep, a timer or I/O into it"
                )
            };
            expect(!is_endless || takes_time(&self.lists[name]), &format!("list.{name}"), message)?;
        }
        Ok(())
    }

    /// Checks that no task is forked more often than possible, and that each forked task has a
    /// fork.
    fn check_forks(&self, named: &Named) -> Verdict {
        let mut forks: BTreeMap<&str, u64> = BTreeMap::new();
        for (index, tasks) in self.tasks.iter().enumerate() {
            for place in self.reached_by(tasks, &format!("task[{index}]")) {
                let Phase::Fork(name) = place.phase else { continue };
                let so_far = forks.entry(name).or_default();
                *so_far = so_far.saturating_add(place.times.saturating_mul(u64::from(tasks.count)));
                let there_are = named.get(name.as_str()).map_or(0, |tasks| u64::from(tasks.count));
                let forked = if *so_far == u64::MAX {
                    "without end".to_string()
                } else {
                    format!("{so_far} times")
                };
                expect(*so_far <= there_are, &place.key, || {
                    format!("{name} is forked {forked}, and its count is {there_are}")
                })?;
            }
        }
        for (index, tasks) in self.tasks.iter().enumerate() {
            let is_forked = !tasks.forked || forks.contains_key(tasks.name.as_str());
            expect(is_forked, &format!("task[{index}].forked"), || {
                format!("no phase forks {}", tasks.name)
            })?;
        }
        Ok(())
    }

    /// Checks that every object with a table is used and valid.
    fn check_tables(&self) -> Verdict {
        let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
        for tasks in &self.tasks {
            for place in self.reached_by(tasks, "") {
                used.extend(names(place.phase));
            }
        }
        for epoll in self.epolls.values() {
            used.extend(epoll.sources.iter().map(|source| match &source.object {
                EpollObject::Pipe(pipe) | EpollObject::PipeRoom(pipe) => ("pipe", pipe.as_str()),
                EpollObject::Socket(pair)
                | EpollObject::Reply(pair)
                | EpollObject::SendRoom(pair)
                | EpollObject::ReplyRoom(pair) => ("socket", pair.as_str()),
                EpollObject::Eventfd(eventfd) => ("eventfd", eventfd.as_str()),
            }));
        }
        let tables = [
            ("mutex", self.mutexes.keys().collect::<Vec<_>>()),
            ("barrier", self.barriers.keys().collect()),
            ("pipe", self.pipes.keys().collect()),
            ("socket", self.sockets.keys().collect()),
            ("eventfd", self.eventfds.keys().collect()),
            ("epoll", self.epolls.keys().collect()),
            ("device", self.devices.keys().collect()),
            ("list", self.lists.keys().collect()),
        ];
        for (table, keys) in tables {
            for name in keys {
                expect(used.contains(&(table, name)), &format!("{table}.{name}"), || {
                    format!("no phase names this {table}")
                })?;
            }
        }
        for (name, barrier) in &self.barriers {
            expect(barrier.tasks != Some(0), &format!("barrier.{name}.tasks"), || {
                "give at least one task".into()
            })?;
        }
        for (name, pipe) in &self.pipes {
            expect(pipe.capacity > 0, &format!("pipe.{name}.capacity"), || {
                "give room for at least one byte".into()
            })?;
        }
        for (name, eventfd) in &self.eventfds {
            expect(!eventfd.wakes_one || eventfd.semaphore, &format!("eventfd.{name}"), || {
                "one that wakes one task is a semaphore: write `semaphore = true`, too".into()
            })?;
        }
        for (name, epoll) in &self.epolls {
            expect(!epoll.sources.is_empty(), &format!("epoll.{name}.sources"), || {
                "name at least one source".into()
            })?;
            for (index, source) in epoll.sources.iter().enumerate() {
                let key = format!("epoll.{name}.sources[{index}]");
                let is_same = |other: &EpollSource| other.object == source.object;
                let wakes_one = match &source.object {
                    EpollObject::Eventfd(of) => {
                        self.eventfds.get(of).is_some_and(|of| of.wakes_one)
                    }
                    _ => false,
                };
                expect(!wakes_one, &key, || {
                    "a semaphore that wakes one task is no file: no set can have it".into()
                })?;
                expect(!epoll.sources[..index].iter().any(is_same), &key, || {
                    "the set has this source already".into()
                })?;
                self.check_source(source, &key)?;
            }
        }
        for (name, device) in &self.devices {
            expect(device.channels > 0, &format!("device.{name}.channels"), || {
                "give at least one channel".into()
            })?;
        }
        Ok(())
    }

    /// Checks that the workload ends.
    fn check_end(&self) -> Verdict {
        if let Some(duration) = self.duration {
            return expect(duration > Nanos::ZERO, "duration", || {
                "give a duration above zero".into()
            });
        }
        let comes = |tasks: &&Tasks| !tasks.daemon && !tasks.forked;
        expect(self.tasks.iter().any(|tasks| comes(&tasks)), "task", || {
            "all tasks are daemons; give a `duration`".into()
        })?;
        // Daemons count too: a policy may run nothing but them.
        for (index, tasks) in self.tasks.iter().enumerate() {
            let endless =
                |place: &Place| matches!(place.phase, Phase::Loop(LoopPhase { times: None, .. }));
            if let Some(place) =
                self.reached_by(tasks, &format!("task[{index}]")).into_iter().find(endless)
            {
                let message = "this loop never ends: say how many `times`, or give the workload a \
                               `duration` after which it is stopped";
                return invalid(place.key, message);
            }
        }
        Ok(())
    }
}

fn check_importance(tasks: &Tasks, key: &str) -> Verdict {
    let (nice, priority) = (format!("{key}.nice"), format!("{key}.priority"));
    if let SchedulingPolicy::Fifo | SchedulingPolicy::Rr = tasks.policy {
        expect(tasks.nice.is_none(), &nice, || {
            "a real-time task has a `priority`, not a nice value".into()
        })?;
        let Some(given) = tasks.priority else {
            return invalid(key, "a real-time task needs a `priority` from 1 to 99");
        };
        return expect((1..=99).contains(&given), &priority, || {
            format!("{given} is not between 1 and 99")
        });
    }
    expect(tasks.priority.is_none(), &priority, || {
        "only real-time tasks (`fifo`, `rr`) have a priority; others have a `nice` value".into()
    })?;
    let given = tasks.nice.unwrap_or(0);
    expect((-20..=19).contains(&given), &nice, || format!("{given} is not between -20 and 19"))
}

/// As the kernel's `__checkparam_dl`: runtime at least 1024 ns, runtime ≤ deadline ≤ period.
fn check_reservation(reservation: ReservationOptions, key: &str) -> Verdict {
    let ReservationOptions { runtime, period, deadline } = reservation;
    let deadline = deadline.unwrap_or(period);
    expect(runtime.0 >= 1024, &format!("{key}.runtime"), || {
        format!("{} is less than 1024ns, the shortest that can be reserved", runtime.exact())
    })?;
    expect(runtime <= deadline, &format!("{key}.runtime"), || {
        format!(
            "a runtime of {} does not fit before a deadline of {}",
            runtime.exact(),
            deadline.exact()
        )
    })?;
    expect(deadline <= period, &format!("{key}.deadline"), || {
        format!(
            "a deadline of {} lies behind the end of a period of {}",
            deadline.exact(),
            period.exact()
        )
    })
}

/// As the kernel: `cpu_weight_write_u64`, `tg_set_cfs_bandwidth`.
fn check_cgroup(options: CgroupOptions, key: &str) -> Verdict {
    let CgroupOptions { weight, max, period } = options;
    expect((1..=10_000).contains(&weight), &format!("{key}.weight"), || {
        format!("{weight} is not between 1 and 10000")
    })?;
    let is_period = (1_000_000..=1_000_000_000).contains(&period.0);
    expect(is_period, &format!("{key}.period"), || {
        format!("{} is not between 1ms and 1s", period.exact())
    })?;
    let quota = max.unwrap_or(period);
    expect(quota.0 >= 1_000_000, &format!("{key}.max"), || {
        format!("{} is less than 1ms, the least that a group can be given", quota.exact())
    })
}

/// The loops around a phase.
#[derive(Clone, Copy)]
struct Nest {
    /// How many there are.
    depth: usize,
    /// The product of the iterations of those that take no time.
    still: u64,
}

impl Default for Nest {
    fn default() -> Nest {
        Nest { depth: 0, still: 1 }
    }
}

/// Checks the order of phases: no list is empty, nothing follows an endless phase, and endless
/// phases take time.
fn check_order(phases: &[Phase], key: &str, nest: Nest) -> Verdict {
    expect(!phases.is_empty(), key, || "nothing is done here; name a phase".into())?;
    expect(nest.depth <= DEEPEST, key, || format!("loops are nested more than {DEEPEST} deep"))?;
    for (index, phase) in phases.iter().enumerate() {
        let key = format!("{key}[{index}]");
        if let Phase::Loop(LoopPhase { times, phases: inner }) = phase {
            expect(*times != Some(0), &format!("{key}.loop.times"), || {
                "give at least one time".into()
            })?;
            let still =
                if takes_time(inner) { 1 } else { nest.still.saturating_mul(times.unwrap_or(1)) };
            let message = || {
                format!(
                    "{still} rounds take no time, and there can be {MOST_STILL_ROUNDS}; give \
                     fewer, or put a run or a sleep into the loop"
                )
            };
            expect(still <= MOST_STILL_ROUNDS, &key, message)?;
            check_order(
                inner,
                &format!("{key}.loop.phases"),
                Nest { depth: nest.depth.saturating_add(1), still },
            )?;
            let advances = times.is_some() || takes_time(inner);
            let message = || {
                "this loop never ends and takes no time; put a run, a sleep, a timer or I/O into it"
                    .into()
            };
            expect(advances, &key, message)?;
        }
        if let Phase::Serve(serve) = phase {
            for (source, handler) in serve.handle.iter().enumerate() {
                let nest = Nest { depth: nest.depth.saturating_add(1), ..nest };
                check_order(handler, &format!("{key}.serve.handle[{source}]"), nest)?;
            }
        }
        if let Phase::EventLoop(event_loop) = phase {
            for (key, round) in event_loop.rounds(&key) {
                let nest = Nest { depth: nest.depth.saturating_add(1), ..nest };
                check_order(round, &key, nest)?;
            }
        }
        let ends_here =
            matches!(phase, Phase::Exec(_) | Phase::Loop(LoopPhase { times: None, .. }));
        expect(!ends_here || index.saturating_add(1) == phases.len(), &key, || {
            "what stands behind this phase is never reached".into()
        })?;
    }
    Ok(())
}

fn check_mutex(MutexOptions { handoff, inherit, spin }: MutexOptions, key: &str) -> Verdict {
    let Some(Spin { limit, sleep }) = spin else { return Ok(()) };
    let key = format!("{key}.spin");
    expect(!handoff && !inherit, &key, || {
        "the first task that finds it free takes a mutex for which tasks spin; leave `handoff` and \
         `inherit` out"
            .into()
    })?;
    let fits = limit.is_none_or(|limit| (Nanos(1)..=Spin::LONGEST).contains(&limit));
    expect(fits, &format!("{key}.limit"), || {
        format!("give a time above zero and up to {}", Spin::LONGEST)
    })?;
    let sleep_key = format!("{key}.sleep");
    expect(sleep != Some(Nanos::ZERO), &sleep_key, || "give a time above zero".into())?;
    expect(sleep.is_none() || limit.is_some(), &sleep_key, || {
        "give a `limit`, after which the task sleeps".into()
    })
}

/// Whether these phases certainly take time.
fn takes_time(phases: &[Phase]) -> bool {
    phases.iter().any(|phase| match phase {
        Phase::Run(span) | Phase::Sleep(span) => *span > Nanos::ZERO,
        Phase::Io(io) => io.service > Nanos::ZERO,
        Phase::Timer(_) => true,
        Phase::Loop(inner) => takes_time(&inner.phases),
        Phase::Serve(serve) => {
            let all_do = serve.handle.iter().all(|handler| takes_time(handler));
            all_do && !serve.handle.is_empty()
        }
        Phase::EventLoop(event_loop) => {
            let mut rounds = event_loop.handle.iter().flatten();
            match event_loop.round {
                Nanos::ZERO => rounds.any(|round| takes_time(round)),
                _ => rounds.next().is_some(),
            }
        }
        _ => false,
    })
}

/// The objects that a phase names, each with its table.
fn names(phase: &Phase) -> Vec<(&'static str, &str)> {
    match phase {
        Phase::Lock(mutex) | Phase::Unlock(mutex) | Phase::Wait { mutex, .. } => {
            vec![("mutex", mutex)]
        }
        Phase::Barrier(barrier) => vec![("barrier", barrier)],
        Phase::Read { pipe, .. } | Phase::Write { pipe, .. } => vec![("pipe", pipe)],
        Phase::Send { socket, .. } | Phase::Receive { socket, .. } => vec![("socket", socket)],
        Phase::Post { eventfd, .. } | Phase::Take { eventfd } => vec![("eventfd", eventfd)],
        Phase::Serve(ServePhase { epoll, .. })
        | Phase::EventLoop(EventLoopPhase { epoll, .. })
        | Phase::Watch(WatchPhase { epoll, .. })
        | Phase::Poll(epoll) => vec![("epoll", epoll)],
        Phase::Io(io) => vec![("device", &io.device)],
        Phase::Exec(list) => vec![("list", list)],
        _ => Vec::new(),
    }
}

/// A handler leaves the mutexes of its task as they were.
fn expect_as_before(after: &BTreeSet<&str>, before: &BTreeSet<&str>, key: &str) -> Verdict {
    expect(after == before, key, || {
        "a handler gives back the mutexes that it takes, and no others".into()
    })
}

/// Tracks which mutexes a task holds. Phases have no branches, so this is known before the run.
struct Locks<'c> {
    closed: &'c Closed,
    /// Lists already entered, each with the mutexes held at entry.
    entered: BTreeSet<(&'c str, BTreeSet<&'c str>)>,
}

impl<'c> Locks<'c> {
    fn walk(&mut self, phases: &'c [Phase], key: &str, held: &mut BTreeSet<&'c str>) -> Verdict {
        for (index, phase) in phases.iter().enumerate() {
            let key = format!("{key}[{index}]");
            match phase {
                Phase::Lock(mutex) => {
                    expect(held.insert(mutex), &key, || {
                        format!(
                            "the task holds the mutex {mutex} already, and would wait for itself"
                        )
                    })?;
                }
                Phase::Unlock(mutex) => {
                    expect(held.remove(mutex.as_str()), &key, || {
                        format!("the task gives back the mutex {mutex} and does not hold it here")
                    })?;
                }
                Phase::Wait { mutex, .. } => {
                    let holds = held.contains(mutex.as_str());
                    expect(holds, &key, || {
                        format!(
                            "the task waits with the mutex {mutex} and does not hold it here; \
                             lock it first"
                        )
                    })?;
                }
                // A second round checks the state that the first one leaves. A third one would
                // repeat it.
                Phase::Loop(inner) => {
                    let (key, before) = (format!("{key}.loop.phases"), held.clone());
                    self.walk(&inner.phases, &key, held)?;
                    if inner.times.is_none_or(|times| times > 1) && *held != before {
                        self.walk(&inner.phases, &key, held)?;
                    }
                }
                Phase::Serve(serve) => {
                    for (source, handler) in serve.handle.iter().enumerate() {
                        let (key, mut after) =
                            (format!("{key}.serve.handle[{source}]"), held.clone());
                        self.walk(handler, &key, &mut after)?;
                        expect_as_before(&after, held, &key)?;
                    }
                }
                Phase::EventLoop(event_loop) => {
                    for (key, round) in event_loop.rounds(&key) {
                        let mut after = held.clone();
                        self.walk(round, &key, &mut after)?;
                        expect_as_before(&after, held, &key)?;
                    }
                }
                Phase::Exec(name) => {
                    let Some((name, list)) = self.closed.lists.get_key_value(name) else {
                        continue;
                    };
                    if self.entered.insert((name, held.clone())) {
                        self.walk(list, &format!("list.{name}"), held)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
