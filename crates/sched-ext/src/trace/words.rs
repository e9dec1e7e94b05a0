//! Values in the words of the kernel's sources: tasks, queues, flags, addresses.

use crate::constants as c;
use crate::core::Core;
use crate::kernel::{E2BIG, EBUSY, EEXIST, EINVAL, ENOENT, ENOMEM};
use crate::masks::Mask;
use crate::memory;
use crate::queues::QueueId;
use bpf::{Address, Found, Holder, Machine, MapId, TypeId};
use schedsim::{Nanos, TaskId};

/// Negative numbers down to this one are errors.
const LAST_ERROR: i64 = -4095;
/// The longest text that is shown.
const LONGEST: usize = 256;

/// Flags of a kind.
type Flags = &'static [(u64, &'static str)];

const ENQUEUE: Flags = &[
    (c::ENQ_WAKEUP, "SCX_ENQ_WAKEUP"),
    (c::ENQ_RESTORE, "ENQUEUE_RESTORE"),
    (c::ENQ_HEAD, "SCX_ENQ_HEAD"),
    (c::ENQ_CPU_SELECTED, "SCX_ENQ_CPU_SELECTED"),
    (c::ENQ_PREEMPT, "SCX_ENQ_PREEMPT"),
    (c::ENQ_REENQ, "SCX_ENQ_REENQ"),
    (c::ENQ_LAST, "SCX_ENQ_LAST"),
    (c::ENQ_PRIQ, "SCX_ENQ_DSQ_PRIQ"),
];
const DEQUEUE: Flags = &[(c::DEQ_SLEEP, "SCX_DEQ_SLEEP"), (c::DEQ_SAVE, "DEQUEUE_SAVE")];
const WAKE: Flags = &[
    (c::WAKE_FORK, "SCX_WAKE_FORK"),
    (c::WAKE_TTWU, "SCX_WAKE_TTWU"),
    (c::WAKE_SYNC, "SCX_WAKE_SYNC"),
];
const KICK: Flags =
    &[(c::KICK_IDLE, "SCX_KICK_IDLE"), (c::KICK_PREEMPT, "SCX_KICK_PREEMPT"), (4, "SCX_KICK_WAIT")];
const PICK: Flags = &[(1, "SCX_PICK_IDLE_CORE"), (crate::idle::IN_NODE, "SCX_PICK_IDLE_IN_NODE")];

/// What names depend on.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    pub core: &'a Core,
    pub machine: &'a Machine,
    /// The names of the tasks, by number.
    pub names: &'a [String],
}

impl Words<'_> {
    /// An argument, by what the kernel calls it. `map` is the map among the arguments.
    pub fn argument(&self, name: &str, value: u64, map: Option<MapId>) -> String {
        match name {
            "enq_flags" => flags(value, ENQUEUE),
            "deq_flags" => flags(value, DEQUEUE),
            "wake_flags" => flags(value, WAKE),
            "kick_flags" => flags(value, KICK),
            "pick_flags" => flags(value, PICK),
            "flags" => format!("{value:#x}"),
            "dsq_id" => queue(value),
            "slice" if value == c::SLICE_INFINITE => "SCX_SLICE_INF".to_string(),
            "slice" | "nsecs" => Nanos(value).exact(),
            "vtime" => value.to_string(),
            "cpu" | "prev_cpu" | "node" | "pid" | "start" | "end" => (value as i32).to_string(),
            "idle" | "runnable" => (value & 0xff != 0).to_string(),
            "cpumask" | "cpus_allowed" | "src_mask" | "src1_mask" | "src2_mask" => self.mask(value),
            "p" | "prev" | "from" | "to" | "args" | "key" | "value" | "fmt" | "ctx" | "owner"
                if value == 0 =>
            {
                "NULL".to_string()
            }
            "fmt" => self.text(value),
            "key" | "value" if map.is_some() => self.of_map(name, value, map),
            _ => self.value(value),
        }
    }

    /// The members of a structure of arguments, each by its name.
    pub fn arguments(&self, kind: TypeId, at: u64) -> String {
        let btf = self.machine.object().btf();
        let members: Vec<String> = btf
            .members(kind)
            .map(|member| {
                let size = btf.size(member.kind).unwrap_or(0).min(8) as usize;
                let at = at.wrapping_add(u64::from(member.first_bit / 8));
                let value = memory::read(self.machine, at, size).unwrap_or_default();
                format!("{}={}", member.name, self.argument(member.name, value, None))
            })
            .collect();
        format!("{{{}}}", members.join(", "))
    }

    /// A number, or what it is the address of.
    pub fn value(&self, value: u64) -> String {
        if (LAST_ERROR..0).contains(&value.cast_signed()) {
            return error(value.cast_signed());
        }
        if value >> 32 == 0 {
            return value.to_string();
        }
        self.address(value).unwrap_or_else(|| value.to_string())
    }

    /// What an address is of.
    pub fn address(&self, value: u64) -> Option<String> {
        if value == 0 {
            return Some("NULL".to_string());
        }
        if let Some(task) = self.core.task_of(self.machine, value) {
            return Some(self.task(task));
        }
        if let Some(program) = self.machine.program_at(value) {
            return Some(self.machine.object().programs()[program.0 as usize].name.clone());
        }
        if let Ok(map) = self.machine.map_at(value) {
            return Some(format!("&{}", self.machine.map_definition(map)?.name));
        }
        if let Some(cpu) = self.core.cpus.iter().position(|cpu| cpu.idle_task == value) {
            return Some(format!("swapper/{cpu}[0]"));
        }
        let address = Address(value);
        if self.machine.is_of_a_call(address) {
            return Some("stack".to_string());
        }
        let found = self.machine.found(address)?;
        let offset = (value - found.start.0) as u32;
        let way = match found.kind {
            Some(kind) if offset > 0 => self.machine.object().btf().part_at(kind, offset).way,
            _ if offset > 0 => format!("+{offset:#x}"),
            _ => String::new(),
        };
        let (holder, _) = self.holder(&found)?;
        Some(format!("&{holder}{way}"))
    }

    /// What was found, and how its members are written behind it.
    pub fn holder(&self, found: &Found) -> Option<(String, &'static str)> {
        Some(match &found.holder {
            Holder::Variable(name) => (name.clone(), ""),
            Holder::Value { .. } | Holder::Owned { .. } => (self.in_map(&found.holder)?, ""),
            Holder::Other(name) => match self.core.task_of(self.machine, found.start.0) {
                Some(task) => (self.task(task), "->"),
                None => (name.trim_start_matches("a ").trim_start_matches("struct ").into(), "->"),
            },
        })
    }

    /// A value of a map: `stats[2]`, `stats[2] on CPU 1`, `contexts[hog[5]]`.
    pub fn in_map(&self, holder: &Holder) -> Option<String> {
        let (map, key, cpu) = match holder {
            Holder::Value { map, key, cpu } => {
                let key = self.of_type(self.machine.map_definition(*map)?.key, key);
                (*map, key, *cpu)
            }
            Holder::Owned { map, owner } => (*map, self.value(owner.0), None),
            _ => return None,
        };
        let name = &self.machine.map_definition(map)?.name;
        // As `per_cpu(VARIABLE, CPU)`.
        let cpu = cpu.map_or(String::new(), |cpu| format!("@{cpu}"));
        Some(format!("{name}[{key}]{cpu}"))
    }

    /// A key or value that a program has in memory for a map.
    fn of_map(&self, name: &str, value: u64, map: Option<MapId>) -> String {
        let of = map.and_then(|map| self.machine.map_definition(map));
        let of = of.map(|of| match name {
            "key" => (of.key, of.key_size),
            _ => (of.value, of.value_size),
        });
        let Some((kind, size)) = of else { return self.value(value) };
        let bytes = self.machine.bytes(Address(value), size as usize);
        bytes.map_or_else(|_| self.value(value), |bytes| self.of_type(kind, bytes))
    }

    /// A value of a type that may not be known: then a number, or bytes.
    pub fn of_type(&self, kind: Option<TypeId>, bytes: &[u8]) -> String {
        match kind {
            Some(kind) => self.typed(kind, bytes),
            None if bytes.len() <= 8 => number(bytes).to_string(),
            None => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
        }
    }

    /// A value of a type.
    pub fn typed(&self, kind: TypeId, bytes: &[u8]) -> String {
        self.machine.object().btf().shown(kind, bytes, &|address| self.address(address))
    }

    /// A task as the kernel's texts name one: its name and its `pid`.
    pub fn task(&self, task: TaskId) -> String {
        format!("{}[{}]", self.name(task), task.0 + 1)
    }

    /// The name of a task.
    pub fn name(&self, task: TaskId) -> String {
        let name = self.names.get(task.index());
        name.map_or_else(|| format!("task{}", task.0 + 1), String::clone)
    }

    /// A set of CPUs as the kernel lists one.
    fn mask(&self, value: u64) -> String {
        let Ok(mask) = self.core.mask(self.machine, value) else { return self.value(value) };
        format!("{{{}}}", listed(&mask))
    }

    fn text(&self, value: u64) -> String {
        match self.machine.text(Address(value), LONGEST) {
            Ok(text) => format!("{text:?}"),
            Err(_) => self.value(value),
        }
    }
}

/// A number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// A negative number, with the name of the error that it stands for.
pub fn error(value: i64) -> String {
    const NAMES: [(i32, &str); 6] = [
        (ENOENT, "ENOENT"),
        (E2BIG, "E2BIG"),
        (ENOMEM, "ENOMEM"),
        (EBUSY, "EBUSY"),
        (EEXIST, "EEXIST"),
        (EINVAL, "EINVAL"),
    ];
    match NAMES.iter().find(|(of, _)| -i64::from(*of) == value) {
        Some((_, name)) => format!("{value} ({name})"),
        None => value.to_string(),
    }
}

/// The queue of a number, as the kernel writes it.
pub fn queue(id: u64) -> String {
    let on = c::DSQ_BUILTIN | c::DSQ_LOCAL_ON;
    match id {
        c::DSQ_LOCAL => "SCX_DSQ_LOCAL".to_string(),
        c::DSQ_GLOBAL => "SCX_DSQ_GLOBAL".to_string(),
        id if id & on == on => format!("SCX_DSQ_LOCAL_ON|{}", id & 0xffff_ffff),
        id => format!("{id:#x}"),
    }
}

/// A queue of the core.
pub fn own_queue(id: QueueId) -> String {
    match id {
        QueueId::Local(cpu) => format!("SCX_DSQ_LOCAL_ON|{cpu}"),
        QueueId::Global(_) => "SCX_DSQ_GLOBAL".to_string(),
        QueueId::Own(id) => queue(id),
    }
}

/// Flags by their names.
fn flags(value: u64, names: Flags) -> String {
    let mut rest = value;
    let mut parts: Vec<String> = Vec::new();
    for (bit, name) in names {
        if rest & bit != 0 {
            rest &= !bit;
            parts.push((*name).to_string());
        }
    }
    if rest != 0 {
        parts.push(format!("{rest:#x}"));
    }
    if parts.is_empty() { "0".to_string() } else { parts.join("|") }
}

/// `0-3,5`.
fn listed(mask: &Mask) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for cpu in mask.iter() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu.0 => *last = cpu.0,
            _ => ranges.push((cpu.0, cpu.0)),
        }
    }
    let range = |(first, last): (u16, u16)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_queues_and_masks_are_as_the_kernel_writes_them() {
        assert_eq!(flags(0, ENQUEUE), "0");
        assert_eq!(flags(1 | 1 << 10, ENQUEUE), "SCX_ENQ_WAKEUP|SCX_ENQ_CPU_SELECTED");
        assert_eq!(flags(1 | 1 << 50, ENQUEUE), "SCX_ENQ_WAKEUP|0x4000000000000");
        assert_eq!(queue(1 << 63 | 2), "SCX_DSQ_LOCAL");
        assert_eq!(queue(3 << 62 | 5), "SCX_DSQ_LOCAL_ON|5");
        assert_eq!(queue(7), "0x7");
        let mut mask = Mask::none(9);
        [0, 1, 2, 5, 7, 8].into_iter().for_each(|cpu| mask.set(cpu));
        assert_eq!(listed(&mask), "0-2,5,7-8");
    }
}
