//! The canary of all name checks: misspells each name in the papers' files, in grids, machines and
//! workloads, one at a time. Every misspelling must be refused.

use super::check::{check_regimes, cover};
use super::claim::Claim;
use super::experiments::Experiments;
use super::folder::{self, Folder};
use super::{Paper, findings};
use formats::machine_file::MachineFile;
use formats::toml_file::TomlFile;
use formats::workload::{Parameters, Workload};
use laboratory::sweep::Sweep;
use program::Error;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys with prose as their value, or with a name that nothing has to use.
const PROSE: [&str; 14] = [
    "says",
    "title",
    "note",
    "because",
    "once",
    "description",
    "label",
    "text",
    "skipped",
    "need",
    "take",
    "id",
    "name",
    "warm-up-note",
];

/// Misspells each name in `text` in one of three ways; returns the text, the line and the new word.
fn misspelt(text: &str) -> Vec<(String, usize, String)> {
    let document = DeTable::parse(text).expect("TOML");
    let mut places = Vec::new();
    of_table(document.get_ref(), text, &mut places);
    let each = |(index, place): (usize, Range<usize>)| {
        let (word, line) = (&text[place.clone()], text[..place.start].matches('\n').count() + 1);
        let new = misspelling(word, index);
        (format!("{}{new}{}", &text[..place.start], &text[place.end..]), line, new)
    };
    places.into_iter().enumerate().map(each).collect()
}

/// Adds a letter, removes one, or replaces one.
fn misspelling(word: &str, manner: usize) -> String {
    let middle = word.len() / 2;
    let other = if &word[middle..=middle] == "q" { "k" } else { "q" };
    match manner % 3 {
        0 => format!("{}{other}{}", &word[..middle], &word[middle + 1..]),
        1 if word.len() > 1 => format!("{}{}", &word[..middle], &word[middle + 1..]),
        _ => format!("{word}q"),
    }
}

fn of_table(table: &DeTable<'_>, text: &str, places: &mut Vec<Range<usize>>) {
    // Values that stand after `--` belong to another program.
    let run = table.get("run").and_then(|run| run.get_ref().as_str()).unwrap_or_default();
    let is_foreign = run.split_once(" -- ").is_some_and(|(ours, _)| !ours.contains("{x}"));
    for (key, value) in table.iter() {
        places.extend(words(text, key.span()));
        if is_foreign && key.get_ref() == "x" {
            continue;
        }
        if !PROSE.contains(&key.get_ref().as_ref()) {
            of_value(key.get_ref(), value, text, places);
        }
    }
}

fn of_value(key: &str, value: &Spanned<DeValue<'_>>, text: &str, places: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => of_table(table, text, places),
        DeValue::Array(items) => items.iter().for_each(|item| of_value(key, item, text, places)),
        DeValue::String(_) => {
            let mut span = value.span();
            // The text after `--` belongs to another program.
            if let Some(end) = text[span.clone()].find(" -- ").filter(|_| key == "run") {
                span.end = span.start + end;
            }
            // An argument of a kernel, or a file in its /sys, is that kernel's to know; it refuses
            // another when it boots.
            // The name of a metric that a command prints is the paper's own: claims that use
            // another are refused.
            let is_others = |place: &Range<usize>| {
                let word = text[..place.start].rfind(' ').map_or("", |end| &text[..end]);
                text[..place.start].ends_with("--kernel-arg ")
                    || word.ends_with("--metric")
                    || word.ends_with("--sysctl")
            };
            places.extend(words(text, span).into_iter().filter(|place| !is_others(place)));
        }
        _ => {}
    }
}

/// The words in a part of the text. A word that begins with a digit is a number with its unit.
fn words(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut found = Vec::new();
    let mut at = within.start;
    while at < within.end {
        let length =
            text.as_bytes()[at..within.end].iter().take_while(|&&byte| is_of_word(byte)).count();
        if length > 0 && !text.as_bytes()[at].is_ascii_digit() {
            found.push(at..at + length);
        }
        at += length.max(1);
    }
    found
}

/// The text with its head and only one of its `[[…]]` parts, each in its own lines.
fn parts(text: &str) -> Vec<String> {
    let is_part = |at: &usize| {
        let line = text[*at..].lines().next().unwrap_or_default();
        (*at == 0 || text.as_bytes()[at - 1] == b'\n') && !line.contains('.')
    };
    let begins: Vec<usize> = text.match_indices("[[").map(|(at, _)| at).filter(is_part).collect();
    let blank = |part: &str| "\n".repeat(part.matches('\n').count());
    let head = begins.first().map_or(text, |&first| &text[..first]);
    let part = |(index, &begin): (usize, &usize)| {
        let end = begins.get(index + 1).copied().unwrap_or(text.len());
        format!("{head}{}{}", blank(&text[head.len()..begin]), &text[begin..end])
    };
    if begins.is_empty() {
        vec![text.to_string()]
    } else {
        begins.iter().enumerate().map(part).collect()
    }
}

/// The results for a file.
#[derive(Default, Debug)]
struct Tally {
    tried: usize,
    /// Misspellings that are names themselves.
    valid: usize,
    wrong: Vec<String>,
}

/// Misspells each name in `parts` of the file `name`; `read` must refuse it with the line. Words in
/// `known` are names themselves.
fn tally(
    name: &str,
    parts: &[String],
    known: &BTreeSet<String>,
    read: impl Fn(&str) -> Result<(), Error> + Sync,
) -> Tally {
    let mut tally = Tally::default();
    for part in parts {
        read(part).unwrap_or_else(|why| panic!("{name}: {why}"));
        let outcomes: Vec<(usize, String, Result<(), Error>)> = misspelt(part)
            .into_par_iter()
            .map(|(text, line, word)| (line, word, read(&text)))
            .collect();
        for (line, word, outcome) in outcomes {
            tally.tried += 1;
            match outcome {
                Ok(()) if known.contains(&word) => tally.valid += 1,
                Ok(()) => tally.wrong.push(format!("{name}:{line}: `{word}` passes")),
                Err(why) => {
                    let (message, code) = (why.to_string(), why.exit_code());
                    let place = message
                        .strip_prefix(name)
                        .and_then(|rest| rest.strip_prefix(':'))
                        .and_then(|rest| rest.split(':').next());
                    let is_placed = place.and_then(|line| line.parse::<usize>().ok()).is_some();
                    if !is_placed || code != 3 {
                        tally
                            .wrong
                            .push(format!("{name}:{line}: `{word}`: exit {code}: {message}"));
                    }
                }
            }
        }
    }
    tally
}

/// All words of a text that are names somewhere in it.
fn known(text: &str) -> BTreeSet<String> {
    words(text, 0..text.len()).into_iter().map(|place| text[place].to_string()).collect()
}

fn expect_none(tallies: &[Tally], at_least: usize) {
    let tried: usize = tallies.iter().map(|tally| tally.tried).sum();
    let valid: usize = tallies.iter().map(|tally| tally.valid).sum();
    let wrong: Vec<&String> = tallies.iter().flat_map(|tally| &tally.wrong).collect();
    assert!(
        wrong.is_empty(),
        "{} of {tried} misspellings:\n{}",
        wrong.len(),
        wrong.iter().map(|one| one.as_str()).collect::<Vec<_>>().join("\n")
    );
    assert!(tried >= at_least, "only {tried} names were misspelt");
    assert!(valid * 50 <= tried, "{valid} of {tried} misspellings are names themselves");
}

#[test]
fn a_misspelling_that_is_accepted_or_has_no_line_is_detected() {
    let text = "metric = 'grr'\nsays = 'grr'\n".to_string();
    let of = |read: &(dyn Fn(&str) -> Result<(), Error> + Sync)| {
        tally("x.toml", std::slice::from_ref(&text), &known(&text), read)
    };
    let lenient = of(&|_| Ok(()));
    assert_eq!(
        (lenient.tried, lenient.wrong.len()),
        (3, 3),
        "two keys, one value; not the prose: {:?}",
        lenient.wrong
    );
    let fails = |message: &'static str| {
        let read =
            |new: &str| if new == text { Ok(()) } else { Err(Error::Input(message.to_string())) };
        of(&read).wrong.len()
    };
    assert_eq!([fails("x.toml:1: metric: no"), fails("x.toml: no"), fails("no")], [0, 3, 3]);
}

#[test]
fn every_misspelt_name_in_a_papers_claims_is_refused() {
    let of_paper = |name: &String| {
        let paper = Paper::load(name).unwrap_or_else(|why| panic!("{why}"));
        let read = |file: &'static str| paper.folder.text(file).unwrap_or_default().to_string();
        let claims = read("claims.toml");
        let path = paper.folder.path("claims.toml");
        let claims_read = |text: &str| {
            Claim::read(&TomlFile::of(&path, text), &paper.regime_names(), |bindings| {
                paper.known(bindings)
            })
            .map(drop)
        };
        let first = tally(&path, &parts(&claims), &known(&claims), claims_read);
        let (findings, path) = (read("findings.toml"), paper.folder.path("findings.toml"));
        let findings_read =
            |text: &str| findings::read(&TomlFile::of(&path, text), &paper.ids()).map(drop);
        [first, tally(&path, &parts(&findings), &known(&findings), findings_read)]
    };
    let tallies: Vec<Tally> = folder::names().iter().flat_map(of_paper).collect();
    expect_none(&tallies, 3_000);
}

#[test]
fn every_misspelt_name_in_a_papers_experiments_is_refused() {
    let of_paper = |name: &String| {
        let paper = Paper::load(name).unwrap_or_else(|why| panic!("{why}"));
        let text = paper.folder.text("experiments.toml").unwrap_or_default().to_string();
        let path = paper.folder.path("experiments.toml");
        let read = |text: &str| {
            let file = TomlFile::of(&path, text);
            let mut done: Experiments = file.parse()?;
            paper.check_tables(&file, &done.table)?;
            check_regimes(&file, &done.regime)?;
            cover(&file, &mut done.command, &paper.folder)?;
            paper.formulas(&file, &done.figure).map(drop)
        };
        tally(&path, &parts(&text), &known(&text), read)
    };
    let tallies: Vec<Tally> = folder::names().iter().map(of_paper).collect();
    expect_none(&tallies, 1_000);
}

#[test]
fn every_misspelt_name_in_a_grid_a_machine_or_a_workload_is_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tallies = Vec::new();
    let curran = Folder::find("curran-stumm-1990").unwrap();
    let grids = curran.text("grids.toml").unwrap();
    let sweep = |name: &str, text: &str| Sweep::parse(name, text).map(drop);
    tallies
        .push(tally("grids.toml", &parts(grids), &known(grids), |text| sweep("grids.toml", text)));
    let loads = std::fs::read_to_string(root.join("workloads/loads.grid.toml")).unwrap();
    tallies.push(tally("loads.grid.toml", std::slice::from_ref(&loads), &known(&loads), |text| {
        sweep("loads.grid.toml", text)
    }));
    let toml = |dir: &str| {
        let files = std::fs::read_dir(root.join(dir)).unwrap().map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .collect::<Vec<_>>()
    };
    for path in toml("workloads/machines") {
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        tallies.push(tally(&name, std::slice::from_ref(&text), &known(&text), |text| {
            MachineFile::read(&TomlFile::of(&name, text)).map(drop)
        }));
    }
    let papers =
        ["curran-stumm-1990", "pslist", "td-tp"].map(|paper| toml(&format!("papers/{paper}")));
    for path in toml("workloads").into_iter().chain(papers.into_iter().flatten()) {
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        if [
            "grid.toml",
            "claims.toml",
            "experiments.toml",
            "findings.toml",
            "grids.toml",
            "limits.toml",
            "teaching.toml",
        ]
        .iter()
        .any(|other| name.ends_with(other))
        {
            continue;
        }
        let read = |text: &str| match Workload::described(TomlFile::of(&name, text))? {
            Workload::Stochastic(template) => template.with(&Parameters::default()).map(drop),
            _ => Ok(()),
        };
        tallies.push(tally(&name, std::slice::from_ref(&text), &known(&text), read));
    }
    expect_none(&tallies, 900);
}
