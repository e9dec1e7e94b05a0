//! Pipes, pairs of sockets and event counters between tasks.

use phases::{EventfdOptions, SocketKind};
use std::io;

/// A new pipe of this capacity: the end to read from and the end to write to.
pub fn open(capacity: u64) -> Result<(i32, i32), String> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers.
    let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == 0;
    // SAFETY: it takes a number only.
    if !made
        || unsafe { libc::fcntl(ends[1], libc::F_SETPIPE_SZ, capacity.min(1 << 20) as i32) } < 0
    {
        return Err(format!(
            "a pipe of {capacity} bytes cannot be made: {}",
            io::Error::last_os_error()
        ));
    }
    Ok((ends[0], ends[1]))
}

/// A new pair of connected Unix sockets.
pub fn pair(kind: SocketKind) -> Result<[i32; 2], String> {
    let kind = match kind {
        SocketKind::Stream => libc::SOCK_STREAM,
        SocketKind::Datagram => libc::SOCK_DGRAM,
    };
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) }
        != 0
    {
        let error = io::Error::last_os_error();
        return Err(format!("a pair of sockets cannot be made: {error}"));
    }
    match ends.iter().all(|&end| has_buffer(end)) {
        true => Ok(ends),
        false => Err(format!("the kernel refuses a socket a buffer of {BUFFER} bytes")),
    }
}

/// The buffer of a socket to send from: the kernel's default, which an administrator may change.
const BUFFER: i32 = 212_992;

/// Gives a socket the usual buffer; false if the kernel refuses.
fn has_buffer(socket: i32) -> bool {
    // The kernel doubles what it is given.
    let (half, mut real) = (BUFFER / 2, 0i32);
    let mut size = size_of::<i32>() as u32;
    // SAFETY: the kernel reads one number, and writes one.
    unsafe {
        libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, (&raw const half).cast(), size);
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            (&raw mut real).cast(),
            &raw mut size,
        );
    }
    real == BUFFER
}

/// Another descriptor of the same object.
pub fn duplicate(descriptor: i32) -> Result<i32, String> {
    // SAFETY: it takes numbers only.
    match unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) } {
        -1 => Err(format!("a descriptor cannot be duplicated: {}", io::Error::last_os_error())),
        other => Ok(other),
    }
}

/// A new event counter.
pub fn counter(options: EventfdOptions) -> Result<i32, String> {
    let flags = if options.semaphore { libc::EFD_SEMAPHORE } else { 0 };
    // SAFETY: it takes numbers only.
    match unsafe { libc::eventfd(options.count, flags | libc::EFD_CLOEXEC) } {
        -1 => Err(format!("an event counter cannot be made: {}", io::Error::last_os_error())),
        eventfd => Ok(eventfd),
    }
}

/// Writes all of `bytes`; false if the pipe fails.
pub fn write_all(pipe: i32, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: the kernel reads `bytes` only.
        let count = unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) => bytes = &bytes[count..],
            Err(_) => return false,
        }
    }
    true
}

/// Reads at least one byte, and at most as many as `bytes` has room for; false if the pipe fails or
/// ends.
pub fn read_some(pipe: i32, bytes: &mut [u8]) -> bool {
    // SAFETY: the kernel writes to `bytes` only.
    unsafe { libc::read(pipe, bytes.as_mut_ptr().cast(), bytes.len()) > 0 }
}

/// Fills `bytes`; false if the pipe fails or ends.
pub fn read_all(pipe: i32, mut bytes: &mut [u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: the kernel writes to `bytes` only.
        let count = unsafe { libc::read(pipe, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) if count > 0 => bytes = &mut bytes[count..],
            _ => return false,
        }
    }
    true
}
