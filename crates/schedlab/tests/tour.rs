//! `schedlab tour`: each command that it shows runs, from any folder, and is really the program's.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn tour(within: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .arg("tour")
        .args(more)
        .current_dir(within)
        .stdin(Stdio::null())
        .output()
        .expect("it starts")
}

#[test]
fn each_command_of_the_tour_runs_and_the_tour_runs_again() {
    let place = tempfile::tempdir().expect("a folder");
    for _ in 0..2 {
        let output = tour(place.path(), &[]);
        let text = String::from_utf8(output.stdout).expect("text");
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{wrong}");
        let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("$ ")).collect();
        assert_eq!(commands.len(), 5, "{text}");
        assert!(commands.iter().all(|line| line.starts_with("$ schedlab ")), "{commands:?}");
        // What a command printed stands between it and the next.
        for (command, printed) in [
            ("inspect", "Tasks by CPU time"),
            ("compare groff", "Fidelity: the recording on 2 CPUs"),
            ("compare mixed", "against eevdf, 16 runs each"),
            ("queue", "per operation"),
            ("doctor", "limit what can be measured here"),
        ] {
            let begin = text.find(&format!("$ schedlab {command}")).expect("a command");
            let end = text[begin + 1..].find("\n$ ").map_or(text.len(), |end| begin + 1 + end);
            assert!(text[begin..end].contains(printed), "{command}: {}", &text[begin..end]);
        }
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
        let report = place.path().join("schedlab-tour/answer/report.html");
        assert!(report.exists() && text.contains("schedlab-tour/answer/report.html"), "{text}");
    }
}

#[test]
fn a_file_of_the_users_is_kept_and_named() {
    let place = tempfile::tempdir().expect("a folder");
    let own = place.path().join("first/mixed.toml");
    fs::create_dir(place.path().join("first")).expect("a folder");
    fs::write(&own, "mine").expect("a file");
    let output = tour(place.path(), &["-o", "first"]);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{wrong}");
    assert!(wrong.contains("first/mixed.toml") && wrong.contains("-o DIR"), "{wrong}");
    assert_eq!(fs::read(&own).expect("a file"), b"mine");
    let output = tour(place.path(), &["-o", "first/mixed.toml"]);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && wrong.contains("-o DIR"), "{wrong}");
}
