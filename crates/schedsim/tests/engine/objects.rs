//! The kernel's objects under random use, held against a naive kernel, wakeup by wakeup.

#[path = "objects/kernel.rs"]
mod kernel;

use super::Collect;
use kernel::{Item, Kernel, Object, Over, Pipe, Running, Seen, Socket, State};
use proptest::prelude::*;
use schedsim::engine::{self, Error, Options};
use schedsim::policy::PolicySpec;
use schedsim::trace::{EventKind, Trace};
use schedsim::workload::{
    Closed, EpollObject, EpollOptions, EpollSource, EventfdOptions, Phase, PipeOptions, ServePhase,
    SocketKind, SocketOptions, Tasks, Trigger, WatchPhase, Workload,
};
use schedsim::{Machine, Nanos, TaskId, Time};

/// The number of pipes, of which the first is a page, the second two, the third four.
const PIPES: usize = 3;

/// The number of pairs of sockets, of which the last carries datagrams.
const SOCKETS: usize = 2;

fn socket(number: usize) -> String {
    format!("s{number}")
}

fn is_datagram(number: usize) -> bool {
    number + 1 == SOCKETS
}

/// The number of event counters: the second is a semaphore, and the last one of the C library.
const EVENTFDS: usize = 3;

fn eventfd(number: usize) -> String {
    format!("e{number}")
}

fn is_semaphore(number: usize) -> bool {
    number > 0
}

/// The most that a wait for a set returns.
const MOST: usize = 2;

/// The number of sets. The first has one object of each kind and both ends of a pair of sockets, the
/// second objects that are in others, too, and the third those with room.
const SETS: usize = 3;

fn epoll(number: usize) -> String {
    format!("w{number}")
}

fn objects(number: usize) -> Vec<EpollObject> {
    match number {
        0 => vec![
            EpollObject::Pipe(pipe(2)),
            EpollObject::Socket(socket(0)),
            EpollObject::Reply(socket(0)),
            EpollObject::Eventfd(eventfd(1)),
        ],
        1 => vec![
            EpollObject::Socket(socket(1)),
            EpollObject::Pipe(pipe(2)),
            EpollObject::SendRoom(socket(0)),
            EpollObject::Eventfd(eventfd(1)),
        ],
        _ => vec![
            EpollObject::PipeRoom(pipe(2)),
            EpollObject::SendRoom(socket(0)),
            EpollObject::ReplyRoom(socket(1)),
            EpollObject::Eventfd(eventfd(1)),
            EpollObject::Socket(socket(0)),
        ],
    }
}

/// How each source of each set is watched.
type Modes = Vec<(Trigger, bool, bool)>;

fn sources(modes: &Modes, number: usize) -> Vec<EpollSource> {
    let source = |(place, object): (usize, EpollObject)| {
        let (trigger, exclusive, off) = modes[number * 5 + place];
        let is_pipe = matches!(object, EpollObject::Pipe(_) | EpollObject::PipeRoom(_));
        let is_plain = matches!(trigger, Trigger::Level | Trigger::Edge) && !off && !is_pipe;
        EpollSource { object, trigger, exclusive: exclusive && is_plain, off }
    };
    objects(number).into_iter().enumerate().map(source).collect()
}

/// What a task does with an object that has data: it may leave some, or do nothing with it.
fn handler(source: &EpollObject, bytes: u64) -> Vec<Phase> {
    let run = Phase::Run(Nanos(700));
    if bytes.is_multiple_of(7) {
        return vec![run];
    }
    let receive = |socket: &String, reply| Phase::Receive {
        socket: socket.clone(),
        bytes,
        partial: *socket == self::socket(0),
        reply,
    };
    let take = match source {
        EpollObject::Pipe(pipe) => Phase::Read { pipe: pipe.clone(), bytes, partial: true },
        EpollObject::Socket(socket) => receive(socket, false),
        EpollObject::Reply(socket) => receive(socket, true),
        EpollObject::Eventfd(eventfd) => Phase::Take { eventfd: eventfd.clone() },
        EpollObject::PipeRoom(pipe) => Phase::Write { pipe: pipe.clone(), bytes },
        EpollObject::SendRoom(socket) => {
            Phase::Send { socket: socket.clone(), bytes, reply: false }
        }
        EpollObject::ReplyRoom(socket) => {
            Phase::Send { socket: socket.clone(), bytes, reply: true }
        }
    };
    vec![run, take]
}

fn pipe(number: usize) -> String {
    format!("p{number}")
}

/// What the engine does.
fn simulated(tasks: &[Vec<Phase>], modes: &Modes) -> Vec<Seen> {
    let mut closed = Closed::default();
    for (index, phases) in tasks.iter().enumerate() {
        closed.tasks.push(Tasks::new(&format!("t{index}"), phases.clone()));
    }
    for number in 0..PIPES {
        closed.pipes.insert(pipe(number), PipeOptions { capacity: 4096 << number });
    }
    let used = serde_json::to_string(&closed.tasks).unwrap();
    closed.sockets.insert(socket(SOCKETS - 1), SocketOptions { kind: SocketKind::Datagram });
    for number in 0..EVENTFDS {
        let wakes_one = number == kernel::LIBRARY;
        let options = EventfdOptions { semaphore: is_semaphore(number), count: 0, wakes_one };
        closed.eventfds.insert(eventfd(number), options);
    }
    for number in 0..SETS {
        let options = EpollOptions { sources: sources(modes, number), events: MOST as u16 };
        closed.epolls.insert(epoll(number), options);
    }
    closed.epolls.retain(|name, _| used.contains(&format!("\"{name}\"")));
    let used = format!("{used}{}", serde_json::to_string(&closed.epolls).unwrap());
    closed.eventfds.retain(|name, _| used.contains(&format!("\"{name}\"")));
    closed.pipes.retain(|name, _| used.contains(&format!("\"{name}\"")));
    closed.sockets.retain(|name, _| used.contains(&format!("\"{name}\"")));
    let workload = Workload::of(&closed, 1).unwrap();
    let mut collect = Collect::default();
    let policy = PolicySpec::parse("central:rr?quantum=1000s").unwrap();
    let options = Options { seed: 1, until: Time::NEVER };
    let outcome = engine::simulate_named(
        &workload,
        &Machine::ideal(1),
        &policy,
        options,
        Trace::new(vec![&mut collect]),
    );
    assert!(matches!(outcome, Ok(_) | Err(Error::Stalled(_))), "{outcome:?}");
    let seen = |event: &schedsim::trace::Event| match event.kind {
        EventKind::SchedSwitch { next, .. } if next != TaskId::NONE => {
            Some(Seen::Runs(event.time.0, next.index()))
        }
        EventKind::SchedWaking { task, .. } => Some(Seen::Wakes(event.time.0, task.index())),
        _ => None,
    };
    collect.0.iter().filter_map(seen).collect()
}

/// What the naive kernel does.
fn real(tasks: &[Vec<Phase>], modes: &Modes) -> Vec<Seen> {
    let pipes = (0..PIPES).map(|number| Pipe::new(1 << number)).collect();
    let sockets =
        (0..SOCKETS).flat_map(|number| [(); 2].map(|()| Socket::new(is_datagram(number))));
    let mut state = State::of(pipes, sockets.collect(), EVENTFDS);
    // A set that no task waits for does not exist.
    let used = serde_json::to_string(&tasks).unwrap();
    let first = |number: usize| used.find(&format!("\"{}\"", epoll(number)));
    let mut order: Vec<usize> = (0..SETS).filter(|&number| first(number).is_some()).collect();
    order.sort_by_key(|&number| first(number));
    for &number in &order {
        let item = |source: EpollSource| Item {
            object: match &source.object {
                EpollObject::Pipe(name) => Object::Pipe(self::number(name)),
                EpollObject::PipeRoom(name) => Object::PipeRoom(self::number(name)),
                EpollObject::Socket(name) => Object::Socket(2 * self::number(name) + 1),
                EpollObject::Reply(name) => Object::Socket(2 * self::number(name)),
                EpollObject::SendRoom(name) => Object::Room(2 * self::number(name)),
                EpollObject::ReplyRoom(name) => Object::Room(2 * self::number(name) + 1),
                EpollObject::Eventfd(name) => Object::Eventfd(self::number(name)),
            },
            trigger: source.trigger,
            is_exclusive: source.exclusive,
            is_on: !source.off,
        };
        state = state.with_epoll(sources(modes, number).into_iter().map(item).collect());
    }
    let order = &order;
    let bodies = tasks
        .iter()
        .map(|phases| move |running: &mut Running| go(running, phases, order))
        .collect();
    Kernel::run(state, bodies)
}

fn number(name: &str) -> usize {
    name[1..].parse().unwrap()
}

fn go(running: &mut Running, phases: &[Phase], sets: &[usize]) -> Result<(), Over> {
    for phase in phases {
        match phase {
            Phase::Run(span) => running.compute(span.0),
            Phase::Sleep(span) => running.sleep(span.0)?,
            Phase::Read { pipe, bytes, partial: true } => {
                running.read(number(pipe), *bytes)?;
            }
            Phase::Read { pipe, bytes, partial: false } => {
                running.read_all(number(pipe), *bytes)?;
            }
            Phase::Write { pipe, bytes } => running.write(number(pipe), *bytes)?,
            Phase::Send { socket, bytes, reply } => {
                running.send(2 * number(socket) + usize::from(*reply), *bytes)?;
            }
            Phase::Receive { socket, bytes, partial, reply } => {
                let (pair, bytes) = (number(socket), *bytes);
                let end = 2 * pair + usize::from(!reply);
                match (is_datagram(pair), partial) {
                    (true, _) => running.receive_datagram(end)?,
                    (false, true) => {
                        running.receive(end, bytes)?;
                    }
                    (false, false) => running.receive_all(end, bytes)?,
                }
            }
            Phase::Post { eventfd, count } => running.post(number(eventfd), *count),
            Phase::Take { eventfd } => {
                running.take(number(eventfd), is_semaphore(number(eventfd)))?;
            }
            Phase::SleepUntil(after) => running.sleep_until(after.0)?,
            Phase::Serve(serve) => {
                let set = sets.iter().position(|&set| epoll(set) == serve.epoll).unwrap();
                for place in running.epoll_wait(set, MOST)? {
                    go(running, &serve.handle[place], sets)?;
                }
            }
            Phase::Watch(WatchPhase { epoll: name, source, off }) => {
                let set = sets.iter().position(|&set| epoll(set) == *name).unwrap();
                let objects = objects(sets[set]);
                let place = objects.iter().position(|object| object == source).unwrap();
                running.watch(set, place, !off);
            }
            Phase::Poll(name) => {
                let set = sets.iter().position(|&set| epoll(set) == *name).unwrap();
                running.poll(set)?;
            }
            other => panic!("{other:?}"),
        }
    }
    Ok(())
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), 1u64..200, 3000u64..5000, 1u64..200_000, Just(4096), Just(8192)]
}

fn any_phase() -> impl Strategy<Value = Phase> {
    let of = || (0..PIPES, size());
    let at = || (0..SOCKETS, size(), proptest::bool::weighted(0.3));
    prop_oneof![
        2 => (1u64..5000).prop_map(|ns| Phase::Run(Nanos(ns))),
        1 => (1u64..50_000).prop_map(|ns| Phase::Sleep(Nanos(ns))),
        3 => of().prop_map(|(number, bytes)| Phase::Write { pipe: pipe(number), bytes }),
        2 => (of(), any::<bool>()).prop_map(|((number, bytes), partial)| Phase::Read {
            pipe: pipe(number),
            bytes,
            partial
        }),
        3 => at().prop_map(|(number, bytes, reply)| Phase::Send {
            socket: socket(number),
            bytes,
            reply
        }),
        2 => (0..EVENTFDS, 1u64..4).prop_map(|(number, count)| Phase::Post {
            eventfd: eventfd(number),
            count
        }),
        4 => (0..SETS, size()).prop_map(|(number, bytes)| {
            let handle = objects(number).iter().map(|source| handler(source, bytes)).collect();
            Phase::Serve(ServePhase { epoll: epoll(number), handle })
        }),
        2 => (0..SETS).prop_map(|number| Phase::Poll(epoll(number))),
        2 => (0..SETS, 0..5usize, any::<bool>()).prop_map(|(number, place, off)| {
            let objects = objects(number);
            let source = objects[place % objects.len()].clone();
            Phase::Watch(WatchPhase { epoll: epoll(number), source, off })
        }),
        2 => (0..EVENTFDS).prop_map(|number| Phase::Take { eventfd: eventfd(number) }),
        1 => (1u64..200_000).prop_map(|ns| Phase::SleepUntil(Nanos(ns))),
        2 => (at(), any::<bool>()).prop_map(|((number, bytes, reply), partial)| Phase::Receive {
            socket: socket(number),
            bytes,
            partial: partial && !is_datagram(number),
            reply
        }),
    ]
}

/// Tasks that begin one after the other and do anything.
fn any_tasks() -> impl Strategy<Value = Vec<Vec<Phase>>> {
    let list = proptest::collection::vec(any_phase(), 1..40);
    proptest::collection::vec(list, 2..9).prop_map(|lists| {
        let begins = |phases: Vec<Phase>| [vec![Phase::Run(Nanos(1000))], phases].concat();
        lists.into_iter().map(begins).collect()
    })
}

fn any_modes() -> impl Strategy<Value = Modes> {
    let trigger = prop_oneof![
        3 => Just(Trigger::Level),
        1 => Just(Trigger::Edge),
        1 => Just(Trigger::Drained),
        1 => Just(Trigger::Once),
    ];
    let rarely = || proptest::bool::weighted(0.25);
    proptest::collection::vec((trigger, rarely(), rarely()), 5 * SETS)
}

/// Tasks change no source that is exclusive.
fn without_exclusive(mut tasks: Vec<Vec<Phase>>, modes: &Modes) -> Vec<Vec<Phase>> {
    let is_allowed = |phase: &Phase| {
        let Phase::Watch(WatchPhase { epoll, source, .. }) = phase else { return true };
        let sources = sources(modes, number(epoll));
        !sources.iter().any(|of| of.object == *source && of.exclusive)
    };
    tasks.iter_mut().for_each(|phases| phases.retain(is_allowed));
    tasks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn objects_wake_whom_a_naive_kernel_wakes_and_in_its_order(
        tasks in any_tasks(),
        modes in any_modes(),
    ) {
        let tasks = without_exclusive(tasks, &modes);
        prop_assert_eq!(simulated(&tasks, &modes), real(&tasks, &modes));
    }
}

/// A byte more than a page is another schedule, in both.
#[test]
fn a_byte_that_fits_no_page_makes_a_writer_wait() {
    let run = || Phase::Run(Nanos(1000));
    let tasks = |bytes| {
        let write = Phase::Write { pipe: pipe(0), bytes };
        let read = Phase::Read { pipe: pipe(0), bytes, partial: false };
        vec![vec![run(), write, run()], vec![run(), read, run()]]
    };
    let plain = vec![(Trigger::Level, false, false); 5 * SETS];
    assert_eq!(simulated(&tasks(4096), &plain), [Seen::Runs(0, 0), Seen::Runs(2000, 1)]);
    let blocks = [
        Seen::Runs(0, 0),
        Seen::Runs(1000, 1),
        Seen::Wakes(2000, 0),
        Seen::Runs(2000, 0),
        Seen::Wakes(2000, 1),
        Seen::Runs(3000, 1),
    ];
    assert_eq!(simulated(&tasks(4097), &plain), blocks);
    assert_eq!(real(&tasks(4097), &plain), blocks);
}
