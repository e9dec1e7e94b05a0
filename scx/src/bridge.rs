//! The user-space half of the bridge: drives a policy of `schedsim` by the kernel's events.
//!
//! Each event becomes one call of [`Live`], in the order of the ring and with the event's time; the
//! decisions of the policy go back. The memory is allocated and locked beforehand, so that the
//! program never waits for a page: while it waited, no task would run. docs/SCHED_EXT.md has the
//! table of callbacks.

mod memory;

use crate::announcement;
use crate::error::Error;
use crate::objects;
use crate::scheduler::Scheduler;
use memory::{Memory, decision, flag, kind};
use schedsim::live::{self, Arrival, Decision, Live, MOST_CPUS};
use schedsim::policy::{Needs, Policy, Stop};
use schedsim::workload::{Attributes, TaskClass};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Memory for everything that the policy will allocate.
const HEAP: i32 = 48 << 20;
/// Larger than any process id.
const MOST_PIDS: usize = 1 << 22;
/// For a task that has no process id any more.
const NOBODY: u32 = 0;

/// The time on the clock of events at which the policy should forget its history, if no task
/// waited; zero if it need not.
static ANEW: AtomicU64 = AtomicU64::new(0);

/// Lets `policy` decide until it is ended, or until the kernel or the policy itself gives up.
///
/// # Errors
/// [`Error::Missing`] for what the policy needs and this kernel has not, [`Error::Ejected`] with
/// the rule that was broken.
pub fn run<P: Policy + Clone>(
    name: &str,
    policy: P,
    seed: u64,
    ended: &AtomicBool,
    report: &dyn Fn(&Scheduler),
) -> Result<(), Error> {
    let needs = policy.needs();
    let each_tick = expect(name, needs)?;
    lock_memory()?;
    let bytes = objects::object(objects::BRIDGE)
        .ok_or_else(|| Error::Internal("the bridge was not built".into()))?;
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
        if let Err(rule) = bridge.answer_events() {
            scheduler.detach();
            return Err(Error::Ejected(format!("policy {name} broke a rule: {rule}")));
        }
        // SAFETY: it has no arguments.
        unsafe { libc::sched_yield() };
    }
    match scheduler.end(&format!("policy {name}")) {
        Err(Error::Ejected(why)) => {
            Err(Error::Ejected(why + &bridge.longest_waiting().unwrap_or_default()))
        }
        end => end,
    }
}

/// A policy, and the tasks behind its ids.
struct Bridge<P> {
    memory: Memory,
    live: Live<P>,
    /// By process id.
    ids: Vec<TaskId>,
    /// By the policy's id.
    tasks: Vec<Task>,
    free: Vec<TaskId>,
    /// Bit c: CPU c was kept from its task, and does not know yet how to continue.
    paused: u64,
    unsent: VecDeque<memory::Decision>,
    /// The task that waited longest when it was taken away.
    starved: Option<(Nanos, u32)>,
}

#[derive(Clone, Copy)]
struct Task {
    pid: u32,
    /// The number of its last wait, and when it began.
    wait: u64,
    since: u64,
    /// The reason that is reported when it begins to wait.
    woken: bool,
    /// Where it stopped and why, if it is about to be enqueued again.
    stopped: Option<(CpuId, Stop)>,
    /// The task that woke it.
    waker: Option<CpuId>,
    new: bool,
    /// Whether it came back from another class and has not waited since.
    returned: bool,
}

impl<P: Policy> Bridge<P> {
    /// Reads the events and answers them; or returns the rule that the policy broke, a panic
    /// included.
    fn answer_events(&mut self) -> Result<(), String> {
        let turn = panic::catch_unwind(AssertUnwindSafe(|| {
            self.read();
            self.answer();
        }));
        turn.map_err(|panic| format!("it panicked: {}", message(panic.as_ref())))?;
        self.live.ended().map_or(Ok(()), |ended| Err(ended.to_string()))
    }

    /// The task that the policy kept waiting longest, in words: the kernel does not always report
    /// it.
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
        match event.kind {
            kind::ENABLE => return self.enable(event),
            kind::CPU_ONLINE => return self.live.cpu_online(cpu),
            kind::CPU_OFFLINE => return self.live.cpu_offline(cpu),
            kind::CPU_ACQUIRE => return self.live.cpu_acquire(cpu),
            kind::CPU_RELEASE => return self.live.cpu_release(cpu),
            _ => {}
        }
        let Some(task) =
            self.ids.get(event.pid as usize).copied().filter(|&task| task != TaskId::NONE)
        else {
            return;
        };
        let known = &mut self.tasks[task.index()];
        match event.kind {
            kind::DISABLE => self.live.disable(task),
            kind::EXIT => self.exit(event.pid, task),
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
            kind::WEIGHT => self.live.set_weight(task, event.value as u8),
            kind::CPUMASK => self.live.set_cpumask(task, event.value),
            _ => {}
        }
    }

    /// A task belongs to the policy from now on, for the first time or again.
    fn enable(&mut self, event: &memory::Event) {
        let class = match event.flags {
            3 => TaskClass::Batch,
            5 => TaskClass::Idle,
            _ => TaskClass::ByPriority,
        };
        let attributes = Attributes { class, ..Attributes::default() };
        let arrival = Arrival {
            prio: event.value as u8,
            attributes,
            cpu: CpuId(event.cpu),
            ..Arrival::default()
        };
        let Some(id) = self.ids.get_mut(event.pid as usize) else { return };
        if *id != TaskId::NONE {
            self.tasks[id.index()].returned = true;
            return self.live.enable(*id, arrival);
        }
        let task = self.free.pop().unwrap_or(TaskId(self.tasks.len() as u32));
        *id = task;
        let new = Task {
            pid: event.pid,
            wait: 0,
            since: 0,
            woken: false,
            stopped: None,
            waker: None,
            new: true,
            returned: false,
        };
        match self.tasks.get_mut(task.index()) {
            Some(old) => *old = new,
            None => self.tasks.push(new),
        }
        self.live.arrive(task, arrival);
    }

    /// The kernel takes a task away. Those that it takes from an ejected policy are the ones that
    /// starve.
    fn dequeue(&mut self, event: &memory::Event, task: TaskId) {
        if self.live.is_waiting(task) {
            let waited = Nanos(event.ns.saturating_sub(self.tasks[task.index()].since));
            self.starved = self.starved.max(Some((waited, event.pid)));
        }
        self.live.withdraw(task);
    }

    /// A task is gone, and its process id with it.
    fn exit(&mut self, pid: u32, task: TaskId) {
        self.live.leave(task);
        self.ids[pid as usize] = TaskId::NONE;
        self.tasks[task.index()].pid = NOBODY;
        self.free.push(task);
    }

    /// A task begins to wait: it stopped, it woke, or the kernel took it away and put it back.
    fn enqueue(&mut self, task: TaskId, event: &memory::Event) {
        let known = &mut self.tasks[task.index()];
        (known.wait, known.since) = (event.value, event.ns);
        let Task { woken, new, returned, waker, .. } = *known;
        (known.woken, known.new, known.returned) = (false, false, false);
        match known.stopped.take() {
            Some((cpu, Stop::Preempted)) => {
                self.paused |= 1 << cpu.0;
                self.live.paused(cpu);
            }
            Some((cpu, why)) => self.live.stopped(cpu, why),
            None => {
                self.live.withdraw(task);
                if new || woken || returned {
                    self.live.wake(task, new && !woken, waker)
                } else {
                    self.live.restored(task)
                }
            }
        }
    }

    /// A task stops. The next event completes the stop: `enqueue` if it is still runnable, so that
    /// it can be chosen again; `quiescent` if not.
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

    /// A task sleeps, or its attributes change: then a running one continues, unless it is
    /// enqueued.
    fn quiescent(&mut self, task: TaskId, flags: u8) {
        let sleeps = flags & flag::SLEEPS != 0;
        match self.tasks[task.index()].stopped.take() {
            Some((cpu, why)) if sleeps => self.live.stopped(cpu, why),
            Some(_) => {}
            None if self.live.is_chosen(task) && !sleeps => self.live.withdraw(task), /* before it could run */
            None if self.live.is_waiting(task) => self.live.withdraw(task), /* of most `dequeue` */
            // has told; the
            // kernel may have
            // run it unasked
            None => {}
        }
    }

    /// Sends the decisions.
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
            Decision::Stop(cpu) => {
                memory::Decision { cpu: cpu.0, kind: decision::STOP, ..memory::Decision::default() }
            }
        }));
        while let Some(&next) = self.unsent.front() {
            if !self.memory.decide(next) {
                return;
            }
            self.unsent.pop_front();
        }
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// The period of the policy's ticks as a multiple of this kernel's; 0 if it has none. Refuses a
/// policy with requirements that this kernel does not meet.
fn expect(name: &str, needs: Needs) -> Result<u32, Error> {
    if let Some(unmet) = live::unmet(needs) {
        return Err(Error::Missing(format!("policy {name} {unmet}")));
    }
    let Some(tick) = needs.tick else { return Ok(0) };
    let given = tick_period();
    let each = u32::try_from(tick.0 / given.0)
        .ok()
        .filter(|each| *each > 0 && tick.0.is_multiple_of(given.0));
    each.ok_or_else(|| {
        Error::Missing(format!(
            "policy {name} needs a tick every {tick}, and this kernel has one every {given}: give \
             the policy a multiple of that, or a kernel with another CONFIG_HZ"
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

/// The number of this machine's CPUs.
///
/// # Errors
/// If they are more than the bridge serves.
pub fn cpus() -> Result<u16, Error> {
    // SAFETY: it takes a number only.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    u16::try_from(count).ok().filter(|count| (1..=MOST_CPUS).contains(count)).ok_or_else(|| {
        Error::Missing(format!(
            "a bridge serves at most {MOST_CPUS} CPUs, and this machine has {count}"
        ))
    })
}

/// Allocates and locks all memory that will be needed.
fn lock_memory() -> Result<(), Error> {
    // SAFETY: numbers only. The allocator takes its memory from the heap and never returns any; the
    // heap is filled and locked here.
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
