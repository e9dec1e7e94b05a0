//! A random driver and a random policy, which both break rules: the seat reports a breach exactly
//! when an independent model of the rules does.

use proptest::prelude::*;
use schedsim::policy::{
    Context, Dispatch, Effect, Enqueue, Needs, Policy, Reweight, Stop, TaskView, Wake,
};
use schedsim::seat::{Seat, TaskState};
use schedsim::workload::Affinity;
use schedsim::{CpuId, Machine, Nanos, Random, TaskId, Time};
use std::cell::Cell;
use std::rc::Rc;

const CPUS: u16 = 3;
const TASKS: u32 = 4;

/// A policy with random answers; the last answers can be read from outside.
struct Dice {
    random: Random,
    /// One answer in this many is out of range.
    honesty: u64,
    cpu: Rc<Cell<Option<CpuId>>>,
    effect: Rc<Cell<Effect>>,
    dispatch: Rc<Cell<Option<Dispatch>>>,
}

impl Dice {
    fn cpu(&mut self) -> CpuId {
        let lies = self.random.below(self.honesty) == 0;
        CpuId(
            self.random.below(u64::from(CPUS)) as u16
                + if lies {
                    [CPUS, 999, u16::MAX - CPUS][self.random.below(3) as usize]
                } else {
                    0
                },
        )
    }

    fn effect(&mut self, now: Time) -> Effect {
        let cpu = self.cpu();
        let early = if self.random.below(self.honesty) == 0 { 1 } else { 0 };
        let effect = match self.random.below(4) {
            0 => Effect::Nothing,
            1 => Effect::Kick(cpu),
            2 => Effect::Preempt(cpu),
            _ => Effect::KickAt(
                cpu,
                Time(now.0.saturating_sub(early) + self.random.below(2) * (1 - early)),
            ),
        };
        self.effect.set(effect);
        effect
    }
}

impl Policy for Dice {
    fn needs(&self) -> Needs {
        Needs { alarm: self.honesty.is_multiple_of(2), ..Needs::default() }
    }
    fn init_task(&mut self, _cx: &mut Context, _task: TaskId) {}
    fn select_cpu(&mut self, _cx: &mut Context, _task: TaskId, _wake: Wake) -> CpuId {
        let cpu = self.cpu();
        self.cpu.set(Some(cpu));
        cpu
    }
    fn enqueue(&mut self, cx: &mut Context, _task: TaskId, _cpu: CpuId, _why: Enqueue) -> Effect {
        self.effect(cx.now())
    }
    fn dequeue(&mut self, _cx: &mut Context, _task: TaskId) {}
    fn set_weight(&mut self, cx: &mut Context, _task: TaskId, _old: u8, _why: Reweight) -> Effect {
        self.effect(cx.now())
    }
    fn set_cpumask(&mut self, cx: &mut Context, _task: TaskId, _old: Affinity) -> Effect {
        self.effect(cx.now())
    }
    fn dispatch(&mut self, _cx: &mut Context, _cpu: CpuId) -> Option<Dispatch> {
        let lies = self.random.below(self.honesty) == 0;
        let task = if lies {
            TaskId(TASKS + self.random.below(3) as u32)
        } else {
            TaskId(self.random.below(u64::from(TASKS)) as u32)
        };
        let slice = Nanos(self.random.below(self.honesty).min(1));
        let dispatch = (self.random.below(4) > 0).then_some(Dispatch { task, slice });
        self.dispatch.set(dispatch);
        dispatch
    }
    fn update_idle(&mut self, cx: &mut Context, _cpu: CpuId, _idle: bool) -> Effect {
        self.effect(cx.now())
    }
    fn tick(&mut self, cx: &mut Context, _cpu: CpuId, _task: TaskId) -> Effect {
        self.effect(cx.now())
    }
}

/// The independent model of the rules.
struct Account {
    states: [TaskState; TASKS as usize],
    running: [Option<usize>; CPUS as usize],
    /// The affinity of each task.
    masks: [Affinity; TASKS as usize],
    offline: [bool; CPUS as usize],
    released: [bool; CPUS as usize],
    now: u64,
    has_alarms: bool,
}

impl Account {
    fn state(&self, task: TaskId) -> TaskState {
        self.states.get(task.index()).copied().unwrap_or(TaskState::Absent)
    }

    fn effect_holds(&self, effect: Effect) -> bool {
        match effect {
            Effect::Nothing => true,
            Effect::Kick(cpu) | Effect::Preempt(cpu) => cpu.0 < CPUS,
            Effect::KickAt(cpu, time) => cpu.0 < CPUS && self.has_alarms && time.0 >= self.now,
        }
    }

    fn allows(&self, task: usize, cpu: CpuId) -> bool {
        match self.masks[task] {
            Affinity::Pinned(only) => only == cpu,
            _ => true,
        }
    }

    fn is_away(&self, cpu: CpuId) -> bool {
        cpu.0 < CPUS && (self.offline[cpu.index()] || self.released[cpu.index()])
    }

    /// Moves a task between states. Returns whether it was in the first.
    fn moves(&mut self, task: TaskId, from: TaskState, to: TaskState) -> bool {
        let holds = task.0 < TASKS && self.state(task) == from;
        if holds {
            self.states[task.index()] = to;
        }
        holds
    }
}

/// Task 3 may run on CPU 2 only.
fn view(task: TaskId) -> TaskView {
    let mut view = TaskView::of(120);
    if task.0 == 3 {
        view.affinity = Affinity::Pinned(CpuId(2));
    }
    view
}

/// Makes one call to the seat. Returns whether all rules hold after it.
fn step(seat: &mut Seat<Dice>, account: &mut Account, driver: &mut Random, honesty: u64) -> bool {
    let lies = driver.below(honesty) == 0;
    let task = TaskId(driver.below(u64::from(TASKS)) as u32 + if lies { TASKS } else { 0 });
    let cpu = CpuId(
        driver.below(u64::from(CPUS)) as u16 + if driver.below(honesty) == 0 { CPUS } else { 0 },
    );
    // An honest driver makes a call that suits the task.
    let call = match account.state(task) {
        _ if driver.below(honesty) == 0 => driver.below(19),
        // CPUs go and return in between, and return more often than they go.
        _ if driver.below(8) == 0 && cpu.0 < CPUS => {
            match (account.offline[cpu.index()], account.released[cpu.index()]) {
                (true, _) => 16,
                (_, true) => 18,
                _ if account.running[cpu.index()].is_none() => [15, 17][driver.below(2) as usize],
                _ => 17,
            }
        }
        TaskState::Absent => 0,
        TaskState::New => [1, 1, 11, 12][driver.below(4) as usize],
        TaskState::Asleep => [2, 2, 2, 3, 11, 12, 13][driver.below(7) as usize],
        TaskState::Elsewhere => [3, 11, 12, 14, 14][driver.below(5) as usize],
        TaskState::Waiting => [4, 5, 5, 5][driver.below(4) as usize],
        TaskState::Chosen => [6, 6, 11][driver.below(3) as usize],
        TaskState::Running => [7, 8, 11, 12][driver.below(4) as usize],
    };
    let on = |account: &Account| {
        account
            .running
            .iter()
            .position(|&running| running == Some(task.index()))
            .map(|cpu| CpuId(cpu as u16))
    };
    match call {
        0 => {
            let task = TaskId(task.0 % TASKS);
            seat.admit(task, view(task));
            seat.init_task(task);
            let in_order = account.moves(task, TaskState::Absent, TaskState::New);
            if in_order {
                account.masks[task.index()] = view(task).affinity;
            }
            in_order
        }
        1 | 10 => {
            let new = call == 1;
            let got = seat.select_cpu(task, Wake { new, ..Wake::by(None) });
            let in_order = account.moves(
                task,
                if new { TaskState::New } else { TaskState::Asleep },
                TaskState::Asleep,
            );
            assert!(got.0 < CPUS, "what it gives exists");
            in_order && seat.policy().cpu.get().is_none_or(|cpu| cpu.0 < CPUS)
        }
        2 => {
            let in_order =
                cpu.0 < CPUS && account.moves(task, TaskState::Asleep, TaskState::Waiting);
            let effect = seat.enqueue(task, cpu, Enqueue::Wakeup);
            assert!(account.effect_holds(effect), "what it gives is good");
            in_order && account.effect_holds(seat.policy().effect.get())
        }
        3 => {
            seat.exit_task(task);
            account.moves(task, TaskState::Asleep, TaskState::Absent)
                || account.moves(task, TaskState::Elsewhere, TaskState::Absent)
        }
        4 => {
            seat.dequeue(task);
            account.moves(task, TaskState::Waiting, TaskState::Asleep)
        }
        5 => {
            let away = account.is_away(cpu);
            let Some(Dispatch { task, .. }) = seat.dispatch(cpu) else {
                let free = account.running.get(cpu.index()) == Some(&None) && !away;
                let chosen = seat.policy().dispatch.get();
                return free && chosen.is_none();
            };
            assert!(
                !away
                    && account.moves(task, TaskState::Waiting, TaskState::Chosen)
                    && account.allows(task.index(), cpu)
            );
            seat.occupy(cpu, task);
            account.running[cpu.index()] = Some(task.index());
            true
        }
        6 => {
            let on = on(account).unwrap_or(cpu);
            let running = account.running.get(on.index()).copied().flatten();
            seat.running(on);
            running.is_some_and(|task| {
                account.moves(TaskId(task as u32), TaskState::Chosen, TaskState::Running)
            })
        }
        7 => {
            let on = on(account).unwrap_or(cpu);
            let running = account.running.get_mut(on.index()).and_then(Option::take);
            seat.stopping(on, if driver.below(2) == 0 { Stop::Blocked } else { Stop::Yielded });
            running.is_some_and(|task| {
                account.moves(TaskId(task as u32), TaskState::Running, TaskState::Asleep)
            })
        }
        8 => {
            let on = on(account).unwrap_or(cpu);
            let runs = account.running.get(on.index()).copied().flatten().is_some();
            let _ = seat.tick(on);
            runs && account.effect_holds(seat.policy().effect.get())
        }
        11 => {
            let prio = 100 + driver.below(40) as u8;
            let effect = seat.set_weight(task, prio, Reweight::Own);
            let occupies = on(account).is_some();
            let may_change = occupies
                || matches!(
                    account.state(task),
                    TaskState::New | TaskState::Asleep | TaskState::Elsewhere
                );
            assert!(
                !may_change || seat.cx().task(task).prio == prio,
                "the policy sees the new priority"
            );
            assert!(account.effect_holds(effect), "what it gives is good");
            may_change && account.effect_holds(seat.policy().effect.get())
        }
        12 => {
            let occupied = on(account);
            // An honest one leaves a task where it runs.
            let only =
                occupied.filter(|_| driver.below(honesty) > 0).unwrap_or(CpuId(cpu.0 % CPUS));
            let effect = seat.set_cpumask(task, Affinity::Pinned(only));
            assert!(account.effect_holds(effect), "what it gives is good");
            let may_change = occupied.is_some()
                || matches!(
                    account.state(task),
                    TaskState::New | TaskState::Asleep | TaskState::Elsewhere
                );
            let stays = occupied.is_none_or(|cpu| cpu == only);
            if may_change && stays {
                account.masks[task.index()] = Affinity::Pinned(only);
            }
            may_change && stays && account.effect_holds(seat.policy().effect.get())
        }
        13 => {
            seat.disable(task);
            account.moves(task, TaskState::Asleep, TaskState::Elsewhere)
        }
        14 => {
            seat.enable(task);
            account.moves(task, TaskState::Elsewhere, TaskState::Asleep)
        }
        15 | 17 => {
            let (exists, goes) = (cpu.0 < CPUS, call == 15);
            let holds = exists
                && !account.is_away(cpu)
                && !(goes && account.running[cpu.index()].is_some());
            if goes {
                seat.cpu_offline(cpu)
            } else {
                seat.cpu_release(cpu)
            }
            if holds {
                let away = if goes { &mut account.offline } else { &mut account.released };
                away[cpu.index()] = true;
                assert!(
                    !seat.cx().idle().contains(cpu)
                        && seat.is_away(cpu)
                        && !seat.cx().is_available(cpu)
                );
            }
            holds
        }
        16 | 18 => {
            let comes = call == 16;
            if comes {
                seat.cpu_online(cpu)
            } else {
                seat.cpu_acquire(cpu)
            }
            let away = if comes { &mut account.offline } else { &mut account.released };
            cpu.0 < CPUS && std::mem::take(&mut away[cpu.index()])
        }
        _ => {
            let to = account.now + driver.below(3)
                - if account.now > 0 && driver.below(honesty) == 0 { 1 } else { 0 };
            seat.advance(Time(to));
            let forward = to >= account.now;
            account.now = to;
            seat.idle(cpu);
            seat.leave_idle(cpu);
            forward
        }
    }
}

/// Makes any call at all.
fn anything(seat: &mut Seat<Dice>, driver: &mut Random) {
    let (task, cpu) = (TaskId(driver.below(8) as u32), CpuId(driver.below(5) as u16));
    match driver.below(20) {
        0 => seat.admit(task, view(task)),
        1 => seat.init_task(task),
        2 => drop(seat.select_cpu(task, Wake { new: driver.below(2) == 0, ..Wake::by(None) })),
        3 => drop(seat.enqueue(task, cpu, Enqueue::Yielded)),
        4 => seat.dequeue(task),
        5 => drop(seat.dispatch(cpu)),
        6 => seat.occupy(cpu, task),
        7 => seat.running(cpu),
        8 => seat.stopping(cpu, Stop::SliceOver),
        9 => drop(seat.update_idle(cpu, true)),
        10 => drop(seat.tick(cpu)),
        11 => drop(seat.set_weight(task, cpu.0 as u8, Reweight::Inherited)),
        12 => drop(seat.set_cpumask(task, Affinity::Pinned(cpu))),
        13 => seat.disable(task),
        14 => seat.enable(task),
        15 => seat.cpu_offline(cpu),
        16 => seat.cpu_online(cpu),
        17 => seat.cpu_release(cpu),
        18 => seat.cpu_acquire(cpu),
        _ => seat.exit_task(task),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn the_seat_reports_a_breach_exactly_when_a_rule_is_broken(
        seed in any::<u64>(),
        honesty in 3u64..60,
    ) {
        let (cpu, effect, dispatch) =
            (Rc::default(), Rc::new(Cell::new(Effect::Nothing)), Rc::default());
        let dice = Dice { random: Random::new(seed), honesty, cpu, effect, dispatch };
        let (mut seat, mut driver) = (Seat::new(dice, Machine::ideal(CPUS), 1), Random::new(!seed));
        let mut account = Account {
            states: [TaskState::Absent; TASKS as usize],
            running: [None; CPUS as usize],
            masks: [Affinity::Any; TASKS as usize],
            offline: [false; CPUS as usize],
            released: [false; CPUS as usize],
            now: 0,
            has_alarms: honesty.is_multiple_of(2),
        };
        for _ in 0..300 {
            seat.policy().effect.set(Effect::Nothing);
            seat.policy().cpu.set(None);
            seat.policy().dispatch.set(None);
            let holds = step(&mut seat, &mut account, &mut driver, honesty);
            prop_assert_eq!(holds, seat.breach().is_none(), "{:?}", seat.breach());
            if !holds {
                // Whatever follows, nothing panics, and the first breach is kept.
                let first = seat.breach().cloned();
                (0..50).for_each(|_| anything(&mut seat, &mut driver));
                prop_assert_eq!(seat.breach(), first.as_ref());
                return Ok(());
            }
        }
    }
}
