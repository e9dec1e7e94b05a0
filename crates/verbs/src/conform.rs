//! `schedlab conform`: what any general-purpose scheduler owes, and what EEVDF and CFS decide.

use crate::PolicyName;
use crate::guests::GuestArguments;
use clap::Args;
use laboratory::conform::{self, Conform};
use laboratory::vectors::Played;
use program::{Error, prepare_directory, print, print_data, write_whole};
use schedsim::admission::Seed;
use std::path::PathBuf;
use worlds::driver::Driver;
use worlds::guest::GuestWorld;
use worlds::vm::lockstep::VALIDATED;

/// Holds a scheduler in a guest kernel to what any general-purpose scheduler owes
///
/// Boots the scheduler in a guest with two CPUs and runs ten checks. They are no starvation under
/// six workloads, work conservation, weights, changes of affinity, and the kernel's own threads.
/// Further checks are storms of fork, exec and exit, suspension, priority inheritance, CPU hotplug,
/// and nothing left behind after its end. Each check says what it asked, its bound and what it
/// measured.
///
/// With --vectors nothing is booted. A policy of ours receives the events of real kernels' queues
/// and of scenarios from the mathematics. Each decision and virtual time is compared. Others than
/// ours are played by `schedlab-vectors` (conformance/README.md).
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab conform scx:./scx_simple\n  schedlab conform \
                        'scx:./mine.bpf.c slice_ns=5ms' -o conform\n  schedlab conform bpf:ruler \
                        --check weights,hotplug --boots 1\n  schedlab conform eevdf --vectors \
                        conformance/vectors/linux-6.18\n\nExit codes: 0 all checks hold, 2 usage, \
                        3 unusable input, 4 a check does not hold or the scheduler never became \
                        ready, 6 two boots differ, 77 something is missing.")]
pub struct Conforms {
    /// The scheduler: scx:PROGRAM with its arguments, scx:FILE.bpf.c, scx:NAME@VERSION, bpf:NAME, a
    /// policy of `schedlab list policies`, or kernel:other for the kernel's own
    #[arg(value_name = "POLICY", value_parser = PolicyName::parse)]
    policy: PolicyName,
    /// Kernel of the guest: a series or release of Debian's, or the path of a bzImage
    #[arg(long, value_name = "KERNEL", default_value = "6.18")]
    kernel: String,
    /// Number of CPUs of the guest
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(2..=i64::from(VALIDATED)))]
    cpus: u16,
    /// Checks to run, separated by commas; a wrong name lists them [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = conform::known)]
    check: Vec<String>,
    /// Number of boots, which must say the same byte for byte
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=2))]
    boots: u32,
    /// Seed of when the workloads begin, and in which order their tasks do
    #[arg(long, default_value_t = 1, value_parser = Seed::parse)]
    seed: u64,
    /// Play these vectors, files or folders of *.jsonl, in place of a guest
    #[arg(long, value_name = "PATH", num_args = 1..,
          conflicts_with_all = ["kernel", "cpus", "check", "boots", "seed", "output"])]
    vectors: Vec<PathBuf>,
    /// Write conform.json, and conform.md for an issue, to this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The output format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// One object with all answers and what they depend on.
    Json,
    /// Markdown, for an issue.
    Markdown,
}

impl Conforms {
    /// Asks, prints and writes the answers.
    pub fn run(self) -> Result<(), Error> {
        if !self.vectors.is_empty() {
            return self.play();
        }
        if let Some(directory) = &self.output {
            prepare_directory(directory)?;
        }
        let candidate = self.policy.candidate().ok_or_else(|| {
            Error::Usage(
                "`all` and `classic` are several policies: name one scheduler, as in bpf:rr"
                    .to_string(),
            )
        })?;
        let report = Conform {
            world: GuestWorld::new(GuestArguments::of_kernel(&self.kernel)?),
            driver: Driver::of(&candidate)?,
            cpus: self.cpus,
            seed: self.seed,
            boots: self.boots,
            checks: self.check,
        }
        .run()?;
        let document = report.to_json()?;
        if let Some(directory) = &self.output {
            write_whole(&directory.join("conform.json"), document.as_bytes())?;
            write_whole(&directory.join("conform.md"), report.markdown().as_bytes())?;
        }
        match self.format {
            Format::Text => print(&report.text()),
            Format::Json => print_data(&document),
            Format::Markdown => print(&report.markdown()),
        }?;
        report.expect()
    }

    /// Plays vectors to a policy of ours.
    fn play(&self) -> Result<(), Error> {
        let PolicyName::Ours(spec) = &self.policy else {
            return Err(Error::Usage(
                "vectors are played to one policy of ours, as in eevdf; a scheduler of yours is \
                 played them by schedlab-vectors (conformance/README.md)"
                    .to_string(),
            ));
        };
        let unusable = |why: vectors::Unusable| Error::Input(why.to_string());
        let (mut tally, mut first) = (vectors::Tally::default(), None);
        for file in vectors::files(&self.vectors).map_err(unusable)? {
            let vector = vectors::Vector::read(&file).map_err(unusable)?;
            let outcome = vectors::play(&vector, &mut Played::new(spec.clone()));
            tally.count(&outcome);
            if outcome.difference().is_some() {
                first.get_or_insert_with(|| vector.header.name.clone());
            }
            match self.format {
                Format::Json => print_data(&vectors::table::json(&vector, &outcome)),
                Format::Text | Format::Markdown => print(&vectors::table::text(&vector, &outcome)),
            }?;
        }
        if self.format != Format::Json {
            print(&format!("{tally}\n"))?;
        }
        match first {
            Some(name) => Err(Error::Check(format!("{spec} differs from {name}: {tally}"))),
            None if tally.passes() => Ok(()),
            None => Err(Error::Check(format!("{spec} agrees with no vector: {tally}"))),
        }
    }
}
