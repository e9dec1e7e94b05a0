use super::*;
use crate::expression::{Check, Known, KnownSeries};
use crate::series::Series;
use crate::{Paper, evidence::Replicate, folder};
use results::Row;
use std::collections::BTreeMap;
use std::path::Path;

/// The content of a paper's file in the repository.
fn text(paper: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers").join(paper).join(file);
    std::fs::read_to_string(&path).unwrap_or_default()
}

/// The value of a check on record: `A-CLM07-kernel.1`, or `C-CLM01.2S` in a regime.
fn on_record(record: &[Row], reference: &str) -> Result<f64, String> {
    let wrong = || format!("the record has no value of {{{reference}}}");
    let (claim, part) = reference.split_once('.').ok_or_else(wrong)?;
    let (part, regime) =
        part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
    let row = record.iter().find(|row| {
        row.text("claim") == claim
            && row.coordinate("part").is_some_and(|own| own.to_string() == part)
            && row.text("regime") == regime
    });
    row.and_then(|row| row.value).ok_or_else(wrong)
}

/// The value of an expression over the record.
fn computed(record: &[Row], from: &str) -> Result<f64, String> {
    let (mut known, mut series) = (KnownSeries::new(), BTreeMap::<String, Series>::new());
    let (mut expression, mut rest) = (String::new(), from);
    while let Some((before, after)) = rest.split_once('{') {
        let (reference, after) = after.split_once('}').ok_or("a { is not closed")?;
        let name = format!("value{}", (b'a' + series.len() as u8) as char);
        known.insert(name.clone(), Known::default());
        expression += &format!("{before}{name}@0");
        series.insert(name, vec![(0.0, on_record(record, reference)?)]);
        rest = after;
    }
    let check = Check::parse(&format!("{expression}{rest} <= 0"), &known);
    let check = check.map_err(|fault| format!("{from}: {}", fault.message))?;
    let series = series.iter().map(|(name, series)| (name.as_str(), series)).collect();
    Ok(check.evaluate(&Replicate { series, printed: &BTreeMap::new() })?.value)
}

/// The numbers of a text, as they are written; not those in ids, names and versions.
fn numbers(text: &str) -> Vec<&str> {
    let part = |c: char| c.is_ascii_alphanumeric() || ",.-_:=×·(/".contains(c);
    text.split(|c: char| !part(c))
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .filter(|word| word.chars().all(|c| c.is_ascii_digit() || ".,".contains(c)))
        .filter(|word| !word.is_empty() && word.matches('.').count() < 2)
        .collect()
}

/// Half of the last digit of a number as it is written; of a number above 999 zeros at the end
/// count as rounded.
fn precision(number: &str) -> f64 {
    let digits = number.replace(',', "");
    match digits.split_once('.') {
        Some((_, decimals)) => 0.5 * 0.1_f64.powi(decimals.len() as i32),
        None if digits.len() > 3 => {
            0.5 * 10_f64.powi((digits.len() - digits.trim_end_matches('0').len()) as i32)
        }
        None => 0.5,
    }
}

/// What is wrong with the numbers of a sentence; `stated` are the numbers of the experiments.
fn faults(record: &[Row], stated: &[&str], sentence: &str) -> Vec<String> {
    let (_, citations) = split(sentence);
    let mut faults = Vec::new();
    let mut bare = sentence.to_string();
    for Citation { shown, from } in citations {
        bare = bare.replacen(&format!("[{shown}]({from})"), "", 1);
        if let Some(source) = from.strip_prefix("given:") {
            if source.trim().is_empty() {
                faults.push(format!("`{shown}` is given without a source"));
            }
            continue;
        }
        let of = |number: &str| number.replace(',', "").parse::<f64>().ok();
        let written: Vec<&str> = numbers(shown);
        let [number] = written[..] else {
            faults.push(format!("`{shown}` is not one number"));
            continue;
        };
        match computed(record, from) {
            Ok(value)
                if (value - of(number).unwrap_or(f64::NAN)).abs() <= precision(number) * 1.0001 => {
            }
            Ok(value) => faults.push(format!("`{shown}` is {value} by the record ({from})")),
            Err(why) => faults.push(why),
        }
    }
    let is_stated = |number: &&str| !stated.contains(number);
    faults.extend(numbers(&bare).into_iter().filter(is_stated).map(|number| {
        format!("`{number}` is neither computed from the record nor stated by an experiment")
    }));
    let percent: Vec<&str> = bare.split(" %").collect();
    for before in &percent[..percent.len() - 1] {
        let number = before.rsplit(' ').next().unwrap_or_default();
        faults.push(format!("`{number} %` has no source: write [{number} %](…)"));
    }
    faults
}

/// The sentences of a paper's findings with their place.
fn findings(paper: &str) -> Vec<(String, String)> {
    let file: toml::Table = text(paper, "findings.toml").parse().unwrap();
    let mut sentences = Vec::new();
    for (kind, entries) in &file {
        for (index, entry) in entries.as_array().unwrap().iter().enumerate() {
            for key in ["title", "says", "need", "take", "because"] {
                if let Some(sentence) = entry.get(key).and_then(toml::Value::as_str) {
                    sentences.push((format!("{paper}: {kind}[{index}].{key}"), sentence.into()));
                }
            }
        }
    }
    sentences
}

/// The reasons on record of a paper's claims with their place.
fn reasons(paper: &str) -> Vec<(String, String)> {
    let file: toml::Table = text(paper, "claims.toml").parse().unwrap();
    let mut sentences = Vec::new();
    for claim in file["claim"].as_array().unwrap() {
        for (part, known) in
            claim.get("known").and_then(toml::Value::as_table).into_iter().flatten()
        {
            let because = known["because"].as_str().unwrap_or_default();
            sentences.push((format!("{} ({part})", claim["id"]), because.to_string()));
        }
    }
    sentences
}

fn record(paper: &str) -> Vec<Row> {
    results::from_csv(&text(paper, "record.csv")).unwrap()
}

/// What the experiments of a paper state: their sizes, kernels and thresholds.
fn experiments(paper: &str) -> String {
    let loaded = Paper::load(paper).unwrap();
    let mut all = text(paper, "experiments.toml") + &text(paper, "grids.toml");
    for claim in &loaded.claims {
        let note = claim.note.as_deref().unwrap_or_default();
        all += &format!(" {} {note} {} ", claim.says, claim.check.join(" "));
    }
    all.replace(['"', '{', '}', '[', ']', '@', '?', '&', ':', '=', '%', '(', ')', '/'], " ")
}

#[test]
fn every_number_in_a_finding_is_that_of_the_record() {
    let mut all = Vec::new();
    for paper in folder::names() {
        let (record, experiments) = (record(&paper), experiments(&paper));
        let stated = numbers(&experiments);
        for (place, sentence) in findings(&paper).into_iter().chain(reasons(&paper)) {
            let wrong = faults(&record, &stated, &sentence);
            all.extend(wrong.into_iter().map(|why| format!("{place}: {why}")));
        }
    }
    assert!(all.is_empty(), "{} numbers:\n{}", all.len(), all.join("\n"));
}

#[test]
fn a_changed_digit_is_caught() {
    let record = record("st-andrews");
    let of = |sentence: &str| faults(&record, &["2.2", "6.1"], sentence);
    let right = "in 6.1 a hog of 2.2 s is without a CPU for [4.2 %](100 * {A-CLM07-kernel.1})";
    assert_eq!(of(right), Vec::<String>::new());
    for (from, to, words) in [
        ("[4.2", "[4.3", "`4.3 %` is 4.19"),
        ("[4.2 %](100 * {A-CLM07-kernel.1})", "4.2 %", "has no source"),
        ("kernel.1}", "kernel.9}", "the record has no value of {A-CLM07-kernel.9}"),
        ("2.2 s", "2.3 s", "`2.3` is neither computed"),
        ("(100 * {A-CLM07-kernel.1})", "(given: )", "given without a source"),
        ("100 *", "100 +* ", "expected"),
    ] {
        let faults = of(&right.replace(from, to)).join("\n");
        assert!(faults.contains(words), "{to}: {faults}");
    }
}

#[test]
fn a_citation_is_not_shown() {
    let text = "a [b] of [4 %](100 * ({X-CLM01.1} - 1)) and [1] ([2](given: it))";
    let (shown, citations) = split(text);
    assert_eq!(shown, "a [b] of 4 % and [1] (2)");
    assert_eq!(citations[0], Citation { shown: "4 %", from: "100 * ({X-CLM01.1} - 1)" });
    assert_eq!(citations.len(), 2);
    assert_eq!((precision("3,400"), precision("10"), precision("4.5")), (50.0, 0.5, 0.05));
    assert_eq!(numbers("P-CLM07 of 3,200 in 6.18, 2.6.23 and T01 x4 (5)."), ["3,200", "6.18", "5"]);
}
