//! Sets of objects that tasks wait for together.

use crate::program::{Object, Source};
use phases::Trigger;
use std::io;

/// An object of a set.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    pub descriptor: i32,
    pub of: Source,
}

impl Watched {
    /// What a task that polls waits for.
    fn news(&self) -> i16 {
        match self.of.object {
            Object::PipeRoom(_) | Object::Room(_) => libc::POLLOUT,
            Object::Pipe(_) | Object::Socket(_) | Object::Eventfd(_) => libc::POLLIN,
        }
    }

    fn events(&self, is_on: bool) -> u32 {
        if !is_on {
            return 0;
        }
        let news = match self.news() {
            libc::POLLOUT => libc::EPOLLOUT,
            _ => libc::EPOLLIN,
        };
        let trigger = match self.of.trigger {
            Trigger::Level => 0,
            Trigger::Edge | Trigger::Drained => libc::EPOLLET,
            Trigger::Once => libc::EPOLLONESHOT,
        };
        let shared = if self.of.exclusive { libc::EPOLLEXCLUSIVE } else { 0 };
        (news | trigger | shared) as u32
    }

    /// Adds it to a set or changes it there (`operation`), at this place; `false` if the kernel
    /// refuses.
    fn tell(&self, epoll: i32, operation: i32, place: usize, is_on: bool) -> bool {
        let mut event = libc::epoll_event { events: self.events(is_on), u64: place as u64 };
        // SAFETY: the kernel only reads the event.
        unsafe { libc::epoll_ctl(epoll, operation, self.descriptor, &raw mut event) == 0 }
    }
}

/// A new set of these objects; each is known by its place.
pub fn open(set: &[Watched]) -> Result<i32, String> {
    // SAFETY: it takes a number only.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    let is_added = |(place, object): (usize, &Watched)| {
        object.tell(epoll, libc::EPOLL_CTL_ADD, place, !object.of.off)
    };
    match epoll >= 0 && set.iter().enumerate().all(is_added) {
        true => Ok(epoll),
        false => {
            let error = io::Error::last_os_error();
            Err(format!("a set of objects cannot be made: {error}"))
        }
    }
}

/// Watches objects of a set, or does not; each is given by its place. One that is ready then is
/// news. `None` if the kernel refuses.
pub fn watch(
    epoll: i32,
    set: &[Watched],
    mut places: impl Iterator<Item = usize>,
    is_on: bool,
) -> Option<()> {
    let is_changed = |place: usize| set[place].tell(epoll, libc::EPOLL_CTL_MOD, place, is_on);
    places.all(is_changed).then_some(())
}

/// Waits until one of these objects is ready; `false` if the kernel refuses.
pub fn poll(set: &[Watched]) -> bool {
    let entry = |of: &Watched| libc::pollfd { fd: of.descriptor, events: of.news(), revents: 0 };
    let mut entries: Vec<libc::pollfd> = set.iter().map(entry).collect();
    loop {
        // SAFETY: the kernel writes into as many entries as there are.
        let count = unsafe {
            libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, -1 /* for ever */)
        };
        if count > 0 {
            return true;
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return false;
        }
    }
}

/// Waits until some objects are ready, and returns the places of up to `most`; `None` if the
/// kernel refuses.
pub fn wait(epoll: i32, most: usize) -> Option<Vec<usize>> {
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; most];
    loop {
        // SAFETY: the kernel writes up to `most` events.
        let count = unsafe {
            libc::epoll_wait(epoll, events.as_mut_ptr(), most as i32, -1 /* for ever */)
        };
        if let Ok(count) = usize::try_from(count) {
            return Some(events[..count].iter().map(|event| event.u64 as usize).collect());
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}
