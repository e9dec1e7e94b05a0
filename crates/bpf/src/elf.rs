//! Sections, symbols and relocations of a relocatable ELF file for BPF.

use crate::malformed::{Malformed, Reader};
use std::collections::BTreeMap;

const HEADER: &str = "ELF header";
const MACHINE_BPF: u16 = 247;
const SYMBOLS: u32 = 2;
const NO_BITS: u32 = 8;
const RELOCATIONS_WITH_ADDENDS: u32 = 4;
const RELOCATIONS: u32 = 9;
const EXECUTABLE: u64 = 4;
const ALLOCATED: u64 = 2;

/// A section of the file.
pub(crate) struct Section<'a> {
    pub name: &'a str,
    kind: u32,
    flags: u64,
    /// Its size in memory.
    pub size: u64,
    /// Its bytes; none where it is zero when it starts.
    pub bytes: &'a [u8],
    link: u32,
    info: u32,
}

impl Section<'_> {
    /// Whether it holds instructions.
    pub fn is_code(&self) -> bool {
        self.flags & EXECUTABLE != 0 && self.kind != NO_BITS
    }

    /// Whether a program may have its address.
    pub fn is_data(&self) -> bool {
        self.flags & ALLOCATED != 0 && self.flags & EXECUTABLE == 0
    }
}

/// A name for a place in a section.
pub(crate) struct Symbol<'a> {
    pub name: &'a str,
    pub value: u64,
    pub size: u64,
    /// Its section; 0 where it is not defined.
    pub section: usize,
    information: u8,
}

impl Symbol<'_> {
    /// Whether it names instructions.
    pub fn is_function(&self) -> bool {
        self.information & 15 == 2
    }

    /// Whether it may stay undefined.
    pub fn is_weak(&self) -> bool {
        self.information >> 4 == 2
    }
}

/// A place whose value depends on a symbol.
#[derive(Clone, Copy)]
pub(crate) struct Relocation {
    pub offset: u64,
    pub symbol: usize,
}

/// The file.
pub(crate) struct Elf<'a> {
    pub sections: Vec<Section<'a>>,
    pub symbols: Vec<Symbol<'a>>,
    /// The relocations of each section, in the order of the file.
    pub relocations: BTreeMap<usize, Vec<Relocation>>,
}

impl<'a> Elf<'a> {
    /// Reads the tables of the file.
    pub fn read(bytes: &'a [u8]) -> Result<Elf<'a>, Malformed> {
        let file = Reader { name: HEADER, bytes };
        if file.slice(0, 4)? != b"\x7fELF" {
            return Err(file.malformed(0, "this is no ELF file"));
        }
        if file.u8(4)? != 2 || file.u8(5)? != 1 {
            return Err(file.malformed(4, "this is not a little-endian file of 64 bits"));
        }
        if file.u16(16)? != 1 || file.u16(18)? != MACHINE_BPF {
            return Err(file.malformed(16, "this is not an object for BPF"));
        }
        let mut elf =
            Elf { sections: sections(file)?, symbols: Vec::new(), relocations: BTreeMap::new() };
        elf.symbols = elf.read_symbols()?;
        elf.relocations = elf.read_relocations()?;
        Ok(elf)
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<(usize, &Section<'a>)> {
        self.sections.iter().enumerate().find(|(_, section)| section.name == name)
    }

    fn read_symbols(&self) -> Result<Vec<Symbol<'a>>, Malformed> {
        let Some(table) = self.sections.iter().find(|section| section.kind == SYMBOLS) else {
            let header = Reader { name: HEADER, bytes: &[] };
            return Err(header.malformed(0, "there is no table of symbols"));
        };
        let reader = Reader { name: table.name, bytes: table.bytes };
        let names = self.names(table, reader)?;
        let mut symbols = Vec::with_capacity(table.bytes.len() / 24);
        for at in (0..table.bytes.len() as u64).step_by(24) {
            let section = usize::from(reader.u16(at + 6)?);
            // 0xfff1 is an absolute number: it is in no section.
            if section >= self.sections.len() && section < 0xff00 {
                return Err(reader.malformed(at + 6, format!("there is no section {section}")));
            }
            symbols.push(Symbol {
                name: names.text(u64::from(reader.u32(at)?))?,
                information: reader.u8(at + 4)?,
                section,
                value: reader.u64(at + 8)?,
                size: reader.u64(at + 16)?,
            });
        }
        Ok(symbols)
    }

    fn names(&self, table: &Section, reader: Reader) -> Result<Reader<'a>, Malformed> {
        let names = self.sections.get(table.link as usize);
        let names = names.ok_or_else(|| reader.malformed(0, "the table has no names"))?;
        Ok(Reader { name: names.name, bytes: names.bytes })
    }

    fn read_relocations(&self) -> Result<BTreeMap<usize, Vec<Relocation>>, Malformed> {
        let mut found: BTreeMap<usize, Vec<Relocation>> = BTreeMap::new();
        for section in &self.sections {
            let reader = Reader { name: section.name, bytes: section.bytes };
            if section.name.contains(".debug") {
                continue;
            }
            if section.kind == RELOCATIONS_WITH_ADDENDS {
                return Err(reader.malformed(0, "relocations with addends are not those of BPF"));
            }
            if section.kind != RELOCATIONS {
                continue;
            }
            let list = found.entry(section.info as usize).or_default();
            for at in (0..section.bytes.len() as u64).step_by(16) {
                let symbol = reader.u32(at + 12)? as usize;
                if symbol >= self.symbols.len() {
                    return Err(reader.malformed(at + 12, format!("there is no symbol {symbol}")));
                }
                list.push(Relocation { offset: reader.u64(at)?, symbol });
            }
        }
        Ok(found)
    }
}

fn sections(file: Reader) -> Result<Vec<Section>, Malformed> {
    let (start, size) = (file.u64(40)?, file.u16(58)?);
    let (count, names) = (file.u16(60)?, file.u16(62)?);
    if size != 64 {
        return Err(file.malformed(58, format!("headers of sections have {size} bytes, not 64")));
    }
    let header = |index: u16| start.checked_add(u64::from(index) * 64);
    let too_far = || file.malformed(40, "the headers of sections are not in the file");
    let names = header(names).ok_or_else(too_far)?;
    let names =
        file.slice(file.u64(names.saturating_add(24))?, file.u64(names.saturating_add(32))?)?;
    let names = Reader { name: "names of sections", bytes: names };
    let mut sections = Vec::new();
    for index in 0..count {
        let at = header(index).ok_or_else(too_far)?;
        let table = Reader { name: "headers of sections", bytes: file.slice(at, 64)? };
        let (kind, size) = (table.u32(4)?, table.u64(32)?);
        let is_empty = matches!(kind, 0 | NO_BITS);
        sections.push(Section {
            name: names.text(u64::from(table.u32(0)?))?,
            kind,
            flags: table.u64(8)?,
            size,
            bytes: if is_empty { &[] } else { file.slice(table.u64(24)?, size)? },
            link: table.u32(40)?,
            info: table.u32(44)?,
        });
    }
    Ok(sections)
}
