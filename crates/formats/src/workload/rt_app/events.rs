//! Translates rt-app's events into phases.

use super::grammar::{self, OLD, Place, Treatment};
use super::json::{Entry, Json, Value};
use program::Error;
use schedsim::Nanos;
use schedsim::admission::{TaskCount, duration};
use schedsim::workload::{
    BarrierOptions, EventfdOptions, IoOperation, IoPhase, Phase, TimerMode, TimerPhase,
};
use std::collections::{BTreeMap, BTreeSet};

const MICROSECOND: Nanos = Nanos(1_000);
/// What a step of a chase takes in picoseconds, for buffers up to a number of bytes.
const CHASE: [(i64, i64); 3] = [(32 << 10, 1_000), (1 << 20, 4_000), (32 << 20, 15_000)];
/// What it takes beyond.
const FAR: i64 = 80_000;

/// The events of all tasks.
pub struct Events<'j> {
    json: &'j Json,
    /// Barriers, with the tasks that come.
    pub barriers: BTreeMap<String, BarrierOptions>,
    /// Semaphores.
    pub semaphores: BTreeMap<String, EventfdOptions>,
    /// What differs from the file's meaning.
    pub notes: BTreeSet<String>,
    /// The first line of a barrier in each task.
    pub meets: BTreeMap<String, usize>,
    /// The first line that forks each task.
    pub forks: BTreeMap<String, usize>,
}

/// The task whose events are read.
#[derive(Clone, Copy)]
pub struct Of<'t> {
    /// Its name.
    pub task: &'t str,
    /// The tasks of that name at the start.
    pub count: u32,
}

impl<'j> Events<'j> {
    /// No events yet.
    pub fn new(json: &'j Json) -> Events<'j> {
        Events {
            json,
            barriers: BTreeMap::new(),
            semaphores: BTreeMap::new(),
            notes: BTreeSet::new(),
            meets: BTreeMap::new(),
            forks: BTreeMap::new(),
        }
    }

    /// The events in a phase, or in a task without phases, each with its line. All other keys must
    /// be of one of the objects `places`.
    ///
    /// # Errors
    /// If there is no event, or a key or value is wrong.
    pub fn read(
        &mut self,
        of: Of<'_>,
        entries: &[Entry],
        places: &[Place],
        line: usize,
    ) -> Result<Vec<(Phase, usize)>, Error> {
        let mut phases = Vec::new();
        for entry in entries {
            let known = grammar::find(places, &entry.key);
            if let Some(old) =
                known.or(grammar::find(&[Place::Task], &entry.key)).filter(|key| key.since == OLD)
            {
                return Err(self.json.wrong(entry.line, &grammar::outdated(old)));
            }
            let Some(event) = grammar::event_of(&entry.key) else {
                if known.is_some() {
                    continue;
                }
                let places = [&[Place::Event], places].concat();
                let message = grammar::unknown(&places, "event or key", &entry.key);
                return Err(self.json.wrong(entry.line, &message));
            };
            if event.treatment == Treatment::Approximated {
                self.notes.insert(format!("{}: {}", event.name, event.how));
            }
            let event = self.event(event.name, of, entry)?;
            phases.extend(event.into_iter().map(|phase| (phase, entry.line)));
        }
        if phases.is_empty() {
            return Err(self.json.wrong(line, "there is no event here"));
        }
        Ok(phases)
    }

    fn event(&mut self, event: &str, of: Of<'_>, entry: &Entry) -> Result<Vec<Phase>, Error> {
        let json = self.json;
        let name = || json.text(entry).map(str::to_string);
        let part = |key: &str| {
            json.part(entry, key)
                .map_or(Ok("unknown".to_string()), |part| json.text(part).map(str::to_string))
        };
        Ok(match event {
            "run" | "runtime" => vec![Phase::Run(self.span(entry, MICROSECOND)?)],
            "sleep" => vec![Phase::Sleep(self.span(entry, MICROSECOND)?)],
            "mem" => vec![Phase::Run(Nanos(self.span(entry, Nanos(1))?.0.div_ceil(10)))],
            "memrun" => vec![Phase::Run(self.memory(entry)?)],
            "iorun" => {
                let service = self.span(entry, Nanos(1))?;
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
                self.expect_parts(entry, Place::Wait)?;
                let (condition, mutex) = (part("ref")?, part("mutex")?);
                let signal = (event == "sync").then(|| Phase::Signal(condition.clone()));
                signal.into_iter().chain([Phase::Wait { condition, mutex }]).collect()
            }
            "suspend" => {
                let own = of.task.to_string();
                let name = match &entry.value {
                    Value::String(name) if name.is_empty() => own.clone(),
                    _ => name()?,
                };
                if name != own {
                    self.notes.insert(
                        "`suspend` waits for a `resume` of its value, as in rt-app 1.0; since 2025 \
                         it waits for one of the task's name"
                            .to_string(),
                    );
                }
                vec![
                    Phase::Lock(name.clone()),
                    Phase::Wait { condition: name.clone(), mutex: name.clone() },
                    Phase::Unlock(name),
                ]
            }
            "resume" => {
                let of = name()?;
                vec![Phase::Lock(of.clone()), Phase::Broadcast(of.clone()), Phase::Unlock(of)]
            }
            "barrier" => {
                let barrier = name()?;
                self.meets.entry(of.task.to_string()).or_insert(entry.line);
                if of.count > 0 {
                    let BarrierOptions { tasks } =
                        self.barriers.entry(barrier.clone()).or_default();
                    let comers = u64::from(of.count).saturating_add(tasks.unwrap_or(0).into());
                    *tasks = Some(json.admit(entry, TaskCount::admit(comers.into()))?.get());
                }
                vec![Phase::Barrier(barrier)]
            }
            "sem_post" | "sem_wait" => {
                let eventfd = name()?;
                let options = EventfdOptions {
                    semaphore: true,
                    wakes_one: true,
                    ..EventfdOptions::default()
                };
                self.semaphores.insert(eventfd.clone(), options);
                vec![if event == "sem_post" {
                    Phase::Post { eventfd, count: 1 }
                } else {
                    Phase::Take { eventfd }
                }]
            }
            "timer" => self.timer(entry)?.into_iter().collect(),
            "fork" => {
                let of = name()?;
                self.forks.entry(of.clone()).or_insert(entry.line);
                vec![Phase::Fork(of)]
            }
            other => unreachable!("the grammar has no event {other}"),
        })
    }

    /// Refuses keys of an event's value that rt-app does not know.
    fn expect_parts(&self, entry: &Entry, place: Place) -> Result<(), Error> {
        for part in self.json.object(entry)? {
            if grammar::find(&[place], &part.key).is_none() {
                let message = grammar::unknown(&[place], "key", &part.key);
                return Err(self.json.wrong(part.line, &message));
            }
        }
        Ok(())
    }

    /// A number of units of time that is not negative.
    fn span(&self, entry: &Entry, unit: Nanos) -> Result<Nanos, Error> {
        let amount = self.json.amount(entry)?;
        self.json.admit(entry, duration(amount.into(), unit))
    }

    /// The CPU time of a `memrun`.
    fn memory(&self, entry: &Entry) -> Result<Nanos, Error> {
        let json = self.json;
        self.expect_parts(entry, Place::Memrun)?;
        let part = |key: &str| {
            json.part(entry, key)
                .ok_or_else(|| json.wrong(entry.line, &format!("memrun: there is no `{key}`")))
        };
        let (kind, size, count) = (part("type")?, part("size")?, part("count")?);
        let size = json.amount(size)?;
        let picoseconds = match json.text(kind)? {
            "read" | "write" => 1_000,
            "chase" => CHASE.iter().find(|(most, _)| size <= *most).map_or(FAR, |(_, each)| *each),
            other => {
                let message = format!("memrun: give the type read, write or chase, not `{other}`");
                return Err(json.wrong(kind.line, &message));
            }
        };
        let all = i128::from(json.amount(count)?).saturating_mul(picoseconds.into());
        json.admit(count, duration(all.div_euclid(1_000), Nanos(1)))
    }

    /// A timer with period zero has no effect.
    fn timer(&self, entry: &Entry) -> Result<Option<Phase>, Error> {
        let json = self.json;
        self.expect_parts(entry, Place::Timer)?;
        let text = |key| json.part(entry, key).map(|part| json.text(part)).transpose();
        let name = text("ref")?.unwrap_or("unknown").to_string();
        let mode = if text("mode")?.is_some_and(|mode| mode.starts_with("absolute")) {
            TimerMode::Absolute
        } else {
            TimerMode::Relative
        };
        let shared = !name.starts_with("unique");
        let period = match json.part(entry, "period") {
            Some(period) => self.span(period, MICROSECOND)?,
            None => Nanos::ZERO,
        };
        Ok((period > Nanos::ZERO).then_some(Phase::Timer(TimerPhase {
            period,
            name,
            mode,
            shared,
        })))
    }
}
