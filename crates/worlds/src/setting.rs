//! Settings that a Linux user can switch on, for all tasks of a program or of all programs, as in
//! `--apply 'xz: batch'`.
//!
//! [`schedsim::workload::Setting`] defines the effect on tasks. Here are the text, the tasks it
//! concerns, the command that switches it on, and which settings are tried.

mod command;
mod load;
mod parse;
mod rule;
mod search;

pub use command::{IN_BPF, SwitchOn};
pub use load::ProgramLoad;
pub use rule::usual;
pub use search::{MOST, single};

use crate::host::cpus;
use program::{Error, no_such};
use schedsim::policy::PolicySpec;
use schedsim::workload::{Closed, Setting, Workload, is_kernel_thread_name};
use schedsim::{CpuId, TaskId};
use std::fmt;

/// Settings for the tasks of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// A name of tasks, as the kernel's `comm`; `*` at its end stands for any rest, and `*` alone
    /// for all programs.
    pub program: String,
    /// The settings, in this order.
    pub settings: Vec<Setting>,
}

/// A candidate: one or more assignments on top of the usual scheduler.
#[derive(Clone, PartialEq, Debug)]
pub struct Deployment {
    /// The assignments.
    pub assignments: Vec<Assignment>,
    /// The policy to simulate, where policies are simulated.
    pub under: Option<PolicySpec>,
}

/// The program that a comparison is about, and how much others may lose.
#[derive(Clone, PartialEq, Debug)]
pub struct Focus {
    /// Its name.
    pub program: String,
    /// The largest share that another program may lose.
    pub others_lose: f64,
}

impl Assignment {
    /// Whether it concerns a task of this name.
    pub fn concerns(&self, name: &str) -> bool {
        match self.program.strip_suffix('*') {
            Some(begin) => name.starts_with(begin) && !is_kernel_thread_name(name),
            None => self.program == name,
        }
    }

    /// Whether it gives a task of this name this setting. A slice for all programs is the kernel's
    /// default, `base_slice_ns`: the kernel's own threads have it, too.
    fn gives(&self, setting: &Setting, name: &str) -> bool {
        self.concerns(name) || self.is_for_all() && matches!(setting, Setting::Slice(_))
    }

    /// Whether it concerns all programs.
    pub fn is_for_all(&self) -> bool {
        self.program == "*"
    }
}

impl Deployment {
    /// The programs that it concerns, for people.
    pub fn whom(&self) -> String {
        let names = self
            .assignments
            .iter()
            .map(|one| if one.is_for_all() { "all programs" } else { one.program.as_str() });
        names.collect::<Vec<_>>().join(" and ")
    }

    /// The highest real-time priority that it gives.
    pub fn highest(&self) -> Option<u8> {
        self.assignments
            .iter()
            .flat_map(|one| &one.settings)
            .filter_map(|setting| setting.class()?.1)
            .max()
    }

    /// `workload` with these settings.
    pub fn to_workload(&self, workload: &Workload) -> Workload {
        let mut changed = workload.clone();
        for (one, setting) in self.each() {
            let gets = |id: &TaskId| one.gives(setting, &workload.tasks[id.index()].info.name);
            let tasks: Vec<TaskId> = workload.ids().filter(gets).collect();
            changed.set(&tasks, setting, &one.program);
        }
        changed
    }

    /// A description of tasks with these settings.
    pub fn to_closed(&self, closed: &mut Closed) {
        for (one, setting) in self.each() {
            let gets = |&index: &usize| one.gives(setting, closed.tasks[index].program());
            let entries: Vec<usize> = (0..closed.tasks.len()).filter(gets).collect();
            setting.set(closed, &entries, &one.program);
        }
    }

    /// The settings in order, each with whom it is for.
    fn each(&self) -> impl Iterator<Item = (&Assignment, &Setting)> {
        self.assignments
            .iter()
            .flat_map(|one| one.settings.iter().map(move |setting| (one, setting)))
    }

    /// Refuses an assignment that concerns none of the programs `names`, and CPUs that are not
    /// among the first `cpus`.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists what there is.
    pub fn expect_for(&self, workload: &str, names: &[String], cpus: u16) -> Result<(), Error> {
        for one in &self.assignments {
            if !names.iter().any(|name| one.concerns(name)) {
                return Err(unknown("--apply", workload, &one.program, names));
            }
            let missing = one.settings.iter().find_map(|setting| match setting {
                Setting::Cpus(own) => own.iter().find(|cpu| cpu.0 >= cpus),
                _ => None,
            });
            if let Some(CpuId(cpu)) = missing {
                let last = cpus.saturating_sub(1);
                return Err(Error::Usage(format!(
                    "--apply '{self}': there is no CPU {cpu}: {workload} runs on the CPUs 0 to \
                     {last}"
                )));
            }
        }
        Ok(())
    }

    /// Refuses a simulated policy that ignores the settings.
    ///
    /// # Errors
    /// [`Error::Usage`] with the policies that honour them.
    pub fn expect_under(&self, policy: &PolicySpec) -> Result<(), Error> {
        let name = policy.descriptor().name;
        let honours = |setting: &Setting| match setting {
            Setting::Cpus(_) => true,
            Setting::Slice(_) => name == "eevdf",
            _ => ["eevdf", "cfs"].contains(&name),
        };
        match self
            .assignments
            .iter()
            .flat_map(|one| &one.settings)
            .find(|setting| !honours(setting))
        {
            None => Ok(()),
            Some(setting) => Err(Error::Usage(format!(
                "--apply '{self}': {policy} does not know {}; give --baseline eevdf, which stands \
                 for Linux{}",
                Text(setting),
                if matches!(setting, Setting::Slice(_)) { "" } else { ", or cfs" }
            ))),
        }
    }
}

/// The error of a program that a workload does not have.
pub fn unknown(option: &str, workload: &str, program: &str, names: &[String]) -> Error {
    const SHOWN: usize = 20;
    let mut shown: Vec<&str> = names.iter().map(String::as_str).take(SHOWN).collect();
    if names.len() > SHOWN {
        shown.push("…");
    }
    let see = format!("{workload} has {}.", shown.join(", "));
    Error::Usage(format!("{option}: {}", no_such("program", program, names, &see)))
}

/// A setting as users write it.
pub struct Text<'a>(pub &'a Setting);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Setting::Other => f.write_str("other"),
            Setting::Batch => f.write_str("batch"),
            Setting::Idle => f.write_str("idle"),
            Setting::Fifo(priority) => write!(f, "fifo={priority}"),
            Setting::RoundRobin(priority) => write!(f, "rr={priority}"),
            Setting::Nice(nice) => write!(f, "nice={nice}"),
            Setting::Slice(length) => match length.0 {
                ns if ns % 1_000 == 0 && ns >= 1_000_000 => {
                    write!(f, "slice={}ms", ns as f64 / 1e6)
                }
                _ => write!(f, "slice={}", length.exact()),
            },
            Setting::Cpus(cpus) => {
                write!(f, "cpus={}", cpus::names(&cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>()))
            }
            Setting::Weight(weight) => write!(f, "weight={weight}"),
        }
    }
}

/// `xz: batch, nice=5`.
impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<String> =
            self.settings.iter().map(|setting| Text(setting).to_string()).collect();
        write!(f, "{}: {}", self.program, settings.join(", "))
    }
}

/// The assignments separated by semicolons, as in `--apply` and in results.
impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            &self.assignments.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::Nanos;
    use schedsim::workload::{Phase, Tasks};

    fn names() -> Vec<String> {
        ["xz", "sqlite3", "kworker/0:1"].map(String::from).to_vec()
    }

    #[test]
    fn a_program_that_is_not_there_is_refused_with_those_that_are() {
        let of = |text: &str| text.parse::<Deployment>().unwrap();
        assert!(of("xz: batch").expect_for("w", &names(), 2).is_ok());
        let error = of("sqlite: batch").expect_for("w", &names(), 2).unwrap_err().to_string();
        assert_eq!(
            error,
            "--apply: there is no program named `sqlite`. Did you mean `sqlite3`? w has xz, \
             sqlite3, kworker/0:1."
        );
        let error = of("xz: cpus=0-3").expect_for("w", &names(), 2).unwrap_err().to_string();
        assert_eq!(
            error,
            "--apply 'xz: cpus=0,1,2,3': there is no CPU 2: w runs on the CPUs 0 to 1"
        );
    }

    #[test]
    fn a_star_stands_for_programs_and_not_for_kernel_threads() {
        let concerns = |program: &str, name: &str| {
            Assignment { program: program.to_string(), settings: Vec::new() }.concerns(name)
        };
        assert!(
            concerns("*", "xz") && concerns("x*", "xz") && concerns("kworker/0:1", "kworker/0:1")
        );
        assert!(!concerns("*", "kworker/0:1") && !concerns("x", "xz") && !concerns("z*", "xz"));
    }

    /// What is simulated is what the command does: `base_slice_ns` is of kernel threads, too.
    #[test]
    fn a_slice_for_all_is_the_kernel_s_default_and_other_settings_are_not() {
        let gets = |text: &str| {
            let tasks =
                ["xz", "kworker/0:1"].map(|name| Tasks::new(name, vec![Phase::Run(Nanos(1))]));
            let closed = Closed { tasks: tasks.to_vec(), ..Closed::default() };
            let before = Workload::of(&closed, 1).unwrap();
            let deployment: Deployment = text.parse().unwrap();
            let mut described = closed.clone();
            deployment.to_closed(&mut described);
            let after = deployment.to_workload(&before);
            let own = Workload::of(&described, 1).unwrap();
            [0, 1].map(|task| {
                let is_set = |now: &Workload| {
                    format!("{:?}", now.tasks[task]) != format!("{:?}", before.tasks[task])
                };
                assert_eq!(is_set(&after), is_set(&own), "{text}");
                is_set(&after)
            })
        };
        assert_eq!(gets("*: slice=3ms"), [true, true]);
        assert_eq!(gets("*: batch"), [true, false]);
        assert_eq!(gets("x*: slice=3ms"), [true, false]);
        assert_eq!(gets("*: batch, slice=3ms"), [true, true]);
    }

    #[test]
    fn a_policy_that_does_not_know_a_setting_is_refused() {
        let under = |text: &str, policy: &str| {
            text.parse::<Deployment>().unwrap().expect_under(&PolicySpec::parse(policy).unwrap())
        };
        assert!(
            under("xz: batch, nice=5", "eevdf").is_ok()
                && under("xz: cpus=0", "take:rr").is_ok()
                && under("xz: idle", "cfs").is_ok()
        );
        assert!(
            under("xz: slice=1ms", "cfs")
                .unwrap_err()
                .to_string()
                .contains("cfs does not know slice=1ms; give --baseline eevdf")
        );
        assert!(under("xz: nice=1", "take:rr").is_err());
    }
}
