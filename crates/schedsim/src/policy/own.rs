//! Policies of your own: a file each beside this one, and a line each below. `schedlab new policy NAME` writes both; docs/policies/your-own.md shows the rest.
//!
//! A policy's name is that of its file. It takes no options.

use super::catalog::{Choice, PolicyVisitor};

macro_rules! policies {
    ($($name:ident: $policy:ident, $summary:literal;)*) => {
        $(mod $name;)*

        /// One of them.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub enum Own {
            $($policy,)*
        }

        impl Own {
            /// All of them.
            pub const CHOICES: &[Choice] = &[$(Choice { name: stringify!($name), summary: $summary },)*];
            const ALL: &[Own] = &[$(Own::$policy,)*];

            /// Builds the policy for a machine of `cpus` CPUs and hands it to `visitor`.
            #[allow(unused_variables, reason = "there may be none yet")]
            pub fn visit<V: PolicyVisitor>(self, cpus: u16, visitor: V) -> V::Out {
                match self {
                    $(Own::$policy => visitor.visit($name::$policy::new(cpus)),)*
                }
            }
        }
    };
}

policies! {
    // name: Type, "what it does, in a line";
}

impl Own {
    /// The policy of this name.
    pub fn named(name: &str) -> Option<Own> {
        Own::CHOICES.iter().position(|choice| choice.name == name).map(|index| Own::ALL[index])
    }
}

/// What a new policy begins as.
#[cfg(test)]
mod template;

#[cfg(test)]
mod tests {
    use super::template::Template;
    use crate::checks::Checks;
    use crate::engine::{self, Options};
    use crate::policy::Policy;
    use crate::trace::Trace;
    use crate::workload::{Closed, Phase, Tasks};
    use crate::{Machine, Nanos, Time};

    #[test]
    fn the_template_is_a_policy_that_keeps_what_it_promises() {
        let phases = vec![Phase::repeat(50, vec![Phase::Run(Nanos::from_millis(3)), Phase::Yield, Phase::Sleep(Nanos::from_millis(2))])];
        let anywhere = Tasks { count: 5, ..Tasks::new("anywhere", phases.clone()) };
        let pinned = Tasks { affinity: Some(vec![1]), count: 2, ..Tasks::new("pinned", phases) };
        let workload = Closed { tasks: vec![anywhere, pinned], ..Closed::default() }.workload(2).expect("a workload");
        let machine = Machine::ideal(2);
        let mut checks = Checks::new(&workload, &machine, Template::new(2).promises());
        let outcome =
            engine::simulate(&workload, &machine, Template::new(2), Options { seed: 1, until: Time::NEVER }, Trace::new(vec![&mut checks]));
        assert_eq!(checks.finish(&outcome.expect("it ends")), []);
    }
}
