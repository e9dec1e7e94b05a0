//! The types of an object (BTF, the BPF Type Format), and where the fields of its structures lie.

mod query;
mod show;

use crate::malformed::{Malformed, Reader};
use std::collections::BTreeMap;

pub use query::{Field, Member};
pub use show::Part;

/// How the section is called.
pub(crate) const SECTION: &str = ".BTF";

/// The number of a type in an object. 0 is `void`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// What a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `void`, or nothing that is known here.
    Void,
    /// A whole number.
    Integer,
    /// A pointer.
    Pointer,
    /// An array.
    Array,
    /// A structure.
    Structure,
    /// A union.
    Union,
    /// An enumeration of up to 32 bits.
    Enumeration,
    /// The name of a structure or union that is not defined.
    Forward,
    /// Another name of a type.
    Typedef,
    /// `volatile`, `const`, `restrict` or a tag, around a type.
    Modifier,
    /// A function.
    Function,
    /// The arguments and result of a function.
    Prototype,
    /// A variable.
    Variable,
    /// The variables of a section.
    Section,
    /// A floating-point number.
    Float,
    /// A tag of a declaration.
    DeclarationTag,
    /// An enumeration of 64 bits.
    Enumeration64,
}

/// A type. `rows` are members, enumerators, parameters or variables, as it is of its kind.
#[derive(Clone, Copy, Debug)]
struct Type {
    kind: Kind,
    /// Whether it is a tag that says something of the type that follows (`BTF_KIND_TYPE_TAG`).
    is_tag: bool,
    flag: bool,
    name: u32,
    size_or_type: u32,
    first: u32,
    count: u32,
}

const VOID: Type = Type {
    kind: Kind::Void,
    is_tag: false,
    flag: false,
    name: 0,
    size_or_type: 0,
    first: 0,
    count: 0,
};

/// The types of an object.
#[derive(Clone, Debug)]
pub struct Btf {
    types: Vec<Type>,
    rows: Vec<[u32; 3]>,
    names: String,
    /// Types by name, in the order of the file.
    named: BTreeMap<String, Vec<TypeId>>,
    enumerators: BTreeMap<String, i64>,
}

/// The variables of a section, as BTF lists them.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub name: String,
    pub kind: TypeId,
    pub offset: u32,
    pub size: u32,
}

impl Btf {
    /// Reads the section; its relocations are done.
    pub(crate) fn read(bytes: &[u8]) -> Result<Btf, Malformed> {
        let file = Reader { name: SECTION, bytes };
        if file.u16(0)? != 0xeb9f || file.u8(2)? != 1 {
            return Err(file.malformed(0, "this is not version 1 of BTF"));
        }
        let header = u64::from(file.u32(4)?);
        let part = |at: u64| -> Result<&[u8], Malformed> {
            let (offset, length) = (file.u32(at)?, file.u32(at + 4)?);
            file.slice(header + u64::from(offset), u64::from(length))
        };
        let names = part(16)?;
        let names = std::str::from_utf8(names)
            .map_err(|_| file.malformed(16, "the names of types are not UTF-8"))?;
        if !names.starts_with('\0') || !names.ends_with('\0') {
            return Err(file.malformed(16, "the names of types do not begin and end with a zero"));
        }
        let mut btf = Btf {
            types: vec![VOID],
            rows: Vec::new(),
            names: names.to_string(),
            named: BTreeMap::new(),
            enumerators: BTreeMap::new(),
        };
        btf.read_types(Reader { name: SECTION, bytes: part(8)? })?;
        btf.index();
        Ok(btf)
    }

    fn read_types(&mut self, types: Reader) -> Result<(), Malformed> {
        let mut at = 0;
        while at < types.bytes.len() as u64 {
            let (name, info, size_or_type) =
                (types.u32(at)?, types.u32(at + 4)?, types.u32(at + 8)?);
            let (code, count) = (info >> 24 & 31, info & 0xffff);
            let (kind, words, rows) = shape(code, count).ok_or_else(|| {
                types.malformed(at + 4, format!("types of kind {code} are not known"))
            })?;
            self.name_at(types, at, name)?;
            let first = self.rows.len() as u32;
            at += 12;
            for _ in 0..rows {
                let mut row = [0; 3];
                for word in row.iter_mut().take(words) {
                    *word = types.u32(at)?;
                    at += 4;
                }
                if matches!(
                    kind,
                    Kind::Structure | Kind::Union | Kind::Enumeration | Kind::Enumeration64
                ) {
                    self.name_at(types, at, row[0])?;
                }
                self.rows.push(row);
            }
            let flag = info >> 31 != 0;
            let is_tag = code == 18;
            self.types.push(Type { kind, is_tag, flag, name, size_or_type, first, count: rows });
        }
        Ok(())
    }

    fn name_at(&self, types: Reader, at: u64, name: u32) -> Result<(), Malformed> {
        match self.names.get(name as usize..) {
            Some(rest) if !rest.is_empty() => Ok(()),
            _ => Err(types.malformed(at, format!("there is no name at {name}"))),
        }
    }

    fn index(&mut self) {
        let mut named: BTreeMap<String, Vec<TypeId>> = BTreeMap::new();
        let mut enumerators = BTreeMap::new();
        for (number, kind) in self.types.iter().enumerate() {
            let id = TypeId(number as u32);
            let name = self.name(id);
            if !name.is_empty() {
                named.entry(name.to_string()).or_default().push(id);
            }
            for row in self.rows_of(kind) {
                let value = match kind.kind {
                    Kind::Enumeration if kind.flag => i64::from(row[1].cast_signed()),
                    Kind::Enumeration => i64::from(row[1]),
                    Kind::Enumeration64 => {
                        (u64::from(row[1]) | u64::from(row[2]) << 32).cast_signed()
                    }
                    _ => break,
                };
                enumerators.entry(self.text(row[0]).to_string()).or_insert(value);
            }
        }
        self.named = named;
        self.enumerators = enumerators;
    }

    /// The name that begins at this byte of the names.
    pub(crate) fn text(&self, offset: u32) -> &str {
        let rest = self.names.get(offset as usize..).unwrap_or_default();
        rest.split('\0').next().unwrap_or_default()
    }

    fn get(&self, id: TypeId) -> Type {
        self.types.get(id.0 as usize).copied().unwrap_or(VOID)
    }

    fn rows_of(&self, kind: &Type) -> &[[u32; 3]] {
        &self.rows[kind.first as usize..(kind.first + kind.count) as usize]
    }

    /// The variables that BTF lists for a section, in its order.
    pub(crate) fn section(&self, name: &str) -> Vec<Listed> {
        let listed = self.named.get(name).into_iter().flatten();
        let sections = listed.filter(|&&id| self.get(id).kind == Kind::Section);
        let rows = sections.flat_map(|&id| self.rows_of(&self.types[id.0 as usize]));
        let variables = rows.map(|&[variable, offset, size]| {
            let (id, of) = (TypeId(variable), self.get(TypeId(variable)));
            let is_variable = of.kind == Kind::Variable;
            let kind = if is_variable { TypeId(of.size_or_type) } else { id };
            Listed { name: self.name(id).to_string(), kind, offset, size }
        });
        variables.collect()
    }
}

/// A kind by its number: words of a row, and the number of rows.
fn shape(code: u32, count: u32) -> Option<(Kind, usize, u32)> {
    Some(match code {
        1 => (Kind::Integer, 1, 1),
        2 => (Kind::Pointer, 0, 0),
        3 => (Kind::Array, 3, 1),
        4 => (Kind::Structure, 3, count),
        5 => (Kind::Union, 3, count),
        6 => (Kind::Enumeration, 2, count),
        7 => (Kind::Forward, 0, 0),
        8 => (Kind::Typedef, 0, 0),
        9..=11 | 18 => (Kind::Modifier, 0, 0),
        12 => (Kind::Function, 0, 0),
        13 => (Kind::Prototype, 2, count),
        14 => (Kind::Variable, 1, 1),
        15 => (Kind::Section, 3, count),
        16 => (Kind::Float, 0, 0),
        17 => (Kind::DeclarationTag, 1, 1),
        19 => (Kind::Enumeration64, 3, count),
        _ => return None,
    })
}
