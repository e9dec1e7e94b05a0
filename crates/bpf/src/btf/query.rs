//! Questions to the types of an object.

use super::{Btf, Kind, TypeId};

/// How many types may stand between a name and what it means, and how deep structures may nest.
const DEEPEST: u32 = 32;

/// How many members a search for one may pass.
const MOST_MEMBERS: u32 = 100_000;

/// Where a field lies in its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the start of the structure; of a bit-field, its first whole byte.
    pub offset: u32,
    /// Bytes of the field; of a bit-field, those that hold it.
    pub size: u32,
    /// Of a bit-field, the first bit from `offset`, and the number of bits.
    pub bits: Option<(u32, u32)>,
    /// Its type, without names and modifiers around it.
    pub kind: TypeId,
}

/// A member of a structure or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name; empty for an anonymous structure or union.
    pub name: &'a str,
    /// Its type as it is written.
    pub kind: TypeId,
    /// The first bit.
    pub first_bit: u32,
    /// The number of bits, of a bit-field.
    pub bits: Option<u32>,
}

impl Btf {
    /// The name of a type; empty if it has none.
    pub fn name(&self, id: TypeId) -> &str {
        self.text(self.get(id).name)
    }

    /// What a type is.
    pub fn kind(&self, id: TypeId) -> Kind {
        self.get(id).kind
    }

    /// A type without the names and modifiers around it.
    pub fn resolve(&self, mut id: TypeId) -> TypeId {
        for _ in 0..DEEPEST {
            let of = self.get(id);
            if !matches!(of.kind, Kind::Typedef | Kind::Modifier) {
                return id;
            }
            id = TypeId(of.size_or_type);
        }
        TypeId(0)
    }

    /// Whether a tag of this name is among the modifiers around a type.
    pub fn has_tag(&self, mut id: TypeId, tag: &str) -> bool {
        for _ in 0..DEEPEST {
            let of = self.get(id);
            if of.is_tag && self.text(of.name) == tag {
                return true;
            }
            if !matches!(of.kind, Kind::Typedef | Kind::Modifier) {
                return false;
            }
            id = TypeId(of.size_or_type);
        }
        false
    }

    /// What a pointer, a typedef, a modifier, a variable or a function is of.
    pub fn inner(&self, id: TypeId) -> Option<TypeId> {
        let of = self.get(id);
        let has = matches!(
            of.kind,
            Kind::Pointer | Kind::Typedef | Kind::Modifier | Kind::Variable | Kind::Function
        );
        has.then_some(TypeId(of.size_or_type))
    }

    /// The type of an array's elements, and their number.
    pub fn array(&self, id: TypeId) -> Option<(TypeId, u32)> {
        let of = self.get(id);
        let row = *self.rows_of(&of).first()?;
        (of.kind == Kind::Array).then_some((TypeId(row[0]), row[2]))
    }

    /// Whether an integer or enumeration has a sign.
    pub fn is_signed(&self, id: TypeId) -> bool {
        let of = self.get(self.resolve(id));
        match of.kind {
            Kind::Integer => self.rows_of(&of).first().is_some_and(|row| row[0] >> 24 & 1 != 0),
            Kind::Enumeration | Kind::Enumeration64 => of.flag,
            _ => false,
        }
    }

    /// The types of a function's arguments. A last one without a type stands for more.
    pub fn arguments(&self, function: TypeId) -> Vec<(&str, TypeId)> {
        let id = self.resolve(function);
        let of = self.get(id);
        let of = if of.kind == Kind::Function { self.get(TypeId(of.size_or_type)) } else { of };
        if of.kind != Kind::Prototype {
            return Vec::new();
        }
        self.rows_of(&of).iter().map(|row| (self.text(row[0]), TypeId(row[1]))).collect()
    }

    /// The type of a function's result; `void` if it has none.
    pub fn result(&self, function: TypeId) -> TypeId {
        let id = self.resolve(function);
        let of = self.get(id);
        let of = if of.kind == Kind::Function { self.get(TypeId(of.size_or_type)) } else { of };
        if of.kind == Kind::Prototype { TypeId(of.size_or_type) } else { TypeId(0) }
    }

    /// The bytes of a type.
    pub fn size(&self, id: TypeId) -> Option<u32> {
        self.size_within(id, DEEPEST)
    }

    fn size_within(&self, id: TypeId, depth: u32) -> Option<u32> {
        let id = self.resolve(id);
        let of = self.get(id);
        match of.kind {
            Kind::Pointer => Some(8),
            Kind::Array => {
                let (element, count) = self.array(id)?;
                self.size_within(element, depth.checked_sub(1)?)?.checked_mul(count)
            }
            Kind::Integer
            | Kind::Structure
            | Kind::Union
            | Kind::Enumeration
            | Kind::Enumeration64
            | Kind::Float => Some(of.size_or_type),
            _ => None,
        }
    }

    /// The type of this name and kind; a typedef of the name counts.
    pub fn find(&self, name: &str, kind: Kind) -> Option<TypeId> {
        let named = self.named.get(name)?;
        let direct = named.iter().copied().find(|&id| self.get(id).kind == kind);
        direct.or_else(|| {
            named.iter().map(|&id| self.resolve(id)).find(|&id| self.get(id).kind == kind)
        })
    }

    fn composite(&self, name: &str) -> Option<TypeId> {
        self.find(name, Kind::Structure).or_else(|| self.find(name, Kind::Union))
    }

    /// The bytes of a structure or union.
    pub fn struct_size(&self, name: &str) -> Option<usize> {
        Some(self.size(self.composite(name)?)? as usize)
    }

    /// Where a field lies: `field("task_struct", "scx.dsq_vtime")`, `field("x", "bits[2]")`.
    /// The members of anonymous structures are those of the structure around them.
    pub fn field(&self, structure: &str, path: &str) -> Option<Field> {
        self.field_of(self.composite(structure)?, path)
    }

    /// Where a field of a structure, union or array lies.
    pub fn field_of(&self, of: TypeId, path: &str) -> Option<Field> {
        let (mut id, mut first, mut bits) = (of, 0u32, None);
        let mut left = MOST_MEMBERS;
        for step in path.split('.') {
            let (name, mut rest) = step.split_at(step.find('[').unwrap_or(step.len()));
            if !name.is_empty() {
                let member = self.member(id, name, &mut left, DEEPEST)?;
                first = first.checked_add(member.first_bit)?;
                (id, bits) = (member.kind, member.bits);
            }
            while let Some(after) = rest.strip_prefix('[') {
                let (index, behind) = after.split_once(']')?;
                let (element, count) = self.array(self.resolve(id))?;
                let index: u32 = index.parse().ok()?;
                if index >= count && count != 0 {
                    return None;
                }
                let skipped = self.size(element)?.checked_mul(8)?.checked_mul(index)?;
                first = first.checked_add(skipped)?;
                (id, rest) = (element, behind);
            }
        }
        let kind = self.resolve(id);
        Some(match bits {
            None => {
                Field { offset: first / 8, size: self.size(kind).unwrap_or(0), bits: None, kind }
            }
            Some(count) => {
                let within = first % 8;
                let size = (within + count).div_ceil(8);
                Field { offset: first / 8, size, bits: Some((within, count)), kind }
            }
        })
    }

    /// The member of this name, also in anonymous members; its first bit counts from `of`.
    fn member(&self, of: TypeId, name: &str, left: &mut u32, depth: u32) -> Option<Member<'_>> {
        let depth = depth.checked_sub(1)?;
        for member in self.members(of) {
            *left = left.checked_sub(1)?;
            if member.name == name {
                return Some(member);
            }
            if member.name.is_empty()
                && let Some(inner) = self.member(member.kind, name, left, depth)
            {
                let first_bit = inner.first_bit.checked_add(member.first_bit)?;
                return Some(Member { first_bit, ..inner });
            }
        }
        None
    }

    /// The members of a structure or union, in their order.
    pub fn members(&self, of: TypeId) -> impl Iterator<Item = Member<'_>> {
        let of = self.get(self.resolve(of));
        let is_composite = matches!(of.kind, Kind::Structure | Kind::Union);
        let rows = if is_composite { self.rows_of(&of).len() } else { 0 };
        (0..rows).map(move |row| {
            let [name, kind, place] = self.rows[of.first as usize + row];
            let (first_bit, bits) =
                if of.flag { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
            let bits = (bits != 0).then_some(bits);
            Member { name: self.text(name), kind: TypeId(kind), first_bit, bits }
        })
    }

    /// The value of an enumerator, of whichever enumeration.
    pub fn enumerator(&self, name: &str) -> Option<i64> {
        self.enumerators.get(name).copied()
    }

    /// The enumerators of an enumeration.
    pub fn enumerators_of(&self, enumeration: &str) -> Vec<(&str, i64)> {
        let id = self.find(enumeration, Kind::Enumeration);
        let Some(id) = id.or_else(|| self.find(enumeration, Kind::Enumeration64)) else {
            return Vec::new();
        };
        let of = self.get(id);
        let names = self.rows_of(&of).iter().map(|row| self.text(row[0]));
        names.filter_map(|name| Some((name, self.enumerator(name)?))).collect()
    }
}
