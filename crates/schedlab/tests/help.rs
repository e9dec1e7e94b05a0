//! Help with examples for every command, completions, man pages, nearest matches, and no colour
//! where it is not wanted.

use std::fs;
use std::process::{Command, Output};

fn schedlab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(arguments)
        .env("CLICOLOR_FORCE", "1")
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts")
}

fn stdout(arguments: &[&str]) -> String {
    let output = schedlab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The commands that `schedlab --help` lists.
fn verbs() -> Vec<String> {
    let help = stdout(&["--help"]);
    let listed = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs: Vec<String> = listed
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_string)
        .filter(|verb| verb != "help")
        .collect();
    assert!(verbs.len() >= 10, "{verbs:?}");
    verbs
}

#[test]
fn every_command_has_help_with_an_example() {
    for verb in verbs() {
        let help = stdout(&[&verb, "--help"]);
        let example = help.lines().map(str::trim_start).find(|line| {
            line.starts_with(&format!("schedlab {verb}"))
                || line.starts_with(&format!("sudo schedlab {verb}"))
        });
        assert!(example.is_some() && help.contains("Example"), "{verb} has no example:\n{help}");
    }
}

/// The heading in `--help` over each option.
fn headings(verb: &str) -> Vec<(String, String)> {
    let (mut of, mut heading) = (Vec::new(), String::new());
    for line in stdout(&[verb, "--help"]).lines() {
        match line.trim_start().split([' ', ',']).find(|word| word.starts_with("--")) {
            Some(option) if line.starts_with("      --") || line.starts_with("  -") => {
                of.push((option.to_string(), heading.clone()))
            }
            _ if !line.starts_with(' ') && line.ends_with(':') => heading = line.to_string(),
            _ => {}
        }
    }
    of
}

#[test]
fn options_stand_under_the_heading_of_their_world() {
    for (verb, option, heading) in [
        ("compare", "--by", "Options:"),
        ("compare", "--check", "Options:"),
        ("compare", "--format", "Options:"),
        ("compare", "--seed", "Options:"),
        ("compare", "--allow-lost", "Options of recordings:"),
        ("compare", "--apply", "Options of settings:"),
        ("compare", "--ensemble", "Options of ensembles:"),
        ("compare", "--fail-if", "Options of a gate:"),
        ("compare", "--switch-cost", "Options of the simulated machine (--on sim):"),
        ("compare", "--kernel", "Options of guests (--on vm):"),
        ("compare", "--affinity", "Options of this machine (--on host):"),
        ("compare", "--root", "Options of commands (-- COMMAND):"),
        ("run", "--trace", "Options:"),
        ("run", "--kernel", "Options of guests (--on vm):"),
        ("diff", "--ensemble", "Options:"),
    ] {
        let of = headings(verb);
        let is = of.iter().find(|(known, _)| known == option);
        assert_eq!(is.map(|(_, is)| is.as_str()), Some(heading), "{verb} {option}: {of:#?}");
    }
}

#[test]
fn short_help_is_short_and_help_is_complete() {
    for verb in verbs() {
        let (short, long) = (stdout(&[&verb, "-h"]), stdout(&[&verb, "--help"]));
        assert!(short.lines().count() <= 90, "{verb} -h has {} lines", short.lines().count());
        for word in short.split_whitespace().filter(|word| word.starts_with("--")) {
            let word = word.trim_end_matches([',', '.', ':', ';']);
            assert!(long.contains(word), "{verb} --help lacks {word}");
        }
    }
    let short = stdout(&["compare", "-h"]);
    assert!(short.contains("With --help also the options of ") && !short.contains("--kconfig"));
    assert!(stdout(&["compare", "--help"]).contains("--kconfig"));
}

#[test]
fn the_program_alone_shows_four_commands_that_work() {
    let start = stdout(&[]);
    assert_eq!(start, stdout(&["-h"]));
    assert!(start.lines().count() <= 11, "{start}");
    let folder = tempfile::tempdir().expect("a folder");
    let commands: Vec<&str> =
        start.lines().filter_map(|line| line.strip_prefix("  schedlab ")).collect();
    assert_eq!(commands.len(), 4, "{start}");
    for command in commands {
        let words = command.split("   ").next().expect("a command").split_whitespace();
        let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
            .args(words)
            .current_dir(folder.path())
            .output()
            .expect("it starts");
        assert!(output.status.success() && !output.stdout.is_empty(), "{command}");
    }
}

#[test]
fn every_shell_gets_completions_for_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        verbs().iter().for_each(|verb| assert!(script.contains(verb.as_str()), "{shell}: {verb}"));
    }
}

#[test]
fn every_command_has_a_man_page() {
    let dir = std::env::temp_dir().join(format!("schedlab-help-man-{}", std::process::id()));
    stdout(&["man-pages", &dir.to_string_lossy()]);
    for verb in verbs() {
        let page = fs::read_to_string(dir.join(format!("schedlab-{verb}.1"))).expect("a page");
        assert!(page.contains(".SH NAME") && page.contains(&verb.replace('-', "\\-")), "{page}");
    }
    assert!(dir.join("schedlab.1").is_file());
    fs::remove_dir_all(dir).expect("the directory");
}

#[test]
fn a_typing_error_gets_the_nearest_match() {
    for (arguments, nearest) in [
        (&["comprae"][..], "compare"),
        (&["report", "somewhere", "--windwo", "1ms..2ms"], "--window"),
        (&["completions", "bahs"], "bash"),
        (&["export", "a", "-o", "b", "--to", "perfeto"], "perfetto"),
    ] {
        let output = schedlab(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("similar") && message.contains(nearest), "{message}");
    }
}

#[test]
fn no_color_wins_over_forced_colour() {
    for arguments in [&["--help"][..], &["compare", "--help"], &["no-such-verb"]] {
        let output = schedlab(arguments);
        let said = [output.stdout, output.stderr].concat();
        assert!(!said.contains(&0x1b), "{}", String::from_utf8_lossy(&said));
    }
}
