//! A policy in another process: it answers callbacks and sees nothing else.
//!
//! [`Remote`] is a policy for the engine, and hands each callback with what changed in its
//! [`Context`] to a [`Link`]. At the other end [`serve`] keeps a copy of the context, calls the
//! policy and answers. The engine, the workload, its seed and every number stay on this side. So
//! the other side can be untrusted. It can only answer a callback, and the seat checks each answer
//! as it does any policy's.
//!
//! Callbacks without an answer (`running`, `stopping`, …) wait for the next one that has one: they
//! cost no exchange of their own.
//!
//! A message is a number of 64-bit words, and before it their count. What crosses of the machine:
//! the number of CPUs, the topology, and the costs of a switch, a migration, leaving idle and a
//! wakeup. The random numbers are a stream of their own, not the engine's.

mod calls;
mod served;
mod state;
mod words;

pub use served::{Served, serve, serve_descriptor};
pub use words::{receive, send};

use super::{
    Context, Dispatch, Effect, Enqueue, InKernel, Kept, Needs, Policy, Promises, Reweight, Scan,
    Stop, VirtualTimes, Wake,
};
use crate::workload::Affinity;
use crate::{CpuId, Machine, TaskId, Time};
use calls::Call;
use state::Seen;
use std::cell::RefCell;
use words::Reader;

/// The way to the process that answers.
pub trait Link {
    /// Sends a message, and returns its answer.
    ///
    /// # Errors
    /// If there is none; the text says why.
    fn exchange(&mut self, message: &[u64]) -> Result<Vec<u64>, String>;

    /// Sends a message that has no answer.
    ///
    /// # Errors
    /// If it cannot be sent.
    fn tell(&mut self, message: &[u64]) -> Result<(), String>;
}

/// A policy that a [`Link`] leads to.
#[derive(Debug)]
pub struct Remote<L> {
    /// `scan` and `queue_length` ask as well, and have a shared reference only.
    line: RefCell<Line<L>>,
    needs: Needs,
    promises: Promises,
    migrates: bool,
}

/// The link, and what its other end knows.
#[derive(Debug)]
struct Line<L> {
    link: L,
    seen: Seen,
    /// What is not sent yet.
    waiting: Vec<u64>,
    is_broken: bool,
}

/// The most words that wait for a call that has an answer.
const MOST_WAITING: usize = 4096;
/// The first word of a greeting. Both ends are built from the same sources, or do not talk.
const GREETING: u64 = 0x7363_6865_646c_0001;
/// The kinds of answers.
const DONE: u64 = 0;
const GAVE_UP: u64 = 1;
const REFUSED: u64 = 2;
const NO_POLICY: u64 = 3;

/// Why the other end does not serve a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoPolicy {
    /// It says so: it has none that can be made.
    Said(String),
    /// The link failed, or what came is no greeting.
    Silent(String),
}

impl<L: Link> Remote<L> {
    /// Greets the other end: makes its policy for `machine`. `seed` is that of the random numbers
    /// that it may draw.
    ///
    /// # Errors
    /// If there is no policy.
    pub fn greet(mut link: L, machine: &Machine, seed: u64) -> Result<Remote<L>, NoPolicy> {
        let mut hello = vec![GREETING, seed];
        state::put_machine(&mut hello, machine);
        let answer = link.exchange(&hello).map_err(NoPolicy::Silent)?;
        let mut reader = Reader::new(&answer);
        if reader.next() == Some(NO_POLICY) {
            return Err(NoPolicy::Said(reader.text().unwrap_or_default()));
        }
        let mut reader = Reader::new(&answer);
        let greeted = (reader.next() == Some(DONE)).then(|| state::nature(&mut reader)).flatten();
        let Some((needs, promises, migrates)) = greeted else {
            return Err(NoPolicy::Silent("it answers the greeting out of form".to_string()));
        };
        let line = Line { link, seen: Seen::new(machine), waiting: Vec::new(), is_broken: false };
        Ok(Remote { line: RefCell::new(line), needs, promises, migrates })
    }

    /// Makes a call that has no answer.
    fn tell(&self, cx: &mut Context, call: Call) {
        let line = &mut *self.line.borrow_mut();
        if line.is_broken {
            return;
        }
        line.seen.put_changes(&mut line.waiting, cx);
        call.put(&mut line.waiting);
        if line.waiting.len() > MOST_WAITING
            && let Err(why) = line.link.tell(&std::mem::take(&mut line.waiting))
        {
            line.is_broken = true;
            cx.fail(call.callback(), why);
        }
    }

    /// Makes a call, and returns its answer; `harmless` if there is none.
    fn ask<T>(
        &self,
        cx: &mut Context,
        call: Call,
        harmless: T,
        read: impl FnOnce(&mut Reader) -> Option<T>,
    ) -> T {
        let line = &mut *self.line.borrow_mut();
        if line.is_broken {
            return harmless;
        }
        line.seen.put_changes(&mut line.waiting, cx);
        call.put(&mut line.waiting);
        let answer = line.link.exchange(&line.waiting);
        line.waiting.clear();
        let read = answer.and_then(|answer| read_answer(&answer, cx, read));
        match read {
            Ok(Some(answer)) => return answer,
            Ok(None) => {}
            Err(why) => cx.fail(call.callback(), why),
        }
        line.is_broken = true;
        harmless
    }

    /// Asks for what the context has no part in.
    fn ask_alone<T>(&self, call: Call, read: impl FnOnce(&mut Reader) -> Option<T>) -> Option<T> {
        let line = &mut *self.line.borrow_mut();
        if line.is_broken {
            return None;
        }
        call.put(&mut line.waiting);
        let answer = line.link.exchange(&line.waiting).ok();
        line.waiting.clear();
        let mut reader = Reader::new(answer.as_deref().unwrap_or_default());
        (reader.next() == Some(DONE)).then(|| read(&mut reader)).flatten()
    }
}

/// The answer in `words`, or none if the policy has ended the run: `cx` says why.
fn read_answer<T>(
    words: &[u64],
    cx: &mut Context,
    read: impl FnOnce(&mut Reader) -> Option<T>,
) -> Result<Option<T>, String> {
    let mut reader = Reader::new(words);
    let out_of_form = || "it answers out of form".to_string();
    match reader.next() {
        Some(DONE) => {
            if reader.next() == Some(1) {
                cx.random().bits();
            }
            read(&mut reader).map(Some).ok_or_else(out_of_form)
        }
        Some(GAVE_UP) => {
            let callback = reader.next().and_then(calls::callback).ok_or_else(out_of_form)?;
            cx.fail(callback, reader.text().ok_or_else(out_of_form)?);
            Ok(None)
        }
        Some(REFUSED) => {
            cx.refuse(reader.text().ok_or_else(out_of_form)?);
            Ok(None)
        }
        _ => Err(out_of_form()),
    }
}

// A callback that is not forwarded here would silently do nothing.
#[deny(clippy::missing_trait_methods)]
impl<L: Link> Policy for Remote<L> {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn promises(&self) -> Promises {
        self.promises
    }

    /// Not of the protocol: vectors reach a policy in another process by their own.
    fn virtual_times(&self, _task: TaskId, _now: Time) -> Option<VirtualTimes> {
        None
    }

    fn keep(&mut self, _task: TaskId, _kept: Kept) {}

    /// Not of the protocol: a policy in another process cannot make requests.
    fn correct(&mut self, _task: TaskId, _kernel: InKernel) -> Option<InKernel> {
        None
    }

    fn timer(&mut self, _cx: &mut Context) {}

    fn queue_length(&self, cpu: CpuId) -> u32 {
        let length = self.ask_alone(Call::QueueLength(cpu), |reader| reader.number());
        length.unwrap_or(0)
    }

    /// No policy of another process counts its instructions.
    fn take_work(&mut self, _cpu: CpuId) -> u64 {
        0
    }

    fn scan(&self, cpu: CpuId) -> Scan {
        let scan = self.ask_alone(Call::Scan(cpu), |reader| {
            Some(Scan { queue: CpuId(reader.number()?), entries: reader.number()? })
        });
        scan.unwrap_or(Scan { queue: cpu, entries: 1 })
    }

    fn migrates(&self) -> bool {
        self.migrates
    }

    fn fetch(&self, _task: TaskId) {}

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.tell(cx, Call::InitTask(task));
    }

    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.tell(cx, Call::ExitTask(task));
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        let harmless = cx.task(task).cpu;
        self.ask(cx, Call::SelectCpu(task, wake), harmless, |reader| reader.number().map(CpuId))
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        self.ask(cx, Call::Enqueue(task, cpu, why), Effect::Nothing, |reader| reader.effect())
    }

    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        self.tell(cx, Call::Dequeue(task));
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.ask(cx, Call::Dispatch(cpu), None, |reader| reader.dispatch())
    }

    fn running(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) {
        self.tell(cx, Call::Running(cpu, task));
    }

    fn set_weight(&mut self, cx: &mut Context, task: TaskId, old: u8, why: Reweight) -> Effect {
        self.ask(cx, Call::SetWeight(task, old, why), Effect::Nothing, |reader| reader.effect())
    }

    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, old: Affinity) -> Effect {
        self.ask(cx, Call::SetCpumask(task, old), Effect::Nothing, |reader| reader.effect())
    }

    fn disable(&mut self, cx: &mut Context, task: TaskId) {
        self.tell(cx, Call::Disable(task));
    }

    fn enable(&mut self, cx: &mut Context, task: TaskId) {
        self.tell(cx, Call::Enable(task));
    }

    fn cpu_offline(&mut self, cx: &mut Context, cpu: CpuId) {
        self.tell(cx, Call::CpuOffline(cpu));
    }

    fn cpu_online(&mut self, cx: &mut Context, cpu: CpuId) {
        self.tell(cx, Call::CpuOnline(cpu));
    }

    fn cpu_release(&mut self, cx: &mut Context, cpu: CpuId) {
        self.tell(cx, Call::CpuRelease(cpu));
    }

    fn cpu_acquire(&mut self, cx: &mut Context, cpu: CpuId) {
        self.tell(cx, Call::CpuAcquire(cpu));
    }

    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, why: Stop) {
        self.tell(cx, Call::Stopping(cpu, task, why));
    }

    fn update_idle(&mut self, cx: &mut Context, cpu: CpuId, idle: bool) -> Effect {
        self.ask(cx, Call::UpdateIdle(cpu, idle), Effect::Nothing, |reader| reader.effect())
    }

    fn tick(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) -> Effect {
        self.ask(cx, Call::Tick(cpu, task), Effect::Nothing, |reader| reader.effect())
    }
}

#[cfg(test)]
mod tests;
