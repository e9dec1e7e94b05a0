//! Parses `--apply 'COMM: SETTING[, SETTING]'`.

use super::{Assignment, Deployment, Text};
use crate::host::cpus::parse_list;
use program::no_such;
use schedsim::workload::Setting;
use schedsim::{CpuId, Nanos};
use std::mem::discriminant;
use std::str::FromStr;

const EXAMPLES: &str = "as in 'xz: batch', 'redis-server: nice=-5' or '*: slice=1ms'";
const SETTINGS: [&str; 9] = [
    "batch",
    "idle",
    "other",
    "fifo=1…99",
    "rr=1…99",
    "nice=-20…19",
    "slice=100us…100ms",
    "cpus=LIST",
    "weight=1…10000",
];

impl FromStr for Deployment {
    type Err = String;

    fn from_str(text: &str) -> Result<Deployment, String> {
        let assignments = text
            .split(';')
            .map(str::trim)
            .filter(|one| !one.is_empty())
            .map(str::parse)
            .collect::<Result<Vec<_>, String>>()?;
        if assignments.is_empty() {
            return Err(format!(
                "nothing is set; give a program and what to set for it, {EXAMPLES}"
            ));
        }
        Ok(Deployment { assignments, under: None })
    }
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Assignment, String> {
        // Names of kernel threads contain colons, settings do not.
        let parts =
            text.rsplit_once(':').map(|(program, settings)| (program.trim(), settings.trim()));
        let Some((program, settings)) =
            parts.filter(|(program, settings)| !program.is_empty() && !settings.is_empty())
        else {
            return Err(format!(
                "`{text}` names no program, or nothing to set; give both with a colon between \
                 them, {EXAMPLES}"
            ));
        };
        let settings = pieces(settings)
            .iter()
            .map(|piece| setting(piece))
            .collect::<Result<Vec<_>, String>>()?;
        contradiction(&settings).map_or(Ok(()), Err)?;
        Ok(Assignment { program: program.to_string(), settings })
    }
}

/// The settings in a list. The commas of a list of CPUs separate no settings.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let is_cpus =
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        match pieces.last_mut().filter(|last| is_cpus && last.starts_with("cpus=")) {
            Some(last) => *last += &format!(",{part}"),
            None => pieces.push(part.to_string()),
        }
    }
    pieces
}

fn setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text
        .split_once('=')
        .map_or((text, None), |(name, value)| (name.trim(), Some(value.trim())));
    let number = |low: i32, high: i32| {
        let number = value
            .and_then(|value| value.parse::<i32>().ok())
            .filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| {
            format!(
                "`{text}`: give {name} a number from {low} to {high}, as in {name}={}",
                (low + high) / 2
            )
        })
    };
    match (name, value) {
        ("other", None) => Ok(Setting::Other),
        ("batch", None) => Ok(Setting::Batch),
        ("idle", None) => Ok(Setting::Idle),
        ("batch" | "idle" | "other", Some(_)) => Err(format!("`{text}`: `{name}` takes no value")),
        ("slice" | "cpus", None) => Err(format!("`{text}`: `{name}` needs a value")),
        ("fifo", _) => number(1, 99).map(|priority| Setting::Fifo(priority as u8)),
        ("rr", _) => number(1, 99).map(|priority| Setting::RoundRobin(priority as u8)),
        ("nice", _) => number(-20, 19).map(|nice| Setting::Nice(nice as i8)),
        ("weight", _) => number(1, 10_000).map(|weight| Setting::Weight(weight as u32)),
        ("slice", Some(value)) => {
            let length: Nanos = value.parse().map_err(|error| format!("`{text}`: {error}"))?;
            let allowed = Nanos::from_micros(100)..=Nanos::from_millis(100);
            allowed
                .contains(&length)
                .then_some(Setting::Slice(length))
                .ok_or_else(|| format!("`{text}`: Linux allows slices from 100us to 100ms"))
        }
        ("cpus", Some(value)) => {
            Ok(Setting::Cpus(parse_list(value)?.into_iter().map(CpuId).collect()))
        }
        _ => {
            let names = SETTINGS.map(|of| of.split_once('=').map_or(of, |(name, _)| name).into());
            let see = format!("There are {}.", SETTINGS.join(", "));
            Err(no_such("setting", name, &names, &see))
        }
    }
}

/// The reason why these settings exclude one another, if they do.
fn contradiction(settings: &[Setting]) -> Option<String> {
    for (index, one) in settings.iter().enumerate() {
        let is_alike = |other: &&Setting| {
            discriminant(*other) == discriminant(one)
                || (other.class().is_some() && one.class().is_some())
        };
        if let Some(other) = settings[..index].iter().find(is_alike) {
            return Some(format!(
                "{} and {} are set for the same program: leave one out",
                Text(other),
                Text(one)
            ));
        }
    }
    let real_time =
        settings.iter().find(|setting| matches!(setting.class(), Some((_, Some(_)))))?;
    let of_fair = settings.iter().find(|setting| {
        matches!(setting, Setting::Nice(_) | Setting::Slice(_) | Setting::Weight(_))
    })?;
    Some(format!(
        "{} says nothing of a real-time task: leave it or {} out",
        Text(of_fair),
        Text(real_time)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "xz: batch",
            "*: slice=1ms",
            "*: slice=525us",
            "redis-server: nice=-5",
            "Web Content: idle, cpus=0,2,3",
            "kworker/u8:2: cpus=1, nice=-20",
            "a: fifo=50; b: weight=200, other",
            "c*: rr=1",
        ] {
            assert_eq!(
                text.parse::<Deployment>().map(|read| read.to_string()),
                Ok(text.to_string())
            );
        }
        let read = |text: &str| text.parse::<Deployment>().unwrap().to_string();
        assert_eq!(read(" xz :cpus=0-2,5,nice=3 "), "xz: cpus=0,1,2,5, nice=3");
    }

    #[test]
    fn nonsense_is_refused_with_what_there_is() {
        let error = |text: &str| text.parse::<Deployment>().unwrap_err();
        for (text, says) in [
            ("", "nothing is set"),
            ("xz", "names no program"),
            (": batch", "names no program"),
            ("xz:", "names no program"),
            ("xz: turbo", "There are batch, idle, other, fifo=1…99"),
            ("xz: nice", "give nice a number from -20 to 19"),
            ("xz: nice=20", "give nice a number from -20 to 19"),
            ("xz: fifo=100", "give fifo a number from 1 to 99"),
            ("xz: slice=1", "not a duration"),
            ("xz: slice=1s", "from 100us to 100ms"),
            ("xz: batch=1", "`batch` takes no value"),
            ("xz: nic=5", "Did you mean `nice`?"),
            ("xz: slice", "`slice` needs a value"),
            ("xz: cpus=3-1", "no list of CPUs"),
            ("xz: batch, idle", "batch and idle are set for the same program"),
            ("xz: nice=1, nice=2", "nice=1 and nice=2"),
            ("xz: nice=1, fifo=2", "nice=1 says nothing of a real-time task"),
            ("xz: weight=0", "give weight a number from 1 to 10000"),
        ] {
            assert!(error(text).contains(says), "{text}: {}", error(text));
        }
    }
}
