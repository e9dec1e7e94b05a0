//! `schedlab list`: what there is.

use crate::Error;
use crate::output::{Align, Table, print};
use clap::{Args, ValueEnum};
use schedsim::policy::{OPTIONS, policies};

/// Lists what there is to choose from.
#[derive(Args, Debug)]
pub struct List {
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
                let mut table = Table::new([("policy", Align::Left), ("what it does", Align::Left)]);
                policies().into_iter().for_each(|(name, what)| table.row([name, what]));
                let mut options = Table::new([
                    ("option", Align::Left),
                    ("what it sets; written behind the name, as in take:multilist2/quantum=1ms", Align::Left),
                ]);
                OPTIONS.into_iter().for_each(|(name, what)| options.row([name, what]));
                print(&format!("{table}\n{options}"))
            }
        }
    }
}
