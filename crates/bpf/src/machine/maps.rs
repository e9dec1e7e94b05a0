//! The maps of a machine, and what programs and those outside do with them.

mod find;
mod storage;
mod table;

use crate::fault::{Fault, FaultKind};
use crate::machine::{Machine, full};
use crate::memory::{Address, slot};
use crate::object::{MapDefinition, MapId, MapKind};
use std::collections::{BTreeMap, VecDeque};
use table::Table;

/// Errors that maps give to programs, as negative numbers.
pub(crate) mod error {
    /// There is no such value.
    pub const NOT_FOUND: i64 = -2;
    /// The map is full, or the number of the value is too large.
    pub const TOO_BIG: i64 = -7;
    /// An address is none.
    pub const BAD_ADDRESS: i64 = -14;
    /// There is such a value already.
    pub const EXISTS: i64 = -17;
    /// Arguments make no sense.
    pub const INVALID: i64 = -22;
    /// The map has no such operation.
    pub const NOT_SUPPORTED: i64 = -95;
}

/// The largest number of values of a map with numbers for keys.
const MOST_NUMBERED: u32 = 1 << 24;
/// The same, where each CPU has its own.
const MOST_NUMBERED_PER_CPU: u32 = 1 << 18;

/// `BPF_NOEXIST`, `BPF_EXIST` and `BPF_F_LOCK`.
const MUST_BE_NEW: u64 = 1;
const MUST_EXIST: u64 = 2;
const LOCK: u64 = 4;

/// A map.
#[derive(Clone)]
pub(crate) struct Map {
    pub definition: MapDefinition,
    /// The number of its region: its address.
    pub tag: u32,
    /// What its values are called, as a number.
    pub name: u32,
    pub store: Store,
}

/// Where the values of a map are. Values are regions, and are made when they are first used.
#[derive(Clone)]
pub(crate) enum Store {
    /// By number, and by CPU in each number.
    Numbered(Vec<u32>),
    Keyed(Table),
    /// By the slot of the owner: its number and that of the value.
    Owned(Vec<(u32, u32)>),
    Line(VecDeque<Box<[u8]>>),
    Maps(BTreeMap<Box<[u8]>, MapId>),
    Records,
}

/// The kind of a map that cannot be made, if it is one.
pub(crate) fn refuses(map: &MapDefinition) -> Option<MapKind> {
    let is_numbered = matches!(map.kind, MapKind::Array | MapKind::PerCpuArray);
    let most = if map.kind.is_per_cpu() { MOST_NUMBERED_PER_CPU } else { MOST_NUMBERED };
    let is_too_large = is_numbered && map.max_entries > most;
    let is_odd = is_numbered && map.key_size != 4;
    (matches!(map.kind, MapKind::Other(_)) || is_too_large || is_odd).then_some(map.kind)
}

impl Machine {
    /// Adds a map, as programs outside may do for a map of maps. Gives nothing if memory is full or
    /// if there are no maps of this kind.
    pub fn create_map(&mut self, definition: MapDefinition) -> Option<MapId> {
        if refuses(&definition).is_some() {
            return None;
        }
        self.add_map(definition)
    }

    pub(crate) fn add_map(&mut self, definition: MapDefinition) -> Option<MapId> {
        let store = match definition.kind {
            MapKind::Array | MapKind::PerCpuArray => Store::Numbered(Vec::new()),
            MapKind::Hash | MapKind::PerCpuHash => Store::Keyed(Table::new(false)),
            MapKind::LruHash | MapKind::LruPerCpuHash => Store::Keyed(Table::new(true)),
            MapKind::ArrayOfMaps | MapKind::HashOfMaps => Store::Maps(BTreeMap::new()),
            MapKind::Queue | MapKind::Stack => Store::Line(VecDeque::new()),
            MapKind::TaskStorage | MapKind::CgroupStorage => Store::Owned(Vec::new()),
            MapKind::RingBuffer | MapKind::PerfEventArray | MapKind::Other(_) => Store::Records,
        };
        let name = self.memory.name(&format!("the map `{}` itself", definition.name));
        let tag = self.memory.allocate(name, 0)?;
        let name = self.memory.name(&format!("a value of map `{}`", definition.name));
        let number = self.maps.len() as u32;
        self.maps.push(Map { definition, tag, name, store });
        if self.map_of_slot.len() <= slot(tag) {
            self.map_of_slot.resize(slot(tag) + 1, 0);
        }
        self.map_of_slot[slot(tag)] = number + 1;
        Some(MapId(number))
    }

    /// The address of a map, as programs have it.
    pub fn map_address(&self, map: MapId) -> Address {
        self.maps.get(map.0 as usize).map_or(Address::NULL, |map| Address::of(map.tag))
    }

    /// The map of this name.
    pub fn map(&self, name: &str) -> Option<MapId> {
        let place = self.maps.iter().position(|map| map.definition.name == name)?;
        Some(MapId(place as u32))
    }

    /// What a map is.
    pub fn map_definition(&self, map: MapId) -> Option<&MapDefinition> {
        self.maps.get(map.0 as usize).map(|map| &map.definition)
    }

    /// The map at an address.
    pub fn map_at(&self, address: u64) -> Result<MapId, Fault> {
        let tag = (address >> 32) as u32;
        let number = self.map_of_slot.get(slot(tag)).copied().unwrap_or(0).wrapping_sub(1);
        match self.maps.get(number as usize) {
            Some(map) if Address::of(map.tag).0 == address => Ok(MapId(number)),
            _ => {
                let what = format!("uses {address:#x} as a map, which is none");
                Err(Fault::of(FaultKind::Argument, what))
            }
        }
    }

    /// Puts a map into a map of maps. Says whether both are what that takes.
    pub fn set_inner(&mut self, outer: MapId, key: &[u8], inner: MapId) -> bool {
        let is_there = (inner.0 as usize) < self.maps.len();
        let Some(map) = self.maps.get_mut(outer.0 as usize).filter(|_| is_there) else {
            return false;
        };
        let is_small = map.definition.kind == MapKind::HashOfMaps
            || number(key).is_some_and(|number| number < map.definition.max_entries);
        let Store::Maps(maps) = &mut map.store else { return false };
        is_small && key.len() == map.definition.key_size as usize && {
            maps.insert(key.into(), inner);
            true
        }
    }

    /// The value of a key, on the machine's CPU; null if there is none.
    pub fn map_lookup(&mut self, map: MapId, key: &[u8]) -> Result<Address, Fault> {
        self.lookup(map, key, self.cpu)
    }

    /// The value of a key on a CPU.
    pub fn map_lookup_of_cpu(
        &mut self,
        map: MapId,
        key: &[u8],
        cpu: u32,
    ) -> Result<Address, Fault> {
        self.lookup(map, key, cpu)
    }

    /// The value of the key that is at an address.
    pub(crate) fn lookup_at(&mut self, map: MapId, key: u64, cpu: u32) -> Result<Address, Fault> {
        let size = self.maps[map.0 as usize].definition.key_size as usize;
        if size == 4 {
            let key: Option<[u8; 4]> = self.memory.load(key);
            if let Some(key) = key {
                return self.lookup(map, &key, cpu);
            }
        }
        let bytes = self.memory.bytes(key, size).map(<[u8]>::to_vec);
        let bytes = bytes.ok_or_else(|| self.memory.why(key, size, "reads the key in"))?;
        self.lookup(map, &bytes, cpu)
    }

    fn lookup(&mut self, map: MapId, key: &[u8], cpu: u32) -> Result<Address, Fault> {
        let Some(of) = self.maps.get_mut(map.0 as usize) else { return Ok(Address::NULL) };
        let per_cpu = of.definition.kind.is_per_cpu();
        if key.len() != of.definition.key_size as usize || cpu >= self.cpus {
            return Ok(Address::NULL);
        }
        let cpu = if per_cpu { cpu } else { 0 };
        match &mut of.store {
            Store::Numbered(values) => {
                let index = number(key).filter(|&index| index < of.definition.max_entries);
                let Some(index) = index else { return Ok(Address::NULL) };
                let width = if per_cpu { self.cpus } else { 1 } as usize;
                let place = index as usize * width + cpu as usize;
                if let Some(&tag) = values.get(place).filter(|&&tag| tag != 0) {
                    return Ok(Address::of(tag));
                }
                if values.len() <= place {
                    if !self.memory.charge((place + 1 - values.len()) * size_of::<u32>()) {
                        return Err(full());
                    }
                    values.resize(place + 1, 0);
                }
                let size = of.definition.value_size as usize;
                let tag = self.memory.allocate(of.name, size).ok_or_else(full)?;
                values[place] = tag;
                Ok(Address::of(tag))
            }
            Store::Keyed(table) => Ok(table
                .find(key)
                .map_or(Address::NULL, |values| Address::of(values[cpu as usize]))),
            Store::Maps(maps) => {
                let inner = maps.get(key).copied();
                Ok(inner.map_or(Address::NULL, |inner| self.map_address(inner)))
            }
            Store::Owned(_) | Store::Line(_) | Store::Records => Ok(Address::NULL),
        }
    }

    /// Sets the value of a key, on the machine's CPU. `flags` are `BPF_NOEXIST` (1), `BPF_EXIST`
    /// (2) and `BPF_F_LOCK` (4). Gives 0 or a negative error number.
    pub fn map_update(
        &mut self,
        map: MapId,
        key: &[u8],
        value: &[u8],
        flags: u64,
    ) -> Result<i64, Fault> {
        let Some(of) = self.maps.get(map.0 as usize) else { return Ok(error::INVALID) };
        let definition = &of.definition;
        let fits = key.len() == definition.key_size as usize
            && value.len() == definition.value_size as usize;
        if !fits || flags & !LOCK > MUST_EXIST {
            return Ok(error::INVALID);
        }
        let per_cpu = definition.kind.is_per_cpu();
        match &of.store {
            Store::Numbered(_) => {
                if number(key).is_none_or(|index| index >= definition.max_entries) {
                    return Ok(error::TOO_BIG);
                }
                if flags & MUST_BE_NEW != 0 {
                    return Ok(error::EXISTS);
                }
                let address = self.lookup(map, key, self.cpu)?;
                self.set_value(map, address, value);
                Ok(0)
            }
            Store::Keyed(table) => {
                let existing = table.peek(key);
                if existing.is_some() && flags & MUST_BE_NEW != 0 {
                    return Ok(error::EXISTS);
                }
                if existing.is_none() && flags & MUST_EXIST != 0 {
                    return Ok(error::NOT_FOUND);
                }
                if let Some(values) = existing
                    && (per_cpu || flags & LOCK != 0)
                {
                    let address = Address::of(values[if per_cpu { self.cpu as usize } else { 0 }]);
                    self.set_value(map, address, value);
                    return Ok(0);
                }
                self.insert(map, key, value)
            }
            Store::Maps(_) | Store::Owned(_) | Store::Line(_) | Store::Records => {
                Ok(error::NOT_SUPPORTED)
            }
        }
    }

    /// Puts a new value into a map with keys. A value that was there lives on until no program
    /// runs.
    fn insert(&mut self, map: MapId, key: &[u8], value: &[u8]) -> Result<i64, Fault> {
        let of = &mut self.maps[map.0 as usize];
        let Store::Keyed(table) = &mut of.store else { return Ok(error::NOT_SUPPORTED) };
        let is_full = table.len() >= of.definition.max_entries as usize;
        let mut gone = table.remove(key);
        if gone.is_none() && is_full {
            gone = table.remove_oldest();
            if gone.is_none() {
                return Ok(error::TOO_BIG);
            }
        }
        let width = if of.definition.kind.is_per_cpu() { self.cpus } else { 1 };
        let mut values = Vec::new();
        for _ in 0..width {
            let size = of.definition.value_size as usize;
            values.push(self.memory.allocate(of.name, size).ok_or_else(full)?);
        }
        let at = Address::of(values[if width == 1 { 0 } else { self.cpu as usize }]);
        table.insert(key, values);
        self.release(gone.into_iter().flatten());
        self.set_value(map, at, value);
        Ok(0)
    }

    /// Deletes the value of a key. Gives 0 or a negative error number.
    pub fn map_delete(&mut self, map: MapId, key: &[u8]) -> Result<i64, Fault> {
        let Some(of) = self.maps.get_mut(map.0 as usize) else { return Ok(error::INVALID) };
        match &mut of.store {
            Store::Numbered(_) => Ok(error::INVALID),
            Store::Keyed(table) => match table.remove(key) {
                None => Ok(error::NOT_FOUND),
                Some(values) => {
                    self.release(values.into_iter());
                    Ok(0)
                }
            },
            Store::Maps(maps) => Ok(if maps.remove(key).is_some() { 0 } else { error::NOT_FOUND }),
            Store::Owned(_) | Store::Line(_) | Store::Records => Ok(error::NOT_SUPPORTED),
        }
    }

    /// The keys of a map with keys, in an order that is the same in every run.
    pub fn map_keys(&self, map: MapId) -> Vec<Vec<u8>> {
        let Some(of) = self.maps.get(map.0 as usize) else { return Vec::new() };
        match &of.store {
            Store::Keyed(table) => table.keys().map(<[u8]>::to_vec).collect(),
            Store::Numbered(_) => {
                (0..of.definition.max_entries).map(|index| index.to_le_bytes().to_vec()).collect()
            }
            Store::Maps(maps) => maps.keys().map(|key| key.to_vec()).collect(),
            Store::Owned(_) | Store::Line(_) | Store::Records => Vec::new(),
        }
    }

    /// The key at a place of a map with keys, for loops over all of them.
    pub(crate) fn key_at(&self, map: MapId, place: usize) -> Option<Option<Vec<u8>>> {
        match &self.maps[map.0 as usize].store {
            Store::Keyed(table) => table.key_at(place).map(|key| key.map(<[u8]>::to_vec)),
            Store::Numbered(_) => {
                let index = u32::try_from(place).ok();
                let most = self.maps[map.0 as usize].definition.max_entries;
                index.filter(|&index| index < most).map(|index| Some(index.to_le_bytes().to_vec()))
            }
            _ => None,
        }
    }

    /// Copies a value, but for what a program cannot set.
    fn set_value(&mut self, map: MapId, at: Address, value: &[u8]) {
        let special = &self.maps[map.0 as usize].definition.special;
        let Some(to) = self.memory.region_mut(at.tag()) else { return };
        if special.is_empty() {
            to.copy_from_slice(value);
            return;
        }
        for (byte, (to, &from)) in to.iter_mut().zip(value).enumerate() {
            let byte = byte as u32;
            if !special.iter().any(|&(first, size)| byte >= first && byte - first < size) {
                *to = from;
            }
        }
    }

    /// Frees values: at once, or when no program runs.
    pub(crate) fn release(&mut self, values: impl Iterator<Item = u32>) {
        for tag in values {
            if self.nesting == 0 {
                self.memory.free(tag);
            } else {
                self.deferred.push(tag);
            }
        }
    }
}

/// A key that is a number.
fn number(key: &[u8]) -> Option<u32> {
    key.try_into().ok().map(u32::from_le_bytes)
}
