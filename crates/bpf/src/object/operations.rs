//! Tables of functions for the kernel (`struct_ops`).

use super::{Object, ProgramId};
use crate::btf::Kind;
use crate::elf::Elf;
use crate::malformed::{Malformed, Reader};

/// A table of functions that the object has for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructOps {
    /// The name of the variable.
    pub name: String,
    /// The name of its type, such as `sched_ext_ops`.
    pub kind: String,
    /// Its section.
    pub section: String,
    /// Its members, in the order of the type.
    pub members: Vec<(String, Operation)>,
}

impl StructOps {
    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Operation> {
        self.members.iter().find(|(of, _)| of == name).map(|(_, operation)| operation)
    }
}

/// What a member of a table is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A function.
    Program(ProgramId),
    /// A value, or a function that is left out (zeros).
    Bytes(Vec<u8>),
}

impl Object {
    pub(super) fn read_struct_ops(&mut self, elf: &Elf) -> Result<(), Malformed> {
        for (number, section) in elf.sections.iter().enumerate() {
            if !section.name.trim_start_matches('?').starts_with(".struct_ops") {
                continue;
            }
            let reader = Reader { name: section.name, bytes: section.bytes };
            let relocations = elf.relocations.get(&number).map_or(&[][..], Vec::as_slice);
            let mut left = section.bytes.len();
            for listed in self.btf.section(section.name) {
                let kind = self.btf.resolve(listed.kind);
                if self.btf.kind(kind) != Kind::Structure {
                    continue;
                }
                let mut members = Vec::new();
                for member in self.btf.members(kind) {
                    let at = u64::from(listed.offset) + u64::from(member.first_bit / 8);
                    let size = self.btf.size(member.kind).unwrap_or(0);
                    let bytes = reader.slice(at, u64::from(size))?.to_vec();
                    left = left.checked_sub(bytes.len()).ok_or_else(|| {
                        reader.malformed(at, "the members of a table lie over each other")
                    })?;
                    let relocation = relocations.iter().find(|relocation| relocation.offset == at);
                    let operation = match relocation {
                        None => Operation::Bytes(bytes),
                        Some(relocation) => {
                            let symbol = &elf.symbols[relocation.symbol];
                            let at_byte = symbol.value.wrapping_add(reader.u64(at)?);
                            match self.program_at(symbol.section, at_byte, elf) {
                                Some(program) => Operation::Program(program),
                                None => Operation::Bytes(bytes),
                            }
                        }
                    };
                    members.push((member.name.to_string(), operation));
                }
                self.struct_ops.push(StructOps {
                    name: listed.name,
                    kind: self.btf.name(kind).to_string(),
                    section: section.name.to_string(),
                    members,
                });
            }
        }
        Ok(())
    }
}
