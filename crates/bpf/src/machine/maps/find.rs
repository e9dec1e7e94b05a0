//! The way back from a value to its key.

use super::Store;
use crate::machine::Machine;
use crate::memory::Address;
use crate::object::MapId;

impl Machine {
    /// The key of the value of `map` in which `address` lies, and the address of that value.
    pub fn key_of(&self, map: MapId, address: Address) -> Option<(Vec<u8>, Address)> {
        let (tag, map) = (address.tag(), self.maps.get(map.0 as usize)?);
        let key = match &map.store {
            Store::Numbered(values) => {
                let width = if map.definition.kind.is_per_cpu() { self.cpus as usize } else { 1 };
                let place = values.iter().position(|&value| value == tag)?;
                ((place / width) as u32).to_le_bytes().to_vec()
            }
            Store::Keyed(table) => table.key_of(tag)?.to_vec(),
            _ => return None,
        };
        Some((key, Address::of(tag)))
    }
}
