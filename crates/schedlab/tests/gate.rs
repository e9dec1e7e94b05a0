//! A gate as a user and as a runner of GitHub have it: rules, files, exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TASKS: &str = "[[task]]\nname = 'hog'\ncount = 2\nphases = [{ run = '9ms' }]\n";
const POLICY: [&str; 2] = ["--policy", "take:rr"];

/// A folder with a workload and its result.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a folder") };
        fs::write(place.at("w.toml"), TASKS).expect("a file");
        let (code, said) = place.compare(&["-o", "old"]);
        assert_eq!(code, Some(0), "{said}");
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compare(&self, more: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command.args(["compare", "w.toml", "--cpus", "1"]).args(POLICY).args(more);
        self.said(&mut command)
    }

    fn said(&self, command: &mut Command) -> (Option<i32>, String) {
        let output = command.current_dir(self.folder.path()).output().expect("it starts");
        let both = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&both).into_owned())
    }

    /// Changes the stored result.
    fn replace(&self, old: &str, new: &str) {
        let file = self.at("old/results.json");
        let text = fs::read_to_string(&file).expect("a result");
        assert!(text.contains(old), "{old} is not in the result");
        fs::write(file, text.replace(old, new)).expect("a file");
    }

    /// Halves the stored makespan.
    fn regress(&self) {
        let file = self.at("old/results.json");
        let mut results = results::Results::read(&file).expect("a result");
        for row in results.rows.iter_mut().filter(|row| row.metric.id() == "makespan_ns") {
            for value in [&mut row.value, &mut row.ci_low, &mut row.ci_high] {
                *value = value.map(|value| value / 2.0);
            }
        }
        fs::write(file, results.to_json().expect("JSON")).expect("a file");
    }
}

#[test]
fn a_rule_that_holds_passes_and_one_that_does_not_is_named_in_every_form() {
    let place = Place::new();
    let gate = ["--against", "old", "--fail-if", "makespan_ns > +1%", "--fail-if", "grr worse"];
    let outputs = ["--gate-output", "g.xml", "--gate-output", "g.md", "--gate-output", "github"];
    let (code, said) = place.compare(&[&gate[..], &outputs[..]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Gate against old/results.json: all 4 passed"), "{said}");
    assert!(said.contains("::notice title=schedlab::Gate against"), "{said}");
    place.regress();
    let (code, said) = place.compare(&[&gate[..], &outputs[..]].concat());
    assert_eq!(code, Some(4), "{said}");
    let read = |name| fs::read_to_string(place.at(name)).expect(name);
    assert!(said.contains("FAILED") && said.contains("+100.00 %"), "{said}");
    assert!(said.contains("::error title=take%3Arr%3A makespan_ns > +1%25::w"), "{said}");
    assert!(
        read("g.xml").contains("<failure type=\"regression\"")
            && read("g.md").contains("| FAILED |")
    );
    // In the other direction it is no regression.
    let better = ["--against", "old", "--fail-if", "makespan_ns < -1%"];
    assert_eq!(place.compare(&better).0, Some(0));
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let place = Place::new();
    let of = |file: &str, rule: &str| place.compare(&["--against", file, "--fail-if", rule]);
    for (file, rule, code, word) in [
        ("old", "makespan_nss > +1%", 2, "Did you mean `makespan_ns`"),
        // A name is wrong before there is a stored result, too.
        ("none.json", "makespan_nss > +1%", 2, "Did you mean `makespan_ns`"),
        ("old", "makespan_ns > 1", 2, "percentage"),
        ("old", "grr[hag] worse", 3, "no parts of grr"),
        ("none.json", "grr worse", 3, "none.json: there is no such file; make it with"),
        ("w.toml", "grr worse", 3, "not results of schedlab"),
        ("old", "instructions_per_yield worse", 3, "has no instructions_per_yield; it has"),
    ] {
        let (is, said) = of(file, rule);
        assert!(is == Some(code) && said.contains(word), "{file}, {rule}: {is:?}: {said}");
    }
    assert_eq!(place.compare(&["--against", "old"]).0, Some(2), "a rule is needed");
    place.replace("\"version\": \"", "\"version\": \"0.0.9-");
    let (code, said) = of("old", "grr worse");
    assert!(code == Some(3) && said.contains("the version of schedlab was 0.0.9-"), "{said}");
    let allowed = ["--against", "old", "--fail-if", "grr worse", "--allow-environment"];
    let (code, said) = place.compare(&allowed);
    assert!(code == Some(0) && said.contains("another environment: the version"), "{said}");
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What a runner sets for the step of `action.yml`, with these inputs, and the command it runs.
fn step(inputs: &BTreeMap<&str, &str>) -> (BTreeMap<String, String>, String) {
    let action = fs::read_to_string(repository().join("action.yml")).expect("the action");
    let (mut defaults, mut name) = (BTreeMap::new(), "");
    let (mut environment, mut run) = (BTreeMap::new(), None);
    for line in action.lines() {
        if let Some(input) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            name = input.trim_end_matches(':');
        }
        if let Some(value) = line.strip_prefix("    default: ") {
            defaults.insert(name, value.trim_matches('"'));
        }
        if let Some((key, value)) = line.trim().split_once(": ${{ inputs.") {
            let input = value.trim_end_matches(" }}");
            let given = inputs.get(input).or(defaults.get(input));
            environment.insert(key.to_string(), given.expect(input).to_string());
        }
        if let Some(command) = line.trim().strip_prefix("run: ") {
            run = Some(command.trim_matches('\'').to_string());
        }
    }
    (environment, run.expect("the action runs something"))
}

#[test]
fn the_action_runs_as_a_runner_would() {
    let place = Place::new();
    let inputs = BTreeMap::from([
        ("command", "w.toml --cpus 1 --policy 'take:rr'"),
        ("against", "old"),
        ("fail-if", "makespan_ns > +1%\n\ngrr worse\n"),
        ("program", env!("CARGO_BIN_EXE_schedlab")),
    ]);
    let (environment, run) = step(&inputs);
    let ran = || {
        for file in ["summary", "output"] {
            fs::write(place.at(file), "").expect("a file");
        }
        let mut shell = Command::new("bash");
        shell.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", &run]);
        shell.env("GITHUB_ACTION_PATH", fs::canonicalize(repository()).expect("a path"));
        shell
            .env("GITHUB_STEP_SUMMARY", place.at("summary"))
            .env("GITHUB_OUTPUT", place.at("output"));
        let (code, said) = place.said(shell.envs(&environment));
        (code, said, fs::read_to_string(place.at("summary")).expect("a summary"))
    };
    let (code, said, summary) = ran();
    assert!(code == Some(0) && summary.contains("all 4 passed"), "{said}\n{summary}");
    assert_eq!(fs::read_to_string(place.at("output")).unwrap(), "results=schedlab-results\n");
    for file in ["results.json", "report.html", "gate.xml", "gate.md"] {
        assert!(place.at("schedlab-results").join(file).exists(), "{file}");
    }
    place.regress();
    let (code, said, summary) = ran();
    assert!(code == Some(4) && summary.contains("| FAILED |"), "{said}\n{summary}");
    assert!(said.contains("::error title="), "{said}");
    fs::remove_file(place.at("old/results.json")).expect("it is there");
    let (code, said, summary) = ran();
    assert!(
        code == Some(3) && summary.contains("exit code 3 before the gate"),
        "{said}\n{summary}"
    );
}

#[test]
fn the_workflow_of_the_documentation_is_short_and_gives_what_the_action_takes() {
    let page = fs::read_to_string(repository().join("docs/gate.md")).expect("the page");
    let workflow = page.split_once("```yaml\n").expect("a workflow").1;
    let workflow = workflow.split_once("```").expect("its end").0;
    assert!(workflow.lines().count() <= 15, "{workflow}");
    let with = workflow.split_once("with:\n").expect("inputs").1;
    let keys: Vec<&str> = with
        .lines()
        .filter_map(|line| line.strip_prefix("          ")?.split_once(':'))
        .map(|(key, _)| key)
        .filter(|key| !key.starts_with(' '))
        .collect();
    assert_eq!(keys, ["command", "against", "fail-if"]);
    let inputs = keys.iter().map(|key| (*key, "x")).collect();
    assert!(step(&inputs).0.values().filter(|value| *value == "x").count() == 3);
}
