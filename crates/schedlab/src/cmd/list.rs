//! `schedlab list`: what there is.

use crate::Error;
use crate::output::{Align, Table, print};
use clap::{Args, ValueEnum};
use schedsim::policy::{Choice, options, orders, schedulers, topologies};

/// Lists what there is to choose from.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  schedlab list policies")]
pub struct List {
    /// Of what
    what: What,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum What {
    /// Scheduling policies and their options.
    Policies,
}

impl List {
    pub fn run(self) -> Result<(), Error> {
        match self.what {
            What::Policies => {
                let table = |heading: &str, choices: &mut dyn Iterator<Item = Choice>| {
                    let mut table = Table::new([(heading, Align::Left), ("", Align::Left)]);
                    choices.for_each(|choice| table.row([choice.name, choice.summary]));
                    table
                };
                print(&format!(
                    "A policy is an order under a topology, named topology:order as in take:multilist2, or a whole scheduler.\n\
                     Options follow behind slashes, as in take:multilist2/quantum=1ms/levels=4.\n\n{}\n{}\n{}\n{}",
                    table("topology", &mut topologies()),
                    table("order", &mut orders()),
                    table("scheduler", &mut schedulers()),
                    table("option", &mut options())
                ))
            }
        }
    }
}
