//! The properties that vectors test. `README.md` says what each demands, and its source.

use serde::{Deserialize, Serialize};

/// What must be true. Its name in a vector is in kebab case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Virtual run time grows by `ran × 1024 / weight`.
    Charge,
    /// The lags, by weight, sum to 0.
    Mean,
    /// Eligible is who has lag ≥ 0.
    Eligible,
    /// A request is due at `vruntime + slice × 1024 / weight`.
    Deadline,
    /// The eligible task with the earliest deadline runs.
    Pick,
    /// A task that joins keeps its lag.
    Place,
    /// A new task begins with half a request.
    New,
    /// A task that sleeps while it is not eligible stays in the queue.
    Delay,
    /// When a wakeup preempts.
    Preempt,
    /// A tick ends a slice that is over.
    Tick,
    /// What a yield costs.
    Yield,
    /// A new weight keeps the lag in CPU time.
    Weight,
    /// A request of another length.
    Slice,
    /// No idling, and no sleeper runs, while a task is ready.
    Conserve,
    /// The distance from the ideal service is bounded.
    LagBound,
    /// Over a long time each task gets its weight's share.
    Share,
}

impl Property {
    /// All of them, in the order of `README.md`.
    pub const ALL: [Property; 16] = [
        Property::Charge,
        Property::Mean,
        Property::Eligible,
        Property::Deadline,
        Property::Pick,
        Property::Place,
        Property::New,
        Property::Delay,
        Property::Preempt,
        Property::Tick,
        Property::Yield,
        Property::Weight,
        Property::Slice,
        Property::Conserve,
        Property::LagBound,
        Property::Share,
    ];

    /// Its name in a vector and on the command line.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// What the reference does wrong with this fault (`--fault NAME`).
    pub fn fault(self) -> &'static str {
        self.row().1
    }

    /// The property of this name.
    pub fn named(name: &str) -> Option<Property> {
        Property::ALL.into_iter().find(|property| property.name() == name)
    }

    fn row(self) -> (&'static str, &'static str) {
        match self {
            Property::Charge => ("charge", "charges CPU time without regard to weight"),
            Property::Mean => ("mean", "averages virtual run times without weights"),
            Property::Eligible => ("eligible", "holds every task to be eligible"),
            Property::Deadline => ("deadline", "renews the deadline at each charge"),
            Property::Pick => ("pick", "picks by deadline alone"),
            Property::Place => ("place", "forgets the lag of a sleeper"),
            Property::New => ("new", "gives a new task a whole request"),
            Property::Delay => ("delay", "removes each sleeper at once"),
            Property::Preempt => ("preempt", "never preempts at a wakeup"),
            Property::Tick => ("tick", "never ends a slice at a tick"),
            Property::Yield => ("yield", "ignores yields"),
            Property::Weight => ("weight", "changes a weight and neither lag nor deadline"),
            Property::Slice => ("slice", "gives each task the default request"),
            Property::Conserve => ("conserve", "idles at each eighth pick"),
            Property::LagBound => ("lag-bound", "makes each request four times as long"),
            Property::Share => ("share", "charges tasks of odd numbers half"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_vectors() {
        for (place, property) in Property::ALL.into_iter().enumerate() {
            let json = serde_json::to_string(&property).unwrap();
            assert_eq!(json, format!("\"{}\"", property.name()));
            assert_eq!(Property::named(property.name()), Some(property));
            assert_eq!(property as usize, place);
        }
    }
}
