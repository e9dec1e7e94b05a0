//! A bare object in BPF with one scheduler, of any author: its constants are filled in, it is
//! loaded and attached, and schedules until this program or the kernel ends it.
//!
//! A loader of its own would do the same: constants that are numbers of the kernel's (`__SCX_…` of
//! the scx project's headers, such as `SCX_SLICE_DFL`) are the running kernel's, and the rest is
//! given as `NAME=VALUE`.

use crate::error::Error;
use crate::objects;
use crate::scheduler::{self, Scheduler};
use libbpf_rs::btf::Btf;

use libbpf_rs::btf::types::{DataSec, Enum, Enum64, MemberAttr, Struct, Var};
use libbpf_rs::btf::{ReferencesType, TypeId};
use libbpf_rs::{AsRawLibbpf, Link, MapType, Object, ObjectBuilder, OpenObject};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// A constant of an object, or a member of its table of operations.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Constant {
    /// Where it is: `.rodata` or `.data`, with what may follow, or the table's name.
    section: String,
    offset: usize,
    size: usize,
}

/// What constants begin with that are the kernel's, after which its name follows.
const OF_KERNEL: &str = "__SCX_";

/// What names of members of the table begin with, and those that may be set.
const OF_TABLE: &str = "ops.";
const SETTABLE: [&str; 3] = ["flags", "timeout_ms", "dispatch_max_batch"];
/// The flags of `sched_ext_ops`, by their bits (Linux 6.18).
const FLAGS: [(u32, &str); 8] = [
    (0, "SCX_OPS_KEEP_BUILTIN_IDLE"),
    (1, "SCX_OPS_ENQ_LAST"),
    (2, "SCX_OPS_ENQ_EXITING"),
    (3, "SCX_OPS_SWITCH_PARTIAL"),
    (4, "SCX_OPS_ENQ_MIGRATION_DISABLED"),
    (5, "SCX_OPS_ALLOW_QUEUED_WAKEUP"),
    (6, "SCX_OPS_BUILTIN_IDLE_PER_NODE"),
    (16, "SCX_OPS_HAS_CGROUP_WEIGHT"),
];

/// An opened object.
struct Bare {
    object: OpenObject,
    /// By name.
    constants: BTreeMap<String, Constant>,
}

/// Checks that `file` is an object with one scheduler, which has these constants.
///
/// # Errors
/// [`Error::Input`] with what it is instead, [`Error::Usage`] if it has no such constant.
pub fn check(file: &Path, settings: &[String]) -> Result<(), Error> {
    let mut bare = Bare::open(file)?;
    settings.iter().try_for_each(|setting| bare.set(setting))
}

/// Lets the scheduler of `file` schedule this machine until `ended`, or until the kernel ends it.
/// With a witness, the kernel's trace has what the kernel keeps of each task.
///
/// # Errors
/// As of [`check`], [`Error::Missing`] if this kernel cannot have it, and
/// [`Error::Ejected`] if the kernel ends it.
pub fn run(
    file: &Path,
    settings: &[String],
    with_witness: bool,
    ended: &AtomicBool,
) -> Result<(), Error> {
    let mut bare = Bare::open(file)?;
    bare.take_from_kernel()?;
    settings.iter().try_for_each(|setting| bare.set(setting))?;
    let mut scheduler = Scheduler::load_opened(&file.display().to_string(), bare.object)?;
    let log = kernel_log();
    scheduler.attach()?;
    let _witness = with_witness.then(witness).transpose()?;
    while !ended.load(Relaxed) {
        if !scheduler::is_enabled() {
            let why = log.map(said_of_it).filter(|why| !why.is_empty());
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            return Err(Error::Ejected(format!("the kernel ended it{why}")));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The witness, which writes until this is dropped.
fn witness() -> Result<(Object, Vec<Link>), Error> {
    let bytes = objects::object(objects::WITNESS)
        .ok_or_else(|| Error::Internal("the witness was not built".into()))?;
    let failed = |error: libbpf_rs::Error| Error::Missing(format!("the witness: {error:#}"));
    let opened = ObjectBuilder::default().open_memory(bytes).map_err(failed)?;
    let object = opened.load().map_err(failed)?;
    let links = object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>();
    Ok((object, links.map_err(failed)?))
}

/// What the kernel logs from now on, if this user may read it.
fn kernel_log() -> Option<File> {
    let mut log =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok()?;
    log.seek(SeekFrom::End(0)).ok()?;
    Some(log)
}

/// What it says of sched_ext: one record at a time, its message after a semicolon.
fn said_of_it(mut log: File) -> String {
    let (mut said, mut record) = (Vec::new(), [0; 8192]);
    loop {
        let length = match log.read(&mut record) {
            Ok(length @ 1..) => length,
            // Records were overwritten before they were read.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => continue,
            Ok(0) | Err(_) => break said.join("; "),
        };
        let text = String::from_utf8_lossy(&record[..length]);
        let message = text.lines().next().and_then(|line| line.split_once(';'));
        if let Some((_, message)) = message
            .filter(|(_, message)| message.contains("sched_ext:") && !message.ends_with(" enabled"))
        {
            said.push(message.trim_start_matches("sched_ext: ").to_string());
        }
    }
}

impl Bare {
    fn open(file: &Path) -> Result<Bare, Error> {
        let name = file.display();
        let wrong = |what: &str| Error::Input(format!("{name}: {what}"));
        let object = ObjectBuilder::default()
            .open_file(file)
            .map_err(|error| wrong(&format!("not an object in BPF: {error:#}")))?;
        let schedulers = object.maps().filter(|map| map.map_type() == MapType::StructOps);
        let schedulers: Vec<String> =
            schedulers.map(|map| map.name().to_string_lossy().into_owned()).collect();
        match &schedulers[..] {
            [_] => {}
            [] => return Err(wrong("it has no scheduler (no struct_ops)")),
            several => {
                return Err(wrong(&format!(
                    "it has {} schedulers (struct_ops): {}; give an object with one",
                    several.len(),
                    several.join(", ")
                )));
            }
        }
        // SAFETY: the object is not moved in memory when `object` is, and outlives this borrow.
        let raw = unsafe { object.as_libbpf_object().as_ref() };
        let btf = Btf::from_bpf_object(raw)
            .map_err(|error| wrong(&format!("its types cannot be read: {error:#}")))?;
        let constants = btf.as_ref().map_or_else(BTreeMap::new, constants);
        Ok(Bare { object, constants })
    }

    /// Fills in `NAME=VALUE`.
    fn set(&mut self, setting: &str) -> Result<(), Error> {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Error::Usage(format!("`{setting}` is no constant with its value, as in slice_ns=5ms"))
        })?;
        let Some(constant) = self.constants.get(name).cloned() else {
            return Err(Error::Usage(self.no_such(name)));
        };
        let is_flags = name.strip_prefix(OF_TABLE) == Some("flags");
        let value_of = if is_flags { flags(value) } else { number(value) };
        let number = value_of.ok_or_else(|| {
            if is_flags {
                let names = FLAGS.map(|(_, name)| name).join(", ");
                let what = format!("{setting}: give a number, or names joined by `|`: {names}");
                return Error::Usage(what);
            }
            Error::Usage(format!(
                "{setting}: give a whole number, true, false, or a duration with its unit, as in \
                 5ms: it is kept in nanoseconds"
            ))
        })?;
        let bytes = fitting(number, constant.size).ok_or_else(|| {
            let bits = 8 * constant.size;
            Error::Usage(format!("{setting}: {name} has {bits} bits, and {value} does not fit"))
        })?;
        self.write(&constant, &bytes)
    }

    /// The message for a constant that is not there.
    fn no_such(&self, name: &str) -> String {
        let own = self.constants.keys().filter(|own| !own.starts_with("__"));
        let own: Vec<&str> = own.map(String::as_str).collect();
        match own.is_empty() {
            true => format!("there is no constant `{name}`: the object has none to set"),
            false => format!("there is no constant `{name}`; there are {}", own.join(", ")),
        }
    }

    /// Fills in the kernel's own numbers, where the object wants any.
    fn take_from_kernel(&mut self) -> Result<(), Error> {
        let wanted: Vec<(String, Constant)> = self
            .constants
            .iter()
            .filter(|(name, _)| name.starts_with(OF_KERNEL))
            .map(|(name, constant)| (name.trim_start_matches('_').to_string(), constant.clone()))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let kernel = Btf::from_vmlinux()
            .map_err(|error| Error::Missing(format!("the kernel's types: {error:#}")))?;
        let numbers = numbers(&kernel);
        for (name, constant) in wanted {
            let number = numbers.get(&name).copied();
            // One that this kernel does not have stays 0, by which the headers know that.
            if let Some(bytes) = number.and_then(|number| fitting(number, constant.size)) {
                self.write(&constant, &bytes)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, constant: &Constant, bytes: &[u8]) -> Result<(), Error> {
        let is_it = |name: &str| name.ends_with(&constant.section);
        let map = self.object.maps_mut().find(|map| is_it(&map.name().to_string_lossy()));
        let mut map = map.ok_or_else(|| {
            Error::Internal(format!("the object has no section {}", constant.section))
        })?;
        let place = map
            .initial_value_mut()
            .and_then(|all| all.get_mut(constant.offset..constant.offset + bytes.len()))
            .ok_or_else(|| Error::Internal(format!("{} is too short", constant.section)))?;
        place.copy_from_slice(bytes);
        Ok(())
    }
}

/// The global variables of sections with an initial value, of at most eight bytes each.
fn constants(btf: &Btf<'_>) -> BTreeMap<String, Constant> {
    let mut all = BTreeMap::new();
    for section in btf.type_by_kind::<DataSec<'_>>() {
        let Some(name) = section.name().map(|name| name.to_string_lossy().into_owned()) else {
            continue;
        };
        if name.trim_start_matches('?').starts_with(".struct_ops") {
            section.iter().for_each(|place| all.extend(members(btf, place.ty)));
            continue;
        }
        if ![".rodata", ".data", ".bss"].iter().any(|kind| name.starts_with(kind)) {
            continue;
        }
        for place in section.iter() {
            let variable: Option<Var<'_>> = btf.type_by_id(place.ty);
            let variable = variable.and_then(|variable| variable.name());
            if let (Some(variable), true) = (variable, matches!(place.size, 1 | 2 | 4 | 8)) {
                let constant = Constant {
                    section: name.clone(),
                    offset: place.offset as usize,
                    size: place.size,
                };
                all.insert(variable.to_string_lossy().into_owned(), constant);
            }
        }
    }
    all
}

/// The members of a table of operations that may be set, by their names after `ops.`.
fn members(btf: &Btf<'_>, variable: TypeId) -> Vec<(String, Constant)> {
    let found = btf.type_by_id::<Var<'_>>(variable).and_then(|variable| {
        let table = variable.name()?.to_string_lossy().into_owned();
        Some((table, btf.type_by_id::<Struct<'_>>(variable.referenced_type_id())?))
    });
    let Some((table, structure)) = found else { return Vec::new() };
    let settable = structure.iter().filter_map(|member| {
        let name = member.name?.to_str().filter(|name| SETTABLE.contains(name))?;
        let MemberAttr::Normal { offset } = member.attr else { return None };
        let size = if name == "flags" { 8 } else { 4 };
        let place = Constant { section: table.clone(), offset: offset as usize / 8, size };
        Some((format!("{OF_TABLE}{name}"), place))
    });
    settable.collect()
}

/// The number of flags, which are names joined by `|`, or a number.
fn flags(text: &str) -> Option<i128> {
    let named = |name: &str| FLAGS.iter().find(|(_, of)| *of == name).map(|(bit, _)| 1 << *bit);
    text.split('|').try_fold(0, |all, flag| Some(all | named(flag).or_else(|| number(flag))?))
}

/// The kernel's enumerators of sched_ext, by name.
fn numbers(kernel: &Btf<'_>) -> BTreeMap<String, i128> {
    let mut all = BTreeMap::new();
    let mut add = |name: Option<&std::ffi::OsStr>, value: i128| {
        if let Some(name) = name.map(|name| name.to_string_lossy())
            && name.starts_with("SCX_")
        {
            all.insert(name.into_owned(), value);
        }
    };
    for of in kernel.type_by_kind::<Enum<'_>>() {
        of.iter().for_each(|one| add(one.name, one.value.into()));
    }
    for of in kernel.type_by_kind::<Enum64<'_>>() {
        of.iter().for_each(|one| add(one.name, one.value));
    }
    all
}

/// A whole number, decimal or hexadecimal, `true`, `false`, or a duration in nanoseconds.
fn number(text: &str) -> Option<i128> {
    match text {
        "true" => return Some(1),
        "false" => return Some(0),
        _ => {}
    }
    let hexadecimal = text.strip_prefix("0x").map(|digits| i128::from_str_radix(digits, 16).ok());
    let duration = || text.parse::<schedsim::Nanos>().ok().map(|of| i128::from(of.0));
    hexadecimal.unwrap_or_else(|| text.parse().ok()).or_else(duration)
}

/// `number` in this many bytes, signed or not.
fn fitting(number: i128, size: usize) -> Option<Vec<u8>> {
    let bits = 8 * size as u32;
    let fits = number >= -(1 << (bits - 1)) && number < 1 << bits;
    let bytes = number.to_le_bytes();
    fits.then(|| bytes[..size].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_or_durations_and_must_fit() {
        let of = |text: &str| number(text);
        assert_eq!((of("7"), of("-1"), of("0x10")), (Some(7), Some(-1), Some(16)));
        assert_eq!((of("5ms"), of("true"), of("20us")), (Some(5_000_000), Some(1), Some(20_000)));
        assert_eq!((of("five"), of(""), of("1.5")), (None, None, None));
        assert_eq!(flags("SCX_OPS_ENQ_LAST|SCX_OPS_ENQ_EXITING"), Some(6));
        assert_eq!((flags("0x12"), flags("SCX_OPS_LAST"), flags("1|")), (Some(18), None, None));
        assert_eq!(fitting(255, 1), Some(vec![255]));
        assert_eq!((fitting(256, 1), fitting(-129, 1)), (None, None));
        assert_eq!(fitting(-1, 4), Some(vec![255; 4]));
        assert_eq!(fitting(u64::MAX.into(), 8), Some(vec![255; 8]));
    }
}
