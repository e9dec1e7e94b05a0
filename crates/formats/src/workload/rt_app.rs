//! Translates rt-app's JSON into a closed workload.
//!
//! The reference is Debian's rt-app 1.0 with its workgen, which allows the same key several times
//! in an object, and `suspend` without a value. [`EVENTS`] and [`KEYS`] list what is honoured,
//! approximated and rejected; docs/rt-app.md has the same tables.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod json;

use super::ClosedWorkload;
use json::{Entry, Json, Value};
use program::{Error, no_such};
use schedsim::Nanos;
use schedsim::admission::{CpuNumber, Rounds, TaskCount, duration};
use schedsim::workload::{
    BarrierOptions, Closed, IoOperation, IoPhase, LoopPhase, Phase, PipeOptions, SchedulingPolicy,
    Tasks, TimerMode, TimerPhase,
};
use std::collections::{BTreeMap, BTreeSet};

/// How a key is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// It has the same meaning as in rt-app.
    Honoured,
    /// It has a similar meaning.
    Approximated,
    /// It does not affect scheduling here.
    Ignored,
    /// A file with this key is refused.
    Rejected,
}

/// A key and its treatment.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The start of the key; the rest makes it unique in its object.
    pub name: &'static str,
    /// The treatment.
    pub treatment: Treatment,
    /// An explanation.
    pub how: &'static str,
}

const fn key(name: &'static str, treatment: Treatment, how: &'static str) -> Key {
    Key { name, treatment, how }
}

/// The events of a task. A key is the event whose name it begins with; the longest name wins.
pub const EVENTS: &[Key] = &[
    key("run", Treatment::Honoured, "CPU time, at the speed at which the CPU was calibrated"),
    key(
        "runtime",
        Treatment::Approximated,
        "CPU time; in rt-app it is wall-clock time, so that a preempted task does less",
    ),
    key("sleep", Treatment::Honoured, "sleeps"),
    key(
        "timer",
        Treatment::Honoured,
        "`unique…` is a timer of each task's own, any other name is shared; `relative` and \
         `absolute`",
    ),
    key("lock", Treatment::Honoured, "a mutex, with priority inheritance if `pi_enabled` says so"),
    key("unlock", Treatment::Honoured, "by a task that holds it; else the file is refused"),
    key("wait", Treatment::Honoured, "waits on a condition with a mutex that it holds"),
    key("signal", Treatment::Honoured, "wakes the first waiter; lost if there is none"),
    key("broad", Treatment::Honoured, "wakes all waiters"),
    key(
        "sync",
        Treatment::Honoured,
        "signals and waits, with a mutex that it holds: rt-app takes none, whatever its tutorial \
         says",
    ),
    key(
        "barrier",
        Treatment::Honoured,
        "waits for as many as there are references to the name, each by every instance",
    ),
    key(
        "suspend",
        Treatment::Honoured,
        "waits on the condition of that name; without a value, of the task's",
    ),
    key("resume", Treatment::Honoured, "wakes all that are suspended under that name"),
    key("yield", Treatment::Honoured, "gives up the CPU"),
    key("mem", Treatment::Approximated, "CPU time, 0.1 ns for each byte"),
    key(
        "iorun",
        Treatment::Approximated,
        "a request of 1 ns for each byte to one device, which serves one at a time",
    ),
    key("sem_post", Treatment::Honoured, "not in 1.0: adds a token"),
    key("sem_wait", Treatment::Honoured, "not in 1.0: waits for a token and takes it"),
    key("fork", Treatment::Rejected, "not in 1.0; write a closed workload with `fork`"),
    key("memrun", Treatment::Rejected, "not in 1.0"),
];

/// The other keys of a task or a phase.
pub const KEYS: &[Key] = &[
    key(
        "loop",
        Treatment::Honoured,
        "−1 is endless. For a task without phases Debian's rt-app 1.0 repeats everything \
         endlessly, whatever the value, and so does schedlab",
    ),
    key("phases", Treatment::Honoured, "in order"),
    key("instance", Treatment::Honoured, "number of tasks"),
    key("delay", Treatment::Honoured, "the task starts later"),
    key(
        "policy",
        Treatment::Honoured,
        "SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR; SCHED_DEADLINE is rejected, \
         and so is one of a phase",
    ),
    key(
        "priority",
        Treatment::Honoured,
        "a nice value, or a real-time priority (10 if it is not given)",
    ),
    key(
        "cpus",
        Treatment::Approximated,
        "of a task: unchanged; those of phases become one set for its lifetime",
    ),
    key("dl-runtime", Treatment::Ignored, "of SCHED_DEADLINE"),
    key("dl-period", Treatment::Ignored, "of SCHED_DEADLINE"),
    key("dl-deadline", Treatment::Ignored, "of SCHED_DEADLINE"),
];

const MICROSECOND: Nanos = Nanos(1_000);
const SECOND: Nanos = Nanos(1_000_000_000);

/// The duration of an endless file without a `duration`.
const DURATION: Nanos = Nanos::from_millis(10_000);

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
        notes: BTreeSet::new(),
        default: SchedulingPolicy::Other,
        inherits: false,
    };
    reader.file()?;
    let Reader { closed, lines, notes, .. } = reader;
    let name = file.rsplit('/').next().unwrap_or_default().trim_end_matches(".json").to_string();
    Ok(ClosedWorkload::translated(name, closed, file, lines, notes.into_iter().collect()))
}

struct Reader<'j> {
    json: &'j Json,
    closed: Closed,
    /// The lines of the file, by the keys of `closed`.
    lines: BTreeMap<String, usize>,
    notes: BTreeSet<String>,
    /// The default scheduling policy of tasks.
    default: SchedulingPolicy,
    /// Whether mutexes use priority inheritance (`pi_enabled`).
    inherits: bool,
}

/// A phase with its line.
enum Node {
    Event(Phase, usize),
    Loop { times: Option<u64>, inner: Vec<Node>, line: usize },
}

impl Reader<'_> {
    fn file(&mut self) -> Result<(), Error> {
        let root = self.json.root()?;
        for entry in root.iter().filter(|entry| entry.key == "global") {
            self.global(self.json.object(entry)?)?;
        }
        let tasks = root.iter().find(|entry| entry.key == "tasks").ok_or_else(|| {
            self.json.wrong(1, "there is no object named `tasks`, which a workload of rt-app has")
        })?;
        for entry in self.json.object(tasks)? {
            self.task(entry)?;
        }
        if self.inherits {
            self.closed.let_holders_inherit();
        }
        let endless = |tasks: &Tasks| {
            matches!(tasks.phases.last(), Some(Phase::Loop(LoopPhase { times: None, .. })))
        };
        if self.closed.duration.is_none() && self.closed.tasks.iter().any(endless) {
            self.closed.duration = Some(DURATION);
            self.notes.insert(format!(
                "it is endless and is stopped after {DURATION}; give a `duration`"
            ));
        }
        Ok(())
    }

    fn global(&mut self, entries: &[Entry]) -> Result<(), Error> {
        for entry in entries {
            match entry.key.as_str() {
                "duration" => match self.json.integer(entry)? {
                    ..0 => {}
                    seconds => self.closed.duration = Some(self.span(entry, seconds, SECOND)?),
                },
                "default_policy" => self.default = self.policy(entry)?,
                "pi_enabled" if entry.value == Value::Bool(true) => {
                    self.inherits = true;
                }
                _ => {} // logs, calibration, memory: no effect here
            }
        }
        Ok(())
    }

    fn policy(&self, entry: &Entry) -> Result<SchedulingPolicy, Error> {
        Ok(match self.json.text(entry)? {
            "SCHED_OTHER" => SchedulingPolicy::Other,
            "SCHED_BATCH" => SchedulingPolicy::Batch,
            "SCHED_IDLE" => SchedulingPolicy::Idle,
            "SCHED_FIFO" => SchedulingPolicy::Fifo,
            "SCHED_RR" => SchedulingPolicy::Rr,
            "SCHED_DEADLINE" => {
                return Err(self.json.wrong(entry.line, "there is no deadline scheduling here"));
            }
            other => {
                let names = ["SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE", "SCHED_FIFO", "SCHED_RR"]
                    .map(String::from);
                return Err(self
                    .json
                    .wrong(entry.line, &no_such("scheduling policy", other, &names, "")));
            }
        })
    }

    fn task(&mut self, entry: &Entry) -> Result<(), Error> {
        let json = self.json;
        let entries = json.object(entry)?;
        let find = |name: &str| entries.iter().find(|entry| entry.key == name);
        let integer = |name: &str| find(name).map(|entry| json.integer(entry)).transpose();
        let count = match find("instance") {
            None => 1,
            Some(entry) => match json.integer(entry)? {
                ..=0 => return Ok(()), // it waits for a fork
                count => json.admit(entry, TaskCount::admit(count.into()))?.get(),
            },
        };
        let key = format!("task[{}]", self.closed.tasks.len());
        self.lines.insert(key.clone(), entry.line);
        for (name, of) in [("priority", "priority"), ("priority", "nice"), ("instance", "count")] {
            if let Some(entry) = find(name) {
                self.lines.insert(format!("{key}.{of}"), entry.line);
            }
        }
        let policy = find("policy").map_or(Ok(self.default), |entry| self.policy(entry))?;
        let priority = integer("priority")?.map(|priority| {
            // The caller refuses a number that is out of range.
            priority.try_into().unwrap_or(if priority < 0 { i32::MIN } else { i32::MAX })
        });
        let is_real_time = matches!(policy, SchedulingPolicy::Fifo | SchedulingPolicy::Rr);
        let mut cpus = BTreeSet::new();
        let nodes = self.body(entry, entries, count, &mut cpus)?;
        let affinity: Vec<u16> = cpus.iter().map(|&(cpu, _)| cpu).collect();
        for (index, (_, line)) in cpus.iter().enumerate() {
            self.lines.insert(format!("{key}.affinity[{index}]"), *line);
        }
        let phases = self.lower(nodes, &format!("{key}.phases"));
        self.closed.tasks.push(Tasks {
            count,
            policy,
            nice: priority.filter(|_| !is_real_time),
            priority: is_real_time.then(|| priority.unwrap_or(10)),
            affinity: (!affinity.is_empty()).then_some(affinity),
            start: match find("delay") {
                Some(entry) => self.span(entry, json.integer(entry)?.max(0), MICROSECOND)?,
                None => Nanos::ZERO,
            },
            ..Tasks::new(&entry.key, phases)
        });
        Ok(())
    }

    /// The phases of a task, with loops.
    fn body(
        &mut self,
        task: &Entry,
        entries: &[Entry],
        count: u32,
        cpus: &mut BTreeSet<(u16, usize)>,
    ) -> Result<Vec<Node>, Error> {
        let own_cpus = self.cpus(entries)?;
        let Some(phases) = entries.iter().find(|entry| entry.key == "phases") else {
            cpus.extend(own_cpus);
            let inner = self.events(&task.key, entries, count, task.line)?;
            if entries
                .iter()
                .any(|entry| entry.key == "loop" && entry.value != Value::Number("-1".into()))
            {
                self.notes.insert(
                    "the loop of a task without phases is endless, as in Debian's rt-app \
                     1.0"
                    .to_string(),
                );
            }
            return Ok(vec![Node::Loop { times: None, inner, line: task.line }]);
        };
        self.refuse_events(entries)?;
        let mut all = Vec::new();
        for phase in self.json.object(phases)? {
            let entries = self.json.object(phase)?;
            let of_phase = self.cpus(entries)?;
            if !of_phase.is_empty() {
                self.notes.insert(format!(
                    "{} may always run on the CPUs of any of its phases",
                    task.key
                ));
            }
            cpus.extend(if of_phase.is_empty() { own_cpus.clone() } else { of_phase });
            let inner = self.events(&task.key, entries, count, phase.line)?;
            let times = self.times(entries, Some(1))?;
            all.push(Node::Loop { times, inner, line: phase.line });
            if times.is_none() {
                return Ok(all); // the other phases are never reached
            }
        }
        let times = self.times(entries, None)?;
        Ok(vec![Node::Loop { times, inner: all, line: task.line }])
    }

    fn times(&self, entries: &[Entry], default: Option<u64>) -> Result<Option<u64>, Error> {
        let Some(entry) = entries.iter().find(|entry| entry.key == "loop") else {
            return Ok(default);
        };
        match self.json.integer(entry)? {
            ..0 => Ok(None),
            0 => Err(self.json.wrong(entry.line, "loop: give -1 (endless) or at least 1")),
            times => {
                self.json.admit(entry, Rounds::admit(times.into())).map(|times| Some(times.get()))
            }
        }
    }

    fn cpus(&self, entries: &[Entry]) -> Result<Vec<(u16, usize)>, Error> {
        let Some(entry) = entries.iter().find(|entry| entry.key == "cpus") else {
            return Ok(Vec::new());
        };
        let cpu = |value: &Value| match value {
            Value::Number(number) => {
                number.parse().ok().map(|cpu: CpuNumber| (cpu.get(), entry.line))
            }
            _ => None,
        };
        let Value::Array(cpus) = &entry.value else {
            return Err(self.json.wrong(entry.line, "cpus: give a list of numbers, as in [0, 2]"));
        };
        cpus.iter().map(cpu).collect::<Option<_>>().ok_or_else(|| {
            self.json.wrong(entry.line, "cpus: give a list of numbers from 0 to 4095, as in [0, 2]")
        })
    }

    /// Refuses events beside phases, which are never reached.
    fn refuse_events(&self, entries: &[Entry]) -> Result<(), Error> {
        let Some(entry) =
            entries.iter().find(|entry| !KEYS.iter().any(|key| key.name == entry.key))
        else {
            return Ok(());
        };
        Err(self.json.wrong(
            entry.line,
            &match event_of(&entry.key) {
                Some(_) => {
                    "an event beside `phases` is never reached; put it into one of them".to_string()
                }
                None => unknown(&entry.key),
            },
        ))
    }

    /// The events of a phase of the task `task`.
    fn events(
        &mut self,
        task: &str,
        entries: &[Entry],
        count: u32,
        line: usize,
    ) -> Result<Vec<Node>, Error> {
        let mut nodes = Vec::new();
        for entry in entries.iter().filter(|entry| !KEYS.iter().any(|key| key.name == entry.key)) {
            let Some(event) = event_of(&entry.key) else {
                return Err(self.json.wrong(entry.line, &unknown(&entry.key)));
            };
            match event.treatment {
                Treatment::Rejected => {
                    return Err(self.json.wrong(
                        entry.line,
                        &format!("the event `{}` is rejected: {}", event.name, event.how),
                    ));
                }
                Treatment::Approximated if event.name != "lock" => {
                    self.notes.insert(format!("{}: {}", event.name, event.how));
                }
                _ => {}
            }
            nodes.extend(
                self.event(event.name, task, entry, count)?
                    .into_iter()
                    .map(|phase| Node::Event(phase, entry.line)),
            );
        }
        if nodes.is_empty() {
            return Err(self.json.wrong(line, "there is no event here"));
        }
        Ok(nodes)
    }

    fn event(
        &mut self,
        event: &str,
        task: &str,
        entry: &Entry,
        count: u32,
    ) -> Result<Vec<Phase>, Error> {
        let json = self.json;
        let amount = || match json.integer(entry)? {
            amount @ 0.. => Ok(amount),
            _ => Err(json
                .wrong(entry.line, &format!("{}: give a number that is not negative", entry.key))),
        };
        let name = || json.text(entry).map(str::to_string);
        Ok(match event {
            "run" | "runtime" => vec![Phase::Run(self.span(entry, amount()?, MICROSECOND)?)],
            "sleep" => vec![Phase::Sleep(self.span(entry, amount()?, MICROSECOND)?)],
            "mem" => vec![Phase::Run(Nanos(self.span(entry, amount()?, Nanos(1))?.0.div_ceil(10)))],
            "iorun" => {
                let service = self.span(entry, amount()?, Nanos(1))?;
                vec![Phase::Io(IoPhase {
                    device: "io_device".into(),
                    service,
                    bytes: service.0,
                    operation: IoOperation::Write,
                })]
            }
            "yield" => vec![Phase::Yield],
            "lock" => vec![Phase::Lock(name()?)],
            "unlock" => vec![Phase::Unlock(name()?)],
            "signal" => vec![Phase::Signal(name()?)],
            "broad" => vec![Phase::Broadcast(name()?)],
            "wait" | "sync" => {
                let part = |key| {
                    json.part(entry, key).map_or(Ok("unknown".to_string()), |part| {
                        json.text(part).map(str::to_string)
                    })
                };
                let (condition, mutex) = (part("ref")?, part("mutex")?);
                let signal = (event == "sync").then(|| Phase::Signal(condition.clone()));
                signal.into_iter().chain([Phase::Wait { condition, mutex }]).collect()
            }
            "suspend" => {
                let of = if matches!(&entry.value, Value::String(name) if name.is_empty()) {
                    task.to_string()
                } else {
                    name()?
                };
                vec![
                    Phase::Lock(of.clone()),
                    Phase::Wait { condition: of.clone(), mutex: of.clone() },
                    Phase::Unlock(of),
                ]
            }
            "resume" => {
                let of = name()?;
                vec![Phase::Lock(of.clone()), Phase::Broadcast(of.clone()), Phase::Unlock(of)]
            }
            "barrier" => {
                let of = name()?;
                let BarrierOptions { tasks } = self.closed.barriers.entry(of.clone()).or_default();
                let comers = u64::from(count).saturating_add(tasks.unwrap_or(0).into());
                *tasks = Some(json.admit(entry, TaskCount::admit(comers.into()))?.get());
                vec![Phase::Barrier(of)]
            }
            "sem_post" | "sem_wait" => {
                let pipe = name()?;
                self.closed.pipes.insert(pipe.clone(), PipeOptions { capacity: u64::MAX });
                vec![if event == "sem_post" {
                    Phase::Write { pipe, bytes: 1 }
                } else {
                    Phase::Read { pipe, bytes: 1, partial: false }
                }]
            }
            "timer" => self.timer(entry)?.into_iter().collect(),
            _ => return Err(json.wrong(entry.line, &unknown(&entry.key))),
        })
    }

    /// A duration in units of time.
    fn span(&self, entry: &Entry, count: i64, unit: Nanos) -> Result<Nanos, Error> {
        self.json.admit(entry, duration(count.into(), unit))
    }

    /// A timer with period zero has no effect.
    fn timer(&self, entry: &Entry) -> Result<Option<Phase>, Error> {
        let json = self.json;
        let text = |key| json.part(entry, key).map(|part| json.text(part)).transpose();
        let name = text("ref")?.unwrap_or("unknown").to_string();
        let mode = if text("mode")?.is_some_and(|mode| mode.starts_with("absolute")) {
            TimerMode::Absolute
        } else {
            TimerMode::Relative
        };
        let period = json.part(entry, "period").map_or(Ok(0), |part| json.integer(part))?;
        if period < 0 {
            return Err(json.wrong(entry.line, "timer: give a period that is not negative"));
        }
        let shared = !name.starts_with("unique");
        let period = self.span(entry, period, MICROSECOND)?;
        Ok((period > Nanos::ZERO).then_some(Phase::Timer(TimerPhase {
            period,
            name,
            mode,
            shared,
        })))
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

/// The event whose name `key` begins with.
fn event_of(key: &str) -> Option<&'static Key> {
    EVENTS.iter().filter(|event| key.starts_with(event.name)).max_by_key(|event| event.name.len())
}

fn unknown(key: &str) -> String {
    let names: Vec<String> = EVENTS.iter().chain(KEYS).map(|key| key.name.to_string()).collect();
    no_such("event or key", key, &names, "docs/rt-app.md lists them.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the tables of docs/rt-app.md.
    fn tables() -> String {
        let table = |heading: &str, keys: &[Key]| {
            let row = |key: &Key| {
                format!(
                    "| `{}` | {} | {} |\n",
                    key.name,
                    format!("{:?}", key.treatment).to_lowercase(),
                    key.how
                )
            };
            format!(
                "| {heading} | | |\n|---|---|---|\n{}",
                keys.iter().map(row).collect::<String>()
            )
        };
        format!("{}\n{}", table("event", EVENTS), table("key", KEYS))
    }

    fn refused(text: &str) -> String {
        let workload = read("w.json", text).map(|workload| workload.scripts(4).map(drop));
        workload.and_then(|scripts| scripts).expect_err(text).to_string()
    }

    #[test]
    fn docs_rt_app_has_the_tables_of_the_code() {
        let page = include_str!("../../../../docs/rt-app.md");
        assert!(page.contains(&tables()), "docs/rt-app.md should have\n{}", tables());
    }

    #[test]
    fn every_event_that_is_not_rejected_becomes_a_phase() {
        for event in EVENTS {
            let value = match event.name {
                "run" | "runtime" | "sleep" | "mem" | "iorun" => "7",
                "wait" | "sync" => r#"{ "ref" : "c", "mutex" : "m" }"#,
                "timer" => r#"{ "ref" : "unique", "period" : 5 }"#,
                _ => r#""m""#,
            };
            // With a locked mutex, if the event needs one.
            let (before, after) = match event.name {
                "wait" | "sync" | "unlock" => (
                    r#""lock" : "m","#,
                    if event.name == "unlock" { "" } else { r#", "unlock" : "m""# },
                ),
                "lock" => ("", r#", "unlock" : "m""#),
                _ => ("", ""),
            };
            let text = format!(
                r#"{{ "tasks" : {{ "t" : {{ {before} "{}3" : {value} {after}, "run9" : 1 }} }} }}"#,
                event.name
            );
            let result = read("w.json", &text).and_then(|workload| workload.scripts(1).map(drop));
            assert_eq!(
                result.is_err(),
                event.treatment == Treatment::Rejected,
                "{text}: {result:?}"
            );
        }
    }

    #[test]
    fn a_file_in_workgens_grammar_is_translated_with_its_meaning() {
        let text = r#"{ /* a comment */
            "tasks" : {
                "tick" : { "instance" : 2, "priority" : -5, "cpus" : [0], "delay" : 30, "phases" : {
                    "p1" : { "loop" : 3, "run" : 10, "run" : 20, "resume" : "tock",
                             "timer" : { "ref" : "unique", "period" : 100 } },
                    "p2" : { "cpus" : [1], "run1" : 5, "barrier" : "b", }
                } },
                "tock" : { "policy" : "SCHED_FIFO", "loop" : 4, "suspend", "run" : 7,
                           "barrier" : "b" },
            },
            "global" : { "duration" : 2, "logdir" : "./" }
        }"#;
        let workload = read("dir/w.json", text).expect("a workload");
        let closed = workload.description();
        assert_eq!((workload.name(), closed.duration), ("w", Some(Nanos::from_millis(2_000))));
        let [tick, tock] = &closed.tasks[..] else { panic!("{closed:?}") };
        assert_eq!(
            (tick.count, tick.nice, tick.start, tick.affinity.as_deref()),
            (2, Some(-5), Nanos(30_000), Some(&[0, 1][..]))
        );
        assert_eq!((tock.policy, tock.priority), (SchedulingPolicy::Fifo, Some(10)));
        let json = serde_json::to_value(&tick.phases).expect("json");
        assert_eq!(json[0]["loop"]["phases"][0]["loop"]["times"], 3);
        assert_eq!(json[0]["loop"]["phases"][0]["loop"]["phases"][1]["run"], "20us");
        let json = serde_json::to_value(&tock.phases).expect("json");
        assert_eq!(json[0]["loop"]["times"], serde_json::Value::Null);
        assert_eq!(
            json[0]["loop"]["phases"][1],
            serde_json::json!({ "wait": { "condition": "tock", "mutex": "tock" } })
        );
        assert_eq!(closed.barriers["b"].tasks, Some(3));
        assert_eq!(workload.notes().len(), 2, "{:?}", workload.notes());
        assert!(workload.scripts(4).is_ok());
    }

    #[test]
    fn errors_have_the_line() {
        let file = |task: &str| format!("{{\n\"tasks\" : {{\n\"t\" : {{\n{task}\n}}\n}}\n}}");
        assert!(
            refused(&file("\"run\" : 5,\n\"slep\" : 5")).starts_with(
                "w.json:5: there is no event or key named `slep`. Did you mean `sleep`?"
            )
        );
        assert_eq!(
            refused(&file("\"run\" : 5,\n\"unlock\" : \"m\"")),
            "w.json:5: the task gives back the mutex m and does not hold it here"
        );
        assert!(
            refused(&file("\"cpus\" : [1, 9],\n\"run\" : 5"))
                .starts_with("w.json:4: there is no CPU 9")
        );
        assert!(
            refused(&file("\"run\" : 5,\n\"priority\" : 20"))
                .starts_with("w.json:5: 20 is not between -20 and 19")
        );
        assert!(
            refused(&file("\"policy\" : \"SCHED_DEADLINE\",\n\"run\" : 5"))
                .starts_with("w.json:4: there is no deadline scheduling")
        );
        assert!(
            refused(&file("\"run\" : \"5\"")).starts_with("w.json:4: run: give a whole number")
        );
        assert!(refused(&file("\"loop\" : 3")).starts_with("w.json:3: there is no event here"));
        assert!(
            refused(&file("\"fork\" : \"u\""))
                .starts_with("w.json:4: the event `fork` is rejected")
        );
        assert!(refused("{ \"tasks\" : {").starts_with("w.json:1: "));
        assert!(refused("{ }").contains("no object named `tasks`"));
    }
}
