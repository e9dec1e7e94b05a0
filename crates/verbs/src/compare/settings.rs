//! Settings that a Linux user can make, as candidates of a comparison.

use super::super::programs::parse_percent;
use clap::Args;
use program::Error;
use std::str::FromStr;
use std::sync::Arc;
use worlds::setting::{Deployment, Focus};
use worlds::{Candidate, Program, setting};

/// The settings, and the program of interest.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of settings")]
pub struct SettingArguments {
    /// A candidate: the baseline with a setting for the tasks of a program, as in 'xz: batch',
    /// 'redis-server: nice=-5' or '*: slice=1ms'; may be given several times
    ///
    /// Settings: batch, idle, other, fifo=1…99, rr=1…99, nice=-20…19, slice=DURATION, cpus=LIST, weight=1…10000.
    /// Separate several settings with commas, several programs with semicolons
    #[arg(long, value_name = "COMM: SETTING", value_parser = Deployment::from_str)]
    apply: Vec<Deployment>,
    /// Rank the candidates by their effect on this program
    #[arg(long, value_name = "COMM")]
    focus: Option<String>,
    /// With --focus: the largest loss of each other program
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = parse_percent,
          requires = "focus")]
    others_lose: f64,
    /// Try every single setting of a bounded grid: which helps the program of --focus most?
    #[arg(long, requires = "focus", conflicts_with = "apply")]
    search: bool,
}

impl SettingArguments {
    /// The names of the candidates in rows.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.apply.iter().map(ToString::to_string)
    }

    /// Whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.apply.is_empty() && !self.search
    }

    /// The program of interest, if there is one; all `programs` must have it.
    ///
    /// # Errors
    /// [`Error::Usage`] if one of them does not have it.
    pub fn focus(&self, programs: &[Program]) -> Result<Option<Focus>, Error> {
        let Some(focus) = &self.focus else { return Ok(None) };
        for program in programs {
            let (names, workload) = (program.programs(), program.name());
            if names.is_empty() {
                return Err(Error::Usage(format!(
                    "--focus {focus}: the tasks of {workload} have no names: leave --focus out"
                )));
            }
            if !names.contains(focus) {
                return Err(setting::unknown("--focus", &workload, focus, &names));
            }
        }
        Ok(Some(Focus { program: focus.clone(), others_lose: self.others_lose }))
    }

    /// The candidates for `programs` on the first of `cpus`.
    ///
    /// # Errors
    /// [`Error::Usage`] if a search is not possible.
    pub fn candidates<'c>(
        &self,
        programs: &[Program],
        cpus: &[u16],
    ) -> Result<Vec<Candidate<'c>>, Error> {
        let mut all: Vec<Deployment> = self.apply.clone();
        if let Some(focus) = self.focus.as_ref().filter(|_| self.search) {
            let [program] = programs else {
                return Err(Error::Usage("--search takes exactly one workload".to_string()));
            };
            let name = program.name();
            let subject = program.subject(&name).ok_or_else(|| {
                Error::Usage(format!("--search: the tasks of {name} have no names"))
            })?;
            let fewest = cpus.iter().copied().min().unwrap_or(subject.machine.cpus);
            all = setting::single(subject.workload, subject.beside, fewest, focus);
        }
        Ok(all.into_iter().map(|deployment| Candidate::Applied(Arc::new(deployment))).collect())
    }
}
