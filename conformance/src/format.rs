//! One event and one answer, as lines of JSON.

use serde::{Deserialize, Serialize};

/// Times and virtual times lie within ± this, in ns.
pub const MAX_TIME: i64 = (1 << 62) - 1;
/// The largest number of a task; tasks are numbered from 1.
pub const MAX_TASKS: u32 = 4096;
/// The longest tick and the longest request, in ns.
pub const MAX_SPAN: i64 = 1_000_000_000_000;
/// The largest weight. Nice −20 has 88,761.
pub const MAX_WEIGHT: u32 = 1 << 24;

/// What happens to the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, in ns since the beginning of the vector.
    pub at: i64,
    /// What.
    pub op: Op,
}

/// The kinds of events. Tasks are numbered from 1; slices, ticks and virtual times are in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the members are those of README.md")]
pub enum Op {
    /// Forget everything.
    Reset { tick: i64, slice: i64 },
    /// A task exists and sleeps.
    Task { task: u32, weight: u32, slice: i64, vruntime: i64, lag: i64 },
    /// A task wakes.
    Wake { task: u32 },
    /// A task joins for the first time.
    New { task: u32 },
    /// The timer's tick.
    Tick,
    /// The running task goes to sleep.
    Block,
    /// The running task ends.
    Exit,
    /// The running task yields.
    Yield,
    /// A weight changes.
    Weight { task: u32, weight: u32 },
    /// A request changes.
    Slice { task: u32, slice: i64 },
    /// The CPU asks who runs next.
    Pick,
}

impl Op {
    /// Its word in a line.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Reset { .. } => "reset",
            Op::Task { .. } => "task",
            Op::Wake { .. } => "wake",
            Op::New { .. } => "new",
            Op::Tick => "tick",
            Op::Block => "block",
            Op::Exit => "exit",
            Op::Yield => "yield",
            Op::Weight { .. } => "weight",
            Op::Slice { .. } => "slice",
            Op::Pick => "pick",
        }
    }

    /// The task that the event names.
    pub fn task(&self) -> Option<u32> {
        match *self {
            Op::Task { task, .. }
            | Op::Wake { task }
            | Op::New { task }
            | Op::Weight { task, .. }
            | Op::Slice { task, .. } => Some(task),
            _ => None,
        }
    }

    /// Whether an answer to it says if the scheduler wants to pick anew.
    pub fn may_resched(&self) -> bool {
        matches!(
            self,
            Op::Wake { .. } | Op::New { .. } | Op::Tick | Op::Weight { .. } | Op::Slice { .. }
        )
    }
}

impl Event {
    /// The line that the subject receives, without its end: members in the order of `README.md`.
    pub fn line(&self) -> String {
        let Event { at, op } = self;
        let rest = match op {
            Op::Reset { tick, slice } => format!(r#","tick":{tick},"slice":{slice}"#),
            Op::Task { task, weight, slice, vruntime, lag } => format!(
                r#","task":{task},"weight":{weight},"slice":{slice},"vruntime":{vruntime},"lag":{lag}"#
            ),
            Op::Wake { task } | Op::New { task } => format!(r#","task":{task}"#),
            Op::Weight { task, weight } => format!(r#","task":{task},"weight":{weight}"#),
            Op::Slice { task, slice } => format!(r#","task":{task},"slice":{slice}"#),
            Op::Tick | Op::Block | Op::Exit | Op::Yield | Op::Pick => String::new(),
        };
        format!(r#"{{"at":{at},"op":"{}"{rest}}}"#, op.name())
    }

    /// Reads a line that [`line`](Event::line) wrote; spaces and the order of members are free.
    pub fn parse(line: &str) -> Result<Event, String> {
        let mut flat: Flat = serde_json::from_str(line).map_err(|why| not_json(&why))?;
        if flat.then.is_some() || flat.note.is_some() || flat.begin.is_some() {
            return Err("a subject receives neither `then`, `note` nor `begin`".into());
        }
        flat.event()
    }
}

/// What the scheduler says after an event, or what a kernel did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// At `pick`: the task that runs from now on, 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Whether the scheduler wants to pick anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resched: Option<bool>,
    /// The state of tasks after the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<State>,
    /// Why the subject cannot do this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Answer {
    /// Reads an answer. The error is a sentence.
    pub fn parse(line: &str) -> Result<Answer, String> {
        let answer: Answer = serde_json::from_str(line).map_err(|why| not_json(&why))?;
        answer.check()?;
        Ok(answer)
    }

    /// Whether its numbers are within their limits and each task is there once.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = std::collections::BTreeSet::new();
        for state in &self.tasks {
            if state.task == 0 || state.task > MAX_TASKS || !seen.insert(state.task) {
                return Err(format!(
                    "`tasks` has task {} twice or beyond 1 to {MAX_TASKS}; state each task once",
                    state.task
                ));
            }
            for time in [state.vruntime, state.deadline, state.lag].into_iter().flatten() {
                if !(-MAX_TIME..=MAX_TIME).contains(&time) {
                    return Err(format!("{time} is beyond ±2^62; state ns from a nearer origin"));
                }
            }
        }
        Ok(())
    }

    /// The state of `task`, if it is stated.
    pub fn state(&self, task: u32) -> Option<&State> {
        self.tasks.iter().find(|state| state.task == task)
    }
}

/// The state of a task. Virtual times are in ns of nice 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Its number.
    pub task: u32,
    /// Its virtual run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vruntime: Option<i64>,
    /// When its request is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// The mean virtual run time minus its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<i64>,
    /// Whether its lag, before any rounding, is not negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eligible: Option<bool>,
}

/// All members that a line after the header can have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flat {
    at: i64,
    op: String,
    task: Option<i64>,
    weight: Option<i64>,
    slice: Option<i64>,
    vruntime: Option<i64>,
    lag: Option<i64>,
    tick: Option<i64>,
    /// In a history: what the kernel did.
    pub then: Option<Answer>,
    /// In a history: a remark for its readers.
    pub note: Option<String>,
    /// In a scenario: when the task joins, in ns.
    pub begin: Option<i64>,
    /// In a scenario: what the task does.
    pub program: Option<Vec<(String, i64)>>,
}

impl Flat {
    /// The event of this line. Takes its members.
    pub fn event(&mut self) -> Result<Event, String> {
        let at = within("at", self.at, 0, MAX_TIME)?;
        let op = match self.op.as_str() {
            "reset" => Op::Reset {
                tick: take("tick", &mut self.tick, 1, MAX_SPAN)?,
                slice: take("slice", &mut self.slice, 1, MAX_SPAN)?,
            },
            "task" => Op::Task {
                task: self.task()?,
                weight: self.weight()?,
                slice: take("slice", &mut self.slice, 1, MAX_SPAN)?,
                vruntime: or_zero("vruntime", &mut self.vruntime)?,
                lag: or_zero("lag", &mut self.lag)?,
            },
            "wake" => Op::Wake { task: self.task()? },
            "new" => Op::New { task: self.task()? },
            "tick" => Op::Tick,
            "block" => Op::Block,
            "exit" => Op::Exit,
            "yield" => Op::Yield,
            "weight" => Op::Weight { task: self.task()?, weight: self.weight()? },
            "slice" => Op::Slice {
                task: self.task()?,
                slice: take("slice", &mut self.slice, 1, MAX_SPAN)?,
            },
            "pick" => Op::Pick,
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(format!("unknown op {other:?}; README.md lists the ops of format 1"));
            }
        };
        let left = [
            ("task", self.task),
            ("weight", self.weight),
            ("slice", self.slice),
            ("vruntime", self.vruntime),
            ("lag", self.lag),
            ("tick", self.tick),
        ];
        match left.iter().find(|(_, value)| value.is_some()) {
            Some((name, _)) => Err(format!("`{}` has no member `{name}`; remove it", op.name())),
            None => Ok(Event { at, op }),
        }
    }

    fn task(&mut self) -> Result<u32, String> {
        Ok(take("task", &mut self.task, 1, i64::from(MAX_TASKS))? as u32)
    }

    fn weight(&mut self) -> Result<u32, String> {
        Ok(take("weight", &mut self.weight, 1, i64::from(MAX_WEIGHT))? as u32)
    }
}

/// A virtual time that may be missing, and is 0 then.
fn or_zero(name: &str, value: &mut Option<i64>) -> Result<i64, String> {
    if value.is_some() { take(name, value, -MAX_TIME, MAX_TIME) } else { Ok(0) }
}

/// Takes a member that must be there.
fn take(name: &str, member: &mut Option<i64>, least: i64, most: i64) -> Result<i64, String> {
    let value = member.take().ok_or_else(|| format!("`{name}` is missing; add it"))?;
    within(name, value, least, most)
}

/// `value`, if it is from `least` to `most`.
pub(crate) fn within(name: &str, value: i64, least: i64, most: i64) -> Result<i64, String> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(format!("`{name}` is {value}; give {least} to {most}"))
}

/// What `why` says about a line, without the number of its line, which is always 1.
pub(crate) fn not_json(why: &serde_json::Error) -> String {
    let text = why.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let text: String = text.chars().take(200).collect();
    format!("{text} at column {}; give one object a line, as in README.md", why.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_flat_line_of_the_readme() {
        let lines = [
            r#"{"at":0,"op":"reset","tick":4000000,"slice":700000}"#,
            r#"{"at":0,"op":"task","task":1,"weight":1024,"slice":700000,"vruntime":-5,"lag":7}"#,
            r#"{"at":1,"op":"wake","task":1}"#,
            r#"{"at":1,"op":"new","task":2}"#,
            r#"{"at":2,"op":"tick"}"#,
            r#"{"at":3,"op":"block"}"#,
            r#"{"at":3,"op":"exit"}"#,
            r#"{"at":3,"op":"yield"}"#,
            r#"{"at":4,"op":"weight","task":1,"weight":820}"#,
            r#"{"at":5,"op":"slice","task":1,"slice":100000}"#,
            r#"{"at":4611686018427387903,"op":"pick"}"#,
        ];
        for line in lines {
            assert_eq!(Event::parse(line).unwrap().line(), line);
        }
    }

    #[test]
    fn what_is_no_event_is_refused_by_name() {
        for (line, what) in [
            (r#"{"at":-1,"op":"tick"}"#, "`at` is -1"),
            (r#"{"at":4611686018427387904,"op":"tick"}"#, "`at` is 4611686018427387904"),
            (r#"{"at":1e999,"op":"tick"}"#, "number out of range"),
            (r#"{"at":99999999999999999999,"op":"tick"}"#, "invalid type: floating point"),
            (r#"{"at":0,"op":"tock"}"#, "unknown op \"tock\""),
            (r#"{"at":0,"op":"tick","task":1}"#, "`tick` has no member `task`"),
            (r#"{"at":0,"op":"wake"}"#, "`task` is missing"),
            (r#"{"at":0,"op":"wake","task":4097}"#, "`task` is 4097"),
            (r#"{"at":0,"op":"wake","task":1} x"#, "trailing characters"),
            (r#"{"at":0,"at":0,"op":"tick"}"#, "duplicate field `at`"),
            (r#"{"at":0,"op":"tick","x":0}"#, "unknown field `x`"),
            (r#"{"at":0,"op":"tick","then":{}}"#, "a subject receives neither"),
            ("", "EOF while parsing"),
        ] {
            let why = Event::parse(line).unwrap_err();
            assert!(why.contains(what), "{line}: {why}");
        }
        let deep = "[".repeat(100_000);
        Event::parse(&deep).unwrap_err();
        Answer::parse(&format!(r#"{{"tasks":{deep}"#)).unwrap_err();
        Answer::parse(r#"{"tasks":[{"task":1},{"task":1}]}"#).unwrap_err();
        Answer::parse(r#"{"tasks":[{"task":1,"lag":4611686018427387904}]}"#).unwrap_err();
        Answer::parse(r#"{"runs":-1}"#).unwrap_err();
    }
}
