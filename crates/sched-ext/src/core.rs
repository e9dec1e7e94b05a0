//! What the kernel keeps of tasks, CPUs and queues while a scheduler of sched_ext is loaded.

use super::constants::{
    DSQ_BUILTIN, DSQ_GLOBAL, DSQ_LOCAL, DSQ_LOCAL_ON, ENQ_HEAD, ENQ_PREEMPT, ENQ_PRIQ,
    SLICE_DEFAULT, TASK_QUEUED, WAKE_SYNC,
};
use super::idle::{IN_NODE, Idle};
use super::layout::Layout;
use super::masks::Mask;
use super::memory;
pub use super::memory::Answer;
use super::queues::{At, Place, Queue, QueueId};
use bpf::{Address, Btf, Machine};
use schedsim::policy::{Context, Effect, InKernel};
use schedsim::trace::TaskInfo;
use schedsim::workload::is_kernel_thread_name;
use schedsim::{CpuId, TaskId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The weight of a cgroup for which none was set (`CGROUP_WEIGHT_DFL`).
const CGROUP_WEIGHT: u64 = 100;
/// `PF_IDLE`, of the flags of an idle task.
const IS_IDLE: u64 = 2;
/// `PF_KTHREAD`, of the flags of a thread of the kernel.
const IS_KERNEL_THREAD: u64 = 0x20_0000;

/// What is known of a task before it comes.
#[derive(Clone, Debug)]
pub struct Known {
    pub name: Box<str>,
    pub is_of_kernel: bool,
}

impl Known {
    pub fn of(task: &TaskInfo) -> Known {
        Known { name: task.name.as_str().into(), is_of_kernel: is_kernel_thread_name(&task.name) }
    }
}

/// A task, as the core sees it.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Its `task_struct`, and its `cpumask`; 0 if it is gone.
    pub address: u64,
    pub mask: u64,
    /// Where it waits, if in a queue.
    pub waits: Option<(QueueId, Place)>,
    pub custody: Custody,
    /// How often it was given to the scheduler: what was decided for it before is void.
    pub turn: u64,
    /// The queue for which it was chosen before it is enqueued, with flags.
    pub direct: Option<(u64, u64)>,
    /// Since when it is runnable and does not run.
    pub runnable_at: Option<Time>,
    /// Its CPU.
    pub cpu: u16,
    /// Whether the scheduler chose that CPU.
    pub was_placed: bool,
    /// Whether it is of the class (`SCX_TASK_ENABLED`).
    pub is_enabled: bool,
    /// Whether it is out of its queue only for as long as its attributes change.
    pub is_restored: bool,
}

/// Who has a task that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Custody {
    /// The core, in a queue.
    #[default]
    Core,
    /// The scheduler, in its own data.
    Scheduler,
}

/// A CPU, as the core sees it.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    pub local: Queue,
    /// The task that it has just stopped, which is still runnable.
    pub stopped: Option<TaskId>,
    /// The task that runs on, of which the scheduler gets no callback.
    pub keeps: Option<TaskId>,
    pub runs: Option<TaskId>,
    /// The task that a better class interrupts: the scheduler knows that it has stopped.
    pub released: Option<TaskId>,
    /// The task that it has just stopped, which sleeps.
    pub slept: Option<TaskId>,
    /// Whether the slice of its task ends when the event is over (`cpus_to_preempt`).
    pub is_cut: bool,
    /// How often it has dispatched at the time at which it did last.
    pub dispatches: (Time, u32),
    /// Until when its task's time is accounted for.
    pub accounted: Time,
    /// What `dispatch` has decided and the core has not done yet.
    pub decided: Vec<Decided>,
    /// How many tasks the last `dispatch` has brought.
    pub brought: u32,
    /// Its `rq`, and its idle task.
    pub rq: u64,
    pub idle_task: u64,
    /// The instructions of x86 that callbacks took there, since the engine charged it for them.
    pub work: u64,
}

/// A decision of `dispatch`.
#[derive(Clone, Copy, Debug)]
pub struct Decided {
    pub task: TaskId,
    pub turn: u64,
    pub queue: u64,
    pub flags: u64,
}

/// What the scheduler is asked at the moment: it decides what it may call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Nothing for which a task could be inserted.
    Otherwise,
    /// Where this task waits.
    Place(TaskId),
    /// It has inserted the task that it was asked for.
    Placed(TaskId),
    /// What this CPU runs next.
    Dispatch(CpuId),
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Core {
    pub layout: Layout,
    pub tasks: Vec<Task>,
    /// By task, as far as anything is known.
    pub known: Arc<[Known]>,
    pub cpus: Vec<Cpu>,
    pub global: Vec<Queue>,
    pub own: BTreeMap<u64, Queue>,
    pub idle: Idle,
    pub tracks_idle: bool,
    pub by_node: bool,
    /// Whether a program may look at the masks of idle CPUs.
    shows_idle: bool,
    /// The CPU on which code runs.
    pub this: CpuId,
    pub asked: Asked,
    pub most_decided: usize,
    /// The regions of the masks of idle CPUs, of idle cores and of all CPUs.
    pub idle_masks: [u64; 2],
    pub all_mask: u64,
    pub node_of: Vec<u16>,
    /// Why the scheduler is at its end, in the kernel's words.
    pub exit: Option<String>,
    /// Timers by when they are due, then by their place in memory.
    pub timers: BTreeMap<(Time, u64), Timer>,
    /// Iterators of programs, by their places in memory.
    pub cursors: BTreeMap<u64, Cursor>,
    /// Tasks of local queues that go back to the scheduler.
    pub again: Vec<TaskId>,
    /// What programs printed.
    pub texts: Vec<String>,
    /// What the calls of the callback take that runs, in instructions of x86.
    pub called: u64,
    /// Where tasks were inserted, if that is traced.
    pub moved: Option<Vec<(TaskId, QueueId)>>,
    /// The map of each timer, by its place in memory.
    pub timed: BTreeMap<u64, u64>,
    /// What each timer does.
    pub callbacks: BTreeMap<u64, Timer>,
    pub root_cgroup: u64,
    /// An address space that all tasks have.
    pub memory: u64,
    /// Where the arguments of these operations are.
    pub init_arguments: u64,
    pub exit_arguments: u64,
    pub cgroup_arguments: u64,
}

/// A timer of the scheduler that runs.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    pub callback: u64,
    pub arguments: [u64; 3],
}

/// An iterator of a program's.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    pub queue: u64,
    pub backwards: bool,
    /// Where it is; nowhere yet.
    pub place: Option<Place>,
    /// Tasks that came after it began are left out.
    pub arrivals: u64,
    /// What the task that is moved next gets.
    pub slice: Option<u64>,
    pub time: Option<u64>,
}

/// What a scheduler is like, of what the core must know.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Whether the core tracks idle CPUs.
    pub tracks_idle: bool,
    /// Whether a program may look at the masks of idle CPUs.
    pub shows_idle: bool,
    /// Whether that is by node (`SCX_OPS_BUILTIN_IDLE_PER_NODE`).
    pub by_node: bool,
    /// How many tasks one dispatch may insert.
    pub most_decided: usize,
}

impl Core {
    /// Nothing is loaded yet.
    pub fn new(types: &Btf, traits: Traits, cpus: u16) -> Core {
        let flat = schedsim::Machine::ideal(cpus);
        let mut layout = Layout::of(types);
        layout.mask_size = layout.mask_size.max(usize::from(cpus).div_ceil(64) * 8);
        Core {
            layout,
            known: Arc::default(),
            tasks: Vec::new(),
            cpus: vec![Cpu::default(); usize::from(cpus)],
            global: vec![Queue::default()],
            own: BTreeMap::new(),
            idle: Idle::new(&flat),
            tracks_idle: traits.tracks_idle,
            by_node: traits.by_node,
            shows_idle: traits.shows_idle,
            this: CpuId(0),
            asked: Asked::Otherwise,
            most_decided: traits.most_decided,
            idle_masks: [0; 2],
            all_mask: 0,
            node_of: vec![0; usize::from(cpus)],
            exit: None,
            timers: BTreeMap::new(),
            cursors: BTreeMap::new(),
            again: Vec::new(),
            texts: Vec::new(),
            called: 0,
            moved: None,
            timed: BTreeMap::new(),
            callbacks: BTreeMap::new(),
            root_cgroup: 0,
            memory: 0,
            init_arguments: 0,
            exit_arguments: 0,
            cgroup_arguments: 0,
        }
    }

    /// Makes what all programs may look at, for this machine.
    pub fn begin(&mut self, machine: &mut Machine, on: &schedsim::Machine) -> Answer {
        self.idle = Idle::new(on);
        if let Some(topology) = &on.topology {
            self.node_of = on.all().map(|cpu| topology.place(cpu).node).collect();
            let nodes = self.node_of.iter().max().map_or(1, |&last| usize::from(last) + 1);
            self.global = vec![Queue::default(); nodes];
        }
        let mask_size = self.layout.mask_size;
        let mut mask = |what: &str, of: &Mask| -> Answer<u64> {
            let at = machine.allocate(what, mask_size)?;
            machine.write(at, &of.to_bytes())?;
            Ok(at.0)
        };
        let all = Mask::all(on.cpus);
        self.all_mask = mask("the mask of all CPUs", &all)?;
        self.idle_masks =
            [mask("the mask of idle CPUs", &all)?, mask("the mask of idle cores", &all)?];
        self.root_cgroup = machine.allocate("the root cgroup", self.layout.cgroup_size)?.0;
        self.memory = machine.allocate("an address space", 64)?.0;
        let size = self.layout.init_args.unwrap_or(0).max(16);
        self.init_arguments = machine.allocate("the arguments of init_task", size)?.0;
        memory::set(machine, self.init_arguments, self.layout.fork, 1)?;
        memory::set(machine, self.init_arguments, self.layout.args_cgroup, self.root_cgroup)?;
        self.exit_arguments = machine.allocate("the arguments of exit_task", 64)?.0;
        let size = self.layout.cgroup_args.unwrap_or(0).max(32);
        self.cgroup_arguments = machine.allocate("the arguments of cgroup_init", size)?.0;
        memory::set(machine, self.cgroup_arguments, self.layout.cgroup_weight, CGROUP_WEIGHT)?;
        for cpu in 0..on.cpus {
            let rq = machine.allocate("a struct rq", self.layout.rq_size)?.0;
            let idle = machine.allocate("the idle task", self.layout.task_size)?.0;
            memory::set(machine, idle, self.layout.process_flags, IS_IDLE)?;
            memory::set(machine, idle, self.layout.cpu.iter().copied(), cpu.into())?;
            memory::set(machine, idle, self.layout.cpus_ptr, self.all_mask)?;
            memory::set(machine, idle, self.layout.itself.iter().copied(), idle)?;
            memory::set(machine, rq, self.layout.rq_cpu, cpu.into())?;
            memory::set(
                machine,
                rq,
                [self.layout.rq_curr, self.layout.rq_idle].into_iter().flatten(),
                idle,
            )?;
            let of = &mut self.cpus[usize::from(cpu)];
            (of.rq, of.idle_task) = (rq, idle);
        }
        Ok(())
    }

    /// A task comes, with its `task_struct`.
    pub fn admit(&mut self, machine: &mut Machine, task: TaskId, cpu: u16) -> Answer {
        if task.index() >= self.tasks.len() {
            self.tasks.resize(task.index() + 1, Task::default());
        }
        let layout = &self.layout;
        let at = machine.allocate("a task_struct", layout.task_size)?.0;
        let mask = machine.allocate("the CPUs of a task", layout.mask_size)?.0;
        let pid = u64::from(task.0) + 1;
        memory::set(machine, at, [layout.pid, layout.tgid].into_iter().flatten(), pid)?;
        memory::set(
            machine,
            at,
            [layout.cpus_ptr, layout.user_cpus_ptr].into_iter().flatten(),
            mask,
        )?;
        memory::set(machine, at, layout.itself.iter().copied(), at)?;
        let known = self.known.get(task.index());
        match known.is_some_and(|known| known.is_of_kernel) {
            true => memory::set(machine, at, layout.process_flags, IS_KERNEL_THREAD)?,
            false => memory::set(machine, at, layout.memory, self.memory)?,
        }
        memory::set(machine, at, layout.slice, SLICE_DEFAULT)?;
        let cpus = layout.cpu.iter().chain(&layout.recent_cpu).copied();
        memory::set(machine, at, cpus, cpu.into())?;
        if let Some(comm) = layout.comm {
            let plain = format!("task{pid}");
            let name = known.map_or(plain.as_str(), |known| &known.name).as_bytes();
            let name = &name[..name.len().min(15)];
            machine.write(Address(at + u64::from(comm.offset)), name)?;
        }
        self.tasks[task.index()] = Task { address: at, mask, cpu, ..Task::default() };
        Ok(())
    }

    /// A task has left.
    pub fn dismiss(&mut self, machine: &mut Machine, task: TaskId) -> Answer {
        self.take_out(task);
        let Task { address, mask, .. } = std::mem::take(&mut self.tasks[task.index()]);
        machine.free(Address(address))?;
        machine.free(Address(mask))
    }

    /// `task` becomes runnable, or ends to be.
    pub fn set_queued(&mut self, machine: &mut Machine, task: TaskId, is: bool) -> Answer {
        let at = self.tasks[task.index()].address;
        let flags = memory::get(machine, at, self.layout.flags)?;
        let flags = if is { flags | TASK_QUEUED } else { flags & !TASK_QUEUED };
        memory::set(machine, at, self.layout.flags, flags)?;
        memory::set(machine, at, self.layout.on_rq, is.into())
    }

    /// `cpu` runs `task` from now on, or nothing.
    pub fn runs(
        &mut self,
        machine: &mut Machine,
        cpu: CpuId,
        task: Option<TaskId>,
        now: Time,
    ) -> Answer {
        let before = std::mem::replace(&mut self.cpus[cpu.index()].runs, task);
        if let Some(before) = before {
            let at = self.tasks[before.index()].address;
            if at != 0 {
                memory::set(machine, at, self.layout.on_cpu, 0)?;
            }
        }
        let of = &mut self.cpus[cpu.index()];
        of.accounted = now;
        let (rq, idle) = (of.rq, of.idle_task);
        let current = task.map_or(idle, |task| self.tasks[task.index()].address);
        memory::set(machine, rq, self.layout.rq_curr, current)?;
        if let Some(task) = task {
            self.tasks[task.index()].runnable_at = None;
            memory::set(machine, current, self.layout.on_cpu, 1)?;
            self.move_to(machine, task, cpu.0)?;
        }
        Ok(())
    }

    /// The task on `cpu`, or its idle task.
    pub fn current(&self, cpu: u16) -> u64 {
        let of = &self.cpus[usize::from(cpu)];
        of.runs.map_or(of.idle_task, |task| self.tasks[task.index()].address)
    }

    pub fn task_of(&self, machine: &Machine, address: u64) -> Option<TaskId> {
        let pid = memory::get(machine, address, self.layout.pid).ok()?;
        let id = TaskId(u32::try_from(pid.checked_sub(1)?).ok()?);
        self.tasks.get(id.index()).filter(|task| task.address == address).map(|_| id)
    }

    /// The task at `address`; if there is none, the scheduler ends.
    pub fn expect_task(&mut self, machine: &Machine, address: u64) -> Option<TaskId> {
        let found = self.task_of(machine, address);
        if found.is_none() {
            self.error(format!("{address:#x} is no task"));
        }
        found
    }

    /// The scheduler ends (`scx_error`). The first reason is kept.
    pub fn error(&mut self, reason: impl Into<String>) {
        self.exit.get_or_insert(reason.into());
    }

    /// A task in words, as the kernel names it.
    pub fn name(&self, task: TaskId) -> String {
        format!("task[{}]", task.0 + 1)
    }

    /// The kernel's choice of a CPU for a task that ran on `prev` and is woken here with the flags
    /// `wake` (`scx_select_cpu_dfl`).
    pub fn choose(&mut self, prev: u16, allowed: &Mask, wake: u64, flags: u64) -> Option<u16> {
        let this = self.this;
        if wake & WAKE_SYNC != 0 {
            let node = |cpu: u16| self.node_of.get(usize::from(cpu)).filter(|_| self.by_node);
            let mut among = Mask::none(self.cpus.len() as u16);
            let near = (0..self.cpus.len() as u16).filter(|&cpu| node(cpu) == node(this.0));
            near.for_each(|cpu| among.set(cpu));
            let waits = self.queue(QueueId::Local(this.0)).is_some_and(|queue| !queue.is_empty());
            let elsewhere = flags & IN_NODE != 0 && node(this.0) != node(prev);
            let on = (!waits && !elsewhere, &among);
            let found = self.idle.choose_in_sync(this, prev, allowed, on);
            if found.is_some() {
                return found;
            }
        }
        self.idle.choose(this, prev, allowed, flags)
    }

    pub fn queue(&self, id: QueueId) -> Option<&Queue> {
        match id {
            QueueId::Local(cpu) => self.cpus.get(usize::from(cpu)).map(|cpu| &cpu.local),
            QueueId::Global(node) => self.global.get(usize::from(node)),
            QueueId::Own(id) => self.own.get(&id),
        }
    }

    fn queue_mut(&mut self, id: QueueId) -> Option<&mut Queue> {
        match id {
            QueueId::Local(cpu) => self.cpus.get_mut(usize::from(cpu)).map(|cpu| &mut cpu.local),
            QueueId::Global(node) => self.global.get_mut(usize::from(node)),
            QueueId::Own(id) => self.own.get_mut(&id),
        }
    }

    /// The queue that a program names; `cpu` is the one of the task or of the dispatch.
    pub fn named(&self, id: u64, cpu: u16) -> Option<QueueId> {
        match id {
            DSQ_LOCAL => Some(QueueId::Local(cpu)),
            DSQ_GLOBAL => Some(QueueId::Global(self.node_of[usize::from(cpu)])),
            id if id & (DSQ_BUILTIN | DSQ_LOCAL_ON) == DSQ_BUILTIN | DSQ_LOCAL_ON => {
                let on = id & 0xffff_ffff;
                (on < self.cpus.len() as u64).then_some(QueueId::Local(on as u16))
            }
            id if id & DSQ_BUILTIN != 0 => None,
            id => self.own.contains_key(&id).then_some(QueueId::Own(id)),
        }
    }

    pub fn slice(&self, machine: &Machine, task: TaskId) -> Answer<u64> {
        memory::get(machine, self.tasks[task.index()].address, self.layout.slice)
    }

    pub fn set_slice(&self, machine: &mut Machine, task: TaskId, slice: u64) -> Answer {
        memory::set(machine, self.tasks[task.index()].address, self.layout.slice, slice)
    }

    /// A recorded kernel has this of `task`: it has it too from now on, and its place in a queue by
    /// virtual time. Returns what it had.
    pub fn correct(
        &mut self,
        machine: &mut Machine,
        task: TaskId,
        kernel: InKernel,
    ) -> Answer<InKernel> {
        let Task { address, waits, .. } = self.tasks[task.index()];
        let vtime = memory::get(machine, address, self.layout.vtime)?;
        let flags = memory::get(machine, address, self.layout.process_flags)?;
        let own = InKernel { slice: self.slice(machine, task)?, vtime, flags };
        memory::set(machine, address, self.layout.process_flags, kernel.flags)?;
        self.set_slice(machine, task, kernel.slice)?;
        memory::set(machine, address, self.layout.vtime, kernel.vtime)?;
        if let Some((id, place)) = waits.filter(|_| kernel.vtime != vtime)
            && let Some(queue) = self.queue_mut(id)
        {
            let moved = queue.rank_again(place, kernel.vtime);
            self.tasks[task.index()].waits = Some((id, moved));
        }
        Ok(own)
    }

    /// Charges the task of `cpu` for the time since it was charged last (`update_curr_scx`).
    pub fn account(&mut self, machine: &mut Machine, cpu: CpuId, now: Time) -> Answer {
        let Cpu { runs: Some(task), accounted, .. } = self.cpus[cpu.index()] else { return Ok(()) };
        let ran = now.since(accounted).0;
        if ran == 0 {
            return Ok(());
        }
        self.cpus[cpu.index()].accounted = now;
        let address = self.tasks[task.index()].address;
        let sum = memory::get(machine, address, self.layout.sum_exec)?;
        memory::set(machine, address, self.layout.sum_exec, sum.wrapping_add(ran))?;
        let slice = self.slice(machine, task)?;
        if slice != super::constants::SLICE_INFINITE {
            self.set_slice(machine, task, slice.saturating_sub(ran))?;
        }
        Ok(())
    }

    /// `task` gets this CPU.
    pub fn move_to(&mut self, machine: &mut Machine, task: TaskId, cpu: u16) -> Answer {
        let state = &mut self.tasks[task.index()];
        if state.cpu == cpu && state.address != 0 {
            return Ok(());
        }
        state.cpu = cpu;
        let address = state.address;
        memory::set(machine, address, self.layout.cpu.iter().copied(), cpu.into())
    }

    /// Inserts a task into a queue (`dispatch_enqueue`). A CPU that should look at it is kicked.
    pub fn insert(
        &mut self,
        machine: &mut Machine,
        cx: &mut Context,
        task: TaskId,
        into: QueueId,
        flags: u64,
    ) -> Answer {
        let at = match flags {
            flags if flags & ENQ_PRIQ != 0 => {
                let address = self.tasks[task.index()].address;
                At::Rank(memory::get(machine, address, self.layout.vtime)?)
            }
            flags if flags & (ENQ_HEAD | ENQ_PREEMPT) != 0 => At::Head,
            _ => At::Tail,
        };
        let own = matches!(into, QueueId::Own(_));
        let at = if let (At::Rank(_), false) = (at, own) {
            self.error("cannot use vtime ordering for built-in DSQs");
            At::Tail
        } else {
            at
        };
        let Some(queue) = self.queue_mut(into) else {
            self.error("attempting to dispatch to a destroyed dsq");
            return Ok(());
        };
        let place = match queue.insert(task, at) {
            Ok(place) => place,
            Err(what) => {
                if let QueueId::Own(id) = into {
                    self.error(format!("DSQ ID {id:#018x} {what}"));
                }
                return Ok(());
            }
        };
        let state = &mut self.tasks[task.index()];
        (state.waits, state.custody) = (Some((into, place)), Custody::Core);
        if let Some(moved) = &mut self.moved {
            moved.push((task, into));
        }
        if let QueueId::Local(cpu) = into {
            self.move_to(machine, task, cpu)?;
            self.look_at(machine, cx, CpuId(cpu), task, flags)?;
        }
        Ok(())
    }

    /// A task has come into the local queue of `cpu` (`local_dsq_post_enq`).
    fn look_at(
        &mut self,
        machine: &mut Machine,
        cx: &mut Context,
        cpu: CpuId,
        task: TaskId,
        flags: u64,
    ) -> Answer {
        if self.asked == Asked::Dispatch(cpu) {
            return Ok(());
        }
        match self.cpus[cpu.index()].runs {
            Some(runs) if flags & ENQ_PREEMPT != 0 && runs != task => {
                self.set_slice(machine, runs, 0)?;
                cx.also(Effect::Preempt(cpu));
            }
            None if cx.idle().contains(cpu) => cx.also(Effect::Kick(cpu)),
            _ => {}
        }
        Ok(())
    }

    /// Takes a task out of the queue in which it waits.
    pub fn take_out(&mut self, task: TaskId) {
        if let Some((queue, place)) = self.tasks[task.index()].waits.take()
            && let Some(queue) = self.queue_mut(queue)
        {
            queue.remove(place);
        }
    }

    /// Moves the first task of `queue` that may run on `cpu` there (`consume_dispatch_q`).
    pub fn consume(
        &mut self,
        machine: &mut Machine,
        cx: &mut Context,
        cpu: CpuId,
        queue: QueueId,
    ) -> Answer<bool> {
        let found = self.queue(queue).and_then(|queue| {
            let mut tasks = queue.iter().map(|(_, task)| task);
            tasks.find(|&task| self.tasks[task.index()].cpu == cpu.0 || cx.allowed(task, cpu))
        });
        let Some(task) = found else { return Ok(false) };
        self.take_out(task);
        self.insert(machine, cx, task, QueueId::Local(cpu.0), 0)?;
        Ok(true)
    }

    /// Does what `dispatch` decided (`flush_dispatch_buf`).
    pub fn flush(&mut self, machine: &mut Machine, cx: &mut Context, cpu: CpuId) -> Answer {
        let decided = std::mem::take(&mut self.cpus[cpu.index()].decided);
        self.cpus[cpu.index()].brought += decided.len() as u32;
        for Decided { task, turn, queue, flags } in decided {
            let state = &self.tasks[task.index()];
            // Another decision, or its end, came before.
            if state.custody != Custody::Scheduler || state.turn != turn || state.address == 0 {
                continue;
            }
            // In the kernel `LOCAL` is of the CPU that dispatches, `GLOBAL` of the task's node.
            let of = if queue == DSQ_LOCAL { cpu.0 } else { state.cpu };
            self.put(machine, cx, task, queue, of, flags)?;
        }
        Ok(())
    }

    /// Puts a task into the queue that a program named, if it may run there.
    pub fn put(
        &mut self,
        machine: &mut Machine,
        cx: &mut Context,
        task: TaskId,
        id: u64,
        cpu: u16,
        flags: u64,
    ) -> Answer {
        let queue = match self.named(id, cpu) {
            Some(queue) => queue,
            None => {
                let name = self.name(task);
                self.error(if id & DSQ_LOCAL_ON != 0 && id & DSQ_BUILTIN != 0 {
                    format!("invalid CPU {} in SCX_DSQ_LOCAL_ON for {name}", id as u32)
                } else {
                    format!("non-existent DSQ {id:#x} for {name}")
                });
                return Ok(());
            }
        };
        if let QueueId::Local(on) = queue
            && on != self.tasks[task.index()].cpu
            && !cx.allowed(task, CpuId(on))
        {
            let name = self.name(task);
            self.error(format!("SCX_DSQ_LOCAL[_ON] target CPU {on} not allowed for {name}"));
            return Ok(());
        }
        self.insert(machine, cx, task, queue, flags)
    }

    /// Shows programs which CPUs idle, if they look.
    pub fn show_idle(&self, machine: &mut Machine) -> Answer {
        if !self.shows_idle {
            return Ok(());
        }
        let masks = self.idle.masks().map(Mask::to_bytes);
        self.idle_masks
            .iter()
            .zip(masks)
            .try_for_each(|(&address, bytes)| machine.write(Address(address), &bytes))
    }

    /// The CPUs on which a task may run.
    pub fn allowed(&self, machine: &Machine, task: TaskId) -> Answer<Mask> {
        self.mask(machine, self.tasks[task.index()].mask)
    }

    /// The set of CPUs at `address`.
    pub fn mask(&self, machine: &Machine, address: u64) -> Answer<Mask> {
        let cpus = self.cpus.len() as u16;
        let bytes = machine.bytes(Address(address), usize::from(cpus).div_ceil(64) * 8)?;
        Ok(Mask::of_bytes(cpus, bytes))
    }
}
