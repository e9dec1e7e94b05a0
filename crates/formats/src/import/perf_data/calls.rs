//! The system calls of a recording of perf with `raw_syscalls`, and what they are about.
//!
//! perf records numbers, arguments and results, and nothing of the kernel's objects. So descriptors
//! are followed from the calls that make, duplicate and close them, for the command that perf
//! started and all that it starts. The two descriptors of a pair are in the memory of the task;
//! they are the lowest free ones, if the command began with three. Unknown stay what was open
//! before, the other ends of sockets, and entries of `poll`. So do what is in memory, and how long
//! a sleep was to be.

use super::descriptors::{CLOSES, Kind, Table, kind};
use crate::import::record::{NamedTask, Record, Sched};
use crate::import::recorder::Recorder;
use crate::import::recording::{Causes, Ended};
use ::recording::{Class, What, member, socket, wait};
use schedsim::CpuId;
use schedsim::trace::WakeContext;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The name of the process that perf starts, until it executes the command.
const COMMAND: &[u8] = b"perf-exec";

/// `EPOLLIN`: for what a member of a set is watched is in memory.
const IN: u32 = 1;
/// Of an operation of `futex`.
const FUTEX_PRIVATE: u64 = 0x80;
/// `fcntl`: duplicates, sets the flag that closes at `exec`, changes the size of a pipe.
const DUPLICATE: u64 = 0;
const DUPLICATE_CLOSING: u64 = 1030;
const SET_FLAG: u64 = 2;
const SET_PIPE_SIZE: u64 = 1031;
/// The most that `epoll_wait` can be said to return.
const MOST_EVENTS: u64 = 0x3ff;

/// The calls of the command.
pub(super) struct Calls {
    architecture: String,
    causes: Causes,
    /// Processes that perf has forked.
    forked: HashSet<u32>,
    /// The command's tasks by thread id.
    tasks: HashMap<u32, Task>,
    /// The objects of futexes by process, 0 if processes share it, and address.
    futexes: HashMap<(u32, u64), u64>,
    objects: u64,
    has_command: bool,
    seen: u64,
    used: u64,
    unknown: u64,
}

struct Task {
    tgid: Option<u32>,
    descriptors: Rc<RefCell<Table>>,
    /// The parent's process and descriptors: a thread has the same.
    parent: Option<(u32, Rc<RefCell<Table>>)>,
    call: Option<Call>,
}

/// A call that a task is in.
struct Call {
    number: u16,
    kind: Kind,
    entered: u64,
    arguments: [u64; 6],
    object: u64,
    op: u16,
}

/// Where a sample is from.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub time: u64,
    pub cpu: CpuId,
    pub tgid: u32,
    pub tid: u32,
}

impl Calls {
    pub fn new(architecture: &str, recorder: &mut Recorder<'_>) -> Calls {
        Calls {
            architecture: architecture.to_string(),
            causes: Causes::new(architecture, recorder),
            forked: HashSet::new(),
            tasks: HashMap::new(),
            futexes: HashMap::new(),
            objects: 0,
            has_command: false,
            seen: 0,
            used: 0,
            unknown: 0,
        }
    }

    /// A scheduling event comes. The call in which it happens goes before it.
    pub fn before(&mut self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
        let named = |task: &NamedTask<'_>| (task.comm == COMMAND).then_some(task.pid);
        let (within, one, other) = match &record.what {
            Sched::Switch { prev, next, .. } => (Some(prev.pid), named(prev), named(next)),
            Sched::Waking { task, .. } => {
                let waker = record.current.filter(|_| record.context == WakeContext::Task);
                (waker.map(|current| current.pid), named(task), None)
            }
            Sched::Wakeup { task, .. } | Sched::WakeupNew { task, .. } => (None, named(task), None),
            _ => (None, None, None),
        };
        self.forked.extend(one.into_iter().chain(other));
        if let Some(tid) = within
            && let Some(call) = self.tasks.get(&tid).and_then(|task| task.call.as_ref())
        {
            self.causes.within(recorder, (record.time, record.cpu), tid, call.object);
        }
    }

    /// A scheduling event was passed on: tasks come, go, and become other programs.
    pub fn after(&mut self, what: &Sched<'_>) {
        match *what {
            Sched::Fork { parent, child, .. } => {
                let Some(of) = self.tasks.get(&parent) else { return };
                let descriptors = Rc::new(RefCell::new(of.descriptors.borrow().clone()));
                let parent = of.tgid.map(|tgid| (tgid, Rc::clone(&of.descriptors)));
                self.tasks.insert(child, Task { tgid: None, descriptors, parent, call: None });
            }
            Sched::Exec { pid, old_pid } => {
                if self.forked.remove(&pid) {
                    self.has_command = true;
                    let descriptors = Rc::new(RefCell::new(Table::of_a_command()));
                    let task = Task { tgid: Some(pid), descriptors, parent: None, call: None };
                    self.tasks.insert(pid, task);
                } else if let Some(mut task) = self.tasks.remove(&old_pid) {
                    let own = task.descriptors.borrow().after_exec();
                    task.descriptors = Rc::new(RefCell::new(own));
                    (task.tgid, task.parent, task.call) = (Some(pid), None, None);
                    self.tasks.insert(pid, task);
                }
            }
            Sched::Exit { task } => _ = self.tasks.remove(&task.pid),
            _ => {}
        }
    }

    /// A call begins.
    pub fn begins(
        &mut self,
        at: At,
        number: u64,
        arguments: [u64; 6],
        recorder: &mut Recorder<'_>,
    ) {
        self.seen = self.seen.saturating_add(1);
        let Some(task) = self.tasks.get_mut(&at.tid) else { return };
        task.call = None;
        task.settle(at.tgid);
        let number = u16::try_from(number).ok();
        let Some((number, kind)) = number.zip(number.and_then(|of| kind(&self.architecture, of)))
        else {
            return;
        };
        let table = Rc::clone(&task.descriptors);
        let mut call = Call { number, kind, entered: at.time, arguments, object: 0, op: 0 };
        let [first, second, third, _, fifth, _] = arguments;
        match kind {
            Kind::About
            | Kind::Close
            | Kind::Accept { .. }
            | Kind::Duplicate
            | Kind::DuplicateTo { .. }
            | Kind::Control => call.object = self.about(&table, first),
            Kind::EpollWait => {
                call.object = self.about(&table, first);
                call.op = u16::try_from(third.min(MOST_EVENTS)).unwrap_or_default();
            }
            Kind::EpollControl => {
                call.object = self.about(&table, first);
                let object = self.about(&table, third);
                let op = u8::try_from(second).unwrap_or(u8::MAX);
                let what = What::Member { set: call.object, object, events: IN, op };
                self.causes.take(recorder, at.tid, &what);
                call.op = u16::from(op);
            }
            Kind::Futex => {
                let operation = second & 0x7f;
                let process = if second & FUTEX_PRIVATE > 0 { at.tgid } else { 0 };
                call.op = u16::try_from(operation).unwrap_or_default();
                call.object = self.futex(process, first, (at.tid, &mut *recorder));
                // FUTEX_REQUEUE, CMP_REQUEUE, WAKE_OP and the two with priority inheritance.
                if matches!(operation, 3 | 4 | 5 | 11 | 12) {
                    let object = self.futex(process, fifth, (at.tid, &mut *recorder));
                    let set = call.object;
                    let what = What::Member { set, object, events: 0, op: member::SECOND };
                    self.causes.take(recorder, at.tid, &what);
                }
            }
            // For any child: −1, of 32 bits.
            Kind::Wait => call.op = if first & 0xffff_ffff == 0xffff_ffff { wait::ANY } else { 0 },
            Kind::CloseRange
            | Kind::Open { .. }
            | Kind::Socket
            | Kind::SocketPair
            | Kind::Pipe { .. }
            | Kind::Plain => {}
        }
        if let Some(task) = self.tasks.get_mut(&at.tid) {
            task.call = Some(call);
        }
    }

    /// A call ends.
    pub fn ends(&mut self, at: At, number: u64, result: i64, recorder: &mut Recorder<'_>) {
        let Some(task) = self.tasks.get_mut(&at.tid) else { return };
        let call = task.call.take().filter(|call| u64::from(call.number) == number);
        let Some(mut call) = call else { return };
        self.used = self.used.saturating_add(1);
        let table = Rc::clone(&task.descriptors);
        let mut changed = table.borrow_mut();
        let new = u32::try_from(result).ok();
        let [first, second, third, fourth, ..] = call.arguments;
        match call.kind {
            Kind::Open { class, flags } => {
                if let Some(fd) = new {
                    let flags = flags.and_then(|at| call.arguments.get(usize::from(at)).copied());
                    let flags = flags.unwrap_or_default();
                    let peer = counter(class, first, flags);
                    call.object = self.object(class, peer, (at.tid, recorder));
                    changed.open(fd, call.object, flags & CLOSES > 0);
                }
            }
            Kind::Socket => {
                if let Some(fd) = new {
                    call.object = self.object(Class::Socket, 0, (at.tid, recorder));
                    changed.open(fd, call.object, second & CLOSES > 0);
                }
            }
            Kind::Accept { flags } => {
                if let Some(fd) = new {
                    let object = self.object(Class::Socket, 0, (at.tid, &mut *recorder));
                    let closes = flags && fourth & CLOSES > 0;
                    changed.open(fd, object, closes);
                }
            }
            Kind::Pipe { flags } if result == 0 => {
                call.object = self.object(Class::Pipe, 0, (at.tid, recorder));
                let closes = flags && second & CLOSES > 0;
                changed.open_lowest(call.object, closes);
                changed.open_lowest(call.object, closes);
            }
            Kind::SocketPair if result == 0 => {
                // The lower bits of the type; its flags are above.
                let kind = (second & 0xf) << socket::TYPE.trailing_zeros();
                let closes = second & CLOSES > 0;
                let other = self.objects.saturating_add(2);
                call.object = self.object(Class::UnixSocket, other | kind, (at.tid, recorder));
                let peer = call.object | kind;
                let other = self.object(Class::UnixSocket, peer, (at.tid, recorder));
                changed.open_lowest(call.object, closes);
                changed.open_lowest(other, closes);
            }
            Kind::Duplicate => {
                if let Some(fd) = new {
                    changed.open(fd, call.object, false);
                }
            }
            Kind::DuplicateTo { flags } => {
                if let Some(fd) = new.filter(|fd| u64::from(*fd) != first) {
                    let closes = flags && third & CLOSES > 0;
                    changed.replace(fd, call.object, closes);
                }
            }
            Kind::Control => match (second, new) {
                (DUPLICATE, Some(fd)) => changed.open_above(third, fd, call.object, false),
                (DUPLICATE_CLOSING, Some(fd)) => {
                    changed.open_above(third, fd, call.object, true);
                }
                (SET_FLAG, Some(_)) => changed.set_closes(first, third & 1 > 0),
                (SET_PIPE_SIZE, Some(size)) if call.object > 0 => {
                    let (id, class, peer) = (call.object, Class::Pipe, u64::from(size));
                    let what = What::Object { id, class, inode: id, peer };
                    self.causes.take(recorder, at.tid, &what);
                }
                _ => {}
            },
            // The kernel frees the number even if it reports an error.
            Kind::Close => changed.close(first, first),
            Kind::CloseRange if result == 0 => {
                const ONLY_MARKS: u64 = 4;
                if third & ONLY_MARKS == 0 {
                    changed.close(first, second);
                } else {
                    changed.close_later(first, second);
                }
            }
            _ => {}
        }
        drop(changed);
        let Call { number, entered, object, op, .. } = call;
        let since = schedsim::Time::ZERO;
        let ended = Ended { tid: at.tid, entered, since, object, result, number, op };
        self.causes.end(recorder, (at.time, at.cpu), ended);
    }

    /// Nothing follows.
    pub fn finish(self, recorder: &mut Recorder<'_>) {
        let Calls { causes, has_command, seen, used, unknown, tasks, .. } = self;
        if !has_command {
            if seen > 0 {
                recorder.report.warnings.push(format!(
                    "{seen} system calls are not used: the file does not show which command perf \
                     started; record with: perf record -a … -- COMMAND"
                ));
            }
            return causes.finish(recorder);
        }
        drop(tasks);
        recorder.report.measured.push(format!(
            "{used} calls of the command by perf: descriptors are followed from the calls that \
             make, duplicate and close them; other ends of sockets, entries of polls, times of \
             sleeps and what recording took are unknown"
        ));
        if unknown > 0 {
            recorder.report.warnings.push(format!(
                "{unknown} calls are about descriptors that were open before, or came without a \
                 call that shows it; nothing is known of what these are"
            ));
        }
        causes.finish(recorder);
    }

    /// The object of a descriptor; 0 if it is not known.
    fn about(&mut self, table: &RefCell<Table>, fd: u64) -> u64 {
        let object = table.borrow().object(fd);
        // −1 and its kin are no descriptors.
        if object == 0 && fd < 1 << 31 {
            self.unknown = self.unknown.saturating_add(1);
        }
        object
    }

    fn futex(&mut self, process: u32, address: u64, to: (u32, &mut Recorder<'_>)) -> u64 {
        if let Some(known) = self.futexes.get(&(process, address)) {
            return *known;
        }
        let object = self.object(Class::Futex, 0, to);
        self.futexes.insert((process, address), object);
        object
    }

    /// A new object, which is announced.
    fn object(&mut self, class: Class, peer: u64, (tid, to): (u32, &mut Recorder<'_>)) -> u64 {
        self.objects = self.objects.saturating_add(1);
        let id = self.objects;
        self.causes.take(to, tid, &What::Object { id, class, inode: id, peer });
        id
    }
}

impl Task {
    /// Its process shows: a thread shares the descriptors of its parent.
    fn settle(&mut self, tgid: u32) {
        if self.tgid.is_none()
            && let Some((_, descriptors)) = self.parent.take().filter(|(of, _)| *of == tgid)
        {
            self.descriptors = descriptors;
        }
        self.tgid = Some(tgid);
    }
}

/// What is known of a new event counter: whether it is a semaphore (a flag), and twice its count.
fn counter(class: Class, count: u64, flags: u64) -> u64 {
    const SEMAPHORE: u64 = 1;
    if class == Class::Eventfd { (count & 0xffff_ffff) << 1 | flags & SEMAPHORE } else { 0 }
}
