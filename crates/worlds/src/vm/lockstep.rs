//! Several CPUs in lockstep. QEMU runs them one after another in one thread, and our plugin limits
//! how many instructions one may be ahead of another.
//!
//! With N CPUs, each instruction of any of them moves the clock on. So on each of them an
//! instruction takes N times as long. The clock's step is chosen so that this is the same for 1, 2,
//! 4 and 8 CPUs. So the kernel's constants of time mean the same everywhere.

use program::Error;
use schedsim::{Nanos, counted};

/// By how many instructions CPUs are interleaved if nothing else is said.
pub const INTERLEAVE: u32 = 1_000;
/// The most CPUs whose times were validated.
pub const VALIDATED: u16 = 8;
/// No block of QEMU's has more instructions.
const LONGEST_BLOCK: u64 = 512;

/// The CPUs of a guest in lockstep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lockstep {
    /// How many there are.
    pub cpus: u16,
    /// How many instructions a CPU may be ahead of another when it has to make way for the next.
    pub interleave: u32,
}

impl Lockstep {
    /// An instruction of any CPU moves the clock on by two to the power of this nanoseconds.
    pub fn shift(self) -> u32 {
        (VALIDATED / self.cpus).checked_ilog2().unwrap_or(0)
    }

    /// How long an instruction takes on each CPU.
    pub fn instruction(self) -> Nanos {
        Nanos(u64::from(self.cpus) << self.shift())
    }

    /// What is shorter is not measured: so far apart may the clocks of two CPUs be.
    pub fn resolution(self) -> Nanos {
        Nanos(self.instruction().0 * u64::from(self.interleave))
    }

    /// Whether the CPUs were in lockstep, by the plugin's report: how many took part, and how many
    /// instructions at most were between two of them.
    ///
    /// # Errors
    /// If they were not: the run has no times then.
    pub fn judge(self, report: &str) -> Result<(), Error> {
        let mut numbers = report.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(cpus)), Some(Ok(most))) = (numbers.next(), numbers.next()) else {
            return Err(Error::Internal(format!("QEMU's plugin left the report {report:?}")));
        };
        if cpus != u64::from(self.cpus) {
            return Err(Error::Input(format!(
                "{cpus} of {} ran in lockstep: the guest has not started the others",
                counted(self.cpus.into(), "CPU")
            )));
        }
        if most > 2 * (u64::from(self.interleave) + LONGEST_BLOCK) {
            return Err(Error::Input(format!(
                "the CPUs were up to {most} instructions apart, not {}: a program of the guest's \
                 waits with `pause` in a loop, which takes a CPU out of step",
                self.interleave
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_takes_as_long_on_1_2_4_and_8_cpus() {
        let of = |cpus| Lockstep { cpus, interleave: INTERLEAVE };
        for cpus in [1, 2, 4, 8] {
            assert_eq!(of(cpus).instruction(), Nanos(8), "{cpus}");
            assert_eq!(of(cpus).resolution(), Nanos(8_000), "{cpus}");
        }
        let others = [3, 5, 6, 7, 16].map(|cpus| of(cpus).instruction().0);
        assert_eq!(others, [6, 5, 6, 7, 16]);
    }

    #[test]
    fn cpus_that_were_apart_or_missing_give_no_numbers() {
        let lockstep = Lockstep { cpus: 4, interleave: 1000 };
        assert!(lockstep.judge("4 1038 5ced\n").is_ok());
        for (report, says) in [
            ("3 1038 5ced\n", "3 of 4 CPUs"),
            ("4 100000 5ced\n", "100000 instructions apart"),
            ("", "report"),
        ] {
            let refused = lockstep.judge(report).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
    }
}
