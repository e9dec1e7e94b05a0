//! Options that build a guest's kernel.

use clap::Args;
use program::Error;
use std::path::PathBuf;
use worlds::vm::built::Recipe;
use worlds::vm::source_package::SourcePackage;

/// The sources of a kernel, and its configuration.
#[derive(Args, Debug)]
pub struct SourceArguments {
    /// A source tree of Linux, out of which a minimal kernel is built: what guests need and what
    /// --kconfig adds. Or a file such as kernel/pslist/kernel.toml, which names a source package,
    /// patches and configuration. The kernel is kept in the cache; nothing is written into the tree
    #[arg(long = "kernel-source", value_name = "DIR|FILE")]
    tree: Option<PathBuf>,
    /// Fragments of a kernel's configuration, separated by commas, over the minimal one; lines as
    /// CONFIG_SCHED_CORE=y
    #[arg(long = "kconfig", value_name = "FILE", value_delimiter = ',', requires = "tree")]
    fragments: Vec<PathBuf>,
}

impl SourceArguments {
    /// The name of the kernel that is built, if one is.
    ///
    /// # Errors
    /// As of [`Recipe::kernel`].
    pub fn kernel(&self) -> Result<Option<String>, Error> {
        let Some(tree) = &self.tree else { return Ok(None) };
        let fragments = &self.fragments;
        let kernel = if tree.is_file() {
            SourcePackage::read(tree)?.kernel(fragments, &program::say)?
        } else {
            Recipe { tree, fragments, folder: None, origin: None }.kernel(&program::say)?
        };
        Ok(Some(kernel.name))
    }
}
