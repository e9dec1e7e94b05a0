//! The BPF program in the kernel: loaded, attached, emptied, counted. It goes with this process.

use crate::calls;
use crate::error::Error;
use crate::locks;
use crate::log::{Log, by_name};
use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{
    Link, Map, MapCore, MapFlags, Object, ObjectBuilder, RingBuffer, RingBufferBuilder, UprobeOpts,
};
use recording::{Counts, Event};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.bpf.o"));

/// What is not resolved, in the order of the program's `enum unresolved`.
const PROBLEMS: [&str; 8] = [
    "calls about a descriptor that was not open",
    "calls of 32-bit tasks, which are not recorded",
    "tasks beyond the recorder's table, whose calls are not recorded",
    "polls of more than 64 descriptors, of which the first 64 are recorded",
    "arguments of calls that could not be read",
    "entries of polls that were left out to stay within the budget",
    "calls that did not wait and were left out to stay within the budget",
    "requests of io_uring, of which only the submitting calls are recorded",
];

/// The name of events that the kernel did not hand over, among the lost ones.
const MISSED: &str = "missed";

/// The kernel's description of its types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The namespace of pids of this process, and the first one, in which the kernel counts.
const NAMESPACE: &str = "/proc/self/ns/pid";
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// What only some kernels have tracepoints for.
const OPTIONAL: [&str; 6] =
    ["local_timer_", "reschedule_", "call_function_", "irq_work_", "irq_handler_", "io_uring_"];

/// The programs on the calls of the C library's locks.
const LIBRARY: [&str; 2] = ["library_begins", "library_ends"];

/// The counters at the beginning of what a CPU has, in numbers of 8 bytes.
const COUNTERS: usize = 16 + 16 + 8;

/// Whose calls are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Of the tasks that are traced, and of what they start.
    Traced,
    /// Of these, and of the tasks in this control group and below: the inode of its folder, and how
    /// many folders it is below the root.
    Cgroup { id: u64, level: u32 },
    /// Of all tasks.
    All,
}

/// What the program is loaded for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Whose calls are recorded.
    pub scope: Scope,
    /// The most tasks that are traced at a time: a power of two.
    pub places: u32,
    /// The size of the buffer in bytes: a power of two, and whole pages.
    pub buffer: u32,
    /// The calls of the C library's locks are recorded.
    pub locks: bool,
    /// Programs of calls that return at once.
    pub empty_calls: bool,
    /// Every such waking is dropped behind the counters' back; 0 is none.
    pub canary: u32,
}

/// The BPF program.
pub struct Probe {
    object: Object,
    links: Vec<Link>,
    /// The kernel's numbers of the attached programs.
    ids: Vec<u32>,
}

impl Probe {
    /// Loads the program. It sees nothing yet.
    ///
    /// # Errors
    /// [`Error::Missing`] if this machine cannot have it.
    pub fn load(wanted: Wanted) -> Result<Probe, Error> {
        let scope = wanted.scope;
        // SAFETY: it has no arguments.
        if unsafe { libc::geteuid() } != 0 {
            return Err(Error::Missing("recording causes needs root: run it with sudo".into()));
        }
        if fs::read_link(NAMESPACE).is_ok_and(|name| name.as_os_str() != FIRST_NAMESPACE) {
            return Err(Error::Missing(
                "here tasks have other numbers than in the kernel (a namespace of pids, as in a \
                 container): record outside of it, or start the container with the pids of the \
                 host, as in: docker run --pid=host"
                    .into(),
            ));
        }
        if fs::metadata(TYPES).is_err() {
            return Err(Error::Missing(
                "this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)".into(),
            ));
        }
        let failed =
            |error| Error::Missing(format!("this kernel does not load the recorder: {error:#}"));
        let mut object = ObjectBuilder::default()
            .name("schedlab_rec")
            .and_then(|builder| builder.open_memory(OBJECT))
            .map_err(failed)?;
        for mut map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == "traced" {
                map.set_max_entries(wanted.places).map_err(failed)?;
            }
            if name == "events" {
                map.set_max_entries(wanted.buffer).map_err(failed)?;
            }
            let Some(value) = map.initial_value_mut() else { continue };
            match name.as_str() {
                name if name.ends_with(".rodata.calls") => {
                    value[..calls::CALLS].copy_from_slice(&calls::table());
                }
                name if name.ends_with(".rodata.all") => {
                    value[0] = u8::from(scope == Scope::All);
                }
                name if name.ends_with(".rodata.cgroup") => {
                    if let Scope::Cgroup { id, level } = scope {
                        value[..8].copy_from_slice(&id.to_ne_bytes());
                        value[8..12].copy_from_slice(&level.to_ne_bytes());
                    }
                }
                name if name.ends_with(".rodata.empty") => {
                    value[..4].copy_from_slice(&u32::from(wanted.empty_calls).to_ne_bytes());
                }
                name if name.ends_with(".rodata.futex") => {
                    let number = u32::try_from(libc::SYS_futex).unwrap_or(0);
                    value[..4].copy_from_slice(&number.to_ne_bytes());
                }
                name if name.ends_with(".rodata.tasks") => {
                    value[..4].copy_from_slice(&(wanted.places - 1).to_ne_bytes());
                }
                name if name.ends_with(".rodata.canary") => {
                    value[..4].copy_from_slice(&wanted.canary.to_ne_bytes());
                }
                _ => {}
            }
        }
        let types = fs::read(TYPES).map_err(|error| Error::Missing(format!("{TYPES}: {error}")))?;
        for mut program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if OPTIONAL.iter().any(|vector| name.starts_with(vector)) {
                let named = format!("\0btf_trace_{name}\0");
                program.set_autoload(contains(&types, named.as_bytes()));
            }
            if LIBRARY.contains(&name.as_str()) {
                program.set_autoload(wanted.locks);
            }
        }
        Ok(Probe { object: object.load().map_err(failed)?, links: Vec::new(), ids: Vec::new() })
    }

    /// Lets it see everything from now on.
    ///
    /// # Errors
    /// [`Error::Missing`] if the kernel has not all the tracepoints.
    pub fn attach(&mut self) -> Result<(), Error> {
        let is_on_a_tracepoint = |name: &OsStr| !LIBRARY.iter().any(|library| name == *library);
        for program in self.object.progs_mut().filter(|program| program.autoload()) {
            if is_on_a_tracepoint(program.name()) {
                let attached = program.attach();
                keep(&mut self.links, &mut self.ids, program.name(), attached)?;
            }
        }
        // An end before its beginning, so that none is without.
        for name in LIBRARY.iter().rev() {
            let program = self.object.progs_mut().find(|program| program.name() == *name);
            let Some(program) = program.filter(|program| program.autoload()) else { continue };
            for place in locks::places()? {
                let retprobe = *name == "library_ends";
                let options =
                    UprobeOpts { cookie: place.cookie, retprobe, ..UprobeOpts::default() };
                let attached =
                    program.attach_uprobe_with_opts(-1, &place.file, place.offset, options);
                keep(&mut self.links, &mut self.ids, program.name(), attached)?;
            }
        }
        Ok(())
    }

    /// Ends that.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Records the calls of this task, and of what it starts.
    ///
    /// # Errors
    /// If another task has its place.
    pub fn trace(&self, tid: u32) -> Result<(), Error> {
        let failed = |why: String| Error::Internal(format!("task {tid} cannot be traced: {why}"));
        let place = self.place(tid)?;
        let map = self.map("traced")?;
        let found = map.lookup(&place, MapFlags::ANY).map_err(|error| failed(error.to_string()))?;
        let mut state = found.ok_or_else(|| failed("it has no place".into()))?;
        let before = tid_of(&state);
        if before != 0 && before != tid {
            return Err(failed(format!("task {before} has its place")));
        }
        state.fill(0);
        state[..4].copy_from_slice(&tid.to_ne_bytes());
        map.update(&place, &state, MapFlags::ANY).map_err(|error| failed(error.to_string()))
    }

    /// Ends that.
    ///
    /// # Errors
    /// If it was not traced.
    pub fn forget(&self, tid: u32) -> Result<(), Error> {
        let failed = |why: String| Error::Internal(format!("task {tid} was not traced: {why}"));
        let place = self.place(tid)?;
        let map = self.map("traced")?;
        let found = map.lookup(&place, MapFlags::ANY).map_err(|error| failed(error.to_string()))?;
        let mut state = found
            .filter(|state| tid_of(state) == tid)
            .ok_or_else(|| failed("another is".into()))?;
        state.fill(0);
        map.update(&place, &state, MapFlags::ANY).map_err(|error| failed(error.to_string()))
    }

    /// Where the table has a task.
    fn place(&self, tid: u32) -> Result<[u8; 4], Error> {
        Ok((tid & (self.map("traced")?.max_entries() - 1)).to_ne_bytes())
    }

    /// The buffer of events, mapped once: mapping its pages costs milliseconds.
    ///
    /// # Errors
    /// If it cannot be mapped.
    pub fn buffer(&self) -> Result<Buffer, Error> {
        let arrived = Rc::new(RefCell::new(Vec::new()));
        let taken = Rc::clone(&arrived);
        let map = self.map("events")?;
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&map, move |bytes| {
                taken.borrow_mut().extend(bytes);
                0
            })
            .map_err(unreadable)?;
        Ok(Buffer { ring: builder.build().map_err(unreadable)?, arrived })
    }

    /// The program's counters.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn counts(&self) -> Result<Counts, Error> {
        let failed = |error| Error::Internal(format!("the counters cannot be read: {error:#}"));
        let zero = 0_u32.to_ne_bytes();
        let cpus = self.map("counters")?.lookup_percpu(&zero, MapFlags::ANY).map_err(failed)?;
        let mut all = [0_u64; COUNTERS];
        let mut counts = Counts::default();
        for (cpu, bytes) in (0_u16..).zip(cpus.unwrap_or_default()) {
            let numbers: Vec<u64> =
                bytes.as_chunks().0.iter().copied().map(u64::from_ne_bytes).collect();
            let lost: u64 = numbers.iter().skip(16).take(16).sum();
            if lost > 0 {
                counts.lost_by_cpu.insert(cpu, lost);
            }
            all.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        let (kinds, problems) = all.split_at(32);
        let of = |at: usize| by_name(&std::array::from_fn(|kind| kinds[at + kind]));
        (counts.emitted, counts.lost) = (of(0), of(16));
        for (name, count) in PROBLEMS.iter().zip(problems).filter(|(_, count)| **count > 0) {
            counts.unresolved.insert((*name).to_string(), *count);
        }
        let tasks = self.map("lost_tasks")?;
        for key in tasks.keys() {
            let value = tasks.lookup(&key, MapFlags::ANY).map_err(failed)?.unwrap_or_default();
            if let (Ok(tid), Ok(count)) = (key.try_into(), value.try_into()) {
                counts.lost_by_task.insert(u32::from_ne_bytes(tid), u64::from_ne_bytes(count));
            }
        }
        let missed = self.missed();
        if missed > 0 {
            counts.lost.insert(MISSED.to_string(), missed);
        }
        Ok(counts)
    }

    /// Events that came in an interrupt while the program of the same tracepoint ran on that CPU:
    /// the kernel does not run it a second time, and counts them.
    fn missed(&self) -> u64 {
        let infos = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default());
        let ours = infos.filter(|info| self.ids.contains(&info.id));
        ours.map(|info| info.recursion_misses).sum()
    }

    /// Lets the kernel measure how long its programs run, until the result is dropped.
    ///
    /// # Errors
    /// [`Error::Missing`] if it cannot.
    pub fn measure() -> Result<OwnedFd, Error> {
        // SAFETY: a number in, a descriptor or an error out.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return Err(Error::Missing(
                "a budget needs Linux 5.8 or newer, which measures programs in BPF".into(),
            ));
        }
        // SAFETY: it was just opened, and has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Nanoseconds for which the programs ran, while it was measured.
    pub fn run_time(&self) -> u64 {
        let infos = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default());
        infos.filter(|info| self.ids.contains(&info.id)).map(|info| info.run_time_ns).sum()
    }

    /// Leaves out detail: the level of the BPF program.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn shed(&self, level: u32) -> Result<(), Error> {
        let failed = |error| Error::Internal(format!("detail cannot be left out: {error:#}"));
        let maps = self.object.maps().find(|map| map.name().as_bytes().ends_with(b".data.shed"));
        let map = maps.ok_or_else(|| Error::Internal("there is no map of levels".into()))?;
        map.update(&0_u32.to_ne_bytes(), &level.to_ne_bytes(), MapFlags::ANY).map_err(failed)
    }

    fn map(&self, name: &str) -> Result<Map<'_>, Error> {
        self.object
            .maps()
            .find(|map| map.name() == name)
            .ok_or_else(|| Error::Internal(format!("the recorder has no map {name}")))
    }
}

/// The buffer that the kernel fills.
pub struct Buffer {
    ring: RingBuffer<'static>,
    arrived: Rc<RefCell<Vec<u8>>>,
}

impl Buffer {
    /// Moves all events from the buffer into the log.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn consume(&self, log: &mut Log) -> Result<(), Error> {
        self.ring.consume().map_err(unreadable)?;
        let arrived = mem::take(&mut *self.arrived.borrow_mut());
        arrived.chunks(Event::SIZE).for_each(|bytes| log.take(bytes));
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unreadable(error: libbpf_rs::Error) -> Error {
    Error::Internal(format!("the buffer cannot be read: {error:#}"))
}

/// Keeps the link of a program that was attached.
fn keep(
    links: &mut Vec<Link>,
    ids: &mut Vec<u32>,
    name: &OsStr,
    attached: libbpf_rs::Result<Link>,
) -> Result<(), Error> {
    let link = attached.map_err(|error| {
        Error::Missing(format!("{} cannot be attached: {error:#}", name.display()))
    })?;
    if let Ok(info) = link.info()
        && !ids.contains(&info.prog_id)
    {
        ids.push(info.prog_id);
    }
    links.push(link);
    Ok(())
}

/// The task of a place in the table.
fn tid_of(state: &[u8]) -> u32 {
    state.first_chunk().map_or(0, |tid| u32::from_ne_bytes(*tid))
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.1 to 6.5 refuse a program with one instruction of version 4 of the instruction set.
    #[test]
    fn no_instruction_is_newer_than_the_oldest_kernel() {
        let mut builder = ObjectBuilder::default();
        let object = builder.open_memory(OBJECT).unwrap();
        let mut count = 0;
        for program in object.progs() {
            for instruction in program.insns() {
                let (class, mode) = (instruction.code & 7, instruction.code & 0xe0);
                let is_swap = instruction.code == 0xd7;
                let is_long_jump = instruction.code == 0x06;
                let loads_signed = class == 1 && mode == 0x80;
                let is_signed = instruction.off != 0 && matches!(class, 4 | 7);
                let is_newer = is_swap || is_long_jump || loads_signed || is_signed;
                assert!(!is_newer, "{}: {:#x}", program.name().display(), instruction.code);
                count += 1;
            }
        }
        assert!(count > 1_000, "{count} instructions");
    }
}
