//! Breaches of the contract of a policy: one error for every world.

use super::state::TaskState;
use crate::{CpuId, Nanos, TaskId, Time};
use std::fmt;
use strum::IntoStaticStr;

/// Why a run ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The contract was broken.
    Breach(Breach),
    /// A task requests something impossible: the workload's fault.
    Refused {
        /// When.
        time: Time,
        /// The task, and what it requests.
        message: String,
    },
}

/// A rule of the contract that a policy or its driver broke. The run ends without a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach {
    /// The callback during or after which it was noticed.
    pub callback: Callback,
    /// The rule, with the value that broke it.
    pub rule: Rule,
    /// The task concerned, if any.
    pub task: Option<TaskId>,
    /// The CPU concerned, if any.
    pub cpu: Option<CpuId>,
    /// The time, by the policy's clock.
    pub time: Time,
}

/// A method of [`Policy`](crate::policy::Policy), or the driver's setting of the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
    SetCpumask,
    Disable,
    Enable,
    CpuOffline,
    CpuOnline,
    CpuRelease,
    CpuAcquire,
    UpdateIdle,
    Timer,
    Tick,
    Advance,
}

impl Callback {
    /// The method's name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The rules. The policy must keep all but the last two, which are the driver's.
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
        /// The requested time.
        at: Time,
    },
    /// A policy that asks for alarms says so in [`Needs::alarm`](crate::policy::Needs::alarm).
    AlarmIsDeclared,
    /// A tick period is longer than zero.
    TickIsPositive,
    /// No waiting task is left when nothing else can happen.
    NoneLost,
    /// A policy does not give up ([`Context::fail`](crate::policy::Context::fail)).
    GivesUp {
        /// The reason.
        message: String,
    },
    /// The driver makes a call only for a task or a CPU in the right state.
    CallInOrder {
        /// The state of the task or the CPU.
        found: Found,
    },
    /// The driver's clock does not go back.
    ClockGoesForward {
        /// The time to which it was set.
        to: Time,
    },
}

/// The state in which a driver's call came.
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
    /// The CPU is offline, or another class has it.
    CpuAway,
    /// The task runs on a CPU that it may not use any more.
    Outside,
}

impl Breach {
    /// Whether the driver broke the contract, not the policy.
    pub fn is_drivers(&self) -> bool {
        matches!(self.rule, Rule::CallInOrder { .. } | Rule::ClockGoesForward { .. })
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breach { callback, rule, task, cpu, time } = self;
        write!(
            f,
            "at {}: {}",
            Nanos(time.0),
            if self.is_drivers() { "the driver called " } else { "" }
        )?;
        write!(f, "{}", callback.name())?;
        task.map_or(Ok(()), |task| write!(f, ", task {}", task.0))?;
        cpu.map_or(Ok(()), |cpu| write!(f, ", CPU {}", cpu.0))?;
        write!(f, ": {rule}")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::CpuExists { cpus } => {
                write!(f, "there is no such CPU; the last one is CPU {}", cpus.saturating_sub(1))
            }
            Rule::TaskExists => {
                f.write_str("there is no such task: it has not come yet, or has left")
            }
            Rule::Waits { state } => {
                write!(f, "the task {state}, and only a task that waits may be dispatched")
            }
            Rule::MayRunThere => f.write_str("the task may not run on this CPU"),
            Rule::SliceIsPositive => f.write_str("the slice is 0 ns, and must be at least 1 ns"),
            Rule::AlarmIsAhead { at } => {
                write!(f, "the alarm (KickAt) is for {}, which is over", Nanos(at.0))
            }
            Rule::AlarmIsDeclared => f.write_str(
                "it requests an alarm (KickAt), but its `needs` do not declare it: set `alarm`",
            ),
            Rule::TickIsPositive => {
                f.write_str("the period of the tick is 0 ns, and must be at least 1 ns")
            }
            Rule::NoneLost => f.write_str(
                "the task waits, nothing is left to happen, and it was never dispatched: the \
                 policy lost it",
            ),
            Rule::GivesUp { message } => f.write_str(message),
            Rule::CallInOrder { found: Found::Task(state) } => write!(f, "the task {state}"),
            Rule::CallInOrder { found: Found::CpuBusy } => f.write_str("the CPU runs a task"),
            Rule::CallInOrder { found: Found::NoCpu } => f.write_str("there is no such CPU"),
            Rule::CallInOrder { found: Found::CpuAway } => {
                f.write_str("the CPU is offline, or another class has it")
            }
            Rule::CallInOrder { found: Found::Outside } => {
                f.write_str("the task runs on a CPU that it may not use any more, and stops first")
            }
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
            TaskState::Elsewhere => "is of another class",
            TaskState::Waiting => "waits",
            TaskState::Chosen => "is dispatched already",
            TaskState::Running => "runs",
        })
    }
}

impl std::error::Error for Breach {}
