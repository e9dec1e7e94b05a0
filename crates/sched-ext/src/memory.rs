//! Memory of a machine by plain numbers, as programs hand them over.

use bpf::{Address, Fault, Field, Machine};

/// A result, or what a program did that it must not.
pub type Answer<T = ()> = Result<T, Fault>;

/// The number of `size` bytes, at most eight, at `at`.
pub fn read(machine: &Machine, at: u64, size: usize) -> Answer<u64> {
    let mut word = [0; 8];
    word[..size].copy_from_slice(machine.bytes(Address(at), size)?);
    Ok(u64::from_le_bytes(word))
}

/// Writes a number of `size` bytes, at most eight.
pub fn write(machine: &mut Machine, at: u64, size: usize, value: u64) -> Answer {
    machine.write(Address(at), &value.to_le_bytes()[..size])
}

/// What `field` of the structure at `at` holds; 0 if there is none.
pub fn get(machine: &Machine, at: u64, field: Option<Field>) -> Answer<u64> {
    field.map_or(Ok(0), |field| machine.field(Address(at), field))
}

/// Sets these fields of the structure at `at`.
pub fn set(
    machine: &mut Machine,
    at: u64,
    fields: impl IntoIterator<Item = Field>,
    value: u64,
) -> Answer {
    fields.into_iter().try_for_each(|field| machine.set_field(Address(at), field, value))
}
