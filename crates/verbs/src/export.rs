//! `schedlab export`: converts a trace to another program's format, or writes out what a recorded
//! program does, so that others can run it.

use crate::programs::written_out;
use crate::read_with_progress;
use clap::Args;
use formats::export::{
    Language, Omitted, Target, Written, anonymise_program, anonymise_trace, chosen_cpu, export,
    export_vectors,
};
use formats::selection::Selection;
use formats::trace_source::TraceSource;
use formats::workload::Workload;
use program::Error;
use schedsim::Nanos;
use schedsim::workload::{BackgroundOf, Closed};
use std::path::PathBuf;
use worlds::experiment::{CostOverrides, Reading, Recorded};

/// Writes a trace in another program's format, or a program as a workload, rt-app's JSON or C
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  schedlab export workloads/redis.perf-script.txt.zst -o redis.pftrace\n  \
                  schedlab export redis-eevdf.trace -o redis-eevdf.json\n  \
                  schedlab export redis-eevdf.trace -o redis-eevdf.txt.zst\n  \
                  schedlab export redis-eevdf.trace -o redis-eevdf.parquet\n  \
                  schedlab export perf.data --window 1s..2s --comm redis-server -o part.txt\n  \
                  schedlab export fair.trace --cpus 0 -o fair.jsonl\n  \
                  schedlab export program.rec -o program.toml\n  \
                  schedlab export program.rec --anonymise -o reproducer.c\n  \
                  schedlab export program.rec --to rt-app -o program.json\n\n\
                  Open a .pftrace at https://ui.perfetto.dev; it stays in the browser. The \
                  extension sets the format: .pftrace, .json, .txt, .ftrace.txt, .parquet; .toml, .c and \
                  .rt-app.json are programs that do what the recorded tasks do, or those of a \
                  workload; .jsonl is a history of one CPU that schedlab-vectors --judge reads; \
                  add .zst to compress the others.")]
pub struct Export {
    /// A trace of schedlab (`schedlab run … --trace FILE`, or Parquet), or a recording; for a
    /// program also a closed workload
    trace: PathBuf,
    /// The file to write
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// The format, if the file's extension does not determine it
    #[arg(long, value_enum)]
    to: Option<Target>,
    /// Replace the names of commands, files and objects, and process ids, by aliases: the same name
    /// gets the same alias
    #[arg(long)]
    anonymise: bool,
    /// A program: leave out what ran beside it, kernel threads and other programs
    #[arg(long)]
    without_background: bool,
    #[command(flatten, next_help_heading = "A part of the trace")]
    part: Selection,
}

impl Export {
    /// Converts the trace.
    pub fn run(self) -> Result<(), Error> {
        let target = self.to.or_else(|| Target::of_name(&self.output)).ok_or_else(|| {
            let name = self.output.display();
            Error::Usage(format!(
                "the format of {name} is unknown; use the extension .pftrace, .json, .txt, \
                 .ftrace.txt, .parquet, .toml, .rt-app.json, .c or .jsonl, or say --to \
                 perfetto|chrome|perf-script|ftrace|parquet|workload|rt-app|c|vectors"
            ))
        })?;
        let format = match target {
            Target::Trace(format) => format,
            Target::Program(language) => return self.write_program(language),
            Target::Vectors => return self.write_vectors(),
        };
        if self.without_background {
            let reason = "--without-background is for programs: .toml, .c and .rt-app.json. For a trace, choose tasks with --comm";
            return Err(Error::Usage(reason.to_string()));
        }
        let mut source = TraceSource::open(&self.trace)?.select(self.part)?;
        if self.anonymise {
            anonymise_trace(&mut source.header);
        }
        let omitted = export(&source, format, &self.output)?;
        let Omitted { jobs, overheads } = omitted;
        if jobs + overheads > 0 {
            program::complain!(
                "schedlab: left out {overheads} overhead and {jobs} job events, which perf has no \
                 words for; .pftrace, .json and .parquet have them"
            );
        }
        Ok(())
    }

    /// Writes what happened to one CPU's tasks.
    fn write_vectors(mut self) -> Result<(), Error> {
        if self.without_background {
            let reason = "a history has all tasks of its CPU; leave out --without-background";
            return Err(Error::Usage(reason.to_string()));
        }
        let cpu = chosen_cpu(&mut self.part)?;
        let mut source = TraceSource::open(&self.trace)?.select(self.part)?;
        if self.anonymise {
            anonymise_trace(&mut source.header);
        }
        let written = export_vectors(&source, cpu, &self.output)?;
        let Written { length, periods, idle, is_cut } = written;
        program::complain!(
            "schedlab: wrote {length}, from the first event to the last of a busy period"
        );
        if periods > 0 {
            program::complain!(
                "schedlab: it is the longest; {periods} others are left out, in {idle} of which \
                 the CPU idled though a task was ready (choose with --window)"
            );
        }
        if is_cut {
            program::complain!(
                "schedlab: it ends before its busy period does, at the most lines or tasks that \
                 a history may have (choose a part with --window)"
            );
        }
        Ok(())
    }

    /// Writes what the tasks do.
    fn write_program(self, language: Language) -> Result<(), Error> {
        if !self.part.is_all() {
            let reason = "a program has no parts: what its tasks do later follows from what they did before. Leave out --window, --cpus and --comm, or write the part as .txt: as a schedule it can be replayed";
            return Err(Error::Usage(reason.to_string()));
        }
        let (mut closed, length) = self.program(language)?;
        if self.anonymise {
            anonymise_program(&mut closed);
        }
        language.write(&closed, length, &self.output)
    }

    /// The program, and how long it took if it is recorded.
    fn program(&self, language: Language) -> Result<(Closed, Option<Nanos>), Error> {
        let path = match Workload::resolve(self.trace.as_os_str())? {
            Workload::Recording(path) => path,
            Workload::Closed(workload) => return Ok((workload.description().clone(), None)),
            Workload::Stochastic(_) => {
                let name = self.trace.display();
                return Err(Error::Usage(format!(
                    "{name} draws its tasks anew in each run; give a recording or a closed workload"
                )));
            }
        };
        let background = match self.without_background {
            true => BackgroundOf::Nothing,
            false => BackgroundOf::Recorded,
        };
        let whole_runs = language == Language::C;
        let reading = Reading { background, whole_runs, ..Reading::default() };
        let switch = whole_runs.then_some(Nanos::ZERO);
        let costs = CostOverrides { switch, ..CostOverrides::default() };
        let recorded = Recorded::load(&path, reading, costs, read_with_progress)?;
        let closed = written_out(&recorded, &path)?;
        Ok((closed, Some(recorded.recording.duration)))
    }
}
