//! The pages of a pipe: a ring of slots, each of which holds a page of up to 4,096 bytes.
//!
//! A page is filled from its begin and read from its begin, and its slot is free when all of it has
//! been read. So a pipe can be full with few bytes in it, and has no room for what fits no page.
//! Source: Linux, `fs/pipe.c`.

use std::collections::VecDeque;

/// The bytes of a page; a write of this size (`PIPE_BUF`) or less is in one page.
pub const PAGE: u64 = 4096;

/// Pages that are filled alike, one behind the other, so that a large write takes little memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    /// The bytes written to each.
    filled: u64,
    pages: u64,
}

/// The pages in a pipe.
#[derive(Debug)]
pub struct Pages {
    slots: u64,
    used: u64,
    runs: VecDeque<Run>,
    /// The bytes of the first page that have been read.
    read: u64,
}

/// What a read found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    pub bytes: u64,
    /// Whether all slots were used and one is free now.
    pub made_room: bool,
}

impl Pages {
    /// Room for `capacity` bytes: a power of two of slots, as `F_SETPIPE_SZ` rounds it up.
    pub fn new(capacity: u64) -> Pages {
        let slots = capacity.div_ceil(PAGE).next_power_of_two();
        Pages { slots, used: 0, runs: VecDeque::new(), read: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub fn is_full(&self) -> bool {
        self.used == self.slots
    }

    /// Takes up to `bytes`.
    pub fn take(&mut self, bytes: u64) -> Taken {
        let (was_full, before) = (self.is_full(), self.used);
        let mut left = bytes;
        while let Some(first) = self.runs.front_mut().filter(|_| left > 0) {
            let rest = first.filled - self.read;
            if left < rest {
                self.read += left;
                left = 0;
                break;
            }
            left -= rest;
            self.read = 0;
            let whole = (left / first.filled).min(first.pages - 1);
            left -= whole * first.filled;
            self.used -= 1 + whole;
            first.pages -= 1 + whole;
            if first.pages == 0 {
                self.runs.pop_front();
            }
        }
        Taken { bytes: bytes - left, made_room: was_full && self.used < before }
    }

    /// The first part of a new write: what does not fill a page goes into the last page in use, if
    /// it fits there. Returns its size.
    pub fn merge(&mut self, bytes: u64) -> u64 {
        let part = bytes % PAGE;
        let Some(last) = self.runs.back_mut().filter(|last| last.filled + part <= PAGE) else {
            return 0;
        };
        let filled = last.filled + part;
        if last.pages == 1 {
            last.filled = filled;
        } else if part > 0 {
            last.pages -= 1;
            self.runs.push_back(Run { filled, pages: 1 });
        }
        part
    }

    /// Puts up to `bytes` into free slots, and returns how many.
    pub fn append(&mut self, bytes: u64) -> u64 {
        let slots = (self.slots - self.used).min(bytes.div_ceil(PAGE));
        let whole = (bytes / PAGE).min(slots);
        self.push(PAGE, whole);
        let rest = if slots > whole { bytes % PAGE } else { 0 };
        self.push(rest, slots - whole);
        whole * PAGE + rest
    }

    fn push(&mut self, filled: u64, pages: u64) {
        if pages == 0 {
            return;
        }
        self.used += pages;
        match self.runs.back_mut() {
            Some(last) if last.filled == filled => last.pages += pages,
            _ => self.runs.push_back(Run { filled, pages }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each slot by itself, as in the kernel.
    #[derive(Default)]
    struct Ring(VecDeque<(u64, u64)>);

    impl Ring {
        fn take(&mut self, mut bytes: u64) -> u64 {
            let mut taken = 0;
            while let Some((offset, len)) = self.0.front_mut() {
                let chars = bytes.min(*len);
                (*offset, *len) = (*offset + chars, *len - chars);
                (taken, bytes) = (taken + chars, bytes - chars);
                if *len > 0 {
                    break;
                }
                self.0.pop_front();
            }
            taken
        }

        fn merge(&mut self, bytes: u64) -> u64 {
            let part = bytes % 4096;
            match self.0.back_mut() {
                Some((offset, len)) if *offset + *len + part <= 4096 => {
                    *len += part;
                    part
                }
                _ => 0,
            }
        }

        fn append(&mut self, slots: usize, bytes: u64) -> u64 {
            let mut put = 0;
            while put < bytes && self.0.len() < slots {
                let page = (bytes - put).min(4096);
                self.0.push_back((0, page));
                put += page;
            }
            put
        }
    }

    fn size() -> impl Strategy<Value = u64> {
        prop_oneof![1u64..300, 4000u64..4200, 1u64..100_000, (1u64..20).prop_map(|n| n * 4096)]
    }

    proptest! {
        #[test]
        fn runs_of_pages_are_a_ring_of_slots(
            slots in 0u32..6,
            steps in proptest::collection::vec((0u8..3, size()), 1..200),
        ) {
            let slots = 1 << slots;
            let (mut pages, mut ring) = (Pages::new(slots * PAGE), Ring::default());
            for (what, bytes) in steps {
                let was_full = ring.0.len() == slots as usize;
                match what {
                    0 => {
                        let bytes_taken = ring.take(bytes);
                        let made_room = was_full && ring.0.len() < slots as usize;
                        prop_assert_eq!(pages.take(bytes), Taken { bytes: bytes_taken, made_room });
                    }
                    1 => prop_assert_eq!(pages.merge(bytes), ring.merge(bytes)),
                    _ => prop_assert_eq!(pages.append(bytes), ring.append(slots as usize, bytes)),
                }
                prop_assert_eq!(pages.used, ring.0.len() as u64);
                prop_assert_eq!(pages.is_full(), ring.0.len() == slots as usize);
            }
        }
    }

    #[test]
    fn a_pipe_of_the_kernel_holds_640_messages_of_100_bytes() {
        let mut pages = Pages::new(65_536);
        let put = |pages: &mut Pages, bytes| {
            let merged = pages.merge(bytes);
            merged + pages.append(bytes - merged)
        };
        let messages = (0..).take_while(|_| put(&mut pages, 100) == 100).count();
        assert_eq!(messages, 640);
    }

    #[test]
    fn a_capacity_is_rounded_up_to_a_power_of_two_of_pages() {
        let slots = |capacity| Pages::new(capacity).slots;
        assert_eq!([1, 4096, 4097, 9000, 65_536].map(slots), [1, 1, 2, 4, 16]);
        assert_eq!(slots(u64::MAX), 1 << 52);
        assert_eq!(Pages::new(u64::MAX).append(u64::MAX), u64::MAX);
    }
}
