//! What a paper's claims do not cover: what its authors missed, advice for readers, and how gaps in
//! its text were filled.
//!
//! The file is `findings.toml` in the paper's folder. Each entry names the claims behind it, so
//! that their verdicts and numbers are shown with it.

use super::citation::shown;
use formats::toml_file::TomlFile;
use program::{Error, no_such};
use results::findings::Findings;
use results::is_of;

/// Reads `file`, of a paper with these ids.
///
/// # Errors
/// If it names a claim that the paper does not have.
pub fn read(file: &TomlFile, ids: &[String]) -> Result<Findings, Error> {
    let mut findings: Findings = file.parse()?;
    strip(&mut findings);
    let named = |kind: &'static str, index: usize, claims: &[String]| {
        let unknown = claims.iter().position(|claim| !ids.iter().any(|id| is_of(id, claim)));
        unknown.map_or(Ok(()), |place| {
            let why = no_such(
                "claim",
                &claims[place],
                ids,
                "They are in claims.toml and experiments.toml.",
            );
            Err(file.wrong(&format!("{kind}[{index}].claims[{place}]"), &why))
        })
    };
    findings
        .missed
        .iter()
        .enumerate()
        .try_for_each(|(index, one)| named("missed", index, &one.claims))?;
    findings
        .advice
        .iter()
        .enumerate()
        .try_for_each(|(index, one)| named("advice", index, &one.claims))?;
    findings
        .decision
        .iter()
        .enumerate()
        .try_for_each(|(index, one)| named("decision", index, &one.claims))?;
    Ok(findings)
}

/// Takes the sources of numbers out of the sentences.
fn strip(findings: &mut Findings) {
    let missed = findings.missed.iter_mut().flat_map(|one| [&mut one.title, &mut one.says]);
    let advice =
        findings.advice.iter_mut().flat_map(|one| [&mut one.need, &mut one.take, &mut one.because]);
    let decisions = findings.decision.iter_mut().map(|one| &mut one.says);
    missed.chain(advice).chain(decisions).for_each(|text| *text = shown(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_may_only_name_existing_claims() {
        let read = |text: &str| {
            super::read(&TomlFile::of("findings.toml", text), &["X-CLM01-sim".to_string()])
        };
        let text = "[[missed]]\ntitle = \"a\"\nsays = \"b\"\nclaims = [\"X-CLM01\"]\n";
        assert_eq!(read(text).unwrap().missed[0].claims, ["X-CLM01"]);
        for (text, words) in [
            (
                text.replace("CLM01", "CLM02"),
                "findings.toml:4: missed[0].claims[0]: there is no claim named `X-CLM02`",
            ),
            (text.replace("says", "sais"), "findings.toml:3: missed[0].sais"),
        ] {
            let message = read(&text).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
