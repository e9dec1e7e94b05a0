//! Derives the costs of a guest of one CPU from its trace, so that the simulated machine has the
//! same costs.
//!
//! Runs of a task that end where it blocks are alike, whatever the workload. If an interrupt makes
//! such a run longer, the difference is the time of the interrupt.

use super::background_load::SwitchCost;
use super::background_load::{is_by_timer, is_unscheduled};
use super::closed::Traced;
use schedlab_runner::event::TaskResult;
use schedsim::trace::{EventKind, PrevState};
use schedsim::workload::{Closed, Script, Workload};
use schedsim::{CpuId, Machine, Nanos, TaskId, Ticks, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The costs of a program that decides in user space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramCost {
    /// From one task to the next.
    pub switch: Nanos,
    /// When it interrupts a task that continues.
    pub interruption: Nanos,
}

/// The number of runs that show what is usual.
const ENOUGH: usize = 8;
/// The longest time of an interrupt: a larger difference has another cause.
const MOST: Nanos = Nanos(50_000);

/// The runs of a workload's tasks in the guest.
pub struct Timing<'a> {
    traced: &'a Traced,
    switch: SwitchCost,
    /// In the order in which they ended.
    turns: Vec<Turn>,
    /// The usual length of an undisturbed run of each task, by its number; only of tasks whose runs
    /// are alike.
    usual: BTreeMap<u32, Nanos>,
    /// The time that a timer interrupt with a wakeup takes from the interrupted task; zero where
    /// too few were seen.
    pub timer: Nanos,
}

/// A run of a task, until it ended or the task began to exit.
#[derive(Clone, Debug)]
struct Turn {
    /// The number of the task in the workload.
    number: u32,
    end: Time,
    /// Its length, without the unscheduled tasks that interrupted it.
    ran: Nanos,
    /// How often a timer interrupt with a wakeup occurred in it.
    timers: u64,
    /// The ticks in it.
    ticks: Range<u64>,
}

impl Turn {
    fn is_undisturbed(&self) -> bool {
        self.timers == 0 && self.ticks.is_empty()
    }
}

/// A run that has not ended.
#[derive(Clone, Copy, Default)]
struct Begun {
    ran: Nanos,
    /// When it last continued.
    since: Time,
    timers: u64,
    first_tick: u64,
}

impl<'a> Timing<'a> {
    /// Of a guest with this cost of a switch; tasks named `left_out` are not scheduled.
    pub fn of(traced: &'a Traced, switch: SwitchCost, left_out: Option<&str>) -> Timing<'a> {
        let turns = turns(traced, switch, left_out);
        let mut undisturbed: BTreeMap<u32, Vec<Nanos>> = BTreeMap::new();
        for turn in turns.iter().filter(|turn| turn.is_undisturbed()) {
            undisturbed.entry(turn.number).or_default().push(turn.ran);
        }
        undisturbed.retain(|_, turns| turns.len() >= ENOUGH);
        let alike = undisturbed.into_iter().filter_map(|(number, turns)| {
            Some((number, usual(&turns).filter(|(_, alike)| *alike)?.0))
        });
        let usual = alike.collect();
        let mut timing = Timing { traced, switch, turns, usual, timer: Nanos::ZERO };
        let once = timing.turns.iter().filter(|turn| turn.timers == 1 && turn.ticks.is_empty());
        timing.timer = median_of_enough(once.filter_map(|turn| timing.excess(turn)));
        timing
    }

    /// By how much a run is longer than usual, if interrupts can explain it.
    fn excess(&self, turn: &Turn) -> Option<Nanos> {
        let excess = turn.ran.saturating_sub(*self.usual.get(&turn.number)?);
        let interrupts = turn.timers + turn.ticks.end - turn.ticks.start;
        (excess.0 <= MOST.0 * interrupts.max(1)).then_some(excess)
    }

    /// The guest's ticks with the time that each took. A tick that was alone in a run took the
    /// excess of that run. Any other took the usual time, or that of a tick before the begin.
    pub fn ticks(&self) -> Ticks {
        /// A smaller difference occurs where the recording continues on its next page.
        const NOTHING: Nanos = Nanos(1_000);
        /// Near the end of a run a tick may have to wait until the switch is over.
        const SWITCH: Nanos = Nanos(5_000);
        let ticks = &self.traced.ticks;
        let beyond = |turn: &Turn| {
            self.excess(turn).map(|excess| excess.saturating_sub(Nanos(turn.timers * self.timer.0)))
        };
        let mut others = BTreeMap::new();
        for (turn, next) in self
            .turns
            .iter()
            .zip(self.turns.iter().skip(1))
            .filter(|(turn, _)| turn.ticks.end == turn.ticks.start + 1)
        {
            let Some(cost) = beyond(turn) else { continue };
            let waits =
                ticks.time_of(turn.ticks.start) + SWITCH > turn.end && next.ticks.is_empty();
            let later =
                beyond(next).filter(|&later| waits && later > NOTHING).unwrap_or(Nanos::ZERO);
            // Else it interrupted a task outside the workload.
            if cost + later > NOTHING || turn.timers > 0 {
                others.insert(turn.ticks.start, cost + later);
            }
        }
        let usual =
            Some(median_of_enough(others.values().copied())).filter(|&cost| cost > Nanos::ZERO);
        Ticks { cost: usual.unwrap_or(ticks.cost), others, ..ticks.clone() }
    }

    /// The cost of a call for the tasks of each `[[task]]` of `workload`. It is what comes beyond
    /// their work and their runs, on the simulated machine, whose interrupts have costs of their
    /// own. Where runs are alike, a usual one counts, so that the end of a task is not in it.
    pub fn calls(
        &self,
        workload: &Closed,
        scripts: &Workload,
        results: &[TaskResult],
        machine: &Machine,
    ) -> Vec<Nanos> {
        let mut runs: BTreeMap<u32, Vec<Nanos>> = BTreeMap::new();
        for turn in &self.turns {
            let ticks = machine
                .ticks
                .iter()
                .flat_map(|ticks| turn.ticks.clone().map(|tick| ticks.cost_of(tick).0))
                .sum::<u64>();
            runs.entry(turn.number)
                .or_default()
                .push(turn.ran.saturating_sub(Nanos(turn.timers * machine.timer_cost.0 + ticks)));
        }
        let mut costs = Vec::new();
        let mut first = 0;
        for tasks in &workload.tasks {
            let (mut beyond, mut calls) = (0, 0);
            for number in first..first + tasks.count {
                let (Some(runs), Some(result)) = (runs.get(&number), results.get(number as usize))
                else {
                    continue;
                };
                let Some(work) = work(&scripts.tasks[number as usize].script, result) else {
                    continue;
                };
                let expected = work.0.saturating_add(runs.len() as u64 * self.switch.own.0);
                beyond += without_outliers(runs).0.saturating_sub(expected);
                calls += result
                    .operations
                    .iter()
                    .filter(|(kind, _)| *kind != "run")
                    .map(|(_, count)| count)
                    .sum::<u64>();
            }
            costs.push(Nanos(beyond.checked_div(calls).unwrap_or(0)));
            first += tasks.count;
        }
        costs
    }
}

/// The runs of the workload's tasks. A run continues after an interruption by an unscheduled task,
/// and is shorter by the time of that.
fn turns(traced: &Traced, switch: SwitchCost, left_out: Option<&str>) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut under_way: BTreeMap<CpuId, Begun> = BTreeMap::new();
    let mut interrupted: BTreeMap<CpuId, (TaskId, Begun)> = BTreeMap::new();
    let is_unscheduled = |task| is_unscheduled(&traced.recording.tasks, task, left_out);
    for event in &traced.events {
        let (task, next, goes_on) = match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                (prev, next, prev_state == PrevState::Runnable)
            }
            EventKind::SchedProcessExit { task } => (task, TaskId::NONE, false),
            EventKind::SchedWaking { task, context, .. } => {
                let by_timer =
                    !is_unscheduled(task) && is_by_timer(traced.number(task).is_some(), context);
                under_way
                    .get_mut(&event.cpu)
                    .into_iter()
                    .for_each(|turn| turn.timers += u64::from(by_timer));
                continue;
            }
            _ => continue,
        };
        let turn = under_way
            .remove(&event.cpu)
            .map(|turn| (task, Begun { ran: turn.ran + event.time.since(turn.since), ..turn }));
        if goes_on && is_unscheduled(next) {
            interrupted.extend(turn.map(|turn| (event.cpu, turn)));
            continue;
        }
        let (done, before) = match interrupted.remove(&event.cpu) {
            Some((task, turn)) if task == next => {
                (None, Some(Begun { ran: turn.ran.saturating_sub(switch.own), ..turn }))
            }
            other => (turn.or(other), None),
        };
        if let Some((number, turn)) =
            done.and_then(|(task, turn)| Some((traced.number(task)?, turn)))
        {
            let Begun { ran, timers, first_tick, .. } = turn;
            turns.push(Turn {
                number,
                end: event.time,
                ran,
                timers,
                ticks: first_tick..traced.ticks.until(event.time),
            });
        }
        if next != TaskId::NONE && !is_unscheduled(next) {
            let new = Begun { first_tick: traced.ticks.until(event.time), ..Begun::default() };
            under_way.insert(event.cpu, Begun { since: event.time, ..before.unwrap_or(new) });
        }
    }
    turns
}

/// The costs of the program of this name while the workload ran; zero for what it never did.
pub fn program(traced: &Traced, name: &str) -> ProgramCost {
    let is_it = |task: TaskId| {
        traced
            .recording
            .tasks
            .get(task.index())
            .is_some_and(|task| task.prio >= 100 && task.name == name)
    };
    let (mut before, mut switches, mut interruptions) = (BTreeMap::new(), Vec::new(), Vec::new());
    let (mut woke, mut ticks) = (BTreeSet::new(), BTreeMap::new());
    for event in &traced.events {
        let (prev, next, prev_state) = match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => (prev, next, prev_state),
            EventKind::SchedWaking { .. } => {
                woke.insert(event.cpu);
                continue;
            }
            _ => continue,
        };
        if is_it(next) {
            // Without a wakeup and without a tick, the task has yielded and is chosen again.
            let until = traced.ticks.until(event.time);
            let ticked = ticks.insert(event.cpu, until).is_some_and(|last| last < until);
            let is_told = woke.remove(&event.cpu) || ticked;
            before.insert(event.cpu, (event.time, prev, prev_state, is_told));
        } else if let Some((since, interrupted, state, is_told)) =
            before.remove(&event.cpu).filter(|_| is_it(prev))
        {
            let goes_on = next == interrupted && state == PrevState::Runnable && is_told;
            let taken = if goes_on { &mut interruptions } else { &mut switches };
            taken.extend(traced.number(next).map(|_| event.time.since(since)));
        }
    }
    let usual = |taken: &[Nanos]| {
        Nanos(without_outliers(taken).0.checked_div(taken.len() as u64).unwrap_or(0))
    };
    ProgramCost { switch: usual(&switches), interruption: usual(&interruptions) }
}

/// The work of a task: all of it, if it has ended; else its runs so far, taken as usual ones, and
/// half of one. `None` before the first is over.
fn work(script: &Script, result: &TaskResult) -> Option<Nanos> {
    if result.ended_ns.is_some() {
        return Some(script.demand());
    }
    let (runs, sum) = script
        .steps()
        .filter(|step| step.run > Nanos::ZERO)
        .fold((0, 0), |(runs, sum), step| (runs + 1, sum + step.run.0));
    let done = result.operations.get("run").filter(|&&done| done > 0)?;
    Some(Nanos((2 * done + 1) * (sum / runs.max(1)) / 2))
}

/// The sum of `runs`; where they are alike, none counts for more than a usual one.
fn without_outliers(runs: &[Nanos]) -> Nanos {
    let most = usual(runs).filter(|(_, alike)| *alike).map_or(Nanos::MAX, |(usual, _)| usual);
    runs.iter().map(|&run| run.min(most)).sum()
}

/// The median of `runs`, and whether they are alike: half of them are within a tenth of it. `None`
/// if there are none.
fn usual(runs: &[Nanos]) -> Option<(Nanos, bool)> {
    let mut sorted = runs.to_vec();
    sorted.sort_unstable();
    let [low, median, high] =
        [1, 2, 3].map(|quarter| sorted.get(sorted.len() * quarter / 4).copied());
    let (low, median, high) = (low?, median?, high?);
    Some((median, (high - low).0 <= median.0 / 10))
}

/// The median of the costs that are not zero; zero if there are too few.
fn median_of_enough(costs: impl Iterator<Item = Nanos>) -> Nanos {
    const FEW: usize = 3;
    let costs: Vec<Nanos> = costs.filter(|&cost| cost > Nanos::ZERO).collect();
    if costs.len() < FEW {
        Nanos::ZERO
    } else {
        usual(&costs).map_or(Nanos::ZERO, |(usual, _)| usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Two tasks alternate after 100 us. In each twentieth run a timer interrupt with a wakeup
    /// takes 4 us; ticks 4 ms apart take 3, 3 and 9 us.
    #[test]
    fn the_cost_of_an_interrupt_is_the_excess_of_interrupted_runs() {
        let (mut text, mut now) = (String::new(), 0);
        let mut at = |ns: u64, event: &str| {
            let _ = writeln!(text, "{event}", event = event.replace("TIME", &format!("5.{ns:09}")));
        };
        let mut ticks =
            [(1_030_000, 3_000), (5_030_000, 3_000), (9_030_000, 9_000)].into_iter().peekable();
        for turn in 0..110 {
            let (prev, next) = (turn % 2 + 1, (turn + 1) % 2 + 1);
            at(
                now,
                &format!(
                    "t-{prev} [000] d..2. TIME: sched_switch: prev_comm=t prev_pid={prev} \
                     prev_prio=120 prev_state=S ==> next_comm=t next_pid={next} next_prio=120"
                ),
            );
            let mut lasts = 100_000;
            if turn % 20 == 19 {
                at(
                    now + 50_000,
                    &format!(
                        "t-{next} [000] d.h2. TIME: sched_waking: comm=other pid=9 prio=120 \
                         target_cpu=000"
                    ),
                );
                lasts += 4_000;
            }
            if let Some((_, took)) = ticks.next_if(|(tick, _)| *tick < now + lasts) {
                lasts += took;
            }
            now += lasts;
        }
        let mut traced = Traced::read(&text, [1, 2]).expect("a trace");
        traced.ticks =
            Ticks { cost: Nanos(5_000), ..Ticks::new(Nanos(4_000_000), Time(1_030_000)) };
        let timing = Timing::of(&traced, SwitchCost { all: Nanos(0), own: Nanos(0) }, None);
        assert_eq!(timing.timer, Nanos(4_000));
        let ticks = timing.ticks();
        assert_eq!([0, 1, 2, 3].map(|tick| ticks.cost_of(tick).0), [3_000, 3_000, 9_000, 3_000]);
        // With too few runs, the time of a tick before the begin counts.
        traced.events.truncate(12);
        let timing = Timing::of(&traced, SwitchCost { all: Nanos(0), own: Nanos(0) }, None);
        assert_eq!((timing.timer, timing.ticks().cost_of(0)), (Nanos::ZERO, Nanos(5_000)));
    }
}
