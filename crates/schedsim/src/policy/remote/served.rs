//! The end at which the policy is.

use super::super::{AnyPolicy, Context, Descriptor, Policy};
use super::calls::{Call, FIRST, number};
use super::words::{Reader, put_dispatch, put_effect, put_text, receive, send};
use super::{DONE, GAVE_UP, GREETING, NO_POLICY, REFUSED, state};
use crate::seat::{Ended, Rule};
use crate::{Machine, Random};
use std::io::{self, ErrorKind, Read, Write};

/// A policy with its copy of the context.
pub struct Served<P> {
    policy: P,
    cx: Context,
    /// Whether the other end knows that random numbers were drawn.
    has_told: bool,
}

/// Serves the policy that `make` builds for a machine, until `from` ends.
///
/// # Errors
/// As `from` and `to`, or if what comes is not of [`Remote`](super::Remote).
pub fn serve<P: Policy>(
    make: impl FnOnce(&Machine) -> Result<P, String>,
    from: &mut impl Read,
    to: &mut impl Write,
) -> io::Result<()> {
    let hello = receive(from)?;
    let mut reader = Reader::new(&hello);
    let greeting = (reader.next() == Some(GREETING))
        .then(|| Some((reader.next()?, state::machine(&mut reader)?)))
        .flatten();
    let (seed, machine) = greeting.ok_or_else(out_of_form)?;
    let policy = match make(&machine) {
        Ok(policy) => policy,
        Err(why) => {
            let mut answer = vec![NO_POLICY];
            put_text(&mut answer, &why);
            return send(to, &answer);
        }
    };
    let mut answer = vec![DONE];
    state::put_nature(&mut answer, policy.needs(), policy.promises(), policy.migrates());
    send(to, &answer)?;
    let cx = Context::new(machine, Vec::new(), Random::new(seed));
    let mut served = Served { policy, cx, has_told: false };
    loop {
        let message = match receive(from) {
            Ok(message) => message,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(answer) = served.answer(&message).ok_or_else(out_of_form)? {
            send(to, &answer)?;
        }
    }
}

/// [`serve`] for a described policy with the defaults of its options.
///
/// # Errors
/// As [`serve`].
pub fn serve_descriptor(
    descriptor: &Descriptor,
    from: &mut impl Read,
    to: &mut impl Write,
) -> io::Result<()> {
    let make = |machine: &Machine| -> Result<AnyPolicy, String> {
        descriptor.policy(machine.cpus).ok_or_else(|| {
            format!("{} is a topology, which needs an order of tasks", descriptor.name)
        })
    };
    serve(make, from, to)
}

fn out_of_form() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "this is no message of schedlab's")
}

impl<P: Policy> Served<P> {
    /// Makes the changes and calls of a message, and returns the answer of its last call if that
    /// has one.
    #[expect(clippy::option_option, reason = "a wrong message, or one without an answer")]
    fn answer(&mut self, message: &[u64]) -> Option<Option<Vec<u64>>> {
        let (mut reader, mut answer) = (Reader::new(message), None);
        while let Some(kind) = reader.next() {
            if kind < FIRST {
                state::change(kind, &mut reader, &mut self.cx)?;
            } else {
                answer = self.call(Call::read(kind, &mut reader)?);
            }
        }
        Some(answer)
    }

    /// Makes a call; the answer, if it has one.
    fn call(&mut self, call: Call) -> Option<Vec<u64>> {
        let mut words = vec![DONE, 0];
        let asks = if self.cx.ended.is_some() { call.asks() } else { self.make(call, &mut words) };
        if !asks {
            return None;
        }
        let Some(ended) = &self.cx.ended else {
            let drew = self.cx.random.drawn() && !self.has_told;
            self.has_told |= drew;
            words[1] = drew.into();
            return Some(words);
        };
        let mut words = Vec::new();
        match &**ended {
            Ended::Refused { message, .. } => {
                words.push(REFUSED);
                put_text(&mut words, message);
            }
            Ended::Breach(breach) => {
                words.extend([GAVE_UP, number(breach.callback)]);
                let text = match &breach.rule {
                    Rule::GivesUp { message } => message.clone(),
                    rule => rule.to_string(),
                };
                put_text(&mut words, &text);
            }
        }
        Some(words)
    }

    /// Makes a call of the policy, and says whether it has an answer.
    fn make(&mut self, call: Call, to: &mut Vec<u64>) -> bool {
        let Served { policy, cx, .. } = self;
        match call {
            Call::QueueLength(cpu) => {
                to.truncate(1);
                to.push(policy.queue_length(cpu).into());
            }
            Call::Scan(cpu) => {
                let scan = policy.scan(cpu);
                to.truncate(1);
                to.extend([u64::from(scan.queue.0), scan.entries.into()]);
            }
            Call::InitTask(task) => policy.init_task(cx, task),
            Call::ExitTask(task) => policy.exit_task(cx, task),
            Call::SelectCpu(task, wake) => to.push(policy.select_cpu(cx, task, wake).0.into()),
            Call::Enqueue(task, cpu, why) => put_effect(to, policy.enqueue(cx, task, cpu, why)),
            Call::Dequeue(task) => policy.dequeue(cx, task),
            Call::Dispatch(cpu) => put_dispatch(to, policy.dispatch(cx, cpu)),
            Call::Running(cpu, task) => policy.running(cx, cpu, task),
            Call::Stopping(cpu, task, why) => policy.stopping(cx, cpu, task, why),
            Call::SetWeight(task, old, why) => {
                put_effect(to, policy.set_weight(cx, task, old, why));
            }
            Call::SetCpumask(task, old) => put_effect(to, policy.set_cpumask(cx, task, old)),
            Call::Disable(task) => policy.disable(cx, task),
            Call::Enable(task) => policy.enable(cx, task),
            Call::CpuOffline(cpu) => policy.cpu_offline(cx, cpu),
            Call::CpuOnline(cpu) => policy.cpu_online(cx, cpu),
            Call::CpuRelease(cpu) => policy.cpu_release(cx, cpu),
            Call::CpuAcquire(cpu) => policy.cpu_acquire(cx, cpu),
            Call::UpdateIdle(cpu, idle) => put_effect(to, policy.update_idle(cx, cpu, idle)),
            Call::Tick(cpu, task) => put_effect(to, policy.tick(cx, cpu, task)),
        }
        call.asks()
    }
}
