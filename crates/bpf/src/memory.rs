//! The memory of a machine: objects of their own, each with its bounds.
//!
//! An address is the number of a region in its upper half, and a byte of the region in its lower
//! half. So pointer arithmetic works, and no access reaches another region. The number of a region
//! is its slot and a generation: what was freed is not found again, though its slot is.

use crate::fault::{Fault, FaultKind};
use std::collections::{BTreeMap, VecDeque};

/// Bits of a region's number that are its slot.
const SLOT_BITS: u32 = 24;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;
/// The generations of a slot. The highest bit of an address stays 0, so none is an error number.
const GENERATIONS: u32 = 128;
/// Free slots that wait before the first of them is used again.
const WAITING: usize = 1024;

/// An address as a program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Address(pub u64);

impl Address {
    /// The null pointer.
    pub const NULL: Address = Address(0);

    /// The address `bytes` further.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Address {
        Address(self.0.wrapping_add(bytes))
    }

    /// Whether it is the null pointer.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The region that it points into; it stays the same as long as that lives.
    pub(crate) fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The start of the region of this number.
    pub(crate) fn of(tag: u32) -> Address {
        Address(u64::from(tag) << 32)
    }
}

/// The slot of a region's number.
pub(crate) fn slot(tag: u32) -> usize {
    (tag & SLOT_MASK) as usize
}

#[derive(Clone)]
struct Region {
    bytes: Box<[u8]>,
    /// Its number; 0 when it is free.
    tag: u32,
    /// What it is, as a number in `names`.
    name: u32,
    is_read_only: bool,
}

/// The memory.
#[derive(Clone)]
pub(crate) struct Memory {
    regions: Vec<Region>,
    names: Vec<String>,
    known: BTreeMap<String, u32>,
    free: VecDeque<u32>,
    /// The bytes in use, and how many may be.
    used: u64,
    largest: u64,
}

impl Memory {
    /// Memory of up to `largest` bytes.
    pub fn new(largest: u64) -> Memory {
        let mut memory = Memory {
            regions: Vec::new(),
            names: Vec::new(),
            known: BTreeMap::new(),
            free: VecDeque::new(),
            used: 0,
            largest,
        };
        let name = memory.name("null");
        memory.regions.push(Region { bytes: Box::default(), tag: 0, name, is_read_only: true });
        memory
    }

    /// The number of a name for regions.
    pub fn name(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.known.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_string());
        self.known.insert(name.to_string(), number);
        number
    }

    /// The bytes in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Counts bytes beside the regions, of queues and tables. Says whether there is room for them.
    #[must_use]
    pub fn charge(&mut self, bytes: usize) -> bool {
        let used = self.used.checked_add(bytes as u64).filter(|&used| used <= self.largest);
        self.used = used.unwrap_or(self.used);
        used.is_some()
    }

    /// Counts bytes no longer that were counted before.
    pub fn uncharge(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes as u64);
    }

    /// A region of zeros, unless memory is at its end.
    pub fn allocate(&mut self, name: u32, size: usize) -> Option<u32> {
        let used = self.used.checked_add(size as u64).filter(|&used| used <= self.largest)?;
        if size > i32::MAX as usize {
            return None;
        }
        let bytes = vec![0; size].into_boxed_slice();
        let free = if self.free.len() > WAITING { self.free.pop_front() } else { None };
        let tag = match free {
            Some(tag) => {
                self.regions[slot(tag)] = Region { bytes, tag, name, is_read_only: false };
                tag
            }
            None => {
                let tag = u32::try_from(self.regions.len()).ok().filter(|&tag| tag <= SLOT_MASK)?;
                self.regions.push(Region { bytes, tag, name, is_read_only: false });
                tag
            }
        };
        self.used = used;
        Some(tag)
    }

    /// Frees a region.
    pub fn free(&mut self, tag: u32) {
        let Some(region) = self.regions.get_mut(slot(tag)) else { return };
        if region.tag != tag || tag == 0 {
            return;
        }
        self.used -= region.bytes.len() as u64;
        region.bytes = Box::default();
        region.tag = 0;
        let generation = tag >> SLOT_BITS;
        if generation + 1 < GENERATIONS {
            self.free.push_back((generation + 1) << SLOT_BITS | tag & SLOT_MASK);
        }
    }

    /// Makes a region read-only for programs.
    pub fn protect(&mut self, tag: u32) {
        self.regions[slot(tag)].is_read_only = true;
    }

    /// The bytes of a region that lives.
    pub fn region(&self, tag: u32) -> Option<&[u8]> {
        let region = self.regions.get(slot(tag))?;
        (region.tag == tag).then_some(&region.bytes)
    }

    /// The bytes of a region that lives, to write, though a program could not.
    pub fn region_mut(&mut self, tag: u32) -> Option<&mut [u8]> {
        let region = self.regions.get_mut(slot(tag))?;
        (region.tag == tag).then_some(&mut region.bytes)
    }

    /// Loads bytes.
    #[inline(always)]
    pub fn load<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let tag = (address >> 32) as u32;
        let region = self.regions.get(slot(tag))?;
        if region.tag != tag {
            return None;
        }
        region.bytes.get(address as u32 as usize..)?.first_chunk::<N>().copied()
    }

    /// Stores bytes.
    #[inline(always)]
    pub fn store<const N: usize>(&mut self, address: u64, bytes: [u8; N]) -> Option<()> {
        let tag = (address >> 32) as u32;
        let region = self.regions.get_mut(slot(tag))?;
        if region.tag != tag || region.is_read_only {
            return None;
        }
        *region.bytes.get_mut(address as u32 as usize..)?.first_chunk_mut::<N>()? = bytes;
        Some(())
    }

    /// Bytes to read.
    pub fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let from = address as u32 as usize;
        self.region((address >> 32) as u32)?.get(from..from.checked_add(length)?)
    }

    /// Bytes to write.
    pub fn bytes_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let from = address as u32 as usize;
        let tag = (address >> 32) as u32;
        let region = self.regions.get_mut(slot(tag))?;
        if region.tag != tag || region.is_read_only {
            return None;
        }
        region.bytes.get_mut(from..from.checked_add(length)?)
    }

    /// Why an access failed.
    #[cold]
    pub fn why(&self, address: u64, length: usize, verb: &str) -> Fault {
        let (tag, offset) = ((address >> 32) as u32, address as u32);
        let bytes = if length == 1 { "1 byte".to_string() } else { format!("{length} bytes") };
        // Before the start of a region is, as a number, at the end of the one before it.
        let next = (tag.wrapping_add(1), offset.wrapping_neg());
        if offset > i32::MAX as u32
            && let Some(region) = self.regions.get(slot(next.0))
            && region.tag == next.0
            && next.0 != 0
        {
            let name = self.name_of(region);
            let what = format!("{verb} {bytes} at {} bytes before {name}", next.1);
            return Fault::of(FaultKind::Bounds, what);
        }
        if slot(tag) == 0 {
            let what = format!("{verb} {bytes} through a null pointer (address {address:#x})");
            return Fault::of(FaultKind::Null, what);
        }
        let Some(region) = self.regions.get(slot(tag)) else {
            let what = format!("{verb} {bytes} at {address:#x}, which is no address");
            return Fault::of(FaultKind::Bounds, what);
        };
        let name = self.name_of(region);
        if region.tag != tag {
            let what = format!("{verb} {bytes} at offset {offset} of {name}, which was freed");
            return Fault::of(FaultKind::Freed, what);
        }
        let size = region.bytes.len();
        if offset as usize + length <= size {
            let what = format!("{verb} {bytes} at offset {offset} of {name}, which is read-only");
            return Fault::of(FaultKind::ReadOnly, what);
        }
        let what = format!("{verb} {bytes} at offset {offset} of the {size} bytes of {name}");
        Fault::of(FaultKind::Bounds, what)
    }

    /// What the region of this number is, as a number and in words, if it lives.
    pub fn named(&self, tag: u32) -> Option<(u32, &str)> {
        let region = self.regions.get(slot(tag)).filter(|region| region.tag == tag && tag != 0)?;
        Some((region.name, self.name_of(region)))
    }

    fn name_of(&self, region: &Region) -> &str {
        &self.names[region.name as usize]
    }
}
