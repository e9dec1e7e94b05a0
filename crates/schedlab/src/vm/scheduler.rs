//! A policy of ours in charge of a guest's tasks, through the kernel's sched_ext.
//!
//! The scheduler is a program of its own, `schedlab-scx` (`scx/`, under the GPL), which the runner starts in the guest before the first job. Here it is found, asked
//! for what it knows, put into the guest, and afterwards asked what became of it. A program with policies of a user's own has one of its own, named after it.

use super::{Guest, GuestFile, Kernel, Transcript, kernel};
use crate::experiment::parse_policy;
use crate::{Error, no_such, program};
use schedlab_runner::event::Event;
use schedsim::live;
use schedsim::policy::PolicySpec;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `schedlab-scx`, or what stands beside a program with policies of a user's own, as `schedlab new policy` names it.
fn program_name() -> String {
    format!("{}-scx", program::name())
}

/// What to do if it is not there.
fn advice() -> String {
    let name = program_name();
    format!(
        "build it with: cargo build --release -p {name} (which needs: apt-get install clang-19 libelf-dev zlib1g-dev pkg-config), or say where it is in \
         SCHEDLAB_SCX"
    )
}

/// A policy by name: `bpf:NAME`, which runs in the kernel as a whole, or a policy of `schedsim`, which decides in user space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheduler {
    /// The name.
    pub policy: String,
    program: PathBuf,
}

impl Scheduler {
    /// The scheduler of this name, which the program must know. It is looked for where `SCHEDLAB_SCX` says, beside this program, in `target/release`, and in `PATH`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such program, [`Error::Usage`] if it does not know the name.
    pub fn find(policy: &str) -> Result<Scheduler, Error> {
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
        let program = program.ok_or_else(|| Error::Missing(format!("{policy} in a kernel needs the program {name}; {}", advice())))?;
        let scheduler = Scheduler { policy: policy.to_string(), program };
        if policy.starts_with("bpf:") {
            let twins = scheduler.twins()?;
            if !twins.iter().any(|twin| twin == policy) {
                let see = format!("In BPF there are {}; any other policy runs in user space, by its own name.", twins.join(", "));
                return Err(Error::Usage(no_such("scheduler in BPF", policy, &twins, &see)));
            }
        }
        Ok(scheduler)
    }

    /// The name of the program's tasks, as the kernel keeps it.
    pub fn task_name(&self) -> String {
        const LONGEST: usize = 15;
        self.name().chars().take(LONGEST).collect()
    }

    /// The name of the task that decides, unless the policy is in the kernel as a whole.
    pub fn in_user_space(&self) -> Option<String> {
        (!self.policy.starts_with("bpf:")).then(|| self.task_name())
    }

    /// Where it is.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The schedulers in BPF that the program has.
    fn twins(&self) -> Result<Vec<String>, Error> {
        let failed = |what: &dyn fmt::Display| Error::Missing(format!("{} cannot be run: {what}; {}", self.program.display(), advice()));
        let output = Command::new(&self.program).arg("--list").output().map_err(|error| failed(&error))?;
        if !output.status.success() {
            return Err(failed(&String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect())
    }

    /// The policy of `schedsim` that it is, or whose twin it is: `bpf:pslist` is `pslist`'s, `bpf:ruler` is `central:ruler`'s.
    ///
    /// # Errors
    /// If there is none.
    pub fn original(&self) -> Result<PolicySpec, Error> {
        let parsed = match self.policy.strip_prefix("bpf:") {
            Some("pslist") => parse_policy("pslist"),
            Some(order) => parse_policy(&format!("central:{order}")),
            None => parse_policy(&self.policy),
        };
        parsed.map_err(|error| Error::Usage(format!("{self} has no counterpart in the simulator: {error}")))
    }

    /// Makes sure that a kernel has what it needs.
    ///
    /// # Errors
    /// As of [`Kernel::require`], and [`Error::Missing`] for what no kernel gives.
    pub fn require(&self, kernel: &Kernel, cpus: u16) -> Result<(), Error> {
        if let Some(unmet) = parse_policy(&self.policy).ok().and_then(|policy| live::unmet(policy.needs())) {
            return Err(Error::Missing(format!("policy {self} {unmet}")));
        }
        kernel.require(cpus, &kernel::SCHED_EXT)
    }

    /// Puts it into a guest, to be in charge there from the settling on.
    ///
    /// # Errors
    /// If the program or a shared library of it cannot be read.
    pub fn install(&self, guest: &mut Guest) -> Result<(), Error> {
        guest.files.extend(GuestFile::program(&self.program)?);
        guest.session.services.push(vec![format!("/bin/{}", self.name()), self.policy.clone(), "--this-machine".to_string()]);
        Ok(())
    }

    fn name(&self) -> String {
        self.program.file_name().unwrap_or(self.program.as_os_str()).to_string_lossy().into_owned()
    }

    /// What became of it, if it was the guest's only service: fine if it was in charge until it was asked to end.
    ///
    /// # Errors
    /// [`Error::Check`] with the rule that it broke and who says so, [`Error::Missing`] for what it needs and the kernel has not.
    pub fn judge(&self, transcript: &Transcript) -> Result<(), Error> {
        let said = transcript.events.iter().filter_map(|event| match event {
            Event::Service { line, .. } => serde_json::from_str::<Value>(line).ok(),
            _ => None,
        });
        let ended = said.filter_map(|value| value.get("ended").cloned()).next_back();
        let status = transcript.events.iter().find_map(|event| match event {
            Event::ServiceEnd { status, early, .. } => Some((status.as_str(), *early)),
            _ => None,
        });
        let message = || {
            let reason = ended.as_ref().and_then(|ended| ended["message"].as_str());
            let status = status.map_or("nobody knows how", |(status, _)| status);
            format!(
                "{self}: {}",
                reason.map_or_else(|| format!("it ended without a word ({status}); its tasks went back to the kernel"), str::to_string)
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

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.policy)
    }
}
