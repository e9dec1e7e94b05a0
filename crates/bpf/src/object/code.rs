//! The code of an object: its functions, and what their instructions refer to.

use super::{Function, FunctionId, Link, Object, Program, ProgramId};
use crate::btf::Kind;
use crate::elf::{Elf, Symbol};
use crate::instruction::{Code, Instruction, Raw, ZERO, decode, jumps};
use crate::malformed::{Malformed, Reader};
use std::collections::BTreeMap;

const NOTHING: Instruction =
    Instruction { code: Code::Nothing, target: 0, source: 0, extra: 0, offset: 0, immediate: 0 };

impl Object {
    /// Finds the functions. Their instructions come later, as they refer to all else.
    pub(super) fn read_programs(&mut self, elf: &Elf) -> Result<(), Malformed> {
        let mut found: BTreeMap<(usize, u64), &Symbol> = BTreeMap::new();
        for symbol in elf.symbols.iter().filter(|symbol| symbol.is_function() && symbol.size > 0) {
            let section = elf.sections.get(symbol.section);
            if section.is_some_and(|section| section.is_code()) {
                found.entry((symbol.section, symbol.value)).or_insert(symbol);
            }
        }
        let mut last = (0, 0);
        let mut start = 0;
        for ((number, value), symbol) in found {
            let section = &elf.sections[number];
            let reader = Reader { name: section.name, bytes: section.bytes };
            let bytes = reader.slice(value, symbol.size)?;
            if value % 8 != 0 || symbol.size % 8 != 0 || (number, value) < last {
                let what = format!("`{}` is not in whole instructions of its own", symbol.name);
                return Err(reader.malformed(value, what));
            }
            last = (number, value + symbol.size);
            let length = (bytes.len() / 8) as u32;
            self.programs.push(Program {
                name: symbol.name.to_string(),
                section: section.name.to_string(),
                section_number: number,
                first: (value / 8) as u32,
                start,
                length,
            });
            // One more, which the machine refuses to run.
            start += length + 1;
        }
        Ok(())
    }

    /// The program that begins at a byte of a section.
    pub(super) fn program_at(&self, section: usize, byte: u64, _elf: &Elf) -> Option<ProgramId> {
        let key = |program: &Program| (program.section_number, u64::from(program.first) * 8);
        let place = self.programs.binary_search_by_key(&(section, byte), key).ok()?;
        Some(ProgramId(place as u32))
    }

    /// Reads all instructions.
    pub(super) fn read_code(&mut self, elf: &Elf) -> Result<(), Malformed> {
        let mut relocations: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        for (&section, list) in &elf.relocations {
            relocations.extend(list.iter().map(|of| ((section, of.offset), of.symbol)));
        }
        for number in 0..self.programs.len() {
            let Program { section_number, first, length, .. } = self.programs[number];
            let section = &elf.sections[section_number];
            let reader = Reader { name: section.name, bytes: section.bytes };
            let raws = (first..first + length).map(|at| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(reader.slice(u64::from(at) * 8, 8)?);
                Ok(Raw::from(bytes))
            });
            let raws = raws.collect::<Result<Vec<Raw>, Malformed>>()?;
            let mut is_second = false;
            for (at, &raw) in raws.iter().enumerate() {
                if std::mem::take(&mut is_second) {
                    self.code.push(NOTHING);
                    continue;
                }
                let byte = (u64::from(first) + at as u64) * 8;
                let symbol = relocations.get(&(section_number, byte)).map(|&of| &elf.symbols[of]);
                let next = raws.get(at + 1).copied();
                let made = match symbol {
                    Some(symbol) => self.linked(raw, symbol, elf),
                    None if raw.is_call() => self.local_call(raw, section_number, byte, elf),
                    None => decode(raw, next).map_err(String::from),
                };
                is_second = raw.is_long();
                let mut made = made.unwrap_or_else(|why| self.refuse(why));
                if jumps(made.code) {
                    let target = at as i64 + 1 + i64::from(made.offset);
                    if usize::try_from(target).is_err() || target >= i64::from(length) {
                        made = self.refuse("jumps out of its function".to_string());
                    }
                }
                if is_second && next.is_none() {
                    made = self.refuse("is cut: its second half is missing".to_string());
                }
                self.code.push(made);
            }
            let end = self.refuse(format!("runs over the end of `{}`", self.programs[number].name));
            self.code.push(end);
        }
        Ok(())
    }

    fn refuse(&mut self, why: String) -> Instruction {
        self.refusals.push(why);
        let immediate = (self.refusals.len() - 1) as i64;
        Instruction { code: Code::Refused, source: ZERO, immediate, ..NOTHING }
    }

    /// A call in the same section that needed no relocation.
    fn local_call(
        &self,
        raw: Raw,
        section: usize,
        byte: u64,
        elf: &Elf,
    ) -> Result<Instruction, String> {
        let target = byte.wrapping_add_signed((i64::from(raw.immediate) + 1) * 8);
        let program = self.program_at(section, target, elf).filter(|_| raw.source == 1);
        let program = program.ok_or("calls into the middle of a function")?;
        Ok(self.call(program))
    }

    fn call(&self, program: ProgramId) -> Instruction {
        let immediate = i64::from(self.programs[program.0 as usize].start);
        Instruction { code: Code::Call, immediate, ..NOTHING }
    }

    /// An instruction with a relocation.
    fn linked(&mut self, raw: Raw, symbol: &Symbol, elf: &Elf) -> Result<Instruction, String> {
        let section = symbol.section;
        if raw.opcode == 0x85 {
            if section == 0 {
                let function = self.function(symbol);
                let immediate = i64::from(function.0);
                return Ok(Instruction { code: Code::Function, immediate, ..NOTHING });
            }
            let skipped = (i64::from(raw.immediate) + 1) * 8;
            let program = self.program_at(section, symbol.value.wrapping_add_signed(skipped), elf);
            return Ok(self.call(program.ok_or("calls into the middle of a function")?));
        }
        if !raw.is_long() || raw.target > 9 {
            return Err(format!("refers to `{}` in a way that is not known", symbol.name));
        }
        let offset = symbol.value.wrapping_add_signed(i64::from(raw.immediate));
        let link = if section == 0 {
            self.outside(symbol)
        } else if elf.sections.get(section).is_some_and(|section| section.name == ".maps") {
            let map = self.map_at(offset);
            Link::Map(map.ok_or_else(|| format!("`{}` is no map", symbol.name))?)
        } else if elf.sections.get(section).is_some_and(|section| section.is_code()) {
            let program = self.program_at(section, offset, elf);
            Link::Program(program.ok_or("has the address of the middle of a function")?)
        } else {
            let data = self.data.iter().position(|data| data.section == section);
            let data = data.ok_or_else(|| format!("`{}` is in no section of data", symbol.name))?;
            Link::Data { data, offset }
        };
        self.links.push(link);
        let immediate = (self.links.len() - 1) as i64;
        Ok(Instruction {
            code: Code::Linked,
            target: raw.target,
            source: ZERO,
            immediate,
            ..NOTHING
        })
    }

    /// What a name that is not defined stands for.
    fn outside(&mut self, symbol: &Symbol) -> Link {
        let place = |list: &[super::Wanted]| list.iter().position(|of| of.name == symbol.name);
        if let Some(place) = place(&self.kconfig) {
            return Link::Configuration(place);
        }
        if let Some(place) = place(&self.variables) {
            return Link::Variable(place);
        }
        Link::Function(self.function(symbol))
    }

    /// The kernel function of this name.
    fn function(&mut self, symbol: &Symbol) -> FunctionId {
        let place = self.functions.iter().position(|function| function.name == symbol.name);
        FunctionId(place.unwrap_or_else(|| {
            let kind = self.btf.find(symbol.name, Kind::Function);
            let arguments = kind.map(|kind| self.btf.arguments(kind).len() as u32);
            let (name, is_weak) = (symbol.name.to_string(), symbol.is_weak());
            self.functions.push(Function { name, is_weak, arguments });
            self.functions.len() - 1
        }) as u32)
    }
}
