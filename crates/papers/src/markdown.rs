//! A page about all papers, in Markdown: how their claims stand, what surprised, and what to take
//! for what.

use results::findings::Findings;
use results::standing::{Claim, Score, checks_of, scores, sentence};
use results::{Results, Row};
use std::fmt::Write;

/// The page.
pub fn summary(results: &Results, findings: &Findings) -> String {
    let claims = Claim::all(&results.rows);
    let mut page = format!(
        "# Papers measured again\n\n`{}`, schedlab {}\n\n",
        results.command, results.version
    );
    page += &counts(&claims);
    let surprising: Vec<_> = findings.missed.iter().filter(|one| one.surprising).collect();
    if !surprising.is_empty() {
        page += "\n## What surprised\n\n";
        for one in surprising {
            let _ = writeln!(
                page,
                "- **{}.** {}{}",
                one.title,
                one.says,
                evidence(&results.rows, &one.claims)
            );
        }
    }
    if !findings.advice.is_empty() {
        page += "\n## Which ready queue and which policy for what\n\n| need | take | because \
                 |\n|---|---|---|\n";
        for one in &findings.advice {
            let _ = writeln!(
                page,
                "| {} | {} | {}{} |",
                one.need,
                one.take,
                one.because,
                evidence(&results.rows, &one.claims)
            );
        }
    }
    page
}

/// How many claims of each paper stand how.
fn counts(claims: &[Claim]) -> String {
    let titles = Score::titles();
    let mut table =
        format!("| paper | {} |\n|---|{}\n", titles.join(" | "), "---:|".repeat(titles.len()));
    for score in scores(claims) {
        let counts: String = score.numbers().iter().map(|count| format!(" {count} |")).collect();
        let _ = writeln!(table, "| {} |{counts}", score.paper);
    }
    table
}

/// The first checks that it rests on.
fn evidence(rows: &[Row], claims: &[String]) -> String {
    const SHOWN: usize = 3;
    let sentences: Vec<String> =
        checks_of(rows, claims).into_iter().take(SHOWN).map(sentence).collect();
    if sentences.is_empty() {
        String::new()
    } else {
        format!(" *({})*", sentences.join("; ").replace('|', "\\|"))
    }
}
