//! Results in rows, for people and for programs.

use crate::outcome::{Outcome, Verdict};
use crate::property::Property;
use crate::read::Vector;
use std::fmt::{self, Write as _};

/// How many vectors agreed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    agree: u32,
    /// Of these, those in which a claimed property was not tested.
    in_part: u32,
    differ: u32,
    broken: u32,
    refused: u32,
}

impl Tally {
    /// One more vector.
    pub fn count(&mut self, outcome: &Outcome) {
        self.in_part += u32::from(outcome.agrees() && !outcome.untested.is_empty());
        *match outcome.verdict {
            Verdict::Agree => &mut self.agree,
            Verdict::Refused(_) => &mut self.refused,
            Verdict::Differ(_) => &mut self.differ,
            Verdict::Broken(_) => &mut self.broken,
        } += 1;
    }

    /// Whether none differed or broke, and at least one agreed in all that it claims.
    pub fn passes(self) -> bool {
        self.differ == 0 && self.broken == 0 && self.agree > self.in_part
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let Tally { agree, in_part, differ, broken, refused } = self;
        write!(out, "{agree} agree")?;
        if *in_part > 0 {
            write!(out, " ({in_part} in part)")?;
        }
        write!(out, ", {differ} differ, {refused} refused")?;
        if *broken > 0 { write!(out, ", {broken} broken") } else { Ok(()) }
    }
}

/// One line for a vector that agrees; three for one that does not.
pub fn text(vector: &Vector, outcome: &Outcome) -> String {
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
    let untested = untested(outcome);
    if outcome.agrees() && !untested.is_empty() {
        let _ = write!(text, "; not tested: {}", untested.join(", "));
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
            for row in &at.rows {
                let _ = writeln!(text, "           {row}");
            }
        }
    }
    text
}

/// One object on a line, for programs.
pub fn json(vector: &Vector, outcome: &Outcome) -> String {
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
        "rows": difference.map(|at| &at.rows),
        "why": why,
        "tie": outcome.tie.is_some(),
        "events": outcome.events,
        "compared": compared,
        "untested": untested(outcome),
    });
    format!("{row}\n")
}

/// The names of the claimed properties of which nothing was compared.
fn untested(outcome: &Outcome) -> Vec<&'static str> {
    outcome.untested.iter().copied().map(Property::name).collect()
}

/// The verdict in a word.
fn verdict(outcome: &Outcome) -> &'static str {
    match outcome.verdict {
        Verdict::Agree => "agree",
        Verdict::Differ(_) => "differ",
        Verdict::Refused(_) => "refused",
        Verdict::Broken(_) => "broken",
    }
}
