//! `schedlab doctor`: what can be measured on this machine.

use crate::output::Format;
use clap::Args;
use program::{Error, print};
use std::fmt::Write;
use worlds::host::doctor::{Finding, System};

/// Examines this machine: what limits measurements, and the command that changes it
///
/// It checks CPU, SMT, frequencies, throttling, load, memory, and the kernel and its scheduler. It
/// also checks the permissions of this user, limits on CPU time and tasks, and tools. It changes
/// nothing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab doctor\n  schedlab doctor --format json")]
pub struct Doctor {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Doctor {
    /// Examines the machine and prints the findings.
    pub fn run(self) -> Result<(), Error> {
        let findings = System::this().examine();
        let failed = |error: &dyn std::fmt::Display| {
            Error::Internal(format!("cannot write the findings: {error}"))
        };
        print(&match self.format {
            Format::Text => text(&findings),
            Format::Json => {
                let json =
                    serde_json::to_string_pretty(&serde_json::json!({ "findings": findings }))
                        .map_err(|error| failed(&error))?;
                json + "\n"
            }
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(Vec::new());
                findings
                    .iter()
                    .try_for_each(|finding| writer.serialize(finding))
                    .map_err(|error| failed(&error))?;
                String::from_utf8(writer.into_inner().map_err(|error| failed(&error))?)
                    .map_err(|error| failed(&error))?
            }
        })
    }
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { topic, found, limits, fix } in findings {
        let mark = if limits.is_some() { '!' } else { ' ' };
        let _ = writeln!(text, "{mark} {topic:22}{found}");
        if let Some(limits) = limits {
            let _ = writeln!(text, "{:24}{limits}", "");
        }
        if let Some(fix) = fix {
            let _ = writeln!(text, "{:24}$ {fix}", "");
        }
    }
    let limited = findings.iter().filter(|finding| finding.limits.is_some()).count();
    let _ = writeln!(
        text,
        "\n{limited} of {} findings limit what can be measured here (!).",
        findings.len()
    );
    text
}
