//! The calls of the C library's locks, on which probes are put.

use crate::error::Error;
use std::ffi::CStr;
use std::fs;
use std::path::PathBuf;

/// A lock may not be had, or a wait end by its time: one that fails is none, but for a signal.
const MAY_FAIL: u64 = 1 << 16;

/// Each call with its operation, as `recording::lock` numbers them. The last three are none: they make
/// a new object of what was at an address.
const CALLS: [(&CStr, u64); 18] = [
    (c"pthread_mutex_lock", 256),
    (c"pthread_mutex_trylock", 256 | MAY_FAIL),
    (c"pthread_mutex_timedlock", 256 | MAY_FAIL),
    (c"pthread_mutex_unlock", 257),
    (c"pthread_cond_wait", 258),
    (c"pthread_cond_timedwait", 258 | MAY_FAIL),
    (c"pthread_cond_clockwait", 258 | MAY_FAIL),
    (c"pthread_cond_signal", 259),
    (c"pthread_cond_broadcast", 260),
    (c"pthread_barrier_wait", 261),
    (c"sem_wait", 262 | MAY_FAIL),
    (c"sem_trywait", 262 | MAY_FAIL),
    (c"sem_timedwait", 262 | MAY_FAIL),
    (c"sem_clockwait", 262 | MAY_FAIL),
    (c"sem_post", 263),
    (c"pthread_mutex_init", 264),
    (c"pthread_cond_init", 264),
    (c"sem_init", 265),
];

/// A call: where its code is.
pub struct Place {
    /// The library's file.
    pub file: PathBuf,
    /// The offset in it.
    pub offset: usize,
    /// The operation, for the probe.
    pub cookie: u64,
}

/// The places of all calls, in the C library of this program: of programs that are linked with it,
/// too.
///
/// # Errors
/// [`Error::Missing`] if this program has no such library.
pub fn places() -> Result<Vec<Place>, Error> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let places: Vec<Place> =
        CALLS.iter().filter_map(|(name, cookie)| place(&maps, name, *cookie)).collect();
    if places.is_empty() {
        return Err(Error::Missing(
            "--uprobes needs a C library with locks as a file of its own: this recorder is linked \
             statically"
                .into(),
        ));
    }
    Ok(places)
}

fn place(maps: &str, name: &CStr, cookie: u64) -> Option<Place> {
    // SAFETY: the name ends with a zero; the newest version of a call is found.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
    let hexadecimal = |text: &str| usize::from_str_radix(text, 16).ok();
    maps.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [range, _, offset, _, _, file] = fields[..] else { return None };
        let (start, end) = range.split_once('-')?;
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        let offset = hexadecimal(offset)? + address.checked_sub(start)?;
        (address < end).then(|| Place { file: file.into(), offset, cookie })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_are_found_in_one_file_at_different_places() {
        let places = places().unwrap();
        assert_eq!(places.len(), CALLS.len());
        assert!(places.iter().all(|place| place.file == places[0].file));
        let mut offsets: Vec<usize> = places.iter().map(|place| place.offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        assert_eq!(offsets.len(), CALLS.len());
    }
}
