//! A page about all papers, in Markdown: how their claims stand, what surprised, and what to take for what.

use super::findings::Findings;
use super::standing::{Claim, Standing, checks_of, tally, told};
use crate::output::{Results, Row};
use std::fmt::Write;

/// The page.
pub fn summary(results: &Results, findings: &Findings) -> String {
    let claims = Claim::all(&results.rows);
    let mut page = format!("# Papers measured again\n\n`{}`, schedlab {}\n\n", results.command, results.version);
    page += &counts(&claims);
    let surprising: Vec<_> = findings.missed.iter().filter(|one| one.surprising).collect();
    if !surprising.is_empty() {
        page += "\n## What surprised\n\n";
        for one in surprising {
            let _ = writeln!(page, "- **{}.** {}{}", one.title, one.says, evidence(&results.rows, &one.claims));
        }
    }
    if !findings.advice.is_empty() {
        page += "\n## Which ready queue and which policy for what\n\n| need | take | because |\n|---|---|---|\n";
        for one in &findings.advice {
            let _ = writeln!(page, "| {} | {} | {}{} |", one.need, one.take, one.because, evidence(&results.rows, &one.claims));
        }
    }
    page
}

/// How many claims of each paper stand how.
fn counts(claims: &[Claim]) -> String {
    let standings: String = Standing::ALL.iter().map(|standing| format!(" {standing} |")).collect();
    let mut table = format!("| paper | claims |{standings}");
    table += "\n|---|---:|---:|---:|---:|---:|---:|\n";
    for (paper, all, standings) in tally(claims) {
        let counts: String = standings.iter().map(|count| format!(" {count} |")).collect();
        let _ = writeln!(table, "| {paper} | {all} |{counts}");
    }
    table
}

/// The first checks that it rests on.
fn evidence(rows: &[Row], claims: &[String]) -> String {
    const SHOWN: usize = 3;
    let told: Vec<String> = checks_of(rows, claims).into_iter().take(SHOWN).map(told).collect();
    if told.is_empty() { String::new() } else { format!(" *({})*", told.join("; ").replace('|', "\\|")) }
}
