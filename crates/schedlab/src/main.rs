//! The command line.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = schedlab::cmd::Arguments::parse();
    match arguments.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("schedlab: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
