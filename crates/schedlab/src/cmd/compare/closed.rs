//! `schedlab compare` of a closed workload: policies on several numbers of CPUs.

use super::{Compare, POLICIES};
use crate::Error;
use crate::experiment::{Cases, Comparison, Setup, Subject};
use crate::output::{Answer, Results};
use crate::progress;
use crate::results_directory::ResultsDirectory;
use crate::workload::ClosedWorkload;
use std::fmt::Write;

impl Compare {
    pub(super) fn closed(&self, workload: &ClosedWorkload) -> Result<Answer, Error> {
        if !self.load.is_empty() {
            return Err(Error::Usage(format!(
                "{} is a closed workload, which has the load that it has: leave --load out",
                workload.name()
            )));
        }
        self.workload.expect_no_parameters_of_closed()?;
        self.expect_no_added_load()?;
        let cpus = self.machine.cpus(&self.cpus, workload.cpus())?;
        let scripts = workload.scripts(cpus.iter().copied().min().unwrap_or(1))?;
        let (policies, baseline) = (self.policies(POLICIES)?, self.baseline("eevdf")?);
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let setup = Setup { repetition: self.repetition(), check: self.check, traces: directory.as_ref() };
        let machine = self.machine.of_closed(workload.cpus())?;
        let subject = Subject::of_closed(workload, &scripts, &machine, self.machine.mips);
        let bar = progress::bar("simulating", 0);
        let cases = Cases { baseline: &baseline, policies: &policies, cpus: &cpus };
        let comparison = Comparison::of_runs(subject, &cases, &setup, &bar);
        bar.finish_and_clear();
        let comparison = comparison?.at(self.machine.point()?);
        let results = Results::new(comparison.simulated_rows(workload.name(), self.common.seed));
        if let Some(directory) = directory {
            directory.write(&results, comparison.simulated_distributions(workload.name()))?;
            let bar = progress::bar("exporting", 0);
            directory.export_traces(&bar)?;
            bar.finish_and_clear();
            directory.finish()?;
        }
        let mut text = workload.headline();
        let _ = writeln!(text, "Machine: {}", self.machine.told_of_closed(&machine));
        text += &self.tables(&comparison, &cpus);
        Ok(Answer::new(results, text + "\n+ better  - worse  = the same; ± where above 1%\n"))
    }
}
