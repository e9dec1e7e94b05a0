//! What came of a vector.

use crate::property::Property;

/// The result of playing one vector to one subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Whether they agree.
    pub verdict: Verdict,
    /// How many events the subject received.
    pub events: u64,
    /// How many values were compared, or bounds checked, per property (by [`Property::ALL`]).
    pub compared: [u64; Property::ALL.len()],
    /// The line of a history at which it ended early, as rounding could decide there.
    pub tie: Option<usize>,
    /// The lines at which a wish to pick was not compared, as rounding could decide there.
    pub close: Vec<usize>,
    /// The claimed properties of which nothing was compared.
    pub untested: Vec<Property>,
}

/// Whether a subject and a vector agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// In all that was compared.
    Agree,
    /// Here not.
    Differ(Difference),
    /// The subject says that it cannot do this.
    Refused(String),
    /// The subject has ended, is silent, or says what is no answer.
    Broken(String),
}

/// The first difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line of the file: of the event in a history, of the task in a scenario.
    pub line: usize,
    /// The event, as the subject received it.
    pub event: String,
    /// The property that does not hold.
    pub property: Property,
    /// What should be, in words.
    pub expected: String,
    /// What came, in words.
    pub got: String,
    /// Of a history: each task in the queue, as the kernel has it before and now, and the subject
    /// now; in the kernel's virtual time.
    pub rows: Vec<String>,
}

impl Outcome {
    /// Nothing compared yet.
    pub(crate) fn new() -> Outcome {
        Outcome {
            verdict: Verdict::Agree,
            events: 0,
            compared: [0; 16],
            tie: None,
            close: Vec::new(),
            untested: Vec::new(),
        }
    }

    /// Whether the subject agrees.
    pub fn agrees(&self) -> bool {
        self.verdict == Verdict::Agree
    }

    /// The difference, if there is one.
    pub fn difference(&self) -> Option<&Difference> {
        match &self.verdict {
            Verdict::Differ(difference) => Some(difference),
            _ => None,
        }
    }

    /// One comparison of `property`.
    pub(crate) fn count(&mut self, property: Property) {
        self.compared[property as usize] += 1;
    }
}
