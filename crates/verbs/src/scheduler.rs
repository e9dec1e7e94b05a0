//! `schedlab scheduler add NAME@VERSION`: builds a published scheduler into the cache.

use clap::{Args, Subcommand};
use program::{Error, print};
use worlds::vm::published::Published;

/// Builds published schedulers of sched_ext, for `--policy scx:NAME@VERSION`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  schedlab scheduler add bpfland@1.1.4\n  schedlab compare \
                        yield:2,8 --on vm --policy kernel:other,scx:bpfland@1.1.4")]
pub struct Schedulers {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// A crate of crates.io, built once by cargo and clang
    ///
    /// Its program is kept in schedlab/schedulers in the user's cache directory, and its SHA-256 is
    /// in every result.
    Add {
        /// Its name, with or without scx_, and its version: bpfland@1.1.4
        #[arg(value_name = "NAME@VERSION", value_parser = published)]
        scheduler: Published,
    },
}

impl Schedulers {
    /// Builds it and prints how to use it.
    pub fn run(self) -> Result<(), Error> {
        let What::Add { scheduler } = self.what;
        eprintln!("schedlab: building {scheduler}; this takes minutes");
        let (program, is_new) = scheduler.add()?;
        let done = if is_new { "built" } else { "there already" };
        print(&format!(
            "{done}: {}\nNext: schedlab compare yield:2,8 --on vm --policy \
             kernel:other,scx:{scheduler}\n",
            program.display()
        ))
    }
}

fn published(text: &str) -> Result<Published, String> {
    Published::of(text).ok_or_else(|| {
        "give a name and a whole version, as on crates.io: bpfland@1.1.4".to_string()
    })
}
