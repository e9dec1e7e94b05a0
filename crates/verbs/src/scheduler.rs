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
    /// Crates of crates.io, built once by cargo and clang
    ///
    /// Their programs are kept in schedlab/schedulers in the user's cache directory, and the SHA-256
    /// is in every result. Several are built faster together.
    Add {
        /// Names, with or without scx_, and versions: bpfland@1.1.4
        #[arg(value_name = "NAME@VERSION", value_parser = published, required = true)]
        schedulers: Vec<Published>,
    },
}

impl Schedulers {
    /// Builds them and prints how to use the last; those after one that fails are built, too.
    pub fn run(self) -> Result<(), Error> {
        let What::Add { schedulers } = self.what;
        let folder = Published::build_folder()?;
        let mut failed = None;
        for scheduler in &schedulers {
            program::complain!("schedlab: building {scheduler}; this takes minutes");
            match scheduler.add(&folder) {
                Ok((program, true)) => print(&format!("built: {}\n", program.display()))?,
                Ok((program, false)) => print(&format!("there already: {}\n", program.display()))?,
                Err(error) => {
                    if let Some(before) = failed.replace(error) {
                        program::complain!("schedlab: {before}");
                    }
                }
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let last = schedulers.last().map_or(String::new(), Published::to_string);
        print(&format!(
            "Next: schedlab compare yield:2,8 --on vm --policy kernel:other,scx:{last}\n"
        ))
    }
}

fn published(text: &str) -> Result<Published, String> {
    Published::of(text).ok_or_else(|| {
        "give a name and a whole version, as on crates.io: bpfland@1.1.4".to_string()
    })
}
