//! A naive kernel on one CPU, first in first out, to hold the engine's objects against.
//!
//! Each task is a thread of this process, and one of them runs at a time. So a call that blocks in
//! the middle can be written as the kernel's source has it, where the engine has to remember how far
//! the call was.

use schedsim::workload::Trigger;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};

/// A task came to run, or was woken, at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    Runs(u64, usize),
    Wakes(u64, usize),
}

/// The run is over: nothing is left to happen.
pub struct Over;

/// Who waits for an object, first who is woken first.
#[derive(Default, Debug)]
pub struct WaitQueue(VecDeque<usize>);

/// A pipe: pages, each with the offset and the number of its unread bytes.
#[derive(Debug)]
pub struct Pipe {
    slots: usize,
    pages: VecDeque<(u64, u64)>,
    readers: WaitQueue,
    writers: WaitQueue,
    /// Items of sets, as of [`ITEM`], beside the readers; the first is called first.
    polled: Vec<usize>,
    /// Those beside the writers.
    rooms: Vec<usize>,
}

impl Pipe {
    pub fn new(slots: usize) -> Pipe {
        Pipe {
            slots,
            pages: VecDeque::new(),
            readers: WaitQueue::default(),
            writers: WaitQueue::default(),
            polled: Vec::new(),
            rooms: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.pages.len() >= self.slots
    }
}

/// One of the two sockets of a pair.
#[derive(Debug, Default)]
pub struct Socket {
    is_datagram: bool,
    /// What can be received: unread bytes, and what the sender is charged.
    received: VecDeque<(u64, u64)>,
    /// What the kernel calls `sk_wmem_alloc`.
    charged: u64,
    /// Who waits, first in the list first; with whether it is exclusive. An exclusive task is deaf to
    /// room.
    waiters: Vec<(usize, bool)>,
}

impl Socket {
    pub fn new(is_datagram: bool) -> Socket {
        Socket { is_datagram, ..Socket::default() }
    }
}

/// The size of a block of memory for so many bytes and what stands behind them, and of its header.
fn block(bytes: u64) -> u64 {
    let bytes = bytes.div_ceil(64) * 64 + 320;
    [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144]
        .into_iter()
        .find(|&block| block >= bytes)
        .expect("a datagram is not larger")
        + 256
}

/// The event counter that is a semaphore of the C library: adding n wakes n tasks.
pub const LIBRARY: usize = 2;

/// In a wait queue the item of a set is this number and more, a hundred for each set.
const ITEM: usize = 1000;
/// That of a task that polls is its number and this; if it polls for room, twice this.
const POLLER: usize = 1_000_000;

/// An object in a set.
#[derive(Clone, Copy, Debug)]
pub enum Object {
    Pipe(usize),
    Socket(usize),
    Eventfd(usize),
    PipeRoom(usize),
    Room(usize),
}

impl Object {
    fn is_room(self) -> bool {
        matches!(self, Object::PipeRoom(_) | Object::Room(_))
    }
}

/// An item of a set: `struct epitem`.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    pub object: Object,
    pub trigger: Trigger,
    pub is_exclusive: bool,
    /// Whether it has events.
    pub is_on: bool,
}

/// A set of objects.
#[derive(Clone, Debug)]
pub struct Epoll {
    items: Vec<Item>,
    ready: VecDeque<usize>,
    waiters: VecDeque<usize>,
}

#[derive(Default)]
pub struct State {
    now: u64,
    running: Option<usize>,
    last: Option<usize>,
    ready: VecDeque<usize>,
    sleepers: BTreeSet<(u64, usize)>,
    over: bool,
    seen: Vec<Seen>,
    pipes: Vec<Pipe>,
    /// Two for each pair.
    sockets: Vec<Socket>,
    /// Of each event counter its count, and who waits.
    eventfds: Vec<(u64, VecDeque<usize>)>,
    epolls: Vec<Epoll>,
    /// The tasks that sleep in a poll.
    asleep: BTreeSet<usize>,
    /// By task and set: what its last wait returned and it is to drain.
    draining: BTreeMap<(usize, usize), Vec<usize>>,
}

impl State {
    pub fn of(pipes: Vec<Pipe>, sockets: Vec<Socket>, eventfds: usize) -> State {
        let eventfds = vec![(0, VecDeque::new()); eventfds];
        State { pipes, sockets, eventfds, ..State::default() }
    }

    /// Adds a set of objects, which are empty.
    pub fn with_epoll(mut self, items: Vec<Item>) -> State {
        let set = self.epolls.len();
        let mut ready = VecDeque::new();
        for (place, of) in items.iter().enumerate() {
            self.stand(ITEM + 100 * set + place, of.object, of.is_exclusive);
            if of.is_on && self.is_ready(of.object) {
                ready.push_back(place);
            }
        }
        self.epolls.push(Epoll { items, ready, waiters: VecDeque::new() });
        self
    }

    /// An item stands in the queue of its object.
    fn stand(&mut self, item: usize, object: Object, is_exclusive: bool) {
        match object {
            Object::Pipe(pipe) => self.pipes[pipe].polled.insert(0, item),
            Object::PipeRoom(pipe) => self.pipes[pipe].rooms.insert(0, item),
            Object::Socket(socket) | Object::Room(socket) if is_exclusive => {
                self.sockets[socket].waiters.push((item, true));
            }
            Object::Socket(socket) | Object::Room(socket) => {
                self.sockets[socket].waiters.insert(0, (item, false));
            }
            Object::Eventfd(eventfd) if is_exclusive => self.eventfds[eventfd].1.push_back(item),
            Object::Eventfd(eventfd) => self.eventfds[eventfd].1.push_front(item),
        }
    }

    fn is_ready(&self, object: Object) -> bool {
        match object {
            Object::Pipe(pipe) => !self.pipes[pipe].pages.is_empty(),
            Object::PipeRoom(pipe) => !self.pipes[pipe].is_full(),
            Object::Socket(socket) => !self.sockets[socket].received.is_empty(),
            Object::Room(socket) => 4 * (self.sockets[socket].charged + 1) <= 212_992,
            Object::Eventfd(eventfd) => self.eventfds[eventfd].0 > 0,
        }
    }

    /// `ep_poll_callback`, or that of a poll: whether an exclusive item counts as woken.
    fn call(&mut self, item: usize, is_room: bool) -> bool {
        if item >= POLLER {
            let task = item % POLLER;
            // A task that runs, or is to run, is not woken.
            if (item >= 2 * POLLER) == is_room && self.asleep.remove(&task) {
                self.wake(task);
            }
            return true;
        }
        let (set, place) = ((item - ITEM) / 100, (item - ITEM) % 100);
        let of = self.epolls[set].items[place];
        if !of.is_on || of.object.is_room() != is_room {
            return false;
        }
        if !self.epolls[set].ready.contains(&place) {
            self.epolls[set].ready.push_back(place);
        }
        let waiter = self.epolls[set].waiters.pop_front();
        waiter.into_iter().for_each(|waiter| self.wake(waiter));
        waiter.is_some() || !of.is_exclusive
    }

    /// `ep_modify`.
    fn change(&mut self, set: usize, place: usize, is_on: bool) {
        self.epolls[set].items[place].is_on = is_on;
        let object = self.epolls[set].items[place].object;
        if is_on && self.is_ready(object) && !self.epolls[set].ready.contains(&place) {
            self.epolls[set].ready.push_back(place);
            if let Some(waiter) = self.epolls[set].waiters.pop_front() {
                self.wake(waiter);
            }
        }
    }

    fn wake(&mut self, task: usize) {
        self.seen.push(Seen::Wakes(self.now, task));
        self.ready.push_back(task);
    }

    /// Wakes a writer of a pipe, after the sets that wait for room in it.
    fn wake_writer(&mut self, pipe: usize) {
        for item in self.pipes[pipe].rooms.clone() {
            self.call(item, true);
        }
        self.wake_one(|state| &mut state.pipes[pipe].writers);
    }

    /// Wakes a reader of a pipe, after the sets that it is in.
    fn wake_reader(&mut self, pipe: usize) {
        for item in self.pipes[pipe].polled.clone() {
            self.call(item, false);
        }
        self.wake_one(|state| &mut state.pipes[pipe].readers);
    }

    fn wake_one(&mut self, queue: impl Fn(&mut State) -> &mut WaitQueue) {
        if let Some(task) = queue(self).0.pop_front() {
            self.wake(task);
        }
    }

    /// Wakes who sleeps at a socket.
    fn wake_socket(&mut self, socket: usize, is_room: bool) {
        let mut at = 0;
        while at < self.sockets[socket].waiters.len() {
            let (task, is_exclusive) = self.sockets[socket].waiters[at];
            let is_woken = if task >= ITEM {
                at += 1;
                self.call(task, is_room)
            } else if is_exclusive && is_room {
                at += 1;
                false
            } else {
                self.sockets[socket].waiters.remove(at);
                self.wake(task);
                true
            };
            if is_exclusive && is_woken {
                return;
            }
        }
    }

    /// A message has been read to its end.
    fn free(&mut self, charge: u64, sender: usize) {
        let of = &mut self.sockets[sender];
        of.charged -= charge;
        if 4 * (of.charged + 2) <= 212_992 {
            self.wake_socket(sender, true);
        }
    }

    /// Lets time pass, and wakes whose sleep ends.
    fn advance(&mut self, to: u64) {
        while let Some(&(time, task)) = self.sleepers.first().filter(|(time, _)| *time <= to) {
            self.sleepers.pop_first();
            self.now = time;
            self.wake(task);
        }
        self.now = to;
    }

    /// The CPU takes the next task. One that is idle takes the first of those whose sleep ends at one
    /// time, and the others wake behind it: each wakeup is an event of its own.
    fn pick(&mut self) {
        if self.ready.is_empty() {
            self.last = None;
            match self.sleepers.pop_first() {
                Some((time, task)) => {
                    self.now = time;
                    self.wake(task);
                }
                None => self.over = true,
            }
        }
        self.running = self.ready.pop_front();
        if let Some(task) = self.running.filter(|_| self.running != self.last) {
            self.seen.push(Seen::Runs(self.now, task));
        }
        self.last = self.running;
        self.advance(self.now);
    }
}

#[derive(Default)]
pub struct Kernel {
    state: Mutex<State>,
    turn: Condvar,
}

impl Kernel {
    /// Runs `tasks`, all ready at the begin, and returns what was seen.
    pub fn run(
        state: State,
        tasks: Vec<impl FnOnce(&mut Running) -> Result<(), Over> + Send>,
    ) -> Vec<Seen> {
        let mut state = state;
        state.ready.extend(0..tasks.len());
        state.pick();
        let kernel = Kernel { state: Mutex::new(state), turn: Condvar::new() };
        std::thread::scope(|scope| {
            for (task, body) in tasks.into_iter().enumerate() {
                let kernel = &kernel;
                scope.spawn(move || {
                    let state = kernel.state.lock().unwrap();
                    let mut running = Running { kernel, task, state: Some(state) };
                    if running.wait_for_turn().and_then(|()| body(&mut running)).is_ok() {
                        running.state().pick();
                    }
                    kernel.turn.notify_all();
                });
            }
        });
        kernel.state.into_inner().unwrap().seen
    }
}

/// The task that runs.
pub struct Running<'k> {
    kernel: &'k Kernel,
    task: usize,
    state: Option<MutexGuard<'k, State>>,
}

impl Running<'_> {
    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("it runs")
    }

    fn wait_for_turn(&mut self) -> Result<(), Over> {
        let mut state = self.state.take().expect("it runs");
        while !state.over && state.running != Some(self.task) {
            state = self.kernel.turn.wait(state).unwrap();
        }
        let over = state.over;
        self.state = Some(state);
        if over { Err(Over) } else { Ok(()) }
    }

    fn schedule(&mut self) -> Result<(), Over> {
        self.state().pick();
        self.kernel.turn.notify_all();
        self.wait_for_turn()
    }

    pub fn compute(&mut self, ns: u64) {
        let to = self.state().now + ns;
        self.state().advance(to);
    }

    pub fn sleep(&mut self, ns: u64) -> Result<(), Over> {
        let task = self.task;
        let state = self.state();
        state.sleepers.insert((state.now + ns, task));
        self.schedule()
    }

    /// Waits at the end of `queue` until `holds`; a task that is woken too late waits again.
    fn wait_exclusive(
        &mut self,
        queue: impl Fn(&mut State) -> &mut WaitQueue,
        holds: impl Fn(&State) -> bool,
    ) -> Result<(), Over> {
        while !holds(self.state()) {
            let task = self.task;
            queue(self.state()).0.push_back(task);
            self.schedule()?;
        }
        Ok(())
    }

    /// `read(2)` of a pipe.
    pub fn read(&mut self, pipe: usize, bytes: u64) -> Result<u64, Over> {
        let (mut got, mut has_waited) = (0, false);
        let is_room_new = loop {
            let of = &mut self.state().pipes[pipe];
            let mut is_room_new = false;
            while got < bytes && !of.pages.is_empty() {
                let was_full = of.is_full();
                let (offset, len) = of.pages.front_mut().expect("a page");
                let part = (*len).min(bytes - got);
                (*offset, *len, got) = (*offset + part, *len - part, got + part);
                if *len == 0 {
                    is_room_new |= was_full;
                    of.pages.pop_front();
                }
            }
            if got > 0 {
                break is_room_new;
            }
            self.wait_exclusive(
                |state| &mut state.pipes[pipe].readers,
                |state| !state.pipes[pipe].pages.is_empty(),
            )?;
            has_waited = true;
        };
        let leaves_some = !self.state().pipes[pipe].pages.is_empty();
        if is_room_new {
            self.state().wake_writer(pipe);
        }
        if has_waited && leaves_some {
            self.state().wake_reader(pipe);
        }
        Ok(got)
    }

    pub fn read_all(&mut self, pipe: usize, bytes: u64) -> Result<(), Over> {
        let mut left = bytes;
        while left > 0 {
            left -= self.read(pipe, left)?;
        }
        Ok(())
    }

    /// `write(2)` to a pipe.
    pub fn write(&mut self, pipe: usize, bytes: u64) -> Result<(), Over> {
        let (mut left, mut has_waited) = (bytes, false);
        let of = &mut self.state().pipes[pipe];
        let mut was_empty = of.pages.is_empty();
        let part = bytes % 4096;
        if let Some((offset, len)) = of.pages.back_mut()
            && part > 0
            && *offset + *len + part <= 4096
        {
            *len += part;
            left -= part;
        }
        while left > 0 {
            let of = &mut self.state().pipes[pipe];
            if !of.is_full() {
                let page = left.min(4096);
                of.pages.push_back((0, page));
                left -= page;
                continue;
            }
            if was_empty {
                self.state().wake_reader(pipe);
            }
            self.wait_exclusive(
                |state| &mut state.pipes[pipe].writers,
                |state| !state.pipes[pipe].is_full(),
            )?;
            was_empty = self.state().pipes[pipe].pages.is_empty();
            has_waited = true;
        }
        let leaves_room = !self.state().pipes[pipe].is_full();
        if was_empty || !self.state().pipes[pipe].polled.is_empty() {
            self.state().wake_reader(pipe);
        }
        if has_waited && leaves_room {
            self.state().wake_writer(pipe);
        }
        Ok(())
    }

    /// `send(2)`.
    pub fn send(&mut self, socket: usize, bytes: u64) -> Result<(), Over> {
        let mut sent = 0;
        while sent < bytes {
            let is_datagram = self.state().sockets[socket].is_datagram;
            let (size, paged) = if is_datagram {
                let beyond = bytes.saturating_sub(16_384 - 320);
                (bytes, beyond.min(17 * 4096).div_ceil(4096) * 4096)
            } else {
                let size = (bytes - sent).min(212_992 / 2 - 64).min(4096 - 320 + 32_768);
                (size, size.min(size.saturating_sub(4096 - 320).div_ceil(4096) * 4096))
            };
            while self.state().sockets[socket].charged >= 212_992 {
                let task = self.task;
                self.state().sockets[socket].waiters.insert(0, (task, false));
                self.schedule()?;
            }
            let charge = block(size - paged) + paged.div_ceil(4096) * 4096;
            let state = self.state();
            state.sockets[socket].charged += charge;
            state.sockets[socket ^ 1].received.push_back((size, charge));
            state.wake_socket(socket ^ 1, false);
            sent += size;
        }
        Ok(())
    }

    /// `recv(2)` from a stream.
    pub fn receive(&mut self, socket: usize, bytes: u64) -> Result<u64, Over> {
        let mut got = 0;
        while got < bytes {
            let state = self.state();
            let Some((unread, charge)) = state.sockets[socket].received.front_mut() else {
                if got > 0 {
                    break;
                }
                let task = self.task;
                self.state().sockets[socket].waiters.insert(0, (task, false));
                self.schedule()?;
                continue;
            };
            let (part, charge) = ((*unread).min(bytes - got), *charge);
            *unread -= part;
            got += part;
            if *unread == 0 {
                state.sockets[socket].received.pop_front();
                state.free(charge, socket ^ 1);
            }
        }
        Ok(got)
    }

    pub fn receive_all(&mut self, socket: usize, bytes: u64) -> Result<(), Over> {
        let mut left = bytes;
        while left > 0 {
            left -= self.receive(socket, left)?;
        }
        Ok(())
    }

    /// `recv(2)` of a datagram.
    pub fn receive_datagram(&mut self, socket: usize) -> Result<(), Over> {
        loop {
            let state = self.state();
            if let Some((_, charge)) = state.sockets[socket].received.pop_front() {
                state.free(charge, socket ^ 1);
                return Ok(());
            }
            let task = self.task;
            self.state().sockets[socket].waiters.push((task, true));
            self.schedule()?;
        }
    }

    pub fn sleep_until(&mut self, time: u64) -> Result<(), Over> {
        let task = self.task;
        let state = self.state();
        if time <= state.now {
            return Ok(());
        }
        state.sleepers.insert((time, task));
        self.schedule()
    }

    /// `write(2)` to an event counter, which never overflows here.
    pub fn post(&mut self, eventfd: usize, count: u64) {
        self.state().eventfds[eventfd].0 += count;
        if eventfd != LIBRARY {
            return self.announce(eventfd, false);
        }
        for _ in 0..count {
            if let Some(task) = self.state().eventfds[eventfd].1.pop_front() {
                self.state().wake(task);
            }
        }
    }

    /// Wakes who waits at an event counter: all that read, and sets that hear of this, up to the
    /// first exclusive one that was woken.
    fn announce(&mut self, eventfd: usize, is_room: bool) {
        let state = self.state();
        let mut at = 0;
        while let Some(&task) = state.eventfds[eventfd].1.get(at) {
            if task < ITEM {
                state.eventfds[eventfd].1.remove(at);
                state.wake(task);
                continue;
            }
            at += 1;
            let is_exclusive = task < POLLER
                && state.epolls[(task - ITEM) / 100].items[(task - ITEM) % 100].is_exclusive;
            if state.call(task, is_room) && is_exclusive {
                break;
            }
        }
    }

    /// `read(2)` from an event counter.
    pub fn take(&mut self, eventfd: usize, is_semaphore: bool) -> Result<(), Over> {
        while self.state().eventfds[eventfd].0 == 0 {
            let task = self.task;
            self.state().eventfds[eventfd].1.push_back(task);
            self.schedule()?;
        }
        let count = &mut self.state().eventfds[eventfd].0;
        *count = if is_semaphore { *count - 1 } else { 0 };
        if eventfd == LIBRARY {
            return Ok(());
        }
        // An exclusive set that was woken for the addition hid it from those behind it.
        self.announce(eventfd, true);
        Ok(())
    }

    /// `poll(2)` of the objects of a set, for ever. The task stands in all queues while it waits.
    pub fn poll(&mut self, set: usize) -> Result<(), Over> {
        let task = self.task;
        let items = [POLLER + task, 2 * POLLER + task];
        let objects: Vec<Object> =
            self.state().epolls[set].items.iter().map(|item| item.object).collect();
        for object in &objects {
            self.state().stand(items[usize::from(object.is_room())], *object, false);
        }
        while !objects.iter().any(|object| self.state().is_ready(*object)) {
            self.state().asleep.insert(task);
            self.schedule()?;
        }
        let state = self.state();
        for pipe in &mut state.pipes {
            pipe.polled.retain(|other| !items.contains(other));
            pipe.rooms.retain(|other| !items.contains(other));
        }
        state
            .sockets
            .iter_mut()
            .for_each(|of| of.waiters.retain(|(item, _)| !items.contains(item)));
        state.eventfds.iter_mut().for_each(|of| of.1.retain(|item| !items.contains(item)));
        Ok(())
    }

    /// `epoll_ctl(2)`.
    pub fn watch(&mut self, set: usize, place: usize, is_on: bool) {
        self.state().change(set, place, is_on);
    }

    /// `epoll_wait(2)`: the places of objects that are ready.
    pub fn epoll_wait(&mut self, set: usize, most: usize) -> Result<Vec<usize>, Over> {
        let task = self.task;
        for place in self.state().draining.remove(&(task, set)).unwrap_or_default() {
            let is_on = self.state().epolls[set].items[place].is_on;
            self.state().change(set, place, is_on);
        }
        loop {
            let state = self.state();
            let listed = std::mem::take(&mut state.epolls[set].ready);
            let (mut found, mut unread, mut again) = (Vec::new(), Vec::new(), Vec::new());
            for place in listed {
                let Item { object, trigger, is_on, .. } = state.epolls[set].items[place];
                if found.len() == most {
                    unread.push(place);
                } else if is_on && state.is_ready(object) {
                    found.push(place);
                    match trigger {
                        Trigger::Level => again.push(place),
                        Trigger::Once => state.epolls[set].items[place].is_on = false,
                        Trigger::Edge => {}
                        Trigger::Drained => {
                            state.draining.entry((task, set)).or_default().push(place);
                        }
                    }
                }
            }
            state.epolls[set].ready = unread.into_iter().chain(again).collect();
            if !state.epolls[set].ready.is_empty()
                && let Some(waiter) = state.epolls[set].waiters.pop_front()
            {
                state.wake(waiter);
            }
            if !found.is_empty() {
                return Ok(found);
            }
            self.state().epolls[set].waiters.push_front(task);
            self.schedule()?;
        }
    }
}
