//! Loads a BPF scheduler, attaches it, and reports why it ended.

use crate::error::Error;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{
    Link, Map, MapCore, MapFlags, MapType, Object, ObjectBuilder, OpenObject, PrintLevel,
    ProgramType,
};
use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A loaded scheduler. Dropping it gives all tasks back to the kernel's own.
pub struct Scheduler {
    /// Its program and maps.
    pub object: Object,
    link: Option<Link>,
    /// Its programs that are attached to other events of the kernel.
    listeners: Vec<Link>,
}

/// Why a scheduler ended: the begin of the scx project's `struct user_exit_info`, and its texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exit {
    /// `enum scx_exit_kind`; below 1024 it is no fault.
    pub kind: i32,
    /// The kernel's name for it.
    pub reason: String,
    /// The kernel's message.
    pub message: String,
}

/// How many lines of the verifier's log are shown: the refused instruction, some before it, the
/// reason, and how far the verifier came.
const VERDICT: usize = 8;

/// `SCX_EXIT_ERROR`, the first kind that is a fault.
const FAULT: i32 = 1024;
const REASON_AT: usize = 16;
const MESSAGE_AT: usize = REASON_AT + 128;

/// The output of libbpf so far, with the verifier's log.
static HEARD: Mutex<String> = Mutex::new(String::new());

/// Keeps the output of libbpf, and passes it on.
pub fn hear(_: PrintLevel, text: String) {
    eprint!("{text}");
    captured().push_str(&text);
}

/// Keeps it, for the one message that ends with the verdict.
pub fn keep(_: PrintLevel, text: String) {
    captured().push_str(&text);
}

fn captured() -> MutexGuard<'static, String> {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of the verifier's log, with the reason for the refusal; empty without a log.
fn verdict(captured: &str) -> String {
    let log = captured
        .split_once("BEGIN PROG LOAD LOG")
        .and_then(|(_, log)| log.split_once("END PROG LOAD LOG"));
    let lines: Vec<&str> = log
        .map_or("", |(log, _)| log)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.contains("--"))
        .collect();
    let last = &lines[lines.len().saturating_sub(VERDICT)..];
    if last.is_empty() { String::new() } else { format!("; the verifier: {}", last.join(" | ")) }
}

impl Exit {
    /// Whether the scheduler broke a rule.
    pub fn is_fault(&self) -> bool {
        self.kind >= FAULT
    }

    fn read(bytes: &[u8]) -> Option<Exit> {
        let kind = i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
        let text = |bytes: &[u8]| {
            CStr::from_bytes_until_nul(bytes).unwrap_or_default().to_string_lossy().into_owned()
        };
        let (reason, message) =
            (text(bytes.get(REASON_AT..MESSAGE_AT)?), text(bytes.get(MESSAGE_AT..)?));
        (kind != 0).then_some(Exit { kind, reason, message })
    }
}

impl Scheduler {
    /// Loads a program without attaching it. If it has `.rodata.settings`, it learns whether the
    /// machine has more than one CPU.
    ///
    /// # Errors
    /// If this kernel cannot have it, or another one is loaded.
    pub fn load(name: &str, bytes: &[u8]) -> Result<Scheduler, Error> {
        let cpus = libbpf_rs::num_possible_cpus()
            .map_err(|error| Error::Missing(format!("the number of CPUs: {error:#}")))?;
        Scheduler::load_with(name, bytes, |constants| constants[0] = u8::from(cpus > 1))
    }

    /// Loads a program whose constants in `.rodata.settings` are filled in by `set`.
    ///
    /// # Errors
    /// As of [`Scheduler::load`].
    pub fn load_with(
        name: &str,
        bytes: &[u8],
        set: impl FnOnce(&mut [u8]),
    ) -> Result<Scheduler, Error> {
        let mut object = ObjectBuilder::default()
            .name(name)
            .and_then(|builder| builder.open_memory(bytes))
            .map_err(|error| refused(name, &error))?;
        if let Some(mut constants) =
            object.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".rodata.settings"))
        {
            constants.initial_value_mut().map(set);
        }
        Scheduler::load_opened(name, object)
    }

    /// Loads an object whose constants are filled in.
    ///
    /// # Errors
    /// As of [`Scheduler::load`].
    pub fn load_opened(name: &str, object: OpenObject) -> Result<Scheduler, Error> {
        expect_sched_ext()?;
        let object = object.load().map_err(|error| refused(name, &error))?;
        Ok(Scheduler { object, link: None, listeners: Vec::new() })
    }

    /// One of its maps.
    ///
    /// # Errors
    /// If it has no such map.
    pub fn map(&self, name: &str) -> Result<Map<'_>, Error> {
        self.object
            .maps()
            .find(|map| map.name() == name)
            .ok_or_else(|| Error::Internal(format!("there is no map {name}")))
    }

    /// Gives all tasks back, and returns the reason if that was not requested.
    ///
    /// # Errors
    /// [`Error::Ejected`] with what the kernel reports about `who`.
    pub fn end(&mut self, who: &str) -> Result<(), Error> {
        let exit = self.exit();
        self.detach();
        match exit.filter(Exit::is_fault) {
            Some(exit) => Err(Error::Ejected(format!(
                "the kernel ejected {who}: {}: {}",
                exit.reason, exit.message
            ))),
            None => Ok(()),
        }
    }

    /// Attaches it: it schedules all tasks that are not real-time ones.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn attach(&mut self) -> Result<(), Error> {
        for program in
            self.object.progs_mut().filter(|program| program.prog_type() == ProgramType::Tracing)
        {
            let failed = |error| {
                Error::Missing(format!(
                    "{} cannot be attached: {error:#}",
                    program.name().display()
                ))
            };
            self.listeners.push(program.attach().map_err(failed)?);
        }
        let attached = {
            let mut maps = self.object.maps_mut();
            let ops = maps.find(|map| map.map_type() == MapType::StructOps);
            ops.ok_or_else(|| Error::Internal("no struct_ops map".into()))?.attach_struct_ops()
        };
        let link = attached.map_err(|error| {
            if let Err(taken) = expect_no_scheduler() {
                return taken;
            }
            let reason = self
                .exit()
                .map_or(format!("{error:#}"), |exit| format!("{}: {}", exit.reason, exit.message));
            Error::Missing(format!("the kernel does not put the scheduler in charge: {reason}"))
        })?;
        self.link = Some(link);
        Ok(())
    }

    /// Its program that makes it forget its history, if it remembers anything.
    pub fn begins_anew_by(&self) -> Option<OwnedFd> {
        self.object
            .progs()
            .find(|program| program.name() == "begin_anew")?
            .as_fd()
            .try_clone_to_owned()
            .ok()
    }

    /// Gives all tasks back to the kernel's own scheduler.
    pub fn detach(&mut self) {
        self.link = None;
        self.listeners.clear();
    }

    /// The reason why it ended; `None` while it schedules.
    pub fn exit(&self) -> Option<Exit> {
        let map = self.map("exit_info").ok()?;
        Exit::read(&map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??)
    }

    /// How many instructions the verifier processed for each of its programs, in the order of their
    /// names.
    pub fn verified(&self) -> Vec<(String, u32)> {
        let names: Vec<String> = self
            .object
            .progs()
            .map(|program| program.name().to_string_lossy().into_owned())
            .collect();
        let known = |name: &str| {
            names
                .iter()
                .find(|full| {
                    full.get(..name.len()) == Some(name) && name.len() >= full.len().min(15)
                })
                .cloned()
        };
        let infos = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default());
        let mut verified: Vec<(String, u32)> = infos
            .filter_map(|info| Some((known(&info.name.to_string_lossy())?, info.verified_insns)))
            .collect();
        verified.sort();
        verified
    }
}

/// Why the kernel does not take an object.
fn refused(name: &str, error: &libbpf_rs::Error) -> Error {
    Error::Missing(format!("{name} cannot be loaded: {error:#}{}", verdict(&captured())))
}

/// Whether a scheduler is at work.
pub fn is_enabled() -> bool {
    fs::read_to_string("/sys/kernel/sched_ext/state").is_ok_and(|state| state.trim() == "enabled")
}

/// Checks that this kernel has sched_ext and its types, and no other scheduler is attached.
fn expect_sched_ext() -> Result<(), Error> {
    // SAFETY: it has no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return Err(Error::Missing("loading a scheduler needs root: run it with sudo".into()));
    }
    if fs::metadata("/sys/kernel/btf/vmlinux").is_err() {
        return Err(Error::Missing(
            "this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)".into(),
        ));
    }
    expect_no_scheduler()
}

fn expect_no_scheduler() -> Result<(), Error> {
    const SCHED_EXT: &str = "/sys/kernel/sched_ext";
    let read = |name: &str| fs::read_to_string(Path::new(SCHED_EXT).join(name));
    let state = read("state").map_err(|_| {
        Error::Missing(format!(
            "{SCHED_EXT}/state is missing: this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT, \
             Linux 6.12 on)"
        ))
    })?;
    match state.trim() {
        "disabled" => Ok(()),
        _ => Err(Error::Missing(format!(
            "a scheduler is in charge already: {}; end it first",
            read("root/ops").as_deref().unwrap_or("its name is not known yet").trim()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_read_as_the_kernel_writes_it() {
        let mut bytes = vec![0; MESSAGE_AT + 1024];
        assert_eq!(Exit::read(&bytes), None);
        bytes[..4].copy_from_slice(&1026_i32.to_ne_bytes());
        bytes[REASON_AT..REASON_AT + 5].copy_from_slice(b"stall");
        bytes[MESSAGE_AT..MESSAGE_AT + 4].copy_from_slice(b"cat[");
        let exit = Exit::read(&bytes).unwrap();
        assert!(exit.is_fault() && exit.reason == "stall" && exit.message == "cat[", "{exit:?}");
        assert_eq!(Exit::read(&bytes[..20]), None);
    }

    #[test]
    fn a_refusal_has_the_verifiers_last_words() {
        let log = "libbpf: prog 'f': BPF program load failed: -EACCES\nlibbpf: prog 'f': -- BEGIN \
                   PROG LOAD LOG --\n0: R1=ctx()\n\n1: (79) r2\nR2 invalid\nprocessed 2 insns\n-- \
                   END PROG LOAD LOG --\nlibbpf: failed\n";
        assert_eq!(
            verdict(log),
            "; the verifier: 0: R1=ctx() | 1: (79) r2 | R2 invalid | processed 2 insns"
        );
        let long: String = (0..100).map(|number| format!("{number}\n")).collect();
        let long = format!("BEGIN PROG LOAD LOG --\n{long}-- END PROG LOAD LOG");
        assert_eq!(verdict(&long), "; the verifier: 92 | 93 | 94 | 95 | 96 | 97 | 98 | 99");
        assert_eq!(verdict("libbpf: no such file\n"), "");
    }
}
