//! A compiled scheduler of sched_ext as a policy of the simulator.
//!
//! The order of calls is the kernel's (`kernel/sched/ext.c` of 6.18). One thing is turned around. The
//! engine stops and enqueues a task that is still runnable before it asks for the next one. The
//! kernel does so after. So such a task is kept aside until then ([`Cpu::stopped`](super::core::Cpu)).

mod calls;
mod shown;

use super::callbacks::Op;
use super::constants as c;
use super::core::{Answer, Asked, Core, Custody, Known, Timer};
use super::loaded::Loaded;
use super::queues::QueueId;
use super::trace::Tracer;
use bpf::{Address, Machine};
use schedsim::policy::{
    Context, Dispatch, Effect, Enqueue, InKernel, Needs, Policy, Reweight, Stop, Wake,
};
use schedsim::seat::Callback;
use schedsim::trace::TaskInfo;
use schedsim::workload::Affinity;
use schedsim::{CpuId, Nanos, TaskId, Time};

/// As long as the engine can run a task: the core ends slices at ticks, as the kernel does.
const NO_END: Nanos = Nanos(1 << 60);
/// How often a dispatch is tried that brings tasks but none for this CPU (`SCX_DSP_MAX_LOOPS`).
const MOST_LOOPS: u32 = 32;
/// How often a CPU may dispatch at one time. Programs take no time here, so one that has its own CPU
/// dispatch whenever it does would never end.
const MOST_DISPATCHES: u32 = 1 << 14;

/// What a CPU does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Nothing,
    Local,
    Previous,
}

/// A compiled scheduler and what the kernel keeps for it.
#[derive(Clone)]
pub struct Compiled {
    loaded: Loaded,
    machine: Machine,
    core: Core,
    has_begun: bool,
    /// The task that was placed last, until it is enqueued.
    placed: Option<TaskId>,
    /// When the waiting tasks are looked at next, for one that has waited too long.
    watch_at: Time,
    /// When it is called next.
    called_at: Time,
    cpus: u16,
    tracer: Option<Box<Tracer>>,
}

impl Compiled {
    /// The scheduler on `cpus` CPUs.
    pub fn new(loaded: Loaded, cpus: u16) -> Compiled {
        let mut core = Core::new(loaded.object().btf(), loaded.traits(), cpus);
        let machine = loaded.machine(cpus).unwrap_or_else(|refused| {
            core.error(refused.to_string());
            loaded.machine(1).expect("it was made when it was read")
        });
        Compiled {
            loaded,
            machine,
            core,
            has_begun: false,
            placed: None,
            watch_at: Time::ZERO,
            called_at: Time::NEVER,
            cpus,
            tracer: None,
        }
    }

    /// The same, which sees these tasks, in the order of their ids, by name. Others are called
    /// `task1` and so on.
    #[must_use]
    pub fn of_tasks<'t>(mut self, tasks: impl Iterator<Item = &'t TaskInfo>) -> Compiled {
        self.core.known = tasks.map(Known::of).collect();
        self
    }

    /// The same, and what it does is written down.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Compiled {
        self.core.moved = Some(Vec::new());
        self.tracer = Some(Box::new(tracer));
        self
    }

    /// What programs have printed.
    pub fn texts(&self) -> &[String] {
        &self.core.texts
    }

    fn has(&self, op: Op) -> bool {
        self.loaded.program(op).is_some()
    }

    /// Hands on what the core found, and the time of the next timer. Each callback ends with it.
    fn settle(&mut self, cx: &mut Context, callback: Callback) {
        self.enqueue_again(cx);
        self.trace_end(cx);
        if let Some(reason) = &self.core.exit {
            let hint = match self.loaded.untouched(&self.machine)[..] {
                [] => String::new(),
                ref names => format!(
                    ". The program that loads it may set constants that have the object's own \
                     values here: give them as NAME=VALUE ({})",
                    names.join(", ")
                ),
            };
            cx.fail(callback, format!("the scheduler was ejected: {reason}{hint}"));
        }
        let next = self.core.timers.keys().next().map_or(Time::NEVER, |&(time, _)| time);
        let next = next.min(self.watch_at);
        if next != self.called_at {
            self.called_at = next;
            cx.call_at(next);
        }
    }

    /// Tasks of a local queue go back to the scheduler (`scx_bpf_reenqueue_local`).
    fn enqueue_again(&mut self, cx: &mut Context) {
        for _ in 0..MOST_LOOPS {
            for task in std::mem::take(&mut self.core.again) {
                let cpu = self.core.tasks[task.index()].cpu;
                self.tried(|own| own.enqueue_on(cx, task, cpu, c::ENQ_REENQ));
            }
        }
        if !self.core.again.is_empty() {
            self.core.error("tasks are re-enqueued again and again");
        }
    }

    /// Runs a part of the core. A fault ends the scheduler.
    fn tried<T: Default>(&mut self, part: impl FnOnce(&mut Compiled) -> Answer<T>) -> T {
        part(self).unwrap_or_else(|fault| {
            self.core.error(fault.to_string());
            T::default()
        })
    }

    fn address(&self, task: TaskId) -> u64 {
        self.core.tasks[task.index()].address
    }

    /// The scheduler begins (`ops.init`): before the first task, as all tasks come later here.
    fn begin(&mut self, cx: &mut Context) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let timeout = self.loaded.timeout().0;
        self.watch_at = Time(cx.now().0.saturating_add(timeout / 2));
        self.tried(|own| own.core.begin(&mut own.machine, cx.machine()));
        self.expect(cx, Op::Init, &[], "");
        let arguments = [self.core.root_cgroup, self.core.cgroup_arguments];
        self.expect(cx, Op::CgroupInit, &arguments, " for the root cgroup");
    }

    /// Before each callback: code runs on `cpu` now.
    fn enter(&mut self, cx: &mut Context, cpu: CpuId) {
        self.begin(cx);
        self.core.this = cpu;
        self.core.asked = Asked::Otherwise;
        self.unplace(cx, None);
    }

    /// A task was placed and is not enqueued: it begins with a sleep. In a kernel that cannot be, so
    /// its choice is void.
    fn unplace(&mut self, cx: &mut Context, but: Option<TaskId>) {
        let Some(task) = self.placed.take().filter(|&task| Some(task) != but) else { return };
        self.core.tasks[task.index()].direct = None;
        let idle: Vec<CpuId> = cx.idle().iter().collect();
        idle.into_iter().for_each(|cpu| self.core.idle.update(cpu, true));
        self.tried(|own| own.core.show_idle(&mut own.machine));
    }

    /// `ops.enqueue`, or what stands for it (`do_enqueue_task`).
    fn enqueue_on(&mut self, cx: &mut Context, task: TaskId, cpu: u16, flags: u64) -> Answer {
        self.core.move_to(&mut self.machine, task, cpu)?;
        self.core.tasks[task.index()].runnable_at.get_or_insert(cx.now());
        if self.core.tasks[task.index()].direct.is_none() {
            if !self.has(Op::Enqueue) {
                self.core.set_slice(&mut self.machine, task, c::SLICE_DEFAULT)?;
                let node = self.core.node_of[usize::from(cpu)];
                let global = QueueId::Global(node);
                return self.core.insert(&mut self.machine, cx, task, global, flags);
            }
            let before = std::mem::replace(&mut self.core.asked, Asked::Place(task));
            self.core.tasks[task.index()].turn += 1;
            let address = self.address(task);
            self.call(cx, Op::Enqueue, &[address, flags]);
            self.core.asked = before;
        }
        match self.core.tasks[task.index()].direct.take() {
            Some((queue, own)) => {
                self.core.put(&mut self.machine, cx, task, queue, cpu, own | flags)
            }
            None => {
                self.core.tasks[task.index()].custody = Custody::Scheduler;
                Ok(())
            }
        }
    }

    /// The task that `cpu` has stopped is no longer its (`put_prev_task_scx`). With a part of its
    /// slice left, it is the first that the CPU runs next.
    fn put_away(&mut self, cx: &mut Context, cpu: CpuId, flags: u64) {
        let Some(task) = self.core.cpus[cpu.index()].stopped.take() else { return };
        if self.core.cpus[cpu.index()].released.take() != Some(task) {
            self.tell(cx, Op::Stopping, task, &[1]);
        }
        self.tried(|own| {
            if own.core.slice(&own.machine, task)? == 0 {
                return own.enqueue_on(cx, task, cpu.0, flags);
            }
            own.core.tasks[task.index()].runnable_at.get_or_insert(cx.now());
            own.core.insert(&mut own.machine, cx, task, QueueId::Local(cpu.0), c::ENQ_HEAD)
        });
    }

    /// Looks for what `cpu` runs next (`balance_one`).
    fn balance(&mut self, cx: &mut Context, cpu: CpuId) -> Answer<Verdict> {
        let previous = self.core.cpus[cpu.index()].stopped;
        let has_slice = |own: &Compiled| match previous {
            Some(task) => own.core.slice(&own.machine, task).map(|slice| slice > 0),
            None => Ok(false),
        };
        if has_slice(self)? {
            return Ok(Verdict::Previous);
        }
        if !self.core.cpus[cpu.index()].local.is_empty() {
            return Ok(Verdict::Local);
        }
        let global = QueueId::Global(self.core.node_of[cpu.index()]);
        if self.core.consume(&mut self.machine, cx, cpu, global)? {
            return Ok(Verdict::Local);
        }
        // The kernel also names a task that sleeps from now on.
        let before = previous.or(self.core.cpus[cpu.index()].slept);
        let address = before.map_or(0, |task| self.address(task));
        for _ in 0..if self.has(Op::Dispatch) { MOST_LOOPS } else { 0 } {
            self.core.cpus[cpu.index()].brought = 0;
            self.call(cx, Op::Dispatch, &[u64::from(cpu.0), address]);
            self.core.flush(&mut self.machine, cx, cpu)?;
            if has_slice(self)? {
                return Ok(Verdict::Previous);
            }
            if !self.core.cpus[cpu.index()].local.is_empty()
                || self.core.consume(&mut self.machine, cx, cpu, global)?
            {
                return Ok(Verdict::Local);
            }
            if self.core.cpus[cpu.index()].brought == 0 || self.core.exit.is_some() {
                break;
            }
        }
        let keeps_last = previous.is_some() && self.loaded.flags() & c::OPS_ENQ_LAST == 0;
        Ok(if keeps_last { Verdict::Previous } else { Verdict::Nothing })
    }

    /// The task that `cpu` runs next (`pick_task_scx`, `put_prev_task_scx`).
    fn pick(&mut self, cx: &mut Context, cpu: CpuId) -> Answer<Option<TaskId>> {
        self.core.asked = Asked::Dispatch(cpu);
        let verdict = self.balance(cx, cpu)?;
        let next = match verdict {
            Verdict::Previous => {
                let task = self.core.cpus[cpu.index()].stopped.take();
                let of = &mut self.core.cpus[cpu.index()];
                of.keeps = task.filter(|_| of.released.take() != task);
                task
            }
            Verdict::Local => self.core.cpus[cpu.index()].local.first().map(|(_, task)| task),
            Verdict::Nothing => None,
        };
        if let Some(next) = next {
            self.core.take_out(next);
            if self.core.slice(&self.machine, next)? == 0 {
                self.core.set_slice(&mut self.machine, next, c::SLICE_DEFAULT)?;
            }
        }
        self.core.asked = Asked::Otherwise;
        self.put_away(cx, cpu, if next.is_none() { c::ENQ_LAST } else { 0 });
        Ok(next)
    }

    /// A task that was kept aside changes: it is no longer its CPU's, and comes again.
    fn leave_aside(&mut self, cx: &mut Context, task: TaskId) {
        let cpu = usize::from(self.core.tasks[task.index()].cpu);
        if self.core.cpus[cpu].stopped != Some(task) {
            return;
        }
        self.core.cpus[cpu].stopped = None;
        self.tell(cx, Op::Stopping, task, &[0]);
        self.tell(cx, Op::Quiescent, task, &[c::DEQ_SAVE]);
        self.core.tasks[task.index()].is_restored = true;
        self.tried(|own| own.core.runs(&mut own.machine, CpuId(cpu as u16), None, cx.now()));
    }

    /// What a callback with one task has in common.
    fn tell(&mut self, cx: &mut Context, op: Op, task: TaskId, more: &[u64]) {
        if self.has(op) {
            let arguments: Vec<u64> =
                [self.address(task)].into_iter().chain(more.iter().copied()).collect();
            self.call(cx, op, &arguments);
        }
    }
}

impl Policy for Compiled {
    fn needs(&self) -> Needs {
        Needs {
            tick: Some(self.loaded.tick()),
            blocking: true,
            most_cpus: Some(self.cpus),
            requests: true,
            ..Needs::default()
        }
    }

    fn correct(&mut self, task: TaskId, kernel: InKernel) -> Option<InKernel> {
        let address = self.core.tasks.get(task.index()).map_or(0, |of| of.address);
        (address != 0).then(|| self.tried(|own| own.core.correct(&mut own.machine, task, kernel)))
    }

    fn take_work(&mut self, cpu: CpuId) -> u64 {
        self.core.cpus.get_mut(cpu.index()).map_or(0, |of| std::mem::take(&mut of.work))
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        let cpu = cx.task(task).cpu;
        self.enter(cx, cpu);
        self.tried(|own| own.create(cx, task));
        let arguments = [self.address(task), self.core.init_arguments];
        let name = self.core.name(task);
        self.expect(cx, Op::InitTask, &arguments, &format!(" for {name}"));
        self.join(cx, task);
        self.settle(cx, Callback::InitTask);
    }

    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        let cpu = cx.task(task).cpu;
        self.enter(cx, cpu);
        self.leave(cx, task);
        let arguments = self.core.exit_arguments;
        self.tell(cx, Op::ExitTask, task, &[arguments]);
        self.tried(|own| own.core.dismiss(&mut own.machine, task));
        self.settle(cx, Callback::ExitTask);
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        let previous = cx.task(task).cpu;
        self.enter(cx, wake.waker.unwrap_or(previous));
        self.leave_aside(cx, task);
        let first = cx.allowed_cpus(task).next().unwrap_or(previous);
        let is_bound = cx.allowed_cpus(task).nth(1).is_none();
        let flags = (if wake.new { c::WAKE_FORK } else { c::WAKE_TTWU })
            | (if wake.sync { c::WAKE_SYNC } else { 0 });
        let state = &mut self.core.tasks[task.index()];
        // A task that waited and may not wait there any more is moved, the scheduler is not asked.
        let is_moved = state.is_restored;
        (state.direct, state.was_placed) = (None, !is_bound && !is_moved);
        let chosen = if is_bound || is_moved {
            if is_moved && cx.allowed(task, previous) { previous } else { first }
        } else if self.has(Op::SelectCpu) {
            self.core.asked = Asked::Place(task);
            let address = self.address(task);
            let cpu = self.call(cx, Op::SelectCpu, &[address, u64::from(previous.0), flags]);
            self.core.asked = Asked::Otherwise;
            let cpu = cpu as u32;
            if cpu >= u32::from(self.cpus) {
                self.core.error(format!("invalid CPU {} from ops.select_cpu()", cpu as i32));
                previous
            } else {
                CpuId(cpu as u16)
            }
        } else {
            let idle = self.tried(|own| {
                let allowed = own.core.allowed(&own.machine, task)?;
                let idle = own.core.choose(previous.0, &allowed, flags, 0);
                own.core.show_idle(&mut own.machine)?;
                if idle.is_some() {
                    own.core.set_slice(&mut own.machine, task, c::SLICE_DEFAULT)?;
                    own.core.tasks[task.index()].direct = Some((c::DSQ_LOCAL, 0));
                }
                Ok(idle)
            });
            idle.map_or(previous, CpuId)
        };
        self.placed = Some(task);
        self.settle(cx, Callback::SelectCpu);
        if cx.allowed(task, chosen) { chosen } else { first }
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        if !why.comes() {
            return Effect::Nothing; // kept aside since it stopped
        }
        self.unplace(cx, Some(task));
        let this = self.core.this;
        self.begin(cx);
        self.core.this = if why == Enqueue::Restored { cpu } else { this };
        self.core.asked = Asked::Otherwise;
        let placed = if self.core.tasks[task.index()].was_placed { c::ENQ_CPU_SELECTED } else { 0 };
        let flags = match why {
            Enqueue::Wakeup => c::ENQ_WAKEUP | placed,
            Enqueue::Restored => c::ENQ_RESTORE,
            _ => placed,
        };
        self.leave_aside(cx, task);
        self.core.tasks[task.index()].is_restored = false;
        self.tried(|own| own.core.move_to(&mut own.machine, task, cpu.0));
        self.tried(|own| own.core.set_queued(&mut own.machine, task, true));
        self.tell(cx, Op::Runnable, task, &[flags]);
        self.tried(|own| own.enqueue_on(cx, task, cpu.0, flags));
        self.settle(cx, Callback::Enqueue);
        // A task of the class wakes an idle CPU, wherever it waits (`wakeup_preempt`).
        if cx.idle().contains(cpu) { Effect::Kick(cpu) } else { Effect::Nothing }
    }

    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        let cpu = CpuId(self.core.tasks[task.index()].cpu);
        self.enter(cx, cpu);
        if self.core.cpus[cpu.index()].stopped == Some(task) {
            self.put_away(cx, cpu, 0);
        }
        let state = &mut self.core.tasks[task.index()];
        if std::mem::take(&mut state.custody) == Custody::Scheduler {
            self.tell(cx, Op::Dequeue, task, &[c::DEQ_SAVE]);
        }
        self.core.take_out(task);
        // It has waited since it became runnable, whatever changes now.
        self.core.tasks[task.index()].direct = None;
        self.core.tasks[task.index()].is_restored = true;
        self.tell(cx, Op::Quiescent, task, &[c::DEQ_SAVE]);
        self.tried(|own| own.core.set_queued(&mut own.machine, task, false));
        self.settle(cx, Callback::Dequeue);
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.enter(cx, cpu);
        let of = &mut self.core.cpus[cpu.index()];
        of.is_cut = false;
        of.dispatches = if of.dispatches.0 == cx.now() {
            (cx.now(), of.dispatches.1 + 1)
        } else {
            (cx.now(), 0)
        };
        if of.dispatches.1 > MOST_DISPATCHES {
            self.core.error(format!("CPU {} dispatches again and again at one time", cpu.0));
        }
        // A task that was the last one may have gone back to its CPU.
        let found = (0..MOST_LOOPS).find_map(|_| {
            let next = self.tried(|own| own.pick(cx, cpu));
            self.enqueue_again(cx);
            let is_over = next.is_some() || self.core.cpus[cpu.index()].local.is_empty();
            is_over.then_some(next)
        });
        let next = found.flatten();
        self.core.cpus[cpu.index()].slept = None;
        if next.is_none() {
            // An idle CPU works while it idles.
            self.core.cpus[cpu.index()].work = 0;
            self.tried(|own| own.core.runs(&mut own.machine, cpu, None, cx.now()));
            if self.core.tracks_idle {
                self.core.idle.update(cpu, true);
                self.tried(|own| own.core.show_idle(&mut own.machine));
            }
        }
        self.settle(cx, Callback::Dispatch);
        next.map(|task| Dispatch { task, slice: NO_END })
    }

    fn running(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) {
        self.enter(cx, cpu);
        self.tried(|own| own.core.runs(&mut own.machine, cpu, Some(task), cx.now()));
        if self.core.cpus[cpu.index()].keeps.take() != Some(task) {
            self.tell(cx, Op::Running, task, &[]);
        }
        self.settle(cx, Callback::Running);
    }

    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, why: Stop) {
        self.enter(cx, cpu);
        if self.core.cpus[cpu.index()].released != Some(task) {
            self.tried(|own| own.core.account(&mut own.machine, cpu, cx.now()));
        }
        if std::mem::take(&mut self.core.cpus[cpu.index()].is_cut) {
            self.tried(|own| own.core.set_slice(&mut own.machine, task, 0));
        }
        self.core.cpus[cpu.index()].slept = (why == Stop::Blocked).then_some(task);
        if why == Stop::Yielded {
            if self.has(Op::Yield) {
                self.tell(cx, Op::Yield, task, &[0]);
            } else {
                self.tried(|own| own.core.set_slice(&mut own.machine, task, 0));
            }
        }
        if why.is_runnable() {
            // It counts as the one that runs until the next one does.
            self.core.cpus[cpu.index()].stopped = Some(task);
        } else {
            if self.core.cpus[cpu.index()].released.take() != Some(task) {
                self.tell(cx, Op::Stopping, task, &[0]);
            }
            let is_asleep = why != Stop::OtherClass;
            let flags = if is_asleep { c::DEQ_SLEEP } else { c::DEQ_SAVE };
            self.tell(cx, Op::Quiescent, task, &[flags]);
            self.tried(|own| own.core.set_queued(&mut own.machine, task, false));
            self.tried(|own| own.core.runs(&mut own.machine, cpu, None, cx.now()));
        }
        self.settle(cx, Callback::Stopping);
    }

    fn set_weight(&mut self, cx: &mut Context, task: TaskId, _old: u8, why: Reweight) -> Effect {
        if why == Reweight::Own {
            let cpu = cx.task(task).cpu;
            self.enter(cx, cpu);
            let weight = self.tried(|own| own.show_weight(task, cx.task(task).prio));
            self.tell(cx, Op::SetWeight, task, &[weight]);
            self.settle(cx, Callback::SetWeight);
        }
        Effect::Nothing
    }

    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, _old: Affinity) -> Effect {
        let cpu = cx.task(task).cpu;
        self.enter(cx, cpu);
        self.leave_aside(cx, task);
        self.tried(|own| own.show_cpus(cx, task));
        let mask = self.core.tasks[task.index()].mask;
        self.tell(cx, Op::SetCpumask, task, &[mask]);
        self.settle(cx, Callback::SetCpumask);
        Effect::Nothing
    }

    fn disable(&mut self, cx: &mut Context, task: TaskId) {
        let cpu = cx.task(task).cpu;
        self.enter(cx, cpu);
        self.leave(cx, task);
        self.settle(cx, Callback::Disable);
    }

    fn enable(&mut self, cx: &mut Context, task: TaskId) {
        let cpu = cx.task(task).cpu;
        self.enter(cx, cpu);
        // What changed while it was of another class was not told.
        self.tried(|own| own.show_cpus(cx, task));
        self.join(cx, task);
        let mask = self.core.tasks[task.index()].mask;
        self.tell(cx, Op::SetCpumask, task, &[mask]);
        self.settle(cx, Callback::Enable);
    }

    fn cpu_release(&mut self, cx: &mut Context, cpu: CpuId) {
        self.enter(cx, cpu);
        let of = &self.core.cpus[cpu.index()];
        let runs = of.runs.filter(|_| of.stopped.is_none());
        self.put_away(cx, cpu, 0);
        // Its task stops for the scheduler, and runs again when that class is done.
        if let Some(task) = runs {
            self.tried(|own| own.core.account(&mut own.machine, cpu, cx.now()));
            self.tell(cx, Op::Stopping, task, &[1]);
            self.core.cpus[cpu.index()].released = Some(task);
        }
        let arguments = self.core.exit_arguments;
        self.call(cx, Op::CpuRelease, &[cpu.0.into(), arguments]);
        self.settle(cx, Callback::CpuRelease);
    }

    fn cpu_acquire(&mut self, cx: &mut Context, cpu: CpuId) {
        self.enter(cx, cpu);
        self.call(cx, Op::CpuAcquire, &[cpu.0.into(), 0]);
        if let Some(task) = self.core.cpus[cpu.index()].released.take() {
            self.core.cpus[cpu.index()].accounted = cx.now();
            self.tell(cx, Op::Running, task, &[]);
        }
        self.settle(cx, Callback::CpuAcquire);
    }

    fn update_idle(&mut self, cx: &mut Context, cpu: CpuId, idle: bool) -> Effect {
        self.enter(cx, cpu);
        if self.core.tracks_idle {
            self.core.idle.update(cpu, idle);
            self.tried(|own| own.core.show_idle(&mut own.machine));
        }
        if self.has(Op::UpdateIdle) {
            self.call(cx, Op::UpdateIdle, &[cpu.0.into(), idle.into()]);
        }
        self.settle(cx, Callback::UpdateIdle);
        Effect::Nothing
    }

    fn tick(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) -> Effect {
        self.enter(cx, cpu);
        self.tried(|own| own.core.account(&mut own.machine, cpu, cx.now()));
        self.tell(cx, Op::Tick, task, &[]);
        let is_over = self.tried(|own| own.core.slice(&own.machine, task).map(|slice| slice == 0));
        self.settle(cx, Callback::Tick);
        if is_over { Effect::Preempt(cpu) } else { Effect::Nothing }
    }

    fn timer(&mut self, cx: &mut Context) {
        let now = cx.now();
        self.called_at = Time::NEVER;
        self.enter(cx, CpuId(0));
        while let Some((&(time, at), &Timer { callback, arguments })) =
            self.core.timers.first_key_value()
            && time <= now
        {
            self.core.timers.remove(&(time, at));
            let [map, key, value] = arguments;
            // Its value was deleted, and it with that.
            if !self.machine.is_valid(Address(value)) || self.core.exit.is_some() {
                continue;
            }
            self.ring(cx, callback, [map, key, value, 0, 0]);
        }
        if now >= self.watch_at {
            self.watch(cx);
        }
        self.settle(cx, Callback::Timer);
    }
}
