//! From recorded calls to operations on shared objects.
//!
//! Pipes, sockets of which both ends are seen, event counters, locks, timers, and the ends of tasks
//! are understood. What a call on another object waits for and whom it wakes stays as recorded.

mod data;
mod files;
mod futexes;
mod sets;
mod sockets;
mod timerfds;

use crate::system_calls::{self, Name};
use ::recording::{Class, What, lock, member, wait};
use schedsim::trace::Returned;
use schedsim::workload::{Barrier, Device, Eventfd, Group, Late, Mutex, Operation, Shared, Timer};
use schedsim::{Nanos, TaskId, Time};
use sets::Sets;
use std::collections::{BTreeMap, HashMap};

/// A script can name this many objects of a kind.
const MOST_OBJECTS: usize = 1 << 24;

/// `EINTR`, and what the kernel has in its place for calls that it may begin again: `ERESTARTSYS`,
/// `ERESTARTNOINTR`, `ERESTARTNOHAND`, `ERESTART_RESTARTBLOCK`.
const INTERRUPTED: [i64; 5] = [-4, -512, -513, -514, -516];

/// The objects and calls of a recording.
pub(super) struct Calls {
    numbers: &'static [(u16, Name)],
    objects: HashMap<u64, Object>,
    /// Internet sockets by their own port and the other one.
    ports: HashMap<(u16, u16), u64>,
    /// By port: the connections that wait there to be accepted.
    listeners: HashMap<sockets::Listener, u32>,
    /// By thread id: what was recorded since its last call ended, and its absolute timer.
    tasks: HashMap<u32, Task>,
    sets: Sets,
    /// The futexes that may be barriers, by object.
    words: HashMap<u64, futexes::Word>,
    /// The devices behind files, by their number; 0 is unknown.
    storage: BTreeMap<u64, u32>,
    /// Whether its tasks wait for signals as recorded, whatever they find.
    pub is_simulated: bool,
    pub shared: Shared,
}

struct Object {
    class: Class,
    inode: u64,
    peer: u64,
    /// The own port of an internet socket and the other one.
    ports: (u16, u16),
    /// Its place in the list of its kind, once it has one.
    place: Option<Place>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Pipe(u32),
    /// An end of a pair of sockets.
    End(u32),
    Eventfd(u32),
    Mutex(u32),
    Condition(u32),
    Barrier(u32),
    Device(u32),
    /// A timer that expires again and again.
    Timer {
        timer: u32,
        period: Nanos,
    },
}

#[derive(Default)]
struct Task {
    /// The time until which the call sleeps, and its interval.
    timer: Option<(u64, u64)>,
    /// What it polls.
    polled: Vec<sets::Wanted>,
    /// What the call changes in a set.
    changed: Option<sets::Member>,
    /// The second address of a futex operation.
    second: Option<u64>,
    /// The socket that it accepts.
    accepted: Option<u64>,
    /// The address at which a socket was connected.
    connected: Option<u64>,
    /// The tasks that it waits for.
    awaited: Option<(u32, u32)>,
    /// The last futex call: its object, and when it began.
    futex: Option<(u64, u64)>,
    periodic: Option<Periodic>,
}

/// The absolute sleeps of a task.
#[derive(Clone, Copy)]
struct Periodic {
    timer: u32,
    expiry: u64,
    entered: u64,
    /// The last distance of two expiries.
    period: Option<u64>,
}

/// A call that ends.
pub(in crate::import) struct Ended {
    pub tid: u32,
    pub entered: u64,
    /// `entered`, since the recording's first event.
    pub since: Time,
    pub object: u64,
    pub result: i64,
    pub number: u16,
    pub op: u16,
}

impl Calls {
    /// Those of an architecture, and whether it is known.
    pub fn new(architecture: &str) -> (Calls, bool) {
        let numbers = system_calls::of(architecture);
        let calls = Calls {
            numbers: numbers.unwrap_or_default(),
            objects: HashMap::new(),
            ports: HashMap::new(),
            listeners: HashMap::new(),
            tasks: HashMap::new(),
            sets: Sets::default(),
            words: HashMap::new(),
            storage: BTreeMap::new(),
            is_simulated: false,
            shared: Shared::default(),
        };
        (calls, numbers.is_some())
    }

    /// The names of the objects, by number: what each is, and its inode if it has one.
    pub fn names(&self) -> BTreeMap<u32, String> {
        let name = |(id, object): (&u64, &Object)| {
            let number = u32::try_from(*id).ok()?;
            let what = match object.class {
                Class::Pipe => "pipe",
                Class::UnixSocket => "unix socket",
                Class::InternetSocket => "internet socket",
                Class::Socket => "socket",
                Class::File => "file",
                Class::Device => "device",
                Class::Eventfd => "eventfd",
                Class::Epoll => "epoll set",
                Class::Timerfd => "timerfd",
                Class::Signalfd => "signalfd",
                Class::Pidfd => "pidfd",
                Class::Anonymous => "anonymous file",
                Class::Futex => "futex",
            };
            // Anonymous files share one inode, and a futex has none.
            let has_inode =
                matches!(object.class, Class::Pipe | Class::File | Class::Device | Class::Socket);
            let which = if has_inode { object.inode } else { *id };
            Some((number, format!("{what} {which}")))
        };
        self.objects.iter().filter_map(name).collect()
    }

    /// An event that belongs to a call.
    pub fn take(&mut self, tid: u32, what: &What) {
        match *what {
            What::Object { id, class, inode, peer } => {
                self.meet(id, Object { class, inode, peer, ports: (0, 0), place: None });
            }
            What::Timer { expiry, interval, .. } => {
                self.tasks.entry(tid).or_default().timer = Some((expiry, interval));
            }
            What::Member { set, object, events, op: op @ 0..=3 } => {
                self.joins(tid, (set, object), (events, op));
            }
            What::Member { object, op: member::SECOND, .. } => {
                self.tasks.entry(tid).or_default().second = Some(object);
            }
            What::Member { object, op: member::ACCEPTED, .. } => {
                self.tasks.entry(tid).or_default().accepted = Some(object);
            }
            What::Member { object, op: member::CONNECTED, .. } => {
                self.tasks.entry(tid).or_default().connected = Some(object);
            }
            What::Member { set, object, op: member::AWAITED, .. } => {
                let pid = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
                self.tasks.entry(tid).or_default().awaited = Some((pid(set), pid(object)));
            }
            _ => {}
        }
    }

    /// What a call has done. `tasks` finds the task of a thread id.
    pub fn end(&mut self, call: &Ended, tasks: impl Fn(u32) -> Option<TaskId>) -> Returned {
        let name = self.numbers.iter().find(|(number, _)| *number == call.number);
        if let Some((_, Name::Futex)) = name
            && call.op < lock::LOCK
        {
            // What was recorded may belong to a library's call around this one.
            return self.futex(call);
        }
        let task = self.tasks.get_mut(&call.tid);
        let (timer, second, awaited, polled, changed) =
            task.map_or_else(Default::default, |task| {
                let Task { timer, second, awaited, polled, changed, .. } = task;
                let polled = std::mem::take(polled);
                (timer.take(), second.take(), awaited.take(), polled, changed.take())
            });
        let changed = match name {
            Some((_, Name::EpollCtl)) => changed,
            _ => changed.and_then(|member| self.has_been(member)),
        };
        if let Some(device) = self.storage(call.object) {
            return Returned::Stored { device };
        }
        if INTERRUPTED.contains(&call.result) {
            return Returned::Signalled;
        }
        let Some((_, name)) = name else { return Returned::Unknown };
        let over = match name {
            Name::Read | Name::Receive if self.is_signalfd(call) => Some(Returned::Signalled),
            Name::SignalWait => Some(Returned::Signalled),
            Name::Read | Name::Receive => self.is_over(call, false),
            Name::Write | Name::Send => self.is_over(call, true),
            Name::Close => self.closes(call),
            _ => None,
        };
        if let Some(over) = over {
            return over;
        }
        let operation = match name {
            Name::Yield => return Returned::Yielded,
            Name::Nanosleep => return Returned::Slept,
            Name::ClockNanosleep if call.op != 1 => return Returned::Slept,
            Name::ClockNanosleep => timer.and_then(|(expiry, _)| self.sleep_until(call, expiry)),
            Name::Read | Name::Receive => self.takes(call),
            Name::Write | Name::Send if call.result == sets::FULL => self.wants_room(call),
            Name::Write | Name::Send => self.puts(call),
            Name::ReadAt => timer.and_then(|(_, service)| self.request(call, Nanos(service))),
            Name::Futex => {
                self.is_around(call);
                match call.op {
                    lock::WAIT | lock::SIGNAL | lock::BROADCAST if !self.is_simulated => {
                        return self.monitor(call, second).unwrap_or(Returned::Unknown);
                    }
                    lock::LOCK if !self.is_simulated => {
                        let site = call.result.cast_unsigned();
                        let locked = |mutex| Returned::Locked { mutex, site };
                        return self.mutex(call.object).map_or(Returned::Unknown, locked);
                    }
                    _ => self.lock(call, second),
                }
            }
            Name::FileSystem => {
                let device = self.only_storage();
                return device.map_or(Returned::Unknown, |device| Returned::Stored { device });
            }
            Name::Poll | Name::Ppoll | Name::Select | Name::EpollWait if call.result == 0 => {
                return Returned::Slept;
            }
            Name::Poll | Name::Ppoll | Name::Select => self.polls(call, polled),
            Name::EpollWait => self.waits(call),
            Name::Accept => {
                let address = self.address_of(call.tid);
                self.accepts(call, address)
            }
            Name::Connect => {
                let address = self.address_of(call.tid);
                self.connects(call, address)
            }
            Name::EpollCtl => changed.and_then(|member| self.changes(call, member)),
            Name::Close | Name::SignalWait => None,
            Name::TimerfdSettime => {
                self.arms(call, timer);
                None
            }
            Name::Wait4 => {
                let ended = u32::try_from(call.result).ok().filter(|pid| *pid > 0);
                let any = ended.filter(|_| call.op == wait::ANY).and_then(&tasks);
                if let Some(task) = any {
                    return Returned::Reaped(task);
                }
                ended.and_then(|pid| self.join((pid, pid), tasks))
            }
            Name::Waitid => awaited.and_then(|range| self.join(range, tasks)),
        };
        operation.map_or(Returned::Unknown, Returned::Did)
    }

    /// The address at which the call of a task has connected a Unix socket.
    fn address_of(&mut self, tid: u32) -> Option<u64> {
        self.tasks.get_mut(&tid)?.connected.take()
    }

    /// Whether it has read a signal.
    fn is_signalfd(&self, call: &Ended) -> bool {
        let object = self.objects.get(&call.object);
        call.result > 0 && object.is_some_and(|object| object.class == Class::Signalfd)
    }

    /// A request to a simulated device.
    fn request(&mut self, call: &Ended, service: Nanos) -> Option<Operation> {
        let place = self.place(call.object, Class::Device, |object, shared| {
            let channels = u16::try_from(object.peer).ok().filter(|channels| *channels > 0)?;
            let name = format!("device {}", object.inode);
            add(&mut shared.devices, Device { name, channels, interrupts: None }).map(Place::Device)
        })?;
        let Place::Device(device) = place else { return None };
        Some(Operation::Io { device, service })
    }

    fn lock(&mut self, call: &Ended, second: Option<u64>) -> Option<Operation> {
        let of = call.object;
        let condition = |_: &Object, shared: &mut Shared| {
            let name = format!("condition {of}");
            add(&mut shared.conditions, name).map(Place::Condition)
        };
        Some(match call.op {
            lock::LOCK => Operation::Lock(self.mutex(of)?),
            lock::UNLOCK => Operation::Unlock(self.mutex(of)?),
            lock::TAKE | lock::POST => {
                let eventfd = self.semaphore(of, |object| ("semaphore", object.peer))?;
                if call.op == lock::TAKE {
                    Operation::Take(eventfd)
                } else {
                    Operation::Post { eventfd, count: 1 }
                }
            }
            lock::ARRIVE => {
                let place = self.place(of, Class::Futex, |object, shared| {
                    let tasks = u32::try_from(object.peer).ok()?;
                    let name = format!("barrier {of}");
                    add(&mut shared.barriers, Barrier { name, tasks }).map(Place::Barrier)
                })?;
                let Place::Barrier(barrier) = place else { return None };
                Operation::Arrive(barrier)
            }
            op => {
                let Place::Condition(condition) = self.place(of, Class::Futex, condition)? else {
                    return None;
                };
                match op {
                    lock::WAIT => Operation::Await { condition, mutex: self.mutex(second?)? },
                    lock::SIGNAL => Operation::Signal(condition),
                    lock::BROADCAST => Operation::Broadcast(condition),
                    _ => return None,
                }
            }
        })
    }

    /// A wait for a signal or a signal, of a real program.
    fn monitor(&mut self, call: &Ended, mutex: Option<u64>) -> Option<Returned> {
        let condition = self.semaphore(call.object, |_| ("condition", 0));
        Some(match call.op {
            lock::WAIT => {
                let condition = if call.result == 0 { Some(condition?) } else { None };
                Returned::Waited { mutex: self.mutex(mutex?)?, condition }
            }
            op => Returned::Signals { condition: condition?, all: op == lock::BROADCAST },
        })
    }

    /// The semaphore of an object, with what it is and its count.
    fn semaphore(&mut self, of: u64, new: impl Fn(&Object) -> (&str, u64)) -> Option<u32> {
        let place = self.place(of, Class::Futex, |object, shared| {
            let (name, count) = new(object);
            let new = Eventfd::semaphore(format!("{name} {of}"), count);
            add(&mut shared.eventfds, new).map(Place::Eventfd)
        })?;
        if let Place::Eventfd(semaphore) = place { Some(semaphore) } else { None }
    }

    fn mutex(&mut self, object: u64) -> Option<u32> {
        // A futex has no inode: its number tells it from others.
        let name = format!("mutex {object}");
        let place = self.place(object, Class::Futex, |object, shared| {
            let (handoff, inherit) = (object.peer & 1 != 0, object.peer & 2 != 0);
            add(&mut shared.mutexes, Mutex { name, handoff, inherit, spin: None }).map(Place::Mutex)
        })?;
        if let Place::Mutex(mutex) = place { Some(mutex) } else { None }
    }

    /// A sleep until a time: the next expiry of a timer of this task. If the last one was over
    /// before the task waited for it, the next one is a period after that, or after then.
    fn sleep_until(&mut self, call: &Ended, expiry: u64) -> Option<Operation> {
        let Ended { entered, since, .. } = *call;
        let task = self.tasks.entry(call.tid).or_default();
        let Some(known) = task.periodic else {
            let expiry_since = Time(expiry.saturating_sub(entered.saturating_sub(since.0)));
            let origin = since.min(expiry_since);
            let new = Timer { origin: Some(origin), late: Late::CatchUp };
            let timer = add(&mut self.shared.timers, new)?;
            task.periodic = Some(Periodic { timer, expiry, entered, period: None });
            return Some(Operation::Timer { timer, period: expiry_since.since(origin) });
        };
        let (was_late, timer) = (known.expiry <= known.entered, known.timer);
        let after = |time: u64| expiry.saturating_sub(time);
        let (after_expiry, after_call) = (after(known.expiry), after(known.entered));
        let is_period = |distance| match known.period {
            Some(period) => distance == period,
            None => distance % 1_000 == 0, // people give round periods
        };
        let restarts = was_late && is_period(after_call) && !is_period(after_expiry);
        if was_late && let Some(timer) = self.shared.timers.get_mut(timer as usize) {
            timer.late = if restarts { Late::Restart } else { Late::CatchUp };
        }
        let period = if restarts { after_call } else { after_expiry };
        task.periodic = Some(Periodic { timer, expiry, entered, period: Some(period) });
        Some(Operation::Timer { timer, period: Nanos(period) })
    }

    /// Waits until the tasks of a range of thread ids have ended, as far as they were seen.
    fn join(
        &mut self,
        (first, last): (u32, u32),
        tasks: impl Fn(u32) -> Option<TaskId>,
    ) -> Option<Operation> {
        const MOST: u32 = 1 << 20;
        let range = first..=last.min(first.saturating_add(MOST));
        let (mut least, mut most, mut count) = (u32::MAX, 0, 0_u32);
        for task in range.filter_map(tasks) {
            least = least.min(task.0);
            most = most.max(task.0);
            count = count.saturating_add(1);
        }
        if count == 0 || most.checked_sub(least)? != count.checked_sub(1)? {
            return None;
        }
        let group = Group { name: String::new(), first: TaskId(least), count, daemon: false };
        add(&mut self.shared.groups, group).map(Operation::Join)
    }

    fn place(
        &mut self,
        object: u64,
        class: Class,
        new: impl FnOnce(&Object, &mut Shared) -> Option<Place>,
    ) -> Option<Place> {
        let object = self.objects.get_mut(&object).filter(|object| object.class == class)?;
        if object.place.is_none() {
            object.place = new(object, &mut self.shared);
        }
        object.place
    }
}

fn add<T>(list: &mut Vec<T>, new: T) -> Option<u32> {
    let place = u32::try_from(list.len()).ok().filter(|_| list.len() < MOST_OBJECTS)?;
    list.push(new);
    Some(place)
}
