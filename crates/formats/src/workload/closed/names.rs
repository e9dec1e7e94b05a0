//! Checks the names of objects that tasks share. A name that only one side uses is a typing error,
//! and no other check finds it.

use schedsim::workload::{
    Closed, EpollObject, EpollSource, EventLoopPhase, Invalid, Phase, ServePhase,
};
use std::collections::BTreeMap;

/// How tasks use a shared object, and where it is named first.
#[derive(Default)]
struct Use {
    key: String,
    /// A phase waits for another task on it.
    waits: bool,
    /// A phase lets another task continue.
    serves: bool,
    /// The number of tasks that use it.
    tasks: u64,
}

/// The first name of a pipe, a socket, a condition, a barrier or a device that must be an error.
pub fn slip(closed: &Closed) -> Option<Invalid> {
    let mut uses: BTreeMap<(&str, &str), Use> = BTreeMap::new();
    for (index, tasks) in closed.tasks.iter().enumerate() {
        let mut counted: Vec<(&str, &str)> = Vec::new();
        for place in closed.reached_by(tasks, &format!("task[{index}]")) {
            for (name, waits) in named(closed, place.phase) {
                let one = uses
                    .entry(name)
                    .or_insert_with(|| Use { key: place.key.clone(), ..Use::default() });
                (one.waits, one.serves) = (one.waits || waits, one.serves || !waits);
                if !counted.contains(&name) {
                    one.tasks = one.tasks.saturating_add(u64::from(tasks.count));
                    counted.push(name);
                }
            }
        }
    }
    let wrong = |((kind, name), one): (&(&str, &str), &Use)| {
        let message = match *kind {
            "pipe" if !one.serves => format!("nothing writes to the pipe `{name}`"),
            "pipe" if !one.waits => format!("nothing reads from the pipe `{name}`"),
            "socket" if !one.serves => format!("nothing sends to the socket `{name}`"),
            "socket" if !one.waits => format!("nothing receives from the socket `{name}`"),
            "reply" if !one.serves => format!("nothing replies at the socket `{name}`"),
            "reply" if !one.waits => format!("nothing receives a reply at the socket `{name}`"),
            "eventfd" if !one.serves && !closed.eventfds.contains_key(*name) => {
                format!("nothing posts to the eventfd `{name}`")
            }
            "eventfd" if !one.waits => format!("nothing takes from the eventfd `{name}`"),
            "condition" if !one.serves => format!("nothing signals the condition `{name}`"),
            "condition" if !one.waits => format!("nothing waits for the condition `{name}`"),
            "barrier" if one.tasks < 2 && !closed.barriers.contains_key(*name) => {
                format!(
                    "only one task comes to the barrier `{name}`; write a table [barrier.{name}] \
                     if that is meant"
                )
            }
            "device" if !closed.devices.contains_key(*name) => {
                format!("there is no device named `{name}`; write a table [device.{name}]")
            }
            _ => return None,
        };
        let others: Vec<&str> = uses
            .keys()
            .filter(|(other, own)| other == kind && own != name)
            .map(|(_, own)| *own)
            .collect();
        let there = if others.is_empty() {
            String::new()
        } else {
            format!(" (there is {})", others.join(", "))
        };
        Some(Invalid { key: one.key.clone(), message: message + &there })
    };
    uses.iter().find_map(wrong)
}

/// The objects that a phase names, each with whether the phase waits for another task there.
fn named<'c>(closed: &'c Closed, phase: &'c Phase) -> Vec<((&'static str, &'c str), bool)> {
    let one = match phase {
        Phase::Read { pipe, .. } => Some((("pipe", pipe), true)),
        Phase::Write { pipe, .. } => Some((("pipe", pipe), false)),
        Phase::Receive { socket, reply: false, .. } => Some((("socket", socket), true)),
        Phase::Send { socket, reply: false, .. } => Some((("socket", socket), false)),
        Phase::Receive { socket, reply: true, .. } => Some((("reply", socket), true)),
        Phase::Send { socket, reply: true, .. } => Some((("reply", socket), false)),
        Phase::Take { eventfd } => Some((("eventfd", eventfd), true)),
        Phase::Post { eventfd, .. } => Some((("eventfd", eventfd), false)),
        Phase::Wait { condition, .. } => Some((("condition", condition), true)),
        Phase::Signal(condition) | Phase::Broadcast(condition) => {
            Some((("condition", condition), false))
        }
        Phase::Barrier(barrier) => Some((("barrier", barrier), true)),
        Phase::Io(io) => Some((("device", &io.device), false)),
        Phase::Serve(ServePhase { epoll, .. })
        | Phase::EventLoop(EventLoopPhase { epoll, .. })
        | Phase::Poll(epoll) => {
            let sources = closed.epolls.get(epoll).map(|epoll| &epoll.sources);
            let named = |source: &'c EpollSource| match &source.object {
                EpollObject::Pipe(name) => (("pipe", name.as_str()), true),
                EpollObject::Socket(name) => (("socket", name.as_str()), true),
                EpollObject::Reply(name) => (("reply", name.as_str()), true),
                EpollObject::Eventfd(name) => (("eventfd", name.as_str()), true),
                // Who waits for room is on the side of those who write.
                EpollObject::PipeRoom(name) => (("pipe", name.as_str()), false),
                EpollObject::SendRoom(name) => (("socket", name.as_str()), false),
                EpollObject::ReplyRoom(name) => (("reply", name.as_str()), false),
            };
            return sources.into_iter().flatten().map(named).collect();
        }
        _ => None,
    };
    one.map(|((kind, name), waits): ((&'static str, &'c String), bool)| {
        ((kind, name.as_str()), waits)
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_only_one_side_uses_is_found() {
        let slip = |phases: [&str; 2], tables: &str| {
            let task = |name: &str, phases: &str| {
                format!("[[task]]\nname = '{name}'\nphases = [ {phases} ]\n")
            };
            let text = format!("{}{}{tables}", task("a", phases[0]), task("b", phases[1]));
            slip(&toml::from_str(&text).unwrap())
                .map_or("fine".to_string(), |invalid| invalid.to_string())
        };
        let (write, read) = (
            "{ write = { pipe = 'there', bytes = 1 } }",
            "{ loop = { times = 2, phases = [ { read = { pipe = 'there', bytes = 1 } } ] } }",
        );
        assert_eq!(slip([write, read], ""), "fine");
        assert!(
            slip([&write.replace("there", "thre"), read], "")
                .contains("nothing writes to the pipe `there` (there is thre)")
        );
        assert!(
            slip([write, "'yield'"], "")
                .contains("task[0].phases[0]: nothing reads from the pipe `there`")
        );
        let (wait, signal) = ("{ wait = { condition = 'c', mutex = 'm' } }", "{ signal = 'c' }");
        assert_eq!(slip([wait, signal], ""), "fine");
        assert!(
            slip([wait, "{ broadcast = 'd' }"], "")
                .contains("nothing signals the condition `c` (there is d)")
        );
        assert!(slip([signal, "'yield'"], "").contains("nothing waits for the condition `c`"));
        assert_eq!(slip(["{ barrier = 'x' }", "{ barrier = 'x' }"], ""), "fine");
        assert!(
            slip(["{ barrier = 'x' }", "'yield'"], "")
                .contains("only one task comes to the barrier `x`")
        );
        assert_eq!(slip(["{ barrier = 'x' }", "'yield'"], "[barrier.x]\ntasks = 1\n"), "fine");
        let io = "{ io = { device = 'disk', service = '1ms' } }";
        assert!(slip([io, "'yield'"], "").contains("write a table [device.disk]"));
        assert_eq!(slip([io, "'yield'"], "[device.disk]\n"), "fine");
    }
}
