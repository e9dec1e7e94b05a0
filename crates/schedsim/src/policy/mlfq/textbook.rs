//! The textbook's rules: down a level with every used quantum, and a periodic boost of all tasks to
//! the top.
//!
//! A job starts at the top. Once it has used a quantum on a level, in one run or in several, it
//! goes down one; at the bottom it stays. After each `period` all jobs return to the top. So short
//! and interactive jobs run before long ones, without a hint which is which. Right for learning
//! what feedback does. Bad where many jobs are new or awake at once: those at the bottom starve
//! until the boost. After a boost of all jobs interactive ones wait behind all hogs for a round.
//!
//! Source: R. & A. Arpaci-Dusseau, *Operating Systems: Three Easy Pieces*, chapter 8, rules 1 to 5;
//! F. Corbató et al. 1962, "An Experimental Time-Sharing System".
//!
//! Deviations: quanta are equally long on all levels (the book's 8.5 has longer ones further down).
//! Priorities of tasks are ignored, as the book's jobs have none.

use super::{Feedback, Rules, Standing};
use crate::Nanos;
use crate::policy::TaskView;
use crate::policy::descriptor::{Descriptor, Given, Make};
use crate::policy::options::OptionSpec;

/// The textbook's scheduler.
pub type Textbook = Feedback<Book>;

/// Parameters of [`Textbook`]: its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Book {
    /// The number of levels.
    pub levels: u16,
    /// The run time on a level before a job goes down.
    pub quantum: Nanos,
    /// The period of the boost.
    pub period: Nanos,
}

impl Default for Book {
    fn default() -> Self {
        Book { levels: 3, quantum: Nanos::from_millis(10), period: Nanos::from_millis(1000) }
    }
}

impl Textbook {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, rules: Book) -> Textbook {
        Feedback::with_rules(rules, cpus)
    }
}

impl Rules for Book {
    fn admit(&self, _task: &TaskView) -> Standing {
        Standing { base: 0, level: 0, quantum: self.quantum, left: self.quantum, is_rescued: false }
    }

    fn wakes(&self, _standing: &mut Standing) {}

    fn quantum_over(&self, standing: &mut Standing) {
        standing.left = standing.quantum;
        standing.level = (standing.level + 1).min(self.levels - 1);
    }

    fn period(&self) -> Nanos {
        self.period
    }

    fn review(&self, standing: &mut Standing, _waited: Option<Nanos>) -> bool {
        let goes_up = standing.level > 0;
        if goes_up {
            (standing.level, standing.left) = (0, standing.quantum);
        }
        goes_up
    }
}

/// The textbook's scheduler.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "mlfq-textbook",
    summary: "the textbook's feedback queue: down a level with every quantum, all tasks to the \
              top now and then",
    source: "Arpaci-Dusseau, Operating Systems: Three Easy Pieces, chapter 8; Corbató et al. 1962",
    options: &[
        OptionSpec::count("levels", 1, 140, "levels", "how many levels there are").by_default("3"),
        OptionSpec::duration("quantum", "how long a task runs on a level before it goes down")
            .by_default("10ms"),
        OptionSpec::duration("period", "how often all tasks go to the top").by_default("1s"),
    ],
    structure: Some("priority"),
    scheduler: &Make(|given| Textbook::new(given.cpus(), Book::from(given))),
};

impl From<&Given<'_>> for Book {
    fn from(given: &Given) -> Book {
        Book {
            levels: given.count("levels"),
            quantum: given.duration("quantum"),
            period: given.duration("period"),
        }
    }
}
