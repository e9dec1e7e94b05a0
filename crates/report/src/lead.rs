//! The first section: the answer in a sentence for each place, and what it rests on in another.

use super::atlas::Chart;
use super::effects;
use super::tables::{escape, prose};
use results::figure::Figure;
use results::standing::{Claim, scores};
use results::{Results, Row, Verdict, World, counted};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The most candidates that the sentence names.
const NAMED: usize = 4;

/// The section. The first line of an answer is its sentence; an empty line parts two answers.
pub fn section(results: &Results, charts: &[Chart], figures: &[Figure]) -> String {
    let own = || without_answer(results, charts, figures);
    let mut html = String::from("<section id=answer><h2>Answer</h2>\n");
    for answer in results.answer.clone().unwrap_or_else(own).split("\n\n") {
        let mut lines = answer.lines();
        let first = lines.next().unwrap_or_default();
        let _ = writeln!(html, "<p class=answer>{}</p>", prose(first));
        for line in lines {
            let _ = match line.strip_prefix("  ") {
                Some(command) => {
                    writeln!(html, "<pre><code>{}</code></pre>", escape(command.trim()))
                }
                None => writeln!(html, "<p>{}</p>", prose(line)),
            };
        }
    }
    let rests = rests_on(results);
    let rests = if rests.is_empty() { rests } else { format!("<p class=note>{rests}</p>\n") };
    html + &rests + "</section>\n"
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

/// How each candidate stands against the baseline, those with the most gains first: of a sweep.
fn of_candidates(rows: &[&Row]) -> Option<String> {
    let baseline = rows.first()?.baseline.as_deref()?;
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for row in rows {
        let [all, better, worse] = counts.entry(&row.candidate).or_default();
        *all += 1;
        *better += usize::from(row.verdict == Some(Verdict::Better));
        *worse += usize::from(row.verdict == Some(Verdict::Worse));
    }
    let mut counts: Vec<(&str, [usize; 3])> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, [_, better, worse])| Reverse(better as i64 - worse as i64));
    let more = counts.len().saturating_sub(NAMED);
    let mut parts: Vec<String> = counts
        .iter()
        .take(NAMED)
        .map(|(name, [all, better, worse])| {
            let all = counted(*all, "number");
            let worse = if *worse == 0 { "none".to_string() } else { worse.to_string() };
            format!("`{name}` is better in {better} of {all} and worse in {worse}")
        })
        .collect();
    parts.extend((more > 0).then(|| format!("{} below", counted(more, "more candidate"))));
    Some(format!("Against `{baseline}`: {}.", parts.join("; ")))
}

/// The sentence of results that bring none.
fn without_answer(results: &Results, charts: &[Chart], figures: &[Figure]) -> String {
    if let Some(sentence) = of_candidates(&effects::main(results)) {
        return sentence;
    }
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
    let verdicts: Vec<Verdict> = results.rows.iter().filter_map(|row| row.verdict).collect();
    if !verdicts.is_empty() {
        let hold = verdicts.iter().filter(|verdict| **verdict == Verdict::Holds).count();
        return format!("{hold} of {} of printed tables hold.", counted(verdicts.len(), "check"));
    }
    if !figures.is_empty() {
        return format!("{}, measured again.", counted(figures.len(), "figure"));
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

    fn of(results: Results) -> String {
        section(&results, &[], &[])
    }

    #[test]
    fn the_first_line_is_the_answer_and_its_counts_are_those_of_the_rows() {
        let rows = vec![row(Verdict::Better), row(Verdict::Worse), row(Verdict::Worse)];
        let answer = "`<b>` would help.\nSwitch it on:\n  chrt -b <pid>\n".to_string();
        let html = of(Results::new(rows).answered(answer));
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
    fn answers_of_several_places_each_begin_with_their_sentence() {
        let answer = "a (sim, 1 CPU): none.\n\na (sim, 2 CPUs): `b` would help.\nHow sure.\n";
        let html = of(Results::new(Vec::new()).answered(answer.to_string()));
        assert_eq!(html.matches("<p class=answer>a (sim, ").count(), 2, "{html}");
        assert!(html.contains("<p>How sure.</p>"), "{html}");
    }

    #[test]
    fn without_an_answer_the_sentence_counts_by_candidate() {
        let rows = vec![row(Verdict::Better), row(Verdict::Worse), row(Verdict::Worse)];
        let html = of(Results::new(rows));
        let sentence = "Against <code>&lt;eevdf&gt;</code>: <code>fifo</code> is better in 1 of 3 \
                        numbers and worse in 2.";
        assert!(html.contains(sentence), "{html}");
    }

    #[test]
    fn without_a_comparison_the_page_says_so() {
        let html = of(Results::new(vec![Row::new(World::Sim, Metric::grr)]));
        assert!(html.contains("Nothing was compared: 1 number, without a verdict."), "{html}");
        assert!(!html.contains("It rests on"), "{html}");
        assert!(of(Results::new(Vec::new())).contains("There are no numbers here."));
    }
}
