//! Maps that are not tables: values of tasks and cgroups, queues, and records.

use super::{Store, error};
use crate::fault::{Fault, FaultKind};
use crate::machine::{Machine, full};
use crate::memory::{Address, slot};
use crate::object::{MapId, MapKind};

impl Machine {
    /// The value that a map has for a task or a cgroup, by the owner's address. If there is none,
    /// `create` says whether it is made. Null if there is none.
    pub fn storage(&mut self, map: MapId, owner: Address, create: bool) -> Result<Address, Fault> {
        let is_valid = self.is_valid(owner);
        let Some(of) = self.maps.get_mut(map.0 as usize) else { return Ok(Address::NULL) };
        let Store::Owned(values) = &mut of.store else {
            let what = format!("uses map `{}` for what tasks own", of.definition.name);
            return Err(Fault::of(FaultKind::Argument, what));
        };
        let (tag, place) = (owner.tag(), slot(owner.tag()));
        if let Some(&(of_owner, value)) = values.get(place)
            && of_owner == tag
            && tag != 0
        {
            return Ok(Address::of(value));
        }
        if owner.is_null() || !create {
            return Ok(Address::NULL);
        }
        if !is_valid {
            return Err(self.memory.why(owner.0, 1, "wants a value of its own for"));
        }
        if values.len() <= place {
            values.resize(place + 1, (0, 0));
        }
        let size = of.definition.value_size as usize;
        let value = self.memory.allocate(of.name, size).ok_or_else(full)?;
        values[place] = (tag, value);
        Ok(Address::of(value))
    }

    /// Deletes the value that a map has for an owner. Gives 0 or a negative error number.
    pub fn storage_delete(&mut self, map: MapId, owner: Address) -> i64 {
        if self.forget_owner(map.0 as usize, owner.tag()) { 0 } else { error::NOT_FOUND }
    }

    /// Deletes what a map has for an owner. Says whether it had a value.
    pub(crate) fn forget_owner(&mut self, map: usize, tag: u32) -> bool {
        let Some(Store::Owned(values)) = self.maps.get_mut(map).map(|of| &mut of.store) else {
            return false;
        };
        match values.get_mut(slot(tag)) {
            Some(entry) if entry.0 == tag && tag != 0 => {
                let value = std::mem::take(entry).1;
                self.release(std::iter::once(value));
                true
            }
            _ => false,
        }
    }

    /// Puts a value into a queue or stack. The flag `BPF_EXIST` (2) has the oldest go from a full
    /// one. Gives 0 or a negative error number.
    pub fn queue_push(&mut self, map: MapId, value: &[u8], flags: u64) -> i64 {
        let Some(of) = self.maps.get_mut(map.0 as usize) else { return error::INVALID };
        let Store::Line(values) = &mut of.store else { return error::INVALID };
        if value.len() != of.definition.value_size as usize || !matches!(flags, 0 | 2) {
            return error::INVALID;
        }
        let is_full = values.len() >= of.definition.max_entries as usize;
        if is_full && flags == 0 {
            return error::TOO_BIG;
        }
        if is_full {
            let Some(gone) = values.pop_front() else { return error::TOO_BIG };
            self.memory.uncharge(charged(&gone));
        }
        if !self.memory.charge(charged(value)) {
            return error::TOO_BIG;
        }
        values.push_back(value.into());
        0
    }

    /// The next value of a queue or stack, which leaves it if `takes` says so.
    pub fn queue_next(&mut self, map: MapId, takes: bool) -> Option<Box<[u8]>> {
        let of = self.maps.get_mut(map.0 as usize)?;
        let Store::Line(values) = &mut of.store else { return None };
        let next = match (of.definition.kind == MapKind::Stack, takes) {
            (true, true) => values.pop_back(),
            (true, false) => values.back().cloned(),
            (false, true) => values.pop_front(),
            (false, false) => values.front().cloned(),
        };
        self.memory.uncharge(next.as_deref().filter(|_| takes).map_or(0, charged));
        next
    }

    /// The number of values in a queue or stack, or of keys in a table.
    pub fn map_length(&self, map: MapId) -> usize {
        match self.maps.get(map.0 as usize).map(|of| &of.store) {
            Some(Store::Line(values)) => values.len(),
            Some(Store::Keyed(table)) => table.len(),
            Some(Store::Maps(maps)) => maps.len(),
            Some(Store::Owned(values)) => values.iter().filter(|entry| entry.0 != 0).count(),
            _ => 0,
        }
    }
}

/// What a value in a queue counts as, with its place.
fn charged(value: &[u8]) -> usize {
    value.len() + size_of::<Box<[u8]>>()
}
