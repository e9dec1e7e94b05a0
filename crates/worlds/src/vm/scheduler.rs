//! Runs one of our policies as the guest scheduler, through the kernel's sched_ext.
//!
//! The scheduler is a program of its own, `schedlab-scx` (`scx/`, under the GPL), which the runner
//! starts in the guest before the first job. This file finds the program, lists its schedulers,
//! puts it into the guest, and reads how it ended. A program with a user's policies has one of its
//! own, named after it.

use super::{Guest, GuestFile, Kernel, kernel, sha256};
use crate::experiment::parse_policy;
use crate::setting::IN_BPF;
use program::{Error, no_such};
use schedlab_runner::event::Event;
use schedsim::live;
use schedsim::policy::PolicySpec;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `schedlab-scx`, or the program beside one with a user's policies, as `schedlab new policy` names
/// it.
fn program_name() -> String {
    format!("{}-scx", program::name())
}

/// What to do if it is missing.
fn advice() -> String {
    let name = program_name();
    format!(
        "build it with: cargo build --release -p {name} (which needs: apt-get install clang-19 \
         libelf-dev zlib1g-dev pkg-config), or say where it is in SCHEDLAB_SCX"
    )
}

/// A policy by name: `bpf:NAME`, which runs inside the kernel, or a policy of `schedsim`, which
/// decides in user space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheduler {
    /// The name.
    pub policy: String,
    program: PathBuf,
}

impl Scheduler {
    /// The scheduler of this name, which the program must have. The program is searched for at
    /// `SCHEDLAB_SCX`, beside this program, in `target/release`, and in `PATH`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such program, [`Error::Usage`] if it does not know the
    /// name.
    pub fn find(policy: &str) -> Result<Scheduler, Error> {
        let program = loader(policy)?;
        let scheduler = Scheduler { policy: policy.to_string(), program };
        if policy.starts_with("bpf:") {
            let twins = scheduler.twins()?;
            if !twins.iter().any(|twin| twin == policy) {
                let see = format!(
                    "In BPF there are {}; any other policy runs in user space, by its own name.",
                    twins.join(", ")
                );
                return Err(Error::Usage(no_such("scheduler in BPF", policy, &twins, &see)));
            }
        }
        Ok(scheduler)
    }

    /// The name of the program's tasks, as the kernel keeps it.
    pub fn task_name(&self) -> String {
        task_name(&self.program)
    }

    /// The name of the task that decides, unless the policy runs inside the kernel.
    pub fn in_user_space(&self) -> Option<String> {
        (!self.policy.starts_with("bpf:")).then(|| self.task_name())
    }

    /// The path of the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The program's schedulers in BPF; it lists the policies that decide in user space after them.
    fn twins(&self) -> Result<Vec<String>, Error> {
        let failed = |what: &dyn fmt::Display| {
            Error::Missing(format!(
                "{} cannot be run: {what}; {}",
                self.program.display(),
                advice()
            ))
        };
        let output =
            Command::new(&self.program).arg("--list").output().map_err(|error| failed(&error))?;
        if !output.status.success() {
            return Err(failed(&String::from_utf8_lossy(&output.stderr).trim()));
        }
        let listed = String::from_utf8_lossy(&output.stdout);
        Ok(listed.lines().filter(|name| name.starts_with("bpf:")).map(str::to_string).collect())
    }

    /// The policy of `schedsim` that it is or that matches it, as [`twin`] says.
    ///
    /// # Errors
    /// If there is none.
    pub fn original(&self) -> Result<PolicySpec, Error> {
        twin(&self.policy)
    }

    /// Checks that a kernel has what it needs.
    ///
    /// # Errors
    /// As of [`Kernel::require`], and [`Error::Missing`] for what no kernel gives.
    pub fn require(&self, kernel: &Kernel) -> Result<(), Error> {
        if let Some(unmet) =
            parse_policy(&self.policy).ok().and_then(|policy| live::unmet(policy.needs()))
        {
            return Err(Error::Missing(format!("policy {self} {unmet}")));
        }
        kernel.require(&kernel::SCHED_EXT)
    }

    /// Puts it into a guest, as the guest scheduler once the guest has settled.
    ///
    /// # Errors
    /// If the program or a shared library of it cannot be read.
    pub fn install(&self, guest: &mut Guest) -> Result<(), Error> {
        guest.files.extend(GuestFile::program(&self.program)?);
        let program = format!("/bin/{}", file_name(&self.program));
        guest.session.services.push(self.started_by(program));
        Ok(())
    }

    /// What starts it on this machine.
    pub fn command(&self) -> Vec<String> {
        self.started_by(self.program.to_string_lossy().into_owned())
    }

    fn started_by(&self, program: String) -> Vec<String> {
        vec![program, self.policy.clone(), "--this-machine".to_string()]
    }

    /// The SHA-256 of its program.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn sha256(&self) -> Result<String, Error> {
        sha256_of(&[&self.program])
    }

    /// Checks how it ended, if it was the only service: it must have scheduled until the
    /// runner ended it.
    ///
    /// # Errors
    /// [`Error::Check`] with the rule that it broke and who says so, [`Error::Missing`] for what it
    /// needs and the kernel has not.
    pub fn judge(&self, events: &[Event]) -> Result<(), Error> {
        let said = events.iter().filter_map(|event| match event {
            Event::Service { line, .. } => serde_json::from_str::<Value>(line).ok(),
            _ => None,
        });
        let ended = said.filter_map(|value| value.get("ended").cloned()).next_back();
        let status = events.iter().find_map(|event| match event {
            Event::ServiceEnd { status, early, .. } => Some((status.as_str(), *early)),
            _ => None,
        });
        let message = || {
            let reason = ended.as_ref().and_then(|ended| ended["message"].as_str());
            let status = status.map_or("its exit status is not known", |(status, _)| status);
            format!(
                "{self}: {}",
                reason.map_or_else(
                    || format!(
                        "it ended without a report ({status}); its tasks went back to the kernel"
                    ),
                    str::to_string
                )
            )
        };
        match ended.as_ref().and_then(|ended| ended["exit_code"].as_i64()) {
            Some(0) if status.is_some_and(|(_, early)| !early) => Ok(()),
            Some(1) => Err(Error::Internal(message())),
            Some(2) => Err(Error::Usage(message())),
            Some(77) => Err(Error::Missing(message())),
            _ => Err(Error::Check(message())),
        }
    }
}

/// The program that loads `policy`.
///
/// # Errors
/// [`Error::Missing`] if there is none.
pub(crate) fn loader(policy: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::var_os("SCHEDLAB_SCX").map(PathBuf::from);
    let name = program_name();
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name(&name));
    let built = PathBuf::from("target/release").join(&name);
    let on_path = std::env::split_paths(&path).map(|directory| directory.join(&name));
    let mut candidates: Vec<PathBuf> = named.into_iter().collect();
    if candidates.is_empty() {
        candidates.extend(beside.into_iter().chain([built]).chain(on_path));
    }
    let program = candidates.into_iter().find(|program| program.is_file());
    program.ok_or_else(|| {
        Error::Missing(format!("{policy} in a kernel needs the program {name}; {}", advice()))
    })
}

/// The SHA-256 of files, as of one.
///
/// # Errors
/// If one cannot be read.
pub(super) fn sha256_of(files: &[&Path]) -> Result<String, Error> {
    let read = |file: &&Path| {
        std::fs::read(file).map_err(|error| Error::Input(format!("{}: {error}", file.display())))
    };
    let bytes: Vec<Vec<u8>> = files.iter().map(read).collect::<Result<_, _>>()?;
    Ok(sha256(bytes.iter().map(Vec::as_slice)))
}

/// The name of a program without its folder, as a guest has it.
pub(super) fn file_name(program: &Path) -> String {
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

/// The name of a program's tasks, as the kernel keeps it.
pub(super) fn task_name(program: &Path) -> String {
    const LONGEST: usize = 15;
    file_name(program).chars().take(LONGEST).collect()
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.policy)
    }
}

/// The policy of `schedsim` that a scheduler is or that matches it: `pslist` for `bpf:pslist`,
/// `central:ruler` for `bpf:ruler`.
///
/// # Errors
/// If there is none.
pub fn twin(scheduler: &str) -> Result<PolicySpec, Error> {
    let known = IN_BPF.iter().find(|(name, _)| *name == scheduler);
    parse_policy(known.map_or(scheduler, |(_, twin)| twin)).map_err(|error| {
        Error::Usage(format!("{scheduler} has no counterpart in the simulator: {error}"))
    })
}
