//! Pipes between tasks.

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
