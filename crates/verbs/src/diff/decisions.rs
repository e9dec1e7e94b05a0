//! `schedlab diff --decisions`: compares the simulated scheduler with the real one.

use super::Diff;
use crate::PolicyName;
use formats::workload::Workload;
use laboratory::agreement::Agreement;
use program::Error;
use results::Answer;
use schedlab_runner::class::Class;
use schedsim::Machine;
use worlds::guest::{GuestSettings, GuestWorld};
use worlds::load::Closed;
use worlds::{Candidate, Program, Trial, World};

impl Diff {
    pub(super) fn held_against_kernels(&self) -> Result<Answer, Error> {
        let programs = self
            .subjects
            .iter()
            .map(|argument| self.program(argument))
            .collect::<Result<Vec<Program>, Error>>()?;
        let worlds: Vec<GuestWorld> = self
            .guests
            .settings(None, None, None, None)?
            .into_iter()
            .map(|settings| GuestWorld::new(GuestSettings { witness: true, ..settings }))
            .collect();
        let mut trials = Vec::new();
        for candidate in self.candidates()? {
            for program in &programs {
                let trial =
                    Trial { program, candidate: candidate.clone(), cpus: self.cpus.unwrap_or(1) };
                worlds.iter().try_for_each(|world| world.admit(&trial))?;
                trials.push(trial);
            }
        }
        let members = self.ensemble.unwrap_or(1);
        let (seed, check, output) = (self.seed, self.check, self.output.clone());
        let answer = Agreement {
            worlds,
            programs: &programs,
            members,
            trials,
            seed,
            check,
            explain: self.explain,
            output,
        }
        .run()?;
        crate::output::reported(answer, self.output.as_deref())
    }

    fn candidates(&self) -> Result<Vec<Candidate<'static>>, Error> {
        let of = |name: &PolicyName| {
            name.candidate().ok_or_else(|| {
                Error::Usage(
                    "`all` and `classic` are simulated policies; name the policies".to_string(),
                )
            })
        };
        if self.policy.is_empty() {
            Ok(vec![Candidate::Class(Class::Other)])
        } else {
            self.policy.iter().map(of).collect()
        }
    }

    /// A workload of tasks that real system calls perform.
    fn program(&self, argument: &std::ffi::OsStr) -> Result<Program, Error> {
        match Workload::resolve(argument)? {
            Workload::Closed(workload) => {
                let closed = Closed::on(*workload, Machine::ideal(self.cpus.unwrap_or(1)))?;
                let told = "with the costs of the guest".to_string();
                Ok(Program::Closed(Box::new(Closed { told, ..closed })))
            }
            _ => Err(Error::Usage(format!(
                "`{}` does not run in a real kernel, which needs tasks that go through phases: a \
                 file with [[task]]s, or one of those in `schedlab list workloads`, as \
                 yield:8, hackbench:1 or unix1990:100",
                argument.to_string_lossy()
            ))),
        }
    }
}
