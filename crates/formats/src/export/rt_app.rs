//! Writes a closed workload as rt-app's JSON.
//!
//! rt-app has no pipes, sockets and event counters. Where each message of one has the same size, or
//! a multiple of it, they become semaphores (`sem_post`, `sem_wait`: rt-app since 2026). So do
//! joins. A task that handles whichever of several objects is ready has no words there and is
//! refused. Times are whole microseconds; what is left of a run is added to the next one.

use super::reproducer::{Head, label};
use schedsim::Nanos;
use schedsim::workload::{
    Closed, LoopPhase, Phase, SchedulingPolicy, SocketKind, Tasks, TimerMode,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The largest number that rt-app reads.
const LARGEST: u64 = i32::MAX as u64;
/// The most tasks of one name that rt-app forks.
const MOST_FORKS: u32 = 1024;
/// The most events that are written out of loops in loops in loops, which rt-app has not.
const MOST_UNROLLED: u64 = 100_000;
const USE_C: &str = "write it with --to c";

/// The text of the file. Tasks that need not end keep rt-app running until the workload's duration
/// is over; if it has none, until `length` is.
///
/// # Errors
/// If rt-app has no words for something; the message says what to do.
pub fn text(closed: &Closed, length: Option<Nanos>) -> Result<String, String> {
    let mut writer = Writer::new(closed);
    writer.streams()?;
    writer.joins()?;
    let mut tasks = Vec::new();
    for of in &closed.tasks {
        let task = writer.task(of).map_err(|what| format!("{}: {what}", of.name))?;
        tasks.push(format!("\t\t{} : {task}", json!(of.name)));
    }
    let duration = writer.duration(length)?;
    let inherits = writer.inherits()?;
    let head = writer.head.text(closed, "rt-app FILE.json runs it.");
    let head: String = head.lines().map(|line| format!("\t{line}\n")).collect();
    Ok(format!(
        "{{\n\t/*\n{head}\t*/\n\t\"tasks\" : {{\n{}\n\t}},\n\t\"global\" : {{\n\t\t\"duration\" : \
         {duration},\n\t\t\"calibration\" : \"CPU0\",\n\t\t\"default_policy\" : \
         \"SCHED_OTHER\",\n\t\t\"pi_enabled\" : {inherits},\n\t\t\"lock_pages\" : \
         false,\n\t\t\"log_size\" : \"disable\"\n\t}}\n}}\n",
        tasks.join(",\n")
    ))
}

/// A step of a task: a key with its value, or a loop.
#[derive(Clone)]
enum Node {
    Event(&'static str, String),
    Loop(Option<u64>, Vec<Node>),
}

/// What goes from a task to another in messages: a pipe, a direction of a socket.
#[derive(Default)]
struct Stream {
    /// The greatest common divisor of all sizes.
    unit: u64,
    is_datagram: bool,
}

struct Writer<'c> {
    closed: &'c Closed,
    head: Head,
    streams: BTreeMap<String, Stream>,
    /// How often each task is joined, by all.
    joined: BTreeMap<&'c str, u64>,
    /// Initial tokens that are not yet posted.
    tokens: Vec<Node>,
}

/// The time of a task so far.
#[derive(Default)]
struct Clock {
    /// What is left of runs that are no whole microseconds.
    rest: u64,
    /// The latest time until which it slept.
    until: u64,
}

impl<'c> Writer<'c> {
    fn new(closed: &'c Closed) -> Writer<'c> {
        let token = |name: &String, count: u32| {
            Node::Loop(Some(count.into()), vec![Node::Event("sem_post", json!(name).to_string())])
        };
        let counted = closed.eventfds.iter().filter(|(_, options)| options.count > 0);
        Writer {
            closed,
            head: Head::default(),
            streams: BTreeMap::new(),
            joined: BTreeMap::new(),
            tokens: counted.map(|(name, options)| token(name, options.count)).collect(),
        }
    }

    /// The streams of messages and their sizes.
    fn streams(&mut self) -> Result<(), String> {
        for tasks in &self.closed.tasks {
            for place in self.closed.reached_by(tasks, &tasks.name) {
                let (name, bytes, partial) = match place.phase {
                    Phase::Write { pipe, bytes } => (pipe_name(pipe), *bytes, false),
                    Phase::Read { pipe, bytes, partial } => (pipe_name(pipe), *bytes, *partial),
                    Phase::Send { socket, bytes, reply } => {
                        (socket_name(socket, *reply), *bytes, false)
                    }
                    Phase::Receive { socket, bytes, partial, reply } => {
                        (socket_name(socket, *reply), *bytes, *partial)
                    }
                    _ => continue,
                };
                let is_datagram = match place.phase {
                    Phase::Send { socket, .. } | Phase::Receive { socket, .. } => {
                        let options = self.closed.sockets.get(socket).copied();
                        options.unwrap_or_default().kind == SocketKind::Datagram
                    }
                    _ => false,
                };
                let stream = self.streams.entry(name).or_default();
                stream.is_datagram = is_datagram;
                // A task that takes what is there takes a message.
                if !partial {
                    stream.unit = divisor(stream.unit, bytes);
                } else if !is_datagram {
                    self.head.count("reads of what is there are reads of one message");
                }
            }
        }
        Ok(())
    }

    fn joins(&mut self) -> Result<(), String> {
        for tasks in &self.closed.tasks {
            for place in self.closed.reached_by(tasks, "") {
                let Phase::Join(name) = place.phase else { continue };
                let times = place.times.saturating_mul(u64::from(tasks.count));
                if times == u64::MAX {
                    return Err(format!(
                        "{}: it waits for the end of {name} in an endless loop: {USE_C}",
                        tasks.name
                    ));
                }
                let of = self.closed.tasks.iter().find(|of| of.name == *name);
                if of.is_some_and(|of| of.forked && of.count > 1) {
                    return Err(format!(
                        "{}: it waits for as many of {name} as there are then, which rt-app \
                         cannot count: {USE_C}",
                        tasks.name
                    ));
                }
                *self.joined.entry(name).or_default() += times;
            }
        }
        Ok(())
    }

    /// The object of a task.
    fn task(&mut self, tasks: &'c Tasks) -> Result<String, String> {
        if tasks.forked && tasks.count > MOST_FORKS {
            return Err(format!(
                "it is forked up to {} times, and rt-app forks {MOST_FORKS}: {USE_C}",
                tasks.count
            ));
        }
        if tasks.process {
            self.head.count("processes are threads");
        }
        let mut nodes = Vec::new();
        if !tasks.forked {
            nodes.append(&mut self.tokens);
        }
        let mut clock = Clock::default();
        self.nodes(tasks, &tasks.phases, &mut clock, &mut nodes, &mut BTreeSet::new())?;
        let joins = self.joined.get(tasks.name.as_str()).copied().unwrap_or(0);
        if joins > 0 {
            nodes.push(repeated(joins, Node::Event("sem_post", end_of(&tasks.name))));
        }
        if nodes.is_empty() {
            nodes.push(Node::Event("run", "0".to_string()));
        }
        let (times, nodes) = match <[Node; 1]>::try_from(nodes) {
            Ok([Node::Loop(times, inner)]) => (times, inner),
            Ok(one) => (Some(1), one.to_vec()),
            Err(nodes) => (Some(1), nodes),
        };
        let mut phases = Vec::new();
        flatten(nodes, &mut phases)?;
        let mut keys = self.attributes(tasks)?;
        keys.push(("loop", times.map_or("-1".to_string(), |times| times.to_string())));
        let mut text = String::from("{\n");
        for (key, value) in keys {
            let _ = writeln!(text, "\t\t\t\"{key}\" : {value},");
        }
        text += "\t\t\t\"phases\" : {\n";
        for (number, (times, events)) in phases.iter().enumerate() {
            let times = times.map_or("-1".to_string(), |times| times.to_string());
            let _ = write!(text, "\t\t\t\t\"p{number}\" : {{ \"loop\" : {times}");
            for (number, (event, value)) in events.iter().enumerate() {
                let _ = write!(text, ", \"{event}{number}\" : {value}");
            }
            text += if number + 1 < phases.len() { " },\n" } else { " }\n" };
        }
        Ok(text + "\t\t\t}\n\t\t}")
    }

    fn attributes(&mut self, tasks: &Tasks) -> Result<Vec<(&'static str, String)>, String> {
        let mut keys = Vec::new();
        let count = if tasks.forked { 0 } else { tasks.count };
        keys.push(("instance", count.to_string()));
        if tasks.start > Nanos::ZERO {
            keys.push(("delay", self.micros(tasks.start)?.to_string()));
        }
        let policy = match tasks.policy {
            _ if tasks.reservation.is_some() => "SCHED_DEADLINE",
            SchedulingPolicy::Other => "SCHED_OTHER",
            SchedulingPolicy::Batch => "SCHED_BATCH",
            SchedulingPolicy::Idle => "SCHED_IDLE",
            SchedulingPolicy::Fifo => "SCHED_FIFO",
            SchedulingPolicy::Rr => "SCHED_RR",
        };
        keys.push(("policy", json!(policy).to_string()));
        if let Some(priority) = tasks.nice.or(tasks.priority) {
            keys.push(("priority", priority.to_string()));
        }
        if let Some(of) = tasks.reservation {
            keys.push(("dl-runtime", self.micros(of.runtime)?.to_string()));
            keys.push(("dl-period", self.micros(of.period)?.to_string()));
            let deadline = of.deadline.unwrap_or(of.period);
            keys.push(("dl-deadline", self.micros(deadline)?.to_string()));
        } else if let Some(slice) = tasks.slice {
            keys.push(("dl-runtime", self.micros(slice)?.to_string()));
        }
        if let Some(cpus) = &tasks.affinity {
            keys.push(("cpus", json!(cpus).to_string()));
        }
        if let Some(name) = &tasks.cgroup {
            if self.closed.cgroups.get(name).is_some_and(|of| *of != Default::default()) {
                return Err(format!(
                    "its group {name} has a weight or a limit, and rt-app's task groups have none: \
                     leave them out"
                ));
            }
            keys.push(("taskgroup", json!(format!("/{name}")).to_string()));
        }
        Ok(keys)
    }

    fn nodes(
        &mut self,
        tasks: &Tasks,
        phases: &'c [Phase],
        clock: &mut Clock,
        nodes: &mut Vec<Node>,
        lists: &mut BTreeSet<&'c str>,
    ) -> Result<(), String> {
        for phase in phases {
            match phase {
                Phase::Loop(LoopPhase { times, phases }) => {
                    let mut inner = Vec::new();
                    let mut clock = Clock { until: u64::MAX, rest: 0 };
                    self.nodes(tasks, phases, &mut clock, &mut inner, lists)?;
                    if !inner.is_empty() {
                        nodes.push(Node::Loop(*times, inner));
                    }
                }
                Phase::Exec(name) => {
                    let list = self.closed.lists.get_key_value(name);
                    let (name, list) = list.ok_or_else(|| format!("there is no list {name}"))?;
                    if !lists.insert(name) {
                        return Err(format!(
                            "the list {name} continues with itself, and rt-app has no such jump: \
                             write it as a loop"
                        ));
                    }
                    self.nodes(tasks, list, clock, nodes, lists)?;
                }
                _ => self.event(tasks, phase, clock, nodes)?,
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        tasks: &Tasks,
        phase: &Phase,
        clock: &mut Clock,
        nodes: &mut Vec<Node>,
    ) -> Result<(), String> {
        let text = |name: &str| json!(name).to_string();
        let mut push = |event, value| nodes.push(Node::Event(event, value));
        match phase {
            Phase::Run(span) => {
                let all = span.0.saturating_add(clock.rest);
                clock.rest = all % 1_000;
                if clock.rest != 0 {
                    self.head
                        .count("runs are whole microseconds, and the rest is added to the next");
                }
                spread("run", all / 1_000, nodes);
            }
            Phase::Sleep(span) => {
                let span = self.micros(*span)?;
                spread("sleep", span, nodes);
            }
            Phase::SleepUntil(at) => {
                if tasks.forked {
                    self.head
                        .count("tasks that are forked sleep until a time after their own begin");
                }
                if clock.until == u64::MAX {
                    return Err(format!("it sleeps until {} in a loop: {USE_C}", at.exact()));
                }
                let begin = if tasks.forked { 0 } else { tasks.start.0 };
                let last = clock.until.max(begin);
                if at.0 > last {
                    clock.until = at.0;
                    let period = self.micros(Nanos(at.0 - last))?;
                    push("timer", timer("unique until", period, TimerMode::Absolute));
                }
            }
            Phase::Timer(of) => {
                let kind = if of.shared { "shared" } else { "unique" };
                let period = self.micros(of.period)?.max(1);
                push("timer", timer(&format!("{kind} {}", of.name), period, of.mode));
            }
            Phase::Yield => push("yield", text("")),
            Phase::Lock(name) => {
                let of = self.closed.mutexes.get(name).copied().unwrap_or_default();
                if of.spin.is_some() {
                    return Err(format!("rt-app cannot spin for the mutex {name}: {USE_C}"));
                }
                if of.handoff && !of.inherit {
                    self.head
                        .count("locks may be taken by any task, not handed to the first waiter");
                }
                push("lock", text(name));
            }
            Phase::Unlock(name) => push("unlock", text(name)),
            Phase::Wait { condition, mutex } => {
                push("wait", json!({ "ref": condition, "mutex": mutex }).to_string());
            }
            Phase::Signal(name) => push("signal", text(name)),
            Phase::Broadcast(name) => push("broad", text(name)),
            Phase::Barrier(name) => {
                self.expect_all_come(name)?;
                push("barrier", text(name));
            }
            Phase::Write { pipe, bytes } => {
                let tokens = self.messages(&pipe_name(pipe), *bytes, false);
                nodes.push(repeated(tokens, Node::Event("sem_post", text(&pipe_name(pipe)))));
            }
            Phase::Read { pipe, bytes, partial } => {
                let tokens = self.messages(&pipe_name(pipe), *bytes, *partial);
                nodes.push(repeated(tokens, Node::Event("sem_wait", text(&pipe_name(pipe)))));
            }
            Phase::Send { socket, bytes, reply } => {
                let name = socket_name(socket, *reply);
                let tokens = self.messages(&name, *bytes, false);
                nodes.push(repeated(tokens, Node::Event("sem_post", text(&name))));
            }
            Phase::Receive { socket, bytes, partial, reply } => {
                let name = socket_name(socket, *reply);
                let tokens = self.messages(&name, *bytes, *partial);
                nodes.push(repeated(tokens, Node::Event("sem_wait", text(&name))));
            }
            Phase::Post { eventfd, count } => {
                nodes.push(repeated(*count, Node::Event("sem_post", text(eventfd))));
            }
            Phase::Take { eventfd } => {
                if !self.closed.eventfds.get(eventfd).is_some_and(|of| of.semaphore) {
                    self.head.count("event counters give one at a time, not all they have");
                }
                push("sem_wait", text(eventfd));
            }
            Phase::Io(io) => {
                self.head.count("requests to a device are sleeps of its service time");
                let service = self.micros(io.service)?;
                spread("sleep", service, nodes);
            }
            Phase::Fork(name) => push("fork", text(name)),
            Phase::Join(name) => {
                let of = self.closed.tasks.iter().find(|of| of.name == *name);
                let count = of.map_or(1, |of| u64::from(of.count));
                nodes.push(repeated(count, Node::Event("sem_wait", end_of(name))));
            }
            Phase::Poll(_) | Phase::Watch(_) => {
                self.head
                    .count("waits for one of several objects are left out: what follows waits");
            }
            Phase::Serve(serve) if serve.handle.is_empty() => {
                self.head
                    .count("waits for one of several objects are left out: what follows waits");
            }
            Phase::Serve(_) | Phase::EventLoop(_) => {
                let what = "what it does depends on which of several objects is ready (epoll)";
                return Err(format!("{what}, which rt-app cannot say: {USE_C}"));
            }
            Phase::Loop(_) | Phase::Exec(_) => unreachable!("they are no events"),
        }
        Ok(())
    }

    /// The messages of a transfer.
    fn messages(&mut self, stream: &str, bytes: u64, partial: bool) -> u64 {
        self.head
            .count("messages of pipes and sockets are tokens of a semaphore, which is never full");
        match self.streams.get(stream) {
            Some(Stream { unit, is_datagram: false }) if !partial => {
                bytes.checked_div(*unit).unwrap_or(1)
            }
            _ => 1,
        }
    }

    /// A time in microseconds.
    fn micros(&mut self, span: Nanos) -> Result<u64, String> {
        let micros = span.0.saturating_add(500) / 1_000;
        if !span.0.is_multiple_of(1_000) {
            self.head.count("times are rounded to microseconds");
        }
        Ok(micros)
    }

    /// rt-app's barriers wait for as many tasks as there are references.
    fn expect_all_come(&self, name: &str) -> Result<(), String> {
        let is_it = |phase: &Phase| matches!(phase, Phase::Barrier(of) if of == name);
        let mut references = 0;
        let mut comers = 0;
        for tasks in &self.closed.tasks {
            let places = self.closed.reached_by(tasks, "");
            let own = places.iter().filter(|place| is_it(place.phase)).count() as u64;
            if own > 0 && tasks.forked {
                return Err(format!(
                    "{} comes to the barrier {name} and is forked, which rt-app cannot count: \
                     {USE_C}",
                    tasks.name
                ));
            }
            references += own * u64::from(tasks.count);
            comers += if own > 0 { u64::from(tasks.count) } else { 0 };
        }
        let given = self.closed.barriers.get(name).and_then(|of| of.tasks).map(u64::from);
        let wanted = given.unwrap_or(comers);
        match wanted == references {
            true => Ok(()),
            false => Err(format!(
                "the barrier {name} waits for {wanted} tasks, and rt-app's for as many as there \
                 are references to it, {references}: {USE_C}"
            )),
        }
    }

    /// The seconds after which rt-app stops.
    fn duration(&mut self, length: Option<Nanos>) -> Result<i64, String> {
        const SECOND: u64 = 1_000_000_000;
        let has_daemons = self.closed.tasks.iter().any(|tasks| tasks.daemon);
        let span = match (self.closed.duration, has_daemons) {
            (Some(duration), _) => duration,
            (None, false) => return Ok(-1),
            (None, true) => length.ok_or(
                "tasks need not end (`daemon`), for which rt-app would wait: give the workload a \
                 `duration`",
            )?,
        };
        if !span.0.is_multiple_of(SECOND) {
            self.head.count("the duration is whole seconds, rounded up");
        }
        i64::try_from(span.0.div_ceil(SECOND).min(LARGEST)).map_err(|error| error.to_string())
    }

    /// Whether all mutexes inherit priorities, or none.
    fn inherits(&self) -> Result<bool, String> {
        let mut used = BTreeSet::new();
        for tasks in &self.closed.tasks {
            for place in self.closed.reached_by(tasks, "") {
                if let Phase::Lock(name) = place.phase {
                    used.insert(name.clone());
                }
            }
        }
        let inherits = |name: &&String| self.closed.mutexes.get(*name).is_some_and(|of| of.inherit);
        match used.iter().filter(inherits).count() {
            0 => Ok(false),
            all if all == used.len() => Ok(true),
            _ => Err(format!(
                "some mutexes inherit priorities and others do not, and rt-app has one \
                 `pi_enabled` for all: {USE_C}"
            )),
        }
    }
}

/// A phase of rt-app: how often, and its events.
type Rounds = (Option<u64>, Vec<(&'static str, String)>);

/// The phases of rt-app: loops of events, one level deep.
fn flatten(nodes: Vec<Node>, phases: &mut Vec<Rounds>) -> Result<(), String> {
    let mut plain = Vec::new();
    let flush = |plain: &mut Vec<_>, phases: &mut Vec<_>| {
        if !plain.is_empty() {
            phases.push((Some(1), std::mem::take(plain)));
        }
    };
    for node in nodes {
        match node {
            Node::Event(event, value) => plain.push((event, value)),
            Node::Loop(times, inner) => {
                flush(&mut plain, phases);
                let events: Option<Vec<_>> = inner
                    .iter()
                    .map(|node| match node {
                        Node::Event(event, value) => Some((*event, value.clone())),
                        Node::Loop(..) => None,
                    })
                    .collect();
                if let Some(events) = events {
                    if times.is_some_and(|times| times > LARGEST) {
                        return Err(format!("a loop has more than {LARGEST} rounds: {USE_C}"));
                    }
                    phases.push((times, events));
                    continue;
                }
                let mut once = Vec::new();
                flatten(inner, &mut once)?;
                let events: usize = once.iter().map(|(_, events)| events.len()).sum();
                let all = times.map(|times| times.saturating_mul(events as u64));
                match (times, all) {
                    (Some(times), Some(all)) if all <= MOST_UNROLLED => {
                        (0..times).for_each(|_| phases.extend(once.iter().cloned()));
                    }
                    _ => {
                        return Err(format!(
                            "a loop in a loop beside others, or deeper, has more than \
                             {MOST_UNROLLED} events when it is written out, and rt-app has loops \
                             of phases only: {USE_C}"
                        ));
                    }
                }
            }
        }
    }
    flush(&mut plain, phases);
    Ok(())
}

fn repeated(times: u64, node: Node) -> Node {
    if times == 1 { node } else { Node::Loop(Some(times), vec![node]) }
}

/// An event of this number of microseconds, in as many parts as rt-app needs.
fn spread(event: &'static str, mut micros: u64, nodes: &mut Vec<Node>) {
    while micros > 0 {
        let part = micros.min(LARGEST);
        nodes.push(Node::Event(event, part.to_string()));
        micros -= part;
    }
}

fn timer(name: &str, period: u64, mode: TimerMode) -> String {
    let mode = if mode == TimerMode::Absolute { "absolute" } else { "relative" };
    json!({ "ref": name, "period": period, "mode": mode }).to_string()
}

fn pipe_name(pipe: &str) -> String {
    format!("pipe {pipe}")
}

fn socket_name(socket: &str, reply: bool) -> String {
    format!("{} {socket}", if reply { "reply" } else { "socket" })
}

fn end_of(task: &str) -> String {
    json!(format!("end of {}", label(task))).to_string()
}

fn divisor(a: u64, b: u64) -> u64 {
    if a == 0 { b } else { divisor(b % a, a) }
}
