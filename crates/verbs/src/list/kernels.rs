//! The kernels for guests: those in the cache, and those that can be had.

use program::Error;
use results::{Align, Table};
use std::collections::BTreeMap;
use worlds::vm::kernel;
use worlds::vm::release::{Flavour, Release};
use worlds::vm::{Kernel, catalogue};

/// The list. With `refresh` the mirror is read again.
pub fn text(refresh: bool) -> Result<String, Error> {
    let known = if refresh { Some(catalogue::refresh()?) } else { catalogue::known()? };
    let had = known.map_or_else(
        || {
            "What else can be had is not known here yet: `schedlab list kernels --refresh` reads \
             the lists of Debian's mirror.\n"
                .to_string()
        },
        |known| available(&known),
    );
    Ok(format!(
        "Kernels for --kernel: a series or a release, -generic or -rt behind it for another \
         flavour, or the path of a bzImage.\nOne that is not in the cache is fetched by apt and \
         installed nowhere. The cache is {}.\n\n{}\n{had}",
        kernel::cache()?.display(),
        cached()?
    ))
}

/// The cached ones, each with what matters to scheduling in it.
fn cached() -> Result<String, Error> {
    let cached = kernel::in_cache()?;
    if cached.is_empty() {
        return Ok("None is in the cache.\n".to_string());
    }
    let mut table = Table::new(
        ["in the cache", "release", "from", "image sha256", "scheduling"]
            .map(|title| (title, Align::Left)),
    );
    for (kernel, fetched) in cached {
        table.row([
            kernel.name.clone(),
            kernel.release.clone(),
            fetched.suite,
            kernel.sha256.chars().take(12).collect(),
            scheduling(&kernel),
        ]);
    }
    Ok(table.to_string())
}

fn scheduling(kernel: &Kernel) -> String {
    let options = kernel.configuration.as_ref().map_or_else(
        || "its configuration cannot be had".to_string(),
        |configuration| configuration.scheduling(),
    );
    format!("{}; {options}", kernel.fair_scheduler())
}

/// The releases that can be had, a line for each series.
fn available(known: &[(String, Vec<Release>)]) -> String {
    let mut series: BTreeMap<(Vec<u32>, &str), Vec<&Release>> = BTreeMap::new();
    for (suite, releases) in known {
        for release in releases {
            series.entry((release.series(), suite)).or_default().push(release);
        }
    }
    let mut table = Table::new(
        ["can be had", "from", "releases", "flavours"].map(|title| (title, Align::Left)),
    );
    for ((number, suite), releases) in series {
        let number: Vec<String> = number.iter().map(u32::to_string).collect();
        let mut versions: Vec<&str> =
            releases.iter().map(|release| release.version.as_str()).collect();
        versions.dedup();
        let of = |flavour: &Flavour| releases.iter().any(|release| release.flavour == *flavour);
        let flavours = Flavour::ALL.into_iter().filter(of);
        let flavours: Vec<&str> =
            flavours.map(|flavour| flavour.suffix().trim_start_matches('-')).collect();
        table.row([number.join("."), suite.to_string(), versions.join(", "), flavours.join(", ")]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_had_is_a_line_for_each_series() {
        let read = |names: &[&str]| names.iter().map(|name| Release::read(name).unwrap()).collect();
        let text = available(&[
            ("backports".to_string(), read(&["6.18.9", "6.18.9-rt", "6.18.15", "7.2.1"])),
            ("stable".to_string(), read(&["6.1.0-50", "6.1.0-50-generic"])),
        ]);
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["6.1", "stable", "6.1.0-50", "cloud,", "generic"]);
        assert_eq!(lines[2], ["6.18", "backports", "6.18.9,", "6.18.15", "cloud,", "rt"]);
        assert_eq!(lines[3], ["7.2", "backports", "7.2.1", "cloud"]);
    }
}
