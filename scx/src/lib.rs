//! Lets one of schedlab's policies schedule this kernel's tasks, through sched_ext, until it is
//! ended.
//!
//! `bpf:NAME` is a scheduler that runs in the kernel; any other name is a policy of `schedsim`, or
//! of the caller of [`main`], which decides in user space. It reports in lines of JSON on standard
//! output: `loaded`, and `ended` with details.

mod announcement;
mod bare;
mod bridge;
mod canary;
mod error;
mod objects;
mod scheduler;

use canary::{Canary, Fault};
use clap::Parser;
use error::Error;
use schedsim::policy::{Catalog, Descriptor, Policy};
use scheduler::Scheduler;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Puts a scheduling policy in charge of this machine, until Ctrl-C
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// `bpf:NAME`, a scheduler that runs in the kernel, or a policy of schedsim, as in take:ruler
    #[arg(required_unless_present_any = ["list", "object"], default_value = "")]
    policy: String,
    /// Print the names of all that it runs, those in the kernel first, and end
    #[arg(long)]
    list: bool,
    /// An object in BPF with one scheduler (struct_ops), of any author
    #[arg(long, value_name = "FILE", conflicts_with = "policy")]
    object: Option<PathBuf>,
    /// A constant of that object, as in slice_ns=5ms; may be given several times
    #[arg(long, value_name = "NAME=VALUE", requires = "object")]
    set: Vec<String>,
    /// Write what the kernel keeps of each task into its trace, at each wakeup and switch
    #[arg(long, requires = "object")]
    witness: bool,
    /// Only check that it is such an object and has these constants
    #[arg(long, requires = "object")]
    check: bool,
    /// This machine is meant, not a guest: all its tasks will be scheduled by the policy
    #[arg(long)]
    this_machine: bool,
    /// Seeds the random numbers that a policy may draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

static ENDED: AtomicBool = AtomicBool::new(false);

/// The complete program, with these policies beside those of `schedsim`: for a `main` of one line.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     schedlab_scx::main(&[])
/// }
/// ```
pub fn main(policies: &[Descriptor]) -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(object) = &arguments.object {
        return match bare_object(&arguments, object) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(error.exit_code())
            }
        };
    }
    let ended = if arguments.list { list(policies) } else { run(&arguments, policies) };
    match ended {
        Ok(()) if arguments.list => ExitCode::SUCCESS,
        Ok(()) => {
            say(&json!({ "ended": { "exit_code": 0 } }));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(
                &json!({ "ended": { "exit_code": error.exit_code(), "message": error.to_string() } }),
            );
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints the names of all schedulers, one a line: those in BPF, and every policy that decides in
/// user space, the caller's own included.
fn list(policies: &[Descriptor]) -> Result<(), Error> {
    let catalog = Catalog::built_in().with(policies).map_err(Error::Usage)?;
    objects::twins().for_each(|name| println!("bpf:{name}"));
    catalog.names().iter().for_each(|name| println!("{name}"));
    Ok(())
}

/// Checks or runs an object that is not of this program.
fn bare_object(arguments: &Arguments, object: &Path) -> Result<(), Error> {
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, scheduler::keep)));
    if arguments.check {
        return bare::check(object, &arguments.set);
    }
    expect_meant(arguments)?;
    end_by_signal()?;
    bare::run(object, &arguments.set, arguments.witness, &ENDED)
}

fn expect_meant(arguments: &Arguments) -> Result<(), Error> {
    match arguments.this_machine {
        true => Ok(()),
        false => Err(Error::Usage(
            "this would schedule all tasks of this machine; if that is meant, add --this-machine"
                .into(),
        )),
    }
}

fn end_by_signal() -> Result<(), Error> {
    ctrlc::set_handler(|| ENDED.store(true, Relaxed))
        .map_err(|error| Error::Internal(error.to_string()))
}

fn run(arguments: &Arguments, policies: &[Descriptor]) -> Result<(), Error> {
    expect_meant(arguments)?;
    announcement::hold();
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, scheduler::hear)));
    end_by_signal()?;
    let policy = arguments.policy.as_str();
    match policy.split_once(':') {
        Some(("bpf", name)) => twin(policy, name),
        Some(("canary", fault)) => match Fault::named(fault) {
            Some(fault) => in_user_space(policy, Canary::new(fault), arguments.seed),
            None => twin(policy, &format!("canary_{fault}")),
        },
        _ => original(policy, policies, arguments.seed),
    }
}

/// Runs a scheduler that is written in BPF.
fn twin(policy: &str, name: &str) -> Result<(), Error> {
    let bytes = objects::object(name).ok_or_else(|| {
        let known: Vec<String> = objects::twins().map(|name| format!("bpf:{name}")).collect();
        Error::Usage(format!("there is no twin named {policy}; there are {}", known.join(", ")))
    })?;
    let mut scheduler = Scheduler::load(name, bytes)?;
    scheduler.attach()?;
    if let Some(program) = scheduler.begins_anew_by() {
        announcement::at_each_job(move || announcement::run(&program))?;
    }
    loaded(policy, &scheduler);
    while !ENDED.load(Relaxed) && scheduler.exit().is_none() {
        std::thread::sleep(Duration::from_millis(100));
    }
    scheduler.end(policy)
}

/// Runs a policy of schedsim, or one of `policies`.
fn original(name: &str, policies: &[Descriptor], seed: u64) -> Result<(), Error> {
    let catalog = Catalog::built_in().with(policies).map_err(Error::Usage)?;
    let spec = catalog.parse(name).map_err(|error| Error::Usage(error.to_string()))?;
    in_user_space(name, spec.policy(bridge::cpus()?), seed)
}

/// Lets a policy decide in user space.
fn in_user_space(name: &str, policy: impl Policy + Clone, seed: u64) -> Result<(), Error> {
    bridge::run(name, policy, seed, &ENDED, &|scheduler| loaded(name, scheduler))
}

fn loaded(policy: &str, scheduler: &Scheduler) {
    let verified: serde_json::Map<_, _> =
        scheduler.verified().into_iter().map(|(name, count)| (name, count.into())).collect();
    say(&json!({ "loaded": { "policy": policy, "verified_instructions": verified } }));
}

fn say(line: &serde_json::Value) {
    println!("{line}");
}
