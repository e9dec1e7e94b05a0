//! The variables of an object and of the kernel, by name.

use super::Machine;
use crate::memory::Address;
use crate::object::{Global, Link};

impl Machine {
    fn global(&self, name: &str) -> Option<&Global> {
        self.object.globals().iter().find(|global| global.name == name)
    }

    /// Where a global variable of the object lies. Of several of a name, the first.
    pub fn variable_address(&self, name: &str) -> Option<Address> {
        let global = self.global(name)?;
        let place = self.object.data.iter().position(|data| data.name == global.section)?;
        Some(Address::of(self.sections[place]).plus(u64::from(global.offset)))
    }

    /// The bytes of a global variable.
    pub fn variable(&self, name: &str) -> Option<&[u8]> {
        let size = self.global(name)?.size as usize;
        self.memory.bytes(self.variable_address(name)?.0, size)
    }

    /// Sets the first bytes of a global variable, also of one that programs cannot write, as a
    /// loader does before it loads them. Says whether there is such a variable of this size.
    #[must_use]
    pub fn set_variable(&mut self, name: &str, bytes: &[u8]) -> bool {
        let Some(global) = self.global(name) else { return false };
        let is_small = bytes.len() <= global.size as usize;
        let Some(address) = self.variable_address(name).filter(|_| is_small) else { return false };
        let from = address.0 as u32 as usize;
        let region = self.memory.region_mut(address.tag());
        let Some(to) = region.and_then(|region| region.get_mut(from..from + bytes.len())) else {
            return false;
        };
        to.copy_from_slice(bytes);
        true
    }

    /// Sets a global variable of up to eight bytes to a number.
    #[must_use]
    pub fn set_number(&mut self, name: &str, value: u64) -> bool {
        let Some(size) = self.global(name).map(|global| global.size as usize) else { return false };
        size <= 8 && self.set_variable(name, &value.to_le_bytes()[..size])
    }

    /// A global variable of up to eight bytes as a number, without its sign.
    pub fn number(&self, name: &str) -> Option<u64> {
        let bytes = self.variable(name)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// Where a variable of the kernel lies; of one for each CPU, that of `cpu`.
    pub fn kernel_variable(&self, name: &str, cpu: u32) -> Option<Address> {
        let placed = self.placed.iter().find(|placed| placed.name == name)?;
        placed.at.get(cpu as usize).or(placed.at.first()).copied()
    }

    /// The variable of a CPU, by the address that a program has of all of them.
    pub(crate) fn of_cpu(&self, handle: u64, cpu: u32) -> Option<Address> {
        let placed = self.placed.iter().find(|placed| placed.handle.tag() == (handle >> 32) as u32);
        Some(placed?.at.get(cpu as usize)?.plus(handle & 0xffff_ffff))
    }

    /// The address that an instruction has.
    pub(crate) fn linked(&self, link: Link) -> u64 {
        match link {
            Link::Program(program) => self.program_address(program),
            Link::Function(function) => self.function_address(function),
            Link::Map(map) => Address::of(self.maps[map.0 as usize].tag),
            Link::Data { data, offset } => Address::of(self.sections[data]).plus(offset),
            Link::Configuration(place) => self.configuration[place],
            Link::Variable(place) => {
                let name = &self.object.variables()[place].name;
                let placed = self.placed.iter().find(|placed| placed.name == *name);
                placed.map_or(Address::NULL, |placed| placed.handle)
            }
        }
        .0
    }
}
