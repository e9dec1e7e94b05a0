//! Plays vectors to a subject, and prints where it differs.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vectors::{Options, Outcome, Process, Property, Reference, Vector, Verdict, canaries, play};

const USAGE: &str = "\
Plays vectors for fair schedulers to a subject, and says where it differs.

usage: schedlab-vectors [--subject reference|process:COMMAND] [--fault NAME] [--json] [PATH...]
       schedlab-vectors --canaries [PATH...]

  --subject S  reference (ours), or process:COMMAND: a program and its arguments, without a shell,
               that reads events and answers, a line each. Default: reference
  --fault NAME breaks one property of the reference (see --help)
  --json       one object a line instead of a table
  --canaries   tests the tests: each changed expectation and each fault must be found
  PATH         vectors, or folders of *.jsonl. Default: all of this package

exit codes: 0 no vector differs and at least one agrees, 2 usage, 3 an unusable vector,
            4 a difference or a broken subject, 77 the subject cannot be started
";

/// The command line.
struct Arguments {
    subject: String,
    fault: Option<Property>,
    canaries: bool,
    json: bool,
    paths: Vec<PathBuf>,
}

/// Why the program ends without a verdict: an exit code and a sentence.
type Failure = (u8, String);

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1).collect()) {
        Ok(code) => ExitCode::from(code),
        Err((code, why)) => {
            eprintln!("schedlab-vectors: {why}");
            ExitCode::from(code)
        }
    }
}

fn run(arguments: Vec<OsString>) -> Result<u8, Failure> {
    if arguments.iter().any(|word| word == "--help" || word == "-h") {
        let mut text = format!("{USAGE}\nfaults:\n");
        for property in Property::ALL {
            let _ = writeln!(text, "  {:10} {}", property.name(), property.fault());
        }
        print(&text)?;
        return Ok(0);
    }
    let arguments = parse(arguments)?;
    let files = files(&arguments.paths)?;
    let vectors: Vec<(PathBuf, Vector)> = files
        .into_iter()
        .map(|file| match Vector::read(&file) {
            Ok(vector) => Ok((file, vector)),
            Err(why) => Err((3, why.to_string())),
        })
        .collect::<Result<_, _>>()?;
    if arguments.canaries { test_the_tests(vectors) } else { play_all(&arguments, &vectors) }
}

fn parse(arguments: Vec<OsString>) -> Result<Arguments, Failure> {
    let usage = |why: String| (2, format!("{why}\n\n{USAGE}"));
    let mut parsed = Arguments {
        subject: "reference".into(),
        fault: None,
        canaries: false,
        json: false,
        paths: Vec::new(),
    };
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        let mut value = |name: &str| {
            let value = words.next().and_then(|value| value.into_string().ok());
            value.ok_or_else(|| usage(format!("{name} needs a value")))
        };
        match word.to_str() {
            Some("--subject") => parsed.subject = value("--subject")?,
            Some("--fault") => {
                let name = value("--fault")?;
                let fault = Property::named(&name);
                parsed.fault = Some(fault.ok_or_else(|| {
                    usage(format!("there is no fault {name:?}; --help lists them"))
                })?);
            }
            Some("--canaries") => parsed.canaries = true,
            Some("--json") => parsed.json = true,
            Some(option) if option.starts_with('-') => {
                return Err(usage(format!("unknown option {option}")));
            }
            _ => parsed.paths.push(word.into()),
        }
    }
    let is_process = parsed.subject.strip_prefix("process:").is_some_and(|rest| !rest.is_empty());
    if parsed.subject != "reference" && !is_process {
        return Err(usage("the subject is `reference` or `process:COMMAND`".into()));
    }
    if (parsed.fault.is_some() || parsed.canaries) && parsed.subject != "reference" {
        return Err(usage("faults and canaries are of the reference; leave --subject out".into()));
    }
    if parsed.canaries && (parsed.fault.is_some() || parsed.json) {
        return Err(usage("--canaries stands alone, or with paths".into()));
    }
    if parsed.paths.is_empty() {
        parsed.paths.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors"));
        if parsed.canaries {
            parsed.paths.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("canaries"));
        }
    }
    Ok(parsed)
}

/// The files that the paths mean, sorted.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            walk(path, 0, &mut files)
                .map_err(|why| (3, format!("{}: {why}; give a readable folder", path.display())))?;
            if files.len() == before {
                return Err((3, format!("{}: no *.jsonl here; give vectors", path.display())));
            }
            files[before..].sort();
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && depth < 16 {
            walk(&path, depth + 1, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

fn play_all(arguments: &Arguments, vectors: &[(PathBuf, Vector)]) -> Result<u8, Failure> {
    let (mut agree, mut differ, mut refused) = (0, 0, 0);
    for (_, vector) in vectors {
        let outcome = match arguments.subject.strip_prefix("process:") {
            Some(command) => {
                let mut process = Process::start(command, Process::DEADLINE).map_err(|why| {
                    (77, format!("{command}: {why}; give a program that can be started"))
                })?;
                play(vector, &mut process)
            }
            None => {
                let options = Options { fault: arguments.fault, ..Options::default() };
                play(vector, &mut Reference::claiming(&vector.header.claims, options))
            }
        };
        match outcome.verdict {
            Verdict::Agree => agree += 1,
            Verdict::Refused(_) => refused += 1,
            Verdict::Differ(_) | Verdict::Broken(_) => differ += 1,
        }
        print(&match arguments.json {
            true => as_json(vector, &outcome),
            false => as_text(vector, &outcome),
        })?;
    }
    if !arguments.json {
        print(&format!("{agree} agree, {differ} differ, {refused} refused\n"))?;
    }
    Ok(if differ > 0 || agree == 0 { 4 } else { 0 })
}

/// One line for a vector that agrees; three for one that does not.
fn as_text(vector: &Vector, outcome: &Outcome) -> String {
    let compared: u64 = outcome.compared.iter().sum();
    let mut text = format!(
        "{:8} {:40} {:>6} events {compared:>7} compared",
        verdict(outcome),
        vector.header.name,
        outcome.events
    );
    if let Some(line) = outcome.tie {
        let _ = write!(text, ", until line {line}, where rounding could decide");
    }
    text.push('\n');
    match &outcome.verdict {
        Verdict::Agree => {}
        Verdict::Refused(why) | Verdict::Broken(why) => {
            let _ = writeln!(text, "         {why}");
        }
        Verdict::Differ(at) => {
            let (line, event, property) = (at.line, &at.event, at.property.name());
            let _ = writeln!(text, "         line {line}, {property}, after {event}");
            let _ = writeln!(text, "         expected: {}; got: {}", at.expected, at.got);
        }
    }
    text
}

fn as_json(vector: &Vector, outcome: &Outcome) -> String {
    let difference = outcome.difference();
    let why = match &outcome.verdict {
        Verdict::Refused(why) | Verdict::Broken(why) => Some(why),
        _ => None,
    };
    let compared: serde_json::Map<String, serde_json::Value> = Property::ALL
        .into_iter()
        .map(|property| (property, outcome.compared[property as usize]))
        .filter(|(_, count)| *count > 0)
        .map(|(property, count)| (property.name().to_string(), count.into()))
        .collect();
    let row = serde_json::json!({
        "name": vector.header.name,
        "verdict": verdict(outcome),
        "line": difference.map(|at| at.line).or(outcome.tie),
        "event": difference.map(|at| &at.event),
        "property": difference.map(|at| at.property),
        "expected": difference.map(|at| &at.expected),
        "got": difference.map(|at| &at.got),
        "why": why,
        "tie": outcome.tie.is_some(),
        "events": outcome.events,
        "compared": compared,
    });
    format!("{row}\n")
}

fn verdict(outcome: &Outcome) -> &'static str {
    match outcome.verdict {
        Verdict::Agree => "agree",
        Verdict::Differ(_) => "differ",
        Verdict::Refused(_) => "refused",
        Verdict::Broken(_) => "broken",
    }
}

fn test_the_tests(vectors: Vec<(PathBuf, Vector)>) -> Result<u8, Failure> {
    let mut lies = Vec::new();
    let (changed, sound): (Vec<_>, Vec<_>) =
        vectors.into_iter().partition(|(_, vector)| vector.header.canary.is_some());
    for (file, vector) in &changed {
        lies.extend(canaries::missed(vector).map(|why| format!("{}: {why}", file.display())));
    }
    let sound: Vec<Vector> = sound.into_iter().map(|(_, vector)| vector).collect();
    let mut found = 0;
    for vector in &sound {
        let (count, missed) = canaries::changed_expectations(vector);
        found += count;
        lies.extend(missed);
    }
    for (property, vector) in canaries::faults(&sound) {
        let (name, fault) = (property.name(), property.fault());
        match vector {
            Some(canaries::Found { name: vector, at }) => {
                print(&format!("{name:10} found by {vector}, at {}\n", at.name()))?;
            }
            None => lies.push(format!("no vector finds a reference that {fault} ({name})")),
        }
    }
    print(&format!("{} canaries, {found} changed expectations\n", changed.len()))?;
    for lie in &lies {
        print(&format!("NOT FOUND {lie}\n"))?;
    }
    Ok(if lies.is_empty() { 0 } else { 4 })
}

/// Prints; a reader that has gone ends the program.
fn print(text: &str) -> Result<(), Failure> {
    let written = io::stdout().write_all(text.as_bytes());
    written.map_err(|why| (1, format!("cannot write the result: {why}")))
}
