//! What a gate says: whether numbers keep the rules against a stored result, for people, as JUnit
//! XML, as Markdown and as annotations of GitHub.

use std::fmt::Write;

/// What a gate says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gate {
    /// The file that the numbers are compared with.
    pub against: String,
    /// What differs between the two environments, where that is allowed.
    pub environment: Vec<String>,
    /// One for each rule and each number that it is about.
    pub findings: Vec<Finding>,
}

/// What one rule says of one number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The rule, as it was given.
    pub rule: String,
    /// The workload and where it ran, as in `yield:8 (vm:6.18, 1 CPU)`.
    pub case: String,
    /// The candidate.
    pub candidate: String,
    /// Whether the rule holds.
    pub outcome: Outcome,
    /// Both numbers and their difference, or why there is none.
    pub says: String,
}

/// Whether a rule holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// The stored result has no such number.
    Skipped,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Skipped => "skipped",
        }
    }
}

impl Gate {
    /// The findings with this outcome.
    pub fn of(&self, outcome: Outcome) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.outcome == outcome)
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.of(outcome).count()
    }

    /// `Gate against old.json: 1 of 3 failed`.
    pub fn headline(&self) -> String {
        let (failed, all) = (self.count(Outcome::Failed), self.findings.len());
        let skipped = match self.count(Outcome::Skipped) {
            0 => String::new(),
            count => format!(", {count} skipped"),
        };
        match failed {
            0 => format!("Gate against {}: all {} passed{skipped}", self.against, all),
            _ => format!("Gate against {}: {failed} of {all} failed{skipped}", self.against),
        }
    }

    /// For people: a line for each finding.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        for differs in &self.environment {
            let _ = writeln!(text, "  another environment: {differs}");
        }
        for Finding { rule, case, candidate, outcome, says } in &self.findings {
            let word = outcome.word();
            let _ = writeln!(text, "  {word:7} {case}, {candidate}: {rule}: {says}");
        }
        text
    }

    /// As JUnit XML: a test case for each finding.
    pub fn junit(&self) -> String {
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
            self.findings.len(),
            self.count(Outcome::Failed),
            self.count(Outcome::Skipped)
        );
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"schedlab\" {counts}>\n  \
             <testsuite name=\"against {}\" {counts}>\n",
            xml(&self.against)
        );
        for Finding { rule, case, candidate, outcome, says } in &self.findings {
            let name = format!("{candidate}: {rule}");
            let (case, name, says) = (xml(case), xml(&name), xml(says));
            let _ = writeln!(text, "    <testcase classname=\"{case}\" name=\"{name}\">");
            let _ = match outcome {
                Outcome::Passed => writeln!(text, "      <system-out>{says}</system-out>"),
                Outcome::Failed => {
                    writeln!(text, "      <failure type=\"regression\" message=\"{says}\"/>")
                }
                Outcome::Skipped => writeln!(text, "      <skipped message=\"{says}\"/>"),
            };
            text += "    </testcase>\n";
        }
        text + "  </testsuite>\n</testsuites>\n"
    }

    /// As Markdown, for the summary of a job: a table, the failures first.
    pub fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n", cell(&self.headline()));
        for differs in &self.environment {
            let _ = writeln!(text, "- another environment: {}", cell(differs));
        }
        if !self.environment.is_empty() {
            text += "\n";
        }
        text += "| | workload | candidate | rule | measured |\n|---|---|---|---|---|\n";
        for outcome in [Outcome::Failed, Outcome::Skipped, Outcome::Passed] {
            for Finding { rule, case, candidate, says, .. } in self.of(outcome) {
                let cells = [outcome.word(), case, candidate, rule, says].map(cell);
                let _ = writeln!(text, "| {} |", cells.join(" | "));
            }
        }
        text
    }

    /// As workflow commands of GitHub, which shows them beside the job: an error for each failure.
    pub fn annotations(&self) -> String {
        let mut text = String::new();
        for Finding { rule, case, candidate, says, .. } in self.of(Outcome::Failed) {
            let title = property(&format!("{candidate}: {rule}"));
            let _ = writeln!(text, "::error title={title}::{}", data(&format!("{case}: {says}")));
        }
        let _ = writeln!(text, "::notice title=schedlab::{}", data(&self.headline()));
        text
    }
}

/// `text` in an attribute or between tags. XML 1.0 has no way to write most control characters.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' => escaped += "&#10;",
            '\t' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => escaped.push(c),
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped
}

/// `text` in a cell of a table.
fn cell(text: &str) -> String {
    let is_special = |c: char| matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | '\\');
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => escaped += " ",
            c if is_special(c) => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// `text` as the message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The same as the value of one of its properties.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        let finding = |outcome, says: &str| Finding {
            rule: "wake_p99[a|b] > +1%".to_string(),
            case: "load (sim, 2 CPUs)".to_string(),
            candidate: "scx:./a -x \"<&>\"".to_string(),
            outcome,
            says: says.to_string(),
        };
        Gate {
            against: "old.json".to_string(),
            environment: Vec::new(),
            findings: vec![
                finding(Outcome::Passed, "1.00ms, as before"),
                finding(Outcome::Failed, "2.00ms, 100 % more\nthan \u{1b}before"),
                finding(Outcome::Skipped, "no such number before"),
            ],
        }
    }

    #[test]
    fn every_form_has_every_failure_and_escapes_what_it_must() {
        let gate = gate();
        let junit = gate.junit();
        assert_eq!(junit.matches("<testcase ").count(), 3);
        assert_eq!(
            junit.matches("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"").count(),
            2
        );
        assert!(
            junit.contains("name=\"scx:./a -x &quot;&lt;&amp;&gt;&quot;: wake_p99[a|b] &gt; +1%\"")
        );
        assert!(junit.contains("more&#10;than \u{fffd}before"), "{junit}");
        let markdown = gate.markdown();
        let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with("| ")).collect();
        assert!(rows.len() == 4 && rows[1].contains("FAILED"), "{markdown}");
        assert!(rows[1].contains("wake\\_p99\\[a\\|b]") && rows[1].contains("more than"));
        assert_eq!(
            gate.annotations().lines().next().unwrap_or_default(),
            "::error title=scx%3A./a -x \"<&>\"%3A wake_p99[a|b] > +1%25::load (sim, 2 CPUs): \
             2.00ms, 100 %25 more%0Athan \u{1b}before"
        );
        assert!(gate.text().starts_with("Gate against old.json: 1 of 3 failed, 1 skipped\n"));
    }
}
