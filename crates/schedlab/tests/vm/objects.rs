//! The kernel's objects as the kernel has them: on one CPU under `SCHED_FIFO`, where nothing depends
//! on how long anything takes, the simulator wakes and runs the tasks that a real kernel wakes and
//! runs, in its order.

use super::guest;
use schedlab_runner::class::Class;
use schedlab_runner::session::Job;
use schedsim::engine::{self, Options};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, EventKind, Trace};
use schedsim::workload::{
    Closed, EpollObject, EpollOptions, EpollSource, EventLoopPhase, EventfdOptions, Phase,
    PipeOptions, ServePhase, SocketKind, SocketOptions, Tasks, Trigger, WatchPhase, Workload,
};
use schedsim::{Machine, Nanos, TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};
use worlds::vm::boot;
use worlds::vm::closed::Measured;
use worlds::vm::conformance::Collector;

/// A task comes to run, or is woken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Seen {
    Runs(u32),
    Wakes(u32),
}

fn seen(events: &[Event]) -> Vec<Seen> {
    let seen = |event: &Event| match event.kind {
        EventKind::SchedSwitch { next, .. } if next != TaskId::NONE => Some(Seen::Runs(next.0)),
        EventKind::SchedWaking { task, .. } => Some(Seen::Wakes(task.0)),
        _ => None,
    };
    events.iter().filter_map(seen).collect()
}

fn simulated(closed: &Closed) -> Vec<Seen> {
    let workload = Workload::of(closed, 1).unwrap();
    let mut collector = Collector::default();
    engine::simulate_named(
        &workload,
        &Machine::ideal(1),
        &PolicySpec::parse("central:rr?quantum=1000s").unwrap(),
        Options { seed: 1, until: closed.duration.map_or(Time::NEVER, |span| Time(span.0)) },
        Trace::new(vec![&mut collector]),
    )
    .unwrap();
    seen(&collector.turns(|task| Some(task.0)).events)
}

/// What a kernel does. The simulator has no gate, at which each task is woken once. A task that has
/// ended goes to the end of its queue once, and runs again to leave its CPU (`autogroup`): a task that
/// yields to it runs on.
fn real(measured: &Measured) -> Vec<Seen> {
    let traced = measured.read().expect("a trace");
    let number = |task: TaskId| traced.numbers.get(task.index()).copied().flatten();
    let end = |event: &Event| match event.kind {
        EventKind::SchedProcessExit { task } => number(task).map(|task| (task, event.time)),
        _ => None,
    };
    let ends: BTreeMap<u32, Time> = traced.events.iter().filter_map(end).collect();
    let mut events = traced.turns.events;
    events.retain(|event| match event.kind {
        EventKind::SchedSwitch { next, .. } => {
            ends.get(&next.0).is_none_or(|&end| event.time < end)
        }
        _ => true,
    });
    let mut gated = BTreeSet::new();
    let mut seen = seen(&events);
    seen.retain(|seen| matches!(seen, Seen::Runs(_)) || !gated.insert(*seen));
    seen.dedup_by(|next, last| next == last && matches!(next, Seen::Runs(_)));
    seen
}

fn write(pipe: &str, bytes: u64) -> Phase {
    Phase::Write { pipe: pipe.into(), bytes }
}

fn read(pipe: &str, bytes: u64) -> Phase {
    Phase::Read { pipe: pipe.into(), bytes, partial: false }
}

fn read_some(pipe: &str, bytes: u64) -> Phase {
    Phase::Read { pipe: pipe.into(), bytes, partial: true }
}

/// A guest lets one task after another go; from here on all are ready.
fn start() -> Phase {
    Phase::Barrier("start".into())
}

/// Tasks that do `phases` that many times.
fn each(name: &str, count: u32, times: u64, phases: &[Phase]) -> Tasks {
    Tasks { count, ..Tasks::new(name, vec![start(), Phase::repeat(times, phases.to_vec())]) }
}

/// Tasks that do `phases` until the others have ended.
fn serving(name: &str, count: u32, phases: &[Phase]) -> Tasks {
    let phases = vec![start(), Phase::forever(phases.to_vec())];
    Tasks { count, daemon: true, ..Tasks::new(name, phases) }
}

fn closed(tasks: Vec<Tasks>) -> Closed {
    Closed { tasks, ..Closed::default() }
}

fn pipes() -> Vec<(&'static str, Closed)> {
    let work = || Phase::Run(Nanos(5_000));
    let small = |capacity, of: Closed| Closed {
        pipes: [("p".to_string(), PipeOptions { capacity })].into(),
        ..of
    };
    let until_others_end = |of: Closed| Closed { duration: Some(Nanos::from_millis(500)), ..of };
    let mixed = [write("p", 1), write("p", 4095), write("p", 5000), write("p", 777)];
    vec![
        (
            "messages of 100 bytes, more writers than readers",
            closed(vec![
                each("writer", 9, 400, &[write("p", 100)]),
                each("reader", 2, 1800, &[read("p", 100)]),
            ]),
        ),
        (
            "large writes, few readers",
            closed(vec![
                each("writer", 4, 3, &[write("p", 200_000)]),
                each("reader", 3, 100, &[read("p", 8_000)]),
            ]),
        ),
        (
            "more readers than writers, by the byte",
            closed(vec![
                each("reader", 7, 30, &[read("p", 1)]),
                each("writer", 2, 105, &[write("p", 1)]),
            ]),
        ),
        (
            "all sizes in a small pipe",
            small(
                8192,
                closed(vec![
                    each("writer", 5, 10, &mixed),
                    each("reader", 1, 10, &[read("p", 49_365), work()]),
                ]),
            ),
        ),
        (
            "what is there",
            until_others_end(closed(vec![
                serving("reader", 2, &[read_some("p", 10_000), work()]),
                each("writer", 3, 40, &[write("p", 3_000), work(), write("p", 70_000)]),
            ])),
        ),
        (
            "what is there, by the page",
            small(
                4096,
                until_others_end(closed(vec![
                    each("writer", 6, 50, &[write("p", 900)]),
                    serving("reader", 3, &[read_some("p", 1_000), work()]),
                ])),
            ),
        ),
        (
            "there and back",
            closed(vec![
                each("ping", 3, 50, &[write("there", 100), read("back", 300)]),
                each("pong", 1, 150, &[read("there", 100), write("back", 300)]),
            ]),
        ),
    ]
}

fn send(socket: &str, bytes: u64) -> Phase {
    Phase::Send { socket: socket.into(), bytes, reply: false }
}

fn receive(socket: &str, bytes: u64) -> Phase {
    Phase::Receive { socket: socket.into(), bytes, partial: false, reply: false }
}

fn sockets() -> Vec<(&'static str, Closed)> {
    let work = || Phase::Run(Nanos(5_000));
    let datagrams = |of: Closed| Closed {
        sockets: [("s".to_string(), SocketOptions { kind: SocketKind::Datagram })].into(),
        ..of
    };
    let ask = Phase::Receive { socket: "s".into(), bytes: 700, partial: false, reply: true };
    let answer = Phase::Send { socket: "s".into(), bytes: 700, reply: true };
    let some = Phase::Receive { socket: "s".into(), bytes: 50_000, partial: true, reply: false };
    vec![
        (
            "a stream of messages of 100 bytes, more senders than receivers",
            closed(vec![
                each("sender", 9, 200, &[send("s", 100)]),
                each("receiver", 2, 900, &[receive("s", 100)]),
            ]),
        ),
        (
            "a stream of large messages",
            closed(vec![
                each("sender", 3, 5, &[send("s", 200_000), work()]),
                each("receiver", 2, 100, &[receive("s", 15_000)]),
            ]),
        ),
        (
            "a stream of all sizes",
            closed(vec![
                each(
                    "sender",
                    4,
                    20,
                    &[send("s", 1), send("s", 193), send("s", 3_777), send("s", 8_000), work()],
                ),
                each("receiver", 1, 80, &[receive("s", 11_971)]),
            ]),
        ),
        (
            "questions and answers at one pair",
            closed(vec![
                each("client", 3, 40, &[send("s", 300), ask]),
                each("server", 1, 120, &[receive("s", 300), work(), answer]),
            ]),
        ),
        (
            "what is there in a stream",
            Closed {
                duration: Some(Nanos::from_millis(500)),
                ..closed(vec![
                    each("sender", 5, 100, &[send("s", 2_000)]),
                    serving("receiver", 2, &[some, work()]),
                ])
            },
        ),
        (
            "datagrams, more receivers than senders",
            datagrams(closed(vec![
                each("receiver", 6, 100, &[receive("s", 65_536)]),
                each("sender", 2, 150, &[send("s", 100), send("s", 20_000)]),
            ])),
        ),
        (
            "datagrams, more senders than receivers",
            datagrams(closed(vec![
                each("sender", 6, 100, &[send("s", 4_096)]),
                each("receiver", 2, 300, &[receive("s", 4_096)]),
            ])),
        ),
    ]
}

#[test]
#[ignore = "long: tools/long"]
fn sockets_wake_and_run_whom_the_kernel_does_event_for_event() {
    agree(&sockets());
}

fn eventfds() -> Vec<(&'static str, Closed)> {
    let work = || Phase::Run(Nanos(5_000));
    let post = |count| Phase::Post { eventfd: "e".into(), count };
    let take = || Phase::Take { eventfd: "e".into() };
    let semaphore = |of: Closed| Closed {
        eventfds: [(
            "e".to_string(),
            EventfdOptions { semaphore: true, count: 3, wakes_one: false },
        )]
        .into(),
        ..of
    };
    let of_library = |of: Closed| {
        let options = EventfdOptions { semaphore: true, count: 2, wakes_one: true };
        Closed { eventfds: [("e".to_string(), options)].into(), ..of }
    };
    vec![
        (
            "a semaphore, more takers than posters",
            semaphore(closed(vec![
                each("taker", 7, 20, &[take(), work()]),
                each("poster", 2, 23, &[post(1), work(), Phase::Yield, post(2)]),
            ])),
        ),
        (
            "a semaphore of the C library",
            of_library(closed(vec![
                each("taker", 7, 20, &[take(), work()]),
                each("poster", 2, 23, &[post(1), work(), Phase::Yield, post(2)]),
            ])),
        ),
        (
            "a counter that all wait for",
            Closed {
                duration: Some(Nanos::from_millis(500)),
                ..closed(vec![
                    serving("taker", 4, &[take(), work()]),
                    each("poster", 3, 60, &[post(1), Phase::Yield, work(), post(5), Phase::Yield]),
                ])
            },
        ),
    ]
}

#[test]
#[ignore = "long: tools/long"]
fn event_counters_wake_and_run_whom_the_kernel_does_event_for_event() {
    agree(&eventfds());
}

fn epolls() -> Vec<(&'static str, Closed)> {
    let work = || Phase::Run(Nanos(5_000));
    let some = |bytes, reply| Phase::Receive { socket: "s".into(), bytes, partial: true, reply };
    let take = || Phase::Take { eventfd: "e".into() };
    let post = || Phase::Post { eventfd: "e".into(), count: 1 };
    let set = |events, sources: &[EpollSource], of: Closed| Closed {
        epolls: [("w".to_string(), EpollOptions { sources: sources.to_vec(), events })].into(),
        duration: Some(Nanos::from_millis(500)),
        ..of
    };
    let serve = |handle: &[Vec<Phase>]| {
        [Phase::Serve(ServePhase { epoll: "w".into(), handle: handle.to_vec() })]
    };
    let (pipe, socket, eventfd) = (
        || EpollSource::from(EpollObject::Pipe("p".into())),
        || EpollSource::from(EpollObject::Socket("s".into())),
        || EpollSource::from(EpollObject::Eventfd("e".into())),
    );
    let three = [pipe(), socket(), eventfd()];
    let handle = [
        vec![read_some("p", 3_000), work()],
        vec![some(1_000, false), work()],
        vec![take(), work()],
    ];
    vec![
        (
            "one task serves a pipe, a socket and a counter",
            set(
                64,
                &three,
                closed(vec![
                    serving("server", 1, &serve(&handle)),
                    each("writer", 3, 40, &[write("p", 2_000), Phase::Yield]),
                    each("sender", 2, 40, &[send("s", 700), Phase::Yield, work()]),
                    each("poster", 2, 40, &[post(), Phase::Yield]),
                ]),
            ),
        ),
        (
            "tasks that poll a pipe and a counter are all woken, the last to come first",
            set(
                64,
                &[pipe(), eventfd()],
                closed(vec![
                    serving("poller", 4, &[Phase::Poll("w".into()), work(), read_some("p", 100)]),
                    each("writer", 2, 40, &[write("p", 100), Phase::Yield, work()]),
                ]),
            ),
        ),
    ]
}

#[test]
#[ignore = "long: tools/long"]
fn sets_wake_and_run_whom_the_kernel_does_event_for_event() {
    agree(&epolls());
}

/// Room, sources that are edge-triggered, watched once or exclusive, and changes of what is watched.
fn sources() -> Vec<(&'static str, Closed)> {
    let work = || Phase::Run(Nanos(5_000));
    let some = |bytes| Phase::Receive { socket: "s".into(), bytes, partial: true, reply: false };
    let take = || Phase::Take { eventfd: "e".into() };
    let post = || Phase::Post { eventfd: "e".into(), count: 1 };
    let (pipe, socket, eventfd) = (
        || EpollObject::Pipe("p".into()),
        || EpollObject::Socket("s".into()),
        || EpollObject::Eventfd("e".into()),
    );
    let (pipe_room, send_room) =
        (|| EpollObject::PipeRoom("p".into()), || EpollObject::SendRoom("s".into()));
    let of = |object, trigger| EpollSource { trigger, ..EpollSource::from(object) };
    let watch = |source, off| Phase::Watch(WatchPhase { epoll: "w".into(), source, off });
    let serve = |set: &str, handle: &[Vec<Phase>]| {
        Phase::Serve(ServePhase { epoll: set.into(), handle: handle.to_vec() })
    };
    let sets = |all: &[(&str, &[EpollSource])], of: Closed| Closed {
        epolls: all
            .iter()
            .map(|(name, sources)| {
                (name.to_string(), EpollOptions { sources: sources.to_vec(), events: 64 })
            })
            .collect(),
        duration: Some(Nanos::from_millis(500)),
        ..of
    };
    let writers = || {
        vec![
            each("writer", 3, 40, &[write("p", 2_000), Phase::Yield]),
            each("sender", 2, 40, &[send("s", 700), Phase::Yield, work()]),
            each("poster", 2, 40, &[post(), Phase::Yield]),
        ]
    };
    let all = |trigger| [of(pipe(), trigger), of(socket(), trigger), of(eventfd(), trigger)];
    // It takes all that there is, or only some.
    let handle = |bytes| {
        [vec![read_some("p", bytes), work()], vec![some(bytes), work()], vec![take(), work()]]
    };
    let again = |[mut one, mut two, mut three]: [Vec<Phase>; 3]| {
        one.push(watch(pipe(), false));
        two.push(watch(socket(), false));
        three.push(watch(eventfd(), false));
        [one, two, three]
    };
    let serving_all = |count, handle: &[Vec<Phase>]| {
        [vec![serving("server", count, &[serve("w", handle)])], writers()].concat()
    };
    let exclusive = |object| EpollSource { exclusive: true, ..EpollSource::from(object) };
    let off = |object| EpollSource { off: true, ..EpollSource::from(object) };
    vec![
        (
            "two tasks serve a set that is edge-triggered",
            sets(&[("w", &all(Trigger::Edge))], closed(serving_all(2, &handle(60_000)))),
        ),
        (
            "two tasks serve a set that they drain, and leave some",
            sets(&[("w", &all(Trigger::Drained))], closed(serving_all(2, &handle(900)))),
        ),
        (
            "three tasks serve a set whose objects are watched once, and again",
            sets(&[("w", &all(Trigger::Once))], closed(serving_all(3, &again(handle(900))))),
        ),
        (
            "each of three sets has a counter and a socket exclusively",
            sets(
                &[
                    ("w", &[exclusive(eventfd()), exclusive(socket())]),
                    ("x", &[exclusive(eventfd()), exclusive(socket())]),
                    ("y", &[exclusive(eventfd()), of(socket(), Trigger::Level)]),
                ],
                closed(
                    [
                        ["w", "x", "y"]
                            .map(|set| {
                                let handle = [vec![take(), work()], vec![some(700), work()]];
                                serving(set, 1, &[serve(set, &handle)])
                            })
                            .to_vec(),
                        writers()[1..].to_vec(),
                    ]
                    .concat(),
                ),
            ),
        ),
        (
            "tasks poll for room in a pipe and in a socket",
            sets(
                &[("w", &[of(pipe_room(), Trigger::Level)]), ("x", &[send_room().into()])],
                closed(vec![
                    each("writer", 3, 30, &[Phase::Poll("w".into()), write("p", 4_000), work()]),
                    each("sender", 2, 30, &[Phase::Poll("x".into()), send("s", 30_000)]),
                    each("reader", 1, 90, &[read("p", 4_000), Phase::Yield, work()]),
                    each("receiver", 1, 60, &[receive("s", 30_000), Phase::Yield, work()]),
                ]),
            ),
        ),
        (
            "a task answers when there is room, which it watches only then",
            sets(
                &[("w", &[eventfd().into(), off(pipe_room()), off(send_room())])],
                closed(vec![
                    serving(
                        "server",
                        1,
                        &[serve(
                            "w",
                            &[
                                vec![
                                    take(),
                                    work(),
                                    watch(pipe_room(), false),
                                    watch(send_room(), false),
                                ],
                                vec![write("p", 40_000), work(), watch(pipe_room(), true)],
                                vec![send("s", 60_000), work(), watch(send_room(), true)],
                            ],
                        )],
                    ),
                    each("poster", 2, 40, &[post(), Phase::Yield, work()]),
                    serving("reader", 1, &[read("p", 3_000), work(), Phase::Yield]),
                    serving("receiver", 1, &[receive("s", 20_000), Phase::Yield, work()]),
                ]),
            ),
        ),
    ]
}

#[test]
fn sources_of_all_kinds_wake_and_run_whom_the_kernel_does_event_for_event() {
    agree(&sources());
}

/// Handlers that do something else each time: more data comes for an object whose rounds are done,
/// and a second loop handles it.
fn event_loops() -> Vec<(&'static str, Closed)> {
    let work = |us: u64| Phase::Run(Nanos(1_000 * us));
    let post = || Phase::Post { eventfd: "e".into(), count: 1 };
    let take = || Phase::Take { eventfd: "e".into() };
    let sources = ["p", "q"].map(|pipe| EpollSource::from(EpollObject::Pipe(pipe.into())));
    let sources = [&sources[..], &[EpollObject::Eventfd("e".into()).into()]].concat();
    let set = |events, of: Closed| Closed {
        epolls: [("w".to_string(), EpollOptions { sources: sources.clone(), events })].into(),
        pipes: [("p".to_string(), PipeOptions { capacity: 4096 })].into(),
        ..of
    };
    let rounds = |count: u64, of: &dyn Fn(u64) -> Vec<Phase>| -> Vec<Vec<Phase>> {
        (1..=count).map(of).collect()
    };
    let event_loop = |handle: [Vec<Vec<Phase>>; 3]| {
        Phase::EventLoop(EventLoopPhase {
            epoll: "w".into(),
            round: Nanos(900),
            handle: handle.to_vec(),
        })
    };
    // Each third round also writes where another task waits.
    let of_p = |round: u64| match round % 3 {
        0 => vec![read("p", 200), work(round), write("back", 1)],
        _ => vec![work(round), read("p", 200)],
    };
    let of_q = |round: u64| vec![read("q", 50 * round), work(3)];
    let of_e = |_| vec![take(), work(2)];
    let server = |phases: Vec<Phase>| Tasks::new("server", [vec![start()], phases].concat());
    let clients = || {
        vec![
            each("writes", 3, 20, &[write("p", 200), Phase::Yield, work(1)]),
            each("grows", 1, 1, &(1..=10).map(|round| write("q", 50 * round)).collect::<Vec<_>>()),
            each("waits", 1, 20, &[read("back", 1), work(4)]),
            each("posts", 1, 30, &[post(), Phase::Yield]),
        ]
    };
    let one = event_loop([rounds(60, &of_p), rounds(10, &of_q), rounds(1, &of_e)]);
    let (few, rest) = (
        event_loop([rounds(20, &of_p), rounds(2, &of_q), vec![]]),
        event_loop([rounds(40, &|round| of_p(round + 2)), vec![], rounds(1, &of_e)]),
    );
    let again = Phase::repeat(3, vec![event_loop([rounds(20, &of_p), vec![], vec![]]), work(7)]);
    let rest_of_q: Vec<Phase> = (3..=10).map(|round| read("q", 50 * round)).collect();
    let rest_of_all = [rounds(10, &of_q).concat(), vec![write("back", 2), take()]].concat();
    let of = |events, phases| set(events, closed([clients(), vec![server(phases)]].concat()));
    vec![
        ("an event loop over three objects", of(64, vec![one.clone()])),
        ("an event loop, one object at a time", of(1, vec![one])),
        (
            "two event loops over the same set",
            of(64, [vec![few, work(9), rest], rest_of_q].concat()),
        ),
        ("an event loop that is repeated", of(2, [vec![again], rest_of_all].concat())),
    ]
}

#[test]
#[ignore = "long: tools/long"]
fn event_loops_wake_and_run_whom_the_kernel_does_event_for_event() {
    agree(&event_loops());
}

#[test]
fn pipes_wake_and_run_whom_the_kernel_does_event_for_event() {
    agree(&pipes());
}

/// What happens until the last task that serves nobody has ended; the others go on for a while.
fn until_others_have_ended(mut seen: Vec<Seen>, is_serving: &[bool]) -> Vec<Seen> {
    let is_last = |seen: &Seen| {
        let (Seen::Runs(task) | Seen::Wakes(task)) = *seen;
        !is_serving[task as usize]
    };
    seen.truncate(seen.iter().rposition(is_last).map_or(0, |last| last + 1));
    seen
}

/// Runs each workload in a guest and in the simulator, and compares every event.
fn agree(workloads: &[(&str, Closed)]) {
    let jobs = workloads
        .iter()
        .flat_map(|(name, workload)| worlds::vm::closed::jobs(name, workload, Class::Fifo(50)))
        .collect::<Vec<Job>>();
    let Some(guest) = guest("6.18", 1, jobs) else { return };
    let transcript = boot(&guest, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    for (index, (name, workload)) in workloads.iter().enumerate() {
        let measured = Measured::of(&transcript, 2 * index).expect("both jobs end");
        assert_eq!(measured.lost, 0, "{name}");
        let mut is_serving = Vec::new();
        for tasks in &workload.tasks {
            is_serving.resize(is_serving.len() + tasks.count as usize, tasks.daemon);
        }
        let [real, simulated] = [real(&measured), simulated(workload)]
            .map(|seen| until_others_have_ended(seen, &is_serving));
        let first =
            (0..simulated.len().max(real.len())).find(|&at| simulated.get(at) != real.get(at));
        if let Some(at) = first {
            let around = |of: &[Seen]| {
                of[at.saturating_sub(5).min(of.len())..(at + 5).min(of.len())].to_vec()
            };
            panic!(
                "{name}: event {at} of {} in the kernel, {} simulated: {:?} is not {:?}",
                real.len(),
                simulated.len(),
                around(&real),
                around(&simulated)
            );
        }
        eprintln!("{name}: {} events are equal", simulated.len());
        assert!(simulated.len() > 30, "{name}: {} events", simulated.len());
    }
}
