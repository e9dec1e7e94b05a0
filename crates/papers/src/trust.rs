//! What another user's folder would do on this machine.
//!
//! A paper is data: its commands simulate, or run in a guest that leaves nothing behind. What runs
//! programs here, reads outside its folder, or writes anywhere needs the user's word (`--trust`).
//! Options that are not known to be harmless count as such.

use crate::experiments::Experiments;
use crate::folder::Folder;
use program::Error;

/// Options that run nothing here, and whose values name no files.
const HARMLESS: [&str; 39] = [
    "--apply",
    "--baseline",
    "--by",
    "--check",
    "--ci",
    "--cpus",
    "--ensemble",
    "--focus",
    "--functions",
    "--interleave",
    "--kernel",
    "--kernel-arg",
    "--machine",
    "--margin",
    "--max-runs",
    "--max-time",
    "--memory",
    "--metric",
    "--migration-cost",
    "--min-time",
    "--mips",
    "--no-events",
    "--no-self-comparison",
    "--nudge",
    "--numa-nodes",
    "--others-lose",
    "--policy",
    "--protocol",
    "--replay",
    "--sched-feature",
    "--seed",
    "--set",
    "--settle",
    "--switch-cost",
    "--sysctl",
    "--then",
    "--timeout",
    "--wake-cost",
    "--warm-up",
];

/// Refuses a folder that does more than simulate and run guests.
///
/// # Errors
/// With a list of what it would do.
pub fn expect(folder: &Folder, experiments: &Experiments) -> Result<(), Error> {
    if folder.is_built_in() {
        return Ok(());
    }
    let source = |word: &str| folder.source(word).map(|(file, _)| file);
    let mut listed: Vec<String> = Vec::new();
    for command in &experiments.command {
        for deed in command.all_words().iter().flat_map(|words| deeds(words, &source)) {
            let deed = format!("\n  {}: {deed}", command.name);
            if !listed.contains(&deed) {
                listed.push(deed);
            }
        }
    }
    if listed.is_empty() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} is a folder of its own, and its commands would do more here than simulate and run \
         guests:{}\nGive --trust if you trust who wrote it",
        folder.argument,
        listed.concat()
    )))
}

/// What a command does on this machine beyond simulating and running guests. `source` finds the file
/// of a program that is built before.
fn deeds(words: &[String], source: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (options, program) = words.split_at(end);
    let mut deeds = Vec::new();
    let mut is_on_host = false;
    let mut all = options.iter().skip(1).peekable();
    while let Some(word) = all.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if option.starts_with('-') => (option, Some(value.to_string())),
            _ => (word.as_str(), None),
        };
        if option == "--on" {
            let worlds = value.or_else(|| all.next().cloned()).unwrap_or_default();
            is_on_host |= worlds.split(',').any(|world| !matches!(world, "sim" | "vm"));
        } else if option.starts_with('-') && !HARMLESS.contains(&option) {
            deeds.push(format!("gives {option}, which may read or write files"));
        } else if leaves_the_folder(value.as_deref().unwrap_or(word)) {
            deeds.push(format!("reads {}", value.as_deref().unwrap_or(word)));
        }
    }
    let program = program.get(1..).unwrap_or_default();
    deeds.extend(
        program.iter().filter(|word| leaves_the_folder(word)).map(|word| format!("reads {word}")),
    );
    deeds.extend(
        words
            .iter()
            .filter_map(|word| source(word))
            .map(|file| format!("builds {file} with the C compiler")),
    );
    if is_on_host && !program.is_empty() {
        deeds.push(format!("runs {} on this machine", program.join(" ")));
    } else if is_on_host {
        deeds.push("measures on this machine, with its scheduler's settings".to_string());
    }
    deeds
}

/// Whether a word names, or contains, a path outside the folder.
fn leaves_the_folder(word: &str) -> bool {
    let parts = || word.split([':', ',', '=', '?', '&', ' ', '\'', '"']);
    parts().any(|part| part.starts_with(['/', '~']) || part.split('/').any(|step| step == ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Vec<String> {
        let words: Vec<String> = command.split_whitespace().map(str::to_string).collect();
        deeds(&words, &|word| (word == "./own").then(|| "own.c".to_string()))
    }

    #[test]
    fn what_simulates_or_runs_in_a_guest_needs_no_trust() {
        for command in [
            "compare yield:8 --policy cfs,pslist --baseline cfs --cpus 2 --ensemble 16 --seed 3",
            "compare own.toml --on vm --kernel 6.18 --policy kernel:fifo:50 --ensemble 1",
            "compare --on sim,vm --no-events --metric rate=regex:([0-9.]+),1/s,higher -- hackbench",
            "compare bursts-0.7.toml --then bursts-0.9.toml --on=vm",
        ] {
            assert_eq!(of(command), [""; 0], "{command}");
        }
    }

    #[test]
    fn what_does_more_is_named() {
        for (command, wanted) in [
            ("compare --on host -- rm -r x", "runs rm -r x on this machine"),
            ("compare hogs:2 --on=sim,host", "measures on this machine"),
            ("compare hogs:2 -o here", "gives -o, which may"),
            ("compare hogs:2 --gate-output=x.xml", "gives --gate-output, which may"),
            ("compare hogs:2 --some-later-option 3", "gives --some-later-option, which may"),
            ("compare /etc/secret.toml", "reads /etc/secret.toml"),
            ("compare a/../../secret.toml", "reads a/../../secret.toml"),
            ("compare hogs:2 --policy scx:/opt/mine", "reads scx:/opt/mine"),
            ("compare hogs:2 --machine ../m.toml", "reads ../m.toml"),
            ("compare hogs:2 --metric p=json:/etc/shadow,us", "reads p=json:/etc/shadow,us"),
            ("compare --on vm -- cat /etc/shadow", "reads /etc/shadow"),
            ("compare --on vm -- cat --file=/etc/shadow", "reads --file=/etc/shadow"),
            ("compare --on vm -- ./own 8", "builds own.c with the C compiler"),
        ] {
            let deeds = of(command);
            assert!(deeds.iter().any(|deed| deed.starts_with(wanted)), "{command}: {deeds:?}");
        }
    }
}
