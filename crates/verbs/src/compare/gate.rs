//! The gate of a comparison: rules against a stored result.

use clap::Args;
use laboratory::regression::{Baseline, Rule};
use program::{Error, write_whole};
use results::gate::{Gate, Outcome};
use results::{Answer, Printed};
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

/// What a comparison must keep.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of a gate")]
pub struct GateArguments {
    /// A stored results.json, or a directory with one, that --fail-if compares the numbers with
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    against: Option<PathBuf>,
    /// Fail with exit code 4 if a number is worse than the stored one: 'METRIC > +1%', 'METRIC <
    /// -5%', 'METRIC worse' (by more than the 2 % that do not matter), of a part as in
    /// 'wake_p99[redis] worse'; may be given several times
    ///
    /// A rule fails only when the bound of the difference's 95 % interval
    /// passes the limit; counted numbers have no interval.
    #[arg(long, value_name = "RULE", requires = "against", value_parser = Rule::from_str)]
    fail_if: Vec<Rule>,
    /// Compare with a stored result of another kernel, emulator, machine or version as well
    #[arg(long, requires = "against")]
    allow_environment: bool,
    /// Also write what the gate says: FILE.xml as JUnit XML, FILE.md as Markdown, `github` as
    /// annotations on standard error; may be given several times
    #[arg(long, value_name = "FILE", requires = "against", value_parser = Output::from_str)]
    gate_output: Vec<Output>,
}

/// Where a gate is written, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Output {
    Junit(PathBuf),
    Markdown(PathBuf),
    GitHub,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Output, String> {
        let path = PathBuf::from(text);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("xml") => Ok(Output::Junit(path)),
            Some("md") => Ok(Output::Markdown(path)),
            _ if text == "github" => Ok(Output::GitHub),
            _ => Err("give a file ending in .xml (JUnit) or .md (Markdown), or `github`".into()),
        }
    }
}

impl Output {
    fn write(&self, gate: &Gate) -> Result<(), Error> {
        match self {
            Output::Junit(path) => write_whole(path, gate.junit().as_bytes()),
            Output::Markdown(path) => write_whole(path, gate.markdown().as_bytes()),
            Output::GitHub => {
                let _ = write!(std::io::stderr(), "{}", gate.annotations());
                Ok(())
            }
        }
    }
}

impl GateArguments {
    /// Whether a rule is about a part of a run.
    pub fn has_parts(&self) -> bool {
        self.fail_if.iter().any(Rule::has_subject)
    }

    /// The stored result, read before anything runs. `printed` is what the command prints.
    ///
    /// # Errors
    /// As of [`Baseline::read`].
    pub fn baseline(&self, printed: &[&'static Printed]) -> Result<Option<Baseline>, Error> {
        let read = |path: &PathBuf| Baseline::read(path, &self.fail_if, printed);
        self.against.as_ref().map(read).transpose()
    }

    /// `answer` with what the gate says; its end is an error if a rule fails.
    ///
    /// # Errors
    /// As of [`Baseline::judge`], and if an output cannot be written.
    pub fn judged(&self, baseline: Option<&Baseline>, answer: Answer) -> Result<Answer, Error> {
        let Some(baseline) = baseline else { return Ok(answer) };
        let gate = baseline.judge(&answer, self.allow_environment)?;
        self.gate_output.iter().try_for_each(|output| output.write(&gate))?;
        let failed: Vec<String> = gate
            .of(Outcome::Failed)
            .map(|of| format!("\n  {}, {}: {}: {}", of.case, of.candidate, of.rule, of.says))
            .collect();
        let end = match failed.is_empty() {
            true => Ok(()),
            false => Err(Error::Check(gate.headline() + &failed.concat())),
        };
        let text = format!("{}\n{}", answer.text, gate.text());
        Ok(Answer { text, end: answer.end.and(end), ..answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_output_is_its_ending() {
        let of = |text: &str| text.parse::<Output>();
        assert_eq!(of("a/gate.xml"), Ok(Output::Junit("a/gate.xml".into())));
        assert!(
            matches!(of("s.md"), Ok(Output::Markdown(_))) && of("github") == Ok(Output::GitHub)
        );
        assert!(of("gate.txt").unwrap_err().contains(".xml"));
    }
}
