//! What this program is: its name, the policies in it, and its build. Chosen once, where the command line begins; until then it is `schedlab` with what is built in.

use crate::cmd::Arguments;
use clap::{CommandFactory, FromArgMatches};
use schedsim::policy::{Catalog, Descriptor};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use twox_hash::XxHash3_128;

/// Its name without policies of a user's own.
const SCHEDLAB: &str = "schedlab";

struct Program {
    name: String,
    catalog: Catalog,
    build: String,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// The whole program, with these policies beside the built-in ones: a `main` of one line.
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
///     scheduler: &Make(|given| Rr::new(given.cpus(), RrOptions { quantum: schedsim::Nanos::from_millis(1), throttle: None })),
/// };
///
/// fn main() -> std::process::ExitCode {
///     schedlab::main(&[POLICY])
/// }
/// ```
pub fn main(policies: &[Descriptor]) -> ExitCode {
    let fail = |message: &dyn std::fmt::Display, code: u8| {
        eprintln!("{}: {message}", name());
        ExitCode::from(code)
    };
    let catalog = match Catalog::built_in().with(policies) {
        Ok(catalog) => catalog,
        Err(message) => return fail(&message, 2),
    };
    let own_name = if policies.is_empty() { None } else { file_name() };
    let program = Program { name: own_name.unwrap_or_else(|| SCHEDLAB.to_string()), catalog, build: build_of(policies) };
    if PROGRAM.set(program).is_err() {
        return fail(&"schedlab::main was called twice", 1);
    }
    let matches = Arguments::command().name(name()).get_matches();
    let done = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).run();
    done.map_or_else(|error| fail(&error, error.exit_code()), |()| ExitCode::SUCCESS)
}

fn this() -> &'static Program {
    PROGRAM.get_or_init(|| Program { name: SCHEDLAB.to_string(), catalog: Catalog::built_in(), build: build_of(&[]) })
}

/// What it is called.
pub fn name() -> &'static str {
    &this().name
}

/// The policies in it.
pub fn catalog() -> &'static Catalog {
    &this().catalog
}

/// Which sources it is of. Programs of the same build come to the same numbers; with policies of the user's own, a build is the program's file.
pub fn build() -> &'static str {
    &this().build
}

fn build_of(policies: &[Descriptor]) -> String {
    let own = (!policies.is_empty()).then(|| std::env::current_exe().and_then(std::fs::read).unwrap_or_default());
    own.map_or(schedlab_sources::BUILD.to_string(), |bytes| format!("{}+{:032x}", schedlab_sources::BUILD, XxHash3_128::oneshot(&bytes)))
}

fn file_name() -> Option<String> {
    Some(Path::new(&std::env::args_os().next()?).file_stem()?.to_string_lossy().into_owned())
}
