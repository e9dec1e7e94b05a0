//! Sets of objects that tasks wait for together.

use std::io;

/// A new set of these descriptors; each is known by its place.
pub fn open(descriptors: impl Iterator<Item = i32>) -> Result<i32, String> {
    // SAFETY: it takes a number only.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    let is_added = |(place, descriptor): (u64, i32)| {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: place };
        // SAFETY: the kernel only reads the event.
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, descriptor, &raw mut event) == 0 }
    };
    match epoll >= 0 && (0..).zip(descriptors).all(is_added) {
        true => Ok(epoll),
        false => {
            let error = io::Error::last_os_error();
            Err(format!("a set of objects cannot be made: {error}"))
        }
    }
}

/// Watches objects of a set, or does not; each is given by its place and descriptor. One that comes
/// back with data is ready at once. `None` if the kernel refuses.
pub fn watch(
    epoll: i32,
    mut objects: impl Iterator<Item = (usize, i32)>,
    is_watched: bool,
) -> Option<()> {
    let events = if is_watched { libc::EPOLLIN as u32 } else { 0 };
    let is_changed = |(place, descriptor): (usize, i32)| {
        let mut event = libc::epoll_event { events, u64: place as u64 };
        // SAFETY: the kernel only reads the event.
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_MOD, descriptor, &raw mut event) == 0 }
    };
    objects.all(is_changed).then_some(())
}

/// Waits until one of these descriptors has data; `false` if the kernel refuses.
pub fn poll(descriptors: &[i32]) -> bool {
    let entry = |&fd: &i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = descriptors.iter().map(entry).collect();
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

/// Waits until some descriptors have data, and returns the places of up to `most`; `None` if the
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
