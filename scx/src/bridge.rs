//! The bridge's half in user space: a policy of `schedsim`, driven by what the kernel tells.
//!
//! Each event becomes one call of [`Live`], in the order of the ring and with the event's time; what the policy decides goes back. The
//! memory is locked and allocated beforehand, so that the program never waits for the kernel to bring a page: nothing else would run
//! meanwhile. docs/SCHED_EXT.md has the table of callbacks.

mod memory;

use crate::announcement;
use crate::error::Error;
use crate::objects;
use crate::scheduler::Scheduler;
use memory::{Memory, decision, flag, kind};
use schedsim::live::{self, Arrival, Decision, Live};
use schedsim::policy::{Needs, Policy, Stop};
use schedsim::workload::{Attributes, TaskClass};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Room for everything that the policy will allocate.
const HEAP: i32 = 48 << 20;
/// Larger than any process id.
const MOST_PIDS: usize = 1 << 22;
/// Who has no process id any more.
const NOBODY: u32 = 0;

/// When the policy in charge was to forget what was, if nobody waited, on the clock of events; zero if it need not.
static ANEW: AtomicU64 = AtomicU64::new(0);

/// Lets `policy` decide until it shall end, or until the kernel or the policy itself gives up.
///
/// # Errors
/// [`Error::Missing`] for what the policy needs and this kernel has not, [`Error::Ejected`] with the rule that was broken.
pub fn run<P: Policy + Clone>(name: &str, policy: P, seed: u64, ended: &AtomicBool, report: &dyn Fn(&Scheduler)) -> Result<(), Error> {
    let needs = policy.needs();
    let each_tick = expect(name, needs)?;
    lock_memory()?;
    let bytes = objects::object(objects::BRIDGE).ok_or_else(|| Error::Internal("the bridge was not built".into()))?;
    let mut scheduler = Scheduler::load_with(objects::BRIDGE, bytes, |constants| {
        constants[..4].copy_from_slice(&std::process::id().to_ne_bytes());
        constants[4..8].copy_from_slice(&each_tick.to_ne_bytes());
    })?;
    let mut bridge = Bridge {
        memory: Memory::map(&scheduler.map("shared_memory")?)?,
        live: Live::new(policy.clone(), Machine::ideal(cpus()?), seed),
        ids: vec![TaskId::NONE; MOST_PIDS],
        tasks: Vec::new(),
        free: Vec::new(),
        paused: 0,
        unsent: VecDeque::with_capacity(1024),
        starved: None,
    };
    if let Some(program) = scheduler.begins_anew_by() {
        announcement::at_each_job(move || {
            announcement::run(&program);
            ANEW.store(now(), Relaxed);
        })?;
    }
    scheduler.attach()?;
    report(&scheduler);
    while !ended.load(Relaxed) && !bridge.memory.has_exited() {
        let anew = ANEW.swap(0, Relaxed);
        if anew > 0 {
            bridge.live.at(Time(anew));
            bridge.live.begin_anew(policy.clone(), seed);
        }
        if let Err(rule) = bridge.turn() {
            scheduler.detach();
            return Err(Error::Ejected(format!("policy {name} broke a rule: {rule}")));
        }
        // SAFETY: it has no arguments.
        unsafe { libc::sched_yield() };
    }
    match scheduler.end(&format!("policy {name}")) {
        Err(Error::Ejected(why)) => Err(Error::Ejected(why + &bridge.longest_waiting().unwrap_or_default())),
        end => end,
    }
}

/// A policy, and whom its ids stand for.
struct Bridge<P> {
    memory: Memory,
    live: Live<P>,
    /// By process id.
    ids: Vec<TaskId>,
    /// By the policy's id.
    tasks: Vec<Task>,
    free: Vec<TaskId>,
    /// Bit c: CPU c was kept from its task, and has not been told yet how to go on.
    paused: u64,
    unsent: VecDeque<memory::Decision>,
    /// Who waited for longest when it was taken away.
    starved: Option<(Nanos, u32)>,
}

#[derive(Clone, Copy)]
struct Task {
    pid: u32,
    /// Which of its waits is the last, and when it began.
    wait: u64,
    since: u64,
    /// What it is said to do when it comes to wait.
    woken: bool,
    /// Where it stopped and why, if it is about to be enqueued again.
    stopped: Option<(CpuId, Stop)>,
    /// On whose account it was woken.
    waker: Option<CpuId>,
    new: bool,
}

impl<P: Policy> Bridge<P> {
    /// Reads what has happened and answers it; or the rule that the policy broke, to panic being one.
    fn turn(&mut self) -> Result<(), String> {
        let turn = panic::catch_unwind(AssertUnwindSafe(|| {
            self.read();
            self.answer();
        }));
        turn.map_err(|panic| format!("it panicked: {}", message(panic.as_ref())))?;
        self.live.ended().map_or(Ok(()), |ended| Err(ended.to_string()))
    }

    /// Whom the policy kept waiting for longest, in words: the kernel does not always say.
    fn longest_waiting(&self) -> Option<String> {
        let (waited, pid) = self.starved?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some(format!("; the policy has kept {}[{pid}] waiting for {waited}", name.trim()))
    }

    fn read(&mut self) {
        while let Some(event) = self.memory.next() {
            self.live.at(Time(event.ns));
            self.event(&event);
        }
    }

    fn event(&mut self, event: &memory::Event) {
        let cpu = CpuId(event.cpu);
        if event.kind == kind::ENABLE {
            return self.enable(event);
        }
        let Some(task) = self.ids.get(event.pid as usize).copied().filter(|&task| task != TaskId::NONE) else { return };
        let known = &mut self.tasks[task.index()];
        match event.kind {
            kind::DISABLE => self.disable(event.pid, task),
            kind::RUNNABLE => {
                known.woken = event.flags & flag::WOKEN != 0;
                known.waker = known.woken.then_some(CpuId(event.value as u16));
            }
            kind::ENQUEUE => self.enqueue(task, event),
            kind::DEQUEUE => self.dequeue(event, task),
            kind::QUIESCENT => self.quiescent(task, event.flags),
            kind::RUNNING => {
                known.stopped = None;
                self.paused &= !(1 << cpu.0);
                self.live.running(cpu, task);
            }
            kind::STOPPING => self.stopping(task, cpu, event.flags),
            kind::TICK => self.live.tick(cpu),
            kind::WEIGHT => self.live.set_prio(task, event.value as u8),
            kind::CPUMASK => self.live.set_affinity(task, event.value),
            _ => {}
        }
    }

    fn enable(&mut self, event: &memory::Event) {
        let Some(id) = self.ids.get_mut(event.pid as usize) else { return };
        let task = self.free.pop().unwrap_or(TaskId(self.tasks.len() as u32));
        *id = task;
        let new = Task { pid: event.pid, wait: 0, since: 0, woken: false, stopped: None, waker: None, new: true };
        match self.tasks.get_mut(task.index()) {
            Some(old) => *old = new,
            None => self.tasks.push(new),
        }
        let class = match event.flags {
            3 => TaskClass::Batch,
            5 => TaskClass::Idle,
            _ => TaskClass::ByPriority,
        };
        let attributes = Attributes { class, ..Attributes::default() };
        self.live.arrive(task, Arrival { prio: event.value as u8, attributes, cpu: CpuId(event.cpu), ..Arrival::default() });
    }

    /// The kernel takes a task away: those that it takes from a policy that it ejects are the ones that starve.
    fn dequeue(&mut self, event: &memory::Event, task: TaskId) {
        if self.live.is_waiting(task) {
            let waited = Nanos(event.ns.saturating_sub(self.tasks[task.index()].since));
            self.starved = self.starved.max(Some((waited, event.pid)));
        }
        self.live.taken(task);
    }

    fn disable(&mut self, pid: u32, task: TaskId) {
        self.live.leave(task);
        self.ids[pid as usize] = TaskId::NONE;
        self.tasks[task.index()].pid = NOBODY;
        self.free.push(task);
    }

    /// A task waits: because it stopped, because it woke, or because the kernel took it away and put it back.
    fn enqueue(&mut self, task: TaskId, event: &memory::Event) {
        let known = &mut self.tasks[task.index()];
        (known.wait, known.since) = (event.value, event.ns);
        let Task { woken, new, waker, .. } = *known;
        (known.woken, known.new) = (false, false);
        match known.stopped.take() {
            Some((cpu, Stop::Preempted)) => {
                self.paused |= 1 << cpu.0;
                self.live.paused(cpu);
            }
            Some((cpu, why)) => self.live.stopped(cpu, why),
            None => {
                self.live.taken(task);
                self.live.wake(task, new && !woken, waker);
            }
        }
    }

    /// A task stops. The event that follows completes the stop: `enqueue` if it is still runnable, only then can it be chosen again;
    /// `quiescent` if not.
    fn stopping(&mut self, task: TaskId, cpu: CpuId, flags: u8) {
        let has = |flag| flags & flag != 0;
        if has(flag::KEPT) || self.live.current(cpu) != Some(task) {
            return; // the kernel goes on with it, or ran it unasked: it runs tasks that are exiting as soon as it can
        }
        let why = match () {
            () if has(flag::DEAD) => Stop::Exited,
            () if !has(flag::RUNNABLE) => Stop::Blocked,
            () if has(flag::YIELDED) => Stop::Yielded,
            () if has(flag::EXCURSION) => Stop::Preempted,
            () => Stop::SliceOver,
        };
        self.tasks[task.index()].stopped = Some((cpu, why));
    }

    /// A task does not want to run any more, or has its attributes changed: then a running one runs on, unless it is enqueued.
    fn quiescent(&mut self, task: TaskId, flags: u8) {
        let sleeps = flags & flag::SLEEPS != 0;
        match self.tasks[task.index()].stopped.take() {
            Some((cpu, why)) if sleeps => self.live.stopped(cpu, why),
            Some(_) => {}
            None if self.live.is_chosen(task) && !sleeps => self.live.taken(task), // before it could run
            None if self.live.is_waiting(task) => self.live.taken(task), // of most `dequeue` has told; the kernel may have run it unasked
            None => {}
        }
    }

    /// Sends what was decided.
    fn answer(&mut self) {
        while self.paused != 0 {
            let cpu = self.paused.trailing_zeros() as u16;
            self.paused &= self.paused - 1;
            self.live.resume(CpuId(cpu));
        }
        let tasks = &self.tasks;
        self.unsent.extend(self.live.decisions().map(|decided| match decided {
            Decision::Run { cpu, task, slice } => {
                let Task { pid, wait, .. } = tasks[task.index()];
                memory::Decision { slice: slice.0, wait, pid, cpu: cpu.0, kind: decision::RUN }
            }
            Decision::Stop(cpu) => memory::Decision { cpu: cpu.0, kind: decision::STOP, ..memory::Decision::default() },
        }));
        while let Some(&next) = self.unsent.front() {
            if !self.memory.decide(next) {
                return;
            }
            self.unsent.pop_front();
        }
    }
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// Each how many-th of this kernel's ticks the policy wants; 0 if it wants none. Refuses a policy that needs what this kernel does not give.
fn expect(name: &str, needs: Needs) -> Result<u32, Error> {
    if let Some(unmet) = live::unmet(needs) {
        return Err(Error::Missing(format!("policy {name} {unmet}")));
    }
    let Some(tick) = needs.tick else { return Ok(0) };
    let given = tick_period();
    let each = u32::try_from(tick.0 / given.0).ok().filter(|each| *each > 0 && tick.0.is_multiple_of(given.0));
    each.ok_or_else(|| {
        Error::Missing(format!(
            "policy {name} needs a tick every {tick}, and this kernel has one every {given}: give the policy a multiple of that, or a kernel with another CONFIG_HZ"
        ))
    })
}

/// The period of the kernel's tick: the resolution of its coarse clock.
fn tick_period() -> Nanos {
    let mut period = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `period` only.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut period) };
    Nanos(period.tv_sec.cast_unsigned() * 1_000_000_000 + period.tv_nsec.cast_unsigned())
}

/// The clock of events.
fn now() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `now` only.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// How many CPUs this machine has.
///
/// # Errors
/// If they are more than the bridge serves.
pub fn cpus() -> Result<u16, Error> {
    // SAFETY: it takes a number only.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    let most = schedsim::live::MOST_CPUS;
    u16::try_from(count)
        .ok()
        .filter(|count| (1..=most).contains(count))
        .ok_or_else(|| Error::Missing(format!("this machine has {count} CPUs, and the bridge serves at most {most}")))
}

/// Takes all memory that will be needed, and keeps it.
fn lock_memory() -> Result<(), Error> {
    // SAFETY: numbers only. The allocator takes its memory from the heap, never gives any back, and the heap is filled and locked here.
    let locked = unsafe {
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, HEAP);
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) == 0
    };
    drop(Vec::<u8>::with_capacity(1 << 20)); // makes the heap grow by its pad
    if !locked {
        return Err(Error::Missing(format!(
            "memory cannot be locked: {}; raise the limit: ulimit -l unlimited",
            std::io::Error::last_os_error()
        )));
    }
    Ok(())
}
