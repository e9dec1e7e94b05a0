//! The maps that an object defines (`.maps`).

use super::{MapId, Object};
use crate::btf::{Kind, TypeId};
use crate::elf::Elf;
use crate::malformed::{Malformed, Reader};

/// What a map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Values by key.
    Hash,
    /// Values by number.
    Array,
    /// Values by key, of each CPU.
    PerCpuHash,
    /// Values by number, of each CPU.
    PerCpuArray,
    /// Values by key; the least recently used one goes when it is full.
    LruHash,
    /// As `LruHash`, of each CPU.
    LruPerCpuHash,
    /// Maps by number.
    ArrayOfMaps,
    /// Maps by key.
    HashOfMaps,
    /// First in, first out.
    Queue,
    /// Last in, first out.
    Stack,
    /// Records for a program outside.
    RingBuffer,
    /// Records for a program outside, of each CPU.
    PerfEventArray,
    /// A value of each task.
    TaskStorage,
    /// A value of each cgroup.
    CgroupStorage,
    /// What this machine does not have: the number of its kind.
    Other(u32),
}

impl MapKind {
    fn from(number: u32) -> MapKind {
        match number {
            1 => MapKind::Hash,
            2 => MapKind::Array,
            4 => MapKind::PerfEventArray,
            5 => MapKind::PerCpuHash,
            6 => MapKind::PerCpuArray,
            9 => MapKind::LruHash,
            10 => MapKind::LruPerCpuHash,
            12 => MapKind::ArrayOfMaps,
            13 => MapKind::HashOfMaps,
            22 => MapKind::Queue,
            23 => MapKind::Stack,
            27 => MapKind::RingBuffer,
            29 => MapKind::TaskStorage,
            32 => MapKind::CgroupStorage,
            other => MapKind::Other(other),
        }
    }

    /// Whether each CPU has its own values.
    pub fn is_per_cpu(self) -> bool {
        matches!(self, MapKind::PerCpuHash | MapKind::PerCpuArray | MapKind::LruPerCpuHash)
    }

    /// Whether its values are maps.
    pub fn is_of_maps(self) -> bool {
        matches!(self, MapKind::ArrayOfMaps | MapKind::HashOfMaps)
    }
}

/// A map as the object defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDefinition {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: MapKind,
    /// The bytes of a key.
    pub key_size: u32,
    /// The bytes of a value.
    pub value_size: u32,
    /// The largest number of values.
    pub max_entries: u32,
    /// Its flags, `BPF_F_…`.
    pub flags: u32,
    /// The type of its keys, if it is known.
    pub key: Option<TypeId>,
    /// The type of its values, if it is known.
    pub value: Option<TypeId>,
    /// Of a map of maps: how its maps are made.
    pub inner: Option<MapId>,
    /// Of a map of maps: the maps that it has from the start, by number.
    pub initial: Vec<(u32, MapId)>,
    /// Bytes of a value that a program cannot set: locks, timers and pointers of the kernel.
    pub(crate) special: Vec<(u32, u32)>,
    /// Where it stands in `.maps`; nothing for one that is defined inside of another.
    pub(crate) offset: Option<u64>,
}

impl Object {
    pub(super) fn read_maps(&mut self, elf: &Elf) -> Result<(), Malformed> {
        let Some((number, section)) = elf.section(".maps") else { return Ok(()) };
        let reader = Reader { name: ".maps", bytes: section.bytes };
        let listed = self.btf.section(".maps");
        let mut inner = Vec::new();
        for variable in &listed {
            let at = u64::from(variable.offset);
            let mut map = self.map(variable.kind, &variable.name);
            map.offset = Some(at);
            if map.kind.is_of_maps() {
                inner.push((self.maps.len(), self.values_of(variable.kind)));
            }
            self.maps.push(map);
        }
        for &(outer, (template, _)) in &inner {
            if let Some(template) = template {
                let map = self.map(template, &format!("{}.inner", self.maps[outer].name));
                self.maps[outer].inner = Some(MapId(self.maps.len() as u32));
                self.maps.push(map);
            }
        }
        // Pointers to maps in the array `values` of a map of maps.
        for relocation in elf.relocations.get(&number).into_iter().flatten() {
            let symbol = &elf.symbols[relocation.symbol];
            let found = inner.iter().find_map(|&(outer, (_, values))| {
                let first = u64::from(listed[outer].offset);
                let (start, end) =
                    (first + u64::from(values?), first + u64::from(listed[outer].size));
                let is_in = relocation.offset >= start && relocation.offset < end;
                is_in.then(|| (outer, (relocation.offset - start) / 8))
            });
            let Some((outer, index)) = found else {
                return Err(reader.malformed(
                    relocation.offset,
                    "a pointer in a map that is no map of maps: only maps of maps may have them",
                ));
            };
            let map = (symbol.section == number).then(|| self.map_at(symbol.value)).flatten();
            let map = map.ok_or_else(|| {
                reader.malformed(relocation.offset, format!("`{}` is no map", symbol.name))
            })?;
            self.maps[outer].initial.push((index as u32, map));
        }
        Ok(())
    }

    /// The map that stands at this byte of `.maps`.
    pub(super) fn map_at(&self, offset: u64) -> Option<MapId> {
        let place = self.maps.iter().position(|map| map.offset == Some(offset))?;
        Some(MapId(place as u32))
    }

    /// A map by the structure that defines it.
    fn map(&self, definition: TypeId, name: &str) -> MapDefinition {
        let mut map = MapDefinition {
            name: name.to_string(),
            kind: MapKind::Other(0),
            key_size: 0,
            value_size: 0,
            max_entries: 0,
            flags: 0,
            key: None,
            value: None,
            inner: None,
            initial: Vec::new(),
            special: Vec::new(),
            offset: None,
        };
        for member in self.btf.members(definition) {
            // `__uint(x, 5)` is a pointer to an array of five, `__type(x, t)` a pointer to t.
            let pointed = self.btf.inner(self.btf.resolve(member.kind));
            let array = pointed.and_then(|id| self.btf.array(self.btf.resolve(id)));
            let number = array.map_or(0, |(_, count)| count);
            let size = || pointed.and_then(|id| self.btf.size(id)).unwrap_or(0);
            match member.name {
                "type" => map.kind = MapKind::from(number),
                "max_entries" => map.max_entries = number,
                "map_flags" => map.flags = number,
                "key_size" => map.key_size = number,
                "value_size" => map.value_size = number,
                "key" => (map.key, map.key_size) = (pointed, size()),
                "value" => (map.value, map.value_size) = (pointed, size()),
                _ => {}
            }
        }
        if map.kind.is_of_maps() || map.kind == MapKind::PerfEventArray {
            (map.key_size, map.value_size) = (map.key_size.max(4), 4);
        }
        if let Some(value) = map.value {
            self.special(value, 0, &mut 10_000, 8, &mut map.special);
        }
        map
    }

    /// How the maps of a map of maps are made, and the first byte of the list of them.
    fn values_of(&self, definition: TypeId) -> (Option<TypeId>, Option<u32>) {
        let member = self.btf.members(definition).find(|member| member.name == "values");
        let Some(member) = member else { return (None, None) };
        let array = self.btf.array(self.btf.resolve(member.kind));
        let pointer = array.map(|(element, _)| self.btf.resolve(element));
        let template = pointer.and_then(|pointer| self.btf.inner(pointer));
        (template, Some(member.first_bit / 8))
    }

    /// Adds the special bytes of a value. `work` is the number of members to look at, at most.
    fn special(
        &self,
        kind: TypeId,
        at: u32,
        work: &mut u32,
        depth: u32,
        found: &mut Vec<(u32, u32)>,
    ) {
        const NAMES: [(&str, u32); 8] = [
            ("bpf_spin_lock", 4),
            ("bpf_res_spin_lock", 4),
            ("bpf_timer", 16),
            ("bpf_wq", 16),
            ("bpf_list_head", 16),
            ("bpf_list_node", 24),
            ("bpf_rb_root", 16),
            ("bpf_refcount", 4),
        ];
        let Some(depth) = depth.checked_sub(1) else { return };
        for member in self.btf.members(kind) {
            let Some(less) = work.checked_sub(1) else { return };
            *work = less;
            let Some(at) = at.checked_add(member.first_bit / 8) else { return };
            let id = self.btf.resolve(member.kind);
            let name = self.btf.name(id);
            match self.btf.kind(id) {
                Kind::Structure | Kind::Union => {
                    match NAMES.iter().find(|(special, _)| *special == name) {
                        Some(&(_, size)) => found.push((at, size)),
                        None => self.special(id, at, work, depth, found),
                    }
                }
                Kind::Pointer => {
                    let pointed = self.btf.inner(id).unwrap_or(TypeId(0));
                    let tags = ["kptr", "kptr_untrusted", "percpu_kptr"];
                    if tags.iter().any(|tag| self.btf.has_tag(pointed, tag)) {
                        found.push((at, 8));
                    }
                }
                _ => {}
            }
        }
    }
}
