//! The first line of a vector.

use crate::format::{MAX_SPAN, MAX_TIME, within};
use crate::property::Property;
use serde::Deserialize;

/// The first line of a vector.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the format: 1.
    pub format: u32,
    /// Its name.
    pub name: String,
    /// What the other lines are.
    pub kind: Kind,
    /// Whose behaviour it is.
    pub claims: String,
    /// What it tests.
    pub properties: Vec<Property>,
    /// Where it is from.
    pub source: String,
    /// By how many ns a virtual time may differ; in a scenario, the CPU time of a share.
    #[serde(default)]
    pub tolerance: i64,
    /// Of a scenario: when it ends, in ns.
    pub until: Option<i64>,
    /// Of a scenario: the tick's period, in ns.
    pub tick: Option<i64>,
    /// Of a scenario: the default request, in ns.
    pub slice: Option<i64>,
    /// Of a canary: where a subject that agreed before the change must differ.
    pub canary: Option<Changed>,
}

/// Where a canary was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    /// The line of the file.
    pub line: usize,
    /// The property that the changed expectation belongs to.
    pub property: Property,
}

/// What the lines after the header are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Events, and what a kernel did.
    History,
    /// Tasks with programs.
    Scenario,
}

impl Header {
    /// Whether it is of a history that has no state to compare: its decisions are judged.
    pub fn is_judged(&self) -> bool {
        let bounds = [Property::LagBound, Property::Share];
        self.kind == Kind::History && self.properties.iter().any(|name| bounds.contains(name))
    }

    /// Whether it makes sense. The error is a sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.format != 1 {
            return Err(format!("format {} is unknown; this program reads format 1", self.format));
        }
        for (name, text) in
            [("name", &self.name), ("claims", &self.claims), ("source", &self.source)]
        {
            if text.is_empty() || text.len() > 1000 || text.contains(char::is_control) {
                return Err(format!("`{name}` is no plain text of 1 to 1000 bytes; give one"));
            }
        }
        within("tolerance", self.tolerance, 0, MAX_SPAN)?;
        if self.properties.is_empty() {
            return Err("`properties` is empty; say what the vector tests".into());
        }
        let bounds = [Property::LagBound, Property::Share];
        let members = [("until", self.until), ("tick", self.tick), ("slice", self.slice)];
        match self.kind {
            Kind::History => {
                let judged = [Property::Conserve, Property::LagBound, Property::Share];
                let other = self.properties.iter().find(|name| !judged.contains(name));
                if let (true, Some(other)) = (self.is_judged(), other) {
                    let (bound, other) = (bounds.map(Property::name).join("` and `"), other.name());
                    return Err(format!(
                        "`{bound}` judge decisions alone, `{other}` needs a subject; claim one of \
                         both"
                    ));
                }
                match members.iter().find(|(_, value)| value.is_some()) {
                    Some((name, _)) => {
                        Err(format!("`{name}` is of scenarios; a history has `reset`"))
                    }
                    None => Ok(()),
                }
            }
            Kind::Scenario => {
                for ((name, value), most) in members.into_iter().zip([MAX_TIME, MAX_SPAN, MAX_SPAN])
                {
                    let value =
                        value.ok_or_else(|| format!("`{name}` is missing; a scenario needs it"))?;
                    within(name, value, 1, most)?;
                }
                let tested = [
                    Property::Charge,
                    Property::Mean,
                    Property::Eligible,
                    Property::Deadline,
                    Property::Pick,
                    Property::Conserve,
                    Property::LagBound,
                    Property::Share,
                ];
                match self.properties.iter().find(|name| !tested.contains(name)) {
                    Some(name) => {
                        Err(format!("a scenario cannot test `{}`; use a history", name.name()))
                    }
                    None => Ok(()),
                }
            }
        }
    }
}
