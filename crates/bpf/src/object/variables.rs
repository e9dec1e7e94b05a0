//! Global variables of an object, and the variables and settings that it wants from outside.

use super::{Data, Object};
use crate::btf::TypeId;
use crate::elf::Elf;
use crate::malformed::{Malformed, Reader};

/// The largest section of variables.
const LARGEST: u64 = 1 << 28;

/// A global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: String,
    /// Bytes from the start of the section.
    pub offset: u32,
    /// Its bytes.
    pub size: u32,
    /// Its type.
    pub kind: TypeId,
}

/// A variable or setting of the kernel that the object wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Its type, unless it is an address alone.
    pub kind: Option<TypeId>,
    /// Its bytes; 0 if that is not known.
    pub size: u32,
    /// Whether the object can do without it.
    pub is_weak: bool,
}

impl Object {
    pub(super) fn read_variables(&mut self, elf: &Elf) -> Result<(), Malformed> {
        for (number, section) in elf.sections.iter().enumerate() {
            let is_other = matches!(section.name, ".maps" | "license" | "version")
                || section.name.trim_start_matches('?').starts_with(".struct_ops");
            if !section.is_data() || is_other {
                continue;
            }
            if section.size > LARGEST {
                let reader = Reader { name: section.name, bytes: &[] };
                let what = format!("{} bytes of variables are more than {LARGEST}", section.size);
                return Err(reader.malformed(0, what));
            }
            for listed in self.btf.section(section.name) {
                self.globals.push(Global {
                    name: listed.name,
                    section: section.name.to_string(),
                    offset: listed.offset,
                    size: self.btf.size(listed.kind).unwrap_or(listed.size),
                    kind: listed.kind,
                });
            }
            let name = section.name.to_string();
            let bytes = section.bytes.to_vec();
            self.data.push(Data { name, section: number, size: section.size, bytes });
        }
        for (name, is_configuration) in [(".kconfig", true), (".ksyms", false)] {
            for listed in self.btf.section(name) {
                let symbol = elf.symbols.iter().find(|symbol| symbol.name == listed.name);
                let is_void = self.btf.resolve(listed.kind) == TypeId(0);
                let wanted = Wanted {
                    is_weak: symbol.is_some_and(|symbol| symbol.is_weak()),
                    size: self.btf.size(listed.kind).unwrap_or(0),
                    kind: (!is_void).then_some(listed.kind),
                    name: listed.name,
                };
                if is_configuration {
                    self.kconfig.push(wanted);
                } else if !matches!(self.btf.kind(listed.kind), crate::Kind::Function) {
                    self.variables.push(wanted);
                }
            }
        }
        Ok(())
    }
}
