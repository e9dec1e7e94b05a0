//! The first section: the answer in a sentence, and what it rests on in another.

use super::atlas::Chart;
use super::effects;
use super::tables::{escape, prose};
use results::standing::{Claim, scores};
use results::{Results, Verdict, World, counted};
use std::collections::BTreeSet;

/// The section; the first line of an answer is its sentence.
pub fn section(results: &Results, charts: &[Chart]) -> String {
    let (first, rest) = match &results.answer {
        Some(answer) => {
            let mut lines = answer.lines();
            let first = lines.next().unwrap_or_default().to_string();
            (first, lines.map(str::to_string).collect())
        }
        None => (without_comparison(results, charts), Vec::new()),
    };
    let rest: String = rest
        .iter()
        .map(|line: &String| match line.strip_prefix("  ") {
            Some(command) => format!("<pre><code>{}</code></pre>\n", escape(command.trim())),
            None => format!("<p>{}</p>\n", prose(line)),
        })
        .collect();
    let rests = rests_on(results);
    let rests = if rests.is_empty() { rests } else { format!("<p class=note>{rests}</p>\n") };
    format!(
        "<section id=answer><h2>Answer</h2>\n<p class=answer>{}</p>\n{rest}{rests}</section>\n",
        prose(&first)
    )
}

/// What the answer rests on: runs, worlds and verdicts.
fn rests_on(results: &Results) -> String {
    let rows = effects::main(results);
    if rows.is_empty() {
        return String::new();
    }
    let compared = || rows.iter().copied();
    let candidates: BTreeSet<&str> = compared().map(|row| row.candidate.as_str()).collect();
    let baselines: BTreeSet<&str> = compared().filter_map(|row| row.baseline.as_deref()).collect();
    let mut worlds: Vec<&str> = Vec::new();
    for row in compared() {
        let word = match &row.world {
            World::Sim => "simulated",
            World::Host => "measured on a real machine",
            World::Vm { .. } => "measured in a virtual machine",
            _ => "measured",
        };
        if !worlds.contains(&word) {
            worlds.push(word);
        }
    }
    let runs = compared().map(|row| row.runs).max().unwrap_or_default();
    let count = |verdict| compared().filter(|row| row.verdict == Some(verdict)).count();
    format!(
        "It rests on {} with up to {} each against {}, {}: of {}, {} better, {} worse, {} \
         equivalent, {} undecided.",
        counted(candidates.len(), "candidate"),
        counted(runs as usize, "run"),
        escape(&baselines.into_iter().collect::<Vec<_>>().join(" and ")),
        worlds.join(" and "),
        counted(rows.len(), "number"),
        count(Verdict::Better),
        count(Verdict::Worse),
        count(Verdict::Equivalent),
        count(Verdict::Undecided)
    )
}

/// The sentence of results without a comparison.
fn without_comparison(results: &Results, charts: &[Chart]) -> String {
    let claims = Claim::all(&results.rows);
    if let Some(score) = scores(&claims).last().filter(|score| score.claims > 0) {
        let columns = results::standing::Score::titles();
        let numbers = score.numbers();
        let parts: Vec<String> =
            numbers.iter().zip(columns).skip(1).map(|(n, title)| format!("{n} {title}")).collect();
        return format!("{}: {}.", counted(claims.len(), "claim"), parts.join(", "));
    }
    if let Some(chart) = charts.first() {
        return chart.sentence();
    }
    match results.rows.len() {
        0 => "There are no numbers here.".to_string(),
        rows => format!("Nothing was compared: {}, without a verdict.", counted(rows, "number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Metric, Row};

    fn row(verdict: Verdict) -> Row {
        Row {
            candidate: "fifo".to_string(),
            baseline: Some("<eevdf>".to_string()),
            verdict: Some(verdict),
            runs: 16,
            ..Row::new(World::Sim, Metric::makespan_ns)
        }
    }

    #[test]
    fn the_first_line_is_the_answer_and_its_counts_are_those_of_the_rows() {
        let rows = vec![row(Verdict::Better), row(Verdict::Worse), row(Verdict::Worse)];
        let answer = "`<b>` would help.\nSwitch it on:\n  chrt -b <pid>\n".to_string();
        let html = section(&Results::new(rows).answered(answer), &[]);
        for words in [
            "<p class=answer><code>&lt;b&gt;</code> would help.</p>",
            "<pre><code>chrt -b &lt;pid&gt;</code></pre>",
            "1 candidate with up to 16 runs each against &lt;eevdf&gt;, simulated: of 3 numbers, 1 \
             better, 2 worse, 0 equivalent, 0 undecided.",
        ] {
            assert!(html.contains(words), "{words}: {html}");
        }
    }

    #[test]
    fn without_a_comparison_the_page_says_so() {
        let html = section(&Results::new(vec![Row::new(World::Sim, Metric::grr)]), &[]);
        assert!(html.contains("Nothing was compared: 1 number, without a verdict."), "{html}");
        assert!(!html.contains("It rests on"), "{html}");
        assert!(section(&Results::new(Vec::new()), &[]).contains("There are no numbers here."));
    }
}
