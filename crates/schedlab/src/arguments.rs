//! The command line.

use crate::completions;
#[cfg(not(feature = "papers"))]
use crate::no_papers as reproduce;
#[cfg(feature = "papers")]
use crate::reproduce;
use clap::{CommandFactory, Parser, Subcommand};
use program::Error;

/// A laboratory for CPU schedulers: one policy, three worlds, the same numbers every time.
#[derive(Parser, Debug)]
#[command(
    name = "schedlab",
    version = schedlab_sources::BUILD,
    arg_required_else_help = true,
    after_help = "Examples:\n  sudo schedlab record -- make -j8\n  \
                  schedlab compare perf.data -o results\n  \
                  schedlab report results --window 100ms..120ms\n  \
                  schedlab queue --tasks 1,10,100 -o results/queues\n\n\
                  Exit codes: 0 an answer, undecided or unwelcome ones included, 1 internal error, \
                  2 usage, 3 unusable input, 4 a check failed or a policy broke its contract, \
                  5 a requested precision or limit was not met, 6 not reproducible where it must \
                  be, 77 something needed is missing."
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Bisect(verbs::bisect::Bisect),
    Check(verbs::check::Check),
    Compare(Box<verbs::compare::Compare>),
    Conform(Box<verbs::conform::Conforms>),
    Run(Box<verbs::run::Run>),
    Sweep(verbs::sweep::Sweep),
    Inspect(verbs::inspect::Inspect),
    Judge(verbs::judge::Judge),
    Diff(verbs::diff::Diff),
    Doctor(verbs::doctor::Doctor),
    Export(verbs::export::Export),
    Image(verbs::image::Image),
    Record(verbs::record::Record),
    Predict(verbs::predict::Predict),
    Report(verbs::report::Report),
    Verify(verbs::verify::Verify),
    List(verbs::list::List),
    New(verbs::new::New),
    Tour(verbs::tour::Tour),
    Scheduler(verbs::scheduler::Schedulers),
    Queue(verbs::queue::Queue),
    Reproduce(reproduce::Reproduce),
    Completions(completions::Completions),
    ManPages(completions::ManPages),
    #[command(hide = true)]
    QueueCells(verbs::queue::QueueCells),
}

impl Arguments {
    /// Runs the command.
    pub fn run(self) -> Result<(), Error> {
        match self.verb {
            Verb::Bisect(verb) => verb.run(),
            Verb::Scheduler(verb) => verb.run(),
            Verb::Check(verb) => verb.run(),
            Verb::Compare(verb) => verb.run(),
            Verb::Conform(verb) => verb.run(),
            Verb::Run(verb) => verb.run(),
            Verb::Sweep(verb) => verb.run(),
            Verb::Inspect(verb) => verb.run(),
            Verb::Judge(verb) => verb.run(),
            Verb::Diff(verb) => verb.run(),
            Verb::Doctor(verb) => verb.run(),
            Verb::Export(verb) => verb.run(),
            Verb::Image(verb) => verb.run(),
            Verb::Record(verb) => verb.run(),
            Verb::Predict(verb) => verb.run(),
            Verb::Report(verb) => verb.run(),
            Verb::Verify(verb) => verb.run(),
            Verb::List(verb) => verb.run(),
            Verb::New(verb) => verb.run(),
            Verb::Tour(verb) => verb.run(),
            Verb::Queue(verb) => verb.run(),
            Verb::Reproduce(verb) => verb.run(),
            Verb::Completions(verb) => verb.run(Self::command()),
            Verb::ManPages(verb) => verb.run(Self::command()),
            Verb::QueueCells(verb) => verb.run(),
        }
    }
}
