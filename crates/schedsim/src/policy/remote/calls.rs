//! The calls that are made of a policy, as words.

use super::super::{Enqueue, Reweight, Stop, Wake};
use super::words::Reader;
use crate::seat::Callback;
use crate::workload::Affinity;
use crate::{CpuId, TaskId};

/// A call with its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Call {
    QueueLength(CpuId),
    Scan(CpuId),
    InitTask(TaskId),
    ExitTask(TaskId),
    SelectCpu(TaskId, Wake),
    Enqueue(TaskId, CpuId, Enqueue),
    Dequeue(TaskId),
    Dispatch(CpuId),
    Running(CpuId, TaskId),
    Stopping(CpuId, TaskId, Stop),
    SetWeight(TaskId, u8, Reweight),
    SetCpumask(TaskId, Affinity),
    Disable(TaskId),
    Enable(TaskId),
    CpuOffline(CpuId),
    CpuOnline(CpuId),
    CpuRelease(CpuId),
    CpuAcquire(CpuId),
    UpdateIdle(CpuId, bool),
    Tick(CpuId, TaskId),
}

/// The words that are calls, and not changes of the context, are from here on.
pub(super) const FIRST: u64 = 100;

/// The callbacks, by their number in messages.
const CALLBACKS: [Callback; 19] = [
    Callback::Scan,
    Callback::InitTask,
    Callback::ExitTask,
    Callback::SelectCpu,
    Callback::Enqueue,
    Callback::Dequeue,
    Callback::Dispatch,
    Callback::Running,
    Callback::Stopping,
    Callback::SetWeight,
    Callback::SetCpumask,
    Callback::Disable,
    Callback::Enable,
    Callback::CpuOffline,
    Callback::CpuOnline,
    Callback::CpuRelease,
    Callback::CpuAcquire,
    Callback::UpdateIdle,
    Callback::Tick,
];
/// The number of the call for a queue's length, which is no callback.
const QUEUE_LENGTH: u64 = FIRST + CALLBACKS.len() as u64;

/// The callback of this number.
pub(super) fn callback(number: u64) -> Option<Callback> {
    CALLBACKS.get(usize::try_from(number).ok()?).copied()
}

/// The number of a callback.
pub(super) fn number(callback: Callback) -> u64 {
    CALLBACKS.iter().position(|&one| one == callback).unwrap_or(0) as u64
}

const WHY: [Enqueue; 7] = [
    Enqueue::New,
    Enqueue::Wakeup,
    Enqueue::SliceOver,
    Enqueue::Preempted,
    Enqueue::Yielded,
    Enqueue::PrioChanged,
    Enqueue::Restored,
];

const STOPS: [Stop; 6] = [
    Stop::SliceOver,
    Stop::Preempted,
    Stop::Yielded,
    Stop::Blocked,
    Stop::Exited,
    Stop::OtherClass,
];

fn place<T: PartialEq>(of: &T, all: &[T]) -> u64 {
    all.iter().position(|one| one == of).unwrap_or(0) as u64
}

/// An affinity, as two words.
pub(super) fn affinity_words(affinity: Affinity) -> [u64; 2] {
    match affinity {
        Affinity::Any => [0, 0],
        Affinity::Pinned(cpu) => [1, cpu.0.into()],
        Affinity::Set(set) => [2, set.into()],
    }
}

/// The affinity in two words.
pub(super) fn affinity(reader: &mut Reader) -> Option<Affinity> {
    match (reader.next()?, reader.next()?) {
        (0, _) => Some(Affinity::Any),
        (1, cpu) => Some(Affinity::Pinned(CpuId(cpu.try_into().ok()?))),
        (2, set) => Some(Affinity::Set(set.try_into().ok()?)),
        _ => None,
    }
}

impl Call {
    /// The callback for messages.
    pub fn callback(self) -> Callback {
        match self {
            Call::QueueLength(_) | Call::Scan(_) => Callback::Scan,
            Call::InitTask(_) => Callback::InitTask,
            Call::ExitTask(_) => Callback::ExitTask,
            Call::SelectCpu(..) => Callback::SelectCpu,
            Call::Enqueue(..) => Callback::Enqueue,
            Call::Dequeue(_) => Callback::Dequeue,
            Call::Dispatch(_) => Callback::Dispatch,
            Call::Running(..) => Callback::Running,
            Call::Stopping(..) => Callback::Stopping,
            Call::SetWeight(..) => Callback::SetWeight,
            Call::SetCpumask(..) => Callback::SetCpumask,
            Call::Disable(_) => Callback::Disable,
            Call::Enable(_) => Callback::Enable,
            Call::CpuOffline(_) => Callback::CpuOffline,
            Call::CpuOnline(_) => Callback::CpuOnline,
            Call::CpuRelease(_) => Callback::CpuRelease,
            Call::CpuAcquire(_) => Callback::CpuAcquire,
            Call::UpdateIdle(..) => Callback::UpdateIdle,
            Call::Tick(..) => Callback::Tick,
        }
    }

    /// Whether it has an answer.
    pub fn asks(self) -> bool {
        matches!(
            self,
            Call::QueueLength(_)
                | Call::Scan(_)
                | Call::SelectCpu(..)
                | Call::Enqueue(..)
                | Call::Dispatch(_)
                | Call::SetWeight(..)
                | Call::SetCpumask(..)
                | Call::UpdateIdle(..)
                | Call::Tick(..)
        )
    }

    /// Writes it.
    pub fn put(self, to: &mut Vec<u64>) {
        let number = match self {
            Call::QueueLength(_) => QUEUE_LENGTH,
            other => FIRST + number(other.callback()),
        };
        to.push(number);
        match self {
            Call::QueueLength(cpu)
            | Call::Scan(cpu)
            | Call::Dispatch(cpu)
            | Call::CpuOffline(cpu)
            | Call::CpuOnline(cpu)
            | Call::CpuRelease(cpu)
            | Call::CpuAcquire(cpu) => to.push(cpu.0.into()),
            Call::InitTask(task)
            | Call::ExitTask(task)
            | Call::Dequeue(task)
            | Call::Disable(task)
            | Call::Enable(task) => to.push(task.0.into()),
            Call::SelectCpu(task, Wake { new, waker, sync }) => {
                let waker = waker.map_or(0, |cpu| u64::from(cpu.0) + 1);
                to.extend([u64::from(task.0), u64::from(new) | u64::from(sync) << 1, waker]);
            }
            Call::Enqueue(task, cpu, why) => {
                to.extend([task.0.into(), cpu.0.into(), place(&why, &WHY)]);
            }
            Call::Running(cpu, task) | Call::Tick(cpu, task) => {
                to.extend([u64::from(cpu.0), task.0.into()]);
            }
            Call::Stopping(cpu, task, why) => {
                to.extend([cpu.0.into(), task.0.into(), place(&why, &STOPS)]);
            }
            Call::SetWeight(task, old, why) => {
                to.extend([task.0.into(), old.into(), u64::from(why == Reweight::Inherited)]);
            }
            Call::SetCpumask(task, old) => {
                to.push(task.0.into());
                to.extend(affinity_words(old));
            }
            Call::UpdateIdle(cpu, idle) => to.extend([u64::from(cpu.0), idle.into()]),
        }
    }

    /// Reads the call of this number.
    pub fn read(number: u64, reader: &mut Reader) -> Option<Call> {
        if number == QUEUE_LENGTH {
            return Some(Call::QueueLength(cpu(reader)?));
        }
        Some(match callback(number.checked_sub(FIRST)?)? {
            Callback::Scan => Call::Scan(cpu(reader)?),
            Callback::InitTask => Call::InitTask(task(reader)?),
            Callback::ExitTask => Call::ExitTask(task(reader)?),
            Callback::SelectCpu => {
                let (task, how, waker) = (task(reader)?, reader.next()?, reader.next()?);
                let waker = waker.checked_sub(1).map(|cpu| CpuId(cpu as u16));
                Call::SelectCpu(task, Wake { new: how & 1 != 0, waker, sync: how & 2 != 0 })
            }
            Callback::Enqueue => {
                Call::Enqueue(task(reader)?, cpu(reader)?, *WHY.get(reader.number::<usize>()?)?)
            }
            Callback::Dequeue => Call::Dequeue(task(reader)?),
            Callback::Dispatch => Call::Dispatch(cpu(reader)?),
            Callback::Running => Call::Running(cpu(reader)?, task(reader)?),
            Callback::Stopping => {
                Call::Stopping(cpu(reader)?, task(reader)?, *STOPS.get(reader.number::<usize>()?)?)
            }
            Callback::SetWeight => {
                let (task, old) = (task(reader)?, reader.number()?);
                let why = if reader.next()? == 1 { Reweight::Inherited } else { Reweight::Own };
                Call::SetWeight(task, old, why)
            }
            Callback::SetCpumask => Call::SetCpumask(task(reader)?, affinity(reader)?),
            Callback::Disable => Call::Disable(task(reader)?),
            Callback::Enable => Call::Enable(task(reader)?),
            Callback::CpuOffline => Call::CpuOffline(cpu(reader)?),
            Callback::CpuOnline => Call::CpuOnline(cpu(reader)?),
            Callback::CpuRelease => Call::CpuRelease(cpu(reader)?),
            Callback::CpuAcquire => Call::CpuAcquire(cpu(reader)?),
            Callback::UpdateIdle => Call::UpdateIdle(cpu(reader)?, reader.next()? == 1),
            Callback::Tick => Call::Tick(cpu(reader)?, task(reader)?),
            Callback::Needs | Callback::Timer | Callback::Advance => return None,
        })
    }
}

fn cpu(reader: &mut Reader) -> Option<CpuId> {
    reader.number().map(CpuId)
}

fn task(reader: &mut Reader) -> Option<TaskId> {
    reader.number().map(TaskId)
}
