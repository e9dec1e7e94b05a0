//! How a machine is made: all that an object wants is found, or refused by name.

use super::{ARGUMENTS, Counter, FRAME, Machine};
use crate::btf::Kind;
use crate::instruction::Code;
use crate::machine::helpers::BUILT_IN;
use crate::machine::outside::{
    Kernel, KernelVariable, Missing, Placed, Refused, Setting, Settings,
};
use crate::memory::{Address, Memory};
use crate::object::{MapId, Object};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Machine {
    /// Makes a machine. If something is missing that the programs need, says all that is.
    pub fn new<K: Kernel + ?Sized>(
        object: Arc<Object>,
        settings: &Settings,
        kernel: &K,
    ) -> Result<Machine, Refused> {
        let missing = missing(&object, settings, kernel);
        if !missing.is_empty() {
            return Err(Refused(missing));
        }
        let has_function = object.functions().iter();
        let has_function = has_function.map(|of| kernel.has_function(of)).collect();
        let has_helper = object.helpers().into_iter();
        let has_helper = has_helper
            .map(|helper| (helper, BUILT_IN.contains(&helper) || kernel.has_helper(helper)));
        let mut machine = Machine {
            cpu: 0,
            cpus: settings.cpus.max(1),
            code: Arc::from(&object.code[..]),
            memory: Memory::new(settings.memory),
            maps: Vec::new(),
            map_of_slot: Vec::new(),
            sections: Vec::new(),
            configuration: Vec::new(),
            placed: Vec::new(),
            program_tag: 0,
            function_tag: 0,
            has_function,
            has_helper: has_helper.collect(),
            frames: Vec::new(),
            contexts: Vec::new(),
            depth: 0,
            nesting: 0,
            saved: Vec::new(),
            budget: settings.budget,
            left: settings.budget,
            null_reads_are_zero: settings.null_reads_are_zero,
            counters: vec![Counter::default(); object.programs().len()],
            executed: 0,
            deferred: Vec::new(),
            reserved: BTreeMap::new(),
            records: 0,
            object,
        };
        let refused = |what: String| Refused(vec![Missing::Memory(what)]);
        machine.place(kernel).map_err(refused)?;
        machine.link();
        Ok(machine)
    }

    /// Gives all its place in memory, or says for what there is no room.
    fn place<K: Kernel + ?Sized>(&mut self, kernel: &K) -> Result<(), String> {
        self.program_tag = self.region("the code of the object", 0)?;
        self.function_tag = self.region("the code of the kernel", 0)?;
        for _ in 0..4 {
            let frame = self.region("the stack", FRAME)?;
            self.frames.push(frame);
            let context = self.region("the arguments", ARGUMENTS * 8)?;
            self.contexts.push(context);
        }
        let object = Arc::clone(&self.object);
        for data in &object.data {
            let name = format!("the section `{}`", data.name);
            let tag = self.region(&name, data.size as usize)?;
            if let Some(to) = self.memory.region_mut(tag) {
                to[..data.bytes.len()].copy_from_slice(&data.bytes);
            }
            if data.name.starts_with(".rodata") {
                self.memory.protect(tag);
            }
            self.sections.push(tag);
        }
        for wanted in object.kconfig() {
            let size = wanted.size.max(1) as usize;
            let tag = self.region(&format!("the setting `{}`", wanted.name), size)?;
            let to = self.memory.region_mut(tag).unwrap_or_default();
            match kernel.setting(&wanted.name) {
                None => {}
                Some(Setting::Number(number)) => {
                    let bytes = number.to_le_bytes();
                    let length = size.min(8);
                    to[..length].copy_from_slice(&bytes[..length]);
                }
                Some(Setting::Text(text)) => {
                    let length = text.len().min(size - 1);
                    to[..length].copy_from_slice(&text.as_bytes()[..length]);
                }
            }
            self.memory.protect(tag);
            self.configuration.push(Address::of(tag));
        }
        for wanted in object.variables() {
            if let Some(variable) = kernel.variable(&wanted.name) {
                self.place_variable(&wanted.name, variable)?;
            }
        }
        for map in object.maps() {
            self.add_map(map.clone()).ok_or_else(|| format!("the map `{}`", map.name))?;
        }
        for (outer, map) in object.maps().iter().enumerate() {
            for &(index, inner) in &map.initial {
                self.set_inner(MapId(outer as u32), &index.to_le_bytes(), inner);
            }
        }
        Ok(())
    }

    fn place_variable(&mut self, name: &str, variable: KernelVariable) -> Result<(), String> {
        let what = format!("the variable `{name}` of the kernel");
        let (bytes, count) = match variable {
            KernelVariable::Bytes(bytes) => (bytes, 1),
            KernelVariable::PerCpu(bytes) => (bytes, self.cpus),
        };
        let is_per_cpu = count > 1 || self.cpus == 1;
        let mut at = Vec::new();
        for _ in 0..count {
            let tag = self.region(&what, bytes.len())?;
            self.memory.region_mut(tag).unwrap_or_default().copy_from_slice(&bytes);
            at.push(Address::of(tag));
        }
        let handle =
            if is_per_cpu && count > 1 { Address::of(self.region(&what, 0)?) } else { at[0] };
        self.placed.push(Placed { name: name.to_string(), at, handle });
        Ok(())
    }

    fn region(&mut self, what: &str, size: usize) -> Result<u32, String> {
        let name = self.memory.name(what);
        self.memory.allocate(name, size).ok_or_else(|| what.to_string())
    }

    /// Gives all instructions their addresses.
    fn link(&mut self) {
        let mut code = self.code.to_vec();
        for instruction in &mut code {
            if instruction.code == Code::Linked {
                let link = self.object.links[instruction.immediate as usize];
                instruction.immediate = self.linked(link).cast_signed();
                instruction.code = Code::Long;
            }
        }
        self.code = Arc::from(code);
    }
}

/// All that is missing.
fn missing<K: Kernel + ?Sized>(object: &Object, settings: &Settings, kernel: &K) -> Vec<Missing> {
    let entries =
        if settings.entries.is_empty() { object.entries() } else { settings.entries.clone() };
    let needs = object.needs(&entries);
    let mut missing = Vec::new();
    for function in needs.functions {
        let of = &object.functions()[function.0 as usize];
        if !of.is_weak && !kernel.has_function(of) {
            missing.push(Missing::Function(of.name.clone()));
        }
    }
    for helper in needs.helpers {
        if !BUILT_IN.contains(&helper) && !kernel.has_helper(helper) {
            missing.push(Missing::Helper(helper));
        }
    }
    for map in needs.maps {
        let map = &object.maps()[map.0 as usize];
        if let Some(kind) = crate::machine::maps::refuses(map) {
            missing.push(Missing::Map(map.name.clone(), kind));
        }
    }
    for wanted in object.kconfig() {
        if !wanted.is_weak && kernel.setting(&wanted.name).is_none() {
            missing.push(Missing::Setting(wanted.name.clone()));
        }
    }
    for wanted in object.variables() {
        let is_function = wanted.kind.is_some_and(|kind| object.btf().kind(kind) == Kind::Function);
        if !wanted.is_weak && !is_function && kernel.variable(&wanted.name).is_none() {
            missing.push(Missing::Variable(wanted.name.clone()));
        }
    }
    for (program, instruction, why) in needs.refused {
        let name = &object.programs()[program.0 as usize].name;
        let place = match object.line(program, instruction) {
            Some(line) => format!("`{name}`, {}:{}", line.file, line.line),
            None => format!("`{name}`, {instruction}"),
        };
        missing.push(Missing::Instruction(place, why));
    }
    missing
}
