//! What a terminal shows: tables that fit, and the answer where the reader looks.

use std::fs;
use std::process::{Command, Stdio};

const TASKS: &str = "
[[task]]
name = 'hog'
count = 3
phases = [{ run = '9ms' }]

[[task]]
name = 'blinker'
count = 2
phases = [{ loop = { times = 30, phases = [{ run = '100us' }, { sleep = '1ms' }] } }]
";

/// The lines that a terminal of this size shows of `schedlab` with `arguments`, a shell's words.
fn lines(columns: usize, rows: usize, arguments: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("w.toml"), TASKS).expect("a file");
    let program = env!("CARGO_BIN_EXE_schedlab");
    let command = format!("stty cols {columns} rows {rows}; {program} {arguments} 2>/dev/null");
    // Of bsdutils, which every Debian has.
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("script starts");
    // The terminal echoes the end of its input.
    let text = String::from_utf8_lossy(&output.stdout).replace("^D\u{8}\u{8}", "");
    assert!(output.status.success(), "{arguments}: {text}");
    text.lines().map(|line| line.trim_end().to_string()).collect()
}

/// The table whose heading begins with `first`.
fn table(lines: &[String], first: &str) -> Vec<String> {
    let from = lines.iter().skip_while(|line| !line.starts_with(first));
    from.take_while(|line| !line.is_empty()).cloned().collect()
}

const COMPARE: &str = "compare w.toml --cpus 1 --policy eevdf,take:rr,central:rr,take:priority";

#[test]
fn the_table_of_a_comparison_fits_the_terminal_and_the_answer_is_at_both_ends() {
    let narrow = lines(80, 24, COMPARE);
    let shown = table(&narrow, "policy");
    assert!(shown.len() == 6, "{narrow:#?}");
    for line in &shown[..5] {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(shown[0].contains("makespan"), "{shown:#?}");
    assert!(shown[5].starts_with("Not shown: ") && shown[5].contains("terminal"), "{shown:#?}");
    // A decided number is not what is left out.
    let decided = |lines: &[String]| lines.concat().matches(['+', '-']).count();
    let wide = lines(220, 24, COMPARE);
    let all = table(&wide, "policy");
    assert!(all.len() == 5 && all[0].chars().count() > 80, "{all:#?}");
    assert!(decided(&shown) > 0 && decided(&all) >= decided(&shown[..5]), "{shown:#?}");
    let again = format!("Answer: {}", narrow[0]);
    let at = narrow.iter().rposition(|line| *line == again).expect("the answer again");
    assert!(narrow.len() - at < 10, "{narrow:#?}");
    // Where everything fits, nothing is said twice.
    let tall = lines(220, 200, COMPARE);
    assert!(!tall.iter().any(|line| line.starts_with("Answer: ")), "{tall:#?}");
}

#[test]
fn lists_break_their_prose_into_lines() {
    let list = lines(80, 24, "queue --list");
    let long: Vec<&String> = list.iter().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty() && list.len() > 20, "{list:#?}");
}

#[test]
fn a_queue_table_fits_the_terminal() {
    let narrow = lines(80, 24, "queue --tasks 10,100 --count steps");
    for first in ["list elements", "longest wait"] {
        let shown = table(&narrow, first);
        assert!(shown.len() > 10, "{first}: {narrow:#?}");
        for line in shown.iter().filter(|line| !line.starts_with("Not shown: ")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

/// Names of tasks, files and workloads are a stranger's: no sink obeys them.
#[test]
fn a_name_does_not_command_a_terminal_a_spreadsheet_or_a_browser() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = "=1+\\u001b[31m\\u202e<img>";
    let tasks = TASKS.replace("'blinker'", &format!("\"{name}\""));
    fs::write(folder.path().join("w.toml"), tasks).expect("a file");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let output = command.current_dir(folder.path()).args(arguments).output().expect("it runs");
        String::from_utf8(output.stdout).expect("text") + &String::from_utf8_lossy(&output.stderr)
    };
    let obeyed = |text: &str| text.contains(['\u{1b}', '\u{202e}']);
    let shown = run(&["compare", "w.toml", "--policy", "eevdf,rr", "--by", "comm", "-o", "out"]);
    assert!(shown.contains("=1+\\u{1b}[31m\\u{202e}<img>") && !obeyed(&shown), "{shown}");
    let missing = run(&["compare", "\u{1b}[31m.toml"]);
    assert!(missing.contains("\\u{1b}[31m.toml") && !obeyed(&missing), "{missing}");
    let read = |file: &str| fs::read_to_string(folder.path().join("out").join(file)).expect(file);
    assert!(read("results.csv").contains(",'=1+\u{1b}[31m\u{202e}<img>,"), "no formula");
    let page = read("report.html");
    let before_scripts = &page[..page.find("<script").expect("scripts")];
    assert!(before_scripts.contains("&lt;img&gt;") && !before_scripts.contains("<img>"));
    assert!(!obeyed(before_scripts) && !page.contains('\u{1b}'));
    // Programs get the name as it is.
    let verified = run(&["verify", "out"]);
    assert!(verified.contains("same"), "{verified}");
}
