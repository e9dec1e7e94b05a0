//! What lies at an address, and what a map has: for those outside who show it. Nothing changes by
//! that, not even which value of a map was used last.

use super::Machine;
use super::maps::{Map, Store};
use crate::btf::TypeId;
use crate::fault::Fault;
use crate::memory::{Address, slot};
use crate::object::MapId;

/// What memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A global variable of the object.
    Variable(String),
    /// A value of a map, by its key; of a CPU, if each has its own.
    Value {
        /// The map.
        map: MapId,
        /// The key.
        key: Vec<u8>,
        /// The CPU.
        cpu: Option<u32>,
    },
    /// A value that a map has for a task or a cgroup.
    Owned {
        /// The map.
        map: MapId,
        /// The task or cgroup.
        owner: Address,
    },
    /// Something else, in words.
    Other(String),
}

/// Memory that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub holder: Holder,
    /// Where that begins.
    pub start: Address,
    /// Its type, if that is known.
    pub kind: Option<TypeId>,
}

impl Machine {
    /// What lies at an address, if something does that lives.
    pub fn found(&self, address: Address) -> Option<Found> {
        let (tag, offset) = (address.tag(), address.0 as u32);
        let (number, name) = self.memory.named(tag)?;
        if let Some(place) = self.sections.iter().position(|&section| section == tag) {
            let section = &self.object.data[place].name;
            let global = self.object.globals().iter().find(|global| {
                global.section == *section
                    && global.offset <= offset
                    && offset - global.offset < global.size
            })?;
            return Some(Found {
                holder: Holder::Variable(global.name.clone()),
                start: Address::of(tag).plus(global.offset.into()),
                kind: Some(global.kind),
            });
        }
        let start = Address::of(tag);
        if let Some(map) = self.maps.iter().position(|map| map.name == number)
            && let Some(holder) = self.holder(MapId(map as u32), tag)
        {
            return Some(Found { holder, start, kind: self.maps[map].definition.value });
        }
        Some(Found { holder: Holder::Other(name.to_string()), start, kind: None })
    }

    fn holder(&self, map: MapId, tag: u32) -> Option<Holder> {
        let of = &self.maps[map.0 as usize];
        match &of.store {
            Store::Numbered(values) => {
                let place = values.iter().position(|&value| value == tag)?;
                Some(self.numbered(of, map, place))
            }
            Store::Keyed(table) => {
                let (key, place) = table.key_and_place_of(tag)?;
                let cpu = of.definition.kind.is_per_cpu().then_some(place as u32);
                Some(Holder::Value { map, key: key.to_vec(), cpu })
            }
            Store::Owned(values) => {
                let (owner, _) = values.iter().find(|(_, value)| *value == tag)?;
                Some(Holder::Owned { map, owner: Address::of(*owner) })
            }
            Store::Line(_) | Store::Maps(_) | Store::Records => None,
        }
    }

    fn numbered(&self, of: &Map, map: MapId, place: usize) -> Holder {
        let per_cpu = of.definition.kind.is_per_cpu();
        let width = if per_cpu { self.cpus as usize } else { 1 };
        Holder::Value {
            map,
            key: ((place / width) as u32).to_le_bytes().to_vec(),
            cpu: per_cpu.then_some((place % width) as u32),
        }
    }

    /// The values of a map, each with what it is of, in an order that is the same in every run. Of an
    /// array they are those that were used. A queue has none with an address.
    pub fn map_values(&self, map: MapId) -> Vec<(Holder, Address)> {
        let Some(of) = self.maps.get(map.0 as usize) else { return Vec::new() };
        match &of.store {
            Store::Numbered(values) => values
                .iter()
                .enumerate()
                .filter(|&(_, &tag)| tag != 0)
                .map(|(place, &tag)| (self.numbered(of, map, place), Address::of(tag)))
                .collect(),
            Store::Keyed(table) => {
                let per_cpu = of.definition.kind.is_per_cpu();
                let values = table.all().flat_map(|(key, values)| {
                    values.iter().enumerate().map(move |(place, &tag)| (key, place, tag))
                });
                values
                    .map(|(key, place, tag)| {
                        let cpu = per_cpu.then_some(place as u32);
                        (Holder::Value { map, key: key.to_vec(), cpu }, Address::of(tag))
                    })
                    .collect()
            }
            Store::Owned(values) => values
                .iter()
                .filter(|&&(owner, _)| owner != 0)
                .map(|&(owner, tag)| {
                    (Holder::Owned { map, owner: Address::of(owner) }, Address::of(tag))
                })
                .collect(),
            Store::Line(_) | Store::Maps(_) | Store::Records => Vec::new(),
        }
    }

    /// The bytes from an address on, at most `length`, up to the end of what it is in.
    pub fn bytes_up_to(&self, address: Address, length: usize) -> Result<&[u8], Fault> {
        let rest = self.memory.region(address.tag()).map_or(0, <[u8]>::len);
        let rest = rest.saturating_sub(address.0 as u32 as usize);
        self.bytes(address, length.min(rest))
    }

    /// Whether an address is in the stack of a program or in the arguments that it was given.
    pub fn is_of_a_call(&self, address: Address) -> bool {
        let tag = address.tag();
        slot(tag) != 0 && (self.frames.contains(&tag) || self.contexts.contains(&tag))
    }
}
