//! What `schedlab` alone, `-h` and `--help` show: how to start, and the commands by what their user
//! does. Of each command they show first what is needed most.

use clap::builder::StyledStr;
use clap::{Arg, Command};
use program::name;
use program::terminal::wrapped;
use std::fmt::Write;

/// What `schedlab` alone and `schedlab -h` print: ten lines, with commands that need no file.
pub fn start() -> String {
    let name = name();
    format!(
        "{name}: a laboratory for CPU schedulers\n\n\
         Four commands to begin with; each needs no file:\n  \
         {name} tour                                         a first session, step by step\n  \
         {name} compare hackbench:1 --policy eevdf,take:rr   which policy is better for a workload\n  \
         {name} queue --tasks 10,100 --count steps           what ready queues examine\n  \
         {name} list workloads                               what else is built in\n\
         With a program of your own:  sudo {name} record -o my.rec -- COMMAND\n                             \
         {name} compare my.rec\n\
         All commands: {name} --help   One of them: {name} COMMAND -h\n"
    )
}

/// The commands by what their user does. Each stands in one group, as a test holds.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Find what helps", &["record", "compare", "run", "inspect", "report", "diff", "export"]),
    ("Examine a scheduler", &["conform", "judge", "bisect", "scheduler", "check"]),
    ("Choose a ready queue", &["queue"]),
    ("Research", &["sweep", "reproduce", "verify", "predict", "image"]),
    ("Begin", &["tour", "new", "list"]),
    ("This machine and this program", &["doctor", "completions", "man-pages", "help"]),
];

/// `command`, the complete command line, with its commands in groups, and with short help that is
/// short. What has a heading of its own is named there, and shown by `--help`.
pub fn arranged(command: Command) -> Command {
    let commands = groups(&command);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nCommands:\n{commands}\nOptions:\n\
         {{options}}{{after-help}}"
    );
    command.help_template(template).mut_subcommands(short)
}

/// The command that clap adds when it builds the command line, and what it says of it. This text is
/// written at each start, before that.
const HELP: (&str, &str) = ("help", "Print this message or the help of the given subcommand(s)");
/// The width of the names of commands, and of a line.
const NAMES: usize = 13;
const LINE: usize = 80;

fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{heading}:");
        for name in names {
            let about = match command.find_subcommand(name) {
                Some(verb) => verb.get_about().map(StyledStr::to_string).unwrap_or_default(),
                None if *name == HELP.0 => HELP.1.to_string(),
                None => continue,
            };
            let indent = format!("\n{:1$}", "", NAMES + "   ".len());
            let about = wrapped(&about, LINE - indent.len() + 1).join(&indent);
            let _ = writeln!(text, "  {name:NAMES$} {about}");
        }
    }
    text
}

/// `verb` with `-h` that leaves out the options under headings of their own, if there are many.
fn short(verb: Command) -> Command {
    const MANY: usize = 25;
    let own = |arg: &Arg| arg.get_help_heading().map(str::to_string);
    let shown = verb.get_arguments().filter(|arg| !arg.is_hide_set());
    if shown.count() <= MANY {
        return verb;
    }
    let mut headings: Vec<String> = Vec::new();
    for heading in verb.get_arguments().filter(|arg| !arg.is_positional()).filter_map(own) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    if headings.is_empty() {
        return verb;
    }
    let headings = headings.join(", ").replace("Options of ", "");
    let after = verb.get_after_help().map(StyledStr::to_string).unwrap_or_default();
    let more = format!("With --help also the options of {headings}.\n\n{after}");
    verb.mut_args(|arg| {
        let is_special = arg.get_help_heading().is_some() && !arg.is_positional();
        arg.hide_short_help(is_special)
    })
    .after_long_help(after)
    .after_help(more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory;

    #[test]
    fn each_command_is_in_one_group() {
        let mut command = Arguments::command();
        command.build();
        let all = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut all: Vec<&str> = all.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, all);
    }
}
