//! Writes a closed workload as a program in C that needs nothing but the C library. It consists of
//! the tables of its tasks, and of `c/runtime.c`. This does what they say as the runner of guests
//! does.
//!
//! It prints how many operations of each kind were done. Approximated are requests to devices, which
//! are sleeps, and mutexes that are handed over; control groups are refused.

use super::reproducer::{Head, label};
use schedsim::Nanos;
use schedsim::workload::{
    Closed, EpollObject, EventLoopPhase, LoopPhase, MutexOptions, Phase, SchedulingPolicy,
    ServePhase, SocketKind, Spin, Tasks, TimerMode, Trigger,
};
use std::collections::BTreeMap;
use std::fmt::Write;

const RUNTIME: &str = include_str!("c/runtime.c");
const TABLES: &str = "/*TABLES*/\n";
/// What the runtime does not mention where there is no pipe or socket.
const USED_IF_ANY: [&str; 2] = ["int capacities", "int datagrams"];
/// The largest pipe that Linux gives without privileges.
const LARGEST_PIPE: u64 = 1 << 20;

/// The text of the program.
///
/// # Errors
/// If C has no words for something; the message says what to do.
pub fn text(closed: &Closed) -> Result<String, String> {
    if let Some(name) = closed.cgroups.keys().next() {
        return Err(format!(
            "there is a control group, {name}, which only an administrator can make: leave it out \
             of the workload, and run the program in a group"
        ));
    }
    let mut program = Program::new(closed);
    let mut kinds = String::new();
    let mut scripts = String::new();
    for (number, tasks) in closed.tasks.iter().enumerate() {
        let ops = program.ops(tasks).map_err(|what| format!("{}: {what}", tasks.name))?;
        let _ = write!(
            scripts,
            "/* {} */\nstatic const struct op ops{number}[] = {{\n",
            label(&tasks.name)
        );
        for Op { what, a, c, b } in ops {
            let _ = writeln!(scripts, "    {{ {what}, {a}, {c}, {b} }},");
        }
        scripts += "};\n";
        program.kind(number, tasks, &mut scripts, &mut kinds);
    }
    let tables = program.tables(&kinds)?;
    let head =
        program.head.text(closed, "Build and run it with: cc -O2 -pthread FILE.c && ./a.out");
    let (before, after) =
        RUNTIME.split_once(TABLES).ok_or("c/runtime.c has no place for tables")?;
    Ok(format!("/*\n{head}*/\n{before}{scripts}{tables}{after}"))
}

/// An operation, as `struct op`.
struct Op {
    what: &'static str,
    a: i64,
    c: i64,
    b: i64,
}

/// Numbers for names, in the order of their first use.
#[derive(Default)]
struct Numbers(BTreeMap<String, usize>, Vec<String>);

impl Numbers {
    fn of(&mut self, name: &str) -> usize {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let number = self.1.len();
        self.0.insert(name.to_string(), number);
        self.1.push(name.to_string());
        number
    }

    fn count(&self) -> usize {
        self.1.len()
    }
}

/// A wait for a set, as `struct serve`.
struct Serve {
    set: usize,
    begin: usize,
    after: usize,
    handlers: Vec<usize>,
    ends: Option<Vec<usize>>,
}

struct Program<'c> {
    closed: &'c Closed,
    head: Head,
    tasks: BTreeMap<&'c str, usize>,
    mutexes: Numbers,
    conditions: Numbers,
    barriers: Numbers,
    /// The tasks that come to each barrier if it does not say.
    comers: BTreeMap<String, u64>,
    pipes: Numbers,
    sockets: Numbers,
    eventfds: Numbers,
    devices: Numbers,
    sets: Numbers,
    shared_timers: Numbers,
    serves: Vec<Serve>,
    /// The most of the own timers of a task, the deepest loop, the largest message.
    timers: usize,
    depth: usize,
    largest: u64,
}

/// The ops of a task so far.
#[derive(Default)]
struct Layout {
    ops: Vec<Op>,
    timers: Numbers,
    lists: BTreeMap<String, usize>,
    jumps: Vec<(usize, String)>,
}

impl<'c> Program<'c> {
    fn new(closed: &'c Closed) -> Program<'c> {
        let names = closed.tasks.iter().enumerate();
        let mut comers: BTreeMap<String, u64> = BTreeMap::new();
        for tasks in &closed.tasks {
            let mut own: Vec<&String> = Vec::new();
            for place in closed.reached_by(tasks, "") {
                if let Phase::Barrier(name) = place.phase
                    && !own.contains(&name)
                {
                    own.push(name);
                    *comers.entry(name.clone()).or_default() += u64::from(tasks.count);
                }
            }
        }
        Program {
            closed,
            head: Head::default(),
            tasks: names.map(|(number, tasks)| (tasks.name.as_str(), number)).collect(),
            mutexes: Numbers::default(),
            conditions: Numbers::default(),
            barriers: Numbers::default(),
            comers,
            pipes: Numbers::default(),
            sockets: Numbers::default(),
            eventfds: Numbers::default(),
            devices: Numbers::default(),
            sets: Numbers::default(),
            shared_timers: Numbers::default(),
            serves: Vec::new(),
            timers: 0,
            depth: 0,
            largest: 1,
        }
    }

    fn ops(&mut self, tasks: &Tasks) -> Result<Vec<Op>, String> {
        let mut layout = Layout::default();
        self.append(&mut layout, &tasks.phases, 0)?;
        layout.push("END", 0, 0, 0);
        while let Some((at, name)) = layout.jumps.pop() {
            let begin = match layout.lists.get(&name) {
                Some(begin) => *begin,
                None => {
                    let begin = layout.ops.len();
                    layout.lists.insert(name.clone(), begin);
                    let closed = self.closed;
                    let list = closed.lists.get(&name);
                    let list = list.ok_or_else(|| format!("there is no list named {name}"))?;
                    self.append(&mut layout, list, 0)?;
                    layout.push("END", 0, 0, 0);
                    begin
                }
            };
            layout.ops[at] = Op { what: "GOTO", a: 0, c: 0, b: begin as i64 };
        }
        self.timers = self.timers.max(layout.timers.count());
        Ok(layout.ops)
    }

    fn append(
        &mut self,
        layout: &mut Layout,
        phases: &[Phase],
        depth: usize,
    ) -> Result<(), String> {
        self.depth = self.depth.max(depth);
        for phase in phases {
            self.phase(layout, phase, depth)?;
        }
        Ok(())
    }

    fn phase(&mut self, layout: &mut Layout, phase: &Phase, depth: usize) -> Result<(), String> {
        match phase {
            Phase::Run(span) => layout.push("RUN", 0, 0, span.0),
            Phase::Sleep(span) => layout.push("SLEEP", 0, 0, span.0),
            Phase::SleepUntil(span) => layout.push("UNTIL", 0, 0, span.0),
            Phase::Yield => layout.push("YIELD", 0, 0, 0),
            Phase::Timer(timer) => {
                let number = match timer.shared {
                    true => self.shared_timers.of(&timer.name),
                    false => layout.timers.of(&timer.name),
                };
                let absolute = timer.mode == TimerMode::Absolute;
                let kind = 2 * usize::from(timer.shared) + usize::from(absolute);
                layout.push("TIMER", number, kind, timer.period.0);
            }
            Phase::Lock(name) => layout.push("LOCK", self.mutexes.of(name), 0, 0),
            Phase::Unlock(name) => layout.push("UNLOCK", self.mutexes.of(name), 0, 0),
            Phase::Wait { condition, mutex } => {
                layout.push("WAIT", self.conditions.of(condition), self.mutexes.of(mutex), 0);
            }
            Phase::Signal(name) => layout.push("SIGNAL", self.conditions.of(name), 0, 0),
            Phase::Broadcast(name) => layout.push("BROADCAST", self.conditions.of(name), 0, 0),
            Phase::Barrier(name) => layout.push("BARRIER", self.barriers.of(name), 0, 0),
            Phase::Write { pipe, bytes } => {
                layout.push("WRITE", self.pipes.of(pipe), 0, self.message(*bytes)?);
            }
            Phase::Read { pipe, bytes, partial } => {
                let bytes = self.message(*bytes)?;
                layout.push("READ", self.pipes.of(pipe), usize::from(*partial), bytes);
            }
            Phase::Send { socket, bytes, reply } => {
                let bytes = self.message(*bytes)?;
                layout.push("SEND", self.sockets.of(socket), usize::from(*reply), bytes);
            }
            Phase::Receive { socket, bytes, partial, reply } => {
                let bytes = self.message(*bytes)?;
                let options = self.closed.sockets.get(socket).copied().unwrap_or_default();
                let partial = *partial || options.kind == SocketKind::Datagram;
                let how = usize::from(!*reply) + 2 * usize::from(partial);
                layout.push("RECEIVE", self.sockets.of(socket), how, bytes);
            }
            Phase::Post { eventfd, count } => {
                layout.push("POST", self.eventfds.of(eventfd), 0, *count);
            }
            Phase::Take { eventfd } => layout.push("TAKE", self.eventfds.of(eventfd), 0, 0),
            Phase::Poll(set) => layout.push("POLL", self.sets.of(set), 0, 0),
            Phase::Watch(watch) => {
                let set = self.closed.epolls.get(&watch.epoll);
                let place =
                    set.and_then(|set| set.sources.iter().position(|of| of.object == watch.source));
                let place = place.ok_or("a set lacks a source")?;
                layout.push("WATCH", self.sets.of(&watch.epoll), place, u64::from(!watch.off));
            }
            Phase::Io(io) => {
                self.head.count("requests to a device are sleeps of its service time, as many at a time as it serves");
                layout.push("IO", self.devices.of(&io.device), 0, io.service.0);
            }
            Phase::Fork(name) => layout.push("FORK", self.task(name)?, 0, 0),
            Phase::Join(name) => layout.push("JOIN", self.task(name)?, 0, 0),
            Phase::Exec(list) => {
                layout.jumps.push((layout.ops.len(), list.clone()));
                layout.push("END", 0, 0, 0);
            }
            Phase::Loop(LoopPhase { times, phases }) => {
                let back = layout.ops.len();
                self.append(layout, phases, depth + 1)?;
                layout.ops.push(Op {
                    what: "REPEAT",
                    a: back as i64,
                    c: depth as i64,
                    b: times.map_or(-1, |times| i64::try_from(times).unwrap_or(-1)),
                });
            }
            Phase::Serve(serve) => self.serve(layout, serve, depth)?,
            Phase::EventLoop(event_loop) => self.event_loop(layout, event_loop, depth)?,
        }
        Ok(())
    }

    /// A wait, and behind it the handlers, each of which continues with the next.
    fn serve(
        &mut self,
        layout: &mut Layout,
        phase: &ServePhase,
        depth: usize,
    ) -> Result<(), String> {
        let (number, set) = (self.serves.len(), self.sets.of(&phase.epoll));
        let begin = layout.ops.len();
        self.serves.push(Serve { set, begin, after: 0, handlers: Vec::new(), ends: None });
        layout.push("SERVE", number, 0, 0);
        if !phase.handle.is_empty() {
            layout.push("HANDLE", number, 0, 0);
        }
        let mut handlers = Vec::new();
        for phases in &phase.handle {
            handlers.push(layout.ops.len());
            self.append(layout, phases, depth)?;
            layout.push("HANDLE", number, 0, 0);
        }
        let after = layout.ops.len();
        self.serves[number] = Serve { set, begin, after, handlers, ends: None };
        Ok(())
    }

    /// A wait, and behind it for each object its rounds, each of which continues with the next
    /// object.
    fn event_loop(
        &mut self,
        layout: &mut Layout,
        phase: &EventLoopPhase,
        depth: usize,
    ) -> Result<(), String> {
        let (number, set) = (self.serves.len(), self.sets.of(&phase.epoll));
        let begin = layout.ops.len();
        self.serves.push(Serve { set, begin, after: 0, handlers: Vec::new(), ends: None });
        layout.push("SERVE", number, 0, 0);
        if phase.round > Nanos::ZERO {
            layout.push("RUN", 0, 0, phase.round.0);
        }
        layout.push("HANDLE", number, 0, 0);
        let (mut handlers, mut ends) = (Vec::new(), Vec::new());
        for rounds in &phase.handle {
            handlers.push(layout.ops.len());
            for phases in rounds {
                self.append(layout, phases, depth)?;
                layout.push("HANDLE", number, 0, 0);
            }
            ends.push(layout.ops.len());
        }
        let after = layout.ops.len();
        self.serves[number] = Serve { set, begin, after, handlers, ends: Some(ends) };
        Ok(())
    }

    fn message(&mut self, bytes: u64) -> Result<u64, String> {
        const MOST: u64 = 1 << 30;
        if bytes > MOST {
            return Err(format!(
                "a message of {bytes} bytes needs more memory than {MOST} bytes: write it in parts"
            ));
        }
        self.largest = self.largest.max(bytes);
        Ok(bytes)
    }

    fn task(&self, name: &str) -> Result<usize, String> {
        self.tasks.get(name).copied().ok_or_else(|| format!("there is no task named {name}"))
    }

    /// The entry of a task in the table of kinds.
    fn kind(&mut self, number: usize, tasks: &Tasks, scripts: &mut String, kinds: &mut String) {
        let cpus = match &tasks.affinity {
            None => "0".to_string(),
            Some(cpus) => {
                let list: String = cpus.iter().map(|cpu| format!("{cpu}, ")).collect();
                let _ = writeln!(scripts, "static const int cpus{number}[] = {{ {list}-1 }};");
                format!("cpus{number}")
            }
        };
        let policy = match tasks.policy {
            _ if tasks.reservation.is_some() => "6 /* SCHED_DEADLINE */",
            SchedulingPolicy::Other => "SCHED_OTHER",
            SchedulingPolicy::Batch => "SCHED_BATCH",
            SchedulingPolicy::Idle => "SCHED_IDLE",
            SchedulingPolicy::Fifo => "SCHED_FIFO",
            SchedulingPolicy::Rr => "SCHED_RR",
        };
        let (runtime, deadline, period) = tasks.reservation.map_or((0, 0, 0), |of| {
            (of.runtime.0, of.deadline.unwrap_or(of.period).0, of.period.0)
        });
        let _ = writeln!(
            kinds,
            "    {{ {}, ops{number}, {}, {policy}, {}, {}, {}, {runtime}, {deadline}, {period}, {}, \
             {cpus}, {}, {}, {} }},",
            literal(tasks.program()),
            tasks.count,
            tasks.nice.unwrap_or(0),
            tasks.priority.unwrap_or(0),
            tasks.slice.map_or(0, |slice| slice.0),
            tasks.start.0,
            u8::from(tasks.forked),
            u8::from(tasks.process),
            u8::from(tasks.daemon)
        );
    }

    /// The tables of objects.
    fn tables(&mut self, kinds: &str) -> Result<String, String> {
        let closed = self.closed;
        let mut out = String::new();
        let mut sets = String::new();
        let (mut sources, mut most_sources, mut most_events) = (0, 1, 1);
        for (number, name) in self.sets.1.clone().iter().enumerate() {
            let set = closed.epolls.get(name).ok_or_else(|| format!("there is no set {name}"))?;
            let _ = writeln!(out, "static const struct source sources{number}[] = {{");
            for source in &set.sources {
                let (object, of, side) = match &source.object {
                    EpollObject::Pipe(name) => ("OF_PIPE", self.pipes.of(name), 0),
                    EpollObject::PipeRoom(name) => ("OF_PIPE_ROOM", self.pipes.of(name), 0),
                    EpollObject::Socket(name) => ("OF_SOCKET", self.sockets.of(name), 1),
                    EpollObject::Reply(name) => ("OF_SOCKET", self.sockets.of(name), 0),
                    EpollObject::SendRoom(name) => ("OF_ROOM", self.sockets.of(name), 0),
                    EpollObject::ReplyRoom(name) => ("OF_ROOM", self.sockets.of(name), 1),
                    EpollObject::Eventfd(name) => ("OF_EVENTFD", self.eventfds.of(name), 0),
                };
                let is_room = matches!(object, "OF_PIPE_ROOM" | "OF_ROOM");
                let mut flags = if is_room { "EPOLLOUT" } else { "EPOLLIN" }.to_string();
                flags += match source.trigger {
                    Trigger::Level => "",
                    Trigger::Edge | Trigger::Drained => " | EPOLLET",
                    Trigger::Once => " | EPOLLONESHOT",
                };
                flags += if source.exclusive { " | EPOLLEXCLUSIVE" } else { "" };
                let drained = u8::from(source.trigger == Trigger::Drained);
                let off = u8::from(source.off);
                let _ =
                    writeln!(out, "    {{ {object}, {of}, {side}, {flags}, {drained}, {off} }},");
            }
            out += "};\n";
            let (count, events) = (set.sources.len(), set.events);
            let _ = writeln!(sets, "    {{ sources{number}, {count}, {events} }},");
            sources += count;
            (most_sources, most_events) = (most_sources.max(count), most_events.max(events.into()));
        }
        let mut serves = String::new();
        let mut cursors = 0;
        for (number, serve) in self.serves.iter().enumerate() {
            let count = serve.handlers.len();
            let Serve { set, begin, after, .. } = serve;
            let mut list = |kind: &str, of: &[usize]| {
                let _ = writeln!(out, "static const int {kind}{number}[] = {{ {} }};", numbers(of));
            };
            list("handlers", &serve.handlers);
            let ends = match &serve.ends {
                None => "0".to_string(),
                Some(ends) => {
                    list("ends", ends);
                    format!("ends{number}")
                }
            };
            let _ = writeln!(
                serves,
                "    {{ {set}, {count}, {begin}, {after}, handlers{number}, {ends}, {cursors}, {number} }},"
            );
            cursors += count;
        }
        let instances: u64 = closed.tasks.iter().map(|tasks| u64::from(tasks.count)).sum();
        for (name, value) in [
            ("KINDS", closed.tasks.len() as u64),
            ("INSTANCES", instances),
            ("MUTEXES", self.mutexes.count() as u64),
            ("CONDITIONS", self.conditions.count() as u64),
            ("BARRIERS", self.barriers.count() as u64),
            ("PIPES", self.pipes.count() as u64),
            ("SOCKETS", self.sockets.count() as u64),
            ("EVENTFDS", self.eventfds.count() as u64),
            ("DEVICES", self.devices.count() as u64),
            ("SETS", self.sets.count() as u64),
            ("SERVES", self.serves.len() as u64),
            ("SHARED_TIMERS", self.shared_timers.count() as u64),
            ("TIMERS", self.timers as u64),
            ("DEPTH", self.depth as u64),
            ("SOURCES", sources as u64),
            ("CURSORS", cursors as u64),
            ("MOST_SOURCES", most_sources as u64),
            ("MOST_EVENTS", most_events),
            ("LARGEST", self.largest),
        ] {
            let _ = writeln!(out, "#define {name} {value}");
        }
        let _ = writeln!(out, "#define DURATION {}LL", closed.duration.map_or(0, |span| span.0));
        let spin = |name: &String| match closed.mutexes.get(name).copied().unwrap_or_default().spin
        {
            None => "{ 0, 0 }".to_string(),
            Some(Spin { limit, sleep }) => {
                let limit = limit.map_or("LLONG_MAX".to_string(), |limit| limit.0.to_string());
                format!("{{ {limit}, {} }}", sleep.unwrap_or_default().0)
            }
        };
        let spins: Vec<String> = self.mutexes.1.iter().map(spin).collect();
        let spins = if spins.is_empty() { "{ 0, 0 }".to_string() } else { spins.join(", ") };
        let _ = writeln!(out, "static const long long spins[][2] = {{ {spins} }};");
        let mut list = |declared: &str, values: Vec<String>| {
            if values.is_empty() && USED_IF_ANY.contains(&declared) {
                return;
            }
            let values = if values.is_empty() { "0".to_string() } else { values.join(", ") };
            let _ = writeln!(out, "static const {declared}[] = {{ {values} }};");
        };
        let mutex = |name: &String| closed.mutexes.get(name).copied().unwrap_or_default();
        list(
            "int inherits",
            self.mutexes.1.iter().map(|of| u8::from(mutex(of).inherit).to_string()).collect(),
        );
        for name in &self.mutexes.1 {
            if let MutexOptions { handoff: true, inherit: false, .. } = mutex(name) {
                self.head.count("mutexes are free for any task when they are given back, not handed to the first waiter");
            }
        }
        let meets = |name: &String| {
            let given = closed.barriers.get(name).and_then(|of| of.tasks).map(u64::from);
            given.or(self.comers.get(name).copied()).unwrap_or(1).to_string()
        };
        list("unsigned meets", self.barriers.1.iter().map(meets).collect());
        let capacity = |name: &String| {
            let capacity = closed.pipes.get(name).copied().unwrap_or_default().capacity;
            capacity.min(LARGEST_PIPE)
        };
        for name in &self.pipes.1 {
            if closed.pipes.get(name).is_some_and(|of| of.capacity > LARGEST_PIPE) {
                self.head.count("pipes have 1 MiB, the most that Linux gives");
            }
        }
        list("int capacities", self.pipes.1.iter().map(|of| capacity(of).to_string()).collect());
        let datagram = |name: &String| {
            let kind = closed.sockets.get(name).copied().unwrap_or_default().kind;
            u8::from(kind == SocketKind::Datagram).to_string()
        };
        list("int datagrams", self.sockets.1.iter().map(datagram).collect());
        let channel = |name: &String| {
            closed.devices.get(name).copied().unwrap_or_default().channels.to_string()
        };
        list("unsigned channels", self.devices.1.iter().map(channel).collect());
        let counter = |name: &String| {
            let of = closed.eventfds.get(name).copied().unwrap_or_default();
            let (semaphore, wakes_one) = (u8::from(of.semaphore), u8::from(of.wakes_one));
            format!("{{ {}, {semaphore}, {wakes_one} }}", of.count)
        };
        let mut counters: Vec<String> = self.eventfds.1.iter().map(counter).collect();
        if counters.is_empty() {
            counters.push("{ 0, 0, 0 }".to_string());
        }
        list("struct counter counters", counters);
        let or_none = |table: &str, none: &str| {
            if table.is_empty() { format!("    {none}\n") } else { table.to_string() }
        };
        let (sets, serves) =
            (or_none(&sets, "{ 0, 0, 0 }"), or_none(&serves, "{ 0, 0, 0, 0, 0, 0, 0, 0 }"));
        let _ = write!(
            out,
            "static const struct set sets[] = {{\n{sets}}};\nstatic const struct serve serves[] = \
             {{\n{serves}}};\nstatic const struct kind kinds[] = {{\n{kinds}}};\n"
        );
        Ok(out)
    }
}

impl Layout {
    fn push(&mut self, what: &'static str, a: usize, c: usize, b: u64) {
        let b = i64::try_from(b).unwrap_or(i64::MAX);
        self.ops.push(Op { what, a: a as i64, c: c as i64, b });
    }
}

fn numbers(of: &[usize]) -> String {
    match of {
        [] => "0".to_string(),
        _ => of.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// A string of C.
fn literal(text: &str) -> String {
    let mut literal = "\"".to_string();
    for byte in text.bytes().take(15) {
        match byte {
            b'"' | b'\\' | b'?' => literal.extend(['\\', char::from(byte)]),
            b' '..=b'~' => literal.push(char::from(byte)),
            _ => {
                let _ = write!(literal, "\\{byte:03o}");
            }
        }
    }
    literal + "\""
}
