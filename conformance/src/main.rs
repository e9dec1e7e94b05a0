//! Plays vectors to a subject, and prints where it differs.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vectors::{
    Judging, MAX_SPAN, Options, Process, Property, Reference, Tally, Vector, canaries, files,
    judge, play, table,
};

const USAGE: &str = "\
Plays vectors for fair schedulers to a subject, and says where it differs.

usage: schedlab-vectors [--subject reference|process:COMMAND] [--fault NAME] [--json] [PATH...]
       schedlab-vectors --judge [--claims NAME] [--tick D] [--slice D] [--tolerance D] [--json]
                        PATH...
       schedlab-vectors --canaries [PATH...]

  --subject S  reference (ours), or process:COMMAND: a program and its arguments, without a shell,
               that reads events and answers, a line each. Default: reference
  --fault NAME breaks one property of the reference (see --help)
  --json       one object a line instead of a table
  --judge      plays nothing: holds the decisions in histories against what they claim. Always
               conserve; if they claim `proportional` share, if `eevdf` share and lag-bound
  --claims N   judges as if they claimed N
  --tick D     the tick's period, and --slice D each task's request, as in 4ms or 700us; bounds
               are not known without. Default: those of the history
  --tolerance D  by how much CPU time a kernel may be off. Default: that of the header
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
    judging: Option<Judging>,
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
    let files = files(&arguments.paths).map_err(|why| (3, why.to_string()))?;
    let read = if arguments.judging.is_some() { Vector::read_to_judge } else { Vector::read };
    let vectors: Vec<(PathBuf, Vector)> = files
        .into_iter()
        .map(|file| match read(&file) {
            Ok(vector) => Ok((file, vector)),
            Err(why) => Err((3, why.to_string())),
        })
        .collect::<Result<_, _>>()?;
    if arguments.canaries { test_the_tests(vectors) } else { play_all(&arguments, &vectors) }
}

fn parse(arguments: Vec<OsString>) -> Result<Arguments, Failure> {
    let usage = |why: String| (2, format!("{why}; --help says more"));
    let mut parsed = Arguments {
        subject: "reference".into(),
        fault: None,
        canaries: false,
        judging: None,
        json: false,
        paths: Vec::new(),
    };
    let (mut judges, mut judging) = (false, Judging::default());
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
            Some("--judge") => judges = true,
            Some("--claims") => judging.claims = Some(value("--claims")?),
            Some(name @ ("--tick" | "--slice" | "--tolerance")) => {
                let least = if name == "--tolerance" { 0 } else { 1 };
                let text = value(name)?;
                let span = span(&text).filter(|span| *span >= least).ok_or_else(|| {
                    usage(format!("{name} {text}: give a duration with its unit, as in 4ms"))
                })?;
                *match name {
                    "--tick" => &mut judging.tick,
                    "--slice" => &mut judging.slice,
                    _ => &mut judging.tolerance,
                } = Some(span);
            }
            Some("--canaries") => parsed.canaries = true,
            Some("--json") => parsed.json = true,
            Some(option) if option.starts_with('-') => {
                return Err(usage(format!("unknown option {option}")));
            }
            _ => parsed.paths.push(word.into()),
        }
    }
    if judges {
        if parsed.subject != "reference" || parsed.fault.is_some() || parsed.canaries {
            return Err(usage("--judge plays nothing; leave subjects and faults out".into()));
        }
        if parsed.paths.is_empty() {
            return Err(usage("--judge needs a history".into()));
        }
        parsed.judging = Some(judging);
    } else if judging != Judging::default() {
        return Err(usage("--claims, --tick, --slice and --tolerance are of --judge".into()));
    }
    let is_process = parsed.subject.strip_prefix("process:").is_some_and(|rest| !rest.is_empty());
    if parsed.subject != "reference" && !is_process {
        return Err(usage(format!(
            "the subject is `reference` or `process:COMMAND`, as in process:{}",
            parsed.subject
        )));
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

/// A duration with its unit, in ns.
fn span(text: &str) -> Option<i64> {
    let unit = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let unit = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(unit).filter(|span| *span <= MAX_SPAN)
}

fn play_all(arguments: &Arguments, vectors: &[(PathBuf, Vector)]) -> Result<u8, Failure> {
    let (mut tally, mut is_silent) = (Tally::default(), false);
    for (place, (_, vector)) in vectors.iter().enumerate() {
        let outcome = match (&arguments.judging, arguments.subject.strip_prefix("process:")) {
            (Some(judging), _) => judge(vector, judging),
            (None, Some(command)) => {
                let mut process = Process::start(command, Process::DEADLINE).map_err(|why| {
                    (77, format!("{command}: {why}; give a program that can be started"))
                })?;
                let outcome = play(vector, &mut process);
                is_silent = process.is_silent();
                outcome
            }
            (None, None) => {
                let options = Options { fault: arguments.fault, ..Options::default() };
                play(vector, &mut Reference::claiming(&vector.header.claims, options))
            }
        };
        tally.count(&outcome);
        print(&match arguments.json {
            true => table::json(vector, &outcome),
            false => table::text(vector, &outcome),
        })?;
        let rest = vectors.len() - place - 1;
        if is_silent && rest > 0 {
            eprintln!("schedlab-vectors: {rest} further vectors are not played, as it is silent");
            break;
        }
    }
    if !arguments.json {
        print(&format!("{tally}\n"))?;
    }
    Ok(if tally.passes() { 0 } else { 4 })
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
    for (claims, property, vector) in canaries::faults(&sound) {
        let (name, fault) = (property.name(), property.fault());
        match vector {
            Some(canaries::Found { name: vector, at }) => {
                print(&format!("{claims:18} {name:10} found by {vector}, at {}\n", at.name()))?;
            }
            None => {
                lies.push(format!("no vector of {claims} finds a reference that {fault} ({name})"));
            }
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
