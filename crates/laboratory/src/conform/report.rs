//! The answers: for people, as JSON, and as a text that an author can paste into an issue.

use super::judged::{Found, Verdict};
use super::owed::{CHECKS, Owed};
use program::{Error, no_such};
use results::counted;
use serde::Serialize;
use std::fmt::Write;

/// The answer to one question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Answered {
    /// The check.
    pub check: &'static str,
    /// The workload in a few words.
    pub workload: &'static str,
    /// What was asked, with its bound.
    pub asked: String,
    /// The most time that it may be, in nanoseconds; 0 where it is no time.
    pub bound_ns: u64,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What was measured, or why it was not asked.
    pub measured: String,
}

impl Answered {
    pub(super) fn of(owed: &Owed, found: Found) -> Answered {
        Answered {
            check: owed.check,
            workload: owed.workload,
            asked: owed.asked.clone(),
            bound_ns: owed.bound.0,
            verdict: found.verdict,
            measured: found.measured,
        }
    }
}

/// All answers of a scheduler, and what they depend on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The scheduler, as it was named.
    pub scheduler: String,
    /// The release of the kernel.
    pub kernel: String,
    /// The number of CPUs.
    pub cpus: u16,
    /// The seed.
    pub seed: u64,
    /// How many boots said the same, byte for byte.
    pub boots: u32,
    /// Emulator, kernel, runner and the scheduler's files, by their hashes.
    pub identity: String,
    /// The build of this program.
    pub build: String,
    /// The command that repeats it.
    pub command: String,
    /// The answers.
    pub answers: Vec<Answered>,
    /// How the kernel's own scheduler shared in the same guest, after the other was gone.
    pub reference: Option<String>,
    /// What is asked of no scheduler, with the reason.
    pub never_asked: Vec<(String, String)>,
    /// The SHA-256 of each file that the guest is made of.
    pub inputs: Vec<(String, String)>,
}

impl Report {
    /// The number of answers with this verdict.
    fn count(&self, verdict: Verdict) -> usize {
        self.answers.iter().filter(|answer| answer.verdict == verdict).count()
    }

    /// Fails if a check does not hold.
    ///
    /// # Errors
    /// [`Error::Check`] with the names of the checks.
    pub fn expect(&self) -> Result<(), Error> {
        let broken = |answer: &&Answered| answer.verdict == Verdict::DoesNotHold;
        let mut names: Vec<&str> = self.answers.iter().filter(broken).map(|of| of.check).collect();
        names.dedup();
        match names.is_empty() {
            true => Ok(()),
            false => Err(Error::Check(format!(
                "{} of {} checks do not hold for {}: {}",
                self.count(Verdict::DoesNotHold),
                self.answers.len(),
                self.scheduler,
                names.join(", ")
            ))),
        }
    }

    /// As a document.
    ///
    /// # Errors
    /// [`Error::Internal`] if it cannot be written.
    pub fn to_json(&self) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| Error::Internal(error.to_string()))
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} on Linux {}, {}: {}\n",
            self.scheduler,
            self.kernel,
            counted(self.cpus.into(), "CPU"),
            self.summary()
        );
        for answer in &self.answers {
            let mut verdict = answer.verdict.words().to_string();
            if answer.verdict == Verdict::DoesNotHold {
                verdict.make_ascii_uppercase();
            }
            let _ = write!(
                text,
                "\n{:14} {verdict:13}  {}\n    asked: {}\n    found: {}\n",
                answer.check, answer.workload, answer.asked, answer.measured
            );
        }
        if let Some(reference) = &self.reference {
            let _ =
                writeln!(text, "\nThe kernel's own scheduler, for the same weights: {reference}");
        }
        text += "\nAsked of no scheduler:\n";
        for (what, why) in &self.never_asked {
            let _ = writeln!(text, "    {what}: {why}");
        }
        let _ = writeln!(
            text,
            "\n{}; seed {}; {}\nAgain: {}",
            self.identity,
            self.seed,
            self.repeated(),
            self.command
        );
        text
    }

    /// How sure the answers are the same again.
    fn repeated(&self) -> &'static str {
        if self.boots > 1 { "two boots said the same, byte for byte" } else { "one boot" }
    }

    fn summary(&self) -> String {
        format!(
            "{} of {} checks hold, {} do not, {} were not asked",
            self.count(Verdict::Holds),
            self.answers.len(),
            self.count(Verdict::DoesNotHold),
            self.count(Verdict::NotAsked)
        )
    }

    /// As a text in Markdown for an issue.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "### `{}`: {}\n\n| check | workload | asked | found | |\n|---|---|---|---|---|\n",
            self.scheduler,
            self.summary()
        );
        // A line break or a bar would end the cell.
        let cell =
            |text: &str| text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ");
        for answer in &self.answers {
            let bold = if answer.verdict == Verdict::DoesNotHold { "**" } else { "" };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {bold}{}{bold} |",
                answer.check,
                cell(answer.workload),
                cell(&answer.asked),
                cell(&answer.measured),
                answer.verdict.words()
            );
        }
        if let Some(reference) = &self.reference {
            let _ =
                writeln!(text, "\nThe kernel's own scheduler, for the same weights: {reference}.");
        }
        text += "\nTimes are of the guest's clock, which counts instructions (8 ns each). Asked of no \
                 scheduler:\n\n";
        for (what, why) in &self.never_asked {
            let _ = writeln!(text, "- {what}: {why}");
        }
        let _ = writeln!(
            text,
            "\nLinux {} under QEMU, {} in lockstep, seed {}; {}.\n{}.\n\n```sh\n{}\n```\n\n\
             <details><summary>SHA-256</summary>\n\n```",
            self.kernel,
            counted(self.cpus.into(), "CPU"),
            self.seed,
            self.repeated(),
            self.identity,
            self.command
        );
        for (name, hash) in &self.inputs {
            let _ = writeln!(text, "{hash}  {name}");
        }
        text + "```\n</details>\n"
    }
}

/// Whether there is a check of this name.
///
/// # Errors
/// The names that there are.
pub fn known(name: &str) -> Result<String, String> {
    match CHECKS.contains(&name) {
        true => Ok(name.to_string()),
        false => {
            let see = format!("The checks are {}.", CHECKS.join(", "));
            Err(no_such("check", name, &CHECKS.map(String::from), &see))
        }
    }
}
