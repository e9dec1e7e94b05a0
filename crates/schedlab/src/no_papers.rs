//! `schedlab reproduce` in a build without the feature `papers`: an error that names the feature.

use clap::Args;
use program::Error;
use std::ffi::OsString;

/// Measures papers again: not in this build, whose feature `papers` is off
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Reproduce {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

impl Reproduce {
    pub fn run(self) -> Result<(), Error> {
        Err(Error::not_built("papers", "papers to reproduce"))
    }
}
