//! The pending ftrace events of one CPU: `FtraceEventBundle`.

use super::wire::Message;
use crate::export::Names;
use crate::export::names::Name;
use crate::import::INFERRED;
use schedsim::trace::{Event, EventKind, PrevState, WakeContext};
use schedsim::{CpuId, TaskId, Time};

/// The number of events in a full bundle.
const FULL: usize = 4096;

/// Where an event stands in a bundle. Readers sort by time, and events of one time in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    /// In the columns of switches.
    Switch,
    /// In the columns of wakings.
    Waking,
    /// A message of its own.
    Plain,
}

/// Events of one CPU. Compact events are stored by column, as in the format.
pub struct Bundle {
    cpu: CpuId,
    events: usize,
    running: TaskId,
    /// The time and form of the last event.
    last: Option<(Time, Form)>,
    switches: Switches,
    wakings: Wakings,
    plain: Message,
    comms: Comms,
}

#[derive(Default)]
struct Switches {
    time: Message,
    prev_state: Message,
    next_pid: Message,
    next_prio: Message,
    next_comm: Message,
    latest: u64,
}

#[derive(Default)]
struct Wakings {
    time: Message,
    pid: Message,
    target: Message,
    prio: Message,
    comm: Message,
    flags: Message,
    /// Whether one says whether a task or an interrupt caused it.
    has_contexts: bool,
    latest: u64,
}

impl Bundle {
    /// An empty bundle.
    pub fn new(cpu: CpuId) -> Bundle {
        Bundle {
            cpu,
            events: 0,
            running: TaskId::NONE,
            last: None,
            switches: Switches::default(),
            wakings: Wakings::default(),
            plain: Message::default(),
            comms: Comms::default(),
        }
    }

    /// The running task after the last switch.
    pub fn running(&self) -> TaskId {
        self.running
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Whether the bundle is full.
    pub fn is_full(&self) -> bool {
        self.events >= FULL
    }

    /// The time of the last event that is not written yet.
    pub fn latest(&self) -> Option<Time> {
        self.last.map(|(time, _)| time)
    }

    /// Whether an event keeps its place behind those that are not written yet. Readers would put it
    /// before an event of the same time in a form that comes later. And a column of contexts is for
    /// all wakings of a bundle or for none.
    pub fn has_place(&self, time: Time, form: Form, context: WakeContext) -> bool {
        let in_order = self.last.is_none_or(|last| last <= (time, form));
        let is_column = self.wakings.time.len() == 0
            || self.wakings.has_contexts == (context != WakeContext::Unknown);
        in_order && (form != Form::Waking || is_column)
    }

    /// Appends a switch that names both tasks: `next` runs now, and `running` did not before.
    pub fn full_switch(&mut self, time: Time, prev: (&Name, PrevState), next: TaskId, name: &Name) {
        self.full(time, prev, next, name, 0);
    }

    /// Appends a switch that was not recorded: `next` runs since `time`.
    pub fn inferred_switch(&mut self, time: Time, prev: &Name, next: TaskId, name: &Name) {
        self.full(time, (prev, PrevState::Runnable), next, name, INFERRED);
    }

    fn full(
        &mut self,
        time: Time,
        prev: (&Name, PrevState),
        next: TaskId,
        name: &Name,
        flags: u64,
    ) {
        self.running = next;
        self.events += 1;
        self.last = self.last.max(Some((time, Form::Plain)));
        self.plain.nested(2, |message| {
            message.number(1, time.0);
            message.nested(4, |fields| {
                let (prev, state) = prev;
                fields.text(1, &prev.comm);
                fields.number(2, u64::from(prev.tid));
                fields.number(3, u64::from(prev.prio));
                fields.number(4, kernel_state(state));
                fields.text(5, &name.comm);
                fields.number(6, u64::from(name.tid));
                fields.number(7, u64::from(name.prio));
            });
            if flags != 0 {
                message.number(5, flags);
            }
        });
    }

    /// Appends a switch to `next`.
    #[inline]
    pub fn switch(&mut self, time: Time, next: TaskId, name: &Name, prev_state: PrevState) {
        self.running = next;
        self.events += 1;
        self.last = Some((time, Form::Switch));
        let comm = self.comms.index(next, name);
        let switches = &mut self.switches;
        switches.time.varint(time.0 - switches.latest);
        switches.latest = time.0;
        switches.prev_state.varint(kernel_state(prev_state));
        switches.next_pid.varint(u64::from(name.tid));
        switches.next_prio.varint(u64::from(name.prio));
        switches.next_comm.varint(u64::from(comm));
    }

    /// Appends a wakeup.
    #[inline]
    pub fn waking(
        &mut self,
        time: Time,
        task: TaskId,
        name: &Name,
        target: CpuId,
        context: WakeContext,
    ) {
        self.events += 1;
        self.last = Some((time, Form::Waking));
        let comm = self.comms.index(task, name);
        let wakings = &mut self.wakings;
        wakings.time.varint(time.0 - wakings.latest);
        wakings.latest = time.0;
        wakings.pid.varint(u64::from(name.tid));
        wakings.target.varint(u64::from(target.0));
        wakings.prio.varint(u64::from(name.prio));
        wakings.comm.varint(u64::from(comm));
        wakings.flags.varint(common_flags(context));
        wakings.has_contexts |= context != WakeContext::Unknown;
    }

    /// Appends an event that has no compact form.
    pub fn plain(&mut self, event: &Event, names: &Names) {
        self.events += 1;
        self.last = Some((event.time, Form::Plain));
        self.plain.nested(2, |message| {
            message.number(1, event.time.0);
            match event.kind {
                EventKind::SchedWakeup { task, target } => {
                    message.nested(17, |fields| woken(fields, names.of(task), target))
                }
                EventKind::SchedWakeupNew { task, target } => {
                    message.nested(114, |fields| woken(fields, names.of(task), target))
                }
                EventKind::SchedProcessFork { parent, child } => {
                    let (parent, child) = (names.of(parent), names.of(child));
                    message.number(2, u64::from(parent.tid));
                    message.nested(239, |fields| {
                        fields.text(1, &parent.comm);
                        fields.number(2, u64::from(parent.tid));
                        fields.text(3, &child.comm);
                        fields.number(4, u64::from(child.tid));
                    });
                }
                EventKind::SchedProcessExec { task } => {
                    let name = names.of(task);
                    message.number(2, u64::from(name.tid));
                    message.nested(237, |fields| {
                        fields.text(1, &name.comm);
                        fields.number(2, u64::from(name.tid));
                        fields.number(3, u64::from(name.tid));
                    });
                }
                EventKind::SchedProcessExit { task } => {
                    let name = names.of(task);
                    message.number(2, u64::from(name.tid));
                    message.nested(238, |fields| {
                        fields.text(1, &name.comm);
                        fields.number(2, u64::from(name.tid));
                        fields.number(3, u64::from(name.tgid));
                        fields.number(4, u64::from(name.prio));
                    });
                }
                EventKind::SchedMigrateTask { task, from, to } => {
                    let name = names.of(task);
                    message.nested(491, |fields| {
                        fields.text(1, &name.comm);
                        fields.number(2, u64::from(name.tid));
                        fields.number(3, u64::from(name.prio));
                        fields.number(4, u64::from(from.0));
                        fields.number(5, u64::from(to.0));
                    });
                }
                EventKind::SchedSwitch { .. }
                | EventKind::SchedWaking { .. }
                | EventKind::JobRelease { .. }
                | EventKind::JobComplete { .. }
                | EventKind::Overhead { .. }
                | EventKind::SchedPiSetprio { .. }
                | EventKind::ContentionBegin { .. } => unreachable!("{event:?} has its own place"),
            }
        });
    }

    /// Writes the bundle's fields and empties it.
    pub fn drain_into(&mut self, message: &mut Message) {
        message.number(1, u64::from(self.cpu.0));
        message.nested(4, |compact| {
            let Switches { time, prev_state, next_pid, next_prio, next_comm, .. } = &self.switches;
            [(1, time), (2, prev_state), (3, next_pid), (4, next_prio)]
                .into_iter()
                .for_each(|(field, column)| compact.raw(field, column.bytes()));
            self.comms.texts.iter().for_each(|text| compact.text(5, text));
            compact.raw(6, next_comm.bytes());
            let Wakings { time, pid, target, prio, comm, flags, .. } = &self.wakings;
            let columns = [(7, time), (8, pid), (9, target), (10, prio), (11, comm)];
            let flags = self.wakings.has_contexts.then_some((12, flags));
            let columns = columns.into_iter().chain(flags);
            columns.for_each(|(field, column)| compact.raw(field, column.bytes()));
        });
        // The plain events are already encoded as fields of the bundle.
        message.append(&self.plain);
        self.plain.clear();
        let Switches { time, prev_state, next_pid, next_prio, next_comm, latest } =
            &mut self.switches;
        [time, prev_state, next_pid, next_prio, next_comm].into_iter().for_each(Message::clear);
        *latest = 0;
        let Wakings { time, pid, target, prio, comm, flags, has_contexts, latest } =
            &mut self.wakings;
        [time, pid, target, prio, comm, flags].into_iter().for_each(Message::clear);
        (*latest, *has_contexts) = (0, false);
        self.comms.clear();
        (self.events, self.last) = (0, None);
    }
}

fn woken(fields: &mut Message, name: &Name, target: CpuId) {
    fields.text(1, &name.comm);
    fields.number(2, u64::from(name.tid));
    fields.number(3, u64::from(name.prio));
    fields.number(5, u64::from(target.0));
}

/// The kernel's number for the state of a task that stopped.
fn kernel_state(state: PrevState) -> u64 {
    match state {
        PrevState::Runnable => 0,
        PrevState::Blocked => 1,
        PrevState::Dead => 0x10,
    }
}

/// The kernel's flags of an event: whether it came from an interrupt.
fn common_flags(context: WakeContext) -> u64 {
    match context {
        WakeContext::Hardirq => 0x08,
        WakeContext::Softirq => 0x10,
        WakeContext::Task | WakeContext::Unknown => 0,
    }
}

/// Names that a bundle refers to by number. A small table keeps recent names; a dropped name is
/// written again.
struct Comms {
    texts: Vec<String>,
    lately: [(TaskId, u32); 64],
}

impl Default for Comms {
    fn default() -> Self {
        Comms { texts: Vec::new(), lately: [(TaskId::NONE, u32::MAX); 64] }
    }
}

impl Comms {
    #[inline]
    fn index(&mut self, task: TaskId, name: &Name) -> u32 {
        let place = task.index() % self.lately.len();
        let (known, index) = self.lately[place];
        if known == task && index != u32::MAX { index } else { self.add(place, task, name) }
    }

    #[cold]
    fn add(&mut self, place: usize, task: TaskId, name: &Name) -> u32 {
        let index = self.texts.len() as u32;
        self.texts.push(name.comm.clone());
        self.lately[place] = (task, index);
        index
    }

    fn clear(&mut self) {
        *self = Comms::default();
    }
}
