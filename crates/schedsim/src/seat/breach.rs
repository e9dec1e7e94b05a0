//! What breaks the contract of a policy, in one error for every world.

use super::TaskState;
use crate::{CpuId, Nanos, TaskId, Time};
use std::fmt;

/// A rule of the contract between a policy and its driver that one of them broke. The run ends, and gives no number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach {
    /// In which callback, or after which one.
    pub callback: Callback,
    /// Which rule, with the value that broke it.
    pub rule: Rule,
    /// Which task that was about, if one.
    pub task: Option<TaskId>,
    /// Which CPU that was about, if one.
    pub cpu: Option<CpuId>,
    /// When, by the clock of the policy.
    pub time: Time,
}

/// A method of [`Policy`](crate::policy::Policy), or the driver's setting of the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each is named as the method that it is")]
pub enum Callback {
    Needs,
    Scan,
    InitTask,
    ExitTask,
    SelectCpu,
    Enqueue,
    Dequeue,
    Dispatch,
    Running,
    Stopping,
    SetWeight,
    UpdateIdle,
    Tick,
    Advance,
}

impl Callback {
    /// The method's name.
    pub fn name(self) -> &'static str {
        match self {
            Callback::Needs => "needs",
            Callback::Scan => "scan",
            Callback::InitTask => "init_task",
            Callback::ExitTask => "exit_task",
            Callback::SelectCpu => "select_cpu",
            Callback::Enqueue => "enqueue",
            Callback::Dequeue => "dequeue",
            Callback::Dispatch => "dispatch",
            Callback::Running => "running",
            Callback::Stopping => "stopping",
            Callback::SetWeight => "set_weight",
            Callback::UpdateIdle => "update_idle",
            Callback::Tick => "tick",
            Callback::Advance => "advance",
        }
    }
}

/// The rules. All but the last two are the policy's to keep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A CPU that is named exists.
    CpuExists {
        /// How many there are.
        cpus: u16,
    },
    /// A task that is named exists.
    TaskExists,
    /// Only a task that waits is dispatched.
    Waits {
        /// What it does.
        state: TaskState,
    },
    /// A task is dispatched only to a CPU on which it may run.
    MayRunThere,
    /// A slice is longer than zero.
    SliceIsPositive,
    /// An alarm ([`Effect::KickAt`](crate::policy::Effect::KickAt)) is not in the past.
    AlarmIsAhead {
        /// For when it was asked.
        at: Time,
    },
    /// A policy that asks for alarms says so in [`Needs::alarm`](crate::policy::Needs::alarm).
    AlarmIsDeclared,
    /// The period of a tick is longer than zero.
    TickIsPositive,
    /// A task that waits is dispatched before nothing is left to happen.
    NoneLost,
    /// A policy does not give up ([`Context::fail`](crate::policy::Context::fail)).
    GivesUp {
        /// Why it did.
        message: String,
    },
    /// The driver makes a call only for a task or a CPU in the right state.
    CallInOrder {
        /// What the task does, or whether the CPU runs one.
        found: Found,
    },
    /// The driver's clock does not go back.
    ClockGoesForward {
        /// When it was set to.
        to: Time,
    },
}

/// In which state a driver's call came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The task's.
    Task(TaskState),
    /// The CPU runs a task.
    CpuBusy,
    /// The CPU runs nothing.
    CpuFree,
    /// There is no such CPU.
    NoCpu,
}

impl Breach {
    /// Whether the driver broke the contract, and not the policy.
    pub fn is_drivers(&self) -> bool {
        matches!(self.rule, Rule::CallInOrder { .. } | Rule::ClockGoesForward { .. })
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breach { callback, rule, task, cpu, time } = self;
        write!(f, "at {}: {}", Nanos(time.0), if self.is_drivers() { "the driver called " } else { "" })?;
        write!(f, "{}", callback.name())?;
        task.map_or(Ok(()), |task| write!(f, ", task {}", task.0))?;
        cpu.map_or(Ok(()), |cpu| write!(f, ", CPU {}", cpu.0))?;
        write!(f, ": {rule}")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::CpuExists { cpus } => write!(f, "there is no such CPU; the last one is CPU {}", cpus.saturating_sub(1)),
            Rule::TaskExists => f.write_str("there is no such task: it has not come yet, or has left"),
            Rule::Waits { state } => write!(f, "the task {state}, and only a task that waits may be dispatched"),
            Rule::MayRunThere => f.write_str("the task may not run on this CPU"),
            Rule::SliceIsPositive => f.write_str("the slice is 0 ns, and must be at least 1 ns"),
            Rule::AlarmIsAhead { at } => write!(f, "the alarm (KickAt) is for {}, which is over", Nanos(at.0)),
            Rule::AlarmIsDeclared => f.write_str("it asks for an alarm (KickAt), and its `needs` do not declare that: set `alarm`"),
            Rule::TickIsPositive => f.write_str("the period of the tick is 0 ns, and must be at least 1 ns"),
            Rule::NoneLost => f.write_str("the task waits, nothing is left to happen, and it was never dispatched: the policy lost it"),
            Rule::GivesUp { message } => f.write_str(message),
            Rule::CallInOrder { found: Found::Task(state) } => write!(f, "the task {state}"),
            Rule::CallInOrder { found: Found::CpuBusy } => f.write_str("the CPU runs a task"),
            Rule::CallInOrder { found: Found::NoCpu } => f.write_str("there is no such CPU"),
            Rule::CallInOrder { found: Found::CpuFree } => f.write_str("the CPU runs no task"),
            Rule::ClockGoesForward { to } => write!(f, "the clock was set back to {}", Nanos(to.0)),
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskState::Absent => "has not come yet, or has left",
            TaskState::New => "is new and has no CPU yet",
            TaskState::Asleep => "sleeps",
            TaskState::Waiting => "waits",
            TaskState::Chosen => "is dispatched already",
            TaskState::Running => "runs",
        })
    }
}

impl std::error::Error for Breach {}
