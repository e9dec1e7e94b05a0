//! A machine for BPF: object files of clang with BTF, their instructions, maps and memory.
//!
//! It runs compiled programs for the Linux kernel without a kernel. [`Object`] is a parsed file,
//! [`Machine`] has its memory and runs it, [`Outside`] is what the kernel would do. Nothing here
//! knows what the programs are for. The same calls give the same results everywhere.
//!
//! An object is as one kernel sees it whose structures are those of the object's own types: so
//! offsets need no relocation (CO-RE).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod btf;
mod elf;
mod fault;
mod instruction;
mod lines;
mod machine;
mod malformed;
mod memory;
mod names;
mod object;

pub use btf::{Btf, Field, Kind, Member, Part, TypeId};
pub use fault::{Fault, FaultKind};
pub use lines::{Line, Listing, Place};
pub use machine::look::{Found, Holder};
pub use machine::outside::{
    Called, Kernel, KernelVariable, Missing, Outside, Refused, Setting, Settings,
};
pub use machine::{Counter, Machine};
pub use malformed::Malformed;
pub use memory::Address;
pub use names::{helper_name, helper_number};
pub use object::{
    Function, FunctionId, Global, MapDefinition, MapId, MapKind, Needs, Object, Operation, Program,
    ProgramId, StructOps, Wanted,
};
