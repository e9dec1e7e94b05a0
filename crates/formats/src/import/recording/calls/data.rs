//! Calls that put data into an object, or take it from one.

use super::{Calls, Ended, Place, add};
use ::recording::{Class, eventfd, read};
use schedsim::trace::Returned;
use schedsim::workload::Call::Begins;
use schedsim::workload::{Eventfd, Operation, Pipe, SocketKind, Until, Watched};

/// The capacity of a pipe, unless it was changed.
const PIPE_CAPACITY: u64 = 65_536;

/// `EPIPE`.
const BROKEN: i64 = -32;

impl Calls {
    /// A call that took nothing from an object, or put nothing into it, as there is no other end.
    pub(super) fn is_over(&mut self, call: &Ended, puts: bool) -> Option<Returned> {
        match (puts, call.result) {
            (false, 0) => self.source(call.object, false).map(Returned::Ended),
            (true, BROKEN) => self.source(call.object, true).map(Returned::Broken),
            _ => None,
        }
    }

    /// A descriptor is closed.
    pub(super) fn closes(&mut self, call: &Ended) -> Option<Returned> {
        // What has carried nothing yet has no place.
        self.objects.get(&call.object)?.place?;
        self.source(call.object, true).map(Returned::Closed)
    }

    /// Where one takes what comes from a pipe or a stream, or what is put into it (`puts`).
    fn source(&mut self, object: u64, puts: bool) -> Option<Watched> {
        match self.carrier(object)? {
            Place::Pipe(pipe) => Some(Watched::Pipe(pipe)),
            Place::End(end) => {
                let pair = self.shared.sockets.get(end as usize / 2)?;
                let is_stream = pair.kind == SocketKind::Stream;
                is_stream.then_some(Watched::End(if puts { end ^ 1 } else { end }))
            }
            _ => None,
        }
    }

    /// `read` and its kin: as many bytes as recorded, and no more.
    pub(super) fn takes(&mut self, call: &Ended) -> Option<Operation> {
        let bytes = transferred(call)?;
        let until = if call.op == read::UP_TO { Until::Any } else { Until::All };
        Some(match self.carrier(call.object)? {
            Place::Pipe(pipe) => Operation::Read { pipe, bytes, until, call: Begins },
            Place::End(end) => Operation::Receive { end, bytes, until },
            Place::Eventfd(eventfd) => Operation::Take(eventfd),
            Place::Timer { timer, period } => Operation::Timer { timer, period },
            _ => return None,
        })
    }

    /// `write` and its kin.
    pub(super) fn puts(&mut self, call: &Ended) -> Option<Operation> {
        let bytes = transferred(call)?;
        Some(match self.carrier(call.object)? {
            Place::Pipe(pipe) => Operation::Write { pipe, bytes, call: Begins },
            Place::End(end) => Operation::Send { end, bytes },
            // The number is in the task's memory: only simulations say it.
            Place::Eventfd(eventfd) => {
                Operation::Post { eventfd, count: u64::from(call.op).max(1) }
            }
            _ => return None,
        })
    }

    /// The place of an object that carries data.
    pub(super) fn carrier(&mut self, object: u64) -> Option<Place> {
        match self.objects.get(&object)?.class {
            Class::Pipe => self.place(object, Class::Pipe, |object, shared| {
                let capacity = if object.peer > 0 { object.peer } else { PIPE_CAPACITY };
                let name = format!("pipe {}", object.inode);
                add(&mut shared.pipes, Pipe { name, capacity }).map(Place::Pipe)
            }),
            Class::Eventfd => self.place(object, Class::Eventfd, |of, shared| {
                let (is_semaphore, wakes_one) =
                    (of.peer & eventfd::SEMAPHORE != 0, of.peer & eventfd::WAKES_ONE != 0);
                let count = of.peer >> 1 & eventfd::COUNT;
                let name = format!("eventfd {object}");
                let new = Eventfd { name, is_semaphore, count, wakes_one };
                add(&mut shared.eventfds, new).map(Place::Eventfd)
            }),
            Class::UnixSocket | Class::InternetSocket => self.end_of(object).map(Place::End),
            Class::Timerfd => self.objects.get(&object)?.place,
            _ => None,
        }
    }
}

/// The bytes that a call transferred, if any.
fn transferred(call: &Ended) -> Option<u64> {
    u64::try_from(call.result).ok().filter(|bytes| *bytes > 0)
}
