//! All numbers of a paper, from every source; only this module knows the sources.

use super::binding::Binding;
use super::cache::Cache;
use super::claim::Claim;
use super::commands::ensembles::Again;
use super::evidence::{Evidence, Replicates};
use super::{Paper, Settings, commands, grids, queues};
use program::Error;
use results::{Metric, Row};
use std::collections::BTreeMap;

/// The measurements of a paper, by source.
pub struct Measurements<'a> {
    /// From the cost atlas.
    pub queues: queues::Measured<'a>,
    /// From simulations.
    pub grids: grids::Measured<'a>,
    /// From commands.
    pub commands: commands::Measured<'a>,
    paper: &'a Paper,
}

impl<'a> Measurements<'a> {
    /// No measurements yet.
    ///
    /// # Errors
    /// If a regime has an unknown parameter.
    pub fn new(paper: &'a Paper, settings: &'a Settings) -> Result<Self, Error> {
        let (queues, grids) = (
            queues::Measured::new(paper, &settings.queues),
            grids::Measured::new(&paper.grids, settings.grids)?,
        );
        let commands = commands::Measured::new(
            &paper.experiments.command,
            &paper.folder,
            &paper.ensembles,
            settings.commands,
        );
        Ok(Measurements { queues, grids, commands, paper })
    }

    /// Adds what these series need, in each of the regimes.
    ///
    /// # Errors
    /// If the paper has no such series.
    pub fn want(
        &mut self,
        bindings: &'a BTreeMap<String, Binding>,
        regimes: &[Option<&str>],
    ) -> Result<(), Error> {
        for binding in bindings.values() {
            match binding {
                Binding::Queue(binding) => {
                    self.queues.want_binding(binding).map_err(Error::Internal)?
                }
                Binding::Grid(binding) => {
                    regimes.iter().flatten().for_each(|regime| self.grids.want(binding, regime))
                }
                Binding::Command(binding) => self.commands.want(binding),
            }
        }
        Ok(())
    }

    /// Measures everything that is needed and not cached.
    ///
    /// # Errors
    /// If a simulation or a command fails, or the cache cannot be written.
    pub fn measure(&mut self, cache: &Cache) -> Result<(), Error> {
        self.queues.count(cache)?;
        self.grids.simulate(cache)?;
        self.commands.run(cache)
    }

    /// The numbers of these series in a regime.
    pub fn evidence<'e>(
        &self,
        bindings: &'e BTreeMap<String, Binding>,
        regime: Option<&'e str>,
    ) -> Evidence<'e> {
        let mut evidence = Evidence {
            curves: BTreeMap::new(),
            printed: BTreeMap::new(),
            replicates: Replicates::Each,
            regime,
            row: self.row(bindings),
        };
        for (name, binding) in bindings {
            match binding {
                Binding::Queue(binding) => {
                    evidence.curves.insert(name, self.queues.binding(binding));
                    evidence
                        .printed
                        .extend(self.queues.printed(binding).map(|series| (name.as_str(), series)));
                }
                Binding::Grid(binding) => {
                    evidence
                        .curves
                        .insert(name, self.grids.curves(binding, regime.unwrap_or_default()));
                    evidence.replicates = Replicates::Mean;
                }
                Binding::Command(binding) => {
                    evidence.curves.insert(name, self.commands.curves(binding));
                    evidence.replicates = Replicates::Mean;
                }
            }
        }
        evidence
    }

    /// The rows of commands behind these series, each once; and those of ensembles in guests, for
    /// the record.
    pub fn rows_of<'b>(&self, bindings: impl Iterator<Item = &'b Binding>) -> [Vec<Row>; 2] {
        let mut all = [Vec::new(), Vec::new()];
        for binding in bindings {
            let Binding::Command(binding) = binding else { continue };
            let own = [self.commands.rows_of(binding), self.commands.folded(binding)];
            for (rows, own) in all.iter_mut().zip(own) {
                let new: Vec<Row> = own.into_iter().filter(|row| !rows.contains(row)).collect();
                rows.extend(new);
            }
        }
        all
    }

    /// What became of the ensembles on record, in sentences, and where the same guests did not give
    /// the same digits.
    pub fn again(&self) -> (Vec<String>, Vec<String>) {
        let (mut same, mut left) = (0, BTreeMap::new());
        let (mut others, mut differing) = (Vec::new(), Vec::new());
        for (run, again) in self.commands.again() {
            match again {
                Again::Same => same += 1,
                Again::Left(why) => *left.entry(why.as_str()).or_default() += 1,
                Again::OtherGuests(why) => {
                    others.push(format!("the guests are not those on record: {why}: `{run}`"));
                }
                Again::Differs(why) => {
                    differing.push(format!("not the same again: {why}: `{run}`"))
                }
            }
        }
        let count = (same > 0).then(|| {
            let ensembles = results::counted(same, "ensemble");
            format!("{ensembles} on record: the first member of each gave the same digits again")
        });
        let left = left.into_iter().map(|(why, ensembles)| {
            let ensembles = results::counted(ensembles, "ensemble");
            format!("{ensembles} on record, not measured again without --every-member: {why}")
        });
        (count.into_iter().chain(left).chain(others).collect(), differing)
    }

    fn row(&self, bindings: &BTreeMap<String, Binding>) -> Row {
        let run: Vec<&commands::Binding> =
            bindings
                .values()
                .filter_map(|binding| {
                    if let Binding::Command(binding) = binding { Some(binding) } else { None }
                })
                .collect();
        let of_paper = |row: Row| row.at("paper", &self.paper.name);
        if !run.is_empty() {
            return of_paper(self.commands.row(&run));
        }
        let simulated: Vec<&grids::Binding> = bindings
            .values()
            .filter_map(
                |binding| if let Binding::Grid(binding) = binding { Some(binding) } else { None },
            )
            .collect();
        let queue = |binding: &Binding| {
            if let Binding::Queue(binding) = binding { self.queues.queue(binding) } else { None }
        };
        let mut queues: Vec<String> = bindings.values().filter_map(queue).collect();
        if !simulated.is_empty() || (queues.is_empty() && self.paper.experiments.table.is_empty()) {
            return of_paper(self.grids.row(&simulated));
        }
        queues.sort();
        queues.dedup();
        self.queues.row("", &queues.join(" | "), Metric::check)
    }
}

impl Claim {
    /// The paper's regimes in which a claim is tested; a single entry without a regime if no number
    /// comes from simulations.
    pub fn regimes<'p>(&self, paper: &'p Paper) -> Vec<Option<&'p str>> {
        if !self.bindings.values().any(|binding| matches!(binding, Binding::Grid(_))) {
            return vec![None];
        }
        paper
            .grids
            .regimes()
            .iter()
            .map(|regime| regime.name.as_str())
            .filter(|regime| self.is_about(regime))
            .map(Some)
            .collect()
    }
}
