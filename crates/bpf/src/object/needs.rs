//! What the programs of an object need of a machine and of what is outside of it.

use super::{FunctionId, Link, MapId, Object, Operation, ProgramId};
use crate::instruction::Code;
use std::collections::BTreeSet;

/// What some programs need, with all that they call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The code itself.
    pub programs: BTreeSet<ProgramId>,
    /// The kernel functions that it calls.
    pub functions: BTreeSet<FunctionId>,
    /// The helpers that it calls, by number.
    pub helpers: BTreeSet<u32>,
    /// The maps that it has the address of.
    pub maps: BTreeSet<MapId>,
    /// Instructions that no machine of ours can run: program, instruction and why.
    pub refused: Vec<(ProgramId, u32, String)>,
}

impl Object {
    /// The programs of its tables for the kernel, or all programs if it has no such table.
    pub fn entries(&self) -> Vec<ProgramId> {
        let members = self.struct_ops.iter().flat_map(|table| &table.members);
        let entries: BTreeSet<ProgramId> = members
            .filter_map(|(_, operation)| match operation {
                Operation::Program(program) => Some(*program),
                Operation::Bytes(_) => None,
            })
            .collect();
        if entries.is_empty() {
            return (0..self.programs.len() as u32).map(ProgramId).collect();
        }
        entries.into_iter().collect()
    }

    /// What these programs need.
    pub fn needs(&self, entries: &[ProgramId]) -> Needs {
        let mut needs = Needs::default();
        let mut left: Vec<ProgramId> = entries.to_vec();
        while let Some(id) = left.pop() {
            let Some(program) = self.programs.get(id.0 as usize) else { continue };
            if !needs.programs.insert(id) {
                continue;
            }
            for at in 0..program.length {
                let of = self.code[(program.start + at) as usize];
                match of.code {
                    Code::Call => left.extend(self.place(of.immediate as usize).map(|of| of.0)),
                    Code::Helper => {
                        needs.helpers.insert(of.immediate as u32);
                    }
                    Code::Function => {
                        needs.functions.insert(FunctionId(of.immediate as u32));
                    }
                    Code::Refused => {
                        let why = self.refusals[of.immediate as usize].clone();
                        needs.refused.push((id, at, why));
                    }
                    Code::Linked => match self.links[of.immediate as usize] {
                        Link::Program(program) => left.push(program),
                        Link::Map(map) => {
                            needs.maps.insert(map);
                        }
                        _ => {}
                    },
                    _ => {}
                }
            }
        }
        needs
    }

    /// The helpers that it calls, by number.
    pub fn helpers(&self) -> BTreeSet<u32> {
        let calls = self.code.iter().filter(|of| of.code == Code::Helper);
        calls.map(|of| of.immediate as u32).collect()
    }
}
