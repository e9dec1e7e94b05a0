//! Estimates what blocking and waking take, from the calls of a recording.
//!
//! A call of a kind that neither blocked nor woke anybody shows what such a call does for its task.
//! What a call of the same kind takes beyond that, if it blocked once or woke one task, is the work
//! of the scheduler. Before the switch away it is that of blocking, and after the switch back that
//! of the switch. Where a kind of call always blocks or wakes, all calls that do neither replace
//! it. The interval then reaches from zero to twice as much.

use super::{ENOUGH, Estimate};
use crate::machine::{CallCosts, Spread};
use crate::metrics::{Bucket, Histogram};
use crate::trace::{Call, CallKind, Event, EventKind, Observer, PrevState, Returned, WakeContext};
use crate::workload::{KernelWork, Operation};
use crate::{CpuId, Nanos, TaskId, Time};
use std::collections::BTreeMap;
use std::fmt;

/// Observes the events and calls of a recording.
#[derive(Clone, Debug, Default)]
pub struct CallCostEstimator {
    hears: bool,
    tasks: Vec<InCall>,
    running: Vec<TaskId>,
    kinds: BTreeMap<u32, Kind>,
    /// From the end of a call that woke a task to the preemption of its own.
    preempt: Histogram,
    /// What recording a call takes.
    recording: Nanos,
}

/// What blocking and waking take on a recorded machine, with the calls that show it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CallEstimates {
    /// Of blocking, until the switch away, beyond the call's own work.
    pub block: CallCost,
    /// Of the switch back, from its event to the end of the call, beyond the call's own work.
    pub switch: CallCost,
    /// Of waking a task on the waker's CPU.
    pub wake_here: CallCost,
    /// Of waking a task on another CPU.
    pub wake_away: CallCost,
    /// Of waking a task on another CPU that idles.
    pub wake_idle: CallCost,
    /// Of being preempted: from the end of a call that woke another task to the switch.
    pub preempt: CallCost,
    /// By the number and operation of the call: one that neither blocked nor woke anybody.
    pub own: Vec<(u32, Estimate)>,
}

/// An estimated cost. It is a difference of calls, all of which are recorded: recording them is not
/// in it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CallCost {
    /// Its distribution; empty where it is unknown.
    pub spread: Spread,
    /// Its median with the 99 % interval.
    pub median: Estimate,
    /// Why there is none.
    pub unknown: Option<Unknown>,
    /// For most samples other kinds of calls stand in, as theirs always blocks or wakes. What was
    /// measured without that is better.
    pub is_weak: bool,
}

/// Why a recording cannot tell a cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// It has no calls.
    NoCalls,
    /// Too few calls that blocked or woke.
    TooFew,
    /// All calls block or wake, so that nothing shows what they do besides.
    NothingToCompare,
    /// The samples are too long for a cost: they hold other work.
    Work,
}

/// What is known of a task since its last call ended.
#[derive(Clone, Copy, Debug)]
struct InCall {
    /// It runs since.
    since: Option<Time>,
    /// When it first left its CPU to sleep, and how often.
    left: Time,
    blocks: u32,
    /// When it first woke another, how often, and where.
    woke: Time,
    wakings: u32,
    at: Where,
    /// When its last call ended, if that woke a task.
    released: Option<Time>,
    /// When a softirq in it last woke another, and where: it may carry what a call sends.
    softly: Option<(Time, Where)>,
    /// When it was last preempted, or interrupted by a waking.
    disturbed: Option<Time>,
}

/// The CPU of a woken task.
#[derive(Clone, Copy, Debug)]
enum Where {
    /// The waker's.
    Here,
    /// Another one, busy or idle.
    Away,
    Idle,
}

/// The calls of one kind.
#[derive(Clone, Debug, Default)]
struct Kind {
    own: Histogram,
    /// From the begin of the call to the switch away, and from the switch back to its end.
    block: Histogram,
    back: Histogram,
    wake: [Histogram; 3],
}

/// Costs of one kind of call, before its own work is taken off.
type Of = fn(&Kind) -> &Histogram;

/// The longest plausible cost: what takes longer is work.
const LONGEST: Nanos = Nanos(50_000);
/// The number of values of a distribution.
const VALUES: usize = 32;
/// The quantile of the normal distribution for 99 % intervals.
const WIDTH: f64 = 257.6;

impl InCall {
    const NEW: InCall = InCall {
        since: None,
        left: Time::ZERO,
        blocks: 0,
        woke: Time::ZERO,
        wakings: 0,
        at: Where::Here,
        released: None,
        softly: None,
        disturbed: None,
    };
}

impl Observer for CallCostEstimator {
    fn events(&mut self, chunk: &[Event]) {
        if self.hears {
            chunk.iter().for_each(|event| self.event(event));
        }
    }

    fn hears_calls(&self) -> bool {
        self.hears
    }

    fn call(&mut self, call: &Call) {
        let Call { time, task, kind, .. } = *call;
        if let (true, CallKind::Ends { since, recording, call, returned }) = (self.hears, kind) {
            self.recording = recording;
            let is_sent = matches!(returned, Returned::Did(Operation::Send { .. }));
            self.ends(task, (call, is_sent), (since, time));
        }
    }
}

impl CallCostEstimator {
    /// An estimator without calls; it takes none unless `hears`.
    pub fn new(hears: bool) -> CallCostEstimator {
        CallCostEstimator { hears, ..CallCostEstimator::default() }
    }

    fn task(&mut self, task: TaskId) -> Option<&mut InCall> {
        if task == TaskId::NONE {
            return None;
        }
        if task.index() >= self.tasks.len() {
            self.tasks.resize(task.index() + 1, InCall::NEW);
        }
        self.tasks.get_mut(task.index())
    }

    fn current(&mut self, cpu: CpuId) -> &mut TaskId {
        if cpu.index() >= self.running.len() {
            self.running.resize(cpu.index() + 1, TaskId::NONE);
        }
        &mut self.running[cpu.index()]
    }

    fn event(&mut self, event: &Event) {
        let Event { time, cpu, kind } = *event;
        match kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                if let Some(task) = self.task(prev) {
                    task.since = None;
                    if prev_state == PrevState::Blocked {
                        if task.blocks == 0 {
                            task.left = time;
                        }
                        task.blocks += 1;
                    } else {
                        task.disturbed = Some(time);
                        if let Some(since) = task.released.take() {
                            self.preempt.record(time.since(since));
                        }
                    }
                }
                if let Some(task) = self.task(next) {
                    task.since = Some(time);
                }
                *self.current(cpu) = next;
            }
            EventKind::SchedWaking { task: woken, target, context } => {
                let current = *self.current(cpu);
                let at = match *self.current(target) {
                    _ if target == cpu => Where::Here,
                    TaskId::NONE => Where::Idle,
                    _ => Where::Away,
                };
                let Some(waker) = self.task(current).filter(|_| woken != current) else { return };
                waker.released = None;
                match (context, waker.softly) {
                    (WakeContext::Task, _) => {}
                    (WakeContext::Softirq, None) => return waker.softly = Some((time, at)),
                    _ => return waker.disturbed = Some(time),
                }
                if waker.wakings == 0 {
                    (waker.woke, waker.at) = (time, at);
                }
                waker.wakings += 1;
            }
            _ => {}
        }
    }

    /// A call of `task` ends that lasted from `begun` to `ended`. If it sent, what it sent woke whom
    /// a softirq did.
    fn ends(&mut self, task: TaskId, (call, is_sent): (u32, bool), (begun, ended): (Time, Time)) {
        let Some(state) = self.task(task) else { return };
        let mut now = std::mem::replace(state, InCall { since: state.since, ..InCall::NEW });
        match now.softly.filter(|(time, _)| *time >= begun) {
            Some((woke, at)) if is_sent && now.wakings == 0 => {
                now = InCall { woke, at, wakings: 1, ..now };
            }
            Some((time, _)) => now.disturbed = Some(time),
            None => {}
        }
        if now.wakings > 0 && now.disturbed.is_none_or(|time| time < begun) {
            self.tasks[task.index()].released = Some(ended);
        }
        let before = |time: Time, count: u32| count > 0 && time < begun;
        if now.disturbed.is_some_and(|time| time >= begun)
            || before(now.left, now.blocks)
            || before(now.woke, now.wakings)
        {
            return;
        }
        let kind = self.kinds.entry(call).or_default();
        match (now.blocks, now.wakings, now.since) {
            (0, 0, _) => kind.own.record(ended.since(begun)),
            (0, 1, _) => kind.wake[now.at as usize].record(ended.since(begun)),
            (1, 0, Some(since)) if since >= now.left => {
                kind.block.record(now.left.since(begun));
                kind.back.record(ended.since(since));
            }
            _ => {}
        }
    }

    /// The estimates.
    pub fn finish(self) -> CallEstimates {
        let mut all = Histogram::default();
        self.kinds.values().for_each(|kind| all.merge(&kind.own));
        let all = Estimate::of_median(&all, WIDTH);
        CallEstimates {
            // Which half of a call's own work is done before it blocks is not known.
            block: self.cost(|kind| &kind.block, all, 2),
            switch: self.cost(|kind| &kind.back, all, 2),
            wake_here: self.cost(|kind| &kind.wake[0], all, 1),
            wake_away: self.cost(|kind| &kind.wake[1], all, 1),
            wake_idle: self.cost(|kind| &kind.wake[2], all, 1),
            preempt: self.preempted(),
            own: self.own(),
        }
    }

    /// The cost of being preempted. No call's own work is in it; what is far above the rest is a
    /// program's, which a tick stopped later.
    fn preempted(&self) -> CallCost {
        let Some(median) = Estimate::of_median(&self.preempt, WIDTH).value else {
            return CallCost::unknown(Unknown::TooFew, self.preempt.count());
        };
        let mut costs = Histogram::default();
        let usual = self.preempt.buckets().filter(|bucket| bucket.low <= median + median);
        usual.for_each(|bucket| record_beyond(&mut costs, bucket, self.recording));
        CallCost::of(&costs, Nanos::ZERO, false)
    }

    /// The calls that neither blocked nor woke anybody, the most frequent first.
    fn own(&self) -> Vec<(u32, Estimate)> {
        let mut own: Vec<(u32, Estimate)> = self
            .kinds
            .iter()
            .map(|(call, kind)| (*call, Estimate::of_median(&kind.own, WIDTH).less(self.recording)))
            .filter(|(_, estimate)| estimate.value.is_some())
            .collect();
        own.sort_by_key(|(call, estimate)| (std::cmp::Reverse(estimate.samples), *call));
        own
    }

    /// The cost beyond a call's own work, or beyond a half of it if `parts` is two.
    fn cost(&self, of: Of, all: Estimate, parts: u64) -> CallCost {
        let (mut pooled, mut slack, mut uncompared, mut weak) = (Histogram::default(), 0.0, 0, 0);
        for kind in self.kinds.values() {
            let samples = of(kind);
            let (usual, [low, high]) = match Estimate::of_median(&kind.own, WIDTH).bounds() {
                Some((usual, low, high)) => (Nanos(usual.0 / parts), [low, high]),
                // Another kind of call does something else: it is between nothing and twice this.
                None => match all.value {
                    Some(usual) => {
                        weak += samples.count();
                        (Nanos(usual.0 / parts), [Nanos::ZERO, usual + usual])
                    }
                    None => {
                        uncompared += samples.count();
                        continue;
                    }
                },
            };
            slack +=
                samples.count() as f64 * high.saturating_sub(low).0 as f64 / (2 * parts) as f64;
            samples.buckets().for_each(|bucket| record_beyond(&mut pooled, bucket, usual));
        }
        if pooled.count() < ENOUGH {
            return CallCost::unknown(
                match () {
                    () if self.kinds.is_empty() => Unknown::NoCalls,
                    () if uncompared >= ENOUGH => Unknown::NothingToCompare,
                    () => Unknown::TooFew,
                },
                pooled.count().max(uncompared),
            );
        }
        // Samples and what is taken off them are known to one part in 256.
        let slack = (slack / pooled.count() as f64) as u64 + all.value.unwrap_or_default().0 / 256;
        CallCost::of(&pooled, Nanos(slack), 2 * weak > pooled.count())
    }
}

/// Records what the samples of a bucket have beyond `own`.
fn record_beyond(costs: &mut Histogram, bucket: Bucket, own: Nanos) {
    let middle = Nanos(bucket.low.0.midpoint(bucket.high.0));
    (0..bucket.count).for_each(|_| costs.record(middle.saturating_sub(own)));
}

impl CallCost {
    fn unknown(why: Unknown, samples: u64) -> CallCost {
        let median = Estimate { samples, ..Estimate::default() };
        CallCost { median, unknown: Some(why), spread: Spread::default(), is_weak: false }
    }

    /// A cost with these samples, which may be wrong by `slack`.
    fn of(samples: &Histogram, slack: Nanos, is_weak: bool) -> CallCost {
        let Some((value, low, high)) = Estimate::of_median(samples, WIDTH).bounds() else {
            return CallCost::unknown(Unknown::TooFew, samples.count());
        };
        let slack = slack + Nanos(value.0 / 256 + 1);
        let interval = (low.saturating_sub(slack), high + slack);
        if interval.1 > LONGEST {
            return CallCost::unknown(Unknown::Work, samples.count());
        }
        let at = |place: usize| {
            let percent = 100.0 * (place as f64 + 0.5) / VALUES as f64;
            samples.percentile(percent).unwrap_or(value).min(LONGEST)
        };
        CallCost {
            spread: Spread::of((0..VALUES).map(at).collect()),
            median: Estimate {
                value: Some(value),
                interval: Some(interval),
                samples: samples.count(),
            },
            unknown: None,
            is_weak,
        }
    }
}

impl CallEstimates {
    /// The costs for a machine; what is unknown is nothing.
    pub fn costs(&self) -> CallCosts {
        // A CPU that idles or not is another one: what is unknown is nearest to the other.
        let is_busy_known = self.wake_away.unknown.is_none();
        CallCosts {
            block: self.block.spread.clone(),
            wake_here: self.wake_here.spread.clone(),
            wake_away: if is_busy_known { &self.wake_away } else { &self.wake_idle }.spread.clone(),
            wake_idle: self.wake_idle.spread.clone(),
            exit: Spread::default(), // a part of the work of recorded tasks
            preempt: self.preempt.spread.clone(),
            seed: 0,
        }
    }

    /// Takes from `other` what is unknown here, or known better there. Returns what that is, in words.
    pub fn fill(&mut self, other: &CallEstimates) -> Vec<&'static str> {
        let costs = [
            (&mut self.block, &other.block, "blocking"),
            (&mut self.switch, &other.switch, "a switch in a call"),
            (&mut self.wake_here, &other.wake_here, "a waking on the same CPU"),
            (&mut self.wake_away, &other.wake_away, "a waking on another CPU"),
            (&mut self.wake_idle, &other.wake_idle, "a waking on an idle CPU"),
            (&mut self.preempt, &other.preempt, "being preempted"),
        ];
        let mut filled = Vec::new();
        for (own, other, name) in costs {
            let wants = own.unknown.is_some() || own.is_weak && !other.is_weak;
            if wants && other.unknown.is_none() {
                // How often it happened is known all the same.
                let samples = own.median.samples;
                *own = CallCost { median: Estimate { samples, ..other.median }, ..other.clone() };
                filled.push(name);
            }
        }
        filled
    }

    /// The means, by which a replay shortens the recorded runs.
    pub fn kernel_work(&self) -> KernelWork {
        KernelWork {
            block: self.block.spread.mean(),
            wake: self.waking(),
            preempt: self.preempt.spread.mean(),
        }
    }

    /// The mean of a waking, on this CPU or another one.
    fn waking(&self) -> Nanos {
        let parts = [&self.wake_here, &self.wake_away, &self.wake_idle]
            .map(|cost| (cost.median.samples, cost.spread.mean()))
            .into_iter()
            .filter(|(_, mean)| *mean > Nanos::ZERO);
        let (count, sum) = parts.fold((0, 0u128), |(count, sum), (samples, mean)| {
            (count + samples, sum + u128::from(samples) * u128::from(mean.0))
        });
        Nanos((sum / u128::from(count.max(1))) as u64)
    }
}

impl Estimate {
    /// The median and its interval, `width` hundredths of a standard deviation to each side.
    fn of_median(samples: &Histogram, width: f64) -> Estimate {
        Estimate::of_percentile_within(samples, 50.0, width)
    }

    /// The same, shorter by `time`.
    fn less(self, time: Nanos) -> Estimate {
        let less = |value: Nanos| value.saturating_sub(time);
        let interval = self.interval.map(|(low, high)| (less(low), less(high)));
        Estimate { value: self.value.map(less), interval, ..self }
    }

    fn bounds(self) -> Option<(Nanos, Nanos, Nanos)> {
        let (low, high) = self.interval?;
        Some((self.value?, low, high))
    }
}

impl fmt::Display for CallEstimates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallEstimates { block, wake_here, wake_away, wake_idle, preempt, .. } = self;
        write!(
            f,
            "blocking costs {block}, a waking on the same CPU {wake_here}, on another CPU \
             {wake_away}, on one that idles {wake_idle}, being preempted {preempt}"
        )
    }
}

impl fmt::Display for CallCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unknown {
            None => write!(f, "{}", self.median),
            Some(unknown) => {
                write!(f, "an unknown time ({} samples: {unknown})", self.median.samples)
            }
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unknown::NoCalls => "no calls are recorded",
            Unknown::TooFew => "too few calls",
            Unknown::NothingToCompare => "no call does neither",
            Unknown::Work => "they hold other work",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A waker that is preempted after its call, each time a little later. Once in a while it is
    /// preempted long after it, as its slice is over.
    #[test]
    fn the_cost_of_being_preempted_is_what_lies_between_the_call_and_the_switch() {
        let (waker, woken, cpu) = (TaskId(0), TaskId(1), CpuId(0));
        let mut estimator = CallCostEstimator::new(true);
        for round in 0..100u64 {
            let at = |time: u64| Time(round * 1_000_000 + time);
            let event = |time: u64, kind| Event { time: at(time), cpu, kind };
            let switch = |time: u64, prev, next, prev_state| {
                event(time, EventKind::SchedSwitch { prev, next, prev_state })
            };
            let context = WakeContext::Task;
            estimator.events(&[
                switch(0, woken, waker, PrevState::Blocked),
                event(9_000, EventKind::SchedWaking { task: woken, target: cpu, context }),
            ]);
            let (since, returned, recording) = (at(8_000), Returned::Unknown, Nanos(150));
            let kind = CallKind::Ends { since, call: 1, returned, recording };
            estimator.call(&Call { time: at(10_000), cpu, task: waker, kind });
            let took = if round % 10 == 9 { 400_000 } else { 750 + round };
            estimator.events(&[switch(10_000 + took, waker, woken, PrevState::Runnable)]);
        }
        let cost = estimator.finish().preempt;
        let (low, high) = cost.median.interval.unwrap();
        assert!(low.0 > 600 && high.0 < 700, "{cost}: 600 to 699 ns without recording");
        assert!(cost.spread.values().iter().all(|value| value.0 < 710), "{:?}", cost.spread);
    }
}
