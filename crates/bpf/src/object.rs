//! An object file as a whole: programs, maps, variables, and what it wants from outside.

mod code;
mod maps;
mod needs;
mod operations;
mod variables;

use crate::btf::{self, Btf};
use crate::elf::{Elf, Relocation};
use crate::instruction::Instruction;
use crate::lines::{self, Line, Lines, Listing, Place};
use crate::malformed::{Malformed, Reader};

pub use maps::{MapDefinition, MapKind};
pub use needs::Needs;
pub use operations::{Operation, StructOps};
pub use variables::{Global, Wanted};

/// The number of a piece of code in [`Object::programs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramId(pub u32);

/// The number of a kernel function in [`Object::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// The number of a map in [`Object::maps`], and of those that a machine makes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapId(pub u32);

/// A piece of code: an entry, or a function that others call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its section: what it is for.
    pub section: String,
    /// The place of its section in the file.
    pub(crate) section_number: usize,
    /// The first of its instructions in its section.
    pub(crate) first: u32,
    /// The first of its instructions in the code of the object.
    pub(crate) start: u32,
    /// The number of its instructions.
    pub length: u32,
}

/// A kernel function that the object calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name in the object.
    pub name: String,
    /// Whether the object can do without it.
    pub is_weak: bool,
    /// Its number of arguments, if types say so.
    pub arguments: Option<u32>,
}

impl Function {
    /// Its name in the kernel: without what follows the last `___`, which tells one declaration of
    /// it from others.
    pub fn essential(&self) -> &str {
        let bytes = self.name.as_bytes();
        let separates = |at: &usize| match &bytes[*at..*at + 5] {
            [before, b'_', b'_', b'_', behind] => *before != b'_' && *behind != b'_',
            _ => false,
        };
        match (0..bytes.len().saturating_sub(4)).rev().find(separates) {
            Some(at) => &self.name[..=at],
            None => &self.name,
        }
    }
}

/// A section of variables.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub name: String,
    /// Its place among the sections of the file.
    pub section: usize,
    pub size: u64,
    /// The first bytes; the rest is zero.
    pub bytes: Vec<u8>,
}

/// What an instruction has the address of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Program(ProgramId),
    Function(FunctionId),
    Map(MapId),
    Data { data: usize, offset: u64 },
    Configuration(usize),
    Variable(usize),
}

/// A parsed object file.
#[derive(Clone, Debug)]
pub struct Object {
    btf: Btf,
    lines: Lines,
    license: String,
    programs: Vec<Program>,
    pub(crate) code: Vec<Instruction>,
    pub(crate) links: Vec<Link>,
    /// Why an instruction cannot be run.
    pub(crate) refusals: Vec<String>,
    functions: Vec<Function>,
    pub(crate) data: Vec<Data>,
    globals: Vec<Global>,
    kconfig: Vec<Wanted>,
    variables: Vec<Wanted>,
    maps: Vec<MapDefinition>,
    struct_ops: Vec<StructOps>,
}

impl Object {
    /// Reads an object file, as clang makes it from one source file.
    pub fn read(bytes: &[u8]) -> Result<Object, Malformed> {
        let elf = Elf::read(bytes)?;
        let types = relocated(&elf, btf::SECTION)?.ok_or_else(|| {
            let file = Reader { name: "ELF header", bytes: &[] };
            file.malformed(0, "there is no section `.BTF`: the option -g is missing")
        })?;
        let btf = Btf::read(&types)?;
        let lines = match relocated(&elf, lines::SECTION)? {
            Some(bytes) => Lines::read(&bytes, &btf)?,
            None => Lines::default(),
        };
        let license = elf.section("license").map_or(&[][..], |(_, section)| section.bytes);
        let license = String::from_utf8_lossy(license).trim_end_matches('\0').to_string();
        let mut object = Object {
            btf,
            lines,
            license,
            programs: Vec::new(),
            code: Vec::new(),
            links: Vec::new(),
            refusals: Vec::new(),
            functions: Vec::new(),
            data: Vec::new(),
            globals: Vec::new(),
            kconfig: Vec::new(),
            variables: Vec::new(),
            maps: Vec::new(),
            struct_ops: Vec::new(),
        };
        object.read_programs(&elf)?;
        object.read_variables(&elf)?;
        object.read_maps(&elf)?;
        object.read_code(&elf)?;
        object.read_struct_ops(&elf)?;
        Ok(object)
    }

    /// Its types.
    pub fn btf(&self) -> &Btf {
        &self.btf
    }

    /// What it says of its licence.
    pub fn license(&self) -> &str {
        &self.license
    }

    /// All its code, by number.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The code of this name.
    pub fn program(&self, name: &str) -> Option<ProgramId> {
        let place = self.programs.iter().position(|program| program.name == name)?;
        Some(ProgramId(place as u32))
    }

    /// The tables of functions that it has for the kernel.
    pub fn struct_ops(&self) -> &[StructOps] {
        &self.struct_ops
    }

    /// The kernel functions that it calls or has the address of.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The settings of the kernel's configuration that it reads.
    pub fn kconfig(&self) -> &[Wanted] {
        &self.kconfig
    }

    /// The kernel variables that it has the address of.
    pub fn variables(&self) -> &[Wanted] {
        &self.variables
    }

    /// Its own global variables.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Its maps. Those that are defined inside of others come last.
    pub fn maps(&self) -> &[MapDefinition] {
        &self.maps
    }

    /// The line of source that an instruction of a program is of.
    pub fn line(&self, program: ProgramId, instruction: u32) -> Option<Line> {
        let of = self.programs.get(program.0 as usize)?;
        let offset = of.first.checked_add(instruction)?.checked_mul(8)?;
        self.lines.find(&self.btf, &of.section, offset)
    }

    /// The lines of all its instructions.
    pub fn listing(&self) -> Listing {
        let mut listing = Listing::default();
        for (number, program) in self.programs.iter().enumerate() {
            // Behind each is an instruction that is refused.
            for instruction in 0..=program.length {
                let has_one = instruction < program.length;
                let number = ProgramId(number as u32);
                listing.add(has_one.then(|| self.line(number, instruction)).flatten());
            }
        }
        listing
    }

    /// The program that is at a place.
    pub fn program_of(&self, place: Place) -> Option<ProgramId> {
        self.place(place.0).map(|(program, _)| program)
    }

    /// The program, and the instruction in it, that is at this place of the code.
    pub(crate) fn place(&self, at: usize) -> Option<(ProgramId, u32)> {
        let at = at as u32;
        let behind = self.programs.partition_point(|program| program.start <= at);
        let number = behind.checked_sub(1)?;
        Some((ProgramId(number as u32), at - self.programs[number].start))
    }
}

/// The bytes of a section with the values of symbols added, or nothing if it is not there.
fn relocated(elf: &Elf, name: &str) -> Result<Option<Vec<u8>>, Malformed> {
    let Some((number, section)) = elf.section(name) else { return Ok(None) };
    let mut bytes = section.bytes.to_vec();
    for &Relocation { offset, symbol, .. } in elf.relocations.get(&number).into_iter().flatten() {
        let reader = Reader { name, bytes: &bytes };
        let value = reader.u32(offset)?.wrapping_add(elf.symbols[symbol].value as u32);
        bytes[offset as usize..][..4].copy_from_slice(&value.to_le_bytes());
    }
    Ok(Some(bytes))
}
