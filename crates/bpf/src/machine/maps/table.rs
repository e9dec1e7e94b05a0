//! Values by key. The order of the keys is that of their places, and so the same in every run.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// A hash without a seed (FNV-1a, eight bytes at a time).
#[derive(Default)]
pub(crate) struct Fixed(u64);

impl Hasher for Fixed {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        for &byte in rest {
            self.add(u64::from(byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

impl Fixed {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[derive(Clone)]
struct Entry {
    key: Box<[u8]>,
    /// One value, or one for each CPU.
    values: Vec<u32>,
    used: u64,
}

/// The table.
#[derive(Clone)]
pub(crate) struct Table {
    /// Looked up, never walked through.
    places: HashMap<Box<[u8]>, u32, BuildHasherDefault<Fixed>>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Places by their last use, if the oldest is to go when the table is full.
    recent: Option<BTreeMap<u64, u32>>,
    clock: u64,
}

impl Table {
    /// An empty table, which may have to forget its oldest entries.
    pub fn new(forgets: bool) -> Table {
        Table {
            places: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            recent: forgets.then(BTreeMap::new),
            clock: 0,
        }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The values of a key, which is used by that.
    pub fn find(&mut self, key: &[u8]) -> Option<&[u32]> {
        let &place = self.places.get(key)?;
        let entry = self.entries[place as usize].as_mut()?;
        if let Some(recent) = &mut self.recent {
            recent.remove(&entry.used);
            self.clock += 1;
            entry.used = self.clock;
            recent.insert(self.clock, place);
        }
        Some(&entry.values)
    }

    /// The values of a key.
    pub fn peek(&self, key: &[u8]) -> Option<&[u32]> {
        let &place = self.places.get(key)?;
        Some(&self.entries[place as usize].as_ref()?.values)
    }

    /// Adds a key that is not there.
    pub fn insert(&mut self, key: &[u8], values: Vec<u32>) {
        self.clock += 1;
        let entry = Some(Entry { key: key.into(), values, used: self.clock });
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.places.insert(key.into(), place);
        if let Some(recent) = &mut self.recent {
            recent.insert(self.clock, place);
        }
    }

    /// Takes a key out, and gives its values.
    pub fn remove(&mut self, key: &[u8]) -> Option<Vec<u32>> {
        let place = self.places.remove(key)?;
        let entry = self.entries[place as usize].take()?;
        self.free.push(place);
        if let Some(recent) = &mut self.recent {
            recent.remove(&entry.used);
        }
        Some(entry.values)
    }

    /// Takes out the key that was used longest ago, if the table forgets.
    pub fn remove_oldest(&mut self) -> Option<Vec<u32>> {
        let (_, &place) = self.recent.as_ref()?.first_key_value()?;
        let key = self.entries[place as usize].as_ref()?.key.clone();
        self.remove(&key)
    }

    /// The keys in their order.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().flatten().map(|entry| &*entry.key)
    }

    /// The key at a place, if there is one; nothing behind the last place.
    pub fn key_at(&self, place: usize) -> Option<Option<&[u8]>> {
        self.entries.get(place).map(|entry| entry.as_ref().map(|entry| &*entry.key))
    }
}

impl Table {
    /// The key of the value in a region.
    pub fn key_of(&self, region: u32) -> Option<&[u8]> {
        self.key_and_place_of(region).map(|(key, _)| key)
    }

    /// The same, and which of the key's values it is.
    pub fn key_and_place_of(&self, region: u32) -> Option<(&[u8], usize)> {
        self.all().find_map(|(key, values)| {
            let place = values.iter().position(|&value| value == region)?;
            Some((key, place))
        })
    }

    /// All keys and their values, in their order.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], &[u32])> {
        self.entries.iter().flatten().map(|entry| (&*entry.key, &*entry.values))
    }
}
