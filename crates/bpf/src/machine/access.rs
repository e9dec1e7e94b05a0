//! Memory as those outside of a machine use it.

use super::{Machine, full};
use crate::btf::Field;
use crate::fault::{Fault, FaultKind};
use crate::memory::{Address, slot};

impl Machine {
    /// Memory of `size` zeros; `what` it is, faults say.
    pub fn allocate(&mut self, what: &str, size: usize) -> Result<Address, Fault> {
        let name = self.memory.name(what);
        self.memory.allocate(name, size).map(Address::of).ok_or_else(full)
    }

    /// Frees memory, with the values that maps have for it as a task or cgroup. Later uses fault.
    pub fn free(&mut self, address: Address) -> Result<(), Fault> {
        if address.0 as u32 != 0 || self.memory.region(address.tag()).is_none() {
            return Err(self.memory.why(address.0, 0, "frees"));
        }
        for map in 0..self.maps.len() {
            self.forget_owner(map, address.tag());
        }
        self.memory.free(address.tag());
        Ok(())
    }

    /// Whether an address is in memory that lives.
    pub fn is_valid(&self, address: Address) -> bool {
        slot(address.tag()) != 0 && self.memory.region(address.tag()).is_some()
    }

    /// Bytes.
    pub fn bytes(&self, address: Address, length: usize) -> Result<&[u8], Fault> {
        let bytes = self.memory.bytes(address.0, length);
        bytes.ok_or_else(|| self.memory.why(address.0, length, "reads"))
    }

    /// Writes bytes.
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), Fault> {
        let Some(to) = self.memory.bytes_mut(address.0, bytes.len()) else {
            return Err(self.memory.why(address.0, bytes.len(), "writes"));
        };
        to.copy_from_slice(bytes);
        Ok(())
    }

    /// A byte.
    pub fn read_u8(&self, address: Address) -> Result<u8, Fault> {
        self.read(address).map(u8::from_le_bytes)
    }

    /// Two bytes.
    pub fn read_u16(&self, address: Address) -> Result<u16, Fault> {
        self.read(address).map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn read_u32(&self, address: Address) -> Result<u32, Fault> {
        self.read(address).map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn read_u64(&self, address: Address) -> Result<u64, Fault> {
        self.read(address).map(u64::from_le_bytes)
    }

    /// Writes a byte.
    pub fn write_u8(&mut self, address: Address, value: u8) -> Result<(), Fault> {
        self.store(address, value.to_le_bytes())
    }

    /// Writes two bytes.
    pub fn write_u16(&mut self, address: Address, value: u16) -> Result<(), Fault> {
        self.store(address, value.to_le_bytes())
    }

    /// Writes four bytes.
    pub fn write_u32(&mut self, address: Address, value: u32) -> Result<(), Fault> {
        self.store(address, value.to_le_bytes())
    }

    /// Writes eight bytes.
    pub fn write_u64(&mut self, address: Address, value: u64) -> Result<(), Fault> {
        self.store(address, value.to_le_bytes())
    }

    fn read<const N: usize>(&self, address: Address) -> Result<[u8; N], Fault> {
        self.memory.load(address.0).ok_or_else(|| self.memory.why(address.0, N, "reads"))
    }

    fn store<const N: usize>(&mut self, address: Address, bytes: [u8; N]) -> Result<(), Fault> {
        match self.memory.store(address.0, bytes) {
            Some(()) => Ok(()),
            None => Err(self.memory.why(address.0, N, "writes")),
        }
    }

    /// The number in a field of up to eight bytes of the structure at an address, without its sign.
    pub fn field(&self, structure: Address, field: Field) -> Result<u64, Fault> {
        let word = self.word(structure, field)?;
        Ok(match field.bits {
            None => word,
            Some((first, count)) => word >> first & mask(count),
        })
    }

    /// Sets a field of up to eight bytes of the structure at an address.
    pub fn set_field(&mut self, structure: Address, field: Field, value: u64) -> Result<(), Fault> {
        let word = match field.bits {
            None => value,
            Some((first, count)) => {
                let others = self.word(structure, field)? & !(mask(count) << first);
                others | (value & mask(count)) << first
            }
        };
        let bytes = word.to_le_bytes();
        let size = bytes.len().min(field.size as usize);
        self.write(structure.plus(u64::from(field.offset)), &bytes[..size])
    }

    fn word(&self, structure: Address, field: Field) -> Result<u64, Fault> {
        if field.size > 8 {
            let what = format!("uses a field of {} bytes as a number", field.size);
            return Err(Fault::of(FaultKind::Argument, what));
        }
        let mut word = [0; 8];
        let at = structure.plus(u64::from(field.offset));
        word[..field.size as usize].copy_from_slice(self.bytes(at, field.size as usize)?);
        Ok(u64::from_le_bytes(word))
    }

    /// The text at an address up to its zero, of at most `longest` bytes. What is not UTF-8 is
    /// replaced.
    pub fn text(&self, address: Address, longest: usize) -> Result<String, Fault> {
        let region = self.memory.region(address.tag());
        let rest = region.and_then(|region| region.get(address.0 as u32 as usize..));
        let rest = rest.ok_or_else(|| self.memory.why(address.0, 1, "reads"))?;
        let end = rest.iter().take(longest).position(|&byte| byte == 0);
        match end {
            Some(end) => Ok(String::from_utf8_lossy(&rest[..end]).into_owned()),
            None if rest.len() >= longest => {
                Ok(String::from_utf8_lossy(&rest[..longest]).into_owned())
            }
            None => {
                let behind = address.plus(rest.len() as u64);
                Err(self.memory.why(behind.0, 1, "reads"))
            }
        }
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits.clamp(1, 64)).unwrap_or(u64::MAX)
}
