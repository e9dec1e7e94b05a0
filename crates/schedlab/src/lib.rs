//! A laboratory for CPU schedulers: one policy, three worlds, the same numbers every time.
//!
//! The program: its command line, and [`main`] for a program with a user's own policies.

mod arguments;
mod completions;
mod huge_pages;
#[cfg(not(feature = "papers"))]
mod no_papers;
mod overview;
#[cfg(feature = "papers")]
mod reproduce;

pub use program::Error;

use arguments::Arguments;
use clap::{CommandFactory, FromArgMatches};
use program::set_identity;
use schedlab_sources::BUILD;
use schedsim::policy::{Catalog, Descriptor};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;
use twox_hash::XxHash3_128;
use worlds::experiment::set_catalog;

#[global_allocator]
static ALLOCATOR: huge_pages::HugePages = huge_pages::HugePages;

/// Runs the complete program, with these policies besides the built-in ones: a one-line `main`.
///
/// ```no_run
/// use schedsim::policy::{Descriptor, Make, Rr, RrOptions};
///
/// static POLICY: Descriptor = Descriptor {
///     name: "brisk",
///     summary: "round robin with quanta of a millisecond",
///     source: "an example",
///     options: &[],
///     structure: Some("priority"),
///     scheduler: &Make(|given| {
///         let quantum = schedsim::Nanos::from_millis(1);
///         Rr::new(given.cpus(), RrOptions { quantum, throttle: None })
///     }),
/// };
///
/// fn main() -> std::process::ExitCode {
///     schedlab::main(&[POLICY])
/// }
/// ```
pub fn main(policies: &[Descriptor]) -> ExitCode {
    let fail = |message: &dyn std::fmt::Display, code: u8| {
        program::complain!("{}: {}", program::name(), program::visible(&message.to_string()));
        ExitCode::from(code)
    };
    let catalog = match Catalog::built_in().with(policies) {
        Ok(catalog) => catalog,
        Err(message) => return fail(&message, 2),
    };
    let name = if policies.is_empty() { None } else { file_name() };
    if let Err(message) = set_identity(name, build_of(policies)).and_then(|()| set_catalog(catalog))
    {
        return fail(&message, 1);
    }
    if let Some(size) = program::terminal::size() {
        results::set_page_width(size.columns);
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.is_empty() || words == ["-h"] {
        let shown = program::print(&overview::start());
        return shown.map_or_else(|error| fail(&error, error.exit_code()), |()| ExitCode::SUCCESS);
    }
    let command = Arguments::command().name(program::name()).long_version(VERSION.as_str());
    let matches = overview::arranged(command).get_matches();
    let done = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).run();
    program::say_notes();
    // A signal that ends the program may just be at it: its removal of folders comes first.
    program::ending::settle();
    done.map_or_else(|error| fail(&error, error.exit_code()), |()| ExitCode::SUCCESS)
}

/// The build. Programs of the same build give the same numbers; with a user's own policies the
/// build is the hash of the program file.
fn build_of(policies: &[Descriptor]) -> String {
    let own = (!policies.is_empty())
        .then(|| std::env::current_exe().and_then(std::fs::read).unwrap_or_default());
    own.map_or(BUILD.to_string(), |bytes| format!("{BUILD}+{:032x}", XxHash3_128::oneshot(&bytes)))
}

/// The version, and the features that this build lacks.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("papers", cfg!(feature = "papers")),
        ("parquet", cfg!(feature = "parquet")),
        ("runner", cfg!(feature = "runner")),
    ];
    let off: Vec<&str> =
        features.into_iter().filter(|(_, is_on)| !is_on).map(|(name, _)| name).collect();
    match off[..] {
        [] => BUILD.to_string(),
        _ => format!(
            "{BUILD}\nbuilt without these features: {}; build it with all default features: cargo \
             build --release -p schedlab",
            off.join(", ")
        ),
    }
});

fn file_name() -> Option<String> {
    Some(Path::new(&std::env::args_os().next()?).file_stem()?.to_string_lossy().into_owned())
}
