//! Pairs of sockets, from what is known of their ends.
//!
//! One end of two Unix sockets names the other; two internet sockets on one machine have the same
//! two ports. An end may be used before the other one is known.

use super::{Calls, Ended, Object, Place, add};
use ::recording::{Class, socket};
use schedsim::workload::{Eventfd, Operation, Socket, SocketKind};

impl Calls {
    /// An object is announced, or more is known of it.
    pub(super) fn meet(&mut self, id: u64, mut object: Object) {
        if let Some(known) = self.objects.get(&id)
            && known.class == object.class
        {
            object.place = known.place;
            if object.peer & !socket::TYPE == 0 {
                object.peer |= known.peer & !socket::TYPE;
            }
        }
        if object.class == Class::InternetSocket {
            let port = |number: u64| u16::try_from(number & 0xffff).unwrap_or_default();
            object.ports = (port(object.peer >> 16), port(object.peer));
        }
        let other = match object.class {
            Class::UnixSocket => Some(object.peer & !socket::TYPE).filter(|peer| *peer > 0),
            Class::InternetSocket => self.other_of_ports(id, object.ports),
            _ => None,
        };
        if object.class == Class::InternetSocket {
            object.peer = object.peer & socket::TYPE | other.unwrap_or_default();
        }
        let class = object.class;
        self.objects.insert(id, object);
        let Some(other) = other.filter(|other| *other != id) else { return };
        if let Some(end) = self.objects.get_mut(&other).filter(|end| end.class == class)
            && end.peer & !socket::TYPE == 0
        {
            end.peer |= id & !socket::TYPE;
        }
    }

    /// The internet socket with the same ports.
    fn other_of_ports(&mut self, id: u64, (own, other): (u16, u16)) -> Option<u64> {
        if own == 0 || other == 0 {
            return None;
        }
        self.ports.insert((own, other), id);
        self.ports.get(&(other, own)).copied()
    }

    /// What both ends of a pair have in common: the lower one's number. Any other object's own one.
    pub fn channel(&self, object: u64) -> u64 {
        match self.objects.get(&object) {
            Some(Object { class: Class::UnixSocket | Class::InternetSocket, peer, .. }) => {
                let peer = peer & !socket::TYPE;
                if peer > 0 { object.min(peer) } else { object }
            }
            _ => object,
        }
    }

    /// The number of an end among those of all pairs.
    pub(super) fn end_of(&mut self, id: u64) -> Option<u32> {
        let object = self.objects.get(&id)?;
        match object.place {
            Some(Place::End(end)) => return Some(end),
            Some(_) => return None, // one that listens
            None => {}
        }
        let peer = object.peer & !socket::TYPE;
        let kind = match object.peer >> socket::TYPE.trailing_zeros() {
            socket::DATAGRAM | socket::SEQPACKET => SocketKind::Datagram,
            _ => SocketKind::Stream,
        };
        let class = object.class;
        let of_peer = self.objects.get(&peer).filter(|peer| peer.class == class);
        let end = match of_peer.and_then(|peer| peer.place) {
            Some(Place::End(end)) => end ^ 1,
            _ => {
                let name = format!("sockets {}", self.channel(id));
                add(&mut self.shared.sockets, Socket { name, kind })?.checked_mul(2)?
            }
        };
        self.objects.get_mut(&id)?.place = Some(Place::End(end));
        Some(end)
    }

    /// A stream is connected to a port or an address: there is one more to accept.
    pub(super) fn connects(&mut self, call: &Ended, address: Option<u64>) -> Option<Operation> {
        /// `EINPROGRESS`: it continues in the background.
        const CONTINUES: i64 = -115;
        if call.result != 0 && call.result != CONTINUES {
            return None;
        }
        let listener = match self.objects.get(&call.object)? {
            of if !of.is_connected() => return None,
            Object { class: Class::InternetSocket, ports: (_, other), .. } => {
                Listener::port(*other)?
            }
            _ => Listener::Address(address?),
        };
        self.listener(listener).map(|eventfd| Operation::Post { eventfd, count: 1 })
    }

    /// A connection is accepted: the port is that of the new socket.
    pub(super) fn accepts(&mut self, call: &Ended, address: Option<u64>) -> Option<Operation> {
        let accepted = self.tasks.get_mut(&call.tid)?.accepted.take()?;
        if call.result < 0 {
            return None;
        }
        let listener = match self.objects.get(&accepted)? {
            Object { class: Class::UnixSocket, .. } => Listener::Address(address?),
            Object { ports: (own, _), .. } => Listener::port(*own)?,
        };
        let eventfd = self.listener(listener)?;
        self.objects.get_mut(&call.object)?.place = Some(Place::Eventfd(eventfd));
        Some(Operation::Take(eventfd))
    }

    fn listener(&mut self, of: Listener) -> Option<u32> {
        if let Some(known) = self.listeners.get(&of) {
            return Some(*known);
        }
        let name = match of {
            Listener::Port(port) => format!("connections to port {port}"),
            Listener::Address(address) => format!("connections to address {address}"),
        };
        let new = Eventfd { name, is_semaphore: true, count: 0, wakes_one: false };
        let eventfd = add(&mut self.shared.eventfds, new)?;
        self.listeners.insert(of, eventfd);
        Some(eventfd)
    }
}

/// What tasks connect to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Listener {
    Port(u16),
    /// The object that stands for the address of a Unix socket.
    Address(u64),
}

impl Listener {
    fn port(port: u16) -> Option<Listener> {
        (port > 0).then_some(Listener::Port(port))
    }
}

impl Object {
    /// Whether it is a socket that another one accepts.
    fn is_connected(&self) -> bool {
        let kind = self.peer >> socket::TYPE.trailing_zeros();
        match self.class {
            Class::InternetSocket => kind == socket::STREAM,
            Class::UnixSocket => kind == socket::STREAM || kind == socket::SEQPACKET,
            _ => false,
        }
    }
}
