//! `schedlab completions` and `schedlab man-pages`: output for shells and for man.

use clap::{Args, Command};
use clap_complete::Shell;
use program::{Error, print, write_whole};
use std::path::PathBuf;

/// Prints the completions of schedlab's commands and options for a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab completions bash > \
                        ~/.local/share/bash-completion/completions/schedlab\n  schedlab \
                        completions zsh > ~/.zfunc/_schedlab      # with fpath+=~/.zfunc before \
                        compinit in ~/.zshrc\n  schedlab completions fish > \
                        ~/.config/fish/completions/schedlab.fish")]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the completions for `command`, the complete command line.
    pub fn run(self, mut command: Command) -> Result<(), Error> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, program::name(), &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}

/// Writes a man page for schedlab and one for each of its commands
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  schedlab man-pages ~/.local/share/man/man1 && man schedlab-compare"
)]
pub struct ManPages {
    /// The directory
    dir: PathBuf,
}

impl ManPages {
    /// Writes the pages for `command`, the complete command line.
    pub fn run(self, mut command: Command) -> Result<(), Error> {
        std::fs::create_dir_all(&self.dir).map_err(|error| Error::output(&self.dir, error))?;
        command.build();
        let verbs = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
        let pages = std::iter::once((command.get_name().to_string(), command.clone()));
        for (name, verb) in
            pages.chain(verbs.map(|verb| (format!("schedlab-{}", verb.get_name()), verb.clone())))
        {
            let path = self.dir.join(format!("{name}.1"));
            let mut page = Vec::new();
            clap_mangen::Man::new(verb.display_name(&name))
                .title(name)
                .render(&mut page)
                .map_err(|error| Error::output(&path, error))?;
            write_whole(&path, &page)?;
        }
        Ok(())
    }
}
