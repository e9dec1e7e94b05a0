//! Translates rt-app's JSON into a closed workload.
//!
//! The reference is upstream's rt-app at the commit in docs/rt-app.json, with its workgen. That
//! allows the same key several times in an object, and `suspend` without a value. [`grammar`] lists
//! what is honoured, approximated and rejected; docs/rt-app.md has the same tables.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod attributes;
mod events;
mod forks;
mod grammar;
mod json;

use super::ClosedWorkload;
use attributes::{Attributes, Policy, find};
use events::{Events, Of};
use grammar::{Place, Treatment};
use json::{Entry, Json, Value};
use program::Error;
use schedsim::Nanos;
use schedsim::admission::{Rounds, TaskCount, duration};
use schedsim::workload::{CgroupOptions, Closed, LoopPhase, Phase, SchedulingPolicy, Tasks};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: Nanos = Nanos(1_000_000_000);
/// The duration of an endless file without a `duration`.
const DURATION: Nanos = Nanos::from_millis(10_000);
/// The calls of a round of an endless loop that takes no time by itself.
const CALLS: Nanos = Nanos(1_000);
/// The CPUs of a workload that names none.
const CPUS: u16 = 4;

/// Translates `text`; `file` is its name in messages.
///
/// # Errors
/// If it is not JSON, or has an unknown event or key; the message points at the line.
pub fn read(file: &str, text: &str) -> Result<ClosedWorkload, Error> {
    let json = Json::parse(file, text)?;
    let mut reader = Reader {
        json: &json,
        closed: Closed::default(),
        lines: BTreeMap::new(),
        events: Events::new(&json),
        default: Policy::Of(SchedulingPolicy::Other),
        inherits: false,
        none_at_start: BTreeMap::new(),
        groups: BTreeMap::new(),
    };
    reader.file()?;
    let Reader { closed, lines, events, .. } = reader;
    let name = file.rsplit('/').next().unwrap_or_default().trim_end_matches(".json").to_string();
    let notes = events.notes.into_iter().collect();
    Ok(ClosedWorkload::translated(name, closed, file, lines, notes))
}

struct Reader<'j> {
    json: &'j Json,
    closed: Closed,
    /// The lines of the file, by the keys of `closed`.
    lines: BTreeMap<String, usize>,
    events: Events<'j>,
    /// The default scheduling policy of tasks.
    default: Policy,
    /// Whether mutexes use priority inheritance (`pi_enabled`).
    inherits: bool,
    /// Tasks that do not run until they are forked, with their places in `closed`.
    none_at_start: BTreeMap<String, usize>,
    /// The task groups, each with its line.
    groups: BTreeMap<String, usize>,
}

/// A phase with its line.
enum Node {
    Event(Phase, usize),
    Loop { times: Option<u64>, inner: Vec<Node>, line: usize },
}

/// What a task keeps for its lifetime, as its phases have it.
#[derive(Default)]
struct Lifetime {
    attributes: Option<Attributes>,
    group: Option<String>,
    /// The CPUs of each phase; `None`: all.
    cpus: Vec<Option<BTreeSet<(u16, usize)>>>,
}

impl Reader<'_> {
    fn file(&mut self) -> Result<(), Error> {
        let root = self.json.root()?;
        self.expect_known(root, Place::Root)?;
        for entry in root.iter().filter(|entry| entry.key == "global") {
            self.global(self.json.object(entry)?)?;
        }
        for entry in root.iter().filter(|entry| entry.key == "resources") {
            self.resources(self.json.object(entry)?)?;
        }
        let tasks = find(root, "tasks").ok_or_else(|| {
            self.json.wrong(
                1,
                "there is no object named `tasks`, which a workload of rt-app has; if this is one \
                 of several parts, put them into one file with rt-app's doc/merge.py first",
            )
        })?;
        for entry in self.json.object(tasks)? {
            self.task(entry)?;
        }
        self.closed.barriers = std::mem::take(&mut self.events.barriers);
        self.closed.eventfds = std::mem::take(&mut self.events.semaphores);
        self.let_fork()?;
        self.check_groups()?;
        if self.inherits {
            self.closed.let_holders_inherit();
        }
        let highest = self.closed.tasks.iter().filter_map(|tasks| tasks.affinity.as_ref()?.last());
        let cpus = highest.max().map_or(0, |cpu| cpu.saturating_add(1));
        self.closed.cpus = (cpus > CPUS).then_some(cpus);
        let endless = |tasks: &Tasks| {
            matches!(tasks.phases.last(), Some(Phase::Loop(LoopPhase { times: None, .. })))
        };
        if self.closed.duration.is_none() && self.closed.tasks.iter().any(endless) {
            self.closed.duration = Some(DURATION);
            self.events.notes.insert(format!(
                "it is endless and is stopped after {DURATION}; give a `duration`"
            ));
        }
        Ok(())
    }

    fn expect_known(&self, entries: &[Entry], place: Place) -> Result<(), Error> {
        let unknown = entries.iter().find(|entry| grammar::find(&[place], &entry.key).is_none());
        unknown.map_or(Ok(()), |entry| {
            Err(self.json.wrong(entry.line, &grammar::unknown(&[place], "key", &entry.key)))
        })
    }

    fn global(&mut self, entries: &[Entry]) -> Result<(), Error> {
        self.expect_known(entries, Place::Global)?;
        for entry in entries {
            match entry.key.as_str() {
                "duration" => match self.json.integer(entry)? {
                    ..0 => {}
                    seconds => {
                        let duration = duration(seconds.into(), SECOND);
                        self.closed.duration = Some(self.json.admit(entry, duration)?);
                    }
                },
                "default_policy" => self.default = attributes::policy(self.json, entry)?,
                "pi_enabled" => self.inherits = entry.value == Value::Bool(true),
                _ => {} // logs, calibration, memory: no effect here
            }
        }
        Ok(())
    }

    fn resources(&self, entries: &[Entry]) -> Result<(), Error> {
        for resource in entries {
            let parts = self.json.object(resource)?;
            self.expect_known(parts, Place::Resource)?;
            let Some(kind) = find(parts, "type") else { continue };
            let name = self.json.text(kind)?;
            if grammar::find(&[Place::Kind], name).is_none() {
                let message = grammar::unknown(&[Place::Kind], "type of resource", name);
                return Err(self.json.wrong(kind.line, &message));
            }
        }
        Ok(())
    }

    fn task(&mut self, entry: &Entry) -> Result<(), Error> {
        let json = self.json;
        let entries = json.object(entry)?;
        let count = match find(entries, "instance") {
            None => 1,
            Some(entry) => match json.integer(entry)? {
                ..=0 => 0, // it waits for a fork
                count => json.admit(entry, TaskCount::admit(count.into()))?.get(),
            },
        };
        let number = self.closed.tasks.len();
        let key = format!("task[{number}]");
        self.lines.insert(key.clone(), entry.line);
        let places = [
            ("policy", "priority"),
            ("priority", "priority"),
            ("priority", "nice"),
            ("instance", "count"),
            ("dl-runtime", "reservation"),
            ("runtime", "slice"),
            ("taskgroup", "cgroup"),
        ];
        for (name, of) in places {
            if let Some(entry) = find(entries, name) {
                self.lines.insert(format!("{key}.{of}"), entry.line);
            }
        }
        let own = Attributes::of_task(json, entries, self.default)?;
        let mut lifetime = Lifetime {
            group: attributes::group(json, entries)?.map(str::to_string),
            ..Lifetime::default()
        };
        let nodes = self.body(entry, entries, (count, &own), &mut lifetime)?;
        let attributes = lifetime.attributes.unwrap_or(own);
        let start = match find(entries, "delay") {
            Some(entry) => {
                json.admit(entry, duration(json.integer(entry)?.max(0).into(), Nanos(1_000)))?
            }
            None => Nanos::ZERO,
        };
        let mut phases = self.lower(nodes, &format!("{key}.phases"));
        if let Some(Phase::Loop(LoopPhase { times: None, phases })) = phases.last_mut()
            && !takes_time(phases)
        {
            phases.push(Phase::Run(CALLS));
            let name = &entry.key;
            self.events
                .notes
                .insert(format!("the loop of {name} takes no time, and has {CALLS} a round here"));
        }
        let mut tasks = Tasks { count: count.max(1), start, ..Tasks::new(&entry.key, phases) };
        self.settle(&mut tasks, &attributes);
        self.place(&mut tasks, &key, lifetime.cpus);
        if let Some(group) = lifetime.group.filter(|group| group != "/") {
            if attributes.policy.is_real_time() || attributes.policy == Policy::Deadline {
                let message = "a task group is for SCHED_OTHER, SCHED_BATCH and SCHED_IDLE only";
                return Err(json.wrong(entry.line, message));
            }
            let line = self.lines.get(&format!("{key}.cgroup")).copied().unwrap_or(entry.line);
            self.groups.entry(group.clone()).or_insert(line);
            let name = group_name(&group);
            self.closed.cgroups.insert(name.clone(), CgroupOptions::default());
            tasks.cgroup = Some(name);
        }
        if count == 0 {
            self.none_at_start.insert(entry.key.clone(), number);
        }
        self.closed.tasks.push(tasks);
        Ok(())
    }

    /// Gives a task its policy, nice value or priority, slice and reservation.
    fn settle(&mut self, tasks: &mut Tasks, attributes: &Attributes) {
        let note = |policy: &str| {
            let key = grammar::find(&[Place::Policy], policy);
            key.filter(|key| key.treatment == Treatment::Approximated)
                .map(|key| format!("{policy}: {}", key.how))
        };
        // The caller refuses a number that is out of range.
        let number = |priority: i64| {
            priority.try_into().unwrap_or(if priority < 0 { i32::MIN } else { i32::MAX })
        };
        match attributes.policy {
            Policy::Of(policy) => tasks.policy = policy,
            Policy::Deadline => {
                tasks.reservation = attributes.reservation();
                self.events.notes.extend(note("SCHED_DEADLINE"));
                return;
            }
        }
        if attributes.policy.is_real_time() {
            tasks.priority = Some(number(attributes.effective_priority()));
        } else {
            tasks.nice = attributes.priority.map(number);
        }
        if let Some((slice, is_moved)) = attributes.slice() {
            tasks.slice = Some(slice);
            if is_moved {
                let name = &tasks.name;
                self.events.notes.insert(format!(
                    "the slice of {name} is {slice}: Linux gives from 0.1ms to 100ms"
                ));
            }
        }
    }

    /// Gives a task the CPUs of all its phases.
    fn place(&mut self, tasks: &mut Tasks, key: &str, cpus: Vec<Option<BTreeSet<(u16, usize)>>>) {
        let numbers = |set: &Option<BTreeSet<(u16, usize)>>| -> Option<Vec<u16>> {
            Some(set.as_ref()?.iter().map(|&(cpu, _)| cpu).collect())
        };
        let differ = cpus.windows(2).any(|pair| numbers(&pair[0]) != numbers(&pair[1]));
        if differ {
            let name = &tasks.name;
            self.events
                .notes
                .insert(format!("{name} may always run on the CPUs of any of its phases"));
        }
        let Some(all) = cpus.into_iter().collect::<Option<Vec<_>>>() else { return };
        let all: BTreeMap<u16, usize> = all.into_iter().flatten().collect();
        for (index, line) in all.values().enumerate() {
            self.lines.insert(format!("{key}.affinity[{index}]"), *line);
        }
        tasks.affinity = Some(all.into_keys().collect()).filter(|cpus: &Vec<u16>| !cpus.is_empty());
    }

    /// The phases of a task, with loops.
    fn body(
        &mut self,
        task: &Entry,
        entries: &[Entry],
        (count, own): (u32, &Attributes),
        lifetime: &mut Lifetime,
    ) -> Result<Vec<Node>, Error> {
        let own_cpus = attributes::cpus(self.json, entries)?;
        self.events.notes.extend(attributes::ignored(self.json, entries)?);
        let of = Of { task: &task.key, count };
        let Some(phases) = find(entries, "phases") else {
            lifetime.cpus.push(own_cpus);
            let places = [Place::Task, Place::Phase];
            let inner = self.events.read(of, entries, &places, task.line)?;
            let times = self.times(entries, None)?;
            if times.is_some() {
                self.events.notes.insert(
                    "a task without phases ends after its `loop`, as in rt-app since 2017; 1.0 \
                     repeats it endlessly"
                        .to_string(),
                );
            }
            return Ok(vec![Node::Loop { times, inner: events(inner), line: task.line }]);
        };
        self.refuse_events(entries)?;
        let (mut current, mut group) = (own.clone(), lifetime.group.take());
        let mut all = Vec::new();
        for phase in self.json.object(phases)? {
            let entries = self.json.object(phase)?;
            self.events.notes.extend(attributes::ignored(self.json, entries)?);
            let of_phase = attributes::cpus(self.json, entries)?;
            lifetime.cpus.push(of_phase.or_else(|| own_cpus.clone()));
            current = current.in_phase(self.json, entries)?;
            if let Some(path) = attributes::group(self.json, entries)? {
                group = Some(path.to_string());
            }
            let inner = self.events.read(of, entries, &[Place::Phase], phase.line)?;
            let times = self.times(entries, Some(1))?;
            self.keep(phase, (&current, &group), (all.is_empty(), lifetime))?;
            all.push(Node::Loop { times, inner: events(inner), line: phase.line });
            if times.is_none() {
                return Ok(all); // the other phases are never reached
            }
        }
        let times = self.times(entries, None)?;
        Ok(vec![Node::Loop { times, inner: all, line: task.line }])
    }

    /// Refuses a phase that changes what a task keeps for its lifetime.
    fn keep(
        &self,
        phase: &Entry,
        (attributes, group): (&Attributes, &Option<String>),
        (is_first, lifetime): (bool, &mut Lifetime),
    ) -> Result<(), Error> {
        if is_first {
            lifetime.attributes = Some(attributes.clone());
            lifetime.group.clone_from(group);
            return Ok(());
        }
        let entries = self.json.object(phase)?;
        let changed = |entry: Option<&Entry>, what: &str| {
            let (line, key) =
                entry.map_or((phase.line, what), |entry| (entry.line, entry.key.as_str()));
            let message = format!(
                "{key}: the phase {} changes the {what} of its task, which has one for its \
                 lifetime here; leave it out, or make it a task of its own",
                phase.key
            );
            Err(self.json.wrong(line, &message))
        };
        if !lifetime.attributes.as_ref().is_some_and(|first| first.is_same(attributes)) {
            return changed(attributes::scheduling(entries), "policy or priority");
        }
        if lifetime.group != *group {
            return changed(find(entries, "taskgroup"), "group");
        }
        Ok(())
    }

    fn times(&self, entries: &[Entry], default: Option<u64>) -> Result<Option<u64>, Error> {
        let Some(entry) = find(entries, "loop") else { return Ok(default) };
        match self.json.integer(entry)? {
            ..0 => Ok(None),
            0 => Err(self.json.wrong(entry.line, "loop: give -1 (endless) or at least 1")),
            times => {
                self.json.admit(entry, Rounds::admit(times.into())).map(|times| Some(times.get()))
            }
        }
    }

    /// Refuses events beside phases, which are never reached.
    fn refuse_events(&self, entries: &[Entry]) -> Result<(), Error> {
        let places = [Place::Task, Place::Phase];
        for entry in entries {
            let message = match grammar::find(&places, &entry.key) {
                Some(key) if key.since == grammar::OLD => grammar::outdated(key),
                Some(_) => continue,
                None if grammar::event_of(&entry.key).is_some() => {
                    "an event beside `phases` is never reached; put it into one of them".to_string()
                }
                None => grammar::unknown(&places, "key", &entry.key),
            };
            return Err(self.json.wrong(entry.line, &message));
        }
        Ok(())
    }

    /// Makes entries for the tasks that others fork.
    fn let_fork(&mut self) -> Result<(), Error> {
        let mut forked: BTreeMap<String, usize> = BTreeMap::new();
        for (name, &line) in &self.events.forks {
            let found = self.closed.tasks.iter().position(|tasks| tasks.name == *name);
            let Some(number) = found else {
                let message = format!("fork: there is no task named {name}");
                return Err(self.json.wrong(line, &message));
            };
            if let Some(line) = self.events.meets.get(name) {
                let message = format!(
                    "barrier: {name} is forked, and rt-app's barriers do not count forked tasks; \
                     use `sem_post` and `sem_wait`"
                );
                return Err(self.json.wrong(*line, &message));
            }
            forked.insert(name.clone(), number);
        }
        let counts = forks::counts(&self.closed, &self.none_at_start);
        for (name, count) in &counts {
            if *count > forks::MOST {
                let often = match *count {
                    u64::MAX => "without end".to_string(),
                    count => format!("at least {count} times"),
                };
                let message = format!(
                    "fork: {name} is forked {often}, and rt-app ends with an error after \
                     {}; give the loops around it a `loop`",
                    forks::MOST
                );
                let line = self.events.forks.get(name).copied().unwrap_or(1);
                return Err(self.json.wrong(line, &message));
            }
        }
        let mut never = BTreeSet::new();
        for (name, &number) in &self.none_at_start {
            if !forked.contains_key(name) {
                never.insert(number);
            }
        }
        let mut names = BTreeMap::new();
        for (name, &number) in &forked {
            let count = counts.get(name).copied().unwrap_or(0);
            if count == 0 {
                never.extend(self.none_at_start.get(name)); // those that would fork it never run
                continue;
            }
            let key = format!("task[{number}]");
            let mut tasks = self.closed.tasks[number].clone();
            tasks.forked = true;
            tasks.count = count.try_into().unwrap_or(u32::MAX);
            if tasks.start > Nanos::ZERO {
                let delay = std::mem::take(&mut tasks.start);
                tasks.phases.insert(0, Phase::Sleep(delay));
            }
            let at_start = !self.none_at_start.contains_key(name);
            let place = if at_start { self.closed.tasks.len() } else { number };
            if at_start {
                tasks.program = Some(name.clone());
                tasks.name = format!("{name} (forked)");
                if let Some(line) = self.lines.get(&key).copied() {
                    self.lines.insert(format!("task[{place}]"), line);
                }
                self.closed.tasks.push(tasks.clone());
            } else {
                self.closed.tasks[number] = tasks.clone();
            }
            names.insert(name.clone(), tasks.name);
        }
        for tasks in &mut self.closed.tasks {
            forks::rename(&mut tasks.phases, &names);
        }
        // Tasks that are never forked do nothing; the numbers of the others stay.
        if never.len() == self.closed.tasks.len() {
            return Err(self.json.wrong(1, "no task is started: `instance` is 0 for all of them"));
        }
        forks::remove(&mut self.closed, &mut self.lines, &never);
        Ok(())
    }

    /// Refuses groups that are in one another, or in a group together: here each has the weight of
    /// one in the root.
    fn check_groups(&self) -> Result<(), Error> {
        for (path, line) in &self.groups {
            for other in self.groups.keys().filter(|other| *other != path) {
                let is_inside =
                    path.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('/'));
                let shares = path.trim_start_matches('/').contains('/')
                    && path.split('/').nth(1) == other.split('/').nth(1);
                if is_inside || shares || group_name(path) == group_name(other) {
                    let message = format!(
                        "taskgroup: {path} shares the CPU time of a group with {other}, and \
                         groups are not in one another here: give one of them another path"
                    );
                    return Err(self.json.wrong(*line, &message));
                }
            }
        }
        Ok(())
    }

    /// The phases of a closed workload; their lines are stored by key.
    fn lower(&mut self, nodes: Vec<Node>, key: &str) -> Vec<Phase> {
        let lower = |(index, node)| {
            let key = format!("{key}[{index}]");
            match node {
                Node::Event(phase, line) => {
                    self.lines.insert(key, line);
                    phase
                }
                Node::Loop { times, inner, line } => {
                    self.lines.insert(key.clone(), line);
                    Phase::Loop(LoopPhase {
                        times,
                        phases: self.lower(inner, &format!("{key}.loop.phases")),
                    })
                }
            }
        };
        nodes.into_iter().enumerate().map(lower).collect()
    }
}

fn events(phases: Vec<(Phase, usize)>) -> Vec<Node> {
    phases.into_iter().map(|(phase, line)| Node::Event(phase, line)).collect()
}

fn takes_time(phases: &[Phase]) -> bool {
    phases.iter().any(|phase| match phase {
        Phase::Run(span) | Phase::Sleep(span) => *span > Nanos::ZERO,
        Phase::Io(io) => io.service > Nanos::ZERO,
        Phase::Timer(_) => true,
        Phase::Loop(inner) => takes_time(&inner.phases),
        _ => false,
    })
}

/// The name of a task group here, where a name is no path.
fn group_name(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}

#[cfg(test)]
mod tests;
